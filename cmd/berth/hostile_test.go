package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/berth-hpc/berth"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/service"
)

// hostile are names that people and sites can give.
var hostile = map[string]string{
	"markup": `<img src=x onerror="globalThis.hacked=1"><script>globalThis.hacked=1</script>`,
	"right":  "מאוורר שבור \u202efan\u202c",
	"emoji":  "🔥🧯 👩‍🚒 broken",
	"long":   strings.Repeat("long", 2500),
}

// Whatever sites, users, reservations, workflows, tasks, files and notes are called, each page
// shows it as it is: markup is no markup, and the page is no wider than its window, on a phone too.
func TestEveryPageTakesEveryName(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	for kind, name := range hostile {
		at := "harbour" // sites have plain names, which may be long
		if kind == "long" {
			at = name[:250]
		}
		q := newQuay(t, at)
		now := q.host.Now()
		user := name
		if _, _, err := q.tokens.Add(token.Wanted{User: user, Role: service.User, Note: name}, now); err != nil {
			t.Logf("%s is no user: %v", kind, err)
			user = "alice"
		}
		ask := service.Ask{By: service.Principal{User: user, Role: service.User}}
		for i, hold := range []berth.Duration{0, 1800} {
			r := berth.Rigid(name+fmt.Sprint(i), now, now.Add(60), now.Add(9000), 8, 8000)
			r.Site, r.Hold = at, hold
			if answer, err := q.host.Submit(t.Context(), ask, r); err != nil || answer.Reservation.State == service.Refused {
				t.Fatal(err, answer)
			}
		}
		for i := range 2 {
			if err := q.host.Drain(t.Context(), service.Ask{By: service.Principal{User: "olga", Role: service.Operator}}, at, fmt.Sprint("n", i+1), name); err != nil {
				t.Fatal(err)
			}
		}
		flow, err := json.Marshal(map[string]any{"name": name, "schemaVersion": "1.4", "workflow": map[string]any{"tasks": []any{
			map[string]any{"id": name, "runtimeInSeconds": 600, "parents": []any{}}, map[string]any{"id": "b", "runtimeInSeconds": 600, "parents": []any{name}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.host.SubmitWorkflow(t.Context(), ask, berth.Workflow{
			ID: name, Name: name, Site: at, Deadline: now.Add(80_000), Algorithm: "bd-cpar", Repair: berth.RepairBoth, Tasks: []berth.WorkflowTask{{ID: name, Seconds: 600, Alpha: 1}},
		}); err != nil {
			t.Errorf("%s: a workflow: %v", kind, err)
		}
		again := berth.Series{Rule: name, Zone: "UTC", Least: 1, Ahead: 90_000, Request: berth.Rigid(name+"s", now, now, now, 1, 60)}
		for i := range berth.Time(3) {
			again.Occurrences = append(again.Occurrences, berth.Occurrence{Ready: now + 86_400*(i+1), Deadline: now + 86_400*(i+1) + 60})
		}
		again.Request.Ready, again.Request.Deadline = again.Occurrences[0].Ready, again.Occurrences[0].Deadline
		series, err := q.host.SubmitSeries(t.Context(), ask, again)
		if err != nil {
			t.Fatalf("%s: a series: %v", kind, err)
		}
		p := b.Open(wide)
		look := func(page string, more ...string) {
			t.Helper()
			for _, size := range []browser.Size{{Width: 390, Height: 844}, wide} {
				p.Resize(size)
				p.Eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`)
				if p.Eval(`Boolean(globalThis.hacked) || Boolean(document.querySelector('img[src=x]'))`) == true {
					t.Errorf("%s, %s: markup is taken as such", page, kind)
				}
				for _, wrong := range append(more, tooWide) {
					if is := p.Eval(wrong); is != "" {
						t.Errorf("%s, %s, %d: %.300v", page, kind, size.Width, is)
					}
				}
				shot(p, fmt.Sprintf("hostile-%s-%s-%d", kind, page, size.Width))
			}
		}
		for _, role := range []service.Role{service.Operator, service.User} {
			who := map[service.Role]string{service.Operator: "olga", service.User: user}[role]
			p.Visit(q.link(who, role, ""))
			painted(p, 1)
			look("harbour-" + string(role))
			p.Press("Table")
			p.Wait(`document.querySelector('table tbody tr')`)
			look("table-" + string(role))
			p.Press("Details")
			p.Wait(`document.querySelector('.mantine-Drawer-body table')`)
			look("details-" + string(role))
			p.Key("Escape")
			p.Wait(`!document.querySelector('.mantine-Drawer-body')`)
			visit(p, "Book")
			offered(p, "As asked")
			p.Press("Hold for 10 min: As asked")
			p.Wait(`document.querySelector('[data-testid=held]')`)
			look("held-" + string(role))
			p.Press("Confirm")
			p.Wait(`document.querySelector('[data-testid=promised]')`)
			look("promised-" + string(role))
			p.Visit(q.url + "/promises?everybody=1&sel=" + url.QueryEscape(name+"0"))
			p.Wait(`document.querySelector('[data-testid=history]')?.innerText.includes('promised')`)
			look("promise-" + string(role))
			p.Key("Escape")
			p.Wait(`document.querySelectorAll('table.list tbody tr').length > 0`)
			p.Wait(`document.querySelector('[data-testid=groups] tbody tr')`)
			look("promises-" + string(role))
			p.Visit(q.url + "/promises?everybody=1&series=" + url.QueryEscape(series.Series.Series.ID))
			p.Press("Change: 1")
			enter(p, "PEs", "99")
			p.Press("Change it")
			p.Wait(`document.querySelector('[data-testid=no]')`)
			look("series-"+string(role), `[...document.querySelectorAll('[data-testid=no] *')].some((e) => e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1) ? 'the refusal is cut off' : ''`)
			p.Key("Escape")
			p.Visit(q.url + "/workflow?everybody=1&flow=" + url.QueryEscape(name))
			p.Wait(`document.querySelector('.drop')`)
			drop(p, name[:min(len(name), 200)]+".json", string(flow))
			curved(p)
			look("workflow-" + string(role))
			visit(p, "Laboratory")
			p.Wait(`document.querySelector('form')`)
			drop(p, name[:min(len(name), 200)]+".sacct", slurmLog)
			p.Wait(`document.querySelector('input[value*=sacct]')`)
			look("laboratory-" + string(role))
			if role == service.Operator {
				visit(p, "Operate")
				p.Wait(`document.querySelector('article')`)
				part(p, "limits", user)
				p.Eval(`[...document.querySelectorAll('article button')].find((b) => b.innerText.includes('nodes')).click()`)
				p.Wait(`document.querySelector('table[aria-label^="Nodes of"]')`)
				look("operate")
				p.Eval(`document.querySelector('#limits').scrollIntoView()`)
				look("operate-below")
			}
		}
		noFaults(t, p)
		p.Close()
	}
}
