//go:build linux

package local_test

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/local"
)

// hands is a clock that can be set.
type hands struct {
	ahead   atomic.Int64
	doubted atomic.Bool
}

func (h *hands) read() (berth.Time, bool) {
	return now() + berth.Time(h.ahead.Load()), !h.doubted.Load()
}

// stageOf returns the stage of a job once it is one of some, or after long.
func stageOf(t *testing.T, s *local.Site, id site.JobID, wanted ...site.Stage) site.Stage {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	stage := site.Stage("forgotten")
	for began := time.Now(); time.Since(began) < 20*time.Second; <-tick.C {
		state, err := s.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		stage = "forgotten"
		for at, jobs := range map[site.Stage][]site.Job{site.Waiting: state.Pending, site.Running: state.Running, site.Ended: state.Ended} {
			for i := range jobs {
				if jobs[i].ID == id {
					stage = at
				}
			}
		}
		if slices.Contains(wanted, stage) {
			return stage
		}
	}
	return stage
}

// However the clock jumps that the site is given, as long as it is not believed nothing
// ends, begins or is forgotten by it; and what does once it is believed again goes by it.
func TestNothingHappensByAClockThatIsNotBelieved(t *testing.T) {
	var clock hands
	s := openWith(t, local.Options{Dir: t.TempDir(), Clock: clock.read, Keep: time.Hour})
	room := site.Reservation{
		Name: site.NameOf(siteName, t.Name(), 1), Start: now(), End: now() + 600, Users: []string{me(t)}, Shares: []site.Share{{Node: "quay"}},
	}
	if o, err := s.Reserve(t.Context(), room); err != nil || o.Verdict == site.Refused {
		t.Fatal(o, err)
	}
	if err := s.Launch(t.Context(), room.Name, nil); err != nil {
		t.Fatal(err)
	}
	submit := func(key string, cores berth.Count, command ...string) site.JobID {
		t.Helper()
		id, err := s.Submit(t.Context(), site.Task{Reservation: room.Name, Key: key, User: me(t), Cores: cores, Command: command, Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	over := submit("over", 1, "/bin/true")
	if got := stageOf(t, s, over, site.Ended); got != site.Ended {
		t.Fatalf("the first task is %s", got)
	}
	long := submit("long", 4, "/bin/sleep", "600")
	if got := stageOf(t, s, long, site.Running); got != site.Running {
		t.Fatalf("the long task is %s", got)
	}

	clock.doubted.Store(true)
	for _, ahead := range []int64{3 * 86_400, -3 * 86_400} {
		clock.ahead.Store(ahead)
		state, err := s.Observe(t.Context())
		if err != nil || len(state.Ours) != 1 || len(state.Running) != 1 || len(state.Ended) != 1 {
			t.Fatalf("with a clock that is off by %d s: %+v, %v", ahead, state, err)
		}
	}
	clock.ahead.Store(0)
	waiting := submit("waiting", 4, "/bin/true")
	if err := s.Cancel(t.Context(), long); err != nil {
		t.Fatal(err)
	}
	if got := stageOf(t, s, long, site.Ended); got != site.Ended {
		t.Fatalf("the cancelled task is %s", got)
	}
	if got := stageOf(t, s, waiting, site.Waiting); got != site.Waiting {
		t.Fatalf("a task is %s while the clock is not believed", got)
	}

	clock.doubted.Store(false)
	if got := stageOf(t, s, waiting, site.Running, site.Ended); got != site.Running && got != site.Ended {
		t.Fatalf("the task that waited for the clock is %s", got)
	}
	clock.ahead.Store(2 * 3600)
	state, err := s.Observe(t.Context())
	if err != nil || len(state.Ours) != 0 || len(state.Ended) > 1 {
		t.Fatalf("two hours later, by a clock that is believed: %+v, %v", state, err)
	}
}

// Before it is given a clock, a site that is to be given one ends nothing: that of a machine
// that has just been started may be wrong by years.
func TestNothingEndsBeforeThereIsAClock(t *testing.T) {
	var clock hands
	dir := t.TempDir()
	booked := func(s *local.Site) int {
		t.Helper()
		state, err := s.Observe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(state.Ours)
	}
	clock.ahead.Store(-3 * 86_400) // the machine's clock is three days ahead of the service's
	first, err := local.Open(local.Options{Site: siteName, Dir: dir, Node: "quay", Cores: 4, Clock: clock.read})
	if err != nil {
		t.Fatal(err)
	}
	at, _ := clock.read()
	room := site.Reservation{Name: site.NameOf(siteName, t.Name(), 1), Start: at, End: at + 600, Users: []string{me(t)}, Shares: []site.Share{{Node: "quay"}}}
	if o, err := first.Reserve(t.Context(), room); err != nil || o.Verdict == site.Refused {
		t.Fatal(o, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again := openWith(t, local.Options{Dir: dir, ClockLater: true})
	if n := booked(again); n != 1 {
		t.Fatalf("%d reservations are there before there is a clock, want 1", n)
	}
	again.SetClock(clock.read)
	if n := booked(again); n != 1 {
		t.Errorf("%d reservations are there by the service's clock, want 1", n)
	}
	clock.ahead.Store(0)
	if n := booked(again); n != 0 {
		t.Errorf("%d reservations are there after their end", n)
	}
}

// A task's time is over by the clock of the site, whatever the machine's says.
func TestATaskEndsByTheClockOfTheSite(t *testing.T) {
	var clock hands
	clock.ahead.Store(-3 * 86_400)
	s := openWith(t, local.Options{Dir: t.TempDir(), Clock: clock.read})
	at, _ := clock.read()
	room := site.Reservation{Name: site.NameOf(siteName, t.Name(), 1), Start: at, End: at + 6, Users: []string{me(t)}, Shares: []site.Share{{Node: "quay"}}}
	if o, err := s.Reserve(t.Context(), room); err != nil || o.Verdict == site.Refused {
		t.Fatal(o, err)
	}
	if err := s.Launch(t.Context(), room.Name, nil); err != nil {
		t.Fatal(err)
	}
	id, err := s.Submit(t.Context(), site.Task{Reservation: room.Name, Key: "k", User: me(t), Command: []string{"/bin/sleep", "600"}, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if got := stageOf(t, s, id, site.Running); got != site.Running {
		t.Fatalf("the task is %s", got)
	}
	if got := stageOf(t, s, id, site.Ended); got != site.Ended {
		t.Fatalf("the task is %s after its reservation's end", got)
	}
	if took := time.Since(began); took < 4*time.Second {
		t.Errorf("the task ran for %s, its reservation lasts 6 s", took)
	}
	state, err := s.Observe(t.Context())
	if err != nil || len(state.Ended) != 1 || state.Ended[0].Result.Ending != site.TimedOut {
		t.Fatalf("%+v, %v; want it timed out", state.Ended, err)
	}
	if end := state.Ended[0].End; end < at+4 || end > at+60 {
		t.Errorf("it ended at %d by the site's clock, want about %d", end, at+6)
	}
}

// A node is drained by the clock of the moment, also while the site is given another one. The race detector
// sees a look at the clock without the lock.
func TestDrainedByTheClockOfTheMoment(t *testing.T) {
	s := open(t, t.TempDir())
	at := func(at berth.Time) site.Clock { return func() (berth.Time, bool) { return at, true } }
	s.SetClock(at(1000))
	var setting sync.WaitGroup
	setting.Go(func() { s.SetClock(at(2000)) })
	if err := s.Drain(t.Context(), "quay", "a new disk"); err != nil {
		t.Fatal(err)
	}
	setting.Wait()
	node := observe(t, s).Nodes[0]
	if node.Condition != site.Drained || node.Reason != "a new disk" || node.Since != 1000 && node.Since != 2000 {
		t.Errorf("%+v", node)
	}
	if err := s.Resume(t.Context(), "quay"); err != nil {
		t.Fatal(err)
	}
	if node := observe(t, s).Nodes[0]; node.Condition != site.Up || node.Reason != "" || node.Since != 0 {
		t.Errorf("resumed: %+v", node)
	}
}
