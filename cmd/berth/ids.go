package main

import (
	"context"
	"errors"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
)

// wholeID is how long an id of the service's own is. One that begins with a digit needs no look.
const wholeID = 26

// ids returns the reservations that words on a command line name, as the service understands them: by id, by name, or by the first or last
// letters of the id. The error is Conflict, with the candidates, if there are several.
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
	if len(word) >= wholeID && !berth.ValidName(word) {
		return word, nil
	}
	r, err := c.Get(ctx, word)
	if coded, is := errors.AsType[*berth.Error](err); is && coded.Code != berth.Conflict {
		return word, nil // the command asks again, and says what is wrong
	}
	return r.ID, err
}
