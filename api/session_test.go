package api_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
)

// browser sends the cookies that it was given, as a page of its origin does.
type browser struct {
	*world
	host    string
	cookies []*http.Cookie
}

func (b *browser) send(method, path, body string, headers ...string) *answer {
	r := b.ask("", method, path, body, headers...)
	if b.host != "" {
		r.Host = b.host
	}
	if at := r.Header.Get("Remote"); at != "" {
		r.RemoteAddr = at
	}
	for _, cookie := range b.cookies {
		r.AddCookie(cookie)
	}
	rec := httptest.NewRecorder()
	b.ServeHTTP(rec, r)
	return &answer{rec, rec.Body.String()}
}

// login opens a session.
func (b *browser) login(t *testing.T, user string) {
	t.Helper()
	a := b.send("POST", "/v1/session", "", "Authorization", "Bearer "+b.tokens[user])
	if got := into[form.Me](t, a, 201); got.User != user {
		t.Fatalf("%+v", got)
	}
	b.cookies = a.Result().Cookies()
}

// A token is exchanged for a cookie that no script and no other site can read or send, and
// that is good for what the token is.
func TestSessions(t *testing.T) {
	w := newWorld(t, api.Options{})
	b := &browser{world: w}
	b.login(t, "alice")
	names := map[string]bool{}
	for _, c := range b.cookies {
		names[c.Name] = true
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 7*86_400 || c.Secure != (c.Name == "__Host-berth") {
			t.Errorf("cookie %+v", c)
		}
		if c.Value == w.tokens["alice"] {
			t.Error("the cookie is the token")
		}
	}
	if len(names) != 2 || !names["__Host-berth"] || !names["berth"] {
		t.Errorf("cookies %v", names)
	}
	if me := into[form.Me](t, b.send("GET", "/v1/me", ""), 200); me.User != "alice" || me.Role != "user" || me.Expires != form.TimeOf(start+7*86_400) {
		t.Errorf("%+v", me)
	}
	if a := b.send("POST", "/v1/requests", askFor, "Origin", "http://127.0.0.1:7117", "Sec-Fetch-Site", "same-origin"); a.Code != 201 {
		t.Error(a.Code, a.text)
	}
	if a := b.send("GET", "/v1/tokens", ""); a.Code != 403 {
		t.Error("a user's session lists tokens:", a.Code)
	}
	if me := into[form.Me](t, b.send("GET", "/v1/me", "", "Authorization", "Bearer "+w.tokens["vera"]), 200); me.User != "vera" {
		t.Errorf("where both come, the bearer counts: %+v", me)
	}
	wantProblem(t, b.send("GET", "/v1/me", "", "Authorization", "Bearer "+b.cookies[0].Value), 401)
	again := b.send("POST", "/v1/session", "")
	if again.Code != 201 || len(again.Result().Cookies()) != 0 {
		t.Errorf("one who has a session gets %d and %v", again.Code, again.Result().Cookies())
	}
	for _, c := range b.cookies {
		one := &browser{world: w, cookies: []*http.Cookie{c}}
		if a := one.send("GET", "/v1/me", ""); a.Code != 200 {
			t.Errorf("%s alone: %d", c.Name, a.Code)
		}
	}
	gone := b.send("DELETE", "/v1/session", "")
	if gone.Code != 204 || len(gone.Result().Cookies()) != 2 || gone.Result().Cookies()[0].MaxAge != -1 {
		t.Errorf("%d %v", gone.Code, gone.Result().Cookies())
	}
	wantProblem(t, b.send("GET", "/v1/me", ""), 401)
	wantProblem(t, b.send("POST", "/v1/session", ""), 401)
	wantProblem(t, b.send("POST", "/v1/session", `{"code":7}`), 422, "code: ")
	wantProblem(t, b.send("POST", "/v1/session", `{"code":"`+strings.Repeat("x", 20_000)+`"}`), 413)
	wantProblem(t, b.send("POST", "/v1/session", `code=7`, "Content-Type", "application/x-www-form-urlencoded"), 415)
}

