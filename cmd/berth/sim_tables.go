package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/sim"
)

// queueTable tells of the ordinary jobs.
func queueTable(flags *simFlags, results []*result) table.Writer {
	out := newTable("jobs")
	if flags.Replications == 1 {
		out.AppendHeader(table.Row{"jobs by", "finished", "killed", "failed", "dropped", "mean wait", "bounded slowdown", "machine used", "decision hash"})
		for _, r := range results {
			q := r.Metrics.Queue
			if q == nil {
				q = &measure.Queue{}
			}
			out.AppendRow(table.Row{
				queueTitle(&r.Run, flags), fmt.Sprintf("%d of %d", q.Finished, q.Jobs), q.Killed, q.Failed, q.Dropped,
				clock(q.MeanWait), decimals(q.MeanBoundedSlowdown), percent(used(r.Metrics.Used)), first(q.DecisionHash, 12),
			})
		}
		return out
	}
	out.AppendHeader(table.Row{"jobs by", "runs", "finished", "killed", "failed", "dropped", "mean wait", "bounded slowdown", "machine used"})
	for _, s := range summaries(results) {
		q, u := s.Queue, s.Used
		if q == nil {
			q = &measure.QueueSummary{}
		}
		if u == nil {
			u = &measure.UsedSummary{}
		}
		out.AppendRow(table.Row{
			queueTitle(s.run(), flags), s.Replications, spread(q.Finished, tenths), spread(q.Killed, tenths), spread(q.Failed, tenths),
			spread(q.Dropped, tenths), spread(q.MeanWait, clock), spread(q.MeanBoundedSlowdown, decimals), spread(u.Utilization, percent),
		})
	}
	return out
}

func used(u *measure.Used) *float64 {
	if u == nil {
		return nil
	}
	return u.Utilization
}

// first returns at most the first n bytes of a text.
func first(text string, n int) string { return text[:min(n, len(text))] }

// workflowTable tells of the workflows; some is false if there are none. Of several
// replications it has a row each.
func workflowTable(flags *simFlags, results []*result) (out table.Writer, some bool) {
	out = newTable("workflows of " + flags.Workflows.From + ", by " + flags.Workflows.Algorithm + ", repair " + flags.Workflows.Repair)
	out.AppendHeader(table.Row{"workflows by", "promised", "kept", "of promised", "turn-around", "CPU-hours", "promised first", "replans", "retries", "lost tasks"})
	for _, r := range results {
		w := r.Flows
		if w == nil {
			continue
		}
		some = true
		title := queueTitle(&r.Run, flags)
		if flags.Replications > 1 {
			title += " " + strconv.Itoa(r.Run.Replication)
		}
		out.AppendRow(table.Row{
			title, fmt.Sprintf("%d of %d", w.Promised, w.Workflows), w.Kept, percent(w.KeptRate), clock(w.MeanTurnaround),
			fmt.Sprintf("%.1f", w.CPUHours), fmt.Sprintf("%.1f", w.PlannedCPUHours), w.Replans, w.Retries, w.LostTasks,
		})
	}
	return out, some
}

// refusalTable tells how many requests were refused for which reason, in the
// first replication; some is false where there was no other than that others held
// the PEs.
func refusalTable(flags *simFlags, results []*result) (out table.Writer, some bool) {
	title := "refused"
	if flags.Replications > 1 {
		title += ", replication 1"
	}
	out = newTable(title)
	header := table.Row{"policy"}
	var reasons []berth.Reason
	for _, reason := range berth.Reasons() {
		if slices.ContainsFunc(results, func(r *result) bool { return refusalsOf(r, reason) > 0 }) {
			reasons, header = append(reasons, reason), append(header, strings.ReplaceAll(string(reason), "_", " "))
			some = some || reason != berth.NoCapacity
		}
	}
	out.AppendHeader(header)
	for _, r := range results {
		if r.Run.Replication != 1 {
			continue
		}
		row := table.Row{runTitle(&r.Run, flags)}
		for _, reason := range reasons {
			row = append(row, refusalsOf(r, reason))
		}
		out.AppendRow(row)
	}
	return out, some
}

func refusalsOf(r *result, reason berth.Reason) int {
	for _, c := range r.Metrics.Refusals {
		if c.Reason == reason {
			return c.Count
		}
	}
	return 0
}

// promiseTable tells how promises were kept; some is false where nothing could
// come between.
func promiseTable(flags *simFlags, results []*result) (out table.Writer, some bool) {
	out = newTable("promises")
	if flags.Replications == 1 {
		out.AppendHeader(table.Row{"policy", "given", "moved", "mean offset", "largest", "broken", "failed", "killed", "machine used"})
		for _, r := range results {
			p := r.Metrics.Promises
			if p == nil {
				continue
			}
			some = true
			var largest *float64
			if p.MaxOffset != nil {
				largest = new(float64(*p.MaxOffset))
			}
			out.AppendRow(table.Row{
				runTitle(&r.Run, flags), p.Given, p.Moved, clock(p.MeanOffset), clock(largest), p.Broken, p.Failed, p.Killed,
				percent(used(r.Metrics.Used)),
			})
		}
		return out, some
	}
	out.AppendHeader(table.Row{"policy", "runs", "given", "moved", "mean offset", "largest", "broken", "failed", "killed"})
	for _, s := range summaries(results) {
		p := s.Promises
		if p == nil {
			continue
		}
		some = true
		out.AppendRow(table.Row{
			s.title(flags), s.Replications, spread(p.Given, tenths), spread(p.Moved, tenths), spread(p.MeanOffset, clock),
			spread(p.MaxOffset, clock), spread(p.Broken, tenths), spread(p.Failed, tenths), spread(p.Killed, tenths),
		})
	}
	return out, some
}

