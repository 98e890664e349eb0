package reproduce

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/sweep"
	"github.com/berth-hpc/berth/workload"
)

// mixedScale is how much of the mixed-parallel experiments is planned:
// instances of a scenario are starts × taggings × workflows.
type mixedScale struct {
	starts    int // times in a log at which is planned: the repetitions
	taggings  int // of the jobs as bookings, at each start
	workflows int // at each tagging

	timed     int       // starts at which planning is timed, at most
	densities []float64 // of the workflows that it is timed with
}

var (
	quickMixed = mixedScale{starts: 3, taggings: 1, workflows: 1, timed: 2, densities: []float64{0.1, 0.9}}
	fullMixed  = mixedScale{starts: 60, taggings: 1, workflows: 2, timed: 10, densities: ninths}
)

// mixedWorkflows is how many workflows there are of each kind (section 4.3.1).
const mixedWorkflows = 20

// mixedLogs are those of the paper's Table 2, with the sizes that it gives. Of
// the SDSC DataStar it means the partition of 224 processors, and of its jobs
// those that completed: their means of run time and wait are the 1.52 and 4.41
// hours of Table 3, with the others they are 2.45 and 5.55.
var mixedLogs = []archiveLog{
	{name: "ctc", file: "CTC-SP2-1996-3.1-cln", thanks: "Dan Dwyer and Steve Hotovy", pes: 430},
	{name: "osc", file: "OSC-Clust-2000-3.1-cln", thanks: "the Supercluster repository", pes: 57},
	{name: "blue", file: "SDSC-BLUE-2000-4.2-cln", thanks: "Travis Earheart and Nancy Wilkins-Diehr", pes: 1152},
	{name: "ds", file: "SDSC-DS-2004-2.1-cln", thanks: "Victor Hazlewood", pes: 224, partition: 3, completed: true},
}

// mixedShares are the shares of jobs that become bookings (φ).
var mixedShares = []float64{0.1, 0.2, 0.5}

// mixedKind is one of the 40 kinds of workflows of Table 1: one parameter is
// varied, the others have their defaults.
type mixedKind struct {
	parameter string
	value     float64
}

// daggen returns the generator of the kind.
func (k *mixedKind) daggen() workload.Daggen {
	d := workload.NewDaggen()
	switch k.parameter {
	case "tasks":
		d.Tasks = int(k.value)
	case "alpha":
		d.Alpha = k.value
	case "width":
		d.Width = k.value
	case "density":
		d.Density = k.value
	case "regularity":
		d.Regularity = k.value
	case "jump":
		d.Jump = int(k.value)
	}
	return d
}

// String names the kind.
func (k *mixedKind) String() string { return fmt.Sprintf("%s=%g", k.parameter, k.value) }

var (
	taskNumbers = []float64{10, 25, 50, 75, 100}
	ninths      = []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}
)

// mixedKinds lists the kinds.
func mixedKinds() []mixedKind {
	var kinds []mixedKind
	for _, p := range []struct {
		name   string
		values []float64
	}{
		{"tasks", taskNumbers},
		{"alpha", []float64{0.05, 0.1, 0.15, 0.2}},
		{"width", ninths},
		{"density", ninths},
		{"regularity", ninths},
		{"jump", []float64{1, 2, 3, 4}},
	} {
		for _, value := range p.values {
			kinds = append(kinds, mixedKind{p.name, value})
		}
	}
	return kinds
}

// mixedSchedule is a kind of reservation schedule.
type mixedSchedule struct {
	log    int // of mixedLogs
	share  float64
	method workload.Thinning
}

func (m *mixedSchedule) String() string {
	return fmt.Sprintf("%s/%g/%s", mixedLogs[m.log].name, m.share, m.method)
}

// mixedSchedules lists the kinds of schedules, 9 for each log that is there.
func mixedSchedules(logs []*openLog) []mixedSchedule {
	var schedules []mixedSchedule
	for i := range mixedLogs {
		if logOf(logs, i) == nil {
			continue
		}
		for _, share := range mixedShares {
			for _, method := range workload.Thinnings() {
				schedules = append(schedules, mixedSchedule{i, share, method})
			}
		}
	}
	return schedules
}

