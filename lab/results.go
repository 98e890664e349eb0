package lab

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth/internal/sweep"
	"github.com/berth-hpc/berth/measure"
)

// Results are the figures of the runs of a plan that were done.
type Results struct {
	Plan *Plan
	// Done counts the runs with figures, also of other shards.
	Done int

	values  [][][]float64 // by point and replication from 0; nil if not done
	measure []byte        // the file of measurements
}

func newResults(p *Plan, measured *sweep.Results) *Results {
	r := &Results{Plan: p, Done: measured.Len(), measure: measured.Bytes()}
	for _, point := range p.Points() {
		runs := make([][]float64, p.Replications)
		for k := range runs {
			if values := measured.Of(p.key(point, k+1)); len(values) == len(figures) {
				runs[k] = values
			}
		}
		r.values = append(r.values, runs)
	}
	return r
}

// Complete reports whether all runs of the plan are done.
func (r *Results) Complete() bool { return r.Done == len(r.values)*r.Plan.Replications }

// Value returns what a run measured of a figure, given by its place in Figures;
// NaN if there is none. Replications count from 1.
func (r *Results) Value(point Point, replication, figure int) float64 {
	if values := r.values[r.Plan.index(point)][replication-1]; values != nil {
		return values[figure]
	}
	return math.NaN()
}

// Estimate is a figure of a point over its replications, and how many of them
// have it.
func (r *Results) Estimate(point Point, figure int) (measure.Estimate, int) {
	return r.estimate(func(replication int) float64 { return r.Value(point, replication, figure) })
}

// Difference is what a figure of a point has more than its baseline, over the
// pairs of runs with equal draws, and how many pairs there are: none for a
// baseline itself.
func (r *Results) Difference(point Point, figure int) (measure.Estimate, int) {
	base, ok := r.Plan.base(point)
	if !ok || figures[figure].Unit == Hash {
		return measure.Estimate{}, 0
	}
	return r.estimate(func(replication int) float64 {
		return r.Value(point, replication, figure) - r.Value(base, replication, figure)
	})
}

func (r *Results) estimate(value func(replication int) float64) (measure.Estimate, int) {
	var values []float64
	for k := 1; k <= r.Plan.Replications; k++ {
		if v := value(k); !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	return measure.EstimateOf(values), len(values)
}

// Has reports whether any run has the figure.
func (r *Results) Has(figure int) bool {
	for _, runs := range r.values {
		for _, values := range runs {
			if values != nil && !math.IsNaN(values[figure]) {
				return true
			}
		}
	}
	return false
}

// Present returns the figures that any run has, by their places.
func (r *Results) Present() []int {
	var list []int
	for i := range figures {
		if r.Has(i) {
			list = append(list, i)
		}
	}
	return list
}

// Alike reports whether all replications of every point came to the same: then
// nothing was drawn, and intervals say nothing.
func (r *Results) Alike() bool {
	for _, runs := range r.values {
		for _, values := range runs[1:] {
			if !slices.EqualFunc(values, runs[0], func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }) {
				return false
			}
		}
	}
	return r.Plan.Replications > 1
}

// Verdict says what an estimate of a difference means for a figure.
type Verdict int

// The verdicts.
const (
	Open   Verdict = iota // there is no interval, or it holds 0
	Better                // the interval lies on the better side of 0
	Worse
	More // clear, of a figure without a better side
	Less
)

// Judge says what a difference of a figure means.
func (f *Figure) Judge(e measure.Estimate) Verdict {
	if e.CI95 == nil || e.CI95[0] <= 0 && e.CI95[1] >= 0 {
		return Open
	}
	more := e.CI95[0] > 0
	switch {
	case f.Better == 0 && more:
		return More
	case f.Better == 0:
		return Less
	case more == (f.Better > 0):
		return Better
	}
	return Worse
}

// WriteRuns writes one row for each run as CSV: the values of the dimensions,
// replication and seed, and every figure that any run has.
func (r *Results) WriteRuns(w io.Writer) error {
	present := r.Present()
	header := append(r.Plan.names(), "replication", "replication_seed")
	for _, f := range present {
		header = append(header, figures[f].Name)
	}
	rows := [][]string{header}
	for i, point := range r.Plan.Points() {
		for k, values := range r.values[i] {
			if values == nil {
				continue
			}
			row := r.cells(point)
			row = append(row, strconv.Itoa(k+1), strconv.FormatUint(r.Plan.Seed+uint64(k), 10))
			for _, f := range present {
				row = append(row, figures[f].exact(values[f]))
			}
			rows = append(rows, row)
		}
	}
	return writeCSV(w, rows)
}

// WriteSummary writes one row for each point and figure as CSV: the mean and its
// interval, and the difference to the baseline with its own.
func (r *Results) WriteSummary(w io.Writer) error {
	rows := [][]string{append(r.Plan.names(), "figure", "mean", "low", "high", "replications", "difference", "difference_low", "difference_high", "pairs")}
	for _, point := range r.Plan.Points() {
		for _, f := range r.Present() {
			if figures[f].Unit == Hash {
				continue
			}
			row := append(r.cells(point), figures[f].Name)
			row = append(row, numbers(r.Estimate(point, f))...)
			row = append(row, numbers(r.Difference(point, f))...)
			rows = append(rows, row)
		}
	}
	return writeCSV(w, rows)
}

// cells returns the values of a point, with room for more.
func (r *Results) cells(point Point) []string {
	row := make([]string, 0, len(point)+len(figures)+2)
	for _, v := range r.Plan.Values(point) {
		row = append(row, v.Value)
	}
	return row
}

func writeCSV(w io.Writer, rows [][]string) error {
	out := csv.NewWriter(w)
	if err := out.WriteAll(rows); err != nil {
		return fmt.Errorf("writing CSV: %w", err)
	}
	return nil
}

// exact writes a value of the figure for machines; empty for NaN.
func (f *Figure) exact(v float64) string {
	switch {
	case math.IsNaN(v):
		return ""
	case f.Unit == Hash:
		return f.Text(v)
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// numbers writes an estimate as mean, low, high and how many values it is of.
func numbers(e measure.Estimate, n int) []string { return append(e.Columns(digits), strconv.Itoa(n)) }

// digits writes an estimate with nine digits that matter: few enough that the
// last bits of a sum do not show.
func digits(x float64) string {
	text := strconv.FormatFloat(x, 'g', 9, 64)
	if text == "-0" {
		return "0"
	}
	return text
}

// Measurements returns the runs in the form in which Options.File keeps them, in
// the order of the plan: the same bytes wherever they were done.
func (r *Results) Measurements() []byte { return bytes.Clone(r.measure) }
