package policy_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// A5: each fast form is the plain one.
func TestBatchesEqualPlain(t *testing.T) {
	for _, name := range greedy {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := someTable(t, 12, 6)
				for _, aware := range []bool{true, false} {
					if got, want := batch(name, &r.Round, aware), plainBatch(name, &r.Round, aware); !slices.Equal(got, want) {
						t.Fatalf("aware %v: %v, want %v: %s", aware, got, want, r)
					}
				}
			})
		})
	}
}

// The same on thousands of larger rounds, most of them crowded.
func TestBatchesEqualPlainOnManyRounds(t *testing.T) {
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	rng := rand.New(rand.NewPCG(7, 5))
	assigned := 0
	for i := range rounds {
		jobs, pools := 1+rng.IntN(40), 1+rng.IntN(8)
		if i%50 == 0 { // more pools than a job remembers, and each holds a few jobs only
			jobs, pools = 80, 40
		}
		r := crowdedTable(rng, jobs, pools)
		if rng.IntN(2) == 0 {
			r.Tiers = r.tiers(rng)
		}
		for _, name := range greedy {
			for _, aware := range []bool{true, false} {
				got, want := batch(name, &r.Round, aware), plainBatch(name, &r.Round, aware)
				if assigned += len(got); !slices.Equal(got, want) {
					t.Fatalf("round %d, %s, aware %v: %v, want %v: %s", i, name, aware, got, want, r)
				}
			}
		}
	}
	if assigned < 50*rounds {
		t.Errorf("only %d assignments in %d rounds", assigned, rounds)
	}
}

// crowdedTable is a round whose jobs do not all fit, most of them with the
// same preferences.
func crowdedTable(rng *rand.Rand, jobs, pools int) *table {
	r := newTable(0, make([]policy.BatchJob, jobs), make([]policy.BatchPool, pools))
	for range 1 + pools/2 {
		r.Stocks = append(r.Stocks, []int64{rng.Int64N(40), int64(berth.Endless), rng.Int64N(8)})
	}
	for pool := range r.Pools {
		pes := berth.Count(1 + rng.IntN(10*jobs/pools+8))
		r.Pools[pool] = policy.BatchPool{PEs: pes, Free: berth.Count(rng.IntN(int(pes) + 1)), Site: rng.IntN(len(r.Stocks))}
	}
	spread := 1 + rng.Int64N(60) // many ties where it is small
	for job := range r.Jobs {
		work := 1 + rng.Int64N(spread)
		r.Jobs[job] = policy.BatchJob{NPE: berth.Count(1 + rng.IntN(8)), Deadline: berth.Time(10 + rng.Int64N(3*spread+40))}
		for kind := range 3 {
			if rng.IntN(3) == 0 {
				r.Jobs[job].Needs = append(r.Jobs[job].Needs, policy.Need{Kind: kind, Amount: rng.Int64N(4)})
			}
		}
		for pool := range r.Pools {
			r.run[job][pool] = berth.Duration(work + int64(pool) + rng.Int64N(2))
			r.stage[job][pool] = berth.Duration(int64(pool%3) * work / 4)
			r.serves[job][pool] = rng.IntN(8) > 0
		}
	}
	return r
}

// tiers are the pools by the time that a job takes there; some that take equally long are in two tiers,
// in any order, and of those that do not serve it only some are among those that are said to.
func (r *table) tiers(rng *rand.Rand) func(job int, serving bool) []policy.Tier {
	all, some := r.tiersOf(rng, false), r.tiersOf(rng, true)
	return func(job int, serving bool) []policy.Tier {
		if serving {
			return some[job]
		}
		return all[job]
	}
}

func (r *table) tiersOf(rng *rand.Rand, serving bool) [][]policy.Tier {
	all := make([][]policy.Tier, len(r.Jobs))
	for job := range r.Jobs {
		by := map[berth.Duration][]policy.Tier{}
		for pool := range r.Pools {
			run := r.run[job][pool]
			if serving && !r.serves[job][pool] && rng.IntN(4) > 0 {
				continue
			}
			if len(by[run]) == 0 {
				by[run] = make([]policy.Tier, 2)
			}
			half := rng.IntN(2)
			by[run][half] = append(by[run][half], int32(pool))
		}
		for _, run := range slices.Sorted(maps.Keys(by)) {
			for _, tier := range by[run] {
				if len(tier) > 0 {
					all[job] = append(all[job], tier)
				}
			}
		}
	}
	return all
}

