package sim_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/sim"
)

// remote is a site of a pool of 4 PEs to which data come at 100 MB/s.
func remote(speed berth.Speed) []berth.Site {
	return []berth.Site{{
		Name:  "s",
		Pools: []berth.Pool{{Name: "a", PEs: 4, Binding: berth.Early, Speed: speed}},
		Link:  berth.Link{KilobytesPerSecond: 100_000},
	}}
}

// Where PEs are held while data are moved, what runs begins when its data are
// there: 20 GB take 200 s, or 201 with a delay.
func TestRunsBeginWithTheirData(t *testing.T) {
	laden := func(id string) berth.Request {
		r := berth.Rigid(id, 0, 0, 5000, 2, 100)
		r.StorageMB = 20_000
		return r
	}
	early, whole, over := laden("early"), laden("whole"), laden("over")
	plain := berth.Rigid("plain", 0, 0, 5000, 2, 100)
	w := sim.Workload{Requests: []berth.Request{early, whole, over, plain}, Runs: []berth.Duration{90, 0, 130, 90}}
	for _, c := range []struct {
		name    string
		staging engine.Staging
		speed   berth.Speed
		delay   int64
		ends    []berth.Time // of those four: when each really ends
	}{
		{"held", engine.StagingHold, 0, 0, []berth.Time{290, 300, 600, 390}},
		{"held with a delay", engine.StagingHold, 0, 1, []berth.Time{291, 301, 602, 391}},
		{"held at twice the speed", engine.StagingHold, 2000, 0, []berth.Time{245, 250, 500, 295}},
		{"moved before", engine.StagingBefore, 0, 0, []berth.Time{290, 300, 400, 90}},
		{"not moved", engine.StagingNone, 0, 0, []berth.Time{90, 100, 200, 190}},
	} {
		t.Run(c.name, func(t *testing.T) {
			sites := remote(c.speed)
			sites[0].Link.DelayMS = c.delay
			config := engine.Config{Sites: sites, Staging: c.staging}
			lines := replay(t, config, w)
			for i, want := range c.ends {
				l := &lines[i]
				end := *l.End
				if l.ActualEnd != nil {
					end = *l.ActualEnd
				}
				if end != want {
					t.Errorf("%s ends at %d, want %d: %+v", l.ID, end, want, l)
				}
			}
			if report := checked(t, lines, check.Against(sites, 0)); !report.Valid() {
				t.Error(report.Violations)
			}
			m := measure.OfRuns(berth.Each(lines), 4, sim.WantedRuns(&w, sites, berth.Each(lines)))
			if p := m.Promises; p.Given != 4 || p.Killed != 1 || p.Failed != 0 {
				t.Errorf("only what wants more than it was given is killed: %+v", p)
			}
		})
	}
}

// What never arrives lets nothing begin: the reservation ends at its limit,
// however far it might be extended.
func TestRunsWithoutTheirData(t *testing.T) {
	r := berth.Rigid("r", 0, 10, 500, 2, 100)
	r.StorageMB = 100
	m := &watch{at: []berth.Time{5}, events: []engine.Event{{Kind: engine.EventUpdateForecast, Forecast: &berth.Forecast{Site: "s", From: 5, Period: 10, Kilobytes: []int64{0}}}}}
	config := engine.Config{Sites: remote(0), Staging: engine.StagingHold, Overrun: engine.OverrunRunOn}
	lines := replay(t, config, sim.Workload{Requests: []berth.Request{r}, Runs: []berth.Duration{50}, Monitor: m})
	if l := &lines[0]; *l.Start != 10 || *l.End != 111 || l.ActualEnd != nil {
		t.Errorf("%+v", l)
	}
}

// The duration of a moldable request holds its transfer, which its line tells.
func TestTransfersOfVariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sites := remote(berth.Speed(rapid.SampledFrom([]int{0, 700, 2000}).Draw(t, "speed")))
		sites[0].Link.DelayMS = rapid.Int64Range(0, 3000).Draw(t, "delay")
		if rapid.Bool().Draw(t, "limited") {
			sites[0].StorageMB = 30_000
		}
		config := engine.Config{Sites: sites, Staging: engine.StagingHold}
		if rapid.Bool().Draw(t, "uplink") {
			config.Uplink = rapid.Int64Range(60_000, 300_000).Draw(t, "rate")
		}
		var requests []berth.Request
		now := berth.Time(0)
		for i := range rapid.IntRange(1, 8).Draw(t, "requests") {
			now += berth.Time(rapid.IntRange(0, 100).Draw(t, "pause"))
			r := berth.Rigid(string(rune('a'+i)), now, now, now+5000, 2, 100)
			r.Parts[0].Variants = append(r.Parts[0].Variants, berth.Variant{NPE: 4, Duration: 60}, berth.Variant{NPE: 2, Duration: 120})
			r.StorageMB = rapid.Int64Range(0, 20_000).Draw(t, "data")
			requests = append(requests, r)
		}
		m := &watch{}
		if rapid.Bool().Draw(t, "forecast") {
			m.at = []berth.Time{rapid.Custom(func(t *rapid.T) berth.Time { return berth.Time(rapid.IntRange(0, 300).Draw(t, "at")) }).Draw(t, "when")}
			m.events = []engine.Event{{Kind: engine.EventUpdateForecast, Forecast: &berth.Forecast{
				Site: "s", From: m.at[0], Period: 10, Kilobytes: []int64{rapid.Int64Range(400_000, 4_000_000).Draw(t, "moved")},
			}}}
		}
		lines := replay(t, config, sim.Workload{Requests: requests, Monitor: m})
		if report := checked(t, lines, check.Against(sites, config.Uplink)); !report.Valid() {
			t.Fatal(report.Violations)
		}
	})
}
