package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/service"
)

// takes is the scopes that endpoints take, where that is not the one to read. Of rows that begin a call alike the last
// one counts.
var takes = []struct{ begins, scopes string }{
	{"POST /v1/requests", "reserve"},
	{"POST /v1/offers/OFFER/hold", "reserve"},
	{"PATCH /v1/reservations/ID", "reserve"},
	{"DELETE /v1/reservations/ID", "cancel"},
	{"POST /v1/reservations/ID/", "reserve"},
	{"POST /v1/reservations/ID/release", "cancel"},
	{"POST /v1/reservations/ID/run", "run"},
	{"POST /v1/session", "any"},
	{"DELETE /v1/session", "any"},
	{"GET /v1/sessions", "tokens"},
	{"DELETE /v1/sessions", "tokens"},
	{"GET /v1/sites/cm5/doctor", "operate"},
	{"PUT /v1/sites/", "operate"},
	{"POST /v1/sites/", "operate"},
	{"POST /v1/maintenance", "operate"},
	{"DELETE /v1/maintenance", "operate"},
	{"POST /v1/clock/accept", "operate"},
	{"POST /v1/lead", "operate"},
	{"POST /v1/journal/compact", "operate"},
	{"GET /v1/me", "any"},
	{"POST /v1/lab/", "run"},
	{"DELETE /v1/lab/", "run"},
	{"POST /v1/series", "reserve"},
	{"POST /v1/series/SERIES/cancel", "cancel"},
	{"POST /v1/workflows", "reserve run"},
	{"POST /v1/workflows/plans", "read"},
	{"POST /v1/workflows/offers", "read"},
	{"DELETE /v1/workflows/FLOW", "cancel"},
	{"GET /v1/tokens", "tokens"},
	{"POST /v1/tokens", "tokens"},
	{"PATCH /v1/tokens", "tokens"},
	{"DELETE /v1/tokens", "tokens"},
	{"GET /v1/service-accounts", "tokens"},
	{"POST /v1/service-accounts", "tokens"},
	{"POST /v1/service-accounts/svc-alice/tokens", "read tokens"}, // there has to be something to hand on
	{"DELETE /v1/service-accounts", "tokens"},
	{"GET /v1/feeds", "feeds"},
	{"POST /v1/feeds", "feeds"},
	{"DELETE /v1/feeds", "feeds"},
	{"GET /v1/hooks", "feeds"},
	{"POST /v1/hooks", "feeds"},
	{"PATCH /v1/hooks", "feeds"},
	{"DELETE /v1/hooks", "feeds"},
}

func (r *right) takes() []string {
	scopes := "read"
	for _, t := range takes {
		if strings.HasPrefix(r.method+" "+r.path, t.begins) {
			scopes = t.scopes
		}
	}
	return strings.Fields(scopes)
}

// TestRoleEndpointOwnerScope asks with a token of the scopes that are needed alone, which has to do, and of all others, which must not whatever the role is: a
// scope lets do no more than the role, and nothing is done without it. An operator, or else one of three users in turn, asks about each row.
func TestRoleEndpointOwnerScope(t *testing.T) {
	names, _ := token.ScopeNames()
	closed := newWorld(t, api.Options{Limits: unlimited})
	for i := range rights {
		row := &rights[i]
		if row.nobody != 401 { // the endpoint needs no token
			continue
		}
		needed := row.takes()
		others := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(needed, name) })
		user := []string{"root", "alice", "root", "bob", "root", "vera"}[i%6]
		want := map[string]int{"vera": row.vera, "bob": row.bob, "alice": row.alice, "root": row.operator}[user]
		try := func(held []string) {
			t.Run(strings.ReplaceAll(fmt.Sprintf("%s %s %s %s", row.method, row.path, user, strings.Join(held, " ")), "/", "_"), func(t *testing.T) {
				testRight(t, "", row, user, want, func(w *world) { w.narrow(t, user, held) })
			})
		}
		if needed[0] == "any" {
			try(names[:1])
			continue
		}
		try(needed)
		for _, who := range []string{"root", "alice", "bob", "vera"} { // before it is looked at what the path is about
			closed.narrow(t, who, others)
			if a := closed.do(who, row.method, row.path, row.body); a.Code != 403 {
				t.Errorf("%s %s by %s with %v: status %d, want 403: %s", row.method, row.path, who, others, a.Code, a.text)
			}
		}
	}
	if len(closed.fake.made) != 0 {
		t.Error("something was made all the same")
	}
}

