package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Outcome is what became of a mutant.
type Outcome string

// The outcomes. The last two are no verdict on the tests.
const (
	Killed     Outcome = "killed"     // a test fails
	TimedOut   Outcome = "timed out"  // a test takes far longer than with the original; it counts as killed
	Survived   Outcome = "SURVIVED"   // every test passes
	Invalid    Outcome = "invalid"    // it does not compile
	Equivalent Outcome = "equivalent" // the compiler makes the same of it as of the original
)

// counts tells whether an outcome says something about the tests.
func (o Outcome) counts() bool { return o == Killed || o == TimedOut || o == Survived }

// Verdict is the outcome of a mutant and how it came about.
type Verdict struct {
	Outcome
	By   string        // the folder whose tests killed it
	Test string        // the first that failed, if it says so
	Took time.Duration // in all
	Note string        // why the tests were of no use, such as the compiler's complaint
}

// judge compiles mutants and runs tests against them. The tree is never
// touched: a mutant's file reaches the compiler by an overlay.
type judge struct {
	root  string // of the module
	temp  string // a folder of its own
	cache string // of the go command; "" is the user's
	slack time.Duration
	jobs  int // how many tests are tried alone at a time

	covered    map[string][]string // by the folder of tests: the folders of the packages whose mutants they judge; none is their own
	remembered string              // the folder in which stands what tests reach; "" is none
	plain      bool                // every test meets every mutant, whatever it reaches
	tests      *regexp.Regexp      // what the names of tests that judge match; nil is any
	skip       *regexp.Regexp      // what they do not match; nil is none

	mu        sync.Mutex
	cpu       time.Duration // that all this has taken so far
	originals map[string]*original
}

// original is what the tests of a package are without a mutant.
type original struct {
	mu     sync.Mutex
	binary string            // the compiled tests; "" until they are needed
	sum    [sha256.Size]byte // of the binary
	flags  []string
	reach  map[bool]*reach // what they reach, by whether -short is set

	counting    string // the compiled tests that count what they reach; "" until they are needed
	countingSum [sha256.Size]byte
	module      string

	assembly *[sha256.Size]byte // of the package; nil until it is needed
}

// limit is how long tests may take with a mutant: five times as long as
// without and the slack, since mutants are judged side by side.
func (j *judge) limit(batch []reaching) time.Duration {
	limit := j.slack
	for _, t := range batch {
		limit += 5 * t.Took
	}
	return limit
}

// memory is how much a test may have, in KiB: many times what the tests of the
// original need, and little enough for two to run side by side.
const memory = 4 << 20

// of returns the original of a package.
func (j *judge) of(folder string) *original {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.originals == nil {
		j.originals = map[string]*original{}
	}
	o := j.originals[folder]
	if o == nil {
		o = &original{reach: map[bool]*reach{}}
		j.originals[folder] = o
	}
	return o
}

// drawing are the flags of tests that draw cases: they draw the same for every
// mutant, write down no failures and look for no smaller ones.
var drawing = []string{"-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=1ms"}

// folder makes a folder for what belongs together. Processes of other users, as those of a database, may pass through it.
func (j *judge) folder(pattern string) (string, error) {
	dir, err := os.MkdirTemp(j.temp, pattern)
	if err != nil {
		return "", err
	}
	return dir, errors.Join(os.Chmod(j.temp, 0o711), os.Chmod(dir, 0o711))
}

// measure compiles tests as they are and finds out what each reaches; all must pass.
func (j *judge) measure(ctx context.Context, t tests) (*original, error) {
	o := j.of(t.folder)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.binary == "" {
		dir, err := j.folder("original-")
		if err != nil {
			return nil, err
		}
		binary := filepath.Join(dir, "original.test")
		if o.sum, err = j.compile(ctx, t.folder, "", binary); err != nil {
			return nil, err
		}
		o.binary = binary
		if v := j.test(ctx, binary, t.folder, dir, append([]string{"-test.run=^$"}, drawing...), time.Minute); v.Outcome == Survived {
			o.flags = drawing
		}
	}
	for _, short := range t.modes() {
		if o.reach[short] != nil {
			continue
		}
		r, err := j.record(ctx, t.folder, o, short)
		if err != nil {
			return nil, err
		}
		o.reach[short] = r
	}
	return o, nil
}

