package engine_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// encoded returns the text of a value, which shows every later change of it.
func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A caller may use one Request for several submissions.
func TestOneRequestMayBeSubmittedTwice(t *testing.T) {
	for _, binding := range bindings() {
		config := onePool(4, binding)
		e := newEngine(t, config)
		r := berth.Rigid("a", 0, 10, 20, 2, 10)
		apply(t, e, 0, engine.Submit(&r))
		r.ID = "b"
		apply(t, e, 0, engine.Submit(&r))
		settled(t, config, e)
		apply(t, e, 0, engine.Cancel("a"))
		if got := ids(e.Reservations()); got != "b" {
			t.Errorf("%s: %q are live, want b", binding, got)
		}
		wantShape(t, e, "b", "confirmed cm5:2x[10,20)")
		settled(t, config, e)
	}
}

// scribbled changes every field of a request, and what it refers to, in place.
func scribbled(r *berth.Request) {
	for i := range r.Parts {
		for k := range r.Parts[i].Variants {
			r.Parts[i].Variants[k] = berth.Variant{NPE: 77, Duration: 777}
		}
	}
	r.ID, r.User, r.Kind, r.Deadline, r.StorageMB, r.Site = "other", "other", berth.KindJob, 12345, 9, "elsewhere"
}

// What the caller does to a request after the event has no effect, whether the
// request was promised something, waits, or is the modification of another.
func TestChangedRequestsChangeNothing(t *testing.T) {
	promised, waiting := berth.Rigid("a", 0, 10, 200, 2, 10), berth.Job("j", 0, 4, 10)
	for _, r := range []*berth.Request{&promised, &waiting} {
		config := onePool(4, berth.Early)
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("full", 0, 0, 5, 4, 5))
		apply(t, e, 0, engine.Submit(r))
		hash, id := e.Hash(), r.ID
		scribbled(r)
		if e.Hash() != hash {
			t.Errorf("%s: a changed request changes the hash", id)
		}
		settled(t, config, e)
	}
	config := onePool(4, berth.Early)
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("a", 0, 10, 200, 2, 10))
	modified := berth.Rigid("a", 0, 20, 200, 3, 10)
	apply(t, e, 0, engine.Modify(&modified))
	hash := e.Hash()
	scribbled(&modified)
	if e.Hash() != hash {
		t.Error("a changed modification changes the hash")
	}
	settled(t, config, e)
}

// rush submits requests for which every part of the configuration of
// TestChangedConfigurationChangesNothing matters, and returns what the engine says.
func rush(t *testing.T, e *engine.Engine, now berth.Time) string {
	t.Helper()
	request := func(id, user string, npe berth.Count, length berth.Duration) berth.Request {
		r := berth.Rigid(fmt.Sprint(id, now), now, now+10, now+110, npe, length)
		r.User = user
		return r
	}
	long, old := request("long", "", 1, 40), request("old", "", 1, 10)
	long.Partition, old.Software, old.Version = "short", "solver", "2"
	var said []any
	for _, r := range []berth.Request{
		request("low", "low", 7, 100), request("high", "high", 8, 20), request("next", "next", 8, 5), request("narrow", "low", 1, 10), long, old,
	} {
		said = append(said, submit(t, e, now, r))
	}
	said = append(said, apply(t, e, now+1, wake()), apply(t, e, now+200, wake()), e.Loads(), e.Hash())
	return encoded(t, said)
}

