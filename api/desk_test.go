package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/service"
)

// slowLists is a service whose lists take a second, and notes how many are under way.
type slowLists struct {
	*fake
	mu           sync.Mutex
	of, most     map[string]int
	all, mostAll int
}

func (s *slowLists) List(ctx context.Context, by service.Principal, _ service.Filter) ([]service.Reservation, int, error) {
	s.note(by.User, 1)
	defer s.note(by.User, -1)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	return nil, 0, ctx.Err()
}

func (s *slowLists) note(user string, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[user] += by
	s.all += by
	s.most[user], s.mostAll = max(s.most[user], s.of[user]), max(s.mostAll, s.all)
}

// Costly calls of one user are done one at a time, so that another user's, which comes
// last, does not wait for them; one that is given up leaves its place.
func TestCostlyCallsOfAUserAreDoneInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowLists{fake: newFake(), of: map[string]int{}, most: map[string]int{}}
		w := newWorld(t, api.Options{Service: s, Limits: unlimited})
		var all sync.WaitGroup
		began := time.Now()
		ask := func(user string, within time.Duration) {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), within)
				defer cancel()
				r := w.ask(user, "GET", "/v1/reservations", "").WithContext(ctx)
				w.ServeHTTP(&discarded{header: http.Header{}}, r)
			})
		}
		for range 5 {
			ask("alice", time.Hour)
		}
		for range 3 {
			ask("alice", 100*time.Millisecond) // given up while they wait
		}
		synctest.Wait()
		into[form.Page](t, w.do("bob", "GET", "/v1/reservations", ""), 200)
		if took := time.Since(began); took > 1100*time.Millisecond {
			t.Errorf("bob is answered after %s, want one second", took)
		}
		all.Wait()
		if took := time.Since(began); took < 5*time.Second || took > 8*time.Second {
			t.Errorf("alice is answered after %s, want one second for each of five", took)
		}
		if s.most["alice"] != 1 || s.mostAll > 2 || s.all != 0 {
			t.Errorf("at most %d of alice, %d in all at once, and %d are left", s.most["alice"], s.mostAll, s.all)
		}
	})
}

// Costly calls of a service account wait for those of its owner.
func TestCostlyCallsOfServiceAccountsAreInTheTurnOfTheirOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowLists{fake: newFake(), of: map[string]int{}, most: map[string]int{}}
		w := newWorld(t, api.Options{Service: s, Limits: unlimited})
		w.robot(t, "alice", "svc-ci", "user", "")
		w.robot(t, "alice", "svc-cd", "user", "")
		began := time.Now()
		var all sync.WaitGroup
		for _, user := range []string{"alice", "svc-ci", "svc-cd"} {
			all.Go(func() { into[form.Page](t, w.do(user, "GET", "/v1/reservations", ""), 200) })
		}
		all.Wait()
		if took := time.Since(began); s.mostAll != 1 || took < 3*time.Second {
			t.Errorf("%d are under way at once and all are answered after %s, want one second for each of three", s.mostAll, took)
		}
	})
}

// discarded is an answer that is not looked at.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header            { return d.header }
func (d *discarded) Write(data []byte) (int, error) { return len(data), nil }
func (d *discarded) WriteHeader(int)                {}

// What is read of large bodies counts: a body of a megabyte as much as 64 calls.
func TestALargeBodyCountsAsManyCalls(t *testing.T) {
	w := newWorld(t, api.Options{Limits: rate(1, 100)})
	large := fmt.Sprintf(`{"software":%q,`, strings.Repeat("x", 1<<20-1000)) + askFor[1:]
	var codes []int
	for range 4 {
		codes = append(codes, w.do("alice", "POST", "/v1/offers", large).Code)
	}
	if fmt.Sprint(codes) != "[422 422 429 429]" {
		t.Errorf("%v, want the third to be too much", codes)
	}
}

// heldList is a service whose lists end when they are let go.
type heldList struct {
	*fake
	begun, release chan struct{}
}

func (s *heldList) List(context.Context, service.Principal, service.Filter) ([]service.Reservation, int, error) {
	close(s.begun)
	<-s.release
	return nil, 0, nil
}

// What looks at much is done one at a time for each user, whichever endpoint it is of; the rest
// does not wait for it.
func TestWhatLooksAtMuchWaitsForItsUsersTurn(t *testing.T) {
	waits := []string{
		"GET /v1/audit", "GET /v1/calendar", "GET /v1/gantt", "GET /v1/gantt/named", "GET /v1/outbox", "GET /v1/quotas", "GET /v1/reservations/{id}", "GET /v1/reservations/{id}/history", "GET /v1/series", "POST /v1/series", "GET /v1/series/{id}", "GET /v1/sites/{name}/occupation", "GET /v1/sites/{name}/spans/{number}", "GET /v1/usage",
		"GET /v1/workflows", "POST /v1/workflows/offers", "POST /v1/workflows/plans",
	}
	var described struct {
		Paths map[string]map[string]struct{ Security []map[string][]string }
	}
	w := newWorld(t, api.Options{})
	if err := json.Unmarshal([]byte(w.do("root", "GET", "/openapi.json", "").text), &described); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, path := range slices.Sorted(maps.Keys(described.Paths)) {
		for _, method := range []string{"GET", "POST"} {
			if op, is := described.Paths[path][strings.ToLower(method)]; !is || len(op.Security) == 0 || path == "/v1/events" || path == "/v1/reservations" { // the first ends with its client, the last has the turn
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				s := &heldList{newFake(), make(chan struct{}), make(chan struct{})}
				w := newWorld(t, api.Options{Service: s, Limits: unlimited})
				var both sync.WaitGroup
				both.Go(func() { w.do("root", "GET", "/v1/reservations", "") })
				<-s.begun
				answered := false
				both.Go(func() {
					w.do("root", method, strings.NewReplacer("{id}", "none", "{name}", "cm5", "{node}", "n1").Replace(path), "{}")
					answered = true
				})
				if synctest.Wait(); !answered {
					got = append(got, method+" "+path)
				}
				close(s.release)
				both.Wait()
			})
		}
	}
	if !slices.Equal(got, waits) {
		t.Errorf("%q wait, want %q", got, waits)
	}
}
