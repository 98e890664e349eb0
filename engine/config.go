package engine

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine/internal/jobs"
	"github.com/berth-hpc/berth/engine/internal/place"
	"github.com/berth-hpc/berth/engine/internal/state"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/policy"
)

// Config says what the engine schedules and how. It is plain data: policies
// go by their names in the tables of package policy.
type Config struct {
	Sites   []berth.Site  `json:"sites"`
	Order   string        `json:"order"`   // of policy.Queues; empty is the first
	Match   string        `json:"match"`   // of policy.Matches, or of policy.Batches; empty is the first
	Place   string        `json:"place"`   // of policy.Placements; empty is the first
	Choice  policy.Choice `json:"choice"`  // among the variants of a moldable part; empty is "earliest-finish"
	Horizon string        `json:"horizon"` // "capped" (the empty string) or "unbounded"
	// Options are those of the order. Without a Scale it is that of the Users.
	Options policy.OrderOptions `json:"order_options,omitzero"`
	// Users lists the users with their priorities. All others have the lowest
	// priority of those.
	Users []berth.User `json:"users,omitempty"`
	// Trigger says when requests and jobs are decided; empty is TriggerOnArrival where
	// the order is that of arrival, else TriggerOnInstant. Period is that of TriggerOnPeriod.
	Trigger Trigger        `json:"trigger,omitempty"`
	Period  berth.Duration `json:"period,omitempty"`
	// Seed of the random numbers that a match may draw.
	Seed uint64 `json:"seed"`
	// Eager is the admission filter of the waiting-time paper; nil admits
	// everything.
	Eager *policy.Eager `json:"eager,omitempty"`
	// Ahead bounds which share of the pools may be promised how far ahead; nil is first come, first served.
	Ahead policy.Ahead `json:"ahead,omitempty"`
	// Limits are those of users; requests without a user have none. The engine asks
	// those that concern what is promised.
	Limits policy.Limits `json:"limits,omitempty"`
	// Prices are what budgets are charged for PE-hours by place and QOS; nil charges them as they are.
	Prices policy.Prices `json:"prices,omitempty"`
	// Batch, if not nil, matches rather than what Match names: a matcher of one's own, in a simulation. It goes on no
	// record, so a service has none.
	Batch policy.Batch `json:"-"`
	// Unaware makes a batch matcher look at PEs alone, and not at what requests
	// require, as the ones do with which Tang and Liao compare theirs.
	Unaware bool `json:"unaware,omitempty"`
	// Staging says what becomes of PEs while the data of a request are moved.
	Staging Staging `json:"staging,omitempty"`
	// Uplink is how fast the centre from which all data come can send, in kB/s:
	// all transfers share it. 0 is no limit, as in the paper.
	Uplink int64 `json:"uplink,omitempty"`
	// Immediate says what becomes of a request that wants to start when it
	// arrives and finds no room.
	Immediate Immediate `json:"immediate,omitempty"`
	// Jobs names the pass that queues and starts ordinary jobs, of JobPasses;
	// empty is the first.
	Jobs string `json:"jobs,omitempty"`
	// Compress makes the conservative pass plan anew, in the order of the
	// queue, whenever PEs are released early.
	Compress bool `json:"compress,omitempty"`
	// Preempt makes running jobs yield to requests: those are decided as if no
	// job ran, and jobs may start where they will have to yield.
	Preempt bool `json:"preempt,omitempty"`
	// Overrun says what becomes of a reservation that does not finish by its
	// limit. Where it may go on, it does so for Extension at a time; 0 is a
	// minute.
	Overrun   Overrun        `json:"overrun,omitempty"`
	Extension berth.Duration `json:"extension,omitempty"`
	// Instant is the order of classes at one instant by name; nil is the
	// order of the constants. See ArrivalsFirst.
	Instant []string `json:"instant,omitempty"`
	// Calendar names the structure, of calendar.Forms; empty is the first.
	// It changes no decision.
	Calendar string `json:"calendar"`
	// PlainPasses makes the passes for jobs decide in their plain form where they have
	// a faster one, for comparison. It changes no decision.
	PlainPasses bool `json:"plain_passes,omitempty"`
	// Explain makes a refusal for want of capacity say how many PEs were to
	// be had. It costs a second search for every such refusal.
	Explain bool `json:"explain"`
}

