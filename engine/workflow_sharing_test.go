package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/policy"
)

// flowOf is a workflow that asks for what a request does, from its ready time on: that is when a task before it ends.
func flowOf(r *berth.Request, now berth.Time) *berth.Workflow {
	v := r.Parts[0].Variants[0]
	w := flow(r.ID, now, r.Deadline)
	w.User, w.Account, w.QOS, w.Hold = r.User, r.Account, r.QOS, r.Hold
	asked := berth.WorkflowTask{ID: "asked", Measured: []berth.Measurement{{NPE: v.NPE, Seconds: float64(v.Duration)}}, Requirements: r.Requirements}
	if wait := r.Ready.Sub(now); wait > 0 {
		asked.After = []int{0}
		w.Tasks = append(w.Tasks, berth.WorkflowTask{ID: "wait", Measured: []berth.Measurement{{NPE: 1, Seconds: float64(wait)}}})
	}
	w.Tasks = append(w.Tasks, asked)
	return w
}

// flowCame says what became of a workflow, as came does of a request.
func flowCame(changes []change.Change) string {
	for i := range changes {
		switch x := &changes[i]; {
		case x.Kind == change.WorkflowPromised:
			return "accepted"
		case x.Kind == change.WorkflowRefused && x.Refusal.Exceeded != nil:
			return x.Refusal.Exceeded.Limit
		case x.Kind == change.WorkflowRefused:
			return string(x.Refusal.Reason)
		}
	}
	return "pending"
}

// waysOfWorkflows are those in which workflows come in.
func waysOfWorkflows() []wayIn {
	way := func(name string, submit func(t *testing.T, c engine.Config, o *overstep, e *engine.Engine, w *berth.Workflow) string) wayIn {
		return wayIn{name: name, try: func(t *testing.T, c engine.Config, o *overstep) string {
			return submit(t, c, o, o.begin(t, c, o.had), flowOf(&o.ask, o.now))
		}}
	}
	return []wayIn{
		way("workflow", func(t *testing.T, _ engine.Config, o *overstep, e *engine.Engine, w *berth.Workflow) string {
			return flowCame(apply(t, e, o.now, engine.SubmitWorkflow(w)))
		}),
		way("account and QOS of a task", func(t *testing.T, _ engine.Config, o *overstep, e *engine.Engine, w *berth.Workflow) string {
			last := &w.Tasks[len(w.Tasks)-1]
			last.Account, last.QOS, w.Account, w.QOS = w.Account, w.QOS, "other", "other"
			return flowCame(apply(t, e, o.now, engine.SubmitWorkflow(w)))
		}),
		way("workflow held", func(t *testing.T, _ engine.Config, o *overstep, e *engine.Engine, w *berth.Workflow) string {
			w.Hold = max(w.Hold, 10)
			return flowCame(apply(t, e, o.now, engine.SubmitWorkflow(w)))
		}),
		way("workflow by best", func(t *testing.T, _ engine.Config, o *overstep, e *engine.Engine, w *berth.Workflow) string {
			w.Algorithm = berth.BestAlgorithm
			return flowCame(apply(t, e, o.now, engine.SubmitWorkflow(w)))
		}),
		way("workflow planned beside", func(t *testing.T, _ engine.Config, o *overstep, e *engine.Engine, w *berth.Workflow) string {
			plan, _, err := e.PlanWorkflow(w, engine.PlanOptions{From: o.now})
			if err != nil {
				t.Fatal(err)
			}
			return flowCame(apply(t, e, o.now, engine.SubmitPlanned(w, plan)))
		}),
		way("plan without the limit", func(t *testing.T, c engine.Config, o *overstep, e *engine.Engine, w *berth.Workflow) string {
			c.Limits = nil
			plan, _, err := o.begin(t, c, o.had).PlanWorkflow(w, engine.PlanOptions{From: o.now})
			if err != nil {
				t.Fatal(err)
			}
			plan.Last = true
			return flowCame(apply(t, e, o.now, engine.SubmitPlanned(w, plan)))
		}),
		way("workflow offers", func(t *testing.T, c engine.Config, o *overstep, e *engine.Engine, w *berth.Workflow) string {
			if o.cost {
				return "" // what they cost is asked when they are taken
			}
			w.Deadline = berth.Forever
			offers, err := e.WorkflowOffers(w, 6)
			if err != nil {
				t.Fatal(err)
			}
			for i := range offers {
				twin, err := engine.Restore(c, e.Snapshot())
				if err != nil {
					t.Fatal(err)
				}
				if got := flowCame(apply(t, twin, o.now, engine.SubmitWorkflow(&offers[i].Workflow))); got != "accepted" {
					return fmt.Sprintf("offer %d %s", i+1, got)
				}
			}
			return string(o.limit) // what is offered is within it
		}),
	}
}

