package engine

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sort"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// job is a pending ordinary job.
type job struct {
	request *berth.Request
	number  uint64 // order of submission
	key     policy.Key
	order   policy.Pending // what orders without a key look at
	// plan is where the job is planned to run: an intention of the
	// conservative pass, no promise. nil is nowhere.
	plan   *berth.Allotment
	own    berth.Allotment // room for it
	start  berth.Time      // of the plan, Forever for none
	due    timer           // when the plan says that the job starts
	expiry *timer          // that of the waiting limit, nil if there is none
}

// variant returns the job's only shape; its duration is the user's estimate.
func (j *job) variant() berth.Variant { return j.request.Parts[0].Variants[0] }

// jobQueue holds the pending jobs by the key of the configured order; jobs of
// one key are in the order of submission. It is a list of short blocks, so that
// a search passes over the blocks in which nothing is small enough.
type jobQueue struct {
	blocks    []*jobBlock // none empty
	spare     *jobBlock   // an empty one for the next need; short queues come and go
	byID      map[string]*job
	unplanned int  // jobs without a plan
	newest    *job // the one that came last, nil if it has gone
	key       func(*policy.Pending) policy.Key
	// rounds says in which order the jobs are looked at where that is no key.
	rounds policy.Queue
}

// jobBlock is a run of the queue, with what a search looks at side by side.
type jobBlock struct {
	jobs   []*job
	shapes []berth.Variant // theirs, in standard seconds
	least  berth.Variant   // the fewest PEs and the least duration of any
}

// blockSize is the longest a block gets; a search touches one entry a block,
// and a block it looks into, n/blockSize + blockSize in all.
const blockSize = 64

func (q *jobQueue) len() int { return len(q.byID) }

func newJobQueue(settings *settings) jobQueue {
	q := jobQueue{byID: map[string]*job{}, key: func(*policy.Pending) policy.Key { return policy.Key{} }}
	if settings.order.Key != nil {
		q.key = settings.order.Key(settings.options)
	} else {
		q.rounds = settings.order.New(settings.options)
	}
	return q
}

// compareJobs orders two jobs.
func compareJobs(a, b *job) int {
	switch {
	case a.key == b.key:
		return cmp.Compare(a.number, b.number)
	case a.key.Less(b.key):
		return -1
	}
	return 1
}

// block returns the first block whose last job is not before j, and j's place
// in it; for a job behind all it is the end of the last.
func (q *jobQueue) block(j *job) (block, place int) {
	if last := len(q.blocks) - 1; last >= 0 {
		if jobs := q.blocks[last].jobs; compareJobs(jobs[len(jobs)-1], j) < 0 {
			return last, len(jobs) // most come in there
		}
	}
	block = sort.Search(len(q.blocks), func(i int) bool {
		jobs := q.blocks[i].jobs
		return compareJobs(jobs[len(jobs)-1], j) >= 0
	})
	if block == len(q.blocks) {
		return 0, 0
	}
	place, _ = slices.BinarySearchFunc(q.blocks[block].jobs, j, compareJobs)
	return block, place
}

func (q *jobQueue) add(j *job) {
	j.start, j.key = berth.Forever, q.key(&j.order)
	j.due = timer{Class: ClassPeriod, Sequence: j.number, job: j}
	if q.rounds != nil {
		q.rounds.Add(j.order)
	}
	q.byID[j.request.ID] = j
	at, place := q.block(j)
	if len(q.blocks) == 0 {
		q.blocks = append(q.blocks, q.newBlock())
	}
	b := q.blocks[at]
	if len(b.jobs) == blockSize {
		next := q.newBlock()
		cut := blockSize / 2
		if at == len(q.blocks)-1 && place == blockSize {
			cut = blockSize // at the end, where most come in, blocks stay full
		}
		for i := cut; i < blockSize; i++ {
			next.insert(i-cut, b.jobs[i])
		}
		b.truncate(cut)
		q.blocks = slices.Insert(q.blocks, at+1, next)
		if place >= cut {
			b, place = next, place-cut
		}
	}
	b.insert(place, j)
	q.newest = j
	q.unplanned++
}

func (q *jobQueue) newBlock() *jobBlock {
	if b := q.spare; b != nil {
		q.spare = nil
		b.truncate(0)
		return b
	}
	b := &jobBlock{
		jobs: make([]*job, 0, blockSize), shapes: make([]berth.Variant, 0, blockSize),
	}
	b.truncate(0)
	return b
}

func (b *jobBlock) insert(place int, j *job) {
	shape := j.variant()
	b.jobs = slices.Insert(b.jobs, place, j)
	b.shapes = slices.Insert(b.shapes, place, shape)
	b.least.NPE = min(b.least.NPE, shape.NPE)
	b.least.Duration = min(b.least.Duration, shape.Duration)
}

func (b *jobBlock) truncate(n int) {
	b.jobs, b.shapes = slices.Delete(b.jobs, n, len(b.jobs)), b.shapes[:n]
	b.measure()
}

// measure recomputes least.
func (b *jobBlock) measure() {
	b.least = berth.Variant{NPE: berth.MaxPEs + 1, Duration: berth.Forever}
	for _, shape := range b.shapes {
		b.least.NPE = min(b.least.NPE, shape.NPE)
		b.least.Duration = min(b.least.Duration, shape.Duration)
	}
}

