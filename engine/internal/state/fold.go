package state

import (
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
)

// Ref is what a change is about in the state that it was made for, to spare the
// search by id. The zero Ref is right for every change.
type Ref struct {
	Entry *Entry // of a reservation that is accepted, room for it
	Job   *Job
	// Flow is, of a workflow that is promised, what NewFlow returned for it; of a task of it whose
	// reservation Flow.Expect was told, it and the task.
	Flow *Flow
	Task int
}

// Fold applies a change. A change that does not fit the state means that the
// engine is wrong, or that a journal belongs to another configuration: Fold
// returns an error, and the state must not be used any more. No trial may be open.
func (s *State) Fold(c *change.Change, about Ref) error {
	if s.trial.open {
		return fmt.Errorf("a change during a trial")
	}
	switch c.Kind {
	case change.Advanced:
		if c.Now < s.now {
			return fmt.Errorf("time runs back from %d to %d", s.now, c.Now)
		}
		if s.now < c.Now {
			s.spent.moveOn()
		}
		s.now = c.Now
		return nil
	case change.Queued:
		switch {
		case c.Request == nil:
			return fmt.Errorf("no request is queued")
		case c.Request.IsJob():
			s.queueJob(c.Request, 0)
		default:
			s.queue.add(s.pending(c.Request))
		}
		return nil
	case change.Scheduled:
		s.schedule(c.Pass)
		return nil
	case change.Withdrawn:
		return s.unqueue(c.ID)
	case change.QueuedAsJob:
		if err := s.queue.remove(c.ID); err != nil {
			return err
		}
		s.queueJob(c.Request, 0)
		return nil
	case change.Refused:
		s.decided++
		return s.unqueue(c.ID)
	case change.Accepted:
		return s.accept(c, about)
	case change.Planned:
		j := about.Job
		if j == nil {
			j = s.backlog.byID[c.ID]
		}
		if j == nil {
			return fmt.Errorf("job %q is not pending", c.ID)
		}
		return s.plan(j, c.Plan)
	case change.Emitted:
		s.effects = c.Effect.Number
		s.outbox = append(s.outbox, *c.Effect)
		return nil
	case change.Settled:
		i, found := s.effect(c.EffectID)
		if !found {
			return fmt.Errorf("no effect %d in the outbox", c.EffectID)
		}
		if last := len(s.outbox) - 1; i > last/2 {
			s.outbox = slices.Delete(s.outbox, i, i+1)
		} else { // mostly one of the oldest, behind which there may be thousands
			copy(s.outbox[1:i+1], s.outbox[:i])
			s.outbox[0] = change.Effect{}
			s.outbox = s.outbox[1:]
		}
		return nil
	case change.WentDown:
		return s.addOutage(c.Outage)
	case change.OutageBegan:
		return s.beginOutage(c.Outage)
	case change.CameUp:
		return s.endOutage(c.Outage)
	case change.Forecasted:
		return s.takeForecast(c.Forecast)
	case change.WorkflowPromised, change.WorkflowRefused, change.TaskOver, change.WorkflowReplanned, change.WorkflowOver:
		return s.foldWorkflow(c, about.Flow)
	case change.SeriesPromised, change.SeriesRefused, change.SeriesProlonged:
		return s.foldSeries(c) // its occurrences follow
	}
	e := about.Entry
	if e == nil {
		e = s.ledger.live[c.ID]
	}
	if e == nil {
		return fmt.Errorf("no live reservation %q", c.ID)
	}
	if c.Kind == change.ChangeRefused {
		return nil
	}
	s.touch(e)
	s.noteUnused(c, e)
	s.settle(c, e)
	if err := s.foldLive(c, e); err != nil {
		return fmt.Errorf("reservation %q: %w", c.ID, err)
	}
	s.noteNames(e)
	s.followTask(c.Kind, e)
	if e.running == 0 && len(s.managed) == 0 { // the effects for managed sites look at it later
		s.spent.leave(e)
	}
	return nil
}

// foldLive applies a change of a live reservation.
func (s *State) foldLive(c *change.Change, e *Entry) error {
	switch c.Kind {
	case change.Confirmed:
		return s.confirm(e)
	case change.Named:
		return s.name(e, c.Moved)
	case change.Started:
		return s.start(e, c.PEs)
	case change.CheckedIn:
		e.write().CheckedIn = true
		s.dropNoShow(e)
		return nil
	case change.Extended:
		return s.extend(e, c)
	case change.Shortened:
		return s.shorten(e, c.Until)
	case change.Vacated:
		return s.vacate(e)
	case change.Moved:
		return s.move(e, c)
	case change.Modified:
		return s.modify(e, c)
	case change.Resized:
		return s.resize(e, c.Moved)
	case change.Staged:
		return s.stage(e, c)
	case change.Ended:
		return s.end(e, c.Part)
	case change.Cancelled, change.Expired, change.NoShow, change.Failed, change.Rejected:
		return s.cancel(e)
	case change.Preempted:
		generation := e.r.Generation
		if err := s.end(e, 0); err != nil {
			return err
		}
		s.queueJob(c.Request, generation)
		return nil
	case change.Requeued:
		if err := s.gone(e); err != nil {
			return err
		}
		s.queueJob(c.Request, e.r.Generation)
		return nil
	case change.Lost:
		return s.gone(e)
	}
	return fmt.Errorf("unknown change %q", c.Kind)
}

