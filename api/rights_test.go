package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// right is what an endpoint answers to whom. Alice owns the reservation, the
// offer and the token that it is about; bob is another user.
type right struct {
	method, path, body                 string
	nobody, vera, bob, alice, operator int
}

// rights is role × endpoint × owner. Who asks for nothing of alice's is as good
// as she is.
var rights = []right{
	{"POST", "/v1/requests", askFor, 401, 403, 201, 201, 201},
	{"POST", "/v1/requests", `{"user":"alice",` + askFor[1:], 401, 403, 403, 201, 201},
	{"POST", "/v1/offers", askFor, 401, 403, 200, 200, 200},
	{"POST", "/v1/offers", `{"user":"alice",` + askFor[1:], 401, 403, 403, 200, 200},
	{"POST", "/v1/rectangles", askFor, 401, 403, 200, 200, 200},
	{"POST", "/v1/rectangles", `{"user":"alice",` + askFor[1:], 401, 403, 403, 200, 200},
	{"POST", "/v1/offers/OFFER/hold", `{}`, 401, 403, 404, 201, 201},
	{"GET", "/v1/reservations", "", 401, 200, 200, 200, 200},
	{"GET", "/v1/reservations/ID", "", 401, 404, 404, 200, 200},
	{"PATCH", "/v1/reservations/ID", `{"npe":1}`, 401, 403, 404, 200, 200},
	{"DELETE", "/v1/reservations/ID", "", 401, 403, 404, 200, 200},
	{"POST", "/v1/reservations/ID/confirm", "", 401, 403, 404, 200, 200},
	{"POST", "/v1/reservations/ID/extend", `{"by":60}`, 401, 403, 404, 200, 200},
	{"POST", "/v1/reservations/ID/release", "", 401, 403, 404, 200, 200},
	{"POST", "/v1/reservations/ID/check-in", "", 401, 403, 404, 200, 200},
	{"POST", "/v1/reservations/ID/prepare", "", 401, 403, 404, 200, 200},
	{"POST", "/v1/reservations/ID/run", `{"command":["true"],"dir":"/"}`, 401, 403, 404, 201, 201},
	{"GET", "/v1/reservations/ID/tasks", "", 401, 404, 404, 200, 200},
	{"GET", "/v1/reservations/ID/history", "", 401, 404, 404, 200, 200},
	{"GET", "/v1/sites", "", 401, 200, 200, 200, 200},
	{"GET", "/v1/sites/cm5", "", 401, 200, 200, 200, 200},
	{"GET", "/v1/sites/cm5/occupation", "", 401, 200, 200, 200, 200},
	{"GET", "/v1/sites/cm5/spans/1", "", 401, 200, 200, 200, 200},
	{"GET", "/v1/gantt?site=cm5&pool=batch", "", 401, 200, 200, 200, 200},
	{"GET", "/v1/gantt/rows?site=cm5", "", 401, 200, 200, 200, 200},
	{"GET", "/v1/gantt/named?site=cm5&name=a", "", 401, 200, 200, 200, 200},
	{"POST", "/v1/session", "", 401, 201, 201, 201, 201},
	{"DELETE", "/v1/session", "", 401, 404, 404, 404, 404},
	{"POST", "/v1/session/links", "", 401, 201, 201, 201, 201},
	{"GET", "/v1/sessions", "", 401, 200, 200, 200, 200},
	{"GET", "/v1/sessions?user=alice", "", 401, 403, 403, 200, 200},
	{"DELETE", "/v1/sessions", "", 401, 200, 200, 200, 200},
	{"DELETE", "/v1/sessions?user=alice", "", 401, 403, 403, 200, 200},
	{"DELETE", "/v1/sessions/SESSION", "", 401, 404, 404, 204, 204},
	{"GET", "/v1/sites/cm5/doctor", "", 401, 403, 403, 403, 200},
	{"GET", "/v1/sites/cm5/shadow", "", 401, 403, 403, 403, 200},
	{"PUT", "/v1/sites/cm5/forecast", `{"period":60,"kilobytes":[1000]}`, 401, 403, 403, 403, 204},
	{"POST", "/v1/sites/cm5/nodes/n1/drain", `{}`, 401, 403, 403, 403, 204},
	{"POST", "/v1/sites/cm5/nodes/n1/resume", "", 401, 403, 403, 403, 204},
	{"POST", "/v1/clock/accept", "", 401, 403, 403, 403, 204},
	{"POST", "/v1/lead", `{"any":true}`, 401, 403, 403, 403, 409},
	{"POST", "/v1/journal/compact", "{}", 401, 403, 403, 403, 200},
	{"GET", "/v1/me", "", 401, 200, 200, 200, 200},
	{"GET", "/v1/quotas", "", 401, 403, 200, 200, 200},
	{"GET", "/v1/usage", "", 401, 403, 200, 200, 200},
	{"GET", "/v1/quotas?user=alice", "", 401, 403, 403, 200, 200},
	{"GET", "/v1/outages", "", 401, 200, 200, 200, 200},
	{"POST", "/v1/maintenance", `{"name":"cooling","site":"cm5","duration":3600}`, 401, 403, 403, 403, 201},
	{"GET", "/v1/maintenance", "", 401, 403, 200, 200, 200},
	{"DELETE", "/v1/maintenance/MAINTENANCE", "", 401, 403, 403, 403, 204},
	{"GET", "/v1/outbox", "", 401, 403, 403, 403, 200},
	{"GET", "/v1/audit", "", 401, 403, 403, 403, 200},
	{"POST", "/v1/workflows/plans", planFor, 401, 403, 200, 200, 200},
	{"GET", "/v1/lab", "", 401, 403, 200, 200, 200},
	{"POST", "/v1/lab/logs?name=a.swf", "1 0 -1 60 8\n", 401, 403, 201, 201, 201},
	{"POST", "/v1/lab/comparisons", compareThis, 401, 403, 201, 409, 201},
	{"POST", "/v1/lab/comparisons", `{"log":"LOG",` + compareThis[1:], 401, 403, 404, 409, 404},
	{"GET", "/v1/lab/comparisons/LAB", "", 401, 403, 404, 200, 200},
	{"DELETE", "/v1/lab/comparisons/LAB", "", 401, 403, 404, 200, 200},
	{"GET", "/v1/lab/comparisons/DONE/results", "", 401, 403, 404, 200, 200},
	{"GET", "/v1/lab/comparisons/DONE/files/report.html", "", 401, 403, 404, 200, 200},
	{"POST", "/v1/series", seriesFor, 401, 403, 201, 201, 201},
	{"POST", "/v1/series", `{"user":"alice",` + seriesFor[1:], 401, 403, 403, 201, 201},
	{"GET", "/v1/series", "", 401, 403, 200, 200, 200},
	{"GET", "/v1/series/SERIES", "", 401, 403, 404, 200, 200},
	{"POST", "/v1/series/SERIES/modify", `{"by":60}`, 401, 403, 404, 200, 200},
	{"POST", "/v1/series/SERIES/cancel", `{"from":2}`, 401, 403, 404, 200, 200},
	{"POST", "/v1/workflows", flowFor, 401, 403, 201, 201, 201},
	{"POST", "/v1/workflows", `{"user":"alice",` + flowFor[1:], 401, 403, 403, 201, 201},
	{"POST", "/v1/workflows/offers", flowFor, 401, 403, 200, 200, 200},
	{"GET", "/v1/workflows", "", 401, 403, 200, 200, 200},
	{"GET", "/v1/workflows/FLOW", "", 401, 403, 404, 200, 200},
	{"POST", "/v1/workflows/FLOW/confirm", "", 401, 403, 404, 200, 200},
	{"POST", "/v1/workflows/FLOW/retry", "{}", 401, 403, 404, 200, 200},
	{"DELETE", "/v1/workflows/FLOW", "", 401, 403, 404, 200, 200},
	{"GET", "/v1/events", "", 401, 200, 200, 200, 200},
	{"GET", "/v1/tokens", "", 401, 403, 403, 403, 200},
	{"POST", "/v1/tokens", `{"user":"zoe"}`, 401, 403, 403, 403, 201},
	{"PATCH", "/v1/tokens/TOKEN", `{"scopes":["tokens"]}`, 401, 403, 403, 403, 200},
	{"DELETE", "/v1/tokens/TOKEN", "", 401, 403, 403, 403, 204},
	{"GET", "/v1/service-accounts", "", 401, 403, 200, 200, 200},
	{"POST", "/v1/service-accounts", `{"name":"svc-new"}`, 401, 403, 201, 201, 201},
	{"POST", "/v1/service-accounts", `{"name":"svc-new","owner":"alice"}`, 401, 403, 403, 201, 201},
	{"POST", "/v1/service-accounts", `{"name":"svc-new","role":"operator"}`, 401, 403, 403, 403, 201},
	{"DELETE", "/v1/service-accounts/svc-alice", "", 401, 403, 404, 204, 204},
	{"POST", "/v1/service-accounts/svc-alice/tokens", `{"note":"x"}`, 401, 403, 404, 201, 201},
	{"DELETE", "/v1/service-accounts/svc-alice/tokens/ROBOT", "", 401, 403, 404, 204, 204},
	{"GET", "/v1/feeds", "", 401, 200, 200, 200, 200},
	{"POST", "/v1/feeds", "", 401, 403, 201, 201, 201},
	{"POST", "/v1/feeds", `{"site":"cm5"}`, 401, 201, 201, 201, 201},
	{"DELETE", "/v1/feeds/FEED", "", 401, 404, 404, 204, 204},
	{"GET", "/v1/hooks", "", 401, 403, 200, 200, 200},
	{"POST", "/v1/hooks", `{"url":"https://hooks.example.org/x"}`, 401, 403, 201, 201, 201},
	{"PATCH", "/v1/hooks/HOOK", `{"note":"x"}`, 401, 403, 404, 200, 200},
	{"DELETE", "/v1/hooks/HOOK", "", 401, 403, 404, 204, 204},
	{"POST", "/v1/hooks/HOOK/test", "", 401, 403, 404, 204, 204},
	{"POST", "/v1/hooks/HOOK/rotate", "", 401, 403, 404, 200, 200},
	{"GET", "/v1/hooks/HOOK/deliveries", "", 401, 403, 404, 200, 200},
	{"POST", "/v1/hooks/HOOK/resend", "", 401, 403, 404, 204, 204},
	{"GET", "/v1/calendar", "", 401, 403, 200, 200, 200},
	{"GET", "/v1/calendar?site=cm5", "", 401, 200, 200, 200, 200},
	{"GET", "/calendar/SECRET.ics", "", 200, 200, 200, 200, 200},
	{"GET", "/calendar/FEED.ics", "", 404, 404, 404, 404, 404},
	{"GET", "/v1/login", "", 200, 200, 200, 200, 200},
	{"GET", "/login/oidc", "", 303, 303, 303, 303, 303},
	{"GET", "/login/oidc/callback", "", 403, 403, 403, 403, 403},
	{"GET", "/healthz", "", 200, 200, 200, 200, 200},
	{"GET", "/readyz", "", 200, 200, 200, 200, 200},
	{"GET", "/openapi.json", "", 200, 200, 200, 200, 200},
	{"GET", "/metrics", "", 200, 200, 200, 200, 200},
}

