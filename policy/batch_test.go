package policy_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// greedy are the matchers that have a plain form.
var greedy = []string{"ajsm", "min-min", "max-min", "sufferage", "mct", "met"}

type pairs = []policy.Assignment

func expectBatch(t *testing.T, name string, r *policy.Round, aware bool, want pairs) {
	t.Helper()
	if got := batch(name, r, aware); !slices.Equal(got, want) {
		t.Errorf("%s, aware %v: %v, want %v", name, aware, got, want)
	}
}

func TestBatchesTable(t *testing.T) {
	if name := policy.Batches[0].Name; name != "ajsm" {
		t.Errorf("the default is %s", name)
	}
	for _, row := range policy.Batches {
		if found, ok := policy.BatchNamed(row.Name); !ok || found.About != row.About {
			t.Errorf("%s is not found", row.Name)
		}
		if got := row.New(policy.BatchOptions{}).Assign(&policy.Round{}, pairs{{Job: 7}}); !slices.Equal(got, pairs{{Job: 7}}) {
			t.Errorf("%s assigns %v where nothing is pending", row.Name, got)
		}
	}
	if _, ok := policy.BatchNamed("minmin"); ok {
		t.Error("a matcher that is not in the table")
	}
}

// workedExample is specification 5, b.6: jobs A, B, C and sites S1, S2.
func workedExample(deadlineA berth.Time) *table {
	r := newTable(240,
		[]policy.BatchJob{{NPE: 4, Deadline: deadlineA}, {NPE: 8, Deadline: 400}, {NPE: 4, Deadline: 150}},
		[]policy.BatchPool{{PEs: 10, Free: 10, Site: 0}, {PEs: 4, Free: 4, Site: 1}})
	r.run = [][]berth.Duration{{100, 50}, {60, 30}, {200, 100}}
	r.stage = [][]berth.Duration{{10, 30}, {10, 30}, {10, 30}}
	r.serves = [][]bool{{true, true}, {true, false}, {false, true}}
	return r
}

func TestAJSMWorkedExample(t *testing.T) {
	expectBatch(t, "ajsm", &workedExample(400).Round, true, pairs{{Job: 1, Pool: 0}, {Job: 0, Pool: 1}})
	expectBatch(t, "ajsm", &workedExample(310).Round, true, pairs{{Job: 1, Pool: 0}})
	// Equality is in time; a second less is not.
	expectBatch(t, "ajsm", &workedExample(320).Round, true, pairs{{Job: 1, Pool: 0}, {Job: 0, Pool: 1}})
	expectBatch(t, "ajsm", &workedExample(319).Round, true, pairs{{Job: 1, Pool: 0}})
}

// What the others make of the worked example, by hand.
func TestBatchesOnTheWorkedExample(t *testing.T) {
	r := &workedExample(400).Round
	a1, a2 := policy.Assignment{Job: 0, Pool: 0}, policy.Assignment{Job: 0, Pool: 1}
	b1, c2 := policy.Assignment{Job: 1, Pool: 0}, policy.Assignment{Job: 2, Pool: 1}
	for _, c := range []struct {
		name           string
		aware, unaware pairs
	}{
		{"ajsm", pairs{b1, a2}, pairs{b1, a2}},
		{"min-min", pairs{a2, b1}, pairs{a2, b1}},   // A costs 290, B 300
		{"max-min", pairs{b1, a2}, pairs{c2, a1}},   // unaware, C costs 340, then A 340, and B finds no room
		{"sufferage", pairs{b1, a2}, pairs{b1, a2}}, // B has S1 only, which leaves A and C one place
		{"mct", pairs{a2, b1}, pairs{a2, b1}},       // C finds no room
		{"met", pairs{a2, b1}, pairs{a2, b1}},       // B is too large for S2
		{"mga", pairs{a2, b1}, pairs{a1, c2}},       // loads of 48 and 50; unaware, of 88 and 100, but then B finds no room
	} {
		expectBatch(t, c.name, r, true, c.aware)
		expectBatch(t, c.name, r, false, c.unaware)
	}
}

