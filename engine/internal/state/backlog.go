package state

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sort"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// Job is a pending ordinary job. It is valid while it is pending, and then until time moves on.
type Job struct {
	request    *berth.Request
	number     uint64 // order of submission
	generation uint64 // of the last start, 0 before the first
	key        policy.Key
	order      policy.Pending // what orders without a key look at
	// plan is where the job is planned to run: an intention of the
	// conservative pass, no promise. nil is nowhere.
	plan   *berth.Allotment
	own    berth.Allotment // room for it
	start  berth.Time      // of the plan, Forever for none
	due    timer           // when the plan says that the job starts
	expiry *timer          // that of the waiting limit, nil if there is none
}

// Request returns what was asked for. It must not be written.
func (j *Job) Request() *berth.Request { return j.request }

// Variant returns the job's only shape; its duration is the user's estimate.
func (j *Job) Variant() berth.Variant { return j.request.Parts[0].Variants[0] }

// Plan returns where the job is planned to run; ok is false if it has no plan.
func (j *Job) Plan() (a berth.Allotment, ok bool) {
	if j.plan == nil {
		return a, false
	}
	return *j.plan, true
}

// PlannedStart returns the start of the plan, Forever for none.
func (j *Job) PlannedStart() berth.Time { return j.start }

// Number returns the place of the job in the order of submission, from 1; no other job has it.
func (j *Job) Number() uint64 { return j.number }

// Generation returns how often the job has started.
func (j *Job) Generation() uint64 { return j.generation }

// Backlog holds the pending jobs by the key of the configured order; jobs of
// one key are in the order of submission. It is a list of short blocks, so that
// a search passes over the blocks in which nothing is small enough.
type Backlog struct {
	blocks    []*Block // none empty
	spare     *Block   // an empty one for the next need; short queues come and go
	byID      map[string]*Job
	unplanned int  // jobs without a plan
	newest    *Job // the one that came last, nil if it has gone
	key       func(*policy.Pending) policy.Key
	// rounds says in which order the jobs are looked at where that is no key.
	rounds policy.Queue
}

// Block is a run of the backlog, with what a search looks at side by side.
type Block struct {
	jobs   []*Job
	shapes []berth.Variant // theirs, in standard seconds
	least  berth.Variant   // the fewest PEs and the least duration of any
	// narrow and short are how many shapes have the fewest PEs, and the least duration.
	narrow, short int
}

// blockSize is the longest a block gets; a search touches one entry a block,
// and a block it looks into, n/blockSize + blockSize in all.
const blockSize = 64

// Len returns the number of pending jobs.
func (q *Backlog) Len() int { return len(q.byID) }

func newBacklog(config *Config) Backlog {
	q := Backlog{byID: map[string]*Job{}, key: func(*policy.Pending) policy.Key { return policy.Key{} }}
	if config.Order.Key != nil {
		q.key = config.Order.Key(config.Options)
	} else {
		q.rounds = config.Order.New(config.Options)
	}
	return q
}

