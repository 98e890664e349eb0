package engine

import (
	"iter"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/state"
	"github.com/berth-hpc/berth/policy"
)

// Read access to the engine's state: the resource information, the bookkeeping, and the
// waiting and running queues of the workload management system of Sahakyan and
// Petrosyan, section 4. The caller owns the results, except for those of Due.

// Standing is where a request or job stands.
type Standing string

// The standings of live requests and jobs. The engine keeps nothing that is over.
const (
	StandingPending Standing = "pending" // not decided yet, or a job that waits
	StandingWaiting Standing = "waiting" // promised, not started: held, confirmed or degraded
	StandingRunning Standing = "running"
)

// Status is what is known of a live request or job.
type Status struct {
	Standing Standing
	Request  berth.Request
	// Reservation is the promise, nil if it is pending.
	Reservation *berth.Reservation
	// Plan is where a pending job is planned to run, nil if nowhere. It is no promise.
	Plan *berth.Allotment
}

// Status returns where a request or job stands; ok is false if it is not live.
func (e *Engine) Status(id string) (s Status, ok bool) {
	if d := e.state.Entry(id); d != nil {
		r := d.Reservation()
		return Status{Standing: standing(d), Request: *r.Request, Reservation: &r}, true
	}
	if j := e.state.Job(id); j != nil {
		s = Status{Standing: StandingPending, Request: *j.Request().Clone()}
		if plan, planned := j.Plan(); planned {
			s.Plan = &plan
		}
		return s, true
	}
	if r := e.state.Request(id); r != nil {
		return Status{Standing: StandingPending, Request: *r.Clone()}, true
	}
	return Status{}, false
}

func standing(d *state.Entry) Standing {
	if d.State() == berth.Active {
		return StandingRunning
	}
	return StandingWaiting
}

// Now returns the time to which the engine has advanced.
func (e *Engine) Now() berth.Time { return e.state.Now() }

// Reservation returns a live reservation.
func (e *Engine) Reservation(id string) (berth.Reservation, bool) {
	d := e.state.Entry(id)
	if d == nil {
		return berth.Reservation{}, false
	}
	return d.Reservation(), true
}

// State returns the state of a live reservation.
func (e *Engine) State(id string) (s berth.State, ok bool) {
	d := e.state.Entry(id)
	if d == nil {
		return s, false
	}
	return d.State(), true
}

// Promise returns a live reservation as it is, nil if there is none. It is the engine's own memory, which is not written any more, neither by
// the engine nor those who have it. It is for those who keep many, and look at them beside the engine.
func (e *Engine) Promise(id string) *berth.Reservation {
	d := e.state.Entry(id)
	if d == nil {
		return nil
	}
	return d.Promise()
}

// Reservations yields the live reservations in the order of acceptance. Cost:
// O(n log n).
func (e *Engine) Reservations() iter.Seq[berth.Reservation] {
	return reservations(e.state.Entries)
}

func reservations(list func() []*state.Entry) iter.Seq[berth.Reservation] {
	return func(yield func(berth.Reservation) bool) {
		for _, d := range list() {
			if !yield(d.Reservation()) {
				return
			}
		}
	}
}

// Queue yields the reservations of a site that have that standing, in the order of
// acceptance. Pending requests have no site yet: see Pending. Cost: O(n) for n live
// reservations, of those that run for n held or active, and sorting what is yielded.
func (e *Engine) Queue(site string, s Standing) iter.Seq[berth.Reservation] {
	return reservations(func() []*state.Entry {
		if s == StandingRunning {
			return e.state.Active(func(d *state.Entry) bool { return d.At(site) })
		}
		return e.state.Select(func(d *state.Entry) bool { return standing(d) == s && d.At(site) })
	})
}

// Due yields the reservations of a site that have started, or start until then, in
// no particular order. They are the engine's own, since sites are looked at often: they must not
// be written, and hold until the next event. Cost: O(n) for n that are due or held.
func (e *Engine) Due(site string, until berth.Time) iter.Seq[*berth.Reservation] {
	return func(yield func(*berth.Reservation) bool) {
		here := func(d *state.Entry) bool { return !d.Request().IsJob() && d.At(site) }
		for _, d := range e.state.Soon(max(until, e.state.Now()), func(d *state.Entry) bool { return d.Start() <= until && here(d) }) {
			if !yield(d.Look()) {
				return
			}
		}
	}
}

