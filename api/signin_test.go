package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/api/identity/openidtest"
)

// signIn has the browser begin to log in, logs a user in at the provider, and returns the way back.
func (b *browser) signIn(t *testing.T, path, user string) (back *url.URL) {
	t.Helper()
	a := b.send("GET", path, "")
	if a.Code != http.StatusSeeOther {
		t.Fatal(a.Code, a.text)
	}
	b.cookies = append(b.cookies, a.Result().Cookies()...)
	to, err := provided().LogIn(http.DefaultClient, a.Header().Get("Location"), user, openidtest.Password)
	if err != nil {
		t.Fatal(err)
	}
	if back, err = url.Parse(to); err != nil {
		t.Fatal(err)
	}
	return back
}

// present sets the clock of the world to the provider's, which is that of the machine.
func present(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, api.Options{})
	w.fake.now = berth.Time(time.Now().Unix())
	return w
}

// A browser that has been at the provider has a session, with the groups of its user there, and is on the page to which
// the user wanted to go.
func TestBrowsersLogInAtTheProvider(t *testing.T) {
	w := present(t)
	logins := into[form.Logins](t, w.do("", "GET", "/v1/login", ""), 200)
	if logins.OIDC == nil || logins.OIDC.Name != "Test ID" || logins.OIDC.Issuer != provided().URL || logins.OIDC.Client != openidtest.Public {
		t.Errorf("%+v", logins.OIDC)
	}
	for path, page := range map[string]string{"/login/oidc": "/", "/login/oidc?to=/book": "/book", "/login/oidc?to=%2Fharbour%3Fsite%3Dcm5": "/harbour?site=cm5"} {
		b := &browser{world: w}
		back := b.signIn(t, path, "mia")
		if c := b.cookies[0]; !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.MaxAge != 600 || strings.Contains(back.RawQuery, c.Value) {
			t.Errorf("cookie %+v", c)
		}
		a := b.send("GET", back.RequestURI(), "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate")
		if a.Code != http.StatusSeeOther || a.Header().Get("Location") != page {
			t.Fatalf("%s: %d %q %s, want %s", path, a.Code, a.Header().Get("Location"), a.text, page)
		}
		b.cookies = nil
		for _, c := range a.Result().Cookies() {
			switch {
			case c.Name == "berth-login" && c.MaxAge < 0:
			case c.HttpOnly && c.SameSite == http.SameSiteStrictMode && c.MaxAge == 7*86_400:
				b.cookies = append(b.cookies, c)
			default:
				t.Errorf("cookie %+v", c)
			}
		}
		if me := into[form.Me](t, b.send("GET", "/v1/me", ""), 200); me.User != "mia" || me.Role != "user" || me.Way != "oidc" {
			t.Errorf("%+v", me)
		}
		if a := b.send("POST", "/v1/requests", askFor, "Origin", "https://evil.example"); a.Code != 403 {
			t.Error("a page of another site may act:", a.Code)
		}
		if a := b.send("DELETE", "/v1/session", ""); a.Code != 204 {
			t.Error(a.Code)
		}
		wantProblem(t, b.send("GET", "/v1/me", ""), 401)
	}
}

// What comes back in another browser, twice, changed, or from elsewhere opens nothing, and no address of another site
// is a page to go to.
func TestLoginsThatAreNoOnes(t *testing.T) {
	w := present(t)
	refuse := func(what string, a *answer, status int, words string) {
		t.Helper()
		if a.Code != status || !strings.Contains(a.text, words) || !strings.HasPrefix(a.Header().Get("Content-Type"), "text/html") {
			t.Errorf("%s: %d %s, want %d and %q", what, a.Code, a.text, status, words)
		}
		for _, c := range a.Result().Cookies() {
			if c.MaxAge > 0 {
				t.Errorf("%s: cookie %+v", what, c)
			}
		}
	}
	b := &browser{world: w}
	back := b.signIn(t, "/login/oidc", "mia")
	refuse("another browser", (&browser{world: w}).send("GET", back.RequestURI(), ""), 403, "has not begun")
	other := &browser{world: w}
	other.signIn(t, "/login/oidc", "mia")
	refuse("a login of its own", other.send("GET", back.RequestURI(), ""), 403, "has not begun")
	if a := b.send("GET", back.RequestURI(), ""); a.Code != 303 {
		t.Fatal(a.Code, a.text)
	}
	refuse("twice", b.send("GET", back.RequestURI(), ""), 403, "does not take the code")
	for what, query := range map[string]string{
		"denied": "error=access_denied&state=x", "words of others": "error=%3Cscript%3E&state=x", "nothing": "", "two states": back.RawQuery + "&state=y", "another issuer": back.RawQuery + "&iss=https://evil.example",
	} {
		status, words := 403, map[string]string{"denied": "has not let you in (access_denied)", "words of others": "(no code)"}[what]
		if what == "two states" {
			status = 422
		}
		a := b.send("GET", "/login/oidc/callback?"+query, "")
		refuse(what, a, status, words)
		if strings.Contains(a.text, "<script>") {
			t.Errorf("%s: %s", what, a.text)
		}
	}
	for _, page := range []string{"https://evil.example", "//evil.example", "/\\evil.example", "/%5cevil.example//x", "book", "/\tx", "/a//evil", "/#x"} {
		a := b.send("GET", "/login/oidc?to="+url.QueryEscape(page), "")
		if a.Code == 303 && !strings.HasPrefix(page, "/%5c") || a.Code != 303 && a.Code != 422 {
			t.Errorf("%s: %d %s", page, a.Code, a.Header().Get("Location"))
		}
	}
	refuse("without a role", func() *answer {
		b := &browser{world: w}
		return b.send("GET", b.signIn(t, "/login/oidc", "eve").RequestURI(), "")
	}(), 403, "eve has no role here")
	far := &browser{world: w, host: "10.1.2.3:7117"}
	refuse("without https", far.send("GET", "/login/oidc", ""), 403, "without https")
	far.host = "evil.example"
	refuse("another name", far.send("GET", "/login/oidc", ""), 421, "is not a name of this service")
	w.Handler = api.New(api.Options{Service: w.fake, Tokens: w.store})
	refuse("no provider", b.send("GET", "/login/oidc", ""), 404, "knows no OpenID provider")
	if logins := into[form.Logins](t, w.do("", "GET", "/v1/login", ""), 200); logins.OIDC != nil {
		t.Errorf("%+v", logins.OIDC)
	}
}

