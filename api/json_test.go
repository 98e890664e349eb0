package api

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// FuzzBody has the reader of bodies agree with encoding/json about what an
// object holds, and end in a request or in complaints, whatever the bytes.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		`{"npe":64,"duration":"PT2H","deadline":"2026-11-22T18:00:00+01:00"}`, `{}`, ` { "a" : [ 1 , { "b" : "]}\"" } ] , "" : null } `,
		`{"variants":[{"npe":1,"duration":2},{}],"parts":[]}`, `{"a\u0062":"\ud800","x":-1e5}`, `[]`, `"`, `{"a":1}}`, "{\"a\":\"\\\\\"}", `{"npe":1,"npe":2}`, `{"hold":true,"ready":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if valid(data) != nil {
			return // told, and nothing else is read of it
		}
		var want map[string]json.RawMessage
		members, err := membersOf(data)
		if isObject := json.Unmarshal(data, &want) == nil && want != nil; isObject != (err == nil) {
			t.Fatalf("%s: %v", data, err)
		}
		if err != nil {
			return
		}
		got := map[string]value{}
		for _, m := range members {
			got[m.name] = m.value // the last of one name, as encoding/json has it
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %d members, want %d", data, len(got), len(want))
		}
		for name, text := range want {
			if !bytes.Equal(got[name], text) {
				t.Fatalf("%s: %q is %s, want %s", data, name, got[name], text)
			}
			sameItems(t, value(text))
		}
		var a asked
		var wrong faults
		requestBody.read(data, &a, &wrong)
		if len(wrong) > 0 {
			return
		}
		const now = 1_795_262_400
		r, err := a.request(now)
		if err != nil {
			return
		}
		if r.Arrival != now || r.Ready < now || len(r.Parts) == 0 {
			t.Fatalf("%s became %+v", data, r)
		}
		r.ID = "x"
		if err := r.Validate(); err == nil && r.Deadline > berth.TimeLimit && !r.IsJob() {
			t.Fatalf("%s became %+v", data, r)
		}
	})
}

// A role is denied to unknown users only. A provider that does not answer has denied nothing.
func TestWhatDenies(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{{nil, true}, {berth.Errorf(berth.Denied, "user", "no one"), true}, {berth.Errorf(berth.Unavailable, "", "gone"), false}, {io.EOF, false}} {
		if got := denied(c.err); got != c.want {
			t.Errorf("%v: %t, want %t", c.err, got, c.want)
		}
	}
}

// A picture that has pages more or fewer than before differs in what is on these.
func TestPicturesOfDifferentLengthDiffer(t *testing.T) {
	bar := func(first berth.PE) []service.Bar {
		return []service.Bar{{Start: 0, End: 600, First: first, PEs: 1, Class: 1}}
	}
	v := canvas{step: 60, upside: math.MaxUint64/60 + 1, width: 10, hi: 4, group: 1, height: 4}
	for _, c := range []struct {
		a, b [][]service.Bar
		want []bool
	}{
		{[][]service.Bar{bar(0)}, [][]service.Bar{bar(0), bar(2)}, []bool{false, false, true, false}},
		{[][]service.Bar{bar(0), bar(3)}, [][]service.Bar{bar(0)}, []bool{false, false, false, true}},
		{nil, [][]service.Bar{bar(1)}, []bool{false, true, false, false}},
		{[][]service.Bar{bar(1)}, [][]service.Bar{bar(2)}, []bool{false, true, true, false}},
	} {
		wanted := make([]bool, 4)
		if v.differ(c.a, c.b, wanted); !slices.Equal(wanted, c.want) {
			t.Errorf("%v to %v: groups %v, want %v", c.a, c.b, wanted, c.want)
		}
	}
}

// A long value is told by its beginning, which never ends within a letter.
func TestLongValuesAreToldByTheirBeginning(t *testing.T) {
	for text, want := range map[string]string{
		`"` + strings.Repeat("ä", 29) + `"`: `"` + strings.Repeat("ä", 29) + `"`,
		`"` + strings.Repeat("ä", 30) + `"`: `"` + strings.Repeat("ä", 29) + "…",
		strings.Repeat("1", 60):             strings.Repeat("1", 60),
		strings.Repeat("1", 61):             strings.Repeat("1", 60) + "…",
		`"7` + strings.Repeat("🔥", 20):      `"7` + strings.Repeat("🔥", 14) + "…",
	} {
		if got := value(text).short(); got != want {
			t.Errorf("%s is told as %q, want %q", text, got, want)
		}
	}
}

func sameItems(t *testing.T, v value) {
	t.Helper()
	var want []json.RawMessage
	items, err := v.items()
	if isList := json.Unmarshal(v, &want) == nil && want != nil; isList != (err == nil) || len(items) != len(want) {
		t.Fatalf("%s: %d items, %v; want %d", v, len(items), err, len(want))
	}
	for i := range items {
		if !bytes.Equal(items[i], want[i]) {
			t.Fatalf("%s: item %d is %s, want %s", v, i, items[i], want[i])
		}
	}
}

// The deadline of what was extended beyond it is its end, and what is not asked to change is kept: the service knows what that
// comes to at its pool. A window that is too short for the extension is not, as long as the deadline is that of the extension.
func TestExtendedReservationKeepsItsLength(t *testing.T) {
	was := service.Reservation{
		ID: "a", State: service.Confirmed, Request: berth.Rigid("a", 0, 1000, 1600, 2, 600), Extended: 900,
		Allotments: []berth.Allotment{{Resource: berth.PoolID("s", "p"), Start: 1000, End: 2500, NPE: 2}},
	}
	if got := reservation(&was); got.Deadline != got.End || got.End == 0 {
		t.Errorf("its deadline is %v, its end %v", got.Deadline, got.End)
	}
	for body, want := range map[string]struct {
		keeps service.Keeps
		right bool
	}{
		`{"name":"n"}`:                          {service.Keeps{Length: true, Deadline: true}, true},
		`{"npe":3}`:                             {service.Keeps{Length: true, Deadline: true}, true},
		`{"ready":"1970-01-01T00:30:00Z"}`:      {service.Keeps{Length: true, Deadline: true}, true},
		`{"ready":"1970-01-01T00:33:20Z"}`:      {service.Keeps{Length: true, Deadline: true}, false},
		`{"deadline":"1970-01-01T00:28:20Z"}`:   {service.Keeps{Length: true}, true},
		`{"deadline_in":1200}`:                  {service.Keeps{Length: true}, true},
		`{"duration":300}`:                      {service.Keeps{Deadline: true}, true},
		`{"variants":[{"npe":1,"duration":1}]}`: {service.Keeps{Deadline: true}, true},
	} {
		a := asked{Request: was.Request}
		var wrong faults
		patchBody.read([]byte(body), &a, &wrong)
		r, err := a.modified(&was, 500)
		if len(wrong) > 0 || (err == nil) != want.right || a.keeps() != want.keeps {
			t.Errorf("%s: %v %v, keeps %+v; want %+v", body, wrong, err, a.keeps(), want)
		}
		if a.keeps().Length && r.Parts[0].Variants[0].Duration != 600 {
			t.Errorf("%s: for %d s", body, r.Parts[0].Variants[0].Duration)
		}
	}
	if d := was.Request.Parts[0].Variants[0].Duration; d != 600 {
		t.Errorf("the request itself is for %d s now", d)
	}
}
