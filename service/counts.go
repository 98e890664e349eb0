package service

import (
	"context"
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// counts is what the host counts for its metrics.
type counts struct {
	decisions *prometheus.CounterVec // by decision and reason
	changes   *prometheus.CounterVec // by kind
	delay     prometheus.Histogram   // of starts
	idle      *prometheus.CounterVec // by site
	surprise  prometheus.Histogram   // of forecasts
	workflows *prometheus.CounterVec // that are over, by state and deadline
	estimates prometheus.Histogram   // of tasks of workflows
}

func newCounts() counts {
	return counts{
		estimates: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "berth_task_time_ratio", Help: "How long tasks of workflows that succeeded took, as a part of the time that was planned.",
			Buckets: []float64{.1, .25, .5, .75, .9, 1, 1.1, 1.25, 1.5, 2},
		}),
		workflows: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_workflows_total", Help: "Workflows that are over, by state, and by whether they kept their deadline; none of those without one, and of those refused, expired or cancelled.",
		}, []string{"state", "deadline"}),
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_decisions_total", Help: "Requests decided, by decision and reason of the refusal.",
		}, []string{"decision", "reason"}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_changes_total", Help: "What happened to requests and reservations, by kind.",
		}, []string{"kind"}),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "berth_start_delay_seconds", Help: "Seconds from the promised start of a reservation to its start.",
			Buckets: []float64{0, 1, 2, 5, 10, 30, 60, 300, 1800},
		}),
		surprise: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "berth_forecast_error_seconds", Help: "By how many seconds the expected arrival of data changed with a newer forecast, earlier or later.",
			Buckets: []float64{0, 1, 10, 60, 300, 1800, 7200, 43200},
		}),
		idle: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_reserved_idle_pe_seconds_total", Help: "PE-seconds of reservations that had started and in which nothing ran, at managed sites.",
		}, []string{"site"}),
	}
}

func (c *counts) add(list []news) {
	for i := 0; i < len(list); {
		n, alike := &list[i], 1 // thousands at once for a large workflow
		for i++; i < len(list) && change.Kind(n.what) == change.Accepted && list[i].what == n.what; i++ {
			alike++
		}
		c.changes.WithLabelValues(n.what).Add(float64(alike))
		switch change.Kind(n.what) {
		case change.Accepted:
			c.decisions.WithLabelValues("accepted", "").Add(float64(alike))
		case change.Refused:
			reason := ""
			if n.card.refusal != nil {
				reason = string(n.card.refusal.Reason)
			}
			c.decisions.WithLabelValues("refused", reason).Inc()
		case change.Staged:
			c.surprise.Observe(math.Abs(float64(n.later)))
		case change.Started:
			if p := n.card.promise; p != nil && len(p.Allotments) > 0 {
				c.delay.Observe(float64(n.at - p.Allotments[0].Start))
			}
		}
	}
}

// addFlows counts what happened to workflows.
func (c *counts) addFlows(list []news) {
	for i := range list {
		n := &list[i]
		c.changes.WithLabelValues(n.what).Inc()
		if f := n.flow; f.Task == "" && f.State.Over() {
			met := "none"
			switch {
			case f.Deadline == berth.Forever, f.State == FlowRefused, f.State == FlowExpired, f.State == FlowCancelled:
			case f.State == FlowSucceeded && f.End <= f.Deadline:
				met = "kept"
			default:
				met = "missed"
			}
			c.workflows.WithLabelValues(string(f.State), met).Inc()
		} else if f.Outcome == berth.Succeeded && f.Estimate > 0 {
			c.estimates.Observe(float64(f.Took) / float64(f.Estimate))
		}
	}
}

// Register makes what the host counts known to a registry.
func (h *Host) Register(registry prometheus.Registerer) error {
	for _, collector := range []prometheus.Collector{h.counts.decisions, h.counts.changes, h.counts.delay, h.counts.idle, h.counts.surprise, h.counts.workflows, h.counts.estimates, &gauges{host: h}} {
		if err := registry.Register(collector); err != nil {
			return err
		}
	}
	return nil
}

// gauges asks the loop for what is so at the moment.
type gauges struct{ host *Host }

