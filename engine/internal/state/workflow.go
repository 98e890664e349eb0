package state

import (
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/wire"
)

// workflows holds the live workflows. Their tasks' reservations are in the ledger; here is
// what has become of the tasks.
type workflows struct {
	list []*Flow // in the order in which they were promised
	byID map[string]*Flow
	// disturbed are those with a task that has ended or moved since Disturbed was asked last.
	disturbed []*Flow
}

// Flow is a live workflow. It is a handle to look at: its methods write nothing.
type Flow struct {
	w         *berth.Workflow
	children  [][]int32
	order     []int32 // parents before children, of equals the first in the workflow
	tasks     []flowTask
	ids       map[string]int // tasks by their ids
	at        map[string]int // and by those of their reservations
	open      int            // tasks without an outcome
	end       berth.Time     // when it is expected to end, as was said last
	disturbed bool
	freed     []berth.Allotment // of Disturbance
	left      []leftPlace       // of Disturbance
}

// leftPlace is what a task held that has given up its place.
type leftPlace struct {
	task int
	held []berth.Allotment
}

// flowTask is what has become of a task.
type flowTask struct {
	reservation string // that it has, or had last
	live        *Entry // that reservation, while it is live
	tries       int
	site        string        // of that reservation; of one done before, where that is known
	outcome     berth.Outcome // empty while it is open
	ended       berth.Time    // when it had its outcome

	again bool        // it failed, and is to be tried again
	gone  change.Kind // how its reservation ended, which is to be judged
	was   *Entry      // its reservation that is over, of one that is tried again or to be judged
	moved bool        // it has another place or an outcome, which those behind it do not know yet
}

// ID returns the id of the workflow.
func (f *Flow) ID() string { return f.w.ID }

// Workflow returns what was asked for. It must not be written.
func (f *Flow) Workflow() *berth.Workflow { return f.w }

// Task returns a task. It must not be written.
func (f *Flow) Task(i int) *berth.WorkflowTask { return &f.w.Tasks[i] }

// Children returns the tasks behind a task, ascending. The slice must not be written.
func (f *Flow) Children(i int) []int32 { return f.children[i] }

// Order returns all tasks, parents before children. The slice must not be written.
func (f *Flow) Order() []int32 { return f.order }

// Open returns how many tasks have no outcome yet.
func (f *Flow) Open() int { return f.open }

// Outcome returns how a task came out, and when; it is empty while the task is open.
func (f *Flow) Outcome(i int) (berth.Outcome, berth.Time) {
	return f.tasks[i].outcome, f.tasks[i].ended
}

// Tries returns how often a task was tried, the present one included.
func (f *Flow) Tries(i int) int { return f.tasks[i].tries }

// Site returns the site of a task, where it has a reservation or had its last one; empty if that is
// not known.
func (f *Flow) Site(i int) string { return f.tasks[i].site }

// End returns when the workflow is expected to end, as was said last.
func (f *Flow) End() berth.Time { return f.end }

// Was returns the reservation, which is over, of a task that is to be judged or tried again.
func (f *Flow) Was(i int) *Entry { return f.tasks[i].was }

// Again reports whether a task failed and is to be tried again.
func (f *Flow) Again(i int) bool { return f.tasks[i].again }

// Gone returns how the reservation of an open task ended, if that is to be judged; else
// it is empty.
func (f *Flow) Gone(i int) change.Kind {
	if f.tasks[i].outcome != "" {
		return ""
	}
	return f.tasks[i].gone
}

// Reservation returns the id of the reservation that a task has, or had last.
func (f *Flow) Reservation(i int) string { return f.tasks[i].reservation }

// Live returns the reservation that a task has, nil if it has none.
func (f *Flow) Live(i int) *Entry { return f.tasks[i].live }

// At returns which task has, or had, a reservation; -1 if none has.
func (f *Flow) At(reservation string) int {
	if i, is := f.at[reservation]; is {
		return i
	}
	return -1
}

// Flow returns the live workflow of that id, nil if there is none.
func (s *State) Flow(id string) *Flow { return s.workflows.byID[id] }

// Flows returns the live workflows in the order in which they were promised. The slice
// must not be written.
func (s *State) Flows() []*Flow { return s.workflows.list }

