package check_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
	"pgregory.net/rapid"
)

// rows are the programs of a site: version 2.10 is later than 2.9.
var rows = []berth.Software{{Name: "a", Version: "1.5", Licences: 3}, {Name: "a", Version: "2.10", Licences: 2}, {Name: "b"}}

func programs(site string) []berth.Software {
	if site == "south" {
		return rows[1:2]
	}
	return rows
}

func storage(site string) (int64, bool) { return 10, site != "far" }

// needy is a schedule at sites of ten PEs each in which lines ask for all there
// is to ask for.
const needy = `
{"id":"1","site":"north","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":1,"accepted":true,"start":10,"end":20,"software":"a","licences":3,"storage_mb":4}
{"id":"2","site":"north","arrival":2,"ready":2,"deadline":90,"duration":10,"npe":1,"accepted":true,"start":10,"end":20,"software":"a","version":"2.9","licences":1,"storage_mb":6}
{"id":"1","kind":"staging","site":"north","start":0,"end":10}
{"id":"3","kind":"job","site":"north","npe":1,"start":20,"end":40,"actual_end":30,"software":"a","version":"1.5.0","licences":1,"storage_mb":10}
{"id":"4","kind":"booking","site":"north","npe":1,"start":30,"end":40,"software":"a","version":"0.9","licences":3,"storage_mb":10}
{"id":"5","site":"south","arrival":0,"ready":0,"deadline":90,"duration":20,"npe":1,"accepted":true,"start":10,"end":30,"part":1,"software":"a","licences":2,"storage_mb":8}
{"id":"5","site":"south","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":1,"accepted":true,"start":10,"end":20,"part":2,"software":"a","licences":2,"storage_mb":8}
{"id":"5","site":"north","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":1,"accepted":true,"start":10,"end":20,"part":3}
{"id":"5","kind":"staging","site":"south","start":10,"end":15}
{"id":"5","kind":"staging","site":"south","start":0,"end":9}
{"id":"6","site":"far","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":1,"accepted":true,"start":10,"end":20,"software":"b","licences":1000,"storage_mb":1000000}
{"id":"7","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":1,"accepted":false,"reason":"no_software","software":"c","version":"1","licences":2,"storage_mb":99}
{"id":"8","kind":"job","npe":1,"software":"d"}
{"id":"8","kind":"staging","site":"north","start":5,"end":90}
{"id":"9","kind":"outage","site":"north","npe":1,"start":0,"software":"d","storage_mb":99}
{"id":"0","kind":"job","site":"north","npe":1,"start":50,"end":60,"accelerators":1}
{"id":"0","kind":"staging","site":"north","start":45,"end":50,"software":"d","licences":9,"storage_mb":99}
`

func withNeeds(t rapid.TB, text string) *check.Report {
	t.Helper()
	opts := check.Options{PEs: 10, Software: programs, Storage: storage}
	report, err := check.File(strings.NewReader(text), "f.jsonl", opts)
	if err != nil {
		t.Fatalf("%v\nin %s", err, text)
	}
	return report
}

func TestValidNeeds(t *testing.T) {
	if report := withNeeds(t, needy); !report.Valid() {
		t.Error(report.Violations)
	}
}

// Without a sites file it is unknown what sites have; forms and stagings are
// checked all the same.
func TestNeedsWithoutSites(t *testing.T) {
	text := strings.ReplaceAll(needy, `"software":"a"`, `"software":"z"`)
	if report := on(t, 10, text); !report.Valid() {
		t.Error(report.Violations)
	}
	if report := on(t, 10, strings.Replace(text, `"start":0,"end":10}`, `"start":0,"end":11}`, 1)); report.Valid() {
		t.Error("a staging that ends after the start")
	}
}

