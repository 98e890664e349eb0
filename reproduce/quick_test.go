package reproduce

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth/internal/sweep"
)

var update = flag.Bool("update", false, "write the verdicts found to testdata")

// measured takes all measurements of a list and returns their values in its
// order.
func measured(t *testing.T, cells []sweep.Cell) [][]float64 {
	t.Helper()
	results, err := sweep.Run(t.Context(), &sweep.Plan{Name: t.Name(), Cells: cells}, sweep.Options{})
	if err != nil {
		t.Fatal(err)
	}
	values := make([][]float64, len(cells))
	for i := range cells {
		values[i] = results.Of(cells[i].Key)
	}
	return values
}

// The verdicts of both papers at quick scale and seed 1 are pinned, and so are
// those with the data of two policies swapped: what is judged is the data.
func TestQuickVerdicts(t *testing.T) {
	if testing.Short() {
		t.Skip("left out of short runs, such as those under the race detector: it repeats whole experiments")
	}
	var found strings.Builder
	tell := func(title string, claims []Claim) {
		found.WriteString(title + "\n")
		for i := range claims {
			found.WriteString("  " + claims[i].ID + " " + string(worst(claims[i].Parts)) + "\n")
		}
	}
	grid := gridDataOf(measured(t, gridCells(&session{Options: Options{Seed: 1}, repetitions: quickGrid})), quickGrid)
	tell("dynamic-priority", gridClaims(grid))
	tell("dynamic-priority, DPSAR and ARWP swapped", gridClaims(grid.swapped("dpsar", "arwp")))
	tell("dynamic-priority, DPSAR and shortest first swapped", gridClaims(grid.swapped("dpsar", "sjf")))

	waiting := waitingDataOf(measured(t, waitingCells(&session{Options: Options{Seed: 1}}, quickWaiting)), quickWaiting.repetitions)
	tell("waiting-time", waitingClaims(waiting))
	tell("waiting-time, sequential and eager swapped", waitingClaims(waiting.swapped()))

	const golden = "testdata/verdicts.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(found.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), found.String()); diff != "" {
		t.Error(diff)
	}
}
