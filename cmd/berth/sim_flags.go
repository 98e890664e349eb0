package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/scenario"
)

// simFlags is what the command line of sim says, and what follows from it.
type simFlags struct {
	scenario.Options
	sites string // a file

	schedule string
	plot     string
	format   string
	bySize   bool
}

func newSimFlags() *simFlags {
	return &simFlags{Options: scenario.NewOptions(), format: formats[0]}
}

// formats are the forms of figures; the first is the default.
var formats = []string{"table", "json", "csv"}

// maxReplications keeps a slip of the finger from filling the memory.
const maxReplications = 100_000

// namesOf returns the names of the rows of a table.
func namesOf[T any](rows []T, name func(T) string) []string {
	var names []string
	for _, row := range rows {
		names = append(names, name(row))
	}
	return names
}

// flagGroup is flags that the help shows together.
type flagGroup struct {
	title string
	*pflag.FlagSet
}

// newGroup returns a group without flags.
func newGroup(title string) flagGroup {
	set := pflag.NewFlagSet(title, pflag.ContinueOnError)
	set.SortFlags = false
	return flagGroup{title, set}
}

// groupFlags returns the flags that say what is simulated, in the groups in which
// the help shows them.
func (flags *simFlags) groupFlags() []flagGroup {
	var groups []flagGroup
	group := func(title string) *pflag.FlagSet {
		groups = append(groups, newGroup(title))
		return groups[len(groups)-1].FlagSet
	}
	flags.workloadFlags(group("The workload"))
	flags.machineFlags(group("The machine"))
	flags.policyFlags(group("The scheduler"))
	flags.runFlags(group("How long things really run"))
	return groups
}

func (flags *simFlags) workloadFlags(f *pflag.FlagSet) {
	f.StringVar(&flags.Workload, "workload", "", "what to replay, a `FILE`: NAME.swf, NAME.gwf, NAME.jsonl (each may be .gz), NAME.jdl, what sacct -P prints, or a model such as lublin:typeless")
	f.Var(&whole[int]{&flags.Jobs, 1, math.MaxInt32}, "jobs", "take the first N usable jobs (default: all of a log, 10000 of a model)")
	f.Var(&choice{&flags.As, "kind", scenario.Kinds()}, "as", "what a log's or model's jobs become: requests, jobs, mixed (default: requests, or jobs with a preset for jobs)")
	f.Var(&portion{&flags.ReserveShare}, "reserve-share", "with --as mixed: the part that become requests")
	f.Var(&factor{&flags.UMed, true}, "umed", "break point of a model's sizes, log2 of PEs (default: its own, 7 for lanl-cm5)")
	f.Var(&factor{&flags.ArrivalFactor, true}, "arrival-factor", "divide the submit times by X; more is more load")
	f.Var(&factor{&flags.ArtimeFactor, false}, "artime-factor", "a ready time is up to X durations after the arrival")
	f.Var(&factor{&flags.DeadlineFactor, false}, "deadline-factor", "a deadline leaves up to X durations of slack")
	f.BoolVar(&flags.Estimates, "estimates", false, "reserve a log's requested times, not its run times")
	f.Var(&length{&flags.WaitingLimit, 0}, "waiting-limit", "drop a log's or model's ordinary jobs that have waited for D (default: never)")
	f.BoolVar(&flags.Strict, "strict", false, "end at the first bad line of the workload or of --outages")
}

func (flags *simFlags) machineFlags(f *pflag.FlagSet) {
	f.Var(&whole[berth.Count]{&flags.PEs, 1, berth.MaxPEs}, "pes", "size of the machine (default: MaxProcs of a log, the model's own size)")
	f.StringVar(&flags.sites, "sites", "", "the sites to schedule on, a YAML `FILE` (default: one pool of --pes)")
	f.Var(&list{&flags.Binds, "binding", scenario.Bindings(), ""}, "bind", "when reservations get their PE numbers: early, late, or early,late (default: late with --as jobs, else early)")
	f.Lookup("bind").DefValue = "" // the text tells it
	f.StringVar(&flags.Outages, "outages", "", "PEs that cannot be used for a while, `FILE`.jsonl")
	f.Var(&failures{&flags.Failures}, "failures", "nodes that fail at random: mean time between failures, to repair, and PEs of a node (default 1), such as 30d,4h,16")
}

