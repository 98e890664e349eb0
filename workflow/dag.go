package workflow

import (
	"math"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
)

// Task is one moldable task: it runs on any number of PEs, faster on more of
// them by Amdahl's law. Sequential is its time on one PE in seconds, 0 or more
// (a task of no time is booked for one second), Alpha the part of it that does
// not run in parallel, from 0 to 1.
type Task struct {
	ID         string
	Name       string // for people; may be empty
	Sequential float64
	Alpha      float64

	// Few and Most are the fewest and the most PEs that the task runs on; 0 is
	// no bound. With Few = Most it is rigid.
	Few, Most berth.Count
	// Measured, if given, is how long the task took on some numbers of PEs, and
	// replaces Sequential, Alpha, Few and Most: it runs on these numbers only.
	// PEs ascend and times fall. The slice must not be changed.
	Measured []Measurement
}

// Measurement is the run time of a task in seconds, measured on a number of PEs.
type Measurement struct {
	NPE     berth.Count
	Seconds float64
}

// Edge says that the task Child may start when the task Parent has ended.
type Edge struct{ Parent, Child string }

// MaxTasks bounds the tasks of one workflow.
const MaxTasks = 1 << 20

// Workflow is a directed acyclic graph of moldable tasks. It does not change
// after New, and tasks are known by their index in the order of New, which is
// also how ties are broken. The zero value has no tasks. It is safe for
// concurrent use.
type Workflow struct {
	tasks             []Task
	children, parents adjacency
	topological       []int32 // indices: parents first, the smallest index first among the free
}

// adjacency lists the neighbours of every task, ascending: those of task i are
// list[from[i]:from[i+1]].
type adjacency struct{ from, list []int32 }

func (a *adjacency) of(i int32) []int32 { return a.list[a.from[i]:a.from[i+1]] }

// New returns the workflow of these tasks and edges. The slices are not kept.
// An edge given twice counts once. Errors, all of code Invalid: no tasks or too
// many, a missing id or one used twice, a time that is negative, not a number
// or too long, an alpha outside [0,1], numbers of PEs or measurements that
// contradict themselves, an edge from or to an unknown task, and a cycle, which
// is named task by task. Cost: O((n + e) log(n + e)).
func New(tasks []Task, edges []Edge) (*Workflow, error) {
	index, err := indexed(tasks)
	if err != nil {
		return nil, err
	}
	pairs := make([][2]int32, 0, len(edges))
	for _, e := range edges {
		parent, ok := index[e.Parent]
		if !ok {
			return nil, berth.Errorf(berth.Invalid, "parents", "task %q names the parent %q, which is not a task of the workflow", e.Child, e.Parent)
		}
		child, ok := index[e.Child]
		if !ok {
			return nil, berth.Errorf(berth.Invalid, "children", "task %q names the child %q, which is not a task of the workflow", e.Parent, e.Child)
		}
		pairs = append(pairs, [2]int32{parent, child})
	}
	w := &Workflow{tasks: slices.Clone(tasks)}
	w.children = adjacent(len(tasks), pairs)
	for i, p := range pairs {
		pairs[i] = [2]int32{p[1], p[0]}
	}
	w.parents = adjacent(len(tasks), pairs)
	w.topological = w.kahn()
	if len(w.topological) < len(tasks) {
		return nil, berth.Errorf(berth.Invalid, "parents", "the tasks %s form a cycle; each waits for the one before it", w.cycle())
	}
	return w, nil
}

// Len returns the number of tasks.
func (w *Workflow) Len() int { return len(w.tasks) }

// Edges returns the number of edges.
func (w *Workflow) Edges() int { return len(w.children.list) }

// Task returns the task of index i, 0 ≤ i < Len.
func (w *Workflow) Task(i int) Task { return w.tasks[i] }

// Parents returns the indices of the tasks that task i waits for, ascending.
// The slice must not be changed.
func (w *Workflow) Parents(i int) []int32 { return w.parents.of(int32(i)) }

// Children returns the indices of the tasks that wait for task i, ascending.
// The slice must not be changed.
func (w *Workflow) Children(i int) []int32 { return w.children.of(int32(i)) }

// Topological returns all indices, parents before children; of the tasks whose
// parents are all listed the one of smallest index comes first. The slice must
// not be changed.
func (w *Workflow) Topological() []int32 { return w.topological }

