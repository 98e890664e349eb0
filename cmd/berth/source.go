package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workload"
)

// source is what a simulation replays: a workload for each replication, and the
// machine it is for.
type source struct {
	name  string // for titles
	pes   berth.Count
	sites int // how many, if they are of a sites file
	origin
	// What there may be: requests for promises, ordinary jobs.
	requests, jobs bool
	// runs says that things may run for another time than they were given.
	runs   bool
	traits // of the first replication
	// work makes the workload of a replication, from 1. It may be called for
	// different replications at the same time; what open returns for each once.
	work func(replication int) (*sim.Workload, error)
}

// where says in a few words what was simulated, on which machine.
func (s *source) where() string {
	where := fmt.Sprintf("%s on %d PEs", s.name, s.pes)
	if s.sites > 0 {
		where += fmt.Sprintf(" of %d sites", s.sites)
	}
	return where
}

// title adds to where what is the same in all runs.
func (s *source) title(flags *simFlags) string {
	title := s.where()
	if s.sites == 0 && len(flags.binds) == 1 {
		title += ", " + flags.binds[0] + " binding"
	}
	if s.jobs && s.requests && len(flags.backfills) == 1 {
		title += ", " + flags.backfills[0] + " for jobs"
	}
	return title
}

// modelPrefix begins the names of models.
const modelPrefix = "lublin:"

// defaultModelJobs is how many jobs a model makes if nobody says.
const defaultModelJobs = 10_000

// open prepares the workload of a simulation whose runs ask for each replication
// once.
func (a *app) open(cmd *cobra.Command, flags *simFlags, machine *grid) (*source, error) {
	src, first, err := a.prepare(cmd, flags, machine)
	if err != nil {
		return nil, err
	}
	again := src.work
	src.work = func(replication int) (*sim.Workload, error) {
		if replication > 1 {
			return again(replication)
		}
		made := first
		first = nil // handed over, so that it can be dropped after its last run
		return made, nil
	}
	return src, nil
}

// prepare reads the workload of a simulation, tells on stderr what could not be
// used of it, and makes the requests of the first replication. The source makes
// any replication as often as it is asked.
func (a *app) prepare(cmd *cobra.Command, flags *simFlags, machine *grid) (*source, *sim.Workload, error) {
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
		return nil, nil, err
	}
	if all > 0 {
		src.pes, src.sites = all, len(machine.file.Sites)
	}
	if src.work, err = a.withFailures(flags, machine.sites(src.pes, berth.Early), src.work); err != nil {
		return nil, nil, err
	}
	first, err := src.work(1)
	if err != nil {
		return nil, nil, err
	}
	if len(first.Requests) == 0 {
		return nil, nil, berth.Errorf(berth.Invalid, "workload", "%s: no request is left to simulate", flags.workload)
	}
	if src.origin == ofRequests {
		src.requests = slices.ContainsFunc(first.Requests, func(r berth.Request) bool { return !r.IsJob() })
		src.jobs = slices.ContainsFunc(first.Requests, func(r berth.Request) bool { return r.IsJob() })
	}
	src.runs, src.traits = first.Runs != nil, look(first)
	return src, first, nil
}

// read reads a workload file, or what was read of it before where the command
// keeps that.
func (a *app) read(path string, o workload.Options) (*workload.Workload, error) {
	key := fmt.Sprintf("%q %+v", path, o)
	if work := a.logs[key]; work != nil {
		return work, nil
	}
	work, err := a.readWorkload(path, o)
	if err == nil && a.logs != nil {
		a.logs[key] = work
	}
	return work, err
}

// openFile reads a log or a file of requests.
func (a *app) openFile(cmd *cobra.Command, flags *simFlags) (*source, error) {
	work, err := a.read(flags.workload, workload.Options{PEs: flags.pes, Jobs: flags.jobs, Strict: flags.strict})
	if err != nil {
		return nil, err
	}
	src := &source{name: filepath.Base(flags.workload), pes: flags.pes}
	if work.Form != workload.SWF {
		src.origin = ofRequests
		if src.pes == 0 {
			return nil, usagef(cmd, "--pes: missing; a file of requests does not tell the size of the machine")
		}
		a.tell(&work.Report)
		src.work = withNoise(flags, func(int) ([]berth.Request, []berth.Duration, error) { return work.Requests, work.Runs, nil })
		return src, nil
	}
	if src.pes == 0 {
		src.pes = work.PEs()
	}
	if src.pes == 0 {
		return nil, usagef(cmd, "--pes: missing; the header of %s has no MaxProcs", flags.workload)
	}
	a.transform(flags, src, &work.Report, func(int) ([]workload.Record, error) { return work.Records, nil })
	return src, nil
}

// openModel prepares a model's generator.
func (a *app) openModel(cmd *cobra.Command, flags *simFlags) (*source, error) {
	model, err := newModel(cmd, "workload", flags.workload, workload.Params{PEs: flags.pes, UMed: flags.umed})
	if err != nil {
		return nil, err
	}
	jobs := flags.jobs
	if jobs == 0 {
		jobs = defaultModelJobs
	}
	src := &source{name: flags.workload, pes: model.PEs(), origin: ofModel}
	a.transform(flags, src, &workload.Report{Name: flags.workload}, func(replication int) ([]workload.Record, error) {
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

// transform makes requests and jobs of records. The report of the first
// replication is told on stderr; a later one is told only if it lost requests.
func (a *app) transform(flags *simFlags, src *source, read *workload.Report, records func(replication int) ([]workload.Record, error)) {
	src.requests, src.jobs = flags.as != asJobs, flags.as != asRequests
	mix := workload.Mix{
		Transform: workload.Transform{
			ArrivalFactor: flags.arrivalFactor, ArtimeFactor: flags.artimeFactor, DeadlineFactor: flags.deadlineFactor,
			Estimates: flags.estimates,
		},
		Reserve: map[string]float64{asRequests: 1, asMixed: flags.reserveShare}[flags.as],
	}
	if flags.waits {
		mix.Waiting = &flags.waitingLimit
	}
	actual := flags.runTimes == runsActual || flags.runTimes == "" && src.jobs
	src.work = withNoise(flags, func(replication int) ([]berth.Request, []berth.Duration, error) {
		jobs, err := records(replication)
		if err != nil {
			return nil, nil, err
		}
		mix := mix
		mix.Seed = flags.seed + uint64(replication) - 1
		report := *read
		report.FirstBad = append([]workload.BadLine(nil), read.FirstBad...)
		requests, runs, err := mix.Requests(jobs, flags.strict, &report)
		switch {
		case err != nil:
			return nil, nil, err
		case replication == 1:
			a.tell(&report)
		case report.Bad > read.Bad:
			a.say("berth: replication %d: %d jobs have no valid window and are left out", replication, report.Bad-read.Bad)
		}
		if !actual {
			runs = nil
		}
		return requests, runs, nil
	})
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
