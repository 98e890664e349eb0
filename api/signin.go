package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/service"
)

// logins answers how users can log in, beside tokens of the service.
func (c *call) logins() error {
	var f form.Logins
	if p := c.provider(); p != nil {
		issuer, client, audiences, scopes := p.About()
		f.OIDC = &form.OIDC{Name: p.Name(), Issuer: issuer, Client: client, Audiences: audiences, Scopes: scopes}
	}
	return c.answer(http.StatusOK, f)
}

// provider is the OpenID provider by which users are known; nil if there is none.
func (a *api) provider() *identity.Provider {
	if a.ways == nil {
		return nil
	}
	return a.ways.OIDC
}

// The cookies of a browser whose user is logging in at the provider. They come with the way back from there,
// unlike those of sessions, and are worth nothing without the provider's answer.
const (
	attemptCookie         = "__Host-berth-login"
	loopbackAttemptCookie = "berth-login"
	attemptSeconds        = 600 // that people take to log in at the provider
)

// attempt is what such a cookie holds.
type attempt struct {
	identity.Attempt
	To string // the page to which the user wanted to go
}

// inside is the paths of pages to which a login may lead. What begins with two slashes would be another host.
var inside = regexp.MustCompile(`^/([A-Za-z0-9._~%-]+(/[A-Za-z0-9._~%-]+)*)?(\?[A-Za-z0-9._~%&=+:,/!'()*;@$-]*)?$`)

var signInParams = []param{{"to", "The path of the page to show afterwards, such as /book.", text("/book")}}

// signIn sends a browser to the OpenID provider.
func (c *call) signIn() error {
	query, err := c.query(signInParams)
	if err == nil {
		err = c.beginSignIn(query["to"])
	}
	return c.explained(err, query["to"])
}

func (c *call) beginSignIn(page string) error {
	loopback, err := c.takesCookies()
	if err != nil {
		return err
	}
	a := attempt{To: page}
	switch {
	case page == "":
		a.To = "/"
	case !inside.MatchString(page):
		return berth.Errorf(berth.Invalid, "to", "%.100q; want the path of a page of the service, such as /book", page)
	}
	to, began, err := c.provider().Begin(c.r.Context(), c.comesBack())
	if err != nil {
		return err
	}
	a.Attempt = began
	data, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("login: %w", err)
	}
	cookie := attemptOf(loopback)
	cookie.Value, cookie.MaxAge = base64.RawURLEncoding.EncodeToString(data), attemptSeconds
	http.SetCookie(c.w, cookie)
	return c.goTo(to)
}

// takesCookies returns whether the cookie of a session would be kept from others only because the browser is on this
// machine. The error says why there can be no session, or no provider.
func (c *call) takesCookies() (loopback bool, err error) {
	if c.provider() == nil {
		return false, berth.Errorf(berth.NotFound, "oidc", "the service knows no OpenID provider; log in with a token")
	}
	if err := c.door.host(c.r); err != nil {
		return false, err
	}
	https, loopback := c.door.private(c.r)
	if !https && !loopback {
		return false, withoutTLS(c.r)
	}
	return loopback && !https, nil
}

func withoutTLS(r *http.Request) error {
	return berth.Errorf(berth.Denied, "session", "the cookie of a session would go to %.100q without https; use https, as docs/web.md says, or a loopback address", r.Host)
}

// comesBack is the address to which the provider sends a browser.
func (c *call) comesBack() string { return c.base() + "/login/oidc/callback" }

