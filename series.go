package berth

import (
	"slices"
	"sort"
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
	// Ahead makes an open series: each occurrence is asked for once its ready time is at most so far ahead, and
	// Least is about those that are so near when the series arrives. 0 asks for all of them then.
	Ahead Duration `json:"ahead,omitempty"`
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
	// Moved is by how much it comes later than the rule says since the series was changed; earlier, if negative.
	Moved Duration `json:"moved,omitempty"`
}

// Progress is how far an open series has come. The numbers of its lists ascend.
type Progress struct {
	Series string `json:"series"`
	// Decided is the last occurrence that has had its turn, and Last the last that gets one.
	Decided int `json:"decided"`
	Last    int `json:"last"`
	// Waiting is the occurrences up to Decided that could not be promised and are asked for again, at Again.
	Waiting []int `json:"waiting,omitempty"`
	Again   Time  `json:"again,omitempty"`
	// Skipped is the occurrences that got no turn, or get none.
	Skipped []int `json:"skipped,omitempty"`
}

// Over reports whether nothing is left to be asked for.
func (p *Progress) Over() bool { return p.Decided >= p.Last && len(p.Waiting) == 0 }

// Awaits reports whether an occurrence is still to be asked for, for the first time or again.
func (p *Progress) Awaits(number int) bool {
	if number <= p.Decided {
		return slices.Contains(p.Waiting, number)
	}
	return number <= p.Last && !slices.Contains(p.Skipped, number)
}

// Without returns the progress once occurrences from one number to another are asked for no more. It shares no memory
// with p.
func (p *Progress) Without(first, last int) *Progress {
	c := *p
	c.Skipped = slices.Clone(p.Skipped)
	c.Waiting = slices.DeleteFunc(slices.Clone(p.Waiting), func(n int) bool { return n >= first && n <= last })
	if last >= p.Last {
		c.Last = max(min(p.Last, first-1), p.Decided)
		last = c.Last
	}
	for n := max(first, p.Decided+1); n <= last; n++ {
		c.Skipped = append(c.Skipped, n)
	}
	slices.Sort(c.Skipped)
	c.Skipped = slices.Compact(c.Skipped)
	return c.settled()
}

// At returns the progress once the occurrences up to a number have had their turn at a time, and some of them are asked for
// again. It shares no memory with p; waiting is its own from then on.
func (p *Progress) At(now Time, s *Series, decided int, waiting []int) *Progress {
	c := *p
	c.Decided, c.Waiting, c.Skipped = decided, waiting, slices.Clone(p.Skipped)
	if len(p.Waiting) == 0 || p.Again <= now {
		c.Again = now.Add(s.Retry())
	}
	return c.settled()
}

