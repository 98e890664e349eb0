package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/policy"
)

// shared is two sites of eight PEs with the partitions main, the default, and gpu.
func shared(binding berth.Binding, limits ...policy.Limit) engine.Config {
	config := engine.Config{Limits: limits}
	for _, name := range []string{"north", "south"} {
		config.Sites = append(config.Sites, berth.Site{
			Name: name, Pools: []berth.Pool{{Name: "p", PEs: 8, Binding: binding}},
			Partitions: []berth.Partition{{Name: "main", Pool: "p", Default: true}, {Name: "gpu", Pool: "p"}},
		})
	}
	return config
}

func ofAccount(name policy.LimitName, value int64) policy.Limit {
	return policy.Limit{Scope: policy.Scope{Account: "phys"}, Name: name, Value: value}
}

func ofPartition(name policy.LimitName, value int64) policy.Limit {
	return policy.Limit{Scope: policy.Scope{Partition: "gpu"}, Name: name, Value: value}
}

func ofQOS(name policy.LimitName, value int64) policy.Limit {
	return policy.Limit{Scope: policy.Scope{QOS: "high"}, Name: name, Value: value}
}

// each is a limit of each account, QOS or partition, where a named one has three times as much.
func each(of policy.Scope, name policy.LimitName, value int64) []policy.Limit {
	every := policy.Scope{}
	switch {
	case of.Account != "":
		every.Account = policy.Every
	case of.QOS != "":
		every.QOS = policy.Every
	default:
		every.Partition = policy.Every
	}
	return []policy.Limit{{Scope: of, Name: name, Value: 3 * value}, {Scope: every, Name: name, Value: value}}
}

// with is a request with a QOS.
func with(qos string, r berth.Request) berth.Request {
	r.QOS = qos
	return r
}

// in is a request of a user for an account and a partition.
func in(user, account, partition string, r berth.Request) berth.Request {
	r.User, r.Account, r.Partition = user, account, partition
	return r
}

// cameOf says what became of what was asked for last: the start, or the limit that refused it.
func cameOf(changes []change.Change, id string) string {
	for i := range changes {
		c := &changes[i]
		switch {
		case c.ID != id:
		case c.Refusal != nil && c.Refusal.Exceeded != nil:
			x := c.Refusal.Exceeded
			return strings.Join(strings.Fields(fmt.Sprint(x.Limit, " ", x.Account, " ", x.QOS, " ", x.Partition, " ", x.Asked, ">", x.Allowed, " ", x.Frees)), " ")
		case c.Refusal != nil:
			return string(c.Refusal.Reason)
		case c.Reservation != nil:
			return fmt.Sprint(c.Reservation.Allotments[0].Resource.Site, " ", c.Reservation.Start())
		case len(c.Moved) > 0:
			return fmt.Sprint(c.Moved[0].Resource.Site, " ", c.Moved[0].Start)
		}
	}
	return ""
}

