package main

import (
	"testing"

	"github.com/berth-hpc/berth/api/form"
)

// A reservation is told by the name of its task, whichever try it is for.
func TestReservationsAreToldByTheirTasks(t *testing.T) {
	w := &form.Workflow{ID: "w", Tasks: []form.WorkflowStep{{ID: "fetch"}, {ID: "sum up"}}}
	for reservation, want := range map[string]string{
		"w.1": "fetch", "w.2": "sum up", "w.2-3": "sum up", "w.2-3.2": "sum up", "w.1.2": "fetch", "w.3": "w.3", "w.x": "w.x",
	} {
		if got := startedTask(w, reservation); got != want {
			t.Errorf("%s is told as %q, want %q", reservation, got, want)
		}
	}
}
