package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
)

// loginByProvider logs in at the OpenID provider of a service: the user lets this program in, in a browser anywhere.
func (a *app) loginByProvider(cmd *cobra.Command, r *remote, known *login, server string) error {
	h, err := overTLS(nil)
	if err != nil {
		return err
	}
	c, err := client.New(server, "", h)
	if err != nil {
		return err
	}
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	if r.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(min(r.timeout, 1<<32))*time.Second)
		defer cancel()
	}
	logins, err := c.Logins(ctx)
	switch {
	case err != nil:
		return err
	case logins.OIDC == nil:
		return berth.Errorf(berth.Invalid, "oidc", "%s knows no OpenID provider; log in with a token", c.Server())
	}
	device, err := client.AskDevice(ctx, logins.OIDC, nil)
	if err != nil {
		return err
	}
	a.say("open %s in a browser and enter the code %s", device.URL, device.Code)
	if device.Whole != "" {
		a.say("or open %s", device.Whole)
	}
	grant, err := device.Wait(ctx)
	switch {
	case errors.Is(err, context.Canceled):
		return &interrupted{"nothing was changed"}
	case err != nil:
		return err
	}
	c.Renew(func(context.Context) (string, error) { return grant.Bearer(), nil })
	me, err := c.Me(ctx)
	if err != nil {
		return err
	}
	// What others have kept meanwhile stays.
	unlock, err := lockLogin(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if *known, err = readLogin(); err != nil {
		return err
	}
	if known.Grants == nil {
		known.Grants = map[string]client.Grant{}
	}
	known.Server = trimServer(server)
	known.Grants[known.Server] = grant
	delete(known.Tokens, known.Server)
	path, err := known.save()
	if err != nil {
		return err
	}
	a.say("logged in at %s as %s, %s; what renews the login is kept in %s", known.Server, me.User, me.Role, path)
	return nil
}

// spare is how long before its end a token is renewed: the call that carries it takes time too.
const spare = 30

// granted returns what gives the token of a login at an OpenID provider, renewed when it is time.
func granted(server string, grant client.Grant) func(ctx context.Context) (string, error) {
	var mu sync.Mutex
	return func(ctx context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Now().Unix() < grant.Expires-spare {
			return grant.Bearer(), nil
		}
		unlock, err := lockLogin(ctx)
		if err != nil {
			return "", err
		}
		defer unlock()
		known, err := readLogin()
		if err != nil {
			return "", err
		}
		now, is := known.Grants[server]
		switch {
		case !is:
			return "", berth.Errorf(berth.Denied, "login", "logged out at %s meanwhile; run berth login --oidc again", server)
		case time.Now().Unix() < now.Expires-spare: // another berth has renewed it
			grant = now
			return grant.Bearer(), nil
		}
		if grant, err = now.Renewed(ctx, nil); err != nil {
			return "", err
		}
		known.Grants[server] = grant
		if _, err := known.save(); err != nil {
			return "", err
		}
		return grant.Bearer(), nil
	}
}

const (
	lockTried = 50 * time.Millisecond
	// lockStale is from when on a lock is one that was left behind: what is done under it takes seconds.
	lockStale = 2 * time.Minute
)

// lockLogin keeps other processes from changing what berth login remembers: a provider takes what renews a login once.
func lockLogin(ctx context.Context) (unlock func(), err error) {
	path, err := loginPath()
	if err != nil {
		return nil, err
	}
	path += ".lock"
	if err := makeLoginFolder(path); err != nil {
		return nil, err
	}
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			_ = file.Close() // nothing is in it
			return func() { _ = os.Remove(path) }, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, berth.Errorf(berth.Invalid, "login", "%v", err)
		}
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > lockStale {
			_ = os.Remove(path) // who was faster has removed it
			continue
		}
		select {
		case <-time.After(lockTried):
		case <-ctx.Done():
			return nil, berth.Errorf(berth.Unavailable, "login", "another berth is changing the logins; remove %s if none runs", path)
		}
	}
}

// logoutCommand returns berth logout.
func (a *app) logoutCommand() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use:   "logout [URL]",
		Short: "Forget the login at a service",
		Long: `Forgets the token that berth login has kept for a service. What renews a login at an
OpenID provider is revoked there too, where the provider can. A token of the service
itself stays good: berth token revoke ends it.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef(cmd, "want one URL, got %d words", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			known, err := readLogin()
			if err != nil {
				return err
			}
			server := trimServer(firstOf(append(args, r.server, os.Getenv(serverVar), known.Server)...))
			ctx, stop := untilInterrupt(cmd.Context())
			defer stop()
			unlock, err := lockLogin(ctx)
			if err != nil {
				return err
			}
			defer unlock()
			if known, err = readLogin(); err != nil {
				return err
			}
			grant, byProvider := known.Grants[server]
			if _, byToken := known.Tokens[server]; server == "" || !byProvider && !byToken {
				return berth.Errorf(berth.NotFound, "login", "no login at %s is kept", firstOf(server, "any service"))
			}
			delete(known.Grants, server)
			delete(known.Tokens, server)
			if known.Server == server {
				known.Server = ""
			}
			if _, err := known.save(); err != nil {
				return err
			}
			if byProvider {
				limit, cancel := context.WithTimeout(ctx, time.Duration(patience)*time.Second)
				defer cancel()
				if err := grant.Revoke(limit, nil); err != nil {
					a.say("warning: what renews the login could not be revoked: %s", strings.TrimPrefix(err.Error(), "oidc: "))
				}
			}
			a.say("logged out at %s", server)
			return nil
		},
	}
	r = serviceFlags(cmd)
	return cmd
}
