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
