package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/internal/debiantest"
	"github.com/berth-hpc/berth/internal/withparent"
)

// needsMunge skips a test where munge is not installed. Where Slurm is required munge is too, without which it does not run.
func needsMunge(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become other users")
	}
	missing := func() error {
		for _, name := range []string{"munged", "mungekey", "munge", "unmunge"} {
			if _, err := exec.LookPath(name); err != nil {
				return err
			}
		}
		return nil
	}
	if missing() == nil {
		return
	}
	if err := debiantest.Install(func() bool { return missing() == nil }, "munge"); err != nil {
		debiantest.Absent(t, "slurm", fmt.Sprintf("munge: credentials of a real munged are not tested: %v: %v", missing(), err))
	}
}

// startMunged starts a munged with a key of its own, and returns the folder with its commands and what ends it.
func startMunged(t *testing.T, dir string) (bin string, stop func()) {
	t.Helper()
	bin = filepath.Join(dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	key, socket := filepath.Join(dir, "key"), filepath.Join(dir, "socket")
	if out, err := exec.CommandContext(t.Context(), "mungekey", "--create", "--keyfile="+key).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"munge", "unmunge"} {
		command, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		program(t, filepath.Join(bin, name), "#!/bin/sh\nexec "+command+" --socket="+socket+" \"$@\"\n")
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "munged", "--foreground", "--num-threads=1", "--key-file="+key, "--socket="+socket,
		"--pid-file="+filepath.Join(dir, "pid"), "--log-file="+filepath.Join(dir, "log"), "--seed-file="+filepath.Join(dir, "seed"))
	cmd.SysProcAttr = withparent.Attr()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	stop = func() {
		if !ended {
			ended = true
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Wait()
		}
	}
	t.Cleanup(stop)
	for deadline := time.Now().Add(longest); ; time.Sleep(20 * time.Millisecond) {
		if exec.CommandContext(t.Context(), filepath.Join(bin, "munge"), "--no-input", "--output=/dev/null").Run() == nil {
			return bin, stop
		}
		if time.Now().After(deadline) {
			t.Fatalf("munged does not answer:\n%s", said.String())
		}
	}
}

// On another node users carry no token either: a credential of munge for each call says who asks. What was used before, is
// too old, or was made for another service, another call or with another key is refused with the reason.
func TestUsersOfOtherNodesByMunge(t *testing.T) {
	t.Parallel()
	needsMunge(t)
	dir, berth := openFolder(t)
	bin, stopMunged := startMunged(t, filepath.Join(dir, "munge"))
	strange, _ := startMunged(t, filepath.Join(dir, "strange"))
	listen := freeAddress(t)
	text := fmt.Sprintf(`sites: [{name: cm5, pools: [{name: batch, pes: 64, binding: late}]}]
service:
  data: %[1]s/data
  listen: %[2]s
  socket: %[1]s/berth.sock
  munge: lab
  roles:
  - {role: none, groups: [games]}
`, dir, listen)
	config := filepath.Join(dir, "berth.yaml")
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	path := "PATH=" + bin + ":" + os.Getenv("PATH")
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), berth, "serve", "--config", config)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.SysProcAttr = &log, &log, dir, withparent.Attr()
	cmd.Env = append(os.Environ(), path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, log.String())
		}
	}()
	// as runs a command as a user of this number, who has the commands of munge and the address of the service.
	as := func(uid int, stdin string, command ...string) (string, int) {
		id := fmt.Sprint(uid)
		cmd := exec.CommandContext(t.Context(), "setpriv", append([]string{"--reuid=" + id, "--regid=" + id, "--clear-groups"}, command...)...)
		cmd.Env = []string{path, "HOME=/nonexistent", serverVar + "=http://" + listen}
		cmd.Dir, cmd.Stdin = "/", strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	// sealed makes a credential of user 2 for a look at who they are.
	sealed := func(munge, realm, uri, ttl string) string {
		out, code := as(2, identity.Seal(realm, http.MethodGet, uri, nil, false), munge, "--ttl="+ttl)
		if code != 0 {
			t.Fatal(out)
		}
		return strings.TrimSpace(out)
	}
	// show shows a credential to the service.
	show := func(credential string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listen+"/v1/me", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Munge "+credential)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	munge := filepath.Join(bin, "munge")
	for deadline := time.Now().Add(longest); ; time.Sleep(20 * time.Millisecond) {
		if _, code := as(0, "", berth, "whoami"); code == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the service does not answer:\n%s", log.String())
		}
	}
	old, made := sealed(munge, "lab", "/v1/me", "1"), time.Now()
	for _, row := range []struct {
		uid   int
		words string
		args  []string
		code  int
	}{
		{0, "root, operator, at http://" + listen + ", by a credential of munge", []string{"whoami"}, 0},
		{2, "bin, user,", []string{"whoami"}, 0},
		{2, "is confirmed", []string{"reserve", "--npe", "1", "--duration", "1h", "--start", "now+1h"}, 0},
		{2, "batch", []string{"list"}, 0},
		{3, "no reservations", []string{"list"}, 0},
		{5, "games has no role here", []string{"whoami"}, 5},
		{4711, "uid 4711 has no account on the machine of the service", []string{"whoami"}, 5},
	} {
		out, code := as(row.uid, "", append([]string{berth}, row.args...)...)
		if code != row.code || !strings.Contains(out, row.words) {
			t.Errorf("uid %d: berth %s: exit %d, want %d and %q:\n%s", row.uid, strings.Join(row.args, " "), code, row.code, row.words, out)
		}
	}
	once := sealed(munge, "lab", "/v1/me", "60")
	time.Sleep(time.Until(made.Add(2100 * time.Millisecond))) // munge counts whole seconds
	for _, c := range []struct {
		name, credential string
		status           int
		words            string
	}{
		{"one that is good", once, http.StatusOK, `"user":"bin"`},
		{"the same again", once, http.StatusUnauthorized, "munge credential: used before; each is good once"},
		{"an old one", old, http.StatusUnauthorized, "munge credential: expired; make another one"},
		{"another realm", sealed(munge, "elsewhere", "/v1/me", "60"), http.StatusUnauthorized, `munge credential: made for realm \"elsewhere\"; this one is \"lab\"`},
		{"another call", sealed(munge, "lab", "/v1/sites", "60"), http.StatusUnauthorized, "munge credential: made for another call, GET /v1/sites"},
		{"another key", sealed(filepath.Join(strange, "munge"), "lab", "/v1/me", "60"), http.StatusUnauthorized, "munge credential: "},
		{"none at all", "MUNGE:AwQFAAA:", http.StatusUnauthorized, "munge credential: "},
	} {
		if status, body := show(c.credential); status != c.status || !strings.Contains(body, c.words) {
			t.Errorf("%s: %d, want %d and %q:\n%s", c.name, status, c.status, c.words, body)
		}
	}
	good := sealed(munge, "lab", "/v1/me", "60")
	stopMunged()
	if status, body := show(good); status != http.StatusServiceUnavailable || !strings.Contains(body, "munge does not answer on the machine of the service") {
		t.Errorf("without munged: %d\n%s", status, body)
	}
	if out, code := as(2, "", berth, "whoami"); code == 0 || !strings.Contains(out, "munge makes no credential") {
		t.Errorf("a user without munged: exit %d\n%s", code, out)
	}
}
