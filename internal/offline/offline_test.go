package offline

import (
	"math/rand/v2"
	"testing"

	"github.com/berth-hpc/berth"
)

// draw makes a small problem, tight enough that most have to reject something.
func draw(r *rand.Rand, jobs int, seconds int64) *Problem {
	p := &Problem{PEs: berth.Count(2 + r.IntN(5))}
	by := r.IntN(2)
	for range jobs {
		j := Job{NPE: berth.Count(1 + r.IntN(int(p.PEs)+1)), Ready: berth.Time(r.Int64N(seconds)), Duration: berth.Duration(1 + r.Int64N(seconds/2)), Value: 1}
		j.Latest = j.Ready + berth.Time(r.Int64N(seconds)) - 1 // at times there is no start
		if by == ByWork {
			j.Value = int64(j.NPE) * int64(j.Duration)
		}
		p.Jobs = append(p.Jobs, j)
	}
	return p
}

// most returns the value of the best plan, by trying every start of every job with a count for
// each second.
func (p *Problem) most(used []berth.Count, i int) int64 {
	if i == len(p.Jobs) {
		return 0
	}
	j := &p.Jobs[i]
	best := p.most(used, i+1)
starts:
	for start := j.Ready; start <= j.Latest; start++ {
		run := used[start : int64(start)+int64(j.Duration)]
		for _, n := range run {
			if n+j.NPE > p.PEs {
				continue starts
			}
		}
		for t := range run {
			run[t] += j.NPE
		}
		best = max(best, j.Value+p.most(used, i+1))
		for t := range run {
			run[t] -= j.NPE
		}
	}
	return best
}

// Against every plan there is: the bound is never less than the best, for any prices; those that
// are looked for are within a fifth; and the search finds the best.
func TestBoundAndSearchAgainstAllPlans(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	tight, gaps, asked := 0, int64(0), int64(0)
	const cases = 300
	for n := range cases {
		p := draw(r, 1+r.IntN(5), 8)
		best := p.most(make([]berth.Count, 64), 0)
		for range 10 {
			prices := &Prices{Begin: berth.Time(r.IntN(4) - 2), Cell: berth.Duration(1 + r.IntN(3)), Scale: 64, Cells: make([]int64, 1+r.IntN(20))}
			for k := range prices.Cells {
				prices.Cells[k] = r.Int64N(40)
			}
			if bound := p.Bound(prices); bound < best {
				t.Fatalf("case %d: %d is no bound of %d, of %+v at %+v", n, bound, best, p, prices)
			}
		}
		plan := p.Search(nil, 300, rand.New(rand.NewPCG(uint64(n), 2)))
		reached, possible := p.Value(plan)
		if !possible || reached != best {
			t.Errorf("case %d: found %d (possible: %t), the best is %d, of %+v", n, reached, possible, best, p)
		}
		bound := min(p.Bound(p.Price(32, 300)), p.Worth())
		if bound < best {
			t.Fatalf("case %d: %d is no bound of %d", n, bound, best)
		}
		if bound == best {
			tight++
		}
		gaps, asked = gaps+bound-best, asked+p.Worth()
	}
	t.Logf("the bound is the best in %d of %d cases, and %.1f %% of all value above it", tight, cases, 100*float64(gaps)/float64(asked))
	if tight < cases/2 || gaps*20 > asked {
		t.Error("the bounds are too loose: the prices are not those that the search for them should find")
	}
}

// A plan that breaks one rule is told from one that keeps them.
func TestValueKnowsWhatIsPossible(t *testing.T) {
	p := &Problem{PEs: 4, Jobs: []Job{{3, 0, 10, 5, 7}, {2, 0, 10, 5, 1}}}
	for _, c := range []struct {
		plan     Plan
		value    int64
		possible bool
	}{
		{Plan{0, 5}, 8, true},
		{Plan{0, 4}, 0, false},
		{Plan{11, 0}, 0, false},
		{Plan{-1, 6}, 0, false},
		{Plan{4, Rejected}, 7, true},
		{Plan{4}, 0, false},
	} {
		value, possible := p.Value(c.plan)
		if possible != c.possible || possible && value != c.value {
			t.Errorf("%v: %d, %t; want %d, %t", c.plan, value, possible, c.value, c.possible)
		}
	}
}

// A search that begins with a plan returns none that is worse, however little it may do.
func TestSearchKeepsWhatItHas(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for n := range 50 {
		p := draw(r, 12, 20)
		first := p.Search(nil, 400, rand.New(rand.NewPCG(uint64(n), 1)))
		had, _ := p.Value(first)
		got, possible := p.Value(p.Search(first, n%3, rand.New(rand.NewPCG(uint64(n), 2))))
		if !possible || got < had {
			t.Errorf("case %d: from %d to %d (possible: %t)", n, had, got, possible)
		}
	}
}