// TestRoleEndpointOwner asks in each way of identity, which must not matter; in short runs and with little effort
// each row by a token and by one of the other ways, in turn.
func TestRoleEndpointOwner(t *testing.T) {
	others := []identity.Way{identity.Socket, identity.Munge, identity.SlurmJWT, identity.OIDC}
	for i := range rights {
		testRights(t, "", &rights[i])
		for w, way := range others {
			if effort.Full() && !testing.Short() || i%len(others) == w {
				testRights(t, way, &rights[i])
			}
		}
	}
}

func testRights(t *testing.T, way identity.Way, row *right) {
	for user, want := range map[string]int{"": row.nobody, "vera": row.vera, "bob": row.bob, "alice": row.alice, "root": row.operator} {
		t.Run(strings.ReplaceAll(fmt.Sprintf("%s %s %s %s", way, row.method, row.path, user), "/", "_"), func(t *testing.T) {
			testRight(t, way, row, user, want, func(*world) {})
		})
	}
}

// testRight has a user ask as a row says, after the world was prepared, and wants a status.
func testRight(t *testing.T, way identity.Way, row *right, user string, want int, prepare func(*world)) {
	t.Helper()
	w := newWorld(t, api.Options{})
	w.way = way
	id := into[form.Answer](t, w.do("alice", "POST", "/v1/requests", `{"hold":true,`+askFor[1:]), 201).ID
	offer := into[form.Offers](t, w.do("alice", "POST", "/v1/offers", askFor), 200).Offers[0].ID
	flow := into[form.WorkflowAnswer](t, w.do("alice", "POST", "/v1/workflows", flowFor), 201).Workflow.ID
	series := into[form.SeriesAnswer](t, w.do("alice", "POST", "/v1/series", seriesFor), 201).Series.ID
	tokens := into[form.Tokens](t, w.do("root", "GET", "/v1/tokens", ""), 200).Tokens
	at := slices.IndexFunc(tokens, func(k form.Token) bool { return k.User == "alice" })
	address := into[form.Feed](t, w.do("alice", "POST", "/v1/feeds", ""), 201).Path
	feed := into[form.Feeds](t, w.do("alice", "GET", "/v1/feeds", ""), 200).Feeds[0].ID
	hook := into[form.Hook](t, w.do("alice", "POST", "/v1/hooks", `{"url":"https://hooks.example.org/alice"}`), 201).ID
	into[form.ServiceAccount](t, w.do("alice", "POST", "/v1/service-accounts", `{"name":"svc-alice"}`), 201)
	robot := into[form.Token](t, w.do("alice", "POST", "/v1/service-accounts/svc-alice/tokens", ""), 201).ID
	w.do("root", "POST", "/v1/maintenance", `{"name":"MAINTENANCE","site":"cm5","duration":60}`)
	b := &browser{world: w}
	into[form.Me](t, b.send("POST", "/v1/session", "", "Authorization", "Bearer "+w.tokens["alice"]), 201)
	session := into[form.Sessions](t, w.do("alice", "GET", "/v1/sessions?user=alice", ""), 200).Sessions[0].ID
	before := *w.fake.made[0]
	replacer := strings.NewReplacer("/calendar/SECRET.ics", address, "FEED", feed, "HOOK", hook, "FLOW", flow, "SERIES", series, "ID", id, "OFFER", offer, "TOKEN", tokens[at].ID, "ROBOT", robot, "SESSION", session)
	var headers []string
	if strings.Contains(row.path, "/lab") {
		log, done, running := w.fillLaboratory(t, "alice")
		replacer = strings.NewReplacer("LOG", log, "DONE", done, "LAB", running)
	}
	path, body := replacer.Replace(row.path), row.body
	if strings.Contains(body, "LOG") {
		body = replacer.Replace(body)
	}
	if strings.Contains(path, "/lab/logs") {
		headers = []string{"Content-Type", "application/octet-stream"}
	}
	prepare(w)
	var code int
	var text string
	if strings.HasSuffix(path, "/events") {
		code, text = w.firstEvent(t, user)
	} else {
		a := w.do(user, row.method, path, body, headers...)
		code, text = a.Code, a.text
	}
	if code != want {
		t.Errorf("status %d, want %d: %s", code, want, text)
	}
	if code >= 400 && len(w.fake.made) != 1 || code >= 400 && w.fake.made[0].Version != before.Version {
		t.Error("something was changed all the same")
	}
	if (user == "bob" || user == "vera") && strings.Contains(text, `"user":"alice"`) {
		t.Errorf("%s sees whose it is: %s", user, text)
	}
}

