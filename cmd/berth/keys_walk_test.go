package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/service"
)

// hands is a person at a page with a keyboard alone.
type hands struct {
	t *testing.T
	*browser.Page
}

// name is what the element that has the focus is called.
const focusName = `(() => { const e = document.activeElement; return (e.getAttribute('aria-label') || e.labels?.[0]?.innerText || document.getElementById(e.getAttribute('aria-labelledby'))?.innerText || e.innerText || '').trim() })()`

// tab presses Tab, or Shift and Tab, until what has a name has the focus, which is seen wherever it is.
func (h *hands) tab(key, name string) {
	h.t.Helper()
	var passed []string
	for range 90 {
		h.Key(key)
		is, _ := h.Eval(focusName).(string)
		if h.seen(is); is == name {
			return
		}
		passed = append(passed, is)
	}
	h.t.Fatalf("%s does not reach %q but %q", key, name, passed)
}

func (h *hands) to(name string)   { h.t.Helper(); h.tab("Tab", name) }
func (h *hands) back(name string) { h.t.Helper(); h.tab("Shift+Tab", name) }

// seen holds that the focus is somewhere, marked, in the window, and not below the head of the page.
func (h *hands) seen(name string) {
	h.t.Helper()
	// Tab scrolls smoothly nowhere, but the page may still be laid out.
	why := h.Eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done((() => {
		const e = document.activeElement, s = getComputedStyle(e), r = e.getBoundingClientRect();
		if (e === document.body) return '';
		if (!e.matches(':focus-visible')) return 'it is not marked';
		const text = e.matches('input:not([type=radio]):not([type=checkbox]):not([type=range]), textarea');
		if (!text && (s.outlineStyle === 'none' || parseFloat(s.outlineWidth) < 1)) return 'it has no outline';
		if (r.bottom < 1 || r.top > innerHeight - 1 || r.right < 1 || r.left > innerWidth - 1) return 'it is outside of the window';
		const at = [Math.min(innerWidth - 1, Math.max(0, r.left + r.width / 2)), Math.min(innerHeight - 2, Math.max(0, r.top + Math.min(r.height / 2, 12)))];
		const on = document.elementFromPoint(at[0], at[1]);
		return on && (e.contains(on) || on.contains(e) || e.labels?.[0]?.contains(on)) ? '' : 'it is behind ' + on?.outerHTML.slice(0, 80);
	})()))))`)
	if why != "" {
		h.t.Errorf("the focus on %q: %v", name, why)
	}
}

// on waits until the focus is on what has a name, which happens without a key.
func (h *hands) on(name string) {
	h.t.Helper()
	h.Wait(fmt.Sprintf(focusName+` === %q`, name))
	h.seen(name)
}

// retype puts text where another one is.
func (h *hands) retype(text string) {
	h.t.Helper()
	h.Eval(`document.activeElement.select()`)
	h.Type(text)
}

// Operators do all of their page by keys alone. The focus is seen, and after each act it is where
// that was done, also where the act took away what had the focus.
func TestOperateByKeys(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.load()
	h := &hands{t, b.Open(wide)}
	h.Visit(q.link("olga", service.Operator, ""))
	painted(h.Page, 2)
	h.to("Operate")
	h.Key("Enter")
	part(h.Page, "limits", "bob")
	part(h.Page, "tokens", "olga")
	h.to("Examine harbour")
	h.Key("Enter")
	h.Wait(`document.querySelector('[data-testid=found]')`)
	h.on("Examine harbour")
	h.to("16 nodes, all up of harbour")
	h.Key("Enter")
	h.to("Find nodes")
	h.Type("n3")
	h.to("n3")
	h.Key(" ")
	h.back("Drain 1 node")
	h.Key("Enter")
	h.on("Reason")
	h.Type("broken fan")
	h.Key("Enter")
	h.Wait(`document.querySelector('[data-testid=drained]')?.innerText.includes('1 drained')`)
	h.on("Drain and resume nodes of harbour")
	part(h.Page, "outages", "n3")
	h.to("n3")
	h.Key(" ")
	h.back("Resume 1 node")
	h.Key("Enter")
	h.to("Leave them as they are")
	h.Key("Enter")
	h.Wait(`!document.querySelector('form')`)
	h.on("Drain and resume nodes of harbour")
	h.to("Resume 1 node")
	h.Key("Enter")
	h.to("Resume")
	h.Key("Enter")
	h.Wait(`document.querySelector('[data-testid=drained]')?.innerText.includes('1 resumed')`)
	h.on("Drain and resume nodes of harbour")
	h.Wait(`!document.querySelector('#outages').innerText.includes('n3')`)

	h.to("Show unused limits too")
	h.Key(" ")
	h.on("Show unused limits too")
	h.to("Make a token")
	h.Key("Enter")
	h.on("User")
	h.to("Make none")
	h.Key("Enter")
	h.on("Tokens")
	h.to("Make a token")
	h.Key("Enter")
	h.on("User")
	h.Type("zoe")
	h.Key("Enter")
	h.Wait(`document.querySelector('[data-testid=secret]')`)
	h.on("Tokens")
	h.to("Copy the secret")
	h.to("Put it away")
	h.Key("Enter")
	h.Wait(`!document.querySelector('[data-testid=secret]')`)
	h.on("Tokens")
	part(h.Page, "tokens", "zoe")
	h.to("Revoke: zoe, user")
	h.Key("Enter")
	h.on("Revoke it for good: zoe, user")
	h.Key("Enter")
	h.Wait(`!document.querySelector('#tokens').innerText.includes('zoe')`)
	h.Wait(`document.activeElement !== document.body`)
	if in := h.Eval(`Boolean(document.activeElement.closest('#tokens'))`); in != true {
		t.Errorf("after a token is revoked the focus is on %v", h.Eval(focusName))
	}
	noFaults(t, h.Page)
}

// The laboratory is used by keys alone: what had the focus is disabled while a comparison runs,
// and gone when it is over.
func TestLaboratoryByKeys(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.load()
	h := &hands{t, b.Open(wide)}
	h.Visit(q.link("alice", service.User, ""))
	painted(h.Page, 2)
	h.to("Laboratory")
	h.Key("Enter")
	h.Wait(`document.querySelector('[data-testid=none]')`)
	h.to("From")
	h.Type("sometime")
	h.Wait(`document.body.innerText.includes('sometime: want a time')`)
	h.retype("now-1d")
	h.to("late")
	h.Key(" ")
	h.to("early")
	h.Key(" ")
	h.Wait(`document.querySelector('[data-testid=count]').innerText === '4 combinations, 4 runs'`)
	// The comparison is over before the page hears that it began, as on a busy machine: Compare is
	// enabled all the time.
	h.Eval(`globalThis.soon = fetch; window.fetch = async (path, how) => {
		const answer = await soon(path, how);
		while (how?.method === 'POST' && !(await (await soon('v1/lab')).json()).comparisons.every((c) => c.state === 'done')) await new Promise(requestAnimationFrame);
		return answer;
	}; 0`)
	h.to("Compare")
	h.Key("Enter")
	finished(h.Page)
	h.on("Comparison on requests of this service")
	h.Eval(`window.fetch = soon; 0`)
	h.to("Every combination")
	h.to("report.html")
	drop(h.Page, "log.swf.gz", string(modelLog(t, 3000)))
	h.Wait(`document.querySelector('input[value^="log.swf.gz"]')`)
	h.back("Replications")
	h.retype("100")
	h.to("Compare")
	h.Key("Enter")
	h.Wait(`/[1-9]\d* of \d+ runs/.test(document.querySelector('[data-testid=progress]')?.innerText)`)
	name, _ := h.Eval(focusName).(string)
	if !strings.HasPrefix(name, "Comparison on log.swf.gz") {
		t.Errorf("once a comparison runs the focus is on %q", name)
	}
	h.to("Cancel")
	h.Key("Enter")
	h.Wait(`document.querySelector('[data-testid=one]').innerText.includes('It was cancelled')`)
	h.on(name)
	h.back("log.swf.gz") // in a group of buttons Tab reaches the chosen one, and the arrows the others
	h.Key("ArrowDown")
	h.Wait(`document.querySelector('#one-title').innerText.includes('requests of this service')`)
	h.on("requests of this service")
	noFaults(t, h.Page)
}
