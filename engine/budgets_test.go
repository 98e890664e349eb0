package engine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// budgeted is ten PEs with budgets of the user u and of the account phys.
func budgeted(binding berth.Binding, budget, month int64) engine.Config {
	config := onePool(10, binding)
	for _, of := range []policy.Scope{{User: "u"}, {Account: "phys"}} {
		config.Limits = append(config.Limits, policy.Limit{Scope: of, Name: policy.LimitBudget, Value: budget}, policy.Limit{Scope: of, Name: policy.LimitMonthBudget, Value: month})
	}
	return config
}

func ofPhys(r berth.Request) berth.Request {
	r.Account = "phys"
	return r
}

// wantCharged compares what u and phys are charged for.
func wantCharged(t *testing.T, e *engine.Engine, all, live int64) {
	t.Helper()
	want := engine.Charges{All: all, Live: live}
	if user, account := e.Usage("u"), e.AccountUsage("phys"); user.Charged != want || account.Charged != want || user.Month != want {
		t.Errorf("charged are %+v to the user, %+v in this month, and %+v to the account, want %+v", user.Charged, user.Month, account.Charged, want)
	}
}

// What is over is charged by the rule: for as long as it held its PEs, in full where it was given up unused, and for nothing where it was
// lost, failed or was rejected; what is live in full.
func TestChargesOfWhatIsOver(t *testing.T) {
	plain := ofPhys(owned("x", 100, 200, 3, 100))
	held := plain
	held.Hold = 50
	shy := plain
	shy.NoShow = 10
	two := plain
	two.Parts = []berth.Part{{Variants: []berth.Variant{{NPE: 3, Duration: 100}}}, {Variants: []berth.Variant{{NPE: 2, Duration: 40}}}}
	type step struct {
		at    berth.Time
		event engine.Event
	}
	all := berth.PoolID("cm5", "pool")
	for name, c := range map[string]struct {
		ask   berth.Request
		steps []step
		all   int64
		live  int64
	}{
		"promised":                {plain, nil, 300, 300},
		"held":                    {held, nil, 300, 300},
		"expired":                 {held, []step{{60, engine.Wake()}}, 0, 0},
		"cancelled before":        {plain, []step{{99, engine.Cancel("x")}}, 0, 0},
		"running":                 {plain, []step{{150, engine.Wake()}}, 300, 300},
		"released early":          {plain, []step{{100, engine.Wake()}, {130, engine.Finish("x")}}, 90, 0},
		"cancelled while it runs": {plain, []step{{100, engine.Wake()}, {140, engine.Cancel("x")}}, 120, 0},
		"ended":                   {plain, []step{{200, engine.Wake()}}, 300, 0},
		"unused":                  {shy, []step{{110, engine.Wake()}}, 300, 0},
		"extended":                {plain, []step{{50, engine.Extend("x", 250)}}, 450, 450},
		"extended and ended":      {plain, []step{{50, engine.Extend("x", 250)}, {260, engine.Wake()}}, 450, 0},
		"lost":                    {plain, []step{{50, engine.Down(berth.Outage{Resource: all, PEs: berth.NewPESet(berth.Run{Hi: 10})})}, {300, engine.Wake()}}, 0, 0},
		"rejected":                {plain, []step{{100, engine.Wake()}, {120, engine.Reject("x", &berth.Refusal{Reason: berth.SiteRefused})}}, 0, 0},
		"one part of two over":    {two, []step{{150, engine.Wake()}}, 380, 380},
		"two parts, ended early":  {two, []step{{100, engine.Wake()}, {170, engine.Finish("x")}}, 290, 0},
		"smaller":                 {plain, []step{{50, engine.Modify(new(ofPhys(owned("x", 100, 200, 1, 50))))}}, 50, 50},
	} {
		t.Run(name, func(t *testing.T) {
			for _, binding := range bindings() {
				config := budgeted(binding, 10_000, 10_000)
				e := newEngine(t, config)
				changes := submit(t, e, 0, c.ask)
				accepted(t, changes)
				for _, s := range c.steps {
					changes = append(changes, apply(t, e, s.at, s.event)...)
				}
				wantCharged(t, e, c.all, c.live)
				restored, err := engine.Restore(config, e.Snapshot())
				if err != nil {
					t.Fatal(err)
				}
				wantCharged(t, restored, c.all, c.live)
				folded := newEngine(t, config)
				if err := folded.Fold(changes); err != nil {
					t.Fatal(err)
				}
				wantCharged(t, folded, c.all, c.live)
				without := config
				without.Limits = nil
				if restored, err = engine.Restore(without, restored.Snapshot()); err == nil {
					restored, err = engine.Restore(config, restored.Snapshot())
				}
				if err != nil {
					t.Fatal(err)
				}
				wantCharged(t, restored, c.all, c.live)
			}
		})
	}
}

