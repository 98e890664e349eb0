package service_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

// bindings runs a test in front of sites under early binding, and under late binding.
func bindings(t *testing.T, names []string, test func(t *testing.T, w *quays)) {
	t.Helper()
	for name, ahead := range map[string]berth.Duration{"early": 0, "late": 600} {
		t.Run(name, func(t *testing.T) { atQuays(t, ahead, names, test) })
	}
}

// both is a request for three nodes at each of two sites, since neither has room for six.
func both(id string, from, until berth.Time, length berth.Duration) berth.Request {
	r := berth.Rigid(id, 0, from, until, 3, length)
	r.Parts = append(r.Parts, berth.Part{Variants: []berth.Variant{{NPE: 3, Duration: length}}})
	return r
}

// underway is a change that is answered some time.
type underway struct {
	answer service.Answer
	err    error
	over   atomic.Bool // answer and err are there
}

// changes asks for a change, and goes on before it is answered.
func (w *quays) changes(ask func() (service.Answer, error)) *underway {
	c := new(underway)
	go func() {
		c.answer, c.err = ask()
		c.over.Store(true)
	}()
	w.pass(1)
	return c
}

// What begins now at two sites by a change is answered when both have it so. If one of them refuses, both go back to
// what is promised.
func TestTwoSitesAgreeOnAChange(t *testing.T) {
	bindings(t, []string{"west", "east"}, func(t *testing.T, w *quays) {
		w.pass(1)
		began := w.now()
		submit(t, w.host, ann, both("a", began+300, began+900, 600))
		w.pass(70)
		if w.get("a").State != service.Confirmed || w.where("a", began) != "west n1,n2,n3 300-900; east n1,n2,n3 300-900" {
			t.Fatalf("it is %s, %s", w.get("a").State, w.where("a", began))
		}
		w.sites["east"].Inject(fake.Fault{Op: fake.Change, What: fake.Refuse}, fake.Fault{Op: fake.Reserve, What: fake.Refuse})
		now := w.now()
		a, err := w.host.Modify(t.Context(), ann, "a", both("a", now, now+60, 60))
		if err != nil || a.Refusal == nil || a.Refusal.Resource.Site != "east" {
			t.Fatalf("what east refuses is %+v, %+v, %v", a.Reservation, a.Refusal, err)
		}
		w.sites["east"].Heal()
		w.pass(130)
		is := w.where("a", began)
		if there := w.at("west", began) + "; " + w.at("east", began); w.get("a").State != service.Confirmed || !strings.HasSuffix(is, "300-900") || there != is {
			t.Errorf("it is %s, %s, and the sites have %s", w.get("a").State, is, there)
		}
		now = w.now()
		if a, err = w.host.Modify(t.Context(), ann, "a", both("a", now, now+60, 60)); err != nil || a.Refusal != nil {
			t.Fatalf("what both have room for is %+v, %+v, %v", a.Reservation, a.Refusal, err)
		}
		w.pass(1) // what begins in this second has begun
		is = w.where("a", began)
		if there := w.at("west", began) + "; " + w.at("east", began); w.get("a").State != service.Active || !strings.HasSuffix(is, "263") || there != is {
			t.Errorf("it is %s, %s, and the sites have %s", w.get("a").State, is, there)
		}
	})
}

// While one of two sites does not answer the change is given up, and the other one goes back to what is promised.
func TestASiteGoesAwayInTheMiddleOfAChange(t *testing.T) {
	bindings(t, []string{"west", "east"}, func(t *testing.T, w *quays) {
		w.pass(1)
		began := w.now()
		submit(t, w.host, ann, both("a", began+300, began+900, 600))
		w.pass(70)
		w.sites["east"].Inject(fake.Fault{Op: fake.All, What: fake.Down})
		now := w.now()
		a, err := w.host.Modify(t.Context(), ann, "a", both("a", now, now+600, 600))
		if codeOf(err) != berth.Unavailable || !strings.Contains(err.Error(), `"east" has not agreed`) {
			t.Errorf("%+v, %v", a, err)
		}
		w.pass(70)
		is := w.where("a", began)
		if west := w.at("west", began); w.get("a").State != service.Confirmed || is != "west n1,n2,n3 300-900; east n1,n2,n3 300-900" || west != is[:strings.Index(is, ";")] {
			t.Errorf("it is %s, %s, and west has %s", w.get("a").State, is, west)
		}
		w.sites["east"].Heal()
		w.pass(400)
		if is, there := w.where("a", began), w.at("west", began)+"; "+w.at("east", began); w.get("a").State != service.Active || there != is {
			t.Errorf("it is %s, %s, and the sites have %s", w.get("a").State, is, there)
		}
	})
}

