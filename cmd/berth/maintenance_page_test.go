package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/service"
)

// Maintenance is planned on the page once it is seen what is in its way, its mark is in the picture, and it is called off, by time and as a whole.
func TestMaintenanceInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.reserve("alice", "harbour", "there", 16, 7200, 7200+3600, 0)
	for _, size := range []browser.Size{{Width: 1440, Height: 1200}, {Width: 390, Height: 844}} {
		p := b.Open(size)
		p.Dark(size.Width == 390)
		p.Visit(q.link("olga", service.Operator, "operate"))
		part(p, "maintenance", "No maintenance is planned")
		p.Press("Plan maintenance")
		p.Wait(`document.activeElement?.labels?.[0]?.innerText === 'Name'`)
		if p.Eval(`document.querySelector('#maintenance form button[type=submit]').disabled`) != true {
			t.Error("maintenance without a name can be planned")
		}
		enter(p, "Name", "cooling")
		enter(p, "Nodes", "n[1-2]")
		enter(p, "Begins", "sometime")
		p.Wait(`document.body.innerText.includes('sometime: want a time')`)
		enter(p, "Begins", "now+2h")
		enter(p, "Lasts", "1h")
		enter(p, "Reason", "the pumps")
		p.Wait(`/berth maintenance add cooling --site harbour --nodes 'n\[1-2\]' --start \S+Z --duration 1h --reason 'the pumps' --dry-run/.test(document.querySelector('#maintenance form').innerText)`)
		p.Press("See what is in its way")
		p.Wait(`document.querySelector('[data-testid=tried]')?.innerText.includes('1 promise is in its way')`)
		if list, err := q.host.ListMaintenance(t.Context(), service.Principal{User: "olga", Role: service.Operator}); err != nil || len(list) > 0 {
			t.Errorf("what was only looked at is there: %v, %v", list, err)
		}
		shot(p, fmt.Sprintf("maintenance-tried-%d", size.Width))
		enter(p, "Lasts", "2h") // another plan has to be looked at again
		p.Wait(`!document.querySelector('[data-testid=tried]')`)
		enter(p, "Repeats", "daily 04:00")
		enter(p, "How many times", "2")
		p.Press("See what is in its way")
		p.Wait(`document.querySelector('[data-testid=tried]')?.innerText.includes('2 times would be planned')`)
		p.Press("Announce it")
		p.Wait(`document.querySelector('[data-testid=announced]') && !document.querySelector('#maintenance form')`)
		part(p, "maintenance", "2 times")
		part(p, "outages", "announced")
		shot(p, fmt.Sprintf("maintenance-announced-%d", size.Width))
		p.Press("Skip the next: cooling")
		p.Press("Yes, skip the next: cooling")
		p.Wait(`document.querySelector('[data-testid=off]')?.innerText.includes('berth maintenance remove cooling --only ')`)
		p.Wait(`!document.querySelector('#maintenance table').innerText.includes('2 times')`)
		p.Visit(q.link("olga", service.Operator, "harbour?t=now..now%2B60h"))
		p.Wait(`document.querySelector('[aria-label=Legend]')?.innerText.includes('Announced outage')`)
		painted(p, 2)
		shot(p, fmt.Sprintf("harbour-announced-%d", size.Width))
		p.Visit(q.link("olga", service.Operator, "operate?again"))
		part(p, "maintenance", "cooling")
		p.Press("Call off: cooling")
		p.Press("Yes, call it off: cooling")
		p.Wait(`document.querySelector('[data-testid=off]')?.innerText.includes('berth maintenance remove cooling')`)
		part(p, "maintenance", "No maintenance is planned")
		if wide := p.Eval(`document.documentElement.scrollWidth`).(float64); wide > float64(size.Width) {
			t.Errorf("the page is %v pixels wide", wide)
		}
		noFaults(t, p)
		p.Close()
	}
}

