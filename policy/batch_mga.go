package policy

import (
	"math/bits"

	"github.com/berth-hpc/berth"
)

// The numbers of mga. The crossover and mutation rates are fifths.
const (
	mgaPopulation  = 50
	mgaGenerations = 200 // at most
	mgaPatience    = 50  // generations without a gain
	mgaCrossover   = 4   // 0.8
	mgaMutation    = 1   // 0.2

	// mgaAreas is how many areas of jobs in pools are kept: 8 MiB of them. Where there are more, each is worked out
	// whenever it is needed.
	mgaAreas = 1 << 20
)

// mga is the genetic algorithm to which Tang and Liao compare (Younis and
// Yang), with the numbers above and the operators of spec 5, b.4, since theirs
// are not at hand. A chromosome says for each job of the round which pool it
// goes to. Its fitness is the load of the most loaded pool, the sum of run ·
// NPE over the PEs free now, smaller is better: a makespan in which jobs queue
// for PEs.
//
//	population: min-min, and the rest at random
//	until mgaGenerations, or mgaPatience without a gain:
//	  keep the best
//	  fill up with children of parents from binary tournaments:
//	    one-point crossover, rate 0.8
//	    mutation of each child, rate 0.2, one or the other with equal chance:
//	      swap: two jobs exchange their pools
//	      transfer: a job leaves the most loaded pool for the least loaded
//	assign as the best says, in the order of arrival, while there is room
//
// What is left open and how it is here:
//   - A job's pools are those with room for it as the round begins, when it is
//     alone; a job without one takes no part. A swap that would leave them is
//     not done, and the least loaded pool is the least loaded of the job's.
//   - What min-min defers goes to its best pool as the round begins.
//   - What finds no room in the end waits for the next round.
//   - Loads are compared exactly, as fractions.
//   - Ties: the first drawn, the first in the population, and between pools the
//     first in the sites file.
//
// It is never worse than min-min by its own fitness, which says little about
// what both defer. Cost: O(jobs · pools) and O(jobs + pools) for each child, of
// which there are at most mgaPopulation · mgaGenerations. Memory: 2 ·
// mgaPopulation chromosomes, a bit for each job and pool, and their areas while these are at
// most mgaAreas.
type mga struct {
	options BatchOptions
	keeps   int // areas, at most
}

func newMGA(o BatchOptions) Batch { return mga{options: o, keeps: mgaAreas} }

// load is PE-seconds to do by PEs free.
type load struct {
	area int64
	free berth.Count
}

func (a load) less(b load) bool {
	aHi, aLo := bits.Mul64(uint64(a.area), uint64(b.free))
	bHi, bLo := bits.Mul64(uint64(b.area), uint64(a.free))
	return aHi < bHi || (aHi == bHi && aLo < bLo)
}

// chromosome is the pool of each member of an evolution.
type chromosome struct {
	pools []int32
	most  load
}

// evolution is a round of mga under way.
type evolution struct {
	*Round
	drawn   int
	members []int32  // the jobs that take part
	allowed []uint64 // by member, words for each: the pools it may go to, as bits
	words   int
	work    []int64 // by member and pool that it may go to, PE-seconds; nil where that are too many
	areas   []int64 // by pool, of the chromosome last measured
	now     []chromosome
	next    []chromosome
}

// Assign implements Batch.
func (m mga) Assign(r *Round, dst []Assignment) []Assignment {
	t := newTally(r, m.options)
	e, seed := m.begin(t)
	if len(e.members) == 0 {
		return dst
	}
	e.populate(seed)
	best := e.run()
	for i, job := range e.members {
		if pool := int(best.pools[i]); t.room(int(job), pool) {
			t.take(int(job), pool)
			dst = append(dst, Assignment{int(job), pool})
		}
	}
	return dst
}

// begin returns the evolution with its members but no population, and what
// min-min makes of them.
func (m mga) begin(t *tally) (e *evolution, seed []int32) {
	e = &evolution{Round: t.Round, words: (len(t.Pools) + 63) / 64, areas: make([]int64, len(t.Pools))}
	seed = make([]int32, len(t.Jobs))
	for job := range seed {
		seed[job] = -1
	}
	for _, a := range newMinMin(m.options).Assign(t.Round, nil) {
		seed[a.Job] = int32(a.Pool)
	}
	best := make([]choice, 0, 1)
	keep := len(t.Jobs)*len(t.Pools) <= m.keeps
	for job := range t.Jobs {
		if best = t.scan(job, best); len(best) == 0 {
			continue
		}
		pool := seed[job]
		if pool < 0 {
			pool = best[0].pool
		}
		seed[len(e.members)] = pool // no later than job, so nothing is lost
		e.members = append(e.members, int32(job))
		e.allowed = append(e.allowed, make([]uint64, e.words)...)
		row, latest := e.row(len(e.members)-1), t.latest(job)
		for pool := range t.Pools {
			run, area := t.Run(job, pool), int64(0)
			if end := t.Now.Add(run); end <= latest && end < berth.Forever && t.cost(job, pool, end, latest) < berth.Forever {
				row[pool/64] |= 1 << (pool % 64)
				area = berth.Area(t.Jobs[job].NPE, run)
			}
			if keep {
				e.work = append(e.work, area)
			}
		}
	}
	return e, seed[:len(e.members)]
}

