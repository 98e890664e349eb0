package workload_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/calendar"
	"github.com/berth-hpc/berth/workload"
)

func readBookings(t *testing.T, name, text string, opt workload.Options) *workload.BookingFile {
	t.Helper()
	f, err := workload.ReadBookings(strings.NewReader(text), name, opt)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// Only what holds PEs is a booking, whatever kind of line it stands on.
func TestBookingsOfASchedule(t *testing.T) {
	const file = `{"id":"b","kind":"booking","npe":3,"start":20,"end":50,"pes":"1-2,7","site":"north","pool":"cpu"}
{"id":"yes","kind":"request","arrival":-4,"ready":0,"deadline":90,"duration":9,"npe":1,"accepted":true,"start":3,"end":12}
{"id":"no","kind":"request","arrival":0,"ready":0,"deadline":9,"duration":9,"npe":1,"accepted":false,"reason":"no_capacity"}
{"id":"open","arrival":0,"ready":0,"deadline":9,"duration":9,"npe":1}

{"id":"ran","kind":"job","arrival":0,"npe":1,"start":3,"end":5}
{"id":"waits","kind":"job","arrival":0,"npe":1}
{"kind":"outage","pes":"0-3","start":-5,"end":1}
{"kind":"outage","npe":2,"start":-5,"end":2}
{"id":"copy","kind":"staging","npe":1,"start":3,"end":5}
{"id":"twin","kind":"request","part":1,"arrival":0,"npe":1,"accepted":true,"start":60,"end":70}
{"id":"twin","kind":"request","part":2,"arrival":0,"npe":2,"accepted":true,"start":60,"end":70}
`
	want := []workload.Booking{
		{NPE: 4, PEs: berth.NewPESet(berth.Run{Lo: 0, Hi: 4}), Start: -5, End: 1},
		{NPE: 2, Start: -5, End: 2},
		{ID: "yes", NPE: 1, Start: 3, End: 12},
		{ID: "ran", NPE: 1, Start: 3, End: 5},
		{ID: "b", Site: "north", Pool: "cpu", NPE: 3, PEs: berth.PEsOf(1, 2, 7), Start: 20, End: 50},
		{ID: "twin", NPE: 1, Start: 60, End: 70},
		{ID: "twin", NPE: 2, Start: 60, End: 70},
	}
	for _, name := range []string{"s.jsonl", "schedule"} {
		f := readBookings(t, name, file, workload.Options{PEs: 4})
		if diff := cmp.Diff(want, f.Bookings); diff != "" {
			t.Error(diff)
		}
		if f.Form != workload.JSONL || f.Begin != -5 || f.Report.Records != 11 || f.Report.Usable != 7 || f.Report.Skipped[workload.NotABooking] != 4 {
			t.Errorf("%+v", f)
		}
	}
}

func TestBookingsOfALog(t *testing.T) {
	// Submitted at 10, waits 5; no wait recorded; no run time; the third and the
	// fourth usable one do not fit on 8 PEs beside the first two.
	text := "; MaxProcs: 8\n" +
		"1 10 5 20 4 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n" +
		"2 12 -1 30 3 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n" +
		"3 13 0 0 1 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n" +
		"4 14 6 9 2 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n" +
		"5 14 21 9 2 -1 -1 -1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n"
	want := []workload.Booking{
		{ID: "2", NPE: 3, Start: 12, End: 42},
		{ID: "1", NPE: 4, Start: 15, End: 35},
		{ID: "4", NPE: 2, Start: 20, End: 29},
		{ID: "5", NPE: 2, Start: 35, End: 44},
	}
	f := readBookings(t, "l.swf", text, workload.Options{PEs: 9})
	if diff := cmp.Diff(want, f.Bookings); diff != "" {
		t.Error(diff)
	}
	if f.Form != workload.SWF || f.Begin != 10 || f.NoWait != 1 || f.PEs() != 8 || f.Report.Skipped[workload.NoRunTime] != 1 {
		t.Errorf("%+v", f)
	}
	f = readBookings(t, "l", text, workload.Options{}) // the header's 8 PEs
	if diff := cmp.Diff(slices.Delete(want, 2, 3), f.Bookings); diff != "" {
		t.Error(diff)
	}
	if f.Report.Usable != 3 || f.Report.Skipped[workload.Overbooked] != 1 {
		t.Error(f.Report.String())
	}
}

// A file may be compressed, and its name decides before its content does.
func TestOpenBookings(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	if _, err := zip.Write([]byte(`{"id":"a","kind":"booking","npe":1,"start":0,"end":1}`)); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a.jsonl.gz": zipped.String(),
		"b.lwf":      "0 10 5 5 2 1 1024 0 image 600\n",
		"c.swf":      job(1, 0, 60, 8),
		"d.LWF":      leasesXML,
	} {
		f, err := workload.OpenBookings(write(name, text), workload.Options{})
		if err != nil || len(f.Bookings) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := workload.OpenBookings(filepath.Join(dir, "none.swf"), workload.Options{})
	wantMistake(t, err, "bookings", "no such file")
	_, err = workload.OpenBookings(dir, workload.Options{})
	wantMistake(t, err, "bookings", "a directory")
	_, err = workload.OpenBookings(write("cut.jsonl.gz", zipped.String()[:30]), workload.Options{})
	wantMistake(t, err, "bookings", "cut.jsonl.gz:1", "truncated")
	for _, name := range []string{"e.jsonl", "e.lwf", "e.swf", "e"} {
		for _, text := range []string{"", "\n \n"} {
			empty, err := workload.OpenBookings(write(name, text), workload.Options{})
			if err != nil || len(empty.Bookings) > 0 {
				t.Error(name, empty, err)
			}
		}
	}
	_, err = workload.OpenBookings(write("e.swf", "; MaxProcs: 4\n"), workload.Options{})
	wantMistake(t, err, "bookings", "no record")
	_, err = workload.OpenBookings(write("n.jsonl", `{"id":"a","kind":"job","npe":1}`), workload.Options{})
	wantMistake(t, err, "bookings", "none of 1 lines is a booking")
}

// A booking that cannot be read is an error, for its PEs are taken.
func TestBadBookingLines(t *testing.T) {
	good := `{"id":"a","kind":"booking","npe":1,"start":0,"end":1}` + "\n"
	for line, want := range map[string]struct{ field, words string }{
		`{"id":"b","kind":"booking","npe":0,"start":0,"end":1}`:                   {"npe", "at least 1"},
		`{"id":"b","kind":"booking","npe":17,"start":0,"end":1}`:                  {"npe", "machine of 16"},
		`{"id":"b","kind":"booking","npe":2,"pes":"0-3","start":0,"end":1}`:       {"npe", "pes names 4"},
		`{"id":"b","kind":"booking","npe":2,"pes":"3-0","start":0,"end":1}`:       {"pes", "3-0"},
		`{"id":"b","kind":"booking","npe":2,"start":1,"end":1}`:                   {"end", "not after the start 1"},
		`{"id":"b","kind":"booking","npe":2,"start":0,"end":4398046511104}`:       {"end", "2^42"},
		`{"id":"b","kind":"booking","npe":2,"start":-4398046511104,"end":1}`:      {"start", "2^42"},
		`{"id":"b","kind":"booking","npe":2,"end":1}`:                             {"start", "missing"},
		`{"kind":"booking","npe":2,"start":0,"end":1}`:                            {"id", "missing"},
		`{"id":"","kind":"booking","npe":2,"start":0,"end":1}`:                    {"id", "empty"},
		`{"id":"\u0007","kind":"booking","npe":2,"start":0,"end":1}`:              {"id", "control"},
		`{"id":"b","kind":"boking","npe":2,"start":0,"end":1}`:                    {"kind", "boking"},
		`{"id":"b","kind":"booking","npe":2,"start":0.5,"end":1}`:                 {"start", "not an integer"},
		`{"id":"b","kind":"booking","npe":2,"start":0,"end":1,"ned":3}`:           {"ned", "no such field"},
		`{"id":"b","kind":"booking","npe":2,"npe":2,"start":0,"end":1}`:           {"npe", "twice"},
		`{"id":"a","kind":"booking","npe":2,"start":0,"end":1}`:                   {"id", "line 1 has it already"},
		`{"id":"b","kind":"request","accepted":true,"npe":2,"arrival":0,"end":1}`: {"start", "missing"},
		`{"id":"b","kind":"booking","npe":2,"start":0,"end":1`:                    {"", "not valid JSON"},
		`[1]`:                                 {"", "not a JSON object"},
		"{\"id\":\"\xff\"}":                   {"", "not UTF-8"},
		`{"kind":"outage","npe":1,"start":4}`: {"end", "missing"},
	} {
		_, err := workload.ReadBookings(strings.NewReader(good+line), "b.jsonl", workload.Options{PEs: 16, Strict: true})
		wantMistake(t, err, want.field, "b.jsonl:2", want.words)
	}
}

func TestWriteBookings(t *testing.T) {
	bookings := []workload.Booking{
		{ID: "1", NPE: 2, Start: -3, End: 0},
		{ID: "<1>.1", Site: "s", Pool: "p", NPE: 2, PEs: berth.PEsOf(1, 3), Start: 0, End: 4},
	}
	var file strings.Builder
	if err := workload.WriteBookings(&file, bookings); err != nil {
		t.Fatal(err)
	}
	const want = `{"id":"1","kind":"booking","npe":2,"start":-3,"end":0}
{"id":"<1>.1","kind":"booking","site":"s","pool":"p","npe":2,"start":0,"end":4,"pes":"1,3"}
`
	if diff := cmp.Diff(want, file.String()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(bookings, readBookings(t, "b.jsonl", want, workload.Options{}).Bookings); diff != "" {
		t.Error(diff)
	}
	for field, b := range map[string]workload.Booking{
		"id":    {NPE: 1, End: 1},
		"npe":   {ID: "a", End: 1},
		"end":   {ID: "a", NPE: 1},
		"start": {ID: "a", NPE: 1, Start: berth.Forever, End: berth.Forever},
	} {
		wantMistake(t, workload.WriteBookings(&file, []workload.Booking{b}), field)
	}
	wantMistake(t, workload.WriteBookings(&file, []workload.Booking{{ID: "a", NPE: 3, PEs: berth.PEsOf(1), End: 1}}), "npe", "pes names 1")
	if err := workload.WriteBookings(failing{}, bookings); err == nil || !strings.HasPrefix(err.Error(), "write bookings: ") {
		t.Error(err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

func drawBookings(t *rapid.T) []workload.Booking {
	n := rapid.IntRange(0, 12).Draw(t, "bookings")
	bookings := make([]workload.Booking, n)
	for i := range bookings {
		start := berth.Time(rapid.IntRange(-20, 40).Draw(t, "start"))
		bookings[i] = workload.Booking{
			ID: fmt.Sprint(i), NPE: berth.Count(rapid.IntRange(1, 5).Draw(t, "npe")),
			Start: start, End: start + berth.Time(rapid.IntRange(1, 15).Draw(t, "length")),
		}
	}
	return bookings
}

// CheckFit says yes exactly if no second has too many PEs booked, and names a
// booking that does not fit.
func TestCheckFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bookings, pes := drawBookings(t), berth.Count(rapid.IntRange(1, 16).Draw(t, "pes"))
		most := berth.Count(0)
		for s := berth.Time(-20); s < 60; s++ {
			booked := berth.Count(0)
			for _, b := range bookings {
				if b.Start <= s && s < b.End {
					booked += b.NPE
				}
			}
			most = max(most, booked)
		}
		err := workload.CheckFit(bookings, pes)
		if (err == nil) != (most <= pes) {
			t.Fatalf("%d of %d PEs booked: %v", most, pes, err)
		}
	})
	err := workload.CheckFit([]workload.Booking{{ID: "late", NPE: 2, Start: 5, End: 9}, {ID: "early", NPE: 3, Start: 0, End: 6}}, 4)
	wantMistake(t, err, "npe", `booking "late" of 2 PEs makes 5 booked at 5; the machine has 4`)
}

// The average is what a calendar of the bookings has free, rounded to the
// nearest whole number, halves up.
func TestAverageFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const pes = 60 // as many as twelve bookings can take
		bookings := drawBookings(t)
		c := calendar.NewPlain(pes, berth.Late)
		for _, b := range bookings {
			if err := c.Add(calendar.Block{Start: b.Start, End: b.End, NPE: b.NPE}); err != nil {
				t.Fatal(err)
			}
		}
		from := berth.Time(rapid.IntRange(-30, 50).Draw(t, "from"))
		during := berth.Interval{Start: from, End: from + berth.Time(rapid.IntRange(1, 40).Draw(t, "length"))}
		q, length := int64(workload.AverageFree(bookings, pes, during)), int64(during.Length())
		free := pes*length - calendar.Booked(c, during)
		if off := 2 * (free - q*length); q < pes && off >= length || q > 1 && off < -length || q < 1 || q > pes {
			t.Fatalf("%d PEs free on average, want %d/%d", q, free, length)
		}
	})
	full := []workload.Booking{{ID: "a", NPE: 4, Start: 0, End: 10}, {ID: "b", NPE: 4, Start: 0, End: 10}}
	for _, c := range []struct {
		during berth.Interval
		want   berth.Count
	}{
		{berth.Interval{Start: 0, End: 10}, 1}, // at least one
		{berth.Interval{Start: 5, End: 5}, 6},
		{berth.Interval{Start: 5, End: 4}, 6},
		{berth.Interval{Start: 8, End: 20}, 5}, // (12·6 − 2·8)/12 = 4⅔
	} {
		if got := workload.AverageFree(full, 6, c.during); got != c.want {
			t.Errorf("%d of 6 free during %v, want %d", got, c.during, c.want)
		}
	}
}

