package check

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// askedFor is a program as a line asks for it at a site.
type askedFor struct {
	site, software, version string
	licences                int64
}

// program is what a site has of what was asked for: the index of its row among
// the site's programs, or -1.
type program struct {
	row      int
	licences int64 // 0 is no limit
}

// program returns the first program of the site that will do and has that many
// licences, or else the first that will do. Cost: the rows of the site, once for
// each way to ask.
func (c *checker) program(site string, n *needs) program {
	key := askedFor{site, n.software, n.version, n.licences}
	if found, seen := c.programs[key]; seen {
		return found
	}
	found := program{row: -1}
	for i, s := range c.opts.Software(site) {
		if s.Name != n.software || n.version != "" && compareVersions(s.Version, n.version) < 0 {
			continue
		}
		enough := s.Licences == 0 || int64(s.Licences) >= n.licences
		if enough || found.row < 0 {
			found = program{row: i, licences: int64(s.Licences)}
		}
		if enough {
			break
		}
	}
	if c.programs == nil {
		c.programs = map[askedFor]program{}
	}
	c.programs[key] = found
	return found
}

// turns are the numbers and texts that make up a component of a version.
var turns = regexp.MustCompile(`^0*([0-9]*)([^0-9]*)`)

// compareVersions compares the components of versions between points, and in
// each the numbers and texts by turns. What is missing is 0 or empty; a tilde is
// before that.
func compareVersions(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		x, y := component(as, i), component(bs, i)
		for x != "" || y != "" {
			m, n := turns.FindStringSubmatch(x), turns.FindStringSubmatch(y)
			x, y = x[len(m[0]):], y[len(n[0]):]
			order := cmp.Or(cmp.Compare(len(m[1]), len(n[1])), cmp.Compare(m[1], n[1]), slices.CompareFunc(rank(m[2]), rank(n[2]), cmp.Compare))
			if order != 0 {
				return order
			}
		}
	}
	return 0
}

// rank returns the places of characters in the order, and of the end behind them.
func rank(text string) []rune {
	var ranks []rune
	for _, c := range text {
		if c == '~' {
			c = -1
		}
		ranks = append(ranks, c)
	}
	return append(ranks, 0)
}

// component returns the i-th component, nothing if it is missing.
func component(version []string, i int) string {
	if i < len(version) {
		return version[i]
	}
	return ""
}

// checkNeeds applies the rules for what one line asks for beside PEs.
func (c *checker) checkNeeds(i int, rec *record, n *needs) {
	for _, amount := range n.wholes() {
		if amount.n < 0 {
			c.add1(BadRequest, i, "%d %s; a %s takes 0 or more", amount.n, amount.of, kindNames[rec.kind])
		}
	}
	switch {
	case n.software == "" && n.licences > 0:
		c.add1(BadRequest, i, "%d licences of no software", n.licences)
	case n.software == "" && n.version != "":
		c.add1(BadRequest, i, "version %s of no software", printable(n.version))
	case n.software == "" || c.opts.Software == nil || rec.place < 0 || !c.places[rec.place].known || !rec.has(fStart):
	case c.program(rec.site, n).row < 0 && n.version != "":
		c.add1(Software, i, "%s has no %s of version %s or later", siteText(rec.site), printable(n.software), printable(n.version))
	case c.program(rec.site, n).row < 0:
		c.add1(Software, i, "%s has no %s", siteText(rec.site), printable(n.software))
	}
}

func siteText(site string) string {
	if site == "" {
		return "the site"
	}
	return "site " + printable(site)
}

