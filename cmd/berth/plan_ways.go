package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
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
		{"repair", "keeps what it can of a plan", flags.repair != "", []string{"algorithm", "tightest", "estimates"}},
		{"sites", "plans over several sites, by bd-cpar or towards --deadline by dl-bd-cpar", flags.sites != "", []string{"algorithm", "tightest", "estimates", "pes", "q", "partition"}},
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
func (a *app) results(p *planInput, flags *planFlags) ([]*planned, error) {
	if flags.repair != "" {
		r, err := a.repair(p, flags)
		return []*planned{r}, err
	}
	if flags.probes > 0 {
		r, err := p.Probe(flags.probes)
		if err != nil {
			return nil, err
		}
		note := fmt.Sprintf("%d reservations were asked for, %.1f for each task", r.Probes, float64(r.Probes)/float64(p.Flow.Len()))
		return []*planned{{Result: r, notes: []string{note}}}, nil
	}
	var results []*planned
	for _, planner := range flags.planners {
		r, err := p.Plan(planner, flags.goal())
		if err != nil {
			return nil, err
		}
		results = append(results, &planned{Result: r})
	}
	return results, nil
}

// repair brings an earlier plan in line with what is booked now.
func (a *app) repair(p *planInput, flags *planFlags) (*planned, error) {
	file, err := a.readBookings(flags.repair, workload.Options{Strict: true})
	if err != nil {
		return nil, err
	}
	r, err := p.Repair(file.Bookings, flags.goal().Deadline)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flags.repair, err)
	}
	note := "no task had to move"
	if len(r.Moved) > 0 {
		note = fmt.Sprintf("%d of %d tasks moved: %s", len(r.Moved), p.Flow.Len(), shortList(r.Moved))
	}
	return &planned{Result: r, notes: []string{note}}, nil
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
func replay(p *planInput, results []*planned, flags *planFlags) {
	if flags.estimates == 0 {
		return
	}
	for _, r := range results {
		if r.Refusal != nil {
			continue
		}
		o := p.actual.Replay(&r.Plan, p.Now)
		out := &replayOutput{Factor: flags.estimates, Turnaround: o.Turnaround, UsedCPUHours: hours(o.UsedCPUSeconds), CutOff: []string{}, Lost: []string{}}
		for _, i := range o.CutOff {
			out.CutOff = append(out.CutOff, p.Flow.Task(i).ID)
		}
		for _, i := range o.Lost {
			out.Lost = append(out.Lost, p.Flow.Task(i).ID)
		}
		r.replayed = out
		r.notes = append(r.notes, out.note(r.Plan.CPUSeconds))
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