// X7: one site, equal transfer, ample nodes: the shortest first.
func TestAJSMOnOneSiteIsShortestFirst(t *testing.T) {
	lengths := []berth.Duration{30, 10, 20, 10, 5}
	r := newTable(100, slices.Repeat([]policy.BatchJob{{NPE: 3, Deadline: berth.Forever}}, len(lengths)),
		[]policy.BatchPool{{PEs: 64, Free: 64}})
	for job, length := range lengths {
		r.run[job][0], r.stage[job][0] = length, 17
	}
	want := pairs{{Job: 4}, {Job: 1}, {Job: 3}, {Job: 2}, {Job: 0}}
	expectBatch(t, "ajsm", &r.Round, true, want)
	expectBatch(t, "min-min", &r.Round, true, want)
	expectBatch(t, "max-min", &r.Round, true, pairs{{Job: 0}, {Job: 2}, {Job: 1}, {Job: 3}, {Job: 4}})
}

// X8: one site: first come, first served.
func TestMCTOnOneSiteIsFirstComeFirstServed(t *testing.T) {
	lengths := []berth.Duration{30, 10, 20, 10, 5}
	r := newTable(100, slices.Repeat([]policy.BatchJob{{NPE: 3, Deadline: berth.Forever}}, len(lengths)),
		[]policy.BatchPool{{PEs: 64, Free: 12}})
	for job, length := range lengths {
		r.run[job][0] = length
	}
	for _, name := range []string{"mct", "met", "sufferage"} { // who has one pool only suffers alike
		for _, aware := range []bool{true, false} {
			expectBatch(t, name, &r.Round, aware, pairs{{Job: 0}, {Job: 1}, {Job: 2}, {Job: 3}})
		}
	}
}

// mct goes where there is room, met waits for what it wants.
func TestMETWaitsForTheFastest(t *testing.T) {
	r := newTable(0, []policy.BatchJob{{NPE: 2, Deadline: 30}, {NPE: 2, Deadline: 30}, {NPE: 5, Deadline: 30}},
		[]policy.BatchPool{{PEs: 4, Free: 2}, {PEs: 8, Free: 8}})
	for job := range r.Jobs {
		r.run[job] = []berth.Duration{10, 20}
	}
	expectBatch(t, "met", &r.Round, true, pairs{{Job: 0, Pool: 0}, {Job: 2, Pool: 1}})
	expectBatch(t, "mct", &r.Round, true, pairs{{Job: 0, Pool: 0}, {Job: 1, Pool: 1}, {Job: 2, Pool: 1}})
	r.serves[1][0], r.stage[1][1] = false, 11 // now it wants the other, and is late there
	expectBatch(t, "met", &r.Round, true, pairs{{Job: 0, Pool: 0}, {Job: 2, Pool: 1}})
	r.stage[1][1] = 10
	expectBatch(t, "met", &r.Round, true, pairs{{Job: 0, Pool: 0}, {Job: 1, Pool: 1}, {Job: 2, Pool: 1}})
}

// Unaware of the transfer, min-min sends the data through the slow link; with
// the same filter, it does so while the deadline bears it.
func TestOnlyAJSMOrdersByTransfer(t *testing.T) {
	r := newTable(0, []policy.BatchJob{{NPE: 1, Deadline: 100}}, []policy.BatchPool{{PEs: 1, Free: 1}, {PEs: 1, Free: 1}})
	r.run[0], r.stage[0] = []berth.Duration{10, 20}, []berth.Duration{90, 0}
	for _, name := range greedy {
		want := pairs{{Job: 0, Pool: 0}}
		if name == "ajsm" {
			want[0].Pool = 1
		}
		expectBatch(t, name, &r.Round, true, want)
		expectBatch(t, name, &r.Round, false, want)
	}
	r.Jobs[0].Deadline = 99
	for _, name := range greedy {
		expectBatch(t, name, &r.Round, true, pairs{{Job: 0, Pool: 1}})
	}
}

