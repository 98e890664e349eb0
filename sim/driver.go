package sim

import (
	"errors"
	"iter"
	"slices"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/engine"
	"github.com/berth-hpc/berth/engine/change"
)

// driver brings what happens in the simulated world to the engine in order of
// time, and at one instant in the engine's order of classes.
type driver struct {
	changes []change.Change // of the last Apply; the slices are used again
	effects []change.Effect
	// unsettled are the numbers of effects that no site has told about yet.
	unsettled []uint64
	engine    *engine.Engine
	workload  *Workload
	recorder  *recorder
	arrived   int                   // requests so far
	waiting   int                   // of them, those that are not decided; counted only for Promises
	told      int                   // as many did the progress function last hear of
	outages   func() (Outage, bool) // the next one
	stop      func()                // ends outages
	falling   Outage                // the next one to begin
	fails     bool                  // there is one
	ends      ends
	started   int
	extends   bool             // what runs may go on beyond its limit, or be stopped before
	broken    bool             // what runs may fail, for there are outages
	checksIn  bool             // some promises are given up unless they are used
	sources   []source         // that may bring anything
	ranks     [sources + 1]int // at one instant the lower comes first
	flows     *flowRun         // nil without workflows
}

// end is when something that runs ends by itself.
type end struct {
	at      berth.Time
	order   int // in which they started
	request int
	start   berth.Time
}

func (a end) before(b end) bool { return a.at < b.at || (a.at == b.at && a.order < b.order) }

// ends is a heap of what is to end, the first at its root. It is container/heap
// without a conversion to an interface for each.
type ends []end

func (h *ends) push(x end) {
	*h = append(*h, x)
	s := *h
	i := len(s) - 1
	for ; i > 0 && x.before(s[(i-1)/2]); i = (i - 1) / 2 {
		s[i] = s[(i-1)/2]
	}
	s[i] = x
}

func (h *ends) pop() end {
	s := *h
	first, x := s[0], s[len(s)-1]
	s = s[:len(s)-1]
	*h = s
	if len(s) == 0 {
		return first
	}
	i := 0
	for {
		child := 2*i + 1
		if child+1 < len(s) && s[child+1].before(s[child]) {
			child++
		}
		if child >= len(s) || !s[child].before(x) {
			break
		}
		s[i] = s[child]
		i = child
	}
	s[i] = x
	return first
}

func newDriver(config *engine.Config, w *Workload) (*driver, error) {
	if len(w.Requests) > 0 && len(w.Plain) > 0 {
		return nil, berth.Errorf(berth.Invalid, "plain", "%d beside %d requests in full; give either", len(w.Plain), len(w.Requests))
	}
	if w.Runs != nil && len(w.Runs) != w.Len() {
		return nil, berth.Errorf(berth.Invalid, "runs", "%d for %d requests", len(w.Runs), w.Len())
	}
	if w.Runs == nil {
		config.Overrun = "" // everything ends at its limit by itself
	}
	if len(w.Flows) > 0 {
		if err := checkFlows(w); err != nil {
			return nil, err
		}
		config.Sites = slices.Clone(config.Sites)
		for i := range config.Sites {
			config.Sites[i].Managed = true
		}
	}
	e, err := engine.New(*config)
	if err != nil {
		return nil, err
	}
	d := &driver{engine: e, workload: w, recorder: newRecorder(config, w), told: -1}
	if err := checkPromises(config, w); err != nil {
		return nil, err
	}
	d.outages, d.stop = iter.Pull(outagesOf(w))
	d.falling, d.fails = d.outages()
	d.broken = d.fails
	for i := range w.Requests {
		d.checksIn = d.checksIn || w.Requests[i].NoShow > 0
	}
	d.extends = config.Overrun != "" && config.Overrun != engine.OverrunKill || config.Preempt
	order := config.Instant
	if len(order) == 0 {
		order = engine.EndsFirst()
	}
	d.ranks[finishes] = slices.Index(order, "end")
	d.ranks[falls] = slices.Index(order, "capacity")
	d.ranks[reports] = d.ranks[falls]
	d.ranks[arrives] = slices.Index(order, "arrival")
	d.ranks[tells], d.ranks[submits] = d.ranks[finishes], d.ranks[arrives]
	if len(w.Flows) > 0 {
		d.flows = newFlowRun(d, config, w)
		d.recorder.tasks = map[string]bool{}
	}
	for s, some := range []bool{finishes: true, falls: d.fails, reports: w.Monitor != nil, tells: d.flows != nil, arrives: true, submits: d.flows != nil} {
		if some {
			d.sources = append(d.sources, source(s))
		}
	}
	return d, nil
}

