package reproduce

import (
	"fmt"
	"strconv"

	"github.com/berth-hpc/berth"
)

// deviatingNotes say what was done.
var deviatingNotes = []string{
	"The paper plans once and takes run times for certain; that tasks end early or late is among its future work. The study is ours.",
	"Every planner and repair decides about the same jobs and the same workflows with the same errors in each repetition; intervals are Student's t over the differences.",
	"Jobs are those of the logs with the estimates of their users, passed by EASY; each repetition takes another part of a log. A load of 1.5 divides the gaps between arrivals by 1.5.",
	fmt.Sprintf("A deadline leaves %d times the time that the workflow takes alone on the empty machine, planned by bd-cpar. A workflow that is not promised is counted as such, not as a deadline that was missed.", deviatingSlack),
	"A task takes up to so many percent longer or shorter than planned, uniformly; the heavy tail is a Pareto law of shape 3/2 from half of the planned time on, cut at ten times. A try that its reservation cuts off is repeated once.",
	"Planning, promising and mending are the engine's, as in a service; the simulation only tells how tasks end.",
}

// deviatingRows tells what was simulated.
func deviatingRows(scale deviatingScale, logs []*openLog) []Row {
	rows := []Row{
		{"jobs in a run", strconv.Itoa(scale.jobs)},
		{"workflows in a run", fmt.Sprintf("%d of %d tasks, drawn by daggen with the times and serial fractions of the paper", scale.workflows, scale.tasks)},
		{"loads", fmt.Sprint(scale.loads)},
	}
	for _, log := range logs {
		rows = append(rows, Row{"log", fmt.Sprintf("%s, %d PEs (thanks to %s)", log.file, log.pes, log.thanks)})
	}
	return rows
}

// The places of planners and errors that claims are about.
const (
	byForward  = 0 // bd-cpar
	byBackward = 2 // dl-bd-cpar
	byCheapest = 4 // best-0
	bySlack    = 6 // best-25
	byDefault  = 7 // best-50
	byMost     = 8 // best-75
	noMiss     = 0
)

// deviatingClaims judges the data.
func deviatingClaims(d *deviatingData) []Claim {
	return []Claim{deviatingSure(d), deviatingLate(d), deviatingEarly(d), deviatingForward(d), deviatingSlackLeft(d), deviatingBest(d)}
}

// deviatingSure: a promise is kept where run times are right.
func deviatingSure(d *deviatingData) Claim {
	c := Claim{
		ID: "D1", Kind: Check, Source: "section 3, run times are known", Figure: "kept-by-error",
		Paper: "where tasks take the planned times every promised deadline is met",
	}
	for p, planner := range deviatingPlanners {
		kept := d.of(p, berth.RepairHold, noMiss, keepsDeadlines)
		c.Parts = append(c.Parts, part("deadlines kept - 100, "+planner+", plan held", "points", kept.plus(-100), smaller(.1)))
		c.Ours = joined(c.Ours, fmt.Sprintf("%s %s %%", planner, kept))
	}
	return c
}

// deviatingLate: what is late goes on.
func deviatingLate(d *deviatingData) Claim {
	c := Claim{
		ID: "D2", Kind: Own, Source: "section 6, future work", Figure: "kept-by-error",
		Paper: "(ours) with wrong run times, letting late tasks go on and moving what follows keeps more deadlines than holding the plan",
	}
	for m := 1; m < len(deviatingMisses); m++ {
		late, hold := d.everywhere(berth.RepairLate, m, keepsDeadlines), d.everywhere(berth.RepairHold, m, keepsDeadlines)
		c.Parts = append(c.Parts, part("deadlines kept, repair late - hold, error "+deviatingMisses[m].name, "points", late.minus(hold), above()))
		c.Ours = joined(c.Ours, fmt.Sprintf("error %s: %s %% against %s %%", deviatingMisses[m].name, late, hold))
	}
	return c
}