func TestPast(t *testing.T) {
	const day = 86_400
	for _, c := range []struct{ begin, now, start berth.Time }{
		{0, 40 * day, 10 * day}, {20 * day, 40 * day, 20 * day}, {50 * day, 40 * day, 40 * day}, {-90 * day, 0, -30 * day},
	} {
		if got, want := workload.Past(c.begin, c.now), (berth.Interval{Start: c.start, End: c.now}); got != want {
			t.Errorf("past of %d from %d is %v, want %v", c.now, c.begin, got, want)
		}
	}
}

// Bad lines are counted and passed over in every form; in strict mode the first one is
// the error, and so it is where nothing else is in the file.
func TestBadBookingsArePassedOver(t *testing.T) {
	const xmlLease = `<lease-request arrival="00:00:00"><lease id="%s"><nodes><node-set numnodes="%s"/></nodes><start><exact time="01:00:00"/></start><duration time="01:00:00"/></lease></lease-request>`
	lease := func(id, nodes string) string { return fmt.Sprintf(xmlLease, id, nodes) }
	for name, c := range map[string]struct {
		good, bad, more, end string
		field                string
	}{
		"b.jsonl": {`{"id":"a","kind":"booking","npe":1,"start":0,"end":9}`, `{"id":"b","kind":"booking","npe":0,"start":0,"end":9}`, `{"id":"c","kind":"booking","npe":1,"start":0,"end":9}`, "", "npe"},
		"b.lwf":   {"0 10 5 5 2 1 1024 0 image 600", "0 10 0 5 2 1 1024 0 image 600", "0 10 5 5 2 1 1024 0 image 600", "", "duration"},
		"b.swf":   {strings.TrimSuffix(job(1, 0, 60, 8), "\n"), "2 x", strings.TrimSuffix(job(3, 0, 60, 8), "\n"), "", "submit time"},
		"b":       {"<lease-workload>" + lease("a", "1"), lease("b", "none"), lease("c", "1"), "</lease-workload>", "numnodes"},
	} {
		text := c.good + "\n" + c.bad + "\n" + c.more + c.end + "\n"
		f := readBookings(t, name, text, workload.Options{})
		if r := &f.Report; len(f.Bookings) != 2 || r.Records != 3 || r.Usable != 2 || r.Bad != 1 || r.FirstBad[0].Line != 2 || r.FirstBad[0].Field != c.field {
			t.Errorf("%s: %d bookings of %+v; want two, and line 2 bad in %s", name, len(f.Bookings), r, c.field)
		}
		_, err := workload.ReadBookings(strings.NewReader(text), name, workload.Options{Strict: true})
		wantMistake(t, err, c.field, name+":2: ")
	}
	_, err := workload.ReadBookings(strings.NewReader("{1}\n{}\n"), "b.jsonl", workload.Options{})
	wantMistake(t, err, "", "b.jsonl:1: ")
	// A job that ends beyond all times.
	end := "; MaxProcs: 8\n" + job(1, 0, 60, 8) + "2 4398046511103 -1 100 4 -1 -1 4 -1 -1 1 1 1 -1 -1 -1 -1 -1\n"
	if f := readBookings(t, "l.swf", end, workload.Options{}); len(f.Bookings) != 1 || f.Report.Bad != 1 || f.Report.Usable != 1 {
		t.Errorf("%+v, want one of two", f.Report)
	}
	_, err = workload.ReadBookings(strings.NewReader(end), "l.swf", workload.Options{Strict: true})
	wantMistake(t, err, "run time", "job 2 ends at")
}
