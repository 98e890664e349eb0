package state

import (
	"fmt"
	"iter"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// Profile is the number of free PEs of one late-binding resource over time,
// with promises, running jobs and plans taken off. It is what the calendars of
// plans are, kept flat for the one question of the conservative pass: what may
// move earlier. Records are few (one or two for each job that runs or waits),
// so a walk over them costs less than a tree.
type Profile struct {
	size    berth.Count
	steps   []step // ascending; the first is at the beginning of time
	version uint64 // grows with every change
	last    int    // the step that index returned last

	// Where room has grown since the last compression ended, and during it:
	// nothing can move that does not gain from there. Of a new profile nothing
	// is known, so that is everywhere.
	grown, before Growth
}

// step is how many PEs are free from a time on.
type step struct {
	at   berth.Time
	free berth.Count
}

// Growth is an interval that contains every place where room has grown.
type Growth struct{ From, To berth.Time }

const beginning berth.Time = -berth.Forever

var (
	nowhere    = Growth{From: berth.Forever, To: beginning}
	everywhere = Growth{From: beginning, To: berth.Forever}
)

// newProfile returns the profile of what a calendar has booked.
func newProfile(c calendar.Calendar) *Profile {
	p := &Profile{size: c.Size(), steps: []step{{beginning, c.Size()}}, grown: everywhere, before: nowhere}
	for r := range c.Records() {
		p.steps = append(p.steps, step{r.Time, r.Free})
	}
	return p
}

// Empty reports whether there is no such place.
func (g Growth) Empty() bool { return g.From >= g.To }

func (g Growth) and(o Growth) Growth { return Growth{min(g.From, o.From), max(g.To, o.To)} }

// prune forgets what was before now.
func (p *Profile) prune(now berth.Time) {
	if n := p.index(now); n > 0 {
		p.steps = p.steps[:copy(p.steps, p.steps[n:])]
		p.steps[0].at = beginning
	}
}

// index returns the step in force at t, which is often one of the first, or near
// the one asked for last.
func (p *Profile) index(t berth.Time) int {
	i := min(p.last, len(p.steps)-1)
	if len(p.steps) > 2 && t < p.steps[2].at {
		i = 0
	}
	for near := 8; near > 0; near-- {
		switch {
		case p.steps[i].at > t:
			i--
		case i+1 < len(p.steps) && p.steps[i+1].at <= t:
			i++
		default:
			p.last = i
			return i
		}
	}
	i = 0
	for n := len(p.steps); n > 1; {
		half := n / 2
		if p.steps[i+half].at <= t {
			i += half
		}
		n -= half
	}
	p.last = i
	return i
}

// add frees by PEs, or takes them if by is negative, throughout [from, to), which
// is not empty. It returns the least that is free there afterwards.
//
// Most changes move the beginning or the end of something, so that a step
// appears at one end of the interval where one vanishes at the other. Then what
// lies behind stays where it is.
func (p *Profile) add(from, to berth.Time, by berth.Count) berth.Count {
	i := p.index(from)
	before := p.steps[i] // what is in force at the end, as it was
	least, inside := p.size, i
	if before.at != from {
		least = min(least, before.free+by)
		inside++
	}
	j := inside
	for ; j < len(p.steps) && p.steps[j].at < to; j++ {
		before = p.steps[j]
		p.steps[j].free += by
		least = min(least, p.steps[j].free)
	}
	// The steps between, [lo, j), move by head, and those behind by head + tail.
	lo, hi, head, tail := inside, j, 0, 0
	switch {
	case inside > i:
		head = 1
	case i > 0 && p.steps[i].free == p.steps[i-1].free:
		lo, head = i+1, -1
	}
	switch {
	case j == len(p.steps) || p.steps[j].at != to:
		tail = 1
	case p.steps[j].free == before.free+by:
		hi, tail = j+1, -1
	}
	begin := step{from, 0}
	if head > 0 {
		begin.free = p.steps[i].free + by
	}
	n := len(p.steps)
	if head+tail > 0 {
		p.steps = append(p.steps, step{}, step{})[:n+head+tail]
		copy(p.steps[hi+head+tail:], p.steps[hi:n])
	}
	copy(p.steps[lo+head:j+head], p.steps[lo:j])
	if head+tail < 0 {
		copy(p.steps[hi+head+tail:], p.steps[hi:])
		p.steps = p.steps[:n+head+tail]
	}
	if head > 0 {
		p.steps[inside] = begin
	}
	if tail > 0 {
		p.steps[j+head] = step{to, before.free}
	}
	p.version++
	return least
}

// take takes PEs throughout [from, to). After an error the profile must not be
// used any more.
func (p *Profile) take(from, to berth.Time, n berth.Count) error {
	if from < to && p.add(from, to, -n) < 0 {
		return fmt.Errorf("%d PEs are not free throughout [%d,%d)", n, from, to)
	}
	return nil
}

// give gives PEs back.
func (p *Profile) give(from, to berth.Time, n berth.Count) {
	if from < to {
		p.add(from, to, n)
		p.grown = p.grown.and(Growth{from, to})
	}
}

// replace replaces one plan by another; nil is none.
func (p *Profile) replace(old, a *berth.Allotment) error {
	switch {
	case a == nil:
		p.give(old.Start, old.End, old.NPE)
		return nil
	case old == nil:
		return p.take(a.Start, a.End, a.NPE)
	case a.NPE == old.NPE && a.Start < old.Start && old.Start < a.End && a.End <= old.End:
		err := p.take(a.Start, old.Start, a.NPE)
		p.give(a.End, old.End, a.NPE)
		return err
	}
	p.give(old.Start, old.End, old.NPE)
	return p.take(a.Start, a.End, a.NPE)
}

// Earliest returns the first start from now on at which n PEs are free for d.
func (p *Profile) Earliest(now berth.Time, n berth.Count, d berth.Duration) (berth.Time, bool) {
	start, end := now, now.Add(d)
	for i := p.index(now); ; i++ {
		last := i+1 == len(p.steps)
		switch {
		case p.steps[i].free < n && last:
			return 0, false
		case p.steps[i].free < n:
			start = p.steps[i+1].at
			end = start.Add(d)
		case last || p.steps[i+1].at >= end:
			return start, true
		}
	}
}

// Wish is a planned job that would start earlier: at From or later, before
// Before, which is not after its present start.
type Wish struct {
	berth.Variant
	Present, From, Before berth.Time
	Near                  bool // From is near the step that was asked for last, else near the first
}

// Earlier returns the first start that fulfils a wish: the job's PEs must be
// free until it ends, or until its own booking, which it may overlap.
func (p *Profile) Earlier(w *Wish) (start berth.Time, ok bool) {
	start = w.From
	steps, npe, before := p.steps, w.NPE, w.Before
	i := 0
	if w.Near {
		i = min(p.last, len(steps)-1)
	}
	for steps[i].at > start {
		i--
	}
	for i+1 < len(steps) && steps[i+1].at <= start {
		i++
	}
	for start < before {
		if steps[i].free < npe {
			// The present booking ends somewhere behind, so there is a next that has enough.
			i++
			for steps[i].free < npe && steps[i].at < before {
				i++
			}
			start, p.last = steps[i].at, i
			if start >= before {
				break
			}
		}
		for need := min(start.Add(w.Duration), w.Present); ; i++ {
			if i+1 == len(steps) || steps[i+1].at >= need {
				return start, true
			}
			if steps[i+1].free < npe {
				i++
				break
			}
		}
	}
	return 0, false
}

// Most returns the most PEs that are free anywhere in an interval.
func (p *Profile) Most(g Growth) berth.Count {
	n := berth.Count(0)
	for i := p.index(g.From); i < len(p.steps) && p.steps[i].at < g.To; i++ {
		n = max(n, p.steps[i].free)
	}
	return n
}

// Fits reports whether n PEs are free throughout [from, to).
func (p *Profile) Fits(n berth.Count, from, to berth.Time) bool {
	for i := p.index(from); i < len(p.steps) && p.steps[i].at < to; i++ {
		if p.steps[i].free < n {
			return false
		}
	}
	return true
}

// records yields the records as a calendar pruned to now would.
func (p *Profile) records(now berth.Time) iter.Seq[calendar.Record] {
	return func(yield func(calendar.Record) bool) {
		p.prune(now)
		for i, s := range p.steps {
			if i == 0 && s.free == p.size {
				continue
			}
			if !yield(calendar.Record{Time: max(s.at, now), Free: s.free}) {
				return
			}
		}
	}
}

// Version grows with every change of the profile.
func (p *Profile) Version() uint64 { return p.version }

// Size returns the number of PEs.
func (p *Profile) Size() berth.Count { return p.size }

// Steps returns the number of steps, Index the one in force at a time, At the
// beginning of the i-th and Free how many PEs are free from then on.
func (p *Profile) Steps() int { return len(p.steps) }

// Index returns the step in force at a time.
func (p *Profile) Index(t berth.Time) int { return p.index(t) }

// At returns the beginning of the i-th step.
func (p *Profile) At(i int) berth.Time { return p.steps[i].at }

// Free returns how many PEs are free during the i-th step.
func (p *Profile) Free(i int) berth.Count { return p.steps[i].free }

// BeginCompression returns where room has grown since before the last compression
// began: what moved then left room that nothing has looked at since.
func (p *Profile) BeginCompression() Growth {
	since := p.before.and(p.grown)
	p.before, p.grown = nowhere, nowhere
	return since
}

// Grown returns where room has grown since the compression began.
func (p *Profile) Grown() Growth { return p.grown }

// EndCompression keeps where room has grown meanwhile for the next compression.
func (p *Profile) EndCompression() { p.before, p.grown = p.grown, nowhere }
