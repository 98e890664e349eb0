package place

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// Difference says how an offer differs from what was asked for.
type Difference uint8

// The differences, in the order in which offers are listed.
const (
	AsAsked Difference = iota
	Later
	OtherSite
	Earlier
	FewerPEs
	Shorter
)

// Offer is a place that would be promised now.
type Offer struct {
	Difference Difference
	Request    berth.Request
	Allotments []berth.Allotment
	Idle       int64 // PE-seconds that it would leave idle in gaps too short for others
}

// usable is how long PEs must be free to be worth something to others: a quarter of
// an hour, the step in which advance reservations are sold by the systems that sell
// them by the slot (field notes: ARS, Grid'5000).
const usable berth.Duration = 900

// Offers returns places that could be promised for a valid request, or instead of it:
// most offers or fewer, one of each Difference but any number of OtherSite, all feasible and
// admitted now, in the order of the differences. All are within an interval, unless that is the zero value. The state does not change.
func (f *Finder) Offers(r *berth.Request, most int, within berth.Interval) []Offer {
	t := f.state.Try()
	defer t.Close()
	f.clear(t, nil)
	asked := *r
	asked.Ready, asked.Arrival = max(asked.Ready, f.state.Now()), min(asked.Arrival, f.state.Now())
	if within == (berth.Interval{}) {
		within.End = berth.TimeLimit - 1
	}
	o := offering{Finder: f, most: most, within: within, list: make([]Offer, 0, max(0, min(most, int(Shorter)+len(f.pools))))}
	x := f.search(&asked, nil)
	x.admission()
	allotments, refusal := x.possibly(t)
	if x.full() {
		return nil
	}
	if refusal == nil {
		o.add(AsAsked, &asked, allotments)
	}
	later := asked
	later.Deadline = max(asked.Deadline, within.End)
	if len(r.Parts) > 1 {
		x := f.search(&later, nil)
		x.admission()
		if allotments, refusal := x.possibly(t); refusal == nil {
			o.add(Later, &later, allotments)
		}
		return o.list
	}
	o.later(&later)
	if refusal != nil && len(r.Parts[0].Variants) == 1 {
		o.earlier(&asked)
		o.fewer(&asked)
		o.shorter(&asked)
	}
	return o.list
}

// offering gathers offers.
type offering struct {
	*Finder
	most   int
	within berth.Interval // starts at 0 if an offer may begin at once
	list   []Offer
}

// add takes an offer, if there is room for it and it is a new one. The eager filter
// looks at the time until the deadline, so that it may deny the window of an offer
// what it admits in a longer one; then what was asked for is offered as it is, and
// nothing else.
func (o *offering) add(d Difference, as *berth.Request, allotments []berth.Allotment) {
	if len(o.list) >= o.most {
		return
	}
	for i := range o.list {
		if samePlace(o.list[i].Allotments, allotments) {
			return
		}
	}
	offer := o.offered(d, as, allotments)
	if o.Eager != nil && !o.admits(&offer) {
		if d != AsAsked {
			return
		}
		offer.Request = *as.Clone()
	}
	o.list = append(o.list, offer)
}

// admits reports whether the request of an offer gets its place.
func (o *offering) admits(offer *Offer) bool {
	x := o.search(&offer.Request, nil)
	x.admission()
	found, refusal := x.possibly(o.state.Trying())
	return refusal == nil && samePlace(found, offer.Allotments)
}

func samePlace(a, b []berth.Allotment) bool {
	return slices.EqualFunc(a, b, func(x, y berth.Allotment) bool {
		return x.Resource == y.Resource && x.Start == y.Start && x.End == y.End && x.NPE == y.NPE
	})
}

// offered completes an offer. The request of an offer of one part asks for exactly that
// place and window.
func (o *offering) offered(d Difference, as *berth.Request, allotments []berth.Allotment) Offer {
	offer := Offer{Difference: d, Allotments: allotments}
	r := &offer.Request
	if len(allotments) == 1 {
		a := &allotments[0]
		x := o.search(as, nil)
		*r = shaped(as, x.chosen(0, a))
		r.Sites = slices.Clone(as.Sites)
		r.Site, r.Pool = a.Resource.Site, a.Resource.Name
	} else {
		*r = *as.Clone()
	}
	r.Ready, r.Deadline = allotments[0].Start, lastEnd(allotments)
	for i := range allotments {
		offer.Idle += o.idle(&allotments[i])
	}
	return offer
}

// idle returns the PE-seconds of the gaps around an allotment that are too short for
// others.
func (o *offering) idle(a *berth.Allotment) int64 {
	now := o.state.Now()
	q := calendar.Query{
		Now: now, Ready: a.Start, Deadline: a.End, Duration: a.End.Sub(a.Start), NPE: a.NPE, Horizon: calendar.Unbounded,
	}
	var lost int64
	for rectangle := range o.view(o.poolOf(a.Resource)).Rectangles(q) {
		for _, gap := range []berth.Duration{a.Start.Sub(max(rectangle.Begin, now)), rectangle.End.Sub(a.End)} {
			if gap < usable {
				lost += berth.Area(a.NPE, gap)
			}
		}
	}
	return lost
}

