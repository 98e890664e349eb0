// Package lab compares schedulers on one's own history: it simulates every
// combination of some settings, each with the same random draws, and says with
// 95 % intervals what differs, and what would have changed against a baseline.
// What is long is measured on all cores, kept as it comes, and divided among
// machines. It reads no workload and parses no flag: the maker of the plan says
// what is simulated.
package lab

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/sim"
)

// Setting is something by its name, and what it was set to.
type Setting struct{ Name, Value string }

// Dimension is something that is varied.
type Dimension struct {
	Name   string
	Values []string
	// Numbers are what the values count, in their order; nil if they are words.
	// Figures are drawn over numbers.
	Numbers []float64
}

// Plan is what is to be compared: every combination of a value of each
// dimension, a few times.
type Plan struct {
	Title string // of the report: what is simulated, on what machine
	// Build names the program, whose next version may decide otherwise.
	Build string
	// Settings are what else decides the outcome, told apart by their names.
	// Measurements of other settings do not mix.
	Settings   []Setting
	Dimensions []Dimension
	// Replications, at least 1, have the seeds Seed, Seed+1, and so on; all
	// points have the same.
	Replications int
	Seed         uint64
	// Baseline are values of one or more dimensions. A point is compared with the
	// one that has these and its own other values. Empty compares nothing.
	Baseline []Setting
	// Case says what is simulated at a point. It is called once for each, in their
	// order, before anything is simulated; its error ends Run.
	Case func(p Point) (*Case, error)

	source string // the file it was read from
}

// Case is what is simulated at one point.
type Case struct {
	Config engine.Config
	PEs    berth.Count // of all pools together
	// Work makes the workload of a replication, from 1: always the same one, and
	// other cases with equal draws must differ in what they are about alone. It may
	// be called by several goroutines, and what it returns is only read.
	Work func(replication int) (*sim.Workload, error)
	// WorkKey is equal for cases whose workloads are the same; those are made once
	// for all of them.
	WorkKey string
}

// Point is one combination: the index of a value of each dimension.
type Point []int

// maxRuns keeps a slip of the finger from filling the memory.
const maxRuns = 1_000_000

// Validate finds mistakes in the plan. Errors are of code Invalid.
func (p *Plan) Validate() error {
	points := 1
	for i := range p.Dimensions {
		d := &p.Dimensions[i]
		if slices.ContainsFunc(p.Dimensions[:i], func(o Dimension) bool { return o.Name == d.Name }) {
			return berth.Errorf(berth.Invalid, "sweep", "%s is there twice", d.Name)
		}
		if len(d.Values) == 0 || slices.Contains(d.Values, "") {
			return berth.Errorf(berth.Invalid, "sweep", "%s: a value is empty", d.Name)
		}
		for k, v := range d.Values {
			if slices.Contains(d.Values[:k], v) {
				return berth.Errorf(berth.Invalid, "sweep", "%s: %s is there twice", d.Name, v)
			}
		}
		if d.Numbers != nil && len(d.Numbers) != len(d.Values) {
			return berth.Errorf(berth.Invalid, "sweep", "%s: %d numbers of %d values", d.Name, len(d.Numbers), len(d.Values))
		}
		if points *= len(d.Values); points > maxRuns {
			return berth.Errorf(berth.Invalid, "sweep", "more than %d combinations", maxRuns)
		}
	}
	switch {
	case points < 2:
		return berth.Errorf(berth.Invalid, "sweep", "one combination and nothing to compare it with; want at least two values")
	case p.Replications < 1:
		return berth.Errorf(berth.Invalid, "replications", "%d; want at least 1", p.Replications)
	case p.Replications > maxRuns/points:
		return berth.Errorf(berth.Invalid, "replications", "%d of %d combinations; want at most %d runs", p.Replications, points, maxRuns)
	case p.Seed > math.MaxUint64-uint64(p.Replications):
		return berth.Errorf(berth.Invalid, "seed", "%d and %d replications go beyond the largest seed", p.Seed, p.Replications)
	}
	for _, b := range p.Baseline {
		i := p.dimension(b.Name)
		if i < 0 {
			return berth.Errorf(berth.Invalid, "baseline", "%s is not swept; want a value of %s", b.Name, strings.Join(p.names(), ", "))
		}
		if values := p.Dimensions[i].Values; !slices.Contains(values, b.Value) {
			return berth.Errorf(berth.Invalid, "baseline", "%s=%s is not swept; want one of %s", b.Name, b.Value, strings.Join(values, ", "))
		}
	}
	return nil
}

func (p *Plan) dimension(name string) int {
	return slices.IndexFunc(p.Dimensions, func(d Dimension) bool { return d.Name == name })
}

func (p *Plan) names() []string {
	var names []string
	for i := range p.Dimensions {
		names = append(names, p.Dimensions[i].Name)
	}
	return names
}

// Points returns every combination; the values of the last dimension vary
// fastest.
func (p *Plan) Points() []Point {
	points := []Point{{}}
	for i := range p.Dimensions {
		var longer []Point
		for _, point := range points {
			for k := range p.Dimensions[i].Values {
				longer = append(longer, append(slices.Clone(point), k))
			}
		}
		points = longer
	}
	return points
}

// index returns where a point is in Points.
func (p *Plan) index(point Point) int {
	at := 0
	for i, k := range point {
		at = at*len(p.Dimensions[i].Values) + k
	}
	return at
}

// Values returns what a point has of each dimension.
func (p *Plan) Values(point Point) []Setting {
	values := make([]Setting, len(point))
	for i, k := range point {
		values[i] = Setting{p.Dimensions[i].Name, p.Dimensions[i].Values[k]}
	}
	return values
}

// Label names a point among the others, such as policy=first-fit bind=early.
func (p *Plan) Label(point Point) string {
	var words []string
	for _, v := range p.Values(point) {
		words = append(words, v.Name+"="+v.Value)
	}
	return strings.Join(words, " ")
}

// key names a run in files of measurements.
func (p *Plan) key(point Point, replication int) string {
	return p.Label(point) + " seed=" + strconv.FormatUint(p.Seed+uint64(replication)-1, 10)
}

// base returns what a point is compared with; ok is false for a baseline, and
// where there is none.
func (p *Plan) base(point Point) (base Point, ok bool) {
	base = slices.Clone(point)
	for _, b := range p.Baseline {
		i := p.dimension(b.Name)
		base[i] = slices.Index(p.Dimensions[i].Values, b.Value)
	}
	return base, !slices.Equal(base, point)
}

// Against names the baseline, such as first-fit or policy=first-fit bind=early;
// empty without one.
func (p *Plan) Against() string {
	if len(p.Baseline) == 1 {
		if d := &p.Dimensions[p.dimension(p.Baseline[0].Name)]; d.Numbers == nil {
			return p.Baseline[0].Value
		}
	}
	var words []string
	for _, b := range p.Baseline {
		words = append(words, b.Name+"="+b.Value)
	}
	return strings.Join(words, " ")
}
