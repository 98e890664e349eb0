package laboratory_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/laboratory"
)

// program stands in for berth lab: what it does is said by its flags.
const program = `
case "$*" in
*--hang*) echo '{"done":0.5,"runs":4}'; cat >/dev/null; sleep 60 ;;
*--fail*) echo 'berth: a.swf: 1 of 2 records usable' >&2; echo 'berth:   a.swf:2: bad' >&2; echo 'berth: --sweep: no such thing' >&2; echo 'Run "berth lab --help" for usage.' >&2; exit 2 ;;
*--die*) kill -9 $$ ;;
*--many*) echo '{"done":0,"runs":5000}'; cat >/dev/null; sleep 60 ;;
*) echo '{"done":4,"runs":4}'; echo 'berth: all is well' >&2; mkdir report; echo "$*" > report/flags.txt; ls > report/found.txt; pwd > report/where.txt; env > report/env.txt ;;
esac
`

// lab is a laboratory with a clock of its own.
type lab struct {
	*laboratory.Laboratory
	folder string
	now    time.Time
}

func open(t *testing.T) *lab {
	t.Helper()
	script := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(script, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &lab{folder: filepath.Join(t.TempDir(), "laboratory"), now: time.Unix(1_795_262_400, 0)}
	l.begin(t, script)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func (l *lab) begin(t *testing.T, script string) {
	t.Helper()
	var err error
	l.Laboratory, err = laboratory.Open(laboratory.Options{Folder: l.folder, Program: []string{"sh", script}, Now: func() time.Time { return l.now }})
	if err != nil {
		t.Fatal(err)
	}
}

// send sends a log and returns its id.
func (l *lab) send(t *testing.T, user, name string) string {
	t.Helper()
	u, err := l.Upload(user, name, strings.NewReader("1 0 -1 60 8\n"))
	if err != nil {
		t.Fatal(err)
	}
	return u.ID
}

// start starts a comparison of a log of its own.
func (l *lab) start(t *testing.T, user string, flags ...string) string {
	t.Helper()
	j, err := l.Start(laboratory.Wanted{User: user, Upload: l.send(t, user, "a.swf"), Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	return j.ID
}

// until waits for a comparison to be as wanted: it is of another process, which gives no signal.
func (l *lab) until(t *testing.T, id string, good func(*laboratory.Job) bool) laboratory.Job {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for {
		j, err := l.Job("", true, id)
		if err != nil {
			t.Fatal(err)
		}
		if good(&j) {
			return j
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("it is %+v", j)
		}
	}
}

func over(j *laboratory.Job) bool { return j.State.Over() && j.Ended != time.Time{} }

func running(j *laboratory.Job) bool { return j.State == laboratory.Running && j.Step.Runs > 0 }

// wantCode wants an error of a code with words in it.
func wantCode(t *testing.T, err error, code berth.Code, words ...string) {
	t.Helper()
	coded, is := errors.AsType[*berth.Error](err)
	if !is || coded.Code != code {
		t.Fatalf("error %v, want one of code %s", err, code)
	}
	for _, word := range words {
		if !strings.Contains(coded.Error(), word) {
			t.Errorf("%q has no %q", coded, word)
		}
	}
}

func (l *lab) text(t *testing.T, id, name string) string {
	t.Helper()
	file, err := l.File("ann", false, id, name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestAComparisonRunsInAFolderOfItsOwn(t *testing.T) {
	t.Setenv("BERTH_SECRET", "x")
	l := open(t)
	id := l.start(t, "ann", "--sweep=policy=a,b")
	j := l.until(t, id, over)
	if j.State != laboratory.Done || j.Source != "a.swf" || j.Step != (laboratory.Step{Done: 4, Runs: 4}) {
		t.Errorf("it is %+v", j)
	}
	if diff := cmp.Diff([]string{"env.txt", "flags.txt", "found.txt", "where.txt"}, j.Files); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"all is well"}, j.Notes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"berth", "lab", "--workload", "a.swf", "--sweep=policy=a,b", "--out", "report"}, j.Command); diff != "" {
		t.Error(diff)
	}
	if got := l.text(t, id, "flags.txt"); got != "--workload a.swf --sweep=policy=a,b --out report\n" {
		t.Errorf("flags %q", got)
	}
	if got := l.text(t, id, "found.txt"); got != "a.swf\nreport\n" {
		t.Errorf("the folder has %q", got)
	}
	env, where := l.text(t, id, "env.txt"), strings.TrimSpace(l.text(t, id, "where.txt"))
	if strings.Contains(env, "SECRET") || !strings.Contains(env, "GOMAXPROCS=") {
		t.Errorf("environment %s", env)
	}
	for _, name := range []string{"HOME", "TMPDIR"} { // which a program may fill as it likes
		if !slices.Contains(strings.Split(env, "\n"), name+"="+where) {
			t.Errorf("environment %s; want %s to be %s", env, name, where)
		}
	}
	if _, err := os.Stat(filepath.Join(l.folder, id, "a.swf")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the log stays beside the report: %v", err)
	}
	for _, name := range []string{"a.swf", "../a.swf", "report/env.txt", ""} {
		_, err := l.File("ann", false, id, name)
		wantCode(t, err, berth.NotFound, "has no file")
	}
}

func TestAComparisonTellsWhyItFailed(t *testing.T) {
	l := open(t)
	for flag, want := range map[string]string{
		"--fail": "--sweep: no such thing", "--die": "more than 2 GiB of memory", "--many": "5000 runs; want at most 2000",
	} {
		id := l.start(t, "ann", flag)
		j := l.until(t, id, over)
		if j.State != laboratory.Failed || !strings.Contains(j.Trouble, want) || strings.Contains(j.Trouble, "Run ") || len(j.Files) != 0 {
			t.Errorf("%s: it is %+v", flag, j)
		}
		if flag == "--fail" {
			if diff := cmp.Diff([]string{"a.swf: 1 of 2 records usable", "a.swf:2: bad"}, j.Notes); diff != "" {
				t.Error(diff)
			}
		}
		if _, err := os.Stat(filepath.Join(l.folder, id)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: its folder is still there: %v", flag, err)
		}
	}
}

func TestOneComparisonOfAUserAtATime(t *testing.T) {
	l := open(t)
	first := l.start(t, "ann", "--hang")
	l.until(t, first, running)
	_, err := l.Start(laboratory.Wanted{User: "ann", Upload: l.send(t, "ann", "b.swf")})
	wantCode(t, err, berth.Conflict, first, "running")
	second := l.start(t, "bob") // waits where there is one turn
	if runtime.NumCPU() < 8 {
		l.until(t, second, func(j *laboratory.Job) bool { return j.State == laboratory.Waiting })
	}
	if _, err := l.Cancel("ann", false, first); err != nil {
		t.Fatal(err)
	}
	if j := l.until(t, second, over); j.State != laboratory.Done {
		t.Errorf("the second is %+v", j)
	}
	l.until(t, l.start(t, "ann"), over)
}

func TestCancelledTwiceIsCancelled(t *testing.T) {
	l := open(t)
	id := l.start(t, "ann", "--hang")
	l.until(t, id, running)
	for range 2 {
		if j, err := l.Cancel("ann", false, id); err != nil || j.State != laboratory.Cancelled {
			t.Fatalf("%+v, %v", j, err)
		}
	}
	done := l.start(t, "ann")
	l.until(t, done, over)
	if j, err := l.Cancel("ann", false, done); err != nil || j.State != laboratory.Done || len(j.Files) == 0 {
		t.Errorf("what is done is %+v, %v", j, err)
	}
	waiting := func() string {
		l.start(t, "bob", "--hang")
		return l.start(t, "cid", "--hang")
	}()
	if j, err := l.Cancel("cid", false, waiting); err != nil || j.State != laboratory.Cancelled {
		t.Errorf("%+v, %v", j, err)
	}
}

func TestOthersHaveNothingToDoWithIt(t *testing.T) {
	l := open(t)
	id := l.start(t, "ann", "--hang")
	for _, err := range []error{
		second(l.Job("bob", false, id)), second(l.Cancel("bob", false, id)), second(l.File("bob", false, id, "report.html")),
		second(l.Start(laboratory.Wanted{User: "bob", Upload: l.Uploads("ann")[0].ID})),
	} {
		wantCode(t, err, berth.NotFound, "keeps the newest")
	}
	if len(l.Jobs("bob", false)) != 0 || len(l.Uploads("bob")) != 0 || len(l.Jobs("bob", true)) != 1 {
		t.Error("bob sees what is ann's, or an operator does not")
	}
	if j, err := l.Cancel("olga", true, id); err != nil || j.State != laboratory.Cancelled {
		t.Errorf("an operator: %+v, %v", j, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestARestartKeepsNothingAndSaysSo(t *testing.T) {
	l := open(t)
	id, log := l.start(t, "ann"), l.send(t, "ann", "b.swf")
	l.until(t, id, over)
	l.begin(t, "program") // as after a crash, without Close
	wantCode(t, second(l.Job("ann", false, id)), berth.NotFound, "has been restarted", "start it again")
	wantCode(t, second(l.Start(laboratory.Wanted{User: "ann", Upload: log})), berth.NotFound, "has been restarted", "send it again")
	if left, err := os.ReadDir(l.folder); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	l := open(t)
	var logs []string
	for range 6 {
		logs = append(logs, l.send(t, "ann", "a.swf"))
	}
	l.send(t, "bob", "b.swf")
	var kept []string
	for _, u := range l.Uploads("ann") {
		kept = append(kept, u.ID)
	}
	if diff := cmp.Diff(logs[2:], kept); diff != "" {
		t.Error(diff)
	}
	var jobs []string
	for range 10 {
		jobs = append(jobs, l.start(t, "ann"))
		l.until(t, jobs[len(jobs)-1], over)
	}
	kept = nil
	for _, j := range l.Jobs("ann", false) {
		kept = append(kept, j.ID)
	}
	if diff := cmp.Diff(jobs[2:], kept); diff != "" {
		t.Error(diff)
	}
	l.now = l.now.Add(laboratory.Keep - time.Second)
	if len(l.Jobs("ann", false)) != 8 {
		t.Error("forgotten early")
	}
	l.now = l.now.Add(time.Second)
	if list := l.Jobs("ann", false); len(list) != 0 || len(l.Uploads("ann")) != 0 {
		t.Errorf("%v is kept", list)
	}
	if left, err := os.ReadDir(l.folder); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// endless is a log without end.
type endless struct{ read int64 }

func (e *endless) Read(into []byte) (int, error) {
	e.read += int64(len(into))
	return len(into), nil
}

type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }

func TestLogsThatAreNotTaken(t *testing.T) {
	l := open(t)
	large := &endless{}
	wantCode(t, second(l.Upload("ann", "a.swf", large)), berth.Invalid, "larger than 64 MiB")
	if large.read > laboratory.MaxUpload+1<<20 {
		t.Errorf("%d bytes were read of what is too large", large.read)
	}
	wantCode(t, second(l.Upload("ann", "a.swf", strings.NewReader(""))), berth.Invalid, "empty")
	gone := errors.New("gone")
	if _, err := l.Upload("ann", "a.swf", broken{gone}); !errors.Is(err, gone) {
		t.Error(err)
	}
	if left, err := os.ReadDir(l.folder); err != nil || len(left) != 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// A log that comes in slowly keeps neither others nor too much room.
func TestOneLogOfAUserComesInAtATime(t *testing.T) {
	l := open(t)
	slow, more := io.Pipe()
	sent := make(chan error)
	go func() { sent <- second(l.Upload("ann", "slow.swf", slow)) }()
	if _, err := more.Write([]byte("1")); err != nil {
		t.Fatal(err)
	}
	wantCode(t, second(l.Upload("ann", "a.swf", strings.NewReader("x"))), berth.Conflict, "one at a time")
	l.send(t, "bob", "b.swf")
	if err := more.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	l.send(t, "ann", "a.swf")
}

func TestNamesOfLogs(t *testing.T) {
	l := open(t)
	for given, want := range map[string]string{
		"a.swf": "a.swf", "../../etc/passwd": "passwd", `C:\logs\a b.swf.gz`: "a_b.swf.gz", "--out": "out", "...": "log-", "-": "log-", "report": "log-report",
		"history.jsonl": "log-history.jsonl", "$(rm).swf": "__rm_.swf", "журнал.swf": "______.swf", strings.Repeat("x", 300) + ".swf": strings.Repeat("x", 76) + ".swf",
	} {
		u, err := l.Upload("ann", given, strings.NewReader("x"))
		if err != nil || u.Name != want {
			t.Errorf("%q is called %q, %v; want %q", given, u.Name, err, want)
		}
	}
}

// What prepares the past may fail, or be cancelled.
func TestThePastIsPreparedWhenItsTurnHasCome(t *testing.T) {
	l := open(t)
	type creator = func(string) (io.WriteCloser, error)
	prepare := func(_ context.Context, create creator) ([]string, error) {
		for _, name := range []string{laboratory.HistoryFile, laboratory.SitesFile} {
			file, err := create(name)
			if err != nil {
				return nil, err
			}
			_, err = io.WriteString(file, name)
			if err = errors.Join(err, file.Close()); err != nil {
				return nil, err
			}
		}
		return []string{"--workload", laboratory.HistoryFile}, nil
	}
	j, err := l.Start(laboratory.Wanted{User: "ann", Prepare: prepare})
	if err != nil {
		t.Fatal(err)
	}
	if j = l.until(t, j.ID, over); j.State != laboratory.Done || !slices.Contains(j.Files, laboratory.HistoryFile) || l.text(t, j.ID, laboratory.SitesFile) != laboratory.SitesFile {
		t.Errorf("it is %+v", j)
	}
	j, err = l.Start(laboratory.Wanted{User: "ann", Prepare: func(context.Context, creator) ([]string, error) {
		return nil, berth.Errorf(berth.NotFound, "journal", "nothing")
	}})
	if err != nil {
		t.Fatal(err)
	}
	if j = l.until(t, j.ID, over); j.State != laboratory.Failed || j.Trouble != "journal: nothing" {
		t.Errorf("it is %+v", j)
	}
	entered := make(chan struct{})
	j, err = l.Start(laboratory.Wanted{User: "ann", Prepare: func(ctx context.Context, _ creator) ([]string, error) {
		close(entered)
		<-ctx.Done()
		return nil, ctx.Err()
	}})
	if err != nil {
		t.Fatal(err)
	}
	<-entered
	if j, err = l.Cancel("ann", false, j.ID); err != nil || j.State != laboratory.Cancelled {
		t.Errorf("it is %+v, %v", j, err)
	}
}

func TestNoMoreThanSoManyWait(t *testing.T) {
	l := open(t)
	var err error
	for n := range 64 {
		user := "u" + strings.Repeat("x", n)
		if _, err = l.Start(laboratory.Wanted{User: user, Upload: l.send(t, user, "a.swf"), Flags: []string{"--hang"}}); err != nil {
			break
		}
	}
	wantCode(t, err, berth.Exhausted, "wait already")
}
