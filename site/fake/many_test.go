package fake_test

import (
	"context"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

// Many reserved at once have the answers that they have one by one and leave
// behind the same, whatever befalls them, until the site has not answered so often
// that the rest is left.
func TestManyAreAsOneByOne(t *testing.T) {
	const from = 1_800_000_000
	rapid.Check(t, func(t *rapid.T) {
		var wants []site.Reservation
		for range rapid.IntRange(0, 9).Draw(t, "many") {
			start := from + 60*berth.Time(rapid.IntRange(-3, 6).Draw(t, "start"))
			r := site.Reservation{
				Name:  site.NameOf("harbour", fmt.Sprint(rapid.IntRange(0, 6).Draw(t, "promise")), rapid.Uint64Range(1, 2).Draw(t, "generation")),
				Start: start, End: start + 90, Users: []string{"ada"},
			}
			if n := rapid.IntRange(1, 4).Draw(t, "where"); n < 4 {
				r.Shares = []site.Share{{Node: fmt.Sprint("n", n)}}
			} else {
				r.Nodes = 2
			}
			wants = append(wants, r)
		}
		var faults []fake.Fault
		for range rapid.IntRange(0, 5).Draw(t, "faults") {
			faults = append(faults, fake.Fault{
				Op: fake.Reserve, Nth: rapid.IntRange(1, 9).Draw(t, "nth"), After: berth.Duration(rapid.IntRange(1, 20).Draw(t, "after")),
				What: rapid.SampledFrom([]string{fake.Down, fake.Unsent, fake.Lost, fake.Slow, fake.Late, fake.Twice, fake.Wrong, fake.Lie, fake.Refuse, fake.Deny}).Draw(t, "what"),
			})
		}
		world := func() *fake.Site {
			s := fake.New(fake.Config{Name: "harbour", Description: fake.Nodes(3, 4)}, from)
			s.Inject(faults...)
			return s
		}
		one, many := world(), world()
		answers := many.ReserveMany(context.Background(), wants)
		if len(answers) != len(wants) {
			t.Fatalf("%d answers for %d", len(answers), len(wants))
		}
		silent, longest := 0, berth.Duration(0)
		for i := range wants {
			if silent == site.Patience {
				if answers[i] != (site.Answer{Err: site.ErrNotTried}) {
					t.Fatalf("number %d: %+v, want it left", i, answers[i])
				}
				continue
			}
			outcome, err := one.Reserve(context.Background(), wants[i])
			longest = max(longest, one.Elapsed())
			if site.KindOf(err) == site.Unreachable {
				silent++
			}
			if got, want := fmt.Sprintf("%+v %v", answers[i].Outcome.Booking, answers[i].Err), fmt.Sprintf("%+v %v", outcome.Booking, err); got != want ||
				answers[i].Outcome.Verdict != outcome.Verdict || answers[i].Outcome.Reason != outcome.Reason {
				t.Fatalf("number %d: %+v %s, and by itself %+v %s", i, answers[i].Outcome, got, outcome, want)
			}
		}
		if many.Elapsed() != longest {
			t.Fatalf("it took %d s, want that of the slowest, %d s", many.Elapsed(), longest)
		}
		for _, later := range []berth.Time{0, 10, 100} { // what is late comes
			one.Advance(from + later)
			many.Advance(from + later)
			one.Heal()
			many.Heal()
			a, _ := one.Observe(context.Background())
			b, _ := many.Observe(context.Background())
			if x, y := fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b); x != y {
				t.Fatalf("%d s later there is\n%s, and one by one\n%s", later, y, x)
			}
		}
	})
}
