package calendar_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/calendar/calendartest"
	"github.com/berth-hpc/berth/internal/effort"
)

// admissionsVar names the environment variable that sets how many requests a
// workload may have at most for TestSums to admit it, for every form.
const admissionsVar = "BERTH_ADMISSIONS"

// maxAdmissions says how many requests each form admits within a few seconds;
// forms that are not named admit 1,000,000 with full effort. Where few bookings are live at once,
// in mode Stream at a low load, every form admits that many.
var maxAdmissions = map[string]int{"plain": 1_000}

// Every form finds the starts that independent programs found.
func TestSums(t *testing.T) {
	for _, form := range calendar.Forms {
		limit, ok := maxAdmissions[form.Name]
		if !ok {
			limit = effort.Cases(1_000_000)
		}
		if text := os.Getenv(admissionsVar); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil {
				t.Fatalf("%s: %v", admissionsVar, err)
			}
			limit = n
		}
		admitted := 0
		for _, row := range calendartest.Sums() {
			w := row.Workload
			sparse := w.Mode == calendartest.Stream && w.Load < .9 && w.Requests <= 100_000
			if w.Requests > limit && !sparse {
				continue
			}
			admitted++
			t.Run(form.Name+"/"+string(row.Binding)+"/"+w.String(), func(t *testing.T) {
				got, err := w.Admit(form.New(w.PEs, row.Binding))
				if err != nil {
					t.Fatal(err)
				}
				if got != row.Starts {
					t.Errorf("starts add up to %d, want %d", got, row.Starts)
				}
			})
		}
		if admitted == 0 {
			t.Errorf("%s admits no workload of at most %d requests", form.Name, limit)
		}
	}
}
