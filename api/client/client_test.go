package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// harbour is a real service on a journal, with a clock that only a test moves.
type harbour struct {
	host   *service.Host
	server *httptest.Server
	tokens *token.Store
	clock  atomic.Int64
}

const noon = 1_795_262_400 // 2026-11-21T12:00:00Z

func newHarbour(t testing.TB) *harbour { return newHarbourOf(t, 64) }

func newHarbourOf(t testing.TB, pes berth.Count) *harbour {
	t.Helper()
	h := &harbour{}
	h.clock.Store(noon)
	store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	config := engine.Config{Sites: []berth.Site{{Name: "cm5", Pools: []berth.Pool{{Name: "batch", PEs: pes, Binding: berth.Late}}}}}
	h.host, err = service.Open(t.Context(), service.Options{
		Config: config, Journal: store, Version: "test", Clock: func() time.Time { return time.Unix(h.clock.Load(), 0) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if h.tokens, err = token.Open(t.TempDir(), "root", noon); err != nil {
		t.Fatal(err)
	}
	h.server = httptest.NewServer(api.New(api.Options{Service: h.host, Tokens: h.tokens, Limits: policy.Limits{{Name: policy.LimitRate, Value: policy.NoLimit}}}))
	t.Cleanup(func() {
		h.server.CloseClientConnections()
		h.server.Close()
		if err := errors.Join(h.host.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *harbour) client(t testing.TB, user string, role service.Role) *client.Client {
	t.Helper()
	secret, _, err := h.tokens.Add(token.Wanted{User: user, Role: role}, noon)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(h.server.URL, secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func wantCode(t *testing.T, err error, code berth.Code) {
	t.Helper()
	if e, is := errors.AsType[*berth.Error](err); !is || e.Code != code {
		t.Errorf("error %v, want code %s", err, code)
	}
}

func good[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// TestLifeOfAReservation goes all the way: asked, refused with offers, held,
// confirmed, modified, extended, started, used, released.
func TestLifeOfAReservation(t *testing.T) {
	h := newHarbour(t)
	alice, bob := h.client(t, "alice", service.User), h.client(t, "bob", service.User)
	ctx := t.Context()
	ask := &form.Request{NPE: 64, Duration: 3600, Deadline: noon + 3600}
	first := good[form.Answer](t)(alice.Request(ctx, ask, client.Action{Key: "one"}))
	if first.Decision != form.Accepted || first.Reservation.Start != noon || first.Reservation.User != "alice" {
		t.Fatalf("%+v", first)
	}
	again := good[form.Answer](t)(alice.Request(ctx, ask, client.Action{Key: "one"}))
	if again.ID != first.ID {
		t.Errorf("%s and %s", first.ID, again.ID)
	}
	_, err := alice.Request(ctx, &form.Request{NPE: 32, Duration: 3600, Deadline: noon + 3600}, client.Action{Key: "one"})
	wantCode(t, err, berth.Conflict)

	no := good[form.Answer](t)(bob.Request(ctx, ask, client.Action{}))
	if no.Decision != form.Refused || no.Reason != berth.NoCapacity || len(no.Offers) == 0 || no.Offers[0].Start != noon+3600 {
		t.Fatalf("%+v", no)
	}
	if list := good[[]form.Offer](t)(bob.Offers(ctx, ask, 1)); len(list) != 1 || list[0].Start != noon+3600 {
		t.Errorf("%+v", list)
	}
	held := good[form.Answer](t)(bob.Hold(ctx, no.Offers[0].ID, 600, client.Action{}))
	if held.Reservation.State != "held" || held.Reservation.Expires != noon+600 {
		t.Fatalf("%+v", held.Reservation)
	}
	confirmed := good[form.Reservation](t)(bob.Confirm(ctx, held.ID, client.Action{Version: held.Reservation.Version}))
	_, err = bob.Confirm(ctx, held.ID, client.Action{Version: held.Reservation.Version})
	wantCode(t, err, berth.Conflict)
	if confirmed.State != "confirmed" || confirmed.Version <= held.Reservation.Version {
		t.Errorf("%+v", confirmed)
	}
	less := good[form.Answer](t)(bob.Modify(ctx, held.ID, &form.Request{NPE: 32}, client.Action{}))
	if less.Decision != form.Accepted || less.Reservation.NPE != 32 || less.Reservation.Duration != 3600 {
		t.Errorf("%+v", less.Reservation)
	}
	more := good[form.Answer](t)(bob.Modify(ctx, held.ID, &form.Request{NPE: 65}, client.Action{}))
	if more.Decision != form.Refused || more.Reason != berth.TooLarge || more.Reservation.NPE != 32 {
		t.Errorf("%+v", more)
	}
	longer := good[form.Answer](t)(bob.ExtendBy(ctx, held.ID, 600, client.Action{}))
	longer = good[form.Answer](t)(bob.Extend(ctx, held.ID, longer.Reservation.End+60, client.Action{}))
	if longer.Reservation.End != noon+7200+660 {
		t.Errorf("%+v", longer.Reservation)
	}
	_, err = bob.CheckIn(ctx, held.ID, client.Action{})
	wantCode(t, err, berth.Conflict) // it has not started
	for _, do := range []func() error{
		func() error { _, err := alice.Get(ctx, held.ID); return err },
		func() error { _, err := alice.Release(ctx, held.ID, client.Action{}); return err },
		func() error { _, err := alice.Get(ctx, "no'such; id/../x"); return err },
	} {
		wantCode(t, do(), berth.NotFound)
	}
	gone := good[form.Reservation](t)(bob.Release(ctx, held.ID, client.Action{}))
	if gone.State != "cancelled" {
		t.Errorf("%+v", gone)
	}
	ended := good[form.Reservation](t)(alice.Release(ctx, first.ID, client.Action{}))
	if ended.State != "finished" && ended.State != "cancelled" {
		t.Errorf("%+v", ended)
	}
}

func TestListFetchesAllPages(t *testing.T) {
	h := newHarbour(t)
	alice, root, vera := h.client(t, "alice", service.User), h.client(t, "zoe", service.Operator), h.client(t, "vera", service.Viewer)
	var want []string
	for i := range 7 {
		a := good[form.Answer](t)(alice.Request(t.Context(), &form.Request{NPE: 1, Duration: 60, Ready: form.Time(noon + 60*i + 60), Deadline: noon + 86400}, client.Action{}))
		want = append(want, a.ID)
	}
	collect := func(c *client.Client, f client.Filter) (ids []string) {
		for r, err := range c.List(t.Context(), f) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, r.ID)
		}
		slices.Sort(ids)
		return ids
	}
	slices.Sort(want)
	for _, c := range []*client.Client{alice, root} {
		if diff := cmp.Diff(want, collect(c, client.Filter{PageSize: 3})); diff != "" {
			t.Error(diff)
		}
	}
	f := client.Filter{User: "alice", Site: "cm5", States: []string{"confirmed", "held"}, From: noon + 120, To: noon + 180}
	if got := collect(root, f); len(got) != 1 {
		t.Errorf("%d reservations", len(got))
	}
	for r, err := range vera.List(t.Context(), client.Filter{}) {
		if err != nil || r.User != "" {
			t.Errorf("a viewer sees %+v %v", r, err)
		}
	}
	if sites := good[[]form.Site](t)(vera.Sites(t.Context())); len(sites) != 1 || sites[0].Pools[0].PEs != 64 {
		t.Errorf("%+v", sites)
	}
	_, err := vera.Site(t.Context(), "nowhere")
	wantCode(t, err, berth.NotFound)
	_, err = alice.Shadow(t.Context(), "cm5", 5)
	wantCode(t, err, berth.Denied)
	_, err = root.Shadow(t.Context(), "cm5", 5)
	wantCode(t, err, berth.NotFound)
	wantCode(t, alice.Drain(t.Context(), "cm5", "n1", "x"), berth.Denied)
	_, err = alice.Doctor(t.Context(), "cm5")
	wantCode(t, err, berth.Denied)
	_, err = root.Doctor(t.Context(), "nowhere")
	wantCode(t, err, berth.NotFound)
	if me := good[form.Me](t)(vera.Me(t.Context())); me.User != "vera" || me.Role != "viewer" || me.Sites != nil {
		t.Error(me)
	}
	_, err = alice.AddToken(t.Context(), client.NewToken{User: "eve", Role: "operator"})
	wantCode(t, err, berth.Denied)
	made := good[form.Token](t)(root.AddToken(t.Context(), client.NewToken{User: "eve", Role: "user", Note: "laptop"}))
	if list := good[[]form.Token](t)(root.Tokens(t.Context())); !slices.ContainsFunc(list, func(k form.Token) bool { return k.ID == made.ID && k.Note == "laptop" }) {
		t.Errorf("%+v", list)
	}
	if err := root.RevokeToken(t.Context(), made.ID); err != nil {
		t.Error(err)
	}
}

func TestEventsOfALife(t *testing.T) {
	h := newHarbour(t)
	alice := h.client(t, "alice", service.User)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var seen []string
	for e, err := range alice.Events(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.ID == 0 { // the stream is open
			a := good[form.Answer](t)(alice.Request(ctx, &form.Request{NPE: 1, Duration: 60, Ready: noon + 600, Deadline: noon + 6000, Hold: form.DefaultHold}, client.Action{}))
			good[form.Reservation](t)(alice.Confirm(ctx, a.ID, client.Action{}))
			good[form.Reservation](t)(alice.Release(ctx, a.ID, client.Action{}))
			continue
		}
		seen = append(seen, e.What)
		if e.What == "cancelled" {
			break
		}
	}
	if !slices.Contains(seen, "accepted") || !slices.Contains(seen, "confirmed") {
		t.Error(seen)
	}
}

// TestABrokenStreamGoesOnBehindTheLastEvent has a service that ends its streams.
func TestABrokenStreamGoesOnBehindTheLastEvent(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Last-Event-ID"))
		fmt.Fprint(w, ": hello\nretry: 1\n\n")
		switch len(asked) {
		case 1:
			fmt.Fprint(w, "id: 7\nevent: accepted\ndata: {\"id\":7,\"at\":\"2026-11-21T12:00:00Z\",\"what\":\"accepted\",\"reservation\":{\"id\":\"a\",\"state\":\"held\"}}\n\n: alive\n\n")
		case 2:
			fmt.Fprint(w, "event: end\ndata: {\"status\":503,\"code\":\"unavailable\",\"detail\":\"the service stops\"}\n\n")
		case 3:
			fmt.Fprint(w, "id:\nevent: gap\ndata: {\"status\":404,\"code\":\"not_found\",\"detail\":\"no longer kept\"}\n\n")
		}
	}))
	defer server.Close()
	c := good[*client.Client](t)(client.New(server.URL, "", nil))
	var got []uint64
	var last error
	for e, err := range c.Events(t.Context(), 0) {
		if last = err; err == nil {
			got = append(got, e.ID)
		}
	}
	wantCode(t, last, berth.NotFound)
	if diff := cmp.Diff([]string{"", "7", "7"}, asked); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]uint64{0, 7}, got); diff != "" {
		t.Error(diff)
	}
}

// What happens between the cut of a stream that has told nothing yet and its next beginning is
// told too.
func TestAStreamThatBreaksBeforeItsFirstEventMissesNothing(t *testing.T) {
	h := newHarbour(t)
	alice := h.client(t, "alice", service.User)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	target := good[*url.URL](t)(url.Parse(h.server.URL))
	var mu sync.Mutex
	var cut context.CancelFunc
	relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		mu.Lock()
		cut = cancel
		mu.Unlock()
		proxy := httputil.NewSingleHostReverseProxy(target)
		proxy.FlushInterval = -1
		proxy.ErrorLog = log.New(io.Discard, "", 0)
		proxy.ServeHTTP(w, r.WithContext(ctx))
	}))
	defer relay.Close()
	secret, _, err := h.tokens.Add(token.Wanted{User: "alice", Role: service.User}, noon)
	if err != nil {
		t.Fatal(err)
	}
	behind := good[*client.Client](t)(client.New(relay.URL, secret, nil))
	for e, err := range behind.Events(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.ID == 0 { // the stream is open
			mu.Lock()
			cut()
			mu.Unlock()
			good[form.Answer](t)(alice.Request(ctx, &form.Request{NPE: 1, Duration: 60, Ready: noon + 600, Deadline: noon + 6000}, client.Action{}))
			continue
		}
		if e.What == "accepted" {
			return
		}
	}
	t.Error("what happened while it was cut is not told")
}

