package service_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/notice"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

// Maintenance takes its nodes each time, also those that are far ahead: what was promised there moves within its window at once, or is degraded, and
// its owner has a notice; what is asked for is not promised there; a restart changes nothing; and what is called off is in use again.
func TestMaintenance(t *testing.T) {
	for unit, all := range map[site.Unit]berth.Count{site.UnitNode: 4, site.UnitCore: 16} { // bound early, and late
		t.Run(string(unit), func(t *testing.T) { maintained(t, unit, all) })
	}
}

func maintained(t *testing.T, unit site.Unit, all berth.Count) {
	inHarbour(t, unit, func(t *testing.T, w *harbour) {
		const hours, week = 3600, 7 * 86_400
		told := &post{}
		begin := func() { w.host.SendNotices(told) }
		begin()
		if _, err := w.host.AddHook(t.Context(), ann, service.Hook{ID: "h", Form: service.WebhookForm, Kinds: []notice.Kind{notice.Moved, notice.Degraded, notice.Whole}}); err != nil {
			t.Fatal(err)
		}
		m := service.Maintenance{Name: "cooling", Site: "harbour", Rule: "every week", Zone: "UTC", Reason: "pumps"}
		first := w.now().Add(86_400)
		for n := range 60 {
			start := first.Add(berth.Duration(n) * week)
			m.Times = append(m.Times, berth.Interval{Start: start, End: start.Add(8 * hours)})
		}
		second, far := first.Add(week), first.Add(50*week)
		ask := func(id string, from berth.Time, within berth.Duration) service.Answer {
			return submit(t, w.host, ann, berth.Rigid(id, 0, from, from.Add(within), all, hours))
		}
		ask("moves", second.Add(hours), 86_400)
		ask("stays", second.Add(9*hours), hours)
		ask("rigid", second.Add(3*hours), hours)
		ask("late", far.Add(hours), 86_400)
		w.pass(10)
		told.take()

		_, way, err := w.host.AddMaintenance(t.Context(), root, m, true)
		if err != nil || !slices.Equal(way, []string{"late", "moves", "rigid"}) {
			t.Errorf("in its way are %q, %v", way, err)
		}
		w.pass(10)
		if got := told.take(); len(got) > 0 || len(feed(t, w.host, root.By, "harbour").Outages) > 0 {
			t.Errorf("it was only tried, but told %q", got)
		}
		is, way, err := w.host.AddMaintenance(t.Context(), root, m, false)
		if err != nil || !slices.Equal(way, []string{"late", "moves", "rigid"}) || is.By != "root" || is.Created != w.now() {
			t.Errorf("%+v, in its way are %q, %v", is, way, err)
		}
		w.pass(10)
		got := told.take()
		slices.Sort(got)
		if want := []string{"h degraded rigid degraded", "h moved late confirmed", "h moved moves confirmed"}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
		inTheWay := func() (ids []string) {
			for _, id := range []string{"moves", "stays", "late"} {
				a := w.get(id).Allotments[0]
				if slices.ContainsFunc(m.Times, func(at berth.Interval) bool { return at.Start < a.End && a.Start < at.End }) {
					ids = append(ids, id)
				}
			}
			return ids
		}
		if ids := inTheWay(); len(ids) > 0 {
			t.Errorf("%q are within it", ids)
		}
		refused := func(when string, from berth.Time) {
			t.Helper()
			a := submit(t, w.host, bob, berth.Rigid("", 0, from.Add(6*hours), from.Add(8*hours), 1, hours))
			if a.Reservation.State != service.Refused || a.Reservation.Refusal.Reason != berth.NoCapacity {
				t.Errorf("%s: within it is promised %+v", when, a.Reservation)
			}
		}
		for _, from := range []berth.Time{first, second, far, first.Add(59 * week)} {
			refused("added", from)
		}
		w.restart()
		begin()
		refused("restarted", first.Add(58*week))
		w.pass(10)
		if list, err := w.host.ListMaintenance(t.Context(), ann.By); err != nil || len(list) != 1 || len(list[0].Times) != 60 || list[0].Reason != "pumps" {
			t.Errorf("restarted: %+v, %v", list, err)
		}
		if got := told.take(); len(got) > 0 {
			t.Errorf("restarted: told %q", got)
		}
		refused("restarted", second)

		if _, _, err := w.host.AddMaintenance(t.Context(), root, m, false); err != nil {
			t.Errorf("asked again: %v", err)
		}
		if err := w.host.RemoveMaintenance(t.Context(), root, "cooling", second); err != nil {
			t.Error(err)
		}
		w.pass(10)
		if got := told.take(); !slices.Equal(got, []string{"h whole rigid confirmed"}) {
			t.Errorf("one is called off: told %q", got)
		}
		refused("one is called off", first)
		if err := w.host.RemoveMaintenance(t.Context(), root, "cooling", 0); err != nil {
			t.Error(err)
		}
		if a := ask("again", first.Add(3*hours), hours); a.Reservation.State != service.Confirmed {
			t.Errorf("called off: %+v", a.Reservation)
		}
		w.pass(10)
		var kinds []string
		list, _, _, err := w.host.Audit(t.Context(), root.By, service.AuditFilter{ID: "cooling", Limit: 10})
		for i := range list {
			kinds = append(kinds, string(list[i].Kind)+" "+list[i].By.User)
		}
		if want := []string{"add_maintenance root", "change_maintenance root", "remove_maintenance root"}; err != nil || !slices.Equal(kinds, want) {
			t.Errorf("audit: %q, %v", kinds, err)
		}
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
	})
}

