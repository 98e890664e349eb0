package reproduce

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"github.com/berth-hpc/berth/measure"
)

// File is one file of a report.
type File struct {
	Name string
	Data []byte
}

// Files returns the report as files: claims.csv, parts.csv, for every figure an
// .svg and a .csv, for every table a .csv, cells.jsonl with every measurement,
// and report.html, which needs none of the others. Equal reports give equal
// bytes.
func (r *Report) Files() ([]File, error) {
	tables := []Table{r.claimTable(), r.partTable()}
	for i := range r.Figures {
		tables = append(tables, r.Figures[i].table())
	}
	tables = append(tables, r.Tables...)
	var files []File
	for i := range tables {
		var out bytes.Buffer
		if err := tables[i].writeCSV(&out); err != nil {
			return nil, fmt.Errorf("writing %s: %w", tables[i].Name, err)
		}
		files = append(files, File{tables[i].Name + ".csv", out.Bytes()})
	}
	for i := range r.Figures {
		var out bytes.Buffer
		if err := r.Figures[i].WriteSVG(&out); err != nil {
			return nil, fmt.Errorf("drawing %s: %w", r.Figures[i].Name, err)
		}
		files = append(files, File{r.Figures[i].Name + ".svg", out.Bytes()})
	}
	if r.Measurements != nil {
		files = append(files, File{"cells.jsonl", r.Measurements})
	}
	var page bytes.Buffer
	if err := r.WriteHTML(&page); err != nil {
		return nil, err
	}
	return append(files, File{"report.html", page.Bytes()}), nil
}

// WriteClaims writes the claims as claims.csv has them.
func (r *Report) WriteClaims(w io.Writer) error {
	t := r.claimTable()
	return t.writeCSV(w)
}

// WriteAllClaims writes the claims of several reports in that form, each id
// behind the paper's name and a slash.
func WriteAllClaims(w io.Writer, reports []*Report) error {
	var all Table
	for _, r := range reports {
		t := r.claimTable()
		all.Header = t.Header
		for _, row := range t.Rows {
			row[0] = r.Paper.Name + "/" + row[0]
			all.Rows = append(all.Rows, row)
		}
	}
	return all.writeCSV(w)
}

// claimTable has one row for each claim, with the numbers of the part on which
// its verdict rests.
func (r *Report) claimTable() Table {
	t := Table{Name: "claims", Header: []string{
		"id", "verdict", "paper", "ours", "quantity", "rule", "unit", "mean", "low", "high", "repetitions", "kind", "magnitude", "over", "revised",
	}}
	for i := range r.Claims {
		c := &r.Claims[i]
		p := c.Deciding()
		row := []string{c.ID, string(c.Verdict), c.Paper, c.Ours, p.What, p.Rule, p.Unit}
		row = append(row, numbers(p.Value, p.N)...)
		t.Rows = append(t.Rows, append(row, string(c.Kind), string(c.Magnitude), c.over(), c.Revised))
	}
	return t
}

// partTable has one row for each part of each claim.
func (r *Report) partTable() Table {
	t := Table{Name: "parts", Header: []string{
		"id", "verdict", "quantity", "rule", "unit", "mean", "low", "high", "repetitions", "about",
	}}
	for i := range r.Claims {
		for k := range r.Claims[i].Parts {
			p := &r.Claims[i].Parts[k]
			row := []string{r.Claims[i].ID, string(p.Verdict), p.What, p.Rule, p.Unit}
			t.Rows = append(t.Rows, append(append(row, numbers(p.Value, p.N)...), p.about()))
		}
	}
	return t
}

func (t *Table) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	// Errors stay with the writer until Flush.
	_ = out.Write(t.Header)
	for _, row := range t.Rows {
		_ = out.Write(row)
	}
	out.Flush()
	return out.Error()
}

// numbers writes an estimate as mean, low, high and how many values it is of.
func numbers(e measure.Estimate, n int) []string { return append(e.Columns(digits), strconv.Itoa(n)) }

// digits writes a number with six digits that matter: more than the data bear
// out, and few enough that the last bits of a sum do not show.
func digits(x float64) string {
	text := strconv.FormatFloat(x, 'g', 6, 64)
	if text == "-0" {
		return "0"
	}
	return text
}
