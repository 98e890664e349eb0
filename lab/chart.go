package lab

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/berth-hpc/berth/internal/chart"
	"github.com/berth-hpc/berth/measure"
)

// Drawing is a figure over one dimension, drawn and as numbers.
type Drawing struct {
	Name    string // of its files
	Title   string
	Caption string
	chart   chart.Chart
	rows    [][]string // series, x, and the estimate
}

const (
	// maxLines is how many series a drawing can show and still be read.
	maxLines = 8
	// maxLabels is how much text fits below the horizontal axis.
	maxLabels = 96
)

// Drawings returns, for each main figure, a drawing over each dimension of
// numbers, or over the longest one of words if there is none of numbers, and the
// same of the difference to the baseline. Where there are too many lines for one
// drawing there are several.
func (r *Results) Drawings() []Drawing {
	var all []Drawing
	taken := map[string]bool{}
	for _, f := range r.Present() {
		if !figures[f].Main {
			continue
		}
		for _, axis := range r.Plan.axes() {
			lines, pages := r.Plan.split(axis)
			for _, page := range r.Plan.combinations(pages) {
				for _, change := range []bool{false, true} {
					v := &view{results: r, figure: &figures[f], place: f, axis: axis, lines: lines, page: page, change: change}
					d, some := v.draw()
					if !some {
						continue
					}
					for base, n := d.Name, 2; taken[d.Name]; n++ {
						d.Name = fmt.Sprintf("%s-%d", base, n)
					}
					taken[d.Name] = true
					all = append(all, d)
				}
			}
		}
	}
	return all
}

// axes returns the dimensions over which is drawn.
func (p *Plan) axes() []int {
	var numbers []int
	longest := 0
	for i := range p.Dimensions {
		d := &p.Dimensions[i]
		if d.Numbers != nil && len(d.Values) > 1 {
			numbers = append(numbers, i)
		}
		if len(d.Values) > len(p.Dimensions[longest].Values) {
			longest = i
		}
	}
	if numbers == nil {
		return []int{longest}
	}
	return numbers
}

// split divides the dimensions other than the axis into those that tell the
// lines of a drawing apart, and those that have a drawing for each combination.
func (p *Plan) split(axis int) (lines, pages []int) {
	many := 1
	for i := range p.Dimensions {
		if n := len(p.Dimensions[i].Values); i != axis && n > 1 {
			many *= n
			lines = append(lines, i)
		}
	}
	if many <= maxLines {
		return lines, nil
	}
	first := max(0, slices.IndexFunc(lines, func(i int) bool { return p.Dimensions[i].Numbers == nil }))
	return lines[first : first+1], slices.Delete(slices.Clone(lines), first, first+1)
}

// combinations returns every combination of some dimensions: points in which
// the others are 0.
func (p *Plan) combinations(dimensions []int) []Point {
	all := []Point{make(Point, len(p.Dimensions))}
	for _, i := range dimensions {
		var longer []Point
		for _, point := range all {
			for k := range p.Dimensions[i].Values {
				with := slices.Clone(point)
				with[i] = k
				longer = append(longer, with)
			}
		}
		all = longer
	}
	return all
}

