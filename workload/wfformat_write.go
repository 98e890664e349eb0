package workload

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workflow"
)

// What the writer puts into a file, one object a line for each task.
type (
	wfSpecified struct {
		Name     string   `json:"name"`
		ID       string   `json:"id"`
		Parents  []string `json:"parents"`
		Children []string `json:"children"`
		Alpha    float64  `json:"alpha"`
	}
	wfExecuted struct {
		ID      string  `json:"id"`
		Seconds float64 `json:"runtimeInSeconds"`
	}
	// wfOld is a task up to 1.4; a run time is in one of the two fields.
	wfOld struct {
		Name     string   `json:"name"`
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Parents  []string `json:"parents"`
		Children []string `json:"children"`
		Alpha    float64  `json:"alpha"`
		Runtime  *float64 `json:"runtime,omitempty"`          // 1.3
		Seconds  *float64 `json:"runtimeInSeconds,omitempty"` // 1.4
	}
)

// executedAt stands where the format demands when a workflow was run: no date,
// so that equal workflows make equal files.
const executedAt = "1970-01-01T00:00:00Z"

// WriteWorkflow writes a workflow in a version of WfFormat. The sequential times
// are written as run times on one core, and the serial fractions as alpha. The
// format demands a makespan: it is the longest path with every task on one PE.
// A task without a name gets its id for one. ReadWorkflow reads back the same
// tasks and edges.
//
// A version that is not among WfVersions, no name, or a text that is not
// printable UTF-8 is an *berth.Error with code Invalid. Failures of w are
// wrapped. Cost: O(n + e).
func WriteWorkflow(w io.Writer, name, version string, flow *workflow.Workflow) error {
	switch {
	case !slices.Contains(WfVersions(), version):
		return berth.Errorf(berth.Invalid, "schemaVersion", "%q; want %s", version, strings.Join(WfVersions(), ", "))
	case name == "" || !printable(name):
		return berth.Errorf(berth.Invalid, "name", "%q; want a printable name for the workflow", name)
	case flow == nil || flow.Len() == 0:
		return berth.Errorf(berth.Invalid, "tasks", "none; a workflow needs at least one task")
	}
	for i := range flow.Len() {
		if t := flow.Task(i); !printable(t.ID) || !printable(t.Name) {
			return berth.Errorf(berth.Invalid, "id", "task %q, %q: not printable UTF-8", t.ID, t.Name)
		}
	}
	out := &wfWriter{out: bufio.NewWriterSize(w, bufferSize), flow: flow}
	out.text("{\n  \"name\": ").value(name).text(",\n  \"schemaVersion\": ").value(version).text(",\n  \"workflow\": {\n")
	makespan := longestPath(flow)
	switch version {
	case "1.3":
		out.text("    \"makespan\": ").value(makespan).text(",\n    \"executedAt\": ").value(executedAt).text(",\n    \"tasks\": [")
		out.list(func(i int) any {
			t := oldTask(flow, i)
			t.Runtime, t.Seconds = t.Seconds, nil
			return t
		})
	case "1.4":
		out.text("    \"makespanInSeconds\": ").value(makespan).text(",\n    \"executedAt\": ").value(executedAt).text(",\n    \"tasks\": [")
		out.list(func(i int) any { return oldTask(flow, i) })
	default:
		out.text("    \"specification\": {\"tasks\": [")
		out.list(func(i int) any {
			t := oldTask(flow, i)
			return wfSpecified{Name: t.Name, ID: t.ID, Parents: t.Parents, Children: t.Children, Alpha: t.Alpha}
		})
		out.text("},\n    \"execution\": {\"makespanInSeconds\": ").value(makespan).text(", \"executedAt\": ").value(executedAt).text(", \"tasks\": [")
		out.list(func(i int) any {
			t := flow.Task(i)
			return wfExecuted{ID: t.ID, Seconds: t.Sequential}
		})
		out.text("}")
	}
	out.text("\n  }\n}\n")
	if err := out.flush(); err != nil {
		return fmt.Errorf("write workflow: %w", err)
	}
	return nil
}

// wfWriter writes JSON by hand where the lines matter, and values by the
// encoder.
type wfWriter struct {
	out  *bufio.Writer
	flow *workflow.Workflow
	err  error
}

func (w *wfWriter) text(text string) *wfWriter {
	_, _ = w.out.WriteString(text) // flush tells
	return w
}

func (w *wfWriter) value(v any) *wfWriter {
	var line strings.Builder
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil && w.err == nil {
		w.err = err
	}
	return w.text(strings.TrimSuffix(line.String(), "\n"))
}

// list writes a value for each task and closes the array.
func (w *wfWriter) list(of func(i int) any) {
	for i := range w.flow.Len() {
		if i > 0 {
			w.text(",")
		}
		w.text("\n      ").value(of(i))
	}
	w.text("\n    ]")
}

func (w *wfWriter) flush() error {
	if w.err != nil {
		return w.err
	}
	return w.out.Flush()
}

// oldTask returns task i as 1.4 has it.
func oldTask(flow *workflow.Workflow, i int) wfOld {
	t := flow.Task(i)
	out := wfOld{Name: t.Name, ID: t.ID, Type: "compute", Parents: []string{}, Children: []string{}, Alpha: t.Alpha, Seconds: &t.Sequential}
	if out.Name == "" {
		out.Name = t.ID
	}
	for _, p := range flow.Parents(i) {
		out.Parents = append(out.Parents, flow.Task(int(p)).ID)
	}
	for _, c := range flow.Children(i) {
		out.Children = append(out.Children, flow.Task(int(c)).ID)
	}
	return out
}

// longestPath returns the seconds of the longest path, each task on one PE.
func longestPath(flow *workflow.Workflow) float64 {
	ends := make([]float64, flow.Len())
	longest := 0.0
	for _, i := range flow.Topological() {
		for _, p := range flow.Parents(int(i)) {
			ends[i] = max(ends[i], ends[p])
		}
		ends[i] += flow.Task(int(i)).Sequential
		longest = max(longest, ends[i])
	}
	return longest
}

// printable reports whether a text is UTF-8 without control characters.
func printable(text string) bool { return utf8.ValidString(text) && !hasControl(text) }
