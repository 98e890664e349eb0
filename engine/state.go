package engine

import (
	"cmp"
	"fmt"
	"iter"
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
	// submitted counts the requests and jobs so far, a job again each time it
	// is queued.
	submitted uint64
	decided   uint64 // requests accepted or refused so far

	resources []resource      // in the order of the configuration
	managed   map[string]bool // sites at which somebody carries out effects
	calendars map[berth.ResourceID]calendar.Calendar
	// stocks are what sites have beside PEs; their calendars are among the
	// others.
	stocks     map[berth.ResourceID]*stock
	stockOrder []*stock // in the order of the configuration
	uplink     *stock   // what all transfers share, nil if nothing
	staging    Staging
	forecasts  map[string]*Forecast // by site
	programs   programs             // where which is; it follows from the configuration
	placing    placing              // nothing between two events: it is not remembered
	// plans are the calendars with the plans of jobs booked on top; only the
	// conservative pass has them.
	plans map[berth.ResourceID]calendar.Calendar
	// profile is what the passes for jobs look at where there is one resource,
	// of late binding. Only then flat is set; it is nil until the first job.
	profile  *profile
	flat     bool
	hasPlans bool                            // the pass plans
	unbooked []*entry                        // jobs that hold PEs in the profile only
	idle     map[berth.ResourceID]bitset.Set // late binding: PEs that run nothing
	queue    queue
	jobs     jobQueue
	users    users
	pass     timer // of the pass over what is pending, if it is set
	ledger   ledger
	timers   timers
	outbox   []Effect // by number

	outages      []*Outage         // by number
	degraded     map[string]*entry // live reservations that lack PEs
	outageNumber uint64            // of the last
	outageTimers map[uint64]*timer
}

// resource is what the configuration says of a calendar.
type resource struct {
	state    *state
	id       berth.ResourceID
	site     *berth.Site
	place    int // of the site in the configuration
	pool     berth.Pool
	forecast *Forecast         // of the site's link, nil if there is none
	calendar calendar.Calendar // that of the state
	idle     bitset.Set        // likewise; nil under early binding
	licences []*stock          // of each program of the site, nil where there is no limit
	storage  *stock            // of the site, nil if there is no limit
}

// placing is what a placement under way has to mind beside the state.
type placing struct {
	again *entry      // the promise that is placed anew: its data may be on their way
	apart *resource   // of which it is not to have
	from  berth.PESet // these PEs
}

// lasts returns a variant of a request with its duration on the resource.
func (res *resource) lasts(r *berth.Request, v berth.Variant) berth.Variant {
	v.Duration = res.pool.SpeedFor(&r.Requirements).Scale(v.Duration)
	if res.state.staging == HoldWhile {
		v.Duration = min(v.Duration+res.staging(r), berth.TimeLimit)
	}
	return v
}

// scale returns the same where the settings are simple, so that all requests
// find the resource equally fast.
func (res *resource) scale(v berth.Variant) berth.Variant {
	v.Duration = res.pool.Speed.Scale(v.Duration)
	return v
}

func newState(config *Config, settings *settings) *state {
	s := &state{
		managed:   map[string]bool{},
		calendars: map[berth.ResourceID]calendar.Calendar{},
		stocks:    map[berth.ResourceID]*stock{},
		staging:   settings.staging,
		forecasts: map[string]*Forecast{},
		programs:  newPrograms(config.Sites),
		idle:      map[berth.ResourceID]bitset.Set{},
		ledger:    newLedger(),
		queue:     newQueue(settings),
		jobs:      newJobQueue(settings),
		users:     newUsers(config.Users),

		outageTimers: map[uint64]*timer{},
		degraded:     map[string]*entry{},
		timers:       timers{ranks: &settings.ranks},
	}
	s.hasPlans = settings.jobs.plans
	s.flat = settings.simple && (settings.jobs.plans || settings.jobs.quick != nil)
	if settings.jobs.plans && !s.flat {
		s.plans = map[berth.ResourceID]calendar.Calendar{}
	}
	s.uplink = s.newStock(berth.UplinkID(), config.Uplink, settings.form)
	for i, site := range config.Sites {
		if site.Managed {
			s.managed[site.Name] = true
		}
		licences, storage := s.newStocks(&config.Sites[i], settings.form)
		for _, pool := range site.Pools {
			id := berth.PoolID(site.Name, pool.Name)
			s.calendars[id] = settings.form.New(pool.PEs, pool.Binding)
			if s.plans != nil {
				s.plans[id] = settings.form.New(pool.PEs, pool.Binding)
			}
			if pool.Binding == berth.Late {
				s.idle[id] = bitset.New(pool.PEs)
				s.idle[id].Fill(pool.PEs)
			}
			s.resources = append(s.resources, resource{
				state: s, id: id, site: &config.Sites[i], place: i, pool: pool, calendar: s.calendars[id], idle: s.idle[id], licences: licences, storage: storage,
			})
		}
	}
	return s
}

