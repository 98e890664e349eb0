package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/berth-hpc/berth/journal/postgres/postgrestest"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// TestServeLocal serves this machine, as the README has it, with real processes
// in the reservations.
func TestServeLocal(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	serves(t, "testdata/serve/local.txtar", "")
}

// What docs/workflows.md says of workflows that are promised and run.
func TestServeRunsWorkflows(t *testing.T) {
	t.Parallel()
	serves(t, "testdata/serve/workflow.txtar", "")
}

// What docs/job-scripts.md says of programs that hand in job scripts, by the calls that they make.
func TestServeJobScripts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	if runtime.GOOS != "linux" {
		t.Skip("a local site needs Linux")
	}
	for _, program := range []string{"bash", "sed", "sort"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s", program)
		}
	}
	serves(t, "testdata/serve/jobscripts.txtar", "")
}

// TestServeKnowsUsers has the owner of a service use it without a token.
func TestServeKnowsUsers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells who is at the other end of a socket")
	}
	serves(t, "testdata/serve/identity.txtar", "")
}

// TestServeCompacts has a running service drop its history.
func TestServeCompacts(t *testing.T) {
	t.Parallel()
	serves(t, "testdata/serve/compact.txtar", "")
}

// TestServeRestores restores a backup and has a service go on with it.
func TestServeRestores(t *testing.T) {
	t.Parallel()
	serves(t, "testdata/serve/restore.txtar", "")
}

// TestServePostgreSQL has a service keep its journal in a real database, and moves the
// journal from one kind to the other and back.
func TestServePostgreSQL(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	serves(t, "testdata/serve/postgres.txtar", "", "JOURNAL", server.URL(""), "BACK", server.URL("back"), "RESTORED", server.URL("restored"))
}

// TestServeSlurm serves a real cluster, with real jobs in the reservations.
func TestServeSlurm(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	serves(t, "testdata/serve/slurm.txtar", slurmtest.Start(t, slurmtest.Options{}).Conf)
}

// TestServeSbatch hands the command lines of sbatch to a real cluster, in promises.
func TestServeSbatch(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	serves(t, "testdata/serve/sbatch.txtar", slurmtest.Start(t, slurmtest.Options{}).Conf)
}

// serves runs a script in which berth serve may run in the background. SERVER is
// where it listens; more are variables, each followed by its value.
func serves(t *testing.T, script, conf string, more ...string) {
	t.Helper()
	testscript.Run(t, testscript.Params{
		Files: []string{script}, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			examples, err := filepath.Abs("../../examples")
			if err != nil {
				return err
			}
			env.Setenv("EXAMPLES", examples)
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			env.Setenv("LISTEN", listener.Addr().String())
			env.Setenv(serverVar, "http://"+listener.Addr().String())
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/settings")
			env.Setenv("SLURM_CONF", conf)
			env.Setenv("USER", userName())
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else every command takes a second with -race
			for pair := range slices.Chunk(more, 2) {
				env.Setenv(pair[0], pair[1])
			}
			return listener.Close()
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "fetch": fetch, "grab": grab, "ready": ready, "until": until,
		},
	})
}

// longest is how long a script waits for something.
const longest = time.Minute

// ready waits until the service takes requests.
func ready(ts *testscript.TestScript, _ bool, _ []string) {
	poll(ts, "the service takes requests", func() error {
		request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, ts.Getenv(serverVar)+"/readyz", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		_ = answer.Body.Close() // it was not read
		if answer.StatusCode != http.StatusOK {
			return errors.New(answer.Status)
		}
		return nil
	})
}

// until PATTERN COMMAND... runs a command again and again until its output has
// the pattern.
func until(ts *testscript.TestScript, _ bool, args []string) {
	poll(ts, args[0], func() error {
		if err := ts.Exec(args[1], args[2:]...); err != nil {
			return err
		}
		if out := ts.ReadFile("stdout"); !matches(args[0], out) {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
}

// poll waits for something without a signal.
func poll(ts *testscript.TestScript, what string, holds func() error) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(longest); ; <-tick.C {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("in vain: %s: %v", what, err)
		}
	}
}

// TestServeSaysWhatIsWrong starts services that cannot start.
func TestServeSaysWhatIsWrong(t *testing.T) {
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }() // no client has connected
	file := t.TempDir() + "/file"
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open := t.TempDir()
	if err := os.Chmod(open, 0o755); err != nil { //nolint:gosec // this is what is tested
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  []string
		code  int
		words string
	}{
		{[]string{"--listen", taken.Addr().String()}, exitUsage, "listen: .*address already in use"},
		{[]string{"--listen", "nowhere"}, exitUsage, "listen: .*nowhere"},
		{[]string{"--data", file}, exitUsage, "data: .*not a directory"},
		{[]string{"--data", open}, exitUsage, "data: " + open + ": mode 0755 lets other users in; want 0700: chmod 700 " + open},
		{[]string{"--data", open, "--check"}, exitUsage, "data: " + open + ": mode 0755 "},
		{[]string{"--sites", file + ".yaml"}, exitUsage, "no such file"},
		{[]string{"--cores", "0"}, exitUsage, `--cores: "0"; want a whole number`},
		{[]string{"--log", "xml"}, exitUsage, "xml"},
		{[]string{"extra"}, exitUsage, "extra"},
	} {
		var out, messages heard
		a := &app{args: append([]string{"serve", "--data", t.TempDir() + "/data"}, c.args...), stdout: &out, stderr: &messages}
		if code := a.run(); code != c.code || !matches(c.words, string(messages)) {
			t.Errorf("%q: exit code %d, want %d, with %q: %s", c.args, code, c.code, c.words, messages)
		}
	}
}

// A data directory in which nothing can be kept is told with what to do, by a code that
// says whether starting again can help.
func TestADataDirectoryThatCannotBeWritten(t *testing.T) {
	for _, c := range []struct {
		err   error
		code  int
		words string
	}{
		{syscall.EACCES, exitUsage, "^data: /d: " + userName() + " may not write there, nothing there was changed: .* chown -R " + userName() + " /d "},
		{syscall.EPERM, exitUsage, "may not write there"},
		{syscall.EROFS, exitUnreachable, "its file system is read-only, nothing there was changed: mount it"},
		{syscall.ENOSPC, exitUnreachable, "no room is left, nothing there was changed: make room"},
		{syscall.EDQUOT, exitUnreachable, "no room is left"},
		{syscall.ENOTDIR, exitUsage, "not a directory"},
	} {
		err := cannotKeep("/d", &fs.PathError{Op: "open", Path: "/d/x", Err: c.err})
		if code := exitCode(err); code != c.code || !matches(c.words, err.Error()) {
			t.Errorf("%v: exit code %d, want %d: %v", c.err, code, c.code, err)
		}
	}
}

// heard is what was written.
type heard []byte

func (t *heard) Write(p []byte) (int, error) {
	*t = append(*t, p...)
	return len(p), nil
}

func matches(pattern, text string) bool {
	return regexp.MustCompile("(?m)" + pattern).MatchString(text)
}
