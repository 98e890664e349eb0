package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/internal/wholefile"
	"github.com/berth-hpc/berth/reproduce"
)

// allPapers is what stands for every paper.
const allPapers = "all"

// reproduceAll repeats the experiments of every paper, one after another. The
// folder gets a report over all, and a folder for each. Files of measurements are
// one for each paper, with its name before the ending.
func (a *app) reproduceAll(cmd *cobra.Command, flags *reproduceFlags) error {
	for _, name := range []string{"only", "instances"} {
		if cmd.Flags().Changed(name) {
			return usagef(cmd, "--%s is for one PAPER, not for all", name)
		}
	}
	asked, err := flags.options(cmd)
	if err != nil {
		return err
	}
	var each []*reproduceFlags
	made := []string{flags.out}
	for i := range reproduce.Papers {
		each = append(each, flags.of(&reproduce.Papers[i]))
		if flags.out != "" {
			made = append(made, filepath.Join(flags.out, reproduce.Papers[i].Name))
		}
	}
	if err := flags.apart(cmd, each, made...); err != nil {
		return err
	}
	folders := &outputFolders{root: flags.out}
	if cmd.Flags().Changed(outFlag) {
		if err := folders.open(); err != nil {
			return err
		}
		defer folders.drop()
	}
	spacious()
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	began := time.Now()
	var reports []*reproduce.Report
	for i, one := range each {
		paper := &reproduce.Papers[i]
		options, err := one.options(cmd)
		if err != nil {
			return err
		}
		options.Untested = true
		report, measured, err := a.repeat(ctx, paper, options)
		switch {
		case errors.Is(err, context.Canceled):
			return &interrupted{kept: one.kept()}
		case err != nil:
			return fmt.Errorf("%s: %w", paper.Name, err)
		case report == nil:
			a.say("berth: %s: shard %s is done; %s holds %d measurements", paper.Name, one.shard, one.cells, measured)
		}
		reports = append(reports, report)
	}
	if asked.Sweep.Shard.N > 1 {
		return nil
	}
	if err := folders.write(flags.allCommand(), reports, began); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return &interrupted{kept: flags.kept()}
	}
	if err := folders.keep(); err != nil {
		return err
	}
	if err := printAllClaims(a.stdout, flags.format, reports); err != nil {
		return fmt.Errorf("writing the claims: %w", err)
	}
	return nil
}

// of returns the flags for one of all papers.
func (flags *reproduceFlags) of(paper *reproduce.Paper) *reproduceFlags {
	one := *flags
	if flags.cells != "" {
		one.cells = withSuffix(flags.cells, "-"+paper.Name)
	}
	one.merge = nil
	for _, file := range flags.merge {
		one.merge = append(one.merge, withSuffix(file, "-"+paper.Name))
	}
	return &one
}

// allCommand returns the command line that repeats it.
func (flags *reproduceFlags) allCommand() string {
	line := fmt.Sprintf("berth reproduce all --scale %s --seed %d", flags.scale, flags.seed)
	if flags.repetitions > 0 {
		line += fmt.Sprintf(" --repetitions %d", flags.repetitions)
	}
	if flags.data != "" {
		line += " --data DIR"
	}
	return line + " --out all"
}

// outputFolders is a folder with one for each paper in it, whose files
// appear all or not at all.
type outputFolders struct {
	root string
	list []*wholefile.Folder // the first is the root; none if nothing is written
}

func (f *outputFolders) open() error {
	root, err := wholefile.OpenFolder(outFlag, f.root)
	if err != nil {
		return err
	}
	f.list = append(f.list, root)
	for i := range reproduce.Papers {
		folder, err := wholefile.OpenFolder(outFlag, filepath.Join(f.root, reproduce.Papers[i].Name))
		if err != nil {
			f.drop()
			return err
		}
		f.list = append(f.list, folder)
	}
	return nil
}

// write writes the reports, in the order of the papers.
func (f *outputFolders) write(command string, reports []*reproduce.Report, began time.Time) error {
	if len(f.list) == 0 {
		return nil
	}
	var page, claims bytes.Buffer
	if err := reproduce.WriteAllHTML(&page, command, reports); err != nil {
		return err
	}
	if err := reproduce.WriteAllClaims(&claims, reports); err != nil {
		return err
	}
	about, err := environmentOf(command, began)
	if err != nil {
		return err
	}
	if err := errors.Join(
		f.list[0].Write("report.html", page.Bytes()), f.list[0].Write("claims.csv", claims.Bytes()), f.list[0].Write(environmentFile, about),
	); err != nil {
		return err
	}
	for i, report := range reports {
		files, err := report.Files()
		if err != nil {
			return err
		}
		for k := range files {
			if err := f.list[i+1].Write(files[k].Name, files[k].Data); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *outputFolders) keep() error {
	for _, folder := range f.list {
		if err := folder.Keep(); err != nil {
			return err
		}
	}
	return nil
}

// drop removes what was not kept, the inner folders first.
func (f *outputFolders) drop() {
	for _, folder := range slices.Backward(f.list) {
		folder.Drop()
	}
}

// printAllClaims writes the claims of all papers, each id behind its paper's
// name.
func printAllClaims(w io.Writer, format string, reports []*reproduce.Report) error {
	switch format {
	case "json":
		outputs := []reproduceOutput{}
		for _, report := range reports {
			outputs = append(outputs, outputOf(report))
		}
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(struct {
			Papers []reproduceOutput `json:"papers"`
		}{outputs})
	case "csv":
		return reproduce.WriteAllClaims(w, reports)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, report := range reports {
		for i := range report.Claims {
			c := &report.Claims[i]
			_, _ = fmt.Fprintf(table, "%s/%s\t%s\t%s\t%s\n", report.Paper.Name, c.ID, c.Verdict, words(c), c.Ours) // Flush tells
		}
	}
	return table.Flush()
}

// paperNames lists what may be repeated, for messages.
func paperNames() string { return strings.Join(append(papers(), allPapers), ", ") }
