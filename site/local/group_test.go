//go:build linux

package local

import (
	"os"
	"path/filepath"
	"testing"
)

// A group limits memory where it is asked to and the controller is there; else it only
// holds the processes together.
func TestGroupLimitsMemory(t *testing.T) {
	for _, c := range []struct {
		name        string
		controllers []string
		memoryMB    int64
		want        string // of memory.max; empty if it is not written
	}{
		{"limited", []string{"cpu", "memory"}, 3, "3000000"},
		{"no controller", []string{"cpu"}, 3, ""},
		{"no limit", []string{"memory"}, 0, ""},
	} {
		g := cgroups{base: t.TempDir(), controllers: c.controllers}
		// In a folder of the kernel's the file is there from the beginning.
		file := filepath.Join(g.base, "job", "memory.max")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		folder := g.make("job", c.memoryMB)
		got, err := os.ReadFile(file)
		if err != nil || string(got) != c.want || folder != filepath.Dir(file) {
			t.Errorf("%s: memory.max is %q (%v) in %s, want %q", c.name, got, err, folder, c.want)
		}
	}
	none := cgroups{base: t.TempDir(), why: "not mounted"}
	if folder := none.make("job", 3); folder != "" {
		t.Errorf("a group is made at %s", folder)
	}
}
