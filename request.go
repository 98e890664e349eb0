package berth

import (
	"slices"
	"strings"
)

// Binding says when a pool's reservations get their PE numbers.
type Binding string

// The two bindings.
const (
	Early Binding = "early" // when accepted: the promise names PEs
	Late  Binding = "late"  // at the start: the promise is a count
)

// Variant is one shape a part may take: NPE PEs for Duration seconds.
type Variant struct {
	NPE      Count    `json:"npe"`
	Duration Duration `json:"duration"`
}

// Area returns the variant's PE-seconds.
func (v Variant) Area() int64 { return Area(v.NPE, v.Duration) }

// Part is one block of PEs of a request. A rigid part has one variant, a
// moldable part several; exactly one is booked.
type Part struct {
	Variants []Variant `json:"variants"`
	// Eligible restricts a part to these PEs of its pool; empty means all.
	// It needs a pool of early binding.
	Eligible PESet `json:"eligible,omitzero"`
	// Constraint is of this part alone, beside that of the request: two parts ask for
	// some PEs of one class and some of another.
	Constraint string `json:"constraint,omitempty"`
	// Only, if given, are the only PEs that will do, by pool: those of pools that it does not
	// name will not. Never are PEs that will not do. Both need pools of early binding, each
	// named once.
	Only  []PoolPEs `json:"only,omitempty"`
	Never []PoolPEs `json:"never,omitempty"`
	// NodeNames are of this part alone, beside those of the request.
	NodeNames
}

// PoolPEs are PEs of one pool.
type PoolPEs struct {
	Resource ResourceID `json:"resource"`
	PEs      PESet      `json:"pes"`
}

// NodeNames are lists of nodes as package hostlist reads them, such as n[01-03,07]. The
// engine knows no nodes: what they mean stands in Only and Never of each part.
type NodeNames struct {
	Nodelist string `json:"nodelist,omitempty"` // only these nodes will do
	Exclude  string `json:"exclude,omitempty"`  // these will not
}

// Allowed returns the PEs of a pool that a part may use by their numbers; some is false if
// it may use all of them. Cost: O(runs of the sets).
func (p *Part) Allowed(pool ResourceID) (set PESet, some bool) {
	set, some = p.Eligible, !p.Eligible.Empty()
	if len(p.Only) > 0 {
		only := of(p.Only, pool)
		if some {
			only = only.And(set)
		}
		set, some = only, true
	}
	if never := of(p.Never, pool); !never.Empty() {
		if !some {
			set, some = NewPESet(Run{Hi: MaxPEs}), true
		}
		set = set.Minus(never)
	}
	return set, some
}

// of returns the PEs of a pool in a list of pools.
func of(list []PoolPEs, pool ResourceID) PESet {
	for i := range list {
		if list[i].Resource == pool {
			return list[i].PEs
		}
	}
	return PESet{}
}

// Requirements say what a place must offer beside PEs. The zero value requires
// nothing, and so does each zero field. Megabytes are 10^6 bytes.
type Requirements struct {
	Software string `json:"software,omitempty"` // by name, as in Software
	// Version is the least version of the software that will do, as ValidVersion
	// has it, and Licences is how many of its licences the request takes; both
	// need Software.
	Version  string `json:"version,omitempty"`
	Licences Count  `json:"licences,omitempty"`
	MemoryMB int64  `json:"memory_mb,omitempty"` // of one PE
	// StorageMB is the size of the request's data: what must be moved to the
	// site, and find room there.
	StorageMB    int64  `json:"storage_mb,omitempty"`
	Accelerators int    `json:"accelerators,omitempty"` // of one PE
	Partition    string `json:"partition,omitempty"`    // by name, as in Partition
	// Constraint is features that each PE has, as ParseConstraint reads it.
	Constraint string `json:"constraint,omitempty"`
}

// MaxMegabytes bounds every size in megabytes (exclusive).
const MaxMegabytes = 1 << 42

// MaxLicences bounds the licences of one software, and of one request.
const MaxLicences = 1 << 30

// MaxAccelerators bounds the accelerators of one PE.
const MaxAccelerators = 1 << 20

// RequiresNothing reports whether nothing is required.
func (r *Requirements) RequiresNothing() bool {
	return r.Software == "" && r.Version == "" && r.Licences == 0 && r.MemoryMB == 0 && r.StorageMB == 0 && r.Accelerators == 0 && r.Partition == "" && r.Constraint == ""
}

