package state

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine/change"
)

// The check that random histories rely on sees each way in which what is derived can
// differ from the ledger, and names it.
func TestCheckSeesFaults(t *testing.T) {
	entry := func(s *State, id string) *Entry { return s.ledger.live[id] }
	block := calendar.Block{Start: 50, End: 51, NPE: 1}
	book := func(t *testing.T, c calendar.Calendar) {
		if err := c.Add(block); err != nil {
			t.Fatal(err)
		}
	}
	for want, spoil := range map[string]func(*testing.T, *State){
		"contradicts itself": func(_ *testing.T, s *State) { entry(s, "a").r.Allotments[0].End = 25 },
		"calendar of {s pool late}: record": func(t *testing.T, s *State) {
			book(t, s.pools[1].calendar)
		},
		"with plans":                      func(t *testing.T, s *State) { book(t, s.planned.(*layered).calendars[1]) },
		"idle PEs of {s pool late}":       func(_ *testing.T, s *State) { s.pools[1].idle.Delete(berth.PEsOf(3)) },
		"calendar of {s storage storage}": func(t *testing.T, s *State) { book(t, s.Storage(0).calendar) },
		"timers differ":                   func(_ *testing.T, s *State) { s.timers.drop(&entry(s, "a").first) },
		"are degraded":                    func(_ *testing.T, s *State) { s.degraded["a"] = entry(s, "a") },
		"hold something":                  func(_ *testing.T, s *State) { s.ledger.tally(OfUser("nobody")).usage = Usage{Reservations: 1} },
		`user "u" is promised`: func(t *testing.T, s *State) {
			late := berth.PoolID("s", "late")
			wrong := new(Promised)
			wrong.Add(5, 10, 3)
			s.ledger.tally(OfUser("u")).promised = map[berth.ResourceID]*Promised{late: wrong}
		},
		`user "u" holds`: func(_ *testing.T, s *State) { s.ledger.tally(OfUser("u")).usage = Usage{Reservations: 3} },
	} {
		config := smallConfig()
		config.Plans = true
		s := foldedBy(t, config, "late")
		if err := s.Check(config); err != nil {
			t.Fatal(err)
		}
		spoil(t, s)
		if err := s.Check(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want a report with %q", err, want)
		}
	}
}

