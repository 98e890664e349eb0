//go:build unix

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/journal/postgres/postgrestest"
)

// wire is a way to a database that can be cut as a network is: what is on it gets lost,
// and neither end is told.
type wire struct {
	net.Listener
	to  string
	cut atomic.Bool // nothing goes through
	mu  sync.Mutex
	on  []net.Conn
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l, to: to}
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			go w.carry(from)
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		w.drop()
	})
	return w
}

// carry carries bytes both ways until the wire is cut; from then on it keeps both ends open.
func (w *wire) carry(from net.Conn) {
	to, err := net.Dial("tcp", w.to) //nolint:noctx // it is there at once
	if err != nil {
		_ = from.Close()
		return
	}
	w.mu.Lock()
	w.on = append(w.on, from, to)
	w.mu.Unlock()
	one := func(dst, src net.Conn) {
		buffer := make([]byte, 1<<16)
		for {
			n, err := src.Read(buffer)
			if w.cut.Load() {
				return
			}
			if err == nil {
				_, err = dst.Write(buffer[:n])
			}
			if err != nil {
				_, _ = dst.Close(), src.Close()
				return
			}
		}
	}
	go one(to, from)
	one(from, to)
}

// drop closes all that is on the wire.
func (w *wire) drop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.on {
		_ = c.Close()
	}
	w.on = nil
}

// server is a service of a pair, with a data directory of its own that was empty.
type server struct {
	*exec.Cmd
	url   string
	data  string
	said  bytes.Buffer // to be read once it has ended
	clock string       // file with by how much its clock is off
	wire  *wire
	ended chan struct{}
	args  []string // of its command line
}

func (p *pair) start() *server {
	p.t.Helper()
	dir := p.t.TempDir()
	config := filepath.Join(dir, "sites.yaml")
	if err := os.WriteFile(config, []byte(p.sites), 0o600); err != nil {
		p.t.Fatal(err)
	}
	u, err := url.Parse(p.journal)
	if err != nil {
		p.t.Fatal(err)
	}
	s := &server{data: filepath.Join(dir, "data"), wire: newWire(p.t, u.Host), ended: make(chan struct{})}
	u.Host = s.wire.Addr().String()
	address := freeAddress(p.t)
	s.url = "http://" + address
	s.args = []string{"serve", "--data", s.data, "--listen", address, "--config", config, "--journal", u.String(), "--standby"}
	s.clock = filepath.Join(dir, "clock")
	p.run(s)
	return s
}

// run starts the program of a service.
func (p *pair) run(s *server) {
	p.t.Helper()
	s.Cmd = exec.CommandContext(p.t.Context(), cmp.Or(p.program, "berth"), s.args...)
	s.Env = append(os.Environ(), clockVar+"="+s.clock)
	s.Stderr, s.Stdout = &s.said, &s.said
	if err := s.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		_ = s.Wait() // how it ended is looked at by who expects that
		close(s.ended)
	}()
	p.t.Cleanup(func() {
		_ = s.Process.Kill() // it may have ended
		<-s.ended
		if p.t.Failed() {
			p.t.Logf("%s said\n%s", s.url, s.said.String())
		}
	})
}

