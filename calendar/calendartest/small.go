package calendartest

import (
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// smallSeconds is how long the calendars of smallCases are.
const smallSeconds = 4

// smallCases makes every calendar of one or two PEs over four seconds that up
// to three changes can make, in every order of them, and asks each different
// one every small query.
func smallCases(t *testing.T, form calendar.New, binding berth.Binding) {
	for size := berth.Count(1); size <= 2; size++ {
		s := &small{t: t, form: form, changes: smallChanges(size, binding), seen: map[string]bool{}}
		s.grow(form(size, binding), newModel(size, binding, 0, smallSeconds), 3)
		if least := 15; len(s.seen) < least {
			t.Fatalf("only %d different calendars of %d PEs", len(s.seen), size)
		}
	}
}

// change is a block to add, or under late binding a change of capacity.
type change struct {
	block  calendar.Block
	resize bool
	iv     berth.Interval
	by     berth.Count
}

// smallChanges lists every block, and under late binding every loss of one PE.
func smallChanges(size berth.Count, binding berth.Binding) []change {
	var list []change
	for start := range berth.Time(smallSeconds) {
		for end := start + 1; end <= smallSeconds; end++ {
			if binding == berth.Late {
				for n := berth.Count(1); n <= size; n++ {
					list = append(list, change{block: calendar.Block{Start: start, End: end, NPE: n}})
				}
				continue
			}
			for mask := 1; mask < 1<<size; mask++ {
				var pes []berth.PE
				for pe := berth.PE(0); pe < berth.PE(size); pe++ {
					if mask>>pe&1 == 1 {
						pes = append(pes, pe)
					}
				}
				b := calendar.Block{Start: start, End: end, NPE: berth.Count(len(pes)), PEs: berth.PEsOf(pes...)}
				list = append(list, change{block: b})
			}
		}
		if binding == berth.Late {
			list = append(list,
				change{resize: true, iv: berth.Interval{Start: start, End: smallSeconds}, by: -1},
				change{resize: true, iv: berth.Interval{Start: start, End: berth.Forever}, by: -1})
		}
	}
	return list
}

type small struct {
	t       *testing.T
	form    calendar.New
	changes []change
	seen    map[string]bool
}

// grow checks a calendar, and then every one that is a change away from it.
func (s *small) grow(c calendar.Calendar, m *model, left int) {
	checkState(s.t, c, m)
	if key := fmt.Sprint(m.records()); !s.seen[key] {
		s.seen[key] = true
		s.ask(c, m)
	}
	if left == 0 {
		return
	}
	for _, change := range s.changes {
		next, nextModel := c.Snapshot(), m.clone()
		if change.resize {
			code := berth.Code("")
			if !m.canResize(change.iv, change.by) {
				code = berth.Invalid
			}
			wantCode(s.t, "Resize", resizer(s.t, next).Resize(change.iv, change.by), code)
			if code == "" {
				nextModel.resize(change.iv, change.by)
				s.grow(next, nextModel, left-1)
			}
			continue
		}
		code := berth.Code("")
		if !m.canAdd(change.block) {
			code = berth.Conflict
		}
		wantCode(s.t, "Add", next.Add(change.block), code)
		if code == "" {
			nextModel.add(change.block)
			s.grow(next, nextModel, left-1)
			wantCode(s.t, "Remove", next.Remove(change.block), "")
			checkState(s.t, next, m)
		} else {
			wantRecords(s.t, next, m.records())
		}
	}
}

// ask asks every query with a ready time and a duration up to three seconds.
func (s *small) ask(c calendar.Calendar, m *model) {
	for ready := berth.Time(0); ready <= 3; ready++ {
		for duration := berth.Duration(1); duration <= 3; duration++ {
			for _, slack := range []berth.Time{0, 1, 3, berth.Forever} {
				for npe := berth.Count(1); npe <= m.size; npe++ {
					q := calendar.Query{Ready: ready, Deadline: berth.Forever, Duration: duration, NPE: npe}
					if slack < berth.Forever {
						q.Deadline = ready.Add(duration) + slack
					}
					for _, q.Horizon = range []calendar.Horizon{calendar.Capped, calendar.Unbounded} {
						q.Now = 0
						checkQuery(s.t, c, m, q)
						if q.Now = ready; ready > 0 && duration == 1 {
							checkQuery(s.t, c, m, q)
						}
					}
				}
			}
		}
	}
}
