package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/plot"
	"github.com/berth-hpc/berth/internal/wholefile"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/workload"
)

// stdStream is the name that stands for stdin, or for stdout, instead of a file's.
const stdStream = wholefile.Stream

// readInput reads what a flag or an argument names: stdin for -, else a file.
func readInput[T any](a *app, path string, open func(path string) (T, error), read func(r io.Reader, name string) (T, error)) (T, error) {
	if path == stdStream {
		return read(a.stdin, "stdin")
	}
	return open(path)
}

// figuresTo returns where figures go: to stdout, or beside the messages where one
// of the paths given is stdout.
func (a *app) figuresTo(paths ...string) io.Writer {
	if slices.Contains(paths, stdStream) {
		return a.stderr
	}
	return a.stdout
}

// figureFormat returns the format of a figure by its file's name; on stdout it is
// the first.
func figureFormat(path string) (format string, ok bool) {
	if path == stdStream {
		return plot.Formats()[0], true
	}
	return plot.FormatOf(path)
}

// readWorkload reads a log or requests.
func (a *app) readWorkload(path string, o workload.Options) (*workload.Workload, error) {
	return readInput(a, path,
		func(path string) (*workload.Workload, error) { return workload.Open(path, o) },
		func(r io.Reader, name string) (*workload.Workload, error) { return workload.Read(r, name, o) })
}

// readBookings reads what others hold.
func (a *app) readBookings(path string, o workload.Options) (*workload.BookingFile, error) {
	return readInput(a, path,
		func(path string) (*workload.BookingFile, error) { return workload.OpenBookings(path, o) },
		func(r io.Reader, name string) (*workload.BookingFile, error) {
			return workload.ReadBookings(r, name, o)
		})
}

// claim is a file that a command line names.
type claim struct {
	by    string // the flag or argument, as people type it
	path  string
	wants string // what to name instead
}

// claims are the files that a command line names, by which it is told that an
// output would replace an input or another output. Empty paths are of flags
// that were not given.
type claims struct {
	cmd     *cobra.Command
	inputs  []claim
	outputs []claim
	folders []claim // inputs: those in which files are looked for
}

// reads notes files that are read.
func (c *claims) reads(by string, paths ...string) {
	for _, path := range paths {
		c.inputs = append(c.inputs, claim{by: by, path: path})
	}
}

// writes notes files that are written.
func (c *claims) writes(by string, paths ...string) {
	for _, path := range paths {
		c.outputs = append(c.outputs, claim{by: by, path: path, wants: "another file"})
	}
}

// shows notes that figures are written: to stdout, in a form that was asked for.
func (c *claims) shows() {
	if c.cmd.Flags().Changed("output") {
		c.writes("--output", stdStream)
	}
}

// looksIn notes folders whose files are read.
func (c *claims) looksIn(by string, folders ...string) {
	for _, folder := range folders {
		c.folders = append(c.folders, claim{by: by, path: folder})
	}
}

// fills notes a folder for a report: what it may hold of one already, and what
// other flags name there.
func (c *claims) fills(by, folder string) error {
	if folder == "" {
		return nil
	}
	named := append(slices.Clone(c.inputs), c.outputs...)
	for _, file := range named {
		if inReport(file.path) && sameFile(filepath.Dir(file.path), folder) {
			return usagef(c.cmd, "%s: %s is the file that %s names; want another folder", by, file.path, file.by)
		}
	}
	for _, other := range c.folders {
		if sameFile(folder, other.path) {
			return usagef(c.cmd, "%s: %s is a folder that %s names; want another folder", by, folder, other.by)
		}
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil //nolint:nilerr // openFolder tells what is wrong with it
	}
	for _, entry := range entries {
		if inReport(entry.Name()) {
			c.outputs = append(c.outputs, claim{by, filepath.Join(folder, entry.Name()), "another folder"})
		}
	}
	return nil
}

// inReport reports whether a file of a report may have this name.
func inReport(path string) bool {
	return slices.Contains([]string{".html", ".svg", ".csv"}, filepath.Ext(path)) || filepath.Base(path) == "cells.jsonl"
}

