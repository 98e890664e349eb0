package planning_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/planning"
	"github.com/berth-hpc/berth/workflow"
	"github.com/berth-hpc/berth/workload"
)

// chain is a workflow of two tasks, which do not run in parallel, among bookings.
func chain(t *testing.T, bookings ...workload.Booking) *planning.Planning {
	t.Helper()
	flow, err := workflow.New([]workflow.Task{{ID: "a", Sequential: 40, Alpha: 1}, {ID: "b", Sequential: 20, Alpha: 1}}, []workflow.Edge{{Parent: "a", Child: "b"}})
	if err != nil {
		t.Fatal(err)
	}
	p := &planning.Planning{Name: "chain", Flow: flow, PEs: 4, Bookings: bookings}
	if err := p.Prepare(4); err != nil {
		t.Fatal(err)
	}
	return p
}

func planned(t *testing.T, p *planning.Planning, goal planning.Goal) *planning.Result {
	t.Helper()
	planner, _ := workflow.PlannerNamed("bd-cpar")
	r, err := p.Plan(planner, goal)
	if err != nil || r.Refusal != nil {
		t.Fatal(r, err)
	}
	return r
}

var soonest = planning.Goal{Deadline: berth.Forever}

func TestPlansKeepClearOfBookings(t *testing.T) {
	p := chain(t, workload.Booking{ID: "x", NPE: 4, Start: 30, End: 90})
	if r := planned(t, p, soonest); r.Plan.Tasks[0].Start != 90 || r.Plan.Turnaround != 150 || r.Tightest != berth.Forever {
		t.Errorf("%+v, want both tasks behind the booking", r.Plan)
	}
	if r := planned(t, p, planning.Goal{Deadline: berth.Forever, Tightest: true}); r.Tightest != 150 {
		t.Errorf("tightest deadline %d, want 150", r.Tightest)
	}
}

// Ids of a schedule are told apart whatever the bookings are called, with no more in front of the tasks' than that takes.
func TestIDsOfSchedulesAreTheirOwn(t *testing.T) {
	names := []string{"", "a", "b", "a#2", "task:a", "task:b", "task:task:a", "task:x", "booking", "booking#2"}
	rng := rand.New(rand.NewPCG(1, 1))
	reached := map[string]int{}
	for range 500 {
		var bookings []workload.Booking
		for i := range rng.IntN(7) {
			bookings = append(bookings, workload.Booking{ID: names[rng.IntN(len(names))], NPE: 1, Start: berth.Time(100 * i), End: berth.Time(100*i + 50)})
		}
		p := chain(t, bookings...)
		r := planned(t, p, soonest)
		booked, tasks := p.Schedule(&r.Plan, berth.Forever)
		ids := map[string]bool{}
		for i := range booked {
			if ids[booked[i].ID] {
				t.Fatalf("%q is there twice of %+v", booked[i].ID, bookings)
			}
			ids[booked[i].ID] = true
		}
		want := ""
		for ids[want+"a"] || ids[want+"b"] {
			want += "task:"
		}
		if tasks[0].ID != want+"a" || tasks[1].ID != want+"b" {
			t.Fatalf("tasks are %q and %q, want them to begin with %q; bookings %+v", tasks[0].ID, tasks[1].ID, want, bookings)
		}
		reached[want]++
	}
	if len(reached) < 4 {
		t.Errorf("only %v were reached", reached)
	}
}

// Where a booking has the id of a task, the tasks of the schedule get another one, and
// what is read back is the same plan.
func TestSchedulesTellTasksFromBookings(t *testing.T) {
	p := chain(t, workload.Booking{ID: "a", NPE: 1, Start: 0, End: 10}, workload.Booking{ID: "a", NPE: 1, Start: 5, End: 20})
	r := planned(t, p, soonest)
	bookings, tasks := p.Schedule(&r.Plan, berth.Forever)
	if len(bookings) != 2 || bookings[0].ID != "a" || bookings[1].ID != "a#2" || len(tasks) != 2 || tasks[1].ID != "task:b" || tasks[1].After[0] != "task:a" || tasks[0].Deadline != 60 {
		t.Fatalf("%+v\n%+v", bookings, tasks)
	}
	if _, timed := p.Schedule(&r.Plan, 500); timed[0].Deadline != 500 {
		t.Errorf("deadline %d, want 500", timed[0].Deadline)
	}
	var lines []workload.Booking
	for _, line := range append(bookings, tasks...) {
		lines = append(lines, workload.Booking{ID: line.ID, NPE: line.NPE, Start: *line.Start, End: *line.End})
	}
	again, err := p.Repair(lines, berth.Forever)
	if err != nil || len(again.Moved) != 0 || again.Plan.Tasks[1] != r.Plan.Tasks[1] {
		t.Errorf("%+v %v, want the same plan", again, err)
	}
	later := chain(t, workload.Booking{ID: "x", NPE: 4, Start: 30, End: 50})
	moved, err := later.Repair(lines, berth.Forever)
	if err != nil || strings.Join(moved.Moved, " ") != "a b" || moved.Plan.Tasks[0].Start != 50 {
		t.Errorf("%+v %v, want both tasks behind the new booking", moved, err)
	}
	for name, change := range map[string]func([]workload.Booking) []workload.Booking{
		"has no reservation": func(l []workload.Booking) []workload.Booking { return l[:3] },
		"on which it takes":  func(l []workload.Booking) []workload.Booking { l[3].End++; return l },
		"before its parent":  func(l []workload.Booking) []workload.Booking { l[3].Start -= 5; l[3].End -= 5; return l },
	} {
		_, err := p.Repair(change(append([]workload.Booking(nil), lines...)), berth.Forever)
		if mistake, is := errors.AsType[*berth.Error](err); !is || mistake.Code != berth.Invalid || !strings.Contains(mistake.Msg, name) {
			t.Errorf("%v, want %s", err, name)
		}
	}
}

func TestProbesAreCounted(t *testing.T) {
	p := chain(t)
	if r, err := p.Probe(50); err != nil || r.Probes < 2 || r.Plan.Turnaround != 60 {
		t.Errorf("%+v %v, want two tasks in 60 s", r, err)
	}
	_, err := chain(t, workload.Booking{ID: "x", NPE: 4, Start: 0, End: 1_000_000}).Probe(1)
	if mistake, is := errors.AsType[*berth.Error](err); !is || mistake.Code != berth.Exhausted {
		t.Errorf("%v, want that the probes were too few", err)
	}
}

func TestBookingsOfSeveralSitesAreRefused(t *testing.T) {
	err := planning.OneSite("b.jsonl", []workload.Booking{{ID: "x"}, {ID: "y", Site: "n"}, {ID: "z", Site: "s"}})
	if err == nil || !strings.Contains(err.Error(), `b.jsonl: booking "y" is at site "n"`) {
		t.Errorf("%v, want that y and z are apart", err)
	}
	if err := planning.OneSite("b.jsonl", []workload.Booking{{ID: "x"}, {ID: "y", Site: "n"}}); err != nil {
		t.Error(err)
	}
}
