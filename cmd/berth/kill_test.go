package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/effort"
)

var killRounds = effort.Flag("kill.rounds", 20, "how many times TestKilledServiceAnswersAgain kills the service")

// keyedCall is what a caller asked for under a key, and the first answer.
type keyedCall struct {
	user                    string
	pair                    string // what is done, and with what
	method, path, body, key string
	status                  int // 0 until it was answered
	answer                  string
}

// asker asks a service over HTTP and knows nothing of it but its API.
type asker struct {
	url    string
	tokens map[string]string // by user
	mu     sync.Mutex
	rng    *rand.Rand
	calls  []*keyedCall
	ids    []string // of reservations
	offers []string
	flows  []string       // ids of workflows
	pairs  map[string]int // answers that were compared, by what was done, with what, and the status

	// answered are the calls that have their answer, in the order in which it came.
	answered []*keyedCall
	// through is how calls come to the service; nil is over the network.
	through http.RoundTripper
}

// plain sends a call, and returns status and body, or that there was no answer.
func (a *asker) plain(user, method, path, body, key string) (status int, answer string, err error) {
	r, err := http.NewRequest(method, a.url+path, strings.NewReader(body)) //nolint:noctx // the server's death ends it
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Authorization", "Bearer "+a.tokens[user])
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	got, err := (&http.Client{Transport: a.through}).Do(r)
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
	c := &keyedCall{method: http.MethodPost, key: fmt.Sprint("key-", len(a.calls)), user: []string{"operator", "alice", "vera"}[min(2, a.rng.IntN(20)/9)]}
	a.calls = append(a.calls, c)
	id, offer, flow := "none", "none", "none"
	if len(a.ids) > 0 {
		id = a.ids[max(0, len(a.ids)-1-a.rng.IntN(30))]
	}
	if len(a.offers) > 0 {
		offer = a.offers[max(0, len(a.offers)-1-a.rng.IntN(5))]
	}
	if len(a.flows) > 0 {
		flow = a.flows[max(0, len(a.flows)-1-a.rng.IntN(5))]
	}
	npe, hours := 1+a.rng.IntN(24), 1+a.rng.IntN(6) // of 16, 8 and 4 PEs
	deadline := time.Now().Add(time.Duration(hours+a.rng.IntN(400)) * time.Hour).UTC().Format(time.RFC3339)
	request := fmt.Sprintf(`"npe":%d,"duration":%d`, npe, hours*3600-60)
	switch a.rng.IntN(5) {
	case 0:
		request = fmt.Sprintf(`"variants":[{"npe":%d,"duration":600},{"npe":1,"duration":6000}]`, npe)
	case 1:
		request = fmt.Sprintf(`"parts":[{"npe":%d,"duration":600},{"npe":2,"duration":1200}]`, npe)
	}
	shape, _, _ := strings.Cut(request[1:], `"`)
	request += fmt.Sprintf(`,"deadline":%q`, deadline)
	for _, more := range []struct{ name, text string }{
		{"licences", `,"software":"solver","licences":1`}, {"site", `,"site":"there"`}, {"managed site", `,"site":"here"`}, {"", ""},
	} {
		if more.name == "" || a.rng.IntN(5) == 0 {
			request, shape = request+more.text, strings.TrimSpace(shape+" "+more.name)
			break
		}
	}
	switch a.rng.IntN(19) {
	case 0, 1, 2:
		c.path, c.body, c.pair = "/v1/requests", "{"+request+"}", "request "+shape
	case 3, 4:
		c.path, c.body, c.pair = "/v1/requests", "{"+request+`,"hold":"1h"}`, "hold "+shape
	case 5:
		c.path, c.body, c.pair = "/v1/requests", "{"+request+`,"array":3}`, "array "+shape
	case 6:
		c.path, c.body, c.pair = "/v1/reservations/"+id+"/confirm", `{}`, "confirm"
	case 7:
		c.method, c.path, c.body, c.pair = http.MethodPatch, "/v1/reservations/"+id, "{"+request+"}", "modify "+shape
	case 8:
		c.path, c.body, c.pair = "/v1/reservations/"+id+"/extend", fmt.Sprintf(`{"by":%d}`, 600*npe*npe), "extend"
	case 9:
		c.method, c.path, c.pair = http.MethodDelete, "/v1/reservations/"+id, "cancel"
	case 10:
		c.path, c.body, c.pair = "/v1/reservations/"+id+"/check-in", `{}`, "check in"
	case 11:
		c.path, c.pair = "/v1/sites/here/nodes/n1/resume", "resume"
		if a.rng.IntN(3) == 0 {
			c.path, c.pair = "/v1/sites/here/nodes/n1/drain", "drain"
		}
	case 14, 15:
		c.path, c.pair = "/v1/workflows", "workflow"
		held, tasks, end := "", `{"id":"a","seconds":600,"most":2},{"id":"b","seconds":600,"after":["a"]}`, deadline
		switch a.rng.IntN(4) {
		case 0:
			c.pair, held = "workflow held", `"hold":600,`
		case 1:
			c.pair, end = "workflow narrow", time.Now().Add(10*time.Minute).UTC().Format(time.RFC3339)
		}
		c.body = fmt.Sprintf(`{%s"deadline":%q,"tasks":[%s]}`, held, end, tasks)
	case 16:
		c.path, c.pair = "/v1/workflows/"+flow+"/confirm", "confirm a workflow"
	case 17:
		c.method, c.path, c.pair = http.MethodDelete, "/v1/workflows/"+flow, "cancel a workflow"
	case 18:
		c.path, c.body, c.pair = "/v1/workflows/"+flow+"/retry", fmt.Sprintf(`{"deadline":%q}`, deadline), "retry a workflow"
	default:
		c.path, c.body, c.pair = "/v1/offers/"+offer+"/hold", `{"hold":"1h"}`, "hold an offer"
	}
	return c
}

