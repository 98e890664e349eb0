package identity_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/api/identity/openidtest"
	"github.com/berth-hpc/berth/service"
)

// members are at every provider of these tests.
var members = []openidtest.User{{Name: "alice", Groups: []string{"hpc", "chess"}}, {Name: "olga", Groups: []string{"hpc", "admins"}}, {Name: "eve"}, {Name: "root", Groups: []string{"admins"}}, {Name: "mel", Groups: []string{"hpc"}, Unverified: true}}

func providerOf(t *testing.T, p *openidtest.Provider, change func(*identity.ProviderOptions)) *identity.Ways {
	t.Helper()
	o := identity.ProviderOptions{
		Issuer: p.URL, Client: openidtest.Public, Name: "Test ID",
		Roles: identity.Roles{Rules: []identity.Rule{{Role: service.Operator, Groups: []string{"admins"}}, {Role: service.User, Groups: []string{"hpc"}}}},
	}
	if change != nil {
		change(&o)
	}
	provider, err := identity.NewProvider(o)
	if err != nil {
		t.Fatal(err)
	}
	provider.SetGap(0)
	return &identity.Ways{OIDC: provider}
}

// show shows a token at a time.
func show(ways *identity.Ways, token string, now berth.Time) (identity.Caller, error) {
	r, err := http.NewRequest(http.MethodGet, "http://localhost/v1/me", http.NoBody)
	if err != nil {
		return identity.Caller{}, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	c, is, err := ways.Of(r, now)
	if !is && err == nil {
		err = errors.New("not looked at")
	}
	return c, err
}

func now() berth.Time { return berth.Time(time.Now().Unix()) }

// wantDenied wants an error about the token with the words, and nothing of the token in it.
func wantDenied(t *testing.T, what string, err error, token, words string) {
	t.Helper()
	var e *berth.Error
	if !errors.As(err, &e) || e.Code != berth.Denied || e.Field != "Authorization" || !strings.Contains(e.Msg, words) || token != "" && strings.Contains(e.Msg, token) {
		t.Errorf("%s: %v, want %q", what, err, words)
	}
}

func TestTokensOfAProvider(t *testing.T) {
	p := openidtest.Start(t, openidtest.Options{}, members...)
	other := openidtest.Start(t, openidtest.Options{}, members...)
	ways := providerOf(t, p, nil)
	for user, role := range map[string]service.Role{"alice": service.User, "olga": service.Operator} {
		who, err := show(ways, p.Sign(p.Claims(user)), now())
		if err != nil || who.User != user || who.Role != role || who.Way != identity.OIDC || who.Expires < now()+300 {
			t.Errorf("%+v %v, want the role %s", who, err, role)
		}
		if !slices.IsSorted(who.Groups) || slices.Contains(who.Groups, "chess") {
			t.Errorf("the groups are %v, want those of the roles", who.Groups)
		}
	}
	with := func(name string, value any) map[string]any {
		c := p.Claims("alice")
		c[name] = value
		return c
	}
	without := func(name string) map[string]any {
		c := p.Claims("alice")
		delete(c, name)
		return c
	}
	for what, token := range map[string]string{"one audience as a text": p.Sign(with("aud", openidtest.Public)), "expired within the skew": p.Sign(with("exp", now()-30)), "made a little ahead": p.Sign(with("iat", now()+30))} {
		if _, err := show(ways, token, now()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	good := p.Sign(p.Claims("alice"))
	parts := strings.Split(good, ".")
	head := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for _, row := range []struct{ what, token, words string }{
		{"another audience", p.Sign(with("aud", []string{openidtest.Foreign})), "another audience"},
		{"no audience", p.Sign(without("aud")), "another audience"},
		{"expired", p.Sign(with("exp", now()-61)), "has expired"},
		{"without an end", p.Sign(without("exp")), "does not say when it expires"},
		{"not good yet", p.Sign(with("nbf", now()+90)), "is good from"},
		{"made in the future", p.Sign(with("iat", now()+90)), "in the future"},
		{"another issuer, by its key", other.Sign(other.Claims("alice")), "no key of the provider"},
		{"another issuer, by our key", p.Sign(with("iss", other.URL)), "another issuer"},
		{"no signature", head(`{"alg":"none"}`) + "." + parts[1] + ".", `is signed by "none"`},
		{"no signature, in another spelling", head(`{"alg":"NONE"}`) + "." + parts[1] + ".", "is signed by"},
		{"the head of none over a good one", head(`{"alg":"none"}`) + "." + parts[1] + "." + parts[2], "is signed by"},
		{"a symmetric key", openidtest.SignWith(jose.HS256, p.KeyID(), []byte("0123456789abcdef0123456789abcdef"), p.Claims("alice")), `is signed by "HS256"`},
		{"a key of one's own", openidtest.SignWith(jose.RS256, "mine", key, p.Claims("alice")), "no key of the provider"},
		{"a key of one's own under the name of the provider's", openidtest.SignWith(jose.RS256, p.KeyID(), key, p.Claims("alice")), "no key of the provider"},
		{"other claims", parts[0] + "." + strings.Split(p.Sign(p.Claims("olga")), ".")[1] + "." + parts[2], "no key of the provider"},
		{"no token", "a.b.c", "is no JSON web token"},
		{"a huge one", p.Sign(with("x", strings.Repeat("x", 20_000))), "is longer than"},
		{"a token for logging out", p.Sign(with("events", map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}})), "logging out"},
		{"no name", p.Sign(without("preferred_username")), "names no user"},
		{"a name that is none", p.Sign(with("preferred_username", 7)), "names no user"},
	} {
		_, err := show(ways, row.token, now())
		wantDenied(t, row.what, err, row.token, row.words)
	}
	for user, words := range map[string]string{"eve": "has no role here", "root": "root is no user", "a b": "is not a valid user name"} {
		_, err := show(ways, p.Sign(p.Claims(user)), now())
		if e, is := errors.AsType[*berth.Error](err); !is || e.Code != berth.Denied || e.Field != "user" || !strings.Contains(e.Msg, words) {
			t.Errorf("%s: %v, want %q", user, err, words)
		}
	}
}

// Names and groups come from the claims that are configured, also inside of others, and only addresses that the
// provider has verified are names.
func TestClaimsOfAProvider(t *testing.T) {
	p := openidtest.Start(t, openidtest.Options{}, members...)
	ways := providerOf(t, p, func(o *identity.ProviderOptions) {
		o.User, o.Groups, o.Audiences = "email", "realm_access.roles", []string{"hpc-api"}
	})
	claims := func(verified any) map[string]any {
		return map[string]any{
			"iss": p.URL, "aud": "hpc-api", "sub": "1", "exp": now() + 60, "email": "alice@example.org", "email_verified": verified,
			"groups": []string{"admins"}, "realm_access": map[string]any{"roles": []any{"hpc", 7}},
		}
	}
	if who, err := show(ways, p.Sign(claims(true)), now()); err != nil || who.User != "alice@example.org" || who.Role != service.User {
		t.Errorf("%+v %v", who, err)
	}
	for _, verified := range []any{false, "true", nil} {
		_, err := show(ways, p.Sign(claims(verified)), now())
		wantDenied(t, fmt.Sprint(verified), err, "", "has not verified")
	}
}

// A key is good from when the provider publishes it until it does not any more.
func TestKeysOfAProviderChange(t *testing.T) {
	p := openidtest.Start(t, openidtest.Options{}, members...)
	ways := providerOf(t, p, nil)
	old := p.Sign(p.Claims("alice"))
	if _, err := show(ways, old, now()); err != nil {
		t.Fatal(err)
	}
	p.Rotate(t)
	for what, token := range map[string]string{"the new key": p.Sign(p.Claims("alice")), "the one before": old} {
		if _, err := show(ways, token, now()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	p.Withdraw()
	if err := ways.OIDC.Ask(t.Context()); err != nil { // as Watch does
		t.Fatal(err)
	}
	_, err := show(ways, old, now())
	wantDenied(t, "a key that is gone", err, old, "no key of the provider")
}

// Tokens that name unknown keys have the provider asked at a bounded rate.
func TestUnknownKeysCauseFewFetches(t *testing.T) {
	p := openidtest.Start(t, openidtest.Options{}, members...)
	ways := providerOf(t, p, nil)
	ways.OIDC.SetGap(time.Hour)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 50 {
		token := openidtest.SignWith(jose.RS256, fmt.Sprint(i), key, p.Claims("alice"))
		all.Go(func() {
			_, err := show(ways, token, now())
			wantDenied(t, "an unknown key", err, token, "no key of the provider")
		})
	}
	all.Wait()
	if n := p.Fetches(); n != 1 {
		t.Errorf("the keys were fetched %d times, want once", n)
	}
}

// A provider that is away, or hangs, holds up nothing that is known: tokens by known keys are good, and the others are
// answered within a bounded time, as what may be tried again.
func TestAProviderThatIsAway(t *testing.T) {
	for what, state := range map[string]openidtest.State{"down": openidtest.Down, "hanging": openidtest.Hanging} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := openidtest.Start(t, openidtest.Options{}, members...)
			p.Set(state)
			ways := providerOf(t, p, nil)
			good := p.Sign(p.Claims("alice"))
			unavailable := func(token string) {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/v1/me", http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer "+token)
				_, _, err = ways.Of(r, now())
				if e, is := errors.AsType[*berth.Error](err); !is || e.Code != berth.Unavailable || !strings.Contains(e.Msg, "Test ID does not answer") || ctx.Err() != nil {
					t.Errorf("%v, want that the provider does not answer", err)
				}
			}
			unavailable(good)
			if ways.OIDC.Reachable() == nil {
				t.Error("it counts as reachable")
			}
			p.Set(openidtest.Up)
			if _, err := show(ways, good, now()); err != nil || ways.OIDC.Reachable() != nil {
				t.Fatalf("it is back: %v %v", err, ways.OIDC.Reachable())
			}
			p.Set(state)
			began := time.Now()
			for range 100 {
				if _, err := show(ways, good, now()); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("a known key takes %s", took/100)
			}
			p.Rotate(t)
			unavailable(p.Sign(p.Claims("alice")))
		})
	}
}

