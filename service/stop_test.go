package service_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

// A service that is killed makes no snapshot; the next one that stops makes up for
// it, also if nothing happened in between.
func TestAStopAfterACrashStoresASnapshot(t *testing.T) {
	host := func(dir string) (*service.Host, *sqlite.Store) {
		t.Helper()
		store, err := sqlite.Open(dir, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := &clock{}
		h, err := service.Open(t.Context(), service.Options{Config: onePool(4), Journal: store, Version: "test", Clock: c.now})
		if err != nil {
			t.Fatal(err)
		}
		return h, store
	}
	killed := t.TempDir()
	h, store := host(killed)
	defer func() { _ = errors.Join(h.Close(), store.Close()) }()
	submit(t, h, ann, berth.Rigid("r", 0, 0, 100, 1, 50))
	dir := t.TempDir()
	for _, name := range []string{"journal.db", "journal.db-wal", "mark"} {
		content, err := os.ReadFile(filepath.Join(killed, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	again, kept := host(dir)
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	last, err := kept.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if snapshot, err := kept.Snapshot(t.Context(), last.Number); err != nil || snapshot.Position != last || last.Number == 0 {
		t.Errorf("the newest snapshot is of record %d, %v; want %d", snapshot.Number, err, last.Number)
	}
}
