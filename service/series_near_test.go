package service_test

import (
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
)

// What is offered instead of an occurrence is near it, within half of the way to the next ones, and begins as little earlier as it must.
func TestOffersInsteadOfAnOccurrenceAreNearIt(t *testing.T) {
	const week, hour = 7 * 86_400, 3600
	for name, c := range map[string]struct {
		busy    berth.Interval // around the second occurrence, in seconds from its ready time
		earlier bool
		from    berth.Time // no earlier than that
	}{
		"an hour before":             {berth.Interval{Start: 0, End: hour}, true, -hour},
		"hours before":               {berth.Interval{Start: -3 * hour, End: hour}, true, -4 * hour},
		"days before":                {berth.Interval{Start: -2 * 86_400, End: hour}, true, -64 * hour},
		"nothing until the last one": {berth.Interval{Start: -week/2 - 10, End: hour}, false, 0},
	} {
		c0 := &clock{}
		c0.seconds.Store(1000)
		h, _ := startOn(t, t.TempDir(), onePool(4), c0)
		second := berth.Time(1000 + 2*week)
		block := berth.Rigid("busy", 0, second+c.busy.Start, second+c.busy.End, 4, c.busy.End.Sub(c.busy.Start))
		submit(t, h, bob, block)
		s := berth.Series{Rule: "weekly", Zone: "UTC", Least: 2, Request: berth.Rigid("", 0, 0, 1, 4, hour)}
		for i := range 3 {
			ready := berth.Time(1000 + (i+1)*week)
			s.Occurrences = append(s.Occurrences, berth.Occurrence{Ready: ready, Deadline: ready + hour})
		}
		a := submitSeries(t, h, ann, s)
		if len(a.Series.Unfit) != 1 || len(a.Offers) != 1 || a.Offers[0].Number != 2 {
			t.Fatalf("%s: %+v", name, a.Offers)
		}
		earlier := false
		for _, o := range a.Offers[0].Offers {
			at := o.Allotments[0].Start - second
			if at < -week/2 || at > week/2+hour {
				t.Errorf("%s: %s at %d s from its time", name, o.Difference, at)
			}
			if o.Difference == engine.OfferEarlier {
				if earlier = true; at < c.from || at+hour > c.busy.Start {
					t.Errorf("%s: earlier by %d s, want at most %d and beside what is busy", name, -at, -c.from)
				}
			}
		}
		if earlier != c.earlier {
			t.Errorf("%s: offered earlier: %t", name, earlier)
		}
	}
}

// Each answer about a series tells what budgets are charged for what of it is not over.
func TestASeriesTellsWhatIsCharged(t *testing.T) {
	config := onePool(4)
	config.Prices = policy.Prices{{Site: config.Sites[0].Name, Factor: 3000}}
	c := &clock{}
	c.seconds.Store(1000)
	h, _ := startOn(t, t.TempDir(), config, c)
	wants := func(what string, of []int64, a *service.Series, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(what, err)
		}
		for i, want := range of {
			if got := a.Reservations[i].Charge; (got != nil) != (want > 0) || got != nil && *got != want {
				t.Errorf("%s: occurrence %d is charged %v, want %d", what, i+1, got, want)
			}
		}
	}
	keyed := ann
	keyed.Key = "k"
	a, err := h.SubmitSeries(t.Context(), keyed, weekly(3, 3, 2))
	wants("asked for", []int64{600, 600, 600}, &a.Series, err)
	id := a.Series.Series.ID
	again, err := h.RecallSeries(t.Context(), keyed)
	if again == nil {
		t.Fatal("it is forgotten")
	}
	wants("again", []int64{600, 600, 600}, &again.Series, err)
	a, err = h.CancelSeries(t.Context(), ann, id, 2, 2)
	wants("given back", []int64{600, 0, 600}, &a.Series, err)
	got, err := h.GetSeries(t.Context(), ann.By, id)
	wants("shown", []int64{600, 0, 600}, &got, err)
}