// Watch tells when a provider goes and comes.
func TestWatchingAProvider(t *testing.T) {
	p := openidtest.Start(t, openidtest.Options{}, members...)
	p.Set(openidtest.Down)
	ways := providerOf(t, p, nil)
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := make(chan error, 4), make(chan struct{})
	ways.OIDC.SetGap(20 * time.Millisecond)
	go func() {
		defer close(ended)
		ways.OIDC.Watch(ctx, func(err error) { told <- err })
	}()
	if err := <-told; err == nil {
		t.Error("it is said to answer")
	}
	p.Set(openidtest.Up)
	if err := <-told; err != nil {
		t.Error(err)
	}
	cancel()
	<-ended
}

// A browser logs in with a code, PKCE, state and nonce; none of what it keeps is good for another login.
func TestLoggingInAtAProvider(t *testing.T) {
	const redirect = "https://berth.example.org/login/oidc/callback"
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(openidtest.Secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, client := range map[string]struct {
		id, secret string
		bare       bool
	}{"public": {openidtest.Public, "", false}, "with a secret": {openidtest.Confidential, secret, false}, "claims at the endpoint for them": {openidtest.Public, "", true}} {
		t.Run(what, func(t *testing.T) {
			p := openidtest.Start(t, openidtest.Options{Redirects: []string{redirect}, Bare: client.bare}, members...)
			ways := providerOf(t, p, func(o *identity.ProviderOptions) { o.Client, o.SecretFile = client.id, client.secret })
			login := func() (state, code string, a identity.Attempt) {
				t.Helper()
				to, a, err := ways.OIDC.Begin(t.Context(), redirect)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(to, "code_challenge_method=S256") || strings.Contains(to, a.Verifier) {
					t.Errorf("%s: want a challenge, and not what it is made of", to)
				}
				back, err := p.LogIn(http.DefaultClient, to, "alice", openidtest.Password)
				if err != nil {
					t.Fatal(err)
				}
				r, err := http.NewRequest(http.MethodGet, back, http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				return r.FormValue("state"), r.FormValue("code"), a
			}
			state, code, a := login()
			who, err := ways.OIDC.End(t.Context(), redirect, state, code, a, now())
			if err != nil || who.User != "alice" || who.Role != service.User || !slices.Equal(who.Groups, []string{"hpc"}) {
				t.Fatalf("%+v %v", who, err)
			}
			if _, err := ways.OIDC.End(t.Context(), redirect, state, code, a, now()); err == nil {
				t.Error("a code is good twice")
			}
			for what, change := range map[string]func(a *identity.Attempt){
				"another state": func(a *identity.Attempt) { a.State = "x" }, "no state": func(a *identity.Attempt) { a.State = "" },
				"another verifier": func(a *identity.Attempt) { a.Verifier = strings.Repeat("x", 43) }, "another nonce": func(a *identity.Attempt) { a.Nonce = "x" },
			} {
				state, code, a := login()
				change(&a)
				if who, err := ways.OIDC.End(t.Context(), redirect, state, code, a, now()); err == nil {
					t.Errorf("%s: logged in as %s", what, who.User)
				}
			}
			if _, err := ways.OIDC.End(t.Context(), redirect, "", "x", identity.Attempt{}, now()); err == nil {
				t.Error("logged in without having begun")
			}
		})
	}
}

func TestFilesOfAProviderThatCannotBeUsed(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []identity.ProviderOptions{{SecretFile: empty}, {SecretFile: empty + "-not"}, {CAFile: empty}, {CAFile: empty + "-not"}} {
		_, err := identity.NewProvider(o)
		if e, is := errors.AsType[*berth.Error](err); !is || e.Code != berth.Invalid {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
