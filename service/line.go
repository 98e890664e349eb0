package service

import "sync"

// line is what waits for the loop. Callers wait only behind themselves: all who
// have something there are served in turn, but for those who have much on its way to the
// journal, behind which everybody's records would wait. It is safe for concurrent use.
type line struct {
	mu       sync.Mutex
	of       map[string]*fifo[func()] // by who asks, of those who have something there
	turn     fifo[string]             // who is next
	owed     map[string]int           // bytes of records that are not durable, by who asked
	resting  fifo[string]             // who would be next, and is passed over for what they owe
	forgiven bool                     // no one is passed over any more
	heard    map[string]bool          // whether others have asked, by who is watched
	ready    chan struct{}            // holds one if anything may be there
	whose    func(who string) string  // in whose turn a caller is served
}

// maxOwed is with how many bytes of records on their way a user is passed over: what a
// disk that writes 50 MB/s takes a slice for. Others' records wait for no more of one user,
// and the last record.
const maxOwed = 1 << 20

// newLine returns an empty line where each caller is served in the turn that whose says, nil for their own.
func newLine(whose func(who string) string) line {
	if whose == nil {
		whose = func(who string) string { return who }
	}
	return line{whose: whose, of: map[string]*fifo[func()]{}, owed: map[string]int{}, heard: map[string]bool{}, ready: make(chan struct{}, 1)}
}

// push puts something behind all that a caller has there.
func (l *line) push(who string, do func()) {
	who = l.whose(who)
	l.mu.Lock()
	defer l.mu.Unlock()
	for watched := range l.heard {
		if who != "" && who != watched {
			l.heard[watched] = true
		}
	}
	mine := l.of[who]
	if mine == nil {
		mine = new(fifo[func()])
		l.of[who] = mine
		l.turn.push(who)
	}
	mine.push(do)
	l.wake()
}

// watch notes from now on whether others ask than one in whose turn callers are served, until the function that it
// returns is called, which tells.
func (l *line) watch(who string) (othersAsked func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard[who] = false
	return func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		asked := l.heard[who]
		delete(l.heard, who)
		return asked
	}
}

// pop takes what is next; ok is false if nothing is there.
func (l *line) pop() (do func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	who, ok := l.turn.pop()
	for ok && l.owed[who] >= maxOwed && !l.forgiven {
		l.resting.push(who)
		who, ok = l.turn.pop()
	}
	if !ok {
		return nil, false
	}
	mine := l.of[who]
	do, _ = mine.pop()
	if mine.empty() {
		delete(l.of, who)
	} else {
		l.turn.push(who)
	}
	return do, true
}

// owe notes bytes of a record of what a caller asked for, which is on its way to the
// journal. The service's own records, asked for by no one, count for nothing.
func (l *line) owe(who string, bytes int) {
	if who == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owed[who] += bytes
}

// repay notes that the record is durable, or cannot become so.
func (l *line) repay(who string, bytes int) {
	if who == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owed[who] -= bytes; l.owed[who] <= 0 {
		delete(l.owed, who)
	}
	if l.owed[who] < maxOwed {
		l.recall()
	}
}

// forgive has everybody served from now on, whatever they owe.
func (l *line) forgive() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgiven = true
	l.recall()
}

// recall has those take their turns again who were passed over; the next pop passes over
// those who still owe too much.
func (l *line) recall() {
	if l.resting.empty() {
		return
	}
	for who, ok := l.resting.pop(); ok; who, ok = l.resting.pop() {
		l.turn.push(who)
	}
	l.wake()
}

// rest says that the rest is for another time.
func (l *line) rest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.turn.empty() {
		l.wake()
	}
}

func (l *line) wake() {
	select {
	case l.ready <- struct{}{}:
	default: // it is known
	}
}

// fifo is a queue. The zero value is an empty one.
type fifo[T any] struct {
	items []T
	head  int
}

func (q *fifo[T]) empty() bool { return q.head == len(q.items) }

func (q *fifo[T]) push(item T) {
	if q.head > 32 && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, item)
}

func (q *fifo[T]) pop() (item T, ok bool) {
	if q.empty() {
		return item, false
	}
	var none T
	item, q.items[q.head] = q.items[q.head], none
	q.head++
	return item, true
}
