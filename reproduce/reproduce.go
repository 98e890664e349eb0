// Package reproduce repeats the experiments of the papers that Berth is built
// on: sweeps of generated workloads through the simulator, figures with
// intervals, and for every claim a verdict that is computed from what was
// measured. It schedules nothing itself, and writes no file.
package reproduce

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/berth-hpc/berth"
)

// Paper is a row of the table of papers.
type Paper struct {
	Name  string
	About string // what is repeated, for help
	Title string // of the paper, with its authors and where it appeared
	// Repetitions at each scale, where the options do not say.
	Quick, Full int

	run func(context.Context, *session) (*findings, error)
}

// Papers lists the papers whose experiments can be repeated.
var Papers = []Paper{
	{
		Name:  "dynamic-priority",
		About: "DPSAR against reservation in the order of submission, Figures 4 to 7 (Ahuja, Gabrani and De)",
		Title: "R. Ahuja, G. Gabrani, A. De, A Dynamic Priority Scheduler for Advance Reservation in Grid Computing, International Journal of Soft Computing 4(2), 2009",
		Quick: quickGrid, Full: fullGrid,
		run: dynamicPriority,
	},
	{
		Name:  "waiting-time",
		About: "sequential against eager admission under waiting limits, and the search for the theorem (Sahakyan and Petrosyan)",
		Title: "V. Sahakyan, S. Petrosyan, Workload Management for Grid Environment with the Restriction on the Waiting Time",
		Quick: quickWaiting.repetitions, Full: fullWaiting.repetitions,
		run: waitingTime,
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
	// Progress, if not nil, hears how much of the work is done. It is called
	// by several goroutines at a time.
	Progress func(done, total int)
}

// Report is what one reproduction has found. Equal options give equal reports,
// on any number of cores.
type Report struct {
	Paper       *Paper
	Scale       Scale
	Seed        uint64
	Repetitions int
	Command     string // that makes this report
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

// Run repeats the paper's experiments on all cores. It ends early, with the
// context's error, when the context does; an error of code Invalid concerns the
// options.
func (p *Paper) Run(ctx context.Context, o Options) (*Report, error) {
	s := &session{Options: o}
	switch o.Scale {
	case "", Quick:
		s.Scale, s.repetitions = Quick, p.Quick
	case Full:
		s.repetitions = p.Full
	default:
		return nil, berth.Errorf(berth.Invalid, "scale", "%q; it is %q or %q", o.Scale, Quick, Full)
	}
	switch {
	case o.Repetitions < 0:
		return nil, berth.Errorf(berth.Invalid, "repetitions", "%d; want at least 1", o.Repetitions)
	case o.Repetitions > 0:
		s.repetitions = o.Repetitions
	}
	if o.Seed > math.MaxUint64-uint64(s.repetitions) {
		return nil, berth.Errorf(berth.Invalid, "seed", "%d and %d repetitions go beyond the largest seed", o.Seed, s.repetitions)
	}
	found, err := p.run(ctx, s)
	if err != nil {
		return nil, err
	}
	for i := range found.Claims {
		found.Claims[i].Verdict = worst(found.Claims[i].Parts)
	}
	return &Report{
		Paper: p, Scale: s.Scale, Seed: o.Seed, Repetitions: s.repetitions,
		Command: s.command(p.Name), findings: *found,
	}, nil
}

// session is one reproduction under way.
type session struct {
	Options
	repetitions int
}

// command returns the command line that repeats the session.
func (s *session) command(paper string) string {
	var line strings.Builder
	fmt.Fprintf(&line, "berth reproduce %s --scale %s --seed %d", paper, s.Scale, s.Seed)
	if s.Repetitions > 0 {
		fmt.Fprintf(&line, " --repetitions %d", s.repetitions)
	}
	line.WriteString(" --out " + paper)
	return line.String()
}

// seed returns the seed of repetition r, from 0.
func (s *session) seed(r int) uint64 { return s.Seed + uint64(r) }
