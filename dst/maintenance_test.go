package dst

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
)

// upkeep is maintenance as a client asked for it, or as it is shown. It shares no code with the service.
type upkeep struct {
	name, site string
	nodes      []string // in order; none is all
	times      []berth.Interval
}

// same reports whether it is shown as it was asked for, without those of its times that may be over.
func (m *upkeep) same(shown *upkeep, over func(berth.Interval) bool) bool {
	passed := len(m.times) - len(shown.times)
	return m.site == shown.site && slices.Equal(m.nodes, shown.nodes) && passed >= 0 && slices.Equal(m.times[passed:], shown.times) &&
		!slices.ContainsFunc(m.times[:passed], func(at berth.Interval) bool { return !over(at) })
}

func (m *upkeep) String() string {
	if m == nil {
		return "none"
	}
	return fmt.Sprintf("%s at %s of %q, %v", m.name, m.site, m.nodes, m.times)
}

// maintenanceCall has an operator take nodes out of use at some times, or call that off.
func (w *world) maintenanceCall(c *call) {
	rng := w.driver
	c.user, c.key, c.features = "operator", "", []string{featureMaintenance}
	c.upkeep = &upkeep{name: pick(rng, []string{"cooling", "disks", "kernel"})}
	if rng.IntN(3) == 0 {
		c.method, c.path = http.MethodDelete, "/v1/maintenance/"+c.upkeep.name
		return
	}
	p := pick(rng, w.ports)
	start := w.now() + berth.Time(60*rng.Int64N(240))
	length := berth.Duration(60 * (1 + rng.IntN(120)))
	c.path, c.upkeep.site = "/v1/maintenance", p.name
	c.body = fmt.Sprintf(`{"name":%q,"site":%q,"start":%q,"duration":%d`, c.upkeep.name, p.name, time.Unix(int64(start), 0).UTC().Format(time.RFC3339), length)
	if rng.IntN(3) > 0 {
		c.upkeep.nodes = []string{pick(rng, p.nodes)}
		c.body += fmt.Sprintf(`,"nodes":[%q]`, c.upkeep.nodes[0])
	}
	times := 1
	if rng.IntN(2) == 0 {
		times = 2 + rng.IntN(3)
		c.body += fmt.Sprintf(`,"repeat":"every day","times":%d`, times)
	}
	for n := range times {
		at := start.Add(berth.Duration(n) * 86_400)
		c.upkeep.times = append(c.upkeep.times, berth.Interval{Start: at, End: at.Add(length)})
	}
	c.body += "}"
}

// What clients did about maintenance of one name, and heard, has to be explained by one order as well.
type upkeepDeed struct {
	call         *call   // that asked for it or called it off; nil for a look
	seen         *upkeep // by a look; nil for none
	asked, heard int64   // nanoseconds since 1970
	slack        time.Duration
}

// over reports whether a time is certainly over when this takes effect, and ended whether it may be.
func (o *upkeepDeed) over(at berth.Interval) bool {
	return int64(at.End)*int64(time.Second) <= o.asked-int64(o.slack)
}

func (o *upkeepDeed) ended(at berth.Interval) bool {
	heard := o.heard
	if heard == never {
		return true
	}
	return int64(at.End)*int64(time.Second) <= heard+int64(o.slack)
}

func (o *upkeepDeed) String() string {
	at := time.Unix(0, o.asked).UTC().Format("15:04:05.000000")
	if o.call == nil {
		return fmt.Sprintf("seen %s: %v", at, o.seen)
	}
	return fmt.Sprintf("asked %s: call %d %s %v: %d", at, o.call.number, o.call.method, o.call.upkeep, o.call.status)
}

// unknownUpkeep is what an earlier version may have left.
var unknownUpkeep = &upkeep{name: "unknown"}

