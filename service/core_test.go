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

// answeredUnder steps as a service does that answers what was asked under a key with what became
// of it, as was answered last under another one, or with an error, and returns the answer.
func answeredUnder(t *rapid.T, core *Core, now berth.Time, event *engine.Event, key Key, last *keyName) (rec *journal.Record, answer []byte) {
	s := core.apply(now, event)
	a := asked{key: key, id: subject(event)}
	var answered Answer
	var failed *berth.Error
	if k := core.card(a.id); k != nil {
		answered.Reservation = k.view()
	} else {
		failed = berth.Errorf(berth.NotFound, "id", "%q", a.id)
	}
	if rapid.IntRange(0, 3).Draw(t, "refused") == 0 {
		answered.Refusal = &berth.Refusal{Reason: berth.NoCapacity, Wanted: 3}
	}
	core.tell(&a, keyName{}, &outcome{Answer: answered, Failed: failed})
	if failed == nil && *last != (keyName{}) && !core.keys.answered(&Key{User: last.user, Name: last.name}) {
		core.tell(&a, *last, &outcome{Answer: answered}) // others wait for the same
	}
	if rapid.Bool().Draw(t, "waits") {
		*last = key.name()
		a.told = a.told[:0]
	}
	rec = core.seal(s, &a)
	return rec, (&outcome{Answer: answered, Failed: failed}).bytes()
}

// remembered checks what a core has under each key, which all are as young as a day, and what
// it counts for them.
func remembered(t *rapid.T, what string, c *Core, answers map[keyName][]byte) {
	for name, want := range answers {
		if got := c.keys.of(name).written(); !bytes.Equal(got, want) {
			t.Fatalf("%s: under %s is answered\n%q, was\n%q", what, name.name, got, want)
		}
	}
	var bytes int64
	for k := c.keys.first; k != nil; k = k.next {
		bytes += k.cost()
	}
	if bytes != c.keys.bytes || bytes != c.keys.used("u") {
		t.Fatalf("%s: the keys take %d bytes, counted are %d, %d of the user", what, bytes, c.keys.bytes, c.keys.used("u"))
	}
}

// Whatever comes in: the records, followed by another core without deciding
// anything, lead to the same core; a snapshot on the way does; and the records
// decided again say the same. What was answered under a key is remembered by all.
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
		core.shows = rapid.Bool().Draw(t, "shows")
		answers := map[keyName][]byte{}
		var waits keyName
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
			if key == (Key{}) {
				rec, _, _ := core.Step(now, &event, key)
				take(rec)
			} else {
				had := waits
				rec, answer := answeredUnder(t, core, now, &event, key, &waits)
				take(rec)
				for _, name := range []keyName{key.name(), had} {
					if k := core.keys.of(name); k != nil && k.answered() && answers[name] == nil {
						answers[name] = answer
					}
				}
			}
			core.takeShown()
			if err := core.Check(); err != nil {
				t.Fatalf("after %s at %d: %v", event.Kind, now, err)
			}
			sharesPromises(t, string(event.Kind), core)
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
			remembered(t, what, c, answers)
			if err := c.Check(); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			sharesPromises(t, what, c)
		}
		remembered(t, "what was answered", core, answers)
		again, err := newCore(config, "v1", keep)
		if err != nil {
			t.Fatal(err)
		}
		follow("the whole journal", again)
		forgetful, err := newCore(config, "v1", 1)
		if err != nil {
			t.Fatal(err)
		}
		var forgotten record.Decoder
		for i := range records {
			if err := forgetful.Follow(&records[i], &forgotten); err != nil {
				t.Fatal(err)
			}
		}
		remembered(t, "where less is kept", forgetful, answers)
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

// sharesPromises fails unless each promise that is live is kept once, by the engine and the card.
func sharesPromises(t *rapid.T, when string, c *Core) {
	t.Helper()
	c.cards.Scan(func(k *card) bool {
		if k.end == "" && k.promise != nil && k.promise != c.engine.Promise(k.id) {
			t.Fatalf("%s: the card of %q has another promise than the engine", when, k.id)
		}
		return true
	})
}
