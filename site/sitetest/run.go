package sitetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// The marks that tasks of the suite carry in their environment, for sites that
// run nothing really and only imitate an ending.
const (
	MarkCode  = "SITETEST_CODE"  // exit with this code
	MarkSleep = "SITETEST_SLEEP" // run for some seconds
)

// task returns a task for a reservation that is cancelled when the test ends.
func (f *fixture) task(r site.Reservation, command ...string) site.Task {
	return site.Task{
		Key: strings.ReplaceAll(string(r.Name), "berth_", "task_"), Reservation: r.Name, User: f.User, Partition: f.Partition,
		Command: command, Dir: f.Dir, Env: []string{"PATH=/usr/bin:/bin"}, Output: filepath.Join(f.Dir, string(r.Name)+".out"),
	}
}

// launch tells sites that start nothing by themselves that a reservation is open.
func (f *fixture) launch(t *testing.T, r site.Reservation) {
	t.Helper()
	if l, ok := f.Booker.(site.Launcher); ok {
		if err := l.Launch(f.ctx, r.Name, f.ours(t, r.Name).Shares); err != nil {
			t.Fatal(err)
		}
	}
}

func (f *fixture) submit(t *testing.T, task site.Task) site.JobID {
	t.Helper()
	id, err := f.Runner.Submit(f.ctx, task)
	if err != nil || id == "" {
		t.Fatalf("submit: %q %v", id, err)
	}
	t.Cleanup(func() { _ = f.Runner.Cancel(context.WithoutCancel(f.ctx), id) })
	return id
}

// open books a reservation that begins now and opens it.
func (f *fixture) open(t *testing.T) site.Reservation {
	t.Helper()
	if f.Runner == nil {
		t.Skip("this site runs nothing")
	}
	r := f.soon(t)
	f.book(t, r)
	f.launch(t, r)
	return r
}

// jobs returns what became of a job or of all of an array.
func jobs(list []site.Job, id site.JobID) []site.Job {
	var found []site.Job
	for _, j := range list {
		if j.ID == id || j.Array == id {
			found = append(found, j)
		}
	}
	return found
}

// ended waits until n jobs of an id are over and returns them.
func (f *fixture) ended(t *testing.T, id site.JobID, n int, most berth.Duration) []site.Job {
	t.Helper()
	var over []site.Job
	if !f.Wait(most, func() bool { over = jobs(f.state(t).Ended, id); return len(over) == n }) {
		state := f.state(t)
		t.Fatalf("job %s: %d of %d are over after %d s; running %+v, pending %+v", id, len(over), n, most,
			jobs(state.Running, id), jobs(state.Pending, id))
	}
	return over
}

func (f *fixture) running(t *testing.T, id site.JobID) site.Job {
	t.Helper()
	var found []site.Job
	if !f.Wait(f.Settle, func() bool { found = jobs(f.state(t).Running, id); return len(found) == 1 }) {
		t.Fatalf("job %s does not run within %d s: %+v", id, f.Settle, f.state(t))
	}
	return found[0]
}

func testTask(t *testing.T, f *fixture) {
	r := f.open(t)
	task := f.task(r, "/bin/sh", "-c", "echo $BERTH_RESERVATION_ID in $0", "it's; \"quoted\" $HOME")
	task.Variables = site.Variables{ID: "r17", Site: f.Name, Reservation: r.Name, Start: r.Start, End: r.End}
	id := f.submit(t, task)
	job := f.ended(t, id, 1, f.Settle)[0]
	if job.Result != (site.Result{Ending: site.Completed}) || job.Reservation != string(r.Name) || job.User != f.User {
		t.Errorf("job %+v, want it completed in %s for %s", job, r.Name, f.User)
	}
	if job.Start < r.Start || job.End < job.Start || job.End > r.End {
		t.Errorf("it ran [%d,%d), reserved was [%d,%d)", job.Start, job.End, r.Start, r.End)
	}
	if out, err := os.ReadFile(task.Output); f.Dir != "" && f.reallyRuns() && (err != nil || string(out) != "r17 in it's; \"quoted\" $HOME\n") {
		t.Errorf("it wrote %q %v", out, err)
	}
}

// reallyRuns reports whether commands are really run here.
func (f *fixture) reallyRuns() bool { return f.Dir != Nowhere }

// Nowhere is the Dir of sites that run nothing really.
const Nowhere = "/nonexistent"

func testTaskFails(t *testing.T, f *fixture) {
	r := f.open(t)
	task := f.task(r, "/bin/sh", "-c", "exit $"+MarkCode)
	task.Env = append(task.Env, MarkCode+"=3")
	job := f.ended(t, f.submit(t, task), 1, f.Settle)[0]
	if job.Result != (site.Result{Ending: site.Failed, Code: 3}) {
		t.Errorf("it ended with %+v, want failed with code 3", job.Result)
	}
	reporter, is := f.Observer.(site.Reporter)
	if !is {
		return
	}
	promise, generation, _ := r.Name.Promise(f.Name)
	later := site.Name(promise + "_" + strconv.FormatUint(generation+1, 10))
	for _, name := range []site.Name{r.Name, later} {
		reports, err := reporter.Report(f.ctx, name)
		if err != nil || len(reports) != 1 || reports[0].Stage != site.Ended || reports[0].Result != job.Result || reports[0].Output != task.Output {
			t.Errorf("reports of %s: %+v %v, want the one that failed with code 3 and wrote to %s", name, reports, err, task.Output)
		}
	}
}

