package workload_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workload"
)

func readJDL(t *testing.T, text string) *workload.Workload {
	t.Helper()
	w, err := workload.ReadJDL(strings.NewReader(text), "jobs.jdl", workload.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// The worked example of the waiting-time paper's specification, as JDL: the
// deadline is arrival + waiting limit + run time.
func TestJDLTriple(t *testing.T) {
	w := readJDL(t, `
// (run time, processors, waiting limit) of Sahakyan and Petrosyan
[ JobName = "late";  SubmitTime = 4; RunTime = 3; NodeNumber = 4; MaxWaitingTime = 8 ]
[ jobname = "first"; RUNTIME = 10; NodeNumber = 3; MaxWaitingTime = 5; ] # trailing semicolon
[ RunTime = "1m"; MaxWaitingTime = 0; ]
`)
	want := []berth.Request{
		berth.Rigid("first", 0, 0, 15, 3, 10),
		berth.Rigid("3", 0, 0, 60, 1, 60),
		berth.Rigid("late", 4, 4, 15, 4, 3),
	}
	if diff := cmp.Diff(want, w.Requests); diff != "" {
		t.Error(diff)
	}
	if w.Form != workload.JDL || w.Report.Records != 3 || w.Report.Usable != 3 {
		t.Errorf("%s %+v", w.Form, w.Report)
	}
}

func TestJDLEveryAttribute(t *testing.T) {
	w := readJDL(t, `[
  Type = "Job"; JobType = {"Checkpointable", "MPICH"};
  edg_jobid = "https://lb.example.org:9000/\"\101\\";
  CertificateSubject = "/O=Grid/CN=Ada";
  Executable = "/bin/namd"; Arguments = "-n 8"; InputSandbox = {"a", "b"};
  StdOutput = "out"; Environment = {"X=1"}; UserTags = [ a = 1; b = { [ c = "d" ] }; ];
  Rank = -other.GlueCEStateEstimatedResponseTime + (2 * f(x, 3) >= 4 ? 1 : -1);
  Requirements = TRUE; WholeNodes = false; SubmitTo = undefined;
  SubmitTime = 100;
  CpuNumber = 64;
  MaxWallClockTime = "90m";
  WaitingTime = "1-00:00:00";
  ExpiryTime = 7100;
  Deadline = 12600;
  Software = "NAMD"; SoftwareVersion = "2.12"; SoftwareLicenses = 4;
  Memory = "2GiB"; DataSizeMB = 20000; GPUNumber = 2; QueueName = "debug"
]`)
	want := berth.Rigid("https://lb.example.org:9000/\"A\\", 100, 100, 12500, 64, 5400)
	want.User = "/O=Grid/CN=Ada"
	want.Requirements = berth.Requirements{
		Software: "NAMD", Version: "2.12", Licences: 4, MemoryMB: 2148, StorageMB: 20000, Accelerators: 2, Partition: "debug",
	}
	if diff := cmp.Diff([]berth.Request{want}, w.Requests); diff != "" {
		t.Error(diff)
	}
}

// The earliest of the limits counts.
func TestJDLLimits(t *testing.T) {
	for limits, want := range map[string]berth.Time{
		"MaxWaitingTime = 50":                 160,
		"ExpiryTime = 130":                    140,
		"Deadline = 999":                      999,
		"MaxWaitingTime = 50; Deadline = 999": 160,

		"MaxWaitingTime = 50; ExpiryTime = 130; Deadline = 120":  120,
		"MaxWaitingTime = 50; ExpiryTime = 1300; Deadline = 120": 120,
	} {
		w := readJDL(t, "[ SubmitTime = 100; RunTime = 10; "+limits+" ]")
		if got := w.Requests[0].Deadline; got != want {
			t.Errorf("%s: deadline %d, want %d", limits, got, want)
		}
	}
}

// An ad may do without brackets if it is the only one.
func TestJDLWithoutBrackets(t *testing.T) {
	w := readJDL(t, "# c\nExecutable = \"a\";\nRunTime = 5; // d\nMaxWaitingTime = 6\n/* e */")
	if diff := cmp.Diff([]berth.Request{berth.Rigid("1", 0, 0, 11, 1, 5)}, w.Requests); diff != "" {
		t.Error(diff)
	}
}

const goodAd = "[ JobName = \"good\"; RunTime = 5; MaxWaitingTime = 6; ]\n"

// Each mistake is told with line, attribute and value, and costs only its ad.
func TestJDLBad(t *testing.T) {
	for _, c := range []struct {
		name, ad string // with a good one behind it
		line     int
		field    string
		value    string
		want     string
	}{
		{"misspelt", "[ RunTime = 1;\nMaxWaitTime = 2; ]", 2, "MaxWaitTime", "2", "unknown attribute (did you mean MaxWallTime?)"},
		{"unknown", "[ Colour = \"red\"; ]", 1, "Colour", "red", "unknown attribute"},
		{"twice", "[ RunTime = 1; MaxWaitingTime = 1;\nruntime = 2 ]", 2, "runtime", "2", "given twice, first at line 1 as RunTime"},
		{"twice by two names", "[ NodeNumber = 1;\nCpuNumber = 1 ]", 2, "CpuNumber", "1", "first at line 1 as NodeNumber"},
		{"unused twice", "[ Rank = 1; rank = 2 ]", 1, "rank", "2", "given twice"},
		{"no run time", "[\nMaxWaitingTime = 1 ]", 1, "RunTime", "", "missing; an ad needs its run time"},
		{"no limit", "[ RunTime = 1 ]", 1, "MaxWaitingTime", "", "missing; an ad needs a limit"},
		{"no PE", "[ CpuNumber = 0 ]", 1, "CpuNumber", "0", "want an integer from 1 to 1048576"},
		{"minus a PE", "[ CpuNumber = -3 ]", 1, "CpuNumber", "-3", "want an integer from 1"},
		{"PEs as text", "[ CpuNumber = \"8\" ]", 1, "CpuNumber", "8", "without quotes"},
		{"half a PE", "[ CpuNumber = 1.5 ]", 1, "CpuNumber", "1.5", "want an integer"},
		{"PEs by expression", "[ CpuNumber = 2*4 ]", 1, "CpuNumber", "2*4", "want an integer"},
		{"no time", "[ RunTime = 0 ]", 1, "RunTime", "0", "want an integer from 1"},
		{"no time as text", "[ RunTime = \"0s\" ]", 1, "RunTime", "0s", "at least 1 s"},
		{"bare time as text", "[ RunTime = \"90\" ]", 1, "RunTime", "90", "90m (minutes, as in Slurm)"},
		{"minutes or seconds", "[ MaxWallClockTime = 90 ]", 1, "MaxWallClockTime", "90", `counts it in minutes`},
		{"negative wait", "[ MaxWaitingTime = -1 ]", 1, "MaxWaitingTime", "-1", "from 0"},
		{"arrival beyond", "[ RunTime = 1; MaxWaitingTime = 1;\nSubmitTime = 4398046511104 ]", 2, "SubmitTime", "", "beyond"},
		{"memory without unit", "[ Memory = 2048 ]", 1, "Memory", "2048", "want a string with a unit"},
		{"memory of no unit", "[ Memory = \"2048\" ]", 1, "Memory", "2048", "units are MB"},
		{"negative storage", "[ StorageMB = -1 ]", 1, "StorageMB", "-1", "from 0"},
		{"version of nothing", "[ RunTime = 1; MaxWaitingTime = 1;\nSoftwareVersion = \"2\" ]", 2, "SoftwareVersion", "", "name the software too"},
		{"version as number", "[ SoftwareVersion = 2.1 ]", 1, "SoftwareVersion", "2.1", "want a string"},
		{"name of nothing", "[ JobName = \"\" ]", 1, "JobName", "", "empty"},
		{"control character", "[ JobName = \"a\\nb\" ]", 1, "JobName", "a\nb", "control character"},
		{"requirements", "[ Requirements = other.GlueCEStateFreeCPUs > 4 ]", 1, "Requirements", "other.GlueCEStateFreeCPUs>4", "not evaluated"},
		{"whole nodes", "[ WholeNodes = true ]", 1, "WholeNodes", "true", "cannot honour"},
		{"workflow", "[ Type = \"DAG\" ]", 1, "Type", "DAG", "not one job; want job"},
		{"many jobs", "[ JobType = {\"Normal\", \"Parametric\"} ]", 1, "JobType", `{"Normal","Parametric"}`, "not one job"},
		{"type as number", "[ JobType = 3 ]", 1, "JobType", "3", "want a string"},
		{"name taken", "[ JobName = \"x\"; RunTime = 1; Deadline = 5 ] [ RunTime = 1; Deadline = 5;\nId = \"x\" ]", 2, "Id", "x", "the ad at line 1 has this name already"},

		{"no semicolon", "[ RunTime = 1\nMaxWaitingTime = 2 ]", 2, "RunTime", "MaxWaitingTime", "want a ; before it"},
		{"no equals", "[ RunTime 1 ]", 1, "", "1", "want = behind the name RunTime"},
		{"ad within a broken one", "[ RunTime 1; UserTags = [ a = 1 ] ]", 1, "", "1", "want = behind the name RunTime"},
		{"no value", "[ RunTime = ; ]", 1, "RunTime", ";", "want a value before it"},
		{"half an expression", "[ Rank = 1 + ; ]", 1, "Rank", ";", "want a value before it"},
		{"no name", "[ = 1 ]", 1, "", "=", "want an attribute"},
		{"no end", "[ RunTime = 1;", 2, "", "[", "want an attribute, or ]"},
		{"string without end", "[ JobName = \"a; ]", 1, "JobName", "", "does not end on its line"},
		{"unknown escape", `[ JobName = "a\q"; ]`, 1, "JobName", "", "unknown escape"},
		{"not UTF-8", "[ JobName = \"\xff\"; ]", 1, "JobName", "", "not UTF-8"},
		{"no number", "[ RunTime = 12K; ]", 1, "RunTime", "", "12K is no number"},
		{"wrong bracket", "[ InputData = {\"a\"); ]", 1, "InputData", ")", "not opened"},
		{"deep", "[ Rank = " + strings.Repeat("(", 200) + " ]", 1, "Rank", "(", "out of place"},
		{"strange character", "[ RunTime = \x01; ]", 1, "RunTime", "", "only in strings"},
		{"no ad", "[ JobName = \"y\"; RunTime = 1; Deadline = 5 ] RunTime = 5;", 1, "", "RunTime", "want [, with which an ad begins"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := c.ad + "\n" + goodAd
			w, err := workload.ReadJDL(strings.NewReader(text), "jobs.jdl", workload.Options{})
			if err != nil {
				t.Fatal(err)
			}
			checkReport(t, &w.Report)
			if w.Report.Bad != 1 || w.Requests[len(w.Requests)-1].ID != "good" && w.Requests[0].ID != "good" {
				t.Fatalf("%+v", w)
			}
			want := workload.BadLine{Line: c.line, Field: c.field, Value: c.value}
			got := w.Report.FirstBad[0]
			if !strings.Contains(got.Want, c.want) {
				t.Errorf("complaint %q, want %q", got.Want, c.want)
			}
			got.Want = ""
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			_, err = workload.ReadJDL(strings.NewReader(text), "jobs.jdl", workload.Options{Strict: true})
			checkInvalid(t, err)
		})
	}
}

func TestJDLFileWithoutJobs(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "no record in the file",
		"// nothing\n":     "no record in the file",
		"/* no end":        "no usable record",
		"[ RunTime = 1 ]":  "no usable record",
		"[":                "the file ends; want an attribute",
		"[ Rank = ( 1":     "the file ends; want the end of the value",
		"hello":            "no usable record",
		"[ JobName = \"a":  "does not end on its line",
		"[ RunTime = 1 ) ": "not opened",
	} {
		_, err := workload.ReadJDL(strings.NewReader(text), "jobs.jdl", workload.Options{})
		checkInvalid(t, err)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestOpenTellsJDL(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.jdl": goodAd, "b": goodAd, "c.txt": "\n\n " + goodAd, "d.JDL": "RunTime = 5; MaxWaitingTime = 6; JobName = \"good\";",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		w, err := workload.Open(path, workload.Options{Jobs: 1})
		if err != nil || w.Form != workload.JDL || len(w.Requests) != 1 || w.Requests[0].ID != "good" {
			t.Errorf("%s: %+v %v", name, w, err)
		}
	}
}

type failingReader struct{ text *strings.Reader }

var errDisk = errors.New("the disk is gone")

func (f failingReader) Read(p []byte) (int, error) {
	if n, err := f.text.Read(p); err == nil {
		return n, nil
	}
	return 0, errDisk
}

func TestJDLReaderThatFails(t *testing.T) {
	_, err := workload.ReadJDL(failingReader{strings.NewReader(goodAd + "[ RunTime")}, "jobs.jdl", workload.Options{})
	if !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "jobs.jdl:2") {
		t.Error(err)
	}
}

