package reproduce

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// each calls do for every i below n, on all cores, and tells the session's
// progress. The results must go to places that belong to i alone: then they do
// not depend on how many cores there are. The first failure ends everything and
// is returned; so does the context.
func (s *session) each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, done atomic.Int64
	var workers sync.WaitGroup
	work := func() {
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= n {
				return
			}
			if err := do(ctx, i); err != nil {
				cancel(err)
				return
			}
			if finished := int(done.Add(1)); s.Progress != nil {
				s.Progress(finished, n)
			}
		}
	}
	for range min(runtime.GOMAXPROCS(0), n) {
		workers.Go(work)
	}
	workers.Wait()
	return context.Cause(ctx)
}
