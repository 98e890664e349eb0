package calendartest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/policy"
)

// chooser supplies the choices of a run: rapid, or the bytes of a fuzzer.
type chooser interface {
	// pick returns a number from 0 to n−1.
	pick(what string, n int) int
}

type rapidChooser struct{ t *rapid.T }

func (c rapidChooser) pick(what string, n int) int {
	return rapid.IntRange(0, n-1).Draw(c.t, what)
}

// byteChooser reads its choices from data and gives zeros when that is used up.
type byteChooser struct{ data []byte }

func (c *byteChooser) pick(_ string, n int) int {
	value := 0
	for m := n - 1; m > 0 && len(c.data) > 0; m >>= 8 {
		value = value<<8 | int(c.data[0])
		c.data = c.data[1:]
	}
	return value % n
}

// oneOf picks an element of a list.
func oneOf[E any](from chooser, what string, list ...E) E { return list[from.pick(what, len(list))] }

// world is the ground on which random calendars stand: sizes, and a stretch of
// seconds short enough for the model.
type world struct {
	name   string
	sizes  []berth.Count
	firsts []berth.Time // one of them is the first second
	length berth.Time
}

// The narrow world has all the small sizes, and lies before, around and after
// zero and at both limits of time. The wide one crosses the borders of machine
// words.
var (
	narrow = world{
		name:   "narrow",
		sizes:  []berth.Count{1, 2, 3, 4, 5, 6, 7, 8},
		firsts: []berth.Time{0, -10, -1000, 1 << 33, 1 - berth.TimeLimit, berth.TimeLimit - 61},
		length: 60,
	}
	wide = world{
		name:   "wide",
		sizes:  []berth.Count{64, 65, 70, 128, 130},
		firsts: []berth.Time{-20},
		length: 40,
	}
)

// machine drives a calendar and its model with the same operations.
type machine struct {
	c      calendar.Calendar
	m      *model
	pruned berth.Time       // the latest Prune
	live   []calendar.Block // what can be given back whole
}

func newMachine(from chooser, form calendar.New, binding berth.Binding, w world) *machine {
	size := oneOf(from, "size", w.sizes...)
	first := oneOf(from, "first second", w.firsts...)
	return &machine{
		c: form(size, binding), m: newModel(size, binding, first, first+w.length), pruned: first,
	}
}

// actions lists what a machine can do, by name and in a fixed order. Frequent
// ones are listed more than once.
var actions = []struct {
	name string
	do   func(*machine, rapid.TB, chooser)
}{
	{"add free", (*machine).addFree},
	{"add free again", (*machine).addFree},
	{"add found", (*machine).addFound},
	{"add any", (*machine).addAny},
	{"malformed", (*machine).malformed},
	{"prune", (*machine).prune},
	{"query", (*machine).query},
	{"query again", (*machine).query},
	{"remove any", (*machine).removeAny},
	{"remove live", (*machine).removeLive},
	{"remove rest", (*machine).removeRest},
	{"remove wrong", (*machine).removeWrong},
}

// machineLaws runs the machine under rapid, which shrinks what fails, and then
// longer on fixed random bytes.
func machineLaws(t *testing.T, form calendar.New, binding berth.Binding) {
	for _, w := range []world{narrow, wide} {
		t.Run(w.name, rapid.MakeCheck(func(t *rapid.T) {
			from := rapidChooser{t}
			ma := newMachine(from, form, binding, w)
			steps := map[string]func(*rapid.T){"": func(t *rapid.T) { checkState(t, ma.c, ma.m) }}
			for _, action := range actions {
				steps[action.name] = func(t *rapid.T) { action.do(ma, t, rapidChooser{t}) }
			}
			t.Repeat(steps)
		}))
	}
	t.Run("fixed", func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 2))
		for range 150 {
			data := make([]byte, 1000)
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			fuzz(t, form, binding, &byteChooser{data})
		}
	})
}

// Fuzz reads a calendar and a sequence of operations from data and compares
// the form with the model after each of them.
func Fuzz(t rapid.TB, form calendar.New, data []byte) {
	from := &byteChooser{data}
	fuzz(t, form, oneOf(from, "binding", berth.Early, berth.Late), from)
}

func fuzz(t rapid.TB, form calendar.New, binding berth.Binding, from *byteChooser) {
	w := oneOf(from, "world", narrow, narrow, narrow, wide)
	ma := newMachine(from, form, binding, w)
	for len(from.data) > 0 {
		action := actions[from.pick("action", len(actions))]
		action.do(ma, t, from)
		checkState(t, ma.c, ma.m)
	}
}

// try applies a change whose outcome the model foretells, and checks that a
// failure changes nothing.
func (ma *machine) try(t rapid.TB, what string, code berth.Code, change func() error) {
	t.Helper()
	before := recordsOf(ma.c)
	err := change()
	wantCode(t, what, err, code)
	if err != nil {
		wantRecords(t, ma.c, before)
	}
}

