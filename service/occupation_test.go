package service_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// What holds PEs is seen by everybody, in order and page by page; whose it is by
// the owner and operators alone. What was given back early held its PEs until
// then, and what never began held none.
func TestOccupation(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		begin := w.now()
		seen := func(by service.Ask, from, to berth.Time, limit int) []string {
			var list []string
			after := service.Mark{Start: -1}
			for {
				spans, err := w.host.Occupation(t.Context(), by.By, "harbour", from, to, after, limit)
				if err != nil {
					t.Fatal(err)
				}
				for _, s := range spans {
					list = append(list, fmt.Sprintf("%s %v %d-%d %s %s%s", s.Kind, s.PEs, max(s.Start-begin, -1), min(s.End-begin, 9999), s.State, s.ID, s.User))
				}
				if len(spans) < limit {
					return list
				}
				after = spans[limit-1].Mark
			}
		}
		w.reserve("a", 1, 10, 1000)
		w.reserve("b", 2, 10, 2000)
		w.reserve("never", 1, 3000, 100)
		w.pass(30)
		w.site.Fail("n4", "fire")
		w.pass(30)
		if _, err := w.host.Release(t.Context(), ann, "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := w.host.Release(t.Context(), ann, "never"); err != nil {
			t.Fatal(err)
		}
		ended := w.now() - begin
		want := []string{"outage 3 -1-9999  ", fmt.Sprintf("request 0 10-%d finished aann", ended), "request 1-2 10-2010 active bann"}
		for _, limit := range []int{1, 2, 100, math.MaxInt} { // the last asks for all, as plans of workflows do
			if got := seen(ann, begin, begin+5000, limit); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%d at a time: %q, want %q", limit, got, want)
			}
		}
		if got := seen(bob, begin+ended, begin+5000, 100); fmt.Sprint(got) != fmt.Sprint([]string{want[0], "request 1-2 10-2010 active "}) {
			t.Errorf("another user sees %q", got)
		}
		if got := seen(root, begin+2010, begin+5000, 100); fmt.Sprint(got) != fmt.Sprint(want[:1]) {
			t.Errorf("later: %q", got)
		}
		if _, err := w.host.Occupation(t.Context(), ann.By, "nowhere", 0, 1, service.Mark{}, 1); err == nil {
			t.Error("no error about an unknown site")
		}
	})
}
