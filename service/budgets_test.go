package service_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// What a budget is charged is the same after restarts and after the journal is compacted, and what was used is told from
// the records by the same rule: those that are over as charged, live ones as promised.
func TestBudgetsOverRestartsAndCompaction(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	dir, config := t.TempDir(), onePool(8)
	phys := policy.Scope{Account: "phys"}
	config.Limits = policy.Limits{{Scope: phys, Name: policy.LimitBudget, Value: 2000}, {Scope: phys, Name: policy.LimitMonthBudget, Value: 2000}}
	h, store := startOn(t, dir, config, c)
	ask := func(who service.Ask, id string, start, end berth.Time, noShow berth.Duration) *berth.Refusal {
		t.Helper()
		r := berth.Rigid(id, 0, start, end, 2, end.Sub(start))
		r.Account, r.NoShow = "phys", noShow
		return submit(t, h, who, r).Reservation.Refusal
	}
	at := func(now int64) {
		t.Helper()
		c.seconds.Store(now)
		if _, err := h.Quotas(t.Context(), root.By, []service.Principal{ann.By}); err != nil { // what is over by now does not count
			t.Fatal(err)
		}
	}
	again := func() {
		t.Helper()
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		h, store = startOn(t, dir, config, c)
	}
	charged := func(want, held int64) {
		t.Helper()
		list, err := h.AccountQuotas(t.Context(), ann.By)
		if err != nil || len(list) != 1 || list[0].Account != "phys" {
			t.Fatal(list, err)
		}
		for _, l := range list[0].Limits {
			if (l.Name == policy.LimitBudget || l.Name == policy.LimitMonthBudget) && (!l.Limited || l.Used != want || l.Held != held) {
				t.Errorf("%s: %d used, %d of it held, want %d and %d", l.Name, l.Used, l.Held, want, held)
			}
		}
	}
	for id, no := range map[string]*berth.Refusal{
		"whole": ask(ann, "whole", 1100, 1200, 0), "early": ask(ann, "early", 1100, 1400, 0), "gone": ask(bob, "gone", 1100, 1200, 20), "later": ask(ann, "later", 3000, 3100, 0),
	} {
		if no != nil {
			t.Fatalf("%s: %+v", id, no)
		}
	}
	charged(1200, 1200)
	at(1150)
	charged(1200, 1000) // gone is not used
	if _, err := h.Release(t.Context(), ann, "early"); err != nil {
		t.Fatal(err)
	}
	charged(700, 400)
	at(1300)
	charged(700, 200)
	again()
	charged(700, 200)
	usage := func(from, to policy.Month) []service.Used {
		t.Helper()
		used, _, err := h.Usage(t.Context(), root.By, from, to)
		if err != nil {
			t.Fatal(err)
		}
		return used.List
	}
	january := policy.Month(1970 * 12)
	want := []service.Used{
		{User: "ann", Account: "phys", Month: january, Reservations: 3, Charged: 300, Held: 200, Given: service.Given{Promised: 300, Delivered: 300}},
		{User: "bob", Account: "phys", Month: january, Reservations: 1, NoShows: 1, Charged: 200, Given: service.Given{Promised: 40, Delivered: 40}},
	}
	if got := usage(january, january+1); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("used are %+v, want %+v", got, want)
	}
	if got := usage(january+1, january+9); len(got) != 0 {
		t.Errorf("in the months after: %+v", got)
	}
	if own, _, err := h.Usage(t.Context(), bob.By, january, january+1); err != nil || len(own.List) != 1 || own.List[0] != want[1] {
		t.Errorf("bob is told of %+v, %v", own, err)
	}
	c.seconds.Store(2000)
	if done, err := h.Compact(t.Context(), root, 0); err != nil || done.Dropped == 0 {
		t.Fatal(done, err)
	}
	charged(700, 200)
	again()
	charged(700, 200)
	if no := ask(bob, "more", 3000, 3700, 0); no == nil || no.Exceeded == nil || no.Exceeded.Limit != "budget" || no.Exceeded.Account != "phys" || no.Exceeded.Asked != 2100 {
		t.Errorf("%+v, want it beyond the budget by 100", no)
	}
	at(3200) // later is over, which was promised before the records that are kept
	charged(700, 0)
	used, _, err := h.Usage(t.Context(), root.By, january, january+1)
	if err != nil || used.Since == 0 || len(used.List) != 1 || used.List[0].Charged != 200 || used.List[0].User != "ann" {
		t.Errorf("after compaction: %+v, %v; want 200 PE-seconds of ann", used, err)
	}
}

// lacking is a journal that no longer keeps what it is asked for; it cannot drop records, so that they come back as little.
type lacking struct {
	journal.Store
	lacks  bool
	cancel func() // at each read
	reads  int
}

func (l *lacking) Read(ctx context.Context, from uint64) iter.Seq2[journal.Record, error] {
	if !l.lacks {
		return l.Store.Read(ctx, from)
	}
	return func(yield func(journal.Record, error) bool) {
		if l.reads++; l.cancel != nil {
			l.cancel()
		}
		if l.reads > 100 { // so that a loop ends
			yield(journal.Record{}, io.ErrUnexpectedEOF)
			return
		}
		yield(journal.Record{}, berth.Errorf(berth.NotFound, "number", "record %d is not kept", from))
	}
}

// compacting is such a journal that can drop records.
type compacting struct {
	*lacking
	journal.Compactor
}

// What was used is not counted for ever anew where the records are not there: the answer ends with the context, and after some tries.
func TestUsageEndsWhereRecordsAreGone(t *testing.T) {
	for name, drops := range map[string]bool{"a journal that drops nothing": false, "one that is compacted": true} {
		dir, c := t.TempDir(), &clock{}
		store, err := sqlite.Open(dir, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l := &lacking{Store: store}
		options := service.Options{Config: onePool(8), Journal: l, Version: "test", Clock: c.now}
		if drops {
			options.Journal = compacting{l, store}
		}
		h, err := service.Open(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		submit(t, h, ann, berth.Rigid("a", 0, 10, 20, 1, 10))
		l.lacks = true
		_, _, err = h.Usage(t.Context(), root.By, 0, 1)
		if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != berth.Unavailable || l.reads > 10 {
			t.Errorf("%s: %v after %d reads", name, err, l.reads)
		}
		ctx, cancel := context.WithCancel(t.Context())
		l.cancel, l.reads = cancel, 0
		if _, _, err = h.Usage(ctx, root.By, 0, 1); !errors.Is(err, context.Canceled) || l.reads != 1 {
			t.Errorf("%s, when the context has ended: %v after %d reads", name, err, l.reads)
		}
		if err := errors.Join(h.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	}
}
