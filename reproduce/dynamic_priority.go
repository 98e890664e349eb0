package reproduce

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/internal/sweep"
)

// The grid of the dynamic-priority paper: 5 resources of 47 PEs in all;
// it gives only "5 PEs at 417 MIPS". The others are those of the public GridSim
// testbed (spec 3, c).
var gridPools = []struct {
	pes  berth.Count
	mips berth.Speed
}{{5, 417}, {8, 410}, {16, 380}, {12, 377}, {6, 515}}

const (
	gridPEs     = 47
	slowestMIPS = 377

	gridUsers    = 50
	gridGridlets = 100 // of each user
	priorities   = 10  // levels, drawn uniformly

	// A standard PE has 1000 MIPS: then the speed of a pool, in thousandths, is
	// its MIPS, and a length of n thousand MI is n standard
	// seconds.
	shortestMI, longestMI = 10_000, 100_000

	// noise is how far a run may differ from its estimate, as a part of it.
	noise = 0.1

	// extension is for how long at a time an overrun goes on, in seconds, where
	// promises move out of its way.
	extension = 10

	// noDeadline is far behind everything that is simulated.
	noDeadline berth.Time = 1 << 30
)

const hour = 3600

// gridRange is where the wanted starts of reserved gridlets lie.
type gridRange struct{ from, to berth.Time }

// gridReading is how the paper is read where it leaves something open: where the wanted
// starts lie, and how a resource is chosen.
type gridReading struct {
	name   string // in ids and keys; empty for the one that the paper's claims are judged on
	title  string
	wanted gridRange
	match  string // of policy.Matches
}

// gridReadings lists them. The first is as the paper has it: resources are chosen "in a random
// manner", as the product's presets do. The queue drains in about 4 h, for the work is
// 5000 · 55,000 MI, and the PEs do 19,059 MI in a second; within twice that time the wanted
// starts make what the paper's figures show, within it alone they do not.
var gridReadings = []gridReading{
	{"", "wanted starts in 8 h, resources at random", gridRange{0, 8 * hour}, "random"},
	{"4h", "wanted starts in 4 h, while the queue drains", gridRange{0, 4 * hour}, "random"},
	{"behind", "wanted starts behind the queue, in hours 5 to 9", gridRange{5 * hour, 9 * hour}, "random"},
	{"best", "the resource that starts a gridlet first instead of a random one", gridRange{0, 8 * hour}, "best-key"},
}

// reservedShares are the percentages of gridlets that want a future start.
var reservedShares = []int{0, 10, 20, 30}

// gridPolicy is an order of reservation that is compared.
type gridPolicy struct {
	name  string // in the data
	title string
	order string // of policy.Queues
}

var gridPolicies = []gridPolicy{
	{"dpsar", "DPSAR", "dpsar"},
	{"arwp", "ARWP", "arwp"},
	{"sjf", "shortest first alone", "sjf"},
	{"priority", "priority alone", "priority"},
}

// How often the dynamic-priority experiments are repeated: 300 times in the
// paper.
const (
	quickGrid = 5
	fullGrid  = 300
)

// gridWorkload is the gridlets of one repetition: the same for every order, and
// those reserved at a smaller share are reserved at a larger one too.
type gridWorkload struct {
	users    []berth.User
	requests []berth.Request
	priority []int            // of each request's user
	factor   []float64        // actual run time of the estimate
	reserved map[int]struct{} // requests that want a future start
}

