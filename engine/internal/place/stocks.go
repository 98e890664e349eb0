package place

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// Stocks that a promise takes beside PEs at each of its sites: licences of its program
// while it runs, storage for its data, and a share of the uplink while data are moved.
// Each is a renewable resource with a calendar of its own (beyond Tang and Liao, who
// compare licences with what a site has and count storage free at the moment).
// Ordinary jobs take no stocks, and do not run where a stock that they need is counted.

// take is what a request would take of a stock: n units while it runs, and for the
// lead before.
type take struct {
	stock state.Stock
	n     berth.Count
	lead  berth.Duration
	// length, if not 0, is for how long from the start on it is taken.
	length berth.Duration
	// fromNow says that it is taken from now on, since data are there.
	fromNow bool
	// moves, if not nil, is the pool to which kilobytes are moved before the start. The
	// rate depends on the time of the transfer, and n is its rate from now on.
	moves     *pool
	kilobytes int64
	// share, if not nil, is taken from instead of a stock.
	share *share
	// budgets, if not nil, is the pool in which an area is charged to a month instead.
	budgets *pool
	area    int64
}

// takes returns what a request takes at the site of a pool that has what it
// requires. Its data are there before it starts if they are moved.
func (x *search) takes(p *pool) []take {
	r := x.r
	if r.Licences == 0 && r.StorageMB == 0 || r.IsJob() {
		return nil
	}
	var list []take
	if r.Licences > 0 { // which no request has without a program
		if i := x.program(p.siteAt); i >= 0 {
			if licences := x.state.Licences(p.siteAt, int(i)); licences.Counted() {
				list = append(list, take{stock: licences, n: licences.Units(int64(r.Licences))})
			}
		}
	}
	if storage := x.state.Storage(p.siteAt); storage.Counted() && r.StorageMB > 0 {
		t := take{stock: storage, n: storage.Units(r.StorageMB)}
		_, there := x.underway(p)
		switch {
		case there:
			t.fromNow = true
		case !x.state.Uplink().Counted():
			t.lead = x.transferBefore(p) // else it is needed from whenever they are moved
		}
		list = append(list, t)
	}
	if moved := x.transfer(p); moved.stock.Counted() {
		list = append(list, moved)
	}
	return list
}

// withStocks returns a fit at which the stocks suffice too: the given fit if they do,
// else the earliest fit of the same length, whatever the placement.
func (x *search) withStocks(view state.View, takes []take, q calendar.Query, fit calendar.Fit, ok bool) (calendar.Fit, bool) {
	for first := true; ok && len(takes) > 0; first = false {
		start, possible := x.stocked(takes, q, fit.Start)
		if possible && start == fit.Start {
			return fit, true
		}
		if first { // stocks are short where the placement chose; begin with the earliest
			start, possible = x.stocked(takes, q, q.Ready)
		}
		if !possible {
			return fit, false
		}
		q.Ready = start
		fit, ok = view.Earliest(q)
	}
	return fit, ok
}

// stocked returns the earliest start from a time on at which every stock suffices; false
// if there is no such start by the query's deadline.
func (x *search) stocked(takes []take, q calendar.Query, from berth.Time) (berth.Time, bool) {
	for agreed := 0; agreed < len(takes); {
		for i := range takes {
			t := &takes[i]
			if t.share != nil {
				if at := t.share.from(from, t.n, q.Duration); at > from {
					from, agreed, x.bound = at, 0, true
				}
				if agreed++; from.Add(q.Duration) > q.Deadline {
					return 0, false
				}
				continue
			}
			if t.budgets != nil {
				if at := x.monthFrom(t.budgets, t.area, from); at > from {
					from, agreed, x.bound = at, 0, true
				}
				if agreed++; from.Add(q.Duration) > q.Deadline {
					return 0, false
				}
				continue
			}
			if t.moves != nil {
				if at := x.arrivalOf(t, takes, from, q.Duration); at > from {
					from, agreed = at, 0
				}
				if agreed++; from.Add(q.Duration) > q.Deadline {
					return 0, false
				}
				continue
			}
			if t.fromNow {
				free, _ := t.stock.View().Free(berth.Interval{Start: x.state.Now(), End: from.Add(q.Duration)})
				if agreed++; free < t.n {
					return 0, false
				}
				continue
			}
			length := q.Duration + t.lead
			if t.length > 0 {
				length = t.length
			}
			of := calendar.Query{
				Now: q.Now, Ready: max(from.Add(-t.lead), q.Now), Deadline: q.Deadline, Duration: length, NPE: t.n, Horizon: calendar.Unbounded,
			}
			fit, ok := t.stock.View().Earliest(of)
			if !ok {
				return 0, false
			}
			if start := fit.Start.Add(t.lead); start > from {
				from, agreed = start, 0
			}
			agreed++
		}
	}
	return from, true
}