// A refusal for a limit on a single task names the task, and whose limit it is.
func TestARefusalNamesTheTaskThatExceedsALimit(t *testing.T) {
	for name, value := range map[policy.LimitName]int64{policy.LimitLength: 50, policy.LimitLead: 15} {
		config := onePool(4, berth.Late)
		config.Limits = policy.Limits{{Scope: policy.Scope{Account: "bio"}, Name: name, Value: value}}
		w := flow("w", 0, berth.Forever, task("free", 20), task("bound", 100, 0))
		w.Tasks[1].Account = "bio"
		no := apply(t, newEngine(t, config), 0, engine.SubmitWorkflow(w))[0].Refusal
		if no == nil || no.Exceeded == nil || no.Task != "bound" || no.Exceeded.Account != "bio" || no.Exceeded.Limit != string(name) {
			t.Errorf("%s: %+v; want the limit of account bio on the task bound", name, no)
		}
		w.Account, w.Tasks[1].Account = "bio", "chem" // the other one is within it
		if got := flowCame(apply(t, newEngine(t, config), 0, engine.SubmitWorkflow(w))); got != "accepted" {
			t.Errorf("%s: with the other task in the account it is %s", name, got)
		}
	}
}

// The reservation of a task has the account and the QOS of its workflow, or its own; so has that of another try.
func TestReservationsOfTasksHaveTheirAccounts(t *testing.T) {
	e := newEngine(t, managedPool(4, berth.Late))
	w := flow("w", 0, berth.Forever, task("a", 100), task("b", 100))
	w.Account, w.QOS, w.Tasks[1].Account, w.Tasks[1].QOS, w.Tasks[1].Retries = "bio", "low", "chem", "high", 1
	apply(t, e, 0, engine.SubmitWorkflow(w))
	apply(t, e, 5, engine.Report("w.2", berth.FailedForGood, "it did"))
	for id, want := range map[string]string{"w.1": "bio low", "w.2-2": "chem high"} {
		if r := reservation(t, e, id); r.Request.Account+" "+r.Request.QOS != want {
			t.Errorf("%s is in %s with %s, want %s", id, r.Request.Account, r.Request.QOS, want)
		}
	}
}

// Where a share is that of all tasks, planners plan within it: the workflow is promised beside what others in the account have.
func TestASharedAccountNarrowsThePlan(t *testing.T) {
	for _, scope := range []policy.Scope{{Account: "bio"}, {QOS: "low"}, {Account: policy.Every}} {
		for _, algorithm := range []string{"bd-all", "dl-rc-cpar", berth.BestAlgorithm} {
			config := onePool(8, berth.Late)
			config.Limits = policy.Limits{{Scope: scope, Name: policy.LimitShare, Value: 500}}
			e := newEngine(t, config)
			own := berth.Rigid("own", 0, 20, 60, 2, 40)
			own.User, own.Account, own.QOS = "bob", "bio", "low"
			submit(t, e, 0, own)
			w := flow("w", 0, berth.Forever, berth.WorkflowTask{ID: "wide", Seconds: 400}, task("a", 30), task("b", 30), task("c", 30))
			w.Algorithm, w.Account, w.QOS = algorithm, "bio", "low"
			if got := flowCame(apply(t, e, 0, engine.SubmitWorkflow(w))); got != "accepted" {
				t.Errorf("%+v, %s: %s", scope, algorithm, got)
			}
			for at := berth.Time(0); at < 1000; at += 5 {
				used := berth.Count(0)
				for r := range e.Reservations() {
					if a := &r.Allotments[0]; a.Start <= at && at < a.End {
						used += a.NPE
					}
				}
				if used > 4 {
					t.Fatalf("%+v, %s: %d PEs at %d; the share is 4", scope, algorithm, used, at)
				}
			}
		}
	}
}

