package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
)

const (
	// maxLine bounds a line of a stream: an event with a reservation of many nodes.
	maxLine = 16 << 20
	// The first and the longest wait before a stream that broke is opened again.
	firstWait = 500 * time.Millisecond
	lastWait  = 30 * time.Second
)

// Events yields what happens, behind an event or from now on if after is 0. A
// stream that breaks is opened again behind the last event, or where it began, for as long as ctx
// lasts; but if the first attempt fails, or the service says no, that error ends
// it. So does NotFound: events were missed, and everything has to be looked at
// anew. The first pair that is yielded is an event of ID 0, which says that the
// stream is open: nothing after that is missed.
func (c *Client) Events(ctx context.Context, after uint64) iter.Seq2[form.Event, error] {
	return func(yield func(form.Event, error) bool) {
		wait := firstWait
		for opened := false; ; {
			s, err := c.open(ctx, after)
			was := err == nil
			switch {
			case was:
				wait = firstWait
				err = s.read(yield, &opened, &after)
				if err == nil {
					return // the caller has enough
				}
			case !opened:
				yield(form.Event{}, err)
				return
			}
			coded, is := errors.AsType[*berth.Error](err)
			// A token that is renewed expires while a stream is open, which goes on with the next one.
			expired := was && c.renew != nil && is && coded.Code == berth.Denied && coded.Field == "Authorization"
			if is && coded.Code != berth.Unavailable && !expired {
				yield(form.Event{}, err)
				return
			}
			select {
			case <-ctx.Done():
				yield(form.Event{}, c.unreachable(ctx, ctx.Err()))
				return
			case <-time.After(wait):
			}
			wait = min(2*wait, lastWait)
		}
	}
}

// open opens a stream.
func (c *Client) open(ctx context.Context, after uint64) (*stream, error) {
	r, err := c.request(ctx, http.MethodGet, "/v1/events", http.NoBody)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/event-stream")
	if after > 0 {
		r.Header.Set("Last-Event-ID", strconv.FormatUint(after, 10))
	}
	answer, err := c.do(r)
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, maxLine)
	return &stream{answer.Body, lines}, nil
}

// stream is an open stream of events.
type stream struct {
	io.Closer
	lines *bufio.Scanner
}

// read yields events until the stream ends, with why; nil if the caller
// has enough.
func (s *stream) read(yield func(form.Event, error) bool, opened *bool, after *uint64) error {
	defer func() { _ = s.Close() }() // only read from
	var kind, data, id string
	for s.lines.Scan() {
		name, text, _ := strings.Cut(s.lines.Text(), ":")
		text = strings.TrimPrefix(text, " ")
		switch name {
		case "event":
			kind = text
		case "data":
			data = text
		case "id":
			id = text
		}
		if s.lines.Text() != "" {
			continue
		}
		if data == "" { // the beginning has an id alone
			if n, err := strconv.ParseUint(id, 10, 64); err == nil {
				*after = n
			}
		}
		if !*opened { // the caller hears that the stream is open after its first id is noted
			if *opened = true; !yield(form.Event{}, nil) {
				return nil
			}
		}
		if data == "" {
			kind, id = "", ""
			continue
		}
		switch kind {
		case "gap", "end":
			var p form.Problem
			if err := json.Unmarshal([]byte(data), &p); err != nil {
				return broken(err)
			}
			return p.Err()
		}
		var e form.Event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return broken(err)
		}
		*after = e.ID
		kind, data, id = "", "", ""
		if !yield(e, nil) {
			return nil
		}
	}
	return broken(s.lines.Err())
}

func broken(err error) error {
	return berth.Errorf(berth.Unavailable, "", "the stream of events broke: %v", err)
}