// later offers the earliest ends whatever the deadline, one at each site.
func (o *offering) later(r *berth.Request) {
	best := map[string]offer{}
	var order []string
	for i := range o.pools {
		p := &o.pools[i]
		found, ok := o.soonest(r, p)
		before, known := best[p.id.Site]
		switch {
		case !ok || known && before.fit.End <= found.fit.End:
			continue
		case !known:
			order = append(order, p.id.Site)
		}
		best[p.id.Site] = found
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(best[a].fit.End, best[b].fit.End) })
	for i, site := range order {
		found := best[site]
		difference := OtherSite
		if i == 0 {
			difference = Later
		}
		o.add(difference, r, []berth.Allotment{found.allotment()})
	}
}

// soonest returns the earliest end of a request of one part in a pool that could
// serve it and admits it.
func (o *offering) soonest(r *berth.Request, p *pool) (best offer, found bool) {
	x := o.search(r, nil)
	x.admission()
	if obstacle := x.obstacle(0, p, x.state.Now()); obstacle.reason != "" {
		return best, false
	}
	return x.firstIn(p, func(fit calendar.Fit) berth.Time { return fit.End })
}

// nearby is how much before its ready time a request is offered another one at first, where offers stay near it.
const nearby berth.Duration = 3600

// earlier offers the earliest end if it need not wait for the ready time; where offers stay near that, it waits until ever longer before it.
func (o *offering) earlier(r *berth.Request) {
	first := max(o.state.Now(), o.within.Start)
	if r.Ready <= first {
		return
	}
	ready := first
	if o.within.Start > 0 {
		ready = max(first, r.Ready.Add(-nearby))
	}
	for !o.earlierFrom(r, ready) && ready > first {
		ready = max(first, r.Ready.Add(-2*r.Ready.Sub(ready)))
	}
}

// earlierFrom offers the earliest end from a time on, and reports whether there is one.
func (o *offering) earlierFrom(r *berth.Request, ready berth.Time) bool {
	sooner := *r
	sooner.Ready = ready
	sooner.Arrival = min(sooner.Arrival, sooner.Ready)
	var best offer
	for i := range o.pools {
		if found, ok := o.soonest(&sooner, &o.pools[i]); ok && (best.pool == nil || found.fit.End < best.fit.End) {
			best = found
		}
	}
	if best.pool != nil {
		o.add(Earlier, &sooner, []berth.Allotment{best.allotment()})
	}
	return best.pool != nil
}

// fewer offers the most PEs that are free for the whole duration.
func (o *offering) fewer(r *berth.Request) {
	wanted := r.Parts[0].Variants[0]
	var best offer
	var request berth.Request
	for i := range o.pools {
		p := &o.pools[i]
		one := shaped(r, berth.Variant{NPE: 1, Duration: wanted.Duration})
		x := o.search(&one, nil)
		if obstacle := x.obstacle(0, p, x.state.Now()); obstacle.reason != "" {
			continue
		}
		v := x.scaled(p, one.Parts[0].Variants[0])
		free, _ := o.view(p).MostFree(x.query(0, v, p))
		if free = min(free, wanted.NPE-1); free <= best.variant.NPE {
			continue
		}
		fewer := shaped(r, berth.Variant{NPE: free, Duration: wanted.Duration})
		if found, ok := o.soonest(&fewer, p); ok {
			best, request = found, fewer
		}
	}
	if best.pool != nil {
		o.add(FewerPEs, &request, []berth.Allotment{best.allotment()})
	}
}

// shorter offers the longest time for which all PEs are free: a bisection on each
// pool, since what is free for long is free for less.
func (o *offering) shorter(r *berth.Request) {
	wanted := r.Parts[0].Variants[0]
	shorter := shaped(r, wanted)
	length := &shorter.Parts[0].Variants[0].Duration
	var best offer
	var longest berth.Duration
	for i := range o.pools {
		p := &o.pools[i]
		low, high := berth.Duration(0), wanted.Duration // high is not asked for
		if best.pool != nil {
			low = longest // there is as much elsewhere
		}
		for middle := low + 1; high-low > 1; middle = low + (high-low)/2 {
			*length = middle
			found, ok := o.soonest(&shorter, p)
			if !ok {
				high = middle
				continue
			}
			low, best, longest = middle, found, middle
		}
	}
	if best.pool != nil {
		*length = longest
		o.add(Shorter, &shorter, []berth.Allotment{best.allotment()})
	}
}

// shaped returns the request with another shape.
func shaped(r *berth.Request, v berth.Variant) berth.Request {
	own := &struct {
		part    [1]berth.Part
		variant [1]berth.Variant
	}{variant: [1]berth.Variant{v}}
	other := *r
	own.part[0] = r.Parts[0]
	own.part[0].Variants = own.variant[:]
	other.Parts = own.part[:]
	return other
}