func TestEveryEndpointHasItsRights(t *testing.T) {
	w := newWorld(t, api.Options{})
	var doc struct {
		Paths map[string]map[string]struct {
			Responses map[string]json.RawMessage `json:"responses"`
		} `json:"paths"`
	}
	if err := json.Unmarshal([]byte(w.do("", "GET", "/openapi.json", "").text), &doc); err != nil {
		t.Fatal(err)
	}
	inPath := regexp.MustCompile(`\{\w+\}|FLOW|SERIES|ID|OFFER|TOKEN|LAB|DONE|SECRET|FEED|HOOK|MAINTENANCE|ROBOT|SESSION|svc-alice|report\.html|cm5|n1|\b1$`)
	listed, answers := map[string]bool{}, map[string][]int{}
	for _, row := range rights {
		path, _, _ := strings.Cut(row.path, "?")
		name := row.method + " " + inPath.ReplaceAllString(path, "*")
		listed[name] = true
		for _, code := range []int{row.vera, row.bob, row.alice, row.operator} {
			if code < http.StatusBadRequest {
				answers[name] = append(answers[name], code)
			}
		}
	}
	for path, operations := range doc.Paths {
		for method, operation := range operations {
			name := strings.ToUpper(method) + " " + inPath.ReplaceAllString(path, "*")
			if !listed[name] {
				t.Errorf("%s is not in the table of rights", name)
			}
			for _, code := range answers[name] {
				if operation.Responses[strconv.Itoa(code)] == nil {
					t.Errorf("%s answers %d, which is not described: %v", name, code, slices.Collect(maps.Keys(operation.Responses)))
				}
			}
		}
	}
}