// sameFile reports whether both paths lead to one file or folder, or to one name
// at which there is none yet.
func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(infoA, infoB)
	}
	return errA != nil && errB != nil && absolute(a) == absolute(b)
}

// absolute returns the path from the root to the target of a path, if that
// can be told.
func absolute(path string) string {
	if to, err := wholefile.Target(path); err == nil {
		path = to
	}
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// apart refuses a command line on which an output is an input too or another
// output, whatever the names and links they go by, or on which a stream is to be
// two things. What is no regular file, such as a pipe, may be several outputs.
// It opens nothing. Cost: a look at each file.
func (c *claims) apart() error {
	type looks struct { // what one file has in common with itself
		size     int64
		modified time.Time
	}
	type seen struct {
		claim
		info fs.FileInfo
	}
	there := map[looks][]seen{}
	absent := map[string]claim{} // by the path to what is to be made
	var in, out *claim           // of the streams
	meet := func(file, other *claim) error {
		if file.by == other.by && file.path != other.path {
			return usagef(c.cmd, "%s: %s and %s are one file; want %s", file.by, other.path, file.path, file.wants)
		}
		return usagef(c.cmd, "%s: %s is the file that %s names; want %s", file.by, file.path, other.by, file.wants)
	}
	note := func(file *claim, writes bool) error {
		if file.path == "" {
			return nil
		}
		if file.path == stdStream {
			end, name := &in, "stdin"
			if writes {
				end, name = &out, "stdout"
			}
			switch {
			case *end != nil && (*end).by == file.by:
				return usagef(c.cmd, "%s: - is one stream, and there are several files; want a file's name", file.by)
			case *end != nil:
				return usagef(c.cmd, "%s: - is %s, which is that of %s already; want a file", file.by, name, (*end).by)
			}
			*end = file
			return nil
		}
		info, err := os.Stat(file.path)
		switch {
		case err != nil && writes:
			path := absolute(file.path)
			if other, is := absent[path]; is {
				return meet(file, &other)
			}
			absent[path] = *file
		case err == nil && info.Mode().IsRegular():
			key := looks{info.Size(), info.ModTime()}
			for _, other := range there[key] {
				if writes && os.SameFile(info, other.info) {
					return meet(file, &other.claim)
				}
			}
			there[key] = append(there[key], seen{*file, info})
		}
		return nil
	}
	for i := range c.inputs {
		if err := note(&c.inputs[i], false); err != nil {
			return err
		}
	}
	for i := range c.outputs {
		if err := note(&c.outputs[i], true); err != nil {
			return err
		}
	}
	return nil
}

// filesOnly refuses - where a file is read or written several times.
func (c *claims) filesOnly() error {
	for _, file := range slices.Concat(c.inputs, c.outputs) {
		if file.path == stdStream {
			return usagef(c.cmd, "%s: - is a stream, and this needs a file", file.by)
		}
	}
	return nil
}

// outFlag is the flag that names an output folder, for messages.
const outFlag = "out"

// create opens an output, which is stdout for -.
func (a *app) create(flag, path string) (*wholefile.Output, error) {
	if path == stdStream {
		return wholefile.To(a.stdout, "stdout"), nil
	}
	if err := spareData(flag, path); err != nil {
		return nil, err
	}
	return wholefile.Create(flag, path)
}

// spareData refuses an output that would replace a file of a service's data directory.
func spareData(flag, path string) error {
	to := absolute(path)
	if _, err := os.Lstat(to); err != nil {
		return nil //nolint:nilerr // it is new, or the one who creates it tells what is wrong
	}
	if is, err := sqlite.Exists(filepath.Dir(to)); err != nil || !is {
		return nil //nolint:nilerr // a folder that cannot be looked into is not written to either
	}
	return berth.Errorf(berth.Invalid, flag, "%s is in %s, the data directory of a service, and there already; want another file", path, filepath.Dir(to))
}

// cannotRead words why an input file cannot be read. A file that is missing is
// bad input like any other.
func cannotRead(path string, err error) error {
	var cause *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return berth.Errorf(berth.Invalid, "", "%s: no such file", path)
	case errors.As(err, &cause):
		err = cause.Err
	}
	return berth.Errorf(berth.Invalid, "", "cannot read %s: %v", path, err)
}
