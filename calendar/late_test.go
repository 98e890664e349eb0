package calendar

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/effort"
)

var lateOps = effort.Flag("late.ops", 2000, "random operations per distribution against the plain form")

// lateWorld is one distribution of random operations: times within span of
// origin, durations up to length, sizes up to pes of size, and how often each
// of 100 operations does what.
type lateWorld struct {
	name         string
	size, pes    berth.Count
	origin, span berth.Time
	length       berth.Duration
	add, remove  int // the rest asks
	prune        int // in 1000 operations
	live         int // where removing begins to prevail
	seldom       int // compare all records only this often
}

var lateWorlds = []lateWorld{
	{"coincidences", 16, 8, 0, 60, 20, 30, 20, 5, 40, 1},
	{"full", 8, 8, 0, 4000, 60, 30, 10, 5, 200, 4},
	{"wide", 1000, 999, -500, 3000, 200, 30, 15, 3, 300, 4},
	{"dense", 5000, 9, 1000, 4000, 1000, 60, 10, 1, 1500, 50},
	{"late", 64, 32, 1<<42 - 3000, 2000, 300, 30, 20, 2, 100, 4},
	{"early", 64, 32, -1<<42 + 2000, 2000, 300, 30, 20, 2, 100, 4},
	{"astronomic", 64, 32, 0, 1<<42 - 1<<40, 1 << 39, 40, 20, 1, 100, 4},
	{"mixed scales", 64, 20, 0, 1 << 41, 2000, 40, 20, 1, 200, 4},
	{"many", 256, 128, 0, 200000, 900, 50, 8, 1, 4000, 100},
	{"backlog", 64, 40, 0, 1, 900, 40, 22, 0, 1500, 50},
	{"great seams", 5000, 4000, 0, 60, 20, 40, 25, 20, 60, 1},
	{"sparse", 128, 50, 0, 50000, 900, 25, 25, 0, 300, 5},
}

// lateDuel drives the fast and the plain form with the same operations.
type lateDuel struct {
	t     *testing.T
	w     lateWorld
	rng   *rand.Rand
	fast  *fastLate
	plain Calendar
	live  []Block
	now   berth.Time
}

func TestLateEqualsPlain(t *testing.T) {
	for _, w := range lateWorlds {
		t.Run(w.name, func(t *testing.T) {
			for seed := range uint64(2) {
				d := lateDuel{t: t, w: w, rng: rand.New(rand.NewPCG(seed, 7)), now: w.origin}
				d.fast = newFastLate(w.size).(*fastLate)
				d.plain = NewPlain(w.size, berth.Late)
				ops := lateOps()
				if w.seldom >= 50 {
					ops = min(ops, 10_000) // the plain form is slow with many records
				}
				for i := range ops / 2 {
					d.op(i)
					if t.Failed() {
						t.Fatalf("seed %d, operation %d", seed, i)
					}
				}
			}
		})
	}
}

func (d *lateDuel) time() berth.Time { return d.w.origin + berth.Time(d.rng.Int64N(int64(d.w.span))) }
func (d *lateDuel) pes() berth.Count { return 1 + berth.Count(d.rng.Int64N(int64(d.w.pes))) }
func (d *lateDuel) duration() berth.Duration {
	return 1 + berth.Duration(d.rng.Int64N(int64(d.w.length)))
}

func (d *lateDuel) query() Query {
	q := Query{Ready: d.time(), Duration: d.duration(), NPE: d.pes(), Deadline: berth.Forever}
	q.Now = q.Ready - berth.Time(d.rng.Int64N(int64(d.w.span)))
	q.Now = max(q.Now, -berth.TimeLimit+1)
	if d.rng.IntN(3) > 0 {
		q.Deadline = q.Ready + berth.Time(q.Duration)*berth.Time(1+d.rng.IntN(5)) + berth.Time(d.rng.IntN(3))
		q.Deadline = min(q.Deadline, berth.TimeLimit-1)
	}
	if d.rng.IntN(2) == 0 {
		q.Horizon = Unbounded
	}
	if d.rng.IntN(50) == 0 {
		q.NPE = d.w.size + 1
	}
	return q
}