// FlowOf returns the live workflow that a reservation is a task of, and which; nil if it
// is none.
func (s *State) FlowOf(e *Entry) (f *Flow, task int) {
	ref := e.r.Request.Task
	if ref == nil {
		return nil, 0
	}
	if f = s.workflows.byID[ref.Workflow]; f == nil {
		return nil, 0
	}
	return f, f.At(e.ID())
}

// Disturbance is a workflow with tasks that have ended or moved.
type Disturbance struct {
	Flow *Flow
	// Moved lists the tasks whose outcome those behind them do not know yet.
	Moved []bool
	// Freed lists what reservations of tasks that are over have not used, of PEs and of stocks, where
	// tasks may come forward.
	Freed []berth.Allotment
	// Left lists what tasks held that have given up their places since, for others or for none, where
	// tasks may come forward.
	Left []berth.Allotment
}

// AnyDisturbed reports whether Disturbed has anything to look at.
func (s *State) AnyDisturbed() bool { return len(s.workflows.disturbed) > 0 }

// Disturbed returns the workflows with tasks that have ended or moved since it was asked
// last, in the order in which that happened.
func (s *State) Disturbed() []Disturbance {
	w := &s.workflows
	var list []Disturbance
	for _, f := range w.disturbed {
		f.disturbed = false
		if w.byID[f.ID()] != f {
			continue
		}
		d := Disturbance{Flow: f, Moved: make([]bool, len(f.tasks))}
		d.Freed, d.Left = f.TakeFreed()
		for i := range f.tasks {
			d.Moved[i], f.tasks[i].moved = f.tasks[i].moved, false
		}
		list = append(list, d)
	}
	w.disturbed = w.disturbed[:0]
	return list
}

// TakeFreed returns what its reservations that are over have not used, and what its tasks have left,
// since that was asked last, as Disturbance has it.
func (f *Flow) TakeFreed() (freed, left []berth.Allotment) {
	freed = f.freed
	for i := range f.left {
		left = append(left, f.left[i].held...)
	}
	f.freed, f.left = nil, nil
	return freed, left
}

func (w *workflows) disturb(f *Flow) {
	if !f.disturbed {
		f.disturbed = true
		w.disturbed = append(w.disturbed, f)
	}
}

// NewFlow returns a workflow none of whose tasks has a reservation yet. It is in no state before a
// change that promises the workflow is folded with it.
func NewFlow(w *berth.Workflow) (*Flow, error) {
	f := &Flow{w: w, children: make([][]int32, len(w.Tasks)), tasks: make([]flowTask, len(w.Tasks)), ids: make(map[string]int, len(w.Tasks)), at: make(map[string]int, len(w.Tasks)), open: len(w.Tasks)}
	waits := make([]int, len(w.Tasks))
	for i := range w.Tasks {
		if _, twice := f.ids[w.Tasks[i].ID]; twice {
			return nil, fmt.Errorf("two tasks are called %q", w.Tasks[i].ID)
		}
		f.ids[w.Tasks[i].ID] = i
		for _, parent := range w.Tasks[i].After {
			if parent < 0 || parent >= len(w.Tasks) {
				return nil, fmt.Errorf("task %q is after task %d of %d", w.Tasks[i].ID, parent, len(w.Tasks))
			}
			f.children[parent] = append(f.children[parent], int32(i))
		}
		waits[i] = len(w.Tasks[i].After)
		f.tasks[i].tries = w.Tasks[i].Tries
		if w.Tasks[i].Done {
			f.tasks[i].outcome, f.tasks[i].ended, f.tasks[i].site = berth.Succeeded, w.Arrival, w.Tasks[i].Site
			f.open--
		}
	}
	for i := range waits {
		if waits[i] == 0 {
			f.order = append(f.order, int32(i))
		}
	}
	for k := 0; k < len(f.order); k++ {
		for _, child := range f.children[f.order[k]] {
			if waits[child]--; waits[child] == 0 {
				f.order = append(f.order, child)
			}
		}
	}
	if len(f.order) < len(w.Tasks) {
		return nil, fmt.Errorf("its tasks form a cycle")
	}
	return f, nil
}