// calendar returns a resource's calendar, with everything booked and pruned to
// now.
func (s *state) calendar(id berth.ResourceID) calendar.Calendar {
	s.bookAll()
	c := s.calendarOf(id)
	c.Prune(s.now)
	return c
}

// calendarOf returns a resource's calendar as it is, nil if there is no such
// resource.
func (s *state) calendarOf(id berth.ResourceID) calendar.Calendar {
	if first := &s.resources[0]; first.id == id {
		return first.calendar // most sites have one pool: no search
	}
	return s.calendars[id]
}

// idleOf returns the PEs of a late-binding resource that run nothing.
func (s *state) idleOf(id berth.ResourceID) (idle bitset.Set, late bool) {
	if first := &s.resources[0]; first.id == id {
		return first.idle, first.idle != nil
	}
	idle, late = s.idle[id]
	return idle, late
}

// planned yields the records of a resource with the plans booked, pruned to
// now; none where the pass for jobs keeps no such.
func (s *state) planned(id berth.ResourceID) iter.Seq[calendar.Record] {
	switch {
	case s.profile != nil:
		return s.profile.records(s.now)
	case s.flat:
		return s.calendar(id).Records()
	case s.plans != nil:
		s.plans[id].Prune(s.now)
		return s.plans[id].Records()
	}
	return func(func(calendar.Record) bool) {}
}

// book takes an allotment's block from that time on.
func (s *state) book(a *berth.Allotment, from berth.Time) error {
	if a.NPE == 0 { // of a reservation that has lost all its PEs
		return nil
	}
	s.bookAll()
	if err := s.calendarOf(a.Resource).Add(blockOf(a, from)); err != nil {
		return err
	}
	switch {
	case s.profile != nil:
		return s.profile.take(from, a.End, a.NPE)
	case s.plans != nil:
		return s.plans[a.Resource].Add(blockOf(a, from))
	}
	return nil
}

// unbook gives back what is left of an allotment from that time on.
func (s *state) unbook(a *berth.Allotment, from berth.Time) error {
	if a.NPE == 0 {
		return nil
	}
	s.bookAll()
	if err := s.calendarOf(a.Resource).Remove(blockOf(a, from)); err != nil {
		return err
	}
	switch {
	case s.profile != nil:
		s.profile.give(from, a.End, a.NPE)
	case s.plans != nil:
		return s.plans[a.Resource].Remove(blockOf(a, from))
	}
	return nil
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
		if c.Request.IsJob() {
			s.queueJob(c.Request)
			return nil
		}
		s.queue.add(s.pending(c.Request))
		return nil
	case Scheduled:
		s.schedule(c.Pass)
		return nil
	case Withdrawn:
		return s.unqueue(c.ID)
	case Waits:
		if err := s.queue.remove(c.ID); err != nil {
			return err
		}
		s.queueJob(c.Request)
		return nil
	case Refused:
		s.decided++
		return s.unqueue(c.ID)
	case Accepted:
		return s.accept(c)
	case Planned:
		j := c.job
		if j == nil {
			j = s.jobs.byID[c.ID]
		}
		if j == nil {
			return fmt.Errorf("job %q is not pending", c.ID)
		}
		return s.plan(j, c.Plan)
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
	switch c.Kind {
	case WentDown:
		return s.addOutage(c.Outage)
	case Forecasted:
		return s.takeForecast(c.Forecast)
	case CameUp:
		return s.endOutage(c.Outage)
	}
	e := c.entry
	if e == nil {
		e = s.ledger.live[c.ID]
	}
	if e == nil {
		return fmt.Errorf("no live reservation %q", c.ID)
	}
	switch c.Kind {
	case Started:
		return s.start(e, c.PEs)
	case Extended:
		return s.extend(e, c.Until)
	case Shortened:
		return s.shorten(e, c.Until)
	case Preempted:
		if err := s.end(e, 0); err != nil {
			return err
		}
		s.queueJob(c.Request)
		return nil
	case Moved:
		return s.move(e, c.Moved, c.Held, c.Staging)
	case Staged:
		return s.stage(e, c)
	case Confirmed:
		return s.confirm(e)
	case Resized:
		return s.resize(e, c.Moved)
	case Modified:
		return s.modify(e, c.Request, c.Moved, c.Held, c.Staging)
	case Shown:
		return s.shown(e)
	case Kept:
		return nil
	case Ended:
		return s.end(e, c.Part)
	case Cancelled, Expired, NoShow, Failed:
		return s.cancel(e)
	case Requeued:
		s.ledger.forget(e)
		s.queueJob(c.Request)
		return nil
	case Lost:
		delete(s.degraded, c.ID)
		s.ledger.forget(e)
		return s.besides(s.sending(e), s.now, calendar.Calendar.Remove)
	}
	return fmt.Errorf("unknown change %q", c.Kind)
}

