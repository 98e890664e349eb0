package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/internal/nearest"
	"github.com/berth-hpc/berth/planning"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

const (
	// maxPlannedTasks bounds workflows: some planners take seconds for a few hundred tasks,
	// and recorded workflows have 10 to 300. berth plan has no such bound.
	maxPlannedTasks = 500
	maxDeadlines    = 24
	// planningTime is how long one call plans; what is left is told as a problem.
	planningTime = 20 * time.Second
	// plansAtOnce is how many plans of a hundred tasks are made for the price of one call.
	plansAtOnce = 4
	// history is over how much of the past the average of free PEs is taken.
	history berth.Duration = 30 * 24 * 3600
)

// wanted is which plans are asked for.
type wanted struct {
	workflow   value
	alpha      float64
	site, pool string
	planners   []workflow.Planner
	deadlines  []berth.Time
}

// defaultPlanAlpha is that of berth plan: the mean of the paper's default setting.
const defaultPlanAlpha = 0.1

var plansBody = body[wanted]{
	{"workflow", "The workflow in WfFormat 1.3 to 1.6.", &schema{Type: "object"}, func(w *wanted, v value) error {
		w.workflow = v
		return nil
	}},
	{"alpha", "Serial fraction of the tasks that have none; 0.1 if it is not given.", &schema{Type: "number"}, func(w *wanted, v value) (err error) {
		w.alpha, err = strconv.ParseFloat(string(v), 64)
		if err != nil || !(0 <= w.alpha && w.alpha <= 1) {
			return fmt.Errorf("%s; want a number from 0 to 1", v.short())
		}
		return nil
	}},
	{"site", "Where; may be left out where there is one site.", text("cm5"), func(w *wanted, v value) (err error) {
		w.site, err = v.word()
		return err
	}},
	{"pool", "In which pool; may be left out where the site has one.", text("batch"), func(w *wanted, v value) (err error) {
		w.pool, err = v.word()
		return err
	}},
	{"planners", "Names of planners, as berth plan --help lists them, or all alone; bd-cpar if none is given.", listOf(text("bd-cpar")), (*wanted).readPlanners},
	{"deadlines", "By when it must have ended, one plan of each planner for each. Without any, planners for a deadline search for the tightest.", listOf(instant()), (*wanted).readDeadlines},
}

func (w *wanted) readPlanners(v value) error {
	names, err := v.texts()
	if err != nil {
		return err
	}
	if slices.Equal(names, []string{"all"}) {
		w.planners = slices.Clone(workflow.Planners)
		return nil
	}
	if len(names) > len(workflow.Planners) {
		return fmt.Errorf("%d planners; there are %d", len(names), len(workflow.Planners))
	}
	known := make([]string, len(workflow.Planners))
	for i := range workflow.Planners {
		known[i] = workflow.Planners[i].Name
	}
	for i, name := range names {
		p, is := workflow.PlannerNamed(name)
		if !is {
			return berth.Errorf(berth.Invalid, "["+strconv.Itoa(i)+"]", "%s", nearest.Unknown("planner", name, known))
		}
		w.planners = append(w.planners, p)
	}
	return nil
}

func (w *wanted) readDeadlines(v value) error {
	items, err := v.items()
	if err != nil {
		return err
	}
	if len(items) > maxDeadlines {
		return fmt.Errorf("%d deadlines; want at most %d", len(items), maxDeadlines)
	}
	for i, item := range items {
		t, err := item.instant(down)
		if err != nil {
			return berth.Errorf(berth.Invalid, "["+strconv.Itoa(i)+"]", "%v", err)
		}
		w.deadlines = append(w.deadlines, t)
	}
	return nil
}

