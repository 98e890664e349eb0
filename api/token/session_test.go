package token_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/service"
)

const hour = 3600

// good reports whether a session is good at a time.
func good(t *testing.T, s *token.Store, secret string, at berth.Time) bool {
	t.Helper()
	_, _, known, err := s.CheckSession(secret, at)
	if err != nil {
		t.Fatal(err)
	}
	return known
}

// A session is good for half a day behind its last use, also across a restart, and for a
// week at most.
func TestSessionsEndUnusedAndAfterAWeek(t *testing.T) {
	folder := t.TempDir()
	s, err := token.Open(folder, "root", 1000)
	if err != nil {
		t.Fatal(err)
	}
	parent, _ := s.Lasting()
	secret, e, err := s.OpenSession(parent.ID, token.Came{}, 1000)
	if err != nil || e.User != "root" || e.Role != service.Operator || e.Expires != 1000+7*24*hour || !e.IsSession() {
		t.Fatal(e, err)
	}
	at := berth.Time(1000)
	for range 3 {
		if at += 11 * hour; !good(t, s, secret, at) {
			t.Fatalf("worthless after %d s, in use", at)
		}
		if s, err = token.Open(folder, "root", at); err != nil {
			t.Fatal(err)
		}
	}
	if good(t, s, secret, at+12*hour) {
		t.Error("good although unused for 12 hours")
	}
	if !good(t, s, secret, at+12*hour-1) {
		t.Error("worthless before 12 hours without use")
	}
	for at < 1000+7*24*hour-10*hour {
		at += 10 * hour
		good(t, s, secret, at)
	}
	if !good(t, s, secret, 1000+7*24*hour-1) || good(t, s, secret, 1000+7*24*hour) {
		t.Error("want it to end after a week, although in use")
	}
	data, err := os.ReadFile(filepath.Join(folder, token.File))
	if err != nil || strings.Contains(string(data), secret) {
		t.Error("the file has the secret, or cannot be read:", err)
	}
}

// A session has what its token has, and ends with it.
func TestSessionsEndWithTheirToken(t *testing.T) {
	s, err := token.Open(t.TempDir(), "root", 1000)
	if err != nil {
		t.Fatal(err)
	}
	some := service.NewSiteSet([]string{"cm5"})
	_, parent, err := s.Add(token.Wanted{User: "vera", Role: service.Viewer, Expires: 1000 + hour, Sites: some}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	secret, e, err := s.OpenSession(parent.ID, token.Came{}, 1000)
	if err != nil || e.User != "vera" || e.Role != service.Viewer || e.Sites != some || e.Expires != parent.Expires {
		t.Fatal(e, err)
	}
	if _, _, err := s.OpenSession(e.ID, token.Came{}, 1000); err == nil {
		t.Error("a session opens another one")
	}
	if _, _, err := s.OpenSession(parent.ID, token.Came{}, 1000+hour); err == nil {
		t.Error("a token that has expired opens a session")
	}
	if good(t, s, secret, 1000+hour) || !good(t, s, secret, 1000+hour-1) {
		t.Error("want it to expire with its token")
	}
	other, o, err := s.OpenSession(parent.ID, token.Came{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.EndSession(o.ID); err != nil || good(t, s, other, 1001) || !good(t, s, secret, 1001) {
		t.Error("want the one session ended and not the other:", err)
	}
	if err := s.EndSession(parent.ID); err != nil || !good(t, s, secret, 1001) {
		t.Error("the end of no session ended something:", err)
	}
	if err := s.Revoke(parent.ID); err != nil || good(t, s, secret, 1001) {
		t.Error("good without its token:", err)
	}
	if known, _, is := s.Check(secret); is {
		t.Error("still listed:", known)
	}
}

// A token has a bounded number of sessions; the oldest gives way, and sessions that are over are
// forgotten.
func TestSessionsOfATokenAreBounded(t *testing.T) {
	s, err := token.Open(t.TempDir(), "root", 1000)
	if err != nil {
		t.Fatal(err)
	}
	parent, _ := s.Lasting()
	var secrets []string
	for i := range 70 {
		secret, _, err := s.OpenSession(parent.ID, token.Came{}, berth.Time(1000+i))
		if err != nil {
			t.Fatal(err)
		}
		secrets = append(secrets, secret)
	}
	if n := len(s.List()); n != 65 || good(t, s, secrets[5], 1100) || !good(t, s, secrets[6], 1100) || !good(t, s, secrets[69], 1100) {
		t.Errorf("%d tokens and sessions are kept; want the token and the latest 64 sessions", n)
	}
	if _, _, err := s.OpenSession(parent.ID, token.Came{}, 1000+24*hour); err != nil || len(s.List()) != 2 {
		t.Errorf("%d are kept once the others are over; want 2: %v", len(s.List()), err)
	}
}

// A user who is identified by the machine has sessions without a token: of their role, until a time or for as long as
// sessions last, also across a restart, and as many for each user as a token has.
func TestSessionsOfUsersOfTheMachine(t *testing.T) {
	folder := t.TempDir()
	s, err := token.Open(folder, "root", 1000)
	if err != nil {
		t.Fatal(err)
	}
	secret, e, err := s.OpenMachineSession("bob", service.Viewer, 1000+hour, token.Came{}, 1000)
	if err != nil || e.User != "bob" || e.Role != service.Viewer || e.Expires != 1000+hour || !e.OfMachine() || !e.IsSession() {
		t.Fatal(e, err)
	}
	var secrets []string
	for i := range 66 {
		secret, e, err := s.OpenMachineSession("alice", service.User, 0, token.Came{}, berth.Time(1000+i))
		if err != nil || e.Expires != berth.Time(1000+i+7*24*hour) {
			t.Fatal(e, err)
		}
		secrets = append(secrets, secret)
	}
	if s, err = token.Open(folder, "root", 1100); err != nil {
		t.Fatal(err)
	}
	if good(t, s, secrets[1], 1100) || !good(t, s, secrets[2], 1100) || !good(t, s, secrets[65], 1100) {
		t.Error("want the latest 64 sessions of a user")
	}
	known, _, is, err := s.CheckSession(secret, 1000+hour-1)
	if err != nil || !is || known.User != "bob" || known.Role != service.Viewer || !known.OfMachine() {
		t.Errorf("%+v, known: %t, %v; want bob's session beside those of others", known, is, err)
	}
	if good(t, s, secret, 1000+hour) {
		t.Error("good behind its end")
	}
	if list, err := token.Read(folder); err != nil || len(list) != 1 || list[0].User != "root" {
		t.Errorf("%+v, %v; want the token alone", list, err)
	}
}

// A file that cannot be read is a fault of the machine, not of what it says.
func TestTokensThatCannotBeRead(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, token.File), 0o700); err != nil {
		t.Fatal(err)
	}
	if list, err := token.Read(folder); err == nil || codeOf(err) == berth.Invalid {
		t.Errorf("%v, %v", list, err)
	}
}
