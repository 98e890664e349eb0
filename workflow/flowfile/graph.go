package flowfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/nearest"
	"github.com/berth-hpc/berth/workflow"
)

// assemble makes the workflow of the tasks: what they wait for follows from after
// and from files.
func (r *reader) assemble() {
	var edges []workflow.Edge
	parents := make([][]int, len(r.drafts))
	told := make(map[[2]int]bool)
	link := func(parent, child *draft) {
		if pair := [2]int{parent.index, child.index}; !told[pair] {
			told[pair] = true
			edges = append(edges, workflow.Edge{Parent: parent.name, Child: child.name})
			parents[child.index] = append(parents[child.index], parent.index)
		}
	}
	writers := r.writers()
	for _, d := range r.drafts {
		for _, ref := range d.after {
			parent, known := r.byName[ref.name]
			switch {
			case !known:
				names := slices.Sorted(maps.Keys(r.byName))
				r.fail(ref.place, fmt.Sprintf("tasks[%d].after", d.index), "%q is not a task of the workflow%s", ref.name, nearest.Hint(ref.name, names))
			case parent == d:
				r.fail(ref.place, fmt.Sprintf("tasks[%d].after", d.index), "task %q waits for itself", d.name)
			default:
				link(parent, d)
			}
		}
		for _, ref := range d.inputs {
			switch parent := writers[ref.name]; parent {
			case nil: // from outside
			case d:
				r.fail(ref.place, fmt.Sprintf("tasks[%d].inputs", d.index), "task %q reads %q, which it writes itself; leave it out of the inputs", d.name, ref.name)
			default:
				link(parent, d)
			}
		}
	}
	if r.err() != nil {
		return
	}
	if r.cycle(parents) {
		return
	}
	r.build(edges)
}

// writers returns the task that writes each file.
func (r *reader) writers() map[string]*draft {
	writers := make(map[string]*draft)
	for _, d := range r.drafts {
		for _, ref := range d.outputs {
			first, twice := writers[ref.name]
			if twice {
				r.fail(ref.place, fmt.Sprintf("tasks[%d].outputs", d.index), "task %q writes %q, as task %q at line %d does; only one task may write a file", d.name, ref.name, first.name, first.at.line)
				continue
			}
			writers[ref.name] = d
		}
	}
	return writers
}

// cycleShown is how many tasks of a long cycle a message names.
const cycleShown = 8

// cycle tells about a cycle, if there is one: with the line of each task.
func (r *reader) cycle(parents [][]int) bool {
	const onPath, done = 1, 2
	state, next := make([]uint8, len(parents)), make([]int, len(parents))
	for first := range parents {
		if state[first] == done {
			continue
		}
		// A walk to the parents without recursion, for chains may be long.
		path := []int{first}
		state[first] = onPath
		for len(path) > 0 {
			at := path[len(path)-1]
			if next[at] == len(parents[at]) {
				state[at] = done
				path = path[:len(path)-1]
				continue
			}
			parent := parents[at][next[at]]
			next[at]++
			switch state[parent] {
			case 0:
				state[parent] = onPath
				path = append(path, parent)
			case onPath:
				r.failCycle(path[slices.Index(path, parent):])
				return true
			}
		}
	}
	return false
}

// failCycle tells about a cycle of tasks that each wait for the next one.
func (r *reader) failCycle(path []int) {
	slices.Reverse(path)
	least := slices.Index(path, slices.Min(path))
	path = slices.Concat(path[least:], path[:least+1])
	var shown []string
	for _, i := range path {
		shown = append(shown, fmt.Sprintf("%q (line %d)", r.drafts[i].name, r.drafts[i].at.line))
	}
	if len(shown) > cycleShown+1 {
		shown = append(shown[:cycleShown], "…", shown[len(shown)-1])
	}
	first := r.drafts[path[0]]
	r.fail(first.at, fmt.Sprintf("tasks[%d].after", first.index), "the tasks %s form a cycle; each waits for the one before it", strings.Join(shown, " → "))
}

// build makes the workflow.
func (r *reader) build(edges []workflow.Edge) {
	f := r.file
	tasks := make([]workflow.Task, len(r.drafts))
	for i, d := range r.drafts {
		t := workflow.Task{ID: d.name, Name: d.name}
		switch {
		case d.table != nil:
			t.Measured = d.table
		case d.few == d.most:
			t.Few, t.Most = d.few, d.most
			t.Sequential, t.Alpha = d.seconds, 1
		default:
			t.Few, t.Most = d.few, d.most
			t.Alpha = d.alpha
			if !d.hasAlpha {
				f.Report.NoAlpha++
				t.Alpha = r.opt.Alpha
				if r.opt.Draw != nil {
					t.Alpha = r.opt.Draw(i)
				}
			}
			// The time is that on the fewest PEs.
			t.Sequential = d.seconds / (t.Alpha + float64((1-t.Alpha)/float64(d.few)))
		}
		tasks[i] = t
		for _, ref := range d.inputs {
			d.Inputs = append(d.Inputs, ref.name)
		}
		for _, ref := range d.outputs {
			d.Outputs = append(d.Outputs, ref.name)
		}
		f.Tasks = append(f.Tasks, d.Task)
	}
	flow, err := workflow.New(tasks, edges)
	if mistake, is := errors.AsType[*berth.Error](err); is {
		r.fail(place{line: 1}, mistake.Field, "%s", mistake.Msg)
		return
	}
	f.Flow = flow
	f.Report.Tasks, f.Report.Edges = flow.Len(), flow.Edges()
}
