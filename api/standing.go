package api

import (
	"context"
	"errors"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/service"
)

// standings says what users may do at a time, whichever way they are known.
type standings struct {
	tokens *token.Store
	ways   *identity.Ways // nil is tokens alone
	access []service.Access
	now    berth.Time
}

func (a *api) standings() standings { return standings{a.tokens, a.ways, a.access, a.Now()} }

// of returns what a user may do, if that is enough as their tokens say, else by their account of the machine or of the OpenID provider too;
// of several roles the highest counts, with its sites. The error is of code Denied if they may do nothing.
func (s standings) of(ctx context.Context, user string, enough service.Role) (service.Principal, error) {
	by := service.Principal{User: user}
	take := func(p service.Principal) {
		p.Sites = p.Sites.And(service.SitesOf(s.access, p))
		switch {
		case by.Role == "" || !by.Can(p.Role):
			by = p
		case p.Can(by.Role): // the same
			by.Sites = by.Sites.Or(p.Sites)
		}
	}
	for _, e := range s.tokens.Of(user, s.now) {
		take(e.Principal())
	}
	if s.ways != nil && (by.Role == "" || !by.Can(enough)) {
		p, err := remembered(ctx, s.ways, s.tokens, user, s.now)
		switch {
		case err == nil && p.Role != "":
			take(p)
		case by.Role == "" && !denied(err):
			return by, err
		}
	}
	if by.Role == "" {
		return by, berth.Errorf(berth.Denied, "role", "%s has no role here", user)
	}
	return by, nil
}

func denied(err error) bool {
	e, is := errors.AsType[*berth.Error](err)
	return err == nil || is && e.Code == berth.Denied
}

// narrowed returns who shows a token: of a service account with no more than the account, and its owner at the time, may do. The error
// is of code Denied if that is nothing, or if a person comes under the name of a service account.
func (s standings) narrowed(ctx context.Context, e *token.Entry) (service.Principal, error) {
	p := e.Principal()
	account, is := s.tokens.Account(e.User)
	switch {
	case !is && !e.OfAccount:
		return p, nil
	case !is:
		return p, berth.Errorf(berth.Denied, "Authorization", "the service account %s was removed", e.User)
	case !e.OfAccount:
		return p, notAPerson(e.User)
	}
	owner, err := s.of(ctx, account.Owner, account.Role)
	if denied(err) && err != nil {
		return p, berth.Errorf(berth.Denied, "owner", "%s is of %s, who has no role here any more; an operator removes it, or gives %s a role again", e.User, account.Owner, account.Owner)
	}
	if err != nil {
		return p, err
	}
	for _, role := range []service.Role{account.Role, owner.Role} {
		if !(service.Principal{Role: role}).Can(p.Role) {
			p.Role = role
		}
	}
	p.Sites = p.Sites.And(account.Sites).And(owner.Sites)
	return p, nil
}

// notAPerson is the error about a login under the name of a service account.
func notAPerson(name string) error {
	return berth.Errorf(berth.Denied, "user", "%s is a service account, as which no person logs in; programs show one of its tokens", name)
}
