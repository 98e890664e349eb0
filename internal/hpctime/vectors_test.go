package hpctime_test

import (
	"encoding/json"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/hpctime"
)

// vectorsFile holds what is read as what, by this parser and by that of the pages, which
// reads it in web/ui/test/grammar.test.ts.
const vectorsFile = "../../web/ui/test/time-vectors.json"

var writeVectors = flag.Bool("hpctime.vectors", false, "write web/ui/test/time-vectors.json anew")

type vectors struct {
	Lengths []lengthVector `json:"lengths"`
	Times   []timeVector   `json:"times"`
}

type lengthVector struct {
	Text    string `json:"text"`
	Seconds *int64 `json:"seconds"` // null if it is refused
}

type timeVector struct {
	Text string  `json:"text"`
	Now  string  `json:"now"`
	Zone string  `json:"zone"`
	At   *string `json:"at"`
}

// The parser of the pages agrees with this one about every text of a shared file; what is
// read here besides would be refused there, or worse.
func TestVectorsOfThePages(t *testing.T) {
	lengths := []string{
		"2h30m", "90s", "1d12h", "1d", "0s", "45m", "9999h", "02:30:00", "00:00:01", "100:00:00", "1-02:30:00", "1-12", "1-12:30", "0-00:01", "PT2H30M", "P1DT12H", "P2W", "PT45S", "P3D",
		"", "90", "h", "2x", "30m2h", "1h1h", "-1h", "1.5h", "02:60:00", "02:30:60", "1-24:00:00", "1-123", "12:30", "1-", "-", ":", "1:2:3", "P", "PT", "P1M", "P1Y", "PT1H30", "1D2", "now", "4398046511104s", "99999999999999h",
	}
	moments := []struct{ now, zone string }{
		{"2026-11-23T23:30:10Z", "UTC"}, {"2026-11-23T23:30:10Z", "Europe/Berlin"}, {"2026-11-23T12:00:00Z", "Asia/Kathmandu"}, {"2026-03-28T12:00:00Z", "Europe/Berlin"}, {"2026-10-24T12:00:00Z", "Europe/Berlin"}, {"2026-10-31T12:00:00Z", "America/New_York"},
	}
	times := []string{
		"now", "now+2h30m", "now+1hour", "now+3days", "now-10m", "now+02:30:00", "now+PT1H", "18:00", "18:00:30", "9:05", "00:00", "noon", "midnight", "teatime", "today", "tomorrow", "today 18:00", "tomorrow noon", "tomorrow 08:15:30",
		"2026-11-21", "2026-11-21 18:00", "2026-11-21T18:00", "2026-11-21 18:00:30", "2026-11-21T18:00:00+01:00", "2026-11-21T18:00:00Z", "2026-11-21 18:00:00-05:00", "2026-03-29 02:30", "2026-03-29 03:00", "2026-10-25 02:30", "2026-10-25 03:00", "2026-11-01 01:30", "tomorrow 02:30",
		"2024-02-29", "1970-01-02", "9998-01-01", "", "18", "soon", "now+", "now+2", "now*2h", "25:00", "18:60", "18:00:60", "today 25:00", "yesterday", "2026-02-29", "2026-02-30 10:00", "2026-13-01", "11/21/2026", "2026-11-21T25:00:00Z", "1969-01-01", "9999-06-01", "18:5",
	}
	var want vectors
	for _, text := range lengths {
		v := lengthVector{Text: text}
		if d, err := hpctime.Parse(text); err == nil && d > 0 { // a reservation takes some time
			seconds := int64(d)
			v.Seconds = &seconds
		}
		want.Lengths = append(want.Lengths, v)
	}
	for _, m := range moments {
		now, err := time.Parse(time.RFC3339, m.now)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range times {
			v := timeVector{Text: text, Now: m.now, Zone: m.zone}
			if at, err := hpctime.ParseInstant(text, now.In(zone(t, m.zone))); err == nil {
				stamp := at.UTC().Format(time.RFC3339)
				v.At = &stamp
			}
			want.Times = append(want.Times, v)
		}
	}
	data, err := json.MarshalIndent(&want, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	data = append(data, '\n')
	if *writeVectors {
		if err := os.WriteFile(vectorsFile, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := os.ReadFile(vectorsFile); err != nil || string(is) != string(data) {
		t.Errorf("%s is not what this parser reads (%v); go test ./internal/hpctime -run Vectors -hpctime.vectors writes it anew", vectorsFile, err)
	}
}
