package service_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

func called(name, id string, start berth.Time) berth.Request {
	r := berth.Rigid(id, 0, start, start+100, 1, 100)
	r.Name = name
	return r
}

func wantFound(t *testing.T, h *service.Host, by service.Principal, word, id string) {
	t.Helper()
	r, _, err := h.Find(t.Context(), by, word)
	if err != nil || r.ID != id {
		t.Errorf("%q is %q for %s, want %q (%v)", word, r.ID, by.User, id, err)
	}
}

// A name is on record: it is found after a restart too, with what was changed about it.
func TestANameOutlivesTheService(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	c.seconds.Store(1000)
	store, err := sqlite.Open(dir, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := service.Open(t.Context(), service.Options{Config: onePool(4), Journal: store, Version: "test", Clock: c.now, SnapshotEvery: 7})
	if err != nil {
		t.Fatal(err)
	}
	id := submit(t, h, ann, called("weekly-run", "", 2000)).Reservation.ID
	other := submit(t, h, ann, called("first.try", "", 3000)).Reservation
	renamed := other.Request
	renamed.Name, renamed.Arrival = "second_try", 1000
	a, err := h.Modify(t.Context(), ann, other.ID, renamed)
	if err != nil || a.Refusal != nil || a.Reservation.Request.Name != "second_try" || a.Reservation.Allotments[0].Start != other.Allotments[0].Start {
		t.Errorf("%+v %v", a.Reservation, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	h = start(t, dir, onePool(4), c)
	wantFound(t, h, ann.By, "weekly-run", id)
	wantFound(t, h, ann.By, "second_try", other.ID)
	_, _, err = h.Find(t.Context(), ann.By, "first.try")
	wantCode(t, err, berth.NotFound)
	list, _, err := h.List(t.Context(), ann.By, service.Filter{Name: "weekly-run"})
	if err != nil || len(list) != 1 || list[0].ID != id {
		t.Errorf("%+v %v", list, err)
	}
}

// A list of one user looks at no one else's, however many others have, and has what the list of all has of them: while requests are
// made, changed, given up and forgotten, and after a restart.
func TestAListLooksAtItsUsersAlone(t *testing.T) {
	dir, c, random := t.TempDir(), &clock{}, rand.New(rand.NewPCG(5, 7))
	c.seconds.Store(1000)
	open := func() (h *service.Host, end func()) {
		store, err := sqlite.Open(dir, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h, err = service.Open(t.Context(), service.Options{Config: onePool(4), Journal: store, Version: "test", Clock: c.now, SnapshotEvery: 7, Keep: 20})
		if err != nil {
			t.Fatal(err)
		}
		return h, func() {
			if err := errors.Join(h.Close(), store.Close()); err != nil {
				t.Fatal(err)
			}
		}
	}
	h, end := open()
	defer func() { end() }()
	users := []service.Ask{ann, bob, {By: service.Principal{User: "annabel", Role: service.User}}, {By: service.Principal{User: "vera", Role: service.Viewer}}}
	var ids [3][]string
	forgotten := 0
	for n := range 200 {
		who := random.IntN(3)
		switch k := len(ids[who]); {
		case k == 0 || random.IntN(2) == 0:
			ids[who] = append(ids[who], submit(t, h, users[who], called("", "", berth.Time(2000+random.IntN(200_000)))).Reservation.ID)
		case random.IntN(3) == 0:
			if r, err := h.Get(t.Context(), users[who].By, ids[who][k-1]); err == nil && !r.State.Over() {
				r.Request.Name = fmt.Sprint("n", n)
				if _, err := h.Modify(t.Context(), users[who], r.ID, r.Request); err != nil {
					t.Fatal(err)
				}
			}
		default:
			at := random.IntN(k)
			if _, err := h.Release(t.Context(), users[who], ids[who][at]); err != nil {
				t.Fatal(err)
			}
			ids[who] = slices.Delete(ids[who], at, at+1)
		}
		if n%50 == 49 {
			end()
			h, end = open()
		}
		all, looked, err := h.List(t.Context(), root.By, service.Filter{})
		if err != nil || looked != len(all) {
			t.Fatal(len(all), looked, err)
		}
		forgotten = max(forgotten, n-len(all))
		for _, u := range users {
			of := func(r service.Reservation) string { return fmt.Sprint(r.ID, r.State, r.Version, r.Request.Name) }
			var want, got, chosen []string
			for _, r := range all {
				if r.Request.User == u.By.User {
					want = append(want, of(r))
				}
			}
			list, looked, err := h.List(t.Context(), u.By, service.Filter{})
			for _, r := range list {
				got = append(got, of(r))
			}
			if err != nil || looked != len(want) || !slices.Equal(got, want) {
				t.Fatalf("%d, %s: looked at %d, %q, want %q (%v)", n, u.By.User, looked, got, want, err)
			}
			list, looked, err = h.List(t.Context(), root.By, service.Filter{User: u.By.User})
			for _, r := range list {
				chosen = append(chosen, of(r))
			}
			if err != nil || looked != len(want) || !slices.Equal(chosen, want) {
				t.Fatalf("%d, chosen for an operator, %s: looked at %d, %q, want %q (%v)", n, u.By.User, looked, chosen, want, err)
			}
			if len(want) > 2 {
				behind, _, err := h.List(t.Context(), u.By, service.Filter{After: list[0].ID, Limit: 1})
				if err != nil || len(behind) != 1 || of(behind[0]) != want[1] {
					t.Fatalf("behind %s: %v %v", list[0].ID, behind, err)
				}
			}
			_, looked, err = h.Find(t.Context(), u.By, "no-such-name")
			if wantCode(t, err, berth.NotFound); looked != len(want) {
				t.Fatalf("looked for a name at %d of %d", looked, len(want))
			}
		}
	}
	if forgotten < 20 {
		t.Errorf("only %d were forgotten", forgotten)
	}
}

func TestWhatAWordMeans(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(4), c)
	for _, r := range []berth.Request{
		called("nightly", "01AAAAAAAAAAAAAAAAAAAAAAX1", 2000), called("nightly", "01AAAAAAAAAAAAAAAAAAAAAAX2", 3000),
		called("alone", "01BBBBBBBBBBBBBBBBBBBBBBY3", 4000), called("", "alone.2", 5000),
	} {
		submit(t, h, ann, r)
	}
	submit(t, h, bob, called("alone", "01CCCCCCCCCCCCCCCCCCCCCCZ4", 4000))
	submit(t, h, bob, called("alone", "01CCCCCCCCCCCCCCCCCCCCCCZ5", 4000))

	// Ids, whole or in part, small or capital.
	wantFound(t, h, ann.By, "01AAAAAAAAAAAAAAAAAAAAAAX1", "01AAAAAAAAAAAAAAAAAAAAAAX1")
	wantFound(t, h, ann.By, "01b", "01BBBBBBBBBBBBBBBBBBBBBBY3")
	wantFound(t, h, ann.By, "AX2", "01AAAAAAAAAAAAAAAAAAAAAAX2")
	wantFound(t, h, ann.By, "alone.2", "alone.2")
	for _, word := range []string{"Y3", "", "01D", "01AAAAAAAAAAAAAAAAAAAAAAX3", "none"} {
		_, _, err := h.Find(t.Context(), ann.By, word)
		wantCode(t, err, berth.NotFound)
	}

	// A name comes before the letters of ids, one's own before those of others.
	wantFound(t, h, ann.By, "alone", "01BBBBBBBBBBBBBBBBBBBBBBY3")
	_, _, err := h.Find(t.Context(), root.By, "alone")
	wantCode(t, err, berth.Conflict)
	for _, word := range []string{"01BBBBBBBBBBBBBBBBBBBBBBY3", "alone, of ann, 1 PEs at site/p, 1970-01-01T01:06:40Z", "01CCCCCCCCCCCCCCCCCCCCCCZ5", "of 3 reservations"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v without %q", err, word)
		}
	}
	own := submit(t, h, root, called("alone", "", 6000)).Reservation.ID
	wantFound(t, h, root.By, "alone", own)

	// Of several the one that is not over, and one that was promised before those refused.
	_, _, err = h.Find(t.Context(), ann.By, "nightly")
	wantCode(t, err, berth.Conflict)
	if _, err := h.Release(t.Context(), ann, "01AAAAAAAAAAAAAAAAAAAAAAX1"); err != nil {
		t.Fatal(err)
	}
	wantFound(t, h, ann.By, "nightly", "01AAAAAAAAAAAAAAAAAAAAAAX2")
	no := called("nightly", "", 2000)
	no.Parts[0].Variants[0].NPE = 5
	if a := submit(t, h, ann, no); a.Reservation.State != service.Refused {
		t.Fatal(a.Reservation.State)
	}
	if _, err := h.Release(t.Context(), ann, "01AAAAAAAAAAAAAAAAAAAAAAX2"); err != nil {
		t.Fatal(err)
	}
	_, _, err = h.Find(t.Context(), ann.By, "nightly")
	wantCode(t, err, berth.Conflict)
	if err == nil || !strings.Contains(err.Error(), "of 2 reservations") {
		t.Error(err)
	}
}

// What belongs to others is not there, whatever is known of it, nor is what is at a site that is not open.
func TestWordsRevealNothingOfOthers(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	pool := []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Late}}
	h := start(t, t.TempDir(), engine.Config{Sites: []berth.Site{{Name: "east", Pools: pool}, {Name: "west", Pools: pool}}}, c)
	r := called("secret-run", "01AAAAAAAAAAAAAAAAAAAAAAX1", 2000)
	r.Site = "east"
	submit(t, h, ann, r)
	submit(t, h, ann, called("secret-run", "01AAAAAAAAAAAAAAAAAAAAAAX2", 2000))
	within, viewer := ann.By, ann.By
	within.Sites = service.NewSiteSet([]string{"west"})
	viewer.Role = service.Viewer
	for _, by := range []service.Principal{bob.By, within, viewer} {
		for _, word := range []string{"secret-run", "01A", "AX1", "01AAAAAAAAAAAAAAAAAAAAAAX1"} {
			_, _, err := h.Find(t.Context(), by, word)
			wantCode(t, err, berth.NotFound)
		}
	}
}

