package api_test

import (
	"context"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/service"
)

// flows are the workflows of the fake, which promises each at once, one task behind the
// other, or refuses it if its deadline is before the end.
type flows struct {
	made     []*service.Workflow
	answered map[string]service.FlowAnswer // by user and key
}

// answer remembers the answer under a key.
func (f *flows) answer(ask *service.Ask, a service.FlowAnswer) service.FlowAnswer {
	if ask.Key != "" {
		if f.answered == nil {
			f.answered = map[string]service.FlowAnswer{}
		}
		f.answered[ask.By.User+"\x00"+ask.Key] = a
	}
	return a
}

func (f *fake) RecallWorkflow(_ context.Context, ask service.Ask) (*service.FlowAnswer, error) {
	defer f.lock()()
	a, known := f.flows.answered[ask.By.User+"\x00"+ask.Key]
	if !known {
		return nil, nil
	}
	return &a, nil
}

func (f *fake) flow(ask *service.Ask, id string) (*service.Workflow, error) {
	if f.fails != nil {
		return nil, f.fails
	}
	for _, w := range f.flows.made {
		if w.Workflow.ID == id && ask.By.Owns(w.Workflow.User) {
			if ask.IfVersion != 0 && ask.IfVersion != w.Version {
				return nil, berth.Errorf(berth.Conflict, "version", "%d; it is %d by now", ask.IfVersion, w.Version)
			}
			return w, nil
		}
	}
	return nil, berth.Errorf(berth.NotFound, "id", "no workflow %q", id)
}

func (f *fake) SubmitWorkflow(_ context.Context, ask service.Ask, w berth.Workflow) (service.FlowAnswer, error) {
	defer f.lock()()
	switch {
	case f.fails != nil:
		return service.FlowAnswer{}, f.fails
	case w.User == "":
		w.User = ask.By.User
	case !ask.By.Owns(w.User):
		return service.FlowAnswer{}, berth.Errorf(berth.Denied, "user", "not yours")
	}
	if w.ID == "" {
		w.ID = "made"
	}
	w.Arrival = f.now
	v := &service.Workflow{Workflow: w, State: service.FlowPromised, Version: 1, Planner: "bd-cpar", Created: f.now, Changed: f.now}
	at := f.now
	for i := range w.Tasks {
		end := at.Add(berth.Duration(w.Tasks[i].Seconds))
		v.Tasks = append(v.Tasks, service.FlowTask{
			Reservation: engine.TaskID(w.ID, i, 1), State: service.Confirmed, Tries: 1, Start: at, End: end, NPE: 1, Resource: berth.PoolID("cm5", "batch"), PlannedStart: at, PlannedEnd: end,
		})
		at = end
	}
	v.End, v.Planned = at, at
	if w.Hold > 0 {
		v.State = service.FlowHeld
	}
	f.flows.made = append(f.flows.made, v)
	if at > w.Deadline {
		v.State, v.Tasks, v.Refusal = service.FlowRefused, make([]service.FlowTask, len(w.Tasks)), &berth.Refusal{Reason: berth.DeadlineMissed, Resource: berth.PoolID("cm5", "batch"), Wanted: 1, Possible: at}
		return f.flows.answer(&ask, service.FlowAnswer{Workflow: *v, Offers: f.flowOffers(w, at)}), nil
	}
	f.notify(service.Notice{What: "workflow_promised", Workflow: &service.FlowNews{ID: w.ID, User: w.User, State: v.State, End: at, Deadline: w.Deadline}})
	return f.flows.answer(&ask, service.FlowAnswer{Workflow: *v}), nil
}

func (f *fake) flowOffers(w berth.Workflow, end berth.Time) []engine.WorkflowOffer {
	w.Deadline, w.Algorithm = end, "bd-cpar"
	return []engine.WorkflowOffer{{Workflow: w, End: end, PESeconds: 3600, Critical: []string{w.Tasks[0].ID}}}
}

func (f *fake) WorkflowOffers(_ context.Context, ask service.Ask, w berth.Workflow) ([]engine.WorkflowOffer, error) {
	defer f.lock()()
	if w.User != "" && !ask.By.Owns(w.User) {
		return nil, berth.Errorf(berth.Denied, "user", "not yours")
	}
	return f.flowOffers(w, f.now+60), f.fails
}

func (f *fake) changeFlow(ask *service.Ask, id string, state service.FlowState) (service.FlowAnswer, error) {
	defer f.lock()()
	w, err := f.flow(ask, id)
	if err != nil {
		return service.FlowAnswer{}, err
	}
	w.State = state
	w.Version++
	return f.flows.answer(ask, service.FlowAnswer{Workflow: *w}), nil
}

func (f *fake) ConfirmWorkflow(_ context.Context, ask service.Ask, id string) (service.FlowAnswer, error) {
	return f.changeFlow(&ask, id, service.FlowPromised)
}

func (f *fake) CancelWorkflow(_ context.Context, ask service.Ask, id string) (service.FlowAnswer, error) {
	return f.changeFlow(&ask, id, service.FlowCancelled)
}

func (f *fake) RetryWorkflow(_ context.Context, ask service.Ask, id string, _ berth.Time) (service.FlowAnswer, error) {
	return f.changeFlow(&ask, id, service.FlowPromised)
}

func (f *fake) Workflow(_ context.Context, by service.Principal, id string) (service.Workflow, error) {
	defer f.lock()()
	w, err := f.flow(&service.Ask{By: by}, id)
	if err != nil {
		return service.Workflow{}, err
	}
	return *w, nil
}

func (f *fake) Workflows(_ context.Context, by service.Principal, q service.FlowFilter) (list []service.Workflow, looked int, err error) {
	defer f.lock()()
	for _, w := range f.flows.made {
		if by.Owns(w.Workflow.User) && w.Workflow.ID > q.After && (len(q.States) == 0 || slices.Contains(q.States, w.State)) && len(list) < q.Limit {
			list = append(list, *w)
		}
	}
	return list, len(list), f.fails
}
