package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/hpctime"
	"github.com/berth-hpc/berth/internal/wholefile"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm"
	"github.com/berth-hpc/berth/sites"
	"github.com/berth-hpc/berth/sites/adapters"
)

// addition is the site that berth sites add adds.
type addition struct {
	config  string
	adapter sites.Adapter
	timeout span
	every   span
	margin  span
	noLimit span
}

// sitesAdd returns berth sites add.
func (a *app) sitesAdd() *cobra.Command {
	add := &addition{adapter: sites.Adapter{Kind: sites.Slurm}}
	cmd := &cobra.Command{
		Use:   "add NAME --config FILE",
		Short: "Inspect a Slurm cluster and add it to a configuration file",
		Long: `Has the cluster describe itself, examines it, shows what was found, and adds the
site to the configuration file unless something that Berth needs does not work.
Nothing is changed at the cluster. The rest of the file stays as it is, comments
too; a file that is not there is made. A service that runs takes the site in when
it is started again.`,
		Example: `  berth sites add cluster --config /etc/berth/berth.yaml
  berth sites add gpu --config /etc/berth/berth.yaml --conf /etc/slurm-gpu/slurm.conf --no-limit 7d`,
		Args: one("NAME for the site"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.addSite(cmd, add, args[0]) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&add.config, "config", "", "configuration `FILE` of the service (needed)")
	f.Var(&choice{&add.adapter.Kind, "kind", []string{sites.Slurm}}, "kind", "how it is reached: slurm")
	f.StringVar(&add.adapter.Conf, "conf", "", "`PATH` of slurm.conf (default: what Slurm's commands take)")
	f.StringVar(&add.adapter.Bin, "bin", "", "`DIR`ectory of Slurm's commands (default: the PATH)")
	f.StringVar(&add.adapter.Rest, "rest", "", "`ADDRESS` of slurmrestd, which is asked instead of the commands")
	f.StringVar(&add.adapter.JWT, "jwt", "", "with --rest: `FILE` with a JSON web token for it")
	f.StringVar(&add.adapter.CA, "ca", "", "with --rest https://…: `FILE` in PEM with the authority of its certificate, if that is none of this machine's")
	f.StringVar(&add.adapter.Zone, "zone", "", "time `ZONE` of its people, as in the tz database (default: this machine's)")
	f.Var(&choice{&add.adapter.Unit, "unit", []string{string(site.UnitNode), string(site.UnitCore)}}, "unit", "what a PE is: node, core (default: node)")
	for _, d := range []struct {
		flag, about string
		span        *span
		to          *berth.Duration
	}{
		{"timeout", "how long one command may take (default: 30s)", &add.timeout, &add.adapter.Timeout},
		{"every", "how often it is looked at (default: 5s)", &add.every, &add.adapter.Every},
		{"margin", "how much earlier than needed a promise is made real (default: 2m)", &add.margin, &add.adapter.Margin},
		{"no-limit", "how long jobs are taken to last in partitions without a limit (default: for ever)", &add.noLimit, &add.adapter.NoLimit},
	} {
		*d.span = span{value: d.to, least: 1}
		f.Var(d.span, d.flag, d.about)
	}
	_ = cmd.MarkFlagFilename("config", "yaml", "yml") // fails for unknown flags only
	return cmd
}

func (a *app) addSite(cmd *cobra.Command, add *addition, name string) error {
	if add.config == "" {
		return usagef(cmd, "--config: missing; want the configuration file of the service")
	}
	for _, path := range []*string{&add.adapter.Conf, &add.adapter.Bin, &add.adapter.JWT, &add.adapter.CA} {
		if *path == "" {
			continue
		}
		whole, err := filepath.Abs(*path)
		if err != nil {
			return berth.Errorf(berth.Invalid, "conf", "%s: %v", *path, err)
		}
		*path = whole
	}
	before, err := os.ReadFile(add.config)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cannotRead(add.config, err)
	}
	after, err := sites.Add(before, add.config, entry(name, &add.adapter))
	if err != nil {
		return err
	}
	file, err := sites.Read(strings.NewReader(string(after)), add.config)
	if err == nil {
		err = adapters.Check(file)
	}
	if err != nil {
		return err
	}
	if err := wholefile.Writable("config", add.config); err != nil {
		return err
	}
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	if err := a.introduce(ctx, name, &add.adapter); err != nil {
		return err
	}
	if err := replace(add.config, after); err != nil {
		return err
	}
	a.say("site %s is in %s now; restart the service to take it in", name, add.config)
	return nil
}