// compareJobs orders two jobs.
func compareJobs(a, b *Job) int {
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
func (q *Backlog) block(j *Job) (block, place int) {
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

func (q *Backlog) add(j *Job) {
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

func (q *Backlog) newBlock() *Block {
	if b := q.spare; b != nil {
		q.spare = nil
		b.truncate(0)
		return b
	}
	b := &Block{
		jobs: make([]*Job, 0, blockSize), shapes: make([]berth.Variant, 0, blockSize),
	}
	b.truncate(0)
	return b
}

func (b *Block) insert(place int, j *Job) {
	shape := j.Variant()
	b.jobs = slices.Insert(b.jobs, place, j)
	b.shapes = slices.Insert(b.shapes, place, shape)
	b.weigh(shape)
}

func (b *Block) truncate(n int) {
	b.jobs, b.shapes = slices.Delete(b.jobs, n, len(b.jobs)), b.shapes[:n]
	b.measure()
}

// measure recomputes least.
func (b *Block) measure() {
	b.least, b.narrow, b.short = berth.Variant{NPE: berth.MaxPEs + 1, Duration: berth.Endless}, 0, 0
	for _, shape := range b.shapes {
		b.weigh(shape)
	}
}

// weigh counts a shape in least.
func (b *Block) weigh(shape berth.Variant) {
	switch {
	case shape.NPE < b.least.NPE:
		b.least.NPE, b.narrow = shape.NPE, 1
	case shape.NPE == b.least.NPE:
		b.narrow++
	}
	switch {
	case shape.Duration < b.least.Duration:
		b.least.Duration, b.short = shape.Duration, 1
	case shape.Duration == b.least.Duration:
		b.short++
	}
}

func (q *Backlog) remove(j *Job) {
	at, place := q.block(j)
	b := q.blocks[at]
	if place == len(b.jobs) || b.jobs[place] != j {
		panic("engine: a pending job is not in its place")
	}
	shape := b.shapes[place]
	b.jobs = slices.Delete(b.jobs, place, place+1)
	b.shapes = slices.Delete(b.shapes, place, place+1)
	if shape.NPE == b.least.NPE {
		b.narrow--
	}
	if shape.Duration == b.least.Duration {
		b.short--
	}
	if len(b.jobs) == 0 {
		q.blocks, q.spare = slices.Delete(q.blocks, at, at+1), b
	} else if b.narrow == 0 || b.short == 0 {
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

// First returns the first job by key; the queue must not be empty.
func (q *Backlog) First() *Job { return q.blocks[0].jobs[0] }

// Round yields the jobs that a pass looks at, in the configured order. The
// queue must not change meanwhile.
func (q *Backlog) Round(now berth.Time) iter.Seq[*Job] {
	if q.rounds == nil {
		return q.All()
	}
	return func(yield func(*Job) bool) {
		for p := range q.rounds.Round(now) {
			if !yield(q.byID[p.Request.ID]) {
				return
			}
		}
	}
}

// All yields every job: by key, then in the order of submission. The queue must
// not change meanwhile.
func (q *Backlog) All() iter.Seq[*Job] {
	return func(yield func(*Job) bool) {
		for _, b := range q.blocks {
			for _, j := range b.jobs {
				if !yield(j) {
					return
				}
			}
		}
	}
}

// Narrowest returns the fewest PEs that any job wants. Cost: O(blocks).
func (q *Backlog) Narrowest() berth.Count {
	n := berth.Count(berth.MaxPEs + 1)
	for _, b := range q.blocks {
		n = min(n, b.least.NPE)
	}
	return n
}

// queueJob makes a request a pending job.

// Ordered reports whether jobs wait in an order with rounds, which may let some not wait.
func (q *Backlog) Ordered() bool { return q.rounds != nil }

// Discards yields the jobs that the order, which there is, does not let wait.
func (q *Backlog) Discards(now berth.Time) iter.Seq[policy.Pending] { return q.rounds.Discards(now) }

// Planned reports whether any job has a plan.
func (q *Backlog) Planned() bool { return q.unplanned < len(q.byID) }

// Unplanned returns how many jobs have no plan.
func (q *Backlog) Unplanned() int { return q.unplanned }

// Newest returns the job that came last, nil if it has gone.
func (q *Backlog) Newest() *Job { return q.newest }

// Blocks returns the number of blocks, and Block the i-th.
func (q *Backlog) Blocks() int { return len(q.blocks) }

// Block returns the i-th block of jobs in the order of keys.
func (q *Backlog) Block(i int) *Block { return q.blocks[i] }

// Len returns the number of jobs of a block; it is not empty while it is one of
// the backlog's.
func (b *Block) Len() int { return len(b.jobs) }

// Job returns the i-th job.
func (b *Block) Job(i int) *Job { return b.jobs[i] }

// Shapes returns the variants of the jobs. They must not be written, and are valid until
// the next change.
func (b *Block) Shapes() []berth.Variant { return b.shapes }

// Least returns the fewest PEs and the least duration of any job of the block.
func (b *Block) Least() berth.Variant { return b.least }

// Backlog returns the pending jobs.
func (s *State) Backlog() *Backlog { return &s.backlog }

// Job returns the pending job of that id, nil if there is none.
func (s *State) Job(id string) *Job { return s.backlog.byID[id] }

// queueJob makes a request a pending job that has started so often.
func (s *State) queueJob(r *berth.Request, generation uint64) {
	p := s.pending(r)
	j := s.spent.job()
	j.request, j.number, j.generation, j.order = r, p.Sequence, generation, p
	s.addJob(j)
}

// addJob makes a job pending.
func (s *State) addJob(j *Job) {
	s.planned.expectJobs()
	s.backlog.add(j)
	s.queue.waiting.add(j.request, 1)
	if at, limited := s.limit(j); limited {
		j.expiry = &timer{At: at, Class: ClassExpiry, Sequence: j.number, job: j}
		s.timers.add(j.expiry)
	}
}

// dropJob takes a job out of the backlog, with its plan. Where the plan comes true
// its block stays booked for the reservation that takes it over.
func (s *State) dropJob(j *Job, comesTrue bool) error {
	if !comesTrue {
		if err := s.plan(j, nil); err != nil {
			return err
		}
	}
	s.timers.drop(&j.due)
	if j.expiry != nil {
		s.timers.drop(j.expiry)
	}
	s.backlog.remove(j)
	s.queue.waiting.add(j.request, -1)
	s.spent.gone = append(s.spent.gone, j)
	return nil
}

// limit returns when a job with a waiting limit can no longer start in time, not
// even on the fastest pool; limited is false if it has none.
func (s *State) limit(j *Job) (at berth.Time, limited bool) {
	if j.request.Deadline >= berth.Forever {
		return 0, false
	}
	shortest := berth.Endless
	for i := range s.pools {
		shortest = min(shortest, s.pools[i].config.SpeedFor(&j.request.Requirements).Scale(j.Variant().Duration))
	}
	return max(j.request.Arrival, j.request.Deadline-berth.Time(shortest)) + 1, true
}

// plan replaces a job's plan; nil is no plan.
func (s *State) plan(j *Job, a *berth.Allotment) error {
	if j.plan == nil && a == nil {
		return nil
	}
	if err := s.planned.plan(j.plan, a); err != nil {
		return fmt.Errorf("plan of job %q: %w", j.request.ID, err)
	}
	if j.plan == nil {
		s.backlog.unplanned--
	}
	if a != nil {
		j.own = *a
		j.plan, j.start = &j.own, a.Start
		s.timers.move(&j.due, a.Start)
		return nil
	}
	s.backlog.unplanned++
	j.plan, j.start = nil, berth.Forever
	s.timers.drop(&j.due)
	return nil
}
