package check_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/check"
)

// moved is a schedule on ten PEs in which promises move for each reason that
// there is: o takes PEs 0 and 1, c goes on for too long on PE 8, the data of d are
// late.
const moved = `
{"id":"o","kind":"outage","npe":2,"start":5,"end":60,"actual_end":40,"pes":"0-1"}
{"id":"c","kind":"job","npe":1,"start":0,"end":10,"actual_end":16,"limit":18,"pes":"8"}
{"id":"a","arrival":0,"ready":0,"deadline":30,"duration":10,"npe":4,"accepted":true,"start":10,"end":20,"pes":"2-5","promised_start":10,"moved_from":[{"at":5,"start":10,"end":20,"npe":4,"pes":"0-3","cause":"o"}]}
{"id":"b","arrival":0,"ready":0,"deadline":20,"duration":8,"npe":2,"accepted":true,"start":18,"end":26,"pes":"8-9","promised_start":12,"moved_from":[{"at":10,"start":12,"end":20,"npe":2,"pes":"8-9","cause":"c"}]}
{"id":"d","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":1,"accepted":true,"start":36,"end":46,"pes":"7","storage_mb":5,"promised_start":30,"moved_from":[{"at":20,"start":30,"end":40,"npe":1,"pes":"7","staged":36}]}
{"id":"d","kind":"staging","start":0,"end":36}
{"id":"e","arrival":0,"ready":0,"deadline":50,"duration":10,"npe":9,"accepted":false,"reason":"no_capacity","promised_start":30,"moved_from":[{"at":5,"start":30,"end":40,"npe":9,"pes":"1-9","cause":"o"}]}
{"id":"f","arrival":0,"ready":0,"deadline":90,"duration":5,"npe":1,"accepted":true,"start":61,"end":66,"pes":"0","promised_start":20,"moved_from":[{"at":5,"start":20,"end":25,"npe":1,"pes":"1","cause":"o"},{"at":5,"start":50,"end":55,"npe":1,"pes":"0","cause":"o"}]}
{"id":"g","part":1,"arrival":0,"ready":0,"deadline":90,"duration":5,"npe":1,"accepted":true,"start":75,"end":80,"pes":"0","promised_start":8,"moved_from":[{"at":5,"start":8,"end":13,"npe":1,"pes":"0","cause":"o"}]}
{"id":"g","part":2,"arrival":0,"ready":0,"deadline":90,"duration":5,"npe":1,"accepted":true,"start":75,"end":80,"pes":"6","promised_start":8,"moved_from":[{"at":5,"start":8,"end":13,"npe":1,"pes":"6","cause":"o"}]}
{"id":"h","arrival":0,"ready":0,"deadline":90,"duration":5,"npe":1,"accepted":false,"reason":"expired","moved_from":[{"at":4,"start":50,"end":55,"npe":1,"pes":"6"}]}
{"id":"j","kind":"job","npe":1,"start":85,"end":86,"pes":"0","moved_from":[{"at":5,"start":5,"end":6,"npe":1,"pes":"0","cause":"o"}]}
{"id":"m","arrival":0,"ready":0,"deadline":90,"duration":3,"npe":2,"variants":[{"npe":1,"duration":6},{"npe":2,"duration":3}],"accepted":true,"start":5,"end":8,"pes":"6-7","promised_start":6,"moved_from":[{"at":5,"start":6,"end":12,"npe":1,"pes":"1","cause":"o"}]}
`

// replanned is a task of a workflow that had PEs of a pool of four, without numbers, until seven;
// because of that r had to give way to an outage of two. s was given up by its workflow.
const replanned = `
{"id":"o","kind":"outage","npe":2,"start":5,"end":60,"actual_end":40,"pes":"0-1"}
{"id":"w.1","workflow":"w","task":"a","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":1,"accepted":true,"start":60,"end":70,"replanned_from":[{"at":7,"start":10,"end":20,"npe":2}]}
{"id":"w.2","workflow":"w","task":"b","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":2,"accepted":false,"replanned_from":[{"at":4,"start":40,"end":50,"npe":1},{"at":8,"start":30,"end":40,"npe":2}]}
{"id":"r","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":2,"accepted":true,"start":60,"end":70,"promised_start":10,"moved_from":[{"at":5,"start":10,"end":20,"npe":2,"cause":"o"}]}
`

