package service_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// drawing is what a host says holds PEs of the harbour, to one who looks.
type drawing struct {
	Spans, Window, Second []service.Span
	Bars                  []string
	Numbers               []uint32
	Parts                 [][]service.Span // of some numbers
}

// drawn asks a host for everything that is drawn of the harbour.
func (w *harbour) drawn(h *service.Host, by service.Principal, pool berth.ResourceID) (d drawing) {
	w.t.Helper()
	ctx := w.t.Context()
	spans := func(from, to berth.Time, after service.Mark, limit int) []service.Span {
		list, err := h.Occupation(ctx, by, "harbour", from, to, after, limit)
		if err != nil {
			w.t.Fatal(err)
		}
		return list
	}
	start := service.Mark{Start: -berth.Forever}
	d.Spans = spans(-berth.Forever, berth.Forever, start, 10_000)
	d.Window = spans(w.now()-100, w.now()+400, start, 5)
	if n := len(d.Window); n > 0 {
		d.Second = spans(w.now()-100, w.now()+400, d.Window[n-1].Mark, 5)
	}
	picture, err := h.Gantt(ctx, by, pool)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, page := range append(slices.Clone(picture.Pages), picture.Unplaced) {
		for _, b := range page {
			d.Bars = append(d.Bars, fmt.Sprintf("%d-%d of %d+%d: %d, class %d, flags %d", b.Start, b.End, b.First, b.PEs, b.Number, b.Class, picture.Shown(&b)))
		}
	}
	if d.Numbers, err = h.Named(ctx, by, pool, "an"); err != nil {
		w.t.Fatal(err)
	}
	for _, number := range d.Numbers {
		parts, err := h.Spans(ctx, by, "harbour", number)
		if coded, is := errors.AsType[*berth.Error](err); err != nil && (!is || coded.Code != berth.NotFound) { // it never held PEs
			w.t.Fatal(err)
		}
		d.Parts = append(d.Parts, parts)
	}
	return d
}

// drawnAlike compares what two hosts say holds PEs, to all who may look.
func (w *harbour) drawnAlike(a, b *service.Host, pool berth.ResourceID) {
	w.t.Helper()
	for _, by := range []service.Principal{root.By, ann.By, bob.By, {User: "eve", Role: service.Viewer}} {
		if diff := cmp.Diff(w.drawn(a, by, pool), w.drawn(b, by, pool)); diff != "" {
			w.t.Fatalf("for %s: %s", by.User, diff)
		}
	}
}

// vary has something happen that a storm has not: what is held, confirmed, modified, of several parts, an array, a series or a workflow.
func (s *storm) vary(n int) {
	ask, now := []service.Ask{ann, bob}[s.IntN(2)], s.now()
	length := berth.Duration(50 + s.IntN(900))
	r := berth.Rigid(fmt.Sprint("v", n), 0, now, now.Add(length)+berth.Time(s.IntN(2000)), berth.Count(1+s.IntN(3)), length)
	id := "none"
	if len(s.ids) > 0 {
		id = s.ids[s.IntN(len(s.ids))]
	}
	var err error
	switch s.IntN(7) {
	case 0, 1:
		r.Hold = berth.Duration(100 + s.IntN(300))
		if _, err = s.host.Submit(s.t.Context(), ask, r); err == nil && ask.By == ann.By {
			s.ids = append(s.ids, r.ID) // a storm acts on those of one user
		}
	case 2:
		_, err = s.host.Confirm(s.t.Context(), root, id)
	case 3:
		_, err = s.host.Modify(s.t.Context(), root, id, r)
	case 4:
		_, err = s.host.SubmitArray(s.t.Context(), ask, r, 1+s.IntN(3))
	case 5:
		series := berth.Series{Rule: "every 300 s", Zone: "UTC", Least: 1, Request: berth.Rigid("", 0, 0, 1, 1, 100)}
		for i := range berth.Time(3) {
			series.Occurrences = append(series.Occurrences, berth.Occurrence{Ready: now + 100 + 300*i, Deadline: now + 300 + 300*i})
		}
		_, err = s.host.SubmitSeries(s.t.Context(), ask, series)
	case 6:
		_, err = s.host.SubmitWorkflow(s.t.Context(), ask, berth.Workflow{
			ID: fmt.Sprint("w", n), Deadline: now + 4000, Algorithm: berth.BestAlgorithm, Repair: berth.RepairBoth,
			Tasks: []berth.WorkflowTask{{ID: "a", Seconds: 200, Most: 2}, {ID: "b", Seconds: 300, Most: 1, After: []int{0}}},
		})
	}
	if e, is := errors.AsType[*berth.Error](err); err != nil && (!is || e.Code != berth.Conflict && e.Code != berth.NotFound && e.Code != berth.Invalid) {
		s.t.Fatal(err)
	}
}

