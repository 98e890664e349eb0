package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/internal/hpctime"
)

// limitsCommand returns berth limits.
func (a *app) limitsCommand() *cobra.Command {
	var r *remote
	user := ""
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Show your limits and what is used of them",
		Long: `Shows what you may have and ask, and what is used of it. A share is of one pool: the
most of its PEs that may be promised to you at any one time, and that are. Operators
see the limits of all users who have something that is not over, or of one user, and
those of accounts, QOS and partitions, which count all that is promised in them.`,
		Example: "  berth limits\n  berth limits --user alice",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			answer, err := c.Quotas(ctx, user)
			list := answer.Quotas
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, answer)
			case r.format == "csv":
				return limitRows(a.stdout, &answer)
			}
			out := newTable("limits")
			out.AppendHeader(table.Row{"user", "role", "limit", "where", "allowed", "used"})
			for i := range list {
				q := &list[i]
				for k := range q.Limits {
					l := &q.Limits[k]
					out.AppendRow(table.Row{q.User, q.Role, l.Limit, where(&form.Place{Site: l.Site, Pool: l.Pool}), allowedText(l), usedText(l)})
				}
			}
			for i := range answer.Shared {
				q := &answer.Shared[i]
				kind, name := sharedBy(q)
				of := kind + " " + name
				for k := range q.Limits {
					l := &q.Limits[k]
					out.AppendRow(table.Row{of, "", l.Limit, where(&form.Place{Site: l.Site, Pool: l.Pool}), allowedText(l), usedText(l)})
				}
			}
			if err := a.show(out.Render() + "\n"); err != nil {
				return err
			}
			for i := range list {
				if q := &list[i]; len(q.Sites) > 0 {
					a.say("used counts what others have at %s, which are the sites of your token; what they have elsewhere counts too where a request is decided", strings.Join(q.Sites, ", "))
					break
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "only those of this `USER`; for operators")
	r = listFlags(cmd)
	return cmd
}

// limitRows writes limits as CSV, with the values as the API has them.
func limitRows(w io.Writer, answer *form.Quotas) error {
	cell := func(n *float64) string {
		if n == nil {
			return ""
		}
		return strconv.FormatFloat(*n, 'f', -1, 64)
	}
	var rows [][]string
	add := func(user, role, account, partition, qos string, limits []form.Limit) {
		for k := range limits {
			l := &limits[k]
			rows = append(rows, []string{user, role, l.Limit, l.Unit, l.Site, l.Pool, cell(l.Allowed), cell(l.Used), account, partition, qos})
		}
	}
	for i := range answer.Quotas {
		q := &answer.Quotas[i]
		add(q.User, q.Role, "", "", "", q.Limits)
	}
	for i := range answer.Shared {
		q := &answer.Shared[i]
		add("", "", q.Account, q.Partition, q.QOS, q.Limits)
	}
	return printRows(w, []string{"user", "role", "limit", "unit", "site", "pool", "allowed", "used", "account", "partition", "qos"}, rows)
}

func allowedText(l *form.Limit) string {
	if l.Allowed == nil {
		return "no limit"
	}
	return amountText(l, *l.Allowed)
}

func usedText(l *form.Limit) string {
	if l.Used == nil {
		return "-"
	}
	return amountText(l, *l.Used)
}

// amountText writes a value of a limit for people.
func amountText(l *form.Limit, value float64) string {
	number := strconv.FormatFloat(value, 'f', -1, 64)
	switch l.Unit {
	case "seconds":
		return hpctime.Format(berth.Duration(value))
	case "count":
		return number
	case "PE-hours":
		return fmt.Sprintf("%.1f %s", value, l.Unit)
	}
	return number + " " + l.Unit
}

// expiry reads until when a token is to be good: a time, or a length of time, as the API
// takes it.
func expiry(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if _, err := time.Parse(time.RFC3339, text); err == nil {
		return text, nil
	}
	if d, err := hpctime.Parse(text); err != nil || d < 1 {
		return "", berth.Errorf(berth.Invalid, "expires", "%q; want a length of time such as 30d, or a time with its zone such as 2027-01-31T18:00:00Z", text)
	}
	return text, nil
}
