package calendar_test

import (
	"reflect"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// A View has the questions only, and nothing by which to reach its calendar.
func TestViewCannotChange(t *testing.T) {
	c := calendar.NewFast(4, berth.Late)
	var view any = calendar.ViewOf(c)
	if _, ok := view.(interface{ Add(calendar.Block) error }); ok {
		t.Error("a View can add")
	}
	if _, ok := view.(interface{ Remove(calendar.Block) error }); ok {
		t.Error("a View can remove")
	}
	if _, ok := view.(interface{ Prune(berth.Time) }); ok {
		t.Error("a View can prune")
	}
	shape := reflect.TypeFor[calendar.View]()
	for field := range shape.Fields() {
		if field.IsExported() {
			t.Errorf("field %s leads to the calendar", field.Name)
		}
	}
}

// A View shows the present bookings, and two Views of one calendar are equal.
func TestViewIsLive(t *testing.T) {
	c := calendar.NewFast(4, berth.Late)
	view := calendar.ViewOf(c)
	if err := c.Add(calendar.Block{Start: 0, End: 10, NPE: 3}); err != nil {
		t.Fatal(err)
	}
	if free, _ := view.Free(berth.Interval{Start: 2, End: 3}); free != 1 {
		t.Errorf("%d PEs are free, want 1", free)
	}
	if fit, ok := view.Earliest(calendar.Query{Deadline: berth.Forever, Duration: 5, NPE: 2}); !ok || fit.Start != 10 {
		t.Errorf("earliest %+v, %t, want 10", fit, ok)
	}
	if view != calendar.ViewOf(c) || view == calendar.ViewOf(calendar.NewFast(4, berth.Late)) {
		t.Error("Views are equal if and only if their calendars are the same")
	}
}
