package state

import (
	"cmp"
	"iter"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/bitset"
	"github.com/berth-hpc/berth/policy"
)

// Config is what a state is about and how it is kept. It does not change.
type Config struct {
	Sites  []berth.Site
	Uplink int64 // kB/s that all transfers share, 0 for no limit
	Users  []berth.User
	Form   calendar.Form
	// Order and Options are those in which pending requests and jobs are looked at.
	Order   policy.NamedQueue
	Options policy.OrderOptions
	Ranks   Ranks // of the classes at one instant
	// Plans says that pending jobs have plans. Flat says that there is one pool, of
	// late binding, and that passes for jobs look at its profile.
	Plans, Flat bool
	// Limited says that there are limits, for which what each user has is kept. What
	// accounts, QOS and partitions have is kept of those that have limits of their own, all of
	// them with policy.Every. NoShows says that what goes unused is counted.
	Limited, NoShows                bool
	Budgets                         bool // what holders are charged for is kept
	Prices                          policy.Prices
	Everyone                        bool // what all have together is kept too
	Accounts, Qualities, Partitions []string
}

// State is everything that the engine remembers. Its zero value is not usable.
// It is not safe for concurrent use.
type State struct {
	now       berth.Time
	sequence  uint64 // of the last reservation
	effects   uint64 // number of the last effect
	submitted uint64 // requests and jobs so far, a job again each time it is queued
	decided   uint64 // requests and jobs accepted or refused so far

	pools    []pool                     // in the order of the configuration
	byID     map[berth.ResourceID]int   // their places
	stocks   map[berth.ResourceID]Stock // beside PEs; of the uplink too
	order    []Stock                    // the same in the order of the configuration
	licences [][]Stock                  // by site and program; the zero Stock where there is no limit
	storage  []Stock                    // by site, likewise
	uplink   Stock                      // likewise

	managed   map[string]bool // sites that carry out effects
	forecasts map[string]*berth.Forecast
	queue     queue
	backlog   Backlog
	planned   planned
	users     users
	pass      timer // of the next scheduling point, if it is set
	ledger    ledger
	several   []*Entry          // what has started, of several parts, in no particular order
	degraded  map[string]*Entry // live reservations that lack PEs
	naming    bool              // some pool names ahead
	named     map[string]*Entry // what has PEs in such pools
	timers    timers
	outages   []*outage // by number
	outage    uint64    // number of the last
	outbox    []change.Effect
	workflows workflows
	open      []*Open // series, by number
	openByID  map[string]*Open
	unused    []unused // by time, where countsUnused
	charged   charges  // for what is over

	countsUnused bool // some limit is about it

	trial   Trial // the one that is open, or the room for the next
	spent   spent
	touched []touch
	round   uint64 // in which touched is gathered
}

// pool is the calendar of a pool.
type pool struct {
	id       berth.ResourceID
	config   *berth.Pool
	calendar calendar.Calendar
	pruned   berth.Time // the time to which it was pruned last
	idle     bitset.Set // late binding: PEs that run nothing and are in use; nil under early binding
	size     berth.Count
	parts    int      // of live reservations and running jobs, over or not
	active   []*Entry // what has started there, of those of one part, in no particular order
}

// New returns a state in which everything is free at time 0.
func New(config Config) *State {
	s := &State{
		byID:      map[berth.ResourceID]int{},
		stocks:    map[berth.ResourceID]Stock{},
		managed:   map[string]bool{},
		forecasts: map[string]*berth.Forecast{},
		queue:     newQueue(&config),
		backlog:   newBacklog(&config),
		users:     newUsers(config.Users),
		ledger:    newLedger(&config),
		degraded:  map[string]*Entry{},
		named:     map[string]*Entry{},
		workflows: workflows{byID: map[string]*Flow{}},
		openByID:  map[string]*Open{},
		timers:    timers{ranks: config.Ranks, width: firstWidth},

		countsUnused: config.NoShows, charged: charges(newByHolder[map[policy.Month]int64]()),
	}
	s.trial.state = s
	s.uplink = s.newStock(berth.UplinkID(), config.Uplink, config.Form)
	for i := range config.Sites {
		site := &config.Sites[i]
		if site.Managed {
			s.managed[site.Name] = true
		}
		var licences []Stock
		for k := range site.Software {
			program := &site.Software[k]
			licences = append(licences, s.newStock(berth.LicenceID(site.Name, program), int64(program.Licences), config.Form))
		}
		s.licences = append(s.licences, licences)
		s.storage = append(s.storage, s.newStock(berth.StorageID(site.Name), site.StorageMB, config.Form))
		for k := range site.Pools {
			p := &site.Pools[k]
			id := berth.PoolID(site.Name, p.Name)
			added := pool{id: id, config: p, calendar: config.Form.New(p.PEs, p.Binding), pruned: before, size: p.PEs}
			if p.Binding == berth.Late {
				added.idle = bitset.New(p.PEs)
				added.idle.Fill(p.PEs)
				s.naming = s.naming || p.NameAhead > 0
			}
			s.byID[id] = len(s.pools)
			s.pools = append(s.pools, added)
		}
	}
	s.planned = newPlanned(s, &config)
	return s
}

