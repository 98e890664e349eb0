package record_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
)

// config is one managed cluster, so that there are effects.
func config(binding berth.Binding) engine.Config {
	return engine.Config{Sites: []berth.Site{{
		Name: "alpha", Managed: true, Pools: []berth.Pool{{Name: "batch", PEs: 1024, Binding: binding}},
	}}}
}

// run lets an engine live through n requests, some are cancelled or
// finish early, and returns what a service would have recorded.
func run(t testing.TB, binding berth.Binding, n int) []journal.Record {
	t.Helper()
	e, err := engine.New(config(binding))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	var records []journal.Record
	var last journal.Position
	now := berth.Time(1_700_000_000)
	apply := func(event engine.Event) {
		changes, effects, err := e.Apply(now, event)
		if err != nil && len(changes) == 0 {
			return
		}
		r := journal.Record{
			At: now, Version: "v0.5.0", Event: record.AppendEvent(nil, &event),
			Changes: record.AppendChanges(nil, changes), Effects: record.AppendEffects(nil, effects),
		}
		last = r.Seal(last)
		records = append(records, r)
	}
	for i := range n {
		now += berth.Time(rng.IntN(30))
		ready := now + berth.Time(rng.IntN(100_000))
		duration := berth.Duration(60 + rng.IntN(7200))
		id := fmt.Sprintf("01JD%022d", i)
		r := berth.Rigid(id, now, ready, ready.Add(3*duration), berth.Count(1+rng.IntN(64)), duration)
		r.User = fmt.Sprintf("user%d", rng.IntN(50))
		apply(engine.Event{Kind: engine.EventSubmit, Request: &r})
		if kind := [...]engine.EventKind{engine.EventCancel, engine.EventFinish, "", ""}[rng.IntN(4)]; kind != "" {
			apply(engine.Event{Kind: kind, ID: fmt.Sprintf("01JD%022d", rng.IntN(i+1))})
		}
		if box := e.Outbox(); len(box) > 0 {
			apply(engine.Event{Kind: engine.EventSettle, Effect: box[0].Number})
		}
	}
	return records
}

// memory is a journal that others keep.
type memory []journal.Record

