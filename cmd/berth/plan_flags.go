package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/nearest"
	"github.com/berth-hpc/berth/workflow"
)

// planFlags is what the command line of plan says.
type planFlags struct {
	pes       berth.Count
	bookings  string
	partition int
	strict    bool
	now       instant
	free      berth.Count // 0 if the bookings are to tell
	alpha     serial
	seed      uint64

	planners []workflow.Planner
	deadline instant
	tightest bool

	estimates float64 // 0 for the times of the file
	probes    int     // for each task; 0 if the calendar lies open
	repair    string
	sites     string

	schedule string
	plot     string
	format   string
}

// defaultAlpha is the mean of the serial fractions of the mixed-parallel
// paper's default setting, which are uniform below 0.2 (Table 1).
const defaultAlpha = 0.1

func newPlanFlags() *planFlags {
	planner, _ := workflow.PlannerNamed("bd-cpar")
	return &planFlags{
		alpha: serial{x: defaultAlpha}, seed: 1, planners: []workflow.Planner{planner}, format: formats[0],
	}
}

// compares reports whether there are several planners to compare.
func (flags *planFlags) compares() bool { return len(flags.planners) > 1 }

func addPlanFlags(cmd *cobra.Command, flags *planFlags) {
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(&whole[berth.Count]{&flags.pes, 1, berth.MaxPEs}, "pes", "size of the site (default: MaxProcs, if --bookings is a log that has it)")
	f.StringVar(&flags.bookings, "bookings", "", "what others hold: `FILE`.swf, .jsonl or .lwf, compressed or not")
	f.Var(&whole[int]{&flags.partition, 1, math.MaxInt32}, "partition", "take only the jobs of this partition, column 16 of the log")
	f.BoolVar(&flags.strict, "strict", false, "stop at the first bad line of --bookings")
	f.Var(&flags.now, "now", "time of planning, in seconds of the bookings' clock; nothing starts earlier (default 0)")
	f.Var(&plannerList{&flags.planners}, "algorithm", "one of the algorithms above, several between commas, or all")
	f.Var(&flags.deadline, "deadline", "absolute time, in seconds, by which the workflow must have ended")
	f.BoolVar(&flags.tightest, "tightest", false, "search for the earliest deadline that can be met, and keep that plan")
	f.Var(&whole[berth.Count]{&flags.free, 1, berth.MaxPEs}, "q", "PEs free on average in the past (default: over the thirty days of bookings before --now)")
	f.Var(&flags.alpha, "alpha", "serial fraction of tasks that have none in the file, or uniform:X to draw it below X")
	f.Var(&whole[uint64]{&flags.seed, 0, math.MaxUint64}, "seed", "seed of --alpha uniform:X")
	f.Var(&factor{value: &flags.estimates, positive: true}, "estimates", "plan with the run times of the file times this factor, and tell how the plan goes with those")
	f.Var(&whole[int]{&flags.probes, 1, 1000}, "probes", "see no bookings, only ask for reservations, at most this number for each task")
	f.StringVar(&flags.repair, "repair", "", "keep the plan in this schedule `FILE`.jsonl, and move only tasks whose PEs are gone, and those behind")
	f.StringVar(&flags.sites, "sites", "", "plan over the pools of a sites `FILE`.yaml: which pool and how many PEs, task by task")
	f.StringVar(&flags.schedule, "schedule", "", "write bookings and plan to `FILE`.jsonl (.gz compresses), which berth check reads")
	f.StringVar(&flags.plot, "plot", "", "draw the plan among the bookings: `FILE`.svg or .png")
	f.VarP(&choice{&flags.format, "format", formats}, "output", "o", "table, json or csv")
	complete(cmd, "algorithm", append(plannerNames(), "all"))
	complete(cmd, "output", formats)
	_ = cmd.MarkFlagFilename("bookings", "swf", "jsonl", "lwf", "gz") // fails for unknown flags only
	_ = cmd.MarkFlagFilename("repair", "jsonl", "gz")
	_ = cmd.MarkFlagFilename("sites", "yaml", "yml")
	_ = cmd.MarkFlagFilename("plot", "svg", "png")
	_ = cmd.MarkFlagFilename("schedule", "jsonl", "gz")
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{"json", "yaml", "yml", "gz"}, cobra.ShellCompDirectiveFilterFileExt
	}
}

