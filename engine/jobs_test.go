package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// promises watches that what is accepted starts when it was promised, or when
// it was moved to, that jobs start within their waiting limit, and that plans
// move earlier only, unless a promise made them void.
type promises map[string]watched

type watched struct{ start, plan berth.Time }

func (p promises) watch(t *rapid.T, changes []change.Change) {
	for _, c := range changes {
		w, known := p[c.ID]
		switch c.Kind {
		case change.Advanced:
			p[""] = watched{start: c.Now}
		case change.Accepted:
			p[c.ID] = watched{start: c.Reservation.Start()}
			if c.Reservation.Request.IsJob() && c.Reservation.Start() != p[""].start {
				t.Fatalf("job %s is accepted at %d for %d", c.ID, p[""].start, c.Reservation.Start())
			}
			if c.Reservation.End() > c.Reservation.Request.Deadline {
				t.Fatalf("%s is accepted for %d, beyond its deadline", c.ID, c.Reservation.Start())
			}
		case change.Confirmed:
			w.start = max(w.start, p[""].start) // what was held too long starts at once
			p[c.ID] = w
		case change.Requeued, change.Preempted:
			delete(p, c.ID)
		case change.Moved, change.Modified:
			if c.Moved != nil {
				p[c.ID] = watched{start: c.Moved[0].Start}
			}
		case change.Started:
			if w.start != p[""].start {
				t.Fatalf("%s starts at %d, and was promised %d", c.ID, p[""].start, w.start)
			}
		case change.Planned:
			if c.Plan == nil {
				delete(p, c.ID)
				continue
			}
			if known && c.Plan.Start >= w.plan {
				t.Fatalf("the plan of %s moves from %d to %d", c.ID, w.plan, c.Plan.Start)
			}
			p[c.ID] = watched{plan: c.Plan.Start}
		}
	}
}

func job(id string, arrival berth.Time, npe berth.Count, estimate berth.Duration) berth.Request {
	return berth.Job(id, arrival, npe, estimate)
}

// starts plays the requests, each submitted at its arrival, and returns
// "id@start" of all, in order of start.
func starts(t *testing.T, config engine.Config, until berth.Time, requests ...berth.Request) string {
	t.Helper()
	e := newEngine(t, config)
	var words []string
	var now berth.Time
	note := func(changes []change.Change) {
		for _, c := range changes {
			switch c.Kind {
			case change.Advanced:
				now = c.Now
			case change.Started:
				words = append(words, fmt.Sprintf("%s@%d", c.ID, now))
			case change.Refused:
				words = append(words, fmt.Sprintf("%s:%s@%d", c.ID, c.Refusal.Reason, now))
			}
		}
	}
	for i := range requests {
		note(apply(t, e, requests[i].Arrival, engine.Submit(&requests[i])))
	}
	note(apply(t, e, until, engine.Wake()))
	return strings.Join(words, " ")
}

// Four PEs; a takes three of them until 10. b wants all; c is short enough to
// end before b can start, d is not, e waits for no other.
//
//	PE 3  c c . . .  b b b b b  d d d ...
//	PE 0-2  a a a a a  b b b b b
func TestPassesOnOneQueue(t *testing.T) {
	queue := []berth.Request{
		job("a", 0, 3, 10), job("b", 1, 4, 10), job("c", 2, 1, 5), job("d", 3, 1, 50), job("e", 4, 1, 3), job("f", 5, 1, 6),
	}
	for _, c := range []struct{ pass, want string }{
		{"fcfs", "a@0 b@10 c@20 d@20 e@20 f@20"},
		{"easy", "a@0 c@2 e@7 b@10 d@20 f@20"},
		{"conservative", "a@0 c@2 e@7 b@10 d@20 f@20"},
		{"lazy", "a@0 c@2 d@7 e@10 f@10 b@57"},
	} {
		config := onePool(4, berth.Late)
		config.Jobs = c.pass
		if got := starts(t, config, 100, slices.Clone(queue)...); got != c.want {
			t.Errorf("%s: %s, want %s", c.pass, got, c.want)
		}
	}
}

