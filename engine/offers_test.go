package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

func listed(offers []engine.Offer) string {
	var words []string
	for _, o := range offers {
		a := o.Allotments[0]
		words = append(words, fmt.Sprintf("%s:%dx[%d,%d)@%s", o.Difference, a.NPE, a.Start, a.End, a.Resource.Site))
	}
	return strings.Join(words, " ")
}

// Two sites of 4 and 8 PEs. The small one is full until 100, the large one has
// 3 PEs free until 40, none until 60, and all after that:
//
//	R8  5 5 5 5 8 8 . .      R4  4 4 4 4 4 4 4 4 4 4 .
//	    0       40  60 80        0                   100
func TestOffers(t *testing.T) {
	config := engine.Config{Sites: sites(berth.Late, 4, 8)}
	e := newEngine(t, config)
	at := func(id string, site string, start, end berth.Time, npe berth.Count) {
		r := berth.Rigid(id, 0, start, end, npe, end.Sub(start))
		r.Site = site
		accepted(t, submit(t, e, 0, r))
	}
	at("a", "R4", 0, 100, 4)
	at("b", "R8", 0, 40, 5)
	at("c", "R8", 40, 60, 8)
	before := e.Hash()
	for _, c := range []struct {
		name string
		r    berth.Request
		most int
		want string
	}{
		{"it fits", berth.Rigid("r", 0, 0, 200, 2, 30), 5, "as_asked:2x[0,30)@R8 other_site:2x[100,130)@R4"},
		{
			"too wide until 60", berth.Rigid("r", 0, 10, 50, 4, 30), 5,
			"later:4x[60,90)@R8 other_site:4x[100,130)@R4 fewer_pes:3x[10,40)@R8",
		},
		{
			"too long until 40", berth.Rigid("r", 0, 25, 65, 3, 40), 5,
			"later:3x[60,100)@R8 other_site:3x[100,140)@R4 earlier:3x[0,40)@R8 shorter:3x[25,40)@R8",
		},
		{"no more than two", berth.Rigid("r", 0, 25, 65, 3, 40), 2, "later:3x[60,100)@R8 other_site:3x[100,140)@R4"},
		{"too large for all", berth.Rigid("r", 0, 0, 200, 9, 30), 5, "fewer_pes:8x[60,90)@R8"},
	} {
		offers, err := e.Offers(&c.r, c.most)
		if err != nil {
			t.Fatal(err)
		}
		if got := listed(offers); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
	}
	if e.Hash() != before {
		t.Error("to ask has changed the state")
	}
	_, err := e.Offers(&berth.Request{ID: "r"}, 5)
	wantCode(t, err, berth.Invalid, "parts")
}

// What a reservation leaves idle is its PEs in the gaps too short for others.
func TestOffersTellWhatTheyLeaveIdle(t *testing.T) {
	e := newEngine(t, onePool(4, berth.Late))
	accepted(t, submit(t, e, 0, berth.Rigid("a", 0, 0, 1000, 4, 1000)))
	accepted(t, submit(t, e, 0, berth.Rigid("b", 0, 5000, 6000, 4, 1000)))
	for _, c := range []struct {
		ready berth.Time
		want  int64
	}{
		{1000, 0},           // right after a, 3,400 s before b
		{1300, 300 * 2},     // 5 minutes after a
		{4100, 300 * 2},     // 5 minutes before b
		{4400, 0},           // right before b
		{1899, 899 * 2},     // a second less than is worth something
		{1900, 0},           // a quarter of an hour
		{1000 + 100_000, 0}, // nothing follows
	} {
		r := berth.Rigid("r", 0, c.ready, c.ready+600, 2, 600)
		offers, err := e.Offers(&r, 1)
		if err != nil || len(offers) != 1 || offers[0].Difference != engine.OfferAsAsked || offers[0].Idle != c.want {
			t.Errorf("from %d: %+v, %v; want %d idle PE-seconds", c.ready, offers, err, c.want)
		}
	}
}

