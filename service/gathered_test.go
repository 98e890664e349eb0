package service

import (
	"testing"
	"time"

	"github.com/berth-hpc/berth"
)

// No more is gathered than can be decided in a quarter of a slice, as long as that takes lately;
// one decision that was held up changes little, and a burst tells at once. What has many parts or sets weighs more.
func TestNoMoreIsGatheredThanIsDecidedSoon(t *testing.T) {
	var g gathered
	small := weigh(new(berth.Rigid("a", 0, 0, 10, 1, 10)))
	many := berth.Request{Parts: make([]berth.Part, 1000)}
	for i := range many.Parts {
		many.Parts[i].Variants = []berth.Variant{{NPE: 1, Duration: 1}}
	}
	set := berth.Rigid("a", 0, 0, 10, 1, 10)
	set.Parts[0].Eligible = everySecond(100_000)
	if g.weight = 10_000 * small; g.full() {
		t.Error("it is full before it is known how long deciding takes")
	}
	if n := g.piece(small); n != 100 {
		t.Errorf("%d fit before that; want 100", n)
	}
	decide := func(n int, each time.Duration) {
		g.weight = n * small
		g.decided(time.Duration(n) * each)
	}
	for range 20 {
		decide(100, 200*time.Microsecond)
	}
	if g.weight != 0 {
		t.Errorf("what weighs %d waits after all was decided", g.weight)
	}
	if g.weight = 24 * small; g.full() {
		t.Error("24 requests of 0.2 ms are too many")
	}
	if g.weight = 28 * small; !g.full() {
		t.Error("28 requests of 0.2 ms are not too many")
	}
	if n := g.piece(small); n < 24 || n > 28 {
		t.Errorf("%d requests of 0.2 ms fit into %s", n, slice/4)
	}
	for _, heavy := range []*berth.Request{&many, &set} {
		if g.weight = 0; g.piece(weigh(heavy)) != 1 {
			t.Errorf("%d requests fit that weigh %d, and %d is 0.2 ms", g.piece(weigh(heavy)), weigh(heavy), small)
		}
		if g.add(heavy); !g.full() {
			t.Errorf("one that weighs %d is not enough where %d is 0.2 ms", weigh(heavy), small)
		}
	}
	decide(1, 10*time.Millisecond)
	if g.weight = 5 * small; g.full() {
		t.Error("5 requests are too many after one was held up for 10 ms")
	}
	decide(200, 2*time.Millisecond)
	if g.weight = 8 * small; !g.full() {
		t.Error("8 requests are not too many after 200 took 2 ms each")
	}
	decide(1000, time.Second)
	if n := g.piece(small); n != 1 {
		t.Errorf("%d requests of a second fit; want 1, so that there is an end", n)
	}
	pace := g.pace
	if g.decided(time.Hour); g.pace != pace {
		t.Error("a time in which nothing was decided counts")
	}
}

// everySecond returns a set of n runs.
func everySecond(n int) berth.PESet {
	runs := make([]berth.Run, n)
	for i := range runs {
		runs[i] = berth.Run{Lo: berth.PE(2 * i), Hi: berth.PE(2*i + 1)}
	}
	return berth.NewPESet(runs...)
}
