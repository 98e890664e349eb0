package engine_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
	"github.com/berth-hpc/berth/policy"
)

// Most faults of a scheduler are where two features meet. So what happens is
// counted by the features that meet in it: those of the configuration, those of the
// request that it happens to, the state that the request is in, and the event.

// outcome is what can happen to a request, job or reservation.
type outcome int

const (
	outAccepted outcome = iota
	outRefused
	outDemoted
	outStarted
	outEnded
	outCancelled
	outLapsed
	outFailed
	outLost
	outMoved
	outResized
	outModified
	outExtended
	outKept
	outUsed
	outPlanned
	outRequeued
	outShortened
	outStaged
	outcomes
	notAnOutcome outcome = -1 // it happens to none in particular
)

var outcomeNames = [outcomes]string{
	"accepted", "refused", "demoted", "started", "ended", "cancelled", "lapsed", "failed", "lost", "moved", "resized", "modified",
	"extended", "kept", "used", "planned", "requeued", "shortened", "staged",
}

// outcomeOf says what each kind of change is for the table.
var outcomeOf = map[change.Kind]outcome{
	change.Accepted: outAccepted, change.Refused: outRefused, change.QueuedAsJob: outDemoted, change.Started: outStarted, change.Ended: outEnded,
	change.Cancelled: outCancelled, change.Withdrawn: outCancelled, change.Rejected: outCancelled, change.Expired: outLapsed, change.NoShow: outLapsed, change.Failed: outFailed,
	change.Lost: outLost, change.Moved: outMoved, change.Resized: outResized, change.Modified: outModified, change.Extended: outExtended,
	change.ChangeRefused: outKept, change.CheckedIn: outUsed, change.Confirmed: outUsed, change.Planned: outPlanned, change.Requeued: outRequeued,
	change.Preempted: outRequeued, change.Shortened: outShortened, change.Staged: outStaged,
	change.Advanced: notAnOutcome, change.Queued: notAnOutcome, change.Scheduled: notAnOutcome, change.WentDown: notAnOutcome,
	change.Named:   notAnOutcome, // a step on the way to a start, which machine_names_test.go judges
	change.Vacated: notAnOutcome, change.OutageBegan: notAnOutcome, change.CameUp: notAnOutcome, change.Forecasted: notAnOutcome, change.Emitted: notAnOutcome, change.Settled: notAnOutcome,
}

// feature is something that is there or not when something happens.
type feature int

const (
	// Of the configuration.
	hasSites feature = iota
	hasPools
	hasManaged
	hasSpeed
	hasAcceleratorSpeed
	hasClasses
	hasNames
	hasLink
	hasOrder
	hasOrderOptions
	hasUsers
	hasMatch
	hasBatch
	hasUnaware
	hasPlacement
	hasChoice
	hasUnbounded
	hasInstant
	hasPeriod
	hasEager
	hasGrid
	hasRefuseAll
	hasQuotaCount
	hasQuotaArea
	hasBudget
	hasStageBefore
	hasStageHold
	hasUplink
	hasImmediate
	hasConservative
	hasOtherPass
	hasCompress
	hasPreempt
	hasExtend
	hasDelay
	hasClassOrder
	hasExplain
	// Of the request.
	isJob
	isLimited
	isParts
	isMoldable
	isEligible
	isSited
	isPooled
	isHeld
	isNoShow
	isUsers
	isSoftware
	isVersion
	isLicences
	isMemory
	isStorage
	isAccelerators
	isPartition
	isConstraint
	// Of the reservation.
	atLate
	atManaged
	isDegraded
	isProlonged
	// Of the event, where the reservation is what the event is about.
	onTimer
	onOther
	onSubmit
	onCancel
	onConfirm
	onModify
	onProlong
	onShow
	onAvoid
	onFinish
	onDown
	onAnnounced
	onUp
	onForecast
	onSettle
	features
)

