// Package adapters opens what manages the sites of a configuration: it checks what is
// said of them, reaches them, remembers how they described themselves, and has them examined. It reads no
// configuration, which package sites does, and it keeps no promise, which package service
// does through the managers.
package adapters

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/wholefile"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/site/slurm/rest"
	"github.com/berth-hpc/berth/sites"
)

// Options say how adapters are opened.
type Options struct {
	// Data is the folder of the service.
	Data string
	// Place keeps how sites described themselves; nil is in files in Data.
	Place Place
	Log   *slog.Logger
	// Again is how often a site is asked that could not be reached at the start; 0 is
	// every minute.
	Again time.Duration
	Umask int  // of the tasks that the service starts; 0 is 022
	Adopt bool // as service.Manager has it, for all sites
}

// Place keeps files, each whole. Names have slashes.
type Place interface {
	// Load returns a file. The error is an fs.ErrNotExist if there is none.
	Load(name string) ([]byte, error)
	Save(name string, data []byte) error
}

// folder is the place of a service that has its files to itself.
type folder string

func (f folder) Load(name string) ([]byte, error) { return os.ReadFile(f.path(name)) }

func (f folder) Save(name string, data []byte) error {
	path := f.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return berth.Errorf(berth.Invalid, "data", "cannot write %s: %v", path, cause(err))
	}
	if err := wholefile.Write(path, data); err != nil {
		return berth.Errorf(berth.Invalid, "data", "cannot write %s: %v", path, cause(err))
	}
	return nil
}

func (f folder) path(name string) string { return filepath.Join(string(f), filepath.FromSlash(name)) }

// Set is adapters that are open.
type Set struct {
	Options
	// Managers are what service.Options wants, by the names of the sites.
	Managers map[string]service.Manager

	closers []func() error
}

// Close lets go of the sites. What runs there runs on.
func (h *Set) Close() {
	for _, c := range h.closers {
		_ = c() // what runs there runs on
	}
}

// giveUpAfter is as long as a directory of users may be away while it is put right.
const giveUpAfter berth.Duration = 600

const (
	// margin is how much earlier than needed promises are made real at a site, so
	// that no job started before can reach into them.
	margin berth.Duration = 120
	// askAgain is how often a site is asked that could not be reached at the start.
	askAgain = time.Minute
)

// every is how often a site is looked at.
var every = map[string]time.Duration{sites.Local: time.Second, sites.Slurm: 5 * time.Second}

