package main

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
)

// listCommand returns berth list.
func (a *app) listCommand() *cobra.Command {
	var r *remote
	var f client.Filter
	var from, to moment
	var states []string
	all := false
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List reservations: the live ones, or all",
		Example: "  berth list --site cm5 --from today --to tomorrow\n  berth list --name weekly-run --all",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.States = states
			if states == nil && !all {
				f.States = liveStates
			}
			if from.given() {
				f.From = form.Time(from.at.Unix())
			}
			if to.given() {
				f.To = form.Time(to.at.Unix())
			}
			a.echo("from", &from)
			a.echo("to", &to)
			return a.list(cmd, r, f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.User, "user", "", "only of this `USER`")
	flags.StringVar(&f.Site, "site", "", "only at this `SITE`")
	flags.Var(&ownName{&f.Name}, "name", "only of this `NAME`")
	flags.Var(&list{&states, "state", append(liveStates, overStates...), "all"}, "state", "only in these states: "+strings.Join(append(liveStates, overStates...), ", "))
	flags.Var(&from, "from", "only what holds PEs after this time")
	flags.Var(&to, "to", "only what holds PEs before this time")
	flags.BoolVarP(&all, "all", "a", false, "those that are over too")
	complete(cmd, "state", append(liveStates, overStates...))
	r = listFlags(cmd)
	r.offerSiteFlags(cmd)
	r.offerNames(cmd, "name")
	return cmd
}

// The states, in the order of a life. The slices are full, so that append copies
// them.
var (
	liveStates = []string{"pending", "held", "confirmed", "degraded", "active"}
	overStates = []string{"finished", "cancelled", "expired", "no_show", "failed", "refused"}
)

func (a *app) list(cmd *cobra.Command, r *remote, f client.Filter) error {
	ctx, stop, c, err := r.connect(cmd)
	if err != nil {
		return err
	}
	defer stop()
	page := form.Page{Reservations: []form.Reservation{}}
	for reservation, err := range c.List(ctx, f) {
		if err != nil {
			return err
		}
		page.Reservations = append(page.Reservations, reservation)
	}
	if f.Site != "" && len(page.Reservations) == 0 {
		if err := wantSite(ctx, c, f.Site); err != nil {
			return err
		}
	}
	switch {
	case r.format == "json":
		return printForm(a.stdout, page)
	case r.format == "csv":
		return reservationRows(a.stdout, page.Reservations)
	case len(page.Reservations) == 0:
		a.say("no reservations")
		return nil
	}
	me, err := c.Me(ctx)
	if err != nil {
		return err
	}
	return a.show(reservationTable(page.Reservations, me.User, time.Now(), paletteOf(a.stdout)))
}

// wantSite returns an error if there is no site of a name.
func wantSite(ctx context.Context, c *client.Client, name string) error {
	list, err := c.Sites(ctx)
	if err != nil {
		return err
	}
	return haveSites(list, name)
}

// reservationTable writes reservations in lines of about 100 letters: a name and a user have a column where they tell something, and
// times are short. Users tell nothing where all is of the one who reads.
func reservationTable(of []form.Reservation, reader string, now time.Time, c palette) string {
	names := slices.ContainsFunc(of, func(r form.Reservation) bool { return r.Name != "" })
	users := slices.ContainsFunc(of, func(r form.Reservation) bool { return r.User != reader })
	out := newTable("reservations" + timesAt(now))
	row := func(id, name, state, user string, rest ...any) {
		cells := table.Row{id}
		if names {
			cells = append(cells, name)
		}
		if cells = append(cells, state); users {
			cells = append(cells, user)
		}
		out.AppendRow(append(cells, rest...))
	}
	header := table.Row{"id"}
	if names {
		header = append(header, "name")
	}
	if header = append(header, "state"); users {
		header = append(header, "user")
	}
	out.AppendHeader(append(header, "PEs", "site", "start", "end"))
	for i := range of {
		r := &of[i]
		row(r.ID, orDash(shortened(r.Name, 24)), c.state(r), orDash(r.User), strconv.Itoa(int(r.NPE)), where(&r.Place), shortTime(r.Start, now), endAfter(r.Start, r.End, now))
	}
	return out.Render() + "\n"
}

// shortened cuts a text to a number of letters.
func shortened(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-1]) + "…"
}

// timesAt says in which zone the times of a table are.
func timesAt(now time.Time) string { return ", times at " + now.In(time.Local).Format("-07:00") }

// shortTime writes a time in the reader's zone, with the year only if it is another one than now, and with the zone only if that is another than now.
func shortTime(t form.Time, now time.Time) string {
	if t == 0 {
		return "-"
	}
	at, layout := t.In(time.Local), "Mon 02 Jan "
	if at.Year() != now.In(time.Local).Year() {
		layout = "Mon 2006-01-02 "
	}
	return at.Format(layout + clockOf(at, now))
}

// endAfter is shortTime for what began at a time: on the same day the time of the day is enough.
func endAfter(start, end form.Time, now time.Time) string {
	from, to := start.In(time.Local), end.In(time.Local)
	if start == 0 || end == 0 || from.YearDay() != to.YearDay() || from.Year() != to.Year() {
		return shortTime(end, now)
	}
	return to.Format(clockOf(to, now))
}

// clockOf is how the time of a day is written.
func clockOf(at, now time.Time) string {
	layout := "15:04"
	if at.Second() != 0 {
		layout = "15:04:05"
	}
	_, offset := at.Zone()
	if _, usual := now.In(time.Local).Zone(); offset != usual {
		layout += " -07:00"
	}
	return layout
}
