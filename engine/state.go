package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/internal/bitset"
)

// state is everything the engine remembers. Only fold writes it.
type state struct {
	now      berth.Time
	sequence uint64 // of the last reservation
	effects  uint64 // number of the last effect
	decided  uint64 // requests accepted or refused so far

	resources []resource      // in the order of the configuration
	managed   map[string]bool // sites at which somebody carries out effects
	calendars map[berth.ResourceID]calendar.Calendar
	idle      map[berth.ResourceID]bitset.Set // late binding: PEs that run nothing
	queue     queue
	ledger    ledger
	timers    timers
	outbox    []Effect // by number
}

// resource is what the configuration says of a calendar.
type resource struct {
	id   berth.ResourceID
	pool berth.Pool
}

// scale returns a variant with its duration on the resource.
func (r *resource) scale(v berth.Variant) berth.Variant {
	v.Duration = r.pool.Speed.Scale(v.Duration)
	return v
}

func newState(config *Config, form calendar.Form) *state {
	s := &state{
		managed:   map[string]bool{},
		calendars: map[berth.ResourceID]calendar.Calendar{},
		idle:      map[berth.ResourceID]bitset.Set{},
		ledger:    newLedger(),
		timers:    newTimers(),
	}
	for _, site := range config.Sites {
		if site.Managed {
			s.managed[site.Name] = true
		}
		for _, pool := range site.Pools {
			id := berth.PoolID(site.Name, pool.Name)
			s.resources = append(s.resources, resource{id: id, pool: pool})
			s.calendars[id] = form.New(pool.PEs, pool.Binding)
			if pool.Binding == berth.Late {
				s.idle[id] = bitset.New(pool.PEs)
				s.idle[id].Fill(pool.PEs)
			}
		}
	}
	return s
}

// calendar returns a resource's calendar, pruned to now.
func (s *state) calendar(id berth.ResourceID) calendar.Calendar {
	c := s.calendars[id]
	c.Prune(s.now)
	return c
}

// fold applies one change. A change that does not fit the state means that the
// engine is wrong, or that a journal belongs to another configuration: fold
// returns an error and the state must not be used any more.
func (s *state) fold(c *Change) error {
	switch c.Kind {
	case Advanced:
		if c.Now < s.now {
			return fmt.Errorf("time runs back from %d to %d", s.now, c.Now)
		}
		s.now = c.Now
		return nil
	case Queued:
		s.queue.add(c.Request)
		return nil
	case Withdrawn:
		return s.queue.remove(c.ID)
	case Refused:
		s.decided++
		return s.queue.remove(c.ID)
	case Accepted:
		if err := s.queue.remove(c.ID); err != nil {
			return err
		}
		return s.accept(c.Reservation)
	case Emitted:
		s.effects = c.Effect.Number
		s.outbox = append(s.outbox, *c.Effect)
		return nil
	case Settled:
		i, found := slices.BinarySearchFunc(s.outbox, c.EffectID, func(e Effect, n uint64) int { return cmp.Compare(e.Number, n) })
		if !found {
			return fmt.Errorf("no effect %d in the outbox", c.EffectID)
		}
		s.outbox = slices.Delete(s.outbox, i, i+1)
		return nil
	}
	e, ok := s.ledger.live[c.ID]
	if !ok {
		return fmt.Errorf("no live reservation %q", c.ID)
	}
	switch c.Kind {
	case Started:
		return s.start(e, c.PEs)
	case Ended:
		return s.end(e, c.Part)
	case Cancelled:
		return s.cancel(e)
	}
	return fmt.Errorf("unknown change %q", c.Kind)
}

func (s *state) accept(r *berth.Reservation) error {
	for i := range r.Allotments {
		a := &r.Allotments[i]
		c, ok := s.calendars[a.Resource]
		if !ok {
			return fmt.Errorf("no resource %v", a.Resource)
		}
		if err := c.Add(blockOf(a, a.Start)); err != nil {
			return fmt.Errorf("reservation %q: %w", r.Request.ID, err)
		}
	}
	s.sequence = r.Sequence
	s.decided++
	s.timers.add(startTimer(&s.ledger.add(*r).Reservation))
	return nil
}

// start makes a reservation active and takes its PEs out of the idle sets.
func (s *state) start(e *entry, pes []berth.PESet) error {
	s.timers.drop(startTimer(&e.Reservation))
	e.State = berth.Active
	// The allotments are shared with the change that brought them.
	e.Allotments = slices.Clone(e.Allotments)
	for part := range e.Allotments {
		a := &e.Allotments[part]
		if idle, late := s.idle[a.Resource]; late {
			if part >= len(pes) || pes[part].Count() != a.NPE {
				return fmt.Errorf("reservation %q starts without its %d PEs", e.Request.ID, a.NPE)
			}
			a.PEs = pes[part]
			idle.Delete(a.PEs)
		}
		s.timers.add(endTimer(&e.Reservation, part))
	}
	return nil
}

// end ends one part, early if its time is not over.
func (s *state) end(e *entry, part int) error {
	if part >= len(e.Allotments) || !s.ledger.holdsPart(e, part) {
		return fmt.Errorf("reservation %q has no running part %d", e.Request.ID, part)
	}
	if err := s.free(e, part); err != nil {
		return err
	}
	s.ledger.dropPart(e, part)
	return nil
}

func (s *state) cancel(e *entry) error {
	s.timers.drop(startTimer(&e.Reservation))
	for part := range e.Allotments {
		if s.ledger.holdsPart(e, part) {
			if err := s.end(e, part); err != nil {
				return err
			}
		}
	}
	return nil
}

// free gives back what is left of a part's time, and its PEs.
func (s *state) free(e *entry, part int) error {
	a := &e.Allotments[part]
	s.timers.drop(endTimer(&e.Reservation, part))
	if from := max(a.Start, s.now); from < a.End {
		if err := s.calendars[a.Resource].Remove(blockOf(a, from)); err != nil {
			return fmt.Errorf("reservation %q: %w", e.Request.ID, err)
		}
	}
	if idle, late := s.idle[a.Resource]; late && e.State == berth.Active {
		idle.Add(a.PEs)
	}
	return nil
}

// blockOf is an allotment's block from that time on.
func blockOf(a *berth.Allotment, from berth.Time) calendar.Block {
	return calendar.Block{Start: from, End: a.End, NPE: a.NPE, PEs: a.PEs}
}

// queue holds the pending requests in the order of their submission.
type queue struct{ pending []*berth.Request }

func (q *queue) add(r *berth.Request) { q.pending = append(q.pending, r) }

func (q *queue) find(id string) int {
	return slices.IndexFunc(q.pending, func(r *berth.Request) bool { return r.ID == id })
}

func (q *queue) remove(id string) error {
	i := q.find(id)
	if i < 0 {
		return fmt.Errorf("request %q is not pending", id)
	}
	q.pending = slices.Delete(q.pending, i, i+1)
	return nil
}