// foldWorkflow applies a change of a workflow.
func (s *State) foldWorkflow(c *change.Change, made *Flow) error {
	all := &s.workflows
	switch c.Kind {
	case change.WorkflowRefused:
		return nil
	case change.WorkflowPromised:
		if c.Workflow == nil || all.byID[c.Workflow.ID] != nil {
			return fmt.Errorf("no workflow is promised, or one that is there already")
		}
		f := made
		if f == nil {
			var err error
			if f, err = NewFlow(c.Workflow); err != nil {
				return fmt.Errorf("workflow %q: %w", c.Workflow.ID, err)
			}
		}
		if c.Flow != nil {
			f.end = c.Flow.End
		}
		all.list, all.byID[f.ID()] = append(all.list, f), f
		return nil
	}
	if c.Flow == nil {
		return fmt.Errorf("no workflow is named")
	}
	f := all.byID[c.Flow.Workflow]
	if f == nil {
		return fmt.Errorf("no live workflow %q", c.Flow.Workflow)
	}
	switch c.Kind {
	case change.TaskOver:
		return s.taskOver(f, c.Flow)
	case change.WorkflowReplanned:
		f.end = c.Flow.End
	case change.WorkflowOver:
		delete(all.byID, f.ID())
		all.list = slices.DeleteFunc(all.list, func(o *Flow) bool { return o == f })
	}
	return nil
}

// taskOver notes how a task came out, or that it is tried again.
func (s *State) taskOver(f *Flow, c *change.Flow) error {
	if c.Task < 0 || c.Task >= len(f.tasks) || f.tasks[c.Task].outcome != "" {
		return fmt.Errorf("workflow %q has no open task %d", f.ID(), c.Task)
	}
	t := &f.tasks[c.Task]
	t.gone, t.again = "", c.Outcome == berth.TriedAgain
	if t.moved = true; !t.again {
		t.outcome, t.ended = c.Outcome, s.now
		f.open--
	}
	s.workflows.disturb(f)
	return nil
}

// Expect notes under which id the reservation of a task will be accepted.
func (f *Flow) Expect(task int, reservation string) { f.at[reservation] = task }

// acceptTask notes the reservation of a task.
func (s *State) acceptTask(e *Entry, about Ref) error {
	ref := e.r.Request.Task
	if ref == nil {
		return nil
	}
	f := s.workflows.byID[ref.Workflow]
	if f == nil {
		return fmt.Errorf("reservation %q is of workflow %q, which is not there", e.ID(), ref.Workflow)
	}
	i, known, expected := about.Task, true, about.Flow == f
	if !expected {
		i, known = f.ids[ref.Task]
	}
	if !known || f.tasks[i].outcome != "" {
		return fmt.Errorf("reservation %q is of task %q, which workflow %q does not have open", e.ID(), ref.Task, ref.Workflow)
	}
	t := &f.tasks[i]
	t.reservation, t.live, t.tries, t.again, t.gone, t.was = e.ID(), e, ref.Try, false, "", nil
	t.site = e.r.Allotments[0].Resource.Site
	if !expected {
		f.at[e.ID()] = i
	}
	return nil
}

// followTask notes what a change does to a task.
func (s *State) followTask(kind change.Kind, e *Entry) {
	if e.r.Request.Task == nil {
		return
	}
	f, i := s.FlowOf(e)
	if f == nil || i < 0 || f.tasks[i].reservation != e.ID() {
		return
	}
	t := &f.tasks[i]
	switch kind {
	case change.Ended, change.Failed, change.Rejected, change.Lost, change.Expired, change.NoShow, change.Cancelled:
		if s.ledger.live[e.ID()] != nil {
			break
		}
		t.live = nil
		if f.w.Repair == berth.RepairBoth && !e.vacant {
			f.freed = append(f.freed, s.leftBy(e)...)
		}
		if t.outcome != "" {
			break
		}
		if t.was = e; !t.again {
			t.gone = kind
		}
	case change.Moved, change.Modified, change.Extended:
		t.moved = true
	case change.Vacated:
		if f.w.Repair == berth.RepairBoth && !t.moved {
			f.left = append(f.left, leftPlace{task: i, held: s.leftBy(e)})
		}
		return
	case change.Resized: // it keeps its place
		f.left = slices.DeleteFunc(f.left, func(p leftPlace) bool { return p.task == i })
		return
	default:
		return
	}
	s.workflows.disturb(f)
}