// A session that was revoked or has expired is none, whatever it was doing.
func TestSessionsThatAreOver(t *testing.T) {
	for name, end := range map[string]func(w *world, b *browser){
		"token revoked": func(w *world, _ *browser) {
			for _, k := range into[form.Tokens](t, w.do("root", "GET", "/v1/tokens", ""), 200).Tokens {
				if k.User == "alice" && !strings.HasPrefix(k.Note, "session") {
					w.do("root", "DELETE", "/v1/tokens/"+k.ID, "")
				}
			}
		},
		"session revoked": func(w *world, _ *browser) {
			for _, k := range into[form.Tokens](t, w.do("root", "GET", "/v1/tokens", ""), 200).Tokens {
				if strings.HasPrefix(k.Note, "session") {
					w.do("root", "DELETE", "/v1/tokens/"+k.ID, "")
				}
			}
		},
		"unused":  func(w *world, _ *browser) { w.fake.pass(12 * 3600) },
		"mangled": func(_ *world, b *browser) { b.cookies[0].Value, b.cookies[1].Value = "x", "berth_x" },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, api.Options{})
			b := &browser{world: w}
			b.login(t, "alice")
			if a := b.send("GET", "/v1/me", ""); a.Code != 200 {
				t.Fatal(a.Code)
			}
			end(w, b)
			for _, path := range []string{"/v1/me", "/v1/gantt?site=cm5&pool=batch", "/v1/events"} {
				wantProblem(t, b.send("GET", path, ""), 401)
			}
			wantProblem(t, b.send("POST", "/v1/requests", askFor), 401)
			if len(w.fake.made) != 0 {
				t.Error("something was made all the same")
			}
		})
	}
}

// A page of another site can do nothing with the cookie of ours, and nothing comes in under
// a name that is not ours. Programs with a token are not concerned.
func TestOtherSitesCannotAct(t *testing.T) {
	public, err := url.Parse("https://hpc.example.org/berth/")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, api.Options{Public: public})
	b := &browser{world: w}
	b.login(t, "alice")
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}, {"Origin", "http://127.0.0.1:8080"},
	} {
		wantProblem(t, b.send("POST", "/v1/requests", askFor, headers...), 403, "another site")
		wantProblem(t, b.send("POST", "/v1/session", "", append(headers, "Authorization", "Bearer "+w.tokens["alice"])...), 403, "another site")
		wantProblem(t, b.send("DELETE", "/v1/session", "", headers...), 403, "another site")
	}
	for host, want := range map[string]int{
		"127.0.0.1:7117": 200, "[::1]:7117": 200, "localhost:7117": 200, "LOCALHOST": 200, "10.1.2.3": 200, "hpc.example.org": 200, "HPC.example.org:443": 200,
		"evil.example": 421, "evil.example:7117": 421, "127.0.0.1.evil.example": 421, "xhpc.example.org": 421, "": 421,
	} {
		r := b.ask("", "GET", "/v1/me", "")
		r.Host = host
		for _, cookie := range b.cookies {
			r.AddCookie(cookie)
		}
		rec := httptest.NewRecorder()
		w.ServeHTTP(rec, r)
		if rec.Code != want {
			t.Errorf("%q: %d, want %d: %s", host, rec.Code, want, rec.Body)
		}
	}
	rebound := w.ask("alice", "GET", "/v1/me", "")
	rebound.Host = "scheduler.cluster"
	rec := httptest.NewRecorder()
	if w.ServeHTTP(rec, rebound); rec.Code != 200 {
		t.Errorf("a program with a token: %d", rec.Code)
	}
	if len(w.fake.made) != 0 {
		t.Error("something was made all the same")
	}
}

