package reproduce

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth/internal/realdata"
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

// verdictList writes the verdicts of claims line by line. What is measured on the
// clock is left out.
func verdictList(title string, claims []Claim) string {
	var list strings.Builder
	list.WriteString(title + "\n")
	for i := range claims {
		if claims[i].ID != "A10" {
			list.WriteString("  " + claims[i].ID + " " + string(worst(claims[i].Parts)) + "\n")
		}
	}
	return list.String()
}

// pinned compares what was found with a file.
func pinned(t *testing.T, name, found string) {
	t.Helper()
	golden := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(golden, []byte(found), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), found); diff != "" {
		t.Error(diff)
	}
}

// The verdicts of the papers at quick scale and seed 1 are pinned, and so are
// those with the data of two policies swapped: what is judged is the data.
func TestQuickVerdicts(t *testing.T) {
	if testing.Short() {
		t.Skip("left out of short runs, such as those under the race detector: it repeats whole experiments")
	}
	grid := gridDataOf(measured(t, gridCells(&session{Options: Options{Seed: 1}, repetitions: quickGrid})), quickGrid)
	waiting := waitingDataOf(measured(t, waitingCells(&session{Options: Options{Seed: 1}}, quickWaiting)), quickWaiting.repetitions)
	pinned(t, "verdicts.txt", quickList(grid, waiting))
}

// The same for the papers that are repeated on real logs.
func TestQuickVerdictsOnLogs(t *testing.T) {
	if testing.Short() {
		t.Skip("left out of short runs, such as those under the race detector: it repeats whole experiments")
	}
	s := &session{Options: Options{Scale: Quick, Seed: 1, Data: filepath.Dir(realdata.File(t, "swf", cm5.file+".swf.gz"))}}
	log, found, err := s.find(&cm5)
	if err != nil || !found {
		t.Fatalf("the log: %v", err)
	}
	rects := rectDataOf(measured(t, rectCells(s, quickRects, log)), quickRects.repetitions, true)
	var logs []*openLog
	for i := range mixedLogs {
		log, found, err := s.find(&mixedLogs[i])
		if err != nil || !found {
			t.Fatalf("the log %s: %v", mixedLogs[i].file, err)
		}
		logs = append(logs, log)
	}
	scale := quickMixed
	scale.timed = 0
	mixed := mixedDataOf(measured(t, mixedCells(s, scale, logs)), scale, logs)
	pinned(t, "verdicts-on-logs.txt", logList(rects, mixed, quickAwareData(t, s)))
}

// quickAwareData measures the application-aware paper at quick scale.
func quickAwareData(t *testing.T, s *session) *awareData {
	t.Helper()
	data := *s
	data.Data = filepath.Dir(s.Data) // the logs are in its folder swf, the bandwidths in another
	source, err := awareSources(&data)
	if err != nil || source.log == nil || source.measured == nil {
		t.Fatalf("log %v, measured bandwidths %v: %v", source.log != nil, source.measured != nil, err)
	}
	return awareDataOf(measured(t, awareCells(&data, quickAware, source)), quickAware, source)
}

// quickList and logList are what the two tests pin.
func quickList(grid *gridData, waiting *waitingData) string {
	return verdictList("dynamic-priority", gridClaims(grid)) +
		verdictList("dynamic-priority, DPSAR and ARWP swapped", gridClaims(grid.swapped("dpsar", "arwp"))) +
		verdictList("dynamic-priority, DPSAR and shortest first swapped", gridClaims(grid.swapped("dpsar", "sjf"))) +
		verdictList("waiting-time", waitingClaims(waiting)) +
		verdictList("waiting-time, sequential and eager swapped", waitingClaims(waiting.swapped()))
}

func logList(rects *rectData, mixed *mixedData, aware *awareData) string {
	return verdictList("availability", rectClaims(rects)) +
		verdictList("availability, first-fit and pe-worst swapped", rectClaims(rects.swapped(rectFF, rectPEW))) +
		verdictList("availability, duration-best and duration-worst swapped", rectClaims(rects.swapped(rectDuB, rectDuW))) +
		verdictList("mixed-parallel", mixedClaims(mixed)) +
		verdictList("mixed-parallel, bd-all and bd-cpar swapped", mixedClaims(mixed.swapped(bdNames, "bd-all", "bd-cpar"))) +
		verdictList("mixed-parallel, dl-bd-cpa and dl-rc-cpar swapped", mixedClaims(mixed.swapped(dlNames, "dl-bd-cpa", "dl-rc-cpar"))) +
		verdictList("application-aware", awareClaims(aware)) +
		verdictList("application-aware, AJSM and Min-Min swapped", awareClaims(aware.swapped(awareAJSM, plainMinMin))) +
		verdictList("application-aware, AJSM and MGA swapped", awareClaims(aware.swapped(awareAJSM, plainMGA)))
}
