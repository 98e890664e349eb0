package service_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

// passAbout lets a part of a second pass too.
func (w *harbour) passAbout(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// made wants reservations to be at the site, or none of them.
func (w *harbour) made(want bool, ids ...string) {
	w.t.Helper()
	for _, id := range ids {
		if m := w.get(id).Sites[0]; m.Made != want || m.Trouble != "" {
			w.t.Errorf("%s is %+v, want it made: %t, and no trouble", id, m, want)
		}
	}
}

// The first promise in peace is made at once. Those that come while others are
// being made are made with them, without a rest or another look.
func TestBurstIsOneRound(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.site.Inject(fake.Fault{Op: fake.Reserve, Nth: 2, What: fake.Slow, After: 3})
		looks := w.looks.Load()
		w.reserve("a", 1, 100, 50)
		synctest.Wait()
		w.made(true, "a")
		w.pass(6)
		looks, before := w.looks.Load(), looks
		if looks > before+2 {
			t.Errorf("%d looks for one promise, want one after it was made, and one in five seconds", looks-before)
		}
		w.reserve("b", 1, 200, 50)
		w.pass(1)
		for i := range berth.Duration(20) {
			w.reserve(fmt.Sprint("c", i), 4, 300+10*i, 10)
		}
		w.pass(1)
		w.made(false, "b", "c0", "c19")
		w.passAbout(1100 * time.Millisecond)
		w.made(true, "a", "b", "c0", "c7", "c19")
		if n := w.looks.Load() - looks; n > 0 {
			t.Errorf("%d more looks", n)
		}
		w.pass(10)
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
	})
}

// Many promises take the time of one where the site can make many at once.
func TestManyAreMadeTogether(t *testing.T) {
	for many, most := range map[bool]time.Duration{true: 7 * time.Second, false: 70 * time.Second} {
		harbourOf(t, site.UnitNode, many, func(t *testing.T, w *harbour) {
			w.site.Inject(fake.Fault{Op: fake.Reserve, What: fake.Slow, After: 3})
			for i := range berth.Duration(20) {
				w.reserve(fmt.Sprint("m", i), 4, 300+10*i, 10)
			}
			began := time.Now()
			for w.view().Drift != nil || !w.get("m19").Sites[0].Made {
				if w.passAbout(100 * time.Millisecond); time.Since(began) > 2*time.Minute {
					t.Fatal("they are not made")
				}
			}
			if took := time.Since(began); took > most || took < most/2 {
				t.Errorf("many: %t: it took %s, want at most %s and at least half", many, took, most)
			}
		})
	}
}

// What starts at once is launched in the round in which it is made.
func TestManyAreLaunchedAtOnce(t *testing.T) {
	inHarbour(t, site.UnitCore, func(t *testing.T, w *harbour) {
		w.reserve("later", 2, 50, 100)
		w.reserve("a", 2, 0, 1000)
		w.reserve("b", 2, 0, 1000)
		w.passAbout(300 * time.Millisecond)
		w.made(true, "later", "a", "b")
		for _, id := range []string{"a", "b"} {
			if !w.running(w.run(id)) {
				t.Errorf("%s is not open", id)
			}
		}
		w.pass(100)
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
	})
}

// What takes the place of something that was given up while it was being made is
// not tried before that is gone.
func TestPlaceIsFreedBeforeItIsTaken(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.site.Inject(fake.Fault{Op: fake.Reserve, Nth: 1, What: fake.Slow, After: 3})
		w.reserve("gives", 4, 100, 200)
		w.pass(1)
		if _, err := w.host.Release(t.Context(), ann, "gives"); err != nil {
			t.Fatal(err)
		}
		w.reserve("takes", 4, 100, 200)
		w.passAbout(2100 * time.Millisecond)
		w.made(false, "takes")
		w.pass(1)
		w.made(true, "takes")
		w.pass(10)
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
	})
}

