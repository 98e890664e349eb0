package api_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/courier"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/api/token/tokentest"
	"github.com/berth-hpc/berth/service"
)

// world is an API over a fake service, with a token for everybody who asks.
type world struct {
	http.Handler
	fake   *fake
	tokens map[string]string // by user
	way    identity.Way      // by which ask shows who asks; empty is by a token
	munged munged
	store  *token.Store
	shelf  tokentest.Shelf                  // of the store
	also   atomic.Pointer[identity.Account] // of the machine, beside accounts
}

func newWorld(t testing.TB, options api.Options) *world {
	t.Helper()
	w := &world{fake: newFake(), tokens: map[string]string{}, munged: munged{}}
	folder := t.TempDir()
	store, err := token.OpenAt(&w.shelf, folder, "root", start)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := os.ReadFile(filepath.Join(folder, token.OperatorFile))
	if err != nil {
		t.Fatal(err)
	}
	w.tokens["root"] = strings.TrimSpace(string(secret))
	for user, role := range map[string]service.Role{"alice": service.User, "bob": service.User, "vera": service.Viewer} {
		if w.tokens[user], _, err = store.Add(token.Wanted{User: user, Role: role}, start); err != nil {
			t.Fatal(err)
		}
	}
	if options.Service == nil {
		options.Service = w.fake
	}
	options.Tokens, w.store = store, store
	if options.Courier == nil {
		if options.Courier, err = courier.Open(courier.Options{Folder: folder}); err != nil {
			t.Fatal(err)
		}
	}
	if options.Laboratory == nil {
		options.Laboratory = newLaboratory(t)
	}
	if options.Identity == nil {
		options.Identity = w.ways(t)
	}
	w.Handler = api.New(options)
	return w
}

// ask is what a client sends. headers are pairs.
func (w *world) ask(user, method, path, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host, r.RemoteAddr = "127.0.0.1:7117", "127.0.0.1:4711"
	if user != "" {
		r = w.shown(user, r, body)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// answer is what came back.
type answer struct {
	*httptest.ResponseRecorder
	text string
}

func (w *world) do(user, method, path, body string, headers ...string) *answer {
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, w.ask(user, method, path, body, headers...))
	data, _ := io.ReadAll(rec.Body) // a buffer
	return &answer{rec, string(data)}
}

// into reads the answer, which must have that status, and nothing in it that the
// form does not have.
func into[T any](t testing.TB, a *answer, status int) T {
	t.Helper()
	var v T
	if a.Code != status {
		t.Fatalf("status %d, want %d: %s", a.Code, status, a.text)
	}
	decoder := json.NewDecoder(strings.NewReader(a.text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%s: %v", a.text, err)
	}
	return v
}

// wantProblem wants a problem with the words in it.
func wantProblem(t testing.TB, a *answer, status int, words ...string) {
	t.Helper()
	p := into[form.Problem](t, a, status)
	if p.Status != status || p.Code == "" || p.Title != http.StatusText(status) || a.Header().Get("Content-Type") != form.ProblemType {
		t.Errorf("the problem is %+v of type %s", p, a.Header().Get("Content-Type"))
	}
	for _, word := range words {
		if !strings.Contains(p.Detail, word) {
			t.Errorf("the detail is %q, want %q in it", p.Detail, word)
		}
	}
}

const askFor = `{"npe":64,"duration":"PT2H","ready":"2026-11-21T18:00:00+01:00","deadline":"2026-11-22T18:00:00+01:00"}`

// reserve makes a reservation and returns its id.
func (w *world) reserve(t testing.TB, user string) string {
	t.Helper()
	return into[form.Answer](t, w.do(user, "POST", "/v1/requests", askFor), 201).ID
}