// A task that is late goes on only as long as the limits of its holders would let it be extended; it says which did not.
func TestLateTasksKeepToLimits(t *testing.T) {
	for _, scope := range scopesOf() {
		for name, value := range map[policy.LimitName]int64{
			policy.LimitLength: 105, policy.LimitPESeconds: 430, policy.LimitBudget: 430, policy.LimitMonthBudget: 430, policy.LimitShare: 500,
		} {
			config := managedPool(10, berth.Late)
			config.Sites[0].Partitions = []berth.Partition{{Name: "gpu", Pool: config.Sites[0].Pools[0].Name}}
			for _, limited := range []bool{false, true} {
				if config.Limits = nil; limited {
					config.Limits = policy.Limits{{Scope: scope, Name: name, Value: value}}
				}
				e := newEngine(t, config)
				r := everywhere(owned("x", 0, 100, 4, 100))
				w := flowOf(&r, 0)
				w.Repair = berth.RepairLate
				apply(t, e, 0, engine.SubmitWorkflow(w))
				if name == policy.LimitShare {
					accepted(t, submit(t, e, 0, everywhere(owned("next", 100, 200, 3, 100))))
				}
				changes := apply(t, e, 100, engine.Wake())
				why := ""
				for i := range changes {
					if c := &changes[i]; c.Kind == change.TaskOver {
						why = c.Flow.Why
					}
				}
				s, live := e.Reservation("x.1")
				switch {
				case !limited && (!live || s.End() != 110):
					t.Errorf("%s of %+v: without the limit it does not go on: %v, %s", name, scope, s.Allotments, why)
				case limited && (live || !strings.Contains(why, "more is beyond the limit "+string(name))):
					t.Errorf("%s of %+v: it goes on: %t, %q", name, scope, live, why)
				}
			}
		}
	}
}

// What makes way for a late task of its workflow leaves the share to it.
func TestWhatMakesWayLeavesItsShare(t *testing.T) {
	config := managedPool(10, berth.Late)
	config.Limits = policy.Limits{{Scope: policy.Scope{Account: "phys"}, Name: policy.LimitShare, Value: 1000 * 4 / 10}}
	config.Sites[0].Pools[0].PEs = 10
	e := newEngine(t, config)
	block := berth.Rigid("block", 0, 0, 1000, 6, 1000)
	accepted(t, submit(t, e, 0, block))
	w := flow("w", 0, berth.Forever)
	w.Account = "phys"
	for i, id := range []string{"a", "b"} {
		k := berth.WorkflowTask{ID: id, Measured: []berth.Measurement{{NPE: 4, Seconds: 100}}}
		for parent := range i {
			k.After = append(k.After, parent)
		}
		w.Tasks = append(w.Tasks, k)
	}
	apply(t, e, 0, engine.SubmitWorkflow(w))
	apply(t, e, 100, engine.Wake())
	if a, b := reservation(t, e, "w.1"), reservation(t, e, "w.2"); a.End() != 110 || b.Start() != 110 {
		t.Errorf("a ends at %d and b starts at %d, want 110 for both", a.End(), b.Start())
	}
}

// Another try keeps within the shares of its holders, beside what others have been promised there since.
func TestTriesAgainKeepToShares(t *testing.T) {
	for _, limited := range []bool{false, true} {
		config := managedPool(10, berth.Late)
		if limited {
			config.Limits = policy.Limits{{Scope: policy.Scope{Account: "phys"}, Name: policy.LimitShare, Value: 500}}
		}
		e := newEngine(t, config)
		r := everywhere(owned("x", 0, 150, 4, 100))
		r.Partition = ""
		w := flowOf(&r, 0)
		w.Tasks[0].Retries = 1
		apply(t, e, 0, engine.SubmitWorkflow(w))
		other := owned("next", 100, 200, 3, 100)
		other.Account = "phys"
		accepted(t, submit(t, e, 0, other))
		apply(t, e, 49, engine.Wake())
		apply(t, e, 50, engine.Report("x.1", berth.FailedForGood, "it did"))
		want := map[bool]berth.Time{false: 50, true: 200}[limited]
		if again := reservation(t, e, "x.1-2"); again.Start() != want {
			t.Errorf("limited: %t: it is tried again at %d, want %d", limited, again.Start(), want)
		}
	}
}

