package workload

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workflow"
)

// WfVersions are the versions of WfFormat that are read and written.
func WfVersions() []string { return []string{"1.3", "1.4", "1.5", "1.6"} }

// WorkflowOptions say how to read a workflow file.
type WorkflowOptions struct {
	// Alpha is the serial fraction of the tasks that have none in the file.
	Alpha float64
	// Draw, if given, is asked instead for those tasks, by their place in the file.
	Draw func(task int) float64
	// Runs asks for what the tasks run.
	Runs bool
}

// of returns the serial fraction of a task that has none in the file.
func (o *WorkflowOptions) of(task int) float64 {
	if o.Draw != nil {
		return o.Draw(task)
	}
	return o.Alpha
}

// WorkflowRun is what a task ran, if the file tells.
type WorkflowRun struct {
	Line            int      // of the task in the file
	Command         []string // program and arguments; empty if the file does not tell
	Inputs, Outputs []string // names of files
}

// WorkflowFile is what a workflow file held.
type WorkflowFile struct {
	Name    string // of the workflow; the file's, if it has none
	Version string // of WfFormat
	System  string // that ran it, such as Pegasus; may be empty
	Flow    *workflow.Workflow
	Runs    []WorkflowRun // of each task; nil unless asked for
	// Sizes are those of files, in bytes, if the file tells them; nil unless asked for.
	Sizes  map[string]int64
	Report WorkflowReport
}

// WorkflowReport counts what a reader should know about a workflow file.
type WorkflowReport struct {
	Name         string `json:"name"` // of the file
	Tasks        int    `json:"tasks"`
	Edges        int    `json:"edges"`         // different ones
	Duplicates   int    `json:"duplicates"`    // names repeated in a list of parents or children
	OneSided     int    `json:"one_sided"`     // edges that only one of the two tasks lists, where both kinds of list are used
	NoRunTime    int    `json:"no_run_time"`   // tasks without one; their time is 0
	ZeroRunTime  int    `json:"zero_run_time"` // tasks that ran for 0 s
	Multiplied   int    `json:"multiplied"`    // tasks that ran on several cores: time × cores is their sequential time
	NoAlpha      int    `json:"no_alpha"`      // tasks that took WorkflowOptions.Alpha
	UnknownTasks int    `json:"unknown_tasks"` // of the execution, which the specification does not have
}

// Notes tells, a line each, what is not as one would expect; none if all is.
func (r *WorkflowReport) Notes() []string {
	var notes []string
	for _, note := range []struct {
		n    int
		what string
	}{
		{r.NoRunTime, "without a run time; each is booked for one second"},
		{r.ZeroRunTime, "ran for 0 s; each is booked for one second"},
		{r.Multiplied, "ran on several cores; run time × cores is taken for the time on one PE"},
		{r.UnknownTasks, "of the execution are not in the specification and left out"},
	} {
		if note.n > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d of %d tasks %s", r.Name, note.n, r.Tasks, note.what))
		}
	}
	if r.Duplicates > 0 {
		notes = append(notes, fmt.Sprintf("%s: %d edges are listed twice and count once", r.Name, r.Duplicates))
	}
	if r.OneSided > 0 {
		notes = append(notes, fmt.Sprintf("%s: %d of %d edges are listed by one of their two tasks only", r.Name, r.OneSided, r.Edges))
	}
	return notes
}

