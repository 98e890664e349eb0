package workload_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

func readWorkflow(t *testing.T, text string, opt workload.WorkflowOptions) *workload.WorkflowFile {
	t.Helper()
	f, err := workload.ReadWorkflow(strings.NewReader(text), "dir/w.json", opt)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The diamond in the layout with a specification and an execution, and
// whatever is odd and can still be understood.
const diamond = `{
 "name": "diamond", "schemaVersion": "1.5", "runtimeSystem": {"name": "Pegasus", "version": "5.0"}, "author": null,
 "workflow": {
  "specification": {"files": [], "tasks": [
   {"name": "first", "id": "a", "parents": [], "children": ["b", "c"], "alpha": 0.25, "anything": {"goes": [1, "}"]}},
   {"name": "", "id": "b", "parents": ["a"], "children": ["d"], "inputFiles": ["x"]},
   {"id": "c", "parents": ["a", "a"], "children": ["d", "d"], "alpha": 1e-1},
   {"name": "last", "id": "d", "parents": ["b", "c"], "children": null, "alpha": null}
  ]},
  "execution": {"makespanInSeconds": 9, "executedAt": "2020", "tasks": [
   {"id": "d", "runtimeInSeconds": 0, "coreCount": 8},
   {"id": "a", "runtimeInSeconds": 12.5, "coreCount": 1},
   {"id": "c", "runtimeInSeconds": 1e2, "coreCount": 1.5},
   {"id": "z", "runtimeInSeconds": 7}
  ], "machines": []}
 }
}`

func TestReadWorkflow(t *testing.T) {
	f := readWorkflow(t, diamond, workload.WorkflowOptions{Alpha: .5})
	tasks, edges := contents(f.Flow)
	if diff := cmp.Diff([]workflow.Task{
		{ID: "a", Name: "first", Sequential: 12.5, Alpha: .25},
		{ID: "b", Alpha: .5},
		{ID: "c", Sequential: 150, Alpha: .1},
		{ID: "d", Name: "last", Alpha: .5},
	}, tasks); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]workflow.Edge{{Parent: "a", Child: "b"}, {Parent: "a", Child: "c"}, {Parent: "b", Child: "d"}, {Parent: "c", Child: "d"}}, edges); diff != "" {
		t.Error(diff)
	}
	want := workload.WorkflowReport{
		Name: "dir/w.json", Tasks: 4, Edges: 4, Duplicates: 2, NoRunTime: 1, ZeroRunTime: 1, Multiplied: 1, NoAlpha: 2, UnknownTasks: 1,
	}
	if diff := cmp.Diff(want, f.Report); diff != "" || f.Name != "diamond" || f.Version != "1.5" || f.System != "Pegasus" {
		t.Error(diff, f.Name, f.Version, f.System)
	}
	notes := strings.Join(f.Report.Notes(), "\n")
	for _, note := range []string{
		"1 of 4 tasks without a run time", "1 of 4 tasks ran for 0 s; each is booked for one second", "1 of 4 tasks ran on several cores",
		"1 of 4 tasks of the execution are not", "2 edges are listed twice",
	} {
		if !strings.Contains(notes, "dir/w.json: "+note) {
			t.Errorf("no note %q in:\n%s", note, notes)
		}
	}
}

// Up to 1.4 tasks hold all there is; parents go by id or by name, and once the
// list was called jobs.
func TestReadOldWorkflows(t *testing.T) {
	tasks := `[
   {"name": "split_1", "id": "1", "type": "compute", "children": ["work_2", "3"], "runtime": 10, "cores": 4, "files": []},
   {"name": "work_2", "id": "2", "type": "compute", "parents": ["split_1"], "runtime": 7, "runtimeInSeconds": 20},
   {"name": "work_3", "id": "3", "type": "compute", "parents": ["1"], "runtimeInSeconds": 5.5, "alpha": 0.125},
   {"name": "join", "type": "auxiliary", "parents": ["2", "work_3"]}]`
	for _, list := range []string{"tasks", "jobs"} {
		f := readWorkflow(t, `{"schemaVersion":"1.3","wms":{"name":"Makeflow"},"workflow":{"makespan":3,"`+list+`":`+tasks+`}}`, workload.WorkflowOptions{})
		got, edges := contents(f.Flow)
		if diff := cmp.Diff([]workflow.Task{
			{ID: "1", Name: "split_1", Sequential: 40},
			{ID: "2", Name: "work_2", Sequential: 20},
			{ID: "3", Name: "work_3", Sequential: 5.5, Alpha: .125},
			{ID: "join", Name: "join"},
		}, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]workflow.Edge{{Parent: "1", Child: "2"}, {Parent: "1", Child: "3"}, {Parent: "2", Child: "join"}, {Parent: "3", Child: "join"}}, edges); diff != "" {
			t.Error(diff)
		}
		want := workload.WorkflowReport{Name: "dir/w.json", Tasks: 4, Edges: 4, OneSided: 2, NoRunTime: 1, Multiplied: 1, NoAlpha: 3}
		if diff := cmp.Diff(want, f.Report); diff != "" || f.Name != "w" || f.System != "Makeflow" {
			t.Error(diff, f.Name, f.System)
		}
		if notes := f.Report.Notes(); len(notes) != 3 || !strings.HasSuffix(notes[2], "2 of 4 edges are listed by one of their two tasks only") {
			t.Error(notes)
		}
	}
}

