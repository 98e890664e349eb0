package service

import (
	"context"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/berth-hpc/berth"
)

// Score is how the promises that Berth would have given at a site that is only
// watched compare with what happened there.
type Score struct {
	Site  string
	Since berth.Time // when the watch began
	// As in SiteView.
	Reachable bool
	Trouble   string
	Looked    berth.Time // SiteView.Seen
	// Tolerance is up to which difference two starts are the same.
	Tolerance berth.Duration
	Figures
	// Open are promised and wait at the site still, Overdue those of them that the
	// first promise would have had running for longer than the tolerance.
	Open    int
	Overdue int
	// Waits of the jobs compared. Half of them, and 95 of 100, are taken from the
	// latest 10,000.
	PromisedWaits Spread
	ActualWaits   Spread
	// Jobs are the latest, those asked last first.
	Jobs []ShadowJob
}

// Score returns the score of a site that is only watched, with up to most of
// its jobs. Errors: Denied unless by an operator, NotFound if no such site is
// watched. Cost: O(n log n) for the jobs followed and the latest 10,000.
func (h *Host) Score(ctx context.Context, by Principal, siteName string, most int) (Score, error) {
	if !by.Can(Operator) {
		return Score{}, berth.Errorf(berth.Denied, "role", "only an operator sees how a site that is watched compares; ask with an operator's token")
	}
	k := h.sites[siteName]
	if k == nil || !by.Sites.Has(siteName) || !k.manager.Shadow {
		return Score{}, berth.Errorf(berth.NotFound, "site", "no site %q that is only watched; berth serve --shadow watches one", siteName)
	}
	return call(ctx, h, by.User, func(answer func(Score, error)) {
		view := k.look()
		s := Score{
			Site: siteName, Reachable: view.Reachable, Trouble: view.Trouble, Looked: view.Seen,
			Tolerance: ShadowTolerance, Figures: newFigures(),
		}
		if w := h.core.shadows[siteName]; w != nil {
			s.Since, s.Figures, s.Jobs = w.since, w.figures(), w.latest(max(0, most))
			s.PromisedWaits, s.ActualWaits = w.spreads(&s.Figures)
			s.Open, s.Overdue = w.open(h.clock())
		}
		h.whenDurable(func(err error) { answer(s, err) })
	})
}

// open returns how many are promised and wait still, and how many of them would
// have run.
func (w *shadow) open(now berth.Time) (open, overdue int) {
	for _, j := range w.jobs {
		if j.Phase == JobWaits && j.Promised != 0 {
			open++
			if j.Promised.Add(ShadowTolerance) < now {
				overdue++
			}
		}
	}
	return open, overdue
}

// shadowed reports whether what is on a card is only what would have been
// promised. It is not shown as a reservation.
func (h *Host) shadowed(r *berth.Request) bool {
	k := h.sites[r.Site]
	return k != nil && k.manager.Shadow
}

// bookable returns why a request cannot be asked for: nothing can be had at a
// site that is only watched, or that has reservations of another service.
func (h *Host) bookable(r *berth.Request) error {
	for _, name := range slices.Sorted(maps.Keys(h.sites)) { // the same one is told of each time
		k := h.sites[name]
		if err := k.servable(); err != nil && (r.Site == name || r.Site == "") {
			return err
		}
		switch {
		case !k.manager.Shadow:
		case r.Site == name:
			return berth.Errorf(berth.Conflict, "site", "%q is only watched: nothing can be promised there", name)
		case r.Site == "":
			return berth.Errorf(berth.Conflict, "site", "none is named, and %q is only watched: nothing can be promised there; name another site", name)
		}
	}
	return nil
}

// checkShadows returns an error if what was promised and what would have been
// would come together: a site is watched in one life of the service and served
// in another.
func (h *Host) checkShadows() error {
	for name := range h.core.shadows {
		if !h.options.Managers[name].Shadow {
			return berth.Errorf(berth.Conflict, "data", "the journal is that of a watch of %q, and none of its promises was one; serve the site from another folder, or watch it again", name)
		}
	}
	for name, m := range h.options.Managers {
		if !m.Shadow || h.core.shadows[name] != nil {
			continue
		}
		for r := range h.core.engine.Due(name, berth.Forever) {
			return berth.Errorf(berth.Conflict, "data", "the journal has promises at %q, such as %q; watch the site from another folder", name, r.Request.ID)
		}
	}
	return nil
}

// public returns the news that are told: those of reservations that are.
func (h *Host) public(list []news) []news {
	if len(h.core.shadows) == 0 {
		return list
	}
	return slices.DeleteFunc(list, func(n news) bool { return h.shadowed(n.card.request) })
}

var (
	shadowDesc = prometheus.NewDesc("berth_shadow_jobs_total", "Jobs of a site that is only watched, by what became of them.", []string{"site", "what"}, nil)
	waitDesc   = prometheus.NewDesc("berth_shadow_wait_seconds_total", "Seconds that the jobs compared waited, by the promise or for real.", []string{"site", "kind"}, nil)
	openDesc   = prometheus.NewDesc("berth_shadow_jobs_open", "Jobs that are promised and wait at the site still.", []string{"site"}, nil)
)

// standingShadow is what gauges ask for of a site that is only watched.
type standingShadow struct {
	Figures
	open int
}

// shadowMetrics hands out the figures of a site.
func shadowMetrics(out chan<- prometheus.Metric, name string, s *standingShadow) {
	refused, left := 0, 0
	for _, n := range s.Refused {
		refused += n
	}
	for _, n := range s.LeftOut {
		left += n
	}
	for _, c := range []struct {
		what string
		n    int
	}{
		{"seen", s.Seen},
		{"left_out", left},
		{"promised", s.Promised},
		{"refused", refused},
		{"moved", s.Moved},
		{"broken", s.Broken},
		{"compared", s.Compared},
		{"earlier", s.Earlier},
		{"later", s.Later},
	} {
		out <- prometheus.MustNewConstMetric(shadowDesc, prometheus.CounterValue, float64(c.n), name, c.what)
	}
	out <- prometheus.MustNewConstMetric(waitDesc, prometheus.CounterValue, float64(s.PromisedWait), name, "promised")
	out <- prometheus.MustNewConstMetric(waitDesc, prometheus.CounterValue, float64(s.ActualWait), name, "actual")
	out <- prometheus.MustNewConstMetric(openDesc, prometheus.GaugeValue, float64(s.open), name)
}