// TestViolationsOfNeeds makes one small change and expects exactly these
// violations, each as its class, ids and lines.
func TestViolationsOfNeeds(t *testing.T) {
	for _, tt := range []struct {
		name, old, new string
		want           []string
	}{
		{"licences below 0", `"licences":1,"storage_mb":6`, `"licences":-1,"storage_mb":6`, []string{"request [2] [3]"}},
		{"accelerators below 0", `"accelerators":1`, `"accelerators":-1`, []string{"request [0] [17]"}},
		{"storage below 0", `"storage_mb":4`, `"storage_mb":-4`, []string{"request [1] [2]"}},
		{"licences of nothing", `"software":"c","version":"1",`, ``, []string{"request [7] [13]"}},
		{"version of nothing", `"software":"d"}`, `"version":"2"}`, []string{"request [8] [14]"}},
		{"software unknown", `"software":"b"`, `"software":"c"`, []string{"software [6] [12]"}},
		{"version too old", `"version":"2.9"`, `"version":"2.10.1"`, []string{"software [2] [3]"}},
		{"site without it", `"site":"far"`, `"site":"south"`, []string{"software [6] [12]", "storage [5 6] [7 8 12]"}},
		{"more than there are", `"version":"2.9","licences":1`, `"version":"2.9","licences":3`, []string{"licences [2] [3]"}},
		{"another row is meant", `"version":"2.9"`, `"version":"1"`, []string{"licences [1 2] [2 3]"}},
		{"ends as reserved", `"actual_end":30`, `"actual_end":31`, []string{"licences [3 4] [5 6]", "storage [3 4] [5 6]"}},
		{"taken once at each site", `"part":3`, `"part":3,"storage_mb":1`, []string{"storage [1 2 5] [2 3 9]"}},
		{"most of the parts", `"start":10,"end":30,"part":1,"software":"a","licences":2`, `"start":10,"end":30,"part":1,"software":"a","licences":3`, []string{"licences [5] [7 8]"}},
		{"storage", `"storage_mb":4`, `"storage_mb":5`, []string{"storage [1 2] [2 3]"}},
		{
			"storage from the staging on", `{"id":"8","kind":"job","npe":1,"software":"d"}`, `{"id":"x","kind":"booking","site":"north","npe":1,"start":8,"end":9,"storage_mb":7}`,
			[]string{"staging [8] [15]", "storage [1 x] [2 14]"},
		},
		{"staged before the arrival", `"arrival":0,"ready":0,"deadline":90,"duration":10,"npe":1,"accepted":true,"start":10,"end":20,"software":"a","licences":3`, `"arrival":1,"ready":2,"deadline":90,"duration":10,"npe":1,"accepted":true,"start":10,"end":20,"software":"a","licences":3`, []string{"staging [1] [2 4]"}},
		{"staged into the run", `"start":0,"end":10}`, `"start":9,"end":11}`, []string{"staging [1] [2 4]"}},
		{"staged later than expected", `"start":0,"end":10}`, `"start":0,"end":11,"promised_end":10}`, nil},
		{"expected too late", `"start":0,"end":10}`, `"start":0,"end":10,"promised_end":11}`, []string{"staging [1] [2 4]"}},
		{"staged to the end", `"start":0,"end":10}`, `"start":10,"end":20}`, []string{"staging [1] [2 4]"}},
		{"staged to the end of a part", `"start":10,"end":15`, `"start":10,"end":20`, []string{"staging [5] [7 10]"}},
		{"staged for what ended early", `"end":20,"part":2`, `"end":20,"actual_end":12,"part":2`, nil},
		{"staged for parts apart", `"start":10,"end":20,"part":2`, `"start":9,"end":19,"part":2`, []string{"parts [5] [7 8 9]", "staging [5] [7 10]"}},
		{"staged after a job's start", `"start":45,"end":50`, `"start":45,"end":51`, []string{"staging [0] [17 18]"}},
		{"staged elsewhere", `"staging","site":"north","start":0`, `"staging","site":"south","start":0`, []string{"staging [1] [2 4]"}},
		{"staged for a refused one", `"id":"8","kind":"staging"`, `"id":"7","kind":"staging"`, []string{"staging [7] [13 15]"}},
		{"staged for an unknown request", `"id":"8","kind":"staging"`, `"id":"y","kind":"staging"`, []string{"staging [y] [15]"}},
		{"staged for an outage", `"id":"8","kind":"staging"`, `"id":"9","kind":"staging"`, []string{"staging [9] [15]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantViolations(t, withNeeds(t, edited(t, needy, tt.old, tt.new)).Violations, tt.want)
		})
	}
}

