package policy_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// plainState is what is left in a round, in its plain form.
type plainState struct {
	round  *policy.Round
	aware  bool
	free   []berth.Count
	stocks [][]int64
}

func newPlainState(r *policy.Round, aware bool) *plainState {
	s := &plainState{round: r, aware: aware}
	for _, p := range r.Pools {
		s.free = append(s.free, p.Free)
	}
	for _, stocks := range r.Stocks {
		s.stocks = append(s.stocks, slices.Clone(stocks))
	}
	return s
}

// counted returns what is left of what a job needs in a pool, with the need.
func (s *plainState) counted(job, pool int, visit func(left *int64, need int64)) {
	site := s.round.Pools[pool].Site
	if !s.aware || site >= len(s.stocks) {
		return
	}
	for _, need := range s.round.Jobs[job].Needs {
		if need.Kind < len(s.stocks[site]) && s.stocks[site][need.Kind] != int64(berth.Endless) {
			visit(&s.stocks[site][need.Kind], need.Amount)
		}
	}
}

// hardware is (9), but for accelerators.
func (s *plainState) hardware(job, pool int) bool {
	enough := s.free[pool] >= s.round.Jobs[job].NPE
	s.counted(job, pool, func(left *int64, need int64) { enough = enough && *left >= need })
	return enough
}

func (s *plainState) take(job, pool int) {
	s.free[pool] -= s.round.Jobs[job].NPE
	s.counted(job, pool, func(left *int64, need int64) { *left -= need })
}

// eligible is (8), the accelerators of (9), and (10).
func (s *plainState) eligible(job, pool int) bool {
	r := s.round
	switch {
	case r.Pools[pool].PEs < r.Jobs[job].NPE || r.Run(job, pool) >= berth.Endless:
		return false
	case !s.aware:
		return true
	}
	jft := r.Now.Add(r.Stage(job, pool)).Add(r.Run(job, pool))
	return r.Serves(job, pool) && jft < berth.Forever && jft <= r.Jobs[job].Deadline
}

// cost is JFT for ajsm, and ready + ET for the others.
func (s *plainState) cost(name string, job, pool int) berth.Time {
	c := s.round.Now.Add(s.round.Run(job, pool))
	if name == "ajsm" {
		c = c.Add(s.round.Stage(job, pool))
	}
	return c
}

// plainOption is a pool in which a job may start now.
type plainOption struct {
	pool int
	cost berth.Time
}

// options returns the best two of where a job may start now.
func (s *plainState) options(name string, job int) (best, next *plainOption) {
	for pool := range s.round.Pools {
		c := s.cost(name, job, pool)
		if !s.eligible(job, pool) || !s.hardware(job, pool) || c >= berth.Forever {
			continue
		}
		switch {
		case best == nil || c < best.cost:
			best, next = &plainOption{pool, c}, best
		case next == nil || c < next.cost:
			next = &plainOption{pool, c}
		}
	}
	return best, next
}

// plainBatch is specification 5, b.3 and b.4, line by line: look at every job
// that is left and all its pools, assign one, and again.
func plainBatch(name string, r *policy.Round, aware bool) []policy.Assignment {
	s := newPlainState(r, aware)
	var queue []int
	for job := range r.Jobs {
		queue = append(queue, job)
	}
	var out []policy.Assignment
	assign := func(job, pool int) {
		s.take(job, pool)
		out = append(out, policy.Assignment{Job: job, Pool: pool})
	}
	switch name {
	case "mct":
		for _, job := range queue {
			if best, _ := s.options(name, job); best != nil {
				assign(job, best.pool)
			}
		}
		return out
	case "met":
		for _, job := range queue {
			want := -1
			for pool := range r.Pools {
				if s.eligible(job, pool) && (want < 0 || r.Run(job, pool) < r.Run(job, want)) {
					want = pool
				}
			}
			if want >= 0 && s.hardware(job, want) {
				assign(job, want)
			}
		}
		return out
	}
	for {
		chosen, most, pool := -1, int64(0), 0
		for _, job := range queue {
			best, next := s.options(name, job)
			if best == nil {
				continue
			}
			var worth int64
			switch name {
			case "ajsm", "min-min":
				worth = -int64(best.cost)
			case "max-min":
				worth = int64(best.cost)
			case "sufferage":
				worth = int64(berth.Endless)
				if next != nil {
					worth = int64(next.cost - best.cost)
				}
			default:
				panic("no plain form of " + name)
			}
			if chosen < 0 || worth > most {
				chosen, most, pool = job, worth, best.pool
			}
		}
		if chosen < 0 {
			return out
		}
		assign(chosen, pool)
		queue = slices.DeleteFunc(queue, func(job int) bool { return job == chosen })
	}
}

