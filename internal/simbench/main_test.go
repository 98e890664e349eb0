package main

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
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
	b := bench{berth: script, runs: 3}
	sim := []string{"sim"}
	m, err := b.measure(t.Context(), sim, sim)
	if err != nil || m.least.wall <= 0 || runtime.GOOS == "linux" && m.least.peak <= 0 || m.ratios() != "–" {
		t.Errorf("%v, %+v", err, m)
	}
	b.beside = script
	if m, err = b.measure(t.Context(), sim, sim); err != nil || len(m.wall) != 3 || slices.Min(m.wall) <= 0 {
		t.Errorf("beside another one: %v, %+v", err, m)
	}
	if got := (&measured{wall: []float64{3, 1, 2}, cpu: []float64{.5, .25, .75}, peak: []float64{1, 1, 1}}).ratios(); got != "2.00; 0.50; 1.00" {
		t.Errorf("the medians are told as %q", got)
	}
	if _, err := b.measure(t.Context(), sim, []string{"simulate"}); err == nil {
		t.Error("the other one fails, and nothing says so")
	}
	if _, err := b.measure(t.Context(), []string{"simulate"}, sim); err == nil || !strings.Contains(err.Error(), "simulate?") {
		t.Errorf("a command that fails: %v", err)
	}
}
