package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The rows are commands that the program takes, and a run has a time.
func TestMeasure(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program that is measured here is a shell script")
	}
	script := filepath.Join(t.TempDir(), "berth")
	if err := os.WriteFile(script, []byte("#!/bin/sh\ntest \"$1\" = sim || { echo \"$1?\"; exit 2; }\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	b := bench{berth: script, runs: 2}
	got, err := b.measure(t.Context(), []string{"sim"})
	if err != nil || got.wall <= 0 || runtime.GOOS == "linux" && got.peak <= 0 {
		t.Errorf("%v, %+v", err, got)
	}
	if _, err := b.measure(t.Context(), []string{"simulate"}); err == nil || !strings.Contains(err.Error(), "simulate?") {
		t.Errorf("a command that fails: %v", err)
	}
}
