package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

func drawConfig(t *rapid.T) engine.Config {
	binding := rapid.SampledFrom([]berth.Binding{berth.Early, berth.Late})
	config := engine.Config{
		Place:   policy.Placements[rapid.IntRange(0, len(policy.Placements)-1).Draw(t, "place")].Name,
		Choice:  rapid.SampledFrom(policy.Choices()).Draw(t, "choice"),
		Horizon: rapid.SampledFrom([]string{engine.HorizonCapped, engine.HorizonUnbounded}).Draw(t, "horizon"),
		Explain: rapid.Bool().Draw(t, "explain"),
		Match:   rapid.SampledFrom(policy.Matches).Draw(t, "match").Name,
		Jobs:    rapid.SampledFrom(engine.JobPasses()).Draw(t, "jobs").Name, Compress: rapid.Bool().Draw(t, "compress"),
	}
	config.Order = rapid.SampledFrom(policy.Queues).Draw(t, "order").Name
	config.Options = policy.OrderOptions{
		N: rapid.IntRange(0, 2).Draw(t, "n"), NUJP: rapid.IntRange(0, 2).Draw(t, "n_ujp"), Chain: rapid.Bool().Draw(t, "chain"),
		Overflow: rapid.SampledFrom([]policy.Overflow{policy.Defer, policy.Discard}).Draw(t, "overflow"),
		Aging:    berth.Duration(rapid.IntRange(0, 5).Draw(t, "aging")),
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "users") {
		config.Users = append(config.Users, berth.User{ID: fmt.Sprintf("u%d", i), Priority: rapid.IntRange(-2, 9).Draw(t, "priority")})
	}
	config.Trigger = rapid.SampledFrom([]engine.Trigger{"", engine.TriggerOnArrival, engine.TriggerOnInstant, engine.TriggerOnPeriod}).Draw(t, "trigger")
	if config.Trigger == engine.TriggerOnPeriod {
		config.Period = berth.Duration(rapid.IntRange(1, 20).Draw(t, "period"))
	}
	config.Staging = rapid.SampledFrom(engine.Stagings()).Draw(t, "staging")
	config.Uplink = rapid.SampledFrom([]int64{0, 0, 600, 1500, 3 << 20}).Draw(t, "uplink")
	config.Immediate = rapid.SampledFrom([]engine.Immediate{engine.ImmediateRefuse, engine.ImmediateQueue}).Draw(t, "immediate")
	config.Preempt = rapid.IntRange(0, 3).Draw(t, "preempt") == 0
	config.Overrun = rapid.SampledFrom([]engine.Overrun{"", engine.OverrunKill, engine.OverrunRunOn, engine.OverrunDelay}).Draw(t, "overrun")
	config.Extension = berth.Duration(rapid.IntRange(0, 10).Draw(t, "extension"))
	if rapid.Bool().Draw(t, "arrivals first") {
		config.Instant = engine.ArrivalsFirst()
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "pools") {
		config.Sites = append(config.Sites, berth.Site{
			Name: fmt.Sprintf("s%d", i), Managed: rapid.Bool().Draw(t, "managed"),
			Pools: []berth.Pool{{Name: "p", PEs: berth.Count(rapid.IntRange(1, 70).Draw(t, "pes")), Binding: binding.Draw(t, "binding")}},
			Software: []berth.Software{
				{Name: "solver", Version: "1.2", Licences: berth.Count(rapid.IntRange(0, 3).Draw(t, "licences"))},
				{Name: "solver", Version: "2", Licences: 5},
			},
			StorageMB: rapid.SampledFrom([]int64{0, 7, 3 << 20}).Draw(t, "storage"),
			Link:      berth.Link{DelayMS: rapid.Int64Range(0, 2000).Draw(t, "delay"), KilobytesPerSecond: rapid.SampledFrom([]int64{0, 700, 3000}).Draw(t, "rate")},
		})
	}
	return config
}

func drawRequest(t *rapid.T, id string, now berth.Time) berth.Request {
	r := berth.Request{ID: id, User: drawUser(t), Arrival: now, Ready: now + berth.Time(rapid.IntRange(0, 15).Draw(t, "lead"))}
	for range rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, "parts") {
		var part berth.Part
		for range rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "variants") {
			v := berth.Variant{
				NPE:      berth.Count(rapid.SampledFrom([]int{1, 2, 3, 7, 20, 40, 71}).Draw(t, "npe")),
				Duration: berth.Duration(rapid.IntRange(1, 12).Draw(t, "duration")),
			}
			part.Variants = append(part.Variants, v)
		}
		if rapid.IntRange(0, 5).Draw(t, "masked") == 0 {
			part.Eligible = berth.NewPESet(berth.Run{Lo: 1, Hi: 30})
		}
		r.Parts = append(r.Parts, part)
	}
	var longest berth.Duration
	for _, part := range r.Parts {
		shortest := part.Variants[0].Duration
		for _, v := range part.Variants {
			shortest = min(shortest, v.Duration)
		}
		longest = max(longest, shortest)
	}
	r.Deadline = r.Ready.Add(longest) + berth.Time(rapid.IntRange(0, 20).Draw(t, "slack"))
	if rapid.IntRange(0, 2).Draw(t, "program") == 0 {
		r.Software, r.Version = "solver", rapid.SampledFrom([]string{"", "1.10", "3"}).Draw(t, "version")
		r.Licences = berth.Count(rapid.IntRange(0, 3).Draw(t, "wanted licences"))
	}
	if rapid.IntRange(0, 2).Draw(t, "data") == 0 {
		r.StorageMB = rapid.Int64Range(1, 5).Draw(t, "size")
	}
	if rapid.IntRange(0, 3).Draw(t, "held") == 0 {
		r.Hold = berth.Duration(rapid.IntRange(1, 20).Draw(t, "hold"))
	}
	if rapid.IntRange(0, 3).Draw(t, "wanted") == 0 {
		r.NoShow = berth.Duration(rapid.IntRange(1, 9).Draw(t, "no show"))
	}
	return r
}

