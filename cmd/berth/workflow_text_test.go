package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/form"
)

// tokenFile is a file with a token.
func tokenFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("berth_secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A retry that is refused names itself as what asks for the deadlines that are offered: to submit the
// file again would run what has succeeded once more.
func TestARefusedRetrySaysHowToRetry(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/v1/workflows/night/retry" {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"decision":"refused","workflow":{"id":"night","state":"refused","refusal":{"reason":"deadline_missed","detail":"too early"},"tasks":[]},
			"offers":[{"deadline":"2026-11-30T12:00:00Z","algorithm":"bd-cpar","end":"2026-11-30T12:00:00Z","cpu_hours":1}]}`)
	}))
	defer service.Close()
	token := tokenFile(t)
	var out, messages bytes.Buffer
	code := run([]string{"workflow", "retry", "night", "--server", service.URL, "--token-file", token}, strings.NewReader(""), &out, &messages)
	want := "Each can be asked for: berth workflow retry --server " + service.URL + " --token-file " + token + " night with such a --deadline."
	if code != exitRefused || !strings.Contains(messages.String(), want) || strings.Contains(messages.String(), "workflow submit") {
		t.Errorf("exit code %d, %s; want %d and %s", code, messages.String(), exitRefused, want)
	}
}

// What a watched workflow tells of a new plan says no more than is known of what moved.
func TestNewPlansAreTold(t *testing.T) {
	for _, c := range []struct {
		cause string
		moved int
		want  string
	}{
		{"late", 0, "a task is late, so other tasks stay where they are; the workflow ends "},
		{"early", 1, "a task ended early, so 1 task is moved; the workflow ends "},
		{"failed", 2, "a task failed, so 2 tasks are moved; the workflow ends "},
		{"displaced", 0, "a task was displaced; the workflow ends "},
		{"displaced", 3, "a task was displaced, so 3 tasks are moved; the workflow ends "},
	} {
		var messages bytes.Buffer
		a := &app{stderr: &messages}
		a.tellWorkflow(&form.Workflow{}, &form.Event{What: "workflow_replanned", Workflow: &form.WorkflowEvent{Cause: c.cause, Moved: c.moved}})
		if !strings.Contains(messages.String(), c.want) {
			t.Errorf("%s, %d moved: %q, want %q", c.cause, c.moved, messages.String(), c.want)
		}
	}
}

// A task whose PEs are out of use is shown with how many it lacks.
func TestAShownWorkflowSaysWhatItsTasksLack(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"night","state":"promised","tasks":[{"id":"one","state":"waiting","npe":2,"missing":3},{"id":"two","state":"waiting","npe":5}]}`)
	}))
	defer service.Close()
	token := tokenFile(t)
	var out, messages bytes.Buffer
	code := run([]string{"workflow", "show", "night", "--server", service.URL, "--token-file", token}, strings.NewReader(""), &out, &messages)
	if code != 0 || strings.Count(out.String(), "degraded: lacks 3 PEs") != 1 || strings.Count(out.String(), "degraded") != 1 {
		t.Errorf("exit code %d, %s %s", code, out.String(), messages.String())
	}
}
