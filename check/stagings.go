package check

import (
	"slices"

	"github.com/berth-hpc/berth"
)

// host is what the lines of one id say together of a site at which they run.
type host struct {
	line       int32 // the first of them
	arrival    int64 // the latest
	start, end int64 // the earliest of each
	together   bool  // they all start then
}

// checkStagings checks the stagings of a group against its lines. Cost:
// O(members).
func (c *checker) checkStagings(g *group) {
	records := c.file.records
	hosts := map[string]host{} // by site
	before := map[startAt]bool{}
	refused, runs, waits := int32(-1), int32(-1), false
	for _, k := range g.unique {
		rec := &records[k]
		from, _, ok := rec.span()
		switch {
		case !rec.granted():
			refused = k
			continue
		case !ok:
			waits = true // for a start, or lacks one, which is told elsewhere
			continue
		}
		to := rec.ending()
		if rec.has(fEnd) {
			to = rec.end // as promised
		}
		arrival := int64(-berth.TimeLimit) // whenever it is
		if rec.kind == request {
			arrival = rec.arrival
		}
		h, seen := hosts[rec.site]
		if !seen {
			h = host{k, arrival, from, to, true}
		}
		for _, m := range rec.formers() {
			before[startAt{m.site, m.start}] = true
		}
		h.together = h.together && h.start == from
		h.arrival, h.start, h.end = max(h.arrival, arrival), min(h.start, from), min(h.end, to)
		hosts[rec.site] = h
		if runs < 0 {
			runs = k
		}
	}
	for _, k := range g.members {
		if records[k].kind != staging {
			continue
		}
		rec, id := &records[k], printable(records[k].id)
		h, here := hosts[rec.site]
		switch {
		case here:
			c.checkStaging(k, rec, &h, before[startAt{rec.site, rec.start}])
		case waits:
		case runs >= 0:
			c.add(Staging, []int32{k, runs}, 0, "staged to %s, where %s does not run", siteText(rec.site), id)
		case refused >= 0:
			c.add(Staging, []int32{k, refused}, 0, "staged for %s, which was refused", id)
		default:
			c.add1(Staging, int(k), "staged for %s, which is no request of the file", id)
		}
	}
}

// startAt is a start of a former place at a site.
type startAt struct {
	site  string
	start int64
}

// checkStaging compares a staging with what the lines at its site say together;
// begun says that it began with a former place.
func (c *checker) checkStaging(k int32, rec *record, h *host, begun bool) {
	id, end := printable(rec.id), rec.expectedEnd()
	switch {
	case rec.start < h.arrival:
		c.add(Staging, []int32{k, h.line}, 0, "staged from %d on, before %s arrives at %d", rec.start, id, h.arrival)
	case end <= h.start, h.together && (rec.start == h.start || begun) && end < h.end:
	default:
		c.add(Staging, []int32{k, h.line}, 0,
			"staged in [%d,%d), and %s has its PEs in [%d,%d): that must end by %d, or begin at %d and end before %d",
			rec.start, end, id, h.start, h.end, h.start, h.start, h.end)
	}
}

// expectedEnd returns when a staging was expected to end when its request got its
// place.
func (r *record) expectedEnd() int64 {
	if r.has(fPromisedEnd) {
		return r.past.promisedEnd
	}
	return r.end
}

// transfer returns how much of the duration of a request that runs data are moved
// in; 0 where nothing says so.
func (r *record) transfer() int64 {
	if r.past == nil || r.kind != request || !r.accepted {
		return 0
	}
	return r.past.transfer
}

// arrivalAt is when data were expected at a site.
type arrivalAt struct {
	site string
	at   int64
}

// transferAt is a staging to a site, as it was expected.
type transferAt struct {
	arrivalAt
	start int64
}

// checkTransfers checks that what PEs are held for at the beginning are transfers.
// Cost: O(members and their former places).
func (c *checker) checkTransfers(g *group) {
	records := c.file.records
	var all map[transferAt]bool
	var first map[arrivalAt]int64 // when the first of those expected then began
	var last map[startAt]int64    // when the last of those that begin then was expected
	for _, k := range g.unique {
		rec := &records[k]
		length := rec.transfer()
		if length <= 0 || !rec.has(fStart) {
			continue
		}
		if all == nil {
			all, first, last = map[transferAt]bool{}, map[arrivalAt]int64{}, map[startAt]int64{}
			for _, m := range g.members {
				if s := &records[m]; s.kind == staging {
					at := arrivalAt{s.site, s.expectedEnd()}
					if since, seen := first[at]; !seen || s.start < since {
						first[at] = s.start
					}
					all[transferAt{at, s.start}] = true
					began := startAt{s.site, s.start}
					if end, seen := last[began]; !seen || at.at > end {
						last[began] = at.at
					}
				}
			}
		}
		lasts := func(start int64) bool { return all[transferAt{arrivalAt{rec.site, start + length}, start}] }
		left := func(at int64) bool {
			since, is := first[arrivalAt{rec.site, at + length}]
			return is && since <= at
		}
		if lasts(rec.start) {
			continue
		}
		// What was on its way when a place was given up is not moved again, and what
		// is to be moved faster than was thought leaves as much time as promised.
		if moves := rec.formers(); len(moves) > 0 {
			end, begins := last[startAt{rec.site, rec.start}]
			if begins && end <= rec.start+length || slices.ContainsFunc(moves, func(m former) bool { return lasts(m.start) || left(m.at) }) {
				continue
			}
		}
		c.add(Staging, append([]int32{k}, g.stagings(records)...), 0, "its PEs are held for a transfer in [%d,%d), and no staging to %s is expected to take that time",
			rec.start, rec.start+length, siteText(rec.site))
	}
}

// stagings returns some stagings of a group, for a message.
func (g *group) stagings(records []record) []int32 {
	var some []int32
	for _, k := range g.members {
		if len(some) == fewListed {
			break
		}
		if records[k].kind == staging {
			some = append(some, k)
		}
	}
	return some
}
