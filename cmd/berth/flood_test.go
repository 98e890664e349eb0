package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	floodFull = flag.Bool("flood.full", false, "have TestFlood measure every row for seconds and hold it to its bounds")
	floodOnly = flag.String("flood.only", "", "a regular expression: the rows of TestFlood to run, by role, method, path and what is sent")
)

// floodConnections is how many calls of the one who floods are under way at a time.
const floodConnections = 8

// quiet is how a caller fares that asks for little: how long answers took, in order, and
// by how much later than promised starts were told.
type quiet struct {
	took []time.Duration
	late time.Duration
	told int // starts
}

func (q *quiet) at(percent int) time.Duration {
	if len(q.took) == 0 {
		return 0
	}
	return q.took[min(len(q.took)-1, len(q.took)*percent/100)]
}

// quietUsers ask for little, in turn.
var quietUsers = []string{"bob", "carol", "dave", "erin"}

// starts hears of reservations that start, and by how much later than promised.
type starts struct {
	mu      sync.Mutex
	latest  time.Duration // since it was read
	told    int
	settled chan struct{} // holds one for each start
}

// listen hears of all starts of those who ask for little, until the test ends.
func (w *attacked) listen() *starts {
	w.t.Helper()
	s := &starts{settled: make(chan struct{}, 1<<16)}
	for _, user := range quietUsers {
		r, err := w.request(w.t.Context(), w.user(user, "user"), http.MethodGet, "/v1/events", "")
		if err != nil {
			w.t.Fatal(err)
		}
		stream, err := w.client.Do(r)
		if err != nil {
			w.t.Fatal(err)
		}
		w.t.Cleanup(func() { stream.Body.Close() })
		go s.hear(stream.Body)
	}
	return s
}

// hear reads a stream of events.
func (s *starts) hear(stream io.Reader) {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1<<20)
	started := false
	for lines.Scan() {
		if what, is := strings.CutPrefix(lines.Text(), "event: "); is {
			started = what == "started"
		}
		data, is := strings.CutPrefix(lines.Text(), "data: ")
		if !is || !started {
			continue
		}
		var event struct{ Reservation struct{ Start time.Time } }
		if json.Unmarshal([]byte(data), &event) != nil {
			continue
		}
		s.mu.Lock()
		s.latest = max(s.latest, time.Since(event.Reservation.Start))
		s.told++
		s.mu.Unlock()
		s.settled <- struct{}{}
	}
}

func (s *starts) read() (latest time.Duration, told int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	latest, told = s.latest, s.told
	s.latest, s.told = 0, 0
	return latest, told
}

// askQuietly asks for little for a time: a reservation that begins soon, a list, a
// reservation, what a site is occupied by, with a rest after each. It waits for what
// begins.
func (w *attacked) askQuietly(s *starts, d time.Duration) (q quiet) {
	w.t.Helper()
	s.read()
	for len(s.settled) > 0 {
		<-s.settled
	}
	tick := time.NewTicker(8 * time.Millisecond)
	defer tick.Stop()
	promised := 0
	var said struct{ ID, Decision string }
	for began, i := time.Now(), 0; time.Since(began) < d || i == 0; i++ {
		now, user := time.Now(), quietUsers[i%len(quietUsers)]
		at := func(seconds int) string {
			return now.Add(time.Duration(seconds) * time.Second).UTC().Format(time.RFC3339)
		}
		for _, c := range []struct{ method, path, body string }{
			{http.MethodPost, "/v1/requests", fmt.Sprintf(`{"npe":1,"duration":1,"ready":%q,"deadline":%q,"site":"cm5","pool":"quiet"}`, at(2), at(30))},
			{http.MethodGet, "/v1/reservations?limit=20", ""},
			{http.MethodGet, "/v1/reservations/{id}", ""},
			{http.MethodGet, "/v1/sites/cm5/occupation?limit=20&to=" + at(3600), ""},
		} {
			asked := time.Now()
			status, text := w.do(w.t.Context(), user, c.method, strings.ReplaceAll(c.path, "{id}", said.ID), c.body)
			q.took = append(q.took, time.Since(asked))
			if status/100 != 2 {
				w.t.Fatalf("%s: %s %s: status %d: %.300s", user, c.method, c.path, status, text)
			}
			if c.body != "" {
				if err := json.Unmarshal(text, &said); err != nil || said.Decision != "accepted" {
					w.t.Fatalf("%v: %.300s", err, text)
				}
				promised++
			}
			<-tick.C
		}
	}
	slices.Sort(q.took)
	timeout := time.After(30 * time.Second)
	for range promised {
		select {
		case <-s.settled:
		case <-timeout:
			w.t.Fatalf("of %d promises not all have begun", promised)
		}
	}
	q.late, q.told = s.read()
	return q
}

// flooding is what one who floods has sent.
type flooding struct {
	mu       sync.Mutex
	statuses map[int]int
	stop     context.CancelFunc
	all      sync.WaitGroup
	began    time.Time
}

