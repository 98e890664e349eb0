package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/wholefile"
	"github.com/berth-hpc/berth/journal/postgres"
)

// keptFiles are the files that a service needs beside its journal, kept with the journal in
// a database: the tokens, the feeds, and how sites described themselves. Another server
// that takes over finds them there. The data directory has a copy of each, which berth
// journal backup takes, and from which a service that moves to a database brings them.
type keptFiles struct {
	folder string
	log    *slog.Logger
	in     atomic.Pointer[postgres.Store]
	leads  atomic.Bool // the store may be written
}

// Load returns a file. What the journal does not have yet is brought from the directory.
func (k *keptFiles) Load(name string) ([]byte, error) {
	data, err := k.in.Load().Kept(context.Background(), name)
	if coded, is := errors.AsType[*berth.Error](err); is && coded.Code == berth.NotFound {
		if !k.leads.Load() {
			return nil, fs.ErrNotExist
		}
		if data, err = os.ReadFile(k.path(name)); err != nil {
			return nil, err //nolint:wrapcheck // the reader says what it is for
		}
		return data, k.in.Load().Keep(context.Background(), name, data)
	}
	if err == nil {
		k.copy(name, data)
	}
	return data, err
}

// Save keeps a file; the error is of code Unavailable where another server leads.
func (k *keptFiles) Save(name string, data []byte) error {
	if !k.leads.Load() {
		return berth.Errorf(berth.Unavailable, "service", "it stands by, and keeps nothing")
	}
	if err := k.in.Load().Keep(context.Background(), name, data); err != nil {
		return err
	}
	k.copy(name, data)
	return nil
}

// copy writes a copy to the data directory. One that cannot be written is missing in a
// backup, and nothing else.
func (k *keptFiles) copy(name string, data []byte) {
	path := k.path(name)
	if is, err := os.ReadFile(path); err == nil && bytes.Equal(is, data) {
		return
	}
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = wholefile.Write(path, data)
	}
	if err != nil {
		k.log.Warn("what the journal keeps cannot be copied to the data directory", "file", path, "error", err)
	}
}

func (k *keptFiles) path(name string) string {
	return filepath.Join(k.folder, filepath.FromSlash(name))
}
