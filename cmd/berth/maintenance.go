package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site/hostlist"
)

// maintenanceCommand returns berth maintenance.
func (a *app) maintenanceCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "maintenance", Short: "Take nodes of a site out of use at times that are known before",
		Long: `Maintenance is nodes of a managed site that are out of use at times that are known before,
once or as they repeat. What was promised then moves within its window at once or is degraded,
its owner is told, and nothing is promised then any more. docs/operating.md says more.`,
	}
	cmd.AddCommand(a.maintenanceAdd(), a.maintenanceList(), a.maintenanceRemove())
	return cmd
}

// maintenanceAsk is maintenance on a command line.
type maintenanceAsk struct {
	form.MaintenanceRequest
	start, until moment
	window       window
	lasts        span
	nodes        string
}

func (q *maintenanceAsk) flags(cmd *cobra.Command) {
	q.lasts = span{value: &q.Duration, least: 1}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&q.Site, "site", "", "the `SITE`")
	f.Var(&nodelist{&q.nodes}, "nodes", "which `NODES` are out of use, such as n[1-4] (default: all)")
	f.Var(&q.start, "start", "when it begins, and if it repeats, from when on (default: now)")
	f.VarP(&q.lasts, "duration", "t", "how long it lasts each time, such as 4h")
	f.Var(&q.window, "window", "start and end in one, such as \"next tue 08:00–17:00\"")
	f.StringVar(&q.Repeat, "repeat", "", "how it repeats: a `RULE` such as \"first monday of the month 08:00\" or RRULE:FREQ=WEEKLY;BYDAY=MO")
	f.Var(&zoneName{&q.TimeZone}, "tz", "with --repeat: by whose clock, such as Europe/Berlin (default: this machine's)")
	f.Var(&q.until, "until", "with --repeat: the latest start")
	f.Var(&whole[int]{&q.Times, 1, service.MaxTimes}, "times", "with --repeat: how often, before exceptions are taken out")
	f.StringSliceVar(&q.Except, "except", nil, "with --repeat: `DAYS` or times at which it is not, such as 2026-12-24")
	f.StringSliceVar(&q.Add, "add", nil, "further `TIMES` at which it begins, such as \"2026-12-23 09:00\"")
	f.StringVar(&q.Reason, "reason", "", "why (`TEXT`), for those who wonder")
	f.BoolVar(&q.DryRun, "dry-run", false, "only say which reservations are in its way")
}

// settle turns what was written into what is asked for, and tells which instants were meant.
func (q *maintenanceAsk) settle(a *app, cmd *cobra.Command) error {
	if q.Site == "" {
		return usagef(cmd, "--site: missing; want the site whose nodes it takes")
	}
	repeats := q.Repeat != "" || len(q.Add) > 0
	for _, name := range []string{"tz", "until", "times", "except"} {
		if !repeats && cmd.Flags().Changed(name) {
			return usagef(cmd, "--%s: given without --repeat; it says more about that", name)
		}
	}
	switch {
	case q.window.text != "" && (q.start.given() || q.Duration > 0 || repeats):
		return usagef(cmd, "--window: given beside --start, --duration or --repeat; want one of the ways")
	case q.window.text == "" && q.Duration == 0:
		return usagef(cmd, "--duration: missing; want how long it lasts, such as 4h, or --window")
	}
	now := time.Now()
	for _, m := range []struct {
		name string
		from *moment
		to   *form.Time
	}{{"start", &q.start, &q.Start}, {"start", &q.window.from, &q.Start}, {"end", &q.window.to, &q.End}, {"until", &q.until, &q.Until}} {
		if err := m.from.settle(now); err != nil {
			return usagef(cmd, "%v", err) // it could be read a moment ago
		}
		if m.from.given() {
			*m.to = form.Time(m.from.at.Unix())
			a.echo(m.name, m.from)
		}
	}
	switch {
	case q.nodes != "":
		q.Nodes = []string{q.nodes}
	case cmd.Flags().Changed("nodes"): // an empty variable of a shell must not take the whole site
		return usagef(cmd, "--nodes: empty; want nodes, such as n[1-4], or no --nodes for all of the site")
	}
	if repeats && q.TimeZone == "" {
		q.TimeZone = localZone()
	}
	return nil
}

