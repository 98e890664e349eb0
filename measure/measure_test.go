package measure_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/measure"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func at(t berth.Time) *berth.Time { return new(t) }

func accepted(id string, arrival, ready berth.Time, npe berth.Count, duration berth.Duration, start berth.Time) berth.Line {
	end := start.Add(duration)
	return berth.Line{
		ID: id, Kind: berth.KindRequest, Arrival: arrival, Ready: ready, Deadline: end, Duration: duration,
		NPE: npe, Accepted: true, Start: &start, End: &end,
	}
}

func refused(id string, arrival, ready berth.Time, npe berth.Count, duration berth.Duration, reason berth.Reason) berth.Line {
	return berth.Line{
		ID: id, Kind: berth.KindRequest, Arrival: arrival, Ready: ready, Deadline: ready.Add(duration),
		Duration: duration, NPE: npe, Reason: reason,
	}
}

// worked is a schedule on ten PEs. By hand:
//
//	id  npe  duration  PE-s  arrival  ready  start  end  wait  from arrival  slowdown
//	a     4       100   400       10     20     20  120     0            10         1
//	b     1        50    50       10     30     55  105    25            45       1.5
//	c     5        20   100       40     40    120  140    80            80         5
//	p   1+2     10,40    90       50     60     80  120    20            30       1.5
//	d     8        30   240        5      5  refused no_capacity
//	e    16         1    16       60     60  refused too_large
//	f     2         7    14       70     70  refused no_capacity
//
// The first arrival is 5, the last end 140: utilization 640 / (10 · 135).
var worked = []berth.Line{
	accepted("a", 10, 20, 4, 100, 20),
	refused("d", 5, 5, 8, 30, berth.NoCapacity),
	accepted("b", 10, 30, 1, 50, 55),
	{ID: "k", Kind: berth.KindBooking, NPE: 10, Start: at(0), End: at(900)},
	accepted("c", 40, 40, 5, 20, 120),
	part(accepted("p", 50, 60, 1, 10, 80), 1),
	refused("e", 60, 60, 16, 1, berth.TooLarge),
	part(accepted("p", 50, 60, 2, 40, 80), 2),
	refused("f", 70, 70, 2, 7, berth.NoCapacity),
	{ID: "o", Kind: berth.KindOutage, NPE: 1, Start: at(2000), End: at(3000)},
}

func part(line berth.Line, n int) berth.Line {
	line.Part = n
	return line
}

