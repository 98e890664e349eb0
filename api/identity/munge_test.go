package identity_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/internal/debiantest"
	"github.com/berth-hpc/berth/service"
)

// realm starts a munged with a key of its own and returns a folder with munge and unmunge that speak to it.
func realm(t *testing.T, name string) (path string) {
	t.Helper()
	for _, program := range []string{"munged", "munge", "unmunge"} {
		if _, err := exec.LookPath(program); err != nil {
			debiantest.Absent(t, "slurm", fmt.Sprintf("needs %s (Debian: munge): %v", program, err))
		}
	}
	dir := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(file("key"), bytes.Repeat([]byte(name), 256), 0o600); err != nil {
		t.Fatal(err)
	}
	daemon := exec.Command("munged", "--foreground", "--force", "--key-file="+file("key"), "--socket="+file("s"), "--pid-file="+file("pid"), "--log-file="+file("log"), "--seed-file="+file("seed"))
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait() // it was killed
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(file("s")); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("munged does not answer")
		}
	}
	for _, program := range []string{"munge", "unmunge"} {
		found, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file(program), []byte("#!/bin/sh\nexec "+found+" --socket="+file("s")+" \"$@\"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// ask shows a header to a service in which this user has a role.
func ask(ways *identity.Ways, header string) (identity.Caller, error) {
	r, err := http.NewRequest(http.MethodGet, "http://localhost/v1/me", http.NoBody)
	if err != nil {
		return identity.Caller{}, err
	}
	r.Header.Set("Authorization", header)
	c, _, err := ways.Of(r, 0)
	return c, err
}

// The site's own munged says which user made a credential, and what is wrong with a credential.
func TestRealMunge(t *testing.T) {
	ours, theirs := realm(t, "ours"), realm(t, "theirs")
	path := os.Getenv("PATH")
	at := func(dir string) { t.Setenv("PATH", dir+":"+path) }
	newWays := func() *identity.Ways {
		return &identity.Ways{Roles: identity.Roles{Default: service.User, Self: 1 << 31}, Accounts: identity.NewAccounts(nil), Munge: identity.NewCredentials("lab", nil)}
	}
	ways := newWays()
	payload := identity.Seal("lab", "GET", "/v1/me", nil, true)
	at(ours)
	header, err := identity.MakeHeader(t.Context(), payload)
	if err != nil {
		t.Fatal(err)
	}
	me, err := exec.Command("id", "-un").Output()
	if err != nil {
		t.Fatal(err)
	}
	if who, err := ask(ways, header); err != nil || who.User != strings.TrimSpace(string(me)) || who.Way != identity.Munge {
		t.Fatalf("%+v %v", who, err)
	}
	refused := func(ways *identity.Ways, header, words string) {
		t.Helper()
		_, err := ask(ways, header)
		var e *berth.Error
		if !errors.As(err, &e) || e.Code != berth.Denied || e.Field != "Authorization" || !strings.Contains(e.Msg, words) {
			t.Errorf("%v, want %q", err, words)
		}
	}
	refused(ways, header, "used before")
	refused(newWays(), header, "used before") // a service that was started again

	at(theirs)
	foreign, err := identity.MakeHeader(t.Context(), payload)
	if err != nil {
		t.Fatal(err)
	}
	at(ours)
	refused(ways, foreign, "Invalid credential")

	short := exec.Command("munge", "--ttl=1")
	short.Stdin = strings.NewReader(payload)
	out, err := short.Output()
	if err != nil {
		t.Fatal(err)
	}
	// A credential of one second is only old when more than that has passed by the clock: there is no signal of it.
	time.Sleep(2100 * time.Millisecond)
	refused(ways, "Munge "+strings.TrimSpace(string(out)), "expired")

	// Without munged a credential is not refused for good: it may be tried again.
	t.Setenv("PATH", filepath.Dir(ours)+":/bin:/usr/bin")
	if err := os.WriteFile(filepath.Join(filepath.Dir(ours), "unmunge"), []byte("#!/bin/sh\nexec "+filepath.Join("/usr/bin", "unmunge")+" --socket=/nowhere/munge.socket \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = ask(newWays(), header)
	var e *berth.Error
	if !errors.As(err, &e) || e.Code != berth.Unavailable {
		t.Errorf("without munged: %v", err)
	}
}

// Another user of the node is known as that user.
func TestRealMungeOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	dir := realm(t, "ours")
	for _, d := range []string{dir, filepath.Dir(dir), filepath.Dir(filepath.Dir(dir))} {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("setpriv", "--reuid=1", "--regid=1", "--clear-groups", "/usr/bin/munge", "--socket="+filepath.Join(dir, "s"))
	cmd.Stdin = strings.NewReader(identity.Seal("lab", "GET", "/v1/me", nil, true))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	ways := &identity.Ways{Roles: identity.Roles{Rules: []identity.Rule{{Role: service.Viewer, Users: []string{"daemon"}}}}, Accounts: identity.NewAccounts(nil), Munge: identity.NewCredentials("lab", nil)}
	who, err := ask(ways, "Munge "+strings.TrimSpace(string(out)))
	if err != nil || who.User != "daemon" || who.Role != service.Viewer {
		t.Errorf("%+v %v, want daemon as a viewer", who, err)
	}
}

func TestTheMachinesAccounts(t *testing.T) {
	accounts := identity.NewAccounts(nil)
	root, err := accounts.ByName(context.Background(), "root")
	if err != nil || root.UID != 0 || len(root.Groups) == 0 || root.Groups[0] != "root" {
		t.Errorf("%+v %v", root, err)
	}
	for _, name := range []string{"0", "nobody-at-all-77", "--help", "a:b", ""} {
		if a, err := accounts.ByName(context.Background(), name); err == nil {
			t.Errorf("%q is %+v", name, a)
		}
	}
}
