package engine_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// openSeries is series with an Ahead.
func openSeries(id string, ahead berth.Duration, now, first, every berth.Time, n, least int, npe berth.Count, d berth.Duration) *berth.Series {
	s := series(id, now, first, every, n, least, npe, d)
	s.Ahead = ahead
	return s
}

// waitUntil wakes the engine whenever it wants that, up to a time, and returns what happened.
func waitUntil(t *testing.T, e *engine.Engine, until berth.Time) string {
	t.Helper()
	var all []string
	for {
		at, ok := e.Next()
		if !ok || at > until {
			break
		}
		all = append(all, kinds(apply(t, e, max(at, e.Now()), engine.Wake())))
	}
	return strings.ReplaceAll(strings.Join(all, " "), "advanced ", "")
}

// An occurrence has its turn once it is near enough, and the series is over with its last one.
func TestOpenSeriesAreProlonged(t *testing.T) {
	for _, binding := range bindings() {
		config := onePool(4, binding)
		e := newEngine(t, config)
		if got := kinds(apply(t, e, 0, engine.SubmitSeries(openSeries("s", 250, 0, 100, 100, 4, 2, 2, 10)))); got != "series_promised queued:s.1 accepted:s.1 queued:s.2 accepted:s.2" {
			t.Fatal(got)
		}
		if at, _ := e.Next(); at != 50 {
			t.Fatalf("the next turn is at %d, want 50", at)
		}
		if got, want := waitUntil(t, e, 99), "series_prolonged queued:s.3 accepted:s.3"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		settled(t, config, e)
		if got, want := waitUntil(t, e, 150), "started:s.1 ended:s.1 series_prolonged queued:s.4 accepted:s.4"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if got, want := waitUntil(t, e, 1000), "started:s.2 ended:s.2 started:s.3 ended:s.3 started:s.4 ended:s.4"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if at, ok := e.Next(); ok {
			t.Errorf("it wants to be woken at %d", at)
		}
	}
}

// What was due while the engine was not woken had its turn when it was due.
func TestOpenSeriesCatchUp(t *testing.T) {
	e := newEngine(t, onePool(4, berth.Early))
	apply(t, e, 0, engine.SubmitSeries(openSeries("s", 100, 0, 100, 100, 4, 1, 2, 10)))
	changes := apply(t, e, 250, engine.Wake())
	if got, want := kinds(changes), "advanced started:s.1 series_prolonged queued:s.2 accepted:s.2 advanced ended:s.1 advanced started:s.2 series_prolonged queued:s.3 accepted:s.3 advanced ended:s.2 advanced"; !sameWords(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
	r, _ := e.Reservation("s.3")
	if r.Request.Arrival != 200 {
		t.Errorf("the third was asked for at %d, want 200", r.Request.Arrival)
	}
}

// sameWords reports whether two texts have the same words, in any order.
func sameWords(a, b string) bool {
	x, y := strings.Fields(a), strings.Fields(b)
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// What cannot be promised when it has its turn is refused once, and asked for again by and by until it can be or its window is
// over; what could not be when the series was asked for, likewise.
func TestOpenSeriesAskAgain(t *testing.T) {
	config := onePool(4, berth.Early)
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("early", 0, 400, 450, 3, 50))
	submit(t, e, 0, berth.Rigid("late", 0, 600, 650, 3, 50))
	s := openSeries("s", 450, 0, 200, 200, 4, 1, 2, 50)
	changes := apply(t, e, 0, engine.SubmitSeries(s))
	if numbers, promised := unfit(t, changes); !promised || !slices.Equal(numbers, []int{2}) {
		t.Fatalf("%v cannot be, promised %t", numbers, promised)
	}
	if got, want := waitUntil(t, e, 59), ""; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := waitUntil(t, e, 60), "series_prolonged"; got != want { // as before, which is not told again
		t.Errorf("%s, want %s", got, want)
	}
	apply(t, e, 100, engine.Cancel("early"))
	if got, want := waitUntil(t, e, 149), "series_prolonged queued:s.2 accepted:s.2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := waitUntil(t, e, 170), "series_prolonged queued:s.3 refused:s.3"; got != want { // its turn is at 150
		t.Errorf("%s, want %s", got, want)
	}
	settled(t, config, e)
	if got := waitUntil(t, e, 640); strings.Count(got, "series_prolonged") != 9 || strings.Contains(got, "s.3") || !strings.Contains(got, "accepted:s.4") {
		t.Errorf("from 210 to 640 each minute, and for the fourth: %s", got)
	}
	if got := waitUntil(t, e, 2000); strings.Count(got, "series_prolonged") != 1 {
		t.Errorf("once its window is over it is asked for no more: %s", got)
	}
	if _, open := e.Next(); open {
		t.Error("something is still to be done")
	}
}

