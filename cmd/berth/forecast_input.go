package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/forecast"
	"github.com/berth-hpc/berth/workload"
)

// measured is one series of a file.
type measured struct {
	name    string // the values of the --by columns; empty without
	samples []forecast.Sample
}

// measurements is what a file holds, series in order of appearance.
type measurements struct {
	series  []*measured
	column  string // that was read
	title   string // its name, cut short
	missing int    // empty values
	sorted  bool   // some series was not in order of time
	// report counts rows, of which bad ones are passed over.
	report workload.Report
}

// badRow is what is wrong with a row.
type badRow struct {
	line         int
	column, text string
}

func (b *badRow) error(file string) error {
	return berth.Errorf(berth.Invalid, b.column, "%s:%d: %s", file, b.line, b.text)
}

// bad counts a bad row. With strict it is an error.
func (m *measurements) bad(b *badRow, strict bool) error {
	m.report.Bad++
	if len(m.report.FirstBad) < workload.MaxFirstBad {
		m.report.FirstBad = append(m.report.FirstBad, workload.BadLine{Line: b.line, Field: b.column, Want: b.text})
	}
	if strict {
		return b.error(m.report.Name)
	}
	return nil
}

// The names a time column may have, before the first column is taken for it.
var timeNames = []string{"time", "timestamp", "unix_time", "datetime", "date", "at"}

// The texts that stand for a value that is missing.
var missingWords = []string{"", "NA", "N/A", "NaN", "nan", "null", "-"}

// mostTitle is how many letters of a column's name a title shows.
const mostTitle = 40

// mostValue bounds a value, so that sums and squares of any number stay finite.
const mostValue = 1e18

// tableReader reads the columns of a CSV file by name.
type tableReader struct {
	file    string
	csv     *csv.Reader
	columns []string
}

func (r *tableReader) badf(column, format string, args ...any) *badRow {
	line, _ := r.csv.FieldPos(0)
	return &badRow{line, column, fmt.Sprintf(format, args...)}
}

// wrong words what the CSV reader says of a row; nil if it says nothing of it, but
// tells an error of the disk or the compression, which is worded there.
func (r *tableReader) wrong(err error) *badRow {
	var fault *csv.ParseError
	switch {
	case !errors.As(err, &fault):
		return nil
	case errors.Is(fault.Err, csv.ErrFieldCount):
		return &badRow{fault.Line, "", fmt.Sprintf("another number of fields than the %d columns of the first line", len(r.columns))}
	}
	return &badRow{fault.Line, "", fault.Err.Error()}
}

// index returns where a named column is.
func (r *tableReader) index(flag, name string) (int, error) {
	i := slices.Index(r.columns, name)
	if i < 0 {
		return 0, berth.Errorf(berth.Invalid, flag, "%s: %s", r.file, unknown("column", name, r.columns))
	}
	return i, nil
}

// timeColumn finds the column of times.
func (r *tableReader) timeColumn(name string) (int, error) {
	if name != "" {
		return r.index("time", name)
	}
	for _, known := range timeNames {
		if i := slices.IndexFunc(r.columns, func(c string) bool { return strings.EqualFold(c, known) }); i >= 0 {
			return i, nil
		}
	}
	return 0, nil
}

