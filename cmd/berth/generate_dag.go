package main

import (
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

// generateDAGFlags is what the command line of generate dag says.
type generateDAGFlags struct {
	workload.Daggen
	seed    uint64
	version string
	out     string
}

func (a *app) generateDAGCommand() *cobra.Command {
	flags := generateDAGFlags{Daggen: workload.NewDaggen(), seed: 1, version: "1.5"}
	cmd := &cobra.Command{
		Use:   "dag --out FILE.json",
		Short: "Write a random workflow in WfFormat",
		Long: `Draws a workflow in layers, as the program daggen does, with the run times and
serial fractions of the mixed-parallel paper, whose Table 1 gives the defaults.
The same flags write the same bytes; --density and --jump change neither the
levels nor the times.`,
		Example: `  berth generate dag --tasks 100 --width .8 --seed 7 --out workflow.json`,
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.generateDAG(cmd, &flags) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(&whole[int]{&flags.Tasks, 1, workflow.MaxTasks}, "tasks", "how many tasks")
	f.Var(&portion{&flags.Width}, "width", "tasks on a level: tasks^X; 0 is a chain, 1 one level")
	f.Var(&portion{&flags.Regularity}, "regularity", "how even the levels are, from 0 to 1")
	f.Var(&portion{&flags.Density}, "density", "share of the level above that may be parents of a task")
	f.Var(&whole[int]{&flags.Jump, 1, workflow.MaxTasks}, "jump", "how many levels up a parent may be")
	f.Var(&portion{&flags.Alpha}, "alpha", "bound of the tasks' serial fractions")
	f.Var(&length{&flags.MinTime, 0}, "min-time", "shortest time of a task on one PE, in seconds or such as 1m")
	f.Var(&length{&flags.MaxTime, 0}, "max-time", "longest time of a task on one PE, in seconds or such as 10h")
	f.Var(&whole[uint64]{&flags.seed, 0, math.MaxUint64}, "seed", "seed of the draws")
	f.Var(&choice{&flags.version, "version", workload.WfVersions()}, "wfformat", "version of WfFormat to write")
	f.StringVar(&flags.out, "out", "", "`FILE`.json to write (.gz compresses); - is stdout")
	complete(cmd, "wfformat", workload.WfVersions())
	return cmd
}

func (a *app) generateDAG(cmd *cobra.Command, flags *generateDAGFlags) error {
	if err := wantOut(cmd, flags.out, "FILE.json"); err != nil {
		return err
	}
	flow, err := flags.Generate(flags.seed)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("daggen: %d tasks, width %v, regularity %v, density %v, jump %d, alpha %v, times from %d to %d s, seed %d",
		flags.Tasks, flags.Width, flags.Regularity, flags.Density, flags.Jump, flags.Alpha, flags.MinTime, flags.MaxTime, flags.seed)
	if err := a.generated(cmd, flags.out, func(w io.Writer) error {
		return workload.WriteWorkflow(w, name, flags.version, flow)
	}); err != nil {
		return err
	}
	a.say("berth: %d tasks, %d edges", flow.Len(), flow.Edges())
	return nil
}
