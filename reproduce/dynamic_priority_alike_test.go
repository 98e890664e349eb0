package reproduce

import "testing"

// Runs in which nothing is reserved are measured once: the second reading has what the first measured, which
// is what it would measure, and the reading that chooses resources otherwise has its own.
func TestReadingsAlikeAreMeasuredOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("whole runs")
	}
	const seed = 3
	a := gridAlike{known: map[gridSame]gridOutcome{}}
	shared, moved, measured := 0, 0, 0
	for _, run := range gridRuns() {
		if run.share > 0 || run.policy.name != "arwp" {
			continue
		}
		before := len(a.known)
		got, err := a.measure(t.Context(), &run, seed)
		if err != nil {
			t.Fatal(err)
		}
		want, err := gridlets(seed, 0, run.reading.wanted).measure(t.Context(), &run, seed)
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", run.reading.title, got, want)
		}
		if got.moved != 0 {
			moved++
		}
		if len(a.known) > before {
			measured++
		} else {
			shared++
		}
	}
	if shared != 2 || measured != 2 || moved != 1 {
		t.Errorf("%d are shared, %d measured, in %d promises move; want 2, 2 and 1", shared, measured, moved)
	}
}