// A service that stops while a site is asked about a change has not made it: the promise is as it was, the site goes back
// to that, and who asked may ask again under the same key.
func TestRestartInTheMiddleOfAChange(t *testing.T) {
	bindings(t, []string{"west"}, func(t *testing.T, w *quays) {
		w.pass(1)
		began := w.now()
		w.reserve("a", 2, 300, 600)
		w.pass(70)
		key := ann
		key.Key, key.Body = "sooner", [32]byte{1}
		now := w.now()
		ask := func() (service.Answer, error) {
			return w.host.Modify(t.Context(), key, "a", berth.Rigid("a", 0, now, now+3600, 3, 60))
		}
		w.sites["west"].Inject(fake.Fault{Op: fake.Change, What: fake.Slow, After: 10}) // done, and said later
		c := w.changes(ask)
		if c.over.Load() {
			t.Fatalf("answered before the site has: %+v, %v", c.answer, c.err)
		}
		w.sites["west"].Heal()
		w.restart()
		if !c.over.Load() || codeOf(c.err) != berth.Unavailable {
			t.Errorf("when the service stops it is %t %+v, %v", c.over.Load(), c.answer, c.err)
		}
		w.pass(70)
		is := w.where("a", began)
		if there := w.at("west", began); w.get("a").State != service.Confirmed || !strings.HasSuffix(is, "300-900") || there != is {
			t.Errorf("it is %s, %s, and the site has %s", w.get("a").State, is, there)
		}
		a, err := ask()
		if err != nil || a.Refusal != nil || a.Reservation.Allotments[0].Start > w.now() {
			t.Fatalf("asked again: %+v, %v", a, err)
		}
		was := w.where("a", began)
		w.pass(10)
		if a, err = ask(); err != nil || a.Refusal != nil || w.where("a", began) != was || w.at("west", began) != was {
			t.Errorf("asked once more under its key: %+v, %v; it was %s, is %s, and the site has %s", a, err, was, w.where("a", began), w.at("west", began))
		}
	})
}

// withAccounts is a site that lets everybody into everything.
type withAccounts struct{ byUsers }

func (withAccounts) Admits(context.Context, *site.Partition, *site.Entry) (site.Admission, error) {
	return site.Admission{}, nil
}

