package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"

	"github.com/berth-hpc/berth/reproduce"
)

// repeatOnly takes one measurement again.
func (a *app) repeatOnly(ctx context.Context, paper *reproduce.Paper, options reproduce.Options, flags *reproduceFlags) error {
	cell, err := paper.Only(ctx, options, flags.only)
	switch {
	case errors.Is(err, context.Canceled):
		return &interrupted{kept: "nothing was written"}
	case err != nil:
		return err
	}
	if err := printCell(a.stdout, flags.format, cell); err != nil {
		return fmt.Errorf("writing the measurement: %w", err)
	}
	return nil
}

// cellOutput is what reproduce --only -o json writes.
type cellOutput struct {
	Cell   string        `json:"cell"`
	Values []valueOutput `json:"values"`
}

// valueOutput is one value of a measurement, null where there was nothing to
// measure.
type valueOutput struct {
	Name  string   `json:"name"`
	Value *float64 `json:"value"`
}

// printCell writes one measurement.
func printCell(w io.Writer, format string, cell *reproduce.Cell) error {
	out := cellOutput{Cell: cell.Key, Values: []valueOutput{}}
	for i, v := range cell.Values {
		value := valueOutput{Name: cell.Names[i]}
		if !math.IsNaN(v) {
			value.Value = &v
		}
		out.Values = append(out.Values, value)
	}
	if format == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(out)
	}
	rows := [][]string{{"name", "value"}}
	for _, v := range out.Values {
		text := ""
		if v.Value != nil {
			text = strconv.FormatFloat(*v.Value, 'g', -1, 64)
		}
		rows = append(rows, []string{v.Name, text})
	}
	if format == "csv" {
		return csv.NewWriter(w).WriteAll(rows)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows[1:] {
		_, _ = fmt.Fprintf(table, "%s\t%s\n", row[0], row[1]) // Flush tells
	}
	return table.Flush()
}
