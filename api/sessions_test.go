package api_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/identity"
)

// sessions are those that a browser sees.
func (b *browser) sessions(t *testing.T, query string) []form.Session {
	t.Helper()
	return into[form.Sessions](t, b.send("GET", "/v1/sessions"+query, ""), 200).Sessions
}

// Users see where they are logged in, which of these is theirs now, and end one or all others; operators see and end all.
func TestSessionsAreSeenAndEnded(t *testing.T) {
	w := newWorld(t, api.Options{})
	var browsers []*browser
	for range 3 {
		b := &browser{world: w}
		b.login(t, "alice")
		browsers = append(browsers, b)
		w.fake.pass(600)
	}
	other := &browser{world: w}
	a := other.send("POST", "/v1/session", "", "Authorization", "Bearer "+w.tokens["bob"], "User-Agent", "Mozilla/5.0 (X11)\x01"+strings.Repeat("é", 400), "Remote", "198.51.100.7:99")
	other.cookies = a.Result().Cookies()
	if list := other.sessions(t, ""); len(list) != 1 || list[0].User != "bob" || list[0].Agent != "Mozilla/5.0 (X11)" || list[0].Address != "198.51.100.7" || list[0].Way != "token" || list[0].Token == "" || !list[0].Current {
		t.Errorf("%+v", list)
	}
	me := browsers[1]
	list := me.sessions(t, "")
	if len(list) != 3 {
		t.Fatalf("%+v", list)
	}
	for i, s := range list { // the one used last first: that is this one
		if s.User != "alice" || s.Current != (i == 0) {
			t.Errorf("%+v", s)
		}
	}
	if s := list[0]; s.Created != form.TimeOf(start+600) || s.Used != form.TimeOf(start+1800) || s.Expires != form.TimeOf(start+600+7*86_400) || s.Scopes != nil {
		t.Errorf("%+v", s)
	}
	wantProblem(t, me.send("GET", "/v1/sessions?user=bob", ""), 403)
	wantProblem(t, me.send("DELETE", "/v1/sessions?user=bob", ""), 403)
	theirs := other.sessions(t, "")[0].ID
	wantProblem(t, me.send("DELETE", "/v1/sessions/"+theirs, ""), 404, "no session")
	if a := me.send("DELETE", "/v1/sessions/"+list[2].ID, ""); a.Code != 204 {
		t.Fatal(a.text)
	}
	wantProblem(t, me.send("DELETE", "/v1/sessions/"+list[2].ID, ""), 404)
	wantProblem(t, browsers[0].send("GET", "/v1/me", ""), 401)
	if ended := into[form.EndedSessions](t, me.send("DELETE", "/v1/sessions", ""), 200); ended.Ended != 1 {
		t.Error(ended)
	}
	wantProblem(t, browsers[2].send("GET", "/v1/me", ""), 401)
	into[form.Me](t, other.send("GET", "/v1/me", ""), 200)
	root := &browser{world: w}
	root.login(t, "root")
	if all := root.sessions(t, ""); len(all) != 3 {
		t.Errorf("%+v", all)
	}
	if hers := root.sessions(t, "?user=alice"); len(hers) != 1 || hers[0].Current {
		t.Errorf("%+v", hers)
	}
	if a := root.send("DELETE", "/v1/sessions/"+theirs, ""); a.Code != 204 {
		t.Error(a.text)
	}
	wantProblem(t, other.send("GET", "/v1/me", ""), 401)
	if ended := into[form.EndedSessions](t, root.send("DELETE", "/v1/sessions?user=alice", ""), 200); ended.Ended != 1 {
		t.Error(ended)
	}
	wantProblem(t, me.send("GET", "/v1/me", ""), 401)
	if left := root.sessions(t, ""); len(left) != 1 || !left[0].Current {
		t.Errorf("%+v", left)
	}
	w.fake.pass(7 * 86_400)
	if left := into[form.Sessions](t, w.do("root", "GET", "/v1/sessions", ""), 200).Sessions; len(left) != 0 {
		t.Errorf("sessions that are over are told: %+v", left)
	}
}

// Sessions say how their user is known: by the machine or by a provider. Behind a proxy that the configuration names, the
// address is the one that the proxy reports.
func TestSessionsOfOtherWaysAreSeen(t *testing.T) {
	public, err := url.Parse("https://hpc.example.org/berth/")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, api.Options{Public: public})
	for way, words := range map[identity.Way]string{identity.Socket: "machine", identity.OIDC: "oidc"} {
		w.way = way
		link := into[form.Link](t, w.do("bob", "POST", "/v1/session/links", ""), 201)
		w.way = ""
		a := w.do("", "POST", "/v1/session", `{"code":"`+link.Code+`"}`)
		into[form.Me](t, a, 201)
		b := &browser{world: w, cookies: a.Result().Cookies()}
		list := b.sessions(t, "")
		at := slices.IndexFunc(list, func(s form.Session) bool { return s.Current })
		if at < 0 || list[at].Way != words || list[at].Token != "" {
			t.Errorf("%+v", list)
		}
	}
	for said, want := range map[string]string{"192.0.2.1, 203.0.113.9": "203.0.113.9", "fe80::1%" + strings.Repeat("z", 4000): "fe80::1"} {
		b := &browser{world: w, host: "hpc.example.org"}
		a := b.send("POST", "/v1/session", "", "Authorization", "Bearer "+w.tokens["alice"], "Origin", "https://hpc.example.org", "X-Forwarded-For", said)
		if b.cookies = a.Result().Cookies(); a.Code != 201 {
			t.Fatal(a.text)
		}
		list := b.sessions(t, "")
		if at := slices.IndexFunc(list, func(s form.Session) bool { return s.Current }); at < 0 || list[at].Address != want {
			t.Errorf("%s: %+v", want, list)
		}
	}
}

// A stream of events ends with its session, also when that is ended elsewhere.
func TestStreamsEndWithSessionsThatAreEnded(t *testing.T) {
	w := newWorld(t, api.Options{})
	b := &browser{world: w}
	b.login(t, "alice")
	server := w.serve(t)
	l := w.listen(t, server.URL, "", "/v1/events", "Cookie", b.cookies[0].Name+"="+b.cookies[0].Value)
	if text, open := l.next(); !open || !strings.HasPrefix(text, ": events") {
		t.Fatal(text)
	}
	if ended := into[form.EndedSessions](t, w.do("alice", "DELETE", "/v1/sessions", ""), 200); ended.Ended != 1 {
		t.Fatal(ended)
	}
	if text, open := l.next(); !open || !strings.HasPrefix(text, "event: end") {
		t.Errorf("%q %t", text, open)
	}
}
