package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

// harbour is a real service behind the API, whose journal outlives it.
type harbour struct {
	*world
	dir   string
	clock atomic.Int64
	tick  atomic.Int64 // seconds that pass with each look at the clock
	host  *service.Host
	store *sqlite.Store
}

// open opens the service on the journal of a folder.
func (h *harbour) open(t *testing.T) {
	t.Helper()
	var err error
	if h.store, err = sqlite.Open(h.dir, sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	h.host, err = service.Open(t.Context(), service.Options{
		Config:  engine.Config{Sites: []berth.Site{{Name: "cm5", Pools: []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Early}}}}},
		Journal: h.store, Version: "test", Clock: func() time.Time { return time.Unix(h.clock.Add(h.tick.Load()), 0) },
	})
	if err != nil {
		t.Fatal(err)
	}
	h.world = newWorld(t, api.Options{Service: h.host})
}

func (h *harbour) close(t *testing.T) {
	t.Helper()
	if err := h.host.Close(); err != nil {
		t.Error(err)
	}
	if err := h.store.Close(); err != nil {
		t.Error(err)
	}
}

// crash leaves the service as it is, and goes on with a copy of what it has on the
// disk.
func (h *harbour) crash(t *testing.T) {
	t.Helper()
	host, store, dir := h.host, h.store, t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(h.dir)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := host.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	_ = os.Remove(filepath.Join(dir, "lock"))
	h.dir = dir
	h.open(t)
}

// keyedCall is a call under a key, and what was answered.
type keyedCall struct {
	user, method, path, body, key string
	status                        int
	answered                      string
}

func (h *harbour) call(c *keyedCall) string {
	method, path := c.method, c.path
	a := h.do(c.user, method, path, c.body, "Idempotency-Key", c.key)
	c.status = a.Code
	return fmt.Sprint(a.Code, " ", a.Header().Get("ETag"), " ", a.Header().Get("Location"), "\n", a.text)
}

// endpoint returns what was called, as the service describes it.
func (c *keyedCall) endpoint() string {
	path := c.path
	for _, of := range []string{"/v1/reservations/", "/v1/offers/", "/v1/workflows/", "/v1/series/"} {
		if rest, is := strings.CutPrefix(path, of); is {
			_, do, more := strings.Cut(rest, "/")
			if path = of + "{id}"; more {
				path += "/" + do
			}
		}
	}
	return strings.ToLower(c.method) + " " + path
}

// kind says what the answer was: done, refused by a decision, or mistaken.
func (c *keyedCall) kind() string {
	switch {
	case c.status >= http.StatusBadRequest:
		return "mistaken"
	case strings.Contains(c.answered, `"decision":"refused"`):
		return "refused"
	}
	return "done"
}

