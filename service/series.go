package service

import (
	"context"
	"slices"

	"github.com/tidwall/btree"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/wire"
)

// Series is all that is known of a series.
type Series struct {
	Series  berth.Series
	Refused bool // as a whole
	// Unfit is the occurrences that could not be promised when it was decided, by number.
	Unfit   []berth.RefusedOccurrence
	Created berth.Time
	// Progress is how far an open series had come when it was followed last; nil of others.
	Progress *berth.Progress
	// Reservations are those of the occurrences, in their order: the zero value for one that has none, or whose
	// reservation is forgotten.
	Reservations []Reservation
}

// Window returns the window of an occurrence as it is by now, and by how much later than its rule says it comes: what
// its own reservation asks for, if that was changed.
func (s *Series) Window(number int) (w berth.Interval, moved berth.Duration) {
	o := &s.Series.Occurrences[number-1]
	w, moved = berth.Interval{Start: o.Ready, End: o.Deadline}, o.Moved
	r := &s.Reservations[number-1]
	if r.ID != berth.OccurrenceID(s.Series.ID, number) || r.Request.Deadline == o.Deadline {
		return w, moved // asked for again within its window, it is ready later, and yet as it was
	}
	w = berth.Interval{Start: r.Request.Ready, End: r.Request.Deadline}
	return w, moved + w.Start.Sub(o.Ready)
}

// seriesCard is what is known of a series. Once the record that wrote it is durable it is shown to those who only
// look, and is written no more.
type seriesCard struct {
	id           string
	s            *berth.Series // nil of one that is forgotten
	refused      bool
	unfit        []berth.RefusedOccurrence
	created      berth.Time
	progress     *berth.Progress // of an open one, which is not written
	reservations []string        // that the occurrences have, or had last
	written      uint64          // the record that wrote it
}

// seriesBook is what is known of series. It is of the loop.
type seriesBook struct {
	byID  map[string]*seriesCard
	order []string // ids, those that are to be forgotten next first
	bytes int64    // about as many of all
}

// keepSeries is how many bytes of series are remembered, about; a series that has something live is kept. The
// reservations of occurrences are remembered by themselves.
const keepSeries = 64 << 20

// forgetAtOnce is how many series are looked at when one comes.
const forgetAtOnce = 8

func newSeriesBook() seriesBook { return seriesBook{byID: map[string]*seriesCard{}} }

// followSeries brings what is known of series up to date with a change.
func (c *Core) followSeries(now berth.Time, x *change.Change, number uint64) {
	switch x.Kind {
	case change.Accepted:
		c.occurrencePromised(x, number)
		return
	case change.Refused:
		c.occurrenceRefused(x, number)
		return
	case change.SeriesProlonged:
		if s := c.series.byID[x.Progress.Series]; s != nil {
			s = c.ownSeries(s, number)
			if s.progress = x.Progress; x.Series != nil {
				s.s = x.Series
			}
		}
		return
	}
	s := &seriesCard{
		id: x.Series.ID, s: x.Series, refused: x.Kind == change.SeriesRefused, unfit: x.Unfit, created: now, reservations: make([]string, len(x.Series.Occurrences)),
	}
	if !s.refused {
		s.progress = x.Series.Begun(now, x.Unfit)
	}
	c.addSeries(s)
	c.writeSeries(s, number)
	for range forgetAtOnce {
		if c.series.bytes <= keepSeries {
			return
		}
		c.forgetSeries(c.series.byID[c.series.order[0]])
	}
}

// cost returns about how many bytes a series takes: with the reservation of each occurrence, or why it has none.
func (s *seriesCard) cost() int64 {
	each := int64(256)
	if s.s.Ahead > 0 { // most have no reservation yet
		each = 64
	}
	return 1024 + int64(len(s.s.Rule)) + requestCost(&s.s.Request) + each*int64(len(s.reservations))
}

func (c *Core) addSeries(s *seriesCard) {
	b := &c.series
	if was := b.byID[s.id]; was != nil { // the id is used again
		b.order = slices.DeleteFunc(b.order, func(id string) bool { return id == s.id })
		b.bytes -= was.cost()
	}
	b.byID[s.id], b.order = s, append(b.order, s.id)
	b.bytes += s.cost()
}

