package foreign

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workflow/flowfile"
)

// rules reads a Makeflow.
type rules struct {
	*Workflow
	name      string
	variables map[string]string
	category  string
	resources map[string]map[string]string // by category
	exports   []string
	local     int
	writers   map[string]bool
}

// maxValue bounds the text of a variable, which others may double again and again.
const maxValue = 1 << 16

// resourceNames are the variables that say what the rules of a category need.
var resourceNames = []string{"CORES", "MEMORY", "DISK", "WALL_TIME", "GPUS"}

var (
	assignment = regexp.MustCompile(`^(export\s+)?@?([A-Za-z_][A-Za-z0-9_]*)\s*(\+?=)\s*(.*)$`)
	exportOnly = regexp.MustCompile(`^export\s+([A-Za-z_][A-Za-z0-9_]*(?:\s+[A-Za-z_][A-Za-z0-9_]*)*)$`)
	reference  = regexp.MustCompile(`\$\(([A-Za-z_][A-Za-z0-9_]*)\)|\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$([A-Za-z_][A-Za-z0-9_]*)|\$\$`)
)

// makeflow reads the rules of a Makeflow in the classic notation: outputs, a colon,
// inputs, and below them a command behind a tab.
func (w *Workflow) makeflow(text, name string) error {
	r := &rules{Workflow: w, name: name, variables: map[string]string{}, resources: map[string]map[string]string{"": {}}, writers: map[string]bool{}}
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		at := i + 1
		line := lines[i]
		for strings.HasSuffix(line, "\\") && i+1 < len(lines) {
			i++
			line = strings.TrimSuffix(line, "\\") + " " + strings.TrimLeft(lines[i], " \t")
		}
		if err := r.line(line, at); err != nil {
			return err
		}
	}
	if n := len(w.Tasks); n > 0 && w.Tasks[n-1].Script == "" {
		return berth.Errorf(berth.Invalid, "workflow", "%s: the last rule has no command", name)
	}
	r.tell()
	return nil
}

// line reads a logical line.
func (r *rules) line(line string, at int) error {
	trimmed := strings.TrimSpace(line)
	n := len(r.Tasks)
	waiting := n > 0 && r.Tasks[n-1].Script == ""
	switch {
	case trimmed == "" || strings.HasPrefix(trimmed, "#"):
		return nil
	case line[0] == '\t' || line[0] == ' ' && waiting:
		if waiting && strings.HasPrefix(trimmed, "@") {
			return nil // a variable of the rule alone, for batch systems
		}
		if !waiting {
			return berth.Errorf(berth.Invalid, "workflow", "%s:%d: a command without a rule above it; a rule has one command", r.name, at)
		}
		return r.command(trimmed, at)
	case waiting:
		return berth.Errorf(berth.Invalid, "workflow", "%s:%d: the rule above has no command; want one behind a tab", r.name, at)
	case strings.HasPrefix(trimmed, "."):
		return r.directive(trimmed)
	}
	if m := exportOnly.FindStringSubmatch(trimmed); m != nil {
		r.exports = append(r.exports, strings.Fields(m[1])...)
		return nil
	}
	if m := assignment.FindStringSubmatch(trimmed); m != nil {
		return r.assign(m, at)
	}
	outputs, inputs, isRule := strings.Cut(r.expanded(trimmed), ":")
	if !isRule || strings.TrimSpace(outputs) == "" {
		return berth.Errorf(berth.Invalid, "workflow", "%s:%d: %.60q is no rule, variable or comment of a Makeflow", r.name, at, trimmed)
	}
	t := Task{Rule: r.category, Outputs: files(outputs), Inputs: files(inputs)}
	for _, file := range t.Outputs {
		if r.writers[file] {
			return berth.Errorf(berth.Invalid, "outputs", "%s:%d: %q is written by a rule above already; only one may write a file", r.name, at, file)
		}
		r.writers[file] = true
		if slices.Contains(t.Inputs, file) {
			return berth.Errorf(berth.Invalid, "inputs", "%s:%d: the rule reads %q, which it writes", r.name, at, file)
		}
	}
	if n == flowfile.MaxTasks {
		return berth.Errorf(berth.Invalid, "tasks", "%s:%d: more than %d rules; no more can be promised and run", r.name, at, flowfile.MaxTasks)
	}
	t.Name = path.Base(t.Outputs[0])
	r.Tasks = append(r.Tasks, t)
	return nil
}

