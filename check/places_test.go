package check_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
)

// twoSites are a site of two pools with partitions, and one of a single pool whose
// memory is unknown.
func twoSites() []berth.Site {
	return []berth.Site{
		{
			Name: "north",
			Pools: []berth.Pool{
				{Name: "cpu", PEs: 8, Binding: berth.Early, Node: berth.Node{MemoryMB: 4000}},
				{Name: "gpu", PEs: 4, Binding: berth.Late, Node: berth.Node{MemoryMB: 8000, Accelerators: 2}},
			},
			Partitions: []berth.Partition{
				{Name: "debug", Pool: "cpu", PEs: berth.NewPESet(berth.Run{Lo: 0, Hi: 4}), MaxNPE: 2, MaxDuration: 10},
				{Name: "debug", Pool: "gpu"},
			},
		},
		{Name: "south", Pools: []berth.Pool{{Name: "pool", PEs: 8, Binding: berth.Early}}, Partitions: []berth.Partition{{Name: "all", Pool: "pool"}}},
	}
}

// placed is a schedule on them in which lines ask for all that a place can have.
const placed = `
{"id":"1","site":"north","pool":"cpu","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":2,"accepted":true,"start":0,"end":10,"pes":"2-3","partition":"debug","memory_mb":4000}
{"id":"2","site":"north","pool":"gpu","arrival":0,"ready":0,"deadline":90,"duration":30,"npe":4,"accepted":true,"start":0,"end":30,"pes":"0-3","partition":"debug","memory_mb":8000,"accelerators":2}
{"id":"3","site":"south","arrival":0,"ready":0,"deadline":90,"duration":50,"npe":4,"accepted":true,"start":0,"end":50,"pes":"0-3","partition":"all","memory_mb":99000}
{"id":"4","site":"south","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":2,"accepted":true,"start":0,"end":10,"pes":"5,7","want_site":"south","want_pool":"pool","eligible":"4-7"}
{"id":"5","site":"north","pool":"cpu","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":1,"accepted":true,"start":0,"end":10,"pes":"6","want_site":"north","want_pool":"cpu","eligible":"6"}
{"id":"6","arrival":0,"ready":0,"deadline":99,"duration":99,"npe":9,"accepted":false,"reason":"no_suitable_site","partition":"debug","want_site":"west","eligible":"77","memory_mb":1000000,"accelerators":9}
{"id":"7","kind":"job","site":"north","pool":"cpu","npe":2,"start":10,"end":20,"pes":"0-1","partition":"debug","memory_mb":1,"want_pool":"cpu"}
{"id":"8","kind":"booking","site":"south","npe":2,"start":50,"end":60,"want_site":"south"}
{"id":"9","kind":"job","npe":99,"partition":"none","want_site":"nowhere","accelerators":3}
{"id":"o","kind":"outage","site":"south","npe":8,"start":60,"want_site":"north","partition":"none","memory_mb":7}
{"id":"p","site":"north","pool":"cpu","arrival":0,"ready":0,"deadline":90,"duration":5,"npe":1,"accepted":true,"start":30,"end":35,"part":1,"partition":"debug"}
{"id":"p","site":"north","pool":"gpu","arrival":0,"ready":0,"deadline":90,"duration":5,"npe":4,"accepted":true,"start":30,"end":35,"part":2,"partition":"debug"}
`

// onSites checks a schedule against sites and returns each violation as its class,
// ids and lines, sorted.
func onSites(t *testing.T, text string, sites []berth.Site) (short, long []string) {
	t.Helper()
	report, err := check.File(strings.NewReader(text), "f.jsonl", check.Against(sites, 0))
	if err != nil {
		t.Fatalf("%v\nin %s", err, text)
	}
	for _, v := range report.Violations {
		short, long = append(short, fmt.Sprint(v.Class, " ", v.IDs, " ", v.Lines)), append(long, v.String())
	}
	slices.Sort(short)
	return short, long
}

func TestValidPlaces(t *testing.T) {
	if _, violations := onSites(t, placed, twoSites()); violations != nil {
		t.Error(violations)
	}
}

