package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm/accounting"
)

// usedColumn is a column by which what was used is added up.
type usedColumn struct {
	name string
	of   func(u *form.Used) *string
}

var usedColumns = []usedColumn{
	{"user", func(u *form.Used) *string { return &u.User }},
	{"project", func(u *form.Used) *string { return &u.Account }},
	{"month", func(u *form.Used) *string { return &u.Month }},
}

// usageCommand returns berth usage.
func (a *app) usageCommand() *cobra.Command {
	var r *remote
	by, from, to := []string{"user", "project", "month"}, "", ""
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Show what reservations came to, by user, project and month",
		Long: `Adds up what your reservations came to, in PE-hours, from the records of the service: what
those that are over were charged, and what live ones hold as promised. A project is the
account that a reservation names, and a month that in which it starts, in UTC.
Operators get those of all users. Ordinary jobs are not counted.`,
		Example: "  berth usage\n  berth usage --by project,month --from 2027-01 -o csv",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			answer, err := r.used(cmd, by, from, to)
			if err != nil {
				return err
			}
			switch r.format {
			case "json":
				return printForm(a.stdout, answer)
			case "csv":
				number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
				rows := make([][]string, len(answer.Used))
				for i := range answer.Used {
					u := &answer.Used[i]
					rows[i] = append(columnsOf(u, by), strconv.Itoa(u.Reservations), strconv.Itoa(u.NoShows), number(u.Charged), number(u.Held))
				}
				return printRows(a.stdout, append(slices.Clone(by), "reservations", "no_shows", "charged_pe_hours", "held_pe_hours"), rows)
			}
			out := newTable("usage")
			header := table.Row{}
			for _, name := range by {
				header = append(header, name)
			}
			out.AppendHeader(append(header, "reservations", "no-shows", "charged", "held"))
			for i := range answer.Used {
				u, row := &answer.Used[i], table.Row{}
				for _, cell := range columnsOf(u, by) {
					row = append(row, cell)
				}
				out.AppendRow(append(row, u.Reservations, u.NoShows, peHoursText(u.Charged), peHoursText(u.Held)))
			}
			if err := a.show(out.Render() + "\n"); err != nil {
				return err
			}
			a.sayUsedSince(&answer)
			return nil
		},
	}
	usedFlags(cmd, &by, &from, &to)
	r = listFlags(cmd)
	return cmd
}

// reportCommand returns berth report.
func (a *app) reportCommand() *cobra.Command {
	var r *remote
	by, from, to := []string{"user", "project", "month"}, "", ""
	with := reconciling{unit: string(site.UnitNode)}
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Show what was promised, delivered and used, by user, project and month",
		Long: `Adds up what became of your reservations, from the records of the service: the PE-seconds
that were promised for times that have come, how many of them the sites had, how many jobs
in the reservations held, and how many were left unused; how many reservations were moved
without being asked, began without all of their PEs, or were broken. A project is the account that a
reservation names, and a month that in which it starts, in UTC. Operators get those of all
users. Ordinary jobs are not counted.

With --reconcile it compares, reservation by reservation, what jobs held with what sacct
has accounted for, and names each difference; the exit code is 1 if one has no reason that
is known. FILE is what was printed, in the time zone of this machine, by

  sacct --allusers --allocations --duplicates --parsable2 --starttime=2027-01-01 \\
    --format=` + accounting.Format,
		Example: "  berth report\n  berth report --by project --from 2027-01 --to 2027-03 -o csv\n  berth report --reconcile sacct.txt --from 2027-01",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if with.file != "" {
				ctx, stop, c, err := r.connect(cmd)
				if err != nil {
					return err
				}
				defer stop()
				with.from, with.to = from, to
				return a.reconcile(ctx, c, r, &with)
			}
			if with.site != "" {
				return usagef(cmd, "--site: given without --reconcile; want the FILE of sacct as well")
			}
			answer, err := r.used(cmd, by, from, to)
			if err != nil {
				return err
			}
			switch r.format {
			case "json":
				return printForm(a.stdout, answer)
			case "csv":
				header := append(slices.Clone(by), "reservations")
				for i := range givenColumns {
					header = append(header, givenColumns[i].csv)
				}
				rows := make([][]string, len(answer.Used))
				for i := range answer.Used {
					u := &answer.Used[i]
					rows[i] = append(columnsOf(u, by), strconv.Itoa(u.Reservations))
					for j := range givenColumns {
						rows[i] = append(rows[i], strconv.FormatInt(givenColumns[j].of(u), 10))
					}
				}
				return printRows(a.stdout, header, rows)
			}
			out := newTable("report")
			header := table.Row{}
			for _, name := range by {
				header = append(header, name)
			}
			header = append(header, "reservations")
			for i := range givenColumns {
				header = append(header, givenColumns[i].name)
			}
			out.AppendHeader(header)
			for i := range answer.Used {
				u, row := &answer.Used[i], table.Row{}
				for _, cell := range columnsOf(u, by) {
					row = append(row, cell)
				}
				row = append(row, u.Reservations)
				for j := range givenColumns {
					row = append(row, givenColumns[j].of(u))
				}
				out.AppendRow(row)
			}
			if err := a.show(out.Render() + "\n"); err != nil {
				return err
			}
			a.say("promised, delivered, used and unused in PE-seconds")
			a.sayUsedSince(&answer)
			return nil
		},
	}
	usedFlags(cmd, &by, &from, &to)
	cmd.Flags().StringVar(&with.file, "reconcile", "", "compare with what sacct has accounted for, in `FILE`")
	cmd.Flags().StringVar(&with.site, "site", "", "with --reconcile: the `SITE` of the file (default: the only one under Slurm)")
	cmd.Flags().Var(&choice{&with.unit, "unit", []string{string(site.UnitNode), string(site.UnitCore)}}, "unit", "with --reconcile: what a PE of the site is: node, core")
	complete(cmd, "unit", []string{string(site.UnitNode), string(site.UnitCore)})
	_ = cmd.MarkFlagFilename("reconcile") // fails for unknown flags only
	r = listFlags(cmd)
	return cmd
}

