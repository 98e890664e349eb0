//go:build linux

package local_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/withparent"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/local"
)

// reserveNow books and launches cores for a minute.
func reserveNow(t *testing.T, s *local.Site, cores ...berth.PE) site.Reservation {
	t.Helper()
	r := site.Reservation{
		Name: site.NameOf(siteName, t.Name(), 1), Start: now(), End: now() + 60, Users: []string{me(t)},
		Shares: []site.Share{{Node: "quay", Cores: berth.PEsOf(cores...)}},
	}
	if got, err := s.Reserve(t.Context(), r); err != nil || got.Verdict != site.Made {
		t.Fatalf("%+v %v", got, err)
	}
	if err := s.Launch(t.Context(), r.Name, nil); err != nil {
		t.Fatal(err)
	}
	return r
}

func task(t *testing.T, r site.Reservation, key string, command ...string) site.Task {
	return site.Task{
		Key: key, Reservation: r.Name, User: me(t), Command: command, Dir: t.TempDir(), Env: []string{"PATH=/usr/bin:/bin"}, Output: "out",
	}
}

func submit(t *testing.T, s *local.Site, task site.Task) site.JobID {
	t.Helper()
	id, err := s.Submit(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func observe(t *testing.T, s *local.Site) *site.State {
	t.Helper()
	state, err := s.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// ended waits for the end of a job.
func ended(t *testing.T, s *local.Site, id site.JobID) site.Job {
	t.Helper()
	var job site.Job
	if !eventually(10*time.Second, func() bool {
		for _, job = range observe(t, s).Ended {
			if job.ID == id {
				return true
			}
		}
		return false
	}) {
		t.Fatalf("job %s has not ended: %+v", id, observe(t, s))
	}
	return job
}

// written waits until a file holds a whole line, and returns it.
func written(t *testing.T, path string) string {
	t.Helper()
	var text []byte
	if !eventually(10*time.Second, func() bool {
		text, _ = os.ReadFile(path)
		return strings.HasSuffix(string(text), "\n")
	}) {
		t.Fatalf("%s holds %q", path, text)
	}
	return strings.TrimSpace(string(text))
}

func alive(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// serve is a service that does nothing but wait for its end, in a process of its
// own: it books, submits a task, says that it runs, and hangs.
func serve(text string) {
	var in struct {
		Dir         string
		Reservation site.Reservation
		Task        site.Task
	}
	die := func(err error) {
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
	}
	die(json.Unmarshal([]byte(text), &in))
	s, err := local.Open(local.Options{Site: siteName, Dir: in.Dir, Node: "quay", Cores: 4, Grace: 500 * time.Millisecond})
	die(err)
	ctx := context.Background()
	_, err = s.Reserve(ctx, in.Reservation)
	die(err)
	die(s.Launch(ctx, in.Reservation.Name, nil))
	id, err := s.Submit(ctx, in.Task)
	die(err)
	fmt.Println("running", id)
	select {}
}

func TestJobSurvivesTheKillOfTheService(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	r := site.Reservation{
		Name: site.NameOf(siteName, t.Name(), 1), Start: now(), End: now() + 60, Users: []string{me(t)},
		Shares: []site.Share{{Node: "quay", Cores: berth.PEsOf(0)}},
	}
	task := site.Task{
		Key: "k", Reservation: r.Name, Command: []string{"/bin/sh", "-c", "echo $$; while [ ! -e go ]; do sleep 0.02; done; exit 7"},
		Dir: work, Env: []string{"PATH=/usr/bin:/bin"}, Output: "out",
	}
	text, err := json.Marshal(map[string]any{"Dir": dir, "Reservation": r, "Task": task})
	if err != nil {
		t.Fatal(err)
	}
	service := exec.Command(os.Args[0], "service", string(text))
	service.SysProcAttr = withparent.Attr()
	out, err := service.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	id, ok := strings.CutPrefix(strings.TrimSpace(line), "running ")
	if err != nil || !ok {
		t.Fatalf("service says %q %v", line, err)
	}
	pid := written(t, filepath.Join(work, "out"))
	if err := service.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = service.Wait()
	if !alive(pid) {
		t.Fatal("the task died with its service")
	}
	s := open(t, dir)
	state := observe(t, s)
	if len(state.Running) != 1 || state.Running[0].ID != site.JobID(id) || len(state.Ours) != 1 || state.Running[0].End != r.End {
		t.Fatalf("found again: %+v, want job %s running in its reservation", state, id)
	}
	if again, err := s.Submit(t.Context(), task); err != nil || again != site.JobID(id) {
		t.Errorf("the same key gives %s %v, want %s", again, err, id)
	}
	if err := os.WriteFile(filepath.Join(work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if job := ended(t, s, site.JobID(id)); job.Result != (site.Result{Ending: site.Failed, Code: 7}) {
		t.Errorf("it ended with %+v, want code 7", job.Result)
	}
}

func TestJobEndsWhileNobodyLooks(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	task := task(t, reserveNow(t, s, 0), "k", "/bin/sh", "-c", "echo started; while [ ! -e go ]; do sleep 0.02; done; kill -9 $$")
	id := submit(t, s, task)
	written(t, filepath.Join(task.Dir, "out"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(task.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !eventually(10*time.Second, func() bool {
		_, err := os.Stat(filepath.Join(dir, "jobs", string(id), "ended.json"))
		return err == nil
	}) {
		t.Fatal("it does not end")
	}
	if job := ended(t, open(t, dir), id); job.Result != (site.Result{Ending: site.Failed, Signal: 9}) {
		t.Errorf("it ended with %+v, want signal 9", job.Result)
	}
}

// both runs a test with cgroups, where they are offered, and without.
func both(t *testing.T, test func(*testing.T, *local.Site, string)) {
	for _, without := range []bool{false, true} {
		t.Run("without="+strconv.FormatBool(without), func(t *testing.T) {
			dir := t.TempDir()
			test(t, openWith(t, local.Options{Dir: dir, NoCgroups: without}), dir)
		})
	}
}

func TestTaskDiesWithItsShepherd(t *testing.T) {
	both(t, func(t *testing.T, s *local.Site, dir string) {
		task := task(t, reserveNow(t, s, 0), "k", "/bin/sh", "-c", "echo $$; sleep 1000")
		id := submit(t, s, task)
		pid := written(t, filepath.Join(task.Dir, "out"))
		var st struct{ Shepherd struct{ PID int } }
		text, err := os.ReadFile(filepath.Join(dir, "jobs", string(id), "started.json"))
		if err != nil || json.Unmarshal(text, &st) != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(st.Shepherd.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if job := ended(t, s, id); job.Result.Ending != site.NodeLost {
			t.Errorf("it ended with %+v, want it lost", job.Result)
		}
		if !eventually(5*time.Second, func() bool { return !alive(pid) }) {
			t.Error("the task lives on without a shepherd")
		}
	})
}

func TestNothingIsLeftBehind(t *testing.T) {
	both(t, func(t *testing.T, s *local.Site, _ string) {
		task := task(t, reserveNow(t, s, 0), "k", "/bin/sh", "-c", "setsid sh -c 'echo $$ > left; exec sleep 1000' & while [ ! -s left ]; do sleep 0.02; done")
		id := submit(t, s, task)
		if job := ended(t, s, id); job.Result.Ending != site.Completed {
			t.Errorf("it ended with %+v", job)
		}
		if pid := written(t, filepath.Join(task.Dir, "left")); alive(pid) {
			t.Errorf("process %s, which left its session, lives on", pid)
		}
	})
}

func TestGraceIsGivenAndEnds(t *testing.T) {
	s := open(t, t.TempDir())
	r := reserveNow(t, s, 0, 1)
	polite := task(t, r, "polite", "/bin/sh", "-c", "trap 'echo bye; exit 5' TERM; echo started; while :; do sleep 0.02; done")
	stubborn := task(t, r, "stubborn", "/bin/sh", "-c", "trap '' TERM; echo started; while :; do sleep 0.02; done")
	for _, task := range []*site.Task{&polite, &stubborn} {
		task.Cores = 1
		id := submit(t, s, *task)
		written(t, filepath.Join(task.Dir, "out"))
		began := time.Now()
		if err := s.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		job, took := ended(t, s, id), time.Since(began)
		switch {
		case job.Reason != "cancelled while it ran":
			t.Errorf("it ended because %q", job.Reason)
		case task == &polite && job.Result != (site.Result{Ending: site.Cancelled, Code: 5}):
			t.Errorf("polite ended with %+v, want code 5 of its own", job.Result)
		case task == &stubborn && (job.Result != (site.Result{Ending: site.Cancelled, Signal: 9}) || took < 500*time.Millisecond):
			t.Errorf("stubborn ended with %+v after %s, want it killed after the grace", job.Result, took)
		}
	}
	if out, _ := os.ReadFile(filepath.Join(polite.Dir, "out")); !strings.HasPrefix(string(out), "started\n") || !strings.HasSuffix(string(out), "bye\n") {
		t.Errorf("polite wrote %q", out)
	}
}

func TestTaskIsBoundToItsCores(t *testing.T) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	var usable []int
	for cpu := range 1024 {
		if set.IsSet(cpu) {
			usable = append(usable, cpu)
		}
	}
	s := open(t, t.TempDir())
	task := task(t, reserveNow(t, s, 1), "k", "/bin/grep", "Cpus_allowed_list", "/proc/self/status")
	ended(t, s, submit(t, s, task))
	want := "Cpus_allowed_list:\t" + strconv.Itoa(usable[1%len(usable)])
	if got := written(t, filepath.Join(task.Dir, "out")); got != want {
		t.Errorf("it may use %q, want %q", got, want)
	}
}

func TestLimitFollowsTheReservation(t *testing.T) {
	s := open(t, t.TempDir())
	r := reserveNow(t, s, 0)
	id := submit(t, s, task(t, r, "k", "/bin/sleep", "1000"))
	longer := r
	longer.End += 600
	if got, err := s.Change(t.Context(), longer); err != nil || got.Verdict != site.Made {
		t.Fatalf("longer: %+v %v", got, err)
	}
	if job := observe(t, s).Running[0]; job.End != longer.End {
		t.Errorf("its limit is %d, want %d", job.End, longer.End)
	}
	shorter := r
	shorter.End = now() + 1
	if got, err := s.Change(t.Context(), shorter); err != nil || got.Verdict != site.Made {
		t.Fatalf("shorter: %+v %v", got, err)
	}
	if job := ended(t, s, id); job.Result.Ending != site.TimedOut || job.Reason != "its reservation was over" || job.End > shorter.End+1 {
		t.Errorf("it ended with %+v at %d because %q, want timeout at %d", job.Result, job.End, job.Reason, shorter.End)
	}
	if left := observe(t, s).Ours; len(left) > 0 {
		t.Errorf("reservations %+v after their end", left)
	}
}

// A task that has had its own time is told so.
func TestTaskIsToldThatItsLimitWasOver(t *testing.T) {
	s := open(t, t.TempDir())
	sleeper := task(t, reserveNow(t, s, 0), "k", "/bin/sleep", "1000")
	sleeper.Limit = 1
	if job := ended(t, s, submit(t, s, sleeper)); job.Result.Ending != site.TimedOut || job.Reason != "its limit of 1 s was over" {
		t.Errorf("it ended with %+v because %q, want timeout", job.Result, job.Reason)
	}
}

// A task that was handed in before its reservation moved learns from its environment when
// that begins and ends now.
func TestTaskLearnsWhereItsReservationHasMoved(t *testing.T) {
	s := open(t, t.TempDir())
	r := site.Reservation{
		Name: site.NameOf(siteName, t.Name(), 1), Start: now() + 3600, End: now() + 7200, Users: []string{me(t)},
		Shares: []site.Share{{Node: "quay", Cores: berth.PEsOf(0)}},
	}
	if got, err := s.Reserve(t.Context(), r); err != nil || got.Verdict != site.Made {
		t.Fatalf("%+v %v", got, err)
	}
	early := task(t, r, "early", "/bin/sh", "-c", "echo $BERTH_START $BERTH_END $BERTH_RESERVATION_ID")
	early.Variables = site.Variables{ID: "r1", Site: siteName, Reservation: r.Name, Start: r.Start, End: r.End}
	job := submit(t, s, early)
	r.Start, r.End = now(), now()+60
	if got, err := s.Change(t.Context(), r); err != nil || got.Verdict != site.Made {
		t.Fatalf("%+v %v", got, err)
	}
	if err := s.Launch(t.Context(), r.Name, nil); err != nil {
		t.Fatal(err)
	}
	ended(t, s, job)
	if got, want := written(t, filepath.Join(early.Dir, "out")), fmt.Sprintf("%d %d r1", r.Start, r.End); got != want {
		t.Errorf("the task learned %q, want %q", got, want)
	}
	if again, err := s.Submit(t.Context(), early); err != nil || again != job {
		t.Errorf("under its key it is %s, %v; want job %s", again, err, job)
	}
}

func TestTasksShareNoCore(t *testing.T) {
	s := open(t, t.TempDir())
	r := reserveNow(t, s, 0, 1, 3)
	for i := range 4 {
		task := task(t, r, "k"+strconv.Itoa(i), "/bin/sleep", "1000")
		task.Cores = 1
		submit(t, s, task)
	}
	state := observe(t, s)
	var all []berth.PE
	for _, j := range state.Running {
		all = append(all, j.Shares[0].Cores.Runs()[0].Lo)
	}
	if len(state.Pending) != 1 || !berth.PEsOf(all...).Equal(berth.PEsOf(0, 1, 3)) || state.Nodes[0].Busy != 3 {
		t.Fatalf("on cores %v run %d and %d wait, want one on each of 0, 1, 3 and one waiting", all, len(state.Running), len(state.Pending))
	}
	if err := s.Cancel(t.Context(), state.Running[1].ID); err != nil {
		t.Fatal(err)
	}
	if !eventually(10*time.Second, func() bool { s := observe(t, s); return len(s.Pending) == 0 && len(s.Running) == 3 }) {
		t.Errorf("the one that waited does not take the core: %+v", observe(t, s))
	}
}

func TestDrainedMachineStartsNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	r := reserveNow(t, s, 0)
	if err := s.Drain(t.Context(), "quay", "new fan"); err != nil {
		t.Fatal(err)
	}
	id := submit(t, s, task(t, r, "k", "/bin/true"))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if state := observe(t, s); len(state.Pending) != 1 || state.Nodes[0].Condition != site.Drained || state.Nodes[0].Reason != "new fan" {
		t.Fatalf("after a restart: %+v, want it drained and the task waiting", state)
	}
	if err := s.Resume(t.Context(), "quay"); err != nil {
		t.Fatal(err)
	}
	if job := ended(t, s, id); job.Result.Ending != site.Completed {
		t.Errorf("it ended with %+v", job)
	}
}

func TestWhatCannotBeStarted(t *testing.T) {
	s := open(t, t.TempDir())
	r := reserveNow(t, s, 0)
	for name, c := range map[string]struct {
		spoil func(*site.Task)
		code  int
		words string
	}{
		"no-program": {func(t *site.Task) { t.Command = []string{"no-such-program"} }, 127, "not on the PATH"},
		"no-file":    {func(t *site.Task) { t.Command = []string{"/no/such/program"} }, 127, "no such file"},
		"no-dir":     {func(t *site.Task) { t.Dir = "/no/such/folder" }, 127, "/no/such/folder"},
		"no-output":  {func(t *site.Task) { t.Output = "/no/such/folder/out" }, 127, "/no/such/folder/out"},
		"not-run":    {func(t *site.Task) { t.Command = []string{"/etc/passwd"} }, 126, "permission denied"},
		"no-shell":   {func(t *site.Task) { t.Command, t.Script = nil, "#!/no/such/shell\n" }, 127, "no such file"},
	} {
		task := task(t, r, name, "/bin/true")
		c.spoil(&task)
		if job := ended(t, s, submit(t, s, task)); job.Result != (site.Result{Ending: site.Failed, Code: c.code}) || !strings.Contains(job.Reason, c.words) {
			t.Errorf("%s ended with %+v because %q, want code %d and %q", name, job.Result, job.Reason, c.code, c.words)
		}
	}
}

func TestScriptArraysAndOutputs(t *testing.T) {
	s := open(t, t.TempDir())
	task := task(t, reserveNow(t, s, 0, 1), "k")
	task.Command, task.Args = nil, []string{"a b", "'$c'"}
	task.Script = "#!/bin/sh\necho \"$BERTH_ARRAY_JOB_ID/$BERTH_ARRAY_TASK_ID on $BERTH_CORES: $# $1 $2\"\necho failure >&2\n"
	task.Array, task.Cores, task.Output, task.ErrorOutput = berth.PEsOf(3, 4), 1, "%A-%a.out", "%j.err"
	id := submit(t, s, task)
	for _, index := range []string{"3", "4"} {
		if job := ended(t, s, id+"_"+site.JobID(index)); job.Result.Ending != site.Completed {
			t.Errorf("index %s: %+v", index, job)
		}
		out, _ := os.ReadFile(filepath.Join(task.Dir, string(id)+"-"+index+".out"))
		want := fmt.Sprintf("%s/%s on ", id, index)
		if got := string(out); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, ": 2 a b '$c'\n") {
			t.Errorf("index %s wrote %q", index, got)
		}
		if text, _ := os.ReadFile(filepath.Join(task.Dir, string(id)+"_"+index+".err")); string(text) != "failure\n" {
			t.Errorf("index %s complained %q", index, text)
		}
	}
}

func TestUsersRunAsThemselves(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to run tasks as user nobody")
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skipf("needs a user nobody: %v", err)
	}
	dir := t.TempDir()
	s, err := local.Open(local.Options{Site: siteName, Dir: dir, Node: "quay", Cores: 4, Users: map[string]string{"ada": "nobody", "bob": "no-such-account"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	r := site.Reservation{
		Name: site.NameOf(siteName, t.Name(), 1), Start: now(), End: now() + 60, Users: []string{"ada", "bob", me(t)},
		Shares: []site.Share{{Node: "quay"}},
	}
	if got, err := s.Reserve(t.Context(), r); err != nil || got.Verdict != site.Made {
		t.Fatalf("%+v %v", got, err)
	}
	if err := s.Launch(t.Context(), r.Name, nil); err != nil {
		t.Fatal(err)
	}
	task := task(t, r, "k", "/bin/sh", "-c", "id -u; id -G; cat /proc/$PPID/environ; cat "+dir+"/lock")
	task.User, task.Output = "ada", "/dev/shm/berth-local-test-%j"
	task.ErrorOutput = "/dev/shm/berth-local-test-%j"
	task.Dir = "/"
	id := submit(t, s, task)
	ended(t, s, id)
	path := "/dev/shm/berth-local-test-" + string(id)
	t.Cleanup(func() { _ = os.Remove(path) })
	out, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(out), nobody.Uid+"\n") || strings.Contains(strings.SplitN(string(out), "\n", 3)[1], " 0") ||
		strings.Count(string(out), "Permission denied") != 2 {
		t.Errorf("it wrote %q %v, want uid %s, no group 0, and no right to its shepherd or the site's folder", out, err, nobody.Uid)
	}
	if info, err := os.Stat(path); err != nil || fmt.Sprint(info.Sys().(*syscall.Stat_t).Uid) != nobody.Uid {
		t.Errorf("its output belongs to %+v %v", info, err)
	}
	for who, words := range map[string]string{"bob": "user bob has no account here", me(t): "user " + me(t) + " is not in the map of users"} {
		task.Key, task.User = "k-"+who, who
		if _, err := s.Submit(t.Context(), task); site.KindOf(err) != site.Denied || !strings.Contains(err.Error(), words) {
			t.Errorf("for %s: %v, want it denied since %s", who, err, words)
		}
	}
}

func TestOnlyOwnUser(t *testing.T) {
	s := open(t, t.TempDir())
	r := site.Reservation{
		Name: site.NameOf(siteName, t.Name(), 1), Start: now(), End: now() + 60, Users: []string{"somebody-else"}, Shares: []site.Share{{Node: "quay"}},
	}
	if got, err := s.Reserve(t.Context(), r); err != nil || got.Verdict != site.Made {
		t.Fatalf("%+v %v", got, err)
	}
	for _, who := range []string{"somebody-else", me(t)} {
		task := task(t, r, "k", "/bin/true")
		task.User = who
		if _, err := s.Submit(t.Context(), task); site.KindOf(err) != site.Denied {
			t.Errorf("for %s: %v, want it denied", who, err)
		}
	}
}

func TestFolderIsOpenOnce(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	_, err := local.Open(local.Options{Site: siteName, Dir: dir})
	var wrong *berth.Error
	if !errors.As(err, &wrong) || wrong.Code != berth.Conflict {
		t.Errorf("opened twice: %v, want a conflict", err)
	}
}

func TestBookingsSurviveATornLine(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var made []site.Reservation
	for i := range 3 {
		r := site.Reservation{
			Name: site.NameOf(siteName, t.Name()+strconv.Itoa(i), 1), Start: now() + 600, End: now() + 700, Users: []string{me(t)},
			Shares: []site.Share{{Node: "quay", Cores: berth.PEsOf(berth.PE(i))}},
		}
		if got, err := s.Reserve(t.Context(), r); err != nil || got.Verdict != site.Made {
			t.Fatalf("%+v %v", got, err)
		}
		made = append(made, r)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "bookings.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text[:len(text)-5], 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	drift := site.FindDrift(made, observe(t, s))
	if len(drift) != 1 || drift[0].Kind != site.Missing || drift[0].Name != made[2].Name {
		t.Fatalf("drift %+v, want the last missing", drift)
	}
	if got, err := s.Reserve(t.Context(), made[2]); err != nil || got.Verdict != site.Made {
		t.Fatalf("%+v %v", got, err)
	}
}

func TestDoctorFindsNothingBad(t *testing.T) {
	s := open(t, t.TempDir())
	checks := map[string]bool{}
	for _, f := range s.Doctor(t.Context()) {
		checks[f.Check] = true
		if f.Level == site.Bad {
			t.Errorf("%+v", f)
		}
		if f.Level == site.Warning && f.Hint == "" {
			t.Errorf("%+v has no hint", f)
		}
	}
	for _, want := range []string{"cores", "cgroup", "users", "shepherd"} {
		if !checks[want] {
			t.Errorf("nothing is said of %s", want)
		}
	}
}

// Tasks make their files with the umask of their site, which is the usual one by default.
func TestTasksHaveAUmask(t *testing.T) {
	for _, c := range []struct {
		umask int
		want  string
	}{{0, "0022"}, {0o077, "0077"}} {
		s := openWith(t, local.Options{Dir: t.TempDir(), Umask: c.umask})
		spec := task(t, reserveNow(t, s, 0), "umask", "sh", "-c", "umask")
		if got := ended(t, s, submit(t, s, spec)); got.Result.Code != 0 {
			t.Fatalf("%+v", got)
		}
		if text, err := os.ReadFile(filepath.Join(spec.Dir, "out")); err != nil || strings.TrimSpace(string(text)) != c.want {
			t.Errorf("a umask of %#o gave %q (%v), want %s", c.umask, text, err, c.want)
		}
	}
}

// A number of cores is given if others that were promised a number can move, and as many
// as were asked for.
func TestCountedCoresMakeRoom(t *testing.T) {
	s := open(t, t.TempDir())
	began := now()
	book := func(id string, from, until berth.Time, cores berth.Count) site.Outcome {
		got, err := s.Reserve(t.Context(), site.Reservation{
			Name: site.NameOf(siteName, id, 1), Start: began + from, End: began + until, Users: []string{me(t)}, Cores: cores,
		})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	// Two cores are taken throughout; of the others each is free at a time of its own.
	book("both", 100, 400, 2)
	first := book("first", 100, 200, 1)
	book("second", 100, 200, 1)
	if err := s.Release(t.Context(), site.Name(first.Booking.Name)); err != nil {
		t.Fatal(err)
	}
	book("third", 200, 300, 1)
	if got := book("across", 150, 250, 1); got.Verdict != site.Made || got.Booking.Shares[0].Cores.Count() != 1 {
		t.Errorf("one of two cores, for which another has to move: %+v", got)
	}
	if got := book("none left", 150, 250, 1); got.Verdict != site.Refused {
		t.Errorf("a fifth of four cores: %+v", got)
	}
	if got := book("too many", 500, 600, 5); got.Verdict != site.Refused {
		t.Errorf("five of four cores: %+v", got)
	}
}

// A reservation is opened on cores of this machine alone.
func TestLaunchOnCoresThatAreNotHere(t *testing.T) {
	s := open(t, t.TempDir())
	r := reserveNow(t, s, 0)
	for name, shares := range map[string][]site.Share{
		"another node": {{Node: "pier", Cores: berth.PEsOf(1)}},
		"two nodes":    {{Node: "quay", Cores: berth.PEsOf(1)}, {Node: "quay", Cores: berth.PEsOf(2)}},
		"a fifth core": {{Node: "quay", Cores: berth.PEsOf(4)}},
	} {
		if err := s.Launch(t.Context(), r.Name, shares); site.KindOf(err) != site.NotFound {
			t.Errorf("%s: %v, want it not found", name, err)
		}
	}
	if err := s.Launch(t.Context(), r.Name, []site.Share{{Node: "quay", Cores: berth.PEsOf(3)}}); err != nil {
		t.Errorf("the last core: %v", err)
	}
}

// The end of a reservation ends the tasks that wait in it, and those of no other.
func TestTheEndOfAReservationEndsWhatWaitsInIt(t *testing.T) {
	var clock hands
	s := openWith(t, local.Options{Dir: t.TempDir(), Clock: clock.read, Keep: time.Hour})
	if err := s.Drain(t.Context(), "quay", "so that tasks wait"); err != nil {
		t.Fatal(err)
	}
	waiting := map[string]site.JobID{}
	for id, lasts := range map[string]berth.Time{"short": 60, "long": 600} {
		r := site.Reservation{Name: site.NameOf(siteName, id, 1), Start: now(), End: now() + lasts, Users: []string{me(t)}, Cores: 1}
		if got, err := s.Reserve(t.Context(), r); err != nil || got.Verdict != site.Made {
			t.Fatalf("%+v %v", got, err)
		}
		if err := s.Launch(t.Context(), r.Name, nil); err != nil {
			t.Fatal(err)
		}
		waiting[id] = submit(t, s, task(t, r, id, "/bin/true"))
	}
	clock.ahead.Store(100)
	state := observe(t, s)
	if len(state.Pending) != 1 || state.Pending[0].ID != waiting["long"] {
		t.Errorf("there wait %+v, want that of the reservation that goes on", state.Pending)
	}
	if len(state.Ended) != 1 || state.Ended[0].ID != waiting["short"] || state.Ended[0].Result.Ending != site.Cancelled {
		t.Errorf("ended are %+v, want that of the reservation that is over", state.Ended)
	}
}

// The number of cores of a reservation changes only while nothing runs in it; its end always does.
func TestCoresChangeOnlyWhileNothingRuns(t *testing.T) {
	s := open(t, t.TempDir())
	r := site.Reservation{Name: site.NameOf(siteName, t.Name(), 1), Start: now(), End: now() + 60, Users: []string{me(t)}, Cores: 1}
	if got, err := s.Reserve(t.Context(), r); err != nil || got.Verdict != site.Made {
		t.Fatalf("%+v %v", got, err)
	}
	change := func(cores berth.Count, longer berth.Duration) site.Outcome {
		t.Helper()
		next := r
		next.Cores, next.End = cores, r.End.Add(longer)
		got, err := s.Change(t.Context(), next)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := change(2, 0); got.Verdict != site.Made || got.Booking.Shares[0].Cores.Count() != 2 {
		t.Fatalf("before it begins: %+v", got)
	}
	if err := s.Launch(t.Context(), r.Name, nil); err != nil {
		t.Fatal(err)
	}
	id := submit(t, s, task(t, r, "k", "/bin/sleep", "60"))
	if got := stageOf(t, s, id, site.Running); got != site.Running {
		t.Fatalf("the task is %s", got)
	}
	if got := change(3, 0); got.Verdict != site.Refused || got.Words != "a task runs on its cores" {
		t.Errorf("another number while a task runs: %+v", got)
	}
	if got := change(2, 100); got.Verdict != site.Made {
		t.Errorf("a later end while a task runs: %+v", got)
	}
}
