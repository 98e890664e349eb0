// Package advise tells a centre from its own history what promises would be worth there:
// what is accepted by which placement, what more slack, other widths and other notice would
// change, what a refusal would have needed to be a yes, and what share may be promised before
// ordinary jobs suffer, under which limits. It cuts the history into segments, simulates each alone, and gives every
// figure an interval over them. It reads no files and prints nothing.
package advise

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/sweep"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/sim"
)

// History is what a centre was asked for.
type History struct {
	PEs berth.Count // of all pools together
	// Plain, sorted by arrival, with ids of their own: every request asks for a promise.
	Plain []berth.Plain
	// Runs is how long each really runs, nil if as long as it was given.
	Runs   []berth.Duration
	Config engine.Config // the sites and the scheduler; the placement is what is compared
}

// The bounds of what can be told: a segment with fewer requests, or one that ends before some
// requests could have waited for others, says nothing.
const (
	MinSegments = 2
	MinRequests = 100 // of a segment
	minLengths  = 5   // a segment lasts as many mean durations
)

// Options say what is asked.
type Options struct {
	Placements []string  // to compare, by the names of policy.Placements
	Segments   int       // at least MinSegments
	Sample     int       // refusals that are looked at, at most
	Shares     []float64 // of promises, above 0 and below 1, ascending; none measures none
	Limits     []float64 // on what may be promised of each pool at any time, above 0 and below 1, ascending; tried with the largest share
	Bound      float64   // by how much p95 of the waits may grow, in %
	Seed       uint64    // of what is drawn
	// Progress, if not nil, hears how many of the runs are done. It is called by one
	// goroutine at a time.
	Progress func(done float64, runs int)
}

// Outcome is what a placement made of the requests.
type Outcome struct {
	Name     string           `json:"name"`
	Requests measure.Estimate `json:"requests"` // accepted, %
	Work     measure.Estimate `json:"work"`     // accepted PE-seconds, %
	Wait     measure.Estimate `json:"wait"`     // of the accepted from ready to start, mean in s
}

// ChangeOutcome is what a change of a trait adds to an Outcome, in points and seconds.
type ChangeOutcome struct {
	Trait Trait `json:"trait"`
	Outcome
}

// Verdict compares the recommended placement with another one.
type Verdict string

// The verdicts.
const (
	Same   Verdict = "no difference that can be told"
	Better Verdict = "better"
	Trade  Verdict = "more of one, less of the other"
	// Behind is a verdict only where three placements beat one another in a ring.
	Behind Verdict = "worse"
)

// Comparison is what the recommended placement accepts more than another one, in points. The
// intervals are of all comparisons of the placements at once.
type Comparison struct {
	Against  string           `json:"against"`
	Requests measure.Estimate `json:"requests"`
	Work     measure.Estimate `json:"work"`
	Verdict  Verdict          `json:"verdict"`
}

// Advice is the page.
type Advice struct {
	Requests int     `json:"requests"`
	Segments int     `json:"segments"`
	Days     float64 `json:"days"` // from the first to the last arrival
	// Shortest is how long the shortest segment is, in days.
	Shortest float64 `json:"shortest_segment_days"`
	Seed     uint64  `json:"seed"`

	Placements  []Outcome       `json:"placements"`
	Recommended string          `json:"recommended"`
	Comparisons []Comparison    `json:"comparisons"`
	Changes     []ChangeOutcome `json:"changes"` // with the recommended placement, as all below
	Refusals    Refusals        `json:"refusals"`
	Shares      []ShareOutcome  `json:"shares"`
	Bound       float64         `json:"bound_percent"`
	// Surely and Likely are the largest shares that keep the bound, by the upper end of the
	// interval and by the mean; nil where the smallest that was measured does not.
	Surely *float64 `json:"largest_share_surely"`
	Likely *float64 `json:"largest_share_likely"`
	// Limits are what came of the largest share under each limit; the largest that keep the bound
	// are chosen as shares are.
	Limits      []LimitOutcome `json:"limits"`
	LimitSurely *float64       `json:"largest_limit_surely"`
	LimitLikely *float64       `json:"largest_limit_likely"`
}

// adviser is an advice under way.
type adviser struct {
	history *History
	options *Options
	widest  berth.Count // of the pools
	pools   int

	telling    sync.Mutex
	done, runs int
}

