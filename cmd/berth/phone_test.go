package main

import (
	"fmt"
	"testing"

	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site/fake"
)

// fits reports what of a page is wider than the window, or hidden to the right of it without a
// way to scroll there.
const tooWide = `(() => {
	const wide = document.documentElement.scrollWidth > innerWidth ? ['the page: ' + document.documentElement.scrollWidth] : [];
	const scrolls = (e) => e && e !== document.body && (/auto|scroll|hidden|clip/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
	for (const e of document.querySelectorAll('main button, main input, main a, main h1, main h2, main p')) {
		const r = e.getBoundingClientRect();
		if (r.width > 1 && r.height > 1 && r.right > innerWidth + 1 && !scrolls(e)) wide.push(e.tagName + ' ' + (e.innerText || e.getAttribute('aria-label')).slice(0, 60) + ': ' + r.right);
	}
	for (const e of document.querySelectorAll('.mantine-Drawer-content, .mantine-Drawer-body')) if (e.scrollWidth > e.clientWidth + 1) wide.push('the drawer: ' + e.scrollWidth + ' of ' + e.clientWidth);
	return wide.join('; ')
})()`

// Each page fits a phone, for each role, in both themes, where the site is up, away, or lacks
// nodes of a promise.
func TestPagesFitAPhone(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	for _, state := range []string{"up", "degraded", "away"} {
		q := newQuay(t, "harbour", "record")
		q.load()
		q.reserve("alice", "harbour", "alice-all", 16, 60_000, 10_000, 0)
		if state == "degraded" {
			q.site.Fail("n16", "fire")
		}
		if state == "away" {
			faults, err := fake.ParseFaults("observe * down")
			if err != nil {
				t.Fatal(err)
			}
			q.site.Inject(faults...)
		}
		for _, dark := range []bool{false, true} {
			scheme := map[bool]string{false: "light", true: "dark"}[dark]
			p := b.Open(phone)
			p.Dark(dark)
			look := func(name string) {
				t.Helper()
				if is := p.Eval(tooWide); is != "" {
					t.Errorf("%s, %s, %s: %v", name, state, scheme, is)
				}
				shot(p, fmt.Sprintf("phone-%s-%s-%s", name, state, scheme))
			}
			p.Visit(q.link("vera", service.Viewer, ""))
			painted(p, 2)
			look("viewer")
			p.Visit(q.link("olga", service.Operator, ""))
			p.Wait(`document.querySelector('.account')?.innerText.includes('olga')`)
			painted(p, 2)
			switch state {
			case "degraded":
				p.Wait(`document.querySelector('main').innerText.includes('1 missing') || document.querySelector('.gantt')`)
			case "away":
				p.Wait(`document.querySelector('main').innerText.toLowerCase().includes('not reachable')`)
			}
			look("harbour")
			visit(p, "Operate")
			part(p, "limits", "bob")
			part(p, "tokens", "olga")
			look("operate")
			p.Eval(`document.querySelector('#outages').scrollIntoView()`)
			look("operate-below")
			p.Visit(q.link("alice", service.User, "book"))
			offered(p, "As asked")
			look("book")
			if state == "up" { // the answer is seen, though it stands below the form
				p.Press("Promise it")
				p.Wait(`(({ top, bottom }) => top > 0 && bottom < innerHeight)(document.querySelector('[data-testid=promised]').getBoundingClientRect())`)
				look("book-promised")
			}
			visit(p, "My promises")
			p.Wait(`document.querySelectorAll('table.list tbody tr').length > 3`)
			look("promises")
			p.Press("Details of alice-later")
			p.Wait(`document.querySelector('[data-testid=history]')?.innerText.includes('promised')`)
			look("promise")
			p.Key("Escape")
			p.Wait(`!document.querySelector('.mantine-Drawer-body')`)
			if state == "up" {
				visit(p, "Book")
				p.Press("Repeat it")
				enter(p, "How often", "daily 04:00")
				enter(p, "How many times", "3")
				look("book-series")
				p.Eval(`document.querySelector('[aria-label="Repeat it"]').scrollIntoView()`)
				look("book-series-form")
				p.Press("Promise them")
				p.Wait(`document.querySelector('[data-testid=series] [data-testid=occurrences]')`)
				look("series-answered")
				p.Eval(`document.querySelector('[data-testid=series]').scrollIntoView()`)
				look("series-answered-below")
				visit(p, "My promises")
				p.Wait(`document.querySelector('[data-testid=groups] tbody tr')`)
				look("promises-series")
				p.Eval(`document.querySelector('[data-testid=groups] tbody button').click()`)
				p.Wait(`document.querySelector('[data-testid=one-series] [data-testid=occurrences]')`)
				look("series")
				p.Eval(`document.querySelector('[data-testid=one-series] [data-testid=occurrences]').scrollIntoView()`)
				look("series-below")
				p.Press("Skip: 2")
				look("series-skip")
				p.Press("Keep it")
				p.Press("Change: 2")
				enter(p, "Later by", "1h")
				look("series-change")
				p.Press("Leave it as it is")
				p.Key("Escape")
				p.Wait(`!document.querySelector('.mantine-Drawer-body')`)
				p.Press("Notices")
				p.Press("Add a receiver")
				look("notices-add")
				enter(p, "Address", "http://127.0.0.1:9/"+scheme)
				p.Press("Add it")
				p.Wait(`document.querySelector('[data-testid=secret] code')`)
				look("notices-secret")
				p.Press("Put it away")
				p.Press("Details: 127.0.0.1:9")
				p.Press("Send a test")
				p.Wait(`document.querySelector('[data-testid=deliveries] tbody tr')?.innerText.includes('tried again')`)
				look("notices")
				p.Eval(`document.querySelector('[data-testid=deliveries]').scrollIntoView()`)
				look("notices-sent")
				p.Press("Change")
				p.Wait(`document.querySelector('[data-testid=hooks] form')`)
				look("notices-change")
				p.Press("Leave it as it is")
				p.Press("Remove")
				p.Press("Yes, remove it")
				p.Wait(`!document.querySelector('[data-testid=hooks] section')`)
				p.Key("Escape")
				p.Wait(`!document.querySelector('.mantine-Drawer-body')`)
			}
			visit(p, "Workflow")
			p.Press("Take an example")
			curved(p)
			look("workflow")
			p.Eval(`document.querySelector('#book-title').scrollIntoView()`)
			look("workflow-book")
			visit(p, "Laboratory")
			p.Wait(`document.querySelector('form')`)
			look("laboratory")
			if state == "up" {
				p.Press("Compare")
				p.Wait(fmt.Sprintf(`document.querySelectorAll('table[aria-label="Comparisons"] tbody tr').length === %d`, map[bool]int{false: 1, true: 2}[dark]))
				finished(p)
				p.Eval(`document.querySelector('#one-title').scrollIntoView()`)
				look("laboratory-done")
			}
			p.Close()
		}
	}
}