func (ma *machine) add(t rapid.TB, b calendar.Block) {
	t.Helper()
	code := berth.Code("")
	if !ma.m.canAdd(b) {
		code = berth.Conflict
	}
	ma.try(t, "Add", code, func() error { return ma.c.Add(b) })
	if code == "" {
		ma.m.add(b)
		ma.live = append(ma.live, b)
	}
}

func (ma *machine) remove(t rapid.TB, b calendar.Block) {
	t.Helper()
	code := berth.Code("")
	if !ma.m.canRemove(b) {
		code = berth.Conflict
	}
	ma.try(t, "Remove", code, func() error { return ma.c.Remove(b) })
	if code == "" {
		ma.m.remove(b)
	}
}

// span picks [start, end) within the model, more often short than long.
func (ma *machine) span(from chooser) (start, end berth.Time) {
	length := int(ma.m.last() - ma.m.first)
	at := from.pick("start", length)
	n := 1 + from.pick("length", oneOf(from, "at most", min(8, length-at), length-at))
	return ma.m.first + berth.Time(at), ma.m.first + berth.Time(at+n)
}

// subset picks a non-empty part of the PEs, which must not be none.
func subset(from chooser, pes berth.PESet) berth.PESet {
	var all, chosen []berth.PE
	for _, run := range pes.Runs() {
		for pe := run.Lo; pe < run.Hi; pe++ {
			all = append(all, pe)
		}
	}
	if len(all) > 8 { // runs of neighbours, not single ones
		lo := from.pick("lowest", len(all))
		chosen = all[lo : lo+1+from.pick("how many", len(all)-lo)]
		if from.pick("scattered", 2) == 1 {
			chosen = slices.Concat(chosen, all[:from.pick("and below", lo+1)])
		}
		return berth.PEsOf(chosen...)
	}
	mask := 1 + from.pick("mask", 1<<len(all)-1)
	for i, pe := range all {
		if mask>>i&1 == 1 {
			chosen = append(chosen, pe)
		}
	}
	return berth.PEsOf(chosen...)
}

func allPEs(size berth.Count) berth.PESet {
	return berth.NewPESet(berth.Run{Lo: 0, Hi: berth.PE(size)})
}

// block makes a block of some of what is available in [start, end).
func (ma *machine) block(from chooser, start, end berth.Time, free avail) calendar.Block {
	b := calendar.Block{Start: start, End: end}
	if ma.m.binding == berth.Late {
		b.NPE = 1 + berth.Count(from.pick("npe", int(free.n)))
	} else {
		b.PEs = subset(from, free.lowest(ma.m.size))
		b.NPE = b.PEs.Count()
	}
	return b
}

func (ma *machine) anyBlock(from chooser) calendar.Block {
	start, end := ma.span(from)
	return ma.block(from, start, end, ma.m.availOf(ma.m.untouched()))
}

func (ma *machine) addAny(t rapid.TB, from chooser) { ma.add(t, ma.anyBlock(from)) }

func (ma *machine) addFree(t rapid.TB, from chooser) {
	start, end := ma.span(from)
	if free := ma.m.through(start, end, berth.PESet{}); free.n > 0 {
		ma.add(t, ma.block(from, start, end, free))
	}
}

// addFound books what a placement finds, which must succeed.
func (ma *machine) addFound(t rapid.TB, from chooser) {
	q := ma.someQuery(from)
	row := oneOf(from, "placement", policy.Placements...)
	fit, ok := ma.c.Find(q, row.Placement)
	if !ok || fit.End > ma.m.last() {
		return
	}
	b := calendar.Block{Start: fit.Start, End: fit.End, NPE: q.NPE, PEs: fit.PEs}
	if !ma.m.canAdd(b) {
		t.Fatalf("I5: %s found %+v for %+v, which is taken", row.Name, fit, q)
	}
	ma.add(t, b)
}

func (ma *machine) removeAny(t rapid.TB, from chooser) { ma.remove(t, ma.anyBlock(from)) }

// takeLive takes a block off the list of live ones.
func (ma *machine) takeLive(from chooser) (b calendar.Block, ok bool) {
	if len(ma.live) == 0 {
		return b, false
	}
	i := from.pick("which", len(ma.live))
	b = ma.live[i]
	ma.live = slices.Delete(ma.live, i, i+1)
	return b, true
}

func (ma *machine) removeLive(t rapid.TB, from chooser) {
	if b, ok := ma.takeLive(from); ok {
		ma.remove(t, b)
	}
}

// removeRest gives back what is left of a booking after some time has been forgotten
// (b.2: early completion).
func (ma *machine) removeRest(t rapid.TB, from chooser) {
	b, ok := ma.takeLive(from)
	if !ok {
		return
	}
	if now := max(b.Start, ma.pruned) + berth.Time(from.pick("passed", 4)); now < b.End {
		ma.pruneTo(t, now)
		b.Start = max(b.Start, now)
	}
	ma.remove(t, b)
}

