package token

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// How long a session lasts: half a day without use, and a week at most.
const (
	sessionIdle berth.Duration = 12 * 3600
	sessionMost berth.Duration = 7 * 86_400
	// usedEvery is how far the kept time of the last use may lag behind: after a restart a
	// session counts as unused for at most this much longer than it was.
	usedEvery berth.Duration = 3600
	// maxSessions is how many sessions a token has at once; the oldest goes.
	maxSessions = 64
	// usedShown is how far the time of the last use may lag behind that is told.
	usedShown berth.Duration = 60
	// maxAgent is how much is kept of what a browser calls itself, in bytes.
	maxAgent = 300
)

// Came is how a session was opened, for its user to recognise it by.
type Came struct {
	Address string // of the browser
	Agent   string // what the browser calls itself
}

// use is when a session was used last, and what of that is kept.
type use struct{ at, kept berth.Time }

// kept is an entry as it stands in the file.
type kept struct {
	Entry
	Used berth.Time `json:"used,omitempty"` // of a session: about its last use
	// Scoped is the digest of an entry of some scopes alone. A program that knows no scopes finds a digest of no secret
	// where it looks for one, and so gives its holder nothing instead of all that the role may do.
	Scoped digest `json:"scoped_sha256,omitzero"`
}

// Parents of sessions that no token opened: of users who are identified by the machine, and by an OpenID provider.
const (
	OfMachine  = "machine"
	OfProvider = "oidc"
)

// OfMachine reports whether the entry is a session that no token opened, but a user who was identified by
// the machine. Its role is that of the time at which it was opened.
func (e *Entry) OfMachine() bool { return e.Parent == OfMachine }

// OfProvider reports whether the entry is a session of a user of an OpenID provider. Its role is that of the time at
// which it was opened.
func (e *Entry) OfProvider() bool { return e.Parent == OfProvider }

// GroupList returns the groups of a user of an OpenID provider.
func (e *Entry) GroupList() []string {
	if e.Groups == "" {
		return nil
	}
	return strings.Split(e.Groups, groupEnd)
}

// groupEnd stands between the groups of an entry. No key of a configuration holds one.
const groupEnd = "\n"

// IsSession reports whether the entry is a browser's session.
func (e *Entry) IsSession() bool { return e.Parent != "" }

// OpenSession makes a session of a token, with all that the token is good for, and returns
// the secret of its cookie. It ends with the token, and when CheckSession says. The error
// is NotFound if there is no such token.
func (s *Store) OpenSession(parent string, from Came, now berth.Time) (secret string, e Entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries := s.List()
	at := slices.IndexFunc(entries, func(e Entry) bool { return e.ID == parent && !e.IsSession() })
	if at < 0 || entries[at].ExpiredAt(now) {
		return "", e, berth.Errorf(berth.NotFound, "token", "no token %q that is good now", parent)
	}
	of := entries[at]
	return s.openSession(entries, &of, of.ID, "session of token "+of.ID, from, now)
}

// OpenMachineSession makes a session of a user who was identified by the machine or the site, until a time;
// 0 is as long as sessions last.
func (s *Store) OpenMachineSession(user string, role service.Role, until berth.Time, from Came, now berth.Time) (secret string, e Entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.openSession(s.List(), &Entry{User: user, Role: role, Expires: until}, OfMachine, "session of an account of the machine", from, now)
}

// OpenMemberSession makes a session of a user of an OpenID provider who is in these groups there, until a time; 0 is as
// long as sessions last.
func (s *Store) OpenMemberSession(user string, role service.Role, groups []string, until berth.Time, from Came, now berth.Time) (secret string, e Entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := Entry{User: user, Role: role, Groups: strings.Join(groups, groupEnd), Expires: until}
	return s.openSession(s.List(), &of, OfProvider, "session of a user of the OpenID provider", from, now)
}

