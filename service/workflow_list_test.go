package service

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// A long list of workflows is made in pieces, for none of which the loop looks at more than so
// many tasks; together they are all that somebody may see, in the order of their ids, also of
// those that came or were forgotten between two lists.
func TestListsOfWorkflowsAreMadeInPieces(t *testing.T) {
	c, err := newCore(engine.Config{Sites: []berth.Site{{Name: "s", Pools: []berth.Pool{{Name: "p", PEs: 4, Binding: berth.Late}}}}}, "test", 100)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(id, user string, tasks int) {
		c.newFlow(0, &change.Change{Kind: change.WorkflowRefused, Workflow: &berth.Workflow{ID: id, User: user, Tasks: make([]berth.WorkflowTask, tasks)}})
	}
	var want []string
	for i := range 60 {
		id, user := fmt.Sprintf("w%02d", (i*7)%60), []string{"ann", "bob"}[i%2]
		if refused(id, user, 1+i%5); user == "ann" {
			want = append(want, id)
		}
	}
	list := func(by Principal, filter FlowFilter, tasks int) (ids []string, pieces int) {
		for more := true; more; pieces++ {
			p := c.someFlows(by, &filter, tasks)
			if looked := len(p.list); looked > 1 && looked*2 > tasks {
				t.Errorf("%d workflows are looked at in one go", looked)
			}
			for i := range p.list {
				ids = append(ids, p.list[i].Workflow.ID)
			}
			if more = p.more && len(ids) < 60 && pieces < 100; p.more && p.last <= filter.After {
				t.Fatalf("a piece ends at %q and began at %q", p.last, filter.After)
			}
			filter.After = p.last
		}
		return ids, pieces
	}
	slices.Sort(want)
	ann := Principal{User: "ann", Role: User}
	for _, tasks := range []int{1, 12, 1000} {
		got, pieces := list(ann, FlowFilter{Limit: 60}, tasks)
		if !slices.Equal(got, want) {
			t.Errorf("with %d tasks at once: %v, want %v", tasks, got, want)
		}
		if least := map[int]int{1: 60, 12: 15, 1000: 1}[tasks]; pieces < least || tasks == 1000 && pieces > 1 {
			t.Errorf("with %d tasks at once there are %d pieces, want at least %d", tasks, pieces, least)
		}
	}
	if p := c.someFlows(ann, &FlowFilter{Limit: 3, After: want[4]}, 1000); len(p.list) != 3 || p.last != want[7] || p.list[0].Workflow.ID != want[5] || !p.more {
		t.Errorf("a page of three behind %s ends at %s, has %d, %t", want[4], p.last, len(p.list), p.more)
	}
	refused("w001", "ann", 1)
	if got, _ := list(ann, FlowFilter{Limit: 60}, 1000); !slices.Contains(got, "w001") {
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
	if got, _ := list(ann, FlowFilter{Limit: 60}, 100_000); len(got) > 0 {
		t.Errorf("%v are forgotten and shown", got)
	}
	refused("large", "ann", keepFlowTasks-10)
	if len(c.flows.over) != 11 || len(c.flows.byID) != 11 || c.flows.past != keepFlowTasks {
		t.Errorf("%d are remembered with %d tasks, want 11 with %d", len(c.flows.over), c.flows.past, keepFlowTasks)
	}
	if refused("larger", "ann", keepFlowTasks+1); len(c.flows.over) != 1 {
		t.Errorf("%d are remembered, want the last however large", len(c.flows.over))
	}
}
