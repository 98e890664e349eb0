package workload_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/internal/stream"
	"github.com/berth-hpc/berth/workload"
)

const day = 86_400

// logOf returns records of submit, wait, run and processors.
func logOf(jobs ...[4]int64) []workload.Record {
	records := make([]workload.Record, len(jobs))
	for i, j := range jobs {
		records[i] = workload.Record{
			Job: int64(i) + 1, Submit: berth.Time(j[0]), Wait: berth.Duration(j[1]), Run: berth.Duration(j[2]), Procs: berth.Count(j[3]),
		}
	}
	return records
}

// A log small enough to follow by hand, with every job tagged.
func TestTaggingReal(t *testing.T) {
	records := logOf(
		[4]int64{8 * day, 0, 2 * day, 2},    // 1: over when the thirty days begin
		[4]int64{9 * day, 10, 2 * day, 2},   // 2: runs into them
		[4]int64{20 * day, 0, 30 * day, 3},  // 3: runs over now
		[4]int64{20 * day, 0, 30 * day, 2},  // 4: one PE too many beside 3
		[4]int64{39 * day, 2 * day, 60, 1},  // 5: submitted before now, starts after
		[4]int64{40 * day, 0, 60, 1},        // 6: submitted at now
		[4]int64{40*day + 100, 0, 60, 1},    // 7: submitted later
		[4]int64{41 * day, -1, 20 * day, 4}, // 8: later, and too large beside 3
	)
	tagging := workload.Tagging{Share: 1, Thinning: workload.Real, Now: 40 * day, PEs: 4, Seed: 1}
	got, err := tagging.Bookings(records)
	if err != nil {
		t.Fatal(err)
	}
	want := &workload.Tagged{
		Bookings: []workload.Booking{
			{ID: "2", NPE: 2, Start: 9*day + 10, End: 11*day + 10},
			{ID: "3", NPE: 3, Start: 20 * day, End: 50 * day},
			{ID: "6", NPE: 1, Start: 40 * day, End: 40*day + 60},
			{ID: "5", NPE: 1, Start: 41 * day, End: 41*day + 60},
		},
		Past: berth.Interval{Start: 10 * day, End: 40 * day},
		Free: 2, // (30·4 − (1·2 + 20·3)) / 30 = 1.93, and ten seconds of job 2
		Jobs: 8, Tagged: 8, NoWait: 1, Unfit: 2, Ended: 1, Later: 1,
		PerDay: [7]int{1, 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	const line = "4 bookings: 8 of 8 jobs tagged, 1 without a recorded start, 2 beyond the machine, 1 over long before, 1 left out as later; 2 PEs free on average"
	if got.String() != line {
		t.Error(got)
	}
}

// starts returns a log of n jobs of one PE a day that run for an hour.
func starts(perDay, days int) []workload.Record {
	var jobs [][4]int64
	for d := range days {
		for i := range perDay {
			jobs = append(jobs, [4]int64{int64(d*day + i*(day/perDay)), 0, 3600, 1})
		}
	}
	return logOf(jobs...)
}

// The number of starts on each of the seven days: of ten a day before, by the
// formulas of the specification worked out with a calculator.
func TestThinnedDays(t *testing.T) {
	for how, want := range map[workload.Thinning][7]int{
		workload.Linear: {9, 8, 6, 5, 4, 2, 1}, // 9.29 7.86 6.43 5 3.57 2.14 0.71
		workload.Expo:   {7, 4, 2, 1, 1, 0, 0}, // 7.20 3.73 1.93 1.00 0.52 0.27 0.14
	} {
		for name, records := range map[string][]workload.Record{
			"thinned": starts(10, 60),
			"filled":  append(starts(10, 40), workload.Record{Job: 9999, Submit: 60 * day, Run: 60, Procs: 1}),
		} {
			tagging := workload.Tagging{Share: 1, Thinning: how, Now: 40 * day, PEs: 100, Seed: 3}
			got, err := tagging.Bookings(records)
			if err != nil {
				t.Fatal(err)
			}
			sum := 0
			for _, n := range want {
				sum += n
			}
			removed, copied := 0, sum
			if name == "thinned" {
				removed, copied = 70-sum, 0
			}
			if got.PerDay != want || got.Removed != removed || got.Copied != copied || got.NoRoom != 0 {
				t.Errorf("%s, %s: %v starts a day, %d removed, %d copied, %d without room; want %v, %d, %d",
					how, name, got.PerDay, got.Removed, got.Copied, got.NoRoom, want, removed, copied)
			}
			if last := got.Bookings[len(got.Bookings)-1]; last.Start >= 47*day {
				t.Errorf("%s, %s: %v starts after the seventh day", how, name, last)
			}
		}
	}
}

// A log that has not lasted thirty days yet has its mean over what there is.
func TestThinnedDaysOfAYoungLog(t *testing.T) {
	tagging := workload.Tagging{Share: 1, Thinning: workload.Linear, Now: 5 * day, PEs: 100}
	got, err := tagging.Bookings(starts(10, 20))
	if err != nil {
		t.Fatal(err)
	}
	if want := [7]int{9, 8, 6, 5, 4, 2, 1}; got.PerDay != want || got.Past.Length() != 5*day {
		t.Errorf("%v starts a day, past %v, want %v", got.PerDay, got.Past, want)
	}
}

// Few starts within a few seconds are not extrapolated to a day.
func TestThinnedDaysOfANewbornLog(t *testing.T) {
	tagging := workload.Tagging{Share: 1, Thinning: workload.Linear, Now: 10, PEs: 100}
	got, err := tagging.Bookings(logOf([4]int64{0, 0, 60, 1}, [4]int64{1, 0, 60, 1}))
	if err != nil {
		t.Fatal(err)
	}
	if want := [7]int{2, 2, 1, 1, 1, 0, 0}; got.PerDay != want { // 1.86 1.57 1.29 1 0.71 0.43 0.14
		t.Errorf("%v starts a day, want %v", got.PerDay, want)
	}
}

// Where the machine is full there is no room for copies.
func TestCopiesNeedRoom(t *testing.T) {
	records := append(starts(10, 40), workload.Record{Job: 9999, Submit: 39 * day, Run: 30 * day, Procs: 99})
	tagging := workload.Tagging{Share: 1, Thinning: workload.Linear, Now: 40 * day, PEs: 100}
	got, err := tagging.Bookings(records)
	if err != nil {
		t.Fatal(err)
	}
	if got.NoRoom > 0 || got.Copied != 35 {
		t.Errorf("one PE is free, but %s", got)
	}
	if err := workload.CheckFit(got.Bookings, 100); err != nil {
		t.Error(err)
	}
	if end := got.Bookings[len(got.Bookings)-1].End; end > 47*day {
		t.Errorf("the last ends at %d, after the seventh day", end)
	}
	records[len(records)-1].Procs = 100 // and the jobs of the last day no longer fit
	records = slices.DeleteFunc(records, func(r workload.Record) bool { return r.Submit >= 39*day && r.Procs == 1 })
	if got, err = tagging.Bookings(records); err != nil {
		t.Fatal(err)
	}
	if got.NoRoom != 34 || got.Copied != 0 {
		t.Errorf("nothing is free, but %s", got)
	}
}

// What lasts beyond the seventh day is cut, copies as well.
func TestThinnedSchedulesEndAfterSevenDays(t *testing.T) {
	records := starts(10, 40)
	for i := range records {
		records[i].Run = 3 * day
	}
	for name, now := range map[string]berth.Time{"thinned": 20 * day, "filled": 39*day + 86_000} {
		tagging := workload.Tagging{Share: 1, Thinning: workload.Linear, Now: now, PEs: 100, Seed: 1}
		got, err := tagging.Bookings(records)
		if err != nil {
			t.Fatal(err)
		}
		if (got.Copied > 30) != (name == "filled") {
			t.Errorf("%s: %s", name, got)
		}
		cut := 0
		for _, b := range got.Bookings {
			if b.End > now+7*day {
				t.Errorf("%s: %+v lasts beyond the seventh day", name, b)
			}
			if b.End == now+7*day {
				cut++
			}
		}
		if cut < 5 {
			t.Errorf("%s: %d bookings are cut", name, cut)
		}
	}
}

// Which jobs are tagged depends on the seed and the share alone, a larger share
// tags more, and the bookings of the past are those of tagged jobs.
func TestTaggingDrawsByRecord(t *testing.T) {
	records := starts(20, 60)
	draws := stream.New(5, "tagging")
	for _, how := range workload.Thinnings() {
		for _, now := range []berth.Time{31 * day, 50 * day} {
			tagging := workload.Tagging{Share: .3, Thinning: how, Now: now, PEs: 100, Seed: 5}
			got, err := tagging.Bookings(records)
			if err != nil {
				t.Fatal(err)
			}
			at := map[string]bool{}
			for _, b := range got.Bookings {
				at[b.ID] = true
			}
			for i, r := range records {
				past := r.Submit >= now-30*day && r.Submit < now
				if past && at[strconv.FormatInt(r.Job, 10)] != (draws.Float64(uint64(i)) < .3) {
					t.Fatalf("%s at %d: job %d tagged is %v", how, now, r.Job, at[strconv.FormatInt(r.Job, 10)])
				}
			}
		}
	}
}

// Whatever the log: the machine is never overbooked, the numbers add up, every
// booking is a tagged job or a copy of one, those begun are whole but for the
// cut, and none is beyond the last day.
func TestTaggingProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "jobs")
		jobs := make([][4]int64, n)
		for i := range jobs {
			jobs[i] = [4]int64{
				rapid.Int64Range(0, 50*day).Draw(t, "submit"), rapid.Int64Range(-1, 3*day).Draw(t, "wait"),
				rapid.Int64Range(1, 9*day).Draw(t, "run"), rapid.Int64Range(1, 9).Draw(t, "procs"),
			}
		}
		slices.SortFunc(jobs, func(a, b [4]int64) int { return int(a[0] - b[0]) })
		records := logOf(jobs...)
		tagging := workload.Tagging{
			Share: rapid.Float64Range(.01, 1).Draw(t, "share"), Thinning: rapid.SampledFrom(workload.Thinnings()).Draw(t, "method"),
			Now:  records[0].Submit + berth.Time(rapid.Int64Range(1, 55*day).Draw(t, "now")),
			Seed: rapid.Uint64().Draw(t, "seed"), PEs: berth.Count(rapid.IntRange(1, 30).Draw(t, "pes")),
		}
		got, err := tagging.Bookings(records)
		if err != nil {
			if !strings.Contains(err.Error(), "inside the log") {
				t.Fatal(err)
			}
			return
		}
		again, err := tagging.Bookings(records)
		if err != nil || cmp.Diff(got, again) != "" {
			t.Fatal("the same tagging gives another schedule", err)
		}
		if err := workload.CheckFit(got.Bookings, tagging.PEs); err != nil {
			t.Fatal(err)
		}
		if sum := got.Tagged - got.Unfit - got.Later - got.Removed - got.Ended + got.Copied; len(got.Bookings) != sum {
			t.Fatalf("%d bookings, but %+v", len(got.Bookings), got)
		}
		if got.Free != workload.AverageFree(got.Bookings, tagging.PEs, got.Past) {
			t.Fatalf("%d free on average", got.Free)
		}
		checkTagged(t, &tagging, records, got)
	})
}