func (r *Requirements) validate() error {
	switch {
	case r.Version != "" && r.Software == "":
		return Errorf(Invalid, "version", "%q of no software; name the software too", r.Version)
	case r.Version != "" && !ValidVersion(r.Version):
		return Errorf(Invalid, "version", "%q; want %s", r.Version, WantVersion)
	case r.Licences != 0 && r.Software == "":
		return Errorf(Invalid, "licences", "%d for no software; name the software too", r.Licences)
	case r.Licences < 0 || r.Licences > MaxLicences:
		return Errorf(Invalid, "licences", "%d; a request takes 0 to %d", r.Licences, MaxLicences)
	case r.MemoryMB < 0 || r.MemoryMB >= MaxMegabytes:
		return Errorf(Invalid, "memory_mb", "%d; want 0 or more, and less than 2^42", r.MemoryMB)
	case r.StorageMB < 0 || r.StorageMB >= MaxMegabytes:
		return Errorf(Invalid, "storage_mb", "%d; want 0 or more, and less than 2^42", r.StorageMB)
	case r.Accelerators < 0 || r.Accelerators > MaxAccelerators:
		return Errorf(Invalid, "accelerators", "%d; a PE has 0 to %d", r.Accelerators, MaxAccelerators)
	}
	return validConstraint(r.Constraint)
}

func validConstraint(text string) error {
	if text == "" {
		return nil
	}
	_, err := ParseConstraint(text)
	return err
}

// Sharing says in which account and QOS a request is, and who beside its user may run in it. The
// zero value is a request of its user alone, in whatever account and QOS they run.
type Sharing struct {
	Account string `json:"account,omitempty"` // of the site; only jobs in it may run
	QOS     string `json:"qos,omitempty"`     // of the site, its quality of service; with it jobs are handed in
	// Users may run in it beside the request's own user. EveryUser alone, which needs an
	// account, lets everybody run who may run in that.
	Users []string `json:"users,omitempty"`
	// Group is one of the site's, whose members may run in it; the user has to be one of
	// them. It excludes Users.
	Group string `json:"group,omitempty"`
}

// EveryUser stands in Sharing.Users for all users of the account.
const EveryUser = "*"

// Alone reports whether a request is of its user alone, and names no account and no QOS.
func (s *Sharing) Alone() bool {
	return s.Account == "" && s.QOS == "" && len(s.Users) == 0 && s.Group == ""
}

func (s *Sharing) validate() error {
	every := slices.Contains(s.Users, EveryUser)
	switch {
	case every && s.Account == "":
		return Errorf(Invalid, "users", "%q of no account; name the account too, or the users", EveryUser)
	case every && len(s.Users) > 1:
		return Errorf(Invalid, "users", "%q beside others; it stands for all of them", EveryUser)
	case s.Group != "" && len(s.Users) > 0:
		return Errorf(Invalid, "group", "%q beside users; a site takes one of the two", s.Group)
	case len(s.Users) > MaxUsers:
		return Errorf(Invalid, "users", "%d users; want at most %d, or a group", len(s.Users), MaxUsers)
	}
	return nil
}

// MaxUsers bounds who may run in one promise beside its user.
const MaxUsers = 100

// MaxName bounds the letters of the name of a request.
const MaxName = 64

// WantName says which names ValidName takes.
const WantName = "want 1 to 64 letters, digits, dashes, underscores and points, beginning with a letter"

// ValidName reports whether a request may be named so: 1 to MaxName ASCII letters, digits,
// dashes, underscores and points, the first a letter. So no name looks like an id of the service's own.
func ValidName(name string) bool {
	if name == "" || len(name) > MaxName {
		return false
	}
	for i := range len(name) {
		b := name[i]
		letter := b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789-_.", rune(b))) {
			return false
		}
	}
	return true
}

