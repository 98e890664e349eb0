package main

import (
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/form"
)

// What happens is told with the name of a reservation beside its id, if it has one.
func TestWatchTellsNames(t *testing.T) {
	for name, want := range map[string]string{"weekly-run": "  01K (weekly-run)  ", "": "  01K  "} {
		var out strings.Builder
		a := &app{stdout: &out}
		e := form.Event{What: "confirmed", Reservation: form.Reservation{ID: "01K", Name: name}}
		if err := a.tellEvent(&remote{format: "table"}, &watched{as: map[string]form.Reservation{}}, &e); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%q is told as %q, %v; want %q", name, out.String(), err, want)
		}
	}
}
