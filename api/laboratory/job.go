package laboratory

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
)

// State is how far a comparison is.
type State string

// The states.
const (
	Waiting   State = "waiting" // for its turn
	Running   State = "running"
	Done      State = "done"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// Over reports whether nothing more comes of it.
func (s State) Over() bool { return s == Done || s == Failed || s == Cancelled }

// Step is how far the program says it is: runs done of all runs; those under way count by their part.
// It writes one as JSON on each line of stdout.
type Step struct {
	Done float64 `json:"done"`
	Runs int     `json:"runs"`
}

// The files that a comparison has beside its report: what was replayed, if it was the
// service's own past.
const (
	HistoryFile = "history.jsonl"
	SitesFile   = "sites.yaml"

	reportFolder = "report"
)

// Wanted is a comparison to be made.
type Wanted struct {
	User string
	// Upload is the log that is replayed; empty if Prepare writes one.
	Upload string
	// Prepare writes what is replayed to files that it creates by their names, and returns the
	// flags about it. It is called when its turn has come.
	Prepare func(ctx context.Context, create func(name string) (io.WriteCloser, error)) ([]string, error)
	// Flags are those of berth lab, but for what is replayed and --out.
	Flags []string
}

// Job is a comparison.
type Job struct {
	ID      string
	User    string
	Source  string // the name of a log; empty of the service's own past
	State   State
	Step    Step
	Command []string // what does the same, once it is known
	// Notes are what the program said of the log, and Trouble is why it failed.
	Notes   []string
	Trouble string
	Made    time.Time
	Started time.Time // zero before
	Ended   time.Time // zero before
	Expires time.Time // when it is forgotten; zero before it has ended
	Files   []string  // in order
}

// job is a comparison with what keeps it going. The laboratory's lock guards it.
type job struct {
	Job
	wanted Wanted
	folder string
	cancel context.CancelFunc
}

// Start has a comparison made when its turn comes: one of a user at a time. Errors are of
// code Conflict where one of theirs is not over, Exhausted where too many wait, NotFound where
// there is no such log.
func (l *Laboratory) Start(w Wanted) (Job, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep()
	waiting, own := 0, 0
	for _, j := range l.jobs {
		if j.State == Waiting {
			waiting++
		}
		if j.User == w.User && !j.State.Over() {
			return Job{}, berth.Errorf(berth.Conflict, "lab", "your comparison %s is %s; wait for its end or cancel it", j.ID, j.State)
		}
	}
	if waiting >= maxWaiting {
		return Job{}, berth.Errorf(berth.Exhausted, "lab", "%d comparisons wait already; try again later, or use berth lab on your own machine", waiting)
	}
	if l.context.Err() != nil {
		return Job{}, berth.Errorf(berth.Unavailable, "lab", "the service is stopping")
	}
	j := &job{Job: Job{ID: l.id(), User: w.User, State: Waiting, Made: l.options.Now(), Notes: []string{}, Command: []string{}, Files: []string{}}, wanted: w}
	j.folder = filepath.Join(l.options.Folder, j.ID)
	if err := os.Mkdir(j.folder, 0o700); err != nil {
		return Job{}, fmt.Errorf("make room for a comparison: %w", err)
	}
	if w.Upload != "" {
		if err := l.take(j, w.Upload); err != nil {
			_ = os.RemoveAll(j.folder) // swept at the next start if it cannot be now
			return Job{}, err
		}
	}
	ctx, cancel := context.WithCancel(l.context)
	j.cancel = cancel
	l.jobs = append(l.jobs, j)
	for _, other := range slices.Backward(slices.Clone(l.jobs)) {
		if other.User == w.User {
			if own++; own > maxJobs {
				l.forget(other)
			}
		}
	}
	l.running.Go(func() {
		defer cancel()
		l.run(ctx, j)
	})
	return j.told(), nil
}

// take gives a comparison a name of its own for a log.
func (l *Laboratory) take(j *job, id string) error {
	at := slices.IndexFunc(l.uploads, func(u *Upload) bool { return u.ID == id && u.User == j.User })
	if at < 0 {
		return l.unknown("log", id)
	}
	u := l.uploads[at]
	u.Expires = l.options.Now().Add(Keep)
	j.Source = u.Name
	if err := os.Link(l.pathOf(u), filepath.Join(j.folder, u.Name)); err != nil {
		return fmt.Errorf("take a log: %w", err)
	}
	return nil
}

// told returns a copy for others.
func (j *job) told() Job {
	told := j.Job
	told.Notes, told.Files, told.Command = slices.Clone(j.Notes), slices.Clone(j.Files), slices.Clone(j.Command)
	return told
}

// change changes comparisons under the lock.
func (l *Laboratory) change(how func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	how()
}

// run makes a comparison.
func (l *Laboratory) run(ctx context.Context, j *job) {
	var err error
	select {
	case l.turns <- struct{}{}:
		err = l.compare(ctx, j)
		<-l.turns
	case <-ctx.Done():
		err = ctx.Err()
	}
	var files []string
	if err == nil {
		files, err = j.files()
	}
	if j.wanted.Upload != "" {
		err = errors.Join(err, os.Remove(filepath.Join(j.folder, j.Source))) // which the user has, and can send again
	}
	l.change(func() {
		j.Ended = l.options.Now()
		j.Expires = j.Ended.Add(Keep)
		switch {
		case j.State == Cancelled: // who cancelled it was told so
		case ctx.Err() != nil:
			j.State = Cancelled
		case err != nil:
			j.State, j.Trouble = Failed, err.Error()
			if _, is := errors.AsType[*berth.Error](err); !is {
				j.Trouble = "an internal error; the log of the service says more"
				l.options.Log.Error("a comparison failed", "id", j.ID, "user", j.User, "error", err)
			}
		default:
			j.State, j.Files, j.Step.Done = Done, files, float64(j.Step.Runs)
		}
		if j.State != Done {
			_ = os.RemoveAll(j.folder) // swept at the next start if it cannot be now
		}
	})
}

// compare runs the program.
func (l *Laboratory) compare(ctx context.Context, j *job) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ctx, cancel := context.WithTimeoutCause(ctx, MaxTime, berth.Errorf(berth.Exhausted, "", "not done within %s; take fewer combinations, replications or jobs, or use berth lab on a machine of your own", MaxTime))
	defer cancel()
	l.change(func() {
		if j.State == Waiting {
			j.State, j.Started = Running, l.options.Now()
		}
	})
	flags := []string{"--workload", j.Source}
	if j.wanted.Upload == "" {
		var err error
		if flags, err = j.wanted.Prepare(ctx, j.create); err != nil {
			return err
		}
	}
	flags = append(flags, j.wanted.Flags...)
	l.change(func() { j.Command = slices.Concat([]string{"berth", "lab"}, flags, []string{"--out", reportFolder}) })
	line := slices.Concat(l.options.Program, flags, []string{"--out", reportFolder})
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Dir = j.folder
	// One worker leaves the others to the service; what the environment holds is none of
	// the program's business but for where it runs.
	cmd.Env = []string{"GOMAXPROCS=" + fmt.Sprint(max(1, runtime.NumCPU()/2)), "HOME=" + j.folder, "TMPDIR=" + j.folder, "PATH=" + os.Getenv("PATH")}
	cmd.WaitDelay = 5 * time.Second
	alive, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start a comparison: %w", err)
	}
	defer func() { _ = alive.Close() }() // with which it would end, had it not
	cmd.Cancel = func() error {
		_ = alive.Close() // what it has started, if anything, hears of it
		return cmd.Process.Kill()
	}
	steps, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start a comparison: %w", err)
	}
	said := &notes{}
	cmd.Stderr = said
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a comparison: %w", err)
	}
	l.follow(j, steps, stop)
	err = cmd.Wait()
	text, trouble := said.divided(err != nil)
	l.change(func() { j.Notes = text })
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		return nil
	case trouble == "" || strings.Contains(trouble, "out of memory") || strings.HasPrefix(trouble, "fatal error"):
		return berth.Errorf(berth.Exhausted, "", "it ended early (%v), as it does where it needs more than %d GiB of memory; take fewer jobs, or use berth lab on a machine of your own", err, MaxMemory>>30)
	}
	return &berth.Error{Code: berth.Invalid, Msg: trouble}
}

