package nodetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestWhichNodesAreRecent(t *testing.T) {
	for version, want := range map[string]bool{"v20.19.0": true, "v20.18.9": false, "v18.20.4": false, "v24.22.3": true, "v20": false, "v21": true, "": false, "x.19": false} {
		if recent(version) != want {
			t.Errorf("%q: %t, want %t", version, !want, want)
		}
	}
}

// Where the Node that is installed is too old, as in Debian 12, another one is fetched by its npm, and found first with an npm of its own.
func TestANodeThatIsTooOldIsReplaced(t *testing.T) {
	if testing.Short() {
		t.Skip("short: npm fetches a Node")
	}
	if runtime.GOOS != "linux" {
		t.Skip("Node is fetched for Linux alone")
	}
	Need(t) // there is an npm
	old := t.TempDir()
	if err := os.WriteFile(filepath.Join(old, "node"), []byte("#!/bin/sh\n[ \"$1\" = --version ] && echo v18.20.4 && exit\nexec "+where(t, "node")+" \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", old+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if err := unusable(t.Context()); err == nil || !strings.Contains(err.Error(), "v18.20.4") {
		t.Fatalf("%v, want that v18.20.4 is too old", err)
	}
	for range 2 { // the second one finds what the first has fetched
		if err := fetch(t.Context()); err != nil {
			Absent(t, err.Error())
		}
		if err := unusable(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	cache := os.Getenv("XDG_CACHE_HOME")
	if node, npm := where(t, "node"), where(t, "npm"); !strings.HasPrefix(node, cache) || !strings.HasPrefix(npm, cache) {
		t.Errorf("node is %s and npm %s; want those in %s", node, npm, cache)
	}
	for _, program := range []string{"node", "npm"} {
		if out, err := exec.CommandContext(t.Context(), program, "--version").CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", program, err, out)
		}
	}
}

func where(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
