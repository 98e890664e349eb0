package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
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
			for _, name := range by {
				if !slices.ContainsFunc(usedColumns, func(column usedColumn) bool { return column.name == name }) {
					return berth.Errorf(berth.Invalid, "by", "%q; want some of user, project and month, such as project,month", name)
				}
			}
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			answer, err := c.Usage(ctx, from, to)
			if err != nil {
				return err
			}
			answer.Used = addUp(answer.Used, by)
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
			if answer.Since != 0 {
				a.say("the journal goes back to %s; what was over before is not counted", localTime(answer.Since))
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&by, "by", by, "what to add up by: some of user, project and month")
	flags.StringVar(&from, "from", "", "only what starts in this `MONTH`, such as 2027-01, or later")
	flags.StringVar(&to, "to", "", "only what starts in this `MONTH` or earlier")
	r = listFlags(cmd)
	return cmd
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
	}
	slices.SortStableFunc(list, func(a, b form.Used) int {
		return slices.CompareFunc(columnsOf(&a, by), columnsOf(&b, by), strings.Compare)
	})
	return list
}
