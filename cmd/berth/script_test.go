package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/internal/hugepages"
	"github.com/berth-hpc/berth/internal/withparent"
	"github.com/berth-hpc/berth/sim"
)

// TestMain lets the scripts run the real main as a process of its own, and services in
// the process of a test start it as the shepherd of a task.
func TestMain(m *testing.M) {
	effort.Waits()
	if len(os.Args) > 1 && os.Args[1] == plainWorker {
		if err := os.Setenv(niced, "1"); err != nil {
			panic(err) // the name has a NUL
		}
		os.Args = slices.Concat(os.Args[:1], []string{"lab", "--worker"}, os.Args[2:])
		main()
		return
	}
	if len(os.Args) > 1 && (os.Args[1] == "shepherd" || slices.Contains(os.Args, "--worker")) {
		main()
		return
	}
	hugepages.Advise(1 << 30)
	testscript.Main(m, map[string]func(){
		"berth":             scriptMain,
		"berth-interrupted": interruptedMain,
	})
}

// plainWorker is the first word of a worker at the priority of its test. At the lowest one it would get next to nothing of a processor
// that other tests use.
const plainWorker = "plain-worker"

// run executes one command line in the process of the test, and returns its exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{args: args, stdin: stdin, stdout: stdout, stderr: stderr}
	return a.run()
}

// scriptMain is berth, which ends with the test. The shepherds of tasks must not: they
// outlive the service that starts them.
func scriptMain() {
	if len(os.Args) < 2 || os.Args[1] != "shepherd" {
		withparent.End()
	}
	if path := os.Getenv(clockVar); path != "" {
		a := &app{args: os.Args[1:], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, serviceClock: shiftedClock(path), setUmask: setUmask}
		os.Exit(a.run())
	}
	main()
}

// clockVar names a file with by how much the clock of a service is off, such as 1m.
const clockVar = "BERTH_TEST_CLOCK"

// shiftedClock is the machine's clock, off by what a file says.
func shiftedClock(path string) func() time.Time {
	var mu sync.Mutex
	var read time.Time
	var off time.Duration
	return func() time.Time {
		now := time.Now()
		mu.Lock()
		defer mu.Unlock()
		if now.Sub(read) > 10*time.Millisecond { // it is asked often
			if text, err := os.ReadFile(path); err == nil {
				if d, err := time.ParseDuration(string(text)); err == nil { // else it is being written
					off = d
				}
			}
			read = now
		}
		return now.Add(off).Round(0)
	}
}

// interruptedMain is berth with a Ctrl-C at a known moment: when first-fit has
// been simulated the process sends itself a real signal, and all other
// policies are slow enough to be still under way by then.
func interruptedMain() {
	a := &app{args: os.Args[1:], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	a.simulate = func(ctx context.Context, cfg engine.Config, work sim.Workload, progress func(int)) (*sim.Result, error) {
		if cfg.Place != "first-fit" {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		result, err := sim.Play(ctx, cfg, work, progress)
		if killErr := signalSelf(os.Interrupt); killErr != nil {
			return nil, killErr
		}
		<-ctx.Done()
		return result, err
	}
	os.Exit(a.run())
}

// signalSelf sends this process a signal.
func signalSelf(signal os.Signal) error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	return self.Signal(signal)
}

func TestScripts(t *testing.T) {
	t.Parallel()
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:               scripts(t),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("EXAMPLES", examples)
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else every command takes a second with -race
			return nil
		},
		Condition: func(condition string) (bool, error) {
			if condition == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, errors.New("unknown condition " + condition)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":   exits,
			"gz":      gz,
			"without": without,
			"files":   files,
			"grab":    grab,
			"until":   until,
			"mode":    mode,
			"service": startService,
		},
	})
}

// atOnce are the lines of a script that have several things happen at a time: a service, a command in the
// background, and one that is interrupted.
var atOnce = regexp.MustCompile(`(?m)^(service |.*&$|.*berth-interrupted)`)

// scripts are the files of the scripts. Short runs, as those under the race detector, leave out the scripts in which one command
// follows another: each is a process, whose start takes most of the time there, and what works on several cores in
// one is watched in the packages that do it.
func scripts(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	some := slices.DeleteFunc(slices.Clone(all), func(file string) bool {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return testing.Short() && !atOnce.Match(text)
	})
	if len(some) == 0 || len(some) == len(all) && testing.Short() {
		t.Fatalf("%d of %d scripts are run; want all, or with -short those in which several things happen at a time", len(some), len(all))
	}
	return some
}

// exits CODE COMMAND... runs a command and wants exactly that exit code.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// gz FROM TO [N] compresses a file, and keeps only the first N bytes of that.
func gz(ts *testscript.TestScript, _ bool, args []string) {
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, err := zip.Write([]byte(ts.ReadFile(args[0])))
	ts.Check(err)
	ts.Check(zip.Close())
	kept := zipped.Bytes()
	if len(args) > 2 {
		n, err := strconv.Atoi(args[2])
		ts.Check(err)
		if n >= len(kept) {
			ts.Fatalf("%s has only %d bytes compressed", args[0], len(kept))
		}
		kept = kept[:n]
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), kept, 0o666))
}

// without WORD FROM TO copies a file without the lines that hold the word, of
// which there must be some.
func without(ts *testscript.TestScript, _ bool, args []string) {
	var kept strings.Builder
	dropped := 0
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		if strings.Contains(line, args[0]) {
			dropped++
		} else {
			kept.WriteString(line)
		}
	}
	if dropped == 0 {
		ts.Fatalf("no line of %s holds %q", args[1], args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(kept.String()), 0o666))
}

// files FOLDER NAME... wants exactly these names in a folder, hidden ones too.
func files(ts *testscript.TestScript, _ bool, args []string) {
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if got, want := strings.Join(names, " "), strings.Join(args[1:], " "); got != want {
		ts.Fatalf("%s holds %q, want %q", args[0], got, want)
	}
}
