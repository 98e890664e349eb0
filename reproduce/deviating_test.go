package reproduce

import (
	"math"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workload"
)

// swapped returns the data with the figures of two planners exchanged.
func (d *deviatingData) swapped(a, b int) *deviatingData {
	other := *d
	other.values = make([][]float64, len(d.values))
	width := len(berth.Repairs()) * deviatingKept
	for i, v := range d.values {
		other.values[i] = append([]float64(nil), v...)
		copy(other.values[i][a*width:(a+1)*width], v[b*width:(b+1)*width])
		copy(other.values[i][b*width:(b+1)*width], v[a*width:(a+1)*width])
	}
	return &other
}

// repairsSwapped returns the data with the figures of two repairs exchanged.
func (d *deviatingData) repairsSwapped(a, b int) *deviatingData {
	other := *d
	other.values = make([][]float64, len(d.values))
	for i, v := range d.values {
		other.values[i] = append([]float64(nil), v...)
		for p := range deviatingPlanners {
			at := p * len(berth.Repairs()) * deviatingKept
			copy(other.values[i][at+a*deviatingKept:at+(a+1)*deviatingKept], v[at+b*deviatingKept:at+(b+1)*deviatingKept])
			copy(other.values[i][at+b*deviatingKept:at+(b+1)*deviatingKept], v[at+a*deviatingKept:at+(a+1)*deviatingKept])
		}
	}
	return &other
}

// Values are found where they were measured, and what could not be measured is left out.
func TestDeviatingValuesAreFound(t *testing.T) {
	scale := deviatingScale{repetitions: 2, loads: []float64{1, 1.5}}
	d := &deviatingData{scale: scale, logs: []*openLog{{}, {}}}
	names := deviatingNames()
	for log := range d.logs {
		for load := range scale.loads {
			for miss := range deviatingMisses {
				for r := range scale.repetitions {
					v := make([]float64, len(names))
					for i := range v {
						v[i] = float64(((((log*10+load)*10+miss)*10+r)*1000 + i))
					}
					if log == 1 && load == 1 {
						v[3] = math.NaN()
					}
					d.values = append(d.values, v)
				}
			}
		}
	}
	for i, name := range names {
		planner, repair, figure := i/15, berth.Repairs()[i/5%3], i%5
		if want := deviatingPlanners[planner] + " " + string(repair) + " " + deviatingFigureNames[figure]; name != want {
			t.Fatalf("value %d is %s, want %s", i, name, want)
		}
		if got := d.at(1, 0, planner, repair, 3, figure)[1]; got != float64(1031*1000+i) {
			t.Errorf("%s is %v, want %d", name, got, 1031*1000+i)
		}
	}
	// The mean of three: 20, 120 and 1020 thousands, without the one that is not known.
	if got, want := d.of(0, berth.RepairHold, 2, turnsAround)[0], float64(20_000+120_000+1_020_000)/3+3; math.Abs(got-want) > 1e-6 {
		t.Errorf("%v on average, want %v", got, want)
	}
}

// deviatingAs is data as the claims have it.
func deviatingAs() *deviatingData {
	d := &deviatingData{scale: quickDeviating, logs: []*openLog{{}}}
	for miss := range deviatingMisses {
		for r := range d.scale.repetitions {
			var v []float64
			for p := range deviatingPlanners {
				for repair := range berth.Repairs() {
					kept := 100.0
					if miss > 0 {
						kept = float64(20*repair + 30 + r - p)
					}
					met := float64(20 + r)
					switch p {
					case bySlack, byMost:
						met += 30
					case byDefault:
						met += 40
					}
					v = append(v, kept, 80, 50, 10-float64(repair)-float64(r)/10, met)
				}
			}
			d.values = append(d.values, v)
		}
	}
	return d
}

// What the claims say they find in such data, and the contrary not.
func TestDeviatingClaimsAreJudged(t *testing.T) {
	d := deviatingAs()
	for _, c := range deviatingClaims(d) {
		if v := judged(c.Parts); v != Held {
			t.Errorf("%s is %s: %s", c.ID, v, c.Ours)
		}
	}
	for id, other := range map[string]*deviatingData{"D2": d.repairsSwapped(0, 1), "D3": d.repairsSwapped(1, 2), "D4": d.swapped(byForward, byBackward), "D5": d.swapped(bySlack, byCheapest), "D6": d.swapped(byDefault, byMost)} {
		for _, c := range deviatingClaims(other) {
			if v := judged(c.Parts); c.ID == id && v != NotHeld {
				t.Errorf("%s is %s in data that is swapped", id, v)
			}
		}
	}
	sure := deviatingAs()
	sure.values[0][0] = 50
	if c := deviatingSure(sure); judged(c.Parts) == Held {
		t.Errorf("D1 is held where a deadline is missed")
	}
}

// Figures over workflows that are drawn once, with one run for repairs that do the same, are those
// of their plain form: a stream and a run for each planner and repair.
func TestDeviatingValuesEqualPlain(t *testing.T) {
	if testing.Short() {
		t.Skip("whole runs")
	}
	log := &openLog{archiveLog: &archiveLog{name: "made", pes: 24}}
	for i := range 60 {
		run := berth.Duration(100 + 7919*i%4000)
		log.records = append(log.records, workload.Record{
			Job: int64(i + 1), Submit: berth.Time(600 * i), Wait: 0, Run: run, Procs: berth.Count(1 + i*5%20), ReqProcs: berth.Count(1 + i*5%20),
			ReqTime: run + 300, Status: 1,
		})
	}
	scale := deviatingScale{repetitions: 1, jobs: 60, workflows: 6, tasks: 8}
	promised := 0.0
	for _, m := range deviatingMisses {
		got, err := deviatingValues(t.Context(), scale, log, 1, m.miss, 5, 0)
		if err != nil {
			t.Fatal(err)
		}
		jobs, runs, err := deviatingJobs(scale, log, 1, 5, 0)
		if err != nil {
			t.Fatal(err)
		}
		var want []float64
		for _, planner := range deviatingPlanners {
			for _, repair := range berth.Repairs() {
				flows, err := deviatingStream(scale, log, jobs, m.miss, 5).Flows()
				if err != nil {
					t.Fatal(err)
				}
				figures, err := deviatingRun(t.Context(), log, sim.Workload{Requests: jobs, Runs: runs, Flows: flows}, planner, repair)
				if err != nil {
					t.Fatal(err)
				}
				want = append(want, figures...)
				promised += figures[promisesMade]
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d values at %s, want %d", len(got), m.name, len(want))
		}
		for i, name := range deviatingNames() {
			if got[i] != want[i] && !(math.IsNaN(got[i]) && math.IsNaN(want[i])) {
				t.Errorf("%s at %s: %v, want %v", name, m.name, got[i], want[i])
			}
		}
	}
	if promised == 0 {
		t.Error("nothing was promised")
	}
}