// gridlets generates the workload. All gridlets are there at time 0, in the
// order in which the users' gridlets came interleaved.
func gridlets(seed uint64, share int, wanted gridRange) *gridWorkload {
	levels, lengths := stream.New(seed, "gridlet priority"), stream.New(seed, "gridlet length")
	chosen, starts, runs := stream.New(seed, "gridlet reserved"), stream.New(seed, "gridlet start"), stream.New(seed, "gridlet run")
	const n = gridUsers * gridGridlets
	w := &gridWorkload{
		requests: make([]berth.Request, 0, n), priority: make([]int, 0, n), factor: make([]float64, 0, n), reserved: map[int]struct{}{},
	}
	for u := range uint64(gridUsers) {
		w.users = append(w.users, berth.User{
			ID: "u" + strconv.FormatUint(u+1, 10), Priority: 1 + int(float64(levels.Float64(u)*priorities)),
		})
	}
	for i := range uint64(n) {
		user := &w.users[i%gridUsers]
		length := shortestMI + int64(float64(lengths.Float64(i)*(longestMI-shortestMI+1)))
		r := berth.Rigid("g"+strconv.FormatUint(i+1, 10), 0, 0, noDeadline, 1, berth.Duration((length+999)/1000))
		r.User = user.ID
		if float64(chosen.Float64(i)*100) < float64(share) {
			w.reserved[int(i)] = struct{}{}
			r.Ready = wanted.from + berth.Time(float64(starts.Float64(i)*float64(wanted.to-wanted.from)))
			r.Deadline = r.Ready.Add(berth.Speed(slowestMIPS).Scale(r.Parts[0].Variants[0].Duration))
		}
		w.requests = append(w.requests, r)
		w.priority = append(w.priority, user.Priority)
		w.factor = append(w.factor, 1+float64(noise*(float64(2*runs.Float64(i))-1)))
	}
	return w
}

// run returns how long request i really runs where its estimate is that: to the
// nearest second, for rounding up would make every queue drift.
func (w *gridWorkload) run(i int, estimate berth.Duration) berth.Duration {
	return max(1, berth.Duration(math.Floor(float64(float64(estimate)*w.factor[i])+0.5)))
}

// config returns the engine's configuration: a preset of the paper, with the match of a
// reading and the seed of its draws.
func (w *gridWorkload) config(p *gridPolicy, match string, seed uint64) engine.Config {
	name := "arwp"
	if p.order == "dpsar" {
		name = "dpsar"
	}
	preset, ok := engine.PresetNamed(name)
	if !ok {
		panic("reproduce: no preset " + name)
	}
	config := engine.Config{Order: p.order, Match: match, Seed: seed, Trigger: engine.TriggerOnInstant, Users: w.users}
	config.Options.Scale = priorities
	for i, pool := range gridPools {
		config.Sites = append(config.Sites, berth.Site{
			Name:  gridSite(i),
			Pools: []berth.Pool{{Name: "pool", PEs: pool.pes, Speed: pool.mips, Binding: berth.Late}},
		})
	}
	preset.Apply(&config)
	return config
}

// gridSite names a resource.
func gridSite(i int) string { return "r" + strconv.Itoa(i+1) }

// gridSizes returns the PEs of each resource.
func gridSizes() map[string]berth.Count {
	sizes := map[string]berth.Count{}
	for i, pool := range gridPools {
		sizes[gridSite(i)] = pool.pes
	}
	return sizes
}

// gridRun is one row of runs: a reading, an order and a share.
type gridRun struct {
	reading *gridReading
	policy  *gridPolicy
	share   int
	moves   bool // also under the overrun policy delay
}

// gridRuns lists the rows: every order at every share in the first reading, and the paper's
// two in the others.
func gridRuns() []gridRun {
	var runs []gridRun
	for k := range gridReadings {
		for i := range gridPolicies {
			for _, share := range reservedShares {
				if k == 0 || i < 2 {
					runs = append(runs, gridRun{&gridReadings[k], &gridPolicies[i], share, k == 0 && i < 2})
				}
			}
		}
	}
	return runs
}

// gridMeans are the outcomes of one row, by repetition.
type gridMeans struct {
	waiting     sample // mean actual start − submission of the served, seconds
	offset      sample // mean actual − promised start of the served, seconds
	rejections  sample // gridlets
	utilization sample // percent of the PE-seconds until most of the work is done
	important   sample // waiting of the users of the three highest priorities, seconds
	unimportant sample // of the three lowest
	moved       sample // offset under the overrun policy delay, seconds
	late        sample // reserved gridlets promised a later start than they wanted
}

