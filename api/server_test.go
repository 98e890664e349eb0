package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/site"
)

func TestStatusesOfErrors(t *testing.T) {
	for _, test := range []struct {
		err    error
		status int
		code   berth.Code
	}{
		{berth.Errorf(berth.Invalid, "x", "m"), 422, berth.Invalid},
		{berth.Errorf(berth.Conflict, "id", "m"), 409, berth.Conflict},
		{berth.Errorf(berth.Conflict, "version", "m"), 412, berth.Conflict},
		{berth.Errorf(berth.Conflict, "idempotency_key", "m"), 422, berth.Conflict},
		{berth.Errorf(berth.NotFound, "", "m"), 404, berth.NotFound},
		{berth.Errorf(berth.Denied, "", "m"), 403, berth.Denied},
		{berth.Errorf(berth.Exhausted, "", "m"), 429, berth.Exhausted},
		{berth.Errorf(berth.Unavailable, "", "m"), 503, berth.Unavailable},
		{berth.Errorf(berth.Internal, "", "m"), 500, berth.Internal},
		{fmt.Errorf("wrapped: %w", berth.Errorf(berth.NotFound, "", "m")), 404, berth.NotFound},
		{errors.Join(berth.Errorf(berth.Invalid, "a", "m"), berth.Errorf(berth.Invalid, "b", "m")), 422, berth.Invalid},
		{site.Errorf(site.Unreachable, "drain", "m"), 503, berth.Unavailable},
		{site.Errorf(site.Denied, "drain", "m"), 403, berth.Denied},
		{fmt.Errorf("waiting: %w", context.DeadlineExceeded), 503, berth.Unavailable},
		{berth.Errorf(berth.Exhausted, "journal", "no room left"), 503, berth.Exhausted},
		{&os.PathError{Op: "write", Path: "tokens.json", Err: syscall.ENOSPC}, 503, berth.Unavailable},
	} {
		w := newWorld(t, api.Options{})
		w.fake.fails = test.err
		a := w.do("alice", "GET", "/v1/reservations", "")
		wantProblem(t, a, test.status)
		if p := into[form.Problem](t, a, test.status); p.Code != test.code {
			t.Errorf("%v: code %s, want %s", test.err, p.Code, test.code)
		}
	}
}

// TestFaultsOfOursAreLoggedAndNotTold has an error with a secret in it, and a
// panic.
func TestFaultsOfOursAreLoggedAndNotTold(t *testing.T) {
	var log strings.Builder
	w := newWorld(t, api.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	w.fake.fails = fmt.Errorf("dial postgres://berth:secret@db: %w", io.ErrUnexpectedEOF)
	a := w.do("alice", "GET", "/v1/reservations", "")
	wantProblem(t, a, 500, "an internal error")
	if strings.Contains(a.text, "secret") || !strings.Contains(log.String(), "secret") {
		t.Error(a.text, log.String())
	}
	w.fake.fails = nil
	w.fake.panics = true
	a = w.do("alice", "POST", "/v1/requests", askFor)
	wantProblem(t, a, 500, "an internal error")
	if strings.Contains(a.text, "told to") || !strings.Contains(log.String(), "the fake was told to") {
		t.Error(a.text, log.String())
	}
	w.fake.panics = false
	w.reserve(t, "alice")
}

func TestPathsMethodsAndBodies(t *testing.T) {
	w := newWorld(t, api.Options{})
	wantProblem(t, w.do("alice", "GET", "/v1/nothing", ""), 404, "/openapi.json")
	wantProblem(t, w.do("alice", "GET", "/nothing", ""), 404)
	a := w.do("alice", "PUT", "/v1/reservations", "")
	wantProblem(t, a, 405, "PUT; want GET or HEAD")
	if a.Header().Get("Allow") != "GET, HEAD" {
		t.Error(a.Header())
	}
	wantProblem(t, w.do("alice", "POST", "/v1/requests", askFor, "Content-Type", "text/plain"), 415, "Content-Type")
	wantProblem(t, w.do("alice", "POST", "/v1/requests", askFor, "Content-Type", ""), 415)
	into[form.Answer](t, w.do("alice", "POST", "/v1/requests", askFor, "Content-Type", "application/json; charset=utf-8"), 201)
	large := `{"site":"` + strings.Repeat("x", 1<<20) + `"}`
	wantProblem(t, w.do("alice", "POST", "/v1/requests", large), 413, "larger than 1048576 bytes")
	r := w.ask("alice", "POST", "/v1/requests", large)
	r.ContentLength = -1 // as a chunked one has it
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, r)
	if rec.Code != 413 {
		t.Error(rec.Code)
	}
	for _, one := range []struct {
		length int64
		status int
	}{{-1, 201}, {int64(len(askFor)), 201}, {int64(len(askFor)) + 1, 408}} { // the last one is cut off
		r = w.ask("alice", "POST", "/v1/requests", askFor)
		r.ContentLength = one.length
		rec = httptest.NewRecorder()
		w.ServeHTTP(rec, r)
		if rec.Code != one.status {
			t.Errorf("a length of %d: %d, want %d", one.length, rec.Code, one.status)
		}
	}
	r = w.ask("alice", "POST", "/v1/requests", "{}")
	r.ContentLength = 1 << 60 // for which no room is made
	rec = httptest.NewRecorder()
	w.ServeHTTP(rec, r)
	if rec.Code != 413 {
		t.Error(rec.Code)
	}
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	wantProblem(t, w.do("alice", "POST", "/v1/requests", `{"variants":`+deep+`}`), 422, "not JSON")
	deep = strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000)
	wantProblem(t, w.do("alice", "POST", "/v1/requests", `{"variants":`+deep+`}`), 422, "variants[0]")
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, `"f%d":1,`, i)
	}
	if p := into[form.Problem](t, w.do("alice", "POST", "/v1/requests", "{"+many.String()+`"z":1}`), 422); len(p.Errors) != 20 {
		t.Errorf("%d mistakes are told", len(p.Errors))
	}
	if a := w.do("alice", "GET", "/v1/me", ""); a.Header().Get("X-Content-Type-Options") != "nosniff" || a.Header().Get("Cache-Control") != "no-store" {
		t.Error(a.Header())
	}
}