// unqueue takes a pending request or job out of its queue.
func (s *state) unqueue(id string) error {
	if j, ok := s.jobs.byID[id]; ok {
		return s.dropJob(j, false)
	}
	return s.queue.remove(id)
}

// accept makes a pending request or job a reservation.
func (s *state) accept(c *Change) error {
	j, r, e := c.job, c.Reservation, c.entry
	if r == nil || r.Request == nil || len(r.Allotments) == 0 {
		return fmt.Errorf("request %q is accepted without an allotment", c.ID)
	}
	if j == nil {
		j = s.jobs.byID[c.ID]
	}
	if e == nil {
		e = new(entry)
	}
	planned := j != nil && j.plan != nil && len(r.Allotments) == 1 && j.plan.Start == r.Start() && j.plan.Resource == r.Allotments[0].Resource
	if j != nil {
		if err := s.dropJob(j, planned); err != nil {
			return err
		}
	} else if err := s.queue.remove(c.ID); err != nil {
		return err
	}
	for i := range r.Allotments {
		a := &r.Allotments[i]
		if s.calendarOf(a.Resource) == nil {
			return fmt.Errorf("no resource %v", a.Resource)
		}
		var err error
		switch {
		case j != nil && s.profile != nil && len(r.Allotments) == 1:
			err = s.bookLater(e, a, planned)
		case planned:
			err = s.calendarOf(a.Resource).Add(blockOf(a, a.Start)) // booked among the plans already
		default:
			err = s.book(a, a.Start)
		}
		if err != nil {
			return fmt.Errorf("reservation %q: %w", r.Request.ID, err)
		}
	}
	if err := s.besides(r.Held, s.now, calendar.Calendar.Add); err != nil {
		return fmt.Errorf("reservation %q: %w", r.Request.ID, err)
	}
	s.sequence = r.Sequence
	s.decided++
	s.timers.add(waitTimer(s.ledger.add(e, r)))
	return nil
}

// confirm makes a held reservation a confirmed one.
func (s *state) confirm(e *entry) error {
	if e.State != berth.Held {
		return fmt.Errorf("reservation %q is %s, not held", e.Request.ID, e.State)
	}
	s.timers.drop(&e.first)
	e.State, e.Expires = berth.Confirmed, 0
	e.Shown = s.now > e.Start() // who confirms that late is there
	s.timers.add(waitTimer(e))
	return nil
}

// start makes a reservation active and takes its PEs out of the idle sets.
func (s *state) start(e *entry, pes []berth.PESet) error {
	e.State = berth.Active
	// The allotments are shared with the change that brought them.
	e.Allotments = append(e.own[:0], e.Allotments...)
	for part := range e.Allotments {
		a := &e.Allotments[part]
		if idle, late := s.idleOf(a.Resource); late {
			if part >= len(pes) || pes[part].Count() != a.NPE {
				return fmt.Errorf("reservation %q starts without its %d PEs", e.Request.ID, a.NPE)
			}
			a.PEs = pes[part]
			idle.Delete(a.PEs)
		}
		s.timers.turn(e.timer(part), endOf(e, part)) // the first was that of the start
	}
	s.awaitShow(e)
	return nil
}

