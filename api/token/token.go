// Package token keeps the bearer tokens of the service: who a caller is that
// shows one, and what they may do; and the secrets of calendar feeds. Of both only the SHA-256 is
// kept. It knows no HTTP and no reservations.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/wholefile"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// Names of the files in the data folder. The second holds the token that the
// first start made; it may be deleted once it was read.
const (
	File         = "tokens.json"
	OperatorFile = "operator.token"
)

const (
	prefix = "berth_" // lets people and scanners of leaked secrets recognise one
	// secretBytes makes 256 bits: it cannot be guessed, so a plain hash of it is
	// enough and no salt is needed.
	secretBytes = 32
	idBytes     = 6
	maxNote     = 200
)

// Entry is what is known of a token.
type Entry struct {
	ID      string       `json:"id"` // for people; no part of the secret
	User    string       `json:"user"`
	Role    service.Role `json:"role"`
	Note    string       `json:"note,omitempty"`
	Created berth.Time   `json:"created"`
	// Expires is from when on it is worthless; 0 is never.
	Expires berth.Time `json:"expires,omitempty"`
	// Sites are those that it is good for.
	Sites service.SiteSet `json:"sites,omitempty"`
	// Parent is the token with which a browser's session was opened; empty of others.
	Parent string `json:"parent,omitempty"`
	// Groups are those of a user of an OpenID provider to which roles refer, a line each.
	Groups string `json:"groups,omitempty"`
	// Scopes are what it is good for within its role.
	Scopes Scopes `json:"scopes,omitempty"`
	// Address and Agent are from where a browser opened a session, and what it calls itself.
	Address string `json:"address,omitempty"`
	Agent   string `json:"agent,omitempty"`
	// OfAccount is true of a token of a service account, without which it is worthless.
	OfAccount bool   `json:"service_account,omitempty"`
	SHA256    digest `json:"sha256"`
}

// digest is the hash of a secret, written in hexadecimal digits.
type digest [sha256.Size]byte

