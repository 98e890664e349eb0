package engine

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/place"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// Limits may bound what a promise costs ordinary jobs. To foresee that takes up to seconds, in which an engine that
// serves others would answer no one. So it may be foreseen by another engine that is in the state of a moment ago, and
// what comes of that is part of the event: the engine looks whether it would promise the same place, and decides.

// Foreseen is what an event was foreseen to cost ordinary jobs.
type Foreseen struct {
	// Places are those that the event would promise, without PE numbers; of an extension what it adds. Without any it
	// would be refused.
	Places []berth.Allotment `json:"places,omitempty"`
	Cost   Cost              `json:"cost"`
	// Record says after which record of a journal it was foreseen. The engine does not look at it.
	Record uint64 `json:"record,omitempty"`
	// Admitted says that the request was promised within the limits at this cost, and is placed anew because its site has
	// given its place away: wherever it comes to, it is not asked again.
	Admitted bool `json:"admitted,omitempty"`
}

// MostMoved is by how much a place may begin earlier or later than it was foreseen, in seconds, for the cost to
// stand: what is to begin now begins a little later once it is decided.
const MostMoved berth.Duration = 60

// BoundingLooks is the default of Foresight.Looks where a limit bounds the cost: what is not followed to its end is refused.
const BoundingLooks = 10 * MostLooks

// BoundsCost reports whether a limit bounds what an event may cost ordinary jobs. Cost: O(limits), for each task of a workflow.
func (e *Engine) BoundsCost(event *Event) bool {
	if !e.settings.costs {
		return false
	}
	switch {
	case event.Kind == EventSubmit && event.Request != nil:
		return e.finder.BoundsCost(event.Request)
	case event.Kind == EventModify && event.Request != nil:
		return e.finder.BoundsCost(event.Request)
	case event.Kind == EventExtend:
		d, err := e.promised(event.ID)
		return err == nil && e.finder.BoundsCost(e.extended(d, event.Role))
	case event.Kind == EventSubmitWorkflow && event.Workflow != nil:
		w := event.Workflow
		for i := range w.Tasks {
			if e.finder.BoundsCost(&berth.Request{User: w.User, Role: w.Role, Requirements: w.Tasks[i].Requirements, Sharing: w.SharingOf(i)}) {
				return true
			}
		}
		return false
	case event.Kind == EventSubmitSeries && event.Series != nil:
		return e.finder.BoundsCost(&event.Series.Request)
	case event.Kind == EventModifySeries:
		return slices.ContainsFunc(event.Requests, func(r berth.Request) bool { return e.finder.BoundsCost(&r) })
	}
	return false
}

// extended returns the request of a reservation as it is extended by a role.
func (e *Engine) extended(d *state.Entry, role string) *berth.Request {
	own := *d.Request()
	own.Role = role
	return &own
}

// Foresee returns what an event would cost ordinary jobs if it were applied to this engine at f.From, for Event.Foreseen: whether
// or not a limit bounds it, and whatever such a limit is. The promise is confirmed if the event asks to hold it. The engine does not change. The error is
// that of Apply, or of code Unavailable: Quit gave it up. Cost: that of Costs for one offer.
func (e *Engine) Foresee(event *Event, f Foresight) (*Foreseen, error) {
	if f.Looks == 0 {
		f.Looks = BoundingLooks
	}
	a, err := e.lookAhead(&f)
	if err != nil {
		return nil, err
	}
	return a.ofEvent(event)
}

