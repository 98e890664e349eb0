// Package flowfile reads workflows that are to be planned or run, in WfFormat or
// in Berth's own YAML: the tasks for the planners, and what each of them runs,
// reads, writes and needs. It plans nothing and runs nothing.
package flowfile

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

// Form is the notation of a file.
type Form string

// The forms.
const (
	WfFormat Form = "wfformat"
	YAML     Form = "yaml"
)

// The limits of a file that is to run. A file in WfFormat that is only planned may
// be larger, see workflow.MaxTasks.
const (
	MaxTasks   = 10_000
	MaxBytes   = 4 << 20 // of YAML, unpacked: some 400 for each task; reading a MiB takes a second
	MaxErrors  = 20      // complaints about one file
	MaxRetries = 100
	MaxTime    = 366 * 24 * 3600 // seconds; one task that runs for longer is a mistake
)

// Options say how to read a file.
type Options struct {
	// Alpha is the serial fraction of tasks that may run on several numbers of PEs
	// and say none; Draw, if given, is asked instead, by the task's place in the file.
	Alpha float64
	Draw  func(task int) float64
}

// File is what a workflow file holds.
type File struct {
	Name   string // of the workflow; the file's, if it has none
	Source string // the file's, as it was opened
	// Account and QOS are those of tasks that name none.
	Account, QOS string
	Form         Form
	Flow         *workflow.Workflow
	Tasks        []Task // by index of Flow
	// Sizes are those of files that tasks write, in bytes, if they are told.
	Sizes  map[string]int64
	Report workload.WorkflowReport
}

// Task is what a task runs and needs.
type Task struct {
	Line            int      // of the file
	Command         []string // program and arguments, which no shell reads
	Script          string   // or a script, which begins with #!
	Dir             string   // absolute; empty is where the workflow is submitted
	Env             []string // NAME=value
	Inputs, Outputs []string // names of files, in the order of the file
	Retries         int      // how often it may be tried again
	Needs           berth.Requirements
	Site            string // the only one where it can run, if one is named
	Account, QOS    string // its own, if they are named
}

// Runs reports whether the file tells what the task runs.
func (t *Task) Runs() bool { return len(t.Command) > 0 || t.Script != "" }

// Open reads a file, gzip-compressed or not. A file that is missing or may not be
// read is an *berth.Error of code Invalid, as are the mistakes in it.
func Open(path string, opt Options) (*File, error) {
	file, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, berth.Errorf(berth.Invalid, "workflow", "%s: no such file", path)
	case errors.Is(err, fs.ErrPermission):
		return nil, berth.Errorf(berth.Invalid, "workflow", "%s: no permission to read it", path)
	case err != nil:
		return nil, fmt.Errorf("open workflow: %w", err)
	}
	defer func() { _ = file.Close() }() // only read from: nothing can be lost
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, berth.Errorf(berth.Invalid, "workflow", "%s: a directory, not a file", path)
	}
	return Read(file, path, opt)
}

