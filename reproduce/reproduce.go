// Package reproduce repeats the experiments of the papers that Berth is built
// on: sweeps of generated workloads through the simulator, figures with
// intervals, and for every claim a verdict that is computed from what was
// measured. It schedules nothing itself, and writes no file.
package reproduce

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/sweep"
)

// Paper is a row of the table of papers.
type Paper struct {
	Name  string
	About string // what is repeated, for help
	Title string // of the paper, with its authors and where it appeared
	// Repetitions at each scale, where the options do not say.
	Quick, Full int
	// Version is raised whenever the same options would measure other values,
	// so that measurements kept before are not mixed in.
	Version int

	prepare func(*session) (*experiment, error)
}

// Papers lists the papers whose experiments can be repeated.
var Papers = []Paper{
	{
		Name:  "availability",
		About: "placement by availability rectangles, Figures 2 to 7, on the model and on the LANL CM-5 log (Li et al.)",
		Title: "B. Li, Y. Pei, B. Shen, H. Wu, M. He, J. Yang, Resource Availability-Aware Advance Reservation for Parallel Jobs with Deadlines",
		Quick: quickRects.repetitions, Full: fullRects.repetitions,
		Version: 1, prepare: availability,
	},
	{
		Name:  "mixed-parallel",
		About: "workflows among the bookings of others, Tables 2 to 10, on real logs (Aida and Casanova)",
		Title: "K. Aida, H. Casanova, Scheduling Mixed-Parallel Applications with Advance Reservations, HPDC 2008",
		Quick: quickMixed.starts, Full: fullMixed.starts,
		Version: 3, prepare: mixedParallel,
	},
	{
		Name:  "dynamic-priority",
		About: "DPSAR against reservation in the order of submission, Figures 4 to 7 (Ahuja, Gabrani and De)",
		Title: "R. Ahuja, G. Gabrani, A. De, A Dynamic Priority Scheduler for Advance Reservation in Grid Computing, International Journal of Soft Computing 4(2), 2009",
		Quick: quickGrid, Full: fullGrid,
		Version: 2, prepare: dynamicPriority,
	},
	{
		Name:  "waiting-time",
		About: "sequential against eager admission under waiting limits, and the search for the theorem (Sahakyan and Petrosyan)",
		Title: "V. Sahakyan, S. Petrosyan, Workload Management for Grid Environment with the Restriction on the Waiting Time",
		Quick: quickWaiting.repetitions, Full: fullWaiting.repetitions,
		Version: 1, prepare: waitingTime,
	},
	{
		Name:  "application-aware",
		About: "AJSM against MGA and Min-Min on 20 sites, Figures 5 and 6, Table 4, on HPC2N (Tang and Liao)",
		Title: "X. Tang, X. Liao, Application-aware deadline constraint job scheduling mechanism on large-scale computational grid, PLOS ONE, 2018",
		Quick: quickAware.repetitions, Full: fullAware.repetitions,
		Version: 2, prepare: applicationAware,
	},
	{
		Name:  "deviating-workflows",
		About: "promised workflows whose tasks take other times than planned, by planner and repair, on real logs (ours)",
		Title: "Berth: workflows among jobs whose run times are wrong, after section 6 of Aida and Casanova, HPDC 2008",
		Quick: quickDeviating.repetitions, Full: fullDeviating.repetitions,
		Version: 2, prepare: deviatingWorkflows,
	},
}

// PaperNamed returns the row of that name.
func PaperNamed(name string) (*Paper, bool) {
	for i := range Papers {
		if Papers[i].Name == name {
			return &Papers[i], true
		}
	}
	return nil, false
}

// Scale says how much is simulated.
type Scale string

// The scales. Quick takes seconds; with its wider intervals it cannot tell
// small differences.
const (
	Quick Scale = "quick"
	Full  Scale = "full"
)

// Scales lists the scales; the first is the default.
func Scales() []Scale { return []Scale{Quick, Full} }