// A request takes the licences of the first version that has as many as it asks for.
func TestProgramWithEnoughLicences(t *testing.T) {
	for _, c := range []struct {
		name     string
		licences []berth.Count // of each version, from the first on
		want     []string
	}{
		{"the second has enough", []berth.Count{2, 8}, nil},
		{"the second has any number", []berth.Count{2, 0}, nil},
		{"the first has any number", []berth.Count{0, 2}, nil},
		{"none has enough", []berth.Count{2, 3}, []string{"licences [x] [1]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			software := func(string) (list []berth.Software) {
				for i, n := range c.licences {
					list = append(list, berth.Software{Name: "a", Version: fmt.Sprint(i + 1), Licences: n})
				}
				return list
			}
			line := `{"id":"x","kind":"booking","site":"s","npe":1,"start":0,"end":9,"software":"a","licences":4}`
			report, err := check.File(strings.NewReader(line), "f.jsonl", check.Options{PEs: 10, Software: software})
			if err != nil {
				t.Fatal(err)
			}
			wantViolations(t, report.Violations, c.want)
		})
	}
}

func TestViolationsOfNeedsRead(t *testing.T) {
	for old, want := range map[string]string{
		`"version":"2.9","licences":1/"version":"2.9","licences":3`:           "line 3: licences: up to 3 of 2 licences of a 2.10 at site north taken in [10,20), the most first at 10 (id 2)",
		`"storage_mb":4/"storage_mb":5`:                                       "line 2,3: storage: up to 11 of 10 MB of storage of site north taken in [10,20), the most first at 10 (id 1, 2)",
		`"version":"2.9"/"version":"3"`:                                       "line 3: software: site north has no a of version 3 or later (id 2)",
		`"software":"b"/"software":"c"`:                                       "line 12: software: site far has no c (id 6)",
		`"start":0,"end":10}/"start":9,"end":11}`:                             "line 2,4: staging: staged in [9,11), and 1 has its PEs in [10,20): that must end by 10, or begin at 10 and end before 20 (id 1)",
		`"staging","site":"north","start":0/"staging","site":"far","start":0`: "line 2,4: staging: staged to site far, where 1 does not run (id 1)",
	} {
		before, after, _ := strings.Cut(old, "/")
		report := withNeeds(t, strings.Replace(needy, before, after, 1))
		if len(report.Violations) != 1 || report.Violations[0].String() != want {
			t.Errorf("%s: got %v, want %s", after, report.Violations, want)
		}
	}
}

// held is a schedule in which PEs are held while data are moved.
const held = `
{"id":"v","arrival":0,"ready":0,"deadline":900,"duration":130,"npe":4,"variants":[{"npe":2,"duration":50},{"npe":4,"duration":30}],"accepted":true,"start":10,"end":140,"storage_mb":5,"transfer":100}
{"id":"v","kind":"staging","start":10,"end":110}
{"id":"w","arrival":0,"ready":0,"deadline":900,"duration":50,"npe":4,"accepted":true,"start":10,"end":60,"storage_mb":5,"transfer":20}
{"id":"w","kind":"staging","start":10,"end":40,"promised_end":30}
`

