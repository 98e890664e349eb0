package flowfile_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workflow/flowfile"
)

func read(text string) (*flowfile.File, error) {
	return flowfile.Read(strings.NewReader(text), "w.yaml", flowfile.Options{Alpha: .1})
}

// ids names the tasks of a workflow by index.
func ids(f *flowfile.File, tasks []int32) (names []string) {
	for _, i := range tasks {
		names = append(names, f.Flow.Task(int(i)).ID)
	}
	return names
}

// What the example says, in full: what a task waits for follows from its files, and
// what it does not say from the defaults.
func TestExample(t *testing.T) {
	f, err := flowfile.Open(filepath.Join("..", "..", "examples", "workflow.yaml"), flowfile.Options{Alpha: .1})
	if err != nil {
		t.Fatal(err)
	}
	if f.Name != "mosaic" || f.Form != flowfile.YAML || f.Flow.Len() != 6 || f.Report.NoAlpha != 0 || f.Runnable() != nil {
		t.Errorf("%+v, %v", f, f.Runnable())
	}
	parents := map[string][]string{}
	var tasks []workflow.Task
	for i := range f.Flow.Len() {
		tasks = append(tasks, f.Flow.Task(i))
		parents[f.Flow.Task(i).ID] = ids(f, f.Flow.Parents(i))
	}
	if diff := cmp.Diff(map[string][]string{
		"fetch": nil, "split": {"fetch"}, "project-left": {"split"}, "project-right": {"split"},
		"add": {"project-left", "project-right"}, "report": {"add"},
	}, parents); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]workflow.Task{
		{ID: "fetch", Name: "fetch", Sequential: 300, Alpha: 1, Few: 1, Most: 1},
		{ID: "split", Name: "split", Sequential: 120, Alpha: 1, Few: 1, Most: 1},
		{ID: "project-left", Name: "project-left", Sequential: 7200, Alpha: .05, Few: 1, Most: 16},
		{ID: "project-right", Name: "project-right", Measured: []workflow.Measurement{
			{NPE: 1, Seconds: 7800}, {NPE: 4, Seconds: 2400}, {NPE: 8, Seconds: 1500}, {NPE: 16, Seconds: 1200},
		}},
		{ID: "add", Name: "add", Sequential: 900, Alpha: 1, Few: 4, Most: 4},
		{ID: "report", Name: "report", Sequential: 10, Alpha: 1, Few: 1, Most: 1},
	}, tasks); diff != "" {
		t.Error(diff)
	}
	if d := f.Flow.Task(4).Duration(4); d != 900 {
		t.Errorf("add takes %d s on its four PEs, want 900", d)
	}
	if diff := cmp.Diff([]flowfile.Task{
		{
			Line: 10, Command: []string{"curl", "-sSfo", "raw.tar", "https://archive.example.org/raw.tar"}, Outputs: []string{"raw.tar"},
			Retries: 1, Needs: berth.Requirements{StorageMB: 2000},
		},
		{
			Line: 16, Script: "#!/bin/sh\nset -e\ntar xf raw.tar\nls raw > list.txt\n", Inputs: []string{"raw.tar"},
			Outputs: []string{"left.dat", "right.dat", "list.txt"}, Retries: 1,
		},
	}, f.Tasks[:2]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]flowfile.Task{
		{
			Line: 44, Command: []string{"mpirun", "-n", "4", "./add", "left.fits", "right.fits", "mosaic.fits"},
			Inputs: []string{"left.fits", "right.fits"}, Outputs: []string{"mosaic.fits"}, Env: []string{"OMP_NUM_THREADS=1"}, Retries: 1,
		},
		{Line: 52, Command: []string{"./report", "--title", "the mosaic is there"}, Retries: 3},
	}, f.Tasks[4:]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(berth.Requirements{MemoryMB: 4295}, f.Tasks[2].Needs); diff != "" {
		t.Error(diff)
	}
	if writers := f.Writers(); writers["left.fits"] != 2 || writers["list.txt"] != 1 || len(writers) != 7 {
		t.Errorf("writers %v", writers)
	}
}

