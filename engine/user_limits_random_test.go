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

// drawLimits draws a table: for everyone, then perhaps another value for a role or a user.
func drawLimits(t *rapid.T) policy.Limits {
	var l policy.Limits
	row := func(s policy.Scope, name policy.LimitName, low, high int64) {
		if rapid.Bool().Draw(t, string(name)) {
			l = append(l, policy.Limit{Scope: s, Name: name, Value: rapid.Int64Range(low, high).Draw(t, "value")})
		}
	}
	var scopes []policy.Scope
	if rapid.IntRange(0, 2).Draw(t, "of users") > 0 {
		scopes = []policy.Scope{{Role: "user"}, {Role: "operator"}, {User: "ann"}}
	}
	for _, s := range []policy.Scope{{Account: "phys"}, {Account: "phys", Role: "operator"}, {Partition: "gpu"}, {Partition: "gpu", Role: "user"}, {Partition: "main"}, {QOS: "high"}, {QOS: "high", Role: "user"}, {Account: policy.Every}, {QOS: policy.Every}, {Partition: policy.Every}} {
		if rapid.IntRange(0, 2).Draw(t, "scope") == 0 {
			scopes = append(scopes, s)
		}
	}
	for _, s := range scopes {
		row(s, policy.LimitHold, 1, 30)
		row(s, policy.LimitLead, 0, 30)
		if s.Takes(policy.LimitReservations) {
			row(s, policy.LimitReservations, 1, 6)
		}
		row(s, policy.LimitActive, 1, 5)
		if s.Takes(policy.LimitNoShow) {
			row(s, policy.LimitNoShow, 0, 1)
		}
		row(s, policy.LimitLength, 3, 20)
		row(s, policy.LimitShare, 100, 900)
		row(s, policy.LimitPESeconds, 20, 300)
		row(s, policy.LimitBudget, 100, 600)
		row(s, policy.LimitMonthBudget, 20, 300)
		if s.Role == "operator" && rapid.Bool().Draw(t, "unlimited") {
			l = append(l, policy.Limit{Scope: s, Name: policy.LimitShare, Value: policy.NoLimit})
		}
	}
	return l
}

// limited is a run of an engine with limits, beside what is known of it.
type limited struct {
	t      *rapid.T
	e      *engine.Engine
	config engine.Config
	now    berth.Time
	all    []change.Change // that were made
	ids    []string
	what   string // is asked
	asked  map[string]*berth.Request
	unused map[holder]int // how many were given up unused
	bills  bills
	// seriesIDs are the series so far.
	seriesIDs []string
	ends      map[string]int // how often each limit has refused, by what it is of, and by what was asked
}

// holder is one for whom things are counted together.
type holder struct{ user, account, qos, partition string }

// holders returns those of a reservation that may have limits.
func (w *limited) holders(r *berth.Reservation) []holder {
	list := []holder{{user: r.Request.User}}
	if r.Request.Owner != "" {
		list = append(list, holder{user: r.Request.Owner})
	}
	if r.Request.Account != "" {
		list = append(list, holder{account: r.Request.Account})
	}
	if r.Request.QOS != "" {
		list = append(list, holder{qos: r.Request.QOS})
	}
	for _, a := range r.Allotments {
		if h := (holder{partition: w.partition(r, a.Resource)}); h.partition != "" && !slices.Contains(list, h) {
			list = append(list, h)
		}
	}
	return list
}

// partition returns the partition of a reservation in a pool: that which it names, else the
// default one.
func (w *limited) partition(r *berth.Reservation, pool berth.ResourceID) string {
	if r.Request.Partition != "" {
		return r.Request.Partition
	}
	for _, s := range w.config.Sites {
		for _, p := range s.Partitions {
			if s.Name == pool.Site && p.Pool == pool.Name && p.Default {
				return p.Name
			}
		}
	}
	return ""
}

// allowed returns what is allowed to a holder that a role asks about.
func (w *limited) allowed(role string, h holder) policy.Allowance {
	return w.config.Limits.For(policy.Scope{Role: role, User: h.user, Account: h.account, QOS: h.qos, Partition: h.partition})
}

// share returns how many PEs of a pool a holder may be promised.
func (w *limited) share(a *policy.Allowance, h holder, pool berth.ResourceID) (berth.Count, bool) {
	size := w.size(pool)
	for _, s := range w.config.Sites {
		for _, p := range s.Partitions {
			if s.Name == pool.Site && p.Name == h.partition && !p.PEs.Empty() {
				size = p.PEs.Count()
			}
		}
	}
	return a.ShareOf(size)
}

