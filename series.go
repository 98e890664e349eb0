package berth

import (
	"slices"
	"strconv"
)

// Series is one request that repeats: equal requests with windows of their own, which are answered
// together. Each that is promised is a reservation like others from then on.
type Series struct {
	ID string `json:"id"`
	// Rule is how it repeats and Zone by which clock, in the words of who asked. They mean nothing to the engine:
	// the windows are worked out before.
	Rule string `json:"rule,omitempty"`
	Zone string `json:"zone,omitempty"`
	// Least is how many occurrences must be possible for any to be promised: 1 to all.
	Least int `json:"least"`
	// Request is what each occurrence asks for. Its id, ready time, deadline and series are those of the
	// occurrence.
	Request     Request      `json:"request"`
	Occurrences []Occurrence `json:"occurrences"` // by ready time
}

// Occurrence is one window of a series.
type Occurrence struct {
	Ready    Time `json:"ready"`
	Deadline Time `json:"deadline"`
	// Shift says what a change of the clock has made of its time.
	Shift Shift `json:"shift,omitempty"`
}

// Shift says what a change of the clock has made of a time that a rule names.
type Shift string

// The shifts.
const (
	NoShift    Shift = ""
	ShiftLater Shift = "later" // the clock never shows it that day: so much later as the clock is put forward
	ShiftFirst Shift = "first" // the clock shows it twice that day: the first time
)

// Shifts lists the shifts.
func Shifts() []Shift { return []Shift{NoShift, ShiftLater, ShiftFirst} }

// SeriesRef names the series that a request is an occurrence of, with its number from 1. It is
// not written any more.
type SeriesRef struct {
	Series string `json:"series"`
	Number int    `json:"number"`
}

// RefusedOccurrence is an occurrence that cannot be promised.
type RefusedOccurrence struct {
	Number  int     `json:"number"` // from 1
	Refusal Refusal `json:"refusal"`
}

// MaxOccurrences bounds the occurrences of one series: nearly three years of days. They are
// decided in one step.
const MaxOccurrences = 1000

// maxShapes bounds the occurrences of one series times the variants of each: as many places are looked for in one step.
const maxShapes = 2 * MaxOccurrences

// OccurrenceID returns the id of the reservation of an occurrence, by its number from 1.
func OccurrenceID(series string, number int) string { return series + "." + strconv.Itoa(number) }

// Clone returns a copy that shares no memory with the series, except PE sets.
func (s *Series) Clone() *Series {
	c := *s
	c.Request, c.Occurrences = *s.Request.Clone(), slices.Clone(s.Occurrences)
	return &c
}

// Requests returns the requests of all occurrences, in their order. They share the parts of the
// series' own, which must not be written. Cost: O(occurrences).
func (s *Series) Requests() []Request {
	list, refs := make([]Request, len(s.Occurrences)), make([]SeriesRef, len(s.Occurrences))
	for i := range list {
		o := &s.Occurrences[i]
		list[i], refs[i] = s.Request, SeriesRef{Series: s.ID, Number: i + 1}
		list[i].ID, list[i].Ready, list[i].Deadline, list[i].Series = OccurrenceID(s.ID, i+1), o.Ready, o.Deadline, &refs[i]
		if list[i].Name != "" {
			list[i].Name = OccurrenceID(s.Request.Name, i+1)
		}
	}
	return list
}

// Validate reports the first field that cannot be right, as an *Error with code Invalid.
func (s *Series) Validate() error {
	n := len(s.Occurrences)
	switch {
	case s.ID == "":
		return Errorf(Invalid, "id", "missing; every series needs one")
	case n < 1 || n > MaxOccurrences:
		return Errorf(Invalid, "occurrences", "%d; want 1 to %d", n, MaxOccurrences)
	case s.Least < 1 || s.Least > n:
		return Errorf(Invalid, "least", "%d of %d occurrences; want 1 to %d", s.Least, n, n)
	case s.Request.IsJob():
		return Errorf(Invalid, "kind", "%q; occurrences are promised, and a job gets no promise", s.Request.Kind)
	case s.Request.Task != nil:
		return Errorf(Invalid, "task", "%q of workflow %q; tasks are promised with their workflow", s.Request.Task.Task, s.Request.Task.Workflow)
	}
	shapes := 0
	for i := range s.Request.Parts {
		shapes += len(s.Request.Parts[i].Variants)
	}
	if shapes > maxShapes/n {
		return Errorf(Invalid, "variants", "%d for each of %d occurrences; want at most %d in all, so ask for several series", shapes, n, maxShapes)
	}
	for i := range s.Occurrences {
		o := &s.Occurrences[i]
		if !slices.Contains(Shifts(), o.Shift) {
			return Errorf(Invalid, "shift", "%q of occurrence %d; want one of %q", o.Shift, i+1, Shifts())
		}
		if i > 0 && o.Ready <= s.Occurrences[i-1].Ready {
			return Errorf(Invalid, "occurrences", "number %d is ready at %d, not after the one before it", i+1, o.Ready)
		}
	}
	last := len(s.Occurrences)
	if name := OccurrenceID(s.Request.Name, last); s.Request.Name != "" && !ValidName(name) {
		return Errorf(Invalid, "name", "%.80q is too long for a series, whose occurrences have their numbers behind it; want at most %d letters", s.Request.Name, MaxName-len(name)+len(s.Request.Name))
	}
	for _, r := range s.Requests() {
		if err := r.Validate(); err != nil {
			return err
		}
	}
	return nil
}
