package service

import (
	"context"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
)

// Nodes come to a site, leave it and change while the service runs. Its pools and its layout
// then change together, in one step of the loop; who reads them beside the loop gets those of
// before or of after. PEs keep their numbers: what is new comes behind, and what is gone is out
// of use.

// ground is which nodes a site has, as PEs of pools. It is not written again.
type ground struct {
	layout *site.Layout
	// late are the pools that bind late; of those of them that have an entry in ahead promises
	// have their PEs so long before their start.
	late  map[string]bool
	ahead map[string]berth.Duration
	// nodes are the pools whose PEs are whole nodes.
	nodes map[string]bool
}

func newGround(layout *site.Layout, on *berth.Site) *ground {
	g := &ground{layout: layout, late: map[string]bool{}, ahead: map[string]berth.Duration{}, nodes: map[string]bool{}}
	for i := range on.Pools {
		if p := &on.Pools[i]; p.Binding == berth.Late {
			g.late[p.Name], g.ahead[p.Name] = true, p.NameAhead
		}
		first, _ := layout.Shares(on.Pools[i].Name, berth.PEsOf(0))
		g.nodes[on.Pools[i].Name] = len(first) > 0 && first[0].Cores.Empty()
	}
	return g
}

// Meantime is what may be used by what is done beside looking after a site.
type Meantime struct {
	// Changed gets something when a look shows other nodes than those that are known.
	Changed <-chan struct{}
	// Take puts the pools and partitions of the site in force, and the layout that goes with
	// them. PEs must have kept their numbers. Nothing is changed by an error, which is of code
	// Invalid if there is no place for what is promised.
	Take func(ctx context.Context, as berth.Site, layout *site.Layout) error
}

// meantime returns what may be used beside looking after a site.
func (h *Host) meantime(k *keeper) *Meantime {
	return &Meantime{Changed: k.changed, Take: func(ctx context.Context, as berth.Site, layout *site.Layout) error {
		_, err := call(ctx, h, "", func(answer func(struct{}, error)) {
			if err := h.takeIn(k, &as, layout); err != nil {
				answer(struct{}{}, unplaced(err))
				return
			}
			h.whenDurable(func(err error) { answer(struct{}{}, err) })
		})
		return err
	}}
}

// takeIn has a site be as it is described now.
func (h *Host) takeIn(k *keeper, as *berth.Site, layout *site.Layout) error {
	config := h.core.config
	config.Sites = slices.Clone(config.Sites) // the old ones are read beside the loop
	at := slices.IndexFunc(config.Sites, func(s berth.Site) bool { return s.Name == k.name })
	config.Sites[at].Pools, config.Sites[at].Partitions = as.Pools, as.Partitions
	rec, err := h.core.Configure(h.clock(), config)
	if err != nil {
		return err
	}
	k.ground.Store(newGround(layout, &config.Sites[at]))
	h.grounds.Add(1)
	h.fleet.Store(&config.Sites)
	if rec != nil {
		h.core.diarist.stop() // pictures are divided by the size of their pool, so they are drawn anew
		for i := range as.Pools {
			h.core.touchPool(touch{berth.PoolID(k.name, as.Pools[i].Name), h.clock(), berth.Forever})
		}
		h.persist(rec, consequences{})
	}
	k.suited = false
	if k.last != nil && !k.manager.Shadow { // what runs on new nodes is not free, and what is gone is out of use
		h.tellOutOfUse(k, k.last)
	}
	k.agent.Forget()
	k.poke()
	return nil
}

// noticeNodes has it found out what the nodes of a site are, if a look shows others than those
// that are known.
func (k *keeper) noticeNodes(state *site.State) {
	layout, has := k.ground.Load().layout, 0
	for i := range state.Nodes {
		if layout.Has(state.Nodes[i].Name) {
			has++
		}
	}
	if has == len(state.Nodes) && has == layout.Len() {
		return
	}
	select {
	case k.changed <- struct{}{}:
	default: // it is told already
	}
}
