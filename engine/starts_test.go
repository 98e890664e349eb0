package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

func stretches(s engine.Starts) string {
	var words []string
	for _, x := range s.Stretches {
		word := fmt.Sprintf("[%d,%d]", x.First, x.Last)
		if no := x.Refusal; no != nil {
			word += ":" + string(no.Reason)
			if no.Nearest != nil {
				word += fmt.Sprintf(" %d free from %d", no.Nearest.NPE, no.Nearest.Start)
			}
			if no.Exceeded != nil {
				word += " " + no.Exceeded.Limit
			}
		}
		words = append(words, word)
	}
	return strings.Join(words, "; ")
}

// The pool of TestOffers: 3 PEs free until 40, none until 60, and all after that.
func TestStarts(t *testing.T) {
	for _, binding := range []berth.Binding{berth.Late, berth.Early} {
		config := engine.Config{Sites: sites(binding, 8), Limits: policy.Limits{{Name: policy.LimitLead, Value: 200}}}
		e := newEngine(t, config)
		accepted(t, submit(t, e, 0, berth.Rigid("b", 0, 0, 40, 5, 40)))
		accepted(t, submit(t, e, 0, berth.Rigid("c", 0, 40, 60, 8, 20)))
		before := e.Hash()
		pool := berth.PoolID("R8", "pool")
		for _, c := range []struct {
			npe         berth.Count
			d           berth.Duration
			first, last berth.Time
			want        string
		}{
			{3, 30, 0, 100, "[0,10]; [11,59]:no_capacity 0 free from 11; [60,100]"},
			{4, 30, 0, 100, "[0,59]:no_capacity 3 free from 0; [60,100]"},
			{8, 1, -5, 59, "[0,59]:no_capacity 3 free from 0"},
			{3, 40, 0, 0, "[0,0]"},
			{3, 41, 30, 300, "[30,59]:no_capacity 0 free from 30; [60,200]; [201,300]:quota lead"},
		} {
			r := berth.Rigid("r", 0, 0, 200, c.npe, c.d)
			r.User = "ann"
			got, err := e.Starts(&r, engine.Look{Pool: pool, First: c.first, Last: c.last, Steps: 9})
			if err != nil {
				t.Fatal(err)
			}
			if got := stretches(got); got != c.want {
				t.Errorf("%s, %d PEs for %d s: %s, want %s", binding, c.npe, c.d, got, c.want)
			}
		}
		if e.Hash() != before {
			t.Error("to ask has changed the state")
		}
		r := berth.Rigid("r", 0, 0, 200, 9, 30)
		if got, err := e.Starts(&r, engine.Look{Pool: pool, Last: 100, Steps: 9}); err != nil || got.Refusal == nil || got.Refusal.Reason != berth.TooLarge {
			t.Errorf("too large: %+v, %v", got, err)
		}
		two := r
		two.Parts = append(two.Parts[:1:1], r.Parts...)
		for field, look := range map[string]engine.Look{
			"parts": {Pool: pool, Last: 100, Steps: 9}, "pool": {Pool: berth.PoolID("R8", "x"), Last: 100, Steps: 9}, "variant": {Pool: pool, Variant: 1, Last: 100, Steps: 9},
			"steps": {Pool: pool, Last: 100}, "last": {Pool: pool, First: 2, Last: 1, Steps: 9}, "deadline": {Pool: pool, Last: 100, Steps: 9},
		} {
			asked := r
			switch field {
			case "parts":
				asked = two
			case "deadline":
				asked.Deadline = asked.Ready - 1
			}
			_, err := e.Starts(&asked, look)
			wantCode(t, err, berth.Invalid, field)
		}
		job := berth.Job("j", 0, 1, 10)
		_, err := e.Starts(&job, engine.Look{Pool: pool, Last: 100, Steps: 9})
		wantCode(t, err, berth.Invalid, "kind")
	}
}

// Starts before the first thing that is promised are told by the share too.
func TestStartsBeforeAnythingIsPromised(t *testing.T) {
	e := newEngine(t, engine.Config{Sites: sites(berth.Late, 8), Limits: policy.Limits{{Name: policy.LimitShare, Value: 500}}})
	b, r := berth.Rigid("b", 0, 40, 60, 3, 20), berth.Rigid("r", 0, 0, 200, 2, 30)
	b.User, r.User = "ann", "ann"
	accepted(t, submit(t, e, 0, b))
	got, err := e.Starts(&r, engine.Look{Pool: berth.PoolID("R8", "pool"), Last: 100, Steps: 9})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := stretches(got), "[0,10]; [11,59]:quota share; [60,100]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if x := got.Stretches[1].Refusal.Exceeded; x == nil || *x != (berth.Exceeded{Limit: string(policy.LimitShare), Allowed: 4, Asked: 5, Frees: 60}) {
		t.Errorf("what is exceeded is %+v", x)
	}
}

