package engine

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/place"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// Cost is what a promise would cost the ordinary jobs that wait or run now, if no further job arrived
// and each job ran until its estimate. The zero value is no cost, foreseen in part.
type Cost struct {
	Delayed int            `json:"delayed"`       // jobs that would end later than without the promise
	Sum     berth.Duration `json:"delay_sum"`     // of their delays
	Largest berth.Duration `json:"delay_largest"` // of their delays
	// Idle is the PE-seconds in front of the promise, in the pools where it would be, that
	// jobs would use without it, and that would be left idle with it. Of several reservations in a pool it is what
	// jobs and they would use until the last of them begins.
	Idle int64 `json:"idle_pe_seconds"`
	// Followed is how many jobs were compared. Without Complete the bound on the work was met
	// before all jobs were: then the cost is that of those jobs, and no less than so much.
	Followed int  `json:"jobs"`
	Complete bool `json:"complete"`
}

// Waiting returns how many ordinary jobs are pending.
func (e *Engine) Waiting() int { return e.state.Backlog().Len() }

// Foresight says what costs are foreseen from.
type Foresight struct {
	From berth.Time // the promises are given then, or now if that is later
	// Queue is the ordinary jobs that wait at managed sites, in the order of the sites, behind those of the
	// engine. Each names its site, and may start from its arrival on. One that could run
	// nowhere is left out.
	Queue []berth.Request
	// Looks bounds the work for each offer and for the comparison without any: how many jobs passes
	// look at. 0 is MostLooks.
	Looks int
	// Quit, if there is one, is asked between two steps; once it returns true, Costs gives up.
	Quit func() bool
}

// MostLooks is the default bound on looks: half a second for each course of the jobs. EASY took 0.55 µs for a look at one
// of 10,000 jobs on 1,024 PEs of early binding, and 0.03 µs in its form for one pool of late binding. A queue of that length meets
// the bound after a hundred passes; one of 1,000 jobs does not.
const MostLooks = 1_000_000

// Costs returns what each of the offers would cost the ordinary jobs, nil for one that cannot be promised
// any more. It lets the passes of the configuration run on, with the promise and without, in copies of this
// engine until each job has its place. All promises take place as they are now: held ones are confirmed, and
// those that have started are used. The engine does not change. The error is of code Unavailable: Quit gave it
// up. Cost: that of Restore for each offer, and once, and the passes over what waits.
func (e *Engine) Costs(offers []Offer, f Foresight) ([]*Cost, error) {
	if len(offers) == 0 {
		return nil, nil
	}
	ahead, err := e.lookAhead(&f)
	if err != nil {
		return nil, err
	}
	costs := make([]*Cost, len(offers))
	for i := range offers {
		if costs[i], err = ahead.ofOffer(&offers[i]); err != nil {
			return nil, err
		}
	}
	return costs, nil
}

// ahead is how the ordinary jobs go on if nothing else is promised, to which others are compared.
type ahead struct {
	of        *Engine
	foresight *Foresight
	snapshot  []byte
	without   *course
}

func (e *Engine) lookAhead(f *Foresight) (*ahead, error) {
	if f.Looks == 0 {
		f.Looks = MostLooks
	}
	f.From = max(f.From, e.state.Now())
	a := &ahead{of: e, foresight: f, snapshot: e.Snapshot()}
	var err error
	a.without, err = a.course(nil)
	return a, err
}

// ofOffer returns what an offer costs, nil if it cannot be promised any more.
func (a *ahead) ofOffer(offer *Offer) (*Cost, error) {
	if len(a.without.pieces) == 0 && a.without.complete {
		return &Cost{Complete: true}, nil
	}
	with, err := a.course(func(c *course) (given bool, err error) {
		c.do(func() { given = c.engine.give(offer) })
		return given, nil
	})
	if err != nil || with == nil {
		return nil, err
	}
	return a.without.compare(with, offer.Allotments), nil
}