// Request asks for PEs within a window: every part must run inside
// [Ready, Deadline), and all parts start together. The requirements hold for
// each part; licences and storage are taken once.
//
// A request of kind job is an ordinary job: it gets no promise but waits in a
// queue until it can run. It has one part of one variant, whose duration is the
// user's estimate, is ready when it arrives, and may do without a deadline
// (Forever). Its deadline is a waiting limit: what could not start in time is
// dropped.
type Request struct {
	ID       string `json:"id"`
	Name     string `json:"name,omitempty"` // its user's own, as ValidName has it; others may have the same
	Kind     Kind   `json:"kind,omitempty"` // KindRequest, which may be left out, or KindJob
	User     string `json:"user,omitempty"`
	Arrival  Time   `json:"arrival"`
	Ready    Time   `json:"ready"`
	Deadline Time   `json:"deadline"`
	Parts    []Part `json:"parts"`
	// Site and Pool, if given, are the only place that will do.
	Site string `json:"site,omitempty"`
	Pool string `json:"pool,omitempty"`
	// Sites, if given, are the only sites that will do.
	Sites []string `json:"sites,omitempty"`
	// Owner is the user to whose limits it counts too: the owner of the service account that User is; empty if User is none.
	Owner string `json:"owner,omitempty"`
	// Role is that of who asks, by which limits are chosen; empty if it is not known.
	Role string `json:"role,omitempty"`
	// Hold asks for a promise that is only held, and expires so long after the
	// decision unless it is confirmed; 0 asks for a confirmed one.
	Hold Duration `json:"hold,omitempty"`
	// NoShow is how long after its start an unused promise is given up; 0 keeps
	// it.
	NoShow Duration `json:"no_show,omitempty"`
	// Task says which workflow this is a task of; nil for a request by itself.
	Task *TaskRef `json:"task,omitempty"`
	// Series says which series this is an occurrence of; nil for a request by itself.
	Series *SeriesRef `json:"series,omitempty"`
	Requirements
	Sharing
	NodeNames
}

// Job returns an ordinary job without an owner and without a deadline.
func Job(id string, arrival Time, npe Count, estimate Duration) Request {
	r := Rigid(id, arrival, arrival, Forever, npe, estimate)
	r.Kind = KindJob
	return r
}

// Rigid returns a request of one part and one variant without an owner.
func Rigid(id string, arrival, ready, deadline Time, npe Count, duration Duration) Request {
	return Request{
		ID: id, Arrival: arrival, Ready: ready, Deadline: deadline,
		Parts: []Part{{Variants: []Variant{{NPE: npe, Duration: duration}}}},
	}
}

// Plain is in short a request without variants that requires nothing beside PEs and
// time, or an ordinary job: what most records of a log become.
type Plain struct {
	ID                       string
	User                     string
	Arrival, Ready, Deadline Time
	Duration                 Duration
	NPE                      Count
	Job                      bool // of kind job
}

// Request returns the request in full. Cost: one allocation.
func (p *Plain) Request() *Request {
	r := &struct {
		Request
		part    [1]Part
		variant [1]Variant
	}{}
	r.Parts, r.part[0].Variants = r.part[:], r.variant[:]
	p.Fill(&r.Request)
	return &r.Request
}

// Fill makes the request in the memory of one that Plain.Request returned, and
// replaces that one.
func (p *Plain) Fill(r *Request) {
	r.ID, r.Kind, r.User, r.Arrival, r.Ready, r.Deadline = p.ID, "", p.User, p.Arrival, p.Ready, p.Deadline
	if p.Job {
		r.Kind = KindJob
	}
	r.Parts[0].Variants[0] = Variant{NPE: p.NPE, Duration: p.Duration}
}

// Clone returns a copy that shares no memory with the request, except PE sets,
// which are immutable. Cost: one allocation for a request of one part and one
// variant, else one for each part and one for its variants, and one for a task of a workflow
// or an occurrence of a series.
func (r *Request) Clone() *Request {
	c := &struct {
		Request
		part    [1]Part
		variant [1]Variant
	}{Request: *r}
	if r.Task != nil {
		task := *r.Task
		c.Task = &task
	}
	if r.Series != nil {
		series := *r.Series
		c.Series = &series
	}
	c.Sites, c.Users = slices.Clone(r.Sites), slices.Clone(r.Users)
	c.Parts = append(c.part[:0], r.Parts...)
	for i := range c.Parts {
		variants := []Variant(nil)
		if i == 0 {
			variants = c.variant[:0]
		}
		c.Parts[i].Variants = append(variants, r.Parts[i].Variants...)
		c.Parts[i].Only, c.Parts[i].Never = slices.Clone(r.Parts[i].Only), slices.Clone(r.Parts[i].Never)
	}
	return &c.Request
}

