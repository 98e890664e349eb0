package service_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

// What a journal holds is a valid schedule: what was asked for is in it, and a
// reservation that was extended is as long as it is now, with its deadline.
func TestScheduleOfAJournal(t *testing.T) {
	sites := []berth.Site{{
		Name: "site", Partitions: []berth.Partition{{Name: "debug", Pool: "p", MaxDuration: 300}},
		Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Early, Speed: 2000}},
		Link:  berth.Link{KilobytesPerSecond: 1000},
	}}
	dir, c := t.TempDir(), &clock{}
	c.seconds.Store(1000)
	h := start(t, dir, engine.Config{Sites: sites, Staging: engine.StagingHold}, c)
	asks := berth.Rigid("", 0, 1100, 1300, 2, 200)
	asks.Site, asks.Pool, asks.Parts[0].Eligible, asks.Partition = "site", "p", berth.PEsOf(1, 2, 3), "debug"
	asks.StorageMB = 10
	first := submit(t, h, ann, asks).Reservation
	if got := first.Allotments[0]; got.Start != 1100 || got.End != 1210 {
		t.Fatalf("it is in [%d,%d)", got.Start, got.End)
	}
	if a, err := h.Extend(t.Context(), ann, first.ID, 1350); err != nil || a.Reservation.Allotments[0].End != 1350 {
		t.Fatal(a, err)
	}
	second := submit(t, h, ann, berth.Rigid("", 0, 1100, 1300, 2, 200)).Reservation
	if a, err := h.Extend(t.Context(), ann, second.ID, 1250); err != nil || a.Reservation.Allotments[0].End != 1250 {
		t.Fatal(a, err)
	}
	job := submit(t, h, ann, berth.Job("", 0, 1, 50)).Reservation
	c.seconds.Add(1)
	if _, err := h.Offers(t.Context(), ann, asks, 1); err != nil { // so that the job has been decided about
		t.Fatal(err)
	}
	store, err := sqlite.Open(dir, sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	lines, err := service.Schedule(t.Context(), store)
	if err != nil || len(lines) != 3 {
		t.Fatal(lines, err)
	}
	slices.SortFunc(lines, func(a, b berth.Line) int {
		of := func(l berth.Line) int { return slices.Index([]string{first.ID, second.ID, job.ID}, l.ID) }
		return of(a) - of(b)
	})
	if l := &lines[2]; l.Deadline != 0 || l.Kind != berth.KindJob || !l.Accepted {
		t.Errorf("%+v", l)
	}
	if l := &lines[0]; l.Duration != 250 || l.Extended != 140 || l.Deadline != 1350 || l.WantSite != "site" || l.WantPool != "p" || l.Eligible.String() != "1-3" {
		t.Errorf("%+v", l)
	}
	if l := &lines[1]; l.Duration != 150 || l.Extended != 50 || l.Deadline != 1300 {
		t.Errorf("%+v", l)
	}
	var file bytes.Buffer
	encoder := json.NewEncoder(&file)
	for i := range lines {
		if err := encoder.Encode(&lines[i]); err != nil {
			t.Fatal(err)
		}
	}
	report, err := check.File(&file, "journal", check.Against(sites, 0))
	if err != nil || !report.Valid() {
		t.Error(report, err)
	}
}
