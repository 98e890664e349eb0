package accounting

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
)

// What sacct prints is read by the names of its columns, in any order, with times of a zone or in seconds; steps are left out.
func TestRead(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	runs, err := Read(strings.NewReader("State|JobID|JobIDRaw|Reservation|User|NNodes|AllocCPUS|Start|End\n"+
		"COMPLETED|7_2|9|berth_lab_0123456789abcdef_1|alice|2|8|2027-01-31T18:00:00|2027-01-31T18:00:10\n"+
		"COMPLETED|7_2.batch|9.batch|||1|4|2027-01-31T18:00:00|2027-01-31T18:00:10\n"+
		"CANCELLED by 0|10|10|||0|0|None|1801414900\nRUNNING|11|11|||1|1|1801414900|Unknown\n"), zone)
	want := []Run{
		{Job: "7_2", Raw: "9", Reservation: "berth_lab_0123456789abcdef_1", State: "COMPLETED", Nodes: 2, CPUs: 8, Start: 1801414800, End: 1801414810},
		{Job: "10", Raw: "10", State: "CANCELLED by 0", End: 1801414900},
		{Job: "11", Raw: "11", State: "RUNNING", Nodes: 1, CPUs: 1, Start: 1801414900},
	}
	if diff := cmp.Diff(want, runs); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// What cannot be read is told with its line and with what to ask sacct for.
func TestReadRefuses(t *testing.T) {
	const names = "JobID|Reservation|State|NNodes|AllocCPUS|Start|End\n"
	for text, want := range map[string]string{
		"":                                  "sacct: it is empty; want what sacct --parsable2 prints, with its line of names",
		"JobID|State\n":                     "sacct: no column Reservation in its first line (JobID|State); want those of --format=" + Format,
		names + "1|r|COMPLETED|1|1|5\n":     "sacct: line 2 has 6 fields, and its line of names 7; want what sacct --parsable2 prints",
		names + "1|r|COMPLETED|one|1|5|6\n": `sacct: line 2: one: "one"; want a whole number`,
		names + "1|r|COMPLETED|-1|1|5|6\n":  `sacct: line 2: -1: "-1"; want a whole number`,
		names + "1|r|COMPLETED|1|1|yesterday|6\n": `sacct: line 2: yesterday: "yesterday"; want a time such as 2027-01-31T18:00:00, or seconds (SLURM_TIME_FORMAT=%s)`,
		names + strings.Repeat("x", 2*maxLine):    "sacct: bufio.Scanner: token too long",
	} {
		_, err := Read(strings.NewReader(text), time.UTC)
		if coded, is := errors.AsType[*berth.Error](err); !is || coded.Code != berth.Invalid || err.Error() != want {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("JobID|Reservation|State|NNodes|AllocCPUS|Start|End\n1|r|COMPLETED|1|1|5|6\n")
	f.Fuzz(func(t *testing.T, text string) {
		runs, err := Read(strings.NewReader(text), time.UTC)
		if err == nil && Total(runs) < 0 {
			t.Errorf("%q holds %d", text, Total(runs))
		}
	})
}

// Each difference has its reason, and none is made up.
func TestCompareNamesEachDifference(t *testing.T) {
	ran := func(job string, pes berth.Count, start, end berth.Time, how Ending, state string) Run {
		return Run{Job: job, PEs: pes, Start: start, End: end, Ending: how, State: state}
	}
	for _, c := range []struct {
		name            string
		ours, theirs    []Run
		job             string
		counted, Slurms int64
		reason          Reason
	}{
		{name: "the same", ours: []Run{ran("1", 2, 10, 20, Seen, "")}, theirs: []Run{ran("1", 2, 10, 20, Seen, "COMPLETED")}},
		{name: "nothing held", theirs: []Run{ran("1", 2, 0, 20, Seen, "CANCELLED"), ran("2", 1, 20, 20, Seen, "COMPLETED")}},
		{"killed", []Run{ran("1", 2, 10, 21, Seen, "")}, []Run{ran("1", 2, 10, 20, Seen, "CANCELLED by 0")}, "1", 22, 20, Killed},
		{"killed a second earlier", []Run{ran("1", 2, 10, 19, Seen, "")}, []Run{ran("1", 2, 10, 20, Seen, "TIMEOUT")}, "1", 18, 20, Killed},
		{"killed two seconds later", []Run{ran("1", 2, 10, 22, Seen, "")}, []Run{ran("1", 2, 10, 20, Seen, "CANCELLED")}, "1", 24, 20, Unexplained},
		{"a second more of one that ended by itself", []Run{ran("1", 1, 10, 21, Seen, "")}, []Run{ran("1", 1, 10, 20, Seen, "COMPLETED")}, "1", 11, 10, Unexplained},
		{"put back", []Run{ran("1", 1, 10, 25, Requeued, ""), ran("1", 1, 40, 50, Seen, "")}, []Run{ran("1", 1, 10, 20, Seen, "NODE_FAIL"), ran("1", 1, 40, 50, Seen, "COMPLETED")}, "1", 15, 10, PutBack},
		{"a run between two that was not seen", []Run{ran("1", 1, 40, 50, Seen, "")}, []Run{ran("1", 1, 10, 20, Seen, "REQUEUED"), ran("1", 1, 40, 50, Seen, "COMPLETED")}, "1", 0, 10, Uncounted},
		{"forgotten", []Run{ran("1", 1, 10, 25, Forgotten, "")}, []Run{ran("1", 1, 10, 20, Seen, "COMPLETED")}, "1", 15, 10, Unlisted},
		{"runs", []Run{ran("1", 1, 10, 25, Running, "")}, []Run{ran("1", 1, 10, 0, Seen, "RUNNING")}, "1", 15, 0, Runs},
		{"ran when the file was made", []Run{ran("1", 1, 10, 25, Seen, "")}, []Run{ran("1", 1, 10, 0, Seen, "RUNNING")}, "1", 15, 0, Runs},
		{"other PEs", []Run{ran("1", 2, 10, 20, Seen, "")}, []Run{ran("1", 1, 10, 20, Seen, "CANCELLED")}, "1", 20, 10, Unexplained},
		{"another start", []Run{ran("1", 1, 10, 20, Seen, "")}, []Run{ran("1", 1, 11, 20, Seen, "CANCELLED")}, "1", 10, 9, Unexplained},
		{"not in the file", []Run{ran("1", 1, 10, 20, Seen, "")}, nil, "1", 10, 0, Unaccounted},
	} {
		var want []Difference
		if c.reason != "" {
			want = []Difference{{c.job, c.counted, c.Slurms, c.reason}}
		}
		if diff := cmp.Diff(want, Compare(c.ours, c.theirs)); diff != "" && len(want)+len(Compare(c.ours, c.theirs)) > 0 {
			t.Errorf("%s: (-want +got)\n%s", c.name, diff)
		}
	}
}

// The differences of the jobs come to that of the sums, whatever the runs are.
func TestDifferencesComeToThatOfTheSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Run {
			start := rapid.Int64Range(0, 9).Draw(t, "start")
			return Run{
				Job: rapid.SampledFrom([]string{"1", "2", "10", "10_1"}).Draw(t, "job"), PEs: berth.Count(rapid.IntRange(0, 3).Draw(t, "PEs")), Start: berth.Time(start),
				End: berth.Time(rapid.SampledFrom([]int64{0, start, start + 1, start + 5}).Draw(t, "end")), Ending: Ending(rapid.IntRange(0, 3).Draw(t, "ending")),
				State: rapid.SampledFrom([]string{"COMPLETED", "CANCELLED by 0", "NODE_FAIL"}).Draw(t, "state"),
			}
		}), 0, 6)
		ours, theirs := runs.Draw(t, "ours"), runs.Draw(t, "theirs")
		var sum int64
		list := Compare(slices.Clone(ours), slices.Clone(theirs))
		for _, d := range list {
			if sum += d.Counted - d.Accounted; d.Counted == d.Accounted || d.Reason == "" {
				t.Fatalf("%+v", d)
			}
		}
		if want := Total(ours) - Total(theirs); sum != want {
			t.Fatalf("%d, want %d: %+v", sum, want, list)
		}
		if same := Compare(ours, ours); slices.ContainsFunc(same, func(d Difference) bool { return true }) {
			t.Fatalf("of itself %+v", same)
		}
	})
}
