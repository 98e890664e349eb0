package foreign

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
)

// graph is a DAG as a picture of it says: vertices, some of them tasks.
type graph struct {
	vertices []vertex
	index    map[string]int
	edges    [][2]int
}

// vertex is something in a picture.
type vertex struct {
	label string
	task  bool
	done  bool
}

func newGraph() *graph { return &graph{index: make(map[string]int)} }

// at returns the index of a vertex, which is made where it is new.
func (g *graph) at(id string) int {
	i, known := g.index[id]
	if !known {
		i = len(g.vertices)
		g.index[id] = i
		g.vertices = append(g.vertices, vertex{})
	}
	return i
}

var (
	dotString = `"(?:[^"\\]|\\.)*"`
	dotID     = `(?:` + dotString + `|[A-Za-z0-9_.]+)`
	dotNode   = regexp.MustCompile(`^(` + dotID + `)\s*\[(.*)\]$`)
	dotEdge   = regexp.MustCompile(`^(` + dotID + `)\s*->\s*(` + dotID + `)\s*(?:\[.*\])?$`)
	dotAttr   = regexp.MustCompile(`([A-Za-z_]+)\s*=\s*(` + dotString + `|[^\s,;\]]+)`)
)

// readDot reads the part of the dot language that Snakemake and Nextflow write, and
// that dot itself writes of it: statements of one vertex or one edge each.
func readDot(text, name string) (*graph, error) {
	g := newGraph()
	head := strings.IndexByte(text, '{')
	end := strings.LastIndexByte(text, '}')
	if head < 0 || end < head {
		return nil, berth.Errorf(berth.Invalid, "workflow", "%s:1: no graph in braces", name)
	}
	line := 1 + strings.Count(text[:head], "\n")
	for _, s := range statements(text[head+1:end], line) {
		if m := dotEdge.FindStringSubmatch(s.text); m != nil {
			g.edges = append(g.edges, [2]int{g.at(undot(m[1])), g.at(undot(m[2]))})
			continue
		}
		m := dotNode.FindStringSubmatch(s.text)
		switch {
		case m == nil && (s.text == "" || strings.Contains(s.text, "=") && !strings.ContainsAny(s.text, "[]{}")):
			continue // an attribute of the graph
		case m == nil:
			return nil, berth.Errorf(berth.Invalid, "workflow", "%s:%d: %.60q is neither a vertex nor an edge", name, s.line, s.text)
		case m[1] == "graph" || m[1] == "node" || m[1] == "edge":
			continue
		}
		v := &g.vertices[g.at(undot(m[1]))]
		v.task = true
		for _, a := range dotAttr.FindAllStringSubmatch(m[2], -1) {
			value := undot(a[2])
			switch a[1] {
			case "label":
				v.label = value
			case "shape":
				// Channels and operators of Nextflow are points and circles.
				if value == "point" || value == "circle" || value == "none" {
					v.task = false
				}
			case "style":
				v.done = strings.Contains(value, "dashed")
			}
		}
	}
	return g, nil
}

// statement is a piece of text with its line.
type statement struct {
	text string
	line int
}

// statements divides text at semicolons and at ends of lines outside of quotes and
// brackets.
func statements(text string, line int) (list []statement) {
	var s strings.Builder
	depth, first, blank := 0, line, true
	flush := func() {
		list = append(list, statement{strings.TrimSpace(s.String()), first})
		s.Reset()
		blank = true
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		if blank && c != ' ' && c != '\t' && c != '\n' {
			blank, first = false, line
		}
		switch c {
		case '"':
			from := i
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			i = min(i, len(text)-1)
			line += strings.Count(text[from:i], "\n")
			s.WriteString(text[from : i+1])
			continue
		case '[':
			depth++
		case ']':
			depth--
		}
		if c == '\n' {
			line++
		}
		if depth <= 0 && (c == ';' || c == '\n') {
			flush()
			continue
		}
		if c == '\n' {
			c = ' '
		}
		s.WriteByte(c)
	}
	flush()
	return slices.DeleteFunc(list, func(s statement) bool { return s.text == "" })
}

