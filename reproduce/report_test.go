package reproduce

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
)

// oneGoroutine leaves a test out of short runs, such as those under the race detector.
func oneGoroutine(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("works in one goroutine: the race detector has nothing to see")
	}
}

// reports returns a report of each paper over made data.
func reports(t *testing.T) []*Report {
	t.Helper()
	waiting, grid := waitingAs(), gridAs()
	for i := range waiting.search { // the table wants everything
		c := &waiting.search[i]
		for _, m := range []*waitingMeans{&c.sequential, &c.eager} {
			m.acceptance, m.narrow, m.wide = around(70), around(80), around(30)
		}
	}
	for i := range waiting.loads {
		waiting.loads[i].sequential.utilization, waiting.loads[i].eager.utilization = around(70), around(69)
	}
	rects, mixed, aware := rectAs(), mixedAs(), awareAs()
	found := map[string]findings{
		"mixed-parallel": {
			Setting: mixedRows(madeScale, allLogs()), Notes: mixedNotes(allLogs()), Claims: mixedClaims(mixed),
			Figures: mixedFigures(mixed), Tables: mixedTables(mixed),
		},
		"availability": {
			Setting: rectRows(quickRects, true), Notes: rectNotes(true), Claims: rectClaims(rects),
			Figures: rectFigures(rects), Tables: []Table{rectTable(rects)},
		},
		"waiting-time": {
			Setting: waitingRows(quickWaiting), Notes: waitingNotes, Claims: waitingClaims(waiting),
			Figures: waitingFigures(waiting), Tables: []Table{searchTable(waiting.search)},
		},
		"dynamic-priority": {
			Setting: gridRows(4), Notes: gridNotes(grid), Claims: gridClaims(grid), Figures: gridFigures(grid),
		},
		"application-aware": {
			Setting: awareRows(madeAware, madeMeasured), Notes: awareNotes(madeMeasured), Claims: awareClaims(aware),
			Figures: awareFigures(aware), Tables: awareTables(aware),
		},
		"deviating-workflows": {
			Setting: deviatingRows(quickDeviating, allLogs()), Notes: deviatingNotes, Claims: deviatingClaims(deviatingAs()),
			Figures: deviatingFigures(deviatingAs()), Tables: []Table{deviatingTable(deviatingAs())},
		},
	}
	var all []*Report
	for i := range Papers {
		r := &Report{
			Paper: &Papers[i], Scale: Quick, Seed: 1, Repetitions: 4, findings: found[Papers[i].Name],
			Command: "berth reproduce " + Papers[i].Name + " --scale quick --seed 1 --out " + Papers[i].Name,
		}
		for k := range r.Claims {
			r.Claims[k].settle()
		}
		all = append(all, r)
	}
	return all
}

func filesOf(t *testing.T, r *Report) map[string][]byte {
	t.Helper()
	list, err := r.Files()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, f := range list {
		if files[f.Name] != nil || len(f.Data) == 0 {
			t.Errorf("%s is there twice, or empty", f.Name)
		}
		files[f.Name] = f.Data
	}
	return files
}

