package main

import (
	"context"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/sites"
	"github.com/berth-hpc/berth/sites/adapters"
)

// examined is what a doctor found at a site.
type examined struct {
	Site     string         `json:"site"`
	Findings []form.Finding `json:"findings"`
}

// sitesDoctor returns berth sites doctor.
func (a *app) sitesDoctor() *cobra.Command {
	var r *remote
	var config, cluster string
	var reach sites.Adapter
	cmd := &cobra.Command{
		Use:   "doctor [NAME]",
		Short: "Check how well Berth works with a site",
		Long: `Looks for what keeps Berth from working well with its sites, and says what can be
done about it. The service examines them, for operators; with --slurm or --config
this command does so itself, from this machine and as the user who runs it, who needs
no service. Exit 1 if something that Berth needs does not work.`,
		Example: `  berth sites doctor
  berth sites doctor cluster -o json
  berth sites doctor --slurm cluster --conf /etc/slurm/slurm.conf
  berth sites doctor --config /etc/berth/berth.yaml cluster`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef(cmd, "want one NAME of a site, or none for all, got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			name := strings.Join(args, "")
			var found []examined
			var err error
			switch {
			case cluster != "" && (config != "" || name != ""):
				return usagef(cmd, "--slurm: it names the site to examine; want it without --config and NAME")
			case cluster == "" && (reach.Conf != "" || reach.Bin != "" || reach.Rest != "" || reach.JWT != "" || reach.CA != ""):
				return usagef(cmd, "--conf, --bin and --rest say how a cluster is reached; want --slurm NAME with them")
			case cluster != "" || config != "":
				found, err = a.examineHere(cmd, config, cluster, name, &reach)
			default:
				found, err = a.examineThere(cmd, r, name)
			}
			if err != nil {
				return err
			}
			return a.tellFindings(found, r.format)
		},
	}
	r = remoteFlags(cmd)
	r.offerSites(cmd, 1)
	f := cmd.Flags()
	f.StringVar(&cluster, "slurm", "", "examine the Slurm cluster that this machine's commands reach, as the site `NAME`")
	f.StringVar(&reach.Conf, "conf", "", "with --slurm: `PATH` of slurm.conf")
	f.StringVar(&reach.Bin, "bin", "", "with --slurm: `DIR`ectory of Slurm's commands")
	f.StringVar(&reach.Rest, "rest", "", "with --slurm: `ADDRESS` of slurmrestd, which is asked instead of the commands")
	f.StringVar(&reach.JWT, "jwt", "", "with --rest: `FILE` with a JSON web token for it")
	f.StringVar(&reach.CA, "ca", "", "with --rest https://…: `FILE` in PEM with the authority of its certificate, if that is none of this machine's")
	f.StringVar(&config, "config", "", "examine the sites of this configuration `FILE` from here")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml") // fails for unknown flags only
	return cmd
}

// examineThere has the service examine its managed sites, or one of them.
func (a *app) examineThere(cmd *cobra.Command, r *remote, name string) ([]examined, error) {
	ctx, stop, c, err := r.connect(cmd)
	if err != nil {
		return nil, err
	}
	defer stop()
	names := []string{name}
	if name == "" {
		if names, err = managedSites(ctx, c); err != nil {
			return nil, err
		}
	}
	var all []examined
	for _, name := range names {
		done := a.meanwhile(examining, name)
		found, err := c.Doctor(ctx, name)
		done()
		if err != nil {
			return nil, err
		}
		all = append(all, examined{name, found})
	}
	return all, nil
}

func managedSites(ctx context.Context, c *client.Client) ([]string, error) {
	list, err := c.Sites(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range list {
		if list[i].Adapter != "" {
			names = append(names, list[i].Name)
		}
	}
	if len(names) == 0 {
		return nil, berth.Errorf(berth.NotFound, "site", "the service reaches no site")
	}
	return names, nil
}

// examineHere examines from this machine the sites of a configuration, one of
// them, or a cluster.
func (a *app) examineHere(cmd *cobra.Command, config, cluster, name string, reach *sites.Adapter) ([]examined, error) {
	ctx, stop := untilInterrupt(cmd.Context())
	defer stop()
	if cluster != "" {
		reach.Kind = sites.Slurm
		found, err := a.examine(ctx, cluster, reach)
		return []examined{{cluster, found}}, err
	}
	file, err := sites.Open(config)
	if err == nil {
		err = adapters.Check(file)
	}
	if err != nil {
		return nil, err
	}
	var all []examined
	for i := range file.Sites {
		at := file.Sites[i].Name
		reach, managed := file.Adapters[at]
		if !managed || name != "" && name != at {
			continue
		}
		found, err := a.examine(ctx, at, &reach)
		if err != nil {
			return nil, err
		}
		all = append(all, examined{at, found})
	}
	if len(all) == 0 {
		return nil, berth.Errorf(berth.NotFound, "site", "%s has no such site with an adapter", config)
	}
	return all, nil
}

// examining is what is said of a site that takes its time.
const examining = "berth: examining site %s; one that does not answer takes half a minute"

// examine examines a site from here.
func (a *app) examine(ctx context.Context, name string, adapter *sites.Adapter) ([]form.Finding, error) {
	done := a.meanwhile(examining, name)
	found, err := adapters.Examine(ctx, name, adapter)
	done()
	switch {
	case ctx.Err() != nil:
		return nil, &interrupted{"nothing was changed"}
	case err != nil:
		return nil, err
	}
	forms := make([]form.Finding, len(found))
	for i, f := range found {
		forms[i] = form.Finding{Check: f.Check, Level: string(f.Level), Text: f.Text, Hint: f.Hint}
	}
	return forms, nil
}

// tellFindings prints what was found. What does not work is exit 1.
func (a *app) tellFindings(all []examined, format string) error {
	if format == "json" {
		if err := printForm(a.stdout, map[string]any{"sites": all}); err != nil {
			return err
		}
	} else if err := a.show(findingsTable(all)); err != nil {
		return err
	}
	if bad := worst(all); bad == string(site.Bad) {
		return &exitError{exitFailed}
	}
	return nil
}

// worst returns the worst level of all findings.
func worst(all []examined) string {
	level := string(site.Good)
	for i := range all {
		for _, f := range all[i].Findings {
			if f.Level == string(site.Bad) || f.Level == string(site.Warning) && level == string(site.Good) {
				level = f.Level
			}
		}
	}
	return level
}

func findingsTable(all []examined) string {
	const width = 96
	out := newTable("what was found")
	out.AppendHeader(table.Row{"site", "check", "level", "what is so, and what can be done"})
	var columns []table.ColumnConfig
	for n := 1; n <= 4; n++ {
		columns = append(columns, table.ColumnConfig{Number: n, Align: text.AlignLeft, AlignHeader: text.AlignLeft})
	}
	out.SetColumnConfigs(columns)
	for i := range all {
		for _, f := range all[i].Findings {
			said := text.WrapSoft(f.Text, width)
			if f.Hint != "" {
				said += "\n" + text.WrapSoft("→ "+f.Hint, width)
			}
			out.AppendRow(table.Row{all[i].Site, f.Check, f.Level, said})
		}
	}
	return out.Render() + "\n"
}