func (d *lateDuel) op(i int) {
	kind := d.rng.IntN(100)
	if len(d.live) > d.w.live {
		kind = (kind + d.w.add/2) % 100
	}
	changed := true
	switch {
	case kind < d.w.add:
		d.book()
	case kind < d.w.add+d.w.remove:
		d.giveBack()
	default:
		changed = false
		d.ask()
	}
	if d.rng.IntN(1000) < d.w.prune {
		now := d.now + berth.Time(d.rng.Int64N(int64(d.w.span)/20+2)) - 1
		d.fast.Prune(now)
		d.plain.Prune(now)
		d.now, changed = max(d.now, now), true
	}
	if changed && i%d.w.seldom == 0 {
		d.compare()
	}
}

// compare checks the structure and compares all records.
func (d *lateDuel) compare() {
	if err := d.fast.check(); err != nil {
		d.t.Error(err)
	}
	got, want := slices.Collect(d.fast.Records()), slices.Collect(d.plain.Records())
	if !slices.EqualFunc(got, want, func(a, b Record) bool { return a.Time == b.Time && a.Free == b.Free }) {
		d.t.Errorf("records\n%v, want\n%v", got, want)
	}
	if err := sameChanges(d.plain, d.fast); err != nil {
		d.t.Error(err)
	}
	seams := map[berth.Time]berth.Count{}
	for _, s := range d.plain.(*plain[berth.Count]).seams {
		seams[s.time] = s.amount
	}
	if got := d.fast.allSeams(); !maps.Equal(got, seams) {
		d.t.Errorf("seams\n%v, want\n%v", got, seams)
	}
}

// allSeams returns how many PEs end and begin at each time.
func (c *fastLate) allSeams() map[berth.Time]berth.Count {
	seams := maps.Clone(c.seams.at)
	maps.DeleteFunc(seams, func(t berth.Time, _ berth.Count) bool { return t < c.seams.pruned })
	c.free.eachLeaf(c.free.root, func(l *lateLeaf) {
		for _, p := range l.points() {
			if p.seam() > 0 {
				seams[l.time(p)] += p.seam()
			}
		}
	})
	return seams
}

func (t *lateTree) eachLeaf(nd *lateNode, visit func(*lateLeaf)) {
	for i := range int(nd.n) {
		if nd.level == 0 {
			visit(nd.leaf[i])
		} else {
			t.eachLeaf(nd.kid[i], visit)
		}
	}
}

// TestLateGrowsAndShrinks builds calendars of some levels and takes them down
// again in several ways.
func TestLateGrowsAndShrinks(t *testing.T) {
	for seed := range uint64(6) {
		w := lateWorld{size: 64, pes: 3, span: 400000, length: 900}
		d := lateDuel{t: t, w: w, rng: rand.New(rand.NewPCG(seed, 8))}
		d.fast = newFastLate(w.size).(*fastLate)
		d.plain = NewPlain(w.size, berth.Late)
		for wave := range 3 {
			for range 3000 {
				b := Block{NPE: d.pes(), Start: d.time()}
				b.End = b.Start.Add(d.duration())
				if d.same("Add", d.fast.Add(b), d.plain.Add(b)) {
					d.live = append(d.live, b)
				}
			}
			d.compare()
			if seed == 3 {
				d.now += 131000 // most of the tree goes at once
				d.fast.Prune(d.now)
				d.plain.Prune(d.now)
				d.compare()
				d.live = slices.DeleteFunc(d.live, func(b Block) bool { return b.Start < d.now })
			}
			for i := 0; len(d.live) > 30*wave; i++ {
				k := d.rng.IntN(len(d.live))
				if seed%2 == 0 {
					k = len(d.live) - 1
				}
				b := d.live[k]
				d.live = slices.Delete(d.live, k, k+1)
				d.same("Remove", d.fast.Remove(b), d.plain.Remove(b))
				if i%211 == 0 {
					d.compare()
				}
				if i%1000 == 0 {
					d.ask()
				}
				if seed >= 4 && i%500 == 0 {
					d.now += berth.Time(d.rng.Int64N(60000))
					d.fast.Prune(d.now)
					d.plain.Prune(d.now)
					d.compare()
					d.live = slices.DeleteFunc(d.live, func(b Block) bool { return b.Start < d.now })
				}
			}
			d.compare()
			if t.Failed() {
				t.Fatalf("seed %d, wave %d", seed, wave)
			}
		}
	}
}