// spec wraps tasks of a specification, and of an execution.
func spec(tasks, execution string) string {
	return "{\"schemaVersion\":\"1.6\",\n\"workflow\":{\"specification\":{\"tasks\":[\n" + tasks + "\n]},\"execution\":{\"tasks\":[\n" + execution + "\n]}}}"
}

func old(tasks string) string {
	return "{\"schemaVersion\":\"1.4\",\"workflow\":{\"tasks\":[\n" + tasks + "\n]}}"
}

func TestBadWorkflows(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		field string
		words string
	}{
		"nothing":                {"", "workflow", "w.json: nothing in the file"},
		"blanks":                 {" \n", "workflow", "nothing in the file"},
		"a list":                 {"\n []", "workflow", "w.json:2:2: not a JSON object"},
		"cut":                    {diamond[:200], "workflow", "w.json:5:24: the JSON ends early; the file is truncated"},
		"cut after a brace":      {"{\"a\":{}\n", "workflow", "w.json:2:1: the JSON ends early"},
		"a comma too much":       {"{\"a\":1,\n}", "workflow", "w.json:2:1: not valid JSON: invalid character '}'"},
		"more behind":            {"{}\n{}", "workflow", "w.json:2:1: not valid JSON"},
		"not a number":           {spec(`{"id":"a"}`, `{"id":"a","runtimeInSeconds":NaN}`), "workflow", "w.json:5:30: not valid JSON: NaN is no number"},
		"minus infinity":         {spec(`{"id":"a"}`, `{"id":"a","runtimeInSeconds":-Infinity}`), "workflow", "Infinity is no number"},
		"not UTF-8":              {"{\"a\":\n\"\xff\"}", "workflow", "w.json:2:2: not UTF-8"},
		"no version":             {`{"workflow":{}}`, "schemaVersion", "missing; want \"1.3\""},
		"an older version":       {`{"schemaVersion":"1.2","workflow":{}}`, "schemaVersion", "w.json:1:18: \"1.2\" is not read"},
		"a number as version":    {`{"schemaVersion":1.5,"workflow":{}}`, "schemaVersion", "want it in quotes"},
		"no workflow":            {`{"schemaVersion":"1.5"}`, "workflow", "missing"},
		"a text as workflow":     {`{"schemaVersion":"1.5","workflow":"w"}`, "workflow", "not an object"},
		"no specification":       {`{"schemaVersion":"1.5","workflow":{}}`, "specification", "missing"},
		"no tasks":               {`{"schemaVersion":"1.5","workflow":{"specification":{}}}`, "tasks", "missing"},
		"an empty workflow":      {spec("", ""), "tasks", "none; a workflow needs at least one"},
		"an object of tasks":     {`{"schemaVersion":"1.5","workflow":{"specification":{"tasks":{}}}}`, "specification.tasks", "not a list"},
		"a task that is none":    {spec(`{"id":"a"},7`, ""), "tasks", "w.json:3:12: 7: not an object"},
		"no id":                  {spec(`{"id":"a"},{"name":"b"}`, ""), "id", "missing at task 2 of the list"},
		"neither id nor name":    {old(`{"id":"a"},{"type":"compute"}`), "id", "missing at task 2"},
		"an id twice":            {spec("{\"id\":\"a\"},\n{\"id\":\"a\"}", ""), "id", `w.json:4:1: task "a" is at line 3 already`},
		"a name for an id":       {old(`{"id":"a"},{"name":"a"}`), "id", `task "a" is at line 2 already`},
		"a property twice":       {spec(`{"id":"a","id":"b"}`, ""), "id", "given twice"},
		"a number as id":         {spec(`{"id":1}`, ""), "id", "not a text"},
		"a control character":    {spec(`{"id":"\u0000"}`, ""), "id", "control"},
		"an unknown parent":      {spec(`{"id":"a","parents":["b"]}`, ""), "parents", `w.json:3:22: task "a" names the parent "b", which is not a task`},
		"an unknown child":       {spec(`{"id":"a","children":["b"]}`, ""), "children", `task "a" names the child "b"`},
		"a parent by name":       {spec(`{"id":"a","name":"x"},{"id":"b","parents":["x"]}`, ""), "parents", `names the parent "x", which is not`},
		"a name of two":          {old(`{"id":"a","name":"x"},{"id":"b","name":"x"},{"id":"c","parents":["x"]}`), "parents", `"x", which several tasks are called`},
		"a parent as text":       {spec(`{"id":"a","parents":"b"}`, ""), "parents", "not a list"},
		"a number as parent":     {spec(`{"id":"a","parents":[3]}`, ""), "parents", "not a text"},
		"a cycle":                {spec(`{"id":"a","parents":["b"]},{"id":"b","parents":["c"]},{"id":"c","parents":["a"]}`, ""), "parents", "w.json: the tasks a → c → b → a form a cycle"},
		"a task before itself":   {spec(`{"id":"a","children":["a"]}`, ""), "parents", "the tasks a → a form a cycle"},
		"an alpha above 1":       {spec(`{"id":"a","alpha":1.01}`, ""), "alpha", `w.json:3:19: task "a" has 1.01; want a number from 0 to 1`},
		"an alpha below 0":       {spec(`{"id":"a","alpha":-1e-9}`, ""), "alpha", "from 0 to 1"},
		"an alpha as text":       {spec(`{"id":"a","alpha":".5"}`, ""), "alpha", "without quotes"},
		"an alpha unheard":       {spec(`{"id":"a"}`, `{"id":"a","alpha":0.5}`), "alpha", "belongs in workflow.specification.tasks"},
		"a negative run time":    {spec(`{"id":"a"}`, `{"id":"a","runtimeInSeconds":-1}`), "runtimeInSeconds", `task "a" has -1`},
		"a negative time of 1.3": {old(`{"name":"a","runtime":-0.5}`), "runtime", `task "a" has -0.5`},
		"an endless run time":    {spec(`{"id":"a"}`, `{"id":"a","runtimeInSeconds":1e999}`), "runtimeInSeconds", "from 0 to 4398046511104"},
		"too long together":      {spec(`{"id":"a"},{"id":"b"}`, `{"id":"a","runtimeInSeconds":4e12},{"id":"b","runtimeInSeconds":4e12}`), "sequential", "w.json: "},
		"too long times cores":   {spec(`{"id":"a"}`, `{"id":"a","runtimeInSeconds":1e10,"coreCount":1e6}`), "sequential", `task "a"`},
		"negative cores":         {spec(`{"id":"a"}`, `{"id":"a","runtimeInSeconds":1,"coreCount":-2}`), "coreCount", `task "a" has -2`},
		"executed twice":         {spec(`{"id":"a"}`, "{\"id\":\"a\"},\n{\"id\":\"a\"}"), "id", `w.json:6:1: task "a" of the execution is at line 5 already`},
		"executed without id":    {spec(`{"id":"a"}`, `{"runtimeInSeconds":1}`), "id", "missing at a task of the execution"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := workload.ReadWorkflow(strings.NewReader(c.text), "w.json", workload.WorkflowOptions{})
			wantMistake(t, err, c.field, "w.json", c.words)
		})
	}
	_, err := workload.ReadWorkflow(strings.NewReader(diamond), "w.json", workload.WorkflowOptions{Alpha: 2})
	wantMistake(t, err, "alpha", "from 0 to 1")
}

