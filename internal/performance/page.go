package performance

import (
	"bytes"
	"fmt"
	"strings"
	"text/template"

	"github.com/berth-hpc/berth"
)

// Page returns the page: the template with a table of the file wherever it says {{table "name"}}, and the counts where
// it says {{counts}}. {{measured "name" "command"}} places a table that may not be there, and then says which command makes it. A
// table that is placed nowhere, twice, or is not there otherwise is an error of code Invalid.
func (f *File) Page(text string) ([]byte, error) {
	placed := map[string]bool{}
	table := func(name string) (string, error) {
		t := f.Table(name)
		if t == nil || placed[name] {
			return "", berth.Errorf(berth.Invalid, "table", "%q is not in the measurements, or placed twice", name)
		}
		placed[name] = true
		return t.markdown(), nil
	}
	page, err := template.New("page").Funcs(template.FuncMap{
		"table": table,
		"measured": func(name, by string) (string, error) {
			if f.Table(name) == nil {
				return "Not measured yet by `" + by + "`.", nil
			}
			return table(name)
		},
		"counts": func() string { return f.Counts.markdown() },
	}).Parse(text)
	if err != nil {
		return nil, berth.Errorf(berth.Invalid, "page", "%v", err)
	}
	var out bytes.Buffer
	if err := page.Execute(&out, nil); err != nil {
		return nil, berth.Errorf(berth.Invalid, "page", "%v", err)
	}
	for i := range f.Tables {
		if !placed[f.Tables[i].Name] {
			return nil, berth.Errorf(berth.Invalid, "table", "the page does not place %q", f.Tables[i].Name)
		}
	}
	return out.Bytes(), nil
}

// markdown returns the table with a column that says how old each row is, and its packages below.
func (t *Table) markdown() string {
	var out strings.Builder
	head(&out, append(append([]string{}, t.Columns...), "code"))
	for i := range t.Rows {
		line(&out, append(append([]string{}, t.Rows[i].Cells...), t.Rows[i].age()))
	}
	about := "Packages"
	if t.Record {
		about = "A record of then; packages"
	}
	fmt.Fprintf(&out, "\n%s: `%s`.", about, strings.Join(t.Packages, "`, `"))
	return out.String()
}

// age says which code the row is about.
func (r *Row) age() string {
	text := "`" + r.Of() + "`"
	if r.Commit == "" {
		text = "≤ " + text
	}
	if r.Packages != nil {
		text += " of `" + strings.Join(r.Packages, "`, `") + "`"
	}
	if r.Since > 0 {
		text += fmt.Sprintf(", %d+", r.Since)
	}
	return text
}

func (c *Counts) markdown() string {
	var out strings.Builder
	head(&out, []string{"work", "per", "allocations", "bytes"})
	for _, r := range c.Rows {
		line(&out, []string{r.Name, r.Per, fmt.Sprintf("%.2f", r.Allocations), fmt.Sprintf("%.0f", r.Bytes)})
	}
	fmt.Fprintf(&out, "\nCounted with %s.", c.Go)
	return out.String()
}

func head(out *strings.Builder, cells []string) {
	line(out, cells)
	out.WriteString("|" + strings.Repeat("---|", len(cells)) + "\n")
}

func line(out *strings.Builder, cells []string) {
	for _, cell := range cells {
		out.WriteString("|")
		if cell != "" {
			out.WriteString(" " + cell)
		}
		out.WriteString(" ")
	}
	out.WriteString("|\n")
}
