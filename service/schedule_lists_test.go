package service

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/journal/sqlite"
)

// The schedule of a journal has the sites and the PEs that a request asked for, and those that it excluded. So a
// reservation elsewhere is found.
func TestScheduleTellsListsOfNodes(t *testing.T) {
	store, err := sqlite.Open(t.TempDir(), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sites := []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Early}, {Name: "q", PEs: 4, Binding: berth.Early}}}}
	h, err := Open(t.Context(), Options{Config: engine.Config{Sites: sites}, Journal: store, Version: "test", Clock: func() time.Time { return time.Unix(1000, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { closeBoth(t, h, store) }()
	r := berth.Rigid("r", 1000, 1000, 1200, 2, 100)
	r.Sites = []string{"s", "t"}
	r.Parts[0].Only = []berth.PoolPEs{{Resource: berth.PoolID("s", "q"), PEs: berth.PEsOf(0, 1, 3)}}
	r.Parts[0].Never = []berth.PoolPEs{{Resource: berth.PoolID("s", "q"), PEs: berth.PEsOf(1)}}
	if _, err := call(t.Context(), h, "ann", func(answer func(int, error)) {
		err := h.step(engine.Submit(&r), asked{}, nil)
		h.whenDurable(func(error) { answer(0, err) })
	}); err != nil {
		t.Fatal(err)
	}
	lines, err := Schedule(t.Context(), store)
	if err != nil || len(lines) != 1 || !lines[0].PEs.Equal(berth.PEsOf(0, 3)) {
		t.Fatalf("%+v, %v", lines, err)
	}
	for _, c := range []struct {
		pes  berth.PESet
		pool string
		want []check.Class
	}{
		{berth.PEsOf(0, 3), "q", nil},
		{berth.PEsOf(1, 3), "q", []check.Class{check.Eligible}},
		{berth.PEsOf(0, 2), "q", []check.Class{check.Eligible}},
		{berth.PEsOf(0, 3), "p", []check.Class{check.Place}},
	} {
		lines[0].PEs, lines[0].Pool = c.pes, c.pool
		text, err := json.Marshal(&lines[0])
		if err != nil {
			t.Fatal(err)
		}
		report, err := check.File(bytes.NewReader(append(text, '\n')), "journal", check.Against(sites, 0))
		if err != nil {
			t.Fatal(err)
		}
		var got []check.Class
		for _, v := range report.Violations {
			got = append(got, v.Class)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("on %s of %s: %v, want %v", c.pes, c.pool, report.Violations, c.want)
		}
	}
}
