package service_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// gatedHarbour is a harbour that knows accounts, and says who may use them.
type gatedHarbour struct {
	manyByItself
	asked *[]string
}

func (g gatedHarbour) Admits(_ context.Context, _ *site.Partition, e *site.Entry) (site.Admission, error) {
	*g.asked = append(*g.asked, e.User+" "+e.Account+" "+e.QOS)
	if e.Account == "closed" || e.QOS == "closed" {
		return site.Admission{No: "they may not"}, nil
	}
	return site.Admission{}, nil
}

// inGatedHarbour is inHarbour at a site that knows accounts.
func inGatedHarbour(t *testing.T, limits policy.Limits, test func(t *testing.T, w *harbour, asked *[]string)) {
	t.Helper()
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		if err := w.host.Close(); err != nil {
			t.Fatal(err)
		}
		asked := []string{}
		m := w.options.Managers["harbour"]
		m.Adapter = gatedHarbour{m.Adapter.(manyByItself), &asked}
		w.options.Managers["harbour"], w.options.Config.Limits = m, limits
		w.open()
		test(t, w, &asked)
	})
}

// inAccounts is a workflow of two tasks, in the accounts bio and chem.
func inAccounts() berth.Workflow {
	f := oneBehindAnother(berth.RepairBoth)
	f.Account, f.QOS, f.Tasks[1].Account = "bio", "low", "chem"
	return f
}

// Tasks run in the accounts and with the QOS of their workflow, or in their own, and so are their reservations at the site, before
// a restart and after it; further tries too.
func TestTasksRunInTheirAccounts(t *testing.T) {
	inGatedHarbour(t, nil, func(t *testing.T, w *harbour, _ *[]string) {
		var ran []string
		w.outcome = func(task site.Task) (berth.Duration, site.Result) {
			ran = append(ran, task.Name+" "+task.Account+" "+task.QOS)
			if len(ran) == 1 {
				return 20, site.Result{Ending: site.Failed, Code: 1}
			}
			return 100, site.Result{Ending: site.Completed}
		}
		answer, err := w.host.SubmitWorkflow(t.Context(), ann, inAccounts())
		if err != nil || answer.Workflow.State != service.FlowPromised {
			t.Fatalf("%+v, %v", answer.Workflow, err)
		}
		w.pass(10)
		state, err := w.site.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var booked []string
		for i := range state.Ours {
			booked = append(booked, strings.Join(state.Ours[i].Accounts, ","))
		}
		if slices.Sort(booked); !slices.Equal(booked, []string{"bio", "chem"}) {
			t.Errorf("the site has reservations for %q", booked)
		}
		if err := w.host.Close(); err != nil {
			t.Fatal(err)
		}
		w.open()
		w.pass(600)
		f, err := w.host.Workflow(t.Context(), ann.By, "flow")
		if err != nil || f.State != service.FlowSucceeded || f.Workflow.Account != "bio" || f.Workflow.Tasks[1].Account != "chem" {
			t.Errorf("%s: %+v, %v", f.State, f.Workflow, err)
		}
		if want := []string{"a bio low", "a bio low", "b chem low"}; !slices.Equal(ran, want) {
			t.Errorf("ran %q, want %q", ran, want)
		}
	})
}

// The site is asked before a workflow is decided about, offered or retried whether its user may use the accounts and QOS of its
// tasks, once for each; what names none is not asked about.
func TestSitesAreAskedAboutAccountsOfTasks(t *testing.T) {
	inGatedHarbour(t, nil, func(t *testing.T, w *harbour, asked *[]string) {
		plain := oneBehindAnother(berth.RepairBoth)
		plain.ID = "plain"
		if _, err := w.host.SubmitWorkflow(t.Context(), ann, plain); err != nil || len(*asked) > 0 {
			t.Errorf("without an account: %v, asked %q", err, *asked)
		}
		f := inAccounts()
		f.Tasks = append(f.Tasks, f.Tasks[0], f.Tasks[0])
		f.Tasks[2].ID, f.Tasks[3].ID, f.Tasks[3].QOS = "c", "d", "high"
		if _, err := w.host.SubmitWorkflow(t.Context(), ann, f); err != nil {
			t.Fatal(err)
		}
		if want := []string{"ann bio low", "ann chem low", "ann bio high"}; !slices.Equal(*asked, want) {
			t.Errorf("asked %q, want %q", *asked, want)
		}
		closed := func(what string, err error) {
			t.Helper()
			coded, is := errors.AsType[*berth.Error](err)
			if !is || coded.Code != berth.Denied || !strings.Contains(err.Error(), `task "b"`) || !strings.Contains(err.Error(), "they may not") {
				t.Errorf("%s: %v", what, err)
			}
		}
		no := inAccounts()
		no.ID, no.Tasks[1].Account = "no", "closed"
		_, err := w.host.SubmitWorkflow(t.Context(), ann, no)
		closed("submitted", err)
		_, err = w.host.WorkflowOffers(t.Context(), ann, no)
		closed("offers", err)
	})
}