func readCSV(t *testing.T, data []byte) [][]string {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestFilesOfAReport(t *testing.T) {
	oneGoroutine(t)
	for _, r := range reports(t) {
		t.Run(r.Paper.Name, func(t *testing.T) {
			files := filesOf(t, r)
			if !maps.EqualFunc(files, filesOf(t, r), bytes.Equal) {
				t.Error("the same report gives other bytes")
			}
			want := 3 + 2*len(r.Figures) + len(r.Tables)
			if len(files) != want {
				t.Errorf("%d files, want %d", len(files), want)
			}
			claims := readCSV(t, files["claims.csv"])
			if got := strings.Join(claims[0], ","); got != "id,verdict,paper,ours,quantity,rule,unit,mean,low,high,repetitions,kind,magnitude,over,revised" {
				t.Errorf("claims.csv has %s", got)
			}
			for i, row := range claims[1:] {
				c := &r.Claims[i]
				if row[0] != c.ID || row[1] != string(c.Verdict) || row[2] != c.Paper || row[3] != c.Ours || row[4] == "" || row[7] == "" || row[11] != string(c.Kind) || row[12] != string(c.Magnitude) {
					t.Errorf("row %q of claim %s", row, c.ID)
				}
			}
			parts := 0
			for i := range r.Claims {
				parts += len(r.Claims[i].Parts)
			}
			if rows := readCSV(t, files["parts.csv"]); len(rows) != parts+1 {
				t.Errorf("%d rows for %d parts", len(rows), parts)
			}
			for i := range r.Figures {
				f := &r.Figures[i]
				points := 0
				for _, s := range f.Series {
					points += len(s.Points)
				}
				rows := readCSV(t, files[f.Name+".csv"])
				if len(rows) != points+1 || strings.Join(rows[0], ",") != "series,x,label,mean,low,high,repetitions" {
					t.Errorf("%s: %d rows for %d points, %q", f.Name, len(rows), points, rows[0])
				}
				for _, row := range rows[1:] {
					if slices.Contains(row[3:], "") {
						t.Errorf("%s: no number in %q", f.Name, row)
					}
				}
				wellFormed(t, f.Name, files[f.Name+".svg"])
			}
		})
	}
}

func wellFormed(t *testing.T, name string, data []byte) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(data))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
	}
}

// The page refers to nothing outside, has every claim with its verdict and the
// command, every figure once, links that lead somewhere, and colours for a dark
// page.
func TestPageOfAReport(t *testing.T) {
	oneGoroutine(t)
	for _, r := range reports(t) {
		t.Run(r.Paper.Name, func(t *testing.T) {
			page := string(filesOf(t, r)["report.html"])
			for _, outside := range []string{"<script", "<link", "<img", " src=", "url(", "@import"} {
				if strings.Contains(page, outside) {
					t.Errorf("the page has %s", outside)
				}
			}
			for _, address := range regexp.MustCompile(`[a-z]+://[^"\s]+`).FindAllString(page, -1) {
				if address != "http://www.w3.org/2000/svg" && address != "http://www.w3.org/1999/xlink" {
					t.Errorf("the page names %s", address)
				}
			}
			for _, link := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(page, -1) {
				if target, within := strings.CutPrefix(link[1], "#"); !within || strings.Count(page, `id="`+target+`"`) != 1 {
					t.Errorf("link to %q", link[1])
				}
			}
			if !strings.Contains(page, "prefers-color-scheme: dark") || !strings.Contains(page, "--chart-ink:#E3E7EA") ||
				!strings.Contains(page, "fill:var(--chart-ink,#22262B)") {
				t.Error("no colours for a dark page")
			}
			if n := strings.Count(page, "<code>"+r.Command+"</code>"); n != len(r.Claims)+1 {
				t.Errorf("the command is there %d times", n)
			}
			if n := strings.Count(page, "<svg"); n != len(r.Figures) {
				t.Errorf("%d drawings of %d figures", n, len(r.Figures))
			}
			for i := range r.Claims {
				c := &r.Claims[i]
				heading := regexp.MustCompile(`<h2>` + c.ID + ` <span class="verdict \w+">. ` + string(c.Verdict) + `</span></h2>`)
				if !heading.MatchString(page) {
					t.Errorf("no heading of %s, %s", c.ID, c.Verdict)
				}
				if c.Figure != "" && !slices.ContainsFunc(r.Figures, func(f Figure) bool { return f.Name == c.Figure }) {
					t.Errorf("%s points to the figure %s, which is not there", c.ID, c.Figure)
				}
			}
		})
	}
}

