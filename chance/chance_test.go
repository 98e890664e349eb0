package chance_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/chance"
	"github.com/berth-hpc/berth/internal/stream"
)

const pes = 64

var inAnHour = chance.Question{Kind: chance.Accepted, Later: 3600}

// drawn returns a history in which wide requests are accepted with one probability, and others with another.
// What is accepted starts when it is ready.
func drawn(n int, seed uint64, wide, narrow float64) []chance.Entry {
	draws := stream.New(seed, "history")
	list := make([]chance.Entry, n)
	for i := range list {
		at := berth.Time(1_000_000 + 600*i)
		e := chance.Entry{Arrival: at, Ready: at + 7200, Deadline: at + 7200 + 3600, Duration: 600, NPE: 1, Answered: true}
		p := narrow
		if draws.Float64(uint64(2*i)) < 0.5 {
			e.NPE, p = pes, wide
		}
		if draws.Float64(uint64(2*i+1)) < p {
			e.Accepted = true
			e.Place = berth.Interval{Start: e.Ready, End: e.Ready + 600}
			e.Promised, e.Freed = e.Place, e.Place.End
		}
		list[i] = e
	}
	return list
}

// What is told of the two kinds is how often each was accepted, and its interval holds that.
func TestLearnsHowOftenSuchRequestsAreAccepted(t *testing.T) {
	held := 0
	for seed := range uint64(20) {
		history := drawn(4000, seed, 0.3, 0.9)
		now := history[len(history)-1].Arrival + 1
		for _, of := range []struct {
			npe  berth.Count
			want float64
		}{{pes, 0.3}, {1, 0.9}} {
			like := chance.Entry{Arrival: now, Ready: now + 7200, Deadline: now + 7200 + 3600, Duration: 600, NPE: of.npe}
			c := chance.Ask(history, pes, inAnHour, now, like.At(inAnHour))
			if !c.Enough || math.Abs(c.Share-of.want) > 0.1 || c.Sample < 50 {
				t.Errorf("seed %d: %d PEs: %+v, want about %v", seed, of.npe, c, of.want)
			}
			if c.Low <= of.want && of.want <= c.High {
				held++
			}
		}
	}
	if held < 28 { // of 40; the blocks are chosen by their order, so less than 38 hold
		t.Errorf("%d of 40 intervals hold the probability", held)
	}
}

// Before 200 cases have been scored and come out nothing is told.
func TestTellsNothingWithoutHistory(t *testing.T) {
	for n, enough := range map[int]bool{0: false, 1: false, 150: false, 400: true} {
		history := drawn(n, 1, 0.5, 0.5)
		now := berth.Time(1_000_000 + 600*n)
		like := chance.Entry{Arrival: now, Ready: now, Deadline: now + 3600, Duration: 600, NPE: 1}
		if c := chance.Ask(history, pes, inAnHour, now, like); c.Enough != enough || !enough && c != (chance.Chance{}) {
			t.Errorf("%d cases: %+v, want enough: %t", n, c, enough)
		}
	}
}

// No forecast knows anything of what comes after it: with another future what was said until then is the same.
func TestForecastsDoNotKnowTheFuture(t *testing.T) {
	for _, q := range []chance.Question{inAnHour, {Kind: chance.Accepted, Later: 86400}, {Kind: chance.Moved}, {Kind: chance.Started, Later: 7200}} {
		history := drawn(1200, 3, 0.2, 0.8)
		for i := range history {
			history[i].Job = q.Kind == chance.Started
			history[i].Moved = history[i].Accepted && i%5 == 0
		}
		cut := history[800].Arrival
		other := append([]chance.Entry(nil), history...)
		for i := 801; i < len(other); i++ {
			other[i].Accepted, other[i].NPE, other[i].Moved = !other[i].Accepted, 32, true
			other[i].Place = berth.Interval{Start: other[i].Ready, End: other[i].Ready + 600}
			other[i].Promised, other[i].Freed = other[i].Place, other[i].Place.End
		}
		a, b := until(history, q, cut), until(other, q, cut)
		told := 0
		for _, f := range a {
			if f.Chance.Enough {
				told++
			}
		}
		if told < 150 || !reflect.DeepEqual(a, b) {
			t.Errorf("%v: %d and %d forecasts until then, %d told; want at least 150 told, and the same", q, len(a), len(b), told)
		}
	}
}

// until returns what was said until a moment, and nothing of how it came out.
func until(history []chance.Entry, q chance.Question, cut berth.Time) (list []chance.Forecast) {
	for _, f := range chance.Evaluate(history, pes, q) {
		if f.At.Add(q.Later) <= cut {
			f.Happened = false
			list = append(list, f)
		}
	}
	return list
}

// Ask says of the next entry what Evaluate says of it, which goes through the history in the same way.
func TestAskAndEvaluateAgree(t *testing.T) {
	history := drawn(900, 5, 0.3, 0.7)
	q := chance.Question{Kind: chance.Accepted}
	list := chance.Evaluate(history, pes, q)
	for i := 300; i < 900; i += 50 {
		e := history[i]
		c := chance.Ask(history[:i], pes, q, e.Arrival, chance.Entry{Arrival: e.Arrival, Ready: e.Ready, Deadline: e.Deadline, Duration: e.Duration, NPE: e.NPE})
		if d := math.Abs(c.Share - list[i].Chance.Share); !c.Enough || d > 0.1 { // the calibration may be 50 cases older
			t.Errorf("entry %d: asked %+v, evaluated %+v", i, c, list[i].Chance)
		}
	}
}

