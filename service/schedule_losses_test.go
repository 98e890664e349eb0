package service_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/internal/effort"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// schedule returns the schedule of the journal as it is now, which has to be valid.
func (w *harbour) schedule(when string) []berth.Line {
	w.t.Helper()
	lines, err := service.Schedule(w.t.Context(), w.store)
	if err != nil {
		w.t.Fatal(when, err)
	}
	var file bytes.Buffer
	for i := range lines {
		if err := json.NewEncoder(&file).Encode(&lines[i]); err != nil {
			w.t.Fatal(when, err)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	report, err := check.File(bytes.NewReader(file.Bytes()), "journal", check.Against(w.options.Config.Sites, 0))
	if err != nil || !report.Valid() {
		w.t.Fatalf("%s, at %d: %+v, %v:\n%s", when, w.now(), report, err, file.String())
	}
	return lines
}

// maintain announces maintenance of nodes, all for none.
func (w *harbour) maintain(name string, in, length berth.Duration, nodes ...string) {
	w.t.Helper()
	at := berth.Interval{Start: w.now().Add(in), End: w.now().Add(in + length)}
	if _, _, err := w.host.AddMaintenance(w.t.Context(), root, service.Maintenance{Name: name, Site: "harbour", Nodes: nodes, Times: []berth.Interval{at}}, false); err != nil {
		w.t.Fatal(err)
	}
}

func (w *harbour) callOff(name string) {
	w.t.Helper()
	if err := w.host.RemoveMaintenance(w.t.Context(), root, name, 0); err != nil {
		w.t.Fatal(err)
	}
}

func (w *harbour) compact() {
	w.t.Helper()
	if _, err := w.host.Compact(w.t.Context(), root, 0); err != nil {
		w.t.Fatal(err)
	}
}

// lineOf returns the line of something.
func lineOf(t *testing.T, lines []berth.Line, id string) *berth.Line {
	t.Helper()
	i := slices.IndexFunc(lines, func(l berth.Line) bool { return l.ID == id })
	if i < 0 {
		t.Fatalf("%s has no line", id)
	}
	return &lines[i]
}

// byUnit runs a test where PEs are nodes and bound early, and where they are cores and bound late; node is the PEs of a node.
func byUnit(t *testing.T, test func(t *testing.T, w *harbour, node berth.Count)) {
	for unit, node := range map[site.Unit]berth.Count{site.UnitNode: 1, site.UnitCore: 4} {
		t.Run(string(unit), func(t *testing.T) {
			inHarbour(t, unit, func(t *testing.T, w *harbour) { test(t, w, node) })
		})
	}
}

// A promise that is degraded before its start lacks PEs at its start, because of the outage that takes them later; once that is called off it
// has lost nothing.
func TestScheduleOfAPromiseDegradedBeforeItsStart(t *testing.T) {
	byUnit(t, func(t *testing.T, w *harbour, node berth.Count) {
		const hour = 3600
		w.pass(10)
		w.reserve("r", 4*node, 20*hour, hour)
		start := w.now().Add(20 * hour)
		want := func(when string, npe berth.Count, because bool) {
			t.Helper()
			lines := w.schedule(when)
			r := lineOf(t, lines, "r")
			switch {
			case r.NPE != 4*node:
				t.Errorf("%s: %d PEs were promised, want %d", when, r.NPE, 4*node)
			case npe == 4*node && len(r.Stretches) > 0, npe < 4*node && len(r.Stretches) == 0:
				t.Errorf("%s: its stretches are %+v, want %d PEs", when, r.Stretches, npe)
			case npe < 4*node:
				last := r.Stretches[len(r.Stretches)-1]
				if cause := lineOf(t, lines, last.Cause); last.From != start || last.NPE != npe || because != (*cause.Start > start) {
					t.Errorf("%s: its stretches are %+v because of %+v, want %d PEs", when, r.Stretches, cause, npe)
				}
			}
		}
		w.maintain("m", 20*hour+1800, hour, "n1")
		want("maintenance is ahead", 3*node, true)
		w.maintain("other", 20*hour+1900, 2*hour, "n1", "n2")
		want("more is ahead", 2*node, true)
		w.callOff("m")
		want("one is called off", 2*node, true)
		w.callOff("other")
		want("both are called off", 4*node, false)
		w.site.Fail("n3", "broken")
		w.pass(10)
		want("a node is drained", 3*node, false)
		w.site.Repair("n3")
		w.pass(10)
		want("it is resumed", 4*node, false)
		w.maintain("again", 20*hour-1800, hour, "n2")
		want("other maintenance is ahead", 3*node, false)
		for range 4 {
			w.pass(5 * hour)
			want("on the way", 3*node, false)
		}
		for range 6 {
			w.pass(900)
			w.schedule("it runs, and has run")
		}
	})
}

// The cause of a loss is the outage that takes the PEs then, not one that has not begun.
func TestScheduleTellsWhichOutageTookPEs(t *testing.T) {
	byUnit(t, func(t *testing.T, w *harbour, node berth.Count) {
		const day = 86_400
		w.pass(10)
		w.maintain("december", 20*day, 3600)
		w.reserve("runs", 4*node, 0, 3600)
		w.pass(60)
		w.site.Fail("n2", "broken")
		w.pass(60)
		w.maintain("january", 40*day, 3600)
		w.site.Fail("n3", "broken")
		w.pass(60)
		lines := w.schedule("two nodes are down")
		runs := lineOf(t, lines, "runs")
		if len(runs.Stretches) != 2 || runs.Stretches[1].NPE != 2*node {
			t.Fatalf("%+v", runs)
		}
		for _, s := range runs.Stretches {
			if o := lineOf(t, lines, s.Cause); *o.Start != s.From {
				t.Errorf("at %d it loses PEs because of an outage from %d on", s.From, *o.Start)
			}
		}
		w.maintain("soon", 600, 900, "n1", "n2")
		w.maintain("february", 60*day, 3600)
		w.schedule("more are to go")
		w.pass(700)
		runs = lineOf(t, w.schedule("they are gone"), "runs")
		if len(runs.Stretches) != 3 || runs.Stretches[2].NPE != node {
			t.Errorf("%+v", runs)
		}
		w.site.Repair("n2")
		w.pass(2000)
		w.schedule("they are back")
	})
}

// What has begun and is made anew at its site after a loss has PEs to its end there, or not at all: those that another reservation
// is to get before then are lost to that one at once, and the schedule says so.
func TestScheduleOfWhatGivesWayToAnAnnouncedReservation(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.pass(10)
		w.reserve("r", 4, 60, 3600)
		w.pass(70)
		w.book("eve", w.now()+900, w.now()+1200, "n4")
		w.pass(20)
		if lines := w.schedule("another reservation is ahead"); len(lineOf(t, lines, "r").Stretches) != 1 {
			t.Errorf("it loses PEs when that begins: %+v", lines)
		}
		w.site.Fail("n1", "broken")
		w.pass(60)
		lines := w.schedule("it is made anew")
		r := lineOf(t, lines, "r")
		if last := r.Stretches[len(r.Stretches)-1]; last.NPE != 2 || !w.get("r").Sites[0].Made {
			t.Fatalf("%+v", r)
		}
		ahead := 0
		for _, s := range r.Stretches {
			if o := lineOf(t, lines, s.Cause); *o.Start > s.From && o.Arrival <= s.From {
				ahead++
			}
		}
		if ahead != 1 {
			t.Errorf("want one loss because of what is ahead: %+v", r)
		}
		w.pass(1300)
		w.schedule("that is over")
	})
}

