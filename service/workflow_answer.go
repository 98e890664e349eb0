package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/wire"
)

// RecallWorkflow returns what was answered about a workflow under a key, in what the asker may
// see it by now, nil if nothing was. The error may be what was answered.
func (h *Host) RecallWorkflow(ctx context.Context, ask Ask) (*FlowAnswer, error) {
	if ask.Key == "" {
		return nil, nil
	}
	limit, end := context.WithTimeout(ctx, flowPatience)
	defer end()
	was, err := call(limit, h, ask.By.User, func(answer func(*FlowAnswer, error)) {
		if !h.flowAgain(ask.asked(), func(was FlowAnswer, err error) {
			if err != nil {
				answer(nil, err)
				return
			}
			answer(&was, nil)
		}) {
			answer(nil, nil)
		}
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = berth.Errorf(berth.Unavailable, "workflow", "it is still being planned after %s; ask again under the same key", flowPatience)
	}
	return was, err
}

// flowAgain answers about a workflow as it was answered before under the same key, or once it is planned, and reports
// whether it does. What was asked before answers were remembered is answered as it is now.
func (h *Host) flowAgain(a asked, answer func(FlowAnswer, error)) bool {
	var o outcome
	was, err := h.known(&a)
	answer = a.asker.visibleFlow(answer)
	switch {
	case err == nil && was == nil:
		u := h.underway[a.key.name()]
		if u != nil {
			u.flows = append(u.flows, answer)
		}
		return u != nil
	case err == nil && was.answered():
		if o, err = was.outcome(); err == nil {
			err = o.err()
		}
	}
	if err == nil && o.Flow == nil {
		f := h.core.flows.byID[was.id]
		if f == nil {
			err = berth.Errorf(berth.NotFound, "idempotency_key", "what was asked under it is no longer remembered")
		} else {
			o.Flow = h.flowAnswer(f, nil)
		}
	}
	var result FlowAnswer
	if err == nil {
		result = *o.Flow
	}
	h.whenDurable(func(failed error) { answer(result, cmp.Or(failed, err)) })
	return true
}

// stepFlow applies an event to a workflow, or makes one of it, and answers with what it is then;
// the answer is on record with the event, under the key, but for that of a plan that does not hold.
// offers are those that come with a refusal, if they are known.
func (h *Host) stepFlow(event engine.Event, a asked, id string, offers []engine.WorkflowOffer, answer func(FlowAnswer, error)) {
	var result func() *FlowAnswer
	err := h.step(event, a, func(_ []news, err error) (outcome, bool) {
		switch {
		case planFails(err):
			return outcome{}, false
		case err != nil:
			return outcomeOf(Answer{}, err)
		}
		f := h.core.flows.byID[id]
		if h.core.isFresh(f) { // what it says is written down beside the loop
			cards := h.core.cardsOf(f)
			result = sync.OnceValue(func() *FlowAnswer { return flowAnswer(f, cards, offers) })
			return outcome{later: result, size: 160 * len(f.tasks)}, true
		}
		given := h.flowAnswer(f, offers)
		result = func() *FlowAnswer { return given }
		return outcome{Flow: given}, true
	})
	h.whenDurable(func(failed error) {
		if failed = cmp.Or(failed, err); failed != nil || result == nil {
			answer(FlowAnswer{}, failed)
			return
		}
		answer(*result(), nil)
	})
}

// planFails reports whether an error is that of a plan that does not hold any more.
func planFails(err error) bool {
	e, is := errors.AsType[*berth.Error](err)
	return is && e.Code == berth.Conflict && (e.Field == "plan" || e.Field == "foreseen")
}

// denyFlow answers with an error, which is remembered.
func (h *Host) denyFlow(a asked, err error, answer func(FlowAnswer, error)) {
	_ = h.deny(a, err, func(_ *Answer, err error) { answer(FlowAnswer{}, err) })
}

// flowAnswer returns the answer about a workflow as it is. Of what its tasks run it has no more
// than whether there is anything, and where the output goes: the rest is not shown, which may
// be a megabyte, and is on record with what was asked. Offers of one that was refused are made if
// none are given.
func (h *Host) flowAnswer(f *flowCard, offers []engine.WorkflowOffer) *FlowAnswer {
	if f.outcome == refusedFlow && offers == nil {
		offers = h.flowOffers(f.w)
	}
	return flowAnswer(f, h.core.cardsOf(f), offers)
}

func flowAnswer(f *flowCard, cards func(task int) *card, offers []engine.WorkflowOffer) *FlowAnswer {
	a := &FlowAnswer{Workflow: f.viewOf(cards)}
	a.Workflow.Expires = 0 // the form of recorded answers has none, and what is answered again is the same
	for i := range a.Workflow.Tasks {
		a.Workflow.Tasks[i].Missing = 0 // likewise
	}
	tasks := slices.Clone(f.w.Tasks)
	for i := range tasks {
		if w := &tasks[i].Work; w.Empty() {
			*w = berth.Work{}
		} else {
			*w = berth.Work{Command: []string{"run"}, Dir: w.Dir, Output: w.Output}
		}
		tasks[i].Measured = nil
	}
	a.Workflow.Workflow.Tasks, a.Workflow.Workflow.Free = tasks, nil
	for i := range offers {
		o := offers[i]
		o.Workflow = berth.Workflow{Deadline: o.Workflow.Deadline, Algorithm: o.Workflow.Algorithm}
		a.Offers = append(a.Offers, o)
	}
	return a
}

// visibleFlow has an answer about a workflow tell only those who may see it by now.
func (p Principal) visibleFlow(answer func(FlowAnswer, error)) func(FlowAnswer, error) {
	return func(a FlowAnswer, err error) {
		if err == nil && !p.seesFlow(&a.Workflow) {
			a, err = FlowAnswer{}, noFlow(a.Workflow.Workflow.ID)
		}
		answer(a, err)
	}
}

// seesFlow reports whether a principal may see a workflow as it was answered.
func (p Principal) seesFlow(w *Workflow) bool {
	if !p.Owns(w.Workflow.User) {
		return false
	}
	if p.Sites.All() {
		return true
	}
	hidden := func(site string) bool { return site != "" && !p.Sites.Has(site) }
	return !hidden(w.Workflow.Site) &&
		!slices.ContainsFunc(w.Workflow.Tasks, func(t berth.WorkflowTask) bool { return hidden(t.Site) }) &&
		!slices.ContainsFunc(w.Tasks, func(t FlowTask) bool { return hidden(t.Resource.Site) })
}

func noFlow(id string) error { return berth.Errorf(berth.NotFound, "id", "no workflow %q", id) }

// codeFlowAnswer is the form of an answer about a workflow. Of what is offered it has what clients
// are shown, which is no workflow that can be asked for.
func codeFlowAnswer(c *wire.Coder, a *FlowAnswer) {
	wire.Struct(c, 1, &a.Workflow, false, codeFlow)
	wire.List(c, 2, &a.Offers, func(c *wire.Coder, o *engine.WorkflowOffer) {
		wire.Int(c, 1, &o.Workflow.Deadline)
		wire.Name(c, 2, &o.Workflow.Algorithm)
		wire.Int(c, 3, &o.End)
		wire.Int(c, 4, &o.PESeconds)
		wire.List(c, 5, &o.Critical, wire.BareText[string])
		c.End()
	})
	c.End()
}

// codeFlow is the form of a workflow as an answer shows it.
func codeFlow(c *wire.Coder, w *Workflow) {
	wire.Struct(c, 1, &w.Workflow, false, wire.Workflow)
	wire.Name(c, 2, &w.State)
	wire.Uint(c, 3, &w.Version)
	wire.Name(c, 4, &w.Planner)
	wire.Int(c, 5, &w.End)
	wire.Int(c, 6, &w.Planned)
	wire.Int(c, 7, &w.Replanned)
	wire.Name(c, 8, &w.Cause)
	wire.String(c, 9, &w.Why)
	wire.Pointer(c, 10, &w.Refusal, wire.Refusal)
	wire.Int(c, 11, &w.Created)
	wire.Int(c, 12, &w.Changed)
	wire.List(c, 13, &w.Tasks, func(c *wire.Coder, t *FlowTask) {
		wire.String(c, 1, &t.Reservation)
		wire.Name(c, 2, &t.State)
		wire.Int(c, 3, &t.Tries)
		wire.Name(c, 4, &t.Outcome)
		wire.String(c, 5, &t.Why)
		wire.Int(c, 6, &t.Ended)
		wire.Int(c, 7, &t.Start)
		wire.Int(c, 8, &t.End)
		wire.Int(c, 9, &t.NPE)
		wire.Struct(c, 10, &t.Resource, t.Resource == berth.ResourceID{}, wire.ResourceID)
		wire.Int(c, 11, &t.PlannedStart)
		wire.Int(c, 12, &t.PlannedEnd)
		wire.String(c, 13, &t.Output)
		c.End()
	})
	c.End()
}
