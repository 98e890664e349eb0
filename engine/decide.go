package engine

import (
	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/place"
	"github.com/berth-hpc/berth/engine/internal/state"
)

func (e *Engine) submit(event *Event) error {
	r := event.Request
	if r == nil {
		return berth.Errorf(berth.Invalid, "request", "missing")
	}
	if err := e.hasCome(r.Arrival); err != nil {
		return err
	}
	if err := asked(r); err != nil {
		return err
	}
	if e.isTaken(r.ID) {
		return berth.Errorf(berth.Conflict, "id", "%q is pending or reserved already", r.ID)
	}
	if err := e.finder.Countable(r); err != nil {
		return err
	}
	own := r
	if !event.given {
		own = r.Clone()
	}
	over, err := e.tooDear(event, own)
	if err != nil {
		return err
	}
	c := e.room(change.Queued)
	c.ID, c.Request = own.ID, own
	e.fold(c, state.Ref{})
	if over != nil {
		e.refuse(own, over)
		return nil
	}
	e.arrived(own)
	return nil
}

// asked reports what cannot be right with a request that is submitted, or asked about.
func asked(r *berth.Request) error {
	if r.Task != nil {
		return ofTask(r)
	}
	return r.Validate()
}

// hasCome returns an error if something that is decided about arrives later.
func (e *Engine) hasCome(arrival berth.Time) error {
	if arrival > e.state.Now() {
		return berth.Errorf(berth.Invalid, "arrival", "%d; must not be after now, %d", arrival, e.state.Now())
	}
	return nil
}

// ofTask is the error of a request that says it is of a task of a workflow.
func ofTask(r *berth.Request) error {
	return berth.Errorf(berth.Invalid, "task", "%q of workflow %q; tasks are promised with their workflow", r.Task.Task, r.Task.Workflow)
}

func (e *Engine) isPending(id string) bool {
	return e.state.Job(id) != nil || e.state.Request(id) != nil
}

// isTaken reports whether something that is pending or live has an id, or an occurrence that an open series is
// to ask for.
func (e *Engine) isTaken(id string) bool {
	return e.state.Entry(id) != nil || e.isPending(id) || e.state.Flow(id) != nil || e.state.IsAwaited(id)
}

// arrived has a request or job that has just become pending decided, now or at the
// next scheduling point. A job that no empty site could serve is refused.
func (e *Engine) arrived(r *berth.Request) {
	if r.IsJob() {
		if refusal := e.finder.Impossible(r, e.state.Now()); refusal != nil {
			e.refuse(r, refusal)
			return
		}
	}
	if r.IsJob() || e.settings.trigger != TriggerOnArrival {
		if refusal := e.finder.Forbidden(r); refusal != nil {
			e.refuse(r, refusal)
			return
		}
	}
	switch {
	case e.settings.trigger != TriggerOnArrival:
		e.schedule()
	case r.IsJob():
		e.lookAtJobs()
	default:
		e.decideAll()
	}
}

// refuse answers a pending request or job with a refusal.
func (e *Engine) refuse(r *berth.Request, refusal *berth.Refusal) {
	e.emit(change.Change{Kind: change.Refused, ID: r.ID, Request: r, Refusal: refusal})
}

// lookAtJobs lets the pass see jobs that have just become pending.
func (e *Engine) lookAtJobs() {
	if e.state.Backlog().Ordered() { // a loop over none allocates, for each job that arrives
		e.discardJobs()
	}
	e.jobs.Arrived()
}

// discardJobs refuses the jobs that the order does not let wait.
func (e *Engine) discardJobs() {
	for p := range e.state.Backlog().Discards(e.state.Now()) {
		e.refuse(p.Request, overShare(p.Request))
	}
}

// expireJob drops a job whose waiting limit is over.
func (e *Engine) expireJob(j *state.Job) {
	e.refuse(j.Request(), e.finder.Impossible(j.Request(), e.state.Now()))
	e.freed()
}

