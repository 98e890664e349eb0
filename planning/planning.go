// Package planning turns a workflow into reservations among the bookings of others: it
// makes a calendar of what they hold, plans with the planners of package workflow in one
// of several ways, and writes plan and bookings as a schedule. It decides nothing itself,
// and it reads no files.
package planning

import (
	"fmt"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

// Planning is a workflow, and what it is planned around.
type Planning struct {
	Name     string             // of the workflow
	Flow     *workflow.Workflow // with the times that are planned on
	PEs      berth.Count
	Now      berth.Time
	Bookings []workload.Booking // sorted by start
	Past     berth.Interval     // over which the average of free PEs was taken
	// Everywhere says that the bookings are at several sites, each at its own.
	Everywhere bool

	Instance *workflow.Instance // of Prepare
}

// Goal is what a plan is for: to end soonest, by a deadline, or by the tightest one.
type Goal struct {
	Deadline berth.Time // Forever for none
	Tightest bool       // search for it
}

// Result is what became of a workflow with one planner.
type Result struct {
	Planner workflow.Planner
	Plan    workflow.Plan
	Refusal *workflow.Refusal // nil if there is a plan
	// Tightest is the deadline that was searched for, and reached; Forever if none was.
	Tightest berth.Time
	Wall     time.Duration
	Probes   int      // reservations that Probe asked for
	Moved    []string // tasks that Repair moved
}

// Prepare makes an instance of the workflow among the bookings. free is how many PEs were
// free on average in the past. Errors are of code Invalid, also if the bookings do not fit.
func (p *Planning) Prepare(free berth.Count) error {
	around, err := p.Calendar()
	if err != nil {
		return err
	}
	p.Instance, err = workflow.Prepare(workflow.Problem{Workflow: p.Flow, Calendar: around, Now: p.Now, Free: free})
	return err
}

// Calendar returns what others hold from now on, as counts.
func (p *Planning) Calendar() (calendar.Calendar, error) {
	c := calendar.NewFast(p.PEs, berth.Late)
	for i := range p.Bookings {
		b := &p.Bookings[i]
		if b.End <= p.Now {
			continue
		}
		if err := c.Add(calendar.Block{Start: b.Start, End: b.End, NPE: b.NPE}); err != nil {
			return nil, fmt.Errorf("booking %q: %w", b.ID, err)
		}
	}
	return c, nil
}

// Plan plans with one planner. A planner that needs a deadline gets the tightest it can
// reach where the goal has none. Errors are of code Invalid.
func (p *Planning) Plan(planner workflow.Planner, goal Goal) (*Result, error) {
	began := time.Now()
	r := &Result{Planner: planner, Tightest: berth.Forever}
	if !goal.Tightest && (goal.Deadline != berth.Forever || planner.Goal == workflow.Finish) {
		var err error
		if r.Plan, r.Refusal, err = p.Instance.Plan(planner, goal.Deadline); err != nil {
			return nil, err
		}
	} else {
		t, plan, ok := p.Instance.Tightest(planner)
		if ok {
			r.Plan, r.Tightest = plan, t
		} else {
			r.Refusal = &workflow.Refusal{
				Planner: planner.Name, Reason: berth.NoCapacity, Deadline: berth.Forever, Bound: p.Instance.Bound(), Tightest: berth.Forever,
			}
		}
	}
	r.Wall = time.Since(began)
	return r, nil
}

// closed is a site that does not show its calendar.
type closed struct{ calendar calendar.Calendar }

var _ workflow.Reserver = closed{}

func (c closed) Reserve(b calendar.Block) bool { return c.calendar.Add(b) == nil }

func (c closed) Cancel(b calendar.Block) {
	if err := c.calendar.Remove(b); err != nil {
		panic("berth: gave back what was not held: " + err.Error())
	}
}

// Probe plans as if the bookings could not be seen, only run into, with at most n requests
// for each task. Errors are of code Invalid, or Exhausted where those were too few.
func (p *Planning) Probe(budget int) (*Result, error) {
	began := time.Now()
	around, err := p.Calendar()
	if err != nil {
		return nil, err
	}
	probing := workflow.Probing{
		Problem: workflow.Problem{Workflow: p.Flow, Now: p.Now, Free: p.Instance.Free()},
		Size:    p.PEs, Site: closed{around}, Budget: budget,
	}
	plan, asked, gaveUp, err := probing.Plan()
	switch {
	case err != nil:
		return nil, err
	case gaveUp != nil:
		return nil, berth.Errorf(berth.Exhausted, "", "%s; --probes allows %d for each task", gaveUp, budget)
	}
	return &Result{Planner: workflow.Planner{Name: plan.Planner}, Plan: plan, Tightest: berth.Forever, Wall: time.Since(began), Probes: asked}, nil
}

// Repair brings an earlier plan, which is in the lines of its schedule, in line with what
// is booked now. Errors are of code Invalid, if the schedule holds no whole plan of the
// workflow.
func (p *Planning) Repair(lines []workload.Booking, deadline berth.Time) (*Result, error) {
	before, err := p.planIn(lines)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	r := &Result{Planner: workflow.Planner{Name: before.Planner}, Tightest: berth.Forever, Moved: []string{}}
	var moved []int
	r.Plan, moved, r.Refusal = p.Instance.Replan(&before, deadline)
	r.Wall = time.Since(began)
	for _, i := range moved {
		r.Moved = append(r.Moved, p.Flow.Task(i).ID)
	}
	return r, nil
}

// planIn finds the plan of the workflow in a schedule: each task's line has its
// id, behind what stands before the ids of all (see Planning.prefix).
func (p *Planning) planIn(lines []workload.Booking) (workflow.Plan, error) {
	at := map[string]*workload.Booking{}
	for i := range lines {
		at[lines[i].ID] = &lines[i]
	}
	prefix := ""
	for at[prefix+taskPrefix+p.Flow.Task(0).ID] != nil {
		prefix += taskPrefix
	}
	plan := workflow.Plan{Planner: "repair", Tasks: make([]workflow.Placement, p.Flow.Len())}
	for _, i := range p.Flow.Topological() {
		task := p.Flow.Task(int(i))
		b := at[prefix+task.ID]
		if b == nil {
			return plan, berth.Errorf(berth.Invalid, "repair", "task %q of the workflow has no reservation; want the schedule of a whole plan", task.ID)
		}
		if d := task.Duration(b.NPE); b.End.Sub(b.Start) != d {
			return plan, berth.Errorf(berth.Invalid, "repair", "task %q has %d PEs for %d s, on which it takes %d s; the plan is of another workflow", task.ID, b.NPE, b.End.Sub(b.Start), d)
		}
		for _, parent := range p.Flow.Parents(int(i)) {
			if before := plan.Tasks[parent]; before.End > b.Start {
				return plan, berth.Errorf(berth.Invalid, "repair", "task %q starts at %d, before its parent %q ends at %d", task.ID, b.Start, p.Flow.Task(int(parent)).ID, before.End)
			}
		}
		plan.Tasks[i] = workflow.Placement{Task: int(i), NPE: b.NPE, Start: b.Start, End: b.End}
	}
	return plan, nil
}

// OneSite refuses bookings of more than one site or pool. Where none is named,
// the only one is meant. name is that of
// their file. The error is of code Invalid.
func OneSite(name string, bookings []workload.Booking) error {
	var first *workload.Booking
	for i := range bookings {
		b := &bookings[i]
		switch {
		case b.Site == "" && b.Pool == "":
		case first == nil:
			first = b
		case b.Site != first.Site || b.Pool != first.Pool:
			return berth.Errorf(berth.Invalid, "site", "%s: booking %q is at site %q, pool %q, and %q at site %q, pool %q; a plan is for one",
				name, first.ID, first.Site, first.Pool, b.ID, b.Site, b.Pool)
		}
	}
	return nil
}
