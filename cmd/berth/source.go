package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/scenario"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/sites"
	"github.com/berth-hpc/berth/workload"
)

// settleSim checks the flags of a simulation and returns its machine, the bindings of
// which become those of the flags, and the scheduler for it.
func (a *app) settleSim(cmd *cobra.Command, flags *simFlags) (*scenario.Machine, engine.Config, error) {
	if err := flags.validate(cmd); err != nil {
		return nil, engine.Config{}, err
	}
	flags.Given = cmd.Flags().Changed
	var file *sites.File
	if flags.sites != "" {
		err := refuseIdle(cmd, []need{{false, "a machine of one pool; the sites file tells the sizes", []string{"pes"}}})
		if err != nil {
			return nil, engine.Config{}, err
		}
		if file, err = readInput(a, flags.sites, sites.Open, sites.Read); err != nil {
			return nil, engine.Config{}, err
		}
		if err := errors.Join(file.Described(), scenario.CheckNames(file)); err != nil {
			return nil, engine.Config{}, err
		}
	}
	return flags.Settle(file)
}

// prepare reads the workload of a simulation, tells on stderr what could not be
// used of it, and makes the requests of the first replication.
func (a *app) prepare(cmd *cobra.Command, flags *simFlags, machine *scenario.Machine) (*scenario.Scenario, *sim.Workload, error) {
	src, first, err := flags.Open(machine, scenario.Input{
		Log: a.read,
		Outages: func(path string, on []berth.Site, o workload.Options) (*workload.OutageFile, error) {
			return readInput(a, path,
				func(path string) (*workload.OutageFile, error) { return workload.OpenOutages(path, on, o) },
				func(r io.Reader, name string) (*workload.OutageFile, error) {
					return workload.ReadOutages(r, name, on, o)
				})
		},
		Report: a.tell,
		LeftOut: func(replication, jobs int) {
			a.say("berth: replication %d: %d jobs have no valid window and are left out", replication, jobs)
		},
	})
	return src, first, optionMistake(cmd, err)
}

// optionMistake points a mistake in an option to its flag.
func optionMistake(cmd *cobra.Command, err error) error {
	if option, is := errors.AsType[*scenario.OptionError](err); is {
		return usagef(cmd, "--%s: %s", option.Option, option.Msg)
	}
	return err
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

// scene says in a few words what is simulated, on which machine.
func scene(s *scenario.Scenario) string {
	text := fmt.Sprintf("%s on %d PEs", s.Name, s.PEs)
	switch {
	case s.Sites == 1:
		text += " of 1 site"
	case s.Sites > 1:
		text += fmt.Sprintf(" of %d sites", s.Sites)
	}
	return text
}

// titleOf adds to the scene what is the same in all runs.
func titleOf(s *scenario.Scenario, flags *simFlags) string {
	title := scene(s)
	if s.Sites == 0 && len(flags.Binds) == 1 {
		title += ", " + flags.Binds[0] + " binding"
	}
	if s.Jobs && s.Requests && len(flags.Backfills) == 1 {
		title += ", " + flags.Backfills[0] + " for jobs"
	}
	return title
}

// modelList describes the models for help, a line for each.
func modelList() string {
	var text strings.Builder
	for _, model := range workload.Models() {
		fmt.Fprintf(&text, "    %-20s %s\n", model.Name, model.About)
	}
	return text.String()
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
