package service

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// FlowAnswer is the answer to a workflow.
type FlowAnswer struct {
	Workflow Workflow
	// Offers are deadlines with what they cost, the tightest first, of one that was refused; of
	// their workflows the deadlines and algorithms.
	Offers []engine.WorkflowOffer
}

// flowOffers is how many offers a refusal comes with.
const flowOffers = 8

// offerLead is how much later than now a workflow would begin by an offer: as long as a person takes to read the
// deadlines, choose one and ask for it.
const offerLead = 60

func (h *Host) mayAskFlow(ask *Ask, w *berth.Workflow) error {
	switch {
	case !ask.By.Can(User):
		return berth.Errorf(berth.Denied, "role", "a %s may only look; ask with the token of a user or an operator", ask.By.Role)
	case w.User == "":
		w.User = ask.By.User
	case !ask.By.Owns(w.User):
		return berth.Errorf(berth.Denied, "user", "%q may not ask in the name of %q", ask.By.User, w.User)
	}
	w.Owner = h.accountOwner(w.User)
	may := h.sitesFor(ask.By, w.User)
	if may == noSites {
		return noneOpen()
	}
	w.Role, w.Sites = string(ask.By.Role), may.Names()
	h.route(w)
	if err := checkWriters(w); err != nil {
		return err
	}
	r := berth.Request{Site: w.Site, Pool: w.Pool}
	if err := h.bookable(&r); err != nil {
		return err
	}
	for i := range w.Tasks {
		if r.Site = w.Tasks[i].Site; r.Site != "" && h.bookable(&r) != nil {
			return h.bookable(&r)
		}
	}
	return nil
}

// SubmitWorkflow decides about a workflow, or answers again what was decided under the same
// key: all of its tasks are promised, or none is, and then there are offers. A workflow without
// an ID gets one; one without a user is the asker's. It is the service's from then on. Errors:
// Denied, and those of engine.EventSubmitWorkflow.
func (h *Host) SubmitWorkflow(ctx context.Context, ask Ask, w berth.Workflow) (FlowAnswer, error) {
	err := h.mayAskFlow(&ask, &w)
	if err == nil {
		err = h.sharingAdmitted(ctx, &w)
	}
	if err != nil {
		switch was, failed := h.RecallWorkflow(ctx, ask); {
		case failed != nil:
			return FlowAnswer{}, failed
		case was == nil:
			return FlowAnswer{}, h.Refuse(ctx, ask, err)
		default:
			return *was, nil
		}
	}
	if w.ID == "" {
		w.ID = h.newID()
	}
	unable := h.unable(ctx, ask.By.User, w.User)
	return h.askFlow(ctx, &ask, w.ID, func(ctx context.Context, wanted func() bool) (FlowAnswer, error) {
		return call(ctx, h, ask.By.User, func(answer func(FlowAnswer, error)) {
			a := ask.asked()
			if !h.flowAgain(a, answer) {
				h.decideFlow(a, &w, unable, wanted, answer)
			}
		})
	})
}

// WorkflowOffers returns what deadlines cost, the tightest first, without promising anything.
// Errors: Denied, and those of engine.WorkflowOffers.
func (h *Host) WorkflowOffers(asking context.Context, ask Ask, w berth.Workflow) ([]engine.WorkflowOffer, error) {
	if err := h.mayAskFlow(&ask, &w); err != nil {
		return nil, err
	}
	if err := h.sharingAdmitted(asking, &w); err != nil {
		return nil, err
	}
	w.ID = cmp.Or(w.ID, "offer")
	who := ask.By.User
	ctx, end := context.WithTimeout(asking, flowPatience)
	defer end()
	list, err := call(ctx, h, who, func(answer func([]engine.WorkflowOffer, error)) {
		ask.FromNow.arriveFlow(&w, h.awake())
		if h.isSmall(&w) {
			offers, err := h.core.engine.PlanOffers(&w, engine.PlanOptions{Offers: flowOffers, Lead: offerLead})
			h.whenDurable(func(failed error) { answer(offers, cmp.Or(failed, err)) })
			return
		}
		leave, err := h.planner.enter(who)
		if err != nil {
			answer(nil, err)
			return
		}
		var offers []engine.WorkflowOffer
		h.planBeside(who, len(w.Tasks), 0, func() bool { return ctx.Err() == nil }, func(e *engine.Engine, o engine.PlanOptions) (err error) {
			ask.FromNow.arriveFlow(&w, o.From)
			o.Offers, o.Lead = flowOffers, offerLead
			offers, err = e.PlanOffers(&w, o)
			return err
		}, func(err error) {
			leave()
			answer(offers, err)
		})
	})
	if errors.Is(err, context.DeadlineExceeded) && asking.Err() == nil {
		err = berth.Errorf(berth.Unavailable, "workflow", "its %d tasks could not be planned within %s; ask again", len(w.Tasks), flowPatience)
	}
	return list, err
}

