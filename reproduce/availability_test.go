package reproduce

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/realdata"
)

// rectAs makes data in which every claim holds.
func rectAs() *rectData {
	d := &rectData{points: map[rectSetting]*rectPoint{}, log: true}
	acceptance := map[int]float64{rectPEW: 8, rectDuB: 7.5, rectArB: 4, rectArW: 4.2, rectFF: 0, rectPEB: -0.6, rectDuW: -0.7}
	slowdown := map[int]float64{rectFF: 1, rectPEB: 1.2, rectDuW: 1.201, rectPEW: 1.4, rectDuB: 1.401, rectArB: 1.3, rectArW: 1.36}
	steady := map[int]bool{rectPEW: true, rectDuB: true, rectArB: true}
	fine := func(x float64) sample { return sample{x - 0.001, x, x + 0.001, x} }
	for _, setting := range rectSettings(true) {
		p := &rectPoint{}
		p.bound[accepts], p.bound[works] = fine(150), fine(99)
		for v := range rectVariants {
			figures := make([][rectKept]sample, len(rectPlacements))
			for i := range figures {
				k := setting.k - 3
				accepted := 80 + acceptance[i] - 4*(setting.umed-7) - 5*(setting.arrivals-1) + 1.1*k
				if i == rectPEW {
					accepted += 0.1 * k
				}
				if setting.k == 4 && !steady[i] {
					accepted -= 2
				}
				lost := acceptance[i]
				if v == earlyUnbounded && (i == rectDuB || i == rectArB) {
					accepted -= lost
				}
				if v == lateCapped {
					accepted += 0.5
					lost -= 0.5
					if rectWorkloads[setting.workload].name == "odd" {
						accepted += 3
						lost -= 3
					}
				}
				figures[i] = [rectKept]sample{
					fine(accepted), fine(slowdown[i] + 0.05*(setting.umed-7) + 0.05*setting.arrivals + 0.05*k), fine(60 - lost),
				}
			}
			p.figures = append(p.figures, figures)
		}
		d.points[setting] = p
	}
	return d
}

// swapped exchanges the data of two policies everywhere.
func (d *rectData) swapped(p, q int) *rectData {
	s := &rectData{points: map[rectSetting]*rectPoint{}, log: d.log}
	for setting, point := range d.points {
		other := &rectPoint{bound: point.bound}
		for _, figures := range point.figures {
			figures = append([][rectKept]sample(nil), figures...)
			figures[p], figures[q] = figures[q], figures[p]
			other.figures = append(other.figures, figures)
		}
		s.points[setting] = other
	}
	return s
}

// flipped returns the ids of the claims that hold in one and not in the other.
func flipped(a, b []Claim) string {
	before, after := verdicts(a), verdicts(b)
	var ids []string
	for i := range a {
		if id := a[i].ID; before[id] == Held && after[id] == NotHeld {
			ids = append(ids, id)
		}
	}
	return strings.Join(ids, " ")
}

// A verdict is computed from the data: with the data of two policies exchanged,
// what the paper says of either no longer holds.
func TestRectVerdictsComeFromTheData(t *testing.T) {
	d := rectAs()
	claims := rectClaims(d)
	for i := range claims {
		c := &claims[i]
		if got := judged(c.Parts); got != Held {
			c.Verdict = got
			t.Errorf("%s is %s: %+v", c.ID, got, c.Deciding())
		}
	}
	for _, c := range []struct {
		p, q int
		want string
	}{
		{rectFF, rectPEW, "S2 S3 S4 S4b S5 S7 S7b S7c S9b S9d S9e S10 S2-log S3-log S4-log S4b-log S5-log S7b-log S7c-log S9b-log S9d-log S9e-log S10-log S2-log6 S3-log6 S4-log6 S4b-log6 S5-log6 S7b-log6 S7c-log6 S9b-log6 S9d-log6 S9e-log6 S10-log6 B1 B3"},
		{rectDuB, rectDuW, "S2 S3 S4 S7 S7b S7c S9b S2-log S3-log S4-log S7b-log S7c-log S9b-log S2-log6 S3-log6 S4-log6 S7b-log6 S7c-log6 S9b-log6 B1 B3"},
		{rectArB, rectPEB, "S3 S4 S7 S7b S7c S9b S3-log S4-log S7b-log S7c-log S9b-log S3-log6 S4-log6 S7b-log6 S7c-log6 S9b-log6 B3"},
	} {
		if got := flipped(claims, rectClaims(d.swapped(c.p, c.q))); got != c.want {
			t.Errorf("%s and %s swapped: not held are %q, want %q", rectPlacements[c.p].Name, rectPlacements[c.q].Name, got, c.want)
		}
	}
	if got := flipped(claims, rectClaims(d.swapped(rectPEW, rectPEB).swapped(rectDuB, rectDuW).swapped(rectArB, rectArW))); !strings.Contains(got, " S9c ") {
		t.Errorf("the steady ones and three of the others swapped: not held are %q", got)
	}
	alike := &rectData{points: map[rectSetting]*rectPoint{}, log: true}
	for setting, point := range d.points {
		same := &rectPoint{bound: point.bound}
		for _, figures := range point.figures {
			figures = append([][rectKept]sample(nil), figures...)
			figures[rectPEW] = figures[rectPEB]
			same.figures = append(same.figures, figures)
		}
		alike.points[setting] = same
	}
	if got := flipped(claims, rectClaims(alike)); !strings.Contains(got, " S4b ") {
		t.Errorf("PE_W as PE_B: not held are %q", got)
	}
}

