// Package scenario opens what a simulation replays: the machine and the scheduler of a
// sites file and of what is chosen, and a workload for each replication, with its run
// times and outages; and it simulates a batch of runs over them on all cores. It parses no
// flags, prints nothing and decides nothing: package sim drives the engine.
package scenario

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/nearest"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workload"
)

// Origin is where a workload comes from.
type Origin int

// The origins.
const (
	OfLog      Origin = iota // a log from which jobs and windows are made
	OfModel                  // a model, likewise
	OfRequests               // a file of requests, which brings all of it
)

// Scenario is what a simulation replays: a workload for each replication, and the
// machine it is for.
type Scenario struct {
	Name   string // for titles
	PEs    berth.Count
	Sites  int // how many, if they are of a sites file
	Origin Origin
	// What there may be: requests for promises, ordinary jobs.
	Requests, Jobs bool
	// Runs says that things may run for another time than they were given.
	Runs bool
	// Of the first replication: a request may choose among variants; wants to start when
	// it arrives; has data to move.
	Moldable, ForNow, Data bool
	// Work makes the workload of a replication, from 1, as often as it is asked. It may be
	// called for different replications at the same time.
	Work func(replication int) (*sim.Workload, error)
}

// Input is where a scenario reads and whom it tells. The zero value reads files by their
// names and reports to no one.
type Input struct {
	Log     func(path string, opt workload.Options) (*workload.Workload, error)
	Outages func(path string, sites []berth.Site, opt workload.Options) (*workload.OutageFile, error)
	// Report hears what could not be used of a file or of the first replication.
	Report func(*workload.Report)
	// LeftOut hears how many jobs of a later replication have no valid window.
	LeftOut func(replication, jobs int)
}

// OptionError is an option that is missing or unknown. It is an *berth.Error of code
// Invalid too.
type OptionError struct{ Option, Msg string }

func (e *OptionError) Error() string { return e.Option + ": " + e.Msg }

// Unwrap returns it as a mistake of the caller.
func (e *OptionError) Unwrap() error { return berth.Errorf(berth.Invalid, e.Option, "%s", e.Msg) }

// modelPrefix begins the names of models.
const modelPrefix = "lublin:"

// IsModel reports whether a workload is a model and no file.
func IsModel(name string) bool { return strings.HasPrefix(name, modelPrefix) }

// DefaultJobs is how many jobs a model makes unless told.
const DefaultJobs = 10_000

// NewModel returns the model of a name. That there is none is an OptionError of the
// option.
func NewModel(option, name string, params workload.Params) (*workload.Model, error) {
	if names := Models(); !slices.Contains(names, name) {
		return nil, &OptionError{option, nearest.Unknown("model", name, names)}
	}
	return workload.NewModel(name, params)
}

// Open reads the workload of a simulation and makes the requests of the first
// replication, which it returns too. The options are settled. Errors are of code Invalid,
// some of them an OptionError, or of the file system.
func (o *Options) Open(m *Machine, in Input) (*Scenario, *sim.Workload, error) {
	opener := &opener{Options: *o, in: in}
	if opener.in.Log == nil {
		opener.in.Log = workload.Open
	}
	if opener.in.Outages == nil {
		opener.in.Outages = workload.OpenOutages
	}
	if opener.in.Report == nil {
		opener.in.Report = func(*workload.Report) {}
	}
	if opener.in.LeftOut == nil {
		opener.in.LeftOut = func(int, int) {}
	}
	return opener.open(m)
}

// opener opens a scenario.
type opener struct {
	Options
	in Input
}

func (o *opener) open(m *Machine) (*Scenario, *sim.Workload, error) {
	var s *Scenario
	var err error
	largest, all := m.PEs()
	if all > 0 {
		o.PEs = largest // what is larger than any pool is a bad line
	}
	if IsModel(o.Workload) {
		s, err = o.model()
	} else {
		s, err = o.file()
	}
	if err != nil {
		return nil, nil, err
	}
	if all > 0 {
		s.PEs, s.Sites = all, len(m.File.Sites)
	}
	if s.Work, err = o.withFailures(m.Sites(s.PEs, berth.Early), s.Work); err != nil {
		return nil, nil, err
	}
	if s.Work, err = o.withWorkflows(largestPool(m.Sites(s.PEs, berth.Early)), s.Work); err != nil {
		return nil, nil, err
	}
	first, err := s.Work(1)
	if err != nil {
		return nil, nil, err
	}
	if first.Len() == 0 {
		return nil, nil, berth.Errorf(berth.Invalid, "workload", "%s: no request is left to simulate", o.Workload)
	}
	s.look(first)
	return s, first, nil
}

// largestPool returns the PEs of the largest pool.
func largestPool(sites []berth.Site) berth.Count {
	most := berth.Count(0)
	for i := range sites {
		for k := range sites[i].Pools {
			most = max(most, sites[i].Pools[k].PEs)
		}
	}
	return most
}

