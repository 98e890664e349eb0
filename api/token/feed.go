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
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// FeedFile has the feeds of calendars in a data folder. It is a file of its own: to a program that knows no feeds their
// secrets would be tokens, beside the others.
const FeedFile = "feeds.json"

const (
	feedPrefix = "cal_"
	realmBytes = 8
	// maxFeeds is how many feeds a user has at most: some for each of some programs.
	maxFeeds = 64
)

// feedUsedEvery is how far the kept time of the last use may lag behind, so that programs that ask four times
// an hour do not have the file written each time.
const feedUsedEvery berth.Duration = 86_400

// Feed is what is known of a feed; its secret is not. It lets see what its user may see when it is read, and
// no more than Role and Sites allow.
type Feed struct {
	ID   string       `json:"id"` // for people; no part of the secret
	User string       `json:"user"`
	Role service.Role `json:"role"` // of who made it
	// Site is the one that it shows; empty of what the user has themselves.
	Site    string          `json:"site,omitempty"`
	Note    string          `json:"note,omitempty"`
	Created berth.Time      `json:"created"`
	Sites   service.SiteSet `json:"sites,omitempty"` // that the token was good for with which it was made
	// Parent is that token, with whose revocation the feed ends; of a user of the machine the way in
	// which they were identified.
	Parent string `json:"parent,omitempty"`
	SHA256 digest `json:"sha256"`
}

// keptFeeds is the file.
type keptFeeds struct {
	Realm string     `json:"realm"`
	Feeds []keptFeed `json:"feeds"`
}

type keptFeed struct {
	Feed
	Used berth.Time `json:"used,omitempty"` // about its last use
}

// feeds is those of a store.
type feeds struct {
	realm string
	known atomic.Pointer[map[digest]Feed]
	used  sync.Map     // digest of a secret → berth.Time of its last use
	kept  atomic.Int64 // when the file was written last
}

// Realm returns a name of the data folder, which no other one has, and which never changes.
func (s *Store) Realm() string { return s.feeds.realm }

// openFeeds reads the feeds; where there is no file yet it makes one.
func (s *Store) openFeeds(now berth.Time) error {
	f := &s.feeds
	known := map[digest]Feed{}
	f.known.Store(&known)
	err := s.readFeeds()
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var random [realmBytes]byte
	_, _ = rand.Read(random[:]) // never fails
	f.realm = hex.EncodeToString(random[:])
	return s.saveFeeds(known, now)
}

// readFeeds reads the feeds. The error is an fs.ErrNotExist if there is no file yet.
func (s *Store) readFeeds() error {
	f := &s.feeds
	path := s.path(FeedFile)
	data, err := s.place.Load(FeedFile)
	if err != nil {
		return err
	}
	var file keptFeeds
	if err := json.Unmarshal(data, &file); err != nil {
		return berth.Errorf(berth.Invalid, "feeds", "%s: %v", path, err)
	}
	switch {
	case file.Realm == "":
		return berth.Errorf(berth.Invalid, "feeds", "%s: no realm; put it back from a backup, or move it away: all feeds are made anew then", path)
	case f.realm == "":
		f.realm = file.Realm
	case f.realm != file.Realm: // which never changes, and is read without a lock
		return berth.Errorf(berth.Conflict, "feeds", "%s is of realm %s, and was of %s: these are others' feeds; start the service again", path, file.Realm, f.realm)
	}
	known := make(map[digest]Feed, len(file.Feeds))
	for i := range file.Feeds {
		k := &file.Feeds[i]
		if err := check(k.User, k.Role, k.Note); err != nil {
			return fmt.Errorf("%s, feed %q: %w", path, k.ID, err)
		}
		if known[k.SHA256] = k.Feed; k.Used != 0 {
			f.used.Store(k.SHA256, k.Used)
		}
	}
	f.known.Store(&known)
	return nil
}

// WantedFeed is a feed to be made.
type WantedFeed struct {
	User, Site, Note string
	Role             service.Role
	Sites            service.SiteSet
	Parent           string
}

