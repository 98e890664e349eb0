package sim_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/sim"
)

func replay(t rapid.TB, config engine.Config, w sim.Workload) []berth.Line {
	t.Helper()
	lines, err := sim.Replay(context.Background(), config, w, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// Every fifth record of a real log asks for a promise some way ahead, the
// others are ordinary jobs: the independent validator accepts the schedule of
// every pass, and no promise is moved, whatever the jobs do beside it. Some run
// longer than they were given.
func TestNoJobDelaysAPromise(t *testing.T) {
	log := openPeerLog(t, "HPC2N-2002-2.2-cln", 3000)
	lead, slack, over := stream.New(1, "lead"), stream.New(1, "slack"), stream.New(1, "overrun")
	for i := range log.workload.Requests {
		r := &log.workload.Requests[i]
		if over.Float64(uint64(i)) < 0.1 {
			log.workload.Runs[i] = r.Parts[0].Variants[0].Duration * 3 / 2
		}
		if i%5 != 0 {
			continue
		}
		v := r.Parts[0].Variants[0]
		r.Kind = berth.KindRequest
		r.Ready += berth.Time(lead.Float64(uint64(i)) * 40000)
		r.Deadline = r.Ready.Add(v.Duration) + berth.Time(slack.Float64(uint64(i))*80000)
	}
	for _, pass := range engine.JobPasses() {
		for _, binding := range []berth.Binding{berth.Early, berth.Late} {
			for _, overrun := range []engine.Overrun{engine.OverrunKill, engine.OverrunRunOn} {
				t.Run(fmt.Sprintf("%s/%s/%s", pass.Name, binding, overrun), func(t *testing.T) {
					t.Parallel()
					config := engine.Config{
						Sites: sim.OnePool(log.pes, binding), Jobs: pass.Name, Compress: true, Overrun: overrun, Extension: 600,
					}
					lines := replay(t, config, log.workload)
					accepted(t, lines, log.pes)
					kept, ran, over := 0, 0, 0
					for i := range lines {
						l := &lines[i]
						if l.PromisedStart != nil {
							t.Fatalf("%s was promised %d and starts at %d", l.ID, *l.PromisedStart, *l.Start)
						}
						switch {
						case l.Kind == berth.KindRequest && l.Accepted:
							kept++
						case l.Kind == berth.KindJob && l.Accepted && l.ActualEnd != nil:
							ran++
						}
						if l.ActualEnd != nil && *l.ActualEnd > *l.End {
							over++
						}
					}
					if kept < 300 || ran != len(lines)*4/5 || (over > 0) != (overrun == engine.OverrunRunOn) {
						t.Errorf("%d promises kept, %d of %d jobs ran, %d beyond their limit", kept, ran, len(lines)*4/5, over)
					}
				})
			}
		}
	}
}

// a is given [0,10) and runs for 25, b was promised [12,20).
func TestOverrunsInASchedule(t *testing.T) {
	w := sim.Workload{
		Requests: []berth.Request{berth.Rigid("a", 0, 0, 30, 4, 10), berth.Rigid("b", 0, 12, 40, 4, 8)},
		Runs:     []berth.Duration{25, 8},
	}
	for _, c := range []struct {
		overrun        engine.Overrun
		aEnds, bStarts berth.Time
		promised       bool
	}{
		{engine.OverrunKill, 10, 12, false},
		{engine.OverrunRunOn, 12, 12, false},
		{engine.OverrunDelay, 25, 26, true},
	} {
		config := machine(4, berth.Early, "first-fit")
		config.Overrun, config.Extension = c.overrun, 2
		lines := replay(t, config, w)
		ends := *lines[0].End
		if lines[0].ActualEnd != nil {
			ends = *lines[0].ActualEnd
		}
		if *lines[0].End != 10 || ends != c.aEnds || *lines[1].Start != c.bStarts {
			t.Errorf("%s: a ends at %d, b starts at %d", c.overrun, ends, *lines[1].Start)
		}
		if (lines[1].PromisedStart != nil) != c.promised || (c.promised && *lines[1].PromisedStart != 12) {
			t.Errorf("%s: promised start %v", c.overrun, lines[1].PromisedStart)
		}
		accepted(t, lines, 4)
	}
}

// PEs fall and rise under a real log with promises and jobs: no PE is promised
// or runs on what is down, which the validator sees from the lines of outages,
// and a promise that moved stays within its window.
func TestOutagesInASchedule(t *testing.T) {
	log := openPeerLog(t, "HPC2N-2002-2.2-cln", 3000)
	for i := 0; i < len(log.workload.Requests); i += 5 {
		r := &log.workload.Requests[i]
		r.Kind = berth.KindRequest
		r.Ready += 20000
		r.Deadline = r.Ready.Add(r.Parts[0].Variants[0].Duration) + 90000
	}
	draws := stream.New(3, "outages")
	first, last := log.workload.Requests[0].Arrival, log.workload.Requests[len(log.workload.Requests)-1].Arrival
	const outages = 60
	var down []sim.Outage
	for i := range outages {
		lo := berth.PE(draws.Float64(uint64(2*i)) * float64(log.pes-1))
		from := first + (last-first)*berth.Time(i)/outages
		o := sim.Outage{
			Resource: berth.PoolID(sim.DefaultSite, "pool"), From: from,
			PEs:   berth.NewPESet(berth.Run{Lo: lo, Hi: min(lo+60, berth.PE(log.pes))}),
			Until: from + 1000 + berth.Time(draws.Float64(uint64(2*i+1))*400000),
		}
		down = append(down, o)
	}
	log.workload.Outages = slices.Values(down)
	for _, pass := range engine.JobPasses() {
		for _, binding := range []berth.Binding{berth.Early, berth.Late} {
			t.Run(fmt.Sprintf("%s/%s", pass.Name, binding), func(t *testing.T) {
				t.Parallel()
				config := engine.Config{Sites: sim.OnePool(log.pes, binding), Jobs: pass.Name, Compress: true}
				lines := replay(t, config, log.workload)
				for _, v := range checked(t, lines, check.Options{PEs: log.pes}).Violations {
					t.Fatal(v)
				}
				failed, moved, seen := 0, 0, 0
				for i := range lines {
					l := &lines[i]
					switch {
					case l.Kind == berth.KindOutage:
						seen++
					case l.Accepted && l.ActualEnd != nil && i < len(log.workload.Runs) &&
						*l.ActualEnd < min(*l.End, l.Start.Add(log.workload.Runs[i])):
						failed++
					case l.PromisedStart != nil:
						moved++
					case l.Kind == berth.KindJob && !l.Accepted:
						t.Fatalf("job %s never ran: %+v", l.ID, l)
					}
				}
				if failed < 10 || moved < 3 || seen < outages/2 {
					t.Errorf("%d failed, %d promises moved, %d outages", failed, moved, seen)
				}
			})
		}
	}
	_, err := sim.Replay(context.Background(), machine(4, berth.Late, "first-fit"),
		sim.Workload{Outages: slices.Values([]sim.Outage{{From: 9}, {From: 3}})}, nil)
	if err == nil {
		t.Error("no error about outages out of order")
	}
}

func TestRunsMustMatchRequests(t *testing.T) {
	_, err := sim.Replay(context.Background(), machine(4, berth.Late, "first-fit"), sim.Workload{Runs: []berth.Duration{1}}, nil)
	if err == nil {
		t.Error("no error about one run of no request")
	}
}

// Jobs that yield to reservations show what they ran before as bookings, run as
// long in all as they would have, and the validator accepts the schedule.
func TestPreemptedJobsInASchedule(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		pes := berth.Count(rapid.IntRange(1, 8).Draw(r, "pes"))
		config := engine.Config{Sites: sim.OnePool(pes, rapid.SampledFrom([]berth.Binding{berth.Early, berth.Late}).Draw(r, "binding")), Preempt: true}
		config.Jobs = rapid.SampledFrom(engine.JobPasses()).Draw(r, "pass").Name
		var w sim.Workload
		now := berth.Time(0)
		for i := range rapid.IntRange(1, 30).Draw(r, "jobs") {
			now += berth.Time(rapid.IntRange(0, 6).Draw(r, "pause"))
			npe, d := berth.Count(rapid.IntRange(1, int(pes)).Draw(r, "npe")), berth.Duration(rapid.IntRange(1, 30).Draw(r, "duration"))
			request := berth.Job(fmt.Sprint(i), now, npe, d)
			if rapid.IntRange(0, 2).Draw(r, "reservation") == 0 {
				ready := now + berth.Time(rapid.IntRange(0, 20).Draw(r, "lead"))
				request = berth.Rigid(fmt.Sprint(i), now, ready, ready.Add(d)+berth.Time(rapid.IntRange(0, 9).Draw(r, "slack")), npe, d)
			}
			w.Requests = append(w.Requests, request)
			w.Runs = append(w.Runs, berth.Duration(rapid.IntRange(1, int(d)).Draw(r, "run")))
		}
		lines, err := sim.Replay(context.Background(), config, w, nil)
		if err != nil {
			r.Fatal(err)
		}
		accepted(t, lines, pes)
		ran := map[string]berth.Duration{}
		for i := range lines {
			if line := &lines[i]; line.Accepted || line.Kind == berth.KindBooking {
				end := *line.End
				if line.ActualEnd != nil {
					end = *line.ActualEnd
				}
				id, _, _ := strings.Cut(line.ID, "/")
				ran[id] += end.Sub(*line.Start)
			}
		}
		for i := range w.Requests {
			if id := w.Requests[i].ID; w.Requests[i].IsJob() && ran[id] != w.Runs[i] {
				r.Fatalf("job %s ran %d s of %d", id, ran[id], w.Runs[i])
			}
		}
	})
}
