package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/form"
)

// A request may say how long after its decision it begins and must have ended, which is the same body whenever it is
// asked again under its key.
func TestAWindowMayBeCountedFromTheDecision(t *testing.T) {
	h := &harbour{dir: t.TempDir()}
	h.clock.Store(int64(start))
	h.open(t)
	defer h.close(t)
	const body = `{"npe":1,"duration":"1h","deadline_in":"1h"}`
	first := h.do("alice", "POST", "/v1/requests", body, "Idempotency-Key", "k")
	a := into[form.Answer](t, first, http.StatusCreated)
	if r := a.Reservation; a.Decision != form.Accepted || r.Start != form.Time(start) || r.Deadline != form.Time(start+3600) {
		t.Errorf("%+v", a)
	}
	h.clock.Add(10)
	if again := h.do("alice", "POST", "/v1/requests", body, "Idempotency-Key", "k"); again.text != first.text {
		t.Errorf("again it is answered\n%swant\n%s", again.text, first.text)
	}
	a = into[form.Answer](t, h.do("alice", "POST", "/v1/requests", `{"npe":1,"duration":"1h","ready_in":600,"deadline_in":"70m"}`), http.StatusCreated)
	if r := a.Reservation; a.Decision != form.Accepted || r.Start != form.Time(start+610) || r.Deadline != form.Time(start+4210) {
		t.Errorf("%+v", a)
	}
	a = into[form.Answer](t, h.do("alice", "PATCH", "/v1/reservations/"+a.ID, `{"ready_in":0,"deadline_in":"1h"}`), http.StatusOK)
	if r := a.Reservation; a.Decision != form.Accepted || r.Start != form.Time(start+10) || r.Deadline != form.Time(start+3610) {
		t.Errorf("%+v", a)
	}
	for body, says := range map[string]string{
		`{"npe":1,"duration":"1h","deadline_in":"59m"}`:                                                                 "deadline_in: 00:59:00 is less than the time to ready and duration, 00:00:00 + 01:00:00; want 01:00:00 or more",
		`{"npe":1,"duration":"1h","ready_in":60,"deadline_in":"1h"}`:                                                    "want 01:01:00 or more",
		`{"npe":1,"duration":"1h","deadline":"2030-01-01T00:00:00Z","deadline_in":"2h"}`:                                "deadline_in: given beside deadline",
		`{"npe":1,"duration":"1h","ready":"2030-01-01T00:00:00Z","ready_in":1,"deadline_in":2}`:                         "ready_in: given beside ready",
		`{"npe":1,"duration":"1h","deadline_in":0}`:                                                                     "deadline_in: 0; want at least 1 s",
		`{"npe":1,"duration":"1h","deadline":"` + time.Unix(int64(start)+59*60+10, 0).UTC().Format(time.RFC3339) + `"}`: "or now+01:00:00, which is deadline_in",
	} {
		if got := h.do("alice", "POST", "/v1/requests", body); got.Code != http.StatusUnprocessableEntity || !strings.Contains(got.text, says) {
			t.Errorf("%s: %d %s; want %s", body, got.Code, got.text, says)
		}
	}
}

// A window that is counted from the decision is as long as it was asked for, however long the question waits for its
// turn: here each look at the clock is a second later than the one before.
func TestAWindowIsCountedWhenItsTurnHasCome(t *testing.T) {
	h := &harbour{dir: t.TempDir()}
	h.clock.Store(int64(start))
	h.open(t)
	defer h.close(t)
	h.tick.Store(1)
	for _, body := range []string{`{"npe":1,"duration":"1h","deadline_in":"1h"}`, `{"npe":1,"duration":"1h","ready_in":600,"deadline_in":"70m"}`} {
		answer := into[form.Answer](t, h.do("alice", "POST", "/v1/requests", body), http.StatusCreated)
		if answer.Decision != form.Accepted {
			t.Errorf("%s is %s: %+v", body, answer.Decision, answer.Refusal)
		}
		list := into[form.Offers](t, h.do("alice", "POST", "/v1/offers?most=1", body), http.StatusOK)
		if len(list.Offers) != 1 || list.Offers[0].Difference != "as_asked" {
			t.Errorf("%s is offered as %+v", body, list.Offers)
		}
		r := into[form.Rectangles](t, h.do("alice", "POST", "/v1/rectangles", body), http.StatusOK)
		if p := &r.Pools[0]; p.Refusal != nil || len(p.Stretches) != 1 || p.Stretches[0].Refusal != nil || p.Stretches[0].First != r.From || p.Stretches[0].Last != r.From {
			t.Errorf("%s can start in %+v of %+v", body, p.Stretches, r)
		}
	}
	later := into[form.Answer](t, h.do("alice", "POST", "/v1/requests", `{"npe":1,"duration":"1h","ready_in":"5h","deadline_in":"9h"}`), http.StatusCreated)
	for _, body := range []string{`{"ready_in":"2h","deadline_in":"3h"}`, `{"ready_in":0,"deadline_in":"1h"}`} {
		answer := into[form.Answer](t, h.do("alice", "PATCH", "/v1/reservations/"+later.ID, body), http.StatusOK)
		if answer.Decision != form.Accepted {
			t.Errorf("changed to %s it is %s: %+v", body, answer.Decision, answer.Refusal)
		}
	}
}

