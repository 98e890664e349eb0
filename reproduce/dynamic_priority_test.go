package reproduce

import (
	"maps"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/internal/sweep"
	"github.com/berth-hpc/berth/sim"
)

// gridAs makes data in which every claim holds.
func gridAs() gridData {
	rows := func(waiting, slope, offset, rejections, utilization, gap float64) []gridMeans {
		var means []gridMeans
		for i := range reservedShares {
			x := float64(i)
			rise := slope * (1 - 1/(x+1)) // most at the beginning
			means = append(means, gridMeans{
				waiting: around(waiting + rise), offset: around(offset - 2*x), moved: around(10*offset - 20*x),
				rejections: around(rejections * x), utilization: around(utilization - 3*x),
				important: around(waiting - gap/2), unimportant: around(waiting + gap/2), late: around(0),
			})
		}
		return means
	}
	first := gridRowsOf{
		"dpsar":    rows(7000, 400, 20, 190, 98, 3000),
		"arwp":     rows(7200, 600, 25, 200, 97.5, 0),
		"sjf":      rows(5300, 300, 24, 150, 97, 0),
		"priority": rows(7210, 600, 25, 201, 97, 6000),
	}
	d := gridData{first}
	for range gridReadings[1:] {
		d = append(d, gridRowsOf{"dpsar": first["dpsar"], "arwp": first["arwp"]})
	}
	return d
}

// swapped exchanges the data of two orders, in the readings that have both.
func (d gridData) swapped(a, b string) gridData {
	var s gridData
	for _, rows := range d {
		rows = maps.Clone(rows)
		if rows[a] != nil && rows[b] != nil {
			rows[a], rows[b] = rows[b], rows[a]
		}
		s = append(s, rows)
	}
	return s
}

func TestGridVerdictsComeFromTheData(t *testing.T) {
	d := gridAs()
	for id, verdict := range verdicts(gridClaims(d)) {
		if verdict != Held {
			t.Errorf("%s is %s", id, verdict)
		}
	}
	swapped := verdicts(gridClaims(d.swapped("dpsar", "arwp")))
	for id, verdict := range map[string]Verdict{
		"W1": NotHeld, "W2": NotHeld, "W2b": NotHeld, "W3": NotHeld, "W4": Held, "A3": NotHeld,
		"W1-4h": NotHeld, "W2-behind": NotHeld, "W3-best": NotHeld, "W4-best": Held,
	} {
		if swapped[id] != verdict {
			t.Errorf("%s is %s with DPSAR and ARWP swapped, want %s", id, swapped[id], verdict)
		}
	}
	if got := verdicts(gridClaims(d.swapped("dpsar", "sjf")))["A1"]; got != NotHeld {
		t.Errorf("A1 is %s with DPSAR and shortest first swapped", got)
	}
	if got := verdicts(gridClaims(d.swapped("priority", "sjf")))["A2"]; got != NotHeld {
		t.Errorf("A2 is %s with priority and shortest first swapped", got)
	}
}

// The other way round in the share of reserved gridlets, no claim about the
// course over it holds.
func TestGridVerdictsFollowTheShare(t *testing.T) {
	d := gridAs()
	var reversed gridData
	for _, from := range d {
		to := gridRowsOf{}
		for name, by := range from {
			by = slices.Clone(by)
			slices.Reverse(by)
			to[name] = by
		}
		reversed = append(reversed, to)
	}
	got := verdicts(gridClaims(reversed))
	for _, id := range []string{"W1", "W2", "W2b", "W3", "W4", "W1-4h", "W2-behind", "W3-best", "W4-4h"} {
		if got[id] != NotHeld {
			t.Errorf("%s is %s with the shares reversed", id, got[id])
		}
	}
}

func TestGridVerdictsBetween(t *testing.T) {
	d := gridAs()[0]
	shift := func(rows []gridMeans, of func(*gridMeans) *sample, by float64) []gridMeans {
		rows = slices.Clone(rows)
		for i := range rows {
			s := of(&rows[i])
			*s = s.minus(sample{by, by, by, by})
		}
		return rows
	}
	utilization := func(m *gridMeans) *sample { return &m.utilization }
	for _, c := range []struct {
		below float64
		want  Verdict
	}{{0.4, Held}, {1.3, Held}, {1.7, NotHeld}} { // DPSAR begins 0.5 points above
		at := maps.Clone(d)
		at["dpsar"] = shift(d["dpsar"], utilization, c.below)
		if got := judged(claimGridUtilization(at).Parts); got != c.want {
			t.Errorf("utilisation %.1f points lower: %s, want %s", c.below, got, c.want)
		}
	}
	d["priority"] = shift(d["priority"], func(m *gridMeans) *sample { return &m.waiting }, 200)
	if got := judged(claimPriorityAlone(d).Parts); got != NotHeld {
		t.Errorf("priority alone waits 200 s less: %s", got)
	}
}

