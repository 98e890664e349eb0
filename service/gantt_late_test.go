package service

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
)

// Whatever promises under late binding there are, their provisional bars hold each PE once
// at a time and none that is out of use, the lowest that are idle, and together with what
// could not be placed all that was promised.
func TestProvisionalBars(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := &berth.Pool{PEs: berth.Count(rapid.IntRange(1, 12).Draw(t, "PEs"))}
		var fixed, bars, unplaced []Bar
		for i := range rapid.IntRange(0, 3).Draw(t, "outages") {
			first := rapid.IntRange(0, int(pool.PEs)-1).Draw(t, "first")
			from := berth.Time(rapid.IntRange(0, 20).Draw(t, "from"))
			fixed = append(fixed, Bar{Start: from, End: from + 5, First: berth.PE(first), PEs: 1, Class: ClassOutage, Number: uint32(i)})
		}
		for pe := range pool.PEs { // that have names already
			for from, i := berth.Time(0), uint32(0); from < 25; i++ {
				from += berth.Time(rapid.IntRange(0, 15).Draw(t, "pause"))
				b := Bar{Start: from, End: from + berth.Time(rapid.IntRange(1, 6).Draw(t, "time")), First: berth.PE(pe), PEs: 1, Class: ClassPromise, Number: 1000 + 100*uint32(pe) + i}
				fixed, from = append(fixed, b), b.End
			}
		}
		var late []unbound
		owed := map[uint32]berth.Count{}
		for i := range rapid.IntRange(0, 8).Draw(t, "promises") {
			start := berth.Time(rapid.IntRange(0, 20).Draw(t, "start"))
			npe := berth.Count(rapid.IntRange(1, int(pool.PEs)).Draw(t, "npe"))
			number := uint32(100 + i)
			late = append(late, unbound{Bar{Start: start, End: start + berth.Time(rapid.IntRange(1, 9).Draw(t, "length")), PEs: npe, Number: number, Class: ClassPromise}, uint64(number), 0})
			owed[number] = npe
		}
		slices.SortFunc(late, compareUnbound)
		bars, unplaced = layOut(pool, [][]Bar{nil, fixed}, late)
		bars = append(bars, fixed...)
		for _, u := range unplaced {
			owed[u.Number] -= u.PEs
		}
		starts, ends := map[uint32]berth.Time{}, map[uint32]berth.Time{}
		for i := range late {
			ends[late[i].Number] = late[i].End
		}
		for _, b := range bars {
			if b.Class == ClassOutage || b.Number >= 1000 {
				continue
			}
			if b.Flags != Provisional {
				t.Fatalf("%+v is not provisional", b)
			}
			owed[b.Number] -= b.PEs
			starts[b.Number] = b.Start
			if b.First < 0 || berth.Count(b.First)+b.PEs > pool.PEs {
				t.Fatalf("%+v is outside of the pool", b)
			}
		}
		for number, left := range owed {
			if left != 0 {
				t.Fatalf("%d PEs of %d are nowhere", left, number)
			}
		}
		// The plain form: at the start of each promise, who has each PE?
		has := func(pe berth.PE, at berth.Time) (promises []uint32, down bool) {
			for _, b := range bars {
				if b.First <= pe && pe < b.First+berth.PE(b.PEs) && b.Start <= at && at < b.End {
					if b.Class == ClassOutage {
						down = true
					} else {
						promises = append(promises, b.Number)
					}
				}
			}
			return promises, down
		}
		// named reports whether a PE has another owner before a promise ends.
		named := func(pe berth.PE, number uint32) bool {
			return slices.ContainsFunc(fixed, func(b Bar) bool {
				return b.Class == ClassPromise && b.First == pe && b.Start < ends[number] && b.End > starts[number]
			})
		}
		for number, start := range starts {
			highest := berth.PE(-1)
			for pe := range berth.PE(pool.PEs) {
				holders, down := has(pe, start)
				if len(holders) > 1 {
					t.Fatalf("PE %d is held by %v at %d", pe, holders, start)
				}
				if len(holders) == 1 && holders[0] == number {
					if highest = pe; down || named(pe, number) {
						t.Fatalf("%d gets PE %d, which is out of use at %d", number, pe, start)
					}
				}
			}
			for pe := range highest {
				if holders, down := has(pe, start); len(holders) == 0 && !down && !named(pe, number) {
					t.Fatalf("%d gets PE %d at %d, and %d is idle", number, highest, start, pe)
				}
			}
			for _, u := range unplaced {
				if u.Number != number {
					continue
				}
				for pe := range berth.PE(pool.PEs) {
					if holders, down := has(pe, start); len(holders) == 0 && !down && !named(pe, number) {
						t.Fatalf("%d lacks PEs at %d, and %d is idle", number, start, pe)
					}
				}
			}
		}
	})
}
