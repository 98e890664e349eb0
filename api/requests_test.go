package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/form"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

func TestARequestIsPromised(t *testing.T) {
	w := newWorld(t, api.Options{})
	a := w.do("alice", "POST", "/v1/requests", askFor)
	got := into[form.Answer](t, a, 201)
	ready := form.Time(start + 5*3600)
	want := form.Answer{ID: "R000001", Decision: form.Accepted, Reservation: &form.Reservation{
		ID: "R000001", State: "confirmed", Version: 1, User: "alice",
		Place:   form.Place{Site: "cm5", Pool: "batch", NPE: 64, Duration: 7200, Start: ready, End: ready + 7200},
		Arrival: form.Time(start), Ready: ready, Deadline: ready + 86400, Created: form.Time(start), Changed: form.Time(start),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if a.Header().Get("Location") != "/v1/reservations/R000001" || a.Header().Get("ETag") != `"1"` {
		t.Error(a.Header())
	}
	if !strings.Contains(a.text, `"start":"2026-11-21T17:00:00Z"`) || !strings.Contains(a.text, `"duration":7200`) {
		t.Error(a.text)
	}
}

func TestARefusalIsAnAnswerWithOffers(t *testing.T) {
	w := newWorld(t, api.Options{})
	w.fake.refused = func(r *berth.Request) bool { return r.Ready < start+6*3600 }
	got := into[form.Answer](t, w.do("alice", "POST", "/v1/requests", askFor), 201)
	if got.Decision != form.Refused || got.Reason != berth.NoCapacity || got.Reservation != nil || len(got.Offers) != 1 || got.ID == "" {
		t.Fatalf("%+v", got)
	}
	want := "64 PEs are wanted; at cm5/batch at most 48 are free for 02:00:00, from 2026-11-21T13:00:00Z on"
	if got.Refusal.Detail != want || got.Refusal.Nearest.NPE != 48 {
		t.Errorf("%+v", got.Refusal)
	}
	o := got.Offers[0]
	if o.Difference != "later" || o.NPE != 64 || o.Start != form.Time(start+6*3600) || o.IdlePESeconds != 77 || o.Site != "cm5" {
		t.Errorf("%+v", o)
	}
	held := into[form.Answer](t, w.do("alice", "POST", "/v1/offers/"+o.ID+"/hold", `{"hold":"10m"}`), 201)
	if held.Reservation.State != "held" || held.Reservation.Expires != form.Time(start+600) {
		t.Errorf("%+v", held.Reservation)
	}
	held = into[form.Answer](t, w.do("alice", "POST", "/v1/offers/"+o.ID+"/hold", ""), 201)
	if held.Reservation.Expires != form.Time(start+1800) {
		t.Errorf("without a body it is held until %s", held.Reservation.Expires)
	}
	wantProblem(t, w.do("bob", "POST", "/v1/offers/"+o.ID+"/hold", ""), 404, "no offer")
	wantProblem(t, w.do("alice", "POST", "/v1/offers/"+o.ID+"/hold", `{"hold":false}`), 422, "hold: false; want for how long")
	confirmed := into[form.Reservation](t, w.do("alice", "POST", "/v1/reservations/"+held.ID+"/confirm", ""), 200)
	if confirmed.State != "confirmed" || confirmed.Expires != 0 {
		t.Errorf("%+v", confirmed)
	}
	wantProblem(t, w.do("alice", "POST", "/v1/reservations/"+held.ID+"/confirm", ""), 409, "is confirmed")
}

// Each part of an array is answered about, and the whole in a word.
func TestArraysAreAnsweredPartByPart(t *testing.T) {
	w := newWorld(t, api.Options{})
	array := func(n string) string { return strings.TrimSuffix(askFor, "}") + `,"array":` + n + "}" }
	got := into[form.Answer](t, w.do("alice", "POST", "/v1/requests", array("3"), "Idempotency-Key", "k"), 201)
	if got.ID != "A000001" || got.Decision != form.Accepted || len(got.Array) != 3 || got.Reservation != nil || got.Offers != nil {
		t.Fatalf("%+v", got)
	}
	if p := got.Array[2]; p.ID != "A000001_3" || p.Decision != form.Accepted || p.Reservation.NPE != 64 || p.Reservation.User != "alice" {
		t.Errorf("%+v", p)
	}
	again := into[form.Answer](t, w.do("alice", "POST", "/v1/requests", array("3"), "Idempotency-Key", "k"), 201)
	if diff := cmp.Diff(got, again); diff != "" || len(w.fake.made) != 3 {
		t.Errorf("%d reservations, %s", len(w.fake.made), diff)
	}
	wantProblem(t, w.do("alice", "POST", "/v1/requests", array("2"), "Idempotency-Key", "k"), 422, "was used for something else")

	w.fake.refused = func(*berth.Request) bool { return len(w.fake.made) > 5 }
	got = into[form.Answer](t, w.do("alice", "POST", "/v1/requests", array("4")), 201)
	if got.Decision != form.Partly || got.Reason != berth.NoCapacity || got.Refusal == nil || got.Array[1].Decision != form.Accepted {
		t.Errorf("%+v", got)
	}
	if p := got.Array[2]; p.Decision != form.Refused || p.Reservation != nil || p.Offers != nil || p.Reason != berth.NoCapacity {
		t.Errorf("%+v", p)
	}
	got = into[form.Answer](t, w.do("alice", "POST", "/v1/requests", array("2")), 201)
	if got.Decision != form.Refused || len(got.Offers) != 1 || len(got.Array) != 2 || got.Array[0].Offers != nil {
		t.Errorf("%+v", got)
	}

	for n, want := range map[string]string{
		"0": "array: 0; want a whole number from 1 to 1000", "1001": "array: 1001; want a whole number", "2.5": "array: 2.5; want", `"4"`: `array: "4"; want`, "-1": "array: -1; want", "null": "array: null; want",
	} {
		wantProblem(t, w.do("alice", "POST", "/v1/requests", array(n)), 422, want)
	}
	wantProblem(t, w.do("alice", "POST", "/v1/offers", array("2")), 422, "array: unknown field")
	wantProblem(t, w.do("alice", "PATCH", "/v1/reservations/A000001_1", `{"array":2}`), 422, "array: unknown field")
	wantProblem(t, w.do("vera", "POST", "/v1/requests", array("2")), 403, "viewer")
}

// A large body counts for each part of an array: each is decided about all that it says.
func TestALargeArrayCountsByItsBodyToo(t *testing.T) {
	w := newWorld(t, api.Options{Limits: rate(1, 10)})
	array := strings.TrimSuffix(askFor, "}") + strings.Repeat(" ", 40<<10) + `,"array":3}` // three requests, each with 2 more for its size
	into[form.Answer](t, w.do("alice", "POST", "/v1/requests", array), 201)
	into[form.Answer](t, w.do("alice", "POST", "/v1/requests", askFor), 201)
	wantProblem(t, w.do("alice", "POST", "/v1/requests", askFor), 429, "too many requests of alice")
}

// Each part of an array counts as a request.
func TestArraysCountByTheirParts(t *testing.T) {
	w := newWorld(t, api.Options{Limits: rate(1, 10)})
	array := strings.TrimSuffix(askFor, "}") + `,"array":6}`
	into[form.Answer](t, w.do("alice", "POST", "/v1/requests", array), 201)
	wantProblem(t, w.do("alice", "POST", "/v1/requests", array), 429, "too many requests of alice")
	// What is more than is ever allowed at once would be too fast for ever.
	larger := strings.TrimSuffix(askFor, "}") + `,"array":11}`
	wantProblem(t, w.do("alice", "POST", "/v1/requests", larger), 422, "array: 11; a user may ask for 10 at once here")
	if len(w.fake.made) != 6 {
		t.Errorf("%d reservations", len(w.fake.made))
	}
}

// What is said about a refusal names what was asked for.
func TestRefusalsNameWhatIsMissing(t *testing.T) {
	pool := berth.PoolID("cm5", "batch")
	never := start.Add(berth.Endless)
	for _, c := range []struct {
		refusal berth.Refusal
		asked   string
		want    string
	}{
		{berth.Refusal{Resource: pool, Reason: berth.NoSoftware}, `"software":"nmad"`, "no site has nmad"},
		{berth.Refusal{Resource: pool, Reason: berth.NoSoftware}, `"software":"namd","version":"2.12"`, "no site has namd of version 2.12 or later"},
		{berth.Refusal{Resource: pool, Reason: berth.NoLicence}, `"software":"namd","licences":9`, "namd is there, but nowhere with 9 licences"},
		{
			berth.Refusal{Resource: berth.ResourceID{Site: "cm5", Kind: berth.LicenceKind, Name: "namd"}, Reason: berth.NoLicence, Wanted: 2, Limit: 3},
			`"software":"namd","licences":2`, "2 licences of namd are wanted for longer; cm5 has 3, and others hold too many of them until then",
		},
		{
			berth.Refusal{Resource: pool, Reason: berth.NoSuitableSite, Wanted: 64, Limit: 100},
			`"memory_mb":5,"accelerators":2,"storage_mb":7,"partition":"p","site":"cm6","pool":"q"`,
			"no site has all of this: the name cm6, a pool q, a partition p that takes it, 5 MB of memory a PE, 2 accelerators a PE, room for 7 MB of data",
		},
		{berth.Refusal{Reason: berth.NoSuitableSite, Wanted: 64}, `"site":"cm6"`, "no site has all of this: the name cm6"},
		{berth.Refusal{Resource: berth.UplinkID(), Reason: berth.NoCapacity, Wanted: 64}, `"storage_mb":7`, "others' data leave too little of the uplink to have its own there in time"},
		{berth.Refusal{Resource: pool, Reason: berth.NoSuitableSite, Wanted: 64, Limit: 100}, `"no_show":60`, "no site has PEs of such a kind"},
		{berth.Refusal{Resource: pool, Reason: berth.NoSuitableSite, Wanted: 64, Limit: 4}, `"partition":"p"`, "64 PEs of such a kind are wanted; at cm5/batch there are 4"},
		{berth.Refusal{Resource: pool, Reason: berth.DeadlineMissed, Possible: start + 90}, `"storage_mb":7`, "even if at cm5/batch nothing else ran it would not end before 2026-11-21T12:01:30Z"},
		{berth.Refusal{Resource: pool, Reason: berth.DeadlineMissed, Possible: never}, `"storage_mb":7`, "its data would never arrive at cm5/batch, as fast as they can be moved there"},
	} {
		w := newWorld(t, api.Options{})
		w.fake.refusal = &c.refusal
		got := into[form.Answer](t, w.do("alice", "POST", "/v1/requests", strings.TrimSuffix(askFor, "}")+","+c.asked+"}"), 201)
		if got.Refusal == nil || got.Refusal.Detail != c.want || got.Reason != c.refusal.Reason {
			t.Errorf("%s: %+v, want %q", c.asked, got.Refusal, c.want)
		}
	}
}

// A refusal for what a promise would cost the others says how much that is, or that it cannot be told.
func TestRefusalsTellWhatItWouldCost(t *testing.T) {
	for _, c := range []struct {
		over berth.Exceeded
		want string
	}{
		{berth.Exceeded{Limit: "delay", Allowed: 1800, Asked: 5400}, "your limit delay is 00:30:00, and this would delay a job that waits by 01:30:00"},
		{berth.Exceeded{Limit: "idle", QOS: "high", Allowed: 36_000, Asked: 45_000}, "the limit idle of QOS high is 10 PE-hours, and this would leave 12.5 PE-hours idle that jobs would use"},
		{berth.Exceeded{Limit: "idle", Allowed: 3600, Asked: 0}, "your limit idle is 1 PE-hours, and too many jobs wait to foresee what this would cost them"},
	} {
		w := newWorld(t, api.Options{})
		w.fake.refusal = &berth.Refusal{Reason: berth.Quota, Resource: berth.PoolID("cm5", "batch"), Wanted: 64, Exceeded: &c.over}
		got := into[form.Answer](t, w.do("alice", "POST", "/v1/requests", askFor), 201)
		if got.Refusal == nil || got.Refusal.Detail != c.want || got.Refusal.Exceeded == nil || got.Refusal.Exceeded.Limit != c.over.Limit {
			t.Errorf("%+v, want %q", got.Refusal, c.want)
		}
	}
}

func TestWhatCouldBeHad(t *testing.T) {
	w := newWorld(t, api.Options{})
	got := into[form.Offers](t, w.do("alice", "POST", "/v1/offers?most=3", askFor), 200)
	if len(got.Offers) != 1 || len(w.fake.made) != 0 {
		t.Errorf("%+v", got)
	}
	wantProblem(t, w.do("alice", "POST", "/v1/offers?most=0", askFor), 422, "most: 0; want a whole number from 1 to 50")
	wantProblem(t, w.do("alice", "POST", "/v1/offers?moist=1", askFor), 422, "moist: unknown parameter")
}

// TestEveryField has each field arrive where it belongs.
func TestEveryField(t *testing.T) {
	w := newWorld(t, api.Options{})
	text := `{ "kind" : "request", "user":"bob","deadline":"2026-11-30T00:00:00.9Z","ready":"2026-11-22T00:00:00.1Z",
		"variants":[{"npe":4,"duration":600},{"duration":"PT5M", "npe":8}],"pes":"0-31,64","hold":600,"no_show":"15m","site":"c\u006d5","pool":"batch",
		"software":"gro\"macs;rm","version":"2026.1","licences":3,"memory_mb":4000,"storage_mb":5000,"accelerators":2,"partition":"gpu","account":"phys","qos":"high","users":["ann","*x"]}`
	wantProblem(t, w.do("root", "POST", "/v1/requests", text), 422, "users[1]: ")
	text = strings.Replace(text, "*x", "eve", 1)
	id := into[form.Answer](t, w.do("root", "POST", "/v1/requests", text), 201).ID
	pes, _ := berth.ParsePESet("0-31,64")
	day := start + 12*3600
	want := berth.Request{
		ID: id, Kind: berth.KindRequest, User: "bob", Arrival: start, Ready: day + 1, Deadline: day + 8*86400,
		Parts: []berth.Part{{Variants: []berth.Variant{{NPE: 4, Duration: 600}, {NPE: 8, Duration: 300}}, Eligible: pes}},
		Site:  "cm5", Pool: "batch", Hold: 600, NoShow: 900,
		Requirements: berth.Requirements{
			Software: `gro"macs;rm`, Version: "2026.1", Licences: 3, MemoryMB: 4000, StorageMB: 5000, Accelerators: 2, Partition: "gpu",
		},
		Sharing: berth.Sharing{Account: "phys", QOS: "high", Users: []string{"ann", "eve"}},
	}
	got := w.fake.made[0].Request
	if diff := cmp.Diff(want, got, cmp.Comparer(berth.PESet.Equal)); diff != "" {
		t.Error(diff)
	}
}

// TestWhatIsOverBeginsNow has a window that has begun already.
func TestWhatIsOverBeginsNow(t *testing.T) {
	w := newWorld(t, api.Options{})
	past := `{"npe":1,"duration":60,"ready":"2026-11-21T09:00:00Z","deadline":"2026-11-21T13:00:00Z"}`
	a := into[form.Answer](t, w.do("alice", "POST", "/v1/requests", past), 201)
	if a.Reservation.Ready != form.Time(start) {
		t.Error(a.Reservation.Ready)
	}
	a = into[form.Answer](t, w.do("alice", "PATCH", "/v1/reservations/"+a.ID, `{"ready":"2026-11-21T09:00:00Z"}`), 200)
	if a.Reservation.Ready != form.Time(start) {
		t.Error(a.Reservation.Ready)
	}
}

func TestPartsAndJobs(t *testing.T) {
	w := newWorld(t, api.Options{})
	text := `{"deadline":"2026-11-30T00:00:00Z","parts":[{"npe":4,"duration":600,"pes":"0-3"},{"variants":[{"npe":2,"duration":60}]}]}`
	a := into[form.Answer](t, w.do("alice", "POST", "/v1/requests", text), 201)
	r := a.Reservation
	if len(r.Parts) != 2 || r.NPE != 6 || r.Parts[1].NPE != 2 || r.Start != form.Time(start) || r.End != form.Time(start+600) {
		t.Errorf("%+v", r)
	}
	a = into[form.Answer](t, w.do("alice", "POST", "/v1/requests", `{"kind":"job","npe":4,"duration":600}`), 201)
	if got := w.fake.made[1].Request; !got.IsJob() || got.Deadline != berth.Forever || got.Ready != start || a.Reservation.Deadline != 0 {
		t.Errorf("%+v", got)
	}
}

// TestFaults has every mistake answered with the field, the value and what would
// be right.
func TestFaults(t *testing.T) {
	w := newWorld(t, api.Options{})
	good := map[string]string{"npe": `64`, "duration": `7200`, "deadline": `"2026-11-22T18:00:00Z"`}
	with := func(pairs ...string) string {
		fields := map[string]string{}
		maps.Copy(fields, good)
		for i := 0; i < len(pairs); i += 2 {
			if fields[pairs[i]] = pairs[i+1]; pairs[i+1] == "" {
				delete(fields, pairs[i])
			}
		}
		var list []string
		for name, text := range fields {
			list = append(list, fmt.Sprintf("%q:%s", name, text))
		}
		return "{" + strings.Join(list, ",") + "}"
	}
	for _, test := range []struct {
		body   string
		status int
		words  []string
	}{
		{"", 422, []string{"body: empty; want a JSON object"}},
		{"[]", 422, []string{"body: []; want a JSON object"}},
		{"null", 422, []string{"body: null; want a JSON object"}},
		{`{"npe":64,}`, 422, []string{"body: not JSON at byte 11"}},
		{`{"npe":64`, 422, []string{"body: not JSON"}},
		{"{\"site\":\"\xff\"}", 422, []string{"body: not UTF-8"}},
		{with("npe", ""), 422, []string{"npe: missing; want how many PEs"}},
		{with("npe", "", "duration", "", "deadline", ""), 422, []string{"npe: missing", "duration: missing; want seconds, or a text such as PT2H30M", "deadline: missing; want RFC 3339 with a zone"}},
		{with("npe", "0"), 422, []string{"npe: 0; want a whole number from 1 to 1048576"}},
		{with("npe", "1.5"), 422, []string{"npe: 1.5; want a whole number"}},
		{with("npe", `"64"`), 422, []string{`npe: "64"; want a whole number`}},
		{with("npe", "1e2"), 422, []string{"npe: 1e2; want a whole number"}},
		{with("npe", "null"), 422, []string{"npe: null; want a whole number"}},
		{with("npe", "99999999999999999999"), 422, []string{"npe: 99999999999999999999; want a whole number"}},
		{with("duration", `"2"`), 422, []string{"duration: 2 of what? It could be 2s (seconds, as in PBS), 2m (minutes, as in Slurm) or 2h"}},
		{with("duration", `-1`), 422, []string{"duration: -1; want seconds"}},
		{with("duration", `0`), 422, []string{"duration: 0; want at least 1 s"}},
		{with("duration", `{}`), 422, []string{"duration: {}; want seconds"}},
		{with("deadline", `"2026-11-22T18:00:00"`), 422, []string{`deadline: "2026-11-22T18:00:00" has no zone; want RFC 3339 with a zone, such as`}},
		{with("deadline", `"2026-11-22 18:00"`), 422, []string{"has no zone"}},
		{with("deadline", `"tomorrow"`), 422, []string{`deadline: "tomorrow"; want RFC 3339`}},
		{with("deadline", `1795262400`), 422, []string{"deadline: 1795262400; want RFC 3339"}},
		{with("deadline", `"2026-02-30T00:00:00Z"`), 422, []string{`"2026-02-30T00:00:00Z"; want RFC 3339`}},
		{with("deadline", `"2026-11-21T11:59:59Z"`), 422, []string{"deadline: 2026-11-21T11:59:59Z is over, it is 2026-11-21T12:00:00Z"}},
		{with("deadline", `"2026-11-21T13:00:00Z"`), 422, []string{"deadline: 2026-11-21T13:00:00Z is before ready + duration, 2026-11-21T12:00:00Z + 02:00:00; want 2026-11-21T14:00:00Z or later"}},
		{with("ready", `"2026-11-22T17:00:00"`, "npe", "-1", "nep", "3"), 422, []string{"ready: ", "has no zone", "npe: -1", "nep: unknown field (did you mean npe?)"}},
		{with("NPE", `4`), 422, []string{"NPE: unknown field (did you mean npe?)"}},
		{`{"npe":1,"npe":2,"duration":1,"deadline":"2026-11-22T18:00:00Z"}`, 422, []string{"npe: given twice"}},
		{`{"npe":1,"n\u0070e":2,"duration":1,"deadline":"2026-11-22T18:00:00Z"}`, 422, []string{"npe: given twice"}},
		{`{"npe":1,"d\u0075ration":1,"deadline":"2026-11-22T18:00:00Z","s\u0069tf":"x"}`, 422, []string{"sitf: unknown field (did you mean site?)"}},
		{with("id", `"mine"`), 422, []string{"id: unknown field"}},
		{with("user", `"a b"`), 422, []string{`user: "a b"; want 1 to 64 letters`}},
		{with("user", `"x'; DROP TABLE r; --"`), 422, []string{"user: "}},
		{with("user", `"bob"`), 403, []string{"user: may not ask in the name of"}},
		{with("site", `"a\nb"`), 422, []string{`site: "a\nb"; want one line`}},
		{with("site", `"`+strings.Repeat("s", 300)+`"`), 422, []string{"site: 300 bytes; want at most 255"}},
		{with("site", `7`), 422, []string{"site: 7; want a string"}},
		{with("pes", `"3-1"`), 422, []string{"pes: descending range"}},
		{with("pes", `[1]`), 422, []string{"pes: [1]; want a list of PEs such as"}},
		{with("hold", `"soon"`), 422, []string{`hold: "soon" is no duration`, "or true for half an hour"}},
		{with("kind", `"wish"`), 422, []string{`kind: "wish"; want "request" or "job"`}},
		{with("variants", `[{"npe":1,"duration":2}]`), 422, []string{"variants: given beside npe or duration"}},
		{with("npe", "", "duration", "", "variants", `[]`), 422, []string{"variants: 0 items; want 1 to 1000"}},
		{with("npe", "", "duration", "", "variants", `{}`), 422, []string{"variants: {}; want a list"}},
		{with("npe", "", "duration", "", "variants", `[{"npe":1,"duration":2},{"npe":0,"durattion":2}]`), 422, []string{"variants[1].npe: 0", "variants[1].durattion: unknown field (did you mean duration?)"}},
		{with("npe", "", "duration", "", "variants", `[{"npe":1}]`), 422, []string{"variants[0]: incomplete; want npe and duration"}},
		{with("npe", "", "duration", "", "variants", `[3]`), 422, []string{"variants[0]"}},
		{with("parts", `[{"npe":1,"duration":2}]`), 422, []string{"parts: given beside npe"}},
		{with("npe", "", "duration", "", "parts", `[{"npe":1,"duration":2},{"npe":1}]`), 422, []string{"parts[1]: incomplete"}},
		{with("version", `"2"`), 422, []string{"version: ", "of no software"}},
		{with("memory_mb", `-4`), 422, []string{"memory_mb: -4; want a whole number"}},
		{with("no_show", `true`), 422, []string{"no_show: true; want seconds"}},
	} {
		a := w.do("alice", "POST", "/v1/requests", test.body, "Content-Type", "application/json")
		wantProblem(t, a, test.status, test.words...)
	}
	if len(w.fake.made) > 0 {
		t.Errorf("something was asked for: %+v", w.fake.made[0])
	}
}

func TestProblemsListEveryField(t *testing.T) {
	w := newWorld(t, api.Options{})
	p := into[form.Problem](t, w.do("alice", "POST", "/v1/requests", `{"npe":0,"deadline":"soon","nothing":1}`), 422)
	var fields []string
	for _, f := range p.Errors {
		fields = append(fields, f.Field)
	}
	if diff := cmp.Diff([]string{"npe", "deadline", "nothing"}, fields); diff != "" || p.Code != berth.Invalid {
		t.Error(diff, p.Code)
	}
}

func TestKeysMakeAskingTwiceTheSame(t *testing.T) {
	w := newWorld(t, api.Options{})
	first := into[form.Answer](t, w.do("alice", "POST", "/v1/requests", askFor, "Idempotency-Key", "k1"), 201)
	again := into[form.Answer](t, w.do("alice", "POST", "/v1/requests", askFor, "Idempotency-Key", "k1"), 201)
	if first.ID != again.ID || len(w.fake.made) != 1 {
		t.Error(first.ID, again.ID)
	}
	wantProblem(t, w.do("alice", "POST", "/v1/requests", strings.Replace(askFor, "64", "32", 1), "Idempotency-Key", "k1"), 422, "idempotency_key: ", "something else")
	path := "/v1/reservations/" + first.ID
	wantProblem(t, w.do("alice", "DELETE", path, "", "Idempotency-Key", "k1"), 422, "idempotency_key: ")
	if other := into[form.Answer](t, w.do("bob", "POST", "/v1/requests", askFor, "Idempotency-Key", "k1"), 201); other.ID == first.ID {
		t.Error("two users share a key")
	}
	wantProblem(t, w.do("alice", "POST", "/v1/requests", askFor, "Idempotency-Key", strings.Repeat("k", 256)), 422, "Idempotency-Key: ")
	wantProblem(t, w.do("alice", "POST", "/v1/requests", askFor, "Idempotency-Key", "ké"), 422, "Idempotency-Key: ")
	into[form.Reservation](t, w.do("alice", "POST", path+"/check-in", "", "Idempotency-Key", "k3"), 200)
	wantProblem(t, w.do("alice", "POST", path+"/release", "", "Idempotency-Key", "k3"), 422, "idempotency_key: ")
	for range 2 {
		r := into[form.Answer](t, w.do("alice", "POST", path+"/extend", `{"by":3600}`, "Idempotency-Key", "k2"), 200)
		if r.Reservation.Duration != 7200+3600 {
			t.Errorf("extended to %d s", r.Reservation.Duration)
		}
	}
}

func TestOnlyTheVersionThatWasSeenIsChanged(t *testing.T) {
	w := newWorld(t, api.Options{})
	id := w.reserve(t, "alice")
	path := "/v1/reservations/" + id
	a := w.do("alice", "GET", path, "")
	if a.Header().Get("ETag") != `"1"` {
		t.Fatal(a.Header())
	}
	if b := w.do("alice", "GET", path, "", "If-None-Match", `"1"`); b.Code != 304 || b.text != "" {
		t.Error(b.Code, b.text)
	}
	b := w.do("alice", "PATCH", path, `{"npe":32}`, "If-Match", `"1"`)
	if got := into[form.Answer](t, b, 200); got.Reservation.NPE != 32 || b.Header().Get("ETag") != `"2"` {
		t.Errorf("%+v %v", got.Reservation, b.Header())
	}
	var described struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name string }
		}
	}
	if err := json.Unmarshal([]byte(w.do("alice", "GET", "/openapi.json", "").text), &described); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][3]string{
		{"PATCH", "", `{"npe":16}`},
		{"DELETE", "", ""},
		{"POST", "/extend", `{"by":60}`},
		{"POST", "/release", ""},
		{"POST", "/confirm", ""},
		{"POST", "/check-in", ""},
	} {
		c := w.do("alice", change[0], path+change[1], change[2], "If-Match", `"1"`)
		wantProblem(t, c, 412, "version: 1; it is 2 by now")
		if c.Header().Get("ETag") != "" {
			t.Error("a problem has an ETag")
		}
		if !slices.ContainsFunc(described.Paths["/v1/reservations/{id}"+change[1]][strings.ToLower(change[0])].Parameters, func(p struct{ Name string }) bool { return p.Name == "If-Match" }) {
			t.Errorf("If-Match is not described: %s %s", change[0], change[1])
		}
	}
	for _, bad := range []string{"1", `W/"1"`, `"x"`, `"1", "2"`, `"0"`, `""`} {
		wantProblem(t, w.do("alice", "DELETE", path, "", "If-Match", bad), 422, "If-Match: ")
	}
	if got := into[form.Reservation](t, w.do("alice", "DELETE", path, "", "If-Match", "*"), 200); got.State != "cancelled" {
		t.Errorf("%+v", got)
	}
}

