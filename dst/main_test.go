package dst

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/service"
)

var (
	seeds   = flag.Uint64("dst.seeds", 8, "how many seeds happen")
	from    = flag.Uint64("dst.from", 1, "the first seed")
	search  = flag.Uint64("dst.search", 5, "among how many seeds from the one of the table on each planted fault is looked for")
	twice   = flag.Uint64("dst.twice", 0, "how many seeds happen twice, to compare")
	tracing = flag.Bool("dst.trace", false, "tell everything that happens; with -v")
)

// bubbleBegins is the time at which each bubble of synctest begins.
const bubbleBegins = 946684800

var clients keyring

// TestMain has one goroutine run at a time: then what happens in a bubble depends on nothing but the seed.
func TestMain(m *testing.M) {
	flag.Parse()
	runtime.GOMAXPROCS(1)
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
	trace         string
	lives, events int
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
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		w := newWorld(t, seed, &clients, p, g)
		o.trace = w.run()
		o.lives, o.events, o.wrong = w.lives, w.events, errors.Join(w.wrong...)
	})
	return o
}

// command is what repeats a seed.
func command(seed uint64) string {
	return fmt.Sprintf("go test ./dst -run '^TestLives$' -dst.seeds 1 -dst.from %d -v -dst.trace", seed)
}

// Services live, fail and live again, under every fault, and keep what they promised.
func TestLives(t *testing.T) {
	g := newLedger()
	began, told := time.Now(), time.Now()
	lives, events, failed := 0, 0, 0
	for seed := *from; seed < *from+*seeds && failed < 10; seed++ {
		o := happen(t, seed, &plant{}, g)
		lives, events = lives+o.lives, events+o.events
		if o.wrong != nil {
			failed++
			t.Errorf("seed %d: %.3000s\nrepeat it with: %s", seed, o.wrong.Error(), command(seed))
		}
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "dst: %d of %d seeds, %d lives, %.0f lives/s, %d failed\n", seed-*from+1, *seeds, lives, float64(lives)/time.Since(began).Seconds(), failed)
		}
	}
	var table strings.Builder
	if err := g.write(&table); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d lives of %d events in %.1f s: %.0f lives/s\n%s", lives, events, time.Since(began).Seconds(), float64(lives)/time.Since(began).Seconds(), table.String())
	if empty := g.empty(); *seeds >= 100 && len(empty) > 0 {
		t.Logf("nothing met: %s", strings.Join(empty, ", "))
	}
}

// The same seed has the same happen. For some seeds that is not so yet, see docs/fault-simulation.md, so only a flag asks for it.
func TestLivesAreTheSameTwice(t *testing.T) {
	if *twice == 0 {
		t.Skip("not all seeds are the same each time yet; -dst.twice N compares N of them")
	}
	for seed := *from; seed < *from+*twice; seed++ {
		first, second := happen(t, seed, &plant{}, newLedger()), happen(t, seed, &plant{}, newLedger())
		if first.trace != second.trace {
			t.Errorf("seed %d: %s the first time, and %s the second", seed, first.trace, second.trace)
		}
	}
}
