package workload_test

import (
	"bytes"
	"cmp"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workload"
)

// fleet is two sites; one has two pools.
var fleet = []berth.Site{
	{Name: "north", Pools: []berth.Pool{{Name: "cpu", PEs: 16}, {Name: "gpu", PEs: 4}}},
	{Name: "south", Pools: []berth.Pool{{Name: "pool", PEs: 8}}},
}

func outage(site, pool string, lo, hi berth.PE, from, until berth.Time) workload.Outage {
	return workload.Outage{Resource: berth.PoolID(site, pool), PEs: berth.NewPESet(berth.Run{Lo: lo, Hi: hi}), From: from, Until: until}
}

func TestReadOutages(t *testing.T) {
	const file = `{"id":"o2","kind":"outage","site":"south","pes":"1-2,4","start":20,"end":50}
{"id":"r","kind":"request","arrival":0,"ready":0,"deadline":9,"duration":9,"npe":1}
{"id":"r2","arrival":0,"kind":"job","npe":1,"accepted":true,"start":3,"end":5,"pes":"0"}

{"kind":"outage","site":"north","pool":"gpu","npe":4,"start":-5}
{"kind":"outage","site":"north","pool":"cpu","pes":"0-15","npe":16,"start":20,"end":90,"actual_end":40,"arrival":20,"deadline":0,"accepted":false}
`
	want := []workload.Outage{
		outage("north", "gpu", 0, 4, -5, berth.Forever),
		outage("north", "cpu", 0, 16, 20, 40),
		{Resource: berth.PoolID("south", "pool"), PEs: berth.PEsOf(1, 2, 4), From: 20, Until: 50},
	}
	got, err := workload.ReadOutages(strings.NewReader(file), "o.jsonl", fleet, workload.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, got.Outages); diff != "" {
		t.Error(diff)
	}
	if r := &got.Report; r.Records != 5 || r.Usable != 3 || r.Skipped[workload.NotAnOutage] != 2 {
		t.Errorf("%+v, want 3 outages of 5 lines, the others skipped", r)
	}
	path := filepath.Join(t.TempDir(), "o.jsonl")
	if err := os.WriteFile(path, []byte(file), 0o666); err != nil {
		t.Fatal(err)
	}
	if got, err = workload.OpenOutages(path, fleet, workload.Options{}); err != nil || len(got.Outages) != 3 {
		t.Error(got, err)
	}
	one := []berth.Site{{Name: "site", Pools: []berth.Pool{{Name: "pool", PEs: 4}}}}
	got, err = workload.ReadOutages(strings.NewReader(`{"kind":"outage","start":1,"end":2}`), "o.jsonl", one, workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff([]workload.Outage{outage("site", "pool", 0, 4, 1, 2)}, got.Outages); diff != "" {
		t.Error(diff)
	}
}

func TestReadOutagesRefuses(t *testing.T) {
	const good = `"kind":"outage","site":"south","start":1,"end":2`
	for name, c := range map[string]struct{ text, field, want string }{
		"nothing":          {"", "outages", "nothing in the file"},
		"no outage":        {`{"id":"r","kind":"request"}`, "outages", "none of 1 lines is an outage"},
		"no JSON":          {"{1}", "", "o.jsonl:1: \"{1}\": not valid JSON on one line"},
		"no object":        {"[]", "", "not a JSON object"},
		"not UTF-8":        {"{\"kind\":\"\xff\"}", "", "not UTF-8"},
		"no kind":          {`{"site":"south","start":1,"end":2}`, "kind", "missing"},
		"odd kind":         {`{"kind":"outrage"}`, "kind", "unknown"},
		"misspelt field":   {`{` + good + `,"pess":"0"}`, "pess", "no such field"},
		"twice":            {`{` + good + `,"start":1}`, "start", "given twice"},
		"a number in text": {`{"kind":"outage","site":"south","start":"1"}`, "start", "not a number"},
		"no start":         {`{"kind":"outage","site":"south","end":2}`, "start", "missing"},
		"no site":          {`{"kind":"outage","start":1}`, "site", "there are 2"},
		"other site":       {`{"kind":"outage","site":"west","start":1}`, "site", "no such site"},
		"no pool":          {`{"kind":"outage","site":"north","start":1}`, "pool", "site north has 2"},
		"other pool":       {`{"kind":"outage","site":"north","pool":"fpga","start":1}`, "pool", "no such pool"},
		"PEs beyond":       {`{` + good + `,"pes":"7-8"}`, "pes", "PEs 0 to 7"},
		"PEs unreadable":   {`{` + good + `,"pes":"7-"}`, "pes", "0-31"},
		"no PEs":           {`{` + good + `,"pes":""}`, "pes", "no PE"},
		"some PEs":         {`{` + good + `,"npe":3}`, "pes", "which 3 PEs"},
		"another count":    {`{` + good + `,"npe":3,"pes":"0-3"}`, "npe", "names 4"},
		"ends first":       {`{"kind":"outage","site":"south","start":1,"end":1}`, "end", "not after the start 1"},
		"really ends":      {`{` + good + `,"actual_end":1}`, "actual_end", "not after the start 1"},
		"start beyond":     {`{"kind":"outage","site":"south","start":-4398046511104}`, "start", "beyond"},
		"end beyond":       {`{"kind":"outage","site":"south","start":1,"end":4398046511104}`, "end", "beyond"},
		"second line":      {`{` + good + "}\n{" + good + `,"pes":"9"}`, "pes", "o.jsonl:2: "},
		"long line":        {`{` + good + `,"id":"` + strings.Repeat("x", 1<<20) + `"}`, "", "longer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := workload.ReadOutages(strings.NewReader(c.text), "o.jsonl", fleet, workload.Options{Strict: true})
			wantMistake(t, err, c.field, c.want)
		})
	}
	_, err := workload.OpenOutages(filepath.Join(t.TempDir(), "no.jsonl"), fleet, workload.Options{})
	wantMistake(t, err, "outages", "no such file")
	_, err = workload.OpenOutages(t.TempDir(), fleet, workload.Options{})
	wantMistake(t, err, "outages", "a directory")
}