// An account and a partition have what everyone has in them, and a refusal names them. A share
// gives a later place, or another pool.
func TestAccountsAndPartitionsAreCountedWhoeverAsks(t *testing.T) {
	rigid := func(id string, deadline berth.Time, npe berth.Count) berth.Request {
		return berth.Rigid(id, 0, 0, deadline, npe, 100)
	}
	for _, binding := range bindings() {
		for _, c := range []struct {
			limit policy.Limit
			a, b  berth.Request // asked for one after the other
			want  string        // of b
		}{
			{ofAccount(policy.LimitActive, 1), in("ann", "phys", "", rigid("a", 100, 1)), in("bob", "phys", "", rigid("b", 100, 1)), "active phys 2>1 100"},
			{ofAccount(policy.LimitActive, 1), in("ann", "phys", "", rigid("a", 100, 1)), in("ann", "chem", "", rigid("b", 100, 1)), "north 0"},
			{ofAccount(policy.LimitActive, 1), in("", "phys", "", rigid("a", 100, 1)), in("", "phys", "", rigid("b", 100, 1)), "active phys 2>1 100"},
			{ofAccount(policy.LimitReservations, 1), in("ann", "phys", "", rigid("a", 100, 1)), in("bob", "phys", "", berth.Job("b", 0, 1, 10)), "reservations phys 2>1 100"},
			{ofAccount(policy.LimitPESeconds, 500), in("ann", "phys", "", rigid("a", 100, 3)), in("bob", "phys", "gpu", rigid("b", 100, 3)), "pe_hours phys 600>500 100"},
			{ofAccount(policy.LimitShare, 500), in("ann", "phys", "", rigid("a", 100, 3)), in("bob", "phys", "", rigid("b", 300, 3)), "south 0"},
			{ofAccount(policy.LimitLength, 99), in("ann", "", "", rigid("a", 100, 3)), in("bob", "phys", "", rigid("b", 300, 3)), "length phys 100>99 0"},
			{ofPartition(policy.LimitActive, 1), in("ann", "", "gpu", rigid("a", 100, 1)), in("bob", "", "gpu", rigid("b", 100, 1)), "active gpu 2>1 100"},
			{ofPartition(policy.LimitActive, 1), in("ann", "", "gpu", rigid("a", 100, 1)), in("bob", "", "", rigid("b", 100, 1)), "north 0"},
			{ofPartition(policy.LimitPESeconds, 500), in("ann", "", "gpu", rigid("a", 100, 3)), in("bob", "", "gpu", rigid("b", 100, 3)), "pe_hours gpu 600>500 100"},
			{ofPartition(policy.LimitShare, 250), in("ann", "", "gpu", rigid("a", 100, 2)), in("bob", "", "gpu", rigid("b", 100, 3)), "share gpu 3>2 0"},
			{ofPartition(policy.LimitShare, 250), in("ann", "", "gpu", rigid("a", 100, 2)), in("bob", "", "gpu", rigid("b", 100, 2)), "south 0"},
			{ofPartition(policy.LimitLength, 99), in("ann", "", "", rigid("a", 100, 3)), in("bob", "", "gpu", berth.Job("b", 0, 1, 100)), "length gpu 100>99 0"},
			{ofQOS(policy.LimitActive, 1), with("high", in("ann", "phys", "", rigid("a", 100, 1))), with("high", in("bob", "chem", "", rigid("b", 100, 1))), "active high 2>1 100"},
			{ofQOS(policy.LimitActive, 1), with("high", in("ann", "", "", rigid("a", 100, 1))), with("low", in("ann", "", "", rigid("b", 100, 1))), "north 0"},
			{ofQOS(policy.LimitActive, 1), with("high", in("ann", "", "", rigid("a", 100, 1))), in("ann", "", "", rigid("b", 100, 1)), "north 0"},
			{ofQOS(policy.LimitReservations, 1), with("high", in("ann", "", "", rigid("a", 100, 1))), with("high", in("bob", "", "", berth.Job("b", 0, 1, 10))), "reservations high 2>1 100"},
			{ofQOS(policy.LimitPESeconds, 500), with("high", in("ann", "", "", rigid("a", 100, 3))), with("high", in("bob", "", "", rigid("b", 100, 3))), "pe_hours high 600>500 100"},
			{ofQOS(policy.LimitShare, 500), with("high", in("ann", "", "", rigid("a", 100, 3))), with("high", in("bob", "", "", rigid("b", 300, 3))), "south 0"},
			{ofQOS(policy.LimitLength, 99), in("ann", "", "", rigid("a", 100, 3)), with("high", in("bob", "", "", rigid("b", 300, 3))), "length high 100>99 0"},
			{ // of the default partition
				policy.Limit{Scope: policy.Scope{Partition: "main"}, Name: policy.LimitActive, Value: 1},
				in("ann", "", "main", rigid("a", 100, 1)), in("bob", "", "", rigid("b", 100, 1)), "active main 2>1 100",
			},
		} {
			e := newEngine(t, shared(binding, c.limit))
			accepted(t, submit(t, e, 0, c.a))
			if got := cameOf(submit(t, e, 0, c.b), "b"); got != c.want {
				t.Errorf("%s, %s of %+v: %s; want %s", binding, c.limit.Name, c.limit.Scope, got, c.want)
			}
		}
	}
}

