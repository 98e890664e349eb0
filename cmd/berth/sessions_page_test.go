package main

import (
	"testing"

	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/service"
)

// Users see where they are logged in, which of these is the page before them, and end one or all others, whose pages log out at once.
func TestSessionsInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	var pages []*browser.Page
	for range 4 {
		p := b.Open(wide)
		p.Visit(q.link("alice", service.User, "promises"))
		p.Wait(`document.querySelector('[data-testid=none]')`)
		pages = append(pages, p)
	}
	h := &hands{t, pages[0]}
	h.to("alice, user: where you are logged in")
	h.Key("Enter")
	h.Wait(`document.querySelectorAll('[data-testid=sessions] section').length === 4`)
	h.Wait(`[...document.querySelectorAll('[data-testid=sessions] section')].filter((s) => /Chrome on Linux\s+from 127.0.0.1\s+this one/.test(s.innerText)).length === 1`)
	h.Wait(`/Opened with a token \w+ \d{4}-\d\d-\d\d \d\d:\d\d, used last \w+ \d{4}-.*, ends at the latest \w+ \d{4}-/.test(document.querySelector('[data-testid=sessions] section').innerText.replaceAll('\n', ' '))`)
	shot(h.Page, "sessions-light")
	gone := `!!document.querySelector('input[type=password]')`
	h.to("End: Chrome on Linux 127.0.0.1")
	h.Key("Enter")
	h.on("Yes, end it: Chrome on Linux 127.0.0.1")
	h.Key("Enter")
	h.Wait(`document.querySelectorAll('[data-testid=sessions] section').length === 3 && document.querySelector('[data-testid=sessions] [role=status].said').innerText === 'The session is ended.'`)
	ended := 0
	for _, p := range pages[1:] { // the one used last is above: one of the others
		if p.Eval(gone) == true {
			ended++
		}
	}
	h.Press("End all others")
	h.Press("Yes, end all others")
	h.Wait(`document.querySelectorAll('[data-testid=sessions] section').length === 1 && document.querySelector('[data-testid=sessions] [role=status].said').innerText === 'All others are ended.'`)
	for _, p := range pages[1:] {
		p.Wait(gone)
		p.Faults()
	}
	if ended > 1 {
		t.Errorf("%d pages are logged out by the end of one session", ended)
	}
	h.Wait(`![...document.querySelectorAll('[data-testid=sessions] button')].some((e) => e.innerText === 'End all others')`)
	h.Key("Escape")
	h.on("alice, user: where you are logged in")
	noFaults(t, h.Page)
}
