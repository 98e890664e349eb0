package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// attacked is a service in a process of its own, with a pool that is full of what an
// operator has reserved, one for a user who asks for little, and this machine.
type attacked struct {
	t      *testing.T
	url    string
	server *exec.Cmd
	client *http.Client
	tokens map[string]string // by user
	data   string
	line   []string // that serves
}

const attackedSites = `
sites:
  - {name: cm5, pools: [{name: batch, pes: 4096, binding: late}, {name: quiet, pes: 256, binding: late}]}
  - {name: here, adapter: {kind: local, cores: 16, node: n1}}
`

func newAttacked(t *testing.T) *attacked {
	t.Helper()
	dir, address := t.TempDir(), freeAddress(t)
	config, data := filepath.Join(dir, "sites.yaml"), filepath.Join(dir, "data")
	if err := os.WriteFile(config, []byte(attackedSites), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &attacked{t: t, url: "http://" + address, tokens: map[string]string{}, data: data}
	w.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2048}}
	w.line = []string{"serve", "--config", config, "--data", data, "--listen", address}
	w.serve()
	secret, err := os.ReadFile(filepath.Join(data, "operator.token"))
	if err != nil {
		t.Fatal(err)
	}
	w.tokens["root"] = strings.TrimSpace(string(secret))
	return w
}

// serve starts the service, and again where it was killed.
func (w *attacked) serve() {
	w.t.Helper()
	log, err := os.CreateTemp(w.t.TempDir(), "log")
	if err != nil {
		w.t.Fatal(err)
	}
	server := exec.CommandContext(w.t.Context(), "berth", w.line...)
	w.server = server
	server.Stderr, server.Stdout = log, log
	if err := server.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait() // it was killed
		if w.t.Failed() {
			text, _ := os.ReadFile(log.Name()) // for people
			w.t.Logf("%.4000s", text)
		}
	})
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		if status, _ := w.do(w.t.Context(), "", http.MethodGet, "/readyz", ""); status == http.StatusOK {
			break
		}
		if time.Since(began) > time.Minute {
			w.t.Fatal("it does not start")
		}
	}
}

// user makes a user of a role who has a token.
func (w *attacked) user(name, role string) string {
	w.t.Helper()
	if w.tokens[name] == "" {
		var made struct{ Secret string }
		w.must(http.StatusCreated, "root", http.MethodPost, "/v1/tokens", fmt.Sprintf(`{"user":%q,"role":%q}`, name, role), &made)
		w.tokens[name] = made.Secret
	}
	return name
}

func (w *attacked) request(ctx context.Context, user, method, path, body string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if user != "" {
		r.Header.Set("Authorization", "Bearer "+w.tokens[user])
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// do sends a call and returns the status, 0 if there was no answer.
func (w *attacked) do(ctx context.Context, user, method, path, body string) (int, []byte) {
	r, err := w.request(ctx, user, method, path, body)
	if err != nil {
		w.t.Error(err)
		return 0, nil
	}
	got, err := w.client.Do(r)
	if err != nil {
		return 0, nil
	}
	defer got.Body.Close()
	data, err := io.ReadAll(got.Body)
	if err != nil {
		return 0, nil
	}
	return got.StatusCode, data
}

// must sends a call that has to have a status, and reads its answer.
func (w *attacked) must(status int, user, method, path, body string, into any) {
	w.t.Helper()
	got, text := w.do(w.t.Context(), user, method, path, body)
	if got != status {
		w.t.Fatalf("%s %s: status %d, want %d: %s", method, path, got, status, text)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			w.t.Fatalf("%s: %v", text, err)
		}
	}
}

// fill makes n reservations that begin tomorrow.
func (w *attacked) fill(live int) {
	w.t.Helper()
	ready, deadline := time.Now().Add(24*time.Hour), time.Now().Add(1000*time.Hour)
	for n := live; n > 0; n -= 1000 {
		body := fmt.Sprintf(`{"npe":64,"duration":3600,"ready":%q,"deadline":%q,"site":"cm5","pool":"batch","array":%d}`,
			ready.UTC().Format(time.RFC3339), deadline.UTC().Format(time.RFC3339), min(n, 1000))
		var said struct{ Decision string }
		w.must(http.StatusCreated, "root", http.MethodPost, "/v1/requests", body, &said)
		if said.Decision != "accepted" {
			w.t.Fatalf("reservations are %s", said.Decision)
		}
	}
}

// memory returns how many bytes of memory the service's process takes, and how many of
// its heap are allocated.
func (w *attacked) memory() (resident, heap int64) {
	w.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.server.Process.Pid))
	if err != nil {
		w.t.Skipf("no /proc: %v", err)
	}
	for line := range strings.Lines(string(status)) {
		if words := strings.Fields(line); words[0] == "VmRSS:" {
			n, err := strconv.ParseInt(words[1], 10, 64)
			if err != nil {
				w.t.Fatal(err)
			}
			resident = n << 10
		}
	}
	_, metrics := w.do(w.t.Context(), "", http.MethodGet, "/metrics", "")
	lines := bufio.NewScanner(bytes.NewReader(metrics))
	for lines.Scan() {
		if text, is := strings.CutPrefix(lines.Text(), "go_memstats_heap_alloc_bytes "); is {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil {
				w.t.Fatal(err)
			}
			heap = int64(n)
		}
	}
	if resident == 0 || heap == 0 {
		w.t.Fatalf("the process takes %d bytes, its heap %d", resident, heap)
	}
	return resident, heap
}
