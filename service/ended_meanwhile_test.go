package service_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// drawnEnds returns when the bars of a reservation end in the picture, and what is listed beside it.
func (w *harbour) drawnEnds(by service.Principal, begin berth.Time) (ends []string) {
	w.t.Helper()
	if _, err := w.host.CheckPicture(w.pool()); err != nil {
		w.t.Error(err)
	}
	p, _ := w.picture(by, 0, berth.Forever)
	spans, err := w.host.Occupation(w.t.Context(), by, "harbour", 0, berth.Forever, service.Mark{Start: -1}, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	listed := map[uint32]berth.Time{}
	for _, s := range spans {
		listed[s.Mark.InPictures()] = s.End
	}
	seen := map[uint32]bool{}
	for _, b := range p.Bars {
		if b.Class == service.ClassOutage || seen[b.Number] {
			continue
		}
		seen[b.Number] = true
		if listed[b.Number] != b.End {
			w.t.Errorf("the picture of number %d ends at %d, it is listed to end at %d", b.Number, b.End-begin, listed[b.Number]-begin)
		}
		ends = append(ends, fmt.Sprint(b.Start-begin, "-", b.End-begin))
	}
	return ends
}

// stopped closes the service, lets time pass at the site, and opens it again; then once more
// from a snapshot. What the picture shows is each time the same.
func (w *harbour) stopped(seconds int, show func() []string) []string {
	w.t.Helper()
	var first []string
	for i, s := range []int{seconds, 0} {
		if err := w.host.Close(); err != nil {
			w.t.Fatal(err)
		}
		time.Sleep(time.Duration(s) * time.Second)
		w.site.Advance(w.now())
		w.open()
		w.pass(30)
		if i == 0 {
			first = show()
		} else if again := show(); fmt.Sprint(again) != fmt.Sprint(first) {
			w.t.Errorf("%v, and from a snapshot %v", first, again)
		}
	}
	return first
}

// What ends while the service is stopped ends in the picture when it ended: a hold when it ran
// out, also where it would have begun later, and a promise that is not used when it was to be given up.
func TestWhatEndsWhileStoppedEndsThenInThePicture(t *testing.T) {
	for _, snapshots := range []uint64{1, 1 << 40} {
		inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
			w.options.SnapshotEvery = snapshots
			begin := w.now()
			ask := func(id string, in, hold, unused berth.Duration) {
				t.Helper()
				r := berth.Rigid(id, 0, begin.Add(in), begin.Add(in+5000), 1, 5000)
				r.Hold, r.NoShow = hold, unused
				if a := submit(t, w.host, ann, r); a.Reservation.State == service.Refused {
					t.Fatalf("%s: %+v", id, a)
				}
			}
			ask("held", 0, 200, 0)
			ask("held later", 300, 200, 0)
			ask("not used", 0, 0, 400)
			ask("goes on", 0, 0, 0)
			w.pass(60)
			got := w.stopped(2000, func() []string { return w.drawnEnds(ann.By, begin) })
			if want := "[0-200 0-400 0-5000]"; fmt.Sprint(got) != want {
				t.Errorf("the picture is %v, want %s", got, want)
			}
		})
	}
}

// A job of a watched site that ends while the service is stopped ends in the picture when the
// site says that it ended; one that the site has forgotten by then when the service last knew of it.
func TestWatchedJobsThatEndWhileStopped(t *testing.T) {
	inWatch(t, func(t *testing.T, w *watch) {
		w.open()
		w.at(1)
		told, forgotten := w.submit("ann", 1, 5000), w.submit("bob", 1, 5000)
		w.at(5)
		w.site.Begin(told, 400, on("n1")...)
		w.site.Begin(forgotten, 500, on("n2")...)
		w.at(20)
		last := w.submit("eve", 1, 50) // something to put on record, which is when the service last knew
		w.at(30)
		w.site.Begin(last, 10, on("n3")...)
		w.at(100)
		if err := w.host.Close(); err != nil {
			t.Fatal(err)
		}
		w.at(2000)
		w.site.Forget(forgotten)
		w.open()
		w.at(2020)
		ends := w.drawnEnds(root.By, w.begun)
		if want := "[5-405 5-42 21-31]"; fmt.Sprint(ends) != want {
			t.Errorf("the picture is %v, want %s: 400 s from its start on, until the last record, and as before", ends, want)
		}
		if end := w.job(forgotten).End - w.begun; end != 42 {
			t.Errorf("what was forgotten ended at %d, want 42, when the service last knew of it", end)
		}
	})
}

// A task of a workflow that ends while the service is stopped gives up its PEs in the picture
// when the site says that it ended.
func TestTasksThatEndWhileStopped(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		begin := w.now()
		w.outcome = func(site.Task) (berth.Duration, site.Result) {
			return 300, site.Result{Ending: site.Completed}
		}
		_, err := w.host.SubmitWorkflow(t.Context(), ann, berth.Workflow{
			ID: "flow", Deadline: begin.Add(50_000), Algorithm: "bd-cpar", Repair: berth.RepairBoth,
			Tasks: []berth.WorkflowTask{{ID: "a", Seconds: 4000, Alpha: 1, Work: berth.Work{Script: "#!/bin/sh\n", Dir: "/data"}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.pass(60)
		got := w.stopped(2000, func() []string { return w.drawnEnds(ann.By, begin) })
		if len(got) != 1 || got[0] != "0-300" && got[0] != "1-301" {
			t.Errorf("the picture is %v; the task ended after 300 s", got)
		}
	})
}
