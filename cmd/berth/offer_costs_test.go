package main

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/form"
)

// Offers are written with what each costs the ordinary jobs, within 100 columns, where any job was compared.
func TestOffersAreWrittenWithTheirCosts(t *testing.T) {
	at := form.Time(1_800_000_000)
	offer := func(cost *form.Cost) form.Offer {
		return form.Offer{ID: "a1", Expires: at, Difference: "other_site", Place: form.Place{Site: "cluster", Pool: "batch", NPE: 128, Duration: 7200, Start: at, End: at + 7200}, Cost: cost}
	}
	free := &form.Cost{Complete: true}
	if text := describeOffers([]form.Offer{offer(free), offer(nil)}, "berth hold"); strings.Contains(text, "delayed jobs") {
		t.Errorf("costs are written though nothing waits:\n%s", text)
	}
	text := describeOffers([]form.Offer{
		offer(&form.Cost{Delayed: 12, DelaySum: 7200, DelayLargest: 3600, IdlePESeconds: 5400, Jobs: 345, Complete: true}),
		offer(&form.Cost{Delayed: 3, DelaySum: 90, DelayLargest: 60, Jobs: 7}),
		offer(nil),
	}, "berth hold")
	for _, want := range [][]string{
		{"1", "12", "02:00:00", "01:00:00", "1.5", "345"},
		{"2", "3+", "00:01:30+", "00:01:00+", "0.0+", "7"},
		{"3", "?", "?", "?", "?", "0"},
	} {
		found := false
		for line := range strings.Lines(text) {
			found = found || strings.Join(strings.Fields(line), " ") == strings.Join(want, " ")
			if len([]rune(line)) > 101 { // with its end
				t.Errorf("%d columns: %s", len([]rune(line))-1, line)
			}
		}
		if !found {
			t.Errorf("no row %v in\n%s", want, text)
		}
	}
}