// Where jobs yield to requests, the PEs of a running job are no obstacle to a start: it is possible
// exactly if a request for it is promised.
func TestStartsLookPastJobsThatYield(t *testing.T) {
	for _, binding := range bindings() {
		for _, pass := range engine.JobPasses() {
			config := onePool(2, binding)
			config.Preempt, config.Jobs = true, pass.Name
			e := newEngine(t, config)
			submit(t, e, 0, berth.Job("j", 0, 2, 20))
			apply(t, e, 2, wake())
			accepted(t, submit(t, e, 2, berth.Rigid("x", 2, 30, 40, 1, 10)))
			r := berth.Rigid("r", 2, 2, 100, 2, 10)
			got, err := e.Starts(&r, engine.Look{Pool: berth.PoolID("cm5", "pool"), First: 2, Last: 60, Steps: 99})
			if err != nil || got.Refusal != nil {
				t.Fatalf("%s, %s: %+v, %v", binding, pass.Name, got, err)
			}
			if s := got.Stretches[0]; s.First != 2 || s.Refusal != nil || s.Last < 20 {
				t.Errorf("%s, %s: beside the job that yields %s, want it possible from 2 on", binding, pass.Name, stretches(got))
			}
			for _, s := range got.Stretches {
				for _, at := range []berth.Time{s.First, s.Last} {
					again, err := engine.Restore(config, e.Snapshot())
					if err != nil {
						t.Fatal(err)
					}
					submit(t, again, 2, berth.Rigid("r", 2, at, at+10, 2, 10))
					if _, taken := again.Reservation("r"); taken != (s.Refusal == nil) {
						t.Errorf("%s, %s, start %d: promised %t, in %s", binding, pass.Name, at, taken, stretches(got))
					}
				}
			}
		}
	}
}