func (d *lateDuel) same(what string, a, b error) bool {
	code := func(err error) berth.Code {
		if e, ok := err.(*berth.Error); ok { //nolint:errorlint // the contract says *berth.Error
			return e.Code
		}
		return ""
	}
	if (a == nil) != (b == nil) || code(a) != code(b) {
		d.t.Errorf("%s: %v, want %v", what, a, b)
	}
	return a == nil
}

func (d *lateDuel) book() {
	b := Block{NPE: d.pes(), Start: d.time()}
	b.End = b.Start.Add(d.duration())
	if d.rng.IntN(4) > 0 {
		q := d.query()
		rule := allRules[d.rng.IntN(len(allRules)-2)]
		if d.rng.IntN(3) > 0 {
			rule = allRules[0]
		}
		got, ok := d.fast.Find(q, rule)
		want, wantOK := d.plain.Find(q, rule)
		if ok != wantOK || got.Start != want.Start || got.End != want.End || got.Key != want.Key {
			d.t.Errorf("%+v, %v: %v %v, want %v %v", q, rule, got, ok, want, wantOK)
		}
		if !ok {
			return
		}
		b = Block{Start: got.Start, End: got.End, NPE: q.NPE}
	}
	if d.rng.IntN(100) == 0 {
		b.End = b.Start
	}
	if d.same(fmt.Sprintf("Add(%+v)", b), d.fast.Add(b), d.plain.Add(b)) {
		d.live = append(d.live, b)
	}
}

func (d *lateDuel) giveBack() {
	b := Block{NPE: d.pes(), Start: d.time()}
	b.End = b.Start.Add(d.duration())
	i := -1
	if len(d.live) > 0 && d.rng.IntN(10) > 0 {
		i = d.rng.IntN(len(d.live))
		if b = d.live[i]; d.rng.IntN(3) == 0 {
			b, i = d.wrong(b), -1
		}
	}
	if d.same(fmt.Sprintf("Remove(%+v)", b), d.fast.Remove(b), d.plain.Remove(b)) && i >= 0 {
		d.live[i] = d.live[len(d.live)-1]
		d.live = d.live[:len(d.live)-1]
	}
}

// wrong returns a block that is like a booking, but in its start, its end or its PEs.
func (d *lateDuel) wrong(b Block) Block {
	shift := berth.Time(d.rng.Int64N(2*int64(b.End-b.Start)+1)) - (b.End - b.Start)
	switch d.rng.IntN(3) {
	case 0:
		b.Start += shift
	case 1:
		b.End += shift
	default:
		b.NPE += d.pes()
	}
	return b
}

func (d *lateDuel) ask() {
	q := d.query()
	switch d.rng.IntN(11) {
	case 0:
		got, at := d.fast.MostFree(q)
		want, wantAt := d.plain.MostFree(q)
		if got != want || at != wantAt {
			d.t.Errorf("MostFree(%+v): %d at %d, want %d at %d", q, got, at, want, wantAt)
		}
	case 1, 2:
		var got, want []berth.Rectangle
		for r := range d.fast.Rectangles(q) {
			got = append(got, r)
		}
		for r := range d.plain.Rectangles(q) {
			want = append(want, r)
		}
		if !slices.Equal(got, want) {
			d.t.Errorf("Rectangles(%+v):\n%v, want\n%v", q, got, want)
		}
	case 3:
		iv := berth.Interval{Start: q.Ready, End: d.time()}
		got, _ := d.fast.Free(iv)
		want, _ := d.plain.Free(iv)
		if got != want {
			d.t.Errorf("Free(%v): %d, want %d", iv, got, want)
		}
	default:
		for _, rule := range allRules {
			got, ok := d.fast.Find(q, rule)
			want, wantOK := d.plain.Find(q, rule)
			if ok != wantOK || got.Start != want.Start || got.End != want.End || got.Key != want.Key {
				d.t.Errorf("Find(%+v, %v): %+v %v, want %+v %v", q, rule, got, ok, want, wantOK)
			}
		}
	}
}

