package service_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

// view is what of a picture is in a window of time.
type view struct {
	Bars, Unplaced []service.Bar
	Generation     uint64
}

// picture returns the bars of the harbour's pool as text, with times since begin.
func (w *harbour) picture(by service.Principal, from, to berth.Time) (view, []string) {
	w.t.Helper()
	all, err := w.host.Gantt(w.t.Context(), by, w.pool())
	if err != nil {
		w.t.Fatal(err)
	}
	p := view{Generation: all.Generation}
	for i, page := range append(slices.Clone(all.Pages), all.Unplaced) {
		for _, b := range page {
			switch b.Flags = all.Shown(&b); {
			case b.Start >= to || b.End <= from:
			case i == len(all.Pages):
				p.Unplaced = append(p.Unplaced, b)
			default:
				p.Bars = append(p.Bars, b)
			}
		}
	}
	var list []string
	for _, b := range p.Bars {
		list = append(list, fmt.Sprintf("%d+%d %d-%d c%d f%d", b.First, b.PEs, b.Start, min(b.End, 1<<40), b.Class, b.Flags))
	}
	return p, list
}

func (w *harbour) pool() berth.ResourceID {
	w.t.Helper()
	views, err := w.host.Sites(w.t.Context(), root.By)
	if err != nil {
		w.t.Fatal(err)
	}
	return berth.PoolID("harbour", views[0].Pools[0].Name)
}

// Each bar of a picture is a run of PEs of a span, and together they hold what the spans
// hold; a bar says whether it is one's own and names no user.
func TestPictureHoldsWhatTheSpansHold(t *testing.T) {
	for _, unit := range []site.Unit{site.UnitNode, site.UnitCore} {
		inHarbour(t, unit, func(t *testing.T, w *harbour) {
			begin := w.now()
			w.reserve("a", 1, 10, 1000)
			w.reserve("b", 2, 10, 2000)
			w.reserve("later", 2, 3000, 500)
			w.pass(30)
			w.site.Fail("n4", "fire")
			w.pass(30)
			if _, err := w.host.Release(t.Context(), ann, "a"); err != nil {
				t.Fatal(err)
			}
			for _, window := range [][2]berth.Time{{begin, begin + 5000}, {begin + 2500, begin + 4000}, {begin - 100, begin + 20}} {
				spans, err := w.host.Occupation(t.Context(), ann.By, "harbour", window[0], window[1], service.Mark{Start: -1}, 100)
				if err != nil {
					t.Fatal(err)
				}
				p, list := w.picture(ann.By, window[0], window[1])
				held, drawn := map[berth.Interval]berth.Count{}, map[berth.Interval]berth.Count{}
				for _, s := range spans {
					if s.Start = max(s.Start, s.Seen); s.Start < window[1] { // one that had begun is drawn from when it was seen
						held[s.Interval()] += s.NPE
					}
				}
				for _, b := range append(slices.Clone(p.Bars), p.Unplaced...) {
					drawn[berth.Interval{Start: b.Start, End: b.End}] += b.PEs
					if b.Class != service.ClassOutage && b.Flags&service.IsMine == 0 {
						t.Errorf("%+v is not ann's", b)
					}
				}
				if len(spans) == 0 || fmt.Sprint(held) != fmt.Sprint(drawn) {
					t.Errorf("%v: the picture is %v, of PEs by time %v; want %v", window, list, drawn, held)
				}
				if !slices.IsSortedFunc(p.Bars, func(a, b service.Bar) int { return int(a.First - b.First) }) {
					t.Errorf("not by PE: %v", list)
				}
			}
			of := func(by service.Principal) string {
				p, _ := w.picture(by, begin, begin+5000)
				mine := 0
				for _, b := range p.Bars {
					if b.Flags&service.IsMine != 0 {
						mine++
					}
				}
				return fmt.Sprint(mine > 0, len(p.Bars))
			}
			p, _ := w.picture(ann.By, begin, begin+5000)
			if of(ann.By) != fmt.Sprint(true, len(p.Bars)) || of(bob.By) != fmt.Sprint(false, len(p.Bars)) || of(root.By) != fmt.Sprint(false, len(p.Bars)) {
				t.Errorf("ann %s, bob %s, root %s of %d bars", of(ann.By), of(bob.By), of(root.By), len(p.Bars))
			}
		})
	}
}

