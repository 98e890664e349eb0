package chance

import (
	"cmp"
	"math"
	"slices"

	"github.com/berth-hpc/berth"
)

// The sizes of what is learned from. They were set before any log was looked at. That all remembered
// cases calibrate, and that bunches weigh less, was chosen on parts of four logs (docs/results/chance.md).
const (
	// remembered is how many of the last cases count, and say what a score is worth.
	remembered = 20_000
	// bunch is the time within which cases came out together, in seconds.
	bunch = 3600
	// least is how many there must be before anything is told: with fewer the shares of ten
	// groups are known to 20 points at best.
	least = 200
	// groups is how many parts of equal size the calibrating cases are cut into.
	groups = 40
	// smallest is how many cases such a part has at least.
	smallest = 50
	// prior is how many cases the share of a wider class counts for in a narrower one.
	prior = 10
	// recent is how many of the last cases say how it has been lately.
	recent = 50
	// The calibration is computed anew once there are refit new cases, and one for each refitPart
	// of those that are remembered.
	refit     = 50
	refitPart = 80
)

// known is a case that has come out.
type known struct {
	traits   traits
	happened bool
	at       berth.Time // when it came out
	score    float64    // before it came out; below 0 if nothing was known then
}

// tally counts the cases of a class.
type tally struct{ n, happened int }

// block is past cases whose scores were alike, from a score on.
type block struct {
	from        float64
	n, happened int
	// weight is how many cases that know nothing of one another it is worth, and came is
	// those of them that came true.
	weight, came float64
	chance       Chance // that follows from it
}

// learner keeps the last cases. A case is scored by the share of those that share its traits,
// beginning with the first trait; each further trait narrows the class, whose share is
// pulled towards that of the wider one. What such a score is worth is learned from cases that were
// scored before they came out, by isotonic regression (pool adjacent violators). Cases with like scores
// that came out within the same hour are a bunch, often of one user and with one fate: together they weigh
// the root of their number, between one case and all of them.
type learner struct {
	cases  []known // a ring
	next   int
	counts map[uint64]tally
	blocks []block
	since  int // cases since the blocks were made
}

func newLearner() *learner { return &learner{counts: map[uint64]tally{}} }

// key returns that of the class with the first traits.
func (t *traits) key(traits int) uint64 {
	key := uint64(traits)
	for _, class := range t[:traits] {
		key = key<<traitBits | uint64(class)
	}
	return key
}

// count adds a case to all its classes, or takes it away.
func (l *learner) count(k *known, by int) {
	for d := range depth + 1 {
		key := k.traits.key(d)
		c := l.counts[key]
		if c.n += by; k.happened {
			c.happened += by
		}
		if c.n == 0 {
			delete(l.counts, key)
		} else {
			l.counts[key] = c
		}
	}
}

// learn takes a case in and forgets the oldest one if there are too many.
func (l *learner) learn(k known) {
	l.count(&k, 1)
	if l.since++; len(l.cases) < remembered {
		l.cases = append(l.cases, k)
		return
	}
	l.count(&l.cases[l.next], -1)
	l.cases[l.next] = k
	l.next = (l.next + 1) % remembered
}

// last visits the last most cases, the latest first.
func (l *learner) last(most int, visit func(*known)) {
	n := len(l.cases)
	for i := range min(most, n) {
		visit(&l.cases[(l.next-1-i+2*n)%n])
	}
}

// lately returns the class of how it has been lately.
func (l *learner) lately() uint8 {
	n, happened := int64(0), int64(0)
	l.last(recent, func(k *known) {
		if n++; k.happened {
			happened++
		}
	})
	if n == 0 {
		return classes - 1
	}
	return class(part(happened, n), 20, 200, 500, 800, 900, 980)
}

// score returns the share of the narrowest class, and -1 before anything is known. The
// conversions keep machines from rounding in different ways.
func (l *learner) score(t *traits) float64 {
	if len(l.cases) == 0 {
		return -1
	}
	share := 0.5
	weight := 2.0
	for d := range depth + 1 {
		c := l.counts[t.key(d)]
		share = float64(float64(c.happened)+float64(weight*share)) / (float64(c.n) + weight)
		weight = prior
	}
	return share
}

// chance returns what a score is worth.
func (l *learner) chance(score float64) Chance {
	if len(l.blocks) == 0 || l.since >= max(refit, len(l.cases)/refitPart) {
		l.fit()
		l.since = 0
	}
	if len(l.blocks) == 0 || score < 0 {
		return Chance{}
	}
	i, found := slices.BinarySearchFunc(l.blocks, score, func(b block, score float64) int { return cmp.Compare(b.from, score) })
	if !found {
		i = max(i-1, 0)
	}
	return l.blocks[i].chance
}

// fit makes the blocks anew. Cost: O(n log n) of the cases.
func (l *learner) fit() {
	var scored []known
	l.last(remembered, func(k *known) {
		if k.score >= 0 {
			scored = append(scored, *k)
		}
	})
	if l.blocks = l.blocks[:0]; len(scored) < least {
		return
	}
	slices.SortStableFunc(scored, func(a, b known) int { return cmp.Compare(a.score, b.score) })
	size := max(len(scored)/groups, smallest)
	for from := 0; from < len(scored); {
		to := min(from+size, len(scored))
		for to < len(scored) && (scored[to].score == scored[to-1].score || len(scored)-to < size) {
			to++ // equal scores stay together, and what remains is no group of its own
		}
		b := blockOf(scored[from:to])
		from = to
		// A block that is worth less than the one before is of one piece with it.
		for last := len(l.blocks) - 1; last >= 0 && l.blocks[last].came*b.weight >= b.came*l.blocks[last].weight; last-- {
			b = l.blocks[last].with(&b)
			l.blocks = l.blocks[:last]
		}
		l.blocks = append(l.blocks, b)
	}
	for i := range l.blocks {
		l.blocks[i].chance = l.blocks[i].worth()
	}
}

// blockOf returns the block of cases that are sorted by their scores.
func blockOf(cases []known) block {
	bunches := make(map[berth.Time]int)
	for i := range cases {
		bunches[cases[i].at/bunch]++
	}
	b := block{from: cases[0].score, n: len(cases)}
	for i := range cases {
		weight := 1 / math.Sqrt(float64(bunches[cases[i].at/bunch]))
		b.weight += weight
		if cases[i].happened {
			b.happened++
			b.came += weight
		}
	}
	return b
}

// with returns a block and the next one as one.
func (b block) with(next *block) block {
	b.n, b.happened, b.weight, b.came = b.n+next.n, b.happened+next.happened, b.weight+next.weight, b.came+next.came
	return b
}
