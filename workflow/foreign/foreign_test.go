package foreign_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workflow/flowfile"
	"github.com/berth-hpc/berth/workflow/foreign"
)

// imported reads a file of another system, writes it, reads that, and returns each
// task with what it waits for.
func imported(t *testing.T, text, name string, opt foreign.Options) (*foreign.Workflow, *flowfile.File, map[string]string) {
	t.Helper()
	if opt.Time == 0 {
		opt.Time = 600
	}
	w, err := foreign.Read([]byte(text), name, opt)
	if err != nil {
		t.Fatal(err)
	}
	var made bytes.Buffer
	if err := foreign.WriteYAML(&made, w); err != nil {
		t.Fatal(err)
	}
	f, err := flowfile.Read(&made, name, flowfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	after := make(map[string]string)
	for i := range f.Flow.Len() {
		var parents []string
		for _, p := range f.Flow.Parents(i) {
			parents = append(parents, f.Flow.Task(int(p)).ID)
		}
		after[f.Flow.Task(i).ID] = strings.Join(parents, " ")
	}
	return w, f, after
}

// As snakemake --dag writes it, with a rule all, a job that is done, and wildcards.
const snakemakeDot = `digraph snakemake_dag {
    graph[bgcolor=white, margin=0];
    node[shape=box, style=rounded, fontname=sans,                 fontsize=10, penwidth=2];
    edge[penwidth=2, color=grey];
	0[label = "all", color = "0.33 0.6 0.85", style="rounded"];
	1[label = "call", color = "0.50 0.6 0.85", style="rounded"];
	2[label = "sort\nsample: A", color = "0.17 0.6 0.85", style="rounded"];
	3[label = "map\nsample: A\nref: it's \"x\"", color = "0.00 0.6 0.85", style="rounded,dashed"];
	4[label = "sort\nsample: B", color = "0.17 0.6 0.85", style="rounded"];
	1 -> 0
	2 -> 1
	4 -> 1
	3 -> 2
}
`

func TestSnakemakeDot(t *testing.T) {
	w, f, after := imported(t, snakemakeDot, "dir/snake.dot", foreign.Options{Command: "snakemake -c1 -U {rule} -- {sample} {ref} ${HOME}"})
	if diff := cmp.Diff(map[string]string{"call": "sort-A sort-B", "sort-A": `map-A-it's "x"`, `map-A-it's "x"`: "", "sort-B": ""}, after); diff != "" || f.Name != "snake" {
		t.Error(diff, f.Name)
	}
	if want := "#!/bin/sh\nsnakemake -c1 -U map -- A 'it'\\''s \"x\"' ${HOME}\n"; f.Tasks[2].Script != want {
		t.Errorf("map runs %q, want %q", f.Tasks[2].Script, want)
	}
	if diff := cmp.Diff([]string{
		"the rule all was left out; it runs nothing",
		"1 of 4 tasks were done already when the file was written; they are in the workflow all the same",
		"the run time of 4 of 4 tasks is not known and taken for 00:10:00",
		"3 of 4 tasks do not have every name that --command has in braces; it stands there as written",
	}, w.Notes); diff != "" {
		t.Error(diff)
	}
}

// The same graph as dot itself writes it, over several lines.
func TestDotAsDotWritesIt(t *testing.T) {
	_, f, after := imported(t, "digraph snakemake_dag {\n\tgraph [bb=\"0,0,180,180\",\n\t\tmargin=0\n\t];\n\tnode [label=\"\\N\",\n\t\tshape=box\n\t];\n\t0\t [color=\"0.50 0.6 0.85\",\n\t\tlabel=variants,\n\t\tpos=\"95,90\"];\n\t3\t [label=call];\n\t0 -> 3\t [pos=\"e,95,36.104 95,71.697\"];\n}\n", "x.dot", foreign.Options{})
	if diff := cmp.Diff(map[string]string{"variants": "", "call": "variants"}, after); diff != "" || !strings.Contains(f.Tasks[0].Script, "exit 78") {
		t.Error(diff, f.Tasks[0].Script)
	}
}

func TestSnakemakeD3(t *testing.T) {
	w, _, after := imported(t, `{"nodes": [{"id": 0, "value": {"jobid": 0, "label": "all", "rule": "all"}}, {"id": 1, "value": {"jobid": 1, "label": "map", "rule": "map"}},
 {"id": 2, "value": {"jobid": 2, "label": "map", "rule": "map"}}, {"id": 3, "value": {"jobid": 3, "label": "join", "rule": "join"}}],
 "links": [{"u": 1, "v": 3}, {"u": 2, "v": 3}, {"u": 3, "v": 0}]}`, "dag.json", foreign.Options{})
	if diff := cmp.Diff(map[string]string{"map": "", "map#2": "", "join": "map map#2"}, after); diff != "" {
		t.Error(diff)
	}
	if w.Form != "snakemake-json" || !strings.Contains(strings.Join(w.Notes, "\n"), "1 of 3 tasks got another name") {
		t.Error(w.Form, w.Notes)
	}
}

// As nextflow -with-dag writes it: what is no process is passed through, and where joined
// channels make a cycle the edge through them is left out, not that between processes.
const nextflowMermaid = "flowchart TB\n    subgraph \" \"\n    v0[\"reads\"]\n    end\n    subgraph \"QC [QC]\"\n    v1([\"TRIM\"])\n    end\n    v2(( ))\n    v3([MAP])\n    v4([SUM])\n" +
	"    subgraph \" \"\n    v9[\" \"]\n    end\n    v0 --> v1\n    v1 --> v2\n    v2 --> v3\n    v3 -->|bam| v4\n    v4 --> v2\n    v4 --> v9\n"

func TestNextflowMermaid(t *testing.T) {
	w, _, after := imported(t, nextflowMermaid, "flow.mmd", foreign.Options{})
	if diff := cmp.Diff(map[string]string{"TRIM": "", "MAP": "TRIM", "SUM": "MAP"}, after); diff != "" {
		t.Error(diff)
	}
	if notes := strings.Join(w.Notes, "\n"); !strings.Contains(notes, "left out: 1 edges that close a cycle") || !strings.Contains(notes, "shows processes, not tasks") {
		t.Error(notes)
	}
}

func TestNextflowDot(t *testing.T) {
	_, _, after := imported(t, `digraph "flow" {
rankdir=TB;
v0 [shape=point,label="",fixedsize=true,width=0.1,xlabel="Channel.fromPath"];
v1 [label="QC:TRIM"];
v0 -> v1 [label="reads"];

v1 [label="QC:TRIM"];
v2 [shape=circle,label="",fixedsize=true,width=0.1,xlabel="map"];
v1 -> v2;

v2 [shape=circle,label="",fixedsize=true,width=0.1,xlabel="map"];
v3 [label="MAP"];
v2 -> v3;

}
`, "flow.dot", foreign.Options{})
	if diff := cmp.Diff(map[string]string{"QC:TRIM": "", "MAP": "QC:TRIM"}, after); diff != "" {
		t.Error(diff)
	}
}

// As nextflow -with-trace writes it, with cpus and memory among the fields.
const trace = "task_id\thash\tnative_id\tname\tstatus\texit\tsubmit\tduration\trealtime\t%cpu\tcpus\tmemory\n" +
	"1\t0a/1\t15\tQC:TRIM (A)\tCOMPLETED\t0\t2026-01-01 10:10:29.508\t2m\t1m 30s\t90%\t1\t-\n" +
	"2\t0a/2\t16\tQC:TRIM (B)\tCACHED\t0\t-\t2m\t850ms\t90%\t1\t-\n" +
	"3\t0a/3\t17\tMAP (A)\tFAILED\t1\t-\t2m\t1m 30s\t90%\t4\t8 GB\n" +
	"4\t0a/4\t18\tMAP (A)\tCOMPLETED\t0\t-\t2m\t1h 2m\t90%\t4\t8 GB\n" +
	"5\t0a/5\t19\tMAP (B)\tCOMPLETED\t0\t-\t2m\t61000\t90%\t4\t8 GB\n" +
	"6\t0a/6\t20\tSUM (1)\tCOMPLETED\t0\t-\t2m\t-\t90%\t1\t-\n" +
	"7\t0a/7\t21\tOTHER\tCOMPLETED\t0\t-\t2m\t5s\t90%\t1\t-\n"

func TestNextflowTrace(t *testing.T) {
	w, f, after := imported(t, nextflowMermaid, "flow.mmd", foreign.Options{Trace: []byte(trace), TraceName: "trace.txt"})
	if diff := cmp.Diff(map[string]string{
		"QC:TRIM (A)": "", "QC:TRIM (B)": "", "MAP (A)": "QC:TRIM (A)", "MAP (B)": "QC:TRIM (B)", "SUM (1)": "MAP (A) MAP (B)",
	}, after); diff != "" {
		t.Error(diff)
	}
	var times []string
	for i := range f.Flow.Len() {
		task := f.Flow.Task(i)
		times = append(times, fmt.Sprintf("%d on %d", task.Duration(task.Fewest()), task.Fewest()))
	}
	if diff := cmp.Diff([]string{"90 on 1", "1 on 1", "3720 on 4", "61 on 4", "120 on 1"}, times); diff != "" || f.Tasks[2].Needs.MemoryMB != 2148 {
		t.Error(diff, f.Tasks[2].Needs)
	}
	notes := strings.Join(w.Notes, "\n")
	for _, want := range []string{"left out: 1 tasks of the trace that did not complete", "left out: 1 tasks of the trace whose process", "2 times those of the same tag, 2 times all of a process"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%s\nwant %s", notes, want)
		}
	}
}