// look notes what the first replication holds. Cost: O(n) for n requests.
func (s *Scenario) look(work *sim.Workload) {
	s.Runs = work.Runs != nil
	s.ForNow = slices.ContainsFunc(work.Plain, func(p berth.Plain) bool { return !p.Job && p.Ready == p.Arrival })
	for i := range work.Requests {
		r := &work.Requests[i]
		if s.Origin == OfRequests {
			s.Jobs, s.Requests = s.Jobs || r.IsJob(), s.Requests || !r.IsJob()
		}
		s.Moldable = s.Moldable || slices.ContainsFunc(r.Parts, func(p berth.Part) bool { return len(p.Variants) > 1 })
		s.ForNow = s.ForNow || !r.IsJob() && r.Ready == r.Arrival
		s.Data = s.Data || r.StorageMB > 0
	}
}

// file reads a log or a file of requests.
func (o *opener) file() (*Scenario, error) {
	work, err := o.in.Log(o.Workload, workload.Options{PEs: o.PEs, Jobs: o.Jobs, Strict: o.Strict})
	if err != nil {
		return nil, err
	}
	s := &Scenario{Name: filepath.Base(o.Workload), PEs: o.PEs}
	if !work.Form.IsLog() {
		s.Origin = OfRequests
		if s.PEs == 0 {
			return nil, &OptionError{"pes", "missing; a file of requests does not tell the size of the machine"}
		}
		o.in.Report(&work.Report)
		s.Work = o.withNoise(func(int) (*sim.Workload, error) { return &sim.Workload{Requests: work.Requests, Runs: work.Runs}, nil })
		return s, nil
	}
	if s.PEs == 0 {
		s.PEs = work.PEs()
	}
	if s.PEs == 0 && work.Form == workload.Sacct {
		return nil, &OptionError{"pes", fmt.Sprintf("missing; %s, an export of Slurm, does not tell the size of the machine", o.Workload)}
	}
	if s.PEs == 0 && work.Form == workload.GWF {
		return nil, &OptionError{"pes", fmt.Sprintf("missing; %s, a log of the Grid Workloads Archive, does not tell the size of the machine", o.Workload)}
	}
	if s.PEs == 0 {
		return nil, &OptionError{"pes", fmt.Sprintf("missing; the header of %s has no MaxProcs", o.Workload)}
	}
	o.transform(s, &work.Report, func(int) ([]workload.Record, error) { return work.Records, nil })
	return s, nil
}

// model prepares a model's generator.
func (o *opener) model() (*Scenario, error) {
	model, err := NewModel("workload", o.Workload, workload.Params{PEs: o.PEs, UMed: o.UMed})
	if err != nil {
		return nil, err
	}
	jobs := o.Jobs
	if jobs == 0 {
		jobs = DefaultJobs
	}
	s := &Scenario{Name: o.Workload, PEs: model.PEs(), Origin: OfModel}
	o.transform(s, &workload.Report{Name: o.Workload}, func(replication int) ([]workload.Record, error) {
		return model.Generate(jobs, o.seed(replication)), nil
	})
	return s, nil
}

// seed returns the seed of a replication.
func (o *Options) seed(replication int) uint64 { return o.Seed + uint64(replication) - 1 }

// transform makes requests and jobs of records. The report of the first replication is
// told; of a later one only that it lost requests.
func (o *opener) transform(s *Scenario, read *workload.Report, records func(replication int) ([]workload.Record, error)) {
	s.Requests, s.Jobs = o.As != AsJobs, o.As != AsRequests
	mix := workload.Mix{
		Transform: workload.Transform{
			ArrivalFactor: o.ArrivalFactor, ArtimeFactor: o.ArtimeFactor, DeadlineFactor: o.DeadlineFactor,
			Estimates: o.Estimates,
		},
		Reserve: map[string]float64{AsRequests: 1, AsMixed: o.ReserveShare}[o.As],
	}
	if o.Waits {
		mix.Waiting = &o.WaitingLimit
	}
	actual := o.RunTimes == RunsActual || o.RunTimes == "" && s.Jobs
	s.Work = o.withNoise(func(replication int) (*sim.Workload, error) {
		jobs, err := records(replication)
		if err != nil {
			return nil, err
		}
		mix := mix
		mix.Seed = o.seed(replication)
		report := *read
		report.FirstBad = append([]workload.BadLine(nil), read.FirstBad...)
		plain, runs, err := mix.Plain(jobs, o.Strict, &report)
		switch {
		case err != nil:
			return nil, err
		case replication == 1:
			o.in.Report(&report)
		case report.Bad > read.Bad:
			o.in.LeftOut(replication, report.Bad-read.Bad)
		}
		if !actual {
			runs = nil
		}
		return &sim.Workload{Plain: plain, Runs: runs}, nil
	})
}
