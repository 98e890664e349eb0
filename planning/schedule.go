package planning

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/sim"
	"github.com/berth-hpc/berth/workflow"
)

// Schedule returns the bookings and a plan as lines of a schedule, the bookings first and
// the tasks in the order of the workflow. deadline is that of every task; Forever is the
// end of the plan. Cost: O(n) for n bookings and tasks.
func (p *Planning) Schedule(plan *workflow.Plan, deadline berth.Time) (bookings, tasks []berth.Line) {
	bookings = p.bookingLines()
	return bookings, p.taskLines(plan, p.prefix(bookings), deadline)
}

// bookingLines returns the bookings as lines of a schedule: those that last
// beyond now, and those that the average of free PEs was taken of, so that the
// schedule can be planned around again. An id that was there before gets a
// number; what has none is called a booking.
func (p *Planning) bookingLines() []berth.Line {
	type use struct {
		taken  bool // by a booking
		number int  // of those that have used it
	}
	ids := make(map[string]use, len(p.Bookings))
	for i := range p.Bookings {
		ids[p.Bookings[i].ID] = use{taken: true}
	}
	site, pool := p.place()
	lines := make([]berth.Line, 0, len(p.Bookings))
	for i := range p.Bookings {
		b := &p.Bookings[i]
		if p.Everywhere {
			site, pool = b.Site, b.Pool
		}
		if b.End <= p.Past.Start {
			continue
		}
		id := cmp.Or(b.ID, "booking")
		used := ids[id]
		for bare := id; ; {
			if used.number++; used.number > 1 {
				id = fmt.Sprintf("%s#%d", bare, used.number)
			}
			if id == b.ID || !ids[id].taken {
				ids[bare] = used
				break
			}
		}
		lines = append(lines, berth.Line{
			ID: id, Kind: berth.KindBooking, Site: site, Pool: pool, Arrival: b.Start, Ready: b.Start, Deadline: b.End,
			Duration: b.End.Sub(b.Start), NPE: b.NPE, Accepted: true, Start: &b.Start, End: &b.End,
		})
	}
	return lines
}

// place names the site and pool of everything in a schedule: what a booking
// names, else the site that simulations have too.
func (p *Planning) place() (site, pool string) {
	for i := range p.Bookings {
		if b := &p.Bookings[i]; b.Site != "" || b.Pool != "" {
			return cmp.Or(b.Site, sim.DefaultSite), b.Pool
		}
	}
	return sim.DefaultSite, ""
}

// taskPrefix begins the ids of tasks where a booking has the id of one.
const taskPrefix = "task:"

// prefix returns what the ids of tasks begin with in a schedule: nothing, unless
// a booking has the id of a task.
func (p *Planning) prefix(booked []berth.Line) string {
	tasks := make(map[string]bool, p.Flow.Len())
	for i := range p.Flow.Len() {
		tasks[p.Flow.Task(i).ID] = true
	}
	taken := map[int]bool{} // by how often the prefix is repeated
	for i := range booked {
		for n, id := 0, booked[i].ID; ; n++ {
			if tasks[id] {
				taken[n] = true
			}
			rest, is := strings.CutPrefix(id, taskPrefix)
			if !is {
				break
			}
			id = rest
		}
	}
	n := 0
	for taken[n] {
		n++
	}
	return strings.Repeat(taskPrefix, n)
}

// taskLines returns the plan as lines of a schedule, in the order of the
// workflow. Without a deadline that of every task is the end of the plan.
func (p *Planning) taskLines(plan *workflow.Plan, prefix string, deadline berth.Time) []berth.Line {
	if deadline == berth.Forever {
		deadline = plan.End(p.Now)
	}
	site, pool := p.place()
	lines := make([]berth.Line, 0, len(plan.Tasks))
	for i := range plan.Tasks {
		t := &plan.Tasks[i]
		line := berth.Line{
			ID: prefix + p.Flow.Task(t.Task).ID, Kind: berth.KindRequest, Site: site, Pool: pool, Workflow: p.Name, Task: p.Flow.Task(t.Task).ID,
			Arrival: p.Now, Ready: p.Now, Deadline: deadline, Duration: t.End.Sub(t.Start), NPE: t.NPE,
			Accepted: true, Start: &t.Start, End: &t.End,
		}
		for _, parent := range p.Flow.Parents(t.Task) {
			line.After = append(line.After, prefix+p.Flow.Task(int(parent)).ID)
		}
		lines = append(lines, line)
	}
	return lines
}