// EASY lets a job delay the second of the queue, conservative backfilling does
// not (Mu'alem and Feitelson, figure 1).
func TestEASYDelaysTheSecondOfTheQueue(t *testing.T) {
	queue := []berth.Request{
		job("running", 0, 2, 10), job("first", 1, 3, 10), job("second", 2, 4, 10), job("small", 3, 1, 100),
	}
	config := onePool(4, berth.Late)
	if got, want := starts(t, config, 300, slices.Clone(queue)...), "running@0 small@3 first@10 second@103"; got != want {
		t.Errorf("easy: %s, want %s", got, want)
	}
	config.Jobs = "conservative"
	if got, want := starts(t, config, 300, slices.Clone(queue)...), "running@0 first@10 second@20 small@30"; got != want {
		t.Errorf("conservative: %s, want %s", got, want)
	}
}

// A request is decided as if no job waited, but running jobs keep their PEs
// until their limit, and no job starts that would not end before the promise.
func TestPromisesComeFirst(t *testing.T) {
	for _, pass := range engine.JobPasses() {
		for _, binding := range []berth.Binding{berth.Early, berth.Late} {
			config := onePool(4, binding)
			config.Jobs = pass.Name
			got := starts(t, config, 100,
				job("running", 0, 4, 10),
				job("waiting", 1, 4, 10),
				berth.Rigid("promise", 2, 2, 30, 4, 12),
				job("short", 3, 4, 8),
			)
			if want := "running@0 promise@10 waiting@22 short@32"; pass.Name != "lazy" && got != want {
				t.Errorf("%s %s: %s, want %s", pass.Name, binding, got, want)
			}
			got = starts(t, config, 100, berth.Rigid("promise", 0, 10, 20, 4, 10), job("long", 1, 1, 10), job("short", 2, 1, 8))
			want := "short@2 promise@10 long@20"
			if pass.Name == "fcfs" {
				want = "promise@10 long@20 short@20"
			}
			if got != want {
				t.Errorf("%s %s: %s, want %s", pass.Name, binding, got, want)
			}
		}
	}
}

func TestWaitingLimitDropsAJob(t *testing.T) {
	for _, pass := range engine.JobPasses() {
		config := onePool(4, berth.Late)
		config.Jobs = pass.Name
		limited := job("limited", 1, 2, 5)
		limited.Deadline = 9 // it may start until 4
		tooLarge := job("large", 1, 5, 5)
		got := starts(t, config, 100, job("running", 0, 4, 10), limited, tooLarge, job("next", 2, 1, 1))
		if want := "running@0 large:too_large@1 limited:deadline_missed@5 next@10"; got != want {
			t.Errorf("%s: %s, want %s", pass.Name, got, want)
		}
	}
}

// Without compression an early end serves only what arrives later; with it the
// queue moves up.
func TestCompression(t *testing.T) {
	for compress, want := range map[bool]string{false: "b@10", true: "b@4"} {
		config := onePool(4, berth.Early)
		config.Jobs, config.Compress = "conservative", compress
		e := newEngine(t, config)
		submit(t, e, 0, job("a", 0, 4, 10))
		submit(t, e, 0, job("b", 0, 2, 10))
		changes := apply(t, e, 4, engine.Finish("a"))
		changes = append(changes, apply(t, e, 10, engine.Wake())...)
		now, got := berth.Time(0), ""
		for _, c := range changes {
			switch c.Kind {
			case change.Advanced:
				now = c.Now
			case change.Started:
				got = fmt.Sprintf("%s@%d", c.ID, now)
			}
		}
		if got != want {
			t.Errorf("compress %v: %s, want %s", compress, got, want)
		}
	}
}

// With arrivals first a job that ends early is still there for a request that
// arrives at that instant; one that reached its limit is not.
func TestArrivalsFirst(t *testing.T) {
	config := onePool(4, berth.Late)
	config.Instant = engine.ArrivalsFirst()
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("a", 0, 0, 10, 4, 10))
	if got := kinds(submit(t, e, 10, berth.Rigid("b", 10, 10, 20, 4, 10))); got != "started:a advanced queued:b accepted:b" {
		t.Errorf("changes %q", got)
	}
	if got := kinds(apply(t, e, 10, engine.Wake())); got != "ended:a started:b" {
		t.Errorf("changes %q", got)
	}
	for _, names := range [][]string{{"end"}, {"start", "end", "expiry", "capacity", "arrival", "period"}} {
		config.Instant = names
		_, err := engine.New(config)
		wantCode(t, err, berth.Invalid, "instant")
	}
}

