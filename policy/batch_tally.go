package policy

import "github.com/berth-hpc/berth"

// tally is what is left of everything as a round goes on. PEs of a pool are a
// resource, and so is each stock of a site. They only get fewer: a pool that
// has no room for a job has none for the rest of the round, and the costs do
// not change, so what a job finds best only gets worse.
type tally struct {
	*Round
	aware  bool
	staged bool    // the cost has the transfer in it
	left   []int64 // by resource: the PEs of the pools, then the stocks, site by site
	stocks []int   // by site: its first stock in left; one more for the end
}

// newTally returns the tally of a round's beginning. Cost: O(pools and stocks).
func newTally(r *Round, o BatchOptions) *tally {
	t := &tally{Round: r, aware: o.Aware, left: make([]int64, 0, len(r.Pools))}
	for _, p := range r.Pools {
		t.left = append(t.left, int64(p.Free))
	}
	for _, stocks := range r.Stocks {
		t.stocks = append(t.stocks, len(t.left))
		t.left = append(t.left, stocks...)
	}
	t.stocks = append(t.stocks, len(t.left))
	return t
}

// emptied returns the tally as if nothing were in use.
func (t *tally) emptied() *tally {
	e := *t
	e.left = make([]int64, len(t.left))
	for i := range e.left {
		e.left[i] = int64(berth.Endless) // of a stock; whether it is enough Serves says
	}
	for i, p := range t.Pools {
		e.left[i] = int64(p.PEs)
	}
	return &e
}

// stock returns the resource that a need is of in a pool; ok is false if
// it is not counted.
func (t *tally) stock(pool int, need Need) (resource int, ok bool) {
	site := t.Pools[pool].Site
	if site >= len(t.stocks)-1 {
		return 0, false
	}
	resource = t.stocks[site] + need.Kind
	return resource, resource < t.stocks[site+1] && t.left[resource] < int64(berth.Endless)
}

// room reports whether a pool has enough left for a job.
func (t *tally) room(job, pool int) bool {
	j := &t.Jobs[job]
	if t.left[pool] < int64(j.NPE) {
		return false
	}
	if t.aware {
		for _, need := range j.Needs {
			if resource, ok := t.stock(pool, need); ok && t.left[resource] < need.Amount {
				return false
			}
		}
	}
	return true
}

// take gives a job what it needs in a pool that has room.
func (t *tally) take(job, pool int) {
	j := &t.Jobs[job]
	t.left[pool] -= int64(j.NPE)
	if t.aware {
		for _, need := range j.Needs {
			if resource, ok := t.stock(pool, need); ok {
				t.left[resource] -= need.Amount
			}
		}
	}
}

// latest returns the end that a job must not pass.
func (t *tally) latest(job int) berth.Time {
	if t.aware {
		return t.Jobs[job].Deadline
	}
	return berth.Forever
}

// cost returns what a job costs in a pool, where its run alone would end at a time that is not too
// late, and berth.Forever if it cannot go there.
func (t *tally) cost(job, pool int, run, latest berth.Time) berth.Time {
	if !t.room(job, pool) || (t.aware && !t.Serves(job, pool)) {
		return berth.Forever
	}
	if !t.aware && !t.staged {
		return run
	}
	end := run.Add(t.Stage(job, pool))
	if end >= berth.Forever || end > latest {
		return berth.Forever
	}
	if t.staged {
		return end
	}
	return run
}

// choice is a pool that a job could go to and what that costs: the time at
// which the job would be completed.
type choice struct {
	cost berth.Time
	pool int32
}

// before reports whether a choice is better: of equal costs the first pool in the sites file is.
func (a choice) before(b choice) bool {
	return a.cost < b.cost || (a.cost == b.cost && a.pool < b.pool)
}

// worst is behind every choice.
var worst = choice{berth.Forever, -1}

// scan fills a list up to its capacity with the cheapest pools that have room
// for a job, the cheapest first, of equals the first in the sites file. Serves and Stage are asked
// only where the run alone does not decide it, and with tiers no pool is looked at behind the last that
// may get into the list. Cost: O(pools), with few pools long in the list; O(pools · capacity) at worst.
func (t *tally) scan(job int, list []choice) []choice {
	npe, latest, bound := int64(t.Jobs[job].NPE), t.latest(job), worst
	list = list[:0]
	look := func(pool int32, run berth.Time) {
		c := choice{t.cost(job, int(pool), run, latest), pool}
		if !c.before(bound) {
			return
		}
		if len(list) < cap(list) {
			list = list[:len(list)+1]
		}
		i := len(list) - 1
		for ; i > 0 && c.before(list[i-1]); i-- {
			list[i] = list[i-1]
		}
		list[i] = c
		if len(list) == cap(list) {
			bound = list[len(list)-1]
		}
	}
	if t.Tiers == nil {
		for pool, left := range t.left[:len(t.Pools)] {
			if left < npe {
				continue
			}
			if run := t.Now.Add(t.Run(job, pool)); run <= latest && (choice{run, int32(pool)}).before(bound) {
				look(int32(pool), run)
			}
		}
		return list
	}
	for _, tier := range t.Tiers(job, t.aware) {
		run := t.Now.Add(t.Run(job, int(tier[0])))
		if run > latest || run > bound.cost {
			break
		}
		for _, pool := range tier {
			if !(choice{run, pool}).before(bound) {
				break // and so is the rest of the tier
			}
			if t.left[pool] >= npe {
				look(pool, run)
			}
		}
	}
	return list
}

// shortlistLength is how many pools a job remembers. More make scans rarer and
// dearer; from 8 to 32 it made little difference.
const shortlistLength = 16

// shortlists remembers for each job its best pools, so that it need not look at
// all of them each time one fills.
type shortlists struct {
	*tally
	memory []choice
	lists  [][]choice // by job
	whole  []bool     // by job: nothing else had room
}

func newShortlists(t *tally) *shortlists {
	n := len(t.Jobs)
	s := &shortlists{
		tally: t, memory: make([]choice, n*shortlistLength), lists: make([][]choice, n), whole: make([]bool, n),
	}
	for job := range t.Jobs {
		s.rescan(job)
	}
	return s
}

func (s *shortlists) rescan(job int) {
	from, to := job*shortlistLength, (job+1)*shortlistLength
	s.lists[job] = s.scan(job, s.memory[from:from:to])
	s.whole[job] = len(s.lists[job]) < shortlistLength
}

// best returns the cheapest pools that have room for a job now: one or two, as
// asked for, or fewer if there are no more. The slice is valid until the next call for the job.
// Cost: O(1) but for those that have filled, and a scan when too few are left.
func (s *shortlists) best(job, most int) []choice {
	list := s.lists[job]
	for len(list) > 0 && !s.room(job, int(list[0].pool)) {
		list = list[1:]
	}
	for most > 1 && len(list) > 1 && !s.room(job, int(list[1].pool)) {
		list[1] = list[0]
		list = list[1:]
	}
	s.lists[job] = list
	if len(list) < most && !s.whole[job] {
		s.rescan(job)
		list = s.lists[job]
	}
	return list[:min(most, len(list))]
}
