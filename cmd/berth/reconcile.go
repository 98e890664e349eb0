package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm/accounting"
)

// reconciling is what a report is compared with.
type reconciling struct {
	file     string // of sacct
	unit     string // what a PE of the site is
	site     string // whose accounting it has
	from, to string // months, empty for all
}

// reconciled is a reservation with what was counted in it and what Slurm has accounted for, in PE-seconds.
type reconciled struct {
	Reservation string      `json:"reservation"`
	User        string      `json:"user"`
	Account     string      `json:"account"`
	Month       string      `json:"month"`
	Promised    int64       `json:"promised_pe_seconds"` // for the whole of its time
	Used        int64       `json:"used_pe_seconds"`
	Accounted   int64       `json:"accounted_pe_seconds"`
	Differences []differing `json:"differences,omitempty"`
}

// differing is a job of a reservation for which they differ.
type differing struct {
	Job       string            `json:"job"`
	Used      int64             `json:"used_pe_seconds"`
	Accounted int64             `json:"accounted_pe_seconds"`
	Reason    accounting.Reason `json:"reason"`
}

// whyDiffers says each reason in words.
var whyDiffers = map[accounting.Reason]string{
	accounting.PutBack:     "put back into Slurm's queue; counted until the look that showed it waiting",
	accounting.Unlisted:    "left Slurm's queue before its end was seen; counted until it was last known of",
	accounting.Runs:        "runs, or ran when the file was made",
	accounting.Killed:      "killed by Slurm, whose queue has another second for that than its accounting",
	accounting.Unaccounted: "not in the file; does it have all users and the time of the job?",
	accounting.Uncounted:   "in the file, and never seen by Berth",
	accounting.Unexplained: "not explained",
}

// reconcile compares what jobs in reservations held, as the histories of these have it, with what sacct has accounted for.
func (a *app) reconcile(ctx context.Context, c *client.Client, r *remote, q *reconciling) error {
	file, err := os.Open(q.file)
	if err != nil {
		return cannotRead(q.file, err)
	}
	defer func() { _ = file.Close() }() // it is only read
	runs, err := accounting.Read(file, time.Local)
	if err != nil {
		return fmt.Errorf("%s: %w", q.file, err)
	}
	where, err := q.at(ctx, c)
	if err != nil {
		return err
	}
	for i := range runs {
		if run := &runs[i]; q.unit == string(site.UnitCore) {
			run.PEs = run.CPUs
		} else {
			run.PEs = run.Nodes
		}
	}
	list, rest, err := q.compare(ctx, c, where.Name, runs, berth.Time(time.Now().Unix()))
	if err != nil {
		return err
	}
	if err := a.showReconciled(r, list); err != nil {
		return err
	}
	unnamed := 0
	for i := range list {
		for _, d := range list[i].Differences {
			if !d.Reason.Named() {
				unnamed++
			}
		}
	}
	var outside int64
	for i := range rest {
		if run := &rest[i]; run.Start > 0 && run.End > run.Start {
			outside += berth.Area(run.PEs, run.End.Sub(run.Start))
		}
	}
	a.say("%d reservations of %s; %d jobs of the file, with %d PE-seconds, are in none of them", len(list), where.Name, len(rest), outside)
	if unnamed > 0 {
		a.say("%d differences have no reason that is known", unnamed)
		return &exitError{exitFailed}
	}
	return nil
}

// at returns the site whose accounting it is: the one that is named, or else the only one under Slurm.
func (q *reconciling) at(ctx context.Context, c *client.Client) (*form.Site, error) {
	all, err := c.Sites(ctx)
	if err != nil {
		return nil, err
	}
	of := slices.DeleteFunc(all, func(s form.Site) bool { return s.Adapter != "slurm" || q.site != "" && s.Name != q.site })
	switch {
	case len(of) == 1:
		return &of[0], nil
	case q.site != "":
		return nil, berth.Errorf(berth.NotFound, "site", "%s: no site under Slurm has that name; want one that berth sites lists", q.site)
	case len(of) == 0:
		return nil, berth.Errorf(berth.NotFound, "site", "no site is under Slurm, so there is no accounting to compare with")
	}
	return nil, berth.Errorf(berth.Invalid, "site", "%d sites are under Slurm; name the one whose accounting the file has, such as --site %s", len(of), of[0].Name)
}

