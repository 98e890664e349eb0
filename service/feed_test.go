package service_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// feed returns a feed, which must be there.
func feed(t testing.TB, h *service.Host, by service.Principal, site string) service.Feed {
	t.Helper()
	f, _, err := h.Feed(t.Context(), by, site)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// told writes what a feed has, one word for each: id or number, state, and when it holds PEs.
func told(f *service.Feed) (words []string) {
	for i := range f.Promises {
		p := &f.Promises[i]
		name := p.ID
		if name == "" {
			name = fmt.Sprint("#", p.Number)
		}
		words = append(words, fmt.Sprintf("%s %s %d-%d", name, p.State, p.Start, p.End))
	}
	for i := range f.Workflows {
		words = append(words, fmt.Sprintf("%s %s", f.Workflows[i].Workflow.Workflow.ID, f.Workflows[i].State))
	}
	for i := range f.Outages {
		o := &f.Outages[i]
		words = append(words, fmt.Sprintf("outage %s %d-%d ended %d", o.PEs, o.From, o.Until, o.Ended))
	}
	return words
}

// tick lets the time of the clock come about.
func tick(t *testing.T, h *service.Host) {
	t.Helper()
	if err := h.AcceptClock(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	zoe := service.Ask{By: service.Principal{User: "zoe", Role: service.User}}
	if a := submit(t, h, zoe, berth.Rigid("", h.Now(), h.Now(), h.Now()+1, 9999, 1)); a.Reservation.State != service.Refused {
		t.Fatal(a)
	}
}

func wantTold(t *testing.T, what string, f service.Feed, want ...string) {
	t.Helper()
	if got := told(&f); !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

// A feed has what is held, promised, over for a month, and what was not to be for a week; it is otherwise when
// it says.
func TestFeedsHaveWhatIsToComeAndAMonthOfThePast(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(4), c)
	held := berth.Rigid("held", 0, 5000, 9000, 4, 100)
	held.Hold = 60
	for _, r := range []berth.Request{berth.Rigid("done", 0, 1100, 1200, 4, 100), berth.Rigid("back", 0, 2000, 2100, 2, 100), held, berth.Rigid("early", 0, 3000, 3500, 4, 500)} {
		submit(t, h, ann, r)
	}
	no := submit(t, h, ann, berth.Rigid("refused", 0, 1100, 1200, 4, 100))
	if no.Reservation.State != service.Refused {
		t.Fatal(no)
	}
	if _, err := h.Release(t.Context(), ann, "back"); err != nil {
		t.Fatal(err)
	}
	wantTold(t, "at first", feed(t, h, ann.By, ""), "done confirmed 1100-1200", "back cancelled 2000-2100", "early confirmed 3000-3500", "held held 5000-5100")
	c.seconds.Store(3200)
	if _, err := h.Release(t.Context(), ann, "early"); err != nil {
		t.Fatal(err)
	}
	f := feed(t, h, ann.By, "")
	wantTold(t, "later", f, "done finished 1100-1200", "back cancelled 2000-2100", "early finished 3000-3200", "held expired 5000-5100")
	if f.Until != 1000+7*day {
		t.Errorf("otherwise from %d on, want %d", f.Until, 1000+7*day)
	}
	for _, step := range []struct {
		now  int64
		want []string
	}{
		{1000 + 7*day - 1, []string{"done finished 1100-1200", "back cancelled 2000-2100", "early finished 3000-3200", "held expired 5000-5100"}},
		{1000 + 7*day, []string{"done finished 1100-1200", "early finished 3000-3200", "held expired 5000-5100"}},
		{1060 + 7*day, []string{"done finished 1100-1200", "early finished 3000-3200"}},
		{1200 + 30*day - 1, []string{"done finished 1100-1200", "early finished 3000-3200"}},
		{1200 + 30*day, []string{"early finished 3000-3200"}},
		{3200 + 30*day, nil},
	} {
		c.seconds.Store(step.now)
		tick(t, h)
		wantTold(t, fmt.Sprint("at ", step.now), feed(t, h, ann.By, ""), step.want...)
	}
}

// Users see what is theirs; at a site all see what is promised there, and only its owner and operators whose it is.
func TestFeedsShowOthersThePlaceAlone(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(8), c)
	r := berth.Rigid("secret-id", 0, 1100, 1200, 4, 100)
	submit(t, h, ann, r)
	submit(t, h, bob, berth.Rigid("bobs", 0, 1100, 1300, 4, 200))
	vera := service.Principal{User: "vera", Role: service.Viewer}
	wantTold(t, "ann's", feed(t, h, ann.By, ""), "secret-id confirmed 1100-1200")
	wantTold(t, "root's own", feed(t, h, root.By, ""))
	wantTold(t, "the site to ann", feed(t, h, ann.By, "site"), "secret-id confirmed 1100-1200", "#2 confirmed 1100-1300")
	wantTold(t, "the site to root", feed(t, h, root.By, "site"), "secret-id confirmed 1100-1200", "bobs confirmed 1100-1300")
	wantTold(t, "the site to vera", feed(t, h, vera, "site"), "#1 confirmed 1100-1200", "#2 confirmed 1100-1300")
	for _, by := range []service.Principal{vera, bob.By} {
		if text := fmt.Sprintf("%+v", feed(t, h, by, "site")); strings.Contains(text, "secret") || strings.Contains(text, "ann") {
			t.Errorf("%s is shown %s", by.User, text)
		}
	}
	for _, p := range feed(t, h, vera, "site").Promises {
		if len(p.Allotments) != 1 || p.Allotments[0].NPE != 4 || p.Allotments[0].Start != p.Start || p.Yours {
			t.Errorf("vera is shown %+v", p)
		}
	}
	_, _, err := h.Feed(t.Context(), vera, "")
	wantCode(t, err, berth.Denied)
	_, _, err = h.Feed(t.Context(), root.By, "nowhere")
	wantCode(t, err, berth.NotFound)
	elsewhere := root.By
	elsewhere.Sites = service.NewSiteSet([]string{"elsewhere"})
	_, _, err = h.Feed(t.Context(), elsewhere, "site")
	wantCode(t, err, berth.NotFound)
	elsewhere = ann.By
	elsewhere.Sites = service.NewSiteSet([]string{"elsewhere"})
	wantTold(t, "ann's of another site", feed(t, h, elsewhere, ""))
	_, _, err = h.Feed(t.Context(), service.Principal{User: "x"}, "site")
	wantCode(t, err, berth.Denied)
}

// A feed of one generation is one feed until the time that it names, whatever happens; what happens to others
// changes a user's own feed not at all.
func TestAGenerationOfAFeedIsOneFeed(t *testing.T) {
	for seed := range uint64(5) {
		r := rand.New(rand.NewPCG(seed, 7))
		c := &clock{}
		c.seconds.Store(1000)
		h := start(t, t.TempDir(), onePool(64), c)
		type kept struct {
			feed       service.Feed
			generation service.FeedGeneration
		}
		by := []service.Principal{ann.By, bob.By, root.By, {User: "vera", Role: service.Viewer}}
		was := map[string]kept{}
		changed, same := 0, 0
		tick(t, h)
		var ids []string
		for step := range 150 {
			ask := []service.Ask{ann, bob}[r.IntN(2)]
			other := []service.Ask{bob, ann}[map[string]int{"ann": 0, "bob": 1}[ask.By.User]]
			before, err := h.FeedGeneration(other.By, "")
			if err != nil {
				t.Fatal(err)
			}
			own := true
			switch x := r.IntN(6); {
			case x < 3 || len(ids) == 0:
				id := fmt.Sprintf("r%d", step)
				start := h.Now() + berth.Time(r.IntN(1000))
				request := berth.Rigid(id, 0, start, start+5000, berth.Count(1+r.IntN(30)), berth.Duration(1+r.IntN(2000)))
				if r.IntN(3) == 0 {
					request.Hold = 100
				}
				submit(t, h, ask, request)
				ids = append(ids, id)
			case x == 3:
				_, _ = h.Release(t.Context(), ask, ids[r.IntN(len(ids))]) // some are another's, or over
			case x == 4:
				_, _ = h.Confirm(t.Context(), ask, ids[r.IntN(len(ids))])
			default:
				c.seconds.Add(int64(r.IntN(500)))
				if r.IntN(10) == 0 {
					c.seconds.Add(day)
				}
				tick(t, h)
				own = false
			}
			if after, err := h.FeedGeneration(other.By, ""); err != nil || own && after != before {
				t.Fatalf("seed %d: what %s did changed the feed of %s: %v %v", seed, ask.By.User, other.By.User, after, err)
			}
			for _, p := range by {
				for _, site := range []string{"", "site"} {
					if site == "" && p.Role == service.Viewer {
						continue
					}
					key := p.User + "/" + site
					last, known := was[key]
					generation, err := h.FeedGeneration(p, site)
					if err != nil {
						t.Fatal(err)
					}
					f := feed(t, h, p, site)
					if known && generation == last.generation && f.Now < last.feed.Until {
						f.Now, last.feed.Now = 0, 0
						if reflect.DeepEqual(last.feed, f) { // which is much faster than to look for differences
							same++
							continue
						}
						if diff := cmp.Diff(last.feed, f); diff != "" {
							t.Fatalf("seed %d: the feed %s of one generation is otherwise (-was +is)\n%s", seed, key, diff)
						}
						same++
						continue
					}
					changed++
					was[key] = kept{f, f.Generation}
				}
			}
		}
		if changed < 100 || same < 100 {
			t.Errorf("seed %d: %d feeds were otherwise and %d the same", seed, changed, same)
		}
	}
}

// Of more than there is room for, what is to come next and what ended last are shown, and the others are counted.
func TestLargeFeedsAreCut(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(4), c)
	const many = service.MaxFeed + 7
	for i := range many {
		if _, err := h.Submit(t.Context(), ann, berth.Rigid(fmt.Sprintf("r%05d", i), 0, berth.Time(2000+10*i), berth.Time(2010+10*i), 4, 10)); err != nil {
			t.Fatal(err)
		}
	}
	f := feed(t, h, ann.By, "")
	if len(f.Promises) != service.MaxFeed || f.Left != 7 || f.Promises[0].ID != "r00000" {
		t.Fatalf("%d promises from %s on, %d left out", len(f.Promises), f.Promises[0].ID, f.Left)
	}
	c.seconds.Store(2000 + 10*20)
	tick(t, h)
	f = feed(t, h, ann.By, "")
	if len(f.Promises) != service.MaxFeed || f.Left != 7 || f.Promises[0].ID != "r00007" || f.Promises[len(f.Promises)-1].ID != fmt.Sprintf("r%05d", many-1) {
		t.Errorf("%d promises from %s on, %d left out", len(f.Promises), f.Promises[0].ID, f.Left)
	}
}

