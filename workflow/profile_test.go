package workflow

import (
	"math/rand/v2"
	"testing"

	"github.com/berth-hpc/berth"
)

// longProfile draws a profile of many blocks: counts that wander, with long
// stretches of few and of many free PEs, some below zero.
func longProfile(rng *rand.Rand, records int, size berth.Count) *Instance {
	in := &Instance{w: &Workflow{}, size: size, room: new(Room)}
	at, free, pull := berth.Time(0), size/2, berth.Count(0)
	for i := range records {
		if i%(20+rng.IntN(100)) == 0 {
			pull = berth.Count(rng.IntN(int(size)+4) - 4)
		}
		free = min(size, free+(pull-free)/2+berth.Count(rng.IntN(3)-1))
		in.room.steps.times, in.room.steps.free = append(in.room.steps.times, at), append(in.room.steps.free, free)
		at += berth.Time(1 + rng.IntN(40))
	}
	in.room.steps.free[records-1] = size
	return in
}

// Every question to a profile of many blocks has the answer of a scan that tries
// each number of PEs, also after tasks were placed and taken back.
func TestProfileEqualsScan(t *testing.T) {
	rounds := 100
	if testing.Short() {
		rounds = 20
	}
	for seed := range rounds {
		rng := rand.New(rand.NewPCG(uint64(seed), 7))
		size := berth.Count(1 + rng.IntN(60))
		in := longProfile(rng, 1+rng.IntN(700), size)
		scan := plain{in: in}
		scan.reset()
		p := &in.room.profile
		p.reset(&in.room.steps)
		span := int(in.room.steps.times[len(in.room.steps.times)-1]) + 500
		var placed []fit
		for k := range 200 {
			c := curve{total: float64(rng.IntN(40 << rng.IntN(8))), serial: rng.Float64() * rng.Float64()}
			c.parallel = 1 - c.serial
			lo := berth.Time(rng.IntN(span))
			due := lo + berth.Time(rng.IntN(span))
			if k%7 == 0 {
				ask(t, seed, p, &scan, &c, lo, due, 1+berth.Count(rng.IntN(int(size))))
			}
			switch at, ok := p.earliest(&c, lo, size); {
			case rng.IntN(4) == 0 && len(placed) > 0:
				back := placed[len(placed)-1]
				placed = placed[:len(placed)-1]
				p.take(back.start, back.end, -back.npe)
				scan.take(back.start, back.end, -back.npe)
			case ok:
				placed = append(placed, at)
				p.take(at.start, at.end, at.npe)
				scan.take(at.start, at.end, at.npe)
			}
		}
		if t.Failed() {
			return
		}
	}
}

// ask compares all answers for one task and window.
func ask(t *testing.T, seed int, p *profile, scan *plain, c *curve, lo, due berth.Time, limit berth.Count) {
	t.Helper()
	soonest, last, fewest := fit{end: berth.Forever}, fit{start: lo - 1}, fit{}
	for m := berth.Count(1); m <= limit; m++ {
		d := c.duration(m)
		start, ok := scan.earliest(lo, d, m)
		if ok && start.Add(d) < soonest.end {
			soonest = fit{start, start.Add(d), m}
		}
		if got, gotOK := p.first(lo, d, m); gotOK != ok || ok && got != start {
			t.Errorf("seed %d: first fit of %d×%d from %d is %d, %v; want %d, %v", seed, m, d, lo, got, gotOK, start, ok)
		}
		if fits := ok && start == lo; p.fits(lo, lo.Add(d), m) != fits {
			t.Errorf("seed %d: %d×%d fits at %d: %v", seed, m, d, lo, !fits)
		}
		if start, ok = scan.latest(lo, due, d, m); !ok {
			continue
		}
		if start > last.start {
			last = fit{start, start.Add(d), m}
		}
		if fewest.npe == 0 {
			fewest = fit{start, start.Add(d), m}
		}
	}
	check := func(what string, got fit, ok bool, want fit) {
		t.Helper()
		if ok != (want.npe > 0) || ok && got != want {
			t.Errorf("seed %d: %s of %+v in [%d,%d) on at most %d is %+v, %v; want %+v", seed, what, *c, lo, due, limit, got, ok, want)
		}
	}
	got, ok := p.earliest(c, lo, limit)
	check("earliest end", got, ok, soonest)
	got, ok = p.latest(c, lo, due, limit)
	check("latest start", got, ok, last)
	got, ok = p.fewest(c, lo, due, limit)
	check("fewest PEs", got, ok, fewest)
}

// A run that begins where a block of records does counts, although the whole
// block before it is passed over.
func TestFewestBesideABlockWithoutRoom(t *testing.T) {
	var s steps
	for i := range 4 * blockSize {
		s.times, s.free = append(s.times, berth.Time(30*i)), append(s.free, berth.Count(-(i%2)))
	}
	var p profile
	p.reset(&s)
	begin := p.blocks[2].times[0]
	p.take(begin, begin+30, -4)
	c := curve{total: 120, parallel: 1}
	got, ok := p.fewest(&c, 0, 120*blockSize, 4)
	if want := (fit{begin, begin + 30, 4}); !ok || got != want {
		t.Errorf("fewest PEs are %+v, %v; want %+v", got, ok, want)
	}
}

// The steps of λ are twentieths of the way, rounded up.
func TestReserve(t *testing.T) {
	for _, c := range []struct {
		start, due berth.Time
		k          int
		want       berth.Time
	}{{10, 21, 0, 10}, {10, 21, 1, 11}, {10, 21, 10, 16}, {10, 21, 19, 21}, {10, 21, 20, 21}, {10, 410, 3, 70}, {30, 21, 7, 30}, {-20, -9, 2, -18}} {
		if got := reserve(c.start, c.due, c.k); got != c.want {
			t.Errorf("step %d from %d to %d is %d, want %d", c.k, c.start, c.due, got, c.want)
		}
	}
}

// The fewest PEs for a duration are those that a count from one on finds.
func TestLeast(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		c := curve{total: float64(rng.IntN(100_000)), serial: []float64{0, 1, .05, rng.Float64(), 1e-9, 1 - 1e-9}[rng.IntN(6)]}
		c.parallel = 1 - c.serial
		limit := berth.Count(1 + rng.IntN(2000))
		d := c.duration(1+berth.Count(rng.IntN(int(limit)))) + berth.Duration(rng.IntN(5)-2)
		want := berth.Count(1)
		for want <= limit && c.duration(want) > d {
			want++
		}
		if got, ok := c.least(d, limit); ok != (want <= limit) || ok && got != want {
			t.Fatalf("%+v: least PEs for %d s is %d, %v; want %d of %d", c, d, got, ok, want, limit)
		}
	}
}
