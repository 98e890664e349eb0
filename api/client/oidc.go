package client

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
)

// providerTime is how long an OpenID provider may take for one answer.
const providerTime = 30 * time.Second

// Logins says how users can log in at the service, beside its tokens.
func (c *Client) Logins(ctx context.Context) (l form.Logins, err error) {
	err = c.send(ctx, http.MethodGet, "/v1/login", Action{}, nil, &l)
	return l, err
}

// Grant is what an OpenID provider has given a program for its user. It is secret.
type Grant struct {
	Issuer    string   `json:"issuer"`
	Client    string   `json:"client"`
	Audiences []string `json:"audiences"`
	Access    string   `json:"access_token"`
	ID        string   `json:"id_token,omitempty"`
	Refresh   string   `json:"refresh_token,omitempty"`
	// Expires is from when on Bearer is worthless, in seconds since 1970 by this machine's clock.
	Expires int64 `json:"expires"`
}

// Bearer returns what is shown to the service: the access token if it is for one of its audiences, else the ID token,
// which always is for the client.
func (g *Grant) Bearer() string {
	var c struct {
		Issuer   string          `json:"iss"`
		Audience json.RawMessage `json:"aud"`
	}
	if !saysOf(g.Access, &c) || c.Issuer != g.Issuer {
		return g.ID
	}
	var list []string
	if json.Unmarshal(c.Audience, &list) != nil {
		list = make([]string, 1)
		_ = json.Unmarshal(c.Audience, &list[0]) // else it is for no audience
	}
	if slices.ContainsFunc(list, func(a string) bool { return slices.Contains(g.Audiences, a) }) {
		return g.Access
	}
	return g.ID
}

// saysOf reads what a JSON web token says, which nothing vouches for; false if it is none.
func saysOf(token string, to any) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	return err == nil && json.Unmarshal(raw, to) == nil
}

// Device is a program without a browser whose user has to let it in somewhere else (RFC 8628).
type Device struct {
	// URL is where the user enters Code; Whole, where it is not empty, is the same with the code in it.
	URL, Code, Whole string
	Expires          time.Time

	at     *oauth2.Config
	asked  *oauth2.DeviceAuthResponse
	of     form.OIDC
	client *http.Client
}

// AskDevice asks an OpenID provider for a code. h may be nil. Errors: Invalid for a provider that may not be asked,
// Unavailable if it does not answer, Denied if it lets no devices in.
func AskDevice(ctx context.Context, of *form.OIDC, h *http.Client) (*Device, error) {
	d := &Device{of: *of, client: h}
	var err error
	if d.at, ctx, err = configOf(ctx, of.Issuer, of.Client, h); err != nil {
		return nil, err
	}
	if d.at.Endpoint.DeviceAuthURL == "" {
		return nil, berth.Errorf(berth.Denied, "oidc", "%s lets in no programs without a browser; use a token, or berth open", of.Name)
	}
	d.at.Scopes = append(slices.Clone(of.Scopes), oidc.ScopeOfflineAccess)
	if d.asked, err = d.at.DeviceAuth(ctx); err != nil {
		return nil, providerError(of.Name, err)
	}
	d.URL, d.Code, d.Whole, d.Expires = d.asked.VerificationURI, d.asked.UserCode, d.asked.VerificationURIComplete, d.asked.Expiry
	for _, text := range []string{d.URL, d.Code, d.Whole} { // which is shown at a terminal
		if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, berth.Errorf(berth.Unavailable, "oidc", "%s answers with %.100q; want an address and a code", of.Name, text)
		}
	}
	return d, nil
}

// Wait asks as often as the provider wants until the user has let the program in. Errors: Denied if they have not, or the
// code has expired.
func (d *Device) Wait(ctx context.Context) (Grant, error) {
	ctx = withClient(ctx, d.client)
	for {
		got, err := d.at.DeviceAccessToken(ctx, d.asked)
		var broken *url.Error
		switch {
		case err == nil:
			return grantOf(&Grant{Issuer: d.of.Issuer, Client: d.of.Client, Audiences: d.of.Audiences}, got, d.of.Name)
		case errors.As(err, &broken) && ctx.Err() == nil && (d.Expires.IsZero() || time.Now().Before(d.Expires)):
			continue // a connection that broke; the next question is after the usual time
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			return Grant{}, berth.Errorf(berth.Denied, "oidc", "the code %s has expired; log in again", d.Code)
		case ctx.Err() != nil:
			return Grant{}, fmt.Errorf("%s: %w", d.of.Name, ctx.Err())
		}
		return Grant{}, providerError(d.of.Name, err)
	}
}

