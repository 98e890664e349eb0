package lab

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/sweep"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/sim"
)

// What the files of measurements of this package say of themselves. The version
// is raised whenever a run's values would be others, or in another order.
const (
	sweepName    = "lab"
	sweepVersion = 1
)

// Shard is the I-th of N parts of a plan, I from 1. The zero value is all of it.
type Shard struct{ I, N int }

// ParseShard reads I/N, such as 2/8; anything else is an error of code Invalid.
func ParseShard(text string) (Shard, error) {
	s, err := sweep.ParseShard(text)
	return Shard(s), err
}

// Options say where a plan is simulated. The zero value does all of it in this
// process and keeps nothing.
type Options struct {
	// File is where finished runs are kept as they come; what it holds already is
	// not simulated again. Empty is nowhere.
	File string
	// Shard is the part that is simulated; the File of each part goes to Merge.
	Shard Shard
	// Progress, if not nil, hears how many of the runs that were still to be done
	// are, those under way counted by the part that they have done. It is called
	// by one goroutine at a time.
	Progress func(done float64, runs int)
	// Simulate is sim.Play, or what a test puts in its place; nil is sim.Play.
	Simulate func(ctx context.Context, config engine.Config, work sim.Workload, progress func(done int)) (*sim.Result, error)
}

// Run simulates the plan, or the part of it that the options name, on all cores.
// Results are complete unless a shard was asked for. When the context ends, it
// returns its error, and what was finished is in the file. Errors of code Invalid
// concern the plan, the options or what the file holds, others the file system.
// Equal plans of one build give equal results, whatever the cores and shards.
// Cost: that of the simulations, and the memory of a workload for each core.
func Run(ctx context.Context, plan *Plan, o Options) (*Results, error) {
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	l := &laboratory{plan: plan, options: o}
	if l.options.Simulate == nil {
		l.options.Simulate = sim.Play
	}
	for _, point := range plan.Points() {
		c, err := plan.Case(point)
		if err != nil {
			return nil, err
		}
		l.cases = append(l.cases, c)
	}
	return l.measure(ctx, sweep.Options{File: o.File, Shard: sweep.Shard(o.Shard)})
}

// Merge puts together what shards have kept in files. The plan is what the first
// of them says, with the baseline named; the others must be of the same. A run
// that several files hold counts once. Errors are of code Invalid, also if a run
// is in none of them, or of the file system.
func Merge(ctx context.Context, plan *Plan, files []string) (*Results, error) {
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	l := &laboratory{plan: plan}
	return l.measure(ctx, sweep.Options{From: files})
}

// laboratory is a plan under way.
type laboratory struct {
	plan    *Plan
	options Options
	cases   []*Case // by point; nil if nothing is simulated
	works   works

	telling sync.Mutex
	runs    int
	done    float64
}

// measure takes the measurements and reads them.
func (l *laboratory) measure(ctx context.Context, o sweep.Options) (*Results, error) {
	points := l.plan.Points()
	var inOrder []sweep.Cell
	// All points of a replication before the next, so that what there is when
	// a reader looks can be compared.
	for replication := 1; replication <= l.plan.Replications; replication++ {
		for i, point := range points {
			inOrder = append(inOrder, sweep.Cell{
				Key: l.plan.key(point, replication),
				Run: func(ctx context.Context) ([]float64, error) { return l.run(ctx, point, l.cases[i], replication) },
			})
		}
	}
	todo := &sweep.Plan{Name: sweepName, Version: sweepVersion, Settings: l.plan.record(), Source: l.plan.source, Cells: inOrder}
	if l.cases != nil {
		todo.Cells = make([]sweep.Cell, 0, len(inOrder))
		order := l.together()
		o.Begin = func(cells []int) {
			for _, i := range cells {
				l.works.expect(l.cases[order[i%len(points)]], i/len(points)+1)
			}
			l.begin(len(cells))
		}
		for r := range l.plan.Replications {
			for _, i := range order {
				todo.Cells = append(todo.Cells, inOrder[r*len(points)+i])
			}
		}
	}
	measured, err := sweep.Run(ctx, todo, o)
	if err != nil {
		return nil, err
	}
	todo.Cells = inOrder // in which a merged file stands too
	return newResults(l.plan, measured), nil
}

// together returns the points in the order in which they are simulated: those
// that have the same workload one behind the other, so that few workloads are in
// memory.
func (l *laboratory) together() []int {
	of := map[string][]int{}
	var keys []string
	for i, c := range l.cases {
		if of[c.WorkKey] == nil {
			keys = append(keys, c.WorkKey)
		}
		of[c.WorkKey] = append(of[c.WorkKey], i)
	}
	order := make([]int, 0, len(l.cases))
	for _, key := range keys {
		order = append(order, of[key]...)
	}
	return order
}

// run simulates one case and measures it.
func (l *laboratory) run(ctx context.Context, point Point, c *Case, replication int) ([]float64, error) {
	work, err := l.works.get(c, replication)
	defer l.works.done(c, replication)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.plan.Label(point), err)
	}
	result, err := l.options.Simulate(ctx, c.Config, *work, l.progress(work.Len()))
	if err != nil {
		return nil, err
	}
	metrics := measure.OfRuns(result.All(), c.PEs, sim.WantedRuns(work, c.Config.Sites, result.All()))
	return valuesOf(&outcome{metrics, measure.HashOf(result.All())}), nil
}

func (l *laboratory) begin(runs int) {
	l.runs = runs
	if l.options.Progress != nil {
		l.options.Progress(0, runs)
	}
}

// progress returns what a run of n requests tells its progress to, nil if no one
// listens.
func (l *laboratory) progress(n int) func(done int) {
	if l.options.Progress == nil || n == 0 {
		return nil
	}
	told := 0
	return func(done int) {
		l.telling.Lock()
		defer l.telling.Unlock()
		l.done += float64(done-told) / float64(n)
		told = done
		l.options.Progress(l.done, l.runs)
	}
}

