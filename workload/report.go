package workload

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

// Options say how to read a workload file. The zero value reads everything,
// skips and counts bad lines, and takes the machine's size from the header.
type Options struct {
	// PEs is the size of the machine; a job of a log above it is a bad line.
	// 0 means the leading integer of the header's MaxProcs, and no machine
	// bound where that is missing too. It does not matter for JSON Lines and
	// JDL, where a request may be larger than the machine and is refused as
	// such.
	PEs berth.Count
	// Jobs keeps only the first usable records, counted after sorting;
	// 0 means all. The rest of the file is read and reported all the same.
	Jobs int
	// Strict makes the first bad line an error.
	Strict bool
	// Keep drops the records of a log for which it is false before they are
	// judged, for example those of another partition. nil keeps all. It matters
	// for logs alone.
	Keep func(*Record) bool
}

// Cause says why a well-formed record is of no use. The list is closed.
type Cause string

// The causes.
const (
	NoRunTime    Cause = "no run time"       // column 4 is 0 or negative
	NotOver      Cause = "not over"          // a job of Slurm that waits or runs
	NoProcessors Cause = "no processors"     // columns 5 and 8 are 0 or unknown
	PartialRun   Cause = "partial execution" // a burst of a job that has its own line
	Filtered     Cause = "filtered"          // Options.Keep said no
	NotARequest  Cause = "not a request"     // nor a job: a booking, outage or staging
	NotABooking  Cause = "not a booking"     // nothing that holds PEs from a fixed start
	NotAnOutage  Cause = "not an outage"     // a line of a schedule of another kind
	Overbooked   Cause = "overbooked"        // would take more PEs than the machine has
)

// Causes lists every cause in the order in which reports tell them.
func Causes() []Cause {
	return []Cause{NoRunTime, NotOver, NoProcessors, PartialRun, Filtered, NotARequest, NotABooking, NotAnOutage, Overbooked}
}

// Report says what became of the records of a file. Every record is in exactly
// one of Usable, Skipped and Bad. Blank lines and comments are no records.
type Report struct {
	Name    string        `json:"name"`    // of the file
	Records int           `json:"records"` // read
	Usable  int           `json:"usable"`  // before Options.Jobs cuts
	Skipped map[Cause]int `json:"skipped,omitempty"`
	Bad     int           `json:"bad"`
	// FirstBad holds the first bad lines, at most MaxFirstBad, in the order
	// in which they were found.
	FirstBad []BadLine `json:"first_bad,omitempty"`
	// NoEstimate counts the records whose duration is the run time although
	// estimates were asked for. Transform fills it.
	NoEstimate int `json:"no_estimate,omitempty"`
	// PrecedenceDropped counts JSON Lines requests with a non-empty "after":
	// they are read as independent ones.
	PrecedenceDropped int `json:"precedence_dropped,omitempty"`
}

// MaxFirstBad is how many bad lines a Report keeps.
const MaxFirstBad = 10

// BadLine is a line that could not be understood or that contradicts itself.
type BadLine struct {
	Line  int    `json:"line"`  // from 1; 0 if no line is at fault
	Field string `json:"field"` // empty if the line as a whole is at fault
	Value string `json:"value"` // as written, shortened
	Want  string `json:"want"`  // what is wrong, and what would be right
}

// text returns the complaint without the field's name.
func (b *BadLine) text(file string) string {
	var s strings.Builder
	s.WriteString(file)
	if b.Line > 0 {
		s.WriteString(":" + strconv.Itoa(b.Line))
	}
	s.WriteString(": ")
	if b.Value != "" {
		s.WriteString(strconv.Quote(b.Value) + ": ")
	}
	s.WriteString(b.Want)
	return s.String()
}

// error returns the bad line as a mistake of the caller.
func (b *BadLine) error(file string) error {
	return &berth.Error{Code: berth.Invalid, Field: b.Field, Msg: b.text(file)}
}

// SkippedTotal returns the number of skipped records.
func (r *Report) SkippedTotal() int {
	total := 0
	for _, n := range r.Skipped {
		total += n
	}
	return total
}

// String tells the report in one line for people; of the bad lines it shows the
// first.
func (r *Report) String() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %d of %d records usable", r.Name, r.Usable, r.Records)
	for _, cause := range Causes() {
		if n := r.Skipped[cause]; n > 0 {
			fmt.Fprintf(&s, ", %d skipped (%s)", n, cause)
		}
	}
	if r.Bad > 0 {
		fmt.Fprintf(&s, ", %d bad", r.Bad)
		if len(r.FirstBad) > 0 {
			first := &r.FirstBad[0]
			fmt.Fprintf(&s, ", the first at %s", first.error(r.Name))
		}
	}
	if r.NoEstimate > 0 {
		fmt.Fprintf(&s, ", %d without an estimate booked by run time", r.NoEstimate)
	}
	if r.PrecedenceDropped > 0 {
		fmt.Fprintf(&s, ", %d with predecessors read as independent", r.PrecedenceDropped)
	}
	return s.String()
}

func (r *Report) skip(cause Cause) {
	if r.Skipped == nil {
		r.Skipped = make(map[Cause]int)
	}
	r.Skipped[cause]++
}

// bad counts one bad line and keeps it if it is among the first. In strict mode
// it returns it as an error.
func (r *Report) bad(line *BadLine, strict bool) error {
	r.Bad++
	if len(r.FirstBad) < MaxFirstBad {
		r.FirstBad = append(r.FirstBad, *line)
	}
	if strict {
		return line.error(r.Name)
	}
	return nil
}

// noneUsable is the error for a file that holds nothing to schedule.
func (r *Report) noneUsable() error {
	if r.Records == 0 {
		return berth.Errorf(berth.Invalid, "workload", "%s: no record in the file", r.Name)
	}
	return berth.Errorf(berth.Invalid, "workload", "no usable record; %s", r)
}

// noneOf is the error for a file in which nothing is a booking or an outage: the first
// bad line if there is one.
func (r *Report) noneOf(field, what, example string) error {
	switch {
	case r.Bad > 0:
		return r.FirstBad[0].error(r.Name)
	case r.Records == 0:
		return berth.Errorf(berth.Invalid, field, "%s: nothing in the file; want %ss such as %s", r.Name, what, example)
	}
	return berth.Errorf(berth.Invalid, field, "%s: none of %d lines is %s; want %ss such as %s", r.Name, r.Records, withArticle(what), what, example)
}

func withArticle(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// maxShown bounds how much of a bad value is repeated to the reader.
const maxShown = 60

// shown returns a bad value cut to a length people can read.
func shown(value []byte) string {
	if len(value) <= maxShown {
		return string(value)
	}
	return string(value[:maxShown]) + "…"
}
