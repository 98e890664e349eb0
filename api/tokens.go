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

// answerMe answers who asks.
func (c *call) answerMe(status int) error {
	me := form.Me{User: c.by.User, Role: string(c.by.Role), Way: string(c.caller.Way), Sites: c.by.Sites.Names()}
	if c.token.Expires != 0 {
		me.Expires = form.TimeOf(c.token.Expires)
	}
	return c.answer(status, me)
}

// wantedToken is a token to be made, which is good until a time or for a length of time.
type wantedToken struct {
	token.Wanted
	lasts berth.Duration
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
	now := c.Now()
	if wanted.lasts > 0 {
		wanted.Expires = now.Add(wanted.lasts)
	}
	wanted.Sites = wanted.Sites.And(c.by.Sites)
	secret, e, err := c.tokens.Add(wanted.Wanted, now)
	if err != nil {
		return err
	}
	c.log.Info("token made", "by", c.by.User, "id", e.ID, "user", e.User, "role", e.Role)
	f := tokenForm(&e)
	f.Secret = secret
	return c.answer(http.StatusCreated, &f)
}

func tokenForm(e *token.Entry) form.Token {
	f := form.Token{ID: e.ID, User: e.User, Role: string(e.Role), Note: e.Note, Created: form.TimeOf(e.Created), Sites: e.Sites.Names()}
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

func (c *call) revokeToken() error {
	id := c.r.PathValue("id")
	if at := slices.IndexFunc(c.tokens.List(), func(e token.Entry) bool { return e.ID == id && !c.administers(&e) }); at >= 0 {
		return berth.Errorf(berth.NotFound, "id", "no token %q", id)
	}
	if err := c.tokens.Revoke(id); err != nil {
		return err
	}
	c.log.Info("token revoked", "by", c.by.User, "id", id)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
