package dst

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"

	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/service"
)

// serving is a planted fault of what stands before the API: do serves a request.
func serving(do func(h http.Handler, life int, w http.ResponseWriter, r *http.Request)) *plant {
	return &plant{serve: func(h http.Handler, life int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { do(h, life, w, r) })
	}}
}

// rewriting is one that changes the body of a request.
func rewriting(method, suffix string, change func(body []byte) []byte) *plant {
	return serving(func(h http.Handler, _ int, w http.ResponseWriter, r *http.Request) {
		if r.Method == method && strings.HasSuffix(r.URL.Path, suffix) {
			body, _ := io.ReadAll(r.Body) // of memory
			body = change(body)
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		}
		h.ServeHTTP(w, r)
	})
}

// promoting is one for which a role is not asked: everyone is taken for the operator.
func promoting(asks func(r *http.Request) bool) *plant {
	return serving(func(h http.Handler, _ int, w http.ResponseWriter, r *http.Request) {
		if asks(r) {
			r.Header.Set("Authorization", "Bearer "+clients.secret["operator"])
		}
		h.ServeHTTP(w, r)
	})
}

// eventLeftOut has every fifth event not be sent.
func eventLeftOut() *plant {
	return serving(func(h http.Handler, _ int, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/events" {
			w = &forgetful{ResponseWriter: w}
		}
		h.ServeHTTP(w, r)
	})
}

// eventAgain has a client that comes back in a later life hear the last event again.
func eventAgain() *plant {
	return serving(func(h http.Handler, life int, w http.ResponseWriter, r *http.Request) {
		var id uint64
		if _, err := fmt.Sscan(r.Header.Get("Last-Event-ID"), &id); err == nil && life > 1 && id > 1 {
			r.Header.Set("Last-Event-ID", fmt.Sprint(id-1))
		}
		h.ServeHTTP(w, r)
	})
}

// revived has a hold that has expired be confirmed.
func revived() *plant {
	return serving(func(h http.Handler, _ int, w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/confirm") || !strings.HasPrefix(r.URL.Path, "/v1/reservations/") {
			h.ServeHTTP(w, r)
			return
		}
		said := httptest.NewRecorder()
		h.ServeHTTP(said, r)
		if said.Code == http.StatusConflict && bytes.Contains(said.Body.Bytes(), []byte("is expired")) {
			w.WriteHeader(http.StatusOK)
			_, _ = io.WriteString(w, `{"state":"confirmed"}`)
			return
		}
		maps.Copy(w.Header(), said.Header())
		w.WriteHeader(said.Code)
		_, _ = w.Write(said.Body.Bytes())
	})
}

var (
	ofArray  = regexp.MustCompile(`"array":(\d+)`)
	ofNoShow = regexp.MustCompile(`,"no_show":\d+`)
)

// doubled has an array be one longer than was asked for.
func doubled() *plant {
	return rewriting(http.MethodPost, "/v1/requests", func(body []byte) []byte {
		return ofArray.ReplaceAllFunc(body, func(is []byte) []byte {
			var n int
			_, _ = fmt.Sscanf(string(is), `"array":%d`, &n) // which matches
			return fmt.Appendf(nil, `"array":%d`, n+1)
		})
	})
}

// skipsOccurrence gives back the last occurrence of a series when the service starts again.
func skipsOccurrence() *plant {
	return forgetsOf(func(_ string, occurrences []string) (method, path, body string) {
		return http.MethodDelete, "/v1/reservations/" + occurrences[len(occurrences)-1], ""
	})
}

// endsOpenSeries has an open series ask for nothing more when the service starts again.
func endsOpenSeries() *plant {
	return forgetsOf(func(s string, occurrences []string) (method, path, body string) {
		return http.MethodPost, "/v1/series/" + s + "/cancel", fmt.Sprintf(`{"from":%d}`, len(occurrences)+1)
	})
}

// forgetsOf makes a call about the last series, and its occurrences, when the service starts again.
func forgetsOf(call func(series string, occurrences []string) (method, path, body string)) *plant {
	var mu sync.Mutex
	var last string
	var occurrences []string
	lived := 1
	return serving(func(h http.Handler, life int, w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		id, of := last, occurrences
		fresh := life > lived && id != "" && r.Method == http.MethodPost
		if fresh {
			lived = life
		}
		mu.Unlock()
		if fresh {
			method, path, body := call(id, of)
			cancel := httptest.NewRequestWithContext(r.Context(), method, path, strings.NewReader(body))
			cancel.Header.Set("Content-Type", "application/json")
			cancel.Host, cancel.RemoteAddr = r.Host, r.RemoteAddr
			cancel.Header.Set("Authorization", "Bearer "+clients.secret["operator"])
			h.ServeHTTP(httptest.NewRecorder(), cancel)
		}
		if r.Method != http.MethodPost || r.URL.Path != "/v1/series" {
			h.ServeHTTP(w, r)
			return
		}
		both := &copying{ResponseWriter: w}
		h.ServeHTTP(both, r)
		var said struct {
			Series struct {
				ID          string
				Occurrences []struct{ ID string }
			}
		}
		if json.Unmarshal(both.said.Bytes(), &said) == nil && len(said.Series.Occurrences) > 0 {
			mu.Lock()
			last, occurrences = said.Series.ID, nil
			for _, o := range said.Series.Occurrences {
				occurrences = append(occurrences, o.ID)
			}
			mu.Unlock()
		}
	})
}

// copying keeps what is written.
type copying struct {
	http.ResponseWriter
	said bytes.Buffer
}

