package service

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
)

// What is kept for those who listen: a number of notices, within a bound of
// bytes. All read the same log, each from their place on.
const (
	maxRecent     = 1 << 16
	maxRecentCost = 128 << 20
)

// news is what a Notice tells, in the form in which it is kept: the notice is made when
// a listener hears it. It is not written any more once it is told.
type news struct {
	number  uint64
	at      berth.Time
	what    string
	card    card // as it was then
	later   berth.Duration
	lacked  berth.Count // PEs that it lacked before it was resized
	refusal *berth.Refusal
	task    *Task
	trouble string
	flow    *FlowNews // of a workflow, and then there is no card
}

// notice returns what is told.
func (n *news) notice() Notice {
	if n.flow != nil {
		return Notice{Number: n.number, At: n.at, What: n.what, Workflow: n.flow}
	}
	return Notice{
		Number: n.number, At: n.at, What: n.what, Reservation: n.card.view(),
		Later: n.later, Refusal: n.refusal, Task: n.task, Trouble: n.trouble,
	}
}

// hearers tells what happened to those who listen.
type hearers struct {
	mu     *sync.Mutex
	log    [][]news      // the latest, in order and as they were told, none empty
	kept   int           // how many they are
	cost   int64         // what they take, in bytes
	last   uint64        // number of the last one that was told
	lost   uint64        // number of the last one that is no longer kept
	more   chan struct{} // nil while no one waits
	closed bool
}

// newHearers begins behind the record of a number.
func newHearers(number uint64) hearers {
	begin := number << noticeBits
	return hearers{mu: new(sync.Mutex), last: begin, lost: begin}
}

// goOn has what was told by another host be told by this one too, which stands where that
// has ended: who listened there goes on here.
func (h *hearers) goOn(before *hearers) {
	before.mu.Lock()
	log, kept, cost, lost, last := before.log, before.kept, before.cost, before.lost, before.last
	before.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = append(slices.Clip(log), h.log...) // what it has told itself since is later
	h.kept, h.cost, h.lost = h.kept+kept, h.cost+cost, lost
	h.last = max(h.last, last)
}

// tell tells everybody. The slice is the hearers' own from then on.
func (h *hearers) tell(list []news) {
	if len(list) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = append(h.log, list)
	h.kept += len(list)
	h.last = list[len(list)-1].number
	for i := range list {
		h.cost += list[i].cost()
	}
	if h.kept > maxRecent+maxRecent/4 || h.cost > maxRecentCost {
		h.forget()
	}
	h.wake()
}

// wake lets those look who wait.
func (h *hearers) wake() {
	if h.more != nil {
		close(h.more)
		h.more = nil
	}
}

// forget forgets the oldest, some more than has to be. Who reads them goes on with the
// log as it was.
func (h *hearers) forget() {
	log, first := h.log, []news(nil)
	for h.kept > 1 && (h.kept > maxRecent || h.cost > maxRecentCost/4*3) {
		if len(first) == 0 {
			first, log = log[0], log[1:]
		}
		h.cost -= first[0].cost()
		h.lost, h.kept = first[0].number, h.kept-1
		first = first[1:]
	}
	if len(first) > 0 {
		h.log = append([][]news{slices.Clone(first)}, log...)
		return
	}
	h.log = slices.Clone(log)
}

// cost returns about how many bytes a notice takes with its request and its promise.
func (n *news) cost() int64 {
	cost := int64(512)
	if n.card.request != nil {
		cost += requestCost(n.card.request)
	}
	if t := n.task; t != nil {
		cost += 512 + int64(len(t.Key)+len(t.Name)+len(t.Reason)+len(t.Output))
	}
	return cost
}

// seenBy reports whether a notice is for a principal.
func (n *news) seenBy(by Principal) bool {
	if n.flow != nil {
		return by.Owns(n.flow.User) && by.Sites.All()
	}
	return n.card.seenBy(by) && (n.task == nil || by.Sites.Has(n.task.Site))
}

func (h *hearers) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.wake()
}