func testTaskOnce(t *testing.T, f *fixture) {
	r := f.open(t)
	task := f.task(r, "/bin/sh", "-c", "echo once >> "+string(r.Name)+".log")
	first := f.submit(t, task)
	second := f.submit(t, task)
	if first != second {
		t.Errorf("jobs %s and %s of one key", first, second)
	}
	f.ended(t, first, 1, f.Settle)
	if third := f.submit(t, task); third != first {
		t.Errorf("after its end: job %s, want %s", third, first)
	}
	if log, err := os.ReadFile(filepath.Join(f.Dir, string(r.Name)+".log")); f.reallyRuns() && (err != nil || string(log) != "once\n") {
		t.Errorf("it wrote %q %v", log, err)
	}
}

// A key names a task of one reservation. Another task in the same reservation
// must not take it, and the same key in another reservation is another task.
func testKeyOfOneTask(t *testing.T, f *fixture) {
	r := f.open(t)
	task := f.task(r, "/bin/sh", "-c", "exit $"+MarkCode)
	task.Env = append(task.Env, MarkCode+"=3")
	first := f.submit(t, task)
	changed := task
	changed.Env = append(slices.Clone(task.Env[:len(task.Env)-1]), MarkCode+"=4")
	_, err := f.Runner.Submit(f.ctx, changed)
	if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != berth.Conflict || coded.Field != "key" {
		t.Errorf("another task under the key: %v, want a conflict of the field key", err)
	}
	f.ended(t, first, 1, f.Settle)
	other := f.want(t, 1)
	f.book(t, other)
	elsewhere := task
	elsewhere.Reservation = other.Name
	if second := f.submit(t, elsewhere); second == first {
		t.Errorf("the key in another reservation gives job %s of %s, want a job of its own", second, r.Name)
	}
}

func testArray(t *testing.T, f *fixture) {
	r := f.open(t)
	task := f.task(r, "/bin/true")
	task.Array = berth.PEsOf(1, 2, 5)
	got := map[site.JobID]bool{}
	id := f.submit(t, task)
	for _, job := range f.ended(t, id, 3, 2*f.Settle) {
		got[job.ID] = true
		if job.Result.Ending != site.Completed || job.Array != id {
			t.Errorf("job %+v, want it completed, of array %s", job, id)
		}
	}
	for _, want := range []site.JobID{id + "_1", id + "_2", id + "_5"} {
		if !got[want] {
			t.Errorf("no %s among %v", want, got)
		}
	}
}

// sleeper is a task that would outlast its reservation.
func (f *fixture) sleeper(r site.Reservation) site.Task {
	task := f.task(r, "/bin/sleep", "1000")
	task.Env = append(task.Env, MarkSleep+"=1000")
	return task
}

func testCancel(t *testing.T, f *fixture) {
	r := f.open(t)
	id := f.submit(t, f.sleeper(r))
	job := f.running(t, id)
	if job.End > r.End || job.Start < r.Start || len(job.Shares) != 1 || job.Shares[0].Node != f.Places[0].Node {
		t.Errorf("it runs on %+v until %d at most; reserved is %+v until %d", job.Shares, job.End, r.Shares, r.End)
	}
	for range 2 {
		if err := f.Runner.Cancel(f.ctx, id); err != nil {
			t.Fatal(err)
		}
		if over := f.ended(t, id, 1, f.Settle)[0]; over.Result.Ending != site.Cancelled {
			t.Errorf("it ended with %+v, want cancelled", over.Result)
		}
	}
}

func testLimit(t *testing.T, f *fixture) {
	if f.LimitUnit > 1 {
		t.Skipf("this site counts limits in units of %d s, longer than a test should take", f.LimitUnit)
	}
	r := f.open(t)
	task := f.sleeper(r)
	task.Limit = 2
	job := f.ended(t, f.submit(t, task), 1, f.Settle+task.Limit)[0]
	if job.Result.Ending != site.TimedOut {
		t.Errorf("it ended with %+v, want timeout", job.Result)
	}
}

func testReleaseEndsTask(t *testing.T, f *fixture) {
	r := f.open(t)
	id := f.submit(t, f.sleeper(r))
	f.running(t, id)
	if err := f.Booker.Release(f.ctx, r.Name); err != nil {
		t.Fatal(err)
	}
	if f.ours(t, r.Name) != nil {
		t.Error("it is still there")
	}
	if job := f.ended(t, id, 1, f.Settle)[0]; job.Result.Ending != site.Cancelled {
		t.Errorf("its task ended with %+v, want cancelled", job.Result)
	}
}

func testTaskWaits(t *testing.T, f *fixture) {
	if f.Runner == nil {
		t.Skip("this site runs nothing")
	}
	r := f.want(t, 0)
	r.Start = f.Now() + 4
	r.End = r.Start + 60
	f.book(t, r)
	id := f.submit(t, f.task(r, "/bin/true"))
	if waiting := jobs(f.state(t).Pending, id); len(waiting) != 1 {
		t.Fatalf("pending: %+v, want the task", waiting)
	}
	launched := false
	if !f.Wait(r.Start.Sub(f.Now())+f.Settle, func() bool {
		if !launched && f.Now() >= r.Start {
			launched = true
			f.launch(t, r)
		}
		return len(jobs(f.state(t).Ended, id)) == 1
	}) {
		t.Fatalf("it has not run: %+v", f.state(t))
	}
	if job := jobs(f.state(t).Ended, id)[0]; job.Start < r.Start {
		t.Errorf("it ran from %d, before its reservation began at %d", job.Start, r.Start)
	}
}

func testTaskElsewhere(t *testing.T, f *fixture) {
	r := f.open(t)
	r.Name = site.NameOf(f.Name, t.Name()+" elsewhere", 1)
	_, err := f.Runner.Submit(f.ctx, f.task(r, "/bin/true"))
	failed(t, err, site.NotFound)
}
