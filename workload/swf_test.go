package workload_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workload"
)

// job is the line of a usable record: number, submit time, run time, allocated
// processors.
func job(number, submit, run, procs any) string {
	return fmt.Sprintf("%v %v 7 %v %v -1 -1 16 600 -1 1 3 4 5 6 -1 -1 -1\n", number, submit, run, procs)
}

// record is what job reads back as.
func record(number int64, submit berth.Time, run berth.Duration, procs berth.Count) workload.Record {
	return workload.Record{
		Job: number, Submit: submit, Wait: 7, Run: run, Procs: procs, CPU: -1, Memory: -1, ReqProcs: 16, ReqTime: 600,
		ReqMemory: -1, Status: 1, User: 3, Group: 4, App: 5, Queue: 6, Partition: -1, Preceding: -1, Think: -1,
	}
}

func readSWF(t *testing.T, text string, opt workload.Options) *workload.Workload {
	t.Helper()
	w, err := workload.ReadSWF(strings.NewReader(text), "log.swf", opt)
	if err != nil {
		t.Fatalf("unexpected error: %v\nin %.200q", err, text)
	}
	return w
}

func TestReadSWFReadsAllColumns(t *testing.T) {
	w := readSWF(t, "12 100 5 60 32 31.25 2048 64 3600 4096 1 7 8 9 10 2 11 13\n", workload.Options{Strict: true})
	want := []workload.Record{{
		Job: 12, Submit: 100, Wait: 5, Run: 60, Procs: 32, CPU: 31.25, Memory: 2048, ReqProcs: 64, ReqTime: 3600,
		ReqMemory: 4096, Status: 1, User: 7, Group: 8, App: 9, Queue: 10, Partition: 2, Preceding: 11, Think: 13,
	}}
	if diff := cmp.Diff(want, w.Records); diff != "" {
		t.Error(diff)
	}
	if w.Form != workload.SWF || w.Requests != nil {
		t.Errorf("form %q with %d requests", w.Form, len(w.Requests))
	}
}