var featureNames = [features]string{
	"sites", "pools", "managed", "speed", "accelerator-speed", "classes", "names", "link", "order", "order-options", "users", "match", "batch", "unaware", "placement",
	"choice", "unbounded", "instant", "period", "eager", "grid", "refuse-all", "quota-count", "quota-area", "budget", "before", "hold-while", "uplink",
	"immediate", "conservative", "other-pass", "compress", "preempt", "extend", "delay", "class-order", "explain",
	"job", "limited", "parts", "moldable", "eligible", "sited", "pooled", "held", "no-show", "user", "software", "version", "licences", "memory",
	"storage", "accelerators", "partition", "constraint",
	"at-late", "at-managed", "degraded", "prolonged",
	"on-timer", "on-other", "on-submit", "on-cancel", "on-confirm", "on-modify", "on-prolong", "on-show", "on-avoid", "on-finish", "on-down", "on-announced",
	"on-up", "on-forecast", "on-settle",
}

// eventFeature says what each kind of event is for the table.
var eventFeature = map[engine.EventKind]feature{
	engine.EventWake: onTimer, engine.EventSubmit: onSubmit, engine.EventCancel: onCancel, engine.EventReject: onCancel, engine.EventConfirm: onConfirm, engine.EventModify: onModify, engine.EventExtend: onProlong,
	engine.EventCheckIn: onShow, engine.EventRelocate: onAvoid, engine.EventFinish: onFinish, engine.EventDown: onDown, engine.EventUp: onUp, engine.EventUpdateForecast: onForecast, engine.EventSettle: onSettle,
}

// configFeatures returns the features of a configuration.
func configFeatures(c *engine.Config) []feature {
	var list []feature
	add := func(f feature, there bool) {
		if there {
			list = append(list, f)
		}
	}
	anySite := func(is func(*berth.Site) bool) bool {
		return slices.ContainsFunc(c.Sites, func(s berth.Site) bool { return is(&s) })
	}
	anyPool := func(is func(*berth.Pool) bool) bool {
		return anySite(func(s *berth.Site) bool {
			return slices.ContainsFunc(s.Pools, func(p berth.Pool) bool { return is(&p) })
		})
	}
	_, batch := policy.BatchNamed(c.Match)
	row, _ := policy.QueueNamed(c.Order)
	add(hasSites, len(c.Sites) > 1)
	add(hasPools, anySite(func(s *berth.Site) bool { return len(s.Pools) > 1 }))
	add(hasManaged, anySite(func(s *berth.Site) bool { return s.Managed }))
	add(hasSpeed, anyPool(func(p *berth.Pool) bool { return p.Speed != 0 && p.Speed != berth.StandardSpeed }))
	add(hasAcceleratorSpeed, anyPool(func(p *berth.Pool) bool { return p.Node.AcceleratorSpeed != 0 }))
	add(hasClasses, anyPool(func(p *berth.Pool) bool { return len(p.Classes) > 1 }))
	add(hasNames, anyPool(func(p *berth.Pool) bool { return p.NameAhead > 0 }))
	add(hasLink, anySite(func(s *berth.Site) bool { return s.Link != (berth.Link{}) }))
	add(hasOrder, row.Gathers)
	add(hasOrderOptions, c.Options != (policy.OrderOptions{}))
	add(hasUsers, len(c.Users) > 0)
	add(hasMatch, !batch && c.Match != policy.Matches[0].Name)
	add(hasBatch, batch)
	add(hasUnaware, c.Unaware)
	add(hasPlacement, c.Place != policy.Placements[0].Name)
	add(hasChoice, c.Choice != policy.EarliestFinish)
	add(hasUnbounded, c.Horizon == engine.HorizonUnbounded)
	add(hasInstant, c.Trigger == engine.TriggerOnInstant || c.Trigger == "" && (row.Gathers || batch))
	add(hasPeriod, c.Trigger == engine.TriggerOnPeriod)
	add(hasEager, c.Eager != nil)
	add(hasGrid, c.Eager != nil && c.Eager.Grid)
	add(hasRefuseAll, c.Eager != nil && c.Eager.RefuseAll)
	add(hasQuotaCount, limitIn(c, policy.LimitActive) > 0)
	add(hasQuotaArea, limitIn(c, policy.LimitPESeconds) > 0)
	add(hasBudget, limitIn(c, policy.LimitBudget) > 0)
	add(hasStageBefore, c.Staging == engine.StagingBefore)
	add(hasStageHold, c.Staging == engine.StagingHold)
	add(hasUplink, c.Uplink > 0)
	add(hasImmediate, c.Immediate == engine.ImmediateQueue)
	add(hasConservative, c.Jobs == "conservative")
	add(hasOtherPass, c.Jobs == "fcfs" || c.Jobs == "lazy")
	add(hasCompress, c.Compress)
	add(hasPreempt, c.Preempt)
	add(hasExtend, c.Overrun == engine.OverrunRunOn)
	add(hasDelay, c.Overrun == engine.OverrunDelay)
	add(hasClassOrder, c.Instant != nil)
	add(hasExplain, c.Explain)
	return list
}