// A stream of promises does not prevent looks at the site, and does not have it
// looked at all the time.
func TestStreamOfPromises(t *testing.T) {
	for _, c := range []struct {
		what        string
		every, slow time.Duration
		least, most int64 // looks
	}{
		{what: "each made at once", every: 100 * time.Millisecond, least: 6, most: 30*4 + 2},
		{what: "each made in two seconds", every: time.Second, slow: 2 * time.Second, least: 4, most: 12},
	} {
		t.Run(c.what, func(t *testing.T) {
			inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
				w.site.Inject(fake.Fault{Op: fake.Reserve, What: fake.Slow, After: berth.Duration(c.slow.Seconds())})
				looks := w.looks.Load()
				for i := range int(30 * time.Second / c.every) {
					w.reserve(fmt.Sprint("s", i), 4, 100+berth.Duration(i), 1)
					w.passAbout(c.every)
				}
				if n := w.looks.Load() - looks; n < c.least || n > c.most {
					t.Errorf("%d looks in 30 s, want %d to %d", n, c.least, c.most)
				}
				w.site.Heal()
				w.pass(10)
				if err := w.inLine(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// announcing is a site that says when something has happened there.
type announcing struct {
	timed
	changed chan struct{}
}

func (a announcing) Changed() <-chan struct{} { return a.changed }

// announces opens the service anew before the same site, which says from now on that something has happened there if
// the test does.
func (w *harbour) announces() chan<- struct{} {
	w.t.Helper()
	if err := w.host.Close(); err != nil {
		w.t.Fatal(err)
	}
	m, changed := w.options.Managers["harbour"], make(chan struct{}, 1)
	m.Adapter = announcing{m.Adapter.(timed), changed}
	w.options.Managers["harbour"] = m
	w.open()
	w.pass(7)
	return changed
}

// The end of a task that is announced while the site makes a reservation is told before that is made, once.
func TestWhatIsAnnouncedDuringARoundIsToldAtOnce(t *testing.T) {
	harbourOf(t, site.UnitCore, true, func(t *testing.T, w *harbour) {
		changed := w.announces()
		soon, all := w.taskTales(ann.By, 0), w.taskTales(ann.By, 0)
		w.reserve("a", 1, 0, 1000)
		w.passAbout(300 * time.Millisecond)
		job := w.run("a")
		changed <- struct{}{}
		w.pass(1)
		w.site.Inject(fake.Fault{Op: fake.Reserve, Nth: 1, What: fake.Slow, After: 3})
		w.reserve("b", 1, 20, 100)
		w.passAbout(300 * time.Millisecond)
		w.made(false, "b")
		if err := w.site.Cancel(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		changed <- struct{}{}
		w.passAbout(10 * time.Millisecond)
		w.made(false, "b")
		want := []string{fmt.Sprintf("a %s task_started running { 0 0}", job), fmt.Sprintf("a %s task_ended ended {cancelled 0 0}", job)}
		wantTales(t, "while b is made", soon(), want...)
		w.pass(7)
		w.made(true, "b")
		wantTales(t, "once b is made", all(), want...)
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
	})
}

// A site is looked at as soon as it says that something has happened there, also while its keeper rests after
// a stream of promises; the stream itself leaves it its rest.
func TestWhatASiteAnnouncesIsLookedAtAtOnce(t *testing.T) {
	harbourOf(t, site.UnitCore, true, func(t *testing.T, w *harbour) {
		changed := w.announces()
		looks := w.looks.Load()
		const each = 10 * time.Millisecond
		for i := range 50 {
			w.reserve(fmt.Sprint("s", i), 1, 100+berth.Duration(i), 1)
			w.passAbout(each)
		}
		if n := w.looks.Load() - looks; n > 6 {
			t.Errorf("%d looks in half a second of promises, want one in a quarter of a second, and one besides", n)
		}
		looks = w.looks.Load()
		for range 50 {
			changed <- struct{}{}
			w.passAbout(each)
			if n := w.looks.Load() - looks; n != 1 {
				t.Fatalf("%d looks in %v after something was announced, want one", n, each)
			}
			looks++
		}
		w.pass(10)
		if err := w.inLine(); err != nil {
			t.Error(err)
		}
	})
}