// Behind a proxy with a prefix the browser goes by the public address alone, with a cookie that needs https.
func TestLoggingInBehindAProxy(t *testing.T) {
	public, err := url.Parse("https://hpc.example.org/berth/")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, api.Options{Public: public})
	w.fake.now = berth.Time(time.Now().Unix())
	b := &browser{world: w, host: "hpc.example.org"}
	back := b.signIn(t, "/berth/login/oidc?to=/book", "mia")
	if !strings.HasPrefix(back.String(), "https://hpc.example.org/berth/login/oidc/callback?") || b.cookies[0].Name != "__Host-berth-login" || !b.cookies[0].Secure {
		t.Error(back, b.cookies[0])
	}
	if a := b.send("GET", back.RequestURI(), ""); a.Code != 303 || a.Header().Get("Location") != "/berth/book" {
		t.Error(a.Code, a.Header().Get("Location"), a.text)
	}
}

// The role of a session by the provider is what the rules say when it is used, and operators see and end it.
func TestSessionsOfAProvider(t *testing.T) {
	w := present(t)
	b := &browser{world: w}
	a := b.send("GET", b.signIn(t, "/login/oidc", "mia").RequestURI(), "")
	b.cookies = a.Result().Cookies()
	ways := w.ways(t)
	var err error
	if ways.OIDC, err = identity.NewProvider(identity.ProviderOptions{Issuer: provided().URL, Client: openidtest.Public, Roles: identity.Roles{Rules: []identity.Rule{{Role: "viewer", Groups: []string{"hpc"}}}}}); err != nil {
		t.Fatal(err)
	}
	w.Handler = api.New(api.Options{Service: w.fake, Tokens: w.store, Identity: ways})
	if me := into[form.Me](t, b.send("GET", "/v1/me", ""), 200); me.User != "mia" || me.Role != "viewer" {
		t.Errorf("a session keeps an old role: %+v", me)
	}
	ways.OIDC = nil
	w.Handler = api.New(api.Options{Service: w.fake, Tokens: w.store, Identity: ways})
	wantProblem(t, b.send("GET", "/v1/me", ""), 401, "no users of an OpenID provider")
	w.Handler = api.New(api.Options{Service: w.fake, Tokens: w.store, Identity: w.ways(t)})
	into[form.Me](t, b.send("GET", "/v1/me", ""), 200)
	var id string
	for _, one := range into[form.Tokens](t, w.do("root", "GET", "/v1/tokens", ""), 200).Tokens {
		if one.User == "mia" {
			id = one.ID
		}
	}
	if a := w.do("root", "DELETE", "/v1/tokens/"+id, ""); a.Code != 204 {
		t.Fatal(a.Code, a.text)
	}
	wantProblem(t, b.send("GET", "/v1/me", ""), 401)
}

// A feed and a receiver of notices of a user whom only the provider knows go on without a token of it, by what it said
// last; without that, they end.
func TestFeedsOfUsersOfAProvider(t *testing.T) {
	w := present(t)
	w.way = identity.OIDC
	claims := provided().Claims("mia")
	claims["iat"], claims["exp"] = w.fake.now, w.fake.now+3600
	bearer := "Bearer " + provided().Sign(claims)
	feed := into[form.Feed](t, w.do("", "POST", "/v1/feeds", "", "Authorization", bearer), 201)
	if a := w.do("", "GET", feed.Path, ""); a.Code != 200 {
		t.Error(a.Code, a.text)
	}
	w.fake.now += 31 * 86_400
	if a := w.do("", "GET", feed.Path, ""); a.Code != 404 {
		t.Error("a user of whom nothing was heard for a month is still known:", a.Code)
	}
	claims["exp"] = w.fake.now + 60
	into[form.Me](t, w.do("", "GET", "/v1/me", "", "Authorization", "Bearer "+provided().Sign(claims)), 200)
	if a := w.do("", "GET", feed.Path, ""); a.Code != 200 {
		t.Error(a.Code, a.text)
	}
}

// A program opens a session with a token of the provider, which lasts no longer than the token.
func TestTokensOfAProviderOpenSessions(t *testing.T) {
	w := newWorld(t, api.Options{})
	b := &browser{world: w}
	a := b.send("POST", "/v1/session", "", "Authorization", "Bearer "+bearerOf("mia"))
	if me := into[form.Me](t, a, 201); me.User != "mia" || me.Way != "oidc" || me.Expires != form.TimeOf(start+3660) {
		t.Errorf("%+v", me)
	}
	b.cookies = a.Result().Cookies()
	into[form.Me](t, b.send("GET", "/v1/me", ""), 200)
}