// files are the names in a list, without what they are called elsewhere and each once.
func files(list string) (names []string) {
	for name := range strings.FieldsSeq(list) {
		name, _, _ = strings.Cut(name, "->")
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// command gives the last rule its command.
func (r *rules) command(line string, at int) error {
	t := &r.Tasks[len(r.Tasks)-1]
	line = r.expanded(line)
	if rest, local := strings.CutPrefix(line, "LOCAL "); local {
		r.local++
		line = strings.TrimSpace(rest)
	}
	if line == "MAKEFLOW" || strings.HasPrefix(line, "MAKEFLOW ") {
		return berth.Errorf(berth.Invalid, "workflow", "%s:%d: a rule that runs another Makeflow; import that one by itself", r.name, at)
	}
	t.Script = "#!/bin/sh\n"
	slices.Sort(r.exports)
	r.exports = slices.Compact(r.exports)
	for _, name := range r.exports {
		if value, known := r.variables[name]; known {
			t.Script += "export " + name + "=" + shellWord(value) + "\n"
		}
	}
	t.Script += line + "\n"
	if n, err := strconv.Atoi(r.resource("CORES")); err == nil && n > 0 && n <= berth.MaxPEs {
		t.Cores = n
	}
	if n, err := strconv.ParseInt(r.resource("MEMORY"), 10, 64); err == nil && n > 0 && n < berth.MaxMegabytes {
		t.MemoryMB = n
	}
	if n, err := strconv.ParseInt(r.resource("WALL_TIME"), 10, 64); err == nil && n > 0 && n <= flowfile.MaxTime {
		t.Time = berth.Duration(n)
	}
	return nil
}

// resource returns what the category says, or all rules.
func (r *rules) resource(name string) string {
	if value := r.resources[r.category][name]; value != "" {
		return value
	}
	return r.resources[""][name]
}

// directive reads what the newer notation has in place of variables.
func (r *rules) directive(line string) error {
	words := strings.Fields(r.expanded(line))
	if words[0] != ".MAKEFLOW" || len(words) < 3 {
		return nil // sizes of files and containers
	}
	if words[1] == "CATEGORY" {
		r.enter(words[2])
	} else if slices.Contains(resourceNames, words[1]) {
		r.resources[r.category][words[1]] = words[2]
	}
	return nil
}

func (r *rules) enter(category string) {
	r.category = category
	if r.resources[category] == nil {
		r.resources[category] = map[string]string{}
	}
}

// assign sets a variable.
func (r *rules) assign(m []string, at int) error {
	name, value := m[2], strings.TrimSpace(m[4])
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		value = value[1 : n-1]
	}
	value = r.expanded(value)
	if m[3] == "+=" && r.variables[name] != "" {
		value = r.variables[name] + " " + value
	}
	switch {
	case len(value) > maxValue:
		return berth.Errorf(berth.Invalid, "workflow", "%s:%d: the variable %s has more than %d bytes", r.name, at, name, maxValue)
	case name == "CATEGORY":
		r.enter(value)
	case slices.Contains(resourceNames, name):
		r.resources[r.category][name] = value
	}
	r.variables[name] = value
	if m[1] != "" {
		r.exports = append(r.exports, name)
	}
	return nil
}

// expanded replaces variables of the Makeflow; others are for the shell.
func (r *rules) expanded(text string) string {
	return reference.ReplaceAllStringFunc(text, func(ref string) string {
		if ref == "$$" {
			return "$"
		}
		if value, known := r.variables[strings.Trim(ref, "$(){}")]; known {
			return value
		}
		return ref
	})
}

// tell notes what is not as it was.
func (r *rules) tell() {
	r.note(r.local, "rules that are LOCAL: %d; they run at the site like the others", r.local)
	memory := 0
	for i := range r.Tasks {
		if r.Tasks[i].MemoryMB > 0 {
			memory++
		}
	}
	r.note(memory, "rules with a memory: %d; it is divided by their cores", memory)
}