// What names no partition keeps to the site's default one, unless it asks for a pool
// outside of it.
func TestDefaultPartitionIsKept(t *testing.T) {
	const plain = `{"id":"a","site":"north","pool":"POOL","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":2,"accepted":true,"start":0,"end":10,"pes":"PES"WANT}
`
	for _, tt := range []struct {
		pool, pes, want string
		violations      []string
	}{
		{"cpu", "2-3", "", nil},
		{"cpu", "4-5", "", []string{"partition [a] [1]"}},
		{"gpu", "0-1", "", []string{"partition [a] [1]"}},
		{"gpu", "0-1", `,"want_pool":"gpu"`, nil},
		{"gpu", "0-1", `,"want_site":"north"`, []string{"partition [a] [1]"}},
	} {
		sites := twoSites()
		sites[0].Partitions = sites[0].Partitions[:1]
		sites[0].Partitions[0].Default = true
		text := strings.NewReplacer("POOL", tt.pool, "PES", tt.pes, "WANT", tt.want).Replace(plain)
		if got, _ := onSites(t, text, sites); !slices.Equal(got, tt.violations) {
			t.Errorf("%s %s %s: %v, want %v", tt.pool, tt.pes, tt.want, got, tt.violations)
		}
	}
}

// The PEs that a line may have, and those that it may not, are listed by pool; several sites may do.
func TestListsOfSitesAndPEsAreChecked(t *testing.T) {
	const (
		at   = `{"id":"a","site":"SITE","pool":"POOL","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":2,"accepted":true,"start":0,"end":10,"pes":"2,5",WANT}` + "\n"
		cpu  = `{"site":"north","pool":"cpu","pes":"2-5"}`
		some = `{"site":"north","pool":"cpu","pes":"0-3"}`
		rest = `{"site":"north","pool":"cpu","pes":"5-7"}`
		gpu  = `{"site":"north","pool":"gpu","pes":"0-3"}`
		all  = `{"site":"south","pool":"pool","pes":"0-7"}`
	)
	for _, tt := range []struct {
		where, want, says string // says is a part of the only violation; "" is none
	}{
		{"north cpu", `"want_sites":["north"]`, ""},
		{"north cpu", `"want_sites":["west","north"]`, ""},
		{"north cpu", `"want_sites":[]`, ""},
		{"north cpu", `"want_sites":["west","south"]`, "place: it is at site north, and asks for site west or south"},
		{"south pool", `"want_sites":["north"]`, "place: it is at site south, and asks for site north"},
		{"north cpu", `"only":[]`, ""},
		{"north cpu", `"only":[` + cpu + `]`, ""},
		{"north cpu", `"only":[` + gpu + `,` + cpu + `]`, ""},
		{"north cpu", `"only":[` + some + `,` + rest + `]`, ""},
		{"north cpu", `"only":[{"pes":"2,5"}]`, ""},
		{"north cpu", `"only":[` + some + `]`, "eligible: PE 5 of pool cpu of site north is none of those asked for"},
		{"north cpu", `"only":[` + gpu + `]`, "place: it is at pool cpu of site north, and asks for PEs of other pools alone"},
		{"south pool", `"only":[` + cpu + `]`, "place: it is at pool pool of site south"},
		{"south ", `"only":[` + all + `]`, ""},
		{"south ", `"only":[` + cpu + `]`, "place: it is at site south"},
		{"north cpu", `"never":[` + gpu + `,` + all + `]`, ""},
		{"north cpu", `"never":[{"site":"north","pool":"cpu","pes":"0-1,3-4,6-7"}]`, ""},
		{"north cpu", `"never":[` + rest + `]`, "eligible: PE 5 of pool cpu of site north is one of those that will not do"},
		{"north cpu", `"never":[{"site":"north","pool":"cpu","pes":"3-4,6"},` + some + `]`, "eligible: PE 2 of pool cpu"},
		{"north cpu", `"only":[` + cpu + `],"never":[` + all + `],"want_sites":["north"]`, ""},
	} {
		site, pool, _ := strings.Cut(tt.where, " ")
		text := strings.NewReplacer("SITE", site, "POOL", pool, "WANT", tt.want).Replace(at)
		_, got := onSites(t, text, twoSites())
		if tt.says == "" && len(got) > 0 || tt.says != "" && (len(got) != 1 || !strings.Contains(got[0], tt.says)) {
			t.Errorf("%s, %s: %v, want %q", tt.where, tt.want, got, tt.says)
		}
		if pool == "" {
			continue // nothing tells its name without the sites
		}
		if report := on(t, 8, text); len(report.Violations) != len(got) {
			t.Errorf("%s, %s, without the sites: %v, want %v", tt.where, tt.want, report.Violations, got)
		}
	}
	// Nothing says what a machine, or the pool of a site, is called.
	for line, want := range map[string]int{
		`{"id":"a","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":1,"accepted":true,"start":0,"end":10,"pes":"2","want_sites":["s"],"only":[` + cpu + `]}`:                                       0,
		`{"id":"a","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":1,"accepted":true,"start":0,"end":10,"pes":"1","want_sites":["s"],"only":[` + cpu + `]}`:                                       1,
		`{"id":"a","site":"north","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":1,"accepted":true,"start":0,"end":10,"pes":"1","only":[` + cpu + `,` + gpu + `]}`:                               0,
		`{"id":"a","site":"north","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":1,"accepted":true,"start":0,"end":10,"pes":"6","only":[{"site":"north","pool":"gpu","pes":"0-7"},` + cpu + `]}`: 0,
	} {
		if report := on(t, 8, line+"\n"); len(report.Violations) != want {
			t.Errorf("%s: %v, want %d", line, report.Violations, want)
		}
	}
	// What was lost and replaced is looked at too.
	moved := `{"id":"r","site":"south","arrival":0,"ready":10,"deadline":90,"duration":40,"npe":2,"accepted":true,"start":10,"end":50,"pes":"0-1","stretches":[{"from":20,"npe":1,"pes":"0","cause":"o"},{"from":20,"npe":2,"pes":"0,2"}],LIST}
{"id":"o","kind":"outage","site":"south","npe":1,"start":20,"pes":"1","end":60}
`
	for list, want := range map[string]string{
		`"never":[{"site":"south","pool":"pool","pes":"3"}]`:  "",
		`"never":[{"site":"south","pool":"pool","pes":"2"}]`:  "PE 2 of site south is one of those that will not do",
		`"only":[{"site":"south","pool":"pool","pes":"0-1"}]`: "PE 2 of site south is none of those asked for",
	} {
		_, got := onSites(t, strings.Replace(moved, "LIST", list, 1), twoSites())
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
			t.Errorf("%s: %v, want %q", list, got, want)
		}
	}
	for list, says := range map[string]string{
		`"want_sites":"s"`: "not a list", `"want_sites":[1]`: "want_sites", `"only":[7]`: "not an object", `"only":[{"site":"s"}]`: "lacks pes",
		`"never":[{"pes":"2-1"}]`: "never.pes", `"never":[{"pes":"1","pes":"1"}]`: "given twice",
	} {
		text := strings.NewReplacer("SITE", "north", "POOL", "cpu", "WANT", list).Replace(at)
		if _, err := check.File(strings.NewReader(text), "f.jsonl", check.Options{PEs: 8, Strict: true}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", list, err, says)
		}
	}
}

