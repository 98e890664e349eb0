//go:build linux

package local

import (
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// counts is how many cores bookings take at every instant of a short time.
func counts(bookings map[string]*booking) (taken [80]berth.Count) {
	for _, b := range bookings {
		for at := b.Start; at < b.End; at++ {
			taken[at] += b.Cores.Count()
		}
	}
	return taken
}

// What is booked by count fits whenever enough cores are free at each instant,
// whatever cores were shown before, also beside what was launched on any cores.
func TestCountedBookingsFitIfThereIsRoom(t *testing.T) {
	const cores = 4
	rapid.Check(t, func(t *rapid.T) {
		table := newTable("s", cores)
		write := func(t *rapid.T, b *booking) {
			all, ok := table.fit(b)
			if !ok {
				t.Fatalf("no room for %+v among %+v", *b, table.bookings)
			}
			table.putAll(all)
		}
		now := berth.Time(0)
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"book": func(t *rapid.T) {
				start := now + berth.Time(rapid.IntRange(0, 15).Draw(t, "start"))
				b := &booking{Name: string(site.NameOf("s", strconv.Itoa(next), 1)), Start: start, End: start + berth.Time(rapid.IntRange(1, 12).Draw(t, "length")), Counted: true}
				n := berth.Count(rapid.IntRange(1, 3).Draw(t, "cores"))
				taken := counts(table.bookings)
				if slices.Max(taken[b.Start:b.End])+n > cores {
					return
				}
				next++
				b.Cores = berth.NewPESet(berth.Run{Lo: 0, Hi: berth.PE(n)})
				write(t, b)
			},
			"launch": func(t *rapid.T) { // all that begin now, on cores of the caller's choice
				now = min(now+1, 40)
				for _, b := range table.ended(now) {
					table.drop(b.Name)
				}
				var open []*booking
				var taken berth.PESet
				for _, b := range table.bookings {
					if b.movable() && b.Start <= now && b.End > now {
						open = append(open, b)
					} else if !b.movable() && b.End > now {
						taken = union(taken, b.Cores)
					}
				}
				slices.SortFunc(open, func(a, b *booking) int { return int(a.Start - b.Start) })
				free := rapid.Permutation([]berth.PE{0, 1, 2, 3}).Draw(t, "order")
				free = slices.DeleteFunc(free, taken.Contains)
				for _, b := range open {
					l := *b
					n := l.Cores.Count()
					l.Cores, l.Launched = berth.PEsOf(free[:n]...), true
					free = free[n:]
					write(t, &l)
				}
			},
			"": func(t *rapid.T) {
				for at, n := range counts(table.bookings) {
					var all berth.PESet
					for _, b := range table.bookings {
						if b.Start <= berth.Time(at) && berth.Time(at) < b.End {
							all = union(all, b.Cores)
						}
					}
					if all.Count() != n {
						t.Fatalf("at %d two bookings share a core: %+v", at, table.bookings)
					}
				}
			},
		})
	})
}

// What changes together is read as it was written.
func TestBookingsThatMoveTogetherAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bookings")
	table, drain := newTable("s", 2), note{}
	log, err := openLog(path, table, &drain)
	if err != nil {
		t.Fatal(err)
	}
	name := func(i int) string { return string(site.NameOf("s", strconv.Itoa(i), 1)) }
	// The first two are shown on cores 0 and 1; what lies over both needs one of
	// them to move.
	first := &booking{Name: name(1), Start: 10, End: 20, Cores: berth.PEsOf(0), Counted: true}
	second := &booking{Name: name(2), Start: 30, End: 40, Cores: berth.PEsOf(1), Counted: true}
	over := &booking{Name: name(3), Start: 15, End: 35, Cores: berth.PEsOf(0), Counted: true}
	for _, b := range []*booking{first, second, over} {
		all, ok := table.fit(b)
		if !ok {
			t.Fatalf("no room for %s", b.Name)
		}
		if err := log.write(record{Together: all}); err != nil {
			t.Fatal(err)
		}
		table.putAll(all)
	}
	if err := log.close(); err != nil {
		t.Fatal(err)
	}
	again := newTable("s", 2)
	if log, err = openLog(path, again, &drain); err != nil {
		t.Fatal(err)
	}
	if err := log.close(); err != nil {
		t.Fatal(err)
	}
	for n, b := range table.bookings {
		if got := again.bookings[n]; got == nil || !got.Cores.Equal(b.Cores) || got.Counted != b.Counted {
			t.Errorf("%s: %+v, want %+v", n, got, b)
		}
	}
	if a, b := table.bookings[name(2)].Cores, table.bookings[name(3)].Cores; a.Equal(b) {
		t.Errorf("the second and the one over both share cores %s", a)
	}
}