// The places of tasks under earlier plans need no reason, and count where others moved.
func TestPlacesOfTasksUnderEarlierPlans(t *testing.T) {
	for _, tt := range []struct {
		name, old, new string
		want           []string
	}{
		{"as it is", `"w.1"`, `"w.1"`, nil},
		{"the task was elsewhere by then", `{"at":7,`, `{"at":4,`, []string{"moved [o r] [2 5]"}},
		{"nothing was taken", `{"at":7,"start":10,"end":20,"npe":2}`, `{"at":7,"start":20,"end":30,"npe":2}`, []string{"moved [o r] [2 5]"}},
		{"no task of a workflow", `"workflow":"w","task":"a",`, ``, []string{"moved [w.1] [3]"}},
		{"backwards", `{"at":8,`, `{"at":3,`, []string{"moved [w.2] [4]"}},
		{"no time", `"start":30,"end":40`, `"start":40,"end":40`, []string{"moved [w.2] [4]"}},
		{"more than there are", `"start":30,"end":40,"npe":2`, `"start":30,"end":40,"npe":5`, []string{"too_large [w.2] [4]"}},
		{"refused without a reason", `,"replanned_from":[{"at":4,"start":40,"end":50,"npe":1},{"at":8,"start":30,"end":40,"npe":2}]`, ``, []string{"reason [w.2] [4]"}},
		{"no number", `{"at":7,`, `{"at":"x",`, []string{"unreadable [w.1] [3]", "moved [o r] [2 5]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantViolations(t, on(t, 4, edited(t, replanned, tt.old, tt.new)).Violations, tt.want)
		})
	}
}

func TestValidMoves(t *testing.T) {
	if report := on(t, 10, moved); !report.Valid() {
		t.Error(report.Violations)
	}
}

