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
				for _, s := range spans {
					if s.Pool == "p" && s.Start <= at && (s.End == 0 || at < s.End) {
						free -= s.NPE
					}
				}
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
