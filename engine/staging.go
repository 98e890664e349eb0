package engine

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/place"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// Staging says what becomes of PEs while data are on their way.
type Staging string

// The modes.
const (
	StagingNone   Staging = ""       // data are not considered
	StagingBefore Staging = "before" // PEs are promised from when the data have arrived
	StagingHold   Staging = "hold"   // PEs are held from the beginning of the transfer (Tang and Liao)
)

// Stagings lists the modes.
func Stagings() []Staging { return []Staging{StagingNone, StagingBefore, StagingHold} }

// transfer is data of a reservation that have not arrived at a site, and the amount that
// is left to move.
type transfer struct {
	entry *state.Entry
	site  string
	left  int64
}

// current returns the transfer as it is now.
func (t *transfer) current() berth.Transfer {
	for x := range t.entry.Transfers() {
		if x.Site == t.site {
			return x
		}
	}
	panic("engine: a reservation without the transfer that it had")
}

// updateForecast takes in a forecast: transfers to the site arrive at another time.
// Promises whose data come too late are placed again in their windows or, without room,
// stay and wait for their data. Over a link whose speed was not known data count as there at once, so
// that a first forecast changes promises of tasks alone, which move their data when they start.
func (e *Engine) updateForecast(f *berth.Forecast) error {
	if err := f.Validate(); err != nil {
		return err
	}
	if !slices.ContainsFunc(e.config.Sites, func(s berth.Site) bool { return s.Name == f.Site }) {
		return berth.Errorf(berth.NotFound, "site", "no site %q", f.Site)
	}
	var list []transfer
	comes := func(x *berth.Transfer) bool { return x.Site == f.Site && x.End > e.state.Now() }
	waits := func(d *state.Entry) bool { // few do of all, which are put in order
		r := d.Look()
		if r.State == berth.Active || r.Request.Task != nil {
			return false
		}
		for i := range r.Transfers {
			if comes(&r.Transfers[i]) {
				return true
			}
		}
		return false
	}
	for _, d := range e.state.Select(waits) {
		for x := range d.Transfers() {
			if comes(&x) {
				list = append(list, transfer{d, x.Site, max(1, x.Kilobytes-e.movedOf(&x))})
			}
		}
	}
	e.emit(change.Change{Kind: change.Forecasted, Forecast: f.Clone()})
	moved := false
	switch {
	case !e.state.Uplink().Counted():
		for i := range list {
			if t := &list[i]; e.arrives(t) {
				moved = e.postpone(t) || moved
			}
		}
	case e.settings.rules.Staging == place.Before: // else a transfer is as long as PEs are held for it
		moved = e.reroute(list)
	}
	e.forecastTasks(f.Site)
	e.repair(nil) // data may arrive in time now where there are more PEs
	if moved {
		e.retry()
	}
	return nil
}

// forecastTasks takes in that data take another time to a site now, for tasks of workflows that
// have not started: those that would be late get more time where that is free, or another place.
func (e *Engine) forecastTasks(site string) {
	for _, f := range slices.Clone(e.state.Flows()) {
		if len(f.Workflow().Routes) > 0 && e.state.Flow(f.ID()) == f {
			e.mendWith(f, &repair{engine: e, f: f, moved: make([]bool, len(f.Workflow().Tasks)), slower: site})
		}
	}
}

// movedOf returns the amount of a transfer that is expected to be moved by now.
func (e *Engine) movedOf(t *berth.Transfer) int64 {
	now := e.state.Now()
	f := e.state.Forecast(t.Site)
	switch {
	case t.Since >= now:
		return 0
	case f != nil && !e.state.Uplink().Counted(): // a share of the uplink is the same throughout
		return f.Moved(now) - f.Moved(t.Since)
	}
	high, low := bits.Mul64(uint64(t.Kilobytes), uint64(now-t.Since))
	done, _ := bits.Div64(high, low, uint64(t.End-t.Since)) // less than all, since it has not ended
	return int64(done)
}

// arrives updates the end of a transfer, and reports whether it is too late for the
// promise.
func (e *Engine) arrives(t *transfer) (late bool) {
	was := t.current()
	is := e.finder.Arrives(&was, t.left)
	if is.End == was.End {
		return false
	}
	e.stage(t, is, nil)
	return e.settings.rules.Staging != place.Hold && is.End > t.entry.Start()
}

