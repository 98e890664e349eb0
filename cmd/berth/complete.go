package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
)

// complete offers fixed words for a flag in the shell, also for the last word of a
// list with commas.
func complete(cmd *cobra.Command, flag string, words []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) { // fails for unknown flags only
		before := typed[:strings.LastIndex(typed, ",")+1]
		offered := make([]string, len(words))
		for i, word := range words {
			offered[i] = before + word
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	})
}

// completeSweep offers what can be swept, and then the words of that flag.
func completeSweep(cmd *cobra.Command, simulates *pflag.FlagSet) {
	_ = cmd.RegisterFlagCompletionFunc("sweep", func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) { // fails for unknown flags only
		name, values, named := strings.Cut(typed, "=")
		if !named {
			var offered []string
			simulates.VisitAll(func(f *pflag.Flag) {
				if rigid[f.Name] == "" {
					offered = append(offered, f.Name+"=")
				}
			})
			return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		words, known := cmd.GetFlagCompletionFunc(name)
		if !known || rigid[name] != "" {
			return nil, cobra.ShellCompDirectiveDefault // a file, perhaps
		}
		offered, directive := words(cmd, args, values)
		for i, word := range offered {
			offered[i] = name + "=" + word
		}
		return offered, directive
	})
}

const (
	// completing is for how long the shell waits for a service.
	completing = 2 * time.Second
	// maxOffered is how many ids the shell offers.
	maxOffered = 100
)

// offerIDs offers the reservations of a service that are not over, or of some states, as
// the argument of a command, or as each of several. Who is not logged in is offered none.
func (r *remote) offerIDs(cmd *cobra.Command, several bool, states ...string) {
	if states == nil {
		states = liveStates
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !several {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		c, err := r.client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, stop := context.WithTimeout(cmd.Context(), completing)
		defer stop()
		var offered []string
		for one, err := range c.List(ctx, client.Filter{States: states, PageSize: maxOffered}) {
			if err != nil || len(offered) == maxOffered {
				break
			}
			if !slices.Contains(args, one.ID) {
				offered = append(offered, fmt.Sprintf("%s\t%s, %d PEs at %s", one.ID, one.State, one.NPE, one.Site))
			}
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}

// offerSites offers the sites of a service as arguments.
func (r *remote) offerSites(cmd *cobra.Command) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		return r.siteWords(cmd, func(s *form.Site) []string { return []string{s.Name} }, args), cobra.ShellCompDirectiveNoFileComp
	}
}

// offerSiteFlags offers what the sites of a service have for the flags that name it.
func (r *remote) offerSiteFlags(cmd *cobra.Command) {
	for flag, words := range map[string]func(s *form.Site) []string{
		"site": func(s *form.Site) []string { return []string{s.Name} },
		"pool": func(s *form.Site) (names []string) {
			for i := range s.Pools {
				names = append(names, s.Pools[i].Name)
			}
			return names
		},
		"partition": func(s *form.Site) (names []string) {
			for i := range s.Partitions {
				names = append(names, s.Partitions[i].Name)
			}
			return names
		},
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) { // fails for unknown flags only
			return r.siteWords(cmd, words, nil), cobra.ShellCompDirectiveNoFileComp
		})
	}
}

// siteWords returns words of the sites of a service, each once and but for some; none if it does not answer.
func (r *remote) siteWords(cmd *cobra.Command, words func(*form.Site) []string, but []string) []string {
	c, err := r.client()
	if err != nil {
		return nil
	}
	ctx, stop := context.WithTimeout(cmd.Context(), completing)
	defer stop()
	list, err := c.Sites(ctx)
	if err != nil {
		return nil
	}
	var offered []string
	for i := range list {
		for _, word := range words(&list[i]) {
			if !slices.Contains(offered, word) && !slices.Contains(but, word) {
				offered = append(offered, word)
			}
		}
	}
	return offered
}

// offerCommands offers the commands below those that are typed, as help takes them.
func offerCommands(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	about, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var offered []string
	for _, sub := range about.Commands() {
		if sub.IsAvailableCommand() {
			offered = append(offered, sub.Name()+"\t"+sub.Short)
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}
