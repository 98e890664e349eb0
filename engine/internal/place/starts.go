package place

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine/internal/state"
	"github.com/berth-hpc/berth/policy"
)

// Stretch is starts that are alike: all of them are possible, or the same thing stands
// against each.
type Stretch struct {
	First, Last berth.Time
	Refusal     *berth.Refusal // nil if they are possible
}

// Look says which starts of a shape in a pool are looked at.
type Look struct {
	Pool        berth.ResourceID
	Variant     int // of the only part
	First, Last berth.Time
	Steps       int // how many stretches are found at the most
}

// Starts is when a shape can start in a pool.
type Starts struct {
	Variant   berth.Variant  // its duration is that in the pool
	Refusal   *berth.Refusal // why it can start there at no time
	Stretches []Stretch      // from Look.First, or now, on, without gaps between them
}

// Starts tells for each start of a request of one part in a pool whether it would be
// promised now, and if not, what is short. It searches as for a request, on a trial that is
// undone, stretch by stretch: a search finds the next possible start, up to which the same is
// short; from there a stretch of possible starts is measured (docs/adr/0021 says why stretches,
// not rectangles). The window of the request counts for the eager
// filter alone: which starts are looked at is said. The state does not change. Cost: for
// each stretch a search for the next start and O(log n · log of its length) looks at the
// calendar; of PEs that are short a search for the most that are free.
func (f *Finder) Starts(r *berth.Request, look Look) Starts {
	t := f.state.Try()
	defer t.Close()
	f.clear(t, nil)
	x := f.search(r, nil)
	x.pinned = r.Parts[0].Variants[look.Variant : look.Variant+1]
	x.notBefore = x.state.Now()
	x.admission()
	s := starting{search: &x, pool: f.poolOf(look.Pool)}
	s.view, s.variant = x.view(s.pool), x.scaled(s.pool, x.pinned[0])
	found := Starts{Variant: s.variant}
	if o := x.obstacle(0, s.pool, x.state.Now()); o.reason != "" && (o.reason != berth.DeadlineMissed || !o.possible.Valid()) {
		found.Refusal = o.refusal() // what only ends after its deadline is told start by start
		return found
	}
	if found.Refusal = x.denies(s.pool, s.variant); found.Refusal != nil {
		return found
	}
	s.eligible = x.eligible(0, s.pool)
	s.takes = x.takesFor(s.pool, x.takes(s.pool), x.sharesIn(s.pool), s.variant)
	for at := max(look.First, x.state.Now()); at <= look.Last && len(found.Stretches) < look.Steps; {
		next := s.from(at, look.Last)
		found.Stretches = append(found.Stretches, next)
		at = next.Last + 1
	}
	return found
}

// starting is the search for the starts of one shape in one pool.
type starting struct {
	*search
	pool     *pool
	view     state.View
	variant  berth.Variant
	eligible berth.PESet
	takes    []take
}

// from returns the stretch that begins at a start, until a last one.
func (s *starting) from(at, last berth.Time) Stretch {
	stretch := Stretch{First: at, Last: last}
	d := s.variant.Duration
	latest, leads := s.latest(s.pool)
	if leads && at > latest {
		_, over := s.leadBeyond([]berth.Allotment{{Resource: s.pool.id, Start: at}})
		stretch.Refusal = &berth.Refusal{Reason: berth.Quota, Resource: s.pool.id, Wanted: s.variant.NPE, Exceeded: over}
		return stretch
	}
	if leads {
		stretch.Last = min(stretch.Last, latest)
	}
	if arrival := s.arrival(s.pool); at < arrival {
		stretch.Last = min(stretch.Last, arrival-1)
		stretch.Refusal = &berth.Refusal{Reason: berth.DeadlineMissed, Resource: s.pool.id, Wanted: s.variant.NPE, Possible: arrival.Add(d)}
		return stretch
	}
	q := calendar.Query{Now: s.state.Now(), Ready: at, Deadline: stretch.Last.Add(d), Duration: d, NPE: s.variant.NPE, Eligible: s.eligible, Horizon: s.Horizon}
	fit, ok := s.view.Earliest(q)
	if !ok || fit.Start > at {
		if ok {
			stretch.Last = fit.Start - 1
			q.Deadline = stretch.Last.Add(d)
		}
		free, start := s.view.MostFree(q)
		stretch.Refusal = &berth.Refusal{
			Reason: berth.NoCapacity, Resource: s.pool.id, Wanted: s.variant.NPE,
			Nearest: &berth.Nearest{NPE: max(free, 0), Duration: d, Start: start},
		}
		return stretch
	}
	// It stays possible for as long as the PEs are free from the first start to the end of the
	// last one: the same PEs under early binding, so that where others take their place the next
	// stretch is as possible as this one, and is joined to it outside (docs/adr/0021).
	until := stretch.Last
	stretch.Last = min(until, extent(at.Add(d), until.Add(d), func(end berth.Time) bool {
		free, pes := s.view.Free(berth.Interval{Start: at, End: end})
		if !s.eligible.Empty() {
			free = pes.Overlap(s.eligible)
		}
		return free >= s.variant.NPE
	}).Add(-d))
	if len(s.takes) == 0 {
		return stretch
	}
	if soon, possible := s.stocked(s.takes, q, at); !possible || soon > at {
		if possible {
			stretch.Last = min(stretch.Last, soon-1)
		}
		stretch.Refusal = s.short(q, at, soon)
		return stretch
	}
	for i := range s.takes {
		stretch.Last = min(stretch.Last, s.lasts(&s.takes[i], at, until))
	}
	return stretch
}

