package policy

import (
	"iter"

	"github.com/berth-hpc/berth"
)

// flat is a queue in which every request has a key of its own, and each round
// yields all of them. Ties go by submission.
type flat struct {
	key      func(*Pending) Key
	line     *line
	register register
}

var _ Queue = (*flat)(nil)

func keyFCFS(OrderOptions) func(*Pending) Key {
	return func(p *Pending) Key { return Key{int64(p.Request.Arrival)} }
}

func keySJF(OrderOptions) func(*Pending) Key {
	return func(p *Pending) Key { return Key{p.Length} }
}

func keyLJF(OrderOptions) func(*Pending) Key {
	return func(p *Pending) Key { return Key{-p.Length} }
}

func keyEDF(OrderOptions) func(*Pending) Key {
	return func(p *Pending) Key { return Key{int64(p.Request.Deadline)} }
}

// keyARWP is the order of the scheduler that Ahuja et al. compare theirs with
// (Sulistio and Buyya 2004): submission, and nothing else.
func keyARWP(OrderOptions) func(*Pending) Key {
	return func(*Pending) Key { return Key{} }
}

// keyPriority orders by priority and among equals by InUser, first come, first
// served if empty. Users of equal priority are not told apart. With Aging each
// request ages by itself.
func keyPriority(o OrderOptions) func(*Pending) Key {
	within := o.inUser(FirstInUser)
	return func(p *Pending) Key {
		return Key{-o.rank(p.Priority, p.Request.Arrival), within(p)}
	}
}

func (q *flat) item(w *waiting) item {
	return item{key: q.key(&w.Pending), sequence: w.Sequence, waiting: w}
}

// Add implements Queue.
func (q *flat) Add(p Pending) { q.line.Set(q.item(q.register.add(p))) }

// Remove implements Queue.
func (q *flat) Remove(sequence uint64) bool {
	w := q.register.remove(sequence)
	if w != nil {
		q.line.Delete(q.item(w))
	}
	return w != nil
}

// Len implements Queue.
func (q *flat) Len() int { return q.line.Len() }

// Round implements Queue. It does not depend on now. Cost: O(log n) for the
// first, O(1) amortised for each later one.
func (q *flat) Round(berth.Time) iter.Seq[Pending] {
	return func(yield func(Pending) bool) {
		it := q.line.Copy().Iter()
		for ok := it.First(); ok; ok = it.Next() {
			if w := it.Item().waiting; !w.gone && !yield(w.Pending) {
				return
			}
		}
	}
}

// Discards implements Queue: there are none.
func (q *flat) Discards(berth.Time) iter.Seq[Pending] { return nothing }

func nothing(func(Pending) bool) {}
