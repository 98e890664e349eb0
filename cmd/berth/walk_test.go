package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/api/client"
	"github.com/berth-hpc/berth/internal/browser"
)

// pointer is a person at a page with a mouse alone.
type pointer struct {
	t *testing.T
	*browser.Page
}

// press clicks what has a name, once the wheel has been turned to it.
func (m *pointer) press(name string) {
	m.t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll('button, a, input')].find((e) => (e.getAttribute('aria-label') || e.innerText || e.labels?.[0]?.innerText || '').trim() === %q)`, name)
	m.Wait(find)
	for range 100 {
		away, _ := m.Eval(`new Promise((done) => requestAnimationFrame(() => { const r = ` + find + `.getBoundingClientRect(); done(r.top < 60 ? r.top - 60 : Math.max(0, r.bottom + 20 - innerHeight)) }))`).(float64)
		if away == 0 {
			break
		}
		m.Wheel(browser.Point{X: float64(wide.Width) - 4, Y: float64(wide.Height) / 2}, away)
	}
	m.Press(name)
}

// pick opens the field with a label and clicks one of its choices.
func (m *pointer) pick(field, choice string) {
	m.t.Helper()
	m.press(field)
	find := fmt.Sprintf(`[...document.querySelectorAll('[role=option]')].find((e) => e.innerText === %q)`, choice)
	m.Wait(find + `?.checkVisibility()`)
	at, _ := m.Eval(`(() => { const r = ` + find + `.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()`).([]any)
	m.Click(browser.Point{X: at[0].(float64), Y: at[1].(float64)})
	m.Wait(fmt.Sprintf(`[...document.querySelectorAll('input')].find((e) => e.labels?.[0]?.innerText === %q).value === %q`, field, choice))
}

// ahead is a place in the picture of a site on the page Book, some hours from now: in the lane that says when it can start, or else in
// the middle of the picture.
func (m *pointer) ahead(site string, hours float64, lane bool) browser.Point {
	m.t.Helper()
	at, _ := m.Eval(fmt.Sprintf(`(() => {
		const r = document.querySelector('section[aria-label^="%s, "] canvas[role=application]').getBoundingClientRect(), names = 116, axis = 30;
		return [r.x + names + (%g + 1) / 24 * (r.width - names), r.y + (%t ? axis + 7 : r.height / 2)];
	})()`, site, hours, lane)).([]any)
	return browser.Point{X: at[0].(float64), Y: at[1].(float64)}
}

// write types a text key by key.
func (h *hands) write(text string) {
	h.t.Helper()
	for _, key := range text {
		h.Key(string(key))
	}
}

// fill goes to the field with a label and types a text over what is in it, which Tab has selected.
func (h *hands) fill(label, text string) {
	h.t.Helper()
	h.to(label)
	h.write(text)
	if is := value(h.Page, label); is != text {
		h.t.Fatalf("%s is %q after %q was typed", label, is, text)
	}
}

// choose goes to the field with a label and takes one of its choices with the arrows.
func (h *hands) choose(field, choice string) {
	h.t.Helper()
	h.to(field)
	h.take(field, choice)
}

// take takes one of the choices of the field that has the focus.
func (h *hands) take(field, choice string) {
	h.t.Helper()
	for range 10 {
		h.Key("ArrowDown")
		if h.Eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(document.querySelector('[data-combobox-selected]')?.innerText))))`) == choice {
			break
		}
	}
	h.Key("Enter")
	if is := value(h.Page, field); is != choice {
		h.t.Fatalf("%s is %q, want %q", field, is, choice)
	}
}

