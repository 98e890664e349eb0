// Package openidtest runs a real OpenID provider for tests, zitadel's, on this machine. It knows nothing of
// what the service makes of its tokens.
package openidtest

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// Clients that every provider has: a public one for browsers and devices, one with a secret, and one of
// another program.
const (
	Public       = "berth"
	Confidential = "berth-web"
	Secret       = "hush"
	Foreign      = "payroll"
)

// Password is that of every user.
const Password = "right"

// User is an account at the provider; their id is their name.
type User struct {
	Name   string
	Groups []string
	// Unverified says that the provider does not know whether the address of mail is theirs.
	Unverified bool
}

// State says how a provider answers.
type State int

// States of a provider.
const (
	Up      State = iota
	Down          // connections are closed without an answer
	Hanging       // nothing is answered until the caller gives up
)

// Provider is a provider that runs.
type Provider struct {
	URL string // its issuer

	op       op.OpenIDProvider
	inner    *storage.Storage
	clients  map[string]*storage.Client
	redirect []string
	bare     bool

	mu      sync.Mutex
	state   State
	users   map[string]User
	key     signing
	keys    []signing // that are published
	fetches int
	lasts   time.Duration
}

// Options says what differs from a usual provider.
type Options struct {
	// Redirects are where browsers may be sent back to.
	Redirects []string
	// Bare has ID tokens without claims about the user, which are at the userinfo endpoint then.
	Bare bool
	// Lasts is how long tokens are good; 0 is an hour.
	Lasts time.Duration
	// Port is where it listens on this machine; 0 is a free one.
	Port int
}

// Start starts a provider that ends with the test.
func Start(t testing.TB, o Options, users ...User) *Provider {
	t.Helper()
	p, end, err := Open(o, users...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	return p
}

// Open starts a provider that ends with end, or with the process.
func Open(o Options, users ...User) (p *Provider, end func(), err error) {
	p = &Provider{users: map[string]User{}, redirect: o.Redirects, bare: o.Bare, lasts: o.Lasts}
	if p.lasts == 0 {
		p.lasts = time.Hour
	}
	for _, u := range users {
		p.users[u.Name] = u
	}
	clients := map[string]*storage.Client{}
	p.clients = clients
	for _, id := range []string{Public, Foreign} {
		clients[id] = storage.NativeClient(id, o.Redirects...)
	}
	clients[Confidential] = storage.WebClient(Confidential, Secret, o.Redirects...)
	p.inner = storage.NewStorageWithClients(accounts{p}, clients)
	if err := p.rotate(); err != nil {
		return nil, nil, err
	}
	server := httptest.NewUnstartedServer(p)
	if o.Port != 0 {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port)))
		if err != nil {
			server.Close()
			return nil, nil, err
		}
		_ = server.Listener.Close() // on which nothing has been accepted
		server.Listener = listener
	}
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	p.URL = "http://localhost:" + port // for a browser another site than 127.0.0.1
	config := &op.Config{
		CryptoKey: sha256.Sum256([]byte("of a test")), CodeMethodS256: true, AuthMethodPost: true, GrantTypeRefreshToken: true,
		DeviceAuthorization: op.DeviceAuthorizationConfig{Lifetime: 5 * time.Minute, PollInterval: time.Second, UserFormPath: "/device", UserCode: op.UserCodeBase20},
	}
	if p.op, err = op.NewProvider(config, &store{p.inner, p}, op.StaticIssuer(p.URL), op.WithAllowInsecure(), op.WithLogger(slog.New(slog.DiscardHandler))); err != nil {
		server.Close()
		return nil, nil, err
	}
	server.Start()
	return p, func() {
		p.Set(Down)
		server.CloseClientConnections()
		server.Close()
	}, nil
}

// Set has the provider answer, or not.
func (p *Provider) Set(s State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = s
}

// SetUser has a user be in these groups from now on.
func (p *Provider) SetUser(u User) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users[u.Name] = u
}

// Rotate has the provider sign with a new key; the ones before are still published.
func (p *Provider) Rotate(t testing.TB) {
	t.Helper()
	if err := p.rotate(); err != nil {
		t.Fatal(err)
	}
}

func (p *Provider) rotate() error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key = signing{rand.Text(), key}
	p.keys = append(p.keys, p.key)
	return nil
}

