package engine

import (
	"fmt"
	"math"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// queue holds the pending requests in the configured order.
type queue struct {
	byID  map[string]policy.Pending
	order policy.Queue
}

func newQueue(settings *settings) queue {
	return queue{byID: map[string]policy.Pending{}, order: settings.order.New(settings.options)}
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

// users knows everybody who has asked for something so far. Who names no user
// is one nameless user.
type users struct {
	seen     map[string]uint64 // the order in which users first appeared
	list     []string          // in this order
	priority map[string]int    // as configured
	lowest   int               // of the configured ones: that of everybody else
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
func (s *state) pending(r *berth.Request) policy.Pending {
	s.submitted++
	return s.describe(r, s.submitted)
}

// describe says of a request what orders need to know.
func (s *state) describe(r *berth.Request, number uint64) policy.Pending {
	return policy.Pending{
		Request: r, Sequence: number, Length: int64(length(r)),
		Priority: s.users.priorityOf(r.User), UserSequence: s.users.sequence(r.User),
	}
}

// length is how many standard seconds a request takes at least: the shortest
// variant of its longest part.
func length(r *berth.Request) berth.Duration {
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
