package workload_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workload"
)

// wantMistake fails unless err is an *berth.Error with code Invalid, that
// field, and a message with all the words.
func wantMistake(t *testing.T, err error, field string, words ...string) {
	t.Helper()
	var mistake *berth.Error
	if !errors.As(err, &mistake) {
		t.Fatalf("error is %v, want a *berth.Error", err)
	}
	if mistake.Code != berth.Invalid || mistake.Field != field {
		t.Errorf("error of code %q, field %q, want %q, %q: %v", mistake.Code, mistake.Field, berth.Invalid, field, err)
	}
	for _, word := range words {
		if !strings.Contains(mistake.Msg, word) {
			t.Errorf("message %q does not say %q", mistake.Msg, word)
		}
	}
}

// column returns a good line with one column, from 1, replaced.
func column(n int, value string) string {
	fields := strings.Fields(job(5, 10, 60, 8))
	fields[n-1] = value
	return strings.Join(fields, " ") + "\n"
}

func TestReadSWFBadLines(t *testing.T) {
	good := job(1, 0, 60, 8)
	cases := map[string]struct {
		line         string
		field, value string
		want         string
	}{
		"17 columns":             {"5 0 -1 60 8 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1\n", "columns", "17", "18"},
		"19 columns":             {strings.TrimSuffix(job(5, 0, 60, 8), "\n") + " -1\n", "columns", "19", "18"},
		"one word":               {"hello\n", "job number", "hello", "not a number"},
		"one number":             {"5\n", "columns", "1", "18"},
		"NUL":                    {"5\x00 0\n", "job number", "5\x00", "not a number"},
		"longer than a megabyte": {strings.Repeat(job(5, 0, 60, 8)[:40], 40_000) + "\n", "columns", "", "longer"},
		"long value shortened":   {column(2, strings.Repeat("9x", 500)), "submit time", strings.Repeat("9x", 30) + "…", "not a number"},
		"exponent":               {column(4, "1e3"), "run time", "1e3", "not a number"},
		"not a number":           {column(4, "NaN"), "run time", "NaN", "not a number"},
		"plus":                   {column(4, "+60"), "run time", "+60", "not a number"},
		"point alone":            {column(4, "."), "run time", ".", "not a number"},
		"minus alone":            {column(4, "-"), "run time", "-", "not a number"},
		"two points":             {column(4, "1.2.3"), "run time", "1.2.3", "not a number"},
		"comma":                  {column(4, "1,5"), "run time", "1,5", "not a number"},
		"submit unknown":         {column(2, "-1"), "submit time", "-1", "must be known"},
		"submit below 0":         {column(2, "-0.5"), "submit time", "-0.5", "must be known"},
		"job number unknown":     {column(1, "-1"), "job number", "-1", "must be known"},
		"half a job":             {column(1, "1.5"), "job number", "1.5", "whole"},
		"half a processor":       {column(5, "8.5"), "allocated processors", "8.5", "whole"},
		"half a requested one":   {column(8, "8.5"), "requested processors", "8.5", "whole"},
		"minus one and a half":   {column(3, "-1.5"), "wait time", "-1.5", "-1 for unknown"},
		"minus a half":           {column(6, "-0.5"), "average CPU time", "-0.5", "-1 for unknown"},
		"submit at the limit":    {column(2, "4398046511104"), "submit time", "4398046511104", "beyond"},
		"run at the limit":       {column(4, "4398046511104"), "run time", "4398046511104", "beyond"},
		"run rounds to limit":    {column(4, "4398046511103.5"), "run time", "4398046511103.5", "beyond"},
		"run far below 0":        {column(4, "-4398046511104"), "run time", "-4398046511104", "beyond"},
		"estimate at the limit":  {column(9, "4398046511104"), "requested time", "4398046511104", "beyond"},
		"20 digits":              {column(2, "10000000000000000000"), "submit time", "10000000000000000000", "beyond"},
		"size above any pool":    {column(5, "1048577"), "allocated processors", "1048577", "beyond"},
		"requested above any":    {column(8, "1048577"), "requested processors", "1048577", "beyond"},
		"user beyond 32 bits":    {column(12, "2147483648"), "user", "2147483648", "beyond"},
		"number above machine":   {column(5, "65"), "allocated processors", "65", "machine of 64"},
		"wide and never ran":     {"5 0 -1 0 65 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n", "allocated processors", "65", "machine of 64"},
		"requested too wide":     {"5 0 -1 60 -1 -1 -1 65 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n", "requested processors", "65", "machine of 64"},
		"number taken":           {job(1, 9, 60, 8), "job number", "1", "line 2 has it already"},
	}
	for n := 1; n <= 18; n++ {
		if n == 4 {
			continue // a negative run time is skipped
		}
		name := "negative column " + strconv.Itoa(n)
		cases[name] = struct{ line, field, value, want string }{column(n, "-2"), fieldName(n), "-2", "negative"}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			text := "; MaxProcs: 64\n" + good + "\n" + c.line + job(2, 20, 60, 8)
			w := readSWF(t, text, workload.Options{})
			if w.Report.Records != 3 || w.Report.Usable != 2 || w.Report.Bad != 1 || w.Report.SkippedTotal() != 0 {
				t.Fatalf("report: %s", w.Report.String())
			}
			if diff := cmp.Diff([]workload.Record{record(1, 0, 60, 8), record(2, 20, 60, 8)}, w.Records); diff != "" {
				t.Error(diff)
			}
			bad := w.Report.FirstBad[0]
			if bad.Line != 4 || bad.Field != c.field || bad.Value != c.value || !strings.Contains(bad.Want, c.want) {
				t.Errorf("bad line %+v, want line 4, field %q, value %q, %q", bad, c.field, c.value, c.want)
			}
			_, err := workload.ReadSWF(strings.NewReader(text), "dir/log.swf", workload.Options{Strict: true})
			wantMistake(t, err, c.field, "dir/log.swf:4: ", strings.Trim(strconv.Quote(c.value), `"`), c.want)
		})
	}
}