const makeflow = `# as the manual has it
CONVERT=/usr/bin/convert
URL="http://example.org/it"
export MODE=quick run
CATEGORY="image"
CORES=2
MEMORY=1024

movie.gif: still.jpg turned.jpg \
    swirled.jpg
	LOCAL $(CONVERT) -delay 10 still.jpg turned.jpg swirled.jpg movie.gif

turned.jpg: still.jpg
	$(CONVERT) -swirl 90 still.jpg turned.jpg $HOME $$x

swirled.jpg log: still.jpg tool->bin/tool
	$(CONVERT) -swirl 180 still.jpg swirled.jpg

.MAKEFLOW CATEGORY fetch
.MAKEFLOW WALL_TIME 90
.SIZE still.jpg 5M
still.jpg:
	curl -o still.jpg ${URL}
`

func TestMakeflow(t *testing.T) {
	w, f, after := imported(t, makeflow, "Makeflow", foreign.Options{})
	if diff := cmp.Diff(map[string]string{"movie.gif": "turned.jpg swirled.jpg still.jpg", "turned.jpg": "still.jpg", "swirled.jpg": "still.jpg", "still.jpg": ""}, after); diff != "" {
		t.Error(diff)
	}
	if want := "#!/bin/sh\nexport MODE='quick run'\n/usr/bin/convert -swirl 90 still.jpg turned.jpg $HOME $x\n"; f.Tasks[1].Script != want {
		t.Errorf("%q, want %q", f.Tasks[1].Script, want)
	}
	if last := f.Flow.Task(3); last.Duration(1) != 90 || last.Few != 1 || !strings.HasSuffix(f.Tasks[3].Script, "\ncurl -o still.jpg http://example.org/it\n") {
		t.Errorf("%+v runs %q", last, f.Tasks[3].Script)
	}
	if f.Flow.Task(0).Few != 2 || f.Tasks[0].Needs.MemoryMB != 512 || !cmp.Equal(f.Tasks[2].Inputs, []string{"still.jpg", "tool"}) || !cmp.Equal(f.Tasks[2].Outputs, []string{"swirled.jpg", "log"}) {
		t.Errorf("%+v and %+v", f.Tasks[0], f.Tasks[2])
	}
	if notes := strings.Join(w.Notes, "\n"); !strings.Contains(notes, "rules that are LOCAL: 1") || !strings.Contains(notes, "the run time of 3 of 4 tasks") {
		t.Error(notes)
	}
}