func checkTagged(t *rapid.T, tagging *workload.Tagging, records []workload.Record, got *workload.Tagged) {
	t.Helper()
	until := berth.Time(math.MaxInt64)
	if tagging.Thinning != workload.Real {
		until = tagging.Now + 7*day
	}
	if !slices.IsSortedFunc(got.Bookings, func(a, b workload.Booking) int { return int(a.Start - b.Start) }) {
		t.Fatal("bookings are not in the order of their starts")
	}
	seen := map[string]bool{}
	ahead := 0
	for _, b := range got.Bookings {
		original, copied, isCopy := strings.Cut(b.ID, ".")
		job, err := strconv.Atoi(original)
		if err != nil || seen[b.ID] {
			t.Fatalf("id %q", b.ID)
		}
		seen[b.ID] = true
		r := records[job-1]
		start, end := r.Submit+max(0, berth.Time(r.Wait)), r.Submit+max(0, berth.Time(r.Wait))+berth.Time(r.Run)
		if isCopy {
			if n, err := strconv.Atoi(copied); err != nil || n < 1 || b.Start < tagging.Now || b.Start >= until {
				t.Fatalf("copy %+v", b)
			}
			end += b.Start - start
			start = b.Start
		}
		if b.NPE != r.Size() || b.Start != start || b.End != min(end, until) || b.End <= got.Past.Start {
			t.Fatalf("booking %+v of %+v", b, r)
		}
		if tagging.Thinning == workload.Real && r.Submit > tagging.Now {
			t.Fatalf("job %d was submitted at %d, after %d", job, r.Submit, tagging.Now)
		}
		if b.Start >= tagging.Now && b.Start < tagging.Now+7*day {
			ahead++
		}
	}
	for _, n := range got.PerDay {
		ahead -= n
	}
	if ahead != 0 {
		t.Fatalf("%v starts a day do not add up", got.PerDay)
	}
}

