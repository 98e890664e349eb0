package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// moved returns the requests of some occurrences of a series with another start, number of PEs and duration.
func moved(t *testing.T, e *engine.Engine, s *berth.Series, by berth.Duration, npe berth.Count, d berth.Duration, numbers ...int) (list []berth.Request) {
	t.Helper()
	for _, n := range numbers {
		r, is := e.Reservation(berth.OccurrenceID(s.ID, n))
		if !is {
			t.Fatalf("occurrence %d is not live", n)
		}
		ready := r.Request.Ready.Add(by)
		one := berth.Rigid(r.Request.ID, e.Now(), max(ready, e.Now()), ready.Add(d), npe, d)
		one.User = r.Request.User
		list = append(list, one)
	}
	return list
}

// Several occurrences change in one step: also into places that others of them leave, in both directions.
func TestSeveralOccurrencesChangeTogether(t *testing.T) {
	for _, binding := range bindings() {
		for name, c := range map[string]struct {
			by  berth.Duration
			npe berth.Count
			d   berth.Duration
		}{"later": {100, 3, 100}, "earlier": {-50, 3, 100}, "wider": {0, 4, 100}, "shorter": {0, 3, 50}, "later, wider and shorter": {70, 4, 80}} {
			config := onePool(4, binding)
			e := newEngine(t, config)
			s := series("s", 0, 100, 100, 4, 4, 3, 100)
			apply(t, e, 0, engine.SubmitSeries(s))
			changes := apply(t, e, 10, engine.ModifySeries("s", moved(t, e, s, c.by, c.npe, c.d, 1, 2, 3, 4), nil))
			if got := kinds(changes); strings.Count(got, "modified:s.") != 4 || strings.Contains(got, "refused") {
				t.Errorf("%s: %s", name, got)
			}
			for n := 1; n <= 4; n++ {
				r, _ := e.Reservation(berth.OccurrenceID("s", n))
				if want := berth.Time(100 * n).Add(c.by); r.Start() != want || r.End() != want.Add(c.d) || r.Allotments[0].NPE != c.npe || r.Request.Series.Number != n {
					t.Errorf("%s: occurrence %d is from %d to %d on %d PEs", name, n, r.Start(), r.End(), r.Allotments[0].NPE)
				}
			}
			settled(t, config, e)
		}
	}
}

// If one cannot change, none does, and each that cannot says why.
func TestAllOccurrencesChangeOrNone(t *testing.T) {
	config := onePool(4, berth.Early)
	e := newEngine(t, config)
	s := series("s", 0, 100, 100, 4, 4, 2, 50)
	apply(t, e, 0, engine.SubmitSeries(s))
	submit(t, e, 0, berth.Rigid("other", 0, 200, 250, 2, 50))
	submit(t, e, 0, berth.Rigid("another", 0, 400, 450, 2, 50))
	before := e.Hash()
	changes := apply(t, e, 0, engine.ModifySeries("s", moved(t, e, s, 0, 3, 50, 1, 2, 3, 4), nil))
	if got := kinds(changes); got != "change_refused:s.2 change_refused:s.4" || changes[0].Refusal.Reason != berth.NoCapacity {
		t.Errorf("%s, for %+v", got, changes[0].Refusal)
	}
	if e.Hash() != before {
		t.Error("the state has changed")
	}
	if got := kinds(apply(t, e, 0, engine.ModifySeries("s", moved(t, e, s, 0, 3, 50, 1, 3), nil))); strings.Contains(got, "refused") {
		t.Errorf("those that can: %s", got)
	}
	if got := kinds(apply(t, e, 0, engine.ModifySeries("s", moved(t, e, s, 0, 3, 50, 2), nil))); got != "change_refused:s.2" {
		t.Errorf("one by itself that cannot: %s", got)
	}
	settled(t, config, e)
}

// Limits count each as it is when the next is asked for.
func TestLimitsOfSeveralChanges(t *testing.T) {
	config := onePool(4, berth.Early)
	config.Limits = policy.EachUser(map[policy.LimitName]int64{policy.LimitPESeconds: 450})
	e := newEngine(t, config)
	s := series("s", 0, 100, 100, 4, 4, 2, 50)
	apply(t, e, 0, engine.SubmitSeries(s)) // 400 PE-seconds
	if got := kinds(apply(t, e, 0, engine.ModifySeries("s", moved(t, e, s, 0, 3, 50, 1, 2), nil))); got != "change_refused:s.2" {
		t.Errorf("500 PE-seconds are too many: %s", got)
	}
	if got := kinds(apply(t, e, 0, engine.ModifySeries("s", moved(t, e, s, 0, 3, 50, 1), nil))); strings.Contains(got, "refused") {
		t.Errorf("450 PE-seconds are allowed: %s", got)
	}
	settled(t, config, e)
}

