package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/site/hostlist"
)

// nodeState is how much of a node is free throughout a cell, the least first.
type nodeState byte

const (
	nodePast nodeState = iota
	nodeFree
	nodePartly // some of its PEs are free
	nodeTaken
)

// nodeMarks are the letters of nodeState.
const nodeMarks = ".-+#"

// takenIn returns which PEs of a pool are taken at some time of each cell, from now on, and how many more are promised there at any one time whose
// numbers are not known yet. Cost: each span is looked at in each of its cells.
func takenIn(pool string, spans []form.Span, edges []form.Time, now form.Time) (taken []berth.PESet, unnamed []berth.Count) {
	taken = make([]berth.PESet, len(edges)-1)
	var unknown []form.Span
	for i := range spans {
		s := &spans[i]
		if s.Pool != pool {
			continue
		}
		if s.PEs.Empty() {
			unknown = append(unknown, *s)
			continue
		}
		for k := range taken {
			if s.Start < edges[k+1] && (s.End == 0 || s.End > max(edges[k], now)) {
				taken[k] = taken[k].Or(s.PEs)
			}
		}
	}
	const all berth.Count = berth.MaxPEs
	unnamed = freeCells(all, pool, unknown, edges, now)
	for k, free := range unnamed {
		if unnamed[k] = all - free; free == passed {
			unnamed[k] = 0
		}
	}
	return taken, unnamed
}

// nodeStates returns the states of nodes, by node and cell. Nodes are in the order of their PEs. Cost: O(nodes + runs of the set) for each cell.
func nodeStates(nodes []form.Row, taken []berth.PESet, edges []form.Time, now form.Time) [][]nodeState {
	states := make([][]nodeState, len(nodes))
	for i := range states {
		states[i] = make([]nodeState, len(taken))
	}
	for k := range taken {
		if edges[k+1] <= now {
			continue
		}
		runs := taken[k].Runs()
		for i := range nodes {
			lo, hi := nodes[i].First, nodes[i].First+berth.PE(nodes[i].PEs)
			for len(runs) > 0 && runs[0].Hi <= lo {
				runs = runs[1:]
			}
			held := berth.PE(0)
			for _, run := range runs {
				if run.Lo >= hi {
					break
				}
				held += min(run.Hi, hi) - max(run.Lo, lo)
			}
			switch {
			case held == 0:
				states[i][k] = nodeFree
			case held < hi-lo:
				states[i][k] = nodePartly
			default:
				states[i][k] = nodeTaken
			}
		}
	}
	return states
}

// freeNodes returns the names of the nodes that are free throughout a cell.
func freeNodes(nodes []form.Row, states [][]nodeState, cell int) []string {
	names := []string{}
	for i := range nodes {
		if states[i][cell] == nodeFree {
			names = append(names, nodes[i].Name)
		}
	}
	return names
}

const (
	// daysBeside is how many days of a table of nodes are beside each other, and fineDays of how many a column has cellHours: of more it has twice that.
	daysBeside, fineDays = 7, 3
	// maxColumns is how wide a table is, where the names of its nodes are not longer, and minNames how many columns names have at least.
	maxColumns, minNames = 100, 12
)

// nodeTable writes when nodes are free, those that are free alike in one line: a letter for each cell, a week beside each other.
func nodeTable(nodes []form.Row, states [][]nodeState, edges []form.Time, days int, c palette) string {
	const perDay = 24 / cellHours
	var text strings.Builder
	for first := 0; first < days; first += daysBeside {
		until := min(first+daysBeside, days)
		merged := 1
		if until-first > fineDays {
			merged = 2
		}
		var order []string
		alike := map[string][]string{}
		for i := range nodes {
			line := nodeLine(states[i][first*perDay:until*perDay], merged)
			if alike[line] == nil {
				order = append(order, line)
			}
			alike[line] = append(alike[line], nodes[i].Name)
		}
		width := (until - first) * (perDay/merged + 1)
		room := minNames
		for _, names := range alike {
			room = min(max(room, len(hostlist.Fold(names))), max(minNames, maxColumns-width-1))
		}
		var head strings.Builder
		for day := first; day < until; day++ {
			fmt.Fprintf(&head, " %-*s", perDay/merged, dayHead(edges[day*perDay], perDay/merged))
		}
		text.WriteString(strings.Repeat(" ", room) + strings.TrimRight(head.String(), " ") + "\n")
		for _, line := range order {
			rows := brokenAt(hostlist.Fold(alike[line]), room)
			fmt.Fprintf(&text, "%-*s", room, rows[0])
			for day := 0; day < until-first; day++ {
				text.WriteString(" " + c.marks(line[day*perDay/merged:(day+1)*perDay/merged]))
			}
			text.WriteByte('\n')
			for _, more := range rows[1:] {
				text.WriteString(more + "\n")
			}
		}
	}
	return text.String()
}

// dayHead names a day in a number of letters.
func dayHead(at form.Time, letters int) string {
	layout := "Mon 02 Jan"
	if letters < len(layout) {
		layout = "Mon 02"
	}
	return at.In(time.Local).Format(layout)
}

// nodeLine writes states as letters, several cells as one in the state in which the least is free.
func nodeLine(states []nodeState, merged int) string {
	line := make([]byte, 0, len(states)/merged)
	for ; len(states) > 0; states = states[merged:] {
		line = append(line, nodeMarks[slices.Max(states[:merged])])
	}
	return string(line)
}

// brokenAt breaks a list at its commas into lines of at most a number of letters, where it has commas.
func brokenAt(names string, most int) []string {
	var lines []string
	line, inside := "", false
	for item := range strings.SplitAfterSeq(names, ",") {
		if strings.TrimSpace(line) != "" && len(line)+len(item) > most {
			lines, line = append(lines, line), ""
			if inside {
				line = " "
			}
		}
		line += item
		inside = strings.LastIndexByte(item, '[') > strings.LastIndexByte(item, ']') || inside && !strings.Contains(item, "]")
	}
	return append(lines, line)
}
