package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
)

// The shell is offered what a service has. Without a service that answers, or a login, it is offered nothing.

const (
	// completing is for how long the shell waits for a service.
	completing = 2 * time.Second
	// maxOffered is how many words the shell is offered of those that begin as typed, and maxLookedAt among how many.
	maxOffered, maxLookedAt = 100, 1000
)

// offering is cobra's type of a function that completes.
type offering = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective)

// offer makes such a function of one that asks a service for words.
func (r *remote) offer(words func(ctx context.Context, c *client.Client, cmd *cobra.Command, args []string, typed string) []string) offering {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		c, err := r.client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, stop := context.WithTimeout(cmd.Context(), completing)
		defer stop()
		return words(ctx, c, cmd, args, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// offerIDs offers the reservations of a service that are not over, or of some states, as
// the argument of a command, or as each of several.
func (r *remote) offerIDs(cmd *cobra.Command, several bool, states ...string) {
	cmd.ValidArgsFunction = r.offer(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string, typed string) []string {
		if len(args) > 0 && !several {
			return nil
		}
		return reservationWords(ctx, c, states, args, typed)
	})
}

// offerIDFlag offers the reservations that are not over for a flag.
func (r *remote) offerIDFlag(cmd *cobra.Command, flag string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, r.offer(func(ctx context.Context, c *client.Client, _ *cobra.Command, _ []string, typed string) []string { // fails for unknown flags only
		return reservationWords(ctx, c, nil, nil, typed)
	}))
}

// reservationWords returns words for reservations of some states, nil for those that are not over: their names, and ids of those that have none of
// their own. If the beginning of an id is typed, ids.
func reservationWords(ctx context.Context, c *client.Client, states, but []string, typed string) []string {
	if states == nil {
		states = liveStates
	}
	var list []form.Reservation
	names := map[string]int{}
	for one, err := range c.List(ctx, client.Filter{States: states, PageSize: maxOffered}) {
		if err != nil || len(list) == maxLookedAt {
			break
		}
		list = append(list, one)
		names[one.Name]++
	}
	byID := typed != "" && typed[0] >= '0' && typed[0] <= '9'
	var offered []string
	for i := range list {
		one := &list[i]
		word, about := one.ID, fmt.Sprintf("%s, %d PEs at %s", one.State, one.NPE, one.Site)
		switch {
		case one.Name == "":
		case byID || names[one.Name] > 1:
			about = one.Name + ", " + about
		default:
			word = one.Name
		}
		if len(offered) < maxOffered && strings.HasPrefix(word, typed) && !slices.Contains(but, one.ID) && !slices.Contains(but, word) {
			offered = append(offered, word+"\t"+about)
		}
	}
	return offered
}

// offerNames offers the names of reservations, over or not, for a flag.
func (r *remote) offerNames(cmd *cobra.Command, flag string) {
	r.offerUsed(cmd, flag, func(one *form.Reservation) string { return one.Name })
}

// offerUsed offers for a flag, if a command has it, what reservations, over or not, have of something; empty is nothing.
func (r *remote) offerUsed(cmd *cobra.Command, flag string, word func(*form.Reservation) string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, r.offer(func(ctx context.Context, c *client.Client, _ *cobra.Command, _ []string, typed string) []string { // fails for unknown flags only
		var offered []string
		looked := 0
		for one, err := range c.List(ctx, client.Filter{PageSize: maxOffered}) {
			if err != nil || looked == maxLookedAt || len(offered) == maxOffered {
				break
			}
			looked++
			if has := word(&one); has != "" && strings.HasPrefix(has, typed) && !slices.Contains(offered, has) {
				offered = append(offered, has)
			}
		}
		return offered
	}))
}

// offerSeries offers series as the argument of a command: their names, and ids of those that have none of their own.
func (r *remote) offerSeries(cmd *cobra.Command) {
	cmd.ValidArgsFunction = r.offer(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string, typed string) []string {
		if len(args) > 0 {
			return nil
		}
		var list []form.Series
		names := map[string]int{}
		for s, err := range c.SeriesList(ctx, "") {
			if err != nil || len(list) == maxLookedAt {
				break
			}
			list = append(list, s)
			names[s.Name]++
		}
		var offered []string
		for i := range list {
			s := &list[i]
			word, about := s.ID, s.Repeat
			switch {
			case s.Name == "":
			case names[s.Name] > 1:
				about = s.Name + ", " + about
			default:
				word = s.Name
			}
			if len(offered) < maxOffered && strings.HasPrefix(word, typed) {
				offered = append(offered, word+"\t"+about)
			}
		}
		return offered
	})
}

// offerWorkflows offers the workflows of some states as the argument of a command.
func (r *remote) offerWorkflows(cmd *cobra.Command, states ...string) {
	cmd.ValidArgsFunction = r.offer(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string, typed string) []string {
		var offered []string
		for w, err := range c.Workflows(ctx, "", states) {
			if err != nil || len(args) > 0 || len(offered) == maxOffered {
				break
			}
			if strings.HasPrefix(w.ID, typed) {
				offered = append(offered, w.ID+"\t"+strings.TrimSpace(w.State+" "+w.Name))
			}
		}
		return offered
	})
}

// offerSites offers the sites of a service as arguments, as many of them as a command takes.
func (r *remote) offerSites(cmd *cobra.Command, most int) {
	cmd.ValidArgsFunction = r.offer(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string, _ string) []string {
		if len(args) >= most {
			return nil
		}
		return siteWords(ctx, c, func(s *form.Site) []string { return []string{s.Name} }, args)
	})
}

// offerNodes offers a site, and then its nodes.
func (r *remote) offerNodes(cmd *cobra.Command) {
	cmd.ValidArgsFunction = r.offer(func(ctx context.Context, c *client.Client, _ *cobra.Command, args []string, typed string) (offered []string) {
		switch len(args) {
		case 0:
			return siteWords(ctx, c, func(s *form.Site) []string { return []string{s.Name} }, nil)
		case 1:
			s, err := c.Site(ctx, args[0])
			for i := 0; err == nil && i < len(s.Nodes) && len(offered) < maxOffered; i++ {
				if n := &s.Nodes[i]; strings.HasPrefix(n.Name, typed) {
					offered = append(offered, n.Name+"\t"+n.Condition)
				}
			}
		}
		return offered
	})
}

// offerSiteFlags offers what the sites of a service have for those flags that a command has of it: of the site that is given, or of all. Sites do not tell
// their accounts and QOS: those are offered that one's reservations have named.
func (r *remote) offerSiteFlags(cmd *cobra.Command) {
	r.offerUsed(cmd, "account", func(one *form.Reservation) string { return one.Account })
	r.offerUsed(cmd, "qos", func(one *form.Reservation) string { return one.QOS })
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
		_ = cmd.RegisterFlagCompletionFunc(flag, r.offer(func(ctx context.Context, c *client.Client, cmd *cobra.Command, _ []string, _ string) []string { // fails for unknown flags only
			return siteWords(ctx, c, func(s *form.Site) []string {
				if site := cmd.Flags().Lookup("site"); flag != "site" && site != nil && site.Changed && site.Value.String() != s.Name {
					return nil
				}
				return words(s)
			}, nil)
		}))
	}
}

// siteWords returns words of the sites of a service, each once and but for some; none if it does not answer.
func siteWords(ctx context.Context, c *client.Client, words func(*form.Site) []string, but []string) []string {
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
