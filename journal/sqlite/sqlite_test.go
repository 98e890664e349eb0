package sqlite_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/journaltest"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/journal/sqlite/lossy"
)

// open opens a journal whose compactions do not rest for a hundred times as long as they work, which is minutes under the race
// detector.
func open(dir string) (journal.Store, error) {
	s, err := sqlite.Open(dir, sqlite.ShortRests(""))
	if err != nil {
		return nil, err // not a nil *Store in an interface
	}
	return s, nil
}

// onDisk opens journals on a lossy disk, with options made for it.
type onDisk struct {
	*lossy.Disk
	options func(vfs string) sqlite.Options
	wrap    func(*sqlite.Store) journal.Store // nil for as it is
}

func (d onDisk) Open(dir string) (journal.Store, error) {
	s, err := sqlite.Open(dir, d.options(d.Name()))
	if err != nil {
		return nil, err
	}
	d.Loose(filepath.Join(dir, sqlite.MarkName))
	if d.wrap != nil {
		return d.wrap(s), nil
	}
	return s, nil
}

func plain(vfs string) sqlite.Options { return sqlite.ShortRests(vfs) }

func disk(options func(vfs string) sqlite.Options) func() (journaltest.Disk, error) {
	return func() (journaltest.Disk, error) {
		d, err := lossy.New()
		return onDisk{d, options, nil}, err
	}
}

var adapter = journaltest.Adapter{
	Open: open,
	Reader: func(dir string) (journal.Store, error) {
		s, err := sqlite.Open(dir, sqlite.Options{ReadOnly: true})
		if err != nil {
			return nil, err
		}
		return s, nil
	},
	Repair: func(dir string) (*journal.Damage, error) { return sqlite.Repair(dir, sqlite.Options{}) },
	Files:  []string{"journal.db", "journal.db-wal"},
	Disk:   disk(plain),
}

var cases = flag.Int("journal.cases", 1, "how many times the random cases of damage and lost power")

func TestMain(m *testing.M) {
	if os.Getenv(killedRestore) != "" {
		fmt.Fprintln(os.Stderr, restoreAndDie())
		os.Exit(1)
	}
	os.Exit(journaltest.Main(m, open))
}

func TestConformance(t *testing.T) {
	long := adapter
	long.Cases = *cases
	journaltest.Run(t, long)
}

func TestKilledProcessLosesNothingAcknowledged(t *testing.T) {
	rounds := 10 * *cases
	if testing.Short() {
		rounds = 3
	}
	journaltest.Crash(t, adapter, rounds)
}

// Each way to answer before what is answered is durable must be found by the test of lost
// power: SQLite with synchronous=NORMAL syncs at checkpoints alone, with OFF never; a disk
// may keep nothing of what it is to sync, or keep files under no name.
func TestAnswerBeforeSyncIsFoundOut(t *testing.T) {
	for name, planted := range map[string]struct {
		synchronous string
		lie         lossy.Lie
	}{
		"synchronous=NORMAL":             {synchronous: "NORMAL"},
		"synchronous=OFF":                {synchronous: "OFF"},
		"a sync that does nothing":       {lie: lossy.SyncNot},
		"a directory that is not synced": {lie: lossy.SyncNoName},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := lossy.New()
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			d.Lie(planted.lie)
			err = journaltest.CheckLoss(adapter, onDisk{d, func(vfs string) sqlite.Options {
				return sqlite.Unsynced(vfs, planted.synchronous)
			}, nil}, t.TempDir(), 1)
			if err == nil {
				t.Error("nothing was lost")
			}
			t.Log(err)
		})
	}
}

// lossOf is what the test of lost power finds in a journal that is wrapped.
func lossOf(t *testing.T, wrap func(*sqlite.Store) journal.Store) error {
	t.Helper()
	d, err := lossy.New()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	return journaltest.CheckLoss(adapter, onDisk{d, plain, wrap}, t.TempDir(), 1)
}

// A mark that is written before what it marks claims, after a loss of power, what was
// never there.
func TestAMarkBeforeItsRecordsIsFoundOut(t *testing.T) {
	err := lossOf(t, func(s *sqlite.Store) journal.Store { return sqlite.MarkFirst{Store: s} })
	if err == nil || !strings.Contains(err.Error(), "before what was acknowledged") {
		t.Errorf("%v", err)
	}
}

// A snapshot whose row is written before its parts is, after a loss of power, one that
// cannot be read.
func TestASnapshotBeforeItsPartsIsFoundOut(t *testing.T) {
	err := lossOf(t, func(s *sqlite.Store) journal.Store { return sqlite.RowFirst{Store: s} })
	if err == nil || !strings.Contains(err.Error(), "the snapshot is not what was saved") {
		t.Errorf("%v", err)
	}
}

// cutUntold opens a journal, appends to it, and cuts the end of its log off, as it is once
// it was answered. It returns what is wrong with what is told of that.
func cutUntold(t *testing.T, prepare func(*sqlite.Store)) error {
	t.Helper()
	dir, cut := t.TempDir(), t.TempDir()
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	prepare(s)
	if err := s.Append(t.Context(), journaltest.Records(journal.Position{}, 20, rand.New(rand.NewPCG(4, 4)))...); err != nil {
		t.Fatal(err)
	}
	for name, part := range map[string]int{"journal.db": 1, "journal.db-wal": 2, sqlite.MarkName: 1} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(cut, name), content[:len(content)/part], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	again, err := sqlite.Open(cut, sqlite.Options{})
	if err == nil {
		return errors.Join(errors.New("nothing was told"), again.Close())
	}
	var damage *journal.Damage
	if !errors.As(err, &damage) || damage.Acknowledged != 20 {
		return err
	}
	return nil
}

// An answer before the mark is written is one whose loss would not be noticed.
func TestAnAnswerBeforeTheMarkIsFoundOut(t *testing.T) {
	if err := cutUntold(t, func(*sqlite.Store) {}); err != nil {
		t.Errorf("with the mark: %v", err)
	}
	elsewhere, err := os.Create(filepath.Join(t.TempDir(), "mark"))
	if err != nil {
		t.Fatal(err)
	}
	if err := cutUntold(t, func(s *sqlite.Store) { sqlite.WithoutMark(s, elsewhere) }); err == nil {
		t.Error("without the mark nothing was found")
	}
}

// deaf is a journal that does not hear its disk fail.
type deaf struct{ journal.Store }

func (d deaf) Append(ctx context.Context, records ...journal.Record) error {
	_ = d.Store.Append(ctx, records...)
	return nil
}

// An answer in spite of a failure of the disk is found out.
func TestAFailureThatIsNotToldIsFoundOut(t *testing.T) {
	d, err := lossy.New()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	wrapped := onDisk{d, plain, func(s *sqlite.Store) journal.Store { return deaf{s} }}
	if _, err := journaltest.CheckFault(adapter, wrapped, t.TempDir(), 120, lossy.NoRoom); err == nil || !strings.Contains(err.Error(), "are left") {
		t.Errorf("%v", err)
	}
}
