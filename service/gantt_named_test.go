package service_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// An outage is drawn from when it was first seen, and says that it may have begun before; one that was announced
// from when it began. Neither changes when others come, nor after a restart.
func TestOutagesAreDrawnFromWhenTheyWereSeen(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.book("maintenance", w.now()+600, w.now()+9000, "n2")
		announced := w.now() + 600
		w.pass(30)
		before := w.now()
		w.site.Fail("n4", "fire")
		w.pass(30)
		after := w.now()
		w.pass(900)
		drawn := func() (list []string) {
			t.Helper()
			if _, err := w.host.CheckPicture(w.pool()); err != nil {
				t.Error(err)
			}
			p, _ := w.picture(root.By, 0, berth.Forever)
			spans, err := w.host.Occupation(t.Context(), root.By, "harbour", 0, berth.Forever, service.Mark{Start: -1}, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range p.Bars {
				if b.Class != service.ClassOutage {
					continue
				}
				what := "elsewhen"
				switch open := b.Flags&service.OpenStart != 0; {
				case b.Start == announced && !open:
					what = "as announced"
				case b.Start > before && b.Start <= after && open:
					what = "as seen"
				}
				i := slices.IndexFunc(spans, func(s service.Span) bool { return s.Mark.InPictures() == b.Number })
				if i < 0 || spans[i].Start+spans[i].Seen != b.Start || (spans[i].Seen != 0) != (b.Flags&service.OpenStart != 0) {
					t.Errorf("the bar %+v has the spans %+v", b, spans)
				}
				list = append(list, fmt.Sprintf("%d %s", b.First, what))
			}
			return list
		}
		want := []string{"1 as announced", "3 as seen"}
		if got := drawn(); !slices.Equal(got, want) {
			t.Errorf("drawn are %q, want %q", got, want)
		}
		w.reserve("a", 1, 10, 1000)
		w.site.Fail("n3", "water")
		w.pass(30)
		if got := drawn(); len(got) != 3 || got[0] != want[0] || got[2] != want[1] {
			t.Errorf("once another is seen drawn are %q", got)
		}
		w.restart()
		w.pass(30)
		if got := drawn(); len(got) != 3 || got[0] != want[0] || got[2] != want[1] {
			t.Errorf("after a restart drawn are %q", got)
		}
	})
}

// Bars are found by user, name or id by those alone who see whose they are.
func TestBarsAreFoundByNamesThatOneMaySee(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		for _, who := range []struct{ user, id, name string }{{"ann", "first", "Weekly"}, {"bob", "second", "weekly-too"}, {"bob", "third", ""}} {
			r := berth.Rigid(who.id, w.now(), w.now()+10, w.now()+1000, 1, 500)
			r.Name, r.Site = who.name, "harbour"
			if _, err := w.host.Submit(t.Context(), service.Ask{By: service.Principal{User: who.user, Role: service.User}}, r); err != nil {
				t.Fatal(err)
			}
		}
		number := map[uint32]string{}
		spans, err := w.host.Occupation(t.Context(), root.By, "harbour", 0, berth.Forever, service.Mark{Start: -1}, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range spans {
			number[s.Mark.InPictures()] = s.ID
		}
		vera := service.Principal{User: "vera", Role: service.Viewer}
		for _, look := range []struct {
			by   service.Principal
			text string
			want string
		}{
			{root.By, "WEEKLY", "[first second]"},
			{ann.By, "weekly", "[first]"},
			{bob.By, "weekly", "[second]"},
			{vera, "weekly", "[]"},
			{root.By, "bob", "[second third]"},
			{ann.By, "bob", "[]"},
			{root.By, "ir", "[first third]"},
			{root.By, "nothing", "[]"},
		} {
			numbers, err := w.host.Named(t.Context(), look.by, w.pool(), look.text)
			if err != nil {
				t.Fatal(err)
			}
			found := []string{}
			for _, n := range numbers {
				found = append(found, number[n])
			}
			slices.Sort(found)
			if got := fmt.Sprint(found); got != look.want {
				t.Errorf("%s finds %s by %q, want %s", look.by.User, got, look.text, look.want)
			}
		}
		if _, err := w.host.Named(t.Context(), root.By, berth.PoolID("harbour", "none"), "x"); err == nil {
			t.Error("a pool that does not exist has names")
		}
	})
}
