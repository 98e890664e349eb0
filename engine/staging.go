package engine

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"sort"

	"github.com/berth-hpc/berth"
)

// Data are moved to a site before what needs them starts there (Tang and Liao,
// equations 2 and 6). How long that takes is forecast for each site; without a
// forecast it follows from the site's link. Ordinary jobs wait for no data.

// Staging says what becomes of PEs while data are on their way.
type Staging string

// The ways.
const (
	NoStaging     Staging = ""       // data are not thought of
	StageBefore   Staging = "before" // PEs are promised from when the data have arrived
	HoldWhile     Staging = "hold"   // PEs are held from the beginning of the transfer (Tang and Liao)
	maxPeriod             = 1 << 20
	maxPeriods            = 1 << 20
	maxPeriodSize         = int64(1) << 42
)

// Stagings lists the ways.
func Stagings() []Staging { return []Staging{NoStaging, StageBefore, HoldWhile} }

// Forecast is how much data can be moved to a site from a time on.
type Forecast struct {
	Site   string         `json:"site"`
	From   berth.Time     `json:"from"`
	Period berth.Duration `json:"period"`
	// Kilobytes is how many thousand bytes will have been moved by the end of
	// each period, from the first on. Behind the last period it goes on as in it.
	Kilobytes []int64 `json:"kilobytes"`
}

func (f *Forecast) validate() error {
	switch {
	case f == nil:
		return berth.Errorf(berth.Invalid, "forecast", "missing")
	case !f.From.Valid():
		return berth.Errorf(berth.Invalid, "from", "%d is beyond ±2^42 s", f.From)
	case f.Period < 1 || f.Period > maxPeriod:
		return berth.Errorf(berth.Invalid, "period", "%d s; want 1 to 2^20", f.Period)
	case len(f.Kilobytes) == 0 || len(f.Kilobytes) > maxPeriods:
		return berth.Errorf(berth.Invalid, "kilobytes", "of %d periods; want 1 to 2^20", len(f.Kilobytes))
	}
	before := int64(0)
	for i, n := range f.Kilobytes {
		if n < before || n-before > maxPeriodSize {
			return berth.Errorf(berth.Invalid, "kilobytes", "%d at the end of period %d, %d before; they grow by 0 to 2^42 a period", n, i+1, before)
		}
		before = n
	}
	return nil
}

// by returns the kilobytes moved by the end of the first i periods.
func (f *Forecast) by(i int) int64 {
	if i == 0 {
		return 0
	}
	return f.Kilobytes[i-1]
}

// rate returns the kilobytes of the last period.
func (f *Forecast) rate() int64 { return f.by(len(f.Kilobytes)) - f.by(len(f.Kilobytes)-1) }

// moved returns the kilobytes moved between From and a time, rounded down.
func (f *Forecast) moved(until berth.Time) int64 {
	past := max(0, int64(until-f.From))
	whole, part, p := past/int64(f.Period), past%int64(f.Period), int64(f.Period)
	n := int64(len(f.Kilobytes))
	step := f.rate()
	if whole < n {
		step = f.by(int(whole)+1) - f.by(int(whole))
		return f.by(int(whole)) + step*part/p
	}
	if step > 0 && whole-n > int64(berth.MaxMegabytes)*1000/step {
		return berth.MaxMegabytes * 1000 // more than anybody has
	}
	return f.by(int(n)) + step*(whole-n) + step*part/p
}

// takes returns how long kilobytes take from a time on, the last period counted
// pro rata and rounded up to a second; Forever if they never arrive. Cost:
// O(log n) for n periods.
func (f *Forecast) takes(from berth.Time, kilobytes int64) berth.Duration {
	target, p, n := f.moved(from)+kilobytes, int64(f.Period), len(f.Kilobytes)
	i := sort.Search(n, func(i int) bool { return f.Kilobytes[i] >= target })
	var at int64 // since From
	switch step := f.rate(); {
	case i < n:
		step = f.by(i+1) - f.by(i)
		at = int64(i)*p + (max(0, target-f.by(i))*p+max(1, step)-1)/max(1, step)
	case step == 0:
		return berth.Duration(berth.Forever)
	default:
		rest := target - f.by(n)
		at = int64(n)*p + rest/step*p + (rest%step*p+step-1)/step
	}
	return max(0, f.From.Add(berth.Duration(at)).Sub(from))
}

