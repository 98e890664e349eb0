package workflow

import "github.com/berth-hpc/berth"

// fit is where a task may run: on npe PEs throughout [start, end).
type fit struct {
	start, end berth.Time
	npe        berth.Count
}

// noRecord is no place in a profile.
var noRecord = cursor{-1, 0}

// earliest returns the earliest end of a task that may start at ready, on at
// most limit PEs, with the fewest PEs that reach it. It is false if the PEs are
// never free long enough.
//
// For one number of PEs the earliest start is ready, or a time at which PEs
// become free. So the walk visits these, and at each looks at one number only:
// as many as stay free while a task of that many runs, for fewer would end
// later. What must be beaten rises with every fit and with the time itself,
// which soon ends the walk. Of equal ends the one that starts first has the
// fewest PEs, so a later one must be better to count.
func (p *profile) earliest(task *curve, ready berth.Time, limit berth.Count) (fit, bool) {
	best := fit{end: berth.Forever}
	shortest := task.duration(limit)
	need := task.few() // fewer PEs cannot beat best from here on
	at, start := p.at(ready), ready
	for need <= limit && start.Add(shortest) < best.end {
		n := min(p.blocks[at.b].free[at.i], limit)
		if n >= need {
			end, enough, blocked := p.runs(task, at, start, n, need, best.end)
			if end < best.end {
				best = fit{start, end, enough}
				need = enough + 1
			} else {
				need = max(need, enough)
			}
			// No task is short enough to end before what stood in the way.
			if blocked.b >= 0 && start.Add(shortest) > p.blocks[blocked.b].times[blocked.i] {
				at = blocked
			}
		}
		var more bool
		if at, more = p.rise(at, need); !more {
			break
		}
		start = p.blocks[at.b].times[at.i]
	}
	if best.npe == 0 {
		return fit{}, false
	}
	best.npe, _ = task.least(berth.Duration(best.end-best.start), best.npe)
	return best, true
}

// runs tries to run a task from start, which is in record at, on n PEs, or as
// many as stay free. It returns the end and the number of PEs if that ends
// before best; else Forever, the number that is needed from here on, and the
// record in which PEs were missing, if that was the reason.
func (p *profile) runs(task *curve, at cursor, start berth.Time, n, need berth.Count, best berth.Time) (berth.Time, berth.Count, cursor) {
	end := start + berth.Time(task.duration(n))
	if end >= best {
		return berth.Forever, n + 1, noRecord
	}
	b, i := p.blocks[at.b], at.i+1
	for {
		for ; i < b.n; i++ {
			if b.times[i] >= end {
				return end, n, noRecord
			}
			if b.free[i] >= n {
				continue
			}
			n = b.free[i]
			if n < need {
				return berth.Forever, need, cursor{at.b, i}
			}
			if end = start + berth.Time(task.duration(n)); end >= best {
				return berth.Forever, n + 1, cursor{at.b, i}
			}
		}
		for {
			if at.b++; at.b == len(p.blocks) {
				return end, n, noRecord
			}
			b, i = p.blocks[at.b], 0
			if b.low < n || b.times[0] >= end {
				break
			}
		}
	}
}

// rise returns the next record behind at with at least need free PEs and more
// than the record before it.
func (p *profile) rise(at cursor, need berth.Count) (cursor, bool) {
	b := p.blocks[at.b]
	before := b.free[at.i]
	for i := at.i + 1; ; i = 0 {
		for ; i < b.n; i++ {
			if b.free[i] > before && b.free[i] >= need {
				return cursor{at.b, i}, true
			}
			before = b.free[i]
		}
		for {
			if at.b++; at.b == len(p.blocks) {
				return at, false
			}
			b = p.blocks[at.b]
			if b.high >= need {
				break
			}
			before = b.free[b.n-1]
		}
	}
}

// latest returns the latest start of a task that must end at due, on at most
// limit PEs and not before lo, with the fewest PEs that allow it. It is
// earliest the other way round: the ends tried are due and the times at which
// PEs are taken, the last first.
func (p *profile) latest(task *curve, lo, due berth.Time, limit berth.Count) (fit, bool) {
	best := fit{start: lo - 1}
	shortest := berth.Time(task.duration(limit))
	need := task.few()
	at, end := p.before(p.at(due), due), due
	for need <= limit && end-shortest > best.start {
		n := min(p.blocks[at.b].free[at.i], limit)
		if n >= need {
			start, enough, blocked := p.runsBack(task, at, end, n, need, best.start)
			if start > best.start {
				best = fit{start, end, enough}
				need = enough + 1
			} else {
				need = max(need, enough)
			}
			if blocked.b >= 0 && p.endOf(blocked) > end-shortest {
				at = blocked
			}
		}
		var more bool
		if at, more = p.fall(at, need); !more {
			break
		}
		end = p.endOf(at)
	}
	if best.npe == 0 {
		return fit{}, false
	}
	best.npe, _ = task.least(berth.Duration(best.end-best.start), best.npe)
	return best, true
}

// before steps back from the record that only begins at t.
func (p *profile) before(at cursor, t berth.Time) cursor {
	switch {
	case p.blocks[at.b].times[at.i] < t:
		return at
	case at.i > 0:
		return cursor{at.b, at.i - 1}
	default:
		return cursor{at.b - 1, p.blocks[at.b-1].n - 1}
	}
}