func TestOpenWorkflow(t *testing.T) {
	dir := t.TempDir()
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	if _, err := zip.Write([]byte(diamond)); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	whole, cut := filepath.Join(dir, "w.json.gz"), filepath.Join(dir, "cut.json.gz")
	for path, text := range map[string][]byte{whole: zipped.Bytes(), cut: zipped.Bytes()[:zipped.Len()/2]} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if f, err := workload.OpenWorkflow(whole, workload.WorkflowOptions{}); err != nil || f.Flow.Len() != 4 {
		t.Error(err)
	}
	_, err := workload.OpenWorkflow(cut, workload.WorkflowOptions{})
	wantMistake(t, err, "workflow", "cut.json.gz:", "truncated")
	_, err = workload.OpenWorkflow(filepath.Join(dir, "none.json"), workload.WorkflowOptions{})
	wantMistake(t, err, "workflow", "no such file")
	_, err = workload.OpenWorkflow(dir, workload.WorkflowOptions{})
	wantMistake(t, err, "workflow", "a directory")
}

// Executions recorded by others, with Pegasus, Makeflow and Nextflow. Tasks,
// edges and run times of 0 were counted, and the run times summed, with another
// program.
func TestRealWorkflows(t *testing.T) {
	for _, c := range []struct {
		file         string
		system       string
		tasks, edges int
		zero         int
		total        float64 // of the run times
	}{
		{"1000genome-chameleon-2ch-100k-001.json", "Pegasus", 52, 76, 0, 2771.295},
		{"1000genome-chameleon-8ch-100k-001.json.gz", "Pegasus", 208, 304, 0, 16617.042},
		{"blast-chameleon-medium-001.json.gz", "Makeflow", 303, 900, 0, 31513.114385},
		{"blast-chameleon-small-001.json", "Makeflow", 43, 120, 0, 382.91272},
		{"bwa-chameleon-small-001.json.gz", "Makeflow", 104, 400, 0, 379.989466},
		{"cycles-chameleon-1l-1c-9p-001.json.gz", "Pegasus", 67, 97, 0, 862.699},
		{"epigenomics-chameleon-hep-1seq-100k-001.json", "Pegasus", 41, 48, 0, 539.307},
		{"epigenomics-chameleon-ilmn-1seq-50k-001.json.gz", "Pegasus", 241, 298, 0, 3532.96},
		{"helloworld-forkjoin-10-chameleon.json", "Pegasus", 10, 16, 0, 1028.704},
		{"methylseq-dirt02-001.json", "Nextflow", 36, 70, 4, 446.366},
		{"montage-chameleon-2mass-005d-001.json", "Pegasus", 58, 114, 0, 221.726},
		{"montage-chameleon-2mass-01d-001.json.gz", "Pegasus", 103, 231, 0, 362.633},
		{"seismology-chameleon-100p-001.json", "Pegasus", 101, 100, 0, 71.893},
		{"soykb-chameleon-10fastq-10ch-001.json.gz", "Pegasus", 96, 194, 0, 11814.517},
		{"srasearch-chameleon-10a-001.json", "Pegasus", 22, 30, 0, 6996.779},
	} {
		t.Run(c.file, func(t *testing.T) {
			f, err := workload.OpenWorkflow(realdata.File(t, "workflows", c.file), workload.WorkflowOptions{Alpha: .1})
			if err != nil {
				t.Fatal(err)
			}
			tasks, edges := contents(f.Flow)
			total := 0.0
			for _, task := range tasks {
				total += task.Sequential
			}
			want := workload.WorkflowReport{Name: f.Report.Name, Tasks: c.tasks, Edges: c.edges, ZeroRunTime: c.zero, NoAlpha: c.tasks}
			if diff := cmp.Diff(want, f.Report); diff != "" || len(tasks) != c.tasks || len(edges) != c.edges {
				t.Error(diff, len(tasks), len(edges))
			}
			if off := total - c.total; f.System != c.system || f.Version != "1.5" || off > 1e-6 || off < -1e-6 {
				t.Errorf("%s %s, %v s; want %s, %v s", f.System, f.Version, total, c.system, c.total)
			}
			for _, version := range workload.WfVersions() {
				checkRoundTrip(t, f.Flow, version)
			}
		})
	}
}

