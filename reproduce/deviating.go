package reproduce

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/sweep"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

// What the mixed-parallel paper did not ask: what becomes of planned workflows whose tasks
// take other times than planned, under each planner and each repair.

// deviatingScale is how much is simulated.
type deviatingScale struct {
	repetitions int
	jobs        int // of a run
	workflows   int
	tasks       int // of a workflow
	loads       []float64
}

var (
	quickDeviating = deviatingScale{repetitions: 3, jobs: 800, workflows: 12, tasks: 10, loads: []float64{1}}
	fullDeviating  = deviatingScale{repetitions: 10, jobs: 3000, workflows: 40, tasks: 20, loads: []float64{1, 1.5}}
)

// deviatingSlack is how many times the time that a workflow takes alone a deadline leaves.
const deviatingSlack = 4

// deviatingMisses are the errors of the run times.
var deviatingMisses = []struct {
	name string
	miss sim.Miss
}{
	{"0", sim.Miss{}}, {"10 %", sim.Miss{Amount: .1}}, {"25 %", sim.Miss{Amount: .25}}, {"50 %", sim.Miss{Amount: .5}}, {"heavy tail", sim.Miss{Heavy: true}},
}

// deviatingPlanners are those that are compared: two that end as early as they can, two that
// go backwards from the deadline, and the cheapest of several with more and more slack.
var deviatingPlanners = []string{"bd-cpar", "bd-thrift", "dl-bd-cpar", "dl-rc-cpar", "best-0", "best-10", "best-25", "best-50", "best-75"}

// The figures of a run under one planner and repair.
const (
	keepsDeadlines = iota // percent of the promised workflows
	promisesMade          // percent of all workflows
	hoursHeld             // CPU-hours of a promised workflow
	turnsAround           // mean hours of those that succeeded
	meetsOfAll            // percent of all workflows, whose deadlines were promised and kept
	deviatingKept         // how many figures there are
)

var deviatingFigureNames = [deviatingKept]string{"kept", "promised", "cpu-hours", "turn-around", "met"}

// deviatingWorkflows prepares the study.
func deviatingWorkflows(s *session) (*experiment, error) {
	scale := quickDeviating
	if s.Scale == Full {
		scale = fullDeviating
	}
	scale.repetitions = s.repetitions
	if err := s.checkData(); err != nil {
		return nil, err
	}
	var logs []*openLog
	e := &experiment{settings: []sweep.Setting{
		{Name: "jobs", Value: strconv.Itoa(scale.jobs)}, {Name: "workflows", Value: strconv.Itoa(scale.workflows)}, {Name: "tasks", Value: strconv.Itoa(scale.tasks)},
	}}
	for i := range mixedLogs {
		log, found, err := s.find(&mixedLogs[i])
		if err != nil {
			return nil, err
		}
		if found && len(log.records) < scale.jobs {
			return nil, berth.Errorf(berth.Invalid, "data", "%s: %d usable jobs; want at least %d", log.file, len(log.records), scale.jobs)
		}
		if found {
			logs = append(logs, log)
			e.settings = append(e.settings, log.setting())
		}
	}
	if len(logs) == 0 {
		e.lacks = absent(mixedLogs, logs)
	}
	e.cells = deviatingCells(s, scale, logs)
	e.names = func(int) []string { return deviatingNames() }
	e.judge = func(values [][]float64) *findings {
		d := &deviatingData{scale: scale, logs: logs, values: values}
		return &findings{
			Setting: deviatingRows(scale, logs), Notes: deviatingNotes, Claims: deviatingClaims(d), Figures: deviatingFigures(d), Tables: []Table{deviatingTable(d), deviatingLogs(d)},
		}
	}
	return e, nil
}

// deviatingNames are those of the values of a cell.
func deviatingNames() []string {
	var names []string
	for _, planner := range deviatingPlanners {
		for _, repair := range berth.Repairs() {
			for _, figure := range deviatingFigureNames {
				names = append(names, planner+" "+string(repair)+" "+figure)
			}
		}
	}
	return names
}

// deviatingCells lists the measurements: every planner and repair over the same jobs,
// workflows and errors.
func deviatingCells(s *session, scale deviatingScale, logs []*openLog) []sweep.Cell {
	var cells []sweep.Cell
	for _, log := range logs {
		for _, load := range scale.loads {
			for _, m := range deviatingMisses {
				for r := range scale.repetitions {
					cells = append(cells, sweep.Cell{
						Key: fmt.Sprintf("%s/load=%g/miss=%s/seed=%d", log.name, load, m.name, s.seed(r)),
						Run: func(ctx context.Context) ([]float64, error) {
							return deviatingValues(ctx, scale, log, load, m.miss, s.seed(r), r)
						},
					})
				}
			}
		}
	}
	return cells
}

// deviatingJobs returns jobs of a part of a log, another one for each repetition.
func deviatingJobs(scale deviatingScale, log *openLog, load float64, seed uint64, repetition int) ([]berth.Request, []berth.Duration, error) {
	from := (len(log.records) - scale.jobs) * repetition / max(1, scale.repetitions)
	mix := workload.NewMix(seed)
	mix.ArrivalFactor, mix.Estimates = load, true
	return mix.Requests(log.records[from:from+scale.jobs], false, nil)
}

