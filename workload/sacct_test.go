package workload_test

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workload"
)

const sacctHead = "JobID|User|Partition|State|Submit|Start|ElapsedRaw|TimelimitRaw|AllocCPUS\n"

// readSacct reads an export by its content alone.
func readSacct(t *testing.T, text string) *workload.Workload {
	t.Helper()
	w, err := workload.Read(strings.NewReader(text), "export.txt", workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if w.Form != workload.Sacct {
		t.Fatalf("read as %s, want %s", w.Form, workload.Sacct)
	}
	checkReport(t, &w.Report)
	return w
}

// slurmJob is a record as an export of Slurm tells it.
func slurmJob(number int64, submit berth.Time, wait, run, limit berth.Duration, pes berth.Count) workload.Record {
	return workload.Record{
		Job: number, Submit: submit, Wait: wait, Run: run, ReqTime: limit, Procs: pes, ReqProcs: -1,
		CPU: -1, Memory: -1, ReqMemory: -1, Status: 1, User: 1, Group: -1, App: -1, Queue: -1, Partition: 1, Preceding: -1, Think: -1,
	}
}

func TestAnExportOfSlurmBecomesRecords(t *testing.T) {
	w := readSacct(t, sacctHead+
		"12|ann|main|COMPLETED|2026-03-01T10:00:30|2026-03-01T10:05:00|600|60|64\n"+
		"11|bob|main|COMPLETED|2026-03-01T10:00:00|2026-03-01T10:00:00|60|UNLIMITED|8\n"+
		"13_4|ann|long|CANCELLED by 1000|2026-03-01T11:00:00|2026-03-01T11:00:10|5|Partition_Limit|1\n")
	second := slurmJob(12, 30, 270, 600, 3600, 64)
	first := slurmJob(11, 0, 0, 60, -1, 8)
	first.User = 2
	third := slurmJob(13, 3600, 10, 5, -1, 1)
	third.Status, third.Partition = 5, 2
	if diff := cmp.Diff([]workload.Record{first, second, third}, w.Records); diff != "" {
		t.Error(diff)
	}
	if start, known := w.Header.UnixStart(); !known || start != 1772359200 {
		t.Errorf("second 0 is %d, want 2026-03-01T10:00:00", start)
	}
}

// Columns of other names, in another order, with a bar at the end, compressed.
func TestAnExportOfSlurmMayHaveOtherColumns(t *testing.T) {
	text := "end|allocTRES|jobidraw|JobName|submit|start|TimeLimit|NNodes|\r\n" +
		"1772359800|billing=64,cpu=64,mem=4G,node=2|7|a job|1772359200|1772359260|1-00:00:00|2|\r\n" +
		"1772359800|node=2|8|b|1772359200|1772359260|30:00|2|\r\n"
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, _ = zip.Write([]byte(text))
	_ = zip.Close()
	w := readSacct(t, packed.String())
	want := slurmJob(7, 0, 60, 540, 86_400, 64)
	want.User, want.Partition = -1, -1
	if diff := cmp.Diff([]workload.Record{want}, w.Records); diff != "" {
		t.Error(diff)
	}
	if w.Report.Skipped[workload.NoProcessors] != 1 {
		t.Errorf("report: %s", &w.Report)
	}
	w = readSacct(t, "JobID|Submit|Elapsed|NCPUS\n1|2026-03-01T10:00:00+01:00|1-00:00:01|2\n2|2026-03-01T10:00:00Z|02:03|2\n")
	if len(w.Records) != 2 || w.Records[0].Run != 86_401 || w.Records[1].Run != 123 || w.Records[1].Submit != 3600 {
		t.Errorf("records: %+v", w.Records)
	}
}

func TestAnExportOfSlurmTellsWhatItPassesOver(t *testing.T) {
	const good = "1|ann|main|COMPLETED|2026-03-01T10:00:00|2026-03-01T10:05:00|600|60|64\n"
	cases := map[string]struct {
		line         string
		cause        workload.Cause
		field, value string
		want         string
	}{
		"a step":             {line: "1.batch||||2026-03-01T10:00:00|2026-03-01T10:05:00|600||64\n", cause: workload.PartialRun},
		"waiting":            {line: "2|ann|main|PENDING|2026-03-01T10:00:00|Unknown|0|60|64\n", cause: workload.NotOver},
		"running":            {line: "2|ann|main|RUNNING|2026-03-01T10:00:00|2026-03-01T10:05:00|600|60|64\n", cause: workload.NotOver},
		"a state of its own": {line: "2|ann|main|R|2026-03-01T10:00:00|2026-03-01T10:05:00|600|60|64\n", cause: workload.NotOver},
		"never ran":          {line: "2|ann|main|CANCELLED by 7|2026-03-01T10:00:00|None|0|60|0\n", cause: workload.NoRunTime},
		"no CPUs":            {line: "2|ann|main|COMPLETED|2026-03-01T10:00:00|2026-03-01T10:05:00|600|60|0\n", cause: workload.NoProcessors},
		"a bar in a name":    {line: "2|an|n|main|COMPLETED|2026-03-01T10:00:00|2026-03-01T10:05:00|600|60|64\n", field: "columns", value: "10", want: "the header has 9"},
		"cut off":            {line: "2|ann|main|COMPL\n", field: "columns", value: "4", want: "the header has 9"},
		"no submission":      {line: "2|ann|main|COMPLETED|Unknown|2026-03-01T10:05:00|600|60|64\n", field: "Submit", value: "Unknown", want: "without its submission"},
		"relative time":      {line: "2|ann|main|COMPLETED|Yesterday 10:00|2026-03-01T10:05:00|600|60|64\n", field: "Submit", value: "Yesterday 10:00", want: "SLURM_TIME_FORMAT"},
		"before 1970":        {line: "2|ann|main|COMPLETED|1969-03-01T10:00:00|2026-03-01T10:05:00|600|60|64\n", field: "Submit", value: "1969-03-01T10:00:00", want: "1970"},
		"half a second":      {line: "2|ann|main|COMPLETED|2026-03-01T10:00:00|2026-03-01T10:05:00|1.5|60|64\n", field: "ElapsedRaw", value: "1.5", want: "whole number"},
		"a long limit":       {line: "2|ann|main|COMPLETED|2026-03-01T10:00:00|2026-03-01T10:05:00|1|4398046511104|64\n", field: "TimelimitRaw", value: "4398046511104", want: "beyond"},
		"CPUs by thousands":  {line: "2|ann|main|COMPLETED|2026-03-01T10:00:00|2026-03-01T10:05:00|1|1|64K\n", field: "AllocCPUS", value: "64K", want: "whole number"},
		"more than any pool": {line: "2|ann|main|COMPLETED|2026-03-01T10:00:00|2026-03-01T10:05:00|1|1|1048577\n", field: "AllocCPUS", value: "1048577", want: "beyond"},
		"negative":           {line: "2|ann|main|COMPLETED|2026-03-01T10:00:00|2026-03-01T10:05:00|-5|1|1\n", field: "ElapsedRaw", value: "-5", want: "from 0 up"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := readSacct(t, sacctHead+good+"\n"+c.line)
			if len(w.Records) != 1 || w.Report.Records != 2 {
				t.Fatalf("report: %s", &w.Report)
			}
			if c.cause != "" {
				if w.Report.Skipped[c.cause] != 1 {
					t.Errorf("report: %s, want one skipped: %s", &w.Report, c.cause)
				}
				return
			}
			if w.Report.Bad != 1 {
				t.Fatalf("report: %s, want a bad line", &w.Report)
			}
			bad := w.Report.FirstBad[0]
			if bad.Line != 4 || bad.Field != c.field || bad.Value != c.value || !strings.Contains(bad.Want, c.want) {
				t.Errorf("bad line %+v, want line 4, field %q, value %q, %q", bad, c.field, c.value, c.want)
			}
			_, err := workload.Read(strings.NewReader(sacctHead+good+"\n"+c.line), "dir/x.sacct", workload.Options{Strict: true})
			wantMistake(t, err, c.field, "dir/x.sacct:4: ", c.want)
		})
	}
}