// Turned round along every axis, and with the variants exchanged, the claims
// about them no longer hold; a bound that is exceeded is told.
func TestRectVerdictsFollowTheAxes(t *testing.T) {
	d := rectAs()
	claims := rectClaims(d)
	turned := &rectData{points: map[rectSetting]*rectPoint{}, log: true}
	for s, point := range d.points {
		turned.points[rectSetting{s.workload, 14 - s.umed, 2 - s.arrivals, 6 - s.k}] = point
	}
	want := "S1 S6 S8 S9 S9e S10 S6-log S8-log S9-log S9e-log S10-log S6-log6 S8-log6 S9-log6 S9e-log6 S10-log6"
	if got := flipped(claims, rectClaims(turned)); got != want {
		t.Errorf("turned round: not held are %q, want %q", got, want)
	}
	exchanged := func(a, b int) *rectData {
		s := &rectData{points: map[rectSetting]*rectPoint{}, log: true}
		for setting, point := range d.points {
			figures := append([][][rectKept]sample(nil), point.figures...)
			figures[a], figures[b] = figures[b], figures[a]
			s.points[setting] = &rectPoint{figures, point.bound}
		}
		return s
	}
	if got := flipped(claims, rectClaims(exchanged(earlyCapped, lateCapped))); !strings.HasSuffix(got, "B2") {
		t.Errorf("early and late exchanged: not held are %q", got)
	}
	if got := flipped(claims, rectClaims(exchanged(earlyCapped, earlyUnbounded))); !strings.HasSuffix(got, "B3") {
		t.Errorf("horizons exchanged: not held are %q", got)
	}
	for _, point := range d.points {
		point.bound[works] = sample{99, 99, 50, 99}
		break
	}
	if got := flipped(claims, rectClaims(d)); got != "B4" {
		t.Errorf("beyond the bound: not held are %q", got)
	}
}

// Without the log nothing is claimed about it, and it says why.
func TestRectWithoutTheLog(t *testing.T) {
	d := rectAs()
	d.log = false
	n := 0
	for _, c := range rectClaims(d) {
		if strings.Contains(c.ID, "-log") {
			n++
			if judged(c.Parts) != NotTestable || !strings.Contains(c.Ours, "LANL-CM5-1994-4.1-cln.swf.gz") {
				t.Errorf("%s: %s, %q", c.ID, judged(c.Parts), c.Ours)
			}
		}
	}
	if n != 30 {
		t.Errorf("%d claims about the log, want 30", n)
	}
	for _, f := range rectFigures(d) {
		if strings.Contains(f.Name, "-log") {
			t.Errorf("a figure %s", f.Name)
		}
	}
}

// The bound, by hand: two requests of 10 PEs for 1800 s each in a window of 1800
// s on 15 PEs: 15/20 of the work, one and a half requests.
func TestBoundByHand(t *testing.T) {
	ask := func(ready, deadline berth.Time, npe berth.Count, d berth.Duration) berth.Request {
		return berth.Rigid("", 0, ready, deadline, npe, d)
	}
	for _, c := range []struct {
		name     string
		requests []berth.Request
		want     bound
	}{
		{"two in one slot", []berth.Request{ask(0, 1800, 10, 1800), ask(0, 1800, 10, 1800)}, bound{75, 75}},
		{"small ones first", []berth.Request{ask(0, 1800, 15, 1800), ask(0, 1800, 5, 1800)}, bound{100 * (1 + 10.0/15) / 2, 75}},
		{"room beside", []berth.Request{ask(0, 3600, 10, 1800), ask(0, 1800, 10, 1800)}, bound{100, 100}},
		// The first, smallest, sits in slot 0, and must move for the second.
		{"moved", []berth.Request{ask(0, 3600, 15, 1790), ask(0, 1800, 15, 1800)}, bound{100, 100}},
		{"moved twice", []berth.Request{ask(0, 3600, 15, 1780), ask(0, 5400, 15, 1790), ask(0, 1800, 15, 1800)}, bound{100, 100}},
		// The second has less work and needs its 2 PEs throughout: 13 are left.
		{"not wider than it asks", []berth.Request{ask(0, 1800, 14, 1800), ask(0, 2700, 2, 2700)}, bound{100 * (1 + 13.0/14) / 2, 100 * (13*1800 + 2*2700) / (14*1800 + 2*2700.0)}},
	} {
		got := boundOf(c.requests, 15)
		if math.Abs(got.acceptance-c.want.acceptance) > 1e-9 || math.Abs(got.work-c.want.work) > 1e-9 {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if b := boundOf(nil, 15); !math.IsNaN(b.acceptance) {
		t.Errorf("of nothing: %v", b)
	}
}

// The amount of work is a maximum flow: no cut of the network is smaller, and
// none may be smaller than what a policy does. All subsets of a few slots are the
// plain oracle.
func TestBoundIsTheLeastCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		n := rapid.IntRange(1, 9).Draw(t, "n")
		pes := berth.Count(rapid.IntRange(1, 12).Draw(t, "pes"))
		var requests []berth.Request
		for i := range n {
			ready, d := berth.Time(rng.IntN(7*1800)), berth.Duration(60+rng.IntN(5000))
			requests = append(requests, berth.Rigid(fmt.Sprint(i), 0, ready, ready.Add(d)+berth.Time(rng.IntN(4000)), 1+berth.Count(rng.IntN(int(pes))), d))
		}
		f := newSlots(requests, pes)
		// Of a set of slots on the far side of the cut, each request gives its
		// work or its room in the others, whichever is less.
		least, asked := int64(math.MaxInt64), int64(0)
		for set := range 1 << len(f.free) {
			var cut int64
			for s, free := range f.free {
				if set>>s&1 == 0 {
					cut += free
				}
			}
			for i := range f.jobs {
				j := &f.jobs[i]
				var in int64
				for k, room := range j.room {
					if set>>(j.first+k)&1 == 1 {
						in += room
					}
				}
				cut += min(j.work, in)
			}
			least = min(least, cut)
		}
		for i := range f.jobs {
			asked += f.jobs[i].work
		}
		got := boundOf(requests, pes)
		if want := 100 * float64(least) / float64(asked); math.Abs(got.work-want) > 1e-9 {
			t.Fatalf("work %v, the least cut allows %v", got.work, want)
		}
	})
}

