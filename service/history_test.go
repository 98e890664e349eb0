package service_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// What has happened to a reservation is told with who asked for it: to its owner without
// tokens and addresses, and else only to operators.
func TestHistoryTellsWhoDidWhat(t *testing.T) {
	var c clock
	c.seconds.Store(1000)
	h := start(t, t.TempDir(), onePool(4), &c)
	asked := ann
	asked.Token, asked.Address, asked.Request = "t1", "10.0.0.1", "call-1"
	submit(t, h, asked, berth.Rigid("r", 0, 1000, 2000, 2, 100))
	submit(t, h, bob, berth.Rigid("other", 0, 1000, 2000, 2, 100))
	acted := root
	acted.Token, acted.Address, acted.Request = "t0", "10.0.0.2", "call-2"
	if a, err := h.Extend(t.Context(), acted, "r", 1500); err != nil || a.Refusal != nil {
		t.Fatal(a.Refusal, err)
	}
	c.seconds.Store(1200)
	if _, err := h.Release(t.Context(), ann, "r"); err != nil {
		t.Fatal(err)
	}
	told := func(list []string, tokens bool) []string {
		t.Helper()
		by := ann.By
		if tokens {
			by = root.By
		}
		got, looked, err := h.History(t.Context(), by, "r")
		if err != nil || looked < len(got.List) || got.Since != 0 {
			t.Fatal(looked, err)
		}
		for _, x := range got.List {
			list = append(list, fmt.Sprintf("%d %s %s %s %s %s", x.At, x.What, x.By.User, x.By.Token, x.By.Address, x.By.Request))
		}
		return list
	}
	want := []string{"1000 queued ann   ", "1000 accepted    ", "1000 started    ", "1000 extended root   ", "1200 ended ann   "}
	if got := told(nil, false); !slices.Equal(got, want) {
		t.Errorf("the owner is told %q, want %q", got, want)
	}
	want = []string{"1000 queued ann t1 10.0.0.1 call-1", "1000 accepted    ", "1000 started    ", "1000 extended root t0 10.0.0.2 call-2", "1200 ended ann   "}
	if got := told(nil, true); !slices.Equal(got, want) {
		t.Errorf("operators are told %q, want %q", got, want)
	}
	for _, id := range []string{"r", "none"} {
		if _, _, err := h.History(t.Context(), bob.By, id); codeOf(err) != berth.NotFound {
			t.Errorf("bob is told of %s: %v", id, err)
		}
	}
}

// What becomes of a promise because nodes go out of use is told with these nodes, and with no
// others.
func TestHistoryTellsWhichNodesWereLost(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		begin := w.now() + 3000
		w.reserve("runs", 1, 10, 5000)
		w.reserve("waits", 1, 3100, 300)
		w.pass(30)
		if w.nodes("runs") != "n1" || w.nodes("waits") != "n2" {
			t.Fatalf("runs on %s, waits for %s", w.nodes("runs"), w.nodes("waits"))
		}
		w.site.Fail("n4", "frost")
		w.site.Fail("n2", "fire")
		w.pass(20)
		w.book("maintenance", begin, begin+1000, "n3")
		w.pass(20)
		w.site.Repair("n4")
		w.pass(20)
		past, _, err := w.host.History(t.Context(), ann.By, "waits")
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, x := range past.List {
			text := string(x.What)
			for _, o := range x.Out {
				text += fmt.Sprint(" ", o.Nodes, " ", o.From > 0)
			}
			if x.What != service.Made && x.What != service.Unmade {
				told = append(told, text)
			}
		}
		want := []string{string(change.Queued), string(change.Accepted), "moved [n2] false", "resized [n3] true", "resized"}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// The history of a promise is told where the record of its acceptance is no longer kept, whatever
// comes after it.
func TestHistoryWithoutTheAcceptance(t *testing.T) {
	for _, what := range []string{"node lost", "ended"} {
		inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
			w.reserve("r", 4, 10, 5000)
			w.pass(30)
			if _, err := w.host.Compact(t.Context(), root, 0); err != nil {
				t.Fatal(err)
			}
			if what == "ended" {
				if _, err := w.host.Release(t.Context(), ann, "r"); err != nil {
					t.Fatal(err)
				}
			} else {
				w.site.Fail("n2", "fire")
			}
			w.pass(30)
			past, _, err := w.host.History(t.Context(), ann.By, "r")
			if err != nil || past.Since == 0 || past.Delivered != nil {
				t.Fatalf("%s: %v %+v", what, err, past)
			}
			last := change.Resized
			if what == "ended" {
				last = change.Ended
			}
			if !slices.ContainsFunc(past.List, func(x service.Happening) bool { return x.What == last }) {
				t.Errorf("%s: told %+v", what, past.List)
			}
		})
	}
}

// A history is read from a record on before which there is none of it, by the time in the id.
func TestHistoryBeginsWhereTheIDWasMade(t *testing.T) {
	var c clock
	c.seconds.Store(1_800_000_000)
	h, store := startOn(t, t.TempDir(), onePool(4), &c)
	id := ""
	for i := range 40 {
		a := submit(t, h, ann, berth.Rigid("", 0, 1_800_100_000, 1_800_200_000, 1, 100))
		if c.seconds.Add(int64(i % 3)); i == 30 {
			id = a.Reservation.ID
		}
	}
	if made := service.MadeAt(id); made < 1_800_000_000 || made > 1_800_000_000+90 {
		t.Error(made)
	}
	if one, two, none := service.MadeAt(id+"_7"), service.MadeAt(id+".3-2"), service.MadeAt("nightly.3"); one != service.MadeAt(id) || two != one || none != 0 {
		t.Error(one, two, none)
	}
	var at []berth.Time // of each record
	for rec, err := range store.Read(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, rec.At)
	}
	for since := at[0] - 1; since <= at[len(at)-1]+1; since++ {
		for _, few := range []uint64{1, 5, 1000} {
			from, err := h.RecordSince(t.Context(), 1, since, few)
			first := slices.IndexFunc(at, func(x berth.Time) bool { return x >= since })
			if first < 0 {
				first = len(at) - 1
			}
			if err != nil || from > uint64(first)+1 || from+few < uint64(first)+1 {
				t.Fatalf("since %d: from record %d, the first of it is %d (%v)", since, from, first+1, err)
			}
		}
	}
	past, _, err := h.History(t.Context(), ann.By, id)
	if err != nil || len(past.List) != 2 || past.Since != 0 {
		t.Errorf("%+v %v", past, err)
	}
}