// A1, A2: of every matcher, what is assigned has room when it is, in that
// order, and an aware one's meets (8) to (10); nothing is assigned twice, and
// what dst held stays.
func TestInvariantBatchesAssignWhatFits(t *testing.T) {
	for _, row := range policy.Batches {
		t.Run(row.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := someTable(t, 10, 5)
				aware := rapid.Bool().Draw(t, "aware")
				before := r.String()
				mark := policy.Assignment{Job: -1, Pool: -1}
				out := row.New(policy.BatchOptions{Aware: aware}).Assign(&r.Round, pairs{mark})
				if r.String() != before {
					t.Fatalf("the round was %s and is %s", before, r)
				}
				if len(out) == 0 || out[0] != mark {
					t.Fatalf("%v: what was there is gone", out)
				}
				left, seen := newPlainState(&r.Round, aware), map[int]bool{}
				for _, a := range out[1:] {
					if seen[a.Job] || !left.eligible(a.Job, a.Pool) || !left.hardware(a.Job, a.Pool) {
						t.Fatalf("%v: %v must not be assigned there: %s", out[1:], a, r)
					}
					seen[a.Job] = true
					left.take(a.Job, a.Pool)
				}
			})
		})
	}
}

// Nothing is deferred that has room at the end of the round, but for met, which
// waits for what it wants, and mga, whose search says where.
func TestInvariantBatchesLeaveNoRoom(t *testing.T) {
	for _, name := range []string{"ajsm", "min-min", "max-min", "sufferage", "mct"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := someTable(t, 10, 5)
				aware := rapid.Bool().Draw(t, "aware")
				left, seen := newPlainState(&r.Round, aware), map[int]bool{}
				for _, a := range batch(name, &r.Round, aware) {
					left.take(a.Job, a.Pool)
					seen[a.Job] = true
				}
				for job := range r.Jobs {
					if best, _ := left.options(name, job); !seen[job] && best != nil {
						t.Fatalf("job %d is deferred and has room: %s", job, r)
					}
				}
			})
		})
	}
}

// A3: the ends that ajsm assigns never fall in a round, nor the costs of min-min.
func TestInvariantCostsRise(t *testing.T) {
	for _, name := range []string{"ajsm", "min-min"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := someTable(t, 12, 6)
				aware := rapid.Bool().Draw(t, "aware")
				state, last := newPlainState(&r.Round, aware), -berth.Forever
				for _, a := range batch(name, &r.Round, aware) {
					c := state.cost(name, a.Job, a.Pool)
					if c < last {
						t.Fatalf("%d after %d: %s", c, last, r)
					}
					last = c
				}
			})
		})
	}
}

// X7 and X8 at random: with one pool and ample PEs ajsm assigns by length, mct
// by arrival.
func TestInvariantOnePool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lengths := rapid.SliceOfN(rapid.Int64Range(1, 6), 0, 12).Draw(t, "lengths")
		r := newTable(3, slices.Repeat([]policy.BatchJob{{NPE: 2, Deadline: berth.Forever}}, len(lengths)),
			[]policy.BatchPool{{PEs: 64, Free: 64}})
		var shortest, first pairs
		for job, length := range lengths {
			r.run[job][0], r.stage[job][0] = berth.Duration(length), 9
			first = append(first, policy.Assignment{Job: job})
		}
		shortest = slices.Clone(first)
		slices.SortStableFunc(shortest, func(a, b policy.Assignment) int { return int(lengths[a.Job] - lengths[b.Job]) })
		for _, aware := range []bool{true, false} {
			if got := batch("ajsm", &r.Round, aware); !slices.Equal(got, shortest) {
				t.Fatalf("ajsm: %v, want %v", got, shortest)
			}
			if got := batch("mct", &r.Round, aware); !slices.Equal(got, first) {
				t.Fatalf("mct: %v, want %v", got, first)
			}
		}
	})
}

// A9: where no two costs are equal, renumbering the pools renumbers the
// assignments and does nothing else.
func TestInvariantRelabelling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := someTable(t, 8, 5)
		jobs, pools := len(r.Jobs), len(r.Pools)
		// Powers of two differ, and so do their differences.
		powers := rapid.Permutation(upTo(jobs*pools)).Draw(t, "powers")
		for job := range jobs {
			for pool := range pools {
				r.run[job][pool] = 1 << powers[job*pools+pool]
				r.stage[job][pool] = min(r.stage[job][pool], 1) * berth.Endless // all or nothing
			}
			r.Jobs[job].Deadline = 1 << rapid.IntRange(0, jobs*pools).Draw(t, "deadline")
		}
		to := rapid.Permutation(upTo(pools)).Draw(t, "to")
		other := newTable(r.Now, r.Jobs, make([]policy.BatchPool, pools))
		other.Stocks = r.Stocks
		for pool := range pools {
			other.Pools[to[pool]] = r.Pools[pool]
			for job := range jobs {
				other.run[job][to[pool]] = r.run[job][pool]
				other.stage[job][to[pool]] = r.stage[job][pool]
				other.serves[job][to[pool]] = r.serves[job][pool]
			}
		}
		for _, name := range greedy {
			aware := rapid.Bool().Draw(t, "aware")
			want := batch(name, &r.Round, aware)
			for i := range want {
				want[i].Pool = to[want[i].Pool]
			}
			if got := batch(name, &other.Round, aware); !slices.Equal(got, want) {
				t.Fatalf("%s: %v, want %v: %s", name, got, want, r)
			}
		}
	})
}

func upTo(n int) []int {
	numbers := make([]int, n)
	for i := range numbers {
		numbers[i] = i
	}
	return numbers
}
