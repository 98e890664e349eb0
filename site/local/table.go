//go:build linux

package local

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// booking is a reservation on cores of this machine.
type booking struct {
	Name     string      `json:"name"`
	Start    berth.Time  `json:"start"`
	End      berth.Time  `json:"end"`
	Cores    berth.PESet `json:"cores"`
	Users    []string    `json:"users,omitempty"`
	Accounts []string    `json:"accounts,omitempty"`
	Launched bool        `json:"launched,omitempty"`
	// Counted says that a number of cores was asked for. Until it is launched the
	// cores only show that there is room, and others may take their place.
	Counted bool `json:"counted,omitempty"`
}

// movable reports whether the cores may still be others.
func (b *booking) movable() bool { return b.Counted && !b.Launched }

// span is a booking's time on one core.
type span struct {
	start, end berth.Time
	name       string
}

// table holds the bookings, by name and by core and time. On one core no two
// overlap.
type table struct {
	site        string
	bookings    map[string]*booking
	byCore      [][]span            // sorted by start
	generations map[string][]uint64 // of each promise
	nextEnd     berth.Time          // no booking ends before it
}

func newTable(siteName string, cores berth.Count) *table {
	return &table{
		site: siteName, bookings: map[string]*booking{}, byCore: make([][]span, cores),
		generations: map[string][]uint64{}, nextEnd: berth.Forever,
	}
}

// later returns a generation of the same promise after that of the name, and
// false if there is none.
func (t *table) later(name site.Name) (uint64, bool) {
	promise, generation, _ := name.Promise(t.site)
	for _, g := range t.generations[promise] {
		if g > generation {
			return g, true
		}
	}
	return 0, false
}

// ended returns the bookings whose end has come. Cost: O(1) if there are none,
// else O(n).
func (t *table) ended(now berth.Time) []*booking {
	if now < t.nextEnd {
		return nil
	}
	var over []*booking
	t.nextEnd = berth.Forever
	for _, b := range t.bookings {
		if b.End <= now {
			over = append(over, b)
		}
		t.nextEnd = min(t.nextEnd, b.End)
	}
	return over
}

// find returns where in a core's spans one that starts at start belongs.
func find(spans []span, start berth.Time) int {
	at, _ := slices.BinarySearchFunc(spans, start, func(s span, t berth.Time) int {
		if s.start < t {
			return -1
		}
		if s.start > t {
			return 1
		}
		return 0
	})
	return at
}

// free reports whether only the booking of that name has the core in
// [start, end). Cost: O(log n) for n bookings of the core.
func (t *table) free(core berth.PE, start, end berth.Time, but string) bool {
	spans := t.byCore[core]
	at := find(spans, start)
	if before := at - 1; before >= 0 && spans[before].end > start && spans[before].name != but {
		return false
	}
	for ; at < len(spans) && spans[at].start < end; at++ {
		if spans[at].name != but {
			return false
		}
	}
	return true
}

// fits reports whether all cores of a booking are free for it.
func (t *table) fits(b *booking) bool {
	for _, r := range b.Cores.Runs() {
		for core := r.Lo; core < r.Hi; core++ {
			if !t.free(core, b.Start, b.End, b.Name) {
				return false
			}
		}
	}
	return true
}

// choose returns the lowest n cores that are free for a booking, and false if
// there are fewer.
func (t *table) choose(b *booking, n berth.Count) (berth.PESet, bool) {
	var cores []berth.PE
	for core := range berth.PE(len(t.byCore)) {
		if berth.Count(len(cores)) < n && t.free(core, b.Start, b.End, b.Name) {
			cores = append(cores, core)
		}
	}
	return berth.PEsOf(cores...), berth.Count(len(cores)) == n
}

// fit returns what is to be written for a booking: b, or, if its cores are taken, b
// with the others that give way to it. Then all that are movable get the lowest
// free cores again, in order of start, end and name. It is false if there is no
// room. If everything that cannot move began before all that can, as launched
// bookings did, there is room whenever at no time more cores are booked than there
// are. The table stays as it is. Cost: O(log n · cores) for n bookings if b fits,
// else O(n log n · cores).
func (t *table) fit(b *booking) ([]*booking, bool) {
	if t.fits(b) {
		return []*booking{b}, true
	}
	trial := newTable(t.site, berth.Count(len(t.byCore)))
	var open []*booking
	for _, o := range t.bookings {
		switch {
		case o.Name == b.Name:
		case o.movable():
			next := *o
			open = append(open, &next)
		default:
			trial.put(o)
		}
	}
	moved := []*booking{b}
	if b.movable() {
		next := *b
		open, moved = append(open, &next), nil
	} else if trial.fits(b) {
		trial.put(b)
	} else {
		return nil, false
	}
	slices.SortFunc(open, func(a, b *booking) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.Name, b.Name))
	})
	for _, o := range open {
		cores, ok := trial.choose(o, o.Cores.Count())
		if !ok {
			return nil, false
		}
		if o.Name == b.Name || !cores.Equal(o.Cores) {
			moved = append(moved, o)
		}
		o.Cores = cores
		trial.put(o)
	}
	return moved, true
}

// putAll writes bookings that fit once all of them are written.
func (t *table) putAll(all []*booking) {
	for _, b := range all {
		t.drop(b.Name)
	}
	for _, b := range all {
		t.put(b)
	}
}

// put writes a booking, in place of one of the same name. It must fit.
func (t *table) put(b *booking) {
	t.drop(b.Name)
	t.bookings[b.Name] = b
	t.nextEnd = min(t.nextEnd, b.End)
	if promise, generation, ok := site.Name(b.Name).Promise(t.site); ok {
		t.generations[promise] = append(t.generations[promise], generation)
	}
	t.each(b, func(core berth.PE) {
		spans := t.byCore[core]
		t.byCore[core] = slices.Insert(spans, find(spans, b.Start), span{start: b.Start, end: b.End, name: b.Name})
	})
}

// drop takes a booking away, if it is there.
func (t *table) drop(name string) {
	b := t.bookings[name]
	if b == nil {
		return
	}
	delete(t.bookings, name)
	if promise, generation, ok := site.Name(name).Promise(t.site); ok {
		kept := slices.DeleteFunc(t.generations[promise], func(g uint64) bool { return g == generation })
		t.generations[promise] = kept
		if len(kept) == 0 {
			delete(t.generations, promise)
		}
	}
	t.each(b, func(core berth.PE) {
		spans := t.byCore[core]
		if at := find(spans, b.Start); at < len(spans) && spans[at].name == name {
			t.byCore[core] = slices.Delete(spans, at, at+1)
		}
	})
}

// each calls for the cores that this machine still has: a booking from before
// may name more.
func (t *table) each(b *booking, do func(berth.PE)) {
	for _, r := range b.Cores.Runs() {
		for core := r.Lo; core < min(r.Hi, berth.PE(len(t.byCore))); core++ {
			do(core)
		}
	}
}
