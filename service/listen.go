package service

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/berth-hpc/berth"
)

const (
	// recent is how many notices are kept for those who come back.
	recent = 1 << 16
	// behind is how many notices a listener may be behind before he is cut off.
	behind = 1 << 12
)

// hearers tells what happened to those who listen.
type hearers struct {
	mu     *sync.Mutex
	ring   []Notice // the latest, in order
	list   map[chan Notice]struct{}
	closed bool
	lost   uint64 // number of the last notice that is no longer kept
}

// newHearers begins behind the record of a number.
func newHearers(number uint64) hearers {
	return hearers{mu: new(sync.Mutex), list: map[chan Notice]struct{}{}, lost: number << noticeBits}
}

// tell tells everybody. Who is too far behind is cut off; he can come back
// behind the last notice that he got.
func (h *hearers) tell(notices []Notice) {
	if len(notices) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ring = append(h.ring, notices...)
	if extra := len(h.ring) - recent; extra > recent/4 {
		h.lost = h.ring[extra-1].Number
		h.ring = append([]Notice(nil), h.ring[extra:]...)
	}
	for hearer := range h.list {
		for i := range notices {
			select {
			case hearer <- notices[i]:
				continue
			default:
			}
			delete(h.list, hearer)
			close(hearer)
			break
		}
	}
}

func (h *hearers) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for hearer := range h.list {
		delete(h.list, hearer)
		close(hearer)
	}
}

// Listen yields what happens to reservations that somebody may see, after the
// notice of a number, 0 for from now on, until ctx ends. The last pair carries an
// error: NotFound if notices after that number are no longer kept, Unavailable
// if the listener was too slow or the service stops. It listens from the call on, also
// before the sequence is read; the sequence can be read once.
func (h *Host) Listen(ctx context.Context, by Principal, after uint64) iter.Seq2[Notice, error] {
	hearer := make(chan Notice, behind)
	missed, err := h.hearers.join(hearer, after)
	unread := context.AfterFunc(ctx, func() { h.hearers.leave(hearer) })
	return func(yield func(Notice, error) bool) {
		if err != nil {
			yield(Notice{}, err)
			return
		}
		unread()
		defer h.hearers.leave(hearer)
		for i := range missed {
			if by.Owns(missed[i].Reservation.Request.User) && !yield(missed[i], nil) {
				return
			}
		}
		for {
			select {
			case n, open := <-hearer:
				if !open {
					yield(Notice{}, berth.Errorf(berth.Unavailable, "events", "too far behind, or the service stops; go on behind the last one"))
					return
				}
				if by.Owns(n.Reservation.Request.User) && !yield(n, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// join adds a hearer and returns what he has missed.
func (h *hearers) join(hearer chan Notice, after uint64) ([]Notice, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, berth.Errorf(berth.Unavailable, "events", "the service stops")
	}
	if after > 0 && after < h.lost {
		return nil, berth.Errorf(berth.NotFound, "last_event_id", "what followed %d is no longer kept; look at everything anew and listen from now on", after)
	}
	var missed []Notice
	if from := slices.IndexFunc(h.ring, func(n Notice) bool { return n.Number > after }); after > 0 && from >= 0 {
		missed = slices.Clone(h.ring[from:])
	}
	h.list[hearer] = struct{}{}
	return missed, nil
}

func (h *hearers) leave(hearer chan Notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.list, hearer)
}
