package service_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

// with has the next service know these nodes of the site, in the order that the
// site gives them.
func (w *harbour) with(known *site.Description, nodes ...string) *site.Description {
	w.t.Helper()
	now := fake.Nodes(4, 4)
	now.Nodes = nil
	all := fake.Nodes(4, 4)
	for _, name := range nodes {
		now.Nodes = append(now.Nodes, all.Nodes[name[1]-'1'])
	}
	d := &now
	if known != nil {
		d, _ = now.After(known)
	}
	s, layout, err := site.Import("harbour", d, site.UnitNode, berth.Early)
	if err != nil {
		w.t.Fatal(err)
	}
	w.options.Config = engine.Config{Sites: []berth.Site{s}}
	manager := w.options.Managers["harbour"]
	manager.Layout = layout
	w.options.Managers = map[string]service.Manager{"harbour": manager}
	return d
}

func (w *harbour) restart() {
	w.t.Helper()
	if err := w.host.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.open()
	w.pass(20)
}

// A site that has got a node in the middle of the others and lost another one
// between two lives of the service: promises stay on their nodes, and those of the
// lost node are made on another.
func TestPromisesSurviveAChangeOfTheSite(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		known := w.with(nil, "n1", "n3", "n4")
		w.restart()
		w.reserve("a", 1, 100, 3000)
		w.reserve("b", 2, 100, 3000)
		w.pass(10)
		if a, b := w.nodes("a"), w.nodes("b"); a != "n1" || b != "n3,n4" {
			t.Fatalf("a is on %s, b on %s", a, b)
		}
		known = w.with(known, "n1", "n2", "n3")
		w.restart()
		if a, b := w.nodes("a"), w.nodes("b"); a != "n1" || b != "n3,n2" {
			t.Errorf("a is on %s, b on %s", a, b)
		}
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
		if r := w.reserve("late", 3, 5000, 100); strings.Contains(r.Allotments[0].PEs.String(), "2") {
			t.Errorf("it is on PEs %v", r.Allotments[0].PEs)
		}
		w.with(known, "n1", "n2", "n3", "n4")
		w.restart()
		w.reserve("all", 4, 6000, 100)
		w.pass(20)
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
	})
}

// A configuration without the pool of a promise is refused, with what can be done,
// and the promise is there for the one before.
func TestConfigurationWithoutAPlaceForAPromise(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.reserve("a", 1, 100, 3000)
		if err := w.host.Close(); err != nil {
			t.Fatal(err)
		}
		before := w.options
		w.options.Config = engine.Config{Sites: []berth.Site{{Name: "other", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Early}}}}}
		w.options.Managers = nil
		_, err := service.Open(t.Context(), w.options)
		var wrong *berth.Error
		if !errors.As(err, &wrong) || wrong.Code != berth.Invalid || wrong.Field != "configuration" ||
			!strings.Contains(wrong.Msg, `reservation "a" is on`) || !strings.Contains(wrong.Msg, "berth list --site") {
			t.Fatal(err)
		}
		w.options = before
		w.open()
		w.pass(20)
		if w.get("a").State != service.Confirmed {
			t.Errorf("a is %s", w.get("a").State)
		}
	})
}

// What is counted as idle is what has started and is not used: not what runs, not
// what is to come, and not an unknown time.
func TestIdleReservationsAreCounted(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		registry := prometheus.NewRegistry()
		if err := w.host.Register(registry); err != nil {
			t.Fatal(err)
		}
		idle := func() float64 {
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				if f.GetName() == "berth_reserved_idle_pe_seconds_total" {
					return f.GetMetric()[0].GetCounter().GetValue()
				}
			}
			return 0
		}
		near := func(want float64) {
			t.Helper()
			if got := idle(); math.Abs(got-want) > 30 { // a look of three nodes, and one to begin with
				t.Errorf("%.0f PE-seconds, want about %.0f", got, want)
			}
		}
		w.reserve("used", 1, 50, 10_000)
		w.reserve("idle", 3, 50, 10_000)
		w.pass(45)
		near(0)
		w.pass(10)
		w.run("used")
		before := idle()
		w.pass(100)
		near(before + 300)
		before = idle()
		w.site.Inject(fake.Fault{Op: fake.Observe, What: fake.Down})
		w.pass(1000)
		near(before)
		w.site.Heal()
		w.pass(100)
		if got := idle() - before; got > 300 {
			t.Errorf("%.0f PE-seconds, of an unknown time", got)
		}
		before = idle()
		w.pass(100)
		near(before + 300)
	})
}
