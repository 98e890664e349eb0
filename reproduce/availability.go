package reproduce

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/internal/sweep"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workload"
)

// rectPlacements are the paper's.
var rectPlacements = policy.Placements[:7]

// rectScale is how much of the availability experiments is simulated.
type rectScale struct {
	repetitions int
	requests    int // of one run
}

var (
	quickRects = rectScale{repetitions: 3, requests: 2000}
	fullRects  = rectScale{repetitions: 10, requests: 10_000}
)

// rectPEs is the size of the CM-5.
const rectPEs = 1024

// cm5 is the log that the paper's workload is modelled on.
var cm5 = archiveLog{name: "lanl-cm5", file: "LANL-CM5-1994-4.1-cln", thanks: "Curt Canada", pes: rectPEs}

// rectWorkload is where the requests of a run come from.
type rectWorkload struct {
	name  string // in keys and names of files; empty for the paper's own
	title string
	short string // for titles
	log   bool   // drawn from the log of the machine, which has the sizes it has
}

// rectWorkloads lists them; the first is the paper's.
var rectWorkloads = []rectWorkload{
	{"", "the Lublin-Feitelson model", "", false},
	{"odd", "the model with odd sizes", "odd sizes", false},
	{"log", "the LANL CM-5 log", "on the log", true},
	{"log6", "the LANL CM-5 log with six run times", "on the log with six run times", true},
}

// rectVariant is a way to hold the calendar.
type rectVariant struct {
	name    string // as above
	title   string
	short   string // for titles
	binding berth.Binding
	horizon string
}

var rectVariants = []rectVariant{
	{"", "early binding, capped horizon", "", berth.Early, engine.HorizonCapped},
	{"late", "late binding, capped horizon", "late binding", berth.Late, engine.HorizonCapped},
	{"unbounded", "early binding, unbounded horizon", "unbounded horizon", berth.Early, engine.HorizonUnbounded},
}

// The places of rectVariants, and of the figures of a run.
const (
	earlyCapped = iota
	lateCapped
	earlyUnbounded
)

const (
	accepts  = iota // percent of the requests
	slows           // mean slowdown of the accepted
	works           // percent of the PE-seconds
	rectKept        // how many figures there are
)

var rectFigureNames = [rectKept]string{"acceptance", "slowdown", "work"}

// rectSetting is where a run stands in the sweeps.
type rectSetting struct {
	workload int // of rectWorkloads
	umed     float64
	arrivals float64 // arrival factor
	k        float64 // artime and deadline factor
}

// rectAxis is one of the paper's three sweeps.
type rectAxis struct {
	name   string
	title  string
	label  string // of the axis
	values []float64
	of     func(workload int, x float64) rectSetting
	model  bool // a log cannot be varied so
	first  int  // number of the figure that has acceptance; the next has slowdown
}

var rectAxes = []rectAxis{
	{"umed", "UMed", "UMed, log2 of the PEs at the border of small and large requests", []float64{5, 6, 7, 8, 9}, func(w int, x float64) rectSetting { return rectSetting{w, x, 1, 3} }, true, 2},
	{"arrival", "arrival factor", "arrival factor, by which the load grows", []float64{0.5, 0.75, 1, 1.25, 1.5}, func(w int, x float64) rectSetting { return rectSetting{w, 7, x, 3} }, false, 4},
	{"flexibility", "artime factor = deadline factor", "artime factor = deadline factor, in run times", []float64{1, 2, 3, 4, 5}, func(w int, x float64) rectSetting { return rectSetting{w, 7, 1, x} }, false, 6},
}

// The places of rectAxes.
const (
	byUMed = iota
	byArrivals
	byFlexibility
)

// rectSettings lists the settings of all sweeps, each once.
func rectSettings(withLog bool) []rectSetting {
	var settings []rectSetting
	for w := range rectWorkloads {
		if rectWorkloads[w].log && !withLog {
			continue
		}
		for i := range rectAxes {
			axis := &rectAxes[i]
			if axis.model && rectWorkloads[w].log {
				continue
			}
			for _, x := range axis.values {
				if setting := axis.of(w, x); !slices.Contains(settings, setting) {
					settings = append(settings, setting)
				}
			}
		}
	}
	return settings
}

