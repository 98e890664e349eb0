package dst

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/effort"
)

// coverAmong is among how many seeds those are that have every feature and every fault meet, and coverAtMost how many of them happen.
const (
	coverAmong  = 2000
	coverAtMost = 120
)

// fills returns how many of the empty cells a plan may fill: it has the feature and the fault.
func (p *plan) fills(empty [][2]string) (n int) {
	for _, c := range empty {
		if p.mayUse(c[0]) && p.has(c[1]) {
			n++
		}
	}
	return n
}

// mayUse reports whether a plan may use a feature, which may follow from others.
func (p *plan) mayUse(feature string) bool {
	switch feature {
	case featureOpen:
		return p.has(featureSeries)
	case featureFlowBudget:
		return p.has(featureWorkflow) && p.has(featureBudget)
	}
	return p.has(feature)
}

// Each fault meets each feature: the seeds that happen are chosen by what their plans have, the one first that may fill the most
// of the cells of the table that are empty still.
func TestEachFaultMeetsEachFeature(t *testing.T) {
	if !effort.Full() {
		t.Skip("takes a minute or so; CI has it")
	}
	plans := map[uint64]*plan{}
	for seed := uint64(1); seed <= coverAmong; seed++ {
		plans[seed] = planOf(seed)
	}
	g := newLedger()
	var happened []uint64
	for empty := g.empty(); len(empty) > 0 && len(happened) < coverAtMost; empty = g.empty() {
		best, most := uint64(0), 0
		for seed := uint64(1); seed <= coverAmong; seed++ {
			if p := plans[seed]; p != nil && p.fills(empty) > most {
				best, most = seed, p.fills(empty)
			}
		}
		if best == 0 {
			break
		}
		delete(plans, best)
		happened = append(happened, best)
		if o := happen(t, best, &plant{}, g); o.wrong != nil {
			t.Errorf("seed %d: %.3000s\nrepeat it with: %s", best, o.wrong.Error(), less{}.command(best))
		}
	}
	var table strings.Builder
	if err := g.write(&table); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d lives of the seeds %v\n%s", g.lives, happened, table.String())
	if empty := g.empty(); len(empty) > 0 {
		t.Errorf("nothing met: %s", cells(empty))
	}
}

// A plan that has neither of two fills nothing of theirs.
func TestPlansFillWhatTheyHave(t *testing.T) {
	p := &plan{on: map[string]bool{featureWorkflow: true, featureSeries: true, faultCrash: true}}
	all := [][2]string{{featureWorkflow, faultCrash}, {featureOpen, faultCrash}, {featureFlowBudget, faultCrash}, {featureWorkflow, faultLead}, {featureHold, faultCrash}}
	if n := p.fills(all); n != 2 {
		t.Errorf("it fills %d, want 2", n)
	}
	if g := newLedger(); len(g.empty()) != len(counted)*len(befalling) {
		t.Errorf("%d of an empty table are empty", len(g.empty()))
	}
}

// cells tells some cells.
func cells(of [][2]string) string {
	var all []string
	for _, c := range of {
		all = append(all, fmt.Sprint(c[1], " × ", c[0]))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
