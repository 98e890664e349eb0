package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-hpc/berth"
)

// outputFolder is a folder whose new files appear all or not at all: each is
// written under another name, and keep renames them. A crash in the midst of
// keep can leave some of them, but none in part.
type outputFolder struct {
	path  string
	made  string // the uppermost folder that was made for it; empty for none
	files []*output
	kept  bool
}

// outFlag is the flag that names an output folder, for messages.
const outFlag = "out"

// openFolder makes the folder if it is not there, and finds out whether files
// can be written to it.
func openFolder(path string) (*outputFolder, error) {
	switch path {
	case stdStream:
		return nil, berth.Errorf(berth.Invalid, outFlag, "- is a stream; want the name of a folder")
	case "":
		return nil, berth.Errorf(berth.Invalid, outFlag, "empty; want the name of a folder")
	}
	f := &outputFolder{path: path}
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err == nil {
			if !info.IsDir() {
				return nil, berth.Errorf(berth.Invalid, outFlag, "cannot write to %s: %s is no folder", path, at)
			}
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			return nil, cannotWrite(outFlag, path, err)
		}
		f.made = at
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		f.drop()
		return nil, cannotWrite(outFlag, path, err)
	}
	if err := writable(outFlag, filepath.Join(path, "claims.csv")); err != nil {
		f.drop()
		return nil, err
	}
	return f, nil
}

// write writes a file that keep will let appear.
func (f *outputFolder) write(name string, data []byte) error {
	out, err := create(outFlag, filepath.Join(f.path, name))
	if err != nil {
		return err
	}
	f.files = append(f.files, out)
	if _, err := out.Write(data); err != nil {
		return fmt.Errorf("writing %s: %w", out.path, err)
	}
	return nil
}

// keep lets the files appear.
func (f *outputFolder) keep() error {
	f.kept = true
	for _, out := range f.files {
		if err := out.keep(); err != nil {
			return err
		}
	}
	return nil
}

// drop removes what was written and the folders that were made, unless they
// were kept.
func (f *outputFolder) drop() {
	for _, out := range f.files {
		out.drop()
	}
	if f.kept || f.made == "" {
		return
	}
	// From the innermost outwards; a folder that somebody else has put
	// something into stays.
	for at := filepath.Clean(f.path); ; at = filepath.Dir(at) {
		_ = os.Remove(at)
		if at == f.made || at == filepath.Dir(at) {
			return
		}
	}
}
