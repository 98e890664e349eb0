package main

import (
	"cmp"
	"fmt"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/api/form"
)

// leadCommand returns berth lead.
func (a *app) leadCommand() *cobra.Command {
	var r *remote
	var anyOther bool
	cmd := &cobra.Command{
		Use: "lead [URL | --any]", Short: "Show which service leads, or have another one lead",
		Long: `Of services that share a journal in PostgreSQL one leads and the others stand by
(berth serve --standby). Without an argument this shows which, and how far behind the
others are.

With the URL of one that stands by, or --any for the one that is furthest, that one
leads from then on, and the one that led stands by. Calls are held meanwhile and go on
at the new leader: none is refused. It takes the role of operator.`,
		Example: `  berth lead
  berth lead https://b.example.org:7117
  berth lead --any`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && anyOther {
				return usagef(cmd, "want the URL of one service, or --any")
			}
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if len(args) == 0 && !anyOther {
				health, err := c.Ready(ctx)
				if err != nil {
					return err
				}
				return a.showLeading(r, health.Leading)
			}
			to := ""
			if len(args) == 1 {
				to = args[0]
			}
			leader, err := c.Lead(ctx, to)
			if err != nil {
				return err
			}
			if r.format == "json" {
				return printForm(a.stdout, form.Led{Leader: leader})
			}
			a.say("%s leads", leader)
			return nil
		},
	}
	cmd.Flags().BoolVar(&anyOther, "any", false, "have the service lead that stands by and is furthest")
	r = remoteFlags(cmd)
	return cmd
}

// showLeading shows who leads and who stands by.
func (a *app) showLeading(r *remote, l *form.Leading) error {
	if l == nil {
		l = &form.Leading{Standbys: []form.Standby{}}
		if r.format != "json" {
			a.say("the service has its journal to itself")
			return nil
		}
	}
	if r.format == "json" {
		return printForm(a.stdout, l)
	}
	out := newTable("services")
	out.AppendHeader(table.Row{"service", "is", "record", "behind", "clock off"})
	out.AppendRow(table.Row{cmp.Or(l.Leader, "unknown"), "leads", l.Record, "", ""})
	for i := range l.Standbys {
		b := &l.Standbys[i]
		out.AppendRow(table.Row{b.Address, "stands by", b.Record, fmt.Sprintf("%.1f s", b.Behind), fmt.Sprintf("%.0f s", b.ClockSkew)})
	}
	return a.show(out.Render() + "\n")
}
