package reproduce

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/realdata"
)

var newCells = flag.String("results.cells", "", "folder of new measurements, cells-NAME.jsonl, that -update packs for docs/results first")

// resultsFolder has a page for each paper, a folder of its name with the files that the page
// rests on, and the measurements that those are made of, as cells-NAME.jsonl.gz.
var resultsFolder = filepath.Join("..", "docs", "results")

// A page has tables from the .csv files beside it, between two lines:
//
//	<!-- from settings.csv, repair=both, met by error; go test ./reproduce -run Results -update writes it -->
//	<!-- end of settings.csv -->
//
// Of the file's rows those count that have the values named, and where it says so one column
// is spread over those of another.
var tableOnPage = regexp.MustCompile(`(?s)<!-- from (\S+)\.csv(, [^;]*)?; go test \./reproduce -run Results -update writes it -->\n.*?<!-- end of (\S+)\.csv -->\n`)

// claimsTable writes claims.csv as a table of a page, by kind: what the paper states first.
func claimsTable(t *testing.T, rows [][]string) string {
	t.Helper()
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	var text strings.Builder
	for _, kind := range Kinds() {
		var lines []string
		counts := map[string]int{}
		for _, row := range rows[1:] {
			if row[at["kind"]] != string(kind) {
				continue
			}
			counts[row[at["verdict"]]]++
			call := row[at["quantity"]] + ": " + row[at["mean"]]
			if row[at["low"]] != "" {
				call += " [" + row[at["low"]] + ", " + row[at["high"]] + "]"
			}
			call += " " + row[at["unit"]] + ", wanted: " + row[at["rule"]]
			cells := []string{row[at["id"]], "**" + row[at["verdict"]] + "**", row[at["magnitude"]], row[at["paper"]], row[at["ours"]], call}
			for i := range cells {
				cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
			}
			lines = append(lines, "| "+strings.Join(cells, " | ")+" |\n")
		}
		if len(lines) == 0 {
			continue
		}
		var totals []string
		for _, v := range Verdicts() {
			if counts[string(v)] > 0 {
				totals = append(totals, fmt.Sprintf("%d %s", counts[string(v)], v))
			}
		}
		fmt.Fprintf(&text, "\n### %s: %s\n\n| claim | verdict | printed numbers | the claim | ours | closest call |\n|---|---|---|---|---|---|\n", kindTitles[kind], strings.Join(totals, ", "))
		for _, line := range lines {
			text.WriteString(line)
		}
	}
	text.WriteString("\n")
	return text.String()
}

