package calendar_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/calendar/calendartest"
)

// FuzzOperations reads sequences of operations and compares every form with
// the model after each of them.
func FuzzOperations(f *testing.F) {
	bytes := rapid.SliceOfN(rapid.Byte(), 100, 400)
	for seed := range 8 {
		f.Add(bytes.Example(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 2000 {
			t.Skip("long sequences find nothing that short ones do not")
		}
		for _, form := range calendar.Forms {
			calendartest.Fuzz(t, form.New, data)
		}
	})
}
