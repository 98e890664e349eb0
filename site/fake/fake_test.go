package fake_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

const start = 1000

func newSite() *fake.Site {
	return fake.New(fake.Config{Name: "harbour", Description: fake.Nodes(4, 4)}, start)
}

func inject(t *testing.T, s *fake.Site, faults string) {
	t.Helper()
	parsed, err := fake.ParseFaults(faults)
	if err != nil {
		t.Fatal(err)
	}
	s.Inject(parsed...)
}

func want(id string, nodes ...string) site.Reservation {
	r := site.Reservation{Name: site.NameOf("harbour", id, 1), Start: start + 100, End: start + 200, Users: []string{"ada"}}
	for _, n := range nodes {
		r.Shares = append(r.Shares, site.Share{Node: n})
	}
	return r
}

func ours(t *testing.T, s *fake.Site) []site.Booking {
	t.Helper()
	state, err := s.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return state.Ours
}

// Each fault of a reservation: what the caller hears, and what is there at once
// and a minute later.
func TestFaultsOfReserve(t *testing.T) {
	for fault, c := range map[string]struct {
		verdict     site.Verdict
		kind        site.Kind
		at, later   int
		elapsed     berth.Duration
		asPromised  bool
		againAlways site.Verdict // the verdict of trying again after a minute
	}{
		"reserve 1 down":    {"", site.Unreachable, 0, 0, 0, false, site.Made},
		"reserve 1 unsent":  {site.Doubt, site.Unreachable, 0, 0, 10, false, site.Made},
		"reserve 1 lost":    {site.Doubt, site.Unreachable, 1, 1, 10, true, site.Already},
		"reserve 1 slow 5":  {site.Made, "", 1, 1, 5, true, site.Already},
		"reserve 1 slow 11": {site.Doubt, site.Unreachable, 1, 1, 10, true, site.Already},
		"reserve 1 late 30": {site.Doubt, site.Unreachable, 0, 1, 10, true, site.Already},
		"reserve * late 90": {site.Doubt, site.Unreachable, 0, 0, 10, false, site.Doubt},
		"reserve 1 twice 9": {site.Made, "", 1, 1, 0, true, site.Already},
		"reserve 1 wrong":   {site.Made, "", 1, 1, 0, false, site.Refused},
		"reserve 1 lie":     {site.Refused, "", 1, 1, 0, true, site.Already},
		"reserve 1 refuse":  {site.Refused, "", 0, 0, 0, false, site.Made},
		"reserve 1 deny":    {"", site.Denied, 0, 0, 0, false, site.Made},
		"reserve 2 down":    {site.Made, "", 1, 1, 0, true, ""},
		"* 1 lost":          {site.Doubt, site.Unreachable, 1, 1, 10, true, site.Already},
		"release 1 lost":    {site.Made, "", 1, 1, 0, true, site.Already},
	} {
		s := newSite()
		inject(t, s, fault)
		r := want("17", "n1", "n2")
		got, err := s.Reserve(t.Context(), r)
		if got.Verdict != c.verdict || site.KindOf(err) != c.kind || s.Elapsed() != c.elapsed {
			t.Errorf("%s: %+v %v after %d s, want %q %q after %d s", fault, got, err, s.Elapsed(), c.verdict, c.kind, c.elapsed)
		}
		if n := len(ours(t, s)); n != c.at {
			t.Errorf("%s: %d reservations at once, want %d", fault, n, c.at)
		}
		s.Advance(start + 60)
		there := ours(t, s)
		if len(there) != c.later {
			t.Errorf("%s: %d reservations a minute later, want %d", fault, len(there), c.later)
		} else if len(there) > 0 {
			if right := len(r.Differences(&there[0], s.Now())) == 0; right != c.asPromised {
				t.Errorf("%s: as promised is %v, want %v", fault, right, c.asPromised)
			}
		}
		if again, err := s.Reserve(t.Context(), r); again.Verdict != c.againAlways {
			t.Errorf("%s: again %+v %v, want %q", fault, again, err, c.againAlways)
		}
	}
}

