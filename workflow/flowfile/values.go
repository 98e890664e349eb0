package flowfile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/bytesize"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/internal/nearest"
	"github.com/berth-hpc/berth/internal/yamltree"
	"github.com/berth-hpc/berth/workflow"
)

// times reads a table of measured run times.
func (r *reader) times(v *yamltree.Value, path string, d *draft) {
	const example = "run times by their PEs, such as {1: 2h, 4: 40m}"
	if !r.is(v, path, yamltree.Map, example) {
		return
	}
	if len(v.Members) == 0 || len(v.Members) > maxTable {
		r.fail(placeOf(v.Place), path, "%d run times; want 1 to %d, such as {1: 2h, 4: 40m}", len(v.Members), maxTable)
		return
	}
	var table []workflow.Measurement
	at := make(map[berth.Count]place)
	for _, m := range v.Members {
		n, err := strconv.Atoi(m.Key)
		if err != nil || n < 1 || n > berth.MaxPEs || m.Key != strconv.Itoa(n) {
			r.fail(placeOf(m.Place), path, "%q is not a number of PEs from 1 to %d; want %s", m.Key, berth.MaxPEs, example)
			continue
		}
		npe := berth.Count(n)
		if first, twice := at[npe]; twice {
			r.fail(placeOf(m.Place), path, "%d PEs are given twice, first in line %d", n, first.line)
			continue
		}
		at[npe] = placeOf(m.Place)
		if t, ok := r.duration(m.Value, fmt.Sprintf("%s.%d", path, n)); ok {
			table = append(table, workflow.Measurement{NPE: npe, Seconds: float64(t)})
		}
	}
	slices.SortFunc(table, func(a, b workflow.Measurement) int { return cmp.Compare(a.NPE, b.NPE) })
	for k := 1; k < len(table); k++ {
		if table[k].Seconds >= table[k-1].Seconds {
			r.fail(at[table[k].NPE], path, "on %d PEs it takes no less time than on %d; leave out what makes it no faster", table[k].NPE, table[k-1].NPE)
		}
	}
	d.table = table
}

// pes reads a number of PEs, or a range.
func (r *reader) pes(v *yamltree.Value, path string, d *draft) {
	const example = "a number of PEs, such as 4, or a range, such as 1-16"
	if v.Kind != yamltree.Number && v.Kind != yamltree.Text {
		r.wrong(v, path, "want %s", example)
		return
	}
	low, high, ranged := strings.Cut(v.Text, "-")
	if !ranged {
		high = low
	}
	few, ok := pes(low)
	most, okay := pes(high)
	switch {
	case !ok || !okay:
		r.wrong(v, path, "want %s, from 1 to %d", example, berth.MaxPEs)
	case most < few:
		r.wrong(v, path, "want the smaller number first")
	default:
		d.few, d.most = few, most
	}
}

func pes(text string) (berth.Count, bool) {
	n, err := strconv.Atoi(text)
	return berth.Count(n), err == nil && n >= 1 && n <= berth.MaxPEs && text == strconv.Itoa(n)
}

// duration reads a run time.
func (r *reader) duration(v *yamltree.Value, path string) (berth.Duration, bool) {
	const example = "a run time with its unit, such as 90s, 10m, 2h30m or 1-12:00:00"
	if v.Kind != yamltree.Number && !r.is(v, path, yamltree.Text, example) {
		return 0, false
	}
	t, err := hpctime.Parse(v.Text)
	switch {
	case err != nil:
		r.fail(placeOf(v.Place), path, "%s", message(err))
	case t < 1:
		r.wrong(v, path, "a task takes at least a second")
	case t > MaxTime:
		r.wrong(v, path, "longer than a year; want at most 366 days")
	default:
		return t, true
	}
	return 0, false
}

// size reads an amount of data that is needed, in megabytes.
func (r *reader) size(v *yamltree.Value, path string, to *int64) {
	const example = "a size with its unit, such as 4GiB or 500 MB"
	if v.Kind != yamltree.Number && !r.is(v, path, yamltree.Text, example) {
		return
	}
	n, err := bytesize.Needed(v.Text)
	if err != nil {
		r.fail(placeOf(v.Place), path, "%s", message(err))
		return
	}
	*to = n
}

// fraction reads a number from 0 to 1.
func (r *reader) fraction(v *yamltree.Value, path string, to *float64) bool {
	if !r.is(v, path, yamltree.Number, "a number from 0 to 1, such as 0.1") {
		return false
	}
	x, err := strconv.ParseFloat(v.Text, 64)
	if err != nil || !(0 <= x && x <= 1) {
		r.wrong(v, path, "want a number from 0 to 1, such as 0.1")
		return false
	}
	*to = math.Abs(x)
	return true
}

