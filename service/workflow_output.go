package service

import (
	"path/filepath"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// taskOutput returns the file for the output of a task of a workflow, as its site is told, by its
// place in the workflow and which try it is: a path from its folder, which may be a pattern.
func taskOutput(w *berth.Workflow, task, try int) string {
	if out := w.Tasks[task].Work.Output; out != "" {
		return out
	}
	return "berth-" + engine.TaskID(w.ID, task, try) + ".out"
}

// isPattern reports whether the name of a file for output is one that sites expand, such as
// out.%j, or that takes back that they do, as Slurm does for a backslash.
func isPattern(output string) bool { return strings.ContainsAny(output, `%\`) }

// OutputOf returns the file with the output of a task by its place in the workflow: empty while
// that is known to its site alone.
func (w *Workflow) OutputOf(task int) string {
	t := &w.Tasks[task]
	out := taskOutput(&w.Workflow, task, t.Tries)
	if isPattern(out) {
		return t.Output
	}
	if filepath.IsAbs(out) {
		return out
	}
	return filepath.Join(w.Workflow.Tasks[task].Work.Dir, out)
}

// noteOutput notes the file for the output of a workflow's task that its site tells, with a record
// of a number, if no one else knows its name.
func (c *Core) noteOutput(t *knownTask, number uint64) {
	if t.task.Key != flowKey || t.task.Output == "" {
		return
	}
	k := c.card(t.reservation)
	if k == nil || k.request.Task == nil || c.flows.byID[k.request.Task.Workflow] == nil {
		return
	}
	f := c.flows.byID[k.request.Task.Workflow]
	at := f.taskOf(t.reservation, k.request.Task)
	if is := &f.tasks[at]; is.reservation != t.reservation || is.output == t.task.Output || !isPattern(f.w.Tasks[at].Work.Output) {
		return
	}
	f = c.ownFlow(f.id, number)
	f.tasks[at].output = t.task.Output
	f.version++
}
