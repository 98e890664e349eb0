package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/web"
)

// Addresses of every page that were edited by hand show the page; what makes no sense in them is
// as if it were not there.
func TestEveryPageTakesEveryAddress(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.load()
	p := b.Open(wide)
	p.Visit(q.link("olga", service.Operator, ""))
	painted(p, 2)
	title := map[string]string{"": "Harbour", "book": "Book", "promises": "My promises", "workflow": "Workflow", "operate": "Operate", "laboratory": "Laboratory"}
	for page, want := range title {
		for _, query := range []string{
			"?tz=Mars/Olympus", "?tz=" + url.QueryEscape(`"><script>`), "?tz=", "?tz=-99999", "?sel=%00&flow=%00&run=%00", "?sel=../../v1/tokens&flow=..%2F..&run=..", "?everybody=maybe&all=7&over=x&limit=-1",
			"?sel=" + strings.Repeat("x", 6000) + "&flow=" + strings.Repeat("y", 6000), "?%", "?=&&&=", "?t=0000-00-00T00:00:00Z..9999-99-99T99:99:99Z&rows=9999999:-1", "?t=now-999999w..now%2B999999w", "#sel", "?tz=UTC&tz=Mars",
			"?sel=harbour/4294967295", "?sel=harbour/99999999999999999999", "?sel=-1&npe=-5&deadline=never", "?run=-1&log=..%2F..%2Fetc%2Fpasswd",
		} {
			p.Visit(q.url + "/" + page + query)
			p.Wait(`document.querySelector('main h1, main [role=alert], [role=dialog]')`)
			p.Eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`)
			if is := p.Eval(`document.querySelector('h1')?.innerText ?? document.querySelector('main')?.innerText ?? 'nothing'`); is != want && is != "Promises of everybody" {
				t.Errorf("/%s%.60s shows %.120v", page, query, is)
			}
			if is := p.Eval(`document.querySelector('main')?.innerText.includes('may have been upgraded') ?? true`); is == true {
				t.Errorf("/%s%.60s is a page with a fault", page, query)
			}
			if is := p.Eval(tooWide); is != "" {
				t.Errorf("/%s%.60s: %.200v", page, query, is)
			}
			for _, f := range p.Faults() {
				if !strings.Contains(f, "Failed to load resource") { // of what is not there
					t.Errorf("/%s%.60s: %.300s", page, query, f)
				}
			}
		}
	}
}

// At 200 % of the usual size, as those read who see badly, each page fits its window.
func TestPagesFitAtTwiceTheSize(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.load()
	q.site.Fail("n16", "fire")
	p := b.Open(browser.Size{Width: 640, Height: 400})
	p.Visit(q.link("olga", service.Operator, ""))
	painted(p, 2)
	for _, page := range []string{"Harbour", "Book", "My promises", "Workflow", "Operate", "Laboratory"} {
		visit(p, page)
		p.Wait(`!document.querySelector('main [aria-busy=true]')`)
		if is := p.Eval(tooWide); is != "" {
			t.Errorf("%s: %v", page, is)
		}
		shot(p, "twice-"+page)
	}
	noFaults(t, p)
}

// Going back and forward in the middle of a drag, or while something is held, leaves the pages as
// they are, books nothing, and what is held can still be confirmed.
func TestBackAndForwardInTheMiddle(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, ""))
	painted(p, 1)
	visit(p, "Book")
	offered(p, "As asked")
	at, hour := deadlineHandle(p)
	p.Mouse("mouseMoved", at)
	p.Mouse("mousePressed", at)
	p.Mouse("mouseMoved", browser.Point{X: at.X - hour, Y: at.Y})
	p.Eval(`history.back()`)
	p.Wait(`document.querySelector('h1').innerText === 'Harbour'`)
	p.Mouse("mouseMoved", browser.Point{X: at.X - 2*hour, Y: at.Y})
	p.Mouse("mouseReleased", browser.Point{X: at.X - 2*hour, Y: at.Y})
	p.Eval(`history.forward()`)
	p.Wait(`document.querySelector('h1').innerText === 'Book'`)
	offered(p, "As asked")
	if n := len(q.of("alice")); n != 0 {
		t.Errorf("%d reservations", n)
	}
	p.Press("Hold for 10 min: As asked")
	p.Wait(`document.querySelector('[data-testid=held]')`)
	p.Eval(`history.back()`)
	p.Wait(`document.querySelector('h1').innerText === 'Harbour'`)
	p.Eval(`history.forward()`)
	p.Wait(`document.querySelector('h1').innerText === 'Book'`)
	p.Wait(`document.querySelector('[data-testid=held]')?.innerText.includes('left to confirm')`)
	shot(p, "held-again")
	p.Press("Confirm")
	p.Wait(`document.querySelector('[data-testid=promised]')`)
	if list := q.of("alice"); len(list) != 1 || list[0].State.Over() || list[0].State == service.Held {
		t.Errorf("%+v", list)
	}
	noFaults(t, p)
}

// A reload in the middle of a confirmation, over a slow line, confirms once or leaves the hold to
// be confirmed.
func TestReloadInTheMiddleOfAConfirmation(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, "book"))
	offered(p, "As asked")
	p.Press("Hold for 10 min: As asked")
	p.Wait(`document.querySelector('[data-testid=held]')`)
	p.Slow(400_000, 600)
	p.Press("Confirm")
	p.Reload() // before an answer can have come
	p.Slow(1e9, 0)
	p.Wait(`document.querySelector('h1')?.innerText === 'Book'`)
	offered(p, "As asked")
	for q.of("alice")[0].State == service.Held && p.Eval(`Boolean(document.querySelector('[data-testid=held]'))`) != true {
		p.Eval(`new Promise(requestAnimationFrame)`) // what is held is shown again
	}
	if p.Eval(`Boolean(document.querySelector('[data-testid=held]'))`) == true {
		p.Press("Confirm")
	}
	p.Visit(q.url + "/promises")
	p.Wait(`/active|confirmed/.test(document.querySelector('table.list tbody')?.innerText)`)
	if list := q.of("alice"); len(list) != 1 || list[0].State == service.Held {
		t.Errorf("%+v", list)
	}
}

// A service that is started again in the middle of a drag answers the drag when it is back.
func TestServiceRestartsInTheMiddleOfADrag(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, "book"))
	offered(p, "As asked")
	at, hour := deadlineHandle(p)
	p.Mouse("mouseMoved", at)
	p.Mouse("mousePressed", at)
	p.Mouse("mouseMoved", browser.Point{X: at.X - hour, Y: at.Y})
	address := strings.TrimPrefix(q.url, "http://")
	q.stop()
	for i := range 3 {
		p.Mouse("mouseMoved", browser.Point{X: at.X - hour*float64(i+2), Y: at.Y})
	}
	p.Wait(`document.querySelector('main').innerText.includes('The service does not answer')`)
	q.serve(address, web.Handler("", http.HandlerFunc(api.NotFound)))
	p.Mouse("mouseReleased", browser.Point{X: at.X - 4*hour, Y: at.Y})
	offered(p, "As asked")
	p.Wait(`!document.querySelector('main').innerText.includes('The service does not answer')`)
	if is := value(p, "Deadline"); !strings.HasSuffix(is, "Z") {
		t.Errorf("the deadline is %q", is)
	}
	if n := len(q.of("alice")); n != 0 {
		t.Errorf("%d reservations by a drag", n)
	}
}

// The day on which clocks change is as long as it is: every hour of the axis is there once, and
// the hour that is skipped is not.
func TestClocksChangeInTheWindow(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, "?tz=Europe/Berlin&t=2027-03-27T23:00:00Z..2027-03-28T22:00:00Z"))
	painted(p, 1)
	shot(p, "clocks-forward")
	p.Wait(`document.querySelector('[data-testid=window]').innerText.startsWith('Sun 2027-03-28 00:00 – Mon 2027-03-29 00:00')`)
	p.Visit(q.url + "/?tz=Europe/Berlin&t=2027-10-30T22:00:00Z..2027-10-31T23:00:00Z")
	painted(p, 1)
	shot(p, "clocks-back")
	p.Wait(`document.querySelector('[data-testid=window]').innerText.startsWith('Sun 2027-10-31 00:00 – Mon 2027-11-01 00:00')`)
	p.Visit(q.url + "/book?tz=Europe/Berlin")
	offered(p, "As asked")
	enter(p, "Not before", "2027-03-28 02:30")
	p.Wait(`document.body.innerText.includes('2027-03-28 02:30: want')`)
	enter(p, "Not before", "2027-10-31 02:30")
	p.Wait(`document.body.innerText.includes('2027-10-31 02:30: want')`)
	enter(p, "Not before", "2027-03-28 03:00")
	enter(p, "Deadline", "2027-03-29 03:00")
	p.Wait(`document.body.innerText.includes('Sun 2027-03-28 03:00 Europe/Berlin')`)
	offered(p, "As asked")
	shot(p, "clocks-book")
	noFaults(t, p)
}

// A login link of another user that is opened in the tab of the page shows what that user may see,
// and nothing of what was seen before.
func TestAnotherUserInTheSameTab(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	q.reserve("alice", "harbour", "hers", 8, 600, 20_000, 0)
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, ""))
	painted(p, 1)
	blue := strings.NewReplacer("D", pixelsOf).Replace(`(() => { const d = D; for (let i = 0; i < d.length; i += 4) if (d[i] === 0x12 && d[i + 1] === 0x3f && d[i + 2] === 0x7a) return true; return false })()`)
	p.Wait(blue)
	p.Visit(q.link("bob", service.User, ""))
	p.Wait(`document.querySelector('header').innerText.includes('bob, user')`)
	gone := p.Eval(`new Promise((done) => { const until = performance.now() + 8000; const look = () => { let is = true; try { is = ` + blue + ` } catch {} if (!is || performance.now() > until) done(!is); else requestAnimationFrame(look) }; look() })`)
	if gone != true {
		t.Error("to bob the promise of alice is shown as his own")
	}
	painted(p, 1)
	noFaults(t, p)
}

// Links to other pages and to other promises open in the page that is loaded, and one can go back; with the keys for another tab they do not.
func TestLinksLoadNoPageAnew(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, "promises"))
	p.Wait(`document.querySelector('main a[href=book]')`)
	p.Eval(`window.loaded = 1`)
	p.Eval(`document.querySelector('main a[href=book]').click()`)
	p.Wait(`document.querySelector('h1').innerText === 'Book' && location.pathname.endsWith('/book')`)
	p.Eval(`history.back()`)
	p.Wait(`document.querySelector('h1').innerText === 'My promises'`)
	q.reserve("alice", "harbour", "hers", 4, 3600, 3600, 1800)
	p.Eval(`const a = document.createElement('a'); a.href = 'promises?sel=hers'; a.id = 'same'; a.innerText = 'same'; document.querySelector('main').append(a); a.click()`)
	p.Wait(`location.search === '?sel=hers' && document.querySelector('[role=dialog]')?.innerText.includes('hers')`)
	if is := p.Eval(`window.loaded`); is != 1.0 {
		t.Errorf("a link has loaded the page anew: %v", is)
	}
	if is := p.Eval(`const e = new MouseEvent('click', {bubbles: true, cancelable: true, ctrlKey: true}); let passed = false; addEventListener('click', (x) => { passed = !x.defaultPrevented; x.preventDefault(); }, {once: true}); document.getElementById('same').dispatchEvent(e); passed`); is != true {
		t.Errorf("a link for another tab is followed in this one")
	}
	noFaults(t, p)
}
