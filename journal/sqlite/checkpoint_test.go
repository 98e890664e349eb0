package sqlite_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/journaltest"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/journal/sqlite/lossy"
)

// A writer that never pauses always has written something while the log is copied beside it.
// The log begins anew all the same.
func TestTheLogIsBoundedWhereWritersNeverPause(t *testing.T) {
	alone(t)
	dir := t.TempDir()
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var last journal.Position
	var largest int64
	for range 200 {
		records := typical(last, 500) // 200 KB of the log
		last = records[len(records)-1].Position()
		if err := s.Append(t.Context(), records...); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, "journal.db-wal"))
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, info.Size())
	}
	t.Logf("the log had %d bytes at most", largest)
	if bound := sqlite.LogBound(250 << 10); largest > bound {
		t.Errorf("the log had %d bytes, want %d at most", largest, bound)
	}
	info, err := os.Stat(filepath.Join(dir, "journal.db"))
	if err != nil || info.Size() < 20<<20 {
		t.Errorf("of 35 MB that were written the database has %v, %v", info.Size(), err)
	}
}

// The power may fail, and each operation on the disk too, while the log is copied beside the
// writer.
func TestCheckpointsBesideTheWriterLoseNothing(t *testing.T) {
	often := func(vfs string) sqlite.Options { return sqlite.Checkpoints(vfs, false, 16<<10) }
	on := func(t *testing.T) onDisk {
		d, err := lossy.New()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		return onDisk{d, often, nil}
	}
	for seed := range uint64(effort.Cases(4)) {
		if err := journaltest.CheckLoss(adapter, on(t), t.TempDir(), seed); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	step := 23
	if effort.Full() {
		step = 5
	}
	for _, how := range on(t).Faults() {
		rng := rand.New(rand.NewPCG(7, 7))
		for at := 0; ; at += 1 + rng.IntN(step) {
			d := on(t)
			failed, err := journaltest.CheckFault(adapter, d, t.TempDir(), at, how)
			if err != nil {
				t.Errorf("%s at operation %d, when %v was told: %v", how, at, failed, err)
			}
			if !d.Failed() {
				break
			}
		}
	}
}

// Close ends a checkpoint that waits for the writer's turn, and nothing is lost.
func TestClosingWhileTheLogIsCopied(t *testing.T) {
	dir := t.TempDir()
	var last journal.Position
	for range 20 {
		s, err := sqlite.Open(dir, sqlite.Checkpoints("", false, 1))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			records := typical(last, 20)
			last = records[len(records)-1].Position()
			if err := s.Append(t.Context(), records...); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if end, err := verify(t, dir, 1); err != nil || end != last {
		t.Errorf("it ends with record %d, %v; want %d", end.Number, err, last.Number)
	}
}
