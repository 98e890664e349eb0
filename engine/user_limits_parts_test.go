package engine_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/policy"
)

// Parts of a user who has a share of each pool begin at the first second at which pools
// and shares have room for all of them, in some combination of pools and variants; where
// there is none the request is refused.
func TestPartsBeginAsSoonAsTheShareLetsThem(t *testing.T) {
	promised, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		const end = 40
		config := engine.Config{Place: "first-fit"}
		for i := range rapid.IntRange(1, 2).Draw(t, "sites") {
			pool := berth.Pool{Name: "p", PEs: berth.Count(rapid.IntRange(4, 14).Draw(t, "pes")), Binding: berth.Late}
			config.Sites = append(config.Sites, berth.Site{Name: fmt.Sprint("s", i), Pools: []berth.Pool{pool}})
		}
		config.Limits = policy.Limits{{Name: policy.LimitShare, Value: rapid.Int64Range(300, 900).Draw(t, "share")}}
		e, err := engine.New(config)
		if err != nil {
			t.Fatal(err)
		}
		most := func(site int) berth.Count {
			a := config.Limits.Of("", "u")
			n, _ := a.ShareOf(config.Sites[site].Pools[0].PEs)
			return n
		}
		used, mine := make([][end * 2]berth.Count, len(config.Sites)), make([][end * 2]berth.Count, len(config.Sites))
		for i := range rapid.IntRange(1, 30).Draw(t, "requests") {
			ask := berth.Request{ID: fmt.Sprint(i), User: rapid.SampledFrom([]string{"u", "u", "u", "other"}).Draw(t, "user"), Ready: berth.Time(rapid.IntRange(0, 25).Draw(t, "from")), Deadline: end}
			for range rapid.SampledFrom([]int{1, 2, 2, 3}).Draw(t, "parts") {
				var p berth.Part
				for range rapid.IntRange(1, 2).Draw(t, "variants") {
					p.Variants = append(p.Variants, berth.Variant{NPE: berth.Count(rapid.IntRange(1, 3).Draw(t, "wide")), Duration: berth.Duration(rapid.IntRange(1, 8).Draw(t, "long"))})
				}
				ask.Parts = append(ask.Parts, p)
			}
			has := mine
			if ask.User == "other" {
				ask.Parts, has = ask.Parts[:1], make([][end * 2]berth.Count, len(config.Sites))
			}
			var fits func(start berth.Time, part int) bool
			fits = func(start berth.Time, part int) bool {
				if part == len(ask.Parts) {
					return true
				}
				for _, v := range ask.Parts[part].Variants {
					for site := range config.Sites {
						until, room := start.Add(v.Duration), true
						for at := start; at < until; at++ {
							used[site][at] += v.NPE
							has[site][at] += v.NPE
							room = room && used[site][at] <= config.Sites[site].Pools[0].PEs && has[site][at] <= most(site)
						}
						found := room && until <= ask.Deadline && fits(start, part+1)
						for at := start; at < until; at++ {
							used[site][at] -= v.NPE
							has[site][at] -= v.NPE
						}
						if found {
							return true
						}
					}
				}
				return false
			}
			want := ask.Ready
			for want < ask.Deadline && !fits(want, 0) {
				want++
			}
			if ask.Validate() != nil {
				continue // its window is too short
			}
			if _, _, err := e.Apply(0, engine.Submit(&ask)); err != nil {
				t.Fatal(err)
			}
			got, is := e.Reservation(ask.ID)
			switch {
			case len(ask.Parts) == 1: // it is there to fill the pools, by the rules for one part
			case !is && want < ask.Deadline:
				t.Fatalf("%s is refused; all parts fit at %d", ask.ID, want)
			case is && got.Start() != want:
				t.Fatalf("%s begins at %d; want %d", ask.ID, got.Start(), want)
			case is:
				promised++
			default:
				refused++
			}
			for _, a := range got.Allotments {
				for at := a.Start; at < a.End; at++ {
					site := int(a.Resource.Site[1] - '0')
					used[site][at] += a.NPE
					if ask.User == "u" {
						mine[site][at] += a.NPE
					}
				}
			}
		}
	})
	t.Logf("of requests of several parts %d are promised, %d refused", promised, refused)
}

// A share leaves room also when nothing changes in the pool: one reservation ends as that
// of another user begins.
func TestPartsBeginWhenTheShareAloneHasRoom(t *testing.T) {
	e, err := engine.New(engine.Config{
		Sites:  []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Late}}}},
		Limits: policy.Limits{{Name: policy.LimitShare, Value: 500}},
	})
	if err != nil {
		t.Fatal(err)
	}
	mine, others := owned("mine", 0, 10, 2, 10), owned("others", 10, 20, 2, 10)
	others.User = "other"
	two := owned("two", 0, 30, 1, 5)
	two.Parts = append(two.Parts, two.Parts[0])
	for _, r := range []berth.Request{mine, others, two} {
		if _, _, err := e.Apply(0, engine.Submit(&r)); err != nil {
			t.Fatal(err)
		}
	}
	if r, is := e.Reservation("two"); !is || r.Allotments[0].Start != 10 {
		t.Errorf("it is promised: %t, %+v; want it from 10 on, when the share has room", is, r.Allotments)
	}
}

// What parts take together counts only variants that fit: one that is wider than the pool
// is no way to take less.
func TestPartsCountWhatFits(t *testing.T) {
	config := onePool(8, berth.Late)
	config.Limits = policy.Limits{{Name: policy.LimitPESeconds, Value: 300}}
	e := newEngine(t, config)
	r := parts("co", 1000, berth.Variant{}, berth.Variant{})
	r.User = "u"
	for i := range r.Parts {
		r.Parts[i].Variants = []berth.Variant{{NPE: 9, Duration: 10}, {NPE: 2, Duration: 100}}
	}
	changes := submit(t, e, 0, r)
	no := changes[len(changes)-1].Refusal
	if no == nil || no.Reason != berth.Quota || no.Exceeded == nil || no.Exceeded.Asked != 400 {
		t.Fatalf("400 PE-seconds of 300: %+v, refused for %+v", shape(e, "co"), no)
	}
}
