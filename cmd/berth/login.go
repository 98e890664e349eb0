package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/internal/wholefile"
)

// loginCommand returns berth login.
func (a *app) loginCommand() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use:   "login [URL]",
		Short: "Remember a service and the token for it",
		Long: `Asks the service whose token this is and, if it is somebody's, keeps both in the
folder for your settings, in a file that only you may read. The token comes from
--token-file, $` + tokenVar + ` or the first line of stdin.`,
		Example: `  berth login http://127.0.0.1:7117 --token-file berth-data/operator.token`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef(cmd, "want one URL, got %d words", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.login(cmd, r, args) },
	}
	r = remoteFlags(cmd)
	return cmd
}

func (a *app) login(cmd *cobra.Command, r *remote, args []string) error {
	known, err := readLogin()
	if err != nil {
		return err
	}
	server := firstOf(append(args, r.server, os.Getenv(serverVar), known.Server, defaultServer)...)
	secret, err := a.secret(r)
	if err != nil {
		return err
	}
	c, err := client.New(server, secret, nil)
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
	path, err := known.save()
	if err != nil {
		return err
	}
	a.say("logged in at %s as %s, %s; the token is kept in %s", known.Server, me.User, me.Role, path)
	return nil
}

// secret returns the token to log in with.
func (a *app) secret(r *remote) (string, error) {
	switch {
	case r.tokenFile != "":
		return readToken(r.tokenFile)
	case os.Getenv(tokenVar) != "":
		return os.Getenv(tokenVar), nil
	}
	if isTerminal(a.stderr) {
		_, _ = fmt.Fprint(a.stderr, "token: ") // a message like others
	}
	line, err := bufio.NewReader(a.stdin).ReadString('\n')
	if line = strings.TrimSpace(line); line == "" {
		return "", berth.Errorf(berth.Invalid, "token", "none; want one in --token-file, $%s or on stdin (%v)", tokenVar, err)
	}
	return line, nil
}

// save writes what is remembered, for nobody else to read.
func (l *login) save() (path string, err error) {
	if path, err = loginPath(); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", cannotWrite("", path, err)
	}
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return "", fmt.Errorf("writing %s: %w", path, err)
	}
	if err := wholefile.Write(path, append(data, '\n')); err != nil {
		return "", cannotWrite("", path, err)
	}
	return path, nil
}