// Read reads a workflow. What begins with a brace is WfFormat, as
// workload.ReadWorkflow reads it; anything else is YAML (docs/workflow-files.md).
// name is the file's. In YAML all mistakes that can be found are told, up to
// MaxErrors, each as an *berth.Error of code Invalid that names file, line and
// column. Cost: O(bytes + e log e).
func Read(r io.Reader, name string, opt Options) (*File, error) {
	text, err := io.ReadAll(io.LimitReader(r, workload.MaxWorkflowBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	packed := text
	if bytes.HasPrefix(packed, []byte("\x1f\x8b")) {
		// What is damaged the other reader tells.
		if text, err = unpack(packed); err != nil {
			return readWfFormat(packed, name, opt)
		}
	}
	if len(text) > workload.MaxWorkflowBytes {
		return nil, berth.Errorf(berth.Invalid, "workflow", "%s:1:1: longer than 256 MiB, unpacked", name)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	trimmed := bytes.TrimLeft(text, " \t\r\n")
	switch {
	case len(trimmed) == 0:
		return nil, berth.Errorf(berth.Invalid, "workflow", "%s:1:1: empty; want a workflow in YAML or WfFormat", name)
	case trimmed[0] == '{':
		return readWfFormat(text, name, opt)
	default:
		return readYAML(text, name, opt)
	}
}

func unpack(text []byte) ([]byte, error) {
	zip, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(zip, workload.MaxWorkflowBytes+1))
}

func readWfFormat(text []byte, name string, opt Options) (*File, error) {
	read, err := workload.ReadWorkflow(bytes.NewReader(text), name, workload.WorkflowOptions{Alpha: opt.Alpha, Draw: opt.Draw, Runs: true})
	if err != nil {
		return nil, err
	}
	f := &File{Name: read.Name, Source: name, Form: WfFormat, Flow: read.Flow, Report: read.Report, Sizes: read.Sizes, Tasks: make([]Task, len(read.Runs))}
	for i, run := range read.Runs {
		f.Tasks[i] = Task{Line: run.Line, Command: run.Command, Inputs: run.Inputs, Outputs: run.Outputs}
	}
	return f, nil
}

// plainName is a file's name without directory and endings.
func plainName(path string) string {
	name := strings.TrimSuffix(filepath.Base(path), ".gz")
	return strings.TrimSuffix(strings.TrimSuffix(name, ".yaml"), ".yml")
}

// Writers returns the task that writes each file, by index. It panics if two
// write one; see Runnable.
func (f *File) Writers() map[string]int {
	writers := make(map[string]int)
	for i := range f.Tasks {
		for _, file := range f.Tasks[i].Outputs {
			if first, twice := writers[file]; twice && first != i {
				panic("flowfile: two tasks write " + file)
			}
			writers[file] = i
		}
	}
	return writers
}

// Reads returns how many bytes each task reads of what each of its parents writes, in the order of
// Flow.Parents; 0 where that is not told, and nil for tasks where nothing is told.
func (f *File) Reads() [][]int64 {
	reads := make([][]int64, len(f.Tasks))
	if len(f.Sizes) == 0 {
		return reads
	}
	writer := make(map[string]int)
	for i := range f.Tasks {
		for _, file := range f.Tasks[i].Outputs {
			if _, twice := writer[file]; !twice {
				writer[file] = i
			}
		}
	}
	for i := range f.Tasks {
		parents := f.Flow.Parents(i)
		for _, file := range f.Tasks[i].Inputs {
			parent, written := writer[file]
			at := slices.Index(parents, int32(parent))
			if !written || at < 0 || f.Sizes[file] == 0 {
				continue
			}
			if reads[i] == nil {
				reads[i] = make([]int64, len(parents))
			}
			reads[i][at] = min(reads[i][at]+f.Sizes[file], berth.MaxReads)
		}
	}
	return reads
}

// Runnable returns what stands in the way of running the workflow, or nil: too
// many tasks, a task without a command, a command that
// no system can start, a file that two tasks write, an input that a task behind
// writes. Of a file in YAML that has been read it is
// that no task has a command, if anything.
func (f *File) Runnable() error {
	c := &complaints{name: f.Source}
	if len(f.Tasks) > MaxTasks {
		c.fail(place{line: 1}, "tasks", "%d tasks; at most %d can be promised and run", len(f.Tasks), MaxTasks)
		return c.err()
	}
	writer := make(map[string]int)
	for i := range f.Tasks {
		t, id := &f.Tasks[i], f.Flow.Task(i).ID
		at := place{line: t.Line}
		if !t.Runs() {
			c.fail(at, "command", "task %q has none; without a command or a script it can be planned, but not run", id)
		}
		if k := slices.IndexFunc(t.Command, func(word string) bool { return strings.ContainsRune(word, 0) }); k >= 0 {
			c.fail(at, "command", "task %q: word %d holds a null byte, which no command can", id, k+1)
		}
		for _, file := range t.Outputs {
			if first, twice := writer[file]; twice && first != i {
				c.fail(at, "outputs", "task %q writes %q, as task %q at line %d does; only one task may write a file", id, file, f.Flow.Task(first).ID, f.Tasks[first].Line)
				continue
			}
			writer[file] = i
		}
	}
	return c.err()
}

// Larger returns a complaint about each task that needs more PEs than most, which
// is what the largest pool of where has, or nil.
func (f *File) Larger(most berth.Count, where string) error {
	c := &complaints{name: f.Source}
	for i := range f.Tasks {
		if t := f.Flow.Task(i); t.Fewest() > most {
			c.fail(place{line: f.Tasks[i].Line}, "pes", "task %q needs at least %d PEs; %s has %d at most", t.ID, t.Fewest(), where, most)
		}
	}
	return c.err()
}

// place is a place in a file, counted from 1; a column of 0 is not known.
type place struct{ line, column int }

// complaints collects mistakes.
type complaints struct {
	name string
	errs []error
	more int // beyond MaxErrors
}

func (c *complaints) fail(at place, field, format string, args ...any) {
	if len(c.errs) == MaxErrors {
		c.more++
		return
	}
	where := fmt.Sprintf("%s:%d", c.name, at.line)
	if at.column > 0 {
		where += fmt.Sprintf(":%d", at.column)
	}
	c.errs = append(c.errs, berth.Errorf(berth.Invalid, field, "%s: %s", where, fmt.Sprintf(format, args...)))
}

func (c *complaints) err() error {
	if c.more > 0 {
		return errors.Join(append(c.errs, berth.Errorf(berth.Invalid, "workflow", "%s: and %d more mistakes", c.name, c.more))...)
	}
	return errors.Join(c.errs...)
}
