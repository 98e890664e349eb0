package policy

import "github.com/berth-hpc/berth"

// neediest assigns again and again the job with most at stake, to its best
// pool (spec 5, b.4; Maheswaran et al.): to max-min that is the cost of the best
// pool, to sufferage the difference to the second best. A job with one pool
// only suffers most.
//
// Deviations: as in cheapest, with the same ties. Maheswaran's sufferage lets
// jobs compete for a pool within one iteration; this one takes the largest
// sufferage of all, one job at a time.
//
// What is at stake can rise when a pool fills, so jobs cannot wait for their
// turn to see it. Each resource knows who counts on it, the largest amount
// first, and tells those for whom too little is left.
//
// Cost: O(jobs · pools), and O(log jobs) for each time a pool that a job counts
// on fills, at most once a pool, with a scan of the pools for every few of
// these. Memory: O(jobs · shortlistLength + pools), and 16 bytes for each pool
// that a job has counted on.
type neediest struct {
	options BatchOptions
	pools   int // how many best pools matter
}

func newMaxMin(o BatchOptions) Batch    { return neediest{options: o, pools: 1} }
func newSufferage(o BatchOptions) Batch { return neediest{options: o, pools: 2} }

// Assign implements Batch.
func (m neediest) Assign(r *Round, dst []Assignment) []Assignment {
	t := newTally(r, m.options)
	c := contest{
		shortlists: newShortlists(t), pools: m.pools,
		counts:  make([][2]int32, len(r.Jobs)),
		relying: make([]heap[reliance], len(t.left)),
		ladder:  newLadder(len(r.Jobs)),
	}
	for resource := range c.relying {
		c.relying[resource].before = reliance.before
	}
	for job := range r.Jobs {
		c.counts[job] = [2]int32{nowhere, nowhere}
		c.look(job)
	}
	for {
		job, ok := c.ladder.first()
		if !ok {
			return dst
		}
		pool := int(c.counts[job][0])
		c.counts[job] = [2]int32{nowhere, nowhere}
		c.ladder.set(job, out)
		c.take(job, pool)
		dst = append(dst, Assignment{job, pool})
		c.tell(pool)
		if t.aware {
			for _, need := range r.Jobs[job].Needs {
				if resource, ok := t.stock(pool, need); ok {
					c.tell(resource)
				}
			}
		}
	}
}

// nowhere is no pool.
const nowhere int32 = -1

// contest is a round of neediest under way.
type contest struct {
	*shortlists
	pools   int
	counts  [][2]int32       // by job: the pools it counts on, the best first
	relying []heap[reliance] // by resource
	ladder  ladder
}

// reliance is a job that counts on an amount of a resource for a pool. It is
// void once the job does not count on the pool any more.
type reliance struct {
	amount    int64
	job, pool int32
}

func (a reliance) before(b reliance) bool { return a.amount > b.amount }

// look finds a job's best pools as they are now and what is at stake.
func (c *contest) look(job int) {
	best, before := c.best(job, c.pools), c.counts[job]
	c.counts[job] = [2]int32{nowhere, nowhere}
	for i, b := range best {
		c.counts[job][i] = b.pool
		if b.pool != before[0] && b.pool != before[1] {
			c.rely(job, int(b.pool))
		}
	}
	switch {
	case len(best) == 0:
		c.ladder.set(job, out)
	case c.pools == 1:
		c.ladder.set(job, berth.Duration(best[0].cost))
	case len(best) == 1:
		c.ladder.set(job, berth.Endless)
	default:
		c.ladder.set(job, best[1].cost.Sub(best[0].cost))
	}
}

// rely notes that a job counts on a pool.
func (c *contest) rely(job, pool int) {
	j := &c.Jobs[job]
	c.relying[pool].add(reliance{int64(j.NPE), int32(job), int32(pool)})
	if c.aware {
		for _, need := range j.Needs {
			if resource, ok := c.stock(pool, need); ok {
				c.relying[resource].add(reliance{need.Amount, int32(job), int32(pool)})
			}
		}
	}
}

// tell lets those look again who count on more of a resource than is left.
func (c *contest) tell(resource int) {
	relying := &c.relying[resource]
	for len(relying.items) > 0 && relying.items[0].amount > c.left[resource] {
		void := relying.items[0]
		relying.drop()
		if counts := c.counts[void.job]; counts[0] == void.pool || counts[1] == void.pool {
			c.look(int(void.job))
		}
	}
}

// out is the stake of who is not in the contest; it is less than any.
const out berth.Duration = -berth.Endless

// ladder is a binary tree over the jobs in which the one with more at stake, of
// equals the first, goes up.
type ladder struct {
	stakes  []berth.Duration // by job
	winners []int32          // the root at 1, the children of i at 2i and 2i+1, the jobs last
}

func newLadder(jobs int) ladder {
	l := ladder{stakes: make([]berth.Duration, jobs), winners: make([]int32, 2*jobs)}
	for job := range jobs {
		l.stakes[job] = out
		l.winners[jobs+job] = int32(job)
	}
	for i := jobs - 1; i > 0; i-- {
		l.play(i)
	}
	return l
}

// set gives a job its stake. Cost: O(log jobs).
func (l *ladder) set(job int, stake berth.Duration) {
	l.stakes[job] = stake
	for i := (len(l.stakes) + job) / 2; i > 0; i /= 2 {
		l.play(i)
	}
}

func (l *ladder) play(i int) {
	a, b := l.winners[2*i], l.winners[2*i+1]
	if l.stakes[b] > l.stakes[a] || (l.stakes[b] == l.stakes[a] && b < a) {
		a = b
	}
	l.winners[i] = a
}

// first returns the job with most at stake; ok is false if all are out.
func (l *ladder) first() (job int, ok bool) {
	if len(l.stakes) == 0 {
		return 0, false
	}
	job = int(l.winners[1])
	return job, l.stakes[job] > out
}