// undot returns the text of a word of dot.
func undot(word string) string {
	if !strings.HasPrefix(word, `"`) {
		return word
	}
	word = strings.TrimSuffix(word[1:], `"`)
	return strings.NewReplacer(`\n`, "\n", `\l`, "\n", `\r`, "\n", `\"`, `"`, `\\`, `\`).Replace(word)
}

// readD3 reads what snakemake --d3dag prints: nodes, and links from a job to one that
// needs it.
func readD3(text []byte, name string) (*graph, error) {
	var d struct {
		Nodes []struct {
			ID    json.Number `json:"id"`
			Value struct {
				Label string `json:"label"`
				Rule  string `json:"rule"`
			} `json:"value"`
		} `json:"nodes"`
		Links []struct {
			U json.Number `json:"u"`
			V json.Number `json:"v"`
		} `json:"links"`
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, berth.Errorf(berth.Invalid, "workflow", "%s: not what snakemake --d3dag prints: %v", name, err)
	}
	g := newGraph()
	for _, n := range d.Nodes {
		v := &g.vertices[g.at(n.ID.String())]
		v.task, v.label = true, n.Value.Label
		if v.label == "" {
			v.label = n.Value.Rule
		}
	}
	for _, l := range d.Links {
		u, known := g.index[l.U.String()]
		v, too := g.index[l.V.String()]
		if !known || !too {
			return nil, berth.Errorf(berth.Invalid, "links", "%s: a link from %s to %s, and one of them is not among the nodes", name, l.U, l.V)
		}
		g.edges = append(g.edges, [2]int{u, v})
	}
	return g, nil
}

var (
	mermaidEdge = regexp.MustCompile(`^(\w+)\s*-->\s*(?:\|[^|]*\|)?\s*(\w+)$`)
	mermaidTask = regexp.MustCompile(`^(\w+)\(\[(.*)\]\)$`)
	mermaidElse = regexp.MustCompile(`^(\w+)(\(\(.*\)\)|\[.*\]|\(.*\)|\{.*\})$`)
)

// readMermaid reads the picture that Nextflow draws for Mermaid, in which processes
// have round ends.
func readMermaid(text, name string) (*graph, error) {
	g := newGraph()
	begun := false
	var groups []string
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "%%") || strings.HasPrefix(line, "```"):
		case !begun:
			begun = strings.HasPrefix(line, "flowchart")
		case strings.HasPrefix(line, "subgraph"):
			groups = append(groups, line)
		case line == "end":
			groups = groups[:max(0, len(groups)-1)]
		case strings.HasPrefix(line, "style ") || strings.HasPrefix(line, "classDef ") || strings.HasPrefix(line, "class ") || strings.HasPrefix(line, "click "):
		default:
			if m := mermaidEdge.FindStringSubmatch(line); m != nil {
				g.edges = append(g.edges, [2]int{g.at(m[1]), g.at(m[2])})
				continue
			}
			if m := mermaidTask.FindStringSubmatch(line); m != nil {
				v := &g.vertices[g.at(m[1])]
				v.task, v.label = true, strings.Trim(m[2], `"`)
				continue
			}
			m := mermaidElse.FindStringSubmatch(line)
			if m == nil {
				return nil, berth.Errorf(berth.Invalid, "workflow", "%s:%d: %.60q is neither a vertex nor an edge", name, i+1, line)
			}
			g.at(m[1])
		}
	}
	return g, nil
}

// take makes tasks of a graph: what is between two tasks and is none itself, such as an
// operator, is passed through.
func (w *Workflow) take(g *graph, name string, opt *Options) error {
	order := w.vertices(g)
	if len(order) == 0 {
		return berth.Errorf(berth.Invalid, "workflow", "%s: no task in it", name)
	}
	after, through := g.parents()
	dropped := breakCycles(order, after) + addWithoutCycles(order, after, through)
	w.note(dropped, "left out: %d edges that close a cycle; the picture joins channels, so that processes seem to wait for one another", dropped)
	if opt.Trace != nil {
		return w.traced(g, order, after, opt)
	}
	place := make(map[int]int, len(order))
	for i, v := range order {
		place[v] = i
	}
	for _, v := range order {
		label := g.vertices[v].label
		rule, rest, _ := strings.Cut(label, "\n")
		t := Task{Name: rule, Rule: rule, Done: g.vertices[v].done}
		for line := range strings.Lines(rest) {
			if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
				value = strings.TrimSpace(value)
				t.Wildcards = append(t.Wildcards, [2]string{strings.TrimSpace(key), value})
				t.Name += "-" + value
			}
		}
		for _, p := range after[v] {
			t.After = append(t.After, place[p])
		}
		w.Tasks = append(w.Tasks, t)
	}
	if strings.HasPrefix(w.Form, "nextflow") {
		w.note(1, "a picture of Nextflow shows processes, not tasks: each is one task here; --trace makes one of each task that ran")
	}
	return nil
}

