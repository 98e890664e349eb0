package token_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/api/token/tokentest"
	"github.com/berth-hpc/berth/service"
)

func open(t *testing.T, folder string) *token.Store {
	t.Helper()
	s, err := token.Open(folder, "root", 100)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func codeOf(err error) berth.Code {
	if e, is := errors.AsType[*berth.Error](err); is {
		return e.Code
	}
	return ""
}

func TestTheFirstStartMakesTheOperatorsToken(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	for _, name := range []string{token.File, token.OperatorFile} {
		info, err := os.Stat(filepath.Join(folder, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%s: %v %v, want mode 0600", name, info, err)
		}
	}
	data, err := os.ReadFile(filepath.Join(folder, token.OperatorFile))
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimSuffix(string(data), "\n")
	want := service.Principal{User: "root", Role: service.Operator}
	if who, _, known := s.Check(secret); !known || who.Principal() != want {
		t.Error(who, known)
	}
	kept, err := os.ReadFile(filepath.Join(folder, token.File))
	if err != nil || strings.Contains(string(kept), secret) || strings.Contains(string(kept), strings.TrimPrefix(secret, "berth_")) {
		t.Errorf("the secret itself is kept: %s %v", kept, err)
	}
	again := open(t, folder)
	if who, _, known := again.Check(secret); !known || who.Principal() != want {
		t.Error("after another start:", who, known)
	}
	if n := len(again.List()); n != 1 {
		t.Errorf("%d tokens after the second start", n)
	}
}

func TestTokensAreMadeAndRevoked(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	secret, e, err := s.Add(token.Wanted{User: "alice", Role: service.User, Note: "laptop"}, 200)
	if err != nil || e.User != "alice" || e.Role != service.User || e.Created != 200 || e.Note != "laptop" {
		t.Fatal(e, err)
	}
	other, _, err := s.Add(token.Wanted{User: "alice", Role: service.Viewer, Note: ""}, 200)
	if err != nil || other == secret {
		t.Fatal(err)
	}
	for _, store := range []*token.Store{s, open(t, folder)} {
		if who, _, known := store.Check(secret); !known || who.Principal() != (service.Principal{User: "alice", Role: service.User}) {
			t.Error(who, known)
		}
		if diff := cmp.Diff(s.List(), store.List()); diff != "" {
			t.Error(diff)
		}
	}
	for _, wrong := range []string{"", secret + "x", secret[1:], strings.ToUpper(secret), e.ID} {
		if who, _, known := s.Check(wrong); known {
			t.Errorf("%q is taken for %v", wrong, who)
		}
	}
	if err := s.Revoke(e.ID); err != nil {
		t.Fatal(err)
	}
	for _, store := range []*token.Store{s, open(t, folder)} {
		if _, _, known := store.Check(secret); known {
			t.Error("a revoked token is good")
		}
		if _, _, known := store.Check(other); !known {
			t.Error("another token was revoked")
		}
	}
	if err := s.Revoke(e.ID); codeOf(err) != berth.NotFound {
		t.Error(err)
	}
}

func TestTheLastOperatorsTokenStays(t *testing.T) {
	s := open(t, t.TempDir())
	if err := s.Revoke(s.List()[0].ID); codeOf(err) != berth.Conflict {
		t.Error(err)
	}
	if _, _, err := s.Add(token.Wanted{User: "bob", Role: service.Operator, Note: ""}, 300); err != nil {
		t.Fatal(err)
	}
	if err := s.Revoke(s.List()[0].ID); err != nil {
		t.Error(err)
	}
	if err := s.Revoke(s.List()[0].ID); codeOf(err) != berth.Conflict {
		t.Error(err)
	}
}

func TestWhatIsRefused(t *testing.T) {
	s := open(t, t.TempDir())
	for _, test := range []struct {
		user, note string
		role       service.Role
	}{
		{"", "", service.User},
		{"a b", "", service.User},
		{"a';DROP", "", service.User},
		{"-rf", "", service.User},
		{strings.Repeat("a", 65), "", service.User},
		{"alice", "", "king"},
		{"alice", "", ""},
		{"alice", strings.Repeat("n", 201), service.User},
	} {
		if _, _, err := s.Add(token.Wanted{User: test.user, Role: test.role, Note: test.note}, 0); codeOf(err) != berth.Invalid {
			t.Errorf("%q %q: %v", test.user, test.role, err)
		}
	}
	if n := len(s.List()); n != 1 {
		t.Errorf("%d tokens", n)
	}
}

func TestFilesThatOthersReadOrThatAreDamagedAreRefused(t *testing.T) {
	folder := t.TempDir()
	open(t, folder)
	path := filepath.Join(folder, token.File)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := token.Open(folder, "root", 0); codeOf(err) != berth.Denied || !strings.Contains(err.Error(), "chmod 600") {
		t.Error(err)
	}
	for _, text := range []string{"", "{", `[{"id":"x","user":"a","role":"user","sha256":"00"}]`, `[{"id":"x","user":"a b","role":"user","sha256":"` + strings.Repeat("0", 64) + `"}]`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := token.Open(folder, "root", 0); codeOf(err) != berth.Invalid {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := token.Open(filepath.Join(folder, "absent"), "root", 0); err == nil {
		t.Error("a folder that is not there is taken")
	}
}

func TestManyAtOnce(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			secret, e, err := s.Add(token.Wanted{User: "alice", Role: service.User, Note: ""}, 5)
			if _, _, known := s.Check(secret); err != nil || !known {
				t.Error("a new token is not known", err)
			}
			if err := s.Revoke(e.ID); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := len(open(t, folder).List()); n != 1 {
		t.Errorf("%d tokens are left, want the operator's", n)
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 3 {
		t.Error("files left behind:", entries, err)
	}
}

// The last operator's token that does not expire, for all sites, stays: without it no
// other could be made.
func TestAnExpiringOperatorIsNotTheLast(t *testing.T) {
	s := open(t, t.TempDir())
	first := s.List()[0].ID
	for _, w := range []token.Wanted{
		{User: "bob", Role: service.Operator, Expires: 400}, {User: "bob", Role: service.Operator, Sites: service.NewSiteSet([]string{"a"})},
	} {
		if _, _, err := s.Add(w, 300); err != nil {
			t.Fatal(err)
		}
		if err := s.Revoke(first); codeOf(err) != berth.Conflict {
			t.Error(err)
		}
	}
	if _, _, err := s.Add(token.Wanted{User: "bob", Role: service.Operator, Expires: 300}, 300); codeOf(err) != berth.Invalid {
		t.Error("a token that has expired is made:", err)
	}
	if _, _, err := s.Add(token.Wanted{User: "eve", Role: service.Operator}, 300); err != nil {
		t.Fatal(err)
	}
	if err := s.Revoke(first); err != nil {
		t.Error(err)
	}
}

// Expiry and sites are kept over a restart.
func TestExpiryAndSitesAreKept(t *testing.T) {
	folder := t.TempDir()
	secret, want, err := open(t, folder).Add(token.Wanted{User: "bob", Role: service.User, Expires: 400, Sites: service.NewSiteSet([]string{"b", "a"})}, 300)
	if err != nil {
		t.Fatal(err)
	}
	got, _, known := open(t, folder).Check(secret)
	if !known || got != want || got.ExpiredAt(399) || !got.ExpiredAt(400) || !got.Sites.Has("a") || got.Sites.Has("c") {
		t.Error(got, known)
	}
}

// Another process that shares the place of the tokens knows those that were made meanwhile once it has read them
// again, and no more those that were revoked; streams of these find out.
func TestTokensOfAnotherProcess(t *testing.T) {
	at, folder := new(tokentest.Shelf), t.TempDir()
	s, err := token.OpenAt(at, folder, "root", 100)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, token.OperatorFile)); err != nil {
		t.Error(err)
	}
	other, err := token.OpenAt(at, t.TempDir(), "root", 100)
	if err != nil {
		t.Fatal(err)
	}
	secret, e, err := s.Add(token.Wanted{User: "alice", Role: service.User}, 100)
	if err != nil {
		t.Fatal(err)
	}
	feed, _, err := s.AddFeed(token.WantedFeed{User: "alice", Role: service.User}, 100)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Reload(); err != nil {
		t.Fatal(err)
	}
	_, outdated, known := other.Check(secret)
	if _, is := other.CheckFeed(feed); !known || !is || other.Realm() != s.Realm() {
		t.Error("what was made is not known")
	}
	at.Close(true)
	if _, _, err := other.Add(token.Wanted{User: "bob", Role: service.User}, 100); codeOf(err) != berth.Unavailable || len(other.List()) != 2 {
		t.Error(err)
	}
	at.Close(false)
	if err := s.Revoke(e.ID); err != nil {
		t.Fatal(err)
	}
	if err := other.Reload(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-outdated:
	default:
		t.Error("who looked before is not told")
	}
	if _, _, known := other.Check(secret); known {
		t.Error("a revoked token is good")
	}
	at.Remove(token.File)
	if err := other.Reload(); err == nil || len(other.List()) != 1 {
		t.Error("tokens that cannot be read are forgotten")
	}
}

// A token of some scopes keeps them across a restart, and to a program that knows no scopes it is none.
func TestScopesAreKept(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	secret, e, err := s.Add(token.Wanted{User: "alice", Role: service.User, Scopes: token.ScopeRead | token.ScopeCancel}, 200)
	if err != nil {
		t.Fatal(err)
	}
	cookie, session, err := s.OpenSession(e.ID, token.Came{}, 200)
	if err != nil || session.Scopes != e.Scopes {
		t.Fatal(session, err)
	}
	for _, store := range []*token.Store{s, open(t, folder)} {
		if got, _, known := store.Check(secret); !known || got != e || got.Scopes.String() != "read,cancel" {
			t.Error(got, known)
		}
		if got, _, known, err := store.CheckSession(cookie, 300); !known || err != nil || got != session {
			t.Error(got, known, err)
		}
	}
	data, err := os.ReadFile(filepath.Join(folder, token.File))
	if err != nil {
		t.Fatal(err)
	}
	var old []struct{ ID, SHA256 string } // as versions before scopes read it
	if err := json.Unmarshal(data, &old); err != nil || len(old) != 3 {
		t.Fatal(old, err)
	}
	for _, o := range old {
		if narrow := o.ID == e.ID || o.ID == session.ID; narrow != (o.SHA256 == strings.Repeat("0", 64)) {
			t.Errorf("%+v can be used by a version that lets it do everything, or cannot and should", o)
		}
	}
	changed, err := s.ChangeScopes(e.ID, token.ScopeRun)
	if got, _, known, _ := open(t, folder).CheckSession(cookie, 300); err != nil || changed.Scopes != token.ScopeRun || !known || got.Scopes != token.ScopeRun {
		t.Errorf("%+v, its session %+v, %v", changed, got, err)
	}
	for _, id := range []string{"nothing", session.ID} {
		if _, err := s.ChangeScopes(id, token.ScopeRun); codeOf(err) != berth.NotFound {
			t.Error(err)
		}
	}
	wrong := strings.Replace(string(data), `"read",`, `"look",`, 1)
	if err := os.WriteFile(filepath.Join(folder, token.File), []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := token.Open(folder, "root", 400); codeOf(err) != berth.Invalid || !strings.Contains(err.Error(), `"look"`) {
		t.Error("a scope that is not known:", err)
	}
}

func TestScopesAsSets(t *testing.T) {
	var all token.Scopes
	some, err := token.NewScopes([]string{"cancel", "read"})
	if err != nil || some.All() || !all.All() || some.String() != "read,cancel" || all.String() != "" {
		t.Error(some, err)
	}
	for _, row := range []struct {
		held, wanted token.Scopes
		has          bool
	}{
		{all, all, true}, {all, token.ScopeRun, true}, {some, all, false}, {some, token.ScopeRead, true}, {some, some, true}, {some, token.ScopeRead | token.ScopeRun, false},
	} {
		if row.held.Has(row.wanted) != row.has {
			t.Errorf("%q has %q: want %t", row.held, row.wanted, row.has)
		}
	}
}