// Outages are shown from when they began until a month after their end, also by a service that started anew, whether it
// reads a snapshot or records.
func TestFeedsHaveOutagesWithTheirBeginnings(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		vera := service.Principal{User: "vera", Role: service.Viewer}
		began := w.now()
		w.pass(10)
		w.site.Fail("n2", "fire")
		w.book("maintenance", began+1000, began+2000, "n4")
		w.book("called off", began+5000, began+6000, "n3")
		w.pass(10)
		f := feed(t, w.host, vera, "harbour")
		at := slices.IndexFunc(f.Outages, func(o service.FeedOutage) bool { return slices.Equal(o.Nodes, []string{"n2"}) })
		if len(f.Outages) != 3 || at < 0 || f.Outages[at].From <= began || f.Outages[at].From > w.now() || f.Outages[at].Until != berth.Forever {
			t.Fatalf("%+v", f.Outages)
		}
		fire := f.Outages[at]
		same := func(when string) {
			t.Helper()
			f := feed(t, w.host, vera, "harbour")
			at := slices.IndexFunc(f.Outages, func(o service.FeedOutage) bool { return o.Number == fire.Number })
			if at < 0 || f.Outages[at].From != fire.From || f.Outages[at].Changes < fire.Changes {
				t.Fatalf("%s: %+v, want %+v", when, f.Outages, fire)
			}
			fire = f.Outages[at]
		}
		w.restart()
		same("after a restart")
		w.site.Repair("n2")
		w.site.Unbook("called off")
		w.pass(30)
		same("once it is over")
		if fire.Ended == 0 || fire.Ended > w.now() {
			t.Errorf("%+v, want that it has ended", fire)
		}
		f = feed(t, w.host, vera, "harbour")
		if !slices.ContainsFunc(f.Outages, func(o service.FeedOutage) bool { return o.Ended != 0 && o.Ended < o.From }) {
			t.Errorf("%+v has none that was called off", f.Outages)
		}
		w.pass(2500)
		w.restart()
		same("after another restart")
		f = feed(t, w.host, vera, "harbour")
		if !slices.ContainsFunc(f.Outages, func(o service.FeedOutage) bool {
			return slices.Equal(o.Nodes, []string{"n4"}) && o.From == began+1000 && o.Ended == began+2000
		}) {
			t.Errorf("%+v, want what was announced with its times", f.Outages)
		}
	})
}

