package journal

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/berth-hpc/berth"
)

// slow is a log whose appends wait to be let go on, with the given errors.
type slow struct {
	let     chan error
	batches [][]uint64
}

func (s *slow) Append(_ context.Context, records ...Record) error {
	var numbers []uint64
	for _, r := range records {
		numbers = append(numbers, r.Number)
	}
	s.batches = append(s.batches, numbers)
	return <-s.let
}

func numbers(from, to uint64) (list []uint64) {
	for n := from; n <= to; n++ {
		list = append(list, n)
	}
	return list
}

// answers collects who was told what.
type answers struct {
	numbers []uint64
	errs    []error
}

func (a *answers) add(w *Writer, list []Record) {
	for _, r := range list {
		w.Add(r, func(err error) {
			a.numbers = append(a.numbers, r.Number)
			a.errs = append(a.errs, err)
		})
	}
}

// gathering is a log that has records gathered until it is told.
type gathering struct {
	slow
	enough chan struct{}
}

func (g *gathering) Gather() { <-g.enough }

func TestABatchIsWhatALogHasGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &gathering{slow{let: make(chan error, 1)}, make(chan struct{})}
		w := NewWriter(log, nil)
		list := chain(3)
		var told answers
		told.add(w, list[:1])
		synctest.Wait()
		told.add(w, list[1:])
		synctest.Wait()
		if len(log.batches) != 0 {
			t.Fatalf("batches %v while records are gathered", log.batches)
		}
		log.let <- nil
		close(log.enough)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if len(log.batches) != 1 || !slices.Equal(log.batches[0], numbers(1, 3)) || !slices.Equal(told.numbers, numbers(1, 3)) {
			t.Errorf("batches %v, answers %v; want one of all three", log.batches, told.numbers)
		}
	})
}

func TestWhatComesDuringASyncSharesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &slow{let: make(chan error)}
		w := NewWriter(log, nil)
		list := chain(10)
		var told answers
		told.add(w, list[:1])
		synctest.Wait() // the first is on its way
		told.add(w, list[1:9])
		synctest.Wait()
		if len(log.batches) != 1 || len(told.numbers) != 0 {
			t.Fatalf("batches %v, answers %v before the first sync ended", log.batches, told.numbers)
		}
		log.let <- nil
		synctest.Wait()
		if !slices.Equal(told.numbers, numbers(1, 1)) {
			t.Fatalf("answers %v after the first sync", told.numbers)
		}
		log.let <- nil
		synctest.Wait()
		told.add(w, list[9:])
		go func() { log.let <- nil }()
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(told.numbers, numbers(1, 10)) || slices.ContainsFunc(told.errs, func(err error) bool { return err != nil }) {
			t.Errorf("answers %v %v", told.numbers, told.errs)
		}
		if len(log.batches) != 3 || !slices.Equal(log.batches[1], numbers(2, 9)) {
			t.Errorf("batches %v", log.batches)
		}
	})
}

func TestABatchIsTriedAgainBeforeAnybodyIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &slow{let: make(chan error)}
		full := berth.Errorf(berth.Exhausted, "journal", "no room")
		failures := 0
		w := NewWriter(log, func(err error) bool {
			failures++
			return CanRetry(err)
		})
		var told answers
		list := chain(3)
		told.add(w, list[:1])
		synctest.Wait() // the first is being written: what comes now is another batch
		told.add(w, list[1:])
		for range 3 {
			log.let <- full
			synctest.Wait()
			if len(told.numbers) > 0 {
				t.Fatalf("answers %v %v to a failed batch", told.numbers, told.errs)
			}
		}
		log.let <- nil
		log.let <- nil
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if failures != 3 || !slices.Equal(told.numbers, numbers(1, 3)) || told.errs[0] != nil {
			t.Errorf("%d failures, answers %v %v", failures, told.numbers, told.errs)
		}
		if len(log.batches) != 5 {
			t.Fatalf("%d batches were written, want one four times and another", len(log.batches))
		}
		for _, batch := range log.batches[1:4] {
			if !slices.Equal(batch, log.batches[0]) {
				t.Errorf("a batch was tried again as %v", batch)
			}
		}
	})
}

func TestAfterABatchIsGivenUpEverythingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &slow{let: make(chan error)}
		broken := errors.New("broken")
		w := NewWriter(log, func(err error) bool { return CanRetry(err) })
		list := chain(5)
		var told answers
		told.add(w, list[:2])
		synctest.Wait()
		told.add(w, list[2:4])
		log.let <- broken
		synctest.Wait()
		told.add(w, list[4:])
		if err := w.Close(); !errors.Is(err, broken) {
			t.Errorf("close: %v", err)
		}
		if !slices.Equal(told.numbers, numbers(1, 5)) {
			t.Errorf("answers %v", told.numbers)
		}
		for i, err := range told.errs {
			if !errors.Is(err, broken) {
				t.Errorf("record %d: %v", told.numbers[i], err)
			}
		}
		if len(log.batches) > 2 {
			t.Errorf("batches %v: the log was written behind a batch that is not there", log.batches)
		}
		w.Add(list[4], func(err error) {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("after the end: %v", err)
			}
		})
	})
}

func TestABatchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &slow{let: make(chan error)}
		w := NewWriter(log, nil)
		many := make([]Record, 2*maxBatch+2)
		var told answers
		told.add(w, many[:1])
		synctest.Wait()
		told.add(w, many[1:])
		large := Record{Event: make([]byte, maxBatchBytes/2)}
		told.add(w, []Record{large, large, large})
		for range 5 {
			log.let <- nil
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		var sizes []int
		for _, batch := range log.batches {
			sizes = append(sizes, len(batch))
		}
		if want := []int{1, maxBatch, maxBatch, 3, 1}; !slices.Equal(sizes, want) {
			t.Errorf("batches of %v, want %v", sizes, want)
		}
	})
}

// keeping is a log that keeps what it is given as it was then.
type keeping struct{ numbers []uint64 }

func (k *keeping) Append(_ context.Context, records ...Record) error {
	for i := range records {
		k.numbers = append(k.numbers, records[i].Number)
	}
	return nil
}

// The memory of a batch is used again for what comes later, also for what is added while
// a batch is on its way: each record is appended once and answered once, in order.
func TestBatchesInTheSameMemoryAreNotMixed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &keeping{}
		w := NewWriter(log, nil)
		list := chain(20_000)
		var told answers
		rest := list
		for i := 0; len(rest) > 0; i++ {
			n := min(len(rest), 1+i*i%97)
			told.add(w, rest[:n])
			if rest = rest[n:]; i%3 == 0 {
				synctest.Wait() // all is appended
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if want := numbers(1, 20_000); !slices.Equal(log.numbers, want) || !slices.Equal(told.numbers, want) {
			t.Errorf("%d records are appended, %d answered, of %d; or not in order", len(log.numbers), len(told.numbers), len(want))
		}
	})
}
