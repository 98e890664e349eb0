package workload_test

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workload"
)

// drawRecords draws usable records in order of submission.
func drawRecords(t *rapid.T) []workload.Record {
	n := rapid.IntRange(1, 30).Draw(t, "records")
	records := make([]workload.Record, n)
	var submit berth.Time
	draw := func(label string, low, high int64) int64 { return rapid.Int64Range(low, high).Draw(t, label) }
	jobs := rapid.Permutation(sequence(n)).Draw(t, "jobs")
	for i := range records {
		submit += berth.Time(draw("gap", 0, 1<<30))
		r := workload.Record{
			Job: jobs[i], Submit: submit, Wait: berth.Duration(draw("wait", -1, 1<<42-1)),
			Run: berth.Duration(draw("run", 1, 1<<42-1)), Procs: berth.Count(draw("procs", -1, 1<<20)),
			CPU:    rapid.OneOf(rapid.Just(-1.0), rapid.Float64Range(0, 1e6), rapid.Float64Range(0, 1<<42-1)).Draw(t, "cpu"),
			Memory: draw("memory", -1, 1<<53-1), ReqProcs: berth.Count(draw("requested", 1, 1<<20)),
			ReqTime: berth.Duration(draw("estimate", -1, 1<<42-1)), ReqMemory: draw("req memory", -1, 1<<53-1),
			Status: int32(draw("status", -1, 5)), User: int32(draw("user", -1, math.MaxInt32)),
			Group: int32(draw("group", -1, math.MaxInt32)), App: int32(draw("app", -1, math.MaxInt32)),
			Queue: int32(draw("queue", -1, math.MaxInt32)), Partition: int32(draw("partition", -1, math.MaxInt32)),
			Preceding: draw("preceding", -1, 1<<53-1), Think: berth.Duration(draw("think", -1, 1<<42-1)),
		}
		records[i] = r
	}
	return records
}

func sequence(n int) []int64 {
	numbers := make([]int64, n)
	for i := range numbers {
		numbers[i] = int64(i) + 1
	}
	return numbers
}

func TestSWFRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := drawRecords(t)
		header := workload.Header(rapid.SliceOfN(rapid.StringMatching(`[ -~]{0,40}`), 0, 5).Draw(t, "header"))
		var file bytes.Buffer
		if err := workload.WriteSWF(&file, header, records); err != nil {
			t.Fatal(err)
		}
		w, err := workload.ReadSWF(&file, "log.swf", workload.Options{Strict: true, PEs: berth.MaxPEs})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(records, w.Records); diff != "" {
			t.Fatal(diff)
		}
		if diff := cmp.Diff(header, w.Header, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// What the reader would refuse the writer refuses too.
func TestWriteSWFRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		field  string
		change func(*workload.Record)
	}{
		"job number":           {"job number", func(r *workload.Record) { r.Job = -1 }},
		"submit":               {"submit time", func(r *workload.Record) { r.Submit = -1 }},
		"submit beyond":        {"submit time", func(r *workload.Record) { r.Submit = berth.TimeLimit }},
		"wait":                 {"wait time", func(r *workload.Record) { r.Wait = -2 }},
		"run beyond":           {"run time", func(r *workload.Record) { r.Run = berth.TimeLimit }},
		"size beyond":          {"allocated processors", func(r *workload.Record) { r.Procs = berth.MaxPEs + 1 }},
		"CPU no number":        {"average CPU time", func(r *workload.Record) { r.CPU = math.NaN() }},
		"CPU infinite":         {"average CPU time", func(r *workload.Record) { r.CPU = math.Inf(1) }},
		"CPU between -1 and 0": {"average CPU time", func(r *workload.Record) { r.CPU = -0.5 }},
		"think":                {"think time", func(r *workload.Record) { r.Think = -2 }},
	} {
		t.Run(name, func(t *testing.T) {
			r := record(5, 0, 60, 8)
			c.change(&r)
			err := workload.WriteSWF(&bytes.Buffer{}, nil, []workload.Record{r})
			wantMistake(t, err, c.field, "job "+strconv.FormatInt(r.Job, 10))
		})
	}
	for _, line := range []string{"a\nb", "a\rb"} {
		wantMistake(t, workload.WriteSWF(&bytes.Buffer{}, workload.Header{"fine", line}, nil), "header", "line 2")
	}
}

var errFull = errors.New("disk full")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestWritersWrapFailures(t *testing.T) {
	if err := workload.WriteSWF(fullDisk{}, nil, []workload.Record{record(1, 0, 60, 8)}); !errors.Is(err, errFull) {
		t.Errorf("error is %v, want the disk's", err)
	}
	if err := workload.WriteJSONL(fullDisk{}, []berth.Request{berth.Rigid("a", 0, 0, 9, 1, 9)}); !errors.Is(err, errFull) {
		t.Errorf("error is %v, want the disk's", err)
	}
}

