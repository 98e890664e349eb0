package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/service"
)

func (c *call) me() error { return c.answerMe(http.StatusOK) }

// answerMe answers who asks. While their accounts cannot be known none is told, for the rest is true without them: pages begin with it.
func (c *call) answerMe(status int) error {
	me := form.Me{User: c.by.User, Role: string(c.by.Role), Way: string(c.caller.Way), Sites: c.by.Sites.Names(), Scopes: c.token.Scopes.Names()}
	if c.token.Expires != 0 {
		me.Expires = form.TimeOf(c.token.Expires)
	}
	own, err := c.OwnProjects(c.r.Context(), c.by.User)
	coded, is := errors.AsType[*berth.Error](err)
	switch {
	case err == nil:
		me.Accounts, me.DefaultAccount = own.Accounts, own.Default
	case !is || coded.Code != berth.Unavailable:
		return err
	}
	return c.answer(status, me)
}

// wantedToken is a token to be made, which is good until a time or for a length of time.
type wantedToken struct {
	token.Wanted
	lasts    berth.Duration
	overlaps bool // how long is given
}

var tokenBody = body[wantedToken]{
	{"user", "Whose it is.", text("alice"), func(t *wantedToken, v value) (err error) {
		t.User, err = v.word()
		return err
	}},
	{"role", "What it is good for.", oneOf(string(service.Viewer), string(service.User), string(service.Operator)), func(t *wantedToken, v value) error {
		word, err := v.word()
		t.Role = service.Role(word)
		return err
	}},
	{"note", "What it is for, for people.", text("laptop"), func(t *wantedToken, v value) (err error) {
		t.Note, err = v.word()
		return err
	}},
	{
		"expires", "From when on it is worthless: a time, or a length of time from now on, such as 30d; never if it is not given.", text("30d"),
		func(t *wantedToken, v value) (err error) {
			if t.Expires, err = v.instant(down); err == nil {
				return nil
			}
			if t.lasts, err = v.length(1); err != nil {
				return fmt.Errorf("%s; want a length of time such as 30d, or a time in RFC 3339 with a zone", v.short())
			}
			return nil
		},
	},
	{"sites", "The only sites that it lets see and use; all that who makes it may use, if they are not given.", listOf(text("cm5")), func(t *wantedToken, v value) error {
		names, err := v.texts()
		if err == nil && len(names) == 0 {
			return errors.New("an empty list; want the names of some sites, or leave it out")
		}
		t.Sites = service.NewSiteSet(names)
		return err
	}},
	{"scopes", "What it is good for within its role; all that the token is good for with which it is made, if they are not given.", listOf(scopeSchema), func(t *wantedToken, v value) (err error) {
		t.Scopes, err = scopesOf(v)
		return err
	}},
}

var (
	scopeNames, _ = token.ScopeNames()
	scopeSchema   = oneOf(scopeNames...)
)

func scopesOf(v value) (token.Scopes, error) {
	names, err := v.texts()
	if err == nil && len(names) == 0 {
		return 0, errors.New("an empty list; want the names of some scopes, or leave it out")
	}
	if err != nil {
		return 0, err
	}
	set, err := token.NewScopes(names)
	if e, is := errors.AsType[*berth.Error](err); is {
		err = errors.New(e.Msg)
	}
	return set, err
}

// giveable returns the scopes for something that who asks makes: those that are wanted, or if none are, all that the token
// is good for with which they ask. The error is of code Invalid for others.
func (c *call) giveable(wanted token.Scopes) (token.Scopes, error) {
	held := c.token.Scopes
	switch {
	case wanted.All():
		return held, nil
	case !held.Has(wanted):
		return 0, berth.Errorf(berth.Invalid, "scopes", "%s; the token with which you ask is for %s alone", wanted, held)
	}
	return wanted, nil
}

