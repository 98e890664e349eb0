package calendar

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/bitset"
	"github.com/berth-hpc/berth/internal/effort"
)

var earlyOps = effort.Flag("early.ops", 24_000, "random operations of TestEarlyEqualsPlain")

// earlyWorld is a fast and a plain calendar that are treated alike.
type earlyWorld struct {
	rng    *rand.Rand
	size   berth.Count
	origin berth.Time // of all times
	span   int64      // of start times
	long   int64      // longest duration
	now    berth.Time
	plain  Calendar
	fast   *early
	live   []Block
	// ahead has everything booked and asked from now on, as engines do, and records compared after
	// one change of eight, so that what is forgotten stays in the tree for a while.
	ahead   bool
	pending map[string]int // operations while it does
}

func (w *earlyWorld) time() berth.Time {
	t := w.origin + berth.Time(w.rng.Int64N(w.span))
	if w.ahead {
		return max(t, w.now)
	}
	return t
}

// set draws a set of up to n PEs, in one run or scattered.
func (w *earlyWorld) set(n int) berth.PESet {
	size := int(w.size)
	if w.rng.IntN(2) == 0 {
		lo := w.rng.IntN(size)
		return berth.NewPESet(berth.Run{Lo: berth.PE(lo), Hi: berth.PE(min(size, lo+1+w.rng.IntN(n)))})
	}
	var runs []berth.Run
	for range 1 + w.rng.IntN(6) {
		lo := w.rng.IntN(size)
		runs = append(runs, berth.Run{Lo: berth.PE(lo), Hi: berth.PE(min(size, lo+1+w.rng.IntN(1+n/4)))})
	}
	return berth.NewPESet(runs...)
}

func (w *earlyWorld) count() berth.Count {
	if w.rng.IntN(4) == 0 {
		return 1 + berth.Count(w.rng.IntN(int(w.size)+1)) // may be one too many
	}
	return 1 + berth.Count(w.rng.IntN(int(w.size)/4+1))
}

func (w *earlyWorld) query() Query {
	q := Query{Duration: 1 + berth.Duration(w.rng.Int64N(w.long)), NPE: w.count(), Ready: w.time(), Now: w.now}
	q.Now = min(q.Now, q.Ready)
	if !w.ahead {
		q.Now -= berth.Time(w.rng.Int64N(5)) * berth.Time(w.rng.Int64N(w.span/4+1))
	}
	switch w.rng.IntN(4) {
	case 0:
		q.Deadline = berth.Forever
	case 1:
		q.Deadline = q.Ready.Add(q.Duration) + berth.Time(w.rng.Int64N(3))
	default:
		q.Deadline = q.Ready.Add(q.Duration) + berth.Time(w.rng.Int64N(w.span))
	}
	if w.rng.IntN(4) == 0 {
		q.Eligible = w.set(int(w.size))
	}
	if w.rng.IntN(50) == 0 {
		q.Eligible = berth.NewPESet(berth.Run{Lo: berth.PE(w.size) / 2, Hi: berth.PE(w.size) + 70})
	}
	if w.rng.IntN(3) == 0 {
		q.Horizon = Unbounded
	}
	if w.rng.IntN(100) == 0 {
		q.Duration = -1 // not valid
	}
	return q
}

