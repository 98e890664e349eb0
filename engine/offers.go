package engine

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// Difference says in what an offer differs from what was asked for.
type Difference string

// The differences, in the order in which offers are listed.
const (
	AsAsked   Difference = "as_asked"   // in nothing: the request would be accepted so
	Later     Difference = "later"      // it ends after the deadline, as early as possible anywhere
	OtherSite Difference = "other_site" // likewise, the earliest end at another site
	Earlier   Difference = "earlier"    // it starts before the ready time
	FewerPEs  Difference = "fewer_pes"  // the most PEs that are free for as long, within the window
	Shorter   Difference = "shorter"    // the longest time for which as many PEs are free, within the window
)

// Offer is a place that would be promised now. It holds nothing: to hold it,
// submit its Request before somebody else takes the place.
type Offer struct {
	Difference Difference `json:"difference"`
	// Request asks for exactly this place, and for nothing else.
	Request    berth.Request     `json:"request"`
	Allotments []berth.Allotment `json:"allotments"`
	// Idle is the PE-seconds that the reservation would leave idle: its PEs
	// during the gaps before and after it, to what is booked there, as far as
	// such a gap is shorter than usable.
	Idle int64 `json:"idle_pe_seconds"`
}

// usable is how long PEs must be free to be worth something to others: a
// quarter of an hour, the step in which advance reservations are sold by the
// systems that sell them by the slot (field notes: ARS, Grid'5000).
const usable berth.Duration = 900

// Offers returns what could be promised instead of, or as, the request: at most
// so many offers, one of each Difference except OtherSite, all feasible and
// admitted now, in the order of the differences. A request of several parts or
// variants is offered AsAsked or Later; beside AsAsked nothing less is. None means that nothing would do. It
// changes nothing; the error is of code Invalid and concerns the request.
func (e *Engine) Offers(r *berth.Request, most int) ([]Offer, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	if r.IsJob() {
		return nil, berth.Errorf(berth.Invalid, "kind", "%q; offers are for requests", r.Kind)
	}
	asked := *r
	asked.Ready = max(asked.Ready, e.state.now)
	var offers []Offer
	add := func(d Difference, as berth.Request, allotments []berth.Allotment) {
		if len(offers) < most && !slices.ContainsFunc(offers, func(o Offer) bool { return samePlace(o.Allotments, allotments) }) {
			offers = append(offers, e.offered(d, as, allotments))
		}
	}
	allotments, refusal := e.place(&asked)
	if refusal == nil {
		add(AsAsked, asked, allotments)
	}
	e.offerLater(asked, add)
	if refusal != nil && len(r.Parts) == 1 && len(r.Parts[0].Variants) == 1 {
		e.offerEarlier(asked, add)
		e.offerFewer(asked, add)
		e.offerShorter(asked, add)
	}
	return offers, nil
}

// adder takes an offer, if there is room for it and it is a new one.
type adder func(Difference, berth.Request, []berth.Allotment)

func samePlace(a, b []berth.Allotment) bool {
	return slices.EqualFunc(a, b, func(x, y berth.Allotment) bool {
		return x.Resource == y.Resource && x.Start == y.Start && x.End == y.End && x.NPE == y.NPE
	})
}

// offered completes an offer. What is asked for by an offer of one part is its
// place and its window, so that it is that place or none; on a pool faster than
// the standard the window has to be longer than that, because a request is
// validated for the standard.
func (e *Engine) offered(d Difference, r berth.Request, allotments []berth.Allotment) Offer {
	if len(allotments) == 1 {
		r = e.at(r, &allotments[0])
	}
	o := Offer{Difference: d, Request: r, Allotments: allotments}
	o.Request.Ready = allotments[0].Start
	o.Request.Deadline = o.Request.Ready.Add(length(&r))
	for i := range allotments {
		o.Request.Deadline = max(o.Request.Deadline, allotments[i].End)
		o.Idle += e.idle(&allotments[i])
	}
	return o
}

// at returns the request for that place, in that shape, and no other.
func (e *Engine) at(r berth.Request, a *berth.Allotment) berth.Request {
	r.Site, r.Pool = a.Resource.Site, a.Resource.Name
	res := e.resourceOf(a.Resource)
	for _, v := range r.Parts[0].Variants {
		if res.lasts(&r, v) == (berth.Variant{NPE: a.NPE, Duration: a.End.Sub(a.Start)}) {
			return shaped(r, v)
		}
	}
	panic("engine: a part was placed in a shape that it does not have")
}

// idle returns the PE-seconds of the gaps around an allotment that are too
// short for others.
func (e *Engine) idle(a *berth.Allotment) int64 {
	q := calendar.Query{
		Now: e.state.now, Ready: a.Start, Deadline: a.End, Duration: a.End.Sub(a.Start), NPE: a.NPE, Horizon: calendar.Unbounded,
	}
	var lost int64
	for rectangle := range e.state.calendar(a.Resource).Rectangles(q) {
		for _, gap := range []berth.Duration{a.Start.Sub(max(rectangle.Begin, e.state.now)), rectangle.End.Sub(a.End)} {
			if gap < usable {
				lost += berth.Area(a.NPE, gap)
			}
		}
	}
	return lost
}

