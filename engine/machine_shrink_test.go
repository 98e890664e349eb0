package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// report shrinks a history that failed and prints what is left of it.
func report(t *testing.T, seed uint64, x *machine, failed *failure) {
	t.Helper()
	h := &history{config: x.config, care: x.care, steps: x.steps}
	h = shrunk(h, failed.invariant)
	var text strings.Builder
	last := h.run(func(at berth.Time, event *engine.Event, changes []change.Change, err error) {
		fmt.Fprintf(&text, "%4d %s\n", at, eventLine(event))
		for i := range changes {
			if line := changeLine(&changes[i]); line != "" {
				fmt.Fprintf(&text, "       -> %s\n", line)
			}
		}
		if err != nil {
			fmt.Fprintf(&text, "       -> error %v\n", err)
		}
	})
	if last == nil {
		last = failed
	}
	t.Fatalf("%s: %s\n\ngo test ./engine -run TestMachine -machine.seed=%d\n\nconfiguration %s\ncare %d, %d steps\n%s",
		last.invariant, last.message, seed, configLine(&h.config), h.care, len(h.steps), text.String())
}

// run runs a history and returns why it failed.
func (h *history) run(trace func(berth.Time, *engine.Event, []change.Change, error)) *failure {
	if _, err := engine.New(h.config); err != nil {
		return nil
	}
	x := newMachine(h, nil)
	x.trace = trace
	return x.replay(h.steps)
}

// tries bounds how often a history is run to shrink it.
const tries = 4000

// shrunk returns a history without what it needs not to fail in the same way: steps
// go first, then what the configuration has beside the default, then what requests
// ask for.
func shrunk(h *history, invariant string) *history {
	left := tries
	fails := func(candidate *history) bool {
		left--
		f := candidate.run(nil)
		return f != nil && f.invariant == invariant
	}
	if !fails(h) {
		return h
	}
	for again := true; again && left > 0; {
		again = false
		for size := max(1, len(h.steps)/2); size >= 1 && left > 0; size /= 2 {
			for from := 0; from+size <= len(h.steps) && left > 0; {
				c := *h
				c.steps = slices.Delete(slices.Clone(h.steps), from, from+size)
				if fails(&c) {
					h, again = &c, true
					continue
				}
				from += size
			}
		}
		for _, simpler := range simplerConfigs(&h.config) {
			c := *h
			c.config = simpler
			if left > 0 && fails(&c) {
				h, again = &c, true
				break
			}
		}
		if c := *h; h.care != careNone && left > 0 {
			if c.care = careNone; fails(&c) {
				h, again = &c, true
			}
		}
		for i := range h.steps {
			for _, simpler := range simplerRequests(h.steps[i].event.Request) {
				c := *h
				c.steps = slices.Clone(h.steps)
				c.steps[i].event.Request = simpler
				if left > 0 && fails(&c) {
					h, again = &c, true
					break
				}
			}
		}
	}
	return h
}

