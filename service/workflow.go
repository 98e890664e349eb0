package service

import (
	"context"
	"maps"
	"slices"

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
// reservation; a task that had none, or of which the reservation is forgotten, has none.
type FlowTask struct {
	Reservation string
	State       State // of the reservation; empty if there is none
	Tries       int
	Outcome     berth.Outcome // empty while it is open
	Why         string        // it has come out so, in words
	Ended       berth.Time
	Start, End  berth.Time
	NPE         berth.Count
	Resource    berth.ResourceID
	// PlannedStart and PlannedEnd are those of the first plan.
	PlannedStart, PlannedEnd berth.Time
}

// flowCard is what is known of a workflow: live, or over and still remembered. It is of
// the loop.
type flowCard struct {
	w         *berth.Workflow
	outcome   berth.Outcome // empty while it is live
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
	index     map[string]int // of tasks by id
}

type flowTask struct {
	reservation string
	tries       int
	outcome     berth.Outcome
	why         string
	ended       berth.Time
	first       berth.Interval // where it was promised first
}

// flows is what is known of workflows.
type flows struct {
	byID map[string]*flowCard
	ids  []string // of all, in order; nil until somebody asks for them again
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

// sorted returns the ids of all workflows in order. It must not be written.
func (f *flows) sorted() []string {
	if f.ids == nil {
		f.ids = slices.Sorted(maps.Keys(f.byID))
	}
	return f.ids
}

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
}

// followFlow brings what is known of workflows up to date with a change; nil if it is about
// none.
func (c *Core) followFlow(now berth.Time, x *change.Change) *FlowNews {
	switch x.Kind {
	case change.WorkflowPromised, change.WorkflowRefused:
		return c.newFlow(now, x)
	case change.TaskOver, change.WorkflowReplanned, change.WorkflowOver:
	case change.Accepted:
		c.flowTaskPromised(x)
		return nil
	default:
		c.flowTaskChanged(now, x)
		return nil
	}
	f := c.flows.byID[x.Flow.Workflow]
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

// fillFlowNews says of which workflow something is news.
func (c *Core) fillFlowNews(news *FlowNews, f *flowCard) {
	news.ID, news.Name, news.User, news.End, news.Deadline = f.w.ID, f.w.Name, f.w.User, f.end, f.w.Deadline
	news.State, news.Late = c.flowState(f), f.outcome == "" && f.end > f.w.Deadline
}

// newFlow notes a workflow that was promised or refused.
func (c *Core) newFlow(now berth.Time, x *change.Change) *FlowNews {
	version := uint64(0)
	created := now
	if was := c.flows.byID[x.Workflow.ID]; was != nil { // it is retried, or the id is used again
		version, created = was.version, was.created
		if at := slices.Index(c.flows.over, was.w.ID); at >= 0 {
			c.flows.over = slices.Delete(c.flows.over, at, at+1)
			c.flows.past -= len(was.tasks)
		}
	}
	f := &flowCard{w: x.Workflow, refusal: x.Refusal, version: version + 1, created: created, changed: now, tasks: make([]flowTask, len(x.Workflow.Tasks))}
	f.number()
	c.flows.byID[f.w.ID], c.flows.ids = f, nil
	news := &FlowNews{}
	if x.Kind == change.WorkflowRefused {
		f.outcome = refusedFlow
		c.forgetFlows(f)
	} else {
		c.flows.live++
		if x.Flow != nil {
			f.end, f.planned, f.planner = x.Flow.End, x.Flow.End, x.Flow.Why
		}
		for i := range f.tasks {
			if k := &f.w.Tasks[i]; k.Done {
				f.tasks[i].outcome, f.tasks[i].tries, f.tasks[i].ended = berth.Succeeded, k.Tries, now
			}
		}
	}
	c.fillFlowNews(news, f)
	return news
}

// refusedFlow is the outcome of a workflow that was refused, here alone.
const refusedFlow berth.Outcome = "refused"

func (f *flowCard) number() {
	f.index = make(map[string]int, len(f.w.Tasks))
	for i := range f.w.Tasks {
		f.index[f.w.Tasks[i].ID] = i
	}
}

// flowTaskPromised notes the reservation of a task.
func (c *Core) flowTaskPromised(x *change.Change) {
	ref := x.Reservation.Request.Task
	if ref == nil {
		return
	}
	f := c.flows.byID[ref.Workflow]
	if f == nil {
		return
	}
	t := &f.tasks[f.index[ref.Task]]
	t.reservation, t.tries = x.ID, ref.Try
	if t.first == (berth.Interval{}) {
		t.first = x.Reservation.Allotments[0].Interval()
	}
}

// flowTaskChanged notes that the reservation of a task is not what it was: with it the workflow
// looks otherwise.
func (c *Core) flowTaskChanged(now berth.Time, x *change.Change) {
	if c.flows.live == 0 || x.ID == "" || x.Kind == change.Queued {
		return
	}
	k := c.card(x.ID)
	if k == nil || k.request == nil || k.request.Task == nil {
		return
	}
	if f := c.flows.byID[k.request.Task.Workflow]; f != nil {
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
		c.flows.ids = nil
		c.flows.over = c.flows.over[1:]
	}
}

// flowState returns where a workflow is in its life.
func (c *Core) flowState(f *flowCard) FlowState {
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
	state := FlowPromised
	for i := range f.tasks {
		t := &f.tasks[i]
		if t.outcome != "" && !f.w.Tasks[i].Done || t.tries > f.w.Tasks[i].Tries+1 {
			return FlowRunning
		}
		if k := c.card(t.reservation); k != nil && k.promise != nil && k.end == "" {
			switch k.promise.State {
			case berth.Active:
				return FlowRunning
			case berth.Held:
				state = FlowHeld
			}
		}
	}
	return state
}

// viewFlow shows a workflow to clients.
func (c *Core) viewFlow(f *flowCard) Workflow {
	v := Workflow{
		Workflow: *f.w, State: c.flowState(f), Version: f.version, Planner: f.planner, End: f.end, Planned: f.planned, Replanned: f.replanned, Cause: f.cause,
		Why: f.why, Refusal: f.refusal, Created: f.created, Changed: f.changed, Tasks: make([]FlowTask, len(f.tasks)),
	}
	for i := range f.tasks {
		t := &f.tasks[i]
		w := &v.Tasks[i]
		*w = FlowTask{
			Reservation: t.reservation, Tries: t.tries, Outcome: t.outcome, Why: t.why, Ended: t.ended, PlannedStart: t.first.Start, PlannedEnd: t.first.End,
		}
		k := c.card(t.reservation)
		if k == nil || k.promise == nil || t.reservation == "" {
			continue
		}
		a := &k.promise.Allotments[0]
		w.State, w.Start, w.End, w.NPE, w.Resource = k.state(), a.Start, a.End, a.NPE, a.Resource
		if v.State == FlowHeld && w.State == Held && (v.Expires == 0 || k.promise.Expires < v.Expires) {
			v.Expires = k.promise.Expires // the first task that is not confirmed in time takes all others with it
		}
		if k.end != "" { // it has not held its PEs to the end of the promise, or not at all
			over := t.ended
			if t.outcome == "" {
				over = f.end
			}
			w.End = min(a.End, max(over, a.Start))
		}
	}
	return v
}

// seesFlow reports whether somebody may see a workflow.
func (c *Core) seesFlow(by Principal, f *flowCard) bool {
	if !by.Owns(f.w.User) {
		return false
	}
	if by.Sites.All() {
		return true
	}
	for i := range f.tasks {
		if k := c.card(f.tasks[i].reservation); k != nil && !k.seenBy(by) {
			return false
		}
	}
	return f.w.Site == "" || by.Sites.Has(f.w.Site)
}

// FlowFilter chooses workflows. Empty fields choose all.
type FlowFilter struct {
	User   string
	States []FlowState
	After  string // the id that the page begins behind
	Limit  int
}

// Workflow returns a workflow to somebody who may see it.
func (h *Host) Workflow(ctx context.Context, by Principal, id string) (Workflow, error) {
	return call(ctx, h, by.User, func(answer func(Workflow, error)) {
		f, err := h.mayFlow(&Ask{By: by}, id)
		if err != nil {
			answer(Workflow{}, err)
			return
		}
		v := h.core.viewFlow(f)
		h.whenDurable(func(failed error) { answer(v, failed) })
	})
}

// Workflows returns the workflows that somebody may see and that the filter chooses, by id. It
// looks at some of them at a time, and others are served in between: what becomes of a workflow
// meanwhile may show.
func (h *Host) Workflows(ctx context.Context, by Principal, filter FlowFilter) (list []Workflow, err error) {
	if filter.Limit <= 0 || filter.Limit > maxPage {
		filter.Limit = maxPage
	}
	for more := true; more; {
		piece, err := call(ctx, h, by.User, func(answer func(flowPiece, error)) {
			piece := h.core.someFlows(by, &filter, flowTasksAtOnce)
			h.whenDurable(func(failed error) { answer(piece, failed) })
		})
		if err != nil {
			return nil, err
		}
		list = append(list, piece.list...)
		filter.After, filter.Limit = piece.last, filter.Limit-len(piece.list)
		more = piece.more && filter.Limit > 0
	}
	return list, nil
}

// flowTasksAtOnce is how many tasks are looked at in one go, for which everybody waits: they take
// a few milliseconds.
const flowTasksAtOnce = 5000

// flowPiece is a part of a list of workflows.
type flowPiece struct {
	list []Workflow
	last string // the id of the last that was looked at
	more bool   // there are others behind it
}

// someFlows returns the first workflows behind filter.After that somebody may see and that the
// filter chooses: as many as it wants, or those among so many tasks, and at least one workflow is
// looked at.
func (c *Core) someFlows(by Principal, filter *FlowFilter, tasks int) flowPiece {
	ids := c.flows.sorted()
	at, found := slices.BinarySearch(ids, filter.After)
	if found {
		at++
	}
	p := flowPiece{last: filter.After}
	for looked := 0; at < len(ids) && len(p.list) < filter.Limit; at++ {
		f := c.flows.byID[ids[at]]
		if looked += 1 + len(f.tasks); looked > tasks && p.last != filter.After {
			break
		}
		p.last = ids[at]
		if c.seesFlow(by, f) && (filter.User == "" || f.w.User == filter.User) && (len(filter.States) == 0 || slices.Contains(filter.States, c.flowState(f))) {
			p.list = append(p.list, c.viewFlow(f))
		}
	}
	p.more = at < len(ids)
	return p
}