// Each account, QOS and partition has its own count against the same figures, and a named one has those of
// its own row, in whatever order the rows stand.
func TestEachIsCountedByItself(t *testing.T) {
	place := func(scope, name, id string) berth.Request {
		r := in(id, "", "", berth.Rigid(id, 0, 0, 100, 1, 100))
		switch scope {
		case "account":
			r.Account = name
		case "qos":
			r.QOS = name
		default:
			r.Partition = name
		}
		return r
	}
	for _, binding := range bindings() {
		for scope, of := range map[string]policy.Scope{"account": {Account: "main"}, "qos": {QOS: "main"}, "partition": {Partition: "main"}} {
			for _, backwards := range []bool{false, true} {
				limits := each(of, policy.LimitActive, 1)
				if backwards {
					slices.Reverse(limits)
				}
				e := newEngine(t, shared(binding, limits...))
				for i, c := range []struct{ name, want string }{
					{"gpu", "north 0"}, {"gpu", "active gpu 2>1 100"}, {"main", "north 0"}, {"main", "north 0"}, {"main", "north 0"}, {"main", "active main 4>3 100"},
				} {
					id := fmt.Sprint("r", i)
					if got := cameOf(submit(t, e, 0, place(scope, c.name, id)), id); got != c.want {
						t.Errorf("%s, %s %s, backwards %t: %s; want %s", binding, scope, c.name, backwards, got, c.want)
					}
				}
				accounts, qualities, partitions := e.Limited()
				if got, want := append(append(accounts, qualities...), partitions...), []string{"main", "gpu"}; !slices.Equal(got, want) {
					t.Errorf("%s: limited are %q, want %q", scope, got, want)
				}
			}
		}
	}
}

// Who has let more go unused than allowed gets nothing further until the oldest of it is thirty days old. What was used,
// given back, lost, or ended where no one tells of use does not count; what a managed site tells of does also
// where the request was to be kept unused.
func TestUnusedReservationsCountForThirtyDays(t *testing.T) {
	const window = berth.Time(policy.NoShowWindow)
	for _, c := range []struct {
		name    string
		managed bool
		noShow  berth.Duration
		then    func(e *engine.Engine)
		counts  bool
	}{
		{name: "given up", noShow: 10, counts: true},
		{name: "given up at a managed site", managed: true, noShow: 10, counts: true},
		{name: "ended unused at a managed site", managed: true, counts: true},
		{name: "ended where use is not known"},
		{name: "used", managed: true, noShow: 10, then: func(e *engine.Engine) { apply(t, e, 5, engine.CheckIn("a")) }},
		{name: "given back", managed: true, noShow: 10, then: func(e *engine.Engine) { apply(t, e, 5, engine.Cancel("a")) }},
		{name: "lacking PEs", managed: true, then: func(e *engine.Engine) {
			apply(t, e, 5, engine.Down(berth.Outage{Resource: berth.PoolID("north", "p"), PEs: berth.PEsOf(0, 1, 2, 3, 4, 5, 6, 7), Until: 1000}))
		}},
	} {
		for of, scope := range map[string]policy.Scope{"user": {User: "ann"}, "account": {Account: "phys"}, "qos": {QOS: policy.Every}} {
			config := shared(berth.Early, policy.Limit{Scope: scope, Name: policy.LimitNoShow, Value: 0})
			config.Sites = config.Sites[:1]
			config.Sites[0].Managed = c.managed
			e := newEngine(t, config)
			a := with("high", in("ann", "phys", "", berth.Rigid("a", 0, 0, 100, 8, 100)))
			a.NoShow = c.noShow
			accepted(t, submit(t, e, 0, a))
			if c.then != nil {
				c.then(e)
			}
			for at, due := e.Next(); due && at <= 100; at, due = e.Next() {
				apply(t, e, at, engine.Wake())
			}
			at := berth.Time(2000)
			e, err := engine.Restore(config, e.Snapshot()) // what was counted stays
			if err != nil {
				t.Fatal(err)
			}
			gave := berth.Time(100)
			if c.noShow > 0 {
				gave = 10
			}
			ask := func(id string, at berth.Time) string {
				r := with("high", in("ann", "phys", "", berth.Rigid(id, at, at, at+10, 1, 10)))
				return cameOf(submit(t, e, at, r), id)
			}
			want := fmt.Sprint("north ", at)
			if c.counts {
				whose := map[string]string{"user": "", "account": "phys ", "qos": "high "}[of]
				want = fmt.Sprint("no_show ", whose, "1>0 ", gave+window)
			}
			if got := ask("b", at); got != want {
				t.Errorf("%s, %s: %s; want %s", c.name, of, got, want)
			}
			if !c.counts {
				apply(t, e, at, engine.Cancel("b"))
			}
			if got, want := ask("c", gave+window), fmt.Sprint("north ", gave+window); got != want {
				t.Errorf("%s, %s, after 30 days: %s; want %s", c.name, of, got, want)
			}
		}
	}
}

