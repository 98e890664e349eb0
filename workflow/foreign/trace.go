package foreign

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

// traced makes a task of each row of a trace, and lets it wait for the tasks of the
// processes before its own: those of the same tag where there are such, else all.
func (w *Workflow) traced(g *graph, order []int, after map[int][]int, opt *Options) error {
	rows, notes, err := readTrace(string(opt.Trace), opt.TraceName)
	if err != nil {
		return err
	}
	w.Notes = append(w.Notes, notes...)
	byProcess := make(map[int][]int) // of a vertex, tasks
	unknown := 0
	tags := make([]string, 0, len(rows))
	process := make([]int, 0, len(rows))
	for _, r := range rows {
		v := slices.IndexFunc(order, func(v int) bool { return g.vertices[v].label == r.process })
		if v < 0 {
			v = slices.IndexFunc(order, func(v int) bool { return shortName(g.vertices[v].label) == shortName(r.process) })
		}
		if v < 0 {
			unknown++
			continue
		}
		byProcess[order[v]] = append(byProcess[order[v]], len(w.Tasks))
		process = append(process, order[v])
		tags = append(tags, r.tag)
		w.Tasks = append(w.Tasks, Task{
			Name: r.name, Rule: r.process, Time: r.time, Cores: r.cores, MemoryMB: r.memoryMB, Wildcards: [][2]string{{"tag", r.tag}},
		})
	}
	w.note(unknown, "left out: %d tasks of the trace whose process the picture does not have", unknown)
	idle := 0
	for _, v := range order {
		if len(byProcess[v]) == 0 {
			idle++
		}
	}
	w.note(idle, "processes of the picture without a task in the trace: %d; what waits for them waits for those before them", idle)
	matched, whole := 0, 0
	for i := range w.Tasks {
		for _, p := range ranBefore(process[i], after, byProcess) {
			same := slices.DeleteFunc(slices.Clone(byProcess[p]), func(k int) bool { return tags[k] == "" || tags[k] != tags[i] })
			if len(same) > 0 {
				matched += len(same)
				w.Tasks[i].After = append(w.Tasks[i].After, same...)
				continue
			}
			whole += len(byProcess[p])
			w.Tasks[i].After = append(w.Tasks[i].After, byProcess[p]...)
		}
	}
	w.note(matched+whole, "which task waits for which is guessed: %d times those of the same tag, %d times all of a process", matched, whole)
	return nil
}

// ranBefore returns the processes before one that had tasks, through those
// that had none.
func ranBefore(v int, after map[int][]int, ran map[int][]int) (found []int) {
	seen := map[int]bool{v: true}
	for pile := slices.Clone(after[v]); len(pile) > 0; {
		p := pile[len(pile)-1]
		pile = pile[:len(pile)-1]
		switch {
		case seen[p]:
		case len(ran[p]) > 0:
			found = append(found, p)
		default:
			pile = append(pile, after[p]...)
		}
		seen[p] = true
	}
	slices.Sort(found)
	return found
}

// shortName is a process without the workflows it is in.
func shortName(process string) string { return process[strings.LastIndexByte(process, ':')+1:] }

// row is a task of a trace.
type row struct {
	name, process, tag string
	time               berth.Duration
	cores              int
	memoryMB           int64
}

// readTrace reads a trace of Nextflow: columns by tabs, their names in the first line.
func readTrace(text, name string) (rows []row, notes []string, err error) {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	columns := make(map[string]int)
	for i, column := range strings.Split(lines[0], "\t") {
		columns[strings.TrimSpace(column)] = i
	}
	if _, known := columns["name"]; !known {
		return nil, nil, berth.Errorf(berth.Invalid, "trace", "%s:1: no column called name; want what nextflow -with-trace writes, columns by tabs", name)
	}
	failed := 0
	for i, line := range lines[1:] {
		if strings.TrimSpace(line) == "" {
			continue
		}
		cells := strings.Split(line, "\t")
		cell := func(column string) string {
			if k, known := columns[column]; known && k < len(cells) && strings.TrimSpace(cells[k]) != "-" {
				return strings.TrimSpace(cells[k])
			}
			return ""
		}
		if status := cell("status"); status != "" && status != "COMPLETED" && status != "CACHED" {
			failed++
			continue
		}
		r := row{name: cell("name"), process: cell("process"), tag: cell("tag")}
		if r.name == "" {
			return nil, nil, berth.Errorf(berth.Invalid, "trace", "%s:%d: a row without a name", name, i+2)
		}
		if process, tag, tagged := strings.Cut(r.name, " ("); tagged && strings.HasSuffix(tag, ")") {
			if r.process == "" {
				r.process = process
			}
			// Nextflow numbers tasks that have no tag; a number matches nothing.
			if tag = strings.TrimSuffix(tag, ")"); r.tag == "" && !digits.MatchString(tag) {
				r.tag = tag
			}
		} else if r.process == "" {
			r.process = r.name
		}
		for _, column := range []string{"realtime", "duration"} {
			if cell(column) == "" || r.time > 0 {
				continue
			}
			if r.time, err = nextflowTime(cell(column)); err != nil {
				return nil, nil, berth.Errorf(berth.Invalid, column, "%s:%d: %q; want a time such as 1h 2m 3s or 850ms", name, i+2, cell(column))
			}
		}
		if n, err := strconv.Atoi(cell("cpus")); err == nil && n > 0 && n <= berth.MaxPEs {
			r.cores = n
		}
		r.memoryMB = nextflowMemory(cell("memory"))
		rows = append(rows, r)
	}
	if failed > 0 {
		notes = append(notes, "left out: "+strconv.Itoa(failed)+" tasks of the trace that did not complete")
	}
	return rows, notes, nil
}

var (
	digits    = regexp.MustCompile(`^\d+$`)
	timePiece = regexp.MustCompile(`^\s*(\d+(?:\.\d+)?)\s*(ms|d|h|m|s)`)
	memory    = regexp.MustCompile(`^(\d+(?:\.\d+)?)\s*([KMGT]?)B$`)
)

// nextflowTime reads 1h 2m 3s, 850ms or bare milliseconds, as raw traces have them. A
// part of a second counts as one.
func nextflowTime(text string) (berth.Duration, error) {
	if digits.MatchString(text) {
		text += "ms"
	}
	rest, total := text, 0.0
	for strings.TrimSpace(rest) != "" {
		m := timePiece.FindStringSubmatch(rest)
		if m == nil {
			return 0, strconv.ErrSyntax
		}
		x, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return 0, err
		}
		total += x * map[string]float64{"ms": .001, "s": 1, "m": 60, "h": 3600, "d": 86400}[m[2]]
		rest = rest[len(m[0]):]
	}
	if total > 366*86400 {
		return 0, strconv.ErrRange
	}
	return max(1, ceil(total)), nil
}

func ceil(x float64) berth.Duration {
	d := berth.Duration(x)
	if float64(d) < x-1e-9 {
		d++
	}
	return d
}

// nextflowMemory reads an amount such as 4 GB, by powers of 1024; 0 if it is none.
func nextflowMemory(text string) int64 {
	m := memory.FindStringSubmatch(text)
	if m == nil {
		return 0
	}
	x, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0
	}
	mb := x * map[string]float64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}[m[2]] / 1e6
	if mb >= berth.MaxMegabytes {
		return 0
	}
	return int64(ceil(mb))
}