// create creates a file for what is replayed.
func (j *job) create(name string) (io.WriteCloser, error) {
	return os.OpenFile(filepath.Join(j.folder, name), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
}

// follow notes how far the program is, until it has closed its output.
func (l *Laboratory) follow(j *job, steps io.Reader, stop context.CancelCauseFunc) {
	lines := bufio.NewScanner(steps)
	for lines.Scan() {
		var s Step
		if json.Unmarshal(lines.Bytes(), &s) != nil || s.Runs <= 0 {
			continue
		}
		l.change(func() { j.Step = s })
		if s.Runs > MaxRuns {
			stop(berth.Errorf(berth.Exhausted, "", "%d runs; want at most %d: take fewer values or replications, or use berth lab on a machine of your own", s.Runs, MaxRuns))
		}
	}
	_, _ = io.Copy(io.Discard, steps) // a line without end
}

// maxSaid bounds what is kept of what the program says.
const maxSaid = 16 << 10

// notes keeps the beginning of what is written.
type notes struct {
	mu   sync.Mutex
	text []byte
}

func (n *notes) Write(data []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.text = append(n.text, data[:min(len(data), maxSaid-len(n.text))]...)
	return len(data), nil
}

// divided returns what was said line by line and, of a program that failed, apart from that
// the last message, which says why.
func (n *notes) divided(failed bool) (said []string, trouble string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	said = []string{}
	for line := range strings.Lines(string(n.text)) {
		line = strings.TrimRight(line, "\r\n")
		message, is := strings.CutPrefix(line, "berth: ")
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, `Run "berth`):
		case is || len(said) == 0:
			said = append(said, strings.TrimSpace(message))
		default:
			said[len(said)-1] += "\n" + strings.TrimSpace(line)
		}
	}
	if failed && len(said) > 0 {
		trouble = said[len(said)-1]
		said = said[:len(said)-1]
	}
	return said, trouble
}