// A month whose budget is used up is passed over by another try if it ends by the deadline in a later one.
func TestTriesAgainPassOverAMonth(t *testing.T) {
	february := policy.Month(1970*12 + 1).Start()
	for _, tt := range []struct {
		deadline berth.Time
		again    bool
	}{{february + 100, true}, {february + 99, false}, {berth.Forever, true}} {
		config := managedPool(10, berth.Late)
		config.Limits = policy.Limits{{Scope: policy.Scope{Account: "phys"}, Name: policy.LimitMonthBudget, Value: 500}}
		e := newEngine(t, config)
		apply(t, e, february-200, engine.Wake())
		w := flow("w", february-200, tt.deadline, berth.WorkflowTask{ID: "a", Measured: []berth.Measurement{{NPE: 4, Seconds: 100}}, Retries: 1})
		w.Account = "phys"
		apply(t, e, february-200, engine.SubmitWorkflow(w))
		apply(t, e, february-151, engine.Wake())
		changes := apply(t, e, february-150, engine.Report("w.1", berth.FailedForGood, "it did"))
		r, live := e.Reservation("w.1-2")
		switch {
		case live != tt.again:
			t.Errorf("by %d it is tried again: %t; %s", tt.deadline, live, toldOf(changes))
		case live && r.Start() != february:
			t.Errorf("by %d it is tried again at %d, want %d", tt.deadline, r.Start(), february)
		}
		if !live {
			want := "another try is beyond the limit month_budget of account phys: 600 of 500 PE-seconds"
			for i := range changes {
				if c := &changes[i]; c.Kind == change.TaskOver && c.Flow.Outcome == berth.FailedForGood && c.Flow.Why != want {
					t.Errorf("it failed for good: %q, want %q", c.Flow.Why, want)
				}
			}
		}
	}
}

// Another try is charged at the prices of its place and its QOS, beside what the tries before it were charged.
func TestTriesAgainAreCharged(t *testing.T) {
	site := policy.Prices{{Site: onePool(10, berth.Late).Sites[0].Name, Factor: 2000}}
	for _, tt := range []struct {
		prices policy.Prices
		limit  policy.LimitName
		value  int64
		want   string // why there is no other try
	}{
		{nil, policy.LimitBudget, 600, ""},
		{nil, policy.LimitBudget, 599, "600 of 599"},
		{site, policy.LimitBudget, 1200, ""},
		{site, policy.LimitBudget, 1199, "1200 of 1199"},
		{site, policy.LimitMonthBudget, 1200, ""},
		{site, policy.LimitMonthBudget, 1199, "1200 of 1199"},
		{policy.Prices{{QOS: "high", Factor: 3000}}, policy.LimitBudget, 1800, ""},
		{policy.Prices{{QOS: "high", Factor: 3000}}, policy.LimitBudget, 1799, "1800 of 1799"},
		{append(site, policy.Price{QOS: "high", Factor: 0}), policy.LimitBudget, 0, ""},
	} {
		config := managedPool(10, berth.Late)
		config.Prices, config.Limits = tt.prices, policy.Limits{{Scope: policy.Scope{Account: "phys"}, Name: tt.limit, Value: tt.value}}
		e := newEngine(t, config)
		w := flow("w", 0, 1000, berth.WorkflowTask{ID: "a", Measured: []berth.Measurement{{NPE: 4, Seconds: 100}}, Retries: 1})
		w.Account, w.QOS = "phys", "high"
		apply(t, e, 0, engine.SubmitWorkflow(w))
		apply(t, e, 49, engine.Wake())
		changes := apply(t, e, 50, engine.Report("w.1", berth.FailedForGood, "it did")) // 200 of 400 PE-seconds are used
		_, live := e.Reservation("w.1-2")
		why := ""
		for i := range changes {
			if c := &changes[i]; c.Kind == change.TaskOver && c.Flow.Outcome == berth.FailedForGood {
				why = c.Flow.Why
			}
		}
		want := ""
		if tt.want != "" {
			want = fmt.Sprintf("another try is beyond the limit %s of account phys: %s PE-seconds", tt.limit, tt.want)
		}
		if live != (tt.want == "") || why != want {
			t.Errorf("%v, %s %d: tried again: %t, %q, want %q", tt.prices, tt.limit, tt.value, live, why, want)
		}
	}
}

