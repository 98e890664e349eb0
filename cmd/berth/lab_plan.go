package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/nearest"
	"github.com/berth-hpc/berth/lab"
	"github.com/berth-hpc/berth/scenario"
	"github.com/berth-hpc/berth/workload"
)

// labPlanner turns flags into what is compared. Each point is a command line of
// its own: the flags that were given, and the values of the sweeps.
type labPlanner struct {
	app     *app
	cmd     *cobra.Command
	plan    *lab.Plan
	sources map[string]*scenario.Scenario // by what says of what they are
	cases   map[string]*lab.Case
}

// rigid are flags of sim that cannot be swept, with the reason.
var rigid = map[string]string{
	"strict":       "it only says when reading ends",
	"replications": "every value has them all",
	"seed":         "the seeds are those of the replications",
	"calendar":     "it decides nothing",
}

// labPlan returns the plan of the flags, with a case for each point, and finds
// what is wrong with any of them.
func (a *app) labPlan(cmd *cobra.Command, flags *labFlags) (*lab.Plan, error) {
	over := func(text string) bool { return strings.HasPrefix(text, "workload=") }
	switch {
	case flags.sim.Workload == "" && !slices.ContainsFunc(flags.sweeps, over):
		return nil, usagef(cmd, "--workload: missing; want FILE.swf, FILE.jsonl or lublin:NAME")
	case len(flags.sweeps) == 0:
		return nil, usagef(cmd, "--sweep: missing; want what to compare, such as --sweep policy=first-fit,pe-worst; berth sim does a single run")
	}
	teller := *a
	teller.logs = map[string]*workload.Workload{}
	l := &labPlanner{
		app: &teller, cmd: cmd, sources: map[string]*scenario.Scenario{}, cases: map[string]*lab.Case{},
		plan: &lab.Plan{Build: build(), Replications: flags.sim.Replications, Seed: flags.sim.Seed},
	}
	for _, text := range flags.sweeps {
		d, err := l.dimension(text)
		if err != nil {
			return nil, err
		}
		l.plan.Dimensions = append(l.plan.Dimensions, d)
	}
	if err := l.plan.Validate(); err != nil {
		return nil, err
	}
	for _, point := range l.plan.Points() {
		values := l.plan.Values(point)
		if err := l.prepare(l.plan.Label(point), values); err != nil {
			if usage, is := errors.AsType[*usageError](err); is {
				return nil, usagef(cmd, "%s: %s", l.plan.Label(point), usage.msg)
			}
			return nil, fmt.Errorf("%s: %w", l.plan.Label(point), err)
		}
		teller.stderr = io.Discard // what is wrong with the log was told
	}
	l.plan.Case = func(p lab.Point) (*lab.Case, error) { return l.cases[l.plan.Label(p)], nil }
	return l.plan, l.settings()
}

// dimension reads NAME=VALUE,VALUE.
func (l *labPlanner) dimension(text string) (lab.Dimension, error) {
	name, listed, ok := strings.Cut(text, "=")
	name = strings.TrimPrefix(strings.TrimSpace(name), "--")
	d := lab.Dimension{Name: name}
	if !ok || name == "" {
		return d, usagef(l.cmd, "--sweep: %q; want NAME=VALUE,VALUE, such as policy=first-fit,pe-worst", text)
	}
	if why, is := rigid[name]; is {
		return d, usagef(l.cmd, "--sweep: %s cannot be swept: %s", name, why)
	}
	// The values are read as a command line would read them.
	_, probe := l.commandLine()
	flag := probe.Flags().Lookup(name)
	if flag == nil {
		var names []string
		probe.Flags().VisitAll(func(f *pflag.Flag) {
			if rigid[f.Name] == "" {
				names = append(names, f.Name)
			}
		})
		return d, usagef(l.cmd, "--sweep: %s", nearest.Unknown("flag", name, names))
	}
	if l.cmd.Flags().Changed(name) {
		return d, usagef(l.cmd, "--%s and --sweep %s: one of them says what %s is; want one", name, text, name)
	}
	d.Values = sweptValues(flag, listed)
	var exact []string
	for _, value := range d.Values {
		if err := flag.Value.Set(value); err != nil || value == "" {
			if value == "" {
				err = errors.New("a value is empty; want NAME=VALUE,VALUE")
			}
			return d, usagef(l.cmd, "--sweep: %s: %v", name, err)
		}
		read := flag.Value.String()
		if at := slices.Index(exact, read); at >= 0 {
			return d, usagef(l.cmd, "--sweep: %s: %s and %s are the same; want each value once", name, d.Values[at], value)
		}
		exact = append(exact, read)
	}
	d.Numbers = numbersOf(flag, exact)
	return d, nil
}

