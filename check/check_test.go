package check_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"github.com/google/go-cmp/cmp"
)

// valid is a schedule on ten PEs that has a line of every sort.
const valid = `
{"id":"b1","kind":"booking","npe":4,"start":0,"end":6,"pes":"0-3"}
{"id":"b2","kind":"booking","npe":3,"start":0,"end":20}
{"id":"1","kind":"request","arrival":0,"ready":4,"deadline":18,"duration":4,"npe":4,"accepted":true,"start":6,"end":10,"pes":"0-1,8,9","user":"ann"}
{"id":"2","kind":"request","arrival":1,"ready":1,"deadline":9,"duration":8,"npe":4,"accepted":false,"reason":"no_capacity"}
{"id":"3","arrival":2,"ready":2,"deadline":40,"duration":5,"npe":2,"accepted":true,"start":10,"end":15,"after":["1"],"storage_mb":1,"promised_start":9,"moved_from":[{"at":5,"start":9,"end":14,"npe":2,"staged":10}]}
{"id":"4","arrival":3,"ready":3,"deadline":60,"duration":10,"npe":1,"accepted":true,"start":30,"end":40,"part":1,"pes":"7"}
{"id":"4","arrival":3,"ready":3,"deadline":60,"duration":20,"npe":2,"accepted":true,"start":30,"end":50,"part":"2","pes":"0,1"}
{"id":"5","arrival":3,"ready":3,"deadline":60,"duration":9,"npe":4,"accepted":true,"start":20,"end":29,"actual_end":25,"variants":[{"npe":8,"duration":5},{"npe":4,"duration":9}],"pes":"0-3"}
{"id":"6","arrival":3,"ready":3,"deadline":60,"duration":4,"npe":10,"accepted":true,"start":25,"end":29,"pes":"0-9"}
{"id":"5","kind":"staging","start":15,"end":20}
{"id":"down","kind":"outage","npe":1,"start":60,"pes":"5"}
{"id":"down","kind":"outage","npe":2,"start":52,"end":54}
{"id":"j1","kind":"job","npe":10,"start":50,"end":52}
{"id":"j2","kind":"job","npe":10}
{"id":"7","kind":"request","arrival":9,"ready":9,"deadline":10,"duration":1,"npe":99,"accepted":false,"reason":"too_large","start":null,"pes":""}
`

// on checks text against a machine of pes PEs and fails on bad input.
func on(t *testing.T, pes berth.Count, text string) *check.Report {
	t.Helper()
	report, err := check.File(strings.NewReader(text), "f.jsonl", check.Options{PEs: pes, Speed: standard})
	if err != nil {
		t.Fatalf("%v\nin %s", err, text)
	}
	return report
}

// standard is that all pools are of standard speed.
func standard(_, _ string, _ bool) berth.Speed { return berth.StandardSpeed }

// Where nothing tells how fast pools are, a variant may take any time: the number of PEs has to be that of one.
func TestVariantsWhereSpeedsAreNotKnown(t *testing.T) {
	const line = `{"id":"m","arrival":0,"ready":0,"deadline":5000,"duration":400,"npe":8,"variants":[{"npe":8,"duration":600},{"npe":16,"duration":350}],"accepted":true,"start":0,"end":400,"pool_pes":32}`
	for text, want := range map[string][]string{line: nil, strings.Replace(line, `"npe":8`, `"npe":9`, 1): {"variant [m] [1]"}} {
		report, err := check.File(strings.NewReader(text), "f.jsonl", check.Options{})
		if err != nil {
			t.Fatal(err)
		}
		wantViolations(t, report.Violations, want)
	}
	wantViolations(t, on(t, 32, line).Violations, []string{"variant [m] [1]"})
}

// edited returns a schedule with another text in the only place of one.
func edited(t *testing.T, schedule, old, text string) string {
	t.Helper()
	if strings.Count(schedule, old) != 1 {
		t.Fatalf("%s is not just once in the schedule", old)
	}
	return strings.Replace(schedule, old, text, 1)
}

// wantViolations requires exactly these violations, each as its class, ids and lines,
// in any order.
func wantViolations(t *testing.T, violations []check.Violation, want []string) {
	t.Helper()
	var got []string
	for _, v := range violations {
		got = append(got, fmt.Sprint(v.Class, " ", v.IDs, " ", v.Lines))
	}
	slices.Sort(got)
	if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q\n%v", got, want, violations)
	}
}

func TestValidSchedule(t *testing.T) {
	report := on(t, 10, valid)
	if want := (&check.Report{Lines: 15, Requests: 8, Accepted: 6, Violations: []check.Violation{}}); !cmp.Equal(report, want) {
		t.Error(cmp.Diff(want, report))
	}
	if !report.Valid() {
		t.Error("not valid")
	}
}

func TestOrderOfLinesIsFree(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(valid), "\n")
	slices.Reverse(lines)
	if report := on(t, 10, strings.Join(lines, "\r\n")); !report.Valid() {
		t.Error(report.Violations)
	}
}

func TestEmptyFileIsValid(t *testing.T) {
	if report := on(t, 1, "\n \n"); !report.Valid() || report.Lines != 0 {
		t.Error(report)
	}
}

