// Package identity says who callers are from what the machine and the site know of them, so that
// they carry no token of Berth: the peer of a Unix socket, a credential of munge, a JSON web token of Slurm
// or of an OpenID provider. It maps accounts and groups to roles. It keeps no secrets of users, and knows no
// endpoints and no reservations.
package identity

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	jose "github.com/go-jose/go-jose/v4"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// Way is how a caller was identified.
type Way string

// The ways of identity without a token of Berth.
const (
	Socket   Way = "socket"
	Munge    Way = "munge"
	SlurmJWT Way = "slurm-jwt"
	OIDC     Way = "oidc"
)

// Caller is who asks.
type Caller struct {
	User string
	Role service.Role
	Way  Way
	// Expires is from when on the credential is worthless; 0 is never.
	Expires berth.Time
	// Body is the SHA-256 of the body that the credential is for; BodyBound says that there is one.
	Body      [32]byte
	BodyBound bool
	// Groups are those at the OpenID provider to which roles and projects refer, ordered; nil in other ways.
	Groups []string
}

// Ways says which ways of identity a service takes, and who may do what. A nil *Ways takes none.
type Ways struct {
	Roles    Roles
	Accounts *Accounts
	// Munge takes credentials of munge; nil takes none.
	Munge *Credentials
	// JWT takes JSON web tokens of Slurm; nil takes none.
	JWT *Tokens
	// OIDC takes tokens of an OpenID provider; nil takes none.
	OIDC *Provider
}

// Of returns who asks, and false if the request has no credential of any way that is taken. The error
// is of code Denied for a credential that is no good and for users without an account or a role, and
// of code Unavailable if that cannot be known now. Headers with tokens of Berth are not looked at.
func (w *Ways) Of(r *http.Request, now berth.Time) (Caller, bool, error) {
	if w == nil {
		return Caller{}, false, nil
	}
	header := r.Header.Get("Authorization")
	scheme, value, _ := strings.Cut(header, " ")
	switch {
	case header == "":
		uid, is := peerOf(r.Context())
		if !is {
			return Caller{}, false, nil
		}
		account, err := w.Accounts.ByID(r.Context(), uid)
		c, err := w.caller(account, Socket, err)
		return c, true, err
	case w.Munge != nil && strings.EqualFold(scheme, mungeScheme):
		sealed, err := w.Munge.open(r.Context(), value, r.Method, r.URL.RequestURI())
		if err != nil {
			return Caller{}, true, err
		}
		account, err := w.Accounts.ByID(r.Context(), sealed.uid)
		c, err := w.caller(account, Munge, err)
		c.Body, c.BodyBound = sealed.body, sealed.bound
		return c, true, err
	case !strings.EqualFold(scheme, "Bearer") || strings.Count(value, ".") != 2:
	case w.JWT != nil && (w.OIDC == nil || !isProviders(value)):
		user, expires, err := w.JWT.check(value, now)
		if err != nil {
			return Caller{}, true, err
		}
		account, err := w.Accounts.ByName(r.Context(), user)
		c, err := w.caller(account, SlurmJWT, err)
		c.Expires = expires
		return c, true, err
	case w.OIDC != nil:
		c, err := w.OIDC.bearer(r.Context(), value, now)
		return c, true, err
	}
	return Caller{}, false, nil
}

// Named returns a user who was identified by the machine before, as the roles are now.
func (w *Ways) Named(ctx context.Context, user string) (Caller, error) {
	if w == nil {
		return Caller{}, berth.Errorf(berth.Denied, "Authorization", "the service identifies users by tokens alone now")
	}
	account, err := w.Accounts.ByName(ctx, user)
	return w.caller(account, Socket, err)
}

// OnMachine reports whether there is an account of a name on the machine, whatever its role. The error is of code Unavailable if that
// cannot be known now.
func (w *Ways) OnMachine(ctx context.Context, name string) (bool, error) {
	if w == nil || w.Accounts == nil {
		return false, nil
	}
	_, err := w.Accounts.ByName(ctx, name)
	if e, is := errors.AsType[*berth.Error](err); is && e.Code == berth.Denied {
		return false, nil
	}
	return err == nil, err
}

// GroupsOf returns the groups of an account of the machine, none if there is no such account. The error is of code Unavailable if that
// cannot be known now.
func (w *Ways) GroupsOf(ctx context.Context, name string) ([]string, error) {
	if w == nil || w.Accounts == nil {
		return nil, nil
	}
	account, err := w.Accounts.ByName(ctx, name)
	if e, is := errors.AsType[*berth.Error](err); is && e.Code == berth.Denied {
		return nil, nil
	}
	return account.Groups, err
}

// Member returns a user who was identified by an OpenID provider before, in those groups, as the roles are now.
func (w *Ways) Member(user string, groups []string) (Caller, error) {
	if w == nil || w.OIDC == nil {
		return Caller{}, berth.Errorf(berth.Denied, "Authorization", "the service knows no users of an OpenID provider now")
	}
	return w.OIDC.named(user, groups)
}

// isProviders reports whether a token claims to be signed with a key that its maker alone has, as providers sign. Slurm signs with
// one that both sides have.
func isProviders(text string) bool {
	head, is := headOf(text)
	return is && slices.Contains(asymmetric, jose.SignatureAlgorithm(head.Algorithm))
}

// Challenge returns what a caller without a credential can be asked for beside a token, as a value of
// the header WWW-Authenticate; "" is nothing.
func (w *Ways) Challenge() string {
	if w == nil || w.Munge == nil {
		return ""
	}
	return mungeScheme + ` realm="` + w.Munge.realm + `"`
}

func (w *Ways) caller(a Account, way Way, err error) (Caller, error) {
	if err != nil {
		return Caller{}, err
	}
	role := w.Roles.of(&a)
	if role == "" {
		return Caller{}, berth.Errorf(berth.Denied, "user", "%s has no role here; an operator gives one by the key roles of the service's configuration", a.Name)
	}
	return Caller{User: a.Name, Role: role, Way: way}, nil
}

// Rule gives some accounts a role. The role "" refuses them.
type Rule struct {
	Role   service.Role
	Users  []string
	Groups []string
}

// Roles says which role an account has: that of the first rule that names the user or one of their
// groups, else Default, where "" refuses. Root and the account of the service are operators always:
// they can read its data, with the operator's token, anyway.
type Roles struct {
	Rules   []Rule
	Default service.Role
	Self    uint32 // the account of the service
}

func (r *Roles) of(a *Account) service.Role {
	if a.UID == 0 || a.UID == r.Self {
		return service.Operator
	}
	return r.match(a.Name, a.Groups)
}

// match returns the role of the first rule that names a user or one of some groups, else the default.
func (r *Roles) match(user string, groups []string) service.Role {
	for i := range r.Rules {
		rule := &r.Rules[i]
		if slices.Contains(rule.Users, user) || slices.ContainsFunc(rule.Groups, func(g string) bool { return slices.Contains(groups, g) }) {
			return rule.Role
		}
	}
	return r.Default
}
