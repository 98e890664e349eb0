//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/debiantest"
)

// versionBefore is the commit whose program is upgraded: the first that can be told to hand over.
const versionBefore = "92d8fe13bf7bcd95d134f796bbfad72c7476db3f"

// builtBefore returns the program of an earlier commit, built of the history of this checkout.
func builtBefore(t *testing.T, commit string) string {
	t.Helper()
	dir := t.TempDir()
	source, program := filepath.Join(dir, "source"), filepath.Join(dir, "berth")
	if err := os.Mkdir(source, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "cat-file", "-e", commit+"^{commit}").CombinedOutput(); err != nil {
		debiantest.Absent(t, "history", fmt.Sprintf("git: missing commit %.12s of the version before: want a checkout with its history: %v %s", commit, err, out))
	}
	archive := filepath.Join(dir, "source.tar")
	for _, args := range [][]string{
		{"git", "-C", filepath.Join("..", ".."), "archive", "--output", archive, commit},
		{"tar", "-x", "-f", archive, "-C", source},
		{"go", "-C", source, "build", "-trimpath", "-buildvcs=false", "-o", program, "./cmd/berth"}, // trimmed, what was built before is found again
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	return program
}

// upgradeAsked is a call under a key with its answer.
type upgradeAsked struct {
	keyedCall
	waited time.Duration // from the first try to the answer
}

// upgradeLoad is clients that ask, each call under a key, at services that are replaced meanwhile. A call goes to one service; to the one that
// leads if that stands by; to the other one if it is not there; and again until it is answered.
type upgradeLoad struct {
	p       *pair
	at      []string
	stop    chan struct{}
	asking  sync.WaitGroup
	refused atomic.Int64 // tries that were answered 503 without saying who leads
	absent  atomic.Int64 // tries at a service that is not there

	mu       sync.Mutex
	answered []*upgradeAsked
	wrong    []string
}

// upgradeEvery is how often a client asks.
const (
	upgradeEvery   = 200 * time.Millisecond
	upgradeClients = 8
	// longestWait is for how long a call may have to be sent again: for as long as a service that hands over holds calls.
	longestWait = mostHeld
)

func (p *pair) upgradeLoad(at ...*server) *upgradeLoad {
	u := &upgradeLoad{p: p, stop: make(chan struct{})}
	for _, s := range at {
		u.at = append(u.at, s.url)
	}
	for n := range upgradeClients {
		u.asking.Go(func() { u.ask(n) })
	}
	return u
}

// ask has one client ask: for promises and holds, which it confirms, changes and gives back.
func (u *upgradeLoad) ask(n int) {
	tick := time.NewTicker(upgradeEvery)
	defer tick.Stop()
	id := "" // of what was promised last
	for i := 0; ; i++ {
		select {
		case <-u.stop:
			return
		case <-tick.C:
		}
		c := upgradeAsked{keyedCall: keyedCall{user: "operator", method: http.MethodPost, path: "/v1/requests", key: fmt.Sprintf("upgrade-%d-%d", n, i)}}
		c.body = fmt.Sprintf(`{"npe":1,"duration":3600,"ready":%q,"deadline":%q,"name":%q}`, hoursFromNow(1), hoursFromNow(1000), c.key)
		switch {
		case i%5 == 1:
			c.body = strings.Replace(c.body, "{", `{"hold":"1h",`, 1)
		case i%5 == 2:
			c.path, c.body = "/v1/reservations/"+id+"/confirm", "{}"
		case i%5 == 3:
			c.method, c.path, c.body = http.MethodPatch, "/v1/reservations/"+id, `{"npe":2}`
		case i%10 == 4:
			c.method, c.path, c.body = http.MethodDelete, "/v1/reservations/"+id, ""
		}
		u.send(n, &c)
		if c.status >= 300 {
			u.fail("%s %s is answered %d %s", c.method, c.path, c.status, c.answer)
			return
		}
		if c.path == "/v1/requests" {
			if id = idOf(c.answer); id == "" {
				u.fail("%s is refused: %s", c.key, c.answer)
				return
			}
		}
	}
}

func hoursFromNow(n time.Duration) string {
	return time.Now().Add(n * time.Hour).UTC().Format(time.RFC3339)
}

func (u *upgradeLoad) fail(format string, args ...any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.wrong = append(u.wrong, fmt.Sprintf(format, args...))
}

// idOf returns the id in an answer.
func idOf(answer string) string {
	var said struct{ ID string }
	_, text, _ := strings.Cut(answer, "\n")
	if json.Unmarshal([]byte(text), &said) != nil {
		return ""
	}
	return said.ID
}

// send sends a call until it is answered.
func (u *upgradeLoad) send(n int, c *upgradeAsked) {
	began, to := time.Now(), u.at[n%len(u.at)]
	pause := time.NewTicker(20 * time.Millisecond)
	defer pause.Stop()
	for try := 1; ; try++ {
		status, answer, err := (&asker{url: to, tokens: u.p.asker.tokens}).plain(c.user, c.method, c.path, c.body, c.key)
		c.waited = time.Since(began)
		if err == nil && status != http.StatusServiceUnavailable {
			c.status, c.answer = status, answer
			u.mu.Lock()
			u.answered = append(u.answered, c)
			u.mu.Unlock()
			return
		}
		var said struct{ Leader string }
		_, text, _ := strings.Cut(answer, "\n")
		switch {
		case err != nil:
			u.absent.Add(1)
			to = u.at[(n+try)%len(u.at)]
		case json.Unmarshal([]byte(text), &said) == nil && said.Leader != "":
			to = said.Leader
			continue
		default:
			u.refused.Add(1)
		}
		if c.waited > longestWait+time.Minute {
			u.fail("%s has no answer after %v: %d %s %v", c.key, c.waited, status, answer, err)
			return
		}
		<-pause.C
	}
}

// goOn waits until n more calls are answered. It fails the test if one is answered wrongly, or if that takes more than a minute.
func (u *upgradeLoad) goOn(what string, n int) {
	u.p.t.Helper()
	u.mu.Lock()
	from := len(u.answered)
	u.mu.Unlock()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		u.mu.Lock()
		list, wrong := u.answered[from:], u.wrong
		u.mu.Unlock()
		if len(wrong) > 0 {
			u.p.t.Fatalf("%s: %q", what, wrong)
		}
		if len(list) >= n {
			return
		}
		if time.Since(began) > time.Minute {
			u.p.t.Fatalf("%s: %d calls were answered in a minute", what, len(list))
		}
	}
}