// AddFeed makes a feed and returns its secret, which cannot be had again. Errors: Invalid for a note that is too long,
// Conflict if the user has as many as there can be.
func (s *Store) AddFeed(w WantedFeed, now berth.Time) (secret string, f Feed, err error) {
	if err := check(w.User, w.Role, w.Note); err != nil {
		return "", f, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := maps.Clone(*s.feeds.known.Load())
	has := 0
	for _, other := range known {
		if other.User == w.User {
			has++
		}
	}
	if has >= maxFeeds {
		return "", f, berth.Errorf(berth.Conflict, "feeds", "%s has %d, which is the most there can be; berth feed revoke ends one", w.User, has)
	}
	var random [secretBytes + idBytes]byte
	_, _ = rand.Read(random[:]) // never fails
	secret = feedPrefix + base64.RawURLEncoding.EncodeToString(random[:secretBytes])
	f = Feed{
		ID: hex.EncodeToString(random[secretBytes:]), User: w.User, Role: w.Role, Site: w.Site, Note: w.Note, Created: now, Sites: w.Sites, Parent: w.Parent,
		SHA256: sha256.Sum256([]byte(secret)),
	}
	known[f.SHA256] = f
	return secret, f, s.saveFeeds(known, now)
}

// CheckFeed returns the feed that a secret is of, and false if it is of none. Whether its user may see anything
// is not looked at.
func (s *Store) CheckFeed(secret string) (Feed, bool) {
	f, known := (*s.feeds.known.Load())[sha256.Sum256([]byte(secret))]
	return f, known
}

// UsedFeed notes that a feed was read. The error says that this cannot be kept; the feed is good all the same.
func (s *Store) UsedFeed(f *Feed, now berth.Time) error {
	s.feeds.used.Store(f.SHA256, now)
	if now.Sub(berth.Time(s.feeds.kept.Load())) < feedUsedEvery {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(berth.Time(s.feeds.kept.Load())) < feedUsedEvery { // another was faster
		return nil
	}
	return s.saveFeeds(*s.feeds.known.Load(), now)
}

// FeedUsed returns when a feed was read last, 0 if it never was. After a restart a day of it may be lost.
func (s *Store) FeedUsed(f *Feed) berth.Time {
	at, known := s.feeds.used.Load(f.SHA256)
	if !known {
		return 0
	}
	return at.(berth.Time)
}

// Feeds returns all feeds by creation, then id.
func (s *Store) Feeds() []Feed {
	return slices.SortedFunc(maps.Values(*s.feeds.known.Load()), func(a, b Feed) int {
		if a.Created != b.Created {
			return int(a.Created - b.Created)
		}
		return strings.Compare(a.ID, b.ID)
	})
}

// RevokeFeed makes a feed worthless. The error is NotFound if there is none.
func (s *Store) RevokeFeed(id string, now berth.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended, err := s.endFeeds(func(f *Feed) bool { return f.ID == id }, now)
	if err == nil && !ended {
		err = berth.Errorf(berth.NotFound, "id", "no feed %q", id)
	}
	return err
}

// endFeeds makes some feeds worthless; ended is false if there are none such.
func (s *Store) endFeeds(which func(*Feed) bool, now berth.Time) (ended bool, err error) {
	known := maps.Clone(*s.feeds.known.Load())
	before := len(known)
	maps.DeleteFunc(known, func(_ digest, f Feed) bool { return which(&f) })
	if len(known) == before {
		return false, nil
	}
	if err := s.saveFeeds(known, now); err != nil {
		return false, err
	}
	s.feeds.used.Range(func(d, _ any) bool {
		if _, is := known[d.(digest)]; !is {
			s.feeds.used.Delete(d)
		}
		return true
	})
	return true, nil
}

// saveFeeds writes the file, and then has the feeds count.
func (s *Store) saveFeeds(known map[digest]Feed, now berth.Time) error {
	s.feeds.kept.Store(int64(now))
	file := keptFeeds{Realm: s.feeds.realm, Feeds: make([]keptFeed, 0, len(known))}
	for _, f := range known {
		file.Feeds = append(file.Feeds, keptFeed{f, s.FeedUsed(&f)})
	}
	slices.SortFunc(file.Feeds, func(a, b keptFeed) int { return strings.Compare(a.ID, b.ID) })
	if err := s.writeFile(FeedFile, "feeds", &file); err != nil {
		return err
	}
	s.feeds.known.Store(&known)
	return nil
}

// Of returns the tokens of a user that are good at a time, without sessions, in no order.
func (s *Store) Of(user string, now berth.Time) []Entry {
	var list []Entry
	for _, e := range s.known.Load().of {
		if e.User == user && !e.IsSession() && !e.ExpiredAt(now) {
			list = append(list, e)
		}
	}
	return list
}
