// Package foreign reads the workflows of other systems, Snakemake, Nextflow and
// Makeflow, from what their files tell, and writes them as Berth's own YAML. What it
// must guess it says. It runs none of these systems.
package foreign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/workflow/flowfile"
)

// Form is the notation of a file.
type Form struct{ Name, About string }

// Forms are the notations that are read.
var Forms = []Form{
	{"snakemake-dot", "snakemake --dag (dot)"},
	{"snakemake-json", "snakemake --d3dag"},
	{"nextflow-dot", "nextflow -with-dag FILE.dot"},
	{"nextflow-mermaid", "nextflow -with-dag FILE.mmd"},
	{"makeflow", "a Makeflow of rules"},
}

// maxBytes bounds a file.
const maxBytes = 64 << 20

// Options say how to read a file.
type Options struct {
	Form string // empty finds it out
	// Time is taken for tasks whose run time is not known.
	Time berth.Duration
	// Trace is a trace file of Nextflow, and TraceName what it is called; nil is none.
	Trace     []byte
	TraceName string
	// Command is a line of the shell that runs a task where the file does not tell
	// what it runs; {rule}, {name} and the names of wildcards in braces are replaced.
	// Empty leaves a script that fails and says so.
	Command string
}

// Workflow is what a file held.
type Workflow struct {
	Name  string
	Form  string
	Tasks []Task
	Notes []string // what was guessed or left out, a line each
}

// Task is a task of another system.
type Task struct {
	Name            string
	Rule            string // or process, or category
	Script          string
	After           []int // indices of tasks
	Inputs, Outputs []string
	Time            berth.Duration
	Cores           int   // 0 is not told
	MemoryMB        int64 // of the task; 0 is not told
	Wildcards       [][2]string
	Done            bool // had been done already when the file was written
}

// Read reads a workflow. Errors are of code Invalid and name file and line.
func Read(text []byte, name string, opt Options) (*Workflow, error) {
	if len(text) > maxBytes {
		return nil, berth.Errorf(berth.Invalid, "workflow", "%s: larger than %d bytes", name, maxBytes)
	}
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return nil, berth.Errorf(berth.Invalid, "workflow", "%s: not text in UTF-8", name)
	}
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	form := opt.Form
	if form == "" {
		if form = formOf(text); form == "" {
			return nil, berth.Errorf(berth.Invalid, "workflow", "%s: neither a DAG of Snakemake or Nextflow nor a Makeflow; --from names the notation", name)
		}
	}
	w := &Workflow{Name: strings.TrimSuffix(baseName(name), ".makeflow"), Form: form}
	var err error
	switch form {
	case "snakemake-dot", "nextflow-dot":
		var g *graph
		if g, err = readDot(string(text), name); err == nil {
			err = w.take(g, name, &opt)
		}
	case "snakemake-json":
		var g *graph
		if g, err = readD3(text, name); err == nil {
			err = w.take(g, name, &opt)
		}
	case "nextflow-mermaid":
		var g *graph
		if g, err = readMermaid(string(text), name); err == nil {
			err = w.take(g, name, &opt)
		}
	case "makeflow":
		err = w.makeflow(string(text), name)
	default:
		return nil, berth.Errorf(berth.Invalid, "from", "%q is not a notation", form)
	}
	if err != nil {
		return nil, err
	}
	if len(w.Tasks) == 0 {
		return nil, berth.Errorf(berth.Invalid, "workflow", "%s: no task in it", name)
	}
	if len(w.Tasks) > flowfile.MaxTasks {
		return nil, berth.Errorf(berth.Invalid, "tasks", "%s: %d tasks; at most %d can be promised and run", name, len(w.Tasks), flowfile.MaxTasks)
	}
	w.finish(&opt)
	return w, nil
}

// formOf tells the notation by the content.
func formOf(text []byte) string {
	trimmed := bytes.TrimLeft(text, " \t\n")
	switch {
	case bytes.Contains(text, []byte("digraph snakemake_dag")):
		return "snakemake-dot"
	case dotHead.Match(trimmed):
		return "nextflow-dot"
	case bytes.HasPrefix(trimmed, []byte("{")) && bytes.Contains(text, []byte(`"links"`)):
		return "snakemake-json"
	case mermaidHead.Match(text):
		return "nextflow-mermaid"
	case ruleHead.Match(text):
		return "makeflow"
	}
	return ""
}

var (
	dotHead     = regexp.MustCompile(`^(strict\s+)?digraph\b`)
	mermaidHead = regexp.MustCompile(`(?m)^\s*flowchart\s+(TB|TD|LR)\s*$`)
	ruleHead    = regexp.MustCompile(`(?m)^[^\s#:=][^:=\n]*:[^=\n]*\n\t`)
)

