package service

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
)

// past PEs: which PEs a promise had at which time, and what was out of use when. The core forgets both,
// and so a schedule is told by them beside the cards.

// held is the PEs of one part of a promise over time: those that it was given at its place, and from some
// times on others. What changed before it began is told at its start.
type held struct {
	npe       berth.Count
	first     berth.Count // what it had at its place at first: less than npe if it lacked some
	pes       berth.PESet
	stretches []berth.Stretch // as they were recorded, without causes
}

// heldPast follows records for the schedule that they tell.
type heldPast struct {
	by      map[string][]held // by reservation, by part
	start   map[string]berth.Time
	idle    map[string]bool       // by reservation: it has not begun
	fails   map[string]berth.Time // by reservation: when an announced outage will end it
	over    map[string]berth.Time // when it gave its PEs back, which may have been noticed later
	now     berth.Time            // of the last change
	outages []berth.Line
	called  []berth.Line // outages that were called off before they began, or were over before the history begins
	causes  map[string]bool
}

// newHeldPast begins where a core is, which may be nil. What was before is not kept: outages that have begun are told from there on, and
// what promises lack is told at their start.
func newHeldPast(core *Core) *heldPast {
	h := &heldPast{by: map[string][]held{}, start: map[string]berth.Time{}, idle: map[string]bool{}, over: map[string]berth.Time{}, fails: map[string]berth.Time{}, causes: map[string]bool{}}
	if core == nil {
		return h
	}
	h.now = core.engine.Now()
	for i := range core.notes.list {
		note := &core.notes.list[i]
		if h.outage(&note.Outage, h.now); note.Ended != 0 {
			off := h.outages[len(h.outages)-1]
			off.Start = new(max(note.From, note.Ended))
			off.Arrival, off.Ready, off.ActualEnd = min(off.Arrival, *off.Start), *off.Start, off.Start
			if off.End != nil && *off.End <= *off.Start {
				off.End = nil
			}
			h.called, h.outages = append(h.called, off), h.outages[:len(h.outages)-1]
		}
	}
	unknown := map[string]bool{}
	core.cards.Scan(func(k *card) bool {
		if k.promise == nil {
			return true
		}
		h.place(k.id, k.promise.Allotments)
		begun := k.end == Finished || k.promise.State == berth.Active
		if begun {
			delete(h.idle, k.id)
		}
		of, missing := h.by[k.id], k.promise.Missing > 0 && len(k.promise.Allotments) == 1
		for part := range of {
			a := &k.promise.Allotments[part]
			if missing {
				of[part].npe += k.promise.Missing
				of[part].first = of[part].npe
			}
			if missing && k.end == "" {
				of[part].stretches = []berth.Stretch{{From: a.Start, NPE: a.NPE}}
			}
			if missing || begun && k.promise.Generation > 1 { // since when it has these is not kept
				of[part].pes, unknown[k.id] = berth.PESet{}, begun
				if k.end == "" {
					of[part].stretches = append(of[part].stretches, berth.Stretch{From: max(a.Start, h.now), NPE: a.NPE, PEs: a.PEs})
				}
			}
		}
		return true
	})
	h.fit(core, unknown)
	return h
}

// follow takes what a record changes.
func (h *heldPast) follow(p *past) {
	now := p.at
	for i := range p.changes {
		x := &p.changes[i]
		if _, is := ends[x.Kind]; is {
			h.over[x.ID] = now
		}
		switch x.Kind {
		case change.Advanced:
			now = min(x.Now, p.at)
			h.now = now
		case change.Accepted:
			h.place(x.Reservation.Request.ID, x.Reservation.Allotments)
		case change.Moved, change.Modified, change.Named:
			h.place(x.ID, x.Moved)
		case change.Started:
			h.began(x.ID, now, x.PEs)
		case change.Resized:
			for part := range x.Moved {
				h.resized(x.ID, part, now, &x.Moved[part])
			}
		case change.WentDown:
			h.outage(x.Outage, now)
		case change.CameUp:
			h.back(x.Outage, now)
		}
	}
}

// place notes that a promise has a place.
func (h *heldPast) place(id string, at []berth.Allotment) {
	if len(at) == 0 {
		return
	}
	of := make([]held, len(at))
	for part := range at {
		of[part] = held{npe: at[part].NPE, first: at[part].NPE, pes: at[part].PEs}
	}
	h.by[id], h.start[id], h.idle[id] = of, at[0].Start, true
	delete(h.over, id)
}

// began notes which PEs a promise got when it began, where it had no numbers before. That is after its
// start if it was held until then.
func (h *heldPast) began(id string, now berth.Time, pes []berth.PESet) {
	delete(h.idle, id)
	of, from := h.by[id], max(h.start[id], now)
	for part := range min(len(of), len(pes)) {
		if pes[part].Empty() {
			continue
		}
		npe, _ := of[part].last()
		of[part].stretches = append(of[part].stretches, berth.Stretch{From: from, NPE: npe, PEs: pes[part]})
	}
}

// resized notes that a promise has other PEs from now on, or from its start on.
func (h *heldPast) resized(id string, part int, now berth.Time, to *berth.Allotment) {
	if part >= len(h.by[id]) {
		return
	}
	of := &h.by[id][part]
	of.npe = max(of.npe, to.NPE)
	next := berth.Stretch{From: max(h.start[id], now), NPE: to.NPE, PEs: to.PEs}
	if npe, pes := of.last(); h.idle[id] && next.From > h.start[id] && (len(of.stretches) == 0 || of.stretches[len(of.stretches)-1].From <= h.start[id]) {
		// It has not begun, although its start is past: it has never had what it loses.
		kept := berth.Stretch{From: h.start[id], NPE: min(npe, to.NPE)}
		if !pes.Empty() {
			kept.PEs = pes.And(to.PEs)
			kept.NPE = kept.PEs.Count()
		}
		if kept.NPE < npe {
			of.stretches = append(of.stretches, kept)
		}
	}
	of.stretches = append(of.stretches, next)
}

