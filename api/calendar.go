package api

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/icalendar"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site/hostlist"
)

// calendarKey is what a calendar is of: who reads it, what it shows, and at which address its pages are.
type calendarKey struct {
	by         service.Principal
	site, base string
}

// calendarTag is the entity tag of a calendar, which holds while nothing that it shows has changed.
type calendarTag struct {
	generation service.FeedGeneration
	from       berth.Time // until is from when on it may be otherwise
	until      berth.Time
	tag        string
}

// maxCalendarTags bounds how many are remembered: some for each of thousands of users.
const maxCalendarTags = 50_000

// calendarTags remembers tags, so that a program that has the calendar as it is learns so at once. The zero value
// is empty.
type calendarTags struct {
	mu sync.Mutex
	of map[calendarKey]calendarTag
}

// get returns the tag of a calendar as it is at a time; empty if it is not known.
func (t *calendarTags) get(key calendarKey, generation service.FeedGeneration, now berth.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if is := t.of[key]; is.generation == generation && is.from <= now && now < is.until {
		return is.tag
	}
	return ""
}

func (t *calendarTags) put(key calendarKey, tag calendarTag) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil || len(t.of) >= maxCalendarTags {
		t.of = map[calendarKey]calendarTag{}
	}
	t.of[key] = tag
}

// sendCalendar answers with the calendar of who asks: of their own, or of a site.
func (c *call) sendCalendar(site string) error {
	key := calendarKey{c.by, site, c.base()}
	generation, err := c.FeedGeneration(c.by, site)
	if err != nil {
		return err
	}
	if tag := c.calendars.get(key, generation, c.Now()); tag != "" && c.has(tag) {
		return c.sameCalendar(tag)
	}
	if err := c.begin(); err != nil {
		return err
	}
	feed, looked, err := c.Feed(c.r.Context(), c.by, site)
	c.rates.charge(c.asker(), looked/lookedAtOnce)
	if err != nil {
		return err
	}
	w := calendarWriter{feed: &feed, by: c.by, realm: c.tokens.Realm(), base: key.base, until: feed.Until}
	data := w.write()
	sum := sha256.Sum256(data)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	c.calendars.put(key, calendarTag{feed.Generation, feed.Now, w.until, tag})
	if c.has(tag) {
		return c.sameCalendar(tag)
	}
	c.tagCalendar(tag)
	return c.send(http.StatusOK, icalendar.Type, data)
}

func (c *call) tagCalendar(tag string) {
	h := c.w.Header()
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Vary", "Authorization, Cookie, Accept-Encoding")
	h.Set("ETag", tag)
}

func (c *call) sameCalendar(tag string) error {
	c.tagCalendar(tag)
	c.w.WriteHeader(http.StatusNotModified)
	return nil
}

// has reports whether a client says that it has what a tag is of. Proxies that pack answers make tags weak
// ones, which are as good here (RFC 9110, 13.1.2).
func (c *call) has(tag string) bool {
	for _, line := range c.r.Header.Values("If-None-Match") {
		for one := range strings.SplitSeq(line, ",") {
			if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == tag {
				return true
			}
		}
	}
	return false
}

// calendarWriter writes a feed as a calendar.
type calendarWriter struct {
	feed  *service.Feed
	by    service.Principal
	realm string
	base  string     // of addresses of pages; empty is none
	until berth.Time // from when on it may be otherwise
	out   icalendar.Calendar
}

func (w *calendarWriter) write() []byte {
	if w.feed.Site == "" {
		w.out.Name, w.out.About = "Berth: "+w.by.User, "What "+w.by.User+" has reserved, with a month of the past."
	} else {
		w.out.Name, w.out.About = "Berth: "+w.feed.Site, "Reservations and outages at "+w.feed.Site+", with a month of the past."
	}
	if w.feed.Left > 0 {
		w.out.About += fmt.Sprintf(" %d more have no room here.", w.feed.Left)
	}
	for i := range w.feed.Promises {
		w.promise(&w.feed.Promises[i])
	}
	for i := range w.feed.Workflows {
		w.workflow(&w.feed.Workflows[i])
	}
	for i := range w.feed.Outages {
		w.outage(&w.feed.Outages[i])
	}
	slices.SortStableFunc(w.out.Events, func(a, b icalendar.Event) int {
		if a.Start != b.Start {
			return int(a.Start - b.Start)
		}
		return strings.Compare(a.UID, b.UID)
	})
	return w.out.Append(make([]byte, 0, 640*(1+len(w.out.Events))))
}