// Ask answers. Errors are of code Invalid and say what of the history or the options is too
// small, or the context's. Equal histories and options give equal advice, on any number of
// cores. Cost: that of some 5 simulations of the history for each placement, and of two for each
// share and each limit, on all cores; the memory of a few copies of a segment for each core.
func Ask(ctx context.Context, h *History, o *Options) (*Advice, error) {
	a := &adviser{history: h, options: o}
	for i := range h.Config.Sites {
		for k := range h.Config.Sites[i].Pools {
			a.widest = max(a.widest, h.Config.Sites[i].Pools[k].PEs)
			a.pools++
		}
	}
	advice := &Advice{Requests: len(h.Plain), Segments: o.Segments, Seed: o.Seed, Bound: o.Bound}
	if err := a.check(advice); err != nil {
		return nil, err
	}
	changes := Changes()
	a.runs = o.Segments * (len(o.Placements) + len(changes) + 1)
	if len(o.Shares) > 0 {
		a.runs += o.Segments
	}
	refused, err := a.placements(ctx, advice)
	if err != nil {
		return nil, err
	}
	return advice, a.rest(ctx, advice, changes, refused)
}

// check refuses what is too small, and notes how long the history is.
func (a *adviser) check(advice *Advice) error {
	h, o := a.history, a.options
	n := len(h.Plain)
	switch {
	case len(o.Placements) == 0:
		return berth.Errorf(berth.Invalid, "placements", "none; want at least one")
	case o.Segments < MinSegments:
		return berth.Errorf(berth.Invalid, "segments", "%d; an interval needs at least %d", o.Segments, MinSegments)
	case n < MinSegments*MinRequests:
		return berth.Errorf(berth.Invalid, "workload", "%d requests; want at least %d, for intervals over %d segments of %d", n, MinSegments*MinRequests, MinSegments, MinRequests)
	case n/o.Segments < MinRequests:
		return berth.Errorf(berth.Invalid, "segments", "%d of %d requests, %d in each; want at least %d in each, so at most %d segments", o.Segments, n, n/o.Segments, MinRequests, n/MinRequests)
	}
	const day = 86400
	advice.Days = float64(h.Plain[n-1].Arrival-h.Plain[0].Arrival) / day
	advice.Shortest = math.Inf(1)
	for s := range o.Segments {
		from, to := a.bounds(s)
		span, sum := float64(h.Plain[to-1].Arrival-h.Plain[from].Arrival), 0.0
		for i := from; i < to; i++ {
			sum += float64(h.Plain[i].Duration)
		}
		if length := sum / float64(to-from); span < minLengths*length {
			return berth.Errorf(berth.Invalid, "segments", "%d; number %d lasts %.0f s, which is less than %d times the mean duration of its requests, %.0f s; want fewer segments, or a longer log", o.Segments, s+1, span, minLengths, length)
		}
		advice.Shortest = min(advice.Shortest, span/day)
	}
	return nil
}

// bounds returns the part of the history that is a segment, from 0.
func (a *adviser) bounds(segment int) (from, to int) {
	n, k := len(a.history.Plain), a.options.Segments
	return n * segment / k, n * (segment + 1) / k
}

// config returns the scheduler with a placement.
func (a *adviser) config(place string) engine.Config {
	config := a.history.Config
	config.Place = place
	return config
}

// changed returns a segment with a change made, which may be nil.
func (a *adviser) changed(segment int, change *Change) sim.Workload {
	from, to := a.bounds(segment)
	work := sim.Workload{Plain: a.history.Plain[from:to]}
	if a.history.Runs != nil {
		work.Runs = a.history.Runs[from:to]
	}
	if change == nil {
		return work
	}
	work.Plain, work.Runs = slices.Clone(work.Plain), slices.Clone(work.Runs)
	var none berth.Duration
	for i := range work.Plain {
		run := &none
		if work.Runs != nil {
			run = &work.Runs[i]
		}
		change.Apply(&work.Plain[i], run, a.widest)
	}
	return work
}

// The values of a cell about acceptance.
const (
	cellRequests = iota
	cellWork
	cellWait
)

