package workload_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workload"
)

func readJSONL(t *testing.T, text string, opt workload.Options) *workload.Workload {
	t.Helper()
	w, err := workload.ReadJSONL(strings.NewReader(text), "r.jsonl", opt)
	if err != nil {
		t.Fatalf("unexpected error: %v\nin %.300s", err, text)
	}
	return w
}

// request is the line of a request of id a with some members changed; an empty
// value leaves the member out.
func request(changes ...string) string {
	members := []string{"id", `"a"`, "arrival", "0", "ready", "10", "deadline", "100", "duration", "60", "npe", "8"}
	for i := 0; i < len(changes); i += 2 {
		replaced := false
		for j := 0; j < len(members); j += 2 {
			if members[j] == changes[i] {
				members[j+1], replaced = changes[i+1], true
			}
		}
		if !replaced {
			members = append(members, changes[i], changes[i+1])
		}
	}
	var parts []string
	for j := 0; j < len(members); j += 2 {
		if members[j+1] != "" {
			parts = append(parts, strconv.Quote(members[j])+":"+members[j+1])
		}
	}
	return "{" + strings.Join(parts, ",") + "}\n"
}

func TestReadJSONL(t *testing.T) {
	plain := berth.Rigid("a", 0, 10, 100, 8, 60)
	moldable := berth.Request{ID: "a", Ready: 10, Deadline: 100, Parts: []berth.Part{{Variants: []berth.Variant{{NPE: 8, Duration: 60}, {NPE: 16, Duration: 33}}}}}
	owned := berth.Rigid("a", 0, 10, 100, 8, 60)
	owned.User = "ann"
	both := berth.Rigid("a", 0, 10, 100, 8, 60)
	both.Parts = append(both.Parts, berth.Part{Variants: []berth.Variant{{NPE: 4, Duration: 30}}})
	for name, c := range map[string]struct {
		text string
		want []berth.Request
	}{
		"plain":               {request(), []berth.Request{plain}},
		"kind request":        {request("kind", `"request"`), []berth.Request{plain}},
		"user":                {request("user", `"ann"`), []berth.Request{owned}},
		"escapes":             {request("id", `"\u0061"`), []berth.Request{plain}},
		"escaped name":        {strings.Replace(request(), `"npe"`, `"n\u0070e"`, 1), []berth.Request{plain}},
		"braces in strings":   {request("workflow", `"}],{\"\\"`, "task", `"[{"`), []berth.Request{plain}},
		"blanks":              {strings.NewReplacer(":", " : ", ",", "\t,\r ", "{", " { ", "}", " } ").Replace(request()), []berth.Request{plain}},
		"carriage returns":    {"\r\n" + strings.ReplaceAll(request(), "\n", "\r\n"), []berth.Request{plain}},
		"no end of last line": {strings.TrimSpace(request()), []berth.Request{plain}},
		"byte order mark":     {"\xef\xbb\xbf" + request(), []berth.Request{plain}},
		"null is absent":      {request("user", "null", "start", "null", "variants", "null", "part", "null"), []berth.Request{plain}},
		"variants":            {request("npe", "", "duration", "", "variants", `[{"npe":8,"duration":60},{"duration":33,"npe":16}]`), []berth.Request{moldable}},
		"variants decide":     {request("npe", "16", "duration", "33", "variants", `[ {"npe":8,"duration":60} , {"duration":33,"npe":16} ]`), []berth.Request{moldable}},
		"variants of none":    {request("variants", "[]"), []berth.Request{plain}},
		"refused before":      {request("accepted", "false", "reason", `"no_capacity"`, "site", `"cm5"`), []berth.Request{plain}},
		"accepted before":     {request("accepted", "true", "start", "20", "end", "80", "pes", `"0-7"`, "promised_start", "20", "actual_end", "70", "pool", `"p"`), []berth.Request{plain}},
		"part 1 alone":        {request("part", "1"), []berth.Request{plain}},
		"part 0":              {request("part", "0"), []berth.Request{plain}},
		"two parts":           {request("part", "1") + request("part", "2", "npe", "4", "duration", "30"), []berth.Request{both}},
		"parts out of order":  {request("part", "2", "npe", "4", "duration", "30") + request("id", `"b"`) + request("part", "1"), []berth.Request{both, berth.Rigid("b", 0, 10, 100, 8, 60)}},
		"stable by arrival": {
			request("id", `"c"`, "arrival", "5") + request() + request("id", `"b"`, "arrival", "5") + request("id", `"d"`),
			[]berth.Request{plain, berth.Rigid("d", 0, 10, 100, 8, 60), berth.Rigid("c", 5, 10, 100, 8, 60), berth.Rigid("b", 5, 10, 100, 8, 60)},
		},
		"negative times": {request("arrival", "-100", "ready", "-90", "deadline", "-30"), []berth.Request{berth.Rigid("a", -100, -90, -30, 8, 60)}},
		"any size":       {request("npe", "1048576"), []berth.Request{berth.Rigid("a", 0, 10, 100, 1<<20, 60)}},
	} {
		t.Run(name, func(t *testing.T) {
			// The machine's size is no matter for requests.
			w := readJSONL(t, c.text, workload.Options{Strict: true, PEs: 4})
			if diff := cmp.Diff(c.want, w.Requests); diff != "" {
				t.Error(diff)
			}
			if w.Form != workload.JSONL || w.Records != nil {
				t.Errorf("form %q with %d records", w.Form, len(w.Records))
			}
			if lines := len(strings.Fields(strings.ReplaceAll(c.text, "}", "} "))); w.Report.Usable > lines || w.Report.Bad != 0 {
				t.Errorf("report: %s", w.Report.String())
			}
		})
	}
}