// leftBy returns what a reservation that is over has not used of its PEs and its stocks.
func (s *State) leftBy(e *Entry) (left []berth.Allotment) {
	for _, held := range [][]berth.Allotment{e.r.Allotments, e.r.Stocks} {
		for _, a := range held {
			if a.Start = max(a.Start, s.now); a.Start < a.End {
				left = append(left, a)
			}
		}
	}
	return left
}

// savedWorkflow is a live workflow in its written form.
type savedWorkflow struct {
	Workflow *berth.Workflow `json:"workflow"`
	End      berth.Time      `json:"end"`
	Tasks    []savedTask     `json:"tasks"`
}

type savedTask struct {
	Reservation string        `json:"reservation,omitempty"`
	Tries       int           `json:"tries,omitempty"`
	Outcome     berth.Outcome `json:"outcome,omitempty"`
	Ended       berth.Time    `json:"ended,omitempty"`
	Site        string        `json:"site,omitempty"` // of a workflow that moves files
}

func codeWorkflow(c *wire.Coder, w *savedWorkflow) {
	wire.Pointer(c, 1, &w.Workflow, wire.Workflow)
	wire.List(c, 2, &w.Tasks, func(c *wire.Coder, t *savedTask) {
		wire.String(c, 1, &t.Reservation)
		wire.Int(c, 2, &t.Tries)
		wire.Name(c, 3, &t.Outcome)
		wire.Int(c, 4, &t.Ended)
		wire.Name(c, 5, &t.Site)
		c.End()
	})
	wire.Int(c, 3, &w.End)
	c.End()
}

func (w *workflows) saved() []savedWorkflow {
	var all []savedWorkflow
	for _, f := range w.list {
		s := savedWorkflow{Workflow: f.w, End: f.end}
		for i := range f.tasks {
			t := &f.tasks[i]
			saved := savedTask{Reservation: t.reservation, Tries: t.tries, Outcome: t.outcome, Ended: t.ended}
			if len(f.w.Routes) > 0 {
				saved.Site = t.site
			}
			s.Tasks = append(s.Tasks, saved)
		}
		all = append(all, s)
	}
	return all
}

// restoreWorkflows reads what saved wrote, when the ledger is complete: every open task has a
// live reservation, and every live reservation of a task is that of an open one.
func (s *State) restoreWorkflows(all []savedWorkflow, live []savedReservation) error {
	for i := range all {
		in := &all[i]
		if in.Workflow == nil || in.Workflow.Validate() != nil || len(in.Tasks) != len(in.Workflow.Tasks) || s.workflows.byID[in.Workflow.ID] != nil {
			return fmt.Errorf("workflow %d is none, or is there twice", i)
		}
		f, err := NewFlow(in.Workflow)
		if err != nil {
			return fmt.Errorf("workflow %q: %w", in.Workflow.ID, err)
		}
		f.open, f.end = 0, in.End
		for k := range in.Tasks {
			t := &in.Tasks[k]
			f.tasks[k] = flowTask{reservation: t.Reservation, tries: t.Tries, site: t.Site, outcome: t.Outcome, ended: t.Ended}
			if t.Reservation != "" {
				f.at[t.Reservation] = k
			}
			if t.Outcome != "" {
				continue
			}
			f.open++
			e := s.ledger.live[t.Reservation]
			if e == nil || e.r.Request.Task == nil || e.r.Request.Task.Workflow != f.ID() || e.r.Request.Task.Task != f.w.Tasks[k].ID {
				return fmt.Errorf("task %q of workflow %q is open, and %q is not its reservation", f.w.Tasks[k].ID, f.ID(), t.Reservation)
			}
			f.tasks[k].live = e
		}
		s.workflows.list, s.workflows.byID[f.ID()] = append(s.workflows.list, f), f
	}
	for i := range live {
		ref, id := live[i].Request.Task, live[i].Request.ID
		if ref == nil {
			continue
		}
		f, at := s.FlowOf(s.ledger.live[id])
		if f == nil || at < 0 || f.tasks[at].outcome != "" || f.tasks[at].reservation != id {
			return fmt.Errorf("reservation %q is of an open task %q of workflow %q, which is not there", id, ref.Task, ref.Workflow)
		}
	}
	return nil
}