// step does one random operation on both calendars.
func (w *earlyWorld) step() error {
	rng := w.rng
	switch k := rng.IntN(100); {
	case k < 30: // admit
		q := w.query()
		booked := rng.IntN(len(allRules))
		var a Fit
		var okA bool
		for i, rule := range allRules {
			if w.ahead && i != booked {
				continue
			}
			w.note("Find")
			plain, okPlain := w.plain.Find(q, rule)
			fast, okFast := w.fast.Find(q, rule)
			if err := sameFit(plain, okPlain, fast, okFast); err != nil {
				return fmt.Errorf("Find %+v under %+v: %w", q, rule.order, err)
			}
			if i == booked {
				a, okA = plain, okPlain
			}
		}
		if okA && (len(w.live) < 60 || rng.IntN(3) > 0) {
			return w.add(Block{Start: a.Start, End: a.End, NPE: q.NPE, PEs: a.PEs})
		}
	case k < 40: // book by hand, perhaps in the way of others
		set := w.set(int(w.size)/3 + 1)
		start := w.time()
		b := Block{Start: start, End: start + berth.Time(rng.Int64N(w.long+1)), NPE: set.Count(), PEs: set}
		if rng.IntN(40) == 0 {
			b.NPE++
		}
		return w.add(b)
	case k < 55 && len(w.live) > 0:
		i := rng.IntN(len(w.live))
		b := w.live[i]
		if rng.IntN(3) == 0 {
			return w.remove(w.wrong(b))
		}
		w.live = slices.Delete(w.live, i, i+1)
		return w.remove(b)
	case k < 58: // a block that is most likely no booking
		set := w.set(int(w.size)/3 + 1)
		start := w.time()
		b := Block{Start: start, End: start + berth.Time(rng.Int64N(w.long+1)), NPE: set.Count(), PEs: set}
		return w.remove(b)
	case k < 62:
		w.prune()
	case k < 76:
		q := w.query()
		a, startA := w.plain.MostFree(q)
		b, startB := w.fast.MostFree(q)
		if a != b || startA != startB {
			return fmt.Errorf("MostFree %+v: %d at %d, not %d at %d", q, b, startB, a, startA)
		}
	case k < 85:
		q := w.query()
		next, stop := iter.Pull2(w.fast.Rectangles(q))
		defer stop()
		for r, set := range w.plain.Rectangles(q) {
			if s, got, ok := next(); !ok || s != r || !got.Equal(set) {
				return fmt.Errorf("Rectangles %+v: %+v %v, not %+v %v", q, s, got, r, set)
			}
		}
		if s, _, ok := next(); ok {
			return fmt.Errorf("Rectangles %+v: and %+v", q, s)
		}
	default:
		iv := berth.Interval{Start: w.time(), End: w.time()}
		if rng.IntN(3) == 0 {
			iv.End = iv.Start + berth.Time(rng.Int64N(w.long))
		}
		if rng.IntN(10) == 0 {
			iv.End = berth.Forever
		}
		a, setA := w.plain.Free(iv)
		b, setB := w.fast.Free(iv)
		if a != b || !setA.Equal(setB) {
			return fmt.Errorf("Free %s: %d %v, not %d %v", iv, b, setB, a, setA)
		}
	}
	return nil
}

func (w *earlyWorld) add(b Block) error {
	w.note("Add")
	errA, errB := w.plain.Add(b), w.fast.Add(b)
	if errA == nil {
		w.live = append(w.live, b)
	}
	return w.changed(fmt.Sprintf("Add %+v", b), errA, errB)
}

// wrong returns a block that is like a booking, but in its start, its end or its PEs.
func (w *earlyWorld) wrong(b Block) Block {
	shift := berth.Time(w.rng.Int64N(2*int64(b.End-b.Start)+1)) - (b.End - b.Start)
	switch w.rng.IntN(4) {
	case 0:
		b.Start += shift
	case 1:
		b.End += shift
	case 2: // two bookings as one, if another follows
		for _, other := range w.live {
			if other.Start == b.End && other.PEs.Overlap(b.PEs) > 0 {
				b.End, b.PEs = other.End, b.PEs.And(other.PEs)
			}
		}
	default:
		b.PEs = b.PEs.Or(w.set(int(w.size)))
	}
	b.NPE = b.PEs.Count()
	return b
}

// note counts an operation that comes while the tree has what is forgotten.
func (w *earlyWorld) note(what string) {
	if w.fast.floor > -berth.Forever && w.pending != nil {
		w.pending[what]++
	}
}

func (w *earlyWorld) remove(b Block) error {
	if w.note("Remove"); b.Start == w.fast.floor {
		w.note("Remove from the floor on")
	}
	return w.changed(fmt.Sprintf("Remove %+v", b), w.plain.Remove(b), w.fast.Remove(b))
}

