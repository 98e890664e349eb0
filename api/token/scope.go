package token

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
)

// Scopes is what a token is good for within the role of its user: some scopes. The zero value is all of them, those of
// later versions too. It can be compared.
type Scopes uint16

// The scopes.
const (
	ScopeRead    Scopes = 1 << iota // look at what the role may see, and ask what could be had
	ScopeReserve                    // ask for reservations, hold, confirm, change and extend them
	ScopeCancel                     // cancel reservations, and give back the rest of them
	ScopeRun                        // run tasks in reservations, and comparisons in the laboratory
	ScopeFeeds                      // make and end calendar feeds and receivers of notices
	ScopeOperate                    // what operators do to sites, the clock, the journal and the leader
	ScopeTokens                     // make and end tokens, service accounts and sessions
)

type scope struct {
	is          Scopes
	name, about string
}

// scopes are their names, in order.
var scopes = []scope{
	{ScopeRead, "read", "look at what the role may see, and ask what could be had"},
	{ScopeReserve, "reserve", "ask for reservations, hold, confirm, change and extend them"},
	{ScopeCancel, "cancel", "cancel reservations, and give back the rest of them"},
	{ScopeRun, "run", "run tasks in reservations, and comparisons in the laboratory"},
	{ScopeFeeds, "feeds", "make and end calendar feeds and receivers of notices"},
	{ScopeOperate, "operate", "what operators do to sites, the clock, the journal and the leader"},
	{ScopeTokens, "tokens", "make and end tokens, service accounts and sessions"},
}

// ScopeNames returns the names of all scopes, and what each lets do, in order.
func ScopeNames() (names, abouts []string) {
	for _, s := range scopes {
		names, abouts = append(names, s.name), append(abouts, s.about)
	}
	return names, abouts
}

// NewScopes returns the set of some scopes; no names are all of them. The error is of code Invalid for a name of none.
func NewScopes(names []string) (Scopes, error) {
	var set Scopes
	for _, name := range names {
		at := slices.IndexFunc(scopes, func(s scope) bool { return s.name == name })
		if at < 0 {
			all, _ := ScopeNames()
			return 0, berth.Errorf(berth.Invalid, "scopes", "%.40q; want some of %s", name, strings.Join(all, ", "))
		}
		set |= scopes[at].is
	}
	return set, nil
}

// All reports whether it is all scopes.
func (s Scopes) All() bool { return s == 0 }

// Has reports whether all of some scopes are in the set. Of a set of all scopes that is so for each, and all scopes
// are in no other set.
func (s Scopes) Has(all Scopes) bool { return s == 0 || all != 0 && s&all == all }

// Names returns the scopes in order, nil if it is all of them.
func (s Scopes) Names() []string {
	var names []string
	for _, one := range scopes {
		if s&one.is != 0 {
			names = append(names, one.name)
		}
	}
	return names
}

// String returns the names with commas between them, empty if it is all scopes.
func (s Scopes) String() string { return strings.Join(s.Names(), ",") }

// MarshalJSON writes the names.
func (s Scopes) MarshalJSON() ([]byte, error) { return json.Marshal(s.Names()) }

// UnmarshalJSON reads what MarshalJSON wrote. The error is of code Invalid for a scope that is not known, and for a list
// without any.
func (s *Scopes) UnmarshalJSON(text []byte) error {
	var names []string
	if err := json.Unmarshal(text, &names); err != nil {
		return err
	}
	if names != nil && len(names) == 0 {
		return berth.Errorf(berth.Invalid, "scopes", "an empty list; want the names of some scopes")
	}
	set, err := NewScopes(names)
	*s = set
	return err
}