// Tables 1 and 2 of the paper, bursts as its text fixes them: on 2 PEs the
// gridlets of 5, 7, 10 and 6 s that come at 0, 2, 3 and 4 end at 5, 9, 15, 15.
func TestSpaceSharedExample(t *testing.T) {
	var promised []berth.Line
	for _, at := range []berth.Time{0, 2, 3, 4} {
		promised = append(promised, berth.Line{Site: "grid", Accepted: true, Start: &at})
	}
	promised = append(promised, berth.Line{Reason: berth.NoCapacity})
	got := carriedOut(promised, []berth.Duration{5, 7, 10, 6, 99}, map[string]berth.Count{"grid": 2})
	want := []executed{{0, 5}, {2, 9}, {5, 15}, {9, 15}, {}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(executed{})); diff != "" {
		t.Error(diff)
	}
}

// carriedOut equals a clock that ticks second by second over a queue.
func TestCarriedOutEqualsATickingClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pes := rapid.IntRange(1, 3).Draw(t, "pes")
		n := rapid.IntRange(0, 12).Draw(t, "gridlets")
		var promised []berth.Line
		var runs []berth.Duration
		for range n {
			at := berth.Time(rapid.IntRange(0, 15).Draw(t, "promised"))
			promised = append(promised, berth.Line{Site: "grid", Accepted: rapid.IntRange(0, 4).Draw(t, "accepted") > 0, Start: &at})
			runs = append(runs, berth.Duration(rapid.IntRange(1, 6).Draw(t, "run")))
		}
		got := carriedOut(promised, runs, map[string]berth.Count{"grid": berth.Count(pes)})

		want := make([]executed, n)
		busy := make([]berth.Time, pes) // until then
		begun := make([]bool, n)
		for now := range berth.Time(100) {
			for promise := berth.Time(0); promise <= now; promise++ {
				for i := range promised {
					if begun[i] || !promised[i].Accepted || *promised[i].Start != promise {
						continue
					}
					if pe := slices.IndexFunc(busy, func(until berth.Time) bool { return until <= now }); pe >= 0 {
						begun[i] = true
						busy[pe] = now.Add(runs[i])
						want[i] = executed{now, busy[pe]}
					}
				}
			}
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(executed{})); diff != "" {
			t.Fatal(diff)
		}
	})
}

// The draws of one repetition are the same for every share and range of wanted
// starts, and who is reserved at a smaller share is so at a larger one.
func TestGridletsHaveCommonDraws(t *testing.T) {
	amid, behindQueue := gridRange{0, 4 * hour}, gridReadings[2].wanted
	before := gridlets(5, 0, amid)
	if len(before.requests) != 5000 || len(before.users) != 50 || len(before.reserved) != 0 {
		t.Fatalf("%d gridlets of %d users, %d reserved", len(before.requests), len(before.users), len(before.reserved))
	}
	least, most := 10, 1
	for _, u := range before.users {
		least, most = min(least, u.Priority), max(most, u.Priority)
	}
	if least != 1 || most != 10 {
		t.Errorf("priorities from %d to %d", least, most)
	}
	for _, share := range reservedShares[1:] {
		w := gridlets(5, share, amid)
		behind := gridlets(5, share, behindQueue)
		if n := len(w.reserved); n < 50*share-150 || n > 50*share+150 {
			t.Errorf("%d of 5000 reserved for %d %%", n, share)
		}
		for i := range before.reserved {
			if _, still := w.reserved[i]; !still {
				t.Errorf("gridlet %d is not reserved at %d %%, but was at less", i, share)
			}
		}
		for i := range w.requests {
			r, b := &w.requests[i], &behind.requests[i]
			if r.Parts[0].Variants[0] != before.requests[i].Parts[0].Variants[0] || r.User != before.requests[i].User ||
				w.factor[i] != before.factor[i] || w.priority[i] != before.priority[i] {
				t.Fatalf("gridlet %d differs between the shares", i)
			}
			d := r.Parts[0].Variants[0].Duration
			if d < 10 || d > 100 || w.factor[i] < 0.9 || w.factor[i] > 1.1 {
				t.Fatalf("gridlet %d has length %d, factor %v", i, d, w.factor[i])
			}
			_, reserved := w.reserved[i]
			switch window := r.Deadline.Sub(r.Ready); {
			case !reserved && (r.Ready != 0 || r.Deadline != noDeadline):
				t.Fatalf("gridlet %d, not reserved, has a window", i)
			case reserved && (r.Ready >= 4*hour || window != berth.Speed(377).Scale(d)):
				t.Fatalf("gridlet %d wants %d, window %d", i, r.Ready, window)
			case reserved && (b.Ready < 5*hour || b.Ready >= 9*hour || b.Ready-r.Ready != 5*hour):
				t.Fatalf("gridlet %d wants %d behind the queue", i, b.Ready)
			}
		}
		before = w
	}
}

