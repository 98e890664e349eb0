package main

import (
	"testing"

	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/service"
)

// What is wrong is told once on each page, however much of it asked for something, and with one
// press everything is asked for again: a service that is out of reach, before anything was known
// and afterwards.
func TestTroubleIsToldOnce(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.load()
	const told = `[...document.querySelectorAll('main .mantine-Alert-root')].filter((e) => e.innerText.includes('The service does not answer') && e.checkVisibility()).length`
	p := b.Open(wide)
	p.Visit(q.link("olga", service.Operator, ""))
	painted(p, 2)
	pages := []string{"Book", "My promises", "Workflow", "Laboratory", "Operate", "Harbour"}
	for _, page := range pages {
		visit(p, page) // so that it is loaded
	}
	painted(p, 2)
	const answers = `document.querySelector('main').innerText.includes('The service does not answer')`
	p.Eval(`globalThis.answers = fetch; globalThis.asked = 0; window.fetch = () => { asked++; return Promise.reject(new TypeError('gone')) }; 0`)
	for _, page := range pages {
		p.Eval(`asked = 0`)
		visit(p, page)
		p.Wait(answers)
		p.Eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`)
		shot(p, "broken-"+page)
		asked := p.Eval(`asked`)
		if n := p.Eval(told); n != 1.0 {
			t.Errorf("%s says it %v times, after it has asked %v times", page, n, asked)
		}
	}
	// What is asked for again is all that was not answered.
	for _, page := range pages {
		p.Eval(`window.fetch = () => Promise.reject(new TypeError('gone')); 0`)
		visit(p, page)
		p.Wait(answers)
		// The service answers from the press on: a page that asked again by itself before would have nothing to press.
		p.Eval(`document.addEventListener('click', () => { window.fetch = answers }, { capture: true, once: true }); 0`)
		p.Press("Retry")
		p.Wait(`!` + answers)
	}
	// What is known stays, as of when it was known.
	for _, page := range pages {
		p.Eval(`window.fetch = answers; 0`)
		visit(p, page)
		p.Wait(`!document.querySelector('main [aria-busy=true]')`)
		p.Eval(`window.fetch = () => Promise.reject(new TypeError('gone')); 0`)
		q.reserve("olga", "harbour", "for-"+page[:2], 1, 50_000, 600, 0) // whereupon all ask anew
		p.Wait(answers)
		if n := p.Eval(told); n != 1.0 {
			t.Errorf("%s that was known says it %v times", page, n)
		}
		shot(p, "broken-known-"+page)
	}
}