// So is the deadline of a workflow, small or planned beside the loop, and of one that is tried again.
func TestADeadlineOfAWorkflowIsCountedFromTheDecision(t *testing.T) {
	h := &harbour{dir: t.TempDir()}
	h.clock.Store(int64(start))
	h.open(t)
	defer h.close(t)
	many := make([]string, 200) // too many for the loop
	for i := range many {
		many[i] = fmt.Sprintf(`{"id":"t%d","seconds":8,"most":1}`, i)
	}
	for name, body := range map[string]string{
		"small": `{"deadline_in":"200s","tasks":[{"id":"a","seconds":100,"most":1},{"id":"b","seconds":100,"most":1,"after":["a"]}]}`,
		"large": `{"deadline_in":"200s","tasks":[` + strings.Join(many, ",") + `]}`,
	} {
		h.tick.Store(map[string]int64{"small": 1}[name]) // a plan beside the loop holds as long as the clock stands
		first := h.do("alice", "POST", "/v1/workflows", body, "Idempotency-Key", name)
		a := into[form.WorkflowAnswer](t, first, http.StatusCreated)
		if w := a.Workflow; a.Decision != "promised" || w.End != w.Deadline {
			t.Errorf("%s is %s: %+v, ends %s of %s", name, a.Decision, w.Refusal, w.End, w.Deadline)
		}
		if again := h.do("alice", "POST", "/v1/workflows", body, "Idempotency-Key", name); again.text != first.text {
			t.Errorf("again %s is answered\n%swant\n%s", name, again.text, first.text)
		}
		into[form.WorkflowAnswer](t, h.do("alice", "DELETE", "/v1/workflows/"+a.Workflow.ID, ""), http.StatusOK)
		h.clock.Add(1)
		retry := h.do("alice", "POST", "/v1/workflows/"+a.Workflow.ID+"/retry", `{"deadline_in":"200s"}`, "Idempotency-Key", name+" again")
		if b := into[form.WorkflowAnswer](t, retry, http.StatusOK); b.Decision != "promised" || b.Workflow.Deadline <= a.Workflow.Deadline {
			t.Errorf("%s is tried again: %s, by %s, before %s", name, b.Decision, b.Workflow.Deadline, a.Workflow.Deadline)
		}
		into[form.WorkflowAnswer](t, h.do("alice", "DELETE", "/v1/workflows/"+a.Workflow.ID, ""), http.StatusOK)
		into[form.WorkflowOffers](t, h.do("alice", "POST", "/v1/workflows/offers", body), http.StatusOK)
	}
	for body, says := range map[string]string{
		`{"deadline_in":0,"tasks":[{"id":"a","seconds":1}]}`:                                   "deadline_in: 0; want at least 1 s",
		`{"deadline":"2030-01-01T00:00:00Z","deadline_in":5,"tasks":[{"id":"a","seconds":1}]}`: "deadline_in: given beside deadline",
		`{"deadline_in":"99999999999999999999","tasks":[{"id":"a","seconds":1}]}`:              "deadline_in",
	} {
		if got := h.do("alice", "POST", "/v1/workflows", body); got.Code != http.StatusUnprocessableEntity || !strings.Contains(got.text, says) {
			t.Errorf("%s: %d %s; want %s", body, got.Code, got.text, says)
		}
	}
}
