package federation

import (
	"cmp"
	"slices"

	"github.com/berth-hpc/berth"
)

// hour is how finely the index knows when PEs are promised.
const hour = 3600

// most is how much of a window the index looks at, in hours: beyond a week of it, how full an engine is
// says little of whether there is room.
const most = 168

// hours are PE-seconds by the hour.
type hours []int64

// add adds what a place takes, times a sign.
func (h *hours) add(a *berth.Allotment, sign int64) {
	last := int((a.End - 1) / hour)
	for len(*h) <= last {
		*h = append(*h, 0)
	}
	for i := int(a.Start / hour); i <= last; i++ {
		from, until := max(a.Start, berth.Time(i)*hour), min(a.End, berth.Time(i+1)*hour)
		(*h)[i] += sign * berth.Area(a.NPE, until.Sub(from))
	}
}

// within returns the PE-seconds of the hours that a window touches, and how long these are together.
func (h hours) within(w berth.Interval) (area int64, length berth.Duration) {
	first, last := int(w.Start/hour), int((w.End-1)/hour)
	last = min(last, first+most-1)
	for i := first; i <= min(last, len(h)-1); i++ {
		area += h[i]
	}
	return area, berth.Duration(last-first+1) * hour
}

// index is what is known of all engines: how much of each hour is promised.
type index struct {
	at    berth.Time // of the picture
	taken bool
	known []hours
}

// look returns what is known of an engine.
func (p *play) look(m *member) hours {
	if p.config.Refresh == 0 {
		return m.promised
	}
	x := &p.index
	if !x.taken || p.now.Sub(x.at) >= p.config.Refresh {
		x.known = slices.Grow(x.known[:0], len(p.members))[:len(p.members)]
		for i, of := range p.members {
			if _, down := of.down(p.now); !down { // what is down shows what it was
				x.known[i] = append(x.known[i][:0], of.promised...)
			}
		}
		x.at, x.taken = p.now, true
	}
	return x.known[m.number]
}

// rank returns the engines but one that may have room for a request, by the index: those with the largest share of the window free first, and of
// equals the one with the lowest number. The widest part and the area of all parts must fit.
func (p *play) rank(r *berth.Request, but int) []int {
	widest, area := berth.Count(0), int64(0)
	for i := range r.Parts {
		v := r.Parts[i].Variants[0]
		widest, area = max(widest, v.NPE), area+v.Area()
	}
	window := berth.Interval{Start: max(r.Ready, p.now), End: r.Deadline}
	type candidate struct {
		number int
		free   int64 // in millionths of the PEs
	}
	var list []candidate
	for _, m := range p.members {
		if m.number == but || m.size < widest {
			continue
		}
		taken, length := p.look(m).within(window)
		all := berth.Area(m.size, length)
		if all-taken < area {
			continue
		}
		list = append(list, candidate{m.number, (all - taken) / max(1, all/1_000_000)})
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.free, a.free), cmp.Compare(a.number, b.number))
	})
	numbers := make([]int, len(list))
	for i := range list {
		numbers[i] = list[i].number
	}
	return numbers
}

// step is something to be done.
type step struct {
	at    berth.Time
	order int
	do    func()
}

func (a *step) before(b *step) bool { return a.at < b.at || a.at == b.at && a.order < b.order }

// steps is a heap, the next step at its root.
type steps []step

func (h *steps) push(x step) {
	s := append(*h, x)
	*h = s
	for i := len(s) - 1; i > 0 && s[i].before(&s[(i-1)/2]); i = (i - 1) / 2 {
		s[i], s[(i-1)/2] = s[(i-1)/2], s[i]
	}
}

func (h *steps) pop() step {
	s := *h
	first, last := s[0], len(s)-1
	s[0], s[last] = s[last], step{}
	s = s[:last]
	*h = s
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return first
		}
		if child+1 < last && s[child+1].before(&s[child]) {
			child++
		}
		if !s[child].before(&s[i]) {
			return first
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
}