// A column -1 is read without a second look, and so is what only begins like one read right.
func TestReadSWFMinusOne(t *testing.T) {
	for text, want := range map[string]struct {
		wait berth.Duration // 0 for a bad line
		cpu  float64
	}{
		"-1": {-1, -1}, "-1.0": {-1, -1}, "-01": {-1, -1}, "-1.5": {}, "-10": {}, "-1-1": {}, "-1x": {}, "-": {}, "1-1": {}, "1": {1, 1}, "1.25": {2, 1.25},
	} {
		for _, blank := range []string{" ", "\t"} {
			line := strings.Join([]string{"3", "5", text, "60", "2", text, "-1", "-1", "-1", "-1", "-1", "-1", "-1", "-1", "-1", "-1", "-1", "-1"}, blank)
			w, err := workload.ReadSWF(strings.NewReader(job(1, 0, 60, 8)+line+"\n"), "log.swf", workload.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(w.Records) == 1 {
				if want.wait != 0 || w.Report.Bad != 1 {
					t.Errorf("%q is bad: %+v", text, w.Report)
				}
				continue
			}
			if r := w.Records[1]; r.Wait != want.wait || r.CPU != want.cpu || r.Memory != -1 || r.Think != -1 {
				t.Errorf("%q: %+v", text, r)
			}
		}
	}
	if w := readSWF(t, job(1, 0, 60, 8)+"-1 5 -1 60 2 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1\n", workload.Options{}); len(w.Records) != 1 {
		t.Errorf("a job number -1 is read: %+v", w.Records)
	}
}

// Whatever real logs do that is odd but not wrong.
func TestReadSWFOddities(t *testing.T) {
	long := strings.Repeat("x", 3<<20)
	for name, c := range map[string]struct {
		text string
		want []workload.Record
	}{
		"carriage returns":       {"; MaxProcs: 8\r\n\r\n" + strings.ReplaceAll(job(1, 0, 60, 8), "\n", "\r\n"), []workload.Record{record(1, 0, 60, 8)}},
		"no end of last line":    {strings.TrimSuffix(job(1, 0, 60, 8), "\n"), []workload.Record{record(1, 0, 60, 8)}},
		"only carriage at end":   {strings.TrimSuffix(job(1, 0, 60, 8), "\n") + "\r", []workload.Record{record(1, 0, 60, 8)}},
		"blank lines":            {"\n\n" + job(1, 0, 60, 8) + " \t \n" + job(2, 1, 60, 8) + "\n", []workload.Record{record(1, 0, 60, 8), record(2, 1, 60, 8)}},
		"tabs and many blanks":   {" \t" + strings.ReplaceAll(job(1, 0, 60, 8), " ", " \t  "), []workload.Record{record(1, 0, 60, 8)}},
		"byte order mark":        {"\xef\xbb\xbf" + job(1, 0, 60, 8), []workload.Record{record(1, 0, 60, 8)}},
		"indented comment":       {"  ; note\n" + job(1, 0, 60, 8), []workload.Record{record(1, 0, 60, 8)}},
		"comment between":        {job(1, 0, 60, 8) + "; MaxProcs: 4\n" + job(2, 0, 60, 8), []workload.Record{record(1, 0, 60, 8), record(2, 0, 60, 8)}},
		"very long comment":      {"; " + long + "\n" + job(1, 0, 60, 8), []workload.Record{record(1, 0, 60, 8)}},
		"very long blanks":       {strings.ReplaceAll(job(1, 0, 60, 8), " ", strings.Repeat(" ", 9000)), []workload.Record{record(1, 0, 60, 8)}},
		"out of order":           {job(1, 9, 60, 8) + job(2, 5, 60, 8) + job(3, 9, 61, 8) + job(4, 5, 61, 8), []workload.Record{record(2, 5, 60, 8), record(4, 5, 61, 8), record(1, 9, 60, 8), record(3, 9, 61, 8)}},
		"submit rounds down":     {job(1, "5.99", 60, 8), []workload.Record{record(1, 5, 60, 8)}},
		"run rounds up":          {job(1, 0, "60.01", 8), []workload.Record{record(1, 0, 61, 8)}},
		"fraction of nothing":    {job("1.0", "5.000", "60.", "8.0"), []workload.Record{record(1, 5, 60, 8)}},
		"run below a second":     {job(1, 0, "0.001", 8), []workload.Record{record(1, 0, 1, 8)}},
		"leading zeros":          {job("0001", "000000000000000000000000005", "060", "08"), []workload.Record{record(1, 5, 60, 8)}},
		"minus nothing":          {job(1, "-0.0", 60, 8), []workload.Record{record(1, 0, 60, 8)}},
		"size from column 8":     {job(1, 0, 60, -1), []workload.Record{record(1, 0, 60, -1)}},
		"allocated nothing":      {job(1, 0, 60, 0), []workload.Record{record(1, 0, 60, 0)}},
		"job 0":                  {job(0, 0, 60, 8), []workload.Record{record(0, 0, 60, 8)}},
		"numbers going down":     {job(2, 0, 60, 8) + job(1, 0, 60, 8), []workload.Record{record(2, 0, 60, 8), record(1, 0, 60, 8)}},
		"largest time and size":  {job(1, int64(berth.TimeLimit-1), 60, berth.MaxPEs), []workload.Record{record(1, berth.TimeLimit-1, 60, berth.MaxPEs)}},
		"machine as wide as job": {"; MaxProcs: 8 (2, 6)\n" + job(1, 0, 60, 8), []workload.Record{record(1, 0, 60, 8)}},
	} {
		t.Run(name, func(t *testing.T) {
			w := readSWF(t, c.text, workload.Options{Strict: true})
			if diff := cmp.Diff(c.want, w.Records); diff != "" {
				t.Error(diff)
			}
			want := workload.Report{Name: "log.swf", Records: len(c.want), Usable: len(c.want)}
			if diff := cmp.Diff(want, w.Report); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSizeFallsBackToRequestedProcessors(t *testing.T) {
	for _, c := range []struct{ procs, requested, want berth.Count }{
		{4, 8, 4}, {-1, 8, 8}, {0, 8, 8}, {4, -1, 4}, {-1, -1, -1}, {0, 0, 0},
	} {
		r := workload.Record{Procs: c.procs, ReqProcs: c.requested}
		if got := r.Size(); got != c.want {
			t.Errorf("size of %d allocated, %d requested is %d, want %d", c.procs, c.requested, got, c.want)
		}
	}
}

// A record of no use is skipped and counted by cause, even in strict mode.
func TestReadSWFSkips(t *testing.T) {
	good := job(900, 0, 60, 8)
	for name, c := range map[string]struct {
		line  string
		cause workload.Cause
	}{
		"run time unknown":   {job(1, 0, -1, 8), workload.NoRunTime},
		"run time 0":         {job(1, 0, 0, 8), workload.NoRunTime},
		"run time negative":  {job(1, 0, -5, 8), workload.NoRunTime},
		"run time below 0":   {job(1, 0, "-0.5", 8), workload.NoRunTime},
		"processors unknown": {"1 0 -1 60 -1 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n", workload.NoProcessors},
		"processors 0":       {"1 0 -1 60 0 -1 -1 0 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n", workload.NoProcessors},
		"0 and unknown":      {"1 0 -1 60 0 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n", workload.NoProcessors},
		"burst of a job":     {"900 0 -1 30 8 -1 -1 -1 -1 -1 2 -1 -1 -1 -1 -1 -1 -1\n", workload.PartialRun},
		"filtered":           {"1 0 -1 60 8 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 99 -1 -1\n", workload.Filtered},
		"filtered too wide":  {"1 0 -1 60 800 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 99 -1 -1\n", workload.Filtered},
	} {
		t.Run(name, func(t *testing.T) {
			w := readSWF(t, good+c.line, workload.Options{
				Strict: true, PEs: 64, Keep: func(r *workload.Record) bool { return r.Partition != 99 },
			})
			want := workload.Report{Name: "log.swf", Records: 2, Usable: 1, Skipped: map[workload.Cause]int{c.cause: 1}}
			if diff := cmp.Diff(want, w.Report); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff([]workload.Record{record(900, 0, 60, 8)}, w.Records); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A skipped record leaves its number to a later usable one.
func TestReadSWFSkippedRecordsClaimNoNumber(t *testing.T) {
	w := readSWF(t, job(1, 0, -1, 8)+job(1, 5, 60, 8), workload.Options{Strict: true})
	if diff := cmp.Diff([]workload.Record{record(1, 5, 60, 8)}, w.Records); diff != "" {
		t.Error(diff)
	}
}

// The first N are those of the sorted order, not of the file's.
func TestReadSWFJobsCutAfterSorting(t *testing.T) {
	text := job(1, 30, 60, 8) + job(2, 20, -1, 8) + job(3, 10, 60, 8) + job(4, 40, 60, 8) + job(5, 20, 60, 8)
	for jobs, want := range map[int][]int64{
		0: {3, 5, 1, 4}, 1: {3}, 2: {3, 5}, 3: {3, 5, 1}, 4: {3, 5, 1, 4}, 99: {3, 5, 1, 4},
	} {
		w := readSWF(t, text, workload.Options{Jobs: jobs})
		var got []int64
		for _, r := range w.Records {
			got = append(got, r.Job)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("jobs %d: %s", jobs, diff)
		}
		if w.Report.Records != 5 || w.Report.Usable != 4 {
			t.Errorf("jobs %d: %d records, %d usable; the report is about the whole file", jobs, w.Report.Records, w.Report.Usable)
		}
	}
}

func TestHeader(t *testing.T) {
	w := readSWF(t, "; Version: 2.2\n;MaxProcs: 1664 (72, 1368, 224)\n; UnixStartTime: 781275672\n"+
		"; TimeZone: -25200\n;   continued: here\n; StartTime: Tue Oct 04 07:01:12\n; MaxJobs: many\n;\n"+job(1, 0, 60, 8), workload.Options{})
	h := w.Header
	if len(h) != 8 {
		t.Errorf("%d header lines, want all 8", len(h))
	}
	if got, ok := h.Get("starttime"); !ok || got != "Tue Oct 04 07:01:12" {
		t.Errorf("StartTime is %q, %v", got, ok)
	}
	if _, ok := h.Get("Queue"); ok {
		t.Error("found a Queue that is not there")
	}
	if got := w.PEs(); got != 1664 {
		t.Errorf("machine of %d PEs, want 1664", got)
	}
	if got, ok := h.UnixStart(); !ok || got != 781275672 {
		t.Errorf("UnixStartTime is %d, %v", got, ok)
	}
	if got, ok := h.Int("TimeZone"); !ok || got != -25200 {
		t.Errorf("TimeZone is %d, %v", got, ok)
	}
	for _, key := range []string{"MaxJobs", "Missing", "StartTime"} {
		if got, ok := h.Int(key); ok {
			t.Errorf("%s is the number %d", key, got)
		}
	}
}

// A size that cannot be is no size.
func TestHeaderPEsOutOfRange(t *testing.T) {
	for _, value := range []string{"", "0", "-8", "eight", "1048577", "99999999999999999999"} {
		if got := (workload.Header{" MaxProcs: " + value}).PEs(); got != 0 {
			t.Errorf("MaxProcs %q gives a machine of %d PEs", value, got)
		}
	}
	if got := (workload.Header{"MaxNodes: 8"}).PEs(); got != 0 {
		t.Errorf("MaxNodes gives a machine of %d PEs", got)
	}
}

func TestReportTellsInOneLine(t *testing.T) {
	w := readSWF(t, job(1, 0, 60, 8)+job(2, 0, 0, 8)+job(3, 0, 0, 8)+job(4, "x", 60, 8), workload.Options{})
	const want = `log.swf: 1 of 4 records usable, 2 skipped (no run time), 1 bad, the first at ` +
		`submit time: log.swf:4: "x": not a number; want digits, with a point at most`
	if got := w.Report.String(); got != want {
		t.Errorf("report tells\n%s\nwant\n%s", got, want)
	}
}

// What is written without a point reads as the same with ".0", which takes the long
// way through the reader, and is refused where that is refused.
func TestSWFNumbersReadAlikeWithAPoint(t *testing.T) {
	limits := []int64{1 << 62, 1 << 42, 1 << 31, 1 << 53, 1 << 24, 1000, 2}
	rapid.Check(t, func(t *rapid.T) {
		plain, pointed := make([]string, 18), make([]string, 18)
		for i := range plain {
			limit := rapid.SampledFrom(limits).Draw(t, "limit")
			n := rapid.Int64Range(-2, limit).Draw(t, "number")
			plain[i] = strconv.FormatInt(n, 10)
			if n >= 0 && rapid.Bool().Draw(t, "zeros") {
				plain[i] = "00" + plain[i]
			}
			pointed[i] = plain[i] + ".0"
		}
		read := func(columns []string) (workload.Workload, error) {
			w, err := workload.ReadSWF(strings.NewReader(strings.Join(columns, " ")+"\n"), "a.swf", workload.Options{})
			if err != nil {
				return workload.Workload{}, err
			}
			for i := range w.Report.FirstBad {
				w.Report.FirstBad[i].Value = strings.TrimSuffix(w.Report.FirstBad[i].Value, ".0")
			}
			return *w, nil
		}
		one, errOne := read(plain)
		two, errTwo := read(pointed)
		if diff := cmp.Diff(fmt.Sprint(errOne), strings.ReplaceAll(fmt.Sprint(errTwo), ".0", "")); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(one, two); diff != "" {
			t.Fatalf("%s\n%v", diff, plain)
		}
	})
}
