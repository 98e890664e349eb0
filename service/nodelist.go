package service

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/hostlist"
)

// Nodes that a request names, or excludes, are PEs of pools: what it may use and what not. They
// are looked up when it is asked for, so a node that is renamed later stays the one that was
// meant.

// nodesOf is a site whose nodes have names.
type nodesOf struct {
	site   string
	layout *site.Layout
	late   map[string]bool // pools that name no PEs before they start
}

// findNodes has each part of a request name the PEs of the nodes that were named for it. Errors
// are of code Invalid: no list of nodes, or one with a node that the asker sees at no site
// where the request may be, or whose nodes cannot be promised by name.
func (h *Host) findNodes(by Principal, r *berth.Request) error {
	named := r.NodeNames != berth.NodeNames{}
	for i := range r.Parts {
		named = named || r.Parts[i].NodeNames != berth.NodeNames{} || len(r.Parts[i].Only)+len(r.Parts[i].Never) > 0
	}
	if !named {
		return nil
	}
	sites := h.nodes(by, r)
	parts := slices.Clone(r.Parts) // which may be another request's too
	for i := range parts {
		p := &parts[i]
		p.Only, p.Never = nil, nil
		at := ""
		if len(parts) > 1 {
			at = fmt.Sprintf("parts[%d].", i)
		}
		for _, list := range []struct{ field, text string }{{"nodelist", r.Nodelist}, {at + "nodelist", p.Nodelist}} {
			if list.text == "" {
				continue
			}
			pes, err := lookUp(sites, list.field, list.text)
			if err != nil {
				return err
			}
			if pes, err = promisable(sites, list.field, list.text, pes); err != nil {
				return err
			}
			if p.Only == nil {
				p.Only = pes
			} else if p.Only = common(p.Only, pes); len(p.Only) == 0 {
				return berth.Errorf(berth.Invalid, list.field, "%q has no node of %q, the nodelist of the request; want some of these", list.text, r.Nodelist)
			}
		}
		for _, list := range []struct{ field, text string }{{"exclude", r.Exclude}, {at + "exclude", p.Exclude}} {
			if list.text == "" {
				continue
			}
			pes, err := lookUp(sites, list.field, list.text)
			if err != nil {
				return err
			}
			p.Never = united(p.Never, pes)
		}
		if err := left(p, cmp.Or(p.Exclude, r.Exclude)); err != nil {
			return err
		}
	}
	r.Parts = parts
	return nil
}

// nodes returns the sites with named nodes that a principal sees and at which a request may be,
// by name.
func (h *Host) nodes(by Principal, r *berth.Request) (list []nodesOf) {
	for _, name := range slices.Sorted(maps.Keys(h.sites)) {
		k := h.sites[name]
		if !k.manager.Shadow && by.Sites.Has(name) &&
			(r.Site == "" || r.Site == name) && (len(r.Sites) == 0 || slices.Contains(r.Sites, name)) {
			on := k.ground.Load()
			list = append(list, nodesOf{name, on.layout, on.late})
		}
	}
	return list
}

// lookUp returns the PEs of a list of nodes, by site and pool.
func lookUp(sites []nodesOf, field, text string) (list []berth.PoolPEs, err error) {
	names, err := hostlist.Expand(text)
	if err != nil {
		return nil, berth.Errorf(berth.Invalid, field, "%.80q: %v", text, err)
	}
	shares := make([]site.Share, len(names))
	for i := range names {
		shares[i].Node = names[i]
	}
	for i := range sites {
		s := &sites[i]
		pools := s.layout.PEs(shares)
		for _, pool := range slices.Sorted(maps.Keys(pools)) {
			list = append(list, berth.PoolPEs{Resource: berth.PoolID(s.site, pool), PEs: pools[pool]})
		}
	}
	unknown := slices.DeleteFunc(names, func(name string) bool {
		return slices.ContainsFunc(sites, func(s nodesOf) bool { return s.layout.Has(name) })
	})
	if len(unknown) == 0 {
		return list, nil
	}
	return nil, berth.Errorf(berth.Invalid, field, "%.80q: no site has %s; %s", text, shortened(hostlist.Fold(unknown)), existing(sites))
}

// existing says which nodes there are.
func existing(sites []nodesOf) string {
	var there []string
	for i := range sites {
		if names := sites[i].layout.Nodes(); len(names) > 0 {
			there = append(there, fmt.Sprintf("%s has %s", sites[i].site, shortened(hostlist.Fold(names))))
		}
	}
	if len(there) == 0 {
		return "no site where it may be has nodes with names"
	}
	return strings.Join(there, ", ")
}

// shortened cuts a list of nodes that is too long to be read in a message.
func shortened(list string) string {
	const most = 200
	if len(list) <= most {
		return list
	}
	return list[:most] + "…"
}

// promisable returns those of some PEs that a promise can name: those of pools that bind early.
func promisable(sites []nodesOf, field, text string, pes []berth.PoolPEs) ([]berth.PoolPEs, error) {
	early := slices.DeleteFunc(slices.Clone(pes), func(p berth.PoolPEs) bool {
		return slices.ContainsFunc(sites, func(s nodesOf) bool { return s.site == p.Resource.Site && s.late[p.Resource.Name] })
	})
	if len(early) == 0 {
		at := pes[0].Resource
		return nil, berth.Errorf(berth.Invalid, field, "%.80q: pool %s of %s binds late, so a promise there gets its nodes when it starts; leave the nodes out, or name some of a pool that binds early", text, at.Name, at.Site)
	}
	return early, nil
}

// common returns the PEs that are in both lists.
func common(a, b []berth.PoolPEs) (both []berth.PoolPEs) {
	for _, p := range a {
		for _, q := range b {
			if pes := p.PEs.And(q.PEs); p.Resource == q.Resource && !pes.Empty() {
				both = append(both, berth.PoolPEs{Resource: p.Resource, PEs: pes})
			}
		}
	}
	return both
}

// united returns the PEs that are in either list.
func united(a, b []berth.PoolPEs) []berth.PoolPEs {
	all := slices.Clone(a)
	for _, p := range b {
		if i := slices.IndexFunc(all, func(q berth.PoolPEs) bool { return q.Resource == p.Resource }); i >= 0 {
			all[i].PEs = all[i].PEs.Or(p.PEs)
		} else {
			all = append(all, p)
		}
	}
	return all
}

// left returns an error if a part excludes all the nodes that it names.
func left(p *berth.Part, exclude string) error {
	for _, only := range p.Only {
		if set, _ := p.Allowed(only.Resource); !set.Empty() {
			return nil
		}
	}
	if len(p.Only) == 0 || len(p.Never) == 0 {
		return nil
	}
	return berth.Errorf(berth.Invalid, "exclude", "%q leaves none of the nodes in nodelist; want at least one left", exclude)
}