func outageLine(o *berth.Outage) string { return fmt.Sprintf("outage-%d", o.Number) }

// outage notes an outage; its end is where it was expected, if at all.
func (h *heldPast) outage(o *berth.Outage, now berth.Time) {
	from := max(now, o.From)
	line := berth.Line{
		ID: outageLine(o), Kind: berth.KindOutage, Site: o.Resource.Site, Pool: o.Resource.Name,
		Arrival: now, Ready: from, NPE: o.PEs.Count(), Start: &from, PEs: o.PEs,
	}
	if o.Until < berth.Forever {
		line.End = &o.Until
	}
	h.outages = append(h.outages, line)
}

// back notes that PEs of an outage are back. If they are not all, the others have a line of their own.
func (h *heldPast) back(o *berth.Outage, now berth.Time) {
	id := outageLine(o)
	for i := len(h.outages) - 1; i >= 0; i-- { // mostly it is one of the last
		line := &h.outages[i]
		if line.ID != id || line.ActualEnd != nil {
			continue
		}
		rest := *line
		line.ActualEnd = &now
		if rest.PEs = rest.PEs.Minus(o.PEs); !rest.PEs.Empty() {
			rest.NPE = rest.PEs.Count()
			line.PEs, line.NPE = o.PEs, o.PEs.Count()
			h.outages = slices.Insert(h.outages, i+1, rest) // they stand in the order in which they began
		}
		if off := h.outages[i]; now <= *off.Start {
			off.ActualEnd = off.Start
			h.called, h.outages = append(h.called, off), slices.Delete(h.outages, i, i+1)
		}
		return
	}
}

// tell puts into the line of a part which PEs it had when, until its end.
func (h *heldPast) tell(line *berth.Line, id string, part int) {
	if part >= len(h.by[id]) {
		return
	}
	of, end := &h.by[id][part], *line.End
	if line.ActualEnd != nil {
		end = min(end, *line.ActualEnd)
	}
	line.NPE, line.PEs = of.npe, of.pes
	for _, s := range of.stretches {
		if s.From < end {
			line.Stretches = append(line.Stretches, s)
		}
	}
}

// expect gives all losses their causes, and notes what announced outages will do to what runs when they begin: they take their PEs from what
// outlives that (see engine.Down), and end everything else.
func (h *heldPast) expect(core *Core) {
	var announced []*berth.Line
	for i := range h.outages {
		if o := &h.outages[i]; *o.Start > h.now && o.ActualEnd == nil {
			announced = append(announced, o)
		}
	}
	slices.SortStableFunc(announced, func(a, b *berth.Line) int { return cmp.Compare(*a.Start, *b.Start) })
	managed := map[string]bool{}
	for i := range core.config.Sites {
		managed[core.config.Sites[i].Name] = core.config.Sites[i].Managed
	}
	var others []*card // that fail
	core.cards.Scan(func(k *card) bool {
		switch {
		case k.promise == nil || k.end != "" || k.promise.State != berth.Active || len(h.by[k.id]) != len(k.promise.Allotments):
		case !k.request.IsJob() && len(k.promise.Allotments) == 1 && managed[k.promise.Allotments[0].Resource.Site]:
			h.takeLater(k, announced)
		default:
			others = append(others, k)
		}
		return true
	})
	h.explain(core)
	for _, k := range others {
		for part := range k.promise.Allotments {
			_, pes := h.by[k.id][part].last()
			for _, o := range announced {
				if took, is := h.fails[k.id]; h.causes[o.ID] && takes(o, &k.promise.Allotments[part], pes) && (!is || *o.Start < took) {
					h.fails[k.id] = *o.Start
				}
			}
		}
	}
}

// takeLater has announced outages take PEs of what runs when they begin.
func (h *heldPast) takeLater(k *card, announced []*berth.Line) {
	of := &h.by[k.id][0]
	for _, o := range announced {
		if npe, pes := of.last(); takes(o, &k.promise.Allotments[0], pes) {
			of.stretches = append(of.stretches, berth.Stretch{From: *o.Start, NPE: npe - pes.Overlap(o.PEs), PEs: pes.Minus(o.PEs)})
		}
	}
}

// takes reports whether an outage takes some PEs of what is somewhere before that ends.
func takes(o *berth.Line, at *berth.Allotment, pes berth.PESet) bool {
	return o.Site == at.Resource.Site && o.Pool == at.Resource.Name && *o.Start < at.End && pes.Overlap(o.PEs) > 0
}

// last returns the PEs that a part has in the end.
func (of *held) last() (berth.Count, berth.PESet) {
	if last := len(of.stretches) - 1; last >= 0 {
		return of.stretches[last].NPE, of.stretches[last].PEs
	}
	return of.npe, of.pes
}

// told returns the lines of the outages: those that have begun, and those for which a promise has given up PEs.
func (h *heldPast) told() []berth.Line {
	begun := map[string]bool{}
	for i := range h.outages {
		if o := &h.outages[i]; *o.Start <= h.now {
			begun[o.ID] = true
		}
	}
	lines := append(berth.DisjointOutages(h.outages), h.called...)
	return slices.DeleteFunc(lines, func(o berth.Line) bool { return !begun[o.ID] && !h.causes[o.ID] })
}
