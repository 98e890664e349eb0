package reproduce

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
)

func TestEveryPieceIsDoneOnce(t *testing.T) {
	var told atomic.Int64
	s := &session{Options: Options{Progress: func(done, total int) {
		if done < 1 || done > total || total != 100 {
			t.Errorf("told %d of %d", done, total)
		}
		told.Add(1)
	}}}
	var times [100]atomic.Int64
	err := s.each(t.Context(), len(times), func(_ context.Context, i int) error {
		times[i].Add(1)
		runtime.Gosched()
		return nil
	})
	if err != nil || told.Load() != 100 {
		t.Fatalf("error %v, told %d times", err, told.Load())
	}
	for i := range times {
		if n := times[i].Load(); n != 1 {
			t.Errorf("piece %d was done %d times", i, n)
		}
	}
}

func TestTheFirstFailureEndsTheWork(t *testing.T) {
	fault := errors.New("broken")
	var done atomic.Int64
	s := &session{}
	err := s.each(t.Context(), 1_000_000, func(_ context.Context, i int) error {
		done.Add(1)
		if i == 3 {
			return fault
		}
		return nil
	})
	if !errors.Is(err, fault) || done.Load() == 1_000_000 {
		t.Fatalf("error %v after %d pieces", err, done.Load())
	}
}

func TestTheContextEndsTheWork(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &session{Options: Options{Progress: func(int, int) { cancel() }}}
	err := s.each(ctx, 1_000_000, func(ctx context.Context, _ int) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
}
