package calendar

import (
	"fmt"

	"github.com/berth-hpc/berth"
)

// check reports the first invariant that does not hold:
//
//   - no page and no leaf is empty or overfull;
//   - record times increase strictly;
//   - every record changes something, its pieces ascend and none is empty;
//   - base is what the changes of all earlier records make busy, before their
//     number; level is the number of busy PEs at each record, less before;
//   - first, least and most of every leaf and page are right;
//   - after the last record nothing is busy; no PE beyond the size ever is;
//   - seams ascend in their leaf, each of PEs that are busy before and after it and do
//     not change there;
//   - scratch memory that is to be 0 is.
func (c *early) check() error {
	t := &c.tree
	if n := len(t.pages); len(t.first) != n || len(t.least) != n || len(t.most) != n {
		return fmt.Errorf("%d pages with summaries of %d, %d, %d", n, len(t.first), len(t.least), len(t.most))
	}
	w := make(words, t.words)
	last := -berth.Forever
	for p, pg := range t.pages {
		if pg.n < 1 || pg.n > t.full.leaves {
			return fmt.Errorf("page %d has %d leaves", p, pg.n)
		}
		least, most := pg.least[0], pg.most[0]
		for i := range int(pg.n) {
			if err := c.checkLeaf(pg.leaves[i], w, last); err != nil {
				return fmt.Errorf("page %d leaf %d: %w", p, i, err)
			}
			if err := c.checkSeams(place{p, i, 0}); err != nil {
				return fmt.Errorf("page %d leaf %d: %w", p, i, err)
			}
			last = pg.leaves[i].last()
			lo, hi := pg.leaves[i].span()
			if pg.first[i] != pg.leaves[i].times[0] || pg.least[i] != lo || pg.most[i] != hi {
				return fmt.Errorf("page %d says of leaf %d: first %d, least %d, most %d; not %d, %d, %d",
					p, i, pg.first[i], pg.least[i], pg.most[i], pg.leaves[i].times[0], lo, hi)
			}
			least, most = min(least, lo), max(most, hi)
		}
		if t.first[p] != pg.first[0] || t.least[p] != least || t.most[p] != most {
			return fmt.Errorf("of page %d: first %d, least %d, most %d; not %d, %d, %d",
				p, t.first[p], t.least[p], t.most[p], pg.first[0], least, most)
		}
	}
	if w.count() != 0 {
		return fmt.Errorf("%d PEs are busy for ever", w.count())
	}
	if c.scratch.probe.count() != 0 {
		return fmt.Errorf("the probe was left set")
	}
	return nil
}

// checkSeams checks the seams of a leaf.
func (c *early) checkSeams(at place) error {
	l := c.tree.leaf(at)
	_, end := c.tree.following(at)
	w := make(words, c.tree.words)
	last, word := -berth.Forever, uint32(0)
	for _, s := range l.seams {
		if s.time < l.times[0] || s.time >= end || s.time < last || s.time == last && s.word <= word || s.mask == 0 {
			return fmt.Errorf("seam at %d of word %d after %d of word %d, before %d", s.time, s.word, last, word, end)
		}
		last, word = s.time, s.word
		to := c.tree.locate(s.time)
		c.tree.busyAt(w, to)
		if s.mask&^w[word] != 0 || c.tree.changesAt(s.time, to).meets(pieces{{s.mask, word}}) {
			return fmt.Errorf("seam at %d of PEs that are not busy before and after", s.time)
		}
	}
	return nil
}

// checkLeaf checks a leaf against the busy set w and the time before its first
// record, and makes w what is busy after its last.
func (c *early) checkLeaf(l *leaf, w words, last berth.Time) error {
	if l.n < 1 || l.n > c.tree.full.records || len(l.set) != int(l.ends[l.n-1]) {
		return fmt.Errorf("%d records end at piece %d of %d", l.n, l.ends[max(l.n, 1)-1], len(l.set))
	}
	for i := range w {
		if l.base[i] != w[i] {
			return fmt.Errorf("base is wrong in word %d", i)
		}
	}
	if l.before != int32(w.count()) {
		return fmt.Errorf("before is %d, not %d", l.before, w.count())
	}
	for i := range int(l.n) {
		if l.times[i] <= last {
			return fmt.Errorf("record %d at %d after %d", i, l.times[i], last)
		}
		last = l.times[i]
		set := l.changes(i)
		if len(set) == 0 {
			return fmt.Errorf("record %d at %d changes nothing", i, last)
		}
		for k, piece := range set {
			if piece.mask == 0 || piece.mask&^c.all[piece.word] != 0 || k > 0 && set[k-1].word >= piece.word {
				return fmt.Errorf("record %d: bad piece %d", i, k)
			}
		}
		w.toggle(set)
		if got := l.before + l.level[i]; got != int32(w.count()) {
			return fmt.Errorf("record %d has %d busy PEs, not %d", i, w.count(), got)
		}
	}
	return nil
}
