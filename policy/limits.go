package policy

import (
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
)

// LimitName names something that is limited.
type LimitName string

// What is limited. The engine asks those up to Idle when it decides; the others
// concern how a service is asked, and mean nothing to it.
const (
	LimitLead         LimitName = "lead"
	LimitLength       LimitName = "length"
	LimitHold         LimitName = "hold"
	LimitActive       LimitName = "active"
	LimitReservations LimitName = "reservations"
	LimitShare        LimitName = "share"
	LimitPESeconds    LimitName = "pe_hours"
	LimitBudget       LimitName = "budget"
	LimitMonthBudget  LimitName = "month_budget"
	LimitNoShow       LimitName = "no_show"
	LimitDelay        LimitName = "delay"
	LimitIdle         LimitName = "idle"
	LimitAhead        LimitName = "ahead" // of Ahead: it is in no table of limits
	LimitRate         LimitName = "rate"
	LimitBurst        LimitName = "burst"
	LimitStreams      LimitName = "streams"
	LimitRequest      LimitName = "request_bytes"
	LimitRemembered   LimitName = "remembered_bytes"
)

// Unit says what the value of a limit counts.
type Unit string

// The units. A file and the API show them in the form that people write.
const (
	InSeconds   Unit = "seconds"
	InCount     Unit = "count"
	InPermille  Unit = "share"    // thousandths
	InPESeconds Unit = "pe-hours" // kept as PE-seconds
	InRate      Unit = "rate"     // thousandths a second
	InBytes     Unit = "bytes"
)

// LimitKind is a row of the table of what is limited.
type LimitKind struct {
	Name  LimitName
	Unit  Unit
	About string
}

// LimitKinds lists what is limited, in the order in which it is asked.
var LimitKinds = []LimitKind{
	{LimitHold, InSeconds, "for how long a reservation may be held"},
	{LimitLead, InSeconds, "how far ahead of now a reservation may start"},
	{LimitReservations, InCount, "how many requests, jobs and reservations a user may have that are not over, pending ones included"},
	{LimitActive, InCount, "how many live reservations a user may have, held ones included"},
	{LimitNoShow, InCount, "how many reservations of a user may have gone unused in the last 30 days; with more than that there is no further one"},
	{LimitLength, InSeconds, "the longest reservation or job, as long as it lasts at its pool"},
	{LimitShare, InPermille, "which part of the PEs of each pool may be promised to a user at any one time; rounded up to a PE"},
	{LimitPESeconds, InPESeconds, "how many PE-hours the live reservations of a user may come to, as promised"},
	{LimitBudget, InPESeconds, "how many PE-hours a user may be charged for in all: those of live reservations as promised, and of those that are over as charged"},
	{LimitMonthBudget, InPESeconds, "how many PE-hours a user may be charged for reservations that start in the same month, in UTC"},
	{LimitDelay, InSeconds, "by how much a reservation may delay any ordinary job, as foreseen from the jobs that wait"},
	{LimitIdle, InPESeconds, "how many PE-hours that ordinary jobs would use a reservation may leave idle in front of it, as foreseen from the jobs that wait"},
	{LimitRate, InRate, "how many requests a second a user may make in the long run; a costly one counts as several"},
	{LimitBurst, InCount, "how many of them at once"},
	{LimitStreams, InCount, "how many streams of events a user may listen to at once"},
	{LimitRequest, InBytes, "the largest body of a request"},
	{LimitRemembered, InBytes, "how much a user's idempotency keys of a day may take, with their answers"},
}

// LimitNamed returns the row of a name.
func LimitNamed(name LimitName) (LimitKind, bool) {
	for _, k := range LimitKinds {
		if k.Name == name {
			return k, true
		}
	}
	return LimitKind{}, false
}

// RoleUser is the role of those whose role is not known, as in a simulation.
const RoleUser = "user"

// NoShowWindow is over how long LimitNoShow counts.
const NoShowWindow berth.Duration = 30 * 86_400

// Every stands in a scope for each account, each QOS or each partition, by itself.
const Every = "*"

// Scope says for whom a limit counts. At most one of User, Account, QOS and Partition is given.
// Without the last three it is about users, and what is limited is counted for
// each user by themselves. That of an account, a QOS or a partition is about all that is promised
// in it together, to all users; with Every it is about each of them by itself. An empty role is every role.
type Scope struct {
	Role      string `json:"role,omitempty"`      // of who asks
	User      string `json:"user,omitempty"`      // in whose name
	Account   string `json:"account,omitempty"`   // that the request names
	QOS       string `json:"qos,omitempty"`       // that the request names
	Partition string `json:"partition,omitempty"` // that takes the request in its pool
}

