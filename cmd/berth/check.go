package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/sites"
	"github.com/berth-hpc/berth/workload"
)

// checkCommand returns berth check.
func (a *app) checkCommand() *cobra.Command {
	var pes berth.Count
	var sitesFile string
	var strict bool
	format := "table"
	cmd := &cobra.Command{
		Use:   "check FILE.jsonl [--pes N|--sites FILE.yaml]",
		Short: "Validate a schedule file of any program",
		Long: `Reads a schedule file and checks it line by line and as a whole: sizes, windows,
lengths, reasons, co-allocated parts, precedence, stagings, and that no more PEs are
taken at any time than there are, and none twice. With --sites also that pools have the
memory, the accelerators and the partitions asked for, sites the software, and that
licences, storage and uplink are enough at any time. It shares no code with the
scheduler. Without --pes and --sites the lines must tell the size of each pool
(pool_pes), as those that berth writes do.

Prints "valid" and exits 0, or prints every violation and exits 1. A line that cannot be
read is a violation, and the rest is checked without it. A file without a line, or of
which no line can be read, exits 2; with --strict the first such line does. FILE may be
compressed; - is stdin.`,
		Example: `  berth sim --workload examples/first-light.swf --schedule out.jsonl && berth check out.jsonl
  berth check jobs.jsonl --pes 128`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef(cmd, "want one FILE.jsonl (or - for stdin), got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case pes != 0 && sitesFile != "":
				return usagef(cmd, "--pes: given beside --sites, which tells the sizes; want one of the two")
			case sitesFile != "":
				files := claims{cmd: cmd}
				files.reads("FILE.jsonl", args...)
				files.reads("--sites", sitesFile)
				if err := files.apart(); err != nil {
					return err
				}
				file, err := readInput(a, sitesFile, sites.Open, sites.Read)
				if err == nil {
					err = file.Described()
				}
				if err != nil {
					return err
				}
				options := check.Against(file.Sites, file.Uplink)
				options.Strict = strict
				return a.check(args[0], format, options)
			}
			return a.check(args[0], format, check.Options{PEs: pes, Strict: strict})
		},
	}
	cmd.Flags().Var(&whole[berth.Count]{&pes, 1, berth.MaxPEs}, "pes", "size of the machine (default: what the lines tell)")
	cmd.Flags().StringVar(&sitesFile, "sites", "", "the sites and pools, a YAML `FILE`")
	cmd.Flags().BoolVar(&strict, "strict", false, "end at the first line that cannot be read")
	_ = cmd.MarkFlagFilename("sites", "yaml", "yml") // fails for unknown flags only
	formats := []string{"table", "json"}
	cmd.Flags().VarP(&choice{&format, "form", formats}, "output", "o", "form of the result: table, json")
	complete(cmd, "output", formats)
	return cmd
}

// check runs the command.
func (a *app) check(path, format string, options check.Options) error {
	in, name, err := a.input(path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read from: nothing can be lost
	report, err := check.File(in, name, options)
	switch {
	case err != nil:
		return err
	case report.Lines == 0:
		return berth.Errorf(berth.Invalid, "", "%s: holds no line, so there is nothing to check; want a schedule", name)
	}
	out := bufio.NewWriter(a.stdout)
	if format == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(report) // Flush tells
	} else {
		if report.Valid() {
			_, _ = fmt.Fprintln(out, "valid")
		}
		for _, violation := range report.Violations {
			_, _ = fmt.Fprintln(out, violation)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	if !report.Valid() {
		return errViolations
	}
	return nil
}

// input opens a file to read, compressed or not; - is stdin. name is how
// messages call it.
func (a *app) input(path string) (in io.ReadCloser, name string, err error) {
	if path == stdStream {
		in, name = io.NopCloser(a.stdin), "stdin"
	} else {
		file, err := os.Open(path)
		if err != nil {
			return nil, "", cannotRead(path, err)
		}
		if info, err := file.Stat(); err == nil && info.IsDir() {
			_ = file.Close()
			return nil, "", berth.Errorf(berth.Invalid, "", "cannot read %s: it is a folder", path)
		}
		in, name = file, path
	}
	return &unzipped{name: name, file: in, buffer: bufio.NewReader(in)}, name, nil
}

// unzipped reads a file, and what is in it if it is compressed by gzip.
type unzipped struct {
	name   string
	file   io.Closer
	buffer *bufio.Reader
	zip    io.Reader // nil until the first Read, then buffer or what unpacks it
}

// Read reads on. Damaged compression is bad input.
func (u *unzipped) Read(p []byte) (int, error) {
	if u.zip == nil {
		text := u.buffer
		if magic, _ := u.buffer.Peek(2); string(magic) == "\x1f\x8b" { // an error shows again below
			zip, err := gzip.NewReader(u.buffer)
			if err != nil {
				return 0, u.damaged(err)
			}
			text = bufio.NewReader(zip)
		}
		workload.SkipMark(text)
		u.zip = text
	}
	n, err := u.zip.Read(p)
	if err != nil && u.zip != io.Reader(u.buffer) && !errors.Is(err, io.EOF) {
		err = u.damaged(err)
	}
	return n, err
}

func (u *unzipped) damaged(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return berth.Errorf(berth.Invalid, "", "%s: the gzip data ends early; the file is truncated", u.name)
	}
	return berth.Errorf(berth.Invalid, "", "%s: the gzip data is damaged (%v)", u.name, err)
}

// Close closes the file.
func (u *unzipped) Close() error { return u.file.Close() }