// availability prepares the availability experiments (spec 1, c).
func availability(s *session) (*experiment, error) {
	scale := quickRects
	if s.Scale == Full {
		scale = fullRects
	}
	scale.repetitions = s.repetitions
	if err := s.checkData(); err != nil {
		return nil, err
	}
	log, found, err := s.find(&cm5)
	if err != nil {
		return nil, err
	}
	if found && len(log.records) < scale.requests {
		return nil, berth.Errorf(berth.Invalid, "data", "%s: %d usable jobs; want at least %d", log.file, len(log.records), scale.requests)
	}
	e := &experiment{
		settings: []sweep.Setting{{Name: "requests", Value: strconv.Itoa(scale.requests)}},
		cells:    rectCells(s, scale, log),
		names:    func(int) []string { return rectNames() },
		judge: func(values [][]float64) *findings {
			data := rectDataOf(values, scale.repetitions, found)
			return &findings{
				Setting: rectRows(scale, found), Notes: rectNotes(found), Claims: rectClaims(data), Figures: rectFigures(data),
				Tables: []Table{rectTable(data)},
			}
		},
	}
	if found {
		e.settings = append(e.settings, log.setting())
	}
	return e, nil
}

// key names the setting in a cell's key.
func (r *rectSetting) key() string {
	name := rectWorkloads[r.workload].name
	if name == "" {
		name = "model"
	}
	if rectWorkloads[r.workload].log {
		return fmt.Sprintf("%s/af=%g/k=%g", name, r.arrivals, r.k)
	}
	return fmt.Sprintf("%s/umed=%g/af=%g/k=%g", name, r.umed, r.arrivals, r.k)
}

// rectCells lists the measurements: one for each setting and repetition, with
// all policies in all variants over the same requests. log is nil if it is not
// there.
func rectCells(s *session, scale rectScale, log *openLog) []sweep.Cell {
	var cells []sweep.Cell
	for _, setting := range rectSettings(log != nil) {
		for r := range scale.repetitions {
			cells = append(cells, sweep.Cell{
				Key: fmt.Sprintf("%s/seed=%d", setting.key(), s.seed(r)),
				Run: func(ctx context.Context) ([]float64, error) {
					requests, err := setting.requests(s.seed(r), r, scale, log)
					if err != nil {
						return nil, err
					}
					return rectValues(ctx, requests)
				},
			})
		}
	}
	return cells
}

// requests returns the requests of a repetition.
func (r *rectSetting) requests(seed uint64, repetition int, scale rectScale, log *openLog) ([]berth.Request, error) {
	records, err := r.records(seed, repetition, scale, log)
	if err != nil {
		return nil, err
	}
	t := workload.NewTransform(seed)
	t.ArrivalFactor, t.ArtimeFactor, t.DeadlineFactor = r.arrivals, r.k, r.k
	return t.Requests(records, true, nil)
}

// records returns the jobs that the requests are made of. Each repetition takes
// another part of a log.
func (r *rectSetting) records(seed uint64, repetition int, scale rectScale, log *openLog) ([]workload.Record, error) {
	name := rectWorkloads[r.workload].name
	if rectWorkloads[r.workload].log {
		from := 0
		if scale.repetitions > 1 {
			from = (len(log.records) - scale.requests) * repetition / (scale.repetitions - 1)
		}
		part := slices.Clone(log.records[from : from+scale.requests])
		if name == "log6" {
			for i := range part {
				part[i].Run = nearestRun(part[i].Run)
			}
		}
		return part, nil
	}
	model, err := workload.NewModel("lublin:lanl-cm5", workload.Params{UMed: r.umed})
	if err != nil {
		return nil, err
	}
	records := model.Generate(scale.requests, seed)
	if name == "odd" {
		draws := stream.New(seed, "odd size")
		for i := range records {
			records[i].Procs = oddSize(records[i].Procs, draws.Float64(uint64(i)))
		}
	}
	return records, nil
}

// sixRuns are the run times that the paper's model knows, in seconds.
var sixRuns = []berth.Duration{60, 300, 900, 1800, 3600, 10800}