// removeWrong tries to give back what is like a booking, but was not booked: part of
// it, more than it, other PEs, two that follow one another as one.
func (ma *machine) removeWrong(t rapid.TB, from chooser) {
	if len(ma.live) == 0 {
		return
	}
	b := ma.live[from.pick("which", len(ma.live))]
	was := b
	switch from.pick("what", 6) {
	case 0:
		b.Start += berth.Time(from.pick("later", int(b.End-b.Start)))
	case 1:
		b.End -= berth.Time(from.pick("less", int(b.End-b.Start)))
	case 2:
		b.Start -= berth.Time(from.pick("earlier", int(b.Start-ma.m.first)+1))
	case 3:
		b.End += berth.Time(from.pick("more", int(ma.m.last()-b.End)+1))
	case 4:
		other := ma.anyBlock(from)
		b.NPE, b.PEs = other.NPE, other.PEs
	case 5:
		for _, next := range ma.live {
			if next.Start == b.End && (ma.m.binding == berth.Late || next.PEs.Overlap(b.PEs) > 0) {
				b.End, b.NPE, b.PEs = next.End, min(b.NPE, next.NPE), b.PEs.And(next.PEs)
				break
			}
		}
		if ma.m.binding == berth.Early {
			b.NPE = b.PEs.Count()
		}
	}
	if ma.m.binding == berth.Early && (b.Start != was.Start || b.End != was.End) && ma.m.canRemove(was) && ma.m.canRemove(b) {
		t.Fatalf("%+v can be removed, like %+v, which was booked", b, was)
	}
	ma.remove(t, b)
}

// prune moves on by a few seconds, more rarely far.
func (ma *machine) prune(t rapid.TB, from chooser) {
	now := ma.pruned + berth.Time(from.pick("seconds on", oneOf(from, "at most", 2, 4, 4, 16)))
	ma.pruneTo(t, min(now, ma.m.last()-1))
}

func (ma *machine) pruneTo(t rapid.TB, now berth.Time) {
	want := ma.m.clone()
	want.prune(now)
	for range 2 { // the second time must change nothing
		ma.c.Prune(now)
		checkState(t, ma.c, want)
	}
	ma.m, ma.pruned = want, now
	for r := range ma.c.Records() {
		if r.Time < now {
			t.Fatalf("I1: record at %d after Prune(%d)", r.Time, now)
		}
	}
	kept := ma.live[:0]
	for _, b := range ma.live {
		if b.Start = max(b.Start, now); b.Start < b.End {
			kept = append(kept, b)
		}
	}
	ma.live = kept
}

// someQuery makes a query that is nearly always valid.
func (ma *machine) someQuery(from chooser) calendar.Query {
	ready, end := ma.span(from)
	q := calendar.Query{
		Now: ready - berth.Time(from.pick("now", int(ready-ma.m.first)+1)), Ready: ready,
		Duration: berth.Duration(end - ready),
		NPE:      1 + berth.Count(from.pick("npe", int(ma.m.size)+1)),
		Horizon:  oneOf(from, "horizon", calendar.Capped, calendar.Unbounded),
	}
	if from.pick("few PEs", 2) == 1 {
		q.NPE = min(q.NPE, 1+ma.m.size/4)
	}
	latest := int(ma.m.last() - end)
	switch from.pick("deadline", 4) {
	case 0:
		q.Deadline = end // immediate
	case 1:
		q.Deadline = berth.Forever
	default:
		q.Deadline = end + berth.Time(from.pick("slack", latest+1))
	}
	if ma.m.binding == berth.Early && from.pick("eligible", 4) == 1 {
		q.Eligible = subset(from, allPEs(ma.m.size))
		if from.pick("and beyond", 4) == 1 { // PEs that the calendar does not have
			beyond := berth.Run{Lo: berth.PE(ma.m.size), Hi: berth.PE(ma.m.size) + 70}
			q.Eligible = berth.NewPESet(append(slices.Clone(q.Eligible.Runs()), beyond)...)
		}
	}
	return q
}

func (ma *machine) query(t rapid.TB, from chooser) {
	checkQuery(t, ma.c, ma.m, ma.someQuery(from))
	start, end := ma.span(from)
	checkFree(t, ma.c, ma.m, berth.Interval{Start: start, End: end})
}

// malformed tries a block that cannot be right.
func (ma *machine) malformed(t rapid.TB, from chooser) {
	b := ma.anyBlock(from)
	switch from.pick("fault", 6) {
	case 0:
		b.End = b.Start
	case 1:
		b.Start, b.End = b.End, b.Start
	case 2:
		b.NPE = 0
	case 3:
		b.NPE = ma.m.size + 1
	case 4:
		b.End = berth.TimeLimit
	case 5:
		b.Start = -berth.TimeLimit
	}
	ma.try(t, "malformed Add", berth.Invalid, func() error { return ma.c.Add(b) })
	ma.try(t, "malformed Remove", berth.Invalid, func() error { return ma.c.Remove(b) })
}