// accepted simulates and returns the values about acceptance, and what was refused by its
// position in the segment.
func (a *adviser) accepted(ctx context.Context, work *sim.Workload, place string) ([]float64, []int, error) {
	lines, err := sim.Replay(ctx, a.config(place), *work, nil)
	if err != nil {
		return nil, nil, err
	}
	m := measure.Of(lines, a.history.PEs)
	values := []float64{math.NaN(), math.NaN(), math.NaN()}
	if m.AcceptanceRate != nil {
		values[cellRequests] = 100 * *m.AcceptanceRate
	}
	if m.RequestedPESeconds > 0 {
		values[cellWork] = 100 * float64(m.AcceptedPESeconds) / float64(m.RequestedPESeconds)
	}
	if m.MeanWait != nil {
		values[cellWait] = *m.MeanWait
	}
	var refused []int
	for i := range work.Plain {
		if !lines[i].Accepted {
			refused = append(refused, i)
		}
	}
	return values, refused, nil
}

// measure takes the cells on all cores.
func (a *adviser) measure(ctx context.Context, name string, cells []sweep.Cell) (*sweep.Results, error) {
	before := a.done
	return sweep.Run(ctx, &sweep.Plan{Name: name, Cells: cells}, sweep.Options{Progress: func(done, _ int) {
		a.telling.Lock()
		defer a.telling.Unlock()
		if a.done = max(a.done, before+done); a.options.Progress != nil {
			a.options.Progress(float64(a.done), a.runs)
		}
	}})
}

func key(what string, segment int) string { return what + " segment=" + strconv.Itoa(segment) }

// column returns a value of a series of cells, by segment.
func (a *adviser) column(of *sweep.Results, what string, value int) []float64 {
	column := make([]float64, a.options.Segments)
	for s := range column {
		column[s] = of.Of(key(what, s))[value]
	}
	return column
}

func (a *adviser) outcome(of *sweep.Results, what, name string) Outcome {
	return Outcome{name, partOf(a.column(of, what, cellRequests)), partOf(a.column(of, what, cellWork)), estimate(a.column(of, what, cellWait))}
}

// first holds what the placements made of the segments.
type first struct {
	results *sweep.Results
	refused [][]int // with the recommended placement: positions in the history, by segment
}

// placements compares the placements and recommends one.
func (a *adviser) placements(ctx context.Context, advice *Advice) (*first, error) {
	o := a.options
	refused := make([][][]int, len(o.Placements))
	var cells []sweep.Cell
	for p, place := range o.Placements {
		refused[p] = make([][]int, o.Segments)
		for s := range o.Segments {
			cells = append(cells, sweep.Cell{Key: key(place, s), Run: func(ctx context.Context) ([]float64, error) {
				work := a.changed(s, nil)
				values, none, err := a.accepted(ctx, &work, place)
				from, _ := a.bounds(s)
				for i := range none {
					none[i] += from
				}
				refused[p][s] = none
				return values, err
			}})
		}
	}
	results, err := a.measure(ctx, "placements", cells)
	if err != nil {
		return nil, err
	}
	var requests, work [][]float64
	for _, place := range o.Placements {
		advice.Placements = append(advice.Placements, a.outcome(results, place, place))
		requests, work = append(requests, a.column(results, place, cellRequests)), append(work, a.column(results, place, cellWork))
	}
	best, comparisons := Recommend(o.Placements, requests, work)
	advice.Recommended, advice.Comparisons = o.Placements[best], comparisons
	return &first{results, refused[best]}, nil
}

// Recommend returns the placement to recommend, by its index, and what it accepts more than each
// of the others. requests and work are what each accepts, in %, by segment. One beats another
// if it clearly accepts more requests or more work and not clearly less of the other, where
// clearly is by intervals that hold for all pairs at once. Of those that none beats, the one
// with the highest mean of requests is taken, then of work, then the first.
func Recommend(names []string, requests, work [][]float64) (int, []Comparison) {
	pairs := len(names) * (len(names) - 1) / 2
	compare := func(i, k int) Comparison {
		c := Comparison{Against: names[k], Requests: estimate(minus(requests[i], requests[k])), Work: estimate(minus(work[i], work[k]))}
		for _, e := range []*measure.Estimate{&c.Requests, &c.Work} {
			e.CI95 = e.Widened(len(requests[i]), pairs)
		}
		r, w := sign(&c.Requests), sign(&c.Work)
		switch {
		case r == 0 && w == 0:
			c.Verdict = Same
		case r >= 0 && w >= 0:
			c.Verdict = Better
		case r <= 0 && w <= 0:
			c.Verdict = Behind
		default:
			c.Verdict = Trade
		}
		return c
	}
	best := -1
	for i := range names {
		beaten := slices.ContainsFunc(seq(len(names)), func(k int) bool { return k != i && compare(i, k).Verdict == Behind })
		if !beaten && (best < 0 || mean(requests[i]) > mean(requests[best]) || mean(requests[i]) == mean(requests[best]) && mean(work[i]) > mean(work[best])) {
			best = i
		}
	}
	best = max(best, 0) // three could beat one another in a ring
	var comparisons []Comparison
	for k := range names {
		if k != best {
			comparisons = append(comparisons, compare(best, k))
		}
	}
	return best, comparisons
}

