package slurm

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

const (
	// minute is the unit of limits.
	minute = 60
	// late is how much later than its reservation a limit may end so as not to lose a
	// whole minute to rounding. slurmctld looks at limits every 30 s (PERIODIC_TIMEOUT),
	// so that this much late is nothing new, and ends a job with its reservation anyway.
	late = 20
	// toTheEnd is how long before the end of its reservation a job may end that was to
	// last as long: limits are whole minutes, counted from when the job began.
	toTheEnd berth.Duration = 120
)

// fullMinutes is the limit for what may last from one time to another, at least a minute.
func fullMinutes(from, to berth.Time) int64 { return max(1, int64(to-from+late)/minute) }

// extendJobs has the running jobs of a reservation that were to last to its end last to
// the new one. A job that has ended meanwhile is none of them any more; the error names
// the first that cannot be extended.
func (s *Site) extendJobs(ctx context.Context, op string, name site.Name, was, end berth.Time) error {
	ids, err := s.jobsIn(ctx, op, name, "--states=RUNNING,SUSPENDED")
	if err != nil {
		return err
	}
	var first error
	for _, id := range ids {
		out, err := s.run(ctx, op, "scontrol", "show", "job", "-o", id)
		if err != nil {
			return err
		}
		if out.Exit != 0 {
			continue // it is over
		}
		all := fields(strings.TrimSpace(out.Stdout))
		from, err := parseTime(get(all, "StartTime"))
		if err != nil {
			return odd(op, "scontrol show job", err)
		}
		ends, err := parseTime(get(all, "EndTime"))
		if limit := get(all, "TimeLimit"); err != nil || limit == "UNLIMITED" || ends < was.Add(-toTheEnd) || ends >= end {
			continue
		}
		result, err := s.run(ctx, op, "scontrol", "update", "JobId="+id, "TimeLimit="+strconv.FormatInt(fullMinutes(from, end), 10))
		if err != nil {
			return err
		}
		if result.Exit == 0 || first != nil {
			continue
		}
		said := explain(op, "scontrol", firstLine(result))
		if site.KindOf(said) == site.NotFound {
			continue
		}
		first = &site.Error{
			Kind: site.KindOf(said), Op: op, Msg: "reservation " + string(name) + " lasts longer, and job " + id + " in it does not", Err: errors.New(firstLine(result)),
			Hint: "an operator of the cluster can: scontrol update JobId=" + id + " TimeLimit=MINUTES",
		}
	}
	return first
}
