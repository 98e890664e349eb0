package service_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/journal/sqlite"
)

// A service that was started from a backup does not know what was promised since then. It
// leaves that and the jobs in it alone, says so, and promises nothing; told to adopt the site it
// keeps what it knows, takes down the rest, and writes down which jobs end with it.
func TestARestoredBackupLosesNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLab(t, false)
	l.reserve("before", 1, 400, 600)
	ofBefore := l.sbatch("before")
	l.looked()
	backup := filepath.Join(t.TempDir(), "backup")
	if _, err := l.store.Backup(t.Context(), backup, func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	l.reserve("since", 1, 2, 600)
	running := l.sbatch("since")
	l.until("the job runs", func() bool { return strings.Contains(l.shown("job", running), "JobState=RUNNING") })
	since := string(l.get("since").Sites[0].Name)

	if err := errors.Join(l.host.Close(), l.store.Close()); err != nil {
		t.Fatal(err)
	}
	var err error
	if l.store, err = sqlite.Open(backup, sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	l.open()
	l.until("it says what it does not know", func() bool {
		views, err := l.host.Sites(t.Context(), l.by.By)
		return err == nil && strings.Contains(views[0].Trouble, "not served: 1 reservations") && strings.Contains(views[0].Trouble, since)
	})
	l.looked()
	for job, state := range map[string]string{ofBefore: "PENDING", running: "RUNNING"} {
		if at := l.shown("job", job); !strings.Contains(at, "JobState="+state) {
			t.Errorf("want job %s %s:\n%s", job, state, at)
		}
	}
	if err := l.host.Close(); err != nil {
		t.Fatal(err)
	}
	l.manager.Adopt = true
	l.open()
	l.waits("before", ofBefore)
	if log := l.log.String(); !strings.Contains(log, since) || !strings.Contains(log, `jobs ended"=[`+running+"]") {
		t.Errorf("the log does not say that job %s ended with %s:\n%s", running, since, log)
	}
}
