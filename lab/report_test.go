package lab

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth/measure"
	"github.com/berth-hpc/berth/sim"
)

func writeFile(t interface{ Fatal(...any) }, path string, data []byte) {
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

// estimate returns a mean with an interval of half a width.
func estimate(mean, half float64) measure.Estimate {
	return measure.Estimate{Mean: &mean, CI95: &[2]float64{mean - half, mean + half}}
}

func TestJudge(t *testing.T) {
	up, down, neither := Figure{Better: 1}, Figure{Better: -1}, Figure{}
	one := 3.0
	for _, c := range []struct {
		figure *Figure
		e      measure.Estimate
		want   Verdict
	}{
		{&up, estimate(2, 1), Better},
		{&up, estimate(-2, 1), Worse},
		{&up, estimate(1, 2), Open},
		{&up, estimate(1, 1), Open},
		{&up, estimate(0, 0), Open},
		{&down, estimate(2, 1), Worse},
		{&down, estimate(-2, 1), Better},
		{&down, estimate(-1, 1), Open},
		{&neither, estimate(2, 1), More},
		{&neither, estimate(-2, 1), Less},
		{&up, measure.Estimate{Mean: &one}, Open},
		{&up, measure.Estimate{}, Open},
	} {
		if got := c.figure.Judge(c.e); got != c.want {
			t.Errorf("%+v with %v is %d, want %d", c.figure, c.e, got, c.want)
		}
	}
}

func TestTexts(t *testing.T) {
	share, ratio, seconds, count, hash := Figure{Unit: Share}, Figure{Unit: Ratio}, Figure{Unit: Seconds}, Figure{}, Figure{Unit: Hash}
	got := []string{
		share.Text(0.9251), ratio.Text(1.0519), seconds.Text(93_784), seconds.Text(-59.6), count.Text(202871), count.Text(-1234.5), count.Text(12), hash.Text(255), share.Text(math.NaN()),
		share.Spread(estimate(0.925, 0.0012)), seconds.Spread(estimate(60, 5)), share.Spread(measure.Estimate{}),
		share.Change(estimate(0.0371, 0.001)), share.Change(estimate(-0.0371, 0.001)), share.Change(estimate(0.00001, 0.001)), ratio.Change(estimate(-0.5, 0.25)),
		seconds.Change(estimate(-3600, 60)), count.Change(measure.Estimate{}),
	}
	want := []string{
		"92.5 %", "1.052", "1-02:03:04", "−00:01:00", "202\u202f871", "-1\u202f234.5", "12", "00000000000ff", "–",
		"92.5 % ± 0.1", "00:01:00 ± 00:00:05", "–",
		"+3.71 ± 0.10", "−3.71 ± 0.10", "0.00 ± 0.10", "−0.500 ± 0.250", "−01:00:00 ± 00:01:00", "–",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFilesOfTheReport(t *testing.T) {
	r := run(t, twoByThree(3), Options{})
	files, err := r.Files("berth lab --x")
	if err != nil {
		t.Fatal(err)
	}
	data := map[string]string{}
	for _, f := range files {
		data[f.Name] = string(f.Data)
	}
	rows := func(name string) [][]string {
		list, err := csv.NewReader(strings.NewReader(data[name])).ReadAll()
		if err != nil {
			t.Fatal(name, err)
		}
		return list
	}
	runs := rows("runs.csv")
	if len(runs) != 19 || strings.Join(runs[1][:4], " ") != "first-fit 1 1 5" || strings.Join(runs[18][:4], " ") != "pe-worst 4 3 7" {
		t.Errorf("%d rows: %v to %v", len(runs), runs[1], runs[len(runs)-1])
	}
	summary := rows("summary.csv")
	header := strings.Join(summary[0], ",")
	if header != "policy,slack,figure,mean,low,high,replications,difference,difference_low,difference_high,pairs" || len(summary) != 1+6*10 {
		t.Errorf("%s, %d rows", header, len(summary))
	}
	wait := at(t, "mean_wait")
	for _, row := range summary {
		if row[0] == "pe-worst" && row[1] == "2" && row[2] == "mean_wait" {
			e, _ := r.Estimate(Point{1, 1}, wait)
			d, _ := r.Difference(Point{1, 1}, wait)
			if row[3] != digits(*e.Mean) || row[7] != digits(*d.Mean) || row[8] != digits(d.CI95[0]) || row[10] != "3" {
				t.Errorf("%v", row)
			}
		}
	}
	if change := rows("mean_wait-over-slack-change.csv"); len(change) != 4 || change[1][0] != "pe-worst" {
		t.Errorf("%v", change)
	}
	if both := rows("mean_wait-over-slack.csv"); len(both) != 7 {
		t.Errorf("%v", both)
	}
	page := data["report.html"]
	for _, want := range []string{
		"<h1>made &lt;up&gt;</h1>", "6 combinations, 18 runs, compared with first-fit", "<code>berth lab --x</code>", "prefers-color-scheme: dark", "@media print",
		"over pairs of runs with the same draws", `<figure id="mean_wait-over-slack-change"`, "<dt>slack</dt><dd>1, 2, 4</dd>", "<dt>berth</dt><dd>test</dd>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if found := regexp.MustCompile(`(?i)(src|href)="[^#]|url\(|@import|<script`).FindString(page); found != "" {
		t.Errorf("the page refers to something: %s", found)
	}
	if strings.Count(page, `<tr class="base">`) != 3 {
		t.Error("the baselines are not marked")
	}
}

// Every change whose interval does not hold 0 is called better or worse.
func TestThePageJudges(t *testing.T) {
	p := twoByThree(4)
	p.Baseline = []Setting{{"slack", "1"}}
	r := run(t, p, Options{})
	var out bytes.Buffer
	if err := r.writeHTML(&out, "berth lab", r.Drawings()); err != nil {
		t.Fatal(err)
	}
	page := strings.ReplaceAll(out.String(), "&#43;", "+")
	judged := 0
	for _, point := range r.Plan.Points() {
		for _, f := range r.Main() {
			d, n := r.Difference(point, f)
			if word := map[Verdict]string{Better: "better", Worse: "worse"}[figures[f].Judge(d)]; n > 0 && word != "" {
				judged++
				if want := `<span class="change ` + word + `">` + figures[f].Change(d) + " " + word + "</span>"; !strings.Contains(page, want) {
					t.Errorf("the page has no %s", want)
				}
			}
		}
	}
	if judged == 0 {
		t.Error("no change is clear")
	}
	if !strings.Contains(page, "compared with slack=1.") {
		t.Error("the page does not name the baseline")
	}
}

// What replications cannot tell is said.
func TestWordsAboutIntervals(t *testing.T) {
	if r := run(t, twoByThree(1), Options{}); r.Alike() || !strings.Contains(r.drawn(), "One replication") {
		t.Error(r.drawn())
	}
	same := twoByThree(2)
	same.Case = func(point Point) (*Case, error) {
		c := caseOf("first-fit", 1)
		work, err := c.Work(1)
		c.Work = func(int) (*sim.Workload, error) { return work, err }
		return c, nil
	}
	if r := run(t, same, Options{}); !r.Alike() || !strings.Contains(r.drawn(), "nothing was drawn at random") {
		t.Error(r.drawn())
	}
}

// sweepOf is results of nothing but a plan's shape: every figure of a run is the
// index of its point.
func sweepOf(dimensions ...Dimension) *Results {
	p := &Plan{Title: "x", Replications: 1, Dimensions: dimensions, Baseline: []Setting{{dimensions[0].Name, dimensions[0].Values[0]}}}
	r := &Results{Plan: p}
	for i := range p.Points() {
		values := make([]float64, len(figures))
		for f := range values {
			values[f] = math.NaN()
		}
		values[2] = float64(i)
		r.values = append(r.values, [][]float64{values})
	}
	return r
}

func words(name string, n int) Dimension {
	d := Dimension{Name: name}
	for i := range n {
		d.Values = append(d.Values, fmt.Sprint(name, i))
	}
	return d
}

func counts(name string, n int) Dimension {
	d := Dimension{Name: name}
	for i := range n {
		d.Values, d.Numbers = append(d.Values, fmt.Sprint(i+1)), append(d.Numbers, float64(i+1))
	}
	return d
}

func TestDrawings(t *testing.T) {
	for name, c := range map[string]struct {
		results *Results
		want    []string // names, with how many series
	}{
		"words": {sweepOf(words("p", 7), words("b", 2)), []string{"over-p 2", "over-p-change 2"}},
		"a number, and all lines in one": {sweepOf(words("p", 2), words("b", 3), counts("n", 3)), []string{
			"over-n 6", "over-n-change 3",
		}},
		"a drawing for each of the rest": {sweepOf(words("p", 7), words("b", 2), counts("n", 3)), []string{
			"over-n-b0 7", "over-n-b0-change 6", "over-n-b1 7", "over-n-b1-change 6",
		}},
		"two numbers": {sweepOf(counts("n", 3), counts("m", 2)), []string{"over-n 2", "over-n-change 2", "over-m 3", "over-m-change 2"}},
	} {
		var got []string
		for _, d := range c.results.Drawings() {
			got = append(got, fmt.Sprint(strings.TrimPrefix(d.Name, "acceptance_rate-"), " ", len(d.chart.Series)))
			var out bytes.Buffer
			if err := d.WriteSVG(&out); err != nil {
				t.Errorf("%s, %s: %v", name, d.Name, err)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	// A line has the same look where the baseline is left out.
	drawings := sweepOf(words("p", 3), counts("n", 2)).Drawings()
	if looks := drawings[1].chart.Series; looks[0].Look != 2 || looks[1].Look != 3 || looks[0].Name != "p1" || looks[0].Points[1].Y != 200 {
		t.Errorf("%+v", looks)
	}
	// Words that do not fit below the axis stand in the caption.
	long := words(strings.Repeat("long", 5), 6)
	if d := sweepOf(long).Drawings()[0]; d.chart.Ticks[1].Label != "2" || !strings.Contains(d.Caption, "2: "+long.Values[1]+". ") {
		t.Errorf("%+v", d)
	}
}

func TestBadFilesOfMeasurements(t *testing.T) {
	good := string(run(t, twoByThree(1), Options{}).Measurements())
	path := filepath.Join(t.TempDir(), "cells.jsonl")
	for words, change := range map[string][2]string{
		`measurements of "waiting-time", not of "lab"`:         {`"sweep":"lab"`, `"sweep":"waiting-time"`},
		"measurements of version 0, and this berth reads":      {`"version":1`, `"version":0`},
		`seed: strconv.ParseUint: parsing "x": invalid syntax`: {`"seed","value":"5"`, `"seed","value":"x"`},
		"no plan to merge: replications: 0; want at least 1":   {`"replications","value":"1"`, `"replications","value":"0"`},
		"a value is empty":                  {`"first-fit,pe-worst"`, `","`},
		"numbers slack: ":                   {`"value":"1,2,4"},{"name":"pes"`, `"value":"1,x,4"},{"name":"pes"`},
		"numbers other: sweep: numbers":     {`"numbers slack"`, `"numbers other"`},
		"no file of measurements; want one": {"{", "["},
	} {
		writeFile(t, path, []byte(strings.ReplaceAll(good, change[0], change[1])))
		_, err := Recorded(path)
		invalid(t, err, "merge", words)
	}
}
