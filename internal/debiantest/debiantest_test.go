package debiantest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// aptGet has apt-get be a script for a test, and returns the file in which the script notes how it was called.
func aptGet(t *testing.T, script string) (log string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root installs packages")
	}
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	log = filepath.Join(dir, "log")
	if err := os.WriteFile(filepath.Join(dir, "apt-get"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("TMPDIR", dir)
	t.Setenv("APT_LOG", log)
	t.Setenv("CI", "true")
	tried.Lock()
	defer tried.Unlock()
	clear(tried.ended)
	return log
}

func text(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(data)
}

const noted = `echo "$DEBIAN_FRONTEND $RUNLEVEL $*" >>"$APT_LOG"; flock --nonblock "$TMPDIR"/berth-apt.lock true && echo "not locked" >>"$APT_LOG"; `

// Packages are installed under the lock, and the lock is free afterwards; the same ones are tried once, whatever came of it.
func TestInstall(t *testing.T) {
	log := aptGet(t, noted+"exit 0")
	isThere := false
	there := func() bool { was := isThere; isThere = true; return was }
	for range 2 {
		if err := Install(there, "one", "two"); err != nil {
			t.Fatal(err)
		}
	}
	const want = "noninteractive 1 update\n" +
		"noninteractive 1 install -y --no-install-recommends -o DPkg::Lock::Timeout=240 -o DPkg::Options::=--force-confold one two\n"
	if got := text(t, log); got != want {
		t.Errorf("apt-get was called as\n%swant\n%s", got, want)
	}
	if out, err := exec.CommandContext(t.Context(), "flock", "--nonblock", filepath.Join(os.Getenv("TMPDIR"), "berth-apt.lock"), "true").CombinedOutput(); err != nil {
		t.Errorf("the lock is not free: %v: %s", err, out)
	}
}

// What another test has installed while this one waited for the lock is not installed again.
func TestInstalledMeanwhile(t *testing.T) {
	log := aptGet(t, noted)
	if err := Install(func() bool { return true }, "meanwhile"); err != nil {
		t.Fatal(err)
	}
	if got := text(t, log); got != "" {
		t.Errorf("apt-get was called as\n%s", got)
	}
}

func TestInstallFails(t *testing.T) {
	never := func() bool { return false }
	log := aptGet(t, noted+`[ "$1" = update ] && exit; echo "E: no such package" >&2; exit 100`)
	for range 2 {
		if err := Install(never, "absent"); err == nil || err.Error() != "apt-get install: exit status 100: E: no such package" {
			t.Error(err)
		}
	}
	if n := strings.Count(text(t, log), "\n"); n != 2 {
		t.Errorf("apt-get was called %d times, want twice:\n%s", n, text(t, log))
	}
	aptGet(t, "exit 0")
	if err := Install(never, "useless"); err == nil || err.Error() != "installing it did not help" {
		t.Error(err)
	}
	t.Setenv("CI", "")
	if err := Install(never, "elsewhere"); err == nil || err.Error() != "CI is not true, so it is not installed" {
		t.Error(err)
	}
	t.Setenv("CI", "true")
	t.Setenv("PATH", t.TempDir())
	if err := Install(never, "no apt"); err == nil || err.Error() != "there is no apt-get" {
		t.Error(err)
	}
}

// outcome is what became of a test.
type outcome struct {
	testing.TB

	said string
}

func (o *outcome) Helper()           {}
func (o *outcome) Fatal(args ...any) { o.said = "fail: " + args[0].(string) }
func (o *outcome) Skip(args ...any)  { o.said += "skip: " + args[0].(string) }

func TestAbsent(t *testing.T) {
	for require, want := range map[string]string{"": "skip: no x", "data,slurm": "fail: no xskip: no x", "slurm2": "skip: no x"} {
		t.Setenv("BERTH_REQUIRE", require)
		o := &outcome{TB: t}
		if Absent(o, "slurm", "no x"); o.said != want {
			t.Errorf("with %q it said %q, want %q", require, o.said, want)
		}
	}
}
