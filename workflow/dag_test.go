package workflow_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/workflow"
)

func task(id string) workflow.Task { return workflow.Task{ID: id, Sequential: 10} }

func TestNewRefuses(t *testing.T) {
	many := make([]workflow.Task, 30)
	var ring []workflow.Edge
	for i := range many {
		many[i] = task(string(rune('A' + i)))
		ring = append(ring, workflow.Edge{Parent: string(rune('A' + i)), Child: string(rune('A' + (i+1)%30))})
	}
	for _, c := range []struct {
		name  string
		tasks []workflow.Task
		edges []workflow.Edge
		field string
		says  string
	}{
		{"nothing", nil, nil, "tasks", "at least one task"},
		{"no id", []workflow.Task{task("a"), task("")}, nil, "id", "at task 2"},
		{"one id twice", []workflow.Task{task("a"), task("b"), task("a")}, nil, "id", `"a" belongs to tasks 1 and 3`},
		{"unknown parent", []workflow.Task{task("a")}, []workflow.Edge{{"x", "a"}}, "parents", `"a" names the parent "x"`},
		{"unknown child", []workflow.Task{task("a")}, []workflow.Edge{{"a", "y"}}, "children", `"a" names the child "y"`},
		{"negative time", []workflow.Task{{ID: "a", Sequential: -1}}, nil, "sequential", `"a" has -1 s`},
		{"no time", []workflow.Task{{ID: "a", Sequential: math.NaN()}}, nil, "sequential", "NaN"},
		{"endless time", []workflow.Task{{ID: "a", Sequential: math.Inf(1)}}, nil, "sequential", "2^42"},
		{"too much time", []workflow.Task{{ID: "a", Sequential: 1 << 41}, {ID: "b", Sequential: 1 << 41}}, nil, "sequential", `"b"`},
		{"alpha below", []workflow.Task{{ID: "a", Alpha: -0.1}}, nil, "alpha", `"a" has -0.1`},
		{"alpha above", []workflow.Task{{ID: "a", Alpha: 1.1}}, nil, "alpha", "0 to 1"},
		{"alpha not a number", []workflow.Task{{ID: "a", Alpha: math.NaN()}}, nil, "alpha", "NaN"},
		{"own parent", []workflow.Task{task("a")}, []workflow.Edge{{"a", "a"}}, "parents", "a → a form a cycle"},
		{
			"cycle",
			[]workflow.Task{task("a"), task("b"), task("c"), task("d"), task("e")},
			[]workflow.Edge{{"a", "c"}, {"c", "d"}, {"d", "e"}, {"e", "c"}, {"e", "b"}},
			"parents", "c → d → e → c form a cycle",
		},
		{"long cycle", many, ring, "parents", "A → B → C → D → E → F → G → H → I → J → K → L → … → A form a cycle"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := workflow.New(c.tasks, c.edges)
			var e *berth.Error
			if !errors.As(err, &e) {
				t.Fatalf("error is %v, want a *berth.Error", err)
			}
			if e.Code != berth.Invalid || e.Field != c.field || !strings.Contains(e.Msg, c.says) {
				t.Errorf("got %s %s: %s; want invalid %s: …%s…", e.Code, e.Field, e.Msg, c.field, c.says)
			}
		})
	}
}

func TestNewKeepsOrder(t *testing.T) {
	w, err := workflow.New(
		[]workflow.Task{task("z"), task("m"), task("a"), {ID: "b", Name: "last", Alpha: 1}},
		[]workflow.Edge{{"b", "z"}, {"b", "a"}, {"z", "m"}, {"a", "m"}, {"z", "m"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	if w.Len() != 4 || w.Edges() != 4 || w.Task(3).Name != "last" {
		t.Errorf("%d tasks, %d edges, last %v", w.Len(), w.Edges(), w.Task(3))
	}
	if got := w.Topological(); !slices.Equal(got, []int32{3, 0, 2, 1}) {
		t.Errorf("topological order is %v", got)
	}
	if got := w.Parents(1); !slices.Equal(got, []int32{0, 2}) {
		t.Errorf("parents are %v", got)
	}
	if got := w.Children(3); !slices.Equal(got, []int32{0, 2}) {
		t.Errorf("children are %v", got)
	}
}

// Parents come first, and of the tasks that could be next the one of smallest
// index.
func TestTopologicalOrder(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 4))
		w := randomWorkflow(rng, 1+rng.IntN(60))
		listed := make([]bool, w.Len())
		for place, got := range w.Topological() {
			want := int32(-1)
			for i := range w.Len() {
				waits := slices.ContainsFunc(w.Parents(i), func(p int32) bool { return !listed[p] })
				if !listed[i] && !waits {
					want = int32(i)
					break
				}
			}
			if got != want {
				t.Fatalf("seed %d: task %d at place %d, want %d", seed, got, place, want)
			}
			listed[got] = true
		}
	}
}