// plans answers with plans of a workflow among what is held at a pool. Nothing is booked.
// It runs beside the loop, on what the service shows.
func (c *call) plans() error {
	w := wanted{alpha: defaultPlanAlpha}
	var wrong faults
	plansBody.read(c.body, &w, &wrong)
	if w.workflow == nil {
		wrong.add("workflow", errors.New("missing; want a workflow in WfFormat"))
	}
	now := c.Now()
	for i, d := range w.deadlines {
		if d <= now {
			wrong.add("deadlines["+strconv.Itoa(i)+"]", fmt.Errorf("%s is over; it is %s", stamp(d), stamp(now)))
		}
	}
	if err := wrong.err(); err != nil {
		return err
	}
	if len(w.planners) == 0 {
		p, _ := workflow.PlannerNamed("bd-cpar")
		w.planners = append(w.planners, p)
	}
	file, err := workload.ReadWorkflow(bytes.NewReader(w.workflow), "workflow", workload.WorkflowOptions{Alpha: w.alpha})
	if err != nil {
		return err
	}
	if n := file.Flow.Len(); n > maxPlannedTasks {
		return berth.Errorf(berth.Invalid, "workflow", "%d tasks; want at most %d, or plan it with berth plan", n, maxPlannedTasks)
	}
	p, about, err := c.planningAt(&w, file, now)
	if err != nil {
		return err
	}
	c.rates.charge(c.asker(), len(w.planners)*max(1, len(w.deadlines))*file.Flow.Len()/(100*plansAtOnce))
	c.w.Header().Set("Content-Type", form.PlansType)
	lines := json.NewEncoder(c.w)
	lines.SetEscapeHTML(false)
	control := http.NewResponseController(c.w)
	// tell writes a line, for which a client may take its time; others are worked for
	// meanwhile. It says whether to go on.
	tell := func(l form.PlanLine) bool {
		c.rest()
		return lines.Encode(&l) == nil && control.Flush() == nil && c.begin() == nil
	}
	fails := func(err error) error {
		problem, _ := problemOf(err)
		tell(form.PlanLine{Problem: problem})
		return nil // it is told
	}
	if !tell(form.PlanLine{Workflow: about}) {
		return nil // the client has gone
	}
	until := time.Now().Add(planningTime)
	for _, planner := range w.planners {
		for _, deadline := range deadlinesOf(planner, w.deadlines) {
			if time.Now().After(until) {
				return fails(berth.Errorf(berth.Exhausted, "workflow", "planning takes longer than %s; ask for fewer planners or deadlines, or plan it with berth plan", planningTime))
			}
			made, err := planWith(p, planner, deadline)
			if err != nil {
				return fails(err)
			}
			if !tell(form.PlanLine{Plan: made}) {
				return nil // the client has gone
			}
		}
	}
	tell(form.PlanLine{Done: true})
	return nil
}

// deadlinesOf returns for which deadlines a planner plans. One for the earliest end plans
// the same for each, so once.
func deadlinesOf(p workflow.Planner, asked []berth.Time) []berth.Time {
	if p.Goal == workflow.Finish || len(asked) == 0 {
		return []berth.Time{berth.Forever}
	}
	return asked
}

// planningAt prepares planning at the pool that is asked for, among what is held there.
func (c *call) planningAt(w *wanted, file *workload.WorkflowFile, now berth.Time) (*planning.Planning, *form.PlannedWorkflow, error) {
	pool, err := c.plannedPool(w)
	if err != nil {
		return nil, nil, err
	}
	from := now - berth.Time(history)
	spans, err := c.Occupation(c.r.Context(), c.by, w.site, from, berth.Forever, service.Mark{Start: math.MinInt64}, math.MaxInt)
	if err != nil {
		return nil, nil, err
	}
	held, past := heldIn(spans, pool, from, now)
	p := &planning.Planning{Name: file.Name, Flow: file.Flow, PEs: pool.PEs, Now: now, Bookings: held, Past: past}
	if pool.Speed != 0 && pool.Speed != berth.StandardSpeed {
		if p.Flow, err = file.Flow.Scaled(float64(berth.StandardSpeed) / float64(pool.Speed)); err != nil {
			return nil, nil, err
		}
	}
	if err := p.Prepare(workload.AverageFree(p.Bookings, p.PEs, p.Past)); err != nil {
		return nil, nil, err
	}
	about := &form.PlannedWorkflow{
		Name: p.Name, Notes: append([]string{}, file.Report.Notes()...), Site: w.site, Pool: w.pool, PEs: p.PEs, Free: p.Instance.Free(),
		Now: form.TimeOf(now), Bound: form.TimeOf(p.Instance.Bound()), Held: []form.Holding{}, Tasks: make([]form.WorkflowTask, p.Flow.Len()),
	}
	if file.Report.NoAlpha > 0 {
		about.Notes = append(about.Notes, fmt.Sprintf("%d of %d tasks have no serial fraction; %g is taken", file.Report.NoAlpha, file.Report.Tasks, w.alpha))
	}
	for i := range about.Tasks {
		task := p.Flow.Task(i)
		t := form.WorkflowTask{ID: task.ID, Seconds: task.Duration(1), Alpha: task.Alpha, Parents: []int{}}
		for _, parent := range p.Flow.Parents(i) {
			t.Parents = append(t.Parents, int(parent))
		}
		about.Tasks[i] = t
	}
	for i := range p.Bookings {
		if b := &p.Bookings[i]; b.End > now {
			h := form.Holding{NPE: b.NPE, Start: form.TimeOf(max(now, b.Start))}
			if b.End < berth.TimeLimit-1 { // else the end is unknown
				h.End = form.TimeOf(b.End)
			}
			about.Held = append(about.Held, h)
		}
	}
	return p, about, nil
}