// TestOthersSeeThePlaceAlone has a viewer look at what holds PEs.
func TestOthersSeeThePlaceAlone(t *testing.T) {
	w := newWorld(t, api.Options{})
	id := into[form.Answer](t, w.do("alice", "POST", "/v1/requests", `{"software":"secret","no_show":60,`+askFor[1:]), 201).ID
	const path = "/v1/sites/cm5/occupation?from=2026-01-01T00:00:00Z&to=2030-01-01T00:00:00Z"
	for _, user := range []string{"vera", "bob"} {
		text := w.do(user, "GET", path, "").text
		if !strings.Contains(text, `"npe":64`) || strings.Contains(text, "alice") || strings.Contains(text, "secret") || strings.Contains(text, id) {
			t.Errorf("%s: %s", user, text)
		}
	}
	for _, user := range []string{"alice", "root"} {
		spans := into[form.Occupation](t, w.do(user, "GET", path, ""), 200).Spans
		if len(spans) != 1 || spans[0].ID != id || spans[0].User != "alice" || spans[0].State != "confirmed" {
			t.Errorf("%s: %+v", user, spans)
		}
	}
}

func TestTokensThatAreNone(t *testing.T) {
	w := newWorld(t, api.Options{})
	good := w.tokens["alice"]
	for header, want := range map[string]int{
		"Bearer " + good: 200, "bearer " + good: 200, "Bearer  " + good: 401, "Basic " + good: 401, good: 401, "Bearer": 401, "Bearer ": 401,
		"Bearer " + good[:len(good)-1]: 401, "Bearer " + good + " x": 401,
	} {
		a := w.do("", "GET", "/v1/me", "", "Authorization", header)
		if a.Code != want {
			t.Errorf("%q: status %d, want %d", header, a.Code, want)
		}
		if want == 401 && (!slices.Contains(a.Header().Values("WWW-Authenticate"), "Bearer") || strings.Contains(a.text, good)) {
			t.Error(a.Header(), a.text)
		}
	}
	if got := into[form.Me](t, w.do("vera", "GET", "/v1/me", ""), 200); !reflect.DeepEqual(got, form.Me{User: "vera", Role: "viewer"}) {
		t.Error(got)
	}
}

