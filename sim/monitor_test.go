package sim_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/sim"
)

// watch reports events at their times, and notes what it sees of the engine.
type watch struct {
	at     []berth.Time
	events []engine.Event
	seen   []string
}

func (w *watch) Next(*engine.Engine) (berth.Time, bool) {
	if len(w.at) == 0 {
		return 0, false
	}
	return w.at[0], true
}

func (w *watch) Report(e *engine.Engine) engine.Event {
	w.seen = append(w.seen, fmt.Sprintf("%d: %d free", w.at[0], e.Loads()[0].Free))
	event := w.events[0]
	w.at, w.events = w.at[1:], w.events[1:]
	return event
}

// A monitor reports between the ends and the arrivals of an instant, event by
// event: the second sees what the first has brought, and that what ended then is
// gone. Its outages are like any other.
func TestMonitorReports(t *testing.T) {
	sites := []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Late}}}}
	down := func(until berth.Time, pes ...berth.PE) engine.Event {
		return engine.Event{Kind: engine.EventDown, Resource: berth.PoolID("s", "p"), PEs: berth.PEsOf(pes...), Until: until}
	}
	requests := []berth.Request{berth.Rigid("a", 0, 0, 100, 2, 10), berth.Rigid("b", 10, 10, 13, 4, 3), berth.Rigid("c", 10, 10, 30, 2, 5)}
	m := &watch{
		at:     []berth.Time{10, 10, 16},
		events: []engine.Event{down(14, 3), down(14, 2), down(18, 0, 1)},
	}
	lines := replay(t, engine.Config{Sites: sites}, sim.Workload{Requests: requests, Monitor: m})
	if want := []string{"10: 2 free", "10: 3 free", "16: 4 free"}; !slices.Equal(m.seen, want) {
		t.Errorf("it sees %q, want %q", m.seen, want)
	}
	if lines[1].Accepted || !lines[2].Accepted || *lines[2].Start != 10 {
		t.Errorf("with two PEs out of use b is refused and c starts at 10:\n%+v\n%+v", lines[1], lines[2])
	}
	if len(lines) != 6 || lines[3].Kind != berth.KindOutage || *lines[3].Start != 10 || *lines[3].End != 14 || *lines[5].Start != 16 {
		t.Errorf("three outages: %+v", lines[3:])
	}
	// What it takes out of use fails.
	m = &watch{at: []berth.Time{5}, events: []engine.Event{down(7, 0)}}
	lines = replay(t, engine.Config{Sites: sites}, sim.Workload{Requests: requests[:1], Runs: []berth.Duration{8}, Monitor: m})
	if lines[0].ActualEnd == nil || *lines[0].ActualEnd != 5 {
		t.Errorf("a fails at 5: %+v", lines[0])
	}
}
