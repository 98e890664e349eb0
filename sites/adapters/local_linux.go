package adapters

import (
	"time"

	"github.com/berth-hpc/berth/site/local"
	"github.com/berth-hpc/berth/sites"
)

// openLocal opens this machine as a site that remembers in a folder. Its tasks have a umask; 0 is 022.
func openLocal(name, dir string, a *sites.Adapter, umask int) (localSite, error) {
	return local.Open(local.Options{
		Site: name, Dir: dir, Node: a.Node, Zone: a.Zone, Cores: a.Cores, Users: a.Users, Umask: umask, Grace: time.Duration(a.Grace) * time.Second, ClockLater: true,
	})
}

// Shepherd keeps a task of a local site, and returns an exit code.
func Shepherd(args []string) int { return local.Shepherd(args) }
