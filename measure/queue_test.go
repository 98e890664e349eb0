package measure_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/measure"
)

// ran is a job that was given [start, start+limit) and really ended at end.
func ran(id string, arrival berth.Time, npe berth.Count, limit berth.Duration, start, end berth.Time) berth.Line {
	line := accepted(id, arrival, arrival, npe, limit, start)
	line.Kind, line.Deadline, line.ActualEnd = berth.KindJob, 0, &end
	return line
}

func waits(id string, arrival berth.Time, reason berth.Reason) berth.Line {
	return berth.Line{ID: id, Kind: berth.KindJob, Arrival: arrival, Ready: arrival, Duration: 5, NPE: 1, Reason: reason}
}

func until(line berth.Line, end berth.Time) berth.Line {
	line.ActualEnd = &end
	return line
}

func promised(line berth.Line, start berth.Time) berth.Line {
	line.PromisedStart = &start
	return line
}

// queued is a schedule on ten PEs with what each would have liked to run for.
// By hand:
//
//	id  npe  given     ran       wanted  fate               wait  run  (wait+run)/max(run,10)
//	a     2  [10,110)  [10,60)       50  finished               0   50   1
//	b     1  [30,40)   [30,40)       15  killed                20   10   3
//	c     4  [40,60)   [40,65)       25  finished, extended    30   25   2.2
//	d     1  [50,90)   [50,54)       40  failed                45    4   4.9
//	e     1  dropped at its waiting limit
//	f     1  still waiting
//	p     3  [20,30)   [20,30)       10  kept
//	q   1+1  [70,80)   [70,75)        9  failed, promised 60
//	r     2  [90,100)  [90,100)      12  killed, promised 95
//	s     2  broken, promised 99
//	t     2  refused
//	o     2  down [50,200)
//
// PE-seconds: jobs 100 + 10 + 100 + 4, requests 30 + 10 + 20. First arrival 5,
// last actual end 100: utilization 274 / (10 · 95); the outage takes 2 · 50.
var queued = []struct {
	line   berth.Line
	wanted berth.Duration
}{
	{ran("a", 10, 2, 100, 10, 60), 50},
	{accepted("p", 10, 20, 3, 10, 20), 0},
	{ran("b", 10, 1, 10, 30, 40), 15},
	{ran("c", 10, 4, 20, 40, 65), 25},
	{ran("d", 5, 1, 40, 50, 54), 40},
	{waits("e", 12, berth.DeadlineMissed), 0},
	{waits("f", 13, ""), 0},
	{promised(part(until(accepted("q", 14, 14, 1, 10, 70), 75), 1), 60), 9},
	{promised(part(until(accepted("q", 14, 14, 1, 10, 70), 75), 2), 60), 9},
	{promised(accepted("r", 15, 15, 2, 10, 90), 95), 12},
	{promised(refused("s", 16, 16, 2, 10, berth.NoCapacity), 99), 0},
	{refused("t", 17, 17, 2, 10, berth.NoCapacity), 0},
	{berth.Line{ID: "outage-1", Kind: berth.KindOutage, NPE: 2, Start: at(50), End: at(200)}, 0},
}

func queuedLines() (lines []berth.Line, wanted []berth.Duration) {
	for _, row := range queued {
		lines, wanted = append(lines, row.line), append(wanted, row.wanted)
	}
	return lines, wanted
}