// settled counts the skipped occurrences that come next among those that have had their turn.
func (p *Progress) settled() *Progress {
	p.Skipped = slices.DeleteFunc(p.Skipped, func(n int) bool { return n > p.Last })
	for slices.Contains(p.Skipped, p.Decided+1) {
		p.Decided++
	}
	if len(p.Skipped) == 0 {
		p.Skipped = nil
	}
	if len(p.Waiting) == 0 {
		p.Waiting, p.Again = nil, 0
	}
	return p
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

// MaxOccurrences bounds the occurrences of one series: ten years of days. They are decided in one step.
const MaxOccurrences = 4000

// maxShapes bounds the occurrences of one series times the variants of each: as many places are looked for in one step.
const maxShapes = MaxOccurrences

// OccurrenceID returns the id of the reservation of an occurrence, by its number from 1.
func OccurrenceID(series string, number int) string { return series + "." + strconv.Itoa(number) }

// Clone returns a copy that shares no memory with the series, except PE sets.
func (s *Series) Clone() *Series {
	c := *s
	c.Request, c.Occurrences = *s.Request.Clone(), slices.Clone(s.Occurrences)
	return &c
}

// Due returns how many occurrences, from the first on, have their turn at a time: all, unless the series is open.
// Cost: O(log occurrences).
func (s *Series) Due(now Time) int {
	if s.Ahead == 0 {
		return len(s.Occurrences)
	}
	return sort.Search(len(s.Occurrences), func(i int) bool { return s.Occurrences[i].Ready > now.Add(s.Ahead) })
}

// Begun returns how far an open series is when it is promised at a time but for some occurrences; nil unless it is
// open.
func (s *Series) Begun(now Time, unfit []RefusedOccurrence) *Progress {
	if s.Ahead == 0 {
		return nil
	}
	var waiting []int
	for i := range unfit {
		waiting = append(waiting, unfit[i].Number)
	}
	p := Progress{Series: s.ID, Last: len(s.Occurrences)}
	return p.At(now, s, s.Due(s.Request.Arrival), waiting)
}

// Retry returns after how long an open series asks again for what could not be promised: a 42nd of Ahead, a day at
// most and a minute at least.
func (s *Series) Retry() Duration { return min(max(s.Ahead/42, 60), 24*3600) }

// Occurrence returns the request of an occurrence, by its number from 1, as it is asked for at a time. It shares the
// parts of the series' own, which must not be written. ok is false if what is left of its window is too short.
func (s *Series) Occurrence(number int, now Time) (r Request, ok bool) {
	o := &s.Occurrences[number-1]
	r = s.Request
	r.ID, r.Arrival, r.Ready, r.Deadline = OccurrenceID(s.ID, number), now, max(o.Ready, now), o.Deadline
	r.Series = &SeriesRef{Series: s.ID, Number: number}
	if r.Name != "" {
		r.Name = OccurrenceID(s.Request.Name, number)
	}
	return r, r.Validate() == nil
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

// Near returns the time around an occurrence in which something else may stand for it: half of the way to the one before and to the one
// behind it, by their ready times. Where one is missing the distance on the other side counts, and for a single occurrence it is half a day.
func (s *Series) Near(number int) Interval {
	o := &s.Occurrences[number-1]
	before, behind := Duration(0), Duration(0)
	if number > 1 {
		before = o.Ready.Sub(s.Occurrences[number-2].Ready)
	}
	if number < len(s.Occurrences) {
		behind = s.Occurrences[number].Ready.Sub(o.Ready)
	}
	switch {
	case before <= 0 && behind <= 0:
		before, behind = aDay, aDay
	case before <= 0:
		before = behind
	case behind <= 0:
		behind = before
	}
	return Interval{Start: max(o.Ready.Add(-before/2), 1), End: min(o.Deadline.Add(behind/2), TimeLimit-1)}
}

// aDay is how far apart occurrences count as where there is one alone.
const aDay Duration = 86_400

// Validate reports the first field that cannot be right, as an *Error with code Invalid.
func (s *Series) Validate() error {
	n := len(s.Occurrences)
	due := s.Due(s.Request.Arrival)
	switch {
	case s.ID == "":
		return Errorf(Invalid, "id", "missing; every series needs one")
	case n < 1 || n > MaxOccurrences:
		return Errorf(Invalid, "occurrences", "%d; want 1 to %d", n, MaxOccurrences)
	case s.Ahead < 0 || s.Ahead >= TimeLimit:
		return Errorf(Invalid, "ahead", "%d; want a length of time from 0 to 2^42 s", s.Ahead)
	case due == 0:
		return Errorf(Invalid, "ahead", "%d s; the first occurrence is %d s ahead, want that or more", s.Ahead, s.Occurrences[0].Ready-s.Request.Arrival)
	case s.Least < 1 || s.Least > due:
		return Errorf(Invalid, "least", "%d of %d occurrences; want 1 to %d", s.Least, due, due)
	case s.Request.IsJob():
		return Errorf(Invalid, "kind", "%q; occurrences are promised, and a job gets no promise", s.Request.Kind)
	case s.Request.Task != nil:
		return Errorf(Invalid, "task", "%q of workflow %q; tasks are promised with their workflow", s.Request.Task.Task, s.Request.Task.Workflow)
	}
	shapes := 0
	for i := range s.Request.Parts {
		shapes += len(s.Request.Parts[i].Variants)
	}
	if shapes > maxShapes/due {
		return Errorf(Invalid, "variants", "%d for each of %d occurrences; want at most %d in all, so ask for several series", shapes, due, maxShapes)
	}
	for i := range s.Occurrences {
		o := &s.Occurrences[i]
		if !slices.Contains(Shifts(), o.Shift) {
			return Errorf(Invalid, "shift", "%q of occurrence %d; want one of %q", o.Shift, i+1, Shifts())
		}
		if o.Moved <= -TimeLimit || o.Moved >= TimeLimit {
			return Errorf(Invalid, "moved", "%d s of occurrence %d; want a length of time below 2^42 s", o.Moved, i+1)
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