// outagesOf returns the outages of a workload, which may be nil.
func outagesOf(w *Workload) iter.Seq[Outage] {
	if w.Outages == nil {
		return slices.Values[[]Outage](nil)
	}
	return w.Outages
}

// source is one of the things that bring events.
type source int

const (
	finishes source = iota // something that runs ends by itself
	falls                  // an outage begins
	reports                // the monitor has something to say
	tells                  // something is told of a task of a workflow
	arrives                // a request arrives
	submits                // a workflow arrives
	sources
)

// step lets the next thing happen; more is false if there is nothing left.
func (d *driver) step() (more bool, err error) {
	if d.workload.Promises && d.waiting == 0 && d.arrived == d.workload.Len() {
		return false, nil
	}
	if len(d.unsettled) > 0 && !d.endsNow() {
		if err := d.settle(); err != nil {
			return false, err
		}
	}
	from, at := sources, berth.Forever
	for _, s := range d.sources {
		if t, ok := d.next(s); ok && (t < at || (t == at && d.ranks[s] < d.ranks[from])) {
			from, at = s, t
		}
	}
	// Whatever comes lets the engine catch up, so it is to be woken only at the
	// end, or where something that starts meanwhile may end before, or must be used.
	if due, ok := d.engine.Next(); ok && (from == sources || (due < at && (d.workload.Runs != nil || d.checksIn || d.flows != nil || from != arrives))) {
		event := engine.Wake()
		return true, d.apply(due, &event)
	}
	switch from {
	case finishes:
		request := d.ends.pop().request
		id := d.recorder.id(request)
		d.recorder.find(id)
		event := engine.Finish(id)
		return true, d.apply(at, &event)
	case falls:
		o := d.falling
		if d.falling, d.fails = d.outages(); d.fails && d.falling.From < o.From {
			return false, berth.Errorf(berth.Invalid, "outages", "one from %d comes behind one from %d; want them in the order of their beginning", d.falling.From, o.From)
		}
		if o.Until <= at {
			return true, nil // over before the engine's time began
		}
		event := engine.Event{Kind: engine.EventDown, Resource: o.Resource, PEs: o.PEs, Until: o.Until}
		return true, d.apply(at, &event)
	case reports:
		event := d.workload.Monitor.Report(d.engine)
		d.broken = d.broken || event.Kind == engine.EventDown
		return true, d.apply(at, &event)
	case tells:
		return true, d.flows.report(at)
	case arrives:
		return true, d.arrive(at)
	case submits:
		return true, d.flows.arrive(at)
	}
	return false, nil
}

// endsNow reports whether more ends at this instant. Sites say that they are in line with it after that: what has ended
// by then is late otherwise.
func (d *driver) endsNow() bool {
	for _, s := range []source{finishes, tells} {
		if at, ok := d.next(s); ok && at == d.engine.Now() {
			return true
		}
	}
	return false
}

// next returns when a source brings its next event.
func (d *driver) next(s source) (at berth.Time, ok bool) {
	w := d.workload
	switch s {
	case finishes:
		for len(d.ends) > 0 && d.gone(&d.ends[0]) {
			d.ends.pop()
		}
		if len(d.ends) > 0 {
			return d.ends[0].at, true
		}
		return 0, false
	case falls:
		at, ok = d.falling.From, d.fails
	case reports:
		at, ok = w.Monitor.Next(d.engine)
	case arrives:
		if ok = d.arrived < w.Len(); ok {
			at = w.Arrival(d.arrived)
		}
	case tells:
		at, ok = d.flows.nextReport()
	case submits:
		if ok = d.flows.next < len(w.Flows); ok {
			at = w.Flows[d.flows.next].Workflow.Arrival
		}
	}
	return max(at, d.engine.Now()), ok
}

// gone reports whether the engine has ended something that would have gone on.
func (d *driver) gone(x *end) bool {
	if !d.extends && !d.broken {
		return false
	}
	r, live := d.engine.Reservation(d.recorder.id(x.request))
	return !live || r.Start() != x.start
}