// Immediate says what becomes of a request for now that finds no room (Ahuja et
// al. after GridSim: a request for an immediate reservation is queued at the
// resource; one for later is rejected).
type Immediate string

// The ways.
const (
	ImmediateRefuse Immediate = "refuse" // it is refused like any other; also the empty string
	ImmediateQueue  Immediate = "queue"  // it waits as an ordinary job, without a deadline
)

// The names of horizons.
const (
	HorizonCapped    = "capped"
	HorizonUnbounded = "unbounded"
)

// settings is a Config with its names resolved.
type settings struct {
	state   state.Config
	rules   place.Rules
	trigger Trigger
	batch   policy.Batch // nil if requests are decided one by one
	pass    jobs.Pass
	costs   bool // limits bound what a promise costs ordinary jobs
	// batchDraws are the random numbers of a batch matcher.
	batchDraws stream.Stream
}

// clone returns a copy that shares nothing with the configuration that is read after
// resolve.
func (c Config) clone() Config {
	c.Sites = slices.Clone(c.Sites)
	for i := range c.Sites {
		s := &c.Sites[i]
		s.Pools, s.Partitions, s.Software = slices.Clone(s.Pools), slices.Clone(s.Partitions), slices.Clone(s.Software)
	}
	c.Limits, c.Ahead, c.Prices = slices.Clone(c.Limits), slices.Clone(c.Ahead), slices.Clone(c.Prices)
	if c.Eager != nil {
		c.Eager = new(*c.Eager)
	}
	if c.Options.SD != nil {
		c.Options.SD = new(*c.Options.SD)
	}
	return c
}

