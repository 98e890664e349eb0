package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/internal/realdata"
	"github.com/berth-hpc/berth/service"
)

// drop drops a file on the page.
func drop(p *browser.Page, name, content string) {
	p.Eval(fmt.Sprintf(`(() => {
		const bytes = Uint8Array.from(atob(%q), (c) => c.charCodeAt(0)), data = new DataTransfer();
		data.items.add(new File([bytes], %q));
		document.querySelector('.drop').dispatchEvent(new DragEvent('drop', { bubbles: true, cancelable: true, dataTransfer: data }));
	})()`, base64.StdEncoding.EncodeToString([]byte(content)), name))
}

// curved waits until all deadlines are planned for.
func curved(p *browser.Page) {
	p.Wait(`document.querySelector('.slide input')?.max === '11'`)
}

// A workflow is planned among what others hold, its deadline is dragged, and the plans follow;
// nothing is booked.
func TestWorkflowInABrowser(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.load()
	before := len(q.of("alice"))
	for _, dark := range []bool{false, true} {
		scheme := map[bool]string{false: "light", true: "dark"}[dark]
		p := b.Open(browser.Size{Width: 1440, Height: 1300})
		p.Dark(dark)
		p.Visit(q.link("alice", service.User, ""))
		painted(p, 2)
		p.Press("Workflow")
		p.Wait(`location.pathname === '/workflow'`)
		shot(p, "workflow-empty-"+scheme)
		p.Press("Take an example")
		p.Wait(`document.querySelector('[data-testid=flow]')?.innerText.includes('10 tasks, 14 dependencies; harbour')`)
		p.Wait(`document.querySelectorAll('table[aria-label="Planners compared"] tbody tr').length === 8`)
		curved(p)
		p.Wait(`document.querySelector('[data-testid=plan]')?.innerText.includes('CPU-hours')`)
		first := p.Eval(`document.querySelector('[data-testid=plan]').innerText`)
		at, _ := p.Eval(`(() => { const r = document.querySelector('.curve').getBoundingClientRect(); return [r.x, r.y + r.height / 2, r.width] })()`).([]any)
		x, y, width := at[0].(float64), at[1].(float64), at[2].(float64)
		p.Mouse("mouseMoved", browser.Point{X: x + width/2, Y: y})
		p.Mouse("mousePressed", browser.Point{X: x + width/2, Y: y})
		p.Mouse("mouseMoved", browser.Point{X: x + width*0.96, Y: y})
		p.Wait(`document.querySelector('.slide input').value === '11'`)
		p.Mouse("mouseReleased", browser.Point{X: x + width*0.96, Y: y})
		p.Wait(`document.querySelector('#plan-title').innerText === 'Plan of dl-thrift-lambda'`)
		if after := p.Eval(`document.querySelector('[data-testid=plan]').innerText`); after == first {
			t.Errorf("the plan is %v for another deadline", after)
		}
		shot(p, "workflow-"+scheme)
		p.Eval(`document.querySelector('.slide input').focus()`)
		p.Key("ArrowLeft")
		p.Wait(`document.querySelector('.slide input').value === '10'`)
		p.Wait(`document.querySelector('.slide input').getAttribute('aria-valuetext') === document.querySelector('[data-testid=deadline]').innerText`)
		p.Press("As a table")
		p.Wait(`document.querySelectorAll('table[aria-label="The plan"] tbody tr').length === 10`)
		noFaults(t, p)
		p.Close()
	}
	if after := len(q.of("alice")); after != before {
		t.Errorf("%d reservations, want %d as before", after, before)
	}
}