// flowOffers returns what a small workflow that was refused is offered, nothing for a larger one,
// whose offers are made where it is planned.
func (h *Host) flowOffers(w *berth.Workflow) []engine.WorkflowOffer {
	if !h.isSmall(w) {
		return nil
	}
	own := w.Clone()
	own.Arrival = h.core.engine.Now()
	own.Deadline = berth.Forever
	offers, err := h.core.engine.PlanOffers(own, engine.PlanOptions{Offers: flowOffers, Lead: offerLead})
	if err != nil {
		return nil // it was taken a moment ago, so there is nothing wrong with it
	}
	return offers
}

// decideFlow has the engine decide about a workflow.
// wanted returns false once no one waits for the answer.
func (h *Host) decideFlow(a asked, w *berth.Workflow, unable map[string]string, wanted func() bool, answer func(FlowAnswer, error)) {
	defer h.inOneMoment()()
	a.id = w.ID
	a.from.arriveFlow(w, h.clock())
	if w.Algorithm == berth.BestAlgorithm {
		w.Algorithm = berth.SlackAlgorithm
	}
	err := h.flowTaken(w)
	if err == nil {
		err = h.withinRunners(w, unable)
	}
	if err != nil {
		h.denyFlow(a, err, answer)
		return
	}
	if !h.isSmall(w) || h.isBounded(new(engine.SubmitWorkflow(w))) {
		h.planFlow(a, w, unable, wanted, answer)
		return
	}
	h.stepFlow(engine.SubmitWorkflow(w), a, w.ID, nil, answer)
}

// flowTaken returns an error if a workflow cannot have its id, or those of its tasks.
func (h *Host) flowTaken(w *berth.Workflow) error {
	was := h.core.flows.byID[w.ID]
	if was != nil && was.outcome != refusedFlow && !slices.ContainsFunc(w.Tasks, func(t berth.WorkflowTask) bool { return t.Tries > 0 }) {
		return berth.Errorf(berth.Conflict, "id", "workflow %q is taken; give another id, or none", w.ID)
	}
	if !h.core.knowsTasks(w.ID) {
		return nil
	}
	for i := range w.Tasks {
		if id := engine.TaskID(w.ID, i, w.Tasks[i].Tries+1); !w.Tasks[i].Done && h.core.card(id) != nil {
			return berth.Errorf(berth.Conflict, "id", "%q is the id of a reservation; workflow %q needs it for task %q, so give it another id, or none", id, w.ID, w.Tasks[i].ID)
		}
	}
	return nil
}

// mayFlow returns the workflow that a principal wants to act on, or why they may not. What is
// not theirs they are not told of.
func (h *Host) mayFlow(ask *Ask, id string) (*flowCard, error) {
	f := h.core.flows.byID[id]
	if f == nil || !f.seenBy(ask.By, h.core.card) {
		return nil, noFlow(id)
	}
	if ask.IfVersion != 0 && ask.IfVersion != f.version {
		return nil, berth.Errorf(berth.Conflict, "version", "%d; it is %d by now, so look again", ask.IfVersion, f.version)
	}
	return f, nil
}

// changeFlow does something about a workflow for a principal who may, once for each key.
func (h *Host) changeFlow(ctx context.Context, ask Ask, id string, do func(a asked, f *flowCard, answer func(FlowAnswer, error))) (FlowAnswer, error) {
	return call(ctx, h, ask.By.User, func(answer func(FlowAnswer, error)) {
		a := ask.asked()
		a.id = id
		if h.flowAgain(a, answer) {
			return
		}
		f, err := h.mayFlow(&ask, id)
		if err != nil {
			h.denyFlow(a, err, answer)
			return
		}
		do(a, f, answer)
	})
}

// ConfirmWorkflow confirms all held tasks of a workflow.
func (h *Host) ConfirmWorkflow(ctx context.Context, ask Ask, id string) (FlowAnswer, error) {
	return h.changeFlow(ctx, ask, id, func(a asked, f *flowCard, answer func(FlowAnswer, error)) {
		if f.outcome != "" {
			h.denyFlow(a, berth.Errorf(berth.Conflict, "id", "workflow %q is %s", id, f.state(h.core.card)), answer)
			return
		}
		h.stepFlow(engine.ConfirmWorkflow(id), a, id, nil, answer)
	})
}