func attemptOf(loopback bool) *http.Cookie {
	if loopback {
		return &http.Cookie{Name: loopbackAttemptCookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	}
	return &http.Cookie{Name: attemptCookie, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}

// goTo sends a browser somewhere else.
func (c *call) goTo(address string) error {
	h := c.w.Header()
	h.Set("Location", address)
	h.Set("Referrer-Policy", "no-referrer")
	c.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// signedIn opens a session for a browser that comes back from the provider.
func (c *call) signedIn() error {
	var a attempt
	err := c.endSignIn(&a)
	return c.explained(err, a.To)
}

// errorWord is a code of an error of a provider.
var errorWord = regexp.MustCompile(`^[a-z_]{1,40}$`)

// endSignIn reads what a browser has kept of its login, and ends that.
func (c *call) endSignIn(a *attempt) error {
	loopback, err := c.takesCookies()
	if err != nil {
		return err
	}
	if c.others != nil {
		if err := c.others.Elsewhere(); err != nil {
			return err
		}
	}
	cookie := attemptOf(loopback)
	if kept, err := c.r.Cookie(cookie.Name); err == nil {
		data, err := base64.RawURLEncoding.DecodeString(kept.Value)
		if err != nil || json.Unmarshal(data, a) != nil {
			*a = attempt{}
		}
	}
	cookie.MaxAge = -1 // good for one way back
	http.SetCookie(c.w, cookie)
	query, err := url.ParseQuery(c.r.URL.RawQuery) // providers add parameters of their own
	issuer, _, _, _ := c.provider().About()
	switch {
	case err != nil:
		return berth.Errorf(berth.Invalid, "query", "%v", err)
	case query.Has("iss") && query.Get("iss") != issuer: // RFC 9207
		return berth.Errorf(berth.Denied, "iss", "the answer is of another provider; log in again")
	case query.Get("code") == "":
		code := query.Get("error")
		if !errorWord.MatchString(code) {
			code = "no code"
		}
		return berth.Errorf(berth.Denied, "code", "%s has not let you in (%s)", c.provider().Name(), code)
	case len(query["state"]) != 1 || len(query["code"]) != 1:
		return berth.Errorf(berth.Invalid, "state", "given twice")
	}
	caller, err := c.provider().End(c.r.Context(), c.comesBack(), query.Get("state"), query.Get("code"), a.Attempt, c.Now())
	if err != nil {
		return err
	}
	if _, is := c.tokens.Account(caller.User); is {
		return notAPerson(caller.User)
	}
	c.met(&caller)
	secret, e, err := c.tokens.OpenMemberSession(caller.User, caller.Role, caller.Groups, 0, c.came(), c.Now())
	if err != nil {
		return err
	}
	c.log.Info("session opened", "id", e.ID, "user", e.User, "by", string(identity.OIDC))
	c.setSession(secret, &e, loopback)
	if !inside.MatchString(a.To) { // the browser's owner may have changed it, for themselves
		a.To = "/"
	}
	return c.goTo(c.door.prefix + a.To)
}

// met notes what the provider has said of a user, for their feeds and notices.
func (c *call) met(caller *identity.Caller) {
	err := c.tokens.Meet(caller.User, caller.Groups, c.Now())
	if e, is := errors.AsType[*berth.Error](err); err != nil && (!is || e.Code != berth.Unavailable) { // which a service says that stands by
		c.log.Warn("what the OpenID provider says of a user cannot be kept", "user", caller.User, "error", err)
	}
}

// remembered returns who a user is by their account of the machine, or else by what the OpenID provider said of them in
// the last 30 days, as the roles are now. The error is of code Denied if they are no one.
func remembered(ctx context.Context, ways *identity.Ways, tokens *token.Store, user string, now berth.Time) (service.Principal, error) {
	caller, err := ways.Named(ctx, user)
	if e, is := errors.AsType[*berth.Error](err); is && e.Code == berth.Denied {
		if groups, known := tokens.Member(user, now); known {
			caller, err = ways.Member(user, groups)
		}
	}
	return service.Principal{User: user, Role: caller.Role}, err
}

// adviceOn says what a person can do who could not log in for some reason.
func adviceOn(code berth.Code, field string) string {
	switch {
	case code == berth.Unavailable:
		return "Try again in some minutes. A token of this service logs you in meanwhile."
	case field == "state" || field == "code" || field == "iss" || field == "Authorization":
		return "A login ends in the browser and the tab in which it began, within ten minutes, and once: going back to its address does not log in again. Begin anew."
	case field == "user" || field == "role":
		return "Ask an operator of this service for a role, or log in as another user."
	}
	return ""
}

// explained answers a browser that cannot log in with a page for people: what was wrong, what they can do, and links to that. page is the one
// to which they wanted to go.
func (c *call) explained(err error, page string) error {
	if err == nil {
		return nil
	}
	p, known := problemOf(err)
	if s, is := errors.AsType[*statusError](err); is {
		p.Status = s.status
	}
	if !known {
		return err
	}
	h := c.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	// The colours of the theme, named: else who checks contrasts takes a dark page for white.
	const style = "html{background:Canvas;color:CanvasText}"
	sum := sha256.Sum256([]byte(style))
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	detail, advice := p.Detail, ""
	if coded, is := errors.AsType[*berth.Error](err); is {
		detail, advice = coded.Msg, adviceOn(coded.Code, coded.Field)
	}
	if advice != "" {
		advice = "<p>" + advice + "</p>"
	}
	if c.provider() != nil {
		again := c.door.prefix + "/login/oidc"
		if inside.MatchString(page) {
			again += "?to=" + url.QueryEscape(page)
		}
		advice += fmt.Sprintf(`<p><a href="%s">Log in again with %s</a></p>`, html.EscapeString(again), html.EscapeString(c.provider().Name()))
	}
	c.w.WriteHeader(p.Status)
	_, _ = fmt.Fprintf(c.w, `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>Not logged in</title><style>%s</style></head>
<body><main><h1>Not logged in</h1><p>%s.</p>%s<p><a href="%s/">To the pages, where a token logs you in too</a></p></main></body></html>
`, style, html.EscapeString(strings.TrimSuffix(detail, ".")), advice, html.EscapeString(c.door.prefix)) // who has gone need not be told
	return nil
}
