package workload

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
)

// By hand, for m = 10, K1 = 0.4, K2 = 0.3: the band is 4 to 7, and the weights
// are one over the distance from it. With K1 = 0.45 or K2 = 0.35 sizes can be
// nearer to the band than 1, and weigh more than those in it.
func TestSizeLaws(t *testing.T) {
	for _, c := range []struct {
		law     string
		k1, k2  int64
		weights []float64
	}{
		{"uniform", 400, 300, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
		{"theorem", 400, 300, []float64{1.0 / 3, 1.0 / 2, 1, 1, 1, 1, 1, 1, 1.0 / 2, 1.0 / 3}},
		{"theorem", 450, 300, []float64{1 / 3.5, 1 / 2.5, 1 / 1.5, 2, 1, 1, 1, 1, 1.0 / 2, 1.0 / 3}},
		{"theorem", 400, 350, []float64{1.0 / 3, 1.0 / 2, 1, 1, 1, 1, 2, 1 / 1.5, 1 / 2.5, 1 / 3.5}},
		{"theorem", 0, 0, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
		{"theorem", 1000, 1000, []float64{1.0 / 9, 1.0 / 8, 1.0 / 7, 1.0 / 6, 1.0 / 5, 1.0 / 4, 1.0 / 3, 1.0 / 2, 1, 1.0 / 10}},
	} {
		law, ok := SizeLawNamed(c.law)
		if !ok {
			t.Fatalf("no law %s", c.law)
		}
		total := 0.0
		for _, w := range c.weights {
			total += w
		}
		for i, share := range law.Shares(10, c.k1, c.k2) {
			if want := c.weights[i] / total; math.Abs(share-want) > 1e-12 {
				t.Errorf("%s, K1 %d, K2 %d: size %d has %v, want %v", c.law, c.k1, c.k2, i+1, share, want)
			}
		}
	}
	if _, ok := SizeLawNamed("normal"); ok {
		t.Error("a law that is not there")
	}
}

func theoremWorkload() Waiting {
	law, _ := SizeLawNamed("theorem")
	return Waiting{Sizes: law, MaxNPE: 10, K1: 400, K2: 300, Gap: 50, Duration: 300, Limit: 600, Seed: 4}
}

func TestWaitingHasItsMeans(t *testing.T) {
	w := theoremWorkload()
	const n = 40000
	requests, err := w.Requests(n)
	if err != nil {
		t.Fatal(err)
	}
	var npe, duration, limit float64
	var products [4]float64 // of what must not be correlated
	counts := make([]float64, 10)
	for i := range requests {
		r := &requests[i]
		v := r.Parts[0].Variants[0]
		if r.Ready != r.Arrival || (i > 0 && r.Arrival < requests[i-1].Arrival) || v.NPE < 1 || v.NPE > 10 {
			t.Fatalf("request %+v", r)
		}
		counts[v.NPE-1]++
		npe += float64(v.NPE)
		duration += float64(v.Duration)
		wait := float64(r.Deadline.Sub(r.Ready) - v.Duration)
		limit += wait
		gap := 0.0
		if i > 0 {
			gap = float64(r.Arrival - requests[i-1].Arrival)
		}
		products[0] += float64(v.NPE) * float64(v.Duration) / n
		products[1] += float64(v.Duration) * wait / n
		products[2] += wait * gap / n
		products[3] += gap * float64(v.NPE) / n
	}
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"gap", float64(requests[n-1].Arrival) / n, 50},
		{"size", npe / n, w.MeanNPE()},
		{"duration", duration / n, 300.5}, // rounded up
		{"limit", limit / n, 599.5},       // rounded down
		{"size times duration", products[0], w.MeanNPE() * 300.5},
		{"duration times limit", products[1], 300.5 * 599.5},
		{"limit times gap", products[2], 599.5 * 50},
		{"gap times size", products[3], 50 * w.MeanNPE()},
	} {
		if math.Abs(c.got-c.want) > 0.02*c.want {
			t.Errorf("mean %s %.2f, want %.2f", c.what, c.got, c.want)
		}
	}
	for i, share := range w.Sizes.Shares(10, 400, 300) {
		if math.Abs(counts[i]/n-share) > 0.01 {
			t.Errorf("%.3f of the requests have size %d, want %.3f", counts[i]/n, i+1, share)
		}
	}
}