// OpenWorkflow reads a workflow in WfFormat, gzip-compressed or not. A file that
// is missing or may not be read, or that is a directory, is an *berth.Error
// with code Invalid; so are the mistakes in its content, as ReadWorkflow has
// them. Other failures of the system are wrapped.
func OpenWorkflow(path string, opt WorkflowOptions) (*WorkflowFile, error) {
	file, err := openFile("workflow", path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read from: nothing can be lost
	return ReadWorkflow(file, path, opt)
}

// ReadWorkflow reads a workflow in WfFormat 1.3 to 1.6, the format of WfCommons
// for executions of Pegasus, Makeflow, Nextflow and others (Coleman et al., FGCS
// 2022). Its tasks keep the order of the file.
//
// Where there is workflow.specification, its tasks are meant, and the run times
// are those of workflow.execution; else workflow.tasks, or workflow.jobs as it
// was called once, has both, as up to 1.4. There a parent or child may be named
// by its name instead of its id, and a task without id is known by its name.
// The edges are those that parents and children list, together.
//
// A task's sequential time is its run time, runtimeInSeconds or runtime; with
// coreCount, or cores, above 1 it is multiplied by that, as if the cores had
// been used fully. alpha in the task is its serial fraction. What it ran is its command,
// with program and arguments, and its files: inputFiles and outputFiles, or up to
// 1.4 files with their link, input or output. The size of a file is its sizeInBytes, or size, in
// specification.files or there. What is odd, but
// can be understood, is counted in the report. Properties that are not needed
// are read over, for the format allows any.
//
// An *berth.Error with code Invalid, naming file, line, column and task, says
// that the file is not JSON, has another version or another type of value than
// it should, an object that names a property twice, a task without id or one
// whose id is taken, in specification or execution, a time or a number of cores
// that is negative or too large, an alpha outside [0,1] or one in the
// execution, where it would go unheard, a parent or child that does not exist,
// no task, or a cycle, which is named task by task. Cost: O(bytes + e log e).
func ReadWorkflow(r io.Reader, name string, opt WorkflowOptions) (*WorkflowFile, error) {
	if !(0 <= opt.Alpha && opt.Alpha <= 1) {
		return nil, berth.Errorf(berth.Invalid, "alpha", "%v; want a number from 0 to 1", opt.Alpha)
	}
	l, err := newLines(r, name)
	if err != nil {
		return nil, refield(err, "workflow")
	}
	doc, root, err := readDocument(l)
	if err != nil {
		return nil, refield(err, "workflow")
	}
	w := &wfReader{document: doc, opt: opt, old: true, byID: map[string]int32{}, byName: map[string]int32{}}
	w.Name = strings.TrimSuffix(strings.TrimSuffix(filepath.Base(name), ".gz"), ".json")
	w.Report.Name = name
	if err := w.root(root); err != nil {
		return nil, err
	}
	return &w.WorkflowFile, nil
}

// wfReader collects a workflow.
type wfReader struct {
	*document
	WorkflowFile
	opt    WorkflowOptions
	old    bool // the layout up to 1.4
	tasks  []wfTask
	byID   map[string]int32
	byName map[string]int32 // -1 where several tasks have the name; old layout only
	flow   node             // workflow
}

// wfTask is a task as it stands in the file.
type wfTask struct {
	at                node
	id, name          string
	parents, children node
	alpha             float64
	hasAlpha, hasRun  bool
	run, cores        float64
	executed          node // its entry of the execution
}

// root reads the outermost object.
func (w *wfReader) root(root node) error {
	var version, system node
	err := w.members(root, func(name string, value node) error {
		if !w.given(value) {
			return nil
		}
		switch name {
		case "name":
			text, err := w.string(value, name)
			w.Name = cmp.Or(text, w.Name)
			return err
		case "schemaVersion":
			version = value
		case "wms", "runtimeSystem":
			system = value
		case "workflow":
			w.flow = value
			return w.object(value, name)
		}
		return nil
	})
	if err == nil {
		err = w.version(root, version)
	}
	if err == nil && w.given(system) {
		err = w.system(system)
	}
	switch {
	case err != nil:
		return err
	case !w.given(w.flow):
		return w.bad(root, "workflow", "missing; a file in WfFormat has name, schemaVersion and workflow")
	}
	if err := w.layout(); err != nil {
		return err
	}
	return w.assemble()
}

func (w *wfReader) version(root, value node) error {
	want := "want \"" + strings.Join(WfVersions(), "\", \"") + "\""
	if !w.given(value) {
		return w.bad(root, "schemaVersion", "missing; "+want)
	}
	text, err := w.string(value, "schemaVersion")
	if err != nil {
		return err
	}
	if slices.Contains(WfVersions(), text) {
		w.Version = text
		return nil
	}
	return w.bad(value, "schemaVersion", w.shown(value)+" is not read; "+want)
}

func (w *wfReader) system(value node) error {
	if err := w.object(value, "runtimeSystem"); err != nil {
		return err
	}
	return w.members(value, func(name string, value node) (err error) {
		if name == "name" && w.given(value) {
			w.System, err = w.string(value, name)
		}
		return err
	})
}

// layout finds the tasks in the workflow, and reads them.
func (w *wfReader) layout() error {
	var specification, execution, tasks, jobs node
	err := w.members(w.flow, func(name string, value node) error {
		if !w.given(value) {
			return nil
		}
		switch name {
		case "specification":
			specification = value
			w.old = false
			return w.object(value, name)
		case "execution":
			execution = value
			return w.object(value, name)
		case "tasks":
			tasks = value
			return w.array(value, name)
		case "jobs":
			jobs = value
			return w.array(value, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if w.old {
		if !w.given(tasks) {
			tasks = jobs
		}
		if !w.given(tasks) {
			return w.bad(w.flow, "specification", "missing; a workflow has specification.tasks, or tasks up to version 1.4")
		}
		return w.taskList(tasks)
	}
	if tasks, err = w.tasksOf(specification, "specification"); err != nil {
		return err
	}
	if !w.given(tasks) {
		return w.bad(specification, "tasks", "missing; a specification lists the tasks")
	}
	if err := w.taskList(tasks); err != nil {
		return err
	}
	if err := w.sizesOf(specification); err != nil {
		return err
	}
	if !w.given(execution) {
		return nil
	}
	if tasks, err = w.tasksOf(execution, "execution"); err != nil || !w.given(tasks) {
		return err
	}
	return w.elements(tasks, w.executed)
}

// tasksOf returns the list tasks of an object.
func (w *wfReader) tasksOf(object node, of string) (list node, err error) {
	err = w.members(object, func(name string, value node) error {
		if name != "tasks" || !w.given(value) {
			return nil
		}
		list = value
		return w.array(value, of+".tasks")
	})
	return list, err
}

// quoted returns a task's name for messages.
func quoted(id string) string { return strconv.Quote(shown([]byte(id))) }