// Options are the choices of one reproduction.
type Options struct {
	Scale Scale // the empty string is Quick
	// Repetitions of every measurement; 0 is what the scale says. One gives
	// no interval, and then nothing is testable.
	Repetitions int
	// Seed of the first repetition; the others count up from it.
	Seed uint64
	// Data is a folder of logs of the Parallel Workloads Archive, in it or in its
	// subfolder swf; empty for none. What needs a log that is not there is not
	// testable.
	Data string
	// Instances of each scenario of the mixed-parallel paper; 0 is what the scale
	// says. It does not matter for the others.
	Instances int
	// Untested makes a report, in which nothing is testable, of a paper whose
	// logs are not there, instead of an error.
	Untested bool
	// Sweep says where the measurements are taken, and where they are kept.
	Sweep Sweep
}

// Sweep says where measurements are taken. The zero value takes all of them in
// this process and keeps nothing.
type Sweep struct {
	// File is where finished measurements are kept as they come; what it holds
	// already is not measured again. Empty is nowhere.
	File string
	// From are files of finished measurements. With them nothing is measured:
	// together they must hold all of them.
	From []string
	// Shard is the part that is measured.
	Shard Shard
	// Progress, if not nil, hears how many of the cells that were still to be
	// measured are done. It is called by several goroutines at a time.
	Progress func(done, total int)
}

func (s *Sweep) options() sweep.Options {
	return sweep.Options{File: s.File, From: s.From, Shard: sweep.Shard(s.Shard), Progress: s.Progress}
}

// Shard is the I-th of N parts of the measurements, I from 1. The zero value is
// all of them.
type Shard struct{ I, N int }

// ParseShard reads I/N, such as 2/8; anything else is an error of code Invalid.
func ParseShard(text string) (Shard, error) {
	s, err := sweep.ParseShard(text)
	return Shard(s), err
}

// experiment is what a paper measures, and what becomes of it.
type experiment struct {
	// lacks names the files without which nothing can be measured; empty if
	// they are there.
	lacks string
	// settings decide what is measured, beside the scale, the seed and the
	// repetitions.
	settings []sweep.Setting
	cells    []sweep.Cell
	// names are those of the values of a cell, each cell's alike unless they are
	// fewer.
	names func(cell int) []string
	// judge turns the values, by cell, into what the report says.
	judge func(values [][]float64) *findings
}

// Report is what one reproduction has found. Equal options give equal reports,
// on any number of cores.
type Report struct {
	Paper       *Paper
	Scale       Scale
	Seed        uint64
	Repetitions int
	Command     string // that makes this report
	// Measurements are all values that the report rests on, as the file
	// cells.jsonl; see package sweep.
	Measurements []byte
	findings
}

// findings are the parts of a report that each paper fills in.
type findings struct {
	Setting []Row // what was simulated
	Notes   []string
	Claims  []Claim
	Figures []Figure
	Tables  []Table
}

// Row is a name and what it is.
type Row struct{ Name, Value string }

// Table is a table with a name for its file.
type Table struct {
	Name   string
	Title  string
	Header []string
	Rows   [][]string
}

// Run repeats the paper's experiments, or a part of them: where the options name
// a shard, and not all else is known, there is no report, only the number of
// measurements that are known. It ends early, with the context's error, when the
// context does; an error of code Invalid concerns the options.
func (p *Paper) Run(ctx context.Context, o Options) (report *Report, measured int, err error) {
	s, e, plan, err := p.plan(o)
	if err != nil {
		return nil, 0, err
	}
	if e.lacks != "" && o.Untested {
		return s.report(e, nil), 0, nil
	}
	if e.lacks != "" {
		return nil, 0, e.missing(p, o)
	}
	results, err := sweep.Run(ctx, plan, o.Sweep.options())
	if err != nil {
		return nil, 0, err
	}
	if !results.Complete() {
		return nil, results.Len(), nil
	}
	return s.report(e, results), results.Len(), nil
}