// simplerConfigs returns configurations that have one thing less.
func simplerConfigs(c *engine.Config) []engine.Config {
	var list []engine.Config
	before, _ := json.Marshal(c)
	add := func(change func(*engine.Config)) {
		copied := *c
		copied.Sites = slices.Clone(c.Sites)
		for i := range copied.Sites {
			s := &copied.Sites[i]
			s.Pools, s.Partitions, s.Software = slices.Clone(s.Pools), slices.Clone(s.Partitions), slices.Clone(s.Software)
		}
		change(&copied)
		if after, _ := json.Marshal(copied); string(after) != string(before) {
			list = append(list, copied)
		}
	}
	for i := range c.Sites {
		if len(c.Sites) > 1 {
			add(func(c *engine.Config) { c.Sites = slices.Delete(c.Sites, i, i+1) })
		}
		for k := range c.Sites[i].Pools {
			if len(c.Sites[i].Pools) > 1 {
				add(func(c *engine.Config) { c.Sites[i].Pools = slices.Delete(c.Sites[i].Pools, k, k+1) })
			}
			add(func(c *engine.Config) { c.Sites[i].Pools[k].Speed = 0 })
			add(func(c *engine.Config) { c.Sites[i].Pools[k].Classes = nil })
			add(func(c *engine.Config) { c.Sites[i].Pools[k].Node = berth.Node{} })
			add(func(c *engine.Config) { c.Sites[i].Pools[k].Node.AcceleratorSpeed = 0 })
		}
		add(func(c *engine.Config) { c.Sites[i].Partitions = nil })
		add(func(c *engine.Config) { c.Sites[i].Software = nil })
		add(func(c *engine.Config) { c.Sites[i].StorageMB = 0 })
		add(func(c *engine.Config) { c.Sites[i].Link = berth.Link{} })
		add(func(c *engine.Config) { c.Sites[i].Managed = false })
	}
	add(func(c *engine.Config) { c.Order, c.Options = "", policy.OrderOptions{} })
	add(func(c *engine.Config) { c.Options = policy.OrderOptions{} })
	add(func(c *engine.Config) { c.Match, c.Unaware = "", false })
	add(func(c *engine.Config) { c.Place, c.Choice, c.Horizon = "", "", "" })
	add(func(c *engine.Config) { c.Users = nil })
	add(func(c *engine.Config) { c.Trigger, c.Period = engine.TriggerOnArrival, 0 })
	add(func(c *engine.Config) { c.Seed = 0 })
	add(func(c *engine.Config) { c.Eager = nil })
	add(func(c *engine.Config) { c.Limits = nil })
	add(func(c *engine.Config) { c.Ahead = nil })
	add(func(c *engine.Config) {
		c.Limits = slices.DeleteFunc(slices.Clone(c.Limits), func(l policy.Limit) bool { return l.Name == policy.LimitActive })
	})
	add(func(c *engine.Config) { c.Staging = engine.StagingNone })
	add(func(c *engine.Config) { c.Uplink = 0 })
	add(func(c *engine.Config) { c.Immediate = "" })
	add(func(c *engine.Config) { c.Jobs = "" })
	add(func(c *engine.Config) { c.Jobs, c.Compress = "", false })
	add(func(c *engine.Config) { c.Compress = false })
	add(func(c *engine.Config) { c.Preempt = false })
	add(func(c *engine.Config) { c.Overrun, c.Extension = "", 0 })
	add(func(c *engine.Config) { c.Instant = nil })
	add(func(c *engine.Config) { c.Explain = false })
	return list
}

// simplerRequests returns requests that ask for one thing less.
func simplerRequests(r *berth.Request) []*berth.Request {
	if r == nil {
		return nil
	}
	var list []*berth.Request
	before, _ := json.Marshal(r)
	add := func(change func(*berth.Request)) {
		c := copied(r)
		change(c)
		if after, _ := json.Marshal(c); string(after) != string(before) {
			list = append(list, c)
		}
	}
	for i := range r.Parts {
		if len(r.Parts) > 1 {
			add(func(r *berth.Request) { r.Parts = slices.Delete(r.Parts, i, i+1) })
		}
		add(func(r *berth.Request) { r.Parts[i].Variants = r.Parts[i].Variants[:1] })
		add(func(r *berth.Request) { r.Parts[i].Variants = r.Parts[i].Variants[len(r.Parts[i].Variants)-1:] })
		add(func(r *berth.Request) { r.Parts[i].Eligible = berth.PESet{} })
		add(func(r *berth.Request) { r.Parts[i].Constraint = "" })
		add(func(r *berth.Request) { r.Parts[i].Only = nil })
		add(func(r *berth.Request) { r.Parts[i].Never = nil })
	}
	add(func(r *berth.Request) { r.Requirements = berth.Requirements{} })
	add(func(r *berth.Request) { r.Software, r.Version, r.Licences = "", "", 0 })
	add(func(r *berth.Request) { r.Version = "" })
	add(func(r *berth.Request) { r.MemoryMB = 0 })
	add(func(r *berth.Request) { r.StorageMB = 0 })
	add(func(r *berth.Request) { r.Accelerators = 0 })
	add(func(r *berth.Request) { r.Partition = "" })
	add(func(r *berth.Request) { r.Constraint = "" })
	add(func(r *berth.Request) { r.Site, r.Pool = "", "" })
	add(func(r *berth.Request) { r.Hold = 0 })
	add(func(r *berth.Request) { r.NoShow = 0 })
	add(func(r *berth.Request) { owns(r, "") })
	return list
}

