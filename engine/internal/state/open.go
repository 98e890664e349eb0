package state

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/wire"
)

// Open is an open series with something that is still to be asked for. It is a handle to look at: its methods write
// nothing.
type Open struct {
	series   *berth.Series
	progress *berth.Progress // which is shared with changes and never written
	number   uint64          // which orders open series
	timer    timer           // of the next turn
}

// Series returns what was asked for. It must not be written.
func (o *Open) Series() *berth.Series { return o.series }

// Progress returns how far it has come. It must not be written.
func (o *Open) Progress() *berth.Progress { return o.progress }

// turn returns when an occurrence has its turn next, for the first time or again.
func (o *Open) turn() berth.Time {
	p, at := o.progress, berth.Forever
	if p.Decided < p.Last {
		at = o.series.Occurrences[p.Decided].Ready.Add(-o.series.Ahead)
	}
	if len(p.Waiting) > 0 {
		at = min(at, p.Again)
	}
	return at
}

// OpenSeries returns the open series of an id, nil if there is none.
func (s *State) OpenSeries(id string) *Open { return s.openByID[id] }

// AllOpen returns the open series, those that were promised first first. The slice must not be written.
func (s *State) AllOpen() []*Open { return s.open }

// IsAwaited reports whether an id is that of an open series, or of an occurrence that one is still to ask for.
func (s *State) IsAwaited(id string) bool {
	if len(s.open) == 0 {
		return false
	}
	if s.OpenSeries(id) != nil {
		return true
	}
	at := strings.LastIndexByte(id, '.')
	if at < 0 {
		return false
	}
	number, err := strconv.Atoi(id[at+1:])
	if err != nil || id[at+1:] != strconv.Itoa(number) || number < 1 {
		return false
	}
	o := s.OpenSeries(id[:at])
	return o != nil && o.progress.Awaits(number)
}

// openOf returns the open series of a number.
func (s *State) openOf(number uint64) *Open {
	i, _ := slices.BinarySearchFunc(s.open, number, func(o *Open, n uint64) int { return cmp.Compare(o.number, n) })
	return s.open[i]
}

// foldSeries folds the kinds of change that are about a series.
func (s *State) foldSeries(c *change.Change) error {
	switch {
	case c.Kind == change.SeriesProlonged:
		if c.Progress == nil {
			return fmt.Errorf("no series is prolonged")
		}
		o := s.OpenSeries(c.Progress.Series)
		if o == nil {
			return fmt.Errorf("series %q is not open", c.Progress.Series)
		}
		if c.Series != nil {
			o.series = c.Series
		}
		if err := sane(o.series, c.Progress); err != nil {
			return err
		}
		s.comeTo(o, c.Progress)
	case c.Series == nil:
		return fmt.Errorf("no series is decided about")
	case c.Kind == change.SeriesPromised && c.Series.Ahead > 0:
		// An occurrence of it is queued next, so that no other series has this number.
		s.addOpen(&Open{series: c.Series, progress: c.Series.Begun(s.now, c.Unfit), number: s.submitted + 1})
	}
	return nil
}

// addOpen adds an open series behind all others, unless nothing of it is left to be asked for.
func (s *State) addOpen(o *Open) {
	if !o.progress.Over() {
		s.open = append(s.open, o)
		s.openByID[o.series.ID] = o
		s.await(o)
	}
}

// await sets the timer of an open series.
func (s *State) await(o *Open) {
	s.timers.reset(&o.timer, timer{At: o.turn(), Class: ClassArrival, Sequence: o.number})
}

// comeTo has an open series come to another progress.
func (s *State) comeTo(o *Open, p *berth.Progress) {
	o.progress = p
	if !p.Over() {
		s.await(o)
		return
	}
	s.timers.drop(&o.timer)
	delete(s.openByID, o.series.ID)
	s.open = slices.DeleteFunc(s.open, func(other *Open) bool { return other == o })
}

// occurs notes that an occurrence has a reservation, which may be what was offered in place of its own: it is not
// asked for again.
func (s *State) occurs(ref *berth.SeriesRef) {
	if ref == nil || len(s.open) == 0 {
		return
	}
	o := s.OpenSeries(ref.Series)
	if o == nil || !slices.Contains(o.progress.Waiting, ref.Number) {
		return
	}
	s.comeTo(o, o.progress.Without(ref.Number, ref.Number))
}

// sane reports what cannot be right with the progress of a series.
func sane(s *berth.Series, p *berth.Progress) error {
	within := func(list []int, from, to int) bool {
		for i, n := range list {
			if n < from || n > to || i > 0 && n <= list[i-1] {
				return false
			}
		}
		return true
	}
	if p.Series != s.ID || p.Decided < 0 || p.Decided > len(s.Occurrences) || p.Last < 0 || p.Last > len(s.Occurrences) ||
		!within(p.Waiting, 1, p.Decided) || !within(p.Skipped, 1, p.Last) || slices.Contains(p.Skipped, p.Decided+1) || !p.Again.Valid() {
		return fmt.Errorf("series %q of %d occurrences cannot have come to %+v", s.ID, len(s.Occurrences), *p)
	}
	return nil
}

// savedOpen is an open series in its written form.
type savedOpen struct {
	Series   *berth.Series   `json:"series"`
	Number   uint64          `json:"number"`
	Progress *berth.Progress `json:"progress"`
}

func codeOpen(c *wire.Coder, o *savedOpen) {
	wire.Pointer(c, 1, &o.Series, wire.Series)
	wire.Uint(c, 2, &o.Number)
	wire.Pointer(c, 3, &o.Progress, wire.Progress)
	c.End()
}

// restoreOpen reads open series.
func (s *State) restoreOpen(list []savedOpen) error {
	for i := range list {
		in := &list[i]
		switch {
		case in.Series == nil || in.Progress == nil || in.Series.Ahead <= 0 || in.Series.Validate() != nil:
			return fmt.Errorf("open series %d is not valid", i)
		case i > 0 && in.Number <= list[i-1].Number:
			return fmt.Errorf("open series %q comes after one of a later number", in.Series.ID)
		case s.OpenSeries(in.Series.ID) != nil:
			return fmt.Errorf("open series %q is there twice", in.Series.ID)
		case in.Progress.Over():
			return fmt.Errorf("open series %q is over", in.Series.ID)
		}
		if err := sane(in.Series, in.Progress); err != nil {
			return err
		}
		s.addOpen(&Open{series: in.Series, progress: in.Progress, number: in.Number})
	}
	return nil
}