// deviatingEarly: what is early lets the rest come forward.
func deviatingEarly(d *deviatingData) Claim {
	c := Claim{
		ID: "D3", Kind: Own, Source: "section 6, future work", Figure: "kept-by-error",
		Paper: "(ours) moving forward what follows on an early end as well keeps no fewer deadlines, and shortens the turn-around",
	}
	for m := 1; m < len(deviatingMisses); m++ {
		both, late := d.everywhere(berth.RepairBoth, m, keepsDeadlines), d.everywhere(berth.RepairLate, m, keepsDeadlines)
		sooner := d.everywhere(berth.RepairBoth, m, turnsAround).minus(d.everywhere(berth.RepairLate, m, turnsAround))
		c.Parts = append(
			c.Parts,
			part("deadlines kept, repair both - late, error "+deviatingMisses[m].name, "points", both.minus(late), notBelow(1)),
			part("turn-around, repair both - late, error "+deviatingMisses[m].name, "hours", sooner, below()),
		)
		c.Ours = joined(c.Ours, fmt.Sprintf("error %s: %s %% against %s %%, turn-around %s h", deviatingMisses[m].name, both, late, sooner))
	}
	return c
}

// deviatingForward: time left before the deadline is what an error can use up.
func deviatingForward(d *deviatingData) Claim {
	c := Claim{
		ID: "D4", Kind: Own, Source: "section 5, deadlines", Figure: "kept-by-planner",
		Paper: "(ours) with wrong run times a planner that ends as early as it can keeps more deadlines than one that goes backwards from the deadline",
	}
	for m := 1; m < len(deviatingMisses); m++ {
		forward, backward := d.of(byForward, berth.RepairBoth, m, keepsDeadlines), d.of(byBackward, berth.RepairBoth, m, keepsDeadlines)
		c.Parts = append(c.Parts, part("deadlines kept, bd-cpar - dl-bd-cpar, repair both, error "+deviatingMisses[m].name, "points", forward.minus(backward), above()))
		c.Ours = joined(c.Ours, fmt.Sprintf("error %s: %s %% against %s %%", deviatingMisses[m].name, forward, backward))
	}
	return c
}

// deviatingSlackLeft: the cheapest plan need not use up all the time that there is.
func deviatingSlackLeft(d *deviatingData) Claim {
	c := Claim{
		ID: "D5", Kind: Own, Source: "section 5, deadlines", Figure: "met-by-planner",
		Paper: "(ours) with wrong run times the cheapest plan that leaves a quarter of the time until the deadline, where there is one, meets more of all deadlines than the cheapest plan, and than the plan that ends earliest",
	}
	for m := 1; m < len(deviatingMisses); m++ {
		slack := d.of(bySlack, berth.RepairBoth, m, meetsOfAll)
		cheapest, forward := d.of(byCheapest, berth.RepairBoth, m, meetsOfAll), d.of(byForward, berth.RepairBoth, m, meetsOfAll)
		c.Parts = append(
			c.Parts,
			part("deadlines met of all, best-25 - best-0, repair both, error "+deviatingMisses[m].name, "points", slack.minus(cheapest), above()),
			part("deadlines met of all, best-25 - bd-cpar, repair both, error "+deviatingMisses[m].name, "points", slack.minus(forward), above()),
		)
		c.Ours = joined(c.Ours, fmt.Sprintf("error %s: %s %% against %s %% and %s %%", deviatingMisses[m].name, slack, cheapest, forward))
	}
	return c
}

// deviatingBest: what a service takes by default meets the most.
func deviatingBest(d *deviatingData) Claim {
	c := Claim{
		ID: "D6", Kind: Own, Source: "section 5, deadlines", Figure: "met-by-planner",
		Paper: "(ours) with wrong run times the cheapest plan that leaves half of the time until the deadline, where there is one, meets more of all deadlines than one that leaves a quarter or three quarters",
	}
	for m := 1; m < len(deviatingMisses); m++ {
		half := d.of(byDefault, berth.RepairBoth, m, meetsOfAll)
		less, more := d.of(bySlack, berth.RepairBoth, m, meetsOfAll), d.of(byMost, berth.RepairBoth, m, meetsOfAll)
		c.Parts = append(
			c.Parts,
			part("deadlines met of all, best-50 - best-25, repair both, error "+deviatingMisses[m].name, "points", half.minus(less), above()),
			part("deadlines met of all, best-50 - best-75, repair both, error "+deviatingMisses[m].name, "points", half.minus(more), above()),
		)
		c.Ours = joined(c.Ours, fmt.Sprintf("error %s: %s %%, %s more than best-25 and %s more than best-75", deviatingMisses[m].name, half, half.minus(less), half.minus(more)))
	}
	return c
}

// joined adds to a list in words.
func joined(list, more string) string {
	if list == "" {
		return more
	}
	return list + "; " + more
}

