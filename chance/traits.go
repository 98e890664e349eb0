package chance

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
)

// traits are what a case looks like, the most telling first. Each is the number of a class, so
// that a case can be told in words.
type traits [depth]uint8

// depth is how many traits a case has, and classes how many each may have.
const (
	depth   = 8
	classes = 1 << traitBits
	// traitBits is the bits of a class in a key.
	traitBits = 5
)

// class returns how many of the ascending bounds a number reaches.
func class[T cmp.Ordered](x T, bounds ...T) uint8 {
	i, found := slices.BinarySearch(bounds, x)
	if found {
		i++
	}
	return uint8(min(i, classes-1))
}

// longest bounds lengths that are multiplied: a thousand years.
const longest = 1 << 35

// part returns 1000·a/b, and 0 of nothing.
func part(a, b int64) int64 {
	if b <= 0 {
		return 0
	}
	return a * 1000 / b
}

// roomy returns the class of how many starts are possible: none, less than a quarter, less than
// three quarters, not all, all.
func (l *look) roomy() uint8 {
	switch l.possible {
	case 0:
		return 0
	case l.starts:
		return 4
	default:
		return 1 + class(part(l.possible, l.starts), 250, 750)
	}
}

// load returns the class of how much of the window is booked.
func (l *look) load() uint8 { return class(part(l.booked, l.capacity), 250, 500, 750, 900) }

func width(npe berth.Count, pes int64) uint8 {
	return class(part(int64(npe), pes), 16, 63, 126, 251, 501)
}

func length(d berth.Duration) uint8 { return class(d, 600, 3600, 6*3600, 24*3600) }

// sixth returns which six hours of the week it is: 28 of them, in whatever zone, as the same six
// hours always have the same number.
func sixth(t berth.Time) uint8 { return uint8(int64(t) / (6 * 3600) % 28) }

// traitsOf returns what a case looks like at a moment.
func (r *replay) traitsOf(e *Entry, now berth.Time) traits {
	switch r.question.Kind {
	case Moved:
		l := r.plan.look(e.Promised.Start, e.Promised.End, e.NPE, e.Promised.Length())
		return traits{
			class(e.Promised.Start.Sub(e.Arrival), 3600, 6*3600, 24*3600, 7*24*3600), length(e.Promised.Length()), width(e.NPE, r.plan.pes), r.learner.lately(), l.load(), sixth(e.Promised.Start),
		}
	case Started:
		l := r.plan.look(now, now.Add(r.question.Later).Add(e.Duration), e.NPE, e.Duration)
		waiting := r.waiting / max(r.plan.pes, 1)
		return traits{class(waiting, 60, 1800, 2*3600, 8*3600, 24*3600), l.roomy(), width(e.NPE, r.plan.pes), r.learner.lately(), length(e.Duration), l.load(), sixth(now)}
	default:
		from := max(e.Ready, now)
		l := r.plan.look(from, e.Deadline, e.NPE, e.Duration)
		slack := min(int64(e.Deadline.Sub(e.Ready)), longest) - min(int64(e.Duration), longest)
		return traits{
			l.roomy(), width(e.NPE, r.plan.pes), r.learner.lately(), l.load(), class(part(slack, min(int64(e.Duration), longest)), 100, 500, 1500), length(e.Duration),
			class(e.Ready.Sub(e.Arrival), 900, 3600, 6*3600, 24*3600), sixth(e.Ready),
		}
	}
}
