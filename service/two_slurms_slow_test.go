package service_test

import (
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

var slowCommand = flag.Duration("service.slow", time.Second, "how long each command takes at a Slurm that is slow")

// A cluster whose every command takes long keeps nobody waiting but those who want something there at once: promises there for later,
// promises at another cluster and all that is only read are answered as ever. A change by which a promise there begins now is made
// when Slurm has it, or given up, and then the promise is as it was; what is released is gone, and jobs run on.
func TestOneOfTwoSlurmsIsSlow(t *testing.T) {
	t.Parallel()
	two := newTwoSlurms(t, false)
	slow := *slowCommand
	patient := 60*time.Second + 30*slow
	get := func(id string) service.Reservation {
		t.Helper()
		r, err := two.host.Get(t.Context(), two.by.By, id)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	reserve := func(id, at string, npe berth.Count, in, length berth.Duration) service.Reservation {
		t.Helper()
		start := two.host.Now().Add(in)
		r := berth.Rigid(id, 0, start, start.Add(length+5), npe, length)
		r.Site = at
		return submit(t, two.host, two.by, r).Reservation
	}
	view := func() service.SiteView {
		t.Helper()
		views, err := two.host.Sites(t.Context(), two.by.By)
		if err != nil {
			t.Fatal(err)
		}
		return views[slices.IndexFunc(views, func(v service.SiteView) bool { return v.Name == west })]
	}
	// atOnce fails the test if what is done takes as long as two commands at west; a look there takes five.
	atOnce := func(what string, do func()) {
		t.Helper()
		began := time.Now()
		do()
		if took := time.Since(began); took > 2*slow {
			t.Errorf("%s took %s", what, took)
		}
	}
	reserve("runs", west, 1, 0, 3000)
	reserve("gone", west, 1, 300, 600)
	reserve("sooner", west, 1, 500, 600)
	two.waits("they are there", func() bool { return len(two.has(west)) == 3 && get("runs").State == service.Active })
	out, err := two.clusters[west].Command("sbatch", "--parsable", "--reservation="+string(get("runs").Sites[0].Name), "--time=30", "--output=/dev/null", "--wrap=sleep 3000")
	if err != nil {
		t.Fatal(out, err)
	}
	job := strings.TrimSpace(out)
	runs := func() bool {
		shown, err := two.clusters[west].Command("scontrol", "--oneliner", "show", "job", job)
		return err == nil && strings.Contains(shown, "JobState=RUNNING")
	}
	two.waits("its job runs", runs)
	was := get("sooner").Allotments[0]

	two.slow.Store(int64(slow))
	two.waitsIn("west is said to be slow", patient, func() bool { return strings.HasPrefix(view().Trouble, "it is slow: a look takes ") })
	atOnce("what is read", func() {
		if v := view(); !v.Reachable {
			t.Errorf("west is %+v", v)
		}
		if list, _, err := two.host.List(t.Context(), two.by.By, service.Filter{}); err != nil || len(list) != 3 {
			t.Errorf("%+v, %v", list, err)
		}
	})
	atOnce("a promise at west for later", func() {
		if r := reserve("later", west, 2, 5000, 600); r.State != service.Confirmed {
			t.Errorf("it is %+v", r)
		}
	})
	atOnce("its modification", func() {
		r := get("later").Request
		r.Ready, r.Deadline = r.Ready+60, r.Deadline+60
		if a, err := two.host.Modify(t.Context(), two.by, "later", r); err != nil || a.Refusal != nil {
			t.Errorf("%+v, %v", a, err)
		}
	})
	atOnce("a promise at east from now on", func() {
		if r := reserve("east", east, 2, 0, 600); !isPromised(r) || len(two.has(east)) != 1 {
			t.Errorf("it is %+v, and east has %q", r, two.has(east))
		}
	})
	atOnce("a release", func() {
		if r, err := two.host.Release(t.Context(), two.by, "gone"); err != nil || !r.State.Over() {
			t.Errorf("%+v, %v", r, err)
		}
	})
	began := time.Now()
	c := two.toNow("sooner")
	atOnce("what is read while a change is under way", func() { get("sooner") })
	two.waits("the change is answered", c.over.Load)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	starts := func() string { return slurmTime(get("sooner").Allotments[0].Start) }
	switch {
	case c.err == nil && c.answer.Refusal == nil:
		if now := get("sooner").Allotments[0].Start; now > two.host.Now() {
			t.Errorf("what was to begin now begins at %d", now)
		}
	case codeOf(c.err) == berth.Unavailable && strings.Contains(c.err.Error(), "stays as it was"):
		if is := get("sooner").Allotments[0]; is.Start != was.Start || is.End != was.End {
			t.Errorf("it was %+v and is %+v", was, is)
		}
	default:
		t.Errorf("the change is %+v, %v", c.answer, c.err)
	}
	t.Logf("with %s a command the change was answered after %s: %v", slow, time.Since(began), c.err)
	two.waitsIn("west has what is promised", patient, func() bool {
		is := get("sooner")
		all := two.has(west)
		begun := is.State == service.Active && len(all) == 2 && is.Sites[0].Made // since it was made, which is later than promised
		return begun || len(all) == 2 && is.Sites[0].Made && slices.Contains(all, starts()+" 1")
	})
	if !runs() {
		t.Error("the job does not run any more")
	}
	told := 0 // of west: on a machine that is slow itself east may be slow too
	text := two.log.String()
	for line := range strings.Lines(text) {
		if strings.Contains(line, "a site is slow") && strings.Contains(line, " site="+west+" ") {
			told++
		}
	}
	if told != 1 || strings.Contains(text, "cannot be looked at") || strings.Contains(text, "somebody has changed") {
		t.Errorf("the log says\n%s", text)
	}
	two.slow.Store(0)
	two.waitsIn("west is quick again", patient, func() bool { return view().Trouble == "" })
	if err := two.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