// decideAll decides what is pending.
func (e *Engine) decideAll() {
	if e.settings.batch == nil {
		e.greedy()
		return
	}
	e.batch()
}

// greedy is the pass that decides every pending request, one at a time and for good,
// in the configured order: a promise now or a refusal now (Li et al., section 3:
// requests are processed first come, first served; Ahuja et al.: the manager reserves
// them one by one, in the order of the round). What a round defers is decided in the
// next one, at once.
func (e *Engine) greedy() {
	submitted := e.state.Submitted()
	for e.state.Queued() > 0 {
		if r := e.state.Lone(); r != nil {
			e.decide(r)
			continue
		}
		for p := range e.state.Discards() {
			e.refuse(p.Request, overShare(p.Request))
		}
		for p := range e.state.Round() {
			e.decide(p.Request)
		}
	}
	if e.state.Submitted() > submitted { // some wait as jobs now
		e.lookAtJobs()
		return
	}
	e.jobs.Plan()
}

// overShare is the refusal of a request that exceeds its user's share of a round and
// may not wait for another.
func overShare(r *berth.Request) *berth.Refusal {
	wanted := r.Parts[0].Variants[0].NPE
	for _, v := range r.Parts[0].Variants[1:] {
		wanted = min(wanted, v.NPE)
	}
	return &berth.Refusal{Reason: berth.Quota, Wanted: wanted}
}

// decide promises a pending request a place, or refuses it.
func (e *Engine) decide(r *berth.Request) {
	found, refusal := e.finder.Place(place.Want{Request: r, Admit: true})
	switch {
	case refusal != nil && e.mayWait(r, refusal):
		e.emit(change.Change{Kind: change.QueuedAsJob, ID: r.ID, Request: jobOf(r)})
	case refusal != nil:
		e.refuse(r, refusal)
	default:
		e.promise(r, &found)
	}
}

// promise makes a pending request a reservation.
func (e *Engine) promise(r *berth.Request, at *place.Place) {
	e.makeRoom(at.Allotments)
	reservation := e.accepted()
	*reservation = reservationOf(r, at)
	if e.cost != nil {
		reservation.Terms.Delay, reservation.Terms.Idle = e.cost.Largest, e.cost.Idle
	}
	e.accept(reservation, state.Ref{})
}

// reservationOf returns a pending request as the reservation that it becomes at a place.
func reservationOf(r *berth.Request, at *place.Place) berth.Reservation {
	return berth.Reservation{
		Request: r, State: berth.Confirmed, Generation: 1,
		Allotments: at.Allotments, Terms: at.Terms, Stocks: at.Stocks, Transfers: at.Transfers,
	}
}

// accept makes a reservation of a pending request.
func (e *Engine) accept(reservation *berth.Reservation, about state.Ref) {
	r := reservation.Request
	if reservation.Sequence = e.state.Sequence() + 1; r.Hold > 0 {
		reservation.State = berth.Held
		reservation.Terms.Expires = min(e.state.Now().Add(r.Hold), berth.TimeLimit-1)
		reservation.Expires = min(reservation.Terms.Expires, firstEnd(reservation.Allotments))
	}
	c := e.room(change.Accepted)
	c.ID, c.Reservation = r.ID, reservation
	e.fold(c, about)
}

// makeRoom clears allotments of running jobs, if jobs yield to promises, and of the
// plans of pending jobs.
func (e *Engine) makeRoom(allotments []berth.Allotment) {
	e.preempt(allotments, false)
	e.jobs.MakeWay(allotments)
}

// firstEnd returns the earliest end of any part.
func firstEnd(allotments []berth.Allotment) berth.Time {
	end := allotments[0].End
	for i := range allotments[1:] {
		end = min(end, allotments[i+1].End)
	}
	return end
}

