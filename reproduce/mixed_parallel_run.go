package reproduce

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/internal/cputime"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

// The planners that the paper compares, in its order.
var (
	blNames   = []string{"bl-1", "bl-all", "bl-cpa", "bl-cpar"}
	bdNames   = []string{"bd-all", "bd-half", "bd-cpa", "bd-cpar"}
	dlNames   = []string{"dl-bd-all", "dl-bd-cpa", "dl-bd-cpar", "dl-rc-cpa", "dl-rc-cpar", "dl-rc-cpar-lambda", "dl-rcbd-cpar-lambda"}
	of6       = []int{0, 1, 2, 3, 4} // of dlNames, compared in Table 6
	of7       = []int{1, 4, 5, 6}    // in Table 7
	ofLambda  = []int{5, 6}          // those that widen their reserve
	timeForms = []string{"plain", "fast"}
)

// The places of a scenario's figures among the values of a cell, which are means
// over the instances at one start. Degradations are in percent of the best of
// the table that they belong to.
const (
	atBL      = 0              // turn-around by order and bound, seconds
	atTAT     = atBL + 16      // degradation of the turn-around (Table 4)
	atCPU     = atTAT + 4      // and of the CPU-hours
	at6Tight  = atCPU + 4      // of the tightest deadline (Table 6)
	at6CPU    = at6Tight + 5   // of the CPU-hours by the loose deadline
	at7Tight  = at6CPU + 5     // the same in Table 7
	at7CPU    = at7Tight + 4   //
	at7Kept   = at7CPU + 4     // the CPU-hours in Table 7 if the λ of the tightest deadline is kept
	atTight   = at7Kept + 4    // turn-around of the tightest deadline, seconds
	atHours   = atTight + 7    // CPU-hours by the loose deadline of Table 6, or of 7 for those that are not in 6
	atHours7  = atHours + 7    // by that of Table 7
	atKept    = atHours7 + 4   // the same if the λ of the tightest deadline is kept
	atFailed  = atKept + 4     // percent of the instances in which the deadline of atHours was not met
	atLambda  = atFailed + 7   // λ at the tightest and at the loose deadline, by planner
	mixedKept = atLambda + 2*2 // how many there are
)

// mixedRun is the instances of one kind of schedule at one start.
type mixedRun struct {
	schedule  mixedSchedule
	log       *openLog
	scale     mixedScale
	seed      uint64
	workflows uint64 // seed of the workflows, the same for all starts
	start     int
}

// booked is a schedule of bookings as it stands at a time.
type booked struct {
	now      berth.Time
	calendar calendar.Calendar
	free     berth.Count // on average in the past: q
	ahead    int         // bookings that are not over
}

// now draws the time at which is planned: any that leaves thirty days of the log
// before it and seven after it, or the middle of a log too short for that.
func (m *mixedRun) now(records []workload.Record) berth.Time {
	first, last := records[0].Submit, records[len(records)-1].Submit
	from, to := first+30*24*hour, last-7*24*hour
	if from >= to {
		return first + (last-first)/2
	}
	u := stream.New(m.seed, "start in "+m.log.name).Float64(0)
	return from + berth.Time(u*float64(to-from))
}

// bookings makes the schedule of a tagging.
func (m *mixedRun) bookings(tagging int) (*booked, error) {
	t := workload.Tagging{
		Share: m.schedule.share, Thinning: m.schedule.method, Now: m.now(m.log.records), PEs: m.log.pes,
		Seed: stream.New(m.seed, "tagging of "+m.log.name).Uint64(uint64(tagging)),
	}
	tagged, err := t.Bookings(m.log.records)
	if err != nil {
		return nil, err
	}
	b := &booked{now: t.Now, calendar: calendar.NewFast(m.log.pes, berth.Late), free: tagged.Free}
	for i := range tagged.Bookings {
		k := &tagged.Bookings[i]
		if k.End <= t.Now {
			continue
		}
		b.ahead++
		if err := b.calendar.Add(calendar.Block{Start: max(k.Start, t.Now), End: k.End, NPE: k.NPE}); err != nil {
			return nil, fmt.Errorf("booking %s of %s: %w", k.ID, m.log.name, err)
		}
	}
	return b, nil
}

// workflow draws the j-th workflow of a kind, 0 ≤ j < mixedWorkflows.
func (m *mixedRun) workflow(kind *mixedKind, j int) (*workflow.Workflow, error) {
	d := kind.daggen()
	return d.Generate(stream.New(m.workflows, "workflow "+kind.String()).Uint64(uint64(j)))
}