// arguments are those of the compiled tests.
func (o *original) arguments(short bool) []string {
	args := append([]string{"-test.failfast", "-test.timeout=0"}, o.flags...)
	if short {
		args = append(args, "-test.short")
	}
	return args
}

// compile compiles the tests of a package and returns the hash of the result,
// which equal code has in common.
func (j *judge) compile(ctx context.Context, folder, overlay, binary string, more ...string) (sum [sha256.Size]byte, err error) {
	args := append([]string{"test", "-c", "-ldflags=-s -w -buildid=", "-o", binary}, more...)
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	if out, err := j.command(ctx, append(args, "./"+folder)...); err != nil {
		return sum, fmt.Errorf("%w: %s", err, complaint(out))
	}
	content, err := os.ReadFile(binary)
	if errors.Is(err, fs.ErrNotExist) {
		return sum, fmt.Errorf("%s has no tests", folder)
	}
	return sha256.Sum256(content), err
}

// command runs the go command and returns what it prints.
func (j *judge) command(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = j.root
	if j.cache != "" {
		cmd.Env = append(os.Environ(), "GOCACHE="+j.cache)
	}
	out, err := cmd.CombinedOutput()
	j.count(cmd)
	return out, err
}

// count adds the CPU time of a command that is over.
func (j *judge) count(cmd *exec.Cmd) {
	if state := cmd.ProcessState; state != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.cpu += state.UserTime() + state.SystemTime()
	}
}

// spent returns the CPU time so far.
func (j *judge) spent() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.cpu
}

// complaint returns the first line of a compiler's output that names a place.
func complaint(out []byte) string {
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "#") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// failure is how a test says that it failed.
var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// test runs compiled tests in their package's folder.
func (j *judge) test(ctx context.Context, binary, folder, temp string, args []string, limit time.Duration) Verdict {
	_, v := j.output(ctx, binary, folder, temp, args, limit)
	return v
}

// output is the same with what the tests print.
func (j *judge) output(ctx context.Context, binary, folder, temp string, args []string, limit time.Duration) ([]byte, Verdict) {
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(bounded, "sh", append([]string{"-c", fmt.Sprintf(`ulimit -d %d; exec "$0" "$@"`, memory), binary}, args...)...)
	cmd.Dir = filepath.Join(j.root, folder)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "BERTH_EFFORT=full") // whatever make test has been told
	cmd.WaitDelay = 5 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	j.count(cmd)
	v := Verdict{Outcome: Survived, By: folder, Took: time.Since(began)}
	if err == nil {
		return out.Bytes(), v
	}
	v.Outcome = Killed
	if errors.Is(bounded.Err(), context.DeadlineExceeded) {
		v.Outcome = TimedOut
	}
	if found := failure.FindSubmatch(out.Bytes()); found != nil {
		v.Test = string(found[1])
	} else if v.Outcome == Killed {
		v.Test = "a panic"
	}
	return out.Bytes(), v
}