// populate makes the first population.
func (e *evolution) populate(seed []int32) {
	e.now, e.next = make([]chromosome, mgaPopulation), make([]chromosome, mgaPopulation)
	for i := range e.now {
		e.now[i].pools = make([]int32, len(e.members))
		e.next[i].pools = make([]int32, len(e.members))
	}
	copy(e.now[0].pools, seed)
	for _, c := range e.now[1:] {
		for i := range c.pools {
			c.pools[i] = e.anyPool(i)
		}
	}
	for i := range e.now {
		e.measure(&e.now[i])
	}
}

// run lets generations pass and returns the best chromosome.
func (e *evolution) run() *chromosome {
	best := e.fittest()
	for idle, generation := 0, 0; idle < mgaPatience && generation < mgaGenerations; generation++ {
		most := e.now[best].most
		e.breed(best)
		e.now, e.next = e.next, e.now
		best = e.fittest()
		if idle++; e.now[best].most.less(most) {
			idle = 0
		}
	}
	return &e.now[best]
}

func (e *evolution) fittest() int {
	best := 0
	for i := range e.now {
		if e.now[i].most.less(e.now[best].most) {
			best = i
		}
	}
	return best
}

// breed fills the next generation, the best of this one first.
func (e *evolution) breed(best int) {
	copy(e.next[0].pools, e.now[best].pools)
	e.next[0].most = e.now[best].most
	for i := 1; i < len(e.next); i += 2 {
		a, b := &e.now[e.tournament()], &e.now[e.tournament()]
		cut := len(e.members)
		if e.below(5) < mgaCrossover {
			cut = e.below(len(e.members)) // at 0 the children are exchanged whole
		}
		e.child(&e.next[i], a, b, cut)
		if i+1 < len(e.next) {
			e.child(&e.next[i+1], b, a, cut)
		}
	}
}

// child is the one parent up to the cut and the other from there on, perhaps
// mutated.
func (e *evolution) child(child, a, b *chromosome, cut int) {
	copy(child.pools[:cut], a.pools[:cut])
	copy(child.pools[cut:], b.pools[cut:])
	busiest := e.measure(child)
	if e.below(5) >= mgaMutation {
		return
	}
	if e.below(2) == 0 {
		e.swap(child)
	} else {
		e.transfer(child, busiest)
	}
	e.measure(child)
}

// swap exchanges the pools of two jobs.
func (e *evolution) swap(c *chromosome) {
	i, j := e.below(len(c.pools)), e.below(len(c.pools))
	if e.may(i, c.pools[j]) && e.may(j, c.pools[i]) {
		c.pools[i], c.pools[j] = c.pools[j], c.pools[i]
	}
}

// transfer moves a job from the busiest pool, the first at or after a random
// place, to the least loaded pool of those it may go to.
func (e *evolution) transfer(c *chromosome, busiest int32) {
	i := e.below(len(c.pools))
	for c.pools[i] != busiest {
		i = (i + 1) % len(c.pools)
	}
	idlest := int32(-1)
	for at, word := range e.row(i) {
		for ; word != 0; word &= word - 1 {
			pool := int32(at*64 + bits.TrailingZeros64(word))
			if idlest < 0 || e.load(pool).less(e.load(idlest)) {
				idlest = pool
			}
		}
	}
	c.pools[i] = idlest
}

// measure adds up the loads of a chromosome's pools and returns the pool with
// the most.
func (e *evolution) measure(c *chromosome) (busiest int32) {
	clear(e.areas)
	if pools := len(e.areas); e.work != nil {
		for i, pool := range c.pools {
			e.areas[pool] = min(e.areas[pool]+e.work[i*pools+int(pool)], int64(berth.Endless)-1)
		}
	} else {
		for i, pool := range c.pools {
			job := int(e.members[i])
			area := berth.Area(e.Jobs[job].NPE, e.Run(job, int(pool)))
			e.areas[pool] = min(e.areas[pool]+area, int64(berth.Endless)-1)
		}
	}
	busiest = -1
	for pool, area := range e.areas {
		if area > 0 && (busiest < 0 || e.load(busiest).less(e.load(int32(pool)))) {
			busiest = int32(pool)
		}
	}
	if busiest < 0 { // nothing takes any time
		busiest = c.pools[0]
	}
	c.most = e.load(busiest)
	return busiest
}

// load is that of a pool some member may go to, so it has free PEs.
func (e *evolution) load(pool int32) load { return load{e.areas[pool], e.Pools[pool].Free} }

// row returns the pools that a member may go to.
func (e *evolution) row(member int) []uint64 {
	return e.allowed[member*e.words : (member+1)*e.words]
}

func (e *evolution) may(member int, pool int32) bool {
	return e.row(member)[pool/64]&(1<<(pool%64)) != 0
}

// anyPool draws one of the pools that a member may go to.
func (e *evolution) anyPool(member int) int32 {
	row, count := e.row(member), 0
	for _, word := range row {
		count += bits.OnesCount64(word)
	}
	skip := e.below(count)
	for at, word := range row {
		if n := bits.OnesCount64(word); skip >= n {
			skip -= n
			continue
		}
		for ; skip > 0; skip-- {
			word &= word - 1
		}
		return int32(at*64 + bits.TrailingZeros64(word))
	}
	panic("policy: a member of the evolution that may go nowhere")
}

// tournament draws two chromosomes and returns the fitter, the first of equals.
func (e *evolution) tournament() int {
	a, b := e.below(len(e.now)), e.below(len(e.now))
	if e.now[b].most.less(e.now[a].most) {
		return b
	}
	return a
}

// below draws a number from 0 to n−1.
func (e *evolution) below(n int) int {
	x := e.Draw(e.drawn)
	e.drawn++
	return int(x >> 32 * uint64(n) >> 32)
}
