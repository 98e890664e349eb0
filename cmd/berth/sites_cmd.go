package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
)

// sitesCommand returns berth sites. Alone it lists them.
func (a *app) sitesCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "sites", Short: "List, show, check and add sites; drain and resume nodes"}
	r := listFlags(cmd)
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownCommand(cmd, args[0])
		}
		return a.listSites(cmd, r)
	}
	cmd.AddCommand(a.sitesList(), a.sitesShow(), a.sitesOccupation(), a.sitesShadow(), a.sitesDoctor(), a.sitesAdd(), a.sitesForecast(), a.sitesDrain(), a.sitesResume())
	return cmd
}

func (a *app) sitesList() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "list", Short: "List the sites and their free PEs", Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listSites(cmd, r) },
	}
	r = listFlags(cmd)
	return cmd
}

func (a *app) listSites(cmd *cobra.Command, r *remote) error {
	ctx, stop, c, err := r.connect(cmd)
	if err != nil {
		return err
	}
	defer stop()
	sites, err := c.Sites(ctx)
	if err != nil {
		return err
	}
	switch r.format {
	case "json":
		return printForm(a.stdout, form.Sites{Sites: sites})
	case "csv":
		return siteRows(a.stdout, sites)
	}
	out := newTable("sites")
	out.AppendHeader(table.Row{"site", "pool", "PEs", "free", "running", "waiting", "binding", "adapter", "state"})
	for i := range sites {
		s := &sites[i]
		for k := range s.Pools {
			p := &s.Pools[k]
			out.AppendRow(table.Row{s.Name, p.Name, p.PEs, p.Free, p.Running, p.Waiting, p.Binding, orDash(s.Adapter), siteState(s)})
		}
	}
	return a.show(out.Render() + "\n")
}

// siteState is how a site is, in a word.
func siteState(s *form.Site) string {
	switch {
	case s.Starting:
		return "starting"
	case !s.Reachable:
		return "unreachable"
	case s.Shadow:
		return "watched"
	}
	return "ok"
}

func (a *app) sitesShow() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show a site: pools, partitions, software, nodes", Args: one("NAME of a site"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			s, err := c.Site(ctx, args[0])
			switch {
			case err != nil:
				return err
			case r.format == "json":
				return printForm(a.stdout, &s)
			}
			return a.show(describeSite(&s))
		},
	}
	r = remoteFlags(cmd)
	r.offerSites(cmd, 1)
	return cmd
}

// addClasses adds what the PEs of a pool are made of, where they differ.
func addClasses(f *facts, p *berth.Pool) {
	for i := range p.Classes {
		c := &p.Classes[i]
		text := fmt.Sprintf("%d PEs, %v", c.PEs.Count(), c.PEs)
		if n := c.Node.Accelerators; n > 0 {
			text += fmt.Sprintf("; %d accelerators a PE", n)
		}
		if n := c.Node.MemoryMB; n > 0 {
			text += fmt.Sprintf("; %d MB a PE", n)
		}
		if len(c.Features) > 0 {
			text += "; " + strings.Join(c.Features, " ")
		}
		f.add("class "+c.Name, text)
	}
}