// bad are files with one mistake each, or with several, and what is told: all of it,
// in the order of the file, each with its place.
var bad = []struct {
	name, text string
	want       []string
}{
	{"empty", "", []string{"w.yaml:1:1: empty; want a workflow"}},
	{"only a comment", "# nothing\n", []string{"w.yaml:1:1: empty; a workflow needs the key tasks"}},
	{"not a group", "- a\n", []string{"a list; want a workflow with its keys"}},
	{"no tasks", "workflow: x\n", []string{"w.yaml:1:1: missing; a workflow needs at least one task"}},
	{"no task", "tasks: []\n", []string{"w.yaml:1:8: an empty list; a workflow needs at least one task"}},
	{"task no group", "tasks: [a]\n", []string{`w.yaml:1:9: "a": a text; want the keys of a task`}},
	{"unknown keys", "tasks:\n- name: a\n  comand: [x]\n  command: [x]\n  time: 1s\nworkflw: q\n", []string{
		`w.yaml:6:1: "workflw": unknown key (did you mean workflow?); a workflow has workflow, account, qos, defaults, tasks`,
		`w.yaml:3:3: "comand": unknown key (did you mean command?)`,
	}},
	{"key twice", "tasks:\n- name: a\n  command: [x]\n  time: 1s\n  time: 2s\n", []string{"w.yaml:5:3: the key is given twice, first in line 4"}},
	{"name twice", "tasks:\n- {name: a, command: [x], time: 1s}\n- {name: a, command: [x], time: 1s}\n", []string{`w.yaml:3:3: "a": a second task of this name, the first is in line 2`}},
	{"no name", "tasks:\n- {command: [x], time: 1s}\n", []string{"w.yaml:2:3: missing; every task needs a name of its own"}},
	{"odd names", "tasks:\n- {name: \"a\\nb\", command: [x], time: 1s}\n- {name: \"\", command: [x], time: 1s}\n- {name: 7, command: [x], time: 1s}\n", []string{
		`w.yaml:2:10: "a\nb": holds a line break or another control character`, `w.yaml:3:10: "": empty, or with blanks around it`, `w.yaml:4:10: "7": a number; want a name, in quotes`,
	}},
	{"what to run", "tasks:\n- {name: a, time: 1s}\n- {name: b, time: 1s, command: [x], script: \"#!/bin/sh\"}\n- {name: c, time: 1s, command: sort x}\n- {name: d, time: 1s, script: echo}\n- {name: e, time: 1s, command: []}\n- {name: f, time: 1s, command: [\"\"]}\n", []string{
		`w.yaml:2:3: task "a" has neither command nor script, and other tasks have one`, `w.yaml:3:3: task "b" has a command and a script`,
		`w.yaml:4:32: "sort x": a text; want a list of program and arguments`, `w.yaml:5:31: "echo": want a first line such as #!/bin/sh`,
		"w.yaml:6:32: 0 words", `w.yaml:7:33: "": the program has no name`,
	}},
	{"run times", "tasks:\n- {name: a, command: [x]}\n- {name: b, command: [x], time: 0s}\n- {name: c, command: [x], time: 10}\n- {name: d, command: [x], time: 400d}\n- {name: e, command: [x], time: -1m}\n", []string{
		`w.yaml:2:3: task "a" has no run time`, `w.yaml:3:33: "0s": a task takes at least a second`, "w.yaml:4:33: 10 of what?",
		`w.yaml:5:33: "400d": longer than a year`, `w.yaml:6:33: "-1m" is no duration`,
	}},
	{"pes", "tasks:\n- {name: a, command: [x], time: 1s, pes: 0}\n- {name: b, command: [x], time: 1s, pes: 8-2}\n- {name: c, command: [x], time: 1s, pes: many}\n- {name: d, command: [x], time: 1s, pes: 4, serial_fraction: .1}\n- {name: e, command: [x], time: 1s, pes: 1-4, serial_fraction: 2}\n", []string{
		`w.yaml:2:42: "0": want a number of PEs`, `w.yaml:3:42: "8-2": want the smaller number first`, `w.yaml:4:42: "many": want a number of PEs`,
		`w.yaml:5:3: task "d" has one, but runs on 4 PEs only`, `w.yaml:6:64: "2": want a number from 0 to 1`,
	}},
	{"tables", "tasks:\n- {name: a, command: [x], times: {}}\n- {name: b, command: [x], times: {1: 10m, 2: 10m}}\n- {name: c, command: [x], times: {x: 10m}}\n- {name: d, command: [x], times: {1: 10m, 1: 5m}}\n- {name: e, command: [x], times: {1: 10m}, time: 1s}\n", []string{
		"w.yaml:2:34: 0 run times", "w.yaml:3:43: on 2 PEs it takes no less time than on 1", `w.yaml:4:35: "x" is not a number of PEs`,
		"w.yaml:5:43: 1 PEs are given twice, first in line 5", `w.yaml:6:3: task "e" has times, and time or serial_fraction as well`,
	}},
	{"needs", "tasks:\n- {name: a, command: [x], time: 1s, licences: 2}\n- {name: b, command: [x], time: 1s, memory: 4}\n- {name: c, command: [x], time: 1s, retries: 1000}\n- {name: d, command: [x], time: 1s, accelerators: one}\n- {name: e, command: [x], time: 1s, constraint: \"a&\"}\n", []string{
		`w.yaml:2:3: task "a": 2 for no software`, "w.yaml:3:45: ", `w.yaml:4:46: "1000": want a whole number from 0 to 100`, `w.yaml:5:51: "one": a text`, `w.yaml:6:3: task "e": "a&"; want names of features`,
	}},
	{"places", "tasks:\n- {name: a, command: [x], time: 1s, dir: here}\n- {name: b, command: [x], time: 1s, env: {\"A=B\": c}}\n", []string{
		`w.yaml:2:42: "here": want an absolute path`, `w.yaml:3:43: "A=B" is no name of a variable`,
	}},
	{"after", "tasks:\n- {name: alpha, command: [x], time: 1s, after: [alhpa]}\n- {name: b, command: [x], time: 1s, after: [b]}\n- {name: c, command: [x], time: 1s, after: [b, b]}\n- {name: d, command: [x], time: 1s, after: alpha}\n", []string{
		`w.yaml:4:48: "b": given twice, first in line 4`, `w.yaml:5:44: "alpha": a text; want a list of tasks`,
	}},
	{"unknown parents", "tasks:\n- {name: alpha, command: [x], time: 1s, after: [alhpa]}\n- {name: b, command: [x], time: 1s, after: [b]}\n", []string{
		`w.yaml:2:49: "alhpa" is not a task of the workflow (did you mean alpha?)`, `w.yaml:3:45: task "b" waits for itself`,
	}},
	{"two writers", "tasks:\n- {name: a, command: [x], time: 1s, outputs: [f]}\n- {name: b, command: [x], time: 1s, outputs: [f]}\n- {name: c, command: [x], time: 1s, inputs: [g], outputs: [g]}\n", []string{
		`w.yaml:3:47: task "b" writes "f", as task "a" at line 2 does; only one task may write a file`,
		`w.yaml:4:46: task "c" reads "g", which it writes itself`,
	}},
	{"cycle", "tasks:\n- {name: x, command: [x], time: 1s, after: [a]}\n- {name: a, command: [x], time: 1s, inputs: [f]}\n- {name: b, command: [x], time: 1s, after: [a], outputs: [f]}\n", []string{
		`w.yaml:3:3: the tasks "a" (line 3) → "b" (line 4) → "a" (line 3) form a cycle; each waits for the one before it`,
	}},
	{"defaults", "defaults: {time: 0s, name: x}\ntasks:\n- {name: a, command: [x]}\n- {name: b, command: [x]}\n", []string{
		`w.yaml:1:22: "name": unknown key`, `w.yaml:1:18: "0s": a task takes at least a second`,
	}},
	{"anchors", "tasks: &x []\n", []string{"anchors, aliases"}},
	{"not YAML", "tasks: [\n", []string{"w.yaml:1:"}},
}

