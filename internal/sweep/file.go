package sweep

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"

	"github.com/berth-hpc/berth"
)

// A file of measurements is JSON Lines. The first line says of what plan they
// are, each further one is a cell that was measured:
//
//	{"sweep":"waiting-time","version":1,"settings":[{"name":"seed","value":"1"}],"cells":450}
//	{"cell":"search/1/eager/seed=1","values":[0.61,null,12]}
//
// Their order is that in which they came; null stands for NaN. A last line
// without its end was cut off when the process was killed, and does not count.

// head is the first line of a file.
type head struct {
	Sweep    string    `json:"sweep"`
	Version  int       `json:"version"`
	Settings []Setting `json:"settings"`
	Cells    int       `json:"cells"`
}

// entry is any other line.
type entry struct {
	Cell   string     `json:"cell"`
	Values []*float64 `json:"values"`
}

// head returns the plan's first line.
func (p *Plan) head() head { return head{p.Name, p.Version, p.Settings, len(p.Cells)} }

// appendHead and appendEntry write the lines.
func (p *Plan) appendHead(out []byte) []byte {
	line, err := json.Marshal(p.head())
	if err != nil {
		panic("sweep: " + err.Error()) // strings and numbers
	}
	return append(append(out, line...), '\n')
}

func appendEntry(out []byte, key string, values []float64) []byte {
	name, err := json.Marshal(key)
	if err != nil {
		panic("sweep: " + err.Error()) // a string
	}
	out = append(append(append(out, `{"cell":`...), name...), `,"values":[`...)
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			out = append(out, "null"...)
			continue
		}
		out = strconv.AppendFloat(out, v, 'g', -1, 64)
	}
	return append(out, "]}\n"...)
}

// Bytes returns the results as a file of measurements, in the order of the
// plan: the same bytes in whatever order, and wherever, they were taken.
func (r *Results) Bytes() []byte {
	out := r.plan.appendHead(nil)
	for i := range r.plan.Cells {
		key := r.plan.Cells[i].Key
		if values := r.values[key]; values != nil {
			out = appendEntry(out, key, values)
		}
	}
	return out
}

// Description is what the first line of a file of measurements says.
type Description struct {
	Name     string
	Version  int
	Settings []Setting
	Cells    int // of the plan, not of the file
}

// Describe reads of what plan a file's measurements are. A file that is not
// there or is none of measurements is an error of code Invalid.
func Describe(path string) (*Description, error) {
	if err := regular(path, "merge"); err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, berth.Errorf(berth.Invalid, "merge", "%s: no such file", path)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read from: nothing can be lost
	in, _, err := unpacked(file)
	if err != nil {
		return nil, berth.Errorf(berth.Invalid, "merge", "%s: %v", path, err)
	}
	line, err := nextLine(in)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errLong) {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	var h head
	switch {
	case len(line) == 0:
		return nil, berth.Errorf(berth.Invalid, "merge", "%s: empty; its shard was interrupted before it began", path)
	case err != nil || json.Unmarshal(line, &h) != nil || h.Sweep == "":
		return nil, berth.Errorf(berth.Invalid, "merge", "%s:1: %s", path, noMeasurements)
	}
	return &Description{h.Sweep, h.Version, h.Settings, h.Cells}, nil
}

const (
	noMeasurements = "no file of measurements; want one that --cells has made"
	damaged        = "not a measurement; the file is damaged, and without this line and those below it can be gone on with"
)

// maxLine is the longest line that is read: a few hundred times the longest that
// any sweep writes. What has longer ones is no file of measurements.
const maxLine = 1 << 24

// errLong is that a line is longer.
var errLong = errors.New("sweep: a line of more than 16 MiB")

// nextLine reads a line with its end. Without one, the error is io.EOF, as that of
// bufio's ReadBytes.
func nextLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		case len(line) > maxLine:
			return line, errLong
		}
	}
}

// unpacked reads a file of measurements, or one that gzip has packed; packed says which.
// What is neither is read as it is.
func unpacked(file io.Reader) (in *bufio.Reader, packed bool, err error) {
	in = bufio.NewReaderSize(file, 1<<16)
	if magic, _ := in.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) { // who reads on meets the error
		return in, false, nil
	}
	plain, err := gzip.NewReader(in)
	if err != nil {
		return nil, true, fmt.Errorf("unpacking: %w", err)
	}
	return bufio.NewReaderSize(plain, 1<<16), true, nil
}

// regular makes sure that what is there is neither a folder nor a device nor a pipe,
// which may have no end.
func regular(path, field string) error {
	info, err := os.Stat(path)
	switch known := err == nil; { // what is not there is told of by who opens it
	case known && info.IsDir():
		return berth.Errorf(berth.Invalid, field, "%s: a folder; want a file that --cells has made", path)
	case known && !info.Mode().IsRegular():
		return berth.Errorf(berth.Invalid, field, "%s: no regular file; want one that --cells has made", path)
	}
	return nil
}

// differs says in what a file is not of the plan, or is empty.
func (p *Plan) differs(h *head) string {
	here := "here"
	if p.Source != "" {
		here = "in " + p.Source
	}
	switch {
	case h.Sweep != p.Name:
		return fmt.Sprintf("measurements of %q, not of %q", h.Sweep, p.Name)
	case h.Version != p.Version:
		return fmt.Sprintf("measurements of version %d, and this berth makes version %d", h.Version, p.Version)
	}
	theirs := make(map[string]string, len(h.Settings))
	for _, s := range h.Settings {
		theirs[s.Name] = s.Value
	}
	for _, s := range p.Settings {
		value, ok := theirs[s.Name]
		if !ok {
			return fmt.Sprintf("measurements without %s, and %s it is %s", s.Name, here, s.Value)
		}
		if value != s.Value {
			return fmt.Sprintf("measurements with %s %s, and %s it is %s", s.Name, value, here, s.Value)
		}
	}
	if len(h.Settings) != len(p.Settings) || h.Cells != len(p.Cells) {
		return fmt.Sprintf("measurements of a plan of %d cells and %d settings, and this one has %d and %d",
			h.Cells, len(h.Settings), len(p.Cells), len(p.Settings))
	}
	return ""
}

