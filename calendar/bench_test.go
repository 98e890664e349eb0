package calendar_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/policy"
)

// load is a calendar with a number of bookings, and a request for it.
type load struct {
	form     calendar.Form
	binding  berth.Binding
	pes      berth.Count
	bookings int
}

func (l load) name() string {
	return fmt.Sprintf("form=%s/binding=%s/pes=%d/bookings=%d", l.form.Name, l.binding, l.pes, l.bookings)
}

// loads lists every form and binding at sizes in steps of ten and sixteen.
func loads(pes, bookings []int) []load {
	var list []load
	for _, form := range calendar.Forms {
		for _, binding := range []berth.Binding{berth.Early, berth.Late} {
			for _, p := range pes {
				for _, n := range bookings {
					list = append(list, load{form, binding, berth.Count(p), n})
				}
			}
		}
	}
	return list
}

var (
	benchPEs      = []int{64, 1024, 16384}
	benchBookings = []int{100, 1_000, 10_000}
)

// The PEs are split into lanes of equal width, and every booking is one lane
// from the end of the one before it, after a gap: on average half of the PEs
// are busy, and each border is a record of its own.
const (
	lanes    = 32
	meanSpan = 7230 // of bookings and of gaps, that of the workloads
)

// fill makes the calendar, which ends at the returned time.
func (l load) fill(t rapid.TB) (c calendar.Calendar, end berth.Time) {
	c = l.form.New(l.pes, l.binding)
	rng := rand.New(rand.NewPCG(42, 1))
	width := berth.PE(l.pes) / lanes
	var busyUntil [lanes]berth.Time
	for i := range l.bookings {
		lane := i % lanes
		start := busyUntil[lane] + berth.Time(rng.IntN(2*meanSpan))
		busyUntil[lane] = start + 1 + berth.Time(rng.IntN(2*meanSpan))
		b := calendar.Block{Start: start, End: busyUntil[lane], NPE: berth.Count(width)}
		lo := berth.PE(lane) * width
		b.PEs = berth.NewPESet(berth.Run{Lo: lo, Hi: lo + width})
		if err := c.Add(b); err != nil {
			t.Fatalf("booking %d: %v", i, err)
		}
		end = max(end, busyUntil[lane])
	}
	return c, end
}

// query asks for a quarter of the PEs in the middle of the calendar.
func (l load) query(end berth.Time) calendar.Query {
	const duration = 3600
	return calendar.Query{
		Now: 0, Ready: end / 2, Deadline: end/2 + 4*duration, Duration: duration, NPE: l.pes / 4,
	}
}

// find makes a calendar and a query that some start in its window fits, and
// checks the answer of every placement against the plain form's.
func (l load) find(t rapid.TB) (calendar.Calendar, calendar.Query) {
	c, end := l.fill(t)
	q := l.query(end)
	plain := l
	plain.form, _ = calendar.FormNamed("plain")
	oracle, _ := plain.fill(t)
	for _, row := range policy.Placements {
		want, ok := oracle.Find(q, row.Placement)
		if !ok {
			t.Fatalf("%s: %s finds nothing", l.name(), row.Name)
		}
		if got, ok := c.Find(q, row.Placement); !ok || got.Start != want.Start || got.Key != want.Key || !got.PEs.Equal(want.PEs) {
			t.Fatalf("%s: %s finds %+v, %t, want %+v", l.name(), row.Name, got, ok, want)
		}
	}
	return c, q
}

// add makes a calendar and a block that fits in the middle of it, and checks
// that adding it makes a difference and removing it takes that back.
func (l load) add(t rapid.TB) (calendar.Calendar, calendar.Block) {
	c, q := l.find(t)
	fit, _ := calendar.Earliest(c, q)
	b := calendar.Block{Start: fit.Start, End: fit.End, NPE: q.NPE, PEs: fit.PEs}
	run := berth.Interval{Start: b.Start, End: b.End}
	before, _ := c.Free(run)
	if err := c.Add(b); err != nil {
		t.Fatalf("%s: %v", l.name(), err)
	}
	if free, _ := c.Free(run); free != before-b.NPE {
		t.Fatalf("%s: %d PEs are free after Add, want %d", l.name(), free, before-b.NPE)
	}
	if err := c.Remove(b); err != nil {
		t.Fatalf("%s: %v", l.name(), err)
	}
	if free, _ := c.Free(run); free != before {
		t.Fatalf("%s: %d PEs are free after Remove, want %d", l.name(), free, before)
	}
	return c, b
}

// The inputs of the benchmarks at their smallest size.
func TestBenchmarkInputs(t *testing.T) {
	for _, l := range loads(benchPEs[:1], benchBookings[:1]) {
		t.Run(l.name(), func(t *testing.T) { l.add(t) })
	}
}

// BenchmarkFind asks for a fit around the middle of the calendar, with a
// deadline four durations on.
func BenchmarkFind(b *testing.B) {
	for _, l := range loads(benchPEs, benchBookings) {
		for _, rule := range []string{"first-fit", "pe-worst", "area-best"} {
			b.Run(fmt.Sprintf("rule=%s/%s", rule, l.name()), func(b *testing.B) {
				placement, ok := policy.PlacementNamed(rule)
				if !ok {
					b.Fatalf("no placement is named %q", rule)
				}
				c, q := l.find(b)
				for b.Loop() {
					c.Find(q, placement)
				}
			})
		}
	}
}

// BenchmarkAdd adds a block in the middle of the calendar and removes it.
func BenchmarkAdd(b *testing.B) {
	for _, l := range loads(benchPEs, benchBookings) {
		b.Run(l.name(), func(b *testing.B) {
			c, block := l.add(b)
			for b.Loop() {
				if err := c.Add(block); err != nil {
					b.Fatal(err)
				}
				if err := c.Remove(block); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
