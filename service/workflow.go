package service

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
)

// FlowState is where a workflow is in its life.
type FlowState string

// The states of a workflow.
const (
	FlowHeld      FlowState = "held"
	FlowPromised  FlowState = "promised" // and nothing has started
	FlowRunning   FlowState = "running"
	FlowSucceeded FlowState = "succeeded"
	FlowFailed    FlowState = "failed"
	FlowCancelled FlowState = "cancelled"
	FlowExpired   FlowState = "expired"
	FlowRefused   FlowState = "refused"
)

// Over reports whether nothing more can become of it.
func (s FlowState) Over() bool { return s != FlowHeld && s != FlowPromised && s != FlowRunning }

// Workflow is all that is known of a workflow.
type Workflow struct {
	Workflow berth.Workflow
	State    FlowState
	Version  uint64 // grows with every change
	Planner  string // that found the plan
	// End is when it ended, or is expected to; Planned when it was to end when it was promised.
	End, Planned berth.Time
	// Replanned is how often tasks were moved, and Cause why last.
	Replanned int
	Cause     change.Cause
	Why       string         // it is over as it is, in words
	Refusal   *berth.Refusal // of a refused one
	// Expires is when one that is held is gone unless it is confirmed; 0 in answers, which are on
	// record as they were given.
	Expires berth.Time
	Created berth.Time
	Changed berth.Time
	Tasks   []FlowTask // in the order of the workflow
}

// FlowTask is how far a task of a workflow is. Its times and PEs are those of its
// reservation; a task that had none, or whose reservation is forgotten, has none.
type FlowTask struct {
	Reservation string
	State       State // of the reservation; empty if there is none
	Tries       int
	Outcome     berth.Outcome // empty while it is open
	Why         string        // it has come out so, in words
	Ended       berth.Time
	Start, End  berth.Time
	NPE         berth.Count
	// Missing is how many PEs of its live reservation are out of use; 0 in answers, as Expires of its workflow is.
	Missing  berth.Count
	Resource berth.ResourceID
	// Output is the file of its output if its name is a pattern, as its site expands that; empty until
	// the site has said so.
	Output string
	// PlannedStart and PlannedEnd are those of the first plan.
	PlannedStart, PlannedEnd berth.Time
}

// flowCard is what is known of a workflow: live, or over and still remembered. Once the record
// that wrote it is durable it is shown to those who only look, and is written no more.
type flowCard struct {
	id        string
	w         *berth.Workflow // nil of one that is forgotten
	written   uint64          // the record that wrote it
	outcome   berth.Outcome   // empty while it is live
	why       string
	refusal   *berth.Refusal
	planner   string
	end       berth.Time
	planned   berth.Time
	replanned int
	cause     change.Cause
	version   uint64
	created   berth.Time
	changed   berth.Time
	tasks     []flowTask
	index     func() map[string]int // of tasks by id
}

type flowTask struct {
	reservation string
	tries       int
	outcome     berth.Outcome
	why         string
	ended       berth.Time
	first       berth.Interval // where it was promised first
	output      string         // as its site says, if its name is a pattern
}

// cardsByID finds reservations: those of the loop, or those that are shown.
type cardsByID func(id string) *card

// flows is what is known of workflows. It is of the loop.
type flows struct {
	byID map[string]*flowCard
	over []string // ids of those that are over, in the order in which they ended
	past int      // tasks of those that are over
	live int
}

// keepFlows is how many workflows that are over are remembered, and keepFlowTasks how many
// tasks of those in all: each is some hundred bytes and its command.
const (
	keepFlows     = 10_000
	keepFlowTasks = 200_000
)

func newFlows() flows { return flows{byID: map[string]*flowCard{}} }

// FlowNews is one thing that happened to a workflow.
type FlowNews struct {
	ID    string
	Name  string
	User  string
	State FlowState
	// Task is the task that it happened to, empty if it was all of it, and Outcome how that
	// came out.
	Task     string
	Outcome  berth.Outcome
	Why      string
	Cause    change.Cause
	Moved    int
	End      berth.Time // when it is expected to end, or has ended
	Deadline berth.Time
	// Late says that the deadline can no longer be met.
	Late bool
	// Took is how long a task ran that has succeeded, and Estimate how long it was planned to
	// run; 0 is not known.
	Took, Estimate berth.Duration
}

