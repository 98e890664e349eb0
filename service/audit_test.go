package service_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

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

// Who added, changed and removed which receiver of notices is told too; that one was disabled since it failed was asked for by
// no one.
func TestAuditTellsOfReceivers(t *testing.T) {
	inHooked(t, func(t *testing.T, w *hooked) {
		w.add(ann, service.Hook{ID: "h1"})
		w.add(bob, service.Hook{ID: "h2"})
		gone := service.Sent{Status: 410, Words: "410 Gone", Disable: "gone"}
		w.post.says = func(context.Context, *service.Hook, *service.Owed) service.Sent { return gone }
		change := func(ask service.Ask, id string, how func(*service.Hook)) {
			t.Helper()
			if _, err := w.host.ChangeHook(t.Context(), ask, id, func(h *service.Hook) error {
				how(h)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		change(ann, "h1", func(h *service.Hook) { h.Note = "on-call" })
		change(ann, "h1", func(h *service.Hook) { h.Rotated = w.host.Now() })
		if err := w.host.TestHook(t.Context(), ann, "h1"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		gone = service.Sent{Status: 200}
		change(ann, "h1", func(h *service.Hook) { h.Disabled = "" })
		if err := w.host.Resend(t.Context(), ann, "h1", nil); err != nil {
			t.Fatal(err)
		}
		w.shut()
		w.open()
		if err := w.host.RemoveHook(t.Context(), root, "h1"); err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			filter service.AuditFilter
			want   []string
		}{
			{service.AuditFilter{}, []string{
				"ann add_receiver h1", "bob add_receiver h2", "ann change_receiver h1", "ann rotate_receiver h1", "ann test_receiver h1", "ann change_receiver h1", "ann resend_notices h1", "root remove_receiver h1",
			}},
			{service.AuditFilter{ID: "h2"}, []string{"bob add_receiver h2"}},
			{service.AuditFilter{Kind: "remove_receiver"}, []string{"root remove_receiver h1"}},
		} {
			x.filter.Limit = 100
			list, _, _, err := w.host.Audit(t.Context(), root.By, x.filter)
			var got []string
			for _, a := range list {
				if got = append(got, fmt.Sprintf("%s %s %s", a.By.User, a.Kind, a.ID)); !slices.Contains(service.AuditKinds(), a.Kind) {
					t.Errorf("kind %q", a.Kind)
				}
			}
			if err != nil || !slices.Equal(got, x.want) {
				t.Errorf("%+v: %q, want %q: %v", x.filter, got, x.want, err)
			}
		}
	})
}
