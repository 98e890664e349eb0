package engine_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// dear draws events for an engine whose limits bound what promises cost, and looks at what came of each.
type dear struct {
	t      *rapid.T
	config engine.Config
	e      *engine.Engine
	now    berth.Time
	n      int // of the last id
	stale  *engine.Foreseen
	met    map[string]int
}

// ends returns when each job ends if nothing more is asked for: what is held is confirmed, and what has started is used. The engine is the test's.
func (d *dear) ends(e *engine.Engine) map[string]berth.Time {
	ends := map[string]berth.Time{}
	note := func(changes []change.Change) {
		for i := range changes {
			if x := &changes[i]; x.Kind == change.Accepted && x.Reservation.Request.IsJob() {
				ends[x.ID] = x.Reservation.Allotments[0].End
			}
		}
	}
	for s := range e.Reservations() {
		switch {
		case s.Request.IsJob():
			ends[s.Request.ID] = s.Allotments[0].End
		case s.State == berth.Held:
			changes, _, _ := e.Apply(d.now, engine.Confirm(s.Request.ID))
			note(changes)
		}
	}
	now := d.now
	for steps := 0; ; steps++ {
		if steps > 10_000 {
			d.t.Fatal("it does not come to an end")
		}
		at, due := e.Next()
		if !due || e.Waiting() == 0 {
			return ends
		}
		now = max(now, at)
		changes, _, err := e.Apply(now, engine.Wake())
		if err != nil {
			d.t.Fatal(err)
		}
		note(changes)
		for i := range changes {
			if changes[i].Kind == change.Started {
				more, _, _ := e.Apply(now, engine.CheckIn(changes[i].ID)) // an error concerns that promise alone
				note(more)
			}
		}
	}
}

func (d *dear) twin(limits policy.Limits) *engine.Engine {
	config := d.config
	config.Limits = limits
	twin, err := engine.Restore(config, d.e.Snapshot())
	if err != nil {
		d.t.Fatal(err)
	}
	return twin
}

// event draws something that is asked for.
func (d *dear) event() engine.Event {
	t := d.t
	d.n++
	r := berth.Request{
		ID: fmt.Sprintf("r%d", d.n), User: rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "user"), Role: rapid.SampledFrom([]string{"user", "operator"}).Draw(t, "role"),
		Arrival: d.now, Ready: d.now + berth.Time(rapid.IntRange(0, 60).Draw(t, "ahead")), Hold: berth.Duration(rapid.SampledFrom([]int{0, 0, 30}).Draw(t, "hold")),
		NoShow: berth.Duration(rapid.SampledFrom([]int{0, 0, 5}).Draw(t, "no_show")),
	}
	r.Account, r.QOS = rapid.SampledFrom([]string{"", "phys"}).Draw(t, "account"), rapid.SampledFrom([]string{"", "high"}).Draw(t, "qos")
	r.Partition = rapid.SampledFrom([]string{"", "gpu"}).Draw(t, "partition")
	if rapid.IntRange(0, 3).Draw(t, "licensed") == 0 {
		r.Software, r.Licences = "solver", 1
	}
	longest := berth.Duration(0)
	for range rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "parts") {
		var part berth.Part
		for range rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "variants") {
			v := berth.Variant{NPE: berth.Count(rapid.IntRange(1, 6).Draw(t, "npe")), Duration: berth.Duration(rapid.IntRange(1, 60).Draw(t, "duration"))}
			longest = max(longest, v.Duration)
			part.Variants = append(part.Variants, v)
		}
		r.Parts = append(r.Parts, part)
	}
	r.Deadline = r.Ready.Add(longest) + berth.Time(rapid.IntRange(0, 200).Draw(t, "slack"))
	var live []string
	for s := range d.e.Reservations() {
		if !s.Request.IsJob() {
			live = append(live, s.Request.ID)
		}
	}
	slices.Sort(live)
	what := rapid.SampledFrom([]string{"submit", "submit", "modify", "extend", "cancel", "confirm", "series", "series_modify", "series_modify", "workflow", "down", "up"}).Draw(t, "event")
	if len(live) == 0 && (what == "modify" || what == "extend" || what == "cancel" || what == "confirm") {
		what = "submit"
	}
	var of []string // series
	for s := range d.e.Reservations() {
		if ref := s.Request.Series; ref != nil && s.State != berth.Active && !slices.Contains(of, ref.Series) {
			of = append(of, ref.Series)
		}
	}
	slices.Sort(of)
	if len(of) == 0 && what == "series_modify" {
		what = "series"
	}
	site := rapid.SampledFrom(d.config.Sites).Draw(t, "site")
	pool := berth.PoolID(site.Name, site.Pools[0].Name)
	switch what {
	case "modify":
		r.ID = rapid.SampledFrom(live).Draw(t, "of")
		if s, is := d.e.Reservation(r.ID); is {
			r.User = s.Request.User
		}
		return engine.Modify(&r)
	case "extend":
		id := rapid.SampledFrom(live).Draw(t, "of")
		s, _ := d.e.Reservation(id)
		return engine.ExtendFor(r.Role, id, s.End()+berth.Time(rapid.IntRange(1, 40).Draw(t, "more")))
	case "cancel":
		return engine.Cancel(rapid.SampledFrom(live).Draw(t, "of"))
	case "confirm":
		return engine.Confirm(rapid.SampledFrom(live).Draw(t, "of"))
	case "series":
		s := series(r.ID, d.now, r.Ready, 70, 3, rapid.IntRange(1, 3).Draw(t, "least"), r.Parts[0].Variants[0].NPE, r.Parts[0].Variants[0].Duration)
		s.Request.User, s.Request.Role, s.Request.Account, s.Request.Hold = r.User, r.Role, r.Account, r.Hold
		return engine.SubmitSeries(s)
	case "series_modify":
		id, by := rapid.SampledFrom(of).Draw(t, "of"), berth.Duration(rapid.IntRange(-60, 40).Draw(t, "by"))
		var list []berth.Request
		for n := 1; n <= 3; n++ {
			if s, is := d.e.Reservation(berth.OccurrenceID(id, n)); is && s.State != berth.Active {
				own := *s.Request.Clone()
				length := own.Deadline.Sub(own.Ready)
				own.Arrival, own.Role, own.Ready = d.now, r.Role, max(own.Ready.Add(by), d.now)
				own.Deadline = own.Ready.Add(length)
				list = append(list, own)
			}
		}
		return engine.ModifySeries(id, list, nil)
	case "workflow":
		w := diamond(r.ID, d.now, berth.Forever)
		w.User, w.Role, w.Hold = r.User, r.Role, r.Hold
		return engine.SubmitWorkflow(w)
	case "down":
		return engine.Down(berth.Outage{Resource: pool, PEs: berth.PEsOf(berth.PE(rapid.IntRange(0, int(site.Pools[0].PEs)-1).Draw(t, "pe"))), Until: d.now + 50})
	case "up":
		return engine.Up(pool, berth.NewPESet(berth.Run{Hi: berth.PE(site.Pools[0].PEs)}))
	}
	return engine.Submit(&r)
}

