package engine_test

import (
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// series returns n occurrences of npe PEs each. The first begins at first, the others every seconds later.
func series(id string, now, first, every berth.Time, n, least int, npe berth.Count, d berth.Duration) *berth.Series {
	s := &berth.Series{ID: id, Rule: "daily", Zone: "UTC", Least: least, Request: berth.Rigid("", now, now, now+1, npe, d)}
	s.Request.User = "alice"
	for i := range n {
		ready := first + berth.Time(i)*every
		s.Occurrences = append(s.Occurrences, berth.Occurrence{Ready: ready, Deadline: ready.Add(d)})
	}
	return s
}

// unfit returns the numbers of the occurrences that cannot be, and whether the others are promised.
func unfit(t *testing.T, changes []change.Change) (numbers []int, promised bool) {
	t.Helper()
	for i := range changes {
		if c := &changes[i]; c.Kind == change.SeriesPromised || c.Kind == change.SeriesRefused {
			for _, u := range c.Unfit {
				numbers = append(numbers, u.Number)
			}
			return numbers, c.Kind == change.SeriesPromised
		}
	}
	t.Fatalf("no series is decided: %s", kinds(changes))
	return nil, false
}

// All occurrences are promised, or none is; with fewer that must be possible, those that are.
func TestSeriesAreAllOrAtLeast(t *testing.T) {
	for _, binding := range bindings() {
		for _, c := range []struct {
			least    int
			promised bool
		}{{3, false}, {2, true}, {1, true}} {
			config := onePool(4, binding)
			e := newEngine(t, config)
			submit(t, e, 0, berth.Rigid("other", 0, 200, 250, 3, 50))
			changes := apply(t, e, 0, engine.SubmitSeries(series("s", 0, 100, 100, 3, c.least, 2, 50)))
			numbers, promised := unfit(t, changes)
			if !slices.Equal(numbers, []int{2}) || promised != c.promised {
				t.Fatalf("at least %d of 3: %v cannot be, the others are promised: %t", c.least, numbers, promised)
			}
			for n := 1; n <= 3; n++ {
				r, is := e.Reservation(berth.OccurrenceID("s", n))
				if is != (promised && n != 2) {
					t.Errorf("at least %d: occurrence %d is promised: %t", c.least, n, is)
				}
				if is && (r.Start() != berth.Time(100*n) || *r.Request.Series != (berth.SeriesRef{Series: "s", Number: n})) {
					t.Errorf("occurrence %d is %+v from %d on", n, r.Request.Series, r.Start())
				}
			}
			settled(t, config, e)
		}
	}
}

// Occurrences that overlap do not take the same PEs, and each counts towards the limits of its user and takes
// licences.
func TestOccurrencesCountBesideEachOther(t *testing.T) {
	limits := func(name policy.LimitName, value int64) func(*engine.Config) {
		return func(c *engine.Config) { c.Limits = policy.EachUser(map[policy.LimitName]int64{name: value}) }
	}
	for name, c := range map[string]struct {
		with func(*engine.Config)
		want []int // that cannot be
	}{
		"PEs":          {func(*engine.Config) {}, []int{3, 4}},
		"licences":     {func(c *engine.Config) { c.Sites[0].Software[0].Licences = 1 }, []int{2, 3, 4}},
		"storage":      {func(c *engine.Config) { c.Sites[0].StorageMB = 5 }, []int{2, 3, 4}},
		"active":       {limits(policy.LimitActive, 1), []int{2, 3, 4}},
		"reservations": {limits(policy.LimitReservations, 1), []int{2, 3, 4}},
		"PE-seconds":   {limits(policy.LimitPESeconds, 399), []int{2, 3, 4}},
		"share":        {limits(policy.LimitShare, 500), []int{2, 3, 4}},
		"lead":         {limits(policy.LimitLead, 110), []int{3, 4}},
		"length":       {limits(policy.LimitLength, 99), []int{1, 2, 3, 4}},
		"hold":         {limits(policy.LimitHold, 9), []int{1, 2, 3, 4}},
	} {
		config := onePool(4, berth.Early)
		config.Sites[0].Software = []berth.Software{{Name: "solver", Licences: 9}}
		c.with(&config)
		e := newEngine(t, config)
		s := series("s", 0, 100, 10, 4, 1, 2, 100)
		s.Request.Software, s.Request.Licences, s.Request.StorageMB, s.Request.Hold = "solver", 1, 3, 10
		numbers, promised := unfit(t, apply(t, e, 0, engine.SubmitSeries(s)))
		if !slices.Equal(numbers, c.want) || promised != (len(c.want) < 4) {
			t.Errorf("%s: %v cannot be; want %v", name, numbers, c.want)
		}
		settled(t, config, e)
	}
}

// One, some or all occurrences are given back in one step: what runs ends, what was to run is cancelled, and what
// is over is left out. What is of no such series is refused, and nothing happens.
func TestOccurrencesAreGivenBack(t *testing.T) {
	config := onePool(4, berth.Early)
	e := newEngine(t, config)
	apply(t, e, 0, engine.SubmitSeries(series("s", 0, 100, 100, 4, 4, 2, 50)))
	submit(t, e, 0, berth.Rigid("other", 0, 600, 650, 3, 50))
	_, _, err := e.Apply(10, engine.CancelSeries("s", []string{"s.1", "other"}, 0, 0))
	wantCode(t, err, berth.Invalid, "of")
	_, _, err = e.Apply(10, engine.CancelSeries("t", []string{"s.1"}, 0, 0))
	wantCode(t, err, berth.Invalid, "of")
	if got := kinds(apply(t, e, 10, engine.CancelSeries("s", []string{"s.3"}, 0, 0))); got != "cancelled:s.3" {
		t.Errorf("one is skipped by %s", got)
	}
	if got := kinds(apply(t, e, 120, engine.CancelSeries("s", []string{"s.1", "s.2", "s.3"}, 0, 0))); got != "advanced started:s.1 advanced ended:s.1 cancelled:s.2" {
		t.Errorf("while the first runs the first three are given back by %s", got)
	}
	if _, is := e.Reservation("s.4"); !is || e.Live() != 2 {
		t.Errorf("%d are live", e.Live())
	}
	settled(t, config, e)
}

// A modification keeps an occurrence one of its series.
func TestModifiedOccurrencesStayInTheirSeries(t *testing.T) {
	e := newEngine(t, onePool(4, berth.Early))
	apply(t, e, 0, engine.SubmitSeries(series("s", 0, 100, 100, 2, 2, 2, 50)))
	r := berth.Rigid("s.2", 0, 300, 400, 3, 40)
	r.User = "alice"
	apply(t, e, 0, engine.Modify(&r))
	if got, _ := e.Reservation("s.2"); got.Request.Series == nil || got.Start() != 300 {
		t.Errorf("it is of series %v and starts at %d", got.Request.Series, got.Start())
	}
	apply(t, e, 0, engine.CancelSeries("s", []string{"s.1", "s.2"}, 0, 0))
	if e.Live() != 0 {
		t.Errorf("%d are live", e.Live())
	}
}

func TestBadSeries(t *testing.T) {
	e := newEngine(t, onePool(4, berth.Early))
	submit(t, e, 5, berth.Rigid("taken.2", 5, 600, 650, 3, 50))
	for field, change := range map[string]func(*berth.Series){
		"id":          func(s *berth.Series) { s.ID = "taken" },
		"occurrences": func(s *berth.Series) { s.Occurrences[1].Ready = s.Occurrences[0].Ready },
		"least":       func(s *berth.Series) { s.Least = 4 },
		"kind":        func(s *berth.Series) { s.Request.Kind = berth.KindJob },
		"task":        func(s *berth.Series) { s.Request.Task = &berth.TaskRef{} },
		"variants": func(s *berth.Series) {
			s.Request.Parts[0].Variants = slices.Repeat(s.Request.Parts[0].Variants, berth.MaxOccurrences/3+1)
		},
		"shift":    func(s *berth.Series) { s.Occurrences[2].Shift = "sideways" },
		"moved":    func(s *berth.Series) { s.Occurrences[2].Moved = berth.TimeLimit },
		"ready":    func(s *berth.Series) { s.Occurrences[0].Ready = 1 },
		"deadline": func(s *berth.Series) { s.Occurrences[2].Deadline = berth.TimeLimit },
		"npe":      func(s *berth.Series) { s.Request.Parts[0].Variants[0].NPE = 0 },
		"arrival":  func(s *berth.Series) { s.Request.Arrival = 6 },
	} {
		s := series("s", 5, 100, 100, 3, 3, 2, 50)
		change(s)
		code := berth.Invalid
		if field == "id" {
			code = berth.Conflict
		}
		before := e.Hash()
		_, _, err := e.Apply(5, engine.SubmitSeries(s))
		if wantCode(t, err, code, field); e.Hash() != before {
			t.Errorf("%s: the state has changed", field)
		}
	}
	_, _, err := e.Apply(5, engine.SubmitSeries(nil))
	wantCode(t, err, berth.Invalid, "series")
}
