package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/internal/hpctime"
)

// remote is a service at the other end of a connection, and how what it answers
// is shown.
type remote struct {
	server    string
	tokenFile string
	format    string
	timeout   berth.Duration // 0 is the command's own
	wait      bool
}

const (
	defaultServer = "http://127.0.0.1:7117"
	serverVar     = "BERTH_SERVER"
	tokenVar      = "BERTH_TOKEN"
	// patience is how long a command that does not wait for something to happen
	// waits for its answer.
	patience berth.Duration = 30
)

// remoteFlags adds the flags of every command that speaks to a service.
func remoteFlags(cmd *cobra.Command) *remote {
	return formFlags(cmd, "table", "json")
}

// listFlags adds those of a command that answers with a list of like things.
func listFlags(cmd *cobra.Command) *remote {
	return formFlags(cmd, "table", "json", "csv")
}

// formFlags adds the flags of a command whose answer has these forms.
func formFlags(cmd *cobra.Command, forms ...string) *remote {
	r := &remote{format: "table"}
	r.whereFlags(cmd)
	cmd.Flags().VarP(&choice{&r.format, "form", forms}, "output", "o", "form of the answer: "+strings.Join(forms, ", "))
	complete(cmd, "output", forms)
	r.timeoutFlag(cmd)
	return r
}

// serviceFlags adds those of a command whose answer has one form.
func serviceFlags(cmd *cobra.Command) *remote {
	r := &remote{}
	r.whereFlags(cmd)
	r.timeoutFlag(cmd)
	return r
}

func (r *remote) whereFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&r.server, "server", "", "`URL` of the service, or unix:///PATH of its socket (default: $"+serverVar+", else that of the last login, else the socket on this machine, else "+defaultServer+")")
	f.StringVar(&r.tokenFile, "token-file", "", "`FILE` with the token in its first line (default: the token in $"+tokenVar+", else that of the login, else none: who you are on this machine, or munge's credential)")
	_ = cmd.MarkFlagFilename("token-file") // fails for unknown flags only
}

func (r *remote) timeoutFlag(cmd *cobra.Command) {
	cmd.Flags().Var(&span{value: &r.timeout, least: 1}, "timeout", "how long to wait, then exit 7 (default 30s, or for as long as it takes with --wait)")
}

// waitFlag adds --wait.
func (r *remote) waitFlag(cmd *cobra.Command, until string) {
	cmd.Flags().BoolVar(&r.wait, "wait", false, "return only when "+until)
}

// connect returns a client of the service and a context that ends with the
// patience of the command, or by Ctrl-C.
func (r *remote) connect(cmd *cobra.Command) (context.Context, context.CancelFunc, *client.Client, error) {
	c, err := r.client()
	if err != nil {
		return nil, nil, nil, err
	}
	if c.Exposed() {
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "warning: the token goes to %s without TLS and can be read on the way; use https://\n", c.Server())
	}
	ctx, stop := untilInterrupt(cmd.Context())
	limit := r.timeout
	if limit == 0 && !r.wait {
		limit = patience
	}
	if limit == 0 {
		return ctx, stop, c, nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(min(limit, 1<<32))*time.Second)
	return ctx, func() { cancel(); stop() }, c, nil
}

func (r *remote) client() (*client.Client, error) {
	known, err := readLogin()
	if err != nil {
		return nil, err
	}
	server := firstOf(r.server, os.Getenv(serverVar), known.Server, socketHere(), defaultServer)
	secret := os.Getenv(tokenVar)
	if r.tokenFile != "" {
		if secret, err = readToken(r.tokenFile); err != nil {
			return nil, err
		}
	}
	h, err := overTLS(nil)
	if err != nil {
		return nil, err
	}
	secret = firstOf(secret, known.Tokens[trimServer(server)])
	c, err := client.New(server, secret, h)
	if err == nil {
		c.Sign(sealed)
	}
	if grant, is := known.Grants[trimServer(server)]; err == nil && is && secret == "" {
		c.Renew(granted(trimServer(server), grant))
	}
	return c, err
}

