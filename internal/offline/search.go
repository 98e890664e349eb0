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
	searchNoise  = 0.6  // how much the order in which jobs are put back varies
	searchMore   = 6    // jobs that are taken out beyond those in the way, at most
	searchTries  = 12   // rejected jobs that are tried in a round
	searchWarm   = 0.8  // the first temperature, in values of a job that a PE-second of work is likely to belong to
	searchCold   = 0.01 // the last, in first ones
	searchFirst  = 10   // one of that many rounds is one of all jobs
	searchRounds = 2000 // rounds in each stretch of time
	searchParts  = 15   // a stretch is half to two and a half times that part of the time
)

// Search looks for a plan of much value: by large-neighbourhood search with simulated annealing.
// Each round takes a job that is rejected, makes room for it at a start in its window by taking out
// jobs in the way and a few more, puts back what fits, and tries other jobs that are rejected. First
// all jobs are annealed, then those in one stretch of time after another, the others being fixed: what is near in time
// matters to a job, so each stretch can get better by itself. It begins with a plan, which must be possible, and never returns a worse one.
func (p *Problem) Search(plan Plan, rounds int, random *rand.Rand) Plan {
	s := newSearch(p, plan, random)
	for _, i := range s.order(s.rejected()) {
		s.put(i)
	}
	var sum, squares float64
	for i := range p.Jobs {
		v := float64(p.Jobs[i].Value)
		sum += v
		squares += float64(v * v)
	}
	warm := searchWarm * squares / max(1, sum)
	s.anneal(rounds/searchFirst, warm)
	begin, end := p.span()
	for left := rounds - rounds/searchFirst; left > 0 && len(s.rejected()) > 0; left -= searchRounds {
		part := max(1, int64(end-begin)/searchParts)
		width := berth.Time(part/2 + random.Int64N(2*part))
		s.from = begin + berth.Time(random.Int64N(int64(end-begin))) - width/2
		s.to = s.from + width
		s.anneal(min(left, searchRounds), warm)
		s.from, s.to = math.MinInt64, math.MaxInt64
	}
	return s.plan
}

// anneal runs rounds from warm to cold, and ends with the best plan that it has seen.
func (s *search) anneal(rounds int, warm float64) {
	s.undo = s.undo[:0]
	best, worth := slices.Clone(s.plan), s.value
	for round := range rounds {
		rejected := s.rejected()
		if len(rejected) == 0 {
			break
		}
		before := s.value
		s.round(rejected)
		heat := warm * math.Pow(searchCold, float64(round)/float64(rounds))
		if lost := float64(before - s.value); lost > 0 && s.random.Float64() >= math.Exp(-lost/heat) {
			s.back()
		}
		s.undo = s.undo[:0]
		if s.value > worth {
			copy(best, s.plan)
			worth = s.value
		}
	}
	for i, at := range best {
		if s.plan[i] != at {
			s.set(i, Rejected)
		}
	}
	for i, at := range best {
		if s.plan[i] != at {
			s.set(i, at)
		}
	}
	s.undo = s.undo[:0]
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
	from   berth.Time // jobs that run elsewhere are fixed
	to     berth.Time
}

// move is a change of a plan: where the job was.
type move struct {
	job int
	was berth.Time
}

func newSearch(p *Problem, plan Plan, random *rand.Rand) *search {
	s := &search{p: p, random: random, plan: make(Plan, len(p.Jobs)), keys: make([]float64, len(p.Jobs)), from: math.MinInt64, to: math.MaxInt64}
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

// rejected lists the jobs that the plan rejects and an empty pool would not, of those that might run in the stretch.
func (s *search) rejected() []int {
	var list []int
	for i, start := range s.plan {
		if j := &s.p.Jobs[i]; start == Rejected && j.Ready < s.to && j.Latest.Add(j.Duration) > s.from && s.p.fits(j) {
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

// pick draws one of the jobs, half of the time by what they are worth.
func (s *search) pick(jobs []int) int {
	var sum int64
	for _, i := range jobs {
		sum += s.p.Jobs[i].Value
	}
	at := s.random.Int64N(sum)
	if s.random.IntN(2) > 0 {
		for _, i := range jobs {
			if at -= s.p.Jobs[i].Value; at < 0 {
				return i
			}
		}
	}
	return jobs[s.random.IntN(len(jobs))]
}

// round makes room for a rejected job where those in the way are not fixed, and fills what is free then.
func (s *search) round(rejected []int) {
	i := s.pick(rejected)
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
		if at == Rejected {
			continue
		}
		until := at.Add(s.p.Jobs[k].Duration)
		if at < end && until > start && at >= s.from && until <= s.to {
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
	if s.load.most(start, end)+j.NPE > s.p.PEs {
		s.back()
		return
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
