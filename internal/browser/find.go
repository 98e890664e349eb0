package browser

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/debiantest"
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
		err := debiantest.Install(func() bool { return look() != "" }, "chromium", "fonts-dejavu-core")
		if err == nil {
			return look()
		}
		why = err.Error()
	}
	debiantest.Absent(t, "browser", "browser: no "+strings.Join(names, ", ")+": "+why)
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
