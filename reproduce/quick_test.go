package reproduce

import (
	"bytes"
	"encoding/csv"
	"flag"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/internal/sweep"
	"github.com/berth-hpc/berth/internal/withparent"
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
	return valuesOf(results, cells)
}

func valuesOf(results *sweep.Results, cells []sweep.Cell) [][]float64 {
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
			list.WriteString("  " + claims[i].ID + " " + string(judged(claims[i].Parts)) + "\n")
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
	if diff := cmp.Diff(string(fileAt(t, golden)), found); diff != "" {
		t.Error(diff)
	}
}

func fileAt(t *testing.T, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// berth reproduce all, as users call it, finds the verdicts that are
// pinned, and the numbers that decided them within the tolerance beside them. With
// the data of two policies swapped it finds others, which are pinned too: what is
// judged is the data.
func TestReproduceAll(t *testing.T) {
	if testing.Short() {
		t.Skip("left out of short runs, such as those under the race detector: it repeats whole experiments")
	}
	logs := realdata.File(t, "swf", cm5.file+".swf.gz")
	data := filepath.Dir(filepath.Dir(logs))
	folder := t.TempDir()
	binary := filepath.Join(folder, "berth")
	if out, err := exec.Command("go", "build", "-trimpath", "-o", binary, "../cmd/berth").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	all := filepath.Join(folder, "all")
	cmd := exec.Command(binary, "reproduce", "all", "--scale", "quick", "--data", data, "--out", all, "-o", "csv")
	cmd.SysProcAttr = withparent.Attr()
	var printed, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &said
	if err := cmd.Run(); err != nil || said.Len() > 0 {
		t.Fatalf("%v: %s", err, said.Bytes())
	}
	if !bytes.Equal(printed.Bytes(), fileAt(t, all, "claims.csv")) {
		t.Error("stdout is not claims.csv")
	}
	wellFilled(t, all)
	goldenClaims(t, all, readCSV(t, printed.Bytes())[1:])

	swaps := ""
	for i := range Papers {
		swaps += swappedList(t, &Papers[i], Options{Scale: Quick, Seed: 1, Data: data}, filepath.Join(all, Papers[i].Name))
	}
	pinned(t, "swapped.txt", swaps)

	// From files of measurements, one for each paper, it is made again.
	for i := range Papers {
		name := Papers[i].Name
		if err := os.WriteFile(filepath.Join(folder, "kept-"+name+".jsonl"), fileAt(t, all, name, "cells.jsonl"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	again := filepath.Join(folder, "again")
	out, err := exec.Command(binary, "reproduce", "all", "--data", data, "--merge", filepath.Join(folder, "kept.jsonl"), "--out", again, "-o", "csv").CombinedOutput()
	if err != nil || !bytes.Equal(out, printed.Bytes()) || !bytes.Equal(fileAt(t, again, "report.html"), fileAt(t, all, "report.html")) {
		t.Errorf("merged it is another report: %v, %.300s", err, out)
	}
}

// wellFilled wants the page over all, and of each paper the page, the claims and
// the measurements.
func wellFilled(t *testing.T, all string) {
	t.Helper()
	page := string(fileAt(t, all, "report.html"))
	for i := range Papers {
		name := Papers[i].Name
		if !strings.Contains(page, Papers[i].Title) {
			t.Errorf("the page has no %s", name)
		}
		claims := readCSV(t, fileAt(t, all, name, "claims.csv"))[1:]
		for _, row := range claims {
			if !strings.Contains(page, `id="`+name+"-"+row[0]+`"`) || row[1] == string(NotTestable) {
				t.Errorf("%s/%s is %s, or not on the page", name, row[0], row[1])
			}
		}
		if len(claims) == 0 || len(fileAt(t, all, name, "report.html")) == 0 {
			t.Errorf("%s has %d claims and its page", name, len(claims))
		}
	}
}

// clocked is the claim about measured times, whose numbers cannot be pinned.
const clocked = "mixed-parallel/A10"

// goldenClaims compares claims with testdata/quick.csv: the verdict, and the mean of
// the quantity that decided it then. The tolerance is an eighth of the interval that it
// had, and of a count, which has none, a hundredth.
func goldenClaims(t *testing.T, all string, claims [][]string) {
	t.Helper()
	const id, verdict, quantity, mean, low, high = 0, 1, 4, 7, 8, 9
	number := func(text string) float64 {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	golden := filepath.Join("testdata", "quick.csv")
	if *update {
		rows := [][]string{{"claim", "verdict", "quantity", "mean", "tolerance"}}
		for _, row := range claims {
			if row[id] == clocked {
				continue
			}
			tolerance := math.Abs(number(row[mean])) / 100
			if row[low] != "" {
				tolerance = (number(row[high]) - number(row[low])) / 8
			}
			rows = append(rows, []string{row[id], row[verdict], row[quantity], row[mean], digits(tolerance)})
		}
		var out bytes.Buffer
		if err := csv.NewWriter(&out).WriteAll(rows); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	verdicts, means := map[string]string{}, map[string]float64{}
	for _, row := range claims {
		verdicts[row[id]] = row[verdict]
	}
	for i := range Papers {
		name := Papers[i].Name
		for _, row := range readCSV(t, fileAt(t, all, name, "parts.csv"))[1:] {
			if row[5] != "" && row[9] == "words" { // a printed number may be compared beside, under the same name
				means[name+"/"+row[0]+"/"+row[2]] = number(row[5])
			}
		}
	}
	want := readCSV(t, fileAt(t, golden))[1:]
	if len(want) != len(claims)-1 {
		t.Errorf("%d claims, and %d are pinned beside %s", len(claims), len(want), clocked)
	}
	for _, row := range want {
		if verdicts[row[0]] != row[1] {
			t.Errorf("%s is %q, want %q", row[0], verdicts[row[0]], row[1])
		}
		found, ok := means[row[0]+"/"+row[2]]
		if !ok || math.Abs(found-number(row[3])) > number(row[4]) {
			t.Errorf("%s: %s is %v, want %s ± %s", row[0], row[2], found, row[3], row[4])
		}
	}
}

// swappedList lists the verdicts of a paper with the data of two policies
// exchanged, from the measurements in its folder.
func swappedList(t *testing.T, p *Paper, o Options, folder string) string {
	t.Helper()
	s, e, plan, err := p.plan(o)
	if err != nil {
		t.Fatal(err)
	}
	results, err := sweep.Run(t.Context(), plan, sweep.Options{From: []string{filepath.Join(folder, "cells.jsonl")}})
	if err != nil {
		t.Fatal(err)
	}
	values := valuesOf(results, e.cells)
	switch p.Name {
	case "availability":
		d := rectDataOf(values, quickRects.repetitions, true)
		return verdictList("availability, first-fit and pe-worst swapped", rectClaims(d.swapped(rectFF, rectPEW))) +
			verdictList("availability, duration-best and duration-worst swapped", rectClaims(d.swapped(rectDuB, rectDuW)))
	case "mixed-parallel":
		var logs []*openLog
		for i := range mixedLogs {
			log, found, err := s.find(&mixedLogs[i])
			if err != nil || !found {
				t.Fatalf("the log %s: %v", mixedLogs[i].file, err)
			}
			logs = append(logs, log)
		}
		d := mixedDataOf(values, quickMixed, logs)
		return verdictList("mixed-parallel, bd-all and bd-cpar swapped", mixedClaims(d.swapped(bdNames, "bd-all", "bd-cpar"))) +
			verdictList("mixed-parallel, dl-bd-cpa and dl-rc-cpar swapped", mixedClaims(d.swapped(dlNames, "dl-bd-cpa", "dl-rc-cpar")))
	case "dynamic-priority":
		d := gridDataOf(values, quickGrid)
		return verdictList("dynamic-priority, DPSAR and ARWP swapped", gridClaims(d.swapped("dpsar", "arwp"))) +
			verdictList("dynamic-priority, DPSAR and shortest first swapped", gridClaims(d.swapped("dpsar", "sjf")))
	case "waiting-time":
		d := waitingDataOf(values, quickWaiting.repetitions)
		return verdictList("waiting-time, sequential and eager swapped", waitingClaims(d.swapped()))
	case "application-aware":
		source, err := awareSources(s)
		if err != nil || source.log == nil || source.measured == nil {
			t.Fatalf("log %v, measured bandwidths %v: %v", source.log != nil, source.measured != nil, err)
		}
		d := awareDataOf(values, quickAware, source)
		return verdictList("application-aware, AJSM and Min-Min swapped", awareClaims(d.swapped(awareAJSM, plainMinMin))) +
			verdictList("application-aware, AJSM and MGA swapped", awareClaims(d.swapped(awareAJSM, plainMGA)))
	}
	if p.Name == "deviating-workflows" {
		d := &deviatingData{scale: quickDeviating, values: values}
		if d.logs = make([]*openLog, len(mixedLogs)); len(e.cells) != len(mixedLogs)*len(deviatingMisses)*len(quickDeviating.loads)*quickDeviating.repetitions {
			t.Fatalf("%d cells", len(e.cells))
		}
		return verdictList("deviating-workflows, bd-cpar and dl-bd-cpar swapped", deviatingClaims(d.swapped(byForward, byBackward))) +
			verdictList("deviating-workflows, hold and late swapped", deviatingClaims(d.repairsSwapped(0, 1))) +
			verdictList("deviating-workflows, late and both swapped", deviatingClaims(d.repairsSwapped(1, 2)))
	}
	t.Fatalf("nothing of %s is swapped", p.Name)
	return ""
}
