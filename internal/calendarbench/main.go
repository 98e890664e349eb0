// Command calendarbench measures the structures of package calendar beside one
// another, on the workloads by which availability structures are compared:
// admissions per second of CPU time on one core (admit = find + add), filling
// an empty calendar and in the steady state, with memory per live booking and
// the sum of all starts as the proof that the work is the same. It prints one
// table, which -record puts into docs/performance too; make bench-calendar runs it.
package main

import (
	"container/heap"
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/calendar/calendartest"
	"github.com/berth-hpc/berth/internal/cputime"
	"github.com/berth-hpc/berth/internal/hugepages"
	"github.com/berth-hpc/berth/internal/performance"
)

func main() {
	only := flag.String("row", "", "only rows whose name contains this")
	patience := flag.Duration("cap", 5*time.Second, "how long the plain form may work at each half of a row")
	record := flag.Bool("record", false, "put the rows into docs/performance of the module in which it runs")
	flag.Parse()
	hugepages.Advise(1 << 30) // as berth does
	runtime.GOMAXPROCS(1)
	if err := table(*only, *patience, *record); err != nil {
		fmt.Fprintln(os.Stderr, "calendarbench:", err)
		os.Exit(1)
	}
}

func table(only string, patience time.Duration, record bool) error {
	var cells [][]string
	fmt.Printf("%s, %s, CPU time of the whole process, GOMAXPROCS=1\n", runtime.Version(), cputime.Processor())
	fmt.Printf("%-58s %-6s %11s %11s %11s %8s  %s\n", "row", "form", "goal/s", "fill/s", "steady/s", "B/live", "sum of starts")
	for _, r := range rows() {
		if !strings.Contains(r.name(), only) {
			continue
		}
		of := map[string]*figures{}
		for _, form := range calendar.Forms {
			limit := time.Duration(0)
			if form.Name == "plain" {
				limit = patience
			}
			got, err := measure(&r, form, limit)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", r.name(), form.Name, err)
			}
			got.print(&r, form.Name)
			of[form.Name] = got
		}
		cells = append(cells, r.cells(of["fast"], of["plain"]))
	}
	if record {
		if err := performance.Put(context.Background(), ".", &recorded, cells); err != nil {
			return err
		}
	}
	if strings.Contains("draft", only) {
		for _, form := range calendar.Forms {
			if err := drafts(form); err != nil {
				return err
			}
		}
	}
	return nil
}

// recorded is the table of docs/performance.md.
var recorded = performance.Table{
	Name: "calendars", Packages: []string{"calendar", "policy"},
	Columns: []string{"row, live bookings", "goal /s", "fill /s", "steady /s", "bytes a booking", "plain, fill /s", "sum of starts"},
}

// figures are what was measured of one row on one form.
type figures struct {
	fill, steady float64 // admissions per second; steady is 0 where there is none
	perLive      float64 // bytes
	starts       int64
	done         int           // requests admitted while filling
	within       time.Duration // 0 if all of them were
}

// measure runs one row on one form. A limit above 0 ends
// each half when it has taken that long.
func measure(r *row, form calendar.Form, limit time.Duration) (*figures, error) {
	before := heapInUse()
	u := r.begin(form)
	overhead := heapInUse() - before // of the requests
	stream := &running{}
	var f figures

	began := cputime.Used()
	for ; f.done < r.workload.Requests; f.done++ {
		if limit > 0 && f.done%64 == 0 && cputime.Used()-began > limit {
			f.within = limit
			break
		}
		if r.workload.Mode == calendartest.Stream {
			if err := stream.giveBack(u); err != nil {
				return nil, err
			}
		}
		if err := u.admit(); err != nil {
			return nil, err
		}
		if r.workload.Mode == calendartest.Stream {
			heap.Push(stream, ending{u.live[f.done].End, f.done})
		}
	}
	f.fill = float64(u.admitted) / (cputime.Used() - began).Seconds()
	f.starts = u.starts
	live := u.admitted - stream.over
	f.perLive = float64(heapInUse()-before-overhead) / float64(live)
	runtime.KeepAlive(u)

	if r.workload.Mode == calendartest.Stream || f.within > 0 {
		return &f, nil
	}
	admitted, next := u.admitted, r.leaves()
	began = cputime.Used()
	for i := range r.steps {
		if limit > 0 && i%64 == 0 && cputime.Used()-began > limit {
			break
		}
		if err := u.drop(next(len(u.live))); err != nil {
			return nil, err
		}
		if err := u.admit(); err != nil {
			return nil, err
		}
	}
	f.steady = float64(u.admitted-admitted) / (cputime.Used() - began).Seconds()
	return &f, nil
}