// logOf returns the log of a row of mixedLogs, nil if it is not there.
func logOf(logs []*openLog, i int) *openLog {
	for _, l := range logs {
		if l.name == mixedLogs[i].name {
			return l
		}
	}
	return nil
}

// mixedParallel prepares the mixed-parallel experiments (spec 2, c).
func mixedParallel(s *session) (*experiment, error) {
	scale := quickMixed
	if s.Scale == Full {
		scale = fullMixed
	}
	scale.starts = s.repetitions
	if err := scale.settle(s.Instances); err != nil {
		return nil, err
	}
	if err := s.checkData(); err != nil {
		return nil, err
	}
	var logs []*openLog
	settings := []sweep.Setting{{Name: "instances", Value: strconv.Itoa(scale.instances())}}
	for i := range mixedLogs {
		log, found, err := s.find(&mixedLogs[i])
		if err != nil {
			return nil, err
		}
		if found {
			logs = append(logs, log)
			settings = append(settings, log.setting())
		}
	}
	schedules := mixedSchedules(logs)
	cells := mixedCells(s, scale, logs)
	scenarios := len(schedules) * scale.starts
	lacks := ""
	if len(logs) == 0 {
		lacks = absent(mixedLogs, nil)
	}
	return &experiment{
		lacks:    lacks,
		settings: settings,
		cells:    cells,
		names: func(i int) []string {
			switch {
			case i < scenarios:
				return mixedNames()
			case i < scenarios+len(logs):
				return logNames
			case i < scenarios+len(logs)+len(machinesOf(logs))*scale.starts:
				return []string{"turn-around of bd-all above bd-cpar's, % of the best"}
			}
			return timeNames()
		},
		judge: func(values [][]float64) *findings {
			data := mixedDataOf(values, scale, logs)
			return &findings{
				Setting: mixedRows(scale, logs), Notes: mixedNotes(logs), Claims: mixedClaims(data),
				Figures: mixedFigures(data), Tables: mixedTables(data),
			}
		},
	}, nil
}

// settle makes the scale that of n instances of a scenario; 0 leaves it.
func (m *mixedScale) settle(instances int) error {
	if instances == 0 {
		return nil
	}
	each := m.starts * m.taggings
	if instances < 0 || instances%each != 0 || instances/each > mixedWorkflows {
		return berth.Errorf(berth.Invalid, "instances", "%d is not a multiple of %d up to %d (%d starts and %d taggings of each workflow); give %d, for example",
			instances, each, each*mixedWorkflows, m.starts, m.taggings, each)
	}
	m.workflows = instances / each
	return nil
}

// instances returns how many instances a scenario has.
func (m *mixedScale) instances() int { return m.starts * m.taggings * m.workflows }

// mixedCells lists the measurements: the scenarios, by schedule and start, each
// with workflows of all kinds; the logs; and the planners' times.
func mixedCells(s *session, scale mixedScale, logs []*openLog) []sweep.Cell {
	var cells []sweep.Cell
	for _, schedule := range mixedSchedules(logs) {
		for r := range scale.starts {
			cells = append(cells, sweep.Cell{
				Key: fmt.Sprintf("%s/seed=%d", &schedule, s.seed(r)),
				Run: func(ctx context.Context) ([]float64, error) {
					m := mixedRun{schedule: schedule, log: logOf(logs, schedule.log), scale: scale, seed: s.seed(r), workflows: s.Seed, start: r}
					return m.values(ctx)
				},
			})
		}
	}
	for _, log := range logs {
		cells = append(cells, sweep.Cell{Key: "log/" + log.name, Run: func(context.Context) ([]float64, error) { return logValues(log), nil }})
	}
	if len(logs) == 0 {
		return nil
	}
	for _, machine := range machinesOf(logs) {
		for r := range scale.starts {
			cells = append(cells, sweep.Cell{
				Key: fmt.Sprintf("machine/%s/%d/seed=%d", machine.name, machine.pes, s.seed(r)),
				Run: func(ctx context.Context) ([]float64, error) {
					m := mixedRun{schedule: mixedSchedule{blueLog, 0.2, workload.Expo}, log: machine, scale: scale, seed: s.seed(r), workflows: s.Seed, start: r}
					return m.behind(ctx)
				},
			})
		}
	}
	log, schedule := timedSchedule(logs)
	for _, kind := range scale.timedKinds() {
		for r := range min(scale.timed, scale.starts) {
			cells = append(cells, sweep.Cell{
				Key: fmt.Sprintf("time/%s/%s/seed=%d", &schedule, &kind, s.seed(r)),
				Run: func(ctx context.Context) ([]float64, error) {
					m := mixedRun{schedule: schedule, log: log, scale: scale, seed: s.seed(r), workflows: s.Seed, start: r}
					return m.times(ctx, &kind)
				},
			})
		}
	}
	return cells
}

