package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/internal/wholefile"
)

// loginCommand returns berth login.
func (a *app) loginCommand() *cobra.Command {
	var r *remote
	var byProvider bool
	cmd := &cobra.Command{
		Use:   "login [URL] [--oidc]",
		Short: "Remember a service and the token for it",
		Long: `Asks the service whose token this is and, if it is valid, keeps both in the folder
for your settings, in a file that only you may read. The token comes from
--token-file, $` + tokenVar + ` or the first line of stdin; typed at a terminal, it is
not shown.

With --oidc you log in at the OpenID provider of the service instead: open the address
that is printed, in any browser, and enter the code. The login is renewed when it
expires, until the provider ends it or you run berth logout.`,
		Example: `  berth login http://127.0.0.1:7117 --token-file ~/.local/state/berth/operator.token
  berth login https://hpc.example.org/berth/ --oidc`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef(cmd, "want one URL, got %d words", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.login(cmd, r, args, byProvider) },
	}
	r = remoteFlags(cmd)
	cmd.Flags().BoolVar(&byProvider, "oidc", false, "log in at the OpenID provider of the service")
	cmd.MarkFlagsMutuallyExclusive("oidc", "token-file")
	return cmd
}

func (a *app) login(cmd *cobra.Command, r *remote, args []string, byProvider bool) error {
	known, err := readLogin()
	if err != nil {
		return err
	}
	server := firstOf(append(args, r.server, os.Getenv(serverVar), known.Server, defaultServer)...)
	if byProvider {
		return a.loginByProvider(cmd, r, &known, server)
	}
	secret, err := a.secret(cmd.Context(), r)
	if err != nil {
		return err
	}
	h, err := overTLS(nil)
	if err != nil {
		return err
	}
	c, err := client.New(server, secret, h)
	if err != nil {
		return err
	}
	ctx, stop, _, err := r.connect(cmd)
	if err != nil {
		return err
	}
	defer stop()
	me, err := c.Me(ctx)
	if err != nil {
		return err
	}
	if known.Tokens == nil {
		known.Tokens = map[string]string{}
	}
	known.Server = trimServer(server)
	known.Tokens[known.Server] = secret
	delete(known.Grants, known.Server)
	path, err := known.save()
	if err != nil {
		return err
	}
	a.say("logged in at %s as %s, %s; the token is kept in %s", known.Server, me.User, me.Role, path)
	return nil
}

// secret returns the token to log in with. What is typed at a terminal is not shown.
func (a *app) secret(ctx context.Context, r *remote) (string, error) {
	switch {
	case r.tokenFile != "":
		return readToken(r.tokenFile)
	case os.Getenv(tokenVar) != "":
		return os.Getenv(tokenVar), nil
	}
	var line string
	var err error
	if file, is := a.stdin.(*os.File); is && term.IsTerminal(int(file.Fd())) {
		line, err = a.typed(ctx, int(file.Fd()))
	} else {
		line, err = bufio.NewReader(a.stdin).ReadString('\n')
	}
	if _, is := errors.AsType[*interrupted](err); is {
		return "", err
	}
	if line = strings.TrimSpace(line); line == "" {
		return "", berth.Errorf(berth.Invalid, "token", "empty; give it with --token-file, in $%s or on stdin", tokenVar)
	}
	return line, nil
}

// typed reads a line from a terminal without showing it. Ctrl-C ends it and leaves
// the terminal as it was.
func (a *app) typed(ctx context.Context, terminal int) (string, error) {
	was, err := term.GetState(terminal)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	ctx, stop := untilInterrupt(ctx)
	defer stop()
	type result struct {
		line []byte
		err  error
	}
	read := make(chan result, 1)
	_, _ = fmt.Fprint(a.stderr, "token (not shown): ") // a message like others
	go func() {
		line, err := term.ReadPassword(terminal)
		read <- result{line, err}
	}()
	select {
	case r := <-read:
		_, _ = fmt.Fprintln(a.stderr)
		return string(r.line), r.err
	case <-ctx.Done():
		_ = term.Restore(terminal, was) // no reader is left to tell
		_, _ = fmt.Fprintln(a.stderr)
		return "", &interrupted{"nothing was changed"}
	}
}

// save writes what is remembered, readable for its owner alone.
func (l *login) save() (path string, err error) {
	if path, err = loginPath(); err != nil {
		return "", err
	}
	if err := makeLoginFolder(path); err != nil {
		return "", err
	}
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return "", fmt.Errorf("writing %s: %w", path, err)
	}
	if err := wholefile.Write(path, append(data, '\n')); err != nil {
		return "", wholefile.CannotWrite("", path, err)
	}
	return path, nil
}

func makeLoginFolder(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return wholefile.CannotWrite("", path, err)
	}
	return nil
}