func (flags *simFlags) policyFlags(f *pflag.FlagSet) {
	f.Var(&choice{&flags.Preset, "preset", scenario.Presets()}, "preset", "the scheduler: "+strings.Join(scenario.Presets(), ", "))
	f.Var(&list{&flags.Policies, "policy", scenario.Placements(), "all"}, "policy", "placements to compare, or all")
	f.Var(&choice{&flags.Choice, "choice", scenario.Choices()}, "choice", "which variant of a moldable request: "+strings.Join(scenario.Choices(), ", "))
	f.Var(&choice{&flags.Horizon, "horizon", scenario.Horizons()}, "horizon", "where free rectangles end: "+strings.Join(scenario.Horizons(), ", "))
	f.Var(&choice{&flags.Order, "order", scenario.Orders()}, "order", "who is decided first: "+strings.Join(scenario.Orders(), ", ")+" (default: the preset's)")
	f.Var(&choice{&flags.Match, "match", scenario.Matches()}, "match", "which pool: "+strings.Join(scenario.Matches(), ", ")+" (default: the preset's)")
	f.Var(&choice{&flags.Trigger, "trigger", scenario.Triggers()}, "trigger", "when: "+strings.Join(scenario.Triggers(), ", ")+" (default: arrival, instant where the order needs company)")
	f.Var(&length{&flags.Every, 1}, "every", "with --trigger every, or a preset that has it: the period D")
	f.Var(&choice{&flags.Immediate, "answer", scenario.Immediates()}, "immediate", "a request for now that finds no room: refuse, queue (default refuse)")
	f.Var(&list{&flags.Backfills, "pass", scenario.JobPasses(), "all"}, "backfill", "passes for ordinary jobs to compare, or all (default: the preset's, or easy)")
	f.BoolVar(&flags.Compress, "compress", true, "with --backfill conservative: plan anew when PEs are released early")
	f.Var(&choice{&flags.Staging, "staging mode", scenario.Stagings()}, "staging", "PEs while data are moved: "+strings.Join(scenario.Stagings(), ", ")+" (default: the preset's)")
	f.BoolVar(&flags.Unaware, "unaware", false, "a batch match looks at PEs alone, not at what requests require")
	f.BoolVar(&flags.Preempt, "preempt", false, "running jobs stop for requests, and go on later with what is left")
}

func (flags *simFlags) runFlags(f *pflag.FlagSet) {
	f.Var(&choice{&flags.RunTimes, "run times", scenario.RunTimes()}, "run-times", "how long what a log asked for runs: reserved, actual (default: reserved for requests alone, actual beside jobs)")
	f.Var(&portion{&flags.Noise}, "noise", "everything runs up to the part X longer or shorter")
	f.Var(&choice{&flags.Overrun, "overrun mode", scenario.Overruns()}, "overrun", "what reaches its limit: kill, extend while the PEs are not promised to others, delay the promises (default kill)")
	f.Var(&length{&flags.Extension, 1}, "extension", "with --overrun extend, delay: by D at a time (default 60 s)")
}

func (flags *simFlags) workflowFlags(f *pflag.FlagSet) {
	w := &flags.Workflows
	f.StringVar(&w.From, "workflows", "", "put workflows among the requests: of a `FILE` as berth plan takes it, or daggen:N for N tasks, drawn")
	f.Var(&whole[int]{&w.Count, 1, 1_000_000}, "workflow-count", "how many, at equal distances over the time of the requests")
	f.Var(&factor{&w.Slack, false}, "workflow-slack", "a deadline leaves X times the time that a workflow takes on the empty machine; 0 is none")
	f.StringVar(&w.Algorithm, "workflow-algorithm", w.Algorithm, "planner of workflows by its `NAME`, best (several are tried), or best-N, which leaves N percent of the time until the deadline")
	f.Var(&choice{&w.Repair, "repair", scenario.Repairs()}, "workflow-repair", "what is done about tasks that end early or late: "+strings.Join(scenario.Repairs(), ", "))
	f.StringVar(&w.Miss, "workflow-noise", w.Miss, "tasks take up to the part `X` longer or shorter than planned, or heavy for a heavy tail")
	f.Var(&portion{&w.Fail}, "workflow-failures", "part of the tries of tasks that fail, halfway through")
	f.Var(&whole[int]{&w.Retries, 0, berth.MaxRetries}, "workflow-retries", "how often a task that failed is tried again, where its file does not tell")
}

func (flags *simFlags) repetitionFlags(f *pflag.FlagSet) {
	f.Var(&whole[int]{&flags.Replications, 1, maxReplications}, "replications", "repeat with N seeds, for 95 % intervals")
	f.Var(&whole[uint64]{&flags.Seed, 0, math.MaxUint64}, "seed", "seed of the first replication; the next ones count up")
	f.Var(&choice{&flags.Calendar, "calendar", scenario.Calendars()}, "calendar", "structure that holds the bookings: "+strings.Join(scenario.Calendars(), ", "))
}

