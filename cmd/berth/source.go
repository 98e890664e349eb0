package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workload"
)

// source is what a simulation replays: requests for each replication, and the
// machine they are for.
type source struct {
	name  string // for titles
	pes   berth.Count
	sites int // how many, if they are of a sites file
	// requests makes the requests of a replication, from 1. It may be called
	// for different replications at the same time, for each once.
	requests func(replication int) ([]berth.Request, error)
}

// title says in a few words what was simulated.
func (s *source) title(flags *simFlags) string {
	title := fmt.Sprintf("%s on %d PEs", s.name, s.pes)
	if s.sites > 0 {
		title += fmt.Sprintf(" of %d sites", s.sites)
	} else if len(flags.binds) == 1 {
		title += ", " + flags.binds[0] + " binding"
	}
	return title
}

// modelPrefix begins the names of models.
const modelPrefix = "lublin:"

// defaultModelJobs is how many jobs a model makes if nobody says.
const defaultModelJobs = 10_000

// open reads the workload of a simulation, tells on stderr what could not be
// used of it, and makes the requests of the first replication.
func (a *app) open(cmd *cobra.Command, flags *simFlags, machine *grid) (*source, error) {
	var (
		src *source
		err error
	)
	largest, all := machine.pes()
	if all > 0 {
		flags.pes = largest // what is larger than any pool is a bad line
	}
	if strings.HasPrefix(flags.workload, modelPrefix) {
		src, err = a.openModel(cmd, flags)
	} else {
		src, err = a.openFile(cmd, flags)
	}
	if err != nil {
		return nil, err
	}
	if all > 0 {
		src.pes, src.sites = all, len(machine.file.Sites)
	}
	first, err := src.requests(1)
	if err != nil {
		return nil, err
	}
	if len(first) == 0 {
		return nil, berth.Errorf(berth.Invalid, "workload", "%s: no request is left to simulate", flags.workload)
	}
	again := src.requests
	src.requests = func(replication int) ([]berth.Request, error) {
		if replication > 1 {
			return again(replication)
		}
		made := first
		first = nil // handed over, so that it can be dropped after its last run
		return made, nil
	}
	return src, nil
}

// openFile reads a log or a file of requests.
func (a *app) openFile(cmd *cobra.Command, flags *simFlags) (*source, error) {
	if err := unfit(cmd, "a model (lublin:NAME)", "umed"); err != nil {
		return nil, err
	}
	work, err := workload.Open(flags.workload, workload.Options{PEs: flags.pes, Jobs: flags.jobs, Strict: flags.strict})
	if err != nil {
		return nil, err
	}
	src := &source{name: filepath.Base(flags.workload), pes: flags.pes}
	if work.Form != workload.SWF {
		if err := unfit(cmd, "a log or a model; a file of requests brings its windows",
			"arrival-factor", "artime-factor", "deadline-factor", "estimates", "replications"); err != nil {
			return nil, err
		}
		if src.pes == 0 {
			return nil, usagef(cmd, "--pes: missing; a file of requests does not tell the size of the machine")
		}
		a.tell(&work.Report)
		src.requests = func(int) ([]berth.Request, error) { return work.Requests, nil }
		return src, nil
	}
	if src.pes == 0 {
		src.pes = work.PEs()
	}
	if src.pes == 0 {
		return nil, usagef(cmd, "--pes: missing; the header of %s has no MaxProcs", flags.workload)
	}
	src.requests = a.transformed(flags, &work.Report, func(int) ([]workload.Record, error) { return work.Records, nil })
	return src, nil
}

// openModel prepares a model's generator.
func (a *app) openModel(cmd *cobra.Command, flags *simFlags) (*source, error) {
	if err := unfit(cmd, "a log; a model has no requested times", "estimates"); err != nil {
		return nil, err
	}
	model, err := newModel(cmd, "workload", flags.workload, workload.Params{PEs: flags.pes, UMed: flags.umed})
	if err != nil {
		return nil, err
	}
	jobs := flags.jobs
	if jobs == 0 {
		jobs = defaultModelJobs
	}
	src := &source{name: flags.workload, pes: model.PEs()}
	src.requests = a.transformed(flags, &workload.Report{Name: flags.workload}, func(replication int) ([]workload.Record, error) {
		return model.Generate(jobs, flags.seed+uint64(replication)-1), nil
	})
	return src, nil
}

// newModel returns the model that a flag names, with a suggestion if there is
// none of that name.
func newModel(cmd *cobra.Command, flag, name string, params workload.Params) (*workload.Model, error) {
	if names := modelNames(); !slices.Contains(names, name) {
		return nil, usagef(cmd, "--%s: %s", flag, unknown("model", name, names))
	}
	return workload.NewModel(name, params)
}

// modelList describes the models for help, a line for each.
func modelList() string {
	var text strings.Builder
	for _, model := range workload.Models() {
		fmt.Fprintf(&text, "    %-20s %s\n", model.Name, model.About)
	}
	return text.String()
}

func modelNames() []string {
	var names []string
	for _, model := range workload.Models() {
		names = append(names, model.Name)
	}
	return names
}

// transformed gives records their windows. The report of the first replication
// is told on stderr; a later one is told only if it lost requests.
func (a *app) transformed(flags *simFlags, read *workload.Report, records func(replication int) ([]workload.Record, error)) func(int) ([]berth.Request, error) {
	return func(replication int) ([]berth.Request, error) {
		jobs, err := records(replication)
		if err != nil {
			return nil, err
		}
		windows := workload.Transform{
			ArrivalFactor: flags.arrivalFactor, ArtimeFactor: flags.artimeFactor, DeadlineFactor: flags.deadlineFactor,
			Estimates: flags.estimates, Seed: flags.seed + uint64(replication) - 1,
		}
		report := *read
		report.FirstBad = append([]workload.BadLine(nil), read.FirstBad...)
		requests, err := windows.Requests(jobs, flags.strict, &report)
		switch {
		case err != nil:
			return nil, err
		case replication == 1:
			a.tell(&report)
		case report.Bad > read.Bad:
			a.say("berth: replication %d: %d jobs have no valid window and are left out", replication, report.Bad-read.Bad)
		}
		return requests, nil
	}
}

// tell reports on stderr what could not be used of a workload: nothing if all
// could.
func (a *app) tell(report *workload.Report) {
	if report.SkippedTotal() == 0 && report.Bad == 0 && report.NoEstimate == 0 && report.PrecedenceDropped == 0 {
		return
	}
	counts := *report
	counts.FirstBad = nil // they follow one by one
	a.say("berth: %s", &counts)
	for _, bad := range report.FirstBad {
		a.say("berth:   %s", complaint(report.Name, bad))
	}
	if more := report.Bad - len(report.FirstBad); more > 0 {
		a.say("berth:   and %d more", more)
	}
}

// complaint words a bad line as "file:line: field: value: what is wrong",
// without what is unknown.
func complaint(file string, bad workload.BadLine) string {
	if bad.Line > 0 {
		file += ":" + strconv.Itoa(bad.Line)
	}
	parts := []string{file}
	if bad.Field != "" {
		parts = append(parts, bad.Field)
	}
	if bad.Value != "" {
		parts = append(parts, strconv.Quote(bad.Value))
	}
	return strings.Join(append(parts, bad.Want), ": ")
}

// unfit refuses flags that were given but mean nothing for the workload at
// hand; where says where they do.
func unfit(cmd *cobra.Command, where string, flags ...string) error {
	for _, flag := range flags {
		if cmd.Flags().Changed(flag) {
			return usagef(cmd, "--%s: applies to %s", flag, where)
		}
	}
	return nil
}