func TestMistakesAreToldWithTheirPlaces(t *testing.T) {
	for _, c := range bad {
		_, err := read(c.text)
		got := mistakes(t, c.name, err)
		for i, want := range c.want {
			if i >= len(got) || !strings.Contains(got[i].Msg, want) {
				t.Errorf("%s: %v\nwant as number %d: %s", c.name, err, i+1, want)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %d mistakes, want %d:\n%v", c.name, len(got), len(c.want), err)
		}
	}
}

// mistakes are the errors of a file, all of code Invalid.
func mistakes(t *testing.T, name string, err error) []*berth.Error {
	t.Helper()
	list := []error{err}
	if joined, is := err.(interface{ Unwrap() []error }); is {
		list = joined.Unwrap()
	}
	var found []*berth.Error
	for _, err := range list {
		mistake, is := errors.AsType[*berth.Error](err)
		if !is || mistake.Code != berth.Invalid || mistake.Field == "" {
			t.Errorf("%s: %v, want an error of code invalid with a field", name, err)
			continue
		}
		found = append(found, mistake)
	}
	return found
}

func TestManyMistakesAreCounted(t *testing.T) {
	_, err := read("tasks:\n" + strings.Repeat("- {}\n", 30))
	if got := mistakes(t, "many", err); len(got) != flowfile.MaxErrors+1 || !strings.Contains(got[flowfile.MaxErrors].Msg, "and 10 more mistakes") {
		t.Errorf("%d mistakes, the last %v", len(got), got[len(got)-1])
	}
}

// lines writes a workflow of n tasks, each after the one before it.
func lines(n int) string {
	var text strings.Builder
	text.WriteString("tasks:\n")
	for i := range n {
		fmt.Fprintf(&text, "- name: task-%d\n  command: [./step, \"%d\"]\n  time: 10m\n  inputs: [f%d]\n  outputs: [f%d]\n", i, i, i, i+1)
	}
	return text.String()
}

// As many tasks as may run are read in about a second, one more is refused, and a
// file that must hold far too many before it is looked at.
func TestLargeFiles(t *testing.T) {
	began := time.Now()
	f, err := read(lines(flowfile.MaxTasks))
	if err != nil || f.Flow.Len() != flowfile.MaxTasks || f.Flow.Edges() != flowfile.MaxTasks-1 {
		t.Fatal(err)
	}
	t.Log(time.Since(began))
	if _, err := read(lines(flowfile.MaxTasks + 1)); err == nil || !strings.Contains(err.Error(), "10001 tasks; at most 10000 can be promised and run") {
		t.Errorf("%v, want the limit", err)
	}
	if _, err := read(lines(100_000)); err == nil || !strings.Contains(err.Error(), "at most 4194304 bytes and 10000 tasks") {
		t.Errorf("%v, want both limits", err)
	}
}

// What runs in the reservations of a file without any command is handed in there.
func TestNoTaskHasACommand(t *testing.T) {
	f, err := read("defaults: {time: 1m}\ntasks:\n- {name: a, outputs: [x]}\n- {name: b, inputs: [x]}\n")
	if err != nil {
		t.Fatal(err)
	}
	if f.Tasks[0].Runs() || f.Tasks[1].Runs() || len(f.Flow.Parents(1)) != 1 {
		t.Errorf("%+v, want two tasks that run nothing, b behind a", f.Tasks)
	}
	if got := mistakes(t, "none", f.Runnable()); len(got) != 2 || !strings.Contains(got[0].Msg, `w.yaml:3: task "a" has none`) {
		t.Errorf("%v, want that neither runs", got)
	}
}

// A workflow in WfFormat tells what it ran, whatever its version.
func TestWfFormat(t *testing.T) {
	const old = `{"schemaVersion": "1.4", "name": "old", "workflow": {"tasks": [
 {"name": "a", "id": "a", "runtimeInSeconds": 5, "command": {"program": "./a", "arguments": ["-x", "two\nlines"]},
  "files": [{"name": "in", "link": "input"}, {"name": "out", "link": "output"}]},
 {"name": "b", "id": "b", "parents": ["a"], "runtimeInSeconds": 5, "files": [{"name": "out", "link": "output"}]}]}}`
	f, err := read(old)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]flowfile.Task{
		{Line: 2, Command: []string{"./a", "-x", "two\nlines"}, Inputs: []string{"in"}, Outputs: []string{"out"}}, {Line: 4, Outputs: []string{"out"}},
	}, f.Tasks); diff != "" || f.Form != flowfile.WfFormat || f.Flow.Task(0).Alpha != .1 {
		t.Error(diff, f.Form)
	}
	got := mistakes(t, "old", f.Runnable())
	if len(got) != 2 || !strings.Contains(got[0].Msg, `w.yaml:4: task "b" has none`) || !strings.Contains(got[1].Msg, `task "b" writes "out", as task "a" at line 2 does`) {
		t.Errorf("%v, want that b runs nothing and writes what a writes", got)
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write([]byte(old)); err != nil || zip.Close() != nil {
		t.Fatal(err)
	}
	if again, err := read(packed.String()); err != nil || again.Name != "old" {
		t.Errorf("compressed: %v", err)
	}
	if _, err := read(packed.String()[:60]); err == nil || !strings.Contains(err.Error(), "w.yaml") {
		t.Errorf("cut off: %v, want a complaint", err)
	}
}

