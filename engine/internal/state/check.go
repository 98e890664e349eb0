package state

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"iter"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// Check recomputes everything that follows from the ledger — calendars, timers and
// idle sets — and reports the first difference from what the state holds. Nil
// means that no PE is promised twice and that nothing is booked without an owner.
// Cost: that of Restore.
func (s *State) Check(config Config) error {
	again, err := Restore(config, s.Snapshot())
	if err != nil {
		return fmt.Errorf("the ledger contradicts itself: %w", err)
	}
	for i := range s.pools {
		p := &s.pools[i]
		if err := sameRecords(s.View(i).Records(), again.View(i).Records()); err != nil {
			return fmt.Errorf("calendar of %v: %w", p.id, err)
		}
		if err := sameRecords(s.planned.records(i), again.planned.records(i)); err != nil {
			return fmt.Errorf("calendar of %v with plans: %w", p.id, err)
		}
		if !slices.Equal(p.idle, again.pools[i].idle) {
			return fmt.Errorf("idle PEs of %v differ from those that the ledger leaves", p.id)
		}
	}
	for i, st := range s.order {
		if err := sameRecords(st.View().Records(), again.order[i].View().Records()); err != nil {
			return fmt.Errorf("calendar of %v: %w", st.id, err)
		}
	}
	has, want := s.timers.inOrder(), again.timers.inOrder()
	same := func(a, b *timer) bool {
		return a.At == b.At && a.Class == b.Class && a.Sequence == b.Sequence && a.Part == b.Part && a.id() == b.id()
	}
	if !slices.EqualFunc(has, want, same) {
		return fmt.Errorf("%d timers differ from the %d that the ledger has", len(has), len(want))
	}
	if !slices.EqualFunc(s.Degraded(), again.Degraded(), func(a, b *Entry) bool { return a.ID() == b.ID() }) {
		return fmt.Errorf("%d reservations are degraded, in the ledger %d", len(s.degraded), len(again.degraded))
	}
	if err := s.checkApart(); err != nil {
		return err
	}
	if !slices.EqualFunc(s.Named(), again.Named(), func(a, b *Entry) bool { return a.ID() == b.ID() }) {
		return fmt.Errorf("%d reservations have the names of their PEs, in the ledger %d", len(s.named), len(again.named))
	}
	return s.checkHolders(again)
}

// checkApart compares the list of what is held or active, what is due by it, and how much is in each pool, with what is live.
func (s *State) checkApart() error {
	for at := range 5 {
		until := s.now + berth.Time(at*at*at*40)
		soon := s.Soon(until, func(*Entry) bool { return true })
		slices.SortFunc(soon, func(a, b *Entry) int { return cmp.Compare(a.r.Sequence, b.r.Sequence) })
		want := s.Select(func(e *Entry) bool { return e.Start() <= until })
		if !slices.Equal(soon, want) {
			return fmt.Errorf("%d reservations have started or start until %d, in the ledger %d", len(soon), until, len(want))
		}
		from := until - berth.Time(20*at)
		within := s.Within(from, until, func(*Entry) bool { return true })
		slices.SortFunc(within, func(a, b *Entry) int { return cmp.Compare(a.r.Sequence, b.r.Sequence) })
		if want := slices.DeleteFunc(want, func(e *Entry) bool { return e.End() <= from }); !slices.Equal(within, want) {
			return fmt.Errorf("%d reservations are between %d and %d, in the ledger %d", len(within), from, until, len(want))
		}
	}
	running, waiting := make([]int, len(s.pools)), make([]int, len(s.pools))
	s.Visit(func(e *Entry) {
		for part := range e.r.Allotments {
			i, _ := s.Index(e.r.Allotments[part].Resource)
			switch {
			case e.r.State != berth.Active:
				waiting[i]++
			case e.Holds(part):
				running[i]++
			}
		}
	})
	if run, wait := s.Loads(); !slices.Equal(run, running) || !slices.Equal(wait, waiting) {
		return fmt.Errorf("%v parts run and %v wait in the pools, in the ledger %v and %v", run, wait, running, waiting)
	}
	active, want := s.Active(func(*Entry) bool { return true }), s.Select(func(e *Entry) bool { return e.r.State == berth.Active })
	if !slices.Equal(active, want) {
		return fmt.Errorf("%d reservations are active, in the ledger %d", len(active), len(want))
	}
	for i := range s.pools {
		id := s.pools[i].id
		here, want := s.running(id), s.Active(func(e *Entry) bool { return e.in(id) })
		if !slices.Equal(here, want) {
			return fmt.Errorf("%d reservations are active in %v, in the ledger %d", len(here), id, len(want))
		}
	}
	return nil
}