// What holds PEs when, as spans, in pages and as pictures, a host that stands by tells to each who asks as the leader does, once
// it is in step: through requests of all kinds, failing nodes, bookings of others, restarts and take-overs.
func TestStandbyDrawsWhatTheLeaderDraws(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			harbourOf(t, []site.Unit{site.UnitNode, site.UnitCore}[seed%2], true, func(t *testing.T, w *harbour) {
				s := storm{w, rand.New(rand.NewPCG(seed, 21)), t, nil}
				pool := w.pool()
				standby := w.beside()
				defer func() { _ = standby.Close() }()
				time.Sleep(time.Second / 2) // what happens does so at whole seconds, and is looked at in between
				bars := 0
				for step := range 40 {
					if s.IntN(2) == 0 {
						s.vary(step)
					} else {
						s.happen()
					}
					w.pass(1 + s.IntN(30))
					w.drawnAlike(w.host, standby, pool)
					bars += len(w.drawn(standby, ann.By, pool).Bars)
					if step%20 != 19 {
						continue
					}
					if err := w.host.Close(); err != nil {
						t.Fatal(err)
					}
					next, err := standby.Lead(t.Context(), w.options)
					if err != nil {
						t.Fatal(err)
					}
					if err := standby.Close(); err != nil {
						t.Fatal(err)
					}
					w.host, standby = next, w.beside()
					w.pass(1)
					w.drawnAlike(w.host, standby, pool)
				}
				w.site.Heal()
				w.pass(300) // what is under way at the site ends
				w.drawnAlike(w.host, standby, pool)
				if bars < 40 {
					t.Errorf("only %d bars were compared", bars)
				}
			})
		})
	}
}

// What a host that stands by would have to know from the loop it does not guess: limits as they count now are asked of the
// leader, and once it leads they are what the leader said.
func TestStandbySaysNoLimitsThatItCannotKnow(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		config := w.options.Config
		config.Limits = policy.Limits{
			{Scope: policy.Scope{Role: string(service.User)}, Name: policy.LimitActive, Value: 3},
			{Scope: policy.Scope{QOS: "short"}, Name: policy.LimitLength, Value: 1000},
		}
		if err := w.host.Close(); err != nil {
			t.Fatal(err)
		}
		w.options.Config = config
		w.open()
		w.reserve("a", 1, 0, 3000)
		w.reserve("b", 1, 1000, 1000)
		standby := w.beside()
		quotas := func(h *service.Host) (string, error) {
			list, err := h.Quotas(t.Context(), root.By, []service.Principal{ann.By, bob.By})
			if err != nil {
				return "", err
			}
			shared, err := h.SharedQuotas(t.Context(), root.By)
			return fmt.Sprintf("%+v %+v", list, shared), err
		}
		before, err := quotas(w.host)
		if err != nil {
			t.Fatal(err)
		}
		_, err = quotas(standby)
		wantCode(t, err, berth.Unavailable)
		_, err = standby.SharedQuotas(t.Context(), root.By)
		wantCode(t, err, berth.Unavailable)
		if err := w.host.Close(); err != nil {
			t.Fatal(err)
		}
		next, err := standby.Lead(t.Context(), w.options)
		if err != nil {
			t.Fatal(err)
		}
		if err := standby.Close(); err != nil {
			t.Fatal(err)
		}
		w.host = next
		w.pass(1)
		if after, err := quotas(w.host); err != nil || after != before {
			t.Errorf("limits are %s, %v; were %s", after, err, before)
		}
		w.reserve("c", 1, 2000, 100)
		if no := submit(t, w.host, ann, berth.Rigid("d", 0, w.now(), w.now()+5000, 1, 100)); no.Reservation.State != service.Refused || no.Reservation.Refusal.Reason != berth.Quota {
			t.Errorf("a fourth is %+v", no.Reservation)
		}
	})
}
