package engine

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// All data leave from one centre, whose uplink all transfers may have to share
// (beyond Tang and Liao, whose transfers have their links for themselves). Then it
// is one more stock: a transfer takes the rate that its link is forecast to give
// on average while it lasts, from its start to its end, and starts when there is
// so much of the uplink (docs/adr/0010-transfers-share-the-uplink.md).

// quickest returns how long so many kilobytes take at least: the whole uplink
// may be slower than a link.
func (res *resource) quickest(kilobytes int64) berth.Duration {
	u := res.state.uplink
	if u == nil {
		return 0
	}
	return res.delay() + berth.Duration(kilobytes+u.whole()-1)/berth.Duration(u.whole())
}

// whole returns how much there is of a stock.
func (st *stock) whole() int64 { return int64(st.calendar.Size()) * st.unit }

// rate returns how much of the uplink a transfer takes.
func (st *stock) rate(kilobytes int64, length berth.Duration) berth.Count {
	return units((kilobytes+int64(length)-1)/int64(length), st.unit)
}

// turn is when a transfer has its place on the uplink. One without an end takes
// nothing.
type turn struct {
	start  berth.Time
	length berth.Duration
	n      berth.Count
}

func (t turn) end() berth.Time { return t.start.Add(t.length) }

// turn returns when data can be moved to the resource from a time on, as soon
// as the uplink has room. Where a forecast makes a transfer shorter or narrower
// later on, there may be an earlier place than the one that is found. Cost:
// O(log n) for n transfers for each rate that is tried.
func (res *resource) turn(from berth.Time, kilobytes int64) turn {
	for u := res.state.uplink; ; {
		s := turn{start: from, length: res.stage(from, kilobytes)}
		if u == nil || s.length == 0 {
			return s
		}
		if s.length < berth.TimeLimit {
			s.n = u.rate(kilobytes, s.length)
			fit, ok := calendar.Earliest(u.calendar, calendar.Query{
				Now: res.state.now, Ready: from, Deadline: berth.Forever, Duration: s.length, NPE: s.n, Horizon: calendar.Unbounded,
			})
			if ok && fit.Start == from {
				return s
			}
			if ok {
				from = fit.Start
				continue
			}
		}
		return turn{start: from, length: berth.Duration(berth.Forever)}
	}
}

// shares reports whether the data of a request have still to be moved to the
// resource over a shared uplink.
func (res *resource) shares(r *berth.Request) bool {
	s := res.state
	if s.uplink == nil || s.staging == NoStaging || r.StorageMB == 0 || r.IsJob() {
		return false
	}
	return s.placing.again == nil || !s.dataAt(s.placing.again, res.id.Site, r)
}

// earliest returns when a request can have PEs of the resource at the earliest,
// as far as its data are concerned.
func (res *resource) earliest(r *berth.Request) berth.Time {
	switch {
	case !res.shares(r):
		return res.state.now.Add(res.before(r))
	case res.state.staging == HoldWhile:
		return res.turn(res.state.now, 1000*r.StorageMB).start
	}
	return res.turn(res.state.now, 1000*r.StorageMB).end()
}

// awaits returns how long it takes from now on until the data of a request can be
// at the resource.
func (res *resource) awaits(r *berth.Request) berth.Duration {
	if !res.shares(r) {
		return res.staging(r)
	}
	return res.turn(res.state.now, 1000*r.StorageMB).end().Sub(res.state.now)
}

// transfer returns what a request takes of a shared uplink; of no stock if it
// takes nothing. Where PEs are held meanwhile it is as long as they are.
func (res *resource) transfer(r *berth.Request) take {
	if !res.shares(r) {
		return take{}
	}
	t := take{stock: res.state.uplink, n: 1, moves: res, kilobytes: 1000 * r.StorageMB}
	length := res.staging(r)
	if length < berth.TimeLimit {
		t.n = t.stock.rate(t.kilobytes, length)
	}
	if res.state.staging == HoldWhile {
		t.moves, t.length = nil, length
	}
	return t
}

