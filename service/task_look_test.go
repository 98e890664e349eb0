package service

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/site"
)

// Whatever a site lists, however odd, what a look shows is the same whether it is remembered what the last
// one listed as ended or not: jobs that run again with their old end still listed, that are listed twice,
// change after their end, vanish and come back, and whose reservation is found to be ours later.
func TestALookShowsTheSameWithNothingRemembered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		core := taskCore(t)
		var ended []site.Job
		running, pending := map[site.JobID]site.Job{}, map[site.JobID]site.Job{}
		ours := map[string]bool{"ours": true}
		owner := func(j *site.Job) string {
			if ours[j.Reservation] {
				return "r"
			}
			return ""
		}
		now, released := berth.Time(1000), false
		for range 80 {
			now++
			some := func() site.JobID { return site.JobID(rapid.StringMatching(`[1-6]`).Draw(t, "job")) }
			job := func(id site.JobID) site.Job {
				key := flowKey // of some
				if id < "3" {
					key = ""
				}
				reservation := "ours"
				if id == "6" {
					reservation = "unknown"
				}
				return site.Job{ID: id, Key: key, Reservation: reservation, Start: now, End: now + 50, Shares: []site.Share{{Node: "n1"}}}
			}
			for range rapid.IntRange(0, 2).Draw(t, "acts") {
				switch act := rapid.SampledFrom([]string{"run", "end", "end", "list again", "change", "prune", "wait", "vanish", "find", "release"}).Draw(t, "act"); act {
				case "run":
					id := some()
					running[id] = job(id)
				case "wait":
					id := some()
					pending[id] = job(id)
					delete(running, id)
				case "vanish":
					id := some()
					delete(running, id)
					delete(pending, id)
				case "end":
					id := some()
					j, is := running[id]
					if !is {
						j = job(id)
					}
					if delete(running, id); rapid.Bool().Draw(t, "ends") {
						j.End = now
					}
					ended = append(ended, j)
				case "list again":
					if len(ended) > 0 {
						j := ended[len(ended)-1]
						running[j.ID] = j
					}
				case "change":
					if len(ended) > 0 {
						ended = slices.Clone(ended)
						ended[rapid.IntRange(0, len(ended)-1).Draw(t, "which")].End++
					}
				case "prune":
					if len(ended) > 0 {
						ended = ended[1:]
					}
				case "find":
					ours["unknown"] = now > 1040
				case "release":
					event := engine.Cancel("r")
					if now > 1060 && !released {
						released = true
						if _, _, err := core.Step(now, &event, Key{}); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			listed := slices.Clone(ended)
			if rapid.Bool().Draw(t, "one list") {
				listed = slices.Clip(ended)
			}
			state := &site.State{At: now, Ended: listed}
			for _, id := range slices.Sorted(maps.Keys(running)) {
				state.Running = append(state.Running, running[id])
			}
			for _, id := range slices.Sorted(maps.Keys(pending)) {
				state.Pending = append(state.Pending, pending[id])
			}
			plainly := plainTasks(core, state, owner)
			events := core.newTasks("s", state, now, owner)
			if !reflect.DeepEqual(events, plainly) {
				t.Fatalf("a look shows\n%+v\nwith nothing remembered of the last one\n%+v", events, plainly)
			}
			if len(events) > 0 {
				core.seeTasks(now, &taskLook{site: "s", events: events})
				wantFlows(t, core.tasksAt("s"))
			}
		}
	})
}
