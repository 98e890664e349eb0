package service_test

import (
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

// What a site has not done is told with why, and gone from there once it is done.
func TestTheOutboxIsShown(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		faults, err := fake.ParseFaults("reserve * deny")
		if err != nil {
			t.Fatal(err)
		}
		root := service.Principal{User: "root", Role: service.Operator}
		w.reserve("made", 1, 100, 2000)
		w.pass(30)
		w.site.Inject(faults...)
		w.reserve("refused", 1, 300, 2000)
		w.reserve("gone", 1, 300, 2000)
		if _, err := w.host.Release(t.Context(), ann, "gone"); err != nil {
			t.Fatal(err)
		}
		box, err := w.host.Outbox(t.Context(), root)
		if err != nil {
			t.Fatal(err)
		}
		if last := box[len(box)-1]; last.Reservation != "gone" || !last.Remove || last.State != service.Cancelled {
			t.Errorf("%+v, want that gone is to be removed", last)
		}
		w.pass(60)
		if box, err = w.host.Outbox(t.Context(), root); err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(box, func(e service.Errand) bool { return e.Reservation == "refused" })
		if at < 0 || box[at].Remove || box[at].Trouble == "" || box[at].State != service.Confirmed || box[at].Since == 0 {
			t.Fatalf("%+v, want that refused is to be made, and why it is not", box)
		}
		if slices.ContainsFunc(box, func(e service.Errand) bool { return e.Reservation == "made" }) {
			t.Errorf("%+v has what is done", box)
		}
		elsewhere := service.Principal{User: "root", Role: service.Operator, Sites: service.NewSiteSet([]string{"elsewhere"})}
		if box, err := w.host.Outbox(t.Context(), elsewhere); err != nil || len(box) != 0 {
			t.Errorf("%+v %v of a site that is not theirs", box, err)
		}
		if _, err := w.host.Outbox(t.Context(), ann.By); err == nil {
			t.Error("a user sees the outbox")
		}
		w.site.Heal()
		w.pass(60)
		if box, err := w.host.Outbox(t.Context(), root); err != nil || len(box) != 0 {
			t.Errorf("%+v %v once all is done", box, err)
		}
	})
}

// What is out of use, and what is announced to be, is told with its nodes.
func TestOutagesAreShown(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		vera := service.Principal{User: "vera", Role: service.Viewer}
		w.site.Fail("n2", "fire")
		w.book("maintenance", w.now()+1000, w.now()+2000, "n4")
		w.pass(30)
		list, err := w.host.Outages(t.Context(), vera)
		if err != nil || len(list) != 2 {
			t.Fatalf("%+v %v, want two", list, err)
		}
		slices.SortFunc(list, func(a, b service.PoolOutage) int { return int(a.From - b.From) })
		if is := list[0]; !slices.Equal(is.Nodes, []string{"n2"}) || is.From != 0 || is.Until != berth.Forever {
			t.Errorf("%+v, want n2 out of use", is)
		}
		if will := list[1]; !slices.Equal(will.Nodes, []string{"n4"}) || will.Until-will.From != 1000 {
			t.Errorf("%+v, want n4 out of use for 1000 s", will)
		}
		vera.Sites = service.NewSiteSet([]string{"elsewhere"})
		if list, err := w.host.Outages(t.Context(), vera); err != nil || len(list) != 0 {
			t.Errorf("%+v %v of a site that is not theirs", list, err)
		}
	})
}