// What JDL asks for travels through JSON Lines.
func TestJDLRoundTripsThroughJSONL(t *testing.T) {
	w := readJDL(t, `[ RunTime = 5; Deadline = 9; User = "u"; Software = "NAMD"; SoftwareVersion = "2.12"; Licences = 4;
		MemoryMB = 7; StorageMB = 8; Accelerators = 2; Partition = "debug" ]`)
	var file strings.Builder
	if err := workload.WriteJSONL(&file, w.Requests); err != nil {
		t.Fatal(err)
	}
	again, err := workload.ReadJSONL(strings.NewReader(file.String()), "r.jsonl", workload.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.Requests, again.Requests); diff != "" {
		t.Errorf("%s\n%s", diff, file.String())
	}
}

// Whatever the bytes: no panic; counts that add up; valid requests of unique
// names in order, which JSON Lines can hold; strict mode fails exactly if there
// is a bad ad.
func FuzzReadJDL(f *testing.F) {
	for _, seed := range []string{
		"", goodAd, goodAd + goodAd, "RunTime = 5; Deadline = 9", "/*", "[ A = \"\\", "[ Rank = f(x, {1, \"a\"})[2] && -1; RunTime = \"2h\"; ExpiryTime = 4 ]",
		"[ RunTime = 1\n[ RunTime = 1; Deadline = 2 ]", "[ Software = \"x\"; Memory = \"1GB\"; RunTime = 1; WaitingTime = 0 ]", "\x1f\x8b", "\xef\xbb\xbf" + goodAd,
		"[ JobName = \"a\\101\\\"\"; RunTime = 1; Deadline = 2 ] # c\r\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := workload.ReadJDL(strings.NewReader(string(data)), "jobs.jdl", workload.Options{})
		_, strict := workload.ReadJDL(strings.NewReader(string(data)), "jobs.jdl", workload.Options{Strict: true})
		if err != nil {
			checkInvalid(t, err)
			if strict == nil {
				t.Error("strict mode reads what the default does not")
			}
			return
		}
		checkReport(t, &w.Report)
		if (w.Report.Bad > 0) != (strict != nil) || w.Report.Usable != len(w.Requests) {
			t.Errorf("%+v, strict mode says %v", w.Report, strict)
		}
		seen := make(map[string]bool)
		for i := range w.Requests {
			r := &w.Requests[i]
			if err := r.Validate(); err != nil || seen[r.ID] || r.Ready != r.Arrival || i > 0 && r.Arrival < w.Requests[i-1].Arrival {
				t.Fatalf("request %+v: %v", r, err)
			}
			seen[r.ID] = true
		}
		var file strings.Builder
		if err := workload.WriteJSONL(&file, w.Requests); err != nil {
			t.Fatal(err)
		}
		again, err := workload.ReadJSONL(strings.NewReader(file.String()), "r.jsonl", workload.Options{Strict: true})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(w.Requests, again.Requests); diff != "" {
			t.Fatal(diff)
		}
	})
}
