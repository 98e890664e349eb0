package wholefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-hpc/berth"
)

// Folder is a folder whose new files appear all or not at all: each is
// written under another name, and Keep renames them. A crash in the midst of
// Keep can leave some of them, but none in part.
type Folder struct {
	field string // for messages
	path  string
	made  string // the uppermost folder that was made for it; empty for none
	files []*Output
	kept  bool
}

// OpenFolder makes the folder if it is not there, and finds out whether files
// can be written to it.
func OpenFolder(field, path string) (*Folder, error) {
	switch path {
	case Stream:
		return nil, berth.Errorf(berth.Invalid, field, "- is a stream; want the name of a folder")
	case "":
		return nil, berth.Errorf(berth.Invalid, field, "empty; want the name of a folder")
	}
	f := &Folder{field: field, path: path}
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err == nil {
			if !info.IsDir() {
				return nil, berth.Errorf(berth.Invalid, field, "cannot write to %s: %s is no folder", path, at)
			}
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			return nil, CannotWrite(field, path, err)
		}
		f.made = at
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		f.Drop()
		return nil, CannotWrite(field, path, err)
	}
	if err := Writable(field, filepath.Join(path, "claims.csv")); err != nil {
		f.Drop()
		return nil, err
	}
	return f, nil
}

// Write writes a file that Keep will let appear.
func (f *Folder) Write(name string, data []byte) error {
	out, err := Create(f.field, filepath.Join(f.path, name))
	if err != nil {
		return err
	}
	f.files = append(f.files, out)
	if _, err := out.Write(data); err != nil {
		return fmt.Errorf("writing %s: %w", out.path, err)
	}
	return nil
}

// Keep lets the files appear.
func (f *Folder) Keep() error {
	f.kept = true
	for _, out := range f.files {
		if err := out.Keep(); err != nil {
			return err
		}
	}
	return nil
}

// Drop removes what was written and the folders that were made, unless they
// were kept.
func (f *Folder) Drop() {
	for _, out := range f.files {
		out.Drop()
	}
	if f.kept || f.made == "" {
		return
	}
	// From the innermost outwards; a folder that another program has put
	// something into stays.
	for at := filepath.Clean(f.path); ; at = filepath.Dir(at) {
		_ = os.Remove(at)
		if at == f.made || at == filepath.Dir(at) {
			return
		}
	}
}