// sweptValues splits the values of a flag; all is every name that there is.
func sweptValues(flag *pflag.Flag, listed string) []string {
	if listed == "all" {
		switch v := flag.Value.(type) {
		case *list:
			return slices.Clone(v.names)
		case *choice:
			return slices.Clone(v.names)
		}
	}
	if strings.Contains(flag.Value.Type(), ",") && !strings.Contains(listed, ";") {
		return []string{listed} // its commas are within a value
	}
	return lab.SplitValues(listed)
}

// numbersOf returns what the values of a flag count, nil if they are words.
func numbersOf(flag *pflag.Flag, exact []string) []float64 {
	if !slices.Contains([]string{"X", "N", "D"}, flag.Value.Type()) {
		return nil
	}
	var numbers []float64
	for _, text := range exact {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil && text != "" { // an empty length is 0
			panic("lab: " + err.Error()) // the flag wrote it
		}
		numbers = append(numbers, x)
	}
	return numbers
}

// commandLine returns the flags of sim as they were given, in a command of their
// own.
func (l *labPlanner) commandLine() (*simFlags, *cobra.Command) {
	flags := newSimFlags()
	cmd := &cobra.Command{Use: l.cmd.CommandPath()}
	for _, group := range flags.groupFlags() {
		cmd.Flags().AddFlagSet(group.FlagSet)
	}
	flags.repetitionFlags(cmd.Flags())
	l.cmd.Flags().Visit(func(given *pflag.Flag) {
		if cmd.Flags().Lookup(given.Name) != nil {
			if err := cmd.Flags().Set(given.Name, textOf(given)); err != nil {
				panic("lab: " + err.Error()) // it was read before
			}
		}
	})
	return flags, cmd
}

// textOf returns the value of a flag that was given, so that it can be read
// again.
func textOf(flag *pflag.Flag) string {
	if text := flag.Value.String(); text != "" || flag.Value.Type() != "D" {
		return text
	}
	return "0"
}

// unbound are flags that a workload does not depend on, but for the kind of
// what it holds.
var unbound = []string{
	"bind", "preset", "policy", "choice", "horizon", "order", "match", "trigger", "every", "immediate", "backfill", "compress", "preempt",
	"overrun", "extension", "calendar",
}

// prepare makes the case of a point.
func (l *labPlanner) prepare(label string, values []lab.Setting) error {
	flags, cmd := l.commandLine()
	for _, v := range values {
		if err := cmd.Flags().Set(v.Name, v.Value); err != nil {
			panic("lab: " + err.Error()) // it was read before
		}
	}
	machine, config, err := l.app.settleSim(cmd, flags)
	if err != nil {
		return err
	}
	for name, list := range map[string][]string{"policy": flags.Policies, "bind": flags.Binds, "backfill": flags.Backfills} {
		if len(list) > 1 {
			return usagef(cmd, "--%s: %d values at once; compare them with --sweep %s=%s", name, len(list), name, strings.Join(list, ","))
		}
	}
	key := "as=" + flags.As
	cmd.Flags().Visit(func(given *pflag.Flag) {
		if !slices.Contains(unbound, given.Name) {
			key += fmt.Sprintf(" %s=%q", given.Name, textOf(given))
		}
	})
	if l.sources[key] == nil {
		if l.sources[key], _, err = l.app.prepare(cmd, flags, machine); err != nil {
			return err
		}
	}
	src := *l.sources[key] // a copy, since fit may change it
	if err := fit(cmd, flags, machine, &src, &config); err != nil {
		return err
	}
	config.Sites, config.Place = machine.Sites(src.PEs, berth.Binding(flags.Binds[0])), flags.Policies[0]
	if src.Jobs {
		config.Jobs = flags.Backfills[0]
	}
	l.cases[label] = &lab.Case{Config: config, PEs: src.PEs, Work: src.Work, WorkKey: key}
	if l.plan.Title == "" {
		l.plan.Title = l.title(&src)
	}
	return nil
}