// has returns what a holder has, the PEs promised in each pool by the second.
func (w *limited) has(h holder) (live int, area int64, used map[berth.ResourceID]map[berth.Time]berth.Count) {
	used = map[berth.ResourceID]map[berth.Time]berth.Count{}
	for _, id := range w.ids {
		r, is := w.e.Reservation(id)
		if !is || r.Request.IsJob() || !slices.Contains(w.holders(&r), h) {
			continue
		}
		live++
		for _, a := range r.Allotments {
			if h.partition != "" && w.partition(&r, a.Resource) != h.partition {
				continue
			}
			area += berth.Area(a.NPE, a.End.Sub(a.Start))
			if used[a.Resource] == nil {
				used[a.Resource] = map[berth.Time]berth.Count{}
			}
			for at := max(a.Start, w.now); at < a.End; at++ {
				used[a.Resource][at] += a.NPE
			}
		}
	}
	return live, area, used
}

// judge checks what has just been promised or changed against the limits of who asked,
// by sums of its own.
func (w *limited) judge(id, role string, added bool) {
	r, is := w.e.Reservation(id)
	if !is {
		return
	}
	for _, h := range w.holders(&r) {
		w.judgeFor(&r, h, role, added)
	}
}

func (w *limited) judgeFor(r *berth.Reservation, of holder, role string, added bool) {
	id, user := r.Request.ID, fmt.Sprint(of)
	a := w.allowed(role, of)
	live, area, used := w.has(of)
	check := func(name policy.LimitName, value int64) {
		if most, limited := a.Limit(name); limited && value > most {
			w.t.Fatalf("%s of %s, asked for by %q: %s is %d, allowed are %d", id, user, role, name, value, most)
		}
	}
	if added {
		check(policy.LimitActive, int64(live))
		check(policy.LimitHold, int64(r.Request.Hold))
		check(policy.LimitNoShow, int64(w.unused[of]))
	}
	check(policy.LimitPESeconds, area)
	check(policy.LimitBudget, w.bills.charged(of, policy.Always))
	check(policy.LimitMonthBudget, w.bills.charged(of, policy.MonthOf(r.Start())))
	check(policy.LimitLead, int64(r.Start().Sub(w.now)))
	for _, part := range r.Allotments {
		if of.partition != "" && w.partition(r, part.Resource) != of.partition {
			continue
		}
		check(policy.LimitLength, int64(part.End.Sub(part.Start)))
		most, limited := w.share(&a, of, part.Resource)
		for at := part.Start; limited && at < part.End; at++ {
			if got := used[part.Resource][at]; got > most {
				w.t.Fatalf("%s of %s: %d PEs of %s at %d, the share is %d", id, user, got, part.Resource.Site, at, most)
			}
		}
	}
}

// told checks a refusal for a limit: without this limit it is another one or none that
// refuses, and what it says is beyond what is allowed.
func (w *limited) told(before []byte, refusal *berth.Refusal, again func(e *engine.Engine) *berth.Refusal) {
	if refusal == nil || refusal.Reason != berth.Quota || refusal.Exceeded == nil {
		return
	}
	x := refusal.Exceeded
	of := "user"
	switch {
	case x.Owner != "":
		of = "owner"
	case x.Account != "":
		of = "account"
	case x.QOS != "":
		of = "qos"
	case x.Partition != "":
		of = "partition"
	}
	w.ends[of+" "+x.Limit]++
	w.ends[of+" "+w.what]++
	if x.Asked <= x.Allowed || x.Frees != 0 && x.Frees < w.now {
		w.t.Fatalf("%+v is not beyond what is allowed", x)
	}
	free := w.config
	free.Limits = slices.DeleteFunc(slices.Clone(w.config.Limits), func(l policy.Limit) bool {
		return string(l.Name) == x.Limit && covers(x.Account, l.Account) && covers(x.QOS, l.QOS) && covers(x.Partition, l.Partition)
	})
	twin, err := engine.Restore(free, before)
	if err != nil {
		w.t.Fatal(err)
	}
	if no := again(twin); no != nil && no.Exceeded != nil && no.Exceeded.Limit == x.Limit && no.Exceeded.Owner == x.Owner && no.Exceeded.Account == x.Account && no.Exceeded.QOS == x.QOS && no.Exceeded.Partition == x.Partition {
		w.t.Fatalf("%s refuses where there is no such limit", x.Limit)
	}
}

