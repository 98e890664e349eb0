package main

import (
	"cmp"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/api/form"
)

// sight is how far ahead one looks who does not say.
const sight = 7 * 24 * time.Hour

func (a *app) sitesOccupation() *cobra.Command {
	var r *remote
	var from, to moment
	cmd := &cobra.Command{
		Use:   "occupation NAME [--from T] [--to T]",
		Short: "List what holds PEs of a site and when: reservations, jobs, outages",
		Long: `Shows what holds PEs of a site, a week ahead if --to says nothing else. Whose it
is only its owner and operators see.`,
		Example: "  berth sites occupation cm5 --from today --to tomorrow",
		Args:    one("NAME of a site"),
		RunE: func(cmd *cobra.Command, args []string) error {
			begin, end := time.Now(), time.Time{}
			if from.given() {
				begin = from.at
			}
			if end = begin.Add(sight); to.given() {
				end = to.at
			}
			a.echo("from", &from)
			a.echo("to", &to)
			return a.occupation(cmd, r, args[0], form.Time(begin.Unix()), form.Time(end.Unix()))
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().Var(&from, "from", "only what holds PEs after this time (default: now)")
	cmd.Flags().Var(&to, "to", "only what holds PEs before this time (default: a week later)")
	r = listFlags(cmd)
	r.offerSites(cmd, 1)
	return cmd
}

func (a *app) occupation(cmd *cobra.Command, r *remote, site string, from, to form.Time) error {
	ctx, stop, c, err := r.connect(cmd)
	if err != nil {
		return err
	}
	defer stop()
	all := form.Occupation{Spans: []form.Span{}}
	out := newTable("occupation")
	out.AppendHeader(table.Row{"kind", "pool", "PEs", "which", "start", "end", "state", "id", "user"})
	for span, err := range c.Occupation(ctx, site, from, to) {
		if err != nil {
			return err
		}
		all.Spans = append(all.Spans, span)
		out.AppendRow(table.Row{
			span.Kind, span.Pool, span.NPE, orDash(span.PEs.String()), cmp.Or(localTime(span.Start), "before"), cmp.Or(localTime(span.End), "unknown"),
			orDash(span.State), orDash(span.ID), orDash(span.User),
		})
	}
	switch {
	case r.format == "json":
		return printForm(a.stdout, all)
	case r.format == "csv":
		return spanRows(a.stdout, all.Spans)
	case len(all.Spans) == 0:
		a.say("nothing holds PEs of %s then", site)
		return nil
	}
	return a.show(out.Render() + "\n")
}
