package journal

import (
	"context"
	"errors"
	"sync"

	"github.com/berth-hpc/berth"
)

// A batch grows no further beyond these. At 300 bytes a record one fsync of a
// tenth of a millisecond to ten serves more clients than a server has; the
// bounds keep a batch, which a reader waits for as a whole, within a few
// milliseconds of writing.
const (
	maxBatch      = 4096
	maxBatchBytes = 8 << 20
)

// Appender is the part of a Log that a Writer needs.
type Appender interface {
	Append(ctx context.Context, records ...Record) error
}

// Gatherer is a log for which records are gathered: Gather returns when the next batch is to be taken, of all that was
// added until then. A Writer calls it before each batch, from its goroutine.
type Gatherer interface {
	Gather()
}

// ErrClosed answers a record that is added to a Writer that takes none.
var ErrClosed = errors.New("journal: the writer takes no more records")

// Writer appends records from one goroutine of its own. Records that come
// while a batch is on its way make up the next one, and share one fsync.
type Writer struct {
	log    Appender
	gather func() // nil if a batch is taken as soon as one can be
	failed func(error) bool

	mu      sync.Mutex
	waiting []addition
	spare   []addition // empty; its memory is for what waits next
	records []Record   // of run alone, likewise
	closed  bool
	err     error // for all that comes later, once a batch was given up

	wake    chan struct{} // of one place: there may be work
	stopped chan struct{}
}

type addition struct {
	record Record
	done   func(error)
}

// NewWriter returns a writer on a log; Close stops it. failed is called from the
// writer's goroutine when a batch could not be appended, and says whether to
// try that batch again: it may take its time, and no one is answered meanwhile.
// If it says no, that batch and all that follows get the error. A nil failed
// always says no.
func NewWriter(log Appender, failed func(error) bool) *Writer {
	w := &Writer{log: log, failed: failed, wake: make(chan struct{}, 1), stopped: make(chan struct{})}
	if g, gathers := log.(Gatherer); gathers {
		w.gather = g.Gather
	}
	go w.run()
	return w
}

// Add takes a record to be appended behind all added before, and returns at
// once. done is called once, from the writer's goroutine and in the order of
// the records: with nil when the record is durable. It must not block. How much
// may wait is the caller's to bound. Add itself may be called from one
// goroutine at a time, or the records would not follow one another.
func (w *Writer) Add(record Record, done func(error)) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		done(ErrClosed)
		return
	}
	w.waiting = append(w.waiting, addition{record, done})
	w.mu.Unlock()
	w.poke()
}

// Close appends what is waiting, answers everybody, and stops the writer. It
// does not close the log. The error is the one that a batch was given up with.
func (w *Writer) Close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.poke()
	<-w.stopped
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *Writer) poke() {
	select {
	case w.wake <- struct{}{}:
	default: // it has been told and has not looked yet
	}
}

func (w *Writer) run() {
	defer close(w.stopped)
	for {
		if w.gather != nil {
			w.gather()
		}
		batch, closed := w.take()
		if len(batch) == 0 {
			if closed {
				return
			}
			<-w.wake
			continue
		}
		err := w.append(batch)
		for _, a := range batch {
			a.done(err)
		}
		w.reuse(batch)
	}
}

// take removes the next batch from what is waiting.
func (w *Writer) take() (batch []addition, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, size := 0, 0
	for n < len(w.waiting) && n < maxBatch && size < maxBatchBytes {
		r := &w.waiting[n].record
		size += len(r.Event) + len(r.Changes) + len(r.Effects)
		n++
	}
	if n == len(w.waiting) {
		batch, w.waiting, w.spare = w.waiting, w.spare, nil
		return batch, w.closed
	}
	batch, w.waiting = w.waiting[:n:n], w.waiting[n:]
	return batch, w.closed
}

// kept is the most records for which memory is kept from one batch to the next: more
// than clients have on their way at once.
const kept = 1024

// reuse keeps the memory of a batch for what waits next.
func (w *Writer) reuse(batch []addition) {
	clear(batch)
	clear(w.records)
	if w.records = w.records[:0]; cap(w.records) > kept {
		w.records = nil
	}
	if cap(batch) > kept {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.spare = batch[:0]
}

// append makes a batch durable, in as many attempts as it is allowed.
func (w *Writer) append(batch []addition) error {
	w.mu.Lock()
	err := w.err
	w.mu.Unlock()
	if err != nil {
		return err
	}
	for i := range batch {
		w.records = append(w.records, batch[i].record)
	}
	for {
		err := w.log.Append(context.Background(), w.records...)
		if err == nil {
			return nil
		}
		if w.failed == nil || !w.failed(err) {
			w.mu.Lock()
			w.err = err
			w.mu.Unlock()
			return err
		}
	}
}

var _ Appender = Log(nil)

// NotKept returns the error of Read and Append for a record that is no longer
// kept, because the journal begins after first.
func NotKept(number uint64, begin Position) error {
	return berth.Errorf(berth.NotFound, "number", "record %d is no longer kept; the first record kept is %d", number, begin.Number+1)
}
