package service

import (
	"context"
	"slices"

	"github.com/berth-hpc/berth"
)

// Errand is an effect on a site that is not settled: the site does not have a promise yet
// as it is, or still has one that is over.
type Errand struct {
	Number      uint64 // of the effect; the oldest has the least
	Site        string
	Reservation string
	// Remove says that the site should not have it any more; else it should have it, as
	// Generation.
	Remove     bool
	Generation uint64
	State      State
	// Since is when the reservation last changed, so the site is not further behind.
	Since berth.Time
	// Trouble is why it could not be done when it was last tried, in the site's words;
	// empty if it was not tried, because the start is behind the horizon of the site.
	Trouble string
}

// Outbox returns what the sites have not done yet, the oldest first. The error is Denied
// unless an operator asks. Cost: O(effects), in the loop.
func (h *Host) Outbox(ctx context.Context, by Principal) ([]Errand, error) {
	if !by.Can(Operator) {
		return nil, berth.Errorf(berth.Denied, "role", "only an operator sees what sites have not done; ask with an operator's token")
	}
	return call(ctx, h, by.User, func(answer func([]Errand, error)) {
		list := []Errand{}
		for _, effect := range h.core.engine.Outbox() {
			if !by.Sites.Has(effect.Site) {
				continue
			}
			e := Errand{Number: effect.Number, Site: effect.Site, Reservation: effect.Reservation, Generation: effect.Generation, Remove: true}
			if k := h.core.card(effect.Reservation); k != nil {
				e.State, e.Since = k.state(), k.changed
				e.Remove = k.end != "" || k.promise == nil || !slices.ContainsFunc(k.promise.Allotments, func(a berth.Allotment) bool { return a.Resource.Site == effect.Site })
			}
			if k := h.sites[effect.Site]; k != nil {
				e.Trouble = k.at(effect.Reservation, effect.Generation).Trouble
			}
			list = append(list, e)
		}
		h.whenDurable(func(err error) { answer(list, err) })
	})
}

// PoolOutage is an outage of a pool with the names of its nodes, where a site tells them.
type PoolOutage struct {
	berth.Outage
	Nodes []string
}

// Outages returns what is out of use at the sites that a principal may see, and what is
// announced to be, in the order in which it was learned. Cost: O(outages × PEs), beside the
// loop.
func (h *Host) Outages(ctx context.Context, by Principal) ([]PoolOutage, error) {
	if !by.Can(Viewer) {
		return nil, berth.Errorf(berth.Denied, "role", "%q is no role; want viewer, user or operator", by.Role)
	}
	m, err := h.seen()
	if err != nil {
		return nil, err
	}
	list := []PoolOutage{}
	for _, o := range m.outages {
		if !by.Sites.Has(o.Resource.Site) {
			continue
		}
		list = append(list, h.withNodes(o))
	}
	return list, ctx.Err()
}

// withNodes adds the names of nodes that have a name.
func (h *Host) withNodes(o berth.Outage) PoolOutage {
	p := PoolOutage{Outage: o}
	if k := h.sites[o.Resource.Site]; k != nil {
		shares, _ := k.ground.Load().layout.Shares(o.Resource.Name, o.PEs) // what the layout does not know has no names
		for _, share := range shares {
			p.Nodes = append(p.Nodes, share.Node)
		}
	}
	return p
}
