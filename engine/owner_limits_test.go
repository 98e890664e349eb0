package engine_test

import (
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// byAccount is a request of a service account of u.
func byAccount(r berth.Request, account string) berth.Request {
	r.User, r.Owner = account, "u"
	return r
}

// What service accounts have counts to each limit of their owner, and what the owner has counts to none of theirs. A row about an account
// still limits that alone.
func TestServiceAccountsCountForTheirOwner(t *testing.T) {
	for _, test := range []struct {
		limit policy.LimitName
		value int64
	}{
		{policy.LimitActive, 2},
		{policy.LimitReservations, 2},
		{policy.LimitPESeconds, 20},
		{policy.LimitBudget, 20},
		{policy.LimitMonthBudget, 20},
		{policy.LimitShare, 500},
	} {
		t.Run(string(test.limit), func(t *testing.T) {
			config := onePool(4, berth.Late)
			config.Limits = policy.Limits{{Name: test.limit, Value: test.value}}
			e := newEngine(t, config)
			own := func(id string) berth.Request { return owned(id, 0, 10, 1, 10) }
			accepted(t, submit(t, e, 0, byAccount(own("a"), "svc-a")))
			accepted(t, submit(t, e, 0, own("mine")))
			for _, r := range []berth.Request{byAccount(own("b"), "svc-b"), byAccount(own("a again"), "svc-a")} {
				no := refused(t, submit(t, e, 0, r))
				if no.Exceeded == nil || no.Exceeded.Limit != string(test.limit) || no.Exceeded.Owner != "u" {
					t.Errorf("%s: %+v, %+v; want %s of the owner", r.ID, no, no.Exceeded, test.limit)
				}
			}
			if no := refused(t, submit(t, e, 0, own("mine too"))); no.Exceeded == nil || no.Exceeded.Owner != "" {
				t.Errorf("%+v; want a limit of the user", no.Exceeded)
			}
			other := own("other")
			other.User = "v"
			accepted(t, submit(t, e, 0, other))
			if got := e.Usage("svc-a"); got.Live != 1 {
				t.Errorf("the account has %d", got.Live)
			}
			if got := e.Usage("u"); got.Live != 2 || got.PESeconds != 20 {
				t.Errorf("the owner has %+v", got)
			}
			twin, err := engine.Restore(config, e.Snapshot())
			if err != nil {
				t.Fatal(err)
			}
			if twin.Hash() != e.Hash() {
				t.Error("another state after a restart")
			}
			refused(t, submit(t, twin, 0, byAccount(own("b"), "svc-b")))
			for _, id := range []string{"a", "mine"} {
				apply(t, e, 0, engine.Cancel(id))
			}
			accepted(t, submit(t, e, 0, byAccount(own("b"), "svc-b")))
			if err := e.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A limit of an account alone is kept to beside that of its owner, whichever is the narrower.
func TestAnAccountHasLimitsOfItsOwn(t *testing.T) {
	config := onePool(8, berth.Late)
	config.Limits = policy.Limits{{Name: policy.LimitActive, Value: 3}, {Scope: policy.Scope{User: "svc-a"}, Name: policy.LimitActive, Value: 1}}
	e := newEngine(t, config)
	accepted(t, submit(t, e, 0, byAccount(owned("a", 0, 10, 1, 10), "svc-a")))
	if no := refused(t, submit(t, e, 0, byAccount(owned("b", 0, 10, 1, 10), "svc-a"))); no.Exceeded == nil || no.Exceeded.Owner != "" || no.Exceeded.Allowed != 1 {
		t.Errorf("%+v; want the limit of the account", no.Exceeded)
	}
	accepted(t, submit(t, e, 0, owned("mine", 0, 10, 1, 10)))
	accepted(t, submit(t, e, 0, owned("mine too", 0, 10, 1, 10)))
	if no := refused(t, submit(t, e, 0, byAccount(owned("c", 0, 10, 1, 10), "svc-c"))); no.Exceeded == nil || no.Exceeded.Owner != "u" || no.Exceeded.Asked != 4 {
		t.Errorf("%+v; want the limit of the owner", no.Exceeded)
	}
}

// A modified reservation keeps its owner, also if an operator modifies it.
func TestAModificationKeepsTheOwner(t *testing.T) {
	config := onePool(4, berth.Late)
	config.Limits = policy.Limits{{Name: policy.LimitPESeconds, Value: 20}}
	e := newEngine(t, config)
	accepted(t, submit(t, e, 0, byAccount(owned("a", 100, 200, 1, 10), "svc-a")))
	other := owned("a", 100, 200, 2, 10)
	other.User = "svc-a"
	apply(t, e, 0, engine.Modify(&other))
	if r, _ := e.Reservation("a"); r.Request.Owner != "u" || r.Allotments[0].NPE != 2 {
		t.Errorf("it is %+v of %q", r.Allotments, r.Request.Owner)
	}
	if got := e.Usage("u").PESeconds; got != 20 {
		t.Errorf("the owner has %d PE-seconds", got)
	}
	refused(t, submit(t, e, 0, owned("mine", 0, 10, 1, 1)))
}

// A request may not be of an owner who is its user.
func TestAnOwnerIsAnotherUser(t *testing.T) {
	e := newEngine(t, onePool(4, berth.Late))
	r := owned("a", 0, 10, 1, 10)
	r.Owner = r.User
	_, _, err := e.Apply(0, engine.Submit(&r))
	wantCode(t, err, berth.Invalid, "owner")
}

// However much the live reservations of a holder come to, a limit of PE-hours refuses what is beyond it, and lets in what is not once
// enough of them are gone.
func TestLiveAreasDoNotOverflow(t *testing.T) {
	const endless, long = int64(berth.Endless), berth.TimeLimit / 2
	config := onePool(berth.MaxPEs, berth.Late)
	for _, name := range []string{"b", "c", "d", "e", "f", "g", "h", "i"} {
		config.Sites[0].Pools = append(config.Sites[0].Pools, berth.Pool{Name: name, PEs: berth.MaxPEs, Binding: berth.Late})
	}
	free := newEngine(t, config)
	config.Limits = policy.Limits{{Name: policy.LimitPESeconds, Value: 1000}}
	for i := range 8 { // in a pool each: four times what an int64 holds
		accepted(t, submit(t, free, 0, owned(fmt.Sprint("live", i), 0, long+10, berth.MaxPEs, long)))
		if got, want := free.Usage("u").PESeconds, berth.AddAreas(int64(i)*(endless/2), endless/2); i < 2 && got != want || i > 1 && got != endless-1 {
			t.Errorf("%d of them come to %d PE-seconds", i+1, got)
		}
	}
	e, err := engine.Restore(config, free.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		no := refused(t, submit(t, e, 0, owned(fmt.Sprint("more", i), 0, 1010, 1, 1000)))
		if no.Exceeded == nil || no.Exceeded.Limit != "pe_hours" || no.Exceeded.Asked <= 1000 || no.Exceeded.Frees != long {
			t.Fatalf("beside %d: %+v, %+v; want it beyond the limit until %d", 8-i, no, no.Exceeded, long)
		}
		apply(t, e, 0, engine.Cancel(fmt.Sprint("live", i)))
	}
	if got := e.Usage("u"); got.PESeconds != 0 || got.Live != 0 {
		t.Errorf("left are %+v", got)
	}
	parts := owned("parts", 0, long+10, 1, 10)
	for range 8 {
		parts.Parts = append(parts.Parts, berth.Part{Variants: []berth.Variant{{NPE: berth.MaxPEs, Duration: long}}})
	}
	if no := refused(t, submit(t, e, 0, parts)); no.Exceeded == nil || no.Exceeded.Limit != "pe_hours" || no.Exceeded.Asked <= 1000 {
		t.Errorf("%+v, %+v; want parts together beyond the limit", no, no.Exceeded)
	}
	accepted(t, submit(t, e, 0, owned("all", 0, 1010, 1, 1000)))
	refused(t, submit(t, e, 0, owned("one more", 0, 10, 1, 1)))
}
