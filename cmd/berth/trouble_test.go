package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/berth-hpc/berth/api"
	"github.com/berth-hpc/berth/api/token"
	"github.com/berth-hpc/berth/internal/browser"
	"github.com/berth-hpc/berth/service"
	"github.com/berth-hpc/berth/site/fake"
	"github.com/berth-hpc/berth/web"
)

// deadlineHandle is where the deadline that is twelve hours from now can be taken hold of on
// the page Book, and how many pixels an hour is.
func deadlineHandle(p *browser.Page) (at browser.Point, hour float64) {
	p.Wait(gantt)
	found, _ := p.Eval(`(() => {
		const c = document.querySelector('.gantt canvas[role=application]'), r = c.getBoundingClientRect();
		return [r.x + 116 + 13 / 24 * (r.width - 116), r.y + r.height / 2, (r.width - 116) / 24];
	})()`).([]any)
	return browser.Point{X: found[0].(float64), Y: found[1].(float64)}, found[2].(float64)
}

// A session that ends while something is dragged, because it is revoked or has expired, shows
// the login, books nothing, and who logs in again can go on.
func TestSessionEndsWhileDragging(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	for _, expires := range []bool{false, true} {
		secret, e, err := q.tokens.Add(token.Wanted{User: "alice", Role: service.User}, q.host.Now())
		if err != nil {
			t.Fatal(err)
		}
		if expires {
			if _, e, err = q.tokens.Add(token.Wanted{User: "alice", Role: service.User, Expires: q.host.Now() + 8}, q.host.Now()); err != nil {
				t.Fatal(err)
			}
		}
		p := b.Open(wide)
		p.Visit(q.url + "/book#login=" + q.links.Make(e.ID, q.host.Now()))
		offered(p, "As asked")
		at, hour := deadlineHandle(p)
		p.Mouse("mouseMoved", at)
		p.Mouse("mousePressed", at)
		p.Mouse("mouseMoved", browser.Point{X: at.X - hour, Y: at.Y})
		if expires {
			for q.host.Now() < e.Expires {
				p.Eval(`new Promise((done) => setTimeout(done, 200))`)
			}
		} else {
			for _, s := range q.tokens.List() {
				if s.IsSession() {
					if err := q.tokens.EndSession(s.ID); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		for i := range 4 {
			p.Mouse("mouseMoved", browser.Point{X: at.X - hour*float64(i+2), Y: at.Y})
		}
		p.Mouse("mouseReleased", browser.Point{X: at.X - 5*hour, Y: at.Y})
		p.Wait(`document.querySelector('input[type=password]')`)
		shot(p, fmt.Sprintf("session-ended-%t", expires))
		if n := len(q.of("alice")); n != 0 {
			t.Errorf("%d reservations by a drag", n)
		}
		p.Eval(`document.querySelector('input[type=password]').focus()`)
		p.Type(secret)
		p.Key("Enter")
		offered(p, "As asked")
		p.Close()
	}
}

// A service that is started again under an open page is live again by itself, with what
// happened meanwhile, without a reload.
func TestServiceIsBackUnderThePage(t *testing.T) {
	t.Parallel()
	b := browser.StartAlways(t)
	q := newQuay(t, "harbour")
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, ""))
	painted(p, 1)
	p.Eval(`globalThis.same = true`)
	address := strings.TrimPrefix(q.url, "http://")
	q.stop()
	p.Wait(`document.body.innerText.includes('Not live')`)
	q.reserve("alice", "harbour", "meanwhile", 8, 3600, 20_000, 0)
	q.serve(address, web.Handler("", http.HandlerFunc(api.NotFound)))
	p.Wait(`!document.body.innerText.includes('Not live') && globalThis.same`)
	p.Wait(fmt.Sprintf(`(() => { const d = %s; for (let i = 0; i < d.length; i += 4) if (d[i] === %d && d[i+1] === %d) return true; return false })()`, pixelsOf, mineBlue[0], mineBlue[1]))
}

// A page with a part that is loaded only after the service was upgraded says so, and reloads.
func TestServiceIsUpgradedUnderThePage(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, ""))
	painted(p, 1)
	address := strings.TrimPrefix(q.url, "http://")
	pages := web.Handler("", http.HandlerFunc(api.NotFound))
	q.stop()
	old := true
	q.serve(address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if old && strings.Contains(r.URL.Path, "/ui/") { // files of that build are gone
			api.NotFound(w, r)
			return
		}
		pages.ServeHTTP(w, r)
	}))
	p.Press("My promises")
	p.Wait(`document.body.innerText.includes('may have been upgraded')`)
	shot(p, "upgraded")
	old = false
	p.Wait(`[...document.querySelectorAll('button')].some((b) => b.innerText === 'Reload')`)
	p.Visit(p.Eval(`location.href`).(string)) // as the button does
	p.Wait(`document.body.innerText.includes('No promise')`)
}

