package performance

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/berth-hpc/berth"
)

// Put puts measured rows into the measurements of a checkout, as of the commit that is checked out: in place of rows of the table
// with the same first cell, or behind the others. The table's packages and columns are those of t, and it
// is made if it is not there. An error of code Conflict says that the code is not that of a commit,
// Invalid that a row has not a cell for each column.
func Put(ctx context.Context, root string, t *Table, cells [][]string) error {
	commit, err := NewHistory(ctx, root).Head()
	if err != nil {
		return err
	}
	path := filepath.Join(root, "docs", "performance", "measurements.json")
	f, err := Read(path)
	if err != nil {
		return err
	}
	if err := f.put(commit, t, cells); err != nil {
		return err
	}
	return f.Write(path)
}

func (f *File) put(commit string, t *Table, cells [][]string) error {
	had := f.Table(t.Name)
	if had == nil {
		f.Tables = append(f.Tables, Table{Name: t.Name})
		had = &f.Tables[len(f.Tables)-1]
	}
	if len(had.Rows) > 0 && !slices.Equal(had.Columns, t.Columns) {
		return berth.Errorf(berth.Invalid, "columns", "%s has the columns %q and is measured with %q", t.Name, had.Columns, t.Columns)
	}
	had.Packages, had.Columns = t.Packages, t.Columns
	for _, c := range cells {
		row := Row{Commit: commit, Cells: c}
		if err := had.check(&row); err != nil {
			return err
		}
		if i := slices.IndexFunc(had.Rows, func(r Row) bool { return r.Cells[0] == c[0] }); i >= 0 {
			had.Rows[i] = row
		} else {
			had.Rows = append(had.Rows, row)
		}
	}
	return nil
}