// forgetSeries forgets the series that is first in the order, or puts it last if something of it is live.
func (c *Core) forgetSeries(s *seriesCard) {
	b := &c.series
	b.order = b.order[1:]
	if s.open() || slices.ContainsFunc(s.reservations, func(id string) bool {
		k := c.card(id)
		return id != "" && k != nil && k.end == ""
	}) {
		b.order = append(b.order, s.id)
		return
	}
	delete(b.byID, s.id)
	b.bytes -= s.cost()
	if c.shows {
		c.seriesFresh = append(c.seriesFresh, &seriesCard{id: s.id})
	}
}

// occurrencePromised notes the reservation of an occurrence: its own, or what was offered instead.
func (c *Core) occurrencePromised(x *change.Change, number uint64) {
	ref := x.Reservation.Request.Series
	if ref == nil {
		return
	}
	s := c.series.byID[ref.Series]
	if s == nil || ref.Number < 1 || ref.Number > len(s.reservations) {
		return
	}
	if was := s.reservations[ref.Number-1]; was != "" && was != x.ID {
		if k := c.card(was); k != nil && k.end == "" {
			return // it has one, which goes on
		}
	}
	s = c.ownSeries(s, number)
	s.reservations[ref.Number-1] = x.ID
	if s.progress != nil && x.ID == berth.OccurrenceID(s.id, ref.Number) { // asked for again, it can be
		var unfit []berth.RefusedOccurrence
		for i := range s.unfit {
			if s.unfit[i].Number != ref.Number {
				unfit = append(unfit, s.unfit[i])
			}
		}
		s.unfit = unfit
	}
	if s.progress != nil && s.progress.Awaits(ref.Number) { // what was offered instead is taken
		s.progress = s.progress.Without(ref.Number, ref.Number)
	}
}

// occurrenceRefused notes that an occurrence of an open series cannot be promised when it has its turn.
func (c *Core) occurrenceRefused(x *change.Change, number uint64) {
	if x.Request == nil || x.Request.Series == nil {
		return
	}
	ref := x.Request.Series
	s := c.series.byID[ref.Series]
	if s == nil || s.progress == nil || ref.Number < 1 || ref.Number > len(s.reservations) {
		return
	}
	s = c.ownSeries(s, number)
	s.unfit = append(slices.Clone(s.unfit), berth.RefusedOccurrence{Number: ref.Number, Refusal: *x.Refusal})
	s.reservations[ref.Number-1] = x.ID
}

// ownSeries returns what is known of a series for a record to write: a copy, if others may look at it.
func (c *Core) ownSeries(s *seriesCard, number uint64) *seriesCard {
	if c.shows && s.written != number {
		own := *s
		own.reservations = slices.Clone(s.reservations)
		s = &own
		c.writeSeries(s, number)
	}
	return s
}

// decided returns up to which occurrence all have had their turn.
func (s *seriesCard) decided() int {
	if s.progress != nil {
		return s.progress.Decided
	}
	return len(s.reservations)
}

// open reports whether occurrences of a series are still to be asked for.
func (s *seriesCard) open() bool { return s.progress != nil && !s.progress.Over() }

func (c *Core) writeSeries(s *seriesCard, number uint64) {
	s.written = number
	c.series.byID[s.id] = s
	if c.shows {
		c.seriesFresh = append(c.seriesFresh, s)
	}
}

// shownSeries returns all series, by id.
func (c *Core) shownSeries() *btree.BTreeG[*seriesCard] {
	all := btree.NewBTreeGOptions(func(a, b *seriesCard) bool { return a.id < b.id }, btree.Options{NoLocks: true})
	for _, s := range c.series.byID {
		all.Set(s)
	}
	return all
}

// view shows a series to clients, with what budgets are charged for its reservations by a configuration.
func (s *seriesCard) view(cards cardsByID, config *engine.Config) Series {
	v := Series{Series: *s.s, Refused: s.refused, Unfit: s.unfit, Created: s.created, Progress: s.progress, Reservations: make([]Reservation, len(s.reservations))}
	for i, id := range s.reservations {
		if id == "" {
			continue
		}
		if k := cards(id); k != nil && k.request != nil {
			v.Reservations[i] = k.priced(config)
		}
	}
	return v
}

