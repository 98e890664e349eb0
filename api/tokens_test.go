package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// make has root make a token, and returns it.
func (w *world) made(t *testing.T, body string) form.Token {
	t.Helper()
	made := into[form.Token](t, w.do("root", "POST", "/v1/tokens", body), http.StatusCreated)
	w.tokens[made.User] = made.Secret
	return made
}

func TestTokensExpire(t *testing.T) {
	w := newWorld(t, api.Options{})
	eve := w.made(t, `{"user":"eve","expires":"2h"}`)
	if want := form.TimeOf(start + 7200); eve.Expires != want {
		t.Fatalf("it expires at %v, want %v", eve.Expires, want)
	}
	if me := into[form.Me](t, w.do("eve", "GET", "/v1/me", ""), 200); me.Expires != eve.Expires {
		t.Error(me)
	}
	dan := w.made(t, `{"user":"dan","expires":"`+time.Unix(int64(start)+9000, 0).UTC().Format(time.RFC3339)+`"}`)
	w.fake.pass(7199)
	if a := w.do("eve", "GET", "/v1/me", ""); a.Code != 200 {
		t.Error("a second before:", a.text)
	}
	w.fake.pass(1)
	wantProblem(t, w.do("eve", "GET", "/v1/me", ""), 401, "has expired at ")
	if a := w.do("dan", "GET", "/v1/me", ""); a.Code != 200 {
		t.Error("another token expires with it:", a.text)
	}
	list := into[form.Tokens](t, w.do("root", "GET", "/v1/tokens", ""), 200)
	if !slices.ContainsFunc(list.Tokens, func(k form.Token) bool { return k.ID == dan.ID && k.Expires == dan.Expires }) {
		t.Error(list)
	}
	for _, wrong := range []string{`"soon"`, `"2026-11-21T12:00:00"`, `0`, `"2020-01-01T00:00:00Z"`} {
		wantProblem(t, w.do("root", "POST", "/v1/tokens", `{"user":"eve","expires":`+wrong+`}`), 422, "expires: ")
	}
}

// A stream of events ends when its token expires, by the service's time, though nothing
// happens, and no other does.
func TestAnExpiredTokenEndsItsStreams(t *testing.T) {
	w := newWorld(t, api.Options{Heartbeat: 10 * time.Millisecond})
	server := w.serve(t)
	w.made(t, `{"user":"eve","role":"operator","expires":3600}`)
	eve, alice := w.listen(t, server.URL, "eve", "/v1/events"), w.listen(t, server.URL, "alice", "/v1/events")
	for _, l := range []*listener{eve, alice} {
		if text, open := l.next(); !open || strings.Contains(text, "event: end") {
			t.Fatal("it ended at once", text)
		}
	}
	w.fake.pass(3600)
	for {
		text, open := eve.next()
		if !open {
			t.Fatal("it ended without a word")
		}
		if strings.Contains(text, "event: end") {
			if !strings.Contains(text, "has expired at ") {
				t.Error(text)
			}
			break
		}
	}
	if text, open := alice.next(); !open || strings.Contains(text, "event: end") {
		t.Errorf("alice reads %q", text)
	}
}

// What a token is limited to is what an operator may use who makes it, and they have to
// do with tokens for their sites alone.
func TestOperatorsOfSomeSitesMakeTokensForThese(t *testing.T) {
	w := newWorld(t, api.Options{})
	wantProblem(t, w.do("root", "POST", "/v1/tokens", `{"user":"eve","sites":["nowhere"]}`), 422, "sites: ", "want some of cm5")
	wantProblem(t, w.do("root", "POST", "/v1/tokens", `{"user":"eve","sites":[]}`), 422, "sites: ")
	olga := w.made(t, `{"user":"olga","role":"operator","sites":["cm5"]}`)
	if !slices.Equal(olga.Sites, []string{"cm5"}) {
		t.Fatal(olga)
	}
	eve := into[form.Token](t, w.do("olga", "POST", "/v1/tokens", `{"user":"eve"}`), http.StatusCreated)
	if !slices.Equal(eve.Sites, []string{"cm5"}) {
		t.Errorf("an operator of some sites makes a token of %v", eve.Sites)
	}
	list := into[form.Tokens](t, w.do("olga", "GET", "/v1/tokens", ""), 200)
	if len(list.Tokens) != 2 {
		t.Errorf("%+v", list)
	}
	other := w.made(t, `{"user":"zoe"}`)
	wantProblem(t, w.do("olga", "DELETE", "/v1/tokens/"+other.ID, ""), 404)
	if a := w.do("olga", "DELETE", "/v1/tokens/"+eve.ID, ""); a.Code != http.StatusNoContent {
		t.Error(a.text)
	}
}