// followFlow brings what is known of workflows up to date with a change; nil if it is about
// none.
func (c *Core) followFlow(now berth.Time, x *change.Change, number uint64) *FlowNews {
	switch x.Kind {
	case change.WorkflowPromised, change.WorkflowRefused:
		return c.newFlow(now, x, number)
	case change.TaskOver, change.WorkflowReplanned, change.WorkflowOver:
	case change.Accepted:
		c.flowTaskPromised(x, number)
		return nil
	default:
		c.flowTaskChanged(now, x, number)
		return nil
	}
	f := c.ownFlow(x.Flow.Workflow, number)
	if f == nil {
		return nil
	}
	f.version, f.changed = f.version+1, now
	news := &FlowNews{Outcome: x.Flow.Outcome, Why: x.Flow.Why, Cause: x.Flow.Cause, Moved: x.Flow.Moved}
	switch x.Kind {
	case change.TaskOver:
		t := &f.tasks[x.Flow.Task]
		t.why, news.Task = x.Flow.Why, f.w.Tasks[x.Flow.Task].ID
		if x.Flow.Outcome != berth.TriedAgain {
			t.outcome, t.ended = x.Flow.Outcome, now
		}
		if k := c.card(t.reservation); x.Flow.Outcome == berth.Succeeded && k != nil && k.promise != nil {
			news.Took, news.Estimate = now.Sub(k.promise.Allotments[0].Start), t.first.End.Sub(t.first.Start)
		}
	case change.WorkflowReplanned:
		f.end, f.cause = x.Flow.End, x.Flow.Cause
		f.replanned++
	case change.WorkflowOver:
		f.outcome, f.why, f.end = x.Flow.Outcome, x.Flow.Why, now
		c.flowOver(f)
	}
	c.fillFlowNews(news, f)
	return news
}

// ownFlow returns a workflow that a record may write; nil if there is none. Others may look at the
// one that earlier records have written. Cost: O(tasks) once for each record.
func (c *Core) ownFlow(id string, number uint64) *flowCard {
	f := c.flows.byID[id]
	if f == nil || !c.shows || f.written == number {
		return f
	}
	own := *f
	own.tasks = slices.Clone(f.tasks)
	c.writeFlow(&own, number)
	return &own
}

// writeFlow replaces the workflow with the id of one that a record writes.
func (c *Core) writeFlow(f *flowCard, number uint64) {
	f.written = number
	c.flows.byID[f.id] = f
	if c.shows {
		c.flowed = append(c.flowed, f)
	}
}

// fillFlowNews says which workflow a notice is about.
func (c *Core) fillFlowNews(news *FlowNews, f *flowCard) {
	news.ID, news.Name, news.User, news.End, news.Deadline = f.w.ID, f.w.Name, f.w.User, f.end, f.w.Deadline
	news.State, news.Late = f.state(c.card), f.outcome == "" && f.end > f.w.Deadline
}

// newFlow notes a workflow that was promised or refused.
func (c *Core) newFlow(now berth.Time, x *change.Change, number uint64) *FlowNews {
	version := uint64(0)
	created := now
	earlier := c.flows.byID[x.Workflow.ID]
	if was := earlier; was != nil { // it is retried, or the id is used again
		version, created = was.version, was.created
		if at := slices.Index(c.flows.over, was.w.ID); at >= 0 {
			c.flows.over = slices.Delete(c.flows.over, at, at+1)
			c.flows.past -= len(was.tasks)
		}
	}
	f := &flowCard{id: x.Workflow.ID, w: x.Workflow, refusal: x.Refusal, version: version + 1, created: created, changed: now, tasks: make([]flowTask, len(x.Workflow.Tasks))}
	f.number()
	c.writeFlow(f, number)
	news := &FlowNews{}
	if x.Kind == change.WorkflowRefused {
		f.outcome = refusedFlow
		for i := range f.tasks { // what was refused may be to try again what has not succeeded, which can be asked for again
			if k := &f.w.Tasks[i]; (k.Done || k.Tries > 0) && earlier != nil && i < len(earlier.tasks) && earlier.w.Tasks[i].ID == k.ID {
				f.tasks[i] = earlier.tasks[i]
				f.tasks[i].ended = cmp.Or(f.tasks[i].ended, earlier.end) // at the latest
			}
		}
		c.forgetFlows(f)
	} else {
		c.flows.live++
		c.beginFresh(f, number)
		if x.Flow != nil {
			f.end, f.planned, f.planner = x.Flow.End, x.Flow.End, x.Flow.Why
		}
		for i := range f.tasks {
			if k := &f.w.Tasks[i]; k.Done {
				if earlier != nil && i < len(earlier.tasks) && earlier.w.Tasks[i].ID == k.ID {
					f.tasks[i] = earlier.tasks[i] // it is as it was, and its reservation tells where its outputs are
				}
				if t := &f.tasks[i]; t.outcome != berth.Succeeded {
					t.outcome, t.why, t.ended = berth.Succeeded, "", now
				}
				f.tasks[i].tries = k.Tries
			}
		}
	}
	c.fillFlowNews(news, f)
	return news
}

