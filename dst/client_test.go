package dst

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/service"
)

// call is something that a client asks for. Under a key it may ask again, in another life too.
type call struct {
	number       int
	user         string
	method, path string
	body, key    string
	about        string  // the reservation or series that it is about, if it is about one
	wants        *wants  // what it asks for, if it asks for reservations
	upkeep       *upkeep // the maintenance that it is about, if it is about any
	account      string  // that it names
	features     []string
	sent         bool
	first        int64    // when it was sent first, in nanoseconds since 1970
	sendings     int      // until it was answered
	ids          []string // of the reservations that it made
	status       int      // of the first answer; 0 while there is none
	answer       string
	at           time.Time
}

// final reports whether an answer is one that stays: not that the service cannot, or that the call is wrong.
func final(status int) bool {
	return status != 0 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusPreconditionFailed && status != http.StatusUnprocessableEntity
}

// send asks the service of a life, and returns status 0 if there is no answer: the client went away, or
// the power failed first.
func (l *life) send(ctx context.Context, user, method, path, body, key string, number int) (status int, answer string) {
	r := arrived(ctx, method, path, body)
	r.Header.Set("Authorization", "Bearer "+l.w.keys.secret[user])
	r.Header.Set("X-Request-Id", fmt.Sprint("call-", number))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	rec := httptest.NewRecorder()
	l.w.plant.shake()
	l.handler.ServeHTTP(rec, r)
	if l.isDead() || ctx.Err() != nil {
		return 0, ""
	}
	return rec.Code, rec.Header().Get("ETag") + " " + rec.Header().Get("Location") + "\n" + rec.Body.String()
}

// arrived returns a request as a server gets it.
func arrived(ctx context.Context, method, path, body string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1:7117"+path, strings.NewReader(body))
	if err != nil {
		panic(err) // the simulator made it up
	}
	r.RequestURI, r.RemoteAddr = path, "127.0.0.1:4711"
	r.URL.Scheme, r.URL.Host = "", ""
	return r
}

// ask sends a call and takes its answer, or compares it with the one that it had.
func (w *world) ask(ctx context.Context, l *life, c *call) {
	wasOver := w.sends(c)
	status, answer := l.send(ctx, c.user, c.method, c.path, c.body, c.key, c.number)
	time.Sleep(w.pause("answer", c.path, c.body, c.key))
	if w.answered(l, c, status, answer, wasOver) {
		w.lookAfter(l, c)
	}
}

// sends notes that a call is sent, and reports whether what it is about was over, as its client has heard.
func (w *world) sends(c *call) (wasOver bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wasOver = !c.sent && c.about != "" && w.watcher.isOver(c.about) // a call that was sent before may have been answered then
	if c.sent = true; c.first == 0 {
		c.first = time.Now().UnixNano()
	}
	if c.status == 0 {
		c.sendings++
	}
	return wasOver
}

// answered takes an answer, and reports whether it is the first one and says that it was done.
func (w *world) answered(l *life, c *call, status int, answer string, wasOver bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case status == 0:
	case c.status == 0:
		if status == http.StatusInternalServerError {
			w.fault("%s %s %s: %d %s", c.method, c.path, c.body, status, answer)
		}
		if !final(status) {
			return false
		}
		c.status, c.answer, c.at = status, answer, time.Now()
		w.learn(c)
		w.heard(c, wasOver)
		if status >= 300 {
			return false
		}
		for _, f := range c.features {
			l.note(f)
		}
		return true
	case c.key != "" && (status != c.status || answer != c.answer) && (final(status) || status == http.StatusUnprocessableEntity):
		w.fault("%s %s %s under %s is answered %d %s, and was answered %d %s", c.method, c.path, c.body, c.key, status, answer, c.status, c.answer)
	}
	return false
}

