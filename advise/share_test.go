package advise

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/sim"
)

// The same work without promises: what was accepted waits from when it is ready, in the order
// of arrival, with its own run time; what was refused is not there.
func TestUnpromised(t *testing.T) {
	promise := func(id string, arrival, ready berth.Time) berth.Plain {
		return berth.Plain{ID: id, Arrival: arrival, Ready: ready, Deadline: ready + 50, Duration: 10, NPE: 1}
	}
	job := func(id string, arrival berth.Time) berth.Plain {
		p := promise(id, arrival, arrival)
		queue(&p)
		return p
	}
	work := sim.Workload{
		Plain: []berth.Plain{promise("a", 0, 30), job("b", 1), promise("c", 2, 5), job("d", 30)},
		Runs:  []berth.Duration{1, 2, 3, 4},
	}
	lines := []berth.Line{{Accepted: true}, {}, {Accepted: false}, {}}
	got, order := unpromised(&work, lines)
	want := sim.Workload{Plain: []berth.Plain{job("b", 1), job("a", 30), job("d", 30)}, Runs: []berth.Duration{2, 1, 4}}
	if diff := cmp.Diff(want.Plain, got.Plain); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want.Runs, got.Runs); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{1, 0, 3}, order); diff != "" {
		t.Error(diff)
	}
	if work.Plain[0].Job || work.Plain[0].Arrival != 0 {
		t.Error("what was given has changed")
	}
}

// A larger share only adds promises, and the positions are those of the whole history.
func TestMixed(t *testing.T) {
	plain := drawn(1, 200, 10, 4, 20)
	draws := stream.New(7, "reserve")
	few, many := mixed(plain, 0, 0.2, draws), mixed(plain, 0, 0.6, draws)
	promises := 0
	for i := range few {
		if !few[i].Job {
			promises++
			if many[i] != plain[i] || few[i] != plain[i] {
				t.Errorf("request %d is another one", i)
			}
		}
	}
	if promises < 20 || promises > 60 {
		t.Errorf("%d promises of 200 with a share of 0.2", promises)
	}
	if diff := cmp.Diff(few[100:], mixed(plain[100:], 100, 0.2, draws)); diff != "" {
		t.Error(diff)
	}
}

// A job that a promise holds up waits until the promise is over; beside the same work in the
// queue it goes first. Growth is the difference, and per cent are of what it was.
func TestSharesOfAKnownSchedule(t *testing.T) {
	draws := stream.New(1, "reserve")
	// Those whose draws are below the share ask for promises, each for a time of its own; a job
	// behind one arrives shortly before that time.
	var plain []berth.Plain
	const share = 0.5
	waits, jobs := 0.0, 0.0
	for i := range 200 {
		at := berth.Time(1000 * (i + 1))
		p := berth.Plain{ID: string(rune('A'+i%26)) + string(rune('A'+i/26)), Arrival: at, Ready: at + 50, Deadline: at + 150, Duration: 100, NPE: 4}
		if draws.Float64(uint64(i)) >= share {
			jobs++
			if len(plain) > 0 && plain[i-1].Ready > plain[i-1].Arrival && draws.Float64(uint64(i-1)) < share {
				// It arrives 10 s before the promise begins, and cannot end before.
				p.Arrival = plain[i-1].Ready - 10
				waits += 110
			}
		}
		plain = append(plain, p)
	}
	a := &adviser{
		history: &History{PEs: 4, Plain: plain, Config: scheduler(t, 4)},
		options: &Options{Segments: 1, Shares: []float64{share}, Seed: 1},
	}
	values, err := a.shares(t.Context(), 0, "first-fit")
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{100, waits / jobs, 0, 110, 0}; cmp.Diff(want, values) != "" {
		t.Errorf("%v, want %v", values, want)
	}
}

