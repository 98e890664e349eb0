package service_test

import (
	"errors"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// Tasks that name no account are in the default project of their user, also where a workflow is retried that is older than the
// projects; what was answered before is answered again.
func TestWorkflowsAreInProjects(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	dir, config := t.TempDir(), onePool(8)
	open := func(projects service.Projects) (*service.Host, func()) {
		t.Helper()
		store, err := sqlite.Open(dir, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h, err := service.Open(t.Context(), service.Options{Config: config, Journal: store, Version: "test", Clock: c.now, Projects: projects})
		if err != nil {
			t.Fatal(err)
		}
		return h, func() {
			if err := errors.Join(h.Close(), store.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	flow := func(id string, deadline berth.Time) berth.Workflow {
		own := berth.WorkflowTask{ID: "own", Seconds: 100, Most: 1, Account: "phys"}
		return berth.Workflow{ID: id, Deadline: deadline, Algorithm: "bd-cpar", Repair: berth.RepairHold, Tasks: []berth.WorkflowTask{{ID: "any", Seconds: 100, Most: 1}, own}}
	}
	keyed := ann
	keyed.Key = "k"
	h, stop := open(service.Projects{})
	first, err := h.SubmitWorkflow(t.Context(), keyed, flow("", 9000))
	if err != nil || first.Workflow.State != service.FlowPromised {
		t.Fatalf("%+v, %v", first.Workflow, err)
	}
	if a, err := h.SubmitWorkflow(t.Context(), ann, flow("late", 1001)); err != nil || a.Workflow.State != service.FlowRefused {
		t.Fatalf("%+v, %v", a.Workflow, err)
	}
	stop()
	h, stop = open(service.Projects{List: []service.Project{{Account: "phys", Users: []string{"ann"}}, {Account: "chem", Users: []string{"ann"}, DefaultFor: []string{"ann"}}}})
	defer func() { stop() }()
	if again, err := h.SubmitWorkflow(t.Context(), keyed, flow("", 9000)); err != nil || again.Workflow.Workflow.ID != first.Workflow.Workflow.ID {
		t.Errorf("under the key of before: %+v, %v; want what was answered then", again.Workflow, err)
	}
	inProjects := func(a service.FlowAnswer, err error) {
		t.Helper()
		if err != nil || a.Workflow.State != service.FlowPromised {
			t.Fatalf("%+v, %v", a.Workflow, err)
		}
		for i, want := range []string{"chem", "phys"} {
			if r, err := h.Get(t.Context(), ann.By, a.Workflow.Tasks[i].Reservation); err != nil || r.Request.Account != want {
				t.Errorf("task %d is in the account %q, %v; want %q", i, r.Request.Account, err, want)
			}
		}
	}
	inProjects(h.SubmitWorkflow(t.Context(), ann, flow("new", 9000)))
	inProjects(h.RetryWorkflow(t.Context(), ann, "late", 9000))
	_, err = h.SubmitWorkflow(t.Context(), bob, flow("", 9000))
	wantCode(t, err, berth.Denied)
}

// What was over before the prices changed is told at those of its time, also where the records that said so have been dropped.
func TestUsedAtThePricesOfItsTime(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	dir, config := t.TempDir(), onePool(8)
	config.Limits = policy.Limits{{Scope: policy.Scope{Account: "phys"}, Name: policy.LimitBudget, Value: 10_000}}
	h, store := startOn(t, dir, config, c)
	ask := func(id string, start berth.Time) {
		t.Helper()
		r := berth.Rigid(id, 0, start, start+100, 1, 100)
		r.Account = "phys"
		if no := submit(t, h, ann, r).Reservation.Refusal; no != nil {
			t.Fatal(id, no)
		}
	}
	charged := func(want int64) {
		t.Helper()
		if _, err := h.Quotas(t.Context(), root.By, []service.Principal{ann.By}); err != nil { // what is over by now does not count
			t.Fatal(err)
		}
		list, err := h.AccountQuotas(t.Context(), ann.By)
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		for _, l := range list[0].Limits {
			if l.Name == policy.LimitBudget && l.Used != want {
				t.Errorf("the budget is charged %d, want %d", l.Used, want)
			}
		}
	}
	ask("dropped", 1000)
	c.seconds.Store(2000)
	charged(100)
	if done, err := h.Compact(t.Context(), root, 0); err != nil || done.Dropped == 0 {
		t.Fatal(done, err)
	}
	ask("kept", 2000)
	c.seconds.Store(3000)
	charged(200)
	if err := errors.Join(h.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	config.Prices = policy.Prices{{Site: config.Sites[0].Name, Factor: 3000}}
	h, _ = startOn(t, dir, config, c)
	ask("dear", 3000)
	c.seconds.Store(4000)
	charged(500)
	if used, _, err := h.Usage(t.Context(), ann.By, 0, 1<<30); err != nil || used.Since == 0 || len(used.List) != 1 || used.List[0].Charged != 400 {
		t.Errorf("%+v, %v; want 100 PE-seconds at the prices of before and 300 at those of now", used, err)
	}
}

// The account that a workflow names is one of its user's, also where each task names another one.
func TestAWorkflowNamesAnAccountOfItsUserThatNoTaskUses(t *testing.T) {
	for _, open := range []bool{false, true} {
		h, _ := withProjects(t, open, nil)
		w := berth.Workflow{Deadline: 3000, Algorithm: berth.SlackAlgorithm, Repair: berth.RepairBoth, Tasks: []berth.WorkflowTask{{ID: "a", Seconds: 10, Most: 1}}}
		w.Tasks[0].Account = "phys"
		for account, may := range map[string]bool{"chem": true, "bots": false} {
			w.Account = account
			_, err := h.SubmitWorkflow(t.Context(), asUser("ann"), w)
			coded, is := errors.AsType[*berth.Error](err)
			if denied := is && coded.Code == berth.Denied && coded.Field == "account"; denied == may || may && err != nil {
				t.Errorf("open to all %t, %s: %v", open, account, err)
			}
			if _, err := h.WorkflowOffers(t.Context(), asUser("ann"), w); (err == nil) != may {
				t.Errorf("offers, open to all %t, %s: %v", open, account, err)
			}
		}
	}
}