// atSite is what a request of several parts has at one site.
type atSite struct {
	pool *pool      // of the first part there
	end  berth.Time // of the last part there
}

// sites returns the sites of allotments, each once, in the order of the parts.
func (f *Finder) sites(allotments []berth.Allotment) []atSite {
	list := make([]atSite, 0, 1)
next:
	for i := range allotments {
		a := &allotments[i]
		for k := range list {
			if list[k].pool.id.Site == a.Resource.Site {
				list[k].end = max(list[k].end, a.End)
				continue next
			}
		}
		list = append(list, atSite{f.poolOf(a.Resource), a.End})
	}
	return list
}

// stockedFrom returns the earliest common start, not before from, at which the stocks of
// every site suffice for the request.
func (x *search) stockedFrom(t *state.Trial, allotments []berth.Allotment, from berth.Time) (berth.Time, bool) {
	sites := x.sites(allotments)
	if !x.uplinkCarries(sites) {
		return 0, false
	}
	mark := t.Mark()
	defer t.Undo(mark)
	for again := true; again; {
		again = false
		t.Undo(mark)
		x.keepUnderway(t, sites)
		for _, site := range sites {
			takes := x.takes(site.pool)
			if len(takes) == 0 {
				continue
			}
			q := calendar.Query{
				Now: x.state.Now(), Ready: max(from, x.arrival(site.pool)), Deadline: x.deadline, Duration: site.end.Sub(allotments[0].Start),
			}
			start, ok := q.Ready, q.Ready.Add(q.Duration) <= q.Deadline
			if ok {
				start, ok = x.stocked(takes, q, start)
			}
			if !ok {
				return 0, false
			}
			if start > from {
				from, again = start, true
				break
			}
			if len(sites) > 1 {
				x.bookTransfer(t, site.pool, takes, from, q.Duration)
			}
		}
	}
	return from, true
}

// uplinkCarries reports whether the uplink carries the data for all sites at once,
// where PEs are held meanwhile, so that all are sent at the common start.
func (x *search) uplinkCarries(sites []atSite) bool {
	if x.staging() != Hold || len(sites) < 2 {
		return true
	}
	units := int64(0)
	for _, site := range sites {
		if tk := x.transfer(site.pool); tk.length > 0 {
			units += int64(tk.n)
		}
	}
	u := x.state.Uplink()
	return !u.Counted() || units <= int64(u.View().Size())
}

// keepUnderway books the uplink shares of transfers that stay on their way to some of
// the sites, so that transfers to the other sites are placed beside them.
func (x *search) keepUnderway(t *state.Trial, sites []atSite) {
	if len(sites) < 2 || !x.shares() {
		return
	}
	for _, site := range sites {
		if moved, there := x.underway(site.pool); there {
			slot{start: moved.Since, length: moved.End.Sub(moved.Since), n: moved.Rate}.book(t, x.state.Uplink())
		}
	}
}

// bookTransfer books the uplink share of the transfer to one site of a request, so that
// transfers to its other sites are placed beside it.
func (x *search) bookTransfer(t *state.Trial, p *pool, takes []take, start berth.Time, d berth.Duration) {
	for i := range takes {
		switch tk := &takes[i]; {
		case tk.moves != nil:
			slot := x.slot(p, x.since(p, takes, start.Add(d)), tk.kilobytes)
			slot.book(t, x.state.Uplink())
		case tk.length > 0:
			slot{start: start, length: tk.length, n: tk.n}.book(t, x.state.Uplink())
		}
	}
}

// scarce returns the stock that keeps a request from a pool that has the PEs: the
// first that is short by itself, else the first; nil if it is the PEs.
func (x *search) scarce(p *pool, q calendar.Query) *take {
	takes := x.takes(p)
	if u := x.state.Uplink(); u.Counted() && q.Ready.Add(q.Duration) > q.Deadline { // alone on the uplink it would meet the deadline
		return &take{stock: u, n: u.View().Size()}
	}
	if len(takes) == 0 {
		return nil
	}
	if _, ok := x.view(p).Find(q, x.Placement); !ok {
		return nil
	}
	for i := range takes {
		if _, ok := x.stocked(takes[i:i+1], q, q.Ready); !ok {
			return &takes[i]
		}
	}
	return &takes[0]
}