// together has clients ask at the same time, and lets the service do what it does at once.
func (w *world) together(n int) {
	l := w.life
	first := len(w.calls)
	w.group = first
	w.mu.Lock()
	for range n {
		c := w.newCall()
		w.chargeTo(c)
		w.chargeFlow(c)
		w.moor(c)
		w.calls = append(w.calls, c)
	}
	looked, looks := len(w.looked), w.looks()
	w.mu.Unlock()
	for _, c := range w.calls[first:] {
		times, patience := 1, time.Duration(0)
		if w.plan.has(faultRepeat) && c.key != "" && w.driver.IntN(4) == 0 {
			times = 2
			l.meet(faultRepeat)
		}
		if w.plan.has(faultGone) && w.driver.IntN(6) == 0 {
			patience = time.Duration(1+w.driver.IntN(50))*time.Millisecond + w.pause("patience", c.path, c.body)
			l.meet(faultGone)
		}
		late := time.Duration(w.driver.Int64N(int64(3 * time.Millisecond)))
		for n := range times {
			l.asking.Go(func() {
				ctx := l.ctx
				time.Sleep(late + time.Duration(n)*w.pause("repeat", c.path, c.key))
				if patience > 0 {
					limited, away := context.WithTimeout(ctx, patience)
					defer away()
					ctx = limited
				}
				w.ask(ctx, l, c)
			})
		}
	}
	for _, at := range looks {
		late := time.Duration(w.reads.Int64N(int64(12 * time.Millisecond)))
		l.asking.Go(func() {
			time.Sleep(late)
			w.see(l, at)
		})
	}
	w.moment()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.looked[looked:] {
		w.record("look %s: %d %+v", at.path, at.status, at.seen)
	}
	for _, c := range w.calls[first:] {
		w.record("call %d %s %s %s %s %s: %d %s", c.number, c.user, c.method, c.path, c.body, c.key, c.status, c.answer)
	}
}

// again has a client repeat what it asked before.
func (w *world) again() {
	c := w.calls[max(0, len(w.calls)-1-w.driver.IntN(40))]
	if c.key == "" || c.status != 0 && time.Since(c.at) > remembered {
		return
	}
	l := w.life
	l.meet(faultRepeat)
	l.asking.Go(func() { w.ask(l.ctx, l, c) })
	w.moment()
	w.record("again %d: %d %s", c.number, c.status, c.answer)
}

// remembered is for how long a key is asked again at least: the service keeps its answer for a day.
const remembered = 20 * time.Hour

