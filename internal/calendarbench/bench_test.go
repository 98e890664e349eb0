package main

import (
	"container/heap"
	"slices"
	"testing"

	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/calendar/calendartest"
)

// Every row at its smallest size: all forms admit the same requests at the
// same starts, filling and in the steady state.
func TestRowsAtTheirSmallestSize(t *testing.T) {
	for _, r := range rows() {
		t.Run(r.name(), func(t *testing.T) {
			r.workload.Requests, r.steps = 300, 100
			var want *run
			for _, form := range calendar.Forms {
				u := r.begin(form)
				stream := &running{}
				for i := range r.workload.Requests {
					if r.workload.Mode == calendartest.Stream {
						if err := stream.giveBack(u); err != nil {
							t.Fatal(err)
						}
					}
					if err := u.admit(); err != nil {
						t.Fatal(err)
					}
					heap.Push(stream, ending{u.live[i].End, i})
				}
				if r.workload.Mode != calendartest.Stream {
					for i := range r.steps {
						if err := u.drop(i); err != nil {
							t.Fatal(err)
						}
						if err := u.admit(); err != nil {
							t.Fatal(err)
						}
					}
				}
				if u.admitted == 0 {
					t.Fatalf("%s admits nothing", form.Name)
				}
				if want == nil {
					want = u
				} else if u.starts != want.starts || u.admitted != want.admitted {
					t.Errorf("%s: %d starts add up to %d, want %d and %d", form.Name, u.admitted, u.starts, want.admitted, want.starts)
				}
			}
		})
	}
}

// A row of the page is what was measured, in the columns of the table.
func TestRowsForThePage(t *testing.T) {
	r := rows()[1]
	got := r.cells(&figures{fill: 1908250.6, steady: 1081373, perLive: 29.6, starts: 17}, &figures{fill: 867, done: 6976, within: 1})
	want := []string{r.name(), "1,500,000", "1,908,251", "1,081,373", "30", "867 (first 6,976)", "17"}
	if !slices.Equal(got, want) || len(got) != len(recorded.Columns) {
		t.Errorf("%q, want %q", got, want)
	}
}
