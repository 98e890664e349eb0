package service

import "sync"

// line is what waits for the loop. Whoever asks waits behind himself only: all who
// have something there are served in turn. It is safe for concurrent use.
type line struct {
	mu    sync.Mutex
	of    map[string]*fifo[func()] // by who asks, of those who have something there
	turn  fifo[string]             // who is next
	ready chan struct{}            // holds one if anything may be there
}

func newLine() line { return line{of: map[string]*fifo[func()]{}, ready: make(chan struct{}, 1)} }

// push puts something behind all that somebody has there.
func (l *line) push(who string, do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine := l.of[who]
	if mine == nil {
		mine = new(fifo[func()])
		l.of[who] = mine
		l.turn.push(who)
	}
	mine.push(do)
	l.wake()
}

// pop takes what is next; ok is false if nothing is there.
func (l *line) pop() (do func(), ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	who, ok := l.turn.pop()
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
