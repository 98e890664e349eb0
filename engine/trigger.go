package engine

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
)

// Trigger says when pending requests and jobs are decided.
type Trigger string

// The triggers. A gathering trigger lets requests and jobs wait for the scheduling
// point of an instant, so that an order can choose among them.
const (
	TriggerOnArrival Trigger = "arrival" // each at once, as it comes
	TriggerOnInstant Trigger = "instant" // all of one instant together, at its scheduling point
	TriggerOnPeriod  Trigger = "every"   // all together at every multiple of Config.Period
)

// Triggers lists the triggers.
func Triggers() []Trigger { return []Trigger{TriggerOnArrival, TriggerOnInstant, TriggerOnPeriod} }

// schedule sets the next scheduling point.
func (e *Engine) schedule() {
	at := e.state.Now()
	if p := berth.Time(e.config.Period); e.settings.trigger == TriggerOnPeriod {
		at += (p - at%p) % p // right for negative times too
	}
	if at < e.state.Pass() {
		e.emit(change.Change{Kind: change.Scheduled, Pass: at})
	}
}

// schedulingPoint decides every pending request, and lets the jobs see what is left.
func (e *Engine) schedulingPoint() {
	e.emit(change.Change{Kind: change.Scheduled, Pass: berth.Forever})
	e.decideAll()
	e.lookAtJobs()
}
