package service

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/site"
)

// faulty opens a service on a journal in a folder, which keeps faults too.
func faulty(t *testing.T, folder string, managers map[string]Manager) (*Host, *sqlite.Store, error) {
	t.Helper()
	store, err := sqlite.Open(folder, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := berth.Site{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Late}}}
	s.Managed = len(managers) > 0
	h, err := Open(t.Context(), Options{
		Config: engine.Config{Sites: []berth.Site{s}}, Journal: store, Version: "test", FaultFolder: folder, Managers: managers,
	})
	return h, store, err
}

// keptFault reads the one fault that is kept in a folder.
func keptFault(t *testing.T, folder string) (f Fault) {
	t.Helper()
	files := kept(folder)
	if len(files) == 0 {
		t.Fatal("no fault is kept")
	}
	data, err := os.ReadFile(files[len(files)-1])
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// A panic in the engine stops the service, which answers no one and applies nothing. It
// says at which record, by which event and where in the program it was; a second one at
// the same place says that starting again does not help, and what was promised before is
// there whatever happens.
func TestAPanicInTheEngineStopsTheServiceWithItsRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		for life := 1; life <= 3; life++ {
			h, store, err := faulty(t, folder, nil)
			if err != nil {
				t.Fatal(err)
			}
			now := h.Now()
			if life == 1 {
				if _, err := h.Submit(t.Context(), somebody, berth.Rigid("before", 0, now+1000, now+5000, 2, 100)); err != nil {
					t.Fatal(err)
				}
			} else if r, err := h.Get(t.Context(), somebody.By, "before"); err != nil || r.State != Confirmed {
				t.Fatalf("what was promised before is %s, %v", r.State, err)
			}
			last := h.core.position.Number
			answered := make(chan error, 1)
			go func() {
				_, err := call(t.Context(), h, "", func(answer func(struct{}, error)) {
					request := berth.Rigid("poison", 0, now+1000, now+5000, 2, 100)
					event := engine.Submit(&request)
					h.core.engine = nil
					h.core.apply(now, &event)
					answer(struct{}{}, nil)
				})
				answered <- err
			}()
			<-h.Stopped()
			if err := h.Close(); err != nil {
				t.Errorf("life %d: %v", life, err)
			}
			err = <-answered
			if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != berth.Unavailable {
				t.Errorf("life %d: it was answered %v", life, err)
			}
			var f *Fault
			if err := h.Err(); !errors.As(err, &f) {
				t.Fatalf("life %d: it stopped by %v", life, err)
			}
			if f.Record != last+1 || f.Kind != string(engine.EventSubmit) || f.Doing != "deciding" || f.Times != life || f.Again() != (life > 1) {
				t.Errorf("life %d: %+v, want record %d", life, f, last+1)
			}
			if !strings.Contains(f.Error(), "nothing of it was applied") || strings.Contains(f.Error(), "starting again does not help") != (life > 1) {
				t.Errorf("life %d: %s", life, f)
			}
			written := keptFault(t, folder)
			if !strings.Contains(written.Stack, "(*Core).apply") || !strings.Contains(string(written.Event), `"poison"`) || len(written.Payload) == 0 || written.Version != "test" || written.Times != life {
				t.Errorf("life %d: kept: %+v", life, written)
			}
			if is, err := store.Last(t.Context()); err != nil || is.Number != last {
				t.Errorf("life %d: the journal ends with record %d, %v; want %d", life, is.Number, err, last)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// broken is a site whose adapter panics.
type broken struct{}

func (broken) Describe(context.Context) (*site.Description, error) { return &site.Description{}, nil }

func (broken) Observe(context.Context) (*site.State, error) { panic("the adapter is wrong") }

// A panic of what looks after a site stops the service at the same boundary: a site that
// without its keeper would break its promises silently.
func TestAPanicOfAKeeperStopsTheService(t *testing.T) {
	folder := t.TempDir()
	h, store, err := faulty(t, folder, map[string]Manager{"site": {Kind: "broken", Adapter: broken{}, Layout: &site.Layout{}, Every: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	<-h.Stopped()
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if f := keptFault(t, folder); f.Doing != "looking after site site" || f.What != "the adapter is wrong" || !strings.Contains(f.Stack, "broken") {
		t.Errorf("%+v", f)
	}
	if f := faultOf(h.Err()); f == nil || f.Again() {
		t.Errorf("it stopped by %v", h.Err())
	}
}

// What goes on beside a keeper is behind the same boundary.
func TestAPanicBesideAKeeperStopsTheService(t *testing.T) {
	folder := t.TempDir()
	h, store, err := faulty(t, folder, map[string]Manager{"site": {
		Kind: "silent", Adapter: silent{}, Layout: &site.Layout{}, Every: time.Second, Meanwhile: func(context.Context, *Meantime) { panic("it asks wrongly") },
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	<-h.Stopped()
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	if f := keptFault(t, folder); f.Doing != "asking site site what it is" || f.What != "it asks wrongly" {
		t.Errorf("%+v", f)
	}
}

// silent is a site that does not answer.
type silent struct{ broken }

func (silent) Observe(context.Context) (*site.State, error) {
	return nil, site.Errorf(site.Unreachable, "observe", "no one there")
}

// poorStore is a journal whose adapter panics.
type poorStore struct {
	*sqlite.Store
	appends, reads bool
}

func (s *poorStore) Append(ctx context.Context, records ...journal.Record) error {
	if s.appends {
		panic("the journal's adapter is wrong")
	}
	return s.Store.Append(ctx, records...)
}

func (s *poorStore) Read(ctx context.Context, from uint64) iter.Seq2[journal.Record, error] {
	if s.reads {
		panic("the journal's adapter is wrong")
	}
	return s.Store.Read(ctx, from)
}

// A panic of what writes the journal stops the service, which does not answer those who wait for
// the record; one of what reads it at a start is the start's error. Both are kept.
func TestAPanicOfTheJournalStopsTheService(t *testing.T) {
	folder := t.TempDir()
	store, err := sqlite.Open(folder, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	poor := &poorStore{Store: store}
	options := Options{
		Config: engine.Config{Sites: []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Late}}}}}, Journal: poor, FaultFolder: folder,
	}
	h, err := Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	now := h.Now()
	if _, err := h.Submit(t.Context(), somebody, berth.Rigid("before", 0, now+1000, now+5000, 2, 100)); err != nil {
		t.Fatal(err)
	}
	number := h.core.position.Number + 1
	poor.appends = true
	_, err = h.Submit(t.Context(), somebody, berth.Rigid("r", 0, now+1000, now+5000, 2, 100))
	if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != berth.Unavailable {
		t.Errorf("it was answered %v", err)
	}
	<-h.Stopped()
	_ = h.Close() // its error is the fault
	if f := keptFault(t, folder); f.Doing != "writing the journal" || f.Record != number || f.What != "the journal's adapter is wrong" {
		t.Errorf("%+v", f)
	}
	if f := faultOf(h.Err()); f == nil || f.Again() {
		t.Errorf("it stopped by %v", h.Err())
	}
	poor.appends, poor.reads = false, true
	if _, err := Open(t.Context(), options); faultOf(err) == nil {
		t.Errorf("the start says %v", err)
	}
	poor.reads = false
	if h, err = Open(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	if r, err := h.Get(t.Context(), somebody.By, "before"); err != nil || r.State != Confirmed {
		t.Errorf("what was promised before: %+v, %v", r, err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// A panic in what counts for metrics, which the registry calls in a goroutine of its own,
// fails the scrape and nothing else.
func TestAPanicOfAScrapeStopsNobody(t *testing.T) {
	folder := t.TempDir()
	h, store, err := faulty(t, folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	registry := prometheus.NewRegistry()
	if err := h.Register(registry); err != nil {
		t.Fatal(err)
	}
	now := h.Now()
	if _, err := h.Submit(t.Context(), somebody, berth.Rigid("r", 0, now+1000, now+5000, 2, 100)); err != nil {
		t.Fatal(err)
	} // what follows from the start is over
	right := h.display.look()
	h.display.given.Store(&model{})
	if _, err := registry.Gather(); err == nil || !strings.Contains(err.Error(), "while counting") {
		t.Errorf("it was answered %v", err)
	}
	if f := keptFault(t, folder); f.Doing != "counting" || !strings.Contains(f.Stack, "collect") {
		t.Errorf("%+v", f)
	}
	h.display.given.Store(right)
	if _, err := registry.Gather(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(h.Err(), h.Close()); err != nil {
		t.Error(err)
	}
}

// A snapshot that meets a fault is given up and told, and everybody is answered.
func TestAPanicOfASnapshotStopsNobody(t *testing.T) {
	folder := t.TempDir()
	h, store, err := faulty(t, folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	h.snapshots.core = &Core{} // without an engine
	now := h.Now()
	if _, err := h.Submit(t.Context(), somebody, berth.Rigid("r", 0, now+1000, now+5000, 2, 100)); err != nil {
		t.Fatal(err)
	}
	operator := Ask{By: Principal{User: "root", Role: Operator}}
	later := berth.Duration(-10) // so that all there is is older, and a snapshot is needed
	if _, err := h.Compact(t.Context(), operator, later); faultOf(err) == nil {
		t.Errorf("the compaction ended with %v", err)
	}
	if f := keptFault(t, folder); f.Doing != following {
		t.Errorf("%+v", f)
	}
	if _, err := h.Submit(t.Context(), somebody, berth.Rigid("after", 0, now+1000, now+5000, 2, 100)); err != nil {
		t.Error(err)
	}
	if c, err := h.Compact(t.Context(), operator, later); err != nil || c.Dropped == 0 {
		t.Errorf("the next one: %+v, %v", c, err)
	}
	if err := errors.Join(h.Err(), h.Close()); err != nil {
		t.Error(err)
	}
}

// poisoned makes a journal whose last record makes who follows it panic, and returns its
// number.
func poisoned(t *testing.T, folder string) uint64 {
	t.Helper()
	h, store, err := faulty(t, folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	last, err := store.Last(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	event := engine.Wake()
	rec := journal.Record{
		At: h.Now(), Version: "test", Event: appendInput(nil, &event, &asked{}),
		Changes: record.AppendChanges(nil, []change.Change{{Kind: change.Emitted}}), // of no effect
	}
	rec.Seal(last)
	if err := errors.Join(store.Append(t.Context(), rec), store.Close()); err != nil {
		t.Fatal(err)
	}
	return rec.Number
}

// A record that no start can follow is named by each start and by verify: it is in the
// journal, so starting again does not help.
func TestARecordThatCannotBeFollowedIsNamedByEachStart(t *testing.T) {
	folder := t.TempDir()
	number := poisoned(t, folder)
	for life := 1; life <= 2; life++ {
		_, store, err := faulty(t, folder, nil)
		f := faultOf(err)
		if f == nil || f.Record != number || f.Kind != "wake" || !f.Again() || f.Times != life || !strings.Contains(err.Error(), "every start of this version meets it") {
			t.Fatalf("life %d: %v", life, err)
		}
		if kept := keptFault(t, folder); kept.Record != number || !strings.Contains(kept.Stack, "Fold") {
			t.Errorf("life %d: kept: %+v", life, kept)
		}
		if _, err := Verify(t.Context(), store, nil); err == nil || !strings.Contains(err.Error(), "record") {
			t.Errorf("life %d: verify: %v", life, err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if files := kept(folder); len(files) != 1 || filepath.Base(files[0]) != "fault-2.json" {
		t.Errorf("kept: %v", files)
	}
}
