package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/withparent"
)

// hangFolder is where TestHangs puts what it started.
const hangFolder = "BERTH_TEST_HANG"

// TestHangs starts a service and a shell and never ends; it is run by the test below.
func TestHangs(t *testing.T) {
	dir := os.Getenv(hangFolder)
	if dir == "" {
		t.Skip("is run by TestTimedOutTestLeavesNoProcess")
	}
	shell := exec.Command("sh", "-c", "sleep 600 & wait")
	shell.SysProcAttr = withparent.Attr()
	for name, cmd := range map[string]*exec.Cmd{
		"service": exec.Command("berth", "serve", "--data", filepath.Join(dir, "data"), "--cores", "1", "--listen", freeAddress(t)), "shell": shell,
	} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	select {}
}

// runs reports whether a process is there and has not ended.
func runs(pid string) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

// A test that times out leaves nothing running that it started.
func TestTimedOutTestLeavesNoProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a test to time out")
	}
	dir := t.TempDir()
	test := exec.Command(os.Args[0], "-test.run=^TestHangs$", "-test.timeout=3s")
	test.Env, test.SysProcAttr = append(os.Environ(), hangFolder+"="+dir), withparent.Attr()
	out, err := test.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || !strings.Contains(string(out), "test timed out") {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"service", "shell"} {
		pid, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for deadline := time.Now().Add(longest); runs(string(pid)); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the %s, process %s, is still there", name, pid)
			}
		}
	}
}
