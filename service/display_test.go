package service

import (
	"fmt"
	"sync"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
)

// What was given out to look at stays as it was while further records are shown, and
// those who look see each record whole: as many cards as there are records, none of
// which is forgotten, and the pool's picture of that record.
func TestWhatIsLookedAtStaysAsItWas(t *testing.T) {
	core, err := newCore(engine.Config{Sites: []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Late}}}}}, "test", 1000)
	if err != nil {
		t.Fatal(err)
	}
	var d display
	d.begin(core)
	pool := berth.PoolID("s", "p")
	const many = 2000
	var looking sync.WaitGroup
	for range 2 {
		looking.Go(func() {
			for last := uint64(0); last < many; {
				m := d.look()
				n, version := m.cards.Len(), uint64(0)
				generation := m.generation(pool)
				if k, is := m.cards.Get(&card{id: "0000"}); is {
					version = k.version
				}
				if m.number < last || uint64(n) != m.number || generation != m.number {
					t.Errorf("after record %d: %d cards, generation %d", m.number, n, generation)
					return
				}
				d.look() // another user's
				if k, is := m.cards.Get(&card{id: "0000"}); is && k.version != version || m.cards.Len() != n || m.generation(pool) != generation {
					t.Error("it changed while it was looked at")
					return
				}
				last = m.number
			}
		})
	}
	for i := range many {
		r := berth.Rigid(fmt.Sprintf("%04d", i), 0, berth.Time(100*i+100), berth.Time(100*i+200), 8, 100)
		if _, _, err := core.Step(0, new(engine.Submit(&r)), Key{}); err != nil {
			t.Fatal(err)
		}
		s := core.takeShown()
		d.show(&s)
	}
	looking.Wait()
}

// A card that is being read is not written by later records, and one that the core
// has forgotten is no longer to be seen.
func TestCardsThatAreLookedAtAreNotWritten(t *testing.T) {
	core, err := newCore(engine.Config{Sites: []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Late}}}}}, "test", 1)
	if err != nil {
		t.Fatal(err)
	}
	var d display
	d.begin(core)
	step := func(event engine.Event) *model {
		t.Helper()
		if _, _, err := core.Step(0, &event, Key{}); err != nil {
			t.Fatal(err)
		}
		s := core.takeShown()
		d.show(&s)
		return d.look()
	}
	r := berth.Rigid("a", 0, 100, 200, 8, 100)
	first := step(engine.Submit(&r))
	was, _ := first.cards.Get(&card{id: "a"})
	then := *was
	second := step(engine.Cancel("a"))
	if *was != then || was.state() != Confirmed {
		t.Errorf("the card was %+v, is %+v", then, *was)
	}
	if now, _ := second.cards.Get(&card{id: "a"}); now.state() != Cancelled {
		t.Errorf("it is %s", now.state())
	}
	for _, id := range []string{"b", "c", "d"} {
		r := berth.Rigid(id, 0, 100, 200, 9, 100)
		step(engine.Submit(&r))
	}
	last := d.look()
	if _, is := last.cards.Get(&card{id: "a"}); is || last.cards.Len() != core.cards.Len() {
		t.Errorf("%d cards are shown, of %d; the oldest is: %t", last.cards.Len(), core.cards.Len(), is)
	}
	if _, is := second.cards.Get(&card{id: "a"}); !is {
		t.Error("it is gone from what was given out before")
	}
}
