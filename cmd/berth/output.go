package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-hpc/berth"
)

// output is a file that appears whole or not at all: it is written under
// another name in the same folder and renamed by keep. The file keeps its
// permissions; other hard links to it keep the old content. Something that is no
// regular file, such as a pipe or a terminal, is written as it is.
type output struct {
	io.Writer
	path string
	// file is what Writer writes to; nil for stdout, which is not ours to close.
	file   *os.File
	direct bool
	kept   bool
}

// place finds out where an output goes: path with links resolved, so that the
// file a link points to is replaced or made, and not the link; the permissions
// of a file that is there, else 0; and whether it must be written directly. flag
// is the one that named it, for messages.
func place(flag, path string) (to string, mode fs.FileMode, direct bool, err error) {
	switch path {
	case "":
		return "", 0, false, berth.Errorf(berth.Invalid, flag, "empty; want the name of a file to write")
	case stdStream:
		return "", 0, false, berth.Errorf(berth.Invalid, flag, "- is a stream, and this needs a file")
	}
	if path, err = target(path); err != nil {
		return "", 0, false, cannotWrite(flag, path, err)
	}
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return "", 0, false, berth.Errorf(berth.Invalid, flag, "cannot write %s: there is no folder %s", path, folder)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, 0, false, nil
	case err != nil:
		return "", 0, false, cannotWrite(flag, path, err)
	case info.IsDir():
		return "", 0, false, berth.Errorf(berth.Invalid, flag, "cannot write %s: it is a folder; want a file's name", path)
	case !info.Mode().IsRegular():
		return path, 0, true, nil
	case info.Mode().Perm()&0o222 == 0: // the superuser could, but was told not to
		return "", 0, false, berth.Errorf(berth.Invalid, flag, "cannot write %s: it is read-only (mode %#o)", path, info.Mode().Perm())
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0) // writes nothing
	if err != nil {
		return "", 0, false, cannotWrite(flag, path, err)
	}
	_ = file.Close() // nothing was written
	return path, info.Mode().Perm(), false, nil
}

// create opens an output, which is stdout for -.
func (a *app) create(flag, path string) (*output, error) {
	if path == stdStream {
		return &output{Writer: a.stdout, path: "stdout", direct: true}, nil
	}
	return create(flag, path)
}

// create opens an output that is no stream.
func create(flag, path string) (*output, error) {
	path, mode, direct, err := place(flag, path)
	if err != nil {
		return nil, err
	}
	if direct {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, cannotWrite(flag, path, err)
		}
		return &output{Writer: file, file: file, path: path, direct: true}, nil
	}
	for n := 0; ; n++ {
		temporary := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d-%d.tmp", filepath.Base(path), os.Getpid(), n))
		file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, cmp.Or(mode, 0o666))
		switch {
		case err == nil:
			out := &output{Writer: file, file: file, path: path}
			if mode != 0 {
				err = os.Chmod(temporary, mode) // without the umask
			}
			if err != nil {
				out.drop()
				return nil, cannotWrite(flag, path, err)
			}
			return out, nil
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
	if path == stdStream {
		return nil
	}
	if _, _, direct, err := place(flag, path); err != nil || direct {
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
	if err := o.close(); err != nil {
		o.drop()
		return fmt.Errorf("writing %s: %w", o.path, err)
	}
	if !o.direct {
		if err := os.Rename(o.file.Name(), o.path); err != nil {
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
	_ = o.close()
	if !o.direct {
		_ = os.Remove(o.file.Name())
	}
}

func (o *output) close() error {
	if o.file == nil {
		return nil
	}
	return o.file.Close()
}
