package service_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

const day = 86_400

// daily asks for a reservation on each of some days, and lets each end.
func daily(t *testing.T, h *service.Host, c *clock, days int) (ids []string) {
	t.Helper()
	for range days {
		now := h.Now()
		ids = append(ids, fmt.Sprint("day-", now/day))
		submit(t, h, ann, berth.Rigid(ids[len(ids)-1], 0, now, now+5000, 2, 100))
		c.seconds.Add(day)
	}
	return ids
}

// What is older than asked for is dropped and nothing else; what is promised and what is
// remembered stays; the journal is valid from where it begins, and history says where that
// is. A second compaction goes on from the first.
func TestCompactionKeepsWhatIsYoungEnough(t *testing.T) {
	var c clock
	c.seconds.Store(100 * day)
	h, store := startOn(t, t.TempDir(), onePool(4), &c)
	ids := daily(t, h, &c, 20)
	now := h.Now()
	submit(t, h, ann, berth.Rigid("later", 0, now+5*day, now+6*day, 2, 100))
	before := everythingOf(t, h)
	dropped := uint64(0)
	for _, keep := range []berth.Duration{10 * day, 10 * day, 5 * day, 0} {
		first := now.Add(-keep)
		was := begin(t, store)
		done, err := h.Compact(t.Context(), root, keep)
		if err != nil {
			t.Fatal(err)
		}
		dropped += done.Dropped
		if is := begin(t, store); done.Dropped != is-was || done.First != is+1 || done.First != dropped+1 {
			t.Errorf("kept %d days: %+v, and the journal began after record %d, and begins after %d", keep/day, done, was, is)
		}
		if keep > 0 && (done.At < first || done.At > first+day) {
			t.Errorf("kept %d days: the first record is of %d; want between %d and a day later", keep/day, done.At, first)
		}
		if n := done.Dropped; n == 0 != (keep == 10*day && was > 0) {
			t.Errorf("kept %d days: %d dropped", keep/day, n)
		}
		verified(t, store, done.First-1)
		if after := everythingOf(t, h); !slices.Equal(after, before) {
			t.Errorf("kept %d days: there is %v, before there was %v", keep/day, after, before)
		}
		young, _, err := h.History(t.Context(), ann.By, "later")
		if keep > 0 && (err != nil || young.Since != 0 || len(young.List) == 0) {
			t.Errorf("of what is young enough %d things are told, since %d, %v", len(young.List), young.Since, err)
		}
		old, _, err := h.History(t.Context(), ann.By, ids[0])
		if want := done.At; err != nil || len(old.List) > 0 || old.Since == 0 || want != 0 && old.Since != want {
			t.Errorf("of what is older %d things are told, since %d, %v; want since %d", len(old.List), old.Since, err, want)
		}
	}
	if _, err := h.Compact(t.Context(), ann, 0); codeOf(err) != berth.Denied {
		t.Errorf("a user drops history: %v", err)
	}
	within := root
	within.By.Sites = service.NewSiteSet([]string{"west"})
	if _, err := h.Compact(t.Context(), within, 0); codeOf(err) != berth.Denied {
		t.Errorf("an operator of one site drops the history of all: %v", err)
	}
}