func seq(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// sign returns 1 or -1 if the interval lies on that side of 0, else 0.
func sign(e *measure.Estimate) int {
	switch {
	case e.CI95 == nil:
		return 0
	case e.CI95[0] > 0:
		return 1
	case e.CI95[1] < 0:
		return -1
	}
	return 0
}

// rest measures changes, refusals and shares with the recommended placement.
func (a *adviser) rest(ctx context.Context, advice *Advice, changes []Change, before *first) error {
	o, place := a.options, advice.Recommended
	const refusals, shares = "refusals", "shares"
	name := func(c *Change) string { return fmt.Sprintf("%s %s", c.Trait, c.Name) }
	drawn := draw(before.refused, o.Sample, o.Seed)
	var cells []sweep.Cell
	for s := range o.Segments {
		if len(o.Shares) > 0 { // the longest first
			cells = append(cells, sweep.Cell{Key: key(shares, s), Run: func(ctx context.Context) ([]float64, error) { return a.shares(ctx, s, place) }})
		}
	}
	for s := range o.Segments {
		cells = append(cells, sweep.Cell{Key: key(refusals, s), Run: func(ctx context.Context) ([]float64, error) { return a.least(ctx, s, place, drawn[s]) }})
		for i := range changes {
			cells = append(cells, sweep.Cell{Key: key(name(&changes[i]), s), Run: func(ctx context.Context) ([]float64, error) {
				work := a.changed(s, &changes[i])
				values, _, err := a.accepted(ctx, &work, place)
				return values, err
			}})
		}
	}
	results, err := a.measure(ctx, "changes", cells)
	if err != nil {
		return err
	}
	for i := range changes {
		c := &changes[i]
		gain := func(value int) measure.Estimate {
			return estimate(minus(a.column(results, name(c), value), a.column(before.results, place, value)))
		}
		advice.Changes = append(advice.Changes, ChangeOutcome{c.Trait, Outcome{c.Name, gain(cellRequests), gain(cellWork), gain(cellWait)}})
	}
	all, bySegment := 0, make([][]float64, o.Segments)
	for s := range bySegment {
		all += len(before.refused[s])
		bySegment[s] = results.Of(key(refusals, s))
	}
	advice.Refusals = refusalsOf(bySegment, all, o.Seed)
	advice.Shares = []ShareOutcome{}
	for i, share := range o.Shares {
		advice.Shares = append(advice.Shares, shareOutcome(share, func(value int) []float64 { return a.column(results, shares, i*shareValues+value) }))
	}
	advice.Surely, advice.Likely = largest(advice.Shares, o.Bound)
	advice.Limits = []LimitOutcome{}
	for i, c := range o.cases() {
		if c.limit > 0 {
			advice.Limits = append(advice.Limits, LimitOutcome{c.limit, shareOutcome(c.share, func(value int) []float64 { return a.column(results, shares, i*shareValues+value) })})
		}
	}
	advice.LimitSurely, advice.LimitLikely = largestLimit(advice.Limits, o.Bound)
	return nil
}

// least replays a segment and looks at the refusals that were drawn, by position in the
// history: askedValues for each.
func (a *adviser) least(ctx context.Context, segment int, place string, drawn map[int]bool) ([]float64, error) {
	values := []float64{}
	if len(drawn) == 0 {
		return values, nil
	}
	work := a.changed(segment, nil)
	from, _ := a.bounds(segment)
	wanted := make(map[string]bool, len(drawn))
	for i := range work.Plain {
		if drawn[from+i] {
			wanted[work.Plain[i].ID] = true
		}
	}
	work.Refused = func(e *engine.Engine, r *berth.Request) error {
		if !wanted[r.ID] {
			return nil
		}
		least, err := LeastOf(e, r, a.pools)
		if err != nil {
			return err
		}
		v := r.Parts[0].Variants[0]
		values = append(values, (&asked{least, v.NPE, v.Duration}).values()...)
		return nil
	}
	_, err := sim.Replay(ctx, a.config(place), work, nil)
	return values, err
}
