package api

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/service"
)

var accountBody = body[token.Account]{
	{"name", "What it is called; it begins with svc-.", text("svc-ci"), func(a *token.Account, v value) (err error) {
		a.Name, err = v.word()
		return err
	}},
	{"owner", "Whose it is: yours, or for operators that of any user. It may do no more than they may.", text("alice"), func(a *token.Account, v value) (err error) {
		a.Owner, err = v.word()
		return err
	}},
	{"role", "What it may do at most; user if it is not given, and no more than who makes it.", oneOf(string(service.Viewer), string(service.User), string(service.Operator)), func(a *token.Account, v value) error {
		word, err := v.word()
		a.Role = service.Role(word)
		return err
	}},
	{"note", "What it is for, for people.", text("builds"), func(a *token.Account, v value) (err error) {
		a.Note, err = v.word()
		return err
	}},
	{"sites", "The only sites that it sees and uses; all that who makes it may use, if they are not given.", listOf(text("cm5")), func(a *token.Account, v value) error {
		names, err := v.texts()
		if err == nil && len(names) == 0 {
			return errors.New("an empty list; want the names of some sites, or leave it out")
		}
		a.Sites = service.NewSiteSet(names)
		return err
	}},
}

// addAccount makes a service account.
func (c *call) addAccount() error {
	a := token.Account{Role: service.User, Owner: c.by.User}
	if _, err := read(c, accountBody, &a); err != nil {
		return err
	}
	switch {
	case c.token.OfAccount:
		return errAccount("makes none of its own")
	case a.Owner != c.by.User && !c.by.Can(service.Operator):
		return berth.Errorf(berth.Denied, "owner", "%.70q; only an operator makes service accounts of others", a.Owner)
	case !c.by.Can(a.Role):
		return berth.Errorf(berth.Denied, "role", "%.40q; a service account may do no more than who makes it, with the role %s", a.Role, c.by.Role)
	}
	if err := c.knownSites(a.Sites); err != nil {
		return err
	}
	if err := c.freeName(a.Name); err != nil {
		return err
	}
	a.Sites = a.Sites.And(c.by.Sites)
	a, err := c.tokens.AddAccount(a, c.by, c.Now())
	if err != nil {
		return err
	}
	c.log.Info("service account made", "by", c.by.User, "name", a.Name, "owner", a.Owner, "role", a.Role)
	f := accountForm(&a)
	return c.answer(http.StatusCreated, &f)
}

// freeName returns the error about the name of a user, which a service account would act as: with the code Denied if the machine has an account of
// it, after which an operator alone names one, and Conflict if such a user has reservations.
func (c *call) freeName(name string) error {
	if !strings.HasPrefix(name, token.AccountPrefix) { // and is refused for that
		return nil
	}
	if !c.by.Can(service.Operator) {
		is, err := c.ways.OnMachine(c.r.Context(), name)
		if err != nil {
			return err
		}
		if is {
			return berth.Errorf(berth.Denied, "name", "%s is an account of the machine; an operator makes a service account of that name, or take another", name)
		}
	}
	if c.tokens.WasAccount(name) { // and the reservations are of that
		return nil
	}
	users, err := c.Users(c.r.Context(), service.Principal{User: c.by.User, Role: service.Operator})
	if err != nil {
		return err
	}
	if slices.Contains(users, name) {
		return berth.Errorf(berth.Conflict, "name", "there is a user %s already; take another name", name)
	}
	return nil
}

// errAccount is the error about what a service account does not do.
func errAccount(what string) error {
	return berth.Errorf(berth.Denied, "user", "a service account %s; its owner does that", what)
}

func accountForm(a *token.Account) form.ServiceAccount {
	return form.ServiceAccount{
		Name: a.Name, Owner: a.Owner, Role: string(a.Role), Note: a.Note, Created: form.TimeOf(a.Created), Sites: a.Sites.Names(), Tokens: []form.Token{},
	}
}

// hasAccount reports whether who asks may see and end a service account: its owner, and operators of all its sites.
func (c *call) hasAccount(a *token.Account) bool {
	return a.Owner == c.by.User && !c.token.OfAccount || c.by.Can(service.Operator) && (c.by.Sites.All() || !a.Sites.All() && a.Sites.And(c.by.Sites) == a.Sites)
}

// ownAccount returns the service account of the path. The error is of code NotFound if there is none, or one with which who asks has
// nothing to do.
func (c *call) ownAccount() (token.Account, error) {
	name := c.r.PathValue("name")
	a, known := c.tokens.Account(name)
	if !known || !c.hasAccount(&a) {
		return a, token.NoAccount(name)
	}
	return a, nil
}