// Without a sites file there is nothing to compare hardware and partitions with;
// the site, the pool and the PEs asked for are in the file itself.
func TestPlacesWithoutSites(t *testing.T) {
	if report := on(t, 10, placed); !report.Valid() {
		t.Error(report.Violations)
	}
	for old, class := range map[string]check.Class{
		`"want_site":"south","want_pool"/"want_site":"north","want_pool"`: check.Place,
		`"eligible":"6"/"eligible":"5"`:                                   check.Eligible,
	} {
		before, after, _ := strings.Cut(old, "/")
		if report := on(t, 10, strings.Replace(placed, before, after, 1)); len(report.Violations) != 1 || report.Violations[0].Class != class {
			t.Errorf("%s: got %v, want %s", after, report.Violations, class)
		}
	}
}

// TestViolationsOfPlaces makes one small change and expects exactly these
// violations, each as its class, ids and lines.
func TestViolationsOfPlaces(t *testing.T) {
	for _, tt := range []struct {
		name, old, new string
		want           []string
	}{
		{"memory below 0", `"memory_mb":1,`, `"memory_mb":-1,`, []string{"request [7] [8]"}},
		{"too little memory", `"memory_mb":4000`, `"memory_mb":4001`, []string{"hardware [1] [2]"}},
		{"too little memory for a job", `"memory_mb":1,`, `"memory_mb":4001,`, []string{"hardware [7] [8]"}},
		{"too few accelerators", `"accelerators":2`, `"accelerators":3`, []string{"hardware [2] [3]"}},
		{"no accelerators", `"memory_mb":99000`, `"accelerators":1`, []string{"hardware [3] [4]"}},
		{"memory and accelerators", `"memory_mb":1,`, `"memory_mb":4001,"accelerators":1,`, []string{"hardware [7] [8]", "hardware [7] [8]"}},
		{"no such partition", `"partition":"all"`, `"partition":"debug"`, []string{"partition [3] [4]"}},
		{"outside the partition", `"pes":"2-3"`, `"pes":"3-4"`, []string{"partition [1] [2]"}},
		{"a job outside the partition", `"pes":"0-1"`, `"pes":"0,4"`, []string{"partition [7] [8]"}},
		{"too many for the partition", `"npe":2,"accepted":true,"start":0,"end":10,"pes":"2-3"`, `"npe":3,"accepted":true,"start":0,"end":10,"pes":"1-3"`, []string{"partition [1] [2]"}},
		{"a part too large for the partition", `"npe":1,"accepted":true,"start":30`, `"npe":3,"accepted":true,"start":30`, []string{"partition [p] [12]"}},
		{"too long for the partition", `"duration":10,"npe":2,"accepted":true,"start":0,"end":10,"pes":"2-3"`, `"duration":11,"npe":2,"accepted":true,"start":0,"end":11,"pes":"2-3"`, []string{"partition [1] [2]"}},
		{"a job too long for the partition", `"start":10,"end":20`, `"start":10,"end":21`, []string{"partition [7] [8]"}},
		{"a job that went on", `"start":10,"end":20`, `"start":10,"end":20,"actual_end":30`, nil},
		{"partition of another pool", `"pool":"gpu","arrival":0,"ready":0,"deadline":90,"duration":30`, `"pool":"cpu","arrival":0,"ready":0,"deadline":90,"duration":30`, []string{
			"hardware [2] [3]", "hardware [2] [3]", "identity [1 2] [2 3]", "identity [2 7] [3 8]", "partition [2] [3]", "partition [2] [3]",
		}},
		{"another site", `"want_site":"south","want_pool"`, `"want_site":"north","want_pool"`, []string{"place [4] [5]"}},
		{"another pool", `"want_pool":"pool"`, `"want_pool":"cpu"`, []string{"place [4] [5]"}},
		{"another pool for a job", `"want_pool":"cpu"}`, `"want_pool":"gpu"}`, []string{"place [7] [8]"}},
		{"another site for a booking", `"end":60,"want_site":"south"`, `"end":60,"want_site":"east"`, []string{"place [8] [9]"}},
		{"other PEs", `"eligible":"4-7"`, `"eligible":"4-6"`, []string{"eligible [4] [5]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, violations := onSites(t, edited(t, placed, tt.old, tt.new), twoSites())
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q\n%v", got, tt.want, violations)
			}
		})
	}
}