var bad = []struct{ name, text, want string }{
	{"nothing known", "hello\n", "x: neither a DAG of Snakemake or Nextflow nor a Makeflow"},
	{"binary", "a: b\n\tc\x00", "x: not text in UTF-8"},
	{"no task", "digraph snakemake_dag {\n}\n", "x: no task in it"},
	{"no statement", "digraph snakemake_dag {\n\t0[label = \"a\"];\n\t0 <> 1\n}\n", `x:3: "0 <> 1" is neither a vertex nor an edge`},
	{"mermaid", "flowchart TB\n v1([A])\n v1 ==> v2\n", `x:3: "v1 ==> v2" is neither a vertex nor an edge`},
	{"json", `{"nodes": [{"id": {}}], "links": []}`, "x: not what snakemake --d3dag prints"},
	{"links", `{"nodes": [{"id": 1, "value": {"label": "a"}}], "links": [{"u": 1, "v": 2}]}`, "x: a link from 1 to 2, and one of them is not among the nodes"},
	{"two writers", "a: b\n\tc\na: d\n\te\n", `x:3: "a" is written by a rule above already`},
	{"itself", "a: a\n\tc\n", `x:1: the rule reads "a", which it writes`},
	{"two commands", "a: b\n\tc\n\td\n", "x:3: a command without a rule above it"},
	{"no command", "a: b\n\tc\nd: e\nf: g\n\th\n", "x:4: the rule above has no command"},
	{"no last command", "a: b\n\tc\nd: e\n", "x: the last rule has no command"},
	{"no rule", "a: b\n\tc\nwhat is this\n", `x:3: "what is this" is no rule, variable or comment`},
	{"inner", "a: b\n\tMAKEFLOW sub.mf\n", "x:2: a rule that runs another Makeflow"},
	{"doubled", "A=xxxxxxxxxxxxxxxx\n" + strings.Repeat("A=$(A)$(A)\n", 60) + "a: b\n\tc\n", "the variable A has more than 65536 bytes"},
	{"many", "a: b\n\tc\n" + rules(flowfile.MaxTasks), "more than 10000 rules"},
}

