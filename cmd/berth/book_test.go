package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/service"
)

// value returns what stands in the field with a label.
func value(p *browser.Page, label string) string {
	text, _ := p.Eval(fmt.Sprintf(`[...document.querySelectorAll('input')].find((e) => e.labels?.[0]?.innerText === %q).value`, label)).(string)
	return text
}

// offered waits until there are offers and the first begins with a word.
func offered(p *browser.Page, first string) {
	p.Wait(fmt.Sprintf(`document.querySelector('ul[aria-label=Offers] li')?.innerText.startsWith(%q)`, first))
}

// of returns the reservations of a user as the service has them.
func (q *quay) of(user string, states ...service.State) []service.Reservation {
	q.t.Helper()
	list, _, err := q.host.List(q.t.Context(), service.Principal{User: user, Role: service.User}, service.Filter{States: states})
	if err != nil {
		q.t.Fatal(err)
	}
	return list
}

// A promise is booked by mouse alone: the deadline is dragged, and what could be had follows.
func TestBookByMouse(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	q.reserve("bob", "harbour", "b", 16, 0, 6*3600, 0)
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, ""))
	painted(p, 1)
	p.Press("Book")
	offered(p, "As asked")
	painted(p, 1) // the chart of this page comes after the offers where the machine is busy
	shot(p, "book")
	before := value(p, "Deadline")
	at, _ := p.Eval(`(() => {
		const c = document.querySelector('.gantt canvas[role=application]'), r = c.getBoundingClientRect();
		const plot = r.width - 116, from = Date.now() / 1000 - 3600, span = 24 * 3600;
		return [r.x + 116 + (Date.now() / 1000 + 12 * 3600 - from) / span * plot, r.y + r.height / 2, 3600 / span * plot];
	})()`).([]any)
	x, y, hour := at[0].(float64), at[1].(float64), at[2].(float64)
	p.Mouse("mouseMoved", browser.Point{X: x, Y: y})
	p.Mouse("mousePressed", browser.Point{X: x, Y: y})
	for i := range 8 { // to four hours from now, when all PEs are held
		to := browser.Point{X: x - hour*float64(i+1), Y: y}
		p.Mouse("mouseMoved", to)
		if i == 7 {
			offered(p, "Later")
			shot(p, "book-dragged")
			p.Mouse("mouseReleased", to)
		}
	}
	if after := value(p, "Deadline"); after == before || !strings.HasSuffix(after, "Z") {
		t.Errorf("the deadline is %q, and was %q", after, before)
	}
	p.Press("Promise it")
	p.Wait(`document.querySelector('[data-testid=refused]')?.innerText.includes('no_capacity')`)
	shot(p, "book-refused")
	if n := len(q.of("alice", service.Held, service.Confirmed)); n != 0 {
		t.Errorf("%d reservations after a refusal", n)
	}
	p.Press("Hold for 10 min: Later")
	p.Wait(`document.querySelector('[data-testid=held]')?.innerText.includes('left to confirm')`)
	shot(p, "book-held")
	if list := q.of("alice", service.Held); len(list) != 1 {
		t.Errorf("held: %+v", list)
	}
	p.Press("Confirm")
	p.Wait(`document.querySelector('[data-testid=promised]')`)
	list := q.of("alice", service.Confirmed)
	if len(list) != 1 || list[0].Allotments[0].NPE != 1 {
		t.Errorf("confirmed: %+v", list)
	}
	shot(p, "book-promised")
	noFaults(t, p)
}