// A journal is compacted without a service too, up to its newest snapshot at most.
func TestCompactionOfAJournalNobodyServes(t *testing.T) {
	var c clock
	c.seconds.Store(100 * day)
	store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	h, err := service.Open(t.Context(), service.Options{Config: onePool(4), Journal: store, Version: "test", Clock: c.now})
	if err != nil {
		t.Fatal(err)
	}
	daily(t, h, &c, 5)
	now := h.Now()
	if done, err := service.Compact(t.Context(), store, now, "test", 0); err != nil || done.Dropped > 0 {
		t.Errorf("without a snapshot: %+v, %v", done, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	done, err := service.Compact(t.Context(), store, now-2*day, "test", 0)
	if err != nil || done.Dropped == 0 || done.At < now-2*day {
		t.Errorf("%+v, %v", done, err)
	}
	verified(t, store, done.First-1)
}

func begin(t *testing.T, store *sqlite.Store) uint64 {
	t.Helper()
	p, err := store.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p.Number
}

// verified fails the test unless a journal is valid and begins after a record.
func verified(t *testing.T, store journal.Store, begin uint64) {
	t.Helper()
	if v, err := service.Verify(t.Context(), store, nil); err != nil || v.From.Number != begin {
		t.Errorf("verified from %d to %d, %v; want from %d", v.From.Number, v.To.Number, err, begin)
	}
}

// everythingOf returns what is known of all reservations.
func everythingOf(t *testing.T, h *service.Host) (list []string) {
	t.Helper()
	there, err := everything(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range there {
		list = append(list, said(&r))
	}
	slices.Sort(list)
	return list
}

// A service that keeps its history for a time drops what is older by itself, and begins
// with the right state after a restart.
func TestHistoryIsKeptForATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		var mu sync.Mutex
		h, err := service.Open(t.Context(), service.Options{
			Config: onePool(4), Journal: store, Version: "test", KeepHistory: 10 * day,
			Log: slog.New(slog.NewTextHandler(locked{&mu, &log}, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			now := h.Now()
			submit(t, h, ann, berth.Rigid("", 0, now, now+5000, 2, 100))
			time.Sleep(day * time.Second)
			synctest.Wait()
			begin, err := store.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for rec, err := range store.Read(t.Context(), begin.Number+1) {
				if age := h.Now().Sub(rec.At); err != nil || age > 12*day {
					t.Errorf("record %d is %d days old, %v", rec.Number, age/day, err)
				}
				break
			}
		}
		last, err := store.Last(t.Context())
		if begin := begin(t, store); err != nil || begin == 0 || begin > last.Number/2+last.Number/4 {
			t.Errorf("the journal begins after record %d of %d, %v", begin, last.Number, err)
		}
		want := everythingOf(t, h)
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		verified(t, store, begin(t, store))
		again, err := service.Open(t.Context(), service.Options{Config: onePool(4), Journal: store, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		if got := everythingOf(t, again); !slices.Equal(got, want) {
			t.Errorf("after a restart there is %v, before there was %v", got, want)
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "history dropped"); n < 5 || strings.Contains(log.String(), "WARN") {
			t.Errorf("%d lines of the log say that history was dropped:\n%s", n, log.String())
		}
	})
}

type locked struct {
	mu  *sync.Mutex
	out *bytes.Buffer
}

func (l locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

// dropping is a journal that is compacted each time that a reader has asked where it
// begins and is about to read.
type dropping struct {
	*sqlite.Store
	before []berth.Time // what is dropped, one time after the other
}

func (d *dropping) Read(ctx context.Context, from uint64) iter.Seq2[journal.Record, error] {
	if len(d.before) > 0 {
		before := d.before[0]
		d.before = d.before[1:]
		if _, err := service.Compact(ctx, d.Store, before, "test", 0); err != nil {
			panic(err)
		}
	}
	return d.Store.Read(ctx, from)
}

// History is told while it is being dropped.
func TestHistoryIsToldWhileItIsDropped(t *testing.T) {
	var c clock
	c.seconds.Store(100 * day)
	store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	d := &dropping{Store: store}
	options := service.Options{Config: onePool(4), Journal: d, Version: "test", Clock: c.now}
	h, err := service.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	now := h.Now()
	submit(t, h, ann, berth.Rigid("old", 0, now+10, now+40*day, 2, 38*day))
	daily(t, h, &c, 20)
	if err := h.Close(); err != nil { // with a snapshot
		t.Fatal(err)
	}
	if h, err = service.Open(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	d.before = []berth.Time{now + 5*day, now + 10*day}
	past, looked, err := h.History(t.Context(), ann.By, "old")
	if err != nil || past.Since < now+10*day || looked == 0 || len(d.before) > 0 {
		t.Errorf("%d things are told, since %d, %d records looked at, %v", len(past.List), past.Since, looked, err)
	}
}

// BenchmarkAnswersBesideCompaction measures how long clients wait for their answers while
// nothing else goes on, and while the journal that was filled before is compacted.
func BenchmarkAnswersBesideCompaction(b *testing.B) {
	for _, records := range []int{2_000, 200_000} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			store, err := sqlite.Open(b.TempDir(), sqlite.Options{})
			if err != nil {
				b.Fatal(err)
			}
			options := crashOptions(store)
			options.SnapshotEvery, options.Keep = 1<<40, 1000
			h, err := service.Open(b.Context(), options)
			if err != nil {
				b.Fatal(err)
			}
			ask := func(clients, each int, until func() bool) []time.Duration {
				var mu sync.Mutex
				var took []time.Duration
				var asking sync.WaitGroup
				for client := range clients {
					asking.Go(func() {
						rng := rand.New(rand.NewPCG(uint64(client), 9))
						for n := 0; n < each || until != nil && !until(); n++ {
							ready := h.Now() + 3600 + berth.Time(rng.IntN(500_000))
							began := time.Now()
							a, err := h.Submit(b.Context(), ann, berth.Rigid("", 0, ready, ready+2000, 1, 1000))
							if err == nil && a.Reservation.State == service.Confirmed {
								_, err = h.Release(b.Context(), ann, a.Reservation.ID)
							}
							if err != nil {
								b.Error(err)
								return
							}
							mu.Lock()
							took = append(took, time.Since(began)/2)
							mu.Unlock()
						}
					})
				}
				asking.Wait()
				slices.Sort(took)
				return took
			}
			ask(64, records/128, nil)
			p99 := func(took []time.Duration) float64 { return float64(took[len(took)*99/100].Microseconds()) / 1000 }
			for b.Loop() {
				quiet := ask(8, 500, nil)
				var over atomic.Bool
				go func() {
					defer over.Store(true)
					done, err := h.Compact(context.Background(), root, 0)
					if err != nil || done.Dropped < uint64(records)/2 {
						b.Errorf("%+v, %v", done, err)
					}
					b.Logf("%+v", done)
				}()
				beside := ask(8, 0, over.Load)
				b.ReportMetric(p99(quiet), "p99-quiet-ms")
				b.ReportMetric(p99(beside), "p99-compacting-ms")
				b.ReportMetric(float64(len(quiet)), "quiet-answers")
				b.ReportMetric(float64(len(beside)), "beside-answers")
				ask(64, records/128, nil)
			}
			if err := h.Close(); err != nil {
				b.Error(err)
			}
			if err := store.Close(); err != nil {
				b.Error(err)
			}
		})
	}
}