// gave reports whether an event was given what it asked for, and whether it was refused for what it costs.
func gave(changes []change.Change, event *engine.Event) (given, dear bool) {
	for i := range changes {
		x := &changes[i]
		refusals := []*berth.Refusal{x.Refusal}
		for k := range x.Unfit {
			refusals = append(refusals, &x.Unfit[k].Refusal)
		}
		ofCost := func(no *berth.Refusal) bool {
			return no != nil && no.Exceeded != nil && (no.Exceeded.Limit == string(policy.LimitDelay) || no.Exceeded.Limit == string(policy.LimitIdle))
		}
		switch {
		case slices.ContainsFunc(refusals, ofCost):
			return false, true
		case x.Kind == change.Modified && (x.ID == event.ID || event.Kind == engine.EventModifySeries), x.Kind == change.Extended && x.ID == event.ID,
			x.Kind == change.Accepted && !x.Reservation.Request.IsJob():
			given = true
		}
	}
	return given, false
}

// step asks for something and looks at what comes of it.
func (d *dear) step() {
	t := d.t
	if rapid.IntRange(0, 2).Draw(t, "time") == 0 {
		d.now += berth.Time(rapid.IntRange(1, 60).Draw(t, "later"))
		if _, _, err := d.e.Apply(d.now, engine.Wake()); err != nil {
			t.Fatal(err)
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "jobs") {
		d.n++
		j := berth.Job(fmt.Sprintf("j%d", d.n), d.now, berth.Count(rapid.IntRange(1, 6).Draw(t, "npe")), berth.Duration(rapid.IntRange(1, 60).Draw(t, "limit")))
		if _, _, err := d.e.Apply(d.now, engine.Submit(&j)); err != nil {
			t.Fatal(err)
		}
	}
	if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
		d.e = d.twin(d.config.Limits)
		d.met["restart"]++
	}
	event := d.event()
	bounded := d.e.BoundsCost(&event)
	without, free, beside := d.twin(d.config.Limits), d.twin(d.config.Limits.WithoutCosts()), d.twin(d.config.Limits)
	freed, _, freeErr := free.Apply(d.now, event)
	cost, foreErr := d.e.Foresee(&event, engine.Foresight{})
	before := d.e.Snapshot()
	if d.stale != nil && rapid.Bool().Draw(t, "stale") {
		again := event
		again.Foreseen = d.stale
		twin := d.twin(d.config.Limits)
		if _, _, err := twin.Apply(d.now, again); bounded && isConflict(err, "foreseen") {
			if d.met["foreseen elsewhere"]++; !slices.Equal(twin.Snapshot(), before) {
				t.Fatal("what has to be foreseen again has changed something")
			}
		}
	}
	changes, _, err := d.e.Apply(d.now, event)
	if (err == nil) != (freeErr == nil) || isConflict(err, "foreseen") {
		t.Fatalf("%s: %v, and %v without limits on costs", event.Kind, err, freeErr)
	}
	if foreErr == nil && bounded {
		d.stale = cost
		brings := event
		brings.Foreseen = cost
		if _, _, other := beside.Apply(d.now, brings); (other == nil) != (err == nil) || beside.Hash() != d.e.Hash() {
			t.Fatalf("%s is decided otherwise with what it was foreseen to cost, %+v: %v, %v", event.Kind, cost, other, err)
		}
	}
	given, dear := gave(changes, &event)
	would, _ := gave(freed, &event)
	switch {
	case err != nil || !bounded:
		if dear {
			t.Fatalf("%s is refused for a cost that nothing bounds", event.Kind)
		}
		return
	case !given && !dear && would:
		t.Fatalf("%s is not given, and would be without limits on costs: %s", event.Kind, kinds(changes))
	case dear && !would:
		t.Fatalf("%s is refused for what it costs, and would be refused all the same", event.Kind)
	case dear:
		d.met["refused "+string(event.Kind)]++
	case given:
		d.met["given "+string(event.Kind)]++
	}
	if !given || d.config.Preempt { // jobs that have been placed may be stopped again
		return
	}
	// What happens if nothing more is asked for keeps to the limits.
	with := d.twin(d.config.Limits)
	was, is := d.ends(without), d.ends(with)
	for _, id := range slices.Sorted(maps.Keys(was)) {
		if late := is[id].Sub(was[id]); late > d.least(&event) {
			t.Fatalf("%s delays %s by %d s, allowed are %d", event.Kind, id, late, d.least(&event))
		}
	}
}

