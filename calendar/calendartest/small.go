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
// to three bookings can make, in every order of them, and asks each different
// one every small query.
func smallCases(t *testing.T, form calendar.New, binding berth.Binding) {
	for size := berth.Count(1); size <= 2; size++ {
		s := &small{t: t, form: form, blocks: smallBlocks(size, binding), seen: map[string]bool{}}
		s.grow(form(size, binding), newModel(size, binding, 0, smallSeconds), 3)
		if least := 15; len(s.seen) < least {
			t.Fatalf("only %d different calendars of %d PEs", len(s.seen), size)
		}
	}
}

// smallBlocks lists every block.
func smallBlocks(size berth.Count, binding berth.Binding) []calendar.Block {
	var list []calendar.Block
	for start := range berth.Time(smallSeconds) {
		for end := start + 1; end <= smallSeconds; end++ {
			if binding == berth.Late {
				for n := berth.Count(1); n <= size; n++ {
					list = append(list, calendar.Block{Start: start, End: end, NPE: n})
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
				list = append(list, calendar.Block{Start: start, End: end, NPE: berth.Count(len(pes)), PEs: berth.PEsOf(pes...)})
			}
		}
	}
	return list
}

type small struct {
	t      *testing.T
	form   calendar.New
	blocks []calendar.Block
	seen   map[string]bool
}

// grow checks a calendar, and then every one that is a booking away from it; in
// the end the calendar is what it was.
func (s *small) grow(c calendar.Calendar, m *model, left int) {
	checkState(s.t, c, m)
	if key := fmt.Sprint(m.records()); !s.seen[key] {
		s.seen[key] = true
		s.ask(c, m)
	}
	if left == 0 {
		return
	}
	for _, b := range s.blocks {
		if !m.canAdd(b) {
			wantCode(s.t, "Add", c.Add(b), berth.Conflict)
			wantRecords(s.t, c, m.records())
			continue
		}
		wantCode(s.t, "Add", c.Add(b), "")
		grown := m.clone()
		grown.add(b)
		s.grow(c, grown, left-1)
		wantCode(s.t, "Remove", c.Remove(b), "")
		checkState(s.t, c, m)
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