// TestViolationsOfMoves makes one small change and expects exactly these
// violations, each as its class, ids and lines.
func TestViolationsOfMoves(t *testing.T) {
	const ofA, ofB = `{"at":5,"start":10,"end":20,"npe":4,"pes":"0-3","cause":"o"}`, `"start":12,"end":20,"npe":2,"pes":"8-9","cause":"c"`
	for _, tt := range []struct {
		name, old, new string
		want           []string
	}{
		{"no word about the move", `,"moved_from":[` + ofA + `]`, ``, []string{"moved [a] [4]"}},
		{"nothing was promised", `"promised_start":10,`, ``, []string{"moved [a] [4]"}},
		{"another start was promised", `"promised_start":10,`, `"promised_start":9,`, []string{"moved [a] [4]"}},
		{"no reason", `"pes":"0-3","cause":"o"`, `"pes":"0-3"`, []string{"moved [a] [4]"}},
		{"unknown reason", `"pes":"0-3","cause":"o"`, `"pes":"0-3","cause":"x"`, []string{"moved [a] [4]"}},
		{"a request that ended in time", `"pes":"0-3","cause":"o"`, `"pes":"0-3","cause":"d"`, []string{"moved [a d] [4 6 7]"}},
		{"other PEs fell", `"npe":2,"start":5,"end":60,"actual_end":40,"pes":"0-1"`, `"npe":2,"start":5,"end":60,"actual_end":40,"pes":"1,4"`, []string{"identity [o a] [2 4]", "moved [o f] [2 9]", "moved [o g] [2 10 11]"}},
		{"they would have come back", `"end":60,"actual_end":40`, `"end":50,"actual_end":40`, []string{"moved [o f] [2 9]"}},
		{"they fell later", `{"at":5,"start":10`, `{"at":4,"start":10`, []string{"moved [o a] [2 4]"}},
		{"they were back", ofA, strings.Replace(ofA, `"at":5,"start":10,"end":20`, `"at":41,"start":10,"end":50`, 1), []string{"moved [o a] [2 4]", "window [a] [4]"}},
		{"they fell before the promise", `"a","arrival":0,"ready":0`, `"a","arrival":6,"ready":6`, []string{"moved [o a] [2 4]", "moved [a] [4]"}},
		{"they fell behind it", `"at":5,"start":6,"end":12`, `"at":5,"start":0,"end":5`, []string{"moved [m] [14]", "moved [o m] [2 14]"}},
		{"only a while after it was over", ofA, strings.Replace(ofA, `"end":20`, `"end":5`, 1), []string{"moved [a] [4]", "moved [o a] [2 4]"}},
		{"no overrun", `"actual_end":16,"limit":18`, `"actual_end":10`, []string{"moved [c b] [3 5]", "window [b] [5]"}},
		{"it could not go on for so long", `"actual_end":16,"limit":18`, `"actual_end":12,"limit":12`, []string{"moved [c b] [3 5]", "window [b] [5]"}},
		{"it went on before", `{"at":10,"start":12`, `{"at":9,"start":12`, []string{"moved [c b] [3 5]", "window [b] [5]"}},
		{"it had ended", `{"at":10,"start":12`, `{"at":17,"start":12`, []string{"moved [c b] [3 5]", "window [b] [5]"}},
		{"it was on other PEs", ofB, strings.Replace(ofB, `"8-9"`, `"6-7"`, 1), []string{"moved [c b] [3 5]", "window [b] [5]"}},
		{"an end beyond the deadline for an outage", `"deadline":30`, `"deadline":19`, []string{"window [a] [4]", "window [a] [4]"}},
		{"data in time", `"staged":36`, `"staged":30`, []string{"moved [d] [6]"}},
		{"no data", `"storage_mb":5,`, ``, []string{"moved [d] [6]"}},
		{"a promise before ready", `"a","arrival":0,"ready":0`, `"a","arrival":0,"ready":11`, []string{"window [a] [4]", "window [a] [4]"}},
		{"a broken promise before ready", `"e","arrival":0,"ready":0`, `"e","arrival":0,"ready":31`, []string{"window [e] [8]"}},
		{"a broken promise beyond the deadline", `"deadline":50`, `"deadline":41,"x":0`, nil},
		{"a broken promise long beyond the deadline", `{"at":5,"start":30,"end":40`, `{"at":5,"start":30,"end":51`, []string{"window [e] [8]"}},
		{"broken without a reason", `"pes":"1-9","cause":"o"`, `"pes":"1-9"`, []string{"moved [e] [8]"}},
		{"broken by a policy", `"reason":"no_capacity","promised_start":30`, `"reason":"policy_refused","promised_start":30`, []string{"reason [e] [8]"}},
		{"broken by a quota", `"reason":"no_capacity","promised_start":30`, `"reason":"quota","promised_start":30`, []string{"reason [e] [8]"}},
		{"a hold that was refused", `"reason":"expired"`, `"reason":"no_capacity"`, []string{"moved [h] [12]", "moved [h] [12]"}},
		{"of another size", `{"at":5,"start":10,"end":20,"npe":4,"pes":"0-3"`, `{"at":5,"start":10,"end":20,"npe":3,"pes":"0-2"`, []string{"moved [a] [4]"}},
		{"none of the variants", `"end":12,"npe":1,"pes":"1"`, `"end":12,"npe":3,"pes":"1-3"`, []string{"moved [m] [14]"}},
		{"PEs that are not there", `"npe":9,"pes":"1-9"`, `"npe":9,"pes":"1-8,10"`, []string{"range [e] [8]"}},
		{"more than there are", `"npe":9,"pes":"1-9"`, `"npe":11,"pes":"1-11"`, []string{"moved [e] [8]", "range [e] [8]", "too_large [e] [8]"}},
		{"not as many as promised", `"npe":9,"pes":"1-9"`, `"npe":9,"pes":"1-8"`, []string{"count [e] [8]"}},
		{"one part moves alone", `{"at":5,"start":8,"end":13,"npe":1,"pes":"6","cause":"o"}`, `{"at":5,"start":8,"end":13,"npe":1,"pes":"6","cause":"o"},{"at":5,"start":8,"end":13,"npe":1,"pes":"0","cause":"o"}`, []string{"moved [g] [10 11]"}},
		{"one part stays", `,"promised_start":8,"moved_from":[{"at":5,"start":8,"end":13,"npe":1,"pes":"6","cause":"o"}]`, ``, []string{"moved [g] [10 11]"}},
		{"no part is in the way", `"start":8,"end":13,"npe":1,"pes":"0"`, `"start":8,"end":13,"npe":1,"pes":"7"`, []string{"moved [o g] [2 10 11]"}},
		{"back in time", `{"at":5,"start":50`, `{"at":4,"start":50`, []string{"moved [o f] [2 9]", "moved [f] [9]"}},
		{"moved before it came", `"b","arrival":0`, `"b","arrival":11`, []string{"moved [b] [5]", "request [b] [5]"}},
		{"a job needs no reason", `"end":6,"npe":1,"pes":"0","cause":"o"`, `"end":6,"npe":1,"pes":"0"`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wantViolations(t, on(t, 10, edited(t, moved, tt.old, tt.new)).Violations, tt.want)
		})
	}
}

