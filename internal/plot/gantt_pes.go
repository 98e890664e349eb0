package plot

import (
	"cmp"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/berth-hpc/berth"
)

// idlePEs are runs of PEs, ascending, disjoint and apart.
type idlePEs []berth.Run

// take removes n PEs, from the high or the low end: one run that has them all,
// or if there is none the outermost ones. It is false, and nothing happens, if
// there are not as many.
func (p *idlePEs) take(n berth.Count, high bool) (taken []berth.Run, ok bool) {
	order := make([]int, 0, len(*p))
	all := berth.Count(0)
	for i, run := range *p {
		order = append(order, i)
		all += length(run)
	}
	if all < n {
		return nil, false
	}
	if high {
		slices.Reverse(order)
	}
	for _, i := range order {
		if length((*p)[i]) >= n {
			taken = []berth.Run{p.cut(i, n, high)}
			p.tidy()
			return taken, true
		}
	}
	for _, i := range order {
		part := min(n, length((*p)[i]))
		taken = append(taken, p.cut(i, part, high))
		if n -= part; n == 0 {
			break
		}
	}
	p.tidy()
	return taken, true
}

// cut removes n PEs at one end of run i, which may be empty then.
func (p *idlePEs) cut(i int, n berth.Count, high bool) berth.Run {
	run := &(*p)[i]
	if high {
		run.Hi -= berth.PE(n)
		return berth.Run{Lo: run.Hi, Hi: run.Hi + berth.PE(n)}
	}
	run.Lo += berth.PE(n)
	return berth.Run{Lo: run.Lo - berth.PE(n), Hi: run.Lo}
}

// give brings PEs back that were taken.
func (p *idlePEs) give(runs []berth.Run) {
	*p = append(*p, runs...)
	slices.SortFunc(*p, func(a, b berth.Run) int { return cmp.Compare(a.Lo, b.Lo) })
	p.tidy()
}

// tidy drops empty runs and joins those that touch.
func (p *idlePEs) tidy() {
	kept := (*p)[:0]
	for _, run := range *p {
		switch last := len(kept) - 1; {
		case length(run) == 0:
		case last >= 0 && kept[last].Hi == run.Lo:
			kept[last].Hi = run.Hi
		default:
			kept = append(kept, run)
		}
	}
	*p = kept
}

func length(run berth.Run) berth.Count { return berth.Count(run.Hi - run.Lo) }

// fitted shortens words to a width.
func fitted(s draw.TextStyle, words string, width vg.Length) string {
	if s.Width(words) <= width {
		return words
	}
	runes := []rune(words)
	for len(runes) > 1 && s.Width(string(runes)+"…") > width {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}
