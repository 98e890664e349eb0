package api

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// maxKept bounds the answers that are kept, in bytes, with what each is made of: the cells
// of a large pool with its bars take a tenth of it.
const maxKept = 96 << 20

// subject is what an answer shows. Answers without bars of who asks are the same for all.
type subject struct {
	id     berth.ResourceID
	canvas canvas
	most   int
	user   string
	filter barFilter
}

// gallery keeps the latest answer about each subject, so that those who look at the same
// share the work, and so that only what has changed is drawn again. The zero value is empty.
type gallery struct {
	mu    sync.Mutex
	of    map[subject]*sheet
	size  int
	asked uint64 // counts
}

// sheet is an answer, and what it takes to draw the next one about the same.
type sheet struct {
	mu sync.Mutex // one draws, the others wait for it

	generation uint64
	plain      []byte
	packed     []byte
	pages      [][]service.Bar // the pages that the cells were drawn from
	cells      []byte          // a part of plain; nil if it has bars
	bands      [][]byte        // cells, packed
	sieved     sieved          // if some bars are left out

	last uint64 // when it was asked for; of the gallery
	size int    // as the gallery counts it
}

// sheet returns what is kept about a subject.
func (g *gallery) sheet(s *subject) *sheet {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of == nil {
		g.of = map[subject]*sheet{}
	}
	k := g.of[*s]
	if k == nil {
		k = &sheet{}
		g.of[*s] = k
	}
	g.asked++
	k.last = g.asked
	return k
}

// keep counts a sheet with its present size, and drops those that were not asked for longest.
func (g *gallery) keep(s *subject, k *sheet, size int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.of[*s] != k {
		return // dropped meanwhile
	}
	g.size += size - k.size
	k.size = size
	for g.size > maxKept && len(g.of) > 1 {
		var oldest subject
		last := uint64(1<<64 - 1)
		for s, k := range g.of {
			if k.last < last {
				oldest, last = s, k.last
			}
		}
		g.size -= g.of[oldest].size
		delete(g.of, oldest)
	}
}

// answer returns the answer that shows a picture or a later one, packed if that is wanted and
// worth it.
func (g *gallery) answer(s *subject, through *sieve, p *service.Picture, pack bool) (data []byte, packed bool, err error) {
	k := g.sheet(s)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.plain == nil || k.generation < p.Generation || !k.sieved.sieve.stripes.Equal(through.stripes) || !slices.Equal(k.sieved.sieve.numbers, through.numbers) {
		k.draw(s, through, p)
	}
	if pack = pack && len(k.plain) >= worthPacking; pack && k.packed == nil {
		if k.packed, err = k.pack(&s.canvas); err != nil {
			return nil, false, err
		}
	}
	size := 2*len(k.plain) + len(k.packed)
	for _, pages := range [][][]service.Bar{k.pages, k.sieved.from} {
		for _, page := range pages {
			size += 40 * len(page)
		}
	}
	g.keep(s, k, size)
	if pack {
		return k.packed, true, nil
	}
	return k.plain, false, nil
}

const headerSize = 64

// draw draws of a picture what a sieve shows. Only rows that have changed since the last one
// get new cells. What is free does not depend on what is shown.
func (k *sheet) draw(s *subject, through *sieve, whole *service.Picture) {
	v, p := &s.canvas, whole
	if !through.all() {
		p = k.sieved.picture(whole, through)
	}
	n := v.count(p, s.most)
	kind, body := uint32(1), 22*n
	if n > s.most {
		kind, n, body = 2, 0, v.width*v.height
	}
	padded := (body + 3) / 4 * 4
	out := make([]byte, headerSize+padded+4*v.width)
	order := binary.LittleEndian
	copy(out, "BGT1")
	order.PutUint32(out[4:], kind)
	order.PutUint64(out[8:], uint64(v.t0))
	for i, n := range []int64{v.step, int64(v.width), int64(v.height), int64(n), v.lo, v.group} {
		order.PutUint32(out[16+4*i:], uint32(n))
	}
	order.PutUint64(out[40:], p.Generation)
	order.PutUint64(out[48:], p.Event)
	order.PutUint32(out[56:], uint32(p.PEs))
	var strip sync.WaitGroup
	strip.Go(func() { v.strip(out[headerSize+padded:], whole) })
	was := sheet{pages: k.pages, cells: k.cells, bands: k.bands}
	k.plain, k.packed, k.generation, k.pages, k.cells, k.bands = out, nil, p.Generation, nil, nil, nil
	if kind == 1 {
		v.columns(out[headerSize:], p, n)
	} else {
		k.cells, k.pages = out[headerSize:headerSize+body], p.Pages
		k.bands = make([][]byte, (v.height+bandHeight-1)/bandHeight)
		wanted := make([]bool, v.height)
		if was.cells != nil {
			copy(k.cells, was.cells)
			v.differ(was.pages, p.Pages, wanted)
			copy(k.bands, was.bands)
		} else {
			for g := range wanted {
				wanted[g] = true
			}
		}
		for g, is := range wanted {
			if is {
				k.bands[g/bandHeight] = nil
			}
		}
		v.cells(k.cells, p, wanted)
	}
	strip.Wait()
}

// bandHeight is how many groups of cells are packed together: as few as pack well, since one
// that changes has all of them packed again.
const bandHeight = 32

// pack packs the answer. Bands that have not changed are packed already.
func (k *sheet) pack(v *canvas) ([]byte, error) {
	if k.cells == nil {
		return packed(k.plain, nil)
	}
	sections := []section{{data: k.plain[:headerSize]}}
	for i := range k.bands {
		data := k.cells[i*bandHeight*v.width : min((i+1)*bandHeight, v.height)*v.width]
		sections = append(sections, section{data, k.bands[i]})
	}
	sections = append(sections, section{data: k.plain[headerSize+len(k.cells):]})
	out, err := packed(k.plain, sections)
	for i := range k.bands {
		k.bands[i] = sections[1+i].packed
	}
	return out, err
}