// sweepNeeds checks every site's licences and storage.
func (c *checker) sweepNeeds(s *sweeper) {
	records := c.file.records
	licences, storage := claims{records: records}, claims{records: records}
	staged, spaces := c.stagings(), map[string]space{}
	for i := range records {
		rec := &records[i]
		n, wants := rec.wants()
		from, to, ok := rec.span()
		if !wants || !ok || rec.place < 0 || !c.places[rec.place].known {
			continue
		}
		if n.software != "" && n.licences > 0 && c.opts.Software != nil {
			if p := c.program(rec.site, n); p.row >= 0 && p.licences > 0 {
				licences.add(int32(i), claimed{rec.site, p.row}, p.licences, n.licences, from, to)
			}
		}
		if n.storage > 0 && c.opts.Storage != nil {
			at, seen := spaces[rec.site]
			if !seen {
				at.size, at.limited = c.opts.Storage(rec.site)
				spaces[rec.site] = at
			}
			if at.limited {
				if begins, is := staged[stay{rec.id, rec.site}]; is {
					from = min(from, begins)
				}
				storage.add(int32(i), claimed{rec.site, 0}, at.size, n.storage, from, to)
			}
		}
	}
	s.sweep(licences.use(Licences, func(of claimed) string {
		row := c.opts.Software(of.site)[of.row]
		name := printable(row.Name)
		if row.Version != "" {
			name += " " + printable(row.Version)
		}
		return "licences of " + name + " at " + siteText(of.site)
	}))
	s.sweep(storage.use(Storage, func(of claimed) string { return "MB of storage of " + siteText(of.site) }))
}

// space is the storage of a site.
type space struct {
	size    int64
	limited bool
}

// stay is an id at a site.
type stay struct{ id, site string }

// stagings returns when the first staging of each id begins at each site.
func (c *checker) stagings() map[stay]int64 {
	first := map[stay]int64{}
	for i := range c.file.records {
		if rec := &c.file.records[i]; rec.kind == staging {
			key := stay{rec.id, rec.site}
			if at, seen := first[key]; !seen || rec.start < at {
				first[key] = rec.start
			}
		}
	}
	return first
}

// claims gathers what lines take of things at sites. The lines of one id take
// it once, the most that one of them asks for, from the start of the first to
// the end of the last: the first such line takes it, the others nothing, though
// they are named in violations.
type claims struct {
	records []record
	things  []claimed // that lines take
	sizes   []int64   // of things
	index   map[claimed]int32
	taken   []claim
	byID    map[claimKey]int32 // index into taken
	events  []event            // of the lines that take nothing
}

// claimed is a thing at a site: storage, or the licences of one of its programs.
type claimed struct {
	site string
	row  int
}

type claimKey struct {
	id    string
	thing int32
}

type claim struct {
	record, thing    int32
	amount, from, to int64
}

func (t *claims) add(record int32, of claimed, size, amount, from, to int64) {
	if t.index == nil {
		t.index, t.byID = map[claimed]int32{}, map[claimKey]int32{}
	}
	thing, seen := t.index[of]
	if !seen {
		thing = int32(len(t.things))
		t.index[of] = thing
		t.things, t.sizes = append(t.things, of), append(t.sizes, size)
	}
	key := claimKey{t.records[record].id, thing}
	if k, seen := t.byID[key]; seen {
		first := &t.taken[k]
		first.amount = max(first.amount, amount)
		first.from, first.to = min(first.from, from), max(first.to, to)
		if from < to {
			t.events = append(t.events, event{from, thing, record}, event{to, thing, ^record})
		}
		return
	}
	t.byID[key] = int32(len(t.taken))
	t.taken = append(t.taken, claim{record, thing, amount, from, to})
}

// use returns what is taken, for a sweep.
func (t *claims) use(class Class, name func(claimed) string) use {
	u := use{
		class: class, events: t.events,
		size: func(thing int32) int64 { return t.sizes[thing] },
		name: func(thing int32) string { return name(t.things[thing]) },
	}
	if len(t.taken) > 0 {
		u.amounts = make([]int64, len(t.records))
	}
	for _, k := range t.taken {
		if k.from < k.to {
			u.amounts[k.record] = k.amount
			u.events = append(u.events, event{k.from, k.thing, k.record}, event{k.to, k.thing, ^k.record})
		}
	}
	return u
}