// checkHolders compares what holders have with what the ledger leaves them.
func (s *State) checkHolders(again *State) error {
	l, want := &s.ledger, &again.ledger
	if l.of.len() != want.of.len() {
		return fmt.Errorf("%d users, accounts, QOS and partitions hold something, in the ledger %d", l.of.len(), want.of.len())
	}
	for _, h := range l.of.sorted() {
		for i := range s.pools {
			id := s.pools[i].id
			if p, counted := l.of[h.kind][h.name].promised[id]; counted {
				if err := p.check(); err != nil {
					return fmt.Errorf("what %s is promised of %v: %w", h.text(), id, err)
				}
				if kept, now := slices.Collect(p.Steps(0)), l.promisedNow(h, id); !slices.Equal(kept, now) {
					return fmt.Errorf("%s is promised %v of %v, in the ledger %v", h.text(), kept, id, now)
				}
			}
		}
	}
	for _, h := range l.of.sorted() {
		if s.Usage(h) != again.Usage(h) {
			return fmt.Errorf("%s holds %+v, in the ledger %+v", h.text(), s.Usage(h), again.Usage(h))
		}
	}
	for _, e := range l.inOrder() {
		if e.vacant {
			return fmt.Errorf("%q has no place", e.ID())
		}
	}
	has, owned := l.owners(), want.owners()
	if !slices.Equal(has, owned) {
		return fmt.Errorf("%v have something that is live, in the ledger %v", has, owned)
	}
	for _, h := range has {
		if s.Open(h) != again.Open(h) {
			return fmt.Errorf("%s has %d that are not over, in the ledger %d", h.text(), s.Open(h), again.Open(h))
		}
	}
	return nil
}

func sameRecords(a, b iter.Seq[calendar.Record]) error {
	has, want := slices.Collect(a), slices.Collect(b)
	for i := range max(len(has), len(want)) {
		if i >= len(has) || i >= len(want) || has[i].Time != want[i].Time ||
			has[i].Free != want[i].Free || !has[i].Busy.Equal(want[i].Busy) {
			return fmt.Errorf("record %d of %d differs from those of the ledger, %d", i, len(has), len(want))
		}
	}
	return nil
}

// Hash returns the SHA-256, in hex, of the state: of its snapshot and of every
// calendar's records, which the snapshot does not contain.
func (s *State) Hash(plans bool) string {
	h := sha256.New()
	h.Write(s.Snapshot())
	for i := range s.pools {
		hashRecords(h, s.View(i).Records())
		if plans {
			hashRecords(h, s.planned.records(i))
		}
	}
	for _, st := range s.order {
		hashRecords(h, st.View().Records())
	}
	return hex.EncodeToString(h.Sum(nil))
}

func hashRecords(h hash.Hash, records iter.Seq[calendar.Record]) {
	var buf []byte
	for record := range records {
		buf = binary.AppendVarint(buf[:0], int64(record.Time))
		buf = binary.AppendVarint(buf, int64(record.Free))
		for _, run := range record.Busy.Runs() {
			buf = binary.AppendVarint(buf, int64(run.Lo))
			buf = binary.AppendVarint(buf, int64(run.Hi))
		}
		h.Write(buf)
	}
	h.Write([]byte{0})
}
