// Package wholefile replaces files whole: a reader sees the old content or the new. What
// Write writes is so after a crash or a loss of power too; what an Output does, which is
// written bit by bit, is cheap. It locks nothing.
package wholefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Write replaces a file, or makes it, with mode 0600. Once it returns nil, the new
// content is on disk under that name; with an error the file is as it was. A crash can
// leave a file named .NAME.* beside it. Two calls for one path at a time leave the
// content of one of them. Cost: two fsyncs.
func Write(path string, data []byte) error {
	folder := filepath.Dir(path)
	file, err := os.CreateTemp(folder, "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err == nil {
		err = syncFolder(folder)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // gone already if it was renamed
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// syncFolder makes the names in a folder survive a loss of power.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