// knownSites returns the error about a site that who asks may not use.
func (c *call) knownSites(wanted service.SiteSet) error {
	list, err := c.Sites(c.r.Context(), c.by)
	if err != nil {
		return err
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	for _, name := range wanted.Names() {
		if !slices.Contains(names, name) {
			return berth.Errorf(berth.Invalid, "sites", "%.64q; want some of %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

func (c *call) addToken() error {
	wanted := wantedToken{Wanted: token.Wanted{Role: service.User}}
	if _, err := read(c, tokenBody, &wanted); err != nil {
		return err
	}
	if err := c.knownSites(wanted.Sites); err != nil {
		return err
	}
	if _, is := c.tokens.Account(wanted.User); is {
		return berth.Errorf(berth.Invalid, "user", "%s is a service account; berth service-account token makes its tokens", wanted.User)
	}
	var err error
	if wanted.Scopes, err = c.giveable(wanted.Scopes); err != nil {
		return err
	}
	now := c.Now()
	if wanted.lasts > 0 {
		wanted.Expires = now.Add(wanted.lasts)
	}
	wanted.Sites = wanted.Sites.And(c.by.Sites)
	secret, e, err := c.tokens.Add(wanted.Wanted, now)
	if err != nil {
		return err
	}
	c.log.Info("token made", "by", c.by.User, "id", e.ID, "user", e.User, "role", e.Role, "scopes", e.Scopes.String())
	f := tokenForm(&e)
	f.Secret = secret
	return c.answer(http.StatusCreated, &f)
}

func tokenForm(e *token.Entry) form.Token {
	f := form.Token{ID: e.ID, User: e.User, Role: string(e.Role), Note: e.Note, Created: form.TimeOf(e.Created), Sites: e.Sites.Names(), Scopes: e.Scopes.Names()}
	if e.Expires != 0 {
		f.Expires = form.TimeOf(e.Expires)
	}
	return f
}

// administers reports whether who asks may see and revoke a token: an operator of some
// sites has to do with tokens for these alone.
func (c *call) administers(e *token.Entry) bool {
	return c.by.Sites.All() || !e.Sites.All() && e.Sites.And(c.by.Sites) == e.Sites
}

func (c *call) listTokens() error {
	f := form.Tokens{Tokens: []form.Token{}}
	for _, e := range c.tokens.List() {
		if c.administers(&e) {
			f.Tokens = append(f.Tokens, tokenForm(&e))
		}
	}
	return c.answer(http.StatusOK, &f)
}

// administered returns the id of the token of the path. The error is of code NotFound if it is one with which who asks has nothing
// to do.
func (c *call) administered() (id string, err error) {
	id = c.r.PathValue("id")
	if slices.ContainsFunc(c.tokens.List(), func(e token.Entry) bool { return e.ID == id && !c.administers(&e) }) {
		return id, berth.Errorf(berth.NotFound, "id", "no token %q", id)
	}
	return id, nil
}

var tokenChange = body[token.Scopes]{
	{"scopes", "What it is good for within its role from now on.", listOf(scopeSchema), func(s *token.Scopes, v value) (err error) {
		*s, err = scopesOf(v)
		return err
	}},
}

// changeToken has a token be good for other scopes. They may not be more than those of the token with which that is asked.
func (c *call) changeToken() error {
	var wanted token.Scopes
	if _, err := read(c, tokenChange, &wanted); err != nil {
		return err
	}
	if wanted.All() {
		return berth.Errorf(berth.Invalid, "scopes", "missing; want the names of some scopes")
	}
	id, err := c.administered()
	if err != nil {
		return err
	}
	if wanted, err = c.giveable(wanted); err != nil {
		return err
	}
	e, err := c.tokens.ChangeScopes(id, wanted)
	if err != nil {
		return err
	}
	c.log.Info("scopes of a token changed", "by", c.by.User, "id", id, "scopes", e.Scopes.String())
	f := tokenForm(&e)
	return c.answer(http.StatusOK, &f)
}

func (c *call) revokeToken() error {
	id, err := c.administered()
	if err != nil {
		return err
	}
	if err := c.tokens.Revoke(id); err != nil {
		return err
	}
	c.log.Info("token revoked", "by", c.by.User, "id", id)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