// One repetition at 30 %: promised starts lie in their windows, no one is
// promised a PE that is taken, runs as estimated leave no offset, and moving
// promises out of the way leaves every gridlet at its pool.
func TestPromisesOfARepetition(t *testing.T) {
	oneGoroutine(t)
	reading := &gridReading{wanted: gridRange{0, 4 * hour}, match: "best-key"}
	w := gridlets(1, 30, reading.wanted)
	for p := range gridPolicies {
		policy := &gridPolicies[p]
		promised, err := sim.Run(t.Context(), w.config(policy, reading.match, 1), w.requests, nil)
		if err != nil {
			t.Fatal(err)
		}
		estimates := make([]berth.Duration, len(promised))
		rejected := 0
		for i := range promised {
			l := &promised[i]
			estimates[i] = l.Duration
			if !l.Accepted {
				if _, reserved := w.reserved[i]; !reserved || l.Reason != berth.NoCapacity {
					t.Fatalf("%s: gridlet %d is refused: %s", policy.name, i, l.Reason)
				}
				rejected++
				continue
			}
			if *l.Start < w.requests[i].Ready || *l.End > w.requests[i].Deadline {
				t.Fatalf("%s: gridlet %d is promised [%d,%d)", policy.name, i, *l.Start, *l.End)
			}
		}
		for i, at := range carriedOut(promised, estimates, gridSizes()) {
			if promised[i].Accepted && (at.start != *promised[i].Start || at.end != *promised[i].End) {
				t.Fatalf("%s: gridlet %d runs [%d,%d), was promised [%d,%d)", policy.name, i, at.start, at.end, *promised[i].Start, *promised[i].End)
			}
		}
		if rejected < 300 || rejected > 800 {
			t.Errorf("%s: %d rejected", policy.name, rejected)
		}
	}
	run := &gridRun{reading: reading, policy: &gridPolicies[0], share: 30, moves: true}
	o, err := w.measure(t.Context(), run, 1)
	if err != nil {
		t.Fatal(err)
	}
	if o.offset <= 0 || o.moved <= o.offset || o.utilization < 80 || o.utilization > 100 || o.important >= o.unimportant {
		t.Errorf("%+v", o)
	}
}

// What a run was worth, by hand: one gridlet waits 10 s for a PE, one is
// rejected.
func TestOutcomeOfTheGrid(t *testing.T) {
	at := func(t berth.Time) *berth.Time { return &t }
	w := &gridWorkload{
		requests: []berth.Request{{}, {Ready: 100}, {Ready: 50}, {}},
		priority: []int{9, 2, 5, 1},
		reserved: map[int]struct{}{1: {}, 2: {}},
	}
	promised := []berth.Line{
		{Accepted: true, Start: at(0)}, {Accepted: true, Start: at(105)}, {Reason: berth.NoCapacity}, {Accepted: true, Start: at(20)},
	}
	got := w.outcome(promised, []executed{{0, 40}, {105, 235}, {}, {30, 95}})
	want := gridOutcome{
		waiting: 45, offset: 10.0 / 3, rejections: 1, utilization: 100.0 / 47, important: 0, unimportant: 67.5, late: 1,
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(gridOutcome{})); diff != "" {
		t.Error(diff)
	}
}

func TestGridIsTheSameOnAnyNumberOfCores(t *testing.T) {
	if testing.Short() {
		t.Skip("left out of short runs, such as those under the race detector: it repeats a whole experiment")
	}
	cells := gridCells(&session{Options: Options{Seed: 8}, repetitions: 1})
	every := 1
	if !effort.Full() {
		every = 5 // of four shares, so that each share is among them
	}
	var some []sweep.Cell
	for i := 0; i < len(cells); i += every {
		some = append(some, cells[i])
	}
	measure := func(cores int) [][]float64 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		return measured(t, some)
	}
	if diff := cmp.Diff(measure(1), measure(4), cmp.Comparer(same)); diff != "" {
		t.Error(diff)
	}
}