// requestFeatures appends the features of a request.
func requestFeatures(list []feature, r *berth.Request) []feature {
	add := func(f feature, there bool) {
		if there {
			list = append(list, f)
		}
	}
	add(isJob, r.IsJob())
	add(isLimited, r.IsJob() && r.Deadline < berth.Forever)
	add(isParts, len(r.Parts) > 1)
	add(isMoldable, len(r.Parts[0].Variants) > 1)
	add(isEligible, slices.ContainsFunc(r.Parts, func(p berth.Part) bool { return !p.Eligible.Empty() || len(p.Only) > 0 }))
	add(isSited, r.Site != "")
	add(isPooled, r.Pool != "")
	add(isHeld, r.Hold > 0)
	add(isNoShow, r.NoShow > 0)
	add(isUsers, r.User != "")
	add(isSoftware, r.Software != "")
	add(isVersion, r.Version != "")
	add(isLicences, r.Licences > 0)
	add(isMemory, r.MemoryMB > 0)
	add(isStorage, r.StorageMB > 0)
	add(isAccelerators, r.Accelerators > 0)
	add(isPartition, r.Partition != "")
	add(isConstraint, r.Constraint != "" || slices.ContainsFunc(r.Parts, func(p berth.Part) bool { return p.Constraint != "" }))
	return list
}

// promiseFeatures appends the features of a reservation.
func (m *model) promiseFeatures(list []feature, p *promise) []feature {
	late, managed := false, false
	for i := range p.allotments {
		pool := m.poolNamed(p.allotments[i].Resource)
		late, managed = late || !m.pools[pool].early(), managed || m.siteOf(pool).Managed
	}
	if late {
		list = append(list, atLate)
	}
	if managed {
		list = append(list, atManaged)
	}
	if p.missing() > 0 {
		list = append(list, isDegraded)
	}
	if p.extended {
		list = append(list, isProlonged)
	}
	return list
}

// coverage counts what has happened.
type coverage struct {
	kinds map[change.Kind]int
	cells [outcomes][features][features]uint32 // the first feature is not behind the second
	list  []feature
}

func newCoverage() *coverage { return &coverage{kinds: map[change.Kind]int{}} }

// hit counts a change, and what it meant for a request or reservation.
func (c *coverage) hit(x *machine, o *occasion, ch *change.Change, r *berth.Request, p *promise) {
	if c == nil {
		return
	}
	c.kinds[ch.Kind]++
	out := outcomeOf[ch.Kind]
	if out == notAnOutcome || r == nil {
		return
	}
	c.list = append(c.list[:0], x.features...)
	c.list = requestFeatures(c.list, r)
	if p != nil {
		c.list = x.m.promiseFeatures(c.list, p)
	}
	c.list = append(c.list, occasionOf(o, r.ID, out, x.m.now))
	for i, f := range c.list {
		row := &c.cells[out][f]
		for _, g := range c.list[i:] {
			row[g]++
		}
	}
}

// ofEvent lists what an event that names no reservation does itself; all else is what
// becomes of others for that.
var ofEvent = map[engine.EventKind][]outcome{
	engine.EventDown:           {outFailed, outLost, outMoved, outResized, outRequeued},
	engine.EventUp:             {outMoved, outResized},
	engine.EventUpdateForecast: {outStaged, outMoved, outKept},
}