// After what was before is dropped, what is degraded lacks PEs from there on, or from its start on, because of outages that take them then or
// that lie ahead.
func TestScheduleOfACompactedJournal(t *testing.T) {
	byUnit(t, func(t *testing.T, w *harbour, node berth.Count) {
		const hour = 3600
		w.pass(10)
		w.reserve("runs", 3*node, 0, 4*hour)
		w.reserve("waits", 4*node, 8*hour, hour)
		w.pass(60)
		w.site.Fail("n1", "broken")
		w.site.Fail("n2", "broken")
		w.pass(60)
		w.maintain("ahead", 8*hour+600, hour, "n1", "n3")
		w.maintain("soon", hour, hour, "n3")
		w.compact()
		w.reserve("late", node, 20*hour, hour)
		lines := w.schedule("compacted with two nodes down and maintenance ahead")
		if r := lineOf(t, lines, "runs"); r.NPE != 3*node || len(r.Stretches) == 0 {
			t.Errorf("%+v", r)
		}
		w.pass(hour - 30)
		w.compact()
		w.reserve("later", node, 20*hour, hour)
		w.schedule("compacted just before an outage begins")
		w.pass(60)
		w.schedule("that has begun")
		w.site.Repair("n1")
		w.pass(600)
		w.schedule("a node is back")
		w.compact()
		w.reserve("last", node, 22*hour, hour)
		w.schedule("compacted again")
		w.site.Repair("n2")
		for range 10 {
			w.pass(hour)
			w.schedule("hours later")
		}
	})
}

