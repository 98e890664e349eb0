package api_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// robot has a user make a service account and a token of it, with which it asks from now on.
func (w *world) robot(t *testing.T, owner, name, role, scopes string) form.Token {
	t.Helper()
	into[form.ServiceAccount](t, w.do(owner, "POST", "/v1/service-accounts", `{"name":"`+name+`","role":"`+role+`"}`), 201)
	made := into[form.Token](t, w.do(owner, "POST", "/v1/service-accounts/"+name+"/tokens", scopes), 201)
	w.tokens[name] = made.Secret
	return made
}

// A service account has what it reserves to itself; its tokens expire, and it makes none.
func TestServiceAccounts(t *testing.T) {
	w := newWorld(t, api.Options{})
	made := w.robot(t, "alice", "svc-ci", "user", "")
	if made.User != "svc-ci" || made.Role != "user" || made.Expires != form.TimeOf(start+90*86_400) || !slices.Equal(made.Scopes, strings.Fields("read reserve cancel run feeds operate")) {
		t.Errorf("%+v", made)
	}
	if me := into[form.Me](t, w.do("svc-ci", "GET", "/v1/me", ""), 200); me.User != "svc-ci" || me.Role != "user" {
		t.Errorf("%+v", me)
	}
	if answer := into[form.Answer](t, w.do("svc-ci", "POST", "/v1/requests", askFor), 201); answer.Reservation.User != "svc-ci" {
		t.Errorf("%+v", answer.Reservation)
	}
	wantProblem(t, w.do("svc-ci", "POST", "/v1/requests", `{"user":"alice",`+askFor[1:]), 403)
	for _, call := range []string{"GET /v1/service-accounts", "POST /v1/service-accounts/svc-ci/tokens", "GET /v1/tokens"} {
		method, path, _ := strings.Cut(call, " ")
		wantProblem(t, w.do("svc-ci", method, path, ""), 403)
	}
	wantProblem(t, w.do("bob", "POST", "/v1/service-accounts", `{"name":"svc-ci"}`), 409, "there is a service account svc-ci already")
	wantProblem(t, w.do("alice", "POST", "/v1/service-accounts", `{"name":"bob"}`), 422, "begins with svc-")
	wantProblem(t, w.do("alice", "POST", "/v1/service-accounts", `{"name":"svc-x","role":"king"}`), 422, "role: ")
	wantProblem(t, w.do("root", "POST", "/v1/service-accounts", `{"name":"svc-x","owner":"svc-ci"}`), 422, "owner: ")
	wantProblem(t, w.do("alice", "POST", "/v1/service-accounts/svc-ci/tokens", `{"scopes":["tokens"]}`), 422, "scopes: tokens; a token of a service account")
	wantProblem(t, w.do("alice", "POST", "/v1/service-accounts/svc-ci/tokens", `{"user":"root"}`), 422, "user: ")
	wantProblem(t, w.do("root", "POST", "/v1/tokens", `{"user":"svc-ci"}`), 422, "berth service-account token")
	w.made(t, `{"user":"svc-person"}`)
	wantProblem(t, w.do("alice", "POST", "/v1/service-accounts", `{"name":"svc-person"}`), 409, "there is a user svc-person already")
	lists := map[string]int{"alice": 1, "bob": 0, "root": 1}
	for user, want := range lists {
		list := into[form.ServiceAccounts](t, w.do(user, "GET", "/v1/service-accounts", ""), 200).Accounts
		if len(list) != want || want > 0 && (len(list[0].Tokens) != 1 || list[0].Tokens[0].Secret != "" || list[0].Owner != "alice") {
			t.Errorf("%s sees %+v", user, list)
		}
	}
	feed := into[form.Feed](t, w.do("svc-ci", "POST", "/v1/feeds", ""), 201)
	if a := w.do("", "GET", feed.Path, ""); a.Code != 200 {
		t.Error(a.Code, a.text)
	}
	if a := w.do("alice", "DELETE", "/v1/service-accounts/svc-ci", ""); a.Code != 204 {
		t.Fatal(a.text)
	}
	wantProblem(t, w.do("svc-ci", "GET", "/v1/me", ""), 401)
	wantProblem(t, w.do("", "GET", feed.Path, ""), 404)
	wantProblem(t, w.do("bob", "POST", "/v1/service-accounts", `{"name":"svc-ci"}`), 409, "was a service account of another user")
	w.fake.users = []string{"svc-ci"} // whose reservations stay
	into[form.ServiceAccount](t, w.do("alice", "POST", "/v1/service-accounts", `{"name":"svc-ci"}`), 201)
	wantProblem(t, w.do("svc-ci", "GET", "/v1/me", ""), 401)
	for _, call := range []string{"root DELETE /v1/service-accounts/svc-ci", "alice DELETE /v1/service-accounts/svc-ci"} {
		by := strings.Fields(call)
		if a := w.do(by[0], by[1], by[2], ""); a.Code != map[string]int{"root": 204, "alice": 404}[by[0]] {
			t.Error(call, a.Code, a.text)
		}
	}
	into[form.ServiceAccount](t, w.do("root", "POST", "/v1/service-accounts", `{"name":"svc-ci","owner":"bob"}`), 201)
}