// A job that has not started is nowhere, and may be too large for every pool.
func TestJobsThatNeverStarted(t *testing.T) {
	const lines = `
{"id":"a","kind":"job","site":"north","npe":10,"accepted":true,"start":0,"end":9,"pes":"0-9"}
{"id":"b","kind":"job","site":"south","npe":10,"accepted":true,"start":0,"end":9}
{"id":"c","kind":"job","npe":11,"accepted":false,"reason":"too_large"}
{"id":"d","kind":"job","npe":10,"accepted":false}
`
	if report := on(t, 10, lines); !report.Valid() {
		t.Error(report.Violations)
	}
}

// A variant takes another time on a pool that is not of the standard speed.
func TestVariantsAreScaled(t *testing.T) {
	const line = `{"id":"v","site":"s","arrival":0,"ready":0,"deadline":90,"npe":4,"variants":[{"npe":8,"duration":6},{"npe":4,"duration":9}],"accepted":true,"start":0,`
	for _, c := range []struct {
		speed   berth.Speed
		took    string
		allowed bool
	}{
		{0, `"duration":9,"end":9}`, true},
		{1000, `"duration":9,"end":9}`, true},
		{2000, `"duration":5,"end":5}`, true},
		{2000, `"duration":9,"end":9}`, false},
		{800, `"duration":12,"end":12}`, true},
		{800, `"duration":11,"end":11}`, false},
	} {
		opts := check.Options{
			Sizes: func(string, string) (berth.Count, bool) { return 10, true },
			Speed: func(string, string, bool) berth.Speed { return c.speed },
		}
		report, err := check.File(strings.NewReader(line+c.took), "f.jsonl", opts)
		if err != nil || report.Valid() != c.allowed {
			t.Errorf("speed %d, %s: %v, %v", c.speed, c.took, report, err)
		}
	}
}

// What was extended is as long as it is now, with a deadline that is not before
// its end, and what it was before is one of its variants.
func TestExtendedReservations(t *testing.T) {
	const line = `{"id":"x","arrival":0,"ready":0,"deadline":40,"npe":4,"variants":[{"npe":4,"duration":9}],"accepted":true,"start":10,`
	for rest, want := range map[string]string{
		`"end":40,"duration":30,"extended":21}`:                 "",
		`"end":40,"duration":30,"extended":20}`:                 "variant",
		`"end":40,"duration":30}`:                               "variant",
		`"end":40,"duration":29,"extended":20}`:                 "length",
		`"end":41,"duration":31,"extended":22}`:                 "window",
		`"end":19,"duration":9,"extended":0}`:                   "",
		`"end":18,"duration":8,"extended":-1}`:                  "length",
		`"end":19,"duration":9,"variants":[],"extended":9}`:     "f.jsonl:1: variants: given twice",
		`"end":40,"duration":30,"extended":21,"actual_end":45}`: "",
	} {
		report, err := check.File(strings.NewReader(line+rest), "f.jsonl", check.Options{PEs: 4, Speed: standard})
		var got string
		switch {
		case err != nil:
			got = err.Error()
		case len(report.Violations) > 0:
			got = string(report.Violations[0].Class)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", rest, got, want)
		}
	}
}

