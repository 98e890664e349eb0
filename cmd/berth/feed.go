package main

import (
	"errors"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
)

// feedCommand returns berth feed.
func (a *app) feedCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "feed", Short: "Create, list and revoke calendar feeds"}
	cmd.AddCommand(a.feedCreate(), a.feedList(), a.feedRevoke())
	return cmd
}

func (a *app) feedCreate() *cobra.Command {
	var r *remote
	var wanted client.NewFeed
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a calendar feed and print its address, once",
		Long: `Makes a calendar feed and prints its address to stdout. A calendar program that
subscribes to it shows your holds, promises and workflows, or with --site what is
promised and out of use at a site. Who has the address reads that, and can do nothing
else with it. The feed ends with berth feed revoke, and with the token that made it.`,
		Example: "  berth feed create --note phone\n  berth feed create --site cm5",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			f, err := c.AddFeed(ctx, wanted)
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, &f)
			}
			at := f.URL
			if at == "" && !strings.HasPrefix(c.Server(), "unix:") {
				at = c.Server() + f.Path
			}
			a.say("feed %s of %s, %s:", f.ID, f.User, feedShows(&f))
			if at == "" {
				a.say("put the address of the service before it, which the service does not know")
				at = f.Path
			}
			return a.show(at + "\n")
		},
	}
	cmd.Flags().StringVar(&wanted.Site, "site", "", "show what is promised and out of use at the site `NAME` (default: what you have at all sites)")
	cmd.Flags().StringVar(&wanted.Note, "note", "", "what it is for (`TEXT`), for people")
	r = remoteFlags(cmd)
	return cmd
}

// feedShows says what a feed shows.
func feedShows(f *form.Feed) string {
	if f.Site == "" {
		return "their own"
	}
	return "site " + f.Site + ", as " + f.Role
}

func (a *app) feedList() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "list", Short: "List your calendar feeds, for operators those of all users", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			feeds, err := c.Feeds(ctx)
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, form.Feeds{Feeds: feeds})
			case r.format == "csv":
				return feedRows(a.stdout, feeds)
			}
			out := newTable("feeds")
			out.AppendHeader(table.Row{"id", "user", "shows", "created", "read last", "note"})
			for i := range feeds {
				f := &feeds[i]
				out.AppendRow(table.Row{f.ID, f.User, feedShows(f), localTime(f.Created), orDash(localTime(f.Used)), orDash(f.Note)})
			}
			return a.show(out.Render() + "\n")
		},
	}
	r = listFlags(cmd)
	return cmd
}

// feedRows writes a row for each feed.
func feedRows(w io.Writer, feeds []form.Feed) error {
	rows := make([][]string, len(feeds))
	for i := range feeds {
		f := &feeds[i]
		rows[i] = []string{f.ID, f.User, f.Role, f.Site, timeCell(f.Created), timeCell(f.Used), f.Note}
	}
	return printRows(w, []string{"id", "user", "role", "site", "created", "used", "note"}, rows)
}

func (a *app) feedRevoke() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "Revoke a calendar feed", Args: one("ID of a feed, as berth feed list has them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if err := c.RevokeFeed(ctx, args[0]); err != nil {
				return err
			}
			a.say("feed %s has ended", args[0])
			return nil
		},
	}
	r = remoteFlags(cmd)
	return cmd
}

// exportCommand returns berth export.
func (a *app) exportCommand() *cobra.Command {
	var r *remote
	var site, path string
	var ics bool
	cmd := &cobra.Command{
		Use:   "export --ics",
		Short: "Write what you have reserved as a calendar",
		Long: `Writes your holds, promises and workflows as a calendar, in the form (RFC 5545) that
calendar programs import; with --site what is promised and out of use at a site. It has
what is to come, and a month of the past. berth feed create makes a calendar that stays
up to date.`,
		Example: "  berth export --ics -o reservations.ics\n  berth export --ics --site cm5",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !ics {
				return usagef(cmd, "no form given; want --ics, for a calendar")
			}
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			data, err := c.Calendar(ctx, site)
			if err != nil {
				return err
			}
			out, err := a.create("out", path)
			if err != nil {
				return err
			}
			if _, err := out.Write(data); err != nil {
				return errors.Join(err, ctx.Err())
			}
			return out.Keep()
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&ics, "ics", false, "as a calendar in the form iCalendar")
	f.StringVar(&site, "site", "", "what is promised and out of use at the site `NAME` (default: what you have at all sites)")
	f.StringVarP(&path, "out", "o", stdStream, "`FILE` to write; - is stdout")
	_ = cmd.MarkFlagFilename("out", "ics") // fails for unknown flags only
	r = serviceFlags(cmd)
	return cmd
}