// A user makes no service account whose name is that of a user already: one of the machine, or one with reservations. An operator names one after
// an account of the machine, as which its tasks run then.
func TestServiceAccountsTakeNoNamesOfUsers(t *testing.T) {
	held := accounts
	defer func() { accounts = held }()
	accounts = append(slices.Clone(accounts), identity.Account{Name: "svc-backup", UID: 1010})
	w := newWorld(t, api.Options{})
	add := func(user, name string) *answer {
		return w.do(user, "POST", "/v1/service-accounts", `{"name":"`+name+`","owner":"alice"}`)
	}
	wantProblem(t, add("alice", "svc-backup"), 403, "name: svc-backup is an account of the machine")
	wantProblem(t, add("alice", "svc-unanswered"), 503, "does not answer")
	w.fake.users = []string{"bob", "svc-held"}
	wantProblem(t, add("alice", "svc-held"), 409, "name: there is a user svc-held already")
	into[form.ServiceAccount](t, add("alice", "svc-free"), 201)
	for _, name := range []string{"svc-backup", "svc-unanswered"} {
		into[form.ServiceAccount](t, add("root", name), 201)
	}
	wantProblem(t, add("root", "svc-held"), 409, "name: there is a user svc-held already")
}

// No person logs in under the name of a service account: not in a browser, and in no other way.
func TestNoPersonIsAServiceAccount(t *testing.T) {
	held := accounts
	defer func() { accounts = held }()
	accounts = append(slices.Clone(accounts), identity.Account{Name: "svc-ci", UID: 1999001})
	w := newWorld(t, api.Options{})
	w.robot(t, "root", "svc-ci", "user", "")
	bearer := []string{"Authorization", "Bearer " + w.tokens["svc-ci"]}
	wantProblem(t, w.do("", "POST", "/v1/session", "", bearer...), 403, "no person logs in")
	wantProblem(t, w.do("svc-ci", "POST", "/v1/session/links", ""), 403, "no person logs in")
	for _, way := range []identity.Way{identity.Socket, identity.SlurmJWT} {
		w.way = way
		wantProblem(t, w.do("svc-ci", "GET", "/v1/me", ""), 403, "no person logs in")
	}
	w.way = ""
	into[form.Me](t, w.do("svc-ci", "GET", "/v1/me", ""), 200)
	secret, _, err := w.store.OpenMachineSession("svc-ci", service.User, 0, token.Came{}, start)
	if err != nil {
		t.Fatal(err)
	}
	wantProblem(t, w.do("", "GET", "/v1/me", "", "Cookie", "berth="+secret), 403, "no person logs in")
}

