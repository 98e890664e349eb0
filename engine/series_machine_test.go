package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/policy"
)

// Series among requests, jobs, outages and all that can be done about a reservation, with limits and without,
// and restarts: what is promised of a series is what it says. Where no jobs and no chance are in between, a series that is
// content with any occurrence gets what its occurrences get one by one.
func TestSeriesMachine(t *testing.T) {
	reached := map[string]int{}
	missing := func() (list []string) {
		for _, what := range []string{
			"promised", "refused", "in part", "one by one", "skipped", "ended", "modify", "extend", "check_in", "confirm", "cancel", "finish", "relocate", "down", "up", "restart", "limits", "expired", "no_show",
			"modified", "modified with what is to come", "none modified", "modified like apart", "open", "prolonged", "refused at its turn", "skipped ahead", "cut", "over",
		} {
			if reached[what] == 0 {
				list = append(list, what)
			}
		}
		return list
	}
	for round := 0; round < 20 && !t.Failed() && (round == 0 || effort.Full() && !testing.Short() && len(missing()) > 0); round++ {
		rapid.Check(t, func(t *rapid.T) {
			config := drawConfig(t)
			if rapid.Bool().Draw(t, "no jobs") {
				config.Trigger, config.Period, config.Match, config.Immediate = engine.TriggerOnArrival, 0, policy.Matches[0].Name, engine.ImmediateRefuse
			}
			if rapid.Bool().Draw(t, "limits") {
				kind := rapid.SampledFrom([]policy.LimitName{policy.LimitActive, policy.LimitReservations, policy.LimitPESeconds, policy.LimitShare, policy.LimitLead, policy.LimitLength}).Draw(t, "limit")
				config.Limits = policy.Limits{{
					Scope: rapid.SampledFrom([]policy.Scope{{}, {Account: policy.Every}, {QOS: "q0"}}).Draw(t, "scope"),
					Name:  kind, Value: int64(rapid.IntRange(1, 400).Draw(t, "value")),
				}}
			}
			m := &seriesMachine{t: t, config: config, now: 0, reached: reached}
			var err error
			if m.e, err = engine.New(config); err != nil {
				t.Fatal(err)
			}
			if m.follower, err = engine.New(config); err != nil {
				t.Fatal(err)
			}
			for step := range rapid.IntRange(1, 60).Draw(t, "steps") {
				m.now += berth.Time(rapid.SampledFrom([]int{0, 0, 1, 3, 8, 70}).Draw(t, "pause"))
				m.step(step)
			}
		})
	}
	if list := missing(); !t.Failed() && effort.Full() && !testing.Short() && len(list) > 0 {
		t.Errorf("no history has come to %q: %v", list, reached)
	}
}

type seriesMachine struct {
	t        *rapid.T
	config   engine.Config
	e        *engine.Engine
	follower *engine.Engine
	now      berth.Time
	all      []*berth.Series
	open     map[string]*followed
	// followedAt is the time up to which changes were followed.
	followedAt berth.Time
	jobs       bool // there have been some
	reached    map[string]int
}

// occurrence draws the id of an occurrence, one in a state if there is any.
func (m *seriesMachine) occurrence(state berth.State) string {
	var live []string
	for _, s := range m.all {
		for n := range s.Occurrences {
			id := berth.OccurrenceID(s.ID, n+1)
			if r, is := m.e.Reservation(id); is && (r.State == state || state == "") {
				live = append(live, id)
			}
		}
	}
	if len(live) > 0 && rapid.IntRange(0, 9).Draw(m.t, "any") > 0 {
		return rapid.SampledFrom(live).Draw(m.t, "occurrence")
	}
	s := rapid.SampledFrom(m.all).Draw(m.t, "series")
	return berth.OccurrenceID(s.ID, rapid.IntRange(1, len(s.Occurrences)).Draw(m.t, "number"))
}

