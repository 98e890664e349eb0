package main

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
)

// What is free in a cell is what is free in the second of it in which most is taken.
func TestFreeCells(t *testing.T) {
	draw := rand.New(rand.NewPCG(21, 1))
	for range 200 {
		edges := []form.Time{100, 110, 120, 130, 140}
		now := form.Time(95 + draw.IntN(50))
		var spans []form.Span
		for range draw.IntN(6) {
			s := form.Span{Pool: "p", NPE: berth.Count(1 + draw.IntN(4)), Start: form.Time(90 + draw.IntN(60))}
			if s.End = s.Start + 1 + form.Time(draw.IntN(30)); draw.IntN(5) == 0 {
				s.End = 0
			}
			if draw.IntN(2) == 0 { // outages and promises whose PEs are known can take the same ones
				first := berth.PE(draw.IntN(9))
				s.PEs = berth.NewPESet(berth.Run{Lo: first, Hi: first + 1}, berth.Run{Lo: first + 1, Hi: min(10, first+berth.PE(s.NPE))})
				s.NPE = s.PEs.Count() + berth.Count(draw.IntN(2))
			}
			if s.End != 0 && s.End <= max(now, edges[0]) { // is not told of
				continue
			}
			spans = append(spans, s, form.Span{Pool: "other", NPE: 9, Start: 100, End: 140})
		}
		want := make([]berth.Count, 4)
		for i := range want {
			want[i] = passed
			for at := max(edges[i], now); at < edges[i+1]; at++ {
				free := berth.Count(10)
				var named berth.PESet
				for _, s := range spans {
					if s.Pool == "p" && s.Start <= at && (s.End == 0 || at < s.End) {
						free -= s.NPE - s.PEs.Count()
						named = named.Or(s.PEs)
					}
				}
				free -= named.Count()
				if free = max(0, free); want[i] == passed || free < want[i] {
					want[i] = free
				}
			}
		}
		if diff := cmp.Diff(want, freeCells(10, "p", spans, edges, now)); diff != "" {
			t.Fatalf("now %d, spans %+v (-want +got)\n%s", now, spans, diff)
		}
	}
}

// PEs that several outages take at once are out of use once: what --nodes names is what is counted.
func TestFreeOfOverlappingOutages(t *testing.T) {
	set := func(lo, hi berth.PE) berth.PESet { return berth.NewPESet(berth.Run{Lo: lo, Hi: hi}) }
	spans := []form.Span{
		{Pool: "p", Start: 100, End: 120, NPE: 1, PEs: set(0, 1)},
		{Pool: "p", Start: 110, End: 130, NPE: 1, PEs: set(0, 1)},
		{Pool: "p", Start: 110, End: 130, NPE: 2, PEs: set(0, 2)},
	}
	edges := []form.Time{100, 110, 120, 130, 140}
	if diff := cmp.Diff([]berth.Count{3, 2, 2, 4}, freeCells(4, "p", spans, edges, 100)); diff != "" {
		t.Error(diff)
	}
}

// A table of a pool of thousands of PEs fits 100 columns, also over a day of 25 hours.
func TestFreeTable(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skipf("needs the tz database: %v", err)
	}
	edges := cellEdges(time.Date(2026, 10, 25, 9, 0, 0, 0, berlin), 2)
	if len(edges) != 25 || edges[1]-edges[0] != 3*3600 || edges[24]-edges[0] != 49*3600 {
		t.Error(edges)
	}
	cells := freeCells(12_345, "p", nil, edges, edges[5])
	for line := range strings.Lines(freeTable(cells, edges, 2, 12_345, false)) {
		if len(line) > 101 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
}