// print prints the line of a row on a form.
func (f *figures) print(r *row, form string) {
	goal, steady, note := "-", "-", ""
	if r.goal > 0 {
		goal = fmt.Sprintf("%.0f", r.goal)
	}
	if f.steady > 0 {
		steady = fmt.Sprintf("%.0f", f.steady)
	}
	if f.within > 0 {
		note = fmt.Sprintf("  (%d of %d in %s)", f.done, r.workload.Requests, f.within)
	}
	fmt.Printf("%-58s %-6s %11s %11.0f %11s %8.0f  %d%s\n", r.name(), form, goal, f.fill, steady, f.perLive, f.starts, note)
}

// cells returns the row as the page shows it.
func (r *row) cells(fast, plain *figures) []string {
	goal, steady, then := "", "", thousands(plain.fill)
	if r.goal > 0 {
		goal = thousands(r.goal)
	}
	if fast.steady > 0 {
		steady = thousands(fast.steady)
	}
	if plain.within > 0 {
		then += fmt.Sprintf(" (first %s)", thousands(float64(plain.done)))
	}
	return []string{r.name(), goal, thousands(fast.fill), steady, fmt.Sprintf("%.0f", fast.perLive), then, fmt.Sprint(fast.starts)}
}

// thousands writes a number, rounded, with a comma between groups of three digits.
func thousands(x float64) string {
	digits := fmt.Sprintf("%.0f", x)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// drafts times a draft of a hundred bookings, undone, on a calendar with a
// million live bookings.
func drafts(form calendar.Form) error {
	r := row{berth.Late, workloadOf(calendartest.Advance, small, 8, .7, allK*allK), "first-fit", 0, 0, 200, false}
	for _, binding := range []berth.Binding{berth.Late, berth.Early} {
		if form.Name == "plain" {
			r.workload.Requests = 10 * allK
		}
		r.binding = binding
		u := r.begin(form)
		for range r.workload.Requests {
			if err := u.admit(); err != nil {
				return err
			}
		}
		id := berth.PoolID("site", "pool")
		began := cputime.Used()
		draft := calendar.NewDraft(map[berth.ResourceID]calendar.Calendar{id: u.calendar})
		bare := draft.Mark()
		for i := range 100 {
			q := u.requests[r.workload.Requests+i]
			fit, ok := calendar.Earliest(u.calendar, calendar.Query{Ready: q.Ready, Deadline: berth.Forever, Duration: q.Duration, NPE: q.NPE})
			if !ok {
				return fmt.Errorf("no start for %+v", q)
			}
			if err := draft.Book(id, calendar.Block{Start: fit.Start, End: fit.End, NPE: q.NPE, PEs: fit.PEs}); err != nil {
				return err
			}
		}
		draft.Undo(bare)
		fmt.Printf("%-58s %-6s %s (goal 1ms)\n",
			fmt.Sprintf("%s draft of 100, undone, at %d live", binding, r.workload.Requests), form.Name, cputime.Used()-began)
	}
	return nil
}

// running is the heap of what is booked in mode Stream, by end.
type running struct {
	list []ending
	over int
}

type ending struct {
	end berth.Time
	i   int
}

func (h *running) giveBack(u *run) error {
	ready := u.requests[len(u.live)].Ready
	for len(h.list) > 0 && h.list[0].end <= ready {
		h.over++
		if err := u.drop(heap.Pop(h).(ending).i); err != nil {
			return err
		}
	}
	return nil
}

func (h *running) Len() int           { return len(h.list) }
func (h *running) Less(i, j int) bool { return h.list[i].end < h.list[j].end }
func (h *running) Swap(i, j int)      { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *running) Push(x any)         { h.list = append(h.list, x.(ending)) }
func (h *running) Pop() any {
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return last
}

// heapInUse returns the bytes that live objects take.
func heapInUse() int64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
