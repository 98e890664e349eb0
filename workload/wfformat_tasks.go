package workload

import (
	"errors"
	"fmt"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workflow"
)

// maxCores bounds the cores of a task, as PEs are bounded.
const maxCores = berth.MaxPEs

// taskList reads the tasks.
func (w *wfReader) taskList(list node) error {
	return w.elements(list, func(value node) error {
		t, err := w.task(value)
		if err != nil {
			return err
		}
		switch {
		case t.id == "" && w.old && t.name != "":
			t.id = t.name
		case t.id == "":
			return w.bad(value, "id", fmt.Sprintf("missing at task %d of the list; every task needs one", len(w.tasks)+1))
		}
		if first, taken := w.byID[t.id]; taken {
			line, _ := w.place(w.tasks[first].at.at)
			return w.bad(value, "id", fmt.Sprintf("task %s is at line %d already; every task needs its own", quoted(t.id), line))
		}
		n := int32(len(w.tasks))
		if n == workflow.MaxTasks {
			return w.bad(value, "tasks", fmt.Sprintf("more than the limit of %d", workflow.MaxTasks))
		}
		w.byID[t.id] = n
		if w.old && t.name != "" {
			if _, shared := w.byName[t.name]; shared {
				n = -1
			}
			w.byName[t.name] = n
		}
		w.tasks = append(w.tasks, t)
		return nil
	})
}

// task reads what matters of an object of the specification, or of the old
// layout. Times may stand in either.
func (w *wfReader) task(object node) (wfTask, error) {
	t := wfTask{at: object, cores: 1}
	if err := w.object(object, "tasks"); err != nil {
		return t, err
	}
	var alpha node
	err := w.members(object, func(name string, value node) (err error) {
		if !w.given(value) {
			return nil
		}
		switch name {
		case "id":
			t.id, err = w.string(value, name)
		case "name":
			t.name, err = w.string(value, name)
		case "parents":
			t.parents, err = value, w.array(value, name)
		case "children":
			t.children, err = value, w.array(value, name)
		case "alpha":
			alpha = value
		}
		return err
	})
	if err == nil && w.given(alpha) {
		t.hasAlpha = true
		t.alpha, err = w.number(alpha, "alpha", t.called(), 1)
	}
	if err == nil {
		err = w.runTime(object, &t)
	}
	return t, err
}

// called returns how messages name a task.
func (t *wfTask) called() string {
	if t.id == "" {
		return t.name
	}
	return t.id
}

// runTime reads the run time and the cores of a task from an object about it.
func (w *wfReader) runTime(object node, t *wfTask) error {
	var seconds, run, count, cores node
	if err := w.members(object, func(name string, value node) error {
		switch name {
		case "runtimeInSeconds":
			seconds = value
		case "runtime":
			run = value
		case "coreCount":
			count = value
		case "cores":
			cores = value
		}
		return nil
	}); err != nil {
		return err
	}
	var err error
	field := "runtimeInSeconds"
	if !w.given(seconds) {
		seconds, field = run, "runtime"
	}
	if w.given(seconds) {
		t.hasRun = true
		if t.run, err = w.number(seconds, field, t.called(), berth.TimeLimit); err != nil {
			return err
		}
	}
	field = "coreCount"
	if !w.given(count) {
		count, field = cores, "cores"
	}
	if w.given(count) {
		t.cores, err = w.number(count, field, t.called(), maxCores)
	}
	return err
}