// The first requests do not depend on how many there are, and each
// distribution has draws of its own.
func TestWaitingStreamsAreApart(t *testing.T) {
	generate := func(change func(*Waiting), n int) []berth.Request {
		w := theoremWorkload()
		change(&w)
		requests, err := w.Requests(n)
		if err != nil {
			t.Fatal(err)
		}
		return requests
	}
	base := generate(func(*Waiting) {}, 200)
	if len(generate(func(*Waiting) {}, -1)) != 0 {
		t.Error("less than no requests")
	}
	opaque := cmp.Comparer(func(a, b berth.PESet) bool { return a.Count() == b.Count() })
	if diff := cmp.Diff(base[:50], generate(func(*Waiting) {}, 50), opaque); diff != "" {
		t.Error(diff)
	}
	uniform, _ := SizeLawNamed("uniform")
	for name, c := range map[string]struct {
		change func(*Waiting)
		same   func(a, b *berth.Request) bool
	}{
		"sizes": {func(w *Waiting) { w.Sizes = uniform }, func(a, b *berth.Request) bool {
			return a.Arrival == b.Arrival && a.Deadline == b.Deadline && a.Parts[0].Variants[0].Duration == b.Parts[0].Variants[0].Duration
		}},
		"limits": {func(w *Waiting) { w.Limit = 0 }, func(a, b *berth.Request) bool {
			v := b.Parts[0].Variants[0]
			return a.Arrival == b.Arrival && a.Parts[0].Variants[0] == v && b.Deadline == b.Arrival.Add(v.Duration)
		}},
		"durations": {func(w *Waiting) { w.Fixed = true }, func(a, b *berth.Request) bool {
			v := b.Parts[0].Variants[0]
			return a.Arrival == b.Arrival && a.Parts[0].Variants[0].NPE == v.NPE && v.Duration == 300
		}},
		"gaps": {func(w *Waiting) { w.Gap = 5 }, func(a, b *berth.Request) bool {
			return a.Parts[0].Variants[0] == b.Parts[0].Variants[0] && a.Deadline.Sub(a.Arrival) == b.Deadline.Sub(b.Arrival)
		}},
	} {
		changed := generate(c.change, 200)
		for i := range base {
			if !c.same(&base[i], &changed[i]) {
				t.Errorf("%s: request %d changes otherwise too", name, i+1)
				break
			}
		}
	}
	if cmp.Equal(base, generate(func(w *Waiting) { w.Seed = 5 }, 200), opaque) {
		t.Error("the seed does not matter")
	}
}

func TestWaitingRefusesNonsense(t *testing.T) {
	for field, change := range map[string]func(*Waiting){
		"sizes":    func(w *Waiting) { w.Sizes = SizeLaw{} },
		"npe":      func(w *Waiting) { w.MaxNPE = 0 },
		"k1":       func(w *Waiting) { w.K1 = 1001 },
		"k2":       func(w *Waiting) { w.K2 = -1 },
		"gap":      func(w *Waiting) { w.Gap = 0 },
		"duration": func(w *Waiting) { w.Duration = math.NaN() },
		"limit":    func(w *Waiting) { w.Limit = math.Inf(1) },
		"arrival":  func(w *Waiting) { w.Gap = 1e300 },
	} {
		w := theoremWorkload()
		change(&w)
		_, err := w.Requests(3)
		if e, ok := errors.AsType[*berth.Error](err); !ok || e.Field != field || e.Code != berth.Invalid {
			t.Errorf("%s: error %v", field, err)
		}
	}
}

// Shares that a rounded sum leaves below 1 still give a size.
func TestSizeAtTheEdges(t *testing.T) {
	shares := []float64{0.25, 0.5, 0.25 - 1e-9}
	for u, want := range map[float64]berth.Count{0: 1, 0.2499: 1, 0.25: 2, 0.7499: 2, 0.75: 3, 1 - 1e-12: 3} {
		if got := sizeAt(shares, u); got != want {
			t.Errorf("%v gives size %d, want %d", u, got, want)
		}
	}
}