func TestReadJSONLSkipsOtherKinds(t *testing.T) {
	w := readJSONL(t, request()+
		`{"id":"b","kind":"booking","npe":4,"start":0,"end":10,"pes":"0-3"}`+"\n"+
		`{"id":"o","kind":"outage","npe":4,"start":0,"end":10}`+"\n"+
		`{"kind":"staging"}`+"\n", workload.Options{Strict: true})
	want := workload.Report{Name: "r.jsonl", Records: 4, Usable: 1, Skipped: map[workload.Cause]int{workload.NotARequest: 3}}
	if diff := cmp.Diff(want, w.Report); diff != "" {
		t.Error(diff)
	}
}

// The parts of an array are requests of their own; none may have an id that is
// taken.
func TestReadJSONLArrays(t *testing.T) {
	w := readJSONL(t, request("id", `"a_2"`)+request("id", `"sweep"`, "array", "3", "software", `"solver"`)+request("array", "3"), workload.Options{})
	var ids []string
	for i := range w.Requests {
		ids = append(ids, w.Requests[i].ID+w.Requests[i].Software)
	}
	if diff := cmp.Diff([]string{"a_2", "sweep_1solver", "sweep_2solver", "sweep_3solver"}, ids); diff != "" {
		t.Error(diff)
	}
	if w.Report.Bad != 1 || w.Report.Usable != 2 {
		t.Errorf("report: %s", w.Report.String())
	}
}

// A short file does not stand for more than fits.
func TestReadJSONLBoundsAllArraysTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("works in one goroutine: the race detector has nothing to see")
	}
	var file strings.Builder
	for i := range 12 {
		file.WriteString(request("id", fmt.Sprintf(`"s%d"`, i), "array", "100000"))
	}
	w := readJSONL(t, file.String(), workload.Options{})
	if len(w.Requests) != 1_000_000 || w.Report.Bad != 2 {
		t.Fatalf("%d requests, report: %s", len(w.Requests), w.Report.String())
	}
	if bad := w.Report.FirstBad[0]; bad.Line != 11 || bad.Field != "array" || !strings.Contains(bad.Want, "with 1000000 parts of arrays before it") {
		t.Errorf("%+v", bad)
	}
}

func TestReadJSONLCountsDroppedPrecedence(t *testing.T) {
	w := readJSONL(t, request("after", "[]")+request("id", `"b"`, "after", `["a"]`), workload.Options{Strict: true})
	if w.Report.PrecedenceDropped != 1 || len(w.Requests) != 2 {
		t.Errorf("%d requests, report: %s", len(w.Requests), w.Report.String())
	}
}