// name names what a point has of some dimensions.
func (p *Plan) name(point Point, dimensions []int) string {
	var words []string
	for _, i := range dimensions {
		d := &p.Dimensions[i]
		word := d.Values[point[i]]
		if d.Numbers != nil || word == "true" || word == "false" {
			word = d.Name + " " + word
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

// view is what one drawing is of.
type view struct {
	results *Results
	figure  *Figure
	place   int // of the figure
	axis    int
	lines   []int // dimensions that tell the lines apart
	page    Point // what all lines have of the other dimensions
	change  bool  // against the baseline
}

// draw returns the drawing; some is false if there is nothing to see.
func (v *view) draw() (d Drawing, some bool) {
	plan := v.results.Plan
	axis := &plan.Dimensions[v.axis]
	d.Title = v.figure.Title + " over " + axis.Name
	d.Name = v.figure.Name + "-over-" + axis.Name
	if page := plan.name(v.page, v.pages()); page != "" {
		d.Title += ", " + page
		d.Name += "-" + fileName(page)
	}
	if v.change {
		d.Title = "change of " + d.Title + ", against " + plan.Against()
		d.Name += "-change"
	}
	scale, unit := v.scale()
	d.Title = strings.ToUpper(d.Title[:1]) + d.Title[1:]
	d.chart = chart.Chart{Title: d.Title, X: axis.Name, Y: unit, Zero: v.change, Ticks: v.ticks(&d), Within: v.within()}
	lines, looks := v.shown()
	if v.change && len(lines) == 1 && len(v.lines) > 0 {
		d.Title = strings.Replace(d.Title, ", against", ": "+plan.name(lines[0], v.lines)+" against", 1) // there is no legend of one
		d.chart.Title = d.Title
	}
	for i, line := range lines {
		series := chart.Series{Name: plan.name(line, v.lines), Line: axis.Numbers != nil, Band: true, Look: looks[i]}
		for k := range axis.Values {
			e, n := v.estimate(line, k)
			if e.Mean == nil {
				continue
			}
			some = true
			d.rows = append(d.rows, append([]string{series.Name, axis.Values[k]}, numbers(e, n)...))
			point := chart.Point{X: v.x(k), Y: *e.Mean * scale}
			if e.CI95 != nil {
				low, high := e.CI95[0]*scale, e.CI95[1]*scale
				point.Low, point.High = &low, &high
			}
			series.Points = append(series.Points, point)
		}
		slices.SortStableFunc(series.Points, func(a, b chart.Point) int {
			if a.X < b.X {
				return -1
			}
			return map[bool]int{true: 1}[a.X > b.X]
		})
		d.chart.Series = append(d.chart.Series, series)
	}
	d.Caption += v.caption()
	return d, some
}

// pages returns the dimensions that are neither the axis nor tell lines apart
// and have more than one value.
func (v *view) pages() []int {
	var list []int
	for i := range v.results.Plan.Dimensions {
		if i != v.axis && !slices.Contains(v.lines, i) && len(v.results.Plan.Dimensions[i].Values) > 1 {
			list = append(list, i)
		}
	}
	return list
}

// shown returns a point for each line, without those that are only baselines
// where changes are shown, and the look of each, which is the same in both.
func (v *view) shown() (lines []Point, looks []int) {
	for i, line := range v.results.Plan.combinations(v.lines) {
		for k := range line {
			if !slices.Contains(v.lines, k) {
				line[k] = v.page[k]
			}
		}
		for k := range v.results.Plan.Dimensions[v.axis].Values {
			if e, _ := v.estimate(line, k); e.Mean != nil {
				lines, looks = append(lines, line), append(looks, i+1)
				break
			}
		}
	}
	return lines, looks
}

func (v *view) estimate(line Point, k int) (measure.Estimate, int) {
	point := slices.Clone(line)
	point[v.axis] = k
	if v.change {
		return v.results.Difference(point, v.place)
	}
	return v.results.Estimate(point, v.place)
}

// x is where value k stands.
func (v *view) x(k int) float64 {
	if axis := &v.results.Plan.Dimensions[v.axis]; axis.Numbers != nil {
		return axis.Numbers[k]
	}
	return float64(k)
}

// ticks marks the values; words that are too long for the axis stand in the
// caption.
func (v *view) ticks(d *Drawing) []chart.Tick {
	axis := &v.results.Plan.Dimensions[v.axis]
	long := len(strings.Join(axis.Values, "")) > maxLabels
	var ticks []chart.Tick
	for k, value := range axis.Values {
		if axis.Numbers != nil {
			ticks = append(ticks, chart.Tick{At: axis.Numbers[k], Label: value})
			continue
		}
		if long {
			d.Caption += fmt.Sprintf("%d: %s. ", k+1, value)
			value = fmt.Sprint(k + 1)
		}
		ticks = append(ticks, chart.Tick{At: float64(k), Label: value})
	}
	if axis.Numbers != nil && crowded(ticks) {
		return nil // round numbers
	}
	return ticks
}

// crowded reports whether marks would cover one another.
func crowded(ticks []chart.Tick) bool {
	at := make([]float64, len(ticks))
	for i := range ticks {
		at[i] = ticks[i].At
	}
	slices.Sort(at)
	for i := 1; i < len(at); i++ {
		if at[i]-at[i-1] < (at[len(at)-1]-at[0])/25 {
			return true
		}
	}
	return false
}

// scale returns what a value is multiplied by to be drawn, and what it counts
// then.
func (v *view) scale() (float64, string) {
	switch v.figure.Unit {
	case Share:
		if v.change {
			return 100, "percentage points"
		}
		return 100, v.figure.Title + ", %"
	case Seconds:
		largest, title := 0.0, v.figure.Title+", "
		if v.change {
			title = "" // it says so above
		}
		for _, point := range v.results.Plan.Points() {
			e, _ := v.estimate(point, point[v.axis])
			if e.Mean != nil {
				largest = max(largest, *e.Mean, -*e.Mean)
			}
		}
		switch {
		case largest >= 2*3600:
			return 1.0 / 3600, title + "hours"
		case largest >= 120:
			return 1.0 / 60, title + "minutes"
		}
		return 1, title + "seconds"
	}
	return 1, v.figure.Title
}

// within is what the values that are drawn can be.
func (v *view) within() *chart.Range {
	switch {
	case v.change:
		return nil
	case v.figure.Unit == Share:
		return &chart.Range{Least: 0, Most: 100}
	}
	return &chart.Range{Least: 0, Most: math.Inf(1)}
}

func (v *view) caption() string {
	var text string
	switch v.figure.Better {
	case 1:
		text = "Higher is better. "
	case -1:
		text = "Lower is better. "
	}
	switch n := v.results.Plan.Replications; {
	case n == 1:
		return text + "One replication: without intervals."
	case v.results.Plan.Dimensions[v.axis].Numbers != nil:
		return text + fmt.Sprintf("The bands are 95 %% intervals over %d replications.", n)
	default:
		return text + fmt.Sprintf("The bars are 95 %% intervals over %d replications.", n)
	}
}

// fileName makes words fit for a file's name.
func fileName(words string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_':
			return r
		}
		return '-'
	}, strings.ReplaceAll(words, ", ", "-"))
}
