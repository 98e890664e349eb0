package wire

import (
	"reflect"

	"github.com/berth-hpc/berth"
)

func seriesRef(c *Coder, s *berth.SeriesRef) {
	Name(c, 1, &s.Series)
	Int(c, 2, &s.Number)
	c.End()
}

// Series is the form of a series. The ready time of an occurrence is written as its distance from the one before
// it, and its deadline as that from its ready time.
func Series(c *Coder, s *berth.Series) {
	String(c, 1, &s.ID)
	String(c, 2, &s.Rule)
	Name(c, 3, &s.Zone)
	Int(c, 4, &s.Least)
	Struct(c, 5, &s.Request, reflect.ValueOf(&s.Request).Elem().IsZero(), Request)
	before := berth.Time(0)
	List(c, 6, &s.Occurrences, func(c *Coder, o *berth.Occurrence) {
		var ahead, length berth.Time // which wrap, so that any time is written
		if !c.Reading() {
			ahead, length = o.Ready-before, o.Deadline-o.Ready
		}
		Int(c, 1, &ahead)
		Int(c, 2, &length)
		Name(c, 3, &o.Shift)
		Int(c, 4, &o.Moved)
		c.End()
		if c.Reading() {
			o.Ready = before + ahead
			o.Deadline = o.Ready + length
		}
		before = o.Ready
	})
	Int(c, 7, &s.Ahead)
	c.End()
}

// Progress is the form of how far an open series has come.
func Progress(c *Coder, p *berth.Progress) {
	String(c, 1, &p.Series)
	Int(c, 2, &p.Decided)
	Int(c, 3, &p.Last)
	List(c, 4, &p.Waiting, BareInt[int])
	Int(c, 5, &p.Again)
	List(c, 6, &p.Skipped, BareInt[int])
	c.End()
}

// RefusedOccurrence is the form of an occurrence that cannot be promised.
func RefusedOccurrence(c *Coder, r *berth.RefusedOccurrence) {
	Int(c, 1, &r.Number)
	Struct(c, 2, &r.Refusal, r.Refusal == berth.Refusal{}, Refusal)
	c.End()
}
