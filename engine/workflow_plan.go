package engine

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/place"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// Planning a workflow of thousands of tasks takes seconds, in which an engine that serves others
// would answer no one. So it may be planned by another engine that is in the state of a moment
// ago, and what comes of that is part of the event that submits it: the engine looks whether all
// tasks can still be there, and decides. What is on record says all that it decided on.

// WorkflowPlan is where the open tasks of a workflow are to be, or why it is refused.
type WorkflowPlan struct {
	Planner string `json:"planner,omitempty"`
	// Places are those of the open tasks, in the order of the workflow, without PE numbers.
	Places []berth.Allotment `json:"places,omitempty"`
	// Order lists the places, from 0, in the order in which they were found, parents before children:
	// found in another one, PEs by name may be those that a later task needs. Without it that is the order of their starts.
	Order   []int          `json:"order,omitempty"`
	Refusal *berth.Refusal `json:"refusal,omitempty"` // then there are no places
	// Last says that it is not planned again: where it does not fit as it is any more, its tasks
	// are placed as soon after it as they can be, and the workflow is refused if that is too late.
	Last bool `json:"last,omitempty"`

	ready *readyPlan // what following it comes to, made beside; nil if that is to be found out
}

// end returns when the last task ends.
func (p *WorkflowPlan) end() (last berth.Time) {
	last = -berth.Forever
	for i := range p.Places {
		last = max(last, p.Places[i].End)
	}
	return last
}

// check reports what cannot be right with a plan of a workflow, as an error of code Invalid.
func (p *WorkflowPlan) check(w *berth.Workflow) error {
	open := 0
	for i := range w.Tasks {
		if !w.Tasks[i].Done {
			open++
		}
	}
	if p.Refusal != nil {
		open = 0
	}
	if len(p.Places) != open {
		return berth.Errorf(berth.Invalid, "plan", "it has %d places; want %d, one for each task that is to be promised, and none in a refusal", len(p.Places), open)
	}
	for i := range p.Places {
		if a := &p.Places[i]; !a.Start.Valid() || !a.End.Valid() || a.Start >= a.End || a.NPE < 1 || a.NPE > berth.MaxPEs {
			return berth.Errorf(berth.Invalid, "plan", "place %d is %d PEs from %d to %d; want 1 to %d PEs, and an end after the start", i+1, a.NPE, a.Start, a.End, berth.MaxPEs)
		}
	}
	if len(p.Order) > 0 && !p.ordered(w) {
		return berth.Errorf(berth.Invalid, "plan", "its order is %v; want each of its %d places once, those of parents before those of their children", p.Order, len(p.Places))
	}
	return nil
}

// ordered reports whether the order has each place once, and parents before children.
func (p *WorkflowPlan) ordered(w *berth.Workflow) bool {
	at := make([]int, len(p.Places)) // in the order, from 1
	for i, k := range p.Order {
		if k < 0 || k >= len(at) || at[k] > 0 {
			return false
		}
		at[k] = i + 1
	}
	if len(p.Order) != len(at) {
		return false
	}
	turn := make([]int, len(w.Tasks)) // 0 for those that are done
	for i, k := 0, 0; i < len(w.Tasks); i++ {
		if !w.Tasks[i].Done {
			turn[i] = at[k]
			k++
		}
	}
	for i := range w.Tasks {
		for _, parent := range w.Tasks[i].After {
			if turn[i] > 0 && turn[parent] > turn[i] {
				return false
			}
		}
	}
	return true
}

// PlanOptions says how a workflow is planned beside the engine that decides about it.
type PlanOptions struct {
	From   berth.Time // nothing starts earlier, for deciding takes place later; 0 for now
	Offers int        // as many come with a refusal at most
	// Lead is how much later what is offered begins: who takes an offer asks for its deadline a moment later, and by
	// then less time is left until that.
	Lead berth.Duration
	// Enough and Quit, if they are there, are asked before each task that a planner places, so that a
	// plan ends within a few of its steps. Once Enough returns true the best of what is found is
	// taken, if anything is, and without anything plans that leave slack are given up; once Quit
	// does the planning is. Both must return true from then on. Where there is an Enough, planners
	// for the earliest end, which are quick, go first.
	Enough, Quit func() bool
	// Both, if it is there, runs two functions, perhaps at once, which both may ask Enough and Quit. A
	// plan is the same with it and without.
	Both func(a, b func())
}

func (o *PlanOptions) planning(now berth.Time) *place.Planning {
	return &place.Planning{From: max(o.From, now), Enough: o.Enough, Quit: o.Quit, Both: o.Both}
}

// offering is planning for offers.
func (o *PlanOptions) offering(now berth.Time) *place.Planning {
	p := o.planning(now)
	p.From = min(p.From.Add(o.Lead), berth.TimeLimit-1)
	return p
}

func (o *PlanOptions) quit() bool { return o.Quit != nil && o.Quit() }