var (
	liveDesc     = prometheus.NewDesc("berth_reservations", "Live requests and reservations, by state.", []string{"state"}, nil)
	flowsDesc    = prometheus.NewDesc("berth_workflows", "Live workflows, by state.", []string{"state"}, nil)
	peDesc       = prometheus.NewDesc("berth_pes", "PEs of a pool.", []string{"site", "pool"}, nil)
	freeDesc     = prometheus.NewDesc("berth_pes_free", "PEs of a pool that are neither promised nor out of use now.", []string{"site", "pool"}, nil)
	idleDesc     = prometheus.NewDesc("berth_reserved_unused_pes", "PEs of reservations that have started and are not in use yet.", nil, nil)
	siteSkewDesc = prometheus.NewDesc("berth_site_clock_skew_seconds", "Seconds by which the clock of a managed site is ahead of this machine's.", []string{"site"}, nil)
	skewDesc     = prometheus.NewDesc("berth_clock_skew_seconds", "Seconds by which the machine's clock is off; 0 if it is believed.", nil, nil)
	upDesc       = prometheus.NewDesc("berth_site_reachable", "1 if the last look at a managed site succeeded.", []string{"site"}, nil)
	gapDesc      = prometheus.NewDesc("berth_site_drift", "Reservations at a managed site that are not as promised and could not be put right.", []string{"site"}, nil)
)

// Describe implements prometheus.Collector.
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{liveDesc, flowsDesc, peDesc, freeDesc, idleDesc, skewDesc, siteSkewDesc, upDesc, gapDesc, shadowDesc, waitDesc, openDesc} {
		out <- d
	}
}

// standing is what gauges ask for.
type standing struct {
	states map[State]int
	loads  []engine.Load
	unused berth.Count

	shadows map[string]*standingShadow // by site
}

// Collect implements prometheus.Collector. A fault in it fails the scrape, as one of any
// call over HTTP does. It is caught here, in the registry's goroutine, because the registry
// would tell it to the one who scrapes and to no one else.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	h := g.host
	err := caught(h.durable.reached(), "counting", func() error {
		g.collect(out)
		return nil
	})
	if f := faultOf(err); f != nil {
		f.At = h.Now()
		f.keep(&h.options)
		out <- prometheus.NewInvalidMetric(liveDesc, f)
	}
}

func (g *gauges) collect(out chan<- prometheus.Metric) {
	s := standing{states: map[State]int{}, shadows: map[string]*standingShadow{}}
	m := g.host.display.look()
	flows := map[FlowState]int{}
	m.flows.Scan(func(f *flowCard) bool {
		if f.outcome == "" {
			flows[f.state(m.card)]++
		}
		return true
	})
	for _, state := range []FlowState{FlowHeld, FlowPromised, FlowRunning} {
		out <- prometheus.MustNewConstMetric(flowsDesc, prometheus.GaugeValue, float64(flows[state]), string(state))
	}
	m.cards.Scan(func(k *card) bool {
		if k.end != "" || g.host.shadowed(k.request) {
			return true
		}
		state := Pending
		if k.promise != nil {
			state = State(k.promise.State)
			if state == Active && !k.promise.CheckedIn && k.request.NoShow > 0 {
				for i := range k.promise.Allotments {
					s.unused += k.promise.Allotments[i].NPE
				}
			}
			if state == Active && k.promise.Missing > 0 {
				state = Degraded
			}
		}
		s.states[state]++
		return true
	})
	// While the service takes nothing, what the loop alone knows is left out.
	_, _ = call(context.Background(), g.host, "", func(answer func(struct{}, error)) {
		s.loads = g.host.core.engine.Loads()
		for name, w := range g.host.core.shadows {
			open, _ := w.open(g.host.clock())
			s.shadows[name] = &standingShadow{w.figures(), open}
		}
		answer(struct{}{}, nil)
	})
	for _, state := range []State{Pending, Held, Confirmed, Degraded, Active} {
		out <- prometheus.MustNewConstMetric(liveDesc, prometheus.GaugeValue, float64(s.states[state]), string(state))
	}
	for _, l := range s.loads {
		out <- prometheus.MustNewConstMetric(peDesc, prometheus.GaugeValue, float64(l.PEs), l.Resource.Site, l.Resource.Name)
		out <- prometheus.MustNewConstMetric(freeDesc, prometheus.GaugeValue, float64(l.Free), l.Resource.Site, l.Resource.Name)
	}
	out <- prometheus.MustNewConstMetric(idleDesc, prometheus.GaugeValue, float64(s.unused))
	out <- prometheus.MustNewConstMetric(skewDesc, prometheus.GaugeValue, g.host.timekeeper.skew().Seconds())
	for name, k := range g.host.sites {
		view, up := k.look(), 0.0
		if view.Reachable {
			up = 1
		}
		out <- prometheus.MustNewConstMetric(upDesc, prometheus.GaugeValue, up, name)
		out <- prometheus.MustNewConstMetric(siteSkewDesc, prometheus.GaugeValue, float64(view.Skew), name)
		out <- prometheus.MustNewConstMetric(gapDesc, prometheus.GaugeValue, float64(len(view.Drift)), name)
	}
	for name, w := range s.shadows {
		shadowMetrics(out, name, w)
	}
}
