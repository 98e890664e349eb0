package berth_test

import (
	"testing"

	"github.com/berth-hpc/berth"
)

// The name says how much of the time until the deadline is left, and is written in one way.
func TestBestNamesItsSlack(t *testing.T) {
	for name, slack := range map[string]int{berth.BestAlgorithm: 0, "best-0": 0, "best-7": 7, "best-90": berth.MaxSlack} {
		if got, ok := berth.Best(name); !ok || got != slack {
			t.Errorf("%q: %d %t, want %d", name, got, ok, slack)
		}
	}
	for _, name := range []string{"", "bes", "best-", "best-91", "best--1", "best-07", "best-7 ", "best7", "best-1e1", "bd-cpar"} {
		if slack, ok := berth.Best(name); ok {
			t.Errorf("%q is taken for best with a slack of %d", name, slack)
		}
	}
	if slack, ok := berth.Best(berth.SlackAlgorithm); !ok || slack == 0 {
		t.Errorf("%s leaves %d", berth.SlackAlgorithm, slack)
	}
}
