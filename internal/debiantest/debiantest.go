// Package debiantest installs the Debian packages that tests need, and skips or fails the tests that lack something. It is imported by
// tests only.
package debiantest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Absent skips a test with a message, or fails it if $BERTH_REQUIRE, a list separated by commas, has a name, such as "slurm".
func Absent(t testing.TB, name, message string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("BERTH_REQUIRE"), ","), name) {
		t.Fatal(message)
	}
	t.Skip(message)
}

// within bounds how long packages may take, those included that another test installs first.
const within = 15 * time.Minute

// tried says of each list of packages how its installation ended in this process: each of some fifty tests would try for seconds again.
var tried = struct {
	sync.Mutex
	ended map[string]error
}{ended: map[string]error{}}

// Install installs Debian's packages if $CI is true, this is root, and there is apt-get. No daemon of theirs is started. Only one test
// on a machine installs at a time, since apt-get update does not wait for another one; the packages that another test has installed
// meanwhile are not installed again, as there says. It tries once in a process.
func Install(there func() bool, packages ...string) error {
	tried.Lock()
	defer tried.Unlock()
	list := strings.Join(packages, " ")
	err, again := tried.ended[list]
	if !again {
		err = install(there, packages)
		tried.ended[list] = err
	}
	return err
}

func install(there func() bool, packages []string) error {
	if os.Getenv("CI") != "true" {
		return errors.New("CI is not true, so it is not installed")
	}
	if os.Getuid() != 0 {
		return errors.New("only root can install it")
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return errors.New("there is no apt-get")
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "berth-apt.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // which unlocks it
	wait := exec.CommandContext(ctx, "flock", "3")
	wait.ExtraFiles = []*os.File{lock} // 3; the lock is of the open file, and so this process's
	if out, err := wait.CombinedOutput(); err != nil {
		return fmt.Errorf("flock: %w: %s", err, out)
	}
	if there() {
		return nil
	}
	options := []string{"install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=240", "-o", "DPkg::Options::=--force-confold"}
	for _, args := range [][]string{{"update"}, append(options, packages...)} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1") // in which nothing is started
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("apt-get %s: %w: %.400s", args[0], err, lastLines(string(out), 3))
		}
	}
	if !there() {
		return errors.New("installing it did not help")
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