func describeSite(s *form.Site) string {
	var f facts
	f.add("adapter", s.Adapter)
	reachable := strconv.FormatBool(s.Reachable)
	if s.Starting {
		reachable = "not looked at yet"
	}
	f.add("reachable", reachable)
	if s.Shadow {
		f.add("watched", "nothing is promised there; see berth sites shadow "+s.Name)
	}
	f.add("trouble", s.Trouble)
	f.add("seen", localTime(s.Seen))
	for i := range s.Pools {
		p := &s.Pools[i]
		bound := bindingWords[string(p.Binding)]
		if p.NameAhead > 0 {
			bound = lasting(p.NameAhead) + " before the start"
		}
		text := fmt.Sprintf("%d PEs, %d free, %d running, %d waiting, bound %s", p.PEs, p.Free, p.Running, p.Waiting, bound)
		if p.Speed != 0 {
			text += fmt.Sprintf("; speed %g", float64(p.Speed)/float64(berth.StandardSpeed))
		}
		if n := p.Node.Accelerators; n > 0 {
			text += fmt.Sprintf("; %d accelerators a PE", n)
		}
		if n := p.Node.MemoryMB; n > 0 {
			text += fmt.Sprintf("; %d MB a PE", n)
		}
		if len(p.Features) > 0 {
			text += "; " + strings.Join(p.Features, " ")
		}
		f.add("pool "+p.Name, text)
		addClasses(&f, &p.Pool)
	}
	for i := range s.Partitions {
		p := &s.Partitions[i]
		most := "any number of PEs"
		if p.MaxNPE > 0 {
			most = fmt.Sprintf("at most %d PEs", p.MaxNPE)
		}
		long := "for as long as one likes"
		if p.MaxDuration > 0 {
			long = "for at most " + lasting(p.MaxDuration)
		}
		f.add("partition "+p.Name, fmt.Sprintf("of %s: %s %s", p.Pool, most, long))
	}
	for i := range s.Software {
		text := strings.TrimSpace(s.Software[i].Name + " " + s.Software[i].Version)
		if n := s.Software[i].Licences; n > 0 {
			text += fmt.Sprintf(", %d licences", n)
		}
		f.add("software", text)
	}
	if s.StorageMB > 0 {
		f.add("storage", fmt.Sprintf("%d MB", s.StorageMB))
	}
	if s.Link != (berth.Link{}) {
		f.add("link", fmt.Sprintf("%d kB/s, %d ms", s.Link.KilobytesPerSecond, s.Link.DelayMS))
	}
	for i := range s.Drift {
		d := &s.Drift[i]
		f.add("drift", d.Kind+" "+d.Name+" "+strings.Join(d.What, "; "))
	}
	text := "site " + s.Name + "\n" + f.String()
	if len(s.Nodes) == 0 {
		return text
	}
	out := newTable("nodes")
	out.AppendHeader(table.Row{"node", "condition", "busy cores", "since", "reason"})
	for i := range s.Nodes {
		n := &s.Nodes[i]
		out.AppendRow(table.Row{n.Name, n.Condition, n.Busy, localTime(n.Since), orDash(n.Reason)})
	}
	return text + "\n" + out.Render() + "\n"
}

// bindingWords says when PEs get their numbers.
var bindingWords = map[string]string{"early": "when accepted", "late": "at the start"}

func (a *app) sitesDrain() *cobra.Command {
	var r *remote
	reason := ""
	cmd := &cobra.Command{
		Use: "drain SITE NODE", Short: "Drain a node: nothing new starts, promises on it are placed again", Args: siteAndNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if err := c.Drain(ctx, args[0], args[1], reason); err != nil {
				return err
			}
			a.say("node %s of %s is drained", args[1], args[0])
			return nil
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why (`TEXT`), for those who wonder")
	r = remoteFlags(cmd)
	r.offerNodes(cmd)
	return cmd
}

func (a *app) sitesResume() *cobra.Command {
	var r *remote
	cmd := &cobra.Command{
		Use: "resume SITE NODE", Short: "Resume a node after a drain", Args: siteAndNode,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop, c, err := r.connect(cmd)
			if err != nil {
				return err
			}
			defer stop()
			if err := c.Resume(ctx, args[0], args[1]); err != nil {
				return err
			}
			a.say("node %s of %s is in use again", args[1], args[0])
			return nil
		},
	}
	r = remoteFlags(cmd)
	r.offerNodes(cmd)
	return cmd
}

func siteAndNode(cmd *cobra.Command, args []string) error {
	if len(args) != 2 {
		return usagef(cmd, "want SITE and NODE, got %d words", len(args))
	}
	return nil
}
