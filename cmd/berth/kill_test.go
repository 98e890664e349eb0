package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var killRounds = flag.Int("kill.rounds", 20, "how many times TestKilledServiceAnswersAgain kills the service")

// keyedCall is what somebody asked for under a key, and the first answer.
type keyedCall struct {
	method, path, body, key string
	status                  int // 0 until it was answered
	answer                  string
}

// asker asks a service over HTTP and knows nothing of it but its API.
type asker struct {
	url, token string
	mu         sync.Mutex
	rng        *rand.Rand
	calls      []*keyedCall
	ids        []string // of reservations
	offers     []string
}

// plain sends a call, and returns status and body, or that there was no answer.
func (a *asker) plain(method, path, body, key string) (status int, answer string, err error) {
	r, err := http.NewRequest(method, a.url+path, strings.NewReader(body)) //nolint:noctx // the server's death ends it
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer got.Body.Close()
	data, err := io.ReadAll(got.Body)
	return got.StatusCode, got.Header.Get("ETag") + " " + got.Header.Get("Location") + "\n" + string(data), err
}

// draw makes up a call.
func (a *asker) draw() *keyedCall {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &keyedCall{method: http.MethodPost, key: fmt.Sprint("key-", len(a.calls))}
	a.calls = append(a.calls, c)
	id, offer := "none", "none"
	if len(a.ids) > 0 {
		id = a.ids[max(0, len(a.ids)-1-a.rng.IntN(30))]
	}
	if len(a.offers) > 0 {
		offer = a.offers[max(0, len(a.offers)-1-a.rng.IntN(5))]
	}
	npe, hours := 1+a.rng.IntN(24), 1+a.rng.IntN(6) // of 16 cores
	deadline := time.Now().Add(time.Duration(hours+a.rng.IntN(400)) * time.Hour).UTC().Format(time.RFC3339)
	request := fmt.Sprintf(`"npe":%d,"duration":%d,"deadline":%q`, npe, hours*3600-60, deadline)
	switch a.rng.IntN(12) {
	case 0, 1:
		c.path, c.body = "/v1/requests", "{"+request+"}"
	case 2, 3:
		c.path, c.body = "/v1/requests", "{"+request+`,"hold":"1h"}`
	case 4:
		c.path, c.body = "/v1/requests", "{"+request+`,"array":3}`
	case 5:
		c.path, c.body = "/v1/requests", fmt.Sprintf(`{"variants":[{"npe":%d,"duration":600},{"npe":1,"duration":6000}],"deadline":%q}`, npe, deadline)
	case 6:
		c.path, c.body = "/v1/reservations/"+id+"/confirm", `{}`
	case 7:
		c.method, c.path, c.body = http.MethodPatch, "/v1/reservations/"+id, fmt.Sprintf(`{"npe":%d}`, npe)
	case 8:
		c.path, c.body = "/v1/reservations/"+id+"/extend", fmt.Sprintf(`{"by":%d}`, 600*npe*npe)
	case 9:
		c.method, c.path = http.MethodDelete, "/v1/reservations/"+id
	case 10:
		c.path, c.body = "/v1/reservations/"+id+"/check-in", `{}`
	default:
		c.path, c.body = "/v1/offers/"+offer+"/hold", `{"hold":"1h"}`
	}
	return c
}

// learn notes what an answer names.
func (a *asker) learn(answer string) {
	_, body, _ := strings.Cut(answer, "\n")
	var said struct {
		ID     string
		Offers []struct{ ID string }
	}
	if json.Unmarshal([]byte(body), &said) != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if said.ID != "" {
		a.ids = append(a.ids, said.ID)
	}
	for _, o := range said.Offers {
		a.offers = append(a.offers, o.ID)
	}
}

// ask sends a call and keeps its answer; false if there was none. What the service
// could not do at all, and what it found wrong before it looked, is no answer.
func (a *asker) ask(c *keyedCall) bool {
	status, answer, err := a.plain(c.method, c.path, c.body, c.key)
	if err != nil {
		return false
	}
	if status < 500 && status != http.StatusTooManyRequests && status != http.StatusPreconditionFailed && status != http.StatusUnprocessableEntity {
		c.status, c.answer = status, answer
		a.learn(answer)
	}
	return true
}

// A service that is killed again and again answers every call under a key as it did
// first, whatever was answered and whatever has become of it since; what had no answer is
// done once. Who asks knows nothing but the API.
func TestKilledServiceAnswersAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("kills a service again and again")
	}
	dir := t.TempDir()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	a := &asker{url: "http://" + address, rng: rand.New(rand.NewPCG(1, 2))}
	compared, unanswered := 0, 0
	for round := range *killRounds + 1 {
		var log bytes.Buffer
		server := exec.CommandContext(t.Context(), "berth", "serve", "--data", data, "--listen", address, "--cores", "16")
		server.Stderr, server.Stdout = &log, &log
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		tick := time.NewTicker(10 * time.Millisecond)
		for began := time.Now(); ; <-tick.C {
			if status, _, err := a.plain(http.MethodGet, "/readyz", "", ""); err == nil && status == http.StatusOK {
				break
			}
			if time.Since(began) > time.Minute {
				_ = server.Process.Kill()
				t.Fatalf("round %d: it does not start: %s", round, log.String())
			}
		}
		tick.Stop()
		if a.token == "" {
			secret, err := os.ReadFile(filepath.Join(data, "operator.token"))
			if err != nil {
				t.Fatal(err)
			}
			a.token = strings.TrimSpace(string(secret))
		}
		for _, c := range a.calls[max(0, len(a.calls)-1500):] {
			first := c.answer
			if c.status == 0 {
				if a.ask(c); c.status != 0 {
					unanswered++
				}
				continue
			}
			status, answer, err := a.plain(c.method, c.path, c.body, c.key)
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if compared++; status != c.status || answer != first {
				t.Errorf("round %d: %s %s %s under %s: %d %s\nwas answered %d %s", round, c.method, c.path, c.body, c.key, status, answer, c.status, first)
			}
		}
		if round == *killRounds || t.Failed() {
			_ = server.Process.Kill()
			_ = server.Wait() // it was killed
			break
		}
		var asking sync.WaitGroup
		enough := make(chan struct{})
		answered, most := make(chan struct{}, 1024), 20+a.rng.IntN(150)
		for range 6 {
			asking.Go(func() {
				for a.ask(a.draw()) {
					select {
					case answered <- struct{}{}:
					case <-enough:
					}
				}
			})
		}
		for range most {
			<-answered
		}
		close(enough)
		if err := server.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = server.Wait() // it was killed
		asking.Wait()
	}
	t.Logf("%d answers compared in %d rounds, %d calls answered after a kill", compared, *killRounds, unanswered)
	if compared < 100*min(*killRounds, 5) {
		t.Errorf("only %d answers were compared", compared)
	}
}