// files lists what came of a comparison.
func (j *job) files() ([]string, error) {
	list := []string{}
	entries, err := os.ReadDir(filepath.Join(j.folder, reportFolder))
	for _, e := range entries {
		list = append(list, e.Name())
	}
	if j.Source == "" {
		list = append(list, HistoryFile, SitesFile)
	}
	slices.Sort(list)
	return list, err
}

// find returns the comparison of an id that a user may see; of everybody's if they see all.
func (l *Laboratory) find(user string, all bool, id string) (*job, error) {
	l.sweep()
	at := slices.IndexFunc(l.jobs, func(j *job) bool { return j.ID == id && (all || j.User == user) })
	if at < 0 {
		return nil, l.unknown("comparison", id)
	}
	return l.jobs[at], nil
}

// Jobs lists the comparisons of a user by age, or of everybody.
func (l *Laboratory) Jobs(user string, all bool) []Job {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep()
	list := []Job{}
	for _, j := range l.jobs {
		if all || j.User == user {
			list = append(list, j.told())
		}
	}
	return list
}

// Job returns a comparison. The error is NotFound if there is none that the user may see.
func (l *Laboratory) Job(user string, all bool, id string) (Job, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j, err := l.find(user, all, id)
	if err != nil {
		return Job{}, err
	}
	return j.told(), nil
}

// Cancel ends a comparison; of one that is over it changes nothing.
func (l *Laboratory) Cancel(user string, all bool, id string) (Job, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j, err := l.find(user, all, id)
	if err != nil {
		return Job{}, err
	}
	if !j.State.Over() {
		j.State, j.Ended = Cancelled, l.options.Now()
		j.Expires = j.Ended.Add(Keep)
		j.cancel()
	}
	return j.told(), nil
}

// forget removes a comparison with its files.
func (l *Laboratory) forget(j *job) {
	l.jobs = slices.DeleteFunc(l.jobs, func(o *job) bool { return o == j })
	j.cancel()
	_ = os.RemoveAll(j.folder) // swept at the next start if it cannot be now
}

// File opens a file that a comparison has left.
func (l *Laboratory) File(user string, all bool, id, name string) (*os.File, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	j, err := l.find(user, all, id)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(j.Files, name) {
		return nil, berth.Errorf(berth.NotFound, "file", "comparison %s, which is %s, has no file %.60q", j.ID, j.State, name)
	}
	folder := filepath.Join(j.folder, reportFolder)
	if name == HistoryFile || name == SitesFile {
		folder = j.folder
	}
	file, err := open(folder, name)
	if err != nil {
		return nil, fmt.Errorf("open a report: %w", err)
	}
	return file, nil
}
