package main

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/internal/plot"
	"github.com/berth-hpc/berth/policy"
)

// simFlags is what the command line of sim says.
type simFlags struct {
	workload       string
	jobs           int
	pes            berth.Count
	sites          string
	preset         string
	policies       []string
	binds          []string
	umed           float64
	arrivalFactor  float64
	artimeFactor   float64
	deadlineFactor float64
	replications   int
	seed           uint64
	horizon        string
	calendar       string
	choice         string
	strict         bool
	estimates      bool
	schedule       string
	plot           string
	format         string
	bySize         bool
}

// simCommand returns berth sim.
func (a *app) simCommand() *cobra.Command {
	flags := simFlags{
		preset: "li", policies: []string{policy.Placements[0].Name}, binds: []string{string(berth.Early)},
		arrivalFactor: 1, artimeFactor: 3, deadlineFactor: 3, replications: 1, seed: 1,
		horizon: horizons[0], calendar: calendars()[0], choice: choices()[0], format: formats[0],
	}
	cmd := &cobra.Command{
		Use:   "sim --workload FILE.swf|FILE.jsonl|lublin:NAME",
		Short: "Replay a log or generate a workload, and compare policies",
		Long:  simLong(),
		Example: `  berth sim --workload examples/first-light.swf --policy all
  berth sim --workload log.swf.gz --pes 128 --policy first-fit,pe-worst --bind early,late -o json
  berth sim --workload lublin:lanl-cm5 --jobs 10000 --replications 10 --policy all
  berth sim --workload requests.jsonl --pes 64 --schedule out.jsonl --plot out.svg
  berth sim --workload log.swf.gz --sites examples/sites.yaml --schedule out.jsonl`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.sim(cmd, &flags) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&flags.workload, "workload", "", "what to replay: `FILE`.swf, FILE.jsonl (either may be .gz), or lublin:NAME")
	f.Var(&whole[int]{&flags.jobs, 1, math.MaxInt32}, "jobs", "take the first N usable jobs (default: all of a log, 10000 of a model)")
	f.Var(&whole[berth.Count]{&flags.pes, 1, berth.MaxPEs}, "pes", "size of the machine (default: MaxProcs of a log, the model's own size)")
	f.StringVar(&flags.sites, "sites", "", "the sites to schedule on, a YAML `FILE` (default: one pool of --pes)")
	f.Var(&choice{&flags.preset, "preset", presets()}, "preset", "the scheduler: "+strings.Join(presets(), ", "))
	f.Var(&list{&flags.policies, "policy", policyNames(), "all"}, "policy", "placements to compare, or all")
	f.Var(&list{&flags.binds, "binding", bindNames(), ""}, "bind", "when reservations get their PE numbers: early, late, or early,late")
	f.Var(&factor{&flags.umed, true}, "umed", "break point of a model's sizes, log2 of PEs (default: its own, 7 for lanl-cm5)")
	f.Var(&factor{&flags.arrivalFactor, true}, "arrival-factor", "divide the submit times by X; more is more load")
	f.Var(&factor{&flags.artimeFactor, false}, "artime-factor", "a ready time is up to X durations after the arrival")
	f.Var(&factor{&flags.deadlineFactor, false}, "deadline-factor", "a deadline leaves up to X durations of slack")
	f.Var(&whole[int]{&flags.replications, 1, maxReplications}, "replications", "repeat with N seeds, for 95 % intervals")
	f.Var(&whole[uint64]{&flags.seed, 0, math.MaxUint64}, "seed", "seed of the first replication; the next ones count up")
	f.BoolVar(&flags.estimates, "estimates", false, "reserve a log's requested times, not its run times")
	f.BoolVar(&flags.strict, "strict", false, "end at the first bad line of the workload")
	f.Var(&choice{&flags.horizon, "horizon", horizons}, "horizon", "where free rectangles end: "+strings.Join(horizons, ", "))
	f.Var(&choice{&flags.calendar, "calendar", calendars()}, "calendar", "structure that holds the bookings: "+strings.Join(calendars(), ", "))
	f.Var(&choice{&flags.choice, "choice", choices()}, "choice", "which variant of a moldable request: "+strings.Join(choices(), ", "))
	f.StringVar(&flags.schedule, "schedule", "", "write every decision to `FILE`.jsonl; several runs get -<policy>, -<bind>, -r<replication>")
	f.StringVar(&flags.plot, "plot", "", "draw the schedules to `FILE`.svg or .png")
	f.VarP(&choice{&flags.format, "form", formats}, "output", "o", "form of the figures: "+strings.Join(formats, ", "))
	f.BoolVar(&flags.bySize, "by-size", false, "with -o table: add the acceptance by size")
	_ = cmd.MarkFlagFilename("workload", "swf", "gz", "jsonl") // fails for unknown flags only
	_ = cmd.MarkFlagFilename("sites", "yaml", "yml")           // likewise
	complete(cmd, "preset", presets())
	complete(cmd, "policy", append(policyNames(), "all"))
	complete(cmd, "bind", bindNames())
	complete(cmd, "horizon", horizons)
	complete(cmd, "calendar", calendars())
	complete(cmd, "choice", choices())
	complete(cmd, "output", formats)
	return cmd
}

