package workload_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workload"
)

// checkReport fails unless the counts of a report add up.
func checkReport(t *testing.T, r *workload.Report) {
	t.Helper()
	if r.Usable+r.SkippedTotal()+r.Bad != r.Records || min(r.Bad, workload.MaxFirstBad) != len(r.FirstBad) {
		t.Errorf("counts do not add up: %+v", r)
	}
	for _, b := range r.FirstBad {
		if b.Line < 1 || b.Want == "" {
			t.Errorf("bad line without place or reason: %+v", b)
		}
	}
	_ = r.String()
}

func checkInvalid(t *testing.T, err error) {
	t.Helper()
	var mistake *berth.Error
	if !errors.As(err, &mistake) || mistake.Code != berth.Invalid || mistake.Msg == "" {
		t.Errorf("error is %#v, want an Invalid one", err)
	}
}

// Whatever the bytes: no panic; counts that add up; records that obey the
// format and read back equal; strict mode fails exactly if there is a bad line.
func FuzzReadSWF(f *testing.F) {
	good := job(1, 0, 60, 8)
	for _, seed := range []string{
		"", "; MaxProcs: 8\n" + good, good + good, "; MaxProcs: 4 (2,2)\r\n" + job(3, 9, "1.5", -1) + job(2, "0.5", 60, 3),
		job(1, "-0.5", -1, 0), "1 2 3\n", "-1 " + good, "\x1f\x8b", "\xef\xbb\xbf" + good,
		"2 0 -1 30 8 0.25 -1 -1 -1 -1 3 -1 -1 -1 -1 -1 -1 -1\n1 0 -1 30 8 -1 -1 -1 -1 -1 2 -1 -1 -1 -1 -1 -1 -1\n",
		"1 4398046511103 1 1 1048576 123456789.123456789 9007199254740991 1 1 1 1 1 1 1 1 2147483647 1 1",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := workload.ReadSWF(bytes.NewReader(data), "log.swf", workload.Options{})
		_, strict := workload.ReadSWF(bytes.NewReader(data), "log.swf", workload.Options{Strict: true})
		if err != nil {
			checkInvalid(t, err)
			if strict == nil {
				t.Error("strict mode reads what the default does not")
			}
			return
		}
		checkReport(t, &w.Report)
		if (w.Report.Bad > 0) != (strict != nil) {
			t.Errorf("%d bad lines, strict mode says %v", w.Report.Bad, strict)
		}
		if strict != nil {
			checkInvalid(t, strict)
		}
		if w.Report.Usable != len(w.Records) {
			t.Errorf("%d usable, %d records", w.Report.Usable, len(w.Records))
		}
		seen := make(map[int64]bool)
		for i, r := range w.Records {
			if r.Run < 1 || r.Size() < 1 || r.Submit < 0 || seen[r.Job] || i > 0 && r.Submit < w.Records[i-1].Submit {
				t.Fatalf("record %+v", r)
			}
			if pes := w.PEs(); pes > 0 && r.Size() > pes {
				t.Fatalf("size %d on a machine of %d", r.Size(), pes)
			}
			seen[r.Job] = true
		}
		header := w.Header
		for _, line := range header {
			if strings.ContainsAny(line, "\r\n") {
				header = nil // a carriage return in the middle of a line
			}
		}
		var file bytes.Buffer
		if err := workload.WriteSWF(&file, header, w.Records); err != nil {
			t.Fatal(err)
		}
		again, err := workload.ReadSWF(&file, "log.swf", workload.Options{Strict: true})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(w.Records, again.Records); diff != "" {
			t.Fatal(diff)
		}
		if _, err := transformAll(again.Records); err != nil {
			t.Fatal(err)
		}
	})
}

func transformAll(records []workload.Record) ([]berth.Request, error) {
	transform := workload.NewTransform(1)
	transform.Estimates = true
	return transform.Requests(records, false, nil)
}

// As for logs; and what encoding/json makes of a line is the oracle.
func FuzzReadJSONL(f *testing.F) {
	for _, seed := range []string{
		"", request(), request() + request(), request("part", "1") + request("part", "2"), request("npe", "-0"),
		request("kind", `"job"`, "ready", "0", "deadline", "0") + request("id", `"b"`, "run", "7"),
		`{"id":"j","kind":"job","arrival":-3,"duration":9,"npe":2,"run":99}` + "\n" + request("kind", `"job"`, "ready", "0"),
		request("variants", `[{"npe":8,"duration":60},{"npe":1,"duration":1}]`), request("id", `"\u00e4\\\""`),
		request("accepted", "true", "start", "20", "end", "80", "pes", `"0-7"`, "after", `["x"]`),
		`{"id":"b","kind":"booking","npe":1,"start":0,"end":9}` + "\n" + request(), `{"id":` + "\n" + request("npe", "8.0"),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		w, err := workload.ReadJSONL(bytes.NewReader(data), "r.jsonl", workload.Options{})
		_, strict := workload.ReadJSONL(bytes.NewReader(data), "r.jsonl", workload.Options{Strict: true})
		if err != nil {
			checkInvalid(t, err)
			if strict == nil {
				t.Error("strict mode reads what the default does not")
			}
			return
		}
		checkReport(t, &w.Report)
		if (w.Report.Bad > 0) != (strict != nil) {
			t.Errorf("%d bad lines, strict mode says %v", w.Report.Bad, strict)
		}
		if strict != nil {
			checkInvalid(t, strict)
		}
		byID := make(map[string]berth.Request)
		for i, r := range w.Requests {
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
			if _, twice := byID[r.ID]; twice || i > 0 && r.Arrival < w.Requests[i-1].Arrival {
				t.Fatalf("request %+v", r)
			}
			byID[r.ID] = r
		}
		if w.Report.Bad == 0 && !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
			compareWithStandardDecoder(t, data, byID)
		}
		var file bytes.Buffer
		if err := workload.WriteJSONL(&file, w.Requests); err != nil {
			t.Fatal(err)
		}
		again, err := workload.ReadJSONL(&file, "r.jsonl", workload.Options{Strict: true})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(w.Requests, again.Requests); diff != "" {
			t.Fatal(diff)
		}
	})
}

// compareWithStandardDecoder checks the requests of a file without bad lines.
func compareWithStandardDecoder(t *testing.T, data []byte, byID map[string]berth.Request) {
	t.Helper()
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))) {
		line = bytes.Trim(line, " \t\r\n")
		if len(line) == 0 {
			continue
		}
		// The decision is not read, so its PE list need not be one.
		var want struct {
			berth.Line
			PEs string `json:"pes"`
		}
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatalf("the standard decoder fails: %v\nat %s", err, line)
		}
		job := want.Kind == berth.KindJob
		if want.Kind != "" && want.Kind != berth.KindRequest && !job {
			continue
		}
		if job && want.Deadline == 0 {
			want.Deadline = berth.Forever
		}
		variants := want.Variants
		if len(variants) == 0 {
			variants = []berth.Variant{{NPE: want.NPE, Duration: want.Duration}}
		}
		got := byID[want.ID]
		if job && got.Ready == got.Arrival {
			want.Ready = got.Ready // which may be left out
		}
		if got.IsJob() != job {
			t.Fatalf("read %+v of %s", got, line)
		}
		if got.User != want.User || got.Arrival != want.Arrival || got.Ready != want.Ready || got.Deadline != want.Deadline {
			t.Fatalf("read %+v of %s", got, line)
		}
		if diff := cmp.Diff(variants, got.Parts[max(want.Part, 1)-1].Variants); diff != "" {
			t.Fatalf("%s\nof %s", diff, line)
		}
	}
}
