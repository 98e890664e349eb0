package sim_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/sim"
)

// linked are three sites of 64 PEs whose links send 100 MB/s each, from a centre
// that sends a number of kB/s in all.
func linked(uplink int64) engine.Config {
	config := engine.Config{Match: "earliest-finish", Staging: engine.StagingBefore, Uplink: uplink}
	for i := range 3 {
		config.Sites = append(config.Sites, berth.Site{
			Name:  fmt.Sprintf("s%d", i),
			Pools: []berth.Pool{{Name: "pool", PEs: 64, Binding: berth.Late}},
			Link:  berth.Link{KilobytesPerSecond: 100_000},
		})
	}
	return config
}

// laden draws requests with 1 to 40 GB of data each, one in some seconds on
// average, each with up to an hour to spare.
func laden(seed uint64, n int, every float64) []berth.Request {
	rng := rand.New(rand.NewPCG(seed, 0))
	var requests []berth.Request
	now := berth.Time(0)
	for i := range n {
		now += berth.Time(rng.ExpFloat64() * every)
		run := berth.Duration(300 + rng.IntN(3600))
		deadline := now.Add(run + 400 + berth.Duration(rng.IntN(3600)))
		r := berth.Rigid(fmt.Sprint(i), now, now, deadline, berth.Count(1)<<rng.IntN(5), run)
		r.StorageMB = 1000 + rng.Int64N(39_000)
		requests = append(requests, r)
	}
	return requests
}

// arrivals plays all transfers of a schedule second by second, in the order of
// its lines, as a network does that knows of no promises: a link carries each of
// its transfers at full speed, as in the paper, and what the uplink cannot carry
// all of them lack alike. It returns how many promises start before their data
// are there.
func arrivals(lines []berth.Line, uplink, link int64) (late int) {
	type transfer struct {
		begins, needed berth.Time
		left           int64
	}
	starts, data := map[string]berth.Time{}, map[string]int64{}
	var waiting []*transfer
	for i := range lines {
		switch l := &lines[i]; {
		case l.Kind == berth.KindStaging:
			waiting = append(waiting, &transfer{*l.Start, starts[l.ID], 1000 * data[l.ID]})
		case l.Accepted:
			starts[l.ID], data[l.ID] = *l.Start, l.StorageMB
		}
	}
	slices.SortFunc(waiting, func(a, b *transfer) int { return int(a.begins - b.begins) })
	var active []*transfer
	for now := berth.Time(0); len(waiting)+len(active) > 0; now++ {
		for len(waiting) > 0 && waiting[0].begins <= now {
			active, waiting = append(active, waiting[0]), waiting[1:]
		}
		for _, t := range active {
			t.left -= min(link, uplink/int64(len(active)))
		}
		active = slices.DeleteFunc(active, func(t *transfer) bool {
			if t.left <= 0 && now >= t.needed { // what came in this second was not there at its beginning
				late++
			}
			return t.left <= 0
		})
	}
	return late
}

// Promises made as if each transfer had its link for itself have their data late
// where the centre's uplink carries less than its links; none are late where the
// uplink was reckoned with. The numbers are in docs/results/uplink.md.
func TestPromisesWithoutTheUplink(t *testing.T) {
	const uplink, link = 200_000, 100_000
	count := func(requests []berth.Request, reckoned int64) (accepted, late, violations int) {
		lines := replay(t, linked(reckoned), sim.Workload{Requests: requests})
		for i := range lines {
			if lines[i].Accepted && lines[i].Kind == berth.KindRequest {
				accepted++
			}
		}
		report := checked(t, lines, check.Options{PEs: 64, Uplink: uplink})
		for _, v := range report.Violations {
			if v.Class != check.Uplink {
				t.Fatal(v)
			}
		}
		return accepted, arrivals(lines, uplink, link), len(report.Violations)
	}
	for _, c := range []struct {
		every                      float64 // seconds
		reckoned                   int64
		accepted, late, violations int
	}{
		{400, 0, 1000, 224, 79},
		{400, uplink, 999, 0, 0},
		{200, 0, 1000, 536, 171},
		{200, uplink, 996, 0, 0},
		{120, 0, 998, 896, 275},
		{120, uplink, 968, 0, 0},
	} {
		accepted, late, violations := count(laden(1, 1000, c.every), c.reckoned)
		if accepted != c.accepted || late != c.late || violations != c.violations {
			t.Errorf("one in %v s, reckoned with %d kB/s: %d accepted, %d late, %d violations; want %d, %d, %d",
				c.every, c.reckoned, accepted, late, violations, c.accepted, c.late, c.violations)
		}
	}
}

// The validator accepts what is decided with an uplink, whatever is asked for and
// forecast; and it sees one transfer that is moved to where there is no room.
func TestSchedulesKeepTheUplink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := linked(rapid.Int64Range(20_000, 400_000).Draw(t, "uplink"))
		config.Match = rapid.SampledFrom([]string{"earliest-finish", "ajsm", "smallest-fit"}).Draw(t, "match")
		config.Staging = rapid.SampledFrom([]engine.Staging{engine.StagingBefore, engine.StagingHold}).Draw(t, "staging")
		var storage int64
		if rapid.Bool().Draw(t, "limited") {
			storage = 60_000
		}
		for i := range config.Sites {
			config.Sites[i].StorageMB = storage
		}
		requests := laden(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 40).Draw(t, "requests"), 120)
		m := &watch{}
		for range rapid.IntRange(0, 5).Draw(t, "forecasts") {
			f := &berth.Forecast{Site: rapid.SampledFrom(config.Sites).Draw(t, "site").Name, Period: 60, From: requests[rapid.IntRange(0, len(requests)-1).Draw(t, "when")].Arrival}
			for sum := int64(0); len(f.Kilobytes) < 3; f.Kilobytes = append(f.Kilobytes, sum) {
				sum += rapid.Int64Range(60_000, 12_000_000).Draw(t, "moved")
			}
			m.at, m.events = append(m.at, f.From), append(m.events, engine.UpdateForecast(f))
		}
		slices.Sort(m.at)
		slices.SortFunc(m.events, func(a, b engine.Event) int { return int(a.Forecast.From - b.Forecast.From) })
		lines := replay(t, config, sim.Workload{Requests: requests, Monitor: m})
		options := check.Options{PEs: 64, Uplink: config.Uplink, Storage: func(string) (int64, bool) { return storage, storage > 0 }}
		if report := checked(t, lines, options); !report.Valid() {
			t.Fatal(report.Violations)
		}
		at := slices.IndexFunc(lines, func(l berth.Line) bool { return l.Kind == berth.KindStaging && l.Kilobytes > 1000 })
		if at < 0 {
			return
		}
		start := *lines[at].Start
		end := start.Add(max(1, berth.Duration(lines[at].Kilobytes/(2*config.Uplink))))
		lines[at].End = &end
		if lines[at].Kilobytes > config.Uplink*int64(end-start) && !slices.ContainsFunc(checked(t, lines, options).Violations, func(v check.Violation) bool { return v.Class == check.Uplink }) {
			t.Fatalf("%+v is too fast for %d kB/s, and it is not seen", lines[at], config.Uplink)
		}
	})
}