// A transfer is in the duration, at its beginning, and there is a staging for it.
func TestTransfers(t *testing.T) {
	for _, tt := range []struct {
		name, old, new string
		want           []string
	}{
		{"as it is", `"v"`, `"v"`, nil},
		{"the duration without it", `,"storage_mb":5,"transfer":100`, `,"storage_mb":5`, []string{"variant [v] [2]"}},
		{"shorter", `"transfer":100`, `"transfer":99`, []string{"staging [v] [2 3]", "variant [v] [2]"}},
		{"no staging", `"kind":"staging","start":10,"end":110`, `"kind":"staging","start":0,"end":10`, []string{"staging [v] [2 3]"}},
		{"a longer staging", `"end":110`, `"end":111`, []string{"staging [v] [2 3]"}},
		{"not as it was expected", `,"promised_end":30`, ``, []string{"staging [w] [4 5]"}},
		{"nothing but the transfer", `"transfer":20`, `"transfer":50`, []string{"length [w] [4]", "staging [w] [4 5]"}},
		{"less than none", `"transfer":20`, `"transfer":-1`, []string{"length [w] [4]"}},
		{"no staging at all", `{"id":"w","kind":"staging","start":10,"end":40,"promised_end":30}`, ``, []string{"staging [w] [4]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantViolations(t, on(t, 10, strings.Replace(held, tt.old, tt.new, 1)).Violations, tt.want)
		})
	}
	late := on(t, 10, strings.Replace(held, `,"promised_end":30`, ``, 1)).Violations
	if want := "line 4,5: staging: its PEs are held for a transfer in [10,30), and no staging to the site is expected to take that time (id w)"; len(late) != 1 || late[0].String() != want {
		t.Errorf("got %v, want %s", late, want)
	}
	const moved = `{"id":"o","kind":"outage","npe":1,"start":8,"end":10,"pes":"0"}
{"id":"w","arrival":0,"ready":0,"deadline":900,"duration":50,"npe":1,"accepted":true,"start":10,"end":60,"pes":"0","storage_mb":5,"transfer":2,"promised_start":8,"moved_from":[{"at":8,"start":8,"end":58,"npe":1,"pes":"0","cause":"o"}]}
`
	for staging, valid := range map[string]bool{
		`{"id":"w","kind":"staging","start":8,"end":10}`: true, // under way when it moved
		`{"id":"w","kind":"staging","start":7,"end":10}`: true,
		`{"id":"w","kind":"staging","start":9,"end":10}`: false,
		`{"id":"w","kind":"staging","start":8,"end":9}`:  false,
		`{"id":"w","kind":"staging","start":8,"end":60}`: false,
		// Faster than was thought, or slower.
		`{"id":"w","kind":"staging","start":10,"end":11}`: true,
		`{"id":"w","kind":"staging","start":10,"end":13}`: false,
	} {
		if report := on(t, 10, moved+staging); report.Valid() != valid {
			t.Errorf("%s: %v", staging, report.Violations)
		}
	}
}

// A staging is somewhere: where a file names several sites, it says where.
func TestStagingsNeedTheirSite(t *testing.T) {
	text := strings.Replace(needy, `"staging","site":"north","start":0`, `"staging","start":0`, 1)
	_, err := check.File(strings.NewReader(text), "f", check.Options{PEs: 10})
	if err == nil || !strings.HasPrefix(err.Error(), "f:4: site: missing") {
		t.Errorf("got %v", err)
	}
}

// What asks for accelerators takes the time that they take.
func TestVariantsAreScaledToAccelerators(t *testing.T) {
	const line = `{"id":"v","arrival":0,"ready":0,"deadline":90,"npe":4,"variants":[{"npe":4,"duration":10}],"accepted":true,"start":0,`
	opts := check.Options{PEs: 9, Sizes: func(string, string) (berth.Count, bool) { return 9, true }}
	opts.Speed = func(_, _ string, accelerated bool) berth.Speed {
		if accelerated {
			return 500
		}
		return 2000
	}
	for took, allowed := range map[string]bool{
		`"duration":5,"end":5}`:                    true,
		`"duration":20,"end":20}`:                  false,
		`"accelerators":0,"duration":5,"end":5}`:   true,
		`"accelerators":2,"duration":20,"end":20}`: true,
		`"accelerators":2,"duration":5,"end":5}`:   false,
		`"storage_mb":5,"duration":5,"end":5}`:     true,
		`"storage_mb":5,"duration":20,"end":20}`:   false,
	} {
		report, err := check.File(strings.NewReader(line+took), "f", opts)
		if err != nil || report.Valid() != allowed {
			t.Errorf("%s: %v, %v", took, report, err)
		}
	}
}

