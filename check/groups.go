package check

import (
	"cmp"
	"slices"
)

// group is all the lines with one id.
type group struct {
	members []int32 // ascending
	unique  []int32 // those of a kind whose id and part must be unique
	// What comes after the group waits for last, the line that ends last, and
	// cannot be if there is a refused line. -1 if there is none.
	last, refused int32
	staged        bool // there is a staging among the members
}

// groups finds lines by their ids.
type groups struct {
	records []record
	// Nearly every id stands on one line only. So groups are a table of first
	// lines and a chain of further ones, and only the rest is gathered.
	first  map[string]int32
	shared map[string]*group // of the ids of several lines
}

func newGroups(records []record) groups {
	gs := groups{records: records, first: make(map[string]int32, len(records))}
	for i := range records {
		id := records[i].id
		k, seen := gs.first[id]
		if !seen {
			gs.first[id] = int32(i)
			continue
		}
		g := gs.shared[id]
		if g == nil {
			if gs.shared == nil {
				gs.shared = map[string]*group{}
			}
			g = &group{members: []int32{k}}
			gs.shared[id] = g
		}
		g.members = append(g.members, int32(i))
	}
	for _, g := range gs.shared {
		g.summarise(records)
	}
	return gs
}

// of returns the lines of an id, nil if there are none.
func (gs *groups) of(id string) *group {
	if g := gs.shared[id]; g != nil {
		return g
	}
	k, seen := gs.first[id]
	if !seen {
		return nil
	}
	g := &group{members: []int32{k}}
	g.summarise(gs.records)
	return g
}

// checkGroups applies the rules that relate lines by their ids.
func (c *checker) checkGroups() {
	records := c.file.records
	c.groups = newGroups(records)
	for i := range records {
		id := records[i].id
		g := c.groups.shared[id]
		if g == nil && (records[i].kind == staging || records[i].transfer() > 0) {
			g = c.groups.of(id)
		}
		if g != nil && g.members[0] == int32(i) {
			c.checkGroup(g)
			if g.staged {
				c.checkStagings(g)
			}
			c.checkTransfers(g)
		}
	}
	c.checkLonger()
	for i := range records {
		for _, id := range records[i].after {
			c.checkAfter(i, id, c.groups.of(id))
		}
	}
}

func (g *group) summarise(records []record) {
	g.last, g.refused = -1, -1
	for _, k := range g.members {
		rec := &records[k]
		if rec.kind != outage && rec.kind != staging {
			g.unique = append(g.unique, k)
		}
		g.staged = g.staged || rec.kind == staging
		if !rec.granted() {
			if g.refused < 0 {
				g.refused = k
			}
			continue
		}
		if g.last < 0 || rec.ending() > records[g.last].ending() {
			g.last = k
		}
	}
}

// requests returns the request lines of a group, the first of each part.
func (g *group) requests(records []record) []int32 {
	var parts []int32
	seen := make(map[string]bool, len(g.unique))
	for _, k := range g.unique {
		if rec := &records[k]; rec.kind == request && !seen[rec.part] {
			seen[rec.part] = true
			parts = append(parts, k)
		}
	}
	return parts
}

// ending returns when the line ends, for what comes after it: a time that nothing starts
// before, where it does not say.
func (r *record) ending() int64 {
	switch {
	case r.has(fActualEnd):
		return r.actual
	case r.has(fEnd):
		return r.end
	case r.kind == outage:
		return forever
	}
	return -forever
}

// checkGroup looks for duplicates and for parts that do not agree.
func (c *checker) checkGroup(g *group) {
	records := c.file.records
	byPart := slices.Clone(g.unique)
	slices.SortStableFunc(byPart, func(a, b int32) int { return cmp.Compare(records[a].part, records[b].part) })
	var parts []int32 // the first line of each part
	for len(byPart) > 0 {
		part := records[byPart[0]].part
		n := 1
		for n < len(byPart) && records[byPart[n]].part == part {
			n++
		}
		if n > 1 {
			what := "this id"
			if part != "" {
				what = "this id and part " + printable(part)
			}
			c.add(Duplicate, slices.Clone(byPart[:n]), 0, "%d lines have %s", n, what)
		}
		parts = append(parts, byPart[0])
		byPart = byPart[n:]
	}
	slices.Sort(parts)
	for _, k := range parts {
		a, b := &records[parts[0]], &records[k]
		switch {
		case a.granted() != b.granted():
			c.add(Parts, slices.Clone(parts), 0, "of %d parts some are accepted and others refused", len(parts))
			return
		case a.has(fStart) && b.has(fStart) && a.start != b.start:
			c.add(Parts, slices.Clone(parts), 0, "of %d parts one starts at %d and another at %d", len(parts), a.start, b.start)
			return
		}
	}
}

// checkAfter checks that record i comes after the group g named id.
func (c *checker) checkAfter(i int, id string, g *group) {
	records := c.file.records
	rec := &records[i]
	switch {
	case g == nil:
		c.add1(Precedence, i, "it comes after %s, which is not in the file", printable(id))
		last := &c.violations[len(c.violations)-1]
		last.IDs = append(last.IDs, id)
	case !rec.granted():
		// What is refused starts at no time.
	case g.refused >= 0:
		c.add(Precedence, both(i, g.refused), 0, "%s comes after %s, which was refused", printable(rec.id), printable(id))
	case rec.has(fStart) && g.last >= 0:
		if end := records[g.last].ending(); rec.start < end {
			c.add(Precedence, both(i, g.last), 0, "%s starts at %d, before %s ends at %s",
				printable(rec.id), rec.start, printable(id), timeText(end))
		}
	}
}

// both returns the two records, or one if they are the same.
func both(a int, b int32) []int32 {
	if int32(a) == b {
		return []int32{b}
	}
	return []int32{int32(a), b}
}
