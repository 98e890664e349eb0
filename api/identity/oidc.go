package identity

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	jose "github.com/go-jose/go-jose/v4"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

const (
	// providerTime is how long the provider may take for one answer, and describeTime for all that is
	// fetched at once: so long does a call wait at most for a key that is not known yet.
	providerTime = 3 * time.Second
	describeTime = 5 * time.Second
	// keysFresh is how often the description and the keys are fetched: a key that is withdrawn is good
	// for that long.
	keysFresh = 5 * time.Minute
	// keysLast is how long keys are good while the provider does not answer.
	keysLast = 24 * time.Hour
	// askAgain is the least time between two fetches: tokens with unknown keys, which every
	// program can make, cause no more.
	askAgain = 10 * time.Second
	// awayAgain is the same for a provider that did not answer.
	awayAgain = time.Second
	// maxProvided bounds an answer of the provider, and maxJWT a token.
	maxProvided = 1 << 20
	maxJWT      = 16 << 10
	maxGroups   = 4096
	// defaultSkew is by how much the clocks of the provider and the service may differ.
	defaultSkew berth.Duration = 60
)

// asymmetric is the algorithms by which a provider may sign: with keys that are only its own.
var asymmetric = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// ProviderOptions says which provider users are known by.
type ProviderOptions struct {
	Issuer string
	Name   string // for people; empty is the host of Issuer
	Client string // the id of the service at the provider
	// SecretFile is the path of the client's secret; empty for a public client.
	SecretFile   string
	DeviceClient string   // with which berth login asks; empty is Client
	Audiences    []string // of tokens that are taken, beside the clients
	Scopes       []string // empty is openid and profile
	User, Groups string   // claims; empty are preferred_username and groups
	Roles        Roles    // by names and groups at the provider
	Projects     []string // groups that are members of projects
	Skew         berth.Duration
	CAFile       string // authorities of the provider; empty is those of the machine
}

// Provider takes tokens of an OpenID provider, and lets browsers log in there. What the provider says
// of itself is fetched when it is needed, by one call at a time, which bounds how long it may take; Watch
// fetches it before. It is safe for concurrent use.
type Provider struct {
	o      ProviderOptions
	secret string
	http   *http.Client
	gap    time.Duration // askAgain, but for tests

	mu     sync.Mutex
	known  *described    // nil until the provider has answered
	failed error         // of the last fetch
	asked  time.Time     // when that began
	flight chan struct{} // closed once the fetch that runs is over
}

// described is what a provider has said of itself.
type described struct {
	at       time.Time
	provider *oidc.Provider
	basic    bool // it takes secrets in the header
	keys     []jose.JSONWebKey
}

// NewProvider returns a provider, which is not asked yet. The error is of code Invalid: a file that
// cannot be used.
func NewProvider(o ProviderOptions) (*Provider, error) {
	p := &Provider{o: o, gap: askAgain}
	if p.o.User == "" {
		p.o.User = "preferred_username"
	}
	if p.o.Groups == "" {
		p.o.Groups = "groups"
	}
	if len(p.o.Scopes) == 0 {
		p.o.Scopes = []string{oidc.ScopeOpenID, "profile"}
	}
	if !slices.Contains(p.o.Scopes, oidc.ScopeOpenID) {
		p.o.Scopes = append([]string{oidc.ScopeOpenID}, p.o.Scopes...)
	}
	if p.o.DeviceClient == "" {
		p.o.DeviceClient = p.o.Client
	}
	if p.o.Skew == 0 {
		p.o.Skew = defaultSkew
	}
	if u, err := url.Parse(p.o.Issuer); err == nil && p.o.Name == "" {
		p.o.Name = u.Hostname()
	}
	if o.SecretFile != "" {
		data, err := os.ReadFile(o.SecretFile)
		if err != nil {
			return nil, berth.Errorf(berth.Invalid, "oidc.secret", "%v; want the file with the client's secret, readable for the service", err)
		}
		if p.secret = strings.TrimSpace(string(data)); p.secret == "" {
			return nil, berth.Errorf(berth.Invalid, "oidc.secret", "%s: empty; want the client's secret in its first line", o.SecretFile)
		}
	}
	h, err := providerClient(o.CAFile)
	p.http = h
	return p, err
}

// providerClient returns what asks a provider: it goes where the description says and nowhere else, and
// reads a bounded answer.
func providerClient(ca string) (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.IdleConnTimeout = 2, 30*time.Second
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, berth.Errorf(berth.Invalid, "oidc.ca", "%v; want the file of the provider's authorities", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, berth.Errorf(berth.Invalid, "oidc.ca", "%s: no certificate in PEM", ca)
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	return &http.Client{
		Transport: bounded{transport}, Timeout: providerTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("it redirects, which is not followed") },
	}, nil
}