// Of one site alone a share gives a later start, and so tell offers and starts.
func TestSharesOfPartitionsInOffersAndStarts(t *testing.T) {
	for _, binding := range bindings() {
		config := shared(binding, ofPartition(policy.LimitShare, 500), ofPartition(policy.LimitLead, 200), ofAccount(policy.LimitShare, 750))
		config.Sites = config.Sites[:1]
		e := newEngine(t, config)
		accepted(t, submit(t, e, 0, in("ann", "", "gpu", berth.Rigid("a", 0, 0, 100, 3, 100))))
		accepted(t, submit(t, e, 0, in("ann", "phys", "", berth.Rigid("b", 0, 100, 150, 5, 50))))
		ask := in("bob", "phys", "gpu", berth.Rigid("c", 0, 0, 100, 2, 50))
		offers, err := e.Offers(&ask, 5)
		if err != nil || len(offers) == 0 || offers[0].Allotments[0].Start != 150 {
			t.Errorf("%s: %+v, %v; want one from 150 on", binding, offers, err)
		}
		got, err := e.Starts(&ask, engine.Look{Pool: berth.PoolID("north", "p"), First: 0, Last: 250, Steps: 9})
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, s := range got.Stretches {
			text += fmt.Sprintf("[%d,%d]", s.First, s.Last)
			if s.Refusal != nil && s.Refusal.Exceeded != nil {
				x := s.Refusal.Exceeded
				text += fmt.Sprint(":", x.Limit, x.Account, x.Partition)
			}
		}
		if want := "[0,149]:sharegpu[150,200][201,250]:leadgpu"; text != want {
			t.Errorf("%s: %s; want %s", binding, text, want)
		}
		ask.Deadline = 300
		if got := cameOf(submit(t, e, 0, ask), "c"); got != "north 150" {
			t.Errorf("%s: %s; want it at 150", binding, got)
		}
		ask.ID, ask.Ready = "d", 201
		if got := cameOf(submit(t, e, 0, ask), "d"); got != "lead gpu 201>200 1" {
			t.Errorf("%s: %s; want it refused for its lead", binding, got)
		}
	}
}

