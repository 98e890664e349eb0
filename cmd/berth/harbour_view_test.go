package main

import (
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/service"
)

const gantt = `document.querySelector('.gantt canvas[role=application]')`

var (
	mineBlue   = [3]int{0x12, 0x3f, 0x7a}
	othersBlue = [3]int{0x3d, 0x8f, 0xd1}
	outageInk  = [3]int{0x17, 0x19, 0x1d}

	degradedOrange = [3]int{0xc2, 0x41, 0x0c}
)

// fullHarbour returns the harbour of a service with promises, as a user of it sees it.
func fullHarbour(t *testing.T) *browser.Page {
	t.Helper()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.load()
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, ""))
	painted(p, 2)
	return p
}

// Filters leave out what is not asked for, stand in the address, and a link that was copied
// brings the same view back, rows and all.
func TestHarbourFiltersAndLinks(t *testing.T) {
	t.Parallel()
	p := fullHarbour(t)
	if colours(p, mineBlue) == 0 || colours(p, othersBlue) == 0 {
		t.Fatal("there is nothing to filter")
	}
	p.Press("Filter")
	p.Press("Mine only")
	shot(p, "filter")
	p.Wait(`location.search.includes('owner=mine')`)
	if mine, others := colours(p, mineBlue), colours(p, othersBlue); mine == 0 || others != 0 {
		t.Errorf("of one's own alone: %d pixels, of others %d", mine, others)
	}
	p.Press("Those of others")
	p.Press("Promises")
	p.Wait(`location.search.includes('owner=others') && location.search.includes('state=promise')`)
	if mine, others := colours(p, mineBlue), colours(p, othersBlue); mine != 0 || others == 0 {
		t.Errorf("of others alone: %d pixels of one's own, %d of others", mine, others)
	}
	p.Press("Show everything")
	p.Key("Escape")
	p.Eval(gantt + `.focus()`)
	p.Key("/")
	p.Type("n16")
	p.Wait(`location.search.includes('q=n16')`)
	few := colours(p, othersBlue)
	p.Eval(`getSelection().removeAllRanges()`)
	p.Key("Escape")
	p.Wait(`!location.search.includes('q=')`)
	if all := colours(p, othersBlue); few >= all {
		t.Errorf("%d pixels on one node, %d on all", few, all)
	}
	p.Eval(gantt + `.focus()`)
	p.Key("g")
	p.Wait(`document.activeElement?.labels?.[0]?.innerText === 'Time'`)
	p.Type("now+3d")
	p.Key("Enter")
	p.Wait(`!document.querySelector('[role=dialog]') && /t=20/.test(location.search)`)
	p.Press("Share")
	shot(p, "share")
	p.Press("Copy link to these times")
	p.Wait(`/t=20\d\d-/.test(document.querySelector('[data-testid=said]')?.innerText)`)
	said := p.Eval(`document.querySelector('[data-testid=said]').innerText`).(string)
	link := said[strings.Index(said, "http"):]
	window := p.Eval(`document.querySelector('[data-testid=window]').innerText`)
	pixels := p.Eval(pixelsOf + `.join()`)
	other := p.Beside(wide)
	other.Visit(link)
	painted(other, 2)
	other.Wait(fmt.Sprintf(`document.querySelector('[data-testid=window]').innerText === %q`, window))
	other.Wait(fmt.Sprintf(`%s.join() === %q`, pixelsOf, pixels))
	noFaults(t, p)
}

// Escape closes what the buttons Filter and Share have opened, at once and wherever the focus
// is, gives the focus back, and leaves what is selected alone.
func TestHarbourEscape(t *testing.T) {
	t.Parallel()
	p := fullHarbour(t)
	p.Eval(gantt + `.focus()`)
	p.Key("ArrowRight")
	p.Wait(`/sel=harbour/.test(location.search)`)
	for _, name := range []string{"Filter", "Share"} {
		for _, inside := range []bool{false, true} {
			p.Press(name)
			p.Wait(`[...document.querySelectorAll('.mantine-Popover-dropdown')].some((e) => e.offsetHeight > 0)`)
			if inside {
				p.Key("Tab")
			} else {
				p.Eval(`document.activeElement.blur()`)
			}
			p.Key("Escape")
			p.Wait(fmt.Sprintf(`![...document.querySelectorAll('.mantine-Popover-dropdown')].some((e) => e.offsetHeight > 0) && document.activeElement.innerText.trim() === %q`, name))
		}
	}
	if at := p.Eval(`location.search`).(string); !strings.Contains(at, "sel=harbour") {
		t.Errorf("the selection is gone: %s", at)
	}
	noFaults(t, p)
}