// Outages without PEs or time, or unknown ones, are errors, and so are forecasts that say
// nothing, time that runs back, and what is queued without a request.
func TestChangesOfTheWorldThatContradictTheState(t *testing.T) {
	outage := func(pool string, lo, hi berth.PE, from, until berth.Time) *berth.Outage {
		return &berth.Outage{Number: 1, Resource: berth.PoolID("s", pool), PEs: berth.NewPESet(berth.Run{Lo: lo, Hi: hi}), From: from, Until: until}
	}
	down := change.Change{Kind: change.WentDown, Outage: outage("early", 0, 2, 40, 50)}
	other := outage("early", 0, 2, 40, 50)
	other.Number = 2
	for name, changes := range map[string][]change.Change{
		"time runs back":                 {{Kind: change.Advanced, Now: 3}, {Kind: change.Advanced, Now: 2}},
		"nothing is queued":              {{Kind: change.Queued}},
		"queued as a job, not pending":   {{Kind: change.QueuedAsJob, ID: "x", Request: new(berth.Job("x", 0, 1, 1))}},
		"no outage":                      {{Kind: change.WentDown}},
		"an outage of no PEs":            {{Kind: change.WentDown, Outage: outage("early", 0, 0, 40, 50)}},
		"an outage of no time":           {{Kind: change.WentDown, Outage: outage("early", 0, 2, 40, 40)}},
		"an outage of no pool":           {{Kind: change.WentDown, Outage: outage("other", 0, 2, 40, 50)}},
		"an outage of PEs beyond":        {{Kind: change.WentDown, Outage: outage("early", 3, 5, 40, 50)}},
		"an outage where promises are":   {{Kind: change.WentDown, Outage: outage("early", 0, 2, 7, 50)}},
		"an unknown one begins":          {down, {Kind: change.Advanced, Now: 40}, {Kind: change.OutageBegan, Outage: other}},
		"one begins before its time":     {down, {Kind: change.Advanced, Now: 39}, {Kind: change.OutageBegan, Outage: down.Outage}},
		"one begins twice":               {down, {Kind: change.Advanced, Now: 40}, {Kind: change.OutageBegan, Outage: down.Outage}, {Kind: change.OutageBegan, Outage: down.Outage}},
		"an unknown one ends":            {down, {Kind: change.CameUp, Outage: other}},
		"one ends twice":                 {down, {Kind: change.CameUp, Outage: down.Outage}, {Kind: change.CameUp, Outage: down.Outage}},
		"a forecast without a period":    {{Kind: change.Forecasted, Forecast: &berth.Forecast{Site: "s", Kilobytes: []int64{1}}}},
		"data over an uplink of nothing": {{Kind: change.Staged, ID: "a", Transfers: []berth.Transfer{{Site: "s", Start: 6, Since: 6, End: 7, Rate: 1}}}},
		"staged into storage of another": {{Kind: change.Staged, ID: "a", Stocks: []berth.Allotment{{Resource: berth.StorageID("s"), Start: 26, End: 30, NPE: 60}}}},
		"staged into no stock":           {{Kind: change.Staged, ID: "a", Stocks: []berth.Allotment{{Resource: berth.StorageID("t"), Start: 26, End: 30, NPE: 60}}}},
		"vacated while it runs":          {{Kind: change.Advanced, Now: 5}, {Kind: change.Started, ID: "a"}, {Kind: change.Vacated, ID: "a"}},
		"moved while it runs":            {{Kind: change.Advanced, Now: 5}, {Kind: change.Started, ID: "a"}, {Kind: change.Moved, ID: "a", Moved: []berth.Allotment{place("early", 40, 45)}}},
	} {
		s := folded(t, "early")
		for i := range changes {
			err := s.Fold(&changes[i], Ref{})
			if last := i == len(changes)-1; (err != nil) != last {
				t.Errorf("%s: change %d gives %v", name, i+1, err)
			}
		}
	}
	late := folded(t, "late")
	for _, c := range []struct {
		change change.Change
		sound  bool
	}{
		{change.Change{Kind: change.Advanced, Now: 5}, true},
		{change.Change{Kind: change.Started, ID: "a", PEs: []berth.PESet{berth.PEsOf(0, 1, 2)}}, false},
		{change.Change{Kind: change.Started, ID: "a"}, false},
	} {
		if err := late.Fold(&c.change, Ref{}); (err == nil) != c.sound {
			t.Errorf("%s with the PEs %v: %v; want none: %t", c.change.Kind, c.change.PEs, err, c.sound)
		}
	}
	s := small()
	trial := s.Try()
	if err := s.Fold(&change.Change{Kind: change.Advanced, Now: 1}, Ref{}); err == nil {
		t.Error("a change during a trial is folded")
	}
	trial.Close()
	if err := s.Fold(&change.Change{Kind: change.Advanced, Now: 1}, Ref{}); err != nil {
		t.Errorf("after the trial: %v", err)
	}
}

// An outage is found by its number until it is over.
func TestOutagesByTheirNumber(t *testing.T) {
	s := New(smallConfig())
	outage := func(number uint64, pool string) *berth.Outage {
		return &berth.Outage{Number: number, Resource: berth.PoolID("s", pool), PEs: berth.PEsOf(0), Until: berth.Forever}
	}
	known := func(want ...bool) {
		t.Helper()
		for i := range want {
			if o, ok := s.Outage(uint64(i + 1)); ok != want[i] || ok && o.Number != uint64(i+1) {
				t.Errorf("outage %d is there: %t, %+v", i+1, ok, o)
			}
		}
	}
	fold := func(kind change.Kind, o *berth.Outage) {
		t.Helper()
		if err := s.Fold(&change.Change{Kind: kind, Outage: o}, Ref{}); err != nil {
			t.Fatal(err)
		}
	}
	known(false, false)
	fold(change.WentDown, outage(1, "early"))
	fold(change.WentDown, outage(2, "late"))
	known(true, true, false)
	fold(change.CameUp, outage(1, "early"))
	known(false, true)
}
