package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// wantCode wants an error of a code that says something.
func wantCode(t *testing.T, err error, code berth.Code, says string) {
	t.Helper()
	told, is := errors.AsType[*berth.Error](err)
	if !is || told.Code != code || !strings.Contains(told.Error(), says) {
		t.Errorf("got %v, want %s: %s", err, code, says)
	}
}

// Who may use one site gets no workflow over two, and learns nothing of one that another has there.
func TestFilesBetweenSitesThatSomeMayNotUse(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	t.Parallel()
	s := newShores(t, `cp "$1" "$2"`)
	s.submit("both", nil)
	within := s.ask
	within.By.Sites = service.NewSiteSet([]string{"left"})
	w, err := s.host.Workflow(t.Context(), s.ask.By, "both")
	if err != nil {
		t.Fatal(err)
	}
	again := berth.Workflow{ID: "again", Deadline: berth.Forever, Algorithm: berth.BestAlgorithm, Repair: berth.RepairBoth, Tasks: w.Workflow.Tasks}
	if a, err := s.host.SubmitWorkflow(t.Context(), within, again); err == nil && a.Workflow.Refusal == nil {
		t.Errorf("who may use the left alone is promised a task at the right: %+v", a.Workflow)
	}
	if _, err := s.host.CancelWorkflow(t.Context(), within, "both"); err == nil {
		t.Error("who may not use the right has ended a workflow there")
	}
	if w := s.over("both"); w.State != service.FlowSucceeded || s.read("right", "read.txt") != "harbour\n" {
		t.Errorf("%s %+v; read %q", w.State, w.Tasks, s.read("right", "read.txt"))
	}
}

// A task that brings a file is changed by its workflow alone; where its reservation is given back in the
// middle of that it has failed, with nothing half done under the name of the file. What happens is told
// behind the last event that was heard, over a stop of the service.
func TestWhatIsAskedWhileAFileIsOnItsWay(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	t.Parallel()
	s := newShores(t, `head -c 3 "$1" > "$2"; case $1 in *sha256) cp "$1" "$2"; exit ;; esac
echo begun >> "$3/begun"; while [ -e "$3/wait" ]; do sleep 0.05; done; cp "$1" "$2"`)
	put := func() {
		if err := os.WriteFile(filepath.Join(s.dir, "wait"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// heard returns the events about workflows behind a number, until one says that a workflow is over.
	heard := func(after uint64) (words []string, last uint64) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for n, err := range s.host.Listen(ctx, s.ask.By, after) {
			if err != nil {
				t.Fatalf("after %d and %v: %v", after, words, err)
			}
			if n.Workflow == nil {
				continue
			}
			word := n.What + " " + n.Workflow.ID
			if n.Workflow.Task != "" {
				word += " " + n.Workflow.Task + " " + string(n.Workflow.Outcome)
			}
			if words, last = append(words, word), n.Number; n.What == "workflow_over" {
				return append(words, string(n.Workflow.Outcome)), last
			}
		}
		t.Fatalf("after %d there is no end: %v", after, words)
		return nil, 0
	}
	use := engine.TaskID("given", 1, 1)
	first := s.host.LastEvent()
	put()
	s.submit("given", nil)
	s.until("the file is on its way", func() bool { return s.read("begun") != "" })
	r, err := s.host.Get(t.Context(), s.ask.By, use)
	if err != nil {
		t.Fatal(err)
	}
	other := *r.Request.Clone()
	_, err = s.host.Modify(t.Context(), s.ask, use, other)
	wantCode(t, err, berth.Conflict, "it can be extended or released")
	if _, err := s.host.Release(t.Context(), s.ask, use); err != nil {
		t.Fatal(err)
	}
	if w := s.over("given"); w.State != service.FlowFailed || w.Tasks[0].Outcome != berth.Succeeded {
		t.Errorf("%s %+v; want the task that brings alone to fail", w.State, w.Tasks)
	}
	s.until("the command has ended", func() bool {
		list, err := s.host.Tasks(t.Context(), s.ask.By, use)
		if err != nil {
			t.Fatal(err)
		}
		return len(list.List) == 1 && list.List[0].Stage == site.Ended
	})
	if got := s.read("right", "raw.txt"); got != "" {
		t.Errorf("half a file %q has its name", got)
	}
	words, last := heard(first)
	if got, want := strings.Join(words, ", "), "workflow_promised given, task_over given make succeeded, workflow_replanned given, task_over given use failed, workflow_over given, failed"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}

	// Another is cancelled. Who heard all of the first hears that alone.
	s.submit("cancelled", nil)
	s.until("its file is on its way", func() bool { return strings.Count(s.read("begun"), "\n") == 2 })
	if _, err := s.host.CancelWorkflow(t.Context(), s.ask, "cancelled"); err != nil {
		t.Fatal(err)
	}
	words, _ = heard(last)
	if got, want := strings.Join(words, ", "), "workflow_promised cancelled, task_over cancelled make succeeded, workflow_replanned cancelled, workflow_over cancelled, cancelled"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
	if err := os.Remove(filepath.Join(s.dir, "wait")); err != nil {
		t.Fatal(err)
	}
	s.close()
	s.open()
	last = s.host.LastEvent() // what was told before the stop, of the command that ended for example, is kept no longer
	s.submit("later", nil)
	words, _ = heard(last)
	if got, want := strings.Join(words, ", "), "workflow_promised later, task_over later make succeeded, workflow_replanned later, task_over later use succeeded, workflow_over later, succeeded"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
}