// covers reports whether a name of a row is about what was refused.
func covers(refused, row string) bool { return row == refused || row == policy.Every && refused != "" }

// noteUnused counts what was given up among changes.
func (w *limited) noteUnused(changes []change.Change) {
	for i := range changes {
		if r, is := w.asked[changes[i].ID]; is && changes[i].Kind == change.NoShow {
			for _, h := range []holder{{user: r.User}, {user: r.Owner}, {account: r.Account}, {qos: r.QOS}} {
				w.unused[h]++
			}
		}
	}
	for _, id := range w.ids {
		if r, is := w.e.Reservation(id); is {
			w.asked[id] = r.Request
		}
	}
}

// refusalIn returns the refusal of an id among changes.
func refusalIn(changes []change.Change, id string) *berth.Refusal {
	for i := range changes {
		if changes[i].ID == id && changes[i].Refusal != nil {
			return changes[i].Refusal
		}
	}
	return nil
}

// Whatever is asked for in whatever order, no user gets beyond their limits by asking, and
// after a restart the same is decided.
func TestLimitsHoldWhateverIsAsked(t *testing.T) {
	bound := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		w := limited{t: t, ends: bound, unused: map[holder]int{}, asked: map[string]*berth.Request{}}
		w.bills = bills{live: map[string]*bill{}, paid: map[holder]map[policy.Month]int64{}, holders: w.holders, has: func(h holder, r *berth.Reservation, pool berth.ResourceID) bool {
			return h.partition == "" || w.partition(r, pool) == h.partition
		}}
		w.now = policy.Month(1970*12+1).Start() - berth.Time(rapid.IntRange(0, 60).Draw(t, "before the next month"))
		binding := rapid.SampledFrom(bindings()).Draw(t, "binding")
		for i := range rapid.IntRange(1, 2).Draw(t, "sites") {
			w.config.Sites = append(w.config.Sites, berth.Site{
				Name: fmt.Sprintf("s%d", i), Managed: rapid.Bool().Draw(t, "managed"), Pools: []berth.Pool{{Name: "p", PEs: berth.Count(rapid.IntRange(2, 12).Draw(t, "pes")), Binding: binding}},
				Partitions: drawPartitions(t, binding),
			})
		}
		w.config.Limits, w.config.Prices = drawLimits(t), drawPrices(t)
		w.bills.price = w.price
		w.config.Place = policy.Placements[rapid.IntRange(0, len(policy.Placements)-1).Draw(t, "place")].Name
		var err error
		if w.e, err = engine.New(w.config); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			w.step()
			if err := w.e.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Log("limits that refused:", bound)
	for _, of := range []string{"user", "owner", "account", "qos", "partition"} {
		for _, met := range []string{"hold", "lead", "active", "no_show", "length", "share", "pe_hours", "budget", "month_budget", "submit", "modify", "extend", "several parts"} {
			if bound[of+" "+met] == 0 && (of != "partition" || met != "no_show") {
				t.Logf("%s: no limit of such a scope has refused for %s", of, met)
			}
		}
	}
}

// drawPartitions draws none, or one of all PEs and one of perhaps fewer; perhaps one is the default.
func drawPartitions(t *rapid.T, binding berth.Binding) []berth.Partition {
	if rapid.IntRange(0, 3).Draw(t, "partitions") == 0 {
		return nil
	}
	gpu := berth.Partition{Name: "gpu", Pool: "p"}
	if binding == berth.Early && rapid.Bool().Draw(t, "of fewer") {
		gpu.PEs = berth.NewPESet(berth.Run{Hi: 2})
	}
	main := berth.Partition{Name: "main", Pool: "p"}
	switch rapid.SampledFrom([]string{"", "main", "gpu"}).Draw(t, "default") {
	case "main":
		main.Default = true
	case "gpu":
		gpu.Default = true
	}
	return []berth.Partition{main, gpu}
}

// apply applies an event now, and keeps what came of it.
func (w *limited) apply(event engine.Event) ([]change.Change, error) {
	changes, _, err := w.e.Apply(w.now, event)
	changes = slices.Clone(changes)
	w.all = append(w.all, changes...)
	for i := range changes {
		w.bills.note(&changes[i])
	}
	w.countBills()
	return changes, err
}