func TestADuplicateAfterTheReleaseComesBack(t *testing.T) {
	s := newSite()
	inject(t, s, "reserve 1 twice 30")
	r := want("17", "n1")
	if _, err := s.Reserve(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := s.Release(t.Context(), r.Name); err != nil {
		t.Fatal(err)
	}
	s.Advance(start + 30)
	state, err := s.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if drift := site.FindDrift(nil, state); len(drift) != 1 || drift[0].Kind != site.Extra {
		t.Errorf("drift %+v, want the duplicate as extra", drift)
	}
}

func TestFaultsOfObserve(t *testing.T) {
	s := newSite()
	if len(ours(t, s)) != 0 {
		t.Fatal("not empty")
	}
	if _, err := s.Reserve(t.Context(), want("17", "n1")); err != nil {
		t.Fatal(err)
	}
	inject(t, s, "observe 1 stale; observe 2 wrong; observe 3 down")
	if n := len(ours(t, s)); n != 0 {
		t.Errorf("stale: %d reservations, want those of before", n)
	}
	if n := len(ours(t, s)); n != 0 {
		t.Errorf("wrong: %d reservations, want none", n)
	}
	if _, err := s.Observe(t.Context()); site.KindOf(err) != site.Unreachable {
		t.Errorf("down: %v", err)
	}
	if n := len(ours(t, s)); n != 1 {
		t.Errorf("then: %d reservations, want 1", n)
	}
	inject(t, s, "* * down")
	s.Heal()
	if n := len(ours(t, s)); n != 1 {
		t.Errorf("healed: %d reservations, want 1", n)
	}
}

func TestRestartForgetsTheLastWrites(t *testing.T) {
	s := newSite()
	a, b := want("a", "n1"), want("b", "n2")
	for _, r := range []site.Reservation{a, b} {
		if _, err := s.Reserve(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	longer := a
	longer.End += 100
	if _, err := s.Change(t.Context(), longer); err != nil {
		t.Fatal(err)
	}
	s.Advance(start + 10)
	if n := s.Restart(2); n != 2 {
		t.Fatalf("%d forgotten, want 2", n)
	}
	state, err := s.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, d := range site.FindDrift([]site.Reservation{longer, b}, state) {
		kinds = append(kinds, string(d.Kind))
	}
	if got := strings.Join(kinds, " "); got != "changed missing" || state.Boot != start+10 {
		t.Errorf("drift %s since boot at %d, want the change and the second forgotten, booted at %d", got, state.Boot, start+10)
	}
	if n := s.Restart(9); n != 1 {
		t.Errorf("%d forgotten, want the one that was left", n)
	}
}

func TestNodesFailUnderTasks(t *testing.T) {
	s := newSite()
	r := want("17", "n1", "n2")
	r.Start = start
	if _, err := s.Reserve(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	task := site.Task{Key: "k", Reservation: r.Name, User: "ada", Command: []string{"x"}, Dir: "/"}
	if _, err := s.Submit(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	other := s.Occupy("bob", []site.Share{{Node: "n3"}}, 50, 500)
	s.Advance(start + 10)
	s.Fail("n2", "fire")
	state, err := s.Observe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := state.Nodes[1]; n.Condition != site.Down || n.Reason != "fire" || n.Since != start+10 {
		t.Errorf("node %+v", n)
	}
	if len(state.Ended) != 1 || state.Ended[0].Result.Ending != site.NodeLost || len(state.Running) != 1 || state.Running[0].ID != other ||
		state.Running[0].End != start+500 || state.Nodes[2].Busy != 4 {
		t.Errorf("%+v", state)
	}
	s.Repair("n2")
	s.Advance(start + 50)
	if state, err = s.Observe(t.Context()); err != nil || len(state.Running) != 0 || state.Nodes[1].Condition != site.Up {
		t.Errorf("%+v %v", state, err)
	}
}

func TestJobsOfOthersStandInTheWay(t *testing.T) {
	s := newSite()
	s.Occupy("bob", []site.Share{{Node: "n1", Cores: berth.PEsOf(2)}}, 50, 150)
	if got, err := s.Reserve(t.Context(), want("17", "n1")); err != nil || got.Verdict != site.Refused {
		t.Errorf("%+v %v, want it refused", got, err)
	}
	s.Advance(start + 50)
	if got, err := s.Reserve(t.Context(), want("17", "n1")); err != nil || got.Verdict != site.Made {
		t.Errorf("%+v %v, want it made", got, err)
	}
}

// The same calls with the same faults have the same answers.
func TestDeterminism(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.SliceOfN(rapid.IntRange(0, 999), 1, 60).Draw(t, "calls")
		if a, b := play(t, seed), play(t, seed); a != b {
			t.Fatalf("the same calls gave\n%s\nand then\n%s", a, b)
		}
	})
}

func play(t *rapid.T, calls []int) string {
	s := newSite()
	var out strings.Builder
	ops := []string{fake.Lost, fake.Unsent, fake.Down, fake.Wrong, fake.Lie, fake.Refuse}
	for i, c := range calls {
		id, nodes := fmt.Sprint(c%5), []string{"n" + fmt.Sprint(1+c%4)}
		r := want(id, nodes...)
		r.Start, r.End = r.Start+berth.Time(c), r.End+berth.Time(c)
		switch c % 7 {
		case 0, 1:
			got, err := s.Reserve(t.Context(), r)
			fmt.Fprintln(&out, got.Verdict, got.Reason, err)
		case 2:
			r.Shares, r.Cores = nil, berth.Count(1+c%9)
			got, err := s.Reserve(t.Context(), r)
			fmt.Fprintln(&out, got.Verdict, got.Reason, err)
		case 3:
			fmt.Fprintln(&out, s.Release(t.Context(), r.Name))
		case 4:
			s.Inject(fake.Fault{Op: fake.Reserve, Nth: 1 + c%2, What: ops[c%len(ops)]}, fake.Fault{Op: fake.All, Nth: 3, What: fake.Late, After: 7})
		case 5:
			s.Advance(s.Now() + berth.Time(c%50))
		case 6:
			fmt.Fprintln(&out, s.Restart(i%3))
		}
		state, err := s.Observe(t.Context())
		fmt.Fprintf(&out, "%+v %v %d\n", state, err, s.Elapsed())
	}
	return out.String()
}

// Whatever is asked, faults or not, no two reservations hold one core, unless a
// fault made one otherwise.
func TestNothingIsGivenTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSite()
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			r := want(fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "id")))
			r.Start += berth.Time(rapid.IntRange(0, 300).Draw(t, "start"))
			r.End = r.Start + berth.Time(rapid.IntRange(1, 200).Draw(t, "length"))
			switch rapid.IntRange(0, 3).Draw(t, "size") {
			case 0:
				r.Nodes = berth.Count(rapid.IntRange(1, 4).Draw(t, "nodes"))
			case 1:
				r.Cores = berth.Count(rapid.IntRange(1, 16).Draw(t, "cores"))
			default:
				r.Shares = []site.Share{{Node: "n2"}, {Node: "n3", Cores: berth.PEsOf(berth.PE(rapid.IntRange(0, 3).Draw(t, "core")))}}
			}
			do := rapid.SampledFrom([]func() (site.Outcome, error){
				func() (site.Outcome, error) { return s.Reserve(t.Context(), r) },
				func() (site.Outcome, error) { return s.Change(t.Context(), r) },
				func() (site.Outcome, error) { return site.Outcome{}, s.Release(t.Context(), r.Name) },
			}).Draw(t, "do")
			_, _ = do()
			state, err := s.Observe(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i := range state.Ours {
				if other, twice := site.Overlap(&state.Ours[i], state.Ours); twice {
					t.Fatalf("%+v and %+v hold the same", state.Ours[i], other)
				}
			}
		}
	})
}