// plannedPool finds the pool, and names it in w.
func (c *call) plannedPool(w *wanted) (*berth.Pool, error) {
	sites, err := c.Sites(c.r.Context(), c.by)
	if err != nil {
		return nil, err
	}
	if w.site == "" && len(sites) == 1 {
		w.site = sites[0].Name
	}
	if w.site == "" {
		return nil, berth.Errorf(berth.Invalid, "site", "missing; want one of the %d sites", len(sites))
	}
	for i := range sites {
		s := &sites[i]
		if s.Name != w.site {
			continue
		}
		if w.pool == "" && len(s.Pools) == 1 {
			w.pool = s.Pools[0].Name
		}
		if w.pool == "" {
			return nil, berth.Errorf(berth.Invalid, "pool", "missing; want one of the %d pools of %q", len(s.Pools), w.site)
		}
		for k := range s.Pools {
			if s.Pools[k].Name == w.pool {
				return &s.Pools[k], nil
			}
		}
		return nil, berth.Errorf(berth.NotFound, "pool", "no pool %q at %q", w.pool, w.site)
	}
	return nil, berth.Errorf(berth.NotFound, "site", "no site %q", w.site)
}

// planWith plans with one planner, by a deadline if it is one. Where a deadline is not met it
// says so, and does not search for one that is.
func planWith(p *planning.Planning, planner workflow.Planner, deadline berth.Time) (*form.Plan, error) {
	f := &form.Plan{Planner: planner.Name, About: planner.About}
	var made workflow.Plan
	if deadline != berth.Forever {
		f.Deadline = form.TimeOf(deadline)
		var ok bool
		if made, ok = p.Instance.Try(planner, deadline); !ok {
			f.Reason = berth.NoCapacity
			if deadline < p.Instance.Bound() {
				f.Reason = berth.DeadlineMissed
			}
			return f, nil
		}
	} else {
		r, err := p.Plan(planner, planning.Goal{Deadline: berth.Forever, Tightest: planner.Goal == workflow.Deadline})
		if err != nil {
			return nil, err
		}
		if r.Refusal != nil {
			f.Reason = r.Refusal.Reason
			return f, nil
		}
		made = r.Plan
		if r.Tightest != berth.Forever {
			f.Tightest = form.TimeOf(r.Tightest)
		}
	}
	f.Turnaround, f.PESeconds, f.End, f.Critical = made.Turnaround, made.CPUSeconds, form.TimeOf(made.End(p.Now)), made.Critical(p.Flow)
	f.Tasks = make([]form.PlannedTask, len(made.Tasks))
	for i := range made.Tasks {
		t := &made.Tasks[i]
		f.Tasks[t.Task] = form.PlannedTask{NPE: t.NPE, Start: form.TimeOf(t.Start), End: form.TimeOf(t.End)}
	}
	return f, nil
}