// unqueue takes a pending request or job out of its queue.
func (s *State) unqueue(id string) error {
	if j, ok := s.backlog.byID[id]; ok {
		return s.dropJob(j, false)
	}
	return s.queue.remove(id)
}

// Start writes to r what a pending job is as a reservation that starts now. It changes nothing else.
func (s *State) Start(j *Job, at *berth.Allotment, r *berth.Reservation) {
	*r = berth.Reservation{
		Request: j.request, State: berth.Confirmed, Sequence: s.sequence + 1, Generation: j.generation + 1,
		Allotments: append(r.Allotments[:0], *at),
	}
}

// accept makes a pending request or job a reservation.
func (s *State) accept(c *change.Change, about Ref) error {
	j, r, e := about.Job, c.Reservation, about.Entry
	if r == nil || r.Request == nil || len(r.Allotments) == 0 {
		return fmt.Errorf("request %q is accepted without an allotment", c.ID)
	}
	if j == nil {
		j = s.backlog.byID[c.ID]
	}
	if e == nil {
		e = s.spent.entry()
	}
	planned := j != nil && j.plan != nil && len(r.Allotments) == 1 && j.plan.Start == r.Start() && j.plan.Resource == r.Allotments[0].Resource
	if j != nil {
		if err := s.dropJob(j, planned); err != nil {
			return err
		}
	} else if err := s.queue.remove(c.ID); err != nil {
		return err
	}
	s.touchNew(e)
	e.copy(r)
	s.ledger.add(e)
	s.complement(e)
	for i := range e.r.Allotments {
		a := &e.r.Allotments[i]
		if _, known := s.Index(a.Resource); !known {
			return fmt.Errorf("reservation %q: no pool %v", c.ID, a.Resource)
		}
		var err error
		if j != nil {
			err = s.planned.run(e, a, planned)
		} else {
			err = s.book(a, a.Start)
		}
		if err != nil {
			return fmt.Errorf("reservation %q: %w", c.ID, err)
		}
	}
	if err := s.takeBeside(e, every); err != nil {
		return fmt.Errorf("reservation %q: %w", c.ID, err)
	}
	s.sequence = r.Sequence
	s.decided++
	s.occurs(r.Request.Series)
	s.timers.add(s.waitFor(e))
	s.ledger.setApart(e)
	s.enterPools(e)
	return s.acceptTask(e, about)
}

// takeBeside takes what a reservation holds beside its PEs: its stocks, and the
// shares of those of its transfers that are wanted.
func (s *State) takeBeside(e *Entry, which func(*berth.Transfer) bool) error {
	if len(e.r.Stocks) == 0 && len(e.r.Transfers) == 0 {
		return nil
	}
	if err := s.takeStocks(e.r.Stocks); err != nil {
		return err
	}
	return s.takeUplink(e.r.Transfers, which)
}

// giveBeside gives it back.
func (s *State) giveBeside(e *Entry, which func(*berth.Transfer) bool) error {
	if len(e.r.Stocks) == 0 && len(e.r.Transfers) == 0 {
		return nil
	}
	if err := s.giveStocks(e.r.Stocks); err != nil {
		return err
	}
	return s.giveUplink(e.r.Transfers, which)
}

// book takes an allotment from a time on.
func (s *State) book(a *berth.Allotment, from berth.Time) error {
	if a.NPE == 0 { // of a reservation that has lost all its PEs
		return nil
	}
	s.planned.complete()
	i, known := s.Index(a.Resource)
	if !known {
		return fmt.Errorf("no pool %v", a.Resource)
	}
	if err := s.pools[i].calendar.Add(blockOf(a, from)); err != nil {
		return err
	}
	return s.planned.take(a, from)
}

// unbook gives back what is left of an allotment from a time on: its start, or now if
// that is later.
func (s *State) unbook(a *berth.Allotment, from berth.Time) error {
	if a.NPE == 0 {
		return nil
	}
	s.planned.complete()
	i, known := s.Index(a.Resource)
	if !known {
		return fmt.Errorf("no pool %v", a.Resource)
	}
	s.prune(i) // what began before now begins now
	if err := s.pools[i].calendar.Remove(blockOf(a, from)); err != nil {
		return err
	}
	return s.planned.give(a, from)
}

// rebook makes an allotment that is booked, and may have begun, end at another time.
func (s *State) rebook(a *berth.Allotment, until berth.Time) error {
	from, changed := max(a.Start, s.now), *a
	if from < a.End {
		if err := s.unbook(a, from); err != nil {
			return err
		}
	}
	if changed.End = until; from >= until {
		return nil
	}
	return s.book(&changed, from)
}
