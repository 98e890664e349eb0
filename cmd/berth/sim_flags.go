package main

import (
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// simFlags is what the command line of sim says, and what follows from it.
type simFlags struct {
	workload       string
	jobs           int
	as             string // empty until it is settled
	reserveShare   float64
	umed           float64
	arrivalFactor  float64
	artimeFactor   float64
	deadlineFactor float64
	estimates      bool
	waitingLimit   berth.Duration
	waits          bool // a limit was given
	strict         bool

	pes      berth.Count
	sites    string
	binds    []string
	outages  string
	failures failures

	preset    string
	policies  []string
	choice    string
	horizon   string
	order     string
	match     string
	trigger   string
	every     berth.Duration
	immediate string
	backfills []string
	compress  bool
	preempt   bool
	staging   string
	unaware   bool

	runTimes  string // empty until it is settled
	noise     float64
	overrun   string
	extension berth.Duration

	replications int
	seed         uint64
	calendar     string

	schedule string
	plot     string
	format   string
	bySize   bool
}

func newSimFlags() *simFlags {
	return &simFlags{
		reserveShare: defaultReserveShare, arrivalFactor: 1, artimeFactor: 3, deadlineFactor: 3,
		preset: "li", policies: []string{policy.Placements[0].Name}, binds: []string{string(berth.Early)},
		horizon: horizons[0], choice: choices()[0],
		compress: true, replications: 1, seed: 1, calendar: calendars()[0], format: formats[0],
	}
}

// What the flags of sim may name. The first is the default.
var (
	formats  = []string{"table", "json", "csv"}
	horizons = []string{engine.HorizonCapped, engine.HorizonUnbounded}
	overruns = []string{string(engine.OverrunKill), string(engine.OverrunRunOn), string(engine.OverrunDelay)}
	ways     = []string{string(engine.ImmediateRefuse), string(engine.ImmediateQueue)}
)

// The kinds that the records of a log or a model become.
const (
	asRequests = "requests"
	asJobs     = "jobs"
	asMixed    = "mixed"
)

func kinds() []string { return []string{asRequests, asJobs, asMixed} }

// conservative is the pass for jobs that compression is about.
const conservative = "conservative"

// Where run times come from.
const (
	runsReserved = "reserved"
	runsActual   = "actual"
)

func runTimes() []string { return []string{runsReserved, runsActual} }

const (
	// maxReplications keeps a slip of the finger from filling the memory.
	maxReplications = 100_000
	// defaultReserveShare is within the range of the experiments of Ahuja et
	// al., who let 0 to 30 % reserve.
	defaultReserveShare = 0.2
)

func calendars() []string {
	return namesOf(calendar.Forms, func(form calendar.Form) string { return form.Name })
}

func choices() []string {
	return namesOf(policy.Choices(), func(choice policy.Choice) string { return string(choice) })
}

func bindNames() []string { return []string{string(berth.Early), string(berth.Late)} }

func policyNames() []string {
	return namesOf(policy.Placements, func(row policy.NamedPlacement) string { return row.Name })
}

func orderNames() []string {
	return namesOf(policy.Queues, func(row policy.NamedQueue) string { return row.Name })
}

func matchNames() []string {
	return append(namesOf(policy.Matches, func(row policy.NamedMatch) string { return row.Name }),
		namesOf(policy.Batches, func(row policy.NamedBatch) string { return row.Name })...)
}

// stagings are the names of engine.Stagings, the first of which is empty.
var stagings = []string{"none", string(engine.StagingBefore), string(engine.StagingHold)}

func stagingNamed(name string) engine.Staging {
	if name == stagings[0] {
		return engine.StagingNone
	}
	return engine.Staging(name)
}

func backfillNames() []string {
	return namesOf(engine.JobPasses(), func(pass engine.JobPass) string { return pass.Name })
}

func triggerNames() []string {
	return namesOf(engine.Triggers(), func(t engine.Trigger) string { return string(t) })
}

func presets() []string {
	return namesOf(engine.Presets(), func(preset engine.Preset) string { return preset.Name })
}

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
	f.StringVar(&flags.workload, "workload", "", "what to replay: `FILE`.swf, FILE.jsonl (either may be .gz), or lublin:NAME")
	f.Var(&whole[int]{&flags.jobs, 1, math.MaxInt32}, "jobs", "take the first N usable jobs (default: all of a log, 10000 of a model)")
	f.Var(&choice{&flags.as, "kind", kinds()}, "as", "what a log's or model's jobs become: requests, jobs, mixed (default: requests, or jobs with a preset for jobs)")
	f.Var(&portion{&flags.reserveShare}, "reserve-share", "with --as mixed: the part that become requests")
	f.Var(&factor{&flags.umed, true}, "umed", "break point of a model's sizes, log2 of PEs (default: its own, 7 for lanl-cm5)")
	f.Var(&factor{&flags.arrivalFactor, true}, "arrival-factor", "divide the submit times by X; more is more load")
	f.Var(&factor{&flags.artimeFactor, false}, "artime-factor", "a ready time is up to X durations after the arrival")
	f.Var(&factor{&flags.deadlineFactor, false}, "deadline-factor", "a deadline leaves up to X durations of slack")
	f.BoolVar(&flags.estimates, "estimates", false, "reserve a log's requested times, not its run times")
	f.Var(&length{&flags.waitingLimit, 0}, "waiting-limit", "drop a log's or model's ordinary jobs that have waited for D (default: never)")
	f.BoolVar(&flags.strict, "strict", false, "end at the first bad line of the workload")
}

