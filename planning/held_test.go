package planning_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/planning"
	"github.com/berth-hpc/berth/workload"
)

// At every second as many PEs are held as the bookings together hold, but no more than the
// machine has, and what is returned is as short as it can be.
func TestHeldCountsEachSecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pes := berth.Count(rapid.IntRange(1, 9).Draw(t, "pes"))
		var bookings []workload.Booking
		for range rapid.IntRange(0, 8).Draw(t, "bookings") {
			start := berth.Time(rapid.IntRange(0, 30).Draw(t, "start"))
			bookings = append(bookings, workload.Booking{NPE: berth.Count(rapid.IntRange(0, 6).Draw(t, "npe")), Start: start, End: start.Add(berth.Duration(rapid.IntRange(0, 12).Draw(t, "length")))})
		}
		count := func(list []workload.Booking, at berth.Time) (n berth.Count) {
			for _, b := range list {
				if b.Start <= at && at < b.End {
					n += b.NPE
				}
			}
			return n
		}
		held := planning.Held(bookings, pes)
		for at := berth.Time(-1); at < 50; at++ {
			if is, want := count(held, at), min(pes, count(bookings, at)); is != want {
				t.Fatalf("at %d %d PEs are held, want %d: %+v", at, is, want, held)
			}
		}
		for i := 1; i < len(held); i++ {
			if held[i].Start < held[i-1].End || held[i].Start == held[i-1].End && held[i].NPE == held[i-1].NPE {
				t.Fatalf("%+v and %+v are not apart", held[i-1], held[i])
			}
		}
		if err := workload.CheckFit(held, pes); err != nil {
			t.Fatal(err)
		}
	})
}
