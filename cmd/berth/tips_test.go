package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/service"
)

// on returns a place in the first picture that has a colour, the last of all: on a bar.
func on(p *browser.Page, rgb [3]int) browser.Point {
	at, _ := p.Eval(fmt.Sprintf(`(() => {
		const c = document.querySelector('.gantt canvas[aria-hidden]'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, r = c.getBoundingClientRect();
		let best = null;
		for (let i = 0; i < d.length; i += 4) if (d[i] === %d && d[i+1] === %d && d[i+2] === %d) {
			const x = i / 4 %% c.width, y = Math.floor(i / 4 / c.width);
			if (!best || x > best[0]) best = [x, y];
		}
		return [r.x + best[0] + 0.5, r.y + best[1] + 0.5];
	})()`, rgb[0], rgb[1], rgb[2])).([]any)
	return browser.Point{X: at[0].(float64), Y: at[1].(float64)}
}

// The pointer on a bar is told who holds it and its name where the role may see that, and the filter finds
// bars by these; of an outage whose beginning is not known that is told, and drawn.
func TestHarbourTellsNames(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.load()
	alice := b.Open(wide)
	alice.Visit(q.link("alice", service.User, "?site=harbour"))
	painted(alice, 1)
	alice.Mouse("mouseMoved", on(alice, mineBlue))
	alice.Wait(`/alice-(now|later|held)/.test(document.querySelector('.tip')?.innerText)`)
	shot(alice, "tip-mine-light")
	alice.Mouse("mouseMoved", on(alice, othersBlue))
	alice.Wait(`document.querySelector('.tip')?.innerText.startsWith('Promise')`)
	if is := alice.Eval(`document.querySelector('.tip').innerText`).(string); strings.Contains(is, "bob") {
		t.Errorf("alice is told %q", is)
	}
	olga := b.Open(wide)
	olga.Dark(false)
	olga.Visit(q.link("olga", service.Operator, "?site=harbour"))
	painted(olga, 1)
	olga.Mouse("mouseMoved", on(olga, othersBlue))
	olga.Wait(`/(bob, bob-\d|alice, alice-\w+)/.test(document.querySelector('.tip')?.innerText)`)
	shot(olga, "tip-operator-light")
	olga.Eval(gantt + `.focus()`)
	olga.Key("ArrowRight")
	olga.Wait(`/(bob, bob-\d|alice, alice-\w+)$/.test(document.querySelector('.gantt [role=status]').innerText)`)

	blue := func(p *browser.Page) string {
		return fmt.Sprintf(`((d) => { let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] === %d && d[i+1] === %d && d[i+2] === %d) n++; return n })(%s)`, othersBlue[0], othersBlue[1], othersBlue[2], pixelsOf)
	}
	all := olga.Eval(blue(olga)).(float64)
	olga.Eval(gantt + `.focus()`)
	olga.Key("/")
	olga.Type("BOB")
	olga.Wait(fmt.Sprintf(`((n) => n > 0 && n < %v)(%s)`, all, blue(olga)))
	olga.Wait(`!document.querySelector('[data-testid=empty]')`)
	shot(olga, "filter-user-light")
	olga.Eval(`document.activeElement.select()`)
	olga.Type("alice-later")
	olga.Wait(fmt.Sprintf(`((n) => n > 0 && n < %v / 2)(%s)`, all, blue(olga)))
	alice.Eval(gantt + `.focus()`)
	alice.Key("/")
	alice.Type("bob")
	alice.Wait(`document.querySelector('[data-testid=empty]')?.innerText.startsWith('Nothing that the filter shows')`)
	alice.Eval(`document.activeElement.select()`)
	alice.Type("alice-later")
	alice.Wait(`!document.querySelector('[data-testid=empty]')`)
	if mine, others := colours(alice, mineBlue), colours(alice, othersBlue); mine == 0 || others != 0 {
		t.Errorf("of alice-later: %d pixels of one's own, %d of others", mine, others)
	}

	q.site.Fail("n16", "fire")
	olga.Visit(q.url + "/?site=harbour&state=outage")
	painted(olga, 1)
	olga.Wait(fmt.Sprintf(`((d) => { for (let i = 0; i < d.length; i += 4) if (d[i] === %d && d[i+1] === %d && d[i+2] === %d) return true; return false })(%s)`, outageInk[0], outageInk[1], outageInk[2], pixelsOf))
	olga.Mouse("mouseMoved", on(olga, outageInk))
	olga.Wait(`/Out of use[^]* or earlier – end unknown/.test(document.querySelector('.tip')?.innerText)`)
	shot(olga, "tip-outage-light")
	left := olga.Eval(fmt.Sprintf(`((d, w) => { let x = Infinity; for (let i = 0; i < d.length; i += 4) if (d[i] === %d && d[i+1] === %d && d[i+2] === %d) x = Math.min(x, i / 4 %% w); return x })(%s, document.querySelector('.gantt canvas[aria-hidden]').width)`, outageInk[0], outageInk[1], outageInk[2], pixelsOf)).(float64)
	if left < 40 { // two of 24 hours are over, which is some hundred pixels
		t.Errorf("an outage that was seen now is drawn from pixel %v on", left)
	}
	olga.Press("Table")
	olga.Wait(`document.querySelector('table tbody tr')?.innerText.includes('or earlier')`)
	olga.Press("Details")
	olga.Wait(`document.querySelector('.mantine-Drawer-body')?.innerText.includes('or earlier')`)
	noFaults(t, alice)
	noFaults(t, olga)
}
