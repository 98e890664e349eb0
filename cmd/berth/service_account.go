package main

import (
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
)

// serviceAccountCommand returns berth service-account.
func (a *app) serviceAccountCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "service-account", Short: "Create, list and remove accounts for programs, and their tokens",
		Long: `Service accounts are principals for programs: no person logs in as one. What they reserve is
theirs, and they may do no more than their owner may at the time. Their tokens expire.`,
	}
	cmd.AddCommand(a.accountAdd(), a.accountList(), a.accountRemove(), a.accountToken(), a.accountRevoke())
	return cmd
}

func (a *app) accountAdd() *cobra.Command {
	var r *remote
	wanted := client.NewServiceAccount{Role: "user"}
	cmd := &cobra.Command{
		Use:     "add NAME",
		Short:   "Create a service account, whose name begins with svc-",
		Example: "  berth service-account add svc-ci --note builds\n  berth service-account add svc-wall --role viewer",
		Args:    one("NAME that begins with svc-"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			wanted.Name = args[0]
			made, err := c.AddServiceAccount(ctx, wanted)
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, &made)
			}
			a.say("service account %s of %s, %s", made.Name, made.Owner, made.Role)
			a.say("make a token: berth service-account token %s", made.Name)
			return nil
		},
	}
	f := cmd.Flags()
	f.Var(&choice{&wanted.Role, "role", roles}, "role", "what it may do at most: viewer, user, operator")
	f.StringVar(&wanted.Owner, "owner", "", "whose it is (`USER`), for operators (default: yours)")
	f.StringVar(&wanted.Note, "note", "", "what it is for (`TEXT`), for people")
	f.StringSliceVar(&wanted.Sites, "sites", nil, "the only sites that it sees and uses (`NAME`s, with commas; default all)")
	complete(cmd, "role", roles)
	r = remoteFlags(cmd)
	return cmd
}

func (a *app) accountList() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "list", Short: "List your service accounts with their tokens, for operators those of all users", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			list, err := c.ServiceAccounts(ctx)
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, form.ServiceAccounts{Accounts: list})
			}
			var rows [][]string
			out := newTable("service accounts")
			out.AppendHeader(table.Row{"name", "owner", "role", "note", "token", "scopes", "expires", "for"})
			for i := range list {
				x := &list[i]
				if len(x.Tokens) == 0 {
					x.Tokens = []form.Token{{}} // a row all the same
				}
				for k := range x.Tokens {
					t := &x.Tokens[k]
					rows = append(rows, []string{x.Name, x.Owner, x.Role, x.Note, t.ID, strings.Join(t.Scopes, " "), timeCell(t.Expires), t.Note})
					out.AppendRow(table.Row{x.Name, x.Owner, x.Role, orDash(x.Note), orDash(t.ID), orDash(strings.Join(t.Scopes, ",")), localTime(t.Expires), orDash(t.Note)})
				}
			}
			if r.format == "csv" {
				return printRows(a.stdout, []string{"name", "owner", "role", "note", "token", "scopes", "expires", "token_note"}, rows)
			}
			if len(list) == 0 {
				a.say("no service accounts")
				return nil
			}
			return a.show(out.Render() + "\n")
		},
	}
	r = listFlags(cmd)
	return cmd
}

func (a *app) accountRemove() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Remove a service account with its tokens and feeds; what it has reserved stays", Args: one("NAME of a service account"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if err := c.RemoveServiceAccount(ctx, args[0]); err != nil {
				return err
			}
			a.say("service account %s is removed, and its tokens are worthless", args[0])
			return nil
		},
	}
	r = remoteFlags(cmd)
	return cmd
}

func (a *app) accountToken() *cobra.Command {
	var r *remote
	var wanted client.NewToken
	cmd := &cobra.Command{
		Use:   "token NAME",
		Short: "Create a token of a service account and print it, once",
		Long: `Makes a token of a service account, with the role of the account, and prints it to stdout.
With --renew it has the note, the role, the sites and the scopes of another one, which
expires a day later, or after --overlap. A secret that has leaked: --overlap 0s.`,
		Example: "  berth service-account token svc-ci --scope read,reserve,cancel --expires 30d\n  berth service-account token svc-ci --renew 0f3a9c21b8d4 --overlap 1h",
		Args:    one("NAME of a service account"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if wanted.Expires, err = expiry(wanted.Expires); err != nil {
				return err
			}
			t, err := c.AddServiceAccountToken(ctx, args[0], wanted)
			if err != nil {
				return err
			}
			return a.showNew(r, &t)
		},
	}
	f := cmd.Flags()
	f.StringVar(&wanted.Note, "note", "", "what it is for (`TEXT`), for people")
	f.StringVar(&wanted.Expires, "expires", "", "from when on it is worthless (`WHEN`): a length of time such as 30d, or a time with its zone (default 90d)")
	f.StringSliceVar(&wanted.Sites, "sites", nil, "the only sites that it lets see and use (`NAME`s, with commas; default all of the account)")
	scopeFlag(cmd, &wanted.Scopes, "what it is good for within the role of the account (default: all but tokens)")
	f.StringVar(&wanted.Renews, "renew", "", "take over from the token with this `ID`, which expires after the overlap")
	f.StringVar(&wanted.Overlap, "overlap", "", "for how `LONG` the token that is renewed stays good (default 1d; 0s ends it at once)")
	r = remoteFlags(cmd)
	return cmd
}

func (a *app) accountRevoke() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "revoke NAME ID", Short: "Revoke a token of a service account",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usagef(cmd, "want the NAME of a service account and the ID of a token, as berth service-account list has them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if err := c.RevokeServiceAccountToken(ctx, args[0], args[1]); err != nil {
				return err
			}
			a.say("token %s is worthless now", args[1])
			return nil
		},
	}
	r = remoteFlags(cmd)
	return cmd
}
