package api

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/berth-hpc/berth"
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