// Maintenance that is asked for before a site has been looked at counts at once, and is forgotten at once when it is called off.
func TestMaintenanceBeforeTheFirstLook(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		if err := w.host.Close(); err != nil {
			t.Fatal(err)
		}
		w.site.Inject(fake.Fault{Op: fake.Observe, Nth: 1, What: fake.Down})
		w.open()
		if v := w.view(); v.Reachable {
			t.Fatalf("it was looked at: %+v", v)
		}
		start := w.now().Add(3600)
		m := service.Maintenance{Name: "disks", Site: "harbour", Times: []berth.Interval{{Start: start, End: start.Add(3600)}}}
		ask := func(id string, want service.State) {
			t.Helper()
			if a := submit(t, w.host, ann, berth.Rigid(id, w.now(), start, start.Add(900), 1, 600)); a.Reservation.State != want {
				t.Errorf("%s is %s, want %s", id, a.Reservation.State, want)
			}
		}
		if _, _, err := w.host.AddMaintenance(t.Context(), root, m, false); err != nil {
			t.Fatal(err)
		}
		ask("within", service.Refused)
		if err := w.host.RemoveMaintenance(t.Context(), root, "disks", 0); err != nil {
			t.Fatal(err)
		}
		ask("called off", service.Confirmed)
		m.Name, m.Times[0] = "cooling", berth.Interval{Start: start.Add(3600), End: start.Add(7200)}
		if _, _, err := w.host.AddMaintenance(t.Context(), root, m, false); err != nil {
			t.Fatal(err)
		}
		w.pass(60)
		if v := w.view(); !v.Reachable {
			t.Errorf("it was not looked at: %+v", v)
		}
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
	})
}