func TestFaultsReadAsTheyPrint(t *testing.T) {
	const text = "reserve 2 late 30; observe * down; * 1 lie; release * slow 0"
	faults, err := fake.ParseFaults(text)
	if err != nil {
		t.Fatal(err)
	}
	var printed []string
	for _, f := range faults {
		printed = append(printed, f.String())
	}
	if got := strings.Join(printed, "; "); got != text {
		t.Errorf("%q, want %q", got, text)
	}
	for _, bad := range []string{"", "reserve", "reserve 0 down", "reserve x down", "fly 1 down", "reserve 1 explode", "reserve 1 late", "reserve 1 down 3", "reserve 1 late -3", "reserve 1 late 3 4", "reserve 1 down;"} {
		if _, err := fake.ParseFaults(bad); site.KindOf(err) != site.Invalid {
			t.Errorf("%q: %v, want it invalid", bad, err)
		}
	}
}

func FuzzParseFaults(f *testing.F) {
	f.Add("reserve 2 late 30; observe * down")
	f.Fuzz(func(t *testing.T, text string) {
		faults, err := fake.ParseFaults(text)
		if err != nil {
			return
		}
		for _, one := range faults {
			again, err := fake.ParseFaults(one.String())
			if err != nil || len(again) != 1 || again[0] != one {
				t.Fatalf("%q of %q is read as %+v %v", one, text, again, err)
			}
		}
	})
}