// Withdraw has the provider publish no key but the one with which it signs.
func (p *Provider) Withdraw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = []signing{p.key}
}

// Fetches returns how often the keys were fetched.
func (p *Provider) Fetches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetches
}

// ServeHTTP answers as the provider, and has a page of its own for logging in.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	state := p.state
	if r.URL.Path == "/keys" && state == Up {
		p.fetches++
	}
	p.mu.Unlock()
	switch {
	case state == Down:
		panic(http.ErrAbortHandler)
	case state == Hanging:
		<-r.Context().Done()
	case r.URL.Path == "/login":
		id := r.FormValue("id")
		if r.FormValue("user") == "" {
			_, _ = fmt.Fprintf(w, `<!doctype html><form method="post"><input name="id" type="hidden" value="%s"><input name="user"><input name="password"><button>Go</button></form>`, html.EscapeString(id))
			return
		}
		if err := p.inner.CheckUsernamePassword(r.FormValue("user"), r.FormValue("password"), id); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		back := op.AuthCallbackURL(p.op)(op.ContextWithIssuer(r.Context(), p.URL), id)
		http.Redirect(w, r, back, http.StatusFound)
	case r.URL.Path == "/device":
		p.device(w, r)
	default:
		p.op.ServeHTTP(w, r)
	}
}

// device is the page on which a user lets a device in by the code that it shows.
func (p *Provider) device(w http.ResponseWriter, r *http.Request) {
	code, name := r.FormValue("user_code"), r.FormValue("user")
	if r.Method != http.MethodPost {
		_, _ = fmt.Fprintf(w, `<!doctype html><form method="post">Code <input name="user_code" value="%s"> user <input name="user"> password <input name="password" type="password"><button>Let it in</button></form>`, html.EscapeString(code))
		return
	}
	p.mu.Lock()
	_, known := p.users[name]
	p.mu.Unlock()
	if !known || r.FormValue("password") != Password {
		http.Error(w, "no such user, or another password", http.StatusForbidden)
		return
	}
	if err := p.Approve(code, name); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	_, _ = fmt.Fprintln(w, "the device is let in")
}

// LogIn goes with a client to an address of the provider to which the service has sent a browser, logs a user
// in there, and returns where the provider sends the browser then.
func (p *Provider) LogIn(h *http.Client, to, user, password string) (back string, err error) {
	one := *h
	one.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for range 3 { // the provider's page, what it does with the answer, and the way back
		answer, err := one.Get(to)
		if err != nil {
			return "", err
		}
		_ = answer.Body.Close()
		where, err := answer.Location()
		if err != nil {
			return "", errors.New(answer.Status)
		}
		if to = where.String(); !strings.HasPrefix(to, p.URL) {
			return to, nil
		}
		if where.Path == "/login" {
			q := where.Query()
			q.Set("user", user)
			q.Set("password", password)
			where.RawQuery = q.Encode()
			to = where.String()
		}
	}
	return "", errors.New("the provider does not send the browser back")
}

// Approve has a user let in the device that shows a code; Deny refuses it.
func (p *Provider) Approve(code, user string) error {
	return p.inner.CompleteDeviceAuthorization(context.Background(), code, user)
}

// Deny refuses the device that shows a code.
func (p *Provider) Deny(code string) error {
	return p.inner.DenyDeviceAuthorization(context.Background(), code)
}

// Claims returns those of a good token of a user; they may be changed.
func (p *Provider) Claims(user string) map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now().Unix()
	return map[string]any{
		"iss": p.URL, "aud": []string{Public}, "sub": "id-of-" + user, "iat": now, "exp": now + 300, "preferred_username": user, "groups": p.users[user].Groups,
	}
}

// Sign signs claims with the key of the provider. They have to be such as JSON can hold.
func (p *Provider) Sign(claims map[string]any) string {
	p.mu.Lock()
	key := p.key
	p.mu.Unlock()
	return SignWith(jose.RS256, key.id, key.key, claims)
}

// SignWith signs claims with any key that goes with the algorithm.
func SignWith(how jose.SignatureAlgorithm, id string, key any, claims map[string]any) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: how, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		panic("openidtest: " + err.Error())
	}
	body, err := json.Marshal(claims)
	if err != nil {
		panic("openidtest: " + err.Error())
	}
	signed, err := signer.Sign(body)
	if err != nil {
		panic("openidtest: " + err.Error())
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		panic("openidtest: " + err.Error())
	}
	return text
}