// extend lets the only part of a reservation go on until a later end.
func (s *state) extend(e *entry, until berth.Time) error {
	a := &e.Allotments[0]
	if len(e.Allotments) > 1 || until <= a.End {
		return fmt.Errorf("reservation %q cannot be extended to %d", e.Request.ID, until)
	}
	if e.State != berth.Active {
		return s.prolong(e, until)
	}
	s.timers.drop(&e.first)
	s.ledger.hold(e, -1)
	s.bookAll()
	further := *a
	further.Start, further.End = a.End, until
	if err := s.book(&further, further.Start); err != nil {
		return fmt.Errorf("reservation %q: %w", e.Request.ID, err)
	}
	if err := s.lengthen(e, until); err != nil {
		return fmt.Errorf("reservation %q: %w", e.Request.ID, err)
	}
	a.End = until // the allotments are the entry's own since it has started
	e.Generation++
	s.ledger.hold(e, 1)
	s.timers.add(endTimer(e, 0))
	return nil
}

// move takes a reservation that has not started from its place, or gives it
// another.
func (s *state) move(e *entry, to, held []berth.Allotment, staging *berth.Staging) error {
	if e.State == berth.Active {
		return fmt.Errorf("reservation %q has started and cannot move", e.Request.ID)
	}
	if to == nil {
		s.timers.drop(&e.first)
		s.ledger.hold(e, -1)
		for i := range e.Allotments {
			a := &e.Allotments[i]
			from := max(a.Start, s.now)
			if from >= a.End {
				continue // of one that is held, as if it had run
			}
			if err := s.unbook(a, from); err != nil {
				return fmt.Errorf("reservation %q: %w", e.Request.ID, err)
			}
		}
		return s.besides(s.movable(e), s.now, calendar.Calendar.Remove)
	}
	if err := s.besides(s.sending(e), s.now, calendar.Calendar.Remove); err != nil {
		return fmt.Errorf("reservation %q: %w", e.Request.ID, err)
	}
	e.Allotments, e.Held, e.Staging = to, held, staging
	e.Generation++
	s.lacks(e, 0)
	if err := s.besides(held, s.now, calendar.Calendar.Add); err != nil {
		return fmt.Errorf("reservation %q: %w", e.Request.ID, err)
	}
	for i := range e.Allotments {
		if err := s.book(&e.Allotments[i], e.Allotments[i].Start); err != nil {
			return fmt.Errorf("reservation %q: %w", e.Request.ID, err)
		}
	}
	s.ledger.hold(e, 1)
	s.timers.add(waitTimer(e))
	return nil
}

// end ends one part, early if its time is not over.
func (s *state) end(e *entry, part int) error {
	if part < 0 || part >= len(e.Allotments) || !e.holds(part) {
		return fmt.Errorf("reservation %q has no running part %d", e.Request.ID, part)
	}
	if err := s.free(e, part); err != nil {
		return err
	}
	if s.ledger.dropPart(e, part); e.running == 0 {
		s.dropNoShow(e)
		delete(s.degraded, e.Request.ID)
		return s.besides(e.Held, s.now, calendar.Calendar.Remove)
	}
	return nil
}

func (s *state) cancel(e *entry) error {
	for part := range e.Allotments {
		if e.holds(part) {
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
	s.timers.drop(e.timer(part))
	if from := max(a.Start, s.now); e.unbooked > 0 {
		s.forgetUnbooked(e)
		s.profile.give(from, a.End, a.NPE)
	} else if from < a.End {
		if err := s.unbook(a, from); err != nil {
			return fmt.Errorf("reservation %q: %w", e.Request.ID, err)
		}
	}
	if idle, late := s.idleOf(a.Resource); late && e.State == berth.Active {
		idle.Add(a.PEs)
	}
	return nil
}

// blockOf is an allotment's block from that time on.
func blockOf(a *berth.Allotment, from berth.Time) calendar.Block {
	return calendar.Block{Start: from, End: a.End, NPE: a.NPE, PEs: a.PEs}
}
