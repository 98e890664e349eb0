package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
)

// Whole is Verify for a copy that is to be restored: one in which only this program would have decided otherwise, as another version may, is whole. otherwise
// says where, and nil that it would not. The chain is checked to its end, and the records are followed to it.
func Whole(ctx context.Context, store journal.Store) (v Verified, otherwise error, err error) {
	v, err = Verify(ctx, store, nil)
	if _, differs := errors.AsType[*record.Difference](err); !differs {
		return v, nil, err
	}
	otherwise = err
	core, err := history(ctx, store)
	if err != nil {
		return v, otherwise, err
	}
	v.To, v.Records, v.State = core.position, int(core.position.Number-v.From.Number), core.engine.Hash()
	return v, otherwise, nil
}

// Since is what a journal has, or knows otherwise, that an earlier copy of it does not.
type Since struct {
	// Records is how many follow the end of the copy, From and To when the first and the last of them are of, and First and Last their numbers.
	Records  uint64
	First    uint64
	Last     uint64
	From, To berth.Time
	// Other says that the journal does not continue the copy: they are not of one history.
	Other bool
	// Dropped is how many of the records behind the copy's end are no longer in the journal.
	Dropped uint64
	// Damage ends what can be read of the journal; nil if it was read to its end.
	Damage *journal.Damage
	// Missing are the promises that the journal has and the copy does not: those that are not over, then those that are, by id.
	Missing []Promised
	// Again are those that are not over in the copy, and were over in the journal before their time.
	Again []Promised
	// Otherwise are those that the copy has with another place, time or state, as the journal has them.
	Otherwise []Promised
	// Sites are the managed sites of the copy and the journal, by name.
	Sites []SiteSince
}

// Promised is a promise as a journal has it.
type Promised struct {
	ID, User   string
	State      State
	Allotments []berth.Allotment
}

// SiteSince is what a service started on the copy would find at a managed site, by what the journal knows of that.
type SiteSince struct {
	Name string
	// Unknown are the ids of promises that the site has and the copy does not know: the site is not served while it has them.
	Unknown []string
	// Absent are those that the copy has, and the site does not have any more: they are made again.
	Absent []string
	// Otherwise are those that the site has otherwise than the copy: they are changed back.
	Otherwise []string
}

// Compare says what a journal has that an earlier copy of it does not. The journal may be damaged, and may have been
// compacted since. What is over and was forgotten before a snapshot is in neither. Cost: both are followed from their newest snapshot on.
func Compare(ctx context.Context, old, copied journal.Store) (s Since, err error) {
	was, err := newest(ctx, copied, &s)
	if err != nil {
		return s, err
	}
	if was == nil {
		return s, berth.Errorf(berth.Invalid, "journal", "the copy has no record")
	}
	is, err := newest(ctx, old, &s)
	if err != nil || is == nil {
		return s, err
	}
	if err := s.span(ctx, old, copied, was.position, is.position); err != nil {
		return s, err
	}
	until := s.To
	if until == 0 {
		until, err = timeOf(ctx, copied, was.position.Number)
	}
	s.promises(was, is, until)
	s.sites(was, is)
	return s, err
}

// newest follows a journal from its newest snapshot on, up to a damage if there is one; nil if it is empty.
func newest(ctx context.Context, store journal.Store, s *Since) (core *Core, err error) {
	snapshot, err := store.Snapshot(ctx, math.MaxUint64)
	if err != nil {
		return nil, err
	}
	if snapshot.Data != nil {
		if core, err = restoreCore(snapshot.Data, snapshot.Position, "", math.MaxInt); err != nil {
			return nil, fmt.Errorf("the snapshot at record %d: %w", snapshot.Number, err)
		}
	}
	core, err = historyBehind(ctx, store, core, snapshot.Number, nil)
	if errors.As(err, &s.Damage) {
		err = nil
	}
	return core, err
}

// span finds which records follow the copy's end.
func (s *Since) span(ctx context.Context, old, copied journal.Store, end, last journal.Position) error {
	begin := journal.Position{}
	if c, drops := old.(journal.Compactor); drops {
		var err error
		if begin, err = c.Begin(ctx); err != nil {
			return err
		}
	}
	common, in, want := end, old, end // where both have a record
	if last.Number < end.Number {
		common, in, want = last, copied, last
	}
	if begin.Number < common.Number {
		hash, err := hashOf(ctx, in, common.Number)
		if err != nil {
			return err
		}
		s.Other = hash != want.Hash
	} else if begin.Number == common.Number {
		s.Other = begin.Hash != common.Hash
	}
	if last.Number <= end.Number || s.Other {
		return nil
	}
	s.First, s.Last = max(end.Number, begin.Number)+1, last.Number
	s.Records, s.Dropped = s.Last-end.Number, s.First-end.Number-1
	var err error
	if s.First <= s.Last {
		if s.From, err = timeOf(ctx, old, s.First); err == nil {
			s.To, err = timeOf(ctx, old, s.Last)
		}
	}
	return err
}

