package check_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/check"
)

// resized is a schedule on ten PEs in which reservations outlive outages: a loses
// a PE twice and gets another one the first time; b has lost some before it
// starts; PEs of c have no numbers until then.
const resized = `
{"id":"o","kind":"outage","npe":2,"start":5,"end":60,"actual_end":30,"pes":"0-1"}
{"id":"p","kind":"outage","npe":1,"start":20,"pes":"4"}
{"id":"q","kind":"outage","npe":1,"start":5,"end":60,"pes":"9"}
{"id":"a","arrival":0,"ready":0,"deadline":90,"duration":40,"npe":4,"accepted":true,"start":0,"end":40,"pes":"1-4","stretches":[{"from":5,"npe":3,"pes":"2-4","cause":"o"},{"from":5,"npe":4,"pes":"2-5"},{"from":20,"npe":3,"pes":"2-3,5","cause":"p"}]}
{"id":"b","arrival":0,"ready":0,"deadline":90,"duration":20,"npe":2,"accepted":true,"start":12,"end":32,"actual_end":31,"pes":"0,6","stretches":[{"from":12,"npe":1,"pes":"6","cause":"o"},{"from":30,"npe":2,"pes":"0,6"}]}
{"id":"c","arrival":0,"ready":0,"deadline":90,"duration":20,"npe":3,"accepted":true,"start":10,"end":30,"stretches":[{"from":10,"npe":0,"cause":"q"},{"from":10,"npe":2,"pes":"7-8"}]}
{"id":"d","arrival":0,"ready":0,"deadline":90,"duration":5,"npe":2,"accepted":true,"start":6,"end":11,"pes":"6-7","stretches":[]}
{"id":"e","kind":"booking","npe":1,"start":30,"end":40,"pes":"1"}
`

func TestValidStretches(t *testing.T) {
	text := strings.Replace(resized, `"pes":"6-7","stretches":[]`, `"pes":"6-7"`, 1)
	text = strings.Replace(text, `"start":6,"end":11`, `"start":40,"end":45`, 1)
	if report := on(t, 10, text); !report.Valid() || report.Lines != 8 || report.Requests != 4 {
		t.Error(report)
	}
}