func TestRootServesTheRest(t *testing.T) {
	w := newWorld(t, api.Options{Root: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })})
	if a := w.do("", "GET", "/calendar", ""); a.text != "page" {
		t.Error(a.text)
	}
	wantProblem(t, w.do("alice", "GET", "/v1/harbour", ""), 404)
}

func TestHealthAndMetrics(t *testing.T) {
	w := newWorld(t, api.Options{})
	if got := into[form.Health](t, w.do("", "GET", "/readyz", ""), 200); got.Status != "ready" || got.Time != form.Time(start) {
		t.Error(got)
	}
	w.fake.fails = berth.Errorf(berth.Unavailable, "journal", "disk full")
	wantProblem(t, w.do("", "GET", "/readyz", ""), 503, "journal: disk full")
	into[form.Health](t, w.do("", "GET", "/healthz", ""), 200)
	w.do("alice", "GET", "/v1/reservations", "")
	text := w.do("", "GET", "/metrics", "").text
	for _, line := range []string{
		`berth_api_requests_total{endpoint="list",status="503"} 1`, `berth_api_request_seconds_count{endpoint="ready"} 2`, "berth_api_event_streams 0",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("%s is not in\n%s", line, text)
		}
	}
}

// TestTheDescriptionHolds has every reference in it lead somewhere, and every
// field and status that the service knows be in it.
func TestTheDescriptionHolds(t *testing.T) {
	w := newWorld(t, api.Options{Version: "1.2.3"})
	text := w.do("", "GET", "/openapi.json", "").text
	var doc struct {
		OpenAPI    string                     `json:"openapi"`
		Info       map[string]string          `json:"info"`
		Components map[string]json.RawMessage `json:"components"`
		Paths      map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct {
					Schema struct {
						AdditionalProperties any                        `json:"additionalProperties"`
						Properties           map[string]json.RawMessage `json:"properties"`
					} `json:"schema"`
				} `json:"content"`
			} `json:"requestBody"`
			Responses map[string]json.RawMessage `json:"responses"`
		} `json:"paths"`
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Info["version"] != "1.2.3" || doc.Paths["/v1/requests"] == nil {
		t.Error(doc.OpenAPI, doc.Info, len(doc.Paths))
	}
	var schemas map[string]json.RawMessage
	if err := json.Unmarshal(doc.Components["schemas"], &schemas); err != nil {
		t.Fatal(err)
	}
	for _, reference := range strings.Split(text, `"$ref":"#/components/schemas/`)[1:] {
		name, _, _ := strings.Cut(reference, `"`)
		if _, there := schemas[name]; !there {
			t.Errorf("no schema %s", name)
		}
	}
	ask := doc.Paths["/v1/requests"]["post"]
	properties := ask.RequestBody.Content["application/json"].Schema.Properties
	for _, name := range []string{"npe", "ready", "deadline", "duration", "user", "site", "pool", "pes", "software", "version", "licences", "memory_mb", "storage_mb", "accelerators", "partition", "variants", "parts", "hold", "no_show", "kind"} {
		if _, there := properties[name]; !there {
			t.Errorf("a request has no %s", name)
		}
	}
	if ask.RequestBody.Content["application/json"].Schema.AdditionalProperties != false || ask.Responses["201"] == nil || ask.Responses["default"] == nil {
		t.Errorf("%+v", ask)
	}
}