// hashOf returns the hash of a record; of none the zero value.
func hashOf(ctx context.Context, log journal.Reader, number uint64) (journal.Hash, error) {
	for rec, err := range log.Read(ctx, number) {
		return rec.Hash, err
	}
	return journal.Hash{}, ctx.Err()
}

// promises compares what is promised. until is when the journal ends.
func (s *Since) promises(was, is *Core, until berth.Time) {
	is.cards.Scan(func(k *card) bool {
		before := was.card(k.id)
		switch {
		case k.promise == nil || k.asking || k.end == Refused:
		case before == nil || before.promise == nil && before.end == "" || before.asking:
			s.Missing = append(s.Missing, k.promised())
		case k.end == "" && before.end == "" && differs(k.promise, before.promise):
			s.Otherwise = append(s.Otherwise, k.promised())
		}
		return true
	})
	slices.SortStableFunc(s.Missing, func(a, b Promised) int {
		if x, y := a.State.Over(), b.State.Over(); x != y {
			if y {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.ID, b.ID)
	})
	was.cards.Scan(func(before *card) bool {
		if before.end != "" || before.promise == nil || before.asking || endOf(before.promise) <= until {
			return true
		}
		if k := is.card(before.id); k != nil && k.end != "" {
			s.Again = append(s.Again, k.promised())
		}
		return true
	})
}

func (k *card) promised() Promised {
	return Promised{ID: k.id, User: k.request.User, State: k.state(), Allotments: k.promise.Allotments}
}

func endOf(r *berth.Reservation) (end berth.Time) {
	for i := range r.Allotments {
		end = max(end, r.Allotments[i].End)
	}
	return end
}

// differs reports whether a promise has another place or length, or was confirmed since.
func differs(a, b *berth.Reservation) bool {
	same := func(x, y berth.Allotment) bool {
		return x.Resource == y.Resource && x.Start == y.Start && x.End == y.End && x.NPE == y.NPE
	}
	return (a.State == berth.Held) != (b.State == berth.Held) || !slices.EqualFunc(a.Allotments, b.Allotments, same)
}

// sites compares what managed sites have with what the copy promises.
func (s *Since) sites(was, is *Core) {
	all := map[string]*SiteSince{}
	for _, core := range []*Core{was, is} {
		for i := range core.config.Sites {
			if site := &core.config.Sites[i]; site.Managed && all[site.Name] == nil {
				all[site.Name] = &SiteSince{Name: site.Name}
			}
		}
	}
	each := func(list []Promised, do func(p *Promised, at *SiteSince)) {
		for i := range list {
			done := map[string]bool{}
			for _, a := range list[i].Allotments {
				if at := all[a.Resource.Site]; at != nil && !done[at.Name] {
					done[at.Name] = true
					do(&list[i], at)
				}
			}
		}
	}
	each(s.Missing, func(p *Promised, at *SiteSince) {
		if !p.State.Over() && is.delivered[at.Name][p.ID] > 0 && was.card(p.ID) == nil {
			at.Unknown = append(at.Unknown, p.ID)
		}
	})
	each(s.Again, func(p *Promised, at *SiteSince) { at.Absent = append(at.Absent, p.ID) })
	each(s.Otherwise, func(p *Promised, at *SiteSince) {
		if is.delivered[at.Name][p.ID] > 0 {
			at.Otherwise = append(at.Otherwise, p.ID)
		}
	})
	for _, at := range all {
		s.Sites = append(s.Sites, *at)
	}
	slices.SortFunc(s.Sites, func(a, b SiteSince) int { return cmp.Compare(a.Name, b.Name) })
}

// Live returns the promises of a journal that are not over, by id, and the managed sites. Cost: it is followed from its newest snapshot on.
func Live(ctx context.Context, store journal.Store) (list []Promised, managed []string, err error) {
	core, err := newest(ctx, store, new(Since))
	if err != nil || core == nil {
		return nil, nil, err
	}
	core.cards.Scan(func(k *card) bool {
		if k.promise != nil && k.end == "" && !k.asking {
			list = append(list, k.promised())
		}
		return true
	})
	for i := range core.config.Sites {
		if site := &core.config.Sites[i]; site.Managed {
			managed = append(managed, site.Name)
		}
	}
	return list, managed, nil
}