// ofEvent returns what an event costs.
func (a *ahead) ofEvent(event *Event) (*Foreseen, error) {
	var places []berth.Allotment
	with, err := a.course(func(c *course) (bool, error) {
		now := c.engine.state.Now()
		own := unheld(event, now)
		var was berth.Allotment // of what is extended
		if d := c.engine.state.Entry(event.ID); d != nil && event.Kind == EventExtend {
			was = d.Part(0)
		}
		if err := c.step(now, own); err != nil {
			return false, err
		}
		for i := range c.changes {
			switch x := &c.changes[i]; {
			case x.Kind == change.Accepted && !x.Reservation.Request.IsJob():
				places = append(places, x.Reservation.Allotments...)
			case x.Kind == change.Modified && (x.ID == event.ID || event.Kind == EventModifySeries):
				places = append(places, x.Moved...)
			case x.Kind == change.Extended && x.ID == event.ID:
				was.Start, was.End = max(was.End, now), x.Until
				places = append(places, was)
			}
		}
		return len(places) > 0, nil
	})
	switch {
	case err != nil:
		return nil, err
	case with == nil:
		return &Foreseen{Cost: Cost{Complete: true}}, nil
	}
	foreseen := &Foreseen{Places: slices.Clone(places), Cost: *a.without.compare(with, places)}
	for i := range foreseen.Places {
		foreseen.Places[i].PEs = berth.PESet{}
	}
	return foreseen, nil
}

// unheld returns an event that asks for a promise which is not held, from now on.
func unheld(event *Event, now berth.Time) Event {
	own := *event
	own.Foreseen, own.given = nil, false
	switch {
	case event.Kind == EventSubmit && event.Request != nil:
		own.Request = event.Request.Clone()
		own.Request.Hold, own.Request.Arrival = 0, min(own.Request.Arrival, now)
	case event.Kind == EventSubmitWorkflow && event.Workflow != nil:
		own.Workflow = event.Workflow.Clone()
		own.Workflow.Hold, own.Workflow.Arrival = 0, min(own.Workflow.Arrival, now)
	case event.Kind == EventSubmitSeries && event.Series != nil:
		own.Series = event.Series.Clone()
		own.Series.Request.Hold, own.Series.Request.Arrival = 0, min(own.Series.Request.Arrival, now)
	}
	return own
}

// OffersWithin is Offers with what each costs, without those that exceed a limit on that. Where one begins too early for
// its limits, and jobs that wait would be delayed, later ones are looked for, each twice as far from the first as the one before, as a further OfferLater. The
// error is of code Invalid, or Unavailable: Quit gave it up. Cost: that of Costs for all of them.
func (e *Engine) OffersWithin(r *berth.Request, most int, f Foresight) ([]Offer, []*Cost, error) {
	if f.Looks == 0 {
		f.Looks = BoundingLooks
	}
	all, err := e.Offers(r, most)
	if err != nil || len(all) == 0 {
		return nil, nil, err
	}
	a, err := e.lookAhead(&f)
	if err != nil || !a.without.complete { // else what each costs is known in part alone
		return nil, nil, err
	}
	var offers []Offer
	var costs []*Cost
	take := func(o Offer, at int) (within bool, err error) {
		cost, err := a.ofOffer(&o)
		if err != nil || cost == nil || e.overCost(&o.Request, o.Allotments, cost.bounded(), false) != nil {
			return false, err
		}
		offers, costs = slices.Insert(offers, at, o), slices.Insert(costs, at, cost)
		return true, nil
	}
	late := false // one that asks for all of it begins within the limits
	for i := range all {
		within, err := take(all[i], len(offers))
		if err != nil {
			return nil, nil, err
		}
		whole := all[i].Difference == OfferAsAsked || all[i].Difference == OfferLater || all[i].Difference == OfferOtherSite
		late = late || within && whole
	}
	first := all[0].Allotments[0].Start
	for wait := berth.Duration(leastWait); !late && len(offers) < most && first.Add(wait) < berth.TimeLimit/2; wait *= 2 {
		later := *r
		later.Ready, later.Deadline = first.Add(wait), berth.TimeLimit-1
		list, err := e.Offers(&later, 1)
		if err != nil {
			return nil, nil, err
		}
		if len(list) == 0 {
			break // beyond what can be promised
		}
		if list[0].Difference = OfferLater; list[0].Request.Deadline <= r.Deadline {
			list[0].Difference = OfferAsAsked
		}
		if late, err = take(list[0], 0); err != nil {
			return nil, nil, err
		}
		if list[0].Allotments[0].Start > a.without.until {
			break // no job is left that it could delay
		}
	}
	return offers, costs, nil
}