func (m *seriesMachine) step(step int) {
	event := engine.Wake()
	kind := rapid.IntRange(0, 14).Draw(m.t, "kind")
	if len(m.all) == 0 && kind > 4 {
		kind = 0
	}
	switch kind {
	case 0, 1:
		m.submit(step)
		return
	case 2:
		r := drawRequest(m.t, fmt.Sprintf("r%d", step), m.now)
		event = engine.Submit(&r)
	case 3:
		r := drawJob(m.t, fmt.Sprintf("j%d", step), m.now)
		m.jobs, event = true, engine.Submit(&r)
	case 4:
		event = drawOutage(m.t, m.config)
	case 5:
		s := rapid.SampledFrom(m.all).Draw(m.t, "series")
		var of []string
		for n := rapid.IntRange(1, len(s.Occurrences)).Draw(m.t, "from"); n <= len(s.Occurrences); n++ {
			of = append(of, berth.OccurrenceID(s.ID, n))
		}
		event = m.giveBack(s, of)
	case 6:
		r := drawRequest(m.t, m.occurrence(""), m.now)
		if was, is := m.e.Reservation(r.ID); is {
			r.User = was.Request.User
		}
		event = engine.Modify(&r)
	case 13, 14:
		m.modify()
		return
	case 7:
		event = engine.Extend(m.occurrence(""), m.now+berth.Time(rapid.IntRange(1, 40).Draw(m.t, "until")))
	case 8:
		event = engine.CheckIn(m.occurrence(berth.Active))
	case 9:
		event = engine.Confirm(m.occurrence(berth.Held))
	case 10:
		event = engine.Cancel(m.occurrence(""))
		if rapid.Bool().Draw(m.t, "ends") {
			event = engine.Finish(m.occurrence(berth.Active))
		}
	case 11:
		if r, is := m.e.Reservation(m.occurrence("")); is {
			event = engine.Relocate(r.Request.ID, r.Allotments[0].Resource, berth.PEsOf(rapid.SampledFrom([]berth.PE{0, 1, 2}).Draw(m.t, "pe")))
		}
	case 12:
		m.reached["restart"]++
		again, err := engine.Restore(m.config, m.e.Snapshot())
		if err != nil {
			m.t.Fatal(err)
		}
		m.e = again
	}
	changes, err := m.apply(event)
	if err != nil {
		return
	}
	m.reached[string(event.Kind)]++
	if event.Kind == engine.EventCancelSeries {
		for i := range changes {
			switch changes[i].Kind {
			case change.Cancelled:
				m.reached["skipped"]++
			case change.Ended:
				m.reached["ended"]++
			}
		}
		for _, id := range event.Of {
			if _, is := m.e.Reservation(id); is {
				m.t.Fatalf("%s is live after it was given back", id)
			}
		}
	}
}

// apply applies an event, and has another engine follow.
func (m *seriesMachine) apply(event engine.Event) ([]change.Change, error) {
	changes, _, err := m.e.Apply(m.now, event)
	if err := m.e.Check(); err != nil {
		m.t.Fatalf("after %s at %d: %v", event.Kind, m.now, err)
	}
	if err := m.follower.Fold(changes); err != nil {
		m.t.Fatalf("after %s at %d: %v", event.Kind, m.now, err)
	}
	if m.follower.Hash() != m.e.Hash() {
		m.t.Fatalf("after %s at %d: who follows is elsewhere", event.Kind, m.now)
	}
	if event.Kind != engine.EventSubmitSeries {
		m.follow(changes)
	}
	for i := range changes {
		if k := changes[i].Kind; k == change.Expired || k == change.NoShow {
			m.reached[string(k)]++
		}
	}
	return changes, err
}

// sharing draws an account and a QOS, in which there may be limits.
func (m *seriesMachine) sharing() berth.Sharing {
	return berth.Sharing{
		Account: rapid.SampledFrom([]string{"", "a0", "a1"}).Draw(m.t, "account"), QOS: rapid.SampledFrom([]string{"", "q0", "q1"}).Draw(m.t, "qos"),
	}
}