func TestVersions(t *testing.T) {
	for _, tt := range []struct {
		has, asked string
		will       bool
	}{
		{"2.12", "2.9", true},
		{"2.9", "2.12", false},
		{"2.12", "2.12.0", true},
		{"2.12", "2.12.1", false},
		{"02.1", "2.01", true},
		{"", "", true},
		{"", "0", true},
		{"", "1", false},
		{"1", "", true},
		{"-", "", true},
		{"2b", "2a", true},
		{"2a", "2b", false},
		{"10", "9b", true},
		{"9b", "10", false},
		{"R10", "R9", true},
		{"R9", "R10", false},
		{"2023a", "2023", true},
		{"2023", "2023a", false},
		{"2023b10", "2023b9", true},
		{"1.1.1w", "1.1.1v", true},
		{"1.0~rc1", "1.0", false},
		{"1.0", "1.0~rc2", true},
		{"1.0~rc2", "1.0~rc1", true},
		{"1.0~rc1", "1.0~rc", true},
		{"R09", "R9", true},
		{"99999999999999999999999", "99999999999999999999998", true},
		{"8..1", "8.0.1", true},
	} {
		report, err := check.File(strings.NewReader(text([]object{{
			"id": "1", "kind": "booking", "npe": 1, "start": 0, "end": 1, "software": "p", "version": tt.asked,
		}})), "f", check.Options{PEs: 1, Software: func(string) []berth.Software { return []berth.Software{{Name: "p", Version: tt.has}} }})
		if err != nil || report.Valid() != tt.will {
			t.Errorf("%q for %q: %v, %v", tt.has, tt.asked, report, err)
		}
	}
}

// needsTaken is a table of seconds: how many licences of each row and how much
// storage is taken. Times may be a little before 0.
type needsTaken struct {
	licences [3][horizon + 20]int64
	storage  [horizon + 20]int64
}

const before = 20

// fits takes an amount throughout [from, to) if it leaves the load within size.
func fits(table *[horizon + 20]int64, from, to int, amount, size int64) bool {
	for at := from; at < to; at++ {
		if table[at+before]+amount > size {
			return false
		}
	}
	for at := from; at < to; at++ {
		table[at+before] += amount
	}
	return true
}

// draw lets a line ask for things that are free, and returns its staging, if it
// has one.
func (n *needsTaken) draw(t *rapid.T, line object) []object {
	start, end := line["start"].(int), line["end"].(int)
	if asks := rapid.SampledFrom([]struct {
		software, version string
		row               int
	}{{"", "", 0}, {"a", "", 0}, {"a", "1.5", 0}, {"a", "1.6", 1}, {"a", "2.10.0", 1}, {"b", "", 2}}).Draw(t, "asks"); asks.software != "" {
		line["software"] = asks.software
		if asks.version != "" {
			line["version"] = asks.version
		}
		size := int64(rows[asks.row].Licences)
		if size == 0 {
			size = 1 << 40
		}
		amount := rapid.Int64Range(0, 3).Draw(t, "licences")
		if fits(&n.licences[asks.row], start, end, amount, size) {
			line["licences"] = amount
		}
	}
	var stagings []object
	from := start
	switch rapid.IntRange(0, 2).Draw(t, "staging") {
	case 1:
		earliest := start - 5
		if arrival, is := line["arrival"]; is {
			earliest = arrival.(int)
		}
		from = rapid.IntRange(earliest, start).Draw(t, "from")
		stagings = []object{{"id": line["id"], "kind": "staging", "start": from, "end": rapid.IntRange(from, start).Draw(t, "staged")}}
	case 2:
		stagings = []object{{"id": line["id"], "kind": "staging", "start": start, "end": rapid.IntRange(start, end-1).Draw(t, "staged")}}
	}
	if amount := rapid.Int64Range(0, 8).Draw(t, "storage"); fits(&n.storage, from, end, amount, 10) {
		line["storage_mb"] = amount
	}
	return stagings
}

