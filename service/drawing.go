package service

import (
	"cmp"
	"slices"
	"sync"

	"github.com/berth-hpc/berth"
)

// drawing is the whole picture of a pool after a record. It is not written any more.
type drawing struct {
	generation uint64
	number     uint64 // of the record; all until then is drawn
	outages    []berth.Outage
	begun      map[uint64]beginning // of the outages
	fixed      [][]Bar              // with PEs of their own, a page for each block of PEs
	late       []unbound            // without, in the order in which they get PEs
	lacking    []Bar                // PEs that degraded promises lack
	legs       []*leg               // the late ones with the PEs that they would get
	pages      [][]Bar              // all
	unplaced   []Bar
}

// maxPages is into how many blocks of PEs a pool is divided: of 200,000 bars a page has
// 400, which are copied when one of them changes.
const maxPages = 512

// unbound is a bar without PEs, and its place in the order of starts.
type unbound struct {
	Bar
	sequence uint64
	part     int
}

func compareUnbound(a, b unbound) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.sequence, b.sequence), cmp.Compare(a.part, b.part))
}

// compareBars is 0 of equal bars alone.
func compareBars(a, b Bar) int {
	switch {
	case a.First != b.First:
		return cmp.Compare(a.First, b.First)
	case a.Start != b.Start:
		return cmp.Compare(a.Start, b.Start)
	case a.Number != b.Number:
		return cmp.Compare(a.Number, b.Number)
	}
	return cmp.Or(cmp.Compare(a.PEs, b.PEs), cmp.Compare(a.End, b.End), cmp.Compare(a.Class, b.Class), cmp.Compare(a.Flags, b.Flags), cmp.Compare(a.owner, b.owner))
}

// drawings keeps the latest drawing of each pool, so that all who look at one generation
// share the work. The zero value is empty.
type drawings struct {
	readers
	mu sync.Mutex
	of map[berth.ResourceID]*shelf
}

type shelf struct {
	mu      sync.Mutex // one draws, the others wait for it
	drawing *drawing
	owners  map[string]uint32
}

// get returns the drawing of a pool that the model shows, and the number of a user in it:
// 0 of those who have nothing there.
func (d *drawings) get(m *model, pool *berth.Pool, id berth.ResourceID, user string) (*drawing, uint32) {
	d.mu.Lock()
	if d.of == nil {
		d.of = map[berth.ResourceID]*shelf{}
	}
	k := d.of[id]
	if k == nil {
		k = &shelf{owners: map[string]uint32{}}
		d.of[id] = k
	}
	d.mu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.drawing == nil || k.drawing.generation < m.generation(id) {
		p := painter{m: m, pool: pool, id: id, owners: k.owners}
		if k.drawing = p.follow(k.drawing); k.drawing == nil {
			k.drawing = p.draw()
		}
		d.saw(m.number)
	}
	return k.drawing, k.owners[user]
}

// painter makes a drawing.
type painter struct {
	m      *model
	pool   *berth.Pool
	id     berth.ResourceID
	owners map[string]uint32
	*drawing
	own        []bool // pages that no reader has seen
	changed    *differences
	gone, came []Bar // since the last drawing
}

// draw draws a pool from all cards.
func (p *painter) draw() *drawing {
	p.drawing = &drawing{fixed: make([][]Bar, maxPages), begun: beginnings(p.m.notes)}
	for i := range p.m.outages {
		p.eachOfOutage(&p.m.outages[i], p.begun, func(b Bar) {
			page := p.page(b.First)
			p.fixed[page] = append(p.fixed[page], b)
		})
	}
	p.m.cards.Scan(func(k *card) bool {
		p.eachOf(k.ink(), func(b Bar) {
			page := p.page(b.First)
			p.fixed[page] = append(p.fixed[page], b)
		}, func(u unbound) { p.late = append(p.late, u) })
		p.eachLacking(k.ink(), func(b Bar) { p.lacking = append(p.lacking, b) })
		return true
	})
	slices.SortFunc(p.lacking, compareBars)
	for _, page := range p.fixed {
		slices.SortFunc(page, compareBars)
	}
	slices.SortFunc(p.late, compareUnbound)
	return p.finish(nil)
}