func TestModifyChangesWhatIsGiven(t *testing.T) {
	w := newWorld(t, api.Options{})
	body := `{"npe":64,"duration":7200,"ready":"2026-11-21T18:00:00Z","deadline":"2026-11-22T18:00:00Z","software":"x","version":"2","no_show":60,"pes":"0-63"}`
	id := into[form.Answer](t, w.do("alice", "POST", "/v1/requests", body), 201).ID
	path := "/v1/reservations/" + id
	into[form.Answer](t, w.do("alice", "PATCH", path, `{"duration":"1h","version":null,"no_show":null}`), 200)
	got := w.fake.made[0].Request
	pes, _ := berth.ParsePESet("0-63")
	want := berth.Rigid(id, start, start+6*3600, start+30*3600, 64, 3600)
	want.User, want.Software, want.Parts[0].Eligible = "alice", "x", pes
	if diff := cmp.Diff(want, got, cmp.Comparer(berth.PESet.Equal)); diff != "" {
		t.Error(diff)
	}
	into[form.Answer](t, w.do("alice", "PATCH", path, `{"npe":8,"ready":null,"pes":"0-7"}`), 200)
	if got := w.fake.made[0].Request; got.Parts[0].Variants[0] != (berth.Variant{NPE: 8, Duration: 3600}) || got.Ready != start {
		t.Errorf("%+v", got)
	}
	for body, words := range map[string]string{
		`{"user":"bob"}`:                                "user: unknown field",
		`{"hold":true}`:                                 "hold: unknown field",
		`{"deadline":"2026-11-21T12:30:00Z"}`:           "deadline: ",
		`{"variants":[{"npe":1,"duration":1}],"npe":1}`: "variants: given beside",
	} {
		wantProblem(t, w.do("alice", "PATCH", path, body), 422, words)
	}
	w.fake.refused = func(*berth.Request) bool { return true }
	a := into[form.Answer](t, w.do("alice", "PATCH", path, `{"npe":9}`), 200)
	if a.Decision != form.Refused || a.Reason != berth.NoCapacity || a.Reservation.NPE != 8 {
		t.Errorf("%+v", a)
	}
	w.fake.refused = nil
	two := into[form.Answer](t, w.do("alice", "POST", "/v1/requests", `{"deadline":"2026-11-30T00:00:00Z","parts":[{"npe":4,"duration":600},{"npe":2,"duration":60}]}`), 201).ID
	wantProblem(t, w.do("alice", "PATCH", "/v1/reservations/"+two, `{"npe":9}`), 422, "parts: it has several")
	moldable := into[form.Answer](t, w.do("alice", "POST", "/v1/requests", `{"deadline":"2026-11-30T00:00:00Z","variants":[{"npe":4,"duration":600},{"npe":2,"duration":60}]}`), 201).ID
	wantProblem(t, w.do("alice", "PATCH", "/v1/reservations/"+moldable, `{"npe":9}`), 422, "variants: it has several")
	into[form.Answer](t, w.do("alice", "PATCH", "/v1/reservations/"+moldable, `{"npe":9,"duration":9}`), 200)
}

