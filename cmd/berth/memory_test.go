package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var memoryFull = flag.Bool("memory.full", false, "have TestMemory send 100,000 refused requests, open 1,024 streams and use a million keys")

// crowd calls something n times, several at a time, by users each of whom may ask
// that often.
func (w *attacked) crowd(times, each int, ask func(user string, i int) int) (statuses map[int]int) {
	w.t.Helper()
	statuses = map[int]int{}
	for from := 0; from < times; from += each {
		user := w.user(fmt.Sprintf("crowd%d", len(w.tokens)), "user") // who may ask at once as often as that
		var mu sync.Mutex
		var all sync.WaitGroup
		var next atomic.Int64
		for range floodConnections {
			all.Go(func() {
				for i := int(next.Add(1)) - 1; i < min(each, times-from); i = int(next.Add(1)) - 1 {
					status := ask(user, from+i)
					mu.Lock()
					statuses[status]++
					mu.Unlock()
				}
			})
		}
		all.Wait()
	}
	return statuses
}

// What a service remembers is bounded by what its limits say: large requests that are
// refused, streams that begin with all that is kept and read nothing, and keys with
// their answers. The table tells what the process takes; the small run does
// not come near those bounds, and holds what each takes to a bound by the piece.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a service's memory")
	}
	refused, streams, keys := 400, 60, 2000
	if *memoryFull {
		refused, streams, keys = 100_000, 1024, 1_000_000
	}
	const mebi = 1 << 20
	large := row{body: `{"site":"nowhere","deadline":"2199-01-01T00:00:00Z","parts":[` + strings.TrimSuffix(strings.Repeat(
		`{"variants":[`+strings.TrimSuffix(strings.Repeat(`{"npe":1,"duration":60},`, 31), ",")+`]},`, 32), ",") + `]}`}
	w := newAttacked(t)
	resident, heap := w.memory()
	if testing.Verbose() {
		fmt.Printf("what\tanswers\theap, MB\tmore\tresident, MB\tmore, at most\tallowed, MB\n%s\t\t%d\t\t%d\n", "nothing", heap/mebi, resident/mebi)
	}
	for _, c := range []struct {
		what    string
		allowed int64 // how much more of the heap
		do      func() map[int]int
	}{
		// maxOver of the service, what streams may read again, and as much as the
		// collector lets lie.
		{"large refused requests", min(2*(256+128)*mebi, int64(refused)<<17+64*mebi), func() map[int]int {
			return w.crowd(refused, 2000, func(user string, _ int) int {
				status, _ := w.do(t.Context(), user, http.MethodPost, "/v1/requests", large.body)
				return status
			})
		}},
		// A connection with two goroutines, buffers for 64 events and for writing.
		{"streams that read nothing", int64(streams)*mebi/2 + 64*mebi, func() map[int]int {
			statuses := map[int]int{}
			for i := range streams {
				user := w.user(fmt.Sprintf("stream%d", i/100), "user")
				ctx, cancel := context.WithCancel(t.Context())
				t.Cleanup(cancel)
				r, err := w.request(ctx, user, http.MethodGet, "/v1/events?after=1", "")
				if err != nil {
					t.Fatal(err)
				}
				got, err := w.client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { got.Body.Close() })
				statuses[got.StatusCode]++
			}
			return statuses
		}},
		// maxKeys of the service, and as much as the collector lets lie.
		{"keys", min(2*1024*mebi, int64(keys)<<13+64*mebi), func() map[int]int {
			return w.crowd(keys, 4900, func(user string, i int) int {
				r, err := w.request(t.Context(), user, http.MethodPost, "/v1/requests", `{"npe":1000000,"duration":60,"deadline":"2199-01-01T00:00:00Z"}`)
				if err != nil {
					return 0
				}
				r.Header.Set("Idempotency-Key", fmt.Sprint("key-", i))
				got, err := w.client.Do(r)
				if err != nil {
					return 0
				}
				_, _ = io.Copy(io.Discard, got.Body) // only the status counts
				got.Body.Close()
				return got.StatusCode
			})
		}},
	} {
		most, before := resident, heap
		stop, watched := make(chan struct{}), make(chan struct{})
		go func() { // the most that it takes meanwhile
			defer close(watched)
			tick := time.NewTicker(200 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					now, _ := w.memory()
					most = max(most, now)
				case <-stop:
					return
				}
			}
		}()
		statuses := c.do()
		close(stop)
		<-watched
		was := resident
		resident, heap = w.memory()
		if testing.Verbose() {
			fmt.Printf("%s\t%v\t%d\t%d\t%d\t%d\t%d\n", c.what, statuses, heap/mebi, (heap-before)/mebi, resident/mebi, (max(most, resident)-was)/mebi, c.allowed/mebi)
		}
		if heap-before > c.allowed {
			t.Errorf("%s: the heap has grown by %d MB, want at most %d", c.what, (heap-before)/mebi, c.allowed/mebi)
		}
		if status, _ := w.do(t.Context(), "root", http.MethodGet, "/v1/sites", ""); status != http.StatusOK {
			t.Errorf("%s: the service answers with status %d", c.what, status)
		}
	}
}
