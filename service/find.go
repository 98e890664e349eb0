package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
)

const (
	// shortestWord is how many letters of an id are enough at least. ids has their number.
	shortestWord, lettersOfID = 3, 26
	// maxNamed is how many candidates an error names.
	maxNamed = 8
)

// fit is how well something fits a word, the best first.
type fit int

const (
	ownName fit = iota
	othersName
	letters
	noFit
)

// Find returns the reservation that a word means to a principal, of those that they may see, and how many it
// looked at: the one of that id, else of that name, else the one whose id begins or ends with the word, in small letters or
// capitals. Names of the principal's own come before those of others, what is not over before what is, and what was refused last.
// Errors: NotFound if there is none, and Conflict, with the candidates, if there are several. Cost: O(reservations)
// for a word that is no id.
func (h *Host) Find(ctx context.Context, by Principal, word string) (r Reservation, looked int, err error) {
	m, err := h.seen()
	if err != nil {
		return Reservation{}, 0, err
	}
	if k := m.card(word); k != nil && k.seenBy(by) && !h.shadowed(k.request) {
		return h.named(k.charged(m.config)), 1, nil
	}
	if !berth.ValidName(word) && (len(word) < shortestWord || len(word) >= lettersOfID) {
		return Reservation{}, 0, noReservation(word)
	}
	var found choice[*card]
	upper := strings.ToUpper(word)
	m.each(by.only(), "", func(k *card) bool {
		looked++
		if how := fitOf(k.id, k.request, by, word, upper); how != noFit && k.seenBy(by) && !h.shadowed(k.request) {
			state := k.state()
			found.add(how, state == Refused, state.Over(), k)
		}
		return looked%1024 != 0 || ctx.Err() == nil
	})
	if err := ctx.Err(); err != nil {
		return Reservation{}, looked, err
	}
	switch c := found.best(); c.count {
	case 0:
		return Reservation{}, looked, noReservation(word)
	case 1:
		return h.named(c.last[0].charged(m.config)), looked, nil
	default:
		return Reservation{}, looked, several(c, "reservations", word, func(k *card) string { return k.line(by) })
	}
}

// fitOf says how well a word fits what has an id and was asked for by a request. The word is given in capitals too.
func fitOf(id string, r *berth.Request, by Principal, word, upper string) fit {
	switch {
	case r.Name == word && r.User == by.User:
		return ownName
	case r.Name == word:
		return othersName
	case len(word) < shortestWord || len(word) >= lettersOfID:
		return noFit
	}
	if id = strings.ToUpper(id); strings.HasPrefix(id, upper) || strings.HasSuffix(id, upper) {
		return letters
	}
	return noFit
}

// choice is what fits a word: live, over and refused candidates of each fit.
type choice[T any] [3 * noFit]candidates[T]

func (c *choice[T]) add(how fit, refused, over bool, one T) {
	place := 3 * how
	switch {
	case refused:
		place += 2
	case over:
		place++
	}
	c[place].add(one)
}

// best returns the candidates that fit best; none, if nothing fits.
func (c *choice[T]) best() *candidates[T] {
	for i := range c {
		if c[i].count > 0 {
			return &c[i]
		}
	}
	return &c[0]
}

// candidates are those that fit a word equally well; the last of them are known.
type candidates[T any] struct {
	count int
	last  []T
}

func (c *candidates[T]) add(one T) {
	if c.count++; len(c.last) == maxNamed {
		c.last = slices.Delete(c.last, 0, 1)
	}
	c.last = append(c.last, one)
}

// several says what a word could mean, the latest first, each in a line.
func several[T any](c *candidates[T], what, word string, line func(T) string) error {
	var text strings.Builder
	for _, one := range slices.Backward(c.last) {
		text.WriteString("\n  " + line(one))
	}
	if more := c.count - len(c.last); more > 0 {
		fmt.Fprintf(&text, "\n  and %d before these", more)
	}
	return berth.Errorf(berth.Conflict, "id", "%q could be any of %d %s; give the id, or its last letters:%s", word, c.count, what, text.String())
}

// line tells a reservation in short to a principal.
func (k *card) line(by Principal) string {
	var text strings.Builder
	r := k.view()
	fmt.Fprintf(&text, "%s  %s", r.ID, r.State)
	if r.Request.Name != "" {
		text.WriteString(", " + r.Request.Name)
	}
	if r.Request.User != by.User {
		text.WriteString(", of " + cmp.Or(r.Request.User, "no user"))
	}
	for i := range r.Allotments {
		a := &r.Allotments[i]
		fmt.Fprintf(&text, ", %d PEs at %s/%s, %s", a.NPE, a.Resource.Site, a.Resource.Name, time.Unix(int64(a.Start), 0).UTC().Format(time.RFC3339))
	}
	return text.String()
}

// FindSeries is Find for a series that is not called by its id: the one of that name, else the one whose id begins or ends with the word. Series that
// are open or have something live come before those that are over. Cost: O(series), and O(occurrences) of those that fit.
func (h *Host) FindSeries(ctx context.Context, by Principal, word string) (v Series, looked int, err error) {
	m, err := h.seen()
	if err != nil {
		return Series{}, 0, err
	}
	if !berth.ValidName(word) && (len(word) < shortestWord || len(word) >= lettersOfID) {
		return Series{}, 0, noSeries(word)
	}
	var found choice[*seriesCard]
	upper := strings.ToUpper(word)
	m.series.Scan(func(s *seriesCard) bool {
		looked++
		if how := fitOf(s.id, &s.s.Request, by, word, upper); how != noFit {
			if looked += s.decided(); s.seenBy(by, m.card) {
				found.add(how, s.refused, !s.open() && !s.live(m.card), s)
			}
		}
		return ctx.Err() == nil
	})
	if err := ctx.Err(); err != nil {
		return Series{}, looked, err
	}
	switch c := found.best(); c.count {
	case 0:
		return Series{}, looked, noSeries(word)
	case 1:
		return c.last[0].view(m.card, m.config), looked, nil
	default:
		return Series{}, looked, several(c, "series", word, func(s *seriesCard) string { return s.line(by) })
	}
}

// live reports whether a reservation of a series is not over.
func (s *seriesCard) live(cards cardsByID) bool {
	return slices.ContainsFunc(s.reservations, func(id string) bool {
		k := cards(id)
		return id != "" && k != nil && !k.state().Over()
	})
}

// line tells a series in short to a principal.
func (s *seriesCard) line(by Principal) string {
	r := &s.s.Request
	text := s.id + "  " + cmp.Or(s.s.Rule, "at given times")
	if r.Name != "" {
		text += ", " + r.Name
	}
	if r.User != by.User {
		text += ", of " + cmp.Or(r.User, "no user")
	}
	return text + ", asked for at " + time.Unix(int64(s.created), 0).UTC().Format(time.RFC3339)
}
