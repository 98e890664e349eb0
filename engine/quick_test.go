package engine_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// On one late-binding pool the passes for jobs have a faster form, and the
// calendars have two. All of them decide alike, change by change, and so does
// an engine restored half-way.
func TestQuickPassesDecideAsThePlainOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := drawConfig(t)
		pes := rapid.IntRange(1, 40).Draw(t, "pes")
		config.Sites = onePool(berth.Count(pes), berth.Late).Sites
		config.Jobs = rapid.SampledFrom([]string{"easy", "easy", "conservative", "conservative", "fcfs"}).Draw(t, "pass")
		config.Calendar = rapid.SampledFrom(calendar.Forms).Draw(t, "quick form").Name
		quick, err := engine.New(config)
		if err != nil {
			t.Fatal(err)
		}
		var plain *engine.Engine
		other := config
		other.Calendar = rapid.SampledFrom(calendar.Forms).Draw(t, "plain form").Name
		other.PlainPasses = true
		plain, err = engine.New(other)
		if err != nil {
			t.Fatal(err)
		}
		promised := promises{}
		crowd := rapid.IntRange(1, 8).Draw(t, "crowd") // jobs for each end
		twins := alike{fast: quick, plain: plain, config: config, widest: berth.Count(pes), crowd: crowd}
		twins.decide(t, rapid.IntRange(1, 120).Draw(t, "steps"), func(_ engine.Event, changes []change.Change) {
			promised.watch(t, changes)
			if err := twins.fast.Check(); err != nil {
				t.Fatal(err)
			}
		})
		if twins.fast.Hash() != plain.Hash() {
			t.Fatal("the same decisions lead to different states")
		}
	})
}

// alike are two engines that have to decide alike, change by change: a fast form and the plain one.
type alike struct {
	fast, plain *engine.Engine
	config      engine.Config // of the fast one
	widest      berth.Count   // of jobs
	crowd       int           // how many jobs come for each end
}

// decide asks both the same: jobs, requests, ends, cancellations and outages, at times that move on. The fast one is restored now
// and then. seen is called with each event and what it changed.
func (a *alike) decide(t *rapid.T, steps int, seen func(engine.Event, []change.Change)) {
	var now berth.Time
	var ids []string
	for step := range steps {
		now += berth.Time(rapid.SampledFrom([]int{0, 0, 1, 1, 2, 5}).Draw(t, "pause"))
		event := engine.Wake()
		switch kind := rapid.IntRange(0, 6+a.crowd).Draw(t, "kind"); {
		case kind > 6 || len(ids) == 0:
			r := drawJob(t, fmt.Sprintf("j%d", step), now)
			v := &r.Parts[0].Variants[0]
			v.NPE = min(v.NPE, a.widest)
			ids = append(ids, r.ID)
			event = engine.Submit(&r)
		case kind == 6:
			r := drawRequest(t, fmt.Sprintf("r%d", step), now)
			ids = append(ids, r.ID)
			event = engine.Submit(&r)
		case kind >= 2:
			event = engine.Event{Kind: engine.EventFinish, ID: rapid.SampledFrom(ids).Draw(t, "id")}
		case kind == 0:
			event = drawOutage(t, a.config)
		case kind == 1:
			event = engine.Event{Kind: engine.EventCancel, ID: rapid.SampledFrom(ids).Draw(t, "id")}
		}
		if rapid.IntRange(0, 30).Draw(t, "restore") == 0 {
			restored, err := engine.Restore(a.config, a.fast.Snapshot())
			if err != nil {
				t.Fatal(err)
			}
			a.fast = restored
		}
		changes, _, errA := a.fast.Apply(now, event)
		plainly, _, errB := a.plain.Apply(now, event)
		if (errA == nil) != (errB == nil) {
			t.Fatalf("%s at %d: error %v, and plainly %v", event.Kind, now, errA, errB)
		}
		if got, want := text(t, changes), text(t, plainly); got != want {
			t.Fatalf("%s at %d:\nfast  %s\nplain %s", event.Kind, now, got, want)
		}
		seen(event, changes)
	}
}

func text(t *rapid.T, changes []change.Change) string {
	if len(changes) == 0 {
		return ""
	}
	data, err := json.Marshal(changes)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