// racing changes a reservation a number of times, behind the back of the caller that has
// just read it.
type racing struct {
	*fake
	times int
}

func (f *racing) Get(ctx context.Context, by service.Principal, id string) (service.Reservation, error) {
	r, err := f.fake.Get(ctx, by, id)
	if f.times--; f.times >= 0 {
		f.made[0].Request.NoShow = 77
		f.made[0].Allotments = slices.Clone(f.made[0].Allotments)
		f.made[0].Allotments[0].End += 600
		f.tell("modified", f.made[0])
	}
	return r, err
}

func TestModifyTakesOverWhatChangedInBetween(t *testing.T) {
	for times, status := range map[int]int{1: 200, 3: 200, 99: 412} {
		f := &racing{newFake(), times}
		w := newWorld(t, api.Options{Service: f})
		id := w.reserve(t, "alice")
		a := w.do("alice", "PATCH", "/v1/reservations/"+id, `{"npe":32}`)
		if a.Code != status {
			t.Fatalf("%d times: status %d: %s", times, a.Code, a.text)
		}
		if got := f.made[0].Request; status == 200 && (got.NoShow != 77 || got.Parts[0].Variants[0].NPE != 32) {
			t.Errorf("%+v", got)
		}
	}
}

// An extension by a length adds to the end that the reservation has when it is extended, also if another caller extends it at the same time.
func TestExtendByAddsToWhatChangedInBetween(t *testing.T) {
	for times, status := range map[int]int{1: 200, 3: 200, 99: 412} {
		f := &racing{newFake(), times}
		w := newWorld(t, api.Options{Service: f})
		id := w.reserve(t, "alice")
		end := f.made[0].Allotments[0].End
		a := w.do("alice", "POST", "/v1/reservations/"+id+"/extend", `{"by":3600}`)
		if a.Code != status {
			t.Fatalf("%d times: status %d: %s", times, a.Code, a.text)
		}
		if got, want := f.made[0].Allotments[0].End, end+berth.Time(3600+600*times); status == 200 && got != want {
			t.Errorf("%d times: until %d, want %d", times, got, want)
		}
	}
}