var troubles = effort.Flag("service.schedules", 20, "how many random histories whose schedules are checked after each step")

// In random histories of promises, maintenance that is announced and called off, nodes that fail and come back and history that is dropped, the
// schedule of the journal is valid after each step. A failure names the seed.
func TestSchedulesInTrouble(t *testing.T) {
	for seed := range troubles() {
		unit := []site.Unit{site.UnitNode, site.UnitCore}[seed%2]
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			inHarbour(t, unit, func(t *testing.T, w *harbour) {
				p := rand.New(rand.NewPCG(uint64(seed), 1))
				node, n, announced := map[site.Unit]int{site.UnitNode: 1, site.UnitCore: 4}[unit], 0, []string{}
				some := func() (nodes []string) {
					for _, k := range p.Perm(4)[:1+p.IntN(3)] {
						nodes = append(nodes, fmt.Sprint("n", k+1))
					}
					return nodes
				}
				for step := range 40 {
					what := "time passes"
					switch n++; p.IntN(10) {
					case 0, 1, 2:
						ready, length := w.now()+berth.Time(p.IntN(6000)), berth.Duration(300+p.IntN(3000))
						what = fmt.Sprintf("r%d is asked for", n)
						submit(t, w.host, ann, berth.Rigid(fmt.Sprint("r", n), 0, ready, ready.Add(length)+berth.Time(p.IntN(2)*p.IntN(3000)), berth.Count(1+p.IntN(4*node)), length))
					case 3, 4:
						name := fmt.Sprint("m", n)
						announced, what = append(announced, name), "maintenance "+name
						w.maintain(name, berth.Duration(1+p.IntN(5000)), berth.Duration(100+p.IntN(3000)), some()...)
					case 5:
						if len(announced) == 0 {
							continue
						}
						k := p.IntN(len(announced))
						what = "called off " + announced[k]
						var refused *berth.Error // of what is over
						if err := w.host.RemoveMaintenance(t.Context(), root, announced[k], 0); err != nil && (!errors.As(err, &refused) || refused.Code != berth.NotFound) {
							t.Fatal(err)
						}
						announced = slices.Delete(announced, k, k+1)
					case 6:
						what = "nodes fail"
						for _, name := range some() {
							w.site.Fail(name, "broken")
						}
					case 7:
						what = "nodes are back"
						for _, name := range some() {
							w.site.Repair(name)
						}
					case 8:
						if p.IntN(3) == 0 {
							what = "history is dropped"
							w.compact()
						}
					case 9:
						what = "a promise is given back or extended"
						id := fmt.Sprint("r", 1+p.IntN(n))
						if p.IntN(2) == 0 {
							_, _ = w.host.Release(t.Context(), ann, id) // there may be none
						} else {
							_, _ = w.host.Extend(t.Context(), ann, id, w.now()+berth.Time(p.IntN(3000)))
						}
					}
					w.schedule(fmt.Sprintf("step %d: %s", step, what))
					w.pass(p.IntN(600))
					w.schedule(fmt.Sprintf("after step %d", step))
				}
			})
		})
	}
}