// A modification that names another account is one more of that, and an extension is asked
// about with the role of who extends.
func TestAccountsOfModificationsAndExtensions(t *testing.T) {
	operator := ofAccount(policy.LimitPESeconds, policy.NoLimit)
	operator.Role = "operator"
	e := newEngine(t, shared(berth.Late, ofAccount(policy.LimitActive, 1), ofAccount(policy.LimitPESeconds, 500), operator))
	a, b := in("ann", "phys", "", berth.Rigid("a", 0, 0, 900, 4, 100)), in("bob", "chem", "", berth.Rigid("b", 0, 0, 900, 1, 100))
	accepted(t, submit(t, e, 0, a))
	accepted(t, submit(t, e, 0, b))
	a.Parts[0].Variants[0].NPE = 5
	if got := cameOf(apply(t, e, 0, engine.Modify(a.Clone())), "a"); got != "north 0" {
		t.Errorf("more PEs: %s", got)
	}
	b.Account = "phys"
	if got := cameOf(apply(t, e, 0, engine.Modify(b.Clone())), "b"); got != "active phys 2>1 100" {
		t.Errorf("another account: %s", got)
	}
	if got := cameOf(apply(t, e, 0, engine.ExtendFor("user", "a", 101)), "a"); got != "pe_hours phys 505>500 0" {
		t.Errorf("a user extends: %s", got)
	}
	if got := cameOf(apply(t, e, 0, engine.ExtendFor("operator", "a", 101)), "a"); got != "" {
		t.Errorf("an operator extends: %s", got)
	}
	a.Account = ""
	apply(t, e, 0, engine.Modify(a.Clone()))
	if got := cameOf(apply(t, e, 0, engine.Modify(b.Clone())), "b"); got == "" || strings.Contains(got, "active") {
		t.Errorf("where the account has room again: %s", got)
	}
}

// Parts of a request come to what is limited together, and a part in another pool may be of
// another partition.
func TestPartsOfAPartitionCountTogether(t *testing.T) {
	for _, binding := range bindings() {
		config := shared(binding, ofPartition(policy.LimitShare, 500), ofPartition(policy.LimitPESeconds, 700))
		config.Sites[0].Partitions = config.Sites[0].Partitions[1:]
		config.Sites[0].Partitions[0].Default = true // gpu, and in the south it is main
		e := newEngine(t, config)
		r := berth.Rigid("r", 0, 0, 500, 4, 100)
		r.Parts = append(r.Parts, r.Parts[0])
		changes := submit(t, e, 0, *r.Clone())
		accepted(t, changes)
		if u := e.PartitionUsage("gpu"); u.Live != 1 || u.PESeconds != 400 || len(u.Pools) != 2 {
			t.Errorf("%s: %+v; want one of 400 PE-seconds", binding, u)
		}
		r.ID = "q"
		if got := cameOf(submit(t, e, 0, *r.Clone()), "q"); got != "south 100" && got != "south 0" && got != "north 100" {
			t.Errorf("%s: %s", binding, got)
		}
		if u := e.PartitionUsage("gpu"); u.PESeconds > 700 || u.Pools[0].Peak > 4 {
			t.Errorf("%s: %+v is beyond the limits", binding, u)
		}
	}
}

// A promise that loses its place comes to another partition without being asked, and counts there.
func TestDisplacedPromisesCountWhereTheyCome(t *testing.T) {
	config := shared(berth.Early, ofPartition(policy.LimitActive, 0))
	config.Sites[1].Partitions = []berth.Partition{{Name: "gpu", Pool: "p", Default: true}}
	e := newEngine(t, config)
	accepted(t, submit(t, e, 0, in("ann", "", "", berth.Rigid("a", 0, 10, 500, 8, 100))))
	apply(t, e, 0, engine.Down(berth.Outage{Resource: berth.PoolID("north", "p"), PEs: berth.PEsOf(0, 1, 2, 3, 4, 5, 6, 7), Until: 1000}))
	if u := e.PartitionUsage("gpu"); u.Live != 1 || u.PESeconds != 800 {
		t.Errorf("%+v; want the one that was displaced", u)
	}
}