// read adds a file's measurements to values. It returns how many bytes of whole
// lines there are. A cell that values has already with the same numbers counts
// once; with others it is an error.
func read(plan *Plan, path, field string, values map[string][]float64) (int64, error) {
	if err := regular(path, field); err != nil {
		return 0, err
	}
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }() // only read from: nothing can be lost
	known := make(map[string]bool, len(plan.Cells))
	for i := range plan.Cells {
		known[plan.Cells[i].Key] = true
	}
	bad := func(line int, format string, args ...any) error {
		return berth.Errorf(berth.Invalid, field, "%s:%d: %s", path, line, fmt.Sprintf(format, args...))
	}
	in, packed, err := unpacked(file)
	switch {
	case packed && field == "cells":
		return 0, berth.Errorf(berth.Invalid, field, "%s: packed by gzip; want it unpacked, since measurements are added to its end", path)
	case err != nil:
		return 0, berth.Errorf(berth.Invalid, field, "%s: %v", path, err)
	}
	var whole int64
	for number := 1; ; number++ {
		line, err := nextLine(in)
		switch {
		case errors.Is(err, errLong) && number == 1:
			return 0, bad(1, noMeasurements)
		case errors.Is(err, errLong):
			return 0, bad(number, damaged)
		case errors.Is(err, io.EOF):
			if number == 1 && len(line) > 0 {
				return 0, bad(1, noMeasurements)
			}
			return whole, nil // what is behind the last end of line was cut off
		case packed && err != nil:
			return 0, bad(number, "unpacking: %v; the file is damaged", err)
		case err != nil:
			return 0, fmt.Errorf("reading %s: %w", path, err)
		}
		if number == 1 {
			var h head
			if json.Unmarshal(line, &h) != nil || h.Sweep == "" {
				return 0, bad(1, noMeasurements)
			}
			if how := plan.differs(&h); how != "" {
				return 0, bad(1, "%s; want another file, or the options with which it was made", how)
			}
			whole += int64(len(line))
			continue
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil || e.Values == nil {
			return 0, bad(number, damaged)
		}
		if !known[e.Cell] {
			return 0, bad(number, "the plan has no measurement %q", e.Cell)
		}
		got := e.floats()
		if have, twice := values[e.Cell]; twice && !bytes.Equal(appendEntry(nil, "", have), appendEntry(nil, "", got)) {
			return 0, bad(number, "%s was measured before, with another result; want each measurement once", e.Cell)
		}
		values[e.Cell] = got
		whole += int64(len(line))
	}
}

// floats returns the values with NaN for null.
func (e *entry) floats() []float64 {
	values := make([]float64, len(e.Values))
	for i, v := range e.Values {
		if values[i] = math.NaN(); v != nil {
			values[i] = *v
		}
	}
	return values
}

// merge reads the measurements of several files, which must be all of the plan.
func merge(plan *Plan, paths []string) (*Results, error) {
	results := &Results{plan: plan, values: make(map[string][]float64, len(plan.Cells))}
	for _, path := range paths {
		if _, err := read(plan, path, "merge", results.values); errors.Is(err, fs.ErrNotExist) {
			return nil, berth.Errorf(berth.Invalid, "merge", "%s: no such file", path)
		} else if err != nil {
			return nil, err
		}
	}
	missing, first := 0, ""
	for i := range plan.Cells {
		if results.values[plan.Cells[i].Key] == nil {
			if missing == 0 {
				first = plan.Cells[i].Key
			}
			missing++
		}
	}
	if missing > 0 {
		return nil, berth.Errorf(berth.Invalid, "merge",
			"%d of %d measurements are in none of the files, %s the first; a shard is absent or was interrupted", missing, len(plan.Cells), first)
	}
	return results, nil
}

// keeper appends measurements to a file.
type keeper struct {
	file *os.File
	path string
	line []byte
}

// open opens a file of measurements of the plan and adds what it holds to
// values, or begins it. Until it is closed no other process may write to it, where the
// file system can tell.
func open(plan *Plan, path string, values map[string][]float64) (*keeper, error) {
	if err := regular(path, "cells"); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, berth.Errorf(berth.Invalid, "cells", "cannot write to %s: %v", path, err)
	}
	k := &keeper{file: file, path: path}
	err = lock(file, path)
	if err == nil {
		var whole int64
		if whole, err = read(plan, path, "cells", values); err == nil {
			err = k.begin(plan, whole)
		}
	}
	if err != nil {
		_ = file.Close() // the other error is the one to tell
		return nil, err
	}
	return k, nil
}

// begin cuts off what is behind the whole lines, and writes the first one where
// there is none.
func (k *keeper) begin(plan *Plan, whole int64) error {
	err := k.file.Truncate(whole)
	if err == nil && whole == 0 {
		_, err = k.file.Write(plan.appendHead(nil))
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", k.path, err)
	}
	return nil
}

func (k *keeper) add(key string, values []float64) error {
	k.line = appendEntry(k.line[:0], key, values)
	if _, err := k.file.Write(k.line); err != nil {
		return fmt.Errorf("writing %s: %w", k.path, err)
	}
	return nil
}

func (k *keeper) close() error {
	if err := k.file.Close(); err != nil {
		return fmt.Errorf("closing %s: %w", k.path, err)
	}
	return nil
}
