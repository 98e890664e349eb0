package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// openFolder returns a folder that every user of the machine can enter, with berth in it.
func openFolder(t *testing.T) (dir, berth string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	from, err := exec.LookPath("berth")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	berth = filepath.Join(dir, "berth")
	program(t, berth, string(text))
	return dir, berth
}

// program writes a program that every user can run at once.
func program(t *testing.T, path, text string) {
	t.Helper()
	slurmtest.Script(t, path, text)
	if err := os.Chmod(path, 0o755); err != nil { //nolint:gosec // others are to run it
		t.Fatal(err)
	}
}

// Users of the machine carry no token: the service asks the kernel who they are, and each has the role of
// their account.
func TestUsersOfTheMachine(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become other users")
	}
	dir, berth := openFolder(t)
	config := filepath.Join(dir, "berth.yaml")
	listen := freeAddress(t)
	text := fmt.Sprintf(`sites: [{name: cm5, pools: [{name: batch, pes: 64, binding: late}]}]
service:
  data: %[1]s/data
  listen: %[2]s
  socket: %[1]s/berth.sock
  roles:
  - {role: viewer, users: [daemon]}
  - {role: none, groups: [games]}
`, dir, listen)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(berth, "serve", "--config", config)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &log, &log, dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v\n%s", err, log.String())
		}
		if _, err := os.Stat(filepath.Join(dir, "berth.sock")); err == nil {
			t.Error("the socket is left behind")
		}
	}()
	// as runs berth as a user of this number, who has nothing but the address of the socket.
	as := func(uid int, args ...string) (string, int) {
		id := fmt.Sprint(uid)
		cmd := exec.Command("setpriv", append([]string{"--reuid=" + id, "--regid=" + id, "--clear-groups", berth}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", serverVar + "=unix://" + dir + "/berth.sock"}
		cmd.Dir = "/"
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	for deadline := time.Now().Add(longest); ; time.Sleep(20 * time.Millisecond) {
		if _, code := as(0, "whoami"); code == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the service does not answer:\n%s", log.String())
		}
	}
	for _, row := range []struct {
		uid   int
		words string
		args  []string
		code  int
	}{
		{0, "root, operator, at unix://" + dir + "/berth.sock, as the user of this machine that you are", []string{"whoami"}, 0},
		{1, "daemon, viewer,", []string{"whoami"}, 0},
		{1, "a viewer may not do this", []string{"reserve", "--npe", "1", "--duration", "1h", "--deadline", "now+2h"}, 5},
		{2, "bin, user,", []string{"whoami"}, 0},
		{2, "is confirmed", []string{"reserve", "--npe", "1", "--duration", "1h", "--start", "now+1h"}, 0},
		{2, "batch", []string{"list"}, 0},
		{3, "no reservations", []string{"list"}, 0},
		{0, " bin ", []string{"list"}, 0},
		{2, "http://" + listen + "/#login=", []string{"open"}, 0},
		{5, "games has no role here", []string{"whoami"}, 5},
		{4711, "uid 4711 has no account on the machine of the service", []string{"whoami"}, 5},
	} {
		out, code := as(row.uid, row.args...)
		if code != row.code || !strings.Contains(out, row.words) {
			t.Errorf("uid %d: berth %s: exit %d, want %d and %q:\n%s", row.uid, strings.Join(row.args, " "), code, row.code, row.words, out)
		}
	}
	if _, err := os.ReadDir("/nonexistent"); err == nil {
		t.Error("something was kept in a home")
	}
	second := exec.Command(berth, "serve", "--config", config, "--data", dir+"/other", "--listen", "127.0.0.1:0")
	if out, err := second.CombinedOutput(); err == nil || second.ProcessState.ExitCode() != 6 || !strings.Contains(string(out), "another process listens there") {
		t.Errorf("a second service at the socket: %v %s", err, out)
	}
}

// What a service says to try next can be tried as it stands, by an account that has no token and has not
// logged in.
func TestServeSaysHowItsAccountGetsIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args, env []string
		first     string // what has to be run before the other commands
		over      string
	}{
		"where commands look": {over: "/.local/state/berth/berth.sock"},
		"data elsewhere":      {args: []string{"--data", "data"}, first: "export " + serverVar + "=unix://", over: "/data/berth.sock"},
		"another service":     {env: []string{serverVar + "=http://127.0.0.1:1"}, first: "export " + serverVar + "=unix://", over: "/.local/state/berth/berth.sock"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, berth := openFolder(t) // whose path is short enough for a socket
			env := append([]string{"PATH=" + dir + ":" + os.Getenv("PATH"), "HOME=" + dir}, c.env...)
			serve := exec.Command(berth, append([]string{"serve", "--listen", "127.0.0.1:0"}, c.args...)...)
			serve.Env, serve.Dir = env, dir
			out, err := serve.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			serve.Stderr = &log
			if err := serve.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = serve.Process.Signal(os.Interrupt)
				if err := serve.Wait(); err != nil {
					t.Errorf("%v\n%s", err, log.String())
				}
			}()
			var said, script strings.Builder
			for lines, tried := bufio.NewScanner(out), false; lines.Scan(); {
				said.WriteString(lines.Text() + "\n")
				command, is := strings.CutPrefix(lines.Text(), "    ")
				if is {
					script.WriteString(command + " || exit\n")
				} else if tried {
					break
				}
				tried = tried || is
			}
			text := said.String()
			if strings.Contains(text, "berth login") || !strings.Contains(text, "needs no token") || !strings.Contains(text, c.over) || (c.first == "") == strings.Contains(text, "export") || !strings.Contains(text, c.first) {
				t.Errorf("it says\n%s", text)
			}
			try := exec.Command("sh", "-c", script.String()+"berth whoami")
			try.Env, try.Dir = env, dir
			answer, err := try.CombinedOutput()
			if err != nil || !strings.Contains(string(answer), "operator, at unix://") || !strings.Contains(string(answer), "\njob 1\n") {
				t.Errorf("%v\n%s\nof\n%s", err, answer, script.String())
			}
		})
	}
}