// offerLater offers the earliest ends whatever the deadline, one at each site.
func (e *Engine) offerLater(r berth.Request, add adder) {
	r.Deadline = berth.TimeLimit - 1
	if len(r.Parts) > 1 {
		if allotments, refusal := e.place(&r); refusal == nil {
			add(Later, r, allotments)
		}
		return
	}
	best := map[string]offer{}
	var order []string
	for i := range e.state.resources {
		res := &e.state.resources[i]
		o, ok := e.earliestOn(&r, res)
		before, known := best[res.id.Site]
		switch {
		case !ok || known && before.fit.End <= o.fit.End:
			continue
		case !known:
			order = append(order, res.id.Site)
		}
		best[res.id.Site] = o
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(best[a].fit.End, best[b].fit.End) })
	for i, site := range order {
		o := best[site]
		difference := OtherSite
		if i == 0 {
			difference = Later
		}
		add(difference, r, []berth.Allotment{o.allotment()})
	}
}

// earliestOn returns the earliest end of a request of one part on a resource
// that could serve it and admits it.
func (e *Engine) earliestOn(r *berth.Request, res *resource) (best offer, found bool) {
	part := &r.Parts[0]
	if e.impossibleOn(r, part, res) != nil || e.admit(r, part, res) != nil {
		return best, false
	}
	c, takes := e.state.calendar(res.id), e.takes(r, res)
	for _, v := range part.Variants {
		v = res.lasts(r, v)
		if !res.permits(r, v) {
			continue
		}
		q := e.query(r, part, v, res)
		fit, ok := calendar.Earliest(c, q)
		fit, ok = e.beside(c, takes, q, fit, ok)
		if ok && (!found || fit.End < best.fit.End) {
			best, found = offer{res: res, variant: v, fit: fit}, true
		}
	}
	return best, found
}

// offerEarlier offers the earliest end if it need not wait for the ready time.
func (e *Engine) offerEarlier(r berth.Request, add adder) {
	if r.Ready <= e.state.now {
		return
	}
	r.Ready = e.state.now
	r.Arrival = min(r.Arrival, r.Ready)
	if o, ok := e.earliest(&r); ok {
		add(Earlier, r, []berth.Allotment{o.allotment()})
	}
}

// earliest returns the earliest end over all resources, the first of equals.
func (e *Engine) earliest(r *berth.Request) (best offer, found bool) {
	for i := range e.state.resources {
		if o, ok := e.earliestOn(r, &e.state.resources[i]); ok && (!found || o.fit.End < best.fit.End) {
			best, found = o, true
		}
	}
	return best, found
}

// offerFewer offers the most PEs that are free for the whole duration.
func (e *Engine) offerFewer(r berth.Request, add adder) {
	wanted := r.Parts[0].Variants[0]
	var best offer
	var request berth.Request
	for i := range e.state.resources {
		res := &e.state.resources[i]
		one := shaped(r, berth.Variant{NPE: 1, Duration: wanted.Duration})
		if e.impossibleOn(&one, &one.Parts[0], res) != nil {
			continue
		}
		v := res.lasts(&one, one.Parts[0].Variants[0])
		free, _ := e.state.calendar(res.id).MostFree(e.query(&one, &one.Parts[0], v, res))
		if free = min(free, wanted.NPE-1); free <= best.variant.NPE {
			continue
		}
		fewer := shaped(r, berth.Variant{NPE: free, Duration: wanted.Duration})
		if o, ok := e.earliestOn(&fewer, res); ok {
			best, request = o, fewer
		}
	}
	if best.res != nil {
		add(FewerPEs, request, []berth.Allotment{best.allotment()})
	}
}

// offerShorter offers the longest time for which all PEs are free: a bisection
// on each resource, since what is free for long is free for less.
func (e *Engine) offerShorter(r berth.Request, add adder) {
	wanted := r.Parts[0].Variants[0]
	var best offer
	var request berth.Request
	for i := range e.state.resources {
		res := &e.state.resources[i]
		low, high := berth.Duration(0), wanted.Duration // high is not asked for
		if best.res != nil {
			low = request.Parts[0].Variants[0].Duration // as much is to be had elsewhere
		}
		for middle := min(low+1, high-1); high-low > 1; middle = low + (high-low)/2 {
			shorter := shaped(r, berth.Variant{NPE: wanted.NPE, Duration: middle})
			o, ok := e.earliestOn(&shorter, res)
			if !ok {
				high = middle
				continue
			}
			low, best, request = middle, o, shorter
		}
	}
	if best.res != nil {
		add(Shorter, request, []berth.Allotment{best.allotment()})
	}
}

// shaped returns the request with another shape.
func shaped(r berth.Request, v berth.Variant) berth.Request {
	part := r.Parts[0]
	part.Variants = []berth.Variant{v}
	r.Parts = []berth.Part{part}
	return r
}
