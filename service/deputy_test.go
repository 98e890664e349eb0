package service_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// lent is the site of a harbour at which users hand in tasks themselves, and the service does
// so for ann.
type lent struct {
	site.Observer
	site.Booker

	runner site.Runner

	refuses error // what it answers to each task

	mu    sync.Mutex
	asked int
	jobs  []site.JobID // that were handed in
}

func (l *lent) Represents(_ context.Context, user string) error {
	if user != "ann" {
		return site.Errorf(site.Denied, "submit", "this machine knows no user %s", user)
	}
	return nil
}

func (l *lent) Hand(ctx context.Context, task site.Task) (site.JobID, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if l.refuses != nil {
		return "", l.refuses
	}
	job, err := l.runner.Submit(ctx, task)
	l.jobs = append(l.jobs, job)
	return job, err
}

func (*lent) Start(context.Context, string, site.JobID) error { return nil }

// lend has the service of a harbour run tasks as their owners, or as no one.
func (w *harbour) lend(deputy bool) *lent {
	w.t.Helper()
	if err := w.host.Close(); err != nil {
		w.t.Fatal(err)
	}
	m := w.options.Managers["harbour"]
	l := &lent{Observer: m.Adapter, Booker: m.Adapter.(site.Booker), runner: m.Adapter.(site.Runner)}
	m.Kind, m.Adapter = "slurm", l
	if !deputy {
		m.Adapter = struct {
			site.Observer
			site.Booker
		}{l, l}
	}
	w.options.Managers["harbour"] = m
	w.open()
	return l
}

func oneTask(id string) berth.Workflow {
	return berth.Workflow{ID: id, Deadline: berth.Forever, Algorithm: berth.BestAlgorithm, Repair: berth.RepairBoth, Tasks: []berth.WorkflowTask{
		{ID: "only", Seconds: 1000, Alpha: 1, Work: berth.Work{Command: []string{"true"}, Dir: "/"}},
	}}
}

// A site may forget a task while the service is stopped. What is on record of it keeps it from
// being run again, whether it was seen to run or only handed in.
func TestTaskThatItsSiteForgotIsNotRunAgain(t *testing.T) {
	for name, seen := range map[string]int{"handed in": 0, "seen to run": 20} {
		t.Run(name, func(t *testing.T) {
			inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
				w.outcome = func(site.Task) (berth.Duration, site.Result) { return 30, site.Result{Ending: site.Completed} }
				l := w.lend(true)
				w.pass(6)
				if a, err := w.host.SubmitWorkflow(t.Context(), ann, oneTask("w")); err != nil || a.Workflow.State.Over() {
					t.Fatal(a, err)
				}
				w.pass(seen)
				if err := w.host.Close(); err != nil {
					t.Fatal(err)
				}
				if len(l.jobs) != 1 {
					t.Fatalf("handed in: %q", l.jobs)
				}
				w.pass(100)
				w.state()
				w.site.Forget(l.jobs...)
				w.open()
				w.pass(60)
				f, err := w.host.Workflow(t.Context(), ann.By, "w")
				if err != nil || f.State != service.FlowFailed || f.Tasks[0].Why != "the site no longer lists it" {
					t.Errorf("%+v, %v", f, err)
				}
				if len(l.jobs) != 1 {
					t.Errorf("handed in again: %q", l.jobs)
				}
			})
		})
	}
}

// A task that its site refuses to run for its owner, or as it is, has failed with the words of the site, and the site is not asked again. A site that
// cannot be reached is.
func TestATaskThatItsSiteRefusesForGoodHasFailed(t *testing.T) {
	for kind, good := range map[site.Kind]bool{site.Denied: true, site.Invalid: true, site.Unreachable: false} {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
				l := w.lend(true)
				l.refuses = site.Errorf(kind, "submit", "not today")
				w.pass(6)
				if a, err := w.host.SubmitWorkflow(t.Context(), ann, oneTask("w")); err != nil || a.Workflow.State.Over() {
					t.Fatal(a, err)
				}
				w.pass(10)
				f, err := w.host.Workflow(t.Context(), ann.By, "w")
				if err != nil {
					t.Fatal(err)
				}
				l.mu.Lock()
				asked := l.asked
				l.mu.Unlock()
				if good && (f.State != service.FlowFailed || !strings.HasPrefix(f.Tasks[0].Why, "it cannot be run: ") || !strings.Contains(f.Tasks[0].Why, "not today") || asked != 1) {
					t.Errorf("asked %d times: %+v; want 1, and that it has failed", asked, f)
				}
				if !good && (f.State.Over() || asked < 2) {
					t.Errorf("asked %d times: %+v; want more, and that it goes on", asked, f)
				}
			})
		})
	}
}

// Where tasks may not run as their owners, or not as this one, a workflow with commands is
// refused with the reason, and one without is not.
func TestWorkflowsRunAsTheirOwnersOrAreRefused(t *testing.T) {
	bob := service.Ask{By: service.Principal{User: "bob", Role: service.User}}
	for _, c := range []struct {
		name   string
		deputy bool
		by     service.Ask
		user   string
		why    string // empty if it is promised
	}{
		{"not allowed", false, ann, "", "harbour: its adapter does not say run_as"},
		{"as the owner", true, ann, "", ""},
		{"as an unknown user", true, bob, "", "harbour: submit: this machine knows no user bob"},
		{"commands of another user", true, root, "ann", "harbour: tasks run there as ann, who has to submit them"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
				w.lend(c.deputy)
				w.pass(6)
				f := oneTask("w")
				f.User = c.user
				_, err := w.host.SubmitWorkflow(t.Context(), c.by, f)
				if c.why == "" && err != nil || c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)) {
					t.Errorf("%v, want %q", err, c.why)
				}
				if c.why != "" {
					wantCode(t, err, berth.Conflict)
				}
				f = oneTask("plain")
				f.User, f.Tasks[0].Work = c.user, berth.Work{}
				if a, err := w.host.SubmitWorkflow(t.Context(), c.by, f); err != nil || a.Workflow.State.Over() {
					t.Errorf("%+v, %v", a, err)
				}
			})
		})
	}
}
