package service

import (
	"slices"
	"sort"
	"sync/atomic"

	"github.com/berth-hpc/berth"
)

// ink is what of a card is drawn. What it points to is not written any more.
type ink struct {
	request *berth.Request
	promise *berth.Reservation // nil if nothing is drawn
	end     State
	until   berth.Time // when it ended
}

func (k *card) ink() ink { return ink{k.request, k.promise, k.end, k.until} }

// redrawn is one change of what is drawn of a card.
type redrawn struct {
	number      uint64 // of the record
	was, became ink
}

// maxDiary bounds the diary: half of it is dropped when it is full. What is left has three
// workflows of the most tasks that there may be: without them who asks next would look at all
// cards. An entry is 88 bytes.
const maxDiary = 65_536

// diary is how what is drawn has changed since a record, so that a picture follows without
// looking at all cards again. It is kept while pictures are read. Entries are only
// appended, so that models share them.
type diary struct {
	kept      bool
	from      uint64 // it has all changes behind this record
	entries   []redrawn
	forgotten int64 // bytes of the cards that were forgotten since it began, which entries may keep
}

// maxForgotten bounds what entries keep of cards that are forgotten.
const maxForgotten = 32 << 20

// since returns what changed behind one record up to another one; false if the diary does
// not have all of it.
func (d *diary) since(number, until uint64) ([]redrawn, bool) {
	if !d.kept || number < d.from {
		return nil, false
	}
	behind := func(number uint64) int {
		return sort.Search(len(d.entries), func(i int) bool { return d.entries[i].number > number })
	}
	return d.entries[behind(number):behind(until)], true
}

// diarist writes the diary beside the cards. The zero value keeps none until wanted is set.
type diarist struct {
	diary
	read *readers
}

// readers is what drawing tells the diarist.
type readers struct {
	wanted atomic.Bool
	newest atomic.Uint64 // the newest record that was drawn
}

// saw notes that what is shown with a record has been looked at: from now on the diary is
// wanted.
func (r *readers) saw(number uint64) {
	for newest := r.newest.Load(); newest < number && !r.newest.CompareAndSwap(newest, number); {
		newest = r.newest.Load()
	}
	r.wanted.Store(true)
}

// note notes a change of a card. It costs a comparison while no pictures are read.
func (d *diarist) note(number uint64, was, became ink) {
	if !d.kept || was.promise == nil && became.promise == nil {
		return
	}
	if len(d.entries) == maxDiary {
		d.entries = slices.Clone(d.entries[maxDiary/2:])
		d.from = d.entries[0].number // of whose entries some may be gone
		if d.read.newest.Load() < d.from {
			d.read.wanted.Store(false)
			d.stop()
			return
		}
	}
	d.entries = append(d.entries, redrawn{number, was, became})
}

// forgot notes that a card is forgotten. The diary ends where it would keep too much of such cards.
func (d *diarist) forgot(number uint64, k *card) {
	if !d.kept || k.promise == nil {
		return
	}
	if d.forgotten += k.cost(); d.forgotten > maxForgotten {
		d.stop()
		return
	}
	d.note(number, k.ink(), ink{})
}

// begin has the diary begin in front of a record if it is wanted.
func (d *diarist) begin(number uint64) {
	if !d.kept && d.read != nil && d.read.wanted.Load() {
		d.diary = diary{kept: true, from: number - 1}
	}
}

// stop drops the diary, after changes that it does not have.
func (d *diarist) stop() { d.diary = diary{} }