// arrival returns when data are there at the earliest, if they may lie at the
// site, where there is room for them, until what starts at from has ended.
func (t *take) arrival(takes []take, from berth.Time, d berth.Duration) berth.Time {
	return t.moves.turn(t.moves.since(takes, from.Add(d)), t.kilobytes).end()
}

// since returns the first time from which on there is room for data until an
// end; now if nothing counts it.
func (res *resource) since(takes []take, end berth.Time) berth.Time {
	for i := range takes {
		if t := &takes[i]; t.stock == res.storage {
			return res.state.freeSince(t.stock.calendar, t.n, end)
		}
	}
	return res.state.now
}

// freeSince returns the first time from which on n units are free until an end;
// the end if they are not before. Cost: O(log n · log of the time until then).
func (s *state) freeSince(c calendar.Calendar, n berth.Count, end berth.Time) berth.Time {
	after := sort.Search(int(end.Sub(s.now)), func(i int) bool {
		free, _ := c.Free(berth.Interval{Start: s.now.Add(berth.Duration(i)), End: end})
		return free >= n
	})
	return s.now.Add(berth.Duration(after))
}

// sending returns what a reservation holds of the uplink for data that are on
// their way: its owner keeps that while it has no place.
func (s *state) sending(e *entry) []berth.Allotment { return s.besideUplink(e, true) }

// aside does something as if data on their way for a reservation took nothing of
// the uplink: where they go they need no other place, and whatever is sent in
// their stead takes theirs.
func (s *state) aside(e *entry, do func()) {
	own := s.sending(e)
	must(s.besides(own, s.now, calendar.Calendar.Remove))
	do()
	must(s.besides(own, s.now, calendar.Calendar.Add))
}

// movable returns what else it holds beside its PEs.
func (s *state) movable(e *entry) []berth.Allotment { return s.besideUplink(e, false) }

func (s *state) besideUplink(e *entry, sending bool) []berth.Allotment {
	at := shareOf(e.Held)
	switch {
	case at < 0 || !s.begun(e):
		if sending {
			return nil
		}
		return e.Held
	case sending:
		return e.Held[at : at+1]
	}
	return withoutShare(e.Held)
}

// shareOf returns the index of what is held of the uplink, -1 if nothing is.
func shareOf(held []berth.Allotment) int {
	return slices.IndexFunc(held, func(a berth.Allotment) bool { return a.Resource.Kind == berth.UplinkKind })
}

func withoutShare(held []berth.Allotment) []berth.Allotment {
	if shareOf(held) < 0 {
		return held
	}
	return slices.DeleteFunc(slices.Clone(held), func(a berth.Allotment) bool { return a.Resource.Kind == berth.UplinkKind })
}

// withShare returns what is held with another share of the uplink.
func (s *state) withShare(held []berth.Allotment, at turn) []berth.Allotment {
	held = withoutShare(held)
	if at.n > 0 {
		held = append(slices.Clip(held), berth.Allotment{Resource: s.uplink.id, Start: at.start, End: at.end(), NPE: at.n})
	}
	return held
}

// stage folds Staged.
func (s *state) stage(e *entry, c *Change) error {
	e.Staging = c.Staging
	if s.uplink == nil {
		return nil
	}
	if err := s.besides(e.Held, s.now, calendar.Calendar.Remove); err != nil {
		return fmt.Errorf("reservation %q: %w", e.Request.ID, err)
	}
	e.Held = c.Held
	if err := s.besides(e.Held, s.now, calendar.Calendar.Add); err != nil {
		return fmt.Errorf("reservation %q: %w", e.Request.ID, err)
	}
	return nil
}

// underway is a transfer that has not ended, and how much is left of it.
type underway struct {
	entry *entry
	left  int64
}

