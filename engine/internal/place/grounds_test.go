package place

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine/internal/state"
)

// What is free within a share is, at each second, the least of what is free and what the share leaves. Who stops
// reading has the first of its steps.
func TestSharedIsTheLeastOfBoth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size, end = 8, 60
		booked, promised := calendar.NewFast(size, berth.Late), new(state.Promised)
		for range rapid.IntRange(0, 8).Draw(t, "bookings") {
			start := berth.Time(rapid.IntRange(0, end-2).Draw(t, "start"))
			b := calendar.Block{Start: start, End: start + 1 + berth.Time(rapid.IntRange(0, int(end-2-start)).Draw(t, "length")), NPE: berth.Count(rapid.IntRange(1, size).Draw(t, "pes"))}
			if booked.Add(b) == nil && rapid.Bool().Draw(t, "own") {
				promised.Add(b.Start, b.End, b.NPE)
			}
		}
		most := berth.Count(rapid.IntRange(0, size).Draw(t, "most"))
		view := shared{late{booked}, share{most: most, steps: promised}}
		var records []calendar.Record
		for r := range view.Records() {
			if n := len(records); n > 0 && r.Time <= records[n-1].Time {
				t.Fatalf("%d follows %d", r.Time, records[n-1].Time)
			}
			records = append(records, r)
		}
		for now := berth.Time(-1); now <= end; now++ {
			got := berth.Count(-1)
			for _, r := range records {
				if r.Time <= now {
					got = r.Free
				}
			}
			free, _ := booked.Free(berth.Interval{Start: now, End: now + 1})
			if want := max(0, min(free, most-promised.At(now))); got != want {
				t.Fatalf("%d are free at %d, want %d", got, now, want)
			}
		}
		from, until := records[len(records)/3].Time, records[len(records)-1].Time
		for at := range view.Changes(berth.Interval{Start: from + 1, End: until}) {
			if i := slices.IndexFunc(records, func(r calendar.Record) bool { return r.Time > from }); i < 0 || records[i].Time != at {
				t.Fatalf("the change at %d follows %d", at, from)
			}
			from = at
		}
		if i := slices.IndexFunc(records, func(r calendar.Record) bool { return r.Time > from }); i >= 0 && records[i].Time < until {
			t.Fatalf("no change is told between %d and %d", from, until)
		}
		stop := rapid.IntRange(1, len(records)).Draw(t, "stop")
		read := 0
		for r := range view.Records() {
			if r.Time != records[read].Time {
				t.Fatalf("record %d is at %d, want %d", read, r.Time, records[read].Time)
			}
			if read++; read == stop {
				break
			}
		}
	})
}