// course is how the ordinary jobs go on.
type course struct {
	engine   *Engine
	changes  []change.Change // of the last step; the slices are used again
	effects  []change.Effect
	pieces   []piece
	last     map[string]int // piece by job
	until    berth.Time     // the end of the piece that ends last
	complete bool
}

// piece is what a job holds from one start until its limit, or until it is stopped.
type piece struct {
	job string
	at  berth.Allotment
}

// course returns how the jobs go on with what is promised in the copy, nil for nothing; it returns nil if
// that cannot be promised.
func (a *ahead) course(promise func(c *course) (given bool, err error)) (*course, error) {
	config, f := a.of.config, a.foresight
	config.Overrun, config.Explain = OverrunKill, false // what runs ends at its limit
	config.Limits = config.Limits.WithoutCosts()
	twin, err := Restore(config, a.snapshot)
	if err != nil {
		return nil, err
	}
	c := &course{engine: twin, last: map[string]int{}}
	for _, d := range twin.state.Entries() {
		if d.Request().IsJob() {
			c.begin(d.ID(), d.Part(0))
		}
	}
	if f.From > twin.state.Now() { // else what is due now comes behind the promise, as it would
		if err := c.step(f.From, Wake()); err != nil {
			return nil, err
		}
	}
	for _, d := range twin.state.Entries() {
		if d.State() == berth.Held {
			_ = c.step(f.From, Confirm(d.ID())) // one that is over already expires
		}
	}
	if promise != nil {
		if given, err := promise(c); err != nil || !given {
			return nil, err
		}
	}
	return c, c.run(f)
}

// give promises an offer, if there is room for it.
func (e *Engine) give(offer *Offer) bool {
	r := offer.Request.Clone()
	for r.Hold = 0; e.isTaken(r.ID); {
		r.ID += "'"
	}
	r.Ready, r.Deadline = offer.Allotments[0].Start, offer.Allotments[0].End
	for i := range offer.Allotments {
		r.Ready, r.Deadline = min(r.Ready, offer.Allotments[i].Start), max(r.Deadline, offer.Allotments[i].End)
	}
	r.Arrival = min(r.Arrival, r.Ready)
	found, refusal := e.finder.Place(place.Want{Request: r})
	if refusal != nil {
		return false
	}
	c := e.room(change.Queued)
	c.ID, c.Request = r.ID, r
	e.fold(c, state.Ref{})
	e.promise(r, &found)
	e.jobs.Plan()
	return true
}

// begin notes that a job has a place.
func (c *course) begin(job string, at berth.Allotment) {
	at.PEs = berth.PESet{}
	c.last[job] = len(c.pieces)
	c.pieces = append(c.pieces, piece{job, at})
	c.until = max(c.until, at.End)
}

// step applies an event and notes which jobs start and stop.
func (c *course) step(now berth.Time, event Event) error {
	var err error
	c.changes, c.effects, err = c.engine.AppendApply(c.changes[:0], c.effects[:0], now, &event)
	c.note()
	return err
}

// do has the engine do something that is no event, and notes likewise.
func (c *course) do(f func()) {
	e := c.engine
	e.changes = c.changes[:0]
	f()
	e.conclude()
	c.changes, e.changes = e.changes, nil
	c.note()
}

// note takes in the changes of a step.
func (c *course) note() {
	for i := range c.changes {
		switch x := &c.changes[i]; {
		case x.Kind == change.Accepted && x.Reservation.Request.IsJob():
			c.begin(x.ID, x.Reservation.Allotments[0])
		case x.Kind == change.Preempted:
			p := &c.pieces[c.last[x.ID]]
			p.at.End = min(p.at.End, c.engine.state.Now())
		}
	}
}