// What runs when maintenance of some nodes begins gets others, and its owner is told that it moved, for it never lacked a PE; what is asked for meanwhile is promised beside it.
func TestMaintenanceOfSomeNodes(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		start := w.now().Add(600)
		told := &post{}
		w.host.SendNotices(told)
		if _, err := w.host.AddHook(t.Context(), ann, service.Hook{ID: "h", Form: service.WebhookForm, Kinds: []notice.Kind{notice.Moved, notice.Degraded, notice.Whole}}); err != nil {
			t.Fatal(err)
		}
		if a := submit(t, w.host, ann, berth.Rigid("runs", 0, w.now(), w.now().Add(3600), 1, 3600)); a.Reservation.State != service.Confirmed {
			t.Fatalf("%+v", a.Reservation)
		}
		w.pass(10)
		nodes := slices.Concat(w.get("runs").Nodes...)
		m := service.Maintenance{Name: "disks", Site: "harbour", Nodes: nodes, Times: []berth.Interval{{Start: start, End: start.Add(600)}}}
		if _, way, err := w.host.AddMaintenance(t.Context(), root, m, false); err != nil || !slices.Equal(way, []string{"runs"}) {
			t.Errorf("in its way are %q, %v", way, err)
		}
		drawn := func(want service.Flags) {
			t.Helper()
			picture, err := w.host.Gantt(t.Context(), root.By, w.pool())
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for _, b := range slices.Concat(picture.Pages...) {
				if b.Class != service.ClassOutage {
					continue
				}
				if n++; b.Flags&service.IsAnnounced != want {
					t.Errorf("the outage is drawn with the flags %b; want %b of IsAnnounced", b.Flags, want)
				}
			}
			if n != len(nodes) {
				t.Errorf("%d bars of outages, of %d nodes", n, len(nodes))
			}
		}
		drawn(service.IsAnnounced)
		w.pass(700)
		drawn(0)
		if a := submit(t, w.host, bob, berth.Rigid("beside", 0, w.now(), w.now().Add(60), 1, 60)); a.Reservation.State != service.Confirmed && a.Reservation.State != service.Active {
			t.Errorf("beside it: %+v", a.Reservation)
		} else if node := slices.Concat(a.Reservation.Nodes...); len(node) > 0 && slices.Contains(nodes, node[0]) {
			t.Errorf("beside it on %q, which is of it", node)
		}
		if r := w.get("runs"); slices.ContainsFunc(slices.Concat(r.Nodes...), func(n string) bool { return slices.Contains(nodes, n) }) {
			t.Errorf("what runs has %q still, of %q", r.Nodes, nodes)
		}
		if got := told.take(); !slices.Equal(got, []string{"h moved runs active"}) {
			t.Errorf("its owner is told %q", got)
		}
		w.pass(700)
		if list, err := w.host.ListMaintenance(t.Context(), ann.By); err != nil || len(list) > 0 {
			t.Errorf("when it is over: %+v, %v", list, err)
		}
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
	})
}

func stamp(at berth.Time) string { return time.Unix(int64(at), 0).UTC().Format(time.RFC3339) }

// Maintenance wants a site with an adapter, and says so where there is one without.
func TestMaintenanceWithoutAnAdapter(t *testing.T) {
	var c clock
	c.seconds.Store(1_800_000_000)
	h := start(t, t.TempDir(), onePool(4), &c)
	m := service.Maintenance{Name: "m", Site: "site", Times: []berth.Interval{{Start: 1_800_000_100, End: 1_800_000_200}}}
	if _, _, err := h.AddMaintenance(t.Context(), root, m, false); codeOf(err) != berth.Conflict || !strings.Contains(err.Error(), `"site" has no adapter`) {
		t.Errorf("a site without an adapter: %v", err)
	}
	m.Site = "other"
	if _, _, err := h.AddMaintenance(t.Context(), root, m, false); codeOf(err) != berth.NotFound || !strings.Contains(err.Error(), `no managed site "other"`) {
		t.Errorf("no site: %v", err)
	}
}