// MarshalText writes the digest.
func (d digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText reads what MarshalText wrote.
func (d *digest) UnmarshalText(text []byte) error {
	raw, err := hex.DecodeString(string(text))
	if err != nil || len(raw) != len(d) {
		return fmt.Errorf("%.70q is no SHA-256", text)
	}
	copy(d[:], raw)
	return nil
}

// Place keeps the files of a store. Each is written whole or not at all.
type Place interface {
	// Load returns a file. The error is an fs.ErrNotExist if there is none.
	Load(name string) ([]byte, error)
	Save(name string, data []byte) error
}

// folder is the place of a service that has its files to itself.
type folder string

func (f folder) Load(name string) ([]byte, error) {
	return private(strings.TrimSuffix(name, ".json"), filepath.Join(string(f), name))
}

func (f folder) Save(name string, data []byte) error {
	return wholefile.Write(filepath.Join(string(f), name), data)
}

// Store is the tokens in one place. It is safe for concurrent use; one process
// writes them.
type Store struct {
	place   Place
	folder  string     // of OperatorFile
	mu      sync.Mutex // for those who change
	known   atomic.Pointer[tokens]
	used    sync.Map // digest of a session → use
	feeds   feeds
	members members
	// accounts are the service accounts, by name.
	accounts atomic.Pointer[map[string]Account]
}

// tokens is the tokens of one time.
type tokens struct {
	of       map[digest]Entry
	outdated chan struct{} // closed once there are others
}

func newTokens(entries []Entry) *tokens {
	known := make(map[digest]Entry, len(entries))
	for _, e := range entries {
		known[e.SHA256] = e
	}
	return &tokens{known, make(chan struct{})}
}

// Open reads the tokens of a data folder. Where there are none yet it makes one
// for an operator of that name and writes it to OperatorFile with mode 0600. A
// token file that others may read is refused with code Denied.
func Open(data, operator string, now berth.Time) (*Store, error) {
	return OpenAt(folder(data), data, operator, now)
}

// OpenAt is Open for tokens that are kept in another place. OperatorFile is in the data
// folder all the same.
func OpenAt(place Place, data, operator string, now berth.Time) (*Store, error) {
	s := &Store{place: place, folder: data}
	if err := errors.Join(s.openFeeds(now), s.readMembers(), s.readAccounts()); err != nil {
		return nil, err
	}
	err := s.read()
	if errors.Is(err, fs.ErrNotExist) {
		return s, s.first(operator, now)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Reload has the tokens and feeds count that another process has written. Those that were
// read before stay where it fails.
func (s *Store) Reload() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(s.readFeeds(), s.readMembers(), s.readAccounts()); err != nil {
		return err
	}
	return s.read()
}

// read reads the tokens. The error is an fs.ErrNotExist if there are none yet.
func (s *Store) read() error {
	data, err := s.place.Load(File)
	if err != nil {
		return err
	}
	list, err := parse(data)
	if err != nil {
		return berth.Errorf(berth.Invalid, "tokens", "%s: %v", s.path(File), err)
	}
	entries := make([]Entry, len(list))
	for i, e := range list {
		if entries[i] = e.Entry; e.Used != 0 {
			s.used.Store(e.SHA256, use{e.Used, e.Used})
		}
		if err := check(e.User, e.Role, e.Note); err != nil {
			return fmt.Errorf("%s, token %q: %w", s.path(File), e.ID, err)
		}
	}
	s.count(entries)
	return nil
}

// path returns the name of a file for messages.
func (s *Store) path(name string) string {
	if at, is := s.place.(folder); is {
		return filepath.Join(string(at), name)
	}
	return name
}

// count has entries count from now on.
func (s *Store) count(entries []Entry) {
	if before := s.known.Swap(newTokens(entries)); before != nil {
		close(before.outdated)
	}
}

// private reads a file that only its owner may read; the error is of code Denied if others may too.
func private(what, path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, berth.Errorf(berth.Denied, what, "%s has mode %04o; only its owner may read it, so: chmod 600", path, info.Mode().Perm())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return data, nil
}

// first makes the operator's token. Its file is there before the token is good,
// so a start that is interrupted can be repeated.
func (s *Store) first(operator string, now berth.Time) error {
	s.known.Store(newTokens(nil))
	secret, entry, err := s.mint(operator, service.Operator, "made by the first start", now)
	if err != nil {
		return err
	}
	if err := wholefile.Write(filepath.Join(s.folder, OperatorFile), []byte(secret+"\n")); err != nil {
		return err
	}
	return s.keep(entry)
}

// Check returns the token that a secret is of, and false if it is of none. outdated is
// closed once that may be otherwise.
func (s *Store) Check(secret string) (e Entry, outdated <-chan struct{}, known bool) {
	now := s.known.Load()
	e, known = now.of[sha256.Sum256([]byte(secret))]
	return e, now.outdated, known
}

// Principal returns who shows the token.
func (e *Entry) Principal() service.Principal {
	return service.Principal{User: e.User, Role: e.Role, Sites: e.Sites}
}

// ExpiredAt reports whether the token is worthless at a time, since it has expired.
func (e *Entry) ExpiredAt(now berth.Time) bool { return e.Expires != 0 && e.Expires <= now }

// Wanted is a token to be made.
type Wanted struct {
	User string
	Role service.Role
	Note string
	// Expires is from when on it is worthless; 0 is never.
	Expires berth.Time
	Sites   service.SiteSet // that it is good for
	Scopes  Scopes          // that it is good for
	// Renews is the id of the token of a service account that it takes over from, empty for none; that is good for no longer than
	// Overlap from then on.
	Renews  string
	Overlap berth.Duration
	account bool // it is of a service account
}

// Add makes a token and returns it; it cannot be had again. The error is of code
// Invalid if there cannot be such a one.
func (s *Store) Add(w Wanted, now berth.Time) (secret string, e Entry, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.add(&w, now)
}

func (s *Store) add(w *Wanted, now berth.Time) (secret string, e Entry, err error) {
	if w.Expires != 0 && w.Expires <= now {
		return "", e, berth.Errorf(berth.Invalid, "expires", "not after now; want a later time, or a length of time such as 30d")
	}
	secret, e, err = s.mint(w.User, w.Role, w.Note, now)
	e.Expires, e.Sites, e.Scopes, e.OfAccount = w.Expires, w.Sites, w.Scopes, w.account
	if err != nil {
		return "", e, err
	}
	entries := s.List()
	if w.Renews != "" {
		if entries, err = s.renewed(entries, w, now); err != nil {
			return "", e, err
		}
	}
	return secret, e, s.save(append(entries, e))
}

// Revoke makes a token worthless, with the sessions that were opened and the feeds that were made with it. Errors: NotFound, and Conflict for the last
// one of an operator that does not expire, without which no other could be made.
func (s *Store) Revoke(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries := s.List()
	at := slices.IndexFunc(entries, func(e Entry) bool { return e.ID == id })
	if at < 0 {
		return berth.Errorf(berth.NotFound, "id", "no token %q", id)
	}
	gone := entries[at]
	entries = slices.Delete(entries, at, at+1)
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return e.Parent == id })
	if gone.lasting() && !slices.ContainsFunc(entries, func(e Entry) bool { return e.lasting() }) {
		return onlyOne(id)
	}
	if _, err := s.endFeeds(func(f *Feed) bool { return f.Parent == id }, berth.Time(s.feeds.kept.Load())); err != nil {
		return err
	}
	return s.save(entries)
}

