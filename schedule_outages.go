package berth

import "slices"

// DisjointOutages returns the lines of outages and other bookings with each PE out of use
// once: what is out of use is the union of all outages, so a later one has lines for
// what no earlier one has. They stand in the order in which they were told, none of
// which begins before. Cost: O(n·m) for n outages, at most m of them not over at
// a time.
func DisjointOutages(bookings []Line) []Line {
	var lines []Line
	open := map[[2]string][]*Line{} // by site and pool: those that were not over when the last was told
	for i := range bookings {
		line := &bookings[i]
		if line.Kind != KindOutage {
			lines = append(lines, *line)
			continue
		}
		at := [2]string{line.Site, line.Pool}
		earlier := slices.DeleteFunc(open[at], func(o *Line) bool { return overAt(o) <= line.Arrival })
		if !slices.ContainsFunc(earlier, func(o *Line) bool { return !o.PEs.And(line.PEs).Empty() }) {
			lines = append(lines, *line) // as mostly
		} else {
			pieces := []Line{*line}
			for _, o := range earlier {
				pieces = besideOutage(pieces, o)
			}
			lines = append(lines, pieces...)
		}
		open[at] = append(earlier, line)
	}
	return lines
}

// besideOutage returns what of the lines of one outage is not in another.
func besideOutage(lines []Line, other *Line) []Line {
	from, until := *other.Start, overAt(other)
	var left []Line
	add := func(l Line, pes PESet, start, end Time) {
		if l.PEs, l.NPE = pes, pes.Count(); pes.Empty() || start >= end {
			return
		}
		l.Ready, l.Start = start, &start
		if end < overAt(&l) {
			l.End, l.ActualEnd = &end, nil
		}
		left = append(left, l)
	}
	for i := range lines {
		l := lines[i]
		start, end := *l.Start, overAt(&l)
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

// overAt returns when the line of an outage ends, Forever if that is not known.
func overAt(l *Line) Time {
	switch {
	case l.ActualEnd != nil:
		return *l.ActualEnd
	case l.End != nil:
		return *l.End
	}
	return Forever
}
