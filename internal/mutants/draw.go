package main

import (
	"go/parser"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"github.com/berth-hpc/berth/internal/source"
)

// draws draws mutants of a package, each at most once: first a kind, evenly
// among those that have mutants left, then one of the kind. So a kind with few
// places is tried as often as one with many. The seed and the package decide
// the whole sequence.
type draws struct {
	random *rand.Rand
	left   map[Kind][]*Mutant
}

func newDraws(seed uint64, folder string, all []*Mutant) *draws {
	h := fnv.New64a()
	_, _ = h.Write([]byte(folder)) // a hash takes everything
	d := &draws{random: rand.New(rand.NewPCG(seed, h.Sum64())), left: map[Kind][]*Mutant{}}
	for _, m := range all {
		d.left[m.Kind] = append(d.left[m.Kind], m)
	}
	return d
}

// next draws a mutant; nil if there are no more.
func (d *draws) next() *Mutant {
	var some []Kind
	for _, k := range kinds {
		if len(d.left[k]) > 0 {
			some = append(some, k)
		}
	}
	if len(some) == 0 {
		return nil
	}
	k := some[d.random.IntN(len(some))]
	i := d.random.IntN(len(d.left[k]))
	m := d.left[k][i]
	d.left[k] = slices.Delete(d.left[k], i, i+1)
	return m
}

// shares divides n over packages in proportion to their sizes, at least one
// each while there is enough, by largest remainders, the first of equals.
func shares(n int, sizes []int) []int {
	total := 0
	for _, size := range sizes {
		total += size
	}
	out := make([]int, len(sizes))
	if total == 0 {
		return out
	}
	type rest struct{ index, remainder int }
	var rests []rest
	left := n
	for i, size := range sizes {
		out[i] = min(n*size/total, size)
		if out[i] == 0 && size > 0 && left > 0 {
			out[i] = 1
		}
		left -= out[i]
		rests = append(rests, rest{i, n * size % total})
	}
	slices.SortStableFunc(rests, func(a, b rest) int { return b.remainder - a.remainder })
	for _, r := range rests {
		if left > 0 && out[r.index] < sizes[r.index] {
			out[r.index]++
			left--
		}
	}
	return out
}

// compiles tells whether a mutant passes the type checker. The compiler has the
// last word, but this is a hundred times faster.
func compiles(module *source.Module, m *Mutant) bool {
	p, err := module.Package(m.Folder())
	if err != nil {
		return false
	}
	src := m.Source()
	syntax, err := parser.ParseFile(module.Fset, m.File.Name, src, parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	files := slices.Clone(p.Files)
	files[slices.Index(files, m.File)] = &source.File{Name: m.File.Name, Syntax: syntax, Source: src}
	_, err = module.Check(m.Folder(), files)
	return err == nil
}