// until waits until a call to a server is answered so.
func (p *pair) until(s *server, method, path, body, key string, is func(status int, answer string) bool) string {
	p.t.Helper()
	began := time.Now()
	for {
		status, answer, err := p.to(s).plain("operator", method, path, body, key)
		if err == nil && is(status, answer) {
			return answer
		}
		if time.Since(began) > time.Minute {
			p.t.Fatalf("%s %s at %s: still %d %s, %v", method, path, s.url, status, answer, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// pair is two services on one journal.
type pair struct {
	t       *testing.T
	journal string
	sites   string // their configuration
	program string // empty is the one that is tested
	asker   *asker
}

func newPair(t *testing.T, sites string) *pair {
	t.Helper()
	asker := &asker{rng: rand.New(rand.NewPCG(20, 1)), tokens: map[string]string{}, pairs: map[string]int{}}
	return &pair{t: t, journal: postgrestest.Start(t).URL(""), sites: sites, asker: asker}
}

// first starts the service that leads first, and learns its tokens.
func (p *pair) first() *server {
	p.t.Helper()
	leader := p.start()
	p.until(leader, http.MethodGet, "/readyz", "", "", has(http.StatusOK, "ready"))
	p.asker.tokens["operator"] = p.firstToken(leader)
	p.addTokens(leader)
	return leader
}

// beside starts one that stands by.
func (p *pair) beside(leader *server) *server {
	p.t.Helper()
	follower := p.start()
	p.until(follower, http.MethodGet, "/readyz", "", "", has(http.StatusServiceUnavailable, "it stands by: "+leader.url+" leads"))
	return follower
}

// to has the asker ask a server.
func (p *pair) to(s *server) *asker {
	p.asker.url = s.url
	return p.asker
}

const pairSites = `
service: {notices_to: [127.0.0.1/32]}
sites:
  - {name: licensed, pes: 16, binding: late, software: [{name: solver, licences: 2}]}
  - {name: there, pes: 8}
`

func has(want int, part string) func(int, string) bool {
	return func(status int, answer string) bool { return status == want && strings.Contains(answer, part) }
}

// A service that leads is lost in each way in which one can be. The one that stands by, with a data
// directory that was empty, takes over: what was acknowledged is there, calls under a key get their first answer, and the
// old one acknowledges nothing any more. Notices go on from the new one, each with the id that it had.
func TestStandbyTakesOver(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	p := newPair(t, pairSites)
	leader := p.first()
	heard := p.hears(leader)
	for _, way := range []struct {
		name string
		lose func(*server)
		// gone ends the old one, and tells how it has to end.
		gone func(*server)
		code int
	}{
		{"killed", func(s *server) { p.signal(s, syscall.SIGKILL) }, func(*server) {}, -1},
		{"stopped", func(s *server) { p.signal(s, syscall.SIGSTOP) }, func(s *server) { p.signal(s, syscall.SIGCONT) }, exitConflict},
		{"cut off", func(s *server) { s.wire.cut.Store(true) }, func(s *server) { s.wire.cut.Store(false); s.wire.drop() }, exitConflict},
		{"off by a minute", func(s *server) { s.shift(time.Minute) }, func(s *server) { p.signal(s, syscall.SIGINT) }, exitOK},
		{"a minute behind", func(s *server) { s.shift(-time.Minute) }, func(s *server) { p.signal(s, syscall.SIGINT) }, exitOK},
		{"released", func(s *server) { p.signal(s, syscall.SIGINT) }, func(*server) {}, exitOK},
	} {
		follower := p.beside(leader)
		p.standsBy(follower, leader)
		for range 40 {
			p.to(leader).ask(p.asker.draw())
		}
		late := p.callsLate(leader, way.name)
		began := time.Now()
		way.lose(leader)
		key := "first after " + way.name
		granted := p.until(follower, http.MethodPost, "/v1/requests", lastingRequest(), key, func(status int, _ string) bool { return status == http.StatusCreated })
		t.Logf("%s: the first request was accepted after %v", way.name, time.Since(began).Round(time.Millisecond))
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%s: another leads after %v", way.name, took)
		}
		byClock := strings.Contains(way.name, "minute")
		if took := time.Since(began); byClock && took > 5*time.Second {
			t.Errorf("%s: another leads after %v", way.name, took)
		}
		if way.code == exitConflict || byClock {
			late.begin()
		}
		if byClock { // the old one stands by, and goes on answering
			p.until(leader, http.MethodGet, "/readyz", "", "", has(http.StatusServiceUnavailable, "it stands by: "+follower.url+" leads"))
			late.judge()
		}
		way.gone(leader)
		select {
		case <-leader.ended:
		case <-time.After(time.Minute):
			t.Fatalf("%s: the old leader goes on", way.name)
		}
		if code := leader.ProcessState.ExitCode(); code != way.code {
			t.Errorf("%s: it ended with %d, want %d", way.name, code, way.code)
		}
		late.judge()
		if same, wrong := p.to(follower).replayed(p.asker.answered[max(0, len(p.asker.answered)-60):]); wrong != nil || same == 0 {
			t.Errorf("%s: %d answers are as they were; %v", way.name, same, wrong)
		}
		heard.awaits(granted)
		leader = follower
	}
	p.check(leader)
}

// shift sets the clock of a service wrong.
func (s *server) shift(off time.Duration) {
	if err := os.WriteFile(s.clock, []byte(off.String()), 0o600); err != nil {
		panic(err)
	}
}

func (p *pair) signal(s *server, signal syscall.Signal) {
	if err := s.Process.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
}

func lastingRequest() string {
	return fmt.Sprintf(`{"npe":1,"duration":60,"deadline":%q}`, time.Now().Add(1000*time.Hour).UTC().Format(time.RFC3339))
}

// firstToken returns the operator's token, which the first service has written down.
func (p *pair) firstToken(s *server) string {
	p.t.Helper()
	secret, err := os.ReadFile(filepath.Join(s.data, "operator.token"))
	if err != nil {
		p.t.Fatal(err)
	}
	return strings.TrimSpace(string(secret))
}

func (p *pair) addTokens(s *server) {
	p.t.Helper()
	for user, role := range map[string]string{"alice": "user", "vera": "viewer"} {
		_, text, err := p.to(s).plain("operator", http.MethodPost, "/v1/tokens", fmt.Sprintf(`{"user":%q,"role":%q}`, user, role), "")
		var made struct{ Secret string }
		_, text, _ = strings.Cut(text, "\n")
		if err != nil || json.Unmarshal([]byte(text), &made) != nil || made.Secret == "" {
			p.t.Fatalf("%v: %s", err, text)
		}
		p.asker.tokens[user] = made.Secret
	}
}

// standsBy looks at what a service that stands by answers: what the leader has, within a second; that the leader is to be
// asked for changes; and the client does that by itself.
func (p *pair) standsBy(follower, leader *server) {
	p.t.Helper()
	c, err := client.New(follower.url, p.asker.tokens["operator"], nil)
	if err != nil {
		p.t.Fatal(err)
	}
	made := p.until(leader, http.MethodPost, "/v1/requests", lastingRequest(), "at "+leader.url, func(status int, _ string) bool { return status == http.StatusCreated })
	var said struct{ ID string }
	_, text, _ := strings.Cut(made, "\n")
	if err := json.Unmarshal([]byte(text), &said); err != nil || said.ID == "" {
		p.t.Fatal(made, err)
	}
	path := "/v1/reservations/" + said.ID
	want := p.until(leader, http.MethodGet, path, "", "", has(http.StatusOK, ""))
	began := time.Now()
	p.until(follower, http.MethodGet, path, "", "", func(status int, answer string) bool { return status == http.StatusOK && answer == want })
	p.t.Logf("the one that stands by is %v behind", time.Since(began).Round(time.Millisecond))
	status, answer, err := p.to(follower).plain("operator", http.MethodDelete, path, "", "")
	if err != nil || status != http.StatusServiceUnavailable || !strings.Contains(answer, fmt.Sprintf(`"leader":%q`, leader.url)) {
		p.t.Errorf("a change is answered %d %s, %v", status, answer, err)
	}
	if _, err := c.Cancel(context.Background(), said.ID, client.Action{}); err != nil {
		p.t.Errorf("the client does not find the leader: %v", err)
	}
}

// lateCalls are calls to a leader that was lost: under keys, so that it can be seen whether they were done.
type lateCalls struct {
	p    *pair
	way  string
	to   asker
	done sync.WaitGroup
	mu   sync.Mutex
	bad  []string
}

// callsLate prepares calls to a server.
func (p *pair) callsLate(s *server, way string) *lateCalls {
	return &lateCalls{p: p, way: way, to: asker{url: s.url, tokens: p.asker.tokens}}
}

// begin sends them; one that is stopped or cut off answers them later.
func (l *lateCalls) begin() {
	for i := range 5 {
		l.done.Go(func() {
			status, answer, err := l.to.plain("operator", http.MethodPost, "/v1/requests", lastingRequest(), fmt.Sprint("late ", l.way, i))
			if err == nil && status < 500 {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.bad = append(l.bad, fmt.Sprintf("%d %s", status, answer))
			}
		})
	}
}

// judge waits for them; none may have been accepted.
func (l *lateCalls) judge() {
	l.p.t.Helper()
	l.done.Wait()
	if len(l.bad) > 0 {
		l.p.t.Errorf("%s: after another one led it answered %q", l.way, l.bad)
	}
}

// check has the journal decided again and its schedule checked.
func (p *pair) check(last *server) {
	p.t.Helper()
	if out, err := exec.CommandContext(p.t.Context(), "berth", "journal", "verify", "--journal", p.journal).CombinedOutput(); err != nil {
		p.t.Errorf("%v: %s", err, out)
	}
	out, err := exec.CommandContext(p.t.Context(), "berth", "journal", "export", "--journal", p.journal, "--form", "schedule").Output()
	if err != nil {
		p.t.Fatal(err)
	}
	schedule := filepath.Join(p.t.TempDir(), "all.jsonl")
	if err := os.WriteFile(schedule, out, 0o600); err != nil {
		p.t.Fatal(err)
	}
	if text, err := exec.CommandContext(p.t.Context(), "berth", "check", schedule).CombinedOutput(); err != nil {
		p.t.Errorf("%v: %s", err, text)
	}
	p.signal(last, syscall.SIGINT)
	<-last.ended
}

// What cannot be: a standby whose journal or site no other service reaches.
func TestStandbyNeedsWhatBothReach(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--slurm far --standby", "want --journal with a database"},
		{"--journal postgres://berth@db.example.org/berth --standby", `site "local" is this machine`},
		{"--advertise a.example.org", "want a URL such as https://"},
	} {
		var said bytes.Buffer
		a := &app{args: append(strings.Fields("serve --check --data "+t.TempDir()), strings.Fields(c.args)...), stdin: bytes.NewReader(nil), stdout: io.Discard, stderr: &said}
		if code := a.run(); code != exitUsage || !strings.Contains(said.String(), c.want) {
			t.Errorf("%s: %d %s", c.args, code, said.String())
		}
	}
	var coded *berth.Error
	if err := (&setup{standBy: true}).checkStandBy(""); !errors.As(err, &coded) || coded.Field != "standby" {
		t.Error(err)
	}
}