// Offers follow what others are promised, also while the mouse is down on one. The press is of that one, also
// where its button moves, unless the mouse is taken away before it is let go.
func TestBookWhileOffersFollow(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, "book"))
	offered(p, "As asked")
	const first = `document.querySelector('ul[aria-label=Offers] li')`
	const start = `(([, h, m]) => h * 60 + +m)(` + first + `.innerText.match(/(\d\d):(\d\d)/))` // minutes of its day
	p.Eval(`window.seen = ` + start)
	var on browser.Point
	for presses := 0; presses < 2; { // the first is taken back
		// What is above it may still be coming, and would take it away from under the pointer.
		at, _ := p.Eval(`(() => { const b = ` + first + `.querySelector('button'); const r = b.getBoundingClientRect();
			window.pressed = false;
			b.onmousedown = () => { window.pressed = true };
			return [r.x + r.width / 2, r.y + r.height / 2] })()`).([]any)
		on = browser.Point{X: at[0].(float64), Y: at[1].(float64)}
		p.Mouse("mouseMoved", on)
		p.Mouse("mousePressed", on)
		if p.Eval(`window.pressed`) == true {
			presses++
		}
		if presses < 2 {
			away := browser.Point{X: on.X + 300, Y: on.Y}
			p.Mouse("mouseMoved", away)
			p.Mouse("mouseReleased", away)
		}
	}
	p.Eval(first + `.querySelector('button').style.marginTop = '60px'`) // as where the offer takes more lines
	q.reserve("bob", "harbour", "b", 16, 0, 3600, 0)
	p.Wait(first + ` && (` + start + ` - seen + 1440) % 1440 > 50`)
	p.Mouse("mouseReleased", on)
	p.Wait(`document.querySelector('[data-testid=held]')`)
	if list := q.of("alice", service.Held); len(list) != 1 {
		t.Errorf("held: %+v", list)
	}
	noFaults(t, p)
}

// A promise is booked by keys alone; mistakes are told at their field, and pressing twice is
// once.
func TestBookByKeys(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.StartAlways(t)
	q := newQuay(t, "harbour", "record")
	p := b.Open(wide)
	p.Dark(true)
	p.Visit(q.link("alice", service.User, ""))
	painted(p, 2)
	tabTo := func(what string) {
		t.Helper()
		for range 60 {
			p.Key("Tab")
			if p.Eval(fmt.Sprintf(`(document.activeElement.labels?.[0]?.innerText || document.activeElement.innerText || '').trim() === %q`, what)) == true {
				return
			}
		}
		t.Fatalf("Tab does not reach %q", what)
	}
	tabTo("Book")
	p.Key("Enter")
	p.Wait(`location.pathname === '/book'`)
	offered(p, "As asked")
	tabTo("PEs")
	p.Eval(`document.activeElement.select()`)
	p.Type("many")
	p.Wait(`document.body.innerText.includes('many: want a number of PEs')`)
	p.Wait(`!document.querySelector('ul[aria-label=Offers]')`)
	p.Eval(`document.activeElement.select()`)
	p.Type("5")
	tabTo("Duration")
	p.Eval(`document.activeElement.select()`)
	p.Type("20h")
	p.Wait(`document.body.innerText.includes('There is less time until the deadline')`)
	shot(p, "book-mistake")
	p.Eval(`document.activeElement.select()`)
	p.Type("90 min")
	p.Wait(`document.body.innerText.includes('1 h 30 min')`)
	offered(p, "As asked")
	p.Key("Enter")
	p.Key("Enter")
	p.Wait(`document.querySelector('[data-testid=promised]')?.innerText.includes('5 PEs')`)
	p.Key("Enter") // again, when it is known to be promised
	p.Wait(`performance.getEntriesByType('resource').filter((e) => e.name.endsWith('/v1/requests')).length >= 2`)
	list := q.of("alice")
	if len(list) != 1 || list[0].State.Over() || list[0].Request.Parts[0].Variants[0].Duration != 5400 {
		t.Errorf("promised: %+v", list)
	}
	shot(p, "book-keys-dark")
	noFaults(t, p)
	viewer := b.Open(wide)
	viewer.Visit(q.link("vera", service.Viewer, "book"))
	viewer.Wait(`document.body.innerText.includes('A viewer may only look')`)
}