// command reads program and arguments.
func (r *reader) command(v *yamltree.Value, path string, d *draft) {
	const example = "a list of program and arguments, such as [sort, -u, in.txt]; for a line of the shell use script"
	if !r.is(v, path, yamltree.List, example) {
		return
	}
	if len(v.Items) == 0 || len(v.Items) > maxWords {
		r.fail(placeOf(v.Place), path, "%d words; want 1 to %d, such as [sort, -u, in.txt]", len(v.Items), maxWords)
		return
	}
	for i, item := range v.Items {
		// A bare number or true is as good as a quoted one here.
		if item.Kind != yamltree.Number && item.Kind != yamltree.Bool && !r.is(item, fmt.Sprintf("%s[%d]", path, i), yamltree.Text, "a word of the command") {
			return
		}
		if i == 0 && item.Text == "" {
			r.wrong(item, path+"[0]", "the program has no name")
			return
		}
		d.Command = append(d.Command, item.Text)
	}
}

func (r *reader) script(v *yamltree.Value, path string, d *draft) {
	if !r.is(v, path, yamltree.Text, "a script, such as a block of text behind |") {
		return
	}
	switch {
	case len(v.Text) > maxScript:
		r.fail(placeOf(v.Place), path, "%d bytes; want at most %d", len(v.Text), maxScript)
	case !strings.HasPrefix(v.Text, "#!"):
		r.wrong(v, path, "want a first line such as #!/bin/sh")
	default:
		d.Script = v.Text
	}
}

// env reads the environment of a task.
func (r *reader) env(v *yamltree.Value, path string, d *draft) {
	if !r.is(v, path, yamltree.Map, "variables, such as {OMP_NUM_THREADS: 4}") {
		return
	}
	d.Env = nil
	lines := make(map[string]int)
	for _, m := range v.Members {
		at := placeOf(m.Place)
		switch first, twice := lines[m.Key]; {
		case twice:
			r.fail(at, path+"."+m.Key, "the variable is given twice, first in line %d", first)
		case m.Key == "" || len(m.Key) > maxName || strings.ContainsAny(m.Key, "= \t\n"):
			r.fail(at, path, "%q is no name of a variable", m.Key)
		case m.Value.Kind == yamltree.List || m.Value.Kind == yamltree.Map || m.Value.Kind == yamltree.Null:
			r.wrong(m.Value, path+"."+m.Key, "%s; want a text", m.Value.Kind)
		default:
			d.Env = append(d.Env, m.Key+"="+m.Value.Text)
		}
		lines[m.Key] = at.line
	}
	if len(d.Env) > maxWords {
		r.fail(placeOf(v.Place), path, "%d variables; want at most %d", len(d.Env), maxWords)
	}
}

// names reads a list of names, each at most once.
func (r *reader) names(v *yamltree.Value, path, what string, most int) []reference {
	if !r.is(v, path, yamltree.List, "a list of "+what+" in brackets or with dashes") {
		return nil
	}
	if len(v.Items) > MaxTasks {
		r.fail(placeOf(v.Place), path, "%d names; want at most %d", len(v.Items), MaxTasks)
		return nil
	}
	var list []reference
	lines := make(map[string]int, len(v.Items))
	for i, item := range v.Items {
		var name string
		if !r.text(item, fmt.Sprintf("%s[%d]", path, i), "a name", most, &name) {
			continue
		}
		if first, twice := lines[name]; twice {
			r.wrong(item, fmt.Sprintf("%s[%d]", path, i), "given twice, first in line %d", first)
			continue
		}
		lines[name] = item.Line
		list = append(list, reference{placeOf(item.Place), name})
	}
	return list
}

// outputs reads files that a task writes: names, or groups of a name and a size.
func (r *reader) outputs(v *yamltree.Value, path string) []reference {
	if v.Kind != yamltree.List {
		return r.names(v, path, "files", maxFile)
	}
	plain := *v
	plain.Items = nil
	sizes := map[*yamltree.Value]int64{} // by the values of their names
	for i, item := range v.Items {
		if item.Kind != yamltree.Map {
			plain.Items = append(plain.Items, item)
			continue
		}
		at := fmt.Sprintf("%s[%d]", path, i)
		var name *yamltree.Value
		var size int64
		r.group(item, at, "an output", []key{
			{"name", func(v *yamltree.Value) { name = v }},
			{"size", func(v *yamltree.Value) { r.size(v, at+".size", &size) }},
		})
		if name == nil {
			r.fail(placeOf(item.Place), at+".name", "missing; want a file with its size, such as {name: raw.dat, size: 40GB}")
			continue
		}
		if size > berth.MaxReads/bytesPerMegabyte {
			r.fail(placeOf(item.Place), at+".size", "%d MB; want at most 100TB", size)
			continue
		}
		sizes[name] = size
		plain.Items = append(plain.Items, name)
	}
	list := r.names(&plain, path, "files", maxFile)
	for item, size := range sizes {
		if size > 0 && item.Kind == yamltree.Text {
			if r.file.Sizes == nil {
				r.file.Sizes = map[string]int64{}
			}
			r.file.Sizes[item.Text] = size * bytesPerMegabyte
		}
	}
	return list
}

