package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/service"
)

// A calendar feed is made on the page of one's promises, its address is shown once and is read by a calendar program,
// and once the feed is revoked nothing is there.
func TestACalendarFeedInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.load()
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, ""))
	painted(p, 2)
	p.Press("My promises")
	listed(p, 4)
	p.Press("Calendar feed")
	p.Wait(`document.querySelector('[data-testid=feeds]')?.innerText.includes('There is no feed yet')`)
	enter(p, "What for", "my phone")
	p.Wait(`document.querySelector('[data-testid=feeds]').innerText.includes("berth feed create --note 'my phone'")`)
	p.Press("Make one")
	p.Wait(`document.querySelector('[data-testid=address] code')`)
	address, _ := p.Eval(`document.querySelector('[data-testid=address] code').innerText`).(string)
	read := func() (status int, text string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(body)
	}
	if status, text := read(); status != http.StatusOK || !strings.Contains(text, "alice-later") || strings.Contains(text, "bob-") {
		t.Errorf("%s has %d %.300s", address, status, text)
	}
	p.Wait(`document.querySelector('table[aria-label="Calendar feeds"]')?.innerText.includes('my phone')`)
	shot(p, "feed-light")
	p.Press("Copy the address")
	p.Press("Put it away")
	p.Wait(`!document.querySelector('[data-testid=address]')`)
	if strings.Contains(p.Eval(`document.documentElement.outerHTML`).(string), address) {
		t.Error("the address is still there once it is put away")
	}
	p.Press("Revoke: my phone")
	p.Press("Yes, revoke it: my phone")
	p.Wait(`document.querySelector('[data-testid=feeds]').innerText.includes('There is no feed yet')`)
	if status, _ := read(); status != http.StatusNotFound {
		t.Errorf("a feed that was revoked answers with %d", status)
	}
	noFaults(t, p)
}

// A name of one's own stands in the list, with what is told of a promise and in the harbour, and the list can be
// narrowed to it.
func TestNamesInABrowser(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.load()
	now := q.host.Now()
	r := berth.Rigid("alice-named", now, now, now.Add(3600), 3, 3600)
	r.Site, r.Name = "harbour", "weekly-run"
	if a, err := q.host.Submit(t.Context(), q.ask("alice"), r); err != nil || a.Reservation.Refusal != nil {
		t.Fatal(a.Reservation.Refusal, err)
	}
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, "promises"))
	listed(p, 5)
	p.Wait(`document.querySelector('tr[data-id=alice-named]').innerText.includes('weekly-run')`)
	p.Eval(`document.querySelector('input[aria-label=Name]').focus()`)
	p.Type("weekly-run")
	p.Key("Enter")
	listed(p, 1)
	p.Wait(`location.search.includes('name=weekly-run')`)
	shot(p, "promises-named-light")
	p.Press("Details of alice-named")
	p.Wait(`document.querySelector('table[aria-label="The promise"]')?.innerText.includes('weekly-run')`)
	p.Key("Escape")
	p.Visit(q.url + "/promises?name=other")
	p.Wait(`document.querySelector('[data-testid=none]')?.innerText.includes('Nothing here has the name other')`)
	span := spanOf(t, q, "alice-named")
	for user, sees := range map[string]bool{"alice": true, "bob": false} {
		h := b.Open(wide)
		h.Visit(q.link(user, service.User, fmt.Sprintf("?site=harbour&sel=harbour/%d", span)))
		h.Wait(`/Your promise|Whose it is only/.test(document.querySelector('[role=dialog]')?.innerText ?? '')`)
		if sees {
			h.Wait(`document.querySelector('[role=dialog]').innerText.includes('weekly-run')`)
			shot(h, "harbour-named-light")
		} else if strings.Contains(h.Eval(`document.body.innerText`).(string), "weekly-run") {
			t.Errorf("%s reads the name", user)
		}
		noFaults(t, h)
	}
	noFaults(t, p)
}

// spanOf returns the number that a promise has in pictures.
func spanOf(t *testing.T, q *quay, id string) uint32 {
	t.Helper()
	now := q.host.Now()
	list, err := q.host.Occupation(t.Context(), q.ask("alice").By, "harbour", now, now+1, service.Mark{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i := range list {
		if list[i].ID == id {
			return list[i].Mark.InPictures()
		}
	}
	t.Fatalf("%s is not there", id)
	return 0
}

// Limits that are counted at some sites alone, for an operator of these, say so.
func TestWhereLimitsAreCountedInABrowser(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour", "record")
	q.load()
	_, e, err := q.tokens.Add(token.Wanted{User: "olga", Role: service.Operator, Sites: service.NewSiteSet([]string{"record"})}, q.host.Now())
	if err != nil {
		t.Fatal(err)
	}
	p := b.Open(wide)
	p.Visit(q.url + "/operate#login=" + q.links.Make(e.ID, q.host.Now()))
	part(p, "limits", "carol")
	part(p, "limits", "counted at: record")
	p.Eval(`document.querySelector('#limits').scrollIntoView()`)
	shot(p, "operate-counted-light")
	whole := b.Open(wide)
	whole.Visit(q.link("olga", service.Operator, "operate"))
	part(whole, "limits", "carol")
	if strings.Contains(whole.Eval(`document.body.innerText`).(string), "counted at") {
		t.Error("an operator of all sites is told of some")
	}
	noFaults(t, p)
	noFaults(t, whole)
}
