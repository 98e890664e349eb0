package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// example is that of spec 5, b.6, on two sites: the free nodes are all there are,
// data of 1 MB take 10 s and 30 s.
func example(match string, unaware bool) engine.Config {
	site := func(name string, pes berth.Count, speed berth.Speed, rate int64, programs ...string) berth.Site {
		s := berth.Site{Name: name, Pools: []berth.Pool{{Name: "pool", PEs: pes, Speed: speed, Binding: berth.Late}}}
		s.Link.KilobytesPerSecond = rate
		for _, p := range programs {
			s.Software = append(s.Software, berth.Software{Name: p})
		}
		return s
	}
	return engine.Config{
		Sites: []berth.Site{site("s1", 10, 1000, 100, "a", "b"), site("s2", 4, 2000, 34, "a", "c")},
		Match: match, Unaware: unaware, Trigger: engine.TriggerOnPeriod, Period: 240, Staging: engine.StagingHold,
	}
}

func asks(id string, npe berth.Count, run berth.Duration, deadline berth.Time, program string) berth.Request {
	r := berth.Rigid(id, 0, 0, max(deadline, berth.Time(run)), npe, run)
	r.Software, r.StorageMB = program, 1
	return r
}

// told says what became of requests: where, and throughout when.
func told(changes []change.Change) string {
	var words []string
	for i := range changes {
		c := &changes[i]
		switch c.Kind {
		case change.Accepted:
			a := c.Reservation.Allotments[0]
			words = append(words, fmt.Sprintf("%s@%s %d-%d", c.ID, a.Resource.Site, a.Start, a.End))
		case change.Refused:
			words = append(words, fmt.Sprintf("%s %s", c.ID, c.Refusal.Reason))
		}
	}
	return strings.Join(words, ", ")
}

// The worked example (spec 5, b.6): B goes to S1 and ends at 310, A to S2, which
// ends at 320; C cannot end by 150, now or ever.
func TestWorkedExampleOfAJSM(t *testing.T) {
	for _, c := range []struct {
		deadline berth.Time // of A
		want     string
	}{
		{400, "c deadline_missed, b@s1 240-310, a@s2 240-320"},
		{310, "a deadline_missed, c deadline_missed, b@s1 240-310"},
	} {
		e := newEngine(t, example("ajsm", false))
		apply(t, e, 1, engine.Wake())
		var all []change.Change
		for _, r := range []berth.Request{asks("a", 4, 100, c.deadline, "a"), asks("b", 8, 60, 400, "b"), asks("c", 4, 200, 200, "c")} {
			r.Arrival, r.Ready = 1, 1
			r.Deadline = max(r.Deadline, r.Ready.Add(r.Parts[0].Variants[0].Duration))
			all = append(all, submit(t, e, 1, r)...)
		}
		if got := told(all); got != "" {
			t.Fatalf("decided on arrival: %s", got)
		}
		if at, ok := e.Next(); !ok || at != 240 {
			t.Fatalf("the next point is %d", at)
		}
		if got := told(apply(t, e, 240, engine.Wake())); got != c.want {
			t.Errorf("A by %d: %s, want %s", c.deadline, got, c.want)
		}
		if err := e.Check(); err != nil {
			t.Error(err)
		}
	}
}

// What finds no room waits for the next point, and is refused once it could not
// end in time after it. An unaware matcher sends what the site cannot run, which
// refuses it.
func TestDeferredAndHopeless(t *testing.T) {
	e := newEngine(t, example("ajsm", false))
	submit(t, e, 0, asks("wide", 10, 300, 4000, "b"))
	submit(t, e, 0, asks("waits", 10, 300, 4000, "b"))
	submit(t, e, 0, asks("late", 10, 300, 500, "b"))
	if got := told(apply(t, e, 0, engine.Wake())); got != "late@s1 0-310" && got != "wide@s1 0-310, late deadline_missed" {
		t.Fatal(got)
	}
	if got := told(apply(t, e, 239, engine.Wake())); got != "" {
		t.Fatal(got)
	}
	if got := told(apply(t, e, 479, engine.Wake())); got != "" {
		t.Fatalf("before the point after the end: %s", got)
	}
	if got := told(apply(t, e, 480, engine.Wake())); got != "waits@s1 480-790" {
		t.Fatal(got)
	}

	unaware := newEngine(t, example("min-min", true))
	submit(t, unaware, 0, asks("x", 4, 100, 4000, "b"))
	if got := told(apply(t, unaware, 0, engine.Wake())); got != "x no_software" {
		t.Errorf("unaware: %s", got)
	}
	aware := newEngine(t, example("min-min", false))
	submit(t, aware, 0, asks("x", 4, 100, 4000, "b"))
	if got := told(apply(t, aware, 0, engine.Wake())); got != "x@s1 0-110" {
		t.Errorf("aware: %s", got)
	}
}