// What is no workflow is told as such, and a recorded one of many tasks is drawn by kinds, on a
// phone too.
func TestWorkflowFiles(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	p := b.Open(browser.Size{Width: 420, Height: 900})
	p.Visit(q.link("alice", service.User, "workflow"))
	p.Wait(`document.querySelector('.drop')`)
	for content, want := range map[string]string{"{]": "no JSON", "[1]": "no workflow", `{"workflow":{}}`: "schemaVersion", strings.Repeat(" ", 99): "no JSON"} {
		drop(p, "x.json", content)
		p.Wait(`[...document.querySelectorAll('[role=alert]')].some((e) => e.innerText.includes('` + want + `'))`)
	}
	shot(p, "workflow-bad-phone")
	p.Faults() // of the status 422
	drop(p, "packed.json.gz", "no gzip")
	p.Wait(`document.querySelector('[data-testid=bad]')?.innerText.includes('cannot be read')`)
	if !strings.Contains(p.Eval(`document.body.innerText`).(string), "Workflow") {
		t.Error("the page is gone")
	}
	p.Eval(`(() => { // what is larger than any workflow is not even read
		const f = new File(['x'], 'huge.json');
		Object.defineProperty(f, 'size', { value: 500e6 });
		globalThis.wasRead = false;
		f.text = f.arrayBuffer = f.stream = () => { globalThis.wasRead = true; throw new Error('read') };
		const d = new DataTransfer();
		d.items.add(f);
		const e = new DragEvent('drop', { bubbles: true, cancelable: true });
		Object.defineProperty(e, 'dataTransfer', { value: { files: [f], items: [], types: ['Files'] } });
		document.querySelector('.drop').dispatchEvent(e);
	})()`)
	p.Wait(`document.querySelector('[data-testid=bad]')?.innerText.includes('500 MB') && !globalThis.wasRead`)
	data, err := os.ReadFile(realdata.File(t, "workflows", "seismology-chameleon-100p-001.json"))
	if err != nil {
		t.Fatal(err)
	}
	drop(p, "seismology.json", string(data))
	p.Wait(`document.querySelector('[data-testid=flow]')?.innerText.includes('101 tasks')`)
	curved(p)
	p.Wait(`document.querySelectorAll('.graph circle').length === 2`)
	if wide := p.Eval(`document.documentElement.scrollWidth`).(float64); wide > 420 {
		t.Errorf("the page is %v pixels wide on a phone", wide)
	}
	p.Eval(`document.querySelector('#plan-title').scrollIntoView()`)
	shot(p, "workflow-phone")
	p.Press("Those of one kind together")
	p.Wait(`document.querySelectorAll('.graph circle').length === 101`)
	noFaults(t, p)
	viewer := b.Open(wide)
	viewer.Visit(q.link("vera", service.Viewer, "workflow"))
	viewer.Wait(`document.body.innerText.includes('A viewer may only look')`)
}

// A workflow is booked whole from the page, held, confirmed and cancelled; a refusal keeps the
// form and shows what could be had; its plan is followed beside what is.
func TestWorkflowIsBookedInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	q := newQuay(t, "record")
	p := b.Open(browser.Size{Width: 1440, Height: 1400})
	p.Visit(q.link("alice", service.User, "workflow"))
	p.Wait(`document.querySelector('[data-testid=no-flow]')?.innerText.includes('No workflow is booked')`)
	p.Press("Take an example")
	curved(p)
	const field = `[...document.querySelectorAll('form[aria-labelledby=book-title] label')].find((l) => l.innerText === %q).control`
	fill := func(name, text string) {
		p.Eval(fmt.Sprintf(field, name) + `.focus()`)
		p.Eval(`document.activeElement.select()`)
		p.Type(text)
	}
	// By a deadline that is too early nothing is booked, and what could be had is held instead.
	fill("Id", "night run")
	p.Wait(`document.querySelector('form[aria-labelledby=book-title]').innerText.includes('want up to 64 letters')`)
	fill("Id", "night")
	fill("Account", "bio night")
	p.Wait(`document.querySelector('form[aria-labelledby=book-title]').innerText.includes('bio night: want up to 64 letters')`)
	fill("Account", "bio")
	fill("QOS", "low")
	p.Wait(`document.querySelector('form[aria-labelledby=book-title]').innerText.includes('--id night --account bio --qos low')`)
	fill("Deadline", "now+30min")
	shot(p, "workflow-book")
	p.Press("Book all")
	p.Wait(`document.querySelector('[data-testid=flow-refused]')`)
	p.Wait(`document.querySelectorAll('ul[aria-label="What could be had"] li').length > 1`)
	if n := len(q.of("alice")); n != 0 {
		t.Errorf("%d promises of a workflow that was refused", n)
	}
	shot(p, "workflow-refused")
	p.Eval(`document.querySelector('ul[aria-label="What could be had"] button[aria-label^=Hold]').click()`)
	p.Wait(`document.querySelector('tr[data-flow=night]')?.innerText.includes('held')`)
	p.Wait(`document.querySelector('[data-testid=flow-one]')?.innerText.includes('to spare')`)
	if n := len(q.of("alice")); n != 10 {
		t.Errorf("%d promises of 10 tasks that are held", n)
	}
	// How long it can still be confirmed is counted down, in the list too.
	const left = `/: (\d+) min(?: (\d+) s)? left to confirm\./.exec(document.querySelector('[data-testid=flow-left]')?.innerText)`
	held, err := q.host.Workflow(t.Context(), service.Principal{User: "alice", Role: service.User}, "night")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range q.of("alice") {
		if r.Request.Account != "bio" || r.Request.QOS != "low" {
			t.Errorf("%s is held in the account %q with the QOS %q", r.ID, r.Request.Account, r.Request.QOS)
		}
	}
	p.Wait(`document.querySelector('[data-testid=flow-facts]').innerText.includes('account bio; QOS low')`)
	seconds := func() float64 { return p.Eval(`((m) => 60 * m[1] + Number(m[2] ?? 0))(` + left + `)`).(float64) }
	p.Wait(left)
	p.Wait(`document.querySelector('tr[data-flow=night]').innerText.includes('left to confirm')`)
	first := seconds()
	if is := float64(held.Expires.Sub(q.host.Now())); first < is-1 || first > is+30 {
		t.Errorf("%v s are left to confirm it, want %v", first, is)
	}
	p.Wait(fmt.Sprintf(`((m) => 60 * m[1] + Number(m[2] ?? 0))(%s) < %v`, left, first))
	shot(p, "workflow-held")
	p.Press("Confirm")
	p.Wait(`/promised|running/.test(document.querySelector('tr[data-flow=night]').innerText)`)
	p.Wait(`!document.querySelector('[data-testid=flow-left]')`)
	p.Wait(`document.querySelectorAll('[data-testid=flow-one] [data-task]').length === 10 && document.querySelectorAll('[data-testid=flow-one] .plan').length > 10`)
	shot(p, "workflow-live")
	if at := p.Eval(`location.search`); at != "?flow=night" {
		t.Errorf("the address is %v", at)
	}
	// What happens elsewhere is followed.
	ask := service.Ask{By: service.Principal{User: "alice", Role: service.User}}
	if _, err := q.host.CancelWorkflow(t.Context(), ask, "night"); err != nil {
		t.Fatal(err)
	}
	p.Wait(`document.querySelector('[data-testid=flow-one]').innerText.includes('cancelled')`)
	p.Press("Try again what has not succeeded")
	p.Wait(`document.querySelector('form[aria-label="Try again what has not succeeded"] input')`)
	p.Eval(`document.querySelector('form[aria-label="Try again what has not succeeded"] input').focus()`)
	p.Type("soon")
	p.Wait(`document.querySelector('form[aria-label="Try again what has not succeeded"]').innerText.includes('want a time')`)
	p.Eval(`document.activeElement.select()`)
	p.Type("now+3d")
	p.Press("Try again")
	p.Wait(`/promised|running/.test(document.querySelector('tr[data-flow=night]')?.innerText ?? '')`)
	p.Press("Tasks as a table")
	p.Wait(`document.querySelectorAll('table[aria-label="Tasks: planned and present"] tbody tr').length === 10`)
	p.Press("Cancel all of it")
	p.Press("Yes, cancel it")
	p.Wait(`document.querySelector('[data-testid=flow-one]').innerText.includes('cancelled')`)
	other := b.Open(wide)
	other.Visit(q.link("bob", service.User, "workflow?flow=night"))
	other.Wait(`document.body.innerText.includes('This workflow is not yours')`)
	noFaults(t, p)
}