// Alternative shapes and software are asked for as on the command line.
func TestBookShapesAndSoftware(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour", "tools")
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, "book"))
	offered(p, "As asked")
	enter(p, "PEs", "32") // no pool has as many
	p.Wait(`!document.querySelector('ul[aria-label=Offers] li')?.innerText.startsWith('As asked')`)
	enter(p, "Or instead", "8 by 30m")
	p.Wait(`document.body.innerText.includes('8 by 30m: want PEs times a length')`)
	enter(p, "Or instead", "8x30m")
	p.Wait(`document.body.innerText.includes('--variants 32x1h,8x30m')`)
	offered(p, "As asked")
	p.Press("Software")
	p.Wait(`[...document.querySelectorAll('[role=option]')].some((e) => e.innerText === 'namd')`)
	p.Eval(`[...document.querySelectorAll('[role=option]')].find((e) => e.innerText === 'namd').click()`)
	p.Wait(`document.body.innerText.includes("--software 'namd'")`)
	p.Wait(`document.querySelector('ul[aria-label=Offers] li')?.innerText.includes('at tools')`)
	shot(p, "book-shapes")
	p.Press("Promise it")
	p.Wait(`document.querySelector('[data-testid=promised]')?.innerText.includes('8 PEs at tools')`)
	list := q.of("alice", service.Confirmed, service.Active)
	if len(list) != 1 || list[0].Request.Software != "namd" || len(list[0].Request.Parts[0].Variants) != 2 || list[0].Allotments[0].NPE != 8 {
		t.Errorf("promised: %+v", list)
	}
	noFaults(t, p)
}

// The page shows when what is asked for can start. Where it cannot, the pointer and a click
// say what is missing and until when; where it can, a click takes that start. The list says
// the same to those who use no pointer.
func TestBookWhyNot(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	q.reserve("bob", "harbour", "b", 12, 7200, 6*3600, 0)
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, "book"))
	offered(p, "As asked")
	p.Eval(`(() => { const e = [...document.querySelectorAll('input')].find((e) => e.labels?.[0]?.innerText === 'PEs'); e.focus(); e.select() })()`)
	p.Type("8")
	p.Wait(`[...document.querySelectorAll('button')].some((b) => b.innerText.includes('When it can start'))`)
	// hours is where a start n hours from now stands in the lane below the axis.
	hours := func(n float64) browser.Point {
		p.Wait(gantt)
		at, _ := p.Eval(fmt.Sprintf(`(() => {
			const c = document.querySelector('.gantt canvas[role=application]'), r = c.getBoundingClientRect();
			return [r.x + 116 + (1 + %g) / 24 * (r.width - 116), r.y + 30 + 7];
		})()`, n)).([]any)
		return browser.Point{X: at[0].(float64), Y: at[1].(float64)}
	}
	p.Mouse("mouseMoved", hours(3))
	p.Wait(`document.querySelector('.tip')?.innerText.includes('8 PEs for 1 h cannot start') && document.querySelector('.tip').innerText.includes('4 of 8 PEs are missing: at most 4 are free for 1 h. That is so until')`)
	shot(p, "book-why-not")
	p.Click(hours(3))
	p.Wait(`document.querySelector('[data-testid=why]')?.innerText.includes('4 of 8 PEs are missing')`)
	if ready := value(p, "Not before"); ready != "now" {
		t.Errorf("a start that is impossible was taken: %q", ready)
	}
	p.Click(hours(9))
	p.Wait(`document.querySelector('[data-testid=why]')?.innerText.includes('can start at')`)
	if ready := value(p, "Not before"); !strings.HasSuffix(ready, "Z") {
		t.Errorf("not before %q, want what was clicked", ready)
	}
	p.Press("When it can start: harbour, 1c-4096mb")
	p.Wait(`document.querySelectorAll('table tbody tr').length === 3`)
	first := p.Eval(`[...document.querySelectorAll('table tbody tr')].map((r) => r.cells[2].innerText).join('|')`)
	if first != "possible|4 of 8 PEs are missing: at most 4 are free for 1 h|possible" {
		t.Errorf("the list says %q", first)
	}
	shot(p, "book-when")
	p.Eval(`[...document.querySelectorAll('table tbody button')].at(-1).click()`)
	p.Wait(`document.querySelectorAll('table tbody tr').length === 3`) // of the new start
	p.Wait(`document.querySelector('ul[aria-label=Offers] li')?.innerText.startsWith('As asked')`)
	q.reserve("carol", "harbour", "c", 16, 9*3600, 20*3600, 0) // what others are promised meanwhile is seen
	p.Wait(`[...document.querySelectorAll('table tbody tr')].map((r) => r.cells[2].innerText).join('|').includes('no PE is free for 1 h')`)
	p.Eval(`(() => { const e = [...document.querySelectorAll('input')].find((e) => e.labels?.[0]?.innerText === 'PEs'); e.focus(); e.select() })()`)
	p.Type("17")
	p.Wait(`document.body.innerText.includes('17 PEs for 1 h can start here at no time: 17 PEs are wanted; at harbour/1c-4096mb there are 16')`)
	noFaults(t, p)
}