// deviatingFigures draws the data.
func deviatingFigures(d *deviatingData) []Figure {
	var labels []string
	for _, m := range deviatingMisses {
		labels = append(labels, m.name)
	}
	byRepair := Figure{
		Name: "kept-by-error", Title: "Deadlines kept, by repair",
		Caption: "Promised workflows that ended by their deadline, mean of all planners, logs and loads. Means and 95 % intervals over the repetitions.",
		X:       "error of the run times", Y: "deadlines kept, %", Ticks: ticksAt(labels), Zero: true, Within: percentages,
	}
	for _, repair := range berth.Repairs() {
		var samples []sample
		for m := range deviatingMisses {
			samples = append(samples, d.everywhere(repair, m, keepsDeadlines))
		}
		byRepair.Series = append(byRepair.Series, line(string(repair), nil, labels, samples))
	}
	byPlanner := Figure{
		Name: "kept-by-planner", Title: "Deadlines kept, by planner",
		Caption: "Promised workflows that ended by their deadline under the repair both, mean of all logs and loads. Means and 95 % intervals over the repetitions.",
		X:       "error of the run times", Y: "deadlines kept, %", Ticks: ticksAt(labels), Zero: true, Within: percentages,
	}
	met := Figure{
		Name: "met-by-planner", Title: "Deadlines met of all, by planner",
		Caption: "Workflows that were promised and ended by their deadline, of all that were asked for, under the repair both, mean of all logs and loads. Means and 95 % intervals over the repetitions.",
		X:       "error of the run times", Y: "deadlines met, %", Ticks: ticksAt(labels), Zero: true, Within: percentages,
	}
	hours := Figure{
		Name: "hours-by-planner", Title: "CPU-hours of a workflow, by planner",
		Caption: "CPU-hours that the tasks of a promised workflow held under the repair both, mean of all logs and loads. Means and 95 % intervals over the repetitions.",
		X:       "error of the run times", Y: "CPU-hours of a workflow", Ticks: ticksAt(labels), Zero: true,
	}
	for p, planner := range deviatingPlanners {
		var kept, held, ofAll []sample
		for m := range deviatingMisses {
			kept = append(kept, d.of(p, berth.RepairBoth, m, keepsDeadlines))
			held = append(held, d.of(p, berth.RepairBoth, m, hoursHeld))
			ofAll = append(ofAll, d.of(p, berth.RepairBoth, m, meetsOfAll))
		}
		byPlanner.Series = append(byPlanner.Series, line(planner, nil, labels, kept))
		hours.Series = append(hours.Series, line(planner, nil, labels, held))
		met.Series = append(met.Series, line(planner, nil, labels, ofAll))
	}
	return []Figure{byRepair, byPlanner, met, hours}
}

// deviatingLogs lists what was met of all under the repair both for each log and load.
func deviatingLogs(d *deviatingData) Table {
	t := Table{
		Name: "met-by-log", Title: "Deadlines met of all under the repair both, by log and load",
		Header: []string{"log", "load", "planner", "error", "met", "met_low", "met_high"},
	}
	for l, log := range d.logs {
		for k, load := range d.scale.loads {
			for p, planner := range deviatingPlanners {
				for m := range deviatingMisses {
					e, n := d.at(l, k, p, berth.RepairBoth, m, meetsOfAll).estimate()
					t.Rows = append(t.Rows, append([]string{log.name, fmt.Sprint(load), planner, deviatingMisses[m].name}, numbers(e, n)[:3]...))
				}
			}
		}
	}
	return t
}

// deviatingTable lists all figures with their intervals.
func deviatingTable(d *deviatingData) Table {
	t := Table{
		Name: "settings", Title: "Planner, repair and error (means over logs and loads)",
		Header: []string{"planner", "repair", "error"},
	}
	for _, name := range deviatingFigureNames {
		t.Header = append(t.Header, name, name+"_low", name+"_high")
	}
	for p, planner := range deviatingPlanners {
		for _, repair := range berth.Repairs() {
			for m := range deviatingMisses {
				row := []string{planner, string(repair), deviatingMisses[m].name}
				for figure := range deviatingKept {
					e, n := d.of(p, repair, m, figure).estimate()
					row = append(row, numbers(e, n)[:3]...)
				}
				t.Rows = append(t.Rows, row)
			}
		}
	}
	return t
}