// What was offered instead of an occurrence is its reservation: it is not asked for again.
func TestOffersTakenEndTheirTurn(t *testing.T) {
	config := onePool(4, berth.Early)
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("other", 0, 400, 450, 3, 50))
	apply(t, e, 0, engine.SubmitSeries(openSeries("s", 450, 0, 200, 200, 2, 1, 2, 50)))
	r := berth.Rigid("instead", 0, 460, 520, 2, 50)
	r.Series = &berth.SeriesRef{Series: "s", Number: 2}
	submit(t, e, 0, r)
	apply(t, e, 10, engine.Cancel("other"))
	settled(t, config, e)
	if got, want := waitUntil(t, e, 1000), "started:s.1 ended:s.1 started:instead ended:instead"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Of an open series what has had no turn yet can be given back: one, or one and those after it.
func TestOpenSeriesAreGivenBack(t *testing.T) {
	for name, c := range map[string]struct {
		first, last int
		of          []string
		want        string
	}{
		"one to come":          {3, 3, nil, "series_prolonged|series_prolonged queued:s.2 accepted:s.2 series_prolonged queued:s.4 accepted:s.4 series_prolonged queued:s.5 accepted:s.5"},
		"the next":             {2, 2, nil, "series_prolonged|series_prolonged queued:s.3 accepted:s.3 series_prolonged queued:s.4 accepted:s.4 series_prolonged queued:s.5 accepted:s.5"},
		"one and those behind": {3, 5, nil, "series_prolonged|series_prolonged queued:s.2 accepted:s.2"},
		"all":                  {1, 5, []string{"s.1"}, "series_prolonged cancelled:s.1|"},
		"far behind":           {4, 1000, nil, "series_prolonged|series_prolonged queued:s.2 accepted:s.2 series_prolonged queued:s.3 accepted:s.3"},
		"what has been":        {1, 1, []string{"s.1"}, "cancelled:s.1|series_prolonged queued:s.2 accepted:s.2 series_prolonged queued:s.3 accepted:s.3 series_prolonged queued:s.4 accepted:s.4 series_prolonged queued:s.5 accepted:s.5"},
	} {
		config := onePool(4, berth.Early)
		e := newEngine(t, config)
		apply(t, e, 0, engine.SubmitSeries(openSeries("s", 100, 0, 100, 100, 5, 1, 2, 10)))
		got := kinds(apply(t, e, 0, engine.CancelSeries("s", c.of, c.first, c.last)))
		settled(t, config, e)
		var turns []string
		for word := range strings.FieldsSeq(waitUntil(t, e, 2000)) {
			if !strings.HasPrefix(word, "started") && !strings.HasPrefix(word, "ended") {
				turns = append(turns, word)
			}
		}
		if got += "|" + strings.Join(turns, " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	e := newEngine(t, onePool(4, berth.Early))
	apply(t, e, 0, engine.SubmitSeries(openSeries("s", 100, 0, 100, 100, 5, 1, 2, 10)))
	_, _, err := e.Apply(0, engine.CancelSeries("s", nil, 3, 2))
	wantCode(t, err, berth.Invalid, "first")
}

// What an open series is to ask for is not another's id.
func TestIDsOfOpenSeriesAreTaken(t *testing.T) {
	e := newEngine(t, onePool(4, berth.Early))
	apply(t, e, 0, engine.SubmitSeries(openSeries("s", 100, 0, 100, 100, 5, 1, 2, 10)))
	apply(t, e, 0, engine.CancelSeries("s", nil, 4, 4))
	for id, taken := range map[string]bool{"s": true, "s.1": true, "s.2": true, "s.5": true, "s.4": false, "s.6": false, "s.02": false, "s.x": false, "t.2": false} {
		r := berth.Rigid(id, 0, 900, 950, 1, 10)
		_, _, err := e.Apply(0, engine.Submit(&r))
		if (err != nil) != taken {
			t.Errorf("%q: %v, want it taken: %t", id, err, taken)
		}
	}
}

// Limits are asked each time: what a limit of the lead keeps out when the series is asked for can be later.
func TestLimitsOfOpenSeries(t *testing.T) {
	config := onePool(4, berth.Early)
	config.Limits = policy.EachUser(map[policy.LimitName]int64{policy.LimitReservations: 2})
	e := newEngine(t, config)
	apply(t, e, 0, engine.SubmitSeries(openSeries("s", 250, 0, 100, 100, 4, 2, 2, 10)))
	if got, want := waitUntil(t, e, 50), "series_prolonged queued:s.3 refused:s.3"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := waitUntil(t, e, 170); !strings.Contains(got, "accepted:s.3") { // the first is over by then
		t.Errorf("it is not promised once it can be: %s", got)
	}
	config.Limits = policy.EachUser(map[policy.LimitName]int64{policy.LimitLead: 120})
	e = newEngine(t, config)
	if numbers, _ := unfit(t, apply(t, e, 0, engine.SubmitSeries(openSeries("s", 450, 0, 100, 100, 4, 1, 2, 10)))); !slices.Equal(numbers, []int{2, 3, 4}) {
		t.Errorf("%v are too far ahead, want 2 to 4", numbers)
	}
	if got := waitUntil(t, e, 1000); !strings.Contains(got, "accepted:s.4") {
		t.Errorf("they are not promised once they are near enough: %s", got)
	}
}

// A restart, and who follows, have an open series as it is.
func TestOpenSeriesSurvive(t *testing.T) {
	config := onePool(4, berth.Early)
	e := newEngine(t, config)
	follower := newEngine(t, config)
	var all []change.Change
	all = append(all, apply(t, e, 0, engine.SubmitSeries(openSeries("s", 100, 0, 100, 100, 5, 1, 2, 10)))...)
	all = append(all, apply(t, e, 0, engine.CancelSeries("s", nil, 3, 3))...)
	if err := follower.Fold(all); err != nil {
		t.Fatal(err)
	}
	again, err := engine.Restore(config, e.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	want := kinds(apply(t, e, 350, engine.Wake()))
	for _, other := range []*engine.Engine{follower, again} {
		if got := kinds(apply(t, other, 350, engine.Wake())); got != want || !reflect.DeepEqual(other.Snapshot(), e.Snapshot()) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if e.Ahead() != 110 {
		t.Errorf("it looks %d s ahead, want 110", e.Ahead())
	}
}

func TestBadOpenSeries(t *testing.T) {
	e := newEngine(t, onePool(4, berth.Early))
	submit(t, e, 0, berth.Rigid("s.4", 0, 900, 950, 1, 10))
	for field, s := range map[string]*berth.Series{
		"ahead": openSeries("t", 99, 0, 100, 100, 5, 1, 2, 10),
		"least": openSeries("t", 250, 0, 100, 100, 5, 3, 2, 10),
		"id":    openSeries("s", 100, 0, 100, 100, 5, 1, 2, 10),
	} {
		code := berth.Invalid
		if field == "id" {
			code = berth.Conflict
		}
		_, _, err := e.Apply(0, engine.SubmitSeries(s))
		wantCode(t, err, code, field)
	}
	s := openSeries("t", -1, 0, 100, 100, 5, 1, 2, 10)
	_, _, err := e.Apply(0, engine.SubmitSeries(s))
	wantCode(t, err, berth.Invalid, "ahead")
}
