package engine_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
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
		if rapid.Bool().Draw(t, "a part of the queue in each round") {
			config.Order, config.Options, config.Limits = "dpsar", policy.OrderOptions{N: 1, NUJP: 1}, nil
		}
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
		twins := alike{fast: byRoom, plain: plain, config: config, widest: widest, crowd: 6}
		twins.decide(t, rapid.IntRange(1, 300).Draw(t, "steps"), func(event engine.Event, changes []change.Change) {
			for i := range changes {
				if event.Kind == engine.EventFinish && changes[i].Plan != nil {
					moved++
				}
			}
		})
		if err := twins.fast.Check(); err != nil {
			t.Fatal(err)
		}
	})
	if moved == 0 {
		t.Error("no plan has moved")
	}
}

// Where PEs are given back while a plan holds others, too few may be free beside the plan, and enough without it: the plan moves
// to an earlier start on PEs of its own and those.
func TestAPlanMovesOntoPEsBesideItsOwn(t *testing.T) {
	for _, plain := range []bool{true, false} {
		e := newEngine(t, engine.Config{
			Sites: []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 3, Binding: berth.Early}}}},
			Jobs:  "conservative", Compress: true, PlainPasses: plain,
		})
		for _, r := range []berth.Request{
			berth.Rigid("all", 0, 0, 8, 3, 8), berth.Rigid("before", 0, 8, 10, 1, 2), // on PE 0
			berth.Rigid("first", 0, 12, 14, 1, 2), berth.Rigid("second", 0, 12, 14, 1, 2), // on PEs 0 and 1
			berth.Rigid("late", 0, 100, 102, 1, 2), berth.Rigid("later", 0, 200, 202, 1, 2),
		} {
			apply(t, e, 0, engine.Submit(&r))
		}
		apply(t, e, 0, engine.Event{Kind: engine.EventCancel, ID: "first"})
		j := berth.Job("j", 1, 2, 5)
		apply(t, e, 1, engine.Submit(&j))
		plan := func() berth.Allotment {
			s, known := e.Status("j")
			if !known || s.Plan == nil {
				t.Fatalf("plain %t: the job has no plan: %+v", plain, s)
			}
			return *s.Plan
		}
		if at := plan(); at.Start != 10 || !at.PEs.Equal(berth.PEsOf(0, 2)) {
			t.Fatalf("plain %t: planned at %+v, want 10 on PEs 0 and 2", plain, at)
		}
		// By then all that was given back earlier has been looked at twice.
		for _, id := range []string{"late", "later", "second"} {
			apply(t, e, 2, engine.Event{Kind: engine.EventCancel, ID: id})
		}
		if at := plan(); at.Start != 8 || !at.PEs.Equal(berth.PEsOf(1, 2)) {
			t.Errorf("plain %t: planned at %+v, want 8 on PEs 1 and 2", plain, at)
		}
	}
}
