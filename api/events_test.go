package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/identity"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// listener reads server-sent events over a connection.
type listener struct {
	*http.Response
	lines *bufio.Scanner
}

// serve has the API listen until the end of the test, when the clients, who
// came later, have gone.
func (w *world) serve(t testing.TB) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(w.Handler)
	t.Cleanup(server.Close)
	return server
}

// listen opens a stream of events; headers are pairs.
func (w *world) listen(t testing.TB, server, user, path string, headers ...string) *listener {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		r.Header.Set("Authorization", "Bearer "+w.tokens[user])
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { answer.Body.Close() })
	return &listener{answer, bufio.NewScanner(answer.Body)}
}

// next returns the lines up to the next empty one, false at the end.
func (l *listener) next() (string, bool) {
	var lines []string
	for l.lines.Scan() {
		if l.lines.Text() == "" {
			return strings.Join(lines, "\n"), true
		}
		lines = append(lines, l.lines.Text())
	}
	return strings.Join(lines, "\n"), false
}

// firstEvent listens for whatever comes first; status and text.
func (w *world) firstEvent(t *testing.T, user string) (int, string) {
	t.Helper()
	server := w.serve(t)
	l := w.listen(t, server.URL, user, "/v1/events?after=0")
	defer l.Body.Close()
	if l.StatusCode != http.StatusOK {
		return l.StatusCode, ""
	}
	text, _ := l.next()
	return l.StatusCode, text
}

func TestEventsComeInOrderAndGoOnBehindTheLast(t *testing.T) {
	w := newWorld(t, api.Options{})
	server := w.serve(t)
	w.reserve(t, "alice")
	l := w.listen(t, server.URL, "alice", "/v1/events")
	if l.Header.Get("Content-Type") != "text/event-stream" {
		t.Error(l.Header)
	}
	if text, _ := l.next(); text != ": events\nretry: 1000\nid: 1" { // behind what alice did
		t.Fatalf("it begins with %q", text)
	}
	w.reserve(t, "bob") // whose events alice does not get
	id := w.reserve(t, "alice")
	text, _ := l.next()
	head, data, _ := strings.Cut(text, "\ndata: ")
	var e form.Event
	if err := json.Unmarshal([]byte(data), &e); err != nil || head != "id: 3\nevent: accepted" || e.ID != 3 || e.Reservation.ID != id || e.What != "accepted" {
		t.Fatalf("%q %+v %v", head, e, err)
	}
	for _, again := range []*listener{
		w.listen(t, server.URL, "alice", "/v1/events", "Last-Event-ID", "1"),
		w.listen(t, server.URL, "alice", "/v1/events?after=1"),
		w.listen(t, server.URL, "alice", "/v1/events?after=77", "Last-Event-ID", "1"),
		w.listen(t, server.URL, "root", "/v1/events?after=2"),
	} {
		again.next()
		if text, _ := again.next(); !strings.HasPrefix(text, "id: 3\n") {
			t.Errorf("it goes on with %q", text)
		}
	}
}

// An event of a task shows the task as the list of tasks does, with how it ended: unknown,
// if the service did not see the end.
func TestEventsTellOfTasks(t *testing.T) {
	w := newWorld(t, api.Options{})
	server := w.serve(t)
	id := w.reserve(t, "alice")
	task := service.Task{Site: "cm5", Report: site.Report{Stage: site.Ended, Job: site.Job{
		ID: "7", Name: "solve", Start: start, End: start + 9, Reason: "killed", Result: site.Result{Ending: site.Failed, Code: 1, Signal: 9},
	}}}
	forgotten := task
	forgotten.Result = site.Result{}
	w.fake.tellTask(service.TaskEnded, id, &task)
	w.fake.tellTask(service.TaskEnded, id, &forgotten)
	l := w.listen(t, server.URL, "alice", "/v1/events?after=1")
	l.next()
	for _, want := range []string{`"state":"failed","signal":9,"reason":"killed"`, `"state":"unknown","reason":"killed"`} {
		text, _ := l.next()
		if !strings.Contains(text, "event: task_ended\n") || !strings.Contains(text, `"task":{"job":"7","name":"solve","site":"cm5",`+want) || !strings.Contains(text, `"id":"`+id) {
			t.Errorf("%s, want %s", text, want)
		}
	}
}

// An event of a workflow tells of the workflow, and of no reservation.
func TestEventsTellOfWorkflows(t *testing.T) {
	w := newWorld(t, api.Options{})
	server := w.serve(t)
	w.reserve(t, "alice")
	flow := into[form.WorkflowAnswer](t, w.do("alice", "POST", "/v1/workflows", flowFor), 201).Workflow
	l := w.listen(t, server.URL, "alice", "/v1/events?after=1")
	l.next()
	text, _ := l.next()
	_, data, _ := strings.Cut(text, "\ndata: ")
	var e map[string]any
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		t.Fatal(text, err)
	}
	about, _ := e["workflow"].(map[string]any)
	if e["what"] != "workflow_promised" || about["id"] != flow.ID || about["user"] != "alice" {
		t.Errorf("%s, want that workflow %s is promised", data, flow.ID)
	}
	if r, has := e["reservation"]; has {
		t.Errorf("it tells of a reservation: %v", r)
	}
}

