package workload_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workload"
)

// gwf writes a record of the Grid Workload Format: the first eleven columns, who ran it where.
func gwf(first, names string) string {
	return first + " " + names + " -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n"
}

const gwfHead = "# JobID SubmitTime WaitTime RunTime NProcs ...\n#\n"

// Words are numbered, the clock begins with the first submission, and jobs are sorted by it.
func TestALogOfTheGridWorkloadsArchive(t *testing.T) {
	text := gwfHead +
		gwf("7 1100000060 5 600.5 4 590.25 -1 8 3600 -1 1", "ann g1 a.out q1 -1 G1/site1 G1/site2 -1") +
		gwf("3 1100000000 -1 60 -1 -1 -1 2 -1 -1 0", "bob g1 -1 q1 part -1 G1/site2 -1") +
		gwf("7 1100000120 0 30 1 -1 -1 -1 -1 -1 1", "ann -1 -1 q2 -1 -1 G1/site2 -1")
	for _, name := range []string{"anon_jobs.gwf", "jobs.txt"} {
		w, err := workload.Read(strings.NewReader(text), name, workload.Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkReport(t, &w.Report)
		if start, _ := w.Header.UnixStart(); w.Form != workload.GWF || !w.Form.IsLog() || start != 1_100_000_000 || w.PEs() != 0 {
			t.Errorf("%s: form %s, start %d, %d PEs", name, w.Form, start, w.PEs())
		}
		none := workload.Record{Memory: -1, ReqMemory: -1, Preceding: -1, Think: -1}
		first, second, third := none, none, none
		first.Job, first.Wait, first.Run, first.Procs, first.CPU, first.ReqProcs, first.ReqTime = 3, -1, 60, -1, -1, 2, -1
		first.User, first.Group, first.App, first.Queue, first.Partition = 2, 1, -1, 1, 2
		second.Job, second.Submit, second.Wait, second.Run, second.Procs, second.CPU, second.ReqProcs, second.ReqTime, second.Status = 7, 60, 5, 601, 4, 590.25, 8, 3600, 1
		second.User, second.Group, second.App, second.Queue, second.Partition = 1, 1, 1, 1, 1
		third.Job, third.Submit, third.Run, third.Procs, third.CPU, third.ReqProcs, third.ReqTime, third.Status = 8, 120, 30, 1, -1, -1, -1, 1
		third.User, third.Group, third.App, third.Queue, third.Partition = 1, -1, -1, 2, 1
		if diff := cmp.Diff([]workload.Record{first, second, third}, w.Records); diff != "" {
			t.Error(name, diff)
		}
	}
}

// Bad lines say which column is wrong and what would be right; what cannot be replayed is
// skipped.
func TestMistakesInALogOfTheGridWorkloadsArchive(t *testing.T) {
	good := gwf("1 0 0 60 4 -1 -1 4 -1 -1 1", "u g a q -1 -1 s -1")
	for name, c := range map[string]struct{ line, field, value, want string }{
		"too few columns": {"2 0 0 60 4\n", "columns", "5", "has 29"},
		"no number":       {gwf("2 0 0 soon 4 -1 -1 4 -1 -1 1", "u g a q -1 -1 s -1"), "run time", "soon", "not a number"},
		"half a PE":       {gwf("2 0 0 60 1.5 -1 -1 4 -1 -1 1", "u g a q -1 -1 s -1"), "allocated processors", "1.5", "not a whole number"},
		"no submission":   {gwf("2 -1 0 60 4 -1 -1 4 -1 -1 1", "u g a q -1 -1 s -1"), "submit time", "-1", "must be known"},
		"too wide":        {gwf("2 0 0 60 65 -1 -1 4 -1 -1 1", "u g a q -1 -1 s -1"), "allocated processors", "65", "machine of 64 PEs"},
	} {
		t.Run(name, func(t *testing.T) {
			w, err := workload.Read(strings.NewReader(gwfHead+good+c.line), "x.gwf", workload.Options{PEs: 64})
			if err != nil || w.Report.Bad != 1 {
				t.Fatalf("%v, %+v", err, w)
			}
			if bad := w.Report.FirstBad[0]; bad.Line != 4 || bad.Field != c.field || bad.Value != c.value || !strings.Contains(bad.Want, c.want) {
				t.Errorf("bad line %+v, want line 4, field %q, value %q, %q", bad, c.field, c.value, c.want)
			}
			_, err = workload.Read(strings.NewReader(gwfHead+good+c.line), "dir/x.gwf", workload.Options{Strict: true, PEs: 64})
			wantMistake(t, err, c.field, "dir/x.gwf:4: ", c.want)
		})
	}
	w, err := workload.Read(strings.NewReader(good+gwf("2 0 0 0 4 -1 -1 4 -1 -1 1", "u g a q -1 -1 s -1")+gwf("3 0 0 60 0 -1 -1 -1 -1 -1 1", "u g a q -1 -1 s -1")), "x.gwf", workload.Options{})
	if err != nil || w.Report.Usable != 1 || w.Report.Skipped[workload.NoRunTime] != 1 || w.Report.Skipped[workload.NoProcessors] != 1 {
		t.Errorf("%v, %+v", err, w)
	}
	_, err = workload.Read(strings.NewReader(gwfHead), "x.gwf", workload.Options{})
	wantMistake(t, err, "workload", "no record")
	w, err = workload.Read(strings.NewReader(good+good), "x.gwf", workload.Options{Keep: func(r *workload.Record) bool { return r.Job == 1 && r.Partition == 1 }, Jobs: 1})
	if err != nil || len(w.Records) != 1 || w.Report.Usable != 2 {
		t.Errorf("%v, %+v", err, w)
	}
}

// Whatever the bytes: no panic, counts that add up, jobs with numbers of their own that begin
// at 0 or later.
func FuzzReadGWF(f *testing.F) {
	good := gwf("1 0 0 60 4 -1 -1 4 -1 -1 1", "u g a q -1 -1 s -1")
	for _, seed := range []string{"", "#\n", good, good + good, gwfHead + good + "1 2 3\n", gwf("1 -0.5 0 60 4 -1 -1 4 -1 -1 1", "u g a q -1 -1 s -1")} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := workload.ReadGWF(bytes.NewReader(data), "log.gwf", workload.Options{})
		_, strict := workload.ReadGWF(bytes.NewReader(data), "log.gwf", workload.Options{Strict: true})
		if err != nil {
			checkInvalid(t, err)
			if strict == nil {
				t.Error("strict mode reads what the default does not")
			}
			return
		}
		checkReport(t, &w.Report)
		seen := map[int64]bool{}
		last := berth.Time(0)
		for i := range w.Records {
			r := &w.Records[i]
			if seen[r.Job] || r.Submit < last || r.Run <= 0 || r.Size() <= 0 {
				t.Fatalf("record %+v", r)
			}
			seen[r.Job], last = true, r.Submit
		}
	})
}