// planLong is the text over the flags.
func planLong() string {
	var text strings.Builder
	text.WriteString(`Reads a workflow of moldable tasks in WfFormat (1.3 to 1.6) or in YAML as
examples/workflow.yaml has it (- is stdin), and decides for each task how many PEs it reserves and when, around what others have
booked: for the earliest end, or by a deadline with few CPU-hours.

A task takes T·(α + (1−α)/n) seconds on n PEs. T is its run time in the file; α
its serial fraction, which is in the task, or else what --alpha says. In YAML a
task may have bounds on its PEs, or a table of run times instead.
Times are whole seconds of the bookings' clock.

Algorithms for the earliest end, which with --deadline refuse to end later:

`)
	row := func(p workflow.Planner) { fmt.Fprintf(&text, "    %-20s %s\n", p.Name, p.About) }
	for _, p := range workflow.Planners {
		if p.Goal == workflow.Finish {
			row(p)
		}
	}
	text.WriteString("\nAlgorithms that plan backwards and need --deadline or --tightest:\n\n")
	for _, p := range workflow.Planners {
		if p.Goal == workflow.Deadline {
			row(p)
		}
	}
	text.WriteString(`
With several algorithms the output compares them; those that need a deadline and
get none then plan for the tightest they reach. --schedule and --plot write a
file for each, with its name before the ending. Over several --sites --plot
writes one for each pool that is used, with the pool's name there. - as the name
of a file is stdin, or stdout for --schedule and --plot; the figures then go to
stderr. No output may be an input or another output.

Exits 3 if no algorithm reaches the deadline, and says the tightest one found and
which algorithm reached it.`)
	return text.String()
}

func plannerNames() []string {
	return namesOf(workflow.Planners, func(p workflow.Planner) string { return p.Name })
}

// plannerList is one or more planners, or all.
type plannerList struct{ value *[]workflow.Planner }

var _ pflag.Value = (*plannerList)(nil)

func (l *plannerList) Type() string { return "NAME" }

func (l *plannerList) String() string {
	if l.value == nil {
		return ""
	}
	return strings.Join(namesOf(*l.value, func(p workflow.Planner) string { return p.Name }), ",")
}

func (l *plannerList) Set(text string) error {
	if text == "all" {
		*l.value = slices.Clone(workflow.Planners)
		return nil
	}
	var chosen []workflow.Planner
	for name := range strings.SplitSeq(text, ",") {
		name = strings.TrimSpace(name)
		p, ok := workflow.PlannerNamed(name)
		switch {
		case name == "all":
			return errors.New(`"all" already stands for every algorithm; want it alone`)
		case !ok:
			return errors.New(nearest.Unknown("algorithm", name, append(plannerNames(), "all")))
		case slices.ContainsFunc(chosen, func(c workflow.Planner) bool { return c.Name == p.Name }):
			return fmt.Errorf("algorithm %q stands there twice", p.Name)
		}
		chosen = append(chosen, p)
	}
	*l.value = chosen
	return nil
}

// instant is a time in whole seconds, which may be negative. Its zero value is
// the time 0, not set.
type instant struct {
	t   berth.Time
	set bool
}

var _ pflag.Value = (*instant)(nil)

func (i *instant) Type() string { return "T" }

func (i *instant) String() string {
	if !i.set {
		return ""
	}
	return strconv.FormatInt(int64(i.t), 10)
}

func (i *instant) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || !berth.Time(n).Valid() {
		return fmt.Errorf("%q; want whole seconds of the bookings' clock, below 2^42 in size", text)
	}
	*i = instant{berth.Time(n), true}
	return nil
}

// serial is a serial fraction, or a bound below which it is drawn for each task.
type serial struct {
	x     float64
	drawn bool
	given bool // on the command line
}

var _ pflag.Value = (*serial)(nil)

// drawnPrefix says that a serial fraction is drawn.
const drawnPrefix = "uniform:"

func (s *serial) Type() string { return "X" }

func (s *serial) String() string {
	text := strconv.FormatFloat(s.x, 'g', -1, 64)
	if s.drawn {
		return drawnPrefix + text
	}
	return text
}

func (s *serial) Set(text string) error {
	number, drawn := strings.CutPrefix(text, drawnPrefix)
	set := serial{drawn: drawn, given: true}
	if err := (&portion{&set.x}).Set(number); err != nil {
		return fmt.Errorf("%q; want a number from 0 to 1, such as 0.2, or %s0.2", text, drawnPrefix)
	}
	*s = set
	return nil
}
