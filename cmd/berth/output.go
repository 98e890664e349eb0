package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-hpc/berth"
)

// output is a file that appears whole or not at all: it is written under
// another name in the same folder and renamed by keep. Something that is no
// regular file, such as a pipe or a terminal, is written as it is.
type output struct {
	*os.File
	path   string
	direct bool
	kept   bool
}

// place finds out where an output goes: path with links resolved, so that the
// file a link points to is replaced and not the link; and whether it must be
// written directly. flag is the one that named it, for messages.
func place(flag, path string) (target string, direct bool, err error) {
	if path == "" {
		return "", false, berth.Errorf(berth.Invalid, flag, "empty; want the name of a file to write")
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return "", false, berth.Errorf(berth.Invalid, flag, "cannot write %s: there is no folder %s", path, folder)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, false, nil
	case err != nil:
		return "", false, cannotWrite(flag, path, err)
	case info.IsDir():
		return "", false, berth.Errorf(berth.Invalid, flag, "cannot write %s: it is a folder; want a file's name", path)
	}
	return path, !info.Mode().IsRegular(), nil
}

// create opens an output.
func create(flag, path string) (*output, error) {
	path, direct, err := place(flag, path)
	if err != nil {
		return nil, err
	}
	if direct {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, cannotWrite(flag, path, err)
		}
		return &output{File: file, path: path, direct: true}, nil
	}
	for n := 0; ; n++ {
		temporary := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d-%d.tmp", filepath.Base(path), os.Getpid(), n))
		file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		switch {
		case err == nil:
			return &output{File: file, path: path}, nil
		case !errors.Is(err, fs.ErrExist):
			return nil, cannotWrite(flag, path, err)
		}
	}
}

// cannotWrite names the file that was asked for rather than the temporary one.
func cannotWrite(flag, path string, err error) error {
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		err = cause.Err
	}
	return berth.Errorf(berth.Invalid, flag, "cannot write %s: %v", path, err)
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

// writable reports whether an output could be written, and leaves nothing. A
// pipe is not opened, for its reader would take that for all there is.
func writable(flag, path string) error {
	if _, direct, err := place(flag, path); err != nil || direct {
		return err
	}
	out, err := create(flag, path)
	if err != nil {
		return err
	}
	out.drop()
	return nil
}

// keep closes the file and gives it its name. After an error nothing is left.
func (o *output) keep() error {
	if err := o.Close(); err != nil {
		o.drop()
		return fmt.Errorf("writing %s: %w", o.path, err)
	}
	if !o.direct {
		if err := os.Rename(o.Name(), o.path); err != nil {
			o.drop()
			return fmt.Errorf("writing %s: %w", o.path, err)
		}
	}
	o.kept = true
	return nil
}

// drop removes what was written, unless it was kept.
func (o *output) drop() {
	if o.kept {
		return
	}
	_ = o.Close()
	if !o.direct {
		_ = os.Remove(o.Name())
	}
}
