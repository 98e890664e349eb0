package sqlite_test

import (
	"flag"
	"os"
	"testing"

	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/journaltest"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/journal/sqlite/lossy"
)

func open(dir string) (journal.Store, error) {
	s, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		return nil, err // not a nil *Store in an interface
	}
	return s, nil
}

// onDisk opens journals on a lossy disk, with options made for it.
type onDisk struct {
	*lossy.Disk
	options func(vfs string) sqlite.Options
}

func (d onDisk) Open(dir string) (journal.Store, error) {
	s, err := sqlite.Open(dir, d.options(d.Name()))
	if err != nil {
		return nil, err
	}
	return s, nil
}

func disk(options func(vfs string) sqlite.Options) func() (journaltest.Disk, error) {
	return func() (journaltest.Disk, error) {
		d, err := lossy.New()
		return onDisk{d, options}, err
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
	Disk:   disk(func(vfs string) sqlite.Options { return sqlite.Options{VFS: vfs} }),
}

var cases = flag.Int("journal.cases", 1, "how many times the random cases of damage and lost power")

func TestMain(m *testing.M) { os.Exit(journaltest.Main(m, open)) }

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

// An answer before the sync must not pass the test of lost power: SQLite with
// synchronous=NORMAL syncs at checkpoints alone, with OFF never.
func TestAnswerBeforeSyncIsFoundOut(t *testing.T) {
	for _, synchronous := range []string{"NORMAL", "OFF"} {
		d, err := disk(func(vfs string) sqlite.Options { return sqlite.Unsynced(vfs, synchronous) })()
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		err = journaltest.CheckLoss(adapter, d, t.TempDir(), 1)
		if err == nil {
			t.Errorf("synchronous=%s lost nothing", synchronous)
		}
		t.Logf("synchronous=%s: %v", synchronous, err)
	}
}