// deviatingStream returns the workflows that come while jobs do, without planner and repair.
func deviatingStream(scale deviatingScale, log *openLog, jobs []berth.Request, miss sim.Miss, seed uint64) *sim.FlowStream {
	d := workload.NewDaggen()
	d.Tasks = scale.tasks
	return &sim.FlowStream{
		Count: scale.workflows, Span: berth.Interval{Start: jobs[0].Arrival, End: jobs[len(jobs)-1].Arrival + 1}, PEs: log.pes, Slack: deviatingSlack,
		Retries: 1, Miss: miss, Seed: seed,
		Make: func(i int) (*workflow.Workflow, []berth.WorkflowTask, error) {
			flow, err := d.Generate(seed<<20 + uint64(i))
			return flow, nil, err
		},
	}
}

// deviatingValues returns the figures of all planners and repairs, over workflows that are drawn once.
func deviatingValues(ctx context.Context, scale deviatingScale, log *openLog, load float64, miss sim.Miss, seed uint64, repetition int) ([]float64, error) {
	jobs, runs, err := deviatingJobs(scale, log, load, seed, repetition)
	if err != nil {
		return nil, err
	}
	flows, err := deviatingStream(scale, log, jobs, miss, seed).Flows()
	if err != nil {
		return nil, err
	}
	work := sim.Workload{Requests: jobs, Runs: runs, Flows: flows}
	var values []float64
	for _, planner := range deviatingPlanners {
		outcomes := map[berth.Repair][]float64{}
		for _, repair := range berth.Repairs() {
			as := deviatingAlike(miss, repair)
			if outcomes[as] == nil {
				if outcomes[as], err = deviatingRun(ctx, log, work, planner, as); err != nil {
					return nil, err
				}
			}
			values = append(values, outcomes[as]...)
		}
	}
	return values, nil
}

// deviatingAlike returns the first repair that does the same as one. Where no task takes longer
// than planned, nothing is put later.
func deviatingAlike(miss sim.Miss, repair berth.Repair) berth.Repair {
	if miss.None() && repair == berth.RepairLate {
		return berth.RepairHold
	}
	return repair
}

// deviatingRun returns the figures of a run in which all workflows have a planner and a repair.
func deviatingRun(ctx context.Context, log *openLog, work sim.Workload, planner string, repair berth.Repair) ([]float64, error) {
	for i := range work.Flows {
		work.Flows[i].Workflow.Algorithm, work.Flows[i].Workflow.Repair = planner, repair
	}
	config := engine.Config{Sites: sim.OnePool(log.pes, berth.Late), Jobs: "easy"}
	result, err := sim.Play(ctx, config, work, nil)
	if err != nil {
		return nil, err
	}
	return deviatingOutcome(sim.SummarizeFlows(result.Flows)), nil
}

// deviatingOutcome returns the figures of a run.
func deviatingOutcome(s *sim.FlowSummary) []float64 {
	turnaround := math.NaN()
	if s.MeanTurnaround != nil {
		turnaround = *s.MeanTurnaround / 3600
	}
	return []float64{
		float64(100 * share(s.Kept, s.Promised)), float64(100 * share(s.Promised, s.Workflows)), s.CPUHours / float64(max(1, s.Promised)), turnaround,
		float64(100 * share(s.Kept, s.Workflows)),
	}
}

// deviatingData is what the claims are judged by.
type deviatingData struct {
	scale  deviatingScale
	logs   []*openLog
	values [][]float64 // by cell
}

// of returns a figure under a planner and a repair at an error, by repetition: the mean over
// logs and loads. Nothing was measured without logs.
func (d *deviatingData) of(planner int, repair berth.Repair, miss, figure int) sample {
	var all []sample
	for l := range d.logs {
		for load := range d.scale.loads {
			all = append(all, d.at(l, load, planner, repair, miss, figure))
		}
	}
	return meanOfKnown(all, d.scale.repetitions)
}

// at is of for one log and load.
func (d *deviatingData) at(log, load, planner int, repair berth.Repair, miss, figure int) sample {
	cell := ((log*len(d.scale.loads)+load)*len(deviatingMisses) + miss) * d.scale.repetitions
	value := planner*len(berth.Repairs())*deviatingKept + figure
	for i, r := range berth.Repairs() {
		if r == repair {
			value += i * deviatingKept
		}
	}
	var s sample
	for r := range d.scale.repetitions {
		s = append(s, d.values[cell+r][value])
	}
	return s
}

// everywhere is the mean over planners of a figure.
func (d *deviatingData) everywhere(repair berth.Repair, miss, figure int) sample {
	var all []sample
	for p := range deviatingPlanners {
		all = append(all, d.of(p, repair, miss, figure))
	}
	return meanOfKnown(all, d.scale.repetitions)
}

// meanOfKnown returns the means of what could be measured, repetition by repetition.
func meanOfKnown(samples []sample, repetitions int) sample {
	means := make(sample, repetitions)
	for r := range means {
		sum, n := 0.0, 0
		for _, s := range samples {
			if !math.IsNaN(s[r]) {
				sum, n = sum+s[r], n+1
			}
		}
		means[r] = math.NaN()
		if n > 0 {
			means[r] = sum / float64(n)
		}
	}
	return means
}