// Without a period what is deferred is looked at when PEs are released, and
// refused as soon as it has become hopeless, without a request for it.
func TestDeferredUntilReleased(t *testing.T) {
	config := example("ajsm", false)
	config.Trigger, config.Period = "", 0
	e := newEngine(t, config)
	submit(t, e, 0, asks("first", 10, 300, 4000, "b"))
	submit(t, e, 0, asks("second", 10, 300, 4000, "b"))
	submit(t, e, 0, asks("third", 10, 300, 700, "b"))
	var all string
	for range 20 {
		at, ok := e.Next()
		if !ok {
			break
		}
		if got := told(apply(t, e, at, engine.Wake())); got != "" {
			all += fmt.Sprintf("%d: %s; ", at, got)
		}
	}
	if want := "0: first@s1 0-310; 310: second@s1 310-620; 391: third deadline_missed; "; all != want {
		t.Errorf("%s, want %s", all, want)
	}
}

// hopeless reports whether a request could not end in time anywhere, if it were
// decided at the next scheduling point with everything free (spec 5, A4).
func hopeless(config *engine.Config, r *berth.Request, now berth.Time) bool {
	point := now + 1
	if config.Trigger == engine.TriggerOnPeriod {
		point = now + 240 - now%240
	}
	for i := range config.Sites {
		site := &config.Sites[i]
		pool := &site.Pools[0]
		has := slices.ContainsFunc(site.Software, func(s berth.Software) bool {
			return s.Name == r.Software && (s.Licences == 0 || s.Licences >= r.Licences)
		})
		if !has || r.Parts[0].Variants[0].NPE > pool.PEs || site.StorageMB > 0 && r.StorageMB > site.StorageMB {
			continue
		}
		ends := max(r.Ready, point).Add(pool.Speed.Scale(r.Parts[0].Variants[0].Duration))
		if rate := site.Link.KilobytesPerSecond; config.Staging != engine.StagingNone {
			moved := berth.Duration((1000*r.StorageMB + rate - 1) / rate)
			ends = max(r.Ready, point.Add(moved)).Add(pool.Speed.Scale(r.Parts[0].Variants[0].Duration))
			if config.Staging == engine.StagingHold {
				ends = max(r.Ready, point).Add(moved + pool.Speed.Scale(r.Parts[0].Variants[0].Duration))
			}
		}
		if ends <= r.Deadline {
			return false
		}
	}
	return true
}