// nearestRun returns the nearest of them in log space, as the model does: the
// smaller of two equally near. a is nearer to d than b > a if d² < a·b.
func nearestRun(d berth.Duration) berth.Duration {
	for i := range len(sixRuns) - 1 {
		if d*d <= sixRuns[i]*sixRuns[i+1] {
			return sixRuns[i]
		}
	}
	return sixRuns[len(sixRuns)-1]
}

// oddSize draws a size within a quarter of n either way, so that the mean size
// stays, except that none exceeds the machine.
func oddSize(n berth.Count, u float64) berth.Count {
	least := n - n/4
	return min(rectPEs, least+berth.Count(u*float64(2*(n/4)+1)))
}

// rectValues runs every policy in every variant over the same requests, and
// adds the bounds.
func rectValues(ctx context.Context, requests []berth.Request) ([]float64, error) {
	var values []float64
	for v := range rectVariants {
		for p := range rectPlacements {
			preset, ok := engine.PresetNamed("li")
			if !ok {
				panic("reproduce: no preset li")
			}
			config := engine.Config{
				Sites: sim.OnePool(rectPEs, rectVariants[v].binding), Place: rectPlacements[p].Name, Horizon: rectVariants[v].horizon,
			}
			preset.Apply(&config)
			result, err := sim.Play(ctx, config, sim.Workload{Requests: requests}, nil)
			if err != nil {
				return nil, err
			}
			m := measure.OfRuns(result.All(), rectPEs, nil)
			values = append(values, 100*orNaN(m.AcceptanceRate), orNaN(m.MeanSlowdown), share(100*m.AcceptedPESeconds, m.RequestedPESeconds))
		}
	}
	b := boundOf(requests, rectPEs)
	return append(values, b.acceptance, b.work), nil
}

func orNaN(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// rectNames are those of rectValues.
func rectNames() []string {
	var names []string
	for v := range rectVariants {
		for p := range rectPlacements {
			for _, figure := range rectFigureNames {
				names = append(names, fmt.Sprintf("%s, %s: %s", rectPlacements[p].Name, rectVariants[v].title, figure))
			}
		}
	}
	return append(names, "bound: acceptance", "bound: work")
}

// rectPoint is everything measured at one setting, by repetition.
type rectPoint struct {
	figures [][][rectKept]sample // by variant and policy
	bound   [rectKept]sample     // of acceptance and work; nothing bounds the slowdown
}

// rectData is everything that the claims of the availability paper are judged
// by.
type rectData struct {
	points map[rectSetting]*rectPoint
	log    bool
}

// rectDataOf sorts the values of rectCells.
func rectDataOf(values [][]float64, repetitions int, log bool) *rectData {
	d := &rectData{points: map[rectSetting]*rectPoint{}, log: log}
	policies := len(rectPlacements)
	for i, setting := range rectSettings(log) {
		p := &rectPoint{figures: make([][][rectKept]sample, len(rectVariants))}
		for v := range p.figures {
			p.figures[v] = make([][rectKept]sample, policies)
		}
		for _, row := range values[i*repetitions : (i+1)*repetitions] {
			for n, x := range row[:len(row)-2] {
				s := &p.figures[n/rectKept/policies][n/rectKept%policies][n%rectKept]
				*s = append(*s, x)
			}
			p.bound[accepts] = append(p.bound[accepts], row[len(row)-2])
			p.bound[works] = append(p.bound[works], row[len(row)-1])
		}
		d.points[setting] = p
	}
	return d
}

// curve returns one figure of a policy along an axis.
func (d *rectData) curve(workload, axis, variant, policy, figure int) []sample {
	var samples []sample
	for _, x := range rectAxes[axis].values {
		samples = append(samples, d.points[rectAxes[axis].of(workload, x)].figures[variant][policy][figure])
	}
	return samples
}

// bounds returns the bound of a figure along an axis.
func (d *rectData) bounds(workload, axis, figure int) []sample {
	var samples []sample
	for _, x := range rectAxes[axis].values {
		samples = append(samples, d.points[rectAxes[axis].of(workload, x)].bound[figure])
	}
	return samples
}