func (s *Store) openSession(entries []Entry, of *Entry, parent, note string, from Came, now berth.Time) (secret string, e Entry, err error) {
	if secret, e, err = s.mint(of.User, of.Role, note, now); err != nil {
		return "", e, err
	}
	e.Parent, e.Sites, e.Scopes, e.Groups, e.Expires = parent, of.Sites, of.Scopes, of.Groups, now.Add(sessionMost)
	e.Address, e.Agent = from.Address, from.agent()
	if of.Expires != 0 {
		e.Expires = min(e.Expires, of.Expires)
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.IsSession() && s.sessionOver(&e, now) })
	siblings := 0
	for i := range entries {
		if entries[i].Parent == parent && entries[i].User == of.User {
			siblings++
		}
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool { // the oldest come first
		if e.Parent != parent || e.User != of.User || siblings < maxSessions {
			return false
		}
		siblings--
		return true
	})
	s.used.Store(e.SHA256, use{now, now})
	return secret, e, s.save(append(entries, e))
}

// agent returns what is kept of what a browser calls itself: printable ASCII, and not too much.
func (c Came) agent() string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, c.Agent)
	return text[:min(len(text), maxAgent)]
}

// Session is a session with when it was used last, to about a minute; after a restart of the service up to an hour of that may be
// missing.
type Session struct {
	Entry
	Used berth.Time
}

// Sessions returns the sessions that are good at a time, the one used last first.
func (s *Store) Sessions(now berth.Time) []Session {
	var list []Session
	for _, e := range s.known.Load().of {
		if e.IsSession() && !s.sessionOver(&e, now) {
			list = append(list, Session{e, s.usedAt(&e)})
		}
	}
	slices.SortFunc(list, func(a, b Session) int {
		if a.Used != b.Used {
			return int(b.Used - a.Used)
		}
		return byCreation(b.Entry, a.Entry)
	})
	return list
}

// CheckSession returns the session that a secret is of and notes its use, or false if
// there is none: it was ended, it was unused for half a day, or it was opened a week
// ago. outdated is closed once that may be otherwise. The error says that the use cannot
// be kept; the session is good all the same.
func (s *Store) CheckSession(secret string, now berth.Time) (e Entry, outdated <-chan struct{}, known bool, err error) {
	all := s.known.Load()
	e, known = all.of[sha256.Sum256([]byte(secret))]
	if !known || !e.IsSession() || s.sessionOver(&e, now) {
		return Entry{}, all.outdated, false, nil
	}
	u := s.useOf(&e)
	if now.Sub(u.at) >= usedShown {
		s.used.Store(e.SHA256, use{now, u.kept})
	}
	if now.Sub(u.kept) >= usedEvery {
		s.mu.Lock()
		defer s.mu.Unlock()
		err = s.save(s.List())
	}
	return e, all.outdated, true, err
}

// EndSession makes a session worthless. One that is over is no error.
func (s *Store) EndSession(id string) error {
	_, err := s.EndSessions(func(e *Entry) bool { return e.ID == id })
	return err
}

// EndSessions makes some sessions worthless, and returns how many there were.
func (s *Store) EndSessions(which func(*Entry) bool) (ended int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries := s.List()
	before := len(entries)
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.IsSession() && which(&e) })
	if ended = before - len(entries); ended == 0 {
		return 0, nil
	}
	return ended, s.save(entries)
}

// Lasting returns the oldest token of an operator that does not expire. There always is
// one.
func (s *Store) Lasting() (Entry, bool) {
	for _, e := range s.List() {
		if e.lasting() && !e.IsSession() {
			return e, true
		}
	}
	return Entry{}, false
}

func (s *Store) sessionOver(e *Entry, now berth.Time) bool {
	return e.ExpiredAt(now) || now.Sub(s.usedAt(e)) >= sessionIdle
}

// usedAt returns when a session was used last, if it is known; 0 for a token.
func (s *Store) usedAt(e *Entry) berth.Time {
	if !e.IsSession() {
		return 0
	}
	return s.useOf(e).at
}

func (s *Store) useOf(e *Entry) use {
	if u, known := s.used.Load(e.SHA256); known {
		return u.(use)
	}
	return use{e.Created, e.Created}
}