// A user makes a service account where the sessions are, with a token whose secret is shown once and is good for what was chosen, renews it, and removes all of it.
func TestServiceAccountsInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	for _, size := range []browser.Size{{Width: 1200, Height: 1000}, {Width: 390, Height: 844}} {
		p := b.Open(size)
		p.Dark(size.Width == 390)
		p.Visit(q.link("alice", service.User, "promises"))
		p.Wait(`document.querySelector('[data-testid=none]')`)
		p.Press("alice, user: where you are logged in")
		p.Wait(`document.querySelector('[data-testid=accounts]')?.innerText.includes('You have none')`)
		p.Press("Make a service account")
		p.Wait(`document.activeElement?.labels?.[0]?.innerText === 'Name'`)
		enter(p, "Name", "builds")
		p.Wait(`document.body.innerText.includes('builds: want a name that begins with svc-')`)
		name := fmt.Sprintf("svc-ci-%d", size.Width)
		enter(p, "Name", name)
		enter(p, "Note", "nightly")
		p.Wait(`document.querySelector('[data-testid=accounts] form').innerText.includes('berth service-account add ` + name + ` --note nightly')`)
		p.Press("Make it")
		p.Wait(`document.querySelector('[data-account] form')`)
		p.Press("look")
		p.Press("reserve")
		p.Wait(`/berth service-account token ` + name + ` --expires \S+Z --scope read,reserve/.test(document.querySelector('[data-account] form').innerText)`)
		shot(p, fmt.Sprintf("account-form-%d", size.Width))
		p.Press("Make the token")
		p.Wait(`document.querySelector('[data-testid=account-secret] code')`)
		secret, _ := p.Eval(`document.querySelector('[data-testid=account-secret] code').innerText`).(string)
		e, _, known := q.tokens.Check(secret)
		if !known || e.User != name || e.Scopes.String() != "read,reserve" {
			t.Errorf("the secret is of %+v, known: %v", e, known)
		}
		p.Wait(`document.querySelectorAll('[data-token]').length === 1`)
		shot(p, fmt.Sprintf("account-made-%d", size.Width))
		p.Press("Put it away")
		p.Wait(`!document.querySelector('[data-testid=account-secret]')`)
		if strings.Contains(p.Eval(`document.documentElement.outerHTML + JSON.stringify([{ ...localStorage }, { ...sessionStorage }])`).(string), secret) {
			t.Error("the secret is still there")
		}
		p.Press("Renew: " + name + " " + e.ID)
		p.Wait(`document.querySelectorAll('[data-token]').length === 2`)
		second, _ := p.Eval(`document.querySelector('[data-testid=account-secret] code').innerText`).(string)
		if n, _, known := q.tokens.Check(second); !known || second == secret || n.Scopes != e.Scopes || n.User != name {
			t.Errorf("renewed is %+v, known: %v", n, known)
		}
		if was, _, known := q.tokens.Check(secret); !known || was.Expires == 0 || was.Expires >= e.Expires {
			t.Errorf("the token that was renewed is %+v, known: %v; want it to end before %d", was, known, e.Expires)
		}
		p.Press("Revoke: " + name + " " + e.ID)
		p.Press("Yes, revoke it: " + name + " " + e.ID)
		p.Wait(`document.querySelectorAll('[data-token]').length === 1`)
		if _, _, known := q.tokens.Check(secret); known {
			t.Error("the revoked token is good")
		}
		p.Press("Remove: " + name)
		p.Press("Yes, remove it: " + name)
		p.Wait(`document.querySelector('[data-testid=accounts]').innerText.includes('You have none')`)
		if _, _, known := q.tokens.Check(second); known {
			t.Error("the token of a removed account is good")
		}
		if wide := p.Eval(`document.documentElement.scrollWidth`).(float64); wide > float64(size.Width) {
			t.Errorf("the page is %v pixels wide", wide)
		}
		noFaults(t, p)
		p.Close()
	}
}