func TestViolationsOfPlacesRead(t *testing.T) {
	for old, want := range map[string]string{
		`"memory_mb":4000/"memory_mb":4001`: "line 2: hardware: 4001 MB for each PE; pool cpu of site north has 4000 (id 1)",
		`"accelerators":2/"accelerators":3`: "line 3: hardware: 3 accelerators for each PE; pool gpu of site north has 2 (id 2)",
		`"partition":"all"/"partition":"x"`: "line 4: partition: site south has no partition x of pool pool (id 3)",
		`"pes":"2-3"/"pes":"3-4"`:           "line 2: partition: PE 4 is not in partition debug of site north (id 1)",
		`"duration":10,"npe":2,"accepted":true,"start":0,"end":10,"pes":"2-3"/"duration":11,"npe":2,"accepted":true,"start":0,"end":11,"pes":"2-3"`: "line 2: partition: 11 s; partition debug of site north gives at most 10 (id 1)",
		`"npe":2,"accepted":true,"start":0,"end":10,"pes":"2-3"/"npe":3,"accepted":true,"start":0,"end":10,"pes":"1-3"`:                             "line 2: partition: 3 PEs; partition debug of site north gives at most 2 (id 1)",
		`"want_site":"south","want_pool"/"want_site":"x","want_pool"`:                                                                               "line 5: place: it is at site south, and asks for site x (id 4)",
		`"want_pool":"pool"/"want_pool":"x"`: "line 5: place: it is at pool pool, and asks for pool x (id 4)",
		`"eligible":"4-7"/"eligible":"0-5"`:  "line 5: eligible: PE 7 is none of those asked for (id 4)",
	} {
		before, after, _ := strings.Cut(old, "/")
		if _, got := onSites(t, strings.Replace(placed, before, after, 1), twoSites()); len(got) != 1 || got[0] != want {
			t.Errorf("%s: got %v, want %s", after, got, want)
		}
	}
}