// runSocket is the socket of the service of the package.
const runSocket = "/run/berth/" + socketName

// socketHere returns the socket of a service on this machine, "" if there is none: that of the package, then that
// of one's own service.
func socketHere() string {
	for _, path := range []string{runSocket, filepath.Join(defaultData(), socketName)} {
		if info, err := os.Stat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
			return "unix://" + path
		}
	}
	return ""
}

// sealed makes a credential of munge for a call.
func sealed(ctx context.Context, challenge string, call client.Call) (header string, is bool, err error) {
	realm, is := identity.Realm(challenge)
	if !is {
		return "", false, nil
	}
	header, err = identity.MakeHeader(ctx, identity.Seal(realm, call.Method, call.URI, call.Body, call.Bound))
	return header, err == nil, err
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

// trimServer is how a server is called in the file of logins.
func trimServer(server string) string { return strings.TrimSuffix(server, "/") }

// readToken reads a file with a token in its first line.
func readToken(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", cannotRead(path, err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return "", berth.Errorf(berth.Invalid, "token-file", "%s: empty; want a token in its first line", path)
	}
	return line, nil
}

// login is what berth login remembers.
type login struct {
	Server string            `json:"server"` // of the last login
	Tokens map[string]string `json:"tokens"` // by server
	// Grants are logins at the OpenID providers of servers.
	Grants map[string]client.Grant `json:"grants,omitempty"`
}

// loginPath is where.
func loginPath() (string, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", berth.Errorf(berth.Invalid, "", "no folder for settings: %v", err)
	}
	return filepath.Join(folder, "berth", "login.json"), nil
}

// readLogin returns what is remembered; where that cannot be known nothing is.
func readLogin() (login, error) {
	var known login
	path, err := loginPath()
	if err != nil {
		return known, nil //nolint:nilerr // without a home there was no login
	}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return known, nil
	case err != nil:
		return known, cannotRead(path, err)
	}
	if err := json.Unmarshal(data, &known); err != nil {
		return known, berth.Errorf(berth.Invalid, "", "%s: %v; log in again", path, err)
	}
	return known, nil
}

// span is a duration in one of the forms that say their unit.
type span struct {
	value *berth.Duration
	least berth.Duration
	given bool
}

func (s *span) Type() string { return "D" }

func (s *span) String() string {
	if s.value == nil || *s.value == 0 {
		return ""
	}
	return hpctime.Format(*s.value)
}

func (s *span) Set(text string) error {
	d, err := hpctime.Parse(text)
	if err != nil {
		return err
	}
	if d < s.least {
		return berth.Errorf(berth.Invalid, "", "%q; want at least %s", text, hpctime.Format(s.least))
	}
	*s.value, s.given = d, true
	return nil
}

// moment is a point in time as people write it.
type moment struct {
	text string
	at   time.Time
	// fromNow says that it is so far from now, whenever that is, such as now+1h; 18:00 is not.
	fromNow bool
	read    func(text string, now time.Time) (time.Time, error)
}

func (m *moment) Type() string { return "T" }

func (m *moment) String() string { return m.text }

func (m *moment) Set(text string) error {
	m.text, m.read = text, hpctime.ParseInstant
	return m.settle(time.Now())
}

// settle reads it as of a time, which is the same for all flags of a command. What moves on with the time is
// counted from it.
func (m *moment) settle(now time.Time) error {
	if m.read == nil {
		return nil
	}
	at, err := m.read(m.text, now)
	if err != nil {
		return err
	}
	later, err := m.read(m.text, now.Add(time.Second))
	m.at, m.fromNow = at, err == nil && later.Sub(at) == time.Second && !at.Before(now)
	return nil
}

func (m *moment) given() bool { return m.text != "" }

// echo says which instant was meant, if one was given.
func (a *app) echo(name string, m *moment) {
	if m.given() {
		a.say("%s %q is %s", name, m.text, hpctime.Echo(m.at))
	}
}
