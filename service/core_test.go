package service

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
)

func someConfig(t *rapid.T) engine.Config {
	config := engine.Config{
		Jobs:  rapid.SampledFrom(engine.JobPasses()).Draw(t, "jobs").Name,
		Order: rapid.SampledFrom([]string{"fcfs", "dpsar", "sjf"}).Draw(t, "order"),
	}
	for i := range rapid.IntRange(1, 2).Draw(t, "sites") {
		config.Sites = append(config.Sites, berth.Site{
			Name: fmt.Sprintf("s%d", i), Managed: rapid.Bool().Draw(t, "managed"),
			Pools: []berth.Pool{{
				Name: "p", PEs: berth.Count(rapid.IntRange(1, 12).Draw(t, "pes")),
				Binding: rapid.SampledFrom([]berth.Binding{berth.Early, berth.Late}).Draw(t, "binding"),
			}},
		})
	}
	return config
}

// someEvent draws what may come in, about a few ids that are used again and
// again.
func someEvent(t *rapid.T, config *engine.Config, now berth.Time) engine.Event {
	id := fmt.Sprintf("r%d", rapid.IntRange(0, 9).Draw(t, "id"))
	request := func() *berth.Request {
		ready := now + berth.Time(rapid.IntRange(0, 10).Draw(t, "lead"))
		d := berth.Duration(rapid.IntRange(1, 12).Draw(t, "duration"))
		npe := berth.Count(rapid.IntRange(1, 8).Draw(t, "npe"))
		r := berth.Rigid(id, now, ready, ready.Add(d)+berth.Time(rapid.IntRange(0, 15).Draw(t, "slack")), npe, d)
		r.Hold = berth.Duration(rapid.SampledFrom([]int{0, 0, 5}).Draw(t, "hold"))
		r.NoShow = berth.Duration(rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "no show"))
		if rapid.IntRange(0, 3).Draw(t, "parts") == 0 {
			r.Parts = append(r.Parts, r.Parts[0])
		}
		if rapid.IntRange(0, 3).Draw(t, "job") == 0 {
			r = berth.Job(id, now, npe, d)
		}
		return &r
	}
	kinds := []engine.EventKind{
		engine.EventSubmit, engine.EventSubmit, engine.EventSubmit, engine.EventCancel, engine.EventConfirm, engine.EventModify, engine.EventExtend, engine.EventCheckIn,
		engine.EventFinish, engine.EventWake, engine.EventDown, engine.EventUp,
	}
	event := engine.Event{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), ID: id}
	switch event.Kind {
	case engine.EventSubmit:
		event.ID, event.Request = "", request()
	case engine.EventModify:
		event.Request = request()
	case engine.EventExtend:
		event.Until = now + berth.Time(rapid.IntRange(1, 30).Draw(t, "until"))
	case engine.EventDown, engine.EventUp:
		s := rapid.SampledFrom(config.Sites).Draw(t, "site")
		event.ID, event.Resource = "", berth.PoolID(s.Name, "p")
		lo := berth.PE(rapid.IntRange(0, int(s.Pools[0].PEs)-1).Draw(t, "lo"))
		event.PEs = berth.NewPESet(berth.Run{Lo: lo, Hi: lo + 1})
	}
	return event
}

// Whatever comes in: the records, followed by another core without deciding
// anything, lead to the same core; a snapshot on the way does; and the records
// decided again say the same.
func TestRecordsAreAllThatCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := someConfig(t)
		keep := rapid.SampledFrom([]int{3, 1000}).Draw(t, "keep")
		core, err := newCore(config, "v1", keep)
		if err != nil {
			t.Fatal(err)
		}
		var records []journal.Record
		take := func(rec *journal.Record) {
			if rec != nil {
				records = append(records, *rec)
			}
		}
		first, err := core.Configure(0, config)
		if err != nil {
			t.Fatal(err)
		}
		take(first)
		var snapshot []byte
		var at journal.Position
		var now berth.Time
		for step := range rapid.IntRange(1, 40).Draw(t, "steps") {
			now += berth.Time(rapid.IntRange(0, 4).Draw(t, "pause"))
			event := someEvent(t, &config, now)
			var key Key
			if rapid.IntRange(0, 3).Draw(t, "keyed") == 0 {
				key = Key{User: "u", Name: fmt.Sprint(step), Body: [32]byte{byte(step)}}
			}
			rec, _, _ := core.Step(now, &event, key)
			take(rec)
			if err := core.Check(); err != nil {
				t.Fatalf("after %s at %d: %v", event.Kind, now, err)
			}
			if rapid.IntRange(0, 9).Draw(t, "snapshot") == 0 {
				if snapshot, err = core.Snapshot(); err != nil {
					t.Fatal(err)
				}
				at = core.position
			}
		}
		want, err := core.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		follow := func(what string, c *Core) {
			var decoder record.Decoder
			for i := range records {
				if records[i].Number <= c.position.Number {
					continue
				}
				if err := c.Follow(&records[i], &decoder); err != nil {
					t.Fatalf("%s, record %d: %v", what, records[i].Number, err)
				}
			}
			got, err := c.Snapshot()
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) || c.position != core.position {
				t.Fatalf("%s leads to\n%s, want\n%s", what, got, want)
			}
			if err := c.Check(); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		again, err := newCore(config, "v1", keep)
		if err != nil {
			t.Fatal(err)
		}
		follow("the whole journal", again)
		if snapshot != nil {
			restored, err := restoreCore(snapshot, at, "v1", keep)
			if err != nil {
				t.Fatal(err)
			}
			follow("a snapshot and the rest", restored)
		}
		judge, err := engine.New(config)
		if err != nil {
			t.Fatal(err)
		}
		var decoder record.Decoder
		for i := range records {
			in, err := parseInput(records[i].Event, &decoder)
			if err != nil {
				t.Fatal(err)
			}
			if in.event == nil {
				continue
			}
			plain := records[i]
			plain.Event = record.AppendEvent(nil, in.event)
			if err := decoder.Redecide(judge, &plain); err != nil {
				t.Fatalf("decided again: %v", err)
			}
		}
	})
}
