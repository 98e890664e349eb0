// Package performance keeps the measurements that docs/performance.md shows: tables of rows, each with the commit at which it was
// measured and the packages it is about, and counts of allocations that a test compares with the code. It measures nothing itself.
package performance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"github.com/berth-hpc/berth"
)

// File is the content of docs/performance/measurements.json.
type File struct {
	Tables []Table
	Counts Counts
}

// Table is one table of the page.
type Table struct {
	Name string `json:"name"` // by which the page places it
	// Packages are what its figures depend on, as folders below the module's root; one that ends
	// with /... means all below it too. Tests in them do not count.
	Packages []string `json:"packages"`
	// Record says that the table tells what a change did, beside a commit of then, which is
	// not measured again: it may be of any age.
	Record  bool     `json:"record,omitempty"`
	Columns []string `json:"columns"`
	Rows    []Row    `json:"rows"`
}

// Row is one line of a table.
type Row struct {
	// Commit is the one whose code was measured. Entered is set instead where only that is known with which the
	// figures came to the page, which is the one that was measured or one soon after it.
	Commit  string `json:"commit,omitempty"`
	Entered string `json:"entered,omitempty"`
	// Since is a number of commits that changed its packages after that, at least; see Mark.
	Since int `json:"since,omitempty"`
	// Packages are those of this row, where they are not those of its table.
	Packages []string `json:"packages,omitempty"`
	Cells    []string `json:"cells"`
}

// Of returns the commit from which the row's age counts.
func (r *Row) Of() string {
	if r.Commit != "" {
		return r.Commit
	}
	return r.Entered
}

// Counts are allocations of some work, which do not depend on the machine.
type Counts struct {
	Go   string  `json:"go"` // the version with which they were counted
	Rows []Count `json:"rows"`
}

// Count is what one piece of work allocates.
type Count struct {
	Name        string  `json:"name"`
	Per         string  `json:"per"` // what one piece is
	Allocations float64 `json:"allocations"`
	Bytes       float64 `json:"bytes"`
}

// Table returns the table of a name, or nil.
func (f *File) Table(name string) *Table {
	if i := slices.IndexFunc(f.Tables, func(t Table) bool { return t.Name == name }); i >= 0 {
		return &f.Tables[i]
	}
	return nil
}

// Read reads a file. An error of code Invalid says what in it is wrong: a table without
// name or packages, or named twice, or a row that has not a cell for each column, or no commit.
func Read(path string) (*File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read measurements: %w", err)
	}
	var f File
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, berth.Errorf(berth.Invalid, "measurements", "%s: %v", path, err)
	}
	seen := map[string]bool{}
	for i := range f.Tables {
		t := &f.Tables[i]
		if t.Name == "" || seen[t.Name] || len(t.Packages) == 0 || len(t.Rows) == 0 {
			return nil, berth.Errorf(berth.Invalid, "tables", "table %d, %q; each needs a name of its own, packages and rows", i+1, t.Name)
		}
		seen[t.Name] = true
		for j := range t.Rows {
			if err := t.check(&t.Rows[j]); err != nil {
				return nil, err
			}
		}
	}
	return &f, nil
}

// check reports what is wrong with a row.
func (t *Table) check(r *Row) error {
	switch {
	case len(r.Cells) != len(t.Columns):
		return berth.Errorf(berth.Invalid, "cells", "%s has %d columns and a row of %d cells: %q", t.Name, len(t.Columns), len(r.Cells), r.Cells)
	case (r.Commit == "") == (r.Entered == ""):
		return berth.Errorf(berth.Invalid, "commit", "%s: the row %q must have either commit or entered", t.Name, r.Cells[0])
	}
	return nil
}

// Write writes the file, each row in a line of its own, so that two who measure different rows can be put together.
func (f *File) Write(path string) error {
	var out bytes.Buffer
	var failed error
	line := func(indent string, v any) string {
		text := bytes.Buffer{}
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil && failed == nil {
			failed = err
		}
		return indent + string(bytes.TrimSpace(text.Bytes()))
	}
	end := func(i, n int) string {
		if i == n-1 {
			return "\n"
		}
		return ",\n"
	}
	out.WriteString("{\"Tables\": [\n")
	for i := range f.Tables {
		t := &f.Tables[i]
		fmt.Fprintf(&out, "{\"name\": %s, \"packages\": %s,", line("", t.Name), line("", t.Packages))
		if t.Record {
			out.WriteString(" \"record\": true,")
		}
		fmt.Fprintf(&out, "\n \"columns\": %s, \"rows\": [\n", line("", t.Columns))
		for j := range t.Rows {
			out.WriteString(line("  ", &t.Rows[j]) + end(j, len(t.Rows)))
		}
		out.WriteString(" ]}" + end(i, len(f.Tables)))
	}
	fmt.Fprintf(&out, "],\n\"Counts\": {\"go\": %s, \"rows\": [\n", line("", f.Counts.Go))
	for i := range f.Counts.Rows {
		out.WriteString(line("  ", &f.Counts.Rows[i]) + end(i, len(f.Counts.Rows)))
	}
	out.WriteString("]}}\n")
	if failed != nil {
		return fmt.Errorf("write measurements: %w", failed)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write measurements: %w", err)
	}
	return nil
}

// tolerance is by how much a count may exceed the one on record: issue 22 asks for 10 %.
const tolerance = .10

// Exceeds says what of a count is more than a tenth above the one on record, in words; nothing if
// nothing is. A count of less than one in a hundred pieces of work is nothing.
func (c *Count) Exceeds(recorded *Count) (faults []string) {
	for _, of := range []struct {
		what     string
		now, had float64
		nothing  float64
	}{
		{"allocations", c.Allocations, recorded.Allocations, .01},
		{"bytes", c.Bytes, recorded.Bytes, 1},
	} {
		if of.now > of.had*(1+tolerance)+of.nothing {
			faults = append(faults, fmt.Sprintf("%s: %.3f %s a %s, %.3f on record", c.Name, of.now, of.what, c.Per, of.had))
		}
	}
	return faults
}