// Validate reports the first field that cannot be right, as an *Error with
// code Invalid. Whether a valid request can be served is another question: its
// duration may exceed its window, since durations are for PEs of standard speed.
func (r *Request) Validate() error {
	switch {
	case r.ID == "":
		return Errorf(Invalid, "id", "missing; every request needs one")
	case r.Name != "" && !ValidName(r.Name):
		return Errorf(Invalid, "name", "%.80q; %s", r.Name, WantName)
	case !r.Arrival.Valid():
		return Errorf(Invalid, "arrival", "%d is beyond ±2^42 s", r.Arrival)
	case !r.Ready.Valid():
		return Errorf(Invalid, "ready", "%d is beyond ±2^42 s", r.Ready)
	case r.Kind != "" && r.Kind != KindRequest && r.Kind != KindJob:
		return Errorf(Invalid, "kind", "%q; it is %q or %q", r.Kind, KindRequest, KindJob)
	case !r.Deadline.Valid() && (!r.IsJob() || r.Deadline != Forever):
		return Errorf(Invalid, "deadline", "%d is beyond ±2^42 s", r.Deadline)
	case r.Ready < r.Arrival:
		return Errorf(Invalid, "ready", "%d is before the arrival %d", r.Ready, r.Arrival)
	case r.Owner != "" && r.Owner == r.User:
		return Errorf(Invalid, "owner", "%.80q is the user too; want the owner of a service account, or none", r.Owner)
	case len(r.Parts) == 0:
		return Errorf(Invalid, "parts", "missing; a request needs at least one part")
	case r.IsJob() && (len(r.Parts) > 1 || len(r.Parts[0].Variants) > 1):
		return Errorf(Invalid, "parts", "several parts or variants; a job has one of each")
	case r.Hold < 0 || r.Hold >= TimeLimit:
		return Errorf(Invalid, "hold", "%d s; it must lie between 0 and 2^42", r.Hold)
	case r.NoShow < 0 || r.NoShow >= TimeLimit:
		return Errorf(Invalid, "no_show", "%d s; it must lie between 0 and 2^42", r.NoShow)
	case r.IsJob() && (r.Hold != 0 || r.NoShow != 0):
		return Errorf(Invalid, "hold", "%d s, no show %d s; a job gets no promise that could be held or given up", r.Hold, r.NoShow)
	case r.IsJob() && r.Ready != r.Arrival:
		return Errorf(Invalid, "ready", "%d; a job is ready when it arrives, at %d", r.Ready, r.Arrival)
	}
	for i := range r.Parts {
		if err := r.Parts[i].validate(); err != nil {
			return err
		}
	}
	if r.Deadline <= r.Ready {
		return Errorf(Invalid, "deadline", "%d is not after the ready time %d", r.Deadline, r.Ready)
	}
	if err := r.Sharing.validate(); err != nil {
		return err
	}
	needs := &r.Requirements
	return needs.validate()
}

func (p *Part) validate() error {
	if len(p.Variants) == 0 {
		return Errorf(Invalid, "variants", "missing; a part needs at least one size and duration")
	}
	for _, v := range p.Variants {
		switch {
		case v.NPE < 1:
			return Errorf(Invalid, "npe", "%d; a request needs at least 1 PE", v.NPE)
		case v.NPE > MaxPEs:
			return Errorf(Invalid, "npe", "%d is more than the limit of %d", v.NPE, MaxPEs)
		case v.Duration < 1:
			return Errorf(Invalid, "duration", "%d; a request needs at least 1 s", v.Duration)
		case v.Duration >= TimeLimit:
			return Errorf(Invalid, "duration", "%d is beyond 2^42 s", v.Duration)
		}
	}
	if err := validPools("only", p.Only); err != nil {
		return err
	}
	if err := validPools("never", p.Never); err != nil {
		return err
	}
	return validConstraint(p.Constraint)
}

func validPools(field string, pools []PoolPEs) error {
	for i := range pools {
		pool := &pools[i]
		again := slices.ContainsFunc(pools[:i], func(other PoolPEs) bool { return other.Resource == pool.Resource })
		if pool.PEs.Empty() || again {
			return Errorf(Invalid, field, "%q of pool %s of %s; want some PEs, and each pool once", pool.PEs, pool.Resource.Name, pool.Resource.Site)
		}
	}
	return nil
}

// IsJob reports whether the request is an ordinary job.
func (r *Request) IsJob() bool { return r.Kind == KindJob }

// Window returns [Ready, Deadline).
func (r *Request) Window() Interval { return Interval{Start: r.Ready, End: r.Deadline} }