// Stretches say of every start what the calendar of the paper says of it, whatever else is held.
func TestStartsEqualThePlainCalendar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		binding := rapid.SampledFrom([]berth.Binding{berth.Early, berth.Late}).Draw(t, "binding")
		pes := berth.Count(rapid.IntRange(1, 70).Draw(t, "pes"))
		e, err := engine.New(onePool(pes, binding))
		if err != nil {
			t.Fatal(err)
		}
		plain := calendar.NewPlain(pes, binding)
		for i := range rapid.IntRange(0, 12).Draw(t, "bookings") {
			start, d := berth.Time(rapid.IntRange(0, 60).Draw(t, "start")), berth.Duration(rapid.IntRange(1, 20).Draw(t, "length"))
			r := berth.Rigid(fmt.Sprint(i), 0, start, start.Add(d), berth.Count(rapid.IntRange(1, int(pes)).Draw(t, "held")), d)
			if binding == berth.Early && rapid.Bool().Draw(t, "scattered") {
				r.Parts[0].Eligible = berth.NewPESet(berth.Run{Lo: berth.PE(rapid.IntRange(0, int(pes)-1).Draw(t, "lo")), Hi: berth.PE(pes)})
			}
			if _, _, err := e.Apply(0, engine.Submit(&r)); err != nil {
				t.Fatal(err)
			}
			if got, live := e.Reservation(r.ID); live {
				for _, a := range got.Allotments {
					if err := plain.Add(calendar.Block{Start: a.Start, End: a.End, NPE: a.NPE, PEs: a.PEs}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		d := berth.Duration(rapid.IntRange(1, 25).Draw(t, "duration"))
		r := berth.Rigid("r", 0, 0, 1000, berth.Count(rapid.IntRange(1, int(pes)).Draw(t, "npe")), d)
		if binding == berth.Early && rapid.IntRange(0, 3).Draw(t, "masked") == 0 {
			r.Parts[0].Eligible = berth.NewPESet(berth.Run{Lo: 0, Hi: 1 + berth.PE(rapid.IntRange(0, int(pes)-1).Draw(t, "hi"))})
		}
		eligible, npe := r.Parts[0].Eligible, r.Parts[0].Variants[0].NPE
		free := func(at berth.Time) berth.Count {
			n, set := plain.Free(berth.Interval{Start: at, End: at.Add(d)})
			if !eligible.Empty() {
				n = set.Overlap(eligible)
			}
			return n
		}
		const last = 90
		got, err := e.Starts(&r, engine.Look{Pool: berth.PoolID("cm5", "pool"), Last: last, Steps: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if got.Refusal != nil {
			if eligible.Empty() || eligible.Below(pes) >= npe {
				t.Fatalf("refused: %+v", got.Refusal)
			}
			return
		}
		next := berth.Time(0)
		for _, s := range got.Stretches {
			if s.First != next || s.Last < s.First {
				t.Fatalf("%s: not one behind the other from %d on", stretches(got), next)
			}
			next = s.Last + 1
			most := berth.Count(0)
			for at := s.First; at <= s.Last; at++ {
				n := free(at)
				most = max(most, n)
				if (n >= npe) != (s.Refusal == nil) {
					t.Fatalf("%s: %d of %d PEs are free for %d from %d on", stretches(got), n, npe, d, at)
				}
			}
			if s.Refusal != nil && (s.Refusal.Nearest.NPE != most || free(s.Refusal.Nearest.Start) != most) {
				t.Fatalf("%s: at most %d are free", stretches(got), most)
			}
		}
		if next != last+1 {
			t.Fatalf("%s: not until %d", stretches(got), last)
		}
	})
}

// A start is possible exactly if the request would be promised there: with licences, storage,
// transfers, limits, outages and whatever the configuration says.
func TestStartsAreThoseThatAreOffered(t *testing.T) {
	possible, short := 0, map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		config := drawConfig(t)
		config.Limits, config.Trigger, config.Period = drawLimits(t), engine.TriggerOnArrival, 0
		scarce := rapid.Bool().Draw(t, "scarce")
		if scarce { // licences, storage and the uplink bind, and no PEs
			config.Limits, config.Preempt = nil, false
			config.Staging, config.Uplink = rapid.SampledFrom([]engine.Staging{engine.StagingBefore, engine.StagingHold}).Draw(t, "staged"), rapid.SampledFrom([]int64{0, 600, 1500}).Draw(t, "narrow uplink")
			for i := range config.Sites {
				config.Sites[i].Pools[0].PEs, config.Sites[i].StorageMB, config.Sites[i].Software[0].Licences = 300, rapid.Int64Range(5, 9).Draw(t, "little storage"), 2
			}
		}
		e, err := engine.New(config)
		if err != nil {
			t.Fatal(err)
		}
		now := berth.Time(1)
		if _, _, err := e.Apply(now, engine.Wake()); err != nil {
			t.Fatal(err)
		}
		for i := range rapid.IntRange(0, 8).Draw(t, "steps") {
			now += berth.Time(rapid.IntRange(0, 4).Draw(t, "pause"))
			var event engine.Event
			if rapid.IntRange(0, 5).Draw(t, "outage") == 0 {
				from := now
				if config.Sites[0].Pools[0].Binding == berth.Early { // else it begins at once
					from += berth.Time(rapid.IntRange(0, 9).Draw(t, "from"))
				}
				event = engine.Down(berth.Outage{Name: fmt.Sprint("o", i), Resource: berth.PoolID("s0", "p"), PEs: berth.NewPESet(berth.Run{Hi: 1}), From: from, Until: from + 9})
			} else {
				r := drawRequest(t, fmt.Sprint(i), now)
				if scarce {
					r.Software, r.Version, r.Licences = "solver", "", 1
					r.StorageMB = rapid.Int64Range(0, 4).Draw(t, "data of it")
				}
				event = engine.Submit(&r)
			}
			if _, _, err := e.Apply(now, event); err != nil {
				t.Fatal(err)
			}
		}
		r := drawRequest(t, "r", now)
		r.Parts, r.Hold = r.Parts[:1], 0
		for i := range r.Parts[0].Variants { // most are too large else
			r.Parts[0].Variants[i].NPE = min(r.Parts[0].Variants[i].NPE, berth.Count(rapid.IntRange(1, 9).Draw(t, "narrow")))
		}
		if scarce {
			r.Software, r.Version, r.Licences = "solver", "", berth.Count(rapid.IntRange(0, 2).Draw(t, "licences of it"))
			r.StorageMB = rapid.Int64Range(0, 5).Draw(t, "data")
		}
		site := config.Sites[rapid.IntRange(0, len(config.Sites)-1).Draw(t, "site")].Name
		r.Site, r.Pool = site, "p"
		variant := rapid.IntRange(0, len(r.Parts[0].Variants)-1).Draw(t, "variant")
		last := now + 60
		got, err := e.Starts(&r, engine.Look{Pool: berth.PoolID(site, "p"), Variant: variant, First: now, Last: last, Steps: 1000})
		if err != nil {
			t.Fatal(err)
		}
		list := got.Stretches
		if got.Refusal != nil {
			list = []engine.Stretch{{First: now, Last: last, Refusal: got.Refusal}}
		}
		next := now
		for _, s := range list {
			if s.First != next || s.Last < s.First {
				t.Fatalf("%s: not one behind the other from %d on", stretches(got), next)
			}
			next = s.Last + 1
			if s.Refusal == nil {
				possible++
			} else {
				name := string(s.Refusal.Reason) + " " + s.Refusal.Resource.Kind
				if s.Refusal.Exceeded != nil {
					name += s.Refusal.Exceeded.Limit
				}
				short[name]++
			}
			for at := s.First; at <= s.Last; at++ {
				one := r
				one.Parts = []berth.Part{{Variants: r.Parts[0].Variants[variant : variant+1], Eligible: r.Parts[0].Eligible}}
				one.Ready, one.Deadline = at, at.Add(max(got.Duration, one.Parts[0].Variants[0].Duration))
				offers, err := e.Offers(&one, 1)
				if err != nil {
					t.Fatal(err)
				}
				is := len(offers) > 0 && offers[0].Difference == engine.OfferAsAsked && offers[0].Allotments[0].Start == at
				if is != (s.Refusal == nil) {
					t.Fatalf("%s: at %d it is %t, %s (%+v)", stretches(got), at, is, listed(offers), s.Refusal)
				}
			}
		}
		if next != last+1 {
			t.Fatalf("%s: not until %d", stretches(got), last)
		}
	})
	t.Logf("%d possible stretches; %v", possible, short)
}