// A published execution has a command for every task.
func TestPublishedWorkflowsRun(t *testing.T) {
	for _, name := range []string{"montage-chameleon-2mass-005d-001.json", "blast-chameleon-medium-001.json.gz", "helloworld-forkjoin-10-chameleon.json"} {
		f, err := flowfile.Open(realdata.File(t, "workflows", name), flowfile.Options{Alpha: .1})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Runnable(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if f.Form != flowfile.WfFormat || len(f.Tasks) != f.Flow.Len() || len(f.Tasks[1].Inputs) == 0 {
			t.Errorf("%s: %+v", name, f.Tasks[1])
		}
	}
}

func TestTasksThatFitNowhere(t *testing.T) {
	f, err := read("tasks:\n- {name: a, command: [x], time: 1s, pes: 4-8}\n- {name: b, command: [x], times: {64: 1h, 128: 40m}}\n- {name: c, command: [x], time: 1s, pes: 32}\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Larger(64, "the cluster"); err != nil {
		t.Error(err)
	}
	got := mistakes(t, "larger", f.Larger(16, "the cluster"))
	if len(got) != 2 || got[0].Msg != `w.yaml:3: task "b" needs at least 64 PEs; the cluster has 16 at most` || !strings.Contains(got[1].Msg, `w.yaml:4: task "c" needs at least 32 PEs`) {
		t.Errorf("%v", got)
	}
}

// Defaults stand in for what a task does not say; a table replaces a default time,
// and a time a default table.
func TestDefaults(t *testing.T) {
	f, err := read(`
defaults: {time: 1h, pes: 2-8, software: namd, licences: 2, memory: 1GB, site: north}
tasks:
- {name: a, command: [x]}
- {name: b, command: [x], times: {1: 30m}}
- {name: c, command: [x], software: gromacs, site: south}
`)
	if err != nil {
		t.Fatal(err)
	}
	a, b := f.Flow.Task(0), f.Flow.Task(1)
	if a.Few != 2 || a.Most != 8 || a.Duration(2) != 3600 || a.Alpha != .1 || f.Report.NoAlpha != 2 {
		t.Errorf("%+v takes %d s on two PEs, want an hour; %d without a serial fraction", a, a.Duration(2), f.Report.NoAlpha)
	}
	if len(b.Measured) != 1 || b.Few != 0 {
		t.Errorf("%+v, want the table alone", b)
	}
	if f.Tasks[0].Site != "north" || f.Tasks[2].Site != "south" {
		t.Errorf("sites %q and %q", f.Tasks[0].Site, f.Tasks[2].Site)
	}
	if f.Tasks[0].Needs != (berth.Requirements{Software: "namd", Licences: 2, MemoryMB: 1000}) || f.Tasks[2].Needs != (berth.Requirements{Software: "gromacs", MemoryMB: 1000}) {
		t.Errorf("%+v and %+v", f.Tasks[0].Needs, f.Tasks[2].Needs)
	}
	f, err = read("defaults: {times: {1: 1h, 4: 20m}}\ntasks:\n- {name: a, command: [x]}\n- {name: b, command: [x], time: 5s}\n")
	if err != nil || len(f.Flow.Task(0).Measured) != 2 || f.Flow.Task(1).Duration(1) != 5 {
		t.Errorf("%v", err)
	}
}

// A workflow has an account and a QOS, and a task its own: that of the defaults where it names none.
func TestAccountsOfWorkflowsAndTasks(t *testing.T) {
	f, err := read("account: bio\nqos: low\ndefaults: {qos: high}\ntasks:\n- {name: a, command: [x], time: 1s}\n- {name: b, command: [x], time: 1s, account: chem, qos: urgent}\n")
	if err != nil {
		t.Fatal(err)
	}
	a, b := &f.Tasks[0], &f.Tasks[1]
	if f.Account != "bio" || f.QOS != "low" || a.Account != "" || a.QOS != "high" || b.Account != "chem" || b.QOS != "urgent" {
		t.Errorf("the workflow is in %q with %q, its tasks in %q with %q and in %q with %q", f.Account, f.QOS, a.Account, a.QOS, b.Account, b.QOS)
	}
	if _, err := read("account: [bio]\ntasks:\n- {name: a, command: [x], time: 1s}\n"); err == nil || !strings.Contains(err.Error(), "w.yaml:1:10: ") {
		t.Errorf("a list as an account: %v", err)
	}
}

func TestSerialFractionsAreDrawn(t *testing.T) {
	f, err := flowfile.Read(strings.NewReader("tasks:\n- {name: a, command: [x], time: 1h, pes: 2-8}\n- {name: b, command: [x], time: 1h, pes: 2-8, serial_fraction: 0.5}\n"),
		"w.yaml", flowfile.Options{Draw: func(task int) float64 { return float64(task+1) / 4 }})
	if err != nil || f.Flow.Task(0).Alpha != .25 || f.Flow.Task(0).Duration(2) != 3600 || f.Flow.Task(1).Alpha != .5 {
		t.Errorf("%+v, %v", f.Flow.Task(0), err)
	}
}

// Whatever the bytes: no panic; a workflow that holds together, or complaints with
// their place.
func FuzzRead(f *testing.F) {
	for _, c := range bad {
		f.Add(c.text)
	}
	f.Add(lines(3))
	f.Add("defaults: {pes: 2-8}\ntasks:\n- {name: a, command: [x], times: {1: 30m, 2: 10m}}\n")
	f.Add(`{"schemaVersion": "1.5", "workflow": {"specification": {"tasks": [{"id": "a", "inputFiles": ["x"]}]}, "execution": {"tasks": [{"id": "a", "command": {"program": "x", "arguments": ["y"]}}]}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := read(text)
		if err != nil {
			for _, m := range mistakes(t, "fuzz", err) {
				if !strings.HasPrefix(m.Msg, "w.yaml") {
					t.Fatalf("complaint without the file: %s", m.Msg)
				}
			}
			return
		}
		if len(file.Tasks) != file.Flow.Len() || file.Flow.Len() == 0 {
			t.Fatalf("%d tasks, %d in the workflow", len(file.Tasks), file.Flow.Len())
		}
		if file.Form == flowfile.YAML {
			if err := file.Runnable(); err != nil && slices.ContainsFunc(file.Tasks, func(t flowfile.Task) bool { return t.Runs() }) {
				t.Fatalf("read, but not runnable: %v", err)
			}
			file.Writers()
		}
		for i := range file.Tasks {
			task := file.Flow.Task(i)
			if few := task.Fewest(); few < 1 || task.Duration(few) < 1 || file.Form == flowfile.YAML && task.Duration(few) > flowfile.MaxTime {
				t.Fatalf("task %+v", task)
			}
		}
	})
}

// The size of a file that a task writes is told with its name in YAML, and in WfFormat where the
// files are listed. A task reads so much of the task that writes it.
func TestSizesOfFiles(t *testing.T) {
	for name, text := range map[string]string{
		"yaml": `tasks:
  - {name: a, command: [x], time: 1m, outputs: [log.txt, {name: raw.dat, size: 5MB}, {name: more.dat, size: 1.2MB}]}
  - {name: b, command: [x], time: 1m, outputs: [{name: plain.txt}]}
  - {name: c, command: [x], time: 1m, after: [b], inputs: [more.dat, raw.dat, log.txt, plain.txt, outside.dat]}
`,
		"1.5": `{"name": "f", "schemaVersion": "1.5", "workflow": {"specification": {
 "files": [{"id": "raw.dat", "sizeInBytes": 5000000}, {"id": "more.dat", "sizeInBytes": 2000000}, {"id": "outside.dat", "sizeInBytes": 7}, {"id": "log.txt"}],
 "tasks": [{"name": "a", "id": "a", "parents": [], "children": ["c"], "outputFiles": ["log.txt", "raw.dat", "more.dat"]},
  {"name": "b", "id": "b", "parents": [], "children": ["c"], "outputFiles": ["plain.txt"]},
  {"name": "c", "id": "c", "parents": ["a", "b"], "children": [], "inputFiles": ["more.dat", "raw.dat", "log.txt", "plain.txt", "outside.dat"]}]}}}`,
		"1.3": `{"name": "f", "schemaVersion": "1.3", "workflow": {"tasks": [
  {"name": "a", "parents": [], "children": ["c"], "runtime": 1, "files": [{"name": "raw.dat", "link": "output", "size": 5000000}, {"name": "more.dat", "link": "output", "sizeInBytes": 2e6}]},
  {"name": "b", "parents": [], "children": ["c"], "runtime": 1},
  {"name": "c", "parents": ["a", "b"], "children": [], "runtime": 1, "files": [{"name": "more.dat", "link": "input"}, {"name": "raw.dat", "link": "input", "size": 5000000}]}]}}`,
	} {
		f, err := flowfile.Read(strings.NewReader(text), "f."+name, flowfile.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := f.Reads(); len(got[0])+len(got[1]) > 0 || !slices.Equal(got[2], []int64{7_000_000, 0}) {
			t.Errorf("%s: %v; want 7 MB of a, and nothing told of b", name, got)
		}
	}
	for text, want := range map[string]string{
		`[{size: 5MB}]`:                    "f.yaml:2:49: missing; want a file with its size, such as {name: raw.dat, size: 40GB}",
		`[{name: raw.dat, size: 5}]`:       "want a size with its unit",
		`[{name: raw.dat, size: 500TB}]`:   "500000000 MB; want at most 100TB",
		`[{name: raw.dat, sise: 5MB}]`:     `"sise"`,
		`[raw.dat, {name: raw.dat}]`:       "given twice",
		`[{name: [raw.dat], size: 5MB}]`:   "want a name",
		`[{name: "raw.dat ", size: 50MB}]`: "blanks around it",
	} {
		_, err := flowfile.Read(strings.NewReader("tasks:\n  - {name: a, command: [x], time: 1m, outputs: "+text+"}\n"), "f.yaml", flowfile.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	_, err := flowfile.Read(strings.NewReader(`{"name": "f", "schemaVersion": "1.5", "workflow": {"specification": {"files": [{"id": "raw.dat", "sizeInBytes": -1}], "tasks": [{"name": "a", "id": "a", "parents": [], "children": []}]}}}`), "f.json", flowfile.Options{})
	if want := `file "raw.dat" has -1; want a number of bytes from 0 to 10^14`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}
