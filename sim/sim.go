// Package sim drives the engine with a virtual clock: it submits a workload's
// requests at their arrival, wakes the engine when it wants to be woken, and
// writes down what became of each request as a schedule. It decides nothing
// and reads no real clock.
package sim

import (
	"context"
	"iter"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// DefaultSite is the site's name where no sites file names it.
const DefaultSite = "site"

// OnePool returns the sites of a machine that is a single pool.
func OnePool(pes berth.Count, binding berth.Binding) []berth.Site {
	return []berth.Site{{
		Name:  DefaultSite,
		Pools: []berth.Pool{{Name: "pool", PEs: pes, Binding: binding}},
	}}
}

// progressEvery is how many requests arrive between two calls of the progress
// function, and how many events happen between two looks at the context.
const progressEvery = 1024

// Workload is what a simulation is about.
type Workload struct {
	// Requests, sorted by arrival. Ordinary jobs may stand among them. What starts is
	// used from then on, so NoShow gives nothing up; a hold is not confirmed, and
	// expires.
	Requests []berth.Request
	// Plain, sorted by arrival, are requests and ordinary jobs in short. They stand in place
	// of Requests, and each is in memory in full only until it is over.
	Plain []berth.Plain
	// Runs is how long each request really runs once it has started and its data
	// are there, in standard seconds, so that the speed of its pool counts; 0, and
	// nil for all, is as long as it was given. What is shorter ends early, and what
	// is longer meets its limit. One time is for all parts; each ends at its
	// limit at the latest.
	Runs []berth.Duration
	// Outages, in the order of From: PEs that cannot be used for a while; nil for
	// none. A simulation asks for each when the one before has begun, and goes through
	// them once; several simulations may do so at the same time.
	Outages iter.Seq[Outage]
	// Flows, sorted by arrival, are workflows among the requests. With them the sites are
	// taken for managed ones: what is told of tasks decides how they end, and promises outlive
	// the loss of PEs.
	Flows []Flow
	// Monitor, if not nil, says what sites and links are like as time goes on.
	Monitor Monitor
	// Promises ends the simulation as soon as every request has come and none waits for a
	// decision. The lines are then the same, since what is promised runs as promised, but for
	// the PEs of pools that bind late, which are chosen when something starts. Nothing else may
	// be in the workload than requests without Hold and NoShow, and the configuration must
	// let no promise move and make no request a job.
	Promises bool
	// Refused, if not nil, hears of each request, or ordinary job, that was just refused,
	// with the engine as it is then. It may ask the engine, for example for offers, and must
	// not change it, nor keep the request. Its error ends the simulation.
	Refused func(e *engine.Engine, r *berth.Request) error
}

// Len returns how many requests and ordinary jobs there are.
func (w *Workload) Len() int { return len(w.Requests) + len(w.Plain) }

// Arrival returns when request i arrives, from 0.
func (w *Workload) Arrival(i int) berth.Time {
	if w.Plain != nil {
		return w.Plain[i].Arrival
	}
	return w.Requests[i].Arrival
}

// Monitor watches the sites. It may look at the engine, for example at what
// runs, and must not change it.
type Monitor interface {
	// Next returns when it reports next; ok is false if it will not again. A time
	// that is past counts as now.
	Next(e *engine.Engine) (at berth.Time, ok bool)
	// Report returns the next event: engine.Down, engine.Up or
	// engine.UpdateForecast. Several at one instant are asked for one by one, each
	// when those before are done.
	Report(e *engine.Engine) engine.Event
}

// Outage is PEs of a pool that cannot be used during [From, Until); an Until of
// Forever is for good. What runs on them fails.
type Outage struct {
	Resource    berth.ResourceID
	PEs         berth.PESet
	From, Until berth.Time
}

// Run simulates requests that run as long as they were given; see Replay.
func Run(ctx context.Context, config engine.Config, requests []berth.Request, progress func(done int)) ([]berth.Line, error) {
	return Replay(ctx, config, Workload{Requests: requests}, progress)
}

// Replay simulates a workload until the last reservation has ended and nothing
// is left to happen. It returns a line for every request in their order, and
// for a request of k parts k lines with parts 1..k, and then one for every
// outage, and one for every transfer of data. A line's end is that of the limit;
// actual_end is there where it differs, and for every job that ran. If a promise
// moved, promised_start and moved_from tell from where and why; if it lost PEs and
// went on, stretches tell what it held. A promise that an outage broke is refused
// after all. What is still waiting when nothing can happen any more is left
// undecided: not accepted, without a reason.
//
// progress, if not nil, hears now and then how many requests have arrived.
// Replay ends early, with the context's error, when the context does; any other
// error is of code Invalid and concerns the configuration or a request.
func Replay(ctx context.Context, config engine.Config, w Workload, progress func(done int)) ([]berth.Line, error) {
	result, err := Play(ctx, config, w, progress)
	if err != nil {
		return nil, err
	}
	return append(result.Schedule.Lines(), result.Tasks...), nil
}

// Result is what became of a workload.
type Result struct {
	Schedule Schedule     // as Replay has it, without tasks of workflows
	Tasks    []berth.Line // of tasks, a line for each try that was promised
	Flows    []FlowResult // in the order of the workload
}

// All goes through the lines as Replay has them. What is true of those of Schedule.All is
// true of them.
func (r *Result) All() iter.Seq[*berth.Line] {
	return func(yield func(*berth.Line) bool) {
		for line := range r.Schedule.All() {
			if !yield(line) {
				return
			}
		}
		for i := range r.Tasks {
			if line := r.Tasks[i]; !yield(&line) {
				return
			}
		}
	}
}

// Play is Replay with what became of the workflows, and less memory.
func Play(ctx context.Context, config engine.Config, w Workload, progress func(done int)) (*Result, error) {
	d, err := newDriver(&config, &w)
	if err != nil {
		return nil, err
	}
	defer d.stop()
	for step := 0; ; step++ {
		if step%progressEvery == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		if progress != nil && d.arrived%progressEvery == 0 && d.arrived != d.told {
			progress(d.arrived)
			d.told = d.arrived
		}
		more, err := d.step()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
	}
	if progress != nil {
		progress(w.Len())
	}
	result := &Result{Schedule: d.recorder.schedule()}
	if d.flows != nil {
		result.Tasks, result.Flows = d.flows.taskLines(), d.flows.results
	}
	return result, nil
}