func rules(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "f%d:\n\tc\n", i)
	}
	return text.String()
}

func TestMistakesAreToldWithTheirLines(t *testing.T) {
	for _, c := range bad {
		_, err := foreign.Read([]byte(c.text), "x", foreign.Options{Time: 600})
		if mistake, is := errors.AsType[*berth.Error](err); !is || mistake.Code != berth.Invalid || !strings.Contains(mistake.Msg, c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"task_id\thash\n":                            "t:1: no column called name",
		"name\trealtime\nA\tsoon\n":                  `t:2: "soon"; want a time`,
		"name\trealtime\n\t5s\n":                     "t:2: a row without a name",
		"name\trealtime\nA\t99999999999999999999d\n": "t:2: ",
	} {
		_, err := foreign.Read([]byte(nextflowMermaid), "x", foreign.Options{Time: 600, Trace: []byte(text), TraceName: "t"})
		if mistake, is := errors.AsType[*berth.Error](err); !is || !strings.Contains(mistake.Msg, want) {
			t.Errorf("trace %q: %v, want %s", text, err, want)
		}
	}
}

// Whatever the bytes: no panic; a workflow that Berth reads, or a complaint.
func FuzzRead(f *testing.F) {
	for _, c := range bad {
		if len(c.text) < 2000 {
			f.Add(c.text, "")
		}
	}
	for _, text := range []string{snakemakeDot, nextflowMermaid, makeflow} {
		f.Add(text, trace)
		f.Add(text, "")
	}
	f.Fuzz(func(t *testing.T, text, trace string) {
		opt := foreign.Options{Time: 600, Command: "run {rule} {name} {tag}"}
		if trace != "" {
			opt.Trace, opt.TraceName = []byte(trace), "t"
		}
		w, err := foreign.Read([]byte(text), "x", opt)
		if err != nil {
			if mistake, is := errors.AsType[*berth.Error](err); !is || mistake.Code != berth.Invalid {
				t.Fatal(err)
			}
			return
		}
		var made bytes.Buffer
		if err := foreign.WriteYAML(&made, w); err != nil {
			t.Fatal(err)
		}
		_, err = flowfile.Read(bytes.NewReader(made.Bytes()), "made", flowfile.Options{})
		if w.Form != "makeflow" && err != nil {
			t.Fatalf("%v\n%s", err, made.String())
		}
	})
}