// values plans all instances and returns the figures by kind of workflow, and at
// the end the mean number of bookings ahead and the mean share of PEs free in
// the past.
func (m *mixedRun) values(ctx context.Context) ([]float64, error) {
	kinds := mixedKinds()
	sums := make([]runningMean, len(kinds)*mixedKept)
	var ahead, free runningMean
	for t := range m.scale.taggings {
		b, err := m.bookings(t)
		if err != nil {
			return nil, err
		}
		ahead.add(float64(b.ahead))
		free.add(100 * float64(b.free) / float64(m.log.pes))
		for k := range kinds {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			for j := range m.scale.workflows {
				w, err := m.workflow(&kinds[k], ((m.start*m.scale.taggings+t)*m.scale.workflows+j)%mixedWorkflows)
				if err != nil {
					return nil, err
				}
				if err := instance(w, b, sums[k*mixedKept:(k+1)*mixedKept]); err != nil {
					return nil, err
				}
			}
		}
	}
	values := make([]float64, 0, len(sums)+2)
	for i := range sums {
		values = append(values, sums[i].mean())
	}
	return append(values, ahead.mean(), free.mean()), nil
}

// machineSizes are those of the controlled experiment on the size of the machine: one log, its
// jobs scaled with it, so that nothing else differs.
var machineSizes = []berth.Count{1152, 576, 288, 144, 72}

// machineWorkflows is how many workflows are planned at each start of it.
const machineWorkflows = 5

// behind returns by how many percent of the best turn-around bd-all ends later than bd-cpar,
// the mean over workflows of the default kind.
func (m *mixedRun) behind(ctx context.Context) ([]float64, error) {
	var gap runningMean
	b, err := m.bookings(0)
	if err != nil {
		return nil, err
	}
	for j := range machineWorkflows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w, err := m.workflow(&mixedKind{"tasks", 50}, (m.start*machineWorkflows+j)%mixedWorkflows)
		if err != nil {
			return nil, err
		}
		in, err := workflow.Prepare(workflow.Problem{Workflow: w, Calendar: b.calendar, Now: b.now, Free: b.free})
		if err != nil {
			return nil, err
		}
		var took [2]float64
		for i, name := range []string{"bd-all", "bd-cpar"} {
			plan, refusal, err := in.Plan(planner("bl-cpar/"+name), berth.Forever)
			if err != nil {
				return nil, err
			}
			if refusal != nil {
				return nil, fmt.Errorf("no plan without a deadline: %s", refusal)
			}
			took[i] = float64(plan.Turnaround)
		}
		gap.add(100 * (took[0] - took[1]) / min(took[0], took[1]))
	}
	return []float64{gap.mean()}, nil
}

// runningMean is a mean under way. NaN does not count.
type runningMean struct {
	sum float64
	n   int
}

func (t *runningMean) add(x float64) {
	if !math.IsNaN(x) {
		t.sum += x
		t.n++
	}
}

// mean returns the mean with seven digits that matter: more would be noise, and
// would take room in files.
func (t *runningMean) mean() float64 {
	if t.n == 0 {
		return math.NaN()
	}
	x, err := strconv.ParseFloat(strconv.FormatFloat(t.sum/float64(t.n), 'e', 6, 64), 64)
	if err != nil {
		panic("reproduce: " + err.Error()) // it was written a moment ago
	}
	return x
}

// looser is how much later the loose deadline is than the latest tightest one of the planners
// that a table compares: half as much again (spec 2, b.6).
const looser = 1.5

// instance plans one workflow with all planners, and adds what came out.
func instance(w *workflow.Workflow, b *booked, sums []runningMean) error {
	in, err := workflow.Prepare(workflow.Problem{Workflow: w, Calendar: b.calendar, Now: b.now, Free: b.free})
	if err != nil {
		return err
	}
	var turnarounds, hours []float64
	for x, bl := range blNames {
		for y, bd := range bdNames {
			plan, refusal, err := in.Plan(planner(bl+"/"+bd), berth.Forever)
			if err != nil {
				return err
			}
			if refusal != nil {
				return fmt.Errorf("no plan without a deadline: %s", refusal)
			}
			sums[atBL+x*len(bdNames)+y].add(float64(plan.Turnaround))
			if bl == "bl-cpar" {
				turnarounds, hours = append(turnarounds, float64(plan.Turnaround)), append(hours, float64(plan.CPUSeconds)/hour)
			}
		}
	}
	addDegradations(sums[atTAT:], turnarounds)
	addDegradations(sums[atCPU:], hours)
	addDeadlines(in, b, sums)
	return nil
}

