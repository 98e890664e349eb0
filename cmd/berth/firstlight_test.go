package main

import (
	"bytes"
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/workload"
)

var update = flag.Bool("update", false, "write the files that tests compare with")

const firstLight = "../../examples/first-light.swf"

// firstLightUsers are the habits of the people in the example: which sizes
// they take, and how many minutes they run.
var firstLightUsers = []struct {
	sizes       []berth.Count
	least, most uint64
}{
	{[]berth.Count{1, 1, 2}, 60, 480},
	{[]berth.Count{4, 8}, 30, 240},
	{[]berth.Count{16}, 40, 150},
	{[]berth.Count{32}, 15, 90},
	{[]berth.Count{8, 12, 24}, 20, 200},
	{[]berth.Count{48, 64}, 10, 45},
	{[]berth.Count{2, 4, 6}, 5, 120},
	{[]berth.Count{12, 20, 40}, 20, 100},
}

// makeFirstLight draws the example log: 150 jobs of eight people on 64 PEs
// within two days, two thirds of them submitted between 08:00 and 20:00.
func makeFirstLight(t *testing.T) []byte {
	t.Helper()
	const jobs = 150
	draws := stream.New(7, "first light").Source()
	draw := func(n uint64) uint64 { return draws.Uint64() % n }

	records := make([]workload.Record, jobs)
	for i := range records {
		second := draw(86_400)
		if draw(3) > 0 {
			second = 8*3600 + draw(12*3600)
		}
		user := draw(uint64(len(firstLightUsers)))
		habit := &firstLightUsers[user]
		size := habit.sizes[draw(uint64(len(habit.sizes)))]
		run := 60*(habit.least+draw(habit.most-habit.least)) + draw(60)
		asked := (run*(100+draw(150))/100/900 + 1) * 900 // quarters of an hour
		records[i] = workload.Record{
			Submit: berth.Time(86_400*draw(2) + second), Wait: -1, Run: berth.Duration(run), Procs: size, CPU: -1, Memory: -1,
			ReqProcs: size, ReqTime: berth.Duration(asked), ReqMemory: -1, Status: 1,
			User: int32(user) + 1, Group: 1 + int32(user)/3, App: -1, Queue: -1, Partition: -1, Preceding: -1, Think: -1,
		}
	}
	slices.SortStableFunc(records, func(a, b workload.Record) int { return cmp.Compare(a.Submit, b.Submit) })
	for i := range records {
		records[i].Job = int64(i) + 1
	}
	header := workload.Header{
		" Version: 2.2",
		" Computer: First Light, an invented machine of 64 PEs",
		" Note: Made by Berth's own tests for the first minutes with the program (cmd/berth/firstlight_test.go).",
		" Note: Nobody ran these jobs: submit times, users, sizes and run times are drawn from a fixed seed,",
		" Note: chosen among a few so that the policies differ visibly.",
		" Note: Eight invented users, two days, two thirds of the jobs submitted between 08:00 and 20:00.",
		" MaxJobs: 150",
		" MaxRecords: 150",
		" Preemption: No",
		" UnixStartTime: 0",
		" TimeZoneString: UTC",
		" MaxProcs: 64",
	}
	var log bytes.Buffer
	if err := workload.WriteSWF(&log, header, records); err != nil {
		t.Fatal(err)
	}
	return log.Bytes()
}

// TestFirstLightIsWhatItsHeaderSays keeps the example reproducible: to change
// the recipe, run the test with -update and commit both.
func TestFirstLightIsWhatItsHeaderSays(t *testing.T) {
	want := makeFirstLight(t)
	if *update {
		if err := os.MkdirAll(filepath.Dir(firstLight), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(firstLight, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(firstLight)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("examples/first-light.swf is not what its recipe makes; run the test with -update")
	}
}
