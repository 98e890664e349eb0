package state

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// queue holds the pending requests in the configured order. Most requests are
// decided when they arrive: what is pending alone needs no order.
type queue struct {
	lone    policy.Pending // the only one that is pending, if it came when none was; without a request there is none
	byID    map[string]policy.Pending
	order   policy.Queue
	waiting waiting
}

// waiting counts pending requests, but for the lone one, and jobs by user and, where they have limits, by account and QOS;
// what has no place has no partition yet. It is empty where there are no limits.
type waiting struct {
	of      byHolder[int]
	holding holding
}

func (w *waiting) add(r *berth.Request, n int) {
	if w.of[ofUser] == nil {
		return
	}
	if r.User != "" {
		w.addTo(OfUser(r.User), n)
	}
	w.holding.list = w.holding.named(r, w.holding.list[:0])
	for _, h := range w.holding.list {
		w.addTo(h, n)
	}
}

func (w *waiting) addTo(h Holder, n int) {
	if w.of[h.kind][h.name] += n; w.of[h.kind][h.name] == 0 {
		delete(w.of[h.kind], h.name)
	}
}

func newQueue(config *Config) queue {
	q := queue{byID: map[string]policy.Pending{}, order: config.Order.New(config.Options)}
	if config.Limited {
		q.waiting = waiting{newByHolder[int](), newHolding(config)}
	}
	return q
}

func (q *queue) len() int {
	if q.lone.Request != nil {
		return 1
	}
	return len(q.byID)
}

func (q *queue) add(p policy.Pending) {
	if q.len() == 0 {
		q.lone = p
		return
	}
	if first := q.lone; first.Request != nil {
		q.lone = policy.Pending{}
		q.enter(first)
	}
	q.enter(p)
}

func (q *queue) enter(p policy.Pending) {
	q.waiting.add(p.Request, 1)
	q.byID[p.Request.ID] = p
	q.order.Add(p)
}

// pendingOf returns how many requests and jobs of a holder are pending; 0 where there are no limits.
func (q *queue) pendingOf(h Holder) int {
	n := q.waiting.of[h.kind][h.name]
	r := q.lone.Request
	if r == nil || q.waiting.of[ofUser] == nil || h.name == "" {
		return n
	}
	switch h.kind {
	case ofUser:
		if r.User == h.name {
			n++
		}
		if r.Owner == h.name {
			n++
		}
	case ofAccount:
		if r.Account == h.name && policy.Named(q.waiting.holding.accounts, h.name) {
			n++
		}
	case ofQOS:
		if r.QOS == h.name && policy.Named(q.waiting.holding.qualities, h.name) {
			n++
		}
	}
	return n
}

// of returns the pending request of that id; without a request there is none.
func (q *queue) of(id string) policy.Pending {
	if p := q.lone; p.Request != nil && p.Request.ID == id {
		return p
	}
	return q.byID[id]
}

func (q *queue) remove(id string) error {
	if p := q.lone; p.Request != nil && p.Request.ID == id {
		q.lone = policy.Pending{}
		return nil
	}
	p, ok := q.byID[id]
	if !ok {
		return fmt.Errorf("request %q is not pending", id)
	}
	delete(q.byID, id)
	q.order.Remove(p.Sequence)
	q.waiting.add(p.Request, -1)
	return nil
}

// users knows the users of all that was submitted so far. Requests without a user
// are those of one nameless user.
type users struct {
	seen     map[string]uint64 // the order in which users first appeared
	list     []string          // in this order
	priority map[string]int    // as configured
	lowest   int               // of the configured ones: that of all others
}

func newUsers(configured []berth.User) users {
	u := users{seen: map[string]uint64{}, priority: map[string]int{}}
	if len(configured) > 0 {
		u.lowest = math.MaxInt
	}
	for _, user := range configured {
		u.priority[user.ID] = user.Priority
		u.lowest = min(u.lowest, user.Priority)
	}
	return u
}

// sequence returns a user's place, giving the next one to a new user.
func (u *users) sequence(user string) uint64 {
	n, seen := u.seen[user]
	if !seen {
		n = uint64(len(u.list))
		u.seen[user], u.list = n, append(u.list, user)
	}
	return n
}

// PriorityOf returns a user's priority.
func (s *State) PriorityOf(user string) int { return s.users.priorityOf(user) }

// priorityOf returns a user's priority.
func (u *users) priorityOf(user string) int {
	if p, configured := u.priority[user]; configured {
		return p
	}
	return u.lowest
}

// pending gives a request its place among those submitted, which is the last.
func (s *State) pending(r *berth.Request) policy.Pending {
	s.submitted++
	return s.describe(r, s.submitted)
}

// describe returns what orders need to know of a request.
func (s *State) describe(r *berth.Request, number uint64) policy.Pending {
	return policy.Pending{
		Request: r, Sequence: number, Length: int64(Length(r)),
		Priority: s.users.priorityOf(r.User), UserSequence: s.users.sequence(r.User),
	}
}

// Length is how many standard seconds a request takes at least: the shortest
// variant of its longest part.
func Length(r *berth.Request) berth.Duration {
	var longest berth.Duration
	for i := range r.Parts {
		shortest := r.Parts[i].Variants[0].Duration
		for _, v := range r.Parts[i].Variants[1:] {
			shortest = min(shortest, v.Duration)
		}
		longest = max(longest, shortest)
	}
	return longest
}

// Queued returns the number of pending requests, jobs apart.
func (s *State) Queued() int { return s.queue.len() }

// Request returns the pending request of that id, nil if there is none.
func (s *State) Request(id string) *berth.Request { return s.queue.of(id).Request }

// Lone returns the only pending request, where it came when none was pending; nil if
// there is none. Every order yields it in the next round and discards nothing.
func (s *State) Lone() *berth.Request { return s.queue.lone.Request }

// Round yields the pending requests that the next pass looks at, in the configured
// order.
func (s *State) Round() iter.Seq[policy.Pending] {
	if p := s.queue.lone; p.Request != nil {
		return func(yield func(policy.Pending) bool) { yield(p) }
	}
	return s.queue.order.Round(s.now)
}

// Discards yields the pending requests that the order does not let wait.
func (s *State) Discards() iter.Seq[policy.Pending] {
	if s.queue.lone.Request != nil {
		return none
	}
	return s.queue.order.Discards(s.now)
}

func none(func(policy.Pending) bool) {}

// Requests returns the pending requests in the order of submission. Cost:
// O(n log n).
func (s *State) Requests() []policy.Pending {
	list := make([]policy.Pending, 0, s.queue.len())
	if s.queue.lone.Request != nil {
		list = append(list, s.queue.lone)
	}
	for _, p := range s.queue.byID {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b policy.Pending) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return list
}
