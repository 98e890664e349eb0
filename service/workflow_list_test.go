package service

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// A list of workflows is all that a principal may see, in the order of their ids, page by page, also of
// those that came or were forgotten between two lists. It tells how many workflows and tasks it has
// looked at; tasks of others are not among them.
func TestListsOfWorkflowsArePaged(t *testing.T) {
	c, err := newCore(engine.Config{Sites: []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Late}}}}}, "test", 100)
	if err != nil {
		t.Fatal(err)
	}
	var shows display
	shows.begin(c)
	number := c.position.Number
	refused := func(id, user string, tasks int) {
		number++
		c.newFlow(0, &change.Change{Kind: change.WorkflowRefused, Workflow: &berth.Workflow{ID: id, User: user, Tasks: make([]berth.WorkflowTask, tasks)}}, number)
	}
	var want []string
	for i := range 60 {
		id, user := fmt.Sprintf("w%02d", (i*7)%60), []string{"ann", "bob"}[i%2]
		if refused(id, user, 1+i%5); user == "ann" {
			want = append(want, id)
		}
	}
	look := func() *model {
		news := c.takeShown()
		shows.show(&news)
		return shows.look()
	}
	list := func(by Principal, page int) (ids []string, looked int) {
		m, filter := look(), FlowFilter{Limit: page}
		for {
			list, n := m.workflows(t.Context(), by, &filter)
			looked += n
			for i := range list {
				ids = append(ids, list[i].Workflow.ID)
			}
			if len(list) < page {
				return ids, looked
			}
			filter.After = ids[len(ids)-1]
		}
	}
	slices.Sort(want)
	ann := Principal{User: "ann", Role: User}
	for _, page := range []int{1, 7, 60} {
		if got, looked := list(ann, page); !slices.Equal(got, want) || looked != 60+90 {
			t.Errorf("by %d: %v with %d looked at, want %v with 60 workflows and 90 tasks", page, got, looked, want)
		}
	}
	before := look()
	refused("w001", "ann", 1)
	if got, _ := list(ann, 60); !slices.Contains(got, "w001") {
		t.Errorf("a new one is not in %v", got)
	}
	refused("w001", "ann", 2) // it is asked for again
	tasks := 0
	for _, id := range c.flows.over {
		tasks += len(c.flows.byID[id].tasks)
	}
	if len(c.flows.over) != 61 || c.flows.past != tasks {
		t.Errorf("%d are over with %d tasks, want 61 with %d", len(c.flows.over), c.flows.past, tasks)
	}
	for i := range keepFlows {
		refused(fmt.Sprintf("x%05d", i), "bob", 1)
	}
	if got, _ := list(ann, 60); len(got) > 0 {
		t.Errorf("%v are forgotten and shown", got)
	}
	refused("large", "ann", keepFlowTasks-10)
	if len(c.flows.over) != 11 || len(c.flows.byID) != 11 || c.flows.past != keepFlowTasks {
		t.Errorf("%d are remembered with %d tasks, want 11 with %d", len(c.flows.over), c.flows.past, keepFlowTasks)
	}
	if refused("larger", "ann", keepFlowTasks+1); len(c.flows.over) != 1 {
		t.Errorf("%d are remembered, want the last however large", len(c.flows.over))
	}
	if list, _ := before.workflows(t.Context(), ann, &FlowFilter{Limit: 60}); len(list) != len(want) {
		t.Errorf("what was shown before has %d by now, had %d", len(list), len(want))
	}
}