// endOf returns when the record behind at begins, at not being the last.
func (p *profile) endOf(at cursor) berth.Time {
	if b := p.blocks[at.b]; at.i+1 < b.n {
		return b.times[at.i+1]
	}
	return p.blocks[at.b+1].times[0]
}

// runsBack tries to run a task until end, which is in or right behind record
// at, on n PEs, or as many as are free before. It returns the start and the
// number of PEs if that starts after best; else best, the number that is needed
// from here back, and the record in which PEs were missing, if that was the
// reason.
func (p *profile) runsBack(task *curve, at cursor, end berth.Time, n, need berth.Count, best berth.Time) (berth.Time, berth.Count, cursor) {
	start := end - berth.Time(task.duration(n))
	if start <= best {
		return best, n + 1, noRecord
	}
	b, i := p.blocks[at.b], at.i
	if b.times[i] <= start {
		return start, n, noRecord
	}
	for i--; ; i = b.n - 1 {
		for ; i >= 0; i-- {
			if b.free[i] < n {
				n = b.free[i]
				if n < need {
					return best, need, cursor{at.b, i}
				}
				if start = end - berth.Time(task.duration(n)); start <= best {
					return best, n + 1, cursor{at.b, i}
				}
			}
			if b.times[i] <= start {
				return start, n, noRecord
			}
		}
		// The first block begins before every time, so the walk ends there.
		for {
			at.b--
			b = p.blocks[at.b]
			if b.low < n || b.times[0] <= start {
				break
			}
		}
	}
}

// fall returns the next record before at with at least need free PEs and more
// than the record behind it.
func (p *profile) fall(at cursor, need berth.Count) (cursor, bool) {
	b := p.blocks[at.b]
	behind := b.free[at.i]
	for i := at.i - 1; ; i = b.n - 1 {
		for ; i >= 0; i-- {
			if b.free[i] > behind && b.free[i] >= need {
				return cursor{at.b, i}, true
			}
			behind = b.free[i]
		}
		for {
			if at.b--; at.b < 0 {
				return at, false
			}
			b = p.blocks[at.b]
			if b.high >= need {
				break
			}
			behind = b.free[0]
		}
	}
}

// fewest returns the fewest PEs, at most limit, on which a task fits into
// [lo, due), at its latest start there.
//
// The longest run for which n PEs are free shrinks with n, and so does the time
// the task needs; so the search goes from the fewest PEs that could do in the
// whole window to the fewest that could do in the longest run seen, until the
// run is long enough.
func (p *profile) fewest(task *curve, lo, due berth.Time, limit berth.Count) (fit, bool) {
	if due <= lo {
		return fit{}, false
	}
	longest := berth.Duration(due - lo)
	for {
		n, ok := task.least(longest, limit)
		if !ok {
			return fit{}, false
		}
		d := task.duration(n)
		end, run := p.longest(lo, due, n, d)
		if run >= d {
			return fit{end - berth.Time(d), end, n}, true
		}
		longest = run
		if run < 1 {
			return fit{}, false
		}
	}
}

// longest returns the latest run of n free PEs within [lo, due) that lasts for
// at least d, and where it ends, or else how long the longest is.
func (p *profile) longest(lo, due berth.Time, n berth.Count, d berth.Duration) (berth.Time, berth.Duration) {
	most := berth.Duration(0)
	at := p.before(p.at(due), due)
	end := due // where the run ends that the walk is in
	b, i := p.blocks[at.b], at.i
	begin := due // of the record behind
	for {
		if i == b.n-1 && b.times[0] > lo && (b.high < n || b.low >= n && berth.Duration(end-b.times[0]) < d) {
			// The whole block is one piece of a run, or of what lies between two.
			if b.high < n {
				most = max(most, berth.Duration(end-begin))
				end = b.times[0]
			}
			begin, i = b.times[0], -1
		}
		for ; i >= 0; i-- {
			t := max(b.times[i], lo)
			if b.free[i] < n {
				most = max(most, berth.Duration(end-begin))
				end = t
			} else if berth.Duration(end-t) >= d {
				return end, berth.Duration(end - t)
			}
			begin = t
			if t == lo {
				return end, max(most, berth.Duration(end-begin))
			}
		}
		at.b--
		b = p.blocks[at.b]
		i = b.n - 1
	}
}

// first returns the earliest start from ready on at which n PEs are free for d:
// first fit. It is false if they never are.
func (p *profile) first(ready berth.Time, d berth.Duration, n berth.Count) (berth.Time, bool) {
	start := ready
	at := p.at(ready)
	b, i := p.blocks[at.b], at.i
	for free := true; ; i = 0 {
		for ; i < b.n; i++ {
			switch {
			case free && b.times[i] >= start.Add(d):
				return start, true
			case b.free[i] < n:
				free = false
			case !free:
				start, free = b.times[i], true
			}
		}
		for {
			if at.b++; at.b == len(p.blocks) {
				return start, free
			}
			b = p.blocks[at.b]
			if free && b.times[0] >= start.Add(d) {
				return start, true
			}
			if free && b.low < n || !free && b.high >= n {
				break
			}
		}
	}
}