// waits says how long calls have waited since it was asked last.
func (u *upgradeLoad) waits(what string, from int) int {
	u.p.t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	var waited []time.Duration
	for _, c := range u.answered[from:] {
		waited = append(waited, c.waited)
	}
	slices.Sort(waited)
	if n := len(waited); n > 0 {
		longest := waited[n-1]
		u.p.t.Logf("%s: %d calls: median %v, p99 %v, longest %v; tries answered 503: %d, at a service that was not there: %d", what, n, waited[n/2].Round(time.Millisecond), waited[n*99/100].Round(time.Millisecond), longest.Round(time.Millisecond), u.refused.Swap(0), u.absent.Swap(0))
		if longest > longestWait {
			u.p.t.Errorf("%s: a call had its answer after %v", what, longest)
		}
	}
	return len(u.answered)
}

// replace ends a service as its supervisor does, and starts another program in its place.
func (p *pair) replace(s *server, program string) *server {
	p.t.Helper()
	p.signal(s, syscall.SIGTERM)
	<-s.ended
	if code := s.ProcessState.ExitCode(); code != exitOK {
		p.t.Errorf("%s ended with %d", s.url, code)
	}
	p.program = program
	next := &server{url: s.url, data: s.data, clock: s.clock, wire: s.wire, args: s.args, ended: make(chan struct{}), said: bytes.Buffer{}}
	p.run(next)
	return next
}

// replaceBeside replaces one that stands by, and waits until the next one does.
func (p *pair) replaceBeside(leader, s *server, program string) *server {
	p.t.Helper()
	next := p.replace(s, program)
	p.until(next, http.MethodGet, "/readyz", "", "", has(http.StatusServiceUnavailable, "it stands by: "+leader.url+" leads"))
	p.standsThere(leader, next)
	return next
}

// leads hands over.
func (p *pair) leads(from, to *server) {
	p.t.Helper()
	p.standsThere(from, to)
	if out, err := p.berth(from, "lead", to.url); err != nil || !strings.Contains(out, to.url+" leads") {
		p.t.Fatalf("%v %s", err, out)
	}
}

