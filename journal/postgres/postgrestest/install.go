package postgrestest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/debiantest"
)

// Absent says what is not there.
type Absent struct{ why string }

// Error names the package that is missing.
func (e *Absent) Error() string { return "postgres: missing package postgresql: " + e.why }

// Start starts a server that ends with the test. Where PostgreSQL is absent it is
// installed if $CI is true, this is root, and there is apt-get; else the test is skipped,
// or fails if $BERTH_REQUIRE, a list separated by commas, has "postgres".
func Start(t testing.TB) *Server {
	t.Helper()
	s, err := New()
	if err != nil {
		Need(t, err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the server said:\n%s", lastLines(s.Log(), 30))
		}
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Need skips a test for what New has said, or fails it.
func Need(t testing.TB, err error) {
	t.Helper()
	if _, absent := err.(*Absent); !absent { //nolint:errorlint // New wraps it in nothing
		t.Fatal(err)
	}
	debiantest.Absent(t, "postgres", err.Error())
}

// find returns the folder of the programs, and installs them where that is asked for.
func find() (string, error) {
	if bin := installed(); bin != "" {
		return bin, nil
	}
	if err := noCluster(); err != nil {
		return "", &Absent{err.Error()}
	}
	if err := debiantest.Install(func() bool { return installed() != "" }, "postgresql"); err != nil {
		return "", &Absent{err.Error()}
	}
	return installed(), nil
}

// installed returns the folder of the newest programs, empty if there are none.
func installed() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path)
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // Debian keeps them off the PATH
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(slices.Max(found))
}

// noCluster has Debian make no cluster of its own with the package, where that may be installed.
func noCluster() error {
	if _, err := exec.LookPath("apt-get"); err != nil || os.Getenv("CI") != "true" || os.Getuid() != 0 {
		return nil //nolint:nilerr // then it is not installed either
	}
	common := "/etc/postgresql-common"
	if err := os.MkdirAll(common, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(common, "createcluster.conf"), []byte("create_main_cluster = false\n"), 0o600)
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
