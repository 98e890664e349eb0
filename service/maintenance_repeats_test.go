package service_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/notice"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// A maintenance window of a site that repeats takes its nodes each time: what was promised there moves within its window at
// once, or is degraded, and its owner has a notice; what is asked for is not promised there; site feeds show each time, also after a
// restart; and when it is called off all of that ends.
func TestMaintenanceThatRepeats(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		const day, hours = 86_400, 3600
		told := &post{}
		begin := func() { w.host.SendNotices(told) }
		begin()
		if _, err := w.host.AddHook(t.Context(), ann, service.Hook{ID: "h", Form: service.WebhookForm, Kinds: []notice.Kind{notice.Granted, notice.Moved, notice.Degraded, notice.Whole}}); err != nil {
			t.Fatal(err)
		}
		first := w.now().Add(day)
		second := first.Add(7 * day)
		ask := func(id string, from berth.Time, within berth.Duration) service.Answer {
			return submit(t, w.host, ann, berth.Rigid(id, 0, from, from.Add(within), 4, hours))
		}
		ask("moves", second.Add(hours), 2*day)
		ask("stays", second.Add(9*hours), hours)
		ask("rigid", second.Add(3*hours), hours)
		w.pass(10)
		told.take()
		window := site.Booking{Name: "maint", Start: first, End: first.Add(8 * hours), Users: []string{"root"}, Repeat: site.Repeat{Each: site.Weekly}}
		for n := range 4 {
			window.Shares = append(window.Shares, site.Share{Node: fmt.Sprint("n", n+1)})
		}
		w.site.Book(window)
		w.pass(10)
		got := told.take()
		slices.Sort(got)
		if want := []string{"h degraded rigid degraded", "h moved moves confirmed"}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
		if at := w.get("moves").Allotments[0].Start; at < second.Add(8*hours) || at > second.Add(2*day) {
			t.Errorf("it moved to %d, the window is from %d on", at, second)
		}
		if r := w.get("stays"); r.State != service.Confirmed || r.Allotments[0].Start != second.Add(9*hours) {
			t.Errorf("what is beside the window is %+v", r)
		}
		refused := submit(t, w.host, bob, berth.Rigid("", 0, second.Add(6*hours), second.Add(8*hours), 1, hours))
		if refused.Reservation.State != service.Refused || refused.Reservation.Refusal.Reason != berth.NoCapacity {
			t.Errorf("within the window is promised %+v", refused.Reservation)
		}
		shown := func() (times []berth.Time) {
			t.Helper()
			for _, o := range feed(t, w.host, root.By, "harbour").Outages {
				if o.Ended == 0 {
					times = append(times, o.From)
				}
			}
			slices.Sort(times)
			return times
		}
		weeks := []berth.Time{first, second, second.Add(7 * day), second.Add(14 * day), second.Add(21 * day)}
		if got := shown(); !slices.Equal(got, weeks) {
			t.Errorf("the feed shows %d, want %d", got, weeks)
		}
		w.restart()
		begin()
		w.pass(10)
		if got := shown(); !slices.Equal(got, weeks) {
			t.Errorf("after a restart the feed shows %d, want %d", got, weeks)
		}
		told.take()
		w.site.Unbook("maint")
		w.pass(10)
		if got, is := told.take(), shown(); !slices.Equal(got, []string{"h whole rigid confirmed"}) || len(is) > 0 {
			t.Errorf("called off: told %q, the feed shows %d", got, is)
		}
	})
}
