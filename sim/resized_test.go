package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/sim"
)

// sizes writes the changes of what a line holds as "from:pes cause", or the number
// of PEs where they have no numbers.
func sizes(l *berth.Line) string {
	var words []string
	for i := range l.Stretches {
		s := &l.Stretches[i]
		pes := s.PEs.String()
		if pes == "" {
			pes = fmt.Sprint(s.NPE, " PEs")
		}
		words = append(words, strings.TrimSpace(fmt.Sprintf("%d:%s %s", s.From, pes, s.Cause)))
	}
	return strings.Join(words, "; ")
}

// At a managed site a reservation outlives the loss of PEs, and its line tells what
// it holds from when on.
func TestResizedReservationsInASchedule(t *testing.T) {
	down := func(from, until berth.Time, pes ...berth.PE) sim.Outage {
		return sim.Outage{Resource: berth.PoolID("s", "a"), PEs: berth.PEsOf(pes...), From: from, Until: until}
	}
	r := berth.Rigid("r", 0, 10, 90, 3, 40)
	fixed := berth.Rigid("r", 0, 10, 50, 3, 40)
	other := berth.Rigid("q", 0, 0, 90, 1, 90)
	for _, c := range []struct {
		name     string
		binding  berth.Binding
		requests []berth.Request
		outages  []sim.Outage
		want     string
		used     int64 // PE-seconds
	}{
		{
			"another PE at once", berth.Early,
			[]berth.Request{r},
			[]sim.Outage{down(20, 30, 1)},
			"r:s[10,50)0-2 20:0,2-3 outage-1", 120,
		},
		{
			"back after a while", berth.Early,
			[]berth.Request{other, r},
			[]sim.Outage{down(20, 30, 2)},
			"r:s[10,50)1-3 20:1,3 outage-1; 30:1-3", 90 + 110,
		},
		{
			"lost before the start", berth.Early,
			[]berth.Request{other, fixed},
			[]sim.Outage{down(5, 30, 2)},
			"r:s[10,50)1-3 10:1,3 outage-1; 30:1-3", 90 + 100,
		},
		{
			"without numbers, before the start", berth.Late,
			[]berth.Request{other, fixed},
			[]sim.Outage{down(5, 30, 2)},
			"r:s[10,50) 10:1,3 outage-1; 30:1-3", 90 + 100,
		},
		{
			"without numbers, and whole in the end", berth.Late,
			[]berth.Request{other, fixed},
			[]sim.Outage{down(5, 8, 2)},
			"r:s[10,50)1-3", 90 + 120,
		},
		{
			"all PEs", berth.Early,
			[]berth.Request{fixed},
			[]sim.Outage{down(20, 30, 0, 1, 2, 3)},
			"r:s[10,50)0-2 20:0 PEs outage-1; 30:0-2", 90,
		},
		{
			"moved away", berth.Early,
			[]berth.Request{other, r},
			[]sim.Outage{down(5, 30, 2)},
			"r:s[30,70)1-3 5:[10,50)1-3 outage-1", 90 + 120,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			sites := two(0)
			sites[0].Managed, sites[0].Pools = true, sites[0].Pools[:1]
			sites[0].Pools[0].Binding = c.binding
			work := sim.Workload{Requests: c.requests, Outages: slices.Values(c.outages)}
			lines := replay(t, engine.Config{Sites: sites}, work)
			l := &lines[len(c.requests)-1]
			if got := strings.TrimSpace(show([]berth.Line{*l}) + " " + sizes(l) + left(l)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if report := checked(t, lines, check.Against(sites, 0)); !report.Valid() {
				t.Error(report.Violations)
			}
			if used := measure.OfRuns(berth.Each(lines), 4, sim.WantedRuns(&work, sites, berth.Each(lines))).Used; used != nil && used.PESeconds != c.used {
				t.Errorf("%d PE-seconds used, want %d", used.PESeconds, c.used)
			}
		})
	}
}

// What lacks PEs of several outages, and moves later, does so for one that still lasts.
func TestMoveIsForAnOutageThatLasts(t *testing.T) {
	sites := two(0)
	sites[0].Managed = true
	a := berth.PoolID("s", "a")
	down := func(pe berth.PE) engine.Event {
		return engine.Event{Kind: engine.EventDown, Resource: a, PEs: berth.PEsOf(pe), Until: 100}
	}
	elsewhere := berth.Rigid("q", 0, 0, 200, 4, 200)
	elsewhere.Pool, elsewhere.Site, elsewhere.Hold = "b", "s", 20
	w := sim.Workload{
		Requests: []berth.Request{elsewhere, berth.Rigid("r", 0, 30, 70, 4, 40)},
		Monitor: &watch{
			at:     []berth.Time{2, 5, 8},
			events: []engine.Event{down(0), down(1), {Kind: engine.EventUp, Resource: a, PEs: berth.PEsOf(1)}},
		},
	}
	lines := replay(t, engine.Config{Sites: sites}, w)
	if got, want := left(&lines[1]), "20:a[30,70)0-3 outage-1"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if report := checked(t, lines, check.Against(sites, 0)); !report.Valid() {
		t.Error(report.Violations)
	}
}