// A service that stops while a site is asked about a change finds there what it had asked for itself: nothing says that
// it was changed by hand. Who an administrator has let in stays let in, and who would have been let in by the change is not; what
// is changed by hand after that is told.
func TestWhatARestartLeavesAtASiteIsNobodysChange(t *testing.T) {
	for _, running := range []bool{false, true} {
		for _, shared := range []bool{false, true} {
			if running && shared { // an extension lets no one in
				continue
			}
			t.Run(fmt.Sprintf("running=%t,shared=%t", running, shared), func(t *testing.T) {
				bindings(t, []string{"west", "east"}, func(t *testing.T, w *quays) {
					w.pass(1)
					for name, m := range w.options.Managers {
						m.Adapter = withAccounts{m.Adapter.(byUsers)}
						w.options.Managers[name] = m
					}
					w.restart()
					w.pass(1)
					began := w.now()
					r := both("a", began+300, began+3600, 600)
					if running { // what has several parts is not extended
						r = berth.Rigid("a", 0, began, began+3600, 3, 600)
						r.Site = "west"
					}
					submit(t, w.host, ann, r)
					w.pass(70)
					users := func() string {
						t.Helper()
						state, err := w.sites["west"].Site.Observe(t.Context())
						if err != nil || len(state.Ours) != 1 {
							t.Fatal(state, err)
						}
						return strings.Join(state.Ours[0].Users, ",")
					}
					byHand := func(change func(b *site.Reservation)) {
						t.Helper()
						state, err := w.sites["west"].Site.Observe(t.Context())
						if err != nil || len(state.Ours) != 1 {
							t.Fatal(state, err)
						}
						b := &state.Ours[0]
						want := site.Reservation{Name: site.Name(b.Name), Start: b.Start, End: b.End, Shares: b.Shares, Users: b.Users}
						change(&want)
						if o, err := w.sites["west"].Site.Change(t.Context(), want); err != nil || o.Verdict != site.Made {
							t.Fatal(o, err)
						}
					}
					told := func() int { return strings.Count(w.log.String(), "; it is put back") }
					if !shared {
						byHand(func(b *site.Reservation) { b.Users = append(slices.Clone(b.Users), "eve") })
						w.pass(70)
						if users() != "ann,eve" || !strings.Contains(w.log.String(), "may be used by eve too, which is taken over") {
							t.Fatalf("the site lets in %s", users())
						}
					}

					there := func() string { return strings.TrimSuffix(w.at("west", began)+"; "+w.at("east", began), "; ") }
					was := there()
					if is := w.where("a", began); !running && was != is { // what is running was made a moment after its start
						t.Fatalf("it is %s, and the sites have %s", is, was)
					}
					west := w.at("west", began)
					w.sites["west"].Inject(fake.Fault{Op: fake.Change, What: fake.Slow, After: 10}) // done, and said later
					c := w.changes(func() (service.Answer, error) {
						if running {
							return w.host.Extend(t.Context(), ann, "a", began+900)
						}
						now := w.now()
						sooner := both("a", now, now+3600, 120)
						if shared {
							sooner.Users = []string{"bob"}
						}
						return w.host.Modify(t.Context(), ann, "a", sooner)
					})
					if c.over.Load() {
						t.Fatalf("answered before the site has: %+v, %v", c.answer, c.err)
					}
					w.sites["west"].Heal()
					w.restart()
					w.pass(130)
					if is := w.where("a", began); there() != was || !running && is != was || w.get("a").Allotments[0].End != w.get("a").Allotments[0].Start+600 {
						t.Errorf("it is %s, and the sites have %s, where they had %s", is, there(), was)
					}
					if told() != 0 {
						t.Errorf("the log says that a hand changed what the service had asked for:\n%s", w.log.String())
					}
					if want := map[bool]string{false: "ann,eve", true: "ann"}[shared]; users() != want {
						t.Errorf("the site lets in %s, want %s", users(), want)
					}
					byHand(func(b *site.Reservation) { b.End += 50 })
					w.pass(130)
					if told() != 1 || w.at("west", began) != west {
						t.Errorf("told %d times, want 1; west has %s, where it had %s", told(), w.at("west", began), west)
					}
				})
			})
		}
	}
}

// A change that is asked for while its site is being brought into line is asked of the site in the next round. What the
// round has shown of the promise until then does not hide that: a service that stops in the middle of the change finds at the
// site what it had asked for itself.
func TestAChangeThatComesInDuringARound(t *testing.T) {
	bindings(t, []string{"west"}, func(t *testing.T, w *quays) {
		w.pass(1)
		began := w.now()
		w.reserve("a", 1, 300, 600)
		w.pass(70)
		w.sites["west"].Inject(fake.Fault{Op: fake.Reserve, What: fake.Slow, After: 8}, fake.Fault{Op: fake.Change, What: fake.Slow, After: 10})
		w.reserve("b", 1, 200, 600) // which the round is about
		w.pass(4)
		if w.get("b").Sites[0].Made {
			t.Fatal("the round is over")
		}
		c := w.changes(func() (service.Answer, error) { return w.toNow("a", 2, 600, 3600) })
		w.pass(11) // in the middle of the next round: the first began when b was promised or, if that was before its nodes had names, 3 s later
		if asked := strings.Join(w.sites["west"].asked, ";"); c.over.Load() || !strings.Contains(asked, "change ") {
			t.Fatalf("the site was asked %q; answered is %+v, %v", asked, c.answer, c.err)
		}
		w.sites["west"].Heal()
		w.restart()
		w.pass(130)
		if is := w.where("a", began); w.get("a").State != service.Confirmed || !strings.HasSuffix(is, " 300-900") || !strings.Contains(w.at("west", began), is) {
			t.Errorf("it is %s, %s, and the site has %s", w.get("a").State, is, w.at("west", began))
		}
		if strings.Contains(w.log.String(), "; it is put back") {
			t.Errorf("the log says that somebody changed what the service had asked for:\n%s", w.log.String())
		}
	})
}

