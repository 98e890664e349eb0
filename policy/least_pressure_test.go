package policy_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/policy"
)

// pressed is a calendar of ten PEs with these bookings, under late binding.
func pressed(t *testing.T, blocks ...calendar.Block) calendar.Calendar {
	t.Helper()
	c := calendar.NewFast(10, berth.Late)
	for _, b := range blocks {
		if err := c.Add(b); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// With nine of ten PEs booked until 10, a narrow request waits for the room behind, where
// first-fit takes the last PE.
func TestLeastPressureLeavesTheLastPE(t *testing.T) {
	c := pressed(t, calendar.Block{Start: 0, End: 10, NPE: 9})
	q := calendar.Query{Deadline: 40, Duration: 10, NPE: 1}
	first, _ := c.Find(q, policy.FirstFit{})
	fit, ok := c.Find(q, policy.LeastPressure{})
	if first.Start != 0 || !ok || fit.Start != 10 {
		t.Errorf("first-fit starts at %d and least-pressure at %d, %t; want 0 and 10", first.Start, fit.Start, ok)
	}
}

// Where little is booked, it does not wait.
func TestLeastPressureTakesWhatIsNear(t *testing.T) {
	c := pressed(t, calendar.Block{Start: 0, End: 10, NPE: 1})
	q := calendar.Query{Deadline: 40, Duration: 10, NPE: 8}
	if fit, ok := c.Find(q, policy.LeastPressure{}); !ok || fit.Start != 0 {
		t.Errorf("starts at %d, %t; want 0", fit.Start, ok)
	}
}

// The wider a request, the less it waits.
func TestLeastPressureWaitsLessTheWiderTheRequest(t *testing.T) {
	c := pressed(t, calendar.Block{Start: 0, End: 10, NPE: 3})
	start := func(npe berth.Count) berth.Time {
		fit, ok := c.Find(calendar.Query{Deadline: 60, Duration: 10, NPE: npe}, policy.LeastPressure{})
		if !ok {
			t.Fatalf("%d PEs have no room", npe)
		}
		return fit.Start
	}
	if narrow, wide := start(1), start(7); narrow != 10 || wide != 0 {
		t.Errorf("1 PE starts at %d and 7 at %d, want 10 and 0", narrow, wide)
	}
}

// Of starts with equal keys the earliest is taken: on an empty calendar only the distance
// counts, and it is 0 at the ready time that is now. The key there is 0.
func TestLeastPressureOfAnEmptyCalendar(t *testing.T) {
	c := pressed(t)
	if fit, ok := c.Find(calendar.Query{Deadline: 1000, Duration: 10, NPE: 10}, policy.LeastPressure{}); !ok || fit.Start != 0 || fit.Key != 0 {
		t.Errorf("%+v, %t; want the start and the key 0", fit, ok)
	}
	far := calendar.Query{Deadline: 1 << 41, Duration: 1, NPE: 1}
	far.Ready = far.Deadline - 3 // each start rounds to the same key
	if fit, ok := c.Find(far, policy.LeastPressure{}); !ok || fit.Start != far.Ready {
		t.Errorf("%+v, %t; want the start %d", fit, ok, far.Ready)
	}
}

// The key is the formula, whatever the sizes: within 0 and 7 shares of 1, and no less where
// more is booked, less is free or the start is later.
func TestLeastPressureGrowsWithWhatIsInTheWay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := calendar.Load{
			Duration: berth.Duration(rapid.Int64Range(1, berth.TimeLimit-1).Draw(t, "duration")),
			PEs:      berth.Count(rapid.Int32Range(1, berth.MaxPEs).Draw(t, "PEs")),
		}
		l.NPE = berth.Count(rapid.Int32Range(1, int32(l.PEs)).Draw(t, "npe"))
		l.Free = berth.Count(rapid.Int32Range(int32(l.NPE), int32(l.PEs)).Draw(t, "free"))
		l.Booked = rapid.Int64Range(0, berth.Area(l.PEs, l.Duration)).Draw(t, "booked")
		l.Now = berth.Time(rapid.Int64Range(1-berth.TimeLimit, berth.TimeLimit-1).Draw(t, "now"))
		l.Start = l.Now + berth.Time(rapid.Int64Range(0, berth.TimeLimit-1-int64(l.Now)).Draw(t, "away"))
		key := policy.LeastPressure{}.Weigh(l)
		if key < 0 || key > 7<<30 {
			t.Fatalf("the key of %+v is %d, not between 0 and 7·2^30", l, key)
		}
		more := l
		more.Booked = rapid.Int64Range(l.Booked, berth.Area(l.PEs, l.Duration)).Draw(t, "more booked")
		more.Free = berth.Count(rapid.Int32Range(int32(l.NPE), int32(l.Free)).Draw(t, "less free"))
		more.Start = l.Start + berth.Time(rapid.Int64Range(0, berth.TimeLimit-1-int64(l.Start)).Draw(t, "later"))
		if worse := (policy.LeastPressure{}).Weigh(more); worse < key {
			t.Fatalf("the key of %+v is %d, of %+v only %d", l, key, more, worse)
		}
	})
}

// The numbers of the formula, once: half of the machine is booked for half of the time.
func TestLeastPressureFormula(t *testing.T) {
	l := calendar.Load{NPE: 2, Duration: 10, Start: 40, PEs: 8, Free: 4, Booked: 20}
	const one = 1 << 30
	if got, want := (policy.LeastPressure{}).Weigh(l), int64(one/4+one/2+one/2+one/2); got != want {
		t.Errorf("the key is %d, want %d", got, want)
	}
}