// short is the refusal of the first take that does not suffice at a start by itself, else
// of the first; soon is when all do.
func (s *starting) short(q calendar.Query, at, soon berth.Time) *berth.Refusal {
	t := &s.takes[0]
	for i := range s.takes {
		if start, ok := s.stocked(s.takes[i:i+1], q, at); !ok || start > at {
			t = &s.takes[i]
			break
		}
	}
	refusal := &berth.Refusal{Reason: berth.NoCapacity, Wanted: t.n}
	if t.budgets != nil {
		a := berth.Allotment{Resource: s.pool.id, Start: at, End: at.Add(s.variant.Duration), NPE: s.variant.NPE}
		refusal.Reason, refusal.Wanted = berth.Quota, s.variant.NPE
		refusal.Resource, refusal.Exceeded = s.monthBeyond([]berth.Allotment{a})
		return refusal
	}
	if t.share == nil {
		refusal.Resource, refusal.Limit = t.stock.ID(), t.stock.View().Size()
		return refusal
	}
	refusal.Reason, refusal.Resource = berth.Quota, s.pool.id
	for a, share := range s.shared(s.pool) {
		used, when := share.peakAt(at, at.Add(q.Duration))
		if asked := used + t.n; refusal.Exceeded == nil || asked > share.most {
			if refusal.Exceeded = s.exceedsShare(a, share.most, asked, when); asked > share.most {
				break
			}
		}
	}
	if refusal.Exceeded.Limit == string(policy.LimitShare) {
		refusal.Exceeded.Frees = max(soon, 0)
	}
	return refusal
}

// lasts returns the last start, at most until a time, up to which what suffices at one
// start does.
func (s *starting) lasts(t *take, at, until berth.Time) berth.Time {
	d := s.variant.Duration
	begin, length := at.Add(-t.lead), d+t.lead // of what is taken at the start
	switch {
	case t.share != nil:
		for step := range t.share.steps.Steps(at) {
			if step.At >= at.Add(d) && step.NPE+t.n > t.share.most {
				return min(until, step.At.Add(-d))
			}
		}
		return until
	case t.budgets != nil:
		return min(until, (policy.MonthOf(at)+1).Start()-1)
	case t.moves != nil: // what ends it is the room for the data, which is a take of its own
		return until
	case t.length > 0:
		length = t.length
	}
	by := at.Sub(begin.Add(length)) // from the end of what is taken to the start
	end := extent(begin.Add(length), until.Add(-by), func(end berth.Time) bool {
		free, _ := t.stock.View().Free(berth.Interval{Start: begin, End: end})
		return free >= t.n
	})
	return min(until, end.Add(by))
}

// extent returns the last time, from one at which something is so on and at most until
// another one, up to which it is. It looks ahead in growing steps, since to look far costs
// more. Cost: O(log of how far that is) questions.
func extent(from, until berth.Time, is func(berth.Time) bool) berth.Time {
	low, high := from, max(from, until)+1 // it is so at low, and not at high, which is never asked
	for step := berth.Duration(64); low < until; step *= 4 {
		ahead := min(low.Add(step), until)
		if !is(ahead) {
			high = ahead
			break
		}
		low = ahead
	}
	for high-low > 1 && low < until {
		if middle := low + (high-low)/2; is(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}
