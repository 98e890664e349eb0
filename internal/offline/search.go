package offline

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/berth-hpc/berth"
)

// The numbers of the search.
const (
	searchNoise = 0.6  // how much the order in which jobs are put back varies
	searchMore  = 6    // jobs that are taken out beyond those in the way, at most
	searchTries = 12   // rejected jobs that are tried in a round
	searchWarm  = 0.5  // the first temperature, in values of a mean job
	searchCold  = 0.01 // the last
)

// Search looks for a plan of much value: by large-neighbourhood search with simulated annealing.
// Each round takes a job that is rejected, makes room for it at a start in its window by taking out
// jobs in the way and a few more, puts back what fits, and tries other jobs that are rejected. It
// begins with a plan, which must be possible, and never returns a worse one.
func (p *Problem) Search(plan Plan, rounds int, random *rand.Rand) Plan {
	s := newSearch(p, plan, random)
	for _, i := range s.order(s.rejected()) {
		s.put(i)
	}
	s.undo = s.undo[:0]
	best, worth := slices.Clone(s.plan), s.value
	mean := float64(p.Worth()) / float64(max(1, len(p.Jobs)))
	for round := range rounds {
		rejected := s.rejected()
		if len(rejected) == 0 {
			break
		}
		before := s.value
		s.round(rejected)
		heat := mean * searchWarm * math.Pow(searchCold/searchWarm, float64(round)/float64(rounds))
		if lost := float64(before - s.value); lost > 0 && random.Float64() >= math.Exp(-lost/heat) {
			s.back()
		}
		s.undo = s.undo[:0]
		if s.value > worth {
			best, worth = slices.Clone(s.plan), s.value
		}
	}
	return best
}

// search is a search under way.
type search struct {
	p      *Problem
	random *rand.Rand
	plan   Plan
	value  int64
	load   profile
	undo   []move
	keys   []float64
}

// move is a change of a plan: where the job was.
type move struct {
	job int
	was berth.Time
}

func newSearch(p *Problem, plan Plan, random *rand.Rand) *search {
	s := &search{p: p, random: random, plan: make(Plan, len(p.Jobs)), keys: make([]float64, len(p.Jobs))}
	s.load.clear()
	for i := range s.plan {
		s.plan[i] = Rejected
	}
	for i, start := range plan {
		if start != Rejected {
			s.set(i, start)
		}
	}
	return s
}

// rejected lists the jobs that the plan rejects and an empty pool would not.
func (s *search) rejected() []int {
	var list []int
	for i, start := range s.plan {
		if start == Rejected && s.p.fits(&s.p.Jobs[i]) {
			list = append(list, i)
		}
	}
	return list
}

// set moves a job to a start, or rejects it.
func (s *search) set(i int, start berth.Time) {
	j := &s.p.Jobs[i]
	s.undo = append(s.undo, move{i, s.plan[i]})
	if was := s.plan[i]; was != Rejected {
		s.load.add(was, was.Add(j.Duration), -j.NPE)
		s.value -= j.Value
	}
	if start != Rejected {
		s.load.add(start, start.Add(j.Duration), j.NPE)
		s.value += j.Value
	}
	s.plan[i] = start
}

// back undoes the round.
func (s *search) back() {
	for _, v := range slices.Backward(s.undo) {
		s.set(v.job, v.was)
	}
}

// put accepts a job at the earliest or the latest start that is free, if there is one.
func (s *search) put(i int) {
	j := &s.p.Jobs[i]
	find := s.load.earliest
	if s.random.IntN(3) == 0 {
		find = s.load.latest
	}
	if start, ok := find(j, s.p.PEs); ok {
		s.set(i, start)
	}
}

// order sorts jobs by what they are worth for each PE-second, the most first, with some noise;
// where all are worth the same, by width.
func (s *search) order(jobs []int) []int {
	for _, i := range jobs {
		j := &s.p.Jobs[i]
		area := float64(j.NPE) * float64(j.Duration)
		s.keys[i] = math.Log(area/float64(j.Value)) - 0.1*math.Log(float64(j.NPE)) + searchNoise*s.random.NormFloat64()
	}
	slices.SortFunc(jobs, func(a, b int) int { return cmp.Or(cmp.Compare(s.keys[a], s.keys[b]), a-b) })
	return jobs
}

// round makes room for a rejected job, and fills what is free then.
func (s *search) round(rejected []int) {
	i := rejected[s.random.IntN(len(rejected))]
	j := &s.p.Jobs[i]
	start := j.Ready + berth.Time(s.random.Int64N(int64(j.Latest-j.Ready)+1))
	switch s.random.IntN(4) {
	case 0:
		start = j.Ready
	case 1:
		start = j.Latest
	}
	end := start.Add(j.Duration)
	var near []int
	for k, at := range s.plan {
		if at != Rejected && at < end && at.Add(s.p.Jobs[k].Duration) > start {
			near = append(near, k)
		}
	}
	s.random.Shuffle(len(near), func(a, b int) { near[a], near[b] = near[b], near[a] })
	var out []int
	more := s.random.IntN(searchMore + 1)
	from, to := start, end
	for _, k := range near {
		fits := s.load.most(start, end)+j.NPE <= s.p.PEs
		if fits && more == 0 {
			break
		}
		if fits {
			more--
		}
		from, to = min(from, s.plan[k]), max(to, s.plan[k].Add(s.p.Jobs[k].Duration))
		out = append(out, k)
		s.set(k, Rejected)
	}
	s.set(i, start)
	for _, k := range s.order(out) {
		s.put(k)
	}
	tries := 0
	for range rejected {
		if tries == searchTries {
			break
		}
		k := rejected[s.random.IntN(len(rejected))]
		if other := &s.p.Jobs[k]; s.plan[k] == Rejected && other.Ready < to && other.Latest.Add(other.Duration) > from {
			tries++
			s.put(k)
		}
	}
}