func (m *seriesMachine) submit(step int) {
	s := &berth.Series{ID: fmt.Sprintf("s%d", step), Request: drawRequest(m.t, "", m.now)}
	s.Request.Sharing = m.sharing()
	n := rapid.IntRange(1, 6).Draw(m.t, "occurrences")
	whole := n
	ready, length := s.Request.Ready, s.Request.Deadline-s.Request.Ready
	for range n {
		s.Occurrences = append(s.Occurrences, berth.Occurrence{Ready: ready, Deadline: ready + length})
		ready += berth.Time(rapid.SampledFrom([]int{1, 5, 20, 60}).Draw(m.t, "apart"))
	}
	if rapid.Bool().Draw(m.t, "open") {
		longer := berth.Time(rapid.SampledFrom([]int{0, 200}).Draw(m.t, "longer"))
		for i := range s.Occurrences { // so that what cannot be at its turn may be later
			s.Occurrences[i].Deadline += longer
		}
		s.Ahead = s.Occurrences[0].Ready.Sub(m.now) + berth.Duration(rapid.SampledFrom([]int{1, 1, 10, 50}).Draw(m.t, "ahead"))
	}
	n = s.Due(m.now)
	s.Least = rapid.SampledFrom([]int{1, n, (n + 1) / 2}).Draw(m.t, "least")
	_, _ = m.apply(engine.Wake())
	oneByOne := m.oneByOne(s)
	changes, err := m.apply(engine.SubmitSeries(s))
	if err != nil {
		m.t.Fatalf("a series at %d: %v", m.now, err)
	}
	at := slices.IndexFunc(changes, func(c change.Change) bool {
		return c.Kind == change.SeriesPromised || c.Kind == change.SeriesRefused
	})
	decided := &changes[at]
	cannot := map[int]*berth.Refusal{}
	for i := range decided.Unfit {
		cannot[decided.Unfit[i].Number] = &decided.Unfit[i].Refusal
	}
	promised := decided.Kind == change.SeriesPromised
	if promised != (n-len(cannot) >= s.Least) {
		m.t.Fatalf("%d of %d can be, at least %d must: it is %s", n-len(cannot), n, s.Least, decided.Kind)
	}
	accepted := map[string]*berth.Reservation{}
	for i := range changes {
		if c := &changes[i]; c.Kind == change.Accepted && c.Reservation.Request.Series != nil {
			accepted[c.ID] = c.Reservation
		}
	}
	for i := range s.Occurrences[:n] {
		o, r := &s.Occurrences[i], accepted[berth.OccurrenceID(s.ID, i+1)]
		if (r != nil) != (promised && cannot[i+1] == nil) {
			m.t.Fatalf("occurrence %d, promised %t, refused %v, is %v", i+1, promised, cannot[i+1], r)
		}
		if r != nil && (r.Start() < o.Ready || r.End() > o.Deadline) {
			m.t.Fatalf("occurrence %d is from %d to %d, in a window from %d to %d", i+1, r.Start(), r.End(), o.Ready, o.Deadline)
		}
	}
	if oneByOne != nil && s.Least == 1 && promised {
		m.reached["one by one"]++
		if got, want := fmt.Sprint(placesIn(changes)), fmt.Sprint(placesIn(oneByOne)); got != want {
			m.t.Fatalf("together they are at\n%s\none by one at\n%s", got, want)
		}
	}
	switch {
	case !promised:
		m.reached["refused"]++
	case len(cannot) > 0:
		m.reached["in part"]++
	default:
		m.reached["promised"]++
	}
	for _, r := range cannot {
		if r.Reason == berth.Quota {
			m.reached["limits"]++
		}
	}
	m.all = append(m.all, s)
	if promised && n < whole {
		m.reached["open"]++
	}
	m.follow(changes)
}

// oneByOne returns what comes of the occurrences as requests of their own; nil where jobs or chance are in between.
func (m *seriesMachine) oneByOne(s *berth.Series) (all []change.Change) {
	if m.jobs || m.config.Trigger != engine.TriggerOnArrival || m.config.Match == "random" {
		return nil
	}
	e, err := engine.Restore(m.config, m.e.Snapshot())
	if err != nil {
		m.t.Fatal(err)
	}
	for _, r := range s.Requests()[:s.Due(m.now)] {
		changes, _, err := e.Apply(m.now, engine.Submit(&r))
		if err != nil {
			m.t.Fatal(err)
		}
		all = append(all, changes...)
	}
	return all
}

// placesIn lists what is promised, and where.
func placesIn(changes []change.Change) (list []string) {
	for i := range changes {
		if c := &changes[i]; c.Kind == change.Accepted {
			r := c.Reservation
			list = append(list, fmt.Sprintln(c.ID, r.Allotments, r.Stocks, r.Transfers, r.Terms))
		}
	}
	return list
}