// Who may not, and what cannot be, is refused with what would be right, and nothing is changed.
func TestMaintenanceThatIsWrong(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		now := w.now()
		good := service.Maintenance{Name: "good", Site: "harbour", Nodes: []string{"n1"}, Times: []berth.Interval{{Start: now + 100, End: now + 200}}}
		if _, _, err := w.host.AddMaintenance(t.Context(), root, good, false); err != nil {
			t.Fatal(err)
		}
		elsewhere := service.Ask{By: service.Principal{User: "olga", Role: service.Operator, Sites: service.NewSiteSet([]string{"elsewhere"})}}
		for _, c := range []struct {
			name, words string
			by          service.Ask
			code        berth.Code
			change      func(m *service.Maintenance)
		}{
			{"a user", "only an operator", ann, berth.Denied, func(*service.Maintenance) {}},
			{"an operator of another site", "no managed site", elsewhere, berth.NotFound, func(*service.Maintenance) {}},
			{"no such site", `no managed site "x"`, root, berth.NotFound, func(m *service.Maintenance) { m.Site = "x" }},
			{"no such node", `no node "n99"`, root, berth.NotFound, func(m *service.Maintenance) { m.Nodes = []string{"n99"} }},
			{"a bad name", "letters, digits", root, berth.Invalid, func(m *service.Maintenance) { m.Name = "a b" }},
			{"the name of another", "choose another name", root, berth.Conflict, func(m *service.Maintenance) { m.Name, m.Nodes = "good", nil }},
			{"no times", "want when it begins", root, berth.Invalid, func(m *service.Maintenance) { m.Times = nil }},
			{"over", stamp(now-10) + "; it is over by then, want an end after now, " + stamp(now), root, berth.Invalid, func(m *service.Maintenance) { m.Times = []berth.Interval{{Start: now - 20, End: now - 10}} }},
			{"no time at all", fmt.Sprintf("%s; must be after the start, %[1]s, and", stamp(now+20)), root, berth.Invalid, func(m *service.Maintenance) { m.Times = []berth.Interval{{Start: now + 20, End: now + 20}} }},
			{"beyond time", "before 2^42", root, berth.Invalid, func(m *service.Maintenance) { m.Times = []berth.Interval{{Start: now + 20, End: berth.Forever}} }},
			{"one within another", fmt.Sprintf("ends at %s, after the next has begun, at %s;", stamp(now+60), stamp(now+50)), root, berth.Invalid, func(m *service.Maintenance) {
				m.Times = []berth.Interval{{Start: now + 20, End: now + 60}, {Start: now + 50, End: now + 70}}
			}},
			{"too many times", "want at most 1000", root, berth.Invalid, func(m *service.Maintenance) { m.Times = make([]berth.Interval, 1001) }},
			{"a long reason", "want at most 200", root, berth.Invalid, func(m *service.Maintenance) { m.Reason = strings.Repeat("x", 201) }},
		} {
			m := good
			m.Name = "other"
			c.change(&m)
			if _, _, err := w.host.AddMaintenance(t.Context(), c.by, m, false); codeOf(err) != c.code || !strings.Contains(fmt.Sprint(err), c.words) {
				t.Errorf("%s: %v; want %s, %q", c.name, err, c.code, c.words)
			}
		}
		for _, c := range []struct {
			by   service.Ask
			name string
			only berth.Time
			code berth.Code
		}{{ann, "good", 0, berth.Denied}, {elsewhere, "good", 0, berth.NotFound}, {root, "x", 0, berth.NotFound}, {root, "good", now + 101, berth.NotFound}} {
			if err := w.host.RemoveMaintenance(t.Context(), c.by, c.name, c.only); codeOf(err) != c.code {
				t.Errorf("removed by %s: %v; want %s", c.by.By.User, err, c.code)
			} else if c.only != 0 && !strings.Contains(err.Error(), "does not begin at "+stamp(c.only)+";") {
				t.Error(err)
			}
		}
		full := good
		for n := range berth.Time(1000) {
			full.Times = append(full.Times, berth.Interval{Start: now + 1_000_000 + 20*n, End: now + 1_000_010 + 20*n})
		}
		full.Times = full.Times[1:]
		added := 0
		for ; added < 100; added++ {
			full.Name = fmt.Sprint("full-", added)
			if _, _, err := w.host.AddMaintenance(t.Context(), root, full, false); err != nil {
				if codeOf(err) != berth.Conflict || !strings.Contains(err.Error(), "256 with 2000 times together") {
					t.Error(err)
				}
				break
			}
		}
		if added != 1 { // there is one time beside
			t.Errorf("%d of 1,000 times are taken", added)
		}
		for n := range added {
			if err := w.host.RemoveMaintenance(t.Context(), root, fmt.Sprint("full-", n), 0); err != nil {
				t.Error(err)
			}
		}
		if list, err := w.host.ListMaintenance(t.Context(), root.By); err != nil || len(list) != 1 || list[0].Name != "good" {
			t.Errorf("%+v, %v", list, err)
		}
		if list, err := w.host.ListMaintenance(t.Context(), elsewhere.By); err != nil || len(list) > 0 {
			t.Errorf("for an operator of another site: %+v, %v", list, err)
		}
	})
}