// compare returns the reservations at a site in which something was counted or accounted for, or that were promised, by id, and the runs that are in none.
func (q *reconciling) compare(ctx context.Context, c *client.Client, at string, runs []accounting.Run, now berth.Time) (list []reconciled, rest []accounting.Run, err error) {
	names, byPromise, byJob := site.NamesAt(at), map[string][]int{}, map[string][]int{}
	for i := range runs {
		if promise, _, ours := names.Split(site.Name(runs[i].Reservation)); ours {
			byPromise[promise] = append(byPromise[promise], i)
		} else if runs[i].Reservation == "" { // as of one that starts in the second in which its reservation does
			byJob[runs[i].Job] = append(byJob[runs[i].Job], i)
		}
	}
	taken := make([]bool, len(runs))
	for reservation, err := range c.List(ctx, client.Filter{Site: at}) {
		if err != nil {
			return nil, nil, err
		}
		month := time.Unix(int64(reservation.Start), 0).UTC().Format("2006-01")
		if reservation.Start == 0 || q.from != "" && month < q.from || q.to != "" && month > q.to {
			for _, i := range byPromise[names.Promise(reservation.ID)] {
				taken[i] = true // of another month
			}
			continue
		}
		history, err := c.History(ctx, reservation.ID)
		if err != nil {
			return nil, nil, err
		}
		counted := countedRuns(history.History, at, now)
		of := slices.Clone(byPromise[names.Promise(reservation.ID)])
		for i := range counted {
			of = append(of, byJob[counted[i].Job]...)
			delete(byJob, counted[i].Job)
		}
		accounted := make([]accounting.Run, len(of))
		for i, n := range of {
			accounted[i], taken[n] = runs[n], true
		}
		row := reconciled{Reservation: reservation.ID, User: reservation.User, Account: reservation.Account, Month: month}
		if d := history.Delivered; d != nil {
			row.Promised = berth.Area(d.NPE, berth.Time(d.End).Sub(berth.Time(d.Start)))
		}
		row.Used, row.Accounted = accounting.Total(counted), accounting.Total(accounted)
		for _, d := range accounting.Compare(counted, accounted) {
			row.Differences = append(row.Differences, differing{d.Job, d.Counted, d.Accounted, d.Reason})
		}
		list = append(list, row)
	}
	for i := range runs {
		if !taken[i] {
			rest = append(rest, runs[i])
		}
	}
	slices.SortFunc(list, func(a, b reconciled) int { return cmp.Compare(a.Reservation, b.Reservation) })
	return list, rest, nil
}

// countedRuns returns the runs of jobs at a site as the history of their reservation has them, which is how the report counts them.
func countedRuns(history []form.Happening, at string, now berth.Time) (runs []accounting.Run) {
	open := map[string]accounting.Run{}
	for i := range history {
		h := &history[i]
		if h.Task == nil || h.Task.Site != at {
			continue
		}
		r := accounting.Run{Job: h.Task.Job, PEs: h.NPE, Start: berth.Time(h.Task.Start)}
		was, is := open[r.Job]
		switch h.What {
		case "task_started":
			open[r.Job] = r
			continue
		case "task_ended":
			if r.PEs == 0 && is {
				r = was
			}
			if r.End = berth.Time(h.Task.End); h.Task.State == "unknown" {
				r.Ending = accounting.Forgotten
			}
		case "task_requeued":
			if r = was; !is {
				continue
			}
			r.End, r.Ending = berth.Time(h.At), accounting.Requeued
		default:
			continue
		}
		delete(open, r.Job)
		runs = append(runs, r)
	}
	for _, r := range open {
		r.End, r.Ending = now, accounting.Running
		runs = append(runs, r)
	}
	return runs
}

// showReconciled prints reservations with their differences.
func (a *app) showReconciled(r *remote, list []reconciled) error {
	switch r.format {
	case "json":
		return printForm(a.stdout, struct {
			Reservations []reconciled `json:"reservations"`
		}{list})
	case "csv":
		number := func(n int64) string { return strconv.FormatInt(n, 10) }
		var rows [][]string
		for i := range list {
			row := &list[i]
			cells := []string{row.Reservation, row.User, row.Account, row.Month, number(row.Promised), number(row.Used), number(row.Accounted)}
			if len(row.Differences) == 0 {
				rows = append(rows, append(cells, "", "", "", ""))
			}
			for _, d := range row.Differences {
				rows = append(rows, append(slices.Clone(cells), d.Job, number(d.Used), number(d.Accounted), string(d.Reason)))
			}
		}
		return printRows(a.stdout, []string{
			"reservation", "user", "project", "month", "promised_pe_seconds", "used_pe_seconds", "accounted_pe_seconds", "job", "job_used_pe_seconds", "job_accounted_pe_seconds", "reason",
		}, rows)
	}
	out := newTable("reconciled")
	out.AppendHeader(table.Row{"reservation", "user", "promised", "used", "accounted", "difference"})
	var why strings.Builder
	for i := range list {
		row := &list[i]
		out.AppendRow(table.Row{row.Reservation, row.User, row.Promised, row.Used, row.Accounted, row.Used - row.Accounted})
		for _, d := range row.Differences {
			fmt.Fprintf(&why, "%s: job %s: %+d: %s\n", row.Reservation, d.Job, d.Used-d.Accounted, whyDiffers[d.Reason])
		}
	}
	return a.show(out.Render() + "\n" + why.String())
}
