package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/advise"
	"github.com/berth-hpc/berth/lab"
	"github.com/berth-hpc/berth/scenario"
)

// adviseFlags is what the command line of advise says.
type adviseFlags struct {
	sim      *simFlags
	segments int
	sample   int
	shares   []float64
	limits   []float64
	bound    float64
}

// The forms of advice; the first is the default.
var adviseFormats = []string{"table", "json", "html"}

// The defaults of advice. Four shares cost as much as everything else, and two limits half of that.
const (
	adviseSegments = 10
	adviseSample   = 500
	adviseBound    = 10
)

// adviseCommand returns berth advise.
func (a *app) adviseCommand() *cobra.Command {
	flags := &adviseFlags{
		sim: newSimFlags(), segments: adviseSegments, sample: adviseSample,
		shares: []float64{0.05, 0.1, 0.25, 0.5}, limits: []float64{0.1, 0.25}, bound: adviseBound,
	}
	flags.sim.format, flags.sim.Policies = adviseFormats[0], []string{"first-fit", "pe-worst", "least-pressure"}
	cmd := &cobra.Command{
		Use:   "advise --workload FILE.swf|FILE.gwf|FILE.sacct|lublin:NAME",
		Short: "What promises would be worth on your own history, on one page",
		Long: `Tells on one page what promises would be worth on the machine of a log: which
placement accepts most, what more slack, other widths and other notice of all
would change, what the least change is that turns a refusal into a yes, and what
share of the jobs may be promised before the others wait longer than --bound says,
and whether a limit on the part of each pool that is promised keeps to that.

The log is cut into --segments of equally many jobs, each is simulated alone, and
every figure has its 95 % interval over them. Windows are drawn from the seed, as
berth sim --help says: a log has none. The first three questions take every job
for a request; the last one leaves all but the share in the queue.`,
		Example: `  berth advise --workload log.swf.gz
  berth advise --workload log.swf.gz --bound 5% --deadline-factor 1
  berth advise --workload accounting.sacct --pes 4096 -o html > advice.html`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.advise(cmd, flags) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	s := flags.sim
	f.StringVar(&s.Workload, "workload", "", "the history, a `FILE`: NAME.swf, NAME.gwf (each may be .gz), what sacct -P prints, or a model such as lublin:typeless")
	f.Var(&whole[int]{&s.Jobs, 1, math.MaxInt32}, "jobs", "take the first N usable jobs (default: all of a log, 10000 of a model)")
	f.Var(&factor{&s.ArrivalFactor, true}, "arrival-factor", "divide the submit times by X; more is more load")
	f.Var(&factor{&s.ArtimeFactor, false}, "artime-factor", "a ready time is up to X durations after the arrival")
	f.Var(&factor{&s.DeadlineFactor, false}, "deadline-factor", "a deadline leaves up to X durations of slack")
	f.BoolVar(&s.Estimates, "estimates", false, "reserve a log's requested times, not its run times")
	f.Var(&whole[berth.Count]{&s.PEs, 1, berth.MaxPEs}, "pes", "size of the machine (default: MaxProcs of a log, the model's own size)")
	f.StringVar(&s.sites, "sites", "", "the sites to schedule on, a YAML `FILE` (default: one pool of --pes)")
	f.Var(&list{&s.Policies, "policy", scenario.Placements(), "all"}, "policy", "placements to compare, or all")
	f.Var(&whole[int]{&flags.segments, advise.MinSegments, 1000}, "segments", "cut the history into N parts, over which intervals are")
	f.Var(&whole[int]{&flags.sample, 1, math.MaxInt32}, "sample", "look for the least change of up to N refusals")
	f.Var(&portions{&flags.shares}, "shares", "shares of promises to try, or none")
	f.Var(&portions{&flags.limits}, "limits", "limits on the part of each pool that may be promised at any time, tried with the largest share, or none")
	f.Var(&percentage{&flags.bound}, "bound", "by how much the wait of 95 of 100 jobs may grow, such as 10%")
	f.Var(&whole[uint64]{&s.Seed, 0, math.MaxUint64}, "seed", "seed of windows, shares and samples")
	f.VarP(&choice{&s.format, "form", adviseFormats}, "output", "o", "form of the advice: "+strings.Join(adviseFormats, ", "))
	complete(cmd, "output", adviseFormats)
	complete(cmd, "policy", append(scenario.Placements(), "all"))
	_ = cmd.MarkFlagFilename("workload", "swf", "gwf", "gz", "sacct", "txt") // fails for unknown flags only
	_ = cmd.MarkFlagFilename("sites", "yaml", "yml")
	return cmd
}

// advise runs the command.
func (a *app) advise(cmd *cobra.Command, flags *adviseFlags) error {
	files := claims{cmd: cmd}
	files.reads("--workload", flags.sim.Workload)
	files.reads("--sites", flags.sim.sites)
	if err := files.apart(); err != nil {
		return err
	}
	if cmd.Flags().Changed("limits") && len(flags.limits) > 0 && len(flags.shares) == 0 {
		return usagef(cmd, "--limits: needs --shares; the largest share is asked for under each limit")
	}
	if cmd.Flags().Changed("bound") && len(flags.shares) == 0 {
		return usagef(cmd, "--bound: needs --shares; it bounds how much longer jobs may wait for promises")
	}
	history, title, err := a.adviseHistory(cmd, flags)
	if err != nil {
		return err
	}
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	var bar lab.Options
	end := a.labProgress(&bar)
	advice, err := advise.Ask(ctx, history, &advise.Options{
		Placements: flags.sim.Policies, Segments: flags.segments, Sample: flags.sample, Shares: flags.shares, Limits: flags.limits, Bound: flags.bound,
		Seed: flags.sim.Seed, Progress: bar.Progress,
	})
	end()
	switch {
	case errors.Is(err, context.Canceled):
		return &interrupted{kept: "nothing was written"}
	case err != nil:
		return err
	}
	write := printAdvice
	switch flags.sim.format {
	case "json":
		write = printAdviceJSON
	case "html":
		write = printAdviceHTML
	}
	err = write(a.stdout, title, advice)
	if err != nil {
		return fmt.Errorf("writing the advice: %w", err)
	}
	return nil
}

// adviseHistory reads the history, and says what it is.
func (a *app) adviseHistory(cmd *cobra.Command, flags *adviseFlags) (*advise.History, string, error) {
	s := flags.sim
	s.As = scenario.AsRequests
	if s.Estimates {
		s.RunTimes = scenario.RunsActual // what ends before its estimate makes room
	}
	given := slices.Clone(s.Policies)
	machine, config, err := a.settleSim(cmd, s)
	if err != nil {
		return nil, "", err
	}
	s.Policies = given // not what a sites file places by
	src, work, err := a.prepare(cmd, s, machine)
	if err != nil {
		return nil, "", err
	}
	if work.Plain == nil {
		return nil, "", usagef(cmd, "--workload: %s holds requests with windows of their own; want a log or a model, whose windows are drawn", s.Workload)
	}
	if err := fit(cmd, s, machine, src, &config); err != nil {
		return nil, "", err
	}
	config.Sites, config.Jobs = machine.Sites(src.PEs, berth.Binding(s.Binds[0])), s.Backfills[0]
	return &advise.History{PEs: src.PEs, Plain: work.Plain, Runs: work.Runs, Config: config}, titleOf(src, s), nil
}

// portions are numbers above 0 and below 1, ascending.
type portions struct{ value *[]float64 }

func (p *portions) Type() string { return "X,X" }

func (p *portions) String() string {
	if p.value == nil {
		return ""
	}
	var words []string
	for _, x := range *p.value {
		words = append(words, strconv.FormatFloat(x, 'g', -1, 64))
	}
	return strings.Join(words, ",")
}

func (p *portions) Set(text string) error {
	var all []float64
	if text != "none" {
		for word := range strings.SplitSeq(text, ",") {
			x, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
			if err != nil || !(x > 0 && x < 1) || len(all) > 0 && x <= all[len(all)-1] {
				return fmt.Errorf("%q; want ascending numbers above 0 and below 1, such as 0.1,0.25, or none", text)
			}
			all = append(all, x)
		}
	}
	*p.value = all
	return nil
}

// percentage is a number of at least 0 with a % behind it.
type percentage struct{ value *float64 }

func (p *percentage) Type() string { return "P" }

func (p *percentage) String() string {
	if p.value == nil {
		return ""
	}
	return strconv.FormatFloat(*p.value, 'g', -1, 64) + "%"
}

func (p *percentage) Set(text string) error {
	number, is := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if !is || err != nil || !(x >= 0) || math.IsInf(x, 0) {
		return fmt.Errorf("%q; want a percentage of at least 0%%, such as 10%%", text)
	}
	*p.value = x
	return nil
}