func TestTaggingMistakes(t *testing.T) {
	good := workload.Tagging{Share: .2, Thinning: workload.Expo, Now: 40 * day, PEs: 10}
	records := starts(5, 60)
	for name, c := range map[string]struct {
		field  string
		change func(*workload.Tagging)
	}{
		"no share":     {"share", func(g *workload.Tagging) { g.Share = 0 }},
		"all and more": {"share", func(g *workload.Tagging) { g.Share = 1.01 }},
		"no number":    {"share", func(g *workload.Tagging) { g.Share = math.NaN() }},
		"no method":    {"method", func(g *workload.Tagging) { g.Thinning = "" }},
		"no machine":   {"pes", func(g *workload.Tagging) { g.PEs = 0 }},
		"at the start": {"now", func(g *workload.Tagging) { g.Now = 0 }},
		"at the end":   {"now", func(g *workload.Tagging) { g.Now = 60 * day }},
		"beyond time":  {"now", func(g *workload.Tagging) { g.Now = berth.Forever }},
	} {
		t.Run(name, func(t *testing.T) {
			bad := good
			c.change(&bad)
			_, err := bad.Bookings(records)
			wantMistake(t, err, c.field)
		})
	}
	_, err := good.Bookings(nil)
	wantMistake(t, err, "workload", "no job")
}