// givenColumns are the columns of what became of reservations.
var givenColumns = []struct {
	name, csv string
	of        func(u *form.Used) int64
}{
	{"promised", "promised_pe_seconds", func(u *form.Used) int64 { return u.Promised }},
	{"delivered", "delivered_pe_seconds", func(u *form.Used) int64 { return u.Delivered }},
	{"used", "used_pe_seconds", func(u *form.Used) int64 { return u.Ran }},
	{"unused", "unused_pe_seconds", func(u *form.Used) int64 { return max(0, u.Delivered-u.Ran) }},
	{"moved", "moved", func(u *form.Used) int64 { return int64(u.Moved) }},
	{"late", "late", func(u *form.Used) int64 { return int64(u.Late) }},
	{"broken", "broken", func(u *form.Used) int64 { return int64(u.Broken) }},
}

// usedFlags adds the flags that choose what is added up, and by what.
func usedFlags(cmd *cobra.Command, by *[]string, from, to *string) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(by, "by", *by, "what to add up by: some of user, project and month")
	flags.StringVar(from, "from", "", "only what starts in this `MONTH`, such as 2027-01, or later")
	flags.StringVar(to, "to", "", "only what starts in this `MONTH` or earlier")
}

// used asks the service what reservations came to, added up by some columns.
func (r *remote) used(cmd *cobra.Command, by []string, from, to string) (answer form.Usage, err error) {
	for _, name := range by {
		if !slices.ContainsFunc(usedColumns, func(column usedColumn) bool { return column.name == name }) {
			return answer, berth.Errorf(berth.Invalid, "by", "%q; want some of user, project and month, such as project,month", name)
		}
	}
	ctx, stop, c, err := r.connect(cmd)
	if err != nil {
		return answer, err
	}
	defer stop()
	answer, err = c.Usage(ctx, from, to)
	answer.Used = addUp(answer.Used, by)
	return answer, err
}

// sayUsedSince says since when reservations are counted, where it is not since the beginning.
func (a *app) sayUsedSince(answer *form.Usage) {
	if answer.Since != 0 {
		a.say("the journal goes back to %s; what was over before is not counted", localTime(answer.Since))
	}
}

func peHoursText(n float64) string { return strconv.FormatFloat(n, 'f', 1, 64) + " PE-hours" }

// columnsOf returns those columns of a row by which is added up.
func columnsOf(u *form.Used, by []string) (cells []string) {
	for _, name := range by {
		for _, column := range usedColumns {
			if column.name == name {
				cells = append(cells, *column.of(u))
			}
		}
	}
	return cells
}

// addUp adds up rows that have the same columns, in the order of these.
func addUp(rows []form.Used, by []string) (list []form.Used) {
	type key struct{ user, account, month string }
	places := map[key]int{}
	for _, u := range rows {
		for _, column := range usedColumns {
			if !slices.Contains(by, column.name) {
				*column.of(&u) = ""
			}
		}
		k := key{u.User, u.Account, u.Month}
		at, known := places[k]
		if !known {
			places[k] = len(list)
			list = append(list, u)
			continue
		}
		x := &list[at]
		x.Reservations, x.NoShows, x.Charged, x.Held = x.Reservations+u.Reservations, x.NoShows+u.NoShows, x.Charged+u.Charged, x.Held+u.Held
		x.Promised, x.Delivered, x.Ran = x.Promised+u.Promised, x.Delivered+u.Delivered, x.Ran+u.Ran
		x.Moved, x.Late, x.Broken = x.Moved+u.Moved, x.Late+u.Late, x.Broken+u.Broken
	}
	slices.SortStableFunc(list, func(a, b form.Used) int {
		return slices.CompareFunc(columnsOf(&a, by), columnsOf(&b, by), strings.Compare)
	})
	return list
}
