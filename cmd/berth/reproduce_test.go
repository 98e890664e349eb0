package main

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/berth-hpc/berth/reproduce"
)

// Ctrl-C in the midst of the experiments ends them with 130; nothing is
// printed, nothing is written, and a folder that was made is gone again.
func TestInterruptedReproductionLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	for name, out := range map[string]string{"made": filepath.Join(folder, "a", "b"), "there": folder} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			a := &app{stdout: &stdout, stderr: &stderr}
			cmd := a.reproduceCommand()
			if err := cmd.ParseFlags([]string{"--out", out}); err != nil {
				t.Fatal(err)
			}
			cmd.SetContext(t.Context())
			paper, _ := reproduce.PaperNamed("waiting-time")
			var once sync.Once
			told := 0
			flags := &reproduceFlags{scale: "full", out: out, seed: 1, format: "table", tell: func(int, int) {
				// The command listens by now, so the signal reaches it alone.
				once.Do(func() {
					told++
					if err := signalSelf(syscall.SIGINT); err != nil {
						t.Error(err)
					}
				})
			}}
			err := a.reproduce(cmd, paper, flags)
			if code := a.report(err); code != exitInterrupted || stdout.Len() > 0 || told != 1 {
				t.Errorf("exit code %d, stdout %q", code, stdout.String())
			}
			if got := stderr.String(); got != "berth: interrupted; nothing was written\n" {
				t.Errorf("stderr %q", got)
			}
			left, err := os.ReadDir(folder)
			if err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// With a file for measurements, what was finished when Ctrl-C came, or the
// batch system's SIGTERM, stays there, and the same command goes on from it, however often.
func TestInterruptedReproductionGoesOn(t *testing.T) {
	cells := filepath.Join(t.TempDir(), "cells.jsonl")
	paper, _ := reproduce.PaperNamed("dynamic-priority")
	run := func(tell func(done, total int)) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		a := &app{stdout: &out, stderr: &errs}
		cmd := a.reproduceCommand()
		cmd.SetContext(t.Context())
		flags := &reproduceFlags{scale: "quick", seed: 1, repetitions: 1, format: "csv", cells: cells, tell: tell}
		return a.report(a.reproduce(cmd, paper, flags)), out.String(), errs.String()
	}
	all, finished := 0, 0
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		var once sync.Once
		asked := 0
		code, stdout, stderr := run(func(_, total int) {
			once.Do(func() {
				asked = total
				if err := signalSelf(signal); err != nil {
					t.Error(err)
				}
			})
		})
		want := "berth: interrupted; finished measurements are in " + cells + "; the same command goes on from there\n"
		if code != exitInterrupted || stdout != "" || stderr != want {
			t.Fatalf("%s: exit code %d, stdout %q, stderr %q", signal, code, stdout, stderr)
		}
		if all == 0 {
			all = asked
		}
		if asked != all-finished {
			t.Errorf("%s: %d measurements were to be taken, want %d", signal, asked, all-finished)
		}
		kept, err := os.ReadFile(cells)
		if err != nil {
			t.Fatal(err)
		}
		before := finished
		if finished = bytes.Count(kept, []byte("\n")) - 1; finished <= before || finished >= all {
			t.Fatalf("%s: %d of %d measurements are kept, before %d", signal, finished, all, before)
		}
	}
	var asked atomic.Int64
	if code, stdout, stderr := run(func(_, total int) { asked.Store(int64(total)) }); code != 0 || stdout == "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	if asked.Load() != int64(all-finished) {
		t.Errorf("%d measurements were taken, want %d", asked.Load(), all-finished)
	}
}