// A task that comes forward, as it could stay, comes into no month whose budget does not have it.
func TestWhatComesForwardKeepsToMonthBudgets(t *testing.T) {
	february := policy.Month(1970*12 + 1).Start()
	for _, limited := range []bool{false, true} {
		config := managedPool(10, berth.Late)
		if limited {
			config.Limits = policy.Limits{{Scope: policy.Scope{Account: "phys"}, Name: policy.LimitMonthBudget, Value: 410}}
		}
		e := newEngine(t, config)
		apply(t, e, february-100, engine.Wake())
		w := flow("w", february-100, berth.Forever)
		w.Account = "phys"
		w.Tasks = []berth.WorkflowTask{
			{ID: "a", Measured: []berth.Measurement{{NPE: 4, Seconds: 100}}}, {ID: "b", Measured: []berth.Measurement{{NPE: 4, Seconds: 60}}, After: []int{0}},
		}
		apply(t, e, february-100, engine.SubmitWorkflow(w))
		apply(t, e, february-51, engine.Wake())
		apply(t, e, february-50, engine.Report("w.1", berth.Succeeded, ""))
		want := map[bool]berth.Time{false: february - 50, true: february}[limited]
		if b := reservation(t, e, "w.2"); b.Start() != want {
			t.Errorf("limited: %t: b starts at %d, want %d", limited, b.Start(), want)
		}
	}
}

// What is offered with a lead can be taken as much later.
func TestOffersCanBeTakenAMomentLater(t *testing.T) {
	const lead = 60
	taken, refused := map[bool]int{}, map[bool]int{}
	for seed := range uint64(effort.Cases(60)) {
		dice := rand.New(rand.NewPCG(seed, 182))
		config := onePool(berth.Count(4+dice.IntN(29)), bindings()[dice.IntN(2)])
		e := newEngine(t, config)
		for i := range dice.IntN(30) {
			start, d := berth.Time(dice.IntN(4000)), berth.Duration(60+dice.IntN(1200))
			submit(t, e, 0, berth.Rigid(fmt.Sprint("r", i), 0, start, start.Add(d), berth.Count(1+dice.IntN(8)), d))
		}
		w := flow("w", 0, berth.Forever)
		for i := range 2 + dice.IntN(8) {
			k := berth.WorkflowTask{ID: fmt.Sprint("t", i), Seconds: 30 + dice.Float64()*900, Alpha: dice.Float64() / 2}
			for parent := range i {
				if dice.IntN(3) == 0 {
					k.After = append(k.After, parent)
				}
			}
			w.Tasks = append(w.Tasks, k)
		}
		for _, led := range []bool{false, true} {
			offers, err := e.PlanOffers(w, engine.PlanOptions{Offers: 8, Lead: map[bool]berth.Duration{true: lead}[led]})
			if err != nil || len(offers) == 0 {
				t.Fatalf("seed %d: %d offers, %v", seed, len(offers), err)
			}
			for i := range offers {
				twin, err := engine.Restore(config, e.Snapshot())
				if err != nil {
					t.Fatal(err)
				}
				if got := flowCame(apply(t, twin, berth.Time(1+dice.IntN(lead)), engine.SubmitWorkflow(&offers[i].Workflow))); got == "accepted" {
					taken[led]++
				} else {
					refused[led]++
				}
			}
		}
	}
	t.Logf("taken up to %d s later: with the lead %d, and %d refused; without %d, and %d refused", lead, taken[true], refused[true], taken[false], refused[false])
	// By the same deadline a planner may find no plan although it did with less time: these are heuristics.
	most := taken[true] / 20 // few cases say little
	if effort.Full() {
		most = taken[true] / 100
	}
	if refused[true] > most || effort.Full() && (refused[false] < 10*refused[true] || refused[false] == 0) {
		t.Errorf("%d offers with a lead are refused, %d without; want %d at most, and far more", refused[true], refused[false], most)
	}
}