func (flags *simFlags) machineFlags(f *pflag.FlagSet) {
	f.Var(&whole[berth.Count]{&flags.pes, 1, berth.MaxPEs}, "pes", "size of the machine (default: MaxProcs of a log, the model's own size)")
	f.StringVar(&flags.sites, "sites", "", "the sites to schedule on, a YAML `FILE` (default: one pool of --pes)")
	f.Var(&list{&flags.binds, "binding", bindNames(), ""}, "bind", "when reservations get their PE numbers: early, late, or early,late (default: late with --as jobs, else early)")
	f.Lookup("bind").DefValue = "" // of which the text tells
	f.StringVar(&flags.outages, "outages", "", "PEs that cannot be used for a while, `FILE`.jsonl")
	f.Var(&flags.failures, "failures", "nodes that fail at random: mean time between failures, to repair, and PEs of a node (default 1), such as 30d,4h,16")
}

func (flags *simFlags) policyFlags(f *pflag.FlagSet) {
	f.Var(&choice{&flags.preset, "preset", presets()}, "preset", "the scheduler: "+strings.Join(presets(), ", "))
	f.Var(&list{&flags.policies, "policy", policyNames(), "all"}, "policy", "placements to compare, or all")
	f.Var(&choice{&flags.choice, "choice", choices()}, "choice", "which variant of a moldable request: "+strings.Join(choices(), ", "))
	f.Var(&choice{&flags.horizon, "horizon", horizons}, "horizon", "where free rectangles end: "+strings.Join(horizons, ", "))
	f.Var(&choice{&flags.order, "order", orderNames()}, "order", "who is decided first: "+strings.Join(orderNames(), ", ")+" (default: the preset's)")
	f.Var(&choice{&flags.match, "match", matchNames()}, "match", "which pool: "+strings.Join(matchNames(), ", ")+" (default: the preset's)")
	f.Var(&choice{&flags.trigger, "trigger", triggerNames()}, "trigger", "when: "+strings.Join(triggerNames(), ", ")+" (default: arrival, instant where the order needs company)")
	f.Var(&length{&flags.every, 1}, "every", "with --trigger every, or a preset that has it: the period D")
	f.Var(&choice{&flags.immediate, "answer", ways}, "immediate", "a request for now that finds no room: refuse, queue (default refuse)")
	f.Var(&list{&flags.backfills, "pass", backfillNames(), "all"}, "backfill", "passes for ordinary jobs to compare, or all (default: the preset's, or easy)")
	f.BoolVar(&flags.compress, "compress", true, "with --backfill conservative: plan anew when PEs are released early")
	f.Var(&choice{&flags.staging, "staging mode", stagings}, "staging", "PEs while data are moved: "+strings.Join(stagings, ", ")+" (default: the preset's)")
	f.BoolVar(&flags.unaware, "unaware", false, "a batch match looks at PEs alone, not at what requests require")
	f.BoolVar(&flags.preempt, "preempt", false, "running jobs stop for requests, and go on later with what is left")
}

func (flags *simFlags) runFlags(f *pflag.FlagSet) {
	f.Var(&choice{&flags.runTimes, "run times", runTimes()}, "run-times", "how long what a log asked for runs: reserved, actual (default: reserved for requests alone, actual beside jobs)")
	f.Var(&portion{&flags.noise}, "noise", "everything runs up to the part X longer or shorter")
	f.Var(&choice{&flags.overrun, "overrun mode", overruns}, "overrun", "what reaches its limit: kill, extend while the PEs are not promised to others, delay the promises (default kill)")
	f.Var(&length{&flags.extension, 1}, "extension", "with --overrun extend, delay: by D at a time (default 60 s)")
}

func (flags *simFlags) repetitionFlags(f *pflag.FlagSet) {
	f.Var(&whole[int]{&flags.replications, 1, maxReplications}, "replications", "repeat with N seeds, for 95 % intervals")
	f.Var(&whole[uint64]{&flags.seed, 0, math.MaxUint64}, "seed", "seed of the first replication; the next ones count up")
	f.Var(&choice{&flags.calendar, "calendar", calendars()}, "calendar", "structure that holds the bookings: "+strings.Join(calendars(), ", "))
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
	addGroups(cmd, append(flags.groupFlags(), last))
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

	for flag, endings := range map[string][]string{"workload": {"swf", "gz", "jsonl"}, "sites": {"yaml", "yml"}, "outages": {"jsonl", "gz"}} {
		_ = cmd.MarkFlagFilename(flag, endings...) // fails for unknown flags only
	}
	for flag, words := range map[string][]string{
		"as": kinds(), "preset": presets(), "policy": append(policyNames(), "all"), "bind": bindNames(), "horizon": horizons,
		"calendar": calendars(), "choice": choices(), "output": formats, "order": orderNames(), "match": matchNames(),
		"trigger": triggerNames(), "immediate": ways, "backfill": append(backfillNames(), "all"), "run-times": runTimes(), "overrun": overruns,
	} {
		complete(cmd, flag, words)
	}
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