// place returns the notice behind which a listener begins that has seen one; 0 is from
// now on. Records are durable up to a number.
func (h *hearers) place(after, durable uint64) (uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return 0, berth.Errorf(berth.Unavailable, "events", "the service stops")
	case after == 0:
		return h.last, nil
	case after < h.lost:
		return 0, berth.Errorf(berth.NotFound, "last_event_id", "what followed %d is no longer kept; look at everything anew and listen from now on", after)
	case after>>noticeBits > max(h.last>>noticeBits, durable): // since a start the last record may have told more than is known
		return 0, berth.Errorf(berth.NotFound, "last_event_id", "%d is of another service or of a journal that was restored; look at everything anew and listen from now on", after)
	}
	return after, nil
}

// read returns what is behind a notice, as it was told, which must not be written, or a
// channel that is closed once there may be something. The error says that there will be
// no more.
func (h *hearers) read(after uint64) (told [][]news, more <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if after < h.lost {
		return nil, nil, berth.Errorf(berth.Unavailable, "events", "too far behind; go on behind the last one")
	}
	from, _ := slices.BinarySearchFunc(h.log, after, func(list []news, after uint64) int {
		if list[len(list)-1].number <= after {
			return -1
		}
		return 1
	})
	switch told = h.log[from:len(h.log):len(h.log)]; {
	case len(told) > 0:
		return told, nil, nil
	case h.closed:
		return nil, nil, berth.Errorf(berth.Unavailable, "events", "the service stops; go on behind the last one")
	}
	if h.more == nil {
		h.more = make(chan struct{})
	}
	return nil, h.more, nil
}

// LastEvent returns the number of the latest notice, behind which those listen who listen from now
// on; 1, which no notice has, if there is none, since behind 0 is from now on, whenever that is.
func (h *Host) LastEvent() uint64 {
	h.hearers.mu.Lock()
	defer h.hearers.mu.Unlock()
	return max(h.hearers.last, 1)
}

// mostAhead is how long who stands by waits for a notice that the leader has told: after
// that it is of another journal.
const mostAhead = 5 * time.Second

// reachNotice waits until a host that stands by has followed the record of a notice.
func (h *Host) reachNotice(ctx context.Context, number uint64) error {
	there := make(chan struct{})
	h.durable.after(number>>noticeBits, func(error) { close(there) })
	timer := time.NewTimer(mostAhead)
	defer timer.Stop()
	select {
	case <-there:
		return nil
	case <-h.stopped: // and this one may lead by now
		return berth.Errorf(berth.Unavailable, "events", "the service stops; go on behind the last one")
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return berth.Errorf(berth.NotFound, "last_event_id", "%d is of another service or of a journal that was restored; look at everything anew and listen from now on", number)
	}
}

// Listen yields what happens to reservations that a principal may see and to their tasks, after the
// notice of a number, 0 for from now on, until ctx ends. The last pair carries an
// error: NotFound if notices after that number are no longer kept, Unavailable
// if the listener was too slow or the service stops. It listens from the call on, also
// before the sequence is read; the sequence can be read once.
func (h *Host) Listen(ctx context.Context, by Principal, after uint64) iter.Seq2[Notice, error] {
	at, err := h.hearers.place(after, h.durable.reached())
	ahead := h.leader != nil && after>>noticeBits > h.durable.reached() // of what the leader has told
	if ahead {
		at, err = after, nil
	}
	return func(yield func(Notice, error) bool) {
		if ahead {
			err = h.reachNotice(ctx, after)
		}
		for err == nil {
			var told [][]news
			var more <-chan struct{}
			if told, more, err = h.hearers.read(at); err != nil {
				break
			}
			for _, list := range told {
				for i := range list {
					n := &list[i]
					if n.number <= at {
						continue // what was told together with the last one
					}
					at = n.number
					if n.seenBy(by) && (ctx.Err() != nil || !yield(n.notice(), nil)) {
						return
					}
				}
			}
			if len(told) > 0 {
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