// countBills compares what holders are charged for with the sums of the engine.
func (w *limited) countBills() {
	if !w.config.Limits.HasBudgets() {
		return
	}
	check := func(of holder, usage engine.Usage) {
		m := policy.MonthOf(w.now)
		if all, month := w.bills.charged(of, policy.Always), w.bills.charged(of, m); usage.Charged.All != all || usage.Month.All != month {
			w.t.Fatalf("%+v is charged for %d, in this month %d, want %d and %d", of, usage.Charged.All, usage.Month.All, all, month)
		}
	}
	check(holder{user: "ann"}, w.e.Usage("ann"))
	check(holder{user: "bob"}, w.e.Usage("bob"))
	check(holder{user: "svc-ann"}, w.e.Usage("svc-ann"))
	accounts, qualities, partitions := w.e.Limited()
	for _, name := range accounts {
		check(holder{account: name}, w.e.AccountUsage(name))
	}
	for _, name := range qualities {
		check(holder{qos: name}, w.e.QOSUsage(name))
	}
	for _, name := range partitions {
		check(holder{partition: name}, w.e.PartitionUsage(name))
	}
}

func (w *limited) step() {
	t := w.t
	w.now += berth.Time(rapid.IntRange(0, 4).Draw(t, "passes"))
	changes, err := w.apply(engine.Wake())
	if err != nil {
		t.Fatal(err)
	}
	w.noteUnused(changes)
	if rapid.IntRange(0, 5).Draw(t, "restart") == 0 {
		twin, err := engine.Restore(w.config, w.e.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		if w.e.Hash() != twin.Hash() {
			t.Fatal("another state after a restart")
		}
		folded, err := engine.New(w.config)
		if err != nil {
			t.Fatal(err)
		}
		if err := folded.Fold(w.all); err != nil {
			t.Fatal(err)
		}
		if w.e.Hash() != folded.Hash() {
			t.Fatal("another state from what is on record")
		}
		w.e = twin
	}
	role := rapid.SampledFrom([]string{"user", "operator", ""}).Draw(t, "role")
	id := ""
	if len(w.ids) > 0 {
		id = rapid.SampledFrom(w.ids).Draw(t, "of")
	}
	before := w.e.Snapshot()
	var event func() engine.Event
	added, until := false, berth.Time(0)
	what := rapid.SampledFrom([]string{"submit", "submit", "submit", "submit", "modify", "extend", "cancel", "offer", "offer", "confirm", "down", "maintenance", "up", "series", "series", "modify series"}).Draw(t, "what")
	w.what = what
	switch what {
	case "cancel":
		_, _ = w.apply(engine.Cancel(id)) // of what is over there is nothing to cancel
		return
	case "confirm":
		if _, err := w.apply(engine.Confirm(id)); err == nil {
			w.ends["held, then confirmed"]++
		}
		return
	case "series":
		r := w.request(role)
		w.series(&r)
		return
	case "modify series":
		w.modifySeries(role)
		return
	case "down", "maintenance", "up":
		site := rapid.SampledFrom(w.config.Sites).Draw(t, "site")
		at, pe := berth.PoolID(site.Name, "p"), rapid.IntRange(0, int(site.Pools[0].PEs)-1).Draw(t, "pe")
		pes := berth.PEsOf(berth.PE(pe))
		out := engine.Up(at, pes)
		switch what {
		case "down":
			out = engine.Down(berth.Outage{Resource: at, PEs: pes})
		case "maintenance":
			if binding := site.Pools[0].Binding; binding == berth.Late {
				return // which knows no outage ahead
			}
			from := w.now + berth.Time(rapid.IntRange(1, 30).Draw(t, "begins in"))
			out = engine.Down(berth.Outage{Resource: at, PEs: pes, From: from, Until: from + 10})
		}
		if _, err := w.apply(out); err != nil {
			t.Fatal(err)
		}
		return
	case "extend":
		r, is := w.e.Reservation(id)
		if !is {
			return
		}
		if len(r.Allotments) > 1 {
			return
		}
		until = r.End() + berth.Time(rapid.IntRange(1, 10).Draw(t, "longer"))
		event = func() engine.Event { return engine.ExtendFor(role, id, until) }
	default:
		r := w.request(role)
		if was, is := w.e.Reservation(id); what == "modify" && is {
			r.ID, r.User, r.Owner = id, was.Request.User, "" // which stays as it is
			event = func() engine.Event { return engine.Modify(r.Clone()) }
			break
		}
		id, added = fmt.Sprintf("r%d", len(w.ids)), true
		w.ids = append(w.ids, id)
		if len(r.Parts) > 1 {
			w.what = "several parts"
		}
		if r.ID = id; what == "offer" {
			offers, err := w.e.Offers(&r, 5)
			if err != nil {
				t.Fatal(err)
			}
			if len(offers) == 0 {
				return
			}
			r = rapid.SampledFrom(offers).Draw(t, "offer").Request
			r.Hold = berth.Duration(rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "held for"))
		}
		event = func() engine.Event { return engine.Submit(r.Clone()) }
	}
	if changes, err = w.apply(event()); err != nil {
		return // it does not go with the state
	}
	w.noteUnused(changes)
	refusal := refusalIn(changes, id)
	w.told(before, refusal, func(e *engine.Engine) *berth.Refusal {
		changes, _, err := e.Apply(w.now, event())
		if err != nil {
			t.Fatal(err)
		}
		return refusalIn(changes, id)
	})
	if refusal == nil {
		if until > 0 {
			w.judgeExtension(id, role, until)
			return
		}
		w.judge(id, role, added)
	}
}

