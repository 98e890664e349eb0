package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/wholefile"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/sites"
)

// harbour opens the sites that somebody manages.
type harbour struct {
	data  string
	log   *slog.Logger
	again time.Duration // how often a site is asked that could not be reached at the start
	umask int           // of the tasks of a local site

	closers []func() error
	asking  sync.WaitGroup
	stop    context.CancelFunc
}

// close lets go of the sites. What runs there runs on.
func (h *harbour) close() {
	if h.stop != nil {
		h.stop()
	}
	h.asking.Wait()
	for _, c := range h.closers {
		_ = c() // what runs there runs on
	}
}

const (
	// margin is how much earlier than needed promises are made real at a site, so
	// that no job started before can reach into them.
	margin berth.Duration = 120
	// askAgain is how often a site is asked that could not be reached at the start.
	askAgain = time.Minute
)

// every is how often a site is looked at.
var every = map[string]time.Duration{sites.Local: time.Second, sites.Slurm: 5 * time.Second}

// open opens the adapters of a setup and fills in their sites as these describe
// themselves, or as they are remembered if they do not answer.
func (h *harbour) open(ctx context.Context, s *setup) (map[string]service.Manager, error) {
	asking, stop := context.WithCancel(ctx)
	h.stop = stop
	managers := map[string]service.Manager{}
	for i := range s.config.Sites {
		to := &s.config.Sites[i]
		a, managed := s.adapters[to.Name]
		if !managed {
			continue
		}
		adapter, err := h.adapter(to.Name, &a)
		if err != nil {
			return nil, err
		}
		description, answered, err := h.describe(ctx, to.Name, a.Kind, adapter)
		if err != nil {
			return nil, err
		}
		unit, binding := site.UnitCore, berth.Late
		if a.Kind == sites.Slurm {
			unit, binding = unitOf(&a), berth.Early
		}
		imported, layout, err := site.Import(to.Name, description, unit, binding)
		if err != nil {
			return nil, err
		}
		to.Managed, to.Pools, to.Partitions = true, imported.Pools, imported.Partitions
		interval := cmp.Or(time.Duration(a.Every)*time.Second, every[a.Kind])
		managers[to.Name] = service.Manager{
			Kind: a.Kind, Adapter: adapter, Layout: layout, Every: interval, Horizon: horizonOf(description, &a), Shadow: a.Watch,
		}
		if !answered {
			name, kind := to.Name, a.Kind
			h.asking.Go(func() { h.askUntilAnswered(asking, name, kind, adapter, description) })
		}
	}
	return managers, nil
}

// unitOf returns what a PE of a cluster is.
func unitOf(a *sites.Adapter) site.Unit { return site.Unit(cmp.Or(a.Unit, string(site.UnitNode))) }

// horizonOf returns how long before its start a promise is made real.
func horizonOf(d *site.Description, a *sites.Adapter) berth.Duration {
	limited := *d
	limited.Partitions = append([]site.Partition(nil), d.Partitions...)
	for i := range limited.Partitions {
		p := &limited.Partitions[i]
		p.MaxTime = cmp.Or(p.MaxTime, a.NoLimit)
	}
	return limited.Horizon(nil, cmp.Or(a.Margin, margin))
}

// adapter opens an adapter.
func (h *harbour) adapter(name string, a *sites.Adapter) (site.Observer, error) {
	if a.Kind == sites.Slurm {
		return slurm.New(slurmOptions(name, a)), nil
	}
	s, err := openLocal(name, filepath.Join(h.data, "local"), a, h.umask)
	if err != nil {
		return nil, err
	}
	h.closers = append(h.closers, s.Close)
	return s, nil
}

// localSite is this machine as a site.
type localSite interface {
	site.Observer
	site.Doctor
	Close() error
}

// slurmConf is the variable that tells Slurm's commands which cluster they are
// for.
const slurmConf = "SLURM_CONF"

func slurmOptions(name string, a *sites.Adapter) slurm.Options {
	return slurm.Options{Site: name, Conf: cmp.Or(a.Conf, os.Getenv(slurmConf)), Bin: a.Bin, Zone: a.Zone, Timeout: time.Duration(a.Timeout) * time.Second, Watch: a.Watch}
}

// sitesFolder is the folder of the data directory with how sites described themselves.
const sitesFolder = "sites"

// describe returns how a site describes itself, its nodes in the order in which
// they are remembered, and whether it answered: if it did not, it is as it is
// remembered. What it says is remembered from then on.
func (h *harbour) describe(ctx context.Context, name, kind string, adapter site.Observer) (*site.Description, bool, error) {
	if kind == sites.Local { // a node that is always there
		d, err := adapter.Describe(ctx)
		if err != nil {
			return nil, false, fmt.Errorf("site %s: %w", name, err)
		}
		return d, true, nil
	}
	path := filepath.Join(h.data, sitesFolder, name+".json")
	known, err := recall(path)
	if err != nil {
		return nil, false, err
	}
	d, err := adapter.Describe(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, false, &interrupted{"nothing was started"}
	case err != nil && known == nil:
		return nil, false, berth.Errorf(berth.Unavailable, "site", "%s cannot be reached, and nothing is known of it from before: %v. "+
			"See what berth sites doctor says of it on this machine, and start again once it answers", name, err)
	case err != nil:
		h.log.Error("site cannot be reached; the service starts with what it knows of it, and goes on asking", "site", name, "error", err)
		return known, false, nil
	}
	if known != nil {
		var changes []string
		d, changes = d.After(known)
		for _, change := range changes {
			h.log.Warn("site has changed since the service last saw it", "site", name, "change", change)
		}
	}
	return d, true, remember(path, d)
}

// askUntilAnswered asks a site that could not be reached at the start until it
// answers, and says if it is not as it is remembered.
func (h *harbour) askUntilAnswered(ctx context.Context, name, kind string, adapter site.Observer, used *site.Description) {
	tick := time.NewTicker(h.again)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		d, err := adapter.Describe(ctx)
		if err != nil {
			continue // whoever looks at it says so
		}
		d, changes := d.After(used)
		if len(changes) == 0 && reflect.DeepEqual(d.Partitions, used.Partitions) {
			h.log.Info("site answers, and is as it was", "site", name, "adapter", kind)
			return
		}
		h.log.Warn("site answers, and is no longer as it was: restart the service to take it in", "site", name, "adapter", kind, "changes", changes)
		return
	}
}

// recall reads what is remembered of a site, nil if nothing is.
func recall(path string) (*site.Description, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // nothing is no failure
	}
	if err != nil {
		return nil, cannotRead(path, err)
	}
	var d site.Description
	if err := json.Unmarshal(data, &d); err != nil || len(d.Nodes) == 0 {
		return nil, berth.Errorf(berth.Invalid, "data", "%s is damaged (%v): the order of nodes in it tells which node a promise is on. "+
			"Put a copy back, or remove it if nothing is promised at the site", path, err)
	}
	return &d, nil
}

// remember writes down how a site describes itself, wholly or not at all.
func remember(path string, d *site.Description) error {
	data, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return cannotWrite("data", path, err)
	}
	if err := wholefile.Write(path, append(data, '\n')); err != nil {
		return cannotWrite("data", path, err)
	}
	return nil
}
