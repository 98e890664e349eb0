package service_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// A reservation that loses a node while it runs and gets another one has in the schedule of the journal the PEs
// that it had at each time, and the outage is in it too.
func TestScheduleTellsWhichPEsWhen(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.pass(1)
		w.reserve("r", 2, 0, 3600)
		w.pass(30)
		w.site.Fail("n1", "broken")
		w.pass(60)
		w.reserve("after", 1, 0, 600)
		w.pass(60)
		lines, err := service.Schedule(t.Context(), w.store)
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		resized, outages := 0, 0
		for i := range lines {
			if err := json.NewEncoder(&file).Encode(&lines[i]); err != nil {
				t.Fatal(err)
			}
			resized += len(lines[i].Stretches)
			if lines[i].Kind == berth.KindOutage {
				outages++
			}
		}
		report, err := check.File(bytes.NewReader(file.Bytes()), "journal", check.Against(w.options.Config.Sites, 0))
		if err != nil || !report.Valid() || resized == 0 || outages != 1 {
			t.Errorf("%d changes of PEs, %d outages, %+v, %v:\n%s", resized, outages, report, err, file.String())
		}
	})
}

// A reservation that is held until after its start gets its PEs when it is confirmed, which others had until then.
func TestScheduleTellsOfAReservationThatBeganLate(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	c.seconds.Store(1000)
	config := onePool(4)
	h, store := startOn(t, dir, config, c)
	held := berth.Rigid("held", 0, 1000, 2000, 2, 500)
	held.Hold = 400
	submit(t, h, ann, held)
	submit(t, h, ann, berth.Rigid("before", 0, 1000, 1200, 2, 60))
	c.seconds.Store(1100)
	if _, err := h.Confirm(t.Context(), ann, "held"); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	lines, err := service.Schedule(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	had := map[string]berth.PESet{}
	for i := range lines {
		if err := json.NewEncoder(&file).Encode(&lines[i]); err != nil {
			t.Fatal(err)
		}
		had[lines[i].ID] = lines[i].PEs
		for _, s := range lines[i].Stretches {
			had[lines[i].ID] = s.PEs
		}
	}
	report, err := check.File(bytes.NewReader(file.Bytes()), "journal", check.Against(config.Sites, 0))
	if err != nil || !report.Valid() || had["held"].Count() != 2 || !had["held"].Equal(had["before"]) {
		t.Errorf("%+v, %v:\n%s", report, err, file.String())
	}
}

// What is announced when the journal begins, and begins later than what is announced besides, hides nothing of that: each PE is
// out of use once, whatever takes it.
func TestScheduleTellsOfAnnouncedOutagesOnce(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.pass(1)
		now := w.now()
		for _, from := range []berth.Time{now + 500, now + 1000} {
			m := service.Maintenance{Name: fmt.Sprint("m", from), Site: "harbour", Times: []berth.Interval{{Start: from, End: from + 200}}}
			if _, _, err := w.host.AddMaintenance(t.Context(), root, m, false); err != nil {
				t.Fatal(err)
			}
			w.pass(1)
		}
		if _, err := w.host.Compact(t.Context(), root, 0); err != nil {
			t.Fatal(err)
		}
		w.reserve("r", 1, 0, 60)
		w.site.Fail("n1", "broken")
		w.pass(1500)
		lines, err := service.Schedule(t.Context(), w.store)
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		outages := map[string]bool{}
		for i := range lines {
			if err := json.NewEncoder(&file).Encode(&lines[i]); err != nil {
				t.Fatal(err)
			}
			if lines[i].Kind == berth.KindOutage {
				outages[lines[i].ID] = true
			}
		}
		report, err := check.File(bytes.NewReader(file.Bytes()), "journal", check.Against(w.options.Config.Sites, 0))
		if err != nil || !report.Valid() || len(outages) != 3 {
			t.Errorf("%d outages, %+v, %v:\n%s", len(outages), report, err, file.String())
		}
	})
}

// What runs when an outage is announced has its PEs until that begins: then they are taken from what outlives that, and end what does not.
// So it is told before, as promises that have not begun have given up their PEs already.
func TestScheduleTellsWhatAnnouncedOutagesWillTake(t *testing.T) {
	inHarbour(t, site.UnitNode, func(t *testing.T, w *harbour) {
		w.pass(1)
		w.reserve("running", 2, 0, 3600)
		parts := berth.Rigid("parts", 0, w.now(), w.now()+3600, 1, 3600)
		parts.Parts = append(parts.Parts, parts.Parts[0])
		submit(t, w.host, ann, parts)
		w.pass(30)
		w.reserve("later", 4, 4000, 600)
		begins := w.now() + 1000
		m := service.Maintenance{Name: "m", Site: "harbour", Nodes: []string{"n2", "n3"}, Times: []berth.Interval{{Start: begins, End: begins + 9000}}}
		if _, _, err := w.host.AddMaintenance(t.Context(), root, m, false); err != nil {
			t.Fatal(err)
		}
		w.pass(10)
		for _, begun := range []bool{false, true} {
			lines, err := service.Schedule(t.Context(), w.store)
			if err != nil {
				t.Fatal(err)
			}
			var file bytes.Buffer
			taken, ended := false, 0
			for i := range lines {
				l := &lines[i]
				if err := json.NewEncoder(&file).Encode(l); err != nil {
					t.Fatal(err)
				}
				s := l.Stretches
				taken = taken || l.ID == "running" && len(s) == 1 && s[0].From == begins && (s[0].NPE == 1 || begun && s[0].NPE == 2) && s[0].PEs.Count() == s[0].NPE // when it begins, that of parts is free
				if l.ID == "parts" && l.ActualEnd != nil && *l.ActualEnd == begins {
					ended++
				}
			}
			report, err := check.File(bytes.NewReader(file.Bytes()), "journal", check.Against(w.options.Config.Sites, 0))
			if err != nil || !report.Valid() || !taken || ended != 2 {
				t.Errorf("begun: %t; taken: %t, %d ended, %+v, %v:\n%s", begun, taken, ended, report, err, file.String())
			}
			w.pass(1000)
		}
	})
}