// PlanWorkflow returns what SubmitWorkflow would come to in the state of this engine, for
// SubmitPlanned to another one: places, or a refusal with offers. The engine does not change. The workflow may
// arrive later than it is planned for, and is decided once it has. The
// error is of code Invalid and concerns the workflow or from when on it is planned, or of code Unavailable if the planning was
// given up. Cost: that of its planners, seconds for thousands of tasks.
func (e *Engine) PlanWorkflow(w *berth.Workflow, o PlanOptions) (*WorkflowPlan, []WorkflowOffer, error) {
	if err := e.mayPlan(w, &o); err != nil {
		return nil, nil, err
	}
	if err := knownPlanner(w); err != nil {
		return nil, nil, err
	}
	p := o.planning(e.state.Now())
	found, refusal := e.finder.Workflow(w, p)
	if found == nil && o.quit() {
		return nil, nil, givenUp()
	}
	if refusal != nil {
		var offers []WorkflowOffer
		if o.Offers > 0 {
			beyond := *w
			beyond.Deadline = berth.Forever
			offers = e.offersOf(&beyond, o.Offers, o.offering(e.state.Now()))
		}
		return &WorkflowPlan{Refusal: refusal}, offers, nil
	}
	plan := &WorkflowPlan{Planner: found.Planner, Places: make([]berth.Allotment, 0, len(found.Tasks))}
	at := make([]int, len(w.Tasks)) // from 1
	for i := range found.Tasks {
		at[found.Tasks[i].Task] = i + 1
	}
	if found.Moved > 0 { // else it is that of their starts
		plan.Order = make([]int, len(found.Tasks))
	}
	for _, i := range at {
		if i > 0 {
			a := found.Tasks[i-1].Place.Allotments[0]
			a.PEs = berth.PESet{}
			if plan.Order != nil {
				plan.Order[i-1] = len(plan.Places)
			}
			plan.Places = append(plan.Places, a)
		}
	}
	plan.ready = e.readyPlan(w, plan)
	return plan, nil, nil
}

// readyPlan is what a workflow is promised by if its plan holds, made beside the engine that decides:
// what is left to decide is what depends on the moment.
type readyPlan struct {
	of       *berth.Workflow // as it was submitted, which is not written meanwhile
	workflow *berth.Workflow // the engine's own
	places   *place.Ready
	flow     *state.Flow

	// By task as placed:
	requests     []berth.Request
	reservations []berth.Reservation
	entries      []state.Entry
	room         []change.Change // for all changes
	effects      []change.Effect // room for all of them, and for what is returned of them
	told         []change.Effect
}

// fewReady is how many tasks a plan has at least that is made ready: to follow a smaller one is quick.
const fewReady = 64

// readyPlan follows a plan for all that does not depend on the moment; nil if it cannot be told whether
// it holds without following it again.
func (e *Engine) readyPlan(w *berth.Workflow, plan *WorkflowPlan) *readyPlan {
	if len(plan.Places) < fewReady {
		return nil
	}
	places := e.finder.Ready(w, plan.Planner, plan.Places, plan.Order)
	if places == nil || places.Plan.End > plan.end() {
		return nil
	}
	own := w.Clone()
	flow, err := state.NewFlow(own)
	if err != nil {
		return nil // which submitting it tells
	}
	n, managed := len(places.Plan.Tasks), 0
	for i := range places.Plan.Tasks {
		if e.state.Manages(places.Plan.Tasks[i].Place.Allotments[0].Resource.Site) {
			managed++
		}
	}
	r := &readyPlan{
		of: w, workflow: own, places: places, flow: flow,
		requests: make([]berth.Request, n), reservations: make([]berth.Reservation, n), entries: make([]state.Entry, n),
		room: make([]change.Change, 2+2*n+managed), effects: make([]change.Effect, managed), told: make([]change.Effect, managed),
	}
	clear(r.room) // so that its memory is there
	clear(r.effects)
	clear(r.told)
	clear(r.entries)
	for i := range places.Plan.Tasks {
		t := &places.Plan.Tasks[i]
		r.requests[i] = t.Request
		try := own.Tasks[t.Task].Tries + 1
		r.requests[i].ID, r.requests[i].Task.Try = TaskID(own.ID, t.Task, try), try
		r.reservations[i] = reservationOf(&r.requests[i], &t.Place)
		flow.Expect(t.Task, r.requests[i].ID)
	}
	return r
}

// Unready has a plan followed where it is decided about: what was made ready for it is of another
// configuration.
func (p *WorkflowPlan) Unready() { p.ready = nil }

// PlanOffers is WorkflowOffers with options.
func (e *Engine) PlanOffers(w *berth.Workflow, o PlanOptions) ([]WorkflowOffer, error) {
	if err := e.mayPlan(w, &o); err != nil {
		return nil, err
	}
	offers := e.offersOf(w, o.Offers, o.offering(e.state.Now()))
	if len(offers) == 0 && o.quit() {
		return nil, givenUp()
	}
	return offers, nil
}

func givenUp() error {
	return berth.Errorf(berth.Unavailable, "plan", "it was given up; try again")
}

// mayPlan reports what cannot be right with a workflow that is to be planned.
func (e *Engine) mayPlan(w *berth.Workflow, o *PlanOptions) error {
	switch {
	case w == nil:
		return berth.Errorf(berth.Invalid, "workflow", "missing")
	case o.From >= berth.TimeLimit:
		return berth.Errorf(berth.Invalid, "from", "%d; want a time before 2^42 s", o.From)
	}
	if err := w.Validate(); err != nil {
		return err
	}
	return e.finder.CheckWorkflow(w)
}
