package calendar

import (
	"math/rand/v2"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/effort"
)

// splitmix is the generator of the comparison workloads.
type splitmix uint64

func (s *splitmix) next() uint64 {
	*s += 0x9E3779B97F4A7C15
	z := uint64(*s)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

// load describes a workload: R requests of 1..2^(K−1) PEs on N PEs, with ready
// times in random order over a span that gives the offered load, or all 0.
type load struct {
	n       berth.Count
	k       uint64
	r       int
	offered float64
	backlog bool
	rule    criterionRule
	limited bool // deadline = ready + 4·duration, else none
}

// requests returns the first n requests of the workload.
func (w load) requests(n int) []Query {
	s := splitmix(42)
	span := uint64(float64(w.r)*(float64(uint64(1)<<w.k-1)/float64(w.k))*7230/(float64(w.n)*w.offered)) + 1
	queries := make([]Query, n)
	for i := range queries {
		a, b, c := s.next(), s.next(), s.next()
		q := Query{NPE: 1 << (a % w.k), Duration: berth.Duration(60 + b%14341), Deadline: berth.Forever}
		if !w.backlog {
			q.Ready = berth.Time(c % span)
		}
		if w.limited {
			q.Deadline = q.Ready.Add(4 * q.Duration)
		}
		queries[i] = q
	}
	return queries
}

func (w load) admit(t testing.TB, c Calendar, q *Query) (Block, bool) {
	fit, ok := c.Find(*q, w.rule)
	if !ok {
		return Block{}, false
	}
	b := Block{Start: fit.Start, End: fit.End, NPE: q.NPE, PEs: fit.PEs}
	if err := c.Add(b); err != nil {
		t.Fatal(err)
	}
	return b, true
}

var firstFitRule = criterionRule{Order{By: ByStart}}

// TestEarlyLoadsEqualPlain admits and removes on both forms under every rule
// and compares starts and PEs, and in the end all records.
func TestEarlyLoadsEqualPlain(t *testing.T) {
	var loads []load
	for _, rule := range allRules {
		loads = append(loads, load{n: 1024, k: 8, r: 400, offered: 0.95, rule: rule, limited: true})
	}
	loads = append(loads,
		load{n: 1024, k: 8, r: 600, offered: 0.7, backlog: true, rule: firstFitRule},
		load{n: 240, k: 7, r: 3_000, offered: 0.9, rule: firstFitRule},
		load{n: 100_000, k: 14, r: 300, offered: 0.9, rule: firstFitRule},
		load{n: 5_000, k: 10, r: 300, offered: 0.9, rule: criterionRule{Order{By: ByArea, Largest: true}}, limited: true},
	)
	for _, w := range loads {
		plain, fast := NewPlain(w.n, berth.Early), newFastEarly(w.n).(*early)
		rng := rand.New(rand.NewPCG(1, 2))
		var live []Block
		warm := effort.Cases(w.r)
		for i, q := range w.requests(warm * 3 / 2) {
			a, okA := plain.Find(q, w.rule)
			b, okB := fast.Find(q, w.rule)
			if err := sameFit(a, okA, b, okB); err != nil {
				t.Fatalf("%+v, request %d: %v", w, i, err)
			}
			if okA {
				block := Block{Start: a.Start, End: a.End, NPE: q.NPE, PEs: a.PEs}
				if err := plain.Add(block); err != nil {
					t.Fatal(err)
				}
				if err := fast.Add(block); err != nil {
					t.Fatal(err)
				}
				live = append(live, block)
			}
			if i >= warm && len(live) > 0 {
				k := rng.IntN(len(live))
				block := live[k]
				live[k] = live[len(live)-1]
				live = live[:len(live)-1]
				if err := plain.Remove(block); err != nil {
					t.Fatal(err)
				}
				if err := fast.Remove(block); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := sameRecords(plain, fast); err != nil {
			t.Errorf("%+v: %v", w, err)
		}
		if err := fast.check(); err != nil {
			t.Errorf("%+v: %v", w, err)
		}
	}
}

// TestEarlyFindAllocatesTheAnswer holds Find to one allocation, that of the
// PEs it answers with.
func TestEarlyFindAllocatesTheAnswer(t *testing.T) {
	for _, rule := range allRules {
		w := load{n: 1024, k: 8, r: 2_000, offered: 0.9, rule: rule, limited: true}
		c := newFastEarly(w.n)
		queries := w.requests(w.r)
		for i := range queries {
			w.admit(t, c, &queries[i])
		}
		q := load{n: 1024, k: 8, r: 2_000, offered: 0.9, limited: true}.requests(w.r)[0]
		q.NPE = 1
		fits, asked := false, Rule(rule)
		allocations := testing.AllocsPerRun(100, func() { _, fits = c.Find(q, asked) })
		if !fits || allocations > 1 {
			t.Errorf("%+v: %v allocations, fits %v", rule.order, allocations, fits)
		}
	}
}

// Leaves are divided when they are full, not before: on average they hold at least half
// as many records as they can.
func TestEarlyLeavesAreFilled(t *testing.T) {
	c := newFastEarly(1024).(*early)
	w := load{n: 1024, k: 8, r: 5000, offered: 0.7}
	for _, q := range w.requests(w.r) {
		w.admit(t, c, &q)
	}
	leaves, records := 0, 0
	for _, pg := range c.tree.pages {
		for _, l := range pg.leaves[:pg.n] {
			leaves++
			records += int(l.n)
		}
	}
	if records < leaves*leafRecords/2 {
		t.Errorf("%d records in %d leaves, want at least %d in each", records, leaves, leafRecords/2)
	}
}

// A search for PEs of a class gathers what changes of that class, and no record of others
// alone, whatever else is booked in the window: it costs about what it would in a pool of its own.
func TestEarlySweepOfAClassGathersItsOwnChanges(t *testing.T) {
	c := newFastEarly(384).(*early)
	class := berth.NewPESet(berth.Run{Lo: 128, Hi: 256})
	others := []berth.PESet{berth.NewPESet(berth.Run{Hi: 128}), class, berth.NewPESet(berth.Run{Lo: 256, Hi: 384})}
	held := Block{End: 1 << 21, NPE: 1, PEs: berth.PEsOf(128)} // no search is over because all of the class is free
	if err := c.Add(held); err != nil {
		t.Fatal(err)
	}
	for i, q := range (load{n: 128, k: 8, r: 1500, offered: 0.9, limited: true}).requests(1500) {
		q.Eligible = others[i%3]
		if fit, ok := Earliest(c, q); ok {
			if err := c.Add(Block{Start: fit.Start, End: fit.End, NPE: q.NPE, PEs: fit.PEs}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, rule := range allRules {
		if rule.order.By == ByStart || rule.order.By == Custom {
			continue // these may depend on starts that others make
		}
		if _, ok := c.Find(Query{Ready: 1000, Deadline: 1 << 20, Duration: 500, NPE: 60, Eligible: class}, rule); !ok {
			t.Fatalf("%+v: nothing found", rule.order)
		}
		s := c.scratch.sweep
		if len(s.times) < 40 {
			t.Fatalf("%+v: %d records gathered, too few to tell anything", rule.order, len(s.times))
		}
		for i := range s.times {
			if s.ends[i] == s.ends[i+1] {
				t.Fatalf("%+v: nothing of the class changes at the record of %d", rule.order, s.times[i])
			}
		}
		for _, p := range s.set {
			if p.word < 2 || p.word > 3 {
				t.Fatalf("%+v: word %d is gathered; the class has 2 and 3", rule.order, p.word)
			}
		}
	}
}