func TestBadOutagesArePassedOver(t *testing.T) {
	const good = `{"kind":"outage","site":"south","pes":"0","start":1,"end":2}`
	const text = good + "\n" + `{"kind":"outage","site":"south","pes":"9","start":1}` + "\n[]\n" + `{"kind":"outage","site":"south","pes":"1","start":1,"end":2}` + "\n"
	got, err := workload.ReadOutages(strings.NewReader(text), "o.jsonl", fleet, workload.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &got.Report
	if len(got.Outages) != 2 || r.Records != 4 || r.Usable != 2 || r.Bad != 2 || r.FirstBad[0].Line != 2 || r.FirstBad[0].Field != "pes" || r.FirstBad[1].Line != 3 {
		t.Errorf("%+v of %+v, want two outages, and lines 2 and 3 bad", got.Outages, r)
	}
	_, err = workload.ReadOutages(strings.NewReader(text), "o.jsonl", fleet, workload.Options{Strict: true})
	wantMistake(t, err, "pes", "o.jsonl:2: ")
	_, err = workload.ReadOutages(strings.NewReader("[]\n{1}\n"), "o.jsonl", fleet, workload.Options{})
	wantMistake(t, err, "", "o.jsonl:1: ")
}

// down returns when each PE is down, second by second.
func downtime(outages []workload.Outage, end berth.Time) map[berth.ResourceID]map[berth.PE][]bool {
	down := map[berth.ResourceID]map[berth.PE][]bool{}
	for _, o := range outages {
		if down[o.Resource] == nil {
			down[o.Resource] = map[berth.PE][]bool{}
		}
		for _, run := range o.PEs.Runs() {
			for pe := run.Lo; pe < run.Hi; pe++ {
				if down[o.Resource][pe] == nil {
					down[o.Resource][pe] = make([]bool, end)
				}
				for s := o.From; s < min(o.Until, end); s++ {
					down[o.Resource][pe][s] = true
				}
			}
		}
	}
	return down
}

// Merged outages take away the same PEs at the same times, and between two of
// one PE there is time.
func TestMergeOutages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const end = 40
		outages := rapid.SliceOf(rapid.Custom(func(t *rapid.T) workload.Outage {
			o := workload.Outage{
				Resource: berth.PoolID("s", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "pool")),
				PEs:      berth.PEsOf(rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 7), func(n int) berth.PE { return berth.PE(n) }), 1, 6).Draw(t, "pes")...),
				From:     berth.Time(rapid.IntRange(0, 30).Draw(t, "from")),
			}
			o.Until = o.From + berth.Time(rapid.IntRange(1, 8).Draw(t, "length"))
			if rapid.IntRange(0, 9).Draw(t, "for good") == 0 {
				o.Until = berth.Forever
			}
			return o
		})).Draw(t, "outages")
		want := downtime(outages, end)
		merged := workload.MergeOutages(slices.Clone(outages))
		if diff := gocmp.Diff(want, downtime(merged, end)); diff != "" {
			t.Fatal(diff)
		}
		if !slices.IsSortedFunc(merged, func(a, b workload.Outage) int { return cmp.Compare(a.From, b.From) }) {
			t.Fatal("not sorted")
		}
		for i, a := range merged {
			for _, b := range merged[:i] {
				if a.Resource == b.Resource && !a.PEs.And(b.PEs).Empty() && b.Until >= a.From {
					t.Fatalf("%v and %v", b, a)
				}
			}
		}
	})
}

