package service

import (
	"context"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal"
)

// Fits reports whether all that is promised in a journal has a place in a configuration, as a start with it would find. If
// not, the error is of code Invalid and names a reservation. A site without pools, which tells them
// when it is asked, is taken as it was last. Nothing is written, and a service may go on writing the journal. Cost: that of
// a start.
func Fits(ctx context.Context, store journal.Store, config engine.Config) error {
	return whileKept(func() error {
		core, err := lastCore(ctx, store)
		if err != nil || core == nil {
			return err
		}
		config := config
		config.Sites = asLast(config.Sites, core.config.Sites)
		return unplaced(core.configure(config))
	})
}

// lastCore returns the core at the end of a journal, nil if that has no record.
func lastCore(ctx context.Context, store journal.Store) (*Core, error) {
	snapshot, err := store.Snapshot(ctx, ^uint64(0))
	if err != nil {
		return nil, err
	}
	if snapshot.Data == nil {
		return history(ctx, store)
	}
	return Recover(ctx, store, engine.Config{}, "", defaultKeep) // the snapshot has the configuration
}

// asLast returns sites with the pools and partitions that they had, for those that have none. One that had none either, at which
// nothing can be promised, has one PE.
func asLast(list, last []berth.Site) []berth.Site {
	list = slices.Clone(list)
	for i := range list {
		s := &list[i]
		if len(s.Pools) > 0 {
			continue
		}
		s.Pools = []berth.Pool{{Name: "untold", PEs: 1, Binding: berth.Late}}
		if at := slices.IndexFunc(last, func(was berth.Site) bool { return was.Name == s.Name }); at >= 0 {
			s.Pools, s.Partitions = last[at].Pools, last[at].Partitions
		}
	}
	return list
}