// seenBy reports whether a principal may see a series.
func (s *seriesCard) seenBy(by Principal, cards cardsByID) bool {
	if !by.sees(&s.s.Request, nil, nil) {
		return false
	}
	if by.Sites.All() {
		return true
	}
	for i := range s.unfit {
		if site := s.unfit[i].Refusal.Resource.Site; site != "" && !by.Sites.Has(site) {
			return false
		}
	}
	for _, id := range s.reservations {
		if k := cards(id); k != nil && !k.seenBy(by) {
			return false
		}
	}
	return true
}

func noSeries(id string) error { return berth.Errorf(berth.NotFound, "id", "no series %q", id) }

// SeriesFilter chooses series. Empty fields choose all.
type SeriesFilter struct {
	User  string
	After string // the id that the page begins behind
	Limit int
}

// GetSeries returns a series to a principal who may see it, as the last durable record has it. Cost:
// O(occurrences·log n), beside the loop.
func (h *Host) GetSeries(_ context.Context, by Principal, id string) (Series, error) {
	m, err := h.seen()
	if err != nil {
		return Series{}, err
	}
	s, _ := m.series.Get(&seriesCard{id: id})
	if s == nil || !s.seenBy(by, m.card) {
		return Series{}, noSeries(id)
	}
	return s.view(m.card, m.config), nil
}

// ListSeries returns the series that a principal may see and that the filter chooses, by id, and how many occurrences
// were looked at. Cost: O(occurrences·log n) of the series behind filter.After until there are enough, beside the loop.
func (h *Host) ListSeries(ctx context.Context, by Principal, filter SeriesFilter) (list []Series, looked int, err error) {
	if filter.Limit <= 0 || filter.Limit > maxPage {
		filter.Limit = maxPage
	}
	m, err := h.seen()
	if err != nil {
		return nil, 0, err
	}
	m.series.Ascend(&seriesCard{id: filter.After}, func(s *seriesCard) bool {
		if s.id == filter.After {
			return true
		}
		looked += 1 + s.decided()
		if (filter.User == "" || filter.User == s.s.Request.User) && s.seenBy(by, m.card) {
			list = append(list, s.view(m.card, m.config))
		}
		return len(list) < filter.Limit && ctx.Err() == nil
	})
	return list, looked, ctx.Err()
}

// savedSeries is a series in its written form.
type savedSeries struct {
	Series       *berth.Series
	Refused      bool
	Unfit        []berth.RefusedOccurrence
	Created      berth.Time
	Reservations []string
	Progress     *berth.Progress
}

func (s *savedSeries) code(c *wire.Coder) {
	wire.Pointer(c, 1, &s.Series, wire.Series)
	wire.Bool(c, 2, &s.Refused)
	wire.List(c, 3, &s.Unfit, wire.RefusedOccurrence)
	wire.Int(c, 4, &s.Created)
	wire.List(c, 5, &s.Reservations, wire.BareText[string])
	wire.Pointer(c, 6, &s.Progress, wire.Progress)
	c.End()
}

// savedSeries returns what is known of series, in the order in which they are to be forgotten.
func (c *Core) savedSeries() (all []savedSeries) {
	for _, id := range c.series.order {
		s := c.series.byID[id]
		all = append(all, savedSeries{Series: s.s, Refused: s.refused, Unfit: s.unfit, Created: s.created, Reservations: s.reservations, Progress: s.progress})
	}
	return all
}

// restoreSeries reads what savedSeries wrote.
func (c *Core) restoreSeries(all []savedSeries) error {
	for i := range all {
		in := &all[i]
		if in.Series == nil || len(in.Reservations) != len(in.Series.Occurrences) {
			return berth.Errorf(berth.Invalid, "snapshot", "series %d is none", i)
		}
		c.addSeries(&seriesCard{id: in.Series.ID, s: in.Series, refused: in.Refused, unfit: in.Unfit, created: in.Created, reservations: in.Reservations, progress: in.Progress})
	}
	return nil
}
