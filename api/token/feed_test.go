package token_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/service"
)

// A feed is there after a restart, without its secret on the disk, until it is revoked; its secret is no token, and no
// token is a feed.
func TestFeedsAreMadeAndRevoked(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	want := token.WantedFeed{User: "alice", Role: service.User, Site: "cm5", Note: "phone", Sites: service.NewSiteSet([]string{"cm5"}), Parent: "p"}
	secret, f, err := s.AddFeed(want, 200)
	if err != nil || f.User != "alice" || f.Site != "cm5" || f.Created != 200 || len(secret) < 40 {
		t.Fatal(f, err)
	}
	other, _, err := s.AddFeed(token.WantedFeed{User: "alice", Role: service.User}, 201)
	if err != nil || other == secret {
		t.Fatal(err)
	}
	bearer, e, err := s.Add(token.Wanted{User: "alice", Role: service.User}, 200)
	if err != nil {
		t.Fatal(err)
	}
	again := open(t, folder)
	if s.Realm() == "" || again.Realm() != s.Realm() || open(t, t.TempDir()).Realm() == s.Realm() {
		t.Errorf("the realm is %q, after a restart %q", s.Realm(), again.Realm())
	}
	for _, store := range []*token.Store{s, again} {
		if got, known := store.CheckFeed(secret); !known || got != f {
			t.Error(got, known)
		}
		if diff := cmp.Diff(s.Feeds(), store.Feeds()); diff != "" || len(s.Feeds()) != 2 {
			t.Error(diff)
		}
		if _, _, known := store.Check(secret); known {
			t.Error("the secret of a feed is a token")
		}
		for _, wrong := range []string{"", secret + "x", secret[1:], strings.ToUpper(secret), f.ID, bearer, e.ID} {
			if got, known := store.CheckFeed(wrong); known {
				t.Errorf("%q is taken for %v", wrong, got)
			}
		}
	}
	data, err := os.ReadFile(filepath.Join(folder, token.FeedFile))
	if info, _ := os.Stat(filepath.Join(folder, token.FeedFile)); err != nil || strings.Contains(string(data), secret[4:]) || info.Mode().Perm() != 0o600 {
		t.Errorf("%s %v has the secret, or others may read it", data, err)
	}
	if err := s.RevokeFeed(f.ID, 300); err != nil {
		t.Fatal(err)
	}
	for _, store := range []*token.Store{s, open(t, folder)} {
		if _, known := store.CheckFeed(secret); known {
			t.Error("a revoked feed is good")
		}
		if _, known := store.CheckFeed(other); !known {
			t.Error("another feed was revoked")
		}
	}
	if err := s.RevokeFeed(f.ID, 300); codeOf(err) != berth.NotFound {
		t.Error(err)
	}
}

// Feeds end with the revocation of the token with which they were made.
func TestFeedsEndWithTheirToken(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	_, mine, err := s.Add(token.Wanted{User: "alice", Role: service.User}, 200)
	if err != nil {
		t.Fatal(err)
	}
	gone, _, _ := s.AddFeed(token.WantedFeed{User: "alice", Role: service.User, Parent: mine.ID}, 200)
	stays, _, _ := s.AddFeed(token.WantedFeed{User: "alice", Role: service.User, Parent: "socket"}, 200)
	if err := s.Revoke(mine.ID); err != nil {
		t.Fatal(err)
	}
	for _, store := range []*token.Store{s, open(t, folder)} {
		if _, known := store.CheckFeed(gone); known {
			t.Error("a feed outlives its token")
		}
		if _, known := store.CheckFeed(stays); !known {
			t.Error("another feed ended with it")
		}
	}
}

// Of feeds that ended the last use is forgotten, of others it is not.
func TestTheUseOfFeedsEndsWithThem(t *testing.T) {
	s := open(t, t.TempDir())
	_, mine, err := s.Add(token.Wanted{User: "alice", Role: service.User}, 200)
	if err != nil {
		t.Fatal(err)
	}
	var feeds []token.Feed
	for _, parent := range []string{mine.ID, mine.ID, mine.ID, "socket"} {
		_, f, err := s.AddFeed(token.WantedFeed{User: "alice", Role: service.User, Parent: parent}, 200)
		if err == nil {
			err = s.UsedFeed(&f, 1000)
		}
		if err != nil {
			t.Fatal(err)
		}
		feeds = append(feeds, f)
	}
	if err := s.Revoke(mine.ID); err != nil {
		t.Fatal(err)
	}
	for i, want := range []berth.Time{0, 0, 0, 1000} {
		if got := s.FeedUsed(&feeds[i]); got != want {
			t.Errorf("feed %d: last used at %d, want %d", i, got, want)
		}
	}
}

// The last use is kept about a day after it at most, and the file is not written each time.
func TestTheLastUseOfFeedsIsKept(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	_, f, err := s.AddFeed(token.WantedFeed{User: "alice", Role: service.User}, 200)
	if err != nil || s.FeedUsed(&f) != 0 {
		t.Fatal(err)
	}
	path := filepath.Join(folder, token.FeedFile)
	if err := s.UsedFeed(&f, 1000); err != nil || s.FeedUsed(&f) != 1000 {
		t.Fatal(err)
	}
	if before := open(t, folder); before.FeedUsed(&f) != 0 {
		t.Error("the file is written at each use")
	}
	if err := s.UsedFeed(&f, 200+86_400); err != nil {
		t.Fatal(err)
	}
	if after := open(t, folder); after.FeedUsed(&f) != 200+86_400 {
		t.Errorf("a day later %d is kept", after.FeedUsed(&f))
	}
	for text, code := range map[string]berth.Code{"": berth.Invalid, "{}": berth.Invalid, `{"realm":"x","feeds":[{"user":"a b","role":"user","sha256":"` + strings.Repeat("0", 64) + `"}]}`: berth.Invalid} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := token.Open(folder, "root", 0); codeOf(err) != code {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := token.Open(folder, "root", 0); codeOf(err) != berth.Denied {
		t.Error(err)
	}
}

func TestUsersHaveSomeFeeds(t *testing.T) {
	s := open(t, t.TempDir())
	for i := range 64 {
		if _, _, err := s.AddFeed(token.WantedFeed{User: "alice", Role: service.User, Note: fmt.Sprint(i)}, 200); err != nil {
			t.Fatal(i, err)
		}
	}
	if _, _, err := s.AddFeed(token.WantedFeed{User: "alice", Role: service.User}, 200); codeOf(err) != berth.Conflict {
		t.Error(err)
	}
	if _, _, err := s.AddFeed(token.WantedFeed{User: "bob", Role: service.User}, 200); err != nil {
		t.Error(err)
	}
	if _, _, err := s.AddFeed(token.WantedFeed{User: "bob", Role: service.User, Note: strings.Repeat("n", 201)}, 200); codeOf(err) != berth.Invalid {
		t.Error(err)
	}
}