func TestWorkedSchedule(t *testing.T) {
	got := measure.Of(worked, 10)
	want := measure.Metrics{
		Jobs: 7, Accepted: 4,
		AcceptanceRate:      new(4.0 / 7),
		MeanSlowdown:        new(9.0 / 4),
		MeanWait:            new(125.0 / 4),
		MeanWaitFromArrival: new(165.0 / 4),
		Utilization:         new(640.0 / 1350),
		RequestedPESeconds:  910,
		AcceptedPESeconds:   640,
		Refusals:            []measure.ReasonCount{{berth.TooLarge, 1}, {berth.NoCapacity, 2}},
		SizeClasses: []measure.SizeClass{
			{1, 1, 1, 1, new(float64(1)), 50, 50},
			{2, 2, 1, 0, new(float64(0)), 14, 0},
			{3, 4, 2, 2, new(float64(1)), 490, 490},
			{5, 8, 2, 1, new(0.5), 340, 100},
			{9, 16, 1, 0, new(float64(0)), 16, 0},
		},
	}
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

func TestNothingHasNoMean(t *testing.T) {
	for name, tt := range map[string]struct {
		lines []berth.Line
		want  string
	}{
		"no lines": {nil, `{"jobs":0,"accepted":0,"acceptance_rate":null,"mean_slowdown":null,"mean_wait":null,` +
			`"mean_wait_from_arrival":null,"utilization":null,"requested_pe_seconds":0,"accepted_pe_seconds":0,` +
			`"refusals":[],"size_classes":[]}`},
		"nothing accepted": {
			[]berth.Line{refused("d", 5, 5, 1, 30, berth.Quota)},
			`{"jobs":1,"accepted":0,"acceptance_rate":0,"mean_slowdown":null,"mean_wait":null,` +
				`"mean_wait_from_arrival":null,"utilization":null,"requested_pe_seconds":30,"accepted_pe_seconds":0,` +
				`"refusals":[{"reason":"quota","count":1}],"size_classes":[{"min_npe":1,"max_npe":1,"jobs":1,"accepted":0,` +
				`"acceptance_rate":0,"requested_pe_seconds":30,"accepted_pe_seconds":0}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := json.Marshal(measure.Of(tt.lines, 4))
			if err != nil || string(got) != tt.want {
				t.Errorf("%v\ngot  %s\nwant %s", err, got, tt.want)
			}
		})
	}
}

func TestRequestIsAcceptedIfAllItsPartsAre(t *testing.T) {
	lines := []berth.Line{
		part(accepted("p", 0, 0, 2, 40, 80), 1),
		part(refused("p", 0, 0, 2, 40, berth.Quota), 2),
		part(accepted("p", 0, 0, 2, 40, 80), 3),
	}
	for range lines {
		m := measure.Of(lines, 8)
		if m.Jobs != 1 || m.Accepted != 0 || m.AcceptedPESeconds != 0 ||
			!slices.Equal(m.Refusals, []measure.ReasonCount{{berth.Quota, 1}}) {
			t.Errorf("%+v", m)
		}
		lines = append(lines[1:], lines[0])
	}
}

func TestReasonsInOrder(t *testing.T) {
	var lines []berth.Line
	want := []measure.ReasonCount{}
	for _, reason := range append(berth.Reasons(), "another", "unknown") {
		want = append(want, measure.ReasonCount{Reason: reason, Count: 1})
		lines = append(lines, refused(string(reason), 0, 0, 1, 1, reason))
	}
	slices.Reverse(lines)
	if got := measure.Of(lines, 1).Refusals; !slices.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

func TestSumsSaturate(t *testing.T) {
	line := accepted("a", 0, 0, berth.MaxPEs, berth.TimeLimit-1, 0)
	m := measure.Of([]berth.Line{line, line, line}, berth.MaxPEs)
	if m.RequestedPESeconds != math.MaxInt64 || m.AcceptedPESeconds != math.MaxInt64 {
		t.Errorf("%+v", m)
	}
}

func TestNoDurationGivesNumbers(t *testing.T) {
	if _, err := json.Marshal(measure.Of([]berth.Line{accepted("a", 0, 0, 1, 0, 0)}, 1)); err != nil {
		t.Error(err)
	}
}

func drawLines(t *rapid.T) []berth.Line {
	lines := make([]berth.Line, rapid.IntRange(0, 20).Draw(t, "lines"))
	for i := range lines {
		id := rapid.StringMatching(`[a-z]{1,3}`).Draw(t, "id")
		arrival := berth.Time(rapid.IntRange(-50, 50).Draw(t, "arrival"))
		ready := arrival + berth.Time(rapid.IntRange(0, 50).Draw(t, "lead"))
		npe := berth.Count(rapid.IntRange(1, 70).Draw(t, "npe"))
		duration := berth.Duration(rapid.IntRange(1, 90).Draw(t, "duration"))
		if rapid.Bool().Draw(t, "accepted") {
			lines[i] = accepted(id, arrival, ready, npe, duration, ready+berth.Time(rapid.IntRange(0, 70).Draw(t, "wait")))
		} else {
			lines[i] = refused(id, arrival, ready, npe, duration, rapid.SampledFrom(berth.Reasons()).Draw(t, "reason"))
		}
	}
	return lines
}

// TestClockDoesNotMatter: the figures are differences of times.
func TestClockDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := drawLines(t)
		before := measure.Of(lines, 64)
		shift := berth.Time(rapid.Int64Range(-1<<40, 1<<40).Draw(t, "shift"))
		for i := range lines {
			line := &lines[i]
			line.Arrival, line.Ready, line.Deadline = line.Arrival+shift, line.Ready+shift, line.Deadline+shift
			if line.Accepted {
				line.Start, line.End = new(*line.Start+shift), new(*line.End+shift)
			}
		}
		if after := measure.Of(lines, 64); !cmp.Equal(before, after) {
			t.Fatal(cmp.Diff(before, after))
		}
	})
}

// TestSizeClassesPartition: they ascend, do not overlap, hold what they say,
// and add up to the whole.
func TestSizeClassesPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := drawLines(t)
		m := measure.Of(lines, 64)
		var sum measure.SizeClass
		last := int64(0)
		for _, class := range m.SizeClasses {
			if class.MinNPE <= last || class.MaxNPE < class.MinNPE || class.MaxNPE&(class.MaxNPE-1) != 0 {
				t.Fatalf("bounds of %+v", m.SizeClasses)
			}
			last = class.MaxNPE
			jobs := 0
			for _, line := range lines {
				if n := int64(line.NPE); class.MinNPE <= n && n <= class.MaxNPE {
					jobs++
				}
			}
			if jobs != class.Jobs || jobs == 0 {
				t.Fatalf("%d requests in class %+v", jobs, class)
			}
			sum.Jobs += class.Jobs
			sum.Accepted += class.Accepted
			sum.RequestedPESeconds += class.RequestedPESeconds
			sum.AcceptedPESeconds += class.AcceptedPESeconds
		}
		want := measure.SizeClass{
			Jobs: m.Jobs, Accepted: m.Accepted,
			RequestedPESeconds: m.RequestedPESeconds, AcceptedPESeconds: m.AcceptedPESeconds,
		}
		if sum != want {
			t.Fatalf("got %+v, want %+v", sum, want)
		}
	})
}

// TestLastEndIsOfAnyPart: 4 PE-seconds on 2 PEs from 0 to 3.
func TestLastEndIsOfAnyPart(t *testing.T) {
	for _, ends := range [][2]berth.Duration{{1, 3}, {3, 1}} {
		m := measure.Of([]berth.Line{
			part(accepted("p", 0, 0, 1, ends[0], 0), 1),
			part(accepted("p", 0, 0, 1, ends[1], 0), 2),
		}, 2)
		if *m.Utilization != 4.0/6 || *m.MeanSlowdown != 1 {
			t.Errorf("%v: utilization %v, slowdown %v", ends, *m.Utilization, *m.MeanSlowdown)
		}
	}
}
