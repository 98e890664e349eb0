package service_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/service"
)

// chain is a workflow of two tasks, one behind the other, each of 100 s on one PE; the
// second writes its output somewhere.
func chain(id string, deadline berth.Time) berth.Workflow {
	return berth.Workflow{
		ID: id, Deadline: deadline, Algorithm: berth.BestAlgorithm, Repair: berth.RepairBoth,
		Tasks: []berth.WorkflowTask{{ID: "a", Seconds: 100, Most: 1}, {ID: "b", Seconds: 100, Most: 1, After: []int{0}}},
	}
}

// flowCall is something asked about a workflow under a key, and how it was answered first.
type flowCall struct {
	name   string
	ask    service.Ask
	do     func(h *service.Host, ask service.Ask) (service.FlowAnswer, error)
	answer service.FlowAnswer
	err    error
}

func (c *flowCall) again(t *testing.T, h *service.Host, when string) {
	t.Helper()
	answer, err := c.do(h, c.ask)
	is, _ := errors.AsType[*berth.Error](err)
	was, _ := errors.AsType[*berth.Error](c.err)
	if (err == nil) != (c.err == nil) || !reflect.DeepEqual(is, was) {
		t.Errorf("%s, %s: the error is %v, want %v", c.name, when, err, c.err)
	}
	if !reflect.DeepEqual(answer, c.answer) {
		t.Errorf("%s, %s: the answer is\n%+v, want\n%+v", c.name, when, answer, c.answer)
	}
}