// Two services are upgraded one after the other, as docs/operating.md has it, while clients ask: each call is answered, in time and once, and all
// answers are the same afterwards.
func TestRollingUpgradeUnderLoad(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds an earlier version, and runs for half a minute")
	}
	p := newPair(t, "sites:\n  - {name: big, pes: 100000}\n")
	before := builtBefore(t, versionBefore)
	p.program = before
	a := p.first()
	b := p.beside(a)
	load := p.upgradeLoad(a, b)
	load.goOn("the version before", 80)
	from := load.waits("the version before", 0)

	b = p.replaceBeside(a, b, "")
	load.goOn("upgraded, it stands by", 20)
	b = p.replaceBeside(a, b, before) // there is a way back while it has not led
	load.goOn("as before, it stands by", 20)
	b = p.replaceBeside(a, b, "")
	load.goOn("upgraded again, it stands by", 20)
	from = load.waits("the one that stands by is replaced", from)

	p.leads(a, b)
	load.goOn("the new version leads", 80)
	from = load.waits("the new version leads", from)

	a = p.replaceBeside(b, a, "")
	load.goOn("both are upgraded", 80)
	p.leads(b, a)
	load.goOn("the first one leads again", 80)
	from = load.waits("both are upgraded", from)

	p.noWayBack(a, b, before)
	load.goOn("after an earlier one that could not stand by", 20)
	load.waits("an earlier one could not stand by", from)
	p.stopsEarly(b)
	load.end(a)
	p.check(a)
}

// noWayBack has the version before stand by once the journal has a record that it cannot read: it says so, ends and leaves all as it was.
func (p *pair) noWayBack(leader, standby *server, before string) {
	p.t.Helper()
	_, made, _ := strings.Cut(p.until(leader, http.MethodPost, "/v1/tokens", `{"user":"carl","role":"user","scopes":["reserve","read"]}`, "", has(http.StatusCreated, "carl")), "\n")
	var token struct{ Secret string }
	if err := json.Unmarshal([]byte(made), &token); err != nil || token.Secret == "" {
		p.t.Fatal(made, err)
	}
	body := fmt.Sprintf(`{"npe":1,"duration":3600,"ready":%q,"deadline":%q}`, hoursFromNow(1), hoursFromNow(1000))
	by := &asker{url: leader.url, tokens: map[string]string{"carl": token.Secret}}
	status, promised, err := by.plain("carl", http.MethodPost, "/v1/requests", body, "scoped") // on record with the scopes of the token
	if err != nil || status != http.StatusCreated {
		p.t.Fatalf("%d %s %v", status, promised, err)
	}
	old := p.replace(standby, before)
	select {
	case <-old.ended:
	case <-time.After(time.Minute):
		p.t.Fatal("the version before stands by beside records that it cannot read")
	}
	if code, said := old.ProcessState.ExitCode(), old.said.String(); code == exitOK || !strings.Contains(said, "a newer program may have written it") {
		p.t.Errorf("it ended with %d: %s", code, said)
	} else {
		p.t.Logf("the version before ended with %d: %s", code, said)
	}
	p.until(leader, http.MethodGet, "/v1/reservations/"+idOf(promised), "", "", has(http.StatusOK, `"confirmed"`))
}

// stopsEarly has a service be told to stop at some moments of its start: that is no failure, after which a supervisor would start it again.
func (p *pair) stopsEarly(s *server) {
	p.t.Helper()
	p.program = ""
	for n := range 8 {
		s = &server{url: s.url, data: s.data, clock: s.clock, wire: s.wire, args: s.args, ended: make(chan struct{})}
		p.run(s)
		some(800*time.Millisecond, n, 8)(s.ended)
		p.signal(s, syscall.SIGTERM)
		<-s.ended
		status, is := s.ProcessState.Sys().(syscall.WaitStatus)
		if code := s.ProcessState.ExitCode(); code != exitOK && code != exitInterrupted && (!is || status.Signal() != syscall.SIGTERM) { // it may not hear signals yet
			p.t.Errorf("told to stop after %d tenths of a second it ended with %d: %s", n+1, code, s.said.String())
		}
	}
}

// end ends the load and asks all again.
func (u *upgradeLoad) end(at *server) {
	u.p.t.Helper()
	close(u.stop)
	u.asking.Wait()
	if len(u.wrong) > 0 {
		u.p.t.Fatal(u.wrong)
	}
	differ := 0
	for _, c := range u.answered {
		status, answer, err := u.p.to(at).plain(c.user, c.method, c.path, c.body, c.key)
		if err != nil || status != c.status || answer != c.answer {
			if differ++; differ < 4 {
				u.p.t.Errorf("%s %s %s under %s: %d %s %v\nwas answered %d %s", c.method, c.path, c.body, c.key, status, answer, err, c.status, c.answer)
			}
		}
	}
	if differ > 0 {
		u.p.t.Errorf("%d answers of %d are others", differ, len(u.answered))
	}
}