// TestNeedsAgreeWithTableOfSeconds compares the violations of licences and of
// storage with those of a table that says for every second who has how many.
func TestNeedsAgreeWithTableOfSeconds(t *testing.T) {
	type taker struct {
		thing    string
		id       string
		from, to int
		amount   int
	}
	sizes := map[string]int{"north 1.5": 3, "north 2.10": 2, "south 2.10": 2, "north MB": 10, "south MB": 10}
	rapid.Check(t, func(t *rapid.T) {
		var lines []object
		takers := map[string]taker{} // by thing and id
		take := func(next taker) {
			key := next.thing + next.id
			if old, seen := takers[key]; seen {
				next.from, next.to, next.amount = min(next.from, old.from), max(next.to, old.to), max(next.amount, old.amount)
			}
			takers[key] = next
		}
		ids := rapid.IntRange(0, 8).Draw(t, "ids")
		for i := range ids {
			id := fmt.Sprint(i)
			staged := map[string]int{}
			for range rapid.IntRange(0, 2).Draw(t, "stagings") {
				site := rapid.SampledFrom([]string{"north", "south"}).Draw(t, "site")
				from := rapid.IntRange(0, horizon-1).Draw(t, "from")
				if at, seen := staged[site]; !seen || from < at {
					staged[site] = from
				}
				lines = append(lines, object{"id": id, "site": site, "kind": "staging", "start": from, "end": horizon})
			}
			start := rapid.IntRange(0, horizon-1).Draw(t, "start")
			for part := range rapid.IntRange(1, 3).Draw(t, "parts") {
				site := rapid.SampledFrom([]string{"north", "north", "south"}).Draw(t, "site")
				end := min(horizon, start+rapid.IntRange(1, 15).Draw(t, "length"))
				licences, mb := rapid.IntRange(0, 3).Draw(t, "licences"), rapid.IntRange(0, 9).Draw(t, "mb")
				version := rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "version")
				line := object{
					"id": id, "site": site, "part": part + 1, "kind": "booking", "npe": 1, "start": start, "end": end,
					"software": "a", "version": version, "licences": licences, "storage_mb": mb,
				}
				if rapid.Bool().Draw(t, "ended") {
					end = rapid.IntRange(start, horizon).Draw(t, "actual end")
					line["actual_end"] = end
				}
				lines = append(lines, line)
				row := "2.10"
				if site == "north" && version != "2" {
					row = "1.5"
				}
				if licences > 0 {
					take(taker{site + " " + row, id, start, end, licences})
				}
				from := start
				if at, is := staged[site]; is {
					from = min(from, at)
				}
				if mb > 0 {
					take(taker{site + " MB", id, from, end, mb})
				}
			}
		}
		var want []string
		for thing, size := range sizes {
			from, names := -1, []string(nil)
			for at := range horizon + 1 {
				load, here := 0, []string(nil)
				for _, k := range takers {
					if k.thing == thing && k.from <= at && at < k.to {
						load += k.amount
						here = append(here, k.id)
					}
				}
				switch {
				case load > size:
					if from < 0 {
						from, names = at, nil
					}
					names = append(names, here...)
				case from >= 0:
					slices.Sort(names)
					want = append(want, fmt.Sprint(thing, " ", slices.Compact(names), " [", from, ",", at, ")"))
					from = -1
				}
			}
		}
		lines = rapid.Permutation(lines).Draw(t, "order")
		var got []string
		for _, v := range withNeeds(t, text(lines)).Violations {
			if v.Class != check.Licences && v.Class != check.Storage {
				continue
			}
			thing := "north"
			if strings.Contains(v.Text, "site south") {
				thing = "south"
			}
			switch {
			case v.Class == check.Storage:
				thing += " MB"
			case strings.Contains(v.Text, "a 1.5"):
				thing += " 1.5"
			default:
				thing += " 2.10"
			}
			interval := v.Text[strings.Index(v.Text, "["):]
			slices.Sort(v.IDs)
			got = append(got, fmt.Sprint(thing, " ", v.IDs, " ", interval[:strings.Index(interval, ")")+1]))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("got  %q\nwant %q\nin %s", got, want, text(lines))
		}
	})
}