// addDeadlines searches the tightest deadlines, and plans by the loose ones; each
// table has its own.
func addDeadlines(in *workflow.Instance, b *booked, sums []runningMean) {
	tight := make([]float64, len(dlNames))
	lambdas := make([]int, len(dlNames))
	for i, name := range dlNames {
		tight[i] = math.NaN()
		at, plan, ok := in.Tightest(planner(name))
		if !ok {
			continue
		}
		tight[i], lambdas[i] = float64(at.Sub(b.now)), plan.Lambda
		sums[atTight+i].add(tight[i])
	}
	loose := func(table []int) berth.Time {
		latest := 0.0
		for _, i := range table {
			if tight[i] > latest { // NaN is not
				latest = tight[i]
			}
		}
		return b.now.Add(berth.Duration(looser * latest))
	}
	loose6, loose7 := loose(of6), loose(of7)
	hours := func(p workflow.Planner, due berth.Time) (float64, workflow.Plan) {
		plan, ok := in.Try(p, due)
		if !ok {
			return math.NaN(), plan
		}
		return float64(plan.CPUSeconds) / hour, plan
	}
	failed := func(cost float64) float64 {
		if math.IsNaN(cost) {
			return 100
		}
		return 0
	}
	var in6, in7, kept []float64
	for _, i := range of6 {
		cost, _ := hours(planner(dlNames[i]), loose6)
		in6 = append(in6, cost)
		sums[atHours+i].add(cost)
		sums[atFailed+i].add(failed(cost))
	}
	for k, i := range of7 {
		cost, plan := hours(planner(dlNames[i]), loose7)
		again := cost
		if lambdas[i] > 0 { // else it is the same planner
			again, _ = hours(planner(dlNames[i]).From(lambdas[i]), loose7)
		}
		in7, kept = append(in7, cost), append(kept, again)
		sums[atHours7+k].add(cost)
		sums[atKept+k].add(again)
		if l := slices.Index(ofLambda, i); l >= 0 {
			sums[atHours+i].add(cost)
			sums[atFailed+i].add(failed(cost))
			if !math.IsNaN(tight[i]) {
				sums[atLambda+2*l].add(float64(lambdas[i]) / 20)
			}
			if !math.IsNaN(cost) {
				sums[atLambda+2*l+1].add(float64(plan.Lambda) / 20)
			}
		}
	}
	addDegradations(sums[at6Tight:], chosen(tight, of6))
	addDegradations(sums[at6CPU:], in6)
	addDegradations(sums[at7Tight:], chosen(tight, of7))
	addDegradations(sums[at7CPU:], in7)
	addDegradations(sums[at7Kept:], kept)
}

// planner returns a planner of the table.
func planner(name string) workflow.Planner {
	p, ok := workflow.PlannerNamed(name)
	if !ok {
		panic("reproduce: no planner " + name)
	}
	return p
}

func chosen(values []float64, places []int) []float64 {
	var list []float64
	for _, i := range places {
		list = append(list, values[i])
	}
	return list
}

// addDegradations adds by how many percent each value is above the least. NaN is
// no value.
func addDegradations(sums []runningMean, values []float64) {
	least := math.Inf(1)
	for _, v := range values {
		if v < least {
			least = v
		}
	}
	for i, v := range values {
		sums[i].add(100 * (v - least) / least)
	}
}

// mixedNames are those of mixedRun.values.
func mixedNames() []string {
	var names []string
	for _, kind := range mixedKinds() {
		add := func(format string, args ...any) {
			names = append(names, kind.String()+": "+fmt.Sprintf(format, args...))
		}
		for _, bl := range blNames {
			for _, bd := range bdNames {
				add("turn-around of %s/%s, s", bl, bd)
			}
		}
		for _, what := range []string{"turn-around", "CPU-hours"} {
			for _, bd := range bdNames {
				add("%s of %s, %% above the best (Table 4)", what, bd)
			}
		}
		for table, list := range [][]int{of6, of7} {
			for _, what := range []string{"tightest deadline", "CPU-hours by the loose deadline"} {
				for _, i := range list {
					add("%s of %s, %% above the best (Table %d)", what, dlNames[i], table+6)
				}
			}
		}
		for _, i := range of7 {
			add("CPU-hours by the loose deadline of %s, λ kept, %% above the best (Table 7)", dlNames[i])
		}
		for _, what := range []string{"turn-around of the tightest deadline, s", "CPU-hours by the loose deadline"} {
			for _, dl := range dlNames {
				add("%s: %s", dl, what)
			}
		}
		for _, what := range []string{"CPU-hours by the loose deadline of Table 7", "CPU-hours by the loose deadline of Table 7, λ kept"} {
			for _, i := range of7 {
				add("%s: %s", dlNames[i], what)
			}
		}
		for _, dl := range dlNames {
			add("%s: loose deadline not met, %%", dl)
		}
		for _, i := range ofLambda {
			add("%s: λ at the tightest deadline", dlNames[i])
			add("%s: λ at the loose deadline", dlNames[i])
		}
	}
	return append(names, "bookings ahead", "PEs free in the past, %")
}

// logNames are those of logValues.
var logNames = []string{
	"usable jobs", "days", "utilisation, %", "mean run time, h", "variation of run times", "mean wait, h", "variation of waits",
}