// At reports whether there is a live reservation of that id at a site. Running jobs are none.
func (e *Engine) At(id, site string) bool {
	d := e.state.Entry(id)
	return d != nil && !d.Request().IsJob() && d.At(site)
}

// Unsuited yields the reservations of a site with PEs that lack what was required of them, by their ids, with
// a part and those PEs of it: PEs may be made otherwise after they were promised. Cost: O(n) for n live
// reservations, and the classes of pools for those that require anything.
func (e *Engine) Unsuited(site string) iter.Seq2[string, berth.Allotment] {
	return func(yield func(string, berth.Allotment) bool) {
		for _, d := range e.state.Select(func(d *state.Entry) bool { return !d.Request().IsJob() && d.At(site) }) {
			for part := range d.Parts() {
				a := d.Part(part)
				if a.PEs = e.finder.Unsuited(d, part); a.Resource.Site == site && !a.PEs.Empty() && !yield(d.ID(), a) {
					return
				}
			}
		}
	}
}

// ActiveTasks returns the ids of the reservations of tasks of workflows that have started at a site, in
// the order of acceptance. Cost: O(n) for n that are held or active.
func (e *Engine) ActiveTasks(site string) (ids []string) {
	for _, d := range e.state.Active(func(d *state.Entry) bool { return d.Request().Task != nil && d.At(site) }) {
		ids = append(ids, d.ID())
	}
	return ids
}

// Pending yields the requests that are not decided yet and then the jobs that wait,
// each in the order in which the next pass looks at them. Cost: that of a round.
func (e *Engine) Pending() iter.Seq[berth.Request] {
	return func(yield func(berth.Request) bool) {
		for p := range e.state.Round() {
			if !yield(*p.Request.Clone()) {
				return
			}
		}
		for j := range e.state.Backlog().Round(e.state.Now()) {
			if !yield(*j.Request().Clone()) {
				return
			}
		}
	}
}

// Load is how much of a resource is in use.
type Load struct {
	Resource berth.ResourceID
	PEs      berth.Count // its size
	Free     berth.Count // neither running nor out of use now
	Running  int         // parts that run
	Waiting  int         // parts promised for later
}

// Loads returns the load of every pool, in the order of the configuration. Cost:
// O(pools + what is held or active).
func (e *Engine) Loads() []Load {
	var loads []Load
	running, waiting := e.state.Loads()
	for _, site := range e.config.Sites {
		for _, pool := range site.Pools {
			id := berth.PoolID(site.Name, pool.Name)
			i, _ := e.state.Index(id)
			free, _ := e.state.View(i).Free(berth.Interval{Start: e.state.Now(), End: e.state.Now() + 1})
			loads = append(loads, Load{Resource: id, PEs: pool.PEs, Free: free, Running: running[i], Waiting: waiting[i]})
		}
	}
	return loads
}

// Live returns how many requests, jobs and reservations are live.
func (e *Engine) Live() int { return e.state.Live() }

// Outages yields what is out of use or announced to be, in the order in which the
// engine learned of it.
func (e *Engine) Outages() iter.Seq[berth.Outage] { return e.state.Outages() }

// Holder returns the id of the reservation that holds a PE of a pool at a time from
// now on. ok is false if the PE is free, or its holder has no PE numbers yet. Cost:
// O(live reservations).
func (e *Engine) Holder(resource berth.ResourceID, pe berth.PE, t berth.Time) (id string, ok bool) {
	e.state.Visit(func(d *state.Entry) {
		for part := range d.Parts() {
			a := d.Part(part)
			if a.Start <= t && t < a.End && a.Resource == resource && d.Holds(part) && a.PEs.Contains(pe) {
				id, ok = d.ID(), true
			}
		}
	})
	return id, ok
}

// Outbox returns the effects that are not settled, in order. The slice is the
// caller's.
func (e *Engine) Outbox() []change.Effect {
	var list []change.Effect
	for effect := range e.state.Outbox() {
		list = append(list, effect)
	}
	return list
}

// OutboxAfter returns the effects behind one of a number that are not settled, in order, the first ones up to a
// number of them. The slice is the caller's. Cost: O(log n + what is returned).
func (e *Engine) OutboxAfter(number uint64, most int) []change.Effect {
	return e.state.OutboxAfter(number, most)
}

