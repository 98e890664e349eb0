package main

import (
	"context"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
)

// sessionCommand returns berth session.
func (a *app) sessionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "session", Short: "List and end your sessions in browsers",
		Long: `Sessions in browsers: where you are logged in. What a terminal uses are tokens, or logins at
the OpenID provider, which berth logout ends.`,
	}
	cmd.AddCommand(a.sessionList(), a.sessionEnd())
	return cmd
}

func (a *app) sessionList() *cobra.Command {
	var r *remote
	var user string
	cmd := &cobra.Command{
		Use: "list", Short: "List your sessions in browsers, for operators those of all users", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			list, err := c.Sessions(ctx, user)
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, form.Sessions{Sessions: list})
			case r.format == "csv":
				rows := make([][]string, len(list))
				for i := range list {
					s := &list[i]
					rows[i] = []string{s.ID, s.User, s.Way, s.Token, timeCell(s.Created), timeCell(s.Used), timeCell(s.Expires), s.Address, s.Agent, strings.Join(s.Scopes, " ")}
				}
				return printRows(a.stdout, []string{"id", "user", "way", "token", "opened", "used", "expires", "address", "agent", "scopes"}, rows)
			case len(list) == 0:
				a.say("no sessions")
				return nil
			}
			out := newTable("sessions in browsers")
			out.AppendHeader(table.Row{"id", "user", "by", "opened", "used", "expires", "address", "browser"})
			for i := range list {
				s := &list[i]
				out.AppendRow(table.Row{s.ID, s.User, strings.TrimSpace(s.Way + " " + s.Token), localTime(s.Created), localTime(s.Used), localTime(s.Expires), orDash(s.Address), orDash(s.Agent)})
			}
			return a.show(out.Render() + "\n")
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "only those of this `USER`, for operators")
	r = listFlags(cmd)
	return cmd
}

func (a *app) sessionEnd() *cobra.Command {
	var r *remote
	var user string
	var all bool
	cmd := &cobra.Command{
		Use: "end [ID...] [--all]", Short: "End some of your sessions in browsers, or all; for operators those of others",
		Example: "  berth session end 1f2e3d4c5b6a\n  berth session end --all",
		Args: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return usagef(cmd, "want IDs of sessions, as berth session list has them, or --all")
			}
			if user != "" && !all {
				return usagef(cmd, "--user: goes with --all alone; an ID says whose session it is")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			return a.endSessions(ctx, c, user, args)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all of yours")
	cmd.Flags().StringVar(&user, "user", "", "with --all: those of this `USER`, for operators")
	r = remoteFlags(cmd)
	return cmd
}

// endSessions ends the sessions of some ids, or without one all of a user.
func (a *app) endSessions(ctx context.Context, c *client.Client, user string, ids []string) error {
	for _, id := range ids {
		if err := c.EndSession(ctx, id); err != nil {
			return err
		}
		a.say("session %s is ended", id)
	}
	if len(ids) > 0 {
		return nil
	}
	ended, err := c.EndSessions(ctx, user)
	if err == nil {
		a.say("sessions ended: %d", ended)
	}
	return err
}
