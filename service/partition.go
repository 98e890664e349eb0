package service

import (
	"cmp"
	"context"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// admit has a request ask for no site whose partition takes nothing now, or nothing from
// its user: what would be promised there could not be used. The error is of code Denied
// or Unavailable, and names the partition, if no site is left. It runs beside the loop,
// since it may ask sites; one that cannot be asked is left in, for it decides itself.
func (h *Host) admit(ctx context.Context, r *berth.Request) error {
	if err := h.inProject(ctx, r.User, &r.Account); err != nil {
		return err
	}
	return h.openTo(ctx, r)
}

// openTo is admit for a request that names an account as it may.
func (h *Host) openTo(ctx context.Context, r *berth.Request) error {
	var open []string
	var first error
	asked := func(name string) bool {
		return (r.Site == "" || r.Site == name) && (len(r.Sites) == 0 || slices.Contains(r.Sites, name))
	}
	several, sites := 0, *h.fleet.Load()
	for i := range sites {
		if asked(sites[i].Name) {
			several++
		}
	}
	for i := range sites {
		name := sites[i].Name
		if !asked(name) {
			continue
		}
		err := h.closedTo(ctx, &sites[i], r, several == 1)
		if first = cmp.Or(first, err); err == nil {
			open = append(open, name)
		}
	}
	if first != nil && len(open) > 0 {
		r.Sites, first = open, nil
	}
	return first
}

// closedTo returns why a site takes nothing from a request's user in the partition that the
// request would come to. If trim is set, variants that are beyond their limits are left out.
func (h *Host) closedTo(ctx context.Context, on *berth.Site, r *berth.Request, trim bool) error {
	k := h.sites[on.Name]
	if k == nil {
		return nil
	}
	name := r.Partition
	for i := range on.Partitions {
		p := &on.Partitions[i]
		if name == "" && p.Default && (r.Pool == "" || r.Pool == p.Pool) {
			name = p.Name
		}
	}
	p := k.partition(name)
	switch {
	case p == nil:
		p = &site.Partition{}
	case !p.Up:
		return berth.Errorf(berth.Unavailable, "partition", "%s of site %s is %s and takes no work now; name another partition, or ask again when it is up",
			p.Name, k.name, cmp.Or(p.State, "not up"))
	}
	return h.gated(ctx, k, p, r, trim)
}

// partition returns a partition as last seen, nil if the site was seen without it.
func (k *keeper) partition(name string) *site.Partition {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.partitions {
		if k.partitions[i].Name == name {
			return &k.partitions[i]
		}
	}
	return nil
}