func (flags *simFlags) outputFlags(f *pflag.FlagSet) {
	f.StringVar(&flags.schedule, "schedule", "", "write every decision to `FILE`.jsonl; several runs get -<policy>, -<bind>, -<backfill>, -r<replication>")
	f.StringVar(&flags.plot, "plot", "", "draw the schedules to `FILE`.svg or .png")
	f.VarP(&choice{&flags.format, "form", formats}, "output", "o", "form of the figures: "+strings.Join(formats, ", "))
	f.BoolVar(&flags.bySize, "by-size", false, "with -o table: add the acceptance by size")
}

// addSimFlags gives the command its flags, the completion of their words, and
// a help that shows them in groups.
func addSimFlags(cmd *cobra.Command, flags *simFlags) {
	last := newGroup("Repetition and output")
	flags.repetitionFlags(last.FlagSet)
	flags.outputFlags(last.FlagSet)
	flows := newGroup("Workflows")
	flags.workflowFlags(flows.FlagSet)
	addGroups(cmd, append(flags.groupFlags(), flows, last))
	complete(cmd, "workflow-algorithm", scenario.Algorithms())
	complete(cmd, "workflow-repair", scenario.Repairs())
}

// addGroups gives the command flags of sim, in groups.
func addGroups(cmd *cobra.Command, groups []flagGroup) {
	cmd.Flags().SortFlags = false
	for _, group := range groups {
		cmd.Flags().AddFlagSet(group.FlagSet)
	}
	cmd.InitDefaultHelpFlag()
	groups[len(groups)-1].AddFlag(cmd.Flags().Lookup("help"))
	var usages strings.Builder
	for _, group := range groups {
		fmt.Fprintf(&usages, "\n\n%s:\n%s", group.title, strings.TrimRight(group.FlagUsages(), "\n"))
	}
	const flat = "\n\nFlags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"
	cmd.SetUsageTemplate(strings.Replace(cmd.UsageTemplate(), flat, usages.String(), 1))

	for flag, endings := range map[string][]string{"workload": {"swf", "gwf", "gz", "jsonl", "jdl", "sacct", "txt"}, "sites": {"yaml", "yml"}, "outages": {"jsonl", "gz"}} {
		_ = cmd.MarkFlagFilename(flag, endings...) // fails for unknown flags only
	}
	for flag, words := range map[string][]string{
		"as": scenario.Kinds(), "preset": scenario.Presets(), "policy": append(scenario.Placements(), "all"), "bind": scenario.Bindings(), "horizon": scenario.Horizons(),
		"calendar": scenario.Calendars(), "choice": scenario.Choices(), "output": formats, "order": scenario.Orders(), "match": scenario.Matches(),
		"trigger": scenario.Triggers(), "immediate": scenario.Immediates(), "backfill": append(scenario.JobPasses(), "all"), "run-times": scenario.RunTimes(), "overrun": scenario.Overruns(), "staging": scenario.Stagings(),
	} {
		complete(cmd, flag, words)
	}
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

With --as jobs they stay the ordinary jobs they were, which wait in a queue; with
--as mixed a part of them ask for promises, and the jobs run around those and
never delay one. A job gets its run time as its limit, or with --estimates what
its user asked for.

A FILE.jsonl holds requests that bring their windows and jobs (kind job), each
with how long it really runs (run) if that differs; it needs --pes.

With --sites the machine is several pools. The file's own bindings stand unless
--bind is given, and the figures call it mixed where they differ. Flags rule over
what the file says of policies; --preset rules over its order, match and place.

A file of outages has lines such as

    {"kind":"outage","site":"north","pool":"cpu","pes":"0-3","start":3600,"end":7200}

Without end they last, without pes they are of the whole pool; one site or pool
need not be named. Times are seconds of the log's own clock. Lengths D are
seconds, or read like 90m, 1d12h, 02:30:00 or PT2H30M.

With --workflows the sites are taken for managed ones, where promises outlive the
loss of PEs; each workflow is promised whole or refused, and mended by the engine
as it is in a service. Its tasks have lines of their own in the schedule.

- as the name of a file is stdin, or stdout for --schedule and --plot; the figures
then go to stderr. No output may be an input or another output.

Models:

` + modelList() + `
Policies (the rectangle is a start's free PEs × the time they stay free):

`)
	row := func(name, about string) { fmt.Fprintf(&text, "    %-20s %s\n", name, about) }
	for _, p := range policy.Placements {
		row(p.Name, p.About)
	}
	row("all", "every policy, in this order")
	text.WriteString("\nPresets:\n\n")
	for _, p := range engine.Presets() {
		row(p.Name, p.About)
	}
	text.WriteString("\nPasses for ordinary jobs (--backfill):\n\n")
	for _, p := range engine.JobPasses() {
		row(p.Name, p.About)
	}
	return strings.TrimRight(text.String(), "\n")
}
