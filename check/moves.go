package check

import (
	"slices"
	"strconv"

	"github.com/berth-hpc/berth"
)

// maxReasonWork bounds how many lines are looked at for reasons of moves, about
// 0.3 s. In a file in which more lines have the ids of causes, only the first line of
// each further cause is looked at.
const maxReasonWork = 5_000_000

// formers returns the places that were given up.
func (r *record) formers() []former {
	if r.past == nil {
		return nil
	}
	return r.past.former
}

// replanned returns the places of a task under earlier plans of its workflow.
func (r *record) replanned() []former {
	if r.past == nil {
		return nil
	}
	return r.past.replanned
}

// made returns when a place became that of the line: the first one at the
// arrival, or later.
func (r *record) made(k int) int64 {
	switch {
	case k > 0:
		return r.past.former[k-1].at
	case r.kind == job && k < len(r.formers()):
		return r.past.former[0].at // a job has a place only at the moment of its start
	}
	return r.arrival
}

// checkFormers applies the rules for the places that a request has given up, but
// for that of the reason.
func (c *checker) checkFormers(i int, rec *record) {
	formers := rec.formers()
	switch {
	case len(formers) == 0 && !rec.has(fPromisedStart):
		return
	case len(formers) == 0:
		c.add1(Moved, i, "promised for %d, and moved_from does not say why it moved", rec.promised)
		return
	case !rec.has(fPromisedStart) && (rec.accepted || berth.Reason(rec.reason) != berth.Expired):
		c.add1(Moved, i, "its first place was for %d, and it has no promised start", formers[0].start)
	case rec.has(fPromisedStart) && rec.promised != formers[0].start:
		c.add1(Moved, i, "promised for %d, and its first place is for %d", rec.promised, formers[0].start)
	}
	for k := range formers {
		m := &formers[k]
		if m.at < rec.made(k) || m.at > m.end || m.start >= m.end {
			c.add1(Moved, i, "the former place [%d,%d) was given up at %d, which is not between %d and its end", m.start, m.end, m.at, rec.made(k))
		}
		if earliest := max(rec.ready, rec.arrival); m.start < earliest {
			c.add1(Window, i, "the start %d of a former place is before %d, when it is ready", m.start, earliest)
		}
		if !rec.asksFor(m.npe) {
			c.add1(Moved, i, "a former place has %d PEs, and the request asks for %d", m.npe, rec.npe)
		}
		c.checkPEs(i, m.place, m.npe, m.runs, m.named)
	}
}

// checkReplanned applies the rules for the places of a task under earlier plans.
func (c *checker) checkReplanned(i int, rec *record) {
	if len(rec.replanned()) > 0 && !rec.has(fWorkflow) {
		c.add1(Moved, i, "replanned, and it names no workflow")
	}
	made := rec.arrival
	for k := range rec.replanned() {
		m := &rec.past.replanned[k]
		if m.at < made || m.start >= m.end || m.npe < 1 {
			c.add1(Moved, i, "%d PEs in [%d,%d) were planned otherwise at %d; want PEs, and times from %d on", m.npe, m.start, m.end, m.at, made)
		}
		if made = m.at; m.place >= 0 {
			c.checkPEs(i, m.place, m.npe, m.runs, m.named)
		}
	}
}

// asksFor reports whether a request may have that number of PEs: the one that it
// has, or that of another variant.
func (r *record) asksFor(npe int64) bool {
	return npe == r.npe || slices.ContainsFunc(r.variants, func(v variant) bool { return v.npe == npe })
}

// verdict is what is known of the reason for which a place was given up.
type verdict uint8

const (
	unfounded verdict = iota
	founded
	byCount // founded if there were not enough PEs
)

// move is a place that the lines of an id have given up together.
type move struct {
	records []int32 // with that place, and after them those of the reason
	own     int     // how many of them are of the id
	k       int     // the index of the place
	ok      bool
}

// checkMoves looks for the reason of each move: the former place was in the way of
// an outage or an overrun, or its data were late. One reason is enough for all
// parts of a request. Cost: O(n log n) for n lines and former places.
func (c *checker) checkMoves() {
	var moves []move
	loads := loads{checker: c}
	records := c.file.records
	for i := range records {
		rec := &records[i]
		if rec.kind != request || len(rec.formers()) == 0 {
			continue
		}
		parts := c.groups.of(rec.id).requests(records)
		if first := slices.IndexFunc(parts, func(k int32) bool { return len(records[k].formers()) > 0 }); first < 0 || parts[first] != int32(i) {
			continue // it was looked at before, or is there twice
		}
		if other := slices.IndexFunc(parts, func(k int32) bool { return len(records[k].formers()) != len(rec.formers()) }); other >= 0 {
			c.add(Moved, slices.Clone(parts), 0, "of %d parts one has %d former places and another %d",
				len(parts), len(rec.formers()), len(records[parts[other]].formers()))
			continue
		}
		overrun := false
		for k := range rec.formers() {
			m, late := c.moveOf(parts, k, &loads, len(moves))
			moves = append(moves, m)
			c.checkEnd(parts, k, overrun)
			overrun = overrun || late
		}
		c.checkEnd(parts, len(rec.formers()), overrun)
	}
	loads.judge(func(which int) { moves[which].ok = true })
	for i := range moves {
		if m := &moves[i]; !m.ok {
			c.reportMove(m)
		}
	}
}