// pageTable writes a file of numbers as a table of a page: of the rows that have the values of
// how, "COLUMN=VALUE", and with "COLUMN by OTHER" that column alone, spread over the values of
// the other one. Intervals stand behind their means.
func pageTable(t *testing.T, name string, rows [][]string, how []string) string {
	t.Helper()
	header := rows[0]
	column := func(name string) int {
		i := slices.Index(header, name)
		if i < 0 {
			t.Fatalf("%s.csv has no column %q but %q", name, name, header)
		}
		return i
	}
	given := map[int]string{}
	value, spread := -1, -1
	for _, h := range how {
		if name, want, is := strings.Cut(h, "="); is {
			given[column(name)] = want
		} else if name, by, is := strings.Cut(h, " by "); is {
			value, spread = column(name), column(by)
		} else {
			t.Fatalf("%q says nothing about %s.csv", h, name)
		}
	}
	rows = slices.DeleteFunc(slices.Clone(rows[1:]), func(row []string) bool {
		for i, want := range given {
			if row[i] != want {
				return true
			}
		}
		return false
	})
	if len(rows) == 0 {
		t.Fatalf("%s.csv has nothing with %q", name, how)
	}
	interval := func(i int) bool { return strings.HasSuffix(header[i], "low") || strings.HasSuffix(header[i], "high") }
	cell := func(row []string, i int) string {
		text := threeDigits(row[i])
		if i+2 < len(row) && strings.HasSuffix(header[i+1], "low") && strings.HasSuffix(header[i+2], "high") && row[i+1] != "" {
			text += " [" + threeDigits(row[i+1]) + ", " + threeDigits(row[i+2]) + "]"
		}
		return text
	}
	var titles []string
	lines := [][]string{}
	if value < 0 {
		for i := range header {
			if _, is := given[i]; !is && !interval(i) {
				titles = append(titles, header[i])
			}
		}
		for _, row := range rows {
			var line []string
			for i := range header {
				if _, is := given[i]; !is && !interval(i) {
					line = append(line, cell(row, i))
				}
			}
			lines = append(lines, line)
		}
	} else {
		last := spread // what tells rows apart stands in front of what they say
		for i := range given {
			last = max(last, i)
		}
		var keys []int
		for i := range last {
			if _, is := given[i]; i != spread && !is {
				keys = append(keys, i)
			}
		}
		for _, i := range keys {
			titles = append(titles, header[i])
		}
		at := map[string]int{}
		for _, row := range rows {
			title := row[spread]
			if strings.ContainsAny(title[:1], "0123456789") {
				title = header[spread] + " " + title
			}
			if !slices.Contains(titles, title) {
				titles = append(titles, title)
			}
			var line []string
			for _, i := range keys {
				line = append(line, row[i])
			}
			key := strings.Join(line, "\x00")
			if _, is := at[key]; !is {
				at[key] = len(lines)
				lines = append(lines, line)
			}
			lines[at[key]] = append(lines[at[key]], cell(row, value))
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "| %s |\n|%s\n", strings.Join(titles, " | "), strings.Repeat("---|", len(titles)))
	for _, line := range lines {
		if len(line) != len(titles) {
			t.Fatalf("%s.csv by %q has a row of %d for %d columns: %q", name, how, len(line), len(titles), line)
		}
		text.WriteString("| " + strings.Join(line, " | ") + " |\n")
	}
	return text.String()
}

// threeDigits rounds a number to three digits, or to a whole number; words and whole numbers
// stay as they are.
func threeDigits(text string) string {
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || !strings.ContainsAny(text, ".e"):
		return text
	case x >= 100 || x <= -100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// What stands beside the pages of results is what their measurements come to today: claims,
// comparisons, tables and drawings, byte for byte. With -update it is written again.
func TestResultsAreMadeOfTheirMeasurements(t *testing.T) {
	if testing.Short() {
		t.Skip("works in one goroutine: the race detector has nothing to see")
	}
	data := filepath.Dir(filepath.Dir(realdata.File(t, "swf", cm5.file+".swf.gz")))
	for i := range Papers {
		name := Papers[i].Name
		t.Run(name, func(t *testing.T) {
			cells := filepath.Join(resultsFolder, "cells-"+name+".jsonl.gz")
			o := Options{Scale: Full, Seed: 1, Data: data, Sweep: Sweep{From: []string{cells}}}
			if *update {
				packMeasurements(t, &Papers[i], o, cells)
			}
			files := reported(t, &Papers[i], o)
			kept, err := os.ReadDir(filepath.Join(resultsFolder, name))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range kept {
				made, is := files[file.Name()]
				path := filepath.Join(resultsFolder, name, file.Name())
				switch {
				case !is:
					t.Errorf("%s: the report has no such file", path)
				case bytes.Equal(made, fileAt(t, path)):
				case *update:
					if err := os.WriteFile(path, made, 0o666); err != nil {
						t.Fatal(err)
					}
				default:
					t.Errorf("%s is not what the measurements come to; go test ./reproduce -run Results -update writes it again", path)
				}
			}
		})
	}
}

// The tables on the pages of results are what the files beside them say, and the verdicts are
// what parts.csv comes to: the worst verdict of the comparisons of each claim.
func TestResultsPagesAreWhatTheFilesBesideThemSay(t *testing.T) {
	for i := range Papers {
		name := Papers[i].Name
		t.Run(name, func(t *testing.T) {
			page := string(fileAt(t, resultsFolder, name+".md"))
			var shown []string
			want := tableOnPage.ReplaceAllStringFunc(page, func(text string) string {
				m := tableOnPage.FindStringSubmatch(text)
				first, _, _ := strings.Cut(text, "\n")
				rows := readCSV(t, fileAt(t, resultsFolder, name, m[1]+".csv"))
				shown = append(shown, m[1])
				table := ""
				switch {
				case m[1] != m[3]:
					t.Fatalf("the table from %s.csv ends as that of %s.csv", m[1], m[3])
				case m[1] == "claims":
					table = claimsTable(t, rows)
				case m[2] == "":
					table = pageTable(t, m[1], rows, nil)
				default:
					table = pageTable(t, m[1], rows, strings.Split(m[2][2:], ", "))
				}
				return first + "\n" + table + "<!-- end of " + m[1] + ".csv -->\n"
			})
			if !slices.Contains(shown, "claims") || len(shown) != strings.Count(page, "<!-- from ") {
				t.Fatalf("%s.md shows %q; want claims, and a table at each of %d places", name, shown, strings.Count(page, "<!-- from "))
			}
			if *update && want != page {
				if err := os.WriteFile(filepath.Join(resultsFolder, name+".md"), []byte(want), 0o666); err != nil {
					t.Fatal(err)
				}
				page = want
			}
			if page != want {
				t.Errorf("%s.md differs from the files beside it; go test ./reproduce -run Results -update writes it again", name)
			}

			worst := map[string]Verdict{}
			for _, row := range readCSV(t, fileAt(t, resultsFolder, name, "parts.csv"))[1:] {
				if row[9] == "words" && slices.Index(Verdicts(), Verdict(row[1])) >= slices.Index(Verdicts(), worst[row[0]]) {
					worst[row[0]] = Verdict(row[1])
				}
			}
			for _, row := range readCSV(t, fileAt(t, resultsFolder, name, "claims.csv"))[1:] {
				if worst[row[0]] != Verdict(row[1]) {
					t.Errorf("%s is %q in claims.csv and %q by parts.csv", row[0], row[1], worst[row[0]])
				}
			}
		})
	}
}

// reported makes the report of a paper and returns its files by name.
func reported(t *testing.T, p *Paper, o Options) map[string][]byte {
	t.Helper()
	report, _, err := p.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return filesOf(t, report)
}

// packMeasurements packs new measurements of a paper, if there are any, in the order of the plan.
func packMeasurements(t *testing.T, p *Paper, o Options, to string) {
	t.Helper()
	if *newCells == "" {
		return
	}
	o.Sweep.From = []string{filepath.Join(*newCells, "cells-"+p.Name+".jsonl")}
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(reported(t, p, o)["cells.jsonl"])
	}
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = os.WriteFile(to, out.Bytes(), 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}
