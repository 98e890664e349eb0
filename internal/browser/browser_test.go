package browser

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// A Chromium that falls over is followed by another one, for the next test.
func TestABrowserThatFallsOver(t *testing.T) {
	var was *chromium
	t.Run("it falls over", func(t *testing.T) {
		b := StartAlways(t)
		b.Open(Size{800, 600}).Visit("data:text/html,<p>one")
		was = b.chromium
		if _, err := b.call("", "Browser.crash", nil); err == nil {
			t.Fatal("it answers")
		}
	})
	p := StartAlways(t).Open(Size{800, 600})
	p.Visit("data:text/html,<p>two")
	if p.b.chromium == was || p.Eval("document.body.innerText") != "two" {
		t.Errorf("the page says %q", p.Eval("document.body.innerText"))
	}
}

// The shell is taken before a whole browser, and where it cannot be installed the whole one will do.
func TestFind(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no pipe to a browser on Windows")
	}
	folder := t.TempDir()
	t.Setenv("PATH", folder)
	t.Setenv("CI", "false")
	for _, name := range []string{"chromium", shell} {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if found := find(t); found != path {
			t.Errorf("the browser is %q, want %q", found, path)
		}
	}
}
