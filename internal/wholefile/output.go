package wholefile

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

// Output is a file that appears whole or not at all: it is written under
// another name in the same folder and renamed by Keep. The file keeps its
// permissions; other hard links to it keep the old content. Something that is no
// regular file, such as a pipe or a terminal, is written as it is.
type Output struct {
	io.Writer
	path string
	// file is what Writer writes to; nil for stdout, which is not ours to close.
	file   *os.File
	direct bool
	kept   bool
}

// Stream is a name that stands for a stream instead of a file. It is no output here.
const Stream = "-"

// To is an output to a stream that is not ours to close.
func To(w io.Writer, name string) *Output { return &Output{Writer: w, path: name, direct: true} }

// place finds out where an output goes: path with links resolved, so that the
// file a link points to is replaced or made, and not the link; the permissions
// of a file that is there, else 0; and whether it must be written directly. field
// names it in messages.
func place(field, path string) (to string, mode fs.FileMode, direct bool, err error) {
	switch path {
	case "":
		return "", 0, false, berth.Errorf(berth.Invalid, field, "empty; want the name of a file to write")
	case Stream:
		return "", 0, false, berth.Errorf(berth.Invalid, field, "- is a stream, and this needs a file")
	}
	if path, err = Target(path); err != nil {
		return "", 0, false, CannotWrite(field, path, err)
	}
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return "", 0, false, berth.Errorf(berth.Invalid, field, "cannot write %s: there is no folder %s", path, folder)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, 0, false, nil
	case err != nil:
		return "", 0, false, CannotWrite(field, path, err)
	case info.IsDir():
		return "", 0, false, berth.Errorf(berth.Invalid, field, "cannot write %s: it is a folder; want a file's name", path)
	case !info.Mode().IsRegular():
		return path, 0, true, nil
	case info.Mode().Perm()&0o222 == 0: // the superuser could, but was told not to
		return "", 0, false, berth.Errorf(berth.Invalid, field, "cannot write %s: it is read-only (mode %#o)", path, info.Mode().Perm())
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0) // writes nothing
	if err != nil {
		return "", 0, false, CannotWrite(field, path, err)
	}
	_ = file.Close() // nothing was written
	return path, info.Mode().Perm(), false, nil
}

// Create opens an output. Errors are of code Invalid and of the field.
func Create(field, path string) (*Output, error) {
	path, mode, direct, err := place(field, path)
	if err != nil {
		return nil, err
	}
	if direct {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, CannotWrite(field, path, err)
		}
		return &Output{Writer: file, file: file, path: path, direct: true}, nil
	}
	for n := 0; ; n++ {
		temporary := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d-%d.tmp", filepath.Base(path), os.Getpid(), n))
		file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, cmp.Or(mode, 0o666))
		switch {
		case err == nil:
			out := &Output{Writer: file, file: file, path: path}
			if mode != 0 {
				err = os.Chmod(temporary, mode) // without the umask
			}
			if err != nil {
				out.Drop()
				return nil, CannotWrite(field, path, err)
			}
			return out, nil
		case !errors.Is(err, fs.ErrExist):
			return nil, CannotWrite(field, path, err)
		}
	}
}

// CannotWrite is an error of the field that names the file that was asked for rather than the temporary one.
func CannotWrite(field, path string, err error) error {
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		err = cause.Err
	}
	return berth.Errorf(berth.Invalid, field, "cannot write %s: %v", path, err)
}

// Writable reports whether an output could be written, and leaves nothing. A
// pipe is not opened, for its reader would take that for all there is.
func Writable(field, path string) error {
	if path == Stream {
		return nil
	}
	if _, _, direct, err := place(field, path); err != nil || direct {
		return err
	}
	out, err := Create(field, path)
	if err != nil {
		return err
	}
	out.Drop()
	return nil
}

// Keep closes the file and gives it its name. After an error nothing is left.
func (o *Output) Keep() error {
	if err := o.close(); err != nil {
		o.Drop()
		return fmt.Errorf("writing %s: %w", o.path, err)
	}
	if !o.direct {
		if err := os.Rename(o.file.Name(), o.path); err != nil {
			o.Drop()
			return fmt.Errorf("writing %s: %w", o.path, err)
		}
	}
	o.kept = true
	return nil
}

// Drop removes what was written, unless it was kept.
func (o *Output) Drop() {
	if o.kept {
		return
	}
	_ = o.close()
	if !o.direct {
		_ = os.Remove(o.file.Name())
	}
}

func (o *Output) close() error {
	if o.file == nil {
		return nil
	}
	return o.file.Close()
}
