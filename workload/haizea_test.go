package workload_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/workload"
)

// leasesXML holds a lease of each sort.
const leasesXML = `<?xml version="1.0"?>
<lease-workload name="all sorts">
  <description>made for this test</description>
  <site><nodes><node-set numnodes="64"><res type="CPU" amount="100"/></node-set></nodes></site>
  <lease-requests>
    <lease-request arrival="00:00:00.00">
      <realduration time="00:10:00"/>
      <lease id="7" preemptible="false">
        <nodes>
          <node-set numnodes="3"><res type="CPU" amount="250"/><res type="Memory" amount="1024"/></node-set>
          <node-set numnodes="2"><res type="CPU" amount="100"/></node-set>
          <node-set numnodes="1"/>
        </nodes>
        <start><exact time="01:00:00.50"/></start>
        <duration time="00:15:00.25"/>
        <software><none/></software>
      </lease>
    </lease-request>
    <lease-request arrival="00:00:09.9">
      <lease><nodes><node-set numnodes="1"/></nodes><start><now/></start><duration time="1:00:00:00"/></lease>
    </lease-request>
    <lease-request arrival="00:01:00">
      <lease id="best effort"><nodes><node-set numnodes="1"/></nodes><start/><duration time="01:00:00"/></lease>
    </lease-request>
    <lease-request arrival="00:01:00">
      <lease id="deadline"><nodes><node-set numnodes="1"/></nodes><start><exact time="00:30:00"/></start>
        <duration time="01:00:00"/><deadline time="02:00:00"/></lease>
    </lease-request>
    <lease-request arrival="00:01:00">
      <lease id="relative"><nodes><node-set numnodes="4"/></nodes><start><exact time="+00:30:00"/></start><duration time="00:00:01"/></lease>
    </lease-request>
  </lease-requests>
</lease-workload>
`

func TestLeasesInXML(t *testing.T) {
	want := []workload.Booking{
		{ID: "2", NPE: 1, Start: 9, End: 9 + 86_400},
		{ID: "relative", NPE: 4, Start: 60 + 1800, End: 60 + 1801},
		{ID: "7", NPE: 12, Start: 3600, End: 3600 + 900 + 2},
	}
	f := readBookings(t, "l.lwf", leasesXML, workload.Options{})
	if diff := cmp.Diff(want, f.Bookings); diff != "" {
		t.Error(diff)
	}
	if f.Form != workload.LWF || f.Begin != 0 || f.Report.Records != 5 || f.Report.Skipped[workload.NotABooking] != 2 {
		t.Errorf("%+v", f)
	}
}

func TestLeasesInColumns(t *testing.T) {
	const file = "# a comment\n5 86400 1886 900 22 2 1024 0 'NONE.img' 600\n\n9 -1 60 60 1 1 -1 -1 - -1\r\n2\t7  60 60 1 1 0 0 x 0\n"
	want := []workload.Booking{
		{ID: "3", NPE: 1, Start: 7, End: 67},
		{ID: "1", NPE: 44, Start: 86_400, End: 88_286},
	}
	f := readBookings(t, "l.lwf", file, workload.Options{PEs: 44})
	if diff := cmp.Diff(want, f.Bookings); diff != "" {
		t.Error(diff)
	}
	if f.Begin != 2 || f.Report.Records != 3 || f.Report.Usable != 2 || f.Report.Skipped[workload.NotABooking] != 1 {
		t.Errorf("%+v", f)
	}
}

func TestBadLeases(t *testing.T) {
	const good = "0 0 60 60 1 1 0 0 i 0\n"
	for line, want := range map[string]struct{ field, words string }{
		"0 0 60 60 1 1 0 0 i":                 {"columns", "10"},
		"0 0 60 60 1 1 0 0 i 0 0":             {"columns", "10"},
		"0 x 60 60 1 1 0 0 i 0":               {"start", "not a whole number"},
		"0 1.5 60 60 1 1 0 0 i 0":             {"start", "not a whole number"},
		"-1 0 60 60 1 1 0 0 i 0":              {"submit time", "negative"},
		"0 -2 60 60 1 1 0 0 i 0":              {"start", "negative"},
		"0 0 0 60 1 1 0 0 i 0":                {"duration", "at least 1"},
		"0 0 60 60 0 1 0 0 i 0":               {"nodes", "from 1"},
		"0 0 60 60 1 -1 0 0 i 0":              {"CPUs per node", "from 1"},
		"0 0 60 60 5 4 0 0 i 0":               {"nodes", "machine of 16"},
		"0 0 60 60 1048576 1048576 0 0 i 0":   {"nodes", "limit"},
		"0 4398046511104 60 60 1 1 0 0 i 0":   {"start", "2^42"},
		"0 4398046511103 60 60 1 1 0 0 i 0":   {"end", "2^42"},
		"0 0 60 60 1 1 0 0 i 999999999999999": {"image size", "2^42"},
	} {
		_, err := workload.ReadBookings(strings.NewReader(good+line), "l.lwf", workload.Options{PEs: 16, Strict: true})
		wantMistake(t, err, want.field, "l.lwf:2", want.words)
	}
}