func (q *jobQueue) remove(j *job) {
	at, place := q.block(j)
	b := q.blocks[at]
	if place == len(b.jobs) || b.jobs[place] != j {
		panic("engine: a pending job is not in its place")
	}
	shape := b.shapes[place]
	b.jobs = slices.Delete(b.jobs, place, place+1)
	b.shapes = slices.Delete(b.shapes, place, place+1)
	if len(b.jobs) == 0 {
		q.blocks, q.spare = slices.Delete(q.blocks, at, at+1), b
	} else if shape.NPE == b.least.NPE || shape.Duration == b.least.Duration {
		b.measure()
	}
	delete(q.byID, j.request.ID)
	if q.newest == j {
		q.newest = nil
	}
	if q.rounds != nil {
		q.rounds.Remove(j.number)
	}
	if j.plan == nil {
		q.unplanned--
	}
}

// first returns the first job; the queue must not be empty.
func (q *jobQueue) first() *job { return q.blocks[0].jobs[0] }

// round yields the jobs that a pass looks at, in the configured order. The
// queue must not change meanwhile.
func (q *jobQueue) round(now berth.Time) iter.Seq[*job] {
	if q.rounds == nil {
		return q.all()
	}
	return func(yield func(*job) bool) {
		for p := range q.rounds.Round(now) {
			if !yield(q.byID[p.Request.ID]) {
				return
			}
		}
	}
}

// all yields every job: by key, then in the order of submission. The queue must
// not change meanwhile.
func (q *jobQueue) all() iter.Seq[*job] {
	return func(yield func(*job) bool) {
		for _, b := range q.blocks {
			for _, j := range b.jobs {
				if !yield(j) {
					return
				}
			}
		}
	}
}

// narrowest returns the fewest PEs that any job wants. Cost: O(blocks).
func (q *jobQueue) narrowest() berth.Count {
	n := berth.Count(berth.MaxPEs + 1)
	for _, b := range q.blocks {
		n = min(n, b.least.NPE)
	}
	return n
}

// queueJob makes a request a pending job.
func (s *state) queueJob(r *berth.Request) {
	p := s.pending(r)
	s.addJob(&job{request: r, number: p.Sequence, order: p})
}

// addJob makes a job pending.
func (s *state) addJob(j *job) {
	if s.flat && s.profile == nil {
		s.profile = newProfile(s.calendar(s.resources[0].id))
	}
	s.jobs.add(j)
	if at, limited := s.expiry(j); limited {
		s.timers.add(expiryTimer(j, at))
	}
}

// dropJob takes a job out of the queue, with its plan. Where the plan comes true
// its block stays booked for whoever takes it over.
func (s *state) dropJob(j *job, comesTrue bool) error {
	if !comesTrue {
		if err := s.plan(j, nil); err != nil {
			return err
		}
	}
	s.timers.drop(&j.due)
	if j.expiry != nil {
		s.timers.drop(j.expiry)
	}
	s.jobs.remove(j)
	return nil
}

// expiry returns when a job with a waiting limit can no longer start in time,
// not even on the fastest resource; limited is false if it has none.
func (s *state) expiry(j *job) (at berth.Time, limited bool) {
	if j.request.Deadline >= berth.Forever {
		return 0, false
	}
	return max(j.request.Arrival, j.request.Deadline-berth.Time(s.shortest(j))) + 1, true
}

// shortest returns how long a job takes on the fastest resource.
func (s *state) shortest(j *job) berth.Duration {
	shortest := berth.Duration(berth.Forever)
	for i := range s.resources {
		shortest = min(shortest, s.resources[i].lasts(j.request, j.variant()).Duration)
	}
	return shortest
}

// plan books a job's plan among the plans, in the place of its earlier one; nil
// is no plan.
func (s *state) plan(j *job, a *berth.Allotment) error {
	if j.plan == nil && a == nil {
		return nil
	}
	if a != nil && (s.calendarOf(a.Resource) == nil || !s.hasPlans) {
		return fmt.Errorf("plan of job %q: no resource %v with plans", j.request.ID, a.Resource)
	}
	if err := s.replan(j.plan, a); err != nil {
		return fmt.Errorf("plan of job %q: %w", j.request.ID, err)
	}
	if j.plan == nil {
		s.jobs.unplanned--
	}
	if a != nil {
		j.own = *a
		j.plan, j.start = &j.own, a.Start
		s.timers.move(&j.due, a.Start)
		return nil
	}
	s.jobs.unplanned++
	j.plan, j.start = nil, berth.Forever
	s.timers.drop(&j.due)
	return nil
}

// replan books one plan in the place of another; nil is none.
func (s *state) replan(old, a *berth.Allotment) error {
	if s.profile != nil {
		return s.profile.replace(old, a)
	}
	if old != nil {
		if from := max(old.Start, s.now); from < old.End {
			if err := s.plans[old.Resource].Remove(blockOf(old, from)); err != nil {
				return err
			}
		}
	}
	if a == nil {
		return nil
	}
	return s.plans[a.Resource].Add(blockOf(a, a.Start))
}
