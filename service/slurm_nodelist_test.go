package service_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/slurm/slurmtest"
)

// Nodes that are named, and none that are excluded, are those of the reservation in Slurm: of a
// request, its parts and an array, held, changed, extended, asked for twice under a key and by
// an ordinary user, beside a constraint, and when a node is lost.
func TestSlurmServesTheNodesThatAreNamed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a cluster")
	}
	cluster := slurmtest.Start(t, slurmtest.Options{Nodes: 8, GPUs: 2})
	if out, err := cluster.Command("scontrol", "update", "NodeName=n[2-5]", "AvailableFeatures=ib", "ActiveFeatures=ib"); err != nil {
		t.Fatal(err, out)
	}
	l := newLabOf(t, cluster, site.UnitNode, false)
	l.looked()
	user := l.by
	user.By.Role = service.User
	in := berth.Duration(0) // each promise has a time of its own
	request := func(id string, npe berth.Count, nodelist, exclude string) berth.Request {
		in += 400
		start := l.host.Now().Add(in)
		r := berth.Rigid(id, 0, start, start.Add(100), npe, 100)
		r.Nodelist, r.Exclude = nodelist, exclude
		return r
	}
	is := func(id, want string) {
		t.Helper()
		r := l.get(id)
		var parts []string
		for i := range r.Nodes {
			parts = append(parts, strings.Join(r.Nodes[i], ","))
		}
		if got := strings.Join(parts, "|"); got != want {
			t.Errorf("%s has %s, want %s", id, got, want)
		}
	}
	promised := func(ask service.Ask, r berth.Request) service.Reservation {
		t.Helper()
		a := submit(t, l.host, ask, r)
		if a.Reservation.State != service.Confirmed && a.Reservation.State != service.Held {
			t.Fatalf("%s is %+v, %+v", r.ID, a.Reservation, a.Reservation.Refusal)
		}
		return a.Reservation
	}

	promised(user, request("named", 2, "n[4-6]", ""))
	is("named", "n4,n5")
	promised(l.by, request("without", 3, "", "n[1,3,8]"))
	is("without", "n2,n4,n5")
	both := request("features", 2, "n[1-4]", "n3")
	both.Constraint = "ib"
	promised(l.by, both)
	is("features", "n2,n4")
	two := request("parts", 1, "", "n1")
	two.Parts = []berth.Part{two.Parts[0], two.Parts[0]}
	two.Parts[0].Nodelist, two.Parts[1].Exclude = "n[7-8]", "n[2-3]"
	promised(l.by, two)
	is("parts", "n7|n4")

	again := request("keyed", 1, "n6", "")
	keyed := l.by
	keyed.Key = "k"
	first := promised(keyed, again)
	if second := promised(keyed, again); second.Version != first.Version || second.ID != first.ID {
		t.Errorf("asked again it is %+v, was %+v", second, first)
	}
	answers, err := l.host.SubmitArray(t.Context(), l.by, request("array", 1, "n[5,7]", ""), 3)
	if err != nil || len(answers) != 3 || answers[2].Reservation.State != service.Refused {
		t.Fatalf("%+v, %v", answers, err)
	}
	is("array_1", "n5")
	is("array_2", "n7")

	// Held, changed and extended it keeps what it is about.
	held := request("held", 2, "n[3-8]", "")
	held.Hold, held.Deadline = 300, held.Deadline+5000
	promised(l.by, held)
	is("held", "n3,n4")
	changed := l.get("held").Request
	changed.Exclude = "n3"
	if a, err := l.host.Modify(t.Context(), l.by, "held", changed); err != nil || a.Refusal != nil {
		t.Fatalf("%+v, %v", a, err)
	}
	is("held", "n4,n5")
	changed.Nodelist, changed.Exclude = "n99", ""
	if _, err := l.host.Modify(t.Context(), l.by, "held", changed); err == nil || !strings.Contains(err.Error(), `"n99": no site has n99; lab has n[1-8]`) {
		t.Errorf("changed to a node that is not there: %v", err)
	}
	if _, err := l.host.Confirm(t.Context(), l.by, "held"); err != nil {
		t.Fatal(err)
	}
	if a, err := l.host.Extend(t.Context(), l.by, "held", l.get("held").Allotments[0].End+60); err != nil || a.Refusal != nil {
		t.Fatalf("%+v, %v", a, err)
	}
	is("held", "n4,n5")

	few := request("few", 3, "n[1-2]", "")
	if a := submit(t, l.host, l.by, few); a.Reservation.Refusal == nil || a.Reservation.Refusal.Reason != berth.NoSuitableSite || a.Reservation.Refusal.Limit != 2 {
		t.Errorf("three of two nodes: %+v", a.Reservation)
	}
	starts := berth.Rigid("", 0, l.host.Now(), l.host.Now()+900, 1, 100)
	starts.Nodelist = "n3"
	offers, err := l.host.Offers(t.Context(), l.by, starts, 1)
	if err != nil || len(offers) != 1 || offers[0].Allotments[0].PEs.String() != "2" {
		t.Errorf("offered is %+v, %v", offers, err)
	}

	// A task of a workflow keeps to its constraint, however many nodes it could use.
	wide := berth.WorkflowTask{ID: "a", Seconds: 60, Most: 8, Requirements: berth.Requirements{Constraint: "ib"}}
	flow := berth.Workflow{ID: "flow", Deadline: berth.Forever, Algorithm: berth.BestAlgorithm, Repair: berth.RepairBoth, Tasks: []berth.WorkflowTask{wide}}
	if a, err := l.host.SubmitWorkflow(t.Context(), l.by, flow); err != nil || a.Workflow.Refusal != nil {
		t.Fatalf("%+v, %v", a, err)
	}
	if nodes := l.get("flow.1").Nodes[0]; len(nodes) < 2 || slices.ContainsFunc(nodes, func(n string) bool { return n < "n2" || n > "n5" }) {
		t.Errorf("the task has %q, want some of n[2-5]", nodes)
	}
	if _, err := l.host.CancelWorkflow(t.Context(), l.by, "flow"); err != nil {
		t.Fatal(err)
	}

	// A lost node is replaced by one that is named, or by none.
	if _, err := l.host.Prepare(t.Context(), l.by, "named"); err != nil {
		t.Fatal(err)
	}
	if out, err := cluster.Command("scontrol", "update", "NodeName=n4", "State=DOWN", "Reason=test"); err != nil {
		t.Fatal(err, out)
	}
	l.until("its lost node is replaced", func() bool { return l.nodes("named") == "n5,n6" })
	name := l.made("named")
	l.until("Slurm has it so", func() bool { return strings.Contains(l.shown("reservation", name), "Nodes=n[5-6]") })
	if out, err := cluster.Command("scontrol", "update", "NodeName=n6", "State=DOWN", "Reason=test"); err != nil {
		t.Fatal(err, out)
	}
	l.until("it lacks one", func() bool { return l.get("named").Missing == 1 && l.nodes("named") == "n5" })
	if err := l.host.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
