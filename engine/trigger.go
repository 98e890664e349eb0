package engine

import "github.com/berth-hpc/berth"

// Trigger says when what is pending is decided.
type Trigger string

// The triggers. A gathering trigger lets requests and jobs wait for the
// scheduling point (ClassPeriod) of an instant, so that an order can choose
// among them.
const (
	OnArrival Trigger = "arrival" // each at once, as it comes
	OnInstant Trigger = "instant" // all of one instant together, at its scheduling point
	OnPeriod  Trigger = "every"   // all together at every multiple of Config.Period
)

// Triggers lists the triggers.
func Triggers() []Trigger { return []Trigger{OnArrival, OnInstant, OnPeriod} }

// arrived has a request or job that has just become pending decided, now or at
// the next scheduling point. A job that no empty site could serve is refused.
func (e *Engine) arrived(r *berth.Request) {
	if r.IsJob() {
		if refusal := e.impossible(r, &r.Parts[0]); refusal != nil {
			e.emit(Change{Kind: Refused, ID: r.ID, Request: r, Refusal: refusal})
			return
		}
	}
	switch {
	case e.settings.trigger != OnArrival:
		e.schedule()
	case r.IsJob():
		e.look()
	default:
		e.decideAll()
	}
}

// schedule makes the next scheduling point known.
func (e *Engine) schedule() {
	at := e.state.now
	if p := berth.Time(e.config.Period); e.settings.trigger == OnPeriod {
		at += (p - at%p) % p // right for negative times too
	}
	if at < e.state.passAt() {
		e.emit(Change{Kind: Scheduled, Pass: at})
	}
}

// pass is a scheduling point: every pending request is decided, and the jobs
// see what is left.
func (e *Engine) pass() {
	e.emit(Change{Kind: Scheduled, Pass: berth.Forever})
	e.decideAll()
	e.look()
}

// schedule folds Scheduled.
func (s *state) schedule(at berth.Time) {
	s.timers.drop(&s.pass)
	// It comes before the plans of jobs, whose numbers begin with 1.
	if s.pass = (timer{At: at, Class: ClassPeriod}); at < berth.Forever {
		s.timers.add(&s.pass)
	}
}

// passAt returns when the next pass over what is pending is due, Forever if
// nothing waits for one.
func (s *state) passAt() berth.Time {
	if s.pass.place == 0 {
		return berth.Forever
	}
	return s.pass.At
}