// learn notes what an answer names.
func (a *asker) learn(answer string) {
	_, body, _ := strings.Cut(answer, "\n")
	var said struct {
		ID       string
		Offers   []struct{ ID string }
		Workflow struct{ ID string }
	}
	if json.Unmarshal([]byte(body), &said) != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if said.Workflow.ID != "" {
		a.flows = append(a.flows, said.Workflow.ID)
	}
	if said.ID != "" {
		a.ids = append(a.ids, said.ID)
	}
	for _, o := range said.Offers {
		if o.ID == "" { // of a workflow, which holds nothing
			continue
		}
		a.offers = append(a.offers, o.ID)
	}
}

// ask sends a call and keeps its answer; false if there was none. What the service
// could not do at all, and what it found wrong before it looked, is no answer.
func (a *asker) ask(c *keyedCall) bool {
	status, answer, err := a.plain(c.user, c.method, c.path, c.body, c.key)
	if err != nil {
		return false
	}
	if status < 500 && status != http.StatusTooManyRequests && status != http.StatusPreconditionFailed && status != http.StatusUnprocessableEntity {
		c.status, c.answer = status, answer
		a.learn(answer)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.answered = append(a.answered, c)
	}
	return true
}

// keyedSites are sites; one has licences, and one is managed.
const keyedSites = `
sites:
  - {name: licensed, pes: 16, binding: late, software: [{name: solver, licences: 2}]}
  - {name: there, pes: 8}
  - {name: here, adapter: {kind: local, cores: 4, node: n1}}
`

// A service that is killed again and again answers every call under a key as it did
// first, whatever was answered and whatever has become of it since; what had no answer is
// done once. Who asks knows nothing but the API.
func TestKilledServiceAnswersAgain(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("kills a service again and again")
	}
	dir := t.TempDir()
	address := freeAddress(t)
	data := filepath.Join(dir, "data")
	a := &asker{url: "http://" + address, rng: rand.New(rand.NewPCG(1, 2)), tokens: map[string]string{}, pairs: map[string]int{}}
	config := filepath.Join(dir, "sites.yaml")
	if err := os.WriteFile(config, []byte(keyedSites), 0o600); err != nil {
		t.Fatal(err)
	}
	compared, unanswered := 0, 0
	for round := range killRounds() + 1 {
		var log bytes.Buffer
		server := exec.CommandContext(t.Context(), "berth", "serve", "--data", data, "--listen", address, "--config", config)
		server.Stderr, server.Stdout = &log, &log
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		tick := time.NewTicker(10 * time.Millisecond)
		for began := time.Now(); ; <-tick.C {
			if status, _, err := a.plain("", http.MethodGet, "/readyz", "", ""); err == nil && status == http.StatusOK {
				break
			}
			if time.Since(began) > time.Minute {
				_ = server.Process.Kill()
				t.Fatalf("round %d: it does not start: %s", round, log.String())
			}
		}
		tick.Stop()
		if a.tokens["operator"] == "" {
			secret, err := os.ReadFile(filepath.Join(data, "operator.token"))
			if err != nil {
				t.Fatal(err)
			}
			a.tokens["operator"] = strings.TrimSpace(string(secret))
			for user, role := range map[string]string{"alice": "user", "vera": "viewer"} {
				status, text, err := a.plain("operator", http.MethodPost, "/v1/tokens", fmt.Sprintf(`{"user":%q,"role":%q}`, user, role), "")
				var made struct{ Secret string }
				_, text, _ = strings.Cut(text, "\n")
				if err != nil || status != http.StatusCreated || json.Unmarshal([]byte(text), &made) != nil {
					t.Fatalf("status %d, %v: %s", status, err, text)
				}
				a.tokens[user] = made.Secret
			}
		}
		for _, c := range a.calls[max(0, len(a.calls)-1500):] {
			first := c.answer
			if c.status == 0 {
				if a.ask(c); c.status != 0 {
					unanswered++
				}
				continue
			}
			status, answer, err := a.plain(c.user, c.method, c.path, c.body, c.key)
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			a.pairs[fmt.Sprintf("%s, %s, %d", c.user, c.pair, status)]++
			if compared++; status != c.status || answer != first {
				t.Errorf("round %d: %s %s %s under %s: %d %s\nwas answered %d %s", round, c.method, c.path, c.body, c.key, status, answer, c.status, first)
			}
		}
		if round == killRounds() || t.Failed() {
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
	for _, pair := range slices.Sorted(maps.Keys(a.pairs)) {
		t.Logf("%6d %s", a.pairs[pair], pair)
	}
	t.Logf("%d answers compared in %d rounds, %d calls answered after a kill", compared, killRounds(), unanswered)
	if compared < 100*min(killRounds(), 5) {
		t.Errorf("only %d answers were compared", compared)
	}
}