// takeKeys returns the endpoints that take a key, as the service describes itself.
func (h *harbour) takeKeys(t *testing.T) map[string]bool {
	t.Helper()
	var d struct {
		Paths map[string]map[string]struct{ Parameters []struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(h.do("alice", "GET", "/openapi.json", "").text), &d); err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for path, methods := range d.Paths {
		for method, op := range methods {
			for _, p := range op.Parameters {
				if p.Name == "Idempotency-Key" {
					said[method+" "+path] = true
				}
			}
		}
	}
	return said
}

// Each endpoint that takes a key refuses one that is none, before anything else is done.
func TestAKeyThatIsNoneIsRefusedEverywhere(t *testing.T) {
	h := &harbour{dir: t.TempDir()}
	h.clock.Store(int64(start))
	h.open(t)
	taken := h.takeKeys(t)
	for _, must := range []string{"post /v1/requests", "post /v1/reservations/{id}/run", "delete /v1/workflows/{id}"} {
		if !taken[must] {
			t.Errorf("%s takes no key", must)
		}
	}
	for of := range taken {
		method, path, _ := strings.Cut(of, " ")
		a := h.do("alice", strings.ToUpper(method), strings.ReplaceAll(path, "{id}", "x"), "{}", "Idempotency-Key", strings.Repeat("k", 300))
		if a.Code != http.StatusUnprocessableEntity || !strings.Contains(a.text, "Idempotency-Key") {
			t.Errorf("%s: %d %s", of, a.Code, a.text)
		}
	}
}

// Whatever was answered under a key is answered again, byte for byte: what was done,
// what was refused, with its offers, and what could not be, at every endpoint, after
// whatever happened since, and after a stop and a crash.
func TestAKeyRemembersItsAnswer(t *testing.T) {
	h := &harbour{dir: t.TempDir()}
	h.clock.Store(int64(start))
	h.open(t)
	var calls []*keyedCall
	ask := func(status int, method, path, body string) string {
		t.Helper()
		c := &keyedCall{user: "alice", method: method, path: path, body: body, key: fmt.Sprint("key", len(calls))}
		calls = append(calls, c)
		c.answered = h.call(c)
		if c.status != status {
			t.Errorf("%s %s %s: %s; want status %d", method, path, body, c.answered, status)
		}
		return c.answered
	}
	id := func(answer string) string {
		t.Helper()
		_, rest, found := strings.Cut(answer, `/v1/reservations/`)
		if !found {
			t.Fatalf("no id in %s", answer)
		}
		return rest[:strings.IndexByte(rest, '\n')]
	}
	at := func(hours int) string { return time.Unix(int64(start)+int64(hours)*3600, 0).UTC().Format(time.RFC3339) }
	request := func(npe, ready, hours, deadline int, more string) string {
		return fmt.Sprintf(`{"npe":%d,"ready":%q,"duration":"%dh","deadline":%q%s}`, npe, at(ready), hours, at(deadline), more)
	}
	a := id(ask(http.StatusCreated, "POST", "/v1/requests", request(4, 0, 1, 5, "")))
	held := id(ask(http.StatusCreated, "POST", "/v1/requests", request(4, 0, 1, 5, `,"hold":"10m"`)))
	ask(http.StatusCreated, "POST", "/v1/requests", request(8, 1, 4, 5, ""))
	refused := ask(http.StatusCreated, "POST", "/v1/requests", request(8, 0, 2, 5, ""))
	if !strings.Contains(refused, "offers") {
		t.Errorf("no offers in %s", refused)
	}
	ask(http.StatusCreated, "POST", "/v1/requests", request(1, 20, 1, 30, `,"array":2`))
	refusals := ask(http.StatusCreated, "POST", "/v1/requests", request(8, 0, 2, 5, `,"array":2`))
	if !strings.Contains(refusals, `"decision":"refused"`) {
		t.Errorf("no refusal in %s", refusals)
	}
	ask(http.StatusUnprocessableEntity, "POST", "/v1/requests", request(1, 2, 2, 3, ""))
	ask(http.StatusUnprocessableEntity, "POST", "/v1/requests", `{"npe":0,"duration":"never"}`)
	ask(http.StatusForbidden, "POST", "/v1/requests", request(1, 2, 1, 4, `,"user":"bob"`))
	ask(http.StatusForbidden, "POST", "/v1/requests", request(1, 2, 1, 4, `,"user":"bob","array":2`))
	ask(http.StatusOK, "PATCH", "/v1/reservations/"+held, `{"npe":200}`) // which is refused
	far := id(ask(http.StatusCreated, "POST", "/v1/requests", request(1, 100, 1, 102, "")))
	ask(http.StatusUnprocessableEntity, "PATCH", "/v1/reservations/"+far, `{"duration":"9h"}`)
	ask(http.StatusUnprocessableEntity, "PATCH", "/v1/reservations/"+held, `{"deadline":"`+at(-1)+`"}`)
	ask(http.StatusUnprocessableEntity, "PATCH", "/v1/reservations/"+held, `{"nodelist":"n1"}`)
	ask(http.StatusNotFound, "PATCH", "/v1/reservations/later", `{"npe":1}`)
	ask(http.StatusNotFound, "POST", "/v1/reservations/later/extend", `{"by":"1h"}`)
	ask(http.StatusUnprocessableEntity, "POST", "/v1/reservations/"+held+"/extend", `{}`)
	ask(http.StatusConflict, "POST", "/v1/reservations/"+held+"/check-in", `{}`) // too early
	ask(http.StatusOK, "PATCH", "/v1/reservations/"+held, `{"npe":2}`)
	ask(http.StatusOK, "POST", "/v1/reservations/"+held+"/confirm", `{}`)
	ask(http.StatusOK, "POST", "/v1/reservations/"+a+"/extend", `{"by":"100h"}`) // which is refused
	ask(http.StatusConflict, "POST", "/v1/reservations/"+held+"/confirm", `{}`)
	offers := into[form.Offers](t, h.do("alice", "POST", "/v1/offers", request(1, 40, 1, 50, "")), http.StatusOK)
	if len(offers.Offers) == 0 {
		t.Fatal("no offers")
	}
	taken := id(ask(http.StatusCreated, "POST", "/v1/offers/"+offers.Offers[0].ID+"/hold", `{"hold":"1h"}`))
	ask(http.StatusConflict, "POST", "/v1/offers/"+offers.Offers[0].ID+"/hold", `{"hold":"1h"}`)
	ask(http.StatusNotFound, "POST", "/v1/offers/none/hold", `{"hold":"1h"}`)
	offers = into[form.Offers](t, h.do("alice", "POST", "/v1/offers", request(8, 60, 1, 70, "")), http.StatusOK)
	into[form.Answer](t, h.do("bob", "POST", "/v1/requests", request(8, 60, 10, 70, "")), http.StatusCreated)
	ask(http.StatusCreated, "POST", "/v1/offers/"+offers.Offers[0].ID+"/hold", `{"hold":"1h"}`) // which is refused
	ask(http.StatusNotFound, "DELETE", "/v1/reservations/none", "")
	ask(http.StatusNotFound, "POST", "/v1/reservations/none/release", "")
	ask(http.StatusOK, "POST", "/v1/reservations/"+far+"/extend", `{"by":"1h"}`)
	ask(http.StatusOK, "POST", "/v1/reservations/"+a+"/check-in", `{}`)
	ask(http.StatusOK, "DELETE", "/v1/reservations/"+taken, "")
	ask(http.StatusOK, "DELETE", "/v1/reservations/"+taken, "") // again, under another key
	ask(http.StatusOK, "DELETE", "/v1/reservations/"+a, "")
	ask(http.StatusOK, "POST", "/v1/reservations/"+a+"/release", "")
	flow := func(id string, deadline int, more string) string {
		return fmt.Sprintf(`{"id":%q,"deadline":%q%s,"tasks":[{"id":"a","seconds":3600,"most":1},{"id":"b","seconds":3600,"most":1,"after":["a"],"retries":2}]}`, id, at(deadline), more)
	}
	ask(http.StatusCreated, "POST", "/v1/workflows", flow("night", 18, `,"hold":"10m"`))
	ask(http.StatusConflict, "POST", "/v1/workflows", flow("night", 18, ""))
	ask(http.StatusUnprocessableEntity, "POST", "/v1/workflows", flow("late", -1, ""))
	ask(http.StatusForbidden, "POST", "/v1/workflows", flow("theirs", 18, `,"user":"bob"`))
	ask(http.StatusOK, "POST", "/v1/workflows/night/confirm", "")
	ask(http.StatusNotFound, "POST", "/v1/workflows/none/confirm", "")
	ask(http.StatusUnprocessableEntity, "POST", "/v1/workflows/night/retry", `{"deadline":"`+at(-1)+`"}`)
	ask(http.StatusConflict, "POST", "/v1/workflows/night/retry", "")
	ask(http.StatusOK, "DELETE", "/v1/workflows/night", "")
	ask(http.StatusOK, "POST", "/v1/workflows/night/retry", `{"deadline":"`+at(15)+`"}`)
	if narrow := ask(http.StatusCreated, "POST", "/v1/workflows", flow("narrow", 1, "")); !strings.Contains(narrow, `"refused"`) || !strings.Contains(narrow, `"critical"`) {
		t.Errorf("a workflow without time for it is answered %s", narrow)
	}
	if again := ask(http.StatusOK, "POST", "/v1/workflows/narrow/retry", `{"deadline":"`+at(1)+`"}`); !strings.Contains(again, `"refused"`) {
		t.Errorf("a workflow that is retried without time for it is answered %s", again)
	}
	ask(http.StatusOK, "POST", "/v1/workflows/narrow/retry", `{"deadline":"`+at(19)+`"}`)
	ask(http.StatusNotFound, "DELETE", "/v1/workflows/none", "")

	weekly := func(npe, times int) string {
		return fmt.Sprintf(`{"npe":%d,"duration":60,"repeat":"every day 03:00","ready":%q,"times":%d}`, npe, at(100), times)
	}
	_, each, _ := strings.Cut(ask(http.StatusCreated, "POST", "/v1/series", weekly(1, 3)), "/v1/series/")
	each, _, _ = strings.Cut(each, "\n")
	ask(http.StatusCreated, "POST", "/v1/series", weekly(100, 2)) // which is refused
	ask(http.StatusUnprocessableEntity, "POST", "/v1/series", weekly(1, 0))
	ask(http.StatusOK, "POST", "/v1/series/"+each+"/modify", `{"from":2,"by":60}`)
	ask(http.StatusOK, "POST", "/v1/series/"+each+"/modify", `{"npe":100}`) // which is refused
	ask(http.StatusNotFound, "POST", "/v1/series/none/modify", `{"by":60}`)
	ask(http.StatusOK, "POST", "/v1/series/"+each+"/cancel", `{"from":3}`)
	ask(http.StatusNotFound, "POST", "/v1/series/none/cancel", "")

	of := h.takeKeys(t)
	delete(of, "post /v1/reservations/{id}/run") // whose keys the site remembers
	used := map[string]string{}
	for _, kind := range []string{"done", "refused", "mistaken"} {
		for _, c := range calls {
			if e := c.endpoint(); c.kind() == kind && !strings.HasSuffix(used[e], kind) {
				used[e] += " " + kind
			}
		}
	}
	for e := range of {
		want := " done mistaken"
		if slices.Contains([]string{"post /v1/requests", "post /v1/offers/{id}/hold", "patch /v1/reservations/{id}", "post /v1/reservations/{id}/extend", "post /v1/workflows", "post /v1/workflows/{id}/retry", "post /v1/series", "post /v1/series/{id}/modify"}, e) {
			want = " done refused mistaken"
		}
		if used[e] != want {
			t.Errorf("%s was answered%s, want%s", e, used[e], want)
		}
	}
	if len(of) != len(used) {
		t.Errorf("keys were used at %v, want %v", used, of)
	}

	again := func(when string) {
		t.Helper()
		for _, c := range calls {
			if got := h.call(c); got != c.answered {
				t.Errorf("%s, %s %s %s under %s:\n%swas answered\n%s", when, c.method, c.path, c.body, c.key, got, c.answered)
			}
		}
	}
	again("at once")
	into[form.Answer](t, h.do("alice", "PATCH", "/v1/reservations/"+far, `{"deadline":"`+at(130)+`"}`), http.StatusOK)
	into[form.Answer](t, h.do("alice", "PATCH", "/v1/reservations/"+far, `{"duration":"9h"}`), http.StatusOK) // was refused above
	again("where what was refused is possible")
	h.crash(t)
	again("after a crash")
	h.close(t)
	h.open(t)
	again("after a stop")
	h.clock.Add(20 * 3600)                                       // which ends most of it
	h.do("bob", "POST", "/v1/offers", request(1, 50, 1, 60, "")) // the time has come
	if got := h.do("alice", "GET", "/v1/reservations/"+held, ""); !strings.Contains(got.text, "finished") {
		t.Errorf("it is not over: %s", got.text)
	}
	again("when it is over")
	h.close(t)
	h.open(t)
	again("after another stop")

	other := *calls[0]
	other.path, other.body = "/v1/reservations/"+held+"/extend", `{"by":"1h"}`
	if h.call(&other); other.status != http.StatusUnprocessableEntity {
		t.Errorf("the key of another endpoint: status %d", other.status)
	}
	other = *calls[0]
	other.user, other.body = "bob", request(1, 50, 1, 60, "") // whose keys have nothing to do with those of alice
	if got := h.call(&other); other.status != http.StatusCreated || id(got) == a {
		t.Errorf("the key of another user: %s", got)
	}
	h.close(t)
}