// While the disk is full nothing is said to be promised, the form stays, and once there is room
// the same can be asked again.
func TestFullDiskUnderThePage(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, "book"))
	offered(p, "As asked")
	q.full.full.Store(true)
	p.Press("Promise it")
	p.Wait(`[...document.querySelectorAll('[role=alert]')].some((e) => /room|journal|disk/.test(e.innerText))`)
	shot(p, "full-disk")
	if p.Eval(`Boolean(document.querySelector('[data-testid=promised]'))`) == true || value(p, "Duration") != "1h" {
		t.Error("it is promised, or the form is gone")
	}
	q.full.full.Store(false)
	deadline := time.Now().Add(20 * time.Second)
	for q.host.Ready() != nil && time.Now().Before(deadline) {
		p.Eval(`new Promise((done) => setTimeout(done, 100))`)
	}
	p.Press("Promise it")
	p.Wait(`document.querySelector('[data-testid=promised]')`)
	if list := q.of("alice"); len(list) != 1 || list[0].State.Over() {
		t.Errorf("%+v", list)
	}
}

// Times are those of the service, whatever the browser's clock says.
func TestClockOfTheBrowserIsHoursApart(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	q.reserve("alice", "harbour", "soon", 8, 1800, 3600, 0)
	for _, hours := range []int{-7, 7} {
		p := b.Open(wide)
		p.Before(fmt.Sprintf(`(() => { const now = Date.now.bind(Date); Date.now = () => now() + %d })()`, hours*3_600_000))
		p.Visit(q.link("alice", service.User, "?tz=UTC"))
		painted(p, 1)
		want := time.Unix(int64(q.host.Now()), 0).UTC().Add(-2 * time.Hour).Format("2006-01-02 15:")
		p.Wait(fmt.Sprintf(`document.querySelector('[data-testid=window]').innerText.includes(%q)`, want))
		if n := colours(p, mineBlue); n == 0 {
			t.Errorf("%d hours apart the promise is not in the window", hours)
		}
		p.Press("Book")
		offered(p, "As asked")
		p.Press("Promise it")
		p.Wait(`document.querySelector('[data-testid=promised]')`)
		noFaults(t, p)
		p.Close()
	}
	for _, r := range q.of("alice") {
		if start := r.Allotments[0].Start; r.ID != "soon" && (start < q.host.Now()-60 || start > q.host.Now()+60) {
			t.Errorf("now was taken to be %d, it is %d", start, q.host.Now())
		}
	}
}

// Names that people give are shown as they are: markup is no markup, text from right to left
// turns nothing else round, and what is very long leaves the rest where it was.
func TestNamesOfAllKinds(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	q.reserve("alice", "harbour", "all", 16, 60, 20_000, 0)
	names := []string{
		`<img src=x onerror="globalThis.hacked=1"><script>globalThis.hacked=1</script>`,
		"מאוורר שבור \u202efan\u202c",
		"🔥🧯 👩‍🚒 broken",
		strings.Repeat("long", 2500),
	}
	p := b.Open(wide)
	p.Visit(q.link("olga", service.Operator, "operate"))
	p.Wait(`document.querySelector('article')`)
	p.Press("16 nodes, all up of harbour")
	for i, name := range names {
		if err := q.host.Drain(t.Context(), service.Ask{By: service.Principal{User: "olga", Role: service.Operator}}, "harbour", fmt.Sprint("n", i+1), name); err != nil {
			t.Fatal(err)
		}
		p.Wait(fmt.Sprintf(`document.querySelector('table[aria-label="Nodes of harbour"]')?.innerText.includes(%q)`, name))
	}
	if wide := p.Eval(`document.documentElement.scrollWidth <= innerWidth`); wide != true {
		t.Error("a long reason makes the page wider")
	}
	if hacked := p.Eval(`Boolean(globalThis.hacked) || Boolean(document.querySelector('img[src=x]'))`); hacked == true {
		t.Error("markup was taken as such")
	}
	shot(p, "names-operate")
	p.Visit(q.url + "/promises?everybody=1&sel=" + url.QueryEscape("<b>all</b>"))
	p.Wait(`document.body.innerText.includes('not yours')`)
	p.Faults() // of what is not there
	for _, query := range []string{"?site=" + url.QueryEscape(names[0]), "?q=" + url.QueryEscape(names[1]), "?site=" + names[3], "?t=now..now&rows=x&sel=/&state=,&owner=<b>", "?%", "?t=" + strings.Repeat("9", 5000)} {
		p.Visit(q.url + "/" + query)
		p.Wait(`document.querySelector('h1')?.innerText === 'Harbour'`)
		p.Wait(`document.querySelector('.gantt') || document.body.innerText.includes('There is no site')`)
		if p.Eval(`Boolean(globalThis.hacked)`) == true || p.Eval(`document.documentElement.scrollWidth <= innerWidth`) != true {
			t.Errorf("%.60s: hacked, or too wide", query)
		}
	}
	shot(p, "names-address")
}

