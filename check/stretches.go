package check

// stretches returns the changes of the PEs of a request that runs.
func (r *record) stretches() []stretch {
	if r.past == nil || r.kind != request || !r.accepted || !r.has(fStart) {
		return nil
	}
	return r.past.stretches
}

// holds returns the PEs that a line has at a time, if they are named. Cost:
// O(stretches).
func (r *record) holds(at int64) (runs []run, named bool) {
	runs, named = r.runs, r.has(fPEs)
	stretches := r.stretches()
	for k := range stretches {
		if s := &stretches[k]; s.from <= at {
			runs, named = s.runs, s.named
		}
	}
	return runs, named
}

// checkStretches applies the rules for the changes of the PEs of a request, but
// for those of the reasons.
func (c *checker) checkStretches(i int, rec *record) {
	stretches := rec.stretches()
	after := rec.start
	_, to, ends := rec.span()
	for k := range stretches {
		s := &stretches[k]
		if s.from < after || ends && s.from > to {
			c.add1(Resized, i, "its PEs change at %d, which is not between %d and the end %d", s.from, after, to)
		}
		if after = max(after, s.from); s.npe < 0 || s.npe > rec.npe {
			c.add1(Resized, i, "%d PEs from %d on, of %d that were promised", s.npe, s.from, rec.npe)
		}
		if rec.place >= 0 {
			c.checkPEs(i, rec.place, s.npe, s.runs, s.named)
		}
	}
}

// checkLosses looks for the outages that have taken PEs from what runs on. Cost:
// the lines of the outages named, once for each stretch that names them, and
// O(s log r) for lists of s runs that are compared with those of outages.
func (c *checker) checkLosses() {
	for i := range c.file.records {
		rec := &c.file.records[i]
		if stretches := rec.stretches(); len(stretches) > 0 && rec.place >= 0 {
			c.checkLossesOf(int32(i), rec, stretches)
		}
	}
}

func (c *checker) checkLossesOf(i int32, rec *record, stretches []stretch) {
	runs, named, npe := rec.runs, rec.has(fPEs), rec.npe
	fallen := int64(0) // PEs of the outages so far
	counted := map[string]bool{}
	_, to, ends := rec.span()
	for k := range stretches {
		s := &stretches[k]
		outages := c.outagesAt(rec, s)
		lines := append([]int32{i}, outages...)
		if !counted[s.cause] {
			counted[s.cause] = true
			for _, o := range outages {
				fallen += c.file.records[o].npe
			}
		}
		passing := k+1 < len(stretches) && stretches[k+1].from <= s.from || ends && s.from >= to
		switch {
		case named && (s.named || s.npe == 0):
			lost := minus(runs, s.runs)
			for _, o := range outages {
				if c.file.records[o].has(fPEs) {
					lost = minus(lost, c.file.records[o].runs)
				} else {
					lost = nil
				}
			}
			if len(lost) > 0 {
				c.add(Resized, lines, 0, "it loses PE %d at %d, and no outage takes it then", lost[0].lo, s.from)
			}
		case s.npe < npe && len(outages) == 0:
			c.add(Resized, lines, 0, "%d PEs from %d on and %d before, and no outage takes some then", s.npe, s.from, npe)
		}
		if !named && !passing && rec.npe-s.npe > fallen && (s.from != rec.start || rec.npe-s.npe > fallen+c.displacedTo(rec)) {
			c.add(Resized, lines, 0, "it lacks %d PEs from %d on, and outages take %d", rec.npe-s.npe, s.from, fallen)
		}
		named = s.named || named && s.npe == 0
		runs, npe = s.runs, s.npe
	}
}

// displacedTo returns how many PEs more than the pool has are promised at most at a time of a line: as many
// of its PEs others may have that outages have displaced to there. Cost: O(n) for n lines, and O(m²) for m
// at its time; it is 0 once that has been too much work.
func (c *checker) displacedTo(rec *record) int64 {
	if !rec.has(fEnd) || !c.places[rec.place].known {
		return 0
	}
	var beside []*record
	for i := range c.file.records[:c.file.lines] {
		if c.displaced++; c.displaced > maxPairWork {
			return 0
		}
		o := &c.file.records[i]
		if o != rec && o.kind == request && o.accepted && o.place == rec.place && o.has(fStart) && o.has(fEnd) && o.start < rec.end && rec.start < o.end {
			beside = append(beside, o)
		}
	}
	most := int64(0)
	for i := range beside {
		at, promised := max(rec.start, beside[i].start), rec.npe
		for _, o := range beside {
			if o.start <= at && at < o.end {
				promised += o.npe
			}
		}
		if c.displaced += len(beside); c.displaced > maxPairWork {
			return 0
		}
		most = max(most, promised-c.places[rec.place].size)
	}
	return most
}

// outagesAt returns the lines of the outage that takes PEs of a line when a stretch
// of it begins; none if it is not there, lasts at another time or was over before. What was lost
// before the start is told at the start, when the outage may be over and the PEs may be another's, or
// it may begin later while the line lasts. What is lost later may be lost to one that was announced by
// then and begins while the line lasts: a site that is asked anew gives nothing that it cannot give to the end.
func (c *checker) outagesAt(rec *record, s *stretch) []int32 {
	var lines []int32
	since, last := s.from, s.from
	if rec.has(fEnd) {
		last = max(last, rec.end-1)
	}
	if s.from == rec.start {
		since = rec.arrival
	}
	for _, k := range c.linesOf(s.cause) {
		o := &c.file.records[k]
		if o.kind == outage && o.place == rec.place && o.start <= last && (o.start <= s.from || s.from == rec.start || o.has(fArrival) && o.arrival <= s.from) && (!o.has(fEnd) || o.end > s.from) && (!o.has(fActualEnd) || o.actual >= since) {
			lines = append(lines, k)
		}
	}
	return lines
}

// minus returns the PEs of a list that are not in another one. Cost: O(r log l)
// for lists of r and l runs.
func minus(list, other []run) []run {
	var left []run
	for _, r := range list {
		for r.lo < r.hi {
			other, _ = behind(other, r.lo)
			if len(other) == 0 || other[0].lo >= r.hi {
				left = append(left, r)
				break
			}
			if r.lo < other[0].lo {
				left = append(left, run{r.lo, other[0].lo})
			}
			r.lo = other[0].hi
		}
	}
	return left
}

// addStretches adds a record for each stretch, so that the PEs of each time are
// taken then.
func (c *checker) addStretches() {
	for i := range c.file.lines {
		rec := c.file.records[i] // a copy, since records are added
		stretches := rec.stretches()
		if _, _, ends := rec.span(); len(stretches) == 0 || !ends {
			continue
		}
		from, to, _ := rec.span()
		for k := range stretches {
			s := &stretches[k]
			from = max(from, s.from) // whatever their order is
			piece := record{
				id: rec.id, part: rec.part, site: rec.site, pool: rec.pool, line: rec.line, place: rec.place, kind: booking,
				start: from, end: to, npe: s.npe, runs: s.runs, present: 1<<fStart | 1<<fEnd,
			}
			if k+1 < len(stretches) {
				piece.end = min(to, stretches[k+1].from)
			}
			if s.named {
				piece.present |= 1 << fPEs
			}
			c.file.records = append(c.file.records, piece)
		}
	}
}