// verdict judges a mutant by the tests of some packages that reach it, in their order: first
// the short ones of each, since most mutants die of those, then the whole.
func (j *judge) verdict(ctx context.Context, m *Mutant, by []tests) (v Verdict, err error) {
	began := time.Now()
	defer func() { v.Took = time.Since(began) }()
	dir, err := j.folder("mutant-")
	if err != nil {
		return v, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left goes with j.temp
	overlay, err := j.overlay(dir, m)
	if err != nil {
		return v, err
	}
	binaries := map[string]string{} // by folder; "" is that of the original
	reached, differs := false, false
	for _, short := range []bool{true, false} {
		for i, t := range by {
			if !slices.Contains(t.modes(), short) {
				continue
			}
			o, err := j.measure(ctx, t)
			if err != nil {
				return v, err
			}
			tests := o.reach[short].of(m)
			if j.plain {
				tests = o.reach[short].Tests
			}
			if len(tests) == 0 {
				continue
			}
			reached = true
			binary, compiled := binaries[t.folder]
			if !compiled {
				binary = filepath.Join(dir, fmt.Sprintf("mutant%d.test", i))
				sum, err := j.compile(ctx, t.folder, overlay, binary)
				switch {
				case ctx.Err() != nil:
					return v, ctx.Err()
				case err != nil:
					return Verdict{Outcome: Invalid, Note: err.Error()}, nil
				case sum == o.sum:
					binary = "" // none of these tests can tell
				}
				binaries[t.folder] = binary
			}
			if binary == "" {
				continue
			}
			differs = true
			for _, batch := range batches(tests) {
				args := append(o.arguments(short), chosenTests(batch))
				v = j.test(ctx, binary, t.folder, dir, args, j.limit(batch))
				if v.Outcome == TimedOut { // which may be a machine that is too busy
					v = j.test(ctx, binary, t.folder, dir, args, 4*j.limit(batch))
				}
				if v.Outcome != Survived {
					return v, ctx.Err()
				}
			}
		}
	}
	v.By, v.Outcome = "", Survived
	if differs {
		return v, ctx.Err()
	}
	same, err := j.sameCode(ctx, m, overlay)
	switch {
	case ctx.Err() != nil:
		return v, ctx.Err()
	case err != nil:
		return Verdict{Outcome: Invalid, Note: err.Error()}, nil
	case same:
		v.Outcome, v.Note = Equivalent, "the compiled package is the same as without it"
	case reached:
		v.Note = "the compiled tests are the same as without it"
	default:
		v.Note = "no test reaches it"
	}
	return v, nil
}

// overlay writes the mutant's file and what tells the go command to take it.
func (j *judge) overlay(dir string, m *Mutant) (string, error) {
	original, err := filepath.Abs(filepath.Join(j.root, filepath.FromSlash(m.File.Name)))
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, filepath.Base(original))
	if err := os.WriteFile(changed, m.Source(), 0o600); err != nil {
		return "", err
	}
	return replacing(dir, original, changed)
}

// replacing writes an overlay: what tells the go command to read another file in place of one,
// which need not exist.
func replacing(dir, file, by string) (string, error) {
	content, err := json.Marshal(map[string]map[string]string{"Replace": {file: by}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, content, 0o600)
}

// sameCode tells whether the compiler makes the same of a mutant's package as of
// the original. Compiled tests may be the same also because nothing in them
// reaches the edit.
func (j *judge) sameCode(ctx context.Context, m *Mutant, overlay string) (bool, error) {
	o := j.of(m.Folder())
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.assembly == nil {
		sum, err := j.assembly(ctx, m.Folder(), "")
		if err != nil {
			return false, err
		}
		o.assembly = &sum
	}
	sum, err := j.assembly(ctx, m.Folder(), overlay)
	return sum == *o.assembly, err
}

func (j *judge) assembly(ctx context.Context, folder, overlay string) (sum [sha256.Size]byte, err error) {
	args := []string{"build", "-gcflags=-S", "-o", os.DevNull}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	out, err := j.command(ctx, append(args, "./"+folder)...)
	if err != nil {
		return sum, fmt.Errorf("go build: %w: %s", err, complaint(out))
	}
	return sha256.Sum256(out), nil
}

// all judges mutants, some at a time, until as many as wanted count or next has
// no more, and hands the verdicts to report in the order in which next gave the
// mutants. Those that count are the same however many are judged at a time.
func (j *judge) all(ctx context.Context, jobs, want int, next func() *Mutant, by func(*Mutant) []tests, report func(*Mutant, Verdict)) error {
	type judged struct {
		m *Mutant
		v Verdict
	}
	var (
		mu       sync.Mutex
		free     = sync.NewCond(&mu)
		counted  int // accepted, or perhaps
		started  int
		reported int
		done     = map[int]judged{}
		failed   error
		group    sync.WaitGroup
	)
	for range jobs {
		group.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			defer free.Broadcast()
			for {
				for failed == nil && counted == want && started > reported {
					free.Wait() // one of those under way may not count
				}
				if failed != nil || counted == want {
					return
				}
				m := next()
				if m == nil {
					return
				}
				index := started
				started++
				counted++
				mu.Unlock()
				v, err := j.verdict(ctx, m, by(m))
				mu.Lock()
				if err != nil && failed == nil {
					failed = err
				}
				if !v.counts() {
					counted--
				}
				for done[index] = (judged{m, v}); failed == nil; reported++ {
					d, ok := done[reported]
					if !ok {
						break
					}
					report(d.m, d.v)
					delete(done, reported)
				}
				free.Broadcast()
			}
		})
	}
	group.Wait()
	return failed
}