// The paper's four platforms, in the middle of their logs. The numbers are
// pinned: experiments rest on these draws.
func TestTaggingOfRealLogs(t *testing.T) {
	if testing.Short() {
		t.Skip("works in one goroutine: the race detector has nothing to see")
	}
	for _, c := range []struct {
		log       string
		pes       berth.Count
		partition int32
		want      string // of expo and a share of .2
	}{
		{"CTC-SP2-1996-3.1-cln", 430, 0, "1506 bookings: 15517 of 77205 jobs tagged, 6567 over long before, 7233 left out as later, 221 removed to thin out, 10 copied in; 364 PEs free on average [34 18 9 5 2 1 1]"},
		{"OSC-Clust-2000-3.1-cln", 57, 0, "290 bookings: 7182 of 35592 jobs tagged, 3422 over long before, 3435 left out as later, 35 removed to thin out; 55 PEs free on average [7 3 2 1 0 0 0]"},
		{"SDSC-BLUE-2000-4.2-cln", 1152, 0, "1585 bookings: 46311 of 232536 jobs tagged, 4 beyond the machine, 19521 over long before, 24974 left out as later, 227 removed to thin out; 969 PEs free on average [36 19 10 5 3 1 1]"},
		{"SDSC-DS-2004-2.1-cln", 224, 3, "396 bookings: 2791 of 13800 jobs tagged, 12 beyond the machine, 559 over long before, 1699 left out as later, 125 removed to thin out; 199 PEs free on average [9 5 2 1 1 0 0]"},
	} {
		if testing.Short() && c.pes > 500 {
			continue // a second for the largest log; the others show the same
		}
		opt := workload.Options{PEs: c.pes}
		if c.partition > 0 {
			opt.Keep = func(r *workload.Record) bool { return r.Partition == c.partition }
		}
		log, err := workload.Open(realdata.File(t, "swf", c.log+".swf.gz"), opt)
		if err != nil {
			t.Fatal(err)
		}
		first, last := log.Records[0].Submit, log.Records[len(log.Records)-1].Submit
		for _, how := range workload.Thinnings() {
			tagging := workload.Tagging{Share: .2, Thinning: how, Now: first + (last-first)/2, PEs: c.pes, Seed: 1}
			got, err := tagging.Bookings(log.Records)
			if err != nil {
				t.Fatal(err)
			}
			if err := workload.CheckFit(got.Bookings, c.pes); err != nil {
				t.Errorf("%s, %s: %v", c.log, how, err)
			}
			if how == workload.Expo && fmt.Sprint(got, " ", got.PerDay) != c.want {
				t.Errorf("%s at %d:\n got %v %v\nwant %s", c.log, tagging.Now, got, got.PerDay, c.want)
			}
		}
	}
}
