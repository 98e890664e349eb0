package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/internal/debiantest"
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
	debiantest.Absent(t, "python", fmt.Sprintf("python: the client in clients/python is not tested: needs Python 3.9 or later: %v", err))
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
		serverVar+"="+url, tokenVar+"="+user.Secret, "BERTH_USER="+userName(), "BERTH_OPERATOR_FILE="+operator, "BERTH_SOCKET="+filepath.Join(dir, "out", "data", socketName), "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = withparent.Attr()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// pip installs the client without a network, whole and typed, and leaves nothing in the checkout.
func TestPythonClientIsInstalled(t *testing.T) {
	python := needsPython(t)
	if out, err := exec.CommandContext(t.Context(), python, "-m", "pip", "--version").CombinedOutput(); err != nil {
		debiantest.Absent(t, "python", fmt.Sprintf("python: pip install ./clients/python is not tested: needs pip: %v\n%s", err, out))
	}
	t.Parallel()
	folder, err := filepath.Abs(pythonClient)
	if err != nil {
		t.Fatal(err)
	}
	before := filesBelow(t, folder)
	dir := t.TempDir()
	target := filepath.Join(dir, "packages")
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), python, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PYTHONPATH="+target, "PYTHONDONTWRITEBYTECODE=1")
		cmd.SysProcAttr = withparent.Attr()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("python3 %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	run("-m", "pip", "install", "--no-index", "--no-cache-dir", "--disable-pip-version-check", "--no-compile", "--target", target, folder)

	source := filepath.Join(folder, "berth")
	want, got := filesBelow(t, source), filesBelow(t, filepath.Join(target, "berth"))
	if _, typed := want["py.typed"]; !typed || !maps.Equal(want, got) {
		t.Errorf("%s has %q, and installed is %q; want the same files, py.typed among them", source, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
	}
	const look = "import berth, importlib.metadata as m; print(berth.__file__, m.version('berth-client'), berth.Client.__name__)"
	if got, want := run("-W", "error", "-c", look), filepath.Join(target, "berth", "__init__.py")+" 0 Client\n"; got != want {
		t.Errorf("a program elsewhere says %q, want %q", got, want)
	}
	if after := filesBelow(t, folder); !maps.Equal(before, after) {
		t.Errorf("the checkout had %q, and after pip has %q", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	}
}

// filesBelow returns the contents of all files below a folder by their paths in it, except what
// Python has compiled.
func filesBelow(t *testing.T, folder string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "__pycache__":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		data, err := os.ReadFile(filepath.Join(folder, path))
		files[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
