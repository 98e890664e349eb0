package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/service"
)

const flowFor = `{"tasks":[{"id":"a","seconds":10,"alpha":1},{"id":"b","seconds":20.5,"alpha":1,"after":["a"],"command":["true"],"dir":"/"}]}`

// A workflow goes in as it is written, and comes out with its tasks, what binds and its slack.
func TestWorkflowsOverHTTP(t *testing.T) {
	w := newWorld(t, api.Options{})
	answer := into[form.WorkflowAnswer](t, w.do("alice", "POST", "/v1/workflows", `{"id":"night","deadline":"2026-11-21T12:02:00Z","repair":"late","algorithm":"bd-cpar",`+flowFor[1:]), http.StatusCreated)
	flow := answer.Workflow
	if answer.Decision != "promised" || flow.ID != "night" || flow.Slack == nil || *flow.Slack != 90 || flow.Repair != "late" || flow.Algorithm != "bd-cpar" || len(flow.Tasks) != 2 {
		t.Fatalf("%+v", answer)
	}
	if b := flow.Tasks[1]; !slices.Equal(b.After, []string{"a"}) || !b.Critical || b.State != "waiting" || b.Reservation != "night.2" || b.Output != "/berth-night.2.out" || b.End != form.Time(start+30) {
		t.Errorf("task b is %+v", b)
	}
	asked := w.fake.flows.made[0].Workflow
	if asked.User != "alice" || asked.Deadline != start+120 || asked.Tasks[1].Seconds != 20.5 || len(asked.Free) != 1 || asked.Free[0].Resource != berth.PoolID("cm5", "batch") {
		t.Errorf("the service was asked for %+v", asked)
	}
	late := into[form.WorkflowAnswer](t, w.do("alice", "POST", "/v1/workflows", `{"id":"late","deadline":"2026-11-21T12:00:20Z",`+flowFor[1:]), http.StatusCreated)
	if late.Decision != "refused" || late.Workflow.Refusal == nil || late.Workflow.Refusal.Reason != berth.DeadlineMissed || len(late.Offers) != 1 || late.Offers[0].CPUHours != 1 {
		t.Errorf("%+v", late)
	}
	page := into[form.Workflows](t, w.do("alice", "GET", "/v1/workflows?limit=1", ""), http.StatusOK)
	if len(page.Workflows) != 1 || page.Next == "" || len(page.Workflows[0].Tasks) > 0 {
		t.Errorf("%+v", page)
	}
	into[form.WorkflowAnswer](t, w.do("alice", "POST", "/v1/workflows", `{"id":"over","spread":true,"tasks":[{"id":"a","seconds":10,"site":"cm5"},{"id":"b","seconds":10}]}`), http.StatusCreated)
	if asked := w.fake.flows.made[len(w.fake.flows.made)-1].Workflow; !asked.Spread || asked.Tasks[0].Site != "cm5" || asked.Tasks[1].Site != "" {
		t.Errorf("the service was asked for %+v", asked)
	}
	if held := into[form.WorkflowAnswer](t, w.do("alice", "POST", "/v1/workflows", `{"id":"held","hold":true,`+flowFor[1:]), http.StatusCreated); held.Decision != "held" {
		t.Errorf("%+v", held)
	}
}

// A workflow and its tasks have accounts and QOS, and show those that they name.
func TestAccountsOfWorkflowsOverHTTP(t *testing.T) {
	w := newWorld(t, api.Options{})
	body := `{"id":"w","account":"bio","qos":"low","tasks":[{"id":"a","seconds":10},{"id":"b","seconds":10,"account":"chem","qos":"high"}]}`
	f := into[form.WorkflowAnswer](t, w.do("alice", "POST", "/v1/workflows", body), http.StatusCreated).Workflow
	if a, b := f.Tasks[0], f.Tasks[1]; f.Account != "bio" || f.QOS != "low" || a.Account+a.QOS != "" || b.Account != "chem" || b.QOS != "high" {
		t.Errorf("%+v", f)
	}
	asked := w.fake.flows.made[0].Workflow
	if a, b := asked.SharingOf(0), asked.SharingOf(1); a.Account != "bio" || a.QOS != "low" || b.Account != "chem" || b.QOS != "high" {
		t.Errorf("the service was asked for %+v and %+v", a, b)
	}
}

