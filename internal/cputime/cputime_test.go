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
