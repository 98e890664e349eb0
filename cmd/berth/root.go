package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-hpc/berth/internal/nearest"
	"github.com/berth-hpc/berth/workload"
)

// app is one invocation: its words, its streams, and the engine it drives.
type app struct {
	args           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	simulate       simulator // a test's replacement of the simulation; nil is the simulation
	// logs are workloads that were read, by path and options; nil keeps none.
	logs map[string]*workload.Workload
	// serviceClock is a test's clock of a service; nil is the machine's.
	serviceClock func() time.Time
	// setUmask sets the umask of this process, which belongs to the command alone; nil leaves it, as tests in one process
	// have it, where others make files meanwhile.
	setUmask func(mask int) (was int)
	// expectHeap hears before a command runs whose heap may grow to as many bytes; nil, as in tests, is not told.
	expectHeap func(bytes int64)
}

// What the heaps of commands grow to, which decides about their pages alone.
const (
	heapOfCommand = 1 << 30 // a log of a million jobs
	heapOfService = 2 << 30 // a restart with a million promises
)

// privately has files that are made be for this user alone until back is called. umask is that of before.
func (a *app) privately() (umask int, back func()) {
	if a.setUmask == nil {
		return 0, func() {}
	}
	umask = a.setUmask(private)
	return umask, func() { a.setUmask(umask) }
}

func (a *app) run() int { return a.report(a.root().Execute()) }

// untilInterrupt returns a context that Ctrl-C and SIGTERM cancel; a second
// one ends the process at once. Outside of it already the first one does,
// which is right for whatever has nothing to keep or to tidy up.
func untilInterrupt(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// root returns the tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "berth",
		Short: "Advance reservations for parallel machines",
		Long: `Berth books processors the way a harbour books quays: a request is a rectangle
(processors × time) with a window it may move in, and a promise, once made, is kept.`,
		Example: `  berth sim --workload examples/first-light.swf --policy all
  berth sim --workload lublin:lanl-cm5 --policy first-fit,pe-worst --schedule out.jsonl
  berth check out-pe-worst.jsonl`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetVersionTemplate("berth {{.Version}}\n")
	root.SetArgs(append([]string{}, a.args...)) // nil would mean the process's own
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(a.flagError)
	// A command that only holds others has no form without one.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", "{{if and .Runnable (not .HasAvailableSubCommands)}}", 1))
	root.SetHelpCommand(helpCommand())
	root.AddCommand(a.computing(heapOfCommand, a.simCommand(), a.generateCommand(), a.checkCommand(), a.planCommand(), a.forecastCommand(), a.journalCommand(), a.reproduceCommand(), a.labCommand(), a.adviseCommand(), a.chanceCommand())...)
	root.AddCommand(a.computing(heapOfService, a.serveCommand())...)
	root.AddCommand(a.manCommand(), shepherdCommand(), a.workflowCommand(), a.seriesCommand(), a.versionCommand())
	root.AddCommand(a.lifecycleCommands()...)
	root.InitDefaultCompletionCmd(a.args...)
	for _, cmd := range append(root.Commands(), root) {
		if cmd.Name() == "completion" {
			for _, shell := range cmd.Commands() {
				shell.Args = noArguments
			}
		}
		if cmd.HasSubCommands() && !cmd.Runnable() {
			group(cmd)
		}
	}
	return root
}

// computing returns commands whose heap may grow to as many bytes.
func (a *app) computing(bytes int64, commands ...*cobra.Command) []*cobra.Command {
	if a.expectHeap != nil {
		for _, cmd := range commands {
			cmd.PersistentPreRun = func(cmd *cobra.Command, _ []string) {
				if worker := cmd.Flags().Lookup("worker"); worker == nil || !worker.Changed { // whose memory has a limit
					a.expectHeap(bytes)
				}
			}
		}
	}
	return commands
}

// helpCommand returns berth help.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",

		ValidArgsFunction: offerCommands,
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(about, rest[0])
			}
			about.InitDefaultHelpFlag() // as if --help had been parsed
			return about.Help()
		},
	}
}

// group makes a command that only holds others: alone it shows its help, and a
// word that is none of its commands is a mistake with a suggestion.
func group(cmd *cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return unknownCommand(cmd, args[0])
	}
}

func unknownCommand(cmd *cobra.Command, word string) error {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return &usageError{command: cmd.CommandPath(), msg: nearest.Unknown("command", word, names)}
}

// noArguments refuses words that a command does not take.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef(cmd, "unexpected %q; %s takes flags only", args[0], cmd.CommandPath())
	}
	return nil
}

// usagef returns a mistake on the command line of cmd.
func usagef(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{command: cmd.CommandPath(), msg: fmt.Sprintf(format, args...)}
}

// flagError words a mistake in a flag.
func (a *app) flagError(cmd *cobra.Command, err error) error {
	// A flag after an unknown command is not the mistake to tell.
	if cmd.HasSubCommands() {
		if _, rest, findErr := cmd.Root().Find(a.args); findErr == nil {
			if i := slices.IndexFunc(rest, func(word string) bool { return !strings.HasPrefix(word, "-") }); i >= 0 {
				return unknownCommand(cmd, rest[i])
			}
		}
	}
	return flagMistake(cmd, err)
}

// flagMistake words a mistake in a flag of the command itself.
func flagMistake(cmd *cobra.Command, err error) error {
	var (
		missing *pflag.NotExistError
		bad     *pflag.InvalidValueError
		bare    *pflag.ValueRequiredError
	)
	switch {
	case errors.As(err, &missing):
		return unknownFlag(cmd, missing)
	case errors.As(err, &bad):
		if bad.GetFlag().Value.Type() == "bool" {
			return usagef(cmd, "%s: %q; want true or false, or nothing for true", flagName(bad.GetFlag()), bad.GetValue())
		}
		return usagef(cmd, "%s: %v", flagName(bad.GetFlag()), bad.Unwrap())
	case errors.As(err, &bare):
		_, about := pflag.UnquoteUsage(bare.GetFlag())
		return usagef(cmd, "%s: missing its value; %s", flagName(bare.GetFlag()), about)
	}
	return usagef(cmd, "%v", err)
}

// flagName returns a flag as people type it.
func flagName(flag *pflag.Flag) string {
	if flag.Shorthand != "" {
		return "-" + flag.Shorthand + ", --" + flag.Name
	}
	return "--" + flag.Name
}

func unknownFlag(cmd *cobra.Command, missing *pflag.NotExistError) error {
	if missing.GetSpecifiedShortnames() != "" {
		return usagef(cmd, "unknown flag -%s of %s", missing.GetSpecifiedName(), cmd.CommandPath())
	}
	var names []string
	cmd.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	hint := ""
	if name, ok := nearest.Completed(missing.GetSpecifiedName(), names); ok {
		hint = fmt.Sprintf(" (did you mean --%s?)", name)
	}
	return usagef(cmd, "unknown flag --%s of %s%s", missing.GetSpecifiedName(), cmd.CommandPath(), hint)
}
