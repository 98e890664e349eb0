package change_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine/change"
)

// Kinds lists every constant of type Kind, in the order in which they are declared.
func TestKindsListsEveryKind(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "change.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var declared []change.Kind
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if of, ok := spec.Type.(*ast.Ident); ok && of.Name == "Kind" {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, change.Kind(value))
		}
		return true
	})
	if got := change.Kinds(); len(declared) == 0 || !slices.Equal(got, declared) {
		t.Errorf("Kinds returns %q, declared are %q", got, declared)
	}
}

// full returns a change with every field set.
func full(kind change.Kind) change.Change {
	request := berth.Rigid("a", 1, 2, 30, 4, 5)
	allotment := berth.Allotment{Resource: berth.PoolID("s", "p"), Start: 5, End: 10, NPE: 2, PEs: berth.PEsOf(1, 3)}
	transfer := berth.Transfer{Site: "s", Start: 1, End: 5, Since: 2, Kilobytes: 7, Rate: 1}
	terms := berth.Terms{Variants: request.Parts[0].Variants, Extended: 3, Deadline: 30, Expires: 4}
	return change.Change{
		Kind: kind, Now: 1, Pass: 2, ID: "a", Part: 1, Request: &request, Plan: &allotment,
		Reservation: &berth.Reservation{
			Request: &request, State: berth.Held, Sequence: 1, Allotments: []berth.Allotment{allotment}, Terms: terms,
			Stocks: []berth.Allotment{allotment}, Transfers: []berth.Transfer{transfer}, Generation: 2, Missing: 1, CheckedIn: true, Expires: 4,
		},
		Refusal: &berth.Refusal{Reason: berth.NoCapacity, Resource: allotment.Resource, Wanted: 4, Nearest: &berth.Nearest{NPE: 2, Duration: 5, Start: 6}},
		Outage:  &berth.Outage{Number: 1, Name: "o", Resource: allotment.Resource, PEs: allotment.PEs, From: 2, Until: 9},
		Until:   8, Moved: []berth.Allotment{allotment}, Terms: &terms, Stocks: []berth.Allotment{allotment}, Transfers: []berth.Transfer{transfer},
		PEs: []berth.PESet{allotment.PEs}, Forecast: &berth.Forecast{Site: "s", From: 1, Period: 60, Kilobytes: []int64{5, 6}},
		Effect: &change.Effect{Number: 1, Site: "s", Reservation: "a", Generation: 2}, EffectID: 1,
		Workflow: &berth.Workflow{ID: "w", Deadline: 9, Repair: berth.RepairBoth, Tasks: []berth.WorkflowTask{{ID: "t", Seconds: 1.5, Alpha: .5, After: []int{0}}}},
		Flow:     &change.Flow{Workflow: "w", Task: 1, Outcome: berth.Skipped, Why: "x", Cause: change.CauseLate, Repair: berth.RepairLate, Moved: 1, End: 9, Before: 8},
		Series:   &berth.Series{ID: "s", Rule: "daily", Zone: "UTC", Least: 1, Request: request, Occurrences: []berth.Occurrence{{Ready: 1, Deadline: 9, Shift: berth.ShiftLater}}},
		Unfit:    []berth.RefusedOccurrence{{Number: 1, Refusal: berth.Refusal{Reason: berth.NoCapacity}}},
		Progress: &berth.Progress{Series: "s", Decided: 2, Last: 9, Waiting: []int{1}, Again: 7, Skipped: []int{4}},
	}
}

// A change of any kind, with every field or with none beside the kind, is the same
// when it is read back from JSON.
func TestChangesAsJSON(t *testing.T) {
	for _, kind := range change.Kinds() {
		for _, c := range []change.Change{full(kind), {Kind: kind}} {
			text, err := json.Marshal(&c)
			if err != nil {
				t.Fatal(err)
			}
			var again change.Change
			if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(c, again) {
				t.Errorf("%s is read back as %+v (%v)", text, again, err)
			}
		}
		if text, _ := json.Marshal(&change.Change{Kind: kind}); string(text) != `{"kind":"`+string(kind)+`"}` {
			t.Errorf("a change of kind %s alone is %s", kind, text)
		}
	}
	every := full(change.Advanced)
	for field, value := range reflect.ValueOf(every).Fields() {
		if value.IsZero() {
			t.Errorf("the change with every field has no %s", field.Name)
		}
	}
}

// What does not fit a field is an error that names it.
func TestMalformedChanges(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind":1}`:                                            "kind",
		`{"kind":"advanced","now":"soon"}`:                      "now",
		`{"kind":"ended","part":0.5}`:                           "part",
		`{"kind":"moved","moved":{}}`:                           "moved",
		`{"kind":"moved","moved":[{"npe":4294967296}]}`:         "npe",
		`{"kind":"settled","effect_id":-1}`:                     "effect_id",
		`{"kind":"started","pes":["3-1"]}`:                      "3-1",
		`{"kind":"emitted","effect":{"generation":"first"}}`:    "generation",
		`{"kind":"forecasted","forecast":{"kilobytes":[true]}}`: "kilobytes",
	} {
		var c change.Change
		if err := json.Unmarshal([]byte(text), &c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want an error that names %s", text, err, want)
		}
	}
}