// Whatever was answered about a workflow under a key is answered again, whatever has become of
// it since, and after a restart, from records and from a snapshot: promises, refusals with their
// offers, and errors alike.
func TestAKeyReplaysTheAnswerAboutAWorkflow(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	dir := t.TempDir()
	h, store := startOn(t, dir, onePool(8), c)
	var calls []*flowCall
	call := func(name, state string, code berth.Code, do func(h *service.Host, ask service.Ask) (service.FlowAnswer, error)) {
		t.Helper()
		ask := ann
		ask.Key, ask.Body = name, [32]byte{byte(len(calls))}
		one := &flowCall{name: name, ask: ask, do: do}
		if one.answer, one.err = do(h, ask); code != "" {
			wantCode(t, one.err, code)
		} else if one.err != nil || string(one.answer.Workflow.State) != state {
			t.Fatalf("%s: %s %v, want %s", name, one.answer.Workflow.State, one.err, state)
		}
		calls = append(calls, one)
	}
	submitted := func(w berth.Workflow) func(h *service.Host, ask service.Ask) (service.FlowAnswer, error) {
		return func(h *service.Host, ask service.Ask) (service.FlowAnswer, error) {
			return h.SubmitWorkflow(t.Context(), ask, w)
		}
	}
	retried := func(id string, deadline berth.Time) func(h *service.Host, ask service.Ask) (service.FlowAnswer, error) {
		return func(h *service.Host, ask service.Ask) (service.FlowAnswer, error) {
			return h.RetryWorkflow(t.Context(), ask, id, deadline)
		}
	}
	held := chain("w", 5000)
	held.Hold = 600
	call("submitted", "held", "", submitted(held))
	call("taken", "", berth.Conflict, submitted(held))
	call("confirmed", "promised", "", func(h *service.Host, ask service.Ask) (service.FlowAnswer, error) {
		return h.ConfirmWorkflow(t.Context(), ask, "w")
	})
	call("retried too early", "", berth.Conflict, retried("w", 0))
	call("cancelled", "cancelled", "", func(h *service.Host, ask service.Ask) (service.FlowAnswer, error) {
		return h.CancelWorkflow(t.Context(), ask, "w")
	})
	call("unknown", "", berth.NotFound, func(h *service.Host, ask service.Ask) (service.FlowAnswer, error) {
		return h.CancelWorkflow(t.Context(), ask, "later")
	})
	call("retried", "promised", "", retried("w", 0))
	call("refused", "refused", "", submitted(chain("narrow", 1100)))
	if offers := calls[len(calls)-1].answer.Offers; len(offers) == 0 || len(offers[0].Critical) == 0 || offers[0].End == 0 || offers[0].PESeconds == 0 {
		t.Fatalf("the refusal comes with %+v", offers)
	}
	call("refused and retried", "promised", "", retried("narrow", 9000))
	call("without an id", "promised", "", submitted(chain("", berth.Forever)))
	if _, err := h.SubmitWorkflow(t.Context(), ann, chain("later", 9000)); err != nil {
		t.Fatal(err)
	}
	c.seconds.Store(1150) // the first tasks are over
	if err := h.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, one := range calls {
		one.again(t, h, "in the same life")
	}
	records, err := h.Records(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	h, _ = startOn(t, dir, onePool(8), c)
	for _, one := range calls {
		one.again(t, h, "after a restart")
	}
	if n, err := h.Records(t.Context()); err != nil || n != records {
		t.Errorf("answers given again made %d records: %v", n-records, err)
	}
	other := ann
	other.Key, other.Body = "submitted", [32]byte{99}
	_, err = h.SubmitWorkflow(t.Context(), other, chain("w2", 5000))
	wantCode(t, err, berth.Conflict)
}

// A key about a workflow goes before what may be asked now, and tells nothing of sites that are
// closed to who asks since. Who retries gets places at their own sites alone.
func TestAKeyAboutAWorkflowTellsNothingOfClosedSites(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	pool := []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Late}}
	h := start(t, t.TempDir(), engine.Config{Sites: []berth.Site{{Name: "east", Pools: pool}, {Name: "west", Pools: pool}}}, c)
	under := func(key string, sites service.SiteSet) service.Ask {
		ask := ann
		ask.Key, ask.By.Sites = key, sites
		return ask
	}
	first, err := h.SubmitWorkflow(t.Context(), under("k", ""), chain("w", 9000))
	if err != nil || first.Workflow.Tasks[0].Resource.Site != "east" {
		t.Fatalf("%+v %v", first, err)
	}
	narrow := service.NewSiteSet([]string{"west"})
	for _, again := range []func() (service.FlowAnswer, error){
		func() (service.FlowAnswer, error) {
			return h.SubmitWorkflow(t.Context(), under("k", narrow), chain("w", 9000))
		},
		func() (service.FlowAnswer, error) {
			a, err := h.RecallWorkflow(t.Context(), under("k", narrow))
			if a == nil {
				a = &service.FlowAnswer{}
			}
			return *a, err
		},
	} {
		got, err := again()
		if wantCode(t, err, berth.NotFound); got.Workflow.Workflow.ID != "" {
			t.Errorf("a token of west alone gets %+v", got)
		}
	}
	named := chain("named", 1100) // refused, so that only its tasks say where it would be
	named.Tasks[0].Site = "east"
	if a, err := h.SubmitWorkflow(t.Context(), under("n", ""), named); err != nil || a.Workflow.State != service.FlowRefused {
		t.Fatalf("%s %v", a.Workflow.State, err)
	}
	_, err = h.RecallWorkflow(t.Context(), under("n", narrow))
	wantCode(t, err, berth.NotFound)
	viewer := under("k", "")
	viewer.By.Role = service.Viewer
	_, err = h.SubmitWorkflow(t.Context(), viewer, chain("w", 9000))
	wantCode(t, err, berth.NotFound) // viewers have none
	viewer.Key = "other"
	_, err = h.SubmitWorkflow(t.Context(), viewer, chain("v", 9000))
	wantCode(t, err, berth.Denied)
	if a, err := h.RecallWorkflow(t.Context(), under("unused", "")); a != nil || err != nil {
		t.Errorf("under an unused key it recalls %+v, %v", a, err)
	}

	if a, err := h.SubmitWorkflow(t.Context(), ann, chain("narrow", 1100)); err != nil || a.Workflow.State != service.FlowRefused {
		t.Fatalf("%s %v", a.Workflow.State, err)
	}
	none := under("", service.NewSiteSet([]string{"west"}).And(service.NewSiteSet([]string{"east"})))
	_, err = h.RetryWorkflow(t.Context(), none, "narrow", 9000)
	wantCode(t, err, berth.Denied)
	got, err := h.RetryWorkflow(t.Context(), under("", narrow), "narrow", 9000)
	if err != nil || got.Workflow.State != service.FlowPromised {
		t.Fatalf("%s %v", got.Workflow.State, err)
	}
	for _, task := range got.Workflow.Tasks {
		if task.Resource.Site != "west" {
			t.Errorf("who may use west alone gets a place at %s", task.Resource.Site)
		}
	}
}
