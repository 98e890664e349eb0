package place

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// siteOf returns a pool of a site, for its link and storage.
func (f *Finder) siteOf(name string) *pool {
	for i := range f.pools {
		if f.pools[i].id.Site == name {
			return &f.pools[i]
		}
	}
	panic("engine: no site " + name)
}

// Arrives returns a transfer with the given kilobytes left, now or at its beginning, and
// its end by the present forecast of the link.
func (f *Finder) Arrives(t *berth.Transfer, left int64) berth.Transfer {
	is := *t
	is.Since, is.Kilobytes = max(t.Since, f.state.Now()), left
	is.End = slot{start: is.Since, length: f.stage(f.siteOf(t.Site), is.Since, left)}.bounded().end()
	return is
}

// SpeedUp returns a transfer of a reservation that is on its way, with left kilobytes to
// move, at the rate of its link now; if squeezed, at the rate for which the uplink has
// room. fits is false if the uplink has no room.
func (f *Finder) SpeedUp(d *state.Entry, was berth.Transfer, left int64, squeezed bool) (is berth.Transfer, fits bool) {
	t := f.state.Try()
	defer t.Close()
	p, u, now := f.siteOf(was.Site), f.state.Uplink(), f.state.Now()
	at := slot{start: now, length: f.stage(p, now, left)}
	fits = true
	if at = at.bounded(); at.length < berth.Endless {
		at.n = rate(u, left, at.length)
		slot{start: was.Since, length: was.End.Sub(was.Since), n: was.Rate}.release(t, u)
		if free, _ := u.View().Free(berth.Interval{Start: now, End: at.end()}); free < at.n {
			if fits = squeezed; squeezed {
				at.length = p.delay() + berth.Duration(left+u.Amount(free)-1)/berth.Duration(u.Amount(free))
				if at = at.bounded(); at.length < berth.Endless {
					at.n = rate(u, left, at.length)
				}
			}
		}
	}
	is = was
	is.Since, is.Kilobytes, is.End, is.Rate = now, left, at.end(), at.n
	return is, fits
}

// Resend returns a transfer of a reservation that waits, without a place on the
// uplink, with the earliest one that it can have, and the reservation's stocks with
// storage for as long as that needs, nil if they stay.
func (f *Finder) Resend(d *state.Entry, was berth.Transfer) (berth.Transfer, []berth.Allotment) {
	t := f.state.Try()
	defer t.Close()
	now := f.state.Now()
	from, waits := now, was.Start > now
	var stocks []berth.Allotment
	storage := -1
	for a := range d.Stocks() {
		if a.Resource == berth.StorageID(was.Site) {
			storage = len(stocks)
		}
		stocks = append(stocks, a)
	}
	if storage >= 0 && waits {
		a := stocks[storage]
		if a.Start = max(a.Start, now); a.Start < a.End {
			t.Give(&a)
		}
		from = f.freeSince(f.state.Stock(a.Resource), a.NPE, a.End)
	}
	at := f.slot(f.siteOf(was.Site), from, was.Kilobytes)
	is := was
	if waits {
		is.Start = at.start
		if storage >= 0 {
			stocks[storage].Start = min(at.start, d.Start())
		}
	}
	is.Since, is.End, is.Rate = at.start, at.end(), at.n
	if storage < 0 || !waits {
		stocks = nil
	}
	return is, stocks
}

// release gives back what is left of it on a trial.
func (s slot) release(t *state.Trial, uplink state.Stock) {
	if a := (berth.Allotment{Resource: uplink.ID(), Start: max(s.start, t.Now()), End: s.end(), NPE: s.n}); s.n > 0 && a.Start < a.End {
		t.Give(&a)
	}
}
