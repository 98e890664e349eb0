package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site"
	"github.com/berth-hpc/berth/site/fake"
)

// part waits until a part of the page for operators has a text.
func part(p *browser.Page, id, text string) {
	p.Wait(`document.querySelector('#` + id + `')?.innerText.includes('` + text + `')`)
}

// A node is drained by an operator; the promise on it is seen to degrade where it is listed,
// by its owner too, and to be whole again once the node is back.
func TestDrainInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.reserve("alice", "harbour", "all", 16, 60, 20_000, 0)
	p := b.Open(wide)
	p.Visit(q.link("olga", service.Operator, ""))
	painted(p, 2)
	owner := b.Open(wide)
	owner.Visit(q.link("alice", service.User, ""))
	painted(owner, 2)
	owner.Eval(`document.querySelector('.gantt canvas[role=application]').focus()`)
	owner.Key("ArrowRight")
	owner.Wait(`/sel=harbour/.test(location.search)`)
	p.Press("Operate")
	p.Wait(`location.pathname === '/operate'`)
	part(p, "degraded", "Every promise has all its PEs")
	p.Press("16 nodes, all up of harbour")
	p.Press("n3")
	p.Press("Drain 1 node")
	enter(p, "Reason", "fan's broken")
	p.Wait(`document.body.innerText.includes("berth sites drain harbour n3 --reason 'fan'\\''s broken'")`)
	shot(p, "operate-drain-light")
	p.Eval(`document.querySelector('form').requestSubmit()`)
	p.Wait(`document.querySelector('[data-testid=drained]')?.innerText.includes('1 drained')`)
	part(p, "degraded", "1 of 16 PEs")
	part(p, "outages", "n3")
	p.Wait(`document.querySelector('table[aria-label="Nodes of harbour"]').innerText.includes("fan's broken")`)
	shot(p, "operate-degraded-light")
	owner.Wait(`(() => { const d = ` + pixelsOf + `; for (let i = 0; i < d.length; i += 4) if (d[i] === 0xc2 && d[i+1] === 0x41 && d[i+2] === 0x0c) return true; return false })()`)
	if at := owner.Eval(`location.search + document.activeElement.getAttribute('role')`).(string); !strings.Contains(at, "sel=harbour") || !strings.HasSuffix(at, "application") {
		t.Errorf("an update changed the view to %s", at)
	}
	shot(owner, "harbour-degraded")
	owner.Press("My promises")
	owner.Wait(`document.querySelector('table.list')?.innerText.includes('1 missing')`)
	shot(owner, "promises-degraded")
	p.Press("n3")
	p.Press("Resume 1 node")
	p.Eval(`document.querySelector('form').requestSubmit()`)
	part(p, "degraded", "Every promise has all its PEs")
	owner.Wait(`!document.querySelector('table.list').innerText.includes('missing')`)
	p.Press("All 16 shown")
	p.Press("Drain 16 nodes")
	enter(p, "Reason", "all of them")
	if p.Eval(`document.querySelector('form button[type=submit]').disabled`) != true {
		t.Error("16 nodes can be drained without the name of their site")
	}
	enter(p, "These are many: type harbour to go on", "harbour")
	p.Wait(`!document.querySelector('form button[type=submit]').disabled`)
	noFaults(t, p)
	noFaults(t, owner)
}

