//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// earshot is a receiver of notices, which outlives the services that send them.
type earshot struct {
	p      *pair
	server *httptest.Server
	mu     sync.Mutex
	by     map[string]string // by reservation that was granted: the id of the notice
	bad    []string
}

// hears has the operator told of what is granted to him.
func (p *pair) hears(leader *server) *earshot {
	p.t.Helper()
	h := &earshot{p: p, by: map[string]string{}}
	h.server = httptest.NewServer(http.HandlerFunc(h.take))
	p.t.Cleanup(h.server.Close)
	body := fmt.Sprintf(`{"url":%q,"kinds":["granted"]}`, h.server.URL)
	p.until(leader, http.MethodPost, "/v1/hooks", body, "", has(http.StatusCreated, "whsec_"))
	return h
}

func (h *earshot) take(_ http.ResponseWriter, r *http.Request) {
	var said struct {
		Data struct {
			Reservation struct{ ID string }
		}
	}
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(text, &said)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	of, id := said.Data.Reservation.ID, r.Header.Get("webhook-id")
	if err == nil && of == "" {
		return // a workflow
	}
	if before, again := h.by[of]; err != nil || id == "" || again && before != id {
		h.bad = append(h.bad, fmt.Sprintf("%v %s after %q: %s", err, id, before, text))
	}
	h.by[of] = id
}

// awaits waits until what was accepted is told of.
func (h *earshot) awaits(answer string) {
	h.p.t.Helper()
	var made struct{ ID string }
	_, text, _ := strings.Cut(answer, "\n")
	if err := json.Unmarshal([]byte(text), &made); err != nil || made.ID == "" {
		h.p.t.Fatal(answer, err)
	}
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		h.mu.Lock()
		_, told := h.by[made.ID]
		bad := h.bad
		h.mu.Unlock()
		if len(bad) > 0 {
			h.p.t.Fatal(bad)
		}
		if told {
			return
		}
		if time.Since(began) > time.Minute {
			h.p.t.Fatalf("no notice of %s", made.ID)
		}
	}
}
