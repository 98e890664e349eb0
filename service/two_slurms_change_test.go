package service_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/service"
)

// change asks for a change, and goes on before it is answered.
func (two *twoSlurms) change(ask func(host *service.Host) (service.Answer, error)) *underway {
	c, host := new(underway), two.host
	go func() {
		c.answer, c.err = ask(host)
		c.over.Store(true)
	}()
	return c
}

// toNow asks for all parts of a promise to begin now, for as long as they last.
func (two *twoSlurms) toNow(id string) *underway {
	return two.change(func(host *service.Host) (service.Answer, error) {
		r, err := host.Get(two.t.Context(), two.by.By, id)
		if err != nil {
			return service.Answer{}, err
		}
		r.Request.Ready = host.Now()
		r.Request.Deadline = r.Request.Ready + 600
		return host.Modify(two.t.Context(), two.by, id, r.Request)
	})
}

// isAsItWas fails the test unless a promise is where it was before a change that was not made, at all its sites, and its
// history knows of no change.
func (two *twoSlurms) isAsItWas(what string, was service.Reservation) {
	two.t.Helper()
	two.agrees(what, was.ID, service.Confirmed)
	is, err := two.host.Get(two.t.Context(), two.by.By, was.ID)
	if err != nil || is.Allotments[0].Start != was.Allotments[0].Start || is.Allotments[0].End != was.Allotments[0].End {
		two.t.Errorf("%s: it was %+v and is %+v, %v", what, was.Allotments, is.Allotments, err)
	}
	past, _, err := two.host.History(two.t.Context(), two.by.By, was.ID)
	if err != nil || slices.ContainsFunc(past.List, func(h service.Happening) bool {
		return h.What == change.Modified || h.What == change.Extended || h.What == change.Started || h.What == service.SiteChanged
	}) {
		two.t.Errorf("%s: its history is %+v, %v", what, past.List, err)
	}
	if strings.Contains(two.log.String(), "somebody has changed") {
		two.t.Errorf("%s: the log says that somebody did it:\n%s", what, two.log.String())
	}
}

// A change of a promise at two clusters is made by both or by neither: whatever dies while they are asked to begin it now, they
// come to have what is promised, and what is released meanwhile is gone at both. A service that is killed has not made the change,
// and a reservation that Slurm has begun for it is made anew for when the promise begins.
func TestTwoSlurmsAgreeOnAChange(t *testing.T) {
	t.Parallel()
	two := newTwoSlurms(t, false)
	get := func(id string) service.Reservation {
		t.Helper()
		r, err := two.host.Get(t.Context(), two.by.By, id)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	two.both("killed")
	two.agrees("at first", "killed", service.Confirmed)
	was := get("killed")
	for _, at := range []string{"before west changes", "after west changes", "before east changes", "after east changes"} {
		two.goesWrong(newMishap(at, theService, ""), func() { two.toNow("killed") })
		two.isAsItWas("the service dies "+at, was)
	}

	two.goesWrong(newMishap("after east changes", theController, ""), func() {
		c := two.toNow("killed")
		two.waits("the change is answered", c.over.Load)
		if c.err != nil || c.answer.Refusal != nil {
			t.Errorf("slurmctld dies after the change: %+v, %v", c.answer.Refusal, c.err)
		}
	})
	two.now.Store(nil)
	two.waits("both begin it", func() bool {
		w, e := two.has(west), two.has(east)
		return get("killed").State == service.Active && len(w) == 1 && len(e) == 1 && w[0] != "" && !strings.HasPrefix(w[0], slurmTime(was.Allotments[0].Start)) && !strings.HasPrefix(e[0], slurmTime(was.Allotments[0].Start))
	})
	if _, err := two.host.Release(t.Context(), two.by, "killed"); err != nil {
		t.Fatal(err)
	}
	two.agrees("released", "killed", service.Finished)

	for _, at := range []string{"before east changes", "after east changes"} {
		id := "released-" + strings.Fields(at)[0]
		two.both(id)
		two.agrees("at first", id, service.Confirmed)
		m := newMishap(at, theLink, "")
		var c *underway
		two.goesWrong(m, func() {
			c = two.toNow(id)
			<-m.dead // west has it, and what east has is not known
			if r, err := two.host.Release(t.Context(), two.by, id); err != nil || !r.State.Over() {
				t.Errorf("released it is %+v, %v", r, err)
			}
		})
		two.waits("the change is answered", c.over.Load)
		if codeOf(c.err) != berth.Conflict {
			t.Errorf("the change of what is released is %+v, %v", c.answer, c.err)
		}
		two.agrees("released in the middle, "+at, id, service.Cancelled)
		two.now.Store(nil)
	}
	if err := two.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := service.Verify(t.Context(), two.store, nil); err != nil {
		t.Error(err)
	}

	// An extension of what runs, at one of them.
	now := two.host.Now()
	r := berth.Rigid("runs", 0, now, now+900, 1, 600)
	r.Site = west
	submit(t, two.host, two.by, r)
	two.waits("it begins", func() bool { return get("runs").State == service.Active && get("runs").Sites[0].Made })
	end := get("runs").Allotments[0].End
	for _, at := range []string{"before west changes", "after west changes"} {
		two.goesWrong(newMishap(at, theService, ""), func() {
			two.change(func(host *service.Host) (service.Answer, error) {
				return host.Extend(t.Context(), two.by, "runs", end+200)
			})
		})
		two.waits("it ends as before, the service being killed "+at, func() bool {
			out, err := two.clusters[west].Command("scontrol", "--oneliner", "show", "reservation")
			return err == nil && strings.Count(out, "ReservationName=") == 1 && between(out, "EndTime=", " ") == slurmTime(end) && get("runs").Sites[0].Made && get("runs").Allotments[0].End == end
		})
	}
}