// executed reads an object of the execution.
func (w *wfReader) executed(object node) error {
	if err := w.object(object, "execution.tasks"); err != nil {
		return err
	}
	id, alpha := "", node{}
	if err := w.members(object, func(name string, value node) (err error) {
		if !w.given(value) {
			return nil
		}
		switch name {
		case "id":
			id, err = w.string(value, name)
		case "alpha":
			alpha = value
		}
		return err
	}); err != nil {
		return err
	}
	n, known := w.byID[id]
	switch {
	case id == "":
		return w.bad(object, "id", "missing at a task of the execution")
	case w.given(alpha):
		return w.bad(alpha, "alpha", "task "+quoted(id)+" has it in the execution; it belongs in workflow.specification.tasks")
	case !known:
		w.Report.UnknownTasks++
		return nil
	}
	t := &w.tasks[n]
	if w.given(t.executed) {
		line, _ := w.place(t.executed.at)
		return w.bad(object, "id", fmt.Sprintf("task %s of the execution is at line %d already", quoted(id), line))
	}
	t.executed = object
	return w.runTime(object, t)
}

// assemble makes the workflow of what was read.
func (w *wfReader) assemble() error {
	edges, err := w.edges()
	if err != nil {
		return err
	}
	tasks := make([]workflow.Task, len(w.tasks))
	r := &w.Report
	for i := range w.tasks {
		t := &w.tasks[i]
		tasks[i] = workflow.Task{ID: t.id, Name: t.name, Sequential: t.run, Alpha: t.alpha}
		if !t.hasAlpha {
			tasks[i].Alpha = w.opt.of(i)
			r.NoAlpha++
		}
		switch {
		case !t.hasRun:
			r.NoRunTime++
		case t.run == 0:
			r.ZeroRunTime++
		case t.cores > 1:
			tasks[i].Sequential *= t.cores
			r.Multiplied++
		}
	}
	w.Flow, err = workflow.New(tasks, edges)
	if mistake, is := errors.AsType[*berth.Error](err); is {
		return berth.Errorf(mistake.Code, mistake.Field, "%s: %s", w.name, mistake.Msg)
	}
	if err != nil {
		return err
	}
	r.Tasks, r.Edges = w.Flow.Len(), w.Flow.Edges()
	if w.opt.Runs {
		return w.runs()
	}
	return nil
}

// Who lists an edge.
const (
	byChild  = 1 << iota // among its parents
	byParent             // among its children
)

// edges returns the edges of both kinds of list, each once, in the order of
// the file.
func (w *wfReader) edges() ([]workflow.Edge, error) {
	told := make(map[[2]int32]int)
	var order [][2]int32
	kinds := 0
	add := func(parent, child int32, by int) {
		edge := [2]int32{parent, child}
		had := told[edge]
		if had == 0 {
			order = append(order, edge)
		}
		if had&by != 0 {
			w.Report.Duplicates++
		}
		told[edge] = had | by
		kinds |= by
	}
	for i := range w.tasks {
		t, me := &w.tasks[i], int32(i)
		if err := w.named(t.parents, "parents", t, func(other int32) { add(other, me, byChild) }); err != nil {
			return nil, err
		}
		if err := w.named(t.children, "children", t, func(other int32) { add(me, other, byParent) }); err != nil {
			return nil, err
		}
	}
	edges := make([]workflow.Edge, len(order))
	for i, edge := range order {
		edges[i] = workflow.Edge{Parent: w.tasks[edge[0]].id, Child: w.tasks[edge[1]].id}
		if told[edge] != kinds {
			w.Report.OneSided++
		}
	}
	return edges, nil
}

// named calls visit with the index of every task that a list of parents or
// children names.
func (w *wfReader) named(list node, field string, t *wfTask, visit func(int32)) error {
	if !w.given(list) {
		return nil
	}
	return w.elements(list, func(value node) error {
		id, err := w.string(value, field)
		if err != nil {
			return err
		}
		other, known := w.byID[id]
		if !known {
			other, known = w.byName[id]
		}
		one := map[string]string{"parents": "parent", "children": "child"}[field]
		switch {
		case !known:
			return w.bad(value, field, fmt.Sprintf("task %s names the %s %s, which is not a task of the workflow", quoted(t.id), one, quoted(id)))
		case other < 0:
			return w.bad(value, field, fmt.Sprintf("task %s names the %s %s, which several tasks are called; want an id", quoted(t.id), one, quoted(id)))
		}
		visit(other)
		return nil
	})
}