// step takes a deed in; ok is false if it cannot be next.
func (o *upkeepDeed) step(is *upkeep) (next *upkeep, ok bool) {
	last := func(m *upkeep) berth.Interval { return m.times[len(m.times)-1] }
	mayBeNone := is == nil || is == unknownUpkeep || o.ended(last(is))
	mayBe := is == unknownUpkeep || is != nil && !o.over(last(is))
	if o.call == nil {
		switch {
		case o.seen == nil:
			return is, mayBeNone
		case is == unknownUpkeep:
			return o.seen, true
		}
		return is, is != nil && is.same(o.seen, o.ended)
	}
	c := o.call
	switch {
	case c.status == 0 && c.method == http.MethodDelete: // it may have been done
		return nil, true
	case c.status == 0 && mayBeNone:
		return c.upkeep, true
	case c.status == 0:
		return is, true
	case c.method == http.MethodDelete && c.status < 300:
		return nil, mayBe
	case c.method == http.MethodDelete && c.status == http.StatusNotFound:
		return is, mayBeNone
	case c.status == http.StatusCreated && mayBeNone:
		return c.upkeep, true
	case c.status == http.StatusConflict:
		return is, mayBe
	case c.status == http.StatusBadRequest && c.method == http.MethodPost: // it was over
		return is, o.ended(last(c.upkeep))
	case c.status == http.StatusCreated: // the same is there already
		return is, is.site == c.upkeep.site && slices.Equal(is.nodes, c.upkeep.nodes) && slices.Equal(is.times, c.upkeep.times)
	}
	return is, false
}

// upkeepModel is the model of the maintenance of one name.
func upkeepModel(first *upkeep) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(state, input, _ any) (bool, any) {
			next, ok := input.(*upkeepDeed).step(state.(*upkeep))
			return ok, next
		},
		Equal: func(a, b any) bool { return a == b },
	}
}

// upkeepExplained returns the history of the first name that no order explains.
func (w *world) upkeepExplained() error {
	slack := time.Minute
	if w.plan.has(faultClock) {
		slack += 2 * time.Hour // the clock is set off by no more
	}
	of := map[string][]porcupine.Operation{}
	add := func(name string, o *upkeepDeed) {
		o.slack = slack
		of[name] = append(of[name], porcupine.Operation{Input: o, Call: o.asked, Return: o.heard})
	}
	for _, c := range w.calls {
		if c.upkeep == nil || c.first == 0 {
			continue
		}
		o := &upkeepDeed{call: c, asked: c.first, heard: never}
		if c.status != 0 {
			o.heard = c.at.UnixNano()
		}
		add(c.upkeep.name, o)
	}
	for _, at := range w.upkept {
		for name := range of {
			add(name, &upkeepDeed{seen: at.list[name], asked: at.asked, heard: at.heard})
		}
		for name, seen := range at.list {
			if of[name] == nil && w.before == 0 {
				return fmt.Errorf("maintenance %v is shown, which no client asked for", seen)
			}
		}
	}
	var first *upkeep
	if w.before > 0 {
		first = unknownUpkeep
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if porcupine.CheckOperationsTimeout(upkeepModel(first), of[name], patience) != porcupine.Illegal {
			continue
		}
		slices.SortStableFunc(of[name], func(a, b porcupine.Operation) int { return int(min(1, max(-1, a.Call-b.Call))) })
		var text strings.Builder
		for i := range of[name] {
			fmt.Fprintf(&text, "\n%s", of[name][i].Input.(*upkeepDeed))
		}
		return fmt.Errorf("the history of maintenance %s is not linearizable: %s", name, text.String())
	}
	return nil
}

// upkeepLook is what a client saw who looked at all maintenance.
type upkeepLook struct {
	list         map[string]*upkeep
	asked, heard int64
}

// lookAtUpkeep has an operator look at all maintenance.
func (w *world) lookAtUpkeep() (*upkeepLook, error) {
	at := &upkeepLook{list: map[string]*upkeep{}, asked: time.Now().UnixNano()}
	status, answer := w.life.send(w.life.ctx, "operator", http.MethodGet, "/v1/maintenance", "", "", 0)
	at.heard = time.Now().UnixNano() + 1
	if status != http.StatusOK {
		return nil, fmt.Errorf("maintenance: %d %s", status, answer)
	}
	_, body, _ := strings.Cut(answer, "\n")
	var said struct {
		Maintenance []struct {
			Name, Site string
			Nodes      []string
			Times      []struct{ Start, End time.Time }
		}
	}
	if err := json.Unmarshal([]byte(body), &said); err != nil {
		return nil, fmt.Errorf("maintenance: %s: %w", answer, err)
	}
	for i := range said.Maintenance {
		m := &said.Maintenance[i]
		seen := &upkeep{name: m.Name, site: m.Site, nodes: m.Nodes}
		for _, t := range m.Times {
			seen.times = append(seen.times, berth.Interval{Start: berth.Time(t.Start.Unix()), End: berth.Time(t.End.Unix())})
		}
		at.list[m.Name] = seen
	}
	return at, nil
}