// refusedFlow is the outcome of a workflow that was refused, here alone.
const refusedFlow berth.Outcome = "refused"

func (f *flowCard) number() {
	tasks := f.w.Tasks
	f.index = sync.OnceValue(func() map[string]int { // most reservations say by their id which they are of
		index := make(map[string]int, len(tasks))
		for i := range tasks {
			index[tasks[i].ID] = i
		}
		return index
	})
}

// flowTaskPromised notes the reservation of a task.
func (c *Core) flowTaskPromised(x *change.Change, number uint64) {
	ref := x.Reservation.Request.Task
	if ref == nil {
		return
	}
	f := c.ownFlow(ref.Workflow, number)
	if f == nil {
		return
	}
	t := &f.tasks[f.taskOf(x.ID, ref)]
	t.reservation, t.tries, t.output = x.ID, ref.Try, ""
	if t.first == (berth.Interval{}) {
		t.first = x.Reservation.Allotments[0].Interval()
	}
}

// taskOf returns which task a reservation is of: its id says so of the first try.
func (f *flowCard) taskOf(id string, ref *berth.TaskRef) int {
	if len(id) > len(f.id) && strings.HasPrefix(id, f.id) { // behind it is a dot
		if n, err := strconv.Atoi(id[len(f.id)+1:]); err == nil && n > 0 && n <= len(f.w.Tasks) && f.w.Tasks[n-1].ID == ref.Task {
			return n - 1
		}
	}
	return f.index()[ref.Task]
}

// flowTaskChanged notes that the reservation of a task is not what it was: with it the workflow
// looks otherwise.
func (c *Core) flowTaskChanged(now berth.Time, x *change.Change, number uint64) {
	if c.flows.live == 0 || x.ID == "" || x.Kind == change.Queued {
		return
	}
	k := c.card(x.ID)
	if k == nil || k.request == nil || k.request.Task == nil {
		return
	}
	if f := c.ownFlow(k.request.Task.Workflow, number); f != nil {
		f.version, f.changed = f.version+1, now
	}
}

// flowOver notes that a workflow is over, and forgets the oldest that are.
func (c *Core) flowOver(f *flowCard) {
	c.flows.live--
	c.forgetFlows(f)
}

// forgetFlows notes that a workflow is over, and forgets the oldest that are.
func (c *Core) forgetFlows(f *flowCard) {
	c.flows.over = append(c.flows.over, f.w.ID)
	c.flows.past += len(f.tasks)
	for len(c.flows.over) > keepFlows || c.flows.past > keepFlowTasks && len(c.flows.over) > 1 {
		id := c.flows.over[0]
		c.flows.past -= len(c.flows.byID[id].tasks)
		delete(c.flows.byID, id)
		if c.shows {
			c.flowed = append(c.flowed, &flowCard{id: id})
		}
		c.flows.over = c.flows.over[1:]
	}
}

// state returns where a workflow is in its life.
func (f *flowCard) state(cards cardsByID) FlowState {
	return f.stateOf(func(task int) *card { return f.cardOf(task, cards) })
}

// stateOf is state for who finds the reservations of tasks.
func (f *flowCard) stateOf(cards func(task int) *card) FlowState {
	switch f.outcome {
	case "":
	case berth.Succeeded:
		return FlowSucceeded
	case berth.OutcomeCancelled:
		return FlowCancelled
	case berth.OutcomeExpired:
		return FlowExpired
	case refusedFlow:
		return FlowRefused
	default:
		return FlowFailed
	}
	began, sure := false, false // it is confirmed as a whole, so the first live task tells whether it is
	for i := range f.tasks {
		t := &f.tasks[i]
		began = began || t.outcome != "" && !f.w.Tasks[i].Done || t.tries > f.w.Tasks[i].Tries+1
		if k := cards(i); k != nil && k.promise != nil && k.end == "" {
			if k.promise.State == berth.Held {
				return FlowHeld // also where one of its tasks was given back
			}
			began, sure = began || k.promise.State == berth.Active, true
		}
		if began && sure {
			return FlowRunning
		}
	}
	if began {
		return FlowRunning
	}
	return FlowPromised
}

