// Package accounting compares what jobs in reservations were counted to hold with what Slurm's accounting has, and names each difference. It
// reads what sacct has printed, and runs nothing.
package accounting

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
)

// Run is one run of a job, as Slurm has accounted for it or as Berth has counted it.
type Run struct {
	Job, Raw    string // of an array the job is 7_2, and its raw number another one
	Reservation string // name at the site, which sacct does not always have
	State       string // of sacct, in capitals
	Nodes, CPUs berth.Count
	PEs         berth.Count // that it held, by what a PE of the site is
	Start, End  berth.Time  // 0 is unknown, or not yet
	Ending      Ending      // of one that Berth has counted
}

// area returns what the run held, in PE-seconds; nothing while its end is not known.
func (r *Run) area() int64 {
	if r.Start <= 0 || r.End <= r.Start {
		return 0
	}
	return berth.Area(r.PEs, r.End.Sub(r.Start))
}

// maxLine is the longest line that is read.
const maxLine = 1 << 20

// columns are those that sacct calls so; the first of a line is looked for first, and one has to be there unless may is set.
var columns = []struct {
	names []string
	may   bool
	set   func(r *Run, text string, zone *time.Location) error
}{
	{[]string{"JobID", "JobIDRaw"}, false, func(r *Run, text string, _ *time.Location) error { r.Job = text; return nil }},
	{[]string{"JobIDRaw"}, true, func(r *Run, text string, _ *time.Location) error { r.Raw = text; return nil }},
	{[]string{"Reservation"}, false, func(r *Run, text string, _ *time.Location) error { r.Reservation = text; return nil }},
	{[]string{"State"}, false, func(r *Run, text string, _ *time.Location) error { r.State = text; return nil }},
	{[]string{"NNodes", "AllocNodes"}, false, func(r *Run, text string, _ *time.Location) error { return number(&r.Nodes, text) }},
	{[]string{"AllocCPUS", "NCPUS"}, false, func(r *Run, text string, _ *time.Location) error { return number(&r.CPUs, text) }},
	{[]string{"Start"}, false, func(r *Run, text string, zone *time.Location) error { return instant(&r.Start, text, zone) }},
	{[]string{"End"}, false, func(r *Run, text string, zone *time.Location) error { return instant(&r.End, text, zone) }},
}

func number(to *berth.Count, text string) error {
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 0 {
		return fmt.Errorf("%q; want a whole number", text)
	}
	*to = berth.Count(n)
	return nil
}

// instant reads a time as sacct prints it: 2027-01-31T18:00:00 by the clock of a zone, or with SLURM_TIME_FORMAT=%s the seconds since 1970.
func instant(to *berth.Time, text string, zone *time.Location) error {
	switch text {
	case "", "Unknown", "None", "Invalid", "INVALID":
		return nil
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		*to = berth.Time(n)
		return nil
	}
	t, err := time.ParseInLocation("2006-01-02T15:04:05", text, zone)
	if err != nil {
		return fmt.Errorf("%q; want a time such as 2027-01-31T18:00:00, or seconds (SLURM_TIME_FORMAT=%%s)", text)
	}
	*to = berth.Time(t.Unix())
	return nil
}

// Read reads what sacct --parsable2 has printed, with its line of names; times are of a zone. Steps of jobs are left out. The error is Invalid
// and says the line.
func Read(from io.Reader, zone *time.Location) (runs []Run, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	var at []int // of each of columns, -1 for none
	width := 0
	for n := 1; lines.Scan(); n++ {
		fields := strings.Split(strings.TrimSuffix(lines.Text(), "\r"), "|")
		if at == nil {
			if at, err = places(fields); err != nil {
				return nil, err
			}
			width = len(fields)
			continue
		}
		if len(fields) != width {
			return nil, berth.Errorf(berth.Invalid, "sacct", "line %d has %d fields, and its line of names %d; want what sacct --parsable2 prints", n, len(fields), width)
		}
		var r Run
		for i := range columns {
			if at[i] < 0 {
				continue
			}
			if err := columns[i].set(&r, strings.TrimSpace(fields[at[i]]), zone); err != nil {
				return nil, berth.Errorf(berth.Invalid, "sacct", "line %d: %s: %v", n, fields[at[i]], err)
			}
		}
		if !strings.Contains(r.Job, ".") {
			runs = append(runs, r)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, berth.Errorf(berth.Invalid, "sacct", "%v", err)
	}
	if at == nil {
		return nil, berth.Errorf(berth.Invalid, "sacct", "it is empty; want what sacct --parsable2 prints, with its line of names")
	}
	return runs, nil
}

// places returns where each column is in a line of names.
func places(names []string) ([]int, error) {
	at := make([]int, len(columns))
	for i := range columns {
		at[i] = -1
		for _, name := range columns[i].names {
			if at[i] < 0 {
				at[i] = slices.IndexFunc(names, func(have string) bool { return strings.EqualFold(strings.TrimSpace(have), name) })
			}
		}
		if at[i] < 0 && !columns[i].may {
			return nil, berth.Errorf(berth.Invalid, "sacct", "no column %s in its first line (%s); want those of --format=%s", columns[i].names[0], strings.Join(names, "|"), Format)
		}
	}
	return at, nil
}

// Format is what sacct has to be asked for.
const Format = "JobID,JobIDRaw,Reservation,State,NNodes,AllocCPUS,Start,End"