// flood sends some rows in turn, again and again, several at a time, until it is stopped.
func (w *attacked) flood(user string, rows []row) *flooding {
	paths := make([]string, len(rows))
	for i := range rows {
		paths[i] = w.fitted(user, &rows[i])
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	f := &flooding{statuses: map[int]int{}, stop: cancel, began: time.Now()}
	for c := range floodConnections {
		f.all.Go(func() {
			for i := c; ctx.Err() == nil; i++ {
				at := i % len(rows)
				status := w.send(ctx, user, &rows[at], paths[at])
				if ctx.Err() != nil {
					return
				}
				f.mu.Lock()
				f.statuses[status]++
				f.mu.Unlock()
			}
		})
	}
	return f
}

// send sends a row once. Of a stream it reads what is there at once.
func (w *attacked) send(ctx context.Context, user string, r *row, path string) int {
	q, err := w.request(ctx, user, r.method, path, r.body)
	if err != nil {
		return 0
	}
	if r.kind != "" {
		q.Header.Set("Content-Type", r.kind)
	}
	got, err := w.client.Do(q)
	if err != nil {
		return 0
	}
	defer got.Body.Close()
	if strings.HasPrefix(got.Header.Get("Content-Type"), "text/event-stream") {
		cut := time.AfterFunc(50*time.Millisecond, func() { got.Body.Close() })
		defer cut.Stop()
	}
	_, _ = io.Copy(io.Discard, got.Body) // however much there is
	return got.StatusCode
}

// end stops it, and says what it sent and how it was answered.
func (f *flooding) end() string {
	f.stop()
	f.all.Wait()
	seconds := time.Since(f.began).Seconds()
	var text []string
	for _, status := range slices.Sorted(maps.Keys(f.statuses)) {
		text = append(text, fmt.Sprintf("%d: %.0f/s", status, float64(f.statuses[status])/seconds))
	}
	return strings.Join(text, ", ")
}

// fitted returns the path of a row for a user, who has a reservation, an offer and
// whatever else it takes.
func (w *attacked) fitted(user string, r *row) string {
	path := strings.NewReplacer("{name}", "here", "{node}", "n1").Replace(r.path)
	var said struct {
		ID     string
		Offers []struct{ ID string }
	}
	at := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	window := fmt.Sprintf(`"npe":1,"duration":600,"ready":%q,"deadline":%q`, at, time.Now().Add(100*time.Hour).UTC().Format(time.RFC3339))
	switch {
	case !strings.Contains(path, "{id}"):
	case strings.HasPrefix(path, "/v1/reservations/"):
		status, text := w.do(w.t.Context(), user, http.MethodPost, "/v1/requests", `{"site":"here",`+window+`}`)
		if status == http.StatusCreated && json.Unmarshal(text, &said) != nil {
			w.t.Errorf("%s", text)
		}
	case strings.HasPrefix(path, "/v1/offers/"):
		status, text := w.do(w.t.Context(), user, http.MethodPost, "/v1/offers", `{"site":"cm5",`+window+`}`)
		if status == http.StatusOK && json.Unmarshal(text, &said) == nil && len(said.Offers) > 0 {
			said.ID = said.Offers[0].ID
		}
	}
	if said.ID == "" {
		said.ID = "none"
	}
	path = strings.ReplaceAll(path, "{id}", said.ID)
	if r.query != "" {
		path += "?" + r.query
	}
	return path
}

// describedAPI reads what can be sent from the service itself.
func (w *attacked) describedAPI() *described {
	w.t.Helper()
	var d described
	w.must(http.StatusOK, "", http.MethodGet, "/openapi.json", "", &d)
	return &d
}

// Whatever a caller of any role may send: others are answered soon, and what is
// promised begins at its time. The rows are made up from the service's description of
// itself, so that every endpoint is there. Each role sends all of them in turn, within
// bounds that leave room for a machine that does much else; with -flood.full each row is
// sent by itself too, and the p99 of others is at most 50 ms above the one in peace, and
// no start later than half a second.
func TestFlood(t *testing.T) {
	if testing.Short() {
		t.Skip("floods a service for half a minute")
	}
	only := regexp.MustCompile(*floodOnly)
	live, watch, slower, later := 2000, time.Second, 5*time.Second, 5*time.Second
	if *floodFull {
		live, watch, slower, later = 20_000, 2*time.Second, 50*time.Millisecond, 500*time.Millisecond
	}
	w := newAttacked(t)
	w.fill(live)
	s := w.listen()
	w.askQuietly(s, watch) // which warms it
	rows := rowsOf(w.describedAPI())
	if len(rows) < 80 {
		t.Errorf("only %d rows", len(rows))
	}
	printed := "role\twhat is sent\tp99 in peace\tmedian\tp99\tlongest\tlatest start\tanswers"
	if testing.Verbose() {
		fmt.Println(printed)
	}
	measure := func(role, what string, rows []row) {
		name := role + " " + what
		if !only.MatchString(name) {
			return
		}
		user := w.user(fmt.Sprintf("flood%d", len(w.tokens)), role) // who has asked for nothing yet
		before := w.askQuietly(s, watch)
		f := w.flood(user, rows)
		during := w.askQuietly(s, watch)
		answers := f.end()
		ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000) }
		if testing.Verbose() {
			fmt.Println(strings.Join([]string{role, what, ms(before.at(99)), ms(during.at(50)), ms(during.at(99)), ms(during.at(100)), ms(during.late), answers}, "\t"))
		}
		if more := during.at(99) - before.at(99); more > slower {
			t.Errorf("%s: the p99 of others is %s, %s above the one in peace", name, ms(during.at(99)), ms(more))
		}
		if during.late > later {
			t.Errorf("%s: a promise begins %s late", name, ms(during.late))
		}
	}
	for _, role := range []string{"viewer", "user", "operator"} {
		measure(role, "all in turn", rows)
		for i := range rows {
			if *floodFull {
				measure(role, rows[i].String(), rows[i:i+1])
			}
		}
	}
}