// What the flags of sim may name. The first is the default.
var (
	formats  = []string{"table", "json", "csv"}
	horizons = []string{engine.HorizonCapped, engine.HorizonUnbounded}
)

// maxReplications keeps a slip of the finger from filling the memory.
const maxReplications = 100_000

func calendars() []string {
	var names []string
	for _, form := range calendar.Forms {
		names = append(names, form.Name)
	}
	return names
}

func choices() []string {
	var names []string
	for _, choice := range policy.Choices() {
		names = append(names, string(choice))
	}
	return names
}

func bindNames() []string { return []string{string(berth.Early), string(berth.Late)} }

func policyNames() []string {
	var names []string
	for _, row := range policy.Placements {
		names = append(names, row.Name)
	}
	return names
}

// complete offers fixed words for a flag in the shell.
func complete(cmd *cobra.Command, flag string, words []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)) // fails for unknown flags only
}

// simLong is the text over the flags. What is indented by four stays as it is
// in the manual.
func simLong() string {
	var text strings.Builder
	text.WriteString(`Every job of the workload becomes a request with a ready time and a deadline,
which is accepted with a start and PEs, or refused with a reason. Each policy
decides about the same requests. Figures go to stdout, messages to stderr.

A log or a model has no windows; they are drawn from the seed:

    arrival  = submit / arrival factor
    ready    = arrival + artime factor × U1 × duration
    deadline = ready + duration + deadline factor × U2 × duration

A FILE.jsonl holds requests that bring their windows, and needs --pes.

Models:

` + modelList() + `
Policies (the rectangle is a start's free PEs × the time they stay free):

`)
	for _, row := range policy.Placements {
		fmt.Fprintf(&text, "    %-20s %s\n", row.Name, row.About)
	}
	text.WriteString("    all                  every policy, in this order")
	return text.String()
}

// sim runs the command.
func (a *app) sim(cmd *cobra.Command, flags *simFlags) error {
	if err := flags.validate(cmd); err != nil {
		return err
	}
	machine, err := openGrid(cmd, flags)
	if err != nil {
		return err
	}
	config, err := machine.configure(cmd, flags)
	if err != nil {
		return err
	}
	flags.binds = machine.binds(flags)
	src, err := a.open(cmd, flags, machine)
	if err != nil {
		return err
	}
	batch := newBatch(flags, src, machine, config)
	if err := batch.writable(flags); err != nil {
		return err
	}
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	results, err := a.runAll(ctx, batch)
	if err != nil {
		return err
	}
	if err := a.print(flags, src, results); err != nil {
		return err
	}
	if len(results) < len(batch.runs) {
		kept := fmt.Sprintf("%d of %d runs had finished", len(results), len(batch.runs))
		if flags.plot != "" {
			kept += "; no figure was drawn"
		}
		return &interrupted{kept: kept}
	}
	if flags.plot != "" {
		return draw(flags, src, results)
	}
	return nil
}

// validate finds what no single flag can see.
func (flags *simFlags) validate(cmd *cobra.Command) error {
	switch {
	case flags.workload == "":
		return usagef(cmd, "--workload: missing; want FILE.swf, FILE.jsonl or lublin:NAME")
	case flags.seed > math.MaxUint64-uint64(flags.replications):
		return usagef(cmd, "--seed: %d and %d replications go beyond the largest seed", flags.seed, flags.replications)
	}
	if flags.plot != "" {
		if _, ok := plot.FormatOf(flags.plot); !ok {
			return usagef(cmd, "--plot: %q does not tell a format; want a name ending in .%s",
				flags.plot, strings.Join(plot.Formats(), " or ."))
		}
	}
	return nil
}

// draw writes the figure of the first replication of every policy and binding.
// Its bars are means over all replications.
func draw(flags *simFlags, src *source, results []*result) error {
	figure := plot.Figure{Title: src.title(flags), PEs: src.pes}
	for _, r := range results {
		if r.run.replication != 1 {
			continue
		}
		figure.Runs = append(figure.Runs, plot.Run{Title: r.run.title(flags), Lines: r.lines})
	}
	if flags.replications > 1 {
		for _, s := range summaries(results) {
			requests, seconds := s.shares()
			figure.Shares = append(figure.Shares, plot.Share{Title: s.title(flags), Requests: requests, PESeconds: seconds})
		}
		figure.Title += fmt.Sprintf(" (replication 1 of %d; bars: all)", flags.replications)
	}
	if len(figure.Runs) == 1 {
		figure.Title += ", " + results[0].run.fullTitle()
	}
	out, err := create("plot", flags.plot)
	if err != nil {
		return err
	}
	defer out.drop()
	format, _ := plot.FormatOf(flags.plot)
	if err := plot.Write(out, format, figure); err != nil {
		return fmt.Errorf("writing %s: %w", flags.plot, err)
	}
	return out.keep()
}

// withSuffix puts a suffix before a file's ending: a.jsonl and -x make
// a-x.jsonl; .gz counts as a part of the ending.
func withSuffix(path, suffix string) string {
	gz := ""
	if bare, zipped := strings.CutSuffix(path, ".gz"); zipped {
		gz, path = ".gz", bare
	}
	ending := filepath.Ext(path)
	return strings.TrimSuffix(path, ending) + suffix + ending + gz
}