// ChangeScopes has a token be good for some scopes from now on, with the sessions that were opened with it. Errors:
// NotFound, also of a session, Invalid if a token of a service account is not good for them, and Conflict as of Revoke.
func (s *Store) ChangeScopes(id string, scopes Scopes) (Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries := s.List()
	at := slices.IndexFunc(entries, func(e Entry) bool { return e.ID == id && !e.IsSession() })
	if at < 0 {
		return Entry{}, berth.Errorf(berth.NotFound, "id", "no token %q", id)
	}
	if entries[at].OfAccount && !AccountScopes.Has(scopes) {
		return Entry{}, beyondAccount(scopes)
	}
	lasted := entries[at].lasting()
	for i := range entries {
		if i == at || entries[i].Parent == id {
			entries[i].Scopes = scopes
		}
	}
	if lasted && !slices.ContainsFunc(entries, func(e Entry) bool { return e.lasting() }) {
		return Entry{}, onlyOne(id)
	}
	return entries[at], s.save(entries)
}

func onlyOne(id string) error {
	return berth.Errorf(berth.Conflict, "id", "%q is the only token of an operator of all sites and scopes that does not expire; add another one before", id)
}

// lasting reports whether it will always be possible to make tokens with it.
func (e *Entry) lasting() bool {
	return e.Role == service.Operator && e.Expires == 0 && e.Sites.All() && e.Scopes.All()
}

// List returns all tokens by creation, then id.
func (s *Store) List() []Entry {
	var entries []Entry
	for _, e := range s.known.Load().of {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, byCreation)
	return entries
}

func byCreation(a, b Entry) int {
	if a.Created != b.Created {
		return int(a.Created - b.Created)
	}
	return strings.Compare(a.ID, b.ID)
}

func check(user string, role service.Role, note string) error {
	switch {
	case !site.ValidUser(user):
		return berth.Errorf(berth.Invalid, "user", "%q; %s", user, site.UserForm)
	case !slices.Contains(service.Roles(), role):
		return berth.Errorf(berth.Invalid, "role", "%q; want viewer, user or operator", role)
	case len(note) > maxNote:
		return berth.Errorf(berth.Invalid, "note", "%d bytes; want at most %d", len(note), maxNote)
	}
	return nil
}

func (s *Store) mint(user string, role service.Role, note string, now berth.Time) (string, Entry, error) {
	if err := check(user, role, note); err != nil {
		return "", Entry{}, err
	}
	var random [secretBytes + idBytes]byte
	_, _ = rand.Read(random[:]) // never fails
	secret := prefix + base64.RawURLEncoding.EncodeToString(random[:secretBytes])
	return secret, Entry{
		ID: hex.EncodeToString(random[secretBytes:]), User: user, Role: role, Note: note, Created: now,
		SHA256: sha256.Sum256([]byte(secret)),
	}, nil
}

func (s *Store) keep(e Entry) error { return s.save(append(s.List(), e)) }

// writeFile writes what some things are into a file of theirs.
func (s *Store) writeFile(file, what string, list any) error {
	data, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return s.place.Save(file, append(data, '\n'))
}

// readFile reads what writeFile has written; without a file, list stays as it is.
func (s *Store) readFile(file, what string, list any) error {
	data, err := s.place.Load(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	if err := json.Unmarshal(data, list); err != nil {
		return berth.Errorf(berth.Invalid, what, "%s: %v", s.path(file), err)
	}
	return nil
}

// save writes the file, and then has the entries count.
func (s *Store) save(entries []Entry) error {
	list := make([]kept, len(entries))
	for i, e := range entries {
		list[i] = kept{Entry: e, Used: s.usedAt(&e)}
		if !e.Scopes.All() {
			list[i].SHA256, list[i].Scoped = digest{}, e.SHA256
		}
	}
	if err := s.writeFile(File, "tokens", list); err != nil {
		return err
	}
	for i := range list {
		if at := list[i].Used; at != 0 {
			s.used.Store(entries[i].SHA256, use{max(at, s.useOf(&entries[i]).at), at})
		}
	}
	s.count(entries)
	return nil
}

// parse reads the file of tokens.
func parse(data []byte) ([]kept, error) {
	var list []kept
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].Scoped != (digest{}) {
			list[i].SHA256 = list[i].Scoped
		}
	}
	return list, nil
}

// Read returns the tokens in a data folder without sessions, by creation, then id, and changes nothing. Where there is no file of them there are none.
func Read(folder string) ([]Entry, error) {
	path := filepath.Join(folder, File)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	list, err := parse(data)
	if err != nil {
		return nil, berth.Errorf(berth.Invalid, "tokens", "%s: %v", path, err)
	}
	var entries []Entry
	for i := range list {
		if !list[i].IsSession() {
			entries = append(entries, list[i].Entry)
		}
	}
	slices.SortFunc(entries, byCreation)
	return entries, nil
}

// Opens reports whether a secret is that of the entry.
func (e *Entry) Opens(secret string) bool { return sha256.Sum256([]byte(secret)) == e.SHA256 }
