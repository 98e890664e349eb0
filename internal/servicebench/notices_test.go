//go:build unix

package servicebench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/courier"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/notice"
	"github.com/berth-hpc/berth/service"
)

const (
	// The receivers of notices: of ten users, the first of every second one hangs.
	noticeUsers   = 10
	noticeHooks   = 5 // of each user
	noticeHanging = 5
)

// pigeonhole is receivers of notices: which notices came, and what came in a wrong order.
type pigeonhole struct {
	hang chan struct{} // closed when receivers that hang let go

	mu    sync.Mutex
	last  map[string]string // by receiver and reservation, the id of the last notice
	came  atomic.Int64
	wrong []string
}

func (p *pigeonhole) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/hangs") {
		select {
		case <-p.hang:
		case <-r.Context().Done():
		}
		return
	}
	body, err := io.ReadAll(r.Body)
	id := r.Header.Get(notice.HeaderID)
	_, rest, found := strings.Cut(string(body), `"reservation":{"id":"`)
	of, _, _ := strings.Cut(rest, `"`)
	p.mu.Lock()
	key, number := r.URL.Path+of, id[:strings.LastIndex(id, "_")]
	if was := p.last[key]; err != nil || !found || len(was) > len(number) || len(was) == len(number) && was >= number {
		p.wrong = append(p.wrong, fmt.Sprintf("%s: %s behind %s: %v", key, number, was, err))
	}
	p.last[key] = number
	p.mu.Unlock()
	p.came.Add(1)
	w.WriteHeader(http.StatusNoContent)
}

// notices: what is owed to 50 receivers is sent to them, by HTTP over loopback, signed, five hanging.
// Of each reservation there are two notices, which have to come in order.
func notices(t *testing.T, size *sizes, lines *table) {
	store := openStore(t, t.TempDir())
	h := open(t, &service.Options{Config: clusters(1, size.pes), Journal: store})
	folder := t.TempDir()
	tokens, err := token.Open(folder, "root", h.Now())
	if err != nil {
		t.Fatal(err)
	}
	brings, err := courier.Open(courier.Options{Folder: folder, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	if err != nil {
		t.Fatal(err)
	}
	p := &pigeonhole{hang: make(chan struct{}), last: map[string]string{}}
	var servers []*httptest.Server
	var asks []service.Ask
	var working []string
	for u := range noticeUsers {
		by := service.Principal{User: fmt.Sprint("user", u), Role: service.User}
		ask := service.Ask{By: by}
		_, entry, err := tokens.Add(token.Wanted{User: by.User, Role: by.Role}, h.Now())
		if err != nil {
			t.Fatal(err)
		}
		for i := range noticeHooks {
			server := httptest.NewServer(p)
			servers = append(servers, server)
			hook := service.Hook{ID: fmt.Sprint("hook", u, "of", i), Form: service.WebhookForm, Kinds: []notice.Kind{notice.Granted, notice.Cancelled}, Parent: entry.ID}
			target := courier.Target{URL: server.URL + "/" + hook.ID, Secrets: []courier.Secret{{Key: make([]byte, notice.SecretBytes)}}}
			if i == 0 && u%(noticeUsers/noticeHanging) == 0 {
				target.URL = server.URL + "/hangs/" + hook.ID
			} else {
				working = append(working, hook.ID)
			}
			hook.Sealed = brings.Seal(hook.ID, &target)
			if _, err := h.AddHook(t.Context(), ask, hook); err != nil {
				t.Fatal(err)
			}
		}
		asks = append(asks, ask)
	}
	d := newDemand(h, size.notices/noticeHooks/2, size.pes, 5)
	crowd(t, 64, size.notices/noticeHooks/2, 11, func(ctx context.Context, r *rand.Rand, i int) error {
		q := d.draw(r)
		ask := asks[i%noticeUsers]
		q.User, q.Deadline = ask.By.User, q.Ready.Add(1<<30)
		a, err := h.Submit(ctx, ask, q)
		if err == nil {
			_, err = h.Release(ctx, ask, a.Reservation.ID)
		}
		return err
	})
	want := int64(size.notices / (noticeUsers * noticeHooks) * len(working))
	watch := stopwatch()
	h.SendNotices(&api.Messenger{Courier: brings, Tokens: tokens, Now: h.Now, Version: "bench"})
	for began := time.Now(); p.came.Load() < want; time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute*5 {
			t.Fatalf("%d notices of %d came", p.came.Load(), want)
		}
	}
	took := watch()
	for _, user := range asks {
		list, err := h.Hooks(t.Context(), user.By)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			if v := &list[i]; slices.Contains(working, v.ID) && (v.Dead > 0 || v.Failing != 0) {
				t.Errorf("%s has %d dead letters, fails since %d", v.ID, v.Dead, v.Failing)
			}
		}
	}
	close(p.hang)
	if err := errors.Join(h.Close(), store.Close()); err != nil {
		t.Error(err)
	}
	for _, server := range servers {
		server.CloseClientConnections()
		server.Close()
	}
	if len(p.wrong) > 0 || p.came.Load() != want {
		t.Errorf("%d notices, want %d; %d in a wrong order, such as %v", p.came.Load(), want, len(p.wrong), p.wrong[:min(len(p.wrong), 3)])
	}
	lines.add(fmt.Sprintf("%d notices for %d receivers, %d hang", size.notices, noticeUsers*noticeHooks, noticeHanging), "2000/s",
		"%s (%d sent); %s", perSecond(int(want), took.wall), want, took)
}