// uid names an event of a kind the same way for as long as the data folder lives, and like none of another.
func (w *calendarWriter) uid(kind, name string) string {
	return name + "@" + kind + "." + w.realm + ".berth"
}

// lines gathers a description.
type lines []string

func (l *lines) addf(format string, args ...any) { *l = append(*l, fmt.Sprintf(format, args...)) }

// noted says what the state of a promise means for its event, where it is not as usual.
var noted = map[service.State]struct {
	prefix string
	status icalendar.Status
}{
	service.Held:      {"Held: ", icalendar.Tentative},
	service.Degraded:  {"Degraded: ", icalendar.Confirmed},
	service.Cancelled: {"Cancelled: ", icalendar.Cancelled},
	service.Expired:   {"Expired: ", icalendar.Cancelled},
	service.NoShow:    {"Not used: ", icalendar.Cancelled},
	service.Failed:    {"Lost: ", icalendar.Cancelled},
}

func (w *calendarWriter) promise(p *service.FeedPromise) {
	state := p.State
	if state == service.Active && p.Missing > 0 {
		state = service.Degraded
	}
	is, special := noted[state]
	if !special {
		is.status = icalendar.Confirmed
	}
	e := icalendar.Event{
		UID: w.uid("promise", p.ID), Created: p.Created, Changed: p.Changed, Sequence: p.Version, Status: is.status, Start: p.Start, End: p.End, Category: "promise",
	}
	if state == service.Held {
		e.Category = "hold"
	}
	var npe []string
	var places []string
	var about lines
	for i := range p.Allotments {
		a := &p.Allotments[i]
		place := a.Resource.Site + "/" + a.Resource.Name
		npe = append(npe, fmt.Sprint(a.NPE))
		if !slices.Contains(places, place) {
			places = append(places, place)
		}
		about.addf("%d PEs at %s%s", a.NPE, place, on(a.PEs, nodesOf(p, i)))
	}
	e.Location = strings.Join(places, ", ")
	what := strings.Join(npe, " + ") + " PEs"
	if p.Missing > 0 && !p.State.Over() {
		about.addf("%d PEs of it are out of use", p.Missing)
	}
	number := fmt.Sprintf("%s/%d", p.Allotments[0].Resource.Site, p.Number)
	if p.Yours {
		if p.Request.Name != "" {
			what = p.Request.Name + ", " + what
		}
		if w.feed.Site != "" && p.Request.User != "" {
			what = p.Request.User + ": " + what
		}
		w.about(p, state, &about)
	} else {
		e.UID, what = w.uid("place", number), "Reserved: "+what
	}
	e.Summary = is.prefix + what + " at " + e.Location
	if w.base != "" {
		e.URL = w.base + "/?" + url.Values{"sel": {number}, "t": {stamp(e.Start.Add(-pageMargin)) + ".." + stamp(e.End.Add(pageMargin))}}.Encode()
	}
	e.Description = strings.Join(about, "\n")
	w.out.Events = append(w.out.Events, e)
}

// pageMargin is what the page shows before and after the promise that it is opened at.
const pageMargin berth.Duration = 2 * 3600

func nodesOf(p *service.FeedPromise, part int) []string {
	if part < len(p.Nodes) {
		return p.Nodes[part]
	}
	return nil
}

// on says where PEs are, if that is known.
func on(pes berth.PESet, nodes []string) string {
	switch {
	case len(nodes) > 0:
		return ": " + hostlist.Fold(nodes)
	case !pes.Empty():
		return ": PEs " + pes.String()
	}
	return ""
}

// about says of a promise what its owner needs to use it.
func (w *calendarWriter) about(p *service.FeedPromise, state service.State, l *lines) {
	l.addf("Reservation %s, %s", p.ID, strings.ReplaceAll(string(state), "_", " "))
	switch {
	case p.Refusal != nil:
		l.addf("%s", detail(p.Refusal, &p.Request))
	case state == service.Held:
		l.addf("Gone at %s unless it is confirmed: berth confirm %s", stamp(p.Expires), p.ID)
	}
	if p.State.Over() || state == service.Held {
		return
	}
	managed := false
	for _, s := range p.Sites {
		at := slices.IndexFunc(p.Allotments, func(a berth.Allotment) bool { return a.Resource.Site == s.Site })
		managed = managed || at >= 0
		if at >= 0 && p.Kinds[at] == "slurm" {
			l.addf("At %s: sbatch --reservation=%s SCRIPT", s.Site, s.Name)
		}
	}
	if managed {
		l.addf("berth submit --reservation %s SCRIPT", p.ID)
	}
}

