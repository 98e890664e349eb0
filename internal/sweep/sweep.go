// Package sweep takes a long list of independent measurements: on all cores,
// kept in a file as they come, gone on with after an interruption, divided
// among machines and put together again. It knows nothing of what is measured.
package sweep

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/berth-hpc/berth"
)

// Cell is one measurement. Run depends on nothing but the cell itself, so that
// it gives the same values in whatever order, company and place it is taken.
type Cell struct {
	Key string // unique in its plan; what it is about, and with which seed
	// Run returns the values, in an order that the plan's maker knows; NaN is a
	// value that there is none of.
	Run func(ctx context.Context) ([]float64, error)
}

// Setting is something that decides what the cells measure.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Plan is what is to be measured.
type Plan struct {
	// Name says of what kind the measurements are, and Version is raised
	// whenever the same settings would give other values.
	Name    string
	Version int
	// Settings are told apart by their names. Measurements of other settings
	// do not mix.
	Settings []Setting
	Cells    []Cell
	// Source is the file that the settings were read from, for messages; empty
	// where the caller chose them.
	Source string
}

// Options say where a plan is measured. The zero value measures all of it in
// this process and keeps nothing.
type Options struct {
	// File is where finished measurements are kept as they come; what it holds
	// already is not measured again. Empty is nowhere.
	File string
	// From are files of finished measurements. With them nothing is measured:
	// together they must hold all of the plan.
	From []string
	// Shard is the part of the plan that is measured.
	Shard Shard
	// Begin, if not nil, hears before the first is measured which cells are still
	// to be, as indices, in the order in which they are begun.
	Begin func(todo []int)
	// Progress, if not nil, hears how many of the cells that were still to be
	// measured are done. It is called by several goroutines at a time.
	Progress func(done, total int)
}

// Results are the values of the cells that were measured, by key.
type Results struct {
	plan    *Plan
	writing sync.Mutex // of values and the file
	values  map[string][]float64
}

// Complete reports whether every cell of the plan was measured.
func (r *Results) Complete() bool { return len(r.values) == len(r.plan.Cells) }

// Len returns the number of cells measured.
func (r *Results) Len() int { return len(r.values) }

// Of returns the values of a cell, nil if it was not measured. The slice must
// not be changed.
func (r *Results) Of(key string) []float64 { return r.values[key] }

// validate finds mistakes of the plan's maker and of who chose the options.
func (p *Plan) validate(o *Options) error {
	if len(p.Cells) == 0 {
		return berth.Errorf(berth.Invalid, "sweep", "%s has nothing to measure", p.Name)
	}
	seen := make(map[string]bool, len(p.Cells))
	for i := range p.Cells {
		if seen[p.Cells[i].Key] {
			panic("sweep: two cells " + p.Cells[i].Key)
		}
		seen[p.Cells[i].Key] = true
	}
	switch err := o.Shard.validate(); {
	case err != nil:
		return err
	case len(o.From) > 0 && o.File != "":
		return berth.Errorf(berth.Invalid, "merge", "nothing is measured with it, so there is nothing to keep in %s", o.File)
	case len(o.From) > 0 && !o.Shard.whole():
		return berth.Errorf(berth.Invalid, "merge", "it puts shards together; want no shard besides")
	case o.Shard.N > len(p.Cells):
		return berth.Errorf(berth.Invalid, "shard", "%s; there are only %d measurements to divide", o.Shard, len(p.Cells))
	case !o.Shard.whole() && o.File == "":
		return berth.Errorf(berth.Invalid, "shard", "%s measures a part; want --cells FILE too, which keeps it", o.Shard)
	}
	return nil
}

// Run measures the plan's cells, or the part of them that the options name, and
// returns what is known of it then. When the context ends, it returns its error,
// and what was finished is in the file. Errors of code Invalid concern the
// options or what the files hold, others the file system or a cell. Cost: that
// of the cells.
func Run(ctx context.Context, plan *Plan, o Options) (*Results, error) {
	if err := plan.validate(&o); err != nil {
		return nil, err
	}
	if len(o.From) > 0 {
		return merge(plan, o.From)
	}
	results := &Results{plan: plan, values: make(map[string][]float64, len(plan.Cells))}
	var file *keeper
	if o.File != "" {
		var err error
		if file, err = open(plan, o.File, results.values); err != nil {
			return nil, err
		}
	}
	var todo []int
	for i := range plan.Cells {
		if o.Shard.has(i) && results.values[plan.Cells[i].Key] == nil {
			todo = append(todo, i)
		}
	}
	if o.Begin != nil {
		o.Begin(todo)
	}
	err := each(ctx, todo, func(ctx context.Context, i int) error {
		values, err := plan.Cells[i].Run(ctx)
		if err != nil {
			return err
		}
		return results.keep(file, plan.Cells[i].Key, values)
	}, o.Progress)
	if file != nil {
		if closing := file.close(); err == nil {
			err = closing
		}
	}
	if err != nil {
		return nil, err
	}
	return results, nil
}

// keep takes in what was measured, in the file first.
func (r *Results) keep(file *keeper, key string, values []float64) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	if file != nil {
		if err := file.add(key, values); err != nil {
			return err
		}
	}
	r.values[key] = values
	return nil
}

// One measures a single cell of a plan and returns its values. An unknown key
// is an error of code NotFound.
func One(ctx context.Context, plan *Plan, key string) ([]float64, error) {
	i := slices.IndexFunc(plan.Cells, func(c Cell) bool { return c.Key == key })
	if i < 0 {
		if len(plan.Cells) == 0 {
			return nil, berth.Errorf(berth.Invalid, "sweep", "%s has nothing to measure", plan.Name)
		}
		return nil, berth.Errorf(berth.NotFound, "only", "no measurement %q; there are %d from %s to %s",
			key, len(plan.Cells), plan.Cells[0].Key, plan.Cells[len(plan.Cells)-1].Key)
	}
	return plan.Cells[i].Run(ctx)
}

// each calls do for every element of a list, on all cores. The first failure
// ends everything and is returned; so does the context.
func each(ctx context.Context, list []int, do func(ctx context.Context, i int) error, progress func(done, total int)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, done atomic.Int64
	var workers sync.WaitGroup
	work := func() {
		for ctx.Err() == nil {
			n := int(next.Add(1)) - 1
			if n >= len(list) {
				return
			}
			if err := do(ctx, list[n]); err != nil {
				cancel(err)
				return
			}
			if finished := int(done.Add(1)); progress != nil {
				progress(finished, len(list))
			}
		}
	}
	for range min(runtime.GOMAXPROCS(0), len(list)) {
		workers.Go(work)
	}
	workers.Wait()
	return context.Cause(ctx)
}
