//go:build unix

package servicebench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/postgres"
	"github.com/berth-hpc/berth/journal/postgres/postgrestest"
	"github.com/berth-hpc/berth/service"
)

// never is after how many records no snapshot is taken any more.
const never = 1 << 40

// forgetful is a journal that keeps no snapshots that it is given: a service on
// it leaves what a killed one leaves.
type forgetful struct{ journal.Store }

func (forgetful) SaveSnapshot(context.Context, journal.Position, []byte) error { return nil }

// restart: a journal of n reservations, all live, is recovered from a
// snapshot at its end, as after a stop, and from an older one and the records
// behind it, as after a kill just before the next. Ready is when a reservation
// can be looked at. Then 64 clients ask without pause while no snapshot is being
// made, and while one is made after the other.
func restart(t *testing.T, size *sizes, lines *table) {
	dir, config := t.TempDir(), clusters(1, size.pes)
	open := func() journal.Store { return openStore(t, dir) }
	d := restartOn(t, size, lines, open, "")
	quiet := answersWhile(t, size, open(), config, d, never)
	lines.add("  answers with as many live, 64 clients, no snapshot", "", "%s", quiet)
	busy := answersWhile(t, size, open(), config, d, 1)
	lines.add("  the same, one snapshot after the other all the time", "p99 60 ms", "%s", busy)
}

// restartOnPostgreSQL: the same with the journal in a PostgreSQL on this machine, as its package sets it.
func restartOnPostgreSQL(t *testing.T, size *sizes, lines *table) {
	url := postgrestest.Start(t).URL("")
	restartOn(t, size, lines, func() journal.Store {
		store, err := postgres.Open(t.Context(), url, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}, " on PostgreSQL")
}

// restartOn measures restarts on a journal, which it opens for each, and returns what was asked for.
func restartOn(t *testing.T, size *sizes, lines *table, reopen func() journal.Store, where string) demand {
	t.Helper()
	config := clusters(1, size.pes)
	var d demand
	begin := func(n int, seed uint64, killed bool) (total int) {
		store := reopen()
		options := service.Options{Config: config, Journal: store, SnapshotEvery: never}
		if killed {
			options.Journal = forgetful{store}
		}
		h := open(t, &options)
		if d.span == 0 {
			d = newDemand(h, size.journal, size.pes, 7)
		}
		refused := fill(t, h, d, n, seed, 1)
		if err := errors.Join(h.Close(), store.Close()); err != nil {
			t.Fatal(err)
		}
		return n - refused
	}
	live := begin(size.journal-size.tail, 1, false)
	begin(size.tail, 2, true)
	again := func() (h *service.Host, store journal.Store, took spent) {
		runtime.GC() // what the step before has left
		watch := stopwatch()
		store = reopen()
		h = open(t, &service.Options{Config: config, Journal: store, SnapshotEvery: never})
		if page, _, err := h.List(t.Context(), root, service.Filter{Limit: 1}); err != nil || len(page) != 1 {
			t.Fatalf("after a restart there is %+v, %v", page, err)
		}
		return h, store, watch()
	}
	h, store, killed := again()
	right(t, h, &config)
	if err := errors.Join(h.Close(), store.Close()); err != nil { // with a snapshot at the end
		t.Fatal(err)
	}
	h, store = nil, nil
	before := heap()
	h, store, stopped := again()
	held := heap() - before
	now := count(t, h)
	if now < live {
		t.Fatalf("%d reservations after two restarts, there were %d before", now, live)
	}
	if err := errors.Join(h.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	work := fmt.Sprintf("restart with %d reservations%s", now, where)
	goal := "5 s"
	if where != "" {
		goal = "8 s"
	}
	lines.add(work+", after a stop", goal, "%s", stopped)
	lines.add(fmt.Sprintf("%s, killed %d records after a snapshot", work, size.tail), goal, "%s", killed)
	lines.add("  memory of the service", "", "%d bytes a reservation", held/int64(now))
	return d
}

// heap returns the memory of what is reachable, in bytes. What pools hold goes with the
// second collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// count returns how many reservations are live, all of one part.
func count(t *testing.T, h *service.Host) (n int) {
	t.Helper()
	views, err := h.Sites(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	for i := range views {
		for _, l := range views[i].Loads {
			n += l.Running + l.Waiting
		}
	}
	return n
}

// counted is a journal that counts the snapshots that were stored.
type counted struct {
	journal.Store
	mu sync.Mutex
	n  int
}

func (c *counted) SaveSnapshot(ctx context.Context, at journal.Position, data []byte) error {
	err := c.Store.SaveSnapshot(ctx, at, data)
	if err == nil {
		c.mu.Lock()
		c.n++
		c.mu.Unlock()
	}
	return err
}

func (c *counted) stored() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// patience is how long to wait for two snapshots.
const patience = 3 * time.Minute

// answersWhile has 64 clients ask a service for some time, with a snapshot after
// every some records: for as long as two take, the first of which is the slow one.
func answersWhile(t *testing.T, size *sizes, on journal.Store, config engine.Config, d demand, every uint64) string {
	t.Helper()
	store := &counted{Store: on}
	h := open(t, &service.Options{Config: config, Journal: store, SnapshotEvery: every})
	runtime.GC()
	took := make([]latencies, 64)
	failed := make([]error, 64)
	watch := stopwatch()
	var all sync.WaitGroup
	for c := range took {
		all.Go(func() {
			r := rand.New(rand.NewPCG(every, uint64(c)))
			for end := time.Now().Add(size.watch); failed[c] == nil; {
				began := time.Now()
				if began.After(end) && (every == never || store.stored() > 1 || began.After(end.Add(patience))) {
					return
				}
				_, failed[c] = h.Submit(t.Context(), ann, d.draw(r))
				took[c] = append(took[c], time.Since(began))
			}
		})
	}
	all.Wait()
	used := watch()
	made := store.stored()
	if err := errors.Join(errors.Join(failed...), h.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	if every == 1 && made < 2 {
		t.Errorf("%d snapshots were made meanwhile", made)
	}
	list := slices.Concat(took...)
	return fmt.Sprintf("%s, %s; %d snapshots; %s", perSecond(len(list), used.wall), list, made, used)
}
