package workload

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

// Booking is PEs that others hold during [Start, End).
type Booking struct {
	ID         string
	Site, Pool string // empty where there is one only
	NPE        berth.Count
	PEs        berth.PESet // which ones; empty if not told
	Start, End berth.Time
}

// LWF is the form of Haizea's lease workload files, in columns or in XML.
const LWF Form = "lwf"

// BookingFile is what a file of bookings held.
type BookingFile struct {
	Form     Form
	Bookings []Booking // sorted by start, stably
	Header   Header    // of a log
	// Begin is the earliest time that the file tells of: the first submission
	// of a log, else the earliest arrival or start.
	Begin berth.Time
	// NoWait counts the jobs of a log whose wait time is unknown: they are taken
	// to start when they were submitted.
	NoWait int
	Report Report
}

// PEs returns the machine's size as a log's header tells it, or 0.
func (f *BookingFile) PEs() berth.Count { return f.Header.PEs() }

// OpenBookings reads what others hold of a machine, gzip-compressed or not:
//
//   - .swf, a log: every usable job is a booking from its actual start, submit
//     plus wait time, for its run time. Logs are not exact, so where the size of
//     the machine is known, jobs that exceed it, looked at in the order of their
//     starts, are skipped and counted as overbooked;
//   - .jsonl, JSON Lines as a schedule or `berth generate bookings` has them; see
//     ReadBookings;
//   - .lwf, Haizea's leases that have a start.
//
// Under another name the first byte that is not blank decides: an opening brace
// means JSON Lines, an opening angle bracket leases in XML, anything else a log.
//
// Options.Jobs does not matter, Keep matters for logs alone. Bad records are passed
// over and counted, unless Options.Strict makes the first one an error: onto PEs that
// are taken nothing should be planned, so planners tell of the report. Errors are
// those of Open, with field "bookings" where no field of the file is at fault.
func OpenBookings(path string, opt Options) (*BookingFile, error) {
	file, err := openFile("bookings", path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read from: nothing can be lost
	return ReadBookings(file, path, opt)
}

// ReadBookings is OpenBookings for content that comes from elsewhere; name
// stands in messages and decides the form like a path.
//
// In JSON Lines a booking is a line of kind booking or outage, with npe (or
// pes), start and end, and a line of kind request or job that was accepted and
// has them. Other lines are skipped and counted. An outage needs no id.
//
// A file that is empty or blank has no bookings; one with content where nothing
// is a booking is a mistake, which is that of its first bad line.
//
// Cost: O(bytes + n log n) for n bookings.
func ReadBookings(r io.Reader, name string, opt Options) (*BookingFile, error) {
	f, err := readBookings(r, name, opt)
	if err != nil {
		return nil, refield(err, "bookings")
	}
	slices.SortStableFunc(f.Bookings, func(a, b Booking) int { return cmp.Compare(a.Start, b.Start) })
	machine := opt.PEs
	if machine == 0 {
		machine = f.PEs()
	}
	if f.Form == SWF && machine > 0 {
		f.dropOverbooked(machine)
	}
	return f, nil
}

// dropOverbooked leaves out what a machine of that size cannot hold.
func (f *BookingFile) dropOverbooked(machine berth.Count) {
	var running endings
	f.Bookings = slices.DeleteFunc(f.Bookings, func(b Booking) bool {
		if running.fits(b.Start, b.End, b.NPE, machine) {
			return false
		}
		f.Report.Usable--
		f.Report.skip(Overbooked)
		return true
	})
}

func readBookings(r io.Reader, name string, opt Options) (*BookingFile, error) {
	l, err := newLines(r, name)
	if err != nil {
		return nil, err
	}
	first, err := l.peekNonBlank()
	if err != nil {
		return nil, err
	}
	base := strings.TrimSuffix(strings.ToLower(name), ".gz")
	if first == 0 && l.buf.Buffered() < bufferSize { // blank
		empty := &BookingFile{Form: JSONL, Begin: berth.Forever, Report: Report{Name: name}}
		if strings.HasSuffix(base, ".swf") {
			empty.Form = SWF
		}
		return empty, nil
	}
	switch {
	case strings.HasSuffix(base, ".swf"):
		return readBookingsSWF(l, opt)
	case strings.HasSuffix(base, ".jsonl"):
		return readBookingsJSONL(l, opt)
	case first == '<':
		return readLeasesXML(l, opt)
	case strings.HasSuffix(base, ".lwf"):
		return readLeases(l, opt)
	case first == '{':
		return readBookingsJSONL(l, opt)
	}
	return readBookingsSWF(l, opt)
}

// refield gives a mistake in the file as a whole, which is that of a workload, another
// field.
func refield(err error, field string) error {
	mistake, is := errors.AsType[*berth.Error](err)
	if !is || mistake.Field != "workload" {
		return err
	}
	return &berth.Error{Code: mistake.Code, Field: field, Msg: mistake.Msg}
}

// readBookingsSWF takes the jobs of a log as bookings.
func readBookingsSWF(l *lines, opt Options) (*BookingFile, error) {
	opt.Jobs = 0
	w, err := readSWF(l, opt)
	if err != nil {
		return nil, err
	}
	f := &BookingFile{
		Form: SWF, Header: w.Header, Report: w.Report, Begin: w.Records[0].Submit,
		Bookings: make([]Booking, 0, len(w.Records)),
	}
	for i := range w.Records {
		rec := &w.Records[i]
		if rec.Wait < 0 {
			f.NoWait++
		}
		start, end := rec.held()
		if end >= berth.TimeLimit {
			bad := BadLine{Field: "run time", Want: "job " + strconv.FormatInt(rec.Job, 10) + " ends at " + timeText(end) + "; no time may reach 2^42 s"}
			if err := f.Report.bad(&bad, opt.Strict); err != nil {
				return nil, err
			}
			f.Report.Usable--
			continue
		}
		f.Bookings = append(f.Bookings, Booking{
			ID: strconv.FormatInt(rec.Job, 10), NPE: rec.Size(), Start: start, End: end,
		})
	}
	if len(f.Bookings) == 0 {
		return nil, f.Report.FirstBad[0].error(l.name)
	}
	return f, nil
}

// held returns from when to when a job with a run time held its PEs. A start
// that is not recorded is the submission.
func (r *Record) held() (start, end berth.Time) {
	start = r.Submit.Add(max(r.Wait, 0))
	return start, start.Add(r.Run)
}

// readBookingsJSONL reads the lines that hold PEs.
func readBookingsJSONL(l *lines, opt Options) (*BookingFile, error) {
	f := &BookingFile{Form: JSONL, Begin: berth.Forever, Report: Report{Name: l.name}}
	type part struct {
		id   string
		part int
	}
	lineOf := make(map[part]int)
	take := func(line []byte) (Cause, BadLine) {
		var got bookingReader
		if bad := got.parse(line); bad.Want != "" {
			return "", bad
		}
		if got.passedOver() {
			return NotABooking, BadLine{}
		}
		b, bad := got.booking(opt.PEs)
		if bad.Want != "" {
			return "", bad
		}
		if b.ID != "" {
			key := part{b.ID, got.line.part}
			if first, taken := lineOf[key]; taken {
				return "", BadLine{Field: "id", Value: b.ID, Want: "line " + strconv.Itoa(first) + " has it already; it must be unique"}
			}
			lineOf[key] = l.number
		}
		if f.Begin = min(f.Begin, b.Start); got.line.given.has(fieldArrival) {
			f.Begin = min(f.Begin, berth.Time(got.line.arrival))
		}
		f.Bookings = append(f.Bookings, b)
		return "", BadLine{}
	}
	if err := l.each(&f.Report, opt.Strict, "booking", take); err != nil {
		return nil, err
	}
	if len(f.Bookings) == 0 {
		return nil, f.Report.noneOf("bookings", "booking", bookingExample)
	}
	return f, nil
}
