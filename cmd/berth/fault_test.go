package main

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/journal"
	"github.com/berth-hpc/berth/journal/record"
	"github.com/berth-hpc/berth/journal/sqlite"
	"github.com/berth-hpc/berth/service"
)

// A service that meets a fault of its own says so with the record and where the report is,
// and ends with a code of its own, by which a supervisor knows not to start it again; so
// does the check of its journal.
func TestAFaultHasItsExitCode(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	store, err := sqlite.Open(data, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	event := engine.Wake()
	rec := journal.Record{
		Version: "test", Event: record.AppendEvent([]byte{1}, &event),
		Changes: record.AppendChanges(nil, []change.Change{{Kind: change.Emitted}}), // of no effect
	}
	rec.Seal(journal.Position{})
	if err := errors.Join(store.Append(t.Context(), rec), store.Close()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var out, messages heard
		a := &app{args: []string{"serve", "--data", data, "--cores", "2", "--listen", "127.0.0.1:0"}, stdout: &out, stderr: &messages}
		words := "^berth: .*a fault of this program at record 1, while following a record \\(event: wake\\): .*every start of this version meets it.*fault-1.json"
		if code := a.run(); code != exitFaultAgain || !matches(words, string(messages)) {
			t.Fatalf("exit code %d, want %d: %s", code, exitFaultAgain, messages)
		}
	}
	for fault, want := range map[*service.Fault]int{{Times: 1}: exitFault, {Times: 2}: exitFaultAgain} {
		if got := exitCode(errors.Join(fault, errors.New("closing"))); got != want {
			t.Errorf("met %d times: exit code %d, want %d", fault.Times, got, want)
		}
	}
}
