package engine_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// On several pools plans are compressed by looking only where room has grown. That decides as the plain form, change by
// change: under each match and binding, for pools of equal and of different speed, beside promises and outages, and
// where an engine is restored half-way.
func TestPlansMoveByRoomAsPlainly(t *testing.T) {
	moved := 0
	rapid.Check(t, func(t *rapid.T) {
		config := drawConfig(t)
		config.Jobs, config.Compress, config.Preempt = "conservative", true, false
		config.Match = rapid.SampledFrom(policy.Matches).Draw(t, "match").Name
		config.Sites = nil
		same := rapid.Bool().Draw(t, "same speed")
		widest := berth.Count(0)
		for i := range rapid.IntRange(1, 4).Draw(t, "sites") {
			pool := berth.Pool{Name: "p", PEs: berth.Count(rapid.IntRange(1, 12).Draw(t, "pes")), Binding: rapid.SampledFrom([]berth.Binding{berth.Late, berth.Early}).Draw(t, "binding")}
			if !same {
				pool.Speed = berth.Speed(rapid.SampledFrom([]int{0, 500, 1000, 2000}).Draw(t, "speed"))
			}
			widest = max(widest, pool.PEs)
			config.Sites = append(config.Sites, berth.Site{Name: fmt.Sprintf("s%d", i), Pools: []berth.Pool{pool}})
		}
		config.Calendar = rapid.SampledFrom(calendar.Forms).Draw(t, "form").Name
		byRoom, err := engine.New(config)
		if err != nil {
			t.Fatal(err)
		}
		other := config
		other.PlainPasses = true
		plain, err := engine.New(other)
		if err != nil {
			t.Fatal(err)
		}
		var now berth.Time
		var ids []string
		for step := range rapid.IntRange(1, 300).Draw(t, "steps") {
			now += berth.Time(rapid.SampledFrom([]int{0, 0, 1, 1, 2, 5}).Draw(t, "pause"))
			event := engine.Wake()
			switch kind := rapid.IntRange(0, 12).Draw(t, "kind"); {
			case kind > 7 || len(ids) == 0:
				r := drawJob(t, fmt.Sprintf("j%d", step), now)
				v := &r.Parts[0].Variants[0]
				v.NPE = min(v.NPE, widest)
				ids = append(ids, r.ID)
				event = engine.Submit(&r)
			case kind == 7:
				r := drawRequest(t, fmt.Sprintf("r%d", step), now)
				ids = append(ids, r.ID)
				event = engine.Submit(&r)
			case kind >= 2:
				event = engine.Event{Kind: engine.EventFinish, ID: rapid.SampledFrom(ids).Draw(t, "id")}
			case kind == 0:
				event = drawOutage(t, config)
			case kind == 1:
				event = engine.Event{Kind: engine.EventCancel, ID: rapid.SampledFrom(ids).Draw(t, "id")}
			}
			if rapid.IntRange(0, 30).Draw(t, "restore") == 0 {
				if byRoom, err = engine.Restore(config, byRoom.Snapshot()); err != nil {
					t.Fatal(err)
				}
			}
			a, _, errA := byRoom.Apply(now, event)
			b, _, errB := plain.Apply(now, event)
			if (errA == nil) != (errB == nil) {
				t.Fatalf("%s at %d: error %v, and plainly %v", event.Kind, now, errA, errB)
			}
			if got, want := text(t, a), text(t, b); got != want {
				t.Fatalf("%s at %d:\nby room %s\nplainly %s", event.Kind, now, got, want)
			}
			if event.Kind == engine.EventFinish {
				for i := range a {
					if a[i].Plan != nil {
						moved++
					}
				}
			}
		}
		if err := byRoom.Check(); err != nil {
			t.Fatal(err)
		}
	})
	if moved == 0 {
		t.Error("no plan has moved")
	}
}