// newCall makes up a call.
func (w *world) newCall() *call {
	rng := w.driver
	c := &call{number: len(w.calls) + 1, method: http.MethodPost, user: "alice"}
	if rng.IntN(3) == 0 {
		c.user = pick(rng, []string{"operator", "bob"})
	}
	if rng.IntN(8) > 0 {
		c.key = fmt.Sprint("key-", c.number)
	}
	id := recent(rng, w.ids, 12)
	if w.plan.has(featureMaintenance) && rng.IntN(12) == 0 {
		w.maintenanceCall(c)
		return c
	}
	switch f := pick(rng, w.plan.features); f {
	case featureSeries:
		w.seriesCall(c, recent(rng, w.series, 3))
	case featureConfirm, featureCheckIn:
		if rng.IntN(2) == 0 { // there must be what can be confirmed, or is to be used
			w.requestCall(c, f)
			c.features = c.features[:1]
			break
		}
		if held := w.watcher.in(service.Held, w.ids); f == featureConfirm && len(held) > 0 && rng.IntN(4) > 0 {
			id = recent(rng, held, 3)
		}
		c.about = id
		c.path, c.body = "/v1/reservations/"+id+"/"+strings.ReplaceAll(f, " ", "-"), "{}"
		c.features = []string{f}
	case featureModify:
		if open := w.watcher.in(service.Confirmed, w.ids); len(open) > 0 && rng.IntN(4) > 0 {
			id = recent(rng, open, 6)
		}
		c.about = id
		c.method, c.path, c.features = http.MethodPatch, "/v1/reservations/"+id, []string{f}
		c.body = w.modification()
	case featureExtend:
		c.about = id
		c.path, c.features = "/v1/reservations/"+id+"/extend", []string{f}
		c.body = fmt.Sprintf(`{"by":%d}`, 60*(1+rng.IntN(200)))
	case featureCancel:
		if w.plan.has(featureTask) && rng.IntN(2) == 0 {
			id = recent(rng, w.tasked, 3)
		}
		c.about = id
		c.method, c.path, c.features = http.MethodDelete, "/v1/reservations/"+id, []string{f}
	case featureOffer:
		if rng.IntN(3) == 0 { // there must be offers
			w.refusedCall(c)
			break
		}
		c.about = recent(rng, w.offers, 4)
		c.path, c.features = "/v1/offers/"+c.about+"/hold", []string{f}
		c.body = `{"hold":1800}`
	case featureWorkflow:
		w.workflowCall(c, recent(rng, w.flows, 3))
	case featureTask:
		c.about = id
		c.path, c.features, c.key = "/v1/reservations/"+id+"/run", []string{f}, "" // sites remember these, and forget
		c.body = fmt.Sprintf(`{"command":["x"],"dir":"/","key":"task-%d"}`, c.number)
	case featureDrain:
		p := pick(rng, w.ports)
		c.path, c.features, c.user, c.key = fmt.Sprintf("/v1/sites/%s/nodes/%s/%s", p.name, pick(rng, p.nodes), pick(rng, []string{"drain", "resume"})), []string{f}, "operator", ""
	case featureCompact:
		c.path, c.body, c.features, c.user, c.key = "/v1/journal/compact", fmt.Sprintf(`{"keep_history":%d}`, rng.IntN(7200)), []string{f}, "operator", ""
		if rng.IntN(3) > 0 {
			w.requestCall(c, featureRequest) // history is dropped now and then
		}
	default:
		w.requestCall(c, f)
	}
	return c
}

// refusedCall asks for what will hardly be promised, and for which there are offers.
func (w *world) refusedCall(c *call) {
	rng := w.driver
	length := 1800 + 60*rng.IntN(30)
	c.path, c.features, c.wants = "/v1/requests", []string{featureRequest}, &wants{most: 1}
	more := ""
	if w.plan.has(featureLimit) {
		c.wants.qos = capped
		more = fmt.Sprintf(`,"qos":%q`, capped)
	}
	c.body = fmt.Sprintf(`{"name":"c%d","npe":%d,"duration":%d,"deadline":%q,"site":%q%s}`,
		c.number, 4+rng.IntN(4), length, w.in(length+60+rng.IntN(60)), pick(rng, []string{"open", "quay"}), more)
}

// moor has a request for some site be for the one that is reached by the adapter for Slurm, now and then.
func (w *world) moor(c *call) {
	if !w.plan.has(featureSlurm) || c.wants == nil || w.moors.IntN(3) > 0 || !strings.Contains(c.body, `"site":`) {
		return
	}
	for _, name := range []string{"harbour", "quay", "open"} {
		if from := fmt.Sprintf(`"site":%q`, name); strings.Contains(c.body, from) {
			c.body, c.features = strings.Replace(c.body, from, `"site":"pier"`, 1), append(c.features, featureSlurm)
			return
		}
	}
}

// modification is a change of some fields.
func (w *world) modification() string {
	rng := w.driver
	fields := []string{fmt.Sprintf(`"npe":%d`, 1+rng.IntN(5)), fmt.Sprintf(`"duration":%d`, 300+60*rng.IntN(140)), fmt.Sprintf(`"deadline":%q`, w.in(3600+rng.IntN(20_000)))}
	n := rng.IntN(len(fields))
	if rng.IntN(3) == 0 {
		return "{" + fields[n] + "," + fields[(n+1)%len(fields)] + "}"
	}
	return "{" + fields[n] + "}"
}

// in is a time from now on, as the API takes it.
func (w *world) in(seconds int) string {
	return w.clock().Add(time.Duration(seconds) * time.Second).UTC().Format(time.RFC3339)
}