// What is far ahead is known at once to all that is decided and offered, and the name of what is over is free.
func TestMaintenanceFarAhead(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		const day, hour = 86_400, 3600
		w.pass(10)
		now := w.now()
		short := service.Maintenance{Name: "cooling", Site: "harbour", Times: []berth.Interval{{Start: now + 100, End: now + 200}}}
		if _, _, err := w.host.AddMaintenance(t.Context(), root, short, false); err != nil {
			t.Fatal(err)
		}
		w.pass(300)
		at := w.now() + 60*day
		submit(t, w.host, ann, berth.Rigid("r", 0, at, at+3*day, 4, hour))
		far := service.Maintenance{Name: "cooling", Site: "harbour", Times: []berth.Interval{{Start: at, End: at + day}}}
		_, way, err := w.host.AddMaintenance(t.Context(), root, far, false)
		if r := w.get("r"); err != nil || !slices.Equal(way, []string{"r"}) || r.Allotments[0].Start < at+day || r.State != service.Confirmed {
			t.Errorf("in its way are %q, %v; the promise is %+v", way, err, r)
		}
		offers, err := w.host.Offers(t.Context(), bob, berth.Rigid("", 0, at, at+2*day, 4, hour), 5)
		if err != nil || len(offers) == 0 {
			t.Errorf("%d offers, %v", len(offers), err)
		}
		for _, o := range offers {
			if a := o.Allotments[0]; a.Start < at+day && a.End > at {
				t.Errorf("offered within it: %+v", a)
			}
		}
		again := far
		again.Times = []berth.Interval{{Start: at, End: at + hour}}
		if _, _, err := w.host.AddMaintenance(t.Context(), root, again, false); codeOf(err) != berth.Conflict {
			t.Errorf("the name of what is to come is free: %v", err)
		}
	})
}

// A workflow that is held while maintenance leaves its tasks too little room shows what they lack, until it has that again. What is
// answered about it under a key does not say so, and is the same when it is asked again.
func TestHeldWorkflowsShowWhatTheyLack(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.pass(6)
		f := oneTask("w")
		f.Deadline, f.Hold = w.now().Add(1001), 900
		f.Tasks[0].Few, f.Tasks[0].Most, f.Tasks[0].Work = 3, 3, berth.Work{}
		if a, err := w.host.SubmitWorkflow(t.Context(), ann, f); err != nil || a.Workflow.State != service.FlowHeld || a.Workflow.Tasks[0].Missing != 0 {
			t.Fatalf("%+v, %v", a.Workflow, err)
		}
		missing := func(state service.FlowState, want berth.Count) {
			t.Helper()
			if v, err := w.host.Workflow(t.Context(), ann.By, "w"); err != nil || v.State != state || v.Tasks[0].Missing != want {
				t.Errorf("it is %s and lacks %d PEs, %v; want it %s, without %d", v.State, v.Tasks[0].Missing, err, state, want)
			}
		}
		m := service.Maintenance{Name: "pumps", Site: "harbour", Nodes: []string{"n1", "n2"}, Times: []berth.Interval{{Start: w.now().Add(100), End: w.now().Add(900)}}}
		if _, _, err := w.host.AddMaintenance(t.Context(), root, m, false); err != nil {
			t.Fatal(err)
		}
		missing(service.FlowHeld, 1)
		keyed := ann
		keyed.Key = "confirm"
		first, err := w.host.ConfirmWorkflow(t.Context(), keyed, "w")
		if err != nil {
			t.Fatal(err)
		}
		if again, err := w.host.ConfirmWorkflow(t.Context(), keyed, "w"); err != nil || !reflect.DeepEqual(again, first) {
			t.Errorf("it was answered with %+v, and with %+v again, %v", first.Workflow.Tasks, again.Workflow.Tasks, err)
		}
		missing(service.FlowRunning, 1)
		if err := w.host.RemoveMaintenance(t.Context(), root, "pumps", 0); err != nil {
			t.Fatal(err)
		}
		w.pass(2)
		missing(service.FlowRunning, 0)
	})
}