// LastEffect returns the number of the last effect in the outbox, 0 if it is empty.
func (e *Engine) LastEffect() (number uint64) { return e.state.LastInOutbox() }

// Usage is what a user has that is not over.
type Usage struct {
	Open      int     // requests, jobs and reservations, pending ones included
	Live      int     // reservations
	Unused    int     // that went unused, where a limit counts them
	PESeconds int64   // of those, as promised
	Charged   Charges // to budgets, where there are any
	Month     Charges // likewise, of what starts in this month
	NextMonth berth.Time
	// FirstEnd is when the first of its reservations ends as promised, 0 without any, or without limits.
	FirstEnd berth.Time
	Pools    []PoolUse
}

// Charges are PE-seconds that are charged to a budget.
type Charges struct {
	All  int64 // with what is over
	Live int64 // that reservations have which are not over, as promised: less if they end early
}

// PoolUse is the most PEs of a pool that are promised at any one time.
type PoolUse struct {
	Resource berth.ResourceID
	PEs      berth.Count // of the pool; of a partition those that it has of it
	Peak     berth.Count
}

// Usage returns what a user has, with all pools in the order of the configuration. It
// is empty but for them if the configuration has no limits. Cost: O(n log n) for what the
// user has, for each pool.
func (e *Engine) Usage(user string) Usage { return e.usage(state.OfUser(user)) }

// Limited returns the accounts, QOS and partitions that have limits: first those that the table
// names, in its order; where each of them has some, then those accounts and QOS that have something which is
// not over, and all partitions.
func (e *Engine) Limited() (accounts, qualities, partitions []string) {
	list := func(named, others []string) []string {
		if !slices.Contains(named, policy.Every) {
			return named
		}
		for _, name := range others {
			if !slices.Contains(named, name) {
				named = append(named, name)
			}
		}
		return slices.DeleteFunc(named, func(name string) bool { return name == policy.Every })
	}
	limits := e.config.Limits
	return list(limits.Accounts(), e.state.Accounts()), list(limits.Qualities(), e.state.Qualities()), e.finder.LimitedPartitions()
}

// AccountUsage is Usage of an account that has limits of its own.
func (e *Engine) AccountUsage(account string) Usage { return e.usage(state.OfAccount(account)) }

// QOSUsage is Usage of a QOS that has limits of its own.
func (e *Engine) QOSUsage(qos string) Usage { return e.usage(state.OfQOS(qos)) }

// PartitionUsage is Usage of the partitions of a name that have limits of their own. What is
// pending has no partition yet, so that Open counts what is live. Pools are those that have it.
func (e *Engine) PartitionUsage(name string) Usage { return e.usage(state.OfPartition(name)) }

func (e *Engine) usage(of state.Holder) Usage {
	u := e.state.Usage(of)
	usage := Usage{Open: e.state.Open(of), Live: u.Reservations, Unused: len(e.state.Unused(of)), PESeconds: u.PESeconds}
	m := policy.MonthOf(e.state.Now())
	usage.NextMonth = (m + 1).Start()
	for _, d := range e.state.Owned(of) {
		if end := d.End(); !d.Request().IsJob() && (usage.FirstEnd == 0 || end < usage.FirstEnd) {
			usage.FirstEnd = end
		}
	}
	usage.Charged, usage.Month = e.charges(of, policy.Always), e.charges(of, m)
	for i := range e.config.Sites {
		site := &e.config.Sites[i]
		for k := range site.Pools {
			id, pes := berth.PoolID(site.Name, site.Pools[k].Name), site.Pools[k].PEs
			if name := of.Partition(); name != "" {
				p, has := site.PartitionOf(id.Name, name, false)
				if !has {
					continue
				}
				if !p.PEs.Empty() {
					pes = p.PEs.Count()
				}
			}
			usage.Pools = append(usage.Pools, PoolUse{Resource: id, PEs: pes, Peak: e.finder.Peak(of, id)})
		}
	}
	return usage
}

func (e *Engine) charges(of state.Holder, m policy.Month) Charges {
	return Charges{All: e.state.Charged(of, m), Live: e.state.Owed(of, m)}
}
