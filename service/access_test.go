package service_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// A user who is limited to some sites gets nothing elsewhere and is told of nothing
// elsewhere, though it is their own.
func TestSitesThatAreNotOpenAreNotThere(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	pool := []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Late}}
	config := engine.Config{Sites: []berth.Site{{Name: "east", Pools: pool}, {Name: "west", Pools: pool}}}
	h := start(t, t.TempDir(), config, c)
	within := ann
	within.By.Sites = service.NewSiteSet([]string{"west"})
	there := submit(t, h, ann, berth.Rigid("there", 0, 2000, 9000, 8, 100))
	if at := there.Reservation.Allotments[0].Resource.Site; at != "east" {
		t.Fatal("it is at", at)
	}
	events := h.Listen(t.Context(), within.By, 0)
	here := submit(t, h, within, berth.Rigid("here", 0, 3000, 9000, 2, 100))
	if at := here.Reservation.Allotments[0].Resource.Site; at != "west" {
		t.Errorf("it is at %s, which is not open", at)
	}
	r := berth.Rigid("no", 0, 3000, 9000, 2, 100)
	r.Site = "east"
	if a := submit(t, h, within, r); a.Reservation.State != service.Refused || a.Reservation.Refusal.Reason != berth.NoSuitableSite {
		t.Errorf("%+v", a.Reservation)
	}
	wide := berth.Rigid("", 0, 3000, 9000, 8, 100)
	offers, err := h.Offers(t.Context(), within, wide, 9)
	for _, o := range offers {
		if o.Allotments[0].Resource.Site != "west" {
			t.Errorf("offered at %s", o.Allotments[0].Resource.Site)
		}
	}
	if err != nil || len(offers) == 0 {
		t.Error(offers, err)
	}

	_, err = h.Get(t.Context(), within.By, "there")
	wantCode(t, err, berth.NotFound)
	_, _, err = h.History(t.Context(), within.By, "there")
	wantCode(t, err, berth.NotFound)
	_, err = h.Release(t.Context(), within, "there")
	wantCode(t, err, berth.NotFound)
	_, err = h.Extend(t.Context(), within, "there", 9000)
	wantCode(t, err, berth.NotFound)
	_, err = h.Tasks(t.Context(), within.By, "there")
	wantCode(t, err, berth.NotFound)
	list, _, err := h.List(t.Context(), within.By, service.Filter{})
	if err != nil || len(list) != 1 || list[0].ID != "here" {
		t.Errorf("%d listed, %v", len(list), err)
	}
	sites, err := h.Sites(t.Context(), within.By)
	if err != nil || len(sites) != 1 || sites[0].Name != "west" {
		t.Errorf("%+v %v", sites, err)
	}
	_, err = h.Occupation(t.Context(), within.By, "east", 0, 9999, service.Mark{Start: -1}, 9)
	wantCode(t, err, berth.NotFound)
	if spans, err := h.Occupation(t.Context(), within.By, "west", 0, 9999, service.Mark{Start: -1}, 9); err != nil || len(spans) != 1 {
		t.Error(spans, err)
	}
	operator := root
	operator.By.Sites = within.By.Sites
	wantCode(t, h.AcceptClock(t.Context(), operator), berth.Denied)
	wantCode(t, h.UpdateForecast(t.Context(), operator, service.Forecast{Site: "east", Period: 60, Kilobytes: []int64{1}}), berth.NotFound)

	// A modification stays within the sites too.
	larger := berth.Rigid("here", 0, 2000, 2100, 8, 100)
	a, err := h.Modify(t.Context(), within, "here", larger)
	if err != nil || a.Refusal != nil || a.Reservation.Allotments[0].Resource.Site != "west" {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := h.Release(t.Context(), ann, "there"); err != nil { // which is no news to within
		t.Fatal(err)
	}
	if _, err := h.Release(t.Context(), within, "here"); err != nil {
		t.Fatal(err)
	}
	for n, err := range events {
		if err != nil || n.Reservation.ID == "there" {
			t.Fatal("told of", n.Reservation.ID, err)
		}
		if n.Reservation.ID == "here" && n.What == "cancelled" {
			break
		}
	}

	none := ann
	none.By.Sites = within.By.Sites.And(service.NewSiteSet([]string{"east"}))
	_, err = h.Submit(t.Context(), none, berth.Rigid("nowhere", 0, 3000, 9000, 1, 100))
	wantCode(t, err, berth.Denied)
	if sites, err := h.Sites(t.Context(), none.By); err != nil || len(sites) != 0 {
		t.Error(sites, err)
	}
}