// judgeExtension is judge of a reservation that goes on until a later end.
func (w *limited) judgeExtension(id, role string, until berth.Time) {
	r, is := w.e.Reservation(id)
	if !is {
		return
	}
	for _, h := range w.holders(&r) {
		w.judgeExtensionFor(&r, h, role, until)
	}
}

func (w *limited) judgeExtensionFor(r *berth.Reservation, of holder, role string, until berth.Time) {
	id, a := r.Request.ID, w.allowed(role, of)
	_, area, used := w.has(of)
	if most, limited := a.Limit(policy.LimitPESeconds); limited && area > most {
		w.t.Fatalf("%s is extended to %d PE-seconds, allowed are %d", id, area, most)
	}
	for name, charged := range map[policy.LimitName]int64{
		policy.LimitBudget: w.bills.charged(of, policy.Always), policy.LimitMonthBudget: w.bills.charged(of, policy.MonthOf(r.Start())),
	} {
		if most, limited := a.Limit(name); limited && charged > most {
			w.t.Fatalf("%s is extended, and %s is %d of %d", id, name, charged, most)
		}
	}
	if most, limited := a.Limit(policy.LimitLength); limited && int64(until.Sub(r.Start())) > most {
		w.t.Fatalf("%s is extended to %d s, allowed are %d", id, until.Sub(r.Start()), most)
	}
	at := r.Allotments[0].Resource
	if most, limited := w.share(&a, of, at); limited && used[at][until-1] > most {
		w.t.Fatalf("%s is extended to where %d PEs are used, the share is %d", id, used[at][until-1], most)
	}
}

// size returns how many PEs a pool has.
func (w *limited) size(id berth.ResourceID) berth.Count {
	for _, s := range w.config.Sites {
		if s.Name == id.Site {
			return s.Pools[0].PEs
		}
	}
	return 0
}

// owners has the owners of service accounts.
var owners = map[string]string{"svc-ann": "ann", "svc-also-ann": "ann"}

// request draws a request of a user for which a role asks.
func (w *limited) request(role string) berth.Request {
	t := w.t
	user := rapid.SampledFrom([]string{"ann", "ann", "bob", "svc-ann", "svc-ann", "svc-also-ann"}).Draw(t, "user")
	r := berth.Request{
		User: user, Owner: owners[user], Role: role,
		Sharing: berth.Sharing{
			Account: rapid.SampledFrom([]string{"", "phys", "phys", "chem"}).Draw(t, "account"), QOS: rapid.SampledFrom([]string{"", "high", "high", "low"}).Draw(t, "qos"),
		},
		Requirements: berth.Requirements{Partition: rapid.SampledFrom([]string{"", "", "gpu", "main"}).Draw(t, "partition")},
		Arrival:      w.now,
		Ready:        w.now + berth.Time(rapid.IntRange(0, 35).Draw(t, "ahead")), Hold: berth.Duration(rapid.SampledFrom([]int{0, 0, 5, 40}).Draw(t, "hold")),
		NoShow: berth.Duration(rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "no_show")),
	}
	longest := berth.Duration(0)
	for range rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "parts") {
		var part berth.Part
		for range rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "variants") {
			v := berth.Variant{NPE: berth.Count(rapid.IntRange(1, 8).Draw(t, "npe")), Duration: berth.Duration(rapid.IntRange(1, 25).Draw(t, "duration"))}
			longest = max(longest, v.Duration)
			part.Variants = append(part.Variants, v)
		}
		r.Parts = append(r.Parts, part)
	}
	r.Deadline = r.Ready.Add(longest) + berth.Time(rapid.IntRange(0, 60).Draw(t, "slack"))
	return r
}
