package main

import (
	"encoding/csv"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// What became of workflows stands in the rows of -o csv as it does in -o json, and workflows
// beside a file of requests are drawn anew from each seed.
func TestWorkflowsBesideAFileOfRequests(t *testing.T) {
	folder := t.TempDir()
	work := written(t, folder, "w.jsonl", `{"id":"a","arrival":0,"ready":0,"deadline":90000,"npe":4,"duration":300}
{"id":"b","arrival":50000,"ready":50000,"deadline":90000,"npe":4,"duration":300}
`)
	args := []string{"sim", "--workload", work, "--pes", "16", "--workflows", "daggen:4", "--workflow-count", "3"}
	repeated := append(args, "--replications", "2", "--seed", "7")
	var told simOutput
	if err := json.Unmarshal([]byte(command(t, append(repeated, "-o", "json")...)), &told); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(command(t, append(repeated, "-o", "csv")...))).ReadAll()
	if err != nil || len(rows) != 3 || len(told.Runs) != 2 {
		t.Fatalf("%v %v", rows, err)
	}
	for i, run := range told.Runs {
		cells := map[string]string{}
		for column, name := range rows[0] {
			cells[name] = rows[i+1][column]
		}
		w := run.Workflows
		if w == nil || w.Workflows != 3 || cells["workflows"] != "3" || cells["workflows_cpu_hours"] != number(&w.CPUHours) || cells["workflows_kept_rate"] != number(w.KeptRate) {
			t.Errorf("%+v, %v", w, cells)
		}
	}
	if told.Runs[0].Workflows.CPUHours == told.Runs[1].Workflows.CPUHours {
		t.Error("both seeds draw the same workflows")
	}
	plain := command(t, "sim", "--workload", work, "--pes", "16", "-o", "csv")
	if strings.Contains(plain, "workflows") {
		t.Errorf("columns of workflows without any: %s", plain)
	}
	for slack, name := range map[string]string{"0": "none.jsonl", "2": "due.jsonl"} {
		path := filepath.Join(folder, name)
		command(t, append(args, "--workflow-slack", slack, "--schedule", path)...)
		if got := command(t, "check", path); got != "valid\n" {
			t.Errorf("--workflow-slack %s: %s", slack, got)
		}
	}
}
