package postgrestest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
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
	_, absent := err.(*Absent) //nolint:errorlint // New wraps it in nothing
	if !absent || slices.Contains(strings.Split(os.Getenv("BERTH_REQUIRE"), ","), "postgres") {
		t.Fatal(err)
	}
	t.Skip(err)
}

// find returns the folder of the programs, and installs them where that is asked for.
func find() (string, error) {
	bin := installed()
	if bin != "" {
		return bin, nil
	}
	why := "CI is not true"
	if os.Getenv("CI") == "true" {
		if why = aptInstall(); why == "" {
			if bin = installed(); bin != "" {
				return bin, nil
			}
			why = "installing it did not help"
		}
	}
	return "", &Absent{why}
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

// aptInstall installs the server and says why it could not.
func aptInstall() string {
	if os.Getuid() != 0 {
		return "only root can install it"
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return "there is no apt-get"
	}
	// Debian would make and start a cluster of its own with the package.
	common := "/etc/postgresql-common"
	if err := os.MkdirAll(common, 0o755); err != nil {
		return err.Error()
	}
	if err := os.WriteFile(filepath.Join(common, "createcluster.conf"), []byte("create_main_cluster = false\n"), 0o600); err != nil {
		return err.Error()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute) // a browser, which others install, may go first
	defer cancel()
	one := filepath.Join(os.TempDir(), "berth-apt.lock") // of all tests that install something: apt-get update does not wait for another one
	for _, args := range [][]string{
		{"update"},
		{"install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=240", "-o", "DPkg::Options::=--force-confold", "postgresql"},
	} {
		cmd := exec.CommandContext(ctx, "flock", append([]string{"--no-fork", one, "apt-get"}, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Sprintf("apt-get %s: %v: %s", args[0], err, lastLines(string(out), 3))
		}
	}
	return ""
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
