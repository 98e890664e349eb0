package main

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/local"
)

// shores is a service in front of sites that share no folder, and workflows over all of them.
type shores struct {
	t     *testing.T
	dir   string
	names []string
	by    []service.Transfer
	has   []berth.Software // at all sites but the first
	sides map[string]*side
	host  *service.Host
	ask   service.Ask
	close func()
}

// newShores starts a service in front of the sites left, right and others that are named. A shell runs
// script to bring a file from left, with the paths of both and the folder.
func newShores(t *testing.T, script string, others ...string) *shores {
	t.Helper()
	s := &shores{t: t, dir: t.TempDir(), names: append([]string{"left", "right"}, others...), sides: map[string]*side{}}
	s.ask = service.Ask{By: service.Principal{User: userName(), Role: service.User}}
	for i, name := range s.names {
		if err := os.Mkdir(filepath.Join(s.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if s.sides[name] = new(side); i > 0 {
			s.by = append(s.by, service.Transfer{From: "left", To: name, Command: []string{"sh", "-c", script, "sh", "{from}", "{to}", s.dir}})
		}
	}
	if len(others) > 0 { // so that a task can say that it will not run where the file is
		s.has = []berth.Software{{Name: "reader"}}
	}
	s.open()
	t.Cleanup(func() { s.close() })
	return s
}

// open opens the sites and the service, over what was there before.
func (s *shores) open() {
	s.t.Helper()
	o := service.Options{Version: "test", Managers: map[string]service.Manager{}, Transfers: s.by}
	var closers []func() error
	for i, name := range s.names {
		at, err := local.Open(local.Options{Site: name, Dir: filepath.Join(s.dir, "site-"+name), Node: name, Cores: 1, ClockLater: true})
		if err != nil {
			s.t.Fatal(err)
		}
		closers = append(closers, at.Close)
		d, err := at.Describe(s.t.Context())
		if err != nil {
			s.t.Fatal(err)
		}
		as, layout, err := site.Import(name, d, site.UnitCore, berth.Late)
		if err != nil {
			s.t.Fatal(err)
		}
		if as.Managed = true; i > 0 {
			as.Software = s.has
		}
		s.sides[name].Site = at
		o.Config.Sites = append(o.Config.Sites, as)
		o.Managers[name] = service.Manager{Kind: "local", Adapter: s.sides[name], Layout: layout, Every: 100 * time.Millisecond, Horizon: d.Horizon(nil, 120)}
	}
	store, err := sqlite.Open(filepath.Join(s.dir, "data"), sqlite.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	o.Journal, o.Log = store, slog.New(slog.NewTextHandler(io.Discard, nil))
	if s.host, err = service.Open(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
	closers = append([]func() error{s.host.Close, store.Close}, closers...)
	s.close = func() {
		for _, end := range closers {
			if err := end(); err != nil {
				s.t.Error(err)
			}
		}
	}
}

// submit promises a workflow of a task at the left that writes a file and one at the right that
// reads it.
func (s *shores) submit(id string, change func(w *berth.Workflow)) {
	s.t.Helper()
	task := func(name, side, command string) berth.WorkflowTask {
		return berth.WorkflowTask{ID: name, Seconds: 60, Alpha: 1, Site: side, Work: berth.Work{
			Command: []string{"sh", "-c", command}, Dir: filepath.Join(s.dir, side), Env: []string{"PATH=" + os.Getenv("PATH")},
		}}
	}
	w := berth.Workflow{
		ID: id, Deadline: berth.Forever, Algorithm: berth.BestAlgorithm, Repair: berth.RepairBoth,
		Tasks: []berth.WorkflowTask{task("make", "left", "echo harbour > raw.txt"), task("use", "right", "cat raw.txt >> read.txt")},
	}
	w.Tasks[0].Work.Outputs, w.Tasks[1].Work.Inputs, w.Tasks[1].After = []string{"raw.txt"}, []string{"raw.txt"}, []int{0}
	if change != nil {
		change(&w)
	}
	a, err := s.host.SubmitWorkflow(s.t.Context(), s.ask, w)
	if err != nil || a.Workflow.Refusal != nil {
		s.t.Fatalf("%+v %v", a.Workflow.Refusal, err)
	}
}

// until polls until a condition holds. No signal tells when it does.
func (s *shores) until(what string, holds func() bool) {
	s.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(2 * time.Minute); !holds(); <-tick.C {
		if time.Now().After(end) {
			s.t.Fatalf("in vain: %s", what)
		}
	}
}

// over waits for the end of a workflow.
func (s *shores) over(id string) (w service.Workflow) {
	s.t.Helper()
	s.until(id+" is over", func() (over bool) {
		var err error
		if w, err = s.host.Workflow(s.t.Context(), s.ask.By, id); err != nil {
			s.t.Fatal(err)
		}
		return w.State.Over()
	})
	return w
}

// read returns a file, empty if there is none.
func (s *shores) read(path ...string) string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{s.dir}, path...)...))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	return string(data)
}

