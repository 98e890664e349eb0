package token

import (
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// MemberFile has what an OpenID provider said last of its users. Feeds and notices have no token of the provider with
// them, and are allowed by that.
const MemberFile = "members.json"

const (
	// memberLasts is for how long what a provider has said of a user counts.
	memberLasts berth.Duration = 30 * 86_400
	// memberEvery is how far the kept time may lag behind.
	memberEvery berth.Duration = 86_400
)

// member is what the provider said last of a user.
type member struct {
	User   string     `json:"user"`
	Groups []string   `json:"groups,omitempty"` // to which roles refer, ordered
	Seen   berth.Time `json:"seen"`
}

// members is those of a store, by name.
type members struct {
	known atomic.Pointer[map[string]member]
}

// readMembers reads the members; no file is none.
func (s *Store) readMembers() error {
	known := map[string]member{}
	var list []member
	if err := s.readFile(MemberFile, "members", &list); err != nil {
		return err
	}
	for _, m := range list {
		if !site.ValidUser(m.User) {
			return berth.Errorf(berth.Invalid, "members", "%s: %.70q is not a valid user name", s.path(MemberFile), m.User)
		}
		known[m.User] = m
	}
	s.members.known.Store(&known)
	return nil
}

// Meet notes that the provider has said at a time that a user is in these groups, which are ordered. It writes
// when they are others than before, and once a day. The error says that it cannot be kept.
func (s *Store) Meet(user string, groups []string, now berth.Time) error {
	met := func() bool {
		m, known := (*s.members.known.Load())[user]
		return known && slices.Equal(m.Groups, groups) && now.Sub(m.Seen) < memberEvery
	}
	if met() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if met() { // another was faster
		return nil
	}
	known := maps.Clone(*s.members.known.Load())
	maps.DeleteFunc(known, func(_ string, m member) bool { return now.Sub(m.Seen) >= memberLasts })
	known[user] = member{User: user, Groups: slices.Clone(groups), Seen: now}
	list := slices.SortedFunc(maps.Values(known), func(a, b member) int { return strings.Compare(a.User, b.User) })
	if err := s.writeFile(MemberFile, "members", list); err != nil {
		return err
	}
	s.members.known.Store(&known)
	return nil
}

// Member returns the groups in which a user was when the provider said so last, and false if that was more than 30
// days ago, or never.
func (s *Store) Member(user string, now berth.Time) (groups []string, known bool) {
	m, known := (*s.members.known.Load())[user]
	return m.Groups, known && now.Sub(m.Seen) < memberLasts
}
