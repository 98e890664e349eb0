package api

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berth-hpc/berth/api/identity"
)

// counts is what the API says about itself.
type counts struct {
	seconds *prometheus.HistogramVec // by endpoint
	answers *prometheus.CounterVec   // by endpoint and status
	streams prometheus.Gauge
}

func newCounts(registry prometheus.Registerer) counts {
	c := counts{
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "berth_api_request_seconds", Help: "Seconds until a request was answered, by endpoint.",
			Buckets: []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 10},
		}, []string{"endpoint"}),
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "berth_api_requests_total", Help: "Requests answered, by endpoint and status.",
		}, []string{"endpoint", "status"}),
		streams: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "berth_api_event_streams", Help: "Clients that listen to events now.",
		}),
	}
	registry.MustRegister(c.seconds, c.answers, c.streams)
	return c
}

// reachable tells whether the OpenID provider has answered.
func reachable(p *identity.Provider) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "berth_oidc_reachable", Help: "1 if the OpenID provider answered when it was asked last, else 0.",
	}, func() float64 {
		if p.Reachable() != nil {
			return 0
		}
		return 1
	})
}

// of returns what counts the answers of one endpoint.
func (c *counts) of(e *endpoint) func(status int, took time.Duration) {
	seconds := c.seconds.WithLabelValues(e.id)
	var byStatus sync.Map
	return func(status int, took time.Duration) {
		answers, known := byStatus.Load(status)
		if !known {
			answers, _ = byStatus.LoadOrStore(status, c.answers.WithLabelValues(e.id, strconv.Itoa(status)))
		}
		answers.(prometheus.Counter).Inc()
		if !e.stream {
			seconds.Observe(took.Seconds())
		}
	}
}
