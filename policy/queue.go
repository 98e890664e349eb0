package policy

import (
	"fmt"
	"iter"

	"github.com/tidwall/btree"

	"github.com/berth-hpc/berth"
)

// Pending is a request that waits, with what orders need to know of it.
type Pending struct {
	Request  *berth.Request
	Sequence uint64 // order of submission, unique among what is pending
	// Length is the work of the request: the standard seconds of its
	// shortest variant.
	Length int64
	// Priority is that of its user, larger is more important; it is the same
	// in all that one user has pending. Beyond ±MaxPriority it counts as that.
	Priority int
	// UserSequence says who the user is: the order in which users first
	// appeared.
	UserSequence uint64
}

// MaxPriority bounds the size of priorities, so that with aging they fit an
// int64.
const MaxPriority = 1 << 20

// Queue holds what is pending in one order. It is an index: what it yields
// depends on what is in it, not on how it came in.
type Queue interface {
	// Add puts in a request whose sequence is not in the queue.
	// Cost: O(log n) for n pending.
	Add(p Pending)
	// Remove takes a request out; ok is false if it is not there.
	// Cost: O(log n).
	Remove(sequence uint64) (ok bool)
	// Len returns how many are pending.
	Len() int
	// Round yields the requests to decide in one pass at now, in their order.
	// It is lazy. What it does not yield is deferred and stays pending; at
	// least one is yielded if any is pending.
	//
	// A round is of what was pending when the iteration began. The queue may
	// change under it: what is removed before its turn is left out (and
	// another of the same user may take its turn), what is added is not in it.
	// To have an arrival considered, begin another round.
	Round(now berth.Time) iter.Seq[Pending]
	// Discards yields what the order refuses outright instead of deferring it,
	// reason Quota. It is to be asked, and what it yields removed, before the
	// round takes anything; it bears changes as Round does.
	Discards(now berth.Time) iter.Seq[Pending]
}

// NamedQueue is a row of the table of queues.
type NamedQueue struct {
	Name  string
	About string
	// Key returns the order as a key that a request keeps as long as it is
	// pending: the smaller first, equals in the order of submission. nil where
	// the place of a request depends on what else is pending.
	Key func(OrderOptions) func(*Pending) Key
	// Gathers says that the order means something only among requests that are
	// decided together.
	Gathers bool

	build func(OrderOptions) Queue // nil where Key says it all
}

// New returns an empty queue. The options must be valid; each order takes those
// that concern it and ignores the others.
func (row *NamedQueue) New(o OrderOptions) Queue {
	if row.build != nil {
		return row.build(o)
	}
	return &flat{key: row.Key(o), line: newLine(), register: newRegister()}
}

// Key is compared component by component.
type Key [2]int64

// Less reports whether a comes before b.
func (a Key) Less(b Key) bool { return a[0] < b[0] || (a[0] == b[0] && a[1] < b[1]) }

// Queues lists the orders as queues; the first is the default.
var Queues = []NamedQueue{
	{Name: "fcfs", About: "first come, first served", Key: keyFCFS},
	{Name: "sjf", About: "the shortest first", Key: keySJF, Gathers: true},
	{Name: "ljf", About: "the longest first", Key: keyLJF, Gathers: true},
	{Name: "edf", About: "the earliest deadline first", Key: keyEDF, Gathers: true},
	{Name: "priority", About: "the most important user first, then first come, first served", Key: keyPriority, Gathers: true},
	{
		Name: "dpsar", About: "users by priority, each some requests a round; users of like priority together, shortest first",
		Gathers: true, build: newDPSAR,
	},
	{Name: "arwp", About: "the order of submission, which is what dpsar is compared with", Key: keyARWP},
}

// QueueNamed returns the row of that name.
func QueueNamed(name string) (NamedQueue, bool) {
	for _, row := range Queues {
		if row.Name == name {
			return row, true
		}
	}
	return NamedQueue{}, false
}

// waiting is a pending request in a queue. Rounds under way may hold on to it
// after it was removed.
type waiting struct {
	Pending
	serial uint64 // order of Add
	gone   bool   // removed
}

// register finds what is pending by its sequence.
type register struct {
	bySequence map[uint64]*waiting
	serial     uint64 // of the last Add
}

func newRegister() register { return register{bySequence: map[uint64]*waiting{}} }

func (r *register) add(p Pending) *waiting {
	if r.bySequence[p.Sequence] != nil {
		panic(fmt.Sprintf("policy: request %d is in the queue already", p.Sequence))
	}
	r.serial++
	w := &waiting{Pending: p, serial: r.serial}
	r.bySequence[p.Sequence] = w
	return w
}

// remove returns nil if nothing has that sequence.
func (r *register) remove(sequence uint64) *waiting {
	w := r.bySequence[sequence]
	if w != nil {
		w.gone = true
		delete(r.bySequence, sequence)
	}
	return w
}

// item is a request in a line: by its key, then by submission.
type item struct {
	key      Key
	sequence uint64
	waiting  *waiting
}

func (a item) before(b item) bool {
	if a.key != b.key {
		return a.key.Less(b.key)
	}
	return a.sequence < b.sequence
}

// line is a number of requests in order. It is copied in O(1), and the copy
// stays as it is while the line changes.
type line = btree.BTreeG[item]

func newLine() *line { return newTree(item.before) }

// newTree returns an ordered tree without locks; its iterators hold nothing
// that would have to be released.
func newTree[T any](before func(a, b T) bool) *btree.BTreeG[T] {
	return btree.NewBTreeGOptions(before, btree.Options{NoLocks: true})
}