// arrive submits the next request.
func (d *driver) arrive(now berth.Time) error {
	request := d.request()
	event := engine.SubmitGiven(request)
	err := d.apply(now, &event)
	if err == nil && d.arrived > 0 && request.Arrival < d.workload.Arrival(d.arrived-1) {
		err = berth.Errorf(berth.Invalid, "arrival", "%d is before the request ahead of it; requests must be sorted by arrival", request.Arrival)
	}
	if err != nil {
		return requestError(request, err)
	}
	d.arrived++
	if d.flows != nil {
		area := int64(0)
		for i := range request.Parts {
			area += request.Parts[i].Variants[0].Area()
		}
		d.flows.load.add(now, area)
	}
	return nil
}

// request returns the next request. One in short is made in the memory of one that is over.
func (d *driver) request() *berth.Request {
	if d.workload.Plain == nil {
		return &d.workload.Requests[d.arrived]
	}
	short := &d.workload.Plain[d.arrived]
	last := len(d.recorder.over) - 1
	if last < 0 {
		return short.Request()
	}
	request := d.recorder.over[last]
	d.recorder.over = d.recorder.over[:last]
	short.Fill(request)
	return request
}

// apply applies an event and notes what has changed.
func (d *driver) apply(now berth.Time, event *engine.Event) error {
	var err error
	d.changes, d.effects, err = d.engine.AppendApply(d.changes[:0], d.effects[:0], now, event)
	changes := d.changes
	d.recorder.record(changes)
	if d.flows != nil {
		d.flows.follow(changes)
	}
	if d.workload.Runs != nil {
		for i := range changes {
			if changes[i].Kind == change.Started && (d.flows == nil || !d.recorder.tasks[changes[i].ID]) {
				d.start(changes[i].ID)
			}
		}
	}
	if d.workload.Promises {
		d.count(changes)
	}
	if d.workload.Refused != nil {
		err = errors.Join(err, d.tellRefused(changes))
	}
	if d.flows != nil {
		for i := range d.effects {
			d.unsettled = append(d.unsettled, d.effects[i].Number)
		}
	}
	if err != nil || !d.checksIn {
		return err
	}
	return d.checkIn(now, changes)
}

// tellRefused tells the workload's listener what was refused in a step.
func (d *driver) tellRefused(changes []change.Change) error {
	for i := range changes {
		if c := &changes[i]; c.Kind == change.Refused {
			if err := d.workload.Refused(d.engine, c.Request); err != nil {
				return err
			}
		}
	}
	return nil
}

// settle says that the sites are in line with what the last steps asked of them.
func (d *driver) settle() error {
	for len(d.unsettled) > 0 { // others may come
		event := engine.Settle(d.unsettled[0])
		d.unsettled = slices.Delete(d.unsettled, 0, 1)
		if err := d.apply(d.engine.Now(), &event); err != nil {
			return err
		}
	}
	return nil
}

// checkIn says of every promise that has started, and is given up unless it is used,
// that it is used.
func (d *driver) checkIn(now berth.Time, changes []change.Change) error {
	var started []string
	for i := range changes {
		if c := &changes[i]; c.Kind == change.Started && !d.recorder.tasks[c.ID] && d.workload.Requests[d.recorder.find(c.ID)].NoShow > 0 {
			started = append(started, c.ID)
		}
	}
	for _, id := range started {
		if _, live := d.engine.Reservation(id); !live {
			continue
		}
		event := engine.CheckIn(id)
		if err := d.apply(now, &event); err != nil {
			return err
		}
	}
	return nil
}

// start foresees the end of what starts, if that is before its limit or the
// limit may be extended. It runs from when its data are there; what waits for
// data that never come ends at its limit.
func (d *driver) start(id string) {
	request := d.recorder.find(id)
	first := d.recorder.of(id, 0)
	if !first.is(placed) {
		return // a task that goes on took its PEs in the same step
	}
	run, arrival := d.workload.Runs[request], d.recorder.arrival(id)
	at, last := -berth.Forever, -berth.Forever
	for part := range d.recorder.parts(request) {
		of := d.recorder.of(id, part)
		last = max(last, of.end)
		if run > 0 {
			at = max(at, max(of.start, arrival).Add(d.recorder.speed(of).Scale(run-d.recorder.pieces[id].done)))
		}
	}
	if run == 0 || arrival >= berth.TimeLimit {
		at = last
	}
	if at < last || d.extends {
		d.started++
		d.ends.push(end{at: at, order: d.started, request: request, start: first.start})
	}
}
