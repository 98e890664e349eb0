package workload_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workload"
)

// Whatever the file: no panic; measurements in order of time that are numbers, or
// a complaint that is the file's fault.
func FuzzMeasurements(f *testing.F) {
	for _, seed := range []string{
		"", "time,rate\n0,1\n5,2\n", "rate,when\n1,2026-11-21 18:00\n", "t,a,b\n1,2,3\n", "time,rate\n0,NaN\n1,\n", "\ufefftime,rate\n3,-1\n2,1e400\n",
		"time,rate\n\"0,1\n", "a\n1\n", "time,rate\n1,2,3\n", "time,rate\n-9e99,1\n", "rate,time\n1,1e12\n2,4398046511103\n",
	} {
		f.Add(seed, "", false)
		f.Add(seed, "rate", true)
	}
	f.Fuzz(func(t *testing.T, text, column string, unit bool) {
		opt := workload.MeasurementOptions{Column: column}
		if unit {
			opt.Unit = "bit/s"
		}
		data, err := workload.ReadMeasurements(strings.NewReader(text), "f.csv", opt)
		if err != nil {
			var mistake *berth.Error
			if !errors.As(err, &mistake) || mistake.Code != berth.Invalid || !strings.Contains(err.Error(), "f.csv") {
				t.Fatalf("%q: error %v", text, err)
			}
			return
		}
		for _, s := range data.Series {
			if len(s.Samples) == 0 {
				t.Fatalf("%q: a series without values", text)
			}
			for i, sample := range s.Samples {
				if !sample.At.Valid() || i > 0 && sample.At < s.Samples[i-1].At || math.IsNaN(sample.Value) || math.Abs(sample.Value) > 1e18 || unit && sample.Value < 0 {
					t.Fatalf("%q: sample %d is %+v", text, i, sample)
				}
			}
		}
	})
}

func TestMeasurementsPassOverBadRows(t *testing.T) {
	const text = "time,rate,from\n5,2,a\nsoon,1,a\n0,1,a\n1,2\n9,,a\n9,x,a\n9,3,b\n"
	got, err := workload.ReadMeasurements(strings.NewReader(text), "f.csv", workload.MeasurementOptions{Column: "rate", By: []string{"from"}})
	if err != nil {
		t.Fatal(err)
	}
	r := &got.Report
	if r.Records != 7 || r.Usable != 4 || r.Bad != 3 || r.FirstBad[0].Line != 3 || r.FirstBad[1].Line != 5 || r.FirstBad[2].Line != 7 || got.Missing != 1 || !got.Sorted {
		t.Errorf("%+v, %d missing, sorted %v; want lines 3, 5 and 7 bad, one value missing, and a sort", r, got.Missing, got.Sorted)
	}
	if len(got.Series) != 2 || len(got.Series[0].Samples) != 2 || got.Series[0].Samples[0].Value != 1 || got.Series[1].Name != "b" {
		t.Errorf("%+v, want two values of a and one of b", got.Series)
	}
	series, err := got.Regular(got.Series[0], 0, 5)
	if err != nil || series.Period != 5 || len(series.Values) != 2 {
		t.Errorf("%+v %v, want two periods of 5 s", series, err)
	}
	if _, err := got.Regular(got.Series[1], 0, 5); err == nil || !strings.Contains(err.Error(), "f.csv, b: all measurements are of one second") {
		t.Errorf("%v, want that one measurement tells no period", err)
	}
	if _, err := workload.ReadMeasurements(strings.NewReader(text), "f.csv", workload.MeasurementOptions{Column: "rate", Strict: true}); err == nil || !strings.Contains(err.Error(), "f.csv:3: \"soon\" is no time") {
		t.Errorf("%v, want that of line 3", err)
	}
}