// The deadline that is booked has room after the tightest one, which could not be met any more by
// the time it is asked for; how long a hold lasts is said before it is asked for.
func TestTheTightestDeadlineIsBookedWithRoom(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "record")
	p := b.Open(browser.Size{Width: 1440, Height: 1400})
	p.Visit(q.link("alice", service.User, "workflow"))
	p.Press("Take an example")
	curved(p)
	p.Eval(`document.querySelector('.slide input').focus()`)
	p.Key("ArrowRight")
	p.Wait(`document.querySelector('.slide input').value === '1'`)
	p.Key("ArrowLeft")
	p.Wait(`document.querySelector('.slide input').value === '0'`)
	form := `document.querySelector('form[aria-labelledby=book-title]')`
	p.Wait(form + `.innerText.includes('after the tightest, so that it can still be met')`)
	field := `[...` + form + `.querySelectorAll('label')].find((l) => l.innerText === 'Deadline').control.value`
	booked, err := time.Parse(time.RFC3339, p.Eval(field).(string))
	if err != nil {
		t.Fatal(err)
	}
	says, _ := p.Eval(`/by \S+ (\S+ \S+) UTC/.exec(document.querySelector('[data-testid=deadline]').innerText)[1]`).(string)
	tightest, err := time.Parse("2006-01-02 15:04", says)
	if err != nil {
		t.Fatal(err)
	}
	if room := booked.Sub(tightest); room < 10*time.Minute || room > 2*time.Hour {
		t.Errorf("%s is to be booked, which is %s after the tightest", booked, room)
	}
	told, _ := p.Eval(`/that is about ([^;]*);/.exec(document.querySelector('[data-testid=hold-lasts]').innerText)[1]`).(string)
	p.Press("Hold")
	p.Wait(`document.querySelector('[data-testid=flow-one]')?.innerText.includes('held')`)
	list, _, err := q.host.Workflows(t.Context(), service.Principal{User: "alice", Role: service.User}, service.FlowFilter{})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	var minutes, seconds int
	if _, err := fmt.Sscanf(told, "%d min %d s", &minutes, &seconds); err != nil && minutes == 0 {
		t.Fatal(told, err)
	}
	want, is := time.Duration(60*minutes+seconds)*time.Second, time.Duration(list[0].Expires.Sub(q.host.Now()))*time.Second
	if is > want*3/2 || is < want*2/3 {
		t.Errorf("%q, and it lasts %s", told, is)
	}
}
