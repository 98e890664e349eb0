package record

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/engine/change"
)

// The golden journals of the service have every kind of event and of change that there
// is, so that later versions are known to read it: a kind that is new wants a new one.
func TestGoldenJournalsHaveEveryKind(t *testing.T) {
	files, err := filepath.Glob("../../service/testdata/golden/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden journal", err)
	}
	var events, changes []string
	for _, path := range files {
		var said struct{ Events, Changes string }
		data, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(data, &said)
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, strings.Fields(said.Events)...)
		changes = append(changes, strings.Fields(said.Changes)...)
	}
	for _, kind := range eventKinds {
		if !slices.Contains(events, string(kind)) {
			t.Errorf("no golden journal has an event %s", kind)
		}
	}
	for _, kind := range changeKinds {
		if kind == change.Requeued { // a job that waits for its start in the very instant of an outage, to which no run of some hundred records comes
			continue
		}
		if !slices.Contains(changes, string(kind)) {
			t.Errorf("no golden journal has a change %s", kind)
		}
	}
}
