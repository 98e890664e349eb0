package workload_test

import (
	"bytes"
	"encoding/json"
	"reflect"
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
	if err := json.Unmarshal([]byte(request(needs...)), &line); err != nil || line.Wants().Requirements != want {
		t.Errorf("a schedule line has %+v, %v", line.Wants(), err)
	}
}

func TestJSONLBadRequirements(t *testing.T) {
	for text, want := range map[string]string{
		request("licences", "-1"):                                "licences: r.jsonl:1: \"-1\"",
		request("licences", "4"):                                 "name the software too",
		request("version", `"2"`):                                "name the software too",
		request("software", "7"):                                 "software: r.jsonl:1: \"7\": not a string",
		request("software", `"a\tb"`):                            "holds a control character",
		request("partition", `"a\nb"`):                           "holds a control character",
		request("memory_mb", "-1"):                               "memory_mb: r.jsonl:1: -1",
		request("storage_mb", "4398046511104"):                   "storage_mb",
		request("accelerators", "1048577"):                       "accelerators",
		request("accelerators", "99999999999"):                   "want 0 to 1048576",
		request("part", "1") + part2("memory_mb", "5"):           "another part of the same request",
		request("part", "1") + part2("partition", `"p"`):         "another part of the same request",
		request("part", "1") + part2("accelerators", "1"):        "another part of the same request",
		request("part", "1") + part2("want_site", `"s"`):         "another part of the same request",
		request("part", "1") + part2("want_pool", `"p"`):         "another part of the same request",
		request("want_site", "7"):                                "want_site: r.jsonl:1: \"7\": not a string",
		request("want_pool", `"a\tb"`):                           "want_pool: r.jsonl:1: \"a\\tb\": holds a control character",
		request("part", "1") + part2("want_sites", `["s"]`):      "another part of the same request",
		request("want_sites", `"s"`):                             "not a list",
		request("want_sites", `["s",7]`):                         "want_sites: r.jsonl:1: \"7\": not a string",
		request("want_sites", `["a\tb"]`):                        "holds a control character",
		request("only", `["0-3"]`):                               "want objects such as",
		request("only", `[{"site":"s","pool":"p"}]`):             "need site, pool and pes",
		request("only", `[{"site":"s","pes":"1"}]`):              "need site, pool and pes",
		request("only", `[{"site":"s","pool":"p","pes":"3-1"}]`): "descending range",
		request("only", `[{"site":"s","pool":"p","pes":""}]`):    "want some PEs",
		request("never", `[{"site":"s","pool":"p","pes":"1"},{"site":"s","pool":"p","pes":"2"}]`): "each pool once",
		request("never", `[{"site":"s","pool":"p","pes":"1","npe":1}]`):                           "no such field",
		request("never", `[{"site":"s","site":"s","pool":"p","pes":"1"}]`):                        "given twice",
		request("never", `[{"site":"s","pool":7,"pes":"1"}]`):                                     "not a string",
		request("never", `[{"site":"s","pool":"a\nb","pes":"1"}]`):                                "holds a control character",
		request("eligible", `"3-1"`):                                                              "eligible: r.jsonl:1: \"\\\"3-1\\\"\": descending range",
	} {
		_, err := workload.ReadJSONL(strings.NewReader(text), "r.jsonl", workload.Options{Strict: true})
		checkInvalid(t, err)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Each part has its own eligible PEs; the site and the pool are for all parts.
func TestJSONLWishes(t *testing.T) {
	wishes := []string{"want_site", `"north"`, "want_pool", `"gpu"`}
	text := request(append(wishes, "part", "1", "eligible", `"0-3,8"`)...) + request(append(wishes, "part", "2")...)
	w, err := workload.ReadJSONL(strings.NewReader(text), "r.jsonl", workload.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	r := &w.Requests[0]
	if r.Site != "north" || r.Pool != "gpu" || r.Parts[0].Eligible.String() != "0-3,8" || !r.Parts[1].Eligible.Empty() {
		t.Errorf("%+v", r)
	}
}

// A schedule line with every field that there is reads as the request that it was.
func TestJSONLReadsEveryField(t *testing.T) {
	start, end := berth.Time(20), berth.Time(80)
	line := berth.Line{
		ID: "a", Kind: berth.KindRequest, Site: "s", Pool: "p", User: "u", Workflow: "w", Task: "t", After: []string{"b"}, Part: 1,
		Arrival: 1, Ready: 10, Deadline: 100, Duration: 60, NPE: 8, Variants: []berth.Variant{{NPE: 8, Duration: 60}}, Accepted: true,
		Reason: berth.Expired, Start: &start, End: &end, PEs: berth.PEsOf(0), PromisedStart: &start, ActualEnd: &end, PromisedEnd: &end,
		Limit: &end, Transfer: 1, Extended: 1, MovedFrom: []berth.FormerPlace{{At: 1, Staged: &start}}, Stretches: []berth.Stretch{{From: 1}}, ReplannedFrom: []berth.FormerPlace{{At: 1}},
		Kilobytes: 1, PoolPEs: 9, Wanted: &berth.Wanted{
			WantSite: "s", WantPool: "p", Eligible: berth.PEsOf(0, 1), PartConstraint: "ib", WantSites: []string{"s", "t"},
			OnlyPEs: []berth.PlacePEs{{Site: "s", Pool: "p", PEs: berth.PEsOf(0, 1, 2)}}, NotPEs: []berth.PlacePEs{{Site: "t", Pool: "q", PEs: berth.PEsOf(7)}},
			Requirements: berth.Requirements{
				Software: "NAMD", Version: "2.12", Licences: 4, MemoryMB: 2048, StorageMB: 20000, Accelerators: 2, Partition: "debug", Constraint: "intel|amd",
			},
		},
	}
	for _, v := range []reflect.Value{reflect.ValueOf(line), reflect.ValueOf(*line.Wanted), reflect.ValueOf(line.Requirements)} {
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("the line of this test leaves out %s", v.Type().Field(i).Name)
			}
		}
	}
	text, err := json.Marshal(&line)
	if err != nil {
		t.Fatal(err)
	}
	w, err := workload.ReadJSONL(bytes.NewReader(text), "r.jsonl", workload.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	want := berth.Rigid("a", 1, 10, 100, 8, 60)
	want.User, want.Site, want.Pool, want.Requirements, want.Parts[0].Eligible, want.Parts[0].Constraint = "u", "s", "p", line.Requirements, line.Eligible, line.PartConstraint
	want.Sites = line.WantSites
	want.Parts[0].Only = []berth.PoolPEs{{Resource: berth.PoolID("s", "p"), PEs: berth.PEsOf(0, 1, 2)}}
	want.Parts[0].Never = []berth.PoolPEs{{Resource: berth.PoolID("t", "q"), PEs: berth.PEsOf(7)}}
	if diff := cmp.Diff(want, w.Requests[0]); diff != "" {
		t.Error(diff)
	}
	var again bytes.Buffer
	if err := workload.WriteJSONL(&again, w.Requests); err != nil {
		t.Fatal(err)
	}
	w, err = workload.ReadJSONL(&again, "r.jsonl", workload.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, w.Requests[0]); diff != "" {
		t.Errorf("written and read again: %s", diff)
	}
}

func part2(more ...string) string { return request(append([]string{"part", "2"}, more...)...) }
