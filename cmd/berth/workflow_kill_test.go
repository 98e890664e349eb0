package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/internal/effort"
)

var flowRounds = effort.Flag("workflow.rounds", 10, "how many times TestKilledServiceKeepsWorkflows kills the service")

// killed is a service that is killed and started again over the same data.
type killed struct {
	t       *testing.T
	a       *asker
	address string
	data    string
	config  string
	server  *exec.Cmd
	ended   chan struct{} // closed once it has
	log     *bytes.Buffer
}

func (k *killed) start() {
	k.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); !k.serves(tick.C); {
		if time.Since(began) > time.Minute {
			k.t.Fatalf("it does not start: %s", k.log.String())
		}
	}
	if k.a.tokens["operator"] == "" {
		secret, err := os.ReadFile(filepath.Join(k.data, "operator.token"))
		if err != nil {
			k.t.Fatal(err)
		}
		k.a.tokens["operator"] = strings.TrimSpace(string(secret))
	}
}

// serves starts the service; false if it has ended again, because a task that the one before
// was starting when it was killed still holds its folder for a moment.
func (k *killed) serves(tick <-chan time.Time) bool {
	k.log = new(bytes.Buffer)
	k.server = exec.CommandContext(k.t.Context(), "berth", "serve", "--data", k.data, "--listen", k.address, "--config", k.config)
	k.server.Stderr, k.server.Stdout = k.log, k.log
	if err := k.server.Start(); err != nil {
		k.t.Fatal(err)
	}
	k.ended = make(chan struct{})
	go func(server *exec.Cmd, ended chan<- struct{}) {
		_ = server.Wait() // it was killed
		close(ended)
	}(k.server, k.ended)
	for began := time.Now(); ; {
		if status, _, err := k.a.plain("", http.MethodGet, "/readyz", "", ""); err == nil && status == http.StatusOK {
			return true
		}
		if time.Since(began) > time.Minute {
			k.kill()
		}
		select {
		case <-k.ended:
			return false
		case <-tick:
		}
	}
}

func (k *killed) kill() {
	_ = k.server.Process.Kill()
	<-k.ended
}

// workflow looks at a workflow; false if there is none.
func (k *killed) workflow(id string) (w form.Workflow, known bool) {
	k.t.Helper()
	status, text, err := k.a.plain("operator", http.MethodGet, "/v1/workflows/"+id, "", "")
	if status == http.StatusNotFound {
		return w, false
	}
	_, text, _ = strings.Cut(text, "\n")
	if err != nil || status != http.StatusOK || json.Unmarshal([]byte(text), &w) != nil {
		k.kill() // so that its log is whole
		k.t.Fatalf("workflow %s: status %d, %v: %s\nthe service, %v, said: %s", id, status, err, text, k.server.ProcessState, k.log.String())
	}
	return w, true
}

// A service that is killed again and again with workflows in flight loses none that was
// answered, runs no task twice and forgets none: each task writes a line of its own.
func TestKilledServiceKeepsWorkflows(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("kills a service again and again")
	}
	dir := t.TempDir()
	k := &killed{t: t, address: freeAddress(t), data: filepath.Join(dir, "data"), config: filepath.Join(dir, "sites.yaml")}
	k.a = &asker{url: "http://" + k.address, rng: rand.New(rand.NewPCG(18, 9)), tokens: map[string]string{}, pairs: map[string]int{}}
	if err := os.WriteFile(k.config, []byte("sites:\n  - {name: here, adapter: {kind: local, cores: 32, node: n1}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := filepath.Join(dir, "lines")
	// Tasks have far more time than they take, since a site ends what runs beyond its reservation, and
	// a service that is dead can ask for no longer one.
	task := func(flow string, i int, after string) string {
		return fmt.Sprintf(`{"id":"t%d","seconds":60,"alpha":1,"after":[%s],"command":["/bin/sh","-c","echo %s.%d >> %s; sleep 0.%d"],"dir":%q}`, i, after, flow, i, lines, k.a.rng.IntN(6), dir)
	}
	var answered, asked []string
	inFlight := 0
	for round := range flowRounds() {
		k.start()
		for n := range 2 {
			id := fmt.Sprintf("w%d-%d", round, n)
			body := fmt.Sprintf(`{"id":%q,"tasks":[%s,%s,%s,%s,%s]}`, id, task(id, 1, ""), task(id, 2, `"t1"`), task(id, 3, `"t1"`), task(id, 4, `"t2","t3"`), task(id, 5, `"t4"`))
			asked = append(asked, id)
			status, text, err := k.a.plain("operator", http.MethodPost, "/v1/workflows", body, "key-"+id)
			if err != nil || status != http.StatusCreated || !strings.Contains(text, `"decision":"promised"`) {
				t.Fatalf("status %d, %v: %s", status, err, text)
			}
			again, same, err := k.a.plain("operator", http.MethodPost, "/v1/workflows", body, "key-"+id)
			if err != nil || again != http.StatusCreated || !strings.Contains(same, id) {
				t.Fatalf("asked again: status %d, %v: %s", again, err, same)
			}
			answered = append(answered, id)
		}
		time.Sleep(time.Duration(k.a.rng.IntN(2500)) * time.Millisecond) // at a moment that chance chooses
		for _, id := range answered {
			if w, _ := k.workflow(id); w.State == "running" {
				inFlight++
			}
		}
		k.kill()
	}
	k.start()
	defer k.kill()
	for _, id := range answered {
		for until := time.Now().Add(2 * time.Minute); ; {
			w, known := k.workflow(id)
			if !known {
				t.Fatalf("%s is lost", id)
			}
			if w.State == "succeeded" {
				break
			}
			if slices.Contains(overWorkflows, w.State) || time.Now().After(until) {
				t.Fatalf("%s is %s: %+v\n%s", id, w.State, w, k.log.String())
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	text, err := os.ReadFile(lines)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for line := range strings.Lines(string(text)) {
		count[strings.TrimSpace(line)]++
	}
	for _, id := range asked {
		for i := 1; i <= 5; i++ {
			if name := fmt.Sprintf("%s.%d", id, i); count[name] != 1 {
				t.Errorf("%s ran %d times", name, count[name])
			}
		}
	}
	if inFlight < flowRounds()/2 {
		t.Errorf("%d workflows ran when the service was killed, want %d", inFlight, flowRounds()/2)
	}
	t.Logf("%d workflows answered, %d ran when the service was killed", len(answered), inFlight)
}