func TestBadLeasesInXML(t *testing.T) {
	lease := func(inside string) string {
		return "<lease-workload>\n<lease-request arrival=\"00:00:00\"><lease id=\"a\">" + inside + "</lease></lease-request></lease-workload>"
	}
	const nodes, start, length = `<nodes><node-set numnodes="4"/></nodes>`, `<start><exact time="01:00:00"/></start>`, `<duration time="01:00:00"/>`
	for text, want := range map[string]struct{ field, words string }{
		"<lease-workload>\n<lease-requests></lease-workload>":                                                     {"bookings", "l.lwf:2:"},
		"<lease-workload>\n<lease-request>":                                                                       {"bookings", "unexpected EOF"},
		"<?xml version=\"1.0\" encoding=\"latin1\"?>\n<lease-workload/>":                                          {"bookings", "latin1"},
		"<leases>\n</leases>":                                                                                     {"", "want <lease-workload>"},
		"<lease-workload>\n</lease-workload>":                                                                     {"bookings", "nothing in the file"},
		"<lease-workload>\n<lease-request arrival=\"00:00:00\"/></lease-workload>":                                {"lease", "l.lwf:2: missing"},
		"<lease-workload>\n<lease-request><lease/></lease-request></lease-workload>":                              {"arrival", "missing"},
		lease(start + length):                                                                                     {"node-set", "missing"},
		lease(nodes + start):                                                                                      {"duration", "missing"},
		lease(nodes + start + `<duration time="60"/>`):                                                            {"duration", `"60": want`},
		lease(nodes + start + `<duration time="00:00:60"/>`):                                                      {"duration", "60 is too much for its place"},
		lease(nodes + start + `<duration time="24:00:00"/>`):                                                      {"", ""},
		lease(nodes + start + `<duration time="1:24:00:00"/>`):                                                    {"duration", "24 is too much"},
		lease(nodes + start + `<duration time="00:00:00"/>`):                                                      {"duration", "at least 1 s"},
		lease(nodes + start + `<duration time="00:00:01.x"/>`):                                                    {"duration", "want"},
		lease(nodes + start + `<duration time="-1:00:00"/>`):                                                      {"duration", "want"},
		lease(nodes + `<start><exact time="4294967295:00:00:00"/></start>` + length):                              {"start", "2^42"},
		lease(nodes + `<start><exact time=""/></start>` + length):                                                 {"start", "want"},
		lease(`<nodes><node-set numnodes="0"/></nodes>` + start + length):                                         {"numnodes", "at least 1"},
		lease(`<nodes><node-set numnodes="9"><res type="CPU" amount="0"/></node-set></nodes>` + start + length):   {"amount", "at least 1"},
		lease(`<nodes><node-set numnodes="9"><res type="CPU" amount="200"/></node-set></nodes>` + start + length): {"npe", "machine of 16"},
		lease(nodes+start+length) + lease(nodes+start+length):                                                     {"id", "line 2 has it already"},
	} {
		_, err := workload.ReadBookings(strings.NewReader(text), "l.lwf", workload.Options{PEs: 16, Strict: true})
		if want.words == "" {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		wantMistake(t, err, want.field, "l.lwf", want.words)
	}
}

// The lease files of the Haizea project read whole; counted and summed with awk
// over the same files.
func TestRealLeases(t *testing.T) {
	for file, want := range map[string]struct {
		leases   int
		nodeTime int64 // sum of nodes times duration
		last     berth.Time
	}{
		"15days-work_05-dur_1h-size_1small.lwf":      {207, 9_367_463, 1_379_630},
		"15days-work_10-dur_2h-size_2medium-01h.lwf": {71, 18_623_173, 1_281_531},
		"15days-work_10-dur_2h-size_2medium-03h.lwf": {72, 18_589_294, 1_279_156},
		"15days-work_10-dur_2h-size_2medium-06h.lwf": {70, 18_559_204, 1_287_911},
		"15days-work_10-dur_2h-size_2medium-12h.lwf": {73, 18_832_457, 1_286_858},
		"15days-work_10-dur_2h-size_2medium-24h.lwf": {72, 18_751_673, 1_277_284},
		"15days-work_10-dur_2h-size_2medium.lwf":     {71, 18_561_852, 1_376_734},
		"15days-work_20-dur_3h-size_2medium.lwf":     {95, 37_620_688, 1_370_635},
		"15days-work_30-dur_4h-size_3large.lwf":      {66, 55_864_799, 1_375_849},
	} {
		f, err := workload.OpenBookings(realdata.File(t, "bookings", file), workload.Options{PEs: 144})
		if err != nil {
			t.Error(err)
			continue
		}
		area, last := int64(0), berth.Time(0)
		for _, b := range f.Bookings {
			area += berth.Area(b.NPE, b.End.Sub(b.Start))
			last = max(last, b.Start)
		}
		if len(f.Bookings) != want.leases || area != want.nodeTime || last != want.last {
			t.Errorf("%s: %d leases, %d node-seconds, the last at %d; want %+v", file, len(f.Bookings), area, last, want)
		}
	}
}
