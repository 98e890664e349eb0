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

// queue holds the pending requests in the configured order.
type queue struct {
	byID  map[string]policy.Pending
	order policy.Queue
}

func newQueue(config *Config) queue {
	return queue{byID: map[string]policy.Pending{}, order: config.Order.New(config.Options)}
}

func (q *queue) len() int { return len(q.byID) }

func (q *queue) add(p policy.Pending) {
	q.byID[p.Request.ID] = p
	q.order.Add(p)
}

func (q *queue) remove(id string) error {
	p, ok := q.byID[id]
	if !ok {
		return fmt.Errorf("request %q is not pending", id)
	}
	delete(q.byID, id)
	q.order.Remove(p.Sequence)
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
func (s *State) Request(id string) *berth.Request { return s.queue.byID[id].Request }

// Round yields the pending requests that the next pass looks at, in the configured
// order. The queue must not change meanwhile.
func (s *State) Round() iter.Seq[policy.Pending] { return s.queue.order.Round(s.now) }

// Discards yields the pending requests that the order does not let wait.
func (s *State) Discards() iter.Seq[policy.Pending] { return s.queue.order.Discards(s.now) }

// Requests returns the pending requests in the order of submission. Cost:
// O(n log n).
func (s *State) Requests() []policy.Pending {
	list := make([]policy.Pending, 0, len(s.queue.byID))
	for _, p := range s.queue.byID {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b policy.Pending) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return list
}