// Every offer can be had, exactly as it says, by submitting its request; a
// refused request has no offer as asked, an accepted one has.
func TestOffersCanBeHad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := engine.Config{Place: policy.Placements[rapid.IntRange(0, len(policy.Placements)-1).Draw(t, "place")].Name}
		for i := range rapid.IntRange(1, 3).Draw(t, "sites") {
			config.Sites = append(config.Sites, berth.Site{Name: fmt.Sprintf("s%d", i), Pools: []berth.Pool{{
				Name: "p", PEs: berth.Count(rapid.IntRange(1, 20).Draw(t, "pes")),
				Binding: rapid.SampledFrom([]berth.Binding{berth.Early, berth.Late}).Draw(t, "binding"),
				Speed:   berth.Speed(rapid.SampledFrom([]int{0, 0, 500}).Draw(t, "speed")),
			}}})
		}
		e, err := engine.New(config)
		if err != nil {
			t.Fatal(err)
		}
		var now berth.Time
		for step := range 7 {
			now += berth.Time(rapid.IntRange(0, 5).Draw(t, "pause"))
			r := drawRequest(t, fmt.Sprint(step), now)
			r.Hold = 0
			if _, _, err := e.Apply(now, engine.Wake()); err != nil {
				t.Fatal(err)
			}
			offers, err := e.Offers(&r, 9)
			if err != nil {
				t.Fatal(err)
			}
			snapshot := e.Snapshot()
			for _, o := range offers {
				again, err := engine.Restore(config, snapshot)
				if err != nil {
					t.Fatal(err)
				}
				changes, _, err := again.Apply(now, engine.Submit(&o.Request))
				if err != nil {
					t.Fatalf("%s: %v", o.Difference, err)
				}
				last := changes[len(changes)-1]
				if last.Kind != change.Accepted {
					t.Fatalf("%s cannot be had: %+v", o.Difference, last.Refusal)
				}
				for i, a := range last.Reservation.Allotments {
					if want := o.Allotments[i]; len(o.Allotments) == 1 && (a.Resource != want.Resource || a.Start != want.Start || a.End != want.End || a.NPE != want.NPE) {
						t.Fatalf("%s offers %+v and gives %+v", o.Difference, want, a)
					}
				}
			}
			changes, _, err := e.Apply(now, engine.Submit(&r))
			if err != nil {
				t.Fatal(err)
			}
			taken := changes[len(changes)-1].Kind == change.Accepted
			if asked := len(offers) > 0 && offers[0].Difference == engine.OfferAsAsked; asked != taken {
				t.Fatalf("accepted %t, offered as asked %t", taken, asked)
			}
		}
	})
}

// Parts that can never run beside each other are refused although the window
// has no end to speak of.
func TestPartsInEachOthersWay(t *testing.T) {
	for _, binding := range []berth.Binding{berth.Early, berth.Late} {
		e := newEngine(t, onePool(4, binding))
		accepted(t, submit(t, e, 0, berth.Rigid("a", 0, 100, 200, 1, 100)))
		r := berth.Rigid("b", 0, 0, berth.TimeLimit-1, 3, 1)
		r.Parts = append(r.Parts, r.Parts[0])
		if got := refused(t, submit(t, e, 0, r)); got.Reason != berth.NoCapacity {
			t.Errorf("%s binding: %s", binding, got.Reason)
		}
	}
}

// What is offered earlier arrives when the request did, or now if that is to come.
func TestEarlierOfferKeepsTheArrival(t *testing.T) {
	for _, c := range []struct{ arrival, want berth.Time }{{0, 0}, {10, 5}} {
		e := newEngine(t, onePool(4, berth.Late))
		submit(t, e, 0, berth.Rigid("a", 0, 20, 30, 4, 10))
		apply(t, e, 5, engine.Wake())
		r := berth.Rigid("b", c.arrival, 20, 30, 4, 10)
		offers, err := e.Offers(&r, 9)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(offers, func(o engine.Offer) bool { return o.Difference == engine.OfferEarlier })
		if i < 0 || offers[i].Request.Arrival != c.want || offers[i].Request.Ready != 5 {
			t.Errorf("arrival %d: the offers are %+v, want one that arrives at %d, ready at 5", c.arrival, offers, c.want)
		}
	}
}

// The eager filter looks at the time until the deadline, and an offer has a nearer one than
// what was searched for: parts that would then be taken at other sizes are not offered.
func TestOffersOfPartsGiveWhatTheyShow(t *testing.T) {
	for _, binding := range bindings() {
		config := onePool(8, binding)
		config.Eager = &policy.Eager{K1: 500, K2: 400}
		e := newEngine(t, config)
		submit(t, e, 0, berth.Rigid("busy", 0, 0, 10, 8, 10))
		r := parts("co", 12, berth.Variant{}, berth.Variant{})
		for i := range r.Parts {
			r.Parts[i].Variants = []berth.Variant{{NPE: 2, Duration: 10}, {NPE: 4, Duration: 5}}
		}
		offers, err := e.Offers(&r, 9)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range offers {
			changes := submit(t, e, 0, o.Request)
			got := changes[len(changes)-1]
			if got.Kind != change.Accepted || got.Reservation.Allotments[0].NPE != o.Allotments[0].NPE {
				t.Errorf("%s: %s offers %+v and gives %+v", binding, o.Difference, o.Allotments, got.Reservation)
			}
		}
	}
}

// Who asks for something further ahead than they may is offered what is near enough.
func TestOffersOfWhatIsTooFarAhead(t *testing.T) {
	for _, binding := range bindings() {
		config := onePool(4, binding)
		config.Limits = policy.Limits{{Name: policy.LimitLead, Value: 100}}
		e := newEngine(t, config)
		far := berth.Rigid("far", 0, 500, 600, 2, 10)
		far.User = "ada"
		offers, err := e.Offers(&far, 9)
		if err != nil || len(offers) != 1 || offers[0].Difference != engine.OfferEarlier || offers[0].Allotments[0].Start != 0 {
			t.Fatalf("%s: %+v, %v; want one, earlier, at once", binding, offers, err)
		}
		takenAsOffered(t, config, e, offers, string(binding))
	}
}
