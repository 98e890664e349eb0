package sim

import (
	"math/bits"
	"slices"

	"github.com/berth-hpc/berth"
)

// stage notes when the data of a promise are moved to each of its sites.
func (r *recorder) stage(id string, transfers []berth.Transfer) {
	if len(transfers) == 0 {
		delete(r.staged, id)
		return
	}
	if r.staged == nil {
		r.staged = map[string][]berth.Transfer{}
	}
	var pieces []berth.Transfer
	for i := range transfers {
		if r.shared {
			pieces = append(pieces, r.moved(r.staged[id], &transfers[i])...)
		}
		pieces = append(pieces, transfers[i])
	}
	r.staged[id] = pieces
}

// moved returns the pieces of a transfer that goes on at another rate: what was moved
// before is a piece.
func (r *recorder) moved(pieces []berth.Transfer, goesOn *berth.Transfer) []berth.Transfer {
	var before []berth.Transfer
	for _, p := range pieces {
		if p.Site == goesOn.Site {
			before = append(before, p)
		}
	}
	last := len(before) - 1
	if last < 0 || before[last].Start != goesOn.Start {
		return nil
	}
	p := &before[last]
	p.End, p.Kilobytes = min(p.End, max(r.now, p.Since)), p.Kilobytes-goesOn.Kilobytes
	if p.Kilobytes == 0 {
		before = before[:last]
	}
	return before
}

// expect notes when the data of a promise are expected as it gets its place.
func (r *recorder) expect(id string, transfers []berth.Transfer) {
	for i := range transfers {
		if r.expects == nil {
			r.expects = map[delivery]berth.Time{}
		}
		t := &transfers[i]
		r.expects[delivery{id, t.Site}] = min(t.End, berth.TimeLimit-1)
	}
}

// delivery is data on their way to a site.
type delivery struct{ id, site string }

// transfer notes for how much of their durations the parts of a request hold their
// PEs while its data are moved: for as long as the transfer is expected to take,
// or, if no variant fits that, for what is left of the longest one that fits. Of parts that end together the shorter
// ones hold theirs for longer, so the part counts that has least left.
func (r *recorder) transfer(id string, transfers []berth.Transfer) {
	r.expect(id, transfers)
	if !r.holds {
		return
	}
	request := r.request(id)
	for part := range request.Parts {
		of := r.of(id, part)
		if of.rare != nil {
			of.rare.transfer = 0
		}
		if request.StorageMB == 0 || request.IsJob() {
			continue
		}
		site := r.places[of.place].site
		expected := berth.Duration(0)
		if at := slices.IndexFunc(transfers, func(t berth.Transfer) bool { return t.Site == site }); at >= 0 {
			expected = transfers[at].End.Sub(transfers[at].Start)
		}
		least, exact := r.leftOf(of, &request.Parts[part], expected)
		for other := 0; other < len(request.Parts) && r.managed[site] && !exact; other++ {
			if beside := r.of(id, other); r.places[beside.place].site == site {
				left, is := r.leftOf(beside, &request.Parts[other], expected)
				if least = min(least, left); is {
					least, exact = expected, true
				}
			}
		}
		if least < of.duration {
			of.some().transfer = least
		}
	}
}

// leftOf returns what a variant of a part leaves of its duration: exactly what is expected, if one does, else the least.
func (r *recorder) leftOf(of *record, part *berth.Part, expected berth.Duration) (least berth.Duration, exact bool) {
	least = of.duration
	for _, v := range part.Variants {
		rest := of.duration - r.speed(of).Scale(v.Duration)
		if v.NPE != of.npe || rest < 0 {
			continue
		}
		if least = min(least, rest); rest == expected {
			return rest, true
		}
	}
	return least, false
}

// arrival returns when the data of a request are there: before all time if it has
// none.
func (r *recorder) arrival(id string) berth.Time {
	return last(r.staged[id])
}

// last returns when the last of transfers ends.
func last(transfers []berth.Transfer) berth.Time {
	at := -berth.Forever
	for i := range transfers {
		at = max(at, transfers[i].End)
	}
	return at
}

// stagings returns a line for each piece of the transfer of everything that kept
// its promise until it started, in the order of the requests.
func (r *recorder) stagings() []berth.Line {
	if len(r.staged) == 0 {
		return nil
	}
	var lines []berth.Line
	for request, first := range r.first {
		of, id := &r.records[first], r.id(request)
		if !of.is(accepted) {
			continue
		}
		before := len(lines)
		for _, s := range r.staged[id] {
			start, end := s.Start, min(s.End, berth.TimeLimit-1)
			line := berth.Line{ID: id, Kind: berth.KindStaging, Site: s.Site}
			if r.shared {
				if s, end = until(s, of); end > s.Since {
					start, line.Kilobytes = s.Since, s.Kilobytes
				} else if start = end; of.seldom().transfer == 0 || len(lines) > before {
					continue // else it tells for what PEs were held
				}
			}
			line.Arrival, line.Ready, line.Start, line.End, line.Duration = start, start, &start, &end, end.Sub(start)
			lines = append(lines, line)
		}
		mine := lines[before:]
		for k := range mine {
			if k+1 < len(mine) && mine[k+1].Site == mine[k].Site {
				continue // the last piece tells when all are there
			}
			if promised := r.expects[delivery{mine[k].ID, mine[k].Site}]; promised != *mine[k].End {
				mine[k].PromisedEnd = &promised // they came at another time, or what needed them was over
			}
		}
	}
	return lines
}

// until returns what is moved of a piece before what needs it is over, and when
// that ends: nothing where the link stands still.
func until(s berth.Transfer, of *record) (berth.Transfer, berth.Time) {
	over := of.end
	if of.is(ended) {
		over = of.actual
	}
	switch {
	case s.End >= berth.Forever:
		return s, s.Since
	case s.End <= over || over <= s.Since:
		return s, min(s.End, max(over, s.Since))
	}
	high, low := bits.Mul64(uint64(s.Kilobytes), uint64(over-s.Since))
	moved, _ := bits.Div64(high, low, uint64(s.End-s.Since)) // less than all, since it goes on
	s.Kilobytes = int64(moved)
	return s, over
}
