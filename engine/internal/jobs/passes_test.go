package jobs_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/engine/internal/jobs"
	"github.com/berth-hpc/berth/engine/internal/place"
	"github.com/berth-hpc/berth/engine/internal/state"
	"github.com/berth-hpc/berth/policy"
)

const (
	poolSize = 6
	horizon  = 2000 // seconds: longer than all jobs one after the other
)

// runner drives a Runner on one pool of late binding, as the engine does.
type runner struct {
	*jobs.Runner
	t     *testing.T
	state *state.State
	pool  berth.ResourceID
}

func newRunner(t *testing.T, pass jobs.Pass, flat, compress bool) *runner {
	t.Helper()
	sites := []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: poolSize, Binding: berth.Late}}}}
	match, _ := policy.MatchNamed(policy.Matches[0].Name)
	s := state.New(state.Config{
		Sites: sites, Form: calendar.Forms[0], Order: policy.Queues[0], Ranks: state.Ranks{0, 1, 2, 3, 4, 5}, Plans: pass.Plans, Flat: flat,
	})
	finder := place.NewFinder(place.Rules{Sites: sites, Match: match, Choice: policy.EarliestFinish}, s)
	r := &runner{t: t, state: s, pool: berth.PoolID("s", "p")}
	r.Runner = jobs.NewRunner(pass, compress, false, s, finder, r)
	return r
}

func (r *runner) Accepted() *berth.Reservation { return new(berth.Reservation) }
func (r *runner) Planned() *berth.Allotment    { return new(berth.Allotment) }

func (r *runner) Room(kind change.Kind) *change.Change { return &change.Change{Kind: kind} }

func (r *runner) Fold(c *change.Change, about state.Ref) {
	r.t.Helper()
	if c.Kind == change.Planned && c.Plan != nil && c.Plan.Start >= about.Job.PlannedStart() {
		r.t.Fatalf("the plan of %q for %d becomes one for %d", c.ID, about.Job.PlannedStart(), c.Plan.Start)
	}
	if err := r.state.Fold(c, about); err != nil {
		r.t.Fatalf("%s of %q: %v", c.Kind, c.ID, err)
	}
}

func (r *runner) fold(c change.Change) { r.Fold(&c, state.Ref{}) }

func (r *runner) arrives(id string, npe berth.Count, length berth.Duration) {
	j := berth.Job(id, r.state.Now(), npe, length)
	r.fold(change.Change{Kind: change.Queued, ID: id, Request: &j})
	r.Arrived()
}

func (r *runner) promise(id string, npe berth.Count, at berth.Time, length berth.Duration) {
	request := berth.Rigid(id, r.state.Now(), at, at.Add(length), npe, length)
	allotments := []berth.Allotment{{Resource: r.pool, Start: at, End: at.Add(length), NPE: npe}}
	r.fold(change.Change{Kind: change.Queued, ID: id, Request: &request})
	r.MakeWay(allotments)
	r.fold(change.Change{Kind: change.Accepted, ID: id, Reservation: &berth.Reservation{
		Request: &request, State: berth.Confirmed, Sequence: r.state.Sequence() + 1, Allotments: allotments,
	}})
	r.Plan()
}

func (r *runner) ends(id string) {
	r.fold(change.Change{Kind: change.Cancelled, ID: id})
	r.Freed()
}

// advance lets a second pass and what is due happen.
func (r *runner) advance(now berth.Time) {
	r.fold(change.Change{Kind: change.Advanced, Now: now})
	freed := false
	for at, _ := r.state.Due(); at <= now; at, _ = r.state.Due() {
		switch due := r.state.Next(); due.Class {
		case state.ClassEnd:
			r.Fold(&change.Change{Kind: change.Ended, ID: due.Entry.ID()}, state.Ref{Entry: due.Entry})
			freed = true
		case state.ClassPeriod:
			plan, _ := due.Job.Plan()
			r.Run(due.Job, &plan)
		case state.ClassStart:
			pes, _ := r.state.Idle(0, due.Entry.Part(0).NPE, berth.PESet{}, due.Entry.End())
			r.Fold(&change.Change{Kind: change.Started, ID: due.Entry.ID(), PEs: []berth.PESet{pes}}, state.Ref{Entry: due.Entry})
		default:
			r.t.Fatalf("a timer of class %d is due", due.Class)
		}
	}
	if freed {
		r.Freed()
	}
}