func tenths(x *float64) string {
	if x == nil {
		return nothing
	}
	return fmt.Sprintf("%.1f", *x)
}

// printCSV writes one row for each run; a mean over nothing is an empty field.
// What concerns ordinary jobs and kept promises has columns of its own behind
// the others, where a run has any of it, and so have workflows.
func printCSV(w io.Writer, results []*result) error {
	out := csv.NewWriter(w)
	more := slices.ContainsFunc(results, func(r *result) bool { return r.Metrics.Used != nil })
	header := []string{
		"policy", "bind", "replication", "seed", "jobs", "accepted", "acceptance_rate", "mean_slowdown", "mean_wait",
		"mean_wait_from_arrival", "utilization", "requested_pe_seconds", "accepted_pe_seconds", "decision_hash", "wall_seconds",
	}
	if more {
		header = append(header,
			"backfill", "queue_jobs", "queue_finished", "queue_killed", "queue_failed", "queue_dropped", "queue_mean_wait",
			"queue_mean_bounded_slowdown", "queue_used_pe_seconds", "queue_decision_hash",
			"promises_given", "promises_moved", "promises_broken", "promises_failed", "promises_killed", "promises_mean_offset", "promises_max_offset",
			"used_pe_seconds", "used_down_pe_seconds", "used_utilization")
	}
	flows := slices.ContainsFunc(results, func(r *result) bool { return r.Flows != nil })
	if flows {
		header = append(header,
			"workflows", "workflows_promised", "workflows_succeeded", "workflows_kept", "workflows_kept_rate", "workflows_mean_turnaround",
			"workflows_cpu_hours", "workflows_planned_cpu_hours", "workflows_replans", "workflows_moved", "workflows_retries", "workflows_lost_tasks")
	}
	_ = out.Write(header) // errors stay with the writer until Flush
	for _, r := range results {
		m, wall := &r.Metrics, r.Wall.Seconds()
		row := []string{
			r.Run.Policy, string(r.Run.Bind), strconv.Itoa(r.Run.Replication), strconv.FormatUint(r.Run.Seed, 10),
			strconv.Itoa(m.Jobs), strconv.Itoa(m.Accepted), number(m.AcceptanceRate), number(m.MeanSlowdown), number(m.MeanWait),
			number(m.MeanWaitFromArrival), number(m.Utilization), strconv.FormatInt(m.RequestedPESeconds, 10),
			strconv.FormatInt(m.AcceptedPESeconds, 10), r.Hash, number(&wall),
		}
		if more {
			row = append(row, moreCells(r)...)
		}
		if flows {
			row = append(row, flowCells(r.Flows)...)
		}
		_ = out.Write(row)
	}
	out.Flush()
	return out.Error()
}

// moreCells returns the columns of jobs and kept promises; what a run has
// nothing of is empty.
func moreCells(r *result) []string {
	cells := []string{r.Run.Backfill}
	if q := r.Metrics.Queue; q != nil {
		cells = append(cells, strconv.Itoa(q.Jobs), strconv.Itoa(q.Finished), strconv.Itoa(q.Killed), strconv.Itoa(q.Failed),
			strconv.Itoa(q.Dropped), number(q.MeanWait), number(q.MeanBoundedSlowdown), strconv.FormatInt(q.UsedPESeconds, 10), q.DecisionHash)
	} else {
		cells = append(cells, make([]string, 9)...)
	}
	if p := r.Metrics.Promises; p != nil {
		largest := ""
		if p.MaxOffset != nil {
			largest = strconv.FormatInt(int64(*p.MaxOffset), 10)
		}
		cells = append(cells, strconv.Itoa(p.Given), strconv.Itoa(p.Moved), strconv.Itoa(p.Broken), strconv.Itoa(p.Failed),
			strconv.Itoa(p.Killed), number(p.MeanOffset), largest)
	} else {
		cells = append(cells, make([]string, 7)...)
	}
	u := r.Metrics.Used
	if u == nil {
		return append(cells, "", "", "")
	}
	return append(cells, strconv.FormatInt(u.PESeconds, 10), strconv.FormatInt(u.DownPESeconds, 10), number(u.Utilization))
}

// flowCells returns the columns of workflows.
func flowCells(w *sim.FlowSummary) []string {
	if w == nil {
		return make([]string, 12)
	}
	return []string{
		strconv.Itoa(w.Workflows), strconv.Itoa(w.Promised), strconv.Itoa(w.Succeeded), strconv.Itoa(w.Kept), number(w.KeptRate), number(w.MeanTurnaround),
		number(&w.CPUHours), number(&w.PlannedCPUHours), strconv.Itoa(w.Replans), strconv.Itoa(w.Moved), strconv.Itoa(w.Retries), strconv.Itoa(w.LostTasks),
	}
}

func number(x *float64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(*x, 'g', -1, 64)
}
