//go:build unix

package servicebench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/journal/postgres"
	"github.com/berth-hpc/berth/journal/postgres/postgrestest"
	"github.com/berth-hpc/berth/service"
)

// standsBy: one host leads and is asked by 64 clients over loopback, 4,000 times a second, beside
// another that stands by on the same PostgreSQL. How long it takes from an answer of the leader until those
// who listen at the other one hear of it: of every promise, of all that the other one follows. Both hosts,
// the clients and PostgreSQL share the processors.
func standsBy(t *testing.T, size *sizes, lines *table) {
	const clients, rate = 64, 4000
	config := clusters(1, size.pes)
	server := postgrestest.Start(t)
	stores := [2]*postgres.Store{}
	for i := range stores {
		var err error
		if stores[i], err = postgres.Open(t.Context(), server.URL(""), postgres.Options{ReadOnly: i == 1}); err != nil {
			t.Fatal(err)
		}
	}
	h := open(t, &service.Options{Config: config, Journal: stores[0]})
	d := newDemand(h, size.live, size.pes, 7)
	refused := fill(t, h, d, size.live, 1, 1)
	other, err := service.Stand(t.Context(), service.Options{Journal: stores[1], Version: "bench"}, func() string { return "the first leads" }, nil)
	if err != nil {
		t.Fatal(err)
	}

	var mu sync.Mutex
	answered, heard := map[string]time.Time{}, map[string]time.Time{}
	listening, stop := context.WithCancel(t.Context())
	var listener sync.WaitGroup
	after := other.LastEvent()
	enough := make(chan error, 1) // once all that was promised has been heard
	promised := -1                // not known yet
	done := func() bool { return promised >= 0 && len(heard) >= promised }
	listener.Go(func() {
		for n, err := range other.Listen(listening, root, after) {
			now := time.Now()
			mu.Lock()
			if err == nil && n.What == string(change.Accepted) {
				heard[n.Reservation.ID] = now
			}
			end := err != nil || done()
			mu.Unlock()
			if end {
				enough <- err
				return
			}
		}
	})
	speaker := speak(t, h, clients)
	began := time.Now()
	watch := stopwatch()
	took := crowd(t, clients, size.paced, 2, func(ctx context.Context, r *rand.Rand, i int) error {
		time.Sleep(time.Until(began.Add(time.Duration(i) * time.Second / rate))) // when it is due
		q := d.draw(r)
		a, err := speaker.Request(ctx, asked(&q), client.Action{})
		switch {
		case err != nil:
			return err
		case a.Decision == form.Accepted:
			mu.Lock()
			answered[a.Reservation.ID] = time.Now()
			mu.Unlock()
		case a.Decision != form.Refused:
			return fmt.Errorf("answered %+v", a)
		}
		return nil
	})
	all := watch()
	mu.Lock()
	promised = len(answered)
	ended := done()
	mu.Unlock()
	if !ended {
		if err := <-enough; err != nil {
			t.Fatal(err)
		}
	}
	stop()
	listener.Wait()
	var behind latencies
	for id, at := range answered {
		then, is := heard[id]
		if !is {
			t.Fatalf("the promise %s was not told by the other host", id)
		}
		behind = append(behind, max(0, then.Sub(at)))
	}
	if err := errors.Join(other.Close(), h.Close(), stores[1].Close(), stores[0].Close()); err != nil {
		t.Fatal(err)
	}
	lines.add(fmt.Sprintf("another server stands by, PostgreSQL, API, %d a second, %d live", rate, size.live-refused), "p99 1 s",
		"%s behind, of %d; %s; answers %s; %s", behind, len(behind), perSecond(size.paced, all.wall), took, all)
}
