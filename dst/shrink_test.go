package dst

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/stream"
)

// less is what of a seed is left out. The zero value is nothing.
type less struct {
	without []string // features and faults
	lives   int      // at most; 0 is as many as the seed has
	events  int      // in a life, likewise
}

var (
	without = flag.String("dst.without", "", "features and faults that do not happen, with commas between")
	lives   = flag.Int("dst.lives", 0, "how many lives there are at most; 0 is as many as the seed has")
	events  = flag.Int("dst.events", 0, "how many events there are in a life at most; 0 is as many as the seed has")
)

// byFlags is what is left out by the command line.
func byFlags() less {
	l := less{lives: *lives, events: *events}
	if *without != "" {
		l.without = strings.Split(*without, ",")
	}
	return l
}

// command is what repeats a seed.
func (l less) command(seed uint64) string {
	c := fmt.Sprintf("go test ./dst -run '^TestLives$' -dst.seeds 1 -dst.from %d", seed)
	if len(l.without) > 0 {
		c += fmt.Sprintf(" -dst.without '%s'", strings.Join(l.without, ","))
	}
	if l.lives > 0 {
		c += fmt.Sprint(" -dst.lives ", l.lives)
	}
	if l.events > 0 {
		c += fmt.Sprint(" -dst.events ", l.events)
	}
	return c + " -v -dst.trace"
}

// planOf draws the plan of a seed.
func planOf(seed uint64) *plan { return newPlan(stream.New(seed, "plan").Rand()) }

// leave takes out of a plan what is left out.
func (p *plan) leave(l less) {
	out := func(what string) bool { return slices.Contains(l.without, what) }
	p.features = slices.DeleteFunc(p.features, out)
	p.faults = slices.DeleteFunc(p.faults, out)
	for _, what := range l.without {
		delete(p.on, what)
	}
	if len(p.features) == 0 {
		p.features, p.on[featureRequest] = []string{featureRequest}, true
	}
	if l.lives > 0 {
		p.lives = min(p.lives, l.lives)
	}
	if l.events > 0 {
		p.eventsPerLife = min(p.eventsPerLife, l.events)
	}
}

// shrink leaves out as much of a seed as can be and it still fails, by delta debugging: of lives and events the later
// ones, of features and faults halves, then quarters, until none of them by itself. It gives up looking for less after
// some time.
func shrink(seed uint64, l less, within time.Duration, fails func(seed uint64, l less) bool) less {
	until := time.Now().Add(within)
	try := func(smaller less) bool {
		if time.Now().After(until) || !fails(seed, smaller) {
			return false
		}
		l = smaller
		return true
	}
	p := planOf(seed)
	p.leave(l)
	for n := p.lives; n > 1; n-- {
		smaller := l
		if smaller.lives = n - 1; !try(smaller) {
			break
		}
	}
	for step := p.eventsPerLife / 2; step > 0; step /= 2 {
		for n := p.eventsPerLife; ; {
			if l.events > 0 {
				n = l.events
			}
			smaller := l
			if smaller.events = n - step; smaller.events < 1 || !try(smaller) {
				break
			}
		}
	}
	left := slices.Concat(p.faults, p.features)
	for part := max(1, len(left)/2); ; part /= 2 {
		for from := 0; from < len(left); {
			some := left[from:min(from+part, len(left))]
			smaller := l
			if smaller.without = slices.Concat(l.without, some); try(smaller) {
				left = slices.Concat(left[:from], left[from+len(some):])
			} else {
				from += part
			}
		}
		if part <= 1 {
			return l
		}
	}
}

// A failing seed becomes a smaller one that fails still, and the same command repeats it.
func TestFailuresShrink(t *testing.T) {
	const seed = 5
	fails := func(seed uint64, l less) bool {
		p := eventLeftOut()
		p.less = l
		return happen(t, seed, p, newLedger()).wrong != nil
	}
	whole, small := planOf(seed), planOf(seed)
	if !fails(seed, less{}) {
		t.Fatal("the planted fault is not found by the seed")
	}
	l := shrink(seed, less{}, time.Minute, fails)
	small.leave(l)
	if !fails(seed, l) {
		t.Errorf("what is left does not fail: %s", l.command(seed))
	}
	if small.lives > 1 || small.eventsPerLife >= whole.eventsPerLife/2 || len(small.faults) > 0 || len(small.features) > 2 {
		t.Errorf("left are %d lives of %d events with %v and %v", small.lives, small.eventsPerLife, small.features, small.faults)
	}
	t.Log(l.command(seed))
}