// readMeasurements reads a CSV file with a line of names: a column of times, one
// of values and, with --by, some that tell series apart.
func readMeasurements(in io.Reader, file string, flags *forecastFlags) (*measurements, error) {
	r := &tableReader{file: file, csv: csv.NewReader(in)}
	r.csv.TrimLeadingSpace = true
	header, err := r.csv.Read()
	switch {
	case errors.Is(err, io.EOF):
		return nil, berth.Errorf(berth.Invalid, "", "%s: empty; want a line of column names and then values", file)
	case err != nil:
		if bad := r.wrong(err); bad != nil {
			return nil, bad.error(file)
		}
		return nil, err
	}
	for _, name := range header {
		r.columns = append(r.columns, strings.TrimSpace(strings.TrimPrefix(name, "\ufeff")))
	}
	if !slices.ContainsFunc(r.columns, func(name string) bool { return !isNumber(name) }) {
		return nil, berth.Errorf(berth.Invalid, "", "%s:1: all columns have numbers for names, %s; want a line of column names before the values", file, strings.Join(r.columns, ", "))
	}
	at, err := r.timeColumn(flags.time)
	if err != nil {
		return nil, err
	}
	by := make([]int, len(flags.by))
	for i, name := range flags.by {
		if by[i], err = r.index("by", name); err != nil {
			return nil, err
		}
	}
	value, err := r.valueColumn(flags.column, at)
	if err != nil {
		return nil, err
	}
	m := &measurements{column: r.columns[value], title: r.columns[value], report: workload.Report{Name: file}}
	if runes := []rune(m.title); len(runes) > mostTitle {
		m.title = string(runes[:mostTitle]) + "…"
	}
	return m, m.read(r, at, value, by, flags)
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// valueColumn finds the column of values: the named one, or the only one besides
// the times.
func (r *tableReader) valueColumn(name string, at int) (int, error) {
	if name != "" {
		return r.index("column", name)
	}
	if len(r.columns) == 2 {
		return 1 - at, nil
	}
	if len(r.columns) == 1 {
		hint := ""
		if strings.ContainsAny(r.columns[0], ";\t|") {
			hint = "; columns are told apart by commas"
		}
		return 0, berth.Errorf(berth.Invalid, "column", "%s has the only column %q; want one of times and one of values%s", r.file, r.columns[0], hint)
	}
	return 0, berth.Errorf(berth.Invalid, "column", "missing; %s has the columns %s", r.file, strings.Join(r.columns, ", "))
}

func (m *measurements) read(r *tableReader, at, value int, by []int, flags *forecastFlags) error {
	found := map[string]*measured{}
	var first *badRow
	for {
		row, err := r.csv.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		m.report.Records++
		bad := r.wrong(err)
		if err != nil && bad == nil {
			return err
		}
		if bad == nil {
			bad = m.take(r, row, at, value, by, found, flags)
		}
		if bad != nil {
			if first == nil {
				first = bad
			}
			if err := m.bad(bad, flags.strict); err != nil {
				return err
			}
		}
	}
	m.report.Usable = m.report.Records - m.report.Bad
	if len(m.series) == 0 {
		switch {
		case first != nil:
			return first.error(r.file)
		case flags.only != "":
			return berth.Errorf(berth.Invalid, "only", "%s has no values with %s = %s", r.file, strings.Join(flags.by, ","), flags.only)
		}
		return berth.Errorf(berth.Invalid, m.column, "%s: no values", r.file)
	}
	for _, s := range m.series {
		byTime := func(a, b forecast.Sample) int { return int(a.At - b.At) }
		if !slices.IsSortedFunc(s.samples, byTime) {
			slices.SortStableFunc(s.samples, byTime)
			m.sorted = true
		}
	}
	return nil
}

// take takes the measurement of a row into its series, and says what is wrong with
// the row.
func (m *measurements) take(r *tableReader, row []string, at, value int, by []int, found map[string]*measured, flags *forecastFlags) *badRow {
	keys := make([]string, len(by))
	for i, column := range by {
		keys[i] = row[column]
	}
	name := strings.Join(keys, ",")
	if flags.only != "" && name != flags.only {
		return nil
	}
	t, err := parseStamp(row[at])
	if err != nil {
		return r.badf(r.columns[at], "%v", err)
	}
	text := strings.TrimSpace(row[value])
	if slices.Contains(missingWords, text) {
		m.missing++
		return nil
	}
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(x):
		return r.badf(m.column, "%q is no number; want one, or nothing where there is no value", text)
	case math.Abs(x) > mostValue:
		return r.badf(m.column, "%q; want a number of at most 1e18", text)
	case x < 0 && flags.unit.name != "":
		return r.badf(m.column, "%q; want a number of at least 0, for it is in %s", text, flags.unit.name)
	}
	if found[name] == nil {
		found[name] = &measured{name: name}
		m.series = append(m.series, found[name])
	}
	found[name].samples = append(found[name].samples, forecast.Sample{At: t, Value: x})
	return nil
}

// stampLayouts are the forms of a time besides seconds of the Unix epoch; without
// a zone it is UTC.
var stampLayouts = []string{time.RFC3339, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02"}

// endOfDates is the first second of the year 10000.
const endOfDates = 253_402_300_800

// parseStamp reads a time, whose fractions of a second are cut off.
func parseStamp(text string) (berth.Time, error) {
	text = strings.TrimSpace(text)
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err == nil && math.Abs(x) >= endOfDates:
		return 0, fmt.Errorf("%q is beyond the year 9999; want seconds since 1970, not milliseconds", text)
	case err == nil && !math.IsNaN(x):
		return berth.Time(math.Floor(x)), nil
	}
	for _, layout := range stampLayouts {
		if t, err := time.Parse(layout, text); err == nil && berth.Time(t.Unix()).Valid() {
			return berth.Time(t.Unix()), nil
		}
	}
	return 0, fmt.Errorf("%q is no time; want seconds since 1970, 2026-11-21T18:00:00Z or 2026-11-21 18:00:00 (UTC)", text)
}

// rate is what the values of a series mean.
type rate struct {
	name  string
	bytes float64 // of a value of 1: each second, or each period if it is an amount
	total bool    // an amount in each period and not a rate
}

// rates are the units of --unit.
var rates = []rate{
	{"bit/s", 1. / 8, false},
	{"kbit/s", 1e3 / 8, false},
	{"Mbit/s", 1e6 / 8, false},
	{"Gbit/s", 1e9 / 8, false},
	{"B/s", 1, false},
	{"kB/s", 1e3, false},
	{"MB/s", 1e6, false},
	{"GB/s", 1e9, false},
	{"bit", 1. / 8, true},
	{"B", 1, true},
}

func rateNames() []string { return namesOf(rates, func(r rate) string { return r.name }) }

// rateOf reads a unit.
type rateOf struct{ value *rate }

func (r *rateOf) Type() string { return "UNIT" }

func (r *rateOf) String() string {
	if r.value == nil {
		return ""
	}
	return r.value.name
}

func (r *rateOf) Set(text string) error {
	i := slices.IndexFunc(rates, func(known rate) bool { return known.name == text })
	if i < 0 {
		return errors.New(unknown("unit", text, rateNames()))
	}
	*r.value = rates[i]
	return nil
}

// link says how a forecast in this unit becomes bytes, of which at least so many
// MB/s are moved.
func (r rate) link(period berth.Duration, leastRate float64) forecast.Link {
	link := forecast.Link{Period: period, BytesPerUnit: r.bytes, LeastBytes: int64(leastRate * 1e6 * float64(period))}
	if !r.total {
		link.BytesPerUnit *= float64(period)
	}
	return link
}
