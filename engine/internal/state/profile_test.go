package state

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// A profile keeps what an array of seconds keeps, in as few steps as can be.
func TestProfileEqualsSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const size, end = 4, 24
		p := &Profile{size: size, steps: []step{{beginning, size}}}
		var seconds [end + 1]berth.Count // the last is everything behind
		for i := range seconds {
			seconds[i] = size
		}
		for range rapid.IntRange(1, 60).Draw(t, "changes") {
			from := rapid.IntRange(0, end-1).Draw(t, "from")
			to := rapid.IntRange(from+1, end).Draw(t, "to")
			by := berth.Count(rapid.IntRange(-2, 2).Filter(func(n int) bool { return n != 0 }).Draw(t, "by"))
			least := berth.Count(size)
			for i := from; i < to; i++ {
				seconds[i] += by
				least = min(least, seconds[i])
			}
			if got := p.add(berth.Time(from), berth.Time(to), by); got != least {
				t.Fatalf("add(%d, %d, %d) = %d; want %d", from, to, by, got, least)
			}
			want := []step{{beginning, size}}
			for i, free := range seconds {
				if free != want[len(want)-1].free {
					want = append(want, step{berth.Time(i), free})
				}
			}
			if !slices.Equal(p.steps, want) {
				t.Fatalf("after add(%d, %d, %d):\n%v; want\n%v", from, to, by, p.steps, want)
			}
		}
	})
}

// What is taken or given back for no time changes nothing.
func TestProfileIgnoresEmptyIntervals(t *testing.T) {
	p := &Profile{size: 4, steps: []step{{beginning, 4}}}
	if err := p.take(3, 9, 2); err != nil {
		t.Fatal(err)
	}
	steps, version, grown := slices.Clone(p.steps), p.version, p.grown
	p.give(5, 5, 1)
	if err := p.take(5, 5, 9); err != nil || !slices.Equal(p.steps, steps) || p.version != version || p.grown != grown {
		t.Errorf("it is %+v, error %v", p, err)
	}
}

// The records of a profile are those of a calendar with the same blocks, from now on: where
// everything is free from the beginning there is none for that.
func TestRecordsOfAProfileAreThoseOfACalendar(t *testing.T) {
	p := &Profile{size: 4, steps: []step{{beginning, 4}}}
	c := calendar.NewPlain(4, berth.Late)
	for _, b := range []calendar.Block{{Start: 3, End: 9, NPE: 2}, {Start: 5, End: 7, NPE: 1}, {Start: 11, End: 12, NPE: 4}} {
		if err := cmp.Or(p.take(b.Start, b.End, b.NPE), c.Add(b)); err != nil {
			t.Fatal(err)
		}
	}
	for now := range berth.Time(14) {
		c.Prune(now)
		if err := sameRecords(p.records(now), c.Records()); err != nil {
			t.Errorf("from %d on: %v", now, err)
		}
	}
}