// stage returns how long so many kilobytes take to a resource from a time on.
func (res *resource) stage(from berth.Time, kilobytes int64) berth.Duration {
	if kilobytes == 0 {
		return 0
	}
	return max(res.alone(from, kilobytes), res.quickest(kilobytes))
}

// alone returns the same of the link alone.
func (res *resource) alone(from berth.Time, kilobytes int64) berth.Duration {
	link, delay := &res.site.Link, res.delay()
	switch {
	case res.forecast != nil:
		d := res.forecast.takes(from, kilobytes)
		return min(d, berth.Duration(berth.Forever)-delay) + delay
	case link.KilobytesPerSecond == 0:
		return delay // how fast it is nobody knows
	}
	return delay + berth.Duration((kilobytes+link.KilobytesPerSecond-1)/link.KilobytesPerSecond)
}

func (res *resource) delay() berth.Duration {
	return berth.Duration(res.site.Link.DelayMS+999) / 1000
}

// staging returns how long the data of a request take to a resource from now on,
// or what is left of that if they are on their way there.
func (res *resource) staging(r *berth.Request) berth.Duration {
	if res.state.staging == NoStaging || r.StorageMB == 0 || r.IsJob() {
		return 0
	}
	if d := res.state.placing.again; d != nil && res.state.dataAt(d, res.id.Site, r) {
		return max(0, d.Staging.End.Sub(res.state.now))
	}
	return res.stage(res.state.now, 1000*r.StorageMB)
}

// begun reports whether the data of a reservation are on their way, or there.
// What has not begun may be sent elsewhere instead, or at another time.
func (s *state) begun(e *entry) bool { return e.Staging != nil && e.Staging.Start <= s.now }

// dataAt reports whether the data of a request are at a site, or on their way
// there, for the sake of a reservation.
func (s *state) dataAt(e *entry, site string, r *berth.Request) bool {
	return s.begun(e) && e.Allotments[0].Resource.Site == site && e.Request.StorageMB == r.StorageMB
}

// before returns for how long from now on a request waits for its data before it
// gets PEs of a resource.
func (res *resource) before(r *berth.Request) berth.Duration {
	if res.state.staging != StageBefore {
		return 0
	}
	return res.staging(r)
}

// further returns what a request has beside the allotments that it gets: what it
// takes of stocks, and when its data are moved, at once if there is room for
// them and else just in time. d is the promise about it, nil if there is none
// yet: data on their way to the same site stay on it.
func (e *Engine) further(d *entry, r *berth.Request, allotments []berth.Allotment) ([]berth.Allotment, *berth.Staging) {
	held := e.held(r, allotments)
	res := e.resourceOf(allotments[0].Resource)
	storage := storageOf(held)
	if d != nil && e.state.dataAt(d, res.id.Site, r) {
		if storage >= 0 {
			held[storage].Start = min(held[storage].Start, max(d.Staging.Start, e.state.now))
		}
		return append(withoutShare(held), e.state.sending(d)...), d.Staging
	}
	length := res.staging(r)
	if length == 0 {
		return held, nil
	}
	if res.shares(r) {
		var staging *berth.Staging
		share := func() { held, staging = e.shared(r, allotments, held) }
		if d == nil {
			share()
		} else {
			e.state.aside(d, share)
		}
		return held, staging
	}
	start := e.state.now
	switch {
	case e.settings.staging == HoldWhile:
		start = allotments[0].Start
	case storage >= 0:
		a := &held[storage]
		if free, _ := e.state.calendar(a.Resource).Free(berth.Interval{Start: start, End: a.Start}); start < a.Start && free >= a.NPE {
			a.Start = start
		}
		start = a.Start
	}
	return held, &berth.Staging{Start: start, End: start.Add(length), Since: start, Kilobytes: 1000 * r.StorageMB}
}

// shared returns the same for a request whose transfer shares the uplink.
func (e *Engine) shared(r *berth.Request, allotments, held []berth.Allotment) ([]berth.Allotment, *berth.Staging) {
	res := e.resourceOf(allotments[0].Resource)
	share, storage := shareOf(held), storageOf(held)
	if share >= 0 { // PEs are held from its beginning
		a := &held[share]
		return held, &berth.Staging{Start: a.Start, End: a.End, Since: a.Start, Kilobytes: 1000 * r.StorageMB}
	}
	from := e.state.now
	if storage >= 0 {
		from = e.state.freeSince(e.state.calendar(held[storage].Resource), held[storage].NPE, held[storage].End)
	}
	at := res.turn(from, 1000*r.StorageMB)
	if storage >= 0 {
		held[storage].Start = min(held[storage].Start, at.start)
	}
	return e.state.withShare(held, at), &berth.Staging{Start: at.start, End: at.end(), Since: at.start, Kilobytes: 1000 * r.StorageMB}
}