// A workflow that is retried is asked about anew, but for the tasks that have succeeded.
func TestSitesAreAskedAboutWhatIsRetried(t *testing.T) {
	inGatedHarbour(t, nil, func(t *testing.T, w *harbour, asked *[]string) {
		w.outcome = func(task site.Task) (berth.Duration, site.Result) {
			if task.Name == "b" {
				return 20, site.Result{Ending: site.Failed, Code: 1}
			}
			return 100, site.Result{Ending: site.Completed}
		}
		if _, err := w.host.SubmitWorkflow(t.Context(), ann, inAccounts()); err != nil {
			t.Fatal(err)
		}
		w.pass(1200)
		f, err := w.host.Workflow(t.Context(), ann.By, "flow")
		if err != nil || f.State != service.FlowFailed || f.Tasks[0].Outcome != berth.Succeeded {
			t.Fatalf("%s: %+v, %v", f.State, f.Tasks, err)
		}
		*asked = nil
		answer, err := w.host.RetryWorkflow(t.Context(), ann, "flow", berth.Forever)
		if err != nil || answer.Workflow.Workflow.Account != "bio" || !slices.Equal(*asked, []string{"ann chem low"}) {
			t.Errorf("asked %q, %+v, %v", *asked, answer.Workflow, err)
		}
	})
}

// The budget of an account ends a task that is late, and refuses a workflow; the refusal says whose it is.
func TestBudgetsOfAccountsBindWorkflows(t *testing.T) {
	limits := policy.Limits{{Scope: policy.Scope{Account: "bio"}, Name: policy.LimitBudget, Value: 410}}
	inGatedHarbour(t, limits, func(t *testing.T, w *harbour, _ *[]string) {
		w.outcome = func(task site.Task) (berth.Duration, site.Result) {
			return 430, site.Result{Ending: site.Completed}
		}
		f := inAccounts()
		f.Tasks[0].Retries = 0
		if _, err := w.host.SubmitWorkflow(t.Context(), ann, f); err != nil {
			t.Fatal(err)
		}
		second := inAccounts()
		second.ID = "second"
		answer, err := w.host.SubmitWorkflow(t.Context(), ann, second)
		if no := answer.Workflow.Refusal; err != nil || no == nil || no.Exceeded == nil || no.Exceeded.Account != "bio" || no.Exceeded.Limit != "budget" || len(answer.Offers) > 0 {
			t.Errorf("%+v, %v", answer, err)
		}
		w.pass(600)
		is, err := w.host.Workflow(t.Context(), ann.By, "flow")
		if err != nil || is.State != service.FlowFailed || !strings.Contains(is.Tasks[0].Why, "more is beyond the limit budget of account bio: 440 of 410 PE-seconds") {
			t.Errorf("%s: %+v, %v", is.State, is.Tasks[0], err)
		}
	})
}

// A deadline that is offered can be asked for and held a while after it was offered, until a person has read it.
func TestAnOfferedDeadlineCanBeTakenLater(t *testing.T) {
	c := &clock{}
	c.seconds.Store(9000)
	h := start(t, t.TempDir(), onePool(4), c)
	for name, ask := range map[string]func(f berth.Workflow) ([]engine.WorkflowOffer, error){
		"offers": func(f berth.Workflow) ([]engine.WorkflowOffer, error) { return h.WorkflowOffers(t.Context(), bob, f) },
		"refusal": func(f berth.Workflow) ([]engine.WorkflowOffer, error) {
			f.ID, f.Deadline = "refused", berth.Time(c.seconds.Load()+150)
			answer, err := h.SubmitWorkflow(t.Context(), bob, f)
			if answer.Workflow.State != service.FlowRefused {
				t.Errorf("by a deadline that cannot be met: %s", answer.Workflow.State)
			}
			return answer.Offers, err
		},
	} {
		f := berth.Workflow{Deadline: berth.Forever, Algorithm: berth.BestAlgorithm, Repair: berth.RepairBoth, Tasks: []berth.WorkflowTask{
			{ID: "a", Seconds: 100, Most: 1}, {ID: "b", Seconds: 100, Most: 1, After: []int{0}},
		}}
		offers, err := ask(f)
		if err != nil || len(offers) < 5 {
			t.Fatalf("%s: %d offers, %v", name, len(offers), err)
		}
		c.seconds.Add(59)
		f.ID, f.Hold, f.Deadline, f.Algorithm = "w"+name, 600, offers[0].Workflow.Deadline, offers[0].Workflow.Algorithm
		held, err := h.SubmitWorkflow(t.Context(), bob, f)
		if err != nil || held.Workflow.State != service.FlowHeld {
			t.Fatalf("%s: the tightest deadline, asked for 59 s later: %s %+v, %v", name, held.Workflow.State, held.Workflow.Refusal, err)
		}
		if sure, err := h.ConfirmWorkflow(t.Context(), bob, f.ID); err != nil || sure.Workflow.State == service.FlowHeld {
			t.Errorf("%s: confirmed it is %s, %v", name, sure.Workflow.State, err)
		}
		c.seconds.Add(1000)
	}
}