// What the caller does to a configuration after New or Restore has no effect.
func TestChangedConfigurationChangesNothing(t *testing.T) {
	for what, scribble := range map[string]func(*engine.Config){
		"site":       func(c *engine.Config) { c.Sites[0].Managed = false },
		"pool":       func(c *engine.Config) { c.Sites[0].Pools[0].PEs = 16 },
		"partition":  func(c *engine.Config) { c.Sites[0].Partitions[0].MaxDuration = 99 },
		"software":   func(c *engine.Config) { c.Sites[0].Software[0].Version = "1" },
		"users":      func(c *engine.Config) { c.Users[0].Priority, c.Users[1].Priority = 1, 9 },
		"difference": func(c *engine.Config) { *c.Options.SD = policy.AnyGap },
		"filter":     func(c *engine.Config) { c.Eager.K1 = 0 },
		"instant":    func(c *engine.Config) { c.Instant[0] = "none" },
	} {
		made := func() engine.Config {
			config := managed(onePool(8, berth.Early))
			config.Order, config.Options.SD = "dpsar", new(policy.Levels)
			config.Users = []berth.User{{ID: "high", Priority: 9}, {ID: "low", Priority: 1}, {ID: "next", Priority: 8}}
			config.Eager, config.Instant = &policy.Eager{K1: 500, K2: 200}, engine.EndsFirst()
			config.Sites[0].Partitions = []berth.Partition{{Name: "short", Pool: "pool", MaxDuration: 30}}
			config.Sites[0].Software = []berth.Software{{Name: "solver", Version: "2"}}
			return config
		}
		config := made()
		e, twin := newEngine(t, config), newEngine(t, made())
		scribble(&config)
		want := rush(t, twin, 0)
		if other, err := engine.New(config); err == nil && rush(t, other, 0) == want {
			t.Errorf("%s: it makes no difference to the requests", what)
		}
		if got := rush(t, e, 0); got != want {
			t.Errorf("%s, written after New:\n%s\nwant\n%s", what, got, want)
		}
		config = made()
		e, err := engine.Restore(config, twin.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		scribble(&config)
		if got, want := rush(t, e, 300), rush(t, twin, 300); got != want {
			t.Errorf("%s, written after Restore:\n%s\nwant\n%s", what, got, want)
		}
	}
}

// A forecast belongs to the engine once it has heard of it.
func TestChangedForecastChangesNothing(t *testing.T) {
	config := distant(engine.StagingBefore, 0)
	e := newEngine(t, config)
	event := foreseen(0, 5, 575_000, 1_162_500, 1_756_250, 2_353_125)
	apply(t, e, 0, event)
	hash := e.Hash()
	event.Forecast.Kilobytes[3], event.Forecast.Period = 1, 9
	if e.Hash() != hash {
		t.Error("a changed forecast changes the hash")
	}
	submit(t, e, 10, heavy("a", 10, 1000, 2000))
	if r, live := e.Reservation("a"); !live || r.Transfers[0].End > 40 {
		t.Errorf("a is %q; its data should arrive as they were foreseen", shape(e, "a"))
	}
	settled(t, config, e)
}

// everything returns what the engine says of reservation a and of the rest.
func everything(t *testing.T, e *engine.Engine) []any {
	t.Helper()
	r, live := e.Reservation("a")
	s, known := e.Status("a")
	if !live || !known || s.Reservation == nil {
		t.Fatal("a is not live")
	}
	return []any{
		&r, &s, slices.Collect(e.Reservations()), slices.Collect(e.Queue("cm5", engine.StandingWaiting)), slices.Collect(e.Queue("cm5", engine.StandingRunning)),
		slices.Collect(e.Pending()), slices.Collect(e.Outages()), e.Outbox(), e.Loads(),
	}
}

// What the engine has said of a reservation stays as it was said, and so do its
// changes, whatever becomes of the reservation.
func TestAnswersDoNotChange(t *testing.T) {
	for _, binding := range bindings() {
		config := managed(onePool(4, binding))
		config.Overrun = engine.OverrunDelay
		later := berth.Rigid("a", 0, 20, 300, 2, 30)
		e := newEngine(t, config)
		changes := submit(t, e, 0, berth.Rigid("a", 0, 10, 300, 2, 10))
		changes = append(changes, submit(t, e, 0, berth.Rigid("b", 0, 0, 300, 1, 4))...)
		changes = append(changes, submit(t, e, 0, berth.Job("j", 0, 4, 400))...)
		for _, c := range []struct {
			now   berth.Time
			event engine.Event
		}{
			{1, extended("a", 30)},
			{1, engine.Finish("b")},
			{2, takenDown(cm5(), 0, 3, 0, 0)},
			{3, broughtUp(cm5(), 0, 1)},
			{4, engine.Modify(&later)},
			{21, wake()},
			{22, extended("a", 60)},
			{23, takenDown(cm5(), 0, 1, 0, 0)},
			{24, broughtUp(cm5(), 0, 4)},
			{70, wake()},
			{71, engine.Finish("a")},
		} {
			answers := append(everything(t, e), changes)
			for _, id := range []string{"a", "b"} {
				promise := e.Promise(id)
				if state, is := e.State(id); is != (promise != nil) || is && state != promise.State {
					t.Errorf("%s: %q is %s, %t; promised is %+v", binding, id, state, is, promise)
				}
				answers = append(answers, promise)
			}
			before := encoded(t, answers)
			changes = append(changes, apply(t, e, c.now, c.event)...)
			if after := encoded(t, answers); after != before {
				t.Errorf("%s: %s at %d changes what was said before it:\n%s\n%s", binding, c.event.Kind, c.now, before, after)
			}
			settled(t, config, e)
		}
	}
}

// What the engine returns belongs to the caller, who may write it.
func TestAnswersMayBeWritten(t *testing.T) {
	for _, binding := range bindings() {
		config := managed(onePool(4, binding))
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("a", 0, 0, 300, 2, 10))
		submit(t, e, 0, berth.Rigid("b", 0, 20, 300, 2, 10))
		submit(t, e, 0, berth.Job("j", 0, 4, 400))
		apply(t, e, 1, wake())
		hash := e.Hash()
		write := func(r *berth.Reservation) {
			scribbled(r.Request)
			for i := range r.Allotments {
				r.Allotments[i] = berth.Allotment{NPE: 99}
			}
		}
		for _, id := range []string{"a", "b"} {
			r, _ := e.Reservation(id)
			write(&r)
			s, _ := e.Status(id)
			scribbled(&s.Request)
			write(s.Reservation)
		}
		for _, seq := range [][]berth.Reservation{
			slices.Collect(e.Reservations()), slices.Collect(e.Queue("cm5", engine.StandingRunning)),
		} {
			for i := range seq {
				write(&seq[i])
			}
		}
		for r := range e.Pending() {
			scribbled(&r)
		}
		e.Outbox()[0].Site = "elsewhere"
		if e.Hash() != hash {
			t.Errorf("%s: to write an answer changes the hash", binding)
		}
		wantShape(t, e, "a", "active cm5:2x[0,10)")
		settled(t, config, e)
	}
}

