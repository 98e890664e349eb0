package main

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/token"
)

// tokenCommand returns berth token.
func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Create, list and revoke tokens, for operators"}
	cmd.AddCommand(a.tokenAdd(), a.tokenList(), a.tokenChange(), a.tokenRevoke())
	return cmd
}

// scopeFlag adds --scope.
func scopeFlag(cmd *cobra.Command, to *[]string, about string) {
	names, abouts := token.ScopeNames()
	for i, name := range names {
		abouts[i] = name + ": " + abouts[i]
	}
	cmd.Flags().Var(&list{value: to, what: "scope", names: names}, "scope", about+", with commas between:\n  "+strings.Join(abouts, "\n  "))
	complete(cmd, "scope", names)
}

var roles = []string{"viewer", "user", "operator"}

func (a *app) tokenAdd() *cobra.Command {
	var r *remote
	wanted := client.NewToken{Role: "user"}
	cmd := &cobra.Command{
		Use:   "add USER",
		Short: "Create a token and print it, once",
		Long: `Makes a token for a user and prints it to stdout. A viewer looks at what is taken
when, without names; a user asks for reservations and does everything with his
own; an operator does everything with everybody's. With --expires the token is worthless
from then on; with --sites it lets see and use these sites alone, and with --scope it is
good for some of what the role may do.`,
		Example: "  berth token add alice\n  berth token add wall --role viewer --note \"the screen in the hall\"\n" +
			"  berth token add course --expires 30d --sites cm5\n  berth token add alice --scope read,reserve --note notebook",
		Args: one("USER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			wanted.User = args[0]
			if wanted.Expires, err = expiry(wanted.Expires); err != nil {
				return err
			}
			t, err := c.AddToken(ctx, wanted)
			if err != nil {
				return err
			}
			return a.showNew(r, &t)
		},
	}
	cmd.Flags().Var(&choice{&wanted.Role, "role", roles}, "role", "what it is good for: viewer, user, operator")
	cmd.Flags().StringVar(&wanted.Note, "note", "", "what it is for (`TEXT`), for people")
	cmd.Flags().StringVar(&wanted.Expires, "expires", "", "from when on it is worthless (`WHEN`): a length of time such as 30d, or a time with its zone (default never)")
	cmd.Flags().StringSliceVar(&wanted.Sites, "sites", nil, "the only sites that it lets see and use (`NAME`s, with commas; default all)")
	scopeFlag(cmd, &wanted.Scopes, "what it is good for within its role (default: all that the token is good for with which you ask)")
	complete(cmd, "role", roles)
	r = remoteFlags(cmd)
	return cmd
}

// showNew shows a token that was made, with its secret.
func (a *app) showNew(r *remote, t *form.Token) error {
	if r.format == "json" {
		return printForm(a.stdout, t)
	}
	until := ""
	if t.Expires != 0 {
		until = ", until " + localTime(t.Expires)
	}
	a.say("token %s of %s, %s%s%s:", t.ID, t.User, t.Role, scopeWords(t.Scopes), until)
	return a.show(t.Secret + "\n")
}

// scopeWords says what a token is good for within its role; nothing if that is all.
func scopeWords(scopes []string) string {
	if len(scopes) == 0 {
		return ""
	}
	return ", to " + strings.Join(scopes, ", ")
}

func (a *app) tokenChange() *cobra.Command {
	var r *remote
	var scopes []string
	cmd := &cobra.Command{
		Use:   "change ID --scope SCOPES",
		Short: "Change what a token is good for within its role",
		Long: `Has a token be good for some scopes alone from now on, and the sessions that were opened
with it. Streams of events that were opened with it end. They can be no more than the
scopes of the token with which you ask.`,
		Example: "  berth token change 1f2e3d4c5b6a --scope read",
		Args:    one("ID of a token, as berth token list has them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(scopes) == 0 {
				names, _ := token.ScopeNames()
				return usagef(cmd, "--scope: missing; want some of %s", strings.Join(names, ", "))
			}
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			t, err := c.ChangeScopes(ctx, args[0], scopes)
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, &t)
			}
			a.say("token %s of %s, %s%s", t.ID, t.User, t.Role, scopeWords(t.Scopes))
			return nil
		},
	}
	scopeFlag(cmd, &scopes, "what it is good for from now on")
	r = remoteFlags(cmd)
	return cmd
}

func (a *app) tokenList() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "list", Short: "List the tokens, without their secrets", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			tokens, err := c.Tokens(ctx)
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, form.Tokens{Tokens: tokens})
			case r.format == "csv":
				return tokenRows(a.stdout, tokens)
			}
			out := newTable("tokens")
			out.AppendHeader(table.Row{"id", "user", "role", "created", "expires", "sites", "scopes", "note"})
			for _, t := range tokens {
				out.AppendRow(table.Row{t.ID, t.User, t.Role, localTime(t.Created), localTime(t.Expires), orDash(strings.Join(t.Sites, ",")), orDash(strings.Join(t.Scopes, ",")), orDash(t.Note)})
			}
			return a.show(out.Render() + "\n")
		},
	}
	r = listFlags(cmd)
	return cmd
}

func (a *app) tokenRevoke() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "Revoke a token", Args: one("ID of a token, as berth token list has them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if err := c.RevokeToken(ctx, args[0]); err != nil {
				return err
			}
			a.say("token %s is worthless now", args[0])
			return nil
		},
	}
	r = remoteFlags(cmd)
	return cmd
}
