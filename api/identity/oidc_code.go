package identity

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/berth-hpc/berth"
)

// Attempt is what a browser keeps while its user logs in at the provider. All of it is secret until then.
type Attempt struct {
	State    string // that the provider hands back, so that no one else can end what they began
	Nonce    string // that stands in the token
	Verifier string // of PKCE (RFC 7636), without which the code is worthless
}

// Begin returns where to send a browser to log in, and what it has to keep. The provider sends it to redirect
// then. The error is of code Unavailable if the provider is not known.
func (p *Provider) Begin(ctx context.Context, redirect string) (to string, a Attempt, err error) {
	known, err := p.needed(ctx)
	if known == nil {
		return "", a, err
	}
	a = Attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	return p.config(known, redirect).AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)), a, nil
}

// End returns who has logged in, by the state and the code with which the browser came back. Errors: Denied if that is
// not what was begun or the provider does not take it, Unavailable if the provider does not answer.
func (p *Provider) End(ctx context.Context, redirect, state, code string, a Attempt, now berth.Time) (Caller, error) {
	if a.State == "" || subtle.ConstantTimeCompare([]byte(state), []byte(a.State)) != 1 {
		return Caller{}, berth.Errorf(berth.Denied, "state", "this browser has not begun to log in, or too long ago; log in again")
	}
	known, err := p.needed(ctx)
	if known == nil {
		return Caller{}, err
	}
	ctx = oidc.ClientContext(ctx, p.http)
	got, err := p.config(known, redirect).Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		if no, is := errors.AsType[*oauth2.RetrieveError](err); is && no.Response.StatusCode < 500 {
			return Caller{}, berth.Errorf(berth.Denied, "code", "%s does not take the code (%.100s); log in again", p.o.Name, no.ErrorCode)
		}
		return Caller{}, p.away(plain(err))
	}
	text, _ := got.Extra("id_token").(string)
	c, err := p.check(ctx, text, []string{p.o.Client}, now)
	if err != nil {
		return Caller{}, err
	}
	if subtle.ConstantTimeCompare([]byte(c.Nonce), []byte(a.Nonce)) != 1 {
		return Caller{}, p.no("was made for another login")
	}
	if err := p.complete(ctx, known, got, c); err != nil {
		return Caller{}, err
	}
	return p.caller(c)
}

// complete adds what the provider says of a user beside the token, if the token does not say their name or groups.
func (p *Provider) complete(ctx context.Context, known *described, got *oauth2.Token, c *claims) error {
	if known.provider.UserInfoEndpoint() == "" || claim(c.all, p.o.User) != nil && claim(c.all, p.o.Groups) != nil {
		return nil
	}
	info, err := known.provider.UserInfo(ctx, oauth2.StaticTokenSource(got))
	if err != nil {
		return p.away(plain(err))
	}
	more := map[string]any{}
	if err := info.Claims(&more); err != nil || info.Subject != c.Subject {
		return p.no("is of another user than the provider says")
	}
	for name, value := range more {
		if _, said := c.all[name]; !said {
			c.all[name] = value
		}
	}
	return nil
}

func (p *Provider) config(known *described, redirect string) *oauth2.Config {
	at := known.provider.Endpoint()
	at.AuthStyle = oauth2.AuthStyleInParams
	if p.secret != "" && known.basic {
		at.AuthStyle = oauth2.AuthStyleInHeader
	}
	return &oauth2.Config{ClientID: p.o.Client, ClientSecret: p.secret, Endpoint: at, RedirectURL: redirect, Scopes: p.o.Scopes}
}
