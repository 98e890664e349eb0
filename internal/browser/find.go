package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// names are those under which systems have the browser.
var names = []string{"chromium", "chromium-browser", "google-chrome", "chrome"}

// find returns the path of a browser. Where there is none it is installed if $CI is true, this is
// root, and there is apt-get; else the test is skipped with the name of what is missing, or fails
// if $BERTH_REQUIRE, a list separated by commas, has "browser".
func find(t testing.TB) string {
	t.Helper()
	why := "there is no pipe to a browser on Windows"
	if runtime.GOOS != "windows" {
		if path := look(); path != "" {
			return path
		}
		if why = install(); why == "" {
			if path := look(); path != "" {
				return path
			}
			why = "installing it did not help"
		}
	}
	message := "browser: no " + strings.Join(names, ", ") + ": " + why
	if slices.Contains(strings.Split(os.Getenv("BERTH_REQUIRE"), ","), "browser") {
		t.Fatal(message)
	}
	t.Skip(message)
	return ""
}

func look() string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// install installs Debian's package and says why it could not. It tries once in a process: each of
// some fifty tests would try for seconds again.
var install = sync.OnceValue(func() string {
	if os.Getenv("CI") != "true" {
		return "CI is not true, so it is not installed"
	}
	if os.Getuid() != 0 {
		return "only root can install it"
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return "there is no apt-get"
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	one := filepath.Join(os.TempDir(), "berth-apt.lock") // of all tests that install something: apt-get update does not wait for another one
	for _, args := range [][]string{
		{"update"}, {"install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=240", "chromium", "fonts-dejavu-core"},
	} {
		cmd := exec.CommandContext(ctx, "flock", append([]string{"--no-fork", one, "apt-get"}, args...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Sprintf("apt-get %s: %v: %.400s", args[0], err, out)
		}
	}
	return ""
})
