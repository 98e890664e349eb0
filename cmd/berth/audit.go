package main

import (
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
)

// auditCommand returns berth audit.
func (a *app) auditCommand() *cobra.Command {
	var r *remote
	var f client.AuditFilter
	var since, until moment
	most := 1000
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List who asked for what, for operators",
		Long: `Lists what was asked for in the order of the journal's records: when, by whom, by which
token with which scopes, from which address and in which call, of what kind, and about which
reservation, workflow or receiver of notices. It goes back to where the journal begins. Only operators of
all sites may ask.`,
		Example: "  berth audit --user alice --since yesterday\n  berth audit --kind cancel -o csv",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if since.given() {
				f.Since = form.Time(since.at.Unix())
			}
			if until.given() {
				f.Until = form.Time(until.at.Unix())
			}
			a.echo("since", &since)
			a.echo("until", &until)
			return a.audit(cmd, r, f, most)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.User, "user", "", "only what this `USER` asked for")
	flags.StringVar(&f.Token, "token", "", "only what was asked for with the token of this `ID`")
	flags.StringVar(&f.Address, "address", "", "only what was asked for from this `ADDRESS`")
	flags.Var(&since, "since", "only from this time on")
	flags.Var(&until, "until", "only before this time")
	flags.StringVar(&f.Kind, "kind", "", "only what is of this `KIND`, such as submit, cancel or add_receiver")
	flags.StringVar(&f.ID, "id", "", "only what was about the reservation, the workflow or the receiver of notices of this `ID`")
	flags.Var(&whole[int]{&most, 1, 100_000}, "most", "how many at most")
	r = listFlags(cmd)
	return cmd
}

func (a *app) audit(cmd *cobra.Command, r *remote, f client.AuditFilter, most int) error {
	ctx, stop, c, err := r.connect(cmd)
	if err != nil {
		return err
	}
	defer stop()
	page := form.Audit{Records: []form.Audited{}}
	for one, err := range c.Audit(ctx, f) {
		if err != nil {
			return err
		}
		if len(page.Records) == most {
			a.say("there are more than %d; the next is of %s (--since, --most)", most, localTime(one.At))
			break
		}
		page.Records = append(page.Records, one)
	}
	switch {
	case r.format == "json":
		return printForm(a.stdout, page)
	case r.format == "csv":
		rows := make([][]string, len(page.Records))
		for i := range page.Records {
			x := &page.Records[i]
			rows[i] = []string{strconv.FormatUint(x.Number, 10), timeCell(x.At), x.User, x.Role, x.Token, x.Address, x.Call, x.Kind, x.ID, x.Scopes}
		}
		return printRows(a.stdout, []string{"record", "at", "user", "role", "token", "address", "call", "kind", "id", "scopes"}, rows)
	case len(page.Records) == 0:
		a.say("no records")
		return nil
	}
	out := newTable("who asked for what")
	out.AppendHeader(table.Row{"record", "at", "user", "role", "token", "scopes", "address", "call", "kind", "id"})
	for i := range page.Records {
		x := &page.Records[i]
		out.AppendRow(table.Row{x.Number, localTime(x.At), x.User, x.Role, orDash(x.Token), orDash(x.Scopes), orDash(x.Address), orDash(x.Call), orDash(x.Kind), orDash(x.ID)})
	}
	return a.show(out.Render() + "\n")
}