// A service account may do no more than its owner at the time.
func TestServiceAccountsFollowTheirOwner(t *testing.T) {
	w := newWorld(t, api.Options{})
	olga := w.made(t, `{"user":"olga","role":"operator"}`)
	w.robot(t, "olga", "svc-ops", "operator", "")
	if a := w.do("svc-ops", "POST", "/v1/sites/cm5/nodes/n1/resume", ""); a.Code != 204 {
		t.Fatal(a.text)
	}
	wantProblem(t, w.do("svc-ops", "POST", "/v1/tokens", `{"user":"eve"}`), 403, "scope: ")
	w.made(t, `{"user":"olga","role":"user","sites":["cm5"]}`)
	if a := w.do("root", "DELETE", "/v1/tokens/"+olga.ID, ""); a.Code != 204 {
		t.Fatal(a.text)
	}
	wantProblem(t, w.do("svc-ops", "POST", "/v1/sites/cm5/nodes/n1/resume", ""), 403, "takes the role of operator")
	if me := into[form.Me](t, w.do("svc-ops", "GET", "/v1/me", ""), 200); me.Role != "user" || !slices.Equal(me.Sites, []string{"cm5"}) {
		t.Errorf("%+v", me)
	}
	feed := into[form.Feed](t, w.do("svc-ops", "POST", "/v1/feeds", ""), 201)
	for _, e := range w.store.List() {
		if e.User == "olga" {
			if err := w.store.Revoke(e.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	wantProblem(t, w.do("svc-ops", "GET", "/v1/me", ""), 403, "is of olga, who has no role here any more")
	wantProblem(t, w.do("", "GET", feed.Path, ""), 404)
	w.made(t, `{"user":"olga","role":"viewer"}`)
	if me := into[form.Me](t, w.do("svc-ops", "GET", "/v1/me", ""), 200); me.Role != "viewer" {
		t.Errorf("%+v", me)
	}
}

// A token of a service account is good for no more than what it is made with: not in its role, its sites or its scopes.
func TestTokensOfServiceAccountsAreNoMoreThanTheirMaker(t *testing.T) {
	w := newWorld(t, api.Options{})
	whole := w.made(t, `{"user":"olga","role":"operator"}`).Secret
	w.robot(t, "olga", "svc-ops", "operator", "")
	w.tokens["narrow"] = w.made(t, `{"user":"olga","role":"user","scopes":["read","operate","tokens"],"sites":["cm5"]}`).Secret
	made := into[form.Token](t, w.do("narrow", "POST", "/v1/service-accounts/svc-ops/tokens", ""), 201)
	if made.Role != "user" || !slices.Equal(made.Sites, []string{"cm5"}) || !slices.Equal(made.Scopes, []string{"read", "operate"}) {
		t.Errorf("%+v", made)
	}
	w.tokens["svc-ops"] = made.Secret
	wantProblem(t, w.do("svc-ops", "POST", "/v1/sites/cm5/nodes/n1/resume", ""), 403, "takes the role of operator")
	w.tokens["olga"] = whole
	made = into[form.Token](t, w.do("olga", "POST", "/v1/service-accounts/svc-ops/tokens", ""), 201)
	if made.Role != "operator" {
		t.Errorf("%+v", made)
	}
}

// A token that renews another one has its note, its role, its sites and its scopes, and ends it after a day, or after the overlap that is asked for;
// never later than it would have ended.
func TestTokensOfServiceAccountsAreRenewed(t *testing.T) {
	w := newWorld(t, api.Options{})
	w.robot(t, "alice", "svc-other", "user", "")
	other := w.store.Of("svc-other", start)[0]
	w.robot(t, "alice", "svc-ci", "user", "")
	tokens := func(body string) *answer { return w.do("alice", "POST", "/v1/service-accounts/svc-ci/tokens", body) }
	narrow := into[form.Token](t, tokens(`{"note":"runner","scopes":["read","cancel"],"sites":["cm5"],"expires":"30d"}`), 201)
	bearer := func(of form.Token) []string { return []string{"Authorization", "Bearer " + of.Secret} }
	endOf := func(id string) (end berth.Time) {
		for _, e := range w.store.List() {
			if e.ID == id {
				end = e.Expires
			}
		}
		return end
	}
	day := into[form.Token](t, tokens(`{"renews":"`+narrow.ID+`"}`), 201)
	if day.Note != "runner" || !slices.Equal(day.Scopes, []string{"read", "cancel"}) || !slices.Equal(day.Sites, []string{"cm5"}) || day.Role != "user" || day.Expires != form.TimeOf(start+90*86_400) {
		t.Errorf("%+v", day)
	}
	if end := endOf(narrow.ID); end != start+86_400 {
		t.Errorf("the old one is good until %d, want a day", end)
	}
	into[form.Me](t, w.do("", "GET", "/v1/me", "", bearer(narrow)...), 200)
	hour := into[form.Token](t, tokens(`{"renews":"`+day.ID+`","overlap":"1h","note":"other runner","expires":"2h"}`), 201)
	if end := endOf(day.ID); end != start+3600 || hour.Note != "other runner" || hour.Expires != form.TimeOf(start+7200) {
		t.Errorf("the old one is good until %d, want an hour; %+v", end, hour)
	}
	last := into[form.Token](t, tokens(`{"renews":"`+hour.ID+`","overlap":"9d"}`), 201)
	if end := endOf(hour.ID); end != start+7200 {
		t.Errorf("the old one is good until %d, want two hours, as before", end)
	}
	feed := into[form.Feed](t, w.do("", "POST", "/v1/feeds", "", bearer(into[form.Token](t, tokens(`{"scopes":["read","feeds"]}`), 201))...), 201)
	into[form.Token](t, tokens(`{"renews":"`+last.ID+`","overlap":"0s"}`), 201)
	wantProblem(t, w.do("", "GET", "/v1/me", "", bearer(last)...), 401)
	if a := w.do("", "GET", feed.Path, ""); a.Code != 200 {
		t.Error("a feed of another token ended", a.Code, a.text)
	}
	for body, words := range map[string]string{
		`{"renews":"` + last.ID + `"}`:                                 "renews: no token " + `"` + last.ID + `" of svc-ci`,
		`{"renews":"` + other.ID + `"}`:                                "of svc-ci",
		`{"renews":"` + day.ID + `","scopes":["read"]}`:                "scopes: a token has those of the one that it renews",
		`{"renews":"` + day.ID + `","sites":["cm5"]}`:                  "sites: a token has those of the one that it renews",
		`{"overlap":"1h"}`:                                             "overlap: no token is renewed",
		`{"renews":"` + day.ID + `","overlap":"-1h"}`:                  "overlap: ",
		`{"renews":"` + day.ID + `","expires":"2000-01-01T00:00:00Z"}`: "expires: ",
	} {
		wantProblem(t, tokens(body), 422, words)
	}
	if end := endOf(day.ID); end != start+3600 {
		t.Errorf("refused renewals have changed the end to %d", end)
	}
	w.tokens["reader"] = w.made(t, `{"user":"alice","scopes":["read","tokens"]}`).Secret
	wantProblem(t, w.do("reader", "POST", "/v1/service-accounts/svc-ci/tokens", `{"renews":"`+day.ID+`"}`), 422, "scopes: ")
}

// One that is renewed without an overlap makes room for the next, with the feeds that were made with it.
func TestRenewingAtOnceMakesRoom(t *testing.T) {
	w := newWorld(t, api.Options{})
	first := w.robot(t, "alice", "svc-ci", "user", "")
	feed := into[form.Feed](t, w.do("svc-ci", "POST", "/v1/feeds", ""), 201)
	var err error
	for err == nil {
		_, _, err = w.store.AddAccountToken("svc-ci", token.Wanted{}, start)
	}
	tokens := func(body string) *answer { return w.do("alice", "POST", "/v1/service-accounts/svc-ci/tokens", body) }
	wantProblem(t, tokens(`{"renews":"`+first.ID+`"}`), 409, "which is the most there can be")
	if a := w.do("", "GET", feed.Path, ""); a.Code != 200 {
		t.Error("the feed ended with a renewal that was refused", a.Code)
	}
	into[form.Token](t, tokens(`{"renews":"`+first.ID+`","overlap":"0s"}`), 201)
	wantProblem(t, w.do("", "GET", feed.Path, ""), 404)
	wantProblem(t, tokens(""), 409, "which is the most there can be")
}

// No way gives a token of a service account the scope that makes tokens, and one that has it nevertheless, as from a file of an earlier
// version, makes none.
func TestServiceAccountsNeverMakeTokens(t *testing.T) {
	w := newWorld(t, api.Options{})
	made := w.robot(t, "root", "svc-ops", "operator", `{"scopes":["read"]}`)
	wantProblem(t, w.do("root", "PATCH", "/v1/tokens/"+made.ID, `{"scopes":["read","tokens"]}`), 422, "scopes: read,tokens; a token of a service account is for some of read,")
	if e := into[form.Token](t, w.do("root", "PATCH", "/v1/tokens/"+made.ID, `{"scopes":["read","operate"]}`), 200); !slices.Equal(e.Scopes, []string{"read", "operate"}) {
		t.Errorf("%+v", e)
	}
	w.widen(t, "svc-ops", `["read","tokens"]`)
	for _, call := range []string{"GET /v1/tokens", "POST /v1/tokens", "PATCH /v1/tokens/" + made.ID, "GET /v1/sessions", "POST /v1/service-accounts"} {
		method, path, _ := strings.Cut(call, " ")
		wantProblem(t, w.do("svc-ops", method, path, `{"user":"eve"}`), 403, "user: a service account makes and ends no tokens")
	}
	into[form.Me](t, w.do("svc-ops", "GET", "/v1/me", ""), 200)
}

// widen has the tokens of a service account be good for other scopes in the file, and a service read that.
func (w *world) widen(t *testing.T, account, scopes string) {
	t.Helper()
	text, err := w.shelf.Load(token.File)
	if err != nil {
		t.Fatal(err)
	}
	var list []map[string]any
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if e["user"] == account {
			e["scopes"] = json.RawMessage(scopes)
		}
	}
	if text, err = json.Marshal(list); err != nil {
		t.Fatal(err)
	}
	if err := w.shelf.Save(token.File, text); err != nil {
		t.Fatal(err)
	}
	if err := w.store.Reload(); err != nil {
		t.Fatal(err)
	}
}

// An owner whom the machine or the provider knows counts as it says.
func TestOwnersWithoutTokens(t *testing.T) {
	for _, way := range []identity.Way{identity.Socket, identity.OIDC} {
		w := newWorld(t, api.Options{})
		for _, e := range w.store.List() {
			if e.User == "bob" {
				if err := w.store.Revoke(e.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		w.way = way
		made := into[form.ServiceAccount](t, w.do("bob", "POST", "/v1/service-accounts", `{"name":"svc-b"}`), 201)
		secret := into[form.Token](t, w.do("bob", "POST", "/v1/service-accounts/svc-b/tokens", `{"scopes":["read"],"expires":"1h"}`), 201).Secret
		me := into[form.Me](t, w.do("", "GET", "/v1/me", "", "Authorization", "Bearer "+secret), 200)
		if made.Owner != "bob" || me.Role != "user" || !slices.Equal(me.Scopes, []string{"read"}) || me.Expires != form.TimeOf(start+3600) {
			t.Errorf("%s: %+v %+v", way, made, me)
		}
	}
}

// A token of a service account whose account is not there, as from a file that was not put back, is worthless.
func TestTokensOfAccountsThatAreGone(t *testing.T) {
	folder := t.TempDir()
	w := newWorld(t, api.Options{})
	s, err := token.Open(folder, "root", start)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddAccount(token.Account{Name: "svc-x", Owner: "root", Role: service.User}, service.Principal{User: "root", Role: service.Operator}, start); err != nil {
		t.Fatal(err)
	}
	secret, _, err := s.AddAccountToken("svc-x", token.Wanted{}, start)
	if err != nil {
		t.Fatal(err)
	}
	w.Handler = api.New(api.Options{Service: w.fake, Tokens: s})
	into[form.Me](t, w.do("", "GET", "/v1/me", "", "Authorization", "Bearer "+secret), 200)
	if err := os.Remove(filepath.Join(folder, token.AccountFile)); err != nil {
		t.Fatal(err)
	}
	if s, err = token.Open(folder, "root", start); err != nil {
		t.Fatal(err)
	}
	w.Handler = api.New(api.Options{Service: w.fake, Tokens: s})
	wantProblem(t, w.do("", "GET", "/v1/me", "", "Authorization", "Bearer "+secret), 401, "svc-x was removed")
}

// The calls and streams of a user and of their service accounts are counted together.
func TestCallsOfServiceAccountsCountForTheirOwner(t *testing.T) {
	alice := policy.Scope{User: "alice"}
	w := newWorld(t, api.Options{Limits: policy.Limits{
		{Scope: alice, Name: policy.LimitRate, Value: 1}, {Scope: alice, Name: policy.LimitBurst, Value: 10},
	}})
	w.robot(t, "alice", "svc-a", "user", "") // two calls of alice
	w.robot(t, "alice", "svc-b", "user", "")
	made := 4
	for made < 10 {
		for _, user := range []string{"svc-a", "svc-b", "alice"} {
			if a := w.do(user, "GET", "/v1/me", ""); a.Code != 200 {
				t.Fatalf("call %d, of %s: %s", made, user, a.text)
			}
			made++
		}
	}
	for _, user := range []string{"svc-a", "svc-b", "alice"} {
		wantProblem(t, w.do(user, "GET", "/v1/me", ""), 429, "too many requests of "+user)
	}
	if a := w.do("bob", "GET", "/v1/me", ""); a.Code != 200 {
		t.Error(a.text)
	}
}

// They are counted together whichever roles the accounts have, each call by the part that it is of its role's rate; a role without a rate costs
// nothing, and one that is refused costs others nothing.
func TestCallsInSeveralRolesShareAnAllowance(t *testing.T) {
	viewer, user := policy.Scope{Role: string(service.Viewer)}, policy.Scope{Role: string(service.User)}
	w := newWorld(t, api.Options{Limits: policy.Limits{
		{Scope: viewer, Name: policy.LimitRate, Value: 1}, {Scope: viewer, Name: policy.LimitBurst, Value: 10}, // 1,000 s for each call
		{Scope: user, Name: policy.LimitRate, Value: 2}, {Scope: user, Name: policy.LimitBurst, Value: 40}, // 500 s
	}})
	for _, a := range [][2]string{{"svc-view", "viewer"}, {"svc-use", "user"}, {"svc-rest", "viewer"}} { // six calls of alice, 3,000 s
		w.robot(t, "alice", a[0], a[1], "")
	}
	times := func(user string, n int) {
		t.Helper()
		for i := range n {
			if a := w.do(user, "GET", "/v1/me", ""); a.Code != 200 {
				t.Fatalf("call %d of %s: %s", i, user, a.text)
			}
		}
	}
	full := func(user string) {
		t.Helper()
		wantProblem(t, w.do(user, "GET", "/v1/me", ""), 429, "too many requests of "+user)
	}
	times("svc-view", 7) // of 10,000 s of a viewer, 3,000 are used
	full("svc-view")
	full("svc-rest")
	times("svc-use", 10) // of 20,000 s of a user, 10,000 are used
	times("alice", 10)
	for _, user := range []string{"alice", "svc-use", "svc-view", "svc-rest"} {
		full(user)
	}
	times("bob", 40)
	full("bob")
	times("root", 100)
}

// So are their streams of events.
func TestStreamsOfServiceAccountsCountForTheirOwner(t *testing.T) {
	w := newWorld(t, api.Options{Limits: policy.Limits{{Scope: policy.Scope{User: "alice"}, Name: policy.LimitStreams, Value: 3}}})
	w.robot(t, "alice", "svc-a", "user", "")
	w.robot(t, "alice", "svc-b", "user", "")
	server := w.serve(t)
	for _, user := range []string{"svc-a", "svc-b", "alice"} {
		if l := w.listen(t, server.URL, user, "/v1/events"); l.StatusCode != 200 {
			t.Fatal(user, l.Status)
		}
	}
	for _, user := range []string{"svc-a", "svc-b", "alice"} {
		if l := w.listen(t, server.URL, user, "/v1/events"); l.StatusCode != 429 {
			t.Error(user, l.Status)
		}
	}
	if l := w.listen(t, server.URL, "bob", "/v1/events"); l.StatusCode != 200 {
		t.Error(l.Status)
	}
}
