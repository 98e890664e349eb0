// Package chance learns from what was asked for, answered and started how probable it is that a
// request like one at hand is accepted if it is made later, that a promise moves, and that an
// ordinary job has started some time from now. Each figure is a share of past cases that looked
// as promising as this one, with their number and an interval. It decides nothing, and reads no
// clock and no files.
package chance

import (
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/berth-hpc/berth"
)

// Kind is what may happen.
type Kind string

// The kinds.
const (
	Accepted Kind = "accepted" // a request, Later from now, in a window that is as much later
	Moved    Kind = "moved"    // a promise gets another place, or is broken
	Started  Kind = "started"  // an ordinary job has begun, Later from now
)

// Question is what is asked of a history.
type Question struct {
	Kind Kind
	// Later is from when it is asked: until a request is made, or until a job has started; a
	// promise may move at any time, and it is 0.
	Later berth.Duration
}

// Chance is how probable something is.
type Chance struct {
	// Enough is false if too few cases are known; the rest is 0 then.
	Enough bool
	// Share is the mean of what the cases allow, from 0 to 1; it lies between Low and High with
	// probability 0.95 if all cases of the sample are alike, and bunches of them know nothing of one another.
	Share, Low, High float64
	// Sample is how many past cases looked as promising as this one, and Happened in how many of
	// them it came true.
	Sample, Happened int
}

// level is the probability of the intervals.
const level = 0.95

// worth returns the chance that a block tells: the Beta distribution that follows from it and
// Jeffreys' prior, with the ends of its interval.
func (b *block) worth() Chance {
	posterior := distuv.Beta{Alpha: b.came + 0.5, Beta: b.weight - b.came + 0.5}
	c := Chance{Enough: true, Share: posterior.Mean(), Low: posterior.Quantile((1 - level) / 2), High: posterior.Quantile((1 + level) / 2), Sample: b.n, Happened: b.happened}
	if b.happened == 0 {
		c.Low = 0 // the interval of none holds none
	}
	if b.happened == b.n {
		c.High = 1
	}
	return c
}
