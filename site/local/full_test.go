//go:build linux

package local_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/local"
)

// Tasks run in the order in which they were handed in, also after a restart.
func TestTasksRunInOrderAfterARestart(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	s := open(t, dir)
	r := reserveNow(t, s, 0)
	of := func(n int, script string) site.Task {
		one := task(t, r, strconv.Itoa(n), "/bin/sh", "-c", script)
		one.Dir = work
		return one
	}
	submit(t, s, of(1, "while ! [ -e go ]; do sleep 0.05; done; echo 1 >> order"))
	var last site.JobID
	want := []string{"1"}
	for n := 2; n <= 12; n++ {
		last = submit(t, s, of(n, "echo "+strconv.Itoa(n)+" >> order"))
		want = append(want, strconv.Itoa(n))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if err := os.WriteFile(filepath.Join(work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !eventually(20*time.Second, func() bool {
		return slices.ContainsFunc(observe(t, s).Ended, func(j site.Job) bool { return j.ID == last })
	}) {
		t.Fatalf("the last one has not ended: %+v", observe(t, s))
	}
	text, err := os.ReadFile(filepath.Join(work, "order"))
	if err != nil || !slices.Equal(strings.Fields(string(text)), want) {
		t.Errorf("they ran as %q, %v", text, err)
	}
}

// A task whose end cannot be written down, as on a full disk, is not told as ended: it waits, and runs once.
func TestATaskWaitsWhileNothingCanBeWritten(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	s := open(t, dir)
	r := reserveNow(t, s, 0)
	first := task(t, r, "first", "/bin/sh", "-c", "while ! [ -e go ]; do sleep 0.05; done")
	second := task(t, r, "second", "/bin/sh", "-c", "echo ran >> second")
	first.Dir, second.Dir = work, work
	before, id := submit(t, s, first), submit(t, s, second)
	// With a folder of its name there, a file cannot be written, not even by root: as on a full disk.
	var inTheWay []string
	for _, name := range []string{"limit", "ended.json"} {
		path := filepath.Join(dir, "jobs", string(id), name)
		if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		inTheWay = append(inTheWay, path)
	}
	if err := os.WriteFile(filepath.Join(work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ended(t, s, before)
	waits := func(s *local.Site) bool {
		return slices.ContainsFunc(observe(t, s).Pending, func(j site.Job) bool { return j.ID == id })
	}
	if !waits(s) {
		t.Fatalf("it does not wait: %+v", observe(t, s))
	}
	if err := s.Cancel(t.Context(), id); err == nil || !waits(s) {
		t.Errorf("cancelled, which a restart would not know: %v", err)
	}
	for _, path := range inTheWay {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	if job := ended(t, s, id); job.Result.Ending != site.Completed {
		t.Errorf("%+v", job)
	}
	if text, err := os.ReadFile(filepath.Join(work, "second")); err != nil || string(text) != "ran\n" {
		t.Errorf("it wrote %q, %v", text, err)
	}
}

// How a task ended is written down as soon as it can be: meanwhile it counts as running.
func TestTheEndOfATaskIsToldWhenItCanBeWritten(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	s := open(t, dir)
	one := task(t, reserveNow(t, s, 0), "k", "/bin/sh", "-c", "while ! [ -e go ]; do sleep 0.05; done; echo done > out; exit 3")
	one.Dir = work
	id := submit(t, s, one)
	path := filepath.Join(dir, "jobs", string(id), "ended.json")
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !eventually(10*time.Second, func() bool {
		text, err := os.ReadFile(filepath.Join(work, "out"))
		return err == nil && string(text) == "done\n"
	}) {
		t.Fatal("it does not come to its end")
	}
	for _, j := range observe(t, s).Ended {
		t.Errorf("it is told as ended: %+v", j)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if job := ended(t, s, id); job.Result.Ending != site.Failed || job.Result.Code != 3 {
		t.Errorf("%+v", job)
	}
}

// A script is stored once for all indices of an array, and runs for each, also after a restart.
func TestAnArrayHasItsScriptOnce(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	s := open(t, dir)
	r := reserveNow(t, s, 0)
	one := task(t, r, "k")
	one.Command, one.Dir, one.Array, one.Cores = nil, work, berth.PEsOf(1, 2, 3, 4, 5, 6), 1
	one.Script = "#!/bin/sh\nwhile ! [ -e go ]; do sleep 0.05; done\necho $BERTH_ARRAY_TASK_ID >> ran\n# " + strings.Repeat("x", 200_000) + "\n"
	id := submit(t, s, one)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var bytes int64
	seen := map[uint64]bool{}
	err := filepath.WalkDir(filepath.Join(dir, "jobs"), func(_ string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if inode := info.Sys().(*syscall.Stat_t).Ino; !seen[inode] {
			seen[inode] = true
			bytes += info.Size()
		}
		return nil
	})
	if err != nil || bytes > 300_000 {
		t.Errorf("six indices of a script of 200 kB take %d bytes, %v", bytes, err)
	}
	s = open(t, dir)
	if again := submit(t, s, one); again != id {
		t.Errorf("under its key it is job %s, want %s", again, id)
	}
	if err := os.WriteFile(filepath.Join(work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, index := range []site.JobID{"1", "2", "3", "4", "5", "6"} {
		if job := ended(t, s, id+"_"+index); job.Result.Ending != site.Completed {
			t.Fatalf("%+v", job)
		}
	}
	text, err := os.ReadFile(filepath.Join(work, "ran"))
	if err != nil || string(text) != "1\n2\n3\n4\n5\n6\n" {
		t.Errorf("they ran as %q, %v", text, err)
	}
}

// A task whose file cannot be read is not dropped: it may run.
func TestATaskThatCannotBeReadIsKept(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := submit(t, s, task(t, reserveNow(t, s, 0), "k", "/bin/true"))
	ended(t, s, id)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "jobs", string(id), "spec.json")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := local.Open(local.Options{Dir: dir, Site: siteName, Node: "quay", Cores: 4, Shepherd: shepherd(t)}); err == nil || !strings.Contains(err.Error(), path) {
		t.Fatalf("opened with half a task: %v", err)
	}
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if job := ended(t, s, id); job.Result.Ending != site.Completed {
		t.Errorf("%+v", job)
	}
}

// What is sent to the programs of a terminal that closes ends neither a shepherd nor its task.
func TestAShepherdOutlivesTheTerminal(t *testing.T) {
	dir, work := t.TempDir(), t.TempDir()
	s := open(t, dir)
	one := task(t, reserveNow(t, s, 0), "k", "/bin/sh", "-c", "while ! [ -e go ]; do sleep 0.05; done; exit 3")
	one.Dir = work
	id := submit(t, s, one)
	var started struct{ Shepherd struct{ PID int } }
	if !eventually(20*time.Second, func() bool {
		text, err := os.ReadFile(filepath.Join(dir, "jobs", string(id), "started.json"))
		return err == nil && json.Unmarshal(text, &started) == nil && started.Shepherd.PID > 0
	}) {
		t.Fatal("it does not begin")
	}
	if session, err := unix.Getsid(started.Shepherd.PID); err != nil || session != started.Shepherd.PID {
		t.Errorf("its session is %d, %v; want one of its own", session, err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT} {
		if err := syscall.Kill(started.Shepherd.PID, signal); err != nil {
			t.Fatalf("%v: %v", signal, err)
		}
	}
	if err := os.WriteFile(filepath.Join(work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if job := ended(t, s, id); job.Result.Ending != site.Failed || job.Result.Code != 3 {
		t.Errorf("%+v, want an end with code 3", job)
	}
}