// TestLateFindAllocatesNothing holds the searches that walk no candidates to no
// allocation.
func TestLateFindAllocatesNothing(t *testing.T) {
	w := load{n: 1024, k: 8, r: 2_000, offered: 0.9, rule: firstFitRule}
	c := newFastLate(w.n)
	queries := w.requests(w.r)
	for i := range queries {
		w.admit(t, c, &queries[i])
	}
	for _, rule := range []Rule{firstFitRule, criterionRule{Order{By: ByFree, Largest: true}}} {
		q, fits := queries[0], false
		allocations := testing.AllocsPerRun(100, func() { _, fits = c.Find(q, rule) })
		if !fits || allocations > 0 {
			t.Errorf("%+v: %v allocations, fits %v", rule.Order(), allocations, fits)
		}
	}
}

// A search reads some leaves and then learns how long the runs are: it passes over
// leaves whose runs are too short.
func TestLateSearchPassesOverShortRuns(t *testing.T) {
	for _, q := range []struct{ busy, npe berth.Count }{{40, 32}, {64, 1}} {
		c := shortRuns(t, 5000, q.busy)
		s := lateSearch{tree: &c.free, n: q.npe, d: 6, last: 49_000, sure: true}
		s.class, s.threshold = lateClass(s.n)
		if verdict := s.node(c.free.root, c.size, lateDusk, true); verdict != lateNever {
			t.Fatalf("%d PEs: the search ends with %d at %d, want none", q.npe, verdict, s.c)
		}
		if s.leaves > lateEasyLeaves {
			t.Errorf("%d PEs: %d leaves are read, want %d", q.npe, s.leaves, lateEasyLeaves)
		}
	}
}

// A run whose end lies within the span of a leaf is found, also if every value of the leaf
// is too low and the points before the end are gone: the span begins before the first
// point then. Wherever the leaf is divided, the 100 s before 2000 are the answer.
func TestLateRunEndsInALeafWithoutRuns(t *testing.T) {
	seen := false
	for shift := range berth.Time(2 * lateLeafCap) {
		c := newFastLate(64).(*fastLate)
		book := func(n berth.Count, start, end berth.Time) Block {
			b := Block{NPE: n, Start: start, End: end}
			if err := c.Add(b); err != nil {
				t.Fatal(err)
			}
			return b
		}
		book(40, 0, 1900)
		book(32, 1900, 2000)
		book(33, 2000, 9000)
		for k := range 200 + shift {
			book(1, 2*k, 2*k+1)
		}
		var gone []Block
		for k := range berth.Time(50) {
			gone = append(gone, book(1, 1900+2*k, 1901+2*k))
		}
		for k := range berth.Time(500) {
			book(1, 2000+2*k, 2001+2*k)
		}
		for _, b := range gone {
			if err := c.Remove(b); err != nil {
				t.Fatal(err)
			}
		}
		path := latePath{}
		leaf := c.free.lead(&path, 1999)
		lo := path[0].nd.sep[path[0].i]
		seen = seen || lo > 1900 && leaf.time(leaf.points()[0]) == 2000
		if start, ok := c.free.firstFit(32, 100, 0, berth.Forever); !ok || start != 1900 {
			t.Errorf("with a leaf from %d on: %d %t, want 1900", lo, start, ok)
		}
	}
	if !seen {
		t.Error("no leaf begins within the run and has its first point at the end of it")
	}
}

// A search for the best rectangle is over at one that cannot be beaten.
func TestLateFindEndsAtTheIdeal(t *testing.T) {
	busy := map[bool][]Block{ // by whether the largest is wanted
		false: {{NPE: 3, Start: 0, End: 5}, {NPE: 4, Start: 5, End: 10}, {NPE: 2, Start: 20, End: 30}},
		true:  {{NPE: 3, Start: 0, End: 5}, {NPE: 2, Start: 20, End: 30}},
	}
	for _, order := range []Order{{By: ByFree}, {By: ByLength}, {By: ByArea}, {By: ByLength, Largest: true}, {By: ByArea, Largest: true}} {
		c := newFastLate(4).(*fastLate)
		for _, b := range busy[order.Largest] {
			if err := c.Add(b); err != nil {
				t.Fatal(err)
			}
		}
		rule := countingRule{criterionRule{order}, new(int)}
		fit, ok := c.Find(Query{Duration: 5, NPE: 1, Deadline: berth.Forever, Horizon: Unbounded}, rule)
		if !ok || fit.Start != 0 || *rule.keys != 1 {
			t.Errorf("%+v: the fit is %+v, %t, after %d rectangles; want 0 after the first", order, fit, ok, *rule.keys)
		}
	}
}