// leastWait is by how much the first of the later offers is later, in seconds: the step in which advance reservations are sold.
const leastWait = 900

// bounded is a cost as limits bound it.
func (c *Cost) bounded() place.Cost {
	return place.Cost{Delay: c.Largest, Idle: c.Idle, Complete: c.Complete}
}

// Exceeds returns the refusal of a limit that the foreseen cost of an event exceeds; nil if it exceeds none, or nothing
// was foreseen.
func (e *Engine) Exceeds(event *Event) *berth.Refusal {
	f := event.Foreseen
	if f == nil || f.Admitted || len(f.Places) == 0 || !e.BoundsCost(event) {
		return nil
	}
	cost := f.Cost.bounded()
	r := event.Request
	switch event.Kind {
	case EventExtend, EventModify:
		d, err := e.promised(event.ID)
		if err != nil {
			return nil
		}
		cost = cost.With(d.Terms())
		if event.Kind == EventExtend {
			r = e.extended(d, event.Role)
		}
	case EventSubmitSeries:
		return e.finder.OverCost(&event.Series.Request, f.Places, cost)
	case EventSubmitWorkflow, EventModifySeries:
		return nil // there are several requests
	}
	return e.overCost(r, f.Places, cost, event.Kind == EventExtend)
}

// overCost returns the refusal of a limit on what a request by itself costs at some places, or of a budget that it exceeds
// with what it leaves idle; nil if it exceeds none. One that lasts longer has these beside its own.
func (e *Engine) overCost(r *berth.Request, at []berth.Allotment, cost place.Cost, longer bool) *berth.Refusal {
	if over := e.finder.OverCost(r, at, cost); over != nil || cost.Idle == 0 {
		return over
	}
	return e.finder.OverIdle(r, at, cost.Idle, longer)
}

// foreseen returns what an event costs that promises some places. The error, of code Conflict and field foreseen, says that what
// was foreseen is of other places.
func (e *Engine) foreseen(event *Event, places []berth.Allotment) (*Foreseen, error) {
	f := event.Foreseen
	switch {
	case f == nil && e.state.Backlog().Len() == 0 && !e.config.Preempt:
		return &Foreseen{Cost: Cost{Complete: true}}, nil // no job waits
	case f == nil:
		var err error
		if f, err = e.Foresee(event, Foresight{}); err != nil {
			return nil, err
		}
	case f.Admitted:
		return f, nil
	}
	same := slices.EqualFunc(places, f.Places, func(a, b berth.Allotment) bool {
		late := a.Start.Sub(b.Start)
		return a.Resource == b.Resource && a.NPE == b.NPE && a.End.Sub(a.Start) == b.End.Sub(b.Start) && late >= -MostMoved && late <= MostMoved
	})
	if !same {
		return nil, berth.Errorf(berth.Conflict, "foreseen", "it would be promised another place than the one whose cost was foreseen; foresee it again")
	}
	return f, nil
}

// tooDear returns the refusal of a limit on what a request costs that is exceeded where it would be promised; nil if none is,
// or it would be refused anyway. What it costs is noted for the promise.
func (e *Engine) tooDear(event *Event, r *berth.Request) (*berth.Refusal, error) {
	if !e.settings.costs || !e.finder.BoundsCost(r) {
		return nil, nil
	}
	found, refusal := e.finder.Place(place.Want{Request: r, Admit: true})
	if refusal != nil {
		return nil, nil
	}
	return e.dear(event, []*berth.Request{r}, found.Allotments)
}

