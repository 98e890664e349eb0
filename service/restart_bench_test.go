//go:build linux

package service

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/cputime"
	"github.com/berth-hpc/berth/journal/sqlite"
)

var restartLive = flag.Int("restart.live", 2000, "live promises of BenchmarkRestart")

// benchJournal is a journal in SQLite of promises that are all live, with a snapshot at its end.
type benchJournal struct {
	b   *testing.B
	dir string
}

func newBenchJournal(b *testing.B, live int) *benchJournal {
	b.Helper()
	j := &benchJournal{b, b.TempDir()}
	h, store := j.begin()
	rng := rand.New(rand.NewPCG(7, 1))
	for i := range live {
		r := berth.Rigid(fmt.Sprint("r", i), benchNow, benchNow+berth.Time(rng.IntN(13*live)), 1<<40, 1+berth.Count(rng.IntN(128)), 60+berth.Duration(rng.IntN(14_000)))
		r.User = fmt.Sprint("user", i%100)
		_, err := call(b.Context(), h, "ann", func(answer func(struct{}, error)) {
			answer(struct{}{}, h.step(engine.Submit(&r), asked{id: r.ID}, nil))
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	j.end(h, store)
	return j
}

const benchNow = 1000

func (j *benchJournal) open() *sqlite.Store {
	store, err := sqlite.Open(j.dir, sqlite.Options{})
	if err != nil {
		j.b.Fatal(err)
	}
	return store
}

// begin opens a service on it.
func (j *benchJournal) begin() (*Host, *sqlite.Store) {
	config := engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: 1024, Binding: berth.Late}}}}}
	store := j.open()
	h, err := Open(j.b.Context(), Options{Config: config, Journal: store, Version: "test", Clock: func() time.Time { return time.Unix(benchNow, 0) }})
	if err != nil {
		j.b.Fatal(err)
	}
	return h, store
}

func (j *benchJournal) end(h *Host, store *sqlite.Store) {
	if err := errors.Join(h.Close(), store.Close()); err != nil {
		j.b.Fatal(err)
	}
}

// BenchmarkVerify verifies such a journal: it checks the chain, and decides every event again.
func BenchmarkVerify(b *testing.B) {
	store := newBenchJournal(b, *restartLive).open()
	records, began := 0, cputime.Used()
	for b.Loop() {
		v, err := Verify(b.Context(), store, nil)
		if err != nil {
			b.Fatal(err)
		}
		records += v.Records
	}
	b.ReportMetric(float64(records)/(cputime.Used()-began).Seconds(), "records/CPU-s")
	b.ReportMetric(float64(records)/b.Elapsed().Seconds(), "records/s")
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRestart opens a service on such a journal, and looks at
// one promise: by promise the CPU time of the process, what is allocated, and what is held of that afterwards, with a copy for those who look.
func BenchmarkRestart(b *testing.B) {
	live := *restartLive
	j := newBenchJournal(b, live)
	heap := func() (m runtime.MemStats) {
		runtime.GC()
		runtime.GC() // what pools hold goes with the second
		runtime.ReadMemStats(&m)
		return m
	}
	b.ResetTimer()
	var held, objects, bytes, made uint64
	var used time.Duration
	for b.Loop() {
		b.StopTimer()
		before, began := heap(), cputime.Used()
		b.StartTimer()
		h, store := j.begin()
		if page, _, err := h.List(b.Context(), Principal{User: "root", Role: Operator}, Filter{Limit: 1}); err != nil || len(page) != 1 {
			b.Fatalf("after a restart there is %+v, %v", page, err)
		}
		b.StopTimer()
		used += cputime.Used() - began
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		made, bytes = made+m.Mallocs-before.Mallocs, bytes+m.TotalAlloc-before.TotalAlloc
		after := heap()
		held, objects = held+after.HeapAlloc-before.HeapAlloc, objects+after.HeapObjects-before.HeapObjects
		j.end(h, store)
		b.StartTimer()
	}
	b.ReportMetric(float64(used.Nanoseconds())/float64(b.N*live), "CPU-ns/promise")
	for _, v := range []struct {
		n    uint64
		unit string
	}{{held, "held-B/promise"}, {objects, "held-objects/promise"}, {bytes, "made-B/promise"}, {made, "made-objects/promise"}} {
		b.ReportMetric(float64(v.n)/float64(b.N*live), v.unit)
	}
}