func TestShareOutcome(t *testing.T) {
	table := [shareValues][]float64{
		shareAccepted: {90, 100}, shareMean: {12, 14}, shareMeanWithout: {10, 10}, shareP95: {120, 130}, shareP95Without: {100, 100},
	}
	o := shareOutcome(0.1, func(value int) []float64 { return table[value] })
	for name, e := range map[string]struct {
		got  measure.Estimate
		want float64
	}{
		"accepted": {o.Accepted, 95}, "mean": {o.Mean, 13}, "growth": {o.MeanGrowth, 3}, "p95": {o.P95, 125}, "growth of p95": {o.P95Growth, 25}, "per cent": {o.P95Percent, 25},
	} {
		if *e.got.Mean != e.want || e.got.CI95 == nil {
			t.Errorf("%s: %v, want %v", name, *e.got.Mean, e.want)
		}
	}
}

// Limits are tried with the largest share, beside what a sites file limits already, and bound what is
// promised at one time.
func TestLimitsBoundWhatIsPromised(t *testing.T) {
	a := &adviser{
		history: &History{PEs: 20, Plain: drawn(1, 400, 10, 4, 200), Config: scheduler(t, 20)},
		options: &Options{Segments: 1, Shares: []float64{0.3, 0.9}, Limits: []float64{0.2, 0.5}, Seed: 1},
	}
	if diff := cmp.Diff([]shareCase{{0.3, 0}, {0.9, 0}, {0.9, 0.2}, {0.9, 0.5}}, a.options.cases(), cmp.AllowUnexported(shareCase{})); diff != "" {
		t.Fatal(diff)
	}
	a.history.Config.Ahead = policy.Ahead{{Beyond: 1000, Share: 900}}
	if diff := cmp.Diff(policy.Ahead{{Beyond: 1000, Share: 900}, {Beyond: 1, Share: 200}}, a.limited("first-fit", 0.2).Ahead); diff != "" {
		t.Error(diff)
	}
	a.history.Config.Ahead = nil
	values, err := a.shares(t.Context(), 0, "first-fit")
	if err != nil {
		t.Fatal(err)
	}
	accepted := func(i int) float64 { return values[i*shareValues+shareAccepted] }
	if !(accepted(2) < accepted(3) && accepted(3) < accepted(1)) {
		t.Errorf("%.1f, %.1f and %.1f %% are accepted with a limit of 0.2, of 0.5 and with none; want ever more", accepted(2), accepted(3), accepted(1))
	}
	mixedWork := a.changed(0, nil)
	mixedWork.Plain = mixed(mixedWork.Plain, 0, 0.9, stream.New(1, "reserve"))
	lines, err := sim.Replay(t.Context(), a.limited("first-fit", 0.2), mixedWork, nil)
	if err != nil {
		t.Fatal(err)
	}
	most := berth.Count(0)
	for i := range lines {
		if mixedWork.Plain[i].Job || !lines[i].Accepted {
			continue
		}
		held := berth.Count(0)
		for k := range lines {
			if !mixedWork.Plain[k].Job && lines[k].Accepted && lines[k].Duration > limitBeyond && *lines[k].Start <= *lines[i].Start && *lines[k].End > *lines[i].Start {
				held += lines[k].NPE
			}
		}
		most = max(most, held)
	}
	if most > 4 || most == 0 {
		t.Errorf("%d of 20 PEs are promised at once; want 1 to 4", most)
	}
}

// The largest limit that keeps the bound, with all smaller ones.
func TestLargestLimit(t *testing.T) {
	outcome := func(limit, mean, high float64) LimitOutcome {
		return LimitOutcome{limit, ShareOutcome{Share: 0.5, P95Percent: measure.Estimate{Mean: &mean, CI95: &[2]float64{0, high}}}}
	}
	surely, likely := largestLimit([]LimitOutcome{outcome(0.1, 2, 9), outcome(0.2, 8, 30), outcome(0.3, 12, 40), outcome(0.4, 3, 8)}, 10)
	if surely == nil || likely == nil || *surely != 0.1 || *likely != 0.2 {
		t.Errorf("%v, %v", surely, likely)
	}
}