// stage emits that data are moved in another way.
func (e *Engine) stage(t *transfer, is berth.Transfer, stocks []berth.Allotment) {
	var transfers []berth.Transfer
	for x := range t.entry.Transfers() {
		if x.Site == t.site {
			x = is
		}
		transfers = append(transfers, x)
	}
	e.emitOf(t.entry, change.Change{Kind: change.Staged, Transfers: transfers, Stocks: stocks})
}

// postpone places a promise again whose data come too late, and reports whether it has another
// place. What it gives up is for others once all that are too late have their places: a promise
// that got another one meanwhile would be taken for late there.
func (e *Engine) postpone(t *transfer) bool {
	d := t.entry
	found, refusal := e.finder.Place(place.Want{Again: d})
	if refusal != nil {
		a, is := d.Part(0), t.current()
		e.emitOf(d, change.Change{Kind: change.ChangeRefused, Refusal: &berth.Refusal{
			Reason: berth.DeadlineMissed, Resource: a.Resource, Wanted: a.NPE, Possible: is.End.Add(d.End().Sub(d.Start())),
		}})
		return false
	}
	e.move(d, &found)
	return true
}

// reroute takes in a new speed of a link, where the uplink is shared, and reports whether a
// promise has another place. A transfer on its
// way keeps its place on the uplink and goes faster if there is room. Waiting
// transfers make room for it if necessary, and are sent, in the order of acceptance,
// when there is room again.
func (e *Engine) reroute(list []transfer) (moved bool) {
	var waiting []*transfer
	lift := func(t *transfer) {
		waiting = append(waiting, t)
		if was := t.current(); was.Rate > 0 {
			was.Rate = 0
			e.stage(t, was, nil)
		}
	}
	for i := range list {
		if t := &list[i]; !e.flowing(t) {
			lift(t) // its link has another speed now
		}
	}
	late := map[*transfer]bool{}
	for i := range list {
		if t := &list[i]; e.flowing(t) {
			late[t] = e.speedUp(t, lift)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *transfer) int { return cmp.Compare(a.entry.Sequence(), b.entry.Sequence()) })
	for _, t := range waiting {
		is, stocks := e.finder.Resend(t.entry, t.current())
		e.stage(t, is, stocks)
		late[t] = is.End > t.entry.Start()
	}
	done := map[*state.Entry]bool{}
	all := make([]*transfer, 0, len(list)+len(waiting))
	for i := range list {
		all = append(all, &list[i])
	}
	for _, t := range append(all, waiting...) {
		if late[t] && !done[t.entry] && t.entry.State() != berth.Active {
			done[t.entry] = true
			moved = e.postpone(t) || moved
		}
	}
	return moved
}

// flowing reports whether data are being moved now over a shared uplink.
func (e *Engine) flowing(t *transfer) bool {
	is, now := t.current(), e.state.Now()
	return is.Rate > 0 && is.Since <= now && is.End > now
}

// speedUp gives a transfer on its way the rate of its link now, and reports whether it
// is too late for the promise. Waiting transfers are lifted off the uplink if there is
// not enough room beside them.
func (e *Engine) speedUp(t *transfer, lift func(*transfer)) (late bool) {
	was := t.current()
	is, fits := e.finder.SpeedUp(t.entry, was, t.left, false)
	if !fits {
		for _, d := range e.state.Entries() {
			for x := range d.Transfers() {
				switch {
				case x.Rate == 0 || x.Since <= e.state.Now():
				case d.Request().Task == nil:
					lift(&transfer{entry: d, site: x.Site})
				case !d.Vacant(): // it moves its data at its start, so it makes room with its PEs
					e.emitOf(d, change.Change{Kind: change.Vacated})
				}
			}
		}
		// The rest of the uplink's load is transfers on their way, which only end.
		is, _ = e.finder.SpeedUp(t.entry, was, t.left, true)
	}
	if is.End == was.End {
		return false
	}
	e.stage(t, is, nil)
	return is.End > t.entry.Start()
}