// Whatever accounts, QOS and partitions the tasks of a workflow name, no plan goes beyond their limits.
func TestWorkflowsKeepToTheLimitsOfAllHolders(t *testing.T) {
	met := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := limited{t: t, ends: met, config: shared(rapid.SampledFrom(bindings()).Draw(t, "binding"))}
		w.bills = bills{price: unpriced, live: map[string]*bill{}, paid: map[holder]map[policy.Month]int64{}, holders: w.holders, has: func(h holder, r *berth.Reservation, pool berth.ResourceID) bool {
			return h.partition == "" || w.partition(r, pool) == h.partition
		}}
		for _, name := range []policy.LimitName{
			policy.LimitActive, policy.LimitLength, policy.LimitShare, policy.LimitPESeconds, policy.LimitLead, policy.LimitBudget, policy.LimitMonthBudget,
		} {
			if rapid.Bool().Draw(t, string(name)) {
				most := map[policy.LimitName]int64{policy.LimitActive: 6, policy.LimitLength: 40, policy.LimitShare: 900, policy.LimitPESeconds: 300, policy.LimitLead: 80, policy.LimitBudget: 300, policy.LimitMonthBudget: 300}[name]
				scope := rapid.SampledFrom([]policy.Scope{{Partition: "gpu"}, {Partition: "main"}, {Role: "user"}, {Partition: policy.Every}, {Account: "phys"}, {Account: policy.Every}, {QOS: "high"}, {QOS: policy.Every}}).Draw(t, "scope")
				w.config.Limits = append(w.config.Limits, policy.Limit{Scope: scope, Name: name, Value: rapid.Int64Range(most/8+1, most).Draw(t, "value")})
			}
		}
		var err error
		if w.e, err = engine.New(w.config); err != nil {
			t.Fatal(err)
		}
		for k := range 3 {
			var tasks []berth.WorkflowTask
			for i := range rapid.IntRange(1, 4).Draw(t, "tasks") {
				one := task(fmt.Sprint("t", i), float64(rapid.IntRange(1, 30).Draw(t, "seconds")))
				one.Partition = rapid.SampledFrom([]string{"", "gpu", "main"}).Draw(t, "partition")
				one.Account = rapid.SampledFrom([]string{"", "", "phys", "chem"}).Draw(t, "account of the task")
				one.QOS = rapid.SampledFrom([]string{"", "", "high", "low"}).Draw(t, "QOS of the task")
				if i > 0 && rapid.Bool().Draw(t, "after") {
					one.After = []int{i - 1}
				}
				tasks = append(tasks, one)
			}
			f := flow(fmt.Sprint("w", k), 0, rapid.SampledFrom([]berth.Time{berth.Forever, 100, 300}).Draw(t, "deadline"), tasks...)
			f.User, f.Account, f.QOS = "ann", rapid.SampledFrom([]string{"", "phys"}).Draw(t, "account"), rapid.SampledFrom([]string{"", "high"}).Draw(t, "QOS")
			changes, _, err := w.e.Apply(0, engine.SubmitWorkflow(f))
			if err != nil {
				t.Fatal(err)
			}
			if err := w.e.Check(); err != nil {
				t.Fatal(err)
			}
			for i := range changes {
				w.bills.note(&changes[i])
				switch c := &changes[i]; {
				case c.Kind == change.Accepted:
					w.ids = append(w.ids, c.ID)
				case c.Refusal != nil && c.Refusal.Exceeded != nil:
					met[whose(c.Refusal.Exceeded)+" "+c.Refusal.Exceeded.Limit]++
				case c.Kind == change.WorkflowPromised:
					met["promised"]++
				}
			}
			for _, id := range w.ids {
				w.judge(id, "user", true)
			}
		}
	})
	t.Log("workflows:", met)
	for _, of := range []string{"user", "account", "QOS", "partition"} {
		if effort.Full() && !testing.Short() && !slices.ContainsFunc(slices.Collect(maps.Keys(met)), func(name string) bool { return strings.HasPrefix(name, of) }) {
			t.Errorf("no workflow was refused for a limit of a %s", of)
		}
	}
}

// whose says whose limit is exceeded.
func whose(x *berth.Exceeded) string {
	switch {
	case x.Account != "":
		return "account"
	case x.QOS != "":
		return "QOS"
	case x.Partition != "":
		return "partition"
	}
	return "user"
}