func (c *Config) resolve() (settings, error) {
	s := settings{
		state: state.Config{
			Sites: c.Sites, Uplink: c.Uplink, Users: c.Users, Form: calendar.Forms[0],
			Limited: len(c.Limits) > 0 || len(c.Ahead) > 0, Everyone: len(c.Ahead) > 0, NoShows: c.Limits.Has(policy.LimitNoShow), Budgets: c.Limits.HasBudgets(), Prices: c.Prices,
			Accounts: c.Limits.Accounts(), Qualities: c.Limits.Qualities(), Partitions: c.Limits.Partitions(),
		},
		rules: place.Rules{
			Sites: c.Sites, Choice: policy.EarliestFinish, Explain: c.Explain, Eager: c.Eager, Ahead: c.Ahead, Limits: c.Limits, Prices: c.Prices, Preempt: c.Preempt,
			Draws: stream.New(c.Seed, "match"),
		},
	}
	var ok bool
	if s.batch = c.Batch; s.batch == nil {
		if s.rules.Match, ok = policy.MatchNamed(orDefault(c.Match, policy.Matches[0].Name)); !ok {
			row, known := policy.BatchNamed(c.Match)
			if !known {
				return s, berth.Errorf(berth.Invalid, "match", "unknown match %q; it is one of %q", c.Match, slices.Concat(
					namesOf(policy.Matches, func(m policy.NamedMatch) string { return m.Name }), namesOf(policy.Batches, func(b policy.NamedBatch) string { return b.Name })))
			}
			s.batch = row.New(policy.BatchOptions{Aware: !c.Unaware})
		}
	}
	if s.batch != nil { // jobs, and promises that lose their place, go where they end first
		s.rules.Match, s.batchDraws = policy.EarliestFinishMatch{}, stream.New(c.Seed, "batch")
	}
	if err := c.resolveOrder(&s); err != nil {
		return s, err
	}
	if s.costs = c.Limits.BoundCosts(); s.costs && s.trigger != TriggerOnArrival {
		return s, berth.Errorf(berth.Invalid, "limits", "%s or %s with trigger %q; what a promise costs is foreseen for each request when it comes, so want trigger %q, and an order and a match that gather nothing", policy.LimitDelay, policy.LimitIdle, s.trigger, TriggerOnArrival)
	}
	if c.Eager != nil {
		if err := c.Eager.Validate(); err != nil {
			return s, err
		}
	}
	if err := cmp.Or(c.Limits.Validate(), c.Ahead.Validate(), c.Prices.Validate()); err != nil {
		return s, err
	}
	if s.rules.Placement, ok = policy.PlacementNamed(orDefault(c.Place, policy.Placements[0].Name)); !ok {
		return s, berth.Errorf(berth.Invalid, "place", "unknown placement %q; it is one of %q", c.Place,
			namesOf(policy.Placements, func(p policy.NamedPlacement) string { return p.Name }))
	}
	if s.pass, ok = jobs.Named(orDefault(c.Jobs, jobs.Passes[0].Name)); !ok {
		return s, berth.Errorf(berth.Invalid, "jobs", "unknown pass %q; it is one of %q", c.Jobs, namesOf(jobs.Passes, func(p jobs.Pass) string { return p.Name }))
	}
	switch c.Staging {
	case StagingNone:
	case StagingBefore:
		s.rules.Staging = place.Before
	case StagingHold:
		s.rules.Staging = place.Hold
	default:
		return s, berth.Errorf(berth.Invalid, "staging", "unknown staging mode %q; it is one of %q", c.Staging, Stagings())
	}
	if c.Uplink < 0 || c.Uplink >= berth.MaxMegabytes {
		return s, berth.Errorf(berth.Invalid, "uplink", "%d kB/s; it must lie between 0, which is no limit, and 2^42", c.Uplink)
	}
	if c.Immediate != "" && c.Immediate != ImmediateRefuse && c.Immediate != ImmediateQueue {
		return s, berth.Errorf(berth.Invalid, "immediate", "unknown mode %q; it is %q or %q", c.Immediate, ImmediateRefuse, ImmediateQueue)
	}
	if c.Overrun != "" && !slices.Contains(Overruns(), c.Overrun) {
		return s, berth.Errorf(berth.Invalid, "overrun", "unknown mode %q; it is one of %q", c.Overrun, Overruns())
	}
	if c.Extension < 0 || c.Extension >= berth.TimeLimit {
		return s, berth.Errorf(berth.Invalid, "extension", "%d s; it must lie between 0 and 2^42", c.Extension)
	}
	var err error
	if s.state.Ranks, err = newRanks(c.Instant); err != nil {
		return s, err
	}
	if c.Calendar != "" {
		if s.state.Form, ok = calendar.FormNamed(c.Calendar); !ok {
			return s, berth.Errorf(berth.Invalid, "calendar", "unknown structure %q; it is one of %q", c.Calendar, namesOf(calendar.Forms, func(f calendar.Form) string { return f.Name }))
		}
	}
	if c.Choice != "" {
		if s.rules.Choice = c.Choice; !c.Choice.Valid() {
			return s, berth.Errorf(berth.Invalid, "choice", "unknown choice %q; it is one of %q", c.Choice, policy.Choices())
		}
	}
	switch c.Horizon {
	case "", HorizonCapped:
	case HorizonUnbounded:
		s.rules.Horizon = calendar.Unbounded
	default:
		return s, berth.Errorf(berth.Invalid, "horizon", "unknown horizon %q; it is %q or %q",
			c.Horizon, HorizonCapped, HorizonUnbounded)
	}
	if err := c.checkSites(); err != nil {
		return s, err
	}
	s.state.Plans = s.pass.Plans
	s.state.Flat = s.pass.Flat && !c.PlainPasses && !c.Preempt && s.state.Order.Key != nil && len(c.Sites) == 1 && len(c.Sites[0].Pools) == 1 && c.Sites[0].Pools[0].Binding == berth.Late &&
		c.Sites[0].Pools[0].Node.AcceleratorSpeed == 0
	return s, nil
}