// view shows a workflow to clients.
func (f *flowCard) view(cards cardsByID) Workflow {
	return f.viewOf(func(task int) *card { return f.cardOf(task, cards) })
}

// viewOf is view for who finds the reservations of tasks.
func (f *flowCard) viewOf(cards func(task int) *card) Workflow {
	known := make([]*card, len(f.tasks))
	for i := range f.tasks {
		known[i] = cards(i)
	}
	v := Workflow{
		Workflow: *f.w, State: f.stateOf(func(task int) *card { return known[task] }), Version: f.version, Planner: f.planner, End: f.end, Planned: f.planned, Replanned: f.replanned, Cause: f.cause,
		Why: f.why, Refusal: f.refusal, Created: f.created, Changed: f.changed, Tasks: make([]FlowTask, len(f.tasks)),
	}
	for i := range f.tasks {
		t := &f.tasks[i]
		w := &v.Tasks[i]
		*w = FlowTask{
			Reservation: t.reservation, Tries: t.tries, Outcome: t.outcome, Why: t.why, Ended: t.ended, PlannedStart: t.first.Start, PlannedEnd: t.first.End, Output: t.output,
		}
		k := known[i]
		if k == nil || k.promise == nil {
			continue
		}
		a := &k.promise.Allotments[0]
		w.State, w.Start, w.End, w.NPE, w.Resource = k.state(), a.Start, a.End, a.NPE, a.Resource
		if v.State == FlowHeld && w.State == Held && (v.Expires == 0 || k.promise.Expires < v.Expires) {
			v.Expires = k.promise.Expires // the first task that is not confirmed in time takes all others with it
		}
		if k.end == "" {
			w.Missing = k.promise.Missing
		} else { // it has not held its PEs to the end of the promise, or not at all
			w.End = min(a.End, max(cmp.Or(t.ended, f.end), a.Start))
		}
	}
	return v
}

// seenBy reports whether a principal may see a workflow.
func (f *flowCard) seenBy(by Principal, cards cardsByID) bool {
	if !by.Owns(f.w.User) {
		return false
	}
	if by.Sites.All() {
		return true
	}
	hidden := func(site string) bool { return site != "" && !by.Sites.Has(site) }
	for i := range f.tasks {
		if k := cards(f.tasks[i].reservation); k != nil && !k.seenBy(by) || hidden(f.w.Tasks[i].Site) {
			return false
		}
	}
	return !hidden(f.w.Site)
}

// FlowFilter chooses workflows. Empty fields choose all.
type FlowFilter struct {
	User   string
	States []FlowState
	After  string // the id that the page begins behind
	Limit  int
}

// Workflow returns a workflow to a principal who may see it, as the last durable record has it.
// Cost: O(tasks·log n), beside the loop.
func (h *Host) Workflow(_ context.Context, by Principal, id string) (Workflow, error) {
	m, err := h.seen()
	if err != nil {
		return Workflow{}, err
	}
	f, _ := m.flows.Get(&flowCard{id: id})
	if f == nil || !f.seenBy(by, m.card) {
		return Workflow{}, noFlow(id)
	}
	return f.view(m.card), nil
}

// Workflows returns the workflows that a principal may see and that the filter chooses, by id, as the
// last durable record has them all, and how many workflows and tasks were looked at. Cost: O(tasks·log n)
// of the workflows behind filter.After until there are enough, beside the loop.
func (h *Host) Workflows(ctx context.Context, by Principal, filter FlowFilter) (list []Workflow, looked int, err error) {
	if filter.Limit <= 0 || filter.Limit > maxPage {
		filter.Limit = maxPage
	}
	m, err := h.seen()
	if err != nil {
		return nil, 0, err
	}
	list, looked = m.workflows(ctx, by, &filter)
	return list, looked, ctx.Err()
}

// workflows is Host.Workflows until ctx ends.
func (m *model) workflows(ctx context.Context, by Principal, filter *FlowFilter) (list []Workflow, looked int) {
	m.flows.Ascend(&flowCard{id: filter.After}, func(f *flowCard) bool {
		if f.id == filter.After {
			return true
		}
		looked++
		if !by.Owns(f.w.User) || filter.User != "" && f.w.User != filter.User {
			return ctx.Err() == nil
		}
		looked += len(f.tasks)
		if f.seenBy(by, m.card) && (len(filter.States) == 0 || slices.Contains(filter.States, f.state(m.card))) {
			list = append(list, f.view(m.card))
		}
		return len(list) < filter.Limit && ctx.Err() == nil
	})
	return list, looked
}