// mostFollowed is how many changes are followed rather than drawn anew: each moves what is behind it in a list.
const mostFollowed = 8192

// follow draws what has changed since a drawing; nil if that is not known or not worth it.
func (p *painter) follow(last *drawing) *drawing {
	if last == nil {
		return nil
	}
	entries, known := p.m.diary.since(last.number, p.m.number)
	if !known || len(entries) > mostFollowed {
		return nil
	}
	p.drawing = &drawing{fixed: slices.Clone(last.fixed), late: last.late, lacking: last.lacking, begun: last.begun}
	p.own, p.changed = make([]bool, maxPages), noDifferences()
	all, lateChanged, lackingChanged := true, false, false
	if len(last.outages) != len(p.m.outages) || len(last.outages) > 0 && &last.outages[0] != &p.m.outages[0] { // another list
		p.changed.outages, p.begun = true, beginnings(p.m.notes)
		for i := range last.outages {
			p.eachOfOutage(&last.outages[i], last.begun, func(b Bar) { all = p.remove(b) && all })
		}
		for i := range p.m.outages {
			p.eachOfOutage(&p.m.outages[i], p.begun, func(b Bar) { all = p.insert(b) && all })
		}
	}
	for i := range entries {
		for _, of := range []struct {
			ink    ink
			change func(Bar) bool
			late   func([]unbound, unbound) ([]unbound, bool)
			lacks  func([]Bar, Bar) ([]Bar, bool)
		}{{entries[i].was, p.remove, removeUnbound, removeBar}, {entries[i].became, p.insert, insertUnbound, insertBar}} {
			p.eachLacking(of.ink, func(b Bar) {
				if !lackingChanged {
					p.lacking, lackingChanged = slices.Clone(p.lacking), true
				}
				var done bool
				p.lacking, done = of.lacks(p.lacking, b)
				all = all && done
			})
			p.eachOf(of.ink, func(b Bar) {
				p.changed.lastFixed = max(p.changed.lastFixed, b.Start)
				all = of.change(b) && all
			}, func(u unbound) {
				if !lateChanged {
					p.late, lateChanged = slices.Clone(p.late), true
				}
				p.changed.late(&u)
				var done bool
				p.late, done = of.late(p.late, u)
				all = all && done
			})
		}
	}
	if !all {
		return nil // the diary is not about that drawing
	}
	return p.finish(last)
}

// finish completes a drawing whose fixed and late bars are there. Pages that
// are equal to those of the last one, which may be nil, are these.
func (p *painter) finish(last *drawing) *drawing {
	p.generation, p.number, p.outages = p.m.generation(p.id), p.m.number, p.m.outages
	p.unplaced = p.lacking
	if p.pages = p.fixed; len(p.late) == 0 {
		return p.drawing
	}
	pages := make([][]Bar, maxPages)
	var was []*leg
	if last == nil {
		p.came = slices.Concat(p.fixed...)
	} else {
		copy(pages, last.pages)
		was = last.legs
	}
	p.legs = layOut(p.pool, p.fixed, p.late, was, p.changed)
	now := p.legs
	for len(was) > 0 && len(now) > 0 && was[0] == now[0] {
		was, now = was[1:], now[1:]
	}
	for len(was) > 0 && len(now) > 0 && was[len(was)-1] == now[len(now)-1] {
		was, now = was[:len(was)-1], now[:len(now)-1]
	}
	for _, g := range was {
		p.gone = append(p.gone, g.placed...)
	}
	for _, g := range now {
		p.came = append(p.came, g.placed...)
	}
	slices.SortFunc(p.gone, compareBars)
	slices.SortFunc(p.came, compareBars)
	p.gone, p.came = barsWithout(p.gone, p.came), barsWithout(p.came, p.gone)
	for len(p.gone) > 0 || len(p.came) > 0 {
		n := maxPages
		for _, list := range [][]Bar{p.gone, p.came} {
			if len(list) > 0 {
				n = min(n, p.page(list[0].First))
			}
		}
		gone, came := p.onPage(n, p.gone), p.onPage(n, p.came)
		pages[n] = mergeBars(barsWithout(pages[n], p.gone[:gone]), p.came[:came])
		p.gone, p.came = p.gone[gone:], p.came[came:]
	}
	p.pages = pages
	var unplaced []Bar
	for _, g := range p.legs {
		unplaced = append(unplaced, g.unplaced...)
	}
	if len(unplaced) > 0 {
		p.unplaced = append(unplaced, p.lacking...)
		slices.SortFunc(p.unplaced, compareBars)
	}
	return p.drawing
}