// That a site is asked about a change is not what it has of the promise: the history does not show it, and what was delivered
// does not count it.
func TestTheHistoryLeavesOutWhatIsOnlyProposed(t *testing.T) {
	bindings(t, []string{"west"}, func(t *testing.T, w *quays) {
		w.pass(1)
		began := w.now()
		w.reserve("a", 1, 500, 600)
		w.pass(70)
		made := func() (at []berth.Time, d service.Delivered) {
			t.Helper()
			past, _, err := w.host.History(t.Context(), ann.By, "a")
			if err != nil {
				t.Fatal(err)
			}
			for i := range past.List {
				if past.List[i].What == service.Made {
					at = append(at, past.List[i].At-began)
				}
			}
			if past.Delivered != nil {
				d = *past.Delivered
			}
			return at, d
		}
		if at, _ := made(); len(at) != 1 {
			t.Fatalf("it was made at %v", at)
		}
		w.sites["west"].looks.Store(200)
		w.pass(65) // in the middle of a look
		start := w.now() + 100
		if a, err := w.host.Modify(t.Context(), ann, "a", berth.Rigid("a", 0, start, start+600, 1, 600)); err != nil || a.Refusal != nil {
			t.Fatalf("%+v, %v", a, err)
		}
		c := w.changes(func() (service.Answer, error) { return w.toNow("a", 2, 60, 3600) })
		w.pass(25)
		if at, _ := made(); codeOf(c.err) != berth.Unavailable || len(at) != 1 {
			t.Fatalf("the change is %+v, %v; the history says that it was made at %v", c.answer, c.err, at)
		}
		w.sites["west"].looks.Store(0)
		w.pass(300)
		if at, d := made(); len(at) != 2 || d.Start != start || d.Whole != began+at[1] || d.Short != int64(d.Whole-start) || d.Short == 0 {
			t.Errorf("it was made at %v, and delivered is %+v", at, d)
		}
	})
}

// What is released while its site is asked about a change is gone, and so is what the site has made of it.
func TestReleaseInTheMiddleOfAChange(t *testing.T) {
	bindings(t, []string{"west"}, func(t *testing.T, w *quays) {
		for _, running := range []bool{false, true} {
			w.pass(70)
			now := w.now()
			in := map[bool]berth.Duration{false: 300, true: 0}[running]
			id := map[bool]string{false: "waits", true: "runs"}[running]
			w.reserve(id, 2, in, 600)
			w.pass(70)
			w.sites["west"].Inject(fake.Fault{Op: fake.Change, What: fake.Slow, After: 8})
			c := w.changes(func() (service.Answer, error) {
				if running {
					return w.host.Extend(t.Context(), ann, id, now+900)
				}
				return w.toNow(id, 3, 60, 0)
			})
			if c.over.Load() {
				t.Fatalf("%s: answered before the site has: %+v, %v", id, c.answer, c.err)
			}
			if r, err := w.host.Release(t.Context(), ann, id); err != nil || !r.State.Over() {
				t.Errorf("%s: released it is %+v, %v", id, r, err)
			}
			w.sites["west"].Heal()
			w.pass(130)
			if !c.over.Load() || codeOf(c.err) != berth.Conflict || w.at("west", now) != "" || !w.get(id).State.Over() {
				t.Errorf("%s: the change is %t %+v, %v; it is %s, and the site has %q", id, c.over.Load(), c.answer.Reservation.State, c.err, w.get(id).State, w.at("west", now))
			}
		}
	})
}

