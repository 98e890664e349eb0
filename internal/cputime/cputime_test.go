package cputime

import "testing"

// Work takes time, and a processor has a name.
func TestUsed(t *testing.T) {
	before := Used()
	x := uint64(1)
	for Used() == before {
		x = x*6364136223846793005 + 1
	}
	if Used() < before || x == 0 || Processor() == "" {
		t.Errorf("%s after %s on %q", Used(), before, Processor())
	}
}

// What does more takes longer.
func TestOf(t *testing.T) {
	work := func(steps int) func() {
		return func() {
			x := uint64(1)
			for range steps {
				x = x*6364136223846793005 + 1
			}
			if x == 0 {
				t.Error("never")
			}
		}
	}
	little, much := Of(work(1000)), Of(work(200_000_000))
	if little < 0 || much <= little {
		t.Errorf("%s for little, %s for much", little, much)
	}
}
