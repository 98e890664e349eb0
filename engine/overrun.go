package engine

import (
	"cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// Overrun says what becomes of a reservation or job that has reached its limit and
// was not told to be finished.
type Overrun string

// The modes. What runs on does so for Config.Extension at a time, until it finishes
// or can go on no more, and then ends. Co-allocated parts always end at their limit.
const (
	OverrunKill  Overrun = "kill"   // it ends, which keeps every promise; also the empty string
	OverrunRunOn Overrun = "extend" // it goes on while its PEs are promised to no other
	OverrunDelay Overrun = "delay"  // it goes on, and promises that have not started yield to it
)

// Overruns lists the modes.
func Overruns() []Overrun { return []Overrun{OverrunKill, OverrunRunOn, OverrunDelay} }

// defaultExtension is a minute: schedulers kill with about that precision (Slurm's
// OverTimeLimit counts minutes).
const defaultExtension berth.Duration = 60

// endReached deals with a part whose time is over.
func (e *Engine) endReached(d *state.Entry, part int) {
	switch rest, cut := e.preemptedRemainder(d); {
	case cut:
		e.emitOf(d, change.Change{Kind: change.Preempted, Request: rest})
	case !e.runOn(d):
		moving := d.Moving(e.state.Now())
		e.emitOf(d, change.Change{Kind: change.Ended, Part: part})
		if !moving { // its time is over: it gives nothing back
			e.repairBegun()
			e.retry()
			return
		}
	}
	e.freed()
}

// runOn lets a reservation go on beyond its limit, if that is possible.
func (e *Engine) runOn(over *state.Entry) bool {
	if f, task := e.state.FlowOf(over); f != nil {
		return e.taskRunsOn(over, f, task)
	}
	if e.config.Overrun == "" || e.config.Overrun == OverrunKill || over.Parts() > 1 {
		return false
	}
	extra := over.Part(0)
	extra.Start, extra.End = extra.End, extra.End.Add(cmp.Or(e.config.Extension, defaultExtension))
	if !extra.End.Valid() || extra.NPE == 0 || e.finder.StockShort(over, extra.End) != nil || len(e.state.Claimed(&extra)) > 0 {
		return false
	}
	blocks := []berth.Allotment{extra}
	var displaced []*state.Entry
	if !e.finder.Free(&extra) {
		if e.config.Overrun == OverrunRunOn || e.config.Preempt && over.Request().IsJob() {
			return false // where jobs yield to promises, no promise yields to a job
		}
		var ok bool
		if displaced, ok = e.finder.InTheWay(blocks, false, nil); !ok {
			return false
		}
		if e.config.Preempt { // jobs yield to the promises that would have to go
			displaced, _ = e.finder.InTheWay(blocks, false, e.finder.RunningJobs())
		}
	}
	e.vacate(displaced)
	e.preempt(blocks, true)
	e.jobs.MakeWay(blocks)
	e.emitOf(over, change.Change{Kind: change.Extended, Until: extra.End})
	e.replace(displaced, true)
	return true
}