// vertices returns the vertices that are tasks, in the order of the file. Snakemake's
// rule all, which runs nothing, is left out where it is an end.
func (w *Workflow) vertices(g *graph) (order []int) {
	children := make([]int, len(g.vertices))
	for _, e := range g.edges {
		children[e[0]]++
	}
	done := 0
	for v := range g.vertices {
		x := &g.vertices[v]
		switch {
		case !x.task:
		case x.label == "all" && children[v] == 0 && strings.HasPrefix(w.Form, "snakemake") && len(g.vertices) > 1:
			x.task = false
			w.note(1, "the rule all was left out; it runs nothing")
		default:
			if x.done {
				done++
			}
			order = append(order, v)
		}
	}
	w.note(done, "%d of %d tasks were done already when the file was written; they are in the workflow all the same", done, len(order))
	return order
}

// parents returns the tasks that each task waits for, ascending: those it has an edge
// from, and those that it waits for through what is no task.
func (g *graph) parents() (direct, through map[int][]int) {
	before := make([][]int, len(g.vertices))
	for _, e := range g.edges {
		before[e[1]] = append(before[e[1]], e[0])
	}
	direct, through = make(map[int][]int), make(map[int][]int)
	for v := range g.vertices {
		if !g.vertices[v].task {
			continue
		}
		seen := make(map[int]bool)
		for pile := slices.Clone(before[v]); len(pile) > 0; {
			p := pile[len(pile)-1]
			pile = pile[:len(pile)-1]
			if seen[p] || p == v {
				continue
			}
			seen[p] = true
			switch {
			case !g.vertices[p].task:
				pile = append(pile, before[p]...)
			case slices.Contains(before[v], p):
				direct[v] = append(direct[v], p)
			default:
				through[v] = append(through[v], p)
			}
		}
		slices.Sort(direct[v])
		slices.Sort(through[v])
	}
	return direct, through
}

// addWithoutCycles adds the parents through what is no task, in the order of the file,
// and returns how many it leaves out since they would close a cycle.
func addWithoutCycles(order []int, parents, through map[int][]int) (dropped int) {
	for _, v := range order {
		for _, p := range through[v] {
			if waits(p, v, parents) {
				dropped++
				continue
			}
			parents[v] = append(parents[v], p)
		}
		slices.Sort(parents[v])
	}
	return dropped
}

// waits reports whether one task waits for another, near or far.
func waits(one, other int, parents map[int][]int) bool {
	seen := map[int]bool{one: true}
	for pile := []int{one}; len(pile) > 0; {
		at := pile[len(pile)-1]
		pile = pile[:len(pile)-1]
		for _, p := range parents[at] {
			if p == other {
				return true
			}
			if !seen[p] {
				seen[p] = true
				pile = append(pile, p)
			}
		}
	}
	return false
}

// breakCycles leaves out the edges that close a cycle in a walk over the tasks in the
// order of the file, and returns how many.
func breakCycles(order []int, parents map[int][]int) (dropped int) {
	const onPath, done = 1, 2
	state, next := make(map[int]uint8), make(map[int]int)
	for _, first := range order {
		if state[first] == done {
			continue
		}
		path := []int{first}
		state[first] = onPath
		for len(path) > 0 {
			at := path[len(path)-1]
			if next[at] == len(parents[at]) {
				state[at] = done
				path = path[:len(path)-1]
				continue
			}
			parent := parents[at][next[at]]
			switch state[parent] {
			case onPath:
				parents[at] = slices.Delete(parents[at], next[at], next[at]+1)
				dropped++
				continue
			case 0:
				state[parent] = onPath
				path = append(path, parent)
			}
			next[at]++
		}
	}
	return dropped
}
