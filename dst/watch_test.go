package dst

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing/synctest"

	"github.com/berth-hpc/berth/service"
)

var operator = service.Principal{User: "operator", Role: service.Operator}

// watcher is a client that follows the events and knows by them alone how every reservation is. It comes
// back behind the last event that it got, after a restart too, and looks at everything anew only when
// the service says that it has to.
type watcher struct {
	w *world

	mu     sync.Mutex
	last   string            // id of the last event
	states map[string]string // by reservation
	seen   []uint64          // in this life
	all    []uint64          // that there were in this life, by the service's own account
	gap    bool              // it was told to look anew
	ended  bool
	repeat error

	life   *life
	cancel context.CancelFunc
	done   chan struct{}
	told   chan struct{}
	stop   context.CancelFunc
}

func newWatcher(w *world) *watcher { return &watcher{w: w, states: map[string]string{}} }

// attach follows a life.
func (h *watcher) attach(l *life) {
	h.life, h.seen, h.all = l, nil, nil
	ctx, stop := context.WithCancel(context.Background())
	h.stop, h.told = stop, make(chan struct{})
	notices := l.host.Listen(ctx, operator, max(l.began<<20, 1)) // behind what the last life has told
	go func() {
		defer close(h.told)
		for n, err := range notices {
			if err != nil {
				return
			}
			h.mu.Lock()
			h.all = append(h.all, n.Number)
			h.mu.Unlock()
		}
	}()
	fresh := h.last == ""
	h.gap = h.gap || fresh && h.w.before > 0 // there is something that no event tells it
	h.connect()
	synctest.Wait()
	if fresh {
		h.mu.Lock()
		h.seen = slices.Clone(h.all) // it listens from now on, and has seen that there was nothing
		h.mu.Unlock()
	}
	h.catchUp()
}

// detach is called when the service has stopped.
func (h *watcher) detach() {
	if h.life == nil {
		return
	}
	h.stop()
	<-h.told
	h.leave()
	if h.repeat != nil {
		h.w.fault("%w", h.repeat)
		h.repeat = nil
	}
	h.life = nil
}

func (h *watcher) connect() {
	ctx, cancel := context.WithCancel(context.Background())
	h.cancel, h.done, h.ended = cancel, make(chan struct{}), false
	r := arrived(ctx, http.MethodGet, "/v1/events", "")
	r.Header.Set("Authorization", "Bearer "+h.w.keys.secret["operator"])
	r.Header.Set("X-Request-Id", "events")
	if h.last != "" {
		r.Header.Set("Last-Event-ID", h.last)
	}
	l, done := h.life, h.done
	go func() {
		defer close(done)
		l.handler.ServeHTTP(&reader{header: http.Header{}, take: func(fields map[string]string) { h.take(l, fields) }}, r)
		h.mu.Lock()
		h.ended = true
		h.mu.Unlock()
	}()
}

func (h *watcher) leave() {
	h.cancel()
	<-h.done
}

// breakOff loses the connection and comes back.
func (h *watcher) breakOff() {
	h.leave()
	h.connect()
	synctest.Wait()
	h.catchUp()
}

// take takes what the service sends.
func (h *watcher) take(l *life, fields map[string]string) {
	if l.isDead() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	id, named := fields["id"]
	if named {
		h.last = id
	}
	switch what := fields["event"]; what {
	case "", "end":
		return
	case "gap":
		h.gap = true
		return
	}
	var e struct {
		ID          uint64
		Reservation struct{ ID, State string }
	}
	if err := json.Unmarshal([]byte(fields["data"]), &e); err != nil || fmt.Sprint(e.ID) != id {
		h.repeat = fmt.Errorf("the event %s is %q: %w", id, fields["data"], err)
		return
	}
	if n := len(h.seen); n > 0 && h.seen[n-1] >= e.ID {
		h.repeat = fmt.Errorf("the event %d comes behind %d", e.ID, h.seen[n-1])
	}
	h.seen = append(h.seen, e.ID)
	if e.Reservation.ID != "" {
		h.states[e.Reservation.ID] = e.Reservation.State
	}
}

// catchUp looks at everything anew if the service has said so, as a client does: it listens first.
func (h *watcher) catchUp() {
	h.mu.Lock()
	gap := h.gap
	h.gap = false
	h.mu.Unlock()
	if !gap || h.life.isDead() {
		return
	}
	h.leave()
	h.last = ""
	h.connect()
	synctest.Wait()
	list, err := h.w.list()
	if err != nil {
		if !h.life.isDead() {
			h.w.fault("listing anew: %w", err)
		}
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.states = map[string]string{}
	for i := range list {
		h.states[list[i].ID] = string(list[i].State)
	}
	h.seen = slices.Clone(h.all) // what it has not heard it has seen
}

// check compares what the events said with how everything is.
func (h *watcher) check(list []service.Reservation) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return nil // it was cut off, and comes back later
	}
	if !slices.Equal(h.seen, h.all) {
		for i, id := range h.all {
			if i >= len(h.seen) || h.seen[i] != id {
				return fmt.Errorf("of %d events a client heard %d; the first that differs is %d", len(h.all), len(h.seen), id)
			}
		}
		return fmt.Errorf("of %d events a client heard %d", len(h.all), len(h.seen))
	}
	for i := range list {
		if r := &list[i]; h.states[r.ID] != string(r.State) {
			return fmt.Errorf("%s is %s, and is %q by the events that a client heard", r.ID, r.State, h.states[r.ID])
		}
	}
	return nil
}

// reader reads server-sent events.
type reader struct {
	header http.Header
	rest   []byte
	take   func(fields map[string]string)
}

func (r *reader) Header() http.Header { return r.header }
func (r *reader) WriteHeader(int)     {}
func (r *reader) Flush()              {}

func (r *reader) Write(data []byte) (int, error) {
	r.rest = append(r.rest, data...)
	for {
		block, rest, whole := bytes.Cut(r.rest, []byte("\n\n"))
		if !whole {
			return len(data), nil
		}
		r.rest = rest
		fields := map[string]string{}
		for line := range strings.Lines(string(block)) {
			if name, value, is := strings.Cut(strings.TrimSuffix(line, "\n"), ":"); is && name != "" {
				fields[name] = strings.TrimPrefix(value, " ")
			}
		}
		r.take(fields)
	}
}