// CancelWorkflow ends a workflow: what runs is stopped, what was to run is given back. Of one
// that is over there is nothing to cancel, which is no error.
func (h *Host) CancelWorkflow(ctx context.Context, ask Ask, id string) (FlowAnswer, error) {
	return h.changeFlow(ctx, ask, id, func(a asked, f *flowCard, answer func(FlowAnswer, error)) {
		event := engine.CancelWorkflow(id)
		if f.outcome != "" {
			event = engine.Wake()
		}
		h.stepFlow(event, a, id, nil, answer)
	})
}

// RetryWorkflow promises what has not succeeded of a workflow that failed, expired or was
// cancelled or refused, under the same id. deadline is the new one, or with Ask.FromNow how many seconds after it is
// decided; 0 keeps that of the workflow if it is not over, and has none else.
func (h *Host) RetryWorkflow(ctx context.Context, ask Ask, id string, deadline berth.Time) (FlowAnswer, error) {
	was, err := call(ctx, h, ask.By.User, func(answer func(berth.Workflow, error)) {
		if f, err := h.mayFlow(&Ask{By: ask.By}, id); err == nil {
			w := f.w.Clone()
			for i := range w.Tasks {
				w.Tasks[i].Done = w.Tasks[i].Done || f.tasks[i].outcome == berth.Succeeded // nothing more is asked for it
			}
			answer(*w, nil)
			return
		}
		answer(berth.Workflow{}, nil) // what is wrong is told below
	})
	if err != nil {
		return FlowAnswer{}, err
	}
	may := retrying{unable: h.unable(ctx, was.User, was.User)} // the commands are the owner's, also if an operator retries
	was.Sites = h.sitesFor(ask.By, was.User).Names()
	may.err = h.sharingAdmitted(ctx, &was)
	may.sites, may.account = was.Sites, was.Account
	return h.askFlow(ctx, &ask, id, func(ctx context.Context, wanted func() bool) (FlowAnswer, error) {
		return h.retryFlow(ctx, ask, id, deadline, &may, wanted)
	})
}

// retrying is what is known of a workflow that is to be retried before it is decided about.
type retrying struct {
	unable  map[string]string // why sites cannot run its tasks
	sites   []string          // that it may use; nil is all
	account string            // of tasks that name none
	err     error             // none lets its user run tasks in the accounts and QOS that they name
}

// retryFlow is RetryWorkflow once it is known where its tasks may be run.
func (h *Host) retryFlow(ctx context.Context, ask Ask, id string, deadline berth.Time, known *retrying, wanted func() bool) (FlowAnswer, error) {
	return h.changeFlow(ctx, ask, id, func(a asked, f *flowCard, answer func(FlowAnswer, error)) {
		switch f.outcome {
		case "":
			h.denyFlow(a, berth.Errorf(berth.Conflict, "id", "workflow %q is %s; retry it when it is over, or cancel it", id, f.state(h.core.card)), answer)
			return
		case berth.Succeeded:
			h.denyFlow(a, berth.Errorf(berth.Conflict, "id", "workflow %q has succeeded; there is nothing to retry", id), answer)
			return
		}
		may := h.sitesFor(ask.By, f.w.User)
		if may == noSites {
			h.denyFlow(a, noneOpen(), answer)
			return
		}
		if known.err != nil {
			h.denyFlow(a, known.err, answer)
			return
		}
		w := f.w.Clone()
		w.Hold, w.Sites, w.Account = 0, known.sites, known.account
		h.route(w)
		if w.Role = string(ask.By.Role); deadline != 0 {
			w.Arrival, w.Deadline = 0, deadline
		} else if w.Deadline <= h.clock() {
			w.Deadline = berth.Forever
		}
		for i := range w.Tasks {
			t := &w.Tasks[i] // what was refused last to be tried again says it too
			t.Tries, t.Done = max(t.Tries, f.tasks[i].tries), t.Done || f.tasks[i].outcome == berth.Succeeded
			if w.Tasks[i].Done && len(w.Routes) > 0 {
				w.Tasks[i].Site = h.core.siteOfTask(f, i) // where its files are
			}
		}
		h.decideFlow(a, w, known.unable, wanted, answer)
	})
}