// TestViolationsOfStretches makes one small change and expects exactly these
// violations, each as its class, ids and lines.
func TestViolationsOfStretches(t *testing.T) {
	valid := strings.Replace(resized, `"start":6,"end":11`, `"start":40,"end":45`, 1)
	const first = `{"from":5,"npe":3,"pes":"2-4","cause":"o"}`
	for _, tt := range []struct {
		name, old, new string
		want           []string
	}{
		{"as it is", `"a"`, `"a"`, nil},
		{"before the start", `{"from":12,"npe":1`, `{"from":11,"npe":1`, []string{"resized [b] [6]"}},
		{"after the end", `{"from":30,"npe":2`, `{"from":32,"npe":2`, []string{"resized [b] [6]"}},
		{"out of order", `{"from":20,"npe":3`, `{"from":4,"npe":3`, []string{"resized [a] [5]", "resized [a] [5]"}},
		{"more than promised", `"npe":4,"pes":"2-5"`, `"npe":5,"pes":"2-6"`, []string{
			"capacity [o q a b c] [2 4 5 6 7]", "identity [a b] [5 6]", "resized [a] [5]", "resized [p a] [3 5]",
		}},
		{"less than none", `"npe":0,"cause":"q"`, `"npe":-1,"cause":"q"`, []string{"resized [c] [7]"}},
		{"not as many as named", `"npe":2,"pes":"7-8"`, `"npe":2,"pes":"7"`, []string{"count [c] [7]"}},
		{"PEs that are not there", `"npe":2,"pes":"7-8"`, `"npe":2,"pes":"7,10"`, []string{"range [c] [7]"}},
		{"PEs not asked for", `"id":"a",`, `"id":"a","eligible":"1-4",`, []string{"eligible [a] [5]"}},
		{"lost for no reason", first, strings.Replace(first, `,"cause":"o"`, ``, 1), []string{"resized [a] [5]"}},
		{"lost for an unknown reason", first, strings.Replace(first, `"cause":"o"`, `"cause":"x"`, 1), []string{"resized [a] [5]"}},
		{"lost for no outage", first, strings.Replace(first, `"cause":"o"`, `"cause":"e"`, 1), []string{"resized [a] [5]"}},
		{"lost for another outage", first, strings.Replace(first, `"cause":"o"`, `"cause":"q"`, 1), []string{"resized [q a] [4 5]"}},
		{"lost before the outage", first + `,{"from":5`, strings.Replace(first, `"from":5`, `"from":4`, 1) + `,{"from":5`, []string{"resized [a] [5]"}},
		{"more lost than fell", `"npe":3,"pes":"2-3,5","cause":"p"`, `"npe":2,"pes":"2-3","cause":"p"`, []string{"resized [p a] [3 5]"}},
		{"lost by count for no reason", `{"from":10,"npe":0,"cause":"q"}`, `{"from":10,"npe":0}`, []string{"resized [c] [7]", "resized [c] [7]"}},
		{"more lost by count than fell", `"npe":2,"pes":"7-8"`, `"npe":1,"pes":"7"`, []string{"resized [c] [7]"}},
		{"lost without an entry", `{"from":10,"npe":0,"cause":"q"},`, ``, []string{"resized [c] [7]", "resized [c] [7]"}},
		{"others have what was lost", `"start":30,"end":40,"pes":"1"`, `"start":4,"end":14,"pes":"1"`, []string{"capacity [o q a b c e] [2 4 5 6 7 9]", "identity [a e] [5 9]", "identity [o e] [2 9]"}},
		{"others have what was got", `"start":30,"end":40,"pes":"1"`, `"start":30,"end":40,"pes":"5"`, []string{"identity [a e] [5 9]"}},
		{"others have what was lost in time", `"start":30,"end":40,"pes":"1"`, `"start":30,"end":90,"pes":"1"`, nil},
		{"too many for the pool", `"kind":"booking","npe":1,"start":30,"end":40,"pes":"1"`, `"kind":"booking","npe":2,"start":25,"end":28`, []string{"capacity [o p q a b c e] [2 3 4 5 6 7 9]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantViolations(t, on(t, 10, edited(t, valid, tt.old, tt.new)).Violations, tt.want)
		})
	}
	partition := `{"id":"1","kind":"booking","site":"north","pool":"cpu","npe":1,"start":0,"end":9,"pes":"0"}
{"id":"2","site":"north","pool":"cpu","arrival":0,"ready":0,"deadline":9,"duration":9,"npe":2,"accepted":true,"start":0,"end":9,"pes":"2-3","partition":"debug","stretches":[{"from":3,"npe":1,"pes":"2","cause":"o"},{"from":4,"npe":2,"pes":"2,5"}]}
{"id":"o","kind":"outage","site":"north","pool":"cpu","npe":1,"start":3,"pes":"3"}`
	if got, _ := onSites(t, partition, twoSites()); !slices.Equal(got, []string{"partition [2] [2]"}) {
		t.Errorf("a PE of no partition: %q", got)
	}
	for text, want := range map[string]string{
		`"stretches":1`:                              "f.jsonl:1: stretches: 1 is not a list",
		`"stretches":[{"npe":1}]`:                    "f.jsonl:1: stretches: {\"npe\":1} lacks from or npe",
		`"stretches":[{"from":1,"npe":1,"npe":1}]`:   "f.jsonl:1: stretches.npe: given twice",
		`"stretches":[{"from":1,"npe":1,"pes":"x"}]`: "f.jsonl:1: stretches.pes: no number",
	} {
		_, err := check.File(strings.NewReader(`{"id":"1","kind":"job","npe":1,`+text+"}"), "f.jsonl", check.Options{PEs: 1})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What goes on for too long is in the way with the PEs that it has then.
func TestMovesForStretches(t *testing.T) {
	const text = `{"id":"o","kind":"outage","npe":1,"start":3,"end":60,"pes":"0"}
{"id":"c","arrival":0,"ready":0,"deadline":10,"duration":10,"npe":1,"accepted":true,"start":0,"end":10,"pes":"0","actual_end":14,"limit":15,"stretches":[{"from":3,"npe":0,"cause":"o"},{"from":3,"npe":1,"pes":"4"}]}
{"id":"m","arrival":0,"ready":0,"deadline":20,"duration":5,"npe":1,"accepted":true,"start":15,"end":20,"pes":"4","promised_start":12,"moved_from":[{"at":10,"start":12,"end":17,"npe":1,"pes":"4","cause":"c"}]}
`
	if report := on(t, 10, text); !report.Valid() {
		t.Error(report.Violations)
	}
	report := on(t, 10, strings.Replace(text, `"npe":1,"pes":"4","cause":"c"`, `"npe":1,"pes":"0","cause":"c"`, 1))
	if len(report.Violations) != 1 || report.Violations[0].Class != check.Moved {
		t.Errorf("it had given up that PE: %v", report.Violations)
	}
}

// An outage that was over takes no PEs any more, however long it was expected to last.
func TestStretchAfterAnOutageThatWasOver(t *testing.T) {
	for _, row := range []struct{ start, over, violations int }{{2, 8, 1}, {2, 10, 1}, {40, 40, 0}, {40, 50, 0}} {
		lines := fmt.Sprintf(`{"id":"r","arrival":0,"ready":10,"deadline":90,"duration":40,"npe":3,"accepted":true,"start":10,"end":50,"pes":"0-2","stretches":[{"from":40,"npe":2,"pes":"0,2","cause":"o"}]}
{"id":"o","kind":"outage","npe":1,"start":%d,"end":60,"pes":"1","actual_end":%d}`, row.start, row.over)
		if got := on(t, 4, lines).Violations; len(got) != row.violations {
			t.Errorf("from %d to %d: %q, want %d violations", row.start, row.over, got, row.violations)
		}
	}
}

// A job that says no times holds nothing up that comes after it, also before time 0.
func TestAfterAJobWithoutTimes(t *testing.T) {
	lines := `{"id":"j","kind":"job","npe":1}
{"id":"r","arrival":-90,"ready":-80,"deadline":0,"duration":40,"npe":3,"accepted":true,"start":-50,"end":-10,"after":["j"]}`
	if got := on(t, 4, lines).Violations; len(got) != 0 {
		t.Error(got)
	}
}

// What was lost before the start is told at the start: by then the outage may be over, and the PEs may be
// another's.
func TestStretchAtTheStartAfterAnOutage(t *testing.T) {
	for _, row := range []struct{ from, start, over, violations int }{{10, 5, 8, 0}, {10, 2, 4, 0}, {10, 2, 3, 1}, {11, 5, 8, 1}} {
		lines := fmt.Sprintf(`{"id":"r","arrival":4,"ready":10,"deadline":90,"duration":40,"npe":3,"accepted":true,"start":10,"end":50,"pes":"0-2","stretches":[{"from":%d,"npe":2,"pes":"0,2","cause":"o"}]}
{"id":"o","kind":"outage","npe":1,"start":%d,"end":60,"pes":"1","actual_end":%d}`, row.from, row.start, row.over)
		if got := on(t, 4, lines).Violations; len(got) != row.violations {
			t.Errorf("at %d, from %d to %d: %q, want %d violations", row.from, row.start, row.over, got, row.violations)
		}
	}
}

// What was lost before the start may be lost to an outage that begins before the end; what is lost later only if it was
// announced by then.
func TestStretchBeforeAnOutage(t *testing.T) {
	for _, row := range []struct {
		from, start int
		announced   string
		violations  int
	}{
		{10, 10, "", 0},
		{10, 49, "", 0},
		{10, 50, "", 1},
		{11, 12, "", 1},
		{11, 12, `"arrival":12,`, 1},
		{11, 12, `"arrival":11,`, 0},
		{11, 49, `"arrival":0,`, 0},
		{11, 50, `"arrival":0,`, 1},
	} {
		for _, pes := range []string{`,"pes":"0-2"`, ""} {
			lines := fmt.Sprintf(`{"id":"r","arrival":4,"ready":10,"deadline":90,"duration":40,"npe":3,"accepted":true,"start":10,"end":50%s,"stretches":[{"from":%d,"npe":2,"pes":"0,2","cause":"o"}]}
{"id":"o","kind":"outage",%s"npe":1,"start":%d,"end":60,"pes":"1"}`, pes, row.from, row.announced, row.start)
			want := row.violations
			if pes == "" {
				want *= 2 // PEs that it lacks are counted too
			}
			if got := on(t, 4, lines).Violations; len(got) != want {
				t.Errorf("PEs%s from %d, the outage from %d (%s): %q, want %d violations", pes, row.from, row.start, row.announced, got, want)
			}
		}
	}
}

// What is promised beyond the size of a pool, where outages have displaced others to, may be lacking beside what the outages take; no more is.
func TestStretchBesideTheDisplaced(t *testing.T) {
	for _, row := range []struct{ other, has, violations int }{{3, 0, 0}, {2, 0, 1}, {2, 1, 0}, {1, 1, 1}, {1, 2, 0}} {
		lines := fmt.Sprintf(`{"id":"r","arrival":0,"ready":10,"deadline":90,"duration":40,"npe":3,"accepted":true,"start":10,"end":50,"stretches":[{"from":10,"npe":%d,"cause":"o"}]}
{"id":"s","arrival":0,"ready":10,"deadline":90,"duration":30,"npe":%d,"accepted":true,"start":20,"end":50}
{"id":"before","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":3,"accepted":true,"start":0,"end":10}
{"id":"o","kind":"outage","npe":1,"start":5,"end":60,"pes":"1"}`, row.has, row.other)
		if got := on(t, 4, lines).Violations; len(got) != row.violations {
			t.Errorf("%d PEs beside another of %d: %q, want %d violations", row.has, row.other, got, row.violations)
		}
	}
}