// title says what is compared: the workload, and the machine where that is the
// same in all.
func (l *labPlanner) title(src *scenario.Scenario) string {
	swept := func(names ...string) bool {
		return slices.ContainsFunc(l.plan.Dimensions, func(d lab.Dimension) bool { return slices.Contains(names, d.Name) })
	}
	switch {
	case swept("workload"):
		return "several workloads"
	case swept("sites", "pes"):
		return src.Name
	}
	return titleOf(src, new(simFlags))
}

// settings notes what was given and is the same for all, and what the input files
// hold.
func (l *labPlanner) settings() error {
	_, cmd := l.commandLine()
	var digests []lab.Setting
	digest := func(name, path string) error {
		if scenario.IsModel(path) {
			return nil
		}
		sum, err := digestOf(path)
		if err != nil {
			return err
		}
		digests = append(digests, lab.Setting{Name: "SHA-256 of " + name, Value: sum})
		return nil
	}
	var failed error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		_, is := rigid[f.Name]
		if failed != nil || is || !f.Changed || textOf(f) == f.DefValue {
			return
		}
		value := textOf(f)
		if slices.Contains(sweptFiles, f.Name) {
			name := filepath.Base(value)
			failed = digest(name, value)
			value = name
		}
		l.plan.Settings = append(l.plan.Settings, lab.Setting{Name: f.Name, Value: value})
	})
	for _, d := range l.plan.Dimensions {
		if slices.Contains(sweptFiles, d.Name) {
			for _, path := range d.Values {
				failed = errors.Join(failed, digest(path, path))
			}
		}
	}
	l.plan.Settings = append(l.plan.Settings, digests...)
	return failed
}

// build names this program so that another one does not have the same name: by
// its version, or where that may be of several, by what it is made of.
func build() string {
	name := version()
	if !strings.HasPrefix(name, "devel") && !strings.HasSuffix(name, "+dirty") {
		return name
	}
	path, err := os.Executable()
	if err != nil {
		return name
	}
	sum, err := digestOf(path)
	if err != nil {
		return name // it was replaced while it runs
	}
	return name + "-" + sum[:12]
}

// digestOf returns the first half of the SHA-256 of a file.
func digestOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", cannotRead(path, err)
	}
	defer func() { _ = file.Close() }() // only read from: nothing can be lost
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", cannotRead(path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// baselineOf reads the baseline: values such as first-fit or bind=early between
// commas. Nothing is the first value of the first dimension.
func baselineOf(cmd *cobra.Command, plan *lab.Plan, text string) ([]lab.Setting, error) {
	switch {
	case cmd.Flags().Changed("baseline") && text == "":
		return nil, usagef(cmd, "--baseline: empty; want a value that is swept, or none")
	case text == "":
		d := &plan.Dimensions[0]
		return []lab.Setting{{Name: d.Name, Value: d.Values[0]}}, nil
	case text == noBaseline:
		return nil, nil
	}
	var baseline []lab.Setting
	for _, word := range lab.SplitValues(text) {
		at := slices.IndexFunc(plan.Dimensions, func(d lab.Dimension) bool { return strings.HasPrefix(word, d.Name+"=") })
		if at < 0 {
			var of []string
			for i, d := range plan.Dimensions {
				if slices.Contains(d.Values, word) {
					at = i
					of = append(of, d.Name+"="+word)
				}
			}
			if len(of) != 1 {
				return nil, wrongBaseline(cmd, plan, word, of)
			}
			word = of[0]
		}
		b := lab.Setting{Name: plan.Dimensions[at].Name, Value: strings.TrimPrefix(word, plan.Dimensions[at].Name+"=")}
		if values := plan.Dimensions[at].Values; !slices.Contains(values, b.Value) {
			return nil, usagef(cmd, "--baseline: %s", nearest.Unknown(b.Name, b.Value, values))
		}
		if slices.ContainsFunc(baseline, func(o lab.Setting) bool { return o.Name == b.Name }) {
			return nil, usagef(cmd, "--baseline: %s stands there twice", b.Name)
		}
		baseline = append(baseline, b)
	}
	return baseline, nil
}

func wrongBaseline(cmd *cobra.Command, plan *lab.Plan, word string, of []string) error {
	if len(of) > 1 {
		return usagef(cmd, "--baseline: %s can be %s; want it with its name", word, nearest.OneOf(of))
	}
	var values []string
	for _, d := range plan.Dimensions {
		values = append(values, d.Values...)
	}
	return usagef(cmd, "--baseline: %s", nearest.Unknown("value", word, values))
}
