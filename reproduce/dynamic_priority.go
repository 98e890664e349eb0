package reproduce

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/internal/sweep"
)

// The grid of the dynamic-priority paper: 5 resources of 47 PEs in all, of which
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
	// its MIPS, and a length of so many thousand MI is that many standard
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

var (
	// The queue drains in about 4 h: the work is 5000 · 55,000 MI, and the PEs
	// do 19,059 MI in a second.
	amidQueue   = gridRange{0, 4 * hour}
	behindQueue = gridRange{5 * hour, 9 * hour}
)

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
	w := &gridWorkload{reserved: map[int]struct{}{}}
	for u := range uint64(gridUsers) {
		w.users = append(w.users, berth.User{
			ID: "u" + strconv.FormatUint(u+1, 10), Priority: 1 + int(float64(levels.Float64(u)*priorities)),
		})
	}
	for i := range uint64(gridUsers * gridGridlets) {
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

// config returns the engine's configuration: a preset of the paper, with the
// pool of the earliest start instead of a random one. A gridlet that must wait
// belongs to the resource that can start it first (spec 3, b.2), and one that
// wants a given start has it at any pool with room then.
func (w *gridWorkload) config(p *gridPolicy) engine.Config {
	name := "arwp"
	if p.order == "dpsar" {
		name = "dpsar"
	}
	preset, ok := engine.PresetNamed(name)
	if !ok {
		panic("reproduce: no preset " + name)
	}
	config := engine.Config{Order: p.order, Match: "best-key", Trigger: engine.TriggerOnInstant, Users: w.users}
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

// gridRun is one row of runs: an order, a share and a range of wanted starts.
type gridRun struct {
	policy *gridPolicy
	share  int
	wanted gridRange
	moves  bool // also under the overrun policy delay
}

// gridRuns lists the rows: every order at every share, and the paper's two with
// starts behind the queue.
func gridRuns() []gridRun {
	var runs []gridRun
	for i := range gridPolicies {
		for _, share := range reservedShares {
			runs = append(runs, gridRun{&gridPolicies[i], share, amidQueue, i < 2})
		}
	}
	for i := range gridPolicies[:2] {
		for _, share := range reservedShares[1:] {
			runs = append(runs, gridRun{policy: &gridPolicies[i], share: share, wanted: behindQueue})
		}
	}
	return runs
}

// gridMeans are the outcomes of one row, by repetition.
type gridMeans struct {
	waiting     sample // mean actual start − submission of the served, seconds
	offset      sample // mean actual − promised start of the served, seconds
	rejections  sample // gridlets
	utilization sample // percent of the PE-seconds until the last end
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

// gridData is everything that the claims of the dynamic-priority paper are
// judged by: for each order its rows by share of reserved gridlets.
type gridData struct {
	amid   map[string][]gridMeans // by name of the policy
	behind map[string][]gridMeans // of the paper's two; share 0 is that of amid
}

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
	for i := range runs {
		run := &runs[i]
		for r := range s.repetitions {
			cells = append(cells, sweep.Cell{
				Key: fmt.Sprintf("%s/%d/%d-%d/seed=%d", run.policy.name, run.share, run.wanted.from/hour, run.wanted.to/hour, s.seed(r)),
				Run: func(ctx context.Context) ([]float64, error) {
					o, err := gridlets(s.seed(r), run.share, run.wanted).measure(ctx, run)
					return o.values(), err
				},
			})
		}
	}
	return cells
}

// gridDataOf sorts the values of gridCells.
func gridDataOf(values [][]float64, repetitions int) *gridData {
	runs := gridRuns()
	data := &gridData{amid: map[string][]gridMeans{}, behind: map[string][]gridMeans{}}
	for row := range runs {
		var m gridMeans
		for r := range repetitions {
			o := gridOutcomeOf(values[row*repetitions+r])
			m.add(&o)
		}
		rows := data.amid
		if runs[row].wanted == behindQueue {
			rows = data.behind
		}
		rows[runs[row].policy.name] = append(rows[runs[row].policy.name], m)
	}
	for i := range gridPolicies[:2] {
		name := gridPolicies[i].name
		data.behind[name] = append([]gridMeans{data.amid[name][0]}, data.behind[name]...)
	}
	return data
}
