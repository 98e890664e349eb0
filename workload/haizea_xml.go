package workload

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
)

// The elements of Haizea's lease workload format in XML that matter here
// (Haizea manual, appendix "LWF file format").
type (
	xmlRequest struct {
		Arrival *string   `xml:"arrival,attr"`
		Lease   *xmlLease `xml:"lease"`
	}
	xmlLease struct {
		ID       string       `xml:"id,attr"`
		Nodes    []xmlNodeSet `xml:"nodes>node-set"`
		Start    *xmlStart    `xml:"start"`
		Duration *xmlTime     `xml:"duration"`
		Deadline *xmlTime     `xml:"deadline"`
	}
	xmlNodeSet struct {
		Nodes     string        `xml:"numnodes,attr"`
		Resources []xmlResource `xml:"res"`
	}
	xmlResource struct {
		Type   string `xml:"type,attr"`
		Amount string `xml:"amount,attr"`
	}
	xmlStart struct {
		Exact *xmlTime  `xml:"exact"`
		Now   *struct{} `xml:"now"`
	}
	xmlTime struct {
		Time string `xml:"time,attr"`
	}
)

// cpuAmount is how much of the resource CPU one processor is.
const cpuAmount = 100

const xmlLeaseExample = `<lease-request arrival="00:00:00"><lease id="1"><nodes><node-set numnodes="4"/></nodes>` +
	`<start><exact time="01:00:00"/></start><duration time="00:30:00"/></lease></lease-request>`

// readLeasesXML reads leases in XML. A lease with an exact start, or one that
// starts on arrival, is a booking of the sum of its nodes, each times its CPUs,
// a hundred of the amount being one and a part of one counting as one. A lease
// without a start, and one with a deadline, which is to be placed, is skipped
// and counted. Fractions of seconds round starts down and ends up.
func readLeasesXML(l *lines, opt Options) (*BookingFile, error) {
	f := &BookingFile{Form: LWF, Begin: berth.Forever, Report: Report{Name: l.name}}
	below := &watched{reader: l.buf}
	in := xml.NewDecoder(below)
	seen := make(map[string]int)
	root := false
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, xmlFailure(l, below, in, err)
		}
		element, is := token.(xml.StartElement)
		if !is {
			continue
		}
		line, _ := in.InputPos()
		if !root && element.Name.Local != "lease-workload" {
			return nil, (&BadLine{Line: line, Value: "<" + element.Name.Local + ">", Want: "want <lease-workload>, as Haizea's lease workloads begin"}).error(l.name)
		}
		root = true
		if element.Name.Local != "lease-request" {
			continue
		}
		f.Report.Records++
		var request xmlRequest
		if err := in.DecodeElement(&request, &element); err != nil {
			return nil, xmlFailure(l, below, in, err)
		}
		b, arrival, bad := request.booking(opt.PEs, f.Report.Records)
		if bad.Want == "" {
			if first, taken := seen[b.ID]; taken {
				bad = BadLine{Field: "id", Value: b.ID, Want: "the lease at line " + strconv.Itoa(first) + " has it already; it must be unique"}
			}
		}
		if bad.Want != "" {
			bad.Line = line
			if err := f.Report.bad(&bad, opt.Strict); err != nil {
				return nil, err
			}
			continue
		}
		seen[b.ID] = line
		f.Begin = min(f.Begin, arrival)
		if b.NPE == 0 {
			f.Report.skip(NotABooking)
			continue
		}
		f.Bookings = append(f.Bookings, b)
	}
	f.Report.Usable = len(f.Bookings)
	if len(f.Bookings) == 0 {
		return nil, f.Report.noneOf("bookings", "booking", xmlLeaseExample)
	}
	return f, nil
}