// table is a round with its answers written out by job and pool.
type table struct {
	policy.Round
	run, stage [][]berth.Duration
	serves     [][]bool
}

func newTable(now berth.Time, jobs []policy.BatchJob, pools []policy.BatchPool) *table {
	t := &table{Round: policy.Round{Now: now, Jobs: jobs, Pools: pools}}
	for range jobs {
		t.run = append(t.run, make([]berth.Duration, len(pools)))
		t.stage = append(t.stage, make([]berth.Duration, len(pools)))
		t.serves = append(t.serves, slices.Repeat([]bool{true}, len(pools)))
	}
	t.Run = func(job, pool int) berth.Duration { return t.run[job][pool] }
	t.Stage = func(job, pool int) berth.Duration { return t.stage[job][pool] }
	t.Serves = func(job, pool int) bool { return t.serves[job][pool] }
	t.Draw = func(i int) uint64 { return mix(uint64(i)) }
	return t
}

// mix scatters the bits of a number (Steele, Lea and Flood: SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (t *table) String() string {
	return fmt.Sprintf("now %d, jobs %+v, pools %+v, stocks %v, run %v, stage %v, serves %v",
		t.Now, t.Jobs, t.Pools, t.Stocks, t.run, t.stage, t.serves)
}

// someTable draws a round with many ties, pools that share a site, and some of
// everything that cannot be.
func someTable(t *rapid.T, mostJobs, mostPools int) *table {
	sites := rapid.IntRange(1, 3).Draw(t, "sites")
	pools := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) policy.BatchPool {
		pes := berth.Count(rapid.IntRange(1, 12).Draw(t, "pes"))
		return policy.BatchPool{
			PEs: pes, Free: berth.Count(rapid.IntRange(-1, int(pes)).Draw(t, "free")),
			Site: rapid.IntRange(0, sites-1).Draw(t, "site"),
		}
	}), 1, mostPools).Draw(t, "pools")
	jobs := rapid.SliceOfN(rapid.Custom(someJob), 0, mostJobs).Draw(t, "jobs")
	stocks := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom([]int64{0, 1, 3, 5, 10, int64(berth.Endless)}), 0, 2), 0, sites).Draw(t, "stocks")
	run := rapid.SampledFrom([]berth.Duration{0, 1, 2, 3, 4, 5, 6, 7, 10, 20, 40, berth.Endless})
	stage := rapid.SampledFrom([]berth.Duration{0, 0, 0, 1, 2, 5, 30, berth.Endless})
	table := newTable(berth.Time(rapid.IntRange(-5, 5).Draw(t, "now")), jobs, pools)
	table.Stocks = stocks
	for job := range jobs {
		for pool := range pools {
			table.run[job][pool] = run.Draw(t, "run")
			table.stage[job][pool] = stage.Draw(t, "stage")
			table.serves[job][pool] = rapid.IntRange(0, 5).Draw(t, "serves") > 0
		}
	}
	return table
}

func someJob(t *rapid.T) policy.BatchJob {
	job := policy.BatchJob{
		NPE:      berth.Count(rapid.IntRange(1, 6).Draw(t, "npe")),
		Deadline: rapid.SampledFrom([]berth.Time{3, 8, 12, 20, 40, berth.Forever, berth.Forever}).Draw(t, "deadline"),
	}
	for kind := range 3 { // the last is beyond every end
		if rapid.Bool().Draw(t, "needs") {
			job.Needs = append(job.Needs, policy.Need{Kind: kind, Amount: rapid.Int64Range(0, 4).Draw(t, "amount")})
		}
	}
	return job
}

// batch returns the assignments of a matcher of the table.
func batch(name string, r *policy.Round, aware bool) []policy.Assignment {
	row, ok := policy.BatchNamed(name)
	if !ok {
		panic("no batch matcher " + name)
	}
	return row.New(policy.BatchOptions{Aware: aware}).Assign(r, nil)
}
