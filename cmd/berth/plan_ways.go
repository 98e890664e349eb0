package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

// checkWays finds flags of other ways to plan than from nothing on a calendar
// that lies open, where they contradict one another.
func (flags *planFlags) checkWays(cmd *cobra.Command) error {
	type way struct {
		flag, meaning string
		set           bool
		unfit         []string
	}
	ways := []way{
		{"probes", "asks for one reservation after another", flags.probes > 0, []string{"algorithm", "deadline", "tightest"}},
		{"repair", "keeps a plan as far as it can", flags.repair != "", []string{"algorithm", "tightest", "estimates"}},
		{"sites", "plans over several sites, by bd-cpar or towards --deadline by dl-bd-cpar", flags.sites != "", []string{"algorithm", "tightest", "estimates", "pes", "q", "partition", "strict"}},
	}
	for i, w := range ways {
		if !w.set {
			continue
		}
		for _, other := range ways[i+1:] {
			if other.set {
				return usagef(cmd, "--%s: does not go with --%s, which %s", other.flag, w.flag, w.meaning)
			}
		}
		for _, flag := range w.unfit {
			if cmd.Flags().Changed(flag) {
				return usagef(cmd, "--%s: does not go with --%s, which %s", flag, w.flag, w.meaning)
			}
		}
	}
	return nil
}

// results plans as the flags say.
func (a *app) results(p *planning, flags *planFlags) ([]*planned, error) {
	one := func(r *planned, err error) ([]*planned, error) {
		if err != nil {
			return nil, err
		}
		return []*planned{r}, nil
	}
	switch {
	case flags.probes > 0:
		return one(p.probe(flags))
	case flags.repair != "":
		return one(a.repair(p, flags))
	}
	var results []*planned
	for _, planner := range flags.planners {
		r, err := p.run(planner, flags)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
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

// probe plans as if the bookings could not be seen, only run into.
func (p *planning) probe(flags *planFlags) (*planned, error) {
	began := time.Now()
	around, err := p.calendar()
	if err != nil {
		return nil, err
	}
	probing := workflow.Probing{
		Problem: workflow.Problem{Workflow: p.flow, Now: p.now, Free: p.instance.Free()},
		Size:    p.pes, Site: closed{around}, Budget: flags.probes,
	}
	plan, asked, gaveUp, err := probing.Plan()
	switch {
	case err != nil:
		return nil, err
	case gaveUp != nil:
		return nil, berth.Errorf(berth.Exhausted, "", "%s; --probes allows %d for each task", gaveUp, flags.probes)
	}
	r := &planned{planner: workflow.Planner{Name: plan.Planner}, plan: plan, tightest: berth.Forever, wall: time.Since(began)}
	r.notes = append(r.notes, fmt.Sprintf("%d reservations were asked for, %.1f for each task", asked, float64(asked)/float64(p.flow.Len())))
	r.probes = asked
	return r, nil
}

// repair brings an earlier plan in line with what is booked now.
func (a *app) repair(p *planning, flags *planFlags) (*planned, error) {
	began := time.Now()
	file, err := a.readBookings(flags.repair, workload.Options{Strict: true})
	if err != nil {
		return nil, err
	}
	before, err := p.planIn(file.Bookings)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flags.repair, err)
	}
	deadline := berth.Forever
	if flags.deadline.set {
		deadline = flags.deadline.t
	}
	r := &planned{planner: workflow.Planner{Name: before.Planner}, tightest: berth.Forever, moved: []string{}}
	var moved []int
	r.plan, moved, r.refusal = p.instance.Replan(&before, deadline)
	r.wall = time.Since(began)
	for _, i := range moved {
		r.moved = append(r.moved, p.flow.Task(i).ID)
	}
	note := "no task had to move"
	if len(moved) > 0 {
		note = fmt.Sprintf("%d of %d tasks moved: %s", len(moved), p.flow.Len(), shortList(r.moved))
	}
	r.notes = append(r.notes, note)
	return r, nil
}

// planIn finds the plan of the workflow in a schedule: each task's line has its
// id, behind what stands before the ids of all (see planning.prefix).
func (p *planning) planIn(lines []workload.Booking) (workflow.Plan, error) {
	at := map[string]*workload.Booking{}
	for i := range lines {
		at[lines[i].ID] = &lines[i]
	}
	prefix := ""
	for at[prefix+taskPrefix+p.flow.Task(0).ID] != nil {
		prefix += taskPrefix
	}
	plan := workflow.Plan{Planner: "repair", Tasks: make([]workflow.Placement, p.flow.Len())}
	for _, i := range p.flow.Topological() {
		task := p.flow.Task(int(i))
		b := at[prefix+task.ID]
		if b == nil {
			return plan, berth.Errorf(berth.Invalid, "repair", "task %q of the workflow has no reservation; want the schedule of a whole plan", task.ID)
		}
		if d := task.Duration(b.NPE); b.End.Sub(b.Start) != d {
			return plan, berth.Errorf(berth.Invalid, "repair", "task %q has %d PEs for %d s, on which it takes %d s; the plan is of another workflow", task.ID, b.NPE, b.End.Sub(b.Start), d)
		}
		for _, parent := range p.flow.Parents(int(i)) {
			if before := plan.Tasks[parent]; before.End > b.Start {
				return plan, berth.Errorf(berth.Invalid, "repair", "task %q starts at %d, before its parent %q ends at %d", task.ID, b.Start, p.flow.Task(int(parent)).ID, before.End)
			}
		}
		plan.Tasks[i] = workflow.Placement{Task: int(i), NPE: b.NPE, Start: b.Start, End: b.End}
	}
	return plan, nil
}

// replayOutput is how a plan made on estimates goes with the times of the file.
type replayOutput struct {
	Factor       float64        `json:"factor"` // estimates over times
	Turnaround   berth.Duration `json:"turnaround"`
	UsedCPUHours float64        `json:"used_cpu_hours"`
	CutOff       []string       `json:"cut_off"` // had not ended with their reservation
	Lost         []string       `json:"lost"`    // could not run for those
}

// replay runs every plan with the times of the file.
func (p *planning) replay(results []*planned, flags *planFlags) {
	if flags.estimates == 0 {
		return
	}
	for _, r := range results {
		if r.refusal != nil {
			continue
		}
		o := p.actual.Replay(&r.plan, p.now)
		out := &replayOutput{Factor: flags.estimates, Turnaround: o.Turnaround, UsedCPUHours: hours(o.UsedCPUSeconds), CutOff: []string{}, Lost: []string{}}
		for _, i := range o.CutOff {
			out.CutOff = append(out.CutOff, p.flow.Task(i).ID)
		}
		for _, i := range o.Lost {
			out.Lost = append(out.Lost, p.flow.Task(i).ID)
		}
		r.replayed = out
		r.notes = append(r.notes, out.note(r.plan.CPUSeconds))
	}
}

// note says it in words.
func (o *replayOutput) note(reserved int64) string {
	text := fmt.Sprintf("planned on estimates × %s; with the times of the file it takes %s and uses %.2f of %.2f CPU-hours",
		strconv.FormatFloat(o.Factor, 'g', -1, 64), seconds(int64(o.Turnaround)), o.UsedCPUHours, hours(reserved))
	if len(o.CutOff) > 0 {
		text += fmt.Sprintf("; %d tasks are cut off (%s), and %d behind them cannot run", len(o.CutOff), shortList(o.CutOff), len(o.Lost))
	}
	return text
}

// shortList names the first few.
func shortList(names []string) string {
	const shown = 8
	if len(names) <= shown {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:shown], ", ") + fmt.Sprintf(" and %d more", len(names)-shown)
}