func (w *earlyWorld) changed(what string, errA, errB error) error {
	if want, got := fmt.Sprint(errA), fmt.Sprint(errB); got != want {
		return fmt.Errorf("%s: %s, not %s", what, got, want)
	}
	if err := w.fast.check(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if w.ahead && w.rng.IntN(8) > 0 {
		return nil
	}
	if err := sameRecords(w.plain, w.fast); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := sameSeams(w.plain.(*plain[bitset.Set]), w.fast); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// sameSeams compares where PEs are given back and taken again.
func sameSeams(a *plain[bitset.Set], b *early) error {
	got := map[berth.Time]words{}
	for _, pg := range b.tree.pages {
		for _, l := range pg.leaves[:pg.n] {
			for _, s := range l.seams {
				if got[s.time] == nil {
					got[s.time] = make(words, b.tree.words)
				}
				got[s.time].toggle(pieces{{s.mask, s.word}})
			}
		}
	}
	for _, want := range a.seams {
		if w := got[want.time]; !slices.Equal(bitset.Set(w), want.amount) {
			return fmt.Errorf("seam of %v at %d, not %v", w.pes(b.size), want.time, want.amount)
		}
	}
	if len(got) != len(a.seams) {
		return fmt.Errorf("%d seams, not %d", len(got), len(a.seams))
	}
	return nil
}

func (w *earlyWorld) prune() {
	now := w.time()
	if w.rng.IntN(4) > 0 {
		now = w.now + berth.Time(w.rng.Int64N(w.span/20+2))
	}
	w.now = max(w.now, now)
	if !w.ahead && w.rng.IntN(20) == 0 {
		w.now = w.origin // time starts anew
	}
	w.plain.Prune(now)
	w.fast.Prune(now)
	for i := range w.live {
		w.live[i].Start = max(w.live[i].Start, now)
	}
	w.live = slices.DeleteFunc(w.live, func(b Block) bool { return b.Start >= b.End })
}

func sameFit(a Fit, okA bool, b Fit, okB bool) error {
	if okA != okB || a.Start != b.Start || a.End != b.End || a.Key != b.Key || !a.PEs.Equal(b.PEs) {
		return fmt.Errorf("%+v %v, not %+v %v", b, okB, a, okA)
	}
	return nil
}

func sameRecords(a, b Calendar) error {
	next, stop := iter.Pull(b.Records())
	defer stop()
	for r := range a.Records() {
		if s, ok := next(); !ok || s.Time != r.Time || s.Free != r.Free || !s.Busy.Equal(r.Busy) {
			return fmt.Errorf("record %+v, not %+v", s, r)
		}
	}
	if s, ok := next(); ok {
		return fmt.Errorf("record %+v too many", s)
	}
	return sameChanges(a, b)
}

// sameChanges reports where the changes of b within intervals that begin and end at and between records of a are not its records.
func sameChanges(a, b Calendar) error {
	var times []berth.Time
	for r := range a.Records() {
		times = append(times, r.Time)
	}
	for n := len(times); n > 0; n /= 2 {
		for _, iv := range []berth.Interval{{Start: times[n/2], End: times[n-1]}, {Start: times[n/2] + 1, End: times[n-1] + 1}, {Start: times[n/3] - 1, End: times[n/2] + 1}} {
			want := slices.DeleteFunc(slices.Clone(times), func(t berth.Time) bool { return t < iv.Start || t >= iv.End })
			if got := slices.Collect(b.Changes(iv)); !slices.Equal(got, want) {
				return fmt.Errorf("changes within %v: %v, not %v", iv, got, want)
			}
		}
	}
	return nil
}

func newEarlyWorld(rng *rand.Rand) *earlyWorld {
	w := &earlyWorld{rng: rng}
	sizes := []int{1, 2, 7, 63, 64, 65, 127, 128, 129, 240, 256, 300}
	switch k := rng.IntN(20); {
	case k < 10:
		w.size = berth.Count(1 + rng.IntN(300))
	case k < 18:
		w.size = berth.Count(sizes[rng.IntN(len(sizes))])
	case k < 19:
		w.size = 1024
	default:
		w.size = 5000
	}
	w.span = []int64{8, 40, 300, 5_000, 1_000_000}[rng.IntN(5)]
	w.long = []int64{3, 20, w.span, w.span*2 + 1, w.span/10 + 1}[rng.IntN(5)]
	switch rng.IntN(6) {
	case 0:
		w.origin = -berth.TimeLimit + 1
	case 1:
		w.origin = berth.Time(berth.TimeLimit - w.span - 2*w.long - 2)
	case 2:
		w.origin = -berth.Time(w.span / 2)
	}
	w.now = w.origin
	w.plain, w.fast = NewPlain(w.size, berth.Early), newFastEarly(w.size).(*early)
	if rng.IntN(4) > 0 { // few bookings shall make many nodes
		w.fast.tree.full = limits{records: 4 + rng.Int32N(9), leaves: 2 + rng.Int32N(6)}
	}
	w.ahead = rng.IntN(2) == 0
	return w
}

// TestEarlyEqualsPlain treats a fast and a plain calendar alike, in many small
// worlds full of coincidences, and compares every answer and, after every change or
// some, all records.
func TestEarlyEqualsPlain(t *testing.T) {
	const life = 400
	pending := map[string]int{}
	for seed := range uint64(earlyOps()/life + 1) {
		w := newEarlyWorld(rand.New(rand.NewPCG(seed, 1)))
		w.pending = pending
		for i := range life {
			if err := w.step(); err != nil {
				t.Fatalf("world %d (size %d, span %d, long %d, origin %d), operation %d: %v",
					seed, w.size, w.span, w.long, w.origin, i, err)
			}
		}
	}
	for _, what := range []string{"Find", "Add", "Remove", "Remove from the floor on"} {
		if pending[what] < 5 {
			t.Errorf("%s came %d times while the tree had what is forgotten; want at least 5 (all: %v)", what, pending[what], pending)
		}
	}
	t.Log(pending)
}
