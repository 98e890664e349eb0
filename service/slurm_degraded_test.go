package service_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berth-hpc/berth/service"
)

// standing returns how many reservations are collected as being in a state.
func (l *lab) standing(registry *prometheus.Registry, state service.State) float64 {
	l.t.Helper()
	families, err := registry.Gather()
	if err != nil {
		l.t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "berth_reservations" && m.GetLabel()[0].GetValue() == string(state) {
				return m.GetGauge().GetValue()
			}
		}
	}
	l.t.Fatalf("%s is not collected", state)
	return 0
}

// A reservation that runs and has lost a node is found and counted as degraded, until it
// has another one.
func TestRunningReservationThatLostANodeIsDegraded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLab(t, false)
	registry := prometheus.NewRegistry()
	if err := l.host.Register(registry); err != nil {
		t.Fatal(err)
	}
	l.reserve("a", 4, 2, 600)
	l.until("a starts", func() bool { return l.get("a").State == service.Active })
	l.made("a")
	degraded := func() (listed int, counted float64) {
		list, _, err := l.host.List(t.Context(), l.by.By, service.Filter{States: []service.State{service.Degraded}})
		if err != nil {
			t.Fatal(err)
		}
		return len(list), l.standing(registry, service.Degraded)
	}
	if listed, counted := degraded(); listed != 0 || counted != 0 {
		t.Errorf("%d listed and %g counted while it is whole", listed, counted)
	}
	l.administer("update", "NodeName=n3", "State=DOWN", "Reason=disk")
	l.until("a lacks a node", func() bool { return l.get("a").Missing == 1 })
	if listed, counted := degraded(); listed != 1 || counted != 1 || l.standing(registry, service.Active) != 0 {
		t.Errorf("%d listed and %g counted, want one", listed, counted)
	}
	if at := l.get("a"); at.State != service.Active {
		t.Errorf("it is %s, want it active", at.State)
	}
	l.administer("update", "NodeName=n3", "State=RESUME")
	l.until("a is whole", func() bool { return l.get("a").Missing == 0 })
	if listed, counted := degraded(); listed != 0 || counted != 0 {
		t.Errorf("%d listed and %g counted when it is whole again", listed, counted)
	}
}
