// Package nodetest has Node and npm for tests: those that are installed, or those that npm fetches. It runs nothing with them.
package nodetest

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/debiantest"
)

// What Vite, which builds the pages, needs at least.
const major, minor = 20, 19

// packages are Node for Linux and npm, with the hashes of what the registry may answer.
//
//go:embed packages/package.json packages/package-lock.json
var packages embed.FS

// Need has node and npm on the PATH of the test process. Where there is no Node, or one that is too old, as in Debian 12, npm fetches one
// into the user's cache; where there is no npm, Debian's is installed if $CI is true, this is root, and there is apt-get. Else the test
// is skipped with what is missing, or fails if $BERTH_REQUIRE, a list separated by commas, has "node".
func Need(t testing.TB) {
	t.Helper()
	if err := find(); err != nil {
		Absent(t, err.Error())
	}
}

// Absent skips the test, or fails it if $BERTH_REQUIRE has "node", since something of npm could not be had.
func Absent(t testing.TB, what string) {
	t.Helper()
	debiantest.Absent(t, "node", "node: "+what)
}

// find tries once in a process, which has the tests of one package.
var find = sync.OnceValue(func() error {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	why := unusable(ctx)
	if why == nil {
		return nil
	}
	if runtime.GOOS != "linux" {
		return why
	}
	if err := fetch(ctx); err != nil {
		return fmt.Errorf("%w; and none could be fetched: %w", why, err)
	}
	return unusable(ctx)
})

// unusable says what is wrong with the Node that is found first.
func unusable(ctx context.Context) error {
	if !hasNpm() {
		return errors.New("no npm")
	}
	out, err := exec.CommandContext(ctx, "node", "--version").Output()
	if err != nil {
		return errors.New("no node")
	}
	version := strings.TrimSpace(string(out))
	if !recent(version) {
		return fmt.Errorf("node is %s; the build of the pages needs %d.%d or later", version, major, minor)
	}
	return nil
}

func hasNpm() bool {
	_, err := exec.LookPath("npm")
	return err == nil
}

// recent reports whether a version, as node writes it, is one that the build of the pages takes.
func recent(version string) bool {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	is, err := strconv.Atoi(parts[0])
	below := 0
	if len(parts) > 1 {
		below, _ = strconv.Atoi(parts[1]) // 0 is too old as well
	}
	return err == nil && (is > major || is == major && below >= minor)
}

// fetch fetches Node and npm into the user's cache, unless they are there, and puts them first on the PATH.
func fetch(ctx context.Context) error {
	if !hasNpm() {
		if err := debiantest.Install(hasNpm, "npm"); err != nil { // of no use but to fetch a newer one
			return fmt.Errorf("no npm: %w", err)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	folder := filepath.Join(cache, "berth", "node-for-tests")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	wanted, err := os.MkdirTemp("", "berth-node-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(wanted) }() // what is left of it harms nothing
	files, err := fs.Sub(packages, "packages")
	if err == nil {
		err = os.CopyFS(wanted, files)
	}
	if err != nil {
		return err
	}
	// Tests of several packages come here at once: the first fetches, and the others find it.
	const once = `cmp -s "$1"/package-lock.json node_modules/.fetched && exit
		rm -rf node_modules && cp "$1"/*.json . && npm ci --ignore-scripts --no-audit --no-fund && cp package-lock.json node_modules/.fetched`
	cmd := exec.CommandContext(ctx, "flock", "--no-fork", filepath.Join(folder, "lock"), "sh", "-c", once, "sh", wanted)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w: %.500s", err, out)
	}
	programs, err := filepath.Glob(filepath.Join(folder, "node_modules", "node-linux-*", "bin")) // npm 9, of Debian 12, makes no link to it
	if err != nil {
		return err
	}
	path := append(programs, filepath.Join(folder, "node_modules", ".bin"), os.Getenv("PATH"))
	return os.Setenv("PATH", strings.Join(path, string(os.PathListSeparator)))
}
