package reproduce

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What stands around the table of claims in a page of docs/results.
const (
	tableBegins = "<!-- from claims.csv; go test ./reproduce -run ResultsPages -update writes it -->\n"
	tableEnds   = "<!-- end of claims.csv -->\n"
)

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

// The tables of claims on the pages of results are what the claims.csv beside them says, and
// that is what its parts.csv comes to: the worst verdict of the comparisons of each claim.
func TestResultsPagesAreWhatTheFilesBesideThemSay(t *testing.T) {
	for i := range Papers {
		name := Papers[i].Name
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join("..", "docs", "results")
			page := string(fileAt(t, folder, name+".md"))
			claims := readCSV(t, fileAt(t, folder, name, "claims.csv"))
			before, rest, begins := strings.Cut(page, tableBegins)
			_, after, ends := strings.Cut(rest, tableEnds)
			if !begins || !ends {
				t.Fatalf("%s.md has no place for the table: want the lines %q and %q", name, tableBegins, tableEnds)
			}
			want := before + tableBegins + claimsTable(t, claims) + tableEnds + after
			if *update && want != page {
				if err := os.WriteFile(filepath.Join(folder, name+".md"), []byte(want), 0o666); err != nil {
					t.Fatal(err)
				}
				page = want
			}
			if page != want {
				t.Errorf("%s.md differs from the claims.csv beside it; go test ./reproduce -run ResultsPages -update writes it again", name)
			}

			worst := map[string]Verdict{}
			for _, row := range readCSV(t, fileAt(t, folder, name, "parts.csv"))[1:] {
				if row[9] == "words" && slices.Index(Verdicts(), Verdict(row[1])) >= slices.Index(Verdicts(), worst[row[0]]) {
					worst[row[0]] = Verdict(row[1])
				}
			}
			for _, row := range claims[1:] {
				if worst[row[0]] != Verdict(row[1]) {
					t.Errorf("%s is %q in claims.csv and %q by parts.csv", row[0], row[1], worst[row[0]])
				}
			}
		})
	}
}
