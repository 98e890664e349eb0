package service_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// What was requested is told as it was asked for first: users their own, operators all, of the
// time that is asked about, also after a restart.
func TestAskedIsWhatWasRequested(t *testing.T) {
	var c clock
	c.seconds.Store(1000)
	dir := t.TempDir()
	h, store := startOn(t, dir, onePool(4), &c)
	submit(t, h, ann, berth.Rigid("a", 0, 1400, 3000, 2, 100))
	submit(t, h, bob, berth.Rigid("b", 0, 1000, 2000, 9, 100)) // which is refused
	if a, err := h.Modify(t.Context(), ann, "a", berth.Rigid("a", 0, 1500, 3000, 1, 50)); err != nil || a.Refusal != nil {
		t.Fatal(a.Refusal, err)
	}
	c.seconds.Store(5000)
	submit(t, h, ann, berth.Rigid("c", 0, 6000, 9000, 1, 100))
	asked := func(h *service.Host, by service.Principal, from, to berth.Time) (ids []string) {
		t.Helper()
		list, looked, err := h.Asked(t.Context(), by, from, to)
		if err != nil || looked < len(list) {
			t.Fatal(looked, err)
		}
		for i := range list {
			ids = append(ids, list[i].ID)
		}
		return ids
	}
	check := func(h *service.Host) {
		t.Helper()
		for _, row := range []struct {
			by       service.Principal
			from, to berth.Time
			want     []string
		}{
			{ann.By, 0, berth.Forever, []string{"a", "c"}},
			{bob.By, 0, berth.Forever, []string{"b"}},
			{root.By, 0, berth.Forever, []string{"a", "b", "c"}},
			{root.By, 1001, berth.Forever, []string{"c"}},
			{root.By, 0, 5000, []string{"a", "b"}},
			{root.By, 1000, 1001, []string{"a", "b"}},
			{service.Principal{User: "root", Role: service.Operator, Sites: service.NewSiteSet([]string{"site"})}, 0, 5000, []string{"a", "b"}},
			{service.Principal{User: "ann", Role: service.Viewer}, 0, berth.Forever, nil},
		} {
			if got := asked(h, row.by, row.from, row.to); !slices.Equal(got, row.want) {
				t.Errorf("%s from %d to %d: %q, want %q", row.by.User, row.from, row.to, got, row.want)
			}
		}
		list, _, err := h.Asked(t.Context(), ann.By, 0, berth.Forever)
		if err != nil || list[0].Parts[0].Variants[0] != (berth.Variant{NPE: 2, Duration: 100}) || list[0].Arrival != 1000 {
			t.Errorf("%+v, %v", list[0], err)
		}
	}
	check(h)
	if err := errors.Join(h.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
	check(start(t, dir, onePool(4), &c))
}

// Who may not see a site is not told of what came to it.
func TestAskedHidesSites(t *testing.T) {
	var c clock
	c.seconds.Store(1000)
	config := onePool(4)
	config.Sites = append(slices.Clone(config.Sites), berth.Site{Name: "second", Pools: []berth.Pool{{Name: "pool", PEs: 64, Binding: berth.Late}}})
	h := start(t, t.TempDir(), config, &c)
	submit(t, h, ann, berth.Rigid("small", 0, 1000, 2000, 2, 100))
	submit(t, h, ann, berth.Rigid("large", 0, 1000, 2000, 32, 100)) // fits at the second site alone
	named := berth.Rigid("named", 0, 1000, 2000, 99, 100)
	named.Site = "second"
	submit(t, h, ann, named) // is refused there
	by := root.By
	by.Sites = service.NewSiteSet([]string{config.Sites[0].Name})
	list, _, err := h.Asked(t.Context(), by, 0, berth.Forever)
	if err != nil || len(list) != 1 || list[0].ID != "small" {
		t.Errorf("%+v, %v", list, err)
	}
}