// On several sites a job runs where it can start first.
func TestJobsOnSeveralSites(t *testing.T) {
	for _, pass := range engine.JobPasses() {
		config := onePool(4, berth.Late)
		config.Sites = append(config.Sites, berth.Site{Name: "second", Pools: []berth.Pool{{Name: "pool", PEs: 8, Binding: berth.Early}}})
		config.Jobs = pass.Name
		got := starts(t, config, 100, job("a", 0, 4, 10), job("b", 0, 8, 5), job("c", 1, 6, 5), job("d", 1, 2, 20), job("e", 1, 9, 1))
		if want := "a@0 b@0 e:too_large@1 c@5 d@5"; got != want {
			t.Errorf("%s: %s, want %s", pass.Name, got, want)
		}
	}
}

// With compression a job moves into the room that an earlier one leaves when it
// moves, although what was given back, [4,10), is too small for it:
//
//	PE 1  r r q q q j j j k k k     r r j j j k k k
//	PE 0  p p p p p . . . k k k     p p p p p k k k
//	      0   4     10    16        0   4     10
func TestCompressionUsesTheRoomThatOthersLeave(t *testing.T) {
	config := onePool(2, berth.Late)
	config.Jobs, config.Compress = "conservative", true
	e := newEngine(t, config)
	submit(t, e, 0, berth.Rigid("p", 0, 0, 10, 1, 10))
	submit(t, e, 0, berth.Rigid("q", 0, 4, 10, 1, 6))
	submit(t, e, 0, job("r", 0, 1, 4))
	submit(t, e, 0, job("j", 0, 1, 6))
	submit(t, e, 0, job("k", 0, 2, 6))
	plans := map[string][]berth.Time{}
	note := func(changes []change.Change) {
		for _, c := range changes {
			if c.Kind == change.Planned && c.Plan != nil {
				plans[c.ID] = append(plans[c.ID], c.Plan.Start)
			}
		}
	}
	note(apply(t, e, 0, engine.Wake()))
	note(apply(t, e, 2, engine.Cancel("q")))
	if got := fmt.Sprint(plans["j"], plans["k"]); got != "[4] [10]" {
		t.Errorf("plans of j and k: %s", got)
	}
}

// A job starts early however many are ahead of it that do not fit, where all the PEs that are left are
// as many as it wants.
func TestAJobStartsEarlyBehindManyThatDoNotFit(t *testing.T) {
	for _, calendar := range []string{"", "plain"} {
		config := onePool(10, berth.Late)
		config.Jobs, config.Calendar = "easy", calendar
		e := newEngine(t, config)
		submit(t, e, 0, berth.Job("running", 0, 8, 100))
		submit(t, e, 0, berth.Job("first", 0, 10, 10))
		submit(t, e, 0, berth.Job("long", 0, 2, 1000)) // which would delay the first
		for i := range 200 {
			submit(t, e, 0, berth.Job(fmt.Sprint("wide", i), 0, 3, 10))
		}
		changes := submit(t, e, 0, berth.Job("narrow", 0, 2, 10))
		submit(t, e, 1, berth.Job("late", 1, 2, 10)) // which ends before the first can start too, once there is room
		if r, is := e.Reservation("narrow"); !is || r.Start() != 0 {
			t.Errorf("%s: %v", calendar, changes)
		}
		apply(t, e, 10, wake())
		if r, is := e.Reservation("late"); !is || r.Start() != 10 {
			t.Errorf("%s: the next one does not start when that has ended", calendar)
		}
	}
}

// Reservations and jobs that start are numbered as they are accepted, from 1 on.
func TestWhatIsAcceptedIsNumbered(t *testing.T) {
	for _, pass := range engine.JobPasses() {
		config := onePool(8, berth.Late)
		config.Jobs = pass.Name
		e := newEngine(t, config)
		for i, r := range []berth.Request{job("a", 0, 1, 50), berth.Rigid("b", 0, 0, 90, 1, 50), job("c", 0, 1, 50), job("d", 0, 1, 50), berth.Rigid("e", 0, 10, 90, 1, 50)} {
			if got := accepted(t, submit(t, e, 0, r)).Sequence; got != uint64(i+1) {
				t.Errorf("%s: %s has the number %d, want %d", pass.Name, r.ID, got, i+1)
			}
		}
	}
}
