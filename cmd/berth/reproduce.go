package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/berth-hpc/berth/internal/nearest"
	"github.com/berth-hpc/berth/internal/wholefile"
	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/reproduce"
)

// reproduceFlags is what the command line of reproduce says.
type reproduceFlags struct {
	scale       string
	out         string
	repetitions int
	seed        uint64
	format      string
	data        string
	cells       string
	shard       string
	merge       []string
	only        string
	instances   int

	tell func(done, total int) // beside the bar, for tests; may be nil
}

// reproduceCommand returns berth reproduce.
func (a *app) reproduceCommand() *cobra.Command {
	flags := reproduceFlags{scale: string(reproduce.Scales()[0]), seed: 1, format: formats[0]}
	cmd := &cobra.Command{
		Use:   "reproduce PAPER",
		Short: "Repeat a paper's experiments and judge its claims",
		Long:  reproduceLong(),
		Example: `  berth reproduce waiting-time
  berth reproduce dynamic-priority --scale full --out results
  berth reproduce waiting-time --repetitions 10 --seed 7 -o csv
  berth reproduce availability --data DIR --out availability
  berth reproduce application-aware --data DIR --out application-aware
  berth reproduce mixed-parallel --data DIR --scale full --cells cells.jsonl --out mixed-parallel
  berth reproduce mixed-parallel --data DIR --scale full --shard 2/4 --cells part2.jsonl
  berth reproduce mixed-parallel --data DIR --scale full --merge part1.jsonl,part2.jsonl,part3.jsonl,part4.jsonl
  berth reproduce mixed-parallel --data DIR --only blue/0.2/expo/seed=1
  berth reproduce all --out all`,
		ValidArgs: append(papers(), allPapers),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef(cmd, "want one PAPER, got %d; there are %s", len(args), paperNames())
			}
			if _, ok := reproduce.PaperNamed(args[0]); !ok && args[0] != allPapers {
				return usagef(cmd, "%s", nearest.Unknown("paper", args[0], append(papers(), allPapers)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == allPapers {
				return a.reproduceAll(cmd, &flags)
			}
			paper, _ := reproduce.PaperNamed(args[0])
			if err := refuseIdle(cmd, paperNeeds(paper.Name)); err != nil {
				return err
			}
			return a.reproduce(cmd, paper, &flags)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Var(&choice{&flags.scale, "scale", scales()}, "scale", "how much is simulated: "+strings.Join(scales(), ", "))
	f.StringVar(&flags.out, outFlag, "", "write claims, figures and the report to `DIR`, which is made if it is not there")
	f.Var(&whole[uint64]{&flags.seed, 0, math.MaxUint64}, "seed", "seed of the first repetition; the next ones count up")
	f.Var(&whole[int]{&flags.repetitions, 1, maxReplications}, "repetitions", "repeat every measurement N times (default: what the scale says)")
	f.VarP(&choice{&flags.format, "form", formats}, "output", "o", "form of the claims: "+strings.Join(formats, ", "))
	f.StringVar(&flags.data, "data", os.Getenv("BERTH_DATA"), "folder of `DIR`/swf with logs of the Parallel Workloads Archive (default: $BERTH_DATA)")
	f.Lookup("data").DefValue = "" // what the environment says is not a default
	f.Var(&whole[int]{&flags.instances, 1, maxReplications}, "instances", "of each scenario of mixed-parallel (default: what the scale says, 120 at full; the paper has 1000)")
	f.StringVar(&flags.cells, "cells", "", "keep finished measurements in `FILE`.jsonl as they come, and go on from what it holds")
	f.StringVar(&flags.shard, "shard", "", "take the I-th of N parts of the measurements, `I/N`, into the file of --cells; no report")
	f.StringSliceVar(&flags.merge, "merge", nil, "measure nothing, but report from the `FILES` of all shards")
	f.StringVar(&flags.only, "only", "", "take the one measurement with this `KEY` again, as files of measurements name it, and print it")
	_ = cmd.MarkFlagFilename("cells", "jsonl") // fails for unknown flags only
	_ = cmd.MarkFlagFilename("merge", "jsonl")
	_ = cmd.MarkFlagDirname("data")
	_ = cmd.MarkFlagDirname(outFlag)
	complete(cmd, "scale", scales())
	complete(cmd, "output", formats)
	return cmd
}

// paperNeeds is the table of what flags need of a paper.
func paperNeeds(paper string) []need {
	logs := []string{"availability", "mixed-parallel", "application-aware", "deviating-workflows"}
	return []need{
		{paper == "mixed-parallel", "mixed-parallel", []string{"instances"}},
		{slices.Contains(logs, paper), strings.Join(logs, ", ") + "; " + paper + " reads no data", []string{"data"}},
	}
}

func papers() []string {
	var names []string
	for i := range reproduce.Papers {
		names = append(names, reproduce.Papers[i].Name)
	}
	return names
}

func scales() []string {
	var names []string
	for _, scale := range reproduce.Scales() {
		names = append(names, string(scale))
	}
	return names
}

// reproduceLong is the text over the flags.
func reproduceLong() string {
	var text strings.Builder
	text.WriteString(`Simulates what a paper simulated, judges each of its claims by what comes out, and
prints a line for each: id, verdict, what the paper says, what was found. A
verdict is held, within tolerance, inconclusive, not testable or not held. Claims that
no paper makes are marked as ours, and those that hold under any names as checks.

With --out it also writes claims.csv, parts.csv with every comparison, each
figure as .svg and .csv, cells.jsonl with every measurement, and report.html, a
page that needs nothing beside it. With all, it repeats every paper and writes one
report over them beside a folder for each.

The same paper, scale, repetitions and seed give the same bytes, on any number of
cores, but for the planning times of mixed-parallel, which are measured, and
environment.json, which says with what it was made. Intervals are those of 95 %.

availability and mixed-parallel read logs of the Parallel Workloads Archive, as
.swf.gz in the folder of --data or in its subfolder swf; what needs a log that is
not there is not testable, and says so. application-aware reads such a log and, in
the folder or its subfolder bandwidth, measured bandwidths; it has a model for what is
not there.

Long ones can be interrupted: with --cells finished measurements are in a file,
and the same command goes on from there. With --shard several machines measure a
part each, into a file each, and --merge makes the report of all; it reads what gzip
has packed, too. The first line of a file says of what the measurements are; those of
other options, another version or another sweep are refused, and none is counted twice.

Papers:

`)
	for i := range reproduce.Papers {
		p := &reproduce.Papers[i]
		fmt.Fprintf(&text, "    %-18s %s;\n%s %d repetitions, %d at full scale\n", p.Name, p.About, strings.Repeat(" ", 22), p.Quick, p.Full)
	}
	return strings.TrimRight(text.String(), "\n")
}

// reproduce runs the command.
func (a *app) reproduce(cmd *cobra.Command, paper *reproduce.Paper, flags *reproduceFlags) error {
	options, err := flags.options(cmd)
	if err != nil {
		return err
	}
	if err := flags.apart(cmd, []*reproduceFlags{flags}, flags.out); err != nil {
		return err
	}
	var folder *wholefile.Folder
	if cmd.Flags().Changed(outFlag) {
		if folder, err = wholefile.OpenFolder(outFlag, flags.out); err != nil {
			return err
		}
		defer folder.Drop()
	}
	spacious()
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	began := time.Now()
	if flags.only != "" {
		return a.repeatOnly(ctx, paper, options, flags)
	}
	report, measured, err := a.repeat(ctx, paper, options)
	switch {
	case errors.Is(err, context.Canceled):
		return &interrupted{kept: flags.kept()}
	case err != nil:
		return err
	case report == nil:
		a.say("berth: shard %s is done; %s holds %d measurements", flags.shard, flags.cells, measured)
		return nil
	}
	if folder != nil {
		files, err := report.Files()
		if err != nil {
			return err
		}
		about, err := environmentOf(report.Command, began)
		if err != nil {
			return err
		}
		files = append(files, reproduce.File{Name: environmentFile, Data: about})
		for i := range files {
			if err := folder.Write(files[i].Name, files[i].Data); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return &interrupted{kept: flags.kept()}
		}
		if err := folder.Keep(); err != nil {
			return err
		}
	}
	if err := printClaims(a.stdout, flags.format, report); err != nil {
		return fmt.Errorf("writing the claims: %w", err)
	}
	return nil
}

// kept says what an interruption leaves.
func (flags *reproduceFlags) kept() string {
	if flags.cells == "" {
		return "nothing was written"
	}
	return "finished measurements are in " + flags.cells + "; the same command goes on from there"
}

// apart refuses outputs that are inputs or other outputs, and streams: what is
// kept is read again. Each of the given flags is for a paper; folders are those of
// --out.
func (flags *reproduceFlags) apart(cmd *cobra.Command, papers []*reproduceFlags, folders ...string) error {
	files := claims{cmd: cmd}
	for _, one := range papers {
		files.reads("--merge", one.merge...)
		files.writes("--cells", one.cells)
	}
	if flags.data != "" {
		files.looksIn("--data", flags.data, filepath.Join(flags.data, "swf"), filepath.Join(flags.data, "bandwidth"))
	}
	if err := files.filesOnly(); err != nil {
		return err
	}
	for _, folder := range folders {
		if err := files.fills("--"+outFlag, folder); err != nil {
			return err
		}
	}
	return files.apart()
}

// options turns the flags into what the experiments take.
func (flags *reproduceFlags) options(cmd *cobra.Command) (reproduce.Options, error) {
	o := reproduce.Options{
		Scale: reproduce.Scale(flags.scale), Repetitions: flags.repetitions, Seed: flags.seed, Data: flags.data, Instances: flags.instances,
		Sweep: reproduce.Sweep{File: flags.cells, From: flags.merge, Progress: flags.tell},
	}
	for _, name := range []string{"cells", "merge", "shard", "only"} {
		if cmd.Flags().Changed(name) && cmd.Flags().Lookup(name).Value.String() == "" {
			return o, usagef(cmd, "--%s: empty", name)
		}
	}
	if flags.only != "" {
		for _, name := range []string{"cells", "merge", "shard", outFlag} {
			if cmd.Flags().Changed(name) {
				return o, usagef(cmd, "--only prints one measurement; it cannot go with --%s", name)
			}
		}
	}
	if flags.shard != "" {
		var err error
		if o.Sweep.Shard, err = reproduce.ParseShard(flags.shard); err != nil {
			return o, err
		}
		if err := refuseIdle(cmd, []need{{
			o.Sweep.Shard.N == 1, "a report, which --shard does not write; put the shards together with --merge, and want it there",
			[]string{outFlag, "output"},
		}}); err != nil {
			return o, err
		}
	}
	return o, nil
}

// repeat runs the experiments, with a bar if people watch.
func (a *app) repeat(ctx context.Context, paper *reproduce.Paper, options reproduce.Options) (*reproduce.Report, int, error) {
	if isTerminal(a.stderr) {
		container := mpb.New(mpb.WithOutput(a.stderr), mpb.WithWidth(48))
		bar := container.AddBar(0,
			mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(paper.Name+" "), decor.CountersNoUnit("%d/%d runs", decor.WCSyncSpace)),
			mpb.AppendDecorators(decor.Percentage(decor.WC{W: 5}), decor.Name(" "), decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO), "")),
		)
		defer func() {
			bar.Abort(true)
			container.Wait()
		}()
		var known sync.Once
		options.Sweep.Progress = func(_, total int) {
			known.Do(func() { bar.SetTotal(int64(total), false) })
			bar.Increment()
		}
	}
	return paper.Run(ctx, options)
}

