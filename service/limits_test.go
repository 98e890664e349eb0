package service_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// Limits are those of the role of who asks, on what the user has; after a restart and in
// a check of the journal the same is decided.
func TestLimitsAreThoseOfWhoAsks(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	dir := t.TempDir()
	config := onePool(8)
	config.Limits = policy.Limits{
		{Scope: policy.Scope{Role: "user"}, Name: policy.LimitActive, Value: 1},
		{Scope: policy.Scope{Role: "operator"}, Name: policy.LimitActive, Value: 2},
		{Scope: policy.Scope{Role: "user"}, Name: policy.LimitLength, Value: 100},
	}
	refused := func(a service.Answer, limit policy.LimitName) {
		t.Helper()
		refusal := a.Refusal
		if refusal == nil {
			refusal = a.Reservation.Refusal
		}
		if refusal == nil || refusal.Exceeded == nil || refusal.Exceeded.Limit != string(limit) {
			t.Errorf("%+v, want it refused for %s", a, limit)
		}
	}
	forAnn := func(id string) berth.Request {
		r := berth.Rigid(id, 0, 2000, 9000, 1, 100)
		r.User = "ann"
		return r
	}
	open := func() (*service.Host, func()) {
		store, err := sqlite.Open(dir, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h, err := service.Open(t.Context(), service.Options{Config: config, Journal: store, Version: "test", Clock: c.now})
		if err != nil {
			t.Fatal(err)
		}
		return h, func() {
			if err := errors.Join(h.Close(), store.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	h, stop := open()
	submit(t, h, ann, forAnn("a"))
	refused(submit(t, h, ann, forAnn("b")), policy.LimitActive)
	if a := submit(t, h, root, forAnn("c")); a.Reservation.State != service.Confirmed {
		t.Errorf("%+v", a.Reservation)
	}
	refused(submit(t, h, root, forAnn("d")), policy.LimitActive)
	a, err := h.Extend(t.Context(), ann, "a", 2101)
	if err != nil {
		t.Fatal(err)
	}
	refused(a, policy.LimitLength)
	if a, err = h.Extend(t.Context(), root, "a", 2101); err != nil || a.Refusal != nil {
		t.Error(a, err)
	}
	longer := forAnn("c")
	longer.Parts[0].Variants[0].Duration = 101
	if a, err = h.Modify(t.Context(), ann, "c", longer); err != nil {
		t.Fatal(err)
	}
	refused(a, policy.LimitLength)
	stop()
	h, stop = open()
	refused(submit(t, h, ann, forAnn("e")), policy.LimitActive)
	q, err := h.Quotas(t.Context(), ann.By, []service.Principal{ann.By})
	if err != nil || len(q) != 1 {
		t.Fatal(q, err)
	}
	for _, l := range q[0].Limits {
		if l.Name == policy.LimitActive && (!l.Limited || l.Value != 1 || l.Used != 2) {
			t.Errorf("%+v", l)
		}
	}
	_, err = h.Quotas(t.Context(), bob.By, []service.Principal{ann.By})
	wantCode(t, err, berth.Denied)
	stop()
	store, err := sqlite.Open(dir, sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	if _, err := service.Verify(t.Context(), store, nil); err != nil {
		t.Error(err)
	}
}

// A configuration of before the table of limits has the quota that it had.
func TestAQuotaOfBeforeTheTableCounts(t *testing.T) {
	config, err := service.ReadConfig([]byte(`{"sites":[{"name":"s","pools":[{"name":"p","pes":4}]}],"order":"","match":"","place":"","choice":"","horizon":"","seed":0,
		"quota":{"reservations":1,"pe_seconds":1},"calendar":"","explain":false}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range service.Roles() {
		a := config.Limits.Of(string(role), "ann")
		if live, _ := a.Limit(policy.LimitActive); live != 1 {
			t.Errorf("%s: %d live reservations, want 1", role, live)
		}
		if area, _ := a.Limit(policy.LimitPESeconds); area != 1 {
			t.Errorf("%s: %d PE-seconds, want 1", role, area)
		}
	}
}

// The defaults keep a user from taking a pool, a century, or the memory, and say so.
func TestTheDefaultsStopOneUser(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	config := onePool(64)
	config.Limits = service.DefaultLimits()
	h := start(t, t.TempDir(), config, c)
	const year = 365 * 86_400
	held := berth.Rigid("", 0, 1000, 9000, 1, 100)
	held.Hold = year
	for limit, r := range map[policy.LimitName]berth.Request{
		policy.LimitShare:  berth.Rigid("", 0, 1000, 9000, 64, 100),
		policy.LimitLength: berth.Rigid("", 0, 1000, 1000+year, 1, year),
		policy.LimitLead:   berth.Rigid("", 0, 1000+year, 1000+2*year, 1, 100),
		policy.LimitHold:   held,
	} {
		a := submit(t, h, ann, r)
		if a.Reservation.Refusal == nil || a.Reservation.Refusal.Exceeded == nil || a.Reservation.Refusal.Exceeded.Limit != string(limit) {
			t.Errorf("%s: %+v", limit, a.Reservation)
		}
		r.User = "ann"
		if a := submit(t, h, root, r); limit != policy.LimitHold && a.Reservation.Refusal != nil && a.Reservation.Refusal.Reason == berth.Quota {
			t.Errorf("%s: an operator gets %+v", limit, a.Reservation.Refusal)
		}
	}
	for _, role := range service.Roles() {
		a := config.Limits.Of(string(role), "")
		for _, name := range []policy.LimitName{policy.LimitRate, policy.LimitBurst, policy.LimitStreams, policy.LimitRequest, policy.LimitRemembered} {
			if _, limited := a.Limit(name); !limited {
				t.Errorf("%s has no limit of %s", role, name)
			}
		}
	}
}

// An operator whose token is limited to sites is told of others what they have there, and nothing of what they have
// elsewhere; one of all sites, and users of themselves, are told what counts for a decision.
func TestUsedLimitsAreOfWhatMayBeSeen(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	config := engine.Config{Limits: service.DefaultLimits(), Sites: []berth.Site{
		{Name: "east", Pools: []berth.Pool{{Name: "p", PEs: 64, Binding: berth.Late}}}, {Name: "west", Pools: []berth.Pool{{Name: "p", PEs: 64, Binding: berth.Late}}},
	}}
	h := start(t, t.TempDir(), config, c)
	for i, at := range []string{"east", "east", "west"} {
		r := berth.Rigid(fmt.Sprint("r", i), 0, 2000, 9000, 2, 100)
		r.Site = at
		if a := submit(t, h, ann, r); a.Reservation.State != service.Confirmed {
			t.Fatalf("%+v", a.Reservation)
		}
	}
	over := berth.Rigid("over", 0, 2000, 9000, 2, 100)
	over.Site = "west"
	submit(t, h, ann, over)
	if _, err := h.Release(t.Context(), ann, "over"); err != nil {
		t.Fatal(err)
	}
	operator := func(sites ...string) service.Principal {
		return service.Principal{User: "olga", Role: service.Operator, Sites: service.NewSiteSet(sites)}
	}
	limited := ann.By
	limited.Sites = service.NewSiteSet([]string{"west"})
	for name, row := range map[string]struct {
		by    service.Principal
		used  int64
		sites []string
	}{
		"an operator of all":       {root.By, 3, nil},
		"an operator of both":      {operator("east", "west"), 3, []string{"east", "west"}},
		"an operator of one":       {operator("west"), 1, []string{"west"}},
		"an operator of another":   {operator("north"), 0, []string{"north"}},
		"a user":                   {ann.By, 3, nil},
		"a user's token of a site": {limited, 3, nil},
	} {
		list, err := h.Quotas(t.Context(), row.by, []service.Principal{ann.By})
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		if !slices.Equal(list[0].Sites, row.sites) {
			t.Errorf("%s: counted at %q, want %q", name, list[0].Sites, row.sites)
		}
		want := map[policy.LimitName]int64{policy.LimitReservations: row.used, policy.LimitActive: row.used, policy.LimitPESeconds: row.used * 200}
		for _, l := range list[0].Limits {
			if n, is := want[l.Name]; is && (!l.Counted || l.Used != n) {
				t.Errorf("%s: %s is %d, want %d", name, l.Name, l.Used, n)
			}
		}
	}
}

// An operator of all sites sees what each account, QOS and partition has, of whichever user, also after
// a restart.
func TestLimitsOfAccountsAndPartitions(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	dir, config := t.TempDir(), onePool(8)
	config.Sites[0].Partitions = []berth.Partition{{Name: "gpu", Pool: "p"}}
	config.Limits = policy.Limits{
		{Scope: policy.Scope{Account: "phys"}, Name: policy.LimitActive, Value: 2},
		{Scope: policy.Scope{QOS: policy.Every}, Name: policy.LimitActive, Value: 9},
		{Scope: policy.Scope{Partition: "gpu"}, Name: policy.LimitShare, Value: 250},
	}
	open := func() (*service.Host, func()) {
		store, err := sqlite.Open(dir, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h, err := service.Open(t.Context(), service.Options{Config: config, Journal: store, Version: "test", Clock: c.now})
		if err != nil {
			t.Fatal(err)
		}
		return h, func() {
			if err := errors.Join(h.Close(), store.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	h, stop := open()
	ask := func(who service.Ask, npe berth.Count) service.Answer {
		r := berth.Rigid("", 0, 2000, 2100, npe, 100)
		r.Account, r.QOS, r.Partition = "phys", who.By.User, "gpu"
		return submit(t, h, who, r)
	}
	ask(ann, 1)
	ask(bob, 1)
	for range 2 {
		no := ask(ann, 1).Reservation.Refusal
		if want := (berth.Exceeded{Limit: "active", Account: "phys", Allowed: 2, Asked: 3, Frees: 2100}); no == nil || no.Exceeded == nil || *no.Exceeded != want {
			t.Errorf("%+v; want %+v", no, want)
		}
		list, err := h.SharedQuotas(t.Context(), root.By)
		if err != nil || len(list) != 4 {
			t.Fatal(list, err)
		}
		used := map[string]int64{}
		for _, q := range list {
			for _, l := range q.Limits {
				if l.Limited {
					used[fmt.Sprint(q.Account, q.QOS, q.Partition, " ", l.Name, " of ", l.Value)] = l.Used
				}
			}
		}
		if used["phys active of 2"] != 2 || used["gpu share of 2"] != 2 || used["ann active of 9"] != 1 || used["bob active of 9"] != 1 || len(used) != 4 {
			t.Errorf("%v are used", used)
		}
		_, err = h.SharedQuotas(t.Context(), ann.By)
		wantCode(t, err, berth.Denied)
		stop()
		h, stop = open()
	}
	stop()
}

// What service accounts ask for counts to the limits of their owner, whichever way they ask, and after a restart in which no account is
// known any more.
func TestServiceAccountsCountForTheirOwner(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	config := onePool(8)
	config.Limits = policy.Limits{{Name: policy.LimitActive, Value: 5}}
	dir, owners := t.TempDir(), map[string]string{"svc-a": "ann", "svc-b": "ann"}
	open := func(ownerOf func(string) string) (*service.Host, *sqlite.Store, func()) {
		store, err := sqlite.Open(dir, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h, err := service.Open(t.Context(), service.Options{Config: config, Journal: store, Version: "test", Clock: c.now, OwnerOf: ownerOf})
		if err != nil {
			t.Fatal(err)
		}
		return h, store, func() {
			if err := errors.Join(h.Close(), store.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	by := func(user string) service.Ask {
		return service.Ask{By: service.Principal{User: user, Role: service.User}}
	}
	used := func(h *service.Host, user string) (active int64) {
		t.Helper()
		p := service.Principal{User: user, Role: service.User}
		list, err := h.Quotas(t.Context(), p, []service.Principal{p})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range list[0].Limits {
			if a.Name == policy.LimitActive {
				active = a.Used
			}
		}
		return active
	}
	refused := func(refusal *berth.Refusal, what string) {
		t.Helper()
		if refusal == nil || refusal.Exceeded == nil || refusal.Exceeded.Owner != "ann" || refusal.Exceeded.Asked <= 5 {
			t.Errorf("%s: %+v; want it refused by the limit of ann", what, refusal)
		}
	}
	single := func(id string) berth.Request { return berth.Rigid(id, 0, 2000, 9000, 1, 100) }
	flow := func(id string) berth.Workflow {
		w := berth.Workflow{ID: id, Deadline: 9000, Repair: berth.RepairHold, Algorithm: "bd-cpar"}
		for i := range 2 {
			w.Tasks = append(w.Tasks, berth.WorkflowTask{ID: fmt.Sprint("t", i), Seconds: 100, Most: 1})
		}
		return w
	}
	series := func(id string) berth.Series {
		s := berth.Series{ID: id, Least: 2, Request: single(id)}
		for i := range 2 {
			at := berth.Time(3000 + 500*i)
			s.Occurrences = append(s.Occurrences, berth.Occurrence{Ready: at, Deadline: at + 200})
		}
		return s
	}
	h, _, stop := open(func(user string) string { return owners[user] })
	submit(t, h, by("ann"), single("mine"))
	if a, err := h.SubmitWorkflow(t.Context(), by("svc-a"), flow("flow")); err != nil || a.Workflow.Refusal != nil {
		t.Fatalf("%+v, %v", a.Workflow.Refusal, err)
	}
	if a, err := h.SubmitSeries(t.Context(), by("svc-b"), series("series")); err != nil || len(a.Series.Reservations) != 2 {
		t.Fatalf("%+v, %v", a, err)
	}
	if n, of := used(h, "ann"), used(h, "svc-a"); n != 5 || of != 2 {
		t.Errorf("ann has %d, svc-a %d", n, of)
	}
	for i, open := range []func(){
		func() {},
		func() { stop(); h, _, stop = open(func(user string) string { return owners[user] }) },
	} {
		open()
		refused(submit(t, h, by("svc-a"), single(fmt.Sprint("more", i))).Reservation.Refusal, "a request")
		a, err := h.SubmitWorkflow(t.Context(), by("svc-b"), flow(fmt.Sprint("flow", i)))
		if err != nil {
			t.Fatal(err)
		}
		refused(a.Workflow.Refusal, "a workflow")
		if r := submit(t, h, by("bob"), single(fmt.Sprint("bob", i))); r.Reservation.State != service.Confirmed {
			t.Errorf("bob is told %+v", r.Reservation)
		}
	}
	// An operator who asks in the name of an account asks for its owner too.
	inName := single("in its name")
	inName.User = "svc-a"
	refused(submit(t, h, service.Ask{By: service.Principal{User: "root", Role: service.Operator}}, inName).Reservation.Refusal, "an operator")
	stop()
	h, store, stop := open(nil)
	defer stop()
	if n := used(h, "ann"); n != 5 {
		t.Errorf("without accounts ann has %d on record", n)
	}
	if _, err := service.Verify(t.Context(), store, nil); err != nil {
		t.Error(err)
	}
}