// mayWait reports whether a request that found no room waits as a job instead: one
// that wants to start when it arrives, and that could run as a job.
func (e *Engine) mayWait(r *berth.Request, refusal *berth.Refusal) bool {
	if e.config.Immediate != ImmediateQueue || refusal.Reason != berth.NoCapacity || r.Ready != r.Arrival ||
		len(r.Parts) > 1 || len(r.Parts[0].Variants) > 1 {
		return false
	}
	j := jobOf(r)
	return e.finder.Impossible(j, e.state.Now()) == nil && e.finder.Forbidden(j) == nil
}

// jobOf returns the ordinary job that does the work of a request.
func jobOf(r *berth.Request) *berth.Request {
	j := r.Clone()
	j.Kind, j.Deadline, j.Hold, j.NoShow = berth.KindJob, berth.Forever, 0, 0
	return j
}

// batch is the pass of a batch matcher, which decides order and place together: at
// every scheduling point it sees all pending requests that are ready, and what is
// free from now on. What it assigns starts as soon as its data allow, what has become
// hopeless is refused, and the rest is deferred to the next point (Tang and Liao,
// algorithm 2).
//
// Deviations: the paper's jobs are atomic and rigid, so requests of several parts and
// moldable ones are decided one by one before the batch, at the earliest place in their
// windows. PEs promised for later are not free; the paper has no promises. Of licences
// and storage the free amount counts. Admission policies apply; the paper has none.
func (e *Engine) batch() {
	submitted := e.state.Submitted()
	var pending, ready []*berth.Request
	for p := range e.state.Discards() {
		e.refuse(p.Request, overShare(p.Request))
	}
	for p := range e.state.Round() {
		pending = append(pending, p.Request)
	}
	next := e.nextPoint()
	for _, r := range pending {
		if len(r.Parts) > 1 || len(r.Parts[0].Variants) > 1 {
			e.decide(r)
			continue
		}
		refusal := e.finder.Hopeless(r, e.state.Now(), e.config.Unaware)
		if refusal == nil && r.Ready <= e.state.Now() {
			refusal = e.finder.Denied(r)
		}
		switch {
		case refusal != nil:
			e.refuse(r, refusal)
		case r.Ready <= e.state.Now():
			ready = append(ready, r)
		}
	}
	round := e.finder.Round(ready, e.settings.batchDraws)
	for _, a := range e.settings.batch.Assign(&round, nil) {
		r := ready[a.Job]
		switch at, ok, refusal := e.finder.Assign(r, a.Pool, e.config.Unaware); {
		case refusal != nil:
			e.refuse(r, refusal)
		case ok:
			e.promise(r, &at)
		}
	}
	for _, r := range ready {
		if e.state.Request(r.ID) == nil {
			continue
		}
		if refusal := e.finder.Hopeless(r, next, e.config.Unaware); refusal != nil {
			e.refuse(r, refusal)
		}
	}
	e.again()
	if e.state.Submitted() > submitted {
		e.lookAtJobs()
		return
	}
	e.jobs.Plan()
}

// nextPoint returns the latest time of the next look at deferred requests.
func (e *Engine) nextPoint() berth.Time {
	now := e.state.Now()
	if p := berth.Time(e.config.Period); e.settings.trigger == TriggerOnPeriod {
		return now + p - (now%p+p)%p
	}
	return now + 1
}

// again schedules the next look at pending requests: at the next period, or, where
// released PEs trigger a look, when the first request is ready or becomes hopeless.
func (e *Engine) again() {
	if e.state.Queued() == 0 {
		return
	}
	at := e.nextPoint()
	if e.settings.trigger != TriggerOnPeriod {
		at = berth.Forever
		for _, p := range e.state.Requests() {
			look := p.Request.Ready
			if look <= e.state.Now() {
				look = max(e.state.Now(), p.Request.Deadline.Add(-e.finder.Least(p.Request))) + 1
			}
			at = min(at, look)
		}
	}
	if at < e.state.Pass() {
		e.emit(change.Change{Kind: change.Scheduled, Pass: at})
	}
}