// reproduceOutput is what reproduce -o json writes.
type reproduceOutput struct {
	Paper       string          `json:"paper"`
	Scale       reproduce.Scale `json:"scale"`
	Repetitions int             `json:"repetitions"`
	Seed        uint64          `json:"seed"`
	Claims      []claimOutput   `json:"claims"`
}

// claimOutput is one claim.
type claimOutput struct {
	ID      string            `json:"id"`
	Verdict reproduce.Verdict `json:"verdict"`
	Kind    reproduce.Kind    `json:"kind"`
	// Magnitude is the verdict on the numbers that the paper prints, if it prints any.
	Magnitude reproduce.Verdict `json:"magnitude,omitempty"`
	Over      string            `json:"over,omitempty"`
	Revised   string            `json:"revised,omitempty"`
	Paper     string            `json:"paper"`
	Ours      string            `json:"ours"`
	Source    string            `json:"source"`
	Parts     []partOutput      `json:"parts"`
}

// partOutput is one comparison.
type partOutput struct {
	Verdict  reproduce.Verdict `json:"verdict"`
	Quantity string            `json:"quantity"`
	Rule     string            `json:"rule"`
	Unit     string            `json:"unit"`
	measure.Estimate
	Repetitions int `json:"repetitions"`
}

// printClaims writes the claims, one line each unless it is JSON.
func printClaims(w io.Writer, format string, report *reproduce.Report) error {
	switch format {
	case "json":
		return printClaimsJSON(w, report)
	case "csv":
		return report.WriteClaims(w)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := range report.Claims {
		c := &report.Claims[i]
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", c.ID, c.Verdict, words(c), c.Ours) // Flush tells
	}
	return table.Flush()
}

// words are those of a claim, marked unless a paper states it.
func words(c *reproduce.Claim) string {
	switch c.Kind {
	case reproduce.Own:
		return "ours: " + c.Paper
	case reproduce.Check:
		return "check: " + c.Paper
	}
	return c.Paper
}

func printClaimsJSON(w io.Writer, report *reproduce.Report) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(outputOf(report))
}

// outputOf returns a report as JSON has it.
func outputOf(report *reproduce.Report) reproduceOutput {
	out := reproduceOutput{
		Paper: report.Paper.Name, Scale: report.Scale, Repetitions: report.Repetitions, Seed: report.Seed, Claims: []claimOutput{},
	}
	for i := range report.Claims {
		c := &report.Claims[i]
		claim := claimOutput{ID: c.ID, Verdict: c.Verdict, Kind: c.Kind, Magnitude: c.Magnitude, Over: c.Over, Revised: c.Revised, Paper: c.Paper, Ours: c.Ours, Source: c.Source, Parts: []partOutput{}}
		for k := range c.Parts {
			p := &c.Parts[k]
			claim.Parts = append(claim.Parts, partOutput{p.Verdict, p.What, p.Rule, p.Unit, p.Value, p.N})
		}
		out.Claims = append(out.Claims, claim)
	}
	return out
}
