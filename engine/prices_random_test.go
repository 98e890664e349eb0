package engine_test

import (
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
)

// drawPrices draws prices of places and of a QOS, at most one of each.
func drawPrices(t *rapid.T) (prices policy.Prices) {
	if rapid.Bool().Draw(t, "no prices") {
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
	factors := map[policy.Price]int64{}
	for _, row := range w.config.Prices {
		of := row
		of.Factor = 0
		factors[of] = row.Factor
	}
	place := int64(1000)
	name := w.partition(r, pool)
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
