package service

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// losses of PEs: which outages took those that a promise lost, so that a schedule says why.

// explain gives the losses of PEs their causes. What was lost before the start is told at the start: by outages that take PEs at any time of the
// promise, or did while they were announced.
func (h *heldPast) explain(core *Core) {
	lines := map[berth.ResourceID][]berth.Line{}
	for _, o := range slices.Concat(berth.DisjointOutages(h.outages), h.called) {
		at := berth.PoolID(o.Site, o.Pool)
		lines[at] = append(lines[at], o)
	}
	core.cards.Scan(func(k *card) bool {
		if k.promise == nil || k.gaveBack(h) || len(h.by[k.id]) != len(k.promise.Allotments) {
			return true
		}
		_, ended := h.over[k.id] // since the history begins
		for part := range k.promise.Allotments {
			of, a := &h.by[k.id][part], &k.promise.Allotments[part]
			if len(k.promise.Allotments) == 1 && (k.end == "" || ended) {
				of.npe = max(of.npe, a.NPE+k.promise.Missing)
			}
			of.explain(&losing{at: a.Interval(), arrival: k.request.Arrival, lines: lines[a.Resource]})
			for _, s := range of.stretches {
				h.causes[s.Cause] = true
			}
		}
		return true
	})
}

// losing is one part of a promise while its losses are explained.
type losing struct {
	at      berth.Interval
	arrival berth.Time
	lines   []berth.Line        // of its pool, with each PE out of use once
	taken   map[int]berth.Count // by line: what it took of PEs without numbers
}

// explain makes one change of what was recorded until the start, and gives each loss its causes.
func (of *held) explain(l *losing) {
	rest := of.stretches
	if of.first < of.npe {
		rest = slices.Insert(rest, 0, berth.Stretch{From: l.at.Start, NPE: of.first, PEs: of.pes})
		of.pes = berth.PESet{}
	}
	began := 0
	for began < len(rest) && rest[began].From <= l.at.Start {
		began++
	}
	of.stretches = nil
	if began > 0 && rest[began-1].NPE >= of.npe {
		of.pes, rest = rest[began-1].PEs, rest[began:]
	} else if began > 0 {
		rest = rest[began-1:]
		rest[0].From = l.at.Start
	}
	for _, next := range rest {
		npe, pes := of.last()
		list, ok := l.named(npe, pes, next)
		if !ok {
			of.unname() // it had PEs that it was never given
			list = l.counted(npe, next)
		}
		of.stretches = append(of.stretches, list...)
	}
}

// unname takes the numbers from the PEs that a part had last.
func (of *held) unname() {
	if last := len(of.stretches) - 1; last >= 0 {
		of.stretches[last].PEs = berth.PESet{}
	} else {
		of.pes = berth.PESet{}
	}
}

// named returns the changes from some PEs to others, one for each outage that takes some; ok is false if some have no numbers, or no outage
// takes some of those that are lost.
func (l *losing) named(npe berth.Count, pes berth.PESet, next berth.Stretch) (list []berth.Stretch, ok bool) {
	if npe > 0 && pes.Empty() || next.NPE > 0 && next.PEs.Empty() {
		return nil, false
	}
	lost := pes.Minus(next.PEs)
	for _, i := range l.takers(next.From) {
		took := &l.lines[i]
		if lost.And(took.PEs).Empty() {
			continue
		}
		lost, pes = lost.Minus(took.PEs), pes.Minus(lost.And(took.PEs))
		list = appendLoss(list, berth.Stretch{From: next.From, NPE: pes.Count(), PEs: pes, Cause: took.ID})
	}
	return becoming(list, next), lost.Empty()
}

// counted is named where the PEs have no numbers.
func (l *losing) counted(npe berth.Count, next berth.Stretch) (list []berth.Stretch) {
	if l.taken == nil {
		l.taken = map[int]berth.Count{}
	}
	for _, i := range l.takers(next.From) {
		if took := min(npe-next.NPE, l.lines[i].NPE-l.taken[i]); took > 0 {
			npe -= took
			l.taken[i] += took
			list = appendLoss(list, berth.Stretch{From: next.From, NPE: npe, Cause: l.lines[i].ID})
		}
	}
	return becoming(list, next)
}

// appendLoss appends a loss, or lets the one before be greater if it has the same cause.
func appendLoss(list []berth.Stretch, loss berth.Stretch) []berth.Stretch {
	if last := len(list) - 1; last >= 0 && list[last].Cause == loss.Cause {
		list = list[:last]
	}
	return append(list, loss)
}

// becoming has losses end with the PEs that there are then.
func becoming(list []berth.Stretch, next berth.Stretch) []berth.Stretch {
	if last := len(list) - 1; last >= 0 {
		next.Cause = list[last].Cause
		list = list[:last]
	}
	return append(list, next)
}

// takers returns the lines of outages that can have taken PEs at some time: those that last, those that were over, and those that
// were announced, for which a site does not give what it is asked for anew.
func (l *losing) takers(from berth.Time) []int {
	var last, over, ahead []int
	for i := range l.lines {
		o := &l.lines[i]
		since := from
		if from == l.at.Start {
			since = l.arrival
		}
		switch {
		case *o.Start >= l.at.End || o.End != nil && *o.End <= from || o.ActualEnd != nil && *o.ActualEnd < since:
		case *o.Start > from && from != l.at.Start:
			if o.Arrival <= from {
				ahead = append(ahead, i)
			}
		case o.ActualEnd != nil && *o.ActualEnd <= from:
			over = append(over, i)
		default:
			last = append(last, i)
		}
	}
	return slices.Concat(last, over, ahead)
}