// A workflow is one entry of its owner's feed instead of one for each task; its reservations are shown at the
// site.
func TestFeedsHaveWorkflowsWhole(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(4), c)
	w := berth.Workflow{ID: "night", Name: "the night's run", Deadline: berth.Forever, Algorithm: berth.BestAlgorithm, Repair: berth.RepairBoth, Tasks: []berth.WorkflowTask{{ID: "a", Seconds: 100, Alpha: 1}, {ID: "b", Seconds: 50, Alpha: 1, After: []int{0}}}}
	a, err := h.SubmitWorkflow(t.Context(), ann, w)
	if err != nil || a.Workflow.State.Over() {
		t.Fatal(a, err)
	}
	tick(t, h) // its first task begins
	before := feed(t, h, ann.By, "")
	wantTold(t, "ann's", before, "night running")
	if n := len(feed(t, h, root.By, "site").Promises); n != 2 {
		t.Errorf("%d promises at the site, want one for each task", n)
	}
	wantTold(t, "bob's", feed(t, h, bob.By, ""))
	if _, err := h.CancelWorkflow(t.Context(), ann, "night"); err != nil {
		t.Fatal(err)
	}
	after := feed(t, h, ann.By, "")
	wantTold(t, "once it is cancelled", after, "night cancelled")
	if after.Workflows[0].Version <= before.Workflows[0].Version || after.Generation == before.Generation {
		t.Error("a cancelled workflow has the version that it had")
	}
}

// What feeds show is there after a restart, with the same versions.
func TestFeedsAreTheSameAfterARestart(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	c.seconds.Store(1000)
	store, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	options := service.Options{Config: onePool(8), Journal: store, Version: "test", Clock: c.now, SnapshotEvery: 5}
	h, err := service.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		submit(t, h, ann, berth.Rigid(fmt.Sprintf("r%02d", i), 0, berth.Time(1100+i*10), berth.Time(1200+i*10), 2, 10))
	}
	if _, err := h.Modify(t.Context(), ann, "r03", berth.Rigid("r03", 0, 1130, 1300, 1, 10)); err != nil {
		t.Fatal(err)
	}
	before := feed(t, h, ann.By, "")
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := service.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	after := feed(t, again, ann.By, "")
	before.Generation, after.Generation = service.FeedGeneration{}, service.FeedGeneration{}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("(-before +after)\n%s", diff)
	}
	if err := errors.Join(again.Close(), store.Close()); err != nil {
		t.Error(err)
	}
}