// shared is a schedule in which stagings share an uplink of 10 kB/s.
const shared = `
{"id":"1","site":"north","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":1,"accepted":true,"start":20,"end":30,"storage_mb":1}
{"id":"2","site":"south","arrival":0,"ready":0,"deadline":900,"duration":10,"npe":1,"accepted":true,"start":320,"end":330,"storage_mb":2}
{"id":"3","site":"north","arrival":0,"ready":0,"deadline":900,"duration":10,"npe":1,"accepted":true,"start":320,"end":330,"storage_mb":1}
{"id":"4","kind":"job","site":"north","npe":1,"start":0,"end":9,"storage_mb":1}
{"id":"1","kind":"staging","site":"north","start":10,"end":20,"kilobytes":1000}
{"id":"2","kind":"staging","site":"south","start":20,"end":120,"kilobytes":500}
{"id":"2","kind":"staging","site":"south","start":120,"end":320,"kilobytes":1500}
{"id":"3","kind":"staging","site":"north","start":120,"end":320}
`

// The uplink carries what is moved at a time, and all that was asked for.
func TestUplink(t *testing.T) {
	for _, tt := range []struct {
		name, old, new string
		uplink         int64
		want           []string
	}{
		{"as it is", `"1"`, `"1"`, 100, nil},
		{"unchecked", `"1"`, `"1"`, 0, nil},
		{"one alone", `"1"`, `"1"`, 99, []string{"uplink [1] [6]"}},
		{"two together", `"start":20,"end":120`, `"start":19,"end":119`, 100, []string{"uplink [1 2] [6 7]"}},
		{"one that does not say how much", `"1"`, `"1"`, 12, []string{"uplink [1] [6]", "uplink [2 3] [8 9]"}},
		{"rounded up", `"end":20,"kilobytes":1000`, `"end":20,"kilobytes":1001`, 100, []string{"uplink [1] [6]"}},
		{"less than was asked for", `"kilobytes":1500`, `"kilobytes":1499`, 100, []string{"uplink [2] [7]"}},
		{"less, and later than expected", `"end":320,"kilobytes":1500`, `"end":320,"kilobytes":1499,"promised_end":300`, 100, nil},
		{"less, as it was expected", `"end":320,"kilobytes":1500`, `"end":320,"kilobytes":1499,"promised_end":320`, 100, []string{"uplink [2] [7]"}},
		{"in no time", `"start":10,"end":20,"kilobytes":1000`, `"start":20,"end":20,"kilobytes":1000`, 100, []string{"uplink [1] [6]"}},
		{"in no time, and never begun", `"start":120,"end":320}`, `"start":120,"end":120,"promised_end":320}`, 100, nil},
		{"in no time, as it was expected", `"start":120,"end":320}`, `"start":120,"end":120}`, 100, []string{"uplink [3] [9]"}},
		{"less than nothing", `"kilobytes":500`, `"kilobytes":-500`, 100, []string{"uplink [2] [7]", "uplink [2] [7]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := strings.Replace(shared, tt.old, tt.new, 1)
			report, err := check.File(strings.NewReader(text), "f.jsonl", check.Options{PEs: 10, Uplink: tt.uplink})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range report.Violations {
				got = append(got, fmt.Sprint(v.Class, " ", v.IDs, " ", v.Lines))
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q\n%v", got, tt.want, report.Violations)
			}
		})
	}
	for _, bad := range []string{`"kilobytes":1.5`, `"kilobytes":4398046511104000`, `"kilobytes":"1"`} {
		text := strings.Replace(shared, `"kilobytes":1000`, bad, 1)
		if _, err := check.File(strings.NewReader(text), "f.jsonl", check.Options{PEs: 10, Strict: true}); err == nil || !strings.Contains(err.Error(), "f.jsonl:6: kilobytes") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
