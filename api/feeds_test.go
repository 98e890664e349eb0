package api_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/cputime"
	"github.com/berth-hpc/berth/internal/icalendar/icalendartest"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// quay is a real service behind the API whose journal and tokens outlive it.
type quay struct {
	*world
	dir    string
	clock  atomic.Int64
	host   *service.Host
	store  *sqlite.Store
	access []service.Access
	limits policy.Limits
	ids    map[string]string // of tokens, by user
	log    strings.Builder   // read when no call is under way
}

func newQuay(t testing.TB) *quay {
	t.Helper()
	q := &quay{dir: t.TempDir(), ids: map[string]string{}, limits: unlimited}
	q.clock.Store(int64(start))
	tokens := map[string]string{}
	q.world = &world{tokens: tokens}
	q.open(t)
	for user, role := range map[string]service.Role{"alice": service.User, "bob": service.User, "vera": service.Viewer, "root": service.Operator} {
		secret, e, err := q.world.store.Add(token.Wanted{User: user, Role: role}, start)
		if err != nil {
			t.Fatal(err)
		}
		tokens[user], q.ids[user] = secret, e.ID
	}
	t.Cleanup(func() { q.close(t) })
	return q
}

func (q *quay) open(t testing.TB) {
	t.Helper()
	var err error
	if q.store, err = sqlite.Open(q.dir, sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	q.host, err = service.Open(t.Context(), service.Options{
		Config: engine.Config{Sites: []berth.Site{
			{Name: "cm5", Pools: []berth.Pool{{Name: "p", PEs: 64, Binding: berth.Early}}}, {Name: "east", Pools: []berth.Pool{{Name: "p", PEs: 64, Binding: berth.Early}}},
		}},
		Journal: q.store, Version: "test", Access: q.access, Clock: func() time.Time { return time.Unix(q.clock.Load(), 0) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if q.world.store, err = token.Open(q.dir, "owner", start); err != nil {
		t.Fatal(err)
	}
	q.Handler = api.New(api.Options{Service: q.host, Tokens: q.world.store, Access: q.access, Limits: q.limits, Log: slog.New(slog.NewTextHandler(&q.log, nil))})
}

func (q *quay) close(t testing.TB) {
	t.Helper()
	if err := q.host.Close(); err != nil {
		t.Error(err)
	}
	if err := q.store.Close(); err != nil {
		t.Error(err)
	}
}

func (q *quay) restart(t testing.TB) {
	t.Helper()
	q.close(t)
	q.open(t)
}

// pass lets time pass, and what is due come about.
func (q *quay) pass(t testing.TB, seconds int64) {
	t.Helper()
	q.clock.Add(seconds)
	if err := q.host.AcceptClock(t.Context(), service.Ask{By: service.Principal{User: "root", Role: service.Operator}}); err != nil {
		t.Fatal(err)
	}
	q.do("root", "POST", "/v1/requests", `{"npe":9999,"duration":60,"deadline":"2099-01-01T00:00:00Z"}`) // is refused, in its turn
}

// feed makes a feed and returns its path.
func (q *quay) feed(t testing.TB, user, body string) (path, id string) {
	t.Helper()
	f := into[form.Feed](t, q.do(user, "POST", "/v1/feeds", body), 201)
	if f.Secret == "" || f.Path != "/calendar/"+f.Secret+".ics" || f.URL != "http://127.0.0.1:7117"+f.Path {
		t.Fatalf("%+v", f)
	}
	return f.Path, f.ID
}

// read reads a calendar, and returns its events by their UIDs.
func (q *quay) read(t testing.TB, user, path string) map[string]icalendartest.Component {
	t.Helper()
	a := q.do(user, "GET", path, "")
	if a.Code != 200 || a.Header().Get("Content-Type") != "text/calendar; charset=utf-8" || a.Header().Get("ETag") == "" || a.Header().Get("Cache-Control") != "private, no-cache" {
		t.Fatal(a.Code, a.Header(), a.text)
	}
	events := map[string]icalendartest.Component{}
	list := icalendartest.Read(t, []byte(a.text))[0].Events()
	for _, e := range list {
		events[e.One(t, "UID")] = e
	}
	if len(events) != len(list) {
		t.Fatalf("some events have one UID: %s", a.text)
	}
	return events
}

func (q *quay) reserve(t testing.TB, user, body string) string {
	t.Helper()
	a := into[form.Answer](t, q.do(user, "POST", "/v1/requests", body), 201)
	if a.Decision != "accepted" {
		t.Fatalf("%+v", a)
	}
	return a.ID
}

// only returns the only event.
func only(t testing.TB, events map[string]icalendartest.Component) icalendartest.Component {
	t.Helper()
	if len(events) != 1 {
		t.Fatalf("%d events: %+v", len(events), events)
	}
	for _, e := range events {
		return e
	}
	panic("none")
}

func wantProperties(t testing.TB, e icalendartest.Component, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if is := e.One(t, name); is != value {
			t.Errorf("%s is %q, want %q", name, is, value)
		}
	}
}

// A promise is one event from when it is held until after it is given back: its UID stays, its number rises with each
// change, also over a restart.
func TestAPromiseIsOneEventThroughItsLife(t *testing.T) {
	q := newQuay(t)
	path, _ := q.feed(t, "alice", "")
	if events := q.read(t, "", path); len(events) > 0 {
		t.Fatal(events)
	}
	id := q.reserve(t, "alice", `{"site":"cm5","hold":true,"npe":8,"duration":"2h","ready":"2026-11-21T18:00:00+01:00","deadline":"2026-11-22T18:00:00+01:00"}`)
	held := only(t, q.read(t, "", path))
	wantProperties(t, held, map[string]string{
		"STATUS": "TENTATIVE", "DTSTART": "20261121T170000Z", "DTEND": "20261121T190000Z", "SUMMARY": "Held: 8 PEs at cm5/p", "LOCATION": "cm5/p", "CATEGORIES": "hold",
		"CREATED": "20261121T120000Z", "DTSTAMP": "20261121T120000Z", "LAST-MODIFIED": "20261121T120000Z",
		"URL":         "http://127.0.0.1:7117/?sel=cm5%2F1&t=2026-11-21T15%3A00%3A00Z..2026-11-21T21%3A00%3A00Z",
		"DESCRIPTION": "8 PEs at cm5/p: PEs 0-7\nReservation " + id + ", held\nGone at 2026-11-21T12:30:00Z unless it is confirmed: berth confirm " + id,
	})
	number := func(e icalendartest.Component) (n int) {
		if _, err := fmt.Sscan(e.One(t, "SEQUENCE"), &n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	was := held
	grows := func(what, status string) icalendartest.Component {
		t.Helper()
		is := only(t, q.read(t, "", path))
		if is.One(t, "UID") != was.One(t, "UID") || number(is) <= number(was) || is.One(t, "LAST-MODIFIED") <= was.One(t, "LAST-MODIFIED") || is.One(t, "STATUS") != status {
			t.Errorf("%s it is %+v, was %+v", what, is, was)
		}
		was = is
		return is
	}
	q.pass(t, 60)
	if a := q.do("alice", "POST", "/v1/reservations/"+id+"/confirm", ""); a.Code != 200 {
		t.Fatal(a.text)
	}
	grows("confirmed", "CONFIRMED")
	q.pass(t, 60)
	if a := q.do("alice", "PATCH", "/v1/reservations/"+id, `{"npe":4,"duration":"1h"}`); a.Code != 200 {
		t.Fatal(a.text)
	}
	wantProperties(t, grows("modified", "CONFIRMED"), map[string]string{"SUMMARY": "4 PEs at cm5/p", "DTEND": "20261121T180000Z"})
	q.restart(t)
	if is := only(t, q.read(t, "", path)); fmt.Sprint(is) != fmt.Sprint(was) {
		t.Errorf("after a restart it is %+v, was %+v", is, was)
	}
	q.pass(t, 60)
	if a := q.do("alice", "DELETE", "/v1/reservations/"+id, ""); a.Code != 200 {
		t.Fatal(a.text)
	}
	wantProperties(t, grows("given back", "CANCELLED"), map[string]string{"SUMMARY": "Cancelled: 4 PEs at cm5/p", "DTSTART": "20261121T170000Z"})
	q.pass(t, 7*86_400-1)
	if events := q.read(t, "", path); len(events) != 1 {
		t.Error("a cancelled one is gone within a week")
	}
	q.pass(t, 1)
	if events := q.read(t, "", path); len(events) != 0 {
		t.Error("a cancelled one is there for more than a week")
	}
}

// A calendar that is known is answered 304 until something of it changes, or time does it; what happens to others
// changes nothing.
func TestAKnownCalendarIsNotSentAgain(t *testing.T) {
	q := newQuay(t)
	path, _ := q.feed(t, "alice", "")
	const body = `{"npe":8,"duration":"2h","ready":"2026-11-21T18:00:00+01:00","deadline":"2026-11-22T18:00:00+01:00"}`
	id := q.reserve(t, "alice", body)
	first := q.do("", "GET", path, "")
	tag := first.Header().Get("ETag")
	same := func(what string, headers ...string) {
		t.Helper()
		for _, tag := range []string{tag, "W/" + tag, `"x", ` + tag} {
			a := q.do("", "GET", path, "", append(headers, "If-None-Match", tag)...)
			if a.Code != 304 || a.text != "" || a.Header().Get("ETag") != first.Header().Get("ETag") {
				t.Errorf("%s: %d %q %s", what, a.Code, tag, a.text)
			}
		}
		if a := q.do("", "GET", path, "", "If-None-Match", `"x"`); a.Code != 200 || a.text != first.text || a.Header().Get("ETag") != first.Header().Get("ETag") {
			t.Errorf("%s: another tag is answered %d %s", what, a.Code, a.text)
		}
	}
	same("at first")
	same("packed", "Accept-Encoding", "gzip")
	q.reserve(t, "bob", body)
	same("when another user has reserved")
	q.pass(t, 600)
	same("when time has passed")
	q.restart(t)
	same("after a restart")
	if a := q.do("", "HEAD", path, ""); a.Code != 200 || a.Header().Get("ETag") != tag {
		t.Error("HEAD is answered", a.Code, a.Header())
	}
	own := q.do("alice", "GET", "/v1/calendar", "", "If-None-Match", tag)
	if own.Code != 304 {
		t.Errorf("one's own calendar is another one: %d %s", own.Code, own.text)
	}
	if a := q.do("alice", "POST", "/v1/reservations/"+id+"/extend", `{"by":60}`); a.Code != 200 {
		t.Fatal(a.text)
	}
	changed := q.do("", "GET", path, "", "If-None-Match", tag)
	if changed.Code != 200 || changed.Header().Get("ETag") == tag {
		t.Error("once it has changed", changed.Code)
	}
	first, tag = changed, changed.Header().Get("ETag")
	same("after the change")
	q.pass(t, 40*86_400)
	if a := q.do("", "GET", path, "", "If-None-Match", tag); a.Code != 200 || strings.Contains(a.text, "VEVENT") {
		t.Error("a month after its end", a.Code, a.text)
	}
}

// What is wrong about an address is not told, and answers are alike to the byte.
func TestEveryWrongAddressIsAnsweredAlike(t *testing.T) {
	q := newQuay(t)
	path, id := q.feed(t, "alice", "")
	revoked, old := q.feed(t, "alice", "")
	if a := q.do("alice", "DELETE", "/v1/feeds/"+old, ""); a.Code != 204 {
		t.Fatal(a.text)
	}
	shape := ""
	for _, wrong := range []string{
		revoked, path + "x", strings.TrimSuffix(path, ".ics"), strings.Replace(path, "cal_", "", 1), strings.Replace(path, "/cal_", "/CAL_", 1), "/calendar/" + id + ".ics", "/calendar/x.ics", "/calendar/.ics",
		"/calendar/" + q.tokens["alice"] + ".ics", "/calendar/" + url.PathEscape("../../tokens.json") + ".ics", "/calendar/" + strings.Repeat("x", 5000) + ".ics",
	} {
		a := q.do("", "GET", wrong, "")
		a.Header().Del("X-Request-Id")
		is := fmt.Sprint(a.Code, a.Header(), a.text)
		if shape == "" {
			shape = is
		}
		if a.Code != 404 || is != shape || strings.Contains(a.text, "alice") {
			t.Errorf("%q is answered %s, others %s", wrong, is, shape)
		}
	}
	secret := strings.TrimSuffix(strings.TrimPrefix(path, "/calendar/"), ".ics")
	wantProblem(t, q.do("", "GET", "/v1/reservations", "", "Authorization", "Bearer "+secret), 401)
	wantProblem(t, q.do("", "GET", "/v1/calendar", "", "Authorization", "Bearer "+secret), 401)
	wantProblem(t, q.do("", "POST", path, "{}"), 405)
	list := q.do("alice", "GET", "/v1/feeds", "")
	if strings.Contains(list.text, secret) || strings.Contains(list.text, "/calendar/") {
		t.Error(list.text)
	}
}

// A feed shows what the tokens of its user are good for when it is read, and no more than the one with which it was made:
// it is gone without any, and comes back with them.
func TestFeedsShowWhatTheirUserMaySeeNow(t *testing.T) {
	q := newQuay(t)
	const at = `"npe":8,"duration":"2h","ready":"2026-11-21T18:00:00+01:00","deadline":"2026-11-22T18:00:00+01:00"}`
	q.reserve(t, "alice", `{"site":"cm5",`+at)
	q.reserve(t, "alice", `{"site":"east",`+at)
	narrow := into[form.Token](t, q.do("root", "POST", "/v1/tokens", `{"user":"alice","sites":["cm5"],"expires":"1h"}`), 201)
	q.tokens["narrow"] = narrow.Secret
	wide, _ := q.feed(t, "alice", "")
	limited, _ := q.feed(t, "narrow", "")
	site, _ := q.feed(t, "alice", `{"site":"east"}`)
	operators, _ := q.feed(t, "root", `{"site":"east"}`)
	wantProblem(t, q.do("narrow", "POST", "/v1/feeds", `{"site":"east"}`), 404, `no site "east"`)
	wantProblem(t, q.do("vera", "POST", "/v1/feeds", ""), 403)
	count := func(what, path string, want int) {
		t.Helper()
		a := q.do("", "GET", path, "")
		if got := strings.Count(a.text, "BEGIN:VEVENT"); want < 0 && a.Code != 404 || want >= 0 && (a.Code != 200 || got != want) {
			t.Errorf("%s: %d with %d events, want %d", what, a.Code, got, want)
		}
	}
	count("all of alice's", wide, 2)
	count("of one site", limited, 1)
	count("at east", site, 1)
	q.pass(t, 3600)
	count("of one site, once its token has expired and another is there", limited, 1)
	if err := q.world.store.Revoke(q.ids["alice"]); err != nil {
		t.Fatal(err)
	}
	count("made with a revoked token", wide, -1)
	count("at east, made with a revoked token", site, -1)
	count("of one site, without any token", limited, -1)
	q.restart(t)
	count("after a restart", limited, -1)
	again := into[form.Token](t, q.do("root", "POST", "/v1/tokens", `{"user":"alice","role":"viewer"}`), 201)
	count("with a viewer's token", limited, -1)
	if a := q.do("root", "DELETE", "/v1/tokens/"+again.ID, ""); a.Code != 204 {
		t.Fatal(a.text)
	}
	into[form.Token](t, q.do("root", "POST", "/v1/tokens", `{"user":"alice","sites":["east"]}`), 201)
	count("of cm5 with a token for east", limited, -1)
	into[form.Token](t, q.do("root", "POST", "/v1/tokens", `{"user":"alice","sites":["cm5"]}`), 201)
	count("with another token", limited, 1)

	// The role falls with the tokens, and with access.
	if e := only(t, q.read(t, "", operators)); !strings.Contains(e.One(t, "SUMMARY"), "alice: ") {
		t.Errorf("an operator reads %v", e)
	}
	into[form.Token](t, q.do("root", "POST", "/v1/tokens", `{"user":"root","role":"viewer","expires":"30d"}`), 201)
	if err := q.world.store.Revoke(q.ids["root"]); err != nil {
		t.Fatal(err)
	}
	count("made with the operator's token that was revoked", operators, -1)
	_, _, _ = q.world.store.Add(token.Wanted{User: "root", Role: service.Operator}, start)
	count("although there is another one", operators, -1)

	q.access = []service.Access{{Scope: policy.Scope{User: "alice"}, Sites: service.NewSiteSet([]string{"east"})}}
	q.restart(t)
	count("of cm5, from which alice is kept now", limited, -1)
}

// A feed that was made as an operator is a viewer's once that is all that its user is.
func TestTheRoleOfAFeedFalls(t *testing.T) {
	q := newQuay(t)
	q.reserve(t, "alice", `{"site":"cm5","name":"night","npe":8,"duration":"2h","deadline":"2026-11-22T18:00:00+01:00"}`)
	brief := into[form.Token](t, q.do("root", "POST", "/v1/tokens", `{"user":"olga","role":"operator","expires":"1h"}`), 201)
	q.tokens["olga"] = brief.Secret
	path, _ := q.feed(t, "olga", `{"site":"cm5"}`)
	q.made(t, `{"user":"olga","role":"viewer"}`)
	public, _ := q.feed(t, "olga", `{"site":"cm5"}`) // as a viewer
	q.tokens["olga"] = brief.Secret
	if e := only(t, q.read(t, "", path)); e.One(t, "SUMMARY") != "alice: night, 8 PEs at cm5/p" || !strings.Contains(e.One(t, "DESCRIPTION"), "Reservation ") {
		t.Error(e)
	}
	anonymous := func(path string) {
		t.Helper()
		a := q.do("", "GET", path, "")
		e := only(t, q.read(t, "", path))
		if e.One(t, "SUMMARY") != "Reserved: 8 PEs at cm5/p" || e.One(t, "DESCRIPTION") != "8 PEs at cm5/p: PEs 0-7" || strings.Contains(a.text, "alice") || !strings.HasPrefix(e.One(t, "UID"), "cm5/1@place.") {
			t.Error(a.text)
		}
	}
	anonymous(public)
	q.pass(t, 3600)
	anonymous(path)
	vera, _ := q.feed(t, "vera", `{"site":"cm5"}`)
	anonymous(vera)
	bobs, _ := q.feed(t, "bob", `{"site":"cm5"}`)
	anonymous(bobs)
	own, _ := q.feed(t, "alice", `{"site":"cm5"}`)
	if e := only(t, q.read(t, "", own)); e.One(t, "SUMMARY") != "alice: night, 8 PEs at cm5/p" {
		t.Error(e)
	}
}

// Users list and revoke their feeds, operators those of the sites that they have to do with.
func TestWhoListsAndRevokesFeeds(t *testing.T) {
	q := newQuay(t)
	_, first := q.feed(t, "alice", `{"note":"phone, <b>🎉"}`)
	_, at := q.feed(t, "alice", `{"site":"cm5"}`)
	path, bobs := q.feed(t, "bob", `{"site":"east"}`)
	q.made(t, `{"user":"olga","role":"operator","sites":["cm5"]}`)
	for user, want := range map[string][]string{"alice": {first, at}, "bob": {bobs}, "vera": {}, "root": {first, at, bobs}, "olga": {at}} {
		list := into[form.Feeds](t, q.do(user, "GET", "/v1/feeds", ""), 200).Feeds
		var ids []string
		for _, f := range list {
			ids = append(ids, f.ID)
			if f.Secret != "" || f.Path != "" || f.URL != "" || f.Used != 0 {
				t.Errorf("%+v", f)
			}
		}
		slices.Sort(ids)
		slices.Sort(want)
		if !slices.Equal(ids, want) {
			t.Errorf("%s sees %v, want %v", user, ids, want)
		}
	}
	wantProblem(t, q.do("alice", "DELETE", "/v1/feeds/"+bobs, ""), 404)
	wantProblem(t, q.do("olga", "DELETE", "/v1/feeds/"+bobs, ""), 404)
	wantProblem(t, q.do("bob", "POST", "/v1/feeds", `{"site":"nowhere"}`), 404)
	wantProblem(t, q.do("bob", "POST", "/v1/feeds", `{"sites":"cm5"}`), 422, "sites: ")
	q.read(t, "", path)
	if list := into[form.Feeds](t, q.do("bob", "GET", "/v1/feeds", ""), 200).Feeds; list[0].Used != form.TimeOf(start) {
		t.Errorf("it was used at %v", list[0].Used)
	}
	if a := q.do("root", "DELETE", "/v1/feeds/"+bobs, ""); a.Code != 204 {
		t.Error(a.text)
	}
	if want := `msg="feed revoked" by=root id=` + bobs + "\n"; strings.Count(q.log.String(), "feed revoked") != 1 || !strings.Contains(q.log.String(), want) {
		t.Errorf("the log is\n%s\nwant %s", q.log.String(), want)
	}
	if a := q.do("", "GET", path, ""); a.Code != 404 {
		t.Error("a revoked feed is read", a.Code)
	}
}

// A feed is asked for at the rate of its user.
func TestFeedsHaveTheRateOfTheirUser(t *testing.T) {
	q := newQuay(t)
	path, _ := q.feed(t, "alice", "")
	q.limits = rate(1, 3)
	q.restart(t)
	codes := map[int]int{}
	for range 5 {
		codes[q.do("", "GET", path, "").Code]++
	}
	if codes[200] != 3 || codes[429] != 2 {
		t.Errorf("the answers are %v, want three 200 and two 429", codes)
	}
	if a := q.do("alice", "GET", "/v1/me", ""); a.Code != 429 {
		t.Error("and their user is asked for", a.Code)
	}
}

// A session of a token makes feeds that end with the token.
func TestASessionMakesFeeds(t *testing.T) {
	q := newQuay(t)
	opened := q.do("alice", "POST", "/v1/session", "")
	cookie := opened.Result().Cookies()[1]
	f := into[form.Feed](t, q.do("", "POST", "/v1/feeds", "{}", "Cookie", cookie.Name+"="+cookie.Value), 201)
	if a := q.do("", "GET", f.Path, ""); a.Code != 200 {
		t.Error(a.text)
	}
	if a := q.do("root", "DELETE", "/v1/tokens/"+q.ids["alice"], ""); a.Code != 204 {
		t.Fatal(a.text)
	}
	into[form.Token](t, q.do("root", "POST", "/v1/tokens", `{"user":"alice"}`), 201)
	if a := q.do("", "GET", f.Path, ""); a.Code != 404 {
		t.Error("it outlives its token:", a.Code)
	}
}

// What users call things comes out whole, whatever they write.
func TestNamesComeOutWhole(t *testing.T) {
	q := newQuay(t)
	path, _ := q.feed(t, "alice", "")
	names := []string{"plain", "a, b; c\\n", "<script>alert('x')</script>", "🎉 中文 é", "END:VEVENT", strings.Repeat("long, ", 30) + "end"}
	for i, name := range names {
		a := into[form.WorkflowAnswer](t, q.do("alice", "POST", "/v1/workflows", fmt.Sprintf(`{"id":"w%d","name":%s,"tasks":[{"id":"a","seconds":10},{"id":"b","seconds":20,"after":["a"]}]}`, i, jsonText(t, name))), 201)
		if a.Decision != "promised" {
			t.Fatalf("%+v", a)
		}
	}
	events := q.read(t, "", path)
	if len(events) != len(names) {
		t.Fatalf("%d events", len(events))
	}
	for uid, e := range events {
		var i int
		if _, err := fmt.Sscanf(uid, "w%d@workflow.", &i); err != nil {
			t.Fatal(uid)
		}
		want := "Workflow " + names[i] + ": 2 tasks"
		wantProperties(t, e, map[string]string{"SUMMARY": want, "STATUS": "CONFIRMED", "CATEGORIES": "workflow"})
	}
}

func jsonText(t testing.TB, text string) string {
	t.Helper()
	data, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// An outage without a known end is shown up to the end of the next day and grows each day, with the calendar's tag; once it
// is over it has its end, and a number that is no smaller.
func TestOutagesInCalendars(t *testing.T) {
	w := newWorld(t, api.Options{})
	outage := func(number uint64, from, until, ended berth.Time) service.FeedOutage {
		o := service.FeedOutage{Changed: start, Changes: 1, Ended: ended}
		o.Outage = berth.Outage{Number: number, Name: "pumps, again", Resource: berth.PoolID("cm5", "batch"), PEs: berth.NewPESet(berth.Run{Lo: 2, Hi: 5}), From: from, Until: until}
		o.Nodes = []string{"n1", "n2", "n3"}
		if ended != 0 {
			o.Changed, o.Changes = ended, 2
		}
		return o
	}
	read := func(user string) (map[string]icalendartest.Component, string) {
		a := w.do(user, "GET", "/v1/calendar?site=cm5", "")
		events := map[string]icalendartest.Component{}
		for _, e := range icalendartest.Read(t, []byte(a.text))[0].Events() {
			number, _, _ := strings.Cut(e.One(t, "UID"), ".")
			events[number] = e
		}
		return events, a.Header().Get("ETag")
	}
	w.fake.feedOutages = []service.FeedOutage{
		outage(1, start-3600, berth.Forever, 0), outage(2, start+3600, start+7200, 0), outage(3, start-7200, start+7200, start-3600), outage(4, start+7200, start+9000, start-60),
	}
	events, tag := read("vera")
	for number, want := range map[string]map[string]string{
		"1": {"DTSTART": "20261121T110000Z", "DTEND": "20261123T000000Z", "STATUS": "CONFIRMED", "SEQUENCE": "1", "SUMMARY": "Outage: 3 PEs at cm5/batch", "LAST-MODIFIED": "20261121T120000Z", "DESCRIPTION": "3 PEs at cm5/batch are out of use: n[1-3]\nIts end is not known"},
		"2": {"DTSTART": "20261121T130000Z", "DTEND": "20261121T140000Z", "STATUS": "CONFIRMED", "DESCRIPTION": "3 PEs at cm5/batch are out of use: n[1-3]"},
		"3": {"DTSTART": "20261121T100000Z", "DTEND": "20261121T110000Z", "STATUS": "CONFIRMED", "SEQUENCE": "2"},
		"4": {"DTSTART": "20261121T140000Z", "DTEND": "20261121T143000Z", "STATUS": "CANCELLED", "SUMMARY": "Called off: Outage: 3 PEs at cm5/batch"},
	} {
		wantProperties(t, events[number], want)
	}
	if root, _ := read("root"); !strings.Contains(fmt.Sprint(root["1"].Properties["DESCRIPTION"]), "\npumps, again\n") {
		t.Errorf("an operator reads %v", root["1"])
	}
	w.fake.pass(12*3600 - 1)
	if a := w.do("vera", "GET", "/v1/calendar?site=cm5", "", "If-None-Match", tag); a.Code != 304 {
		t.Error("it is another one on the same day:", a.Code)
	}
	w.fake.pass(2)
	if a := w.do("vera", "GET", "/v1/calendar?site=cm5", "", "If-None-Match", tag); a.Code != 200 {
		t.Error("it is the same on the next day:", a.Code)
	}
	events, _ = read("vera")
	wantProperties(t, events["1"], map[string]string{"DTEND": "20261124T000000Z", "SEQUENCE": "2", "LAST-MODIFIED": "20261122T000000Z"})
	w.fake.feedOutages[0] = outage(1, start-3600, berth.Forever, start+13*3600)
	events, _ = read("vera")
	wantProperties(t, events["1"], map[string]string{"DTEND": "20261122T010000Z", "SEQUENCE": "3", "LAST-MODIFIED": "20261122T010000Z"})
}

// BenchmarkFeed is a feed of promises with everything, and the answer to a program that has it. others are the
// promises of other users beside.
func BenchmarkFeed(b *testing.B) {
	for _, size := range []struct{ own, others int }{{10, 0}, {100, 0}, {1000, 0}, {1000, 10_000}} {
		q := newQuay(b)
		path, _ := q.feed(b, "alice", "")
		ask := func(user string, n int) {
			by := service.Ask{By: service.Principal{User: user, Role: service.User}}
			for i := range n {
				at := start + berth.Time(3600+i*60)
				if a, err := q.host.Submit(b.Context(), by, berth.Rigid("", 0, at, at+90*86_400, 4, 50)); err != nil || a.Reservation.State != service.Confirmed {
					b.Fatal(a.Reservation, err)
				}
			}
		}
		ask("alice", size.own)
		ask("bob", size.others)
		get := func(b *testing.B, tag string, want int) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
			if tag != "" {
				r.Header.Set("If-None-Match", tag)
			}
			rec := httptest.NewRecorder()
			q.ServeHTTP(rec, r)
			if rec.Code != want {
				b.Fatal(rec.Code, rec.Body.String())
			}
			return rec
		}
		name := fmt.Sprintf("promises=%d/others=%d", size.own, size.others)
		first := get(b, "", 200)
		if n := strings.Count(first.Body.String(), "BEGIN:VEVENT"); n != size.own {
			b.Fatalf("%d events", n)
		}
		b.Run(name+"/whole", func(b *testing.B) {
			b.ReportAllocs()
			begin := cputime.Used()
			for b.Loop() {
				get(b, "", 200)
			}
			b.ReportMetric(float64(cputime.Used()-begin)/float64(b.N), "cpu-ns/op")
			b.SetBytes(int64(first.Body.Len()))
		})
		b.Run(name+"/304", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				get(b, first.Header().Get("ETag"), 304)
			}
		})
	}
}