// drawRequests draws requests of all shapes in order of arrival.
func drawRequests(t *rapid.T) []berth.Request {
	n := rapid.IntRange(1, 20).Draw(t, "requests")
	requests := make([]berth.Request, n)
	arrival := berth.Time(rapid.Int64Range(-1<<30, 0).Draw(t, "first"))
	for i := range requests {
		arrival += berth.Time(rapid.Int64Range(0, 1<<30).Draw(t, "gap"))
		ready := arrival + berth.Time(rapid.Int64Range(0, 1<<20).Draw(t, "ready"))
		id := strconv.Itoa(i) + "." + rapid.StringMatching(`[ -~äß漢"\\]{0,8}`).Draw(t, "id")
		r := berth.Request{
			ID: id, User: rapid.StringMatching(`[a-z<&]{0,3}`).Draw(t, "user"), Arrival: arrival, Ready: ready,
			Deadline: ready + 1<<30,
			Sites:    rapid.SliceOfN(rapid.StringMatching(`[a-zß"]{0,2}`), 0, 2).Draw(t, "sites"),
			Site:     rapid.StringMatching(`[a-z]{0,2}`).Draw(t, "site"), Pool: rapid.StringMatching(`[a-z]{0,2}`).Draw(t, "pool"),
			Parts: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) berth.Part {
				eligible := berth.PEsOf(rapid.SliceOfN(rapid.Map(rapid.Int32Range(0, 99), func(pe int32) berth.PE { return berth.PE(pe) }), 0, 3).Draw(t, "eligible")...)
				return berth.Part{Eligible: eligible, Only: drawPools(t, "only"), Never: drawPools(t, "never"), Variants: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) berth.Variant {
					return berth.Variant{
						NPE:      berth.Count(rapid.Int32Range(1, berth.MaxPEs).Draw(t, "npe")),
						Duration: berth.Duration(rapid.Int64Range(1, 1<<30).Draw(t, "duration")),
					}
				}), 1, 3).Draw(t, "variants")}
			}), 1, 3).Draw(t, "parts"),
		}
		if rapid.Bool().Draw(t, "job") {
			r.Kind, r.Ready, r.Parts = berth.KindJob, arrival, r.Parts[:1]
			r.Parts[0].Variants = r.Parts[0].Variants[:1]
			if rapid.Bool().Draw(t, "limitless") {
				r.Deadline = berth.Forever
			} else if r.Deadline == 0 { // which is refused, since it would read as none
				r.Deadline = 1
			}
		}
		if len(r.Sites) == 0 {
			r.Sites = nil
		}
		requests[i] = r
	}
	return requests
}

// drawPools draws PEs of some pools, mostly of none.
func drawPools(t *rapid.T, label string) (list []berth.PoolPEs) {
	for i := range rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, label) {
		first := berth.PE(rapid.Int32Range(0, berth.MaxPEs-2).Draw(t, "first PE"))
		list = append(list, berth.PoolPEs{Resource: berth.PoolID(rapid.StringMatching(`[a-z]{0,2}`).Draw(t, "its site"), strconv.Itoa(i)), PEs: berth.PEsOf(first, first+1)})
	}
	return list
}

func TestJSONLRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requests := drawRequests(t)
		var file bytes.Buffer
		if err := workload.WriteJSONL(&file, requests); err != nil {
			t.Fatal(err)
		}
		w, err := workload.ReadJSONL(&file, "r.jsonl", workload.Options{Strict: true})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(requests, w.Requests); diff != "" {
			t.Fatal(diff)
		}
	})
}

// listed returns a part that may have some PEs of a pool, and none of those of another one.
func listed(only, never berth.ResourceID) []berth.Part {
	pes := func(of berth.ResourceID) []berth.PoolPEs { return []berth.PoolPEs{{Resource: of, PEs: berth.PEsOf(1)}} }
	return []berth.Part{{Variants: []berth.Variant{{NPE: 1, Duration: 9}}, Only: pes(only), Never: pes(never)}}
}

func TestWriteJSONLRefuses(t *testing.T) {
	good := berth.Rigid("a", 0, 0, 60, 8, 60)
	for name, c := range map[string]struct {
		field  string
		change func(*berth.Request)
	}{
		"invalid":         {"deadline", func(r *berth.Request) { r.Deadline = 0 }},
		"deadline none":   {"deadline", func(r *berth.Request) { *r = berth.Job("a", -60, 8, 60); r.Deadline = 0 }},
		"control in id":   {"id", func(r *berth.Request) { r.ID = "a\tb" }},
		"id not UTF-8":    {"id", func(r *berth.Request) { r.ID = "a\xff" }},
		"control in user": {"user", func(r *berth.Request) { r.User = "a\nb" }},
		"control in site": {"want_site", func(r *berth.Request) { r.Site = "a\nb" }},
		"pool not UTF-8":  {"want_pool", func(r *berth.Request) { r.Pool = "a\xff" }},
		"control in one":  {"want_sites", func(r *berth.Request) { r.Sites = []string{"a", "b\n"} }},
		"PEs of a site":   {"site", func(r *berth.Request) { r.Parts = listed(berth.PoolID("a\n", "p"), berth.PoolID("", "")) }},
		"PEs of a pool":   {"pool", func(r *berth.Request) { r.Parts = listed(berth.PoolID("", ""), berth.PoolID("a", "p\xff")) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			c.change(&r)
			wantMistake(t, workload.WriteJSONL(&bytes.Buffer{}, []berth.Request{r}), c.field)
		})
	}
}