// resolveOrder resolves what concerns the order of decisions.
func (c *Config) resolveOrder(s *settings) error {
	var ok bool
	if s.state.Order, ok = policy.QueueNamed(orDefault(c.Order, policy.Queues[0].Name)); !ok {
		return berth.Errorf(berth.Invalid, "order", "unknown order %q; it is one of %q", c.Order, namesOf(policy.Queues, func(q policy.NamedQueue) string { return q.Name }))
	}
	seen := map[string]bool{}
	for _, user := range c.Users {
		switch {
		case seen[user.ID]:
			return berth.Errorf(berth.Invalid, "users", "user %q is given twice; give each user once", user.ID)
		case user.Priority < -policy.MaxPriority || user.Priority > policy.MaxPriority:
			return berth.Errorf(berth.Invalid, "priority", "%d of user %q; it must lie within ±%d", user.Priority, user.ID, policy.MaxPriority)
		}
		seen[user.ID] = true
	}
	if s.state.Options = c.Options; s.state.Options.Scale == 0 {
		s.state.Options.Scale = policy.ScaleOf(c.Users)
	}
	if err := s.state.Options.Validate(); err != nil {
		return err
	}
	s.trigger = c.Trigger
	switch {
	case s.trigger == "" && (s.state.Order.Gathers || s.batch != nil):
		s.trigger = TriggerOnInstant
	case s.trigger == "":
		s.trigger = TriggerOnArrival
	case !slices.Contains(Triggers(), s.trigger):
		return berth.Errorf(berth.Invalid, "trigger", "unknown trigger %q; it is one of %q", s.trigger, Triggers())
	}
	switch periodic := s.trigger == TriggerOnPeriod; {
	case periodic && (c.Period < 1 || c.Period >= berth.TimeLimit):
		return berth.Errorf(berth.Invalid, "period", "%d s; it must lie between 1 and 2^42", c.Period)
	case !periodic && c.Period != 0:
		return berth.Errorf(berth.Invalid, "period", "%d s; only the trigger %q has one", c.Period, TriggerOnPeriod)
	}
	return nil
}

func (c *Config) checkSites() error {
	if len(c.Sites) == 0 {
		return berth.Errorf(berth.Invalid, "sites", "missing; give at least one site")
	}
	seen := map[berth.ResourceID]bool{}
	for _, site := range c.Sites {
		if site.Name == "" || len(site.Pools) == 0 {
			return berth.Errorf(berth.Invalid, "sites", "site %q needs a name and at least one pool", site.Name)
		}
		for _, pool := range site.Pools {
			id := berth.PoolID(site.Name, pool.Name)
			switch {
			case seen[id]:
				return berth.Errorf(berth.Invalid, "sites", "pool %q of site %q is given twice; a name must be unique", pool.Name, site.Name)
			case pool.PEs < 1 || pool.PEs > berth.MaxPEs:
				return berth.Errorf(berth.Invalid, "pes", "pool %q of site %q has %d PEs; must be 1 to %d",
					pool.Name, site.Name, pool.PEs, berth.MaxPEs)
			case pool.Speed < 0 || pool.Node.AcceleratorSpeed < 0:
				return berth.Errorf(berth.Invalid, "speed", "pool %q of site %q has speed %d, its accelerators %d; it must be above 0",
					pool.Name, site.Name, pool.Speed, pool.Node.AcceleratorSpeed)
			case pool.Binding != berth.Early && pool.Binding != berth.Late:
				return berth.Errorf(berth.Invalid, "binding", "pool %q of site %q has binding %q; it is %q or %q",
					pool.Name, site.Name, pool.Binding, berth.Early, berth.Late)
			case pool.NameAhead < 0 || pool.NameAhead >= berth.TimeLimit || pool.NameAhead > 0 && pool.Binding != berth.Late:
				return berth.Errorf(berth.Invalid, "name_ahead", "%d s of pool %q of site %q, which binds %s; PEs are named ahead in pools that bind late, up to 2^42 s before the start",
					pool.NameAhead, pool.Name, site.Name, pool.Binding)
			}
			seen[id] = true
		}
		if err := checkSite(&site); err != nil {
			return err
		}
	}
	return nil
}