func baseName(name string) string {
	name = name[strings.LastIndexByte(name, '/')+1:]
	for _, end := range []string{".dot", ".json", ".mmd"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}

// note adds a line if there is something to tell.
func (w *Workflow) note(n int, format string, args ...any) {
	if n > 0 {
		w.Notes = append(w.Notes, fmt.Sprintf(format, args...))
	}
}

// finish gives every task a name of its own, a run time, and something to run.
func (w *Workflow) finish(opt *Options) {
	taken := make(map[string]int)
	timeless, idle, renamed, unfilled := 0, 0, 0, 0
	for i := range w.Tasks {
		t := &w.Tasks[i]
		name := nameOf(t.Name)
		for k := 2; taken[name] > 0; k++ {
			name = nameOf(t.Name) + "#" + strconv.Itoa(k)
		}
		if name != t.Name {
			renamed++
		}
		taken[name]++
		t.Name = name
		if t.Time == 0 {
			t.Time = opt.Time
			timeless++
		}
		if t.Script == "" {
			if opt.Command == "" {
				idle++
				t.Script = "#!/bin/sh\necho 'write here what this task runs' >&2\nexit 78\n"
				continue
			}
			line := t.filled(opt.Command)
			if braces.MatchString(line) {
				unfilled++
			}
			t.Script = "#!/bin/sh\n" + line + "\n"
		}
	}
	w.note(renamed, "%d of %d tasks got another name, since theirs was taken, too long or not one line", renamed, len(w.Tasks))
	w.note(timeless, "the run time of %d of %d tasks is not known and taken for %s", timeless, len(w.Tasks), hpctime.Format(opt.Time))
	w.note(idle, "what %d of %d tasks run is not known: they fail until you write it, or import again with --command", idle, len(w.Tasks))
	w.note(unfilled, "%d of %d tasks do not have every name that --command has in braces; it stands there as written", unfilled, len(w.Tasks))
}

// nameOf makes one line of at most 100 bytes of a name.
func nameOf(name string) string {
	name = strings.Join(strings.FieldsFunc(name, func(c rune) bool {
		return c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 || c == '\u2028' || c == '\u2029'
	}), " ")
	name = strings.TrimSpace(name)
	if len(name) > 100 {
		name = strings.TrimSpace(strings.ToValidUTF8(name[:100], ""))
	}
	if name == "" {
		return "task"
	}
	return name
}

// filled replaces what stands in braces in a line of the shell by quoted words.
func (t *Task) filled(line string) string {
	pairs := []string{"{rule}", shellWord(t.Rule), "{name}", shellWord(t.Name)}
	for _, w := range t.Wildcards {
		pairs = append(pairs, "{"+w[0]+"}", shellWord(w[1]))
	}
	return strings.NewReplacer(pairs...).Replace(line)
}

// shellWord quotes a word for the shell, unless it needs no quotes.
func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// braces is a name in braces that was not replaced; the shell's own have a dollar.
var braces = regexp.MustCompile(`(^|[^$])\{[A-Za-z_]\w*\}`)

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// WriteYAML writes a workflow as flowfile reads it, what was guessed as comments
// before it.
func WriteYAML(w io.Writer, flow *Workflow) error {
	var out bytes.Buffer
	for _, note := range flow.Notes {
		fmt.Fprintf(&out, "# %s\n", strings.Join(strings.Fields(note), " "))
	}
	fmt.Fprintf(&out, "workflow: %s\n\ntasks:\n", quoted(nameOf(flow.Name)))
	writers := make(map[string]int)
	for i := range flow.Tasks {
		for _, file := range flow.Tasks[i].Outputs {
			writers[file] = i
		}
	}
	for i := range flow.Tasks {
		flow.Tasks[i].write(&out, flow, writers)
	}
	_, err := w.Write(out.Bytes())
	return err
}

func (t *Task) write(out *bytes.Buffer, flow *Workflow, writers map[string]int) {
	fmt.Fprintf(out, "  - name: %s\n", quoted(t.Name))
	if t.Done {
		out.WriteString("    # was done already when the file was written\n")
	}
	if strings.ContainsFunc(t.Script, func(c rune) bool { return c < ' ' && c != '\n' || c >= 0x7f }) || strings.Contains(t.Script, "\n ") {
		fmt.Fprintf(out, "    script: %s\n", quoted(t.Script))
	} else {
		fmt.Fprintf(out, "    script: |\n      %s\n", strings.ReplaceAll(strings.TrimRight(t.Script, "\n"), "\n", "\n      "))
	}
	var after []string
	for _, p := range t.After {
		follows := slices.ContainsFunc(t.Inputs, func(file string) bool { at, known := writers[file]; return known && at == p })
		if name := flow.Tasks[p].Name; !follows && !slices.Contains(after, name) {
			after = append(after, name)
		}
	}
	writeList(out, "after", after)
	writeList(out, "inputs", t.Inputs)
	writeList(out, "outputs", t.Outputs)
	fmt.Fprintf(out, "    time: %q\n", hpctime.Format(t.Time))
	cores := max(1, t.Cores)
	if cores > 1 {
		fmt.Fprintf(out, "    pes: %d\n", cores)
	}
	if t.MemoryMB > 0 {
		fmt.Fprintf(out, "    memory: %dMB\n", (t.MemoryMB+int64(cores)-1)/int64(cores))
	}
}

func writeList(out *bytes.Buffer, key string, names []string) {
	if len(names) == 0 {
		return
	}
	words := make([]string, len(names))
	for i, name := range names {
		words[i] = quoted(name)
	}
	fmt.Fprintf(out, "    %s: [%s]\n", key, strings.Join(words, ", "))
}

// quoted writes a text in double quotes, in which YAML reads what JSON reads.
func quoted(text string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a text always encodes
	return strings.TrimSuffix(out.String(), "\n")
}
