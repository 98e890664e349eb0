package service_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// Whatever asks for more after a membership has ended is denied, and what gives back is not; what was answered under a key before is answered so again.
func TestEndedMembershipInEveryWay(t *testing.T) {
	const npe, duration = 4, 100
	ctx, cid := t.Context(), asUser("cid")
	asked := func(start, end berth.Time, npe berth.Count, duration berth.Duration) berth.Request {
		r := berth.Rigid("", 0, start, end, npe, duration)
		r.User, r.Account = "cid", "phys"
		return r
	}
	// changed asks for a change of the whole request, as the API does.
	changed := func(change func(r *berth.Request)) func(*service.Host, string, string) (service.Answer, error) {
		return func(h *service.Host, id, _ string) (service.Answer, error) {
			was, err := h.Get(ctx, cid.By, id)
			if err != nil {
				return service.Answer{}, err
			}
			r := *was.Request.Clone()
			change(&r)
			return h.Modify(ctx, cid, id, r)
		}
	}
	variant := func(npe berth.Count, duration berth.Duration) func(r *berth.Request) {
		return func(r *berth.Request) { r.Parts[0].Variants = []berth.Variant{{NPE: npe, Duration: duration}} }
	}
	for _, c := range []struct {
		name   string
		denied bool
		ask    func(h *service.Host, id, offer string) (service.Answer, error)
	}{
		{"hold of an offer", true, func(h *service.Host, _, offer string) (service.Answer, error) { return h.Hold(ctx, cid, offer, 10) }},
		{"hold of an offer by an operator", true, func(h *service.Host, _, offer string) (service.Answer, error) { return h.Hold(ctx, root, offer, 10) }},
		{"extension", true, func(h *service.Host, id, _ string) (service.Answer, error) { return h.Extend(ctx, cid, id, 2200) }},
		{"more PEs", true, changed(variant(npe+1, duration))},
		{"longer", true, changed(variant(npe, duration+1))},
		{"fewer PEs for longer", true, changed(variant(npe-2, duration+1))},
		{"variants that all ask for more", true, changed(func(r *berth.Request) {
			r.Parts[0].Variants = []berth.Variant{{NPE: npe - 1, Duration: duration + 1}, {NPE: npe + 1, Duration: duration / 2}}
		})},
		{"a later window", true, changed(func(r *berth.Request) { r.Ready, r.Deadline = r.Ready+500, r.Deadline+500 })},
		{"an earlier window", true, changed(func(r *berth.Request) { r.Ready -= 500 })},
		{"another part", true, changed(func(r *berth.Request) { r.Parts = append(r.Parts, r.Parts[0]) })},
		{"another account", true, changed(func(r *berth.Request) { r.Account = "chem" })},
		{"another user beside", true, changed(func(r *berth.Request) { r.Users = []string{"bob"} })},
		{"a requirement", true, changed(func(r *berth.Request) { r.Constraint = "fast" })},
		{"fewer PEs", false, changed(variant(npe-1, duration))},
		{"shorter", false, changed(variant(npe, duration/2))},
		{"fewer and shorter in a part of the window", false, changed(func(r *berth.Request) { variant(1, 10)(r); r.Ready, r.Deadline = r.Ready+1, r.Deadline-1 })},
		{"the same", false, changed(func(*berth.Request) {})},
		{"a narrower variant beside a wider one", false, changed(func(r *berth.Request) {
			r.Parts[0].Variants = []berth.Variant{{NPE: npe - 1, Duration: duration}, {NPE: npe + 1, Duration: duration / 2}}
		})},
		{"release", false, func(h *service.Host, id, _ string) (a service.Answer, err error) {
			a.Reservation, err = h.Release(ctx, cid, id)
			return a, err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, who := withProjects(t, false, nil)
			a, err := h.Submit(ctx, cid, asked(2000, 3000, npe, duration))
			if err != nil || a.Reservation.State != service.Confirmed {
				t.Fatalf("%+v, %v", a, err)
			}
			offer := func() string {
				list, err := h.Offers(ctx, cid, asked(2000, 3000, npe, duration), 1)
				if err != nil || len(list) != 1 {
					t.Fatalf("%+v, %v", list, err)
				}
				return list[0].ID
			}
			first, second := offer(), offer()
			keyed := cid
			keyed.Key = "k"
			held, err := h.Hold(ctx, keyed, second, 10)
			if err != nil || held.Reservation.Request.Account != "phys" {
				t.Fatalf("%+v, %v", held, err)
			}
			id := a.Reservation.ID
			was, err := h.Get(ctx, cid.By, id)
			if err != nil {
				t.Fatal(err)
			}
			who.left = true
			_, err = c.ask(h, id, first)
			coded, is := errors.AsType[*berth.Error](err)
			switch {
			case c.denied && (!is || coded.Code != berth.Denied || coded.Field != "account"):
				t.Errorf("%v, want it denied for the account", err)
			case !c.denied && err != nil:
				t.Error(err)
			}
			if again, err := h.Hold(ctx, keyed, second, 10); err != nil || again.Reservation.ID != held.Reservation.ID {
				t.Errorf("under its key the hold is %+v, %v", again, err)
			}
			got, err := h.Get(ctx, cid.By, id)
			if err != nil || c.denied && got.Version != was.Version {
				t.Errorf("it has version %d, %v, want %d, as it was", got.Version, err, was.Version)
			}
			if !c.denied && c.name != "release" && !slices.Equal(got.Request.Sites, []string{was.Allotments[0].Resource.Site}) {
				t.Errorf("it may be at %v, want where it is alone", got.Request.Sites)
			}
		})
	}
}

