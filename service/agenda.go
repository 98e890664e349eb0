package service

import (
	"cmp"
	"math"
	"math/bits"
	"sync"

	"github.com/tidwall/btree"

	"github.com/berth-hpc/berth"
)

// agenda finds what holds PEs of a site at some time without looking at all that is
// remembered. It follows the diary, like pictures, so it costs nothing without readers. The
// zero value is empty.
//
// Spots are ordered by how long they are, in powers of two, and then by their start: of those
// that are shorter than a length, none that begins earlier than that before a time reaches
// it.
type agenda struct {
	mu     sync.Mutex
	number uint64 // of the record; all until then is in it
	spots  *btree.BTreeG[spot]
	hint   btree.PathHint // to where the last one was: those of a workflow are near one another
}

// spot is one allotment of a card.
type spot struct {
	site     string
	length   int // the number of bits of its length
	start    berth.Time
	sequence uint64
	part     int
	id       string
}

func (s *spot) mark() Mark { return Mark{s.start, true, s.sequence, s.part} }

func (s *spot) compare(o *spot) int {
	return cmp.Or(cmp.Compare(s.site, o.site), cmp.Compare(s.length, o.length), s.mark().Compare(o.mark()), cmp.Compare(s.id, o.id))
}

// spots calls yield with each spot of what is drawn of a card.
func (k *ink) spots(yield func(spot)) {
	if k.promise == nil {
		return
	}
	for part := range k.promise.Allotments {
		a := &k.promise.Allotments[part]
		end := a.End
		if k.end != "" {
			end = min(end, k.until)
		}
		if a.Start < end {
			yield(spot{a.Resource.Site, bits.Len64(uint64(end) - uint64(a.Start)), a.Start, k.promise.Sequence, part, k.request.ID})
		}
	}
}

// follow returns what is shown now, and its spots, which are the caller's.
func (a *agenda) follow(h *Host) (*model, *btree.BTreeG[spot], error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	m, err := h.seen() // never older than what is in the agenda
	if err != nil {
		return nil, nil, err
	}
	if a.spots == nil || a.number < m.number {
		a.take(m)
		h.drawings.saw(m.number)
	}
	return m, a.spots.Copy(), nil
}

// take brings the agenda to what a model shows. Cost: O(c log n) for c changes since, or
// O(n log n) if the diary does not have them.
func (a *agenda) take(m *model) {
	entries, known := m.diary.since(a.number, m.number)
	if known = known && a.spots != nil; known {
		for i := range entries {
			entries[i].was.spots(func(s spot) { a.spots.DeleteHint(s, &a.hint) })
			entries[i].became.spots(func(s spot) { a.spots.SetHint(s, &a.hint) })
		}
	} else {
		a.spots = btree.NewBTreeGOptions(func(a, b spot) bool { return a.compare(&b) < 0 }, btree.Options{NoLocks: true})
		m.cards.Scan(func(k *card) bool {
			ink := k.ink()
			ink.spots(func(s spot) { a.spots.Set(s) })
			return true
		})
	}
	a.number = m.number
}

// eachSpot yields the spots that a window may have, in order, until yield returns false. Some
// that end up to twice their length before it are among them.
func (w *window) eachSpot(spots *btree.BTreeG[spot], yield func(*spot) bool) {
	var lanes []btree.IterG[spot] // one for each length
	next := func(lane *btree.IterG[spot], length int) bool {
		s := lane.Item()
		return s.site == w.site && s.length == length && s.start < w.to
	}
	for length := 1; length <= 64; length++ {
		earliest := berth.Time(math.MinInt64)
		if reach := berth.Time(1) << min(length, 62); length <= 62 && w.from > math.MinInt64+reach {
			earliest = w.from - reach
		}
		first := spot{site: w.site, length: length, start: max(earliest, w.after.Start)}
		lane := spots.Iter()
		if lane.Seek(first) && next(&lane, length) {
			lanes = append(lanes, lane)
		}
	}
	for len(lanes) > 0 {
		best := 0
		for i := range lanes {
			a, b := lanes[i].Item(), lanes[best].Item()
			if i > 0 && a.mark().Compare(b.mark()) < 0 {
				best = i
			}
		}
		s := lanes[best].Item()
		if s.mark().Compare(w.after) > 0 && !yield(&s) {
			return
		}
		if lane := &lanes[best]; !lane.Next() || !next(lane, s.length) {
			lanes = append(lanes[:best], lanes[best+1:]...)
		}
	}
}