// KeyID returns the name of the key with which the provider signs.
func (p *Provider) KeyID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.key.id
}

// signing is a key of the provider.
type signing struct {
	id  string
	key *rsa.PrivateKey
}

func (s signing) SignatureAlgorithm() jose.SignatureAlgorithm { return jose.RS256 }
func (s signing) Algorithm() jose.SignatureAlgorithm          { return jose.RS256 }
func (s signing) ID() string                                  { return s.id }
func (s signing) Key() any                                    { return s.key }
func (s signing) Use() string                                 { return "sig" }

type published struct{ signing }

func (s published) Key() any { return &s.key.PublicKey }

// accounts are the users as the store of the provider wants them.
type accounts struct{ p *Provider }

func (a accounts) GetUserByID(id string) *storage.User {
	a.p.mu.Lock()
	defer a.p.mu.Unlock()
	u, known := a.p.users[id]
	if !known {
		return nil
	}
	return &storage.User{ID: u.Name, Username: u.Name, Password: Password, Email: u.Name + "@example.org", EmailVerified: !u.Unverified}
}

func (a accounts) GetUserByUsername(name string) *storage.User { return a.GetUserByID(name) }
func (a accounts) ExampleClientID() string                     { return "unused" }

// store is zitadel's, with keys that change, claims with groups, and clients that may do more.
type store struct {
	*storage.Storage
	p *Provider
}

func (s *store) SigningKey(context.Context) (op.SigningKey, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return s.p.key, nil
}

func (s *store) KeySet(context.Context) ([]op.Key, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	var keys []op.Key
	for _, k := range s.p.keys {
		keys = append(keys, published{k})
	}
	return keys, nil
}

func (s *store) GetClientByClientID(_ context.Context, id string) (op.Client, error) {
	c, known := s.p.clients[id]
	if !known {
		return nil, errors.New("no such client")
	}
	return &client{c, s.p}, nil
}

func (s *store) claims(user string) map[string]any {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return map[string]any{"groups": s.p.users[user].Groups}
}

func (s *store) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, request op.IDTokenRequest, scopes []string) error {
	if err := s.Storage.SetUserinfoFromRequest(ctx, info, request, scopes); err != nil {
		return err
	}
	if slices.Contains(scopes, oidc.ScopeProfile) {
		info.AppendClaims("groups", s.claims(request.GetSubject())["groups"])
	}
	return nil
}

func (s *store) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, tokenID, subject, origin string) error {
	if err := s.Storage.SetUserinfoFromToken(ctx, info, tokenID, subject, origin); err != nil {
		return err
	}
	info.AppendClaims("groups", s.claims(info.Subject)["groups"])
	return nil
}

func (s *store) GetPrivateClaimsFromScopes(_ context.Context, user, _ string, _ []string) (map[string]any, error) {
	claims := s.claims(user)
	claims["preferred_username"] = user
	return claims, nil
}

// CreateAccessAndRefreshTokens has a device's request be one that zitadel's store can renew.
func (s *store) CreateAccessAndRefreshTokens(ctx context.Context, request op.TokenRequest, current string) (id, refresh string, expires time.Time, err error) {
	if d, is := request.(*op.DeviceAuthorizationState); is {
		request = &storage.AuthRequest{ApplicationID: d.ClientID, UserID: d.Subject, Scopes: d.Scopes}
	}
	id, refresh, _, err = s.Storage.CreateAccessAndRefreshTokens(ctx, request, current)
	return id, refresh, time.Now().Add(s.p.lasts), err
}

// client is one that may ask for codes for devices.
type client struct {
	*storage.Client
	p *Provider
}

func (c *client) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeRefreshToken, oidc.GrantTypeDeviceCode}
}

func (c *client) AccessTokenType() op.AccessTokenType {
	if c.p.bare {
		return op.AccessTokenTypeBearer
	}
	return op.AccessTokenTypeJWT
}

func (c *client) LoginURL(id string) string            { return c.p.URL + "/login?id=" + id }
func (c *client) DevMode() bool                        { return true }
func (c *client) IDTokenUserinfoClaimsAssertion() bool { return !c.p.bare }
func (c *client) IDTokenLifetime() time.Duration       { return c.p.lasts }