// missing is the error for a paper that cannot be repeated without some files.
func (e *experiment) missing(p *Paper, o Options) error {
	if o.Data == "" {
		return berth.Errorf(berth.Invalid, "data", "missing; %s is measured on logs of the Parallel Workloads Archive, want the folder of %s", p.Name, e.lacks)
	}
	return berth.Errorf(berth.Invalid, "data", "%s has none of the logs that %s is measured on: %s", o.Data, p.Name, e.lacks)
}

// Cell is one measurement of a reproduction.
type Cell struct {
	Key    string
	Names  []string
	Values []float64 // NaN for none
}

// Only takes a single measurement again, the one that the files of
// measurements name so. Errors are those of Run, and one of code NotFound if
// there is no such measurement.
func (p *Paper) Only(ctx context.Context, o Options, key string) (*Cell, error) {
	_, e, plan, err := p.plan(o)
	if err != nil {
		return nil, err
	}
	if e.lacks != "" {
		return nil, e.missing(p, o)
	}
	values, err := sweep.One(ctx, plan, key)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(plan.Cells, func(c sweep.Cell) bool { return c.Key == key })
	return &Cell{key, e.names(i), values}, nil
}

// plan settles the options and lists what is to be measured.
func (p *Paper) plan(o Options) (*session, *experiment, *sweep.Plan, error) {
	s := &session{Options: o, paper: p}
	switch o.Scale {
	case "", Quick:
		s.Scale, s.repetitions = Quick, p.Quick
	case Full:
		s.repetitions = p.Full
	default:
		return nil, nil, nil, berth.Errorf(berth.Invalid, "scale", "%q; it is %q or %q", o.Scale, Quick, Full)
	}
	switch {
	case o.Repetitions < 0:
		return nil, nil, nil, berth.Errorf(berth.Invalid, "repetitions", "%d; want at least 1", o.Repetitions)
	case o.Repetitions > 0:
		s.repetitions = o.Repetitions
	}
	if o.Seed > math.MaxUint64-uint64(s.repetitions) {
		return nil, nil, nil, berth.Errorf(berth.Invalid, "seed", "%d and %d repetitions go beyond the largest seed", o.Seed, s.repetitions)
	}
	e, err := p.prepare(s)
	if err != nil {
		return nil, nil, nil, err
	}
	plan := &sweep.Plan{Name: p.Name, Version: p.Version, Cells: e.cells, Settings: append([]sweep.Setting{
		{Name: "scale", Value: string(s.Scale)},
		{Name: "seed", Value: strconv.FormatUint(s.Seed, 10)},
		{Name: "repetitions", Value: strconv.Itoa(s.repetitions)},
	}, e.settings...)}
	return s, e, plan, nil
}

// report judges complete results; nil is that there is nothing to measure.
func (s *session) report(e *experiment, results *sweep.Results) *Report {
	values := make([][]float64, len(e.cells))
	var all []byte
	if results != nil {
		for i := range e.cells {
			values[i] = results.Of(e.cells[i].Key)
		}
		all = results.Bytes()
	}
	found := e.judge(values)
	for i := range found.Claims {
		found.Claims[i].settle()
	}
	return &Report{
		Paper: s.paper, Scale: s.Scale, Seed: s.Seed, Repetitions: s.repetitions,
		Command: s.command(s.paper.Name), Measurements: all, findings: *found,
	}
}

// session is one reproduction under way.
type session struct {
	Options
	paper       *Paper
	repetitions int
}

// command returns the command line that repeats the session.
func (s *session) command(paper string) string {
	var line strings.Builder
	fmt.Fprintf(&line, "berth reproduce %s --scale %s --seed %d", paper, s.Scale, s.Seed)
	if s.Repetitions > 0 {
		fmt.Fprintf(&line, " --repetitions %d", s.repetitions)
	}
	if s.Instances > 0 {
		fmt.Fprintf(&line, " --instances %d", s.Instances)
	}
	if s.Data != "" {
		line.WriteString(" --data DIR")
	}
	line.WriteString(" --out " + paper)
	return line.String()
}

// seed returns the seed of repetition r, from 0.
func (s *session) seed(r int) uint64 { return s.Seed + uint64(r) }