// Parts of an array have their numbers behind its name, and names are checked.
func TestNamesOfArraysAndBadNames(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(4), c)
	parts := submitArray(t, h, ann, called("sweep", "", 2000), 3)
	wantFound(t, h, ann.By, "sweep_2", parts[1].Reservation.ID)
	long := called(strings.Repeat("a", berth.MaxName-3), "", 2000)
	_, err := h.SubmitArray(t.Context(), ann, long, 100)
	wantCode(t, err, berth.Invalid)
	submitArray(t, h, ann, long, 99)
	for _, name := range []string{"1st", "a b", "a/b", "a:1", "ä", "-x", strings.Repeat("a", berth.MaxName+1)} {
		_, err := h.Submit(t.Context(), ann, called(name, "", 2000))
		wantCode(t, err, berth.Invalid)
	}
}

// A series is found as reservations are: by the letters of its id, one's own name before those of others, what is live before what is over
// and what was refused last. Of others nothing is told.
func TestWhatAWordMeansAmongSeries(t *testing.T) {
	c := &clock{}
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(8), c)
	named := func(ask service.Ask, name string, npe berth.Count) string {
		t.Helper()
		s := weekly(2, 2, npe)
		s.Request.Name = name
		return submitSeries(t, h, ask, s).Series.Series.ID
	}
	is := func(by service.Principal, word, id string) {
		t.Helper()
		s, looked, err := h.FindSeries(t.Context(), by, word)
		if err != nil || s.Series.ID != id || looked == 0 {
			t.Errorf("%q is %q after %d were looked at, want %q (%v)", word, s.Series.ID, looked, id, err)
		}
	}
	isNot := func(by service.Principal, word string, code berth.Code) error {
		t.Helper()
		_, _, err := h.FindSeries(t.Context(), by, word)
		wantCode(t, err, code)
		return err
	}
	first := named(ann, "nightly", 1)
	bobs := named(bob, "nightly", 1)
	is(ann.By, "nightly", first)
	is(bob.By, "nightly", bobs)
	is(ann.By, strings.ToLower(first[len(first)-8:]), first)
	for _, word := range []string{"", "xy", "none", bobs[len(bobs)-8:]} {
		isNot(ann.By, word, berth.NotFound)
	}
	if err := isNot(root.By, "nightly", berth.Conflict); err == nil || !strings.Contains(err.Error(), first+"  every 1000 s, nightly, of ann, asked for at 1970-01-01T00:16:40Z") || !strings.Contains(err.Error(), "of 2 series") {
		t.Error(err)
	}
	named(ann, "nightly", 9) // refused
	is(ann.By, "nightly", first)
	second := named(ann, "nightly", 1)
	isNot(ann.By, "nightly", berth.Conflict)
	if _, err := h.CancelSeries(t.Context(), ann, first, 0, 0); err != nil {
		t.Fatal(err)
	}
	is(ann.By, "nightly", second)
	open := nightly(1000, 9, 2500)
	open.Request.Name = "open-end"
	id := submitSeries(t, h, ann, open).Series.Series.ID
	if _, err := h.CancelSeries(t.Context(), ann, id, 1, 2); err != nil { // nothing is live, but it goes on
		t.Fatal(err)
	}
	over := nightly(1000, 2, 0)
	over.Least, over.Request.Name = 2, "open-end"
	gone := submitSeries(t, h, ann, over).Series.Series.ID
	if _, err := h.CancelSeries(t.Context(), ann, gone, 0, 0); err != nil {
		t.Fatal(err)
	}
	is(ann.By, "open-end", id)
	isNot(service.Principal{User: "ann", Role: service.Viewer}, "nightly", berth.NotFound)
}
