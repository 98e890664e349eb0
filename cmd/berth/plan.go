package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/plot"
	"github.com/berth-hpc/berth/planning"
	"github.com/berth-hpc/berth/workflow"
)

// planCommand returns berth plan.
func (a *app) planCommand() *cobra.Command {
	flags := newPlanFlags()
	cmd := &cobra.Command{
		Use:   "plan WORKFLOW --pes N|--sites FILE.yaml",
		Short: "Plan a workflow into reservations around existing bookings",
		Long:  planLong(),
		Example: `  berth plan workflow.json --pes 430 --algorithm bd-cpar
  berth plan workflow.json.gz --bookings LOG.swf.gz --now 40000000 --algorithm all
  berth plan workflow.json --pes 430 --bookings bookings.jsonl --algorithm dl-rcbd-cpar-lambda --deadline 90000
  berth plan workflow.json --pes 430 --bookings bookings.jsonl --tightest --schedule out.jsonl --plot out.svg
  berth plan workflow.json --pes 430 --bookings later.jsonl --repair out.jsonl
  berth plan workflow.yaml --sites sites.yaml --bookings bookings.jsonl
  berth check out.jsonl --pes 430`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef(cmd, "want one WORKFLOW (or - for stdin), got %d", len(args))
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
	*planning.Result
	replayed *replayOutput // with --estimates
	notes    []string      // for people
}

// goal is what plans are for.
func (flags *planFlags) goal() planning.Goal {
	goal := planning.Goal{Deadline: berth.Forever, Tightest: flags.tightest}
	if flags.deadline.set {
		goal.Deadline = flags.deadline.t
	}
	return goal
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
	replay(p, results, flags)
	if err := a.keepPlans(cmd, p, results, flags); err != nil {
		return err
	}
	if err := a.printPlans(p, results, flags); err != nil {
		return fmt.Errorf("writing the plans: %w", err)
	}
	return a.refused(results, flags)
}

// refused tells refusals on stderr. It is one itself if there is no plan.
func (a *app) refused(results []*planned, flags *planFlags) error {
	var closest *workflow.Refusal
	missed := 0
	for _, r := range results {
		if r.Refusal == nil {
			continue
		}
		missed++
		if closest == nil || r.Refusal.Tightest < closest.Tightest {
			closest = r.Refusal
		}
	}
	switch {
	case missed == 0:
		return nil
	case len(results) == 1:
		return berth.Errorf(berth.Exhausted, "", "%s", refusalText(closest))
	}
	text := fmt.Sprintf("%d of %d algorithms have no plan", missed, len(results))
	if flags.deadline.set {
		text += fmt.Sprintf(" by %d", flags.deadline.t)
	}
	if closest.TightestBy != "" {
		text += fmt.Sprintf("; the tightest deadline that was found for them is %d, by %s", closest.Tightest, closest.TightestBy)
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
		{flags.bookings != "", "a log of --bookings", []string{"partition"}},
		{flags.bookings != "", "--bookings", []string{"strict"}},
		{flags.alpha.drawn, "--alpha uniform:X; nothing else is drawn", []string{"seed"}},
	})
}