// What operators look after is on one page, in both themes and on a phone, and is for them.
func TestOperateShowsWhatThereIs(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.load()
	faults, err := fake.ParseFaults("reserve * deny")
	if err != nil {
		t.Fatal(err)
	}
	q.site.Inject(faults...)
	q.reserve("dora", "harbour", "denied", 1, 10, 600, 0)
	q.site.Book(site.Booking{Name: "pumps", Start: q.host.Now().Add(50_000), End: q.host.Now().Add(60_000), Shares: []site.Share{{Node: "n9"}}, Flags: []string{"MAINT"}})
	ask := q.ask("erin")
	now := q.host.Now()
	wish := berth.Rigid("erin-asks", now, now, now.Add(3600), 64, 3600)
	wish.Site = "harbour"
	if a, err := q.host.Submit(t.Context(), ask, wish); err != nil || a.Reservation.State != service.Refused {
		t.Fatal(a, err)
	}
	for _, dark := range []bool{false, true} {
		scheme := map[bool]string{false: "light", true: "dark"}[dark]
		p := b.Open(browser.Size{Width: 1440, Height: 1800})
		p.Dark(dark)
		p.Visit(q.link("olga", service.Operator, "operate"))
		part(p, "sites", "reachable")
		part(p, "outbox", "no right to do this")
		part(p, "refusals", "64 PEs are wanted")
		part(p, "limits", "bob")
		p.Eval(`[...document.querySelectorAll('#limits label')].find((l) => l.innerText.includes('Show unused limits too')).click()`)
		part(p, "limits", "coal account")
		part(p, "outages", "n9")
		p.Press("Examine harbour")
		p.Wait(`document.querySelector('[data-testid=found]')`)
		part(p, "tokens", "olga")
		shot(p, "operate-"+scheme)
		if !dark { // a token is revoked by the second press
			if _, _, err := q.tokens.Add(token.Wanted{User: "zoe", Role: service.User, Note: "laptop"}, q.host.Now()); err != nil {
				t.Fatal(err)
			}
			p.Visit(q.link("olga", service.Operator, "operate?again"))
			part(p, "tokens", "laptop")
			p.Press("Revoke: zoe, user laptop")
			p.Press("Revoke it for good: zoe, user laptop")
			p.Wait(`!document.querySelector('#tokens').innerText.includes('laptop')`)
			for _, e := range q.tokens.List() {
				if e.User == "zoe" {
					t.Errorf("%+v is still there", e)
				}
			}
		}
		noFaults(t, p)
		p.Close()
	}
	phone := b.Open(browser.Size{Width: 420, Height: 900})
	phone.Visit(q.link("olga", service.Operator, "operate"))
	part(phone, "limits", "bob")
	if wide := phone.Eval(`document.documentElement.scrollWidth`).(float64); wide > 420 {
		t.Errorf("the page is %v pixels wide on a phone", wide)
	}
	shot(phone, "operate-phone")
	phone.Close()
	user := b.Open(wide)
	user.Visit(q.link("alice", service.User, "operate"))
	user.Wait(`document.body.innerText.includes('This page is for operators')`)
	if user.Eval(`document.querySelector('nav').innerText.includes('Operate')`) == true {
		t.Error("a user is offered the page for operators")
	}
	shot(user, "operate-user")
	noFaults(t, user)
}

// Operators make tokens on the page as on the command line: what is wrong is said at its field, the
// secret is shown once and is good, and nothing keeps it.
func TestOperateMakesATokenInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	for _, size := range []browser.Size{{Width: 1440, Height: 1400}, {Width: 390, Height: 844}} {
		p := b.Open(size)
		p.Visit(q.link("olga", service.Operator, "operate"))
		part(p, "tokens", "olga")
		p.Press("Make a token")
		p.Wait(`document.activeElement?.labels?.[0]?.innerText === 'User'`)
		if p.Eval(`document.querySelector('form button[type=submit]').disabled`) != true {
			t.Error("a token without a user can be made")
		}
		enter(p, "User", "zoe")
		enter(p, "Expires", "sometime")
		p.Wait(`document.body.innerText.includes('sometime: want a length of time, such as 30d')`)
		enter(p, "Expires", "now-1h")
		p.Wait(`document.body.innerText.includes('That is over already')`)
		enter(p, "Expires", "30d")
		enter(p, "Note", "a course")
		p.Press("record")
		p.Wait(`/berth token add zoe --note 'a course' --expires \d{4}-\S+Z --sites record/.test(document.querySelector('#tokens form').innerText)`)
		shot(p, fmt.Sprintf("token-form-%d", size.Width))
		p.Press("Make it")
		p.Wait(`document.querySelector('[data-testid=secret] code')`)
		shot(p, fmt.Sprintf("token-made-%d", size.Width))
		secret, _ := p.Eval(`document.querySelector('[data-testid=secret] code').innerText`).(string)
		e, _, known := q.tokens.Check(secret)
		if !known || e.User != "zoe" || e.Role != service.User || e.Note != "a course" || e.Expires < q.host.Now().Add(29*86_400) || !slices.Equal(e.Sites.Names(), []string{"record"}) {
			t.Errorf("the secret on the page is of %+v, known: %v", e, known)
		}
		part(p, "tokens", "a course")
		if strings.Contains(p.Eval(`JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, history.state])`).(string), secret) {
			t.Error("the secret is kept in the browser")
		}
		p.Press("Put it away")
		p.Wait(`!document.querySelector('[data-testid=secret]')`)
		if strings.Contains(p.Eval(`document.documentElement.outerHTML`).(string), secret) {
			t.Error("the secret is still there")
		}
		if wide := p.Eval(`document.documentElement.scrollWidth`).(float64); wide > float64(size.Width) {
			t.Errorf("the page is %v pixels wide", wide)
		}
		if err := q.tokens.Revoke(e.ID); err != nil {
			t.Fatal(err)
		}
		noFaults(t, p)
		p.Close()
	}
}

// Of a site that is only watched operators read what would have been promised.
func TestOperateShowsTheScore(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "watched")
	q.site.Occupy("ann", []site.Share{{Node: "n1"}}, 600, 900)
	p := b.Open(wide)
	p.Visit(q.link("olga", service.Operator, "operate"))
	p.Wait(`/Of \d+ jobs asked for, \d+ would have been promised/.test(document.querySelector('[data-testid=score]')?.innerText)`)
	shot(p, "operate-watched")
	noFaults(t, p)
}