// An offer shares nothing with the request that was asked about, nor with the
// engine.
func TestOffersMayBeWritten(t *testing.T) {
	config := onePool(4, berth.Early)
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("x", 0, 0, 50, 3, 50))
	r := moldable("r", 0, 100, berth.Variant{NPE: 2, Duration: 10}, berth.Variant{NPE: 1, Duration: 30})
	co := parts("co", 100, berth.Variant{NPE: 2, Duration: 10}, berth.Variant{NPE: 1, Duration: 5})
	for _, asked := range []*berth.Request{&r, &co} {
		before, hash := encoded(t, asked), e.Hash()
		offers, err := e.Offers(asked, 9)
		if err != nil || len(offers) == 0 {
			t.Fatalf("offers %+v, %v", offers, err)
		}
		for i := range offers {
			scribbled(&offers[i].Request)
			offers[i].Allotments[0].NPE = 99
		}
		if encoded(t, asked) != before || e.Hash() != hash {
			t.Errorf("%s: to write an offer changes the request or the engine", asked.ID)
		}
	}
	settled(t, config, e)
}

// askEverything calls every query of an engine.
func askEverything(t *testing.T, e *engine.Engine, now berth.Time) {
	t.Helper()
	for _, r := range []berth.Request{
		berth.Rigid("ask", now, now+5, now+100, 3, 20), berth.Rigid("ask", now, now, now+20, 9, 20),
		moldable("ask", now, now+50, berth.Variant{NPE: 2, Duration: 9}, berth.Variant{NPE: 1, Duration: 12}),
		parts("ask", now+100, berth.Variant{NPE: 2, Duration: 9}, berth.Variant{NPE: 3, Duration: 12}),
	} {
		r.Arrival, r.Ready = now, max(r.Ready, now)
		if _, err := e.Offers(&r, 9); err != nil {
			t.Fatal(err)
		}
	}
	for r := range e.Reservations() {
		e.Status(r.Request.ID)
	}
	for range e.Pending() {
	}
	for range e.Outages() {
	}
	for _, s := range []engine.Standing{engine.StandingWaiting, engine.StandingRunning} {
		for range e.Queue("cm5", s) {
		}
	}
	for range e.Due("cm5", now+10) {
	}
	e.Holder(cm5(), 0, now)
	e.Loads()
	e.Outbox()
	e.Next()
	e.Now()
	e.Live()
	e.Snapshot()
}