// A window that is full has no room, so a request for it is known to be refused; with what was
// given back it is known to be accepted. That is the engine's rule here.
func TestRoomDecides(t *testing.T) {
	draws := stream.New(7, "room")
	var history []chance.Entry
	var full bool
	for i := range 3000 {
		at := berth.Time(1_000_000 + 2*86400*i)
		if full = draws.Float64(uint64(i)) < 0.5; true {
			wide := berth.Interval{Start: at + 40_000, End: at + 80_000}
			booking := chance.Entry{Arrival: at - 7200, Ready: wide.Start, Deadline: wide.End, Duration: 40_000, NPE: pes, Accepted: true, Beside: true, Place: wide, Promised: wide, Freed: wide.End}
			if !full {
				booking.Freed = at - 7000 // before it began
			}
			history = append(history, booking)
		}
		e := chance.Entry{Arrival: at, Ready: at + 45_000, Deadline: at + 60_000, Duration: 7200, NPE: 4, Answered: true, Accepted: !full}
		if e.Accepted {
			e.Place = berth.Interval{Start: e.Ready, End: e.Ready + 7200}
			e.Promised, e.Freed = e.Place, e.Place.End
		}
		history = append(history, e)
	}
	r := chance.Judge(chance.Evaluate(history, pes, inAnHour))
	if low, high := &r.Deciles[0], &r.Deciles[9]; r.Told < 2700 || low.N+high.N != r.Told || low.Happened != 0 || high.Happened != high.N {
		t.Errorf("%+v; want all known for sure", r)
	}
}

// The share of each tenth is within five points of what came true, of what was drawn.
func TestReliableOnDrawnHistories(t *testing.T) {
	for seed := range uint64(3) {
		history := drawn(20_000, seed, 0.25, 0.85)
		r := chance.Judge(chance.Evaluate(history, pes, inAnHour))
		for i := range r.Deciles {
			if d := &r.Deciles[i]; d.N >= 300 && math.Abs(d.Off()) > 0.05 {
				t.Errorf("seed %d: from %d %%: %d cases, said %.3f, off by %.3f", seed, 10*i, d.N, d.Said, d.Off())
			}
		}
		if r.Brier > r.Base*0.8 {
			t.Errorf("seed %d: off by %.4f, the mean by %.4f", seed, r.Brier, r.Base)
		}
	}
}

// Whether a job starts in time is learned from how much waits.
func TestStartsAreLearnedFromTheQueue(t *testing.T) {
	var history []chance.Entry
	free := berth.Time(1_000_000)
	for i := range 4000 {
		at := berth.Time(1_000_000 + 1800*i)
		d := berth.Duration(600)
		if i%200 < 40 {
			d = 5400 // the queue grows, and shrinks again
		}
		start := max(free, at)
		free = start.Add(d)
		p := berth.Interval{Start: start, End: free}
		history = append(history, chance.Entry{Arrival: at, Ready: at, Deadline: berth.Forever, Duration: d, NPE: pes, Job: true, Answered: true, Accepted: true, Place: p, Promised: p, Freed: p.End})
	}
	r := chance.Judge(chance.Evaluate(history, pes, chance.Question{Kind: chance.Started, Later: 7200}))
	if r.Told < 3500 || r.Brier > r.Base/4 {
		t.Errorf("%+v; want a fourth of the error of the mean", r)
	}
}

// A schedule's lines say what an entry needs: parts beside their case, moves, what was broken, jobs.
func TestFromLines(t *testing.T) {
	at := func(x berth.Time) *berth.Time { return &x }
	lines := []berth.Line{
		{ID: "a", Kind: berth.KindRequest, Part: 1, Arrival: 1, Ready: 2, Deadline: 90, Duration: 10, NPE: 3, Accepted: true, Start: at(20), End: at(30), ActualEnd: at(25)},
		{ID: "a", Kind: berth.KindRequest, Part: 2, Arrival: 1, Ready: 2, Deadline: 90, Duration: 10, NPE: 4, Accepted: true, Start: at(20), End: at(30)},
		{ID: "b", Kind: berth.KindRequest, Arrival: 1, Duration: 10, NPE: 3, Accepted: true, Start: at(40), End: at(50), PromisedStart: at(20), MovedFrom: []berth.FormerPlace{{At: 15, Start: 20, End: 30}}},
		{ID: "c", Kind: berth.KindRequest, Arrival: 1, Duration: 10, NPE: 3, Reason: berth.NoSuitableSite, PromisedStart: at(20)},
		{ID: "d", Kind: berth.KindRequest, Arrival: 1, Duration: 10, NPE: 3, Reason: berth.NoSuitableSite},
		{ID: "e", Kind: berth.KindJob, Arrival: 1, Duration: 10, NPE: 3},
		{ID: "f", Kind: berth.KindStaging, Arrival: 1, Accepted: true, Start: at(1), End: at(2)},
		{ID: "g", Kind: berth.KindOutage, Arrival: 1, NPE: 9, Start: at(5), End: at(6)},
	}
	got := ""
	for _, e := range chance.FromLines(lines) {
		got += fmt.Sprint(e.NPE, " job ", e.Job, " beside ", e.Beside, " answered ", e.Answered, " accepted ", e.Accepted, " moved ", e.Moved, " ", e.Promised, e.Place, e.Freed, "\n")
	}
	want := `3 job false beside false answered true accepted true moved false [20,30) [20,30) 25
4 job false beside true answered true accepted true moved false [20,30) [20,30) 30
3 job false beside false answered true accepted true moved true [20,30) [40,50) 50
3 job false beside false answered true accepted true moved true [20,30) [0,0) 20
3 job false beside false answered true accepted false moved false [0,0) [0,0) 0
3 job true beside false answered false accepted false moved false [0,0) [0,0) 0
9 job false beside true answered false accepted true moved false [5,6) [5,6) 6
`
	if got != want {
		t.Errorf("got\n%s", got)
	}
}
