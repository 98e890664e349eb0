package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
)

const (
	// wholeID is how long an id of the service's own is, which needs no look.
	wholeID = 26
	// shortest is how many letters of an id are enough at least.
	shortest = 3
	// maxNamed is how many candidates an error names.
	maxNamed = 8
	// maxSearched bounds how many reservations that are over are looked at.
	maxSearched = 10_000
)

// ids returns the reservations that words on a command line name, each by its id, or by the first or last letters of
// it, small or capital. Those that are not over are looked at first: they come before those that are. The error is
// NotFound if there is none, and Conflict, with the candidates, if there are several.
func ids(ctx context.Context, c *client.Client, words []string) ([]string, error) {
	list := make([]string, len(words))
	for i, word := range words {
		id, err := wholeOf(ctx, c, word)
		if err != nil {
			return nil, err
		}
		list[i] = id
	}
	return list, nil
}

// jobIDs is ids for words that may name a job behind a colon.
func jobIDs(ctx context.Context, c *client.Client, words []string) ([]string, error) {
	list := make([]string, len(words))
	for i, word := range words {
		id := readJobID(word)
		var err error
		if id.reservation, err = wholeOf(ctx, c, id.reservation); err != nil {
			return nil, err
		}
		list[i] = id.String()
	}
	return list, nil
}

func wholeOf(ctx context.Context, c *client.Client, word string) (string, error) {
	if len(word) >= wholeID || len(word) < shortest {
		return word, nil // the command says what is wrong with it
	}
	_, err := c.Get(ctx, word)
	if coded, is := errors.AsType[*berth.Error](err); err == nil || !is || coded.Code != berth.NotFound {
		return word, nil // the command asks again, and says what is wrong
	}
	for _, states := range [][]string{liveStates, overStates} {
		var found []form.Reservation
		looked := 0
		for one, err := range c.List(ctx, client.Filter{States: states}) {
			if err != nil {
				return "", err
			}
			if named(one.ID, word) {
				found = append(found, one)
			}
			if looked++; looked == maxSearched {
				break
			}
		}
		switch len(found) {
		case 0:
			continue
		case 1:
			return found[0].ID, nil
		}
		return "", severalNamed(word, found)
	}
	return word, nil
}

// named reports whether a word is the beginning or the end of an id. That of a part of an array has its number behind.
func named(id, word string) bool {
	id, word = strings.ToUpper(id), strings.ToUpper(word)
	return strings.HasPrefix(id, word) || strings.HasSuffix(id, word)
}

func severalNamed(word string, found []form.Reservation) error {
	var text strings.Builder
	for i := range found {
		if i == maxNamed {
			fmt.Fprintf(&text, "\n  and %d more", len(found)-i)
			break
		}
		r := &found[i]
		fmt.Fprintf(&text, "\n  %s  %s, %d PEs at %s, %s", r.ID, r.State, r.NPE, where(&r.Place), localTime(r.Start))
	}
	return berth.Errorf(berth.Conflict, "id", "%q could be any of %d reservations; the last letters of an id differ most:%s", word, len(found), text.String())
}
