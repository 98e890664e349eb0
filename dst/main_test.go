package dst

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/internal/hugepages"
	"github.com/berth-hpc/berth/service"
)

var (
	seeds   = flag.Uint64("dst.seeds", 0, "how many seeds happen; 0 is as the effort is")
	from    = flag.Uint64("dst.from", 1, "the first seed")
	search  = flag.Uint64("dst.search", 12, "among how many seeds from the one of the table on each planted fault is looked for")
	workers = flag.Int("dst.workers", 1, "how many processes the seeds are divided among; each runs one goroutine at a time")
	step    = flag.Uint64("dst.step", 1, "every how many seeds one happens")
	tell    = flag.String("dst.tell", "", "write what was counted to a file instead of telling it")
	twice   = flag.Uint64("dst.twice", 3, "how many seeds happen twice, to compare")
	tracing = flag.Bool("dst.trace", false, "tell everything that happens; with -v")
)

// livesSeeds is how many seeds happen where no flag says otherwise, and mostCells how many it takes at least for each fault to meet
// each feature.
const (
	livesSeeds = 500
	mostCells  = 10_000
)

// wanted returns how many seeds are to happen.
func wanted() uint64 {
	switch {
	case *seeds > 0:
		return *seeds
	case testing.Short():
		return 8
	}
	return uint64(effort.Cases(livesSeeds))
}

// bubbleBegins is the time at which each bubble of synctest begins.
const bubbleBegins = 946684800

var clients keyring

// TestMain has one goroutine run at a time: then what happens in a bubble depends on nothing but the seed.
func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	hugepages.Advise(1 << 30) // before the heap has a limit
	collectAlone()
	folder, err := os.MkdirTemp("", "dst")
	clients.folder = folder
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// open makes the tokens of the clients.
func (k *keyring) open() (err error) {
	store, err := token.Open(k.folder, "operator", bubbleBegins)
	if err != nil {
		return err
	}
	k.secret = map[string]string{}
	for _, c := range []struct {
		user string
		role service.Role
	}{{"operator", service.Operator}, {"alice", service.User}, {"bob", service.User}} {
		if k.secret[c.user], _, err = store.Add(token.Wanted{User: c.user, Role: c.role}, bubbleBegins); err != nil {
			return err
		}
	}
	return nil
}

// outcome is what came of a seed.
type outcome struct {
	trace         []string
	lives, events int
	operations    int // of clients, which one order explains
	wrong         error
}

// happen has a seed happen in a bubble of time.
func happen(t *testing.T, seed uint64, p *plant, g *ledger) (o outcome) {
	t.Helper()
	if clients.secret == nil {
		cryptotest.SetGlobalRandom(t, 0) // which tokens there are is on record
		if err := clients.open(); err != nil {
			t.Fatal(err)
		}
	}
	cryptotest.SetGlobalRandom(t, seed)
	if name := cmp.Or(p.from, planOf(seed).before); name != "" {
		readGolden(t, name)
	}
	collect()
	var history []operation
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		w := newWorld(t, seed, &clients, p, g)
		w.run()
		o.trace, history = w.trace, w.history()
		o.lives, o.events, o.wrong = w.lives, w.events, errors.Join(w.wrong...)
	})
	if o.operations = len(history); o.wrong == nil {
		o.wrong = linearizable(history) // not in the bubble, whose time would stand still
	}
	return o
}

// collectAlone has garbage be collected by collect alone, since collection has goroutines make way for one another: a seed
// needs some hundred megabytes at most.
func collectAlone() {
	const most = 1 << 30
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(most)
}

// collect collects garbage, beside goroutines with deep stacks: the runtime begins goroutines with a stack of the average size that it
// has just seen, and those of a service would else have theirs copied three or four times as they grow.
func collect() {
	const goroutines, depth = 64, 12
	var parked, gone sync.WaitGroup
	again := make(chan struct{})
	for range goroutines {
		parked.Add(1)
		gone.Go(func() { deepen(depth, func() { parked.Done(); <-again }) })
	}
	parked.Wait()
	runtime.GC()
	close(again)
	gone.Wait()
}

// deepen calls a function while the stack of the goroutine holds at least the given number of kilobytes.
//
//go:noinline
func deepen(kilobytes int, call func()) byte {
	var used [1 << 10]byte
	if kilobytes == 0 {
		call()
		return 0
	}
	used[kilobytes] = deepen(kilobytes-1, call)
	return used[len(used)-kilobytes]
}

// Services live, fail and live again, under every fault, and keep what they promised.
func TestLives(t *testing.T) {
	sum := tally{g: newLedger()}
	began := time.Now()
	if *workers > 1 {
		sum.share(t, *workers)
	} else {
		sum.live(t)
	}
	if *tell != "" {
		if err := sum.save(*tell); err != nil {
			t.Fatal(err)
		}
		return
	}
	var table strings.Builder
	if err := sum.g.write(&table); err != nil {
		t.Fatal(err)
	}
	passed := time.Since(began).Seconds()
	t.Logf("%d lives of %d events, with %d operations of clients, in %.1f s: %.1f seeds/s, %.0f lives/s, %.0f events/s\n%s",
		sum.Lives, sum.Events, sum.Operations, passed, float64(wanted())/passed, float64(sum.Lives)/passed, float64(sum.Events)/passed, table.String())
	if empty := sum.g.empty(); len(empty) > 0 && wanted() >= mostCells && len(byFlags().without) == 0 {
		t.Errorf("nothing met: %s", cells(empty))
	} else if len(empty) > 0 {
		t.Logf("nothing met: %s", cells(empty))
	}
}

// The same seed has the same happen each time, to the nanosecond, also on a machine that has other work.
func TestLivesAreTheSameTwice(t *testing.T) {
	l := byFlags()
	for seed := *from; seed < *from+*twice; seed++ {
		first, second := happen(t, seed, &plant{less: l, whole: true}, newLedger()), happen(t, seed, &plant{less: l, whole: true, shaken: true}, newLedger())
		if slices.Equal(first.trace, second.trace) {
			continue
		}
		at := 0
		for at < min(len(first.trace), len(second.trace)) && first.trace[at] == second.trace[at] {
			at++
		}
		line := func(of []string) string {
			if at < len(of) {
				return of[at]
			}
			return "nothing more"
		}
		t.Errorf("seed %d: from line %d on it is\n%.1000s\nthe first time, and\n%.1000s\nthe second", seed, at+1, line(first.trace), line(second.trace))
	}
}
