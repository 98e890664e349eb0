package workload

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
	"github.com/berth-hpc/berth/internal/nearest"
)

// MeasurementOptions say which measurements of a file are taken. The zero value takes
// all of a file of two columns.
type MeasurementOptions struct {
	Column string // of values; empty for the only one beside the times
	// Time is the column of times; empty for the first that has one of the usual
	// names, else the first.
	Time string
	By   []string // columns whose values tell series apart
	Only string   // the one series to take, by those values between commas; empty for all
	// Unit is what a value is, if it is an amount, which is at least 0.
	Unit   string
	Strict bool // make the first bad row an error
}

// Measured is one series of a file.
type Measured struct {
	Name    string            // the values of the By columns; empty without
	Samples []forecast.Sample // at least one, in order of time
}

// Measurements is what a file holds, series in order of appearance.
type Measurements struct {
	Series  []*Measured // at least one
	Column  string      // that was read
	Missing int         // empty values
	Sorted  bool        // some series was not in order of time
	// Report counts rows; bad ones are passed over.
	Report Report
}

// The names a time column may have, before the first column is taken for it.
var timeNames = []string{"time", "timestamp", "unix_time", "datetime", "date", "at"}

// The texts that stand for a value that is missing.
var missingWords = []string{"", "NA", "N/A", "NaN", "nan", "null", "-"}

// mostValue bounds a value, so that sums and squares of any number stay finite.
const mostValue = 1e18

// measurementReader reads the columns of a CSV file by name.
type measurementReader struct {
	*Measurements
	opt     MeasurementOptions
	csv     *csv.Reader
	columns []string
	at      int // the column of times
	value   int
	by      []int
	found   map[string]*Measured
}