// flowNoted is noted of workflows.
var flowNoted = map[service.FlowState]struct {
	prefix string
	status icalendar.Status
}{
	service.FlowHeld:      {"Held: ", icalendar.Tentative},
	service.FlowFailed:    {"Failed: ", icalendar.Confirmed},
	service.FlowCancelled: {"Cancelled: ", icalendar.Cancelled},
	service.FlowExpired:   {"Expired: ", icalendar.Cancelled},
	service.FlowRefused:   {"Refused: ", icalendar.Cancelled},
}

func (w *calendarWriter) workflow(f *service.FeedWorkflow) {
	is, special := flowNoted[f.State]
	if !special {
		is.status = icalendar.Confirmed
	}
	ask := &f.Workflow.Workflow
	name := ask.Name
	if icalendar.Plain(name) == "" {
		name = ask.ID
	}
	e := icalendar.Event{
		UID: w.uid("workflow", ask.ID), Created: f.Created, Changed: f.Touched, Status: is.status, Start: f.Start, End: f.End, Category: "workflow",
		// Its version does not grow with its reservations, whose changes move it too.
		Sequence: f.Version + uint64(max(f.Touched.Sub(f.Created), 0)),
		Summary:  fmt.Sprintf("%sWorkflow %s: %d tasks", is.prefix, name, len(f.Tasks)),
	}
	var places []string
	var about lines
	succeeded := 0
	for i := range f.Tasks {
		t := &f.Tasks[i]
		if t.Outcome == berth.Succeeded {
			succeeded++
		}
		if place := t.Resource.Site + "/" + t.Resource.Name; t.State != "" && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	slices.Sort(places)
	e.Location = strings.Join(places, ", ")
	about.addf("Workflow %s, %s", ask.ID, f.State)
	about.addf("%d of %d tasks have succeeded", succeeded, len(f.Tasks))
	if ask.Deadline < berth.Forever {
		about.addf("Deadline %s", stamp(ask.Deadline))
	}
	if f.Expires != 0 {
		about.addf("Gone at %s unless it is confirmed: berth workflow confirm %s", stamp(f.Expires), ask.ID)
	}
	if f.Why != "" {
		about.addf("%s", whyOf(f.Why))
	}
	about.addf("berth workflow show %s", ask.ID)
	if w.base != "" {
		e.URL = w.base + "/workflow"
	}
	e.Description = strings.Join(about, "\n")
	w.out.Events = append(w.out.Events, e)
}

const day berth.Duration = 86_400

// midnight returns the beginning of the day of a time, in UTC.
func midnight(at berth.Time) berth.Time { return at - at%berth.Time(day) }

// outage writes an outage. One whose end is not known is shown up to the end of the next day, in UTC, and so
// grows each day.
func (w *calendarWriter) outage(o *service.FeedOutage) {
	place := o.Resource.Site + "/" + o.Resource.Name
	e := icalendar.Event{
		UID: w.uid("outage", fmt.Sprintf("%d.%s", o.Number, o.Resource.Site)), Created: min(o.From, o.Changed), Changed: o.Changed, Sequence: o.Changes,
		Status: icalendar.Confirmed, Start: o.From, End: o.Until, Category: "outage",
		Summary: fmt.Sprintf("Outage: %d PEs at %s", o.PEs.Count(), place), Location: place,
	}
	var about lines
	about.addf("%d PEs at %s are out of use%s", o.PEs.Count(), place, on(o.PEs, o.Nodes))
	if w.by.Can(service.Operator) && o.Name != "" { // names are given by people
		about.addf("%s", o.Name)
	}
	if o.Until >= berth.Forever {
		last := w.feed.Now
		if o.Ended != 0 {
			last = o.Ended
		}
		today := midnight(last)
		if days := today.Sub(midnight(o.From)); days > 0 {
			e.Sequence += uint64(days / day)
		}
		e.End = midnight(max(last, e.Start)).Add(2 * day)
		if o.Ended == 0 {
			e.Changed, w.until = max(e.Changed, today), min(w.until, today.Add(day))
			about.addf("Its end is not known")
		}
	}
	switch {
	case o.Ended != 0 && o.Ended <= o.From:
		e.Status, e.Summary = icalendar.Cancelled, "Called off: "+e.Summary
	case o.Ended != 0:
		e.End = min(e.End, o.Ended)
	}
	e.Description = strings.Join(about, "\n")
	w.out.Events = append(w.out.Events, e)
}