// before is before every valid time.
const before berth.Time = -berth.Forever

// Now returns the time that the state has reached.
func (s *State) Now() berth.Time { return s.now }

// Sequence returns the sequence number of the last reservation or started job.
func (s *State) Sequence() uint64 { return s.sequence }

// Submitted returns how many requests and jobs have become pending so far, a job
// again each time it is queued; Decided how many were accepted or refused.
func (s *State) Submitted() uint64 { return s.submitted }

// Decided returns how many requests and jobs were accepted or refused so far.
func (s *State) Decided() uint64 { return s.decided }

// LastOutage returns the number of the last outage.
func (s *State) LastOutage() uint64 { return s.outage }

// LastEffect returns the number of the last effect.
func (s *State) LastEffect() uint64 { return s.effects }

// Index returns the place of a pool in the configuration; ok is false if there is
// no such pool.
func (s *State) Index(id berth.ResourceID) (i int, ok bool) {
	if s.pools[0].id == id {
		return 0, true // most sites have one pool: no search
	}
	i, ok = s.byID[id]
	return i, ok
}

// View is a calendar to look at, with what is tried at the moment. It leads to no way
// of writing it.
type View struct{ calendar.View }

func viewOf(c calendar.Calendar) View { return View{calendar.ViewOf(c)} }

// View returns the calendar of the i-th pool, from now on. It is valid until the
// next change.
func (s *State) View(i int) View {
	s.planned.complete()
	s.prune(i)
	return viewOf(s.pools[i].calendar)
}

// prune forgets what a calendar holds of the past. It changes no answer.
func (s *State) prune(i int) {
	if p := &s.pools[i]; p.pruned < s.now {
		p.calendar.Prune(s.now)
		p.pruned = s.now
	}
}

// Booked returns the PE-seconds within an interval that are not free.
func (v View) Booked(iv berth.Interval) int64 { return calendar.Booked(v.View, iv) }

// Takes reports whether an allotment is free.
func (v View) Takes(a *berth.Allotment) bool {
	n, pes := v.Free(a.Interval())
	if v.Binding() == berth.Late {
		return n >= a.NPE
	}
	return a.PEs.Overlap(pes) == a.PEs.Count()
}

// Idle returns n idle PEs of a pool of late binding, the lowest-numbered ones that
// are not among others, for work that lasts until a time: where there are enough, ones
// that no promise has by name, and no outage, before that. late is false for a pool of early binding. The
// set is smaller where fewer are idle.
func (s *State) Idle(i int, n berth.Count, others berth.PESet, until berth.Time) (pes berth.PESet, late bool) {
	idle := s.pools[i].idle
	if idle == nil {
		return berth.PESet{}, false
	}
	if s.pools[i].config.NameAhead > 0 || s.announced(i, until) {
		rest := append(bitset.Set(nil), idle...)
		rest.Delete(others)
		unwanted := append(bitset.Set(nil), rest...)
		unwanted.Delete(s.wanted(s.pools[i].id, until))
		pes = unwanted.Lowest(n)
		rest.Delete(pes)
		return pes.Or(rest.Lowest(n - pes.Count())), true
	}
	if !others.Empty() {
		rest := append(bitset.Set(nil), idle...)
		rest.Delete(others)
		return rest.Lowest(n), true
	}
	return idle.Lowest(n), true
}

// Managed reports whether a site carries out effects.
func (s *State) Managed(site string) bool { return s.managed[site] }

// Forecast returns the forecast for a site, nil if there is none. It must not be
// written.
func (s *State) Forecast(site string) *berth.Forecast { return s.forecasts[site] }

// HasEffect reports whether an effect is not settled. Cost: O(log n).
func (s *State) HasEffect(number uint64) bool {
	_, found := s.effect(number)
	return found
}

// effect returns where in the outbox an effect is.
func (s *State) effect(number uint64) (at int, found bool) {
	return slices.BinarySearchFunc(s.outbox, number, func(e change.Effect, n uint64) int { return cmp.Compare(e.Number, n) })
}

// OutboxAfter returns a copy of the effects behind one of a number that are not settled, in order, the first ones
// up to a number of them. Cost: O(log n + what is returned).
func (s *State) OutboxAfter(number uint64, most int) []change.Effect {
	at, found := s.effect(number)
	if found {
		at++
	}
	return slices.Clone(s.outbox[at:min(len(s.outbox), at+most)])
}

// LastInOutbox returns the number of the last effect that is not settled, 0 if there is none.
func (s *State) LastInOutbox() uint64 {
	if len(s.outbox) == 0 {
		return 0
	}
	return s.outbox[len(s.outbox)-1].Number
}

// Outbox returns the effects that are not settled, in order. It is valid until the
// next change.
func (s *State) Outbox() iter.Seq[change.Effect] {
	return func(yield func(change.Effect) bool) {
		for _, effect := range s.outbox {
			if !yield(effect) {
				return
			}
		}
	}
}