// configLine returns what a configuration has beside the default.
func configLine(c *engine.Config) string {
	var fields map[string]any
	written, _ := json.Marshal(c)
	if err := json.Unmarshal(written, &fields); err != nil {
		panic(err)
	}
	for name, value := range fields {
		if value == nil || value == "" || value == false || value == float64(0) {
			delete(fields, name)
		}
	}
	written, _ = json.Marshal(fields)
	return string(written)
}

// eventLine returns an event as a line.
func eventLine(event *engine.Event) string {
	if event.Request == nil {
		written, _ := json.Marshal(event)
		return string(written)
	}
	r := *event.Request
	parts := ""
	for i := range r.Parts {
		for k, v := range r.Parts[i].Variants {
			parts += fmt.Sprintf("%s%dx%ds", []string{" ", "|"}[min(k, 1)], v.NPE, v.Duration)
		}
		if !r.Parts[i].Eligible.Empty() {
			parts += " on " + r.Parts[i].Eligible.String()
		}
		parts += r.Parts[i].Constraint
		for _, o := range r.Parts[i].Only {
			parts += fmt.Sprintf(" only %s of %s", o.PEs, o.Resource.Name)
		}
		for _, n := range r.Parts[i].Never {
			parts += fmt.Sprintf(" never %s of %s", n.PEs, n.Resource.Name)
		}
		parts += ","
	}
	window := fmt.Sprintf("[%d,%d)", r.Ready, r.Deadline)
	if r.Deadline >= berth.Forever {
		window = fmt.Sprintf("from %d", r.Ready)
	}
	rest, _ := json.Marshal(struct {
		Arrival      berth.Time     `json:"arrival"`
		User         string         `json:"user,omitempty"`
		Site         string         `json:"site,omitempty"`
		Pool         string         `json:"pool,omitempty"`
		Hold         berth.Duration `json:"hold,omitempty"`
		NoShow       berth.Duration `json:"no_show,omitempty"`
		Requirements berth.Requirements
	}{r.Arrival, r.User, r.Site, r.Pool, r.Hold, r.NoShow, r.Requirements})
	return fmt.Sprintf("%s %s %s%s %s %s", event.Kind, r.ID, r.Kind, parts, window, rest)
}

// changeLine returns a change as a line, nothing for what is of no interest.
func changeLine(c *change.Change) string {
	places := func(list []berth.Allotment) string {
		text := ""
		for _, a := range list {
			text += fmt.Sprintf(" %s/%s %dx[%d,%d) %s", a.Resource.Site, a.Resource.Name, a.NPE, a.Start, a.End, a.PEs)
		}
		return text
	}
	line := string(c.Kind) + " " + c.ID
	switch c.Kind {
	case change.Advanced, change.Queued, change.Scheduled, change.Settled:
		return ""
	case change.Accepted:
		return line + places(c.Reservation.Allotments) + " with" + places(heldOf(c.Reservation.Stocks, c.Reservation.Transfers))
	case change.Moved, change.Resized, change.Modified:
		return line + places(c.Moved) + " with" + places(heldOf(c.Stocks, c.Transfers))
	case change.Planned:
		if c.Plan != nil {
			return line + places([]berth.Allotment{*c.Plan})
		}
	case change.Extended, change.Shortened:
		return fmt.Sprintf("%s until %d", line, c.Until)
	case change.Emitted:
		return fmt.Sprintf("effect %s/%s/%d", c.Effect.Site, c.Effect.Reservation, c.Effect.Generation)
	case change.WentDown, change.CameUp, change.Staged, change.Refused, change.ChangeRefused, change.Lost, change.Rejected:
		written, _ := json.Marshal([]any{c.Outage, c.Transfers, c.Refusal})
		return line + " " + string(written)
	}
	return line
}
