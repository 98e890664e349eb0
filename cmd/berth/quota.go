package main

import (
	"io"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/api/form"
)

// quotaCommand returns berth quota.
func (a *app) quotaCommand() *cobra.Command {
	var r *remote
	user := ""
	cmd := &cobra.Command{
		Use:   "quota",
		Short: "Show what you and your projects may still use",
		Long: `Shows the limits that are used up bit by bit, yours and those of the accounts that your
requests have named: what is allowed, used and left. Of a budget, held is what live
reservations take, as promised; if they end early, the rest of it comes back. What is
used beyond that was charged for what is over. Free is when something of a limit is given back next, as
promised. Operators see all users, accounts, QOS and partitions, or one user.`,
		Example: "  berth quota\n  berth quota --user alice -o csv",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			answer, err := c.Quotas(ctx, user)
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, answer)
			case r.format == "csv":
				return quotaRows(a.stdout, &answer)
			}
			rows := lefts(&answer)
			if len(rows) == 0 {
				a.say("nothing that is used up is limited")
				return nil
			}
			out := newTable("quota")
			out.AppendHeader(table.Row{"of", "limit", "where", "allowed", "used", "held", "left", "free"})
			for i := range rows {
				row := &rows[i]
				l := row.limit
				held, frees := "-", "-"
				if l.Held != nil {
					held = amountText(l, *l.Held)
				}
				if l.Frees != 0 {
					frees = localTime(l.Frees)
				}
				out.AppendRow(table.Row{row.of(), l.Limit, where(&form.Place{Site: l.Site, Pool: l.Pool}), allowedText(l), usedText(l), held, amountText(l, row.left()), frees})
			}
			return a.show(out.Render() + "\n")
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "only those of this `USER`; for operators")
	r = listFlags(cmd)
	return cmd
}

// left is a limit that is used up, and whose it is.
type left struct {
	kind, name string
	limit      *form.Limit
}

// of names whose the limit is.
func (l *left) of() string {
	if l.kind == "user" {
		return l.name
	}
	return l.kind + " " + l.name
}

// left returns how much of the limit may still be used: nothing if more is used than is allowed since a limit became narrower.
func (l *left) left() float64 { return max(0, *l.limit.Allowed-*l.limit.Used) }

// lefts returns the limits that are used up bit by bit.
func lefts(answer *form.Quotas) (rows []left) {
	add := func(kind, name string, limits []form.Limit) {
		for i := range limits {
			if l := &limits[i]; l.Allowed != nil && l.Used != nil && l.Unit != "bytes" {
				rows = append(rows, left{kind, name, l})
			}
		}
	}
	for i := range answer.Quotas {
		add("user", answer.Quotas[i].User, answer.Quotas[i].Limits)
	}
	for i := range answer.Shared {
		q := &answer.Shared[i]
		kind, name := sharedBy(q)
		add(kind, name, q.Limits)
	}
	return rows
}

// sharedBy says whose a shared limit is.
func sharedBy(q *form.SharedQuota) (kind, name string) {
	switch {
	case q.QOS != "":
		return "QOS", q.QOS
	case q.Partition != "":
		return "partition", q.Partition
	}
	return "account", q.Account
}

// quotaRows writes what is left as CSV, with the values as the API has them.
func quotaRows(w io.Writer, answer *form.Quotas) error {
	number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	list := lefts(answer)
	rows := make([][]string, len(list))
	for i := range list {
		row := &list[i]
		l := row.limit
		held, frees := "", ""
		if l.Held != nil {
			held = number(*l.Held)
		}
		if l.Frees != 0 {
			frees = timeCell(l.Frees)
		}
		rows[i] = []string{row.kind, row.name, l.Limit, l.Unit, l.Site, l.Pool, number(*l.Allowed), number(*l.Used), held, number(row.left()), frees}
	}
	return printRows(w, []string{"of", "name", "limit", "unit", "site", "pool", "allowed", "used", "held", "left", "free"}, rows)
}
