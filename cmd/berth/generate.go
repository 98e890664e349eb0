package main

import (
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/scenario"
	"github.com/berth-hpc/berth/workload"
)

// generateCommand returns berth generate.
func (a *app) generateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Write a workload to a file",
	}
	cmd.AddCommand(a.generateSWFCommand(), a.generateDAGCommand(), a.generateBookingsCommand())
	return cmd
}

// generateFlags is what the command line of generate swf says.
type generateFlags struct {
	model string
	jobs  int
	pes   berth.Count
	umed  float64
	seed  uint64
	out   string
}

func (a *app) generateSWFCommand() *cobra.Command {
	flags := generateFlags{jobs: scenario.DefaultJobs, seed: 1}
	cmd := &cobra.Command{
		Use:   "swf --model lublin:NAME --out FILE.swf",
		Short: "Write a log in the Standard Workload Format",
		Long: `Draws jobs from the model and writes them as a log that sim, and any other
simulator, can replay. The same flags write the same bytes.

Models:

` + strings.TrimRight(modelList(), "\n"),
		Example: `  berth generate swf --model lublin:typeless --jobs 1000 --pes 128 --seed 7 --out jobs.swf`,
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.generateSWF(cmd, &flags) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&flags.model, "model", "", "model to draw from: `lublin:NAME`")
	f.Var(&whole[int]{&flags.jobs, 1, math.MaxInt32}, "jobs", "how many jobs")
	f.Var(&whole[berth.Count]{&flags.pes, 1, berth.MaxPEs}, "pes", "size of the machine (default: the model's own)")
	f.Var(&factor{&flags.umed, true}, "umed", "break point of the sizes, log2 of PEs (default: the model's own)")
	f.Var(&whole[uint64]{&flags.seed, 0, math.MaxUint64}, "seed", "seed of the draws")
	f.StringVar(&flags.out, "out", "", "`FILE`.swf to write (.gz compresses); - is stdout")
	complete(cmd, "model", scenario.Models())
	return cmd
}

func (a *app) generateSWF(cmd *cobra.Command, flags *generateFlags) error {
	if flags.model == "" {
		return usagef(cmd, "--model: missing; want lublin:NAME")
	}
	if err := wantOut(cmd, flags.out, "FILE.swf"); err != nil {
		return err
	}
	model, err := scenario.NewModel("model", flags.model, workload.Params{PEs: flags.pes, UMed: flags.umed})
	if err != nil {
		return optionMistake(cmd, err)
	}
	return a.generated(cmd, flags.out, func(w io.Writer) error {
		return workload.WriteSWF(w, model.Header(flags.jobs, flags.seed), model.Generate(flags.jobs, flags.seed))
	})
}

// wantOut reports a missing --out.
func wantOut(cmd *cobra.Command, out, form string) error {
	if out == "" {
		return usagef(cmd, "--out: missing; want %s, or - for stdout", form)
	}
	return nil
}

// generated writes a file, whole or not at all, compressed if its name ends in .gz; - is
// stdout.
func (a *app) generated(cmd *cobra.Command, path string, write func(io.Writer) error) error {
	out, err := a.create("out", path)
	if err != nil {
		return err
	}
	defer out.Drop()
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	err = zipped(out, strings.HasSuffix(path, ".gz"), write)
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return &interrupted{kept: "nothing was written"}
	}
	return out.Keep()
}
