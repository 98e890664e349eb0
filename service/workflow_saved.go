package service

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/wire"
)

// savedFlow is what is known of a workflow in its written form.
type savedFlow struct {
	Workflow  *berth.Workflow
	Outcome   berth.Outcome
	Why       string
	Refusal   *berth.Refusal
	Planner   string
	End       berth.Time
	Planned   berth.Time
	Replanned int
	Cause     change.Cause
	Version   uint64
	Created   berth.Time
	Changed   berth.Time
	Tasks     []flowTask
}

func (s *savedFlow) code(c *wire.Coder) {
	wire.Pointer(c, 1, &s.Workflow, wire.Workflow)
	wire.Name(c, 2, &s.Outcome)
	wire.String(c, 3, &s.Why)
	wire.Pointer(c, 4, &s.Refusal, wire.Refusal)
	wire.Name(c, 5, &s.Planner)
	wire.Int(c, 6, &s.End)
	wire.Int(c, 7, &s.Planned)
	wire.Int(c, 8, &s.Replanned)
	wire.Name(c, 9, &s.Cause)
	wire.Uint(c, 10, &s.Version)
	wire.Int(c, 11, &s.Created)
	wire.Int(c, 12, &s.Changed)
	wire.List(c, 13, &s.Tasks, func(c *wire.Coder, t *flowTask) {
		wire.String(c, 1, &t.reservation)
		wire.Int(c, 2, &t.tries)
		wire.Name(c, 3, &t.outcome)
		wire.String(c, 4, &t.why)
		wire.Int(c, 5, &t.ended)
		wire.Int(c, 6, &t.first.Start)
		wire.Int(c, 7, &t.first.End)
		wire.String(c, 8, &t.output)
		c.End()
	})
	c.End()
}

// savedFlows returns what is known of workflows: the live ones by id, then those that are over
// in their order.
func (c *Core) savedFlows() []savedFlow {
	var live []string
	for id, f := range c.flows.byID {
		if f.outcome == "" {
			live = append(live, id)
		}
	}
	slices.Sort(live)
	var all []savedFlow
	for _, id := range slices.Concat(live, c.flows.over) {
		f := c.flows.byID[id]
		all = append(all, savedFlow{
			Workflow: f.w, Outcome: f.outcome, Why: f.why, Refusal: f.refusal, Planner: f.planner, End: f.end, Planned: f.planned, Replanned: f.replanned,
			Cause: f.cause, Version: f.version, Created: f.created, Changed: f.changed, Tasks: f.tasks,
		})
	}
	return all
}

// restoreFlows reads what savedFlows wrote.
func (c *Core) restoreFlows(all []savedFlow) error {
	for i := range all {
		s := &all[i]
		if s.Workflow == nil || len(s.Tasks) != len(s.Workflow.Tasks) {
			return berth.Errorf(berth.Invalid, "snapshot", "workflow %d is none", i)
		}
		f := &flowCard{
			id: s.Workflow.ID, w: s.Workflow, outcome: s.Outcome, why: s.Why, refusal: s.Refusal, planner: s.Planner, end: s.End, planned: s.Planned, replanned: s.Replanned,
			cause: s.Cause, version: s.Version, created: s.Created, changed: s.Changed, tasks: s.Tasks,
		}
		f.number()
		if c.flows.byID[f.w.ID] = f; f.outcome == "" {
			c.flows.live++
		} else {
			c.flows.over = append(c.flows.over, f.w.ID)
			c.flows.past += len(f.tasks)
		}
	}
	return nil
}