// run lets time pass until no job waits, nothing is due any more, or the bound is met.
func (c *course) run(f *Foresight) error {
	e := c.engine
	queue := make([]berth.Request, 0, len(f.Queue))
	for i := range f.Queue {
		if r := &f.Queue[i]; e.finder.Impossible(r, e.state.Now()) == nil {
			queue = append(queue, *r)
		}
	}
	slices.SortStableFunc(queue, func(a, b berth.Request) int {
		return int(max(a.Arrival, f.From) - max(b.Arrival, f.From))
	})
	for looks := 0; ; {
		if f.Quit != nil && f.Quit() {
			return berth.Errorf(berth.Unavailable, "offers", "what they cost was not foreseen in time; ask again")
		}
		if looks > f.Looks {
			return nil
		}
		at, due := e.Next()
		switch {
		case len(queue) > 0 && (!due || queue[0].Arrival <= max(at, f.From)):
			at = max(queue[0].Arrival, f.From)
			if err := c.step(at, Wake()); err != nil {
				return err
			}
			n := 0
			for n < len(queue) && queue[n].Arrival <= at {
				n++
			}
			c.do(func() { e.line(queue[:n]) })
			queue = queue[n:]
		case !due, len(queue) == 0 && e.state.Backlog().Len() == 0 && (!e.config.Preempt || at >= c.until):
			c.complete = true
			return nil
		default:
			if err := c.step(max(at, e.state.Now()), Wake()); err != nil {
				return err
			}
			c.use()
		}
		looks += 1 + e.state.Backlog().Len()
	}
}

// line adds jobs to what waits, all before a pass sees them.
func (e *Engine) line(queue []berth.Request) {
	for i := range queue {
		own := queue[i].Clone()
		for e.isTaken(own.ID) {
			own.ID += "'"
		}
		c := e.room(change.Queued)
		c.ID, c.Request = own.ID, own
		e.fold(c, state.Ref{})
	}
	e.lookAtJobs()
}

// use checks in at promises that have just started and would be given up unless they are used.
func (c *course) use() {
	var started []string
	for i := range c.changes {
		if c.changes[i].Kind == change.Started {
			started = append(started, c.changes[i].ID)
		}
	}
	for _, id := range started {
		d := c.engine.state.Entry(id)
		if d == nil || d.Request().NoShow == 0 || d.Request().IsJob() {
			continue
		}
		_ = c.step(c.engine.state.Now(), CheckIn(id)) // an error concerns that promise alone
	}
}

// end returns when a job ends; known is false if it has no place yet.
func (c *course) end(job string) (end berth.Time, known bool) {
	i, has := c.last[job]
	if !has || c.engine.state.Job(job) != nil {
		return 0, false
	}
	return c.pieces[i].at.End, true
}

// compare returns what it costs that jobs go on in another way, with a promise at some
// allotments.
func (c *course) compare(with *course, promised []berth.Allotment) *Cost {
	cost := &Cost{Complete: c.complete && with.complete}
	for i := range c.pieces {
		job := c.pieces[i].job
		before, known := c.end(job)
		if c.last[job] != i || !known {
			continue
		}
		after, known := with.end(job)
		if !known {
			cost.Complete = false
			continue
		}
		cost.Followed++
		if later := after.Sub(before); later > 0 {
			cost.Delayed++
			cost.Sum, cost.Largest = cost.Sum+later, max(cost.Largest, later)
		}
	}
	for i := range promised {
		pool, last, own := promised[i].Resource, promised[i].Start, int64(0)
		if slices.ContainsFunc(promised[:i], func(b berth.Allotment) bool { return b.Resource == pool }) {
			continue
		}
		for k := range promised {
			if a := &promised[k]; a.Resource == pool {
				last = max(last, a.Start)
			}
		}
		for k := range promised {
			if a := &promised[k]; a.Resource == pool && a.Start < last {
				own += berth.Area(a.NPE, min(a.End, last).Sub(a.Start))
			}
		}
		cost.Idle += max(0, c.used(pool, last)-with.used(pool, last)-own)
	}
	return cost
}

// used returns the PE-seconds that jobs use of a pool until a time.
func (c *course) used(pool berth.ResourceID, until berth.Time) (area int64) {
	for i := range c.pieces {
		if a := &c.pieces[i].at; a.Resource == pool && a.Start < until {
			area += berth.Area(a.NPE, min(a.End, until).Sub(a.Start))
		}
	}
	return area
}