// After a membership has ended, what is left of an extension or of a moldable request can be given back: what a change may come to is no more PEs
// than are promised, and no longer than it lasts.
func TestWhatIsLessThanPromisedIsGivenBackAfterAMembership(t *testing.T) {
	t.Parallel()
	ctx, cid := t.Context(), asUser("cid")
	for _, c := range []struct {
		name     string
		variants []berth.Variant // asked for at first
		extended berth.Duration
		change   []berth.Variant // nil if none is left
		until    berth.Time
		left     []berth.Variant
	}{
		{"half of an extension", []berth.Variant{{NPE: 4, Duration: 100}}, 60, []berth.Variant{{NPE: 4, Duration: 130}}, 2160, []berth.Variant{{NPE: 4, Duration: 130}}},
		{"all of an extension", []berth.Variant{{NPE: 4, Duration: 100}}, 60, []berth.Variant{{NPE: 2, Duration: 160}}, 2160, []berth.Variant{{NPE: 2, Duration: 160}}},
		{"more than an extension", []berth.Variant{{NPE: 4, Duration: 100}}, 60, []berth.Variant{{NPE: 2, Duration: 161}}, 2161, nil},
		{"a window beyond an extension", []berth.Variant{{NPE: 4, Duration: 100}}, 60, []berth.Variant{{NPE: 2, Duration: 160}}, 2161, nil},
		{"a window beyond what is not extended", []berth.Variant{{NPE: 4, Duration: 100}}, 0, []berth.Variant{{NPE: 2, Duration: 100}}, 2101, nil},
		{"of a moldable request what is no more", []berth.Variant{{NPE: 4, Duration: 50}, {NPE: 2, Duration: 100}}, 0, []berth.Variant{{NPE: 3, Duration: 50}, {NPE: 2, Duration: 100}}, 2100, []berth.Variant{{NPE: 3, Duration: 50}}},
		{"a moldable request in less time", []berth.Variant{{NPE: 4, Duration: 50}, {NPE: 2, Duration: 100}}, 0, []berth.Variant{{NPE: 4, Duration: 50}, {NPE: 2, Duration: 100}}, 2099, []berth.Variant{{NPE: 4, Duration: 50}}},
		{"the other variant of a moldable request", []berth.Variant{{NPE: 4, Duration: 50}, {NPE: 2, Duration: 100}}, 0, []berth.Variant{{NPE: 2, Duration: 100}}, 2100, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, who := withProjects(t, false, nil)
			r := berth.Rigid("", 0, 2000, 2100, 4, 100)
			r.User, r.Account, r.Parts[0].Variants = "cid", "phys", c.variants
			a, err := h.Submit(ctx, cid, r)
			if err != nil || a.Reservation.State != service.Confirmed || a.Reservation.Allotments[0].NPE != 4 {
				t.Fatalf("%+v, %v", a, err)
			}
			id, had := a.Reservation.ID, a.Reservation.Allotments[0]
			if c.extended > 0 {
				had.End += berth.Time(c.extended)
				if a, err := h.Extend(ctx, cid, id, had.End); err != nil || a.Refusal != nil {
					t.Fatalf("%+v, %v", a, err)
				}
			}
			who.left = true
			changed := *a.Reservation.Request.Clone()
			changed.Parts[0].Variants, changed.Deadline = c.change, c.until
			a, err = h.Modify(ctx, cid, id, changed)
			if c.left == nil {
				wantCode(t, err, berth.Denied)
				return
			}
			if err != nil || a.Refusal != nil {
				t.Fatalf("%+v, %v", a.Refusal, err)
			}
			if got := a.Reservation.Request.Parts[0].Variants; !slices.Equal(got, c.left) {
				t.Errorf("it asks for %v; want %v", got, c.left)
			}
			if at := a.Reservation.Allotments[0]; at.NPE > had.NPE || at.End.Sub(at.Start) > had.End.Sub(had.Start) || at.End > had.End && at.End > 2100 {
				t.Errorf("it has %+v, and had %+v", at, had)
			}
		})
	}
}