// Two people confirm one hold: one of them does it, the other reads that it is confirmed, and
// it is one promise.
func TestTwoConfirmOneHold(t *testing.T) {
	t.Parallel()
	b := browser.StartAlways(t)
	q := newQuay(t, "harbour")
	q.reserve("alice", "harbour", "held", 4, 3600, 3600, 600)
	var pages []*browser.Page
	for _, role := range []service.Role{service.User, service.Operator} {
		user := map[service.Role]string{service.User: "alice", service.Operator: "olga"}[role]
		p := b.Open(wide)
		p.Visit(q.link(user, role, "promises?everybody=1&sel=held"))
		p.Wait(`[...document.querySelectorAll('button')].some((b) => b.innerText === 'Confirm')`)
		pages = append(pages, p)
	}
	for _, p := range pages { // at the same time, as nearly as two people can
		p.Eval(`void [...document.querySelectorAll('button')].find((b) => b.innerText === 'Confirm')?.click()`)
	}
	for _, p := range pages {
		p.Wait(`![...document.querySelectorAll('button')].some((b) => b.innerText === 'Confirm') && /confirmed/i.test(document.body.innerText)`)
		shot(p, "two-confirm")
	}
	if list := q.of("alice"); len(list) != 1 || list[0].State != service.Confirmed {
		t.Errorf("%+v", list)
	}
}

// A promise that has lost all its PEs is seen as degraded below the others, and can be looked at.
func TestPromiseThatLostAllIsSeen(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	q.reserve("alice", "harbour", "all", 16, 3600, 20_000, 0)
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, ""))
	painted(p, 1)
	for i := range 16 {
		q.site.Fail(fmt.Sprint("n", i+1), "power")
	}
	p.Wait(fmt.Sprintf(`(() => { const d = %s; let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] === %d && d[i+1] === %d && d[i+2] === %d) n++; return n > 500 })()`, pixelsOf, degradedOrange[0], degradedOrange[1], degradedOrange[2]))
	shot(p, "lost-all")
	p.Eval(gantt + `.focus()`)
	for range 18 { // down all rows to the last
		p.Key("ArrowDown")
	}
	p.Wait(`/degraded promise, 16 PEs, no PEs now/.test(document.querySelector('.gantt [role=status]').innerText)`)
	p.Key("Enter")
	p.Wait(`document.querySelector('.mantine-Drawer-body')?.innerText.includes('Missing') && document.querySelector('.mantine-Drawer-body').innerText.includes('16 PEs')`)
	noFaults(t, p)
}

// A site that goes away while its picture is open keeps its rows, with its own words, and comes
// back by itself; each is seen within 2 s, though the page asks by itself every 15 s alone.
func TestSiteGoesAwayUnderThePage(t *testing.T) {
	t.Parallel()
	pagesAlone(t)
	b := browser.Start(t)
	q := newQuay(t, "harbour")
	q.reserve("alice", "harbour", "a", 8, 3600, 20_000, 0)
	p := b.Open(wide)
	p.Visit(q.link("alice", service.User, ""))
	painted(p, 1)
	p.Wait(fmt.Sprintf(`(() => { const d = %s; for (let i = 0; i < d.length; i += 4) if (d[i] === %d && d[i+1] === %d) return true; return false })()`, pixelsOf, mineBlue[0], mineBlue[1]))
	// The page notes when it shows what it is told, and is heard when it has.
	p.Eval(`(() => {
		window.shows = [];
		new MutationObserver(() => {
			const away = /not reachable/i.test(document.querySelector('section[aria-label="Site harbour"]')?.innerText);
			if (shows.at(-1)?.away !== away) shows.push({ away, at: Date.now() });
		}).observe(document.body, { subtree: true, childList: true, characterData: true });
	})()`)
	within := func(what string, away bool, since time.Time) {
		t.Helper()
		p.Wait(fmt.Sprintf(`shows.at(-1)?.away === %v`, away))
		took := time.UnixMilli(int64(p.Eval(`shows.at(-1).at`).(float64))).Sub(since)
		t.Logf("%s after %s", what, took.Round(time.Millisecond))
		if took > 2*time.Second {
			t.Errorf("%s after %s, want 2 s", what, took)
		}
	}
	since := time.Now()
	q.site.Inject(fake.Fault{Op: "observe", What: "down"})
	within("the page says that the site is away", true, since)
	shot(p, "site-away")
	if n := colours(p, mineBlue); n == 0 {
		t.Error("its rows are gone")
	}
	since = time.Now()
	q.site.Heal()
	within("the page says that it is back", false, since)
	if wide := p.Eval(`document.querySelectorAll('.gantt.away, .away .gantt').length`); wide != 0.0 {
		t.Error("its rows are still grey")
	}
	noFaults(t, p)
}