// draw draws all failures.
func draw(f workload.Failures, sites []berth.Site, during berth.Interval) ([]workload.Outage, error) {
	outages, err := f.Outages(sites, during)
	if err != nil {
		return nil, err
	}
	return slices.Collect(outages), nil
}

// Failures are drawn when they are asked for, the same each time, and what is known
// beside them is merged as if all had been drawn before.
func TestFailuresAreDrawnAsTheyAreNeeded(t *testing.T) {
	// Some 800,000 outages of four nodes, with the first thousand taken.
	sites := []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 4}}}}
	failures := workload.Failures{MTBF: 1, MTTR: 1, PEs: 1}
	outages, err := failures.Outages(sites, berth.Interval{End: 450_000})
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	taken := 0
	for range outages {
		if taken++; taken == 1000 {
			break
		}
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("a thousand failures took %d bytes", used)
	}
	rapid.Check(t, func(t *rapid.T) {
		failures := workload.Failures{
			MTBF: berth.Duration(rapid.IntRange(1, 60).Draw(t, "mtbf")), MTTR: berth.Duration(rapid.IntRange(1, 60).Draw(t, "mttr")),
			PEs: berth.Count(rapid.IntRange(1, 5).Draw(t, "pes")), Seed: 7,
		}
		during := berth.Interval{Start: 3, End: 200}
		drawn, err := failures.Outages(fleet, during)
		if err != nil {
			t.Fatal(err)
		}
		var known []workload.Outage
		for range rapid.IntRange(0, 6).Draw(t, "known") {
			o := outage("north", rapid.SampledFrom([]string{"cpu", "gpu"}).Draw(t, "pool"), 0, 3, 0, berth.Forever)
			lo := berth.PE(rapid.IntRange(0, 3).Draw(t, "from PE"))
			o.PEs = berth.NewPESet(berth.Run{Lo: lo, Hi: lo + 1 + berth.PE(rapid.IntRange(0, 6).Draw(t, "more PEs"))})
			o.From = berth.Time(rapid.IntRange(-20, 220).Draw(t, "start"))
			if rapid.IntRange(0, 4).Draw(t, "for good") > 0 {
				o.Until = o.From + berth.Time(rapid.IntRange(1, 90).Draw(t, "length"))
			}
			known = append(known, o)
		}
		for range 2 { // the same each time
			want := workload.MergeOutages(slices.AppendSeq(slices.Clone(workload.MergeOutages(slices.Clone(known))), drawn))
			if diff := gocmp.Diff(want, slices.Collect(workload.MergeWith(known, drawn))); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

func TestFailures(t *testing.T) {
	sites := []berth.Site{
		{Name: "a", Pools: []berth.Pool{{Name: "x", PEs: 990}, {Name: "y", PEs: 40}}},
		{Name: "b", Pools: []berth.Pool{{Name: "x", PEs: 40}}},
	}
	failures := workload.Failures{MTBF: 1000, MTTR: 100, PEs: 4, Seed: 3}
	during := berth.Interval{Start: 5000, End: 105_000}
	outages, err := draw(failures, sites, during)
	if err != nil {
		t.Fatal(err)
	}
	// 248 + 10 + 10 nodes fail once in 1100 s on the average, for 100 s.
	var length berth.Duration
	for _, o := range outages {
		length += o.Until.Sub(o.From)
		lo := o.PEs.Runs()[0].Lo
		if o.From <= during.Start || o.From >= during.End || o.Until <= o.From || len(o.PEs.Runs()) != 1 || lo%4 != 0 {
			t.Fatalf("%+v", o)
		}
		if n := o.PEs.Count(); n != 4 && (n != 2 || lo != 988) {
			t.Fatalf("a node of %d PEs: %v", n, o.PEs)
		}
	}
	expected := 268 * 100_000 / 1100.0
	if got := float64(len(outages)); math.Abs(got/expected-1) > 0.03 {
		t.Errorf("%v outages, want about %v", got, expected)
	}
	if mean := float64(length) / float64(len(outages)); math.Abs(mean-100) > 3 {
		t.Errorf("they last %v s on the average, want 100", mean)
	}
	// A pool has the same failures whatever stands beside it, and pools and
	// seeds have unlike ones.
	alone, err := draw(failures, sites[1:], during)
	if err != nil {
		t.Fatal(err)
	}
	only := func(site, pool string) []workload.Outage {
		return slices.DeleteFunc(slices.Clone(outages), func(o workload.Outage) bool { return o.Resource != berth.PoolID(site, pool) })
	}
	if diff := gocmp.Diff(only("b", "x"), alone); diff != "" {
		t.Error(diff)
	}
	node := func(outages []workload.Outage, lo berth.PE) []workload.Outage {
		return slices.DeleteFunc(slices.Clone(outages), func(o workload.Outage) bool { return o.PEs.Runs()[0].Lo != lo })
	}
	ax, ay, bx := node(only("a", "x"), 0), node(only("a", "y"), 0), node(alone, 0)
	if ax[0].From == ay[0].From || ax[0].From == bx[0].From || ay[0].From == bx[0].From || bx[0].From == node(alone, 4)[0].From {
		t.Error("two nodes fail alike")
	}
	// A longer time changes nothing of a node's first failures.
	longer, err := draw(failures, sites, berth.Interval{Start: 5000, End: 155_000})
	if err != nil {
		t.Fatal(err)
	}
	longer = slices.DeleteFunc(longer, func(o workload.Outage) bool { return o.From >= during.End })
	if diff := gocmp.Diff(outages, longer); diff != "" {
		t.Error("a longer time changes failures", len(outages), len(longer))
	}
	failures.Seed++
	if other, err := draw(failures, sites[1:], during); err != nil || other[0].From == alone[0].From {
		t.Error("two seeds fail alike", err)
	}
	if none, err := draw(failures, sites, berth.Interval{Start: 7, End: 7}); err != nil || len(none) > 0 {
		t.Error(none, err)
	}
}

// A repair that would take longer than there are times is none.
func TestFailuresForGood(t *testing.T) {
	failures := workload.Failures{MTBF: 1, MTTR: berth.TimeLimit - 1, PEs: 1}
	outages, err := draw(failures, fleet, berth.Interval{Start: 0, End: 1000})
	if err != nil || len(outages) != 28 {
		t.Fatal(len(outages), err)
	}
	if !slices.ContainsFunc(outages, func(o workload.Outage) bool { return o.Until == berth.Forever }) {
		t.Error("every repair ends")
	}
	for _, o := range outages {
		if !o.Until.Valid() && o.Until != berth.Forever {
			t.Error(o)
		}
	}
}

func TestFailuresRefuse(t *testing.T) {
	for want, f := range map[string]workload.Failures{
		"between failures of 0 s": {MTTR: 1, PEs: 1},
		"to repair of 0 s":        {MTBF: 1, PEs: 1},
		"nodes of 0 PEs":          {MTBF: 1, MTTR: 1},
		"about 14000000":          {MTBF: 1, MTTR: 1, PEs: 1},
	} {
		_, err := f.Outages(fleet, berth.Interval{End: 1_000_000})
		wantMistake(t, err, "failures", want)
	}
}

func FuzzReadOutages(f *testing.F) {
	for _, seed := range []string{
		"", `{"kind":"outage","site":"south","start":1,"end":2}`, `{"kind":"outage","site":"north","pool":"cpu","pes":"0-3,9","start":-1}`,
		`{"kind":"outage","site":"south","pes":"0-3","start":1,"end":2}` + "\n" + `{"kind":"outage","site":"south","pes":"2-5","start":2,"end":9}`,
		`{"kind":"booking"}`, `{"kind":"outage","site":"south","start":1,"actual_end":9,"npe":8}`, "\x1f\x8b", "[]", "{",
	} {
		f.Add([]byte(seed))
	}
	sizes := map[berth.ResourceID]berth.PE{
		berth.PoolID("north", "cpu"): 16, berth.PoolID("north", "gpu"): 4, berth.PoolID("south", "pool"): 8,
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := workload.ReadOutages(bytes.NewReader(data), "o.jsonl", fleet, workload.Options{})
		if err != nil {
			checkInvalid(t, err)
			return
		}
		checkReport(t, &got.Report)
		outages := got.Outages
		for i, o := range outages {
			if o.PEs.Empty() || o.PEs.Max() >= sizes[o.Resource] || !o.From.Valid() || o.Until <= o.From ||
				(!o.Until.Valid() && o.Until != berth.Forever) || i > 0 && o.From < outages[i-1].From {
				t.Fatalf("%+v", o)
			}
		}
	})
}

// More failures than memory has room for are refused before any is drawn.
func TestFailuresAreBounded(t *testing.T) {
	sites := []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "a", PEs: 100}, {Name: "b", PEs: 101}}}}
	f := workload.Failures{MTBF: 1, MTTR: 1, PEs: 2}
	_, err := f.Outages(sites, berth.Interval{Start: 0, End: 19_900})
	checkInvalid(t, err)
	if err == nil || !strings.Contains(err.Error(), "about 1004950 are to be expected of 101 nodes in 19900 s, and at most 1000000 are possible") {
		t.Error(err)
	}
	f.PEs = 50 // makes 5 nodes
	outages, err := draw(f, sites, berth.Interval{Start: 0, End: 19_900})
	if err != nil || len(outages) < 30_000 {
		t.Error(len(outages), err)
	}
}
