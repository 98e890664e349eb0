package workload_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/berth-hpc/berth/workload"
)

// Whatever the bytes, in every form: no panic, a mistake that names the file,
// or bookings that can be booked and read back equal.
func FuzzReadBookings(f *testing.F) {
	for _, seed := range []string{
		"", `{"id":"a","kind":"booking","npe":1,"start":0,"end":1}`, `{"kind":"outage","pes":"0-3,7","start":-4,"end":1}`,
		`{"id":"a","accepted":true,"part":2,"npe":1,"start":0,"end":1}` + "\n" + `{"id":"a","kind":"job"}`,
		"0 86400 1886 1886 22 1 1024 0 'NONE.img' 600\n# comment\n1 -1 60 60 1 1 0 0 x 0\n", leasesXML, leasesXML[:700],
		"<lease-workload>", "<!DOCTYPE x [<!ENTITY a \"b\">]><lease-workload>&a;</lease-workload>", "; MaxProcs: 8\n" + job(1, 0, 60, 8) + job(2, 5, 60, 8), "\x1f\x8b",
	} {
		for form := range byte(4) {
			f.Add(form, []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, form byte, data []byte) {
		name := []string{"b.jsonl", "b.lwf", "b.swf", "b"}[form%4]
		got, err := workload.ReadBookings(bytes.NewReader(data), name, workload.Options{})
		if err != nil {
			checkInvalid(t, err)
			if !strings.Contains(err.Error(), name) {
				t.Errorf("no file in %v", err)
			}
			return
		}
		checkReport(t, &got.Report)
		if got.Report.Usable != len(got.Bookings) {
			t.Errorf("%d usable, %d bookings", got.Report.Usable, len(got.Bookings))
		}
		ids := map[string]bool{}
		for i, b := range got.Bookings {
			if b.NPE < 1 || b.End <= b.Start || !b.Start.Valid() || !b.End.Valid() || i > 0 && b.Start < got.Bookings[i-1].Start {
				t.Fatalf("booking %+v", b)
			}
			if b.ID == "" || ids[b.ID] {
				return // an outage, or a part: these are not written
			}
			ids[b.ID] = true
		}
		var file bytes.Buffer
		if err := workload.WriteBookings(&file, got.Bookings); err != nil {
			t.Fatal(err)
		}
		if len(got.Bookings) == 0 {
			return // a log where nothing fits
		}
		again, err := workload.ReadBookings(&file, "b.jsonl", workload.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got.Bookings, again.Bookings, cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	})
}
