package advise

import (
	"cmp"
	"math"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/stream"
)

// Least is the least that would have to be different of a request for a yes, each alone; 0
// where no difference of that kind helps.
type Least struct {
	Later   berth.Duration // the deadline
	Fewer   berth.Count    // PEs
	Shorter berth.Duration // the duration
}

// LeastOf asks an engine that has just refused a request of one part and one variant what
// would have been a yes. The engine does not change. On machines whose pools have different
// speeds, Shorter is in standard seconds. Errors are of code Invalid. Cost: that of
// engine.Offers.
func LeastOf(e *engine.Engine, r *berth.Request, pools int) (Least, error) {
	var least Least
	offers, err := e.Offers(r, pools+6)
	if err != nil {
		return least, err
	}
	asked := r.Parts[0].Variants[0]
	for i := range offers {
		o := &offers[i]
		given := o.Request.Parts[0].Variants[0]
		switch o.Difference {
		case engine.OfferLater, engine.OfferOtherSite:
			if later := berth.Duration(o.Allotments[0].End - r.Deadline); least.Later == 0 || later < least.Later {
				least.Later = max(0, later)
			}
		case engine.OfferFewerPEs:
			least.Fewer = asked.NPE - given.NPE
		case engine.OfferShorter:
			least.Shorter = asked.Duration - given.Duration
		}
	}
	return least, nil
}

// draw returns which refusals are looked at: at most most of them, drawn without regard to
// anything else, by segment. refused holds positions in the history, by segment.
func draw(refused [][]int, most int, seed uint64) []map[int]bool {
	type one struct {
		at, segment int
		draw        float64
	}
	draws := stream.New(seed, "refusals")
	var all []one
	for s := range refused {
		for _, at := range refused[s] {
			all = append(all, one{at, s, draws.Float64(uint64(at))})
		}
	}
	slices.SortFunc(all, func(a, b one) int { return cmp.Or(cmp.Compare(a.draw, b.draw), cmp.Compare(a.at, b.at)) })
	drawn := make([]map[int]bool, len(refused))
	for s := range drawn {
		drawn[s] = map[int]bool{}
	}
	for _, o := range all[:min(most, len(all))] {
		drawn[o.segment][o.at] = true
	}
	return drawn
}

// asked is a refusal that was looked at, as the values of a cell: what would have helped, and
// what was asked for.
type asked struct {
	least    Least
	npe      berth.Count
	duration berth.Duration
}

const askedValues = 5

func (a *asked) values() []float64 {
	return []float64{float64(a.least.Later), float64(a.least.Fewer), float64(a.least.Shorter), float64(a.npe), float64(a.duration)}
}

// Way is one kind of least change over the refusals of the sample.
type Way struct {
	Name string `json:"name"`
	Unit string `json:"unit"` // s, or % of what was asked for
	// Possible is the part of the sample to which a change of this kind alone gives a yes.
	Possible float64 `json:"possible"`
	// The least change where it is possible: a tenth needs at most Tenth, half of them Median,
	// nine tenths NineTenths. nil where it never is.
	Tenth      *float64 `json:"tenth"`
	Median     *float64 `json:"median"`
	NineTenths *float64 `json:"nine_tenths"`
	// MedianCI95 is the interval of the median over the segments; nil if there are too few.
	MedianCI95 *[2]float64 `json:"median_ci95"`
}

// Refusals is what a no was worth.
type Refusals struct {
	Refused int   `json:"refused"` // in the whole history
	Sample  int   `json:"sample"`  // as many were looked at
	Ways    []Way `json:"ways"`
	// HourLater is the part of the sample that a deadline at most an hour later gives a yes,
	// each alone; nil of none.
	HourLater     *float64    `json:"hour_later"`
	HourLaterCI95 *[2]float64 `json:"hour_later_ci95"`
}

// ways are the kinds of least change, and what of a refusal they count; 0 is not possible.
var ways = []struct {
	name, unit string
	of         func(v []float64) float64
}{
	{"deadline later", "s", func(v []float64) float64 { return v[0] }},
	{"fewer PEs", "%", func(v []float64) float64 { return 100 * v[1] / v[3] }},
	{"shorter", "%", func(v []float64) float64 { return 100 * v[2] / v[4] }},
}

// refusalsOf sums up the sample, which is the values of refusals one after the other, by segment.
func refusalsOf(bySegment [][]float64, refused int, seed uint64) Refusals {
	r := Refusals{Refused: refused}
	for _, values := range bySegment {
		r.Sample += len(values) / askedValues
	}
	each := func(of func(v []float64) float64) [][]float64 {
		groups := make([][]float64, len(bySegment))
		for s, values := range bySegment {
			for v := range slices.Chunk(values, askedValues) {
				groups[s] = append(groups[s], of(v))
			}
		}
		return groups
	}
	for _, w := range ways {
		way := Way{Name: w.name, Unit: w.unit}
		groups := each(w.of)
		var all []float64
		for s := range groups {
			groups[s] = slices.DeleteFunc(groups[s], func(x float64) bool { return x == 0 })
			all = append(all, groups[s]...)
		}
		slices.Sort(all)
		if len(all) > 0 {
			way.Possible = float64(len(all)) / float64(r.Sample)
			q := [3]float64{quantile(all, 0.1), quantile(all, 0.5), quantile(all, 0.9)}
			way.Tenth, way.Median, way.NineTenths = &q[0], &q[1], &q[2]
			way.MedianCI95 = between(groups, seed, "median of "+w.name, func(sorted []float64) float64 { return quantile(sorted, 0.5) })
		}
		r.Ways = append(r.Ways, way)
	}
	if r.Sample == 0 {
		return r
	}
	cured := each(func(v []float64) float64 {
		if v[0] > 0 && v[0] <= hour {
			return 1
		}
		return 0
	})
	part := mean(slices.Concat(cured...))
	r.HourLater, r.HourLaterCI95 = &part, between(cured, seed, "hour later", mean)
	return r
}

func mean(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
