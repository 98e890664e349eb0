package service_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// Who asked for what is told to operators of all sites alone, in order, by what they choose, in pages.
func TestAuditTellsWhoAskedForWhat(t *testing.T) {
	var c clock
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(8), &c)
	asked := ann
	asked.Token, asked.Address, asked.Request = "t1", "10.0.0.1", "call-1"
	submit(t, h, asked, berth.Rigid("a", 0, 2000, 9000, 1, 100))
	c.seconds.Store(1100)
	submit(t, h, bob, berth.Rigid("b", 0, 2000, 9000, 1, 100))
	acted := root
	acted.Token, acted.Address, acted.Request = "t0", "10.0.0.2", "call-2"
	c.seconds.Store(1200)
	if _, err := h.Release(t.Context(), acted, "a"); err != nil {
		t.Fatal(err)
	}
	all := []string{"1000 ann t1 10.0.0.1 call-1 submit a", "1100 bob    submit b", "1200 root t0 10.0.0.2 call-2 cancel a"}
	for _, x := range []struct {
		name   string
		filter service.AuditFilter
		want   []string
	}{
		{"all", service.AuditFilter{}, all},
		{"user", service.AuditFilter{User: "bob"}, all[1:2]},
		{"token", service.AuditFilter{Token: "t0"}, all[2:]},
		{"address", service.AuditFilter{Address: "10.0.0.1"}, all[:1]},
		{"kind", service.AuditFilter{Kind: "cancel"}, all[2:]},
		{"id", service.AuditFilter{ID: "a"}, []string{all[0], all[2]}},
		{"since", service.AuditFilter{Since: 1100}, all[1:]},
		{"until", service.AuditFilter{Until: 1100}, all[:1]},
		{"both", service.AuditFilter{Since: 1001, Until: 1200}, all[1:2]},
		{"nothing", service.AuditFilter{User: "ann", Kind: "cancel"}, nil},
	} {
		for _, limit := range []int{1, 2, 10} {
			var got []string
			f := x.filter
			f.Limit = limit
			for {
				list, next, _, err := h.Audit(t.Context(), root.By, f)
				if err != nil || len(list) > limit || next > 0 && next <= f.After {
					t.Fatal(x.name, len(list), next, err)
				}
				for _, a := range list {
					got = append(got, fmt.Sprintf("%d %s %s %s %s %s %s", a.At, a.By.User, a.By.Token, a.By.Address, a.By.Request, a.Kind, a.ID))
				}
				if f.After = next; next == 0 {
					break
				}
			}
			if !slices.Equal(got, x.want) {
				t.Errorf("%s, pages of %d: %q, want %q", x.name, limit, got, x.want)
			}
		}
	}
	limited := root.By
	limited.Sites = service.NewSiteSet([]string{"site"})
	for _, by := range []service.Principal{ann.By, limited} {
		if _, _, _, err := h.Audit(t.Context(), by, service.AuditFilter{Limit: 1}); codeOf(err) != berth.Denied {
			t.Errorf("%+v: %v", by, err)
		}
	}
}