// indexed checks the tasks one by one and returns the index of each id.
func indexed(tasks []Task) (map[string]int32, error) {
	if len(tasks) == 0 {
		return nil, berth.Errorf(berth.Invalid, "tasks", "none; a workflow needs at least one task")
	}
	if len(tasks) > MaxTasks {
		return nil, berth.Errorf(berth.Invalid, "tasks", "%d are more than the limit of %d", len(tasks), MaxTasks)
	}
	index := make(map[string]int32, len(tasks))
	total := 0.0
	for i, t := range tasks {
		if t.ID == "" {
			return nil, berth.Errorf(berth.Invalid, "id", "missing at task %d of the workflow; every task needs one", i+1)
		}
		if first, taken := index[t.ID]; taken {
			return nil, berth.Errorf(berth.Invalid, "id", "%q belongs to tasks %d and %d; every task needs its own", t.ID, first+1, i+1)
		}
		index[t.ID] = int32(i)
		if math.IsNaN(t.Sequential) || t.Sequential < 0 {
			return nil, berth.Errorf(berth.Invalid, "sequential", "task %q has %v s; want 0 or more", t.ID, t.Sequential)
		}
		if math.IsNaN(t.Alpha) || t.Alpha < 0 || t.Alpha > 1 {
			return nil, berth.Errorf(berth.Invalid, "alpha", "task %q has %v; want a number from 0 to 1", t.ID, t.Alpha)
		}
		if err := t.checkSizes(); err != nil {
			return nil, err
		}
		// One after another all tasks must fit the times that a calendar has.
		longest := max(t.Sequential, t.Time(1))
		if total += longest + 1; total >= berth.TimeLimit {
			return nil, berth.Errorf(berth.Invalid, "sequential", "task %q has %v s, and all tasks so far %.0f s; less than 2^42 s can be planned", t.ID, longest, total)
		}
	}
	return index, nil
}

// adjacent returns the second of each pair under its first, ascending and each once. Pairs are
// sorted by their seconds and then by their firsts, both by counting. Cost: O(n + e).
func adjacent(n int, pairs [][2]int32) adjacency {
	pairs = counted(n, counted(n, pairs, 1), 0)
	a := adjacency{from: make([]int32, n+1), list: make([]int32, 0, len(pairs))}
	for i, p := range pairs {
		if i > 0 && p == pairs[i-1] {
			continue
		}
		a.list = append(a.list, p[1])
		a.from[p[0]+1]++
	}
	for i := range n {
		a.from[i+1] += a.from[i]
	}
	return a
}

// counted returns pairs in the order of one of their halves, those that are equal there in the
// order in which they were.
func counted(n int, pairs [][2]int32, half int) [][2]int32 {
	at := make([]int32, n+1)
	for _, p := range pairs {
		at[p[half]+1]++
	}
	for i := range n {
		at[i+1] += at[i]
	}
	sorted := make([][2]int32, len(pairs))
	for _, p := range pairs {
		sorted[at[p[half]]] = p
		at[p[half]]++
	}
	return sorted
}

// kahn lists the tasks in topological order, smallest index first, and leaves
// out those on or behind a cycle.
func (w *Workflow) kahn() []int32 {
	waits := make([]int32, len(w.tasks))
	order := make([]int32, 0, len(w.tasks))
	var free heap
	for i := range waits {
		waits[i] = int32(len(w.Parents(i)))
		if waits[i] == 0 {
			free.push(int32(i))
		}
	}
	for len(free) > 0 {
		i := free.pop()
		order = append(order, i)
		for _, child := range w.children.of(i) {
			if waits[child]--; waits[child] == 0 {
				free.push(child)
			}
		}
	}
	return order
}

// cycleShown is how many tasks of a long cycle a message names.
const cycleShown = 12

// cycle names the tasks of one cycle, from the one of smallest index back to
// itself. There must be one.
func (w *Workflow) cycle() string {
	listed := make([]bool, len(w.tasks))
	for _, i := range w.topological {
		listed[i] = true
	}
	// Every task that is not listed has a parent that is not: going from
	// parent to parent must come round.
	at := int32(slices.Index(listed, false))
	seen := make([]int32, len(w.tasks)) // position in path, from 1
	var path []int32
	for seen[at] == 0 {
		path = append(path, at)
		seen[at] = int32(len(path))
		for _, parent := range w.parents.of(at) {
			if !listed[parent] {
				at = parent
				break
			}
		}
	}
	path = path[seen[at]-1:]
	slices.Reverse(path)
	first := slices.Index(path, slices.Min(path))
	path = slices.Concat(path[first:], path[:first+1])
	names := make([]string, len(path))
	for i, task := range path {
		names[i] = w.tasks[task].ID
	}
	if len(names) > cycleShown+1 {
		names = append(names[:cycleShown], "…", names[len(names)-1])
	}
	return strings.Join(names, " → ")
}

// heap is a binary heap of task indices, smallest first.
type heap []int32

func (h *heap) push(x int32) {
	s := append(*h, x)
	i := len(s) - 1
	for i > 0 && x < s[(i-1)/2] {
		s[i] = s[(i-1)/2]
		i = (i - 1) / 2
	}
	s[i] = x
	*h = s
}

func (h *heap) pop() int32 {
	s := *h
	top, x := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	i := 0
	for {
		child := 2*i + 1
		if child >= len(s) {
			break
		}
		if child+1 < len(s) && s[child+1] < s[child] {
			child++
		}
		if x <= s[child] {
			break
		}
		s[i] = s[child]
		i = child
	}
	if len(s) > 0 {
		s[i] = x
	}
	return top
}
