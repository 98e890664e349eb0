package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workflow/flowfile"
	"github.com/berth-hpc/berth/workflow/foreign"
)

type importFlags struct {
	foreign.Options
	trace string
	out   string
}

// defaultImportTime is taken for tasks whose run time is unknown. It is
// long enough to be noticed in a plan.
const defaultImportTime = 10 * 60

// mostImported bounds the bytes that are read of a file.
const mostImported = 64 << 20

func (a *app) workflowImport() *cobra.Command {
	flags := importFlags{Options: foreign.Options{Time: defaultImportTime}}
	cmd := &cobra.Command{
		Use:   "import FILE --out WORKFLOW.yaml",
		Short: "Make a workflow of a DAG of Snakemake or Nextflow, or of a Makeflow",
		Long:  importLong(),
		Example: `  snakemake --dag | berth workflow import - --command 'snakemake --nolock -c1 -U {rule}' --out flow.yaml
  snakemake --d3dag > dag.json && berth workflow import dag.json --time 30m --out flow.yaml
  nextflow run main.nf -with-dag flow.mmd -with-trace trace.txt
  berth workflow import flow.mmd --trace trace.txt --out flow.yaml
  berth workflow import Makeflow --out flow.yaml && berth plan flow.yaml --pes 64`,
		Args: one("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.importWorkflow(cmd, args[0], &flags) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	names := namesOf(foreign.Forms, func(form foreign.Form) string { return form.Name })
	f.Var(&choice{&flags.Form, "notation", names}, "from", "notation of FILE (default: by its content)")
	f.Var(&length{&flags.Time, 1}, "time", "run time of tasks where it is unknown, in seconds or such as 30m")
	f.StringVar(&flags.Command, "command", "", "`LINE` of the shell that runs a task where FILE does not tell the command")
	f.StringVar(&flags.trace, "trace", "", "a trace `FILE` of Nextflow: a task for each of its rows, with its run time")
	f.StringVar(&flags.out, "out", "", "`FILE`.yaml to write; - is stdout")
	complete(cmd, "from", names)
	_ = cmd.MarkFlagFilename("out", "yaml", "yml") // fails for unknown flags only
	return cmd
}

func importLong() string {
	var text strings.Builder
	text.WriteString(`Reads a workflow of another system and writes it in Berth's own YAML, which berth
plan and berth workflow take. What had to be guessed is told on stderr and in
comments at the head of the file: look at them before you rely on the plan. - is
stdin.

`)
	for _, form := range foreign.Forms {
		fmt.Fprintf(&text, "    %-17s %s\n", form.Name, form.About)
	}
	text.WriteString(`
A DAG does not tell what its tasks run. --command gives a line of the shell for all
of them, in which {rule}, {name} and the names of wildcards such as {sample} are
replaced; without it each task is a script that fails and says so. A DAG of Nextflow
shows processes; with --trace the tasks of an execution are taken, with their run
times, CPUs and memory, and those of one tag are taken to wait for each other.`)
	return text.String()
}

func (a *app) importWorkflow(cmd *cobra.Command, path string, flags *importFlags) error {
	if err := wantOut(cmd, flags.out, "FILE.yaml"); err != nil {
		return err
	}
	files := &claims{cmd: cmd}
	files.reads("FILE", path)
	if flags.trace != "" {
		files.reads("--trace", flags.trace)
	}
	files.writes("--out", flags.out)
	if err := files.apart(); err != nil {
		return err
	}
	text, name, err := a.wholeInput(path)
	if err != nil {
		return err
	}
	if flags.trace != "" {
		if flags.Trace, flags.TraceName, err = a.wholeInput(flags.trace); err != nil {
			return err
		}
	}
	flow, err := foreign.Read(text, name, flags.Options)
	if err != nil {
		return err
	}
	if flags.trace != "" && !strings.HasPrefix(flow.Form, "nextflow") {
		return usagef(cmd, "--trace: of Nextflow, but %s is %s", name, flow.Form)
	}
	var made bytes.Buffer
	if err := foreign.WriteYAML(&made, flow); err != nil {
		return err
	}
	read, err := flowfile.Read(bytes.NewReader(made.Bytes()), "what was made of "+name, flowfile.Options{})
	if err != nil {
		return err
	}
	for _, note := range flow.Notes {
		a.say("berth: %s: %s", name, note)
	}
	if err := a.generated(cmd, flags.out, func(w io.Writer) error {
		_, err := w.Write(made.Bytes())
		return err
	}); err != nil {
		return err
	}
	a.say("berth: %s: %d tasks, %d edges", flow.Form, read.Flow.Len(), read.Flow.Edges())
	return nil
}

// wholeInput reads a file, or stdin, and returns what messages call it.
func (a *app) wholeInput(path string) (text []byte, name string, err error) {
	in, name := a.stdin, "stdin"
	if path != stdStream {
		file, err := os.Open(path)
		if err != nil {
			return nil, "", cannotRead(path, err)
		}
		defer func() { _ = file.Close() }() // only read from: nothing can be lost
		in, name = file, path
	}
	text, err = io.ReadAll(io.LimitReader(in, mostImported+1))
	switch {
	case errors.As(err, new(*fs.PathError)):
		return nil, "", cannotRead(path, err)
	case err != nil:
		return nil, "", fmt.Errorf("read %s: %w", name, err)
	case len(text) > mostImported:
		return nil, "", berth.Errorf(berth.Invalid, "", "%s: larger than %d bytes", name, mostImported)
	}
	return text, name, nil
}