// Renewed returns the grant that takes the place of one whose tokens have expired. The error is of code Denied if the
// provider wants its user to log in again.
func (g *Grant) Renewed(ctx context.Context, h *http.Client) (Grant, error) {
	if g.Refresh == "" {
		return Grant{}, berth.Errorf(berth.Denied, "oidc", "the login at %s has expired; run berth login --oidc again", g.Issuer)
	}
	at, ctx, err := configOf(ctx, g.Issuer, g.Client, h)
	if err != nil {
		return Grant{}, err
	}
	got, err := at.TokenSource(ctx, &oauth2.Token{RefreshToken: g.Refresh}).Token()
	if err != nil {
		return Grant{}, providerError(g.Issuer, err)
	}
	return grantOf(g, got, g.Issuer)
}

// Revoke has the provider forget what renews a grant, where it can.
func (g *Grant) Revoke(ctx context.Context, h *http.Client) error {
	ctx = withClient(ctx, h)
	if err := allowed(g.Issuer); err != nil || g.Refresh == "" {
		return err
	}
	provider, err := oidc.NewProvider(ctx, g.Issuer)
	if err != nil {
		return providerError(g.Issuer, err)
	}
	var more struct {
		At string `json:"revocation_endpoint"`
	}
	if err := provider.Claims(&more); err != nil || more.At == "" {
		return err
	}
	form := url.Values{"token": {g.Refresh}, "token_type_hint": {"refresh_token"}, "client_id": {g.Client}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, more.At, strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("%s: %w", g.Issuer, err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := providerClient(h).Do(r)
	if err != nil {
		return providerError(g.Issuer, err)
	}
	_ = answer.Body.Close() // nothing in it is of use
	if answer.StatusCode != http.StatusOK {
		return berth.Errorf(berth.Unavailable, "oidc", "%s answers %s", g.Issuer, answer.Status)
	}
	return nil
}

// grantOf is what a provider has given instead of a grant; what it has not given again stays.
func grantOf(was *Grant, got *oauth2.Token, name string) (Grant, error) {
	g := *was
	g.Access = got.AccessToken
	if got.RefreshToken != "" {
		g.Refresh = got.RefreshToken
	}
	id, renewed := got.Extra("id_token").(string)
	if renewed {
		g.ID = id
	}
	shown := g.Bearer()
	if shown == "" || shown == g.ID && !renewed {
		return g, berth.Errorf(berth.Denied, "oidc", "%s has given no token that the service takes: neither an ID token, nor an access token for %s", name, strings.Join(g.Audiences, " or "))
	}
	g.Expires = got.Expiry.Unix()
	var says struct {
		Issued  float64 `json:"iat"`
		Expires float64 `json:"exp"`
	}
	if saysOf(shown, &says) && says.Issued > 0 { // by this machine's clock, which may be off
		if until := time.Now().Unix() + int64(says.Expires-says.Issued); got.Expiry.IsZero() || shown == g.ID || until < g.Expires {
			g.Expires = until
		}
	}
	return g, nil
}

// allowed returns why a provider may not be asked: what it says is who users are, and what is sent to it is secret.
func allowed(issuer string) error {
	u, err := url.Parse(issuer)
	if err != nil || u.Scheme != "https" && (u.Scheme != "http" || !Loopback(u.Hostname())) {
		return berth.Errorf(berth.Invalid, "oidc", "the service names the OpenID provider %.200q; want https://", issuer)
	}
	return nil
}

func configOf(ctx context.Context, issuer, client string, h *http.Client) (*oauth2.Config, context.Context, error) {
	if err := allowed(issuer); err != nil {
		return nil, ctx, err
	}
	ctx = withClient(ctx, h)
	provider, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		return nil, ctx, providerError(issuer, err)
	}
	at := provider.Endpoint()
	at.AuthStyle = oauth2.AuthStyleInParams // a public client has nothing to show in a header
	return &oauth2.Config{ClientID: client, Endpoint: at}, ctx, nil
}

func withClient(ctx context.Context, h *http.Client) context.Context {
	return oidc.ClientContext(ctx, providerClient(h))
}

func providerClient(h *http.Client) *http.Client {
	if h != nil {
		return h
	}
	return &http.Client{Timeout: providerTime}
}

// providerError is an error of a provider in words for people.
func providerError(name string, err error) error {
	if no, is := errors.AsType[*oauth2.RetrieveError](err); is && no.Response != nil && no.Response.StatusCode < 500 {
		switch no.ErrorCode {
		case "access_denied":
			return berth.Errorf(berth.Denied, "oidc", "%s: the login was refused there", name)
		case "expired_token":
			return berth.Errorf(berth.Denied, "oidc", "%s: the code has expired; log in again", name)
		case "invalid_grant":
			return berth.Errorf(berth.Denied, "oidc", "%s: the login has ended; run berth login --oidc again", name)
		}
		return berth.Errorf(berth.Denied, "oidc", "%s refuses (%.100q)", name, no.ErrorCode)
	}
	if u, is := errors.AsType[*url.Error](err); is {
		err = u.Err
	}
	return berth.Errorf(berth.Unavailable, "oidc", "the OpenID provider %s does not answer: %v", name, err)
}