func checkRoundTrip(t interface {
	Helper()
	Fatal(...any)
}, flow *workflow.Workflow, version string,
) {
	t.Helper()
	var file strings.Builder
	if err := workload.WriteWorkflow(&file, "round trip", version, flow); err != nil {
		t.Fatal(err)
	}
	f, err := workload.ReadWorkflow(strings.NewReader(file.String()), "w.json", workload.WorkflowOptions{Alpha: 1})
	if err != nil {
		t.Fatal(err)
	}
	tasks, edges := contents(flow)
	got, gotEdges := contents(f.Flow)
	for i := range tasks {
		if tasks[i].Name == "" {
			tasks[i].Name = tasks[i].ID
		}
	}
	if diff := cmp.Diff(tasks, got); diff != "" {
		t.Fatal(version, diff)
	}
	if diff := cmp.Diff(edges, gotEdges); diff != "" {
		t.Fatal(version, diff)
	}
	if r := f.Report; r.NoAlpha+r.NoRunTime+r.Duplicates+r.OneSided+r.UnknownTasks+r.Multiplied > 0 || f.Version != version || f.Name != "round trip" {
		t.Fatal(version, fmt.Sprintf("%+v", f))
	}
}

// What is written reads back equal, bit for bit, in every version.
func TestWorkflowRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "tasks")
		tasks := make([]workflow.Task, n)
		var edges []workflow.Edge
		text := rapid.StringMatching(`[ -~äλ"\\<>]{0,6}`)
		for i := range tasks {
			tasks[i] = workflow.Task{
				ID: text.Draw(t, "id") + strconv.Itoa(i), Name: text.Draw(t, "name"),
				Sequential: rapid.Float64Range(0, 1e9).Draw(t, "seconds"), Alpha: rapid.Float64Range(0, 1).Draw(t, "alpha"),
			}
			for range rapid.IntRange(0, i).Draw(t, "parents") {
				edges = append(edges, workflow.Edge{Parent: tasks[rapid.IntRange(0, i-1).Draw(t, "parent")].ID, Child: tasks[i].ID})
			}
		}
		flow, err := workflow.New(tasks, edges)
		if err != nil {
			t.Skip(err)
		}
		checkRoundTrip(t, flow, rapid.SampledFrom(workload.WfVersions()).Draw(t, "version"))
	})
}

