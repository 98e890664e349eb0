//go:build unix

package servicebench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/service"
)

// keyedPairs is how many times calls with a key and without are measured beside each
// other, and turns is in how many turns: other work on a machine comes and goes within a second.
const (
	keyedPairs = 20
	keyedTurns = 16
)

// keyed: what a key costs. Clients over loopback, closed loop, ask for reservations, half
// of the time with a key each; those with and those without follow each other in short turns,
// where the first is the one's and then the other's, so that what there is, and what
// else the machine does, weighs on both. The figures are the means
// of the ratios and their 95 % intervals; CPU time includes that of the clients. The
// collector rests during a turn, or most of the difference would be in whose turn it works:
// it is counted by the bytes that a turn allocates, at the price that they had before.
func keyed(t *testing.T, size *sizes, lines *table) {
	const clients = 64
	store, config := openStore(t, t.TempDir()), clusters(1, size.pes)
	h := open(t, &service.Options{Config: config, Journal: store})
	each := size.keyed
	d := newDemand(h, size.live, size.pes, 7)
	fill(t, h, d, size.live/10, 1, 1)
	speaker := speak(t, h, clients)
	asks := func(round, n int, with bool) spent {
		watch := stopwatch()
		crowd(t, clients, n, uint64(round), func(ctx context.Context, r *rand.Rand, i int) error {
			q := d.draw(r)
			action := client.Action{}
			if with {
				action.Key = fmt.Sprintf("%016x-%010d-%06d", r.Uint64(), round, i)
			}
			_, err := speaker.Request(ctx, asked(&q), action)
			return err
		})
		return watch()
	}
	began := collected()
	asks(0, each, true)
	asks(1, each, false)
	price := began.price(collected())
	n := max(1, each/keyedTurns)
	q := d.draw(rand.New(rand.NewPCG(1, 1)))
	first, err := speaker.Request(t.Context(), asked(&q), client.Action{Key: "one"})
	again, err2 := speaker.Request(t.Context(), asked(&q), client.Action{Key: "one"})
	if err = errors.Join(err, err2); err != nil || first.ID == "" || first.ID != again.ID {
		t.Fatalf("under one key %q and %q are answered, %v", first.ID, again.ID, err)
	}
	var cpu, wall []float64
	for pair := range keyedPairs {
		var by [2]spent
		for turn := range 2 * keyedTurns {
			with := (turn>>1 ^ turn ^ pair) & 1
			runtime.GC()
			had, percent := collected(), debug.SetGCPercent(-1)
			took := asks(2+pair*keyedTurns+turn/2, n, with == 1) // of the same requests
			debug.SetGCPercent(percent)
			by[with].cpu += took.cpu + time.Duration(price*float64(collected().bytes-had.bytes))
			by[with].wall += took.wall
		}
		cpu = append(cpu, by[1].cpu.Seconds()/by[0].cpu.Seconds())
		wall = append(wall, by[1].wall.Seconds()/by[0].wall.Seconds())
	}
	if err := errors.Join(h.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	percent := func(ratios []float64) string {
		e := measure.EstimateOf(ratios)
		return fmt.Sprintf("%+.1f %% (95 %%: %+.1f to %+.1f)", 100*(*e.Mean-1), 100*(e.CI95[0]-1), 100*(e.CI95[1]-1))
	}
	lines.add(fmt.Sprintf("what a key costs, API, %d pairs of %d", keyedPairs, n*keyedTurns), "under 5 %",
		"CPU %s; time %s", percent(cpu), percent(wall))
}

// collection is how much has been allocated, and how long the collector has worked, but
// for what it does on processors that are idle.
type collection struct {
	bytes   uint64
	seconds float64
}

func collected() collection {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}}
	metrics.Read(samples)
	return collection{samples[0].Value.Uint64(), samples[1].Value.Float64() - samples[2].Value.Float64()}
}

// price returns the nanoseconds for a byte until another time.
func (c collection) price(until collection) float64 {
	return (until.seconds - c.seconds) * 1e9 / float64(until.bytes-c.bytes)
}
