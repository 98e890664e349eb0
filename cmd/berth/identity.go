package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/sites"
)

// socketName is what the socket is called in its folder.
const socketName = "berth.sock"

// known is what a service takes to know who asks, beside tokens.
type known struct {
	socket string // "" is the default
	roles  identity.Roles
	munge  *identity.Credentials
	jwt    *identity.Tokens
	oidc   *identity.Provider
}

// identify takes from the configuration how users are known. Sites have to be known by then.
func (s *setup) identify(in *sites.Service) (err error) {
	k := &s.known
	k.socket = in.Socket
	if k.socket != "" && k.socket != sites.NoSocket && !filepath.IsAbs(k.socket) {
		return berth.Errorf(berth.Invalid, "socket", "%q; want an absolute path, or none", k.socket)
	}
	k.roles.Rules = rulesOf(in.Roles)
	k.roles.Self = uint32(max(os.Geteuid(), 0))
	switch {
	case in.DefaultRole != "":
		k.roles.Default = roleOf(in.DefaultRole)
	case len(s.runsAsItself()) == 0:
		k.roles.Default = service.User
	}
	if in.Munge != "" {
		k.munge = identity.NewCredentials(in.Munge, nil)
	}
	if in.SlurmJWT != "" {
		if k.jwt, err = identity.ReadKey(in.SlurmJWT); err != nil {
			return err
		}
	}
	if o := in.OIDC; o != nil {
		k.oidc, err = identity.NewProvider(identity.ProviderOptions{
			Issuer: o.Issuer, Name: o.Name, Client: o.Client, SecretFile: o.Secret, DeviceClient: o.DeviceClient, Audiences: o.Audiences, Scopes: o.Scopes,
			User: o.User, Groups: o.Groups, Roles: identity.Roles{Rules: rulesOf(o.Roles), Default: roleOf(o.DefaultRole)}, Skew: o.Skew, CAFile: o.CA, Projects: s.projects.GroupNames(),
		})
	}
	return err
}

// roleOf returns the role that a word of the configuration means; NoRole and no word are none.
func roleOf(word string) service.Role {
	if word == sites.NoRole {
		return ""
	}
	return service.Role(word)
}

func rulesOf(rows []sites.Role) []identity.Rule {
	var rules []identity.Rule
	for _, r := range rows {
		rules = append(rules, identity.Rule{Role: roleOf(r.Role), Users: r.Users, Groups: r.Groups})
	}
	return rules
}

// watchProvider keeps what the OpenID provider says of itself fresh until ctx ends, and logs when it goes and comes.
func (k *known) watchProvider(ctx context.Context, log *slog.Logger) {
	if k.oidc == nil {
		return
	}
	go k.oidc.Watch(ctx, func(err error) {
		if err != nil {
			log.Warn("the OpenID provider does not answer: users with its tokens and logins wait; tokens of the service are good", "provider", k.oidc.Name(), "error", err)
			return
		}
		log.Info("the OpenID provider answers", "provider", k.oidc.Name())
	})
}

// providerText says whether the OpenID provider answers; "" if there is none.
func (k *known) providerText(ctx context.Context) string {
	if k.oidc == nil {
		return ""
	}
	if err := k.oidc.Ask(ctx); err != nil {
		return fmt.Sprintf("warning: %v", plainText(err))
	}
	return fmt.Sprintf("the OpenID provider %s answers", k.oidc.Name())
}

// plainText returns the text of an error without its field.
func plainText(err error) string {
	if e, is := errors.AsType[*berth.Error](err); is {
		return e.Msg
	}
	return err.Error()
}

// runsAsItself returns the sites whose tasks run as the account of the service. Who may use these can do all
// that it can.
func (s *setup) runsAsItself() []string {
	var names []string
	for i := range s.config.Sites {
		name := s.config.Sites[i].Name
		if a := s.adapters[name]; a.Kind == sites.Local && len(a.Users) == 0 {
			names = append(names, name)
		}
	}
	return names
}

func (k *known) ways() *identity.Ways {
	return &identity.Ways{Roles: k.roles, Accounts: identity.NewAccounts(nil), Munge: k.munge, JWT: k.jwt, OIDC: k.oidc}
}

// defaultSocket is where the socket is if nothing is said: in the folder that systemd has made for what is there
// while the service runs, or among its data, where its own account reaches it alone.
func defaultSocket(data string) string {
	if dir := os.Getenv("RUNTIME_DIRECTORY"); filepath.IsAbs(dir) && !strings.Contains(dir, ":") {
		return filepath.Join(dir, socketName)
	}
	if path, err := filepath.Abs(filepath.Join(data, socketName)); err == nil {
		return path
	}
	return sites.NoSocket
}

// listenSocket listens on the socket; nil is none. One that was not asked for may be missing.
func (k *known) listenSocket(ctx context.Context, data string, log *slog.Logger) (net.Listener, error) {
	if k.socket == sites.NoSocket {
		return nil, nil //nolint:nilnil // none is no mistake
	}
	if k.socket != "" {
		return identity.Listen(ctx, k.socket)
	}
	listener, err := identity.Listen(ctx, defaultSocket(data))
	if err != nil {
		log.Info("no Unix socket: users of this machine need tokens", "why", err)
		return nil, nil //nolint:nilnil // as above
	}
	return listener, nil
}

// whoamiCommand returns berth whoami.
func (a *app) whoamiCommand() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "Say who the service takes you for, and how it knows",
		Long: `Asks the service who you are there. It knows by, in this order, a token; who you
are on its own machine, over its socket; and a credential of munge from another
node of the same site. Only the first has to be carried.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			me, err := c.Me(ctx)
			if err != nil {
				return err
			}
			if r.format == "json" {
				return printForm(a.stdout, me)
			}
			how := map[string]string{
				"": "by your token", string(identity.Socket): "as the user of this machine that you are",
				string(identity.Munge): "by a credential of munge", string(identity.SlurmJWT): "by a token of Slurm",
				string(identity.OIDC): "by the OpenID provider",
			}[me.Way]
			text := fmt.Sprintf("%s, %s, at %s, %s", me.User, me.Role, c.Server(), how)
			if len(me.Sites) > 0 {
				text += ", for " + strings.Join(me.Sites, ", ") + " alone"
			}
			if len(me.Scopes) > 0 {
				text += ", to " + strings.Join(me.Scopes, ", ") + " alone"
			}
			if len(me.Accounts) > 0 {
				text += ", in " + strings.Join(me.Accounts, ", ")
				if len(me.Accounts) > 1 {
					text += " (" + me.DefaultAccount + " by default)"
				}
			}
			if me.Expires != 0 {
				text += ", until " + localTime(me.Expires)
			}
			return a.show(text + "\n")
		},
	}
	r = remoteFlags(cmd)
	return cmd
}

// closeListener closes a listener that the server may have closed already.
func closeListener(l net.Listener) error {
	if l == nil {
		return nil
	}
	if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
