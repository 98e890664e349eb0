package workflow

import (
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
)

// profile is the number of free PEs over time, the planner's own copy: records
// in blocks of a few, each block with its lowest and highest count. Planning
// asks one question for all numbers of PEs at once, and one walk over the
// records near its answer, passing over blocks that cannot matter, costs less
// than a search of the calendar for each number.
//
// The first record reaches back beyond every time, the last lasts for ever.
// Adjacent records may be equal.
type profile struct {
	blocks []*block
	spare  []*block
}

// blockSize is how many records a block holds at most. Measured on plans among a
// hundred bookings and a hundred thousand, times differ by less than half from
// 16 to 128 records, and are up to twice as long with 512.
const blockSize = 64

// blockFill is how many records a block begins with: three quarters, so that the first tasks split few.
const blockFill = blockSize * 3 / 4

type block struct {
	n         int
	low, high berth.Count
	times     [blockSize]berth.Time
	free      [blockSize]berth.Count
}

// steps is a profile at rest: from times[i] on free[i] PEs are free.
type steps struct {
	times []berth.Time
	free  []berth.Count
}

// read copies what a calendar has free from now on, up to a time from which on nothing counts as
// free. It reports whether the calendar goes on there.
func (s *steps) read(c calendar.Reader, now, until berth.Time) (more bool) {
	s.times, s.free = append(s.times[:0], now), append(s.free[:0], c.Size())
	for r := range c.Records() {
		if r.Time <= now {
			s.free[0] = r.Free
			continue
		}
		if r.Time >= until {
			s.times, s.free = append(s.times, until), append(s.free, 0)
			return true
		}
		s.times, s.free = append(s.times, r.Time), append(s.free, r.Free)
	}
	return false
}

// reset makes the profile that of s, and keeps the memory it has.
func (p *profile) reset(s *steps) {
	p.spare = append(p.spare, p.blocks...)
	p.blocks = p.blocks[:0]
	p.add(s.times, s.free)
	p.blocks[0].times[0] = -berth.Forever
}

// extend adds what s has beyond the last time of the profile, up to which it was known and at
// which no PEs counted as free.
func (p *profile) extend(s *steps) {
	last := p.blocks[len(p.blocks)-1]
	last.n--
	end := last.times[last.n]
	if last.n == 0 {
		p.spare, p.blocks = append(p.spare, last), p.blocks[:len(p.blocks)-1]
	} else {
		last.bound()
	}
	k, found := slices.BinarySearch(s.times, end)
	if !found { // what is free there is so since a time before
		p.add([]berth.Time{end}, s.free[k-1:k])
	}
	p.add(s.times[k:], s.free[k:])
}

// add adds records behind all others.
func (p *profile) add(times []berth.Time, free []berth.Count) {
	for from := 0; from < len(times); from += blockFill {
		b := p.fresh()
		b.n = copy(b.times[:blockFill], times[from:])
		copy(b.free[:blockFill], free[from:])
		b.bound()
		p.blocks = append(p.blocks, b)
	}
}

func (p *profile) fresh() *block {
	if n := len(p.spare); n > 0 {
		b := p.spare[n-1]
		p.spare = p.spare[:n-1]
		return b
	}
	return new(block)
}

// bound brings the lowest and the highest count up to date.
func (b *block) bound() {
	free := b.free[:b.n]
	low, high := free[0], free[0]
	for _, n := range free {
		low, high = min(low, n), max(high, n)
	}
	b.low, b.high = low, high
}

// cursor is a place in a profile: record i of block b.
type cursor struct{ b, i int }

// at returns the record in force at t.
func (p *profile) at(t berth.Time) cursor {
	lo, hi := 0, len(p.blocks)
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) / 2); p.blocks[mid].times[0] <= t {
			lo = mid
		} else {
			hi = mid
		}
	}
	b := p.blocks[lo]
	i, n := 0, b.n
	for n-i > 1 {
		if mid := int(uint(i+n) / 2); b.times[mid] <= t {
			i = mid
		} else {
			n = mid
		}
	}
	return cursor{lo, i}
}

// split makes a record begin at t and returns it.
func (p *profile) split(t berth.Time) cursor {
	c := p.at(t)
	b := p.blocks[c.b]
	if b.times[c.i] == t {
		return c
	}
	if b.n == blockSize {
		half := p.fresh()
		half.n = copy(half.times[:], b.times[blockSize/2:])
		copy(half.free[:], b.free[blockSize/2:])
		b.n = blockSize / 2
		b.bound()
		half.bound()
		p.blocks = slices.Insert(p.blocks, c.b+1, half)
		if c.i >= blockSize/2 {
			c.b, c.i = c.b+1, c.i-blockSize/2
			b = half
		}
	}
	c.i++
	copy(b.times[c.i+1:b.n+1], b.times[c.i:b.n])
	copy(b.free[c.i+1:b.n+1], b.free[c.i:b.n])
	b.times[c.i], b.free[c.i] = t, b.free[c.i-1]
	b.n++
	return c
}

// take books n PEs throughout [from, to), or gives them back if n is negative.
func (p *profile) take(from, to berth.Time, n berth.Count) {
	p.split(to)
	c := p.split(from)
	for {
		b := p.blocks[c.b]
		i := c.i
		for ; i < b.n && b.times[i] < to; i++ {
			b.free[i] -= n
		}
		if c.i == 0 && i == b.n { // all alike
			b.low, b.high = b.low-n, b.high-n
		} else {
			b.bound()
		}
		if i < b.n || c.b+1 == len(p.blocks) {
			return
		}
		c = cursor{c.b + 1, 0}
	}
}

// fits reports whether n PEs are free throughout [from, to).
func (p *profile) fits(from, to berth.Time, n berth.Count) bool {
	c := p.at(from)
	for {
		b := p.blocks[c.b]
		if b.low < n {
			for i := c.i; i < b.n; i++ {
				if i > c.i && b.times[i] >= to {
					return true
				}
				if b.free[i] < n {
					return false
				}
			}
		}
		if c.b+1 == len(p.blocks) {
			return true
		}
		c = cursor{c.b + 1, 0}
		if p.blocks[c.b].times[0] >= to {
			return true
		}
	}
}
