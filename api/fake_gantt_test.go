package api_test

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// pictured is what of the fake is seen in pictures.
type pictured struct {
	picture   *service.Picture // used instead of what was promised, if not nil
	occupied  []service.Occupied
	generates uint64 // added to the generation
}

func (f *fake) Gantt(_ context.Context, by service.Principal, pool berth.ResourceID) (service.Picture, error) {
	defer f.lock()()
	if err := f.knows(by, pool); err != nil {
		return service.Picture{}, err
	}
	if f.picture != nil {
		return *f.picture, f.fails
	}
	p := service.Picture{PEs: f.size, Generation: f.generation(), Event: 77, Pages: make([][]service.Bar, 1)}
	for i, r := range f.made {
		for _, a := range r.Allotments {
			b := service.Bar{Start: a.Start, End: a.End, PEs: a.NPE, Number: uint32(i + 1), Class: service.ClassPromise, Flags: service.Provisional}
			if r.Request.User == by.User {
				b.Flags |= service.IsMine
				p.Yours = true
			}
			p.Pages[0] = append(p.Pages[0], b)
		}
	}
	return p, f.fails
}

func (f *fake) generation() uint64 { return f.generates + uint64(len(f.notices)) }

func (f *fake) GanttGeneration(by service.Principal, pool berth.ResourceID) (uint64, error) {
	defer f.lock()()
	return f.generation(), f.knows(by, pool)
}

func (f *fake) Rows(_ context.Context, by service.Principal, pool berth.ResourceID) (service.PoolRows, error) {
	defer f.lock()()
	return service.PoolRows{PEs: f.size, Binding: berth.Late, Rows: []service.Row{{Name: "n1", PEs: 50}, {Name: "n2", First: 50, PEs: 50}}}, f.knows(by, pool)
}

func (f *fake) Named(_ context.Context, by service.Principal, pool berth.ResourceID, text string) (numbers []uint32, err error) {
	defer f.lock()()
	numbers = []uint32{}
	for i, r := range f.made {
		if by.Owns(r.Request.User) && (strings.Contains(r.Request.User, text) || strings.Contains(r.Request.Name, text)) {
			numbers = append(numbers, uint32(i+1))
		}
	}
	return numbers, f.knows(by, pool)
}

// knows returns the error for a pool that does not exist or that the user may not see.
func (f *fake) knows(by service.Principal, pool berth.ResourceID) error {
	if pool.Site != "cm5" || !by.Sites.Has("cm5") {
		return berth.Errorf(berth.NotFound, "site", "no site %q", pool.Site)
	}
	if pool.Name != "batch" {
		return berth.Errorf(berth.NotFound, "pool", "no pool %q", pool.Name)
	}
	return f.fails
}

func (f *fake) Spans(ctx context.Context, by service.Principal, name string, number uint32) ([]service.Span, error) {
	spans, err := f.Occupation(ctx, by, name, 0, berth.Forever, service.Mark{Start: -1}, 1000)
	spans = slices.DeleteFunc(spans, func(s service.Span) bool { return s.Mark.Number != uint64(number) })
	if err == nil && len(spans) == 0 {
		err = berth.Errorf(berth.NotFound, "number", "%d: nothing of that number is remembered", number)
	}
	return spans, err
}

func (f *fake) Occupied(ctx context.Context, by service.Principal) iter.Seq2[service.Occupied, error] {
	return func(yield func(service.Occupied, error) bool) {
		f.mu.Lock()
		list := slices.Clone(f.occupied)
		f.mu.Unlock()
		for _, o := range list {
			if by.Sites.Has(o.Site) && !yield(o, nil) {
				return
			}
		}
		<-ctx.Done()
	}
}