// fieldName returns what messages call a column, from 1.
func fieldName(n int) string {
	return [...]string{
		"job number", "submit time", "wait time", "run time", "allocated processors", "average CPU time",
		"used memory", "requested processors", "requested time", "requested memory", "status", "user", "group",
		"executable", "queue", "partition", "preceding job", "think time",
	}[n-1]
}

// The machine given by the caller overrules the header's; without either, only
// the limit of all pools holds.
func TestReadSWFMachineSize(t *testing.T) {
	line := job(1, 0, 60, 100) + job(2, 0, 60, 10)
	for name, c := range map[string]struct {
		header string
		pes    berth.Count
		bad    int
	}{
		"header":        {"; MaxProcs: 64\n", 0, 1},
		"caller":        {"; MaxProcs: 1000\n", 64, 1},
		"caller allows": {"; MaxProcs: 64\n", 100, 0},
		"neither":       {"", 0, 0},
	} {
		if w := readSWF(t, c.header+line, workload.Options{PEs: c.pes}); w.Report.Bad != c.bad {
			t.Errorf("%s: %d bad lines, want %d", name, w.Report.Bad, c.bad)
		}
	}
}

func TestReadSWFDuplicates(t *testing.T) {
	// The numbers first grow, so that the reader looks back only later.
	w := readSWF(t, job(1, 0, 60, 8)+job(5, 1, 60, 8)+job(3, 2, 60, 8)+job(5, 3, 60, 8)+job(3, 4, 60, 8)+job(1, 5, 60, 8), workload.Options{})
	var got []string
	for _, b := range w.Report.FirstBad {
		got = append(got, strconv.Itoa(b.Line)+" "+b.Value+" "+b.Want[:len("the record at line 2")])
	}
	want := []string{"4 5 the record at line 2", "5 3 the record at line 3", "6 1 the record at line 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(w.Records) != 3 {
		t.Errorf("%d records, want 3", len(w.Records))
	}
}

func TestReadSWFKeepsTheFirstBadLines(t *testing.T) {
	w := readSWF(t, strings.Repeat("bad\n", 1000)+job(1, 0, 60, 8), workload.Options{})
	if w.Report.Bad != 1000 || len(w.Report.FirstBad) != workload.MaxFirstBad {
		t.Fatalf("%d bad lines, %d kept", w.Report.Bad, len(w.Report.FirstBad))
	}
	for i, b := range w.Report.FirstBad {
		if b.Line != i+1 {
			t.Errorf("kept line %d as number %d", b.Line, i)
		}
	}
}