// A panic in what a stream is read from, which has a goroutine of its own, ends the stream
// and no other call.
func TestAPanicOfAStreamEndsTheStream(t *testing.T) {
	var log strings.Builder
	w := newWorld(t, api.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	server := w.serve(t)
	w.reserve(t, "alice")
	w.fake.streamPanics = true
	l := w.listen(t, server.URL, "alice", "/v1/events?after=1")
	l.next()
	if text, more := l.next(); more {
		t.Errorf("it goes on with %q", text)
	}
	server.Close() // every call is over
	w.reserve(t, "alice")
	if !strings.Contains(log.String(), "the fake was told to") || !strings.Contains(log.String(), "fake).Listen") {
		t.Errorf("the log says %s", log.String())
	}
}

func TestEventsThatAreNoLongerKeptAreAGap(t *testing.T) {
	w := newWorld(t, api.Options{})
	server := w.serve(t)
	w.fake.lost = 5
	l := w.listen(t, server.URL, "alice", "/v1/events", "Last-Event-ID", "2")
	l.next()
	text, _ := l.next()
	if !strings.HasPrefix(text, "id:\nevent: gap\ndata: {") || !strings.Contains(text, "no longer kept") {
		t.Errorf("%q", text)
	}
	if text, more := l.next(); more {
		t.Errorf("it goes on with %q", text)
	}
	wantProblem(t, w.do("alice", "GET", "/v1/events?after=x", ""), 422, "after: ")
	wantProblem(t, w.do("alice", "GET", "/v1/events", "", "Last-Event-ID", "-1"), 422, "Last-Event-ID: ")
}

// TestAServersTimeForRequestsDoesNotEndAStream has a server that gives a request
// little time: a stream of events has more.
func TestAServersTimeForRequestsDoesNotEndAStream(t *testing.T) {
	w := newWorld(t, api.Options{Heartbeat: 250 * time.Millisecond})
	server := httptest.NewUnstartedServer(w.Handler)
	server.Config.ReadTimeout, server.Config.WriteTimeout = time.Second, time.Second
	server.Start()
	t.Cleanup(server.Close)
	l := w.listen(t, server.URL, "alice", "/v1/events")
	for i := range 6 { // 1.5 s
		if text, more := l.next(); !more {
			t.Fatalf("after %d signs of life it ended with %q", i, text)
		}
	}
}

// TestASilentStreamShowsSignsOfLife runs on the clock of a bubble.
func TestASilentStreamShowsSignsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, api.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		rec := &recorder{header: http.Header{}, written: make(chan string, 100)}
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.ServeHTTP(rec, w.ask("alice", "GET", "/v1/events", "").WithContext(ctx))
		}()
		<-rec.written
		began := time.Now()
		for i := range 3 {
			if text := <-rec.written; text != ": alive\n\n" || time.Since(began) != time.Duration(i+1)*15*time.Second {
				t.Errorf("after %s: %q", time.Since(began), text)
			}
		}
		cancel()
		<-done
	})
}

// recorder hands on what is written.
type recorder struct {
	header  http.Header
	written chan string
	stuck   chan struct{} // if not nil, writes wait for it and then fail
}

func (r *recorder) Header() http.Header { return r.header }
func (r *recorder) WriteHeader(int)     {}
func (r *recorder) FlushError() error   { return nil }
func (r *recorder) Write(data []byte) (int, error) {
	if r.stuck != nil {
		<-r.stuck
		return 0, context.DeadlineExceeded
	}
	r.written <- string(data)
	return len(data), nil
}