// OpenMeasurements reads a CSV file of measurements, gzip-compressed or not; see
// ReadMeasurements. That it is absent, closed to us or a folder is an *berth.Error of
// code Invalid.
func OpenMeasurements(path string, opt MeasurementOptions) (*Measurements, error) {
	file, err := openFile("", path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read from: nothing can be lost
	return ReadMeasurements(file, path, opt)
}

// ReadMeasurements reads measurements from CSV with a line of names: a column of times,
// one of values and some that tell series apart. Times are seconds since 1970 or dates,
// in UTC unless they have a zone. Bad rows are counted, the first few kept, and passed
// over; in strict mode the first one is the error. A file without a value is an error,
// the first bad row if there is one. Errors are of code Invalid, but for those of r.
// Cost: O(bytes), plus a sort of a series that is not in order.
func ReadMeasurements(in io.Reader, name string, opt MeasurementOptions) (*Measurements, error) {
	buffered, err := newLines(in, name)
	if err != nil {
		return nil, err
	}
	r := &measurementReader{
		Measurements: &Measurements{Report: Report{Name: name}},
		opt:          opt, csv: csv.NewReader(buffered.buf), found: map[string]*Measured{},
	}
	r.csv.TrimLeadingSpace = true
	if err := r.header(); err != nil {
		return nil, r.failure(buffered, err)
	}
	if err := r.rows(); err != nil {
		return nil, r.failure(buffered, err)
	}
	return r.Measurements, nil
}

// failure words an error of the reader below; others are worded already.
func (r *measurementReader) failure(l *lines, err error) error {
	if _, worded := errors.AsType[*berth.Error](err); worded {
		return err
	}
	l.number, _ = r.csv.FieldPos(0)
	return refield(l.failure(err), "")
}

// header reads the line of names and finds the columns.
func (r *measurementReader) header() error {
	header, err := r.csv.Read()
	switch {
	case errors.Is(err, io.EOF):
		return berth.Errorf(berth.Invalid, "", "%s: empty; want a line of column names and then values", r.Report.Name)
	case err != nil:
		if bad := r.wrong(err); bad != nil {
			return bad.error(r.Report.Name)
		}
		return err
	}
	for _, name := range header {
		r.columns = append(r.columns, strings.TrimSpace(name))
	}
	if !slices.ContainsFunc(r.columns, func(name string) bool { return !isNumber(name) }) {
		return berth.Errorf(berth.Invalid, "", "%s:1: all columns have numbers for names, %s; want a line of column names before the values", r.Report.Name, strings.Join(r.columns, ", "))
	}
	if r.at, err = r.timeColumn(); err != nil {
		return err
	}
	for _, name := range r.opt.By {
		column, err := r.index("by", name)
		if err != nil {
			return err
		}
		r.by = append(r.by, column)
	}
	if r.value, err = r.valueColumn(); err != nil {
		return err
	}
	r.Column = r.columns[r.value]
	return nil
}

// wrong words what the CSV reader says of a row; nil if it says nothing of it, but
// tells an error of the disk or the compression.
func (r *measurementReader) wrong(err error) *BadLine {
	var fault *csv.ParseError
	switch {
	case !errors.As(err, &fault):
		return nil
	case errors.Is(fault.Err, csv.ErrFieldCount):
		return &BadLine{Line: fault.Line, Want: fmt.Sprintf("another number of fields than the %d columns of the first line", len(r.columns))}
	}
	return &BadLine{Line: fault.Line, Want: fault.Err.Error()}
}

// index returns where a named column is.
func (r *measurementReader) index(option, name string) (int, error) {
	i := slices.Index(r.columns, name)
	if i < 0 {
		return 0, berth.Errorf(berth.Invalid, option, "%s: %s", r.Report.Name, nearest.Unknown("column", name, r.columns))
	}
	return i, nil
}

// timeColumn finds the column of times.
func (r *measurementReader) timeColumn() (int, error) {
	if r.opt.Time != "" {
		return r.index("time", r.opt.Time)
	}
	for _, known := range timeNames {
		if i := slices.IndexFunc(r.columns, func(c string) bool { return strings.EqualFold(c, known) }); i >= 0 {
			return i, nil
		}
	}
	return 0, nil
}

// valueColumn finds the column of values: the named one, or the only one besides
// the times.
func (r *measurementReader) valueColumn() (int, error) {
	switch name := r.Report.Name; {
	case r.opt.Column != "":
		return r.index("column", r.opt.Column)
	case len(r.columns) == 2:
		return 1 - r.at, nil
	case len(r.columns) == 1:
		hint := ""
		if strings.ContainsAny(r.columns[0], ";\t|") {
			hint = "; columns are told apart by commas"
		}
		return 0, berth.Errorf(berth.Invalid, "column", "%s has the only column %q; want one of times and one of values%s", name, r.columns[0], hint)
	default:
		return 0, berth.Errorf(berth.Invalid, "column", "missing; %s has the columns %s", name, strings.Join(r.columns, ", "))
	}
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// rows reads the measurements.
func (r *measurementReader) rows() error {
	for {
		row, err := r.csv.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		bad := r.wrong(err)
		if err != nil && bad == nil {
			return err
		}
		r.Report.Records++
		if bad == nil {
			bad = r.take(row)
		}
		if bad != nil {
			if err := r.Report.bad(bad, r.opt.Strict); err != nil {
				return err
			}
		}
	}
	r.Report.Usable = r.Report.Records - r.Report.Bad
	if len(r.Series) == 0 {
		switch {
		case r.Report.Bad > 0:
			return r.Report.FirstBad[0].error(r.Report.Name)
		case r.opt.Only != "":
			return berth.Errorf(berth.Invalid, "only", "%s has no values with %s = %s", r.Report.Name, strings.Join(r.opt.By, ","), r.opt.Only)
		}
		return berth.Errorf(berth.Invalid, r.Column, "%s: no values", r.Report.Name)
	}
	for _, s := range r.Series {
		byTime := func(a, b forecast.Sample) int { return int(a.At - b.At) }
		if !slices.IsSortedFunc(s.Samples, byTime) {
			slices.SortStableFunc(s.Samples, byTime)
			r.Sorted = true
		}
	}
	return nil
}

// take takes the measurement of a row into its series, and says what is wrong with
// the row.
func (r *measurementReader) take(row []string) *BadLine {
	keys := make([]string, len(r.by))
	for i, column := range r.by {
		keys[i] = row[column]
	}
	name := strings.Join(keys, ",")
	if r.opt.Only != "" && name != r.opt.Only {
		return nil
	}
	badf := func(column, format string, args ...any) *BadLine {
		line, _ := r.csv.FieldPos(0)
		return &BadLine{Line: line, Field: column, Want: fmt.Sprintf(format, args...)}
	}
	t, err := parseStamp(row[r.at])
	if err != nil {
		return badf(r.columns[r.at], "%v", err)
	}
	text := strings.TrimSpace(row[r.value])
	if slices.Contains(missingWords, text) {
		r.Missing++
		return nil
	}
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(x):
		return badf(r.Column, "%q is no number; want one, or nothing where there is no value", text)
	case math.Abs(x) > mostValue:
		return badf(r.Column, "%q; want a number of at most 1e18", text)
	case x < 0 && r.opt.Unit != "":
		return badf(r.Column, "%q; want a number of at least 0, for it is in %s", text, r.opt.Unit)
	}
	if r.found[name] == nil {
		r.found[name] = &Measured{Name: name}
		r.Series = append(r.Series, r.found[name])
	}
	r.found[name].Samples = append(r.found[name].Samples, forecast.Sample{At: t, Value: x})
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

// mostPeriods bounds a series: more could not be waited for.
const mostPeriods = 2_000_000

// Regular brings a series to regular periods, those of its median distance where period
// is 0; see forecast.Resample. Errors are of code Invalid.
func (m *Measurements) Regular(s *Measured, period berth.Duration, gap int) (forecast.Series, error) {
	if period == 0 {
		period = forecast.Spacing(s.Samples)
	}
	where := m.Report.Name
	if s.Name != "" {
		where += ", " + s.Name
	}
	if period == 0 {
		return forecast.Series{}, berth.Errorf(berth.Invalid, "period", "%s: all measurements are of one second, which tells no period; want --period", where)
	}
	first, last := s.Samples[0].At, s.Samples[len(s.Samples)-1].At
	if n := min(last.Sub(first)/period, berth.Duration(len(s.Samples))*berth.Duration(gap+1)); n > mostPeriods {
		return forecast.Series{}, berth.Errorf(berth.Invalid, "gap", "%s: up to %d periods, more than %d; want a longer --period or a smaller --gap", where, n, mostPeriods)
	}
	return forecast.Resample(s.Samples, period, gap)
}
