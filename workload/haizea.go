package workload

import (
	"bytes"
	"strconv"

	"github.com/berth-hpc/berth"
)

// Columns of Haizea's lease workload format before it became XML, from 0.
const (
	leaseSubmit = iota
	leaseStart
	leaseDuration
	leaseReal
	leaseNodes
	leaseCPUs
	leaseMemory
	leaseDisk
	leaseImage
	leaseImageSize
	leaseColumns
)

var leaseNames = [leaseColumns]string{
	leaseSubmit: "submit time", leaseStart: "start", leaseDuration: "duration", leaseReal: "real duration",
	leaseNodes: "nodes", leaseCPUs: "CPUs per node", leaseMemory: "memory", leaseDisk: "disk",
	leaseImage: "image", leaseImageSize: "image size",
}

const leaseExample = "0 86400 1886 1886 22 1 1024 0 image 600"

// readLeases reads leases in columns: submit time, start or -1, duration, real
// duration (seconds), nodes, CPUs per node, memory (MB), disk, image and its
// size. A number sign begins a comment line. A lease with a start is a booking
// of nodes times CPUs per node for its duration, for the real one is known only
// afterwards; its id is the number of its line among the leases, from 1. A lease
// without a start is skipped and counted. The other columns must be there and,
// the image apart, be whole numbers from -1 up.
func readLeases(l *lines, opt Options) (*BookingFile, error) {
	f := &BookingFile{Form: LWF, Begin: berth.Forever, Report: Report{Name: l.name}}
	take := func(line []byte) (Cause, BadLine) {
		b, submit, bad := parseLease(line, opt.PEs)
		if bad.Want != "" {
			return "", bad
		}
		f.Begin = min(f.Begin, submit)
		if b.NPE == 0 {
			return NotABooking, BadLine{}
		}
		b.ID = strconv.Itoa(f.Report.Records)
		f.Bookings = append(f.Bookings, b)
		return "", BadLine{}
	}
	l.comment = '#'
	if err := l.each(&f.Report, opt.Strict, "lease", take); err != nil {
		return nil, err
	}
	if len(f.Bookings) == 0 {
		return nil, f.Report.noneOf("bookings", "booking", leaseExample)
	}
	return f, nil
}

// parseLease reads the columns of a line. The booking has no PEs if the lease
// has no start.
func parseLease(line []byte, machine berth.Count) (b Booking, submit berth.Time, bad BadLine) {
	columns := bytes.Fields(line)
	if len(columns) != leaseColumns {
		return b, 0, BadLine{
			Field: "columns", Value: strconv.Itoa(len(columns)),
			Want: "a lease has 10, such as " + leaseExample,
		}
	}
	var values [leaseColumns]int64
	for i, text := range columns {
		if i == leaseImage {
			continue
		}
		n, err := strconv.ParseInt(string(text), 10, 64)
		switch {
		case err != nil:
			bad = BadLine{Want: "not a whole number"}
		case i == leaseSubmit && n < 0:
			bad = BadLine{Want: "negative; the workload begins at 0"}
		case n < -1:
			bad = BadLine{Want: "negative; the only negative number allowed is -1"}
		case n >= timeLimit:
			bad = BadLine{Want: "beyond the limit; it must be below 2^42"}
		}
		if bad.Want != "" {
			bad.Field, bad.Value = leaseNames[i], shown(text)
			return b, 0, bad
		}
		values[i] = n
	}
	submit = berth.Time(values[leaseSubmit])
	if values[leaseStart] < 0 {
		return b, submit, BadLine{}
	}
	b.Start = berth.Time(values[leaseStart])
	b.NPE, bad = leaseSize(values[leaseNodes], values[leaseCPUs], machine)
	if bad.Want == "" {
		b.End, bad = leaseEnd(b.Start, values[leaseDuration])
	}
	return b, submit, bad
}

// leaseSize returns the PEs of a lease of n nodes.
func leaseSize(nodes, cpus int64, machine berth.Count) (berth.Count, BadLine) {
	for _, n := range []struct {
		value int64
		name  string
	}{{nodes, leaseNames[leaseNodes]}, {cpus, leaseNames[leaseCPUs]}} {
		if n.value < 1 || n.value > berth.MaxPEs {
			return 0, BadLine{Field: n.name, Value: countText(n.value), Want: "want from 1 to " + countText(berth.MaxPEs)}
		}
	}
	npe, bad := sizeOf(nodes*cpus, machine)
	if bad.Want != "" {
		bad.Field = leaseNames[leaseNodes]
	}
	return npe, bad
}

// leaseEnd returns the end of a lease.
func leaseEnd(start berth.Time, duration int64) (berth.Time, BadLine) {
	if duration < 1 {
		return 0, BadLine{Field: leaseNames[leaseDuration], Value: countText(duration), Want: "a lease lasts at least 1 s"}
	}
	end := start.Add(berth.Duration(duration))
	return end, checkSpan(start, end)
}