// look leaves a picture of a page in both themes, if pictures are wanted.
func look(p *browser.Page, name string) {
	if *shots == "" {
		return
	}
	for _, dark := range []bool{true, false} {
		p.Dark(dark)
		p.Eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`)
		shot(p, "walk-"+name+map[bool]string{true: "-dark", false: "-light"}[dark])
	}
}

// The walk: an operator follows the login link of a service that has just been started, and does in the browser what a first hour
// brings. Everything is done by the events of a mouse or of keys, never by a script in the page.
func TestWalk(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("a local site needs Linux")
	}
	b := browser.Start(t)
	folder := t.TempDir()
	config, data := filepath.Join(folder, "berth.yaml"), filepath.Join(folder, "data")
	sites := "sites:\n- {name: harbour, adapter: {kind: local, node: quay, cores: 16}}\n- {name: pier, pes: 32}\n"
	if err := os.WriteFile(config, []byte(sites), 0o600); err != nil {
		t.Fatal(err)
	}
	link, user := serveWithLink(t, "--config", config, "--data", data)
	address, _, _ := strings.Cut(link, "/#")

	// The link logs in, and nothing is promised yet.
	m := &pointer{t, b.Open(wide)}
	m.Visit(link)
	m.Wait(fmt.Sprintf(`document.body.innerText.includes(%q)`, user+", operator"))
	painted(m.Page, 2)
	look(m.Page, "1-harbour-empty")

	// By mouse alone: one PE for an hour at the harbour. A click into the lane says when it may start at the earliest, and the
	// deadline is dragged from twelve hours ahead to five.
	m.press("Book")
	offered(m.Page, "As asked")
	look(m.Page, "2-book")
	m.pick("Where", "harbour")
	m.Wait(`document.querySelectorAll('.gantt canvas[role=application]').length === 1 && [...document.querySelectorAll('button')].some((b) => b.innerText.includes('When it can start'))`)
	m.Click(m.ahead("harbour", 3, true))
	m.Wait(`[...document.querySelectorAll('input')].find((e) => e.labels?.[0]?.innerText === 'Not before').value.endsWith('Z')`)
	m.Mouse("mouseMoved", m.ahead("harbour", 12, false))
	m.Mouse("mousePressed", m.ahead("harbour", 12, false))
	for _, hours := range []float64{11, 9, 7, 5} {
		m.Mouse("mouseMoved", m.ahead("harbour", hours, false))
	}
	m.Mouse("mouseReleased", m.ahead("harbour", 5, false))
	m.Wait(`[...document.querySelectorAll('input')].find((e) => e.labels?.[0]?.innerText === 'Deadline').value.endsWith('Z')`)
	offered(m.Page, "As asked")
	look(m.Page, "3-book-dragged")
	m.press("Promise it")
	m.Wait(`document.querySelector('[data-testid=promised]')?.innerText.includes('1 PE at harbour')`)
	look(m.Page, "4-book-promised")

	// By keyboard alone, in another tab: twelve PEs for two hours.
	k := &hands{t, m.Beside(wide)}
	k.Visit(address)
	painted(k.Page, 2)
	k.to("Book")
	k.Key("Enter")
	offered(k.Page, "As asked")
	k.fill("PEs", "12")
	k.fill("Duration", "2h")
	k.fill("Not before", "now+30m")
	k.choose("Where", "harbour")
	offered(k.Page, "As asked")
	look(k.Page, "5-book-by-keys")
	k.to("Promise it")
	k.Key("Enter")
	k.Wait(`document.querySelector('[data-testid=promised]')?.innerText.includes('12 PEs at harbour')`)

	// All sixteen within the next three hours cannot be had: the refusal says why, and an offer is held and confirmed.
	k.back("PEs")
	k.write("16")
	k.fill("Deadline", "now+3h")
	offered(k.Page, "Later")
	k.to("Promise it")
	k.Key("Enter")
	k.Wait(`document.querySelector('[data-testid=refused]')?.innerText.includes('no_capacity')`)
	look(k.Page, "6-refused")
	k.to("Hold for 10 min: Later")
	k.Key("Enter")
	k.Wait(`document.querySelector('[data-testid=held]')?.innerText.includes('left to confirm')`)
	look(k.Page, "7-held")
	k.on("What came of it, and the pictures")
	k.to("Confirm")
	k.Key("Enter")
	k.Wait(`document.querySelector('[data-testid=promised]')?.innerText.includes('16 PEs at harbour')`)
	confirmed(t, address, data, 1, 12, 16)

	// The arrows go from promise to promise in the picture, and Enter shows what one is.
	k.back("Harbour")
	k.Key("Enter")
	painted(k.Page, 2)
	name, _ := k.Eval(gantt + `.getAttribute('aria-label')`).(string)
	k.to(name)
	const said = `document.querySelector('.gantt [role=status]').innerText`
	for range 3 {
		was := k.Eval(said)
		k.Key("ArrowRight")
		k.Wait(fmt.Sprintf(said+` !== %q`, was))
		if is := k.Eval(said).(string); strings.Contains(is, "16 PEs") {
			break
		}
	}
	look(k.Page, "8-harbour")
	k.Key("Enter")
	k.Wait(`document.querySelector('.mantine-Drawer-body')?.innerText.includes('Your promise') && document.querySelector('.mantine-Drawer-body').innerText.includes('16')`)
	look(k.Page, "9-details")
	k.Key("Escape")
	k.Wait(`!document.querySelector('.mantine-Drawer-body')`)

	// The mouse drains the node of the harbour, and the promises there are seen to degrade without being asked for.
	m.Front()
	m.press("Operate")
	m.press("1 node, all up of harbour")
	m.press("quay")
	m.press("Drain 1 node")
	m.Type("a new fan") // a reason is words
	look(m.Page, "10-drain")
	m.press("Drain")
	m.Wait(`document.querySelector('[data-testid=drained]')?.innerText.includes('1 drained')`)
	part(m.Page, "degraded", "of 16 PEs")
	part(m.Page, "outages", "quay")
	look(m.Page, "11-operate-degraded")
	orange := fmt.Sprintf(`((d) => { let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] === %d && d[i+1] === %d && d[i+2] === %d) n++; return n })(%s)`, degradedOrange[0], degradedOrange[1], degradedOrange[2], pixelsOf)
	k.Front()
	k.Wait(orange + ` > 200`)
	look(k.Page, "12-harbour-degraded")
	k.to("My promises")
	k.Key("Enter")
	k.Wait(`(document.querySelector('table.list')?.innerText.match(/\d+ missing/g) ?? []).length === 3`) // of every promise of the harbour
	look(k.Page, "13-promises-degraded")

	// The node is back, and so are its promises.
	m.Front()
	m.press("quay")
	m.press("Resume 1 node")
	m.press("Resume")
	part(m.Page, "degraded", "Every promise has all its PEs")
	k.Front()
	k.Wait(`!document.querySelector('table.list').innerText.includes('missing')`)
	k.back("Harbour")
	k.Key("Enter")
	painted(k.Page, 2)
	k.Wait(orange + ` === 0`)
	look(k.Page, "14-harbour-whole")
	m.Front()
	for _, page := range []string{"Workflow", "Laboratory"} {
		m.press(page)
		m.Wait(`document.querySelector('main h1')?.innerText === '` + page + `' && !document.querySelector('main [aria-busy=true]')`)
		look(m.Page, "15-"+strings.ToLower(page))
	}
	confirmed(t, address, data, 1, 12, 16)
	noFaults(t, m.Page)
	noFaults(t, k.Page)
}

// confirmed holds that a service has promised these numbers of PEs at the harbour and nothing else, by asking it as a program does.
func confirmed(t *testing.T, address, data string, pes ...int) {
	t.Helper()
	secret, err := os.ReadFile(filepath.Join(data, "operator.token"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(address, strings.TrimSpace(string(secret)), nil)
	if err != nil {
		t.Fatal(err)
	}
	var has []int
	for r, err := range c.List(t.Context(), client.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.State == "refused" {
			continue
		}
		if r.State != "confirmed" || r.Site != "harbour" {
			t.Errorf("%s is %s at %s", r.ID, r.State, r.Site)
		}
		has = append(has, int(r.NPE))
	}
	slices.Sort(has)
	if !slices.Equal(has, pes) {
		t.Errorf("%v PEs are promised, want %v", has, pes)
	}
}