// What a degraded promise lacks is drawn beside what it has, so that one that has lost all is
// seen too, and is gone when the promise is whole again or over.
func TestWhatPromisesLackIsDrawn(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		begin := w.now()
		lacks := func() (lacking []string) {
			if _, err := w.host.CheckPicture(w.pool()); err != nil {
				t.Error(err)
			}
			p, _ := w.picture(ann.By, begin, begin+5000)
			for _, b := range p.Unplaced {
				lacking = append(lacking, fmt.Sprintf("%d of c%d f%d for %d", b.PEs, b.Class, b.Flags&^service.IsMine, b.End-b.Start))
			}
			return lacking
		}
		all := berth.Count(len(w.state().Nodes))
		w.reserve("all", all, 100, 1000)
		w.pass(30)
		if got := lacks(); len(got) != 0 {
			t.Errorf("a whole promise lacks %v", got)
		}
		w.site.Fail("n1", "fire")
		w.pass(30)
		if got, want := lacks(), []string{"1 of c3 f0 for 1000"}; !slices.Equal(got, want) {
			t.Errorf("it lacks %v, want %v", got, want)
		}
		for i := range all {
			w.site.Fail(fmt.Sprint("n", i+1), "fire")
		}
		w.pass(10)
		want := []string{fmt.Sprintf("%d of c3 f0 for 1000", all)}
		if got := lacks(); !slices.Equal(got, want) {
			t.Errorf("it lacks %v, want %v", got, want)
		}
		p, _ := w.picture(ann.By, begin, begin+5000)
		spans, err := w.host.Spans(t.Context(), ann.By, "harbour", p.Unplaced[0].Number)
		if err != nil || len(spans) != 1 || spans[0].ID != "all" {
			t.Errorf("its number stands for %+v, %v", spans, err)
		}
		for i := range all {
			w.site.Repair(fmt.Sprint("n", i+1))
		}
		w.pass(30)
		if got := lacks(); len(got) != 0 {
			t.Errorf("whole again it lacks %v", got)
		}
		w.site.Fail("n1", "fire")
		w.pass(10)
		if got := lacks(); len(got) != 1 {
			t.Errorf("degraded again it lacks %v", got)
		}
		if _, err := w.host.Release(t.Context(), ann, "all"); err != nil {
			t.Fatal(err)
		}
		w.pass(5)
		if got := lacks(); len(got) != 0 {
			t.Errorf("over, it lacks %v", got)
		}
	})
}

// Each row of a picture is a node, with its PEs, whether these are its cores or it is one itself.
func TestRowsAreNodes(t *testing.T) {
	for _, unit := range []site.Unit{site.UnitNode, site.UnitCore} {
		inHarbour(t, unit, func(t *testing.T, w *harbour) {
			rows, err := w.host.Rows(t.Context(), ann.By, w.pool())
			each := rows.PEs / 4
			if err != nil || len(rows.Rows) != 4 || each != map[site.Unit]berth.Count{site.UnitNode: 1, site.UnitCore: 4}[unit] {
				t.Fatalf("%+v, %v", rows, err)
			}
			for i, row := range rows.Rows {
				if want := (service.Row{Name: fmt.Sprint("n", i+1), First: berth.PE(i) * berth.PE(each), PEs: each}); row != want {
					t.Errorf("%s: row %+v, want %+v", unit, row, want)
				}
			}
		})
	}
}

// What a number stands for everybody who sees the site may ask; whose it is the owner and
// operators alone are told.
func TestSpansOfANumber(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		begin := w.now()
		w.reserve("a", 1, 10, 1000)
		w.site.Fail("n4", "fire")
		w.pass(30)
		p, list := w.picture(ann.By, begin, begin+5000)
		if len(p.Bars) != 2 {
			t.Fatal(list)
		}
		for _, b := range p.Bars {
			for _, by := range []service.Principal{ann.By, bob.By, root.By} {
				spans, err := w.host.Spans(t.Context(), by, "harbour", b.Number)
				if err != nil || len(spans) != 1 || max(spans[0].Start, spans[0].Seen) != b.Start || spans[0].NPE != b.PEs {
					t.Fatalf("%+v %v of %+v", spans, err, b)
				}
				if known := b.Class != service.ClassOutage && by.User != bob.By.User; (spans[0].ID == "a") != known || (spans[0].User == "ann") != known {
					t.Errorf("%s is told %+v", by.User, spans[0])
				}
			}
		}
		if _, err := w.host.Spans(t.Context(), ann.By, "harbour", 99); err == nil {
			t.Error("no error about a number of nothing")
		}
		none := service.Principal{User: "x", Role: service.Operator, Sites: service.NewSiteSet([]string{"elsewhere"})}
		_, spans := w.host.Spans(t.Context(), none, "harbour", 1)
		_, picture := w.host.Gantt(t.Context(), none, w.pool())
		_, rows := w.host.Rows(t.Context(), none, w.pool())
		_, generation := w.host.GanttGeneration(none, w.pool())
		for i, err := range []error{spans, picture, rows, generation} {
			if err == nil || err.Error() != `site: no site "harbour"` {
				t.Errorf("%d: who does not see the site is told %v", i, err)
			}
		}
		if _, err := w.host.Gantt(t.Context(), ann.By, berth.PoolID("harbour", "nowhere")); err == nil {
			t.Error("no error about an unknown pool")
		}
	})
}