// A budget is used up by what is over too, and an early end gives the rest back; one that is set below what is held takes nothing away.
func TestBudgetIsUsedUp(t *testing.T) {
	config := budgeted(berth.Late, 500, 10_000)
	e := newEngine(t, config)
	submit(t, e, 0, ofPhys(owned("a", 0, 100, 3, 100)))
	apply(t, e, 100, engine.Wake())
	no := refused(t, submit(t, e, 200, ofPhys(owned("b", 200, 300, 3, 100))))
	if want := (berth.Exceeded{Limit: "budget", Allowed: 500, Asked: 600}); no.Exceeded == nil || *no.Exceeded != want {
		t.Errorf("%+v, want %+v", no.Exceeded, want)
	}
	v := ofPhys(owned("v", 200, 300, 3, 100))
	v.User = "v"
	if no = refused(t, submit(t, e, 200, v)); no.Exceeded == nil || no.Exceeded.Account != "phys" {
		t.Errorf("another user of the account: %+v, want its limit", no.Exceeded)
	}
	accepted(t, submit(t, e, 200, ofPhys(owned("c", 200, 300, 2, 100))))
	apply(t, e, 250, engine.Finish("c"))
	wantCharged(t, e, 400, 0)
	accepted(t, submit(t, e, 250, ofPhys(owned("d", 250, 350, 1, 100))))

	narrow := budgeted(berth.Late, 100, 10_000)
	e, err := engine.Restore(narrow, e.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	if r, is := e.Reservation("d"); !is || r.State != berth.Confirmed && r.State != berth.Active {
		t.Errorf("what was promised is %+v under a narrower budget", r.State)
	}
	if no = refused(t, submit(t, e, 260, ofPhys(owned("e", 300, 350, 1, 10)))); no.Exceeded == nil || no.Exceeded.Allowed != 100 || no.Exceeded.Asked != 510 {
		t.Errorf("%+v, want 510 of 100", no.Exceeded)
	}
	apply(t, e, 350, engine.Wake())
	wantCharged(t, e, 500, 0)
}

// Where the budget of a month is used up, a request gets a start in the next month if its window reaches there, in every form; else the refusal says
// from when on it may start.
func TestMonthBudgetGivesAStartInTheNextMonth(t *testing.T) {
	february := policy.Month(1970*12 + 1).Start()
	now := february - 1000
	two := berth.Part{Variants: []berth.Variant{{NPE: 1, Duration: 100}, {NPE: 2, Duration: 80}}}
	for name, shape := range map[string]func(r *berth.Request){
		"one part": func(*berth.Request) {},
		"moldable": func(r *berth.Request) {
			r.Parts[0].Variants = append(r.Parts[0].Variants, berth.Variant{NPE: 4, Duration: 80})
		},
		"several parts": func(r *berth.Request) {
			r.Parts = append(r.Parts, berth.Part{Variants: []berth.Variant{{NPE: 1, Duration: 50}}})
		},
		"moldable parts": func(r *berth.Request) { r.Parts = []berth.Part{two, two, two} },
		"hold":           func(r *berth.Request) { r.Hold = 60 },
	} {
		for _, binding := range bindings() {
			e := newEngine(t, budgeted(binding, 100_000, 500))
			accepted(t, submit(t, e, now, ofPhys(owned("a", now, now+100, 3, 100))))
			ask := ofPhys(owned("x", now, february+500, 3, 100))
			shape(&ask)
			offers, err := e.Offers(&ask, 1)
			if err != nil || len(offers) == 0 || offers[0].Difference != engine.OfferAsAsked || offers[0].Allotments[0].Start != february {
				t.Errorf("%s, %s: offered is %+v, %v, want a start at %d", binding, name, offers, err, february)
			}
			if r := accepted(t, submit(t, e, now, ask)); r.Start() != february {
				t.Errorf("%s, %s: it starts at %d, want %d", binding, name, r.Start(), february)
			}
			if got := e.Usage("u").Month.All; got != 300 {
				t.Errorf("%s, %s: this month is charged for %d, want 300", binding, name, got)
			}
			early := ofPhys(owned("y", now, february-1, 3, 100))
			shape(&early)
			no := refused(t, submit(t, e, now, early))
			if no.Reason != berth.Quota || no.Exceeded == nil || no.Exceeded.Limit != "month_budget" {
				t.Errorf("%s, %s: refused with %+v, %+v", binding, name, no, no.Exceeded)
			} else if march := policy.Month(1970*12 + 2).Start(); no.Exceeded.Frees != march {
				t.Errorf("%s, %s: it may start at %d, want %d", binding, name, no.Exceeded.Frees, march)
			}
		}
	}
}

// Tables of starts know budgets of months.
func TestStartsKnowMonthBudgets(t *testing.T) {
	february := policy.Month(1970*12 + 1).Start()
	now := february - 1000
	e := newEngine(t, budgeted(berth.Late, 100_000, 500))
	accepted(t, submit(t, e, now, ofPhys(owned("a", now, now+100, 3, 100))))
	r := ofPhys(owned("x", now, february+5000, 3, 100))
	starts, err := e.Starts(&r, engine.Look{Pool: berth.PoolID("cm5", "pool"), First: now, Last: february + 1000, Steps: 9})
	if err != nil || len(starts.Stretches) != 2 {
		t.Fatalf("%+v, %v", starts, err)
	}
	for i, want := range []engine.Stretch{{First: now, Last: february - 1}, {First: february, Last: february + 1000}} {
		got := starts.Stretches[i]
		if refused := got.Refusal != nil && got.Refusal.Exceeded != nil && got.Refusal.Exceeded.Limit == "month_budget"; got.First != want.First || got.Last != want.Last || refused != (i == 0) {
			t.Errorf("stretch %d is %+v, want %+v, the first refused for the budget of its month", i, got, want)
		}
	}
}

// A budget bounds series, also open ones at their turns, and workflows.
func TestBudgetsOfSeriesAndWorkflows(t *testing.T) {
	config := onePool(4, berth.Late)
	config.Limits = policy.Limits{{Name: policy.LimitBudget, Value: 250}}
	e := newEngine(t, config)
	numbers, promised := unfit(t, apply(t, e, 0, engine.SubmitSeries(series("s", 0, 100, 100, 3, 2, 2, 50))))
	if !promised || len(numbers) != 1 || numbers[0] != 3 {
		t.Errorf("of the series %v cannot be, the others are promised: %t; want the third alone", numbers, promised)
	}
	if got := e.Usage("alice").Charged; got != (engine.Charges{All: 200, Live: 200}) {
		t.Errorf("charged are %+v", got)
	}

	e = newEngine(t, config)
	s := series("s", 0, 100, 100, 4, 1, 2, 50)
	s.Ahead = 150
	changes := apply(t, e, 0, engine.SubmitSeries(s))
	changes = append(changes, apply(t, e, 400, engine.Wake())...)
	over := 0
	for i := range changes {
		if no := changes[i].Refusal; no != nil && no.Exceeded != nil && no.Exceeded.Limit == "budget" {
			over++
		}
		for _, u := range changes[i].Unfit {
			if u.Refusal.Exceeded != nil && u.Refusal.Exceeded.Limit == "budget" {
				over++
			}
		}
	}
	if got := e.Usage("alice").Charged.All; got > 250 || got != 200 || over != 2 {
		t.Errorf("the open series is charged for %d, and %d of it are refused for the budget; want 200 and 2", got, over)
	}

	for _, name := range []policy.LimitName{policy.LimitBudget, policy.LimitMonthBudget} {
		config.Limits = policy.Limits{{Name: name, Value: 100}}
		e = newEngine(t, config)
		w := flow("w", 0, berth.Forever, task("t", 300), task("u", 300, 0))
		changes = apply(t, e, 0, engine.SubmitWorkflow(w))
		if no := changes[0].Refusal; changes[0].Kind != change.WorkflowRefused || no.Exceeded == nil || no.Exceeded.Limit != string(name) {
			t.Errorf("the workflow is %s, %+v; want it refused for %s", kinds(changes), no, name)
		}
	}
}

// What an outage moves is charged once, in the month in which it starts then.
func TestWhatMovesIsChargedOnce(t *testing.T) {
	february := policy.Month(1970*12 + 1).Start()
	config := budgeted(berth.Early, 1000, 400)
	e := newEngine(t, config)
	now := february - 300
	x := ofPhys(owned("x", now+100, february+500, 3, 100))
	if r := accepted(t, submit(t, e, now, x)); r.Start() != now+100 {
		t.Fatalf("it starts at %d", r.Start())
	}
	wantCharged(t, e, 300, 300)
	apply(t, e, now, engine.Down(berth.Outage{Resource: berth.PoolID("cm5", "pool"), PEs: berth.NewPESet(berth.Run{Hi: 10}), Until: february + 10}))
	r, is := e.Reservation("x")
	if !is || r.Start() < february {
		t.Fatalf("it is %+v, want it moved to February", r)
	}
	if usage := e.Usage("u"); usage.Charged.All != 300 || usage.Month.All != 0 {
		t.Errorf("it starts at %d, and is charged %+v, %+v in January", r.Start(), usage.Charged, usage.Month)
	}
}

// However much a holder lets go unused, what is charged stays a number that budgets are asked with and that a restart reads, and what is live
// is charged exactly again when most of it has gone.
func TestChargesDoNotOverflow(t *testing.T) {
	const endless = int64(berth.Endless)
	config := onePool(berth.MaxPEs, berth.Late)
	for _, name := range []string{"b", "c", "d", "e"} {
		config.Sites[0].Pools = append(config.Sites[0].Pools, berth.Pool{Name: name, PEs: berth.MaxPEs, Binding: berth.Late})
	}
	config.Limits = policy.Limits{{Scope: policy.Scope{User: "v"}, Name: policy.LimitBudget, Value: 1}}
	e := newEngine(t, config)
	const long = berth.TimeLimit / 2
	for i := range 5 { // in a pool each
		accepted(t, submit(t, e, 0, owned(fmt.Sprint("live", i), 0, long+10, berth.MaxPEs, long)))
	}
	all := func(want engine.Charges) {
		t.Helper()
		if got := e.Usage("u"); got.Charged != want || got.Month != want {
			t.Errorf("charged are %+v, %+v in this month; want %+v", got.Charged, got.Month, want)
		}
	}
	all(engine.Charges{All: endless - 1, Live: endless - 1})
	for i := range 4 {
		apply(t, e, 0, engine.Cancel(fmt.Sprint("live", i)))
	}
	all(engine.Charges{All: endless / 2, Live: endless / 2})
	apply(t, e, 0, engine.Cancel("live4"))
	all(engine.Charges{})
	for i := range 6 {
		at := berth.Time(10 * i)
		r := owned(fmt.Sprint("unused", i), at, at+long, berth.MaxPEs, long)
		r.NoShow = 1
		accepted(t, submit(t, e, at, r))
		apply(t, e, at+1, engine.Wake())
		if i == 0 {
			all(engine.Charges{All: endless / 2})
			continue
		}
		all(engine.Charges{All: endless - 1})
	}
	config.Limits = append(config.Limits, policy.Limit{Scope: policy.Scope{User: "u"}, Name: policy.LimitBudget, Value: berth.TimeLimit - 1})
	e, err := engine.Restore(config, e.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	all(engine.Charges{All: endless - 1})
	parts := owned("two", 100, long+200, 1, 10)
	parts.Parts = append(parts.Parts, berth.Part{Variants: []berth.Variant{{NPE: berth.MaxPEs, Duration: long}}})
	for _, r := range []berth.Request{owned("one", 100, 110, 1, 10), owned("much", 100, long+200, berth.MaxPEs, long), parts} {
		if no := refused(t, submit(t, e, 100, r)); no.Exceeded == nil || no.Exceeded.Limit != "budget" || no.Exceeded.Asked != endless-1 {
			t.Errorf("%s: %+v, %+v; want it beyond the budget", r.ID, no, no.Exceeded)
		}
	}
}

// What is held is charged from its start on, so that it cannot become another reservation any more then: neither a hold whose time has begun nor
// one that is confirmed late. The next occurrences of its series can.
func TestWhatHasBegunIsNotModified(t *testing.T) {
	hold := ofPhys(owned("x", 100, 200, 3, 100))
	hold.Hold = 500
	later := ofPhys(owned("x", 1000, 1001, 1, 1))
	later.Hold = 500
	modify := func(e *engine.Engine, now berth.Time) error {
		t.Helper()
		_, _, known := e.Foretell(new(engine.Modify(&later)))
		_, _, err := e.Apply(now, engine.Modify(&later))
		if (known == nil) != (err == nil) {
			t.Errorf("at %d: %v, foretold was %v", now, err, known)
		}
		return err
	}
	for _, binding := range bindings() {
		for _, confirmed := range []bool{false, true} {
			e := newEngine(t, budgeted(binding, 10_000, 10_000))
			accepted(t, submit(t, e, 0, hold))
			apply(t, e, 190, engine.Wake())
			if confirmed {
				apply(t, e, 190, engine.Confirm("x"))
			}
			err := modify(e, 190)
			if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != berth.Conflict {
				t.Errorf("%s, confirmed %t: modified after 90 s: %v, want a conflict", binding, confirmed, err)
			}
			wantCharged(t, e, 300, 300)
			apply(t, e, 191, engine.Cancel("x"))
			wantCharged(t, e, 273, 0)
		}
		e := newEngine(t, budgeted(binding, 10_000, 10_000))
		accepted(t, submit(t, e, 0, hold))
		apply(t, e, 100, engine.Wake())
		if err := modify(e, 100); err != nil {
			t.Errorf("%s: at its start, with nothing to charge: %v", binding, err)
		}
		wantCharged(t, e, 1, 1)
	}
}

// A try again is charged like a first one, so a budget bounds how often a task is tried: beyond it the task has failed for good, and says why.
func TestTriesAgainKeepToBudgets(t *testing.T) {
	for _, name := range []policy.LimitName{policy.LimitBudget, policy.LimitMonthBudget} {
		config := managedPool(4, berth.Late)
		config.Limits = policy.Limits{{Name: name, Value: 350}}
		e := newEngine(t, config)
		k := task("t", 100)
		k.Retries, k.Most = 100, 1
		apply(t, e, 0, engine.SubmitWorkflow(flow("w", 0, 100_000, k)))
		var last []change.Change
		tries := 0
		for id := "w.1"; tries < 10; id = engine.TaskID("w", 0, tries+1) {
			r, live := e.Reservation(id)
			if !live {
				break
			}
			apply(t, e, r.Start(), engine.Wake())
			last, tries = apply(t, e, r.End()-1, engine.Report(id, berth.FailedForGood, "exit code 1")), tries+1
		}
		if got := e.Usage("ada").Charged.All; tries != 3 || got > 350 {
			t.Errorf("%s: %d tries, charged %d, want 3 within 350", name, tries, got)
		}
		why := ""
		for i := range last {
			if c := &last[i]; c.Kind == change.TaskOver && c.Flow.Outcome == berth.FailedForGood {
				why = c.Flow.Why
			}
		}
		if want := fmt.Sprintf("another try is beyond the limit %s: 397 of 350 PE-seconds", name); why != want {
			t.Errorf("%s: it failed for good: %q, want %q", name, why, want)
		}
	}
}

// What costs nothing is within every budget, a try again too, also where its holder is charged for more than they may be by now.
func TestFreeTriesAgainAreWithinBudgets(t *testing.T) {
	for _, name := range []policy.LimitName{policy.LimitBudget, policy.LimitMonthBudget} {
		config := managedPool(4, berth.Late)
		config.Limits = policy.Limits{{Name: name, Value: 350}}
		e := newEngine(t, config)
		r := owned("dear", 0, 1000, 3, 100)
		r.User = "ada"
		accepted(t, submit(t, e, 0, r))
		config.Limits[0].Value = 100
		config.Prices = policy.Prices{{QOS: "idle", Factor: 0}}
		e, err := engine.Restore(config, e.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		k := task("t", 100)
		k.Retries, k.Most, k.QOS = 1, 1, "idle"
		apply(t, e, 0, engine.SubmitWorkflow(flow("w", 0, 100_000, k)))
		first, live := e.Reservation("w.1")
		if !live {
			t.Fatalf("%s: no first try", name)
		}
		apply(t, e, first.Start(), engine.Wake())
		apply(t, e, first.End()-1, engine.Report("w.1", berth.FailedForGood, "exit code 1"))
		if _, live := e.Reservation(engine.TaskID("w", 0, 2)); !live {
			t.Errorf("%s: another try, which is free, is refused", name)
		}
	}
}