// TestAClientThatStopsReadingIsLetGo has a client that reads nothing: the write
// fails at its deadline, and nothing is left behind.
func TestAClientThatStopsReadingIsLetGo(t *testing.T) {
	others := goleak.IgnoreCurrent()
	w := newWorld(t, api.Options{})
	rec := &recorder{header: http.Header{}, stuck: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.ServeHTTP(rec, w.ask("alice", "GET", "/v1/events", ""))
	}()
	for range 1000 {
		w.reserve(t, "alice")
	}
	close(rec.stuck)
	<-done
	goleak.VerifyNone(t, others, goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

// A token that is made worthless ends the streams that it opened, and no others.
func TestARevokedTokenEndsItsStreams(t *testing.T) {
	w := newWorld(t, api.Options{})
	server := w.serve(t)
	made := into[form.Token](t, w.do("root", "POST", "/v1/tokens", `{"user":"eve","role":"operator"}`), http.StatusCreated)
	w.tokens["eve"] = made.Secret
	eve, alice := w.listen(t, server.URL, "eve", "/v1/events"), w.listen(t, server.URL, "alice", "/v1/events")
	for _, l := range []*listener{eve, alice} {
		if _, open := l.next(); !open {
			t.Fatal("it ended at once")
		}
	}
	if a := w.do("root", "DELETE", "/v1/tokens/"+made.ID, ""); a.Code != http.StatusNoContent {
		t.Fatal(a.text)
	}
	last, _ := eve.next()
	if more, open := eve.next(); open || !strings.Contains(last, "event: end") || !strings.Contains(last, "denied") {
		t.Errorf("after %q it goes on with %q", last, more)
	}
	if a := w.do("alice", "POST", "/v1/requests", `{"npe":1,"duration":"1h","deadline":"2026-11-22T12:00:00Z"}`); a.Code != http.StatusCreated {
		t.Fatal(a.text)
	}
	if text, open := alice.next(); !open || !strings.Contains(text, "event:") || strings.Contains(text, "event: end") {
		t.Errorf("alice reads %q", text)
	}
}

// The stream of a service account ends once its owner may do less: at once where that is for tokens to say, and with the next sign of life where it is
// for the machine.
func TestStreamsOfServiceAccountsFollowTheirOwner(t *testing.T) {
	w := newWorld(t, api.Options{})
	server := w.serve(t)
	olga := into[form.Token](t, w.do("root", "POST", "/v1/tokens", `{"user":"olga","role":"operator"}`), http.StatusCreated)
	w.tokens["olga"] = olga.Secret
	w.robot(t, "olga", "svc-ops", "operator", "")
	w.robot(t, "alice", "svc-ci", "user", "")
	ops, other := w.listen(t, server.URL, "svc-ops", "/v1/events"), w.listen(t, server.URL, "svc-ci", "/v1/events")
	for _, l := range []*listener{ops, other} {
		if _, open := l.next(); !open {
			t.Fatal("it ended at once")
		}
	}
	into[form.Token](t, w.do("root", "POST", "/v1/tokens", `{"user":"olga","role":"user"}`), http.StatusCreated)
	if a := w.do("root", "DELETE", "/v1/tokens/"+olga.ID, ""); a.Code != http.StatusNoContent {
		t.Fatal(a.text)
	}
	if last, _ := ops.next(); !strings.Contains(last, "event: end") || !strings.Contains(last, "denied") {
		t.Errorf("it goes on with %q", last)
	}
	w.reserve(t, "svc-ci")
	if text, open := other.next(); !open || strings.Contains(text, "event: end") {
		t.Errorf("svc-ci reads %q", text)
	}
}

// TestStreamsOfServiceAccountsFollowTheMachine runs on the clock of a bubble, in which the directory forgets the owner.
func TestStreamsOfServiceAccountsFollowTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, api.Options{})
		w.also.Store(&identity.Account{Name: "carla", UID: 1011})
		if _, err := w.store.AddAccount(token.Account{Name: "svc-c", Owner: "carla", Role: service.User}, service.Principal{User: "carla", Role: service.User}, start); err != nil {
			t.Fatal(err)
		}
		var err error
		if w.tokens["svc-c"], _, err = w.store.AddAccountToken("svc-c", token.Wanted{}, start); err != nil {
			t.Fatal(err)
		}
		rec := &recorder{header: http.Header{}, written: make(chan string, 100)}
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.ServeHTTP(rec, w.ask("svc-c", "GET", "/v1/events", ""))
		}()
		<-rec.written
		if text := <-rec.written; text != ": alive\n\n" {
			t.Fatal(text)
		}
		w.also.Store(nil)
		began := time.Now()
		for text := range rec.written {
			if strings.Contains(text, "event: end") {
				break
			}
			if time.Since(began) > time.Minute {
				t.Fatal("it goes on")
			}
		}
		<-done
	})
}

// One user cannot use up the streams of all users.
func TestStreamsOfOneUserAreBounded(t *testing.T) {
	w := newWorld(t, api.Options{})
	server := w.serve(t)
	for range 128 {
		if l := w.listen(t, server.URL, "vera", "/v1/events"); l.StatusCode != http.StatusOK {
			t.Fatal(l.Status)
		}
	}
	if l := w.listen(t, server.URL, "vera", "/v1/events"); l.StatusCode != http.StatusTooManyRequests {
		t.Error(l.Status)
	}
	if l := w.listen(t, server.URL, "alice", "/v1/events"); l.StatusCode != http.StatusOK {
		t.Error(l.Status)
	}
}
