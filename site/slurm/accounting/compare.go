package accounting

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
)

// Ending is how the counting of a run ended.
type Ending uint8

// The endings.
const (
	Seen      Ending = iota // its end was seen
	Requeued                // its job was seen waiting again; it was counted until then
	Forgotten               // the site no longer listed it; it was counted until the site was known last
	Running                 // it runs, and is counted until now
)

// Reason is why what was counted for a run differs from what Slurm has accounted for. None but Unexplained is a fault.
type Reason string

// The reasons.
const (
	PutBack     Reason = "put_back"    // Slurm put the job back into its queue, and it was counted until the look that showed so
	Unlisted    Reason = "unlisted"    // it had left Slurm's queue before its end was seen, and counts until it was last known of
	Runs        Reason = "runs"        // it runs, or ran when the file was made
	Killed      Reason = "killed"      // Slurm killed it, and has another second in its queue than in its accounting
	Unaccounted Reason = "unaccounted" // the file does not have it
	Uncounted   Reason = "uncounted"   // the file has it in the reservation, and its run was never seen
	Unexplained Reason = "unexplained"
)

// Named reports whether it is a known difference rather than a fault.
func (r Reason) Named() bool { return r != Unexplained && r != Unaccounted && r != Uncounted }

// Difference is a run for which other PE-seconds were counted than Slurm has accounted for.
type Difference struct {
	Job                string
	Counted, Accounted int64
	Reason             Reason
}

// Total returns what runs held together, in PE-seconds; those without an end hold nothing yet.
func Total(runs []Run) (total int64) {
	for i := range runs {
		total += runs[i].area()
	}
	return total
}

// killSlack is how far the ends of a killed job in Slurm's queue and in its accounting may be apart.
const killSlack berth.Duration = 1

// Compare pairs the runs that were counted in a reservation with those that Slurm has accounted for, job by job in the order of their starts, and
// returns those that differ, by job. Runs without a start, and those that held nothing, are no difference.
func Compare(counted, accounted []Run) (list []Difference) {
	theirs := map[string][]*Run{}
	for i := range accounted {
		if r := &accounted[i]; r.Start > 0 {
			theirs[r.Job] = append(theirs[r.Job], r)
		}
	}
	ours := slices.DeleteFunc(slices.Clone(counted), func(r Run) bool { return r.Start <= 0 })
	byStart := func(a, b *Run) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) }
	slices.SortStableFunc(ours, func(a, b Run) int { return byStart(&a, &b) })
	for _, runs := range theirs {
		slices.SortStableFunc(runs, byStart)
	}
	for i := range ours {
		r := &ours[i]
		rest := theirs[r.Job]
		// A run that nothing was counted for lies between two that were: those of its start belong together.
		at := max(0, slices.IndexFunc(rest, func(a *Run) bool { return a.Start == r.Start }))
		if at >= len(rest) {
			if r.area() > 0 {
				list = append(list, Difference{r.Job, r.area(), 0, Unaccounted})
			}
			continue
		}
		same := rest[at]
		theirs[r.Job] = slices.Delete(rest, at, at+1)
		if d := (Difference{r.Job, r.area(), same.area(), ""}); d.Counted != d.Accounted {
			d.Reason = why(r, same)
			list = append(list, d)
		}
	}
	for job, rest := range theirs {
		for _, r := range rest {
			if r.End == 0 {
				list = append(list, Difference{job, 0, 0, Runs})
			} else if r.area() > 0 {
				list = append(list, Difference{job, 0, r.area(), Uncounted})
			}
		}
	}
	slices.SortFunc(list, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(len(a.Job), len(b.Job)), strings.Compare(a.Job, b.Job), cmp.Compare(a.Counted, b.Counted), cmp.Compare(a.Accounted, b.Accounted))
	})
	return slices.DeleteFunc(list, func(d Difference) bool { return d.Counted == d.Accounted })
}

// why says why a run that was counted differs from the same one as Slurm has it.
func why(ours, theirs *Run) Reason {
	late := ours.End.Sub(theirs.End)
	switch {
	case ours.PEs != theirs.PEs || ours.Start != theirs.Start:
		return Unexplained
	case ours.Ending == Running || theirs.End == 0:
		return Runs
	case ours.Ending == Requeued && late > 0:
		return PutBack
	case ours.Ending == Forgotten:
		return Unlisted
	case isKilled(theirs.State) && late >= -killSlack && late <= killSlack:
		return Killed
	}
	return Unexplained
}

// isKilled reports whether a state of sacct is that of a job which Slurm ended.
func isKilled(state string) bool {
	for _, s := range []string{"CANCELLED", "TIMEOUT", "PREEMPTED", "NODE_FAIL", "DEADLINE", "REQUEUED", "REVOKED"} {
		if strings.HasPrefix(state, s) {
			return true
		}
	}
	return false
}
