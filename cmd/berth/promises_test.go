package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/service"
)

// listed waits until n promises stand in the list.
func listed(p *browser.Page, n int) {
	p.Wait(fmt.Sprintf(`document.querySelectorAll('table.list tbody tr').length === %d`, n))
}

// enter puts a text into the field with a label, instead of what stands there.
func enter(p *browser.Page, label, text string) {
	find := fmt.Sprintf(`[...document.querySelectorAll('input, textarea')].find((e) => e.labels?.[0]?.innerText === %q)`, label)
	p.Wait(find)
	p.Eval(`(() => { const e = ` + find + `; e.focus(); e.select() })()`)
	p.Type(text)
}

func (q *quay) ask(user string) service.Ask {
	return service.Ask{By: service.Principal{User: user, Role: service.User}}
}

// one returns a reservation of alice as the service has it.
func (q *quay) one(id string) service.Reservation {
	q.t.Helper()
	r, err := q.host.Get(q.t.Context(), q.ask("alice").By, id)
	if err != nil {
		q.t.Fatal(err)
	}
	return r
}

// What the command line can do with one's own promises, the page can, and says how.
func TestPromisesInABrowser(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.load()
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, ""))
	painted(p, 2)
	p.Press("My promises")
	p.Wait(`location.pathname === '/promises'`)
	listed(p, 4)
	if text := p.Eval(`document.body.innerText`).(string); strings.Contains(text, "bob") || strings.Contains(text, "carol") {
		t.Errorf("alice reads of others: %q", text)
	}
	p.Wait(`document.querySelector('table.list').innerText.includes('left to confirm')`)
	shot(p, "promises-light")
	p.Press("Details of alice-held")
	p.Press("Confirm")
	p.Wait(`document.querySelector('[data-testid=done]')?.innerText.includes('berth confirm alice-held')`)
	p.Wait(`document.querySelector('[data-testid=history]').innerText.includes('confirmed by alice')`)
	if is := q.one("alice-held").State; is != service.Confirmed {
		t.Errorf("it is %s", is)
	}
	p.Press("Extend")
	enter(p, "By how much longer", "soon")
	p.Wait(`document.body.innerText.includes('soon: want a length of time')`)
	enter(p, "By how much longer", "45m")
	p.Wait(`document.querySelector('form').innerText.includes('--by 45m')`)
	before := q.one("alice-held").Allotments[0].End
	p.Eval(`document.activeElement.closest('form').requestSubmit()`)
	p.Wait(`document.querySelector('[data-testid=done]')?.innerText.includes('berth extend alice-held --by 45m')`)
	if after := q.one("alice-held").Allotments[0].End; after != before.Add(2700) {
		t.Errorf("it ends %d s later, want 2700", after.Sub(before))
	}
	shot(p, "promise-done-light")
	p.Press("Cancel it")
	p.Press("Keep it")
	p.Press("Cancel it")
	shot(p, "promise-sure-light")
	p.Press("Yes, cancel it")
	p.Wait(`document.querySelector('[data-testid=done]')?.innerText.includes('berth cancel alice-held')`)
	listed(p, 3)
	p.Key("Escape")
	p.Wait(`!location.search.includes('sel=')`)
	p.Press("Those that are over too")
	listed(p, 4)
	p.Wait(`location.search.includes('all=1')`)
	noFaults(t, p)
}