func TestAnExportOfSlurmIsRefusedAsAWhole(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		words []string
	}{
		"empty":             {"", []string{"no record"}},
		"a header alone":    {sacctHead, []string{"no record"}},
		"without a header":  {"1|ann|main|COMPLETED|2026-03-01T10:00:00|2026-03-01T10:05:00|600|60|64\n", []string{"x.sacct:1", "no column Submit", workload.SacctCommand}},
		"as sacct -P alone": {"JobID|JobName|Partition|Account|AllocCPUS|State|ExitCode\n1|a|b|c|1|COMPLETED|0:0\n", []string{"no column Submit"}},
		"without lengths":   {"JobID|Submit|Start|AllocCPUS\n", []string{"no column ElapsedRaw"}},
		"without CPUs":      {"JobID|Submit|Elapsed\n", []string{"no column AllocCPUS"}},
		"nothing of use":    {sacctHead + "2|ann|main|PENDING|2026-03-01T10:00:00|Unknown|0|60|64\n", []string{"no usable record", "1 skipped (not over)"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := workload.Read(strings.NewReader(c.text), "x.sacct", workload.Options{})
			wantMistake(t, err, "workload", c.words...)
		})
	}
}

// The ends of jobs tell how long they ran where nothing else does, and a job without one is
// not over.
func TestAnExportOfSlurmWithEnds(t *testing.T) {
	w := readSacct(t, "JobID|Submit|Start|End|Elapsed|AllocCPUS\n"+
		"1|2026-03-01T10:00:00|2026-03-01T10:05:00|2026-03-01T10:06:00||4\n"+
		"2|2026-03-01T10:00:00|2026-03-01T10:05:00|Unknown|00:10:00|4\n"+
		"3|2026-03-01T10:00:00|2026-03-01T10:05:00|2026-03-01T10:04:00||4\n")
	if len(w.Records) != 1 || w.Records[0].Run != 60 || w.Report.Skipped[workload.NotOver] != 1 || w.Report.Bad != 1 || w.Report.FirstBad[0].Field != "End" {
		t.Errorf("records %+v, report %s", w.Records, &w.Report)
	}
}