// relocate gives a promise another place.
func (e *Engine) relocate(d *entry, allotments []berth.Allotment) {
	held, staging := e.further(d, d.Request, allotments)
	e.emit(Change{Kind: Moved, ID: d.Request.ID, Moved: allotments, Held: held, Staging: staging, entry: d})
}

// foresee takes in a forecast: what is on its way to the site arrives at another
// time, and promises for which that is too late are placed anew in their windows
// or, where there is no room, stay and wait for their data.
func (e *Engine) foresee(f *Forecast) error {
	if err := f.validate(); err != nil {
		return err
	}
	if !slices.ContainsFunc(e.config.Sites, func(s berth.Site) bool { return s.Name == f.Site }) {
		return berth.Errorf(berth.NotFound, "site", "no site %q", f.Site)
	}
	var list []underway
	for _, d := range e.state.ledger.live {
		s := d.Staging
		if s == nil || s.End <= e.state.now || d.State == berth.Active || d.Allotments[0].Resource.Site != f.Site {
			continue
		}
		list = append(list, underway{d, max(1, s.Kilobytes-e.movedOf(s, f.Site))})
	}
	slices.SortFunc(list, func(a, b underway) int { return cmp.Compare(a.entry.Sequence, b.entry.Sequence) })
	e.emit(Change{Kind: Forecasted, Forecast: f})
	if e.state.uplink != nil {
		if e.settings.staging == StageBefore { // else a transfer is as long as PEs are held for it
			e.reroute(list)
		}
		return nil
	}
	for _, t := range list {
		e.arrives(t.entry, t.left)
	}
	return nil
}

// movedOf returns how much of a transfer to a site is done by now, as expected.
func (e *Engine) movedOf(s *berth.Staging, site string) int64 {
	switch f := e.state.forecasts[site]; {
	case s.Since >= e.state.now:
		return 0
	case f != nil && e.state.uplink == nil: // a share of the uplink is the same throughout
		return f.moved(e.state.now) - f.moved(s.Since)
	}
	high, low := bits.Mul64(uint64(s.Kilobytes), uint64(e.state.now-s.Since))
	done, _ := bits.Div64(high, low, uint64(s.End-s.Since)) // less than all, since it has not ended
	return int64(done)
}

// arrives notes when what is left of a transfer arrives, and what follows from
// that.
func (e *Engine) arrives(d *entry, left int64) {
	res := e.resourceOf(d.Allotments[0].Resource)
	s := *d.Staging
	s.Since, s.Kilobytes = max(s.Since, e.state.now), left
	if s.End = s.Since.Add(res.stage(s.Since, left)); s.End == d.Staging.End {
		return
	}
	e.emit(Change{Kind: Staged, ID: d.Request.ID, Staging: &s, entry: d})
	if e.settings.staging != HoldWhile && s.End > d.Start() {
		e.postpone(d)
	}
}

// postpone places a promise anew for which its data come too late.
func (e *Engine) postpone(d *entry) {
	res := e.resourceOf(d.Allotments[0].Resource)
	var allotments []berth.Allotment
	var refusal *berth.Refusal
	e.without(d, func() { allotments, refusal = e.place(d.Request) })
	if refusal != nil {
		e.emit(Change{Kind: Kept, ID: d.Request.ID, entry: d, Refusal: &berth.Refusal{
			Reason: berth.DeadlineMissed, Resource: res.id, Wanted: d.Allotments[0].NPE, Possible: d.Staging.End.Add(d.End().Sub(d.Start())),
		}})
		return
	}
	e.emit(Change{Kind: Moved, ID: d.Request.ID, entry: d})
	e.yield(allotments)
	e.relocate(d, allotments)
	e.effect(EffectReserve, &d.Reservation)
	e.released()
}

// takeForecast folds Forecasted.
func (s *state) takeForecast(f *Forecast) error {
	if err := f.validate(); err != nil {
		return fmt.Errorf("a forecast: %w", err)
	}
	s.forecasts[f.Site] = f
	for i := range s.resources {
		if s.resources[i].id.Site == f.Site {
			s.resources[i].forecast = f
		}
	}
	return nil
}