func TestOperatorsMakeTokens(t *testing.T) {
	w := newWorld(t, api.Options{})
	made := into[form.Token](t, w.do("root", "POST", "/v1/tokens", `{"user":"zoe","role":"viewer","note":"wall"}`), 201)
	w.tokens["zoe"] = made.Secret
	if got := into[form.Me](t, w.do("zoe", "GET", "/v1/me", ""), 200); !reflect.DeepEqual(got, form.Me{User: "zoe", Role: "viewer"}) {
		t.Error(got)
	}
	if list := w.do("root", "GET", "/v1/tokens", ""); strings.Contains(list.text, made.Secret) || !strings.Contains(list.text, `"note":"wall"`) {
		t.Error(list.text)
	}
	if a := w.do("root", "DELETE", "/v1/tokens/"+made.ID, ""); a.Code != 204 {
		t.Error(a.Code)
	}
	wantProblem(t, w.do("zoe", "GET", "/v1/me", ""), 401)
	wantProblem(t, w.do("root", "DELETE", "/v1/tokens/"+made.ID, ""), 404)
	wantProblem(t, w.do("root", "POST", "/v1/tokens", `{"user":"z o"}`), 422, "user: ")
	wantProblem(t, w.do("root", "POST", "/v1/tokens", `{"user":"zoe","role":"king"}`), 422, "role: ")
}

// unlimited lets everybody ask as often as they like.
var unlimited = policy.Limits{{Name: policy.LimitRate, Value: policy.NoLimit}}

// rate limits users to a rate in thousandths of a request a second, and to a burst.
func rate(thousandths, burst int64) policy.Limits {
	user := policy.Scope{Role: string(service.User)}
	return policy.Limits{{Scope: user, Name: policy.LimitRate, Value: thousandths}, {Scope: user, Name: policy.LimitBurst, Value: burst}}
}

