package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/plot"
	"github.com/berth-hpc/berth/workflow"
)

// planCommand returns berth plan.
func (a *app) planCommand() *cobra.Command {
	flags := newPlanFlags()
	cmd := &cobra.Command{
		Use:   "plan WORKFLOW.json --pes N|--sites FILE.yaml",
		Short: "Turn a workflow into reservations among those of others",
		Long:  planLong(),
		Example: `  berth plan workflow.json --pes 430 --algorithm bd-cpar
  berth plan workflow.json.gz --bookings LOG.swf.gz --now 40000000 --algorithm all
  berth plan workflow.json --pes 430 --bookings bookings.jsonl --algorithm dl-rcbd-cpar-lambda --deadline 90000
  berth plan workflow.json --pes 430 --bookings bookings.jsonl --tightest --schedule out.jsonl --plot out.svg
  berth plan workflow.json --pes 430 --bookings later.jsonl --repair out.jsonl
  berth plan workflow.json --sites sites.yaml --bookings bookings.jsonl
  berth check out.jsonl --pes 430`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef(cmd, "want one WORKFLOW.json (or - for stdin), got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.plan(cmd, args[0], flags) },
	}
	addPlanFlags(cmd, flags)
	return cmd
}

// planned is what became of a workflow with one planner.
type planned struct {
	planner workflow.Planner
	plan    workflow.Plan
	refusal *workflow.Refusal // nil if there is a plan
	// tightest is the deadline that was searched for, and reached; Forever if
	// none was.
	tightest berth.Time
	wall     time.Duration

	probes   int           // asked for, with --probes
	moved    []string      // tasks, with --repair
	replayed *replayOutput // with --estimates
	notes    []string      // of these, for people
}

// plan runs the command.
func (a *app) plan(cmd *cobra.Command, path string, flags *planFlags) error {
	if err := flags.validate(cmd); err != nil {
		return err
	}
	if err := flags.claims(cmd, path, nil).apart(); err != nil {
		return err
	}
	if err := flags.writable(); err != nil {
		return err
	}
	if flags.sites != "" {
		return a.planSites(cmd, path, flags)
	}
	p, err := a.openPlanning(cmd, path, flags)
	if err != nil {
		return err
	}
	results, err := a.results(p, flags)
	if err != nil {
		return err
	}
	p.replay(results, flags)
	if err := a.keepPlans(cmd, p, results, flags); err != nil {
		return err
	}
	if err := a.printPlans(p, results, flags); err != nil {
		return fmt.Errorf("writing the plans: %w", err)
	}
	return a.refused(results, flags)
}

// run plans with one planner. A planner that needs a deadline, run among others
// without one, gets the tightest it can reach.
func (p *planning) run(planner workflow.Planner, flags *planFlags) (*planned, error) {
	began := time.Now()
	r := &planned{planner: planner, tightest: berth.Forever}
	if !flags.tightest && (flags.deadline.set || planner.Goal == workflow.Finish) {
		deadline := berth.Forever
		if flags.deadline.set {
			deadline = flags.deadline.t
		}
		var err error
		if r.plan, r.refusal, err = p.instance.Plan(planner, deadline); err != nil {
			return nil, err
		}
	} else {
		t, plan, ok := p.instance.Tightest(planner)
		if ok {
			r.plan, r.tightest = plan, t
		} else {
			r.refusal = &workflow.Refusal{
				Planner: planner.Name, Reason: berth.NoCapacity, Deadline: berth.Forever, Bound: p.instance.Bound(), Tightest: berth.Forever,
			}
		}
	}
	r.wall = time.Since(began)
	return r, nil
}

// refused tells refusals on stderr. It is one itself if there is no plan.
func (a *app) refused(results []*planned, flags *planFlags) error {
	var nearest *workflow.Refusal
	missed := 0
	for _, r := range results {
		if r.refusal == nil {
			continue
		}
		missed++
		if nearest == nil || r.refusal.Tightest < nearest.Tightest {
			nearest = r.refusal
		}
	}
	switch {
	case missed == 0:
		return nil
	case len(results) == 1:
		return berth.Errorf(berth.Exhausted, "", "%s", refusalText(nearest))
	}
	text := fmt.Sprintf("%d of %d algorithms have no plan", missed, len(results))
	if flags.deadline.set {
		text += fmt.Sprintf(" by %d", flags.deadline.t)
	}
	if nearest.TightestBy != "" {
		text += fmt.Sprintf("; the tightest deadline that was found for them is %d, by %s", nearest.Tightest, nearest.TightestBy)
	}
	if missed < len(results) {
		a.say("berth: %s", text)
		return nil
	}
	return berth.Errorf(berth.Exhausted, "", "%s", text)
}

// refusalText words a refusal; a search for the tightest deadline had none to
// begin with.
func refusalText(r *workflow.Refusal) string {
	if r.Deadline == berth.Forever {
		return r.Planner + ": no deadline was found that can be met"
	}
	return r.String()
}

// validate finds what no single flag can see.
func (flags *planFlags) validate(cmd *cobra.Command) error {
	switch {
	case flags.deadline.set && flags.tightest:
		return usagef(cmd, "--tightest: searches for a deadline, and --deadline gives one; want one of the two")
	case len(flags.planners) == 1 && flags.planners[0].Goal == workflow.Deadline && !flags.deadline.set && !flags.tightest:
		return usagef(cmd, "--deadline: missing; %s plans backwards from one; want --deadline T or --tightest", flags.planners[0].Name)
	case flags.plot != "":
		if _, ok := figureFormat(flags.plot); !ok {
			return usagef(cmd, "--plot: %q does not tell a format; want a name ending in .%s",
				flags.plot, strings.Join(plot.Formats(), " or ."))
		}
	}
	if err := flags.checkWays(cmd); err != nil {
		return err
	}
	return refuseIdle(cmd, []need{
		{flags.bookings != "", "a log of --bookings", []string{"partition", "strict"}},
		{flags.alpha.drawn, "--alpha uniform:X; nothing else is drawn", []string{"seed"}},
	})
}