// blueLog is the place in mixedLogs of the log of the largest machine.
const blueLog = 2

// machinesOf returns that log on machines of all sizes; none if it is not there.
func machinesOf(logs []*openLog) []*openLog {
	blue := logOf(logs, blueLog)
	if blue == nil {
		return nil
	}
	var machines []*openLog
	for _, pes := range machineSizes {
		machines = append(machines, blue.scaled(pes))
	}
	return machines
}

// mixedData is everything that the claims of the mixed-parallel paper are judged
// by.
type mixedData struct {
	schedules []mixedSchedule
	kinds     []mixedKind
	starts    int
	runs      [][][]float64        // by schedule and start: the values of a mixedRun
	logs      map[string][]float64 // by name: logValues
	machines  []sample             // by size: how far bd-all is behind, by start; none without the log
	times     map[mixedKind][][]float64
	timed     mixedSchedule
}

// mixedDataOf sorts the values of mixedCells.
func mixedDataOf(values [][]float64, scale mixedScale, logs []*openLog) *mixedData {
	d := &mixedData{
		schedules: mixedSchedules(logs), kinds: mixedKinds(), starts: scale.starts,
		logs: map[string][]float64{}, times: map[mixedKind][][]float64{},
	}
	next := func(n int) [][]float64 {
		part := values[:n]
		values = values[n:]
		return part
	}
	for range d.schedules {
		d.runs = append(d.runs, next(scale.starts))
	}
	for _, log := range logs {
		d.logs[log.name] = next(1)[0]
	}
	for range machinesOf(logs) {
		var behind sample
		for _, v := range next(scale.starts) {
			behind = append(behind, v[0])
		}
		d.machines = append(d.machines, behind)
	}
	if len(logs) > 0 {
		_, d.timed = timedSchedule(logs)
		for _, kind := range scale.timedKinds() {
			d.times[kind] = next(min(scale.timed, scale.starts))
		}
	}
	return d
}

// scenario is a kind of workflow on a kind of schedule, by their places.
type scenario struct{ schedule, kind int }

// among lists the scenarios that a filter lets through; nil lets all.
func (d *mixedData) among(filter func(*mixedSchedule, *mixedKind) bool) []scenario {
	var list []scenario
	for i := range d.schedules {
		for k := range d.kinds {
			if filter == nil || filter(&d.schedules[i], &d.kinds[k]) {
				list = append(list, scenario{i, k})
			}
		}
	}
	return list
}

// value returns one figure of a scenario at a start.
func (d *mixedData) value(s scenario, start, figure int) float64 {
	return d.runs[s.schedule][start][s.kind*mixedKept+figure]
}

// over returns a figure by start, each the mean over the scenarios.
func (d *mixedData) over(list []scenario, figure int) sample {
	means := make(sample, d.starts)
	for r := range means {
		sum, n := 0.0, 0
		for _, s := range list {
			if v := d.value(s, r, figure); !math.IsNaN(v) {
				sum += v
				n++
			}
		}
		means[r] = sum / float64(n)
	}
	return means
}

// of returns the mean of a figure of one scenario over the starts.
func (d *mixedData) of(s scenario, figure int) float64 {
	sum, n := 0.0, 0
	for r := range d.starts {
		if v := d.value(s, r, figure); !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	return sum / float64(n)
}

// wins counts for each of n figures from the first on in how many scenarios it
// is the least; ties win all.
func (d *mixedData) wins(list []scenario, first, n int) []int {
	counts := make([]int, n)
	for _, s := range list {
		least := math.Inf(1)
		for i := range n {
			least = min(least, d.of(s, first+i))
		}
		for i := range n {
			if d.of(s, first+i) == least {
				counts[i]++
			}
		}
	}
	return counts
}
