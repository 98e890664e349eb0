package check_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
)

// FuzzCheck looks for input that ends the process, and for errors and
// violations that do not say what they must.
func FuzzCheck(f *testing.F) {
	f.Add(valid, int32(10))
	f.Add(strings.ReplaceAll(valid, `"start":`, `"start":1`), int32(3))
	f.Add(needy, int32(10))
	f.Add(placed, int32(10))
	f.Add(moved, int32(10))
	f.Add(counted, int32(10))
	f.Add(resized, int32(10))
	f.Add(held, int32(10))
	f.Add(`{"id":"1","kind":"outage","npe":1048576,"start":-4398046511103,"pes":"0-1048575"}`, int32(1<<20))
	f.Add("{\"i\\u0064\":\"\\\"\",\"part\":\"\\\\\",\"kind\":\"job\",\"npe\":1}\r\n\n[", int32(1))
	f.Fuzz(func(t *testing.T, text string, pes int32) {
		report, err := check.File(strings.NewReader(text), "f", check.Options{PEs: berth.Count(pes), Software: programs, Storage: storage})
		if err != nil {
			var bad *berth.Error
			if !errors.As(err, &bad) || bad.Code != berth.Invalid {
				t.Errorf("%v is not bad input", err)
			}
			return
		}
		for _, v := range report.Violations {
			if (len(v.IDs) == 0) != (v.Class == check.Unreadable && !strings.Contains(v.String(), " (id ")) || len(v.Lines) == 0 || v.Text == "" || strings.Contains(v.String(), "\n") {
				t.Errorf("%+v", v)
			}
		}
	})
}
