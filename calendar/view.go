package calendar

import (
	"iter"

	"github.com/berth-hpc/berth"
)

// View shows a calendar to code that may ask but not change it: it has the
// questions of a Reader, and the calendar behind it cannot be reached. A View
// always shows the present bookings. It is small, to be passed by value; two
// Views of one calendar are equal. The zero View shows no calendar, and its
// methods panic, as those of a nil Reader do.
type View struct{ of Reader }

// ViewOf returns a View of a calendar.
func ViewOf(r Reader) View { return View{r} }

// Size returns the number of PEs.
func (v View) Size() berth.Count { return v.of.Size() }

// Binding says when bookings get the numbers of their PEs.
func (v View) Binding() berth.Binding { return v.of.Binding() }

// Find returns the best feasible start, see Reader.
func (v View) Find(q Query, rule Rule) (Fit, bool) { return v.of.Find(q, rule) }

// Earliest returns the earliest feasible start.
func (v View) Earliest(q Query) (Fit, bool) { return Earliest(v.of, q) }

// MostFree returns how far a query is from fitting, see Reader.
func (v View) MostFree(q Query) (free berth.Count, start berth.Time) { return v.of.MostFree(q) }

// Rectangles yields the rectangles of the feasible candidates, see Reader.
func (v View) Rectangles(q Query) iter.Seq2[berth.Rectangle, berth.PESet] { return v.of.Rectangles(q) }

// Free returns what is free throughout an interval, see Reader.
func (v View) Free(iv berth.Interval) (berth.Count, berth.PESet) { return v.of.Free(iv) }

// Records yields the canonical records in order of time.
func (v View) Records() iter.Seq[Record] { return v.of.Records() }

// Changes yields the times of the records within an interval, see Reader.
func (v View) Changes(iv berth.Interval) iter.Seq[berth.Time] { return v.of.Changes(iv) }

var _ Reader = View{}
