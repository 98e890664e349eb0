package place

import (
	"sort"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// Data are moved to a site before what needs them starts there (Tang and Liao,
// equations 2 and 6). How long that takes is forecast for each site; without a
// forecast it follows from the site's link. Ordinary jobs wait for no data.
//
// All data leave from one centre, whose uplink all transfers may have to share
// (beyond Tang and Liao, whose transfers have their links for themselves). Then it
// is one more stock: a transfer takes the rate that its link is forecast to give on
// average while it lasts, from its start to its end, and starts when the uplink has that
// rate free (docs/adr/0010-transfers-share-the-uplink.md).

// stage returns how long a transfer to a pool takes from a time on.
func (f *Finder) stage(p *pool, from berth.Time, kilobytes int64) berth.Duration {
	if kilobytes == 0 {
		return 0
	}
	return max(f.alone(p, from, kilobytes), f.quickest(p, kilobytes))
}

// alone returns how long the transfer takes if only the link limits it.
func (f *Finder) alone(p *pool, from berth.Time, kilobytes int64) berth.Duration {
	link, delay := &p.site.Link, p.delay()
	forecast := f.state.Forecast(p.id.Site)
	switch {
	case forecast != nil:
		d := forecast.Takes(from, kilobytes)
		return min(d, berth.Endless-delay) + delay
	case link.KilobytesPerSecond == 0:
		return delay // link speed unknown: count the delay only
	}
	return delay + berth.Duration((kilobytes+link.KilobytesPerSecond-1)/link.KilobytesPerSecond)
}

func (p *pool) delay() berth.Duration { return berth.Duration(p.site.Link.DelayMS+999) / 1000 }

// quickest returns how long the transfer takes with the whole uplink, which may be
// slower than the link.
func (f *Finder) quickest(p *pool, kilobytes int64) berth.Duration {
	u := f.state.Uplink()
	if !u.Counted() {
		return 0
	}
	whole := u.Amount(u.View().Size())
	return p.delay() + berth.Duration(kilobytes+whole-1)/berth.Duration(whole)
}

// moves reports whether a request has data that are moved.
func (x *search) moves() bool {
	return x.staging() != NoStaging && x.r.StorageMB != 0 && !x.r.IsJob()
}

// underway returns the transfer of the same data to the site of a pool that has
// begun, or is over, for the promise that is placed again. A task that has not started has moved
// nothing.
func (x *search) underway(p *pool) (t berth.Transfer, ok bool) {
	if x.again == nil || x.r.Task != nil || x.again.Request().StorageMB != x.r.StorageMB {
		return t, false
	}
	for t := range x.again.Transfers() {
		if t.Site == p.id.Site && t.Start <= x.state.Now() {
			return t, true
		}
	}
	return t, false
}

// transferTime returns how long the data of a request take to a pool from now on, or
// what is left of that if they are on their way there.
func (x *search) transferTime(p *pool) berth.Duration {
	if !x.moves() {
		return 0
	}
	if t, there := x.underway(p); there {
		return max(0, t.End.Sub(x.state.Now()))
	}
	return x.stage(p, x.state.Now(), 1000*x.r.StorageMB)
}

// transferBefore returns for how long from now on a request waits for its data
// before it gets PEs of a pool.
func (x *search) transferBefore(p *pool) berth.Duration {
	if x.staging() != Before {
		return 0
	}
	return x.transferTime(p)
}

// shares reports whether the data of a request are moved over a shared uplink.
func (x *search) shares() bool { return x.state.Uplink().Counted() && x.moves() }

// sharesTo reports whether they still have to be moved to a pool over the uplink.
func (x *search) sharesTo(p *pool) bool {
	if !x.shares() {
		return false
	}
	_, there := x.underway(p)
	return !there
}

// arrival returns the earliest time at which a request can have PEs of a pool, by the
// arrival of its data.
func (x *search) arrival(p *pool) berth.Time {
	now := x.state.Now()
	switch {
	case !x.sharesTo(p):
		return now.Add(x.transferBefore(p))
	case x.staging() == Hold:
		return x.slot(p, now, 1000*x.r.StorageMB).start
	}
	return x.slot(p, now, 1000*x.r.StorageMB).end()
}

// awaits returns how long it takes from now on until the data of a request can be at
// a pool.
func (x *search) awaits(p *pool) berth.Duration {
	if !x.sharesTo(p) {
		return x.transferTime(p)
	}
	now := x.state.Now()
	return x.slot(p, now, 1000*x.r.StorageMB).end().Sub(now)
}

// slot is the place of a transfer on the uplink: its time and its units. A slot without
// an end takes no units.
type slot struct {
	start  berth.Time
	length berth.Duration
	n      berth.Count
}

func (s slot) end() berth.Time { return s.start.Add(s.length) }

// bounded returns it without an end, and of no units, if it ends beyond the limit of
// time.
func (s slot) bounded() slot {
	if !s.end().Valid() {
		return slot{start: s.start, length: berth.Endless}
	}
	return s
}

// book takes what is left of it on a trial.
func (s slot) book(t *state.Trial, uplink state.Stock) {
	if s.n > 0 {
		a := berth.Allotment{Resource: uplink.ID(), Start: max(s.start, t.Now()), End: s.end(), NPE: s.n}
		if a.Start < a.End {
			t.Book(&a)
		}
	}
}

// slot returns when data can be moved to a pool from a time on, as soon as the
// uplink has room. Where a forecast makes a transfer shorter or narrower later on,
// there may be an earlier place than the one that is found. Cost: O(log n) for n
// transfers for each rate that is tried.
func (f *Finder) slot(p *pool, from berth.Time, kilobytes int64) slot {
	for u := f.state.Uplink(); ; {
		s := slot{start: from, length: f.stage(p, from, kilobytes)}.bounded()
		if !u.Counted() || s.length == 0 {
			return s
		}
		if s.length < berth.Endless {
			s.n = rate(u, kilobytes, s.length)
			fit, ok := u.View().Earliest(calendar.Query{
				Now: f.state.Now(), Ready: from, Deadline: berth.Forever, Duration: s.length, NPE: s.n, Horizon: calendar.Unbounded,
			})
			if ok && fit.Start == from {
				return s
			}
			if ok {
				from = fit.Start
				continue
			}
		}
		return slot{start: from, length: berth.Endless}
	}
}

// rate returns how many units of the uplink a transfer takes: one if it is endless.
func rate(u state.Stock, kilobytes int64, length berth.Duration) berth.Count {
	return u.Units((kilobytes + int64(length) - 1) / int64(length))
}

// transfer returns what a request takes of a shared uplink for its transfer to a pool;
// the zero take if it takes nothing. Where PEs are held meanwhile, both last as long.
func (x *search) transfer(p *pool) take {
	if !x.sharesTo(p) {
		return take{}
	}
	t := take{stock: x.state.Uplink(), moves: p, kilobytes: 1000 * x.r.StorageMB}
	length := x.transferTime(p)
	t.n = rate(t.stock, t.kilobytes, length)
	if x.staging() == Hold {
		t.moves, t.length = nil, length
	}
	return t
}

// arrivalOf returns the earliest arrival of data that need storage at the site until the
// request, which starts at from and lasts d, has ended.
func (x *search) arrivalOf(t *take, takes []take, from berth.Time, d berth.Duration) berth.Time {
	return x.slot(t.moves, x.since(t.moves, takes, from.Add(d)), t.kilobytes).end()
}

// since returns the first time from which on there is storage for data until an end;
// now if it is not counted.
func (x *search) since(p *pool, takes []take, end berth.Time) berth.Time {
	storage := x.state.Storage(p.siteAt)
	for i := range takes {
		if t := &takes[i]; storage.Counted() && t.stock == storage {
			return x.freeSince(storage, t.n, end)
		}
	}
	return x.state.Now()
}

// freeSince returns the first time from which on n units are free until an end; the
// end if they are not before. Cost: O(log n · log of the time until then).
func (f *Finder) freeSince(st state.Stock, n berth.Count, end berth.Time) berth.Time {
	now, view := f.state.Now(), st.View()
	after := sort.Search(int(end.Sub(now)), func(i int) bool {
		free, _ := view.Free(berth.Interval{Start: now.Add(berth.Duration(i)), End: end})
		return free >= n
	})
	return now.Add(berth.Duration(after))
}
