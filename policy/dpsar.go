package policy

import (
	"fmt"
	"iter"

	"github.com/tidwall/btree"

	"github.com/berth-hpc/berth"
)

// dpsar is the dynamic priority scheduler of Ahuja, Gabrani and De, section
// "DPSAR in detail" (spec 3, b.1), as a queue. One round:
//
//	sort the users with something pending by priority, descending
//	sort what each has pending, shortest first
//	from the first user on:
//	  a user whose priority exceeds the next one's by more than SD, and the
//	  last user, is served alone: the first N of their requests (UHP)
//	  else the user and the next are served together: the requests of both, shortest
//	  first (UJP)
//
// Ties: users of equal priority by their sequence; requests of equal length of
// different users by the order of the users, of one user by submission.
//
// Deviations and what the paper leaves open:
//   - A difference equal to SD is not significant.
//   - Users are compared in one scan: two served together are both done, the
//     second is not compared with the third. Chain serves whole runs together.
//   - The rest beyond N is deferred; the paper also says "discarded", which is
//     Overflow. N binds only who is served alone, as in its example; NUJP the
//     others.
//   - The paper's two sorted queues are ordered trees; the round is drawn from
//     them as it is asked for, and none of it is stored.
//   - LengthClasses, InUser (which the paper names as possible) and Aging are
//     additions. A user is as old as their oldest pending request. Among
//     the requests of one user lengths are always compared exactly.
type dpsar struct {
	options  OrderOptions
	key      func(*Pending) int64 // of the order in a user
	register register
	users    map[uint64]*user
	ranking  *btree.BTreeG[ranked] // of the users
	lengths  *line                 // everything by length; nil without classes
}

// user is a user with pending requests.
type user struct {
	sequence uint64
	priority int
	place    ranked // in the ranking
	line     *line
	first    item  // of the line
	ages     *line // the same by arrival; nil without aging
}

// ranked is a user's place among users. It stays as it is in the rankings that
// rounds under way look at.
type ranked struct {
	rank int64
	user *user
}

func (a ranked) before(b ranked) bool {
	if a.rank != b.rank {
		return a.rank > b.rank
	}
	return a.user.sequence < b.user.sequence
}

var _ Queue = (*dpsar)(nil)

func newDPSAR(o OrderOptions) Queue {
	q := &dpsar{
		options: o, key: o.inUser(ShortestInUser),
		register: newRegister(), users: map[uint64]*user{}, ranking: newTree(ranked.before),
	}
	if o.LengthClasses > 0 {
		q.lengths = newLine()
	}
	return q
}

func (q *dpsar) item(w *waiting) item {
	return item{key: Key{q.key(&w.Pending)}, sequence: w.Sequence, waiting: w}
}

func byArrival(w *waiting) item {
	return item{key: Key{int64(w.Request.Arrival)}, sequence: w.Sequence, waiting: w}
}

func byLength(w *waiting) item {
	return item{key: Key{w.Length}, sequence: w.Sequence, waiting: w}
}

// Add implements Queue.
func (q *dpsar) Add(p Pending) {
	w := q.register.add(p)
	u := q.users[p.UserSequence]
	if u == nil {
		u = &user{sequence: p.UserSequence, priority: p.Priority, line: newLine()}
		if q.options.Aging > 0 {
			u.ages = newLine()
		}
		q.users[p.UserSequence] = u
	}
	if u.priority != p.Priority {
		panic(fmt.Sprintf("policy: user %d has the priorities %d and %d", u.sequence, u.priority, p.Priority))
	}
	u.line.Set(q.item(w))
	if u.ages != nil {
		u.ages.Set(byArrival(w))
	}
	if q.lengths != nil {
		q.lengths.Set(byLength(w))
	}
	q.place(u)
}

// Remove implements Queue.
func (q *dpsar) Remove(sequence uint64) bool {
	w := q.register.remove(sequence)
	if w == nil {
		return false
	}
	u := q.users[w.UserSequence]
	u.line.Delete(q.item(w))
	if u.ages != nil {
		u.ages.Delete(byArrival(w))
	}
	if q.lengths != nil {
		q.lengths.Delete(byLength(w))
	}
	q.place(u)
	return true
}

// place puts a user whose line has changed in the right place of the ranking, or
// takes them out of it.
func (q *dpsar) place(u *user) {
	var some bool
	if u.first, some = u.line.Min(); !some {
		q.ranking.Delete(u.place)
		delete(q.users, u.sequence)
		return
	}
	var oldest berth.Time
	if u.ages != nil {
		first, _ := u.ages.Min()
		oldest = first.waiting.Request.Arrival
	}
	place := ranked{q.options.rank(u.priority, oldest), u}
	if place == u.place {
		return
	}
	if listed := u.place.user != nil; listed {
		q.ranking.Delete(u.place)
	}
	q.ranking.Set(place)
	u.place = place
}

// Len implements Queue.
func (q *dpsar) Len() int { return len(q.register.bySequence) }

// Round implements Queue. It does not depend on now, aging or not. Cost:
// O(log n) for each request and O(u) before the first of u users served
// together.
func (q *dpsar) Round(berth.Time) iter.Seq[Pending] {
	return func(yield func(Pending) bool) { q.begin(false).scan(yield) }
}

// Discards implements Queue: with Overflow Discard what a round from now on
// would leave, in the order in which it would come without limits. Aging then
// sees users without what was discarded. Cost: O(users) and O(log n) for each
// request of those who have any to discard.
func (q *dpsar) Discards(berth.Time) iter.Seq[Pending] {
	return func(yield func(Pending) bool) {
		if q.options.Overflow == Discard {
			q.begin(true).scan(yield)
		}
	}
}
