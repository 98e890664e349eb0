package flowfile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/yamltree"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

// Limits of single values. They are far beyond what is written by hand, and keep
// what is stored and shown small.
const (
	maxName   = 128  // bytes of a task's or workflow's name
	maxFile   = 1024 // bytes of a file's name
	maxWords  = 1000 // words of a command, variables of an environment, files of a task
	maxScript = 1 << 20
	maxTable  = 100 // measured run times of a task
)

// reader reads a file of YAML and collects its mistakes.
type reader struct {
	complaints
	opt      Options
	file     *File
	defaults *yamltree.Value
	drafts   []*draft
	byName   map[string]*draft
	runs     bool // one of the tasks at least has something to run
}

// draft is a task while its file is read.
type draft struct {
	Task
	index     int
	at        place
	name      string
	after     []reference
	inputs    []reference
	outputs   []reference
	few, most berth.Count
	seconds   float64 // on few PEs
	alpha     float64
	hasAlpha  bool
	// Which keys there are, right or wrong: what follows from a wrong one is not
	// told again.
	commanded, scripted, timed, tabled bool
	table                              []workflow.Measurement
}

// reference is a name that stands somewhere.
type reference struct {
	place
	name string
}

func placeOf(at yamltree.Place) place { return place{at.Line, at.Column} }

