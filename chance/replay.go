package chance

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
)

// Ask answers a question about what is like an entry at a moment, from what was known by then.
// For Accepted the entry's times are those of a request that is made Later from now; for
// Moved Promised is its place; of a job only NPE and Duration count. The entry is no part of
// the history. Cost: O(n log n) of the history, and the slots of each place and window.
func Ask(history []Entry, pes berth.Count, q Question, now berth.Time, like Entry) Chance {
	r := newReplay(history, pes, q)
	for _, x := range r.events {
		if x.at > now {
			break
		}
		r.happen(x)
	}
	t := r.traitsOf(&like, now)
	return r.learner.chance(r.learner.score(&t))
}

// Forecast is what was said of a past case before it came out, and how it did.
type Forecast struct {
	At       berth.Time // when it was said
	Chance   Chance
	Happened bool
}

// Evaluate answers a question about each case of a history with what was known when it would
// have been asked (rolling origin), and says how it came out.
func Evaluate(history []Entry, pes berth.Count, q Question) []Forecast {
	r := newReplay(history, pes, q)
	said := make([]Chance, len(history))
	r.said = said
	var list []Forecast
	r.known = func(i int, at berth.Time, happened bool) { list = append(list, Forecast{at, said[i], happened}) }
	for _, x := range r.events {
		r.happen(x)
	}
	return list
}

// What happens at an instant, in this order: a question does not know what its own instant brings.
const (
	freed = iota
	asked
	learned
	booked
	began // a job, which waits no more
	queued
)

type event struct {
	at   berth.Time
	what int
	i    int
}

// replay goes through a history in the order of time.
type replay struct {
	question Question
	history  []Entry
	events   []event
	plan     plan
	waiting  int64 // PE-seconds of jobs that have arrived and not begun
	learner  *learner
	traits   []traits  // of cases that were asked about
	scores   []float64 // and what was said of them
	said     []Chance  // the same as chances, if it is not nil
	known    func(i int, asked berth.Time, happened bool)
}

func newReplay(history []Entry, pes berth.Count, q Question) *replay {
	r := &replay{question: q, history: history, plan: plan{pes: int64(pes)}, learner: newLearner(), traits: make([]traits, len(history)), scores: make([]float64, len(history))}
	first := berth.Forever
	for i := range history {
		e := &history[i]
		first = min(first, e.Arrival, max(e.Arrival.Add(-q.Later), 0))
		if at, until, is := r.of(e); is {
			r.events = append(r.events, event{at, asked, i}, event{until, learned, i})
		}
		if e.Job && !e.Beside {
			r.events = append(r.events, event{e.Arrival, queued, i})
			if e.Accepted {
				r.events = append(r.events, event{e.start(), began, i})
			}
		}
		if !e.Accepted || e.Place.Length() <= 0 {
			continue
		}
		at := e.Arrival
		if e.Job {
			at = e.start()
		}
		r.events = append(r.events, event{at, booked, i})
		if e.Freed < e.Place.End {
			r.events = append(r.events, event{max(e.Freed, at), freed, i})
		}
	}
	if first < berth.Forever {
		r.plan.base = slotOf(max(first, 0))
	}
	slices.SortFunc(r.events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.what, b.what), cmp.Compare(a.i, b.i))
	})
	return r
}

// of returns when the question would have been asked of an entry, and when it was answered;
// is is false if it cannot be asked of it, or its outcome is not known yet.
func (r *replay) of(e *Entry) (at, until berth.Time, is bool) {
	switch {
	case e.Beside || e.Job != (r.question.Kind == Started):
		return 0, 0, false
	case r.question.Kind == Accepted:
		return e.Arrival.Add(-r.question.Later), e.Arrival, e.Answered
	case r.question.Kind == Moved:
		return e.Arrival, max(e.Freed, e.Arrival), e.Accepted
	}
	until = e.Arrival.Add(r.question.Later)
	if e.Accepted {
		until = min(until, e.start())
	}
	return e.Arrival, max(until, e.Arrival), true
}

// outcome tells whether it came true for an entry.
func (r *replay) outcome(e *Entry) bool {
	switch r.question.Kind {
	case Accepted:
		return e.Accepted
	case Moved:
		return e.Moved
	}
	return e.Accepted && e.start() <= e.Arrival.Add(r.question.Later)
}

// happen takes an event in.
func (r *replay) happen(x event) {
	e := &r.history[x.i]
	switch x.what {
	case freed:
		r.plan.add(x.at, berth.Interval{Start: max(e.Freed, e.Place.Start), End: e.Place.End}, -int64(e.NPE))
	case asked:
		t := r.traitsOf(e, x.at)
		r.traits[x.i], r.scores[x.i] = t, r.learner.score(&t)
		if r.said != nil {
			r.said[x.i] = r.learner.chance(r.scores[x.i])
		}
	case learned:
		happened := r.outcome(e)
		r.learner.learn(known{r.traits[x.i], happened, x.at, r.scores[x.i]})
		if r.known != nil {
			at, _, _ := r.of(e)
			r.known(x.i, at, happened)
		}
	case booked:
		r.plan.add(x.at, e.Place, int64(e.NPE))
	case began:
		r.waiting -= berth.Area(e.NPE, min(e.Duration, longest))
	case queued:
		r.waiting += berth.Area(e.NPE, min(e.Duration, longest))
	}
}