// A file that names no site and no pool means the only ones.
func TestTheOnlyPoolIsTheOneAskedFor(t *testing.T) {
	south := twoSites()[1:]
	line := `{"id":"1","kind":"booking","npe":1,"start":0,"end":5,"want_site":"south","want_pool":"pool","partition":"all"}`
	if _, violations := onSites(t, line, south); violations != nil {
		t.Error(violations)
	}
	got, _ := onSites(t, strings.Replace(line, `"want_pool":"pool"`, `"want_pool":"cpu"`, 1), south)
	if want := []string{"place [1] [1]"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if report := on(t, 8, line); !report.Valid() { // nothing tells its name
		t.Error(report.Violations)
	}
}

// What asks for memory, accelerators or features runs on PEs of classes that have them,
// and on those of one alternative.
func TestClassesAreChecked(t *testing.T) {
	sites := []berth.Site{{Name: "s", Pools: []berth.Pool{{
		Name: "p", PEs: 8, Binding: berth.Early, Classes: []berth.Class{
			{Name: "old", PEs: berth.NewPESet(berth.Run{Lo: 0, Hi: 4}), Node: berth.Node{MemoryMB: 4000}, Features: []string{"rack1"}},
			{Name: "new", PEs: berth.NewPESet(berth.Run{Lo: 4, Hi: 6}), Node: berth.Node{MemoryMB: 8000}, Features: []string{"rack2", "avx"}},
			{Name: "gpu", PEs: berth.NewPESet(berth.Run{Lo: 6, Hi: 8}), Node: berth.Node{Accelerators: 2}, Features: []string{"rack2", "avx"}},
		},
	}, {Name: "q", PEs: 4, Binding: berth.Late, Features: []string{"rack2"}}}}}
	for _, tt := range []struct {
		pool, pes, asks string
		hardware        int
	}{
		{"p", "0-7", "", 0},
		{"p", "0-7", `"memory_mb":4000`, 0},
		{"p", "0-7", `"memory_mb":4001`, 1},
		{"p", "4-7", `"memory_mb":8000`, 0},
		{"p", "5-6", `"accelerators":2`, 1},
		{"p", "6-7", `"accelerators":2`, 0},
		{"p", "4-7", `"constraint":"rack2&avx"`, 0},
		{"p", "3-7", `"constraint":"rack2&avx"`, 1},
		{"p", "0-7", `"constraint":"rack1|avx"`, 0},
		{"p", "0-3", `"constraint":"[rack1|rack2]"`, 0},
		{"p", "4-7", `"constraint":"[rack1|rack2]"`, 0},
		{"p", "3-4", `"constraint":"[rack1|rack2]"`, 1},
		{"p", "4-5", `"constraint":"rack2","part_constraint":"new"`, 0},
		{"p", "4-6", `"constraint":"rack2","part_constraint":"new"`, 1},
		{"p", "0-1", `"constraint":"p"`, 0},
		{"q", "0-1", `"constraint":"rack2"`, 0},
		{"q", "0-1", `"constraint":"avx"`, 1},
	} {
		set, err := berth.ParsePESet(tt.pes)
		if err != nil {
			t.Fatal(err)
		}
		asks := tt.asks
		if asks != "" {
			asks = "," + asks
		}
		line := fmt.Sprintf(`{"id":"a","site":"s","pool":%q,"arrival":0,"ready":0,"deadline":90,"duration":10,"npe":%d,"accepted":true,"start":0,"end":10,"pes":%q%s}`, tt.pool, set.Count(), tt.pes, asks)
		short, long := onSites(t, line+"\n", sites)
		if len(short) != tt.hardware || len(short) > 0 && !strings.HasPrefix(short[0], "hardware [a]") {
			t.Errorf("%s of %s with %s: %v, want %d of hardware", tt.pes, tt.pool, tt.asks, long, tt.hardware)
		}
	}
	if _, err := check.File(strings.NewReader(`{"id":"a","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":1,"accepted":false,"constraint":"a&"}`+"\n"), "f.jsonl", check.Options{Strict: true}); err == nil || !strings.Contains(err.Error(), "constraint") {
		t.Errorf("half a constraint: %v", err)
	}
	const asks = `{"id":"a","site":"s","pool":"p","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":2,"accepted":true,"start":0,"end":10,"pes":"4-5","memory_mb":9000,"accelerators":1,"constraint":"rack2","part_constraint":"new"}` + "\n"
	want := "line 1: hardware: PE 4 of pool p of site s has not what is asked for: 9000 MB, 1 accelerators, rack2, new (id a)"
	if _, long := onSites(t, asks, sites); len(long) != 1 || long[0] != want {
		t.Errorf("%q, want %q", long, want)
	}
}

// At a managed site a part may last longer than any of its variants, if that is as long as the longest part there.
func TestPartsThatEndWithTheLongest(t *testing.T) {
	part := func(n int, site, pes string, npe, end int, variants string) string {
		return fmt.Sprintf(`{"id":"a","site":%q,"part":%d,"arrival":0,"ready":0,"deadline":90,"duration":%d,"npe":%d,"accepted":true,"start":0,"end":%d,"pes":%q,"variants":[%s]}`+"\n", site, n, end, npe, end, pes, variants)
	}
	const ten, five, other = `{"npe":2,"duration":10},{"npe":4,"duration":5}`, `{"npe":1,"duration":5},{"npe":2,"duration":3}`, `{"npe":3,"duration":4}`
	for name, tt := range map[string]struct {
		text    string
		managed bool
		want    []string
	}{
		"as the longest": {part(1, "south", "0-1", 2, 10, ten) + part(2, "south", "2", 1, 10, five), true, nil},
		"the longest last, and two shorter ones": {
			part(1, "south", "2", 1, 10, five) + part(2, "south", "3-5", 3, 10, other) + part(3, "south", "0-1", 2, 10, ten), true, nil,
		},
		"not managed":               {part(1, "south", "0-1", 2, 10, ten) + part(2, "south", "2", 1, 10, five), false, []string{"variant [a] [2]"}},
		"none is so long":           {part(1, "south", "0-1", 2, 12, ten) + part(2, "south", "2", 1, 12, five), true, []string{"variant [a] [1]", "variant [a] [2]"}},
		"longer than the longest":   {part(1, "south", "0-1", 2, 10, ten) + part(2, "south", "2", 1, 11, five), true, []string{"variant [a] [2]"}},
		"the longest is elsewhere":  {part(1, "north", "0-1", 2, 10, ten) + part(2, "south", "2", 1, 10, five), true, []string{"variant [a] [2]"}},
		"another number of PEs":     {part(1, "south", "0-1", 2, 10, ten) + part(2, "south", "2-4", 3, 10, five), true, []string{"variant [a] [2]"}},
		"shorter than its variants": {part(1, "south", "0-1", 2, 4, ten) + part(2, "south", "2-4", 3, 4, other), true, []string{"variant [a] [1]"}},
	} {
		sites := []berth.Site{
			{Name: "north", Managed: tt.managed, Pools: []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Early}}},
			{Name: "south", Managed: tt.managed, Pools: []berth.Pool{{Name: "p", PEs: 8, Binding: berth.Early}}},
		}
		if got, long := onSites(t, tt.text, sites); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v\n%v", name, got, tt.want, long)
		}
	}
}
