package engine_test

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/policy"
)

var flowSeed = flag.Uint64("workflow.seed", 0, "run only the history of this seed with workflows")

// flows is a history in which workflows live beside requests, jobs, outages and owners who
// change their minds, with what the changes have said of them so far.
type flows struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	config  engine.Config
	now     berth.Time
	e       *engine.Engine
	folded  *engine.Engine // gets the changes
	jumper  *engine.Engine // is not woken between events
	again   *engine.Engine // was restored from the state after the last event
	live    map[string]*flowSeen
	ids     int
	cells   map[string]int // what has happened on which event
	down    map[string]bool
	nodes   nodes
	apart   apart
	hauls   hauls
	sharing sharing
}

// flowSeen is what is known of a live workflow from the changes.
type flowSeen struct {
	w        *berth.Workflow
	outcome  []berth.Outcome
	tries    []int
	sites    []string // of their last reservations
	end      berth.Time
	promised int
}

func (x *flows) chance(percent int) bool { return x.rng.IntN(100) < percent }

func (x *flows) fatalf(format string, args ...any) {
	x.t.Helper()
	x.t.Fatalf("-workflow.seed=%d at %d: %s", x.seed, x.now, fmt.Sprintf(format, args...))
}

func newFlows(t *testing.T, seed uint64, cells map[string]int) *flows {
	x := &flows{t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 18)), live: map[string]*flowSeen{}, cells: cells, down: map[string]bool{}, nodes: newNodes(seed), apart: newApart(seed), hauls: newHauls(seed), sharing: newSharing(seed)}
	sites := 1 + x.rng.IntN(2)
	for i := range sites {
		site := berth.Site{Name: fmt.Sprint("s", i), Managed: x.chance(60), Software: []berth.Software{{Name: "cfd", Licences: 2}}}
		pool := berth.Pool{Name: "p", PEs: berth.Count(1 + x.rng.IntN(6)), Binding: berth.Late}
		if x.chance(40) {
			pool.Binding = berth.Early
		}
		if x.chance(30) {
			pool.Speed = berth.Speed(300 + x.rng.IntN(3000))
		}
		if pool.Binding == berth.Late && x.chance(25) {
			pool.NameAhead = []berth.Duration{5, 50, 1000}[x.rng.IntN(3)]
		}
		site.Pools = append(site.Pools, pool)
		x.nodes.divide(&site)
		x.apart.add(&site)
		x.config.Sites = append(x.config.Sites, site)
	}
	x.hauls.link(&x.config)
	x.config.Overrun = []engine.Overrun{"", engine.OverrunKill, engine.OverrunRunOn, engine.OverrunDelay}[x.rng.IntN(4)]
	x.config.Preempt = x.chance(30)
	x.config.Jobs = []string{"", "conservative", "easy", "lazy"}[x.rng.IntN(4)]
	if x.chance(25) {
		for _, limit := range []policy.LimitName{policy.LimitActive, policy.LimitReservations, policy.LimitPESeconds, policy.LimitShare, policy.LimitLength, policy.LimitLead} {
			if x.chance(40) {
				x.config.Limits = append(x.config.Limits, policy.Limit{Scope: policy.Scope{User: "ada"}, Name: limit, Value: int64(2 + x.rng.IntN(map[bool]int{true: 20, false: 300}[limit == policy.LimitActive || limit == policy.LimitReservations]))})
			}
		}
	}
	x.sharing.limit(&x.config)
	if x.chance(30) {
		x.config.Instant = engine.ArrivalsFirst()
	}
	for _, e := range []**engine.Engine{&x.e, &x.folded, &x.jumper} {
		var err error
		if *e, err = engine.New(x.config); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// workflow draws a workflow.
func (x *flows) workflow() *berth.Workflow {
	x.ids++
	w := &berth.Workflow{
		ID: fmt.Sprint("w", x.ids), Arrival: x.now, Deadline: berth.Forever, Repair: berth.Repairs()[x.rng.IntN(3)],
		Algorithm: []string{"bd-cpar", "dl-rc-cpar", "dl-bd-cpar", berth.BestAlgorithm, "bd-thrift"}[x.rng.IntN(5)],
	}
	if x.chance(40) {
		w.User = "ada"
	}
	if x.chance(25) {
		w.Hold = berth.Duration(1 + x.rng.IntN(60))
	}
	if x.chance(40) {
		w.Deadline = x.now + 1 + berth.Time(x.rng.IntN(300))
	}
	if x.chance(20) {
		w.Site = "s0"
	}
	for i := range 1 + x.rng.IntN(7) {
		k := berth.WorkflowTask{ID: fmt.Sprint("t", i), Seconds: x.rng.Float64() * 40, Alpha: float64(x.rng.IntN(3)) / 2, Retries: x.rng.IntN(3)}
		for parent := range i {
			if x.chance(35) {
				k.After = append(k.After, parent)
			}
		}
		if x.chance(10) {
			k.Software, k.Licences = "cfd", berth.Count(1+x.rng.IntN(2))
		}
		x.nodes.require(&k)
		x.apart.name(&k)
		w.Tasks = append(w.Tasks, k)
	}
	x.apart.spread(w)
	x.hauls.read(w)
	x.sharing.name(w)
	for i := range w.Tasks {
		parents := w.Tasks[i].After
		if x.chance(5) && !slices.ContainsFunc(parents, func(p int) bool { return !w.Tasks[p].Done }) {
			w.Tasks[i].Done, w.Tasks[i].Tries = true, 1
		}
	}
	return w
}

// name draws a new name.
func (x *flows) name() string {
	x.ids++
	return fmt.Sprint(x.ids)
}

// event draws an event.
func (x *flows) event() engine.Event {
	if event, is := x.hauls.event(x); is {
		return event
	}
	if event, is := x.sharing.event(x); is {
		return event
	}
	var active, waiting []string
	var others []string
	for r := range x.e.Reservations() {
		switch {
		case r.Request.Task == nil:
			others = append(others, r.Request.ID)
		case r.State == berth.Active:
			active = append(active, r.Request.ID)
		default:
			waiting = append(waiting, r.Request.ID)
		}
	}
	ids := slices.Sorted(maps.Keys(x.live))
	pick := func(list []string) string { return list[x.rng.IntN(len(list))] }
	site := &x.config.Sites[x.rng.IntN(len(x.config.Sites))]
	of := x.apart.one(site)
	pool := berth.PoolID(site.Name, of.Name)
	some := berth.NewPESet(berth.Run{Lo: 0, Hi: berth.PE(1 + x.rng.IntN(int(of.PEs)))})
	switch n := x.rng.IntN(100); {
	case n < 16:
		return x.submitted(x.workflow())
	case n < 50 && len(active) > 0:
		return engine.Report(pick(active), []berth.Outcome{berth.Succeeded, berth.Succeeded, berth.Succeeded, berth.FailedForGood, berth.StillRunning}[x.rng.IntN(5)], "it did")
	case n < 56 && len(ids) > 0:
		return engine.ConfirmWorkflow(pick(ids))
	case n < 58 && len(ids) > 0:
		return engine.CancelWorkflow(pick(ids))
	case n < 62 && len(waiting) > 0:
		return engine.Cancel(pick(waiting))
	case n < 64 && len(active) > 0:
		return engine.Finish(pick(active))
	case n < 66 && len(waiting)+len(active) > 0:
		r, _ := x.e.Reservation(pick(append(waiting, active...)))
		return engine.Extend(r.Request.ID, r.End()+berth.Time(1+x.rng.IntN(20)))
	case n < 68 && len(waiting) > 0:
		r, _ := x.e.Reservation(pick(waiting))
		return engine.Relocate(r.Request.ID, r.Allotments[0].Resource, some)
	case n < 69 && len(waiting) > 0:
		return engine.Reject(pick(waiting), &berth.Refusal{Reason: berth.SiteRefused, Words: "no"})
	case n < 74:
		o := berth.Outage{Resource: pool, PEs: some}
		if x.chance(70) {
			o.Until = x.now + 1 + berth.Time(x.rng.IntN(60))
		}
		if x.chance(40) {
			o.From = x.now + berth.Time(x.rng.IntN(40))
			if o.Until > 0 {
				o.Until = max(o.Until, o.From+1)
			}
		}
		return engine.Down(o)
	case n < 79:
		return engine.Up(pool, some)
	case n < 82 && len(others) > 0:
		return engine.Cancel(pick(others))
	case n < 85:
		x.ids++
		j := berth.Job(fmt.Sprint("j", x.ids), x.now, berth.Count(1+x.rng.IntN(3)), berth.Duration(1+x.rng.IntN(40)))
		return engine.Submit(&j)
	case n < 92:
		x.ids++
		ready, d := x.now+berth.Time(x.rng.IntN(60)), berth.Duration(1+x.rng.IntN(40))
		r := berth.Rigid(fmt.Sprint("r", x.ids), x.now, ready, ready.Add(d)+berth.Time(x.rng.IntN(40)), berth.Count(1+x.rng.IntN(4)), d)
		return engine.Submit(&r)
	}
	return engine.Wake()
}

// step applies an event at a time, after everything that is due before it.
func (x *flows) step(at berth.Time, event engine.Event) {
	for {
		next, due := x.e.Next()
		if !due || next >= at {
			break
		}
		x.apply(max(next, x.now), engine.Wake(), false)
	}
	x.apply(at, event, true)
}

// submitted submits a workflow, some with a plan that was made in the state of before the event.
func (x *flows) submitted(w *berth.Workflow) engine.Event {
	if x.rng.IntN(2) == 0 {
		return engine.SubmitWorkflow(w)
	}
	plan, _, err := x.e.PlanWorkflow(w, engine.PlanOptions{From: x.now + berth.Time(x.rng.IntN(20))})
	if err != nil { // the same is wrong with the event
		return engine.SubmitWorkflow(w)
	}
	plan.Last = x.rng.IntN(3) > 0
	return engine.SubmitPlanned(w, plan)
}

func (x *flows) apply(at berth.Time, event engine.Event, told bool) {
	x.now = at
	was := x.fronts()
	changes, _, err := x.e.Apply(at, event)
	if x.again != nil && event.Plan == nil { // a plan that is made ready is used once
		_, _, _ = x.again.Apply(at, event)
		if x.again.Hash() != x.e.Hash() {
			x.fatalf("%s: an engine that was restored before decides otherwise", event.Kind)
		}
	}
	if folded := x.folded.Fold(changes); folded != nil {
		x.fatalf("%s: %v", event.Kind, folded)
	}
	if told {
		if _, _, other := x.jumper.Apply(at, event); (other == nil) != (err == nil) {
			x.fatalf("%s: %v, and %v where it was not woken between", event.Kind, err, other)
		}
	}
	if err != nil && !strings.Contains(err.Error(), "over at this moment") && event.Kind == engine.EventSubmitWorkflow && !strings.Contains(err.Error(), "are done") && (event.Plan == nil || !strings.Contains(err.Error(), "plan it again")) {
		x.fatalf("%s: %v", event.Kind, err)
	}
	promised := map[string]int{}
	for i := range changes {
		x.follow(&event, &changes[i], promised)
	}
	for id, n := range promised {
		if s := x.live[id]; s != nil && s.promised != n {
			x.fatalf("%d tasks of %s are promised, want %d", n, id, s.promised)
		}
	}
	if event.Kind == engine.EventWake || told {
		x.judge()
		x.suitable()
	}
	x.forward(&event, was)
	x.withinLimits(changes)
	if err := x.e.Check(); err != nil {
		x.fatalf("%s: %v", event.Kind, err)
	}
	again, err := engine.Restore(x.config, x.e.Snapshot())
	if err != nil {
		x.fatalf("%s: %v", event.Kind, err)
	}
	hash := x.e.Hash()
	if again.Hash() != hash || x.folded.Hash() != hash {
		x.fatalf("%s: the state that is restored or followed is another one", event.Kind)
	}
	if told && x.jumper.Hash() != hash {
		x.fatalf("%s: the state is another one where the engine was not woken between", event.Kind)
	}
	if x.again = again; x.chance(5) { // it goes on after a restart
		x.e, x.again = again, nil
	}
}

// follow judges a change and notes what it says.
func (x *flows) follow(event *engine.Event, c *change.Change, promised map[string]int) {
	on := string(event.Kind)
	switch c.Kind {
	case change.WorkflowPromised:
		s := &flowSeen{w: c.Workflow, outcome: make([]berth.Outcome, len(c.Workflow.Tasks)), tries: make([]int, len(c.Workflow.Tasks)), sites: make([]string, len(c.Workflow.Tasks)), end: c.Flow.End}
		for i, k := range c.Workflow.Tasks {
			if k.Done {
				s.sites[i] = k.Site
			}
			if s.tries[i] = k.Tries; k.Done {
				s.outcome[i] = berth.Succeeded
			} else {
				s.promised++
			}
		}
		x.live[c.Workflow.ID], promised[c.Workflow.ID] = s, 0
		x.cells[on+" promised"]++
		return
	case change.WorkflowRefused:
		x.cells[on+" refused "+string(c.Refusal.Reason)]++
		return
	case change.WorkflowReplanned:
		x.cells[on+" replanned "+string(c.Flow.Cause)]++
		x.live[c.Flow.Workflow].end = c.Flow.End
		return
	case change.WorkflowOver:
		x.over(on, c.Flow)
		return
	case change.TaskOver:
		s := x.live[c.Flow.Workflow]
		if s.outcome[c.Flow.Task] != "" {
			x.fatalf("task %d of %s is over twice", c.Flow.Task, c.Flow.Workflow)
		}
		x.cells[on+" task "+string(c.Flow.Outcome)]++
		if c.Flow.Outcome == berth.TriedAgain {
			if k := s.w.Tasks[c.Flow.Task]; s.tries[c.Flow.Task]-k.Tries > k.Retries {
				x.fatalf("task %s of %s is tried again after %d tries of %d", k.ID, s.w.ID, s.tries[c.Flow.Task], k.Retries+1)
			}
			return
		}
		s.outcome[c.Flow.Task] = c.Flow.Outcome
		return
	}
	ref, s, i := x.taskOf(c)
	if s == nil {
		return
	}
	x.cells[on+" "+string(c.Kind)]++
	switch c.Kind {
	case change.Accepted:
		if s.outcome[i] != "" || ref.Try != s.tries[i]+1 || c.ID != engine.TaskID(s.w.ID, i, ref.Try) {
			x.fatalf("%s is promised as try %d of %s, which was tried %d times and is %q", c.ID, ref.Try, ref.Task, s.tries[i], s.outcome[i])
		}
		s.tries[i], s.sites[i] = ref.Try, c.Reservation.Allotments[0].Resource.Site
		if n, is := promised[s.w.ID]; is && ref.Try == s.w.Tasks[i].Tries+1 {
			promised[s.w.ID] = n + 1
		}
	case change.Started:
		for _, parent := range s.w.Tasks[i].After {
			if s.outcome[parent] != berth.Succeeded {
				x.fatalf("%s starts, and its parent %s is %q", c.ID, s.w.Tasks[parent].ID, s.outcome[parent])
			}
		}
	}
}

// taskOf returns which task of a live workflow a change is about; nil if it is about none.
func (x *flows) taskOf(c *change.Change) (*berth.TaskRef, *flowSeen, int) {
	var ref *berth.TaskRef
	switch {
	case c.Kind == change.Accepted:
		ref = c.Reservation.Request.Task
	case c.ID != "":
		if r, live := x.e.Reservation(c.ID); live {
			ref = r.Request.Task
		}
	}
	if ref == nil || x.live[ref.Workflow] == nil {
		return nil, nil, 0
	}
	s := x.live[ref.Workflow]
	return ref, s, slices.IndexFunc(s.w.Tasks, func(k berth.WorkflowTask) bool { return k.ID == ref.Task })
}

// over judges the end of a workflow.
func (x *flows) over(on string, f *change.Flow) {
	s := x.live[f.Workflow]
	delete(x.live, f.Workflow)
	x.cells[on+" over "+string(f.Outcome)]++
	if f.Outcome != berth.Succeeded && f.Outcome != berth.FailedForGood {
		return
	}
	failed := slices.Contains(s.outcome, berth.FailedForGood)
	if failed != (f.Outcome == berth.FailedForGood) || slices.Contains(s.outcome, "") {
		x.fatalf("%s is over as %s, its tasks are %q", f.Workflow, f.Outcome, s.outcome)
	}
	for i := range s.outcome {
		// What depends on a task that failed is skipped, and nothing else is.
		behind := slices.ContainsFunc(s.w.Tasks[i].After, func(p int) bool {
			return s.outcome[p] == berth.FailedForGood || s.outcome[p] == berth.Skipped
		})
		if behind == (s.outcome[i] == berth.Succeeded) || !behind && s.outcome[i] == berth.Skipped {
			if !behind && s.outcome[i] == berth.FailedForGood {
				continue
			}
			x.fatalf("task %d of %s is %q, its parents %v of %q", i, f.Workflow, s.outcome[i], s.w.Tasks[i].After, s.outcome)
		}
	}
}

// judge judges the live workflows: every open task has one reservation, which starts when its
// parents have ended, and nothing else has one.
func (x *flows) judge() {
	has := map[string]berth.Reservation{} // by workflow and task
	for r := range x.e.Reservations() {
		ref := r.Request.Task
		if ref == nil {
			continue
		}
		key := ref.Workflow + " " + ref.Task
		if _, twice := has[key]; twice || x.live[ref.Workflow] == nil {
			x.fatalf("%s is a second reservation of %s, or its workflow is over", r.Request.ID, key)
		}
		has[key] = r
	}
	for id, s := range x.live {
		end := s.w.Arrival
		status, live := x.e.WorkflowStatus(id)
		if !live {
			x.fatalf("%s is not live", id)
		}
		for i, k := range s.w.Tasks {
			r, is := has[id+" "+k.ID]
			if is != (s.outcome[i] == "") || status.Tasks[i].Outcome != s.outcome[i] || status.Tasks[i].Tries != s.tries[i] {
				x.fatalf("task %s of %s is %q and has a reservation: %t; its status is %+v after %d tries", k.ID, id, s.outcome[i], is, status.Tasks[i], s.tries[i])
			}
			if !is {
				end = max(end, status.Tasks[i].Ended)
				continue
			}
			end = max(end, r.End())
			x.haul(s, i, &r, func(task int) string {
				if p, open := has[id+" "+s.w.Tasks[task].ID]; open {
					return p.Allotments[0].Resource.Site
				}
				return s.sites[task]
			})
			for _, parent := range k.After {
				if p, open := has[id+" "+s.w.Tasks[parent].ID]; open && p.End() > r.Start() {
					x.fatalf("%s starts at %d, before its parent %s ends at %d", r.Request.ID, r.Start(), p.Request.ID, p.End())
				}
			}
		}
		x.together(s, has)
		if end != s.end || end != status.End {
			x.fatalf("%s is to end at %d, %d was told and its status has %d", id, end, s.end, status.End)
		}
	}
}

// run runs a history.
func (x *flows) run() {
	defer func() {
		if fault := recover(); fault != nil {
			x.fatalf("%v\n%s", fault, debug.Stack())
		}
	}()
	for range 60 {
		event := x.event()
		x.step(x.now+berth.Time(x.rng.IntN(12))+x.sharing.jump(x), event)
	}
}

// wereRed are seeds of histories beyond the first ones in which a fault was found.
var wereRed = []uint64{1944, 4032, 4890, 11038}

// Whatever happens beside workflows and to their tasks, no task starts before its parents have
// succeeded, every open task has one reservation, what is told of them is so, and the state
// survives being followed, saved and restored.
func TestWorkflowMachine(t *testing.T) {
	cells := map[string]int{}
	first, last := uint64(1), uint64(effort.Cases(360))
	if testing.Short() {
		last /= 7
	}
	if *flowSeed > 0 {
		first, last = *flowSeed, *flowSeed
	}
	for seed := first; seed <= last; seed++ {
		x := newFlows(t, seed, cells)
		x.run()
	}
	if *flowSeed > 0 || testing.Short() {
		return
	}
	for _, seed := range wereRed {
		x := newFlows(t, seed, cells)
		x.run()
	}
	for _, cell := range flowCells {
		if effort.Full() && cells[cell] < 5 {
			t.Errorf("%s: %d times, want 5", cell, cells[cell])
		}
	}
	for _, cell := range slices.Sorted(maps.Keys(cells)) {
		t.Logf("%s: %d times", cell, cells[cell])
	}
}

// flowCells are what must have happened on which event.
var flowCells = []string{
	"cancel over failed", "cancel replanned displaced", "cancel task failed", "cancel task skipped",
	"cancel_workflow over cancelled", "confirm_workflow confirmed", "confirm_workflow modified", "confirm_workflow replanned displaced",
	"down accepted", "down modified", "down moved", "down over failed", "down replanned displaced", "down replanned failed", "down replanned late", "down resized",
	"down task failed", "down task retried", "down task skipped", "extend extended", "extend modified", "extend replanned late",
	"finish task failed", "finish task succeeded", "finish task skipped", "forward for PEs", "moves data", "reject accepted", "reject task retried", "reject task failed", "relocate moved",
	"report accepted", "report extended", "report modified", "report over failed", "report over succeeded", "report replanned early", "report replanned failed",
	"report task failed", "report task retried", "report task skipped", "report task succeeded",
	"spread in one pool", "spread over pools", "spread over sites",
	"submit_workflow promised", "submit_workflow refused deadline_missed", "submit_workflow refused no_capacity", "submit_workflow refused quota",
	"up resized", "wake accepted", "wake extended", "wake modified", "wake moved", "wake over expired", "wake over failed", "wake over succeeded",
	"task within active of its holders", "task within budget of its holders", "task within month_budget of its holders", "task within pe_hours of its holders",
	"task: another try is beyond the limit", "task: more is beyond the limit", "workflow beyond active", "workflow beyond budget", "workflow beyond length",
	"workflow beyond lead", "workflow beyond month_budget", "workflow beyond pe_hours", "workflow beyond reservations",
	"workflow in an account beside array", "workflow in an account beside clock jump", "workflow in an account beside maintenance",
	"workflow in an account beside modified request", "workflow in an account beside series",
	"wake replanned early", "within the share", "wake replanned failed", "wake replanned late", "wake started", "wake task failed", "wake task retried", "wake task skipped", "wake task succeeded",
}