// takes returns the PEs that maintenance takes of a site: those of a node follow one another.
func (p *port) takes(m *upkeep) (set berth.PESet) {
	each := p.cores
	if p.unit == site.UnitNode {
		each = 1
	}
	for i, node := range p.nodes {
		if len(m.nodes) == 0 || slices.Contains(m.nodes, node) {
			set = set.Or(berth.NewPESet(berth.Run{Lo: berth.PE(berth.Count(i) * each), Hi: berth.PE(berth.Count(i+1) * each)}))
		}
	}
	return set
}

// maintained returns how what is out of use at the sites, now and at all times that are to come, differs from what the maintenance takes that is
// shown, all other nodes being in use, and which promises have PEs that it takes. What is shown is judged by what clients asked for.
func (w *world) maintained(list []service.Reservation) error {
	const slack = 60 // sites are looked at now and then
	shown, err := w.lookAtUpkeep()
	if err != nil {
		return err
	}
	outages, err := w.life.host.Outages(context.Background(), operator)
	if err != nil {
		return err
	}
	from := w.now() + slack + 1
	for _, p := range w.ports {
		var upkeeps []*upkeep
		moments := []berth.Time{from}
		edge := func(at berth.Time) { moments = append(moments, max(at, from)) }
		for _, name := range slices.Sorted(maps.Keys(shown.list)) {
			if m := shown.list[name]; m.site == p.name {
				upkeeps = append(upkeeps, m)
				for _, at := range m.times {
					edge(at.Start)
					edge(at.End)
				}
			}
		}
		for i := range outages {
			if outages[i].Resource.Site == p.name {
				edge(outages[i].From)
				edge(outages[i].Until)
			}
		}
		state, err := p.state(w.now())
		if err != nil {
			return err
		}
		out := slices.DeleteFunc(slices.Clone(outages), func(o service.PoolOutage) bool {
			return slices.ContainsFunc(state.Running, func(j site.Job) bool { return o.Name == "job "+string(j.ID) }) // whose reservation the site has forgotten
		})
		for _, at := range moments {
			if err := p.outOfUse(at, at > from, upkeeps, out, list); err != nil {
				return err
			}
		}
	}
	w.upkept = append(w.upkept, shown)
	return nil
}

// outOfUse returns what of a site goes against its maintenance at one moment. What runs before that has its PEs until then.
func (p *port) outOfUse(moment berth.Time, later bool, upkeeps []*upkeep, outages []service.PoolOutage, list []service.Reservation) error {
	var want, is berth.PESet
	for _, m := range upkeeps {
		if slices.ContainsFunc(m.times, func(at berth.Interval) bool { return at.Start <= moment && moment < at.End }) {
			want = want.Or(p.takes(m))
		}
	}
	causes := ""
	for i := range outages {
		if o := &outages[i]; o.Resource.Site == p.name && o.From <= moment && moment < o.Until {
			is, causes = is.Or(o.PEs), causes+fmt.Sprintf(" %+v", *o)
		}
	}
	if !want.Equal(is) {
		return fmt.Errorf("%s of %s are out of use at %d, and maintenance takes %s; outages are%s", is, p.name, moment, want, causes)
	}
	npe, ids := berth.Count(0), ""
	for i := range list {
		r := &list[i]
		if r.State.Over() || r.State == service.Pending || r.Request.IsJob() || later && r.State == service.Active {
			continue
		}
		for _, a := range r.Allotments {
			if a.Resource.Site != p.name || moment < a.Start || moment >= a.End {
				continue
			}
			if both := a.PEs.Overlap(want); both > 0 {
				return fmt.Errorf("%s has %d PEs at %s at %d which maintenance takes, %s", r.ID, both, p.name, moment, want)
			}
			npe, ids = npe+a.NPE, ids+" "+r.ID
		}
	}
	if all := p.takes(&upkeep{}).Count(); npe > all-want.Count() {
		return fmt.Errorf("%d PEs of %s are promised at %d, to%s; it has %d, and maintenance takes %d", npe, p.name, moment, ids, all, want.Count())
	}
	return nil
}