func TestExtend(t *testing.T) {
	w := newWorld(t, api.Options{})
	id := w.reserve(t, "alice")
	path := "/v1/reservations/" + id + "/extend"
	got := into[form.Answer](t, w.do("alice", "POST", path, `{"until":"2026-11-21T20:00:00Z"}`), 200)
	if got.Reservation.End != form.Time(start+8*3600) {
		t.Error(got.Reservation.End)
	}
	got = into[form.Answer](t, w.do("alice", "POST", path, `{"by":"PT1H"}`), 200)
	if got.Reservation.End != form.Time(start+9*3600) {
		t.Error(got.Reservation.End)
	}
	wantProblem(t, w.do("alice", "POST", path, `{}`), 422, "until: want either")
	wantProblem(t, w.do("alice", "POST", path, `{"by":1,"until":"2026-11-21T20:00:00Z"}`), 422, "until: want either")
	wantProblem(t, w.do("alice", "POST", path, `{"until":"2026-11-21T13:00:00Z"}`), 422, "until: not after its end")
	w.fake.made[0].Allotments = nil
	wantProblem(t, w.do("alice", "POST", path, `{"by":1}`), 409, "nothing to extend")
}

func TestListIsPagedAndFiltered(t *testing.T) {
	w := newWorld(t, api.Options{})
	var ids []string
	for range 7 {
		ids = append(ids, w.reserve(t, "alice"))
	}
	w.fake.made[3].State = service.Active
	var seen []string
	path := "/v1/reservations?limit=3"
	for pages := 0; ; pages++ {
		page := into[form.Page](t, w.do("alice", "GET", path, ""), 200)
		for _, r := range page.Reservations {
			seen = append(seen, r.ID)
		}
		if page.Next == "" {
			if pages != 2 {
				t.Errorf("%d pages", pages+1)
			}
			break
		}
		path = "/v1/reservations?limit=3&cursor=" + page.Next
	}
	if diff := cmp.Diff(ids, seen); diff != "" {
		t.Error(diff)
	}
	for query, want := range map[string]int{
		"state=active": 1, "state=confirmed,active": 7, "state=held": 0, "user=bob": 0, "site=cm5": 7, "site=x": 0,
		"from=2026-11-21T19:00:00Z": 0, "from=2026-11-21T18:59:59Z": 7, "to=2026-11-21T17:00:00Z": 0, "to=2026-11-21T17:00:01Z": 7, "limit=7": 7,
	} {
		if page := into[form.Page](t, w.do("alice", "GET", "/v1/reservations?"+query, ""), 200); len(page.Reservations) != want || page.Next != "" {
			t.Errorf("%s: %d, want %d", query, len(page.Reservations), want)
		}
	}
	if text := w.do("bob", "GET", "/v1/reservations", "").text; strings.TrimSpace(text) != `{"reservations":[]}` {
		t.Error(text)
	}
	for query, words := range map[string]string{
		"state=%zz": "query: ", "state=failed;limit=1": "query: ",
		"state=lost": `state: "lost"; want some of pending, held`, "limit=0": "limit: ", "limit=1000": "limit: ", "cursor=!": "cursor: ", "cursor=zzz": `cursor: "zzz"; want the next of the page before`,
		"from=today": "from: ", "to=2026-11-21T17:00:00": "has no zone", "sort=up": "sort: unknown parameter", "user=a&user=b": "user: given twice",
		"from=2026-11-21T17:00:00Z&to=2026-11-21T17:00:00Z": "to: not after from",
	} {
		wantProblem(t, w.do("alice", "GET", "/v1/reservations?"+query, ""), 422, words)
	}
}

