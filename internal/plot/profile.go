package plot

import (
	"fmt"
	"iter"
	"strings"

	"github.com/berth-hpc/berth"
)

// summary counts the requests of one run.
type summary struct {
	requests, accepted          int
	requestedArea, acceptedArea int64 // PE-seconds
	reasons                     map[berth.Reason]int
}

// summarise counts the lines of kind request.
func summarise(lines iter.Seq[*berth.Line]) summary {
	sum := summary{reasons: map[berth.Reason]int{}}
	for line := range lines {
		if !isRequest(line) {
			continue
		}
		area := berth.Area(line.NPE, line.Duration)
		sum.requests++
		sum.requestedArea += area
		if line.Accepted {
			sum.accepted++
			sum.acceptedArea += area
		} else {
			sum.reasons[line.Reason]++
		}
	}
	return sum
}

// isRequest reports whether a line is about a request; without a kind it is.
func isRequest(line *berth.Line) bool { return line.Kind == berth.KindRequest || line.Kind == "" }

// accepts is the line over a panel: what was accepted.
func (s *summary) accepts() string {
	return fmt.Sprintf("%s of %s requests accepted (%.1f %%), %.1f %% of PE-seconds",
		grouped(int64(s.accepted)), grouped(int64(s.requests)),
		100*fraction(int64(s.accepted), int64(s.requests)), 100*fraction(s.acceptedArea, s.requestedArea))
}

// refuses says how many were refused and why, the reasons in the order of the
// engine's tests.
func (s *summary) refuses() string {
	var counts []string
	for _, reason := range berth.Reasons() {
		if n := s.reasons[reason]; n > 0 {
			counts = append(counts, fmt.Sprintf("%s %s", grouped(int64(n)), reason))
		}
	}
	return "refused: " + strings.Join(counts, ", ")
}

// fraction returns part/whole, and 0 of nothing.
func fraction(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// spanOf returns the time all panels share: from the first arrival to the last
// moment that is reserved or was asked for and refused. It is never empty.
func spanOf(runs []Run) berth.Interval {
	var span berth.Interval
	first := true
	for _, run := range runs {
		for line := range run.Lines {
			if !isRequest(line) {
				continue
			}
			if first {
				span = berth.Interval{Start: line.Arrival, End: line.Arrival}
				first = false
			}
			span.Start = min(span.Start, line.Arrival)
			span.End = max(span.End, demand(line).End)
		}
	}
	span.End = max(span.End, span.Start+1)
	return span
}

// demand returns where a request stands in the picture: where it was put, or
// for a refusal where it would have run had it started when ready.
func demand(line *berth.Line) berth.Interval {
	if line.Accepted && line.Start != nil && line.End != nil {
		return berth.Interval{Start: *line.Start, End: *line.End}
	}
	return berth.Interval{Start: line.Ready, End: line.Ready.Add(line.Duration)}
}

// profile is the mean number of PEs in each of equal pieces of the span.
type profile []float64

// add spreads npe PEs over an interval; pieces partly covered count partly.
// Cost: O(pieces covered).
func (p profile) add(span, iv berth.Interval, npe berth.Count) {
	width := float64(span.Length()) / float64(len(p))
	from := float64(iv.Start-span.Start) / width
	to := float64(iv.End-span.Start) / width
	for i := max(0, int(from)); i < len(p) && float64(i) < to; i++ {
		covered := min(to, float64(i+1)) - max(from, float64(i))
		p[i] += float64(npe) * covered
	}
}

// peak returns the highest value.
func (p profile) peak() float64 {
	var peak float64
	for _, v := range p {
		peak = max(peak, v)
	}
	return peak
}

// loads returns one profile for each class of waiting, of what was accepted.
func loads(lines iter.Seq[*berth.Line], span berth.Interval, pieces int) []profile {
	classes := make([]profile, len(waits))
	for i := range classes {
		classes[i] = make(profile, pieces)
	}
	for line := range lines {
		if isRequest(line) && line.Accepted && line.Start != nil {
			classes[waitClass(line.Start.Sub(line.Ready))].add(span, demand(line), line.NPE)
		}
	}
	return classes
}

// refusedLoad returns the profile of what was refused, as if each request had
// run from its ready time.
func refusedLoad(lines iter.Seq[*berth.Line], span berth.Interval, pieces int) profile {
	load := make(profile, pieces)
	for line := range lines {
		if isRequest(line) && !line.Accepted {
			load.add(span, demand(line), line.NPE)
		}
	}
	return load
}
