package browser

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/debiantest"
)

// shell is Chromium without what is around a page, windows and an address bar with processes of their own, which
// take two fifths of the processor time of a test. Where apt-get has it, as in Debian, it is a package beside the whole one.
const shell = "chromium-headless-shell"

// fonts is the package without which pages would be in whatever font there is.
const fonts = "fonts-dejavu-core"

// names are those under which systems have the browser, the best one first.
var names = []string{shell, "chromium", "chromium-browser", "google-chrome", "chrome"}

// find returns the path of a browser. Where there is none, or only a whole one, the shell is installed if $CI is true, this is
// root, and there is apt-get. Without any the test is skipped with the name of what is missing, or fails
// if $BERTH_REQUIRE, a list separated by commas, has "browser".
func find(t testing.TB) string {
	t.Helper()
	why := "there is no pipe to a browser on Windows"
	if runtime.GOOS != "windows" {
		path := look()
		if filepath.Base(path) == shell {
			return path
		}
		err := debiantest.Install(func() bool { return filepath.Base(look()) == shell }, shell, fonts)
		if err != nil && path == "" { // another system, or another release of Debian
			err = debiantest.Install(func() bool { return look() != "" }, "chromium", fonts)
		}
		if path = look(); path != "" {
			return path
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