// Another change of what is being changed is refused until that is answered; the same one under its key gets the same answer.
func TestTwoChangesAtOnce(t *testing.T) {
	bindings(t, []string{"west"}, func(t *testing.T, w *quays) {
		w.pass(1)
		w.reserve("a", 2, 300, 600)
		w.pass(70)
		w.sites["west"].Inject(fake.Fault{Op: fake.Change, What: fake.Slow, After: 8})
		key, now := ann, w.now()
		key.Key, key.Body = "sooner", [32]byte{1}
		ask := func() (service.Answer, error) {
			return w.host.Modify(t.Context(), key, "a", berth.Rigid("a", 0, now, now+3600, 3, 60))
		}
		first := w.changes(ask)
		second := w.changes(ask)
		if _, err := w.toNow("a", 1, 60, 0); codeOf(err) != berth.Conflict || !strings.Contains(err.Error(), "is being changed already") {
			t.Errorf("another change is %v", err)
		}
		if _, err := w.host.Modify(t.Context(), root, "a", berth.Rigid("a", 0, now+9000, now+9600, 2, 600)); codeOf(err) != berth.Conflict {
			t.Errorf("a later change is %v", err)
		}
		if first.over.Load() || second.over.Load() {
			t.Fatalf("answered before the site has: %+v, %+v", first.answer, second.answer)
		}
		w.pass(20)
		if !first.over.Load() || !second.over.Load() || first.err != nil || first.answer.Refusal != nil || first.answer.Reservation.Version != second.answer.Reservation.Version {
			t.Errorf("the answers are %+v, %v and %+v, %v", first.answer, first.err, second.answer, second.err)
		}
		if is, there := w.where("a", now), w.at("west", now); is != "west n1,n2,n3 8-68" || there != "west n1,n2,n3 0-68" {
			t.Errorf("it is %s, and the site has %s", is, there)
		}
	})
}

// A job that waits in a promise runs when its site begins it for a change, although the change is not made: the job is not
// ended, and the site has more than is promised until the promise begins.
func TestAJobBeginsForAChangeThatIsNotMade(t *testing.T) {
	bindings(t, []string{"west"}, func(t *testing.T, w *quays) {
		w.pass(1)
		began := w.now()
		w.reserve("a", 2, 300, 600)
		w.pass(70)
		job, err := w.host.Run(t.Context(), ann, "a", site.Task{Command: []string{"x"}, Dir: "/"})
		if err != nil {
			t.Fatal(err)
		}
		w.sites["west"].Inject(fake.Fault{Op: fake.Change, What: fake.Slow, After: 10})
		w.changes(func() (service.Answer, error) { return w.toNow("a", 2, 600, 3600) })
		w.pass(4)
		w.sites["west"].Heal()
		w.restart()
		for range 5 {
			w.pass(70)
			state, err := w.sites["west"].Site.Observe(t.Context())
			if err != nil || !slices.ContainsFunc(state.Running, func(j site.Job) bool { return j.ID == job }) {
				t.Fatalf("the job does not run: %+v, %v", state, err)
			}
			is, there := w.where("a", began), w.at("west", began)
			trouble := w.get("a").Sites[0].Trouble
			if is != "west n1,n2 300-900" || !strings.HasPrefix(there, "west n1,n2 70-") || (w.now() < began+300) != strings.Contains(trouble, "has jobs: it stays as it is") {
				t.Errorf("at %d it is %s and the site has %s, trouble %q", w.now()-began, is, there, trouble)
			}
		}
		if there := w.at("west", began); there != "west n1,n2 70-900" || w.get("a").State != service.Active {
			t.Errorf("it is %s, and the site has %s", w.get("a").State, there)
		}
	})
}
