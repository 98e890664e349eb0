package sim_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/sim"
)

// A line says which site, pool and PEs were asked for, whether they were to be had
// or not.
func TestWishesInASchedule(t *testing.T) {
	asks := berth.Rigid("a", 0, 0, 90, 1, 10)
	asks.Site, asks.Pool, asks.Parts[0].Eligible = "s", "b", berth.PEsOf(2)
	elsewhere := berth.Rigid("b", 0, 0, 90, 1, 10)
	elsewhere.Site = "t"
	lines := run(t, engine.Config{Sites: two(0)}, asks, elsewhere)
	if l := &lines[0]; l.WantSite != "s" || l.WantPool != "b" || l.Eligible.String() != "2" || l.Pool != "b" || l.PEs.String() != "2" {
		t.Errorf("%+v", l)
	}
	if l := &lines[1]; l.WantSite != "t" || l.Site != "" || l.Reason != berth.NoSuitableSite {
		t.Errorf("%+v", l)
	}
}

// A request that waits as a job is a job in the schedule, without a deadline.
func TestRequestsThatWaitAsJobsInASchedule(t *testing.T) {
	config := engine.Config{Sites: two(0), Immediate: engine.ImmediateQueue}
	lines := run(t, config, berth.Rigid("a", 0, 0, 10, 4, 10), berth.Rigid("b", 1, 1, 6, 4, 5), berth.Rigid("c", 2, 2, 6, 4, 4))
	for i, want := range []string{"a request 10", "b request 6", "c job 0"} {
		l := &lines[i]
		if got := fmt.Sprintf("%s %s %d", l.ID, l.Kind, l.Deadline); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// A schedule has the lists of sites and of PEs of a request.
func TestListsInASchedule(t *testing.T) {
	config := engine.Config{Sites: two(0)}
	asks := berth.Rigid("a", 0, 0, 90, 1, 10)
	asks.Sites = []string{"s", "t"}
	asks.Parts[0].Only = []berth.PoolPEs{{Resource: berth.PoolID("s", "b"), PEs: berth.PEsOf(1, 2)}}
	asks.Parts[0].Never = []berth.PoolPEs{{Resource: berth.PoolID("s", "b"), PEs: berth.PEsOf(1)}, {Resource: berth.PoolID("s", "a"), PEs: berth.PEsOf(0)}}
	lines := run(t, config, asks)
	l := &lines[0]
	if l.Pool != "b" || l.PEs.String() != "2" {
		t.Fatalf("%+v", l)
	}
	text, err := json.Marshal(l)
	want := `"want_sites":["s","t"],"only":[{"site":"s","pool":"b","pes":"1-2"}],"never":[{"site":"s","pool":"b","pes":"1"},{"site":"s","pool":"a","pes":"0"}]`
	if err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%s lacks %s, %v", text, want, err)
	}
	for _, c := range []struct {
		pes  berth.PESet
		pool string
		want []check.Class
	}{
		{berth.PEsOf(2), "b", nil},
		{berth.PEsOf(1), "b", []check.Class{check.Eligible}},
		{berth.PEsOf(0), "b", []check.Class{check.Eligible}},
		{berth.PEsOf(1), "a", []check.Class{check.Place}},
	} {
		l.PEs, l.Pool = c.pes, c.pool
		var got []check.Class
		for _, v := range checked(t, lines, check.Against(config.Sites, 0)).Violations {
			got = append(got, v.Class)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("on %s of %s: %v, want %v", c.pes, c.pool, got, c.want)
		}
	}
}

// left writes the former places of a line as "at:[start,end)pes cause", with the
// time at which data were expected if they were late.
func left(l *berth.Line) string {
	var words []string
	for i := range l.MovedFrom {
		p := &l.MovedFrom[i]
		why := p.Cause
		if p.Staged != nil {
			why = fmt.Sprintf("data at %d", *p.Staged)
		}
		words = append(words, strings.TrimSpace(fmt.Sprintf("%d:%s[%d,%d)%s %s", p.At, p.Pool, p.Start, p.End, p.PEs, why)))
	}
	return strings.Join(words, "; ")
}

// A line tells each place that its promise has given up, and for what.
func TestMovesInASchedule(t *testing.T) {
	down := func(from, until berth.Time, pes ...berth.PE) sim.Outage {
		return sim.Outage{Resource: berth.PoolID("s", "a"), PEs: berth.PEsOf(pes...), From: from, Until: until}
	}
	one := two(0)
	one[0].Pools = one[0].Pools[:1]
	held := berth.Rigid("h", 0, 10, 90, 4, 10)
	held.Hold = 5
	data := berth.Rigid("d", 0, 60, 400, 4, 10)
	data.StorageMB = 100
	for _, c := range []struct {
		name   string
		config engine.Config
		work   sim.Workload
		want   []string
	}{
		{
			"twice for outages",
			engine.Config{Sites: two(0)},
			sim.Workload{
				Requests: []berth.Request{berth.Rigid("r", 0, 20, 90, 4, 10)},
				Outages: slices.Values([]sim.Outage{
					down(5, 50, 1), {Resource: berth.PoolID("s", "b"), PEs: berth.PEsOf(2), From: 7, Until: 70},
				}),
			},
			[]string{"r:s[50,60)0-3 5:a[20,30)0-3 outage-1; 7:b[20,30)0-3 outage-2"},
		},
		{
			"lost",
			engine.Config{Sites: one},
			sim.Workload{Requests: []berth.Request{berth.Rigid("r", 0, 20, 40, 4, 10)}, Outages: slices.Values([]sim.Outage{down(5, 50, 1)})},
			[]string{"r:no_capacity 5:[20,30)0-3 outage-1"},
		},
		{
			"delayed",
			engine.Config{Sites: one, Overrun: engine.OverrunDelay, Extension: 2},
			sim.Workload{
				Requests: []berth.Request{berth.Rigid("r", 0, 0, 20, 3, 10), berth.Rigid("q", 0, 10, 20, 2, 10)}, Runs: []berth.Duration{13, 10},
			},
			[]string{"r:s[0,10)0-2", "q:s[14,24)0-1 10:[10,20)0-1 r; 12:[12,22)0-1 r"},
		},
		{
			"a hold that expired",
			engine.Config{Sites: one},
			sim.Workload{Requests: []berth.Request{held}},
			[]string{"h:expired 5:[10,20)0-3"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			lines := replay(t, c.config, c.work)
			for i, want := range c.want {
				if got := strings.TrimSpace(show(lines[i:i+1]) + " " + left(&lines[i])); got != want {
					t.Errorf("%s, want %s", got, want)
				}
			}
			if report := checked(t, lines, check.Against(c.config.Sites, 0)); !report.Valid() {
				t.Error(report.Violations)
			}
		})
	}
	t.Run("late data", func(t *testing.T) {
		sites := two(0)[:1]
		sites[0].Pools, sites[0].Link = sites[0].Pools[:1], berth.Link{KilobytesPerSecond: 10_000}
		m := &watch{at: []berth.Time{5}, events: []engine.Event{{Kind: engine.EventUpdateForecast, Forecast: &berth.Forecast{
			Site: "s", From: 5, Period: 10, Kilobytes: []int64{5000},
		}}}}
		data.Ready = 10
		config := engine.Config{Sites: sites, Staging: engine.StagingBefore}
		lines := replay(t, config, sim.Workload{Requests: []berth.Request{data}, Monitor: m})
		if got, want := show(lines[:1])+" "+left(&lines[0]), "d:s[105,115)0-3 5:[10,20)0-3 data at 105"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if report := checked(t, lines, check.Against(config.Sites, 0)); !report.Valid() {
			t.Error(report.Violations)
		}
	})
}

// PEs of an outage that are back before others end a line; the others have their
// own.
func TestPEsThatAreBackBeforeOthers(t *testing.T) {
	sites := two(0)
	id := berth.PoolID("s", "a")
	m := &watch{at: []berth.Time{5, 8, 9}, events: []engine.Event{
		{Kind: engine.EventDown, Resource: id, PEs: berth.PEsOf(0, 1, 3), Until: 90},
		{Kind: engine.EventUp, Resource: id, PEs: berth.PEsOf(1)},
		{Kind: engine.EventUp, Resource: id, PEs: berth.PEsOf(3)},
	}}
	lines := replay(t, engine.Config{Sites: sites}, sim.Workload{Requests: []berth.Request{berth.Rigid("r", 9, 9, 60, 2, 10)}, Monitor: m})
	var got []string
	for i := range lines[1:] {
		l := &lines[1+i]
		until := "for good"
		if l.ActualEnd != nil {
			until = fmt.Sprint(*l.ActualEnd)
		}
		if l.Arrival != 5 || l.Ready != *l.Start {
			t.Errorf("%s arrives at %d and is ready at %d; want 5 and %d", l.ID, l.Arrival, l.Ready, *l.Start)
		}
		got = append(got, fmt.Sprintf("%s %s %d from %d until %s", l.ID, l.PEs, l.NPE, *l.Start, until))
	}
	want := []string{"outage-1 1 1 from 5 until 8", "outage-1 3 1 from 5 until 9", "outage-1 0 1 from 5 until 90"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if report := checked(t, lines, check.Against(sites, 0)); !report.Valid() {
		t.Error(report.Violations)
	}
}
