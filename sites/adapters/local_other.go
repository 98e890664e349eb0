//go:build !linux

package adapters

import (
	"runtime"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/sites"
)

// openLocal refuses: package site/local rests on Linux.
func openLocal(name, _ string, _ *sites.Adapter, _ int) (localSite, error) {
	return nil, berth.Errorf(berth.Invalid, "kind", "site %s: a site of kind local needs Linux, and this is %s; want kind slurm, or a site without an adapter", name, runtime.GOOS)
}

// Shepherd has no task to keep without a local site.
func Shepherd([]string) int { return 2 }