func TestWorkedQueue(t *testing.T) {
	lines, wanted := queuedLines()
	m := measure.OfRuns(berth.Each(lines), 10, wanted)
	const text = "a\t1\t-\t-\t10\t110\t-\t60\nb\t1\t-\t-\t30\t40\t-\t40\nc\t1\t-\t-\t40\t60\t-\t65\n" +
		"d\t1\t-\t-\t50\t90\t-\t54\ne\t0\tdeadline_missed\t-\t-\t-\t-\t-\nf\t0\t-\t-\t-\t-\t-\t-\n"
	queue := measure.Queue{
		Jobs: 6, Finished: 2, Killed: 1, Failed: 1, Dropped: 1,
		MeanWait: new(95.0 / 4), MeanBoundedSlowdown: m.Queue.MeanBoundedSlowdown, UsedPESeconds: 214,
		DecisionHash: fmt.Sprintf("%x", sha256.Sum256([]byte(text))),
	}
	if diff := cmp.Diff(&queue, m.Queue); diff != "" {
		t.Error(diff)
	}
	if got := *m.Queue.MeanBoundedSlowdown; math.Abs(got-11.1/4) > 1e-12 {
		t.Errorf("bounded slowdown %v, want %v", got, 11.1/4)
	}
	promises := measure.Promises{
		Given: 4, Moved: 2, Broken: 1, Failed: 1, Killed: 1, MeanOffset: new(5.0 / 3), MaxOffset: at(10),
	}
	if diff := cmp.Diff(&promises, m.Promises); diff != "" {
		t.Error(diff)
	}
	used := measure.Used{PESeconds: 274, DownPESeconds: 100, Utilization: new(274.0 / 950)}
	if diff := cmp.Diff(&used, m.Used); diff != "" {
		t.Error(diff)
	}
	// The figures of the requests are those of a schedule without the jobs.
	var requests []berth.Line
	for _, line := range lines {
		if line.Kind == berth.KindRequest {
			requests = append(requests, line)
		}
	}
	alone := measure.Of(requests, 10)
	m.Queue, m.Promises, m.Used, alone.Promises, alone.Used = nil, nil, nil, nil, nil
	if diff := cmp.Diff(alone, m); diff != "" {
		t.Error(diff)
	}
	if measure.Hash(requests) != measure.Hash(lines) {
		t.Error("jobs change the decision hash")
	}
}

// Without a word of how long they wanted, all ran as long as they were given.
func TestNobodySaysHowLong(t *testing.T) {
	lines, _ := queuedLines()
	m := measure.Of(lines, 10)
	if q := m.Queue; q.Finished != 2 || q.Killed != 0 || q.Failed != 2 {
		t.Errorf("%+v", q) // a and d ended before their limit
	}
	if p := m.Promises; p.Failed != 1 || p.Killed != 0 || p.Given != 4 {
		t.Errorf("%+v", p)
	}
	// Nothing came between, and nothing says that something could.
	if m = measure.Of(worked, 10); m.Queue != nil || m.Promises != nil || m.Used != nil {
		t.Errorf("%+v", m)
	}
	if m = measure.OfRuns(berth.Each(worked), 10, make([]berth.Duration, len(worked))); m.Queue != nil || m.Promises.Given != 4 || *m.Promises.MeanOffset != 0 || m.Used.PESeconds != 640 {
		t.Errorf("%+v", m)
	}
}

// A job of 30 s that was stopped twice: it arrived at 5, ran [10,20) and
// [30,35), and [50,65) in the end, so it waited for 30 s. Other bookings are not
// of the queue.
func TestPiecesOfJobs(t *testing.T) {
	piece := func(id string, npe berth.Count, start, end berth.Time) berth.Line {
		return berth.Line{ID: id, Kind: berth.KindBooking, NPE: npe, Start: &start, End: &end}
	}
	lines := []berth.Line{
		ran("a/b", 5, 2, 15, 50, 65), piece("a/b/1", 2, 10, 20), piece("a/b/2", 2, 30, 35), piece("maintenance", 4, 0, 9), piece("x/1", 4, 0, 9),
	}
	m := measure.Of(lines, 10)
	if q := m.Queue; *q.MeanWait != 30 || *q.MeanBoundedSlowdown != 2 || q.UsedPESeconds != 60 || q.Finished != 1 {
		t.Errorf("%+v: wait %v, slowdown %v", q, *q.MeanWait, *q.MeanBoundedSlowdown)
	}
	if m.Used.PESeconds != 60 || *m.Used.Utilization != 0.1 {
		t.Errorf("%+v", m.Used)
	}
}

