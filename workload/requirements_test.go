package workload_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workload"
)

var needs = []string{
	"software", `"NAMD"`, "version", `"2.12"`, "licences", "4", "memory_mb", "2048", "storage_mb", "20000", "accelerators", "2", "partition", `"debug"`,
}

// JSON Lines know the requirements by the names of the schedule file.
func TestJSONLRequirements(t *testing.T) {
	w, err := workload.ReadJSONL(strings.NewReader(request(needs...)), "r.jsonl", workload.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	want := berth.Requirements{Software: "NAMD", Version: "2.12", Licences: 4, MemoryMB: 2048, StorageMB: 20000, Accelerators: 2, Partition: "debug"}
	if diff := cmp.Diff(want, w.Requests[0].Requirements); diff != "" {
		t.Error(diff)
	}
	var line berth.Line
	if err := json.Unmarshal([]byte(request(needs...)), &line); err != nil || line.Requirements != want {
		t.Errorf("a schedule line has %+v, %v", line.Requirements, err)
	}
}

func TestJSONLBadRequirements(t *testing.T) {
	for text, want := range map[string]string{
		request("licences", "-1"):                         "licences: r.jsonl:1: \"-1\"",
		request("licences", "4"):                          "name the software too",
		request("version", `"2"`):                         "name the software too",
		request("software", "7"):                          "software: r.jsonl:1: \"7\": not a string",
		request("software", `"a\tb"`):                     "holds a control character",
		request("partition", `"a\nb"`):                    "holds a control character",
		request("memory_mb", "-1"):                        "memory_mb: r.jsonl:1: -1",
		request("storage_mb", "4398046511104"):            "storage_mb",
		request("accelerators", "1048577"):                "accelerators",
		request("accelerators", "99999999999"):            "want 0 to 1048576",
		request("part", "1") + part2("memory_mb", "5"):    "another part of the same request",
		request("part", "1") + part2("partition", `"p"`):  "another part of the same request",
		request("part", "1") + part2("accelerators", "1"): "another part of the same request",
	} {
		_, err := workload.ReadJSONL(strings.NewReader(text), "r.jsonl", workload.Options{Strict: true})
		checkInvalid(t, err)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func part2(more ...string) string { return request(append([]string{"part", "2"}, more...)...) }