// narrow has a user ask with a token of some scopes from now on.
func (w *world) narrow(t *testing.T, user string, scopes []string) {
	t.Helper()
	role := map[string]service.Role{"vera": service.Viewer, "root": service.Operator}[user]
	if role == "" {
		role = service.User
	}
	set, err := token.NewScopes(scopes)
	if err == nil {
		w.tokens[user], _, err = w.store.Add(token.Wanted{User: user, Role: role, Scopes: set}, start)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// What an endpoint takes is in its description.
func TestScopesAreDescribed(t *testing.T) {
	w := newWorld(t, api.Options{})
	var doc struct {
		Paths map[string]map[string]struct{ Description string } `json:"paths"`
	}
	if err := json.Unmarshal([]byte(w.do("", "GET", "/openapi.json", "").text), &doc); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		"get /v1/reservations": "viewer or more, which has the scope read.", "post /v1/workflows": "user or more, which has the scope reserve and run.", "get /v1/me": "of any scope.",
	} {
		method, path, _ := strings.Cut(at, " ")
		if got := doc.Paths[path][method].Description; !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q at its end", at, got, want)
		}
	}
	for path, operations := range doc.Paths {
		for method, o := range operations {
			if strings.Contains(o.Description, "of all scopes") {
				t.Errorf("%s %s has no scope", method, path)
			}
		}
	}
}

// A token makes none that is good for more, and a session that it opens is good for no more.
func TestScopesAreHandedOn(t *testing.T) {
	w := newWorld(t, api.Options{})
	admin := w.made(t, `{"user":"olga","role":"operator","scopes":["tokens","read"]}`)
	if !slices.Equal(admin.Scopes, []string{"read", "tokens"}) {
		t.Fatal(admin)
	}
	eve := into[form.Token](t, w.do("olga", "POST", "/v1/tokens", `{"user":"eve"}`), 201)
	if !slices.Equal(eve.Scopes, admin.Scopes) {
		t.Errorf("%v makes %v", admin.Scopes, eve.Scopes)
	}
	w.tokens["eve"] = eve.Secret
	wantProblem(t, w.do("olga", "POST", "/v1/tokens", `{"user":"eve","scopes":["cancel"]}`), 422, "scopes: cancel; the token with which you ask is for read,tokens alone")
	wantProblem(t, w.do("olga", "PATCH", "/v1/tokens/"+eve.ID, `{"scopes":["cancel","read"]}`), 422, "scopes: ")
	wantProblem(t, w.do("root", "POST", "/v1/tokens", `{"user":"eve","scopes":["look"]}`), 422, "scopes: ", "want some of read, reserve")
	wantProblem(t, w.do("root", "POST", "/v1/tokens", `{"user":"eve","scopes":[]}`), 422, "scopes: ")
	wantProblem(t, w.do("root", "PATCH", "/v1/tokens/"+eve.ID, `{}`), 422, "scopes: missing")
	if me := into[form.Me](t, w.do("eve", "GET", "/v1/me", ""), 200); !slices.Equal(me.Scopes, eve.Scopes) {
		t.Error(me)
	}
	b := &browser{world: w}
	b.login(t, "eve")
	wantProblem(t, b.send("POST", "/v1/requests", askFor), 403, "scope: ", "this takes reserve")
	link := into[form.Link](t, w.do("eve", "POST", "/v1/session/links", ""), 201)
	linked := &browser{world: w}
	a := linked.send("POST", "/v1/session", `{"code":"`+link.Code+`"}`)
	if linked.cookies = a.Result().Cookies(); a.Code != 201 {
		t.Fatal(a.text)
	}
	wantProblem(t, linked.send("POST", "/v1/requests", askFor), 403, "scope: ")
	into[form.Page](t, linked.send("GET", "/v1/reservations", ""), 200)
	list := into[form.Tokens](t, w.do("root", "GET", "/v1/tokens", ""), 200).Tokens
	var root string
	for _, k := range list {
		if k.User == "root" {
			root = k.ID
		}
	}
	wantProblem(t, w.do("root", "PATCH", "/v1/tokens/"+root, `{"scopes":["read"]}`), 409, "only token of an operator")
}

// A stream ends when its token is good for something else, and that of a session with it.
func TestStreamsEndWhenScopesChange(t *testing.T) {
	w := newWorld(t, api.Options{})
	eve := w.made(t, `{"user":"eve","scopes":["read","reserve","tokens"]}`)
	b := &browser{world: w}
	b.login(t, "eve")
	server := w.serve(t)
	listeners := []*listener{
		w.listen(t, server.URL, "eve", "/v1/events"), w.listen(t, server.URL, "", "/v1/events", "Cookie", b.cookies[0].Name+"="+b.cookies[0].Value),
	}
	for _, l := range listeners {
		if text, open := l.next(); !open || !strings.HasPrefix(text, ": events") {
			t.Fatal(text)
		}
	}
	w.reserve(t, "eve")
	changed := into[form.Token](t, w.do("root", "PATCH", "/v1/tokens/"+eve.ID, `{"scopes":["read"]}`), 200)
	if changed.ID != eve.ID || !slices.Equal(changed.Scopes, []string{"read"}) {
		t.Error(changed)
	}
	for i, l := range listeners {
		for {
			text, open := l.next()
			if !open {
				t.Fatalf("stream %d ended without a word", i)
			}
			if strings.HasPrefix(text, "event: end") {
				break
			}
		}
	}
	wantProblem(t, b.send("POST", "/v1/requests", askFor), 403, "scope: ")
}
