package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/site/hostlist"
)

// A node is in a cell what most of its PEs are in the second of it in which most of them are taken, be it one after the other.
func TestNodeStates(t *testing.T) {
	draw := rand.New(rand.NewPCG(21, 2))
	edges := []form.Time{100, 110, 120, 130, 140}
	nodes := []form.Row{{Name: "a", First: 0, PEs: 1}, {Name: "b", First: 1, PEs: 2}, {Name: "c", First: 3, PEs: 4}, {Name: "d", First: 8, PEs: 2}}
	for range 300 {
		now := form.Time(95 + draw.IntN(50))
		var spans []form.Span
		for range draw.IntN(6) {
			lo := berth.PE(draw.IntN(10))
			s := form.Span{Pool: "p", PEs: berth.NewPESet(berth.Run{Lo: lo, Hi: lo + 1 + berth.PE(draw.IntN(4))}), Start: form.Time(90 + draw.IntN(60))}
			s.NPE = s.PEs.Count()
			if s.End = s.Start + 1 + form.Time(draw.IntN(30)); draw.IntN(5) == 0 {
				s.End = 0
			}
			spans = append(spans, s, form.Span{Pool: "other", NPE: 9, PEs: berth.NewPESet(berth.Run{Hi: 9}), Start: 100, End: 140})
		}
		taken, unnamed := takenIn("p", spans, edges, now)
		if diff := cmp.Diff([]berth.Count{0, 0, 0, 0}, unnamed); diff != "" {
			t.Error(diff)
		}
		got := nodeStates(nodes, taken, edges, now)
		for i, n := range nodes {
			for k := range 4 {
				held := 0
				for pe := n.First; pe < n.First+berth.PE(n.PEs); pe++ {
					for _, s := range spans {
						if s.Pool == "p" && s.PEs.Contains(pe) && s.Start < edges[k+1] && (s.End == 0 || s.End > max(edges[k], now)) {
							held++
							break
						}
					}
				}
				want := nodePartly
				switch {
				case edges[k+1] <= now:
					want = nodePast
				case held == 0:
					want = nodeFree
				case held == int(n.PEs):
					want = nodeTaken
				}
				if got[i][k] != want {
					t.Fatalf("%s in cell %d: %d, want %d; now %d, spans %+v", n.Name, k, got[i][k], want, now, spans)
				}
			}
		}
	}
}

// What is promised without nodes is counted by the second of a cell in which it is most.
func TestPEsWithoutNodes(t *testing.T) {
	spans := []form.Span{
		{Pool: "p", NPE: 3, Start: 105, End: 125},
		{Pool: "p", NPE: 2, Start: 95, End: 108},
		{Pool: "p", NPE: 4, Start: 112, End: 118},
		{Pool: "p", NPE: 9, PEs: berth.NewPESet(berth.Run{Hi: 9}), Start: 100, End: 140},
		{Pool: "other", NPE: 9, Start: 100, End: 140},
	}
	_, unnamed := takenIn("p", spans, []form.Time{100, 110, 120, 130, 140}, 90)
	if diff := cmp.Diff([]berth.Count{5, 7, 3, 0}, unnamed); diff != "" {
		t.Error(diff)
	}
}

// The table of nodes fits 100 columns whatever is free when, has a line for nodes that are free alike, and every node once.
func TestNodeTable(t *testing.T) {
	var nodes []form.Row
	for i := range 90 {
		nodes = append(nodes, form.Row{Name: fmt.Sprintf("node%03d", i), First: berth.PE(i), PEs: 1})
	}
	for _, days := range []int{1, 3, 7, 10} {
		edges := cellEdges(time.Date(2026, 11, 2, 9, 0, 0, 0, time.Local), days)
		states := make([][]nodeState, len(nodes))
		for i := range states {
			states[i] = make([]nodeState, 12*days)
			for k := range states[i] {
				states[i][k] = nodeFree
				if i%3 == 0 && k == 2 || i == 4 {
					states[i][k] = nodeTaken
				}
			}
		}
		text := nodeTable(nodes, states, edges, days, false)
		for line := range strings.Lines(text) {
			if len(line) > 101 {
				t.Errorf("%d columns: %s", len(line)-1, line)
			}
		}
		if days != 7 {
			continue
		}
		_, rows, _ := strings.Cut(text, "\n")
		names, lines := "", 0
		for line := range strings.Lines(rows) {
			if room := line[:min(len(line)-1, 50)]; len(line) > 51 {
				names += "," + strings.TrimSpace(room)
				lines++
			} else {
				names += strings.TrimSpace(room)
			}
		}
		if all, err := hostlist.Expand(names[1:]); err != nil || len(all) != 90 || lines != 3 {
			t.Errorf("%d nodes in %d lines, %v:\n%s", len(all), lines, err, text)
		}
		if !strings.Contains(text, "Mon 02 Tue 03 ") || !strings.Contains(text, "node004") || !strings.Contains(text, " ###### ######") {
			t.Errorf("%s", text)
		}
	}
}

func TestBrokenAt(t *testing.T) {
	for _, c := range []struct {
		names string
		most  int
		want  []string
	}{
		{"n[1-3]", 12, []string{"n[1-3]"}},
		{"n[1,3,5,7,9],m1", 6, []string{"n[1,3,", " 5,7,", " 9],m1"}},
		{"averylongname,b", 4, []string{"averylongname,", "b"}},
		{"", 4, []string{""}},
	} {
		if diff := cmp.Diff(c.want, brokenAt(c.names, c.most)); diff != "" {
			t.Error(diff)
		}
		if strings.ReplaceAll(strings.Join(brokenAt(c.names, c.most), ""), " ", "") != c.names {
			t.Error(c.names)
		}
	}
}

// Promises without nodes are counted beside the nodes that are free.
func TestFreeNodesOfLateBinding(t *testing.T) {
	f := freeView{nodes: true, window: true, edges: []form.Time{100, 200}, now: 50}
	pool := form.Pool{Pool: berth.Pool{Name: "p", PEs: 4, Binding: berth.Late}}
	nodes := []form.Row{{Name: "n1", First: 0, PEs: 2}, {Name: "n2", First: 2, PEs: 2}}
	spans := []form.Span{{Pool: "p", NPE: 1, Start: 90, End: 150}, {Pool: "p", NPE: 2, PEs: berth.NewPESet(berth.Run{Hi: 2}), Start: 150, End: 160}}
	var text strings.Builder
	cells := f.poolText(&text, "s", &pool, nodes, spans)
	if diff := cmp.Diff([]freeCell{{Site: "s", Pool: "p", Start: 100, End: 200, Free: 2, Of: 4, Nodes: []string{"n2"}, Unnamed: 1}}, cells); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(text.String(), "\n  n2\nup to 1 PEs are promised without nodes: they take some of those that are free\n") {
		t.Error(text.String())
	}
}