// An offer says what it costs the jobs that wait, if any do. The keyboard opens the explanation.
func TestBookTellsCosts(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "record")
	h := &hands{t, b.Open(wide)}
	h.Visit(q.link("alice", service.User, "book"))
	offered(h.Page, "As asked")
	if h.Eval(`document.querySelector('main details')`) != nil {
		t.Error("a cost is told though no job waits")
	}
	for i := range 2 { // the second waits for the first
		if _, err := q.host.Submit(t.Context(), q.ask("bob"), berth.Job(fmt.Sprintf("job-%d", i), q.host.Now(), 64, 3600)); err != nil {
			t.Fatal(err)
		}
	}
	enter(h.Page, "PEs", "64")
	enter(h.Page, "Not before", "now+90m")
	enter(h.Page, "Deadline", "now+3h")
	const line = `document.querySelector('ul[aria-label=Offers] details summary')?.innerText`
	h.Wait(`/^1 of 2 jobs would end later, by up to 1 h 3\d min$/.test(` + line + `)`)
	shot(h.Page, "book-costs")
	h.to(h.Eval(line).(string))
	h.Key("Enter")
	h.Wait(`document.querySelector('main details').open && /3[12]\.\d PE-hours that jobs would use before its start would stay idle/.test(document.querySelector('main details').innerText)`)
	shot(h.Page, "book-costs-open")
	noFaults(t, h.Page)
}

// Features that the nodes must have are asked for, shown in the command, and refused with words
// where no node has them.
func TestBookTakesFeatures(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, "book"))
	p.Wait(`document.querySelector('ul[aria-label=Offers] li')`)
	field := `[...document.querySelectorAll('label')].find((l) => l.innerText === 'Features of the nodes').control`
	p.Eval(field + `.focus()`)
	p.Type("gpu")
	p.Wait(`document.body.innerText.includes("--constraint 'gpu'")`)
	p.Wait(`!document.querySelector('ul[aria-label=Offers] li')`)
	shot(p, "book-features")
	p.Eval(`document.activeElement.select()`)
	p.Type("gpu&&")
	p.Wait(`document.querySelector('[role=alert]')?.innerText.includes('constraint')`)
	p.Eval(`document.activeElement.select()`)
	p.Type(" ")
	p.Wait(`document.querySelector('ul[aria-label=Offers] li') && !document.querySelector('[role=alert]')`)
}

// A promise is asked for in an account and with a QOS; a name that no site has is told before it is asked for.
func TestBookTakesAccountAndQOS(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "record")
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, "book"))
	offered(p, "As asked")
	enter(p, "Account", "bio night")
	p.Wait(`document.body.innerText.includes('bio night: want up to 64 letters')`)
	p.Wait(`[...document.querySelectorAll('button')].find((b) => b.innerText === 'Promise it').disabled`)
	enter(p, "Account", "bio")
	enter(p, "QOS", "low")
	p.Wait(`document.body.innerText.includes('--account bio --qos low')`)
	offered(p, "As asked")
	shot(p, "book-account")
	p.Press("Promise it")
	p.Wait(`document.querySelector('[data-testid=promised]')`)
	if list := q.of("alice", service.Confirmed, service.Active); len(list) != 1 || list[0].Request.Account != "bio" || list[0].Request.QOS != "low" {
		t.Errorf("promised: %+v", list)
	}
	noFaults(t, p)
}