func drawUser(t *rapid.T) string {
	return rapid.SampledFrom([]string{"", "u0", "u1", "u2", "u3", "u9"}).Draw(t, "user")
}

// drawOutage draws PEs that go down or come up.
func drawOutage(t *rapid.T, config engine.Config) engine.Event {
	site := rapid.SampledFrom(config.Sites).Draw(t, "site")
	lo := berth.PE(rapid.IntRange(0, int(site.Pools[0].PEs)-1).Draw(t, "lo"))
	hi := berth.PE(rapid.IntRange(int(lo)+1, int(site.Pools[0].PEs)).Draw(t, "hi"))
	event := engine.Event{
		Kind:     rapid.SampledFrom([]engine.EventKind{engine.EventDown, engine.EventUp}).Draw(t, "change"),
		Resource: berth.PoolID(site.Name, site.Pools[0].Name), PEs: berth.NewPESet(berth.Run{Lo: lo, Hi: hi}),
	}
	if event.Kind == engine.EventDown && rapid.Bool().Draw(t, "known") {
		event.Until = berth.Time(rapid.IntRange(1, 400).Draw(t, "until"))
	}
	if event.Kind == engine.EventDown && site.Pools[0].Binding == berth.Early && rapid.Bool().Draw(t, "to come") {
		event.From = berth.Time(rapid.IntRange(1, 400).Draw(t, "from"))
	}
	return event
}

// drawJob draws an ordinary job, now and then with a waiting limit.
func drawJob(t *rapid.T, id string, now berth.Time) berth.Request {
	r := berth.Job(id, now, berth.Count(rapid.SampledFrom([]int{1, 1, 2, 3, 7, 20, 40, 71}).Draw(t, "npe")),
		berth.Duration(rapid.IntRange(1, 25).Draw(t, "estimate")))
	r.User = drawUser(t)
	if rapid.IntRange(0, 4).Draw(t, "limited") == 0 {
		r.Deadline = now.Add(r.Parts[0].Variants[0].Duration) + berth.Time(rapid.IntRange(0, 30).Draw(t, "limit"))
	}
	return r
}

// Every accepted request lies in its window, has its size, and parts start
// together; a refusal for want of capacity of a request of one rigid part is
// right: no start in the window was feasible (completeness, design section 7).
func TestAcceptedFitsAndRefusedDoesNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := drawConfig(t)
		config.Sites = config.Sites[:1]
		config.Overrun = engine.OverrunKill // the model below does not extend
		config.Trigger, config.Period, config.Immediate = engine.TriggerOnArrival, 0, engine.ImmediateRefuse
		pool := config.Sites[0].Pools[0]
		e, err := engine.New(config)
		if err != nil {
			t.Fatal(err)
		}
		// busy[pe][second] under early binding, used[second] under late.
		const span = 200
		busy := make([][span]bool, pool.PEs)
		var used [span]berth.Count
		var now berth.Time
		for step := range 20 {
			now += berth.Time(rapid.IntRange(0, 4).Draw(t, "pause"))
			r := drawRequest(t, fmt.Sprint(step), now)
			r.Parts, r.Hold, r.NoShow, r.Requirements = r.Parts[:1], 0, 0, berth.Requirements{}
			r.Parts[0].Variants = r.Parts[0].Variants[:1]
			r.Parts[0].Eligible = berth.PESet{}
			v := r.Parts[0].Variants[0]
			r.Deadline = max(r.Deadline, r.Ready.Add(v.Duration))
			changes, _, err := e.Apply(now, engine.Submit(&r))
			if err != nil {
				t.Fatal(err)
			}
			free := func(start berth.Time) (n berth.Count) {
				if pool.Binding == berth.Late {
					n = pool.PEs
					for s := start; s < start.Add(v.Duration); s++ {
						n = min(n, pool.PEs-used[s])
					}
					return n
				}
				for pe := range busy {
					if !slices.Contains(busy[pe][start:start.Add(v.Duration)], true) {
						n++
					}
				}
				return n
			}
			decided := slices.IndexFunc(changes, func(c change.Change) bool { return c.Kind == change.Refused || c.Kind == change.Accepted })
			last := changes[decided]
			if last.Kind == change.Refused {
				for s := r.Ready; s.Add(v.Duration) <= r.Deadline; s++ {
					if free(s) >= v.NPE {
						t.Fatalf("refused %+v with %s although %d PEs are free from %d", v, last.Refusal.Reason, free(s), s)
					}
				}
				continue
			}
			a := last.Reservation.Allotments[0]
			if a.Start < r.Ready || a.End > r.Deadline || a.End.Sub(a.Start) != v.Duration || a.NPE != v.NPE {
				t.Fatalf("%+v does not fit %+v", a, r)
			}
			if free(a.Start) < v.NPE {
				t.Fatalf("%+v takes PEs that others hold", a)
			}
			for s := a.Start; s < a.End; s++ {
				used[s] += a.NPE
				for _, run := range a.PEs.Runs() {
					for pe := run.Lo; pe < run.Hi; pe++ {
						if busy[pe][s] {
							t.Fatalf("PE %d at %d is promised twice", pe, s)
						}
						busy[pe][s] = true
					}
				}
			}
		}
	})
}