// shown says where everything that is live or planned is.
func (r *runner) shown() string {
	places := map[string]string{}
	for _, e := range r.state.Entries() {
		places[e.ID()] = fmt.Sprint(e.Start())
	}
	for j := range r.state.Backlog().All() {
		places[j.Request().ID] = "waits"
		if start := j.PlannedStart(); start < berth.Forever {
			places[j.Request().ID] = fmt.Sprint("planned ", start)
		}
	}
	return listed(places)
}

func listed(places map[string]string) string {
	text := ""
	for _, id := range slices.Sorted(maps.Keys(places)) {
		text += id + ": " + places[id] + "\n"
	}
	return text
}

// model does the same second by second, with the number of PEs that are taken in each.
type model struct {
	pass     string
	compress bool
	now      int
	held     [horizon]berth.Count // by promises and running jobs
	planned  [horizon]berth.Count
	waiting  []*span // in order
	live     map[string]*span
}

// span is a promise or a job with its place; of a waiting job that is its plan, if it
// has one.
type span struct {
	id         string
	npe        berth.Count
	start, end int
	length     int
	isPlanned  bool
}

func book(seconds *[horizon]berth.Count, h *span, npe berth.Count) {
	for at := h.start; at < h.end; at++ {
		seconds[at] += npe
	}
}

// free reports whether there is room from a time on, whatever is planned.
func (m *model) free(h *span, from int) bool {
	return slices.Max(m.held[from:from+h.length])+h.npe <= poolSize
}

// fits reports whether there is room beside the plans too.
func (m *model) fits(h *span, from int) bool {
	for at := from; at < from+h.length; at++ {
		if m.held[at]+m.planned[at]+h.npe > poolSize {
			return false
		}
	}
	return true
}

func (m *model) earliest(h *span) int {
	from := m.now
	for !m.fits(h, from) {
		from++
	}
	return from
}

func (m *model) run(h *span) {
	m.waiting = slices.DeleteFunc(m.waiting, func(other *span) bool { return other == h })
	h.start, h.end = m.now, m.now+h.length
	book(&m.held, h, h.npe)
	m.live[h.id] = h
}

func (m *model) unplan(h *span) {
	if h.isPlanned {
		book(&m.planned, h, -h.npe)
		h.isPlanned = false
	}
}

func (m *model) plan(h *span) {
	if h.start = m.earliest(h); h.start == m.now {
		m.run(h)
		return
	}
	h.end, h.isPlanned = h.start+h.length, true
	book(&m.planned, h, h.npe)
}

// look does what the pass does when jobs arrive.
func (m *model) look() {
	switch m.pass {
	case "conservative":
		for _, h := range slices.Clone(m.waiting) {
			if !h.isPlanned {
				m.plan(h)
			}
		}
	case "lazy":
		for {
			var widest *span
			for _, h := range m.waiting {
				if m.fits(h, m.now) && (widest == nil || h.npe > widest.npe) {
					widest = h
				}
			}
			if widest == nil {
				return
			}
			m.run(widest)
		}
	default:
		for len(m.waiting) > 0 && m.fits(m.waiting[0], m.now) {
			m.run(m.waiting[0])
		}
		if m.pass == "fcfs" || len(m.waiting) == 0 {
			return
		}
		first := m.waiting[0]
		first.start, first.isPlanned = m.earliest(first), true
		first.end = first.start + first.length
		book(&m.planned, first, first.npe)
		for _, h := range slices.Clone(m.waiting[1:]) {
			if m.fits(h, m.now) {
				m.run(h)
			}
		}
		m.unplan(first)
	}
}