// counted is a schedule on ten PEs that have no numbers before things start: o
// takes three, for which k makes room, and c three more, for which n does.
const counted = `
{"id":"o","kind":"outage","npe":3,"start":5,"end":60,"pes":"0-2"}
{"id":"c","kind":"job","npe":3,"start":40,"end":50,"actual_end":52,"limit":60}
{"id":"i","arrival":0,"ready":0,"deadline":90,"duration":10,"npe":6,"accepted":true,"start":10,"end":20,"pes":"4-9"}
{"id":"k","arrival":1,"ready":1,"deadline":90,"duration":20,"npe":4,"accepted":true,"start":20,"end":40,"promised_start":10,"moved_from":[{"at":5,"start":10,"end":30,"npe":4,"cause":"o"}]}
{"id":"l","arrival":2,"ready":2,"deadline":90,"duration":5,"npe":4,"accepted":true,"start":54,"end":59}
{"id":"n","arrival":2,"ready":2,"deadline":90,"duration":9,"npe":1,"accepted":true,"start":60,"end":69,"promised_start":51,"moved_from":[{"at":50,"start":51,"end":60,"npe":1,"cause":"c"}]}
`

// What happens in another pool moves nothing in this one.
func TestMovesAreForReasonsOfTheirPool(t *testing.T) {
	const schedule = `
{"id":"o","kind":"outage","site":"s","pool":"p","pool_pes":4,"npe":4,"start":5,"end":60,"pes":"0-3"}
{"id":"a","site":"s","pool":"POOL","pool_pes":4,"arrival":0,"ready":0,"deadline":90,"duration":10,"npe":2,"accepted":true,"start":60,"end":70,"pes":"0-1","promised_start":10,"moved_from":[{"site":"s","pool":"POOL","at":5,"start":10,"end":20,"npe":2,"pes":"0-1","cause":"o"}]}
`
	for pool, want := range map[string][]string{"p": nil, "q": {"moved [o a] [2 3]"}} {
		wantViolations(t, on(t, 0, strings.ReplaceAll(schedule, "POOL", pool)).Violations, want)
	}
}