// Whatever the matcher: requests are decided once, what is accepted fits and ends
// by its deadline, nothing that waits is hopeless, and only what is hopeless is
// refused.
func TestBatchesKeepTheRules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := example(rapid.SampledFrom(policy.Batches).Draw(t, "match").Name, rapid.Bool().Draw(t, "unaware"))
		config.Staging = rapid.SampledFrom(engine.Stagings()).Draw(t, "staging")
		config.Sites[0].StorageMB, config.Sites[1].Software[0].Licences = 3, 2
		switch rapid.IntRange(0, 2).Draw(t, "trigger") {
		case 0:
			config.Trigger, config.Period = engine.TriggerOnInstant, 0
		case 1:
			config.Trigger, config.Period = engine.TriggerOnArrival, 0
		}
		e, err := engine.New(config)
		if err != nil {
			t.Fatal(err)
		}
		follows, _ := engine.New(config)
		decided := map[string]bool{}
		take := func(now berth.Time, event engine.Event) {
			changes, _, err := e.Apply(now, event)
			if err != nil {
				t.Fatal(err)
			}
			for i := range changes {
				c := &changes[i]
				if c.Kind != change.Accepted && c.Kind != change.Refused {
					continue
				}
				if decided[c.ID] {
					t.Fatalf("%s is decided twice", c.ID)
				}
				decided[c.ID] = true
				if c.Kind == change.Refused && !config.Unaware && !hopeless(&config, c.Request, now) {
					t.Fatalf("%s is refused with %v, but could be served later", c.ID, c.Refusal)
				}
				if r := c.Reservation; r != nil && (r.End() > r.Request.Deadline || r.Start() < r.Request.Ready) {
					t.Fatalf("%s runs throughout [%d,%d), its window is [%d,%d)", c.ID, r.Start(), r.End(), r.Request.Ready, r.Request.Deadline)
				}
			}
			if err := follows.Fold(changes); err != nil || follows.Hash() != e.Hash() {
				t.Fatalf("the changes lead elsewhere, %v", err)
			}
		}
		now := berth.Time(0)
		n := rapid.IntRange(1, 12).Draw(t, "requests")
		for i := range n {
			now += berth.Time(rapid.IntRange(0, 100).Draw(t, "pause"))
			r := asks(fmt.Sprint(i), berth.Count(rapid.IntRange(1, 11).Draw(t, "npe")), berth.Duration(rapid.IntRange(1, 300).Draw(t, "run")), 0, rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "program"))
			r.Arrival, r.Ready = now, now+berth.Time(rapid.SampledFrom([]int{0, 0, 50}).Draw(t, "lead"))
			r.Deadline = r.Ready.Add(r.Parts[0].Variants[0].Duration) + berth.Time(rapid.IntRange(0, 800).Draw(t, "slack"))
			r.Licences = berth.Count(rapid.IntRange(0, 2).Draw(t, "licences"))
			r.StorageMB = rapid.Int64Range(0, 2).Draw(t, "data")
			take(now, engine.Submit(&r))
		}
		for steps := 0; ; steps++ {
			at, ok := e.Next()
			if !ok {
				break
			}
			if steps > 1000 {
				t.Fatalf("it goes on for ever; next is %d", at)
			}
			take(max(at, now), engine.Wake())
			now = max(at, now)
		}
		if len(decided) != n {
			t.Fatalf("%d of %d are decided", len(decided), n)
		}
		if err := e.Check(); err != nil {
			t.Fatal(err)
		}
	})
}

// A moldable request is promised the place where it ends first, before the
// matcher chooses among the rigid ones: its first variant is too large here.
func TestMoldableBesideABatch(t *testing.T) {
	e := newEngine(t, example("ajsm", false))
	moldable := asks("moldable", 20, 10, 4000, "a")
	moldable.Parts[0].Variants = append(moldable.Parts[0].Variants, berth.Variant{NPE: 4, Duration: 100}, berth.Variant{NPE: 2, Duration: 300})
	submit(t, e, 0, moldable)
	submit(t, e, 0, asks("rigid", 4, 100, 4000, "c"))
	late := asks("late", 20, 10, 4000, "a")
	late.Parts[0].Variants = append(late.Parts[0].Variants, berth.Variant{NPE: 12, Duration: 100})
	submit(t, e, 0, late)
	if got, want := told(apply(t, e, 0, engine.Wake())), "moldable@s2 0-80, late too_large"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := told(apply(t, e, 240, engine.Wake())), "rigid@s2 240-320"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}

// A refusal by an unaware matcher tells the earliest end there could be, and where:
// from 240 on, 100 s at s1 and 50 s at s2, which is twice as fast.
func TestUnawareRefusalTellsTheEarliestEnd(t *testing.T) {
	for _, turned := range []bool{false, true} {
		config := example("min-min", true)
		if turned {
			slices.Reverse(config.Sites)
		}
		e := newEngine(t, config)
		apply(t, e, 1, engine.Wake())
		r := asks("r", 4, 100, 200, "a")
		r.Arrival, r.Ready = 1, 1
		submit(t, e, 1, r)
		got := refused(t, apply(t, e, 240, engine.Wake()))
		if got.Reason != berth.DeadlineMissed || got.Resource.Site != "s2" || got.Possible != 290 {
			t.Errorf("sites turned: %t; the refusal is %+v, want an end at 290 at s2", turned, got)
		}
	}
}

// A batch refuses at once what the quota does not admit, though there is no room for
// it before the next point.
func TestBatchRefusesAtOnceWhatIsNotAdmitted(t *testing.T) {
	config := example("ajsm", false)
	config.Limits = quotas(1, 0)
	e := newEngine(t, config)
	submit(t, e, 0, ofUser(asks("first", 10, 300, 4000, "b")))
	if got := told(apply(t, e, 0, engine.Wake())); got != "first@s1 0-310" {
		t.Fatal(got)
	}
	second := ofUser(asks("second", 10, 300, 4000, "b"))
	second.Arrival, second.Ready = 1, 1
	submit(t, e, 1, second)
	if got := told(apply(t, e, 240, engine.Wake())); got != "second quota" {
		t.Errorf("%q, want a refusal because of the quota", got)
	}
}