// Ctrl+K finds a site, a node and, for those who may see it, a promise by its id.
func TestHarbourFind(t *testing.T) {
	t.Parallel()
	p := fullHarbour(t)
	find := func(words, want string) {
		t.Helper()
		p.Key("Control+k")
		p.Wait(`document.activeElement?.getAttribute('role') === 'combobox'`)
		p.Type(words)
		p.Wait(fmt.Sprintf(`document.querySelector('#found [role=option]')?.innerText.startsWith(%q)`, want))
	}
	find("reco", "Site record")
	p.Key("Enter")
	p.Wait(`location.search.includes('site=record') && document.querySelectorAll('.gantt').length === 1`)
	find("n12", "Node n12 at harbour")
	shot(p, "find")
	p.Key("Enter")
	p.Wait(`location.search.includes('q=n12') && location.search.includes('site=harbour')`)
	find("alice-later", "alice-later, harbour")
	p.Key("Enter")
	p.Wait(`document.querySelector('.mantine-Drawer-body')?.innerText.includes('alice-later')`)
	p.Wait(`location.search.includes('sel=harbour/')`)
	p.Faults() // of words that are no id of a promise
}

// What is looked at is saved as a table and as a drawing, with every bar of the window, and
// names with commas and formulas do no harm.
func TestHarbourIsSaved(t *testing.T) {
	t.Parallel()
	p := fullHarbour(t)
	p.Eval(`(() => { globalThis.saved = []; const make = URL.createObjectURL; URL.createObjectURL = (blob) => { globalThis.saved.push(blob.text()); return make(blob) } })()`)
	p.Press("Share")
	p.Press("Save as CSV")
	p.Wait(`document.querySelector('[data-testid=said]')?.innerText.includes('.csv')`)
	rows, err := csv.NewReader(strings.NewReader(p.Eval(`saved[0]`).(string))).ReadAll()
	if err != nil || len(rows) < 15 || strings.Join(rows[0], " ") != "site pool number what first_pe pes start end seconds nodes" {
		t.Fatalf("%d rows, %v: %v", len(rows), err, rows)
	}
	mine := 0
	for _, row := range rows[1:] {
		if row[3] == "your promise" || strings.HasPrefix(row[3], "your promise, ") {
			mine++
		}
	}
	if mine < 3 {
		t.Errorf("%d rows of one's own: %q", mine, rows)
	}
	p.Press("Share")
	p.Press("Save as SVG")
	p.Wait(`document.querySelector('[data-testid=said]')?.innerText.includes('.svg')`)
	drawing := p.Eval(`saved[1]`).(string)
	decoder := xml.NewDecoder(strings.NewReader(drawing))
	for {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if bars := strings.Count(drawing, "<title>"); bars < 14 {
		t.Errorf("%d bars", bars)
	}
	noFaults(t, p)
}

// On paper every page says what it is, of when and in which zone, has no buttons, and shows its
// tables whole; where a promise is open, that is what is printed.
func TestPagesOnPaper(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.load()
	for i := range 12 {
		q.reserve("olga", "record", fmt.Sprintf("olga-%d", i), 1, berth.Duration(3600*(i+1)), 3600, 0)
	}
	p := b.Open(browser.Size{Width: 1000, Height: 500})
	p.Dark(true)
	p.Visit(q.link("olga", service.Operator, "?tz=Europe/Berlin"))
	painted(p, 2)
	const whole = `[...document.querySelectorAll('.mantine-ScrollArea-viewport')].filter((e) => e.offsetHeight > 0).every((e) => getComputedStyle(e).maxHeight === 'none' && e.offsetHeight >= e.scrollHeight)`
	const bare = `![...document.querySelectorAll('button, .mantine-AppShell-header')].some((e) => e.offsetHeight > 0)`
	paper := func(name, line string) {
		p.Paper(true)
		p.Wait(`matchMedia('print').matches && document.documentElement.dataset.mantineColorScheme === 'light'`)
		p.Wait(fmt.Sprintf(`%s && %s && document.body.innerText.includes(%q)`, bare, whole, line))
		shot(p, "paper-"+name)
		p.Paper(false)
		p.Wait(`!matchMedia('print').matches && document.documentElement.dataset.mantineColorScheme === 'dark'`)
	}
	for _, page := range []struct{ name, ready string }{
		{"Book", `document.querySelector('ul[aria-label=Offers] li')`},
		{"My promises", `document.querySelectorAll('table tbody tr').length === 12`},
		{"Workflow", `document.querySelector('.drop')`},
		{"Laboratory", `document.querySelector('h1')?.innerText === 'Laboratory'`},
		{"Operate", `document.querySelector('h1')?.innerText === 'Operate' && document.querySelector('table tbody tr')`},
	} {
		visit(p, page.name)
		p.Wait(page.ready)
		if page.name == "Workflow" {
			p.Press("Take an example")
			curved(p)
		}
		paper(page.name, "Berth, "+page.name+". Printed at ")
	}
	visit(p, "My promises")
	p.Press("Details of olga-3")
	p.Wait(`document.querySelector('[data-testid=history] li')`)
	paper("one promise", "berth show olga-3")
	p.Paper(true)
	p.Wait(`matchMedia('print').matches`)
	if hidden := p.Eval(`document.querySelector('main').offsetHeight === 0 && !document.body.innerText.includes('olga-4')`); hidden != true {
		t.Error("what is behind an open promise is printed too")
	}
	noFaults(t, p)
}

// On paper the harbour is light, says of when and in which zone it is, and has no buttons.
func TestHarbourOnPaper(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.load()
	p := b.Open(wide)
	p.Dark(true)
	p.Visit(q.link("alice", service.User, ""))
	painted(p, 2)
	p.Paper(true)
	p.Wait(`matchMedia('print').matches && document.querySelector('.print-only').offsetHeight > 0 && document.querySelector('.print-only').innerText.includes('UTC')`)
	p.Wait(`document.documentElement.dataset.mantineColorScheme === 'light'`)
	if n := colours(p, mineBlue); n == 0 {
		t.Error("the picture is not light")
	}
	const scale = `JSON.stringify([...document.querySelectorAll('.gantt canvas')].map((c) => [Math.round(c.width / c.clientWidth * 100) / 100, Math.round(c.height / c.clientHeight * 100) / 100]))`
	if got := p.Eval(scale); got != `[[2,2],[2,2],[2,2],[2,2]]` {
		t.Errorf("a pixel of the screen has %v on paper, want 2 by 2", got)
	}
	if n := p.Eval(`[...document.querySelectorAll('button')].filter((b) => b.offsetHeight > 0).length`); n != 0.0 {
		t.Errorf("%v buttons", n)
	}
	shot(p, "paper")
	p.Paper(false)
	p.Wait(`document.querySelector('.print-only').offsetHeight === 0`)
	p.Wait(scale + ` === '[[1,1],[1,1],[1,1],[1,1]]'`) // painted again in a frame of its own
	noFaults(t, p)
}

// Two fingers zoom at the place between them.
func TestHarbourPinch(t *testing.T) {
	t.Parallel()
	p := fullHarbour(t)
	p.Touch("touchStart", browser.Point{X: 600, Y: 300}, browser.Point{X: 700, Y: 300})
	for i := range 5 {
		by := float64(20 * (i + 1))
		p.Touch("touchMove", browser.Point{X: 600 - by, Y: 300}, browser.Point{X: 700 + by, Y: 300})
	}
	p.Touch("touchEnd")
	// 24 hours at a third of the size: the address follows the fingers, and ends with them.
	p.Wait(`(() => { const [a, b] = (new URLSearchParams(location.search).get('t') ?? '').split('..').map((t) => Date.parse(t)); const hours = (b - a) / 3.6e6; return hours >= 6 && hours <= 12 })()`)
	noFaults(t, p)
}