// A promise that yielded to something that went on for too long may end after its
// deadline, one that an outage moved may have been for another time, and one
// that was taken back is a refusal. The window is [5, 40).
func TestMovedPromises(t *testing.T) {
	const (
		moved   = `{"id":"m","arrival":3,"ready":5,"deadline":40,"npe":2,`
		outage  = `{"id":"o","kind":"outage","npe":9,"start":20,"end":100,"actual_end":37}` + "\n"
		overrun = `{"id":"c","kind":"job","npe":9,"start":3,"end":30,"actual_end":36,"limit":50}` + "\n"
		delayed = `,"moved_from":[{"at":30,"start":30,"end":40,"npe":2,"cause":"c"}]}`
		down    = `,"moved_from":[{"at":20,"start":30,"end":40,"npe":2,"cause":"o"}]}`
	)
	for name, c := range map[string]struct {
		lines string
		want  []string
	}{
		"delayed":                    {overrun + moved + `"duration":10,"accepted":true,"start":38,"end":48,"promised_start":30` + delayed, nil},
		"delayed to after it":        {overrun + moved + `"duration":10,"accepted":true,"start":60,"end":70,"promised_start":30` + delayed, nil},
		"promised too late":          {overrun + moved + `"duration":10,"accepted":true,"start":60,"end":70,"promised_start":30` + strings.Replace(delayed, `"end":40`, `"end":41`, 1), []string{"window m"}},
		"promised too early":         {overrun + moved + `"duration":10,"accepted":true,"start":60,"end":70,"promised_start":4` + strings.Replace(delayed, `"start":30`, `"start":4`, 1), []string{"window m"}},
		"late and never moved":       {moved + `"duration":10,"accepted":true,"start":38,"end":48}`, []string{"window m"}},
		"late for an outage":         {outage + moved + `"duration":10,"accepted":true,"start":38,"end":48,"promised_start":30` + down, []string{"window m"}},
		"moved to a slower pool":     {outage + moved + `"duration":15,"accepted":true,"start":5,"end":20,"promised_start":30` + down, nil},
		"moved before it is ready":   {outage + moved + `"duration":15,"accepted":true,"start":4,"end":19,"promised_start":30` + down, []string{"window m"}},
		"late for an outage, no end": {outage + moved + `"duration":10,"accepted":true,"start":31,"promised_start":30` + down, []string{"missing_start m"}},
		"taken back":                 {outage + moved + `"duration":10,"accepted":false,"reason":"no_capacity","promised_start":30` + down, nil},
		"taken back and yet started": {outage + moved + `"duration":10,"accepted":false,"reason":"no_capacity","start":31,"promised_start":30` + down, []string{"refusal_with_start m"}},
		"taken back without a word":  {moved + `"duration":10,"accepted":false,"reason":"no_capacity","promised_start":30}`, []string{"moved m"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, v := range on(t, 10, c.lines).Violations {
				got = append(got, string(v.Class)+" "+strings.Join(v.IDs, " "))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestViolations makes one small change to the valid schedule and expects
// exactly these violations, each as its class and ids.
func TestViolations(t *testing.T) {
	for _, tt := range []struct {
		name, old, new string
		want           []string
	}{
		{"same id", `"id":"2"`, `"id":"3"`, []string{"duplicate 3"}},
		{"same id as a booking", `"id":"b2"`, `"id":"1"`, []string{"duplicate 1", "precedence 1 3"}},
		{"same part", `"part":"2"`, `"part":1`, []string{"duplicate 4"}},
		{"part nought is no part", `"id":"j2"`, `"id":"j1","part":0`, []string{"duplicate j1"}},
		{"same job id", `"id":"j2"`, `"id":"j1"`, []string{"duplicate j1"}},
		{"ready before arrival", `"id":"2","kind":"request","arrival":1`, `"id":"2","kind":"request","arrival":2`, []string{"request 2"}},
		{"no PEs for a refused request", `"npe":99`, `"npe":0`, []string{"request 7"}},
		{"no PEs for an outage", `"npe":2,"start":52`, `"npe":0,"start":52`, []string{"request down"}},
		{"no time", `"duration":1,"npe":99`, `"duration":0,"npe":99`, []string{"request 7"}},
		{"no time of what was promised", `"duration":5,"npe":2`, `"duration":0,"npe":2`, []string{"request 3", "length 3"}},
		{"variant of nothing", `{"npe":8,"duration":5}`, `{"npe":0,"duration":5}`, []string{"request 5"}},
		{"deadline", `"deadline":9`, `"deadline":8`, []string{"deadline 2"}},
		{
			"deadline of the shortest variant", `"deadline":10,"duration":1,"npe":99,"accepted":false,"reason":"too_large"`,
			`"deadline":10,"variants":[{"npe":1,"duration":3},{"npe":9,"duration":2}],"duration":0,"npe":99,"accepted":false,"reason":"no_capacity"`,
			[]string{"deadline 7"},
		},
		{
			"deadline of what is too large, too", `"deadline":10,"duration":1`,
			`"deadline":10,"variants":[{"npe":99,"duration":3},{"npe":90,"duration":2}],"duration":0`, nil,
		},
		{
			"deadline of what missed it", `"deadline":10,"duration":1,"npe":99,"accepted":false,"reason":"too_large"`,
			`"deadline":10,"duration":2,"npe":99,"accepted":false,"reason":"deadline_missed"`, nil,
		},
		{"unknown reason", "too_large", "too_big", []string{"reason 7"}},
		{"no reason", `"reason":"no_capacity"`, `"reason":""`, []string{"reason 2"}},
		{"reason of an acceptance", `"user":"ann"`, `"reason":"quota"`, []string{"reason 1"}},
		{"refusal with a start", `"start":null`, `"start":9`, []string{"refusal_with_start 7"}},
		{"refusal with an end", `"start":null`, `"end":9`, []string{"refusal_with_start 7"}},
		{"refusal with a time", `"start":null`, `"start":9,"end":14`, []string{"refusal_with_start 7"}},
		{"refusal with PEs", `"pes":""`, `"pes":"0"`, []string{"refusal_with_start 7"}},
		{"no start", `"start":10,"end":15`, `"end":15`, []string{"missing_start 3"}},
		{"no start, and others in the way of what ends", `"start":25,"end":29`, `"end":29`, []string{"missing_start 6"}},
		{"no end", `"start":10,"end":15`, `"start":10`, []string{"missing_start 3"}},
		{"job without end", `"start":50,"end":52`, `"start":50`, []string{"missing_start j1"}},
		{"start before ready", `"ready":4,"deadline":18`, `"ready":7,"deadline":18`, []string{"window 1"}},
		{"end after deadline", `"deadline":18`, `"deadline":9`, []string{"window 1"}},
		{"another start promised", `"promised_start":9`, `"promised_start":8`, []string{"moved 3"}},
		{"promise after deadline", `"start":9,"end":14`, `"start":9,"end":41`, []string{"window 3"}},
		{"too short", `"end":15`, `"end":14`, []string{"length 3"}},
		{"too long", `"end":15`, `"end":16`, []string{"length 3"}},
		{"empty booking", `"start":0,"end":20`, `"start":20,"end":20`, []string{"length b2"}},
		{"staging that ends first", `"start":15,"end":20`, `"start":15,"end":14`, []string{"length 5"}},
		{"booking of another length", `"npe":3,"start":0`, `"npe":3,"duration":19,"start":0`, []string{"length b2"}},
		{"actual end before start", `"actual_end":25`, `"actual_end":19`, []string{"length 5"}},
		{"no such variant", `{"npe":4,"duration":9}`, `{"npe":4,"duration":8}`, []string{"variant 5"}},
		{"too large", `"npe":2,"start":52`, `"npe":11,"start":52`, []string{"too_large down", "capacity down"}},
		{"count", `"part":1,"pes":"7"`, `"part":1,"pes":"6-7"`, []string{"count 4"}},
		{"no PE named", `"part":1,"pes":"7"`, `"part":1,"pes":""`, []string{"count 4"}},
		{"range", `"pes":"5"`, `"pes":"10"`, []string{"range down"}},
		{"parts apart", `"start":30,"end":40`, `"start":31,"end":41`, []string{"parts 4"}},
		{"a later part", `"start":30,"end":50`, `"start":31,"end":51`, []string{"capacity 4 j1", "parts 4"}},
		{"parts decided apart", `"accepted":true,"start":30,"end":40,"part":1,"pes":"7"`, `"accepted":false,"reason":"quota","part":1`, []string{"parts 4"}},
		{"start before predecessor ends", `"start":10,"end":15`, `"start":9,"end":14`, []string{"precedence 1 3"}},
		{"refused predecessor", `"after":["1"]`, `"after":["2"]`, []string{"precedence 2 3"}},
		{"unknown predecessor", `"after":["1"]`, `"after":["x"]`, []string{"precedence 3 x"}},
		{"own predecessor", `"after":["1"]`, `"after":["3"]`, []string{"precedence 3"}},
		{"predecessor overruns", `"user":"ann"`, `"actual_end":11`, []string{"precedence 1 3"}},
		{"one PE too many by count", `"npe":2,"accepted":true,"start":10`, `"npe":8,"accepted":true,"start":10`, []string{"capacity b2 3", "moved 3"}},
		{"outage on what is booked", `"start":60,"pes":"5"`, `"start":28,"pes":"5"`, []string{"capacity 6 down", "capacity down j1", "identity 6 down"}},
		{"one PE twice", `"part":"2","pes":"0,1"`, `"part":"2","pes":"7,1"`, []string{"identity 4"}},
		{"overrun into others", `"actual_end":25`, `"actual_end":26`, []string{"capacity 5 6", "identity 5 6"}},
		{"end as reserved", `"actual_end":25`, `"actual_end":null`, []string{"capacity 5 6", "identity 5 6"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := edited(t, valid, tt.old, tt.new)
			report := on(t, 10, text)
			var got []string
			for _, v := range report.Violations {
				got = append(got, strings.Join(append([]string{string(v.Class)}, v.IDs...), " "))
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q\n%v", got, tt.want, report.Violations)
			}
		})
	}
}

func TestEveryClassIsTested(t *testing.T) {
	if len(check.Classes()) != 29 {
		t.Error("a class was added or lost: see that a test of violations has it")
	}
}

func TestViolationReads(t *testing.T) {
	report := on(t, 10, `{"id":"a","kind":"booking","npe":8,"start":0,"end":10,"pes":"0-7"}

{"id":"b 2","kind":"booking","npe":5,"start":4,"end":20,"pes":"5-9"}`)
	var got []string
	for _, v := range report.Violations {
		got = append(got, v.String())
	}
	want := []string{
		`line 1,3: capacity: up to 13 of 10 PEs of the machine taken in [4,10), the most first at 4 (id a, "b 2")`,
		`line 1,3: identity: a and "b 2" both have PE 5 in [4,10) (id a, "b 2")`,
	}
	if !slices.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

// A long id is cut in the text of a violation behind 80 bytes, with dots for the rest.
func TestLongIDsAreCut(t *testing.T) {
	plain, blank := strings.Repeat("a", 80), "b "+strings.Repeat("a", 78)
	for id, want := range map[string]string{
		plain: plain, plain + "a": plain + "...", blank: `"` + blank + `"`, blank + "a": `"` + blank + `..."`,
	} {
		report := on(t, 4, `{"id":"`+id+`","kind":"booking","npe":5,"start":0,"end":10,"pes":"0-4"}`)
		if len(report.Violations) == 0 || !strings.HasSuffix(report.Violations[0].String(), "(id "+want+")") {
			t.Errorf("%d bytes: %v, want the id %s", len(id), report.Violations, want)
		}
	}
}

func TestBadInput(t *testing.T) {
	const line = `{"id":"1","kind":"request","arrival":0,"ready":10,"deadline":900,"duration":300,"npe":64,"accepted":true,"start":20,"end":320,"pes":"0-63"}`
	for _, tt := range []struct{ name, old, new, want string }{
		{"not JSON", `{"id"`, `{id`, "not JSON"},
		{"cut off", `"pes":"0-63"}`, `"pes":`, "not JSON"},
		{"two objects", `"0-63"}`, `"0-63"}{}`, "not JSON"},
		{"array", line, `[1]`, "[1] is not an object"},
		{"word", line, `null`, "null is not an object"},
		{"not UTF-8", `"1"`, "\"\xff\"", "not UTF-8"},
		{"id missing", `"id":"1",`, ``, "id: missing"},
		{"id null", `"id":"1"`, `"id":null`, "id: missing"},
		{"id a number", `"id":"1"`, `"id":1`, "id: 1 is not a text"},
		{"id empty", `"id":"1"`, `"id":""`, "id: empty"},
		{"arrival missing", `"arrival":0,`, ``, "arrival: missing"},
		{"ready missing", `"ready":10,`, ``, "ready: missing"},
		{"deadline missing", `"deadline":900,`, ``, "deadline: missing"},
		{"duration missing", `"duration":300,`, ``, "duration: missing"},
		{"npe missing", `"npe":64,`, ``, "npe: missing"},
		{"accepted missing", `"accepted":true,`, ``, "accepted: missing"},
		{"accepted a number", `true`, `1`, "accepted: 1 is neither"},
		{"start a fraction", `"start":20`, `"start":20.5`, "start: 20.5 is not a whole number"},
		{"start with a point", `"start":20`, `"start":20.0`, "start: 20.0 is not a whole number"},
		{"start a power", `"start":20`, `"start":2e1`, "start: 2e1 is not a whole number"},
		{"start a text", `"start":20`, `"start":"20"`, `start: "20" is not a whole number`},
		{"end too far", `"end":320`, `"end":4398046511104`, "end: 4398046511104 is out of bounds"},
		{"end far below", `"end":320`, `"end":-4398046511104`, "end: -4398046511104 is out of bounds"},
		{"end beyond int64", `"end":320`, `"end":99999999999999999999`, "end: 99999999999999999999 is out of bounds"},
		{"npe too large", `"npe":64`, `"npe":1048577`, "npe: 1048577 is out of bounds"},
		{"kind unknown", `"request"`, `"holiday"`, "kind: holiday is none of"},
		{
			"booking without end", `"kind":"request","arrival":0,"ready":10,"deadline":900,"duration":300,"npe":64,"accepted":true,"start":20,"end":320`,
			`"kind":"booking","npe":64,"start":20`, "end: missing; a booking line needs it",
		},
		{"field twice", `"start":20`, `"start":20,"start":20`, "start: given twice"},
		{"site a number", `"npe":64`, `"site":4,"npe":64`, "site: 4 is not a text"},
		{"after a text", `"npe":64`, `"after":"2","npe":64`, "after: \"2\" is not a list"},
		{"after numbers", `"npe":64`, `"after":[2],"npe":64`, "after: 2 is not a text"},
		{"part a fraction", `"npe":64`, `"part":1.5,"npe":64`, "part: 1.5 is not a whole number"},
		{"variant without npe", `"npe":64`, `"variants":[{"duration":3}],"npe":64`, "variants: a variant needs"},
		{"variant a number", `"npe":64`, `"variants":[3],"npe":64`, "variants: 3 is not an object"},
		{"pes a list", `"0-63"`, `[0,1]`, "pes: [0,1] is not a text"},
		{"pes descending", `"0-63"`, `"3-1"`, "pes: a range that descends at character 1"},
		{"pes open", `"0-63"`, `"0-"`, "pes: no number at character 3"},
		{"pes ends in comma", `"0-63"`, `"0,"`, "pes: neither"},
		{"pes with a space", `"0-63"`, `"0, 2"`, "pes: no number at character 3"},
		{"pes negative", `"0-63"`, `"-1"`, "pes: no number at character 1"},
		{"pes twice", `"0-63"`, `"5-9,0-5"`, "pes: PE 5 is named twice"},
		{"pes too large", `"0-63"`, `"0-1048576"`, "pes: a PE number beyond"},
		{"pes far too large", `"0-63"`, `"99999999999999999999"`, "pes: a PE number beyond"},
		{"software a number", `"npe":64`, `"software":4,"npe":64`, "software: 4 is not a text"},
		{"version a number", `"npe":64`, `"version":2.12,"npe":64`, "version: 2.12 is not a text"},
		{"licences a text", `"npe":64`, `"licences":"4","npe":64`, `licences: "4" is not a whole number`},
		{"licences too many", `"npe":64`, `"licences":1073741825,"npe":64`, "licences: 1073741825 is out of bounds"},
		{"accelerators a word", `"npe":64`, `"accelerators":true,"npe":64`, "accelerators: true is not a whole number"},
		{"accelerators too many", `"npe":64`, `"accelerators":1048577,"npe":64`, "accelerators: 1048577 is out of bounds"},
		{"storage a fraction", `"npe":64`, `"storage_mb":1.5,"npe":64`, "storage_mb: 1.5 is not a whole number"},
		{"storage too large", `"npe":64`, `"storage_mb":4398046511104,"npe":64`, "storage_mb: 4398046511104 is out of bounds"},
		{"software twice", `"npe":64`, `"software":"a","software":"a","npe":64`, "software: given twice"},
		{"moved from a text", `"npe":64`, `"moved_from":"x","npe":64`, "moved_from: \"x\" is not a list"},
		{"moved from a number", `"npe":64`, `"moved_from":[1],"npe":64`, "moved_from: 1 is not an object"},
		{"moved from no time", `"npe":64`, `"moved_from":[{"start":1,"end":2,"npe":1}],"npe":64`, "moved_from: {"},
		{"moved at a fraction", `"npe":64`, `"moved_from":[{"at":0.5,"start":1,"end":2,"npe":1}],"npe":64`, "moved_from.at: 0.5 is not a whole number"},
		{"moved twice at", `"npe":64`, `"moved_from":[{"at":0,"at":0,"start":1,"end":2,"npe":1}],"npe":64`, "moved_from.at: given twice"},
		{"moved from PEs twice", `"npe":64`, `"moved_from":[{"at":0,"start":1,"end":2,"npe":2,"pes":"1,1"}],"npe":64`, "moved_from.pes: PE 1 is named twice"},
		{"limit too far", `"npe":64`, `"limit":4398046511104,"npe":64`, "limit: 4398046511104 is out of bounds"},
		{"memory a text", `"npe":64`, `"memory_mb":"1","npe":64`, `memory_mb: "1" is not a whole number`},
		{"partition a number", `"npe":64`, `"partition":1,"npe":64`, "partition: 1 is not a text"},
		{"wish a number", `"npe":64`, `"want_site":1,"npe":64`, "want_site: 1 is not a text"},
		{"eligible open", `"npe":64`, `"eligible":"3-","npe":64`, "eligible: no number at character 3"},
		{"deep", `"npe":64`, `"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `,"npe":64`, "not JSON"},
		{"long", `"npe":64`, `"x":"` + strings.Repeat("y", 17<<20) + `","npe":64`, "longer than"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(line, tt.old) {
				t.Fatalf("%s is not in the line", tt.old)
			}
			text := "\n" + line + "\n" + strings.Replace(line, tt.old, tt.new, 1) + "\n"
			report, err := check.File(strings.NewReader(text+`{"id":"2","kind":"booking","npe":1,"start":1000,"end":1001}`), "f.jsonl", check.Options{PEs: 64})
			if err != nil || report.Lines != 3 || len(report.Violations) != 1 || report.Violations[0].Class != check.Unreadable ||
				report.Violations[0].Lines[0] != 3 || !strings.HasPrefix(report.Violations[0].Text, tt.want) {
				t.Errorf("%v %+v, want line 3 unreadable, and those around it read", err, report)
			}
			report, err = check.File(strings.NewReader(text), "f.jsonl", check.Options{PEs: 64, Strict: true})
			if err == nil {
				t.Fatalf("no error; %v", report.Violations)
			}
			var bad *berth.Error
			if !errors.As(err, &bad) || bad.Code != berth.Invalid {
				t.Errorf("%v is not bad input", err)
			}
			if want := "f.jsonl:3: " + tt.want; !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got %.200s\nwant %s", err, want)
			}
		})
	}
}

func TestNoLineReadableIsBadInput(t *testing.T) {
	_, err := check.File(strings.NewReader("\n[1]\n{}\n"), "f.jsonl", check.Options{PEs: 4})
	if err == nil || !strings.HasPrefix(err.Error(), "f.jsonl:2: [1] is not an object") {
		t.Errorf("%v, want that of the first line", err)
	}
}

func TestUnreadableLinesAreCounted(t *testing.T) {
	const good = `{"id":"2","kind":"booking","npe":1,"start":0,"end":9}` + "\n"
	report := on(t, 4, strings.Repeat("x\n", 1200)+good+`{"id":"a b","kind":"job"}`+"\n")
	if report.Lines != 1202 || len(report.Violations) != 1000 {
		t.Fatalf("%d lines, %d violations; want 1202, and the first 1000 bad ones", report.Lines, len(report.Violations))
	}
	if last := report.Violations[999].String(); last != "line 1000 and 201 more: unreadable: not JSON: invalid character 'x' looking for beginning of value" {
		t.Errorf("%s", last)
	}
	report = on(t, 4, good+`{"id":"a b","kind":"job"}`)
	if got := report.Violations[0].String(); got != `line 2: unreadable: npe: missing; a job line needs it (id "a b")` {
		t.Errorf("%s", got)
	}
}

func TestReadable(t *testing.T) {
	for _, text := range []string{
		`{"id":"1","arrival":-5,"ready":0,"deadline":9,"duration":1,"npe":3,"accepted":true,"start":0,"end":1,"pes":"2,0-1"}`,
		"{ \"i\\u0064\" : \"\\\"}\\u007b\" , \"x\":{\"start\":[\"]\"]}, \"kind\":\"booking\",\"npe\":1,\t\"start\":0,\"end\":1 }\r",
		`{"id":"long","kind":"booking","npe":1,"start":0,"end":1,"x":"` + strings.Repeat("y", 300_000) + `"}`,
		`{"id":"1","kind":"booking","npe":1,"start":-4398046511103,"end":4398046511103,"accepted":false,"reason":null}`,
	} {
		if report := on(t, 3, text); !report.Valid() || report.Lines != 1 {
			t.Errorf("%v in %.200s", report.Violations, text)
		}
	}
}

func TestLongLinesOneAfterAnother(t *testing.T) {
	var b strings.Builder
	for i := range 4 {
		fmt.Fprintf(&b, `{"x":%q,"id":"%d","kind":"job","npe":1}`+"\n", strings.Repeat("y", 300_000-70_000*i), i)
	}
	if report := on(t, 1, b.String()); !report.Valid() || report.Lines != 4 {
		t.Error(report)
	}
}

func TestReaderFails(t *testing.T) {
	broken := errors.New("broken")
	r := io.MultiReader(strings.NewReader(valid), iotest.ErrReader(broken))
	_, err := check.File(r, "f.jsonl", check.Options{PEs: 10})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestMachineSize(t *testing.T) {
	for _, pes := range []berth.Count{-1, berth.MaxPEs + 1} {
		if _, err := check.File(strings.NewReader(""), "f", check.Options{PEs: pes}); err == nil {
			t.Errorf("no error for %d PEs", pes)
		}
	}
}

// Where the options do not say how large a pool is, one of its lines does.
func TestLinesTellTheSizesOfPools(t *testing.T) {
	const line = `{"id":%q,"kind":"booking","npe":%d,"start":0,"end":5%s}` + "\n"
	at := func(id string, npe int, more string) string { return fmt.Sprintf(line, id, npe, more) }
	for name, c := range map[string]struct{ text, want, problem string }{
		"fits":                  {at("a", 4, `,"pool_pes":4`), "", ""},
		"too large":             {at("a", 5, `,"pool_pes":4`), "too_large", ""},
		"told later":            {at("a", 3, "") + at("b", 3, `,"pool_pes":4`), "capacity", ""},
		"told twice":            {at("a", 4, `,"pool_pes":4`) + at("b", 4, `,"pool_pes":8`), "", "f:2: pool_pes: 8, and 4 in line 1; a pool has one size"},
		"each pool its own":     {at("a", 4, `,"site":"x","pool_pes":4`) + at("b", 5, `,"site":"y","pool_pes":8`), "", ""},
		"one pool is not told":  {at("a", 4, `,"site":"x","pool_pes":4`) + at("b", 5, `,"site":"y"`), "", `pool_pes: no line tells how many PEs site y has`},
		"none is told":          {at("a", 4, ""), "", "f: pool_pes: no line tells how many PEs "},
		"none is needed":        {`{"id":"a","arrival":0,"ready":0,"deadline":9,"duration":9,"npe":1,"accepted":false,"reason":"quota"}`, "", ""},
		"the only site is told": {`{"id":"a","arrival":0,"ready":0,"deadline":9,"duration":9,"npe":1,"accepted":false,"reason":"quota","pool_pes":4}` + "\n" + at("b", 5, `,"site":"x"`), "too_large", ""},
		"none at all":           {at("a", 4, `,"pool_pes":0`), "", "f:1: pool_pes: 0; a pool has 1 to "},
		"too many":              {at("a", 4, `,"pool_pes":1048577`), "", "f:1: pool_pes: "},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := check.File(strings.NewReader(c.text), "f", check.Options{})
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Fatalf("%v, want %q", err, c.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if !report.Valid() {
				got = string(report.Violations[0].Class)
			}
			if got != c.want {
				t.Errorf("%v, want %q", report.Violations, c.want)
			}
		})
	}
	// What the options say wins.
	if report, err := check.File(strings.NewReader(at("a", 5, `,"pool_pes":4`)), "f", check.Options{PEs: 8}); err != nil || !report.Valid() {
		t.Error(report, err)
	}
}

func TestSitesAndPools(t *testing.T) {
	sizes := func(site, pool string) (berth.Count, bool) {
		size, ok := map[string]berth.Count{"a/": 4, "b/x": 2, "b/y": 8}[site+"/"+pool]
		return size, ok
	}
	line := func(id, site, pool string, npe int) string {
		text := fmt.Sprintf(`{"id":%q,"kind":"booking","npe":%d,"start":0,"end":5`, id, npe)
		if site != "" {
			text += fmt.Sprintf(`,"site":%q`, site)
		}
		if pool != "" {
			text += fmt.Sprintf(`,"pool":%q`, pool)
		}
		return text + "}\n"
	}
	for _, tt := range []struct{ name, text, want string }{
		{"each full", line("1", "a", "", 4) + line("2", "b", "x", 2) + line("3", "b", "y", 8), ""},
		{"one over", line("1", "a", "", 4) + line("2", "b", "x", 1) + line("3", "b", "x", 2), "capacity: up to 3 of 2 PEs of pool x of site b"},
		{"too large", line("1", "b", "x", 3), "too_large: 3 PEs; pool x of site b has 2"},
		{"unknown pool", line("1", "b", "z", 1), "unknown_pool: there is no pool z of site b"},
		{"unknown site", line("1", "c", "", 1), "unknown_pool: there is no site c"},
		{"the only site is meant", line("1", "a", "", 3) + line("2", "", "", 2), "capacity"},
		{"the only pool is meant", line("1", "b", "x", 1) + line("2", "b", "", 2), "capacity"},
		{"which site", line("1", "a", "", 3) + line("2", "", "x", 2) + line("3", "b", "x", 1), "f:2: site: missing"},
		{"which pool", line("1", "b", "x", 2) + line("2", "b", "", 2) + line("3", "b", "y", 1), "f:2: pool: missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report, err := check.File(strings.NewReader(tt.text), "f", check.Options{Sizes: sizes})
			var got string
			if err != nil {
				got = err.Error()
			} else {
				for _, v := range report.Violations {
					got += v.String() + "\n"
				}
			}
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %s", got)
			}
		})
	}
}

// TestSitesOfOneSize: with PEs alone every site named has that many.
func TestSitesOfOneSize(t *testing.T) {
	text := `{"id":"1","kind":"booking","npe":4,"start":0,"end":5,"site":"a","pes":"0-3"}
{"id":"2","kind":"booking","npe":4,"start":0,"end":5,"site":"b","pes":"0-3"}`
	if report := on(t, 4, text); !report.Valid() {
		t.Error(report.Violations)
	}
}

// What comes after parts of several lengths comes after the longest of them, wherever that stands.
func TestWhatComesAfterPartsComesAfterTheLongest(t *testing.T) {
	const part = `{"id":"p","part":PART,"arrival":0,"ready":0,"deadline":90,"duration":LENGTH,"npe":1,"accepted":true,"start":0,"end":LENGTH}` + "\n"
	const after = `{"id":"c","arrival":0,"ready":0,"deadline":90,"duration":5,"npe":1,"after":["p"],"accepted":true,"start":12,"end":17}` + "\n"
	of := func(number, length string) string {
		return strings.NewReplacer("PART", number, "LENGTH", length).Replace(part)
	}
	wantViolations(t, on(t, 4, of("1", "15")+of("2", "10")+after).Violations, []string{"precedence [p c] [1 3]"})
	wantViolations(t, on(t, 4, of("1", "10")+of("2", "15")+after).Violations, []string{"precedence [p c] [2 3]"})
	wantViolations(t, on(t, 4, of("1", "10")+of("2", "11")+after).Violations, nil)
}

// TestAnotherCaseIsAnotherField: a field is known by its exact name only.
func TestAnotherCaseIsAnotherField(t *testing.T) {
	text := `{"id":"1","kind":"booking","npe":4,"start":0,"Start":"x","end":5}`
	if report := on(t, 4, text); !report.Valid() {
		t.Error(report.Violations)
	}
}

// classes says what is wrong with a schedule on ten PEs: each violation as its
// class and ids.
func classes(t *testing.T, text string) string {
	t.Helper()
	var words []string
	for _, v := range on(t, 10, text).Violations {
		words = append(words, fmt.Sprint(v.Class, " ", v.IDs))
	}
	return strings.Join(words, ", ")
}

// What comes after an outage without an end never starts.
func TestNothingStartsAfterAnOutageWithoutEnd(t *testing.T) {
	const after = `{"id":"a","after":["o"],"arrival":0,"ready":0,"deadline":90,"duration":10,"npe":1,"accepted":true,"start":50,"end":60}`
	for outage, want := range map[string]string{
		`{"id":"o","kind":"outage","npe":1,"start":5,"end":20}`: "",
		`{"id":"o","kind":"outage","npe":1,"start":5}`:          "precedence [o a]",
	} {
		if got := classes(t, outage+"\n"+after); got != want {
			t.Errorf("after %s: %q, want %q", outage, got, want)
		}
	}
}

// A PE that two lines hold is held until the later of the two ends, whichever line
// is the first of the file: f and s, and then f and l.
func TestIdentityFollowsTheLaterEnd(t *testing.T) {
	const text = `{"id":"f","kind":"booking","npe":1,"start":5,"end":90,"pes":"0"}
{"id":"s","kind":"booking","npe":1,"start":0,"end":10,"pes":"0"}
{"id":"l","kind":"booking","npe":1,"start":50,"end":60,"pes":"0"}`
	if got, want := classes(t, text), "identity [f s], identity [f l]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Pairs of lines that share a PE are looked for as long as that takes little; where their
// lists are long, each line that takes a PE already taken is still told once.
func TestPairsOfLinesWithLongListsAreNotAllTold(t *testing.T) {
	const lines = 120 // of each of two lists
	list := func(first, pes int) string {
		var b strings.Builder
		for pe := first; pe < 4*pes; pe += 4 {
			fmt.Fprintf(&b, ",%d", pe)
		}
		return b.String()[1:]
	}
	for pes, all := range map[int]bool{10: true, 1000: false} {
		var text strings.Builder
		for i := range 2 * lines {
			fmt.Fprintf(&text, `{"id":"%d","kind":"booking","npe":%d,"start":0,"end":10,"pes":"%s"}`+"\n", i, pes, list(2*(i/lines), pes))
		}
		told := map[string]bool{} // by their second line
		pairs := 0
		for _, v := range on(t, berth.MaxPEs, text.String()).Violations {
			if v.Class == check.Identity {
				told[v.IDs[1]] = true
				pairs++
			}
		}
		if pairs == lines*(lines-1) != all || len(told) != 2*(lines-1) {
			t.Errorf("lists of %d PEs: %d pairs of %d lines are told", pes, pairs, len(told))
		}
	}
}

// An outage counts once for a reservation, however many stretches name it: two of
// four PEs are lost to an outage of one.
func TestAnOutageCountsOnceForItsLosses(t *testing.T) {
	const text = `{"id":"o","kind":"outage","npe":1,"start":5,"end":60}
{"id":"a","arrival":0,"ready":0,"deadline":90,"duration":40,"npe":4,"accepted":true,"start":0,"end":40,"stretches":[{"from":5,"npe":3,"cause":"o"},{"from":6,"npe":2,"cause":"o"}]}`
	if got, want := classes(t, text), "resized [o a]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := classes(t, strings.Replace(text, `"npe":2,"cause"`, `"npe":3,"cause"`, 1)); got != "" {
		t.Errorf("one PE lost: %q, want it valid", got)
	}
}

// A field of text that is a number is an error that names the field.
func TestTextFieldsAreText(t *testing.T) {
	for _, field := range []string{"id", "site", "pool", "user", "workflow", "task"} {
		_, err := check.File(strings.NewReader(`{"kind":"job","npe":1,"`+field+`":5}`), "f.jsonl", check.Options{PEs: 1})
		if err == nil || !strings.HasPrefix(err.Error(), "f.jsonl:1: "+field+": ") {
			t.Errorf("%s: error %v", field, err)
		}
	}
}