func TestReadJSONLBadLines(t *testing.T) {
	cases := map[string]struct {
		line         string
		field, value string
		want         string
	}{
		"no JSON":               {"{id:1}\n", "", "{id:1}", "not valid JSON"},
		"two objects":           {strings.TrimSpace(request()) + request(), "", "", "not valid JSON"},
		"array":                 {"[1,2]\n", "", "[1,2]", "not a JSON object"},
		"number":                {"17\n", "", "17", "not a JSON object"},
		"cut":                   {`{"id":"x","arri` + "\n", "", `{"id":"x","arri`, "not valid JSON"},
		"deep":                  {`{"id":` + strings.Repeat("[", 100_000) + "\n", "", "", "not valid JSON"},
		"long":                  {request("id", `"`+strings.Repeat("x", 2<<20)+`"`), "", "", "longer than"},
		"not UTF-8":             {request("id", "\"\xff\""), "", "", "UTF-8"},
		"array of none":         {request("array", "0"), "array", "0", "want 1 to 100000 parts"},
		"array too long":        {request("array", "100001"), "array", "100001", "want 1 to 100000 parts"},
		"array without digits":  {request("array", `"4"`), "array", `"4"`, "not a number"},
		"version of letters":    {request("software", `"a"`, "version", `"latest"`), "version", "", `"latest"; want a version such as 2.12`},
		"version as range":      {request("software", `"a"`, "version", `"2.x"`), "version", "", `"2.x"; want a version`},
		"version as number":     {request("software", `"a"`, "version", "2.10"), "version", "2.10", "not a string"},
		"version of nothing":    {request("version", `"2.1"`), "version", "", "name the software too"},
		"licences of nothing":   {request("licences", "2"), "licences", "", "name the software too"},
		"negative licences":     {request("software", `"a"`, "licences", "-1"), "licences", "-1", "want 0 to 1073741824"},
		"too many licences":     {request("software", `"a"`, "licences", "1073741825"), "licences", "1073741825", "want 0 to 1073741824"},
		"too many accelerators": {request("accelerators", "1048577"), "accelerators", "1048577", "want 0 to 1048576"},
		"negative data":         {request("storage_mb", "-1"), "storage_mb", "", "want 0 or more"},
		"array of a part":       {request("array", "2", "part", "1"), "array", "2", "of a part"},
		"unknown field":         {request("deadlin", "5"), "deadlin", "", "no such field"},
		"capital letter":        {request("NPE", "5"), "NPE", "", "no such field"},
		"field twice":           {`{"npe":4,` + request()[1:], "npe", "8", "twice"},
		"id a number":           {request("id", "17"), "id", "17", "not a string"},
		"text for a number":     {request("npe", `"8"`), "npe", `"8"`, "not a number"},
		"fraction":              {request("duration", "60.5"), "duration", "60.5", "not an integer"},
		"point":                 {request("duration", "60.0"), "duration", "60.0", "not an integer"},
		"exponent":              {request("duration", "6e1"), "duration", "6e1", "not an integer"},
		"true for a number":     {request("arrival", "true"), "arrival", "true", "not a number"},
		"huge":                  {request("arrival", "99999999999999999999999"), "arrival", "99999999999999999999999", "beyond"},
		"2^53":                  {request("arrival", "9007199254740992"), "arrival", "9007199254740992", "beyond"},
		"arrival at the limit":  {request("arrival", "-4398046511104"), "arrival", "", "beyond"},
		"deadline at the limit": {request("deadline", "4398046511104"), "deadline", "", "beyond"},
		"duration at the limit": {request("duration", "4398046511104"), "duration", "", "beyond"},
		"npe above any pool":    {request("npe", "1048577"), "npe", "1048577", "limit of 1048576"},
		"npe beyond 32 bits":    {request("npe", "4294967297"), "npe", "4294967297", "limit"},
		"npe 0":                 {request("npe", "0"), "npe", "0", "at least 1"},
		"duration 0":            {request("duration", "0"), "duration", "", "at least 1 s"},
		"ready before arrival":  {request("arrival", "11"), "ready", "", "before the arrival"},
		"deadline too early":    {request("deadline", "10"), "deadline", "", "not after the ready time 10"},
		"id empty":              {request("id", `""`), "id", "", "missing"},
		"id with a tab":         {request("id", `"a\tb"`), "id", "a\tb", "control"},
		"user with a newline":   {request("user", `"a\nb"`), "user", "a\nb", "control"},
		"unknown kind":          {request("kind", `"reqest"`), "kind", `"reqest"`, "unknown"},
		"accepted a number":     {request("accepted", "1"), "accepted", "1", "true or false"},
		"pes a list":            {request("pes", "[0,1]"), "pes", "[0,1]", "not a string"},
		"start text":            {request("start", `"now"`), "start", `"now"`, "not a number"},
		"after no list":         {request("after", `"b"`), "after", `"b"`, "not a list"},
		"after of numbers":      {request("after", `["b",2]`), "after", "2", "not a string"},
		"variants no list":      {request("variants", `{"npe":1}`), "variants", `{"npe":1}`, "not a list"},
		"variants of numbers":   {request("variants", `[8]`), "variants", "8", "want objects"},
		"variant incomplete":    {request("variants", `[{"npe":8}]`), "variants", `{"npe":8}`, "needs npe and duration"},
		"variant of nothing":    {request("variants", `[{}]`), "variants", "{}", "needs npe and duration"},
		"variant with more":     {request("variants", `[{"npe":8,"duration":60,"id":"x"}]`), "variants", `"id"`, "no such field"},
		"variant with unknown":  {request("variants", `[{"npe":8,"duration":60,"x":1}]`), "variants", `"x"`, "no such field"},
		"variant twice":         {request("variants", `[{"npe":8,"duration":60,"npe":9}]`), "variants", `"npe"`, "twice"},
		"variant npe 0":         {request("variants", `[{"npe":0,"duration":60}]`), "npe", "0", "at least 1"},
		"variant npe huge":      {request("variants", `[{"npe":4294967304,"duration":60}]`), "npe", "4294967304", "limit"},
		"variant null":          {request("variants", `[{"npe":8,"duration":null}]`), "duration", "null", "not a number"},
		"part below 1":          {request("part", "-1"), "part", "-1", "count from 1"},
		"part huge":             {request("part", "1048577"), "part", "1048577", "count from 1"},
		"part of nothing":       {request("part", "2"), "part", "2", `part 1 of "a" is missing`},
		"id taken":              {request("id", `"first"`), "id", "first", "line 1 has it already"},
		"id taken by part":      {request("id", `"first"`, "part", "2"), "id", "first", "line 1 has it already"},
	}
	for _, name := range []string{"id", "arrival", "ready", "deadline", "duration", "npe"} {
		cases["no "+name] = struct{ line, field, value, want string }{request(name, ""), name, "", "missing; a request needs"}
		cases["null "+name] = struct{ line, field, value, want string }{request(name, "null"), name, "", "missing; a request needs"}
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			text := request("id", `"first"`) + "\n" + c.line + request("id", `"last"`)
			w := readJSONL(t, text, workload.Options{})
			if w.Report.Records != 3 || w.Report.Usable != 2 || w.Report.Bad != 1 || len(w.Requests) != 2 {
				t.Fatalf("%d requests, report: %s", len(w.Requests), w.Report.String())
			}
			bad := w.Report.FirstBad[0]
			if bad.Line != 3 || bad.Field != c.field || !strings.Contains(bad.Want, c.want) || c.value != "" && bad.Value != c.value {
				t.Errorf("bad line %+v, want line 3, field %q, value %q, %q", bad, c.field, c.value, c.want)
			}
			_, err := workload.ReadJSONL(strings.NewReader(text), "dir/r.jsonl", workload.Options{Strict: true})
			wantMistake(t, err, c.field, "dir/r.jsonl:3: ", c.want)
		})
	}
}