// checkEnd holds the end of former place k, or of the last place if there is no
// such, against the deadline, unless an overrun has delayed the promise before.
func (c *checker) checkEnd(parts []int32, k int, overrun bool) {
	for _, i := range parts {
		rec := &c.file.records[i]
		switch {
		case overrun, k == len(rec.formers()) && (!rec.accepted || !rec.has(fEnd)):
		case k < len(rec.formers()) && rec.past.former[k].end > rec.deadline:
			c.add1(Window, int(i), "the end %d of a former place is after the deadline %d", rec.past.former[k].end, rec.deadline)
		case k == len(rec.formers()) && rec.end > rec.deadline:
			c.add1(Window, int(i), "the end %d is after the deadline %d", rec.end, rec.deadline)
		}
	}
}

// moveOf looks for the reason of one move; overrun says that it is an overrun.
// Where PEs have no numbers, loads are asked whether they were too few.
func (c *checker) moveOf(parts []int32, k int, loads *loads, which int) (m move, overrun bool) {
	m = move{records: slices.Clone(parts), own: len(parts), k: k}
	records := c.file.records
	for _, i := range parts {
		rec := &records[i]
		if last := k == len(rec.formers())-1; last && !rec.accepted && berth.Reason(rec.reason) == berth.Expired {
			m.ok = true // a hold that was not confirmed
			continue
		}
		f := &rec.past.former[k]
		if n, wants := rec.wants(); f.late && f.staged > f.start && wants && n.storage > 0 {
			m.ok = true
		}
		for _, o := range c.linesOf(f.cause) {
			if records[o].id == rec.id {
				continue // it is no reason for itself
			}
			v := c.inTheWay(rec, f, k, &records[o])
			overrun = overrun || v != unfounded && records[o].kind != outage
			m.ok = m.ok || v == founded
			if v == byCount && !m.ok {
				loads.ask(parts, i, k, which)
			}
			if len(m.records) < fewListed {
				m.records = append(m.records, o)
			}
		}
	}
	return m, overrun
}

// linesOf returns the lines of a reason: those of its id, and of a job the pieces
// before it was stopped.
func (c *checker) linesOf(id string) []int32 {
	g := c.groups.of(id)
	if id == "" || g == nil {
		return nil
	}
	lines := g.members
	if c.file.records[lines[0]].kind == job {
		lines = slices.Clone(lines)
		for n := 1; ; n++ {
			piece := c.groups.of(id + "/" + strconv.Itoa(n))
			if piece == nil {
				break
			}
			lines = append(lines, piece.members...)
		}
	}
	if c.reasons += len(lines); c.reasons > maxReasonWork {
		return lines[:1]
	}
	return lines
}

// inTheWay reports whether former place k of a line was in the way of line o: an
// outage that began, or was announced, while the place was the line's, or an overrun when the place
// was given up.
func (c *checker) inTheWay(rec *record, f *former, k int, o *record) verdict {
	if o.place != f.place || !o.granted() || !o.has(fStart) {
		return unfounded
	}
	var from, until int64
	switch {
	case o.kind == outage:
		from, until = o.start, forever
		if o.has(fEnd) {
			until = o.end
		}
		told := from
		if o.has(fArrival) {
			told = min(told, o.arrival)
		}
		if told < rec.made(k) || told > f.at || o.has(fActualEnd) && o.actual < f.at {
			return unfounded
		}
	case o.has(fEnd) && o.has(fActualEnd) && o.end <= f.at && f.at <= o.actual:
		from, until = o.end, max(o.actual, o.latest())
	default:
		return unfounded
	}
	runs, named := o.holds(f.at)
	switch {
	case until <= max(f.start, f.at) || from >= f.end:
		return unfounded
	case !f.named:
		return byCount
	case !named:
		return founded
	}
	if _, shared, _ := common(runs, f.runs); shared {
		return founded
	}
	return unfounded
}

// latest returns until when a line might have held its PEs at most.
func (r *record) latest() int64 {
	if r.has(fLimit) {
		return max(r.end, r.past.limit)
	}
	return r.end
}

func (c *checker) reportMove(m *move) {
	rec := &c.file.records[m.records[0]]
	f := &rec.past.former[m.k]
	const what = "it gave up [%d,%d) at %d"
	own, all := m.records[:m.own], m.records
	switch {
	case f.late:
		c.add(Moved, own, 0, what+" for data expected at %d; that is no reason before its start, or without storage_mb", f.start, f.end, f.at, f.staged)
	case f.cause == "":
		c.add(Moved, own, 0, what+" without a cause", f.start, f.end, f.at)
	case len(all) == m.own:
		c.add(Moved, own, 0, what+" for %s, which is not in the file", f.start, f.end, f.at, printable(f.cause))
	default:
		c.add(Moved, all, 0, what+" for %s, which was not in its way", f.start, f.end, f.at, printable(f.cause))
	}
}
