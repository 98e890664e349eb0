package engine_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// drawPrices draws prices of places and of a QOS, at most one of each.
func drawPrices(t *rapid.T) (prices policy.Prices) {
	if rapid.IntRange(0, 7).Draw(t, "no prices") == 0 {
		return nil
	}
	for _, of := range []policy.Price{{Site: "s0"}, {Site: "s1"}, {Partition: "gpu"}, {Site: "s0", Partition: "gpu"}, {QOS: "high"}} {
		if rapid.Bool().Draw(t, "priced") {
			of.Factor = rapid.Int64Range(1, 4000).Draw(t, "factor")
			prices = append(prices, of)
		}
	}
	return prices
}

// price returns what some PE-seconds of a reservation in a pool are charged as, by the rule of the documents.
func (w *limited) price(r *berth.Reservation, pool berth.ResourceID, area int64) int64 {
	return priceBy(w.config.Prices, w.partition(r, pool), r, pool, area)
}

// priceBy is price by a table and through a partition, or none.
func priceBy(prices policy.Prices, name string, r *berth.Reservation, pool berth.ResourceID, area int64) int64 {
	factors := map[policy.Price]int64{}
	for _, row := range prices {
		of := row
		of.Factor = 0
		factors[of] = row.Factor
	}
	place := int64(1000)
	for _, of := range []policy.Price{{Site: pool.Site}, {Partition: name}, {Site: pool.Site, Partition: name}} {
		if factor, priced := factors[of]; priced && (of.Partition != "" || of.Site != "") {
			place = factor
		}
	}
	quality, priced := factors[policy.Price{QOS: r.Request.QOS}]
	if !priced || r.Request.QOS == "" {
		quality = 1000
	}
	charge := area * place * quality
	if charge%1_000_000 > 0 {
		charge += 1_000_000
	}
	return charge / 1_000_000
}

// series asks for a series of what a request asks for, and has what is promised judged.
func (w *limited) series(r *berth.Request) {
	t, id := w.t, fmt.Sprintf("s%d", len(w.ids))
	window := r.Deadline.Sub(r.Ready)
	s := &berth.Series{ID: id, Rule: "daily", Zone: "UTC", Least: 1, Request: *r}
	if rapid.IntRange(0, 3).Draw(t, "open") == 0 {
		s.Ahead = berth.Duration(rapid.IntRange(36, 60).Draw(t, "promised ahead"))
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "occurrences") {
		ready := r.Ready + berth.Time(10*i)
		s.Occurrences = append(s.Occurrences, berth.Occurrence{Ready: ready, Deadline: ready.Add(window)})
		w.ids = append(w.ids, berth.OccurrenceID(id, i+1))
	}
	changes, err := w.apply(engine.SubmitSeries(s))
	if err != nil {
		return // it does not go with the state
	}
	w.seriesIDs = append(w.seriesIDs, id)
	w.judgeSeries(changes, r.Role, change.Accepted)
}

// modifySeries has occurrences of a series come at another time, with other PEs, and has what they have become judged.
func (w *limited) modifySeries(role string) {
	t := w.t
	if len(w.seriesIDs) == 0 {
		return
	}
	id, by, npe := rapid.SampledFrom(w.seriesIDs).Draw(t, "series"), berth.Duration(rapid.IntRange(0, 30).Draw(t, "later")), berth.Count(rapid.IntRange(1, 8).Draw(t, "npe"))
	var list []berth.Request
	for n := 1; n <= 4; n++ {
		r, is := w.e.Reservation(berth.OccurrenceID(id, n))
		if !is || r.State == berth.Active {
			continue
		}
		one := *r.Request.Clone()
		one.Role, one.Arrival, one.Ready, one.Deadline = role, w.now, max(w.now, one.Ready).Add(by), max(w.now, one.Ready).Add(by+one.Deadline.Sub(one.Ready))
		if len(one.Parts) == 1 && len(one.Parts[0].Variants) == 1 {
			one.Parts[0].Variants[0].NPE = npe
		}
		list = append(list, one)
	}
	if changes, err := w.apply(engine.ModifySeries(id, list, nil)); err == nil {
		w.judgeSeries(changes, role, change.Modified)
	}
}

// judgeSeries judges the occurrences that a change of some kind is about, and counts what limits refuse.
func (w *limited) judgeSeries(changes []change.Change, role string, kind change.Kind) {
	w.noteUnused(changes)
	for i := range changes {
		c := &changes[i]
		refusals := []*berth.Refusal{c.Refusal}
		for j := range c.Unfit {
			refusals = append(refusals, &c.Unfit[j].Refusal)
		}
		for _, no := range refusals {
			if no != nil && no.Exceeded != nil {
				w.ends[w.what+" beyond "+no.Exceeded.Limit]++
			}
		}
		if c.Kind == kind && slices.Contains(w.ids, c.ID) {
			w.ends[w.what+" within limits"]++
			w.judge(c.ID, role, kind == change.Accepted)
		}
	}
}