// A client that repeats a call refused with 429 at once makes ten calls a second on a connection.
// Calls that are not refused do not wait, and nothing waits for a client that has gone.
func TestRefusalsOfTheTooFastAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, api.Options{Limits: rate(1, 1)})
		codes, began := map[int]int{}, time.Now()
		for calls := 0; calls < 100 && time.Since(began) < time.Second; calls++ {
			codes[w.do("alice", "GET", "/v1/me", "").Code]++
		}
		if codes[200] != 1 || codes[429] != 10 || len(codes) != 2 {
			t.Errorf("in a second the answers are %v, want one 200 and ten 429", codes)
		}
		began = time.Now()
		into[form.Me](t, w.do("bob", "GET", "/v1/me", ""), 200)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w.ServeHTTP(&discarded{header: http.Header{}}, w.ask("alice", "GET", "/v1/me", "").WithContext(ctx))
		if took := time.Since(began); took != 0 {
			t.Errorf("others, and those who have gone, wait for %s", took)
		}
	})
}

func TestRatesArePerPrincipal(t *testing.T) {
	w := newWorld(t, api.Options{Limits: rate(1, 3)})
	for i := range 5 {
		a := w.do("alice", "GET", "/v1/me", "")
		if want := map[bool]int{true: 200, false: 429}[i < 3]; a.Code != want {
			t.Errorf("request %d: status %d, want %d", i, a.Code, want)
		}
		if a.Code == http.StatusTooManyRequests && a.Header().Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	for _, other := range []string{"bob", "vera", "root"} {
		if a := w.do(other, "GET", "/v1/me", ""); a.Code != 200 {
			t.Errorf("%s: %d", other, a.Code)
		}
	}
}

func TestOccupationPageByPage(t *testing.T) {
	w := newWorld(t, api.Options{})
	for range 5 {
		w.do("alice", "POST", "/v1/requests", askFor)
	}
	seen := map[string]bool{}
	path := "/v1/sites/cm5/occupation?from=2026-01-01T00:00:00Z&to=2030-01-01T00:00:00Z&limit=2"
	for at, pages := path, 0; at != ""; pages++ {
		page := into[form.Occupation](t, w.do("alice", "GET", at, ""), 200)
		for _, s := range page.Spans {
			seen[s.ID] = true
		}
		if at = ""; page.Next != "" {
			at = path + "&cursor=" + page.Next
		}
		if len(page.Spans) > 2 || pages > 3 {
			t.Fatalf("page %d has %d spans", pages, len(page.Spans))
		}
	}
	if len(seen) != 5 {
		t.Errorf("%d of 5 seen", len(seen))
	}
	for query, field := range map[string]string{
		"from=2026-11-21T18:00:00": "from: ", "to=yesterday": "to: ", "limit=0": "limit: ", "limit=10001": "limit: ", "cursor=*": "cursor: ",
		"from=2027-01-01T00:00:00Z&to=2026-01-01T00:00:00Z": "to: ", "when=now": "when: ",
	} {
		wantProblem(t, w.do("vera", "GET", "/v1/sites/cm5/occupation?"+query, ""), 422, field)
	}
	wantProblem(t, w.do("vera", "GET", "/v1/sites/cm6/occupation", ""), 404)
}

func TestADoctorsFindingsAreToldAsTheyAre(t *testing.T) {
	w := newWorld(t, api.Options{})
	got := into[form.Findings](t, w.do("root", "GET", "/v1/sites/cm5/doctor", ""), 200)
	want := []form.Finding{{Check: "reach", Level: "ok", Text: "it answers"}, {Check: "limits", Level: "warning", Text: "none", Hint: "set some"}}
	if !slices.Equal(got.Findings, want) {
		t.Error(got)
	}
	wantProblem(t, w.do("root", "GET", "/v1/sites/other/doctor", ""), 404, "no managed site")
}

// What sites have not done is told with the site's words, and what is out of use with what
// is known of its time alone.
func TestOutboxAndOutages(t *testing.T) {
	w := newWorld(t, api.Options{})
	box := into[form.Outbox](t, w.do("root", "GET", "/v1/outbox", ""), 200)
	want := form.Outbox{Errands: []form.Errand{
		{Number: 3, Site: "cm5", Reservation: "R000001", What: "make", State: "confirmed", Since: form.TimeOf(start), Trouble: "no such licence"},
		{Number: 4, Site: "cm5", Reservation: "R000000", What: "remove"},
	}}
	if diff := cmp.Diff(want, box); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	a := w.do("vera", "GET", "/v1/outages", "")
	const text = `{"outages":[{"number":2147483652,"site":"cm5","pool":"batch","pes":"2-4","npe":3,"nodes":["n1","n2"],"from":"2026-11-21T12:01:00Z"}]}`
	if a.Code != 200 || strings.TrimSpace(a.text) != text {
		t.Errorf("%d %s, want %s", a.Code, a.text, text)
	}
	if a := w.do("root", "GET", "/v1/outages", ""); !strings.Contains(a.text, `"name":"pumps"`) {
		t.Errorf("an operator reads %s", a.text)
	}
	wantProblem(t, w.do("root", "GET", "/v1/outbox?site=cm5", ""), 422, "site: ")
}

func TestShadow(t *testing.T) {
	w := newWorld(t, api.Options{})
	f := into[form.Shadow](t, w.do("root", "GET", "/v1/sites/cm5/shadow", ""), 200)
	want := form.Shadow{
		Site: "cm5", Since: form.TimeOf(start), Reachable: true, Seen: form.TimeOf(start), Tolerance: 60,
		Jobs: form.ShadowCounts{
			Seen: 9, LeftOut: map[string]int{"before": 1}, Asked: 8, Partial: 3, Promised: 7, Refused: map[string]int{"too_large": 1}, Moved: 2, Broken: 1,
			Open: 2, Overdue: 1, Cancelled: 1, Vanished: 1, Ended: 4, BeforeLimit: 3, Compared: 5, Earlier: 1, Same: 2, Later: 2,
		},
		PromisedWait: form.Spread{Mean: 10, P50: 9, P95: 30}, ActualWait: form.Spread{Mean: 11, P50: 8, P95: 31},
		Latest: []form.ShadowJob{
			{
				Job: "7", User: "alice", Partition: "batch", NPE: 2, Limit: 60, Phase: "ended", Asked: form.TimeOf(start), Ready: form.TimeOf(start),
				Promised: form.TimeOf(start + 2), Start: form.TimeOf(start + 1), End: form.TimeOf(start + 9), Ending: "completed", Moved: true,
			},
			{Job: "8", User: "bob", NPE: 200, Limit: 60, Phase: "waiting", Asked: form.TimeOf(start), Ready: form.TimeOf(start), Refusal: "too_large"},
		},
	}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if f := into[form.Shadow](t, w.do("root", "GET", "/v1/sites/cm5/shadow?latest=1", ""), 200); len(f.Latest) != 1 {
		t.Errorf("%d jobs", len(f.Latest))
	}
	wantProblem(t, w.do("root", "GET", "/v1/sites/cm5/shadow?latest=1001", ""), 422, "latest: ")
	wantProblem(t, w.do("root", "GET", "/v1/sites/cm5/shadow?most=1", ""), 422)
	wantProblem(t, w.do("root", "GET", "/v1/sites/nowhere/shadow", ""), 404)
}

func TestForecastsAreHandedOn(t *testing.T) {
	w := newWorld(t, api.Options{})
	a := w.do("root", "PUT", "/v1/sites/cm5/forecast", `{"from":"2026-11-21T18:00:00+01:00","period":"1m","kilobytes":[1000,2500]}`)
	if a.Code != 204 || len(w.fake.foreseen) != 1 {
		t.Fatal(a.Code, a.text)
	}
	if f := w.fake.foreseen[0]; f.Site != "cm5" || f.From != 1795280400 || f.Period != 60 || !slices.Equal(f.Kilobytes, []int64{1000, 2500}) {
		t.Errorf("%+v", f)
	}
	for body, field := range map[string]string{
		`{"period":0,"kilobytes":[1]}`: "period: ", `{"period":60,"kilobytes":[]}`: "kilobytes: ", `{"period":60,"kilobytes":[-1]}`: "kilobytes: ",
		`{"period":60,"kilobytes":"all"}`: "kilobytes: ", `{"from":"now","period":60,"kilobytes":[1]}`: "from: ", `{"bytes":[1]}`: "bytes: ",
	} {
		wantProblem(t, w.do("root", "PUT", "/v1/sites/cm5/forecast", body), 422, field)
	}
	wantProblem(t, w.do("root", "PUT", "/v1/sites/cm6/forecast", `{"period":60,"kilobytes":[1]}`), 404)
}
