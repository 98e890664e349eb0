package service

import (
	"testing"
	"time"
)

// No more is gathered than can be decided in half a slice, as long as that takes lately;
// one decision that was held up changes little, and a burst tells at once.
func TestNoMoreIsGatheredThanIsDecidedSoon(t *testing.T) {
	var g gathered
	if g.requests = 10_000; g.full() {
		t.Error("it is full before it is known how long deciding takes")
	}
	if n := g.fits(slice/4, 100); n != 100 {
		t.Errorf("%d fit before that; want 100", n)
	}
	decide := func(n int, each time.Duration) {
		g.requests = n
		g.decided(time.Duration(n) * each)
	}
	for range 20 {
		decide(100, 200*time.Microsecond)
	}
	if g.requests != 0 {
		t.Errorf("%d wait after all were decided", g.requests)
	}
	if g.requests = 49; g.full() {
		t.Error("49 requests of 0.2 ms are too many")
	}
	if g.requests = 55; !g.full() {
		t.Error("55 requests of 0.2 ms are not too many")
	}
	if n := g.fits(slice/4, 100); n < 24 || n > 28 {
		t.Errorf("%d requests of 0.2 ms fit into %s", n, slice/4)
	}
	decide(1, 10*time.Millisecond)
	if g.requests = 5; g.full() {
		t.Error("5 requests are too many after one was held up for 10 ms")
	}
	decide(200, 2*time.Millisecond)
	if g.requests = 8; !g.full() {
		t.Error("8 requests are not too many after 200 took 2 ms each")
	}
	decide(1000, time.Second)
	if n := g.fits(slice/4, 100); n != 1 {
		t.Errorf("%d requests of a second fit; want 1, so that there is an end", n)
	}
	pace := g.pace
	if g.decided(time.Hour); g.pace != pace {
		t.Error("a time in which nothing was decided counts")
	}
}