// Covers returns how narrow a scope is that counts for a user, an account, a QOS or a partition
// asked about by a role: one with a name is narrower than a role's, and everyone's is 1, as is Every. It is 0
// if the scope does not count for them.
func (s Scope) Covers(of Scope) int {
	if s.Role != "" && s.Role != of.Role || s.User != "" && s.User != of.User ||
		!about(s.Account, of.Account) || !about(s.QOS, of.QOS) || !about(s.Partition, of.Partition) {
		return 0
	}
	named := s.User != "" || s.Account != "" && s.Account != Every || s.QOS != "" && s.QOS != Every || s.Partition != "" && s.Partition != Every
	n := 1
	if named {
		n += 2
	}
	if s.Role != "" {
		n++
	}
	return n
}

// about reports whether a row with a name, or without one, is about a name, or about none.
func about(row, of string) bool { return row == of || row == Every && of != "" }

// Takes reports whether a limit may have this scope: how the service is asked is limited for
// users alone, what is pending has no partition yet, and it is who asks that does not come.
func (s Scope) Takes(name LimitName) bool {
	switch name {
	case LimitRate, LimitBurst, LimitStreams, LimitRequest, LimitRemembered:
		return s.Account == "" && s.QOS == "" && s.Partition == ""
	case LimitReservations, LimitNoShow:
		return s.Partition == ""
	}
	return true
}

// NoLimit is the value of a limit that a row takes away.
const NoLimit int64 = -1

// Limit is a row of a table of limits: Value is in the unit of the name, or NoLimit.
type Limit struct {
	Scope
	Name  LimitName `json:"limit"`
	Value int64     `json:"value"`
}

// Limits is a table of limits, for all of it in one place. Of the rows of a name that
// cover a user the one of the narrowest scope counts, of equals the last; so it is for an
// account, a QOS and a partition. A request keeps to what is allowed to all of them: none
// widens what another one limits. What no row covers has no limit. The zero value limits
// nothing.
type Limits []Limit

// Of returns what is allowed to a user who is asked for by a role; an empty role is
// RoleUser. Cost: O(rows).
func (l Limits) Of(role, user string) Allowance { return l.For(Scope{Role: role, User: user}) }

// For returns what is allowed to a user, an account, a QOS or a partition that is asked about by
// a role, RoleUser if that is empty. Cost: O(rows).
func (l Limits) For(of Scope) Allowance {
	if of.Role == "" {
		of.Role = RoleUser
	}
	var a Allowance
	if len(l) == 0 {
		return a
	}
	var rank [numLimits]int
	for i := range l {
		row := &l[i]
		at, known := limitIndex(row.Name)
		if !known {
			continue
		}
		if r := row.Covers(of); r > 0 && r >= rank[at] {
			rank[at] = r
			if a.values[at] = row.Value + 1; row.Value == NoLimit {
				a.values[at] = 0
			}
		}
	}
	return a
}

// LimitIndex is the place of a limit in LimitKinds. An admission asks for some ten limits of each holder: by these, no name is looked for.
type LimitIndex uint8

// The places of the limits.
const (
	ByHold LimitIndex = iota
	ByLead
	ByReservations
	ByActive
	ByNoShow
	ByLength
	ByShare
	ByPESeconds
	ByBudget
	ByMonthBudget
	ByDelay
	ByIdle
	ByRate
	ByBurst
	ByStreams
	ByRequest
	ByRemembered
	numLimits
)

// limitIndex returns the place of a limit in LimitKinds; known is false if there is no such limit.
func limitIndex(name LimitName) (at LimitIndex, known bool) {
	for i := range LimitKinds {
		if LimitKinds[i].Name == name {
			return LimitIndex(i), true
		}
	}
	return 0, false
}

// Validate reports a row that cannot be right, as an *berth.Error of code Invalid.
func (l Limits) Validate() error {
	for i := range l {
		row := &l[i]
		kind, known := LimitNamed(row.Name)
		switch {
		case !known:
			return berth.Errorf(berth.Invalid, "limits", "unknown limit %q; it is one of %q", row.Name, limitNames())
		case row.Value == NoLimit:
		case row.Value < 0 || row.Value >= berth.TimeLimit:
			return berth.Errorf(berth.Invalid, "limits", "%s is %d; want 0 or more, and less than 2^42", row.Name, row.Value)
		case kind.Unit == InPermille && row.Value > 1000:
			return berth.Errorf(berth.Invalid, "limits", "%s is %d thousandths; want 0 to 1000", row.Name, row.Value)
		}
		switch s := row.Scope; {
		case known && !s.Takes(row.Name) && s.Partition != "":
			return berth.Errorf(berth.Invalid, "limits", "%s of partition %q; limit it for a role, a user or, if it is %s or %s, an account or a QOS", row.Name, s.Partition, LimitReservations, LimitNoShow)
		case known && !s.Takes(row.Name):
			return berth.Errorf(berth.Invalid, "limits", "%s of account %q or QOS %q; limit it for a role or a user", row.Name, s.Account, s.QOS)
		case s.names() > 1:
			return berth.Errorf(berth.Invalid, "limits", "%s of user %q, account %q, QOS %q and partition %q; name one of them", row.Name, s.User, s.Account, s.QOS, s.Partition)
		}
	}
	return nil
}

