package service_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// What a site has done is settled, and how tasks ended is reported, in turns of the loop that are short
// for others. Here each takes a turn of its own, and the service ends between any two of them.

// kinds returns the number of each record that has a change of a kind, once for each such change.
func (w *harbour) kinds(kind change.Kind) (numbers []uint64) {
	w.t.Helper()
	var decoder record.Decoder
	for rec, err := range w.store.Read(w.t.Context(), 1) {
		if err != nil {
			w.t.Fatal(err)
		}
		changes, err := decoder.Changes(rec.Changes)
		if err != nil {
			w.t.Fatal(err)
		}
		for i := range changes {
			if changes[i].Kind == kind {
				numbers = append(numbers, rec.Number)
			}
		}
	}
	return numbers
}

// endedBetween ends the service behind a turn, and begins it again: after it was stopped, or as it is when
// it was killed there, without what it has decided since.
func (w *harbour) endedBetween(at int, killed bool, begin func(between func(h *service.Host, turn int))) {
	w.t.Helper()
	var last atomic.Uint64
	begin(func(h *service.Host, turn int) {
		if turn == at && last.Load() == 0 {
			last.Store(h.StopHere())
		}
	})
	for range 60 {
		if w.pass(1); last.Load() > 0 {
			break
		}
	}
	if err := w.host.Close(); err != nil || last.Load() == 0 {
		w.t.Fatalf("it ended behind %d: %v", last.Load(), err)
	}
	if killed {
		w.keepUpTo(last.Load())
	}
	w.open()
}

// keepUpTo has a journal that ends with a record in place of the one there is.
func (w *harbour) keepUpTo(number uint64) {
	w.t.Helper()
	left, err := sqlite.Open(filepath.Join(w.t.TempDir(), "left"), sqlite.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	var records []journal.Record
	for rec, err := range w.store.Read(w.t.Context(), 1) {
		if err != nil {
			w.t.Fatal(err)
		}
		if rec.Number <= number {
			records = append(records, rec)
		}
	}
	if err := errors.Join(left.Append(w.t.Context(), records...), w.store.Close()); err != nil {
		w.t.Fatal(err)
	}
	w.store, w.options.Journal = left, left
}

const manyTurns = 8

// oneByOne has the service begin again, with such turns.
func (w *harbour) oneByOne(between func(h *service.Host, turn int)) {
	w.t.Helper()
	if err := w.host.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.options.OneByOne(between)
	w.open()
	w.pass(6)
}

// promiseMany has promises made whose effects are settled one by one, in one round that has not begun.
func (w *harbour) promiseMany(between func(h *service.Host, turn int)) {
	w.t.Helper()
	w.oneByOne(between)
	err := w.host.Here(w.t.Context(), func() error {
		var all error
		for i := range manyTurns {
			all = errors.Join(all, w.promiseHere(w.host, fmt.Sprint("r", i)))
		}
		return all
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// promiseHere promises a core in a turn of the loop.
func (w *harbour) promiseHere(h *service.Host, id string) error {
	r := berth.Rigid(id, 0, w.now()+300, w.now()+5300, 1, 5000)
	r.User = "ann"
	return h.PromiseHere(r)
}

// settledAll looks whether all is done a round after the service began again, each effect once.
func (w *harbour) settledAll(want int) {
	w.t.Helper()
	w.pass(6)
	if err := w.inLine(); err != nil {
		w.t.Error(err)
	}
	if n := len(w.kinds(change.Settled)); n != want {
		w.t.Errorf("%d effects were settled, want %d, each once", n, want)
	}
}

func TestAServiceEndsBetweenEffectsThatAreSettled(t *testing.T) {
	for _, killed := range []bool{true, false} {
		for at := 1; at < manyTurns; at++ {
			inHarbour(t, site.UnitCore, func(t *testing.T, w *harbour) {
				w.endedBetween(at, killed, w.promiseMany)
				settled := w.kinds(change.Settled)
				if len(slices.Compact(slices.Clone(settled))) != len(settled) || killed && len(settled) < at {
					t.Fatalf("effects were settled with the records %v, want each with its own, and %d", settled, at)
				}
				w.settledAll(manyTurns)
			})
		}
	}
}

// What is promised while effects are settled is not at the site, and waits for a round of its own.
func TestAPromiseBetweenEffectsThatAreSettledIsMade(t *testing.T) {
	inHarbour(t, site.UnitCore, func(t *testing.T, w *harbour) {
		w.promiseMany(func(h *service.Host, turn int) {
			switch turn {
			case 3:
				if err := w.promiseHere(h, "between"); err != nil {
					t.Error(err)
				}
			case manyTurns + 1: // which settled it
				if state, err := w.site.Observe(t.Context()); err != nil || len(state.Ours) != manyTurns+1 {
					t.Errorf("it is settled, and not at the site: %v", err)
				}
			}
		})
		w.settledAll(manyTurns + 1)
		w.settledAll(manyTurns + 1)
	})
}

// fan is a workflow of tasks that end at once.
func fan(id string) berth.Workflow {
	w := berth.Workflow{ID: id, Deadline: berth.Forever, Algorithm: berth.BestAlgorithm, Repair: berth.RepairBoth}
	for i := range manyTurns {
		w.Tasks = append(w.Tasks, berth.WorkflowTask{ID: fmt.Sprint("t", i), Seconds: 1000, Most: 1, Work: berth.Work{Command: []string{"true"}, Dir: "/"}})
	}
	return w
}

func TestAServiceEndsBetweenReportsOfTasks(t *testing.T) {
	for _, killed := range []bool{true, false} {
		for at := 1; at < manyTurns; at++ {
			inHarbour(t, site.UnitCore, func(t *testing.T, w *harbour) {
				ran := map[string]int{}
				w.outcome = func(task site.Task) (berth.Duration, site.Result) {
					ran[task.Name]++
					return 40, site.Result{Ending: site.Completed}
				}
				over := func() int { return len(w.kinds(change.TaskOver)) }
				var looks []int64 // before each turn
				w.endedBetween(at, killed, func(between func(h *service.Host, turn int)) {
					var of *service.Host // the host that looked
					seen := 0
					w.oneByOne(func(h *service.Host, _ int) {
						if of != h {
							of, looks, seen = h, nil, 0
						}
						// Other turns are of effects, and only they see all reported: no turn of reports follows the last one.
						if over := h.ReportedHere("w"); over > seen && over < manyTurns {
							seen = over
							looks = append(looks, w.looks.Load())
							between(h, over)
						}
					})
					if _, err := w.host.SubmitWorkflow(t.Context(), ann, fan("w")); err != nil {
						t.Fatal(err)
					}
				})
				if w.pass(6); over() != manyTurns {
					t.Errorf("a round later %d tasks are reported, want %d", over(), manyTurns)
				}
				if len(slices.Compact(slices.Clone(looks))) > 1 || killed && len(looks) < manyTurns-1-at {
					t.Errorf("killed %t behind %d: after the restart it took looks %v at the site to report them, want one", killed, at, looks)
				}
				f, err := w.host.Workflow(t.Context(), ann.By, "w")
				if err != nil || f.State != service.FlowSucceeded {
					t.Errorf("it is %s, %q, %v", f.State, f.Why, err)
				}
				if len(ran) != manyTurns {
					t.Errorf("%d tasks ran", len(ran))
				}
				for name, times := range ran {
					if times != 1 {
						t.Errorf("%s ran %d times", name, times)
					}
				}
			})
		}
	}
}