// introduce shows a cluster and what the doctor found there. If something is bad
// it returns an error.
func (a *app) introduce(ctx context.Context, name string, adapter *sites.Adapter) error {
	found, err := a.examine(ctx, name, adapter)
	if err != nil {
		return err
	}
	all := []examined{{name, found}}
	if err := a.show(findingsTable(all)); err != nil {
		return err
	}
	if worst(all) == string(site.Bad) {
		a.say("site %s was not added: first let what is marked error work", name)
		return &exitError{exitFailed}
	}
	d, err := slurm.New(adapters.SlurmOptions(name, adapter)).Describe(ctx)
	if err != nil {
		return berth.Errorf(berth.Unavailable, "site", "%s: %v; it was not added", name, err)
	}
	text, err := describeCluster(name, adapter, d)
	if err != nil {
		return err
	}
	return a.show("\n" + text)
}

// describeCluster says what a cluster is as a site of Berth.
func describeCluster(name string, a *sites.Adapter, d *site.Description) (string, error) {
	unit := adapters.Unit(a)
	whole := *d
	whole.Together = true // as the service has a site that is new to it
	s, _, err := site.Import(name, &whole, unit, berth.Early)
	if err != nil {
		return "", err
	}
	var f facts
	f.add("cluster", fmt.Sprintf("%s, %s %s", d.Cluster, d.Manager, d.Version))
	f.add("nodes", strconv.Itoa(len(d.Nodes)))
	for i := range s.Pools {
		f.add("pool "+s.Pools[i].Name, fmt.Sprintf("%d PEs, each a %s", s.Pools[i].PEs, unit))
		addClasses(&f, &s.Pools[i])
	}
	for i := range d.Partitions {
		p := &d.Partitions[i]
		limit := "without a time limit"
		if p.MaxTime > 0 {
			limit = "at most " + hpctime.Format(p.MaxTime)
		}
		if p.MaxNodes > 0 {
			limit += fmt.Sprintf(" on %d nodes", p.MaxNodes)
		}
		f.add("partition "+p.Name, fmt.Sprintf("%d nodes, %s", len(p.Nodes), limit))
	}
	horizon := "at once, since a partition has no time limit"
	if h := adapters.Horizon(d, a); h < berth.Endless {
		horizon = hpctime.Format(h) + " before they start"
	}
	f.add("promises get there", horizon)
	return "site " + name + "\n" + f.String(), nil
}

// entry is a site with an adapter as the configuration file has it.
func entry(name string, a *sites.Adapter) string {
	var out strings.Builder
	fmt.Fprintf(&out, "name: %s\nadapter:\n  kind: %s\n", strconv.Quote(name), a.Kind)
	add := func(key, value string) {
		if value != "" {
			fmt.Fprintf(&out, "  %s: %s\n", key, value)
		}
	}
	quoted := func(key, value string) {
		if value != "" {
			add(key, strconv.Quote(value))
		}
	}
	lasting := func(key string, d berth.Duration) {
		if d > 0 {
			add(key, fmt.Sprintf("%ds", d))
		}
	}
	quoted("conf", a.Conf)
	quoted("bin", a.Bin)
	quoted("rest", a.Rest)
	quoted("jwt", a.JWT)
	quoted("ca", a.CA)
	quoted("zone", a.Zone)
	add("unit", a.Unit)
	lasting("timeout", a.Timeout)
	lasting("every", a.Every)
	lasting("margin", a.Margin)
	lasting("no_limit", a.NoLimit)
	return out.String()
}

// replace writes a file anew, wholly or not at all, with the rights that it has.
func replace(path string, text []byte) error {
	out, err := wholefile.Create("config", path)
	if err != nil {
		return err
	}
	defer out.Drop()
	if _, err := out.Write(text); err != nil {
		return wholefile.CannotWrite("config", path, err)
	}
	return out.Keep()
}