// bounded cuts answers off.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, maxProvided), answer.Body}
	}
	return answer, err
}

// Name returns how people call the provider.
func (p *Provider) Name() string { return p.o.Name }

// About returns what a program needs to log a user in by itself.
func (p *Provider) About() (issuer, client string, audiences, scopes []string) {
	return p.o.Issuer, p.o.DeviceClient, p.audiences(), slices.Clone(p.o.Scopes)
}

// audiences are those of tokens that are taken.
func (p *Provider) audiences() []string {
	list := append([]string{p.o.Client, p.o.DeviceClient}, p.o.Audiences...)
	slices.Sort(list)
	return slices.Compact(list)
}

// Reachable returns why the provider has not answered when it was asked last; nil if it has, or was not
// asked yet.
func (p *Provider) Reachable() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failed
}

// Watch keeps what the provider says of itself fresh until ctx ends. changed, which may be nil, is told when the
// provider does not answer any more, and when it does again.
func (p *Provider) Watch(ctx context.Context, changed func(error)) {
	was := error(nil)
	for first := true; ; first = false {
		_, err := p.ask(ctx, p.gap)
		if ctx.Err() != nil {
			return
		}
		if changed != nil && (first || (err == nil) != (was == nil)) {
			changed(err)
		}
		was = err
		wait := keysFresh
		if err != nil {
			wait = p.gap
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// Ask asks the provider now and returns why it does not answer as one.
func (p *Provider) Ask(ctx context.Context) error {
	_, err := p.ask(ctx, 0)
	return err
}

// ask has what the provider says of itself fetched, unless that was done less than gap ago, or a second if it did not
// answer, and waits for it. It returns what is known.
func (p *Provider) ask(ctx context.Context, gap time.Duration) (*described, error) {
	p.mu.Lock()
	flight := p.flight
	if p.failed != nil {
		gap = min(gap, awayAgain)
	}
	if flight == nil && (p.asked.IsZero() || time.Since(p.asked) >= gap) {
		flight = make(chan struct{})
		p.flight, p.asked = flight, time.Now()
		go p.fetch(flight)
	}
	p.mu.Unlock()
	if flight != nil {
		select {
		case <-flight:
		case <-ctx.Done():
			return nil, p.away(ctx.Err())
		}
	}
	return p.current()
}

// current returns what is known, however old it may be, as long as it counts.
func (p *Provider) current() (*described, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || time.Since(p.known.at) > keysLast {
		return nil, p.away(p.failed)
	}
	return p.known, p.failed
}

// needed returns what is known, asking the provider if that is nothing; then the error says why. An error beside what is known
// says that the provider did not answer when it was asked last.
func (p *Provider) needed(ctx context.Context) (*described, error) {
	if known, err := p.current(); known != nil {
		return known, err
	}
	return p.ask(ctx, p.gap)
}

// away is the error about a provider that does not answer.
func (p *Provider) away(why error) error {
	if why == nil {
		why = errors.New("not asked yet")
	}
	return berth.Errorf(berth.Unavailable, "oidc", "the OpenID provider %s does not answer: %v; try again, or use a token of this service", p.o.Name, why)
}

// fetch asks the provider.
func (p *Provider) fetch(over chan struct{}) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(context.Background(), p.http), describeTime)
	defer cancel()
	got, err := p.describe(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed = err; err == nil {
		p.known = got
	}
	p.flight = nil
	close(over)
}

func (p *Provider) describe(ctx context.Context) (*described, error) {
	provider, err := oidc.NewProvider(ctx, p.o.Issuer)
	if err != nil {
		return nil, plain(err)
	}
	var more struct {
		Keys    string   `json:"jwks_uri"`
		Methods []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := provider.Claims(&more); err != nil {
		return nil, err
	}
	d := &described{at: time.Now(), provider: provider, basic: len(more.Methods) == 0 || slices.Contains(more.Methods, "client_secret_basic")}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, more.Keys, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("its keys: %w", err)
	}
	answer, err := p.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("its keys: %w", plain(err))
	}
	defer func() { _ = answer.Body.Close() }() // only read from
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&set); err != nil || answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("its keys: %s (%w)", answer.Status, errors.Join(err))
	}
	for _, raw := range set.Keys {
		var key jose.JSONWebKey // kinds that are not known here are no mistake
		if json.Unmarshal(raw, &key) == nil && key.Valid() && key.IsPublic() && (key.Use == "" || key.Use == "sig") {
			d.keys = append(d.keys, key)
		}
	}
	return d, nil
}