// Everybody who sees a site is told soon that its pool changed, however often it did, and
// without names; the picture has another generation then.
func TestOccupiedIsToldToEverybody(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		vera := service.Principal{User: "vera", Role: service.Viewer}
		stranger := service.Principal{User: "x", Role: service.Operator, Sites: service.NewSiteSet([]string{"elsewhere"})}
		before, err := w.host.GanttGeneration(vera, w.pool())
		if err != nil {
			t.Fatal(err)
		}
		var told, strange []service.Occupied
		for by, list := range map[service.Principal]*[]service.Occupied{vera: &told, stranger: &strange} {
			events := w.host.Occupied(t.Context(), by)
			go func() {
				for o, err := range events {
					if err != nil {
						return
					}
					*list = append(*list, o)
				}
			}()
		}
		begin := w.now()
		w.reserve("a", 1, 1000, 100)
		w.reserve("b", 1, 2000, 300)
		w.reserve("c", 1, 500, 100)
		w.pass(1)
		synctest.Wait()
		if len(told) != 1 || told[0].Site != "harbour" || told[0].Pool != w.pool().Name || told[0].From != begin+500 || told[0].To < begin+2300 || told[0].Generation <= before {
			t.Fatalf("told of %+v behind generation %d", told, before)
		}
		if p, _ := w.picture(vera, begin, begin+5000); p.Generation != told[0].Generation {
			t.Errorf("generation %d, told of %d", p.Generation, told[0].Generation)
		}
		if _, err := w.host.Release(t.Context(), ann, "b"); err != nil {
			t.Fatal(err)
		}
		w.pass(1)
		synctest.Wait()
		if len(told) != 2 || told[1].From > begin+2000 || told[1].To < begin+2300 {
			t.Errorf("told of %+v when b was given back", told[1:])
		}
		w.site.Fail("n4", "fire")
		w.pass(30)
		synctest.Wait()
		if len(told) != 3 || told[2].To != berth.Forever {
			t.Errorf("told of %+v when a node failed", told[2:])
		}
		if len(strange) != 0 {
			t.Errorf("who does not see the site is told %+v", strange)
		}
	})
}

// Everybody who sees a site is told soon that it answers no more, and that it is back; its
// picture is the same.
func TestASiteThatIsGoneIsTold(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		vera := service.Principal{User: "vera", Role: service.Viewer}
		w.pass(30)
		reachable := func() bool {
			views, err := w.host.Sites(t.Context(), vera)
			if err != nil {
				t.Fatal(err)
			}
			return views[0].Reachable
		}
		var told []service.Occupied
		events := w.host.Occupied(t.Context(), vera)
		go func() {
			for o, err := range events {
				if err != nil {
					return
				}
				told = append(told, o)
			}
		}()
		w.pass(30)
		synctest.Wait()
		if len(told) != 0 || !reachable() {
			t.Fatalf("told of %+v while nothing changes; reachable is %t", told, reachable())
		}
		before, err := w.host.GanttGeneration(vera, w.pool())
		if err != nil {
			t.Fatal(err)
		}
		w.site.Inject(fake.Fault{Op: fake.Observe, What: fake.Down})
		w.pass(10)
		synctest.Wait()
		if len(told) != 1 || told[0].Site != "harbour" || told[0].Pool != w.pool().Name || told[0].Generation != before || reachable() {
			t.Errorf("told of %+v when it is gone; reachable is %t", told, reachable())
		}
		w.pass(30)
		synctest.Wait()
		if len(told) != 1 {
			t.Errorf("told of %+v while it stays gone", told)
		}
		w.site.Heal()
		w.pass(60)
		synctest.Wait()
		if len(told) != 2 || !reachable() {
			t.Errorf("told of %+v when it is back; reachable is %t", told, reachable())
		}
	})
}