// least returns by how much an event may delay a job, by any of the limits that may count for it.
func (d *dear) least(event *engine.Event) berth.Duration {
	var r berth.Request
	switch {
	case event.Request != nil:
		r = *event.Request
	case event.Series != nil:
		r = event.Series.Request
	case event.Kind == engine.EventModifySeries:
		r = event.Requests[0] // the others differ in their windows alone
	case event.Workflow != nil:
		r.User, r.Role = event.Workflow.User, event.Workflow.Role
	default:
		s, _ := d.e.Reservation(event.ID)
		r = *s.Request
		r.Role = event.Role
	}
	least := berth.Duration(berth.TimeLimit)
	for _, scope := range []policy.Scope{{User: r.User}, {Account: r.Account}, {QOS: r.QOS}, {Partition: r.Partition}} {
		if scope == (policy.Scope{}) {
			continue
		}
		scope.Role = r.Role
		a := d.config.Limits.For(scope)
		if most, limited := a.Limit(policy.LimitDelay); limited {
			least = min(least, berth.Duration(most))
		}
	}
	return least
}

// isConflict reports whether an error is of code Conflict about a field.
func isConflict(err error, field string) bool {
	coded, is := errors.AsType[*berth.Error](err)
	return is && coded.Code == berth.Conflict && coded.Field == field
}

// Whatever is asked for in whatever order, no promise costs more than its limits say, by what then happens if nothing more is asked for; what
// is foreseen beside is decided alike, after a restart too.
func TestCostsKeepToTheLimits(t *testing.T) {
	met := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		d := dear{t: t, met: met}
		binding := rapid.SampledFrom(bindings()).Draw(t, "binding")
		for i := range rapid.IntRange(1, 2).Draw(t, "sites") {
			d.config.Sites = append(d.config.Sites, berth.Site{
				Name: fmt.Sprintf("s%d", i), Managed: rapid.Bool().Draw(t, "managed"),
				Pools:      []berth.Pool{{Name: "p", PEs: berth.Count(rapid.IntRange(3, 8).Draw(t, "pes")), Binding: binding}},
				Partitions: []berth.Partition{{Name: "gpu", Pool: "p"}}, Software: []berth.Software{{Name: "solver", Licences: 2}},
			})
		}
		d.config.Jobs = rapid.SampledFrom(engine.JobPasses()).Draw(t, "jobs").Name
		d.config.Place = policy.Placements[rapid.IntRange(0, len(policy.Placements)-1).Draw(t, "place")].Name
		d.config.Overrun, d.config.Preempt = engine.OverrunKill, rapid.IntRange(0, 5).Draw(t, "preempt") == 0
		for _, scope := range []policy.Scope{{Role: "user"}, {User: "ann"}, {Account: "phys"}, {QOS: policy.Every}, {Partition: "gpu"}} {
			for _, name := range []policy.LimitName{policy.LimitDelay, policy.LimitIdle} {
				if rapid.IntRange(0, 3).Draw(t, "limited") == 0 {
					d.config.Limits = append(d.config.Limits, policy.Limit{Scope: scope, Name: name, Value: int64(rapid.SampledFrom([]int{0, 5, 30, 200}).Draw(t, "value"))})
				}
			}
		}
		var err error
		if d.e, err = engine.New(d.config); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			d.step()
			if err := d.e.Check(); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Log("reached:", met)
}