func TestSitesAndNodes(t *testing.T) {
	w := newWorld(t, api.Options{})
	for user, told := range map[string]bool{"root": true, "alice": false, "vera": false} {
		a := w.do(user, "GET", "/v1/sites/cm5", "")
		got := into[form.Site](t, a, 200)
		if got.Pools[0].Free != 40 || got.Pools[0].PEs != 100 || got.Adapter != "slurm" || got.Nodes[0].Condition != "drained" {
			t.Errorf("%+v", got)
		}
		if strings.Contains(a.text, "secret") != told || (len(got.Drift) > 0) != told {
			t.Errorf("%s sees %s", user, a.text)
		}
		if list := into[form.Sites](t, w.do(user, "GET", "/v1/sites", ""), 200); len(list.Sites) != 1 {
			t.Error(list)
		}
	}
	for _, starting := range []bool{false, true} {
		w.fake.starting = starting
		if got := into[form.Site](t, w.do("alice", "GET", "/v1/sites/cm5", ""), 200); got.Starting != starting || got.Reachable == starting {
			t.Errorf("starting %t, reachable %t; want %t", got.Starting, got.Reachable, starting)
		}
	}
	wantProblem(t, w.do("alice", "GET", "/v1/sites/nowhere", ""), 404, `no site "nowhere"`)
	if a := w.do("root", "POST", "/v1/sites/cm5/nodes/n1/drain", `{"reason":"disk"}`); a.Code != 204 || w.fake.drained["n1"] != "disk" {
		t.Error(a.Code, w.fake.drained)
	}
	if a := w.do("root", "POST", "/v1/sites/cm5/nodes/n2/drain", ""); a.Code != 204 || w.fake.drained["n2"] != "drained by root" {
		t.Error(a.Code, w.fake.drained)
	}
	if a := w.do("root", "POST", "/v1/sites/cm5/nodes/n1/resume", ""); a.Code != 204 || len(w.fake.drained) != 1 {
		t.Error(a.Code, w.fake.drained)
	}
	wantProblem(t, w.do("root", "POST", "/v1/sites/cm5/nodes/x/drain", ""), 404, "node: ")
}