func readYAML(text []byte, name string, opt Options) (*File, error) {
	if len(text) > MaxBytes {
		return nil, berth.Errorf(berth.Invalid, "workflow", "%s:1:1: %d bytes of YAML, unpacked; a workflow has at most %d bytes and %d tasks", name, len(text), MaxBytes, MaxTasks)
	}
	tree, err := yamltree.Document{
		Name: name, Field: "workflow", What: "workflow", Empty: "a workflow needs the key tasks", Numbers: true,
	}.Parse(text)
	if err != nil {
		return nil, err
	}
	r := &reader{
		complaints: complaints{name: name}, opt: opt, byName: make(map[string]*draft),
		file: &File{Name: plainName(name), Source: name, Form: YAML, Report: workload.WorkflowReport{Name: name}},
	}
	r.document(tree)
	if r.err() == nil {
		r.assemble()
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	return r.file, nil
}

// document reads the outermost group.
func (r *reader) document(v *yamltree.Value) {
	var tasks *yamltree.Value
	var at place
	r.group(v, "", "a workflow", []key{
		{"workflow", func(v *yamltree.Value) { r.label(v, "workflow", &r.file.Name) }},
		{"account", func(v *yamltree.Value) { r.text(v, "account", "a name", maxName, &r.file.Account) }},
		{"qos", func(v *yamltree.Value) { r.text(v, "qos", "a name", maxName, &r.file.QOS) }},
		{"defaults", func(v *yamltree.Value) {
			if r.is(v, "defaults", yamltree.Map, "keys of tasks") {
				r.defaults = v
			}
		}},
		{"tasks", func(v *yamltree.Value) { tasks, at = v, placeOf(v.Place) }},
	})
	if r.defaults != nil {
		// Read once for themselves, so that a mistake in them is told once.
		r.group(r.defaults, "defaults", "defaults", r.settings(&draft{}, "defaults"))
	}
	switch {
	case tasks == nil:
		if v.Kind == yamltree.Map {
			r.fail(placeOf(v.Place), "tasks", "missing; a workflow needs at least one task")
		}
		return
	case !r.is(tasks, "tasks", yamltree.List, "a list of tasks, each with a dash"):
		return
	case len(tasks.Items) == 0:
		r.fail(at, "tasks", "an empty list; a workflow needs at least one task")
		return
	case len(tasks.Items) > MaxTasks:
		r.fail(at, "tasks", "%d tasks; at most %d can be promised and run", len(tasks.Items), MaxTasks)
		return
	}
	r.runs = slices.ContainsFunc(tasks.Items, func(item *yamltree.Value) bool {
		return slices.ContainsFunc(item.Members, func(m yamltree.Member) bool { return m.Key == "command" || m.Key == "script" })
	})
	for i, item := range tasks.Items {
		r.task(item, i)
	}
}

// task reads a task.
func (r *reader) task(v *yamltree.Value, i int) {
	path := fmt.Sprintf("tasks[%d]", i)
	if !r.is(v, path, yamltree.Map, "the keys of a task, such as name and command") {
		return
	}
	d := &draft{index: i, at: placeOf(v.Place), few: 1, most: 1}
	d.Line = v.Line
	if r.defaults != nil {
		r.inherit(d, v)
	}
	named := false
	keys := append([]key{
		{"name", func(v *yamltree.Value) { named = true; r.label(v, path+".name", &d.name) }},
		{"command", func(v *yamltree.Value) { d.commanded = true; r.command(v, path+".command", d) }},
		{"script", func(v *yamltree.Value) { d.scripted = true; r.script(v, path+".script", d) }},
		{"after", func(v *yamltree.Value) { d.after = r.names(v, path+".after", "tasks", maxName) }},
		{"inputs", func(v *yamltree.Value) { d.inputs = r.names(v, path+".inputs", "files", maxFile) }},
		{"outputs", func(v *yamltree.Value) { d.outputs = r.outputs(v, path+".outputs") }},
	}, r.settings(d, path)...)
	r.group(v, path, "a task", keys)
	if !named {
		r.fail(d.at, path+".name", "missing; every task needs a name of its own")
		return
	}
	if first, taken := r.byName[d.name]; taken && d.name != "" {
		r.fail(d.at, path+".name", "%q: a second task of this name, the first is in line %d", d.name, first.at.line)
		return
	}
	r.byName[d.name] = d
	r.drafts = append(r.drafts, d)
	r.whole(d, path)
}

// inherit takes what a task does not say itself from the defaults. time, times, pes
// and serial_fraction belong together: a table stands for all of them.
func (r *reader) inherit(d *draft, v *yamltree.Value) {
	has := func(names ...string) bool {
		return slices.ContainsFunc(v.Members, func(m yamltree.Member) bool { return slices.Contains(names, m.Key) })
	}
	quiet := &reader{complaints: complaints{name: r.name}, opt: r.opt}
	for _, k := range quiet.settings(d, "defaults") {
		at := slices.IndexFunc(r.defaults.Members, func(m yamltree.Member) bool { return m.Key == k.name })
		switch {
		case at < 0 || has(k.name):
		case k.name == "times" && has("time", "pes", "serial_fraction"):
		case has("times") && slices.Contains([]string{"time", "pes", "serial_fraction"}, k.name):
		case (k.name == "version" || k.name == "licences") && has("software"):
		default:
			k.read(r.defaults.Members[at].Value)
		}
	}
}

// settings are the keys that a task and the defaults have in common.
func (r *reader) settings(d *draft, path string) []key {
	path += "."
	return []key{
		{"time", func(v *yamltree.Value) {
			d.timed = true
			if t, ok := r.duration(v, path+"time"); ok {
				d.seconds = float64(t)
			}
		}},
		{"times", func(v *yamltree.Value) { d.tabled = true; r.times(v, path+"times", d) }},
		{"pes", func(v *yamltree.Value) { r.pes(v, path+"pes", d) }},
		{"serial_fraction", func(v *yamltree.Value) {
			d.hasAlpha = r.fraction(v, path+"serial_fraction", &d.alpha)
		}},
		{"retries", func(v *yamltree.Value) { r.count(v, path+"retries", &d.Retries, 0, MaxRetries) }},
		{"dir", func(v *yamltree.Value) {
			if r.text(v, path+"dir", "an absolute path", maxFile, &d.Dir) && !strings.HasPrefix(d.Dir, "/") {
				r.wrong(v, path+"dir", "want an absolute path, such as /scratch/me")
			}
		}},
		{"env", func(v *yamltree.Value) { r.env(v, path+"env", d) }},
		{"software", func(v *yamltree.Value) { r.text(v, path+"software", "a name", maxName, &d.Needs.Software) }},
		{"version", func(v *yamltree.Value) {
			r.text(v, path+"version", "a version, such as \"2.12\"", maxName, &d.Needs.Version)
		}},
		{"licences", func(v *yamltree.Value) { r.count(v, path+"licences", &d.Needs.Licences, 0, berth.MaxLicences) }},
		{"memory", func(v *yamltree.Value) { r.size(v, path+"memory", &d.Needs.MemoryMB) }},
		{"storage", func(v *yamltree.Value) { r.size(v, path+"storage", &d.Needs.StorageMB) }},
		{"accelerators", func(v *yamltree.Value) {
			r.count(v, path+"accelerators", &d.Needs.Accelerators, 0, berth.MaxAccelerators)
		}},
		{"constraint", func(v *yamltree.Value) {
			r.text(v, path+"constraint", "features, such as \"intel&ib\"", maxName, &d.Needs.Constraint)
		}},
		{"partition", func(v *yamltree.Value) { r.text(v, path+"partition", "a name", maxName, &d.Needs.Partition) }},
		{"site", func(v *yamltree.Value) { r.text(v, path+"site", "a name", maxName, &d.Site) }},
		{"account", func(v *yamltree.Value) { r.text(v, path+"account", "a name", maxName, &d.Account) }},
		{"qos", func(v *yamltree.Value) { r.text(v, path+"qos", "a name", maxName, &d.QOS) }},
	}
}

// whole finds what no single key of a task can see.
func (r *reader) whole(d *draft, path string) {
	switch {
	case !d.commanded && !d.scripted && r.runs:
		r.fail(d.at, path+".command", "task %q has neither command nor script, and other tasks have one; want one of them, or none in the file", d.name)
	case d.commanded && d.scripted:
		r.fail(d.at, path+".script", "task %q has a command and a script; want one of them", d.name)
	}
	switch {
	case d.tabled && (d.timed || d.hasAlpha):
		r.fail(d.at, path+".times", "task %q has times, and time or serial_fraction as well; the table says it all", d.name)
	case !d.tabled && !d.timed:
		r.fail(d.at, path+".time", "task %q has no run time; give time, such as 10m, or times for several numbers of PEs", d.name)
	case d.hasAlpha && d.few == d.most:
		r.fail(d.at, path+".serial_fraction", "task %q has one, but runs on %d PEs only; give a range, such as pes: 1-16, or leave it out", d.name, d.few)
	}
	request := berth.Rigid("x", 0, 0, 1, 1, 1) // only to have the requirements judged
	request.Requirements = d.Needs
	if mistake, is := errors.AsType[*berth.Error](request.Validate()); is {
		r.fail(d.at, path+"."+mistake.Field, "task %q: %s", d.name, mistake.Msg)
	}
}
