package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/internal/withparent"
)

// pythonClient is the folder of the client for Python.
var pythonClient = filepath.Join("..", "..", "clients", "python")

// needsPython returns the machine's Python. Without one of 3.9 or later the test is skipped, or
// fails if $BERTH_REQUIRE, a list separated by commas, has "python".
func needsPython(t *testing.T) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err == nil {
		var out []byte
		if out, err = exec.CommandContext(t.Context(), python, "-c", "import sys; assert sys.version_info >= (3, 9), sys.version").CombinedOutput(); err == nil {
			return python
		}
		t.Logf("%s", out)
	}
	if slices.Contains(strings.Split(os.Getenv("BERTH_REQUIRE"), ","), "python") {
		t.Fatalf("python: needs Python 3.9 or later: %v", err)
	}
	t.Skipf("python: SKIPPED, the client in clients/python is not tested: needs Python 3.9 or later: %v", err)
	return ""
}

// The tests of the client for Python pass against a real service with a local site.
func TestPythonClient(t *testing.T) {
	if testing.Short() {
		t.Skip("runs for some seconds")
	}
	if runtime.GOOS != "linux" {
		t.Skip("a local site needs Linux")
	}
	python := needsPython(t)
	t.Parallel()
	dir := t.TempDir()
	url := localServer(t, dir)
	operator := filepath.Join(dir, "out", "data", "operator.token")
	secret, err := readToken(operator)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(url, secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Tasks of a local site run as who serves it, so only that user can hand them in.
	user, err := c.AddToken(t.Context(), client.NewToken{User: userName(), Role: "user"})
	if err != nil {
		t.Fatal(err)
	}
	folder, err := filepath.Abs(pythonClient)
	if err != nil {
		t.Fatal(err)
	}
	// -B leaves no compiled files in the checkout; a warning is a failure.
	cmd := exec.CommandContext(t.Context(), python, "-B", "-W", "error", "-m", "unittest", "-v", "test_client")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PYTHONPATH="+folder+string(os.PathListSeparator)+filepath.Join(folder, "tests"), "XDG_CONFIG_HOME="+filepath.Join(dir, "settings"),
		serverVar+"="+url, tokenVar+"="+user.Secret, "BERTH_USER="+userName(), "BERTH_OPERATOR_FILE="+operator, "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = withparent.Attr()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
