package sim_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
	"github.com/berth-hpc/berth/sim"
)

func run(t *testing.T, config engine.Config, requests ...berth.Request) []berth.Line {
	t.Helper()
	lines, err := sim.Run(context.Background(), config, requests, nil)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// show writes the decisions as "id:site[start,end)pes" or "id:reason".
func show(lines []berth.Line) string {
	var words []string
	for _, l := range lines {
		id := l.ID
		if l.Part > 0 {
			id = fmt.Sprintf("%s.%d", id, l.Part)
		}
		if !l.Accepted {
			words = append(words, fmt.Sprintf("%s:%s", id, l.Reason))
			continue
		}
		words = append(words, fmt.Sprintf("%s:%s[%d,%d)%s", id, l.Site, *l.Start, *l.End, l.PEs))
	}
	return strings.Join(words, " ")
}

func machine(pes berth.Count, binding berth.Binding, placement string) engine.Config {
	return engine.Config{Sites: sim.OnePool(pes, binding), Place: placement}
}

// Figure 1 of the availability paper with numbers (spec 1, b.9), driven from
// the outside: the jobs arrive so that each has one possible place, then the
// request is placed by each of the seven policies.
func TestFigure1(t *testing.T) {
	jobs := []berth.Request{
		berth.Rigid("job1", 0, 0, 6, 4, 6),
		berth.Rigid("job2", 0, 0, 2, 3, 2),
		berth.Rigid("job3", 0, 16, 20, 5, 4),
		berth.Rigid("job", 0, 4, 18, 4, 4),
	}
	for _, c := range []struct{ placement, capped, unbounded string }{
		{"first-fit", "[4,8)4-7", "[4,8)4-7"},
		{"pe-best", "[14,18)5-8", "[14,18)5-8"},
		{"pe-worst", "[6,10)0-3", "[6,10)0-3"},
		{"duration-best", "[6,10)0-3", "[6,10)0-3"},
		{"duration-worst", "[14,18)5-8", "[14,18)5-8"},
		{"area-best", "[4,8)4-7", "[4,8)4-7"},
		{"area-worst", "[6,10)0-3", "[14,18)5-8"},
	} {
		for horizon, want := range map[string]string{"capped": c.capped, "unbounded": c.unbounded} {
			config := machine(10, berth.Early, c.placement)
			config.Sites[0].Name, config.Horizon = "cm5", horizon
			// Decided at 0, the rectangles of 4 and 14 reach back to 2, as in the table.
			got := show(run(t, config, jobs...))
			if want := "job1:cm5[0,6)0-3 job2:cm5[0,2)4-6 job3:cm5[16,20)0-4 job:cm5" + want; got != want {
				t.Errorf("%s %s: %s, want %s", c.placement, horizon, got, want)
			}
		}
	}
}

// On an empty machine every policy gives the same answer, the ready time with
// the lowest PEs (equivalence X9).
func TestEveryPolicyAgreesOnAnEmptyMachine(t *testing.T) {
	for _, row := range policy.Placements {
		if got := show(run(t, machine(8, berth.Early, row.Name), berth.Rigid("a", 0, 7, 90, 3, 10))); got != "a:site[7,17)0-2" {
			t.Errorf("%s: %s", row.Name, got)
		}
	}
}

// Counts accept what fixed numbers cannot: PE 0 is busy first, PE 1 later.
func TestLateBindingNeedsNoFixedNumbers(t *testing.T) {
	jobs := []berth.Request{
		berth.Rigid("a", 0, 0, 1, 1, 1),
		berth.Rigid("b", 0, 0, 1, 1, 1),
		berth.Rigid("c", 0, 1, 2, 1, 1),
		berth.Rigid("d", 0, 0, 2, 1, 2),
	}
	jobs[0].Deadline, jobs[1].Deadline = 1, 1
	early := show(run(t, machine(3, berth.Early, "first-fit"), jobs...))
	late := show(run(t, machine(3, berth.Late, "first-fit"), jobs...))
	if want := "a:site[0,1)0 b:site[0,1)1 c:site[1,2)0 d:site[0,2)2"; early != want {
		t.Errorf("early: %s, want %s", early, want)
	}
	if want := "a:site[0,1)0 b:site[0,1)1 c:site[1,2)0 d:site[0,2)2"; late != want {
		t.Errorf("late: %s, want %s", late, want)
	}
	// Two PEs: a holds PE 0 during [0,1), x holds PE 1 during [1,2).
	fragmented := []berth.Request{
		berth.Rigid("a", 0, 0, 1, 1, 1),
		berth.Rigid("b", 0, 0, 1, 1, 1),
		berth.Rigid("c", 0, 1, 4, 1, 3),
		berth.Rigid("d", 0, 2, 4, 1, 2),
		berth.Rigid("e", 0, 1, 2, 1, 1),
		berth.Rigid("f", 2, 4, 8, 2, 4),
	}
	for _, binding := range []berth.Binding{berth.Early, berth.Late} {
		lines := run(t, machine(2, binding, "first-fit"), fragmented...)
		for _, l := range lines {
			if !l.Accepted || l.PEs.Count() != l.NPE {
				t.Errorf("%s: %s", binding, show(lines))
				break
			}
		}
	}
}

func TestMoldableAndCoallocatedLines(t *testing.T) {
	moldable := berth.Rigid("m", 0, 0, 100, 8, 200)
	moldable.Parts[0].Variants = append(moldable.Parts[0].Variants,
		berth.Variant{NPE: 4, Duration: 20}, berth.Variant{NPE: 2, Duration: 50})
	tooLarge := berth.Rigid("t", 0, 0, 400, 80, 200)
	tooLarge.Parts[0].Variants = append(tooLarge.Parts[0].Variants, berth.Variant{NPE: 90, Duration: 100})
	pair := berth.Rigid("p", 1, 1, 100, 1, 5)
	pair.Parts = append(pair.Parts, berth.Part{Variants: []berth.Variant{{NPE: 2, Duration: 7}}})
	lines := run(t, machine(5, berth.Late, "first-fit"), moldable, tooLarge, pair)
	if got, want := show(lines), "m:site[0,20)0-3 t:too_large p.1:site[20,25)0 p.2:site[20,27)1-2"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
	if l := lines[0]; l.NPE != 4 || l.Duration != 20 || len(l.Variants) != 3 {
		t.Errorf("a moldable line shows the variant booked and all there were: %+v", l)
	}
	if l := lines[1]; l.NPE != 80 || l.Duration != 200 {
		t.Errorf("a refused moldable line shows its first possible variant: %+v", l)
	}
}

func TestBadInput(t *testing.T) {
	good := machine(4, berth.Early, "first-fit")
	for _, c := range []struct {
		name     string
		config   engine.Config
		requests []berth.Request
		want     string
	}{
		{"no PEs", machine(0, berth.Early, "first-fit"), nil, "pes"},
		{"unknown placement", machine(4, berth.Early, "best"), nil, "place"},
		{"unsorted", good, []berth.Request{berth.Rigid("a", 5, 5, 9, 1, 1), berth.Rigid("b", 4, 4, 9, 1, 1)}, "arrival"},
		{"malformed", good, []berth.Request{berth.Rigid("a", 5, 5, 9, 0, 1)}, "npe"},
		{"same id", good, []berth.Request{berth.Rigid("a", 5, 5, 9, 1, 1), berth.Rigid("a", 5, 5, 9, 1, 1)}, "id"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := sim.Run(context.Background(), c.config, c.requests, nil)
			var e *berth.Error
			if !errors.As(err, &e) || e.Field != c.want {
				t.Fatalf("error %v, want one about %s", err, c.want)
			}
			if len(c.requests) > 0 && !strings.Contains(e.Msg, `request "`) {
				t.Fatalf("error %q names no request", e.Msg)
			}
		})
	}
}

func TestContextEndsARun(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	requests := make([]berth.Request, 5000)
	for i := range requests {
		at := berth.Time(i)
		requests[i] = berth.Rigid(fmt.Sprint(i), at, at, at+2, 1, 1)
	}
	calls := 0
	_, err := sim.Run(ctx, machine(4, berth.Early, "first-fit"), requests, func(done int) {
		if calls++; done > 0 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || calls < 2 || calls > 3 {
		t.Fatalf("error %v after %d progress calls", err, calls)
	}
}