// One page over all papers refers to nothing outside, has every claim of every
// paper with its verdict, figure and command, and links that lead somewhere; the
// list of claims names the papers.
func TestPageOverAllPapers(t *testing.T) {
	oneGoroutine(t)
	all := reports(t)
	var page, list bytes.Buffer
	if err := WriteAllHTML(&page, "berth reproduce all", all); err != nil {
		t.Fatal(err)
	}
	if err := WriteAllClaims(&list, all); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	for _, outside := range []string{"<script", "<link", "<img", " src=", "url(", "@import"} {
		if strings.Contains(text, outside) {
			t.Errorf("the page has %s", outside)
		}
	}
	for _, link := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(text, -1) {
		if target, within := strings.CutPrefix(link[1], "#"); !within || strings.Count(text, `id="`+target+`"`) != 1 {
			t.Errorf("link to %q", link[1])
		}
	}
	rows := readCSV(t, list.Bytes())[1:]
	n := 0
	for _, r := range all {
		figures := map[string]bool{}
		for i := range r.Claims {
			c := &r.Claims[i]
			if id := r.Paper.Name + "/" + c.ID; rows[n][0] != id || rows[n][1] != string(c.Verdict) {
				t.Errorf("row %q of %s, %s", rows[n][:2], id, c.Verdict)
			}
			n++
			if strings.Count(text, `<section id="`+r.Paper.Name+"-"+c.ID+`">`) != 1 {
				t.Errorf("no section of %s/%s", r.Paper.Name, c.ID)
			}
			if c.Figure != "" && !figures[c.Figure] {
				figures[c.Figure] = true
				if strings.Count(text, `<figure id="`+r.Paper.Name+"-"+c.Figure+`"`) != 1 {
					t.Errorf("the figure %s of %s is not there once", c.Figure, r.Paper.Name)
				}
			}
		}
		if got := strings.Count(text, "<code>"+r.Command+"</code>"); got != len(r.Claims) {
			t.Errorf("the command of %s is there %d times", r.Paper.Name, got)
		}
	}
	if n != len(rows) {
		t.Errorf("%d rows for %d claims", len(rows), n)
	}
}

// What cannot be measured leaves gaps, not faults: one repetition has no
// intervals.
func TestReportWithoutIntervals(t *testing.T) {
	r := reports(t)[0]
	one := sample{7}
	r.Claims = []Claim{{ID: "X", Parts: []Part{part("it", "s", one, above()), part("nothing", "", nil, above())}}}
	r.Figures = []Figure{{Name: "x", Series: []Series{line("a", []float64{1, 2}, nil, []sample{one, {math.NaN()}})}}}
	r.Claims[0].settle()
	files := filesOf(t, r)
	if !strings.Contains(string(files["report.html"]), "– not testable") {
		t.Error("the page does not say that nothing is testable")
	}
	if got := string(files["x.csv"]); got != "series,x,label,mean,low,high,repetitions\na,1,,7,,,1\na,2,,,,,0\n" {
		t.Errorf("x.csv is %q", got)
	}
	r.Figures[0].Series[0].Points = nil
	if _, err := r.Files(); err == nil {
		t.Error("no error about a figure of nothing")
	}
}

func TestOptions(t *testing.T) {
	p, ok := PaperNamed("waiting-time")
	if !ok {
		t.Fatal("no paper waiting-time")
	}
	if _, ok := PaperNamed("waiting"); ok {
		t.Error("a paper waiting")
	}
	for field, o := range map[string]Options{
		"scale": {Scale: "huge"}, "repetitions": {Repetitions: -1}, "seed": {Seed: math.MaxUint64},
	} {
		_, _, err := p.Run(t.Context(), o)
		if e, ok := errors.AsType[*berth.Error](err); !ok || e.Field != field || e.Code != berth.Invalid {
			t.Errorf("error %v about %s", err, field)
		}
	}
	for want, o := range map[string]Options{
		"berth reproduce p --scale quick --seed 1 --out p":                {Scale: Quick, Seed: 1},
		"berth reproduce p --scale full --seed 0 --repetitions 7 --out p": {Scale: Full, Repetitions: 7},
	} {
		s := &session{Options: o, repetitions: o.Repetitions}
		if got := s.command("p"); got != want {
			t.Errorf("command %q, want %q", got, want)
		}
	}
}