// add appends what one repetition was worth.
func (m *gridMeans) add(o *gridOutcome) {
	m.waiting = append(m.waiting, o.waiting)
	m.offset = append(m.offset, o.offset)
	m.rejections = append(m.rejections, o.rejections)
	m.utilization = append(m.utilization, o.utilization)
	m.important = append(m.important, o.important)
	m.unimportant = append(m.unimportant, o.unimportant)
	m.moved = append(m.moved, o.moved)
	m.late = append(m.late, o.late)
}

// gridRowsOf are the rows of one reading, by name of the policy and share of reserved gridlets.
type gridRowsOf map[string][]gridMeans

// gridData is everything that the claims of the dynamic-priority paper are judged by, in the
// order of gridReadings.
type gridData []gridRowsOf

// dynamicPriority prepares the experiments of spec 3, c.
func dynamicPriority(s *session) (*experiment, error) {
	return &experiment{
		cells: gridCells(s),
		names: func(int) []string { return gridNames },
		judge: func(values [][]float64) *findings {
			data := gridDataOf(values, s.repetitions)
			return &findings{
				Setting: gridRows(s.repetitions),
				Notes:   gridNotes(data),
				Claims:  gridClaims(data),
				Figures: gridFigures(data),
			}
		},
	}, nil
}

// gridCells lists the measurements, run by run.
func gridCells(s *session) []sweep.Cell {
	var cells []sweep.Cell
	runs := gridRuns()
	alike := gridAlike{known: map[gridSame]gridOutcome{}}
	for i := range runs {
		run := &runs[i]
		for r := range s.repetitions {
			cells = append(cells, sweep.Cell{
				Key: fmt.Sprintf("%s%s/%d/seed=%d", run.reading.prefix(), run.policy.name, run.share, s.seed(r)),
				Run: func(ctx context.Context) ([]float64, error) {
					o, err := alike.measure(ctx, run, s.seed(r))
					return o.values(), err
				},
			})
		}
	}
	return cells
}

// gridAlike measures runs. Where nothing is reserved, readings that differ in nothing but the
// wanted starts are one run, which is measured once.
type gridAlike struct {
	mutex sync.Mutex
	known map[gridSame]gridOutcome
}

// gridSame is what decides a run in which nothing is reserved.
type gridSame struct {
	policy, match string
	seed          uint64
}

// measure returns what a run was worth.
func (a *gridAlike) measure(ctx context.Context, run *gridRun, seed uint64) (gridOutcome, error) {
	same := gridSame{run.policy.name, run.reading.match, seed}
	if run.share == 0 && !run.moves {
		a.mutex.Lock()
		o, known := a.known[same]
		a.mutex.Unlock()
		if known {
			return o, nil
		}
	}
	o, err := gridlets(seed, run.share, run.reading.wanted).measure(ctx, run, seed)
	if err == nil && run.share == 0 {
		still := o
		still.moved = 0 // which is measured only where promises move
		a.mutex.Lock()
		a.known[same] = still
		a.mutex.Unlock()
	}
	return o, err
}

// prefix begins the keys of a reading's measurements.
func (g *gridReading) prefix() string {
	if g.name == "" {
		return ""
	}
	return g.name + "/"
}

// gridDataOf sorts the values of gridCells.
func gridDataOf(values [][]float64, repetitions int) gridData {
	runs := gridRuns()
	data := make(gridData, len(gridReadings))
	for row := range runs {
		var m gridMeans
		for r := range repetitions {
			o := gridOutcomeOf(values[row*repetitions+r])
			m.add(&o)
		}
		k := slices.IndexFunc(gridReadings, func(g gridReading) bool { return g.name == runs[row].reading.name })
		if data[k] == nil {
			data[k] = gridRowsOf{}
		}
		name := runs[row].policy.name
		data[k][name] = append(data[k][name], m)
	}
	return data
}