func TestWriteWorkflow(t *testing.T) {
	flow := readWorkflow(t, diamond, workload.WorkflowOptions{}).Flow
	var file strings.Builder
	if err := workload.WriteWorkflow(&file, "a \"name\"", "1.6", flow); err != nil {
		t.Fatal(err)
	}
	const want = `{
  "name": "a \"name\"",
  "schemaVersion": "1.6",
  "workflow": {
    "specification": {"tasks": [
      {"name":"first","id":"a","parents":[],"children":["b","c"],"alpha":0.25},
      {"name":"b","id":"b","parents":["a"],"children":["d"],"alpha":0},
      {"name":"c","id":"c","parents":["a"],"children":["d"],"alpha":0.1},
      {"name":"last","id":"d","parents":["b","c"],"children":[],"alpha":0}
    ]},
    "execution": {"makespanInSeconds": 162.5, "executedAt": "1970-01-01T00:00:00Z", "tasks": [
      {"id":"a","runtimeInSeconds":12.5},
      {"id":"b","runtimeInSeconds":0},
      {"id":"c","runtimeInSeconds":150},
      {"id":"d","runtimeInSeconds":0}
    ]}
  }
}
`
	if diff := cmp.Diff(want, file.String()); diff != "" {
		t.Error(diff)
	}
	wantMistake(t, workload.WriteWorkflow(&file, "", "1.6", flow), "name")
	wantMistake(t, workload.WriteWorkflow(&file, "a\nb", "1.6", flow), "name")
	wantMistake(t, workload.WriteWorkflow(&file, "a", "1.2", flow), "schemaVersion", "1.3, 1.4")
	wantMistake(t, workload.WriteWorkflow(&file, "a", "1.6", nil), "tasks")
	odd, err := workflow.New([]workflow.Task{{ID: "a\x00"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantMistake(t, workload.WriteWorkflow(&file, "a", "1.6", odd), "id", "not printable")
	if err := workload.WriteWorkflow(failing{}, "a", "1.6", flow); err == nil || !strings.HasPrefix(err.Error(), "write workflow: ") {
		t.Error(err)
	}
}

func BenchmarkReadWorkflow(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		d := workload.NewDaggen()
		d.Tasks, d.Width, d.Density = n, .25, .5
		flow, err := d.Generate(1)
		if err != nil {
			b.Fatal(err)
		}
		var file bytes.Buffer
		if err := workload.WriteWorkflow(&file, "bench", "1.5", flow); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("tasks=%d/edges=%d", n, flow.Edges()), func(b *testing.B) {
			b.SetBytes(int64(file.Len()))
			b.ReportAllocs()
			for b.Loop() {
				f, err := workload.ReadWorkflow(bytes.NewReader(file.Bytes()), "w.json", workload.WorkflowOptions{})
				if err != nil || f.Flow.Len() != n {
					b.Fatal(err)
				}
			}
		})
	}
}