func (a *app) maintenanceAdd() *cobra.Command {
	var r *remote
	var q maintenanceAsk
	cmd := &cobra.Command{
		Use: "add NAME", Short: "Add maintenance, or see what is in its way with --dry-run", Args: one("NAME of the maintenance"),
		Example: `  berth maintenance add cooling --site cluster --nodes n[1-4] --repeat "first monday of the month 08:00" --duration 9h
  berth maintenance add upgrade --site cluster --window "next tue 08:00–17:00" --reason "new kernel" --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := q.settle(a, cmd); err != nil {
				return err
			}
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			q.Name = args[0]
			answer, err := c.AddMaintenance(ctx, &q.MaintenanceRequest)
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, &answer)
			}
			return a.show(maintenanceTable([]form.Maintenance{answer.Maintenance}, time.Now()) + wayText(&answer, q.DryRun))
		},
	}
	q.flags(cmd)
	r = remoteFlags(cmd)
	r.offerSiteFlags(cmd)
	return cmd
}

// wayText says what is in the way of maintenance, and what a change of the clock has made of its times.
func wayText(answer *form.MaintenanceAnswer, dry bool) string {
	var text strings.Builder
	for _, at := range answer.Maintenance.Times {
		if at.Note != "" {
			fmt.Fprintf(&text, "\n%s: %s\n", localTime(at.Start), at.Note)
		}
	}
	is, act := "was", "Each has moved within its window, or is degraded; berth show says which."
	if dry {
		is, act = "is", "Nothing was done. Each would move within its window, or be degraded."
	}
	switch n := len(answer.InTheWay); n {
	case 0:
		fmt.Fprintf(&text, "\nNo reservation %s in its way.\n", is)
	default:
		const shown = 20
		list := strings.Join(answer.InTheWay[:min(n, shown)], " ")
		if n > shown {
			list += fmt.Sprintf(" and %d more", n-shown)
		}
		fmt.Fprintf(&text, "\n%s in its way: %s\n%s\n", countOf(n, "reservation", is), list, act)
	}
	return text.String()
}

// countOf says how many of something are, or were.
func countOf(n int, what, is string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s %s", what, is)
	}
	return fmt.Sprintf("%d %ss %s", n, what, map[string]string{"is": "are", "was": "were"}[is])
}

// maintenanceTable shows maintenance by its next time.
func maintenanceTable(list []form.Maintenance, now time.Time) string {
	out := newTable("maintenance" + timesAt(now))
	out.AppendHeader(table.Row{"name", "site", "nodes", "start", "end", "times", "repeats", "reason"})
	for i := range list {
		m := &list[i]
		nodes := "all"
		if len(m.Nodes) > 0 {
			nodes = hostlist.Fold(m.Nodes)
		}
		start, end := "-", "-"
		if len(m.Times) > 0 {
			start, end = shortTime(m.Times[0].Start, now), endAfter(m.Times[0].Start, m.Times[0].End, now)
		}
		out.AppendRow(table.Row{m.Name, m.Site, nodes, start, end, len(m.Times), orDash(m.Repeat), orDash(m.Reason)})
	}
	return out.Render() + "\n"
}

func (a *app) maintenanceList() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "list", Short: "List maintenance that is to come or goes on", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			list, err := c.Maintenance(ctx)
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, &list)
			}
			return a.show(maintenanceTable(list.Maintenance, time.Now()))
		},
	}
	r = remoteFlags(cmd)
	return cmd
}

func (a *app) maintenanceRemove() *cobra.Command {
	var r *remote
	var only lateMoment
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Call maintenance off, or one time of it with --only; what goes on ends at once", Args: one("NAME of the maintenance"),
		Example: `  berth maintenance remove cooling
  berth maintenance remove cooling --only "2026-12-07 08:00"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			var at form.Time
			if only.given() {
				if err := only.settle(time.Now().In(zoneOf(ctx, c, args[0]))); err != nil {
					return usagef(cmd, "--only: %v", err)
				}
				a.echo("only", &only.moment)
				at = form.Time(only.at.Unix())
			}
			if err := c.RemoveMaintenance(ctx, args[0], at); err != nil {
				return err
			}
			if only.given() {
				a.say("maintenance %s is called off at that time", args[0])
			} else {
				a.say("maintenance %s is called off", args[0])
			}
			return nil
		},
	}
	cmd.Flags().Var(&only, "only", "only the time that begins at `T`, by the clock by which it repeats")
	r = remoteFlags(cmd)
	r.offerMaintenance(cmd)
	return cmd
}

// lateMoment is a point in time by a clock that is known later.
type lateMoment struct{ moment }

func (m *lateMoment) Set(text string) error {
	m.text, m.read = text, hpctime.ParseInstant
	return m.settle(time.Now().UTC()) // whose clock shows each time once
}

// zoneOf returns the zone by whose clock maintenance repeats, this machine's if it does not, or is not there.
func zoneOf(ctx context.Context, c *client.Client, name string) *time.Location {
	list, err := c.Maintenance(ctx)
	if err != nil {
		return time.Local // the command asks again, and says what is wrong
	}
	for i := range list.Maintenance {
		if m := &list.Maintenance[i]; m.Name == name && m.TimeZone != "" {
			if zone, err := time.LoadLocation(m.TimeZone); err == nil {
				return zone
			}
		}
	}
	return time.Local
}

// offerMaintenance offers the names of maintenance.
func (r *remote) offerMaintenance(cmd *cobra.Command) {
	cmd.ValidArgsFunction = r.offer(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string, _ string) (names []string) {
		if len(args) > 0 {
			return nil
		}
		list, err := c.Maintenance(ctx)
		if err != nil {
			return nil
		}
		for i := range list.Maintenance {
			names = append(names, list.Maintenance[i].Name)
		}
		slices.Sort(names)
		return names
	})
}