// A request without one of its parts would be another request: it goes whole.
func TestReadJSONLDropsIncompleteRequests(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		bad  int
		want string
	}{
		"hole":              {request("part", "1") + request("part", "3"), 2, `part 2 of "a" is missing`},
		"bad last part":     {request("part", "1") + request("part", "2", "npe", "0"), 2, "line 2, another part"},
		"bad first part":    {request("part", "1", "npe", "0") + request("part", "2"), 2, "line 1, another part"},
		"bad before its id": {`{"npe":"x","part":2,"id":"a"}` + "\n" + request("part", "1"), 2, "line 1, another part"},
		"part twice":        {request("part", "1") + request("part", "1"), 2, "line 2, another part"},
		"other window":      {request("part", "1") + request("part", "2", "deadline", "101"), 2, "line 2, another part"},
		"other ready":       {request("part", "1") + request("part", "2", "ready", "11"), 2, "line 2, another part"},
		"other arrival":     {request("part", "1") + request("part", "2", "arrival", "1"), 2, "line 2, another part"},
		"other user":        {request("part", "1") + request("part", "2", "user", `"u"`), 2, "line 2, another part"},
		"no number":         {request("part", "1") + request("part", "2") + request(), 1, "only the parts of one request share an id"},
	} {
		t.Run(name, func(t *testing.T) {
			w := readJSONL(t, c.text+request("id", `"other"`), workload.Options{})
			if w.Report.Bad != c.bad || w.Report.Usable != w.Report.Records-c.bad {
				t.Errorf("report: %s", w.Report.String())
			}
			found := false
			for _, b := range w.Report.FirstBad {
				found = found || strings.Contains(b.Want, c.want)
			}
			if !found {
				t.Errorf("no bad line says %q: %+v", c.want, w.Report.FirstBad)
			}
			if last := w.Requests[len(w.Requests)-1]; last.ID != "other" || c.bad == 2 && len(w.Requests) != 1 {
				t.Errorf("requests %+v", w.Requests)
			}
			_, err := workload.ReadJSONL(strings.NewReader(c.text), "r.jsonl", workload.Options{Strict: true})
			if err == nil {
				t.Error("no error in strict mode")
			}
		})
	}
}

func TestReadJSONLJobsCutAfterSorting(t *testing.T) {
	text := request("id", `"c"`, "arrival", "5") + request("part", "1") + request("id", `"b"`, "arrival", "3") + request("part", "2")
	w := readJSONL(t, text, workload.Options{Jobs: 2})
	if len(w.Requests) != 2 || w.Requests[0].ID != "a" || len(w.Requests[0].Parts) != 2 || w.Requests[1].ID != "b" {
		t.Errorf("requests %+v", w.Requests)
	}
	if w.Report.Records != 4 || w.Report.Usable != 4 {
		t.Errorf("report: %s", w.Report.String())
	}
}