// Every parameter of a query, answer and header of an answer says what it is.
func TestEverythingIsDescribed(t *testing.T) {
	w := newWorld(t, api.Options{})
	var doc struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In, Description string }
			Responses  map[string]struct {
				Description string
				Headers     map[string]struct{ Description string }
			}
		}
	}
	if err := json.Unmarshal([]byte(w.do("", "GET", "/openapi.json", "").text), &doc); err != nil {
		t.Fatal(err)
	}
	headers := 0
	for path, operations := range doc.Paths {
		for method, operation := range operations {
			for _, p := range operation.Parameters {
				if p.Description == "" && p.In != "path" { // whose names say it
					t.Errorf("%s %s: parameter %s has no description", method, path, p.Name)
				}
			}
			for status, answer := range operation.Responses {
				if answer.Description == "" {
					t.Errorf("%s %s: answer %s has no description", method, path, status)
				}
				for name, header := range answer.Headers {
					headers++
					if header.Description == "" {
						t.Errorf("%s %s: header %s of answer %s has no description", method, path, name, status)
					}
				}
			}
		}
	}
	if headers == 0 {
		t.Error("no answer has a header that is described")
	}
}

// TestTenThousandAtOnce has everybody ask at the same moment: each gets an
// answer, everything asked for is there once, and nothing is left behind.
func TestTenThousandAtOnce(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 1000
	}
	w := newWorld(t, api.Options{Limits: unlimited})
	before := runtime.NumGoroutine()
	gate := make(chan struct{})
	var good atomic.Int64
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-gate
			if a := w.do("alice", "POST", "/v1/requests", askFor, "Idempotency-Key", fmt.Sprint(i/2)); a.Code == 201 {
				good.Add(1)
			}
		})
	}
	close(gate)
	all.Wait()
	if good.Load() != int64(n) || len(w.fake.made) != n/2 {
		t.Errorf("%d of %d were answered, %d were made", good.Load(), n, len(w.fake.made))
	}
	if after := runtime.NumGoroutine(); after > before+10 {
		t.Errorf("%d goroutines, %d before", after, before)
	}
}

// TestSlowClientsAreCutOff has clients that send half a header or half a body.
func TestSlowClientsAreCutOff(t *testing.T) {
	w := newWorld(t, api.Options{})
	server := api.Server(w.Handler)
	server.ReadHeaderTimeout = 50 * time.Millisecond
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() {
		server.Close()
		<-served
	}()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST /v1/requests HTTP/1.1\r\nHost: b"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, io.EOF) { // returns when the server gives up
		t.Log(err)
	}
	into[form.Me](t, w.do("alice", "GET", "/v1/me", ""), 200)
}

// TestABodyThatStallsIsGivenUp checks that a body has a time of its own.
func TestABodyThatStallsIsGivenUp(t *testing.T) {
	w := newWorld(t, api.Options{})
	server := w.serve(t)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(server.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /v1/requests HTTP/1.1\r\nHost: b\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", w.tokens["alice"])
	if tcp, is := conn.(*net.TCPConn); is {
		_ = tcp.CloseWrite() // the same as a timeout: it ends before it is all there
	}
	text, err := io.ReadAll(conn)
	conn.Close()
	if err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 408 ") || !strings.Contains(string(text), "cut off or not sent within 10s") {
		t.Errorf("%s %v", text, err)
	}
}

func TestMetricsCanAskForAToken(t *testing.T) {
	w := newWorld(t, api.Options{MetricsToken: true})
	for user, want := range map[string]int{"": 401, "vera": 200, "alice": 200, "root": 200} {
		if a := w.do(user, "GET", "/metrics", ""); a.Code != want || want == 200 != strings.Contains(a.text, "berth_api_event_streams") {
			t.Errorf("%q gets %d, want %d: %.100s", user, a.Code, want, a.text)
		}
	}
	if a := newWorld(t, api.Options{}).do("", "GET", "/metrics", ""); a.Code != 200 {
		t.Errorf("without the option the status is %d, want 200", a.Code)
	}
}

// A method that HTTP does not know is told what is allowed, wherever some other method is.
func TestUnusualMethodsAreToldWhatIsAllowed(t *testing.T) {
	w := newWorld(t, api.Options{})
	for path, allow := range map[string]string{
		"/v1/reservations": "GET, HEAD", "/v1/requests": "POST", "/v1/reservations/r1": "DELETE, GET, HEAD, PATCH", "/v1/workflows/plans": "POST",
		"/healthz": "GET, HEAD", "/metrics": "GET, HEAD",
	} {
		for _, method := range []string{"PROPFIND", "BREW", "get"} {
			a := w.do("alice", method, path, "")
			wantProblem(t, a, 405, method)
			if got := a.Header().Get("Allow"); got != allow {
				t.Errorf("%s %s: Allow is %q, want %q", method, path, got, allow)
			}
		}
	}
	wantProblem(t, w.do("alice", "BREW", "/v1/nothing", ""), 404)
	wantProblem(t, w.do("alice", "BREW", "/nothing", ""), 404)
}