// onPage returns how many bars of a list in order are on a page or one before.
func (p *painter) onPage(n int, list []Bar) int {
	at := 0
	for at < len(list) && p.page(list[at].First) <= n {
		at++
	}
	return at
}

// barsWithout returns what of a list in order is not in another one. Cost: O(n + m).
func barsWithout(list, of []Bar) []Bar {
	if len(of) == 0 {
		return list
	}
	var out []Bar
	for i := range list {
		b := &list[i]
		for len(of) > 0 && compareBars(of[0], *b) < 0 {
			of = of[1:]
		}
		if len(of) > 0 && of[0] == *b {
			of = of[1:]
			continue
		}
		out = append(out, *b)
	}
	return out
}

// mergeBars returns two lists in order as one.
func mergeBars(a, b []Bar) []Bar {
	if len(b) == 0 {
		return a
	}
	all := make([]Bar, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compareBars(a[0], b[0]) <= 0 {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}

// page returns the page of bars that begin at a PE.
func (p *painter) page(first berth.PE) int {
	return int(min(int64(first)*maxPages/int64(p.pool.PEs), maxPages-1))
}

// insert puts a bar on its page.
func (p *painter) insert(b Bar) bool {
	n := p.page(b.First)
	at, _ := slices.BinarySearchFunc(p.fixed[n], b, compareBars)
	p.fixed[n] = slices.Insert(p.owned(n), at, b)
	p.came = append(p.came, b)
	return true
}

// remove takes a bar from its page, and reports whether it was there.
func (p *painter) remove(b Bar) bool {
	n := p.page(b.First)
	at, found := slices.BinarySearchFunc(p.fixed[n], b, compareBars)
	if found {
		p.fixed[n] = slices.Delete(p.owned(n), at, at+1)
		p.gone = append(p.gone, b)
	}
	return found
}

// owned returns a page that may be written.
func (p *painter) owned(n int) []Bar {
	if !p.own[n] {
		p.own[n] = true
		p.fixed[n] = append(make([]Bar, 0, len(p.fixed[n])+4), p.fixed[n]...)
	}
	return p.fixed[n]
}

func insertUnbound(list []unbound, u unbound) ([]unbound, bool) {
	at, _ := slices.BinarySearchFunc(list, u, compareUnbound)
	return slices.Insert(list, at, u), true
}

func removeUnbound(list []unbound, u unbound) ([]unbound, bool) {
	at, found := slices.BinarySearchFunc(list, u, compareUnbound)
	if !found || list[at] != u {
		return list, false
	}
	return slices.Delete(list, at, at+1), true
}

func insertBar(list []Bar, b Bar) ([]Bar, bool) {
	at, _ := slices.BinarySearchFunc(list, b, compareBars)
	return slices.Insert(list, at, b), true
}

func removeBar(list []Bar, b Bar) ([]Bar, bool) {
	at := slices.Index(list, b) // they are few
	if at < 0 {
		return list, false
	}
	return slices.Delete(list, at, at+1), true
}

// eachOfOutage calls yield with each bar of an outage, if it is one of the pool. One that was not announced
// is drawn from when it was first seen: before that the PEs may have been in use.
func (p *painter) eachOfOutage(o *berth.Outage, begun map[uint64]beginning, yield func(Bar)) {
	if o.Resource != p.id || o.From >= o.Until {
		return
	}
	b := Bar{Start: o.From, End: o.Until, Number: uint32(o.Number) | OutageBit, Class: ClassOutage, Flags: IsAnnounced}
	if o.From == 0 {
		b.Flags = 0
		began := begun[o.Number]
		if b.Start = min(began.at, o.Until-1); !began.known {
			b.Flags |= OpenStart
		}
	}
	if o.Until >= berth.Forever {
		b.Flags |= OpenEnd
	}
	eachRun(b, o.PEs, yield)
}

// eachOf calls placed with each bar of what is drawn of a card in the pool, or late with
// what has no PEs yet.
func (p *painter) eachOf(k ink, placed func(Bar), late func(unbound)) {
	if k.promise == nil {
		return
	}
	for part := range k.promise.Allotments {
		a := k.promise.Allotments[part]
		if a.Resource != p.id {
			continue
		}
		if k.end != "" {
			a.End = min(a.End, k.until)
		}
		if a.Start >= a.End || a.NPE == 0 {
			continue
		}
		b := p.bar(k, &a)
		if a.PEs.Empty() {
			late(unbound{b, k.promise.Sequence, part})
			continue
		}
		eachRun(b, a.PEs, placed)
	}
}

// bar returns a bar of a card, still without PEs.
func (p *painter) bar(k ink, a *berth.Allotment) Bar {
	b := Bar{Start: a.Start, End: a.End, PEs: a.NPE, Number: uint32(k.promise.Sequence) &^ OutageBit, Class: k.class(), Flags: k.flags(), owner: p.owner(k.request.User)}
	if a.End >= berth.Forever {
		b.Flags |= OpenEnd
	}
	return b
}

// eachLacking calls yield with what a degraded promise lacks in the pool, of each part: PEs
// that it was promised and does not hold. Who has lost all would not be seen otherwise.
func (p *painter) eachLacking(k ink, yield func(Bar)) {
	if k.promise == nil || k.end != "" || k.class() != ClassDegraded {
		return
	}
	for part := range k.promise.Allotments {
		a := k.promise.Allotments[part]
		if a.Resource != p.id || a.Start >= a.End || part >= len(k.promise.Terms.Variants) {
			continue
		}
		if a.NPE = k.promise.Terms.Variants[part].NPE - a.NPE; a.NPE > 0 {
			yield(p.bar(k, &a))
		}
	}
}

// owner returns the number of a user.
func (p *painter) owner(user string) uint32 {
	if user == "" {
		return 0
	}
	n := p.owners[user]
	if n == 0 {
		n = uint32(len(p.owners)) + 1
		p.owners[user] = n
	}
	return n
}

// eachRun calls yield with one bar for each run of PEs.
func eachRun(b Bar, pes berth.PESet, yield func(Bar)) {
	for _, r := range pes.Runs() {
		b.First, b.PEs = r.Lo, berth.Count(r.Hi-r.Lo)
		yield(b)
	}
}

// class returns what the bars of a card are.
func (k *ink) class() Class {
	switch {
	case k.request.IsJob():
		return ClassJob
	case k.end == "" && (k.promise.State == berth.Degraded || k.promise.Missing > 0):
		return ClassDegraded
	}
	return ClassPromise
}

func (k *ink) flags() Flags {
	switch {
	case k.end != "":
		return IsOver
	case k.promise.State == berth.Held:
		return IsHeld
	case k.promise.State == berth.Active:
		return IsActive
	}
	return 0
}