// names returns how many of a user, an account, a QOS and a partition a scope has.
func (s Scope) names() (n int) {
	for _, name := range [...]string{s.User, s.Account, s.QOS, s.Partition} {
		if name != "" {
			n++
		}
	}
	return n
}

// Has reports whether some row is about a limit.
func (l Limits) Has(name LimitName) bool {
	return slices.ContainsFunc(l, func(row Limit) bool { return row.Name == name })
}

// HasBudgets reports whether some row is a budget.
func (l Limits) HasBudgets() bool { return l.Has(LimitBudget) || l.Has(LimitMonthBudget) }

// BoundCosts reports whether some row is about what a promise costs ordinary jobs.
func (l Limits) BoundCosts() bool { return l.Has(LimitDelay) || l.Has(LimitIdle) }

// WithoutCosts returns the table without the rows about what a promise costs ordinary jobs.
func (l Limits) WithoutCosts() Limits {
	return slices.DeleteFunc(slices.Clone(l), func(row Limit) bool { return row.Name == LimitDelay || row.Name == LimitIdle })
}

// Named reports whether a name is in a list of those that have limits, or Every is.
func Named(list []string, name string) bool {
	return slices.Contains(list, name) || slices.Contains(list, Every)
}

// Accounts returns the accounts that have limits of their own, in the order of the table, among them perhaps Every.
func (l Limits) Accounts() []string { return l.names(func(s Scope) string { return s.Account }) }

// Qualities returns the QOS that have limits of their own, likewise.
func (l Limits) Qualities() []string { return l.names(func(s Scope) string { return s.QOS }) }

// Partitions returns the partitions that have limits of their own, likewise.
func (l Limits) Partitions() []string { return l.names(func(s Scope) string { return s.Partition }) }

func (l Limits) names(of func(Scope) string) (names []string) {
	for i := range l {
		if name := of(l[i].Scope); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func limitNames() []LimitName {
	names := make([]LimitName, len(LimitKinds))
	for i := range LimitKinds {
		names[i] = LimitKinds[i].Name
	}
	return names
}

// Allowance is what is allowed to one user, account, QOS or partition. The zero value allows everything.
type Allowance struct {
	values [numLimits]int64 // one more than the limit, so that 0 is none
}

// Unlimited reports whether everything is allowed.
func (a *Allowance) Unlimited() bool { return *a == Allowance{} }

// Limit returns the value of a limit; ok is false if there is none.
func (a *Allowance) Limit(name LimitName) (value int64, ok bool) {
	at, known := limitIndex(name)
	if !known {
		panic(fmt.Sprintf("policy: no limit %q", name))
	}
	return a.By(at)
}

// By is Limit of the limit at a place.
func (a *Allowance) By(at LimitIndex) (value int64, ok bool) {
	return a.values[at] - 1, a.values[at] > 0
}

// Without is the allowance without one of its limits.
func (a Allowance) Without(at LimitIndex) Allowance {
	a.values[at] = 0
	return a
}

// And is what both allow: of each limit the narrower one.
func (a Allowance) And(b Allowance) Allowance {
	for i := range a.values {
		if b.values[i] > 0 && (a.values[i] == 0 || b.values[i] < a.values[i]) {
			a.values[i] = b.values[i]
		}
	}
	return a
}

// BoundsCosts reports whether what a promise costs ordinary jobs is limited.
func (a *Allowance) BoundsCosts() bool { return a.values[ByDelay] > 0 || a.values[ByIdle] > 0 }

// HasBudget reports whether there is a budget, of a month or for all time.
func (a *Allowance) HasBudget() bool { return a.values[ByBudget] > 0 || a.values[ByMonthBudget] > 0 }

// Only is some limits of the allowance, without all others.
func (a Allowance) Only(list ...LimitIndex) (some Allowance) {
	for _, at := range list {
		some.values[at] = a.values[at]
	}
	return some
}

// Exceeds returns the refusal's words on a limit that a value exceeds; nil if it does not.
func (a *Allowance) Exceeds(at LimitIndex, asked int64) *berth.Exceeded {
	if value, limited := a.By(at); limited && asked > value {
		return &berth.Exceeded{Limit: string(LimitKinds[at].Name), Allowed: value, Asked: asked}
	}
	return nil
}

// ShareOf returns how many PEs of that number may be promised at once.
func (a *Allowance) ShareOf(size berth.Count) (most berth.Count, limited bool) {
	share, limited := a.By(ByShare)
	if !limited {
		return size, false
	}
	return berth.Count((int64(size)*share + 999) / 1000), share < 1000
}

// EachUser returns a table that limits every user alike.
func EachUser(values map[LimitName]int64) Limits {
	var l Limits
	for i := range LimitKinds {
		if value, given := values[LimitKinds[i].Name]; given {
			l = append(l, Limit{Name: LimitKinds[i].Name, Value: value})
		}
	}
	return l
}