// Every mistake is told with its field, the value and what would be right.
func TestMistakenWorkflowsOverHTTP(t *testing.T) {
	w := newWorld(t, api.Options{})
	many := strings.Repeat(`{"id":"x"},`, berth.MaxWorkflowTasks+1)
	for body, want := range map[string]string{
		`{"spread":1,"tasks":[{"id":"a","seconds":1}]}`: "1; want true or false",
		`{"tasks":[{"id":"a","seconds":1,"site":7}]}`:   "7; want a string",
		`{}`:                                     "missing; want 1 to 10000 tasks",
		`{"tasks":[]}`:                           "0 tasks; want 1 to 10000",
		`{"tasks":[` + many[:len(many)-1] + `]}`: "10001 tasks; want 1 to 10000",
		`{"tasks":[{"id":"a","seconds":1,"after":["b"]}]}`:                     `\"b\" is no task of the workflow`,
		`{"tasks":[{"id":"a","seconds":-1}]}`:                                  "-1; want a number of 0 or more",
		`{"tasks":[{"id":"a"}]}`:                                               "tasks[0].seconds: missing; want how long it takes on one PE",
		`{"tasks":[{"id":"a","second":1}]}`:                                    "unknown field",
		`{"tasks":[{"id":"a","retries":101}]}`:                                 "101; want a whole number from 0 to 100",
		`{"tasks":[{"id":"a","seconds":1,"command":["true"],"dir":"here"}]}`:   "want an absolute path",
		`{"tasks":[{"id":"a","seconds":1,"script":"true","dir":"/"}]}`:         "want a first line such as #!/bin/sh",
		`{"repair":"never","tasks":[{"id":"a"}]}`:                              "want one of hold, late, both",
		`{"account":"a b","tasks":[{"id":"a","seconds":1}]}`:                   "want 1 to 64 letters",
		`{"tasks":[{"id":"a","seconds":1,"qos":"a/b"}]}`:                       "want 1 to 64 letters",
		`{"id":"a b","tasks":[{"id":"a"}]}`:                                    "want 1 to 64 letters",
		`{"deadline":"2026-11-21T11:59:00Z","tasks":[{"id":"a","seconds":1}]}`: "is over; it is",
		`{"tasks":[{"id":"a","measured":[{"npe":0,"seconds":1}]}]}`:            "0; want a whole number from 1",
	} {
		if a := w.do("alice", "POST", "/v1/workflows", body); a.Code != http.StatusBadRequest && a.Code != http.StatusUnprocessableEntity || !strings.Contains(a.text, want) {
			t.Errorf("%.80s: %d %.300s; want %q", body, a.Code, a.text, want)
		}
	}
	if len(w.fake.flows.made) > 0 {
		t.Error("the service was asked all the same")
	}
	if a := w.do("alice", "GET", "/v1/workflows?state=waiting", ""); !strings.Contains(a.text, "want some of held, promised, running") {
		t.Error(a.text)
	}
	if a := w.do("alice", "GET", "/v1/workflows/plans", ""); a.Code != http.StatusMethodNotAllowed {
		t.Errorf("status %d, want that the method is not allowed", a.Code)
	}
}

// A refusal says that there is no such site, a task that ended with its workflow does not wait, and one tells how many PEs it lacks.
func TestWorkflowsThatAreOverOverHTTP(t *testing.T) {
	w := newWorld(t, api.Options{})
	made := func(id string, state service.FlowState, no *berth.Refusal, tasks ...service.FlowTask) {
		v := &service.Workflow{State: state, Refusal: no, Tasks: tasks, Workflow: berth.Workflow{ID: id, User: "alice", Site: "mars", Tasks: make([]berth.WorkflowTask, len(tasks))}}
		w.fake.flows.made = append(w.fake.flows.made, v)
	}
	made("none", service.FlowRefused, &berth.Refusal{Reason: berth.NoSuitableSite, Wanted: 1})
	if got := into[form.Workflow](t, w.do("alice", "GET", "/v1/workflows/none", ""), http.StatusOK); got.Refusal.Detail != "no site has all of this: the name mars" {
		t.Errorf("%+v", got.Refusal)
	}
	made("over", service.FlowExpired, nil,
		service.FlowTask{Reservation: "over.1", State: service.Expired}, service.FlowTask{Reservation: "over.2", State: service.Active}, service.FlowTask{Reservation: "over.3", State: service.Confirmed, Missing: 2})
	got := into[form.Workflow](t, w.do("alice", "GET", "/v1/workflows/over", ""), http.StatusOK)
	for i, want := range []string{"expired", "running", "waiting"} {
		if got.Tasks[i].State != want {
			t.Errorf("task %d is %s; want %s", i+1, got.Tasks[i].State, want)
		}
	}
	if got.Tasks[1].Missing != 0 || got.Tasks[2].Missing != 2 {
		t.Errorf("%d and %d PEs are missing", got.Tasks[1].Missing, got.Tasks[2].Missing)
	}
	made("gone", service.FlowFailed, nil,
		service.FlowTask{Why: "its reservation is gone: failed"}, service.FlowTask{Why: "its reservation is gone: rejected"}, service.FlowTask{Why: "its reservation is gone: else"}, service.FlowTask{Why: "exit code 1"})
	got = into[form.Workflow](t, w.do("alice", "GET", "/v1/workflows/gone", ""), http.StatusOK)
	for i, want := range []string{"its reservation had no PE in use at its start", "its site refused its reservation", "its reservation is gone: else", "exit code 1"} {
		if got.Tasks[i].Why != want {
			t.Errorf("task %d because %q; want %q", i+1, got.Tasks[i].Why, want)
		}
	}
}
