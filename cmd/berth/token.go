package main

import (
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/api/form"
)

// tokenCommand returns berth token.
func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "Make, list and revoke tokens, for operators"}
	cmd.AddCommand(a.tokenAdd(), a.tokenList(), a.tokenRevoke())
	return cmd
}

var roles = []string{"viewer", "user", "operator"}

func (a *app) tokenAdd() *cobra.Command {
	var r *remote
	role, note := "user", ""
	cmd := &cobra.Command{
		Use:   "add USER",
		Short: "Make a token and print it; it cannot be had again",
		Long: `Makes a token for a user and prints it to stdout. A viewer looks at what is taken
when, without names; a user asks for reservations and does everything with his
own; an operator does everything with everybody's.`,
		Example: "  berth token add alice\n  berth token add wall --role viewer --note \"the screen in the hall\"",
		Args:    one("USER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			t, err := c.AddToken(ctx, args[0], role, note)
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, &t)
			}
			a.say("token %s of %s, %s:", t.ID, t.User, t.Role)
			return a.show(t.Secret + "\n")
		},
	}
	cmd.Flags().Var(&choice{&role, "role", roles}, "role", "what it is good for: viewer, user, operator")
	cmd.Flags().StringVar(&note, "note", "", "what it is for (`TEXT`), for people")
	complete(cmd, "role", roles)
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
			out.AppendHeader(table.Row{"id", "user", "role", "created", "note"})
			for _, t := range tokens {
				out.AppendRow(table.Row{t.ID, t.User, t.Role, localTime(t.Created), orDash(t.Note)})
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
		Use: "revoke ID", Short: "Make a token worthless", Args: one("ID of a token, as berth token list has them"),
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