// Pools of one site draw on the same licences, storage is counted by itself,
// and who is unaware asks for neither.
func TestBatchesShareStocks(t *testing.T) {
	const storage, licence = 0, 1
	needs := []policy.Need{{Kind: licence, Amount: 2}, {Kind: storage, Amount: 100}}
	r := newTable(0, []policy.BatchJob{
		{NPE: 1, Deadline: 50, Needs: needs}, {NPE: 1, Deadline: 50, Needs: needs}, {NPE: 1, Deadline: 50, Needs: needs[1:]},
	}, []policy.BatchPool{{PEs: 2, Free: 2}, {PEs: 2, Free: 2}})
	r.Stocks = [][]int64{{int64(berth.Endless), 3}}
	for job := range r.Jobs {
		r.run[job] = []berth.Duration{10, 20}
	}
	for _, name := range greedy {
		one := batch(name, &r.Round, true)
		slices.SortFunc(one, func(a, b policy.Assignment) int { return a.Job - b.Job })
		if !slices.Equal(one, pairs{{Job: 0, Pool: 0}, {Job: 2, Pool: 0}}) {
			t.Errorf("%s: %v, want licences for one job", name, one)
		}
		if all := batch(name, &r.Round, false); len(all) != 3 && name != "met" {
			t.Errorf("%s, unaware: %v, want all", name, all)
		}
	}
	r.Stocks[0][storage] = 99
	for _, name := range greedy {
		expectBatch(t, name, &r.Round, true, nil)
	}
	if left := r.Stocks[0]; left[storage] != 99 || left[licence] != 3 {
		t.Errorf("the round was changed: %v", left)
	}
}

// All rounds of three jobs and two pools with run times 1 and 2, one or two
// PEs a job and up to three free.
func TestBatchesOnAllSmallRounds(t *testing.T) {
	cases := 0
	for code := range 1 << 13 {
		bit := func(i int) int { return code >> i & 1 }
		r := newTable(0, make([]policy.BatchJob, 3), []policy.BatchPool{
			{PEs: 4, Free: berth.Count(bit(0) + 2*bit(1))}, {PEs: 4, Free: berth.Count(bit(2) + 2*bit(3))},
		})
		for job := range r.Jobs {
			r.Jobs[job] = policy.BatchJob{NPE: berth.Count(1 + bit(4+job)), Deadline: 2}
			for pool := range r.Pools {
				r.run[job][pool] = berth.Duration(1 + bit(7+2*job+pool))
			}
		}
		for _, name := range greedy {
			cases++
			if got, want := batch(name, &r.Round, true), plainBatch(name, &r.Round, true); !slices.Equal(got, want) {
				t.Fatalf("%s: %v, want %v: %s", name, got, want, r)
			}
		}
	}
	if cases != 6*1<<13 {
		t.Errorf("%d cases", cases)
	}
}

func ExampleBatchNamed() {
	// Two jobs, two pools; the second is twice as fast but far from the data.
	round := policy.Round{
		Now:    240,
		Jobs:   []policy.BatchJob{{NPE: 4, Deadline: 400}, {NPE: 4, Deadline: 400}},
		Pools:  []policy.BatchPool{{PEs: 8, Free: 8}, {PEs: 4, Free: 4}},
		Run:    func(_, pool int) berth.Duration { return 100 / berth.Duration(1+pool) },
		Stage:  func(_, pool int) berth.Duration { return 40 * berth.Duration(pool) },
		Serves: func(_, _ int) bool { return true },
	}
	ajsm, _ := policy.BatchNamed("ajsm")
	for _, a := range ajsm.New(policy.BatchOptions{Aware: true}).Assign(&round, nil) {
		fmt.Printf("job %d goes to pool %d\n", a.Job, a.Pool)
	}
	// Output:
	// job 0 goes to pool 1
	// job 1 goes to pool 0
}
