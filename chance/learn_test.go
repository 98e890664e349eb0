package chance

import (
	"math"
	"testing"

	"github.com/berth-hpc/berth"
)

// Cases that came out within an hour weigh the root of their number, and the interval goes by what
// they weigh; how many there were is told as it is.
func TestBunchesWeighTheRootOfTheirNumber(t *testing.T) {
	l := newLearner()
	for i := range 256 {
		l.learn(known{at: berth.Time(1000*bunch + i), score: 0.5}) // one bunch, all refused
	}
	for i := range 48 {
		l.learn(known{at: berth.Time((2000 + i) * bunch), happened: true, score: 0.5})
	}
	c := l.chance(0.5)
	if want := (48 + 0.5) / (48 + 16 + 1); !c.Enough || math.Abs(c.Share-want) > 1e-12 || c.Sample != 304 || c.Happened != 48 {
		t.Errorf("%+v; want a share of %.4f, of 48 of 304", c, want)
	}
	if c.Low > 0.64 || c.High < 0.83 { // of 48 in 64; of 304 cases it would be narrower by half
		t.Errorf("%+v; want an interval as of 64 cases", c)
	}
	for i := range 256 {
		l.learn(known{at: berth.Time((3000 + i) * bunch), happened: true, score: 0.9})
	}
	for _, of := range []struct{ score, want float64 }{{0.9, 256.5 / 257}, {0.5, (48 + 0.5) / (48 + 16 + 1)}} {
		if c := l.chance(of.score); math.Abs(c.Share-of.want) > 1e-12 {
			t.Errorf("of %.1f: %+v; want a share of %.4f", of.score, c, of.want)
		}
	}
}

// What a score is worth is learned from all that is remembered, and from nothing that is forgotten.
func TestAllThatIsRememberedCalibrates(t *testing.T) {
	l := newLearner()
	for i := range remembered + 5000 {
		l.learn(known{at: berth.Time(i * bunch), happened: i < 10_000, score: 0.5})
	}
	if c := l.chance(0.5); c.Sample != remembered || c.Happened != 5000 {
		t.Errorf("%+v; want 5000 of %d", c, remembered)
	}
}
