package sim

import (
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
)

// move notes that an accepted part starts elsewhere or at another time than was
// promised.
func (r *recorder) move(id string, part int, to *berth.Allotment) {
	r.yield(id, part)
	of := r.of(id, part)
	if rare := of.some(); rare.promised == nil {
		promised := of.start
		rare.promised = &promised
	}
	r.put(of, to)
	delete(r.lacking, id)
}

// leave notes the place that a part has had.
func (r *recorder) leave(of *record) *berth.FormerPlace {
	at, rare := r.places[of.place], of.some()
	rare.movedFrom = append(rare.movedFrom, berth.FormerPlace{
		At: r.now, Site: at.site, Pool: at.pool, Start: of.start, End: of.end,
		NPE: of.npe, PEs: had(of, len(rare.stretches)),
	})
	return &rare.movedFrom[len(rare.movedFrom)-1]
}

// yield notes the place that a part gives up, and why: its data are expected too
// late, an outage has taken some of its PEs, or it yields to the outage or the
// overrun of this step.
func (r *recorder) yield(id string, part int) {
	of := r.of(id, part)
	place := r.leave(of)
	if r.late[id] && !r.holds {
		if expected := min(r.arrival(id), berth.TimeLimit-1); expected > place.Start {
			place.Staged = &expected
			return
		}
	}
	place.Cause = r.cause
	for _, outage := range r.lacking[id] {
		if r.lasts(outage) {
			place.Cause = outage
			place.PEs = had(of, slices.IndexFunc(of.seldom().stretches, func(s berth.Stretch) bool { return s.Cause == outage }))
		}
	}
}

// had returns the PEs that a part had before one of its stretches, filled up from
// those that it was promised.
func had(of *record, stretch int) berth.PESet {
	if stretch == 0 || of.pes.Empty() {
		return of.pes
	}
	pes := of.seldom().stretches[stretch-1].PEs
	return pes.Or(of.pes.Minus(pes).Lowest(of.npe - pes.Count()))
}

// resize notes that a reservation has other PEs from now on, or from its start on.
// If it loses some, that is for the outage of this step.
func (r *recorder) resize(id string, to *berth.Allotment) {
	of := r.of(id, 0)
	next := berth.Stretch{From: max(of.start, r.now), NPE: to.NPE, PEs: to.PEs}
	npe, pes, rare := of.npe, of.pes, of.some()
	if last := len(rare.stretches) - 1; last >= 0 {
		npe, pes = rare.stretches[last].NPE, rare.stretches[last].PEs
	}
	if next.NPE < npe || !pes.Minus(next.PEs).Empty() {
		next.Cause = r.cause
		if r.lacking == nil {
			r.lacking = map[string][]string{}
		}
		r.lacking[id] = append(r.lacking[id], next.Cause)
	}
	if rare.stretches = append(rare.stretches, next); next.NPE < of.npe {
		return
	}
	delete(r.lacking, id)
	if of.pes.Empty() && next.PEs.Empty() { // it is whole, and its PEs have no numbers yet
		rare.stretches = nil
	}
}

// lasts reports whether PEs of an outage are not back, or have come back now.
func (r *recorder) lasts(outage string) bool {
	return slices.ContainsFunc(r.outages, func(l berth.Line) bool {
		return l.ID == outage && (l.ActualEnd == nil || *l.ActualEnd == r.now)
	})
}

// outageID is the id of the lines of an outage.
func outageID(o *berth.Outage) string { return fmt.Sprintf("outage-%d", o.Number) }

// outage notes an outage; its end is where it was expected, if at all.
func (r *recorder) outage(o *berth.Outage) {
	from, pes := max(r.now, o.From), o.PEs
	line := berth.Line{
		ID: outageID(o), Kind: berth.KindOutage, Site: o.Resource.Site,
		Arrival: r.now, Ready: from, NPE: pes.Count(), Start: &from, PEs: pes,
	}
	if r.pools {
		line.Pool = o.Resource.Name
	}
	if o.Until < berth.Forever {
		line.End = &o.Until
	}
	r.outages = append(r.outages, line)
}

// back notes that PEs of an outage are back. If they are not all, the others have
// a line of the same id of their own.
func (r *recorder) back(o *berth.Outage) {
	id, at := outageID(o), r.now
	for i := len(r.outages) - 1; i >= 0; i-- { // mostly it is one of the last
		line := &r.outages[i]
		if line.ID != id || line.ActualEnd != nil {
			continue
		}
		rest := *line
		line.ActualEnd = &at
		if rest.PEs = rest.PEs.Minus(o.PEs); !rest.PEs.Empty() {
			rest.NPE = rest.PEs.Count()
			line.PEs, line.NPE = o.PEs, o.PEs.Count()
			r.outages = append(r.outages, rest)
		}
		return
	}
}

// disjoint returns the lines of outages and other bookings with each PE out of use
// once: what is out of use is the union of all outages, so a later one has lines for
// what no earlier one has. They stand in the order in which they were told, none of
// which begins before. Cost: O(n·m) for n outages, at most m of them not over at
// a time.
func disjoint(bookings []berth.Line) []berth.Line {
	var lines []berth.Line
	open := map[[2]string][]*berth.Line{} // by site and pool: those that were not over when the last was told
	for i := range bookings {
		line := &bookings[i]
		if line.Kind != berth.KindOutage {
			lines = append(lines, *line)
			continue
		}
		at := [2]string{line.Site, line.Pool}
		earlier := slices.DeleteFunc(open[at], func(o *berth.Line) bool { return over(o) <= line.Arrival })
		if !slices.ContainsFunc(earlier, func(o *berth.Line) bool { return !o.PEs.And(line.PEs).Empty() }) {
			lines = append(lines, *line) // as mostly
		} else {
			pieces := []berth.Line{*line}
			for _, o := range earlier {
				pieces = besides(pieces, o)
			}
			lines = append(lines, pieces...)
		}
		open[at] = append(earlier, line)
	}
	return lines
}

// besides returns what of the lines of one outage is not in another.
func besides(lines []berth.Line, other *berth.Line) []berth.Line {
	from, until := *other.Start, over(other)
	var left []berth.Line
	add := func(l berth.Line, pes berth.PESet, start, end berth.Time) {
		if l.PEs, l.NPE = pes, pes.Count(); pes.Empty() || start >= end {
			return
		}
		l.Ready, l.Start = start, &start
		if end < over(&l) {
			l.End, l.ActualEnd = &end, nil
		}
		left = append(left, l)
	}
	for i := range lines {
		l := lines[i]
		start, end := *l.Start, over(&l)
		common := l.PEs.And(other.PEs)
		if common.Empty() || start >= until || from >= end {
			left = append(left, l)
			continue
		}
		add(l, l.PEs.Minus(common), start, end)
		add(l, common, start, min(end, from))
		add(l, common, max(start, until), end)
	}
	return left
}

// over returns when the line of an outage ends, Forever if that is not known.
func over(l *berth.Line) berth.Time {
	switch {
	case l.ActualEnd != nil:
		return *l.ActualEnd
	case l.End != nil:
		return *l.End
	}
	return berth.Forever
}