// Jobs of arrays and requeued ones get numbers that no other job has.
func TestJobsOfAnExportHaveNumbersOfTheirOwn(t *testing.T) {
	text := "JobID|Submit|Elapsed|AllocCPUS\n"
	for _, id := range []string{"5_1", "5_2", "5", "9", "9", "7+0", ""} {
		text += id + "|2026-03-01T10:00:00|00:10:00|4\n"
	}
	w := readSacct(t, text)
	var got []int64
	for i := range w.Records {
		got = append(got, w.Records[i].Job)
	}
	if diff := cmp.Diff([]int64{10, 11, 5, 9, 12, 13, 14}, got); diff != "" {
		t.Error(diff)
	}
}

// Whatever the bytes: no panic, counts that add up, records that are in order and positive.
func FuzzReadSacct(f *testing.F) {
	for _, seed := range []string{
		"", sacctHead, sacctHead + "1|ann|main|COMPLETED|2026-03-01T10:00:00|2026-03-01T10:05:00|600|60|64\n",
		"JobID|Submit|Start|End|ReqTRES|\n1_1|0|1|2|cpu=4|\n1|1|2|3|cpu=1|\n", "JobID|Submit|Elapsed|AllocCPUS\n1|1|99999999999-00:00:00|1\n", "||||\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := workload.ReadSacct(bytes.NewReader(data), "x", workload.Options{})
		_, strict := workload.ReadSacct(bytes.NewReader(data), "x", workload.Options{Strict: true})
		if err != nil {
			checkInvalid(t, err)
			return
		}
		checkReport(t, &w.Report)
		if (strict != nil) != (w.Report.Bad > 0) {
			t.Errorf("strict mode says %v of %s", strict, &w.Report)
		}
		seen := map[int64]bool{}
		for i := range w.Records {
			r := &w.Records[i]
			if r.Submit < 0 || r.Run <= 0 || r.Size() <= 0 || seen[r.Job] || i > 0 && r.Submit < w.Records[i-1].Submit {
				t.Errorf("record %+v", r)
			}
			seen[r.Job] = true
		}
	})
}

// Two exports put together have what lies across their boundary twice: it counts once, is told, and ends a strict
// reading. A job that was requeued runs again, and one that had not ended in the first export has.
func TestJobsThatStandTwiceInAnExportOfSlurm(t *testing.T) {
	const (
		twice    = "12|ann|main|COMPLETED|2026-03-01T10:00:30|2026-03-01T10:05:00|600|60|64\n"
		running  = "14|ann|main|RUNNING|2026-03-01T10:00:30|2026-03-01T10:06:00|60|60|64\n"
		ended    = "14|ann|main|COMPLETED|2026-03-01T10:00:30|2026-03-01T10:06:00|600|60|64\n"
		requeued = "12|ann|main|COMPLETED|2026-03-01T10:00:30|2026-03-01T11:05:00|600|60|64\n"
	)
	text := sacctHead + twice + running + twice + requeued + ended
	w := readSacct(t, text)
	if len(w.Records) != 3 || w.Report.Bad != 1 {
		t.Errorf("%d jobs and %d bad lines, want 3 and 1: %+v", len(w.Records), w.Report.Bad, w.Report)
	}
	_, err := workload.Read(strings.NewReader(text), "export.txt", workload.Options{Strict: true})
	const want = `export.txt:4: "12": line 2 has it already, with this submission and start`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
