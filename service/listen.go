package service

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/berth-hpc/berth"
)

// What is kept for those who listen: so many notices, as far as they take no more than
// so many bytes. All read the same log, each from his place on.
const (
	maxRecent     = 1 << 16
	maxRecentCost = 128 << 20
)

// hearers tells what happened to those who listen.
type hearers struct {
	mu     *sync.Mutex
	log    []Notice // the latest, in order; what was told is not written any more
	cost   int64    // what they take, in bytes
	last   uint64   // number of the last one that was told
	lost   uint64   // number of the last one that is no longer kept
	more   chan struct{}
	closed bool
}

// newHearers begins behind the record of a number.
func newHearers(number uint64) hearers {
	begin := number << noticeBits
	return hearers{mu: new(sync.Mutex), more: make(chan struct{}), last: begin, lost: begin}
}

// tell tells everybody.
func (h *hearers) tell(notices []Notice) {
	if len(notices) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = append(h.log, notices...)
	h.last = notices[len(notices)-1].Number
	for i := range notices {
		h.cost += notices[i].cost()
	}
	if len(h.log) > maxRecent+maxRecent/4 || h.cost > maxRecentCost {
		h.forget()
	}
	close(h.more)
	h.more = make(chan struct{})
}

// forget forgets the oldest, some more than has to be. Who reads them goes on with the
// log as it was.
func (h *hearers) forget() {
	n := 0
	for ; n < len(h.log)-1 && (len(h.log)-n > maxRecent || h.cost > maxRecentCost/4*3); n++ {
		h.cost -= h.log[n].cost()
	}
	if n > 0 {
		h.lost = h.log[n-1].Number
		h.log = slices.Clone(h.log[n:])
	}
}

// cost returns about how many bytes a notice takes with its request.
func (n *Notice) cost() int64 {
	cost := 512 + requestCost(&n.Reservation.Request)
	if t := n.Task; t != nil {
		cost += 512 + int64(len(t.Key)+len(t.Name)+len(t.Reason)+len(t.Output))
	}
	return cost
}

// seenBy reports whether a notice is for somebody.
func (n *Notice) seenBy(by Principal) bool {
	r := &n.Reservation
	return by.sees(&r.Request, r.Allotments, r.Refusal) && (n.Task == nil || by.Sites.Has(n.Task.Site))
}

func (h *hearers) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	close(h.more)
	h.more = make(chan struct{})
}

// place returns the notice behind which somebody begins, who has seen one; 0 is from
// now on.
func (h *hearers) place(after uint64) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return 0, berth.Errorf(berth.Unavailable, "events", "the service stops")
	case after == 0:
		return h.last, nil
	case after < h.lost:
		return 0, berth.Errorf(berth.NotFound, "last_event_id", "what followed %d is no longer kept; look at everything anew and listen from now on", after)
	}
	return after, nil
}

// read returns what is behind a notice, which must not be written, or a channel that is
// closed once there may be something. The error says that there will be no more.
func (h *hearers) read(after uint64) (notices []Notice, more <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if after < h.lost {
		return nil, nil, berth.Errorf(berth.Unavailable, "events", "too far behind; go on behind the last one")
	}
	from, _ := slices.BinarySearchFunc(h.log, after+1, func(n Notice, number uint64) int {
		if n.Number < number {
			return -1
		}
		return 1
	})
	switch notices = h.log[from:len(h.log):len(h.log)]; {
	case len(notices) > 0:
		return notices, nil, nil
	case h.closed:
		return nil, nil, berth.Errorf(berth.Unavailable, "events", "the service stops; go on behind the last one")
	}
	return nil, h.more, nil
}

// Listen yields what happens to reservations that somebody may see and to their tasks, after the
// notice of a number, 0 for from now on, until ctx ends. The last pair carries an
// error: NotFound if notices after that number are no longer kept, Unavailable
// if the listener was too slow or the service stops. It listens from the call on, also
// before the sequence is read; the sequence can be read once.
func (h *Host) Listen(ctx context.Context, by Principal, after uint64) iter.Seq2[Notice, error] {
	at, err := h.hearers.place(after)
	return func(yield func(Notice, error) bool) {
		for err == nil {
			var notices []Notice
			var more <-chan struct{}
			if notices, more, err = h.hearers.read(at); err != nil {
				break
			}
			for i := range notices {
				at = notices[i].Number
				if notices[i].seenBy(by) && (ctx.Err() != nil || !yield(notices[i], nil)) {
					return
				}
			}
			if len(notices) > 0 {
				continue
			}
			select {
			case <-more:
			case <-ctx.Done():
				return
			}
		}
		yield(Notice{}, err)
	}
}
