package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// The output that is shown of a task is the file that is there, also where its name is a pattern
// that the site expands, and after a restart.
func TestTheOutputOfATaskIsTheFileThatIsThere(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a service")
	}
	s := newShores(t, `cp "$1" "$2"`)
	s.submit("w", func(w *berth.Workflow) {
		for i := range w.Tasks {
			work := &w.Tasks[i].Work
			work.Inputs, work.Outputs = nil, nil
			work.Command[2] = "echo " + w.Tasks[i].ID
		}
		w.Tasks[0].Work.Output = "%%-%j.txt"
		w.Tasks[1].Work.Output = filepath.Join(s.dir, "%j")
	})
	see := func() service.Workflow {
		t.Helper()
		w, err := s.host.Workflow(t.Context(), s.ask.By, "w")
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	if w := see(); w.OutputOf(1) != "" {
		t.Errorf("before it is run its output is %s", w.OutputOf(1))
	}
	s.until("it is over", func() bool { w := see(); return w.State.Over() })
	check := func(when string) {
		t.Helper()
		w := see()
		for i, task := range w.Workflow.Tasks {
			text, err := os.ReadFile(w.OutputOf(i))
			if strings.TrimSpace(string(text)) != task.ID {
				t.Errorf("%s the output of %s is %q: %q, %v", when, task.ID, w.OutputOf(i), text, err)
			}
		}
	}
	check("once it is over")
	s.close()
	s.open()
	check("after a restart")
}