// plain returns an error of a connection without what was asked for, which is known.
func plain(err error) error {
	if u, is := errors.AsType[*url.Error](err); is {
		return u.Err
	}
	return err
}

// verify verifies the signature and the issuer of a token; missed says that no key has made the signature. Audience and
// times are for the caller to look at, for several audiences and the configured skew.
func (p *Provider) verify(ctx context.Context, known *described, text string) (token *oidc.IDToken, wrong error, missed bool) {
	algorithms := make([]string, len(asymmetric))
	for i, a := range asymmetric {
		algorithms[i] = string(a)
	}
	keys := &keySet{keys: known.keys}
	token, wrong = oidc.NewVerifier(p.o.Issuer, keys, &oidc.Config{SkipClientIDCheck: true, SkipExpiryCheck: true, SupportedSigningAlgs: algorithms}).Verify(ctx, text)
	return token, wrong, keys.missed
}

// keySet verifies one token by keys that are known, as package oidc wants it.
type keySet struct {
	keys   []jose.JSONWebKey
	missed bool
}

// VerifySignature returns what a token says that one of the keys has signed.
func (s *keySet) VerifySignature(_ context.Context, text string) ([]byte, error) {
	signed, err := jose.ParseSigned(text, asymmetric)
	if err != nil {
		return nil, err
	}
	head := signed.Signatures[0].Header
	for i := range s.keys {
		key := &s.keys[i]
		if head.KeyID != "" && key.KeyID != "" && key.KeyID != head.KeyID || key.Algorithm != "" && key.Algorithm != head.Algorithm {
			continue
		}
		if payload, err := signed.Verify(key); err == nil {
			return payload, nil
		}
	}
	s.missed = true
	return nil, errors.New("no key has made the signature")
}

// has reports whether the key is known that a token names.
func (d *described) has(id string) bool {
	return id != "" && slices.ContainsFunc(d.keys, func(k jose.JSONWebKey) bool { return k.KeyID == id })
}

// jwtHead is the head of a JSON web token.
type jwtHead struct {
	Algorithm string `json:"alg"`
	Key       string `json:"kid"`
	Type      string `json:"typ"`
}

// headOf reads the head of a token, which nothing vouches for.
func headOf(text string) (h jwtHead, is bool) {
	first, rest, _ := strings.Cut(text, ".")
	raw, err := base64.RawURLEncoding.DecodeString(first)
	return h, err == nil && strings.Count(rest, ".") == 1 && json.Unmarshal(raw, &h) == nil && h.Algorithm != ""
}

// claims is what a token says.
type claims struct {
	Subject   string      `json:"sub"`
	Audience  wordOrWords `json:"aud"`
	Expires   *numeric    `json:"exp"`
	NotBefore *numeric    `json:"nbf"`
	Issued    *numeric    `json:"iat"`
	Nonce     string      `json:"nonce"`
	Events    any         `json:"events"` // of a token that logs users out
	all       map[string]any
}

// numeric is a time in a token: seconds, perhaps with a fraction.
type numeric float64

func (n numeric) time() berth.Time { return berth.Time(n) }

// wordOrWords is one text, or a list of them.
type wordOrWords []string

// UnmarshalJSON reads both forms.
func (w *wordOrWords) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*w = []string{one}
		return nil
	}
	var all []string
	err := json.Unmarshal(data, &all)
	*w = all
	return err
}