func (m memory) Read(_ context.Context, from uint64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for _, r := range m[from-1:] {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func TestDecidingAgainComesToTheSame(t *testing.T) {
	for _, binding := range []berth.Binding{berth.Early, berth.Late} {
		records := run(t, binding, 2000)
		again, err := engine.New(config(binding))
		if err != nil {
			t.Fatal(err)
		}
		var d record.Decoder
		last, n, err := journal.Verify(t.Context(), memory(records), 1, func(r *journal.Record) error { return d.Redecide(again, r) })
		if err != nil {
			t.Fatal(err)
		}
		if n != len(records) || last != records[n-1].Position() {
			t.Errorf("%d of %d records, up to %d", n, len(records), last.Number)
		}
		// Folding the recorded changes comes to the same state.
		folded, err := engine.New(config(binding))
		if err != nil {
			t.Fatal(err)
		}
		for i := range records {
			changes, err := d.Changes(records[i].Changes)
			if err == nil {
				err = folded.Fold(changes)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if folded.Hash() != again.Hash() {
			t.Error("recorded changes and decisions made again lead to different states")
		}
	}
}

func TestAnotherDecisionIsToldWithBoth(t *testing.T) {
	records := run(t, berth.Late, 50)
	var d record.Decoder
	for what, spoil := range map[string]func(*journal.Record){
		"change 2": func(r *journal.Record) {
			changes, err := d.Changes(r.Changes)
			if err != nil {
				t.Fatal(err)
			}
			changes[2].Reservation.Allotments[0].Start++
			r.Changes = record.AppendChanges(nil, changes)
		},
		"change 3": func(r *journal.Record) {
			changes, err := d.Changes(r.Changes)
			if err != nil {
				t.Fatal(err)
			}
			r.Changes = record.AppendChanges(nil, changes[:3])
		},
		"effect 0": func(r *journal.Record) { r.Effects = nil },
	} {
		again, err := engine.New(config(berth.Late))
		if err != nil {
			t.Fatal(err)
		}
		spoilt := records[0]
		spoil(&spoilt)
		err = d.Redecide(again, &spoilt)
		var difference *record.Difference
		if !errors.As(err, &difference) || difference.Number != 1 || difference.What != what {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestExportShowsWhatRecordsSay(t *testing.T) {
	records := run(t, berth.Early, 5)
	var out strings.Builder
	var d record.Decoder
	last, err := journal.Export(&out, memory(records).Read(t.Context(), 1), d.Line)
	if err != nil || last != records[len(records)-1].Position() {
		t.Fatal(last.Number, err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != len(records) {
		t.Fatalf("%d lines for %d records", len(lines), len(records))
	}
	for i, line := range lines {
		var l struct {
			Number  uint64
			At      berth.Time
			Version string
			Event   engine.Event
			Changes []change.Change
			Effects []change.Effect
			Hash    journal.Hash
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		r := journal.Record{
			Number: l.Number, At: l.At, Version: l.Version, Hash: l.Hash, Event: record.AppendEvent(nil, &l.Event),
			Changes: record.AppendChanges(nil, l.Changes), Effects: record.AppendEffects(nil, l.Effects),
		}
		if !bytes.Equal(r.AppendBody(nil), records[i].AppendBody(nil)) || r.Hash != records[i].Hash {
			t.Errorf("line %d does not say what the record says: %s", i+1, line)
		}
	}
}

// BenchmarkPayloads measures what a record costs beside deciding and storing
// it, in the binary form and, as baseline, in JSON.
func BenchmarkPayloads(b *testing.B) {
	records := run(b, berth.Early, 2000)
	var d record.Decoder
	events := make([]engine.Event, len(records))
	changes := make([][]change.Change, len(records))
	effects := make([][]change.Effect, len(records))
	bytesOf := map[string]int{}
	texts := make([][3][]byte, len(records))
	for i := range records {
		r := &records[i]
		var err [3]error
		events[i], err[0] = d.Event(r.Event)
		changes[i], err[1] = d.Changes(r.Changes)
		effects[i], err[2] = d.Effects(r.Effects)
		if err := errors.Join(err[:]...); err != nil {
			b.Fatal(err)
		}
		bytesOf["binary"] += len(r.AppendBody(nil))
		for k, v := range []any{events[i], changes[i], effects[i]} {
			text, err := json.Marshal(v)
			if err != nil {
				b.Fatal(err)
			}
			texts[i][k] = text
			bytesOf["json"] += len(text)
		}
	}
	perRecord := func(b *testing.B, form string) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(records)), "ns/record")
		b.ReportMetric(float64(bytesOf[form])/float64(len(records)), "bytes/record")
	}
	b.Run("form=binary/write", func(b *testing.B) {
		var buf []byte
		for b.Loop() {
			for i := range records {
				buf = record.AppendEvent(buf[:0], &events[i])
				buf = record.AppendChanges(buf, changes[i])
				buf = record.AppendEffects(buf, effects[i])
			}
		}
		perRecord(b, "binary")
	})
	b.Run("form=json/write", func(b *testing.B) {
		for b.Loop() {
			for i := range records {
				for _, v := range []any{&events[i], changes[i], effects[i]} {
					if _, err := json.Marshal(v); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		perRecord(b, "json")
	})
	b.Run("form=binary/read", func(b *testing.B) {
		for b.Loop() {
			for i := range records {
				_, err := d.Event(records[i].Event)
				_, err1 := d.Changes(records[i].Changes)
				_, err2 := d.Effects(records[i].Effects)
				if err := errors.Join(err, err1, err2); err != nil {
					b.Fatal(err)
				}
			}
		}
		perRecord(b, "binary")
	})
	b.Run("form=json/read", func(b *testing.B) {
		for b.Loop() {
			for i := range texts {
				var e engine.Event
				var c []change.Change
				var f []change.Effect
				for k, v := range []any{&e, &c, &f} {
					if err := json.Unmarshal(texts[i][k], v); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
		perRecord(b, "json")
	})
	b.Run("seal", func(b *testing.B) {
		var sealer journal.Sealer // as the service has one
		var last journal.Position
		for b.Loop() {
			for i := range records {
				r := records[i]
				last = sealer.Seal(&r, last)
			}
		}
		perRecord(b, "binary")
	})
}