// reroute takes in that a link is faster or slower, where the uplink is shared.
// What is on its way keeps its place on the uplink and goes faster as far as
// there is room. What waits makes room for it if it must, and is sent, in the
// order of acceptance, when there is room again.
func (e *Engine) reroute(list []underway) {
	var waiting []*entry
	lift := func(d *entry) {
		waiting = append(waiting, d)
		if shareOf(d.Held) >= 0 {
			e.emit(Change{Kind: Staged, ID: d.Request.ID, Staging: d.Staging, Held: withoutShare(d.Held), entry: d})
		}
	}
	for _, t := range list {
		if !e.state.flowing(t.entry) {
			lift(t.entry) // its link is another now
		}
	}
	late := map[*entry]bool{}
	for _, t := range list {
		if d := t.entry; e.state.flowing(d) {
			late[d] = e.hasten(d, t.left, lift)
		}
	}
	slices.SortFunc(waiting, func(a, b *entry) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, d := range waiting {
		late[d] = e.send(d)
	}
	for _, t := range list {
		if late[t.entry] {
			e.postpone(t.entry)
		}
		delete(late, t.entry)
	}
	for _, d := range waiting {
		if late[d] && d.State != berth.Active {
			e.postpone(d)
		}
	}
}

// flowing reports whether data of a reservation are being moved now over a shared
// uplink.
func (s *state) flowing(e *entry) bool {
	at := shareOf(e.Held)
	return at >= 0 && e.Held[at].Start <= s.now && e.Held[at].End > s.now
}

// waits reports whether a reservation waits for its turn on the uplink.
func (s *state) waits(e *entry) bool {
	at := shareOf(e.Held)
	return at >= 0 && e.Held[at].Start > s.now
}

// hasten gives data on their way the rate that their link has now, and reports
// whether they come too late for the promise.
func (e *Engine) hasten(d *entry, left int64, lift func(*entry)) bool {
	res, u, now := e.resourceOf(d.Allotments[0].Resource), e.state.uplink, e.state.now
	at := turn{start: now, length: res.stage(now, left)}
	room := func() (free berth.Count) {
		e.state.aside(d, func() { free, _ = u.calendar.Free(berth.Interval{Start: now, End: at.end()}) })
		return free
	}
	if at.length < berth.TimeLimit {
		at.n = u.rate(left, at.length)
		if room() < at.n {
			for _, w := range e.state.ledger.inOrder() {
				if e.state.waits(w) {
					lift(w)
				}
			}
			// Only what is on its way is left, and that only ends.
			if free := room(); free < at.n {
				at.length = res.delay() + berth.Duration(left+int64(free)*u.unit-1)/berth.Duration(int64(free)*u.unit)
				at.n = u.rate(left, at.length)
			}
		}
	} else {
		at.length = berth.Duration(berth.Forever)
	}
	s := *d.Staging
	if s.Since, s.Kilobytes, s.End = now, left, at.end(); s.End == d.Staging.End {
		return false
	}
	e.emit(Change{Kind: Staged, ID: d.Request.ID, Staging: &s, Held: e.state.withShare(d.Held, at), entry: d})
	return s.End > d.Start()
}

// send gives data that wait a place on the uplink, and reports whether they come
// too late for the promise.
func (e *Engine) send(d *entry) bool {
	res := e.resourceOf(d.Allotments[0].Resource)
	s, held := *d.Staging, slices.Clone(d.Held)
	from, waits := e.state.now, s.Start > e.state.now
	storage := storageOf(held)
	if storage >= 0 && waits {
		a := slices.Clone(held[storage : storage+1])
		must(e.state.besides(a, e.state.now, calendar.Calendar.Remove))
		from = e.state.freeSince(e.state.calendar(a[0].Resource), a[0].NPE, a[0].End)
		must(e.state.besides(a, e.state.now, calendar.Calendar.Add))
	}
	at := res.turn(from, s.Kilobytes)
	if waits {
		s.Start = at.start
		if storage >= 0 {
			held[storage].Start = min(at.start, d.Start())
		}
	}
	s.Since, s.End = at.start, at.end()
	e.emit(Change{Kind: Staged, ID: d.Request.ID, Staging: &s, Held: e.state.withShare(held, at), entry: d})
	return s.End > d.Start()
}

func storageOf(held []berth.Allotment) int {
	return slices.IndexFunc(held, func(a berth.Allotment) bool { return a.Resource.Kind == berth.StorageKind })
}