// watched remembers how a reader failed, for the XML decoder tells its own
// complaints and those of the reader alike.
type watched struct {
	reader io.Reader
	err    error
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

// xmlFailure words what stopped the decoder.
func xmlFailure(l *lines, below *watched, in *xml.Decoder, err error) error {
	line, column := in.InputPos()
	if below.err != nil {
		l.number = line
		return l.failure(below.err)
	}
	told := err.Error()
	if syntax, is := errors.AsType[*xml.SyntaxError](err); is {
		told = syntax.Msg
	}
	return berth.Errorf(berth.Invalid, "bookings", "%s:%d:%d: not a lease workload in XML: %s", l.name, line, column, told)
}

// booking returns the n-th request as a booking; without PEs if it is none.
func (r *xmlRequest) booking(machine berth.Count, n int) (b Booking, arrival berth.Time, bad BadLine) {
	if r.Lease == nil {
		return b, 0, BadLine{Field: "lease", Want: "missing; a lease-request holds one"}
	}
	if b.ID = r.Lease.ID; b.ID == "" {
		b.ID = strconv.Itoa(n)
	}
	if hasControl(b.ID) {
		return b, 0, BadLine{Field: "id", Value: b.ID, Want: "holds a control character"}
	}
	if r.Arrival == nil {
		return b, 0, BadLine{Field: "arrival", Want: "missing; want a time such as 00:15:00"}
	}
	arrival, _, bad = leaseTime("arrival", *r.Arrival)
	if bad.Want != "" {
		return b, 0, bad
	}
	start := r.Lease.Start
	if r.Lease.Deadline != nil || start == nil || start.Exact == nil && start.Now == nil {
		return b, arrival, BadLine{}
	}
	exact, fraction := arrival, false
	if start.Exact != nil {
		text, relative := strings.CutPrefix(start.Exact.Time, "+")
		if exact, fraction, bad = leaseTime("start", text); bad.Want != "" {
			return b, arrival, bad
		}
		if relative {
			exact += arrival
		}
	}
	return r.Lease.placed(b, arrival, exact, fraction, machine)
}

// placed completes the booking of a lease that starts at a known time, or a
// fraction of a second later.
func (x *xmlLease) placed(b Booking, arrival, start berth.Time, fraction bool, machine berth.Count) (Booking, berth.Time, BadLine) {
	if x.Duration == nil {
		return b, arrival, BadLine{Field: "duration", Want: "missing; want a time such as 01:00:00"}
	}
	length, more, bad := leaseTime("duration", x.Duration.Time)
	if bad.Want != "" {
		return b, arrival, bad
	}
	if more {
		length++
	}
	if fraction && length > 0 {
		length++
	}
	npe, bad := x.size()
	if bad.Want == "" {
		b.NPE, bad = sizeOf(npe, machine)
	}
	if bad.Want == "" {
		b.Start = start
		b.End, bad = leaseEnd(start, int64(length))
	}
	return b, arrival, bad
}

// size returns the PEs of a lease.
func (x *xmlLease) size() (int64, BadLine) {
	if len(x.Nodes) == 0 {
		return 0, BadLine{Field: "node-set", Want: `missing; want one such as <node-set numnodes="4"/>`}
	}
	total := int64(0)
	for _, set := range x.Nodes {
		nodes, err := strconv.ParseInt(set.Nodes, 10, 32)
		if err != nil || nodes < 1 {
			return 0, BadLine{Field: "numnodes", Value: set.Nodes, Want: "want a whole number of at least 1"}
		}
		cpus := int64(1)
		for _, res := range set.Resources {
			if res.Type != "CPU" {
				continue
			}
			amount, err := strconv.ParseInt(res.Amount, 10, 32)
			if err != nil || amount < 1 {
				return 0, BadLine{Field: "amount", Value: res.Amount, Want: "want a whole number of at least 1, 100 for each CPU"}
			}
			cpus = (amount + cpuAmount - 1) / cpuAmount
		}
		if total += nodes * cpus; total > berth.MaxPEs {
			break // too many whatever follows
		}
	}
	return total, BadLine{}
}

// leaseTime reads [[DD:]HH:]MM:SS[.fraction]. fraction tells whether any digit
// behind the point is not 0.
func leaseTime(field, text string) (t berth.Time, fraction bool, bad BadLine) {
	wrong := BadLine{Field: field, Value: shown([]byte(text)), Want: "want [DD:]HH:MM:SS, such as 01:30:00"}
	whole, behind, point := strings.Cut(text, ".")
	if point && (behind == "" || strings.Trim(behind, "0123456789") != "") {
		return 0, false, wrong
	}
	parts := strings.Split(whole, ":")
	if len(parts) < 3 || len(parts) > 4 {
		return 0, false, wrong
	}
	units := []int64{day, 3600, 60, 1}[4-len(parts):]
	total := int64(0)
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return 0, false, wrong
		}
		if i > 0 && int64(n) >= units[i-1]/units[i] {
			return 0, false, BadLine{Field: field, Value: wrong.Value, Want: fmt.Sprintf("%d is too much for its place; %s", n, wrong.Want)}
		}
		total += int64(n) * units[i]
	}
	if total >= timeLimit {
		return 0, false, BadLine{Field: field, Value: wrong.Value, Want: "beyond the limit of 2^42 s"}
	}
	return berth.Time(total), strings.Trim(behind, "0") != "", BadLine{}
}