// Open opens adapters and fills in their sites of the list, which it changes, as these
// describe themselves, or as they are remembered if they do not answer. The service asks clusters again while it runs. Sites without an adapter stay as they are. An error closes what was
// opened. It is of code Unavailable for a site that does not answer and is not
// remembered, and that of the context where it ended.
func Open(ctx context.Context, o Options, on []berth.Site, by map[string]sites.Adapter) (*Set, error) {
	o.Again = cmp.Or(o.Again, askAgain)
	h := &Set{Options: o, Managers: map[string]service.Manager{}}
	if err := h.open(ctx, on, by); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

func (h *Set) open(ctx context.Context, on []berth.Site, by map[string]sites.Adapter) error {
	for i := range on {
		to := &on[i]
		a, managed := by[to.Name]
		if !managed {
			continue
		}
		adapter, err := h.adapter(to.Name, &a)
		if err != nil {
			return err
		}
		description, answered, err := h.describe(ctx, to.Name, &a, adapter)
		if err != nil {
			return err
		}
		if may := description.Rights; answered && a.Kind == sites.Slurm && !a.Watch && !may.Reserve {
			return berth.Errorf(berth.Denied, "site", "%s: user %s may not make reservations there, so nothing can be promised. "+
				"What berth sites doctor says of rights tells how to get the right; without it, watch the site with --shadow", to.Name, may.As)
		}
		as, layout, err := h.imported(to.Name, &a, description)
		if err != nil {
			return err
		}
		to.Managed, to.Pools, to.Partitions = true, as.Pools, as.Partitions
		horizon := Horizon(description, &a)
		interval := cmp.Or(time.Duration(a.Every)*time.Second, every[a.Kind])
		manager := service.Manager{
			Kind: a.Kind, Adapter: adapter, Layout: layout, Every: interval, Horizon: horizon, Shadow: a.Watch, Adopt: h.Adopt,
			GiveUpAfter: cmp.Or(a.GiveUpAfter, giveUpAfter),
		}
		if a.Kind == sites.Slurm {
			f := &follower{set: h, name: to.Name, adapter: &a, at: adapter, used: description, answered: answered}
			manager.Meanwhile = f.follow
		}
		h.Managers[to.Name] = manager
	}
	return nil
}

// imported makes pools and partitions of what a site says it is.
func (h *Set) imported(name string, a *sites.Adapter, d *site.Description) (berth.Site, *site.Layout, error) {
	unit, binding := site.UnitCore, berth.Late
	if a.Kind == sites.Slurm {
		unit, binding = Unit(a), cmp.Or(a.Binding, berth.Early)
	}
	as, layout, err := site.Import(name, d, unit, binding)
	if err == nil && a.Kind == sites.Slurm && binding == berth.Late {
		h.nameAhead(&as, a, Horizon(d, a))
	}
	return as, layout, err
}

// nameAhead sets how long before its start a promise of a site that binds late gets its nodes:
// as long as no job that began before can reach into it, unless the adapter says otherwise.
func (h *Set) nameAhead(to *berth.Site, a *sites.Adapter, horizon berth.Duration) {
	ahead := min(cmp.Or(a.NameAhead, horizon), berth.TimeLimit-1)
	for i := range to.Pools {
		to.Pools[i].NameAhead = ahead
	}
	switch {
	case horizon >= berth.TimeLimit && a.NameAhead == 0:
		h.Log.Warn("a partition has no time limit, so promises get their nodes when they are made, as under early binding; set MaxTime in slurm.conf, or no_limit or name_ahead in the sites file", "site", to.Name)
	case ahead < horizon:
		h.Log.Warn("promises get their nodes later than the longest job may last, so that jobs of others may be in their way; leave out name_ahead, or shorten MaxTime in slurm.conf", "site", to.Name, "name_ahead_s", ahead, "longest_s", horizon)
	}
}

// Unit returns what a PE of a cluster is.
func Unit(a *sites.Adapter) site.Unit { return site.Unit(cmp.Or(a.Unit, string(site.UnitNode))) }

// Horizon returns how long before its start a promise is made real.
func Horizon(d *site.Description, a *sites.Adapter) berth.Duration {
	limited := *d
	limited.Partitions = append([]site.Partition(nil), d.Partitions...)
	for i := range limited.Partitions {
		p := &limited.Partitions[i]
		p.MaxTime = cmp.Or(p.MaxTime, a.NoLimit)
	}
	return limited.Horizon(nil, cmp.Or(a.Margin, margin))
}

// adapter opens an adapter.
func (h *Set) adapter(name string, a *sites.Adapter) (site.Observer, error) {
	if a.Kind == sites.Slurm && a.RunAs == sites.RunAsOwner {
		d, err := slurm.NewDeputy(SlurmOptions(name, a), h.Umask)
		if err != nil {
			return nil, fmt.Errorf("site %s: %w", name, err)
		}
		return d, nil
	}
	if a.Kind == sites.Slurm {
		return slurm.New(SlurmOptions(name, a)), nil
	}
	s, err := openLocal(name, filepath.Join(h.Data, "local"), a, h.Umask)
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

// SlurmConf is the variable that tells Slurm's commands which cluster they are
// for.
const SlurmConf = "SLURM_CONF"

// SlurmOptions returns how a cluster is reached: where the adapter does not say which
// slurm.conf, as SLURM_CONF says.
func SlurmOptions(name string, a *sites.Adapter) slurm.Options {
	o := slurm.Options{
		Site: name, Conf: cmp.Or(a.Conf, os.Getenv(SlurmConf)), Bin: a.Bin, Zone: a.Zone, Timeout: time.Duration(a.Timeout) * time.Second, Watch: a.Watch, NoLimit: a.NoLimit,
		WholeNodes: cmp.Or(a.Unit, string(site.UnitNode)) == string(site.UnitNode),
	}
	if a.Rest != "" {
		o.Exec = rest.New(rest.Options{Address: a.Rest, JWT: a.JWT, CA: a.CA})
	}
	return o
}

// Folder is the folder of the data directory with how sites described themselves.
const Folder = "sites"

// File returns the name of the file that has how a site described itself.
func File(site string) string { return path.Join(Folder, site+".json") }

// describe returns how a site describes itself, its nodes in the order in which
// they are remembered, and whether it answered: if it did not, it is as it is
// remembered. What it says is remembered from then on.
func (h *Set) describe(ctx context.Context, name string, a *sites.Adapter, adapter site.Observer) (*site.Description, bool, error) {
	if a.Kind == sites.Local { // a node that is always there
		d, err := adapter.Describe(ctx)
		if err != nil {
			return nil, false, fmt.Errorf("site %s: %w", name, err)
		}
		return d, true, nil
	}
	known, err := h.recall(name)
	if err != nil {
		return nil, false, err
	}
	d, err := adapter.Describe(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, false, ctx.Err()
	case err != nil && known == nil:
		return nil, false, berth.Errorf(berth.Unavailable, "site", "%s cannot be reached, and nothing is known of it from before: %v. "+
			"See what berth sites doctor says of it on this machine, and start again once it answers", name, err)
	case err != nil:
		h.Log.Error("site cannot be reached; the service starts with what it knows of it, and goes on asking", "site", name, "error", err)
		h.divide(name, a, known)
		return known, false, nil
	}
	d.Together = true // unless promises have other numbers of PEs already
	if known != nil {
		var changes []string
		d, changes = d.After(known)
		for _, change := range changes {
			h.Log.Warn("site has changed since the service last saw it", "site", name, "change", change)
		}
	}
	h.divide(name, a, d)
	return d, true, h.remember(name, d)
}

// divide says which nodes of a cluster are a pool, where it binds late.
func (h *Set) divide(name string, a *sites.Adapter, d *site.Description) {
	if a.Binding != berth.Late {
		return
	}
	for _, lost := range d.Divide() {
		h.Log.Warn("a partition has only some of the nodes of a pool that binds late, so nothing is promised in it there", "site", name, "partition", lost)
	}
}

// place is where sites are remembered.
func (h *Set) place() Place {
	if h.Place == nil {
		return folder(h.Data)
	}
	return h.Place
}

// recall reads what is remembered of a site, nil if nothing is.
func (h *Set) recall(name string) (*site.Description, error) {
	data, err := h.place().Load(File(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // nothing is no failure
	}
	if coded, is := errors.AsType[*berth.Error](err); is {
		return nil, coded
	}
	if err != nil {
		return nil, berth.Errorf(berth.Invalid, "data", "cannot read %s: %v; the service's user must be able to read it", h.path(name), cause(err))
	}
	var d site.Description
	if err := json.Unmarshal(data, &d); err != nil || len(d.Nodes) == 0 {
		return nil, berth.Errorf(berth.Invalid, "data", "%s is damaged (%v): the order of nodes in it tells which node a promise is on. "+
			"Put a copy back, or remove it if nothing is promised at the site", h.path(name), err)
	}
	return &d, nil
}

// remember writes down how a site describes itself, wholly or not at all.
func (h *Set) remember(name string, d *site.Description) error {
	data, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return fmt.Errorf("writing %s: %w", h.path(name), err)
	}
	return h.place().Save(File(name), append(data, '\n'))
}

// path returns where a site is remembered, for messages.
func (h *Set) path(name string) string {
	if at, is := h.place().(folder); is {
		return at.path(File(name))
	}
	return File(name)
}

// cause returns why a file could not be used, without its name.
func cause(err error) error {
	if path, is := errors.AsType[*fs.PathError](err); is {
		return path.Err
	}
	return err
}

// Examine examines a site through an adapter of its own, which leaves nothing. Its error
// is that it could not be opened or, where that has ended, that of the context.
func Examine(ctx context.Context, name string, a *sites.Adapter) (found []site.Finding, err error) {
	var doctor site.Doctor
	if a.Kind == sites.Slurm {
		doctor = slurm.New(SlurmOptions(name, a))
	} else {
		dir, err := os.MkdirTemp("", "berth-doctor-")
		if err != nil {
			return nil, fmt.Errorf("examining %s: %w", name, err)
		}
		defer func() { _ = os.RemoveAll(dir) }() // nothing in it is needed
		s, err := openLocal(name, dir, a, 0)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		doctor = s
	}
	found = doctor.Doctor(ctx)
	return found, ctx.Err()
}
