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

// fit is how well a reservation fits a word, the best first.
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
		found := k.find()
		return h.named(&found), 1, nil
	}
	if !berth.ValidName(word) && (len(word) < shortestWord || len(word) >= lettersOfID) {
		return Reservation{}, 0, noReservation(word)
	}
	var candidates [3 * noFit]candidates // live, over and refused ones of each fit
	upper := strings.ToUpper(word)
	m.cards.Scan(func(k *card) bool {
		looked++
		if how := fitOf(k, by, word, upper); how != noFit && k.seenBy(by) && !h.shadowed(k.request) {
			place := 3 * how
			switch state := k.state(); {
			case state == Refused:
				place += 2
			case state.Over():
				place++
			}
			candidates[place].add(k)
		}
		return looked%1024 != 0 || ctx.Err() == nil
	})
	if err := ctx.Err(); err != nil {
		return Reservation{}, looked, err
	}
	for i := range candidates {
		switch c := &candidates[i]; c.count {
		case 0:
		case 1:
			found := c.last[0].find()
			return h.named(&found), looked, nil
		default:
			return Reservation{}, looked, c.several(by, word)
		}
	}
	return Reservation{}, looked, noReservation(word)
}

func fitOf(k *card, by Principal, word, upper string) fit {
	switch {
	case k.request.Name == word && k.request.User == by.User:
		return ownName
	case k.request.Name == word:
		return othersName
	case len(word) < shortestWord || len(word) >= lettersOfID:
		return noFit
	}
	if id := strings.ToUpper(k.id); strings.HasPrefix(id, upper) || strings.HasSuffix(id, upper) {
		return letters
	}
	return noFit
}

// candidates are reservations that fit a word equally well; the last of them are known.
type candidates struct {
	count int
	last  []*card
}

func (c *candidates) add(k *card) {
	if c.count++; len(c.last) == maxNamed {
		c.last = slices.Delete(c.last, 0, 1)
	}
	c.last = append(c.last, k)
}

// several says which reservations a word could mean, the latest first.
func (c *candidates) several(by Principal, word string) error {
	var text strings.Builder
	for _, k := range slices.Backward(c.last) {
		r := k.view()
		fmt.Fprintf(&text, "\n  %s  %s", r.ID, r.State)
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
	}
	if more := c.count - len(c.last); more > 0 {
		fmt.Fprintf(&text, "\n  and %d before these", more)
	}
	return berth.Errorf(berth.Conflict, "id", "%q could be any of %d reservations; give the id, or its last letters:%s", word, c.count, text.String())
}
