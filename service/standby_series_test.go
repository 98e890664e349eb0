package service_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// An open series, maintenance in its way and prices go on where another one takes over, and again where that one is followed: what has its turn
// then is promised and charged as before, what maintenance keeps from its turn is refused, and promised once that is called off.
func TestOpenSeriesMaintenanceAndPricesAfterATakeover(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		if err := w.host.Close(); err != nil {
			t.Fatal(err)
		}
		w.options.Config.Prices = policy.Prices{{Site: "harbour", Factor: 1500}}
		w.options.Config.Limits = policy.Limits{{Scope: policy.Scope{User: "ann"}, Name: policy.LimitBudget, Value: 1 << 30}}
		w.open()
		now := w.now()
		id := submitSeries(t, w.host, ann, nightly(now, 8, 2500)).Series.Series.ID
		m := service.Maintenance{Name: "pumps", Site: "harbour", Times: []berth.Interval{{Start: now + 4900, End: now + 5300}, {Start: now + 6900, End: now + 7300}}}
		if _, way, err := w.host.AddMaintenance(t.Context(), root, m, false); err != nil || len(way) > 0 {
			t.Fatalf("in its way are %q, %v", way, err)
		}
		takeOver := func() {
			t.Helper()
			standby := w.beside()
			w.pass(1)
			w.shownAlike(w.host, standby)
			was, err := w.host.GetSeries(t.Context(), ann.By, id)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.host.Close(); err != nil {
				t.Fatal(err)
			}
			next, err := standby.Lead(t.Context(), w.options)
			if err != nil {
				t.Fatal(err)
			}
			if err := standby.Close(); err != nil {
				t.Fatal(err)
			}
			w.host = next
			is, err := next.GetSeries(t.Context(), ann.By, id)
			for _, s := range []*service.Series{&was, &is} {
				for i := range s.Reservations { // what the site has only the one knows that looks after it
					s.Reservations[i].Sites, s.Reservations[i].Nodes = nil, nil
				}
			}
			if diff := cmp.Diff(was, is); err != nil || diff != "" {
				t.Fatal(err, diff)
			}
		}
		is := func(at berth.Time, held, charged int64, want string) {
			t.Helper()
			w.pass(int(at.Sub(w.now())))
			s, err := w.host.GetSeries(t.Context(), ann.By, id)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, states(&s)); diff != "" {
				t.Errorf("after %d s: %s", at.Sub(now), diff)
			}
			u, _, err := w.host.Usage(t.Context(), ann.By, 0, 1<<30)
			if err != nil || len(u.List) != 1 || u.List[0].Held != held || u.List[0].Charged != charged {
				t.Errorf("after %d s: used is %+v, %v; want %d held and %d charged", at.Sub(now), u.List, err, held, charged)
			}
		}
		const one = int64(2 * 100 * 3 / 2) // an occurrence: 2 nodes for 100 s, at 1.5
		is(now+10, 2*one, 0, "confirmed confirmed")
		takeOver()
		is(now+1600, 2*one+one, one, "finished confirmed confirmed confirmed")
		takeOver()
		is(now+2600, 2*one, 2*one, "finished finished confirmed confirmed refused") // the fifth is within the maintenance
		takeOver()
		if err := w.host.RemoveMaintenance(t.Context(), root, "pumps", now+4900); err != nil {
			t.Fatal(err)
		}
		is(now+2700, 3*one, 2*one, "finished finished confirmed confirmed confirmed")
		takeOver()
		is(now+4600, 2*one, 4*one, "finished finished finished finished confirmed confirmed refused")
		list, err := w.host.ListMaintenance(t.Context(), root.By)
		if err != nil || len(list) != 1 || !slices.Equal(list[0].Times, []berth.Interval{{Start: now + 6900, End: now + 7300}}) {
			t.Errorf("maintenance is %+v, %v", list, err)
		}
		is(now+8200, 0, 7*one, "finished finished finished finished finished finished refused finished")
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
	})
}