// A role sees the sites that the configuration opens to it; of two that are about
// the same caller the narrower counts, and a token opens no further ones.
func TestRolesAreLimitedToSites(t *testing.T) {
	w := newWorld(t, api.Options{Access: []service.Access{
		{Scope: policy.Scope{Role: "viewer"}, Sites: service.NewSiteSet([]string{"elsewhere"})},
		{Scope: policy.Scope{User: "alice"}, Sites: service.NewSiteSet([]string{"cm5", "elsewhere"})},
	}})
	for user, want := range map[string][]string{"vera": {"elsewhere"}, "alice": {"cm5", "elsewhere"}, "bob": nil, "root": nil} {
		if me := into[form.Me](t, w.do(user, "GET", "/v1/me", ""), 200); !slices.Equal(me.Sites, want) {
			t.Errorf("%s sees %v, want %v", user, me.Sites, want)
		}
	}
	w.made(t, `{"user":"alice","sites":["cm5"]}`)
	if me := into[form.Me](t, w.do("alice", "GET", "/v1/me", ""), 200); !slices.Equal(me.Sites, []string{"cm5"}) {
		t.Errorf("alice sees %v", me.Sites)
	}
}

func TestQuotas(t *testing.T) {
	w := newWorld(t, api.Options{})
	lead, _ := policy.LimitNamed(policy.LimitLead)
	hours, _ := policy.LimitNamed(policy.LimitPESeconds)
	w.fake.allowed = []service.Allowed{{LimitKind: lead, Limited: true, Value: 86_400}, {LimitKind: hours, Counted: true, Used: 5400, Held: 1800, Frees: 1_800_000_000}}
	got := into[form.Quotas](t, w.do("alice", "GET", "/v1/quotas", ""), 200)
	own := got.Quotas
	if len(got.Shared) != 1 || got.Shared[0].Account != "phys" {
		t.Errorf("the accounts of alice: %+v", got.Shared)
	}
	if len(own) != 1 || own[0].User != "alice" || own[0].Role != "user" || len(own[0].Limits) != 2 {
		t.Fatalf("%+v", own)
	}
	if l := own[0].Limits[0]; l.Limit != "lead" || l.Unit != "seconds" || l.Allowed == nil || *l.Allowed != 86_400 || l.Used != nil {
		t.Errorf("%+v", l)
	}
	if l := own[0].Limits[1]; l.Limit != "pe_hours" || l.Allowed != nil || l.Used == nil || *l.Used != 1.5 || l.Held == nil || *l.Held != 0.5 || l.Frees != 1_800_000_000 {
		t.Errorf("%+v", l)
	}
	var users []string
	all := into[form.Quotas](t, w.do("root", "GET", "/v1/quotas", ""), 200)
	for _, q := range all.Quotas {
		users = append(users, q.User+" "+q.Role)
	}
	if !slices.Equal(users, []string{"alice user", "bob user", "root operator"}) {
		t.Error(users)
	}
	if len(all.Shared) != 3 || all.Shared[0].Account != "phys" || len(all.Shared[0].Limits) != 2 || all.Shared[1].QOS != "high" || all.Shared[2].Partition != "gpu" {
		t.Errorf("%+v", all.Shared)
	}
	for who, path := range map[string]string{"bob": "/v1/quotas", "root": "/v1/quotas?user=alice"} {
		if q := into[form.Quotas](t, w.do(who, "GET", path, ""), 200); len(q.Shared) > 0 {
			t.Errorf("%s, %s: %+v", who, path, q.Shared)
		}
	}
}

// Who a caller is can be told while it is not known in which projects they are.
func TestMeWithoutAnswersAboutProjects(t *testing.T) {
	w := newWorld(t, api.Options{})
	w.fake.projects = service.OwnProjects{Accounts: []string{"phys"}, Default: "phys"}
	if me := into[form.Me](t, w.do("alice", "GET", "/v1/me", ""), 200); !slices.Equal(me.Accounts, []string{"phys"}) || me.DefaultAccount != "phys" {
		t.Errorf("%+v", me)
	}
	w.fake.fails = berth.Errorf(berth.Unavailable, "account", "the accounting does not answer")
	if me := into[form.Me](t, w.do("alice", "GET", "/v1/me", ""), 200); me.User != "alice" || me.Accounts != nil || me.DefaultAccount != "" {
		t.Errorf("%+v", me)
	}
}
