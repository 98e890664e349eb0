// Package identity says who callers are from what the machine and the site know of them, so that
// they carry no token: the peer of a Unix socket, a credential of munge, a JSON web token of Slurm.
// It maps accounts to roles. It keeps no secrets, and knows no endpoints and no reservations.
package identity

import (
	"context"
	"net/http"
	"slices"
	"strings"

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
}

// Ways says which ways of identity a service takes, and who may do what. A nil *Ways takes none.
type Ways struct {
	Roles    Roles
	Accounts *Accounts
	// Munge takes credentials of munge; nil takes none.
	Munge *Credentials
	// JWT takes JSON web tokens of Slurm; nil takes none.
	JWT *Tokens
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
	case w.JWT != nil && strings.EqualFold(scheme, "Bearer") && strings.Count(value, ".") == 2:
		user, expires, err := w.JWT.check(value, now)
		if err != nil {
			return Caller{}, true, err
		}
		account, err := w.Accounts.ByName(r.Context(), user)
		c, err := w.caller(account, SlurmJWT, err)
		c.Expires = expires
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
	for i := range r.Rules {
		rule := &r.Rules[i]
		if slices.Contains(rule.Users, a.Name) || slices.ContainsFunc(rule.Groups, func(g string) bool { return slices.Contains(a.Groups, g) }) {
			return rule.Role
		}
	}
	return r.Default
}