// checkSite checks what a site has beside its pools.
func checkSite(s *berth.Site) error {
	switch {
	case s.StorageMB < 0 || s.StorageMB >= berth.MaxMegabytes:
		return berth.Errorf(berth.Invalid, "storage_mb", "%d MB at site %q; it must lie between 0, which is no limit, and 2^42", s.StorageMB, s.Name)
	case s.Link.KilobytesPerSecond < 0 || s.Link.KilobytesPerSecond >= berth.MaxMegabytes:
		return berth.Errorf(berth.Invalid, "kb_per_second", "%d on the link of site %q; it must lie between 0, which is unknown, and 2^42", s.Link.KilobytesPerSecond, s.Name)
	case s.Link.DelayMS < 0 || s.Link.DelayMS >= berth.TimeLimit:
		return berth.Errorf(berth.Invalid, "delay_ms", "%d on the link of site %q; it must lie between 0 and 2^42", s.Link.DelayMS, s.Name)
	}
	for _, program := range s.Software {
		if program.Licences < 0 || program.Licences > berth.MaxLicences {
			return berth.Errorf(berth.Invalid, "licences", "%d of %s at site %q; it must lie between 0, which is no limit, and %d", program.Licences, program.Name, s.Name, berth.MaxLicences)
		}
	}
	for i := range s.Pools {
		if err := s.Pools[i].CheckClasses(); err != nil {
			return err
		}
	}
	assumed := ""
	for _, part := range s.Partitions {
		if part.Default && assumed == "" {
			assumed = part.Name
		}
		i := slices.IndexFunc(s.Pools, func(p berth.Pool) bool { return p.Name == part.Pool })
		switch {
		case part.Default && part.Name != assumed:
			return berth.Errorf(berth.Invalid, "partitions", "%q and %q of site %q are both the default; one of them can be", assumed, part.Name, s.Name)
		case i < 0:
			return berth.Errorf(berth.Invalid, "partitions", "%q is of pool %q; site %q has no such pool", part.Name, part.Pool, s.Name)
		case !part.PEs.Empty() && part.PEs.Max() >= berth.PE(s.Pools[i].PEs):
			return berth.Errorf(berth.Invalid, "partitions", "%q has PEs %v; pool %q has PEs 0 to %d", part.Name, part.PEs, part.Pool, s.Pools[i].PEs-1)
		case part.MaxNPE < 0 || part.MaxDuration < 0:
			return berth.Errorf(berth.Invalid, "partitions", "%q takes up to %d PEs for %d s; both must be 0, which is no limit, or above", part.Name, part.MaxNPE, part.MaxDuration)
		}
	}
	return nil
}

// namesOf returns the names of the rows of a table, in their order.
func namesOf[R any](table []R, name func(R) string) []string {
	names := make([]string, len(table))
	for i, row := range table {
		names[i] = name(row)
	}
	return names
}

func orDefault(name, fallback string) string {
	if name == "" {
		return fallback
	}
	return name
}

// JobPass is a row of the table of passes for ordinary jobs. A pass runs when a job
// arrives and when PEs are given back. It starts jobs beside the promises and the
// running jobs and never delays a promise: a job starts only if it fits until its limit,
// where it is ended.
type JobPass struct {
	Name  string
	About string
}

// JobPasses lists the passes for ordinary jobs; the first is the default.
func JobPasses() []JobPass {
	list := make([]JobPass, len(jobs.Passes))
	for i, row := range jobs.Passes {
		list[i] = JobPass{row.Name, row.About}
	}
	return list
}