// complete returns the place of allotments with the stocks of the request at each site
// and its transfers: data are moved at once if there is storage for them, else just in
// time. Transfers on their way to the same site are kept.
func (x *search) complete(t *state.Trial, allotments []berth.Allotment) Place {
	place := Place{Allotments: allotments}
	place.Terms = berth.Terms{Extended: x.extended, Deadline: x.deadline, Variants: make([]berth.Variant, len(allotments))}
	if x.again != nil {
		was := x.again.Terms()
		place.Terms.Delay, place.Terms.Idle = was.Delay, was.Idle
	}
	for part := range allotments {
		place.Terms.Variants[part] = x.chosen(part, &allotments[part])
	}
	if x.r.Licences == 0 && x.r.StorageMB == 0 || x.r.IsJob() {
		return place
	}
	mark := t.Mark()
	defer t.Undo(mark)
	sites := x.sites(allotments)
	x.keepUnderway(t, sites)
	for _, site := range sites {
		stocks, transfer := x.beside(t, site.pool, allotments[0].Start, site.end)
		place.Stocks = append(place.Stocks, stocks...)
		if transfer != nil {
			place.Transfers = append(place.Transfers, *transfer)
		}
	}
	return place
}

// chosen returns the variant of a part that an allotment has, in standard seconds: the longest that is no longer, since
// parts of one request at a managed site end together.
func (x *search) chosen(part int, a *berth.Allotment) berth.Variant {
	var best, at berth.Variant
	p, lasts := x.poolOf(a.Resource), a.End.Sub(a.Start)
	for _, v := range x.variants(part) {
		if on := x.scaled(p, v); on.NPE == a.NPE && on.Duration <= lasts && on.Duration > at.Duration {
			best, at = v, on
		}
	}
	if at.Duration == lasts || at.NPE > 0 && len(x.r.Parts) > 1 && p.site.Managed {
		return best
	}
	panic("engine: a part was placed in a shape that it does not have")
}

// beside returns the stocks that a request takes at a site, where it runs from a start
// to an end, and the transfer of its data, nil without one.
func (x *search) beside(t *state.Trial, p *pool, start, end berth.Time) ([]berth.Allotment, *berth.Transfer) {
	now := x.state.Now()
	var stocks []berth.Allotment
	storage := -1
	for _, tk := range x.takes(p) {
		if tk.moves != nil || tk.length > 0 {
			continue // of the uplink
		}
		if tk.stock.ID().Kind == berth.StorageKind {
			storage = len(stocks)
		}
		stocks = append(stocks, berth.Allotment{Resource: tk.stock.ID(), Start: max(start.Add(-tk.lead), now), End: end, NPE: tk.n})
	}
	if transfer, there := x.underway(p); there {
		if storage >= 0 {
			stocks[storage].Start = min(stocks[storage].Start, max(transfer.Start, now))
		}
		return stocks, &transfer
	}
	length := x.transferTime(p)
	if length == 0 {
		return stocks, nil
	}
	at := slot{start: now, length: length}
	switch {
	case x.staging() == Hold:
		at.start = start
		if x.shares() {
			at.n = x.transfer(p).n
		}
	case x.shares():
		from := now
		if storage >= 0 {
			a := &stocks[storage]
			from = x.freeSince(x.state.Stock(a.Resource), a.NPE, a.End)
		}
		at = x.slot(p, from, 1000*x.r.StorageMB)
		if storage >= 0 {
			stocks[storage].Start = min(stocks[storage].Start, at.start)
		}
	case storage >= 0:
		a := &stocks[storage]
		if free, _ := x.state.Stock(a.Resource).View().Free(berth.Interval{Start: now, End: a.Start}); now < a.Start && free >= a.NPE {
			a.Start = now
		}
		at.start = a.Start
	}
	at.book(t, x.state.Uplink())
	return stocks, &berth.Transfer{
		Site: p.id.Site, Start: at.start, End: at.end(), Since: at.start, Kilobytes: 1000 * x.r.StorageMB, Rate: at.n,
	}
}