// works are the workloads that are still wanted. Those that are made are at most
// as many as there are cores, because runs with one workload stand together.
type works struct {
	mu sync.Mutex
	of map[workID]*made
}

type workID struct {
	key         string
	replication int
}

// made is a workload that is made when it is first wanted.
type made struct {
	left int // runs that have not ended

	once sync.Once
	work *sim.Workload
	err  error
}

// expect says that a run will want a workload.
func (w *works) expect(c *Case, replication int) {
	if w.of == nil {
		w.of = map[workID]*made{}
	}
	id := workID{c.WorkKey, replication}
	if w.of[id] == nil {
		w.of[id] = &made{}
	}
	w.of[id].left++
}

func (w *works) get(c *Case, replication int) (*sim.Workload, error) {
	w.mu.Lock()
	m := w.of[workID{c.WorkKey, replication}]
	w.mu.Unlock()
	m.once.Do(func() { m.work, m.err = c.Work(replication) })
	return m.work, m.err
}

// done says that a run has ended. A workload that no other wants is given up.
func (w *works) done(c *Case, replication int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := workID{c.WorkKey, replication}
	if w.of[id].left--; w.of[id].left == 0 {
		delete(w.of, id)
	}
}

// The names under which a file of measurements records a plan; the values of a
// dimension and its numbers stand behind its name.
const (
	recordTitle        = "title"
	recordBuild        = "berth"
	recordSeed         = "seed"
	recordReplications = "replications"
	recordDimension    = "sweep "
	recordNumbers      = "numbers "
)

// record returns the plan as settings of a sweep.
func (p *Plan) record() []sweep.Setting {
	settings := []sweep.Setting{
		{Name: recordTitle, Value: p.Title},
		{Name: recordBuild, Value: p.Build},
		{Name: recordSeed, Value: strconv.FormatUint(p.Seed, 10)},
		{Name: recordReplications, Value: strconv.Itoa(p.Replications)},
	}
	for i := range p.Dimensions {
		d := &p.Dimensions[i]
		settings = append(settings, sweep.Setting{Name: recordDimension + d.Name, Value: JoinValues(d.Values)})
		if d.Numbers != nil {
			var numbers []string
			for _, x := range d.Numbers {
				numbers = append(numbers, strconv.FormatFloat(x, 'g', -1, 64))
			}
			settings = append(settings, sweep.Setting{Name: recordNumbers + d.Name, Value: strings.Join(numbers, ",")})
		}
	}
	for _, s := range p.Settings {
		settings = append(settings, sweep.Setting(s))
	}
	return settings
}

// Recorded returns the plan of a file of measurements, without a baseline and
// without cases: for Merge. Errors are of code Invalid, or of the file system.
func Recorded(path string) (*Plan, error) {
	d, err := sweep.Describe(path)
	if err != nil {
		return nil, err
	}
	bad := func(format string, args ...any) error {
		return berth.Errorf(berth.Invalid, "merge", "%s:1: %s", path, fmt.Sprintf(format, args...))
	}
	switch {
	case d.Name != sweepName:
		return nil, bad("measurements of %q, not of %q", d.Name, sweepName)
	case d.Version != sweepVersion:
		return nil, bad("measurements of version %d, and this berth reads version %d", d.Version, sweepVersion)
	}
	p := &Plan{source: path}
	for _, s := range d.Settings {
		var wrong error
		switch name, swept := strings.CutPrefix(s.Name, recordDimension); {
		case swept:
			p.Dimensions = append(p.Dimensions, Dimension{Name: name, Values: SplitValues(s.Value)})
		case s.Name == recordTitle:
			p.Title = s.Value
		case s.Name == recordBuild:
			p.Build = s.Value
		case s.Name == recordSeed:
			p.Seed, wrong = strconv.ParseUint(s.Value, 10, 64)
		case s.Name == recordReplications:
			p.Replications, wrong = strconv.Atoi(s.Value)
		case strings.HasPrefix(s.Name, recordNumbers):
			wrong = p.number(strings.TrimPrefix(s.Name, recordNumbers), s.Value)
		default:
			p.Settings = append(p.Settings, Setting(s))
		}
		if wrong != nil {
			return nil, bad("%s: %v", s.Name, wrong)
		}
	}
	if err := p.Validate(); err != nil {
		return nil, bad("no plan to merge: %v", err)
	}
	return p, nil
}

// number gives the dimension read last its numbers.
func (p *Plan) number(name, text string) error {
	if len(p.Dimensions) == 0 || p.Dimensions[len(p.Dimensions)-1].Name != name {
		return berth.Errorf(berth.Invalid, "sweep", "numbers without values")
	}
	d := &p.Dimensions[len(p.Dimensions)-1]
	for field := range strings.SplitSeq(text, ",") {
		x, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return err
		}
		d.Numbers = append(d.Numbers, x)
	}
	return nil
}

// JoinValues writes values between commas, or between semicolons where one of
// them holds a comma.
func JoinValues(values []string) string {
	if slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, ",") }) {
		if len(values) == 1 {
			return values[0] + ";"
		}
		return strings.Join(values, ";")
	}
	return strings.Join(values, ",")
}

// SplitValues reads what JoinValues writes: values between semicolons if there is
// one, else between commas. Blanks around a value do not count.
func SplitValues(text string) []string {
	separator := ","
	if strings.Contains(text, ";") {
		separator, text = ";", strings.TrimSuffix(text, ";")
	}
	values := strings.Split(text, separator)
	for i := range values {
		values[i] = strings.TrimSpace(values[i])
	}
	return values
}