// Who asks in the name of a user who may use some sites alone gets no others for them.
func TestOthersAskForTheSitesOfAUser(t *testing.T) {
	pool := []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Late}}
	config := engine.Config{Sites: []berth.Site{{Name: "east", Pools: pool}, {Name: "west", Pools: pool}}}
	c := &clock{}
	c.seconds.Store(1000)
	store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	h, err := service.Open(t.Context(), service.Options{
		Config: config, Journal: store, Version: "test", Clock: c.now,
		Access: []service.Access{{Scope: policy.Scope{User: "ann"}, Sites: service.NewSiteSet([]string{"west"})}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	for id, user := range map[string]string{"anns": "ann", "roots": "root"} {
		r := berth.Rigid(id, 0, 2000, 9000, 1, 100)
		r.User = user
		if at, want := submit(t, h, root, r).Reservation.Allotments[0].Resource.Site, map[string]string{"anns": "west", "roots": "east"}[id]; at != want {
			t.Errorf("the promise of %s is at %s, want %s", user, at, want)
		}
		r.Site = "east"
		a, err := h.Modify(t.Context(), root, id, r)
		if moved := err == nil && a.Refusal == nil; moved != (user == "root") {
			t.Errorf("the promise of %s is moved to east: %t, %v, %v", user, moved, a.Refusal, err)
		}
		w := berth.Workflow{ID: "w" + id, User: user, Deadline: berth.Forever, Algorithm: "bd-cpar", Repair: berth.RepairHold, Tasks: []berth.WorkflowTask{{ID: "t", Seconds: 10, Most: 1}}}
		flow, err := h.SubmitWorkflow(t.Context(), root, w)
		if at, want := flow.Workflow.Tasks[0].Resource.Site, map[string]string{"ann": "west", "root": "east"}[user]; err != nil || at != want {
			t.Errorf("the workflow of %s is at %q, %v; want %s", user, at, err, want)
		}
	}
}

// A workflow that was refused has no reservations to say where it is: a task that names a site keeps it from operators who may
// not see that site.
func TestRefusedWorkflowsOfOtherSitesAreNotSeen(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	pool := []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Late}}
	h := start(t, t.TempDir(), engine.Config{Explain: true, Sites: []berth.Site{{Name: "east", Pools: pool}, {Name: "west", Pools: pool}}}, c)
	west := service.Principal{User: "guest", Role: service.Operator, Sites: service.NewSiteSet([]string{"west"})}
	for id, one := range map[string]struct {
		site string
		most berth.Count
		seen bool
	}{
		"named": {site: "east", most: 9}, "shown": {site: "west", most: 9, seen: true},
	} {
		w := berth.Workflow{
			ID: id, Deadline: berth.Forever, Algorithm: "bd-cpar", Repair: berth.RepairHold,
			Tasks: []berth.WorkflowTask{{ID: "t", Seconds: 10, Few: one.most, Most: one.most, Site: one.site}},
		}
		if a, err := h.SubmitWorkflow(t.Context(), ann, w); err != nil || a.Workflow.State != service.FlowRefused {
			t.Fatalf("%s: %s, %v", id, a.Workflow.State, err)
		}
		if _, err := h.Workflow(t.Context(), root.By, id); err != nil {
			t.Errorf("%s: an operator of all sites sees %v", id, err)
		}
		if _, err := h.Workflow(t.Context(), west, id); (err == nil) != one.seen {
			t.Errorf("%s: an operator of west alone sees %v, want it seen: %t", id, err, one.seen)
		}
	}
}

