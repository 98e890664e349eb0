package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"time"

	"github.com/berth-hpc/berth/api/laboratory"
	"github.com/berth-hpc/berth/lab"
)

// A worker is a berth lab that the service runs for a user: at the lowest priority, in bounded
// memory, only for as long as the service lives, and telling how far it is.

// niced is the variable that says that a process was started again at the lowest priority, or needs not be.
const niced = "BERTH_WORKER_NICED"

// asWorker makes this process a worker. The context ends when stdin does, which the service
// holds open: a killed service cannot tell its workers.
func asWorker(ctx context.Context, stdin io.Reader) (context.Context, context.CancelFunc, error) {
	if err := lowPriority(); err != nil {
		return nil, nil, err
	}
	boundMemory(laboratory.MaxMemory)
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // that it ends is all that it tells
		cancel()
		// Who reads a long log hears of no context.
		time.AfterFunc(time.Second, func() { os.Exit(exitInterrupted) })
	}()
	return ctx, cancel, nil
}

// tellSteps has the progress of a worker written to stdout, at most five times a second.
func (a *app) tellSteps(options *lab.Options) {
	steps := json.NewEncoder(a.stdout)
	var last time.Time
	options.Progress = func(done float64, runs int) {
		if now := time.Now(); done == 0 || now.Sub(last) >= 200*time.Millisecond {
			last = now
			_ = steps.Encode(laboratory.Step{Done: done, Runs: runs}) // a service that is gone ends it by stdin
		}
	}
}
