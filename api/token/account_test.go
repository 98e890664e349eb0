package token_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/service"
)

// A service account is there after a restart, with its tokens, which always expire; they end with it, and others do not.
func TestAccountsAreMadeAndRemoved(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	want := token.Account{Name: "svc-ci", Owner: "alice", Role: service.User, Note: "builds", Sites: service.NewSiteSet([]string{"cm5"})}
	a, err := s.AddAccount(want, service.Principal{User: "alice", Role: service.User}, 200)
	if want.Created = 200; err != nil || a != want {
		t.Fatal(a, err)
	}
	if _, err := s.AddAccount(token.Account{Name: "svc-other", Owner: "bob", Role: service.Viewer}, service.Principal{User: "alice", Role: service.User}, 200); err != nil {
		t.Fatal(err)
	}
	secret, e, err := s.AddAccountToken("svc-ci", token.Wanted{Scopes: token.ScopeRead, Sites: service.NewSiteSet([]string{"cm5", "other"})}, 200)
	if err != nil || e.User != "svc-ci" || e.Role != service.User || e.Expires != 200+90*86_400 || e.Sites != want.Sites || !e.OfAccount {
		t.Fatal(e, err)
	}
	others, _, err := s.AddAccountToken("svc-other", token.Wanted{Expires: 300}, 200)
	if err != nil {
		t.Fatal(err)
	}
	again := open(t, folder)
	if diff := cmp.Diff(s.Accounts(), again.Accounts()); diff != "" || len(s.Accounts()) != 2 {
		t.Error(diff)
	}
	if got, _, known := again.Check(secret); !known || got != e {
		t.Error(got, known)
	}
	if err := s.RemoveAccount("svc-ci", 250); err != nil {
		t.Fatal(err)
	}
	for _, store := range []*token.Store{s, open(t, folder)} {
		if _, known := store.Account("svc-ci"); known {
			t.Error("it is still there")
		}
		if _, _, known := store.Check(secret); known {
			t.Error("its token outlives it")
		}
		if _, _, known := store.Check(others); !known {
			t.Error("that of another ended with it")
		}
	}
	if err := s.RemoveAccount("svc-ci", 250); codeOf(err) != berth.NotFound {
		t.Error(err)
	}
	if _, _, err := s.AddAccountToken("svc-ci", token.Wanted{}, 200); codeOf(err) != berth.NotFound {
		t.Error(err)
	}
}

// A user has a bounded number of service accounts, and each a bounded number of tokens that are good.
func TestAccountsAreBounded(t *testing.T) {
	s := open(t, t.TempDir())
	for i := range 33 {
		_, err := s.AddAccount(token.Account{Name: "svc-" + strconv.Itoa(i), Owner: "alice", Role: service.User}, service.Principal{User: "alice", Role: service.User}, 200)
		if want := i == 32; want != (codeOf(err) == berth.Conflict) {
			t.Fatal(i, err)
		}
		_, _, err = s.AddAccountToken("svc-0", token.Wanted{Expires: 300}, 200)
		if want := i == 32; want != (codeOf(err) == berth.Conflict) {
			t.Fatal(i, err)
		}
	}
	if _, _, err := s.AddAccountToken("svc-0", token.Wanted{}, 300); err != nil {
		t.Error("those that have expired count:", err)
	}
	if _, err := s.AddAccount(token.Account{Name: "svc-a", Owner: "bob", Role: service.User}, service.Principal{User: "alice", Role: service.User}, 200); err != nil {
		t.Error("those of others count:", err)
	}
}

// The name of a removed service account stays its owner's, also after a restart: no other user takes it, with what was reserved under it. An
// operator gives it to another one.
func TestNamesOfRemovedAccountsStayTheirOwners(t *testing.T) {
	folder := t.TempDir()
	s := open(t, folder)
	add := func(owner string, role service.Role) error {
		_, err := s.AddAccount(token.Account{Name: "svc-ci", Owner: owner, Role: service.User}, service.Principal{User: owner, Role: role}, 200)
		return err
	}
	remove := func() {
		t.Helper()
		if err := s.RemoveAccount("svc-ci", 250); err != nil {
			t.Fatal(err)
		}
		s = open(t, folder)
	}
	if err := add("alice", service.User); err != nil {
		t.Fatal(err)
	}
	remove()
	if !s.WasAccount("svc-ci") || len(s.Accounts()) != 0 {
		t.Errorf("%+v", s.Accounts())
	}
	if err := add("bob", service.User); codeOf(err) != berth.Conflict {
		t.Error(err)
	}
	if err := add("alice", service.User); err != nil {
		t.Error(err)
	}
	if s.WasAccount("svc-ci") {
		t.Error("it is there, and yet removed")
	}
	remove()
	if err := add("bob", service.Operator); err != nil {
		t.Error(err)
	}
	remove()
	if err := add("alice", service.User); codeOf(err) != berth.Conflict {
		t.Error("it is bob's now:", err)
	}
}

// A user cannot fill the file with names of removed service accounts, and goes on with those names.
func TestNamesOfRemovedAccountsAreBounded(t *testing.T) {
	s := open(t, t.TempDir())
	alice := service.Principal{User: "alice", Role: service.User}
	add := func(n int) error {
		_, err := s.AddAccount(token.Account{Name: "svc-" + strconv.Itoa(n), Owner: "alice", Role: service.User}, alice, 200)
		return err
	}
	for n := range 256 {
		if err := errors.Join(add(n), s.RemoveAccount("svc-"+strconv.Itoa(n), 200)); err != nil {
			t.Fatal(n, err)
		}
	}
	if err := add(256); codeOf(err) != berth.Conflict {
		t.Error(err)
	}
	if err := add(255); err != nil {
		t.Error(err)
	}
}
