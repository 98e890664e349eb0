package main

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
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
		flags := &forecastFlags{column: column}
		if unit {
			flags.unit = rates[0]
		}
		data, err := readMeasurements(strings.NewReader(text), "f.csv", flags)
		if err != nil {
			var mistake *berth.Error
			if !errors.As(err, &mistake) || mistake.Code != berth.Invalid || !strings.Contains(err.Error(), "f.csv") {
				t.Fatalf("%q: error %v", text, err)
			}
			return
		}
		for _, s := range data.series {
			if len(s.samples) == 0 {
				t.Fatalf("%q: a series without values", text)
			}
			for i, sample := range s.samples {
				if !sample.At.Valid() || i > 0 && sample.At < s.samples[i-1].At || math.IsNaN(sample.Value) || math.Abs(sample.Value) > mostValue || unit && sample.Value < 0 {
					t.Fatalf("%q: sample %d is %+v", text, i, sample)
				}
			}
		}
	})
}
