package policy

import (
	"fmt"

	"github.com/berth-hpc/berth"
)

// LimitName names something that is limited.
type LimitName string

// What is limited. The engine asks those up to PESeconds when it decides; the others
// concern how a service is asked, and mean nothing to it.
const (
	LimitLead         LimitName = "lead"
	LimitLength       LimitName = "length"
	LimitHold         LimitName = "hold"
	LimitActive       LimitName = "active"
	LimitReservations LimitName = "reservations"
	LimitShare        LimitName = "share"
	LimitPESeconds    LimitName = "pe_hours"
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
	{LimitLength, InSeconds, "the longest reservation or job, as long as it lasts at its pool"},
	{LimitShare, InPermille, "which part of the PEs of each pool may be promised to a user at any one time; rounded up to a PE"},
	{LimitPESeconds, InPESeconds, "how many PE-hours the live reservations of a user may come to, as promised"},
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

// Scope says for whom a limit counts. An empty field is everyone. What is limited is
// counted for each user by themselves, whatever the scope.
type Scope struct {
	Role string `json:"role,omitempty"` // of who asks
	User string `json:"user,omitempty"` // in whose name
}

// Covers returns how narrow a scope is that counts for a request of a user who is asked
// for by a role: a user's is narrower than a role's, and everyone's is 1. It is 0 if the
// scope does not count for them.
func (s Scope) Covers(role, user string) int {
	if s.Role != "" && s.Role != role || s.User != "" && s.User != user {
		return 0
	}
	n := 1
	if s.User != "" {
		n += 2
	}
	if s.Role != "" {
		n++
	}
	return n
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
// cover a request the one of the narrowest scope counts, of equals the last. What no
// row covers has no limit. The zero value limits nothing.
type Limits []Limit

// Of returns what is allowed to a user who is asked for by a role; an empty role is
// RoleUser. Cost: O(rows).
func (l Limits) Of(role, user string) Allowance {
	if role == "" {
		role = RoleUser
	}
	var a Allowance
	if len(l) == 0 {
		return a
	}
	var rank [numLimits]int
	for i := range l {
		row := &l[i]
		at := limitIndex(row.Name)
		if at < 0 {
			continue
		}
		if r := row.Covers(role, user); r > 0 && r >= rank[at] {
			rank[at] = r
			if a.values[at] = row.Value + 1; row.Value == NoLimit {
				a.values[at] = 0
			}
		}
	}
	return a
}

const numLimits = 12

func limitIndex(name LimitName) int {
	for i := range LimitKinds {
		if LimitKinds[i].Name == name {
			return i
		}
	}
	return -1
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
	}
	return nil
}

func limitNames() []LimitName {
	names := make([]LimitName, len(LimitKinds))
	for i := range LimitKinds {
		names[i] = LimitKinds[i].Name
	}
	return names
}

// Allowance is what is allowed to one user. The zero value allows everything.
type Allowance struct {
	values [numLimits]int64 // one more than the limit, so that 0 is none
}

// Unlimited reports whether everything is allowed.
func (a *Allowance) Unlimited() bool { return *a == Allowance{} }

// Limit returns the value of a limit; ok is false if there is none.
func (a *Allowance) Limit(name LimitName) (value int64, ok bool) {
	at := limitIndex(name)
	if at < 0 {
		panic(fmt.Sprintf("policy: no limit %q", name))
	}
	return a.values[at] - 1, a.values[at] > 0
}

// Without is the allowance without one of its limits.
func (a Allowance) Without(name LimitName) Allowance {
	a.values[limitIndex(name)] = 0
	return a
}

// Only is one limit of the allowance, without all others.
func (a Allowance) Only(name LimitName) (one Allowance) {
	at := limitIndex(name)
	one.values[at] = a.values[at]
	return one
}

// Exceeds returns the refusal's words on a limit that a value exceeds; nil if it does not.
func (a *Allowance) Exceeds(name LimitName, asked int64) *berth.Exceeded {
	value, limited := a.Limit(name)
	if !limited || asked <= value {
		return nil
	}
	return &berth.Exceeded{Limit: string(name), Allowed: value, Asked: asked}
}

// ShareOf returns how many PEs of a pool of that size a user may be promised at once.
func (a *Allowance) ShareOf(size berth.Count) (most berth.Count, limited bool) {
	share, limited := a.Limit(LimitShare)
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