// What was answered under a key is answered again to the same user only in what they may
// see it by now.
func TestAKeyTellsNothingOfSitesThatAreClosedSince(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	pool := []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Late}}
	config := engine.Config{Explain: true, Sites: []berth.Site{{Name: "east", Pools: pool}, {Name: "west", Pools: pool}}}
	h := start(t, t.TempDir(), config, c)
	narrow := service.NewSiteSet([]string{"west"})
	under := func(key string, sites service.SiteSet) service.Ask {
		ask := ann
		ask.Key, ask.By.Sites = key, sites
		return ask
	}
	first := submit(t, h, under("promised", ""), berth.Rigid("promised", 0, 2000, 9000, 8, 7000))
	if at := first.Reservation.Allotments[0].Resource.Site; at != "east" {
		t.Fatal("it is at", at)
	}
	again, err := h.Submit(t.Context(), under("promised", ""), berth.Rigid("promised", 0, 2000, 9000, 8, 7000))
	if err != nil || again.Reservation.ID != "promised" || len(again.Reservation.Allotments) == 0 {
		t.Errorf("the same token gets %+v, %v", again, err)
	}
	again, err = h.Submit(t.Context(), under("promised", narrow), berth.Rigid("promised", 0, 2000, 9000, 8, 7000))
	if wantCode(t, err, berth.NotFound); again.Reservation.ID != "" {
		t.Errorf("a token of west alone gets %+v", again)
	}
	all, err := h.Recall(t.Context(), under("promised", narrow), 1)
	if wantCode(t, err, berth.NotFound); len(all) > 0 {
		t.Errorf("it recalls %+v", all)
	}

	submit(t, h, ann, berth.Rigid("west", 0, 2000, 9000, 8, 7000))
	later := submit(t, h, under("later", ""), berth.Rigid("later", 0, 2000, 8000, 4, 1000))
	sites := func(offers []service.Offer) map[string]int {
		at := map[string]int{}
		for i := range offers {
			at[offers[i].Allotments[0].Resource.Site]++
		}
		return at
	}
	if later.Reservation.State != service.Refused || sites(later.Offers)["west"] == 0 {
		t.Fatalf("%+v with offers %v, want it refused with an offer at west", later.Reservation, sites(later.Offers))
	}
	again, err = h.Submit(t.Context(), under("later", service.NewSiteSet([]string{"east"})), berth.Rigid("later", 0, 2000, 8000, 4, 1000))
	if at := sites(again.Offers); err != nil || at["east"] == 0 || at["west"] > 0 {
		t.Errorf("a token of east alone is offered %v, %v", at, err)
	}
}

// Under a key it counts what was answered, in what they may still see, and not whether
// it may be asked now.
func TestAKeyGoesBeforeWhatMayBeAskedNow(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(8), c)
	ask := ann
	ask.Key = "k"
	submit(t, h, ask, berth.Rigid("r", 0, 2000, 9000, 8, 7000))
	ask.By.Role = service.Viewer
	_, err := h.Submit(t.Context(), ask, berth.Rigid("", 0, 2000, 9000, 8, 7000))
	wantCode(t, err, berth.NotFound) // viewers have none
	ask.Key = "other"
	_, err = h.Submit(t.Context(), ask, berth.Rigid("", 0, 2000, 9000, 8, 7000))
	wantCode(t, err, berth.Denied)
	ask.Key, ask.Body = "k", [32]byte{1}
	_, err = h.Submit(t.Context(), ask, berth.Rigid("", 0, 2000, 9000, 8, 7000))
	wantCode(t, err, berth.Conflict)
}
