package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/api/identity/openidtest"
	"github.com/berth-hpc/berth/internal/hugepages"
	"github.com/berth-hpc/berth/service"
)

// accounts are those of the machine of the world, by number.
var accounts = []identity.Account{
	{Name: "root", UID: 0},
	{Name: "alice", UID: 1001, Groups: []string{"staff"}},
	{Name: "bob", UID: 1002},
	{Name: "vera", UID: 1003, Groups: []string{"guests"}},
	{Name: "eve", UID: 1004, Groups: []string{"gone"}},
	{Name: `LAB\dora`, UID: 1005},
	{Name: "emil@LAB.EXAMPLE", UID: 1006},
}

var jwtKey = []byte("0123456789abcdef0123456789abcdef")

// munged decodes credentials of tests: what it has sealed, by what stands between the colons.
type munged map[string]identity.Decoded

// seal makes a credential.
func (m munged) seal(uid uint32, age time.Duration, payload string) string {
	now := time.Now()
	credential := fmt.Sprintf("MUNGE:%d:", len(m))
	m[credential] = identity.Decoded{UID: uid, Encoded: now.Add(-age), Decoded: now, Payload: payload}
	return credential
}

func (m munged) decode(_ context.Context, credential string) (identity.Decoded, error) {
	d, known := m[credential]
	if !known {
		return d, &identity.Refused{Why: "Invalid credential"}
	}
	return d, nil
}