// requestCall asks for a reservation with a feature.
func (w *world) requestCall(c *call, feature string) {
	rng := w.driver
	c.path, c.features = "/v1/requests", []string{featureRequest, feature}
	npe, length := 1+rng.IntN(4), 300+60*rng.IntN(60)
	ready := 0
	if rng.IntN(2) == 0 {
		ready = rng.IntN(9000)
	}
	var more strings.Builder
	c.wants = &wants{most: 1}
	fmt.Fprintf(&more, `,"name":"c%d"`, c.number)
	at := pick(rng, []string{"", "harbour", "harbour", "quay", "quay", "open", "licensed"})
	switch feature {
	case featureHold, featureConfirm:
		fmt.Fprintf(&more, `,"hold":%d`, 60+rng.IntN(1800))
	case featureArray:
		c.wants.most = 2 + rng.IntN(3)
		fmt.Fprintf(&more, `,"array":%d`, c.wants.most)
	case featureLicence:
		more.WriteString(`,"software":"solver","licences":1`)
		c.wants.software, c.wants.licences = "solver", 1
		at = ""
	case featureJob:
		more.WriteString(`,"kind":"job"`)
	case featureCheckIn:
		c.wants.noShow = berth.Duration(300 + rng.IntN(600))
		fmt.Fprintf(&more, `,"no_show":%d`, c.wants.noShow)
	}
	if feature == featureLimit || w.plan.has(featureLimit) && feature != featureJob && rng.IntN(3) == 0 {
		c.wants.qos = capped
		fmt.Fprintf(&more, `,"qos":%q`, capped)
	}
	if c.wants.qos == "" && (feature == featureCost || w.plan.has(featureCost) && feature != featureJob && rng.IntN(4) == 0) {
		c.wants.qos, c.features = gentle, append(c.features, featureCost)
		fmt.Fprintf(&more, `,"qos":%q`, gentle)
	}
	if w.plan.has(featureProject) && c.user != "operator" {
		c.features = append(c.features, featureProject)
	}
	if w.plan.has(featureAhead) && feature != featureJob {
		c.features = append(c.features, featureAhead)
	}
	if at != "" {
		fmt.Fprintf(&more, `,"site":%q`, at)
	}
	if ready > 0 {
		fmt.Fprintf(&more, `,"ready":%q`, w.in(ready))
	}
	if feature != featureJob {
		fmt.Fprintf(&more, `,"deadline":%q`, w.in(ready+length+60+rng.IntN(12_000)))
	}
	shape := fmt.Sprintf(`"npe":%d,"duration":%d`, npe, length)
	switch {
	case feature == featureParts:
		shape = fmt.Sprintf(`"parts":[{"npe":%d,"duration":%d},{"npe":2,"duration":%d}]`, npe, length, max(60, length-60*rng.IntN(3)))
	case rng.IntN(5) == 0 && feature != featureJob && c.wants.qos == "":
		shape = fmt.Sprintf(`"variants":[{"npe":%d,"duration":%d},{"npe":1,"duration":%d}]`, npe, length, 2*length)
	}
	c.body = "{" + shape + more.String() + "}"
}

// workflowCall asks for a workflow, or does something with one.
func (w *world) workflowCall(c *call, flow string) {
	rng := w.driver
	c.features = []string{featureWorkflow}
	switch rng.IntN(5) {
	case 0:
		c.path = "/v1/workflows/" + flow + "/confirm"
	case 1:
		c.method, c.path = http.MethodDelete, "/v1/workflows/"+flow
	default:
		c.path = "/v1/workflows"
		held := ""
		if rng.IntN(4) == 0 {
			held = `"hold":600,`
		}
		c.body = fmt.Sprintf(`{%s"deadline":%q,"tasks":[{"id":"a","seconds":600,"most":2},{"id":"b","seconds":900,"most":2,"after":["a"]}]}`, held, w.in(4000+rng.IntN(20_000)))
	}
}
