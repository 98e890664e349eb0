package slurmtest_test

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// threads returns those of this process.
func threads(t *testing.T) map[string]bool {
	t.Helper()
	all, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, one := range all {
		found[one.Name()] = true
	}
	return found
}

// A cluster that ends ends no thread of the process: whatever another test had started from it, and that is
// to end with the process, would be killed.
func TestAClusterEndsAlone(t *testing.T) {
	var before map[string]bool
	t.Run("cluster", func(t *testing.T) {
		slurmtest.Start(t, slurmtest.Options{Nodes: 1})
		before = threads(t)
	})
	maps.DeleteFunc(before, func(thread string, _ bool) bool { return threads(t)[thread] })
	if len(before) > 0 {
		t.Errorf("threads %v have ended", slices.Sorted(maps.Keys(before)))
	}
}