func TestNearestRun(t *testing.T) {
	for d, want := range map[berth.Duration]berth.Duration{1: 60, 134: 60, 135: 300, 519: 300, 520: 900, 1272: 900, 1273: 1800, 2545: 1800, 2546: 3600, 6235: 3600, 6236: 10800, 1 << 30: 10800} {
		if got := nearestRun(d); got != want {
			t.Errorf("%d becomes %d, want %d", d, got, want)
		}
	}
}

func TestOddSize(t *testing.T) {
	for _, c := range []struct {
		n    berth.Count
		u    float64
		want berth.Count
	}{{32, 0, 24}, {32, 0.5, 32}, {32, 0.999999, 40}, {1024, 0.999999, 1024}, {1024, 0, 768}} {
		if got := oddSize(c.n, c.u); got != c.want {
			t.Errorf("%d with %v becomes %d, want %d", c.n, c.u, got, c.want)
		}
	}
}

func TestDetermination(t *testing.T) {
	for _, c := range []struct {
		ys   []float64
		want float64
	}{{[]float64{1, 2, 3}, 1}, {[]float64{0, 1, 0}, 0}, {[]float64{5, 5, 5}, 1}, {[]float64{0, 0, 3}, 0.75}} {
		if got := determination([]float64{1, 2, 3}, c.ys); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: %v, want %v", c.ys, got, c.want)
		}
	}
}

// The mean curve is judged, not the curve of each repetition: noise that differs from one to
// the next does not bend it.
func TestStraightnessIsThatOfTheMeanCurve(t *testing.T) {
	noisy := []sample{{1, 3}, {4, 2}, {3, 5}, {6, 4}, {5, 7}} // 2 3 4 5 6
	one := determination(rectAxes[byFlexibility].values, []float64{1, 4, 3, 6, 5})
	other := determination(rectAxes[byFlexibility].values, []float64{3, 2, 5, 4, 7})
	got := straightness(noisy)
	if e, n := got.estimate(); n != 2 || math.Abs(*e.Mean-(2-(one+other)/2)) > 1e-12 {
		t.Errorf("%v; want pseudo-values of the mean %v", got, 2-(one+other)/2)
	}
	if got := straightness([]sample{{1}, {2}, {3}, {4}, {5}}); !cmp.Equal(got, sample{1}) {
		t.Errorf("one repetition: %v", got)
	}
}

// A row of the real log can be taken again by its key alone.
func TestMeasurementOfTheLogAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("whole simulations in one goroutine")
	}
	path := realdata.File(t, "swf", cm5.file+".swf.gz")
	o := Options{Seed: 4, Repetitions: 2, Data: path[:strings.LastIndex(path, "/")]}
	p, _ := PaperNamed("availability")
	_, e, _, err := p.plan(o)
	if err != nil {
		t.Fatal(err)
	}
	const key = "log6/af=1.5/k=3/seed=5"
	for i := range e.cells {
		if e.cells[i].Key != key {
			continue
		}
		want, err := e.cells[i].Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Only(t.Context(), o, key)
		if err != nil || cmp.Diff(want, got.Values) != "" || len(got.Names) != len(want) {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
		if early, bound := got.Values[0], got.Values[len(want)-2]; !(10 < early && early <= bound && bound <= 100) {
			t.Errorf("first-fit accepts %v %%, no policy more than %v %%", early, bound)
		}
		return
	}
	t.Errorf("no measurement %s", key)
}