// occasionOf returns the event on which something happens to a request. What
// happens to others than the one that an event is about happens on another's.
func occasionOf(o *occasion, id string, out outcome, now berth.Time) feature {
	switch kind := o.event.Kind; {
	case o.timer:
		return onTimer
	case kind == engine.EventDown || kind == engine.EventUp || kind == engine.EventUpdateForecast:
		if !slices.Contains(ofEvent[kind], out) {
			return onOther
		}
		if kind == engine.EventDown && o.event.From > now {
			return onAnnounced
		}
		return eventFeature[kind]
	case o.event.ID == id || o.event.Request != nil && o.event.Request.ID == id:
		return eventFeature[kind]
	}
	return onOther
}

// add adds what another has counted.
func (c *coverage) add(o *coverage) {
	for kind, n := range o.kinds {
		c.kinds[kind] += n
	}
	for out := range c.cells {
		for f := range c.cells[out] {
			for g := range c.cells[out][f] {
				c.cells[out][f][g] += o.cells[out][f][g]
			}
		}
	}
}

// The fewest times that a kind of change and a cell of the table must happen in the
// default run.
const (
	enoughOfKind = 200
	enoughOfCell = 20
)

// report prints a summary, and fails if a cell that can be was not reached often
// enough, or one that cannot be was reached.
func (c *coverage) report(t *testing.T, demanded bool) {
	t.Helper()
	var kinds []string
	for kind := range outcomeOf {
		kinds = append(kinds, string(kind))
	}
	slices.Sort(kinds)
	var line strings.Builder
	for _, name := range kinds {
		n := c.kinds[change.Kind(name)]
		line.WriteString(" " + name + " " + number(n))
		if demanded && n < enoughOfKind {
			t.Errorf("%s happened %d times, want %d", name, n, enoughOfKind)
		}
	}
	t.Logf("changes:%s", line.String())
	reached, near, open, wrong := 0, 0, 0, map[string][]string{}
	var missing []cell
	for out := range outcomes {
		for f := range features {
			for g := f; g < features; g++ {
				n := c.cells[out][f][g]
				why := excluded[out][f][g]
				switch {
				case why != "" && n > 0:
					wrong[why] = append(wrong[why], fmt.Sprintf("%s with %s and %s %d times", outcomeNames[out], featureNames[f], featureNames[g], n))
				case why != "":
				case n >= enoughOfCell:
					reached++
					if n < 2*enoughOfCell {
						near++
					}
				default:
					open++
					missing = append(missing, cell{out, f, g, n})
				}
			}
		}
	}
	t.Logf("cells of outcome and two features: %d reached at least %d times, %d of them less than twice as often, %d not", reached, enoughOfCell, near, open)
	for _, why := range slices.Sorted(maps.Keys(wrong)) {
		list := wrong[why]
		t.Errorf("%q is no reason, %d cells: %s", why, len(list), strings.Join(list[:min(len(list), 8)], "; "))
	}
	if !demanded {
		return
	}
	slices.SortStableFunc(missing, func(a, b cell) int { return cmp.Compare(a.n, b.n) })
	for i, x := range missing {
		if i == 40 {
			t.Errorf("and %d more", len(missing)-i)
			break
		}
		t.Errorf("%s with %s and %s happened %d times, want %d", outcomeNames[x.out], featureNames[x.f], featureNames[x.g], x.n, enoughOfCell)
	}
	c.blame(t, missing)
}

// cell is a place of the table.
type cell struct {
	out  outcome
	f, g feature
	n    uint32
}

// blame names the features and outcomes that are missing most.
func (c *coverage) blame(t *testing.T, missing []cell) {
	t.Helper()
	type pair struct {
		out outcome
		f   feature
	}
	count := map[pair]int{}
	for _, x := range missing {
		count[pair{x.out, x.f}]++
		if x.g != x.f {
			count[pair{x.out, x.g}]++
		}
	}
	var list []pair
	for p := range count {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b pair) int {
		return cmp.Or(cmp.Compare(count[b], count[a]), cmp.Compare(a.out, b.out), cmp.Compare(a.f, b.f))
	})
	for i, p := range list {
		if i == 60 {
			return
		}
		t.Logf("%s with %s (%d times) lacks %d others", outcomeNames[p.out], featureNames[p.f], c.cells[p.out][p.f][p.f], count[p])
	}
}

// number returns a count for people.
func number(n int) string { return strconv.Itoa(n) }
