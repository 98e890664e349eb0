package service

import (
	"math/rand/v2"
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
		for _, g := range layOut(pool, [][]Bar{nil, fixed}, late, nil, nil) {
			bars, unplaced = append(bars, g.placed...), append(unplaced, g.unplaced...)
		}
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
		// goes reports whether a PE goes out of use before a promise ends.
		goes := func(pe berth.PE, number uint32) bool {
			return slices.ContainsFunc(fixed, func(b Bar) bool {
				return b.Class == ClassOutage && b.First == pe && b.Start < ends[number] && b.Start > starts[number]
			})
		}
		for number, start := range starts {
			highest := [2]berth.PE{-1, -1} // of those that stay in use, and of those that do not
			at := func(pe berth.PE) *berth.PE {
				if goes(pe, number) {
					return &highest[1]
				}
				return &highest[0]
			}
			for pe := range berth.PE(pool.PEs) {
				holders, down := has(pe, start)
				if len(holders) > 1 {
					t.Fatalf("PE %d is held by %v at %d", pe, holders, start)
				}
				if len(holders) == 1 && holders[0] == number {
					if *at(pe) = pe; down || named(pe, number) {
						t.Fatalf("%d gets PE %d, which is out of use at %d", number, pe, start)
					}
				}
			}
			for pe := range berth.PE(pool.PEs) {
				if holders, down := has(pe, start); len(holders) == 0 && !down && !named(pe, number) && (pe < *at(pe) || highest[1] >= 0 && !goes(pe, number)) {
					t.Fatalf("%d gets PEs up to %d at %d, and %d is idle", number, highest, start, pe)
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

// What is laid out on from an earlier layout is what is laid out from the beginning, and most
// of it is as it was.
func TestProvisionalBarsFollow(t *testing.T) {
	reused, all := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		pool := &berth.Pool{PEs: berth.Count(8 + r.IntN(60))}
		number := uint32(0)
		between := r.IntN(20)
		promise := func() unbound {
			number++
			start := berth.Time(1000 + r.IntN(1+400*between))
			return unbound{Bar{Start: start, End: start + berth.Time(1+r.IntN(60)), PEs: berth.Count(1 + r.IntN(8)), Number: number, Class: ClassPromise}, uint64(number), r.IntN(2)}
		}
		bar := func(class Class) Bar {
			start, first := berth.Time(900+r.IntN(200+400*between)), r.IntN(int(pool.PEs))
			return Bar{Start: start, End: start + berth.Time(1+r.IntN(100)), First: berth.PE(first), PEs: berth.Count(1 + r.IntN(min(6, int(pool.PEs)-first))), Number: 1<<30 + number, Class: class}
		}
		var late []unbound
		for range 200 + r.IntN(200) {
			late = append(late, promise())
		}
		slices.SortFunc(late, compareUnbound)
		var fixed []Bar
		legs := layOut(pool, [][]Bar{fixed}, late, nil, nil)
		for round := range 12 {
			changed := noDifferences()
			late, fixed = slices.Clone(late), slices.Clone(fixed)
			for range 1 + r.IntN(2) {
				switch r.IntN(8) {
				case 0:
					changed.outages = true
					fixed = append(fixed, bar(ClassOutage))
				case 1, 2: // beside one another they would hold PEs twice
					b := bar(ClassPromise)
					if !slices.ContainsFunc(fixed, func(o Bar) bool { return o.Start < b.End && b.Start < o.End }) {
						changed.lastFixed = max(changed.lastFixed, b.Start)
						fixed = append(fixed, b)
					}
				case 3:
					if len(fixed) > 0 {
						i := r.IntN(len(fixed))
						changed.lastFixed = max(changed.lastFixed, fixed[i].Start)
						changed.outages = changed.outages || fixed[i].Class == ClassOutage
						fixed = slices.Delete(fixed, i, i+1)
					}
				case 4, 5:
					u := promise()
					changed.late(&u)
					late, _ = insertUnbound(late, u)
				default:
					i := r.IntN(len(late))
					changed.late(&late[i])
					late = slices.Delete(late, i, i+1)
				}
			}
			next, plain := layOut(pool, [][]Bar{fixed}, late, legs, changed), layOut(pool, [][]Bar{fixed}, late, nil, nil)
			flat := func(legs []*leg) (bars []Bar) {
				for _, g := range legs {
					bars = append(bars, g.placed...)
				}
				for _, g := range legs {
					bars = append(bars, g.unplaced...)
				}
				return bars
			}
			if is, want := flat(next), flat(plain); !slices.Equal(is, want) {
				t.Fatalf("round %d: %d bars, want %d; %+v", round, len(is), len(want), changed)
			}
			for _, g := range next {
				if all++; slices.Contains(legs, g) {
					reused++
				}
			}
			legs = next
		}
	})
	if t.Logf("%d of %d legs were taken as they were", reused, all); reused < all/3 {
		t.Errorf("%d of %d legs were taken as they were, want a third", reused, all)
	}
}