func TestMovesAreCounted(t *testing.T) {
	const sixPEs = `"arrival":0,"ready":0,"deadline":90,"duration":10,"npe":6,"accepted":true,"start":10,"end":20,"pes":"4-9"`
	for _, tt := range []struct {
		name, old, new string
		want           []string
	}{
		{"as it is", `"k"`, `"k"`, nil},
		{"there is room beside the outage", `"npe":6,"accepted":true,"start":10,"end":20,"pes":"4-9"`, `"npe":3,"accepted":true,"start":10,"end":20,"pes":"4-6"`, []string{"moved [o k] [2 5]"}},
		{"what came later was not in the way", `"i","arrival":0,"ready":0`, `"i","arrival":6,"ready":6`, []string{"moved [o k] [2 5]"}},
		{"it was in the way for a second", `{"at":5,"start":10,"end":30`, `{"at":5,"start":19,"end":39`, []string{"moved [k] [5]"}},
		{"it was not in the way", `{"at":5,"start":10,"end":30`, `{"at":5,"start":20,"end":40`, []string{"moved [o k] [2 5]", "moved [k] [5]"}},
		{"what was in the way ended early", `"end":20,"pes":"4-9"`, `"end":20,"actual_end":15,"pes":"4-9"`, nil},
		{"what had ended early was not in the way", sixPEs, `"arrival":0,"ready":0,"deadline":90,"duration":20,"npe":6,"accepted":true,"start":0,"end":20,"actual_end":3,"pes":"4-9"`, []string{"moved [o k] [2 5]"}},
		{"a job that says only when it ended was in the way", sixPEs, `"kind":"job","npe":6,"start":4,"actual_end":20`, nil},
		{"such a job had ended", sixPEs, `"kind":"job","npe":6,"start":4,"actual_end":10`, []string{"moved [o k] [2 5]"}},
		{"there is room beside what goes on", `"npe":4,"accepted":true,"start":54`, `"npe":3,"accepted":true,"start":54`, []string{"moved [c n] [3 7]"}},
		{"it could not go on for so long", `"actual_end":52,"limit":60`, `"actual_end":52,"limit":54`, []string{"moved [c n] [3 7]"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			report := on(t, 10, edited(t, counted, tt.old, tt.new))
			others := func(v check.Violation) bool { return v.Class != check.Moved }
			wantViolations(t, slices.DeleteFunc(report.Violations, others), tt.want)
		})
	}
}

// A promise that is delayed may have to have its data moved once more: for as long as that its PEs are held beyond what its
// deadline leaves. One that stayed where it was has no such reason.
func TestDataThatAreMovedOnceMore(t *testing.T) {
	const (
		other   = `{"id":"b","kind":"request","arrival":33,"ready":33,"deadline":109,"duration":38,"npe":1,"accepted":true,"start":33,"end":71,"pes":"0","actual_end":75,"limit":75}` + "\n"
		data    = `{"id":"a","kind":"staging","start":74,"end":95}` + "\n"
		delayed = `{"id":"a","kind":"request","arrival":33,"ready":56,"deadline":77,"duration":22,"npe":4,"accepted":true,"start":74,"end":96,"pes":"1-4","transfer":21,"storage_mb":21,"promised_start":74,"moved_from":[{"at":74,"start":74,"end":77,"npe":4,"pes":"0-3","cause":"b"}]}` + "\n"
	)
	sites := []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 7, Binding: berth.Early}}}}
	if _, violations := onSites(t, delayed+other+data, sites); violations != nil {
		t.Error(violations)
	}
	longer := strings.NewReplacer(`"duration":22`, `"duration":43`, `"end":96`, `"end":117`).Replace(delayed)
	stayed := delayed[:strings.Index(delayed, `,"promised_start"`)] + "}\n"
	for name, text := range map[string]string{"it stayed": stayed, "it lasts for longer than that": longer} {
		if got, _ := onSites(t, text+other+data, sites); !slices.Contains(got, "deadline [a] [1]") {
			t.Errorf("%s: %v", name, got)
		}
	}
}