// dear returns the refusal of a limit that is exceeded by what an event costs at all its places, asked for each of its requests; it notes what it
// costs for what is promised.
func (e *Engine) dear(event *Event, requests []*berth.Request, places []berth.Allotment) (*berth.Refusal, error) {
	f, err := e.foreseen(event, places)
	if err != nil {
		return nil, err
	}
	e.cost = &f.Cost
	if f.Admitted {
		return nil, nil
	}
	for _, r := range requests {
		refusal := e.finder.OverCost(r, places, f.Cost.bounded())
		if event.Kind == EventSubmit {
			refusal = e.overCost(r, places, f.Cost.bounded(), false)
		}
		if refusal != nil {
			return refusal, nil
		}
	}
	return nil, nil
}

// dearer returns the refusal of a limit that is exceeded by what a change of a reservation costs with what was foreseen for
// it before; else it adds that to its terms.
func (e *Engine) dearer(event *Event, r *berth.Request, places []berth.Allotment, terms *berth.Terms) (*berth.Refusal, error) {
	if !e.settings.costs || !e.finder.BoundsCost(r) {
		return nil, nil
	}
	f, err := e.foreseen(event, places)
	if err != nil {
		return nil, err
	}
	cost := f.Cost.bounded().With(*terms)
	if refusal := e.overCost(r, places, cost, event.Kind == EventExtend); refusal != nil {
		return refusal, nil
	}
	terms.Delay, terms.Idle = cost.Delay, cost.Idle
	return nil, nil
}

// dearChange refuses each change of a reservation of a series where all of them together, with what was foreseen for that
// one before, cost more than a limit allows; else it adds that to its terms.
func (e *Engine) dearChange(event *Event, requests []berth.Request, of []*state.Entry, places []place.Place, refusals []*berth.Refusal) error {
	if !e.BoundsCost(event) || slices.ContainsFunc(refusals, func(r *berth.Refusal) bool { return r != nil }) {
		return nil
	}
	var all []berth.Allotment
	for i := range places {
		all = append(all, places[i].Allotments...)
	}
	f, err := e.foreseen(event, all)
	if err != nil {
		return err
	}
	for i, d := range of {
		cost := f.Cost.bounded().With(d.Terms())
		refusals[i] = e.finder.OverCost(&requests[i], all, cost)
		places[i].Terms.Delay, places[i].Terms.Idle = cost.Delay, cost.Idle
	}
	return nil
}

// tooDearAtItsTurn returns why an occurrence of an open series is not promised at its turn where a limit bounds its cost,
// which no one has foreseen; nil if none does. Such series are refused when they are asked for: it is a limit that came later.
func (e *Engine) tooDearAtItsTurn(r *berth.Request, at *place.Place) *berth.Refusal {
	if !e.settings.costs || !e.finder.BoundsCost(r) {
		return nil
	}
	return e.finder.OverCost(r, at.Allotments, place.Cost{})
}

// dearSeries refuses each occurrence of a series whose occurrences together cost more than a limit allows.
func (e *Engine) dearSeries(event *Event, requests []berth.Request, places []place.Place, refusals []*berth.Refusal) error {
	if !e.settings.costs || len(requests) == 0 || !e.finder.BoundsCost(&requests[0]) {
		return nil
	}
	fit := 0
	var all []berth.Allotment
	for i := range places {
		if refusals[i] == nil {
			fit++
			all = append(all, places[i].Allotments...)
		}
	}
	if fit < event.Series.Least || fit == 0 {
		return nil // it is refused as it is
	}
	refusal, err := e.dear(event, []*berth.Request{&requests[0]}, all)
	for i := range refusals {
		if refusals[i] == nil {
			refusals[i] = refusal
		}
	}
	return err
}

// dearWorkflow returns the refusal of a limit that is exceeded by what all tasks of a workflow cost together; nil if none is.
func (e *Engine) dearWorkflow(event *Event, plan *place.WorkflowPlan) (*berth.Refusal, error) {
	if !e.BoundsCost(event) {
		return nil, nil
	}
	requests := make([]*berth.Request, len(plan.Tasks))
	var all []berth.Allotment
	for i := range plan.Tasks {
		requests[i] = &plan.Tasks[i].Request
		all = append(all, plan.Tasks[i].Place.Allotments...)
	}
	return e.dear(event, requests, all)
}
