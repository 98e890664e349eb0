package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// An array under late binding in front of Slurm: its parts are numbers of nodes until the horizon, and then each gets nodes of its own, off what
// has died before. Asked for again under its key it is answered as at first, before it has nodes, after a restart, and when Slurm has
// them. Who only looks, or may not use the cluster, changes and gets nothing; an operator gives a part back, and the others stay.
func TestSlurmLateArrayUnderAKey(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	l := newLateLab(t, 10)
	l.looked()
	from := l.host.Now() + 20
	key := l.by
	key.By.Role, key.Key, key.Body = service.User, "sweep", [32]byte{1}
	ask := func() (all string) {
		t.Helper()
		answers, err := l.host.SubmitArray(t.Context(), key, berth.Rigid("sweep", 0, from, from+600, 1, 600), 3)
		if err != nil {
			t.Fatal(err)
		}
		for i := range answers {
			r := &answers[i].Reservation
			all += fmt.Sprintf("%s %s %v v%d; ", r.ID, r.State, r.Nodes, r.Version)
		}
		return all
	}
	first := ask()
	if strings.Count(first, " confirmed [] ") != 3 {
		t.Fatalf("it is %s", first)
	}
	var ids []string
	for part := range strings.SplitSeq(strings.TrimSuffix(first, "; "), "; ") {
		ids = append(ids, strings.Fields(part)[0])
	}
	for name, ask := range map[string]service.Ask{
		"a viewer":     {By: service.Principal{User: l.by.By.User, Role: service.Viewer}},
		"another user": {By: service.Principal{User: "games", Role: service.User}},
	} {
		if r, err := l.host.Release(t.Context(), ask, ids[0]); codeOf(err) != berth.Denied && codeOf(err) != berth.NotFound {
			t.Errorf("%s has released a part: %+v, %v", name, r, err)
		}
	}
	elsewhere := service.Ask{By: service.Principal{User: "games", Role: service.User, Sites: service.NewSiteSet([]string{"elsewhere"})}}
	if answers, err := l.host.SubmitArray(t.Context(), elsewhere, berth.Rigid("theirs", 0, from, from+600, 1, 600), 3); err == nil && answers[0].Reservation.State != service.Refused {
		t.Errorf("who may not use the cluster got %+v", answers)
	}
	l.administer("update", "NodeName=n2", "State=DOWN", "Reason=dead")
	if err := l.host.Close(); err != nil {
		t.Fatal(err)
	}
	l.open()
	if again := ask(); again != first {
		t.Errorf("after a restart it is %s, want %s", again, first)
	}
	var nodes []string
	for _, id := range ids {
		l.made(id)
		nodes = append(nodes, l.nodes(id))
		if is := l.reservedNodes(id); is != l.nodes(id) {
			t.Errorf("%s has %s, in Slurm %s", id, l.nodes(id), is)
		}
	}
	slices.Sort(nodes)
	if got := strings.Join(nodes, " "); got != "n1 n3 n4" {
		t.Errorf("the parts have %s", got)
	}
	if again := ask(); again != first {
		t.Errorf("with nodes it is %s, want %s", again, first)
	}
	if _, err := l.host.Release(t.Context(), l.by, ids[1]); err != nil {
		t.Error(err)
	}
	l.until("its part is gone", func() bool { return strings.Count(l.shown("reservation"), "ReservationName=") == 2 })
	if again := ask(); again != first {
		t.Errorf("with a part given back it is %s, want %s", again, first)
	}
	if err := l.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