// freed does what the pass does when PEs are given back.
func (m *model) freed() {
	m.look()
	if !m.compress {
		return
	}
	for _, h := range slices.Clone(m.waiting) {
		m.unplan(h)
		m.plan(h)
	}
}

func (m *model) arrives(id string, npe berth.Count, length int) {
	m.waiting = append(m.waiting, &span{id: id, npe: npe, length: length})
	m.look()
}

func (m *model) promise(h *span) {
	m.live[h.id] = h
	if !m.fits(h, h.start) {
		for _, other := range m.waiting {
			m.unplan(other)
		}
	}
	book(&m.held, h, h.npe)
	if m.pass == "conservative" {
		m.look()
	}
}

func (m *model) ends(id string) {
	h := m.live[id]
	delete(m.live, id)
	h.start = max(h.start, m.now)
	book(&m.held, h, -h.npe)
	m.freed()
}

func (m *model) advance() {
	m.now++
	freed := false
	for id, h := range m.live {
		if h.end == m.now {
			delete(m.live, id)
			freed = true
		}
	}
	for _, h := range slices.Clone(m.waiting) {
		if h.isPlanned && h.start == m.now {
			m.unplan(h)
			m.run(h)
		}
	}
	if freed {
		m.freed()
	}
}

func (m *model) shown() string {
	places := map[string]string{}
	for id, h := range m.live {
		places[id] = fmt.Sprint(h.start)
	}
	for _, h := range m.waiting {
		places[h.id] = "waits"
		if h.isPlanned {
			places[h.id] = fmt.Sprint("planned ", h.start)
		}
	}
	return listed(places)
}

// Every pass, in each of its forms, starts and plans jobs where a walk over the
// seconds does, beside promises that come in between and jobs that end early.
func TestPassesEqualSeconds(t *testing.T) {
	for _, pass := range jobs.Passes {
		for _, flat := range []bool{false, true} {
			for _, compress := range []bool{false, true} {
				if flat && !pass.Flat || compress && !pass.Plans {
					continue
				}
				t.Run(fmt.Sprintf("%s/flat=%t/compress=%t", pass.Name, flat, compress), func(t *testing.T) {
					for seed := range uint64(20) {
						compare(t, rand.New(rand.NewPCG(seed, 5)), newRunner(t, pass, flat, compress), &model{
							pass: pass.Name, compress: compress, live: map[string]*span{},
						})
					}
				})
			}
		}
	}
}

// compare lets both do the same for a while.
func compare(t *testing.T, rng *rand.Rand, r *runner, m *model) {
	t.Helper()
	history := ""
	for n := range 150 {
		npe, length := 1+berth.Count(min(rng.IntN(poolSize), rng.IntN(2*poolSize))), 1+rng.IntN(12)
		id := fmt.Sprintf("%03d", n)
		switch kind := rng.IntN(10); {
		case kind < 4:
			m.arrives(id, npe, length)
			r.arrives(id, npe, berth.Duration(length))
			history += fmt.Sprintf("%s arrives: %dx%d\n", id, npe, length)
		case kind < 5:
			h := &span{id: id + "p", npe: npe, length: length, start: m.now + 1 + rng.IntN(20)}
			h.end = h.start + length
			if !m.free(h, h.start) {
				continue
			}
			m.promise(h)
			r.promise(h.id, npe, berth.Time(h.start), berth.Duration(length))
			history += fmt.Sprintf("%s at %d: %dx%d\n", h.id, h.start, npe, length)
		case kind < 6 && len(m.live) > 0:
			ids := slices.Sorted(maps.Keys(m.live))
			id := ids[rng.IntN(len(ids))]
			m.ends(id)
			r.ends(id)
			history += id + " ends\n"
		default:
			m.advance()
			r.advance(berth.Time(m.now))
			history += fmt.Sprintf("it is %d\n", m.now)
		}
		if got, want := r.shown(), m.shown(); got != want {
			t.Fatalf("%s\nthen\n%s\nwant\n%s", history, got, want)
		}
	}
}