// check returns what a token says, if it is a good one for one of some audiences. The error is of code Denied about the
// token, and Unavailable if the provider has to be asked and does not answer.
func (p *Provider) check(ctx context.Context, text string, audiences []string, now berth.Time) (*claims, error) {
	if len(text) > maxJWT {
		return nil, p.no("is longer than %d bytes", maxJWT)
	}
	head, is := headOf(text)
	switch {
	case !is:
		return nil, p.no("is no JSON web token")
	case !slices.Contains(asymmetric, jose.SignatureAlgorithm(head.Algorithm)):
		return nil, p.no("is signed by %.20q; want a signature with a key of the provider, such as RS256", head.Algorithm)
	}
	known, err := p.needed(ctx)
	if known == nil {
		return nil, err
	}
	token, wrong, missed := p.verify(ctx, known, text)
	if missed && !known.has(head.Key) { // the keys may be others by now
		if known, err = p.ask(ctx, p.gap); known == nil {
			return nil, err
		}
		token, wrong, missed = p.verify(ctx, known, text)
	}
	switch {
	case missed && !known.has(head.Key) && err != nil: // it may be one that came while the provider is away
		return nil, p.away(err)
	case missed:
		return nil, p.no("is signed by no key of the provider")
	case wrong != nil && strings.Contains(wrong.Error(), "different provider"):
		return nil, p.no("is of another issuer; want %s", p.o.Issuer)
	case wrong != nil:
		return nil, p.no("cannot be read")
	}
	c := &claims{}
	if err := errors.Join(token.Claims(c), token.Claims(&c.all)); err != nil {
		return nil, p.no("has claims in an unknown form")
	}
	skew := p.o.Skew
	switch {
	case !slices.ContainsFunc(c.Audience, func(a string) bool { return slices.Contains(audiences, a) }):
		return nil, p.no("is for another audience; want %s", strings.Join(audiences, " or "))
	case c.Events != nil || strings.EqualFold(head.Type, "logout+jwt"):
		return nil, p.no("is for logging out")
	case c.Expires == nil:
		return nil, p.no("does not say when it expires")
	case now >= c.Expires.time().Add(skew):
		return nil, p.no("has expired at %s; log in again", stampOf(c.Expires.time()))
	case c.NotBefore != nil && now.Add(skew) < c.NotBefore.time():
		return nil, p.no("is good from %s on; look at the clocks of both machines", stampOf(c.NotBefore.time()))
	case c.Issued != nil && now.Add(skew) < c.Issued.time():
		return nil, p.no("was made at %s, in the future; look at the clocks of both machines", stampOf(c.Issued.time()))
	}
	return c, nil
}

func stampOf(t berth.Time) string { return time.Unix(int64(t), 0).UTC().Format(time.RFC3339) }

// no is the error about a token that is no good.
func (p *Provider) no(format string, args ...any) error {
	return berth.Errorf(berth.Denied, "Authorization", "the token of %s %s", p.o.Name, fmt.Sprintf(format, args...))
}

// claim returns a claim by its name, or by the path of names with dots between them to one inside others.
func claim(all map[string]any, path string) any {
	if value, is := all[path]; is {
		return value
	}
	first, rest, inside := strings.Cut(path, ".")
	if inner, is := all[first].(map[string]any); is && inside {
		return claim(inner, rest)
	}
	return nil
}

// caller returns who a token is of.
func (p *Provider) caller(c *claims) (Caller, error) {
	name, _ := claim(c.all, p.o.User).(string)
	switch {
	case name == "":
		return Caller{}, p.no("names no user in its claim %s", p.o.User)
	case p.o.User == "email" && c.all["email_verified"] != true:
		return Caller{}, p.no("has an address of mail that the provider has not verified")
	case !site.ValidUser(name):
		return Caller{}, berth.Errorf(berth.Denied, "user", "%.70q is not a valid user name", name)
	case name == "root": // who is root somewhere is not for a provider to say
		return Caller{}, berth.Errorf(berth.Denied, "user", "root is no user of a provider")
	}
	var groups []string
	switch given := claim(c.all, p.o.Groups).(type) {
	case string:
		groups = []string{given}
	case []any:
		for _, one := range given[:min(len(given), maxGroups)] {
			if text, is := one.(string); is {
				groups = append(groups, text)
			}
		}
	}
	who, err := p.named(name, groups)
	who.Expires = c.Expires.time().Add(p.o.Skew)
	return who, err
}

// named returns a user as the roles are now.
func (p *Provider) named(name string, groups []string) (Caller, error) {
	role := p.o.Roles.match(name, groups)
	if role == "" {
		return Caller{}, berth.Errorf(berth.Denied, "user", "%s has no role here; an operator gives one by the key roles of oidc in the service's configuration", name)
	}
	return Caller{User: name, Role: role, Way: OIDC, Groups: p.counting(groups)}, nil
}

// counting returns those of some groups to which the roles and the projects refer, ordered: the others need not be kept.
func (p *Provider) counting(groups []string) []string {
	list := slices.DeleteFunc(slices.Clone(p.o.Projects), func(g string) bool { return !slices.Contains(groups, g) })
	for i := range p.o.Roles.Rules {
		for _, g := range p.o.Roles.Rules[i].Groups {
			if slices.Contains(groups, g) {
				list = append(list, g)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// bearer returns whose a token is.
func (p *Provider) bearer(ctx context.Context, text string, now berth.Time) (Caller, error) {
	c, err := p.check(ctx, text, p.audiences(), now)
	if err != nil {
		return Caller{}, err
	}
	return p.caller(c)
}
