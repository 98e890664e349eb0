package main

import (
	"fmt"
	"sync"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/planning"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workflow/flowfile"
	"github.com/berth-hpc/berth/workload"
)

// planInput is a workflow and what it is planned around, as the files have it.
type planInput struct {
	planning.Planning
	actual *workflow.Workflow // with the times of the file
}

// openPlanning reads workflow and bookings, and tells on stderr what is odd
// about them.
func (a *app) openPlanning(cmd *cobra.Command, path string, flags *planFlags) (*planInput, error) {
	bookings := a.bookingsBeside(flags)
	file, err := a.openWorkflow(path, flags)
	if err != nil {
		return nil, err
	}
	p := &planInput{
		Planning: planning.Planning{Name: file.Name, Flow: file.Flow, PEs: flags.pes, Now: flags.now.t}, actual: file.Flow,
	}
	if flags.estimates > 0 {
		if p.Flow, err = file.Flow.Scaled(flags.estimates); err != nil {
			return nil, err
		}
	}
	p.Past = berth.Interval{Start: p.Now, End: p.Now}
	if flags.bookings != "" {
		if err := a.takeBookings(cmd, p, flags, bookings); err != nil {
			return nil, err
		}
	}
	if p.PEs == 0 {
		return nil, usagef(cmd, "--pes: missing; want the size of the site")
	}
	if err := workload.CheckFit(p.Bookings, p.PEs); err != nil {
		return nil, fmt.Errorf("%s: %w", flags.bookings, err)
	}
	if err := file.Larger(p.PEs, "the site"); err != nil {
		return nil, err
	}
	free := flags.free
	switch {
	case free > p.PEs:
		a.say("berth: --q: %d, but the site has %d PEs; that is taken", free, p.PEs)
	case free == 0:
		if len(p.Bookings) > 0 && p.Past.Length() == 0 {
			a.say("berth: the bookings tell nothing of the time before %d; q is %d, as if all PEs had been free (--q says otherwise)", p.Now, p.PEs)
		}
		free = workload.AverageFree(p.Bookings, p.PEs, p.Past)
	}
	return p, p.Prepare(free)
}

// bookingsBeside begins to read what others hold, and returns what waits for that: the workflow is read meanwhile. Stdin is
// not read before.
func (a *app) bookingsBeside(flags *planFlags) func() (*workload.BookingFile, error) {
	options := workload.Options{PEs: flags.pes, Strict: flags.strict}
	if flags.partition > 0 {
		options.Keep = func(r *workload.Record) bool { return int(r.Partition) == flags.partition }
	}
	read := sync.OnceValues(func() (*workload.BookingFile, error) { return a.readBookings(flags.bookings, options) })
	if flags.bookings != "" && flags.bookings != stdStream {
		go read() //nolint:errcheck // told to who waits
	}
	return read
}

// takeBookings takes what others hold.
func (a *app) takeBookings(cmd *cobra.Command, p *planInput, flags *planFlags, read func() (*workload.BookingFile, error)) error {
	file, err := read()
	if err != nil {
		return err
	}
	if err := refuseIdle(cmd, []need{{file.Form == workload.SWF, "a log of --bookings", []string{"partition"}}}); err != nil {
		return err
	}
	if p.PEs == 0 {
		p.PEs = file.PEs()
	}
	if p.PEs == 0 {
		return usagef(cmd, "--pes: missing; %s does not tell the size of the site", flags.bookings)
	}
	a.tell(&file.Report)
	if file.NoWait > 0 {
		a.say("berth: %s: %d jobs have no wait time and are taken to start when they were submitted", flags.bookings, file.NoWait)
	}
	p.Bookings, p.Past = file.Bookings, workload.Past(file.Begin, p.Now)
	return planning.OneSite(flags.bookings, p.Bookings)
}

// openWorkflow reads a workflow; - is stdin.
func (a *app) openWorkflow(path string, flags *planFlags) (*flowfile.File, error) {
	options := flowfile.Options{Alpha: flags.alpha.x}
	if flags.alpha.drawn {
		// Draw i of the stream is task i's, whether it needs one or not.
		draws := stream.New(flags.seed, "alpha")
		options.Draw = func(task int) float64 { return flags.alpha.x * draws.Float64(uint64(task)) }
	}
	var file *flowfile.File
	var err error
	if path == "-" {
		file, err = flowfile.Read(a.stdin, "stdin", options)
	} else {
		file, err = flowfile.Open(path, options)
	}
	if err != nil {
		return nil, err
	}
	report := &file.Report
	for _, note := range report.Notes() {
		a.say("berth: %s", note)
	}
	switch {
	case report.NoAlpha > 0:
		a.say("berth: %s: %d of %d tasks without alpha; taken: %s", report.Name, report.NoAlpha, report.Tasks, &flags.alpha)
	case flags.alpha.given:
		a.say("berth: %s: every task has its alpha; --alpha does nothing", report.Name)
	}
	return file, nil
}
