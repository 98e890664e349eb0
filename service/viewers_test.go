package service

import (
	"flag"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/cputime"
)

var viewersFull = flag.Bool("viewers.full", false, "measure what viewers cost the loop, which takes some minutes")

// theatre is a core, and who looks at the pictures of its pool.
type theatre struct {
	t         *testing.T
	core      *Core
	drawings  drawings
	occupancy occupancy
	display   display
	asked     int
}

var stage = berth.PoolID("site", "p")

func (w *theatre) step(now berth.Time, event engine.Event) {
	_, _, err := w.core.Step(now, &event, Key{})
	if err != nil {
		w.t.Fatal(err)
	}
	s := w.core.takeShown()
	w.display.show(&s)
	w.occupancy.tell(s.touches, s.number)
}

func submission(id string, ready, deadline berth.Time, npe berth.Count, length berth.Duration) engine.Event {
	r := berth.Rigid(id, 1000, ready, deadline, npe, length)
	return engine.Submit(&r)
}

// decide has a promise made and given back, so that as many are live as before.
func (w *theatre) decide(n int) {
	for range n {
		w.asked++
		id := fmt.Sprint("x", w.asked)
		start := berth.Time(1_000_000 + w.asked%1000*600)
		w.step(1000, submission(id, start, start+90_000, 4, 3600))
		w.step(1000, engine.Cancel(id))
	}
}

// follow has viewers look at each picture that they are told of, until stop is called, which
// returns how many pictures they saw. Then there are no viewers, and no diary is kept. It returns once the first
// picture is seen: what begins with that is not counted as the cost of following.
func (w *theatre) follow(viewers int) (stop func() int64) {
	over, first := make(chan struct{}), make(chan struct{})
	var seen atomic.Int64
	var watching sync.WaitGroup
	for v := range viewers {
		at := w.occupancy.end()
		watching.Go(func() {
			for {
				list, more, err := w.occupancy.read(at)
				if err != nil {
					w.t.Error(err)
					return
				}
				if at += uint64(len(list)); len(list) > 0 {
					m := w.display.look()
					w.drawings.get(m, &m.config.Sites[0].Pools[0], stage, fmt.Sprint("viewer", v))
					if seen.Add(1) == 1 {
						close(first)
					}
					continue
				}
				select {
				case <-more:
				case <-over:
					return
				}
			}
		})
	}
	if viewers > 0 {
		w.decide(1) // which they are told of
		<-first
	}
	return func() int64 {
		close(over)
		watching.Wait()
		w.drawings.wanted.Store(false)
		w.core.diarist.stop()
		return seen.Load()
	}
}

// The loop decides as before while a hundred look at what it decides: they draw beside it,
// share what is drawn, and are told at most four times a second.
func TestViewersCostTheLoopLittle(t *testing.T) {
	for _, binding := range []berth.Binding{berth.Early, berth.Late} {
		t.Run(string(binding), func(t *testing.T) { viewersCostTheLoopLittle(t, binding) })
	}
}

func viewersCostTheLoopLittle(t *testing.T, binding berth.Binding) {
	t.Helper()
	promises, decisions, turns, pairs := 200, 50, 1, 1
	if *viewersFull {
		promises, decisions, turns, pairs = 10_000, 40_000, 8, 20
	}
	core, err := newCore(engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: 1024, Binding: binding}}}}}, "test", 1000)
	if err != nil {
		t.Fatal(err)
	}
	w := &theatre{t: t, core: core}
	core.diarist.read = &w.drawings.readers
	w.display.begin(core)
	w.occupancy.guard = func(_ string, f func()) { f() }
	defer w.occupancy.close()
	for i := range promises {
		start := berth.Time(2000 + i*60)
		w.step(1000, submission(fmt.Sprint("p", i), start, start+10*86_400, berth.Count(1+i%8), 7200))
	}
	cost := func(viewers int) (time.Duration, int64) {
		stop := w.follow(viewers)
		used := cputime.Of(func() { w.decide(decisions) })
		return used, stop()
	}
	var sum, squares float64
	for pair := range pairs {
		// The lowest of some turns each: what else the machine does only adds to what they cost.
		alone, watched := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
		var seen int64
		for turn := range turns {
			for _, viewers := range []int{100 * ((pair + turn) % 2), 100 * ((pair + turn + 1) % 2)} {
				used, saw := cost(viewers)
				if seen += saw; viewers == 0 {
					alone = min(alone, used)
				} else {
					watched = min(watched, used)
				}
			}
		}
		if seen == 0 {
			t.Error("no viewer saw anything")
		}
		change := float64(watched-alone) / float64(alone)
		t.Logf("pair %d: %.1f µs a decision alone, %.1f with 100 viewers (%+.1f %%), who saw %d pictures", pair, float64(alone.Microseconds())/float64(2*decisions), float64(watched.Microseconds())/float64(2*decisions), 100*change, seen)
		sum, squares = sum+change, squares+change*change
	}
	if n := float64(pairs); pairs > 1 {
		mean := sum / n
		half := 2.093 * math.Sqrt((squares/n-mean*mean)/(n-1)) // Student's t, 19 degrees of freedom
		t.Logf("CPU of the loop with 100 viewers: %+.1f %%, 95 %% interval %+.1f to %+.1f %%", 100*mean, 100*(mean-half), 100*(mean+half))
		if mean+half >= 0.05 {
			t.Errorf("the interval's upper end is %.1f %%; want less than 5 %%", 100*(mean+half))
		}
	}
}
