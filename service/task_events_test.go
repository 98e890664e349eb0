package service_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// taskTales listens for a user, behind a notice or from now on, and returns what they have heard of tasks so far, each
// as reservation, job, what happened, stage and result.
func (w *harbour) taskTales(by service.Principal, after uint64) func() []string {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	var heard []service.Notice
	ended := make(chan struct{})
	notices := w.host.Listen(ctx, by, after)
	go func() {
		defer close(ended)
		for n, err := range notices {
			if err != nil {
				return
			}
			heard = append(heard, n)
		}
	}()
	return func() (tales []string) {
		synctest.Wait()
		cancel()
		<-ended
		for i := range heard {
			switch n := &heard[i]; {
			case n.What == service.TaskLeft:
				tales = append(tales, fmt.Sprintf("%s %s %s", n.Reservation.ID, n.What, n.Trouble))
			case n.Task != nil:
				tales = append(tales, fmt.Sprintf("%s %s %s %s %v", n.Reservation.ID, n.Task.ID, n.What, n.Task.Stage, n.Task.Result))
			}
		}
		return tales
	}
}

// stopFor has the service stopped for some seconds, and returns what the owner hears of
// tasks from the first look on.
func (w *harbour) stopFor(seconds int) func() []string {
	w.t.Helper()
	if err := w.host.Close(); err != nil {
		w.t.Fatal(err)
	}
	last, err := w.store.Last(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.pass(seconds)
	w.open()
	return w.taskTales(ann.By, service.NoticesOf(last.Number))
}

func wantTales(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func failsAfter(seconds berth.Duration) func(site.Task) (berth.Duration, site.Result) {
	return func(site.Task) (berth.Duration, site.Result) {
		return seconds, site.Result{Ending: site.Failed, Code: 3}
	}
}

func TestStartsAndEndsOfTasksAreEvents(t *testing.T) {
	for _, unit := range []site.Unit{site.UnitNode, site.UnitCore} {
		t.Run(string(unit), func(t *testing.T) {
			inHarbour(t, unit, func(t *testing.T, w *harbour) {
				w.outcome = failsAfter(30)
				w.reserve("r", 2, 0, 3600)
				w.pass(10)
				ann, root, bob := w.taskTales(ann.By, 0), w.taskTales(root.By, 0), w.taskTales(bob.By, 0)
				job := w.run("r")
				w.pass(15)
				w.pass(60)
				want := []string{fmt.Sprintf("r %s task_started running %v", job, site.Result{}), fmt.Sprintf("r %s task_ended ended {failed 3 0}", job)}
				wantTales(t, "the owner hears", ann(), want...)
				wantTales(t, "an operator hears", root(), want...)
				wantTales(t, "another user hears", bob())
			})
		})
	}
}

// A task that ran between two looks has started and ended all the same.
func TestShortTaskHasStartedToo(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.outcome = failsAfter(1)
		w.reserve("r", 2, 0, 3600)
		w.pass(10)
		tales := w.taskTales(ann.By, 0)
		job := w.run("r")
		w.pass(15)
		wantTales(t, "of a task of a second", tales(),
			fmt.Sprintf("r %s task_started running %v", job, site.Result{}), fmt.Sprintf("r %s task_ended ended {failed 3 0}", job))
	})
}

// What was told of a task is on record: a service that starts again, from the records or
// from a snapshot, tells what happened meanwhile, and nothing twice.
func TestTaskEventsAreToldOnceOverRestarts(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.outcome = failsAfter(100)
		w.reserve("r", 1, 0, 3600)
		w.reserve("s", 1, 0, 3600)
		w.pass(10)
		first := w.run("r")
		w.pass(10)
		for _, every := range []uint64{1, 1 << 40} { // with a snapshot after each record, and without any
			w.options.SnapshotEvery = every
			tales := w.stopFor(0)
			w.pass(10)
			wantTales(t, "after a restart while the task ran", tales())
		}
		second := w.run("s")
		w.pass(10)
		tales := w.stopFor(300) // both end between two looks
		w.pass(10)
		got := tales()
		slices.Sort(got)
		wantTales(t, "what ended while the service was down", got,
			fmt.Sprintf("r %s task_ended ended {failed 3 0}", first), fmt.Sprintf("s %s task_ended ended {failed 3 0}", second))
	})
}

// The history of a reservation tells of its tasks too, with how they ended, in its order,
// and of those that could not follow it, over restarts.
func TestHistoryTellsOfTasks(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.outcome = failsAfter(30)
		w.reserve("r", 2, 0, 3600)
		w.reserve("other", 1, 0, 3600)
		w.pass(10)
		job := string(w.run("r"))
		w.run("other")
		w.pass(60)
		tales := w.taskTales(ann.By, 0)
		w.host.TellLeft(t.Context(), "harbour", "r", "job 7 waits")
		w.host.TellLeft(t.Context(), "harbour", "none", "job 8 waits")
		wantTales(t, "those who listen are told", tales(), "r task_left job 7 waits")
		want := []string{
			"task_started " + job + " running { 0 0}", "task_ended " + job + " ended {failed 3 0}", "task_left job 7 waits",
		}
		for _, what := range []string{"at once", "after a restart"} {
			for _, by := range []service.Principal{ann.By, root.By} {
				wantTales(t, what+" "+by.User+" is told", w.tasksPast(by, "r"), want...)
			}
			w.stopFor(5)()
		}
	})
}

// tasksPast returns what the history of a reservation tells of its tasks.
func (w *harbour) tasksPast(by service.Principal, id string) (tales []string) {
	w.t.Helper()
	past, _, err := w.host.History(w.t.Context(), by, id)
	if err != nil {
		w.t.Error(err)
	}
	for _, h := range past.List {
		switch {
		case h.Task != nil:
			tales = append(tales, fmt.Sprintf("%s %s %s %v", h.What, h.Task.ID, h.Task.Stage, h.Task.Result))
		case h.Trouble != "":
			tales = append(tales, fmt.Sprintf("%s %s", h.What, h.Trouble))
		}
	}
	return tales
}