// What has begun or is over stays as it is while the others change; what is of no such series is refused.
func TestWhatHasBegunStays(t *testing.T) {
	e := newEngine(t, onePool(4, berth.Early))
	s := series("s", 0, 100, 100, 3, 3, 2, 80)
	apply(t, e, 0, engine.SubmitSeries(s))
	submit(t, e, 0, berth.Rigid("other", 0, 600, 650, 1, 50))
	list := moved(t, e, s, 10, 2, 80, 1, 2, 3)
	got := kinds(apply(t, e, 120, engine.ModifySeries("s", list, nil)))
	if strings.Contains(got, "modified:s.1") || !strings.Contains(got, "modified:s.2") || !strings.Contains(got, "modified:s.3") {
		t.Error(got)
	}
	other := berth.Rigid("other", 120, 600, 650, 1, 50)
	for field, event := range map[string]engine.Event{
		"requests": engine.ModifySeries("s", append(slices.Clone(list), other), nil),
		"id":       engine.ModifySeries("s", list[:1], nil),
		"series":   engine.ModifySeries("s", nil, s),
	} {
		code := berth.Invalid
		if field != "requests" {
			code, field = berth.Conflict, "id"
		}
		_, _, err := e.Apply(120, event)
		wantCode(t, err, code, field)
	}
	_, _, err := e.Apply(120, engine.ModifySeries("s", []berth.Request{list[1], list[1]}, nil))
	wantCode(t, err, berth.Invalid, "requests")
}

// What an open series is still to ask for changes with what it has; all or nothing, too.
func TestOpenSeriesChange(t *testing.T) {
	config := onePool(4, berth.Early)
	e := newEngine(t, config)
	s := openSeries("s", 250, 0, 100, 100, 5, 2, 2, 10)
	apply(t, e, 0, engine.SubmitSeries(s))
	next := s.Clone()
	next.Request.Parts[0].Variants[0] = berth.Variant{NPE: 3, Duration: 20}
	for i := 2; i < 5; i++ {
		next.Occurrences[i].Ready += 30
		next.Occurrences[i].Deadline += 40
	}
	got := kinds(apply(t, e, 0, engine.ModifySeries("s", moved(t, e, s, 30, 3, 20, 1, 2), next)))
	if strings.Count(got, "modified:") != 2 || !strings.Contains(got, "series_prolonged") {
		t.Fatal(got)
	}
	settled(t, config, e)
	if at, _ := e.Next(); at != 80 { // the third is ready at 330
		t.Errorf("the next turn is at %d, want 80", at)
	}
	waitUntil(t, e, 80)
	if r, is := e.Reservation("s.3"); !is || r.Start() != 330 || r.End() != 350 || r.Allotments[0].NPE != 3 {
		t.Errorf("the third is %+v", r.Allotments)
	}
	settled(t, config, e)
	submit(t, e, 80, berth.Rigid("other", 80, 230, 250, 1, 20))
	before := e.Hash()
	wide := next.Clone()
	wide.Request.Parts[0].Variants[0].NPE = 4
	if got := kinds(apply(t, e, 80, engine.ModifySeries("s", moved(t, e, s, 0, 4, 20, 1, 2, 3), wide))); got != "change_refused:s.2" || e.Hash() != before {
		t.Errorf("%s; the state has changed: %t", got, e.Hash() != before)
	}
	for name, change := range map[string]func(*berth.Series){
		"ahead":     func(s *berth.Series) { s.Ahead++ },
		"the past":  func(s *berth.Series) { s.Occurrences[0].Deadline++ },
		"fewer":     func(s *berth.Series) { s.Occurrences = s.Occurrences[:4] },
		"not after": func(s *berth.Series) { s.Occurrences[3].Ready = 100 },
		"user":      func(s *berth.Series) { s.Request.User = "bob" },
	} {
		bad := next.Clone()
		change(bad)
		_, _, err := e.Apply(80, engine.ModifySeries("s", nil, bad))
		var is *berth.Error
		if !errors.As(err, &is) || is.Code != berth.Invalid || e.Hash() != before {
			t.Errorf("%s: %v", name, err)
		}
	}
}
