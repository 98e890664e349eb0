package main

import (
	"io"
	"os"
	"sync"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/cwriter"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress is a bar on stderr that counts decided requests over all runs. On
// anything but a terminal it shows nothing.
type progress struct {
	container *mpb.Progress // nil if nothing is shown
	bar       *mpb.Bar
	runs      int

	mu     sync.Mutex
	perRun int // requests of one run, known when the first has begun
}

func (a *app) newProgress(runs int) *progress {
	p := &progress{runs: runs}
	if !isTerminal(a.stderr) {
		return p
	}
	p.container = mpb.New(mpb.WithOutput(a.stderr), mpb.WithWidth(48))
	p.bar = p.container.AddBar(0,
		mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name("deciding "), decor.CountersNoUnit("%d/%d requests", decor.WCSyncSpace)),
		mpb.AppendDecorators(decor.Percentage(decor.WC{W: 5}), decor.Name(" "), decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO), "")),
	)
	return p
}

// of returns what a run of n requests tells its progress to, nil if no terminal
// shows it.
func (p *progress) of(n int) func(done int) {
	if p.bar == nil {
		return nil
	}
	p.mu.Lock()
	if p.perRun == 0 {
		p.perRun = n
		p.bar.SetTotal(int64(n)*int64(p.runs), false)
	}
	p.mu.Unlock()
	told := 0
	return func(done int) {
		p.bar.IncrBy(done - told)
		told = done
	}
}

// end takes the bar away.
func (p *progress) end() {
	if p.bar == nil {
		return
	}
	p.bar.Abort(true)
	p.container.Wait()
}

// isTerminal reports whether people watch the stream as it is written.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && cwriter.IsTerminal(int(file.Fd()))
}
