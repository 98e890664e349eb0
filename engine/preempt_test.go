package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// With preemption a promise is made as if no job ran; the job that is in its way
// stops when it begins, and goes on with what is left (GridSim's rule). Two
// slow PEs do half the work in the same time.
func TestJobsYieldToReservations(t *testing.T) {
	for _, c := range []struct {
		name     string
		speed    berth.Speed
		requests []berth.Request
		want     string
		end      berth.Time // of j
	}{
		{
			"a request for now", 0,
			[]berth.Request{job("j", 0, 4, 100), berth.Rigid("r", 10, 10, 20, 3, 10)},
			"j@0 j-@10 r@10 j@20", 110,
		},
		{
			"a request for later, before the job", 0,
			[]berth.Request{berth.Rigid("r", 0, 50, 60, 4, 10), job("j", 0, 4, 100)},
			"j@0 j-@50 r@50 j@60", 110,
		},
		{
			"only who started last has to go", 0,
			[]berth.Request{job("i", 0, 2, 100), job("j", 1, 2, 100), berth.Rigid("r", 10, 10, 20, 1, 10)},
			"i@0 j@1 j-@10 r@10 j@20", 111,
		},
		{
			"half the work done", 500,
			[]berth.Request{job("j", 0, 4, 100), berth.Rigid("r", 10, 10, 30, 3, 10)},
			"j@0 j-@10 r@10 j@30", 220,
		},
	} {
		config := onePool(4, berth.Late)
		config.Preempt, config.Sites[0].Pools[0].Speed = true, c.speed
		e := newEngine(t, config)
		var words []string
		var now, ended berth.Time
		note := func(changes []change.Change) {
			for _, c := range changes {
				switch c.Kind {
				case change.Advanced:
					now = c.Now
				case change.Started:
					words = append(words, fmt.Sprintf("%s@%d", c.ID, now))
				case change.Preempted:
					words = append(words, fmt.Sprintf("%s-@%d", c.ID, now))
				case change.Ended:
					if c.ID == "j" {
						ended = now
					}
				}
			}
			if err := e.Check(); err != nil {
				t.Fatal(err)
			}
		}
		for i := range c.requests {
			note(apply(t, e, c.requests[i].Arrival, engine.Submit(&c.requests[i])))
		}
		note(apply(t, e, 1000, engine.Wake()))
		if got := strings.Join(words, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if ended != c.end {
			t.Errorf("%s: j is done at %d, want %d", c.name, ended, c.end)
		}
	}
}

// A batch matcher does not see running jobs either, where they yield.
func TestJobsYieldToABatch(t *testing.T) {
	for _, row := range policy.Batches {
		config := onePool(4, berth.Late)
		config.Match, config.Preempt = row.Name, true
		e := newEngine(t, config)
		submit(t, e, 0, job("j", 0, 4, 100))
		apply(t, e, 10, engine.Wake())
		submit(t, e, 10, berth.Rigid("r", 10, 10, 20, 3, 10))
		apply(t, e, 11, engine.Wake())
		if r, live := e.Reservation("r"); !live || r.Start() != 10 {
			t.Errorf("%s: r is live: %t, on %v; want it at 10", row.Name, live, r.Allotments)
		}
	}
}

// A job that has to yield wherever it starts starts where it can run longest: here
// until 50, not until 10.
func TestYieldingJobStartsWhereItRunsLongest(t *testing.T) {
	for _, sites := range [][]string{{"short", "long"}, {"long", "short"}} {
		config := engine.Config{Preempt: true}
		for _, name := range sites {
			config.Sites = append(config.Sites, berth.Site{Name: name, Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Late}}})
		}
		e := newEngine(t, config)
		for site, start := range map[string]berth.Time{"short": 10, "long": 50} {
			r := berth.Rigid("promise at "+site, 0, start, 100, 4, 100-berth.Duration(start))
			r.Site = site
			submit(t, e, 0, r)
		}
		submit(t, e, 0, job("j", 0, 4, 100))
		j, live := e.Reservation("j")
		if !live || j.Allotments[0].Resource.Site != "long" || j.End() != 50 {
			t.Errorf("sites %v: j has %+v, want it at long until 50", sites, j.Allotments)
		}
	}
}

