//go:build unix

package servicebench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/postgres"
	"github.com/berth-hpc/berth/journal/postgres/postgrestest"
	"github.com/berth-hpc/berth/service"
)

// asked is a request as the API takes it.
func asked(r *berth.Request) *form.Request {
	v := r.Parts[0].Variants[0]
	return &form.Request{
		NPE: v.NPE, Duration: v.Duration, Ready: form.Time(r.Ready), Deadline: form.Time(r.Deadline), Site: r.Site,
	}
}

// reservations: 64 clients over loopback, closed loop, each request for 1 to 128
// PEs like those that are live. A refusal is an answer with its offers. The limit is the same clients in front
// of a handler without a service, beside the same heap: what the service costs a request is the difference.
func reservations(t *testing.T, size *sizes, lines *table) {
	reservationsOn(t, size, lines, openStore(t, t.TempDir()), "SQLite")
}

// reservationsInPostgreSQL: the same with the journal in a PostgreSQL on this machine,
// as its package sets it, whose processes take no part in the CPU time.
func reservationsInPostgreSQL(t *testing.T, size *sizes, lines *table) {
	store, err := postgres.Open(t.Context(), postgrestest.Start(t).URL(""), postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	reservationsOn(t, size, lines, store, "PostgreSQL")
}

// reservationsOn measures them on a journal, which it closes.
func reservationsOn(t *testing.T, size *sizes, lines *table, store journal.Store, where string) {
	t.Helper()
	const clients = 64
	config := clusters(1, size.pes)
	h := open(t, &service.Options{Config: config, Journal: store})
	d := newDemand(h, size.live, size.pes, 7)
	watch := stopwatch()
	refused := fill(t, h, d, size.live, 1, 1)
	filled := watch()
	handler, secret := answering(t, h, "ann")
	ask := func(speaker *client.Client, n int, seed uint64) (accepted int, took latencies, all spent) {
		var yes atomic.Int64
		watch := stopwatch()
		took = crowd(t, clients, n, seed, func(ctx context.Context, r *rand.Rand, _ int) error {
			q := d.draw(r)
			a, err := speaker.Request(ctx, asked(&q), client.Action{})
			switch {
			case err != nil:
				return err
			case a.Decision == form.Accepted:
				yes.Add(1)
			case a.Decision != form.Refused || a.Refusal == nil:
				return fmt.Errorf("answered %+v", a)
			}
			return nil
		})
		return int(yes.Load()), took, watch()
	}
	accepted, took, all := ask(speakTo(t, handler, secret, clients), size.requests, 2)
	recorder, answers := recording(handler)
	ask(speakTo(t, recorder, secret, clients), min(size.requests, 1000), 3)
	sent, _, limit := ask(speakTo(t, bare(answers()), secret, clients), size.requests, 4)
	right(t, h, &config)
	if err := errors.Join(h.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	lines.add(fmt.Sprintf("durable reservations, %s, API, 64 clients, %d live", where, size.live-refused), "4000/s, p99 60 ms",
		"%s (%d accepted of %d), %s; %s", perSecond(accepted, all.wall), accepted, size.requests, took, all)
	lines.add("  the limit: a handler that reads as much and answers what others were answered", "", "%s; %s", perSecond(sent, limit.wall), limit)
	lines.add("  without the API: 256 at once, on an empty calendar at first", "", "%s; %s", perSecond(size.live, filled.wall), filled)
}

// offers: 16 clients over loopback, closed loop, ask what could be had instead
// of requests that cannot be promised as asked and for which there are five
// alternatives; two sites share the PEs, as one site has four kinds of offer. The
// service's clock stands still: an offer that starts now is none a second later.
func offers(t *testing.T, size *sizes, lines *table) {
	const clients, most = 16, 5
	store, config := openStore(t, t.TempDir()), clusters(2, size.pes)
	stopped := time.Now()
	h := open(t, &service.Options{Config: config, Journal: store, Clock: func() time.Time { return stopped }})
	d := newDemand(h, size.live, size.pes, 6)
	refused := fill(t, h, d, size.live, 1, 2)
	questions := fivefold(t, h, d)
	speaker := speak(t, h, clients)
	watch := stopwatch()
	took := crowd(t, clients, size.offers, 4, func(ctx context.Context, _ *rand.Rand, i int) error {
		list, err := speaker.Offers(ctx, asked(&questions[i%len(questions)]), most)
		if err == nil && len(list) != most {
			err = fmt.Errorf("%d offers", len(list))
		}
		return err
	})
	all := watch()
	if err := errors.Join(h.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	lines.add(fmt.Sprintf("five offers each, API, 16 clients, %d live", size.live-refused), "2000/s, p99 20 ms",
		"%s, %s; %s", perSecond(size.offers, all.wall), took, all)
}

// fivefold draws requests with five alternatives, and takes up every alternative
// of each once: it must be promised as it was offered. What was taken is given
// back.
func fivefold(t *testing.T, h *service.Host, d demand) []berth.Request {
	t.Helper()
	const want = 64
	r := rand.New(rand.NewPCG(3, 0))
	var questions []berth.Request
	for range 200 * want {
		if len(questions) == want {
			return questions
		}
		q := d.draw(r)
		length := q.Parts[0].Variants[0].Duration
		q = berth.Rigid("", 0, q.Ready, q.Ready.Add(length), berth.Count(32+r.IntN(160)), length)
		list, err := h.Offers(t.Context(), ann, q, 5)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) < 5 {
			continue
		}
		for i := range list {
			a, err := h.Hold(t.Context(), ann, list[i].ID, 600)
			if err != nil || a.Reservation.State != service.Held {
				t.Fatalf("offered was %+v, held is %+v, %v", list[i], a.Reservation, err)
			}
			if want, got := list[i].Allotments[0], a.Reservation.Allotments[0]; got.Resource != want.Resource || got.Start != want.Start || got.End != want.End || got.NPE != want.NPE {
				t.Fatalf("offered was %+v, held is %+v", want, got)
			}
			if _, err := h.Release(t.Context(), ann, a.Reservation.ID); err != nil {
				t.Fatal(err)
			}
		}
		questions = append(questions, q)
	}
	if len(questions) == 0 {
		t.Fatal("no request has five alternatives")
	}
	return questions
}