// bytesPerMegabyte is how many bytes sizes are counted in.
const bytesPerMegabyte = 1_000_000

// label reads a name.
func (r *reader) label(v *yamltree.Value, path string, to *string) {
	r.text(v, path, "a name, in quotes if it looks like a number", maxName, to)
}

// text reads a text of one line.
func (r *reader) text(v *yamltree.Value, path, example string, most int, to *string) bool {
	if !r.is(v, path, yamltree.Text, example) {
		return false
	}
	switch text := v.Text; {
	case text == "" || strings.TrimSpace(text) != text:
		r.wrong(v, path, "empty, or with blanks around it; want %s", example)
	case len(text) > most:
		r.wrong(v, path, "%d bytes; want at most %d", len(text), most)
	case strings.ContainsFunc(text, func(c rune) bool {
		return c < ' ' || c == 0x7f || c >= 0x80 && c < 0xa0 || c == '\u2028' || c == '\u2029'
	}):
		r.wrong(v, path, "holds a line break or another control character; want one line")
	default:
		*to = text
		return true
	}
	return false
}

// count reads a whole number.
func (r *reader) count(v *yamltree.Value, path string, to any, low, high int64) {
	if !r.is(v, path, yamltree.Number, fmt.Sprintf("a whole number from %d to %d", low, high)) {
		return
	}
	n, err := strconv.ParseInt(v.Text, 10, 64)
	if err != nil || n < low || n > high {
		r.wrong(v, path, "want a whole number from %d to %d, in plain digits", low, high)
		return
	}
	switch to := to.(type) {
	case *int:
		*to = int(n)
	case *berth.Count:
		*to = berth.Count(n)
	}
}

// key is a key that a group may have.
type key struct {
	name string
	read func(v *yamltree.Value)
}

// group reads a group of keys, in the order in which they are listed here.
func (r *reader) group(v *yamltree.Value, path, what string, keys []key) {
	if !r.is(v, cmp.Or(path, "workflow"), yamltree.Map, what+" with its keys") {
		return
	}
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = keys[i].name
	}
	prefix := path
	if prefix != "" {
		prefix += "."
	}
	values := make(map[string]*yamltree.Member, len(v.Members))
	for i := range v.Members {
		m := &v.Members[i]
		if first, twice := values[m.Key]; twice {
			r.fail(placeOf(m.Place), prefix+m.Key, "the key is given twice, first in line %d", first.Line)
			continue
		}
		values[m.Key] = m
		if !slices.Contains(names, m.Key) {
			r.fail(placeOf(m.Place), prefix+m.Key, "%q: unknown key%s; %s has %s", m.Key, nearest.Hint(m.Key, names), what, strings.Join(names, ", "))
		}
	}
	for _, k := range keys {
		if m := values[k.name]; m != nil {
			k.read(m.Value)
		}
	}
}

// is reports whether a value is of the kind, and complains if it is not.
func (r *reader) is(v *yamltree.Value, path string, want yamltree.Kind, example string) bool {
	switch {
	case v.Kind == want:
		return true
	case v.Kind == yamltree.Null:
		r.fail(placeOf(v.Place), path, "no value; want %s, or leave the key out", example)
	case want == yamltree.Text && (v.Kind == yamltree.Number || v.Kind == yamltree.Bool):
		r.wrong(v, path, "%s; want %s, in quotes", v.Kind, example)
	case want == yamltree.Number && v.Kind == yamltree.Text:
		r.wrong(v, path, "a text; want %s, without quotes", example)
	default:
		r.wrong(v, path, "%s; want %s", v.Kind, example)
	}
	return false
}

// wrong tells what is wrong about a value.
func (r *reader) wrong(v *yamltree.Value, path, format string, args ...any) {
	r.fail(placeOf(v.Place), path, "%s%s", v.Shown(), fmt.Sprintf(format, args...))
}

// message returns what an error says without its field.
func message(err error) string {
	if mistake, is := errors.AsType[*berth.Error](err); is {
		return mistake.Msg
	}
	return err.Error()
}
