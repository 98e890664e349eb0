package policy

import (
	"math"
	"slices"

	"github.com/tidwall/btree"
)

// round is one scan over the users of a dpsar queue. It looks at the ranking
// as it was when the round began, and at a user's line as it is when the
// user's first request has come; register.serial and waiting.gone tell what
// changed since.
type round struct {
	queue   *dpsar
	beyond  bool // yields what exceeds the users' shares instead of the shares
	ranking *btree.BTreeG[ranked]
	serial  uint64 // of the last Add before the round
	classes classes

	// Of the users served together just now.
	streams []stream // in the order of the users
	heads   []head   // a heap of one request of each stream that has more
}

// stream is what a user has, in order.
type stream struct {
	line  *line
	rest  *btree.IterG[item] // in a copy of the line; nil until the first has come
	taken int                // of what was pending when the round began
}

// head is the next request of a stream.
type head struct {
	key     int64
	stream  int
	waiting *waiting
}

// before orders by key, then by the order of the users: the priority, then
// the user's sequence.
func (a head) before(b head) bool {
	return a.key < b.key || (a.key == b.key && a.stream < b.stream)
}

func (q *dpsar) begin(beyond bool) *round {
	r := &round{queue: q, beyond: beyond, ranking: q.ranking.Copy(), serial: q.register.serial}
	if q.lengths != nil {
		least, _ := q.lengths.Min()
		most, _ := q.lengths.Max()
		r.classes = classes{least: least.key[0], most: most.key[0], parts: q.options.LengthClasses}
	}
	return r
}

// scan compares each user with the next and serves one alone or both together.
func (r *round) scan(yield func(Pending) bool) {
	options := &r.queue.options
	var together []ranked
	next := r.ranking.Iter()
	for more := next.First(); more; {
		together = append(together[:0], next.Item())
		for more = next.Next(); more && (options.Chain || len(together) < 2); more = next.Next() {
			if !options.near(together[len(together)-1].rank, next.Item().rank) {
				break
			}
			together = append(together, next.Item())
		}
		share := options.NUJP
		if len(together) == 1 {
			share = options.N
		}
		if share == 0 {
			share = math.MaxInt
		}
		if !r.serve(together, share, yield) {
			return
		}
	}
}

// serve merges what the users have; ok is false if yield said to stop.
func (r *round) serve(together []ranked, share int, yield func(Pending) bool) (ok bool) {
	r.streams = slices.Grow(r.streams[:0], len(together))
	r.heads = slices.Grow(r.heads[:0], len(together))
	for _, u := range together {
		first := u.user.first
		if first.waiting == nil || (r.beyond && u.user.line.Len() <= share) {
			continue
		}
		r.heads = append(r.heads, head{r.key(first), len(r.streams), first.waiting})
		r.streams = append(r.streams, stream{line: u.user.line})
	}
	for i := len(r.heads)/2 - 1; i >= 0; i-- {
		r.sift(i)
	}
	for len(r.heads) > 0 {
		h := r.heads[0]
		s := &r.streams[h.stream]
		if !h.waiting.gone && h.waiting.serial <= r.serial {
			s.taken++
			if (s.taken > share) == r.beyond && !yield(h.waiting.Pending) {
				return false
			}
		}
		if (r.beyond || s.taken < share) && r.next(s, h.waiting) {
			next := s.rest.Item()
			r.heads[0] = head{r.key(next), h.stream, next.waiting}
		} else {
			last := len(r.heads) - 1
			r.heads[0] = r.heads[last]
			r.heads = r.heads[:last]
		}
		r.sift(0)
	}
	return true
}

// sift lets a head sink to its place in the heap.
func (r *round) sift(i int) {
	h := r.heads
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if !h[child].before(h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// next moves a stream on. Lines are copied only once their first request has
// come, because many users may be served together.
func (r *round) next(s *stream, last *waiting) bool {
	if s.rest != nil {
		return s.rest.Next()
	}
	s.rest = new(btree.IterG[item])
	s.rest.Init(s.line.Copy(), false)
	if !s.rest.Seek(r.queue.item(last)) {
		return false
	}
	return s.rest.Item().waiting != last || s.rest.Next()
}

// key is an item's key as it compares with those of other users.
func (r *round) key(i item) int64 {
	switch {
	case r.queue.options.LengthClasses == 0:
		return i.key[0]
	case r.queue.options.InUser == LongestInUser:
		return -r.classes.of(i.waiting.Length)
	}
	return r.classes.of(i.waiting.Length)
}