// A job of 4 s that did not wait has a slowdown of 1; an outage counts from the
// first arrival on.
func TestSlowdownIsAtLeastOne(t *testing.T) {
	lines := []berth.Line{
		ran("a", 5, 2, 4, 5, 9),
		{ID: "outage-1", Kind: berth.KindOutage, NPE: 3, Start: at(-50), End: at(7)},
		{ID: "outage-2", Kind: berth.KindOutage, NPE: 1, Start: at(8)},
	}
	if m := measure.Of(lines, 10); *m.Queue.MeanBoundedSlowdown != 1 || m.Used.DownPESeconds != 7 {
		t.Errorf("slowdown %v, %+v", *m.Queue.MeanBoundedSlowdown, m.Used)
	}
}

func TestQueueOfNothing(t *testing.T) {
	for name, c := range map[string]struct {
		lines []berth.Line
		want  string
	}{
		"none started": {
			[]berth.Line{waits("e", 3, berth.TooLarge)},
			`"queue":{"jobs":1,"finished":0,"killed":0,"failed":0,"dropped":1,"mean_wait":null,"mean_bounded_slowdown":null,"used_pe_seconds":0,` +
				`"decision_hash":"` + fmt.Sprintf("%x", sha256.Sum256([]byte("e\t0\ttoo_large\t-\t-\t-\t-\t-\n"))) +
				`"},"used":{"pe_seconds":0,"down_pe_seconds":0,"utilization":null}}`,
		},
		"every promise broken": {
			[]berth.Line{promised(refused("s", 16, 16, 2, 10, berth.NoCapacity), 99)},
			`"promises":{"given":1,"moved":0,"broken":1,"failed":0,"killed":0,"mean_offset":null,"max_offset":null},` +
				`"used":{"pe_seconds":0,"down_pe_seconds":0,"utilization":null}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(measure.Of(c.lines, 4))
			if err != nil || !strings.HasSuffix(string(got), c.want) {
				t.Errorf("%v\ngot  %s\nwant … %s", err, got, c.want)
			}
		})
	}
}

func TestQueueSummary(t *testing.T) {
	lines, wanted := queuedLines()
	s := measure.Summarize([]measure.Metrics{
		measure.OfRuns(berth.Each(lines), 10, wanted), measure.Of(worked, 10), measure.Of([]berth.Line{waits("e", 3, berth.TooLarge)}, 10),
	})
	for _, c := range []struct {
		name string
		got  measure.Estimate
		mean float64
		ci   bool
	}{
		{"jobs", s.Queue.Jobs, 3.5, true},
		{"finished", s.Queue.Finished, 1, true},
		{"killed", s.Queue.Killed, 0.5, true},
		{"failed", s.Queue.Failed, 0.5, true},
		{"dropped", s.Queue.Dropped, 1, true},
		{"wait", s.Queue.MeanWait, 95.0 / 4, false},
		{"slowdown", s.Queue.MeanBoundedSlowdown, 11.1 / 4, false},
		{"PE-seconds", s.Queue.UsedPESeconds, 107, true},
		{"given", s.Promises.Given, 4, false},
		{"moved", s.Promises.Moved, 2, false},
		{"broken", s.Promises.Broken, 1, false},
		{"lost", s.Promises.Failed, 1, false},
		{"cut", s.Promises.Killed, 1, false},
		{"offset", s.Promises.MeanOffset, 5.0 / 3, false},
		{"largest offset", s.Promises.MaxOffset, 10, false},
		{"used", s.Used.PESeconds, 137, true},
		{"down", s.Used.DownPESeconds, 50, true},
		{"utilization", s.Used.Utilization, 274.0 / 950, false},
	} {
		if c.got.Mean == nil || math.Abs(*c.got.Mean-c.mean) > 1e-12 || (c.got.CI95 != nil) != c.ci {
			t.Errorf("%s: %v %v, want %v", c.name, c.got.Mean, c.got.CI95, c.mean)
		}
	}
	if s = measure.Summarize([]measure.Metrics{measure.Of(worked, 10)}); s.Queue != nil || s.Promises != nil || s.Used != nil {
		t.Error("a summary of what is not there")
	}
}