// A form that is half filled in stays when the promise changes; what it asks is not done to
// another version than the one that was seen, but can be asked again.
func TestPromisesThatChangeMeanwhile(t *testing.T) {
	t.Parallel()
	b := browser.StartAlways(t)
	q := newQuay(t, "harbour")
	q.reserve("alice", "harbour", "hers", 4, 7200, 3600, 0)
	q.reserve("bob", "harbour", "his", 12, 7200, 20_000, 0)
	p := b.Open(wide)
	p.Dark(true)
	p.Visit(q.link("alice", service.User, "promises?sel=hers"))
	p.Press("Change")
	enter(p, "PEs", "3")
	p.Wait(`document.body.innerText.includes('berth modify hers --npe 3')`)
	seen := q.one("hers")
	if _, err := q.host.Extend(t.Context(), q.ask("alice"), "hers", seen.Allotments[0].End.Add(600)); err != nil {
		t.Fatal(err)
	}
	p.Wait(`document.querySelector('[data-testid=history]').innerText.includes('extended by alice')`)
	if is := value(p, "PEs"); is != "3" {
		t.Errorf("the field has %q after a change", is)
	}
	p.Eval(`document.querySelector('form').requestSubmit()`)
	p.Wait(`document.querySelector('[data-testid=other]')?.innerText.includes('End: ')`)
	shot(p, "promise-changed-dark")
	if is := q.one("hers").Allotments[0].NPE; is != 4 {
		t.Errorf("%d PEs before it was asked again", is)
	}
	p.Press("Do it all the same")
	p.Wait(`document.querySelector('[data-testid=done]')?.innerText.includes('Changed')`)
	if is := q.one("hers").Allotments[0].NPE; is != 3 {
		t.Errorf("%d PEs, want 3", is)
	}
	p.Press("Change")
	enter(p, "PEs", "9")
	p.Wait(`document.body.innerText.includes('berth modify hers --npe 9')`)
	p.Eval(`document.querySelector('form').requestSubmit()`)
	p.Wait(`document.querySelector('[data-testid=no]')?.innerText.includes('9 PEs are wanted')`)
	shot(p, "promise-refused-dark")
	p.Faults() // of the status 412
	q.reserve("alice", "harbour", "another", 1, 600, 600, 0)
	listed(p, 2)
	if at := p.Eval(`location.search`); at != "?sel=hers" || value(p, "PEs") != "9" {
		t.Errorf("an update changed %v, %q", at, value(p, "PEs"))
	}
	p.Visit(q.url + "/promises?sel=his")
	p.Wait(`document.querySelector('.mantine-Drawer-body')?.innerText.includes('not yours')`)
}

// What is handed in is told with its end, by keys alone, on a phone.
func TestPromisesByKeys(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	q.reserve("alice", "harbour", "now", 2, 0, 3600, 0)
	p := b.Open(browser.Size{Width: 420, Height: 860})
	p.Visit(q.link("alice", service.User, "promises"))
	listed(p, 1)
	tabTo := func(what string) {
		t.Helper()
		for range 60 {
			p.Key("Tab")
			if p.Eval(fmt.Sprintf(`(document.activeElement.getAttribute('aria-label') || document.activeElement.labels?.[0]?.innerText || document.activeElement.innerText || '').trim() === %q`, what)) == true {
				return
			}
		}
		t.Fatalf("Tab does not reach %q", what)
	}
	shot(p, "promises-phone")
	tabTo("Details of now")
	p.Key("Enter")
	p.Wait(`document.querySelector('[data-testid=one]')?.innerText.includes('there as')`)
	tabTo("Run a script")
	p.Key("Enter")
	tabTo("Script")
	p.Type("sleep 60")
	p.Wait(`document.body.innerText.includes('Want a script that begins with #!')`)
	p.Eval(`document.activeElement.select()`)
	p.Type("#!/bin/sh\nsleep 60\n")
	tabTo("Folder at the site")
	p.Type("here")
	p.Wait(`document.body.innerText.includes('Want a folder at the site')`)
	p.Eval(`document.activeElement.select()`)
	p.Type("/tmp")
	p.Key("Enter")
	p.Wait(`document.querySelector('[data-testid=done]')?.innerText.includes('berth submit --reservation now --dir /tmp')`)
	q.site.Advance(berth.Time(time.Now().Unix())) // its clock stood since before the promise
	p.Wait(`document.querySelector('table[aria-label=Tasks]')?.innerText.includes('running')`)
	p.Wait(`document.querySelector('[data-testid=history]').innerText.includes('in use')`)
	q.site.Advance(berth.Time(time.Now().Unix()).Add(90))
	p.Wait(`document.querySelector('table[aria-label=Tasks]')?.innerText.includes('completed, exit code 0')`)
	shot(p, "promise-phone")
	if wide := p.Eval(`document.documentElement.scrollWidth`).(float64); wide > 420 {
		t.Errorf("the page is %v pixels wide on a phone", wide)
	}
	p.Key("Escape")
	p.Wait(`document.activeElement.getAttribute('aria-label') === 'Details of now'`)
	noFaults(t, p)
}