func TestRun(t *testing.T) {
	w := newWorld(t, api.Options{})
	path := "/v1/reservations/" + w.reserve(t, "alice") + "/run"
	body := `{"key":"k","name":"n","command":["echo","a b; rm -rf /"],"dir":"/tmp","env":["A=\"b\""],"output":"o","error_output":"e","array":"1-3","limit":"1h","nodes":2,"cores":3,"memory_mb":4}`
	if got := into[form.Job](t, w.do("alice", "POST", path, body), 201); got.Job != "job-1" {
		t.Error(got)
	}
	got, _ := json.Marshal(w.fake.tasks[0])
	want := `{"key":"k","name":"n","reservation":"` + string(w.fake.tasks[0].Reservation) + `","command":["echo","a b; rm -rf /"],"dir":"/tmp","env":["A=\"b\""],"output":"o","error_output":"e","array":"1-3","limit":3600,"nodes":2,"cores":3,"memory_mb":4}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	wantProblem(t, w.do("alice", "POST", path, `{"command":["x"],"dir":"tmp"}`), 422, `dir: "tmp"; want an absolute path`)
	wantProblem(t, w.do("alice", "POST", path, `{"command":["x",3],"dir":"/"}`), 422, "command[1]: 3; want a string")
	wantProblem(t, w.do("bob", "POST", path, body), 404)
}

func TestKeyOfAnotherTaskIsUnprocessable(t *testing.T) {
	w := newWorld(t, api.Options{})
	path := "/v1/reservations/" + w.reserve(t, "alice") + "/run"
	w.fake.fails = site.ErrKeyTaken("step-1")
	wantProblem(t, w.do("alice", "POST", path, `{"key":"step-1","command":["true"],"dir":"/"}`), 422,
		`key: "step-1" was used for another task in this reservation; use a new key`)
}

func TestTasksTellHowTheyEnded(t *testing.T) {
	w := newWorld(t, api.Options{})
	id := w.reserve(t, "alice")
	path := "/v1/reservations/" + id + "/tasks"
	report := func(job site.Job, stage site.Stage) service.Task {
		return service.Task{Site: "cm5", Report: site.Report{Job: job, Stage: stage}}
	}
	w.fake.reported = service.Tasks{List: []service.Task{
		report(site.Job{ID: "1", Key: "k", Submitted: start, Start: start, End: start + 5, Output: "/home/alice/out", Result: site.Result{Ending: site.Completed}}, site.Ended),
		report(site.Job{ID: "2", Reason: "open x: permission denied", Result: site.Result{Ending: site.Failed, Code: 126}}, site.Ended),
		report(site.Job{ID: "3", Result: site.Result{Ending: site.TimedOut, Signal: 9}}, site.Ended),
		report(site.Job{ID: "4", Result: site.Result{Ending: site.Cancelled}}, site.Ended),
		report(site.Job{ID: "5", Start: start, End: start + 60}, site.Running),
		report(site.Job{ID: "6_1", Array: "6"}, site.Waiting),
	}, Untold: []string{"cm6"}}
	got := w.do("alice", "GET", path, "")
	want := `{"tasks":[` +
		`{"job":"1","key":"k","site":"cm5","state":"completed","exit_code":0,"output":"/home/alice/out","submitted":"2026-11-21T12:00:00Z","start":"2026-11-21T12:00:00Z","end":"2026-11-21T12:00:05Z"},` +
		`{"job":"2","site":"cm5","state":"failed","exit_code":126,"reason":"open x: permission denied"},` +
		`{"job":"3","site":"cm5","state":"timeout","signal":9},` +
		`{"job":"4","site":"cm5","state":"cancelled"},` +
		`{"job":"5","site":"cm5","state":"running","start":"2026-11-21T12:00:00Z"},` +
		`{"job":"6_1","array":"6","site":"cm5","state":"waiting"}],"untold":["cm6"]}` + "\n"
	if diff := cmp.Diff(want, got.text); diff != "" || got.Code != 200 {
		t.Error(got.Code, diff)
	}
	var exits []int
	for _, task := range into[form.Tasks](t, got, 200).Tasks {
		if task.Over() {
			exits = append(exits, task.ExitStatus())
		}
	}
	if diff := cmp.Diff([]int{0, 126, 137, 1}, exits); diff != "" {
		t.Errorf("exit statuses: %s", diff)
	}
	var jobs []string
	for cursor := ""; ; {
		page := into[form.Tasks](t, w.do("alice", "GET", path+"?limit=4&cursor="+cursor, ""), 200)
		for _, task := range page.Tasks {
			jobs = append(jobs, task.Job)
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"1", "2", "3", "4", "5", "6_1"}, jobs); diff != "" {
		t.Errorf("page by page: %s", diff)
	}
	wantProblem(t, w.do("alice", "GET", path+"?cursor=eA", ""), 422, "cursor: the site no longer remembers")
	wantProblem(t, w.do("alice", "GET", path+"?limit=0", ""), 422, "limit: ")
}

// A request that has no deadline is shown without one, as tasks of a workflow without a deadline
// are, also when it was extended.
func TestNoDeadlineIsShownAsNone(t *testing.T) {
	w := newWorld(t, api.Options{})
	w.reserve(t, "alice")
	w.fake.made[0].Request.Deadline, w.fake.made[0].Extended = berth.TimeLimit-1, 60
	if a := w.do("alice", "GET", "/v1/reservations/"+w.fake.made[0].ID, ""); strings.Contains(a.text, "deadline") || strings.Contains(a.text, "9999") || a.Code != 200 {
		t.Errorf("%d %s", a.Code, a.text)
	}
}