// Sessions are for who cannot be overheard.
func TestSessionsNeedHTTPSOrLoopback(t *testing.T) {
	public, err := url.Parse("https://hpc.example.org/berth/")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, api.Options{Public: public})
	token := "Bearer " + w.tokens["alice"]
	plain := &browser{world: w, host: "10.1.2.3:7117"}
	wantProblem(t, plain.send("POST", "/v1/session", "", "Authorization", token), 403, "https")
	proxied := &browser{world: w, host: "hpc.example.org"}
	a := proxied.send("POST", "/berth/v1/session", "", "Authorization", token, "Origin", "https://hpc.example.org")
	if cookies := a.Result().Cookies(); a.Code != 201 || len(cookies) != 1 || cookies[0].Name != "__Host-berth" || !cookies[0].Secure {
		t.Errorf("%d %v %s", a.Code, cookies, a.text)
	}
	proxied.cookies = a.Result().Cookies()
	for _, path := range []string{"/berth/v1/me", "/v1/me"} { // proxies take the prefix away or do not
		if a := proxied.send("GET", path, ""); a.Code != 200 {
			t.Errorf("%s: %d", path, a.Code)
		}
	}
	if a := proxied.send("GET", "/berthv1/me", ""); a.Code != 404 {
		t.Error("a path that only begins like the prefix:", a.Code)
	}
}

// A login link opens one session, soon, on the same machine.
func TestLoginLinks(t *testing.T) {
	w := newWorld(t, api.Options{})
	b := &browser{world: w}
	link := func(user string) string {
		l := into[form.Link](t, w.do(user, "POST", "/v1/session/links", ""), 201)
		if l.Expires != form.TimeOf(start+120) {
			t.Errorf("%+v", l)
		}
		return `{"code":"` + l.Code + `"}`
	}
	code := link("vera")
	a := b.send("POST", "/v1/session", code)
	if me := into[form.Me](t, a, 201); me.User != "vera" || me.Role != "viewer" {
		t.Errorf("%+v", me)
	}
	b.cookies = a.Result().Cookies()
	if a := b.send("GET", "/v1/me", ""); a.Code != 200 {
		t.Error(a.Code)
	}
	wantProblem(t, b.send("POST", "/v1/session/links", ""), 403, "session")
	b.cookies = nil
	wantProblem(t, b.send("POST", "/v1/session", code), 401, "used already")
	wantProblem(t, b.send("POST", "/v1/session", `{"code":"guess"}`), 401)
	code = link("alice")
	wantProblem(t, b.send("POST", "/v1/session", code, "X-Forwarded-For", "127.0.0.1"), 403, "machine of the service")
	wantProblem(t, b.send("POST", "/v1/session", code, "Remote", "10.1.2.3:99"), 403, "machine of the service")
	wantProblem(t, b.send("POST", "/v1/session", code, "Sec-Fetch-Site", "cross-site"), 403, "another site")
	w.fake.pass(119)
	if a := b.send("POST", "/v1/session", code); a.Code != 201 {
		t.Error("after 119 s:", a.Code)
	}
	code = into[form.Link](t, w.do("alice", "POST", "/v1/session/links", ""), 201).Code
	w.fake.pass(120)
	wantProblem(t, b.send("POST", "/v1/session", `{"code":"`+code+`"}`), 401, "two minutes")
	r := w.ask("alice", "POST", "/v1/session/links", "")
	r.RemoteAddr = "10.1.2.3:99"
	rec := httptest.NewRecorder()
	if w.ServeHTTP(rec, r); rec.Code != 403 {
		t.Error("a link for another machine:", rec.Code)
	}
}

// A stream ends with its session.
func TestStreamsEndWithTheirSession(t *testing.T) {
	w := newWorld(t, api.Options{})
	b := &browser{world: w}
	b.login(t, "alice")
	server := w.serve(t)
	l := w.listen(t, server.URL, "", "/v1/events", "Cookie", b.cookies[0].Name+"="+b.cookies[0].Value)
	if text, ok := l.next(); l.StatusCode != 200 || !ok || !strings.HasPrefix(text, ": events") {
		t.Fatal(l.StatusCode, text)
	}
	w.do("root", "POST", "/v1/tokens", `{"user":"zoe"}`) // tokens change, and this session does not
	w.reserve(t, "alice")
	if text, ok := l.next(); !ok || !strings.HasPrefix(text, "id: 1") {
		t.Fatal(text, ok)
	}
	if a := b.send("DELETE", "/v1/session", ""); a.Code != 204 {
		t.Fatal(a.Code)
	}
	if text, ok := l.next(); !ok || !strings.HasPrefix(text, "event: end") {
		t.Errorf("%q %t", text, ok)
	}
}