func (c *call) listAccounts() error {
	f := form.ServiceAccounts{Accounts: []form.ServiceAccount{}}
	for _, a := range c.tokens.Accounts() {
		if !c.hasAccount(&a) {
			continue
		}
		one := accountForm(&a)
		for _, e := range c.tokens.List() {
			if e.User == a.Name {
				one.Tokens = append(one.Tokens, tokenForm(&e))
			}
		}
		f.Accounts = append(f.Accounts, one)
	}
	return c.answer(http.StatusOK, &f)
}

func (c *call) removeAccount() error {
	a, err := c.ownAccount()
	if err != nil {
		return err
	}
	if err := c.tokens.RemoveAccount(a.Name, c.Now()); err != nil {
		return err
	}
	c.log.Info("service account removed", "by", c.by.User, "name", a.Name)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}

// accountTokenBody is tokenBody without whose it is and the role, which the account has, and with the token that it renews.
var accountTokenBody = append(slices.Clone(tokenBody[2:]), body[wantedToken]{
	{"renews", "The id of a token of the account that this one takes over from, with its note if none is given, its role, sites and scopes. That one expires after the overlap, if it does not before.", text("0f3a9c21b8d4"), func(t *wantedToken, v value) (err error) {
		t.Renews, err = v.word()
		return err
	}},
	{"overlap", "For how long the token that is renewed is good from now on: a length of time; a day if it is not given, and 0 ends it at once.", text("1d"), func(t *wantedToken, v value) (err error) {
		t.overlaps = true
		t.Overlap, err = v.length(0)
		return err
	}},
}...)

// renewing has a token that is to be made take over from the one that it renews, if there is one.
func (c *call) renewing(a *token.Account, t *wantedToken) error {
	if t.Renews == "" {
		if t.overlaps {
			return berth.Errorf(berth.Invalid, "overlap", "no token is renewed; name one by renews, or leave overlap out")
		}
		return nil
	}
	was, err := c.tokens.AccountToken(a.Name, t.Renews)
	switch {
	case err != nil:
		return berth.Errorf(berth.Invalid, "renews", "no token %.70q of %s", t.Renews, a.Name)
	case !t.Scopes.All():
		return berth.Errorf(berth.Invalid, "scopes", "a token has those of the one that it renews; leave them out, or make one that renews none")
	case !t.Sites.All():
		return berth.Errorf(berth.Invalid, "sites", "a token has those of the one that it renews; leave them out, or make one that renews none")
	}
	if !t.overlaps {
		t.Overlap = token.Overlap
	}
	t.Note, t.Role, t.Sites, t.Scopes = cmp.Or(t.Note, was.Note), was.Role, was.Sites, was.Scopes
	return nil
}

func (c *call) addAccountToken() error {
	a, err := c.ownAccount()
	if err != nil {
		return err
	}
	var wanted wantedToken
	if _, err := read(c, accountTokenBody, &wanted); err != nil {
		return err
	}
	if err := c.renewing(&a, &wanted); err != nil {
		return err
	}
	if wanted.Scopes, err = c.giveable(wanted.Scopes); err != nil {
		return err
	}
	if held := wanted.Scopes; !held.All() {
		wanted.Scopes = held & token.AccountScopes
		if wanted.Scopes == 0 {
			return berth.Errorf(berth.Invalid, "scopes", "%s; a token of a service account is for some of %s", held, token.AccountScopes)
		}
	}
	if wanted.Renews == "" {
		if err := c.knownSites(wanted.Sites); err != nil {
			return err
		}
	}
	now := c.Now()
	if wanted.lasts > 0 {
		wanted.Expires = now.Add(wanted.lasts)
	}
	wanted.Sites = wanted.Sites.And(c.by.Sites)
	if wanted.Role == "" || !c.by.Can(wanted.Role) {
		wanted.Role = c.by.Role
	}
	secret, e, err := c.tokens.AddAccountToken(a.Name, wanted.Wanted, now)
	if err != nil {
		return err
	}
	c.log.Info("token made", "by", c.by.User, "id", e.ID, "user", e.User, "role", e.Role, "scopes", e.Scopes.String(), "renews", wanted.Renews)
	f := tokenForm(&e)
	f.Secret = secret
	return c.answer(http.StatusCreated, &f)
}

func (c *call) revokeAccountToken() error {
	a, err := c.ownAccount()
	if err != nil {
		return err
	}
	e, err := c.tokens.AccountToken(a.Name, c.r.PathValue("id"))
	if err != nil {
		return err
	}
	if err := c.tokens.Revoke(e.ID); err != nil {
		return err
	}
	c.log.Info("token revoked", "by", c.by.User, "id", e.ID)
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