// Running jobs yield to a longer reservation as they do to a new or modified one, no
// more of them than it needs. The length for which there is room is that without them.
func TestJobsYieldToAnExtension(t *testing.T) {
	config := onePool(4, berth.Late)
	config.Preempt = true
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("a", 0, 10, 20, 2, 10))
	submit(t, e, 0, job("i", 0, 1, 100))
	submit(t, e, 0, job("j", 0, 1, 100))
	submit(t, e, 15, berth.Rigid("b", 15, 20, 60, 1, 40))
	submit(t, e, 15, berth.Rigid("c", 15, 40, 50, 2, 10))
	changes := apply(t, e, 15, engine.Extend("a", 50))
	if got := kinds(changes); got != "change_refused:a" || changes[0].Refusal.Nearest.Duration != 20 {
		t.Fatalf("beside b and c: %s %+v", got, changes[0].Refusal)
	}
	if got := kinds(apply(t, e, 15, engine.Extend("a", 30))); got != "shortened:j extended:a" {
		t.Fatalf("beside b and two jobs: %s", got)
	}
	for id, end := range map[string]berth.Time{"i": 100, "j": 20} {
		if r, _ := e.Reservation(id); r.State != berth.Active || r.End() != end {
			t.Errorf("job %s is %s until %d, want %d", id, r.State, r.End(), end)
		}
	}
}

// An outage that another one covers in part takes more PEs when that is over. A job
// for which there is room beside the first of them goes on until PEs are short.
func TestJobsYieldWhereAnOutageIsShortFirst(t *testing.T) {
	config := onePool(4, berth.Late)
	config.Preempt = true
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("a", 0, 30, 40, 1, 10))
	submit(t, e, 0, job("j", 0, 2, 100))
	apply(t, e, 1, takenDown(cm5(), 2, 3, 0, 20))
	changes := apply(t, e, 1, takenDown(cm5(), 2, 4, 0, 40))
	if j, _ := e.Reservation("j"); j.End() != 30 {
		t.Errorf("j ends at %d, want 30: %s", j.End(), kinds(changes))
	}
	wantShape(t, e, "a", "confirmed cm5:1x[30,40)")
}

// A promise that lacks PEs when a job is about to start on the others gets them as soon
// as another promise makes the job stop before: what the job gives up later is free now.
func TestPEsThatAJobGivesUpLaterRepair(t *testing.T) {
	for _, binding := range bindings() {
		config := managed(onePool(4, binding))
		config.Preempt = true
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("a", 0, 50, 60, 2, 10))
		submit(t, e, 0, job("j", 0, 2, 100))
		pes := berth.PE(0)
		if r, _ := e.Reservation("j"); binding == berth.Early && r.Allotments[0].PEs.Contains(0) {
			pes = 2
		}
		apply(t, e, 0, takenDown(cm5(), pes, pes+2, 0, 0))
		apply(t, e, 1, wake())
		wantShape(t, e, "a", "degraded cm5:0x[50,60) missing 2")
		if got := kinds(apply(t, e, 1, engine.Submit(new(berth.Rigid("b", 1, 20, 30, 2, 10))))); got != "queued:b shortened:j accepted:b resized:a emitted emitted emitted" {
			t.Errorf("%s: a promise before it: %s", binding, got)
		}
		wantShape(t, e, "a", "confirmed cm5:2x[50,60)")
		settled(t, config, e)
	}
}

// A job that yields to an announced outage gives back PEs that the outage takes too, and what
// is in the way of these has left by then as well.
func TestPEsOfAJobThatYieldedGoOutToo(t *testing.T) {
	config := onePool(4, berth.Late)
	config.Preempt = true
	config.Sites[0].Pools[0].NameAhead = 3600
	e := newEngine(t, config)
	submit(t, e, 0, job("d", 0, 1, 30))
	submit(t, e, 0, job("a", 0, 2, 50))
	accepted(t, submit(t, e, 0, berth.Rigid("p", 0, 30, 400, 2, 20)))
	apply(t, e, 1, engine.Wake())
	apply(t, e, 1, engine.Down(berth.Outage{Resource: berth.PoolID("cm5", "pool"), PEs: berth.NewPESet(berth.Run{Lo: 0, Hi: 3}), From: 20, Until: 100}))
	if r, _ := e.Reservation("a"); r.End() != 30 {
		t.Errorf("job a keeps its PEs until %d, want 30, when PE 0 goes out", r.End())
	}
	if r, _ := e.Reservation("p"); r.Start() != 100 {
		t.Errorf("p starts at %d, want 100, when the PEs are back", r.Start())
	}
}