// ways are those of the world.
func (w *world) ways(t testing.TB) *identity.Ways {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jwt.key")
	if err := os.WriteFile(path, jwtKey, 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := identity.ReadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	return &identity.Ways{
		Roles: identity.Roles{Default: service.User, Self: 4000, Rules: []identity.Rule{{Role: service.Viewer, Groups: []string{"guests"}}, {Users: []string{"x"}, Groups: []string{"gone"}}}},
		Accounts: identity.NewAccounts(func(_ context.Context, key string) (identity.Account, bool, error) {
			if key == "1999" || key == "svc-unanswered" {
				return identity.Account{}, false, errors.New("no answer")
			}
			list := accounts
			if a := w.also.Load(); a != nil {
				list = append(slices.Clone(list), *a)
			}
			for _, a := range list {
				if a.Name == key || strconv.Itoa(int(a.UID)) == key {
					return a, true, nil
				}
			}
			return identity.Account{}, false, nil
		}),
		Munge: identity.NewCredentials("lab", w.munged.decode), JWT: tokens, OIDC: provided().known,
	}
}

// TestMain starts the provider before all tests: what is started in a bubble of one belongs to that.
func TestMain(m *testing.M) {
	hugepages.Advise(1 << 30)
	provided()
	os.Exit(m.Run())
}

// provided is the OpenID provider of all worlds, and what knows it. It ends with the process.
var provided = sync.OnceValue(func() (p struct {
	*openidtest.Provider
	known *identity.Provider
},
) {
	var err error
	p.Provider, _, err = openidtest.Open(
		openidtest.Options{Redirects: []string{"http://127.0.0.1:7117/login/oidc/callback", "https://hpc.example.org/berth/login/oidc/callback"}},
		openidtest.User{Name: "alice", Groups: []string{"hpc"}}, openidtest.User{Name: "bob", Groups: []string{"hpc"}}, openidtest.User{Name: "mia", Groups: []string{"hpc"}},
		openidtest.User{Name: "vera", Groups: []string{"guests"}}, openidtest.User{Name: "olga", Groups: []string{"admins"}}, openidtest.User{Name: "eve"},
	)
	if err == nil {
		p.known, err = identity.NewProvider(identity.ProviderOptions{Issuer: p.URL, Name: "Test ID", Client: openidtest.Public, Roles: identity.Roles{Rules: []identity.Rule{
			{Role: service.Operator, Groups: []string{"admins"}}, {Role: service.User, Groups: []string{"hpc"}}, {Role: service.Viewer, Groups: []string{"guests"}},
		}}})
	}
	if err != nil {
		panic(err)
	}
	return p
})

// bearerOf is a token of the provider for a user, at the time of the worlds.
func bearerOf(user string) string {
	claims := provided().Claims(user)
	claims["iat"], claims["exp"] = start, start+3600
	return provided().Sign(claims)
}

func uidOf(user string) uint32 {
	for _, a := range accounts {
		if a.Name == user {
			return a.UID
		}
	}
	return 4711
}

func signed(key []byte, method jwt.SigningMethod, claims jwt.MapClaims) string {
	text, err := jwt.NewWithClaims(method, claims).SignedString(key)
	if err != nil {
		panic(err)
	}
	return text
}

// shown is a request of a user, who shows who they are in the world's way.
func (w *world) shown(user string, r *http.Request, body string) *http.Request {
	switch w.way {
	case identity.Socket:
		r.RemoteAddr = "@"
		return r.WithContext(identity.WithPeer(r.Context(), uidOf(user)))
	case identity.Munge:
		r.Header.Set("Authorization", "Munge "+w.munged.seal(uidOf(user), 0, identity.Seal("lab", r.Method, r.URL.RequestURI(), []byte(body), true)))
	case identity.SlurmJWT:
		r.Header.Set("Authorization", "Bearer "+signed(jwtKey, jwt.SigningMethodHS256, jwt.MapClaims{"sun": user, "iat": start, "exp": start + 3600}))
	case identity.OIDC:
		if user == "root" { // is no user of a provider
			user = "olga"
		}
		r.Header.Set("Authorization", "Bearer "+bearerOf(user))
	default:
		r.Header.Set("Authorization", "Bearer "+w.tokens[user])
	}
	return r
}

// A user has the same name and role in each way of identity.
func TestWaysOfIdentity(t *testing.T) {
	for _, way := range []identity.Way{identity.Socket, identity.Munge, identity.SlurmJWT} {
		t.Run(string(way), func(t *testing.T) {
			w := newWorld(t, api.Options{})
			w.way = way
			for user, role := range map[string]string{"root": "operator", "alice": "user", "vera": "viewer", `LAB\dora`: "user", "emil@LAB.EXAMPLE": "user"} {
				got := into[form.Me](t, w.do(user, "GET", "/v1/me", ""), 200)
				if got.User != user || got.Role != role || got.Way != string(way) {
					t.Errorf("%s is %+v, want the role %s", user, got, role)
				}
			}
			wantProblem(t, w.do("eve", "GET", "/v1/me", ""), 403, "eve has no role here")
			wantProblem(t, w.do("stranger", "GET", "/v1/me", ""), 403, "has no account on the machine of the service")
			answer := into[form.Answer](t, w.do(`LAB\dora`, "POST", "/v1/requests", askFor), 201)
			if answer.Reservation.User != `LAB\dora` {
				t.Errorf("a reservation of LAB\\dora is %+v", answer.Reservation)
			}
		})
	}
}

// A browser gets a session of who the machine knows, whose role is that of the time when it is used.
func TestSessionsOfTheMachine(t *testing.T) {
	w := newWorld(t, api.Options{})
	w.way = identity.Socket
	link := into[form.Link](t, w.do("alice", "POST", "/v1/session/links", ""), 201)
	a := w.do("", "POST", "/v1/session", `{"code":"`+link.Code+`"}`)
	me := into[form.Me](t, a, 201)
	if me.User != "alice" || me.Role != "user" || me.Way != "socket" {
		t.Error(me)
	}
	cookie := a.Result().Cookies()[0]
	if me := into[form.Me](t, w.do("", "GET", "/v1/me", "", "Cookie", cookie.String()), 200); me.User != "alice" || me.Role != "user" {
		t.Error(me)
	}
	held := accounts[1]
	defer func() { accounts[1] = held }()
	accounts[1].Groups = []string{"guests"}
	w.Handler = api.New(api.Options{Service: w.fake, Tokens: w.store, Identity: w.ways(t)}) // what was remembered of accounts is over
	if me := into[form.Me](t, w.do("", "GET", "/v1/me", "", "Cookie", cookie.String()), 200); me.User != "alice" || me.Role != "viewer" {
		t.Errorf("a session keeps an old role: %+v", me)
	}
	accounts[1].Name = "other"
	w.Handler = api.New(api.Options{Service: w.fake, Tokens: w.store, Identity: w.ways(t)})
	wantProblem(t, w.do("", "GET", "/v1/me", "", "Cookie", cookie.String()), 403, "no account")
	w.Handler = api.New(api.Options{Service: w.fake, Tokens: w.store})
	wantProblem(t, w.do("", "GET", "/v1/me", "", "Cookie", cookie.String()), 401, "tokens alone")
}

func TestCredentialsThatAreNone(t *testing.T) {
	const uri = "/v1/me?x=1"
	w := newWorld(t, api.Options{})
	good := func(payload string) string { return w.munged.seal(1001, 0, payload) }
	seal := identity.Seal("lab", "GET", uri, nil, true)
	replayed := good(seal)
	for name, row := range map[string]struct {
		credential string
		status     int
		words      string
	}{
		"good":                  {replayed, 422, "x: unknown parameter"},
		"another key":           {"MUNGE:stranger:", 401, "Invalid credential"},
		"no credential":         {"Bearer", 401, "not a credential"},
		"too long":              {"MUNGE:" + strings.Repeat("A", 5000) + ":", 401, "not a credential"},
		"old":                   {w.munged.seal(1001, 61*time.Second, seal), 401, "made 1m1s ago; want at most 1m0s"},
		"of the future":         {w.munged.seal(1001, -61*time.Second, seal), 401, "look at the clocks"},
		"another realm":         {good(identity.Seal("other", "GET", uri, nil, true)), 401, `made for realm "other"; this one is "lab"`},
		"another program":       {good("slurm message"), 401, "made for another program"},
		"another method":        {good(identity.Seal("lab", "DELETE", uri, nil, true)), 401, "made for another call, DELETE"},
		"another path":          {good(identity.Seal("lab", "GET", "/v1/sites", nil, true)), 401, "made for another call, GET /v1/sites"},
		"no hash":               {good("berth-1 lab GET " + uri + " 00"), 401, "unknown hash"},
		"a user without number": {w.munged.seal(4711, 0, seal), 403, "uid 4711 has no account"},
		"a silent directory":    {w.munged.seal(1999, 0, seal), 503, "the directory of users does not answer"},
	} {
		a := w.do("", "GET", uri, "", "Authorization", "Munge "+row.credential)
		if name == "good" {
			if a.Code != 422 && a.Code != 200 {
				t.Errorf("a good credential: %d %s", a.Code, a.text)
			}
			continue
		}
		wantProblem(t, a, row.status, row.words)
		if row.status == 401 && strings.Join(a.Header().Values("WWW-Authenticate"), "; ") != `Munge realm="lab"; Bearer` {
			t.Errorf("%s: %q", name, a.Header().Values("WWW-Authenticate"))
		}
	}
	again := w.munged.seal(1001, 0, seal)
	if a := w.do("", "GET", uri, "", "Authorization", "Munge "+again); a.Code == 401 {
		t.Fatal(a.text)
	}
	wantProblem(t, w.do("", "GET", uri, "", "Authorization", "Munge "+again), 401, "used before")
	// A body that was changed on its way.
	sealed := good(identity.Seal("lab", "POST", "/v1/requests", []byte(askFor), true))
	wantProblem(t, w.do("", "POST", "/v1/requests", strings.Replace(askFor, "64", "1", 1), "Authorization", "Munge "+sealed), 401, "made for another body")
	if len(w.fake.made) != 0 {
		t.Error("something was made all the same")
	}
}

func TestTokensOfSlurmThatAreNone(t *testing.T) {
	w := newWorld(t, api.Options{})
	claims := func(exp, iat int64, user any) jwt.MapClaims {
		return jwt.MapClaims{"sun": user, "iat": iat, "exp": exp}
	}
	good, now := claims(int64(start)+60, int64(start), "alice"), int64(start)
	none, _ := jwt.NewWithClaims(jwt.SigningMethodNone, good).SignedString(jwt.UnsafeAllowNoneSignatureType)
	for text, words := range map[string]string{
		signed(jwtKey, jwt.SigningMethodHS256, claims(now-60, now-120, "alice")):         "has expired",
		signed([]byte("another key of thirty-two bytes!"), jwt.SigningMethodHS256, good): "signed with another key",
		signed(jwtKey, jwt.SigningMethodHS512, good):                                     "signed with another key",
		none: "signed with another key",
		signed(jwtKey, jwt.SigningMethodHS256, claims(now+60, now+50, "alice")):           "used before issued",
		signed(jwtKey, jwt.SigningMethodHS256, jwt.MapClaims{"sun": "alice", "iat": now}): "exp",
		signed(jwtKey, jwt.SigningMethodHS256, claims(now+60, now, "")):                   "names no user",
		signed(jwtKey, jwt.SigningMethodHS256, claims(now+60, now, 7)):                    "is no good",
		"a.b.c": "is no good",
	} {
		wantProblem(t, w.do("", "GET", "/v1/me", "", "Authorization", "Bearer "+text), 401, words)
	}
	wantProblem(t, w.do("", "GET", "/v1/me", "", "Authorization", "Bearer "+signed(jwtKey, jwt.SigningMethodHS256, claims(now+60, now, "-o"))), 403, "not a valid user name")
	if me := into[form.Me](t, w.do("", "GET", "/v1/me", "", "Authorization", "Bearer "+signed(jwtKey, jwt.SigningMethodHS256, good)), 200); me.Expires != form.Time(start+60) {
		t.Error(me)
	}
}

// A service that takes no way but tokens answers credentials as it answers nothing.
func TestNoWaysButTokens(t *testing.T) {
	w := newWorld(t, api.Options{Identity: &identity.Ways{}})
	for _, header := range []string{"Munge MUNGE:1:", "Bearer a.b.c"} {
		a := w.do("", "GET", "/v1/me", "", "Authorization", header)
		wantProblem(t, a, 401, "want Bearer and a token of this service")
		if got := a.Header().Values("WWW-Authenticate"); len(got) != 1 || got[0] != "Bearer" {
			t.Error(got)
		}
	}
	if r := httptest.NewRequest("GET", "/v1/me", nil); identity.OverSocket(r.Context()) {
		t.Error("a request over TCP is taken for one over the socket")
	}
}
