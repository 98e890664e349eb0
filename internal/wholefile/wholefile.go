// Package wholefile replaces files whole: a reader sees the old content or the new. What
// Write writes is so after a crash or a loss of power too; what an Output does, which is
// written bit by bit, is cheap. It locks nothing.
package wholefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Write replaces a file, or makes it, with mode 0600. Once it returns nil, the new
// content is on disk under that name; with an error the file is as it was. A crash can
// leave a file named .NAME.* beside it. Two calls for one path at a time leave the
// content of one of them. Cost: two fsyncs.
func Write(path string, data []byte) error { return write(system{}, path, data) }

// files is the file system that Write needs.
type files interface {
	// createTemp makes a file of mode 0600 with a name that no other has.
	createTemp(folder, pattern string) (file, error)
	rename(from, to string) error
	// syncFolder makes the names in a folder survive a loss of power.
	syncFolder(path string) error
	remove(path string) error
}

// file is one that is being written.
type file interface {
	io.WriteCloser
	Name() string
	Sync() error
}

func write(on files, path string, data []byte) error {
	folder := filepath.Dir(path)
	file, err := on.createTemp(folder, "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = on.rename(file.Name(), path)
	}
	if err == nil {
		err = on.syncFolder(folder)
	}
	if err != nil {
		_ = on.remove(file.Name()) // gone already if it was renamed
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// system is the machine's file system.
type system struct{}

func (system) createTemp(folder, pattern string) (file, error) { return os.CreateTemp(folder, pattern) }

func (system) rename(from, to string) error { return os.Rename(from, to) }

func (system) remove(path string) error { return os.Remove(path) }

func (system) syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