func TestWhatIsNoServiceIsUnavailable(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"html":     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"404":      func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) },
		"redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) },
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"user":"ann"}`)
		},
		"hangs up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		server := httptest.NewServer(handler)
		c := good[*client.Client](t)(client.New(server.URL+"/", "t", nil))
		_, err := c.Me(t.Context())
		if e, is := errors.AsType[*berth.Error](err); !is || e.Code != berth.Unavailable || !strings.Contains(err.Error(), server.URL) {
			t.Errorf("%s: %v", name, err)
		}
		server.Close()
		_, err = c.Me(t.Context())
		wantCode(t, err, berth.Unavailable)
		for _, err := range c.Events(t.Context(), 0) {
			wantCode(t, err, berth.Unavailable)
		}
	}
}

func TestWhoDoesNotWantToWaitAnyMore(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer server.Close()
	c := good[*client.Client](t)(client.New(server.URL, "", nil))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := c.Me(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	for _, err := range c.Events(ctx, 0) {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
}

func TestServersAndTokensThatAreNone(t *testing.T) {
	for _, server := range []string{"", "localhost:7117", "ftp://x", "http://", "http://a:b@x", "http://x?y", ":"} {
		if _, err := client.New(server, "", nil); err == nil {
			t.Errorf("%q is taken", server)
		}
	}
	if _, err := client.New("http://x", "a b\n", nil); err == nil {
		t.Error("a token with a space is taken")
	}
}

// TestTheOperatorsFileIsAToken has the file that the first start writes be of
// use as it is.
func TestTheOperatorsFileIsAToken(t *testing.T) {
	folder := t.TempDir()
	h := newHarbour(t)
	tokens, err := token.Open(folder, "root", noon)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api.New(api.Options{Service: h.host, Tokens: tokens}))
	defer server.Close()
	secret, err := os.ReadFile(filepath.Join(folder, token.OperatorFile))
	if err != nil {
		t.Fatal(err)
	}
	c := good[*client.Client](t)(client.New(server.URL, strings.TrimSpace(string(secret)), nil))
	if me := good[form.Me](t)(c.Me(t.Context())); me.User != "root" || me.Role != "operator" {
		t.Error(me)
	}
}