// countingRule counts the rectangles that are compared.
type countingRule struct {
	criterionRule
	keys *int
}

func (r countingRule) Key(b berth.Rectangle) int64 {
	*r.keys++
	return r.criterionRule.Key(b)
}

// shortRuns returns a calendar of 64 PEs with the given number of blocks of some PEs and
// 5 s, one every 10 s from 5 on.
func shortRuns(t *testing.T, times berth.Time, busy berth.Count) *fastLate {
	t.Helper()
	c := newFastLate(64).(*fastLate)
	for k := range times {
		if err := c.Add(Block{NPE: busy, Start: 10*k + 5, End: 10*k + 10}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// The check that the random tests rely on sees each way in which the structure can be
// wrong.
func TestLateCheckSeesFaults(t *testing.T) {
	for want, spoil := range map[string]func(*fastLate){
		"the base is":         func(c *fastLate) { c.free.base-- },
		"a seam of":           func(c *fastLate) { c.seams.at[3] = 0 },
		"are not free during": func(c *fastLate) { c.fit, c.fitPEs = berth.Interval{Start: 0, End: 20}, 64 },
		"one child":           func(c *fastLate) { c.free.root.n = 1 },
		"children, from":      func(c *fastLate) { c.free.root.kid[0].sep[0]++ },
		"covers":              func(c *fastLate) { c.free.root.sep[1] = lateDawn },
		"child on level":      func(c *fastLate) { c.free.root.kid[0].level++ },
		"empty leaf":          func(c *fastLate) { c.free.root.kid[0].leaf[1].n = 0 },
		"point ":              func(c *fastLate) { l := c.free.root.kid[0].leaf[0]; l.pts[1] = l.pts[0] },
		"figures":             func(c *fastLate) { c.free.root.kid[0].low[0]-- },
		"runs of":             func(c *fastLate) { c.free.root.kid[1].runs.class[10].best[1] = 1 },
		"keeps child":         func(c *fastLate) { nd := c.free.root; nd.kid[nd.n] = nd.kid[0] },
	} {
		c := shortRuns(t, 1000, 40)
		c.free.firstFit(32, 6, 0, 9_000)
		if err := c.check(); err != nil || c.free.root.level == 0 {
			t.Fatalf("%d levels, %v", c.free.root.level, err)
		}
		spoil(c)
		if err := c.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want a report with %q", err, want)
		}
	}
}

// What is known of the runs of a child holds no longer where PEs are given back that were taken
// before the child began, also where a booking that began before it has ended inside it since.
func TestLateRunsBelowABookingThatEndsInside(t *testing.T) {
	const long = 20_000
	c := newFastLate(1000).(*fastLate)
	add := func(b Block) Block {
		t.Helper()
		if err := c.Add(b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	add(Block{NPE: 160, Start: 0, End: long})
	for at := berth.Time(10); at < long; at += 10 { // many leaves under many nodes
		add(Block{NPE: 1, Start: at, End: at + 5})
	}
	wide := add(Block{NPE: 100, Start: 0, End: long})
	class, threshold := lateClass(768)
	if c.free.root.level == 0 || threshold != 768 {
		t.Fatalf("a tree of level %d, runs of %d", c.free.root.level, threshold)
	}
	for at := berth.Time(10); at < long; at += 10 {
		c.free.measure(at, class, threshold)
	}
	add(Block{NPE: 50, Start: 100, End: long/2 + 3})
	if err := c.Remove(wide); err != nil {
		t.Fatal(err)
	}
	if err := c.check(); err != nil {
		t.Error(err)
	}
}

// The earliest start may be the last one that is allowed, wherever a leaf begins.
func TestLateFitsAtTheLastStart(t *testing.T) {
	c := newFastLate(2).(*fastLate)
	const times = 1000
	for k := range berth.Time(times) {
		if err := c.Add(Block{NPE: 1, Start: 2 * k, End: 2*k + 1}); err != nil {
			t.Fatal(err)
		}
	}
	for ready := range berth.Time(2 * times) {
		for _, last := range []berth.Time{ready, ready + 1} {
			want := ready | 1 // the PE that is taken is back
			if start, ok := c.free.firstFit(2, 1, ready, last); ok != (want <= last) || ok && start != want {
				t.Fatalf("from %d until %d: %d %t, want %d if that is allowed", ready, last, start, ok, want)
			}
		}
	}
}

// What a search has measured of the leaves below a node it knows of the node: where they never
// fall below the size that is looked for, where they always do, and where they do now and then.
func TestLateKnowsOfANodeWhatIsMeasuredBelowIt(t *testing.T) {
	c := newFastLate(1000).(*fastLate)
	add := func(b Block) {
		t.Helper()
		if err := c.Add(b); err != nil {
			t.Fatal(err)
		}
	}
	const section, sections = 3000, 20
	for k := range berth.Time(sections) {
		// One PE is taken every other second beside as many as leave 767 to 769.
		begin := k * section
		add(Block{NPE: []berth.Count{231, 233, 231, 232, 233}[k%5], Start: begin, End: begin + section})
		for at := begin; at < begin+section; at += 10 {
			add(Block{NPE: 1, Start: at + 1, End: at + 6})
		}
	}
	class, threshold := lateClass(768)
	root := c.free.root
	if root.level == 0 || threshold != 768 {
		t.Fatalf("a tree of level %d, runs of %d", root.level, threshold)
	}
	for at := berth.Time(0); at < section*sections; at += 10 {
		c.free.measure(at, class, threshold)
	}
	v := c.free.base
	for i := range int(root.n) {
		if run, exact, known := root.runs.get(i, class, v); !known || !exact {
			t.Errorf("child %d of %d: %v, exact: %t, known: %t", i, root.n, run, exact, known)
		}
		v += root.sum[i]
	}
	if err := c.check(); err != nil {
		t.Error(err)
	}
}

// A run that a booking has shortened ends no search too early where a part of its node is measured
// anew: only a node all of whose children are measured is.
func TestLateSearchAfterABookingAtTheEndOfANode(t *testing.T) {
	const npe, long = 768, 20_000
	c := newFastLate(1000).(*fastLate)
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(c.Add(Block{NPE: 1000 - npe, Start: 0, End: long}))
	for at := berth.Time(0); at < long; at += 10 {
		do(c.Add(Block{NPE: 1, Start: at, End: at + 5}))
	}
	root := c.free.root
	if root.level == 0 || root.n < 3 {
		t.Fatalf("a tree of level %d, of %d nodes", root.level, root.n)
	}
	end := root.sep[2] / 10 * 10 // of the second node
	for at := end - 50; at < end+60; at += 10 {
		do(c.Remove(Block{NPE: 1, Start: at, End: at + 5}))
	}
	class, threshold := lateClass(npe)
	for at := berth.Time(0); at < long; at += 10 {
		c.free.measure(at, class, threshold)
	}
	if root.sep[2] <= end-50 || root.sep[2] >= end+60 {
		t.Fatalf("the second node ends at %d, not in the run from %d to %d", root.sep[2], end-55, end+60)
	}
	do(c.Add(Block{NPE: 1, Start: end - 20, End: end - 15})) // the run is one of 75 s
	c.free.measure(root.sep[1], class, threshold)            // at the begin of the node
	for d, want := range map[berth.Duration]berth.Time{5: 5, 35: end - 55, 75: end - 15, 76: long - 5, 115: long - 5} {
		if start, ok := c.free.firstFit(npe, d, 0, berth.Forever); !ok || start != want {
			t.Errorf("for %d s: %d %t, want %d", d, start, ok, want)
		}
	}
	do(c.check())
}
