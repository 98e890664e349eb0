package calendar_test

import (
	"fmt"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/policy"
)

// Of eight PEs four are taken from 10 to 30: where three fit for 15 s, and what
// two placements choose.
func ExampleCalendar() {
	pool := calendar.NewFast(8, berth.Early)
	taken := berth.NewPESet(berth.Run{Lo: 0, Hi: 4})
	if err := pool.Add(calendar.Block{Start: 10, End: 30, NPE: 4, PEs: taken}); err != nil {
		fmt.Println(err)
		return
	}
	query := calendar.Query{Ready: 0, Deadline: 60, Duration: 15, NPE: 3}
	for r, pes := range pool.Rectangles(query) {
		fmt.Printf("from %d: PEs %s are free in [%d,%d)\n", r.Start, pes, r.Begin, r.End)
	}
	for _, rule := range []calendar.Rule{policy.FirstFit{}, policy.PEWorst{}} {
		fit, _ := pool.Find(query, rule)
		fmt.Printf("%T: from %d on PEs %s\n", rule, fit.Start, fit.PEs)
	}
	// Output:
	// from 0: PEs 4-7 are free in [0,60)
	// from 10: PEs 4-7 are free in [0,60)
	// from 15: PEs 4-7 are free in [0,60)
	// from 30: PEs 0-7 are free in [30,60)
	// from 45: PEs 0-7 are free in [30,60)
	// policy.FirstFit: from 0 on PEs 4-6
	// policy.PEWorst: from 30 on PEs 0-2
}

// A query without a deadline says so; one that leaves it out is told, and not
// mistaken for one that does not fit.
func ExampleSearch() {
	pool := calendar.NewFast(8, berth.Late)
	for _, query := range []calendar.Query{
		{Deadline: berth.Forever, Duration: 15, NPE: 3},
		{Deadline: berth.Forever, Duration: 15, NPE: 9},
		{Duration: 15, NPE: 3},
	} {
		fit, ok, err := calendar.Search(pool, query, policy.FirstFit{})
		switch {
		case err != nil:
			fmt.Println(err)
		case !ok:
			fmt.Println("no room")
		default:
			fmt.Printf("from %d to %d\n", fit.Start, fit.End)
		}
	}
	// Output:
	// from 0 to 15
	// no room
	// deadline: 0 is before ready + duration = 15; give berth.Forever for no deadline
}