func (w *copying) Write(data []byte) (int, error) {
	w.said.Write(data)
	return w.ResponseWriter.Write(data)
}

// decidedTwice has a call that is repeated while it is under way be decided again.
func decidedTwice() *plant {
	var mu sync.Mutex
	underWay := map[string]bool{}
	return serving(func(h http.Handler, _ int, w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		mu.Lock()
		again := key != "" && underWay[key]
		if !again {
			underWay[key] = true
		}
		mu.Unlock()
		if again {
			r.Header.Del("Idempotency-Key")
		} else {
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				delete(underWay, key)
			}()
		}
		h.ServeHTTP(w, r)
	})
}

// keyless has calls of a path have no key.
func keyless(path string) *plant {
	return serving(func(h http.Handler, _ int, w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, path) {
			r.Header.Del("Idempotency-Key")
		}
		h.ServeHTTP(w, r)
	})
}

// messenger is what sends notices, and is wrong.
type messenger struct {
	service.Messenger
	send func(m service.Messenger, ctx context.Context, hook *service.Hook, o *service.Owed) service.Sent
}

func (m messenger) Send(ctx context.Context, hook *service.Hook, o *service.Owed) service.Sent {
	return m.send(m.Messenger, ctx, hook, o)
}

// noticeLost has the first notices of each life but the first be lost, as if they had been sent before the crash.
func noticeLost() *plant {
	return &plant{told: func(m service.Messenger, life int) service.Messenger {
		var mu sync.Mutex
		left := 3
		return messenger{m, func(m service.Messenger, ctx context.Context, hook *service.Hook, o *service.Owed) service.Sent {
			mu.Lock()
			left--
			lost := life > 1 && left >= 0
			mu.Unlock()
			if lost {
				return service.Sent{Status: http.StatusOK}
			}
			return m.Send(ctx, hook, o)
		}}
	}}
}

// overtaken keeps each notice back until the next one about the same reservation has been sent.
func overtaken() *plant {
	var mu sync.Mutex
	kept := map[string]*service.Owed{}
	return &plant{told: func(m service.Messenger, _ int) service.Messenger {
		return messenger{m, func(m service.Messenger, ctx context.Context, hook *service.Hook, o *service.Owed) service.Sent {
			r, is := o.Reservation()
			mu.Lock()
			before := kept[r.ID]
			delete(kept, r.ID)
			if is && before == nil {
				kept[r.ID] = o
			}
			mu.Unlock()
			switch {
			case is && before == nil:
				return service.Sent{Status: http.StatusOK}
			case before != nil:
				defer m.Send(ctx, hook, before)
			}
			return m.Send(ctx, hook, o)
		}}
	}}
}

// toOneAlone has a notice go to one of the receivers of a user alone.
func toOneAlone() *plant {
	return &plant{told: func(m service.Messenger, _ int) service.Messenger {
		return messenger{m, func(m service.Messenger, ctx context.Context, hook *service.Hook, o *service.Owed) service.Sent {
			if hook.ID > newReceivers()[1].id {
				return service.Sent{Status: http.StatusOK}
			}
			return m.Send(ctx, hook, o)
		}}
	}}
}

// keepsOthersWaiting has one notice at a time be sent, and waits for an answer for as long as there is none.
func keepsOthersWaiting() *plant {
	return &plant{told: func(m service.Messenger, _ int) service.Messenger {
		turn := make(chan struct{}, 1)
		return messenger{m, func(m service.Messenger, ctx context.Context, hook *service.Hook, o *service.Owed) service.Sent {
			select {
			case turn <- struct{}{}:
				defer func() { <-turn }()
			case <-ctx.Done():
				return service.Sent{Words: "it is over"}
			}
			sent := m.Send(ctx, hook, o)
			for sent.Status == 0 && ctx.Err() == nil {
				sent = m.Send(ctx, hook, o)
			}
			return sent
		}}
	}}
}

// older is a journal whose snapshots have the data of the ones before.
type older struct{ journal.Store }

func (s older) Snapshot(ctx context.Context, upTo uint64) (journal.Snapshot, error) {
	newest, err := s.Store.Snapshot(ctx, upTo)
	if err != nil || newest.Number < 2 {
		return newest, err
	}
	before, err := s.Store.Snapshot(ctx, newest.Number-1)
	if err == nil && len(before.Data) > 0 {
		newest.Data = before.Data
	}
	return newest, err
}

// unfenced has what a server was to write when it lost the journal be written in the life of the next one.
func unfenced() *plant {
	late := &lateBatch{}
	return &plant{wrap: func(s journal.Store) journal.Store { return &unfencedStore{Store: s, late: late} }}
}

type lateBatch struct {
	mu      sync.Mutex
	of      *unfencedStore
	records []journal.Record
}

type unfencedStore struct {
	journal.Store
	late *lateBatch
}

func (s *unfencedStore) Append(ctx context.Context, records ...journal.Record) error {
	s.late.mu.Lock()
	of, batch := s.late.of, s.late.records
	if of != nil && of != s {
		s.late.of, s.late.records = nil, nil
	}
	s.late.mu.Unlock()
	if of != nil && of != s {
		_ = s.Store.Append(ctx, batch...) // by the other server, which does not look whether it may
	}
	err := s.Store.Append(ctx, records...)
	if err != nil {
		s.late.mu.Lock()
		s.late.of, s.late.records = s, append([]journal.Record{}, records...)
		s.late.mu.Unlock()
	}
	return err
}