// Two engines with the same events decide the same, although one of them is asked
// everything between any two events.
func TestQueriesChangeNothing(t *testing.T) {
	for _, binding := range bindings() {
		for i := range 2 * len(engine.JobPasses()) {
			pass := engine.JobPasses()[i/2]
			config := poolsOf(4, binding, "cm5", "other")
			if i%2 == 0 {
				config = onePool(4, binding)
			}
			config.Match, config.Jobs, config.Preempt, config.Overrun = "random", pass.Name, true, engine.OverrunDelay
			silent, asked := newEngine(t, config), newEngine(t, config)
			for _, c := range []struct {
				now   berth.Time
				event engine.Event
			}{
				{0, engine.Event{Kind: engine.EventSubmit, Request: new(berth.Rigid("a", 0, 10, 90, 2, 10))}},
				{1, engine.Event{Kind: engine.EventSubmit, Request: new(berth.Job("j", 1, 3, 30))}},
				{2, engine.Event{Kind: engine.EventSubmit, Request: new(berth.Job("k", 2, 2, 30))}},
				{3, engine.Event{Kind: engine.EventSubmit, Request: new(berth.Rigid("b", 3, 5, 90, 3, 10))}},
				{6, takenDown(cm5(), 0, 1, 0, 30)},
				{8, engine.Event{Kind: engine.EventSubmit, Request: new(berth.Rigid("c", 8, 8, 90, 1, 10))}},
				{12, extended("c", 40)},
				{25, wake()},
				{100, wake()},
			} {
				askEverything(t, asked, asked.Now())
				want, _, wantErr := silent.Apply(c.now, c.event)
				got, _, err := asked.Apply(c.now, c.event)
				if kinds(got) != kinds(want) || (err == nil) != (wantErr == nil) || asked.Hash() != silent.Hash() {
					t.Fatalf("%s, %s, %s at %d: %s %v, want %s %v", binding, pass.Name, c.event.Kind, c.now, kinds(got), err, kinds(want), wantErr)
				}
			}
			settled(t, config, asked)
		}
	}
}

// A request that is given to engines is only read: several may have the same.
func TestGivenRequestsAreOnlyRead(t *testing.T) {
	given := berth.Rigid("r", 0, 0, 100, 2, 10)
	given.Parts[0].Variants = append(given.Parts[0].Variants, berth.Variant{NPE: 1, Duration: 20})
	before := given.Clone()
	for range 2 {
		e := newEngine(t, onePool(2, berth.Early))
		apply(t, e, 0, engine.SubmitGiven(&given))
		other := berth.Rigid("r", 2, 50, 100, 1, 5)
		apply(t, e, 1, engine.Extend("r", 50))
		apply(t, e, 2, engine.Finish("r"))
		apply(t, e, 2, engine.SubmitGiven(&other))
		apply(t, e, 3, engine.Cancel("r"))
		if !reflect.DeepEqual(&given, before) {
			t.Fatalf("it is %+v now, was %+v", given, *before)
		}
	}
}
