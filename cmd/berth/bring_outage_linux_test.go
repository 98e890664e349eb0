package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/local"
)

// side is a local site whose node can be lost, and which can be out of reach. It stays so when the service is
// started again.
type side struct {
	*local.Site

	mu   sync.Mutex
	away bool
	lost bool
	died map[site.JobID]bool // with the node
}

// Observe shows a node that is lost, and that what ran there went with it.
func (s *side) Observe(ctx context.Context) (*site.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return nil, site.Errorf(site.Unreachable, "observe", "there is no way to it")
	}
	state, err := s.Site.Observe(ctx)
	if err != nil {
		return nil, err
	}
	seen := *state
	seen.Nodes, seen.Ended = append([]site.NodeState(nil), state.Nodes...), append([]site.Job(nil), state.Ended...)
	for i := range seen.Nodes {
		if s.lost {
			seen.Nodes[i].Condition, seen.Nodes[i].Reason = site.Down, "fire"
		}
	}
	for i := range seen.Ended {
		if s.died[seen.Ended[i].ID] {
			seen.Ended[i].Result = site.Result{Ending: site.NodeLost}
		}
	}
	return &seen, nil
}

// set has a site be out of reach, or its node lost with what runs there.
func (s *side) set(t *testing.T, away, lost bool) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away, s.lost = away, lost; !lost {
		return
	}
	if s.died == nil {
		s.died = map[site.JobID]bool{}
	}
	state, err := s.Site.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range state.Running {
		s.died[state.Running[i].ID] = true
		if err := s.Cancel(t.Context(), state.Running[i].ID); err != nil {
			t.Fatal(err)
		}
	}
}

// A node is lost while a task there brings a file. The task is tried at another site, with the file from where it was
// written, also where the service stops and starts in the middle of that. Where no site is left, the task has failed for a
// reason that is told, with nothing half done under the name of the file, and runs once the node is back. A site that is out
// of reach for a moment, the one with the file or the one that gets it, changes nothing.
func TestANodeIsLostWhileAFileIsOnItsWay(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	t.Parallel()
	s := newShores(t, `case $1 in *sha256) cp "$1" "$2"; exit ;; esac
head -c 3 "$1" > "$2"; echo begun >> "$3/begun"; while [ -e "$3/wait" ]; do sleep 0.05; done; cp "$1" "$2"`, "far")
	there := filepath.Join(s.dir, "there")
	if err := os.Mkdir(there, 0o700); err != nil {
		t.Fatal(err)
	}
	wait := filepath.Join(s.dir, "wait")
	begun := 0
	// moves waits until a file is on its way, and returns the site to which.
	moves := func(id string) string {
		t.Helper()
		begun++
		s.until("the file of "+id+" is on its way", func() bool { return strings.Count(s.read("begun"), "\n") == begun })
		w, err := s.host.Workflow(t.Context(), s.ask.By, id)
		if err != nil {
			t.Fatal(err)
		}
		return w.Tasks[1].Resource.Site
	}
	other := map[string]string{"right": "far", "far": "right"}
	ran := 0
	// ends wants a workflow to end well, and its task to have read all of the file once.
	ends := func(id, at string, tries int) {
		t.Helper()
		w := s.over(id)
		ran++
		want := strings.Repeat("harbour\n", ran)
		if w.State != service.FlowSucceeded || w.Tasks[1].Resource.Site != at || w.Tasks[1].Tries != tries || s.read("there", "read.txt") != want {
			t.Errorf("%s: %s, want it at %s after %d tries: %+v; read %q, want %q", id, w.State, at, tries, w.Tasks, s.read("there", "read.txt"), want)
		}
	}
	submit := func(id string, retries int) {
		t.Helper()
		if err := os.WriteFile(wait, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(there, "raw.txt")); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		s.submit(id, func(w *berth.Workflow) {
			use := &w.Tasks[1]
			w.Spread, use.Site, use.Software, use.Retries, use.Work.Dir = true, "", "reader", retries, there
		})
	}
	goOn := func() {
		t.Helper()
		if err := os.Remove(wait); err != nil {
			t.Fatal(err)
		}
	}
	for i, restarts := range []bool{false, true} {
		id := fmt.Sprint("lost", i)
		submit(id, 1)
		at := moves(id)
		s.sides[at].set(t, false, true)
		if restarts {
			s.close()
			s.open()
		}
		if again := moves(id); again != other[at] {
			t.Fatalf("it is tried at %q, want %s", again, other[at])
		}
		if got := s.read("there", "raw.txt"); got != "" {
			t.Errorf("half a file %q has its name", got)
		}
		if restarts { // in the middle of the second transfer too
			s.close()
			s.open()
		}
		goOn()
		ends(id, other[at], 2)
		s.sides[at].set(t, false, false)
		s.until("the node is back", func() bool {
			all, err := s.host.Outages(t.Context(), service.Principal{User: "root", Role: service.Operator})
			return err == nil && len(all) == 0
		})
	}

	// Out of reach, first with the file, then for the one that gets it.
	submit("away", 0)
	at := moves("away")
	s.sides["left"].set(t, true, false)
	s.sides[at].set(t, true, false)
	s.until("the sites are known to be out of reach", func() bool {
		views, err := s.host.Sites(t.Context(), s.ask.By)
		n := 0
		for i := range views {
			if !views[i].Reachable {
				n++
			}
		}
		return err == nil && n == 2
	})
	goOn()
	s.until("the task has read its file", func() bool { return len(s.read("there", "read.txt")) == (ran+1)*len("harbour\n") })
	s.sides["left"].set(t, false, false)
	s.sides[at].set(t, false, false)
	ends("away", at, 1)

	// No site is left.
	submit("nowhere", 1)
	at = moves("nowhere")
	s.sides[other[at]].set(t, false, true)
	s.until("the other node is out of use", func() bool {
		all, err := s.host.Outages(t.Context(), service.Principal{User: "root", Role: service.Operator})
		return err == nil && len(all) == 1
	})
	s.sides[at].set(t, false, true)
	w := s.over("nowhere")
	if w.State != service.FlowFailed || w.Tasks[0].Outcome != berth.Succeeded || w.Tasks[1].Why != "there is no place for another try" || s.read("there", "raw.txt") != "" {
		t.Errorf("%s: %+v; file %q", w.State, w.Tasks, s.read("there", "raw.txt"))
	}
	for _, name := range []string{"right", "far"} {
		s.sides[name].set(t, false, false)
	}
	s.until("the nodes are back", func() bool {
		all, err := s.host.Outages(t.Context(), service.Principal{User: "root", Role: service.Operator})
		return err == nil && len(all) == 0
	})
	goOn()
	if _, err := s.host.RetryWorkflow(t.Context(), s.ask, "nowhere", 0); err != nil {
		t.Fatal(err)
	}
	w = s.over("nowhere")
	ends("nowhere", w.Tasks[1].Resource.Site, 2)
}