// The files of a workflow get from site to site, also where the service ends in the middle of that
// and starts again; a file that comes broken each time fails the task with that reason, which
// is tried again, and a workflow that is tried again brings what it lacks.
func TestFilesGetFromSiteToSite(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	t.Parallel()
	// The file "wait" keeps the second call waiting, "broken" breaks what comes.
	s := newShores(t, `echo "$1" >> "$3/calls"; cp "$1" "$2"; case $1 in *sha256) exit ;; esac
echo begun > "$3/begun"; while [ -e "$3/wait" ]; do sleep 0.05; done; [ ! -e "$3/broken" ] || echo more >> "$2"`)
	put := func(name string) {
		if err := os.WriteFile(filepath.Join(s.dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(name ...string) {
		if err := os.Remove(filepath.Join(append([]string{s.dir}, name...)...)); err != nil {
			t.Fatal(err)
		}
	}
	put("wait")
	s.submit("whole", nil)
	s.until("the file is on its way", func() bool { return s.read("begun") != "" })
	s.close()
	s.open()
	remove("wait")
	if w := s.over("whole"); w.State != service.FlowSucceeded || s.read("right", "read.txt") != "harbour\n" || strings.Count(s.read("calls"), "\n") != 2 {
		t.Fatalf("%s %+v; read %q, calls:\n%s", w.State, w.Tasks, s.read("right", "read.txt"), s.read("calls"))
	}

	// Broken each time, the task fails with its retries.
	put("broken")
	remove("right", "raw.txt")
	remove("calls")
	s.submit("broken", func(w *berth.Workflow) { w.Tasks[1].Retries = 1 })
	w := s.over("broken")
	if want := "exit code 120: a file that was brought from another site is not the one that was written there"; w.State != service.FlowFailed || w.Tasks[1].Tries != 2 || !strings.HasPrefix(w.Tasks[1].Why, want) {
		t.Errorf("%s %+v, want two tries and %q", w.State, w.Tasks[1], want)
	}
	if got := strings.Count(s.read("calls"), "raw.txt\n"); got != 6 {
		t.Errorf("the file was brought %d times, want three times a try:\n%s", got, s.read("calls"))
	}
	remove("broken")
	if _, err := s.host.RetryWorkflow(t.Context(), s.ask, "broken", 0); err != nil {
		t.Fatal(err)
	}
	if w := s.over("broken"); w.State != service.FlowSucceeded || s.read("right", "read.txt") != "harbour\nharbour\n" {
		t.Errorf("%s %+v; read %q", w.State, w.Tasks, s.read("right", "read.txt"))
	}

	// A workflow that is held brings nothing until it is confirmed; one that is cancelled ends the
	// command, and leaves nothing under the name of the file.
	remove("begun")
	remove("right", "raw.txt")
	put("wait")
	s.submit("held", func(w *berth.Workflow) { w.Hold = 600 })
	if _, err := s.host.ConfirmWorkflow(t.Context(), s.ask, "held"); err != nil {
		t.Fatal(err)
	}
	s.until("the file is on its way", func() bool { return s.read("begun") != "" })
	if _, err := s.host.CancelWorkflow(t.Context(), s.ask, "held"); err != nil {
		t.Fatal(err)
	}
	s.until("the task has ended", func() bool {
		list, err := s.host.Tasks(t.Context(), s.ask.By, engine.TaskID("held", 1, 1))
		if err != nil {
			t.Fatal(err)
		}
		return len(list.List) == 1 && list.List[0].Stage == site.Ended
	})
	if got := s.read("right", "raw.txt"); got != "" {
		t.Errorf("half a file %q has its name", got)
	}
	remove("wait")
}