// logValues describes a log as the paper's Tables 2 and 3 do: on the machine
// that the paper gives it, over the jobs that are taken.
func logValues(l *openLog) []float64 {
	var work, runs, runs2, waits, waits2 float64
	last, waited := l.records[0].Submit, 0.0
	for i := range l.records {
		r := &l.records[i]
		run := float64(r.Run)
		work += float64(run * float64(r.Size()))
		runs += run
		runs2 += float64(run * run)
		last = max(last, r.Submit.Add(max(r.Wait, 0)).Add(r.Run))
		if r.Wait >= 0 {
			waited++
			waits += float64(r.Wait)
			waits2 += float64(float64(r.Wait) * float64(r.Wait))
		}
	}
	n := float64(len(l.records))
	span := float64(last - l.records[0].Submit)
	variation := func(sum, squares, n float64) float64 {
		mean := sum / n
		return math.Sqrt(max(0, squares/n-float64(mean*mean))) / mean
	}
	values := []float64{
		n, span / (24 * hour), 100 * work / (span * float64(l.pes)),
		runs / n / hour, variation(runs, runs2, n), waits / waited / hour, variation(waits, waits2, waited),
	}
	for i := range values {
		t := runningMean{values[i], 1}
		values[i] = t.mean()
	}
	return values
}

// timedNames are the planners of Tables 9 and 10.
var timedNames = []string{
	"bd-all", "bd-cpa", "bd-cpar", "dl-bd-all", "dl-bd-cpa", "dl-bd-cpar", "dl-rc-cpa", "dl-rc-cpar", "dl-rc-cpar-lambda", "dl-rcbd-cpar-lambda",
}

// timedKinds are the workflows of Tables 9 and 10, within the scale.
func (m *mixedScale) timedKinds() []mixedKind {
	var kinds []mixedKind
	for _, n := range taskNumbers {
		kinds = append(kinds, mixedKind{"tasks", n})
	}
	for _, d := range m.densities {
		kinds = append(kinds, mixedKind{"density", d})
	}
	return kinds
}

// timedSchedule is what stands in for the schedules of Grid'5000: those thinned
// exponentially, which the paper finds most like them, of the largest machine
// that is there.
func timedSchedule(logs []*openLog) (*openLog, mixedSchedule) {
	largest := logs[0]
	for _, l := range logs {
		if l.pes > largest.pes {
			largest = l
		}
	}
	for i := range mixedLogs {
		if mixedLogs[i].name == largest.name {
			return largest, mixedSchedule{i, 0.2, workload.Expo}
		}
	}
	panic("reproduce: a log of no row")
}

// times measures how long each planner takes for a workflow from nothing, in
// milliseconds of processor time: the paper's own steps, and ours. NaN stands for
// a planner that does not meet the loose deadline.
func (m *mixedRun) times(ctx context.Context, kind *mixedKind) ([]float64, error) {
	b, err := m.bookings(0)
	if err != nil {
		return nil, err
	}
	w, err := m.workflow(kind, m.start%mixedWorkflows)
	if err != nil {
		return nil, err
	}
	problem := workflow.Problem{Workflow: w, Calendar: b.calendar, Now: b.now, Free: b.free}
	in, err := workflow.Prepare(problem)
	if err != nil {
		return nil, err
	}
	// As loose as in the study of deadlines, for those that are timed.
	latest := berth.Duration(0)
	for _, name := range timedNames {
		if at, _, ok := in.Tightest(planner(name)); ok {
			latest = max(latest, at.Sub(b.now))
		}
	}
	var values []float64
	for _, form := range timeForms {
		problem.Plain = form == "plain"
		for _, name := range timedNames {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			p, deadline := planner(name), berth.Forever
			if p.Goal == workflow.Deadline {
				deadline = b.now.Add(berth.Duration(looser * float64(latest)))
			}
			ms := math.NaN()
			if _, ok := in.Try(p, deadline); ok {
				if ms, err = timed(problem, p, deadline); err != nil {
					return nil, err
				}
			}
			values = append(values, ms)
		}
	}
	return values, nil
}

// timed returns how long a plan takes, in milliseconds.
func timed(problem workflow.Problem, p workflow.Planner, deadline berth.Time) (float64, error) {
	var err error
	took := middleOf(func(runs int) time.Duration {
		return cputime.Of(func() {
			for range runs {
				var in *workflow.Instance
				if in, err = workflow.Prepare(problem); err != nil {
					return
				}
				in.Try(p, deadline)
			}
		})
	})
	if err != nil {
		return 0, err
	}
	t := runningMean{took, 1}
	return t.mean(), nil
}

// timeNames are those of mixedRun.times.
func timeNames() []string {
	var names []string
	for _, form := range timeForms {
		for _, name := range timedNames {
			names = append(names, fmt.Sprintf("%s, %s form, ms", name, form))
		}
	}
	return names
}
